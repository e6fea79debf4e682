//! Runs as a page: the answer, every run at each goal, the tails of the waits; the rest folded.

use std::io::{self, Write};

use ask::outcome::Results;
use ask::words::counted;
use maud::html;
use stats::Tails;
use stats::compare::Set;

use super::goals::{self, Answer};
use super::human;
use super::runs::{self, shown_value};
use crate::figure::{self, Chart, Collector, Shown};
use crate::page::{Fold, Page, headline, table};
use crate::{Origin, VERSION};

/// Runs of one load on one machine, and what is drawn of them.
#[derive(Debug)]
pub struct PagePart<'a> {
    /// The runs.
    pub results: &'a Results,
    /// How long tasks waited, for each policy in the order of the results.
    pub tails: Vec<(String, Tails)>,
    /// What happened when, for each run; none of many runs.
    pub collected: Vec<Collector>,
}

/// The page of these runs. With several parts each has an answer of its own; `is_many` says that
/// there are many runs of each policy.
#[must_use]
pub fn page(parts: &[PagePart<'_>], is_many: bool, origin: &Origin) -> Page {
    let answers: Vec<Answer> = parts
        .iter()
        .map(|part| goals::answer(part.results, is_many))
        .collect();
    let headings: Vec<String> = parts
        .iter()
        .zip(&answers)
        .map(|(part, answer)| heading(part, answer, is_many))
        .collect();
    let mut page = Page {
        title: headings.join("; "),
        ..Page::default()
    };
    for (part, (answer, heading)) in parts.iter().zip(answers.iter().zip(&headings)) {
        let before = match parts.len() {
            1 => String::new(),
            _ => format!("{heading}. "),
        };
        page.verdict
            .extend(headline(&format!("{before}{}", answer.short)));
        page.verdict.extend(part.results.ejections());
        let said = answer
            .said
            .iter()
            .map(|(what, said)| (format!("{before}{what}"), said.clone()));
        page.answers.extend(said);
    }
    page.verdict
        .extend(answers.first().map(|it| it.advice.clone()));
    page.lead = figure::gantt(&collected(parts));
    let mut charts = pictures(parts, &answers, &headings);
    let mut tails = None;
    if page.lead.is_some() {
        // Few tasks have few waits, whose tails lie on each other.
        let is_tails = |it: &Chart| it.id.starts_with("tails");
        let (few, rest): (Vec<Chart>, Vec<Chart>) = charts.into_iter().partition(is_tails);
        (tails, charts) = (Fold::figures("waits", "How long tasks waited", &few), rest);
        let jobs = parts.iter().map(|part| human::jobs(part.results));
        page.tables.extend(jobs.map(|it| table("Jobs", &it)));
    }
    page.pictures.extend(charts);
    page.folds.extend(tails);
    for (at, part) in parts.iter().enumerate() {
        folds(part, (at, parts.len()), &answers[at], &mut page);
    }
    page.folds.extend(over_time(parts));
    page.about = about(parts, origin);
    page
}

/// Writes the page of one part.
///
/// # Errors
/// When `to` does not take it.
pub fn write(
    part: PagePart<'_>,
    is_many: bool,
    origin: &Origin,
    to: &mut dyn Write,
) -> io::Result<()> {
    page(&[part], is_many, origin).write(to)
}

/// Writes what stands on a terminal when the page goes into a file: the answer, and that in short.
///
/// # Errors
/// When `to` does not take it.
pub fn write_answer(
    results: &Results,
    is_many: bool,
    width: Option<usize>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let answer = goals::answer(results, is_many);
    let heading = if is_many {
        runs::heading(results, &answer.sets)
    } else {
        human::heading(results)
    };
    writeln!(to, "{heading}\n")?;
    goals::write(&answer, width, to)?;
    for ejection in results.ejections() {
        writeln!(to, "{ejection}")?;
    }
    writeln!(to)?;
    goals::in_short(&answer, width, to)
}

fn heading(part: &PagePart<'_>, answer: &Answer, is_many: bool) -> String {
    if is_many {
        runs::heading(part.results, &answer.sets)
    } else {
        human::heading(part.results)
    }
}

fn pictures(parts: &[PagePart<'_>], answers: &[Answer], headings: &[String]) -> Vec<Chart> {
    let mut sets: Vec<Set> = Vec::new();
    let mut shown: Vec<Shown> = Vec::new();
    for (answer, heading) in answers.iter().zip(headings) {
        sets.extend(answer.sets.iter().map(|set| Set {
            place: heading.clone(),
            ..set.clone()
        }));
        for metric in &answer.shown {
            if !shown.contains(metric) {
                shown.push(metric.clone());
            }
        }
    }
    let sets: Vec<&Set> = sets.iter().collect();
    let mut charts = vec![Chart {
        title: "What the load is for".to_owned(),
        ..figure::every_run(&sets, &shown, &[], shown_value)
    }];
    for (at, (part, heading)) in parts.iter().zip(headings).enumerate() {
        let tails: Vec<(&str, &Tails)> = part
            .tails
            .iter()
            .map(|(name, tails)| (name.as_str(), tails))
            .collect();
        let mut chart = figure::tails(&tails, heading);
        if at > 0 {
            chart.id += &format!("-{}", at + 1);
        }
        charts.push(chart);
    }
    // The first lines say the values of a run that stands alone.
    let is_alone = sets.len() == 1 && sets[0].runs < 2;
    charts.retain(|chart| !(chart.body.is_empty() || is_alone && chart.id == "runs"));
    charts
}

/// The tables of one part.
fn folds(part: &PagePart<'_>, (at, all): (usize, usize), answer: &Answer, page: &mut Page) {
    let results = part.results;
    let end = match all {
        1 => String::new(),
        _ => format!("-{}", at + 1),
    };
    let of = match all {
        1 => String::new(),
        _ => format!(" ({})", human::heading(results)),
    };
    let is_many = answer.sets.iter().any(|set| set.runs + set.void > 1);
    let tables: Vec<_> = if is_many {
        vec![(
            "Median, least and most of each figure",
            runs::table(&answer.sets),
        )]
    } else {
        human::tables(results, None).collect()
    };
    page.folds.push(Fold {
        id: format!("tables{end}"),
        title: format!("Tables{of}"),
        body: html! { @for (name, it) in &tables { (table(name, it)) } },
    });
    let remarks = human::remarked(results, true);
    if !is_many && !remarks.is_empty() {
        page.folds.push(Fold {
            id: format!("remarks{end}"),
            title: format!("What policies counted and printed{of}"),
            body: html! { ul .t { @for line in &remarks { li { (line) } } } },
        });
    }
}

fn collected<'a>(parts: &'a [PagePart<'_>]) -> Vec<&'a Collector> {
    parts.iter().flat_map(|part| &part.collected).collect()
}

/// What happened when: of all runs over each other, and of each alone.
fn over_time(parts: &[PagePart<'_>]) -> Vec<Fold> {
    let runs = collected(parts);
    if runs.is_empty() {
        return Vec::new();
    }
    let common = figure::comparison(&runs);
    let mut folds: Vec<Fold> = Vec::new();
    folds.extend(Fold::figures("over-time", "All runs over time", &common));
    for (at, run) in runs.iter().enumerate() {
        let mut charts = run.charts();
        for chart in &mut charts {
            chart.id = format!("run{}-{}", at + 1, chart.id);
        }
        let title = format!("{}: CPUs, calls and levels over time", run.policy());
        folds.extend(Fold::figures(&format!("run{}", at + 1), &title, &charts));
    }
    folds
}

/// Where the page comes from.
fn about(parts: &[PagePart<'_>], origin: &Origin) -> Vec<(String, String)> {
    let mut about = vec![
        ("program".to_owned(), format!("runslice {VERSION}")),
        ("command".to_owned(), origin.command()),
    ];
    for part in parts {
        let results = part.results;
        let machine = &results.machine;
        about.push(("workload".to_owned(), results.workload.clone()));
        let kernel = machine.kernel.name();
        let computer = match machine.textbook {
            Some(order) => format!("{order}, kernel {kernel}"),
            None => format!(
                "{}, {} a core, {} a cache, {} a node, HZ {}, kernel {kernel}, profile {}",
                counted(machine.cpus.into(), "CPU"),
                machine.smt,
                machine.llc,
                machine.node,
                machine.hz,
                machine.profile.name(),
            ),
        };
        about.push(("machine".to_owned(), computer));
        about.push(("seed".to_owned(), results.seed.to_string()));
        let mut told: Vec<&str> = Vec::new();
        for outcome in &results.outcomes {
            if told.contains(&outcome.policy.as_str()) {
                continue;
            }
            told.push(&outcome.policy);
            about.push((format!("knobs of {}", outcome.policy), outcome.knobs()));
        }
    }
    about
}
