//! Which system calls of the program pass, which are refused, and which the supervisor answers.
//!
//! The lists are whole: a call that stands in none of them does not exist (`ENOSYS`). The kernel
//! enforces the filter, on every thread and every process that comes of the program. `clone3` is
//! left out on purpose: the C library then uses `clone`, whose flags stand in registers, and a
//! filter cannot read memory.

use libc::{c_long, sock_filter};

pub use crate::classic::FilterError;
use crate::classic::{FilterCode, FilterTest};

/// Passes untouched: memory, and what works on descriptors that were handed out.
pub const PASS: &[c_long] = &[
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_brk,
    libc::SYS_mremap,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_mbind,
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    libc::SYS_pkey_mprotect,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_restart_syscall,
    libc::SYS_arch_prctl,
    libc::SYS_get_robust_list,
    libc::SYS_dup,
    libc::SYS_pipe,
    libc::SYS_pipe2,
    libc::SYS_eventfd,
    libc::SYS_eventfd2,
    libc::SYS_signalfd,
    libc::SYS_signalfd4,
    libc::SYS_epoll_create,
    libc::SYS_epoll_create1,
    libc::SYS_inotify_init,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_rm_watch,
    libc::SYS_memfd_create,
    libc::SYS_listen,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getdents,
    libc::SYS_getdents64,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_umask,
    libc::SYS_fstatfs,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
];

/// The supervisor answers.
pub const ASK: &[c_long] = &[
    libc::SYS_bpf,
    // Time.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_times,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_getrusage,
    libc::SYS_sysinfo,
    libc::SYS_alarm,
    // Waiting.
    libc::SYS_futex,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_epoll_ctl,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_pause,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sched_yield,
    // Threads and processes.
    libc::SYS_clone,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigprocmask,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_prctl,
    libc::SYS_seccomp,
    // Who and where the program is.
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getpgrp,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_setpgid,
    libc::SYS_setsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_uname,
    libc::SYS_getcpu,
    libc::SYS_getrandom,
    libc::SYS_personality,
    // Scheduling and limits.
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_getparam,
    libc::SYS_sched_setattr,
    libc::SYS_sched_getattr,
    libc::SYS_setpriority,
    libc::SYS_getpriority,
    libc::SYS_prlimit64,
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    // Files.
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_access,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_truncate,
    libc::SYS_utimensat,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_getcwd,
    libc::SYS_inotify_add_watch,
    // What makes files longer.
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_flock,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup2,
    libc::SYS_dup3,
    libc::SYS_mmap,
];

/// Answered with 0 and not done: what would need privileges, and changes nothing that a simulated
/// run can see.
pub const PRETEND: &[c_long] = &[
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_mlockall,
    libc::SYS_munlockall,
    libc::SYS_ioprio_set,
    libc::SYS_ioprio_get,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_sync_file_range,
];

