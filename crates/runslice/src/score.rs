//! How far the simulation of a recording can be trusted.

mod request;
mod trial;
mod words;
mod write;

use std::io::{self, Write};

use stats::compare::skill::{self, Row, Verdict};

use crate::exit::Status;
use crate::export::ExportTable;
use crate::report::Format;

pub use request::Score;

use trial::Held;

/// A score.
#[derive(Debug)]
pub struct Scored {
    held: Held,
    rows: Vec<Row>,
}

impl Scored {
    /// Simulates the first half of a recording, and holds it against the second.
    ///
    /// # Errors
    /// When a recording cannot be read, or the scheduler that it was recorded under is not known.
    pub fn make(request: &Score) -> anyhow::Result<Self> {
        let held = Held::make(request)?;
        let rows = skill::score(&held.trial, request.resample_seed);
        Ok(Self { held, rows })
    }

    /// Writes it.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(&self, format: Format, to: &mut dyn Write) -> io::Result<()> {
        match (format, format.export()) {
            (_, Some(form)) => self.table().write(form, to),
            (Format::Json, _) => write::json(&self.held, &self.rows, to),
            _ => words::write(&self.held, &self.rows, to),
        }
    }

    /// A row for each part.
    pub fn table(&self) -> ExportTable {
        write::table(&self.rows)
    }

    /// For which questions the recording can be trusted and for which not.
    pub fn answer(&self) -> String {
        words::answer(&self.held, &self.rows)
    }

    /// Inconclusive if nothing can be said of any part.
    pub fn status(&self) -> Status {
        let is_open = |row: &Row| matches!(row.verdict, Verdict::Undecided | Verdict::CannotBeTold);
        if self.rows.iter().all(is_open) {
            Status::Inconclusive
        } else {
            Status::Done
        }
    }
}
