//! How far the simulation of a recording can be trusted.

mod request;

use std::io::{self, Write};

use ask::score::Scored as Answer;
use show::score;

use crate::about::About;
use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::export::ExportTable;
use crate::look;
use crate::report::Format;

pub use request::Score;

/// A score.
#[derive(Debug)]
pub struct Scored(Answer);

impl Scored {
    /// Simulates the first half of a recording, and holds it against the second.
    ///
    /// # Errors
    /// When a recording cannot be read, or the scheduler that it was recorded under is not known.
    pub fn make(request: &Score) -> anyhow::Result<Self> {
        let answer = request.asked().ask(&COMPUTER);
        Ok(Self(answer.map_err(ask::Error::into_cause)?))
    }

    /// Writes it.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(&self, format: Format, to: &mut dyn Write) -> io::Result<()> {
        match (format, format.export()) {
            (_, Some(form)) => self.table().write(form, to),
            (Format::Json, _) => score::json(&self.0, &About::origin(), to),
            _ => score::text(&self.0, look::width(), to),
        }
    }

    /// A row for each part.
    pub fn table(&self) -> ExportTable {
        score::table(&self.0, &About::origin())
    }

    /// Inconclusive if nothing can be said of any part.
    pub fn status(&self) -> Status {
        if self.0.is_decided() {
            Status::Done
        } else {
            Status::Inconclusive
        }
    }
}
