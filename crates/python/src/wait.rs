//! Questions that are asked with what this computer lends: their notes become Python's warnings,
//! and long work goes on while Python does.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ask::{Note, Services};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use runslice::{COMPUTER, Sources};

use crate::errors::raise;

/// How often it is looked whether the user has pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);
/// The stack of a main thread: a workload may be nested.
const STACK: usize = 8 << 20;

/// What came of work, and what is to be said besides.
type Noted<T> = (anyhow::Result<T>, Vec<Note>);

/// Does `work` until it is done or `cancelled` becomes true.
fn noted<T>(
    cancelled: &AtomicBool,
    work: impl FnOnce(&Services<'_>) -> anyhow::Result<T>,
) -> Noted<T> {
    let notes = Mutex::new(Vec::new());
    let hears = |note: &Note| {
        let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(note.clone());
    };
    let is_cancelled = || cancelled.load(Ordering::Relaxed);
    // A session goes on while its user changes sources.
    let sources = Sources::new();
    let made = work(&Services {
        hears: Some(&hears),
        is_cancelled: Some(&is_cancelled),
        compiler: Some(&sources),
        ..COMPUTER
    });
    (
        made,
        notes.into_inner().unwrap_or_else(PoisonError::into_inner),
    )
}

/// The value of an answer; what the command line says on standard error becomes warnings.
fn with_notes<T>(py: Python<'_>, (made, notes): Noted<T>) -> PyResult<T> {
    let value = made.map_err(raise)?;
    let category = py.get_type::<PyUserWarning>();
    for note in notes {
        // A message of ours has no zero byte but by accident.
        let line = runslice::line(&note.text).replace('\0', "");
        PyErr::warn(py, &category, &CString::new(line).unwrap_or_default(), 3)?;
    }
    Ok(value)
}

/// Asks a question whose answer takes no time, without Python's lock.
///
/// # Errors
/// Those of `work`.
pub fn at_once<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Services<'_>) -> anyhow::Result<T> + Send,
) -> PyResult<T> {
    let noted = py.detach(|| noted(&AtomicBool::new(false), work));
    with_notes(py, noted)
}

/// Asks a question on another thread, without Python's lock.
///
/// # Errors
/// Those of `work`, and when a signal's handler raises, as that of Ctrl-C does. Then the work is
/// given up: what it simulates ends within some milliseconds, and its result is dropped.
pub fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Services<'_>) -> anyhow::Result<T> + Send + 'static,
) -> PyResult<T> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let (to, mut from) = mpsc::channel();
    let flag = Arc::clone(&cancelled);
    let thread = thread::Builder::new().name("runslice".to_owned());
    let thread = thread.stack_size(STACK).spawn(move || {
        // Nobody waits any more after a signal.
        let _ = to.send(noted(&flag, work));
    })?;
    loop {
        let came;
        (came, from) = py.detach(move || (from.recv_timeout(LOOK), from));
        match came {
            Ok(noted) => return with_notes(py, noted),
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
