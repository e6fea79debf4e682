//! All candidates under one load, and how they did.

use anyhow::bail;
use model::{Advised, Kernel, MachineSpec, Nanos};
use stats::compare::series::BLOCKS_MIN;
use stats::compare::{Choice, Extent, MetricRow, Question, Role, Set, Settings, compare, least_of};

use super::Candidate;
use super::errors::LoadClass;
use super::reruns::{Plan, Reruns, Which};
use crate::goal::Goal;
use crate::score_file::Identity;

/// All candidates under one load, and how they did.
#[derive(Debug)]
pub struct Field {
    /// The load's name.
    pub load: String,
    /// The machine of the baseline.
    pub machine: MachineSpec,
    /// What kind of load it is, by the baseline's first run.
    pub class: LoadClass,
    /// Changes of the task in each second of a CPU, in that run.
    pub switches: f64,
    /// The candidates, the baseline first.
    pub candidates: Vec<Candidate>,
    /// What is to become better.
    pub goals: Vec<Goal>,
    /// Whether the user stated the goals.
    pub is_asked: bool,
    /// Runs of each candidate.
    pub runs: usize,
    /// Seed of the first run; those of the others follow from it.
    pub seed: u64,
    /// The kernel that the recording is of, as far as it says so.
    pub kernel: Option<String>,
    /// Which recording it is, if the load is one.
    pub identity: Option<Identity>,
    /// By how much later than the load says the tasks of a run began.
    pub start_jitter: Nanos,
    /// By candidate, what the goals came to.
    pub sets: Vec<Set>,
    /// By candidate, what else may have become worse.
    pub rest: Vec<Set>,
    /// By candidate, why it cannot be chosen.
    pub failures: Vec<Option<String>>,
    /// By which factor the recording's own score says that each part of it is off.
    pub scored: Vec<(String, f64)>,
    /// What the runs are.
    pub material: Material,
}

/// What the runs of a candidate are.
#[derive(Debug)]
pub enum Material {
    /// Runs that differ in their seeds and have nothing else to do with each other.
    Runs,
    /// Reruns of one recording.
    Reruns(Box<(Reruns, Plan)>),
}

impl Field {
    /// What candidate `at` is called.
    #[must_use]
    pub fn name(&self, at: usize) -> &str {
        &self.sets[at].arm
    }

    /// The sets of these figures, by candidate.
    #[must_use]
    pub fn sets_of(&self, which: Which) -> &[Set] {
        match which {
            Which::Goals => &self.sets,
            Which::Rest => &self.rest,
        }
    }

    pub(super) fn sets_mut(&mut self, which: Which) -> &mut [Set] {
        match which {
            Which::Goals => &mut self.sets,
            Which::Rest => &mut self.rest,
        }
    }

    /// The kernel that the load was recorded on; else the simulated one.
    #[must_use]
    pub fn recorded_on(&self) -> String {
        // Of `6.18.44-generic` the first two numbers.
        let series = |it: &String| it.split('.').take(2).collect::<Vec<_>>().join(".");
        let simulated = || Kernel::name(self.machine.kernel).to_owned();
        self.kernel.as_ref().map_or_else(simulated, series)
    }

    /// The candidates with the hashes of their objects.
    #[must_use]
    pub fn objects(&self) -> Vec<(String, Option<String>)> {
        let candidates = self.candidates.iter().enumerate();
        let of = |(at, it): (usize, &Candidate)| (self.name(at).to_owned(), it.object_hash());
        candidates.map(of).collect()
    }

    /// How a recording was rerun, if the load is one.
    #[must_use]
    pub const fn plan(&self) -> Option<&Plan> {
        match &self.material {
            Material::Runs => None,
            Material::Reruns(made) => Some(&made.1),
        }
    }

    /// How much longer a recording must be for candidate `at` to have enough blocks at a goal.
    #[must_use]
    pub fn lacks(&self, at: usize, goal: usize) -> Option<Nanos> {
        let Material::Reruns(made) = &self.material else {
            return None;
        };
        let (reruns, plan) = &**made;
        let blocks = reruns.few_blocks(at, goal)?.max(1);
        let counts = plan.length.get().saturating_sub(plan.warm_up.get()) as f64;
        let factor = BLOCKS_MIN as f64 / blocks as f64 - 1.0;
        Some(Nanos::new((counts * factor.max(0.0)) as u64))
    }

    /// What candidate `at` came to at a goal over all its runs.
    #[must_use]
    pub fn value(&self, at: usize, goal: usize) -> Option<f64> {
        if let Material::Reruns(made) = &self.material {
            return made.0.value(at, goal);
        }
        let series = self.sets[at].find(&self.goals[goal].to_string())?;
        Some(series.values.iter().sum::<f64>() / series.values.len() as f64)
    }

    /// Holds candidates against candidate `base`, goal by goal.
    #[must_use]
    pub fn compared(
        &self,
        which: Which,
        (base, others): (usize, &[usize]),
        settings: &Settings,
    ) -> Vec<MetricRow> {
        if let Material::Reruns(made) = &self.material {
            return made
                .0
                .rows((self.sets_of(which), which), (base, others), settings);
        }
        let sets = self.sets_of(which);
        let theirs: Vec<Set> = others.iter().map(|at| raised(&sets[*at])).collect();
        let ours = raised(&sets[base]);
        let question = Question {
            base: &ours,
            others: &theirs,
            again: None,
            only: None,
        };
        let mut rows = compare(&[question], Choice::Stated, settings);
        for row in &mut rows {
            let find = |arm: &str| {
                let set = sets.iter().find(|it| it.arm == *arm)?;
                Some(&set.find(&row.metric)?.values)
            };
            let [ours, theirs] = [find(&row.base), find(&row.arm)];
            let mean = |it: &Vec<f64>| it.iter().sum::<f64>() / it.len() as f64;
            row.base_extent = ours.and_then(|it| Extent::of(it));
            row.arm_extent = theirs.and_then(|it| Extent::of(it));
            if let (Ok(judged), Some(ours), Some(theirs)) = (&mut row.result, ours, theirs) {
                (judged.effect.base, judged.effect.other) = (mean(ours), mean(theirs));
                // The runs that were made are those that decide so many comparisons.
                let made = judged.effect.values[0].min(judged.effect.values[1]);
                judged.runs_needed = judged.runs_needed.filter(|it| *it > made);
            }
        }
        rows
    }

    /// Refuses a goal of which no run of the baseline has a value.
    pub(super) fn check_values(&self) -> anyhow::Result<()> {
        let goals = self.goals.iter().map(ToString::to_string);
        let mut without = goals.filter(|goal| self.sets[0].find(goal).is_none());
        match without.next().filter(|_| self.failures[0].is_none()) {
            Some(_) if !self.is_asked && self.plan().is_some() => bail!(Advised::new(
                format!("{}: no task waited behind its first part", self.load),
                "record for longer; the first tenth does not count"
            )),
            Some(goal) => bail!(
                "`{goal}`: under {} nothing of the kind happened",
                self.name(0)
            ),
            None => Ok(()),
        }
    }
}

/// A set whose values are at least as large as what means something, so that each change is a
/// ratio.
fn raised(set: &Set) -> Set {
    let mut set = set.clone();
    let goals = set.series.iter_mut().filter(|it| it.role == Role::Goal);
    for series in goals {
        let least = least_of(series.measure);
        series.values.iter_mut().for_each(|it| *it = it.max(least));
    }
    set
}
