//! A sweep's file, and the runs that it asks for.

mod refused;
mod texts;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, anyhow};
use model::file;
use model::{Advised, Kernel, MachineSpec, Nanos, PolicySpec};
use serde::Deserialize;
use toml::Spanned;
use workload::{RunSpec, Workload};

use crate::key::{Front, Key};
use crate::load_source::LoadSource;
use crate::outcome::Outcome;
use crate::policy::FoundPolicy;
use crate::program::{self, ProgramOptions};
use crate::runner::Runner;
use crate::services::Services;
use crate::{input, kernel, policy, runs, workload_arg};
use model::{seeds, span};

/// More runs than this are a mistake.
const RUNS_MAX: usize = 1_000_000;

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Everything that it is a function of.
    pub spec: RunSpec,
    /// Parameters of the workload that were set.
    pub scale: Vec<(String, i64)>,
    /// Where the workload comes from.
    pub load: LoadSource,
    /// Which line of the file its policy comes from, for messages: `sweep.toml:1:12`.
    pub place: Arc<str>,
    /// What its key begins with, once that was asked for. Runs that differ in the seed share it.
    pub front: OnceLock<Front>,
}

impl Planned {
    /// The same with another seed. `version` is that of the program that simulates.
    #[must_use]
    pub fn with_seed(&self, version: &str, seed: u64) -> Self {
        self.front(version);
        Self {
            spec: RunSpec {
                seed,
                ..self.spec.clone()
            },
            ..self.clone()
        }
    }

    /// The key that its results are kept under; `version` is that of the program that simulates.
    #[must_use]
    pub fn key(&self, version: &str) -> Key {
        self.key_of(version, self.spec.seed)
    }

    /// The key of the same with another seed.
    #[must_use]
    pub fn key_of(&self, version: &str, seed: u64) -> Key {
        self.front(version).key(seed)
    }

    fn front(&self, version: &str) -> &Front {
        let front = || Front::of(version, (&self.spec, &self.scale), "");
        self.front.get_or_init(front)
    }

    /// Makes the run.
    ///
    /// # Errors
    /// When the policy or the machine is bad; the message names the place.
    pub fn make(&self, services: &Services<'_>) -> anyhow::Result<Outcome> {
        let measured = Runner::new(&self.spec, services).measure();
        let (outcome, _) = measured.map_err(|error| error.context(self.place.to_string()))?;
        Ok(outcome)
    }
}

/// Attaches each policy once, so that a wrong knob is told before hours of runs.
///
/// # Errors
/// When one cannot be attached; the message names the place.
pub fn try_policies<'a>(
    services: &Services<'_>,
    runs: impl IntoIterator<Item = &'a Planned>,
) -> anyhow::Result<()> {
    let mut seen = Vec::new();
    for run in runs {
        let what = (&run.spec.policy.name, run.spec.machine.kernel);
        if seen.contains(&what) {
            continue;
        }
        let spec = RunSpec {
            duration: Some(Nanos::ZERO),
            ..run.spec.clone()
        };
        let tried = Runner::new(&spec, services).measure();
        tried.map_err(|error| error.context(run.place.to_string()))?;
        seen.push(what);
    }
    Ok(())
}

/// The file as it stands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Draft {
    #[serde(default)]
    policy: Vec<Spanned<String>>,
    #[serde(default)]
    scheduler: Vec<Spanned<String>>,
    #[serde(default)]
    workload: Vec<Spanned<String>>,
    #[serde(default)]
    knobs: Table<Scalar>,
    #[serde(default)]
    scale: Table<i64>,
    #[serde(default)]
    cpus: Vec<Spanned<u16>>,
    #[serde(default)]
    hz: Vec<Spanned<u32>>,
    #[serde(default)]
    smt: Vec<Spanned<u16>>,
    #[serde(default)]
    llc: Vec<Spanned<u16>>,
    #[serde(default)]
    kernel: Vec<Spanned<String>>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    seeds: Option<Spanned<Seeds>>,
    #[serde(default)]
    duration: Option<Spanned<String>>,
    #[serde(default)]
    exclude: Vec<Spanned<Filter>>,
    #[serde(default)]
    include: Vec<Spanned<Filter>>,
}

