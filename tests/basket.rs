//! A basket of ordinary programs that must work under `default`: a wall that breaks them is a bug.
//!
//! Each line is a script in a fresh workspace and what it must print.

mod support;

use std::process::Command;
use support::Yard;

const BASKET: &[(&str, &str, &str)] = &[
    (
        "bash",
        "set -o pipefail; cat <(echo a) <<< b | wc -l; echo \"$USER $HOME $PWD\" | cut -d' ' -f1,2",
        "1\nagent /home/agent\n",
    ),
    ("job control", "set -m; sleep 1000 & kill %1; wait %1; echo $?", "143\n"),
    (
        "find, xargs, awk, sed",
        "mkdir a b; touch a/x b/y; find . -name '[xy]' -print0 | sort -z | xargs -0 -n1 echo | sed 's,./,,' | awk -F/ '{ print $2 }'",
        "x\ny\n",
    ),
    (
        "sort, uniq, diff, patch",
        "seq 3 > a; seq 2 4 > b; diff -u a b > p; sort a b | uniq -d; echo $(wc -l < p)",
        "2\n3\n7\n",
    ),
    (
        "tar",
        "mkdir d; echo text > d/f; chmod 640 d/f; ln -s f d/l; tar czf d.tgz d && rm -r d && tar xzf d.tgz && cat d/l && stat -c %a d/f",
        "text\n640\n",
    ),
    (
        "python3 venv",
        "python3 -m venv v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'",
        "True\n",
    ),
    ("python3 pip is there in a venv", "python3 -m venv v && v/bin/pip --version | cut -d' ' -f1", "pip\n"),
    (
        "python3 asyncio",
        "cat > t.py <<'END'\nimport asyncio\nasync def main():\n    p = await asyncio.create_subprocess_exec('echo', 'child', stdout=asyncio.subprocess.PIPE)\n    print((await p.communicate())[0].decode(), end='')\n    print(sum(await asyncio.gather(*[asyncio.to_thread(abs, -n) for n in range(5)])))\nasyncio.run(main())\nEND\npython3 t.py",
        "child\n10\n",
    ),
    (
        "python3 multiprocessing",
        "cat > t.py <<'END'\nimport multiprocessing as m\nfrom multiprocessing import shared_memory\ndef square(n): return n * n\nif __name__ == '__main__':\n    for way in ('fork', 'spawn', 'forkserver'):\n        with m.get_context(way).Pool(3) as pool: print(pool.map(square, range(4)))\n    s = m.Semaphore(1); s.acquire(); print(s.acquire(False)); s.release()\n    q = m.Queue(); q.put('queued'); print(q.get())\n    b = shared_memory.SharedMemory(create=True, size=16); b.buf[0] = 7; print(b.buf[0]); b.close(); b.unlink()\nEND\npython3 t.py",
        "[0, 1, 4, 9]\n[0, 1, 4, 9]\n[0, 1, 4, 9]\nFalse\nqueued\n7\n",
    ),
    (
        "python3 sockets, threads, ctypes, sqlite3",
        "python3 -c 'import socket, threading, ctypes, sqlite3, tempfile, mmap; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1)); threading.Thread(target=print, args=(1,)).start(); print(ctypes.CDLL(None).abs(-3)); print(sqlite3.connect(\":memory:\").execute(\"select 2\").fetchone()); print(len(mmap.mmap(-1, 4096)))'",
        "b'x'\n1\n3\n(2,)\n4096\n",
    ),
    (
        "node",
        "node -e 'const {Worker} = require(\"worker_threads\"); const {execSync} = require(\"child_process\"); const fs = require(\"fs\"); fs.writeFileSync(\"f\", \"text\"); console.log(execSync(\"cat f\").toString()); const http = require(\"http\").createServer((q, a) => a.end(\"served\")).listen(0, () => fetch(`http://localhost:${http.address().port}`).then(r => r.text()).then(t => { console.log(t); http.close(); new Worker(\"console.log(42)\", {eval: true}) }))'",
        "text\nserved\n42\n",
    ),
    (
        "git",
        "git init -q -b main . && git config user.name a && git config user.email a@b && echo one > f && git add f && git commit -qm first && git worktree add -q tree && (cd tree && echo two > f && git commit -qam second && git log --format=%s) && git merge -q tree && git gc -q && git fsck && git clone -q . copy && git -C copy log --format=%s | head -1",
        "second\nfirst\nsecond\n",
    ),
    (
        "gcc and make",
        "printf '#include <pthread.h>\\n#include <stdio.h>\\nstatic void *f(void *p) { puts(p); return 0; }\\nint main(void) { pthread_t t; pthread_create(&t, 0, f, \"built\"); return pthread_join(t, 0); }\\n' > p.c; printf 'all: p\\n\\t./p\\np: p.o\\n\\t$(CC) -o $@ $^ -pthread\\n' > Makefile; make -s -j2",
        "built\n",
    ),
    (
        "sqlite3",
        "sqlite3 f.db 'pragma journal_mode=wal; create table t(x); insert into t values (1), (2); select sum(x) from t'",
        "wal\n3\n",
    ),
    (
        "ssh-keygen",
        "ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -lf key.pub | cut -d' ' -f1 && stat -c %a key",
        "256\n600\n",
    ),
    (
        "tmux",
        "tmux new-session -d -x 80 -y 24 'echo inside; tmux wait-for -S said; exec cat' && tmux wait-for said && tmux send-keys 'typed' Enter && until tmux capture-pane -p | grep -qx typed; do :; done; tmux capture-pane -p | grep -m1 inside; tmux kill-server",
        "inside\n",
    ),
    ("vim", "printf 'one\\ntwo\\n' > f; vim -es -u NONE -c '%s/two/three/' -c 'wq' f; cat f", "one\nthree\n"),
    (
        "curl and a server",
        "echo page > page; python3 -u -m http.server 8000 --bind 127.0.0.1 > log 2>&1 & until grep -q Serving log; do :; done; curl -s http://localhost:8000/page; curl -s http://127.0.0.1:8000/page",
        "page\npage\n",
    ),
    (
        "perl",
        "perl -MPOSIX -MFile::Temp=tempfile -e 'my ($h, $n) = tempfile(); print {$h} \"x\"; close $h; print -s $n, \"\\n\"; system(\"echo below\")'",
        "1\nbelow\n",
    ),
    (
        "random numbers and devices",
        "head -c 16 /dev/urandom | wc -c; test -c /dev/null && echo x > /dev/null && echo fine",
        "16\nfine\n",
    ),
    (
        "script, a terminal of its own",
        "script -qec 'tty; stty size >/dev/null && echo sized' /dev/null | tr -d '\\r' | sed 's/[0-9]$/N/'",
        "/dev/pts/N\nsized\n",
    ),
];

