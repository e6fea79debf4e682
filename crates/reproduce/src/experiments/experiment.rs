//! An experiment, read and checked.

mod numbers;
mod real;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::experiments::probe::WantedProbe;
use model::file::{self, Source};
use model::{Advised, Kernel, MachineSpec, Nanos, PolicySpec, Profile, seeds, span, suggest};
use toml::Spanned;
use workload::Workload;

pub use real::{DEFAULT, Guest, RealProgram, read as read_real};

use super::draft::{self, Draft};
use super::expected::{self, Expected};
use super::files::Files;
use crate::experiments::catalog::Catalog;
use crate::experiments::cells::CellId;
use crate::experiments::claim::Formula;
use crate::experiments::error::{Cause, Error, Result, wrong};
use crate::experiments::test::{self, Test};

/// Runs of each cell unless the file says otherwise.
const SEEDS: u32 = 20;
/// Runs of each cell in a quick look.
const QUICK_SEEDS: usize = 3;
/// The same on a kernel, where a run takes minutes of a guest that counts instructions. A file asks
/// for more where runs differ much.
const QUICK_REAL: usize = 1;

/// One published table or figure, rerun.
#[derive(Debug)]
pub struct Experiment {
    /// Its folder: `002-response`.
    pub name: String,
    /// The document's number: `002`.
    pub document: String,
    /// Who wrote it, if documents.toml says so.
    pub published: Option<draft::PublishedDocument>,
    /// What it shows.
    pub title: String,
    /// Tables and figures of the document.
    pub source: String,
    /// The arm that tables divide by.
    pub baseline: Option<String>,
    /// What the document says of itself that cannot all be true.
    pub contradictions: Vec<String>,
    /// What a reader must know of every number.
    pub notes: Vec<String>,
    /// Schedulers, in the order of the file.
    pub arms: Vec<Arm>,
    /// What is run, in the order of the file.
    pub sets: Vec<RunSet>,
    /// Numbers of a run, in the order of the file.
    pub metrics: Vec<Metric>,
    /// What is said, in the order of the file.
    pub statements: Vec<Statement>,
    /// What is drawn.
    pub figures: Vec<draft::Figure>,
    /// Published values.
    pub expected: Vec<Expected>,
    /// How messages call the file.
    pub file: String,
    /// On which guest commands are run; `None` for what is simulated.
    pub guest: Option<Guest>,
}

/// A scheduler.
#[derive(Debug)]
pub struct Arm {
    /// Its name in the file.
    pub name: String,
    /// Its name in tables.
    pub label: String,
    /// What is loaded.
    pub policy: PolicySpec,
    /// As the file has it: a name with knobs, or `default` for the kernel's own scheduler.
    pub words: String,
}

/// Every combination of some parameters, under some arms.
#[derive(Debug)]
pub struct RunSet {
    /// Its name in the file.
    pub name: String,
    /// Its name in tables.
    pub label: String,
    /// Indexes of its arms.
    pub arms: Vec<usize>,
    /// Its combinations.
    pub points: Vec<Point>,
    /// Seeds of each cell's runs.
    pub seeds: Vec<u64>,
    /// When each run ends at the latest.
    pub duration: Option<Nanos>,
    /// What is looked for in each run's events.
    pub probes: Vec<WantedProbe>,
    /// Runs of each cell in a quick look; 0: it leaves the set out.
    pub quick: usize,
}

/// One combination of parameters.
#[derive(Debug)]
pub struct Point {
    /// Parameters by name: the workload's, and `cpus`.
    pub settings: Vec<(String, i64)>,
    /// Of these, what the workload was given.
    pub scale: Vec<(String, i64)>,
    /// Names of those that vary within the set, with values: `hogs 8`.
    pub label: String,
    /// What is run.
    pub work: PointWork,
    /// On what.
    pub machine: MachineSpec,
}

/// What is run at a point.
#[derive(Debug)]
pub enum PointWork {
    /// A model, which is simulated.
    Load(Arc<Workload>),
    /// A command, which a kernel runs.
    Command(Vec<String>),
}

/// A number of a run.
#[derive(Debug)]
pub struct Metric {
    /// Its name in the file.
    pub name: String,
    /// Its name in tables.
    pub label: String,
    /// Its unit, in words.
    pub unit: String,
    /// How it is made.
    pub made: Made,
    /// Names of the runs whose tables show it; `None` for all.
    pub runs: Option<Vec<String>>,
    /// Whether tables show the deviation of the runs instead of the lowest and the highest.
    pub deviation: bool,
}

