//! What played tasks ask of the system. Nothing here allocates.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd as _, RawFd};
use std::ptr;

use workload::{Budget, CpuSet, SchedPolicy};

use super::shared::timespec;

/// Which of two processes a fork returned in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The new one.
    Child,
    /// The old one, with the new one's pid.
    Parent(libc::pid_t),
}

/// Creates a process.
///
/// # Errors
/// What the system says.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: the child only goes on with what it inherited; glibc makes its allocator usable.
    #[expect(unsafe_code, reason = "the system call as such")]
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// Ends the process without any of Rust's or C's farewells, which belong to the parent.
pub fn exit(status: i32) -> ! {
    // SAFETY: the process ends.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::_exit(status)
    }
}

/// Ends this thread only, even if it is the first of its process.
pub fn exit_thread() -> ! {
    // SAFETY: nothing of this thread is used by others: what it shares is never freed.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::syscall(libc::SYS_exit, 0);
    }
    exit(0)
}

/// This process ends when the thread that created it does.
pub fn die_with_parent() {
    // SAFETY: takes numbers only.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

/// Leaves the terminal's group, so that its Ctrl-C ends the player and not its tasks.
pub fn leave_terminal() {
    // SAFETY: takes nothing.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::setsid();
    }
}

/// The processes that this one creates from now on have numbers of their own, and all of them end
/// with the first.
///
/// # Errors
/// What the system says: it takes root.
pub fn new_pids() -> io::Result<()> {
    // SAFETY: takes a number only.
    #[expect(unsafe_code, reason = "the system call as such")]
    checked(unsafe { libc::unshare(libc::CLONE_NEWPID) })
}

/// This thread's number, as this process sees it.
pub fn tid() -> i32 {
    // SAFETY: takes nothing.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::gettid()
    }
}

/// This thread's number as the rest of the machine sees it: /proc belongs to whoever mounted it.
pub fn outer_tid() -> Option<u32> {
    let mut text = [0_u8; 64];
    // SAFETY: the path ends in a zero, and the length is that of the buffer.
    #[expect(unsafe_code, reason = "without allocating")]
    let length = unsafe {
        libc::readlink(
            c"/proc/thread-self".as_ptr(),
            text.as_mut_ptr().cast(),
            text.len(),
        )
    };
    let text = text.get(..usize::try_from(length).ok()?)?;
    let last = text.rsplit(|byte| *byte == b'/').next()?;
    std::str::from_utf8(last).ok()?.parse().ok()
}

/// Gives this thread a name of at most 15 bytes.
pub fn set_name(name: &[u8; 16]) {
    // SAFETY: the name ends in a zero.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
    }
}

/// Timers of this thread expire on time and not up to 50 us later.
pub fn no_timer_slack() {
    // SAFETY: takes numbers only.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

/// From one tick of this kernel to the next, in nanoseconds: what its coarse clock goes by.
pub fn tick() -> u64 {
    let mut tick = timespec(0);
    // SAFETY: the pointer is to a live value.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut tick);
    }
    // Every kernel has this clock; without an answer, that of 250 Hz.
    u64::try_from(tick.tv_nsec)
        .ok()
        .filter(|tick| *tick > 0)
        .unwrap_or(4_000_000)
}

/// Changes a thread's nice value; 0 is the calling one.
///
/// # Errors
/// What the system says.
pub fn set_nice(tid: i32, nice: i8) -> io::Result<()> {
    // SAFETY: takes numbers only.
    #[expect(unsafe_code, reason = "the system call as such")]
    checked(unsafe { libc::setpriority(libc::PRIO_PROCESS, tid.cast_unsigned(), nice.into()) })
}

