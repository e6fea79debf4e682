//! Smaller runs that show the same, with a bar for those who wait.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ask::like::Like;
use ask::shrink::{Case, Effort, Shrunk};
use explain::why::Finding;

use crate::computer::COMPUTER;
use crate::progress::Bar;
use crate::violation::Property;

/// Longest time for making a run smaller.
pub const LONGEST: Duration = Duration::from_secs(600);

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