/// How a number is made.
#[derive(Debug)]
pub enum Made {
    /// Of one run's numbers.
    Formula(Formula),
    /// Of a metric of the runs of one seed at all points that differ in one parameter.
    Across {
        /// The metric, which is a formula.
        metric: String,
        /// The parameter.
        x: String,
        /// What of them.
        take: Take,
    },
}

/// What is taken of several numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Take {
    /// The largest.
    Max,
    /// The largest of the points up to the first at which it is below this times the parameter.
    MaxUntil {
        /// The limit, for each one of the parameter.
        limit: f64,
    },
    /// The smallest.
    Min,
    /// The sum.
    Sum,
    /// The number at `to` by that at `from`.
    Ratio {
        /// Where the divisor is.
        from: i64,
        /// Where the dividend is.
        to: i64,
    },
    /// Where it first is at this level or above: between two points by a straight line.
    Reaches {
        /// The level.
        level: f64,
    },
}

/// A statement with its tests.
#[derive(Debug)]
pub struct Statement {
    /// Its number: `C1`.
    pub id: String,
    /// What the document says.
    pub text: String,
    /// Whether no document says it: it is asked all the same, and not counted.
    pub ours: bool,
    /// What decides it.
    pub(crate) tests: Vec<Test>,
    /// Why it is not reproduced, if it is not.
    pub cause: Option<String>,
    /// What else there is to say.
    pub note: Option<String>,
    /// Why runs could not have told a false statement from a true one, if so.
    pub cannot_tell: Option<String>,
}

impl Point {
    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<i64> {
        let found = self.settings.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| *value)
    }

    /// Its label without these parameters.
    pub fn label_without(&self, names: [Option<&str>; 2]) -> String {
        let parts = self.label.split(", ");
        let others = parts.filter(|part| {
            let name = part.split(' ').next();
            name.is_some() && !names.contains(&name)
        });
        others.collect::<Vec<_>>().join(", ")
    }
}

impl RunSet {
    /// The points that differ from this one in `x` only, this one included.
    pub fn along(&self, point: usize, x: &str) -> Vec<usize> {
        let rest = |at: usize| {
            self.points[at]
                .settings
                .iter()
                .filter(|(name, _)| name != x)
        };
        (0..self.points.len())
            .filter(|at| rest(*at).eq(rest(point)))
            .collect()
    }
}

/// A run that an experiment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wished {
    /// Its cell.
    pub cell: CellId,
    /// Which of its cell's runs it is, from zero.
    pub number: usize,
    /// Its seed.
    pub seed: u64,
}

impl Experiment {
    /// The runs that it asks for, cell by cell; `quick` leaves out sets and all but a few seeds.
    pub fn runs(&self, quick: bool) -> impl Iterator<Item = Wished> {
        let sets = self.sets.iter().enumerate();
        let cells = sets.flat_map(|(index, whole)| {
            let points = 0..whole.points.len();
            points.flat_map(move |point| {
                let arms = whole.arms.iter();
                arms.map(move |&arm| {
                    (
                        whole,
                        CellId {
                            set: index,
                            arm,
                            point,
                        },
                    )
                })
            })
        });
        cells.flat_map(move |(set, cell)| {
            let most = if quick { set.quick } else { usize::MAX };
            let seeds = set.seeds.iter().take(most).enumerate();
            seeds.map(move |(number, &seed)| Wished { cell, number, seed })
        })
    }

    /// The set of this name.
    pub fn set(&self, name: &str) -> Option<usize> {
        self.sets.iter().position(|set| set.name == name)
    }

    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// The arm of this name.
    pub fn arm(&self, name: &str) -> Option<usize> {
        self.arms.iter().position(|arm| arm.name == name)
    }

    /// The published number for a cell's metric.
    pub fn published(
        &self,
        set: usize,
        point: usize,
        arm: usize,
        metric: &str,
    ) -> Option<&Expected> {
        let (set, arm) = (&self.sets[set], &self.arms[arm]);
        let point = &set.points[point];
        self.expected.iter().find(|row| {
            row.runs == set.name
                && row.metric == metric
                && (row.arm == arm.name || row.arm.is_empty())
                && row
                    .at
                    .iter()
                    .all(|(name, value)| point.get(name) == Some(*value))
        })
    }
}

