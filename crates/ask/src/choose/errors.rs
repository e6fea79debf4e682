//! How far simulated ratios of two schedulers were from those of a kernel, and what follows for an
//! interval.
//!
//! The unit is a load on a machine: of its candidates and figures the one counts whose played value
//! lies farthest outside of the simulated interval. Of n such numbers the ceil((n + 1) 0.95)-th
//! smallest widens every interval, so that the widened intervals of a call hold together.

use std::collections::BTreeMap;

use model::{Kernel, MachineSpec, Profile};
use serde::{Deserialize, Serialize};
use stats::Report;
use stats::compare::{RatioError, at_least};

use crate::goal::{Goal, Spans};
use crate::words::counted;

/// Fewer loads have no quantile of 95 %: the largest of their errors is taken, and nothing is
/// *shown*.
pub const LOADS_MIN: usize = 19;

/// The part of loads whose candidates are all covered by their widened intervals, in thousandths.
const COVERED: usize = 950;

/// A machine whose CPUs are all busy for this part of the time is full, in millionths.
const FULL: u64 = 900_000;

/// The loads that were played, as `fidelity --errors` writes them.
const TABLE: &str = include_str!("errors.json");

/// What kind of load it is, by its figures and never by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadClass {
    /// Tasks begin while it runs.
    Forks,
    /// All CPUs are busy nearly all the time.
    Full,
    /// CPUs idle.
    Idle,
}

/// One load that was played under several policies and simulated under the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadError {
    /// Its name.
    pub load: String,
    /// What kind of load it is.
    pub class: LoadClass,
    /// The kernel that played it.
    pub kernel: String,
    /// CPUs of the machine.
    pub cpus: u16,
    /// The profile of the simulated machine.
    pub profile: String,
    /// The policy that the others were held against.
    pub baseline: String,
    /// Plays of each policy.
    pub plays: u32,
    /// By policy: how far the played ratio to the baseline lies outside of the simulated interval,
    /// as a logarithm, the largest over all figures; 0 if all lie inside.
    pub outside: BTreeMap<String, f64>,
}

/// The loads that were played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorTable {
    /// What it was measured on, for people.
    pub measured_on: String,
    /// The loads.
    pub loads: Vec<LoadError>,
}

impl LoadClass {
    /// That of a run.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let mut groups = report.groups.iter();
        match () {
            () if groups.any(|it| it.start.count > 0) => Self::Forks,
            () if report.machine.run.0 >= FULL => Self::Full,
            () => Self::Idle,
        }
    }
}

impl LoadError {
    /// The largest of its candidates.
    fn largest(&self) -> f64 {
        self.outside.values().copied().fold(0.0, f64::max)
    }
}

/// What an error is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Simulated<'a> {
    /// The machine.
    pub machine: &'a MachineSpec,
    /// What kind of load it is.
    pub class: LoadClass,
    /// The candidate and the baseline.
    pub policies: [&'a str; 2],
}

impl ErrorTable {
    /// The loads that are part of the program.
    ///
    /// # Panics
    /// Never: a test reads the same bytes.
    #[must_use]
    pub fn own() -> Self {
        serde_json::from_str(TABLE).expect("a test reads it")
    }

    /// The table with these loads in the place of those of the same name, kernel and CPUs.
    #[must_use]
    pub fn with(mut self, loads: Vec<LoadError>) -> Self {
        let key = |it: &LoadError| {
            let place = (it.kernel.clone(), it.cpus, it.profile.clone());
            (it.load.clone(), place)
        };
        self.loads
            .retain(|old| loads.iter().all(|new| key(new) != key(old)));
        self.loads.extend(loads);
        self.loads.sort_by_key(key);
        self
    }

    /// By how much intervals of such a candidate on such a machine are widened.
    #[must_use]
    pub fn error(&self, of: Simulated<'_>) -> RatioError {
        let under = |name: &str| -> Vec<&LoadError> {
            self.loads.iter().filter(|it| it.profile == name).collect()
        };
        let own = under(of.machine.profile.name());
        let is_own = !own.is_empty();
        // A profile that nobody measured may be as bad as none.
        let all = if is_own {
            own
        } else {
            under(Profile::Ideal.name())
        };
        let class: Vec<&LoadError> = all
            .iter()
            .copied()
            .filter(|it| it.class == of.class)
            .collect();
        let loads = if class.len() < LOADS_MIN { all } else { class };
        let all: Vec<f64> = loads.iter().map(|it| it.largest()).collect();
        let is_known = is_own && has(&loads, of);
        let widening = if is_known {
            widening(&all)
        } else {
            left_out(&loads).max(widening(&all))
        };
        RatioError {
            widening,
            is_shown: is_known && all.len() >= LOADS_MIN,
            // Siblings of a core slow each other down, which no play has and nothing models.
            is_measured: of.machine.smt <= 1 && !all.is_empty(),
            source: self.source(&all),
        }
    }

    fn source(&self, all: &[f64]) -> String {
        let right = (0..all.len()).filter(|own| {
            let others = all.iter().enumerate().filter(|(at, _)| at != own);
            let others: Vec<f64> = others.map(|(_, it)| *it).collect();
            all[*own] <= widening(&others)
        });
        let (right, loads) = (right.count(), counted(all.len() as u64, "load"));
        let worst = if all.len() < LOADS_MIN {
            "worst of "
        } else {
            ""
        };
        format!(
            "{worst}{loads} {}; right for {right} of {} such loads (at least {:.0} %)",
            self.measured_on,
            all.len(),
            at_least(right, all.len()) * 100.0,
        )
    }
}

