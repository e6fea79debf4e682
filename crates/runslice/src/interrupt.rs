//! A signal that ends the program: the work is given up, and one line says what is kept and which
//! command goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::about::About;
use crate::exit::Status;
use crate::say::say;

/// What the same command does with a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It writes behind what is there.
    Adds,
    /// It writes a new one.
    Begins,
}

/// What the work that is done leaves behind.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    /// So many of these things, made by this call, in a folder that the same command goes on in.
    Folder {
        things: &'static str,
        folder: PathBuf,
        made: u64,
    },
    /// What was recorded until the signal, and what the same command does.
    File(PathBuf, Again),
    /// Results of the time until the signal, written where results go.
    Results,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);
/// Whether a signal came.
static HAS_COME: AtomicBool = AtomicBool::new(false);
/// Whether the line was said.
static IS_SAID: AtomicBool = AtomicBool::new(false);
/// Whether nothing is to be given up before the end.
static IS_SERVER: AtomicBool = AtomicBool::new(false);

/// How long the work has to end by itself: it may have files to remove.
const GRACE: Duration = Duration::from_secs(2);

/// Says that `folder` keeps each of the things that are done, and that the same command goes on
/// from there.
pub fn keeps(things: &'static str, folder: &Path) {
    set(Kept::Folder {
        things,
        folder: folder.to_owned(),
        made: 0,
    });
}

/// Says that `file` keeps what was recorded until the signal, and what the same command does with
/// it.
pub fn keeps_file(file: &Path, again: Again) {
    set(Kept::File(file.to_owned(), again));
}

/// Says that results of the time until the signal are written, and that the same command begins
/// anew.
pub fn keeps_results() {
    set(Kept::Results);
}

/// Counts so many more of the things of [`keeps`].
pub fn made(more: u64) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Kept::Folder { made, .. }) = &mut *kept {
        *made += more;
    }
}

/// Leaves the line to another program that hears the same signal.
pub fn leave_to_others() {
    IS_SAID.store(true, Ordering::Relaxed);
}

/// From here on a signal ends the process at once and without a word: it is a server, for which
/// that is the usual end.
pub fn end_at_once() {
    leave_to_others();
    IS_SERVER.store(true, Ordering::Relaxed);
}

fn set(kept: Kept) {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
}

/// Listens to the signals of Ctrl-C and of `kill` from here on; once in the life of a process, and
/// only in the program: in a library they belong to whoever calls it. A verb that must put a kernel
/// back catches them itself (`live::process::catch_signals`); the line is this one there, too.
pub fn listen() {
    let ignored = ignored();
    let heard: Vec<i32> = [SIGINT, SIGTERM]
        .into_iter()
        .filter(|signal| ignored >> (signal - 1) & 1 == 0)
        .collect();
    let Ok(mut signals) = Signals::new(heard) else {
        return;
    };
    let listener = move || {
        let mut has_come = false;
        for _ in signals.forever() {
            if has_come || IS_SERVER.load(Ordering::Relaxed) {
                end();
            }
            has_come = true;
            HAS_COME.store(true, Ordering::Relaxed);
            // Nobody waits for it: the process ends before, or by it.
            drop(thread::spawn(|| {
                thread::sleep(GRACE);
                end();
            }));
        }
    };
    // Without a thread a signal is not heard, as any that is lost.
    drop(
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(listener),
    );
}

/// The signals that whoever started this process wants it to ignore, as `nohup` and a shell's `&`
/// do: signal n as bit n - 1.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    mask.unwrap_or(0)
}

fn end() {
    say_once();
    std::process::exit(Status::Interrupted as i32);
}

/// Whether a signal came: then all work is given up.
pub fn has_come() -> bool {
    HAS_COME.load(Ordering::Relaxed)
}

/// Says the line, if that was not done yet.
pub fn say_once() {
    if !IS_SAID.swap(true, Ordering::Relaxed) {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        say("runslice", &line(kept.as_ref(), &About::command()));
    }
}

fn line(kept: Option<&Kept>, command: &str) -> String {
    match kept {
        None => format!("interrupted: nothing is kept; `{command}` begins anew"),
        Some(Kept::File(file, again)) => {
            let does = match again {
                Again::Adds => "goes on behind it",
                Again::Begins => "records anew",
            };
            let file = file.display();
            format!("interrupted: what was recorded is kept in {file}; `{command}` {does}")
        }
        Some(Kept::Results) => {
            format!("interrupted: the results are of the time until then; `{command}` begins anew")
        }
        Some(Kept::Folder {
            things,
            folder,
            made,
        }) => {
            let what = match made {
                0 => format!("no new {things}; what was there before is kept"),
                made => format!("the {things} that are done are kept, {made} of this call"),
            };
            let folder = folder.display();
            format!("interrupted: {what}, in {folder}; `{command}` goes on from there")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_what_is_kept_and_which_command_goes_on() {
        let folder = |made| Kept::Folder {
            things: "runs",
            folder: PathBuf::from("s.results"),
            made,
        };
        let said = |kept: Option<&Kept>| line(kept, "runslice x");
        let lines = [
            (None, "nothing is kept; `runslice x` begins anew"),
            (
                Some(folder(3)),
                "the runs that are done are kept, 3 of this call, in s.results; \
                 `runslice x` goes on from there",
            ),
            (
                Some(folder(0)),
                "no new runs; what was there before is kept, in s.results; \
                 `runslice x` goes on from there",
            ),
            (
                Some(Kept::File("a.txt".into(), Again::Adds)),
                "what was recorded is kept in a.txt; `runslice x` goes on behind it",
            ),
            (
                Some(Kept::File("a.dat".into(), Again::Begins)),
                "what was recorded is kept in a.dat; `runslice x` records anew",
            ),
            (
                Some(Kept::Results),
                "the results are of the time until then; `runslice x` begins anew",
            ),
        ];
        for (kept, want) in lines {
            assert_eq!(said(kept.as_ref()), format!("interrupted: {want}"));
        }
    }

    #[test]
    fn a_signal_that_this_process_does_not_ignore_is_heard() {
        // The kernel lets nobody ignore this one.
        const SIGKILL: i32 = 9;
        assert_eq!(ignored() >> (SIGKILL - 1) & 1, 0);
    }
}