/// `[knobs.mlfq] nq = [4, 8]`: by name of the policy or workload, lists by name of the setting.
type Table<T> = BTreeMap<Spanned<String>, BTreeMap<String, Vec<T>>>;

/// How many runs a combination gets, or their seeds.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number of runs, or a list of seeds")]
enum Seeds {
    Count(u32),
    List(Vec<u64>),
}

/// A knob's value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a whole number, true, false, or text")]
enum Scalar {
    Number(i64),
    Bool(bool),
    Text(String),
}

/// A combination, or all that have the given parts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    policy: Option<String>,
    scheduler: Option<String>,
    workload: Option<String>,
    cpus: Option<u16>,
    hz: Option<u32>,
    smt: Option<u16>,
    llc: Option<u16>,
    kernel: Option<String>,
    #[serde(default)]
    knobs: BTreeMap<String, Scalar>,
    #[serde(default)]
    scale: BTreeMap<String, i64>,
}

/// The parts of a machine that a file may choose; `None` leaves them to the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Choice {
    cpus: Option<u16>,
    hz: Option<u32>,
    smt: Option<u16>,
    llc: Option<u16>,
    kernel: Option<Kernel>,
}

/// One combination, before its seeds.
#[derive(Clone, Debug)]
struct Cell {
    /// As in the file: a policy, or a scheduler's command.
    policy: String,
    is_program: bool,
    knobs: Vec<(String, Scalar)>,
    workload: String,
    scale: Vec<(String, i64)>,
    machine: MachineSpec,
    place: Arc<str>,
    policy_spec: PolicySpec,
    /// What the workload is called, seen from this process.
    found_as: Arc<str>,
    load: Arc<Workload>,
}

/// Finds lines and columns in the file.
struct Source<'a> {
    file: file::Source<'a>,
    folder: &'a Path,
    services: Services<'a>,
    programs: Programs<'a>,
}

/// Schedulers' own programs that are not in the file, and how all of them run.
#[derive(Clone, Copy, Debug)]
pub struct Programs<'a> {
    /// Commands.
    pub commands: &'a [String],
    /// How they run.
    pub options: &'a ProgramOptions,
}

/// A policy of the product, with what its cells have in common.
struct Arm<'a> {
    policy: &'a str,
    is_program: bool,
    knobs: Vec<(String, Scalar)>,
    place: Arc<str>,
    found: FoundPolicy,
}

impl Source<'_> {
    /// `file:line:column` of a value.
    fn of<T>(&self, value: &Spanned<T>) -> String {
        self.file.place(value.span().start).to_string()
    }

    /// A path in the file is relative to the file.
    fn resolve(&self, argument: &str) -> String {
        let (name, rest) = match argument.find(':') {
            Some(at) => argument.split_at(at),
            None => (argument, ""),
        };
        let is_path = name.contains('/') || name.ends_with(".toml") || name.ends_with(".o");
        if is_path && Path::new(name).is_relative() {
            format!("{}{rest}", self.folder.join(name).display())
        } else {
            argument.to_owned()
        }
    }

    /// The policy of a scheduler's own program, whose file is seen from the sweep's.
    fn program(&self, text: &str) -> anyhow::Result<FoundPolicy> {
        let mut policy = program::policy_of(text, self.programs.options)?;
        if let Some(program) = &mut policy.program {
            let command = &mut program.command;
            if command[0].contains('/') && Path::new(&command[0]).is_relative() {
                command[0] = self.folder.join(&command[0]).display().to_string();
            }
            let programs = self.services.programs;
            program.file = programs.map_or(0, |it| it.number_of_file(command));
        }
        Ok(FoundPolicy::of_policy(policy))
    }
}

