//! One simulated run, of a policy or of a scheduler's own program.

use explain::why::{Finding, Observer, Right};
use model::{Excused, Nanos, Sampler, SimTime, Sink, Summary};
use sim::{Checkpoint, Intervention, Options, Simulation};
use stats::Metrics;
use traces::{Later, Tee};
use workload::RunSpec;

use crate::error::of_run;
use crate::outcome::Outcome;
use crate::program;
use crate::right;
use crate::services::Services;
use crate::trial;
use crate::until::Until;

/// A simulated run that is being asked for. Beside what [`Simulation`] offers, it starts the
/// scheduler's own program that `spec` may have, hides what comes before the workload's begin, and
/// ends when nobody waits for it any more: see [`Services::check`].
#[must_use = "nothing runs before `start`"]
pub struct Runner<'a> {
    spec: &'a RunSpec,
    services: Services<'a>,
    options: Options,
    right: Option<Right>,
    sink: Option<&'a mut dyn Sink>,
    sampler: Option<(&'a mut dyn Sampler, Nanos)>,
    interventions: Vec<Intervention>,
}

impl<'a> Runner<'a> {
    /// A run of `spec` to which nobody listens.
    pub fn new(spec: &'a RunSpec, services: &Services<'a>) -> Self {
        Self {
            spec,
            services: *services,
            options: Options::default(),
            right: None,
            sink: None,
            sampler: None,
            interventions: Vec::new(),
        }
    }

    /// The run is computed as `options` say.
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Tasks that wait for long at the end are judged by `right`, or by what the policy declares.
    /// Only [`Runner::measure`] judges.
    pub const fn with_right(mut self, right: Option<Right>) -> Self {
        self.right = right;
        self
    }

    /// Does `interventions` to the run: see [`Simulation::with_interventions`].
    pub fn with_interventions(mut self, interventions: Vec<Intervention>) -> Self {
        self.interventions = interventions;
        self
    }

    /// Events go to `sink`, from the workload's begin on.
    pub fn with_sink(mut self, sink: &'a mut dyn Sink) -> Self {
        self.sink = Some(sink);
        self
    }

