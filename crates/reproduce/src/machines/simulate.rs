//! Runs an experiment's cells on the simulated machine, and keeps what they gave.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::experiments::probe::{Probe, WantedProbe};
use anyhow::Context as _;
use ask::key::{Front, Key};
use ask::outcome::Outcome;
use ask::runner::Runner;
use ask::sweep::KeptRuns as _;
use model::{Event, EventKind, EventMask, Header, Nanos, Sampler, SimTime, Sink, Summary, What};
use runslice::door::{COMPUTER, SIMULATES, say};
use serde_json::{Value, json};
use stats::Metrics;
use traces::Tee;
use workload::RunSpec;

use crate::experiments::cells::{CellId, ExperimentResults, RunSample};
use crate::experiments::experiment::{Experiment, PointWork, Wished};
use crate::machines::{RerunOptions, found};

/// Runs with more tasks than this do not keep what single tasks did.
const TASKS_MAX: usize = 64;

/// One run of a cell.
#[derive(Debug)]
struct Planned<'a> {
    /// Index of its experiment among those that are run.
    experiment: usize,
    cell: CellId,
    spec: RunSpec,
    scale: &'a [(String, i64)],
    probes: &'a [WantedProbe],
    key: Key,
}

/// All runs of some experiments.
fn plan<'a>(experiments: &'a [Experiment], quick: bool) -> Vec<Planned<'a>> {
    let mut runs = Vec::new();
    // The runs of a cell differ in their seeds alone.
    let mut fronts = BTreeMap::new();
    for (index, experiment) in experiments.iter().enumerate() {
        for Wished { cell, seed, .. } in experiment.runs(quick) {
            let set = &experiment.sets[cell.set];
            let point = &set.points[cell.point];
            // Commands are for kernels.
            let PointWork::Load(load) = &point.work else {
                continue;
            };
            let spec = RunSpec {
                policy: experiment.arms[cell.arm].policy.clone(),
                workload: Arc::clone(load),
                machine: point.machine.clone(),
                seed,
                tie_seed: None,
                attach_after: Nanos::ZERO,
                duration: set.duration,
            };
            let probes = &set.probes;
            let front = fronts.entry((index, cell)).or_insert_with(|| {
                let more = format!("reproduce {probes:?}");
                Front::of(SIMULATES, (&spec, &point.scale), &more)
            });
            runs.push(Planned {
                experiment: index,
                cell,
                key: front.key(seed),
                spec,
                scale: &point.scale,
                probes,
            });
        }
    }
    runs
}

/// Makes the runs of experiments that the store lacks, and reads all. `results` has one entry an
/// experiment.
///
/// # Errors
/// When a run cannot be made or kept.
pub fn run(
    experiments: &[Experiment],
    how: RerunOptions<'_>,
    results: &mut [ExperimentResults],
) -> anyhow::Result<()> {
    let runs = plan(experiments, how.quick);
    let mut seen = BTreeSet::new();
    let missing: Vec<&Planned<'_>> = runs
        .iter()
        .filter(|run| seen.insert(run.key) && how.store.get(run.key).is_none())
        .collect();
    COMPUTER.map(&missing, COMPUTER.jobs(how.jobs), "runs", |run| {
        let document = simulate(run)?;
        how.store.put(run.key, &document.to_string())
    })?;
    for run in &runs {
        let line = how.store.get(run.key);
        let line = line.context("a run is gone from the folder of results")?;
        let document: Value = serde_json::from_str(&line)?;
        let cells = &mut results[run.experiment].cells;
        cells
            .entry(run.cell)
            .or_default()
            .push(RunSample::of(&document));
    }
    if missing.len() < seen.len() {
        let (had, all) = (seen.len() - missing.len(), seen.len());
        say(
            "reproduce",
            &format!("{had} of {all} runs were there already"),
        );
    }
    Ok(())
}