#[test]
fn ordinary_programs_work_under_the_default_policy() {
    let mut broken = Vec::new();
    for (name, script, expected) in BASKET {
        let yard = Yard::new().flag("--timeout").flag("60s");
        let outcome = yard.shell(script);
        if (outcome.code, outcome.stdout.as_str()) != (0, *expected) {
            broken.push(format!("{name}: {outcome:?}\n  expected {expected:?}"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn cargo_builds_offline_with_a_toolchain_passed_read_only() {
    let sysroot =
        Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc is on PATH: it built this test");
    let sysroot = String::from_utf8(sysroot.stdout).expect("a path").trim().to_owned();
    let yard = Yard::new().flag("--ro").flag(&*sysroot).flag("--env").flag(format!("PATH={sysroot}/bin:/usr/bin:/bin"));
    let yard = yard.flag("--timeout").flag("120s");
    let script = "cargo init -q --vcs none --name hello hello && cd hello && cargo build --offline -q && target/debug/hello && cargo test --offline -q | grep -c 'test result: ok'";
    let outcome = yard.shell(script);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "Hello, world!\n1\n"), "{outcome:?}");
}

#[test]
fn nothing_of_the_basket_is_left_in_the_workspace() {
    let yard = Yard::new();
    assert_eq!(yard.run(&["python3", "-c", "import sqlite3"]).code, 0);
    let left = std::fs::read_dir(yard.workspace.path()).expect("the workspace").count();
    assert_eq!(left, 0, "a run that writes nothing leaves nothing");
    assert_eq!(yard.run(&["touch", "kept"]).code, 0);
    assert!(yard.workspace.path().join("kept").exists(), "control");
}