    /// `sampler` is shown the counters every `every`, beside all events. It sees the machine from
    /// time zero on, also before the workload's begin.
    ///
    /// # Panics
    /// When the run starts, if `every` is zero.
    pub fn sampled(mut self, sampler: &'a mut dyn Sampler, every: Nanos) -> Self {
        self.sampler = Some((sampler, every));
        self
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// When a policy, its program or the machine is bad, or when nobody waits for the run.
    pub fn start(self) -> anyhow::Result<Summary> {
        let (spec, services) = (self.spec, self.services);
        services.check()?;
        let mut nobody = Tee::new(Vec::new());
        let mut sink = Until::new(self.sink.unwrap_or(&mut nobody), services);
        let mut later;
        let sink: &mut dyn Sink = match spec.workload.begin {
            None => &mut sink,
            Some(begin) => {
                later = Later::new(begin.at, &mut sink);
                &mut later
            }
        };
        let mut simulation = Simulation::new(spec)
            .with_options(self.options)
            .with_interventions(self.interventions)
            .with_sink(sink);
        let mut sampler;
        if let Some((inner, every)) = self.sampler {
            sampler = Until::new(inner, services);
            simulation = simulation.sampled(&mut sampler, every);
        }
        let summary = match &spec.policy.program {
            None => simulation.start().map(|it| it.summary).map_err(of_run),
            Some(program) => program::run(&services, (program, spec), simulation),
        };
        // What was cut short is no result.
        services.check()?;
        summary
    }

    /// Runs up to `time`, so that several runs can go on from there, as [`Simulation::checkpoint`]
    /// does. `None` also for a load that begins in the middle. Nobody samples such a run.
    ///
    /// # Errors
    /// The errors of [`Runner::start`].
    pub fn checkpoint(self, time: SimTime) -> anyhow::Result<Option<Checkpoint>> {
        let (spec, services) = (self.spec, self.services);
        if spec.policy.program.is_some() || spec.workload.begin.is_some() {
            return Ok(None);
        }
        services.check()?;
        let mut nobody = Tee::new(Vec::new());
        let mut sink = Until::new(self.sink.unwrap_or(&mut nobody), services);
        let simulation = Simulation::new(spec)
            .with_options(self.options)
            .with_interventions(self.interventions)
            .with_sink(&mut sink);
        let checkpoint = simulation.checkpoint(time).map_err(of_run);
        services.check()?;
        checkpoint
    }

    /// Runs to the end, and gives the figures of the run in the place of its bare summary, and
    /// what else the metrics know.
    ///
    /// # Errors
    /// The errors of [`Runner::start`].
    pub fn measure(self) -> anyhow::Result<(Outcome, Metrics)> {
        let spec = self.spec;
        let mut metrics = Metrics::new();
        let mut sinks: Vec<&mut dyn Sink> = vec![&mut metrics];
        if let Some(sink) = self.sink {
            sinks.push(sink);
        }
        let mut sinks = Tee::new(sinks);
        let mut runner = Runner::new(spec, &self.services)
            .with_options(self.options)
            .with_interventions(self.interventions)
            .with_sink(&mut sinks);
        if let Some((sampler, every)) = self.sampler {
            runner = runner.sampled(sampler, every);
        }
        let mut summary = runner.start()?;
        judge_starved(&self.services, spec, self.options, self.right, &mut summary)?;
        Ok((Outcome::of(spec, &metrics, summary), metrics))
    }
}

/// Lets a run go on from `checkpoint` up to `until`, with these interventions, and with `sink`,
/// which has listened up to the checkpoint or is a copy of one that has.
///
/// # Errors
/// When the run cannot be made, or nobody waits for it any more.
pub fn resume(
    services: &Services<'_>,
    checkpoint: &Checkpoint,
    until: Nanos,
    interventions: Vec<Intervention>,
    sink: &mut dyn Sink,
) -> anyhow::Result<()> {
    services.check()?;
    let mut sink = Until::new(sink, *services);
    let run = checkpoint.resume().until(until);
    let run = run.with_interventions(interventions).with_sink(&mut sink);
    run.start().map_err(of_run)?;
    Ok(services.check()?)
}

/// Makes the run of `spec`, which came to `summary`, once more with decisions if it left tasks
/// waiting for long, and takes them out of `summary` if nobody is at fault. A run is a function of
/// its spec, so that is the same run; that of a program is left as it is, because its own time
/// would be spent twice.
///
/// # Errors
/// When nobody waits for the answer any more.
pub fn judge_starved(
    services: &Services<'_>,
    spec: &RunSpec,
    options: Options,
    right: Option<Right>,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    excuse_starved(services, (spec, options), right, summary, |_| Ok(true))
}

/// As [`judge_starved`], but a cause that trials do not prove is none, as in `explain`. They take
/// up to twenty times the run.
///
/// # Errors
/// When nobody waits for the answer any more.
pub fn try_starved(
    services: &Services<'_>,
    spec: &RunSpec,
    options: Options,
    right: Option<Right>,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    excuse_starved(services, (spec, options), right, summary, |finding| {
        Ok(trial::attempt(services, (spec, options), finding)?.accuses())
    })
}

/// Excuses whoever waits, unless there is a fault of which `accuses` says that it is one.
fn excuse_starved(
    services: &Services<'_>,
    (spec, options): (&RunSpec, Options),
    right: Option<Right>,
    summary: &mut Summary,
    accuses: impl FnOnce(&mut Finding) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    if summary.starved.is_empty() || spec.policy.program.is_some() {
        return Ok(());
    }
    let mut observer = right::observer(spec, right, Observer::new(0, None));
    let same = Runner::new(spec, services)
        .with_options(options)
        .with_sink(&mut observer)
        .start()?;
    observer.set_blocked(&same.blocked);
    let mut finding = observer.finding();
    let fault = finding.as_mut().filter(|it| it.is_fault());
    let is_fault = fault.is_some();
    if fault.map(accuses).transpose()? == Some(true) {
        return Ok(());
    }
    let why = finding.map_or("it was not their turn", |it| match it.tier() {
        _ if is_fault => "the cause is supposed, and no trial proves it",
        Some(_) => "others had their share, which the policy promises to nobody",
        None => it.fault.sentence(),
    });
    summary.excused = Some(Excused {
        tasks: std::mem::take(&mut summary.starved),
        why: why.to_owned(),
    });
    Ok(())
}
