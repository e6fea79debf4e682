//! The score for people: a sentence of what can be trusted, then the figures.

use std::io::{self, Write};

use ask::score::Scored;
use ask::score::trial::{Held, NULL};
use ask::words::{counted, listed};
use model::Nanos;
use stats::compare::skill::{Apart, PartVerdict, SkillPart, SkillRow};

use crate::table::{Table, wrapped};

/// Columns of a wide terminal.
const WIDTH: usize = 78;
/// Families that are told of each part, at most.
const TOLD: usize = 3;
/// A family is told of from this factor on.
const FAR: f64 = 1.25;
/// Less of the second half than this is worth a note.
const COVERED: f64 = 0.95;

/// Writes all of it, sentences in lines of at most `width` columns.
///
/// # Errors
/// When `to` does not take it.
pub fn write(scored: &Scored, width: usize, to: &mut dyn Write) -> io::Result<()> {
    let Scored { held, rows } = scored;
    paragraph(&answer(scored), width, to)?;
    writeln!(to)?;
    paragraph(&heading(held), width, to)?;
    if !rows.is_empty() {
        write!(to, "\n{}", table(rows))?;
    }
    let far = farthest(rows);
    if !far.is_empty() {
        writeln!(to, "\nFarthest from the second half:")?;
    }
    for sentence in far.iter().chain(&held.notes).chain(&uncovered(rows)) {
        paragraph(sentence, width, to)?;
    }
    Ok(())
}

/// What a part answers.
const fn question(part: SkillPart) -> &'static str {
    match part {
        SkillPart::Wait => "waits after wakeups",
        SkillPart::Delay => "all waits for a CPU",
        SkillPart::Response => "how long work takes that a wakeup begins",
        SkillPart::Preemptions => "how often tasks are preempted",
        SkillPart::Migrations => "how often tasks move to another CPU",
        SkillPart::Elapsed => "how long the load takes",
    }
}

/// For which questions the recording can be trusted and for which not.
#[must_use]
pub fn answer(scored: &Scored) -> String {
    let Scored { held, rows } = scored;
    let name = &held.name;
    let of = |verdict: PartVerdict, with: &dyn Fn(&SkillRow) -> String| {
        let its = rows.iter().filter(|row| row.verdict == verdict);
        its.map(|row| format!("{} ({})", question(row.part), with(row)))
            .collect::<Vec<_>>()
    };
    let off = |row: &SkillRow| format!("off by a factor of {:.2}", row.factors.simulated);
    let short = |row: &SkillRow| row.reach.map_or_else(|| off(row), |it| percent(it.value));
    let reach = |row: &SkillRow| match row.reach {
        Some(_) => format!("{} of the way from {NULL} to the kernel itself", short(row)),
        None => off(row),
    };
    let mut said: Vec<String> = Vec::new();
    let mut is_explained = false;
    let parts = [
        (PartVerdict::Trusted, format!("Trust {name} for")),
        (
            PartVerdict::Roughly,
            "Believe only changes beyond the factor in brackets:".to_owned(),
        ),
        (PartVerdict::NotTrusted, format!("Do not trust {name} for")),
        (PartVerdict::Undecided, "Too short to decide".to_owned()),
    ];
    for (verdict, begin) in parts {
        if verdict == PartVerdict::Roughly {
            let its = of(verdict, &|row| format!("{:.2}", row.factors.simulated));
            if !its.is_empty() {
                said.push(format!("{begin} {}.", listed(&its)));
            }
            continue;
        }
        let mut its = of(verdict, &short);
        let first = rows.iter().find(|row| row.verdict == verdict);
        if let (false, Some(first), Some(shown)) = (is_explained, first, its.first_mut()) {
            is_explained = true;
            *shown = format!("{} ({})", question(first.part), reach(first));
        }
        if !its.is_empty() {
            said.push(format!("{begin} {}.", listed(&its)));
        }
    }
    let silent = rows
        .iter()
        .filter(|row| row.verdict == PartVerdict::CannotBeTold);
    let silent: Vec<String> = silent.map(|row| question(row.part).to_owned()).collect();
    if !silent.is_empty() {
        said.push(format!(
            "It cannot tell about {}: {NULL} is nearly as near to the second half as the first \
             half itself.",
            listed(&silent)
        ));
    }
    if rows.is_empty() {
        said.push(format!(
            "{name} tells nothing: its halves have no task in common."
        ));
    }
    said.join(" ")
}