/// Changes a thread's scheduling policy; 0 is the calling one.
///
/// # Errors
/// What the system says.
pub fn set_policy(tid: i32, policy: SchedPolicy) -> io::Result<()> {
    let (policy, priority) = match policy {
        SchedPolicy::Normal => (libc::SCHED_OTHER, 0),
        SchedPolicy::Batch => (libc::SCHED_BATCH, 0),
        SchedPolicy::Idle => (libc::SCHED_IDLE, 0),
        SchedPolicy::Fifo(priority) => (libc::SCHED_FIFO, priority),
        SchedPolicy::RoundRobin(priority) => (libc::SCHED_RR, priority),
        SchedPolicy::Deadline(budget) => return set_deadline(tid, budget),
    };
    let parameter = libc::sched_param {
        sched_priority: priority.into(),
    };
    // SAFETY: the pointer is to a live value.
    #[expect(unsafe_code, reason = "the system call as such")]
    checked(unsafe { libc::sched_setscheduler(tid, policy, &raw const parameter) })
}

/// `struct sched_attr` in its first version (include/uapi/linux/sched/types.h).
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Makes a thread a deadline task. What it forks is none.
fn set_deadline(tid: i32, budget: Budget) -> io::Result<()> {
    /// `SCHED_DEADLINE` and `SCHED_FLAG_RESET_ON_FORK` (include/uapi/linux/sched.h).
    const DEADLINE: u32 = 6;
    const RESET_ON_FORK: u64 = 1;
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: DEADLINE,
        flags: RESET_ON_FORK,
        nice: 0,
        priority: 0,
        runtime: budget.runtime.get(),
        deadline: budget.deadline.get(),
        period: budget.period.get(),
    };
    // SAFETY: the pointer is to a live value of the size that it gives.
    #[expect(unsafe_code, reason = "the system call as such")]
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attr, 0) };
    checked(result as i32)
}

/// Changes the CPUs on which a thread may run; 0 is the calling one.
///
/// # Errors
/// What the system says.
pub fn set_affinity(tid: i32, cpus: &CpuSet) -> io::Result<()> {
    let words = cpus.words();
    // SAFETY: the system reads as many bytes as the words have.
    #[expect(unsafe_code, reason = "the system call as such")]
    checked(unsafe { libc::sched_setaffinity(tid, size_of_val(words), words.as_ptr().cast()) })
}

/// A listening socket on a free port of the loopback device.
///
/// # Errors
/// What the system says.
pub fn listen(backlog: u32) -> io::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    // A second call changes the backlog.
    // SAFETY: takes numbers only.
    #[expect(unsafe_code, reason = "the standard library fixes the backlog")]
    checked(unsafe { libc::listen(listener.as_raw_fd(), backlog) })?;
    Ok(listener)
}

/// A connection's end comes at once and leaves nothing behind (`SO_LINGER` of zero).
pub fn close_at_once(socket: RawFd) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the pointer is to a live value of the size that is given.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        );
    }
}

/// `sched_yield()`.
pub fn yield_cpu() {
    // SAFETY: takes nothing.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::sched_yield();
    }
}

/// Sleeps until this point of `CLOCK_MONOTONIC`, in nanoseconds.
pub fn sleep_until(ns: u64) {
    let until = timespec(ns);
    loop {
        // SAFETY: the pointer is to a live value; no rest is asked for.
        #[expect(unsafe_code, reason = "the system call as such")]
        let result = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const until,
                ptr::null_mut(),
            )
        };
        if result != libc::EINTR {
            return;
        }
    }
}

