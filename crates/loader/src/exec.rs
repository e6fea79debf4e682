//! The one stop at exec: what would tell a program of the host's time and chance is taken out of
//! what the kernel gives it.

use std::time::{Duration, Instant};

use crate::deaths::{self, PATIENCE};
use crate::executable::{self, Executable};
use crate::paths::PATH_MAX;
use crate::state::{Errno, LoaderState, Then, u64_at};
use crate::sys::{self, InterceptedCall, Watched};

/// Outcome of an `execve()`.
pub enum Executed {
    /// The other program stands at its first instruction, and was let go.
    Done,
    /// It was refused: the thread goes on with that error.
    Refused(Errno),
    /// The process has died, with this status if it is the program itself.
    Died(Option<i32>),
}

/// How a call ended that a thread was made to do.
enum CallEnd {
    /// With that result.
    Result(i64),
    /// The other program stands at its first instruction.
    Exec,
    /// The process has died.
    Died(Option<i32>),
}

/// A thread that stands, and does the calls that it is told to.
struct StoppedThread {
    tid: i32,
    /// The number of its process, which a thread takes that executes another program.
    real: i32,
    /// Its registers behind the call that it has made.
    registers: libc::user_regs_struct,
    /// Signals that have come meanwhile.
    signals: Vec<i32>,
}

/// The kernel does the call again, whatever handlers there are. Linux 6.18, include/linux/errno.h.
const RESTARTNOINTR: i64 = -513;

impl StoppedThread {
    /// Stops a thread at its call, or tells the status with which it has died.
    fn stop(
        state: &LoaderState,
        call: &InterceptedCall,
        real: i32,
    ) -> Result<Result<Self, Option<i32>>, Errno> {
        sys::watch(call.tid)?;
        sys::stop_watched(call.tid)?;
        state.listener.answer(call.id, RESTARTNOINTR)?;
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            match sys::look(call.tid) {
                Watched::Nothing => std::thread::sleep(Duration::from_micros(50)),
                Watched::Gone(status) => return Ok(Err(Some(status))),
                Watched::Unknown => return Ok(Err(None)),
                seen => {
                    let signal = match seen {
                        Watched::Signal(signal) => Some(signal),
                        _ => None,
                    };
                    return Ok(Ok(Self {
                        tid: call.tid,
                        real,
                        registers: sys::registers(call.tid)?,
                        signals: signal.into_iter().collect(),
                    }));
                }
            }
        }
        Ok(Err(None))
    }

    /// Makes the thread do a call. The registers are the kernel's by then: nobody can change what
    /// is done.
    fn call(&mut self, state: &mut LoaderState, nr: i64, args: [u64; 6]) -> Result<CallEnd, Errno> {
        /// Bytes of the instruction `syscall`.
        const SYSCALL: u64 = 2;
        let mut registers = self.registers;
        registers.rip -= SYSCALL;
        registers.rax = nr.cast_unsigned();
        // No call is left that the kernel would do again.
        registers.orig_rax = u64::MAX;
        let [a, b, c, d, e, f] = args;
        (registers.rdi, registers.rsi, registers.rdx) = (a, b, c);
        (registers.r10, registers.r8, registers.r9) = (d, e, f);
        sys::set_registers(self.tid, registers)?;
        sys::to_call(self.tid)?;
        let (began, mut stops) = (Instant::now(), 0);
        while began.elapsed() < PATIENCE {
            match self.look() {
                Watched::Exec => return Ok(CallEnd::Exec),
                Watched::Gone(status) => return Ok(CallEnd::Died(Some(status))),
                Watched::Call if stops == 1 => {
                    let result = sys::registers(self.tid)?.rax;
                    return Ok(CallEnd::Result(result.cast_signed()));
                }
                Watched::Call => {
                    stops += 1;
                    sys::to_call(self.tid)?;
                }
                Watched::Signal(signal) => {
                    self.signals.push(signal);
                    sys::to_call(self.tid)?;
                }
                Watched::Stopped => sys::to_call(self.tid)?,
                Watched::Nothing | Watched::Unknown => {}
            }
            if state.is_called(Duration::from_micros(100))
                && let Some(call) = state.listener.receive()?
            {
                if call.tid == self.tid && call.nr == nr && call.args == args {
                    state.listener.go_on(call.id)?;
                } else {
                    // The parent in `vfork()` has gone on already.
                    take_in(state, call);
                }
            }
        }
        Ok(CallEnd::Died(None))
    }

    fn look(&self) -> Watched {
        match sys::look(self.tid) {
            // A thread that is not the first takes the number of the first.
            Watched::Unknown => sys::look(self.real),
            seen => seen,
        }
    }

    /// Lets the thread go on behind its call, which has that result.
    fn refuse(self, errno: i64) -> Result<Executed, Errno> {
        let mut registers = self.registers;
        registers.rax = errno.cast_unsigned();
        registers.orig_rax = u64::MAX;
        sys::set_registers(self.tid, registers)?;
        self.let_go(self.tid)?;
        Ok(Executed::Refused(Errno(i32::try_from(-errno).unwrap_or(libc::EIO))))
    }

    fn let_go(&self, tid: i32) -> Result<(), Errno> {
        for signal in &self.signals {
            let _ = sys::signal_thread(self.real, tid, *signal);
        }
        Ok(sys::unwatch(tid)?)
    }
}

