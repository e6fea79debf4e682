//! The one stop at exec: what would tell a program of the host's time and chance is taken out of
//! what the kernel gives it.

use std::time::{Duration, Instant};

use crate::state::{Errno, State, Then, u64_at};
use crate::sys::{self, Call, Watched};

/// How long the host may take for what is done without the program.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What came of an `execve()`.
pub enum Executed {
    /// The other program stands at its first instruction, and was let go.
    Done,
    /// It was refused, and the thread has made its next call.
    Refused(Call),
    /// The process has died, with this status if it is the program itself.
    Died(Option<i32>),
}

/// Lets the kernel execute another program.
///
/// # Errors
/// If the kernel allows no tracing.
pub fn exec(state: &mut State, at: usize, call: &Call) -> Result<Executed, Errno> {
    let (tid, real) = (call.tid, state.processes[state.threads[at].process].real);
    sys::watch_exec(tid)?;
    state.listener.go_on(call.id)?;
    let began = Instant::now();
    loop {
        // A thread that is not the first takes the number of the first.
        match sys::look(real) {
            Watched::Exec => break,
            Watched::Gone(status) => return Ok(Executed::Died(Some(status))),
            Watched::Stopped => sys::unwatch(real)?,
            Watched::Nothing => {}
        }
        if state.is_called(Duration::from_millis(1))
            && let Some(next) = state.listener.receive()?
        {
            if next.tid != tid {
                // The parent in `vfork()` has gone on already.
                take_in(state, next);
                continue;
            }
            // It stands as soon as it is answered: see `State::settle`.
            sys::stop_watched(tid)?;
            state.threads[at].watched = true;
            return Ok(Executed::Refused(next));
        }
        if began.elapsed() > PATIENCE {
            return Ok(Executed::Died(None));
        }
    }
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
    let changed = change_auxiliary(real);
    release(state, at);
    sys::unwatch(real)?;
    changed?;
    Ok(Executed::Done)
}

/// A thread that waited for the end of `vfork()` goes on up to its next call.
pub fn release(state: &mut State, child: usize) {
    let waits = state.parked(|it| matches!(it.then, Then::Vfork(of) if of == child));
    for at in waits {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if !state.is_called(Duration::from_millis(10)) {
                continue;
            }
            let Ok(Some(call)) = state.listener.receive() else {
                continue;
            };
            if take_in(state, call) == Some(at) {
                break;
            }
        }
    }
}

/// A thread that nobody let go on has made a call: its wait is over.
pub fn take_in(state: &mut State, call: Call) -> Option<usize> {
    let from = state.living(call.tid)?;
    state.park(from, call, Then::Handle, None);
    state.woken.push(from);
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
    // Arguments and environment are pointers here; the strings lie behind. A megabyte of pointers
    // is the most that the kernel lets through.
    let mut stack = vec![0; 2 << 20];
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
pub fn place(state: &State, call: &Call, address: u64) -> Result<(), Errno> {
    /// The kernel does the call again, whatever handlers there are. Linux 6.18,
    /// include/linux/errno.h.
    const RESTARTNOINTR: i64 = -513;
    sys::watch_exec(call.tid)?;
    sys::stop_watched(call.tid)?;
    state.listener.answer(call.id, RESTARTNOINTR)?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match sys::look(call.tid) {
            Watched::Nothing => std::thread::sleep(Duration::from_micros(50)),
            Watched::Gone(_) => return Ok(()),
            Watched::Exec | Watched::Stopped => {
                let flags = call.args[3] | libc::MAP_FIXED_NOREPLACE as u64;
                sys::set_mmap(call.tid, address, flags)?;
                return Ok(sys::unwatch(call.tid)?);
            }
        }
    }
    Err(Errno(libc::EIO))
}

impl State {
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

    /// Lets go of a thread whose `execve()` was refused, now that it was answered.
    pub fn settle(&mut self, at: usize) {
        let thread = &mut self.threads[at];
        if !std::mem::take(&mut thread.watched) {
            return;
        }
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            match sys::look(thread.tid) {
                Watched::Nothing => std::thread::sleep(Duration::from_micros(50)),
                Watched::Gone(_) => return,
                Watched::Exec | Watched::Stopped => {
                    let _ = sys::unwatch(thread.tid);
                    return;
                }
            }
        }
    }
}
