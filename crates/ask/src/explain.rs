//! Why a task waited or a policy was ejected.

use std::io::BufReader;
use std::path::PathBuf;

use anyhow::Context as _;
use explain::why::{Dumped, Dumps, Fault, Finding, Measured, Observer, Right, Wait, explain_dumps};
use model::{Advised, SimTime, suggest};
use workload::RunSpec;

use crate::error::{Error, UsageError};
use crate::input;
use crate::measure::{self, Measure};
use crate::races::{self, MetRace};
use crate::right;
use crate::runner::Runner;
use crate::runs::say_end;
use crate::services::Services;
use crate::trial::{self, Trials};
use crate::unset;

/// Of single waits so many are tried, the longest: each takes up to twenty times the run.
const TRIED_WAITS: usize = 5;

/// Explains the fault of a run, and waits in it.
#[derive(Clone, Debug)]
pub struct Explain {
    /// What is explained.
    pub of: ExplainOf,
    /// The task, or the group of tasks, whose waits are explained; `None`: any.
    pub task: Option<String>,
    /// So many of the longest waits. Without it one if a task is named, else none.
    pub worst: Option<u16>,
    /// The right by which shares are judged; `None`: the one that the policy declares.
    pub right: Option<Right>,
}

/// What is explained.
#[derive(Clone, Debug)]
pub enum ExplainOf {
    /// A run that is to be made.
    Run(Box<RunSpec>, sim::Options),
    /// A file of events with decisions.
    Events(PathBuf),
    /// A kernel's debug dump.
    Dump(PathBuf),
}

/// Why a task waited or a policy was ejected.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// About the run as a whole.
    pub finding: Option<Finding>,
    /// What was measured of the run; `None` without decisions.
    pub measured: Option<Measured>,
    /// What trials say of that.
    pub trials: Option<Trials>,
    /// Single waits that were asked for.
    pub waits: Vec<Wait>,
    /// What trials say of each of them.
    pub wait_trials: Vec<Trials>,
    /// What of the measures is large.
    pub large: Vec<Measure>,
    /// Races that the stalls of the run show.
    pub races: Vec<MetRace>,
    /// In how many plays on a real kernel the fault showed, in words, if that was asked for.
    pub played: Option<String>,
    /// What the source does not tell.
    pub missing: Vec<String>,
    /// The command that shows it again.
    pub again: Option<String>,
    /// When the run was over, if it was made for the answer.
    pub end: Option<SimTime>,
    /// The dumps of a text, in its order; `finding` is that of the last one that has a fault.
    pub dumps: Vec<Dumped>,
    /// Dumps in front of those, which are not explained.
    pub dumps_left_out: usize,
}

impl Explanation {
    /// What was seen of a run. `again` is the command that repeats it.
    #[must_use]
    pub fn of(observer: &Observer, again: Option<String>) -> Self {
        let mut missing = Vec::new();
        if !observer.has_decisions() {
            missing.push(
                "these events have no decisions, so they do not tell why: make the run again with \
                 `runslice sim POLICY -w LOAD --events FILE --decisions`"
                    .to_owned(),
            );
        }
        Self {
            finding: observer.finding(),
            measured: observer.measured().filter(|_| observer.has_decisions()),
            trials: None,
            waits: observer.worst(),
            wait_trials: Vec::new(),
            large: Vec::new(),
            races: Vec::new(),
            played: None,
            missing,
            again,
            end: None,
            dumps: Vec::new(),
            dumps_left_out: 0,
        }
    }

    /// What dumps tell. One that somebody asked for may show that nothing is wrong.
    #[must_use]
    pub fn of_dumps(dumps: Dumps) -> Self {
        let Dumps { each, left_out } = dumps;
        let findings = each.iter().rev().map(|dumped| &dumped.finding);
        let all_but = |calm: &[Fault]| {
            let mut findings = findings.clone();
            findings.find(|finding| !calm.contains(&finding.fault))
        };
        let fault = all_but(&[Fault::Waited, Fault::Outranked]);
        let fault = fault.or_else(|| all_but(&[Fault::Waited]));
        Self {
            finding: fault.cloned(),
            dumps: each,
            dumps_left_out: left_out,
            ..Self::default()
        }
    }