/// Has a thread execute a program: that very file, by its descriptor, whatever the path that the
/// thread has named leads to by now.
///
/// # Errors
/// If the kernel allows no tracing.
pub fn exec(
    state: &mut LoaderState,
    at: usize,
    call: &InterceptedCall,
    program: &Executable,
) -> Result<Executed, Errno> {
    match exec_watched(state, at, call, program) {
        Err(errno) if state.is_dead(at, errno) => {
            Ok(Executed::Died(deaths::reap(state.threads[at].tid)))
        }
        executed => executed,
    }
}

fn exec_watched(
    state: &mut LoaderState,
    at: usize,
    call: &InterceptedCall,
    program: &Executable,
) -> Result<Executed, Errno> {
    let real = state.processes[state.threads[at].process].real;
    let refused = |state: &LoaderState, Errno(errno)| {
        let _ = state.listener.answer(call.id, -i64::from(errno));
        Ok(Executed::Refused(Errno(errno)))
    };
    let (mut arguments, environment, empty) = match strings(call) {
        Ok(strings) => strings,
        Err(errno) => return refused(state, errno),
    };
    let fd = match state.listener.add_fd(call.id, &program.file) {
        Ok(fd) => u64::from(fd.cast_unsigned()),
        Err(error) => return refused(state, error.into()),
    };
    let mut thread = match StoppedThread::stop(state, call, real)? {
        Ok(thread) => thread,
        Err(status) => return Ok(Executed::Died(status)),
    };
    if !program.words.is_empty() {
        match place_words(state, &mut thread, program, arguments)? {
            Ok(pointers) => arguments = pointers,
            Err(executed) => return executed.map_or_else(|errno| thread.refuse(errno), Ok),
        }
    }
    let flags = libc::AT_EMPTY_PATH.cast_unsigned().into();
    let args = [fd, empty, arguments, environment, flags, 0];
    match thread.call(state, libc::SYS_execveat, args)? {
        CallEnd::Exec => {}
        CallEnd::Died(status) => return Ok(Executed::Died(status)),
        CallEnd::Result(errno) => {
            let closed = thread.call(state, libc::SYS_close, [fd, 0, 0, 0, 0, 0])?;
            if let CallEnd::Died(status) = closed {
                return Ok(Executed::Died(status));
            }
            return thread.refuse(errno);
        }
    }
    let begun = begin(state, at, real, program);
    let threads = state.threads_of(state.threads[at].process);
    release(state, &threads);
    if let Err(why) = begun
        && !state.is_gone(at)
    {
        state.note(format!("a program was killed {why}"));
        let fd = &state.processes[state.threads[at].process].fd;
        rustix::process::pidfd_send_signal(fd, rustix::process::Signal::KILL)?;
    }
    thread.let_go(real)?;
    Ok(Executed::Done)
}

