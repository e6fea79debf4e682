//! Which scheduler for a load, and why: harm first.

mod json;
mod sentences;
mod words;

use ask::choose::Chosen;
use stats::compare::MetricRow;

use crate::Origin;
use crate::comparison::{self, Compared};
use crate::export::ExportTable;
use crate::page::{Fold, Page, table as page_table};

pub use json::write as json;
pub use sentences::{SaidPart, said};
pub use words::{command, write as text};

/// The answer as sentences, in their order.
#[must_use]
pub fn answer(chosen: &Chosen) -> Vec<String> {
    let parts = said(chosen).into_iter();
    parts.flat_map(|part| part.sentences).collect()
}

/// The comparisons as the answers have them: with widened intervals and no other verdicts.
fn judged(chosen: &Chosen) -> Vec<(MetricRow, &'static str)> {
    let (field, ranking) = (&chosen.field, &chosen.ranking);
    let mut rows = Vec::new();
    for goal in 0..field.goals.len() {
        for at in 1..field.sets.len() {
            if let Some(row) = ranking.row(field, at, goal)
                && let Some(said) = ranking.said[at].get(goal)
            {
                rows.push((said.judged(row), said.words()));
            }
        }
    }
    rows
}

/// The page; `None` if there is nothing to draw, because every candidate but the baseline failed.
#[must_use]
pub fn page(chosen: &Chosen, origin: &Origin) -> Option<Page> {
    let rows: Vec<MetricRow> = judged(chosen).into_iter().map(|it| it.0).collect();
    let compared = Compared {
        family: chosen.ranking.family.as_ref()?,
        rows: &rows,
        settings: &chosen.settings,
    };
    let mut page = comparison::page(&compared, origin);
    // The tables and the picture of a comparison have its verdicts, which know no error of the
    // simulation.
    page.folds.retain(|fold| fold.id == "method");
    page.pictures.retain(|chart| chart.id != "changes");
    let goals = chosen.field.goals.iter().enumerate();
    let tables = goals.map(|(at, goal)| {
        let table = words::table(&chosen.field, &chosen.ranking, at);
        Fold {
            id: format!("tables{}", at + 1),
            title: goal.to_string(),
            body: page_table("Candidates", &table),
        }
    });
    page.folds.splice(..0, tables);
    Some(Page {
        title: format!("Which scheduler for {}?", chosen.field.load),
        verdict: answer(chosen),
        answers: words::answers(chosen),
        ..page
    })
}

/// A row for each candidate and goal.
#[must_use]
pub fn table(chosen: &Chosen, origin: &Origin) -> ExportTable {
    let (rows, words): (Vec<MetricRow>, Vec<&'static str>) = judged(chosen).into_iter().unzip();
    comparison::table_saying(&rows, &|at| Some(words[at]), origin)
}