/// Refused, and with what.
pub const DENY: &[(c_long, i32)] = &[
    (libc::SYS_mount, libc::EPERM),
    (libc::SYS_umount2, libc::EPERM),
    (libc::SYS_pivot_root, libc::EPERM),
    (libc::SYS_open_tree, libc::EPERM),
    (libc::SYS_move_mount, libc::EPERM),
    (libc::SYS_fsopen, libc::EPERM),
    (libc::SYS_fsconfig, libc::EPERM),
    (libc::SYS_fsmount, libc::EPERM),
    (libc::SYS_fspick, libc::EPERM),
    (libc::SYS_mount_setattr, libc::EPERM),
    (libc::SYS_ptrace, libc::EPERM),
    (libc::SYS_process_vm_readv, libc::EPERM),
    (libc::SYS_process_vm_writev, libc::EPERM),
    (libc::SYS_process_madvise, libc::EPERM),
    (libc::SYS_kcmp, libc::EPERM),
    (libc::SYS_pidfd_getfd, libc::EPERM),
    (libc::SYS_init_module, libc::EPERM),
    (libc::SYS_finit_module, libc::EPERM),
    (libc::SYS_delete_module, libc::EPERM),
    (libc::SYS_kexec_load, libc::EPERM),
    (libc::SYS_kexec_file_load, libc::EPERM),
    (libc::SYS_reboot, libc::EPERM),
    (libc::SYS_settimeofday, libc::EPERM),
    (libc::SYS_clock_settime, libc::EPERM),
    (libc::SYS_clock_adjtime, libc::EPERM),
    (libc::SYS_adjtimex, libc::EPERM),
    (libc::SYS_setns, libc::EPERM),
    (libc::SYS_unshare, libc::EPERM),
    (libc::SYS_chroot, libc::EPERM),
    (libc::SYS_sethostname, libc::EPERM),
    (libc::SYS_setdomainname, libc::EPERM),
    (libc::SYS_swapon, libc::EPERM),
    (libc::SYS_swapoff, libc::EPERM),
    (libc::SYS_acct, libc::EPERM),
    (libc::SYS_quotactl, libc::EPERM),
    (libc::SYS_iopl, libc::EPERM),
    (libc::SYS_ioperm, libc::EPERM),
    (libc::SYS_modify_ldt, libc::EPERM),
    (libc::SYS_syslog, libc::EPERM),
    (libc::SYS_vhangup, libc::EPERM),
    (libc::SYS_userfaultfd, libc::EPERM),
    (libc::SYS_fanotify_init, libc::EPERM),
    (libc::SYS_open_by_handle_at, libc::EPERM),
    (libc::SYS_mknod, libc::EPERM),
    (libc::SYS_mknodat, libc::EPERM),
    (libc::SYS_link, libc::EPERM),
    (libc::SYS_linkat, libc::EPERM),
    (libc::SYS_move_pages, libc::EPERM),
    (libc::SYS_migrate_pages, libc::EPERM),
    (libc::SYS_rt_sigqueueinfo, libc::EPERM),
    (libc::SYS_rt_tgsigqueueinfo, libc::EPERM),
    (libc::SYS_setxattr, libc::EACCES),
    (libc::SYS_lsetxattr, libc::EACCES),
    (libc::SYS_fsetxattr, libc::EACCES),
    (libc::SYS_removexattr, libc::EACCES),
    (libc::SYS_lremovexattr, libc::EACCES),
    (libc::SYS_fremovexattr, libc::EACCES),
    (libc::SYS_utime, libc::EACCES),
    (libc::SYS_utimes, libc::EACCES),
    (libc::SYS_futimesat, libc::EACCES),
    (libc::SYS_getxattr, libc::EOPNOTSUPP),
    (libc::SYS_lgetxattr, libc::EOPNOTSUPP),
    (libc::SYS_fgetxattr, libc::EOPNOTSUPP),
    (libc::SYS_listxattr, libc::EOPNOTSUPP),
    (libc::SYS_llistxattr, libc::EOPNOTSUPP),
    (libc::SYS_flistxattr, libc::EOPNOTSUPP),
    (libc::SYS_name_to_handle_at, libc::EOPNOTSUPP),
    // What they move is not known before, into what, and whether they would wait. As of a file
    // system that has no such call: programs read and write instead.
    (libc::SYS_sendfile, libc::EINVAL),
    (libc::SYS_splice, libc::EINVAL),
    (libc::SYS_tee, libc::EINVAL),
    (libc::SYS_copy_file_range, libc::EINVAL),
    // A simulated task has a time, but no instructions and no cache misses. Numbers made from the
    // time would look measured and steer a scheduler (`scx_cosmos -e`) by nothing.
    (libc::SYS_perf_event_open, libc::ENOENT),
];

/// Requests of `ioctl()` that pass; every other is `ENOTTY`. Linux 6.18,
/// include/uapi/asm-generic/ioctls.h.
pub const IOCTLS: &[u32] = &[
    0x5401, // TCGETS
    0x5413, // TIOCGWINSZ
    0x541b, // FIONREAD
    0x5421, // FIONBIO
    0x5450, // FIONCLEX
    0x5451, // FIOCLEX
];

