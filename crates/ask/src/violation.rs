//! What is wrong with a simulated run: that it starves, errs, or breaks a property that somebody
//! states.

use std::path::Path;

use explain::why::{Fault, Finding, Observer, Right, Tier};
use model::Nanos;
use workload::RunSpec;

use crate::goal::wait_limit;
use crate::measure::{self, Measure};
use crate::right;
use crate::runner::Runner;
use crate::services::Services;
use crate::trial;
use crate::words;

/// What a run is asked for besides that nobody starves and nothing errs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// No task waits so long for a CPU.
    Wait(Nanos),
    /// Of two tasks that always want the CPU, the one of more weight gets no less of it.
    Weights,
    /// No share is broken, also if the policy declares no right.
    Share,
    /// What is measured stays below the limit; `None`: below twice what `fifo` comes to under the
    /// same load, and what is large.
    Measure(Measure, Option<u64>),
    /// Shares are judged by this right, whatever the policy declares.
    Right(Right),
}

impl Property {
    /// Reads `wait < TIME`, `weights`, `share` or `right WORD`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(limit) = wait_limit(text) {
            return limit.map(Self::Wait);
        }
        if let Some(measure) = Measure::parse(text) {
            return measure.map(|(measure, limit)| Self::Measure(measure, limit));
        }
        let wrong = "write `wait < TIME`, such as `wait < 100ms`, or `weights`, or `share`";
        match (text.trim(), text.trim().strip_prefix("right ")) {
            ("weights", _) => Ok(Self::Weights),
            ("share", _) => Ok(Self::Share),
            (_, Some(word)) => right::parse(word)
                .map(Self::Right)
                .map_err(|error| error.to_string()),
            _ => Err(wrong.to_owned()),
        }
    }

    /// As the user writes it.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Wait(time) => format!("wait < {time}"),
            Self::Weights => "weights".to_owned(),
            Self::Share => "share".to_owned(),
            Self::Measure(measure, limit) => measure.text(limit),
            Self::Right(right) => format!("right {}", right.word()),
        }
    }
}

/// The command that explains the run in `file`, in which one of `properties` may be broken.
#[must_use]
pub fn explains(file: &Path, properties: &[Property]) -> String {
    let file = file.display().to_string();
    let mut words = vec!["runslice", "explain", &file];
    // A wait that only breaks a property is no fault to `explain`.
    if properties.iter().any(|it| matches!(it, Property::Wait(_))) {
        words.extend(["--worst", "1"]);
    }
    if let Some(right) = right_in(properties) {
        words.extend(["--right", right.word()]);
    }
    words::command(&words)
}

/// The right that `properties` say, the last one of several.
fn right_in(properties: &[Property]) -> Option<Right> {
    properties.iter().rev().find_map(|property| match property {
        Property::Right(right) => Some(*right),
        _ => None,
    })
}

/// Waits that are looked at: no policy is blamed for one that a higher class explains.
const WAITS: usize = 16;
/// Most BPF instructions of a run that is one of many.
const BUDGET: u64 = 20_000_000_000;

/// How runs are computed that are some of many.
pub(crate) fn options() -> sim::Options {
    sim::Options {
        total_budget: Some(BUDGET),
        ..sim::Options::default()
    }
}

/// What is wrong with a run.
struct Seen {
    /// A fault of its own.
    own: Option<Finding>,
    /// A property that somebody states is broken.
    stated: Option<Finding>,
}

/// Makes the run, and gives what is wrong with it first: a fault of its own, or a broken property.
/// What a task of a higher class explains is neither.
///
/// # Errors
/// When the policy or the machine is bad.
pub fn find(
    services: &Services<'_>,
    spec: &RunSpec,
    properties: &[Property],
) -> anyhow::Result<Option<Finding>> {
    let seen = see(services, spec, properties)?;
    Ok(seen.own.or(seen.stated))
}

/// As [`find`], but a fault of its own counts only if it is one by the kernel's contract, or if
/// trials prove its cause.
///
/// # Errors
/// The errors of [`find`].
pub fn accused(
    services: &Services<'_>,
    spec: &RunSpec,
    properties: &[Property],
) -> anyhow::Result<Option<Finding>> {
    let Seen { own, stated } = see(services, spec, properties)?;
    let Some(mut own) = own else {
        return Ok(stated);
    };
    let is_accused =
        trial::is_certain(&own) || trial::attempt(services, (spec, options()), &mut own)?.accuses();
    Ok(if is_accused { Some(own) } else { stated })
}