/// Reads a sweep's file: every combination of its lists but the excluded, and the included ones.
/// Each is there once, with the first of its seeds, and beside it all of them.
///
/// # Errors
/// What is wrong, with the file's name, line and column.
pub fn read_cells(
    services: &Services<'_>,
    path: &Path,
    programs: Programs<'_>,
) -> anyhow::Result<Vec<(Planned, Vec<u64>)>> {
    with_source(services, (path, programs), plan)
}

/// Does `what` with the file at `path`.
fn with_source<T>(
    services: &Services<'_>,
    (path, programs): (&Path, Programs<'_>),
    what: impl FnOnce(&Source<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let name = path.display().to_string();
    let text = input::text(services, path, input::WRITTEN)?;
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let file = file::Source {
        file: &name,
        text: &text,
    };
    what(&Source {
        file,
        folder: folder.unwrap_or(Path::new(".")),
        services: *services,
        programs,
    })
}

/// The policies and programs of a sweep's file, with every combination of their knobs. What else
/// the file says is not looked at.
///
/// # Errors
/// As [`read_cells`].
pub fn candidates(
    services: &Services<'_>,
    path: &Path,
    options: &ProgramOptions,
) -> anyhow::Result<Vec<FoundPolicy>> {
    let programs = Programs {
        commands: &[],
        options,
    };
    with_source(services, (path, programs), |source| {
        let draft: Draft = file::read(&source.file)?;
        check_names(&draft.knobs, "policy", &draft.policy, source)?;
        let arms = arms(&draft, source)?;
        Ok(arms.into_iter().map(|arm| arm.found).collect())
    })
}

fn plan(source: &Source<'_>) -> anyhow::Result<Vec<(Planned, Vec<u64>)>> {
    let draft: Draft = file::read(&source.file)?;
    if draft.workload.is_empty() {
        let name = source.file.file;
        return Err(anyhow!(Advised::new(
            format!("{name}: there is no `workload`"),
            "name one or more in a list"
        )));
    }
    let mut cells = product(&draft, source)?;
    for filter in &draft.exclude {
        let before = cells.len();
        cells.retain(|cell| !filter.get_ref().matches(cell));
        if cells.len() == before {
            let place = source.of(filter);
            return Err(anyhow!("{place}: this excludes no run"));
        }
    }
    for filter in &draft.include {
        cells.push(included(&draft, filter, source)?);
    }
    refused::mixed(&cells)?;
    let seeds = seeds_of(&draft, source)?;
    if cells.is_empty() {
        return Err(anyhow!("{}: there is nothing to run", source.file.file));
    }
    if cells.len().saturating_mul(seeds.count()) > RUNS_MAX {
        let runs = cells.len() as u128 * seeds.count() as u128;
        let name = source.file.file;
        return Err(anyhow!(Advised::new(
            format!("{name}: {runs} runs are more than {RUNS_MAX}"),
            "split the sweep"
        )));
    }
    let texts: usize = cells.iter().map(Cell::texts).sum();
    texts::check(texts.saturating_mul(seeds.count()), source.file.file)?;
    let duration = draft.duration.as_ref().map(|text| {
        let place = || source.of(text);
        span::parse(text.get_ref()).map_err(|error| anyhow!("{}: {error}", place()))
    });
    let duration = duration.transpose()?;
    let runs = cells.iter().map(|cell| {
        let seeds = seeds.of(draft.seed.unwrap_or(cell.load.seed));
        (planned(cell, seeds[0], duration), seeds)
    });
    Ok(runs.collect())
}

fn planned(cell: &Cell, seed: u64, duration: Option<Nanos>) -> Planned {
    Planned {
        spec: RunSpec {
            policy: cell.policy_spec.clone(),
            workload: Arc::clone(&cell.load),
            machine: cell.machine.clone(),
            seed,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration,
        },
        scale: cell.scale.clone(),
        load: LoadSource::Named(Arc::clone(&cell.found_as)),
        place: Arc::clone(&cell.place),
        front: OnceLock::new(),
    }
}

fn seeds_of<'a>(draft: &'a Draft, source: &Source<'_>) -> anyhow::Result<&'a Seeds> {
    const ONE: &Seeds = &Seeds::Count(1);
    let Some(seeds) = &draft.seeds else {
        return Ok(ONE);
    };
    refused::seeds(seeds, source)?;
    Ok(seeds.get_ref())
}

impl Seeds {
    fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count as usize,
            Self::List(list) => list.len(),
        }
    }

    fn of(&self, first: u64) -> Vec<u64> {
        match self {
            Self::Count(count) => (0..u64::from(*count))
                .map(|run| seeds::of_run(first, run))
                .collect(),
            Self::List(list) => list.clone(),
        }
    }
}

