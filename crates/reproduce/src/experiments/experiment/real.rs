//! vm.toml: the same experiment with real programs on a real kernel. experiments/README.md
//! describes it. It has the tables of experiment.toml, but commands instead of workloads and a
//! guest instead of a machine.

use std::collections::BTreeMap;

use model::file::{self, Source};
use model::{Advised, MachineSpec, PolicySpec, suggest};
use serde::Deserialize;
use toml::Spanned;

use super::super::draft::{self, Draft, OneOrMore};
use super::super::files::Files;
use super::{
    Arm, Experiment, ExperimentReader, Point, PointWork, QUICK_REAL, RunSet, ordered, statements,
    varies,
};
use crate::experiments::catalog::Catalog;
use crate::experiments::error::{Cause, Error, Result, wrong};

/// Runs of each cell unless the file says otherwise.
const RUNS: u32 = 5;
/// The arm that is the kernel's own scheduler.
pub const DEFAULT: &str = "default";

/// vm.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RealDraft {
    experiment: draft::Head,
    #[serde(default)]
    guest: Guest,
    #[serde(default)]
    arm: BTreeMap<Spanned<String>, draft::DraftArm>,
    #[serde(default)]
    runs: BTreeMap<Spanned<String>, Runs>,
    #[serde(default)]
    probe: BTreeMap<Spanned<String>, draft::DraftProbe>,
    #[serde(default)]
    metric: BTreeMap<Spanned<String>, draft::Metric>,
    #[serde(default)]
    across: BTreeMap<Spanned<String>, draft::Across>,
    #[serde(default)]
    statement: Vec<draft::Statement>,
    #[serde(default)]
    figure: Vec<draft::Figure>,
}

/// The guest of all runs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Guest {
    /// Its kernel, as `vm --kernel` takes it.
    pub kernel: String,
    /// Million instructions a second, as `vm --mips` takes it.
    pub mips: u32,
    /// MiB.
    pub memory: u32,
    /// How long a run may take, in the guest's seconds.
    pub timeout_s: u64,
    /// Programs that commands start.
    pub with: Vec<RealProgram>,
    /// Packages that are unpacked into a folder, which commands call `{root}`.
    pub packages: Vec<String>,
    /// What of that folder a guest gets: files and whole folders.
    pub files: Vec<String>,
}

/// A program that a guest gets.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(
    untagged,
    expecting = "expected a program's name, or a table with program and package"
)]
pub enum RealProgram {
    /// One that is installed.
    Installed(String),
    /// One that is fetched from the distribution where it is not installed.
    Packaged {
        /// Its name.
        program: String,
        /// Its package.
        package: String,
    },
}

impl RealProgram {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Installed(program) | Self::Packaged { program, .. } => program,
        }
    }
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            kernel: "6.18".to_owned(),
            mips: 250,
            memory: 1024,
            timeout_s: 120,
            with: Vec::new(),
            packages: Vec::new(),
            files: Vec::new(),
        }
    }
}

/// Every combination of the lists, under each arm.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Runs {
    /// Words; `{NAME}` is a parameter, `{seed}` the run's number.
    command: Spanned<Vec<String>>,
    label: Option<String>,
    arms: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    scale: BTreeMap<Spanned<String>, OneOrMore>,
    cpus: Option<OneOrMore>,
    seeds: Option<Spanned<u32>>,
    quick: Option<Quick>,
}

/// How a quick look treats a set: whether it has it, or how many runs of each cell it makes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Quick {
    Whether(bool),
    Runs(u8),
}

/// Reads what of an experiment is run on kernels.
///
/// # Errors
/// What is wrong, with file, line and column.
pub fn read(files: &Files, name: &str, catalog: &dyn Catalog) -> Result<Experiment> {
    let path = format!("{name}/vm.toml");
    let file = files.shown(&path);
    let text = files
        .get(&path)
        .ok_or_else(|| Error::Missing(file.clone()))?;
    let source = Source { file: &file, text };
    let known = statements(files)?;
    let RealDraft {
        experiment: head,
        guest,
        arm,
        runs,
        probe,
        metric,
        across,
        statement,
        figure,
    } = file::read(&source)?;
    let draft = Draft {
        experiment: head,
        machine: draft::DraftMachine::default(),
        arm,
        runs: BTreeMap::new(),
        probe,
        metric,
        across,
        statement,
        figure,
    };
    let reader = ExperimentReader {
        files,
        folder: name,
        source,
        draft: &draft,
        catalog,
    };
    let arms = reader.arms(|words| find(words, catalog))?;
    let of_runs = ordered(&runs).into_iter();
    let sets = of_runs.map(|(name, runs)| set(&reader, name, runs, &arms));
    let sets: Vec<RunSet> = sets.collect::<Result<_>>()?;
    // The published numbers belong to runs of experiment.toml, which have other sizes.
    let simulated = reader.experiment(&known, arms, sets, Vec::new())?;
    Ok(Experiment {
        guest: Some(guest),
        ..simulated
    })
}

