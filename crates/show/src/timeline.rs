//! A picture of who has which CPU and who waits, in letters.

use std::io::{self, Write};

use explain::timeline::{Timeline, TimelineRow};
use model::{Nanos, SimTime, span};

use crate::Tone;

/// Columns of the picture where it may be as wide as it likes.
const WIDEST: usize = 200;
/// Columns for names, at most.
const NAMES: usize = 12;
/// Tasks that are shown one by one.
const TASKS: usize = 24;
/// Letters for tasks, in the order of the time that they ran.
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Stands for all tasks that have no letter.
const OTHER: char = '*';

/// Which part of a run to draw: `100ms`, from the begin, or `2s..2.1s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    from: SimTime,
    to: SimTime,
}

impl Stretch {
    /// Reads it.
    ///
    /// # Errors
    /// When it is neither a time nor two, or has no length.
    pub fn parse(text: &str) -> Result<Self, String> {
        let point = |text: &str| span::parse(text).map(|it| SimTime::ZERO + it);
        let (from, to) = match text.split_once("..") {
            Some((from, to)) => (point(from)?, point(to)?),
            None => (SimTime::ZERO, point(text)?),
        };
        if from >= to {
            return Err("it ends before it begins".to_owned());
        }
        Ok(Self { from, to })
    }

    /// What collects it, for a terminal of so many columns; `None`: as wide as it likes.
    #[must_use]
    pub fn collector(self, width: Option<usize>) -> Timeline {
        let columns = width.unwrap_or(WIDEST).clamp(NAMES + 10, WIDEST) - NAMES - 2;
        Timeline::new(self.from, self.to, columns)
    }
}

/// Draws it.
///
/// # Errors
/// When `to` does not take it.
pub fn write(policy: &str, timeline: &Timeline, to: &mut dyn Write) -> io::Result<()> {
    let (from, end) = timeline.stretch();
    if from >= end {
        return writeln!(to, "{policy}: the run was over before {} s", seconds(from));
    }
    let rows: Vec<&TimelineRow> = timeline.rows().collect();
    let shown = shown(&rows);
    let letter = |task: usize| letter(&shown, task);
    let (begin, next) = timeline.bounds(0);
    writeln!(
        to,
        "{policy}: {} s to {} s, {} a column",
        seconds(from),
        seconds(end),
        next.since(begin)
    )?;
    for (cpu, owners) in timeline.owners().iter().enumerate() {
        label(&format!("CPU {cpu}"), to)?;
        for owner in owners {
            write!(to, "{}", owner.map_or('.', letter))?;
        }
        writeln!(to)?;
    }
    writeln!(to)?;
    for (at, &task) in shown.iter().enumerate().take(TASKS) {
        let letter = LETTERS.get(at).map_or(OTHER, |it| char::from(*it));
        label(&format!("{letter} {}", rows[task].name), to)?;
        draw(timeline, rows[task], to)?;
    }
    let more = shown.len().saturating_sub(TASKS) + timeline.left_out();
    if more > 0 {
        writeln!(to, "{more} more tasks are not shown")?;
    }
    writeln!(
        to,
        "# runs, - waits for a CPU, . idles or sleeps; a letter is the task that ran longest"
    )
}

/// The tasks that ran or waited, those that ran longest first.
fn shown(rows: &[&TimelineRow]) -> Vec<usize> {
    let sum = |spans: &[Nanos]| spans.iter().map(|it| u128::from(it.get())).sum::<u128>();
    let all = rows.iter().enumerate();
    let mut all: Vec<_> = all
        .map(|(task, row)| (sum(&row.run), sum(&row.wait), task))
        .filter(|(run, wait, _)| run + wait > 0)
        .collect();
    all.sort_by_key(|(run, wait, task)| (std::cmp::Reverse((*run, *wait)), *task));
    all.into_iter().map(|(.., task)| task).collect()
}

fn letter(shown: &[usize], task: usize) -> char {
    let at = shown.iter().take(LETTERS.len()).position(|it| *it == task);
    at.map_or(OTHER, |at| char::from(LETTERS[at]))
}

/// A task's line: what it did for most of each column.
fn draw(timeline: &Timeline, row: &TimelineRow, to: &mut dyn Write) -> io::Result<()> {
    let columns: Vec<Tone> = row
        .run
        .iter()
        .zip(&row.wait)
        .enumerate()
        .map(|(column, (run, wait))| {
            let (begin, end) = timeline.bounds(column);
            let rest = end
                .since(begin)
                .get()
                .saturating_sub(run.get() + wait.get());
            match (run.get(), wait.get()) {
                (run, wait) if wait >= run && wait > 0 && wait >= rest => Tone::Bad,
                (run, _) if run > 0 && run >= rest => Tone::Good,
                _ => Tone::Plain,
            }
        })
        .collect();
    for part in columns.chunk_by(|one, next| one == next) {
        let mark = match part[0] {
            Tone::Good => "#",
            Tone::Bad => "-",
            Tone::Plain => ".",
        };
        part[0].paint(&mark.repeat(part.len()), to)?;
    }
    writeln!(to)
}

/// A name in its columns.
fn label(name: &str, to: &mut dyn Write) -> io::Result<()> {
    let name: String = name.chars().take(NAMES).collect();
    write!(to, "{name:<NAMES$}  ")
}

/// Seconds with microseconds.
fn seconds(time: SimTime) -> String {
    let ns = time.as_nanos();
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_a_length_or_two_points() {
        let at = |ms| SimTime::ZERO + Nanos::from_millis(ms);
        let stretch = |from, to| Stretch { from, to };
        assert_eq!(Stretch::parse("100ms"), Ok(stretch(at(0), at(100))));
        assert_eq!(Stretch::parse("2s..2.5s"), Ok(stretch(at(2000), at(2500))));
        for wrong in ["", "5", "2s..1s", "0s", "1s..", "..1s"] {
            Stretch::parse(wrong).unwrap_err();
        }
    }

    #[test]
    fn the_busiest_task_has_the_first_letter() {
        let row = |run: u64| TimelineRow {
            name: String::new(),
            run: vec![Nanos::new(run)],
            wait: vec![Nanos::ZERO],
        };
        let rows = [row(1), row(9), row(0)];
        let shown = shown(&rows.iter().collect::<Vec<_>>());
        assert_eq!(shown, [1, 0]);
        assert_eq!((letter(&shown, 1), letter(&shown, 2)), ('A', '*'));
    }
}