impl Scalar {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Bool(is) => u8::from(*is).to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

impl Filter {
    fn matches(&self, cell: &Cell) -> bool {
        let machine = &cell.machine;
        let is = |wanted: &Option<String>, have: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == have)
        };
        let of_kind = |wanted: &Option<String>, is_program| {
            wanted.is_none() || (cell.is_program == is_program && is(wanted, &cell.policy))
        };
        of_kind(&self.policy, false)
            && of_kind(&self.scheduler, true)
            && is(&self.workload, &cell.workload)
            && is(&self.kernel, machine.kernel.name())
            && self.cpus.is_none_or(|cpus| cpus == machine.cpus)
            && self.hz.is_none_or(|hz| hz == machine.hz)
            && self.smt.is_none_or(|smt| smt == machine.smt)
            && self.llc.is_none_or(|llc| llc == machine.llc)
            && self.knobs.iter().all(|(name, value)| {
                let is = |(knob, have): &(String, Scalar)| knob == name && have == value;
                cell.knobs.iter().any(is)
            })
            && self.scale.iter().all(|(name, value)| {
                let is = |(key, have): &(String, i64)| key == name && have == value;
                cell.scale.iter().any(is)
            })
    }
}

/// Refuses lists whose combinations nobody can have meant, before they are made.
fn check_count(lengths: impl Iterator<Item = usize>, place: &str) -> anyhow::Result<()> {
    let count = lengths.fold(1_usize, usize::saturating_mul);
    if count > RUNS_MAX {
        return Err(anyhow!(Advised::new(
            format!("{place}: more than {RUNS_MAX} combinations"),
            "split the sweep"
        )));
    }
    Ok(())
}

/// Every combination of lists: `{a: [1, 2], b: [3]}` is a=1 b=3, a=2 b=3.
fn combinations<T: Clone>(lists: &BTreeMap<String, Vec<T>>) -> Vec<Vec<(String, T)>> {
    let mut all = vec![Vec::new()];
    for (name, values) in lists {
        let extend = |before: &Vec<(String, T)>| {
            let with = |value: &T| {
                let mut one = before.clone();
                one.push((name.clone(), value.clone()));
                one
            };
            values.iter().map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(extend).collect();
    }
    all
}

/// The lists for `name`, which stands before a colon or as a whole.
fn lists_for<'a, T>(table: &'a Table<T>, name: &str) -> Option<&'a BTreeMap<String, Vec<T>>> {
    let short = name.split(':').next().unwrap_or_default();
    let mut entries = table.iter();
    let found = entries.find(|(key, _)| key.get_ref() == name || key.get_ref() == short);
    found.map(|(_, lists)| lists)
}

