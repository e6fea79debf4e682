//! Which function answers which call.

use crate::state::{CallContext, Errno, Reply};
use crate::{bpf, descriptors, files, growth, locks, processes, scheduling, sockets, time};

/// Answers a call.
///
/// # Errors
/// What the program gets as `errno`.
pub fn dispatch(cx: &mut CallContext<'_>) -> Result<Reply, Errno> {
    match cx.call.nr {
        libc::SYS_bpf => bpf::call(cx),
        libc::SYS_clock_gettime => time::clock_gettime(cx),
        libc::SYS_clock_getres => time::clock_getres(cx),
        libc::SYS_gettimeofday => time::gettimeofday(cx),
        libc::SYS_time => time::time(cx),
        libc::SYS_times => time::times(cx),
        libc::SYS_nanosleep => time::nanosleep(cx),
        libc::SYS_clock_nanosleep => time::clock_nanosleep(cx),
        libc::SYS_getrusage => time::getrusage(cx),
        libc::SYS_sysinfo => time::sysinfo(cx),
        libc::SYS_alarm => alarm(cx),
        libc::SYS_futex => time::futex(cx),
        libc::SYS_sched_yield => Ok(Reply::Yield),
        libc::SYS_clone | libc::SYS_fork | libc::SYS_vfork => Ok(Reply::Clone),
        libc::SYS_execve | libc::SYS_execveat => processes::exec(cx),
        libc::SYS_exit => Ok(Reply::Exit),
        libc::SYS_exit_group => Ok(Reply::ExitGroup),
        // Noticed, so that a new thread is seen before it does anything.
        libc::SYS_set_robust_list | libc::SYS_sigaltstack | libc::SYS_rt_sigprocmask => {
            Ok(Reply::Continue)
        }
        nr => match waits(cx, nr) {
            Some(reply) => reply,
            None => match program(cx, nr) {
                Some(reply) => reply,
                None => named(cx, nr),
            },
        },
    }
}

/// `alarm()` cannot fail; no signal will come.
fn alarm(cx: &mut CallContext<'_>) -> Result<Reply, Errno> {
    cx.state.note("alarm() is not simulated; its signal will not come".into());
    Ok(Reply::Value(0))
}

/// Calls that may wait, and calls on descriptors.
fn waits(cx: &mut CallContext<'_>, nr: i64) -> Option<Result<Reply, Errno>> {
    Some(match nr {
        libc::SYS_poll | libc::SYS_ppoll => descriptors::poll(cx),
        libc::SYS_select | libc::SYS_pselect6 => descriptors::select(cx),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
            descriptors::epoll_wait(cx)
        }
        libc::SYS_epoll_ctl => descriptors::epoll_ctl(cx),
        libc::SYS_read | libc::SYS_readv => descriptors::read(cx),
        libc::SYS_write | libc::SYS_writev => descriptors::write(cx),
        libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_accept
        | libc::SYS_accept4 => descriptors::receive(cx),
        libc::SYS_sendto | libc::SYS_sendmsg | libc::SYS_sendmmsg => sockets::send(cx),
        libc::SYS_bind => sockets::bind(cx),
        libc::SYS_connect => sockets::connect(cx),
        libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => growth::write_at(cx),
        libc::SYS_ftruncate => growth::truncate(cx),
        libc::SYS_fallocate => growth::allocate(cx),
        libc::SYS_flock => locks::flock(cx),
        libc::SYS_fcntl => locks::range(cx),
        libc::SYS_close => descriptors::close(cx),
        libc::SYS_close_range => descriptors::close_range(cx),
        libc::SYS_dup2 | libc::SYS_dup3 => descriptors::dup2(cx),
        libc::SYS_mmap => descriptors::mmap(cx),
        libc::SYS_wait4 | libc::SYS_waitid => processes::wait_child(cx),
        libc::SYS_pause | libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => {
            processes::wait_signal(cx)
        }
        _ => return None,
    })
}

/// Calls about the program and its threads.
fn program(cx: &mut CallContext<'_>, nr: i64) -> Option<Result<Reply, Errno>> {
    Some(match nr {
        libc::SYS_getpid
        | libc::SYS_gettid
        | libc::SYS_getppid
        | libc::SYS_getpgrp
        | libc::SYS_getpgid
        | libc::SYS_getsid
        | libc::SYS_setpgid
        | libc::SYS_setsid
        | libc::SYS_getuid
        | libc::SYS_geteuid
        | libc::SYS_getgid
        | libc::SYS_getegid
        | libc::SYS_getgroups
        | libc::SYS_capset => processes::identity(cx),
        libc::SYS_getresuid | libc::SYS_getresgid => processes::getres(cx),
        libc::SYS_capget => processes::capget(cx),
        libc::SYS_uname => processes::uname(cx),
        libc::SYS_getrandom => processes::getrandom(cx),
        libc::SYS_set_tid_address => processes::set_tid_address(cx),
        libc::SYS_prctl => processes::prctl(cx),
        libc::SYS_seccomp => processes::seccomp(cx),
        libc::SYS_personality => processes::personality(cx),
        libc::SYS_kill | libc::SYS_tkill | libc::SYS_tgkill => processes::kill(cx),
        libc::SYS_getcpu => scheduling::getcpu(cx),
        libc::SYS_sched_setaffinity => scheduling::set_affinity(cx),
        libc::SYS_sched_getaffinity => scheduling::get_affinity(cx),
        libc::SYS_sched_setscheduler | libc::SYS_sched_setparam => scheduling::set_scheduler(cx),
        libc::SYS_sched_getscheduler | libc::SYS_sched_getparam => scheduling::get_scheduler(cx),
        libc::SYS_sched_setattr => scheduling::set_attr(cx),
        libc::SYS_sched_getattr => scheduling::get_attr(cx),
        libc::SYS_setpriority | libc::SYS_getpriority => scheduling::priority(cx),
        libc::SYS_prlimit64 | libc::SYS_getrlimit | libc::SYS_setrlimit => scheduling::limits(cx),
        _ => return None,
    })
}

/// Calls that name files.
fn named(cx: &mut CallContext<'_>, nr: i64) -> Result<Reply, Errno> {
    match nr {
        libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_creat => files::open(cx),
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_fstat | libc::SYS_newfstatat => {
            files::stat(cx)
        }
        libc::SYS_statx => files::statx(cx),
        libc::SYS_statfs => files::statfs(cx),
        libc::SYS_access | libc::SYS_faccessat | libc::SYS_faccessat2 => files::access(cx),
        libc::SYS_readlink | libc::SYS_readlinkat => files::readlink(cx),
        libc::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 => files::rename(cx),
        libc::SYS_symlink | libc::SYS_symlinkat => files::symlink(cx),
        libc::SYS_fchmod | libc::SYS_fchown => files::change_open(cx),
        libc::SYS_chdir | libc::SYS_fchdir => files::chdir(cx),
        libc::SYS_getcwd => files::getcwd(cx),
        libc::SYS_inotify_add_watch => files::inotify_add_watch(cx),
        libc::SYS_mkdir
        | libc::SYS_mkdirat
        | libc::SYS_rmdir
        | libc::SYS_unlink
        | libc::SYS_unlinkat
        | libc::SYS_chmod
        | libc::SYS_fchmodat
        | libc::SYS_chown
        | libc::SYS_lchown
        | libc::SYS_fchownat
        | libc::SYS_truncate
        | libc::SYS_utimensat => files::change(cx),
        _ => Err(Errno(libc::ENOSYS)),
    }
}
