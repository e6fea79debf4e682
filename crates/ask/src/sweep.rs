//! Every combination of schedulers, loads, machines and seeds that a file lists, simulated. Results
//! are kept: a run that is there is not made again.

mod cell;

use std::collections::{BTreeSet, HashSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use model::{Advised, MachineSpec, Nanos};
use workload::RunSpec;

use crate::error::{Error, UsageError};
use crate::key::{Key, fingerprint};
use crate::kind::WordKind;
use crate::note::Topic;
use crate::plan::{self, Planned, Programs};
use crate::program::ProgramOptions;
use crate::runs;
use crate::services::Services;
use crate::simulate::Simulate;
use crate::words::counted;

/// Simulates every combination of the lists of a file.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The file.
    pub file: PathBuf,
    /// Commands of schedulers' own programs, besides those of the file.
    pub schedulers: Vec<String>,
    /// How all such programs run.
    pub programs: ProgramOptions,
}

/// A part of the runs: every `count`-th, from number `index` on, which is from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepPart {
    /// Which part it is, from 0.
    pub index: usize,
    /// How many parts there are.
    pub count: usize,
}

/// Results of runs, each kept as one line under its key.
pub trait KeptRuns: Sync {
    /// The line of a run; `None` if there is none, or none that is whole.
    fn get(&self, key: Key) -> Option<String>;

    /// Keeps the line of a run.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn put(&self, key: Key, line: &str) -> anyhow::Result<()>;

    /// Where they are kept, for messages.
    fn place(&self) -> String;
}

/// Runs by cells: a cell is a scheduler under a load on a machine, and a run is a cell with a seed.
/// Of a run only its seed is in memory.
#[derive(Debug)]
pub struct SweepPlan {
    version: &'static str,
    cells: Vec<PlannedCell>,
    runs: usize,
}

#[derive(Debug)]
struct PlannedCell {
    /// With the first seed.
    run: Planned,
    seeds: Vec<u64>,
    /// The number of its first run.
    begin: usize,
}

/// Some runs of a plan, in their order.
#[derive(Debug)]
pub struct SweepRuns<'a> {
    plan: &'a SweepPlan,
    /// Keys and numbers.
    runs: Vec<(Key, usize)>,
    jobs: NonZeroUsize,
}

/// Which runs would be made.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// Runs of the sweep, or of its part.
    pub runs: usize,
    /// Those that are not kept yet, each once.
    pub missing: usize,
    /// How much time they simulate together at most; `None` if nothing says it.
    pub longest: Option<Nanos>,
    /// Each scheduler.
    pub policies: Vec<String>,
    /// Each load.
    pub workloads: Vec<String>,
    /// Each machine in short.
    pub machines: Vec<String>,
    /// Number of different seeds.
    pub seeds: usize,
}

impl Sweep {
    /// Reads the file. `version` is that of the program that simulates.
    ///
    /// # Errors
    /// What is wrong, with the file's name, line and column.
    pub fn plan(&self, services: &Services<'_>, version: &'static str) -> Result<SweepPlan, Error> {
        if let Some(mistaken) = services.misplaced_file(&self.file, WordKind::Sweep) {
            return Err(anyhow::Error::from(UsageError::new(mistaken)).into());
        }
        let programs = Programs {
            commands: &self.schedulers,
            options: &self.programs,
        };
        let cells = plan::read_cells(services, &self.file, programs)?;
        Ok(SweepPlan::of_cells(version, cells))
    }
}

impl SweepPart {
    /// Reads `2/8`, the second part of eight.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match numbers {
            Some((index @ 1.., count)) if index <= count => Ok(Self {
                index: index - 1,
                count,
            }),
            _ => Err(format!("`{text}` is no part of a whole, such as 2/8")),
        }
    }
}

impl SweepPlan {
    /// The runs of questions, question by question, each with where its load comes from.
    ///
    /// # Errors
    /// Those of the first question that is wrong, with its number.
    pub fn of_questions(
        services: &Services<'_>,
        questions: &[Simulate],
        version: &'static str,
    ) -> Result<Self, Error> {
        let mut cells = Vec::new();
        for (at, question) in questions.iter().enumerate() {
            let place = format!("request {}", at + 1);
            let more = cell::of_question(services, question, &place);
            cells.extend(more.with_context(|| place.clone())?);
        }
        Ok(Self::of_cells(version, cells))
    }