/// Where the arguments, the environment and an empty string lie of an `execve()` or `execveat()`.
fn strings(call: &InterceptedCall) -> Result<(u64, u64, u64), Errno> {
    let [first, second, third, fourth, ..] = call.args;
    let (path, arguments, environment) = match call.nr {
        libc::SYS_execve => (first, second, third),
        _ => (second, third, fourth),
    };
    let len = crate::state::read_string(call.tid, path, PATH_MAX)?.len();
    Ok((arguments, environment, path + len as u64))
}

/// Puts the arguments of a script's interpreter into the memory of a thread: where they are, or
/// with which error the call ends. The pages are lost if it shares its memory (`vfork()`).
fn place_words(
    state: &mut LoaderState,
    thread: &mut StoppedThread,
    program: &Executable,
    given: u64,
) -> Result<Result<u64, Result<Executed, i64>>, Errno> {
    let refused = |Errno(errno)| Ok(Err(Err(-i64::from(errno))));
    let len = match executable::arguments(thread.tid, given, &program.words, 0) {
        Ok((bytes, _)) => bytes.len() as u64,
        Err(errno) => return refused(errno),
    };
    let rights = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    let args = [0, len, rights, flags, u64::MAX, 0];
    let pages = match thread.call(state, libc::SYS_mmap, args)? {
        CallEnd::Result(errno @ -4095..0) => return Ok(Err(Err(errno))),
        CallEnd::Result(pages) => pages.cast_unsigned(),
        CallEnd::Died(status) => return Ok(Err(Ok(Executed::Died(status)))),
        CallEnd::Exec => return refused(Errno(libc::EIO)),
    };
    let (bytes, begin) = match executable::arguments(thread.tid, given, &program.words, pages) {
        Ok(placed) => placed,
        Err(errno) => return refused(errno),
    };
    match sys::write_memory(thread.tid, pages, &bytes) {
        Ok(()) => Ok(Ok(begin)),
        Err(error) => refused(error.into()),
    }
}

/// A program stands at its first instruction: what is known of the process is brought up to date.
///
/// # Errors
/// Why it must not run.
fn begin(
    state: &mut LoaderState,
    at: usize,
    real: i32,
    program: &Executable,
) -> Result<(), &'static str> {
    /// The kernel lets nobody look into a process of a file that its user may not read.
    const CLOSED: &str = "since it runs a file that may not be read";
    let own = state.threads[at].process;
    for (other, thread) in state.threads.iter_mut().enumerate() {
        if thread.process == own && other != at && thread.lives {
            thread.lives = false;
            thread.parked = None;
            state.woken.push(other);
        }
    }
    state.threads[at].tid = real;
    state.threads[at].clear = None;
    let runs = rustix::fs::stat(format!("/proc/{real}/exe")).map_err(|_| CLOSED)?;
    // Memory that another process writes at this moment could have named another file.
    if (runs.st_dev, runs.st_ino) != program.inode {
        return Err("that is not the one of its execve()");
    }
    change_auxiliary(real).map_err(|_| CLOSED)
}

/// Threads that waited in `vfork()` for one of these go on up to their next calls.
pub fn release(state: &mut LoaderState, children: &[usize]) {
    let waits = state.parked(|it| matches!(it.then, Then::Vfork(of) if children.contains(&of)));
    for at in waits {
        let (began, process) = (Instant::now(), state.threads[at].process);
        while began.elapsed() < PATIENCE && !state.is_gone(at) {
            let (called, ended) = state.look_out(Some(process), Duration::from_millis(100));
            if ended && !called {
                break;
            }
            if called
                && let Ok(Some(call)) = state.listener.receive()
                && take_in(state, call) == Some(at)
            {
                break;
            }
        }
        // It makes no call, or has died: its own turn finds out which.
        if state.threads[at].parked.as_ref().is_some_and(|it| matches!(it.then, Then::Vfork(_))) {
            state.wake(at, Then::Freed);
        }
    }
}