fn see(services: &Services<'_>, spec: &RunSpec, properties: &[Property]) -> anyhow::Result<Seen> {
    let mut observer = right::observer(spec, right_in(properties), Observer::new(WAITS, None));
    let is_measure = |it: &Property| matches!(it, Property::Measure(..));
    if properties.iter().any(is_measure) {
        observer = observer.with_measures();
    }
    let summary = Runner::new(spec, services)
        .with_options(options())
        .with_sink(&mut observer)
        .start()?;
    observer.set_blocked(&summary.blocked);
    let is_stated = |own: &Finding| match (own.fault, own.tier()) {
        (Fault::UnfairShare, _) => properties.contains(&Property::Weights),
        (_, Some(Tier::Share)) => properties.contains(&Property::Share),
        _ => false,
    };
    let (own, stated) = match observer.finding() {
        Some(finding) if is_stated(&finding) => (None, Some(finding)),
        finding => (finding, None),
    };
    let own = own.filter(|own| own.fault != Fault::UnfairShare && own.is_fault());
    if stated.is_some() {
        return Ok(Seen { own, stated });
    }
    let limits = properties.iter().filter_map(|property| match property {
        Property::Wait(limit) => Some(*limit),
        _ => None,
    });
    let mut longest = observer.worst().into_iter();
    let longest = longest.find(|wait| wait.finding.fault != Fault::Outranked);
    let broken = longest.filter(|wait| limits.min().is_some_and(|limit| wait.span >= limit));
    if let Some(broken) = broken {
        let stated = Some(broken.finding);
        return Ok(Seen { own, stated });
    }
    let broken = too_large(services, spec, (properties, &observer))?;
    let stated = broken.map(|measure| observer.broken(measure.fault()));
    Ok(Seen { own, stated })
}

/// The first measure that is larger than its property allows.
fn too_large(
    services: &Services<'_>,
    spec: &RunSpec,
    (properties, observer): (&[Property], &Observer),
) -> anyhow::Result<Option<Measure>> {
    let Some(measured) = observer.measured() else {
        return Ok(None);
    };
    let mut fifo = None;
    for property in properties {
        let Property::Measure(measure, limit) = property else {
            continue;
        };
        let is_broken = match limit {
            Some(limit) => measure.of(&measured) >= *limit as f64,
            // What is not large needs no comparison.
            None if measure.of(&measured) < measure.large() as f64 => false,
            None => {
                let known = match fifo.take() {
                    Some(known) => known,
                    None => measure::of_fifo(services, spec)?,
                };
                let usual = fifo.insert(known).as_ref();
                usual.is_some_and(|usual| measure::is_large(*measure, &measured, usual))
            }
        };
        if is_broken {
            return Ok(Some(*measure));
        }
    }
    Ok(None)
}

/// What makes two findings the same fault: its class, and the line to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    /// The class.
    pub fault: Fault,
    /// Function, file and line.
    pub place: Option<(String, Option<String>, u32)>,
}

impl Signature {
    /// That of `finding`.
    #[must_use]
    pub fn of(finding: &Finding) -> Self {
        let place = finding.culprit.as_ref().and_then(|act| act.place.clone());
        Self {
            fault: finding.fault,
            place: place.map(|place| (place.function, place.file, place.line)),
        }
    }

    /// For people, in one line.
    #[must_use]
    pub fn text(&self) -> String {
        let word = self.fault.word();
        match &self.place {
            Some((function, Some(file), line)) => format!("{word} at {file}:{line} ({function})"),
            Some((function, None, _)) => format!("{word} in {function}"),
            None => word.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_explained_by_what_it_was_found_by() {
        let wait = Property::Wait(Nanos::from_millis(100));
        let own = [Property::Weights, wait, Property::Right(Right::Cgroup)];
        let file = Path::new("my runs/x.bundle");
        let explain = "runslice explain 'my runs/x.bundle'";
        assert_eq!(explains(file, &[Property::Share]), explain);
        let want = format!("{explain} --worst 1 --right cgroup");
        assert_eq!(explains(file, &own), want);
    }

    #[test]
    fn a_property_is_a_longest_wait_or_weights() {
        let wait = Property::Wait(Nanos::from_millis(100));
        assert_eq!(Property::parse("wait < 100ms"), Ok(wait));
        assert_eq!(Property::parse("wait<100ms"), Ok(wait));
        assert_eq!(Property::parse(&wait.text()), Ok(wait));
        assert_eq!(Property::parse(" weights "), Ok(Property::Weights));
        for property in [
            Property::Share,
            Property::Right(Right::Cgroup),
            Property::Measure(Measure::Idle, None),
            Property::Measure(Measure::Migrations, Some(5)),
        ] {
            assert_eq!(Property::parse(&property.text()), Ok(property));
        }
        for wrong in [
            "",
            "wait",
            "wait > 1s",
            "wait < 1",
            "fair",
            "right",
            "right of way",
        ] {
            Property::parse(wrong).unwrap_err();
        }
    }
}
