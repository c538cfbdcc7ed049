//! The table: every known call is named once here or in `arguments`, with a reason.
//!
//! Allowed is what ordinary programs use and what acts only on the caller, on its own files or inside its
//! own namespaces; permissions, Landlock and limits still judge each call. A call that appears nowhere is
//! refused (a test holds that none does). Rules that look at arguments are in `arguments`.

use nix::errno::Errno::{self, EPERM};

use super::rule::{Rule, When, allow, refuse};
use crate::policy::SyscallGroup::{Debug, IoUring, Profile};

/// Older than any program that could need it, or not built into today's kernels: as they would answer.
const ENOSYS: Errno = Errno::ENOSYS;

pub(super) static RULES: &[Rule] = &[
    allow(
        "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek close close_range \
         dup dup2 dup3 pipe pipe2 sendfile splice tee vmsplice copy_file_range readahead fadvise64 flock \
         fsync fdatasync sync syncfs sync_file_range fallocate ftruncate io_setup io_destroy io_getevents \
         io_pgetevents io_submit io_cancel",
        "reading and writing what is already open",
    ),
    allow(
        "access faccessat faccessat2 stat fstat lstat newfstatat statx statfs fstatfs readlink readlinkat \
         getdents getdents64 getcwd chdir fchdir umask truncate rename renameat renameat2 mkdir mkdirat rmdir \
         link linkat unlink unlinkat symlink symlinkat chown fchown lchown fchownat utime utimes futimesat \
         utimensat setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr \
         removexattr lremovexattr fremovexattr inotify_init inotify_init1 inotify_add_watch inotify_rm_watch",
        "files by name: mounts, permissions and Landlock decide which",
    ),
    allow(
        "mmap mprotect munmap mremap brk madvise mincore msync mlock mlock2 munlock mlockall munlockall \
         remap_file_pages membarrier pkey_alloc pkey_free pkey_mprotect",
        "its own memory, executable memory for JIT compilers included; locked memory is bounded by a limit",
    ),
    allow(
        "fork vfork execve execveat exit exit_group wait4 waitid set_tid_address set_robust_list \
         get_robust_list rseq futex futex_waitv arch_prctl restart_syscall sched_yield pidfd_open \
         pidfd_send_signal",
        "processes and threads; the cell bounds their number and the PID namespace what they see",
    ),
    allow(
        "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo \
         rt_sigsuspend rt_tgsigqueueinfo sigaltstack kill tkill tgkill pause signalfd signalfd4",
        "signals, which do not leave the PID namespace",
    ),
    allow(
        "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 \
         eventfd eventfd2 timerfd_create timerfd_settime timerfd_gettime nanosleep clock_nanosleep getitimer \
         setitimer alarm timer_create timer_settime timer_gettime timer_getoverrun timer_delete",
        "waiting",
    ),
    allow(
        "time gettimeofday clock_gettime clock_getres times getrusage sysinfo uname getcpu getrandom getpid \
         gettid getppid getpgid getpgrp getsid getpriority getrlimit getuid geteuid getgid getegid getresuid \
         getresgid getgroups capget sched_getaffinity sched_getparam sched_getscheduler sched_getattr \
         sched_get_priority_max sched_get_priority_min sched_rr_get_interval ioprio_get",
        "asking about itself and the clock",
    ),
    allow(
        "setpgid setsid setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset \
         setpriority setrlimit sched_setaffinity sched_setparam sched_setscheduler sched_setattr \
         ioprio_set",
        "changing itself: without capabilities, and with one id mapped, the kernel lets nothing rise",
    ),
    allow(
        "connect accept accept4 bind listen shutdown getsockname getpeername setsockopt getsockopt sendto \
         sendmsg sendmmsg recvfrom recvmsg recvmmsg",
        "using sockets; which kinds exist is decided when one is made",
    ),
    allow(
        "shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open \
         mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr",
        "System V and POSIX IPC inside the cell's own IPC namespace",
    ),
    allow(
        "landlock_create_ruleset landlock_add_rule landlock_restrict_self",
        "a program may wall itself in further; rulesets only ever narrow",
    ),
    allow("memfd_create", "anonymous files; a program may execute one, as it may any file it wrote"),
    allow(
        "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd",
        "group `debug`: debuggers and tracers, within one process's own PID namespace",
    )
    .when(When::Group(Debug)),
    allow("perf_event_open", "group `profile`: hardware and software counters of its own processes")
        .when(When::Group(Profile)),
    allow(
        "io_uring_setup io_uring_enter io_uring_register",
        "group `io_uring`: what is done through a ring passes no filter, so the rules on sockets and file modes \
         no longer bind; namespaces, mounts and Landlock still do",
    )
    .when(When::Group(IoUring)),
    refuse(
        EPERM,
        "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise process_mrelease",
        "reaching into another process; the group `debug` allows what debuggers need",
    ),
    refuse(
        EPERM,
        "perf_event_open",
        "a large, often broken kernel surface that also measures others; the group `profile` allows it",
    ),
    refuse(
        ENOSYS,
        "io_uring_setup io_uring_enter io_uring_register",
        "what is done through a ring passes no filter; programs fall back to epoll, and the group `io_uring` allows it",
    ),
    refuse(
        ENOSYS,
        "clone3",
        "its flags lie behind a pointer, where namespace flags cannot be seen; C libraries fall back to clone",
    ),
    refuse(
        ENOSYS,
        "openat2",
        "its mode lies behind a pointer, where setuid bits cannot be seen; programs fall back to openat",
    ),
    refuse(EPERM, "setns", "joining a namespace is for the launcher"),
    refuse(
        EPERM,
        "mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick open_tree move_mount mount_setattr",
        "the mounts are a wall; nothing inside may move one",
    ),
    refuse(
        EPERM,
        "open_by_handle_at name_to_handle_at",
        "opens files by number, past every directory that leads to them",
    ),
    refuse(EPERM, "fanotify_init fanotify_mark", "watches whole filesystems, beyond the roots"),
    refuse(EPERM, "bpf userfaultfd", "kernel surface that exploits are built on and programs do without"),
    refuse(EPERM, "add_key request_key keyctl", "keyrings belong to the host's user; no namespace divides them"),
    refuse(
        EPERM,
        "init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl \
         quotactl_fd syslog vhangup sethostname setdomainname settimeofday clock_settime adjtimex \
         clock_adjtime iopl ioperm",
        "running the machine is not the agent's; adjtimex is refused whole, its read mode lies behind a pointer",
    ),
    refuse(EPERM, "memfd_secret", "memory that can be neither swapped nor seen, outside what a limit counts"),
    refuse(EPERM, "modify_ldt", "segment tables: only 16-bit emulators use them, exploits do too"),
    refuse(
        ENOSYS,
        "mbind set_mempolicy get_mempolicy migrate_pages move_pages",
        "placing memory on NUMA nodes: libraries take ENOSYS for a machine without nodes and go on",
    ),
    refuse(
        ENOSYS,
        "_sysctl uselib ustat sysfs create_module get_kernel_syms query_module nfsservctl getpmsg putpmsg \
         afs_syscall tuxcall security vserver epoll_ctl_old epoll_wait_old set_thread_area get_thread_area \
         lookup_dcookie",
        "relics",
    ),
];
