//! Smaller runs that show the same, with a bar for those who wait.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ask::hunt::Like;
use ask::shrink::{Case, Effort, Shrunk};
use ask::words;
use explain::why::{Finding, Right};

use crate::computer::COMPUTER;
use crate::progress::Bar;
use crate::violation::Property;

/// Longest time for making a run smaller.
pub const LONGEST: Duration = Duration::from_secs(600);

/// The command that explains the run in `file` again, and its longest wait if that `is_asked`.
pub fn shows_again(file: &Path, is_asked: bool, right: Option<Right>) -> String {
    let file = file.display().to_string();
    let mut words = vec!["runslice", "explain", &file];
    if is_asked {
        words.extend(["--worst", "1"]);
    }
    if let Some(right) = right {
        words.extend(["--right", right.word()]);
    }
    words::command(&words)
}

/// Makes a run smaller, for at most [`LONGEST`]. It still ends as the dump does if one is given.
///
/// # Errors
/// The errors of the question.
pub fn shrink(
    of: (Case, Finding),
    (properties, like): (&[Property], Option<&Like>),
    jobs: NonZeroUsize,
) -> anyhow::Result<Shrunk> {
    let until = Instant::now() + LONGEST;
    let bar = Mutex::new(Bar::of_tries("smaller runs"));
    let bar = || bar.lock().unwrap_or_else(PoisonError::into_inner);
    let effort = Effort {
        properties,
        like,
        jobs,
        is_late: &|| Instant::now() >= until,
        tried: &|runs| bar().set(runs as u64),
    };
    let shrunk = ask::shrink::shrink(&COMPUTER, of, effort)?;
    bar().end();
    Ok(shrunk)
}