/// Sleeps for so many nanoseconds as those do who wait for a disk: in a state that schedulers tell
/// from other sleeps (`TASK_KILLABLE`, which has `TASK_UNINTERRUPTIBLE`; linux/sched.h, 6.18). So
/// does a parent until a child of `vfork` is gone; the child sleeps.
///
/// # Errors
/// When there is no room for another process.
pub fn sleep_deeply(ns: u64) -> io::Result<()> {
    let flags = libc::c_long::from(libc::CLONE_VFORK | libc::SIGCHLD);
    // SAFETY: without CLONE_VM the child has a copy of the memory; it makes system calls only and
    // ends. No pointer is passed.
    #[expect(unsafe_code, reason = "no safe call has this state")]
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match libc::pid_t::try_from(pid) {
        Ok(0) => {
            sleep_until(live::record::clock() + ns);
            exit(0)
        }
        Ok(pid @ 1..) => {
            // The parent goes on once the child has left its memory, which is before its end. Who
            // looked again and again until then would keep the child from the CPU, for a whole
            // slice under policies that let the parent go on.
            wait_for(pid);
            Ok(())
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// CPU time of this thread, in nanoseconds.
pub fn cpu_time() -> u64 {
    let mut now = timespec(0);
    // SAFETY: the pointer is to a live value of the type that the call fills.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now);
    }
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Exited,
    /// By this signal.
    Killed(i32),
}

/// Waits for a child of this thread to end, or looks whether one has. `None`: there is none, or
/// none has ended.
pub fn wait_child(block: bool) -> Option<Ended> {
    let mut status = 0;
    let flags = libc::__WNOTHREAD | if block { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: the pointer is to a live value.
        #[expect(unsafe_code, reason = "the system call as such")]
        let pid = unsafe { libc::waitpid(-1, &raw mut status, flags) };
        match pid {
            0 => return None,
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return None,
            _ if libc::WIFSIGNALED(status) => return Some(Ended::Killed(libc::WTERMSIG(status))),
            _ => return Some(Ended::Exited),
        }
    }
}

/// Kills a child and waits until it is gone.
pub fn kill(pid: libc::pid_t) {
    // SAFETY: the pid is that of a child that was not waited for; a null status is allowed.
    #[expect(unsafe_code, reason = "the system calls as such")]
    unsafe {
        libc::kill(pid, libc::SIGKILL);
    }
    wait_for(pid);
}

/// Kills every process of a group.
pub fn kill_group(group: libc::pid_t) {
    // SAFETY: takes numbers only; a group of none is an error that means the same.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::kill(-group, libc::SIGKILL);
    }
}

/// Waits for this child to end; it is gone then.
fn wait_for(pid: libc::pid_t) {
    // SAFETY: a null status is allowed.
    #[expect(unsafe_code, reason = "the system call as such")]
    let wait = || unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
    while wait() < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {}
}

/// Whether a child has ended; it is gone then.
pub fn has_ended(pid: libc::pid_t) -> bool {
    // SAFETY: a null status is allowed.
    #[expect(unsafe_code, reason = "the system call as such")]
    let result = unsafe { libc::waitpid(pid, ptr::null_mut(), libc::WNOHANG) };
    result != 0
}

/// Lets this process open as many files as the system permits.
pub fn raise_file_limit() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointers are to a live value. Without the higher limit, opening says so.
    #[expect(unsafe_code, reason = "the system calls as such")]
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Bytes that wait to be read from `fd`.
pub fn waiting(fd: i32) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request fills one integer.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::ioctl(fd, libc::FIONREAD, &raw mut bytes);
    }
    u64::try_from(bytes).unwrap_or(0)
}

/// Whether `fd` takes bytes at once.
pub fn has_room(fd: i32) -> bool {
    let mut poll = libc::pollfd {
        fd,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: the pointer is to one live value.
    #[expect(unsafe_code, reason = "the system call as such")]
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    ready == 1 && poll.revents & libc::POLLOUT != 0
}

/// Writes all of `bytes`.
///
/// # Errors
/// What the system says.
pub fn write_all(fd: i32, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: pointer and length are those of a live slice.
        #[expect(unsafe_code, reason = "a descriptor that many processes share")]
        let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) => bytes = &bytes[written..],
            Err(_) => retry()?,
        }
    }
    Ok(())
}

/// Fills `bytes`.
///
/// # Errors
/// What the system says; `UnexpectedEof` when nobody writes any more.
pub fn read_all(fd: i32, bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: pointer and length are those of a live slice.
        #[expect(unsafe_code, reason = "a descriptor that many processes share")]
        let read = unsafe { libc::read(fd, rest.as_mut_ptr().cast(), rest.len()) };
        match usize::try_from(read) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(_) => retry()?,
        }
    }
    Ok(())
}

/// Whether the last call was only interrupted.
fn retry() -> io::Result<()> {
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}

fn checked(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