    fn of_cells(version: &'static str, cells: Vec<(Planned, Vec<u64>)>) -> Self {
        let mut runs = 0;
        let cells = cells.into_iter().map(|(run, seeds)| {
            let begin = runs;
            runs += seeds.len();
            PlannedCell { run, seeds, begin }
        });
        let cells = cells.collect();
        Self {
            version,
            cells,
            runs,
        }
    }

    /// Number of runs.
    #[must_use]
    pub const fn runs(&self) -> usize {
        self.runs
    }

    /// Number of cells.
    #[must_use]
    pub const fn cells(&self) -> usize {
        self.cells.len()
    }

    /// A cell, as the run with its first seed.
    ///
    /// # Errors
    /// When there are not so many.
    pub fn cell(&self, cell: usize) -> anyhow::Result<&Planned> {
        let cell = self.cells.get(cell).context("the plan has no such cell")?;
        Ok(&cell.run)
    }

    /// The cell and the seed of a run; `None` if there are not so many.
    #[must_use]
    pub fn run(&self, run: usize) -> Option<(usize, u64)> {
        let after = self.cells.partition_point(|cell| cell.begin <= run);
        let at = after.checked_sub(1)?;
        let cell = &self.cells[at];
        Some((at, *cell.seeds.get(run - cell.begin)?))
    }

    /// A run.
    ///
    /// # Errors
    /// When there are not so many.
    pub fn planned(&self, run: usize) -> anyhow::Result<Planned> {
        let Some((cell, seed)) = self.run(run) else {
            let message = format!("there is no run {run}: the plan has {}", self.runs);
            return Err(UsageError::new(message).into());
        };
        Ok(self.cells[cell].run.with_seed(self.version, seed))
    }

    /// The key of the run of a cell with a seed.
    ///
    /// # Errors
    /// When there is no such cell.
    pub fn key(&self, cell: usize, seed: u64) -> anyhow::Result<Key> {
        Ok(self.cell(cell)?.key_of(self.version, seed))
    }

    /// A name of the whole plan: the same runs have the same, in every process.
    #[must_use]
    pub fn id(&self) -> String {
        let mut bytes = Vec::new();
        for cell in &self.cells {
            bytes.extend(cell.run.key(self.version).to_string().into_bytes());
            bytes.extend(cell.seeds.iter().flat_map(|seed| seed.to_le_bytes()));
        }
        format!("{:032x}", fingerprint(bytes))
    }

    /// Attaches each policy once, so that a wrong knob is told before hours of runs.
    ///
    /// # Errors
    /// When one cannot be attached; the message names the place.
    pub fn try_policies(&self, services: &Services<'_>) -> anyhow::Result<()> {
        plan::try_policies(services, self.cells.iter().map(|cell| &cell.run))
    }

    /// All runs, or those of a part; `jobs` threads deal with them.
    ///
    /// # Errors
    /// When nobody waits any more.
    pub fn select(
        &self,
        services: &Services<'_>,
        part: Option<SweepPart>,
        jobs: Option<NonZeroUsize>,
    ) -> anyhow::Result<SweepRuns<'_>> {
        let jobs = services.jobs(jobs);
        // What a run depends on is a long text: numbers and files of many cells are shared out.
        let key = |cell: &PlannedCell| {
            let seeds = cell.seeds.iter();
            let keys = seeds.map(|seed| cell.run.key_of(self.version, *seed));
            Ok(keys.collect::<Vec<Key>>())
        };
        let keys = services.map(&self.cells, jobs, "keys", key)?;
        let all = keys.into_iter().flatten().zip(0..);
        let part = part.unwrap_or(SweepPart { index: 0, count: 1 });
        Ok(SweepRuns {
            plan: self,
            runs: all.skip(part.index).step_by(part.count).collect(),
            jobs,
        })
    }

    fn say_traps(&self, services: &Services<'_>) {
        let mut loads = HashSet::new();
        for workload in self.cells.iter().map(|cell| &cell.run.spec.workload) {
            if loads.insert(&workload.file) {
                runs::say_traps(services, workload);
            }
        }
    }
}