/// A table for something that the sweep does not have is a slip of the pen.
fn check_names<T>(
    table: &Table<T>,
    kind: &str,
    known: &[Spanned<String>],
    source: &Source<'_>,
) -> anyhow::Result<()> {
    for (name, lists) in table {
        let is = |it: &Spanned<String>| {
            let short = it.get_ref().split(':').next();
            it.get_ref() == name.get_ref() || short == Some(name.get_ref())
        };
        if !known.iter().any(is) {
            let place = source.of(name);
            let name = name.get_ref();
            return Err(anyhow!("{place}: the sweep has no {kind} `{name}`"));
        }
        check_count(lists.values().map(Vec::len), &source.of(name))?;
        if let Some((key, _)) = lists.iter().find(|(_, values)| values.is_empty()) {
            let place = source.of(name);
            return Err(anyhow!(Advised::new(
                format!("{place}: `{key}` has no value"),
                "leave it out or give one"
            )));
        }
    }
    Ok(())
}

/// One of each of a list, or one that leaves it to the workload.
fn each<T: Copy>(list: &[Spanned<T>]) -> Vec<Option<T>> {
    match list {
        [] => vec![None],
        list => list.iter().map(|it| Some(*it.get_ref())).collect(),
    }
}

fn kernels(draft: &Draft, source: &Source<'_>) -> anyhow::Result<Vec<Option<Kernel>>> {
    let parse = |text: &Spanned<String>| {
        let kernel = kernel::parse(text.get_ref());
        kernel
            .map(Some)
            .map_err(|error| refused::kernel(&source.of(text), error))
    };
    match draft.kernel.as_slice() {
        [] => Ok(vec![None]),
        list => list.iter().map(parse).collect(),
    }
}

/// Every combination of the parts of a machine.
fn choices(draft: &Draft, source: &Source<'_>) -> anyhow::Result<Vec<Choice>> {
    let mut all = vec![Choice::default()];
    let kernels = kernels(draft, source)?;
    let lengths = [
        draft.cpus.len(),
        draft.hz.len(),
        draft.smt.len(),
        draft.llc.len(),
        kernels.len(),
    ];
    check_count(
        lengths.into_iter().map(|length| length.max(1)),
        source.file.file,
    )?;
    all = spread(&all, &each(&draft.cpus), |it, cpus| Choice { cpus, ..it });
    all = spread(&all, &each(&draft.hz), |it, hz| Choice { hz, ..it });
    all = spread(&all, &each(&draft.smt), |it, smt| Choice { smt, ..it });
    all = spread(&all, &each(&draft.llc), |it, llc| Choice { llc, ..it });
    all = spread(&all, &kernels, |it, kernel| Choice { kernel, ..it });
    Ok(all)
}

fn spread<T: Copy>(all: &[Choice], values: &[T], with: fn(Choice, T) -> Choice) -> Vec<Choice> {
    let one = |choice: &Choice| values.iter().map(|value| with(*choice, *value)).collect();
    all.iter()
        .flat_map(|it| -> Vec<Choice> { one(it) })
        .collect()
}

impl Choice {
    /// The machine of `load` with these choices.
    ///
    /// # Errors
    /// When its hardware says what is chosen.
    fn machine(self, load: &Workload) -> Result<MachineSpec, Advised> {
        let asked = &load.machine;
        let hardware = asked.hardware.as_deref();
        let placed = hardware.filter(|it| it.places.is_some());
        let sizes = [("smt", self.smt), ("llc", self.llc)];
        let chosen = sizes.iter().find(|(_, size)| size.is_some());
        if let (Some(hardware), Some((key, _))) = (placed, chosen) {
            return Err(Advised::new(
                format!("`{key}`: the hardware `{}` says it", hardware.name),
                format!("leave out `{key}`"),
            ));
        }
        Ok(MachineSpec {
            cpus: self.cpus.unwrap_or(asked.cpus),
            hz: self.hz.unwrap_or(asked.hz),
            smt: self.smt.unwrap_or(asked.smt),
            llc: self.llc.unwrap_or(asked.llc),
            kernel: self.kernel.unwrap_or(asked.kernel),
            ..asked.clone()
        })
    }
}

