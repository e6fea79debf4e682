//! The answer for people: its sentences, then a table for each goal.

use std::io::{self, Write};

use ask::choose::Chosen;
use ask::choose::field::Field;
use ask::choose::rank::{Ranking, Standing};
use ask::words::{counted, listed};
use model::Nanos;
use stats::compare::{Effect, Measure, RatioAnswer, Scale};

use super::decide::too_short;
use super::sentences::said;
use crate::Tone;
use crate::report::runs::shown_value;
use crate::table::{Cell, Table, wrapped};

/// Columns of a wide terminal.
const WIDTH: usize = 80;
/// Columns for the name of a candidate in tables.
const NAME: usize = 20;
/// Millionths of a hundredth.
const PER_CENT: f64 = 10_000.0;

/// What to type after a policy was tried.
pub const UNDO: &str = "Ctrl-C, or `sudo runslice stop`; the kernel's own scheduler is back";

/// Writes all of it, sentences in lines of at most `width` columns.
///
/// # Errors
/// When `to` does not take it.
pub fn write(chosen: &Chosen, width: usize, to: &mut dyn Write) -> io::Result<()> {
    let Chosen { field, ranking, .. } = chosen;
    for part in said(chosen) {
        for sentence in part.sentences {
            paragraph(&sentence, width, to)?;
        }
    }
    writeln!(to)?;
    paragraph(&heading(field), width, to)?;
    // Where nothing was compared, there is no table of it.
    let goals = too_short(field).map_or(field.goals.len(), |_| 0);
    for goal in 0..goals {
        writeln!(to, "\n{}", field.goals[goal])?;
        write!(to, "{}", table(field, ranking, goal))?;
    }
    notes(field, ranking, width, to)
}

/// How candidate `at` is run for real.
///
/// # Panics
/// If there is no such candidate.
#[must_use]
pub fn command(chosen: &Chosen, at: usize) -> String {
    format!(
        "sudo runslice run {} --for 10m",
        chosen.field.candidates[at].call
    )
}

fn heading(field: &Field) -> String {
    let machine = &field.machine;
    let word = if field.plan().is_some() {
        "rerun"
    } else {
        "run"
    };
    let runs = counted(field.runs as u64, word);
    let later = match field.start_jitter {
        Nanos::ZERO => String::new(),
        most => format!(" in which tasks begin up to {most} later"),
    };
    let varied = match field.plan() {
        Some(_) => "",
        None => " and fixed work varies by 1 %",
    };
    format!(
        "{}: {}, HZ {}, kernel {}, {runs} of each candidate{later}{varied}, {}.",
        model::plain::shown(&field.load),
        counted(machine.cpus.into(), "CPU"),
        machine.hz,
        machine.kernel.name(),
        if field.is_asked {
            "goals as asked"
        } else {
            "the load's own goals"
        },
    )
}

/// The candidates in their order at one goal.
pub fn table(field: &Field, ranking: &Ranking, goal: usize) -> Table {
    let mut table = Table::default()
        .names("candidate")
        .numbers("value")
        .numbers("change")
        .numbers_of("interval", "from")
        .numbers_of("interval", "to")
        .names("answer");
    let measure = field.goals[goal].measure();
    for &at in &ranking.order {
        let value = field
            .value(at, goal)
            .filter(|_| ranking.standings[at] != Standing::Failed);
        let value = value.map_or_else(|| "-".to_owned(), |it| shown_value(measure, it));
        let said = ranking.said[at].get(goal);
        let word = match (ranking.standings[at], said) {
            (Standing::Baseline, _) => "baseline",
            (Standing::Failed, _) | (_, None) => "failed",
            (_, Some(said)) => said.words(),
        };
        let effect = ranking.row(field, at, goal);
        let effect = effect.and_then(|row| Some(row.result.as_ref().ok()?.effect));
        let shifts = said.and_then(|it| it.shift).zip(effect);
        let shifts = match shifts {
            Some((shifts, effect)) => shifts.map(|it| change(&effect, measure, it)),
            None => [(); 3].map(|()| String::new()),
        };
        let [shift, low, high] = shifts;
        let name = short(field.name(at));
        table.row([name, value, shift, low, high, word.to_owned()]);
    }
    table
}

