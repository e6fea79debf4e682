//! System calls of the supervisor that have no safe wrapper: seccomp's listener, another process's
//! memory and file descriptors, the stop at exec.

#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper, and the child between fork and exec"
)]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use model::Advice;

/// A call as the filter has intercepted it.
#[derive(Clone, Copy, Debug)]
pub struct InterceptedCall {
    /// The listener's number of it.
    pub id: u64,
    /// The thread, by the host's number.
    pub tid: i32,
    /// The call's number.
    pub nr: i64,
    /// Its arguments.
    pub args: [u64; 6],
}

// Linux 6.18, include/uapi/linux/seccomp.h: _IOWR('!', 0, 80), _IOWR('!', 1, 24), _IOW('!', 3, 24).
const NOTIF_RECV: libc::c_ulong = 0xc050_2100;
const NOTIF_SEND: libc::c_ulong = 0xc018_2101;
const NOTIF_ADDFD: libc::c_ulong = 0x4018_2103;
const ADDFD_SEND: u32 = 2;
/// `SECCOMP_IOCTL_NOTIF_SET_FLAGS`, `_IOW('!', 4, 8)`; since 6.6.
const NOTIF_SET_FLAGS: libc::c_ulong = 0x4008_2104;
/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
const SYNC_WAKE_UP: libc::c_ulong = 1;
const NEW_LISTENER: libc::c_ulong = 1 << 3;
const WAIT_KILLABLE_RECV: libc::c_ulong = 1 << 5;

#[repr(C)]
struct AddFd {
    id: u64,
    flags: u32,
    srcfd: u32,
    newfd: u32,
    newfd_flags: u32,
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    let fd = RawFd::try_from(check(fd)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else has its number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The end of the filter at which calls wait for their answers.
#[derive(Debug)]
pub struct FilterListener(OwnedFd);

impl FilterListener {
    /// Of the program and who answers it one waits while the other runs, so both use one CPU: to
    /// wake the other on another one takes several times as long as to answer a call. An older
    /// kernel refuses that, and decides as always.
    fn new(listener: OwnedFd) -> Self {
        // SAFETY: the flags are the argument itself; nothing is read or written.
        let _ = unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
        Self(listener)
    }

    /// The next call; `None` if its thread has died since it was announced.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn receive(&self) -> io::Result<Option<InterceptedCall>> {
        // SAFETY: a structure of integers; all zero is what the kernel asks for.
        let mut request: libc::seccomp_notif = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the structure has the size that is part of the request's number.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), NOTIF_RECV, &raw mut request) };
        if done < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::ENOENT | libc::EINTR) => Ok(None),
                _ => Err(error),
            };
        }
        Ok(Some(InterceptedCall {
            id: request.id,
            tid: i32::try_from(request.pid).unwrap_or(0),
            nr: i64::from(request.data.nr),
            args: request.data.args,
        }))
    }

    fn send(&self, id: u64, val: i64, error: i32, flags: u32) -> io::Result<()> {
        let mut answer = libc::seccomp_notif_resp {
            id,
            val,
            error,
            flags,
        };
        // SAFETY: the structure has the size that is part of the request's number.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), NOTIF_SEND, &raw mut answer) };
        check(done.into()).map(drop)
    }

    /// Answers with a result, or with `-errno`.
    ///
    /// # Errors
    /// `ENOENT`: the thread is dead.
    pub fn answer(&self, id: u64, result: i64) -> io::Result<()> {
        match i32::try_from(result) {
            Ok(error @ -4095..0) => self.send(id, 0, error, 0),
            _ => self.send(id, result, 0, 0),
        }
    }

    /// Lets the kernel do the call.
    ///
    /// # Errors
    /// `ENOENT`: the thread is dead.
    pub fn go_on(&self, id: u64) -> io::Result<()> {
        const CONTINUE: u32 = 1;
        self.send(id, 0, 0, CONTINUE)
    }

    /// Answers with a new descriptor, the lowest that is free, for the same open file as `file`.
    ///
    /// # Errors
    /// `ENOENT`: the thread is dead. `EMFILE`.
    pub fn answer_fd(&self, id: u64, file: &OwnedFd, cloexec: bool) -> io::Result<()> {
        let mut add = AddFd {
            id,
            flags: ADDFD_SEND,
            srcfd: u32::try_from(file.as_raw_fd()).map_err(io::Error::other)?,
            newfd: 0,
            newfd_flags: if cloexec { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
        };
        // SAFETY: the structure has the size that is part of the request's number.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), NOTIF_ADDFD, &raw mut add) };
        check(done.into()).map(drop)
    }

    /// Puts a descriptor into the process of a call that is not answered yet: its number there. It
    /// is closed at exec.
    ///
    /// # Errors
    /// `ENOENT`: the thread is dead. `EMFILE`.
    pub fn add_fd(&self, id: u64, file: &OwnedFd) -> io::Result<i32> {
        let mut add = AddFd {
            id,
            flags: 0,
            srcfd: u32::try_from(file.as_raw_fd()).map_err(io::Error::other)?,
            newfd: 0,
            newfd_flags: libc::O_CLOEXEC.cast_unsigned(),
        };
        // SAFETY: the structure has the size that is part of the request's number.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), NOTIF_ADDFD, &raw mut add) };
        check(done.into()).map(|_| done)
    }

    /// The descriptor, to wait for the next call.
    pub fn fd(&self) -> &OwnedFd {
        &self.0
    }
}

