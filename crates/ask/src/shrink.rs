//! Makes a run that shows a fault smaller, as long as it shows the same fault.
//!
//! Delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input",
//! 2002) over the tables and operations of the workload's text, and over CPUs, seed and duration.
//! What is tried is a text like any other: one that is no workload shows no fault.

mod capsule;
mod operations;
mod stalls;
mod tables;

use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::Context as _;
use explain::why::{Fault, Finding};
use model::{Interleave, MachineSpec, Nanos, PolicySpec, SimTime};
use workload::{RunSpec, Workload};

use crate::bundle::{Bound, Bundle};
use crate::like::Like;
use crate::measure;
use crate::services::Services;
use crate::violation::{self, Property, Signature};
use crate::words::counted;
use crate::workload_arg::Written;

pub(crate) use tables::Tables;

/// Nothing more is tried after so many runs.
const MOST_RUNS: usize = 20_000;
/// Runs of one round that are made at once, on any number of threads.
const ROUND: usize = 8;

/// A run, with its workload as text.
#[derive(Clone, Debug)]
pub struct Case {
    /// The policy.
    pub policy: PolicySpec,
    /// The machine.
    pub machine: MachineSpec,
    /// The workload.
    pub workload: Written,
    /// Its parameters that are set.
    pub scale: Vec<(String, i64)>,
    /// The seed.
    pub seed: u64,
    /// When the run ends at the latest.
    pub duration: Option<Nanos>,
}

/// How large a case is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Tasks that exist from the start.
    pub tasks: u32,
    /// Operations of the workload.
    pub operations: usize,
    /// CPUs.
    pub cpus: u16,
    /// When it ends at the latest.
    pub duration: Option<Nanos>,
    /// Stalls by which CPUs come in between, if they are known one by one.
    pub stalls: Option<usize>,
}

impl Case {
    /// The run.
    ///
    /// # Errors
    /// When the text is no workload.
    pub fn spec(&self, services: &Services<'_>) -> anyhow::Result<RunSpec> {
        let workload: Workload = (self.workload).parse_for(services, &self.scale, &self.machine)?;
        Ok(RunSpec {
            policy: self.policy.clone(),
            workload: Arc::new(workload),
            machine: self.machine.clone(),
            seed: self.seed,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: self.duration,
        })
    }

    /// One file with all of it.
    pub fn bundle(&self) -> Bundle {
        Bundle {
            policy: self.policy.clone(),
            machine: self.machine.clone(),
            bound: Some(Bound {
                workload: self.workload.clone(),
                scale: self.scale.clone(),
                seed: self.seed,
                duration_ns: self.duration.map(Nanos::get),
            }),
        }
    }

    /// What [`Case::bundle`] has made a file of.
    ///
    /// # Errors
    /// When the bundle has no workload.
    pub fn of_bundle(bundle: Bundle) -> anyhow::Result<Self> {
        let bound = bundle.bound.context("it has no workload of its own")?;
        Ok(Self {
            policy: bundle.policy,
            machine: bundle.machine,
            workload: bound.workload,
            scale: bound.scale,
            seed: bound.seed,
            duration: bound.duration_ns.map(Nanos::new),
        })
    }

    /// How large it is.
    ///
    /// # Errors
    /// When the text is no workload.
    pub fn size(&self, services: &Services<'_>) -> anyhow::Result<Size> {
        let spec = self.spec(services)?;
        let operations = Tables::read(&self.workload.text).map_or(0, |it| it.operations());
        Ok(Size {
            tasks: tasks_of(&spec),
            operations,
            cpus: self.machine.cpus,
            duration: self.duration,
            stalls: match &self.machine.interleave {
                Some(Interleave::At(stalls)) => Some(stalls.len()),
                _ => None,
            },
        })
    }

    fn with_text(&self, text: String) -> Self {
        let workload = Written {
            text,
            ..self.workload.clone()
        };
        Self {
            workload,
            ..self.clone()
        }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            tasks,
            operations,
            cpus,
            duration,
            stalls,
        } = self;
        let mut words = vec![
            counted((*tasks).into(), "task"),
            counted(*operations as u64, "operation"),
            counted((*cpus).into(), "CPU"),
        ];
        words.extend(stalls.map(|count| counted(count as u64, "stall")));
        write!(f, "{}", words.join(", "))?;
        match duration {
            Some(duration) => write!(f, ", {duration}"),
            None => Ok(()),
        }
    }
}

/// Its outcome.
#[derive(Debug)]
pub struct Shrunk {
    /// The smallest case.
    pub case: Case,
    /// What is wrong with it.
    pub finding: Finding,
    /// Runs that were made.
    pub runs: usize,
    /// The time was over before nothing more could be left out.
    pub is_cut: bool,
}

/// Tasks that exist from the start.
fn tasks_of(spec: &RunSpec) -> u32 {
    spec.workload.groups.iter().map(|group| group.count).sum()
}

