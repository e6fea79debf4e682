//! Properties of a run that are measured: no faults by themselves, but a search or a check may ask
//! for them.

use std::sync::Arc;

use explain::why::{Fault, Measured, Observer};
use model::{Nanos, PolicySpec};
use stats::MachineReport;
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

/// CPU time of the machine in a run that is measured.
const LEAST: Nanos = Nanos::from_millis(100);

/// The measures that are large in a run of `spec`: see [`is_large`]. `fifo` runs only if one may
/// be.
///
/// # Errors
/// The errors of [`of_fifo`].
pub fn large(
    services: &Services<'_>,
    spec: &RunSpec,
    measured: &Measured,
) -> anyhow::Result<Vec<Measure>> {
    let mut beyond = beyond(measured);
    if !beyond.is_empty() {
        let usual = of_fifo(services, spec)?;
        let is_large = |measure: &Measure| {
            let usual = usual.as_ref();
            usual.is_some_and(|usual| is_large(*measure, measured, usual))
        };
        beyond.retain(is_large);
    }
    Ok(beyond)
}

/// The measures that are beyond what is large whatever the load is. A shorter time than `LEAST`
/// says nothing of a second.
#[must_use]
pub fn beyond(measured: &Measured) -> Vec<Measure> {
    let all = Measure::ALL.into_iter();
    let all = all.filter(|it| it.of(measured) >= it.large() as f64);
    all.filter(|_| measured.whole >= LEAST).collect()
}

/// Whether it is beyond what is large whatever the load is, and twice what `fifo` comes to under
/// the same load.
#[must_use]
pub fn is_large(measure: Measure, measured: &Measured, usual: &Measured) -> bool {
    let value = measure.of(measured);
    value >= measure.large() as f64 && value >= 2.0 * measure.of(usual)
}

/// What was measured of the run of `spec`, of which this was `counted`, preemptions last, and what
/// of that is large. A run whose count leaves no doubt that nothing is large is not made again, nor
/// is that of a program, because its own time would be spent twice.
///
/// # Errors
/// When the policy or the machine is bad.
pub fn of_run(
    services: &Services<'_>,
    (spec, options): (&RunSpec, sim::Options),
    counted: (&MachineReport, u64),
) -> anyhow::Result<Option<(Measured, Vec<Measure>)>> {
    if spec.policy.program.is_some() || !may_be_large(counted) {
        return Ok(None);
    }
    let mut observer = Observer::new(0, None).with_measures();
    let _summary = Runner::new(spec, services)
        .with_options(options)
        .with_sink(&mut observer)
        .start()?;
    let Some(measured) = observer.measured() else {
        return Ok(None);
    };
    let large = large(services, spec, &measured)?;
    Ok(Some((measured, large)))
}

/// Whether a measure may be large. The report counts each of them, and some more: short waits,
/// tasks that may not use an idle CPU, and turns that ended with their slice.
fn may_be_large((report, preempts): (&MachineReport, u64)) -> bool {
    let cpu_time = report.elapsed.get().max(1) as f64 * f64::from(report.cpus.max(1));
    let rate = |count: u64| count as f64 * 1e9 / cpu_time;
    Measure::ALL.into_iter().any(|measure| {
        let most = match measure {
            Measure::Idle => report.idle_while_waiting.get() as f64 * 100.0 / cpu_time,
            Measure::Preemptions => rate(preempts),
            Measure::Migrations => rate(report.migrations),
        };
        most >= measure.large() as f64
    })
}

/// What the same load comes to under `fifo`, which runs every task in turn on any CPU. `None` if
/// the load ends in an error there: a task that never runs under the policy may ask for something
/// wrong as soon as it runs.
///
/// # Errors
/// When nobody waits for the answer any more.
pub fn of_fifo(services: &Services<'_>, spec: &RunSpec) -> anyhow::Result<Option<Measured>> {
    let fifo = policies::find("fifo").map_or(&[][..], |policy| policy.object);
    let spec = RunSpec {
        policy: PolicySpec::of_object("fifo", Arc::from(fifo)),
        ..spec.clone()
    };
    let mut observer = Observer::new(0, None).with_measures();
    let ended = Runner::new(&spec, services)
        .with_sink(&mut observer)
        .start();
    services.check()?;
    Ok(ended.ok().map(|_| observer.measured().unwrap_or_default()))
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
