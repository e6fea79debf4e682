//! Which scheduler is best for a load.

mod request;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ask::Services;
use ask::choose::fleet::{self, Fleet};
use ask::choose::{Choose as Question, Chosen as Answer};
use show::{Origin, choice};

use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::export::ExportTable;
use crate::look;
use crate::page::Page;
use crate::report::Format;

pub use request::Choose;

/// What was chosen, and why.
#[derive(Debug)]
pub enum Chosen {
    /// For one load.
    One(Box<Answer>),
    /// For many machines.
    Fleet(Fleet),
}

impl Chosen {
    /// Simulates the candidates under the load, and ranks them; of a folder under each recording in
    /// it.
    ///
    /// # Errors
    /// When a candidate, the load or a goal is wrong, or the baseline fails.
    pub fn ask(question: &Question, services: &Services<'_>) -> anyhow::Result<Self> {
        let answer = match question.load.folder(services) {
            Some(folder) => Fleet::ask(question, &recordings(folder)?, services).map(Self::Fleet),
            None => question.ask(services).map(|it| Self::One(Box::new(it))),
        };
        answer.map_err(ask::Error::into_cause)
    }

    /// Writes it.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(&self, form: Format, origin: &Origin, to: &mut dyn Write) -> io::Result<()> {
        let page = self.page(origin).filter(|_| form == Format::Html);
        match (form.export(), page, self) {
            (_, Some(page), _) => page.write(to),
            (Some(export), ..) => self.table(origin).write(export, to),
            (.., Self::One(it)) if form == Format::Json => choice::json(it, origin, to),
            (.., Self::Fleet(it)) if form == Format::Json => choice::fleet::json(it, origin, to),
            (.., Self::One(it)) => choice::text(it, look::width(), to),
            (.., Self::Fleet(it)) => choice::fleet::write(it, look::width(), to),
        }
    }

    /// The page; `None` if there is nothing to draw, because every candidate but the baseline
    /// failed.
    #[must_use]
    pub fn page(&self, origin: &Origin) -> Option<Page> {
        match self {
            Self::One(it) => choice::page(it, origin),
            Self::Fleet(it) => Some(choice::fleet::page(it, origin)),
        }
    }

    /// A row for each candidate and goal, and for each machine of many.
    #[must_use]
    pub fn table(&self, origin: &Origin) -> ExportTable {
        match self {
            Self::One(it) => choice::table(it, origin),
            Self::Fleet(it) => choice::fleet::table(it, origin),
        }
    }

    /// Inconclusive if the runs do not decide.
    #[must_use]
    pub fn status(&self) -> Status {
        let is_decided = match self {
            Self::One(it) => it.is_decided(),
            Self::Fleet(it) => it.is_decided(),
        };
        if is_decided {
            Status::Done
        } else {
            Status::Inconclusive
        }
    }
}

/// The recordings of a folder.
///
/// # Errors
/// When it cannot be read, or has none.
fn recordings(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = model::CannotRead::at(folder.display());
    let entries = fs::read_dir(folder).map_err(&cannot)?;
    let files: io::Result<Vec<_>> = entries.map(|it| Ok(it?.path())).collect();
    Ok(fleet::recordings(
        &COMPUTER,
        folder,
        files.map_err(&cannot)?,
    )?)
}