/// A thread that nobody let go on has made a call: its wait for the end of `vfork()` is over, or it
/// makes a call again that was interrupted.
pub fn take_in(state: &mut LoaderState, call: InterceptedCall) -> Option<usize> {
    let from = state.living(call.tid)?;
    let parked = state.threads[from].parked.as_ref();
    if parked.is_some_and(|it| !matches!(it.then, Then::Vfork(_) | Then::Freed)) {
        state.take_again(call);
    } else {
        state.park(from, call, Then::Handle, None);
        state.woken.push(from);
    }
    Some(from)
}

/// Changes the auxiliary vector: no vDSO, fixed random bytes, user 0. Linux 6.18,
/// include/uapi/linux/auxvec.h.
fn change_auxiliary(tid: i32) -> Result<(), Errno> {
    const IGNORE: u64 = 1;
    const RANDOM: u64 = 25;
    const SYSINFO_EHDR: u64 = 33;
    const IDS: std::ops::RangeInclusive<u64> = 11..=14;
    let start = sys::stack_pointer(tid)?;
    // Arguments and environment are pointers here; the strings lie behind. Six megabytes are the
    // most that the kernel lets through: Linux 6.18, fs/exec.c, `bprm_stack_limits()`.
    let mut stack = vec![0; 8 << 20];
    let got = sys::read_memory(tid, start, &mut stack)?;
    stack.truncate(got);
    let words: Vec<u64> = stack.chunks_exact(8).map(|it| u64_at(it, 0)).collect();
    let nul = |from: usize| words.iter().skip(from).position(|it| *it == 0).map(|it| it + from);
    let end = nul(1).and_then(|it| nul(it + 1)).ok_or(Errno(libc::ENOEXEC))?;
    for (n, pair) in words[end + 1..].chunks_exact(2).enumerate() {
        let entry = start + 8 * (end + 1 + 2 * n) as u64;
        match pair[0] {
            0 => break,
            SYSINFO_EHDR => sys::write_memory(tid, entry, &IGNORE.to_le_bytes())?,
            RANDOM => sys::write_memory(tid, pair[1], b"runslice-random.")?,
            id if IDS.contains(&id) => sys::write_memory(tid, entry + 8, &[0; 8])?,
            _ => {}
        }
    }
    Ok(())
}

/// Puts the pages of the `mmap()` at which a thread stands at an address: the thread does the call
/// again, with another argument.
///
/// # Errors
/// If the kernel allows no tracing.
pub fn place(state: &LoaderState, call: &InterceptedCall, address: u64) -> Result<(), Errno> {
    sys::watch(call.tid)?;
    sys::stop_watched(call.tid)?;
    state.listener.answer(call.id, RESTARTNOINTR)?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match sys::look(call.tid) {
            Watched::Nothing => std::thread::sleep(Duration::from_micros(50)),
            Watched::Gone(_) | Watched::Unknown => return Ok(()),
            _ => {
                let flags = call.args[3] | libc::MAP_FIXED_NOREPLACE as u64;
                sys::set_mmap(call.tid, address, flags)?;
                return Ok(sys::unwatch(call.tid)?);
            }
        }
    }
    Err(Errno(libc::EIO))
}

impl LoaderState {
    /// Whether a call comes in within that time.
    pub fn is_called(&self, patience: Duration) -> bool {
        self.look_out(None, patience).0
    }

    /// Waits for a call, or for the end of a process: which of the two there is.
    pub fn look_out(&self, process: Option<usize>, patience: Duration) -> (bool, bool) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut polled = vec![PollFd::new(self.listener.fd(), PollFlags::IN)];
        let of = process.map(|it| &self.processes[it].fd);
        polled.extend(of.map(|it| PollFd::new(it, PollFlags::IN)));
        let patience = Timespec {
            tv_sec: patience.as_secs().cast_signed(),
            tv_nsec: patience.subsec_nanos().into(),
        };
        if poll(&mut polled, Some(&patience)).is_err() {
            return (false, false);
        }
        let call = polled[0].revents();
        // Nobody is left who could call.
        let nobody = call.intersects(PollFlags::HUP | PollFlags::ERR);
        let ended = polled.get(1).is_some_and(|it| !it.revents().is_empty());
        (call.contains(PollFlags::IN), ended || nobody)
    }
}
