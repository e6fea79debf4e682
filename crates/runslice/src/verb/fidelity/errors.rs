//! The table of errors of ratios, which is a part of the program.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use ask::choose::errors::{ErrorTable, LoadClass};
use ask::fidelity::Fidelity;

use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::output;

/// Puts the loads of these plays into the table, in the place of those of the same name, seed,
/// kernel and CPUs; only those of a class, if it is given.
///
/// # Errors
/// When the table or a play cannot be read, or the table not be written.
pub fn write(
    question: &Fidelity<'_>,
    path: &Path,
    class: Option<LoadClass>,
) -> anyhow::Result<Status> {
    let text = fs::read_to_string(path).map_err(model::CannotRead::at(path.display()))?;
    let table: ErrorTable =
        serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let mut found = question.ratios(&COMPUTER).map_err(ask::Error::into_cause)?;
    found.retain(|it| class.is_none_or(|class| it.class == class));
    let status = if found.is_empty() {
        Status::Inconclusive
    } else {
        Status::Done
    };
    let table = table.with(found).text()?;
    let mut to = output::open(Some(path))?;
    to.write_all(table.as_bytes())?;
    to.flush()?;
    Ok(status)
}
