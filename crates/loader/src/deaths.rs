//! Which threads of the program are dying: by a signal, or by a filter of system calls that the
//! program has set itself.
//!
//! A thread may be dying at each step that the supervisor makes for it. That is the program's own
//! doing and no error: the thread is found to have ended, and the run goes on.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use crate::processes::has_signal;
use crate::state::{Errno, LoaderState};
use crate::sys::{self, Watched};

/// How long the host may take for what is done without the program.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Signals that end no process by themselves, with those that stop one: Linux 6.18,
/// include/linux/signal.h.
const HARMLESS: [i32; 8] = [
    libc::SIGCHLD,
    libc::SIGCONT,
    libc::SIGURG,
    libc::SIGWINCH,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
];

impl LoaderState {
    /// Gives a thread the signals that have come for it. Whether one of them ends its process: then
    /// the call at which it stands must not be done, since the kernel would do it or not by chance.
    pub fn give_signals(&mut self, at: usize) -> bool {
        let thread = &mut self.threads[at];
        let (real, tid) = (self.processes[thread.process].real, thread.tid);
        let mut ends = false;
        for signal in std::mem::take(&mut thread.signals) {
            let is_open = ["SigIgn:", "SigCgt:", "SigBlk:"]
                .iter()
                .all(|set| !has_signal(tid, set, signal));
            ends |= signal == libc::SIGKILL || is_open && !HARMLESS.contains(&signal);
            // It may have died of another one.
            let _ = sys::signal_thread(real, tid, signal);
        }
        ends
    }

    /// Whether a step for a thread has failed because the thread is dying: it has left its call, or
    /// it stands no more. The kernel refuses to trace one that has ended with `EPERM`.
    pub fn is_dead(&self, at: usize, Errno(errno): Errno) -> bool {
        matches!(errno, libc::ESRCH | libc::ENOENT) || self.is_gone(at)
    }

    /// Whether a thread has ended.
    pub fn is_gone(&self, at: usize) -> bool {
        let thread = &self.threads[at];
        !is_there(self.processes[thread.process].real, thread.tid)
    }
}

/// Whether a thread has not ended yet; the first of a process stays as a zombie.
pub fn is_there(real: i32, tid: i32) -> bool {
    match fs::read_to_string(format!("/proc/{real}/task/{tid}/stat")) {
        Ok(text) => {
            let state = text.rsplit_once(") ").map_or("", |it| it.1);
            !state.starts_with(['Z', 'X'])
        }
        Err(error) => {
            let gone = error.raw_os_error() == Some(libc::ESRCH);
            !gone && error.kind() != io::ErrorKind::NotFound
        }
    }
}

/// Waits for the end of a thread that dies while it is watched: its status, unless another process
/// is to be told that. A tracer that did not wait would keep the whole process from its end.
pub fn reap(tid: i32) -> Option<i32> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match sys::look(tid) {
            Watched::Gone(status) => return Some(status),
            Watched::Unknown => return None,
            Watched::Nothing => std::thread::sleep(Duration::from_micros(50)),
            // It stood there before it was killed.
            _ => drop(sys::unwatch(tid)),
        }
    }
    None
}
