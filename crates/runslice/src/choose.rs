//! Which scheduler is best for a load.

mod request;

use std::io::{self, Write};

use ask::choose::Chosen as Answer;
use show::choice;

use crate::about::About;
use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::export::ExportTable;
use crate::look;
use crate::page::Page;
use crate::report::Format;

pub use request::Choose;

/// What was chosen, and why.
#[derive(Debug)]
pub struct Chosen(Answer);

impl Chosen {
    /// Simulates the candidates under the load, and ranks them.
    ///
    /// # Errors
    /// When a candidate, the load or a goal is wrong, or the baseline fails.
    pub fn make(request: &Choose) -> anyhow::Result<Self> {
        let answer = request.asked()?.ask(&COMPUTER);
        Ok(Self(answer.map_err(ask::Error::into_cause)?))
    }

    /// Writes it.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(&self, form: Format, to: &mut dyn Write) -> io::Result<()> {
        let page = self.page().filter(|_| form == Format::Html);
        match (form.export(), page) {
            (_, Some(page)) => page.write(to),
            (Some(export), _) => self.table().write(export, to),
            _ if form == Format::Json => choice::json(&self.0, &About::origin(), to),
            _ => choice::text(&self.0, look::width(), to),
        }
    }

    /// The page; `None` if there is nothing to draw, because every candidate but the baseline
    /// failed.
    pub fn page(&self) -> Option<Page> {
        choice::page(&self.0, &About::origin())
    }

    /// A row for each candidate and goal.
    pub fn table(&self) -> ExportTable {
        choice::table(&self.0, &About::origin())
    }

    /// Inconclusive if the runs do not decide.
    pub fn status(&self) -> Status {
        if self.0.is_decided() {
            Status::Done
        } else {
            Status::Inconclusive
        }
    }
}