/// One run with its probes, as it is kept.
fn simulate(run: &Planned<'_>) -> anyhow::Result<Value> {
    let mut metrics = Metrics::new();
    let mut ends = Ends::default();
    let mut probes: Vec<Probe> = run.probes.iter().cloned().map(Probe::new).collect();
    let what = || {
        let (policy, load) = (&run.spec.policy.name, &run.spec.workload.name);
        format!("{load} under {policy} with seed {}", run.spec.seed)
    };
    let summary =
        run_probed(&run.spec, vec![&mut metrics, &mut ends], &mut probes).with_context(what)?;
    let outcome = Outcome::of(&run.spec, &metrics, summary);
    let mut document = serde_json::to_value(&outcome).context("the results as JSON")?;
    let tasks = document["report"]
        .as_object_mut()
        .and_then(|it| it.remove("tasks"));
    if let Some(tasks) = tasks.filter(|it| it.as_array().is_some_and(|it| it.len() <= TASKS_MAX)) {
        document["tasks"] = tasks;
    }
    document["probes"] = found(run.probes, &probes);
    document["finished"] = json!(ends.by_group());
    document["ejected"] = json!(outcome.ejection().is_some());
    document["scale"] = json!(run.scale);
    Ok(document)
}

/// Runs `spec` before `sinks` and `probes`, and shows these the policy's counters if one asks.
fn run_probed<'a>(
    spec: &RunSpec,
    mut sinks: Vec<&'a mut dyn Sink>,
    probes: &'a mut [Probe],
) -> anyhow::Result<Summary> {
    let every = probes.iter().filter_map(Probe::interval).reduce(common);
    let Some(every) = every else {
        sinks.extend(probes.iter_mut().map(|probe| probe as &mut dyn Sink));
        return Runner::new(spec, &COMPUTER)
            .with_sink(&mut Tee::new(sinks))
            .start();
    };
    Runner::new(spec, &COMPUTER)
        .with_sink(&mut Tee::new(sinks))
        .sampled(&mut Probes(probes), every)
        .start()
}

/// The longest span of which both are multiples.
fn common(a: Nanos, b: Nanos) -> Nanos {
    let (mut a, mut b) = (a.get(), b.get());
    while b > 0 {
        (a, b) = (b, a % b);
    }
    Nanos::new(a)
}

/// Probes that are shown the policy's counters.
struct Probes<'a>(&'a mut [Probe]);

impl Sink for Probes<'_> {
    fn wants(&self) -> EventMask {
        let wants = self.0.iter().map(Sink::wants);
        wants.fold(EventMask::NONE, EventMask::union)
    }

    fn begin(&mut self, header: &Header) {
        self.0.iter_mut().for_each(|it| it.begin(header));
    }

    fn events(&mut self, events: &[Event]) {
        self.0.iter_mut().for_each(|it| it.events(events));
    }

    fn finish(&mut self, now: SimTime) {
        self.0.iter_mut().for_each(|it| it.finish(now));
    }
}

impl Sampler for Probes<'_> {
    fn sample(&mut self, sample: &model::Sample) {
        self.0.iter_mut().for_each(|it| it.sample(sample));
    }
}

/// When the last task of each group exited.
#[derive(Debug, Default)]
struct Ends {
    names: Vec<String>,
    groups: Vec<u32>,
    last: BTreeMap<u32, SimTime>,
}

impl Ends {
    fn by_group(&self) -> BTreeMap<String, u64> {
        let named = self.last.iter().filter_map(|(group, time)| {
            let name = self.names.get(*group as usize)?;
            Some((format!("{name}.ns"), time.as_nanos()))
        });
        named.collect()
    }
}

impl Sink for Ends {
    fn wants(&self) -> EventMask {
        EventMask::NONE.with(EventKind::New).with(EventKind::Exit)
    }

    fn begin(&mut self, header: &Header) {
        self.names = header.groups.iter().map(|it| it.name.clone()).collect();
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            match event.what() {
                What::New { group, .. } => self.groups.push(group),
                What::Exit => {
                    let group = self.groups[event.task.index()];
                    self.last.insert(group, event.time);
                }
                _ => {}
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}
