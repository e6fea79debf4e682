//! A file with the scores that a comparison must reach.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use model::file::{self, Source};
use model::{Advised, suggest};
use serde::Deserialize;
use stats::compare::machines::{MachineMeasure, MachinesScore};

use crate::error::UsageError;
use crate::input;
use crate::services::Services;

/// Limits by the name of a row of the table.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Least(BTreeMap<String, Limits>);

/// What a row must reach. What is left out is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Limits {
    /// The least part of pairs of policies in the same order, 0 to 1.
    order: Option<f64>,
    /// The same of those that the kernel orders alike with another seed.
    clear: Option<f64>,
    /// The greatest median factors, 1 or more.
    share: Option<f64>,
    runs: Option<f64>,
    wakeup_p50: Option<f64>,
    wakeup_p99: Option<f64>,
    waits: Option<f64>,
    switches: Option<f64>,
}

impl Limits {
    /// The least parts, each with its name.
    fn parts(&self) -> [(&'static str, Option<f64>); 2] {
        [("order", self.order), ("clear", self.clear)]
    }

    fn factors(&self) -> [(MachineMeasure, Option<f64>); MachineMeasure::SCORED.len()] {
        let limit = |measure| match measure {
            MachineMeasure::Share => self.share,
            MachineMeasure::Runs => self.runs,
            MachineMeasure::WakeupP50 => self.wakeup_p50,
            MachineMeasure::WakeupP99 => self.wakeup_p99,
            MachineMeasure::Waits => self.waits,
            MachineMeasure::Switches => self.switches,
            _ => None,
        };
        MachineMeasure::SCORED.map(|measure| (measure, limit(measure)))
    }
}

impl Least {
    /// Reads the file.
    ///
    /// # Errors
    /// When it cannot be read or is wrong; the message names file and place.
    pub fn read(services: &Services<'_>, path: &Path) -> anyhow::Result<Self> {
        let text = input::text(services, path, input::WRITTEN)?;
        Self::parse(&text, &path.display().to_string())
    }

    fn parse(text: &str, file: &str) -> anyhow::Result<Self> {
        let least: Self = file::read(&Source { text, file })?;
        for (row, limits) in &least.0 {
            for (name, part) in limits.parts() {
                if part.is_some_and(|part| !(0.0..=1.0).contains(&part)) {
                    let why = format!("`{name}` is a part of pairs of policies, 0 to 1");
                    return Err(UsageError::new(why)).context(format!("{file}: [{row}]"));
                }
            }
            for (measure, limit) in limits.factors() {
                // Neither NaN nor infinity is a limit.
                if limit.is_some_and(|factor| !(1.0..1e9).contains(&factor)) {
                    let name = measure.name();
                    let why = format!("the limit of {name} is a factor: 1 is exact, more is worse");
                    return Err(UsageError::new(why)).context(format!("{file}: [{row}]"));
                }
            }
        }
        Ok(least)
    }

    /// What does not reach its limit, a sentence each. `rows` are those of the table.
    ///
    /// # Errors
    /// When the file names a row that the table does not have.
    pub fn missed(&self, rows: &[(String, MachinesScore)]) -> Result<Vec<String>, UsageError> {
        let mut missed = Vec::new();
        for (name, limits) in &self.0 {
            let Some((_, score)) = rows.iter().find(|(row, _)| row == name) else {
                let hint = suggest::hint(name, rows.iter().map(|(row, _)| row.as_str()));
                return Err(UsageError::new(Advised::new(
                    format!("--least: the table has no row `{name}`"),
                    format!("{hint}; --profile adds rows"),
                )));
            };
            for ((what, least), order) in limits.parts().into_iter().zip([score.order, score.clear])
            {
                let (Some(least), part) = (least, order.part()) else {
                    continue;
                };
                if part.is_none_or(|part| part < least) {
                    let is = part.map_or_else(|| "open".to_owned(), percent);
                    missed.push(format!(
                        "{name}: {what} is {is}, and at least {} was asked for",
                        percent(least)
                    ));
                }
            }
            for (measure, most) in limits.factors() {
                let Some(most) = most else { continue };
                let factor = score.median(measure);
                if factor.is_none_or(|factor| factor > most) {
                    let is = factor.map_or_else(|| "open".to_owned(), |it| format!("{it:.3}"));
                    let what = measure.name();
                    missed.push(format!(
                        "{name}: {what} is {is}, and at most {most} was asked for"
                    ));
                }
            }
        }
        Ok(missed)
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use stats::compare::machines::Order;

    use super::*;

    fn rows() -> Vec<(String, MachinesScore)> {
        let score = MachinesScore {
            order: Order {
                pairs: 10,
                alike: 8,
            },
            clear: Order { pairs: 5, alike: 4 },
            medians: [Some(1.25), Some(1.5), None, Some(2.0), Some(1.1), Some(1.0)],
            cells: 5,
            lacking: 0,
        };
        vec![("ideal".to_owned(), score)]
    }

    fn missed(text: &str) -> Vec<String> {
        Least::parse(text, "least.toml")
            .unwrap()
            .missed(&rows())
            .unwrap()
    }

    #[test]
    fn a_score_that_reaches_its_limit_passes_and_a_worse_one_is_named() {
        assert!(
            missed("[ideal]\norder = 0.8\nshare = 1.25\nruns = 1.5\nswitches = 1\n").is_empty()
        );
        assert!(missed("[ideal]\nclear = 0.8\n").is_empty());
        let worse = missed("[ideal]\norder = 0.81\nclear = 0.9\nshare = 1.2\nwakeup_p99 = 2.0\n");
        let want = [
            "ideal: order is 80.0 %, and at least 81.0 % was asked for",
            "ideal: clear is 80.0 %, and at least 90.0 % was asked for",
            "ideal: share is 1.250, and at most 1.2 was asked for",
        ];
        assert_eq!(worse, want);
    }

    #[test]
    fn a_figure_that_could_not_be_compared_does_not_reach_any_limit() {
        assert_eq!(
            missed("[ideal]\nwakeup_p50 = 100.0\n"),
            ["ideal: wakeup p50 is open, and at most 100 was asked for"]
        );
    }

    #[test]
    fn a_limit_that_is_none_is_refused() {
        for bad in [
            "order = 1.1",
            "order = nan",
            "clear = -0.1",
            "share = 0.9",
            "runs = inf",
            "waits = nan",
            "p50 = 1.0",
        ] {
            Least::parse(&format!("[ideal]\n{bad}\n"), "least.toml").unwrap_err();
        }
        let other = Least::parse("[idael]\norder = 0.5\n", "least.toml").unwrap();
        let error = model::Advice::in_full(&other.missed(&rows()).unwrap_err());
        assert!(
            error.contains("idael") && error.contains("ideal"),
            "{error}"
        );
    }
}