/// Copies from another process's memory; fewer bytes where its memory ends.
///
/// # Errors
/// `EFAULT`, `ESRCH`.
pub fn read_memory(tid: i32, at: u64, to: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let remote = libc::iovec {
        iov_base: at as *mut libc::c_void,
        iov_len: to.len(),
    };
    // SAFETY: the local range is `to`; the other one the kernel checks in the other process.
    let done = unsafe { libc::process_vm_readv(tid, &raw const local, 1, &raw const remote, 1, 0) };
    Ok(check(done as libc::c_long)?.cast_unsigned() as usize)
}

/// Copies into another process's memory.
///
/// # Errors
/// `EFAULT`, `ESRCH`.
pub fn write_memory(tid: i32, at: u64, bytes: &[u8]) -> io::Result<()> {
    let local = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let remote = libc::iovec {
        iov_base: at as *mut libc::c_void,
        iov_len: bytes.len(),
    };
    // SAFETY: the local range is `bytes`, only read; the other one the kernel checks.
    let done =
        unsafe { libc::process_vm_writev(tid, &raw const local, 1, &raw const remote, 1, 0) };
    if check(done as libc::c_long)?.cast_unsigned() as usize == bytes.len() {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EFAULT))
    }
}

/// A descriptor of a process, which can be polled for its end.
///
/// # Errors
/// `ESRCH`.
pub fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: a call without pointers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// A second descriptor for what `fd` is in the process.
///
/// # Errors
/// `EBADF`: it has no such descriptor.
pub fn pidfd_getfd(process: &OwnedFd, fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: a call without pointers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) })
}

/// Kills all processes of the group that the process of `fd`, whose number is `pid`, leads or has
/// led.
pub fn kill_group(fd: i32, pid: i32) {
    /// `PIDFD_SIGNAL_PROCESS_GROUP`, Linux 6.18, include/uapi/linux/pidfd.h; since 6.9.
    const GROUP: u32 = 4;
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: calls without pointers that lead anywhere; they allocate nothing.
    unsafe {
        let done = libc::syscall(libc::SYS_pidfd_send_signal, fd, libc::SIGKILL, none, GROUP);
        // By its number on older kernels: that stays the group's as long as anybody is in it.
        if done < 0 && *libc::__errno_location() == libc::EINVAL {
            libc::kill(-pid, libc::SIGKILL);
        }
    }
}

/// Sends a signal to one thread.
///
/// # Errors
/// `ESRCH`.
pub fn signal_thread(process: i32, tid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: a call without pointers.
    check(unsafe { libc::syscall(libc::SYS_tgkill, process, tid, signal) }).map(drop)
}