    /// Whether the policy is accused: of a fault by the contract, or of a proven one.
    #[must_use]
    pub fn accuses(&self) -> bool {
        // A share that nobody promised is none.
        let is_fault = self.finding.as_ref().is_some_and(Finding::is_fault);
        let is_dump = !self.dumps.is_empty();
        (is_fault || is_dump) && self.trials.as_ref().is_some_and(Trials::accuses)
    }

    /// As this, of a run that nobody can repeat.
    fn untried(self, why: &str) -> Self {
        let none = |finding| Trials::none(finding, why);
        let trials = self.finding.as_ref().map(none);
        let waits = self.waits.iter().map(|wait| none(&wait.finding));
        let wait_trials = waits.collect();
        // Nothing can be compared with: how often tasks move depends most on their load.
        let measured = self.measured.as_ref();
        let mut large = measured.map_or_else(Vec::new, measure::beyond);
        large.retain(|it| *it == Measure::Idle);
        Self {
            trials,
            wait_trials,
            large,
            ..self
        }
    }

    /// As this, of the run of `spec`, with what trials say of it and of the longest waits.
    ///
    /// # Errors
    /// When nobody waits for the answer any more.
    pub fn tried(
        mut self,
        services: &Services<'_>,
        spec: &RunSpec,
        options: sim::Options,
    ) -> anyhow::Result<Self> {
        if let Some(finding) = &mut self.finding {
            self.trials = Some(trial::attempt(services, (spec, options), finding)?);
        }
        for (at, wait) in self.waits.iter_mut().enumerate() {
            let finding = &mut wait.finding;
            let trials = if at < TRIED_WAITS {
                trial::attempt(services, (spec, options), finding)?
            } else {
                Trials::none(finding, "only the longest waits are tried")
            };
            self.wait_trials.push(trials);
        }
        if self.finding.is_some() {
            self.races = races::met(spec, options)?;
        }
        if let Some(measured) = &self.measured {
            self.large = measure::large(services, spec, measured)?;
        }
        Ok(self)
    }
}

impl Explain {
    /// Makes the run or reads the file, and explains it.
    ///
    /// # Errors
    /// When a policy or a file is bad.
    pub fn ask(&self, services: &Services<'_>) -> Result<Explanation, Error> {
        Ok(self.explained(services)?)
    }

    fn explained(&self, services: &Services<'_>) -> anyhow::Result<Explanation> {
        let worst = self.worst.unwrap_or_else(|| u16::from(self.task.is_some()));
        let observer = Observer::new(worst.into(), self.task.clone());
        let mut observer = observer.with_right(self.right).with_measures();
        match &self.of {
            ExplainOf::Dump(path) => {
                let bytes = input::bytes(services, path, input::OBJECT)?;
                let text = String::from_utf8_lossy(&bytes);
                let read = explain_dumps(&text);
                let dumps = read.with_context(|| path.display().to_string())?;
                let explanation = Explanation::of_dumps(dumps);
                Ok(explanation.untried("a dump is of a run that nobody can repeat"))
            }
            ExplainOf::Events(path) => {
                let file = services.open(path);
                let file = file.with_context(|| format!("cannot open {}", path.display()))?;
                let read = traces::replay(BufReader::new(file.content), &mut observer);
                read.with_context(|| path.display().to_string())?;
                self.check_task(&observer)?;
                let explanation = Explanation::of(&observer, None);
                Ok(explanation.untried("a file of events is of a run that is over"))
            }
            ExplainOf::Run(spec, options) => {
                say_end(services, spec);
                observer = right::observer(spec, self.right, observer);
                unset::say(services, spec);
                let runner = Runner::new(spec, services).with_options(*options);
                let summary = runner.with_sink(&mut observer).start()?;
                self.check_task(&observer)?;
                observer.set_blocked(&summary.blocked);
                let explanation = Explanation {
                    end: Some(summary.end),
                    ..Explanation::of(&observer, None)
                };
                explanation.tried(services, spec, *options)
            }
        }
    }

    fn check_task(&self, observer: &Observer) -> Result<(), UsageError> {
        match &self.task {
            Some(task) if !observer.has_asked() => Err(nobody(task, observer.groups())),
            _ => Ok(()),
        }
    }
}

/// No task of a run was called `name`, but `known` were.
pub fn nobody<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> UsageError {
    UsageError::new(Advised::new(
        format!(
            "no task of the run was called `{}`",
            model::plain::shown(name)
        ),
        suggest::hint(name, known),
    ))
}
