//! `runslice score`: how far the simulation of a recording can be trusted.

mod request;
mod trial;
mod words;
mod write;

use std::io::Write as _;

use stats::compare::skill::{self, Verdict};

use crate::exit::Status;
use crate::output;
use crate::report::Format;

pub use request::Score;

use trial::Held;

/// Simulates the first half of a recording, and holds it against the second.
///
/// # Errors
/// When a recording cannot be read, or the scheduler that it was recorded under is not known.
pub fn run(request: &Score) -> anyhow::Result<Status> {
    let format = request.check()?;
    let held = Held::make(request)?;
    let rows = skill::score(&held.trial, request.resample_seed);
    let mut to = output::open_form(format.export(), request.to.output.as_deref())?;
    match (format, format.export()) {
        (_, Some(form)) => write::table(&rows).write(form, &mut to)?,
        (Format::Json, _) => write::json(&held, &rows, &mut to)?,
        _ => words::write(&held, &rows, &mut to)?,
    }
    to.flush()?;
    let is_open =
        |row: &skill::Row| matches!(row.verdict, Verdict::Undecided | Verdict::CannotBeTold);
    Ok(match rows.iter().all(is_open) {
        true => Status::Inconclusive,
        false => Status::Done,
    })
}