/// The statements of all documents.
///
/// # Errors
/// When the file is missing or wrong.
pub fn statements(files: &Files) -> Result<draft::Statements> {
    let name = files.shown("statements.toml");
    let text = files
        .get("statements.toml")
        .ok_or_else(|| Error::Missing(name.clone()))?;
    Ok(file::read(&Source { file: &name, text })?)
}

/// Who wrote the documents; nothing where the folder has no such file.
///
/// # Errors
/// When the file is wrong.
pub fn documents(files: &Files) -> Result<draft::Documents> {
    let Some(text) = files.get("documents.toml") else {
        return Ok(draft::Documents::new());
    };
    let name = files.shown("documents.toml");
    Ok(file::read(&Source { file: &name, text })?)
}

/// Reads an experiment.
///
/// # Errors
/// What is wrong, with file, line and column.
pub fn read(files: &Files, name: &str, catalog: &dyn Catalog) -> Result<Experiment> {
    let path = format!("{name}/experiment.toml");
    let file = files.shown(&path);
    let text = files
        .get(&path)
        .ok_or_else(|| Error::Missing(file.clone()))?;
    let known = statements(files)?;
    let draft: Draft = file::read(&Source { file: &file, text })?;
    let reader = ExperimentReader {
        files,
        folder: name,
        source: Source { file: &file, text },
        draft: &draft,
        catalog,
    };
    let arms = reader.arms(|words| catalog.policy(words))?;
    let sets = reader.sets(&arms)?;
    let expected = match files.get(&format!("{name}/expected.csv")) {
        Some(text) => expected::read(&files.shown(&format!("{name}/expected.csv")), text)?,
        None => Vec::new(),
    };
    reader.experiment(&known, arms, sets, expected)
}

struct ExperimentReader<'a> {
    files: &'a Files,
    folder: &'a str,
    source: Source<'a>,
    draft: &'a Draft,
    catalog: &'a dyn Catalog,
}

/// The entries of a table in the order of the file.
fn ordered<T>(table: &BTreeMap<Spanned<String>, T>) -> Vec<(&Spanned<String>, &T)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

/// The names of what has more than one value.
fn varies(lists: &[(String, Vec<i64>)]) -> Vec<&str> {
    let many = lists.iter().filter(|(_, values)| values.len() > 1);
    many.map(|(key, _)| key.as_str()).collect()
}