/// A policy with knobs, as a cell has it. What the sweep sets is part of its name. All of them
/// share the object.
fn with_knobs(
    argument: &str,
    found: &FoundPolicy,
    knobs: &[(String, Scalar)],
) -> anyhow::Result<FoundPolicy> {
    let mut found = found.clone();
    if found.bound.is_some() || (found.policy.program.is_some() && !knobs.is_empty()) {
        let message = "a recording of one run cannot be swept: record it with --setup-only, \
                       without knobs";
        return Err(anyhow!("{argument}: {message}"));
    }
    let spec = &mut found.policy;
    let mut separator = if argument.contains(':') { ',' } else { ':' };
    for (name, value) in knobs {
        let value = value.text();
        spec.name += &format!("{separator}{name}={value}");
        separator = ',';
        spec.set.push((name.clone(), value));
    }
    Ok(found)
}

/// The policies, with every combination of their knobs, and the schedulers' own programs.
fn arms<'a>(draft: &'a Draft, source: &Source<'a>) -> anyhow::Result<Vec<Arm<'a>>> {
    let none = BTreeMap::new();
    let mut arms = Vec::new();
    let mut texts = 0;
    for argument in &draft.policy {
        let policy = argument.get_ref();
        let place: Arc<str> = source.of(argument).into();
        let found = policy::open(&source.services, &source.resolve(policy))
            .with_context(|| place.to_string())?;
        for knobs in combinations(lists_for(&draft.knobs, policy).unwrap_or(&none)) {
            let found = with_knobs(policy, &found, &knobs).with_context(|| place.to_string())?;
            texts += texts::of(&found.policy);
            texts::check(texts, &place)?;
            arms.push(Arm {
                policy,
                is_program: false,
                knobs,
                place: Arc::clone(&place),
                found,
            });
        }
    }
    let in_file = draft.scheduler.iter();
    let in_file = in_file.map(|text| (text.get_ref().as_str(), source.of(text)));
    let asked = source.programs.commands.iter();
    let asked = asked.map(|text| (text.as_str(), "--scheduler".to_owned()));
    for (text, place) in in_file.chain(asked) {
        let found = source.program(text).with_context(|| place.clone())?;
        arms.push(Arm {
            policy: text,
            is_program: true,
            knobs: Vec::new(),
            place: place.into(),
            found,
        });
    }
    Ok(arms)
}

/// The whole product, policy by policy.
fn product(draft: &Draft, source: &Source<'_>) -> anyhow::Result<Vec<Cell>> {
    check_names(&draft.knobs, "policy", &draft.policy, source)?;
    check_names(&draft.scale, "workload", &draft.workload, source)?;
    texts::check_lists(&draft.knobs, |it| it.text().len(), source)?;
    texts::check_lists(&draft.scale, |_| 0, source)?;
    let choices = choices(draft, source)?;
    let mut loads = Vec::new();
    for argument in &draft.workload {
        let name = argument.get_ref();
        for scale in combinations(lists_for(&draft.scale, name).unwrap_or(&BTreeMap::new())) {
            let found_as: Arc<str> = source.resolve(name).into();
            let load = workload_arg::find(&source.services, &found_as, &scale);
            let load = load.with_context(|| source.of(argument))?;
            loads.push((name, scale, (found_as, Arc::new(load))));
        }
    }
    refused::caches(draft, source, loads.iter().map(|it| it.2.1.machine.cpus))?;
    let mut cells = Vec::new();
    let mut texts = 0_usize;
    let arms = arms(draft, source)?;
    refused::of_one_name(&arms)?;
    for arm in arms {
        let policy = 2 * texts::of(&arm.found.policy);
        let each = loads.iter();
        let each = each.map(|(name, scale, _)| policy + texts::of_load(name, scale));
        texts = each
            .sum::<usize>()
            .saturating_mul(choices.len())
            .saturating_add(texts);
        texts::check(texts, source.file.file)?;
        for (workload, scale, (found_as, load)) in &loads {
            for choice in &choices {
                if cells.len() >= RUNS_MAX {
                    let name = source.file.file;
                    return Err(anyhow!(Advised::new(
                        format!("{name}: more than {RUNS_MAX} combinations"),
                        "split the sweep"
                    )));
                }
                let machine = choice.machine(load);
                let machine = machine.map_err(|wrong| anyhow!(wrong.at(source.file.file)))?;
                sim::check_machine(&machine)
                    .map_err(|error| refused::machine(draft, source, &error))?;
                runs::check_machine(&arm.found.policy, &machine, arm.found.machine.as_ref())
                    .with_context(|| arm.place.to_string())?;
                cells.push(Cell {
                    policy: arm.policy.to_owned(),
                    is_program: arm.is_program,
                    knobs: arm.knobs.clone(),
                    workload: (*workload).clone(),
                    scale: scale.clone(),
                    machine,
                    place: Arc::clone(&arm.place),
                    policy_spec: arm.found.policy.clone(),
                    found_as: Arc::clone(found_as),
                    load: Arc::clone(load),
                });
            }
        }
    }
    Ok(cells)
}