/// Offsets of `struct seccomp_data`, of whose arguments the low half is looked at.
const NR: u32 = 0;
const ARCH: u32 = 4;
const fn arg(n: u32) -> u32 {
    16 + 8 * n
}

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
/// Flags of `clone()` that are refused: `CLONE_NEW*`; `CLONE_PTRACE` and `CLONE_UNTRACED`; a child
/// of another parent than its maker (`CLONE_PARENT`), which would be runslice for the first
/// process; `CLONE_PIDFD`, since pidfds do not exist here.
const CLONE_DENIED: u32 = 0x7e82_2000 | 0x80 | 0x8000 | 0x1000;

const fn refuse(errno: i32) -> u32 {
    0x0005_0000 | errno.cast_unsigned()
}

/// Commands of `fcntl()` that are refused: with an owner and a number of a signal the kernel would
/// send that signal to any process of the user's, whatever `kill()` is told; a lease holds up who
/// opens a file of the host. The numbers that libc has no names for: Linux 6.18,
/// include/uapi/asm-generic/fcntl.h.
pub const FCNTL_DENIED: &[u32] = &[
    8,  // F_SETOWN
    10, // F_SETSIG
    15, // F_SETOWN_EX
    libc::F_SETLEASE.cast_unsigned(),
    libc::F_NOTIFY.cast_unsigned(),
];

/// Commands of `fcntl()` that lock and do not wait: the supervisor looks at whose the file is.
pub const FCNTL_LOCKS: &[u32] = &[libc::F_SETLK.cast_unsigned(), libc::F_OFD_SETLK.cast_unsigned()];

/// Commands of `fcntl()` that wait inside of the kernel for a lock: no lock is to be had.
pub const FCNTL_WAITS: &[u32] =
    &[libc::F_SETLKW.cast_unsigned(), libc::F_OFD_SETLKW.cast_unsigned()];

/// Options of sockets (`SOL_SOCKET`) that are refused: with them a call waits inside of the kernel
/// although `poll()` says that it would not.
pub const SOCKET_DENIED: &[u32] = &[
    libc::SO_RCVLOWAT.cast_unsigned(),
    libc::SO_LINGER.cast_unsigned(),
    libc::SO_PEEK_OFF.cast_unsigned(),
];

/// Advice of `madvise()` that is refused: pages that a computer would lose for ever
/// (`MADV_HWPOISON`, `MADV_SOFT_OFFLINE`), which only root may ask for.
pub const MADVISE_DENIED: &[u32] = &[100, 101];

/// The filter; with `net` the program may have sockets of the internet.
///
/// # Errors
/// If there is no such program: see [`FilterError`].
pub fn filter(net: bool) -> Result<Vec<sock_filter>, FilterError> {
    let mut code = FilterCode::default();
    code.load(ARCH);
    code.answer_unless(AUDIT_ARCH_X86_64, refuse(libc::ENOSYS));
    code.load(NR);
    // The most frequent first: a list is walked from its beginning.
    let each = PASS.iter().map(|nr| (*nr, ALLOW));
    let each = each.chain(ASK.iter().filter(|nr| !is_special(**nr)).map(|nr| (*nr, NOTIFY)));
    let each = each.chain(PRETEND.iter().map(|nr| (*nr, refuse(0))));
    for (nr, action) in each.chain(DENY.iter().map(|(nr, errno)| (*nr, refuse(*errno)))) {
        code.answer_when(is(nr)?, action)?;
    }
    code.when(is(libc::SYS_clone)?, clone)?;
    code.when(is(libc::SYS_mmap)?, |code| {
        // Memory without a file is the program's own affair.
        const ANONYMOUS: u32 = 0x20;
        code.load(arg(3));
        code.answer_when(FilterTest::HasAny(ANONYMOUS), ALLOW)?;
        code.answer(NOTIFY);
        Ok(())
    })?;
    let inet = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6].map(i32::cast_unsigned);
    let families = if net { &inet[..] } else { &inet[..1] };
    code.when(is(libc::SYS_fcntl)?, fcntl)?;
    code.when(is(libc::SYS_membarrier)?, membarrier)?;
    code.when(is(libc::SYS_setsockopt)?, |code| {
        code.load(arg(1));
        code.when(FilterTest::Equal(libc::SOL_SOCKET.cast_unsigned()), |code| {
            code.load(arg(2));
            answer_each(code, SOCKET_DENIED, refuse(libc::ENOPROTOOPT))
        })?;
        code.answer(ALLOW);
        Ok(())
    })?;
    forbid(&mut code, libc::SYS_madvise, (2, MADVISE_DENIED))?;
    choose(&mut code, libc::SYS_socket, (0, families), libc::EACCES)?;
    choose(&mut code, libc::SYS_socketpair, (0, &inet[..1]), libc::EACCES)?;
    choose(&mut code, libc::SYS_ioctl, (1, IOCTLS), libc::ENOTTY)?;
    code.answer(refuse(libc::ENOSYS));
    code.finish()
}