impl ExperimentReader<'_> {
    /// The experiment of these runs, with what is said of them. It is simulated.
    fn experiment(
        &self,
        known: &draft::Statements,
        arms: Vec<Arm>,
        sets: Vec<RunSet>,
        expected: Vec<Expected>,
    ) -> Result<Experiment> {
        let metrics = self.metrics(&sets)?;
        let head = &self.draft.experiment;
        let baseline = head.baseline.as_ref();
        if let Some(arm) = baseline {
            self.known(arm, "arm", arms.iter().map(|arm| arm.name.as_str()))?;
        }
        let mut experiment = Experiment {
            name: self.folder.to_owned(),
            document: head.document.get_ref().clone(),
            published: documents(self.files)?.remove(head.document.get_ref()),
            title: head.title.clone(),
            source: head.source.clone(),
            baseline: baseline.map(|arm| arm.get_ref().clone()),
            contradictions: head.contradictions.clone(),
            notes: head.notes.clone(),
            arms,
            sets,
            metrics,
            statements: Vec::new(),
            figures: self.draft.figure.clone(),
            expected,
            file: self.source.file.to_owned(),
            guest: None,
        };
        expected::check(&experiment)?;
        experiment.statements = self.statements(known, &experiment)?;
        Ok(experiment)
    }

    fn known<'b>(
        &self,
        name: &Spanned<String>,
        kind: &str,
        all: impl Iterator<Item = &'b str> + Clone,
    ) -> Result<()> {
        if all.clone().any(|it| it == name.get_ref()) {
            return Ok(());
        }
        let hint = suggest::hint(name.get_ref(), all);
        let what = format!("there is no {kind} `{}`: {hint}", name.get_ref());
        Err(wrong(&self.source, name, what))
    }

    /// Why what a value names cannot be had.
    fn named(&self, value: &Spanned<String>, source: Cause) -> Error {
        let place = self.source.place(value.span().start);
        Error::Named { place, source }
    }

    fn span(&self, text: &Spanned<String>) -> Result<Nanos> {
        span::parse(text.get_ref()).map_err(|error| wrong(&self.source, text, error))
    }

    /// The arms, whose policies `find` knows by their words.
    fn arms(&self, find: impl Fn(&str) -> Result<PolicySpec, Cause>) -> Result<Vec<Arm>> {
        let arm = |(name, arm): (&Spanned<String>, &draft::DraftArm)| {
            let found = find(arm.policy.get_ref());
            Ok(Arm {
                name: name.get_ref().clone(),
                label: arm.label.clone().unwrap_or_else(|| name.get_ref().clone()),
                policy: found.map_err(|cause| self.named(&arm.policy, cause))?,
                words: arm.policy.get_ref().clone(),
            })
        };
        ordered(&self.draft.arm).into_iter().map(arm).collect()
    }

    fn sets(&self, arms: &[Arm]) -> Result<Vec<RunSet>> {
        let runs = ordered(&self.draft.runs);
        for probe in self.draft.probe.values() {
            for name in probe.runs.iter().flatten() {
                let known = runs.iter().map(|(name, _)| name.get_ref().as_str());
                self.known(name, "runs", known)?;
            }
        }
        let set = |(name, runs): (&Spanned<String>, &draft::Runs)| self.set(name, runs, arms);
        runs.into_iter().map(set).collect()
    }

    fn set(&self, name: &Spanned<String>, runs: &draft::Runs, arms: &[Arm]) -> Result<RunSet> {
        let head = &self.draft.experiment;
        let seeds = self.seeds(runs.seeds.as_ref(), SEEDS)?;
        let duration = runs.duration.as_ref().or(head.duration.as_ref());
        let chosen = self.chosen(runs.arms.as_deref(), arms)?;
        let probes = self.probes_of(name)?;
        let points = self.points(name, runs)?;
        if let Some(duration) = duration {
            self.can_last(duration, &points)?;
        }
        Ok(RunSet {
            name: name.get_ref().clone(),
            label: runs.label.clone().unwrap_or_else(|| name.get_ref().clone()),
            arms: chosen,
            points,
            seeds,
            duration: duration.map(|text| self.span(text)).transpose()?,
            probes,
            quick: if runs.quick { QUICK_SEEDS } else { 0 },
        })
    }

    /// A duration shortens runs only: one that a workload's own end is before would be believed.
    fn can_last(&self, duration: &Spanned<String>, points: &[Point]) -> Result<()> {
        let asked = self.span(duration)?;
        for point in points {
            let PointWork::Load(load) = &point.work else {
                continue;
            };
            if let Some(end) = load.stop.after.filter(|end| *end < asked) {
                let what = format!("the workload `{}` ends after {end} by itself", load.name);
                let advice = "say no more than that here, or let the workload's `stop` be later";
                return Err(wrong(&self.source, duration, Advised::new(what, advice)));
            }
        }
        Ok(())
    }

    /// The seeds of each cell: as many as `own` says, else the whole experiment, else `usual`.
    fn seeds(&self, own: Option<&Spanned<u32>>, usual: u32) -> Result<Vec<u64>> {
        let head = &self.draft.experiment;
        let count = own.or(head.seeds.as_ref());
        if let Some(none) = count.filter(|count| *count.get_ref() == 0) {
            return Err(wrong(&self.source, none, "no seeds are no runs"));
        }
        let count = u64::from(count.map_or(usual, |count| *count.get_ref()));
        let first = head.seed.unwrap_or(1);
        Ok((0..count).map(|run| seeds::of_run(first, run)).collect())
    }

    /// The indices of the arms that are named; of all if none are.
    fn chosen(&self, names: Option<&[Spanned<String>]>, arms: &[Arm]) -> Result<Vec<usize>> {
        let index = |name: &Spanned<String>| {
            self.known(name, "arm", arms.iter().map(|arm| arm.name.as_str()))?;
            let at = arms.iter().position(|arm| arm.name == *name.get_ref());
            Ok(at.expect("just looked for"))
        };
        match names {
            None => Ok((0..arms.len()).collect()),
            Some(names) => names.iter().map(index).collect(),
        }
    }

    /// What is looked for in the runs of that name.
    fn probes_of(&self, runs: &Spanned<String>) -> Result<Vec<WantedProbe>> {
        let mut probes = Vec::new();
        for (name, probe) in ordered(&self.draft.probe) {
            let mut wanted = probe.runs.iter().flatten().map(Spanned::get_ref);
            if probe.runs.is_none() || wanted.any(|wanted| wanted == runs.get_ref()) {
                probes.push(self.probe(name, probe)?);
            }
        }
        Ok(probes)
    }

    /// Every combination of the values of `lists`, which belong to the runs called `name`.
    fn combinations(
        &self,
        name: &Spanned<String>,
        lists: &[(String, Vec<i64>)],
    ) -> Result<Vec<Vec<(String, i64)>>> {
        if let Some((key, _)) = lists.iter().find(|(_, values)| values.is_empty()) {
            return Err(wrong(&self.source, name, format!("`{key}` has no value")));
        }
        let mut all: Vec<Vec<(String, i64)>> = vec![Vec::new()];
        for (key, values) in lists {
            let with = |before: &Vec<(String, i64)>| {
                let one = |value: &i64| {
                    let added = [(key.clone(), *value)];
                    before.iter().cloned().chain(added).collect()
                };
                values.iter().map(one).collect::<Vec<Vec<_>>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        Ok(all)
    }

    /// Every combination, but those that are left out.
    fn points(&self, name: &Spanned<String>, runs: &draft::Runs) -> Result<Vec<Point>> {
        let list = |(name, values): (&Spanned<String>, &draft::Values)| {
            let list = match values {
                draft::Values::One(one) => vec![*one],
                draft::Values::More(list) => list.clone(),
                draft::Values::Calibrated(key) => vec![self.calibrated(name, key)?],
            };
            Ok((name.get_ref().clone(), list))
        };
        let lists = ordered(&runs.scale).into_iter().map(list);
        let mut lists: Vec<(String, Vec<i64>)> = lists.collect::<Result<_>>()?;
        lists.extend(
            runs.cpus
                .as_ref()
                .map(|cpus| ("cpus".to_owned(), cpus.list())),
        );
        let mut all = self.combinations(name, &lists)?;
        for without in &runs.without {
            let before = all.len();
            let is = |point: &Vec<(String, i64)>| {
                let has = |(key, value): (&Spanned<String>, &i64)| {
                    point
                        .iter()
                        .any(|(name, it)| name == key.get_ref() && it == value)
                };
                without.iter().all(has)
            };
            all.retain(|point| !is(point));
            if all.len() == before {
                return Err(wrong(&self.source, name, "`without` leaves out nothing"));
            }
        }
        let varies = varies(&lists);
        let point = |settings: Vec<(String, i64)>| self.point(runs, settings, &varies);
        all.into_iter().map(point).collect()
    }

    /// The number that `machine.name` is in calibration.toml.
    fn calibrated(&self, name: &Spanned<String>, key: &str) -> Result<i64> {
        let path = "calibration.toml";
        let file = self.files.shown(path);
        let text = self.files.get(path).unwrap_or_default();
        let known: draft::Calibration = file::read(&Source { file: &file, text })?;
        let found = key
            .split_once('.')
            .and_then(|(machine, name)| known.get(machine)?.get(name));
        found.copied().ok_or_else(|| {
            let names = known.iter().flat_map(|(machine, numbers)| {
                numbers.keys().map(move |name| format!("{machine}.{name}"))
            });
            let names: Vec<String> = names.collect();
            let hint = suggest::hint(key, names.iter().map(String::as_str));
            wrong(&self.source, name, format!("{file} has no `{key}`: {hint}"))
        })
    }

    fn point(
        &self,
        runs: &draft::Runs,
        settings: Vec<(String, i64)>,
        varies: &[&str],
    ) -> Result<Point> {
        let scale: Vec<(String, i64)> = settings
            .iter()
            .filter(|(key, _)| key != "cpus")
            .cloned()
            .collect();
        let wanted = runs.workload.get_ref();
        let named = |cause| self.named(&runs.workload, cause);
        let load = if wanted.ends_with(".toml") {
            let path = Files::resolve(self.folder, wanted);
            let text = self.files.get(&path);
            let text = text.ok_or_else(|| {
                wrong(&self.source, &runs.workload, format!("there is no {path}"))
            })?;
            Workload::parse_with(text, &self.files.shown(&path), &scale)?
        } else {
            self.catalog.workload(wanted, &scale).map_err(named)?
        };
        let labels: Vec<String> = settings
            .iter()
            .filter(|(key, _)| varies.contains(&key.as_str()))
            .map(|(key, value)| format!("{key} {value}"))
            .collect();
        let cpus = settings.iter().find(|(key, _)| key == "cpus");
        let cpus = cpus.map(|(_, cpus)| u16::try_from(*cpus).unwrap_or(0));
        let machine = self.machine(runs, &load, cpus)?;
        self.catalog.check(&machine).map_err(named)?;
        Ok(Point {
            settings,
            scale,
            label: labels.join(", "),
            work: PointWork::Load(Arc::new(load)),
            machine,
        })
    }

    /// The machine of a run: what the runs say, else the experiment, else the workload.
    fn machine(
        &self,
        runs: &draft::Runs,
        load: &Workload,
        cpus: Option<u16>,
    ) -> Result<MachineSpec> {
        let mut machine = load.machine.clone();
        for draft in [Some(&self.draft.machine), runs.machine.as_ref()] {
            let Some(draft) = draft else { continue };
            machine.cpus = draft.cpus.unwrap_or(machine.cpus);
            machine.hz = draft.hz.unwrap_or(machine.hz);
            machine.smt = draft.smt.unwrap_or(machine.smt);
            machine.llc = draft.llc.unwrap_or(machine.llc);
            machine.node = draft.node.unwrap_or(machine.node);
            machine.no_watchdog = draft.watchdog.map_or(machine.no_watchdog, |it| !it);
            if let Some(text) = &draft.kernel {
                machine.kernel = self.kernel(text)?;
            }
            if let Some(text) = &draft.profile {
                machine.profile = self.profile(text)?;
            }
        }
        machine.cpus = cpus.unwrap_or(machine.cpus);
        Ok(machine)
    }

    /// A kernel that can be simulated.
    fn kernel(&self, version: &Spanned<String>) -> Result<Kernel> {
        let mut known = Kernel::ALL.into_iter();
        let found = known.find(|kernel| kernel.name() == version.get_ref());
        found.ok_or_else(|| {
            let names = Kernel::ALL.map(Kernel::name).join(", ");
            wrong(
                &self.source,
                version,
                Advised::new("no such kernel", format!("there are: {names}")),
            )
        })
    }

    /// A profile that comes with the program, or machines/NAME.toml of the experiments.
    fn profile(&self, name: &Spanned<String>) -> Result<Profile> {
        if let Some(shipped) = Profile::shipped(name.get_ref()) {
            return Ok(shipped);
        }
        let path = format!("machines/{}.toml", name.get_ref());
        let Some(text) = self.files.get(&path) else {
            let own = self.files.machines();
            let shipped = Profile::SHIPPED;
            let all = shipped.iter().map(Profile::name).chain(own);
            let hint = suggest::hint(name.get_ref(), all);
            let what = format!("there is no profile `{}`: {hint}", name.get_ref());
            return Err(wrong(&self.source, name, what));
        };
        Ok(Profile::parse(text, &self.files.shown(&path))?)
    }

    fn statements(
        &self,
        known: &draft::Statements,
        experiment: &Experiment,
    ) -> Result<Vec<Statement>> {
        let document = &self.draft.experiment.document;
        let statement = |it: &draft::Statement| {
            self.known(&it.id, "statement", known.keys().map(String::as_str))?;
            let text = &known[it.id.get_ref()];
            if text.document != *document.get_ref() {
                let what = format!("this is a statement of document {}", text.document);
                return Err(wrong(&self.source, &it.id, what));
            }
            if it.test.is_empty() {
                let what = "nothing tests this statement: it needs a [[statement.test]]";
                return Err(wrong(&self.source, &it.id, what));
            }
            let tests = it.test.iter().map(|draft| {
                let draft = self.with_file(draft)?;
                test::read(experiment, self.source, &draft)
            });
            Ok(Statement {
                id: it.id.get_ref().clone(),
                text: text.text.clone(),
                ours: text.ours,
                tests: tests.collect::<Result<_>>()?,
                cause: it.cause.clone(),
                note: it.note.clone(),
                cannot_tell: it.cannot_tell.clone(),
            })
        };
        self.draft.statement.iter().map(statement).collect()
    }

    /// The test with the sequence that its file has. Lines that begin with `#` say nothing.
    fn with_file(&self, test: &draft::DraftTest) -> Result<draft::DraftTest> {
        let mut test = test.clone();
        if let Some(name) = &test.want_file {
            let path = Files::resolve(self.folder, name.get_ref());
            let text = self.files.get(&path);
            let text = text.ok_or_else(|| wrong(&self.source, name, format!("no {path}")))?;
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            test.want = Some(lines.collect::<Vec<_>>().join(" "));
        }
        Ok(test)
    }
}
