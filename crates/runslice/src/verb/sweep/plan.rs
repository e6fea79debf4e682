//! A sweep's file, and the runs that it asks for.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use model::file;
use model::{Kernel, MachineSpec, Nanos, PolicySpec};
use serde::Deserialize;
use toml::Spanned;
use workload::{RunSpec, Workload};

use crate::{input, kernel, policy, workload_arg};
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
    /// Which line of the file its policy comes from, for messages: `sweep.toml:1:12`.
    pub place: Arc<str>,
}

/// The file as it stands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Draft {
    policy: Vec<Spanned<String>>,
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
    policy: String,
    knobs: Vec<(String, Scalar)>,
    workload: String,
    scale: Vec<(String, i64)>,
    machine: MachineSpec,
    place: Arc<str>,
    policy_spec: PolicySpec,
    load: Arc<Workload>,
}

/// Finds lines and columns in the file.
struct Source<'a> {
    file: file::Source<'a>,
    folder: &'a Path,
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
        match is_path && Path::new(name).is_relative() {
            true => format!("{}{rest}", self.folder.join(name).display()),
            false => argument.to_owned(),
        }
    }
}

/// Reads a sweep's file: every combination of its lists but the excluded, and the included ones.
///
/// # Errors
/// What is wrong, with the file's name, line and column.
pub fn read(path: &Path) -> anyhow::Result<Vec<Planned>> {
    let name = path.display().to_string();
    let text = input::text(path, input::WRITTEN)?;
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let file = file::Source {
        file: &name,
        text: &text,
    };
    let source = Source {
        file,
        folder: folder.unwrap_or(Path::new(".")),
    };
    plan(&source)
}