/// Each candidate's value and answer at each goal, for the page.
pub fn overview(chosen: &Chosen) -> Table {
    let (field, ranking) = (&chosen.field, &chosen.ranking);
    let mut table = Table::default().names("candidate");
    for goal in &field.goals {
        table = table.numbers(goal.to_string());
    }
    for &at in &ranking.order {
        let mut row = vec![Cell::from(field.name(at).to_owned())];
        for (goal, of) in field.goals.iter().enumerate() {
            let value = field.value(at, goal);
            let value = value.filter(|_| ranking.standings[at] != Standing::Failed);
            let value = value.map_or_else(|| "-".to_owned(), |it| shown_value(of.measure(), it));
            let (word, tone) = match (ranking.standings[at], ranking.said[at].get(goal)) {
                (Standing::Baseline, _) => ("baseline", Tone::Plain),
                (Standing::Failed, _) | (_, None) => ("failed", Tone::Bad),
                (_, Some(said)) => match said.answer {
                    RatioAnswer::Better => (said.words(), Tone::Good),
                    RatioAnswer::Worse => (said.words(), Tone::Bad),
                    _ => (said.words(), Tone::Plain),
                },
            };
            row.push(Cell::from(format!("{value}, {word}")).toned(tone));
        }
        table.row(row);
    }
    table
}

/// Names that were too long for the tables.
fn notes(field: &Field, ranking: &Ranking, width: usize, to: &mut dyn Write) -> io::Result<()> {
    let long = ranking
        .order
        .iter()
        .filter(|at| short(field.name(**at)) != field.name(**at));
    let long = long.map(|at| format!("{} is {}", short(field.name(*at)), field.name(*at)));
    let all: Vec<String> = long.collect();
    if !all.is_empty() {
        writeln!(to)?;
    }
    all.iter().try_for_each(|it| paragraph(it, width, to))
}

/// A shift as people read it: a factor, or a difference where values are 0.
pub fn change(effect: &Effect, measure: Measure, shift: f64) -> String {
    let said = effect.scale.said(shift);
    match effect.scale {
        _ if !shift.is_finite() => "-".to_owned(),
        Scale::Log if said < 0.1 => {
            // Two digits that count.
            let digits = (-said.log10()).ceil().clamp(1.0, 9.0) as usize + 1;
            format!("x {said:.digits$}")
        }
        Scale::Log => format!("x {said:.2}"),
        Scale::Linear if measure == Measure::Millionths => {
            format!("{:+.1} points", said / PER_CENT)
        }
        Scale::Linear => {
            let sign = if said < 0.0 { "-" } else { "+" };
            format!("{sign}{}", shown_value(measure, said.abs()))
        }
    }
}

/// A name that fits its column.
pub fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= NAME {
        return name.to_owned();
    }
    let half = (NAME - 3) / 2;
    let ends = [
        &letters[..NAME - 3 - half],
        &letters[letters.len() - half..],
    ];
    let [front, back] = ends.map(|it| it.iter().collect::<String>());
    format!("{front}...{back}")
}

/// Candidates by name.
pub fn names(field: &Field, all: &[usize]) -> String {
    let names = all.iter().map(|at| field.name(*at));
    listed(&names.collect::<Vec<_>>())
}

/// A sentence in lines that a terminal has room for. What begins it stands before each line.
pub fn paragraph(text: &str, width: usize, to: &mut dyn Write) -> io::Result<()> {
    let words = text.trim_start();
    let indent = &text[..text.len() - words.len()];
    let room = width.min(WIDTH);
    for (at, line) in wrapped(words, room.saturating_sub(indent.len() + 2))
        .iter()
        .enumerate()
    {
        let deeper = if at > 0 && !indent.is_empty() {
            "  "
        } else {
            ""
        };
        writeln!(to, "{indent}{deeper}{line}")?;
    }
    Ok(())
}
