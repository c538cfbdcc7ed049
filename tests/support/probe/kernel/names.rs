//! System calls by name.

macro_rules! names {
    ($($name:ident $number:ident,)*) => {
        /// The number of a call, if the probe knows its name.
        pub fn number(name: &str) -> Option<i64> {
            Some(match name {
                $(stringify!($name) => libc::$number,)*
                // Too new for the crate; the same on every architecture.
                "statmount" => 457,
                "listmount" => 458,
                "lsm_get_self_attr" => 459,
                "lsm_set_self_attr" => 460,
                "lsm_list_modules" => 461,
                _ => return None,
            })
        }
    };
}

names! {
    acct SYS_acct, add_key SYS_add_key, adjtimex SYS_adjtimex, bpf SYS_bpf, chroot SYS_chroot,
    clock_adjtime SYS_clock_adjtime, clock_settime SYS_clock_settime, delete_module SYS_delete_module,
    fanotify_init SYS_fanotify_init, fcntl SYS_fcntl, finit_module SYS_finit_module, fsconfig SYS_fsconfig,
    fsmount SYS_fsmount, fsopen SYS_fsopen, fspick SYS_fspick, get_mempolicy SYS_get_mempolicy,
    init_module SYS_init_module, io_uring_enter SYS_io_uring_enter, io_uring_register SYS_io_uring_register,
    io_uring_setup SYS_io_uring_setup, ioctl SYS_ioctl, kcmp SYS_kcmp, kexec_file_load SYS_kexec_file_load,
    kexec_load SYS_kexec_load, keyctl SYS_keyctl, kill SYS_kill, mbind SYS_mbind,
    memfd_secret SYS_memfd_secret, migrate_pages SYS_migrate_pages, modify_ldt SYS_modify_ldt,
    mount SYS_mount, mount_setattr SYS_mount_setattr, move_mount SYS_move_mount, move_pages SYS_move_pages,
    mq_open SYS_mq_open, mq_unlink SYS_mq_unlink, name_to_handle_at SYS_name_to_handle_at,
    open_by_handle_at SYS_open_by_handle_at, open_tree SYS_open_tree, perf_event_open SYS_perf_event_open,
    personality SYS_personality, pidfd_getfd SYS_pidfd_getfd, pidfd_open SYS_pidfd_open,
    pivot_root SYS_pivot_root, prctl SYS_prctl, process_madvise SYS_process_madvise,
    process_mrelease SYS_process_mrelease, ptrace SYS_ptrace, quotactl SYS_quotactl,
    quotactl_fd SYS_quotactl_fd, reboot SYS_reboot, request_key SYS_request_key,
    rt_sigqueueinfo SYS_rt_sigqueueinfo, seccomp SYS_seccomp, set_mempolicy SYS_set_mempolicy,
    set_mempolicy_home_node SYS_set_mempolicy_home_node, setdomainname SYS_setdomainname,
    sethostname SYS_sethostname, setns SYS_setns, settimeofday SYS_settimeofday, shmget SYS_shmget,
    socket SYS_socket, socketpair SYS_socketpair, swapoff SYS_swapoff, swapon SYS_swapon, syslog SYS_syslog,
    timer_create SYS_timer_create, umount2 SYS_umount2, unshare SYS_unshare, userfaultfd SYS_userfaultfd,
    vhangup SYS_vhangup,
}