fn plan(source: &Source<'_>) -> anyhow::Result<Vec<Planned>> {
    let draft: Draft = file::read(&source.file)?;
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
    let seeds = seeds_of(&draft, source)?;
    if cells.is_empty() {
        return Err(anyhow!("{}: there is nothing to run", source.file.file));
    }
    if cells.len().saturating_mul(seeds.count()) > RUNS_MAX {
        let runs = cells.len() as u128 * seeds.count() as u128;
        let name = source.file.file;
        return Err(anyhow!(
            "{name}: {runs} runs are more than {RUNS_MAX}; split the sweep"
        ));
    }
    let duration = draft.duration.as_ref().map(|text| {
        let place = || source.of(text);
        span::parse(text.get_ref()).map_err(|error| anyhow!("{}: {error}", place()))
    });
    let duration = duration.transpose()?;
    let runs = cells.iter().flat_map(|cell| {
        let seeds = seeds.of(draft.seed.unwrap_or(cell.load.seed));
        seeds.into_iter().map(|seed| planned(cell, seed, duration))
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
        place: Arc::clone(&cell.place),
    }
}

fn seeds_of<'a>(draft: &'a Draft, source: &Source<'_>) -> anyhow::Result<&'a Seeds> {
    const ONE: &Seeds = &Seeds::Count(1);
    let Some(seeds) = &draft.seeds else {
        return Ok(ONE);
    };
    if seeds.get_ref().count() == 0 {
        let place = source.of(seeds);
        return Err(anyhow!(
            "{place}: there are no seeds; give a number or a list"
        ));
    }
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
        is(&self.policy, &cell.policy)
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
        return Err(anyhow!(
            "{place}: more than {RUNS_MAX} combinations; split the sweep"
        ));
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
            return Err(anyhow!(
                "{place}: `{key}` has no value; leave it out or give one"
            ));
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
            .map_err(|error| anyhow!("{}: {error}", source.of(text)))
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
    fn machine(self, load: &Workload) -> MachineSpec {
        let asked = &load.machine;
        MachineSpec {
            cpus: self.cpus.unwrap_or(asked.cpus),
            hz: self.hz.unwrap_or(asked.hz),
            smt: self.smt.unwrap_or(asked.smt),
            llc: self.llc.unwrap_or(asked.llc),
            kernel: self.kernel.unwrap_or(asked.kernel),
            ..asked.clone()
        }
    }
}

/// A policy with knobs, as a cell has it. What the sweep sets is part of its name.
fn find_policy(
    argument: &str,
    knobs: &[(String, Scalar)],
    source: &Source<'_>,
) -> anyhow::Result<PolicySpec> {
    let mut spec = policy::find(&source.resolve(argument))?;
    let mut separator = if argument.contains(':') { ',' } else { ':' };
    for (name, value) in knobs {
        let value = value.text();
        spec.name += &format!("{separator}{name}={value}");
        separator = ',';
        spec.set.push((name.clone(), value));
    }
    Ok(spec)
}

/// The whole product, policy by policy.
fn product(draft: &Draft, source: &Source<'_>) -> anyhow::Result<Vec<Cell>> {
    check_names(&draft.knobs, "policy", &draft.policy, source)?;
    check_names(&draft.scale, "workload", &draft.workload, source)?;
    let none = BTreeMap::new();
    let choices = choices(draft, source)?;
    let mut loads = Vec::new();
    for argument in &draft.workload {
        let name = argument.get_ref();
        for scale in combinations(lists_for(&draft.scale, name).unwrap_or(&BTreeMap::new())) {
            let load = workload_arg::find(&source.resolve(name), &scale);
            let load = load.with_context(|| source.of(argument))?;
            loads.push((name, scale, Arc::new(load)));
        }
    }
    let mut cells = Vec::new();
    for argument in &draft.policy {
        let name = argument.get_ref();
        let place: Arc<str> = source.of(argument).into();
        for knobs in combinations(lists_for(&draft.knobs, name).unwrap_or(&none)) {
            let spec = find_policy(name, &knobs, source).with_context(|| place.to_string())?;
            for (workload, scale, load) in &loads {
                for choice in &choices {
                    if cells.len() >= RUNS_MAX {
                        let name = source.file.file;
                        return Err(anyhow!(
                            "{name}: more than {RUNS_MAX} combinations; split the sweep"
                        ));
                    }
                    let machine = choice.machine(load);
                    sim::check_machine(&machine)
                        .map_err(|error| machine_error(draft, source, &error))?;
                    cells.push(Cell {
                        policy: name.clone(),
                        knobs: knobs.clone(),
                        workload: (*workload).clone(),
                        scale: scale.clone(),
                        machine,
                        place: Arc::clone(&place),
                        policy_spec: spec.clone(),
                        load: Arc::clone(load),
                    });
                }
            }
        }
    }
    Ok(cells)
}

/// Says in which list the impossible machine stands.
fn machine_error(draft: &Draft, source: &Source<'_>, error: &sim::Error) -> anyhow::Error {
    let lists = [
        draft.cpus.first().map(Spanned::span),
        draft.hz.first().map(Spanned::span),
        draft.smt.first().map(Spanned::span),
        draft.llc.first().map(Spanned::span),
    ];
    let which = match error {
        sim::Error::Machine { what, .. } if what.contains("CPUs") => 0,
        sim::Error::Machine { what, .. } if what.contains("HZ") => 1,
        sim::Error::Machine { what, .. } if what.contains("thread") => 2,
        _ => 3,
    };
    match &lists[which] {
        Some(span) => anyhow!("{}: {error}", source.file.place(span.start)),
        None => anyhow!("{}: {error}", source.file.file),
    }
}

/// A combination of its own; what it does not say is the first of the sweep's lists.
fn included(draft: &Draft, filter: &Spanned<Filter>, source: &Source<'_>) -> anyhow::Result<Cell> {
    let place: Arc<str> = source.of(filter).into();
    let filter = filter.get_ref();
    let lacking = |what: &str| anyhow!("{place}: there is no {what} to include");
    let first = |list: &[Spanned<String>]| list.first().map(|it| it.get_ref().clone());
    let policy = filter.policy.clone().or_else(|| first(&draft.policy));
    let policy = policy.ok_or_else(|| lacking("policy"))?;
    let name = filter.workload.clone().or_else(|| first(&draft.workload));
    let name = name.ok_or_else(|| lacking("workload"))?;
    let scale: Vec<(String, i64)> = filter.scale.clone().into_iter().collect();
    let knobs: Vec<(String, Scalar)> = filter.knobs.clone().into_iter().collect();
    let load = workload_arg::find(&source.resolve(&name), &scale);
    let load = Arc::new(load.with_context(|| place.to_string())?);
    let kernel = filter.kernel.as_deref().map(kernel::parse).transpose();
    let choice = Choice {
        cpus: filter.cpus,
        hz: filter.hz,
        smt: filter.smt,
        llc: filter.llc,
        kernel: kernel.map_err(|error| anyhow!("{place}: {error}"))?,
    };
    let machine = choice.machine(&load);
    sim::check_machine(&machine).map_err(|error| anyhow!("{place}: {error}"))?;
    Ok(Cell {
        policy_spec: find_policy(&policy, &knobs, source).with_context(|| place.to_string())?,
        policy,
        knobs,
        workload: name,
        scale,
        machine,
        place,
        load,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(text: &str) -> anyhow::Result<Vec<Planned>> {
        let file = "s.toml";
        plan(&Source {
            file: file::Source { text, file },
            folder: Path::new("."),
        })
    }

    fn told(text: &str) -> Vec<String> {
        let told = runs(text).unwrap().into_iter().map(|run| {
            let RunSpec {
                policy,
                workload,
                machine,
                ..
            } = run.spec;
            format!("{} {} {}", policy.name, workload.name, machine.cpus)
        });
        told.collect()
    }

    #[test]
    fn lists_are_multiplied_and_knobs_belong_to_their_policy() {
        let text = "
            policy = ['fifo', 'mlfq']
            workload = ['desk']
            cpus = [1, 2]
            [knobs.mlfq]
            nq = [4, 8]
        ";
        let want = [
            "fifo desk 1",
            "fifo desk 2",
            "mlfq:nq=4 desk 1",
            "mlfq:nq=4 desk 2",
            "mlfq:nq=8 desk 1",
            "mlfq:nq=8 desk 2",
        ];
        assert_eq!(told(text), want);
        let set = &runs(text).unwrap()[2].spec.policy.set;
        assert_eq!(*set, [("nq".to_owned(), "4".to_owned())]);
    }

    #[test]
    fn combinations_are_excluded_and_included() {
        let text = "
            policy = ['fifo', 'mlfq']
            workload = ['desk']
            cpus = [1, 2]
            [[exclude]]
            policy = 'mlfq'
            cpus = 1
            [[include]]
            policy = 'o1'
            cpus = 7
        ";
        let want = ["fifo desk 1", "fifo desk 2", "mlfq desk 2", "o1 desk 7"];
        assert_eq!(told(text), want);
    }

    #[test]
    fn seeds_are_counted_or_listed() {
        let of = |more: &str| -> Vec<u64> {
            let text = format!("policy = ['fifo']\nworkload = ['desk']\n{more}");
            let runs = runs(&text).unwrap();
            runs.iter().map(|run| run.spec.seed).collect()
        };
        assert_eq!(of("seeds = [5, 9]"), [5, 9]);
        let want: Vec<u64> = (0..3).map(|run| seeds::of_run(7, run)).collect();
        assert_eq!(of("seeds = 3\nseed = 7"), want);
        assert_eq!(of("seed = 7"), [7]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, want) in [
            ("policy = ['fifi']\nworkload = ['desk']", "s.toml:1:11"),
            ("policy = ['fifo']\nworkload = ['dsk']", "s.toml:2:13"),
            (
                "policy = ['fifo']\nworkload = ['desk']\ncpu = 1",
                "s.toml:3:1: unknown field",
            ),
            (
                "policy = ['fifo']\nworkload = ['desk']\ncpus = [0]",
                "s.toml:3:9: the number of CPUs",
            ),
            (
                "policy = ['fifo']\nworkload = ['desk']\nhz = [250, 7]",
                "s.toml:3:7: HZ is 7",
            ),
            (
                "policy = ['fifo']\nworkload = ['desk']\nkernel = ['6.1']",
                "s.toml:3:11",
            ),
            (
                "policy = ['fifo']\nworkload = ['desk']\nseeds = 0",
                "s.toml:3:9: there are no seeds",
            ),
            (
                "policy = ['fifo']\nworkload = ['desk']\nduration = '1'",
                "s.toml:3:12: expected",
            ),
            (
                "policy = ['fifo']\nworkload = ['desk']\n[knobs.mlfq]\nnq = [1]",
                "s.toml:3:8: the sweep has no policy `mlfq`",
            ),
            (
                "policy = ['fifo']\nworkload = ['desk']\n[[exclude]]\ncpus = 9",
                "s.toml:3:1: this excludes no run",
            ),
            ("policy = ['fifo'\nworkload", "s.toml:2:1"),
            (
                "policy = []\nworkload = ['desk']",
                "s.toml: there is nothing to run",
            ),
            (
                "policy = ['fifo']\nworkload = ['desk']\nseeds = 2000000",
                "s.toml: 2000000 runs are more than 1000000",
            ),
        ] {
            let error = format!("{:#}", runs(text).unwrap_err());
            assert!(error.starts_with(want), "{text}: {error}");
        }
    }

    #[test]
    fn combinations_beyond_all_measure_are_refused_before_they_are_made() {
        let list = (0..1000)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(",");
        let of = |rest: &str| {
            let text = format!("policy = ['mlfq']\nworkload = ['desk']\n{rest}");
            runs(&text).unwrap_err().to_string()
        };
        let knobs = of(&format!(
            "[knobs.mlfq]\na = [{list}]\nb = [{list}]\nc = [{list}]"
        ));
        assert_eq!(
            knobs,
            "s.toml:3:8: more than 1000000 combinations; split the sweep"
        );
        let machines = of(&format!("cpus = [{list}]\nhz = [{list}]\nsmt = [{list}]"));
        assert_eq!(
            machines,
            "s.toml: more than 1000000 combinations; split the sweep"
        );
    }

    #[test]
    fn the_documents_example_has_as_many_runs_as_it_says() {
        let document = include_str!("../../../../../docs/sweep.md");
        let (_, rest) = document.split_once("```toml\n").unwrap();
        let (example, rest) = rest.split_once("```").unwrap();
        let runs = runs(example).unwrap();
        let said = format!(
            "These are {} runs: {} combinations",
            runs.len(),
            runs.len() / 20
        );
        assert!(rest.contains(&said), "{said}");
        let hogs: Vec<_> = runs.iter().map(|run| run.scale.as_slice()).collect();
        assert!(hogs.contains(&&[("hogs".to_owned(), 1)][..]));
    }

    #[test]
    fn files_are_relative_to_the_sweep() {
        let source = Source {
            file: file::Source {
                text: "",
                file: "a/s.toml",
            },
            folder: Path::new("a"),
        };
        assert_eq!(source.resolve("x.bpf.o:nq=3"), "a/x.bpf.o:nq=3");
        assert_eq!(source.resolve("b/x.toml"), "a/b/x.toml");
        assert_eq!(source.resolve("/b/x.toml"), "/b/x.toml");
        assert_eq!(source.resolve("mlfq:nq=3"), "mlfq:nq=3");
    }
}
