//! Schedulers under one load, simulated.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use explain::why::Right;
use model::Nanos;
use stats::Metrics;
use stats::compare::{MeasuredNumber, Role, Set};
use workload::RunSpec;

use crate::error::{Error, UsageError};
use crate::goal::Goal;
use crate::load_source::LoadSource;
use crate::machine::MachineChange;
use crate::outcome::{Outcome, Results, World};
use crate::policy::{self, FoundPolicy};
use crate::runner::Runner;
use crate::runs::{self, Asked, StartJitter};
use crate::services::Services;
use crate::sets::File;

/// Simulates schedulers under one load, on one machine.
#[derive(Clone, Debug, Default)]
pub struct Simulate {
    /// The schedulers.
    pub schedulers: Vec<FoundPolicy>,
    /// The load; without it that of a bundle.
    pub load: Option<LoadSource>,
    /// Parameters of the load.
    pub scale: Vec<(String, i64)>,
    /// Changes to the machine.
    pub machine: MachineChange,
    /// Seed of the first run.
    pub seed: Option<u64>,
    /// When a run ends at the latest.
    pub duration: Option<Nanos>,
    /// By how much later tasks may begin.
    pub start_jitter: Option<Nanos>,
    /// The load as real processes play it, which had slept for so long before it.
    pub as_played: Option<Nanos>,
    /// Runs of each scheduler, which differ in their seeds; `None` is one.
    pub runs: Option<u32>,
    /// Threads for several runs; the number does not change the answer.
    pub jobs: Option<NonZeroUsize>,
    /// Limits of each run.
    pub options: sim::Options,
    /// What is measured of each run besides.
    pub goals: Vec<Goal>,
    /// The right by which tasks that wait for long are judged; `None`: what each policy declares.
    pub right: Option<Right>,
}

/// Most memory of each policy that may be asked for, MiB.
pub const MEMORY_MAX_MIB: u64 = 1 << 20;
/// Most runs of each scheduler.
pub const RUNS_MAX: u32 = 1_000_000;

/// Simulated runs that are over.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The first run of each scheduler.
    pub specs: Vec<RunSpec>,
    /// What all runs came to, scheduler by scheduler.
    pub results: Results,
    /// For each run what was measured of each goal; `None` if the run has none.
    pub goals: Vec<Vec<Option<f64>>>,
}

impl Simulate {
    /// The first run of each scheduler.
    ///
    /// # Errors
    /// When the load or the machine is wrong, a recording is of another run, or bundles are for
    /// machines that differ.
    pub fn specs(&self, services: &Services<'_>) -> Result<Vec<RunSpec>, Error> {
        Ok(self.all_specs(services)?)
    }

    /// Makes the runs.
    ///
    /// # Errors
    /// As [`Simulate::specs`] and [`Simulate::run`].
    pub fn ask(&self, services: &Services<'_>) -> Result<Simulated, Error> {
        self.run(services, self.specs(services)?)
    }

    /// Makes the runs of which these are the first.
    ///
    /// # Errors
    /// When a policy, its program or a goal is wrong.
    pub fn run(&self, services: &Services<'_>, specs: Vec<RunSpec>) -> Result<Simulated, Error> {
        Ok(self.simulated(services, specs)?)
    }

    fn all_specs(&self, services: &Services<'_>) -> anyhow::Result<Vec<RunSpec>> {
        let bundled = policy::bundled(&self.schedulers);
        let load = self.load.as_ref();
        let load = load
            .map(|it| it.charged(services, &self.machine, bundled))
            .transpose()?;
        let given = load.as_ref().map(|it| it.given(services, &self.scale));
        let given = given.transpose()?;
        let (name, given) = given.unwrap_or_default();
        let asked = Asked {
            workload: name,
            scale: &self.scale,
            machine: &self.machine,
            seed: self.seed,
            duration: self.duration,
            start_jitter: StartJitter::asked(self.start_jitter),
        };
        let mut specs = asked.specs(services, self.schedulers.clone(), given)?;
        if let Some(before) = self.as_played {
            specs = specs.iter().map(|spec| spec.as_played(before)).collect();
        }
        Ok(runs::side_by_side(specs)?)
    }

    fn simulated(&self, services: &Services<'_>, specs: Vec<RunSpec>) -> anyhow::Result<Simulated> {
        if self.runs.is_some() {
            runs::refuse_recordings_of_runs(&specs)?;
        }
        runs::say_end(services, &specs[0]);
        let make = |spec: &RunSpec| {
            let runner = Runner::new(spec, services)
                .with_options(self.options)
                .with_right(self.right);
            let (outcome, metrics) = runner.measure()?;
            let values = self.values(&metrics, &outcome)?;
            Ok((outcome, values))
        };
        let each = specs.iter().flat_map(|it| runs::all_of(it, self.runs));
        let all: Vec<RunSpec> = each.collect();
        let done: Vec<(Outcome, Vec<Option<f64>>)> =
            services.map(&all, services.jobs(self.jobs), "runs", make)?;
        let (outcomes, goals) = done.into_iter().unzip();
        Ok(Simulated {
            results: Results::simulated(&specs[0], outcomes),
            specs,
            goals,
        })
    }