/// A policy as on the command line, or the kernel's own scheduler.
fn find(words: &str, catalog: &dyn Catalog) -> Result<PolicySpec, Cause> {
    if words != DEFAULT {
        return catalog.policy(words);
    }
    Ok(PolicySpec::of_object(DEFAULT, [].into()))
}

fn set(
    reader: &ExperimentReader<'_>,
    name: &Spanned<String>,
    runs: &Runs,
    arms: &[Arm],
) -> Result<RunSet> {
    let seeds = reader.seeds(runs.seeds.as_ref(), RUNS)?;
    let chosen = reader.chosen(runs.arms.as_deref(), arms)?;
    let mut probes = ordered(&reader.draft.probe).into_iter();
    if let Some((probe, _)) = probes.find(|(_, probe)| probe.levels.is_none()) {
        let what = Advised::new(
            "on a kernel only levels are looked for",
            "the load tells the rest",
        );
        return Err(wrong(&reader.source, probe, what));
    }
    let probes = reader.probes_of(name)?;
    Ok(RunSet {
        name: name.get_ref().clone(),
        label: runs.label.clone().unwrap_or_else(|| name.get_ref().clone()),
        arms: chosen,
        points: points(reader, name, runs)?,
        seeds,
        duration: None,
        probes,
        quick: match runs.quick {
            None | Some(Quick::Whether(true)) => QUICK_REAL,
            Some(Quick::Whether(false)) => 0,
            Some(Quick::Runs(runs)) => runs.into(),
        },
    })
}

/// Every combination.
fn points(
    reader: &ExperimentReader<'_>,
    name: &Spanned<String>,
    runs: &Runs,
) -> Result<Vec<Point>> {
    let mut lists: Vec<(String, Vec<i64>)> = ordered(&runs.scale)
        .into_iter()
        .map(|(name, values)| (name.get_ref().clone(), values.list()))
        .collect();
    let one = OneOrMore::One(1);
    lists.push(("cpus".to_owned(), runs.cpus.as_ref().unwrap_or(&one).list()));
    let all = reader.combinations(name, &lists)?;
    let varies = varies(&lists);
    let point = |settings: Vec<(String, i64)>| {
        let words = runs.command.get_ref();
        let complain = |what: String| wrong(&reader.source, &runs.command, what);
        let command = words
            .iter()
            .map(|word| fill(word, &settings).map_err(complain));
        let command = command.collect::<Result<Vec<_>>>()?;
        if command.is_empty() {
            return Err(complain("a command has a first word".to_owned()));
        }
        let cpus = settings.iter().find(|(key, _)| key == "cpus");
        let cpus = cpus.and_then(|(_, cpus)| u16::try_from(*cpus).ok());
        let cpus = cpus.filter(|cpus| (1..=255).contains(cpus));
        let cpus = cpus.ok_or_else(|| complain("a guest has 1 to 255 CPUs".to_owned()))?;
        let labels = settings.iter().filter(|(key, _)| varies.contains(&&**key));
        let labels: Vec<String> = labels
            .map(|(key, value)| format!("{key} {value}"))
            .collect();
        Ok(Point {
            scale: Vec::new(),
            label: labels.join(", "),
            work: PointWork::Command(command),
            machine: MachineSpec {
                cpus,
                ..MachineSpec::default()
            },
            settings,
        })
    };
    all.into_iter().map(point).collect()
}

/// A word with its parameters' values. `{seed}` stays: it differs from run to run.
fn fill(word: &str, settings: &[(String, i64)]) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| format!("`{word}` has a brace that nothing closes"))?;
        filled += before;
        match settings.iter().find(|(key, _)| key == name) {
            Some((_, value)) => filled += &value.to_string(),
            // Known when it is run.
            None if name == "seed" => filled += "{seed}",
            None if name == "root" => filled += "{root}",
            None => {
                let known = settings
                    .iter()
                    .map(|(key, _)| key.as_str())
                    .chain(["seed", "root"]);
                let hint = suggest::hint(name, known);
                return Err(format!("there is no parameter `{name}`: {hint}"));
            }
        }
        rest = after;
    }
    Ok(filled + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_in_braces() {
        let settings = [("hogs".to_owned(), 8), ("cpus".to_owned(), 2)];
        assert_eq!(fill("--hogs", &settings), Ok("--hogs".to_owned()));
        assert_eq!(fill("a{hogs}b{cpus}", &settings), Ok("a8b2".to_owned()));
        assert_eq!(fill("{seed}", &settings), Ok("{seed}".to_owned()));
        let error = fill("{hog}", &settings).unwrap_err();
        assert!(error.contains("`hog`") && error.contains("hogs"), "{error}");
        assert!(fill("{hogs", &settings).is_err());
    }
}
