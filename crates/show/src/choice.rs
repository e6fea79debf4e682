//! Which scheduler for a load, and why: harm first.

mod decide;
pub mod fleet;
mod json;
mod sentences;
mod words;

use ask::choose::Chosen;
use maud::html;
use stats::compare::MetricRow;

use crate::Origin;
use crate::comparison::{self, Compared};
use crate::export::ExportTable;
use crate::page::{Fold, Page, headline, table as page_table};

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
    let is_short = decide::too_short(&chosen.field).is_some();
    let goals = chosen.field.goals.iter().enumerate();
    let tables = goals.filter(|_| !is_short).map(|(at, goal)| {
        let table = words::table(&chosen.field, &chosen.ranking, at);
        Fold {
            id: format!("tables{}", at + 1),
            title: goal.to_string(),
            body: page_table("Candidates", &table),
        }
    });
    page.folds.splice(..0, tables);
    let parts = said(chosen);
    let is_first = |part: &&SaidPart| FIRST.contains(&part.name);
    let verdict = parts
        .iter()
        .filter(is_first)
        .flat_map(|part| &part.sentences);
    let mut verdict: Vec<String> = verdict.cloned().collect();
    if let Some(first) = verdict.first() {
        verdict.splice(..1, headline(&first.clone()));
    }
    let rest = parts.iter().filter(|part| !is_first(part));
    let rest: Vec<&String> = rest.flat_map(|part| &part.sentences).collect();
    let fold = Fold {
        id: "rest".to_owned(),
        title: "What is not modelled, what would decide, and how to try it".to_owned(),
        body: html! { ul .t { @for line in rest { li { (line) } } } },
    };
    page.folds.insert(0, fold);
    Some(Page {
        title: format!("Which scheduler for {}?", chosen.field.load),
        verdict,
        tables: if is_short {
            Vec::new()
        } else {
            let overview = words::overview(chosen);
            let title = match chosen.field.plan() {
                Some(_) => "Candidates at each goal",
                None => "Candidates at each goal: the mean of all runs",
            };
            vec![page_table(title, &overview)]
        },
        ..page
    })
}

/// The parts of the answer that stand at the top of the page: what to do, harm, and gain.
const FIRST: [&str; 4] = ["verdict", "can_break", "gets_worse", "gain"];

/// A row for each candidate and goal.
#[must_use]
pub fn table(chosen: &Chosen, origin: &Origin) -> ExportTable {
    let (rows, words): (Vec<MetricRow>, Vec<&'static str>) = judged(chosen).into_iter().unzip();
    comparison::table_saying(&rows, &|at| Some(words[at]), origin)
}