    /// What was measured of each goal.
    fn values(&self, metrics: &Metrics, outcome: &Outcome) -> anyhow::Result<Vec<Option<f64>>> {
        let value = |goal: &Goal| {
            goal.check(&outcome.report).map_err(UsageError::new)?;
            Ok(goal.value(metrics, &outcome.report))
        };
        self.goals.iter().map(value).collect()
    }
}

impl Simulated {
    /// What was measured of the goals, for a comparison of the policies.
    #[must_use]
    pub fn goal_file(&self, asked: &[Goal]) -> File {
        File {
            stem: "goals".to_owned(),
            sets: self.goal_sets(asked),
            baseline: None,
            again: None,
            looks: 1,
            unique: BTreeSet::new(),
        }
    }

    /// The runs of each policy as a set of what was measured of the goals. A run whose policy was
    /// ejected does not count.
    fn goal_sets(&self, asked: &[Goal]) -> Vec<Set> {
        let mut sets: Vec<Set> = Vec::new();
        let mut first = None;
        for (outcome, values) in self.results.outcomes.iter().zip(&self.goals) {
            if sets.last().is_none_or(|set| set.arm != outcome.policy) {
                first = None;
                sets.push(Set::new(
                    &outcome.policy,
                    &self.results.workload,
                    World::Simulated.name(),
                ));
            }
            let Some(set) = sets.last_mut() else { continue };
            if outcome.summary.error().is_some() {
                set.void += 1;
                continue;
            }
            let measured = asked.iter().zip(values).filter_map(|(goal, value)| {
                Some(MeasuredNumber {
                    name: goal.to_string(),
                    measure: goal.measure(),
                    better: goal.better(),
                    role: Role::Goal,
                    value: (*value)?,
                })
            });
            let grown = asked.iter().filter_map(|goal| goal.growth(&outcome.report));
            set.add(measured.chain(grown).collect(), Some(outcome.report.seed));
            // A goal may be the same in every run without the runs being one.
            let all = &outcome.report.all;
            set.differs |= *first.get_or_insert(all) != all;
            set.starved += usize::from(!outcome.summary.starved.is_empty());
        }
        sets
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use super::*;
    use crate::policy;
    use crate::services::{Job, Workers};

    /// Threads of which the last begins first.
    struct Backwards(Mutex<Vec<(usize, usize)>>);

    impl Workers for Backwards {
        fn usual(&self) -> NonZeroUsize {
            NonZeroUsize::new(4).unwrap()
        }

        fn each(
            &self,
            count: usize,
            jobs: NonZeroUsize,
            _: &str,
            work: &(dyn Fn(usize) -> bool + Sync),
        ) {
            self.0.lock().unwrap().push((count, jobs.get()));
            assert!((0..count).rev().all(work), "every run can be made");
        }

        fn beside<'a>(&self, _: [Job<'a>; 2], _: Box<dyn FnOnce() + 'a>) -> io::Result<()> {
            unreachable!("runs are made one by one")
        }
    }

    #[test]
    fn several_policies_use_all_threads_and_stand_in_their_order() {
        let none = Services::default();
        let threads = Backwards(Mutex::default());
        let services = Services {
            workers: Some(&threads),
            ..none
        };
        let names = ["mlfq", "fifo", "eevdf"];
        let question = Simulate {
            schedulers: names.map(|it| policy::open(&none, it).unwrap()).to_vec(),
            load: Some(LoadSource::Named("desk".into())),
            duration: Some(Nanos::from_millis(50)),
            ..Simulate::default()
        };
        let answer = question.ask(&services).unwrap();
        let policies = answer.results.outcomes.iter().map(|it| it.policy.as_str());
        assert_eq!(policies.collect::<Vec<_>>(), names);
        assert_eq!(*threads.0.lock().unwrap(), [(3, 4)]);
        let alone = question.ask(&none).unwrap().results.outcomes;
        for (one, other) in alone.iter().zip(&answer.results.outcomes) {
            assert_eq!(one.summary, other.summary);
        }
    }

    /// Without files, threads, a clock or anything else of a computer.
    #[test]
    fn a_question_is_answered_where_nothing_is_lent() {
        let none = Services::default();
        let scheduler = |name: &str| policy::open(&none, name).unwrap();
        let question = Simulate {
            schedulers: vec![scheduler("fifo"), scheduler("mlfq"), scheduler("fifo")],
            load: Some(LoadSource::Named("desk".into())),
            seed: Some(3),
            duration: Some(Nanos::from_millis(200)),
            runs: Some(2),
            goals: vec!["p99 wait".parse().unwrap()],
            ..Simulate::default()
        };
        let answer = question.ask(&none).unwrap();
        let names = answer.results.outcomes.iter().map(|it| it.policy.as_str());
        let names: Vec<&str> = names.collect();
        assert_eq!(names, ["fifo", "fifo", "mlfq", "mlfq", "fifo#2", "fifo#2"]);
        assert_eq!(answer.goals.len(), 6);
        assert!(answer.goals[0][0].is_some() && answer.goals[0] == answer.goals[4]);
        let nobody = Simulate {
            load: Some(LoadSource::Named("dsk".into())),
            ..question
        };
        let error = nobody.ask(&none).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Usage);
    }
}
