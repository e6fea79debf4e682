//! Real processes: workloads played on the running kernel, and the programs that schedulers are
//! judged by: chats, builds, echoes, mixes.
//!
//! [`mod@play`] plays a workload file. Each other module is one program: a value with its sizes and
//! a function `run`, which gives an [`LoadOutcome`]: figures with their units. Each forks what it
//! needs and leaves nothing behind. Programs know no policy: whoever wants them under one attaches
//! it before.
//!
//! **Invariant:** a program does a fixed piece of work or lasts a fixed time, and which it is does
//! not depend on how fast anything is.

mod clock;
mod error;
mod processes;
mod server;
mod terminal;
mod trace;

pub mod aim7;
pub mod chat;
pub mod contest;
pub mod echo;
pub mod hackbench;
pub mod kernbench;
pub mod levels;
pub mod oltp;
pub mod play;
pub mod sampler;
pub mod tree;
pub mod turnaround;
pub mod web;

use std::path::Path;
use std::time::Duration;

use folder::OwnFolder;

pub use error::Error;
pub use play::play;
pub use processes::Usage;

/// Outcome of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadOutcome {
    /// The figures, in the order in which people read them.
    pub figures: Vec<Figure>,
    /// Lists that figures were made of.
    pub tables: Vec<LoadTable>,
    /// What one must know to read the figures.
    pub notes: Vec<String>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name; unique in an outcome.
    pub name: String,
    /// Its unit; empty for a plain number.
    pub unit: &'static str,
    /// The value.
    pub value: f64,
}

/// A list of rows, all of the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadTable {
    /// Its name; unique in an outcome.
    pub name: String,
    /// Names of the columns, with their units at the end.
    pub columns: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Vec<LoadCell>>,
}

/// What stands in a table.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadCell {
    /// A whole number.
    Number(u64),
    /// A word.
    Word(String),
}

impl LoadOutcome {
    /// Adds a figure.
    ///
    /// # Panics
    /// If there is one of this name.
    pub fn add(&mut self, name: impl Into<String>, unit: &'static str, value: f64) {
        let name = name.into();
        assert!(self.value(&name).is_none(), "two figures are called {name}");
        self.figures.push(Figure { name, unit, value });
    }

    /// The value of the figure `name`.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        let figure = self.figures.iter().find(|figure| figure.name == name)?;
        Some(figure.value)
    }

    /// Adds how far the longest and 95 % of requests are from the shortest, in milliseconds.
    fn add_spread(&mut self, min: f64, p95: f64, max: f64) {
        self.add("max_less_min", "ms", max - min);
        self.add("p95_less_min", "ms", p95 - min);
    }

    /// Adds what the system counted for the load's processes.
    fn add_usage(&mut self, usage: Usage) {
        self.add("user", "s", usage.user.as_secs_f64());
        self.add("system", "s", usage.system.as_secs_f64());
        self.add("switches_voluntary", "", count(usage.voluntary));
        self.add("switches_forced", "", count(usage.forced));
    }
}

/// What stands behind `begin` in the first line of a tool's report that begins so, but for blanks.
fn behind<'a>(said: &'a str, begin: &str) -> Option<&'a str> {
    said.lines()
        .find_map(|line| line.trim_start().strip_prefix(begin))
}

/// A folder of this run's own below `parent`.
fn own_folder(parent: &Path) -> Result<OwnFolder, Error> {
    OwnFolder::below(parent).map_err(Error::doing("make a folder for the run"))
}

/// A count as a figure. Exact below 2^53.
#[expect(clippy::cast_precision_loss, reason = "no load counts so far")]
fn count(number: u64) -> f64 {
    number as f64
}

/// So many a second; 0 if no time has passed.
fn rate(number: u64, time: Duration) -> f64 {
    if time.is_zero() {
        0.0
    } else {
        count(number) / time.as_secs_f64()
    }
}

/// A span in microseconds, as the documents print it.
fn micros(ns: u64) -> f64 {
    count(ns) / 1e3
}

/// The arithmetic mean; 0 of nothing.
fn mean(values: &[u64]) -> f64 {
    match values.len() {
        0 => 0.0,
        length => count(values.iter().sum()) / count(length as u64),
    }
}

/// `part` of `whole` in percent; 0 of nothing.
fn percent(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() {
        0.0
    } else {
        100.0 * part.as_secs_f64() / whole.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_by_its_name() {
        let mut outcome = LoadOutcome::default();
        outcome.add("time", "s", 1.5);
        assert_eq!(outcome.value("time"), Some(1.5));
        assert_eq!(outcome.value("times"), None);
        assert!((rate(3, Duration::from_millis(1500)) - 2.0).abs() < 1e-12);
        assert!((percent(Duration::from_secs(1), Duration::from_secs(4)) - 25.0).abs() < 1e-12);
        assert_eq!(
            (
                rate(3, Duration::ZERO),
                percent(Duration::MAX, Duration::ZERO)
            ),
            (0.0, 0.0)
        );
    }

    #[test]
    fn the_mean_of_nothing_is_zero() {
        assert_eq!(mean(&[]), 0.0);
        assert!((mean(&[10, 20, 30, 40]) - 25.0).abs() < 1e-12);
    }

    #[test]
    #[should_panic(expected = "two figures are called time")]
    fn a_name_is_given_once() {
        let mut outcome = LoadOutcome::default();
        outcome.add("time", "s", 1.5);
        outcome.add("time", "s", 1.5);
    }
}