/// How it is done.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// What the run must keep, besides that nobody starves and nothing errs.
    pub properties: &'a [Property],
    /// The dump whose signature the run must keep, too.
    pub like: Option<&'a Like>,
    /// Threads.
    pub jobs: NonZeroUsize,
    /// Whether the time is over: then no new run is made.
    pub is_late: &'a (dyn Fn() -> bool + Sync),
    /// Hears how many runs were made so far.
    pub tried: &'a (dyn Fn(usize) + Sync),
}

/// Makes `case`, which shows `finding`, smaller.
///
/// # Errors
/// When a thread of ours fails.
pub fn shrink(
    services: &Services<'_>,
    (case, finding): (Case, Finding),
    effort: Effort<'_>,
) -> anyhow::Result<Shrunk> {
    let must_be_sound = is_sound(services, &case.spec(services)?)?;
    let mut shrinker = Shrinker {
        services: *services,
        must_be_sound,
        wanted: Signature::of(&finding),
        least: starvation(&finding).map(|wait| wait.min(LONG)),
        best: (case, finding),
        effort,
        runs: 0,
    };
    let mut has_changed = true;
    while has_changed && !shrinker.is_over() {
        has_changed = false;
        for step in STEPS {
            while !shrinker.is_over() && shrinker.take_first(step(&shrinker.best.0))? {
                has_changed = true;
            }
        }
    }
    shrinker.name_stalls()?;
    let (case, finding) = shrinker.best.clone();
    Ok(Shrunk {
        case,
        finding,
        runs: shrinker.runs,
        is_cut: shrinker.is_over(),
    })
}

/// Smaller cases, those that leave out most first.
type Step = fn(&Case) -> Vec<Case>;

/// Cheap ones first: a short run on few CPUs makes all others cheaper.
const STEPS: [Step; 8] = [
    shorter,
    without_tables,
    fewer_cpus,
    fewer_tasks,
    plainer_machine,
    without_operations,
    without_keys,
    plain_seed,
];

struct Shrinker<'a> {
    wanted: Signature,
    /// Somebody must wait so long: in a short run everybody waits for a part of it.
    least: Option<Nanos>,
    best: (Case, Finding),
    /// The load errs under no other policy either: it must not begin to.
    must_be_sound: bool,
    effort: Effort<'a>,
    services: Services<'a>,
    runs: usize,
}

