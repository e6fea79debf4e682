//! Long work on a thread of its own, while Python goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use runslice::library;

/// How often it is looked whether the user has pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);
/// The stack of a main thread: a workload may be nested.
const STACK: usize = 8 << 20;

/// Does `work` on another thread, without Python's lock.
///
/// # Errors
/// When a signal's handler raises, as that of Ctrl-C does. Then the work is given up: what it
/// simulates ends within some milliseconds, and its result is dropped.
pub fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let (to, mut from) = mpsc::channel();
    let flag = Arc::clone(&cancelled);
    let thread = thread::Builder::new().name("runslice".to_owned());
    let thread = thread.stack_size(STACK).spawn(move || {
        // Nobody waits any more after a signal.
        let _ = to.send(library::cancellable(&flag, work));
    })?;
    loop {
        let came;
        (came, from) = py.detach(move || (from.recv_timeout(LOOK), from));
        match came {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals() {
                    cancelled.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            // A broken invariant of ours goes on as it would without a thread.
            Err(RecvTimeoutError::Disconnected) => match py.detach(|| thread.join()) {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("it has sent its result"),
            },
        }
    }
}