fn heading(held: &Held) -> String {
    let [first, rest] = held.lengths;
    let against = match &held.second {
        None => format!("the load is made of the first {first} and held against the other {rest}"),
        Some(second) => {
            format!("the load is made of all its {first} and held against the {rest} of {second}")
        }
    };
    format!(
        "{}: {}, profile {}, simulated under {} ({}); {against}.",
        held.name,
        counted(held.machine.cpus.into(), "CPU"),
        held.machine.profile.name(),
        held.under.policy,
        held.under.source,
    )
}

/// Errors are factors; skills and reaches are parts of 1.
fn table(rows: &[SkillRow]) -> Table {
    let mut table = Table::default()
        .names("part")
        .numbers_of("error", "sim")
        .numbers_of("error", NULL)
        .numbers_of("error", "self")
        .numbers("skill")
        .numbers("most")
        .numbers("reach")
        .numbers_of("interval", "from")
        .numbers_of("interval", "to")
        .names("verdict");
    for row in rows {
        let factors = [row.factors.simulated, row.factors.null, row.factors.itself];
        let factors = factors.map(|it| format!("{it:.2}"));
        let parts = match &row.reach {
            Some(reach) => [reach.value, reach.low, reach.high].map(two_digits),
            None => ["-"; 3].map(str::to_owned),
        };
        let front = [row.part.name().to_owned()].into_iter().chain(factors);
        let skills = [two_digits(row.skill.value), two_digits(row.ceiling.value)];
        let verdict = [row.verdict.word().to_owned()];
        table.row(front.chain(skills).chain(parts).chain(verdict));
    }
    table
}

/// The families that are farthest off, of parts that are not trusted.
fn farthest(rows: &[SkillRow]) -> Vec<String> {
    let bad = |row: &&SkillRow| {
        let no_verdict = [
            PartVerdict::Trusted,
            PartVerdict::CannotBeTold,
            PartVerdict::Grows,
        ];
        !no_verdict.contains(&row.verdict)
    };
    let of = |row: &SkillRow| {
        let far = row.families.iter().take(TOLD);
        let far = far.filter(|it| it.factors.simulated >= FAR);
        let far: Vec<String> = far.map(|it| in_words(row.part, it)).collect();
        (!far.is_empty()).then(|| format!("  {}: {}.", row.part.name(), far.join("; ")))
    };
    rows.iter().filter(bad).filter_map(of).collect()
}

fn in_words(part: SkillPart, apart: &Apart) -> String {
    let shown = |value: f64| match part {
        SkillPart::Preemptions | SkillPart::Migrations => format!("{value:.1}/s"),
        SkillPart::Elapsed => format!("{value:.3} CPUs"),
        _ => Nanos::new(value.round() as u64).to_string(),
    };
    format!(
        "{} {} instead of {} ({} of the weight)",
        apart.family,
        shown(apart.simulated),
        shown(apart.second),
        percent(apart.weight)
    )
}

/// What could not be compared, if that is much.
fn uncovered(rows: &[SkillRow]) -> Vec<String> {
    let of = |row: &SkillRow| {
        (row.covered < COVERED).then(|| {
            format!(
                "  {}: {} of the second half is of tasks that another side lacks, and left out.",
                row.part.name(),
                percent(1.0 - row.covered)
            )
        })
    };
    rows.iter().filter_map(of).collect()
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// Far below 0 one number is as good as another.
fn two_digits(value: f64) -> String {
    match value {
        value if value < -9.99 => "< -10".to_owned(),
        value => format!("{value:.2}"),
    }
}

/// A sentence in lines that a terminal has room for. What begins it stands before each line.
fn paragraph(text: &str, width: usize, to: &mut dyn Write) -> io::Result<()> {
    let words = text.trim_start();
    let indent = &text[..text.len() - words.len()];
    let room = width.min(WIDTH);
    for (at, line) in wrapped(words, room.saturating_sub(2 * indent.len()))
        .iter()
        .enumerate()
    {
        let deeper = if at > 0 { indent } else { "" };
        writeln!(to, "{indent}{deeper}{line}")?;
    }
    Ok(())
}
