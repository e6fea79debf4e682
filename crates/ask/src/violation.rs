//! What is wrong with a simulated run: that it starves, errs, or breaks a property that somebody
//! states.

use explain::why::{Fault, Finding, Observer};
use model::Nanos;
use workload::RunSpec;

use crate::goal::wait_limit;
use crate::runner::Runner;
use crate::services::Services;

/// What a run is asked for besides that nobody starves and nothing errs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// No task waits so long for a CPU.
    Wait(Nanos),
    /// Of two tasks that always want the CPU, the one of more weight gets no less of it.
    Weights,
}

impl Property {
    /// Reads `wait < TIME` or `weights`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        match wait_limit(text) {
            Some(limit) => limit.map(Self::Wait),
            None if text.trim() == "weights" => Ok(Self::Weights),
            None => Err("write `wait < TIME`, such as `wait < 100ms`, or `weights`".to_owned()),
        }
    }

    /// As the user writes it.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Wait(time) => format!("wait < {time}"),
            Self::Weights => "weights".to_owned(),
        }
    }
}

/// Waits that are looked at: no policy is blamed for one that a higher class explains.
const WAITS: usize = 16;
/// Most BPF instructions of a run that is one of many.
const BUDGET: u64 = 20_000_000_000;

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
    let mut observer = Observer::new(WAITS, None);
    let options = sim::Options {
        total_budget: Some(BUDGET),
        ..sim::Options::default()
    };
    let _summary = Runner::new(spec, services)
        .with_options(options)
        .with_sink(&mut observer)
        .start()?;
    let own = observer.finding();
    let weights = properties.contains(&Property::Weights);
    let counts = |fault| match fault {
        Fault::UnfairShare => weights,
        Fault::Outranked => false,
        _ => true,
    };
    if let Some(own) = own.filter(|own| counts(own.fault)) {
        return Ok(Some(own));
    }
    let limits = properties.iter().filter_map(|property| match property {
        Property::Wait(limit) => Some(*limit),
        Property::Weights => None,
    });
    let mut longest = observer.worst().into_iter();
    let longest = longest.find(|wait| wait.finding.fault != Fault::Outranked);
    let broken = longest.filter(|wait| limits.min().is_some_and(|limit| wait.span >= limit));
    Ok(broken.map(|wait| wait.finding))
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
    fn a_property_is_a_longest_wait_or_weights() {
        let wait = Property::Wait(Nanos::from_millis(100));
        assert_eq!(Property::parse("wait < 100ms"), Ok(wait));
        assert_eq!(Property::parse("wait<100ms"), Ok(wait));
        assert_eq!(Property::parse(&wait.text()), Ok(wait));
        assert_eq!(Property::parse(" weights "), Ok(Property::Weights));
        for wrong in ["", "wait", "wait > 1s", "wait < 1", "fair"] {
            Property::parse(wrong).unwrap_err();
        }
    }
}
