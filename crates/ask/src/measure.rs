//! Properties of a run that are measured: no faults by themselves, but a search or a check may ask
//! for them.

use std::sync::Arc;

use explain::why::{Fault, Measured, Observer};
use model::PolicySpec;
use workload::RunSpec;

use crate::runner::Runner;
use crate::services::Services;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The part of all CPU time that idled beside waiting tasks, in percent.
    Idle,
    /// Preemptions in a second of CPU time.
    Preemptions,
    /// Changes of a task's CPU in a second of CPU time.
    Migrations,
}

impl Measure {
    /// Every measure.
    pub const ALL: [Self; 3] = [Self::Idle, Self::Preemptions, Self::Migrations];

    /// The class of a finding that it is too large.
    #[must_use]
    pub const fn fault(self) -> Fault {
        match self {
            Self::Idle => Fault::IdleBesideWaiting,
            Self::Preemptions => Fault::Preemptions,
            Self::Migrations => Fault::Migrations,
        }
    }

    /// What is large whatever the load is: twice the most that the built-in policies came to under
    /// `desk`, `make` and `web`, which is 242 preemptions (eevdf) and 60 migrations (fifo); none of
    /// them let a CPU idle for a thousandth.
    #[must_use]
    pub const fn large(self) -> u64 {
        match self {
            Self::Idle => 5,
            Self::Preemptions => 500,
            Self::Migrations => 120,
        }
    }

    /// Its value in a run.
    #[must_use]
    pub fn of(self, measured: &Measured) -> f64 {
        match self {
            Self::Idle => measured.idle_share() * 100.0,
            Self::Preemptions => measured.preemption_rate(),
            Self::Migrations => measured.migration_rate(),
        }
    }

    /// The unit behind a limit.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Idle => "%",
            Self::Preemptions | Self::Migrations => "/s",
        }
    }

    /// Reads `NAME`, or `NAME < LIMIT` with an optional unit; `None`: it is no measure.
    #[must_use]
    pub fn parse(text: &str) -> Option<Result<(Self, Option<u64>), String>> {
        let words: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (name, limit) = match words.split_once(['<', '=']) {
            Some((name, limit)) => (name, Some(limit)),
            None => (&*words, None),
        };
        let measure = Self::ALL.into_iter().find(|it| it.fault().word() == name)?;
        let number = |limit: &str| {
            let digits = limit.strip_suffix(measure.unit()).unwrap_or(limit);
            let (word, unit) = (measure.fault().word(), measure.unit());
            let wrong =
                format!("invalid limit `{limit}`: expected a number, as `{word} < 10{unit}`");
            digits.parse::<u64>().map_err(|_| wrong)
        };
        let limit = limit.map(number).transpose();
        Some(limit.map(|limit| (measure, limit)))
    }

    /// As a user writes it.
    #[must_use]
    pub fn text(self, limit: Option<u64>) -> String {
        let word = self.fault().word();
        let limit = limit.map(|limit| format!(" < {limit}{}", self.unit()));
        format!("{word}{}", limit.unwrap_or_default())
    }
}

/// What the same load comes to under `fifo`, which runs every task in turn on any CPU.
///
/// # Errors
/// When the machine is bad.
pub fn of_fifo(services: &Services<'_>, spec: &RunSpec) -> anyhow::Result<Measured> {
    let fifo = policies::find("fifo").map_or(&[][..], |policy| policy.object);
    let spec = RunSpec {
        policy: PolicySpec {
            name: "fifo".to_owned(),
            object: Arc::from(fifo),
            table: None,
            set: Vec::new(),
            setup: Vec::new(),
            program: None,
        },
        ..spec.clone()
    };
    let mut observer = Observer::new(0, None).with_measures();
    let _summary = Runner::new(&spec, services)
        .with_sink(&mut observer)
        .start()?;
    Ok(observer.measured().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measure_is_read_with_and_without_a_limit() {
        let idle = Measure::parse("idle-beside-waiting < 5%");
        assert_eq!(idle, Some(Ok((Measure::Idle, Some(5)))));
        let preemptions = Measure::parse("preemptions=300");
        assert_eq!(preemptions, Some(Ok((Measure::Preemptions, Some(300)))));
        for measure in Measure::ALL {
            for limit in [None, Some(7)] {
                let text = measure.text(limit);
                assert_eq!(Measure::parse(&text), Some(Ok((measure, limit))), "{text}");
            }
        }
        assert!(Measure::parse("migrations < few").is_some_and(|it| it.is_err()));
        assert_eq!(Measure::parse("wait < 1s"), None);
    }
}
