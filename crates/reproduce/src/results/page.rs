//! What came of experiments, as one page.

use std::io::{self, Write};

use crate::experiments::JudgedClaim;
use crate::experiments::cells::ExperimentResults;
use crate::experiments::claim::{ClaimVerdict, Rules};
use crate::experiments::experiment::Experiment;
use ask::words::counted;
use maud::{Markup, html};
use runslice::door;
use show::figure::{Body, Chart, Join};
use show::page::{self, Fold, figure};
use show::table::Table;

use super::human::{as_published, part, summary, table};
use super::{figures, places, sides};

/// Everything that one kind of machine has to show.
pub struct Page<'a> {
    /// Its name: `sim`, `vm`, `host`.
    pub machine: &'static str,
    /// What was rerun.
    pub experiments: &'a [Experiment],
    /// What it gave, one entry an experiment.
    pub results: &'a [ExperimentResults],
    /// What it says.
    pub judged: Vec<JudgedClaim<'a>>,
    /// The figures of each experiment.
    pub charts: Vec<Vec<Chart>>,
    /// How it was judged.
    pub rules: &'a Rules,
    /// Fingerprint of the calibration.
    pub calibration: &'a str,
}

const fn class(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Reproduced => "v reproduced",
        ClaimVerdict::SameDirection => "v same-direction",
        ClaimVerdict::Undecided => "v undecided",
        ClaimVerdict::NotReproduced => "v not-reproduced",
        ClaimVerdict::OppositeDirection => "v opposite-direction",
        ClaimVerdict::CannotTell | ClaimVerdict::CannotFail | ClaimVerdict::NotTestable => {
            "v not-testable"
        }
    }
}

