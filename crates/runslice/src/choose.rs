//! Which scheduler is best for a load.

mod request;

use std::io::{self, Write};

use ask::choose::Chosen as Answer;
use show::choice;
use workload::Workload;

use crate::about::About;
use crate::comparison::Form;
use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::export::ExportTable;
use crate::look;
use crate::page::Page;

pub use request::{Choose, Given};

/// What was chosen, and why.
#[derive(Debug)]
pub struct Chosen(Answer);

impl Chosen {
    /// Simulates the candidates under `load`, or under that of the request, and ranks them.
    ///
    /// # Errors
    /// When a candidate, the load or a goal is wrong, or the baseline fails.
    pub fn make(request: &Choose, given: &[Given], load: Option<Workload>) -> anyhow::Result<Self> {
        let answer = request.asked(given, load)?.ask(&COMPUTER);
        Ok(Self(answer.map_err(ask::Error::into_cause)?))
    }

    /// Writes it.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(&self, form: Form, to: &mut dyn Write) -> io::Result<()> {
        let page = self.page().filter(|_| form == Form::Html);
        match (form.export(), page) {
            (_, Some(page)) => page.write(to),
            (Some(export), _) => self.table().write(export, to),
            _ if form == Form::Json => choice::json(&self.0, &About::origin(), to),
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

    /// The answer in sentences.
    pub fn answer(&self) -> Vec<String> {
        choice::answer(&self.0)
    }

    /// The best candidate, if one is better than the baseline, and how it is run for real.
    pub fn winner(&self) -> Option<(&str, String)> {
        let winner = self.0.ranking.winner?;
        Some((self.0.field.name(winner), choice::command(&self.0, winner)))
    }

    /// Inconclusive if the runs do not decide.
    pub fn status(&self) -> Status {
        if self.0.ranking.is_decided() {
            Status::Done
        } else {
            Status::Inconclusive
        }
    }
}
