//! How threads and processes of the program come to be: each is known before its first
//! instruction, and its maker stands still until it has made its first call.
//!
//! The kernel tells a tracer of a new thread while both it and its maker stand. A thread that was
//! noticed only at its first call would run beside its maker until then, and one that makes no
//! call would never be known.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::deaths::{self, PATIENCE, is_there};
use crate::state::{Errno, LoaderState};
use crate::sys::{self, InterceptedCall, Watched};

/// Outcome of a call that makes a thread or a process.
#[derive(Debug)]
pub enum Born {
    /// The kernel has refused it, and the maker goes on.
    Refused,
    /// The new thread stands at its first call; its maker stands until [`let_go`].
    Calls(InterceptedCall),
    /// The new process has ended before its first call; its maker goes on.
    Stillborn,
    /// The new thread makes no call.
    Silent,
    /// The maker's process has died, with this status if it is known.
    Died(Option<i32>),
}

/// Descriptors that must be free before a birth: the new process keeps one, and looks at it and at
/// others take one or two for a moment, then and later.
const FREE: usize = 4;

/// Lets the kernel do the call of a thread, and what it makes run up to its first call. The call
/// fails with `EAGAIN` if the supervisor has fewer than [`FREE`] descriptors left.
///
/// # Errors
/// If the kernel allows no tracing.
pub fn make(state: &mut LoaderState, at: usize, call: &InterceptedCall) -> Result<Born, Errno> {
    if !has_room(state.processes[0].real) {
        let _ = state.listener.answer(call.id, -i64::from(libc::EAGAIN));
        return Ok(Born::Refused);
    }
    match make_watched(state, at, call) {
        Err(errno) if state.is_dead(at, errno) => Ok(Born::Died(deaths::reap(call.tid))),
        made => made,
    }
}

/// Whether this process can have [`FREE`] more descriptors. They are tried with a process that
/// lives, and given back at once: nobody but this thread makes some for the program.
fn has_room(real: i32) -> bool {
    let tried: [_; FREE] = std::array::from_fn(|_| sys::pidfd_open(real));
    tried.iter().all(Result::is_ok)
}

fn make_watched(state: &mut LoaderState, at: usize, call: &InterceptedCall) -> Result<Born, Errno> {
    let maker = call.tid;
    sys::watch_births(maker)?;
    state.listener.go_on(call.id)?;
    let began = Instant::now();
    let child = loop {
        match sys::look_for_birth(maker) {
            (_, Some(child)) => break child,
            (Watched::Gone(status), _) => return Ok(Born::Died(Some(status))),
            (Watched::Unknown, _) => return Ok(Born::Died(None)),
            (Watched::Nothing, _) => {}
            // It was stopped below, or by a signal.
            (_, None) => {
                sys::unwatch(maker)?;
                return Ok(Born::Refused);
            }
        }
        // Nobody else runs: the maker has come to its next call, which nobody has taken yet, so
        // that a tracer can still stop it there. It will make that call again.
        if state.is_called(Duration::from_micros(200)) {
            let _ = sys::stop_watched(maker);
        }
        if began.elapsed() > PATIENCE {
            return Ok(Born::Silent);
        }
    };
    let born = first_call(state, at, (child, is_thread(call)));
    if !matches!(born, Ok(Born::Calls(_))) {
        let_go(maker);
    }
    born
}

/// The number of the process of a thread.
///
/// # Errors
/// If the thread has ended.
pub fn process_of(tid: i32) -> io::Result<i32> {
    let text = fs::read_to_string(format!("/proc/{tid}/status"))?;
    let real = text.lines().find_map(|it| it.strip_prefix("Tgid:"));
    Ok(real.and_then(|it| it.trim().parse().ok()).unwrap_or(tid))
}

/// Whether a call makes a thread, and no process.
pub fn is_thread(call: &InterceptedCall) -> bool {
    call.nr == libc::SYS_clone && call.args[0] & libc::CLONE_THREAD as u64 != 0
}

/// Lets the maker go on.
pub fn let_go(maker: i32) {
    // It may have been killed meanwhile.
    let _ = sys::unwatch(maker);
}

/// Lets a new process or thread run to its first call.
fn first_call(
    state: &mut LoaderState,
    at: usize,
    (child, is_thread): (i32, bool),
) -> Result<Born, Errno> {
    let began = Instant::now();
    loop {
        match sys::look(child) {
            Watched::Nothing => std::thread::sleep(Duration::from_micros(20)),
            Watched::Gone(_) | Watched::Unknown => return Ok(Born::Stillborn),
            _ => break,
        }
        if began.elapsed() > PATIENCE {
            return Ok(Born::Silent);
        }
    }
    let maker = &state.processes[state.threads[at].process];
    // A thread has no descriptor of its own.
    let (real, own) = if is_thread {
        (maker.real, None)
    } else {
        (child, Some(sys::pidfd_open(child)?))
    };
    if sys::unwatch(child).is_err() {
        deaths::reap(child);
        return Ok(Born::Stillborn);
    }
    while began.elapsed() < PATIENCE {
        if !look_out(state, at, own.as_ref()) {
            if own.as_ref().is_some_and(is_over) {
                return Ok(Born::Stillborn);
            }
            let process = &state.processes[state.threads[at].process].fd;
            if own.is_none() && is_over(process) {
                return Ok(Born::Died(None));
            }
            // A filter of the program's own has ended the thread alone.
            if !is_there(real, child) {
                return Ok(Born::Stillborn);
            }
            continue;
        }
        let Some(call) = state.listener.receive()? else {
            continue;
        };
        if call.tid == child {
            return Ok(Born::Calls(call));
        }
        // A call that was interrupted and is made again.
        state.take_again(call);
    }
    Ok(Born::Silent)
}

/// Waits for a call, or for the end of the new process or its maker's: whether there is a call.
fn look_out(state: &LoaderState, at: usize, own: Option<&OwnedFd>) -> bool {
    let maker = &state.processes[state.threads[at].process].fd;
    let end = own.unwrap_or(maker);
    let mut polled = [
        PollFd::new(state.listener.fd(), PollFlags::IN),
        PollFd::new(end, PollFlags::IN),
    ];
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    poll(&mut polled, Some(&patience)).is_ok() && polled[0].revents().contains(PollFlags::IN)
}

fn is_over(process: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(process, PollFlags::IN)];
    let none = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut polled, Some(&none)).is_ok_and(|found| found > 0)
}
