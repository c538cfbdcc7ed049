//! The syscall filter in a real kernel: ordinary programs work under it, and refused calls answer exactly
//! the error the table says, where the same call without the filter answers something else.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{fs, io};

use nix::errno::Errno::{self, *};
use stockade::plan::syscalls::{Executables, FilterInput, Program, compile};
use stockade::policy::{Network, SyscallGroup};

const PLAIN: FilterInput<'static> = FilterInput { groups: &[], network: &Network::None, executables: Executables::Any };

/// What the basket must be able to do, and which programs it takes. `$OUT` is an empty directory.
const BASKET: &[(&str, &[&str], &str)] = &[
    ("pipes", &["ls", "wc"], "test $(ls / | wc -l) -gt 5"),
    ("job control", &["sleep"], "set -m; sleep 0.01 & wait $!; (exit 3) || test $? = 3"),
    ("coreutils", &["cp", "dd", "install"], "cp -a /etc/hostname a; install -m 755 a b; dd if=/dev/zero of=c bs=1k count=4 status=none; ln -s a d; touch -d @0 a; mkfifo f; df . >/dev/null; stat f"),
    ("python threads", &["python3"], "python3 -c 'import threading as t; x=[t.Thread(target=print) for _ in range(8)]; [i.start() for i in x]; [i.join() for i in x]'"),
    ("python subprocess", &["python3"], "python3 -c 'import subprocess as s; assert s.check_output([\"echo\",\"hi\"], close_fds=True, start_new_session=True)==b\"hi\\n\"'"),
    ("python asyncio", &["python3"], "python3 -c 'import asyncio as a
async def f():
    p=await a.create_subprocess_exec(\"cat\",stdin=-1,stdout=-1); assert (await p.communicate(b\"x\"))[0]==b\"x\"
    s=await a.start_server(lambda r,w:w.close(),\"127.0.0.1\",0); r,w=await a.open_connection(*s.sockets[0].getsockname()); assert await r.read()==b\"\"
a.run(f())'"),
    ("python multiprocessing", &["python3"], "printf 'import multiprocessing as m\\nif __name__==\"__main__\":\\n for k in (\"fork\",\"spawn\",\"forkserver\"):\\n  with m.get_context(k).Pool(2) as p: assert p.map(abs,[-1,-2])==[1,2]\\n' >m.py; python3 m.py"),
    ("python venv", &["python3"], "python3 -m venv v --without-pip && v/bin/python -c 'import ssl,sqlite3,mmap,ctypes; mmap.mmap(-1,4096)'"),
    ("node", &["node"], "node -e 'const {Worker}=require(\"worker_threads\"); require(\"child_process\").execSync(\"true\"); require(\"fs\").watch(\".\").close(); new Worker(\"1\",{eval:true}).on(\"exit\",c=>process.exit(c))'"),
    ("git", &["git"], "git init -q r && cd r && git config user.email a@b && git config user.name a && echo x>x && git add . && git commit -qm x && git gc -q && git clone -q . ../s && git worktree add -q ../w"),
    ("gcc and make", &["gcc", "make"], "printf 'int main(){return 7;}' >a.c; printf 'a: a.c\\n\\tgcc -pipe -o a a.c\\n' >Makefile; make -j2 -s; ./a || test $? = 7"),
    ("cargo", &["cargo"], "cargo init -q --vcs none --name x c && cd c && cargo run -q | grep -q Hello"),
    ("sqlite3", &["sqlite3"], "sqlite3 d.db 'pragma journal_mode=wal; create table t(a); insert into t values(1); select * from t' | grep -q 1"),
    ("tar", &["tar", "gzip", "xz"], "mkdir t; echo x>t/x; tar czf t.gz t; tar cJf t.xz t; rm -r t; tar xzf t.gz; test -f t/x"),
    ("ssh-keygen", &["ssh-keygen"], "ssh-keygen -q -t ed25519 -N '' -f k && test -f k.pub"),
    ("tmux", &["tmux"], "tmux -S $OUT/tmux -f /dev/null new-session -d 'echo ready; sleep 30' && until tmux -S $OUT/tmux capture-pane -p | grep -q ready; do sleep 0.05; done; tmux -S $OUT/tmux kill-server"),
    ("vim", &["vim", "script"], "script -qec \"vim -Nu NONE -c 'normal ihello' -c wq v.txt\" /dev/null >/dev/null </dev/null; grep -q hello v.txt"),
    ("interactive shell", &["script"], "script -qec 'bash -i -c \"stty size; jobs; tty\"' /dev/null </dev/null | grep -q /dev/"),
    ("network tools", &["ip", "curl"], "ip addr | grep -q lo; curl -s --max-time 5 telnet://127.0.0.1:1 || test $? = 7"),
    ("find, sed, awk, xargs", &["find", "sed", "awk", "xargs"], "find /etc -maxdepth 1 -name 'h*' -print0 | xargs -0 -P2 -n1 echo | sed s/h/H/ | awk '{n++} END{exit n<1}'"),
    ("perl", &["perl"], "perl -e 'open(my $p,\"-|\",\"echo hi\"); print <$p>; fork // die' | grep -q hi"),
];

#[test]
fn ordinary_programs_work() {
    let mut failures = Vec::new();
    for (what, programs, script) in BASKET {
        for program in *programs {
            assert!(find(program).is_some(), "`{program}` is not installed; the basket needs it");
        }
        if let Err(failure) = in_filter(&PLAIN, script) {
            failures.push(format!("{what}: {failure}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_debugger_works_only_with_its_group() {
    assert!(find("gdb").is_some(), "`gdb` is not installed; this test needs it");
    let script = "gdb -q -nx -batch -ex 'break main' -ex run -ex 'print 6*7' /usr/bin/true 2>&1 | tee log | grep -q -F '= 42' && \
                  gdb -q -nx -batch -ex starti -ex 'info registers' /usr/bin/true 2>&1 | grep -q -E 'rip|pc '";
    in_filter(&FilterInput { groups: &[SyscallGroup::Debug], ..PLAIN }, script).expect("gdb runs with group `debug`");
    in_filter(&PLAIN, script).expect_err("gdb must not run without it");
}

/// Programs and tools under every narrowing at once still do local work.
#[test]
fn narrow_policies_leave_local_work_alone() {
    let network = Network::Host { connect_ports: Some(vec![443]), bind_ports: Some(vec![]) };
    let narrow = FilterInput { groups: &[], network: &network, executables: Executables::Listed };
    in_filter(&narrow, "ls / | wc -l; python3 -c 'import socket,threading; socket.socket()'; git init -q r; node -e 1")
        .expect("local work");
}

/// A call: its name, number and arguments, the error under the filter, and what to expect without it.
type Attempt = (&'static str, &'static str, Errno, Control);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Control {
    /// Without the filter the call answers something else, for any user.
    Differs,
    /// The host may lack it (an ABI, a kernel option) and then answers the same.
    MayBeMissing,
}
use Control::{Differs, MayBeMissing};

#[cfg(target_arch = "x86_64")]
const REFUSED: &[Attempt] = &[
    ("unshare(NEWUSER)", "272 0x10000000", EPERM, Differs),
    ("unshare(NEWNS), high bits", "272 0x120000000", EPERM, Differs),
    ("clone(NEWUSER), high bits", "56 0xdead10000011 0 0 0 0", EPERM, Differs),
    ("clone3(null)", "435 0 0", ENOSYS, Differs),
    ("setns(-1)", "308 -1 0", EPERM, Differs),
    ("mount(null)", "165 0 0 0 0 0", EPERM, Differs),
    ("umount2(null)", "166 0 0", EPERM, MayBeMissing),
    ("pivot_root(null)", "155 0 0", EPERM, MayBeMissing),
    ("chroot(null)", "161 0", EPERM, Differs),
    ("open_tree(-1, null)", "428 -1 0 0", EPERM, Differs),
    ("mount_setattr(-1, null)", "442 -1 0 0 0 0", EPERM, Differs),
    ("statmount", "457 0 0 0 0", ENOSYS, MayBeMissing),
    ("listmount", "458 0 0 0 0", ENOSYS, MayBeMissing),
    ("ptrace(TRACEME)", "101 0 0 0 0", EPERM, Differs),
    ("process_vm_readv(-1)", "310 -1 0 0 0 0 0", EPERM, Differs),
    ("kcmp(-1)", "312 -1 -1 0 0 0", EPERM, Differs),
    ("pidfd_getfd(-1)", "438 -1 0 0", EPERM, Differs),
    ("perf_event_open(null)", "298 0 0 -1 -1 0", EPERM, Differs),
    ("io_uring_setup(0)", "425 0 0", ENOSYS, Differs),
    ("bpf(-1)", "321 -1 0 0", EPERM, MayBeMissing),
    ("userfaultfd(USER_MODE_ONLY)", "323 1", EPERM, Differs),
    ("keyctl(get session ring)", "250 0 -3 0 0 0", EPERM, MayBeMissing),
    ("add_key(null)", "248 0 0 0 0 0", EPERM, Differs),
    ("open_by_handle_at(-1, null)", "304 -1 0 0", EPERM, MayBeMissing),
    ("name_to_handle_at(-1, null)", "303 -1 0 0 0 0", EPERM, Differs),
    ("openat2(null)", "437 -100 0 0 0", ENOSYS, Differs),
    ("memfd_secret(bad flag)", "447 0x40", EPERM, Differs),
    ("modify_ldt(99)", "154 99 0 0", EPERM, Differs),
    ("move_pages(self, 0)", "279 0 0 0 0 0 0", ENOSYS, MayBeMissing),
    ("personality(READ_IMPLIES_EXEC)", "135 0x400000", EPERM, Differs),
    ("prctl(SET_SECUREBITS)", "157 28 0xffff 0 0 0", EPERM, MayBeMissing),
    ("prctl(SET_MM, bad)", "157 35 999 0 0 0", EPERM, MayBeMissing),
    ("seccomp(NEW_LISTENER, null)", "317 1 8 0", EPERM, Differs),
    ("ioctl(TIOCSTI)", "16 -1 0x5412 0", EPERM, Differs),
    ("ioctl(TIOCSTI | 1 << 32)", "16 -1 0x100005412 0", EPERM, Differs),
    ("ioctl(TIOCLINUX)", "16 -1 0x541c 0", EPERM, Differs),
    ("ioctl(TIOCSETD)", "16 -1 0x5423 0", EPERM, Differs),
    ("fcntl(F_SETLEASE)", "72 -1 1024 0", EPERM, Differs),
    ("fcntl(F_NOTIFY)", "72 -1 1026 0", EPERM, Differs),
    ("chmod 4755", "90 \"file\" 0o4755", EPERM, Differs),
    ("fchmodat 2755", "268 -100 \"file\" 0o2755", EPERM, Differs),
    ("fchmodat2 6755", "452 -100 \"file\" 0o6755 0", ENOSYS, MayBeMissing),
    ("openat(O_CREAT, 6755)", "257 -100 \"born\" 0o101 0o6755", EPERM, Differs),
    ("creat(4755)", "85 \"born-too\" 0o4755", EPERM, Differs),
    ("mknodat(setuid file)", "259 -100 \"node\" 0o104755 0", EPERM, Differs),
    ("mknod(whiteout)", "133 \"white\" 0o020600 0", EPERM, Differs),
    ("socket(AF_ALG)", "41 38 5 0", EAFNOSUPPORT, MayBeMissing),
    ("socket(AF_VSOCK)", "41 40 1 0", EAFNOSUPPORT, MayBeMissing),
    ("socket(AF_PACKET)", "41 17 3 0", EAFNOSUPPORT, Differs),
    ("socket(NETLINK_GENERIC)", "41 16 3 16", EPROTONOSUPPORT, Differs),
    ("socket(MPTCP)", "41 2 1 262", EPROTONOSUPPORT, MayBeMissing),
    ("socket(ping)", "41 2 2 1", EPERM, Differs),
    ("socket(raw, no protocol)", "41 2 3 0", EPERM, Differs),
    ("x32 getpid", "0x40000027", ENOSYS, MayBeMissing),
    ("x32 unshare(NEWUSER)", "0x40000110 0x10000000", ENOSYS, MayBeMissing),
    ("i386 getpid", "int80:20", ENOSYS, MayBeMissing),
    ("number 9999", "9999", ENOSYS, MayBeMissing),
];

#[cfg(target_arch = "x86_64")]
#[test]
fn refused_calls_answer_exactly_and_only_under_the_filter() {
    check(&PLAIN, REFUSED);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn listed_ports_close_what_landlock_does_not_see() {
    let network = Network::Host { connect_ports: Some(vec![443]), bind_ports: None };
    check(
        &FilterInput { network: &network, ..PLAIN },
        &[
            ("socket(UDP)", "41 2 2 0", EPERM, Differs),
            ("socket(UDP over IPv6)", "41 10 0x80002 17", EPERM, MayBeMissing),
            ("sendto(FASTOPEN)", "44 -1 0 0 0x20000000 0 0", EOPNOTSUPP, Differs),
            ("sendmsg(FASTOPEN)", "46 -1 0 0x20000000", EOPNOTSUPP, Differs),
            ("setsockopt(TCP_FASTOPEN_CONNECT)", "54 -1 6 30 0 0", ENOPROTOOPT, Differs),
        ],
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn listed_programs_cannot_come_from_anonymous_files() {
    check(
        &FilterInput { executables: Executables::Listed, ..PLAIN },
        &[("memfd_create", "319 \"x\" 0", EPERM, Differs)],
    );
}

#[test]
fn an_anonymous_file_runs_only_where_programs_are_not_listed() {
    let script = |flags: u32| {
        format!(
            "exec python3 -c '
import os
writable = os.memfd_create(\"x\", {flags})
os.write(writable, open(\"/bin/true\", \"rb\").read())
readable = os.open(f\"/proc/self/fd/{{writable}}\", os.O_RDONLY)
os.close(writable)
os.execve(readable, [\"true\"], {{}})'"
        )
    };
    let (plain, sealed) = (script(1), script(1 | 8));
    let listed = FilterInput { executables: Executables::Listed, ..PLAIN };
    in_filter(&PLAIN, &plain).expect("an anonymous file can be executed");
    let refused = in_filter(&listed, &plain).expect_err("not where programs are listed");
    assert!(refused.contains("[Errno 1]"), "{refused}");
    // Linux 6.3 knows the seal and then refuses the execution (13); before, the flag itself (22).
    let refused = in_filter(&listed, &sealed).expect_err("a sealed one is never executed");
    assert!(refused.contains("[Errno 13]") || refused.contains("[Errno 22]"), "{refused}");
}

fn check(input: &FilterInput<'_>, attempts: &[Attempt]) {
    let with = attempt(Some(compile(input)), attempts);
    let without = attempt(None, attempts);
    assert_eq!((with.len(), without.len()), (attempts.len(), attempts.len()), "{with:?} {without:?}");
    let mut failures = Vec::new();
    for (((name, _, errno, control), with), without) in attempts.iter().zip(&with).zip(&without) {
        let expected = (*errno as i32).to_string();
        if *with != expected {
            failures.push(format!("{name}: {with} under the filter, not {errno:?} ({expected})"));
        }
        if *control == Differs && *without == expected {
            failures.push(format!("{name}: {without} also without the filter, so the attempt proves nothing"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What each call answered, in a child that has only the filter, or nothing, around it.
fn attempt(program: Option<Program>, attempts: &[Attempt]) -> Vec<String> {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("file"), "").expect("a file to try on");
    let calls: String = attempts.iter().map(|(_, call, ..)| format!("{call}\n")).collect();
    fs::write(scratch.0.join("calls"), calls).expect("the list of calls");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filter/attempt.py");
    let mut command = Command::new("python3");
    command.arg(script).current_dir(&scratch.0);
    command.stdin(fs::File::open(scratch.0.join("calls")).expect("the list of calls"));
    let output = spawn(command, program).expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Runs a script under the filter; `Err` tells how it failed.
fn in_filter(input: &FilterInput<'_>, script: &str) -> Result<(), String> {
    let scratch = Scratch::new();
    let mut command = Command::new("timeout");
    command.args(["100", "bash", "-e", "-c", script]).current_dir(&scratch.0).env("OUT", &scratch.0);
    command.env("TERM", "xterm").env_remove("CARGO_TARGET_DIR").stdin(Stdio::null());
    let output = spawn(command, Some(compile(input))).map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {told}", output.status))
}

#[expect(unsafe_code, reason = "a filter must be installed in the child, between fork and exec")]
fn spawn(mut command: Command, program: Option<Program>) -> io::Result<Output> {
    if let Some(program) = program {
        // SAFETY: on success `apply_filter` makes two system calls and does nothing else.
        unsafe {
            command.pre_exec(move || seccompiler::apply_filter(&program).map_err(|_| io::Error::last_os_error()));
        }
    }
    command.output()
}

fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// An empty directory, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("stockade-filter-{}-{count}", std::process::id()));
        fs::create_dir(&path).expect("a scratch directory");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
