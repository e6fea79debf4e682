//! The runs that the options of a verb ask for: policies under one workload, on one machine.

use std::sync::Arc;

use model::{Advice, Advised, MachineSpec, Nanos, PolicySpec, seeds};
use workload::{RunSpec, Workload};

use crate::bundle::Bound;
use crate::error::UsageError;
use crate::machine::MachineChange;
use crate::note::Topic;
use crate::policy::{self, FoundPolicy};
use crate::services::Services;
use crate::workload_arg::{self, Written, is_shipped};

/// What the options say of every run.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The workload's name or file.
    pub workload: Option<&'a str>,
    /// Parameters of it.
    pub scale: &'a [(String, i64)],
    /// Changes to the machine.
    pub machine: &'a MachineChange,
    /// The seed.
    pub seed: Option<u64>,
    /// When runs end at the latest.
    pub duration: Option<Nanos>,
    /// By how much later tasks may begin.
    pub start_jitter: StartJitter,
}

/// By how much later than the load says the tasks of a run may begin.
#[derive(Clone, Copy, Debug)]
pub enum StartJitter {
    /// As the load says.
    OfLoad,
    /// By up to so much.
    Most(Nanos),
    /// By up to the time from one tick of the machine to the next: ticks decide when a task is
    /// preempted, and no recording says where they were.
    Tick,
}

impl StartJitter {
    /// What an option of this name asks for.
    pub fn asked(option: Option<Nanos>) -> Self {
        option.map_or(Self::OfLoad, Self::Most)
    }
}

impl Asked<'_> {
    /// One run for each policy. `given` is a workload that is not found by its name. A recording of
    /// a program brings the run that it is of, and is refused for another one.
    ///
    /// # Errors
    /// When there is no workload or it is wrong, or a recording is of another run.
    pub fn specs(
        &self,
        services: &Services<'_>,
        found: Vec<FoundPolicy>,
        given: Option<Workload>,
    ) -> anyhow::Result<Vec<RunSpec>> {
        let bound = found
            .iter()
            .find_map(|it| Some((it.bound.clone()?, it.machine.clone()?)));
        let is_given = given.is_some();
        let mut workload = match (given, self.workload, &bound) {
            (Some(workload), ..) => workload,
            (None, Some(name), _) => self.named(services, name, policy::bundled(&found))?,
            (None, None, Some((bound, machine))) => {
                let scale = match self.scale {
                    [] => &bound.scale,
                    scale => scale,
                };
                bound.workload.parse_for(services, scale, machine)?
            }
            (None, None, None) => {
                let message = Advised::new(
                    "a run needs a workload",
                    "give --workload NAME, such as desk",
                );
                return Err(UsageError::new(message).into());
            }
        };
        let usual = bound
            .as_ref()
            .map_or(&workload.machine, |(_, machine)| machine)
            .clone();
        match self.start_jitter {
            StartJitter::OfLoad => {}
            StartJitter::Most(most) => workload.start_jitter = most,
            StartJitter::Tick => {
                workload.start_jitter = self.machine.change(services, &usual)?.tick();
            }
        }
        let workload = Arc::new(workload);
        let duration = bound.as_ref().and_then(|(bound, _)| bound.duration_ns);
        let duration = self.duration.or_else(|| duration.map(Nanos::new));
        let seed = bound.as_ref().map(|(bound, _)| bound.seed);
        let seed = self.seed.or(seed).unwrap_or(workload.seed);
        let mut specs = Vec::new();
        for found in found {
            let machine = self
                .machine
                .change(services, found.machine.as_ref().unwrap_or(&usual))?;
            let spec = RunSpec {
                policy: found.policy,
                workload: Arc::clone(&workload),
                machine,
                seed,
                tie_seed: None,
                attach_after: Nanos::ZERO,
                duration,
            };
            check_machine(&spec.policy, &spec.machine, found.machine.as_ref())?;
            // A capsule may be varied: its object is not bound to one run.
            if let Some(bound) = found.bound.filter(|_| spec.policy.program.is_some()) {
                self.check(services, &spec, (&bound, is_given))?;
            }
            specs.push(spec);
        }
        Ok(specs)
    }

    /// The workload of this name. From a trace what the machine charges anew is taken off.
    fn named(
        &self,
        services: &Services<'_>,
        name: &str,
        bundled: Option<&MachineSpec>,
    ) -> anyhow::Result<Workload> {
        let costs = || self.machine.recorded_costs(services, bundled);
        workload_arg::find_charged(services, name, self.scale, costs)
    }

    /// Refuses a recording of another run.
    fn check(
        &self,
        services: &Services<'_>,
        spec: &RunSpec,
        (bound, is_given): (&Bound, bool),
    ) -> anyhow::Result<()> {
        let name = self.workload;
        let written = name.map(|name| Written::find(services, name)).transpose()?;
        let other_text = written.is_some_and(|it| it.text != bound.workload.text);
        let other_scale = match name {
            Some(_) => self.scale != bound.scale,
            None => !self.scale.is_empty() && self.scale != bound.scale,
        };
        let duration = spec.duration.map(Nanos::get);
        if is_given || other_text {
            return Err(is_of(
                spec,
                &format!("the workload {}", bound.workload.file),
            ));
        }
        if other_scale {
            let scale = bound
                .scale
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let scale = scale.collect::<Vec<_>>().join(" ");
            let what = format!("the workload with the parameters [{scale}]");
            return Err(is_of(spec, &what));
        }
        if !matches!(self.start_jitter, StartJitter::OfLoad) {
            return Err(is_of(spec, "the start jitter of its workload"));
        }
        if spec.seed != bound.seed {
            return Err(is_of(spec, &format!("seed {}", bound.seed)));
        }
        if duration != bound.duration_ns {
            let length = bound.duration_ns.map(Nanos::new);
            let length = length.map_or("the workload's own length".to_owned(), |it| it.to_string());
            return Err(is_of(spec, &length));
        }
        Ok(())
    }
}