/// Whether plays of these policies were made on such a machine.
fn has(loads: &[&LoadError], of: Simulated<'_>) -> bool {
    let kernel = Kernel::name(of.machine.kernel);
    loads.iter().any(|it| {
        let played = |policy: &&str| it.baseline == **policy || it.outside.contains_key(*policy);
        it.cpus == of.machine.cpus && it.kernel == kernel && of.policies.iter().all(played)
    })
}

/// The largest widening that a policy, a kernel or a machine needs that no other load tells.
fn left_out(loads: &[&LoadError]) -> f64 {
    let mut parts: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for load in loads {
        let machine = [
            format!("kernel {}", load.kernel),
            format!("{} CPUs", load.cpus),
        ];
        for part in machine {
            parts.entry(part).or_default().push(load.largest());
        }
        for (policy, outside) in &load.outside {
            parts.entry(policy.clone()).or_default().push(*outside);
        }
    }
    parts.values().map(|it| widening(it)).fold(0.0, f64::max)
}

/// The widening that a further load needs with a probability of 95 %; the largest of too few.
fn widening(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = ((sorted.len() + 1) * COVERED)
        .div_ceil(1000)
        .min(sorted.len());
    sorted
        .get(rank.wrapping_sub(1))
        .copied()
        .unwrap_or(0.0)
        .max(0.0)
}

/// What `score` calls that which a goal is about; `None` if it does not score it.
#[must_use]
pub const fn scored_as(goal: &Goal) -> Option<&'static str> {
    match goal {
        Goal::Time { spans, .. } => match spans {
            Spans::Wait => Some("wait"),
            Spans::Delay => Some("delay"),
            Spans::Slice => Some("preemptions"),
            Spans::Named(_) => Some("response"),
            Spans::Sleep => None,
        },
        Goal::Late { .. } => Some("response"),
        Goal::Work { .. } | Goal::End { .. } => Some("elapsed"),
        Goal::Cpu { .. } | Goal::Energy { .. } | Goal::Efficiency { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(at: usize, outside: f64) -> LoadError {
        LoadError {
            load: format!("load-{at}"),
            class: LoadClass::Idle,
            kernel: "6.18".to_owned(),
            cpus: 2,
            profile: "ideal".to_owned(),
            baseline: "eevdf".to_owned(),
            plays: 5,
            outside: [("fifo", outside), ("mlfq", 0.0)]
                .map(|(a, b)| (a.to_owned(), b))
                .into(),
        }
    }

    fn table(loads: usize) -> ErrorTable {
        ErrorTable {
            measured_on: "in counting VMs".to_owned(),
            loads: (0..loads).map(|at| load(at, at as f64 / 100.0)).collect(),
        }
    }

    fn error(table: &ErrorTable, policy: &str, cpus: u16) -> RatioError {
        let machine = MachineSpec {
            cpus,
            ..MachineSpec::default()
        };
        table.error(Simulated {
            machine: &machine,
            class: LoadClass::Idle,
            policies: [policy, "eevdf"],
        })
    }

    #[test]
    fn the_table_of_the_program_is_read_and_shows_nothing_as_long_as_it_is_short() {
        let own = ErrorTable::own();
        assert!(!own.loads.is_empty());
        let found = error(&own, "mlfq", 2);
        assert_eq!(found.is_shown, own.loads.len() >= LOADS_MIN);
        assert!(found.is_measured && found.widening > 0.0, "{found:?}");
    }

    #[test]
    fn few_loads_give_the_largest_error_and_nothing_is_shown() {
        let found = error(&table(18), "mlfq", 2);
        assert!((found.widening - 0.17).abs() < 1e-12, "{found:?}");
        assert!(!found.is_shown);
        assert!(
            found
                .source
                .starts_with("worst of 18 loads in counting VMs; "),
            "{found:?}"
        );
        // The largest of 18 is larger than all others.
        assert!(
            found
                .source
                .ends_with("right for 17 of 18 such loads (at least 76 %)"),
            "{found:?}"
        );
    }

    #[test]
    fn of_many_loads_the_quantile_of_95_per_cent_counts() {
        let found = error(&table(59), "fifo", 2);
        // ceil(60 * 0.95) is the 57th of 0.00 to 0.58.
        assert!((found.widening - 0.56).abs() < 1e-12, "{found:?}");
        assert!(found.is_shown);
    }

    #[test]
    fn a_policy_or_a_machine_that_was_not_played_is_likely_at_most() {
        let table = table(59);
        assert!(!error(&table, "mine", 2).is_shown);
        assert!(!error(&table, "fifo", 8).is_shown);
        assert!(error(&table, "fifo", 8).is_measured);
        let smt = MachineSpec {
            cpus: 4,
            smt: 2,
            ..MachineSpec::default()
        };
        let found = table.error(Simulated {
            machine: &smt,
            class: LoadClass::Idle,
            policies: ["fifo", "eevdf"],
        });
        assert!(!found.is_measured);
    }
}
