//! Which scheduler is best for a load.

mod json;
mod rank;
mod request;
mod runs;
mod words;

use std::io::{self, Write};

use anyhow::bail;
use model::Advised;
use stats::compare::Settings;
use workload::Workload;

use crate::comparison::{self, Compared, Form};
use crate::exit::Status;
use crate::export::ExportTable;
use crate::page::Page;

pub use request::{Choose, Given};

use rank::Ranking;
use runs::Field;

/// What was chosen, and why.
#[derive(Debug)]
pub struct Chosen {
    field: Field,
    ranking: Ranking,
    settings: Settings,
}

impl Chosen {
    /// Simulates the candidates under `load`, or under that of the request, and ranks them.
    ///
    /// # Errors
    /// When a candidate, the load or a goal is wrong, or the baseline fails.
    pub fn make(request: &Choose, given: &[Given], load: Option<Workload>) -> anyhow::Result<Self> {
        let settings = Settings::default();
        let candidates = request.candidates(given)?;
        let field = Field::run(request, (candidates, load), &settings)?;
        if let Some(failure) = &field.failures[0] {
            bail!(Advised::new(
                format!(
                    "the baseline {} fails under this load ({failure})",
                    field.name(0)
                ),
                "choose another with --baseline"
            ));
        }
        let ranking = Ranking::of(&field, request.not_modelled, &settings)?;
        Ok(Self {
            field,
            ranking,
            settings,
        })
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
            _ if form == Form::Json => json::write(&self.field, &self.ranking, to),
            _ => words::write(&self.field, &self.ranking, to),
        }
    }

    /// The page; `None` if there is nothing to draw, because every candidate but the baseline
    /// failed.
    pub fn page(&self) -> Option<Page> {
        let mut page = comparison::page(&Compared {
            family: self.ranking.family.as_ref()?,
            rows: &self.ranking.rows,
            settings: &self.settings,
        });
        page.title = format!("Which scheduler is best for {}?", self.field.load);
        page.verdict = self.answer();
        Some(page)
    }

    /// A row for each candidate and goal.
    pub fn table(&self) -> ExportTable {
        comparison::table_of(&self.ranking.rows)
    }

    /// The answer in sentences.
    pub fn answer(&self) -> Vec<String> {
        words::answer(&self.field, &self.ranking)
    }

    /// The best candidate, if one is better than the baseline, and how it is run for real.
    pub fn winner(&self) -> Option<(&str, String)> {
        let winner = self.ranking.winner?;
        Some((self.field.name(winner), words::command(&self.field, winner)))
    }

    /// Inconclusive if the runs do not decide.
    pub fn status(&self) -> Status {
        if self.ranking.is_decided() {
            Status::Done
        } else {
            Status::Inconclusive
        }
    }
}