impl Shrinker<'_> {
    fn is_over(&self) -> bool {
        self.runs >= MOST_RUNS || (self.effort.is_late)()
    }

    /// Finds the few stalls that lead to the fault, when everything else is small: another load
    /// reaches other accesses, and needs others.
    fn name_stalls(&mut self) -> anyhow::Result<()> {
        let named = stalls::named(&self.services, &self.best.0, violation::options());
        if self.is_over() || !self.take_first(named.into_iter().collect())? {
            return Ok(());
        }
        while !self.is_over() && self.take_first(stalls::fewer(&self.best.0))? {}
        self.take_first(stalls::single(&self.best.0))?;
        while !self.is_over() && self.take_first(stalls::shorter(&self.best.0))? {}
        Ok(())
    }

    /// Goes on with the first of `cases` that shows the same fault, if there is one.
    fn take_first(&mut self, cases: Vec<Case>) -> anyhow::Result<bool> {
        // What is no workload costs no run. Without its key `count` a group may have more tasks
        // than with it.
        let tasks = |case: &Case| case.spec(&self.services).ok().map(|spec| tasks_of(&spec));
        let most = tasks(&self.best.0);
        let cases = cases.into_iter();
        let cases = cases.filter(|it| tasks(it).is_some_and(|tasks| Some(tasks) <= most));
        let cases: Vec<_> = cases.collect();
        for round in cases.chunks(ROUND) {
            if self.is_over() {
                return Ok(false);
            }
            self.runs += round.len();
            (self.effort.tried)(self.runs);
            let judge = |case: &Case| Ok(self.shows(case));
            let found = self.services.map(round, self.effort.jobs, "runs", judge)?;
            let first = round.iter().zip(found).find_map(|(case, finding)| {
                let finding = finding?;
                Some((case.clone(), finding))
            });
            if let Some(best) = first {
                self.best = best;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The finding, if it is the same fault: its class and its line, and the signature of a dump if
    /// one is asked for. The class alone would let the
    /// search wander to another fault, and the victim is what a simpler case replaces. A case that
    /// cannot run shows none.
    fn shows(&self, case: &Case) -> Option<Finding> {
        let spec = case.spec(&self.services).ok()?;
        let finding = violation::find(&self.services, &spec, self.effort.properties).ok()??;
        let waits = starvation(&finding);
        let is_same = Signature::of(&finding) == self.wanted;
        let is_like = |like: &Like| like.is_shown_by(&finding, &spec.workload);
        let is_same = is_same && self.effort.like.is_none_or(is_like);
        let waits_enough = self.least.is_none_or(|least| waits >= Some(least));
        // The last question, for it takes another run.
        let is_sound = || !self.must_be_sound || is_sound(&self.services, &spec).unwrap_or(false);
        (is_same && waits_enough && is_sound()).then_some(finding)
    }
}

/// Whether the load ends without an error under `fifo`. A task that never runs under a faulty
/// policy may ask for something that is not there any more: whoever mends the policy would get an
/// error of the load.
///
/// # Errors
/// When nobody waits for the answer any more.
fn is_sound(services: &Services<'_>, spec: &RunSpec) -> anyhow::Result<bool> {
    Ok(measure::of_fifo(services, spec)?.is_some())
}

/// A wait of a second is one that nobody takes for a turn.
const LONG: Nanos = Nanos::from_secs(1);

/// How long the victim waits, if that is the fault: not if the policy was ejected for a misuse. Of
/// unfair shares, how long they have been so.
fn starvation(finding: &Finding) -> Option<Nanos> {
    if finding.fault == Fault::UnfairShare {
        return Some(finding.time.since(SimTime::ZERO));
    }
    let message = finding.message.as_ref();
    let is_misuse = message.is_some_and(|it| !it.contains("failed to run for"));
    let victim = finding.victim.as_ref().filter(|_| !is_misuse)?;
    victim.since.map(|_| victim.waited)
}

/// Ends the run earlier.
fn shorter(case: &Case) -> Vec<Case> {
    const LEAST: u64 = 1_000_000;
    let Some(duration) = case.duration.map(Nanos::get) else {
        return Vec::new();
    };
    let parts = [(1, 16), (1, 4), (1, 2), (3, 4)];
    let shorter = parts.map(|(part, of)| duration / of * part / LEAST * LEAST);
    let shorter = shorter.into_iter().filter(|it| *it >= LEAST);
    let with = |ns| Case {
        duration: Some(Nanos::new(ns)),
        ..case.clone()
    };
    shorter.map(with).collect()
}

fn fewer_cpus(case: &Case) -> Vec<Case> {
    let cpus = case.machine.cpus;
    let mut fewer: Vec<_> = [1, 2, 3, cpus / 2, cpus.saturating_sub(1)]
        .into_iter()
        .filter(|it| *it > 0 && *it < cpus)
        .collect();
    fewer.dedup();
    let with = |cpus| {
        let machine = MachineSpec {
            cpus,
            ..case.machine.clone()
        };
        Case {
            machine,
            ..case.clone()
        }
    };
    fewer.into_iter().map(with).collect()
}

/// One setting of the machine as it is by default.
fn plainer_machine(case: &Case) -> Vec<Case> {
    let (usual, now) = (MachineSpec::default(), &case.machine);
    let plainer = [
        MachineSpec {
            interleave: None,
            ..now.clone()
        },
        MachineSpec {
            profile: usual.profile.clone(),
            ..now.clone()
        },
        MachineSpec {
            hardware: None,
            ..now.clone()
        },
        MachineSpec {
            smt: 1,
            ..now.clone()
        },
        MachineSpec {
            llc: 0,
            node: 0,
            ..now.clone()
        },
        MachineSpec {
            node: 0,
            ..now.clone()
        },
        MachineSpec {
            hz: usual.hz,
            ..now.clone()
        },
        MachineSpec {
            kernel: usual.kernel,
            ..now.clone()
        },
    ];
    let plainer = plainer.into_iter().filter(|machine| machine != now);
    let with = |machine| Case {
        machine,
        ..case.clone()
    };
    plainer.map(with).collect()
}

fn plain_seed(case: &Case) -> Vec<Case> {
    let one = Case {
        seed: 1,
        ..case.clone()
    };
    if case.seed == 1 {
        Vec::new()
    } else {
        vec![one]
    }
}

/// The cases of other texts.
fn texts(case: &Case, variants: impl Fn(&Tables) -> Vec<Tables>) -> Vec<Case> {
    let Some(tables) = Tables::read(&case.workload.text) else {
        return Vec::new();
    };
    let variants = variants(&tables).into_iter();
    variants.map(|it| case.with_text(it.text())).collect()
}

fn without_tables(case: &Case) -> Vec<Case> {
    texts(case, Tables::without_some)
}

fn fewer_tasks(case: &Case) -> Vec<Case> {
    texts(case, Tables::fewer_tasks)
}

fn without_operations(case: &Case) -> Vec<Case> {
    texts(case, Tables::fewer_operations)
}

/// Without keys of tables, and without parameters that are set.
fn without_keys(case: &Case) -> Vec<Case> {
    let mut cases = texts(case, Tables::fewer_keys);
    cases.extend((0..case.scale.len()).map(|at| {
        let mut fewer = case.clone();
        fewer.scale.remove(at);
        fewer
    }));
    cases
}