/// Sets how many descriptors a process may have, softly and hard.
///
/// # Errors
/// The kernel's error.
pub fn limit_files(process: i32, soft: u64, hard: u64) -> io::Result<()> {
    let process = rustix::process::Pid::from_raw(process).ok_or(io::ErrorKind::NotFound)?;
    let finite = |limit| (limit != u64::MAX).then_some(limit);
    let limit = rustix::process::Rlimit {
        current: finite(soft),
        maximum: finite(hard),
    };
    rustix::process::prlimit(Some(process), rustix::process::Resource::Nofile, limit)?;
    Ok(())
}

/// A file in memory that can be sealed.
///
/// # Errors
/// The kernel's error.
pub fn memory_file(name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a string that ends with a zero.
    let fd = owned(unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), flags) })?;
    Ok(File::from(fd))
}

/// Takes rights away from a file in memory: `F_SEAL_*`.
///
/// # Errors
/// The kernel's error.
pub fn seal(file: &File, seals: i32) -> io::Result<()> {
    // SAFETY: a call without pointers.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
    check(done.into()).map(drop)
}

/// `epoll_ctl()` with the event as the program gave it.
///
/// # Errors
/// The kernel's error.
pub fn epoll_ctl(epoll: &OwnedFd, op: i32, fd: &OwnedFd, event: [u8; 12]) -> io::Result<()> {
    let mut event = libc::epoll_event {
        events: u32::from_le_bytes([event[0], event[1], event[2], event[3]]),
        u64: u64::from_le_bytes(event[4..].try_into().unwrap_or_default()),
    };
    // SAFETY: the event is ours.
    let done =
        unsafe { libc::epoll_ctl(epoll.as_raw_fd(), op, fd.as_raw_fd(), &raw mut event) };
    check(done.into()).map(drop)
}

/// `epoll_wait()` without waiting: events of 12 bytes each, as the program expects them.
///
/// # Errors
/// The kernel's error.
pub fn epoll_take(epoll: &OwnedFd, max: usize) -> io::Result<Vec<u8>> {
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; max.clamp(1, 1024)];
    let room = i32::try_from(events.len()).unwrap_or(1);
    // SAFETY: there is room for as many events as the call is told.
    let done = unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), room, 0) };
    let found = check(done.into())?.cast_unsigned() as usize;
    let mut bytes = Vec::new();
    for event in &events[..found] {
        bytes.extend({ event.events }.to_le_bytes());
        bytes.extend({ event.u64 }.to_le_bytes());
    }
    Ok(bytes)
}

/// Watches a thread: its `execve()`, and its calls if it goes on by [`to_call`].
///
/// # Errors
/// `EPERM`: Yama, or another tracer.
pub fn watch(tid: i32) -> io::Result<()> {
    let told = libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_TRACESYSGOOD;
    // SAFETY: a call whose pointers are integers.
    let done = unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0, told) };
    check(done).map(drop)
}

/// Asks to be told of what the thread makes next: a thread or a process, which will stand too.
///
/// # Errors
/// `EPERM`: Yama, or another tracer.
pub fn watch_births(tid: i32) -> io::Result<()> {
    let options =
        libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACECLONE;
    // SAFETY: a call whose pointers are integers.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0, options) }).map(drop)
}

/// Latest action of a watched thread, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Nothing.
    Nothing,
    /// It stands at the first instruction of another program.
    Exec,
    /// It stands at the begin or the end of a call.
    Call,
    /// It stands before it gets that signal.
    Signal(i32),
    /// It stands for another reason.
    Stopped,
    /// It has died, with that status: see [`ended`].
    Gone(i32),
    /// Nobody of that number is watched.
    Unknown,
}

/// Looks at a watched thread without waiting.
pub fn look(tid: i32) -> Watched {
    look_for_birth(tid).0
}