/// Says, before a run begins, that it ends at another time than the user may think.
pub fn say_end(services: &Services<'_>, spec: &RunSpec) {
    if let (_, Some(note)) = sim::latest_end(spec) {
        services.note(Topic::Run, note);
    }
    say_traps(services, &spec.workload);
}

/// Names what a workload measures otherwise than its user may think: spans that begin when their
/// task already has a CPU, and arrivals by `sleep`. The workloads that are built in measure where
/// the programs measured that they stand for.
pub fn say_traps(services: &Services<'_>, workload: &Workload) {
    if is_shipped(&workload.file) {
        return;
    }
    say_some(services, &workload.late_spans(), "more spans begin so");
    say_some(services, &workload.empty_turns(), "more begin so");
}

/// Says the first few one by one, and how many more there are.
fn say_some(services: &Services<'_>, all: &[impl Advice], more: &str) {
    const NAMED: usize = 3;
    for one in all.iter().take(NAMED) {
        services.note(Topic::Run, one.in_full());
    }
    if let rest @ 1.. = all.len().saturating_sub(NAMED) {
        services.note(Topic::Run, format!("{rest} {more}"));
    }
}

/// Refuses runs on several machines, whose results stand in one table, and tells policies of one
/// name apart.
///
/// # Errors
/// When bundles are for machines that differ.
pub fn side_by_side(mut specs: Vec<RunSpec>) -> Result<Vec<RunSpec>, UsageError> {
    let mut machines = specs.iter().map(|spec| &spec.machine);
    let first = machines.next();
    if machines.any(|other| Some(other) != first) {
        let message = Advised::new(
            "the bundles are for machines that differ",
            "give one machine to all with --cpus, --smt, --llc, --node, --hz, --kernel and \
             --profile, or run them one by one",
        );
        return Err(UsageError::new(message));
    }
    number_namesakes(&mut specs);
    Ok(specs)
}

/// Policies of one name are told apart: a second `fifo` becomes `fifo#2`. Their tables and files
/// would be mixed up otherwise.
pub fn number_namesakes(specs: &mut [RunSpec]) {
    for at in (0..specs.len()).rev() {
        let (before, rest) = specs.split_at_mut(at);
        let name = &mut rest[0].policy.name;
        let namesakes = before.iter().filter(|spec| spec.policy.name == *name);
        match namesakes.count() {
            0 => {}
            others => *name += &format!("#{}", others + 1),
        }
    }
}

/// So many runs that differ in their seed: the first has that of `spec`, the others are derived
/// from it.
#[must_use]
pub fn seeded(spec: &RunSpec, runs: u32) -> Vec<RunSpec> {
    let seeds = (0..u64::from(runs)).map(|run| seeds::of_run(spec.seed, run));
    let spec = |seed| RunSpec {
        seed,
        ..spec.clone()
    };
    seeds.map(spec).collect()
}

/// The runs that `spec` asks for: one, or so many of different seeds.
#[must_use]
pub fn all_of(spec: &RunSpec, runs: Option<u32>) -> Vec<RunSpec> {
    runs.map_or_else(|| vec![spec.clone()], |runs| seeded(spec, runs))
}

/// Refuses a recording of another machine.
///
/// # Errors
/// Names the policy.
pub fn check_machine(
    policy: &PolicySpec,
    machine: &MachineSpec,
    recorded_on: Option<&MachineSpec>,
) -> Result<(), UsageError> {
    let is_recording = policy
        .program
        .as_ref()
        .is_some_and(|it| it.recorded.is_some());
    if is_recording && recorded_on.is_some_and(|it| it != machine) {
        return Err(UsageError::new(Advised::new(
            format!("{}: the recording is of another machine", policy.name),
            "run its program with --scheduler instead",
        )));
    }
    Ok(())
}

fn is_of(spec: &RunSpec, what: &str) -> anyhow::Error {
    let name = &spec.policy.name;
    UsageError::new(Advised::new(
        format!("{name}: the recording is of a run with {what}"),
        "for another run give its program with --scheduler, or record it with --setup-only if it \
         does nothing after it has attached",
    ))
    .into()
}

/// Refuses a recording where runs have several seeds.
///
/// # Errors
/// Names the policy.
pub fn refuse_recordings_of_runs(specs: &[RunSpec]) -> Result<(), UsageError> {
    let is_bound = |policy: &PolicySpec| {
        let recorded = policy.program.as_ref().and_then(|it| it.recorded.as_ref());
        recorded.is_some_and(|it| !it.setup_only)
    };
    match specs.iter().find(|spec| is_bound(&spec.policy)) {
        None => Ok(()),
        Some(spec) => Err(UsageError::new(format!(
            "{}: the recording is of one run with one seed",
            spec.policy.name
        ))),
    }
}
