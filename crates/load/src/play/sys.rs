//! What played tasks ask of the system. Nothing here allocates.
//!
//! `rustix` makes the calls that it has. It has none for a fork, the end of one thread, a new
//! namespace of processes, a scheduling policy, affinities beyond 1024 CPUs, and children of one
//! thread alone (`__WNOTHREAD`).

use std::ffi::CStr;
use std::io;
use std::net::TcpListener;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};
use rustix::thread::ClockId as SleepClock;
use rustix::time::{ClockId, Timespec};
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
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}

/// Leaves the terminal's group, so that its Ctrl-C ends the player and not its tasks.
pub fn leave_terminal() {
    let _ = rustix::process::setsid();
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
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// This thread's number as the rest of the machine sees it: /proc belongs to whoever mounted it.
pub fn outer_tid() -> Option<u32> {
    let mut text = [0_u8; 64];
    let link = c"/proc/thread-self";
    let length = rustix::fs::readlinkat_raw(rustix::fs::CWD, link, &mut text).ok()?;
    let text = text.get(..length)?;
    let last = text.rsplit(|byte| *byte == b'/').next()?;
    std::str::from_utf8(last).ok()?.parse().ok()
}

/// Gives this thread a name of at most 15 bytes.
pub fn set_name(name: &[u8; 16]) {
    if let Ok(name) = CStr::from_bytes_until_nul(name) {
        let _ = rustix::thread::set_name(name);
    }
}

/// Timers of this thread expire on time and not up to 50 us later.
pub fn no_timer_slack() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// From one tick of this kernel to the next, in nanoseconds: what its coarse clock goes by.
pub fn tick() -> u64 {
    let tick = rustix::time::clock_getres(ClockId::MonotonicCoarse);
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
    let thread = Pid::from_raw(tid);
    Ok(rustix::process::setpriority_process(thread, nice.into())?)
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
    // A second call changes the backlog, which the standard library fixes.
    rustix::net::listen(&listener, backlog)?;
    Ok(listener)
}

/// A connection's end comes at once and leaves nothing behind (`SO_LINGER` of zero).
pub fn close_at_once(socket: BorrowedFd<'_>) {
    let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

/// `sched_yield()`.
pub fn yield_cpu() {
    rustix::thread::sched_yield();
}

/// Sleeps until this point of `CLOCK_MONOTONIC`, in nanoseconds.
pub fn sleep_until(ns: u64) {
    let until = timespec(ns);
    let sleep = || rustix::thread::clock_nanosleep_absolute(SleepClock::Monotonic, &until);
    while sleep() == Err(Errno::INTR) {}
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
    let now = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// How often this thread has left its CPU. Asking does not bring its account up to date.
pub fn switches() -> u64 {
    // SAFETY: zero is a value of each field.
    #[expect(unsafe_code, reason = "the system call as such")]
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live value. The call cannot fail with these arguments.
    #[expect(unsafe_code, reason = "the system call as such")]
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
    }
    (usage.ru_nvcsw + usage.ru_nivcsw).cast_unsigned()
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEnd {
    /// By itself.
    Exited,
    /// By this signal.
    Killed(i32),
}

/// Waits for a child of this thread to end, or looks whether one has. `None`: there is none, or
/// none has ended.
pub fn wait_child(block: bool) -> Option<ChildEnd> {
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
            _ if libc::WIFSIGNALED(status) => {
                return Some(ChildEnd::Killed(libc::WTERMSIG(status)));
            }
            _ => return Some(ChildEnd::Exited),
        }
    }
}

/// Kills a child and waits until it is gone.
pub fn kill(pid: libc::pid_t) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    wait_for(pid);
}

/// Kills every process of a group.
pub fn kill_group(group: libc::pid_t) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

/// Waits for this child to end; it is gone then.
fn wait_for(pid: libc::pid_t) {
    let wait = || rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::empty());
    while matches!(wait(), Err(Errno::INTR)) {}
}

/// Whether a child has ended; it is gone then.
pub fn has_ended(pid: libc::pid_t) -> bool {
    // One that cannot be waited for is gone, too.
    !matches!(
        rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::NOHANG),
        Ok(None)
    )
}

/// Lets this process open as many files as the system permits.
pub fn raise_file_limit() {
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    // Without the higher limit, opening says so.
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

/// Bytes that wait to be read from `fd`.
pub fn waiting(fd: BorrowedFd<'_>) -> u64 {
    rustix::io::ioctl_fionread(fd).unwrap_or(0)
}

/// All bytes that wait to be read from `fd`, at most so many as wait now.
pub fn read_waiting(fd: BorrowedFd<'_>) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(waiting(fd)).unwrap_or(0)];
    let filled = read_all(fd, &mut bytes);
    if filled.is_err() {
        bytes.clear();
    }
    bytes
}

/// Whether `fd` takes bytes at once.
pub fn has_room(fd: BorrowedFd<'_>) -> bool {
    let mut room = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    let ready = poll(&mut room, Some(&Timespec::default()));
    ready == Ok(1) && room[0].revents().contains(PollFlags::OUT)
}

/// Writes all of `bytes`.
///
/// # Errors
/// What the system says.
pub fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Fills `bytes`.
///
/// # Errors
/// What the system says; `UnexpectedEof` when nobody writes any more.
pub fn read_all(fd: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::read(fd, &mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn checked(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
