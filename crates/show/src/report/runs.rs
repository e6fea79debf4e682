//! Many runs of each policy: the spread of their figures.

use std::io::{self, Write};

use ask::outcome::Results;
use serde::Serialize;
use stats::compare::{Better, Extent, Measure, Role, Series, Set};

use super::goals;
use crate::Look;
use crate::table::Table;

pub use crate::value::shown_value;

/// Figures of a group that are shown, besides those that are compared unasked.
const OF_GROUPS: [&str; 4] = [
    ".wakeup_ns_p50",
    ".wakeup_ns_p99",
    ".delay_ns_p99",
    ".share_ppm",
];

/// The spread of one metric over the runs of one policy.
#[derive(Debug, Serialize)]
pub struct Spread<'a> {
    policy: &'a str,
    metric: &'a str,
    measure: Measure,
    better: Better,
    #[serde(flatten)]
    extent: Extent,
}

/// The spread of everything, for programs.
#[must_use]
pub fn spreads(sets: &[Set]) -> Vec<Spread<'_>> {
    let all = sets.iter().flat_map(|set| {
        set.series.iter().filter_map(|series| {
            Some(Spread {
                policy: &set.arm,
                metric: &series.name,
                measure: series.measure,
                better: series.better,
                extent: Extent::of(&series.values)?,
            })
        })
    });
    all.collect()
}

/// Writes median, least and most of the figures that people look at first.
///
/// # Errors
/// When `to` does not take them.
pub fn write(results: &Results, look: Look, to: &mut dyn Write) -> io::Result<()> {
    let answer = goals::answer(results, true);
    writeln!(to, "{}\n", heading(results, &answer.sets))?;
    goals::write(&answer, look.width, to)?;
    writeln!(to)?;
    let goals = table_of(&answer.sets, |series| series.role == Role::Goal);
    let is_short = !look.is_verbose && !goals.is_empty();
    let all = if is_short { goals } else { table(&answer.sets) };
    let (shown, lost) = all.fit(look.width);
    shown.write(to)?;
    write_voids(&answer.sets, to)?;
    match (is_short, lost > 0) {
        (true, _) => writeln!(to, "\n--verbose shows the figures of every group of tasks.")?,
        (false, true) => writeln!(to, "\n--wide shows all columns.")?,
        (false, false) => {}
    }
    goals::again(&answer, look.width, to)
}

/// What ran where and how often, in one line.
#[must_use]
pub fn heading(results: &Results, sets: &[Set]) -> String {
    let runs = sets.iter().map(|set| set.runs + set.void).max();
    format!(
        "{}: {}, {} runs of seed {}",
        model::plain::shown(&results.workload),
        super::human::machine_words(&results.machine),
        runs.unwrap_or(0),
        results.seed,
    )
}

/// Writes the table of several policies, and how many of their runs were ejected.
///
/// # Errors
/// When `to` does not take it.
pub fn write_sets(sets: &[Set], to: &mut dyn Write) -> io::Result<()> {
    write!(to, "{}", table(sets))?;
    write_voids(sets, to)
}

fn write_voids(sets: &[Set], to: &mut dyn Write) -> io::Result<()> {
    for set in sets.iter().filter(|set| set.void > 0) {
        let (void, all) = (set.void, set.void + set.runs);
        writeln!(
            to,
            "\n{}: ejected in {void} of {all} runs, which are left out",
            set.arm
        )?;
    }
    for sentence in sets.iter().filter_map(Set::starvation) {
        writeln!(to, "\n{sentence}")?;
    }
    Ok(())
}

/// The spread of the figures that people look at first.
#[must_use]
pub fn table(sets: &[Set]) -> Table {
    table_of(sets, |series| {
        series.role != Role::Other || OF_GROUPS.iter().any(|end| series.name.ends_with(end))
    })
}

fn table_of(sets: &[Set], is_shown: impl Fn(&Series) -> bool) -> Table {
    let mut table = Table::default()
        .names("figure")
        .names("policy")
        .numbers("runs")
        .rank(1)
        .numbers("median")
        .numbers("min")
        .rank(2)
        .numbers("max")
        .rank(3);
    let mut names: Vec<&str> = Vec::new();
    for series in sets.iter().flat_map(|set| &set.series) {
        if is_shown(series) && !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    for name in names {
        let mut shown = name;
        for set in sets {
            let Some(series) = set.find(name) else {
                continue;
            };
            let Some(extent) = Extent::of(&series.values) else {
                continue;
            };
            let value = |value| shown_value(series.measure, value);
            table.row([
                std::mem::take(&mut shown).to_owned(),
                set.arm.clone(),
                extent.runs.to_string(),
                value(extent.median),
                value(extent.min),
                value(extent.max),
            ]);
        }
    }
    table
}