/// Looks at a watched thread without waiting; if it stands where it has made a thread or a process,
/// the number of that.
pub fn look_for_birth(tid: i32) -> (Watched, Option<i32>) {
    let mut status = 0;
    // SAFETY: the status is ours.
    let done = unsafe { libc::waitpid(tid, &raw mut status, libc::WNOHANG | libc::__WALL) };
    if done == 0 {
        return (Watched::Nothing, None);
    }
    if done < 0 {
        return (Watched::Unknown, None);
    }
    if let Some(status) = status_of(status) {
        return (Watched::Gone(status), None);
    }
    /// Set by `PTRACE_O_TRACESYSGOOD`.
    const CALL: i32 = libc::SIGTRAP | SYSCALL_STOP;
    let is = match (status >> 16, libc::WSTOPSIG(status)) {
        (libc::PTRACE_EVENT_EXEC, _) => Watched::Exec,
        (libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE, _) => {
            return (Watched::Stopped, born(tid));
        }
        (0, CALL) => Watched::Call,
        (0, signal) => Watched::Signal(signal),
        _ => Watched::Stopped,
    };
    (is, None)
}

/// What `PTRACE_O_TRACESYSGOOD` adds to the signal and to the code of a stop at a call.
const SYSCALL_STOP: i32 = 0x80;

/// Lets a thread that stands go on to the begin or the end of its next call, without the signal
/// that it stands before.
///
/// # Errors
/// `ESRCH`: it does not stand.
pub fn to_call(tid: i32) -> io::Result<()> {
    // SAFETY: a call without pointers.
    check(unsafe { libc::ptrace(libc::PTRACE_SYSCALL, tid, 0, 0) }).map(drop)
}

/// The number of what a thread has made that stands there.
fn born(tid: i32) -> Option<i32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one number.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message) };
    check(done).ok()?;
    i32::try_from(message).ok()
}

/// Stops a watched thread as soon as it leaves the kernel.
///
/// # Errors
/// `ESRCH`.
pub fn stop_watched(tid: i32) -> io::Result<()> {
    // SAFETY: a call without pointers.
    check(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0) }).map(drop)
}

/// Lets go of a thread that stands; a signal that it stands at is delivered.
///
/// # Errors
/// `ESRCH`: it does not stand.
pub fn unwatch(tid: i32) -> io::Result<()> {
    // SAFETY: a structure of integers.
    let mut told: libc::siginfo_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the kernel writes one such structure.
    let known = unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0, &raw mut told) };
    let at_call = (libc::SIGTRAP, libc::SIGTRAP | SYSCALL_STOP);
    // Above the signal of an event stands its number.
    let is_signal = known == 0
        && (told.si_code >> 8 == 0 || told.si_code < 0)
        && (told.si_signo, told.si_code) != at_call;
    let signal = if is_signal { told.si_signo } else { 0 };
    // SAFETY: a call without pointers.
    check(unsafe { libc::ptrace(libc::PTRACE_DETACH, tid, 0, signal) }).map(drop)
}

/// The stack pointer of a thread that stands.
///
/// # Errors
/// `ESRCH`: it does not stand.
pub fn stack_pointer(tid: i32) -> io::Result<u64> {
    Ok(registers(tid)?.rsp)
}

/// The registers of a thread that stands.
///
/// # Errors
/// `ESRCH`: it does not stand.
pub fn registers(tid: i32) -> io::Result<libc::user_regs_struct> {
    // SAFETY: a structure of integers.
    let mut registers: libc::user_regs_struct = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the kernel writes one such structure.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut registers) };
    check(done)?;
    Ok(registers)
}

/// Changes where the `mmap()` that a standing thread is about to repeat puts its pages.
///
/// # Errors
/// `ESRCH`: it does not stand.
pub fn set_mmap(tid: i32, address: u64, flags: u64) -> io::Result<()> {
    let mut registers = registers(tid)?;
    registers.rdi = address;
    registers.r10 = flags;
    set_registers(tid, registers)
}