/// Writes the page; what several machines say stands side by side before the rest. Returns what a
/// terminal is told of it.
///
/// # Errors
/// When `to` does not take it.
pub fn write(pages: &[Page<'_>], to: &mut dyn Write) -> io::Result<Vec<String>> {
    let names: Vec<&str> = pages.iter().map(|page| page.machine).collect();
    let mut whole = page::Page {
        title: format!("Published experiments, rerun ({})", names.join(", ")),
        verdict: pages
            .iter()
            .map(|page| page.verdict(pages.len() > 1))
            .collect(),
        ..page::Page::default()
    };
    for page in pages {
        let before = match pages.len() {
            1 => String::new(),
            _ => format!("{}, ", page.machine),
        };
        for judged in &page.judged {
            let (statement, words) = (judged.statement, judged.verdict.words());
            let said = format!("{words}: {}.", statement.text);
            whole
                .answers
                .push((format!("{before}{}", statement.id), said));
        }
    }
    whole.pictures = pictures(pages);
    for page in pages {
        whole.folds.extend(page.tables(pages.len() > 1));
    }
    if pages.len() > 1 {
        whole.folds.push(side_by_side(pages));
    }
    for page in pages {
        let prefix = match pages.len() {
            1 => String::new(),
            _ => format!("{}-", page.machine),
        };
        for index in 0..page.experiments.len() {
            whole.folds.push(page.experiment(index, &prefix));
        }
        whole.folds.push(page.method(&prefix));
    }
    whole.about = about(pages);
    whole.write(to)?;
    Ok(whole.verdict)
}

/// The published numbers beside ours, and the first figure that an experiment has.
fn pictures(pages: &[Page<'_>]) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for page in pages {
        if let Some(mut chart) = figures::published(&page.judged) {
            if pages.len() > 1 {
                chart.id += &format!("-{}", page.machine);
                chart.title += &format!(" ({})", page.machine);
            }
            charts.push(chart);
        }
    }
    // A figure that has published values beside ours, or else any.
    let all = || pages.iter().flat_map(|page| &page.charts).flatten();
    let first = all()
        .find(|chart| has_marks(chart))
        .or_else(|| all().next());
    charts.extend(first.map(|chart| Chart {
        id: format!("first-{}", chart.id),
        ..chart.clone()
    }));
    charts
}

/// Whether published values are drawn in it.
fn has_marks(chart: &Chart) -> bool {
    match &chart.body {
        Body::Curves { curves, .. } => curves.iter().any(|curve| curve.join == Join::Mark),
        _ => false,
    }
}

fn side_by_side(pages: &[Page<'_>]) -> Fold {
    Fold {
        id: "side-by-side".to_owned(),
        title: "What each machine says".to_owned(),
        body: html! {
            div .scroll role="region" aria-label="Side by side" tabindex="0" { table {
                thead { tr {
                    th scope="col" { "statement" }
                    th scope="col" .l { "machine" }
                    th scope="col" .l { "verdict" }
                    th scope="col" .l { "numbers" }
                    th scope="col" .l { "says" }
                } }
                tbody { @for said in sides::of(pages) { @for (machine, judged) in &said.by { tr {
                    td { (said.id) }
                    td .l { (machine) }
                    td .l { span class=(class(judged.verdict)) { (judged.verdict.words()) } }
                    td .l .w { (sides::numbers(judged)) }
                    td .l .w { (said.text) }
                } } } }
            } }
        },
    }
}

fn about(pages: &[Page<'_>]) -> Vec<(String, String)> {
    let mut about = vec![
        ("program".to_owned(), format!("runslice {}", show::VERSION)),
        ("command".to_owned(), door::command()),
    ];
    for page in pages {
        about.push((
            format!("calibration of {}", page.machine),
            page.calibration.to_owned(),
        ));
    }
    about
}

impl Page<'_> {
    /// The verdict in a sentence.
    fn verdict(&self, names_machine: bool) -> String {
        let count = |is: &[ClaimVerdict]| {
            let all = self.judged.iter().filter(|it| it.counts());
            all.filter(|it| is.contains(&it.verdict)).count()
        };
        let tried = self.judged.iter().filter(|it| it.counts()).count();
        let reproduced = count(&[ClaimVerdict::Reproduced]);
        let same = count(&[ClaimVerdict::SameDirection]);
        let open = count(&[ClaimVerdict::Undecided]);
        let not = count(&[ClaimVerdict::NotReproduced, ClaimVerdict::OppositeDirection]);
        let machine = if names_machine {
            format!("{}: ", self.machine)
        } else {
            String::new()
        };
        let mut said = format!(
            "{machine}Of {} that can be tried here, {} {}: {reproduced} with the published size, \
             {same} in direction.",
            counted(tried as u64, "published statement"),
            reproduced + same,
            if reproduced + same == 1 {
                "holds"
            } else {
                "hold"
            },
        );
        if not > 0 {
            let verb = if not == 1 { "does" } else { "do" };
            said += &format!(" {not} {verb} not hold.");
        }
        if open > 0 {
            said += &format!(" {open} stay undecided.");
        }
        if self.rules.quick {
            said += " This was a quick look at few runs, which says the direction at most.";
        }
        said
    }

    /// The documents' tables, as they have them.
    fn tables(&self, names_machine: bool) -> Option<Fold> {
        let all = self.experiments.iter().zip(self.results);
        let of = |(experiment, results)| {
            let tables = places::of(experiment, results, self.rules);
            (experiment, tables)
        };
        let all: Vec<(&Experiment, _)> = all.map(of).filter(|(_, it)| !it.is_empty()).collect();
        let machine = if names_machine {
            format!(" ({})", self.machine)
        } else {
            String::new()
        };
        (!all.is_empty()).then(|| Fold {
            id: format!("tables-{}", self.machine),
            title: format!("The documents' tables, published and here{machine}"),
            body: html! { @for (experiment, tables) in &all {
                @if let Some(published) = &experiment.published {
                    p .where { (published) "." }
                }
                @for table in tables { @for piece in table.pieces(None) {
                    (page::table(&table.heading(), &piece))
                } }
            } },
        })
    }

    fn method(&self, prefix: &str) -> Fold {
        Fold {
            id: format!("{prefix}method"),
            title: format!("How it was judged ({})", self.machine),
            body: html! { p {
                (summary(&self.judged, self.rules)) " Numbers are compared as ratios, slopes and "
                "orders only. experiments/README.md says how verdicts are made."
            } },
        }
    }

    fn experiment(&self, index: usize, prefix: &str) -> Fold {
        let experiment = &self.experiments[index];
        let judged: Vec<&JudgedClaim<'_>> = self
            .judged
            .iter()
            .filter(|it| it.experiment == index)
            .collect();
        let verdicts = judged
            .iter()
            .map(|it| format!("{} {}", it.statement.id, it.verdict.words()));
        let verdicts = verdicts.collect::<Vec<_>>().join(", ");
        Fold {
            id: format!("{prefix}{}", experiment.name),
            title: format!("{}: {} ({verdicts})", experiment.name, experiment.title),
            body: html! {
                p .where { "Document " (experiment.document) ", " (experiment.source) "." }
                @if let Some(published) = &experiment.published {
                    p .where { (published) "." }
                }
                @for note in &experiment.notes { p { "Note: " (note) } }
                @for text in &experiment.contradictions {
                    p { "The document contradicts itself: " (text) }
                }
                @for judged in &judged { (statement(judged, prefix)) }
                @for chart in &self.charts[index] { (figure(chart)) }
                (numbers(experiment, &self.results[index]))
            },
        }
    }
}

fn statement(judged: &JudgedClaim<'_>, prefix: &str) -> Markup {
    let statement = judged.statement;
    html! {
        p id=(format!("{prefix}{}", statement.id)) {
            b { (statement.id) } " "
            span class=(class(judged.verdict)) { (judged.verdict.words()) }
            ": " (statement.text) "."
            @if statement.ours { " In no document, not counted." }
        }
        ul .t { @for (name, finding) in &judged.parts { li {
            span class=(class(finding.verdict)) { (finding.verdict.words()) }
            ": " (part(&statement.id, name, finding))
        } } }
        @if let Some(note) = &statement.note { p { "Note: " (note) } }
        @if let Some(cause) = &statement.cause { p { "Cause: " (cause) } }
        @if let Some(why) = &statement.cannot_tell { p { "Cannot tell: " (why) } }
    }
}

/// The table of numbers, and the published ones that nothing is held against.
fn numbers(experiment: &Experiment, results: &ExperimentResults) -> Markup {
    let table = table(experiment, results, Table::numbers);
    let alone = experiment.expected.iter().filter(|row| row.runs.is_empty());
    let alone: Vec<String> = alone
        .map(|row| {
            let value = as_published(row.value, |it| it.to_string());
            let words = [&row.place, &row.arm, &row.metric, &value, &row.note];
            let words = words.into_iter().map(String::as_str);
            let words: Vec<&str> = words.filter(|it| !it.is_empty()).collect();
            words.join(": ")
        })
        .collect();
    html! {
        (page::table("Published, and here: mean, lowest and highest run", &table))
        @for line in &alone { p .where { (line) } }
    }
}