impl SweepRuns<'_> {
    /// Number of runs.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.runs.len()
    }

    fn cell_of(&self, run: usize) -> &Planned {
        let (cell, _) = self.plan.run(run).expect("a run of this plan");
        &self.plan.cells[cell].run
    }

    /// Those that are not kept; one that is asked for twice is there twice.
    fn missing(
        &self,
        services: &Services<'_>,
        there: impl Fn(usize) -> anyhow::Result<bool> + Sync,
    ) -> anyhow::Result<Vec<(Key, usize)>> {
        let numbers: Vec<usize> = (0..self.runs.len()).collect();
        let there = services.map(&numbers, self.jobs, "results", |at| there(*at))?;
        let missing = self.runs.iter().zip(there).filter(|(_, there)| !there);
        Ok(missing.map(|(run, _)| *run).collect())
    }

    /// What [`SweepRuns::make`] would do.
    #[must_use]
    pub fn forecast(&self, kept: &dyn KeptRuns) -> Forecast {
        let mut seen = BTreeSet::new();
        let is_missing = |(key, _): &&(Key, usize)| kept.get(*key).is_none() && seen.insert(*key);
        let missing: Vec<_> = self.runs.iter().filter(is_missing).collect();
        let end = |(_, run): &&(Key, usize)| sim::latest_end(&self.cell_of(*run).spec).0;
        let mut ends = missing.iter().map(end);
        let longest = ends.try_fold(0_u64, |sum, end| sum.checked_add(end?.get()));
        let distinct = |of: &dyn Fn(&RunSpec) -> String| {
            let mut seen = HashSet::new();
            let all = self
                .runs
                .iter()
                .map(|(_, run)| of(&self.cell_of(*run).spec));
            all.filter(|it| seen.insert(it.clone())).collect()
        };
        let machine = |spec: &RunSpec| {
            let MachineSpec {
                cpus, hz, kernel, ..
            } = &spec.machine;
            let cpus = counted((*cpus).into(), "CPU");
            format!("{cpus}, HZ {hz}, kernel {}", kernel.name())
        };
        let seeds = self.runs.iter().filter_map(|(_, run)| self.plan.run(*run));
        Forecast {
            runs: self.runs.len(),
            missing: missing.len(),
            longest: longest.map(Nanos::new),
            policies: distinct(&|it| it.policy.name.clone()),
            workloads: distinct(&|it| it.workload.name.clone()),
            machines: distinct(&machine),
            seeds: seeds.map(|(_, seed)| seed).collect::<HashSet<_>>().len(),
        }
    }

    /// Makes the runs that are not kept yet.
    ///
    /// # Errors
    /// When a policy or the machine is bad, or a result cannot be kept.
    pub fn make(&self, services: &Services<'_>, kept: &dyn KeptRuns) -> anyhow::Result<()> {
        self.plan.say_traps(services);
        let is_there = |at: usize| Ok(kept.get(self.runs[at].0).is_some());
        let mut missing = self.missing(services, is_there)?;
        let mut seen = BTreeSet::new();
        missing.retain(|(key, _)| seen.insert(*key));
        let count = self.runs.len();
        if let had @ 1.. = count - missing.len() {
            let text = format!("{had} of {count} runs are there already");
            services.note(Topic::Sweep, text);
        }
        plan::try_policies(services, missing.iter().map(|(_, run)| self.cell_of(*run)))?;
        let done = services.map(&missing, self.jobs, "runs", |(key, run)| {
            kept.put(*key, &self.plan.planned(*run)?.line(services)?)
        });
        done.map(drop)
    }

    /// Takes the runs from where their parts are kept, and makes none.
    ///
    /// # Errors
    /// When one is nowhere, or cannot be kept.
    pub fn merge(
        &self,
        services: &Services<'_>,
        kept: &dyn KeptRuns,
        parts: &[&dyn KeptRuns],
    ) -> anyhow::Result<()> {
        self.plan.say_traps(services);
        let missing = self.missing(services, |at| {
            let (key, _) = self.runs[at];
            // Parts that are named in their order have the runs in turn.
            let (last, first) = parts.split_at(at % parts.len().max(1));
            if kept.get(key).is_some() {
                return Ok(true);
            }
            let line = first.iter().chain(last).find_map(|part| part.get(key));
            line.map_or(Ok(false), |line| kept.put(key, &line).map(|()| true))
        })?;
        let Some((_, first)) = missing.first() else {
            return Ok(());
        };
        let first = self.plan.planned(*first)?;
        let RunSpec {
            policy,
            workload,
            seed,
            ..
        } = &first.spec;
        bail!(Advised::new(
            format!(
                "{} of {} runs are in none of the folders",
                missing.len(),
                self.runs.len()
            ),
            format!(
                "the first is {} under {} with seed {seed} ({}). Make them without \
                 --merge, with the program and files that made the other parts",
                workload.name, policy.name, first.place
            )
        ))
    }

    /// The lines that are kept, in the order of the runs. A million results are ten gigabytes: only
    /// one of them is in memory at a time.
    pub fn lines(&self, kept: &dyn KeptRuns) -> impl Iterator<Item = anyhow::Result<String>> {
        self.runs.iter().map(move |(key, run)| {
            kept.get(*key).with_context(|| {
                let (what, place) = (&self.cell_of(*run).place, kept.place());
                format!("the results of {what} are gone from {place}")
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;
    use crate::load_source::LoadSource;
    use crate::machine::MachineChange;
    use crate::policy;

    /// Results in memory.
    #[derive(Default)]
    struct InMemory(Mutex<BTreeMap<Key, String>>);

    impl KeptRuns for InMemory {
        fn get(&self, key: Key) -> Option<String> {
            self.0.lock().unwrap().get(&key).cloned()
        }

        fn put(&self, key: Key, line: &str) -> anyhow::Result<()> {
            self.0.lock().unwrap().insert(key, line.to_owned());
            Ok(())
        }

        fn place(&self) -> String {
            "memory".to_owned()
        }
    }

    fn plan() -> SweepPlan {
        let none = Services::default();
        let question = Simulate {
            schedulers: vec![policy::open(&none, "fifo").unwrap()],
            load: Some(LoadSource::Named("desk".into())),
            duration: Some(Nanos::from_millis(10)),
            runs: Some(5),
            machine: MachineChange::default(),
            ..Simulate::default()
        };
        SweepPlan::of_questions(&none, &[question], "v").unwrap()
    }

    #[test]
    fn a_part_is_one_of_a_number() {
        let part = SweepPart { index: 1, count: 8 };
        assert_eq!(SweepPart::parse("2/8"), Ok(part));
        for bad in ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"] {
            SweepPart::parse(bad).unwrap_err();
        }
    }

    #[test]
    fn parts_that_were_made_apart_are_the_whole() {
        let none = Services::default();
        let plan = plan();
        let part = |index| {
            let part = Some(SweepPart { index, count: 2 });
            let runs = plan.select(&none, part, None).unwrap();
            let kept = InMemory::default();
            runs.make(&none, &kept).unwrap();
            (runs.count(), kept)
        };
        let [(first, one), (second, two)] = [part(0), part(1)];
        assert_eq!((first, second), (3, 2));
        let all = plan.select(&none, None, None).unwrap();
        let whole = InMemory::default();
        let error = all.merge(&none, &whole, &[&one]).unwrap_err().to_string();
        assert!(error.starts_with("2 of 5 runs are in none"), "{error}");
        all.merge(&none, &whole, &[&one, &two]).unwrap();
        let forecast = all.forecast(&whole);
        assert_eq!((forecast.runs, forecast.missing, forecast.seeds), (5, 0, 5));
        let lines: anyhow::Result<Vec<String>> = all.lines(&whole).collect();
        assert_eq!(lines.unwrap().len(), 5);
        let gone = all.lines(&one).find_map(Result::err).unwrap().to_string();
        assert_eq!(gone, "the results of request 1 are gone from memory");
    }

    #[test]
    fn a_cell_makes_the_same_run_in_another_process() {
        let none = Services::default();
        let plan = plan();
        let run = plan.planned(3).unwrap();
        let cell = plan.cell(0).unwrap();
        let parts = (cell.rest(&none).unwrap(), &*cell.spec.policy.object);
        let there = Planned::of_parts(&none, &parts.0, parts.1).unwrap();
        let there = there.with_seed("v", run.spec.seed);
        assert_eq!(there.key("v"), run.key("v"));
        assert_eq!(there.line(&none).unwrap(), run.line(&none).unwrap());
        assert!(plan.planned(5).is_err() && plan.cell(1).is_err());
    }
}