/// Changes the registers of a thread that stands.
///
/// # Errors
/// `ESRCH`: it does not stand.
pub fn set_registers(tid: i32, mut registers: libc::user_regs_struct) -> io::Result<()> {
    // SAFETY: the kernel reads one such structure.
    let done = unsafe { libc::ptrace(libc::PTRACE_SETREGS, tid, 0, &raw mut registers) };
    check(done).map(drop)
}

/// The status of our child `pid` if it has ended: its exit status, or 128 and its signal.
pub fn ended(pid: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: the status is ours.
    let done = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
    if done == 0 {
        return None;
    }
    if done < 0 {
        return Some(255);
    }
    status_of(status)
}

fn status_of(status: i32) -> Option<i32> {
    if libc::WIFEXITED(status) {
        Some(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Some(128 + libc::WTERMSIG(status))
    } else {
        None
    }
}

/// Bytes of one file of the program (`RLIMIT_FSIZE`).
pub const FILE_MAX: u64 = 1 << 30;

/// A program that is about to start: all memory is there, for the child must not allocate.
#[derive(Debug)]
pub struct Start {
    /// The file.
    pub program: CString,
    /// Its arguments, its name included.
    pub args: Vec<CString>,
    /// `NAME=VALUE`.
    pub environment: Vec<CString>,
    /// Its standard input, output and error output.
    pub stdio: [OwnedFd; 3],
    /// The filter: see [`crate::filter`].
    pub filter: Vec<libc::sock_filter>,
}

/// A step of the child that failed.
#[derive(Debug, thiserror::Error)]
pub enum StartFailed {
    /// The kernel knows no such filter, or another one is in the way.
    #[error("the filter of system calls: {0}")]
    Filter(io::Error),
    /// Anything else.
    #[error("{0}: {1}")]
    Step(&'static str, io::Error),
}

impl Advice for StartFailed {
    fn advice(&self) -> Option<String> {
        None
    }
}

/// What the child tells before it can be asked: 0 nothing yet, a descriptor plus 1, or an errno
/// below 0 together with the step.
struct Board {
    word: AtomicI32,
    step: AtomicI32,
}

const STEPS: [&str; 5] = ["fork", "standard streams", "no_new_privs", "filter", "exec"];

/// Starts the program up to its `execve()`, at which it waits for the listener. Must be called by
/// the thread that will ask the listener: the child dies with it.
///
/// # Errors
/// [`StartFailed`].
pub fn start(program: &Start) -> Result<(i32, OwnedFd, FilterListener), StartFailed> {
    let step = |error| StartFailed::Step(STEPS[0], error);
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        let each = strings.iter().map(|it| it.as_ptr());
        each.chain([std::ptr::null()]).collect()
    };
    let (args, environment) = (pointers(&program.args), pointers(&program.environment));
    // SAFETY: new pages, of whose address nothing is asked.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return Err(step(io::Error::last_os_error()));
    }
    // SAFETY: the page is large enough, zeroed, and lives until the end of this function.
    let board: &Board = unsafe { &*page.cast::<Board>() };
    let parent = std::process::id().cast_signed();
    // SAFETY: the child calls nothing that allocates or takes a lock.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        child(program, [&args, &environment], board, parent);
    }
    let result = if pid < 0 {
        Err(step(io::Error::last_os_error()))
    } else {
        adopt(pid, board)
    };
    // SAFETY: the page of above; nothing refers to it any more.
    unsafe { libc::munmap(page, 4096) };
    result
}