/// A combination of its own; what it does not say is the first of the sweep's lists.
fn included(draft: &Draft, filter: &Spanned<Filter>, source: &Source<'_>) -> anyhow::Result<Cell> {
    let place: Arc<str> = source.of(filter).into();
    let filter = filter.get_ref();
    let lacking = |what: &str| anyhow!("{place}: there is no {what} to include");
    let first = |list: &[Spanned<String>]| list.first().map(|it| it.get_ref().clone());
    let (policy, is_program) = match (&filter.policy, &filter.scheduler) {
        (Some(_), Some(_)) => {
            return Err(anyhow!("{place}: a policy or a scheduler, not both"));
        }
        (None, Some(command)) => (Some(command.clone()), true),
        (policy, None) => (policy.clone().or_else(|| first(&draft.policy)), false),
    };
    let policy = policy.ok_or_else(|| lacking("policy"))?;
    let name = filter.workload.clone().or_else(|| first(&draft.workload));
    let name = name.ok_or_else(|| lacking("workload"))?;
    let scale: Vec<(String, i64)> = filter.scale.clone().into_iter().collect();
    let knobs: Vec<(String, Scalar)> = filter.knobs.clone().into_iter().collect();
    let found_as: Arc<str> = source.resolve(&name).into();
    let load = workload_arg::find(&source.services, &found_as, &scale);
    let load = Arc::new(load.with_context(|| place.to_string())?);
    let kernel = filter.kernel.as_deref().map(kernel::parse).transpose();
    let choice = Choice {
        cpus: filter.cpus,
        hz: filter.hz,
        smt: filter.smt,
        llc: filter.llc,
        kernel: kernel.map_err(|error| refused::kernel(&place, error))?,
    };
    let machine = choice.machine(&load);
    let machine = machine.map_err(|wrong| anyhow!(wrong.at(&place)))?;
    sim::check_machine(&machine).map_err(|error| anyhow!(Advised::of(&error).at(&place)))?;
    let found = if is_program {
        source.program(&policy)
    } else {
        policy::open(&source.services, &source.resolve(&policy))
            .and_then(|found| with_knobs(&policy, &found, &knobs))
    };
    let found = found.with_context(|| place.to_string())?;
    runs::check_machine(&found.policy, &machine, found.machine.as_ref())
        .with_context(|| place.to_string())?;
    Ok(Cell {
        policy_spec: found.policy,
        policy,
        is_program,
        knobs,
        workload: name,
        scale,
        machine,
        place,
        found_as,
        load,
    })
}

#[cfg(test)]
mod tests;
