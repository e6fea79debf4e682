//! Which scheduler is best for a load, and why.

mod json;
mod words;

use ask::choose::Chosen;

use crate::Origin;
use crate::comparison::{self, Compared};
use crate::export::ExportTable;
use crate::page::Page;

pub use json::write as json;
pub use words::{answer, command, write as text};

/// The page; `None` if there is nothing to draw, because every candidate but the baseline failed.
#[must_use]
pub fn page(chosen: &Chosen, origin: &Origin) -> Option<Page> {
    let compared = Compared {
        family: chosen.ranking.family.as_ref()?,
        rows: &chosen.ranking.rows,
        settings: &chosen.settings,
    };
    Some(Page {
        title: format!("Which scheduler is best for {}?", chosen.field.load),
        verdict: answer(chosen),
        ..comparison::page(&compared, origin)
    })
}

/// A row for each candidate and goal.
#[must_use]
pub fn table(chosen: &Chosen, origin: &Origin) -> ExportTable {
    comparison::table_of(&chosen.ranking.rows, origin)
}