/// Waits for the child's filter and takes its listener.
fn adopt(pid: i32, board: &Board) -> Result<(i32, OwnedFd, FilterListener), StartFailed> {
    let began = Instant::now();
    let failed = |error| StartFailed::Step(STEPS[0], error);
    loop {
        // In this order: what a child has told before its end is there when its end is seen.
        let end = ended(pid);
        let word = board.word.load(Ordering::Acquire);
        if word > 0 && end.is_none() {
            let process = pidfd_open(pid).map_err(failed)?;
            let listener = pidfd_getfd(&process, word - 1).map_err(failed)?;
            return Ok((pid, process, FilterListener::new(listener)));
        }
        let is_late = began.elapsed() > PATIENCE;
        if word < 0 || end.is_some() || is_late {
            if end.is_none() {
                // SAFETY: a call without pointers, on our own child.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                let _ = ended(pid);
            }
            let step = board.step.load(Ordering::Acquire).cast_unsigned() as usize;
            return Err(why(word, step, end));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// How long a child may take to its filter: seconds on a computer with a hundred busy processes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a child did not come to its filter: it has told an error, has come to an end by itself, or
/// is late.
fn why(word: i32, step: usize, end: Option<i32>) -> StartFailed {
    let step = STEPS[step.min(STEPS.len() - 1)];
    let error = match (word, end) {
        (..0, _) => io::Error::from_raw_os_error(-word),
        (_, Some(status)) => io::Error::other(format!("the child ended with status {status}")),
        (_, None) => io::Error::other(format!("nothing happened for {} s", PATIENCE.as_secs())),
    };
    match step {
        "filter" => StartFailed::Filter(error),
        step => StartFailed::Step(step, error),
    }
}

/// The child between fork and exec: system calls and nothing else.
fn child(
    program: &Start,
    strings: [&[*const libc::c_char]; 2],
    board: &Board,
    parent: i32,
) -> ! {
    let fail = |step: i32| {
        // SAFETY: errno is the thread's own.
        let errno = unsafe { *libc::__errno_location() };
        board.step.store(step, Ordering::Release);
        board.word.store(-errno.max(1), Ordering::Release);
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(127) }
    };
    let filter = libc::sock_fprog {
        len: program.filter.len() as u16,
        filter: program.filter.as_ptr().cast_mut(),
    };
    // SAFETY: calls on the child's own descriptors, on strings and a filter that the parent made
    // before the fork; none allocates.
    unsafe {
        libc::setsid();
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            fail(0);
        }
        // Its end has come before anybody was to be told of it.
        if libc::getppid() != parent {
            libc::_exit(127);
        }
        libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL);
        }
        // A write beyond the limit is told `EFBIG`, as by a full file system.
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        // Whatever the call is; and no core of it is written where the user stands.
        for (resource, most) in [(libc::RLIMIT_FSIZE, FILE_MAX), (libc::RLIMIT_CORE, 0)] {
            let mut limit = MaybeUninit::<libc::rlimit>::zeroed().assume_init();
            if libc::getrlimit(resource, &raw mut limit) != 0 {
                fail(0);
            }
            limit.rlim_max = limit.rlim_max.min(most);
            limit.rlim_cur = limit.rlim_max;
            if libc::setrlimit(resource, &raw const limit) != 0 {
                fail(0);
            }
        }
        for (to, from) in program.stdio.iter().enumerate() {
            if libc::dup2(from.as_raw_fd(), to as i32) < 0 {
                fail(1);
            }
        }
        // What the parent has open is none of the program's business.
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            fail(2);
        }
        let flags = NEW_LISTENER | WAIT_KILLABLE_RECV;
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        let listener = libc::syscall(libc::SYS_seccomp, mode, flags, &raw const filter);
        if listener < 0 {
            fail(3);
        }
        board.word.store(listener as i32 + 1, Ordering::Release);
        libc::execve(program.program.as_ptr(), strings[0].as_ptr(), strings[1].as_ptr());
        fail(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_fails_says_why_whatever_it_was() {
        let said = |word, step, end| why(word, step, end).to_string();
        assert_eq!(said(-1, 1, None), "standard streams: Operation not permitted (os error 1)");
        // It told of its error and was gone before anybody looked.
        let filter = said(-libc::EBUSY, 3, Some(127));
        assert!(filter.starts_with("the filter of system calls: "), "{filter}");
        assert_eq!(said(0, 0, Some(137)), "fork: the child ended with status 137");
        assert_eq!(said(0, 0, None), "fork: nothing happened for 60 s");
    }
}