/// The call of that number.
fn is(nr: c_long) -> Result<FilterTest, FilterError> {
    u32::try_from(nr).map(FilterTest::Equal).map_err(|_| FilterError::Number(nr))
}

/// Calls whose arguments the filter looks at.
fn is_special(nr: c_long) -> bool {
    nr == libc::SYS_clone || nr == libc::SYS_mmap
}

/// `clone()`, whose flags stand in a register. Memory is shared by threads, and by a child while
/// its maker waits for it (`vfork()`); any other child that shares it would be a thread that no
/// process shows.
fn clone(code: &mut FilterCode) -> Result<(), FilterError> {
    let [vm, thread, vfork] =
        [libc::CLONE_VM, libc::CLONE_THREAD, libc::CLONE_VFORK].map(i32::cast_unsigned);
    let denied = refuse(libc::EPERM);
    code.load(arg(0));
    code.answer_when(FilterTest::HasAny(CLONE_DENIED), denied)?;
    code.when(FilterTest::HasAny(thread), |code| {
        code.answer_when(FilterTest::HasAny(vfork), denied)?;
        // The supervisor finds a descriptor by its process: a thread with a table of its own would
        // be asked about one file and use another.
        code.answer_when(FilterTest::HasAny(libc::CLONE_FILES.cast_unsigned()), NOTIFY)?;
        code.answer(denied);
        Ok(())
    })?;
    code.answer_when(FilterTest::HasAny(vfork), NOTIFY)?;
    code.answer_when(FilterTest::HasAny(vm), denied)?;
    code.answer(NOTIFY);
    Ok(())
}

/// `fcntl()`, by its command.
fn fcntl(code: &mut FilterCode) -> Result<(), FilterError> {
    code.load(arg(1));
    answer_each(code, FCNTL_DENIED, refuse(libc::EPERM))?;
    answer_each(code, FCNTL_WAITS, refuse(libc::ENOLCK))?;
    answer_each(code, FCNTL_LOCKS, NOTIFY)?;
    code.answer(ALLOW);
    Ok(())
}

/// `membarrier()`. A kernel answers the global one after a grace period, in which every CPU has
/// passed a barrier. Here it has happened already: one thread of the program runs at a time, and
/// from one to the next the kernel switches, which is a barrier for both. Its other commands take
/// no time.
fn membarrier(code: &mut FilterCode) -> Result<(), FilterError> {
    code.load(arg(0));
    code.when(FilterTest::Equal(libc::MEMBARRIER_CMD_GLOBAL.cast_unsigned()), |code| {
        // With flags it is an error, which the kernel knows.
        code.load(arg(1));
        code.answer_when(FilterTest::Equal(0), refuse(0))?;
        code.answer(ALLOW);
        Ok(())
    })?;
    code.answer(ALLOW);
    Ok(())
}

/// Ends with that action if what is loaded is one of these values.
fn answer_each(code: &mut FilterCode, values: &[u32], action: u32) -> Result<(), FilterError> {
    values.iter().try_for_each(|value| code.answer_when(FilterTest::Equal(*value), action))
}

/// Allows a call whose argument is one of these values, and refuses it otherwise.
fn choose(
    code: &mut FilterCode,
    nr: c_long,
    (n, values): (u32, &[u32]),
    errno: i32,
) -> Result<(), FilterError> {
    code.when(is(nr)?, |code| {
        code.load(arg(n));
        answer_each(code, values, ALLOW)?;
        code.answer(refuse(errno));
        Ok(())
    })
}

