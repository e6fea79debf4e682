//! `runslice score`: how far the simulation of a recording can be trusted.

use std::io::Write as _;

use crate::exit::Status;
use crate::output;
use crate::score::{Score, Scored};

/// Scores a recording.
///
/// # Errors
/// When a recording cannot be read, or the scheduler that it was recorded under is not known.
pub fn run(request: &Score) -> anyhow::Result<Status> {
    let format = request.check()?;
    let scored = Scored::make(request)?;
    let mut to = output::open_form(format.export(), request.to.output.as_deref())?;
    scored.write(format, &mut to)?;
    to.flush()?;
    Ok(scored.status())
}