/// Refuses a call whose argument is one of these values with `EPERM`, and allows it otherwise.
fn forbid(
    code: &mut FilterCode,
    nr: c_long,
    (n, values): (u32, &[u32]),
) -> Result<(), FilterError> {
    code.when(is(nr)?, |code| {
        code.load(arg(n));
        answer_each(code, values, refuse(libc::EPERM))?;
        code.answer(ALLOW);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What the filter says, by an interpreter of the few instructions that it has.
    fn run(code: &[sock_filter], arch: u32, nr: c_long, args: [u64; 6]) -> u32 {
        let mut data = vec![u32::try_from(nr).unwrap(), arch, 0, 0];
        for arg in args {
            data.extend([arg as u32, (arg >> 32) as u32]);
        }
        let (mut at, mut value) = (0, 0);
        loop {
            let step = code[at];
            at += 1;
            match u32::from(step.code) {
                0x20 => value = data[step.k as usize / 4],
                0x06 => return step.k,
                0x15 if value != step.k => at += usize::from(step.jf),
                0x45 if value & step.k == 0 => at += usize::from(step.jf),
                0x15 | 0x45 => at += usize::from(step.jt),
                other => panic!("code {other:#x}"),
            }
        }
    }

    fn says(nr: c_long, args: [u64; 6]) -> u32 {
        run(&filter(false).unwrap(), AUDIT_ARCH_X86_64, nr, args)
    }

    #[test]
    fn what_could_leave_the_process_is_refused() {
        for nr in [
            libc::SYS_mount,
            libc::SYS_ptrace,
            libc::SYS_process_vm_writev,
            libc::SYS_finit_module,
            libc::SYS_kexec_load,
            libc::SYS_reboot,
            libc::SYS_clock_settime,
            libc::SYS_setns,
            libc::SYS_unshare,
            libc::SYS_chroot,
            libc::SYS_link,
        ] {
            assert_eq!(says(nr, [0; 6]), refuse(libc::EPERM), "{nr}");
        }
        for nr in [
            libc::SYS_io_uring_setup,
            libc::SYS_clone3,
            libc::SYS_rseq,
            libc::SYS_timerfd_create,
            libc::SYS_timer_create,
            libc::SYS_setitimer,
            libc::SYS_futex_waitv,
            libc::SYS_pidfd_open,
            libc::SYS_keyctl,
            9999,
        ] {
            assert_eq!(says(nr, [0; 6]), refuse(libc::ENOSYS), "{nr}");
        }
        let i386 = run(&filter(false).unwrap(), 0x4000_0003, libc::SYS_read, [0; 6]);
        assert_eq!(i386, refuse(libc::ENOSYS));
        assert_eq!(says(0x4000_0000 | libc::SYS_write, [0; 6]), refuse(libc::ENOSYS));
        assert_eq!(says(libc::SYS_perf_event_open, [0; 6]), refuse(libc::ENOENT));
    }

    #[test]
    fn arguments_decide_where_they_matter() {
        let first = |value| [value, 0, 0, 0, 0, 0];
        assert_eq!(says(libc::SYS_clone, first(0x3d_0f00)), NOTIFY);
        for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_PTRACE, 0x80] {
            let flags = u64::from(flag.cast_unsigned()) | 17;
            assert_eq!(says(libc::SYS_clone, first(flags)), refuse(libc::EPERM), "{flag:#x}");
        }
        for flags in [
            libc::CLONE_VM,
            libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_FS | libc::CLONE_SIGHAND,
            libc::CLONE_PARENT,
            libc::CLONE_PARENT | libc::CLONE_VM | libc::CLONE_VFORK,
            libc::CLONE_PIDFD,
            libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_VFORK,
            libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND,
        ] {
            let flags = u64::from((flags | libc::SIGCHLD).cast_unsigned());
            assert_eq!(says(libc::SYS_clone, first(flags)), refuse(libc::EPERM), "{flags:#x}");
        }
        for flags in [0, libc::CLONE_FILES, libc::CLONE_VM | libc::CLONE_VFORK] {
            let flags = u64::from((flags | libc::SIGCHLD).cast_unsigned());
            assert_eq!(says(libc::SYS_clone, first(flags)), NOTIFY, "{flags:#x}");
        }
        assert_eq!(says(libc::SYS_socketpair, first(1)), ALLOW);
        assert_eq!(says(libc::SYS_socketpair, first(30)), refuse(libc::EACCES));
        assert_eq!(says(libc::SYS_mmap, [0, 4096, 3, 0x22, u64::MAX, 0]), ALLOW);
        assert_eq!(says(libc::SYS_mmap, [0, 4096, 3, 1, 5, 0]), NOTIFY);
        assert_eq!(says(libc::SYS_socket, first(1)), ALLOW);
        for family in [2, 10, 16, 17] {
            assert_eq!(says(libc::SYS_socket, first(family)), refuse(libc::EACCES), "{family}");
        }
        let open = run(&filter(true).unwrap(), AUDIT_ARCH_X86_64, libc::SYS_socket, first(2));
        assert_eq!(open, ALLOW);
        let second = |value| [1, value, 0, 0, 0, 0];
        for command in [8, 10, 15, 1024, 1026] {
            let said = says(libc::SYS_fcntl, second(command));
            assert_eq!(said, refuse(libc::EPERM), "fcntl {command}");
        }
        for command in [libc::F_DUPFD_CLOEXEC, libc::F_SETFD, libc::F_SETFL, libc::F_ADD_SEALS] {
            let command = u64::from(command.cast_unsigned());
            assert_eq!(says(libc::SYS_fcntl, second(command)), ALLOW, "fcntl {command}");
        }
        let third = |value| [0, 4096, value, 0, 0, 0];
        assert_eq!(says(libc::SYS_madvise, third(4)), ALLOW);
        for advice in [100, 101] {
            let said = says(libc::SYS_madvise, third(advice));
            assert_eq!(said, refuse(libc::EPERM), "madvise {advice}");
        }
        assert_eq!(says(libc::SYS_membarrier, first(1)), refuse(0), "no grace period");
        for command in [0, 2, 4, 8, 16] {
            assert_eq!(says(libc::SYS_membarrier, first(command)), ALLOW, "command {command}");
        }
        assert_eq!(says(libc::SYS_membarrier, second(1)), ALLOW, "with flags");
        assert_eq!(says(libc::SYS_ioctl, [1, 0x5421, 0, 0, 0, 0]), ALLOW);
        assert_eq!(says(libc::SYS_ioctl, [1, 0x5412, 0, 0, 0, 0]), refuse(libc::ENOTTY));
    }

    #[test]
    fn each_call_stands_in_one_list() {
        let mut seen = BTreeSet::new();
        let denied = DENY.iter().map(|(nr, _)| nr);
        for nr in PASS.iter().chain(ASK).chain(PRETEND).chain(denied) {
            assert!(seen.insert(*nr), "{nr} stands in two lists");
        }
        assert!(filter(true).is_ok());
        for nr in PASS {
            assert_eq!(says(*nr, [0; 6]), ALLOW, "{nr}");
        }
        for nr in ASK {
            assert_eq!(says(*nr, [0; 6]), NOTIFY, "{nr}");
        }
        for nr in PRETEND {
            assert_eq!(says(*nr, [0; 6]), refuse(0), "{nr}");
        }
        for (nr, errno) in DENY {
            assert_eq!(says(*nr, [0; 6]), refuse(*errno), "{nr}");
        }
        // Whatever else a kernel has, or will have, does not exist.
        let looked_at = [
            libc::SYS_socket,
            libc::SYS_socketpair,
            libc::SYS_ioctl,
            libc::SYS_fcntl,
            libc::SYS_madvise,
            libc::SYS_membarrier,
            libc::SYS_setsockopt,
        ];
        for nr in (0..1024).filter(|nr| !seen.contains(nr) && !looked_at.contains(nr)) {
            assert_eq!(says(nr, [0; 6]), refuse(libc::ENOSYS), "{nr}");
        }
    }
}
