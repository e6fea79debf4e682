//! The folder of a bench: its plan, its runs so far, what the command printed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use ask::sets::own;
use model::Advised;
use serde_json::{Value, json};

use super::plan::{BenchArm, BenchTurn};
use super::{EJECTED, Measured};
use crate::computer::COMPUTER;
use crate::{input, output};

/// Runs by number, and why they are void if they are.
type Done = BTreeMap<u64, Option<String>>;

/// A folder that runs are added to.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    runs: File,
    /// The runs that are there already: number, and why it is void if it is.
    pub done: Done,
}

impl Folder {
    /// Opens the folder for `plan`: a new one, or one with runs of the same plan.
    ///
    /// # Errors
    /// When it has another plan, or cannot be read or written.
    pub fn open(path: &Path, plan: &Value) -> anyhow::Result<Self> {
        let logs = path.join("logs");
        output::make_folder(&logs)?;
        let file = path.join(own::BENCH);
        match input::text(&COMPUTER, &file, input::WRITTEN) {
            Ok(text) => check_same(&file, &text, plan)?,
            Err(_) => {
                let text = serde_json::to_string_pretty(plan).context("the plan")?;
                output::write_whole(&file, (text + "\n").as_bytes())?;
            }
        }
        let (runs, done) = open_runs(&path.join(own::RUNS))?;
        Ok(Self {
            path: path.to_owned(),
            runs,
            done,
        })
    }

    /// Runs so far that ended in an ejection.
    pub fn ejected(&self) -> usize {
        let void = self.done.values().flatten();
        void.filter(|reason| reason.starts_with(EJECTED)).count()
    }

    /// Where the output of a run goes.
    pub fn log(&self, turn: BenchTurn) -> PathBuf {
        self.path
            .join("logs")
            .join(format!("{:04}.log", turn.number))
    }

    /// Adds a run, so that it outlives a crash of the computer.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, turn: BenchTurn, arm: &BenchArm, run: &Measured) -> anyhow::Result<()> {
        let figures = &run.figures;
        let line = json!({
            "number": turn.number,
            "block": turn.block,
            "arm": arm.name,
            "warmup": turn.block == 0,
            "void": run.void,
            "status": run.status,
            "time_ns": figures.time_ns,
            "run_ns": figures.run_ns,
            "wait_ns": figures.wait_ns,
            "slices": figures.slices,
            "migrations": figures.migrations,
            "voluntary": figures.voluntary,
            "involuntary": figures.involuntary,
            "user_ns": figures.user_ns,
            "system_ns": figures.system_ns,
            "memory_bytes": figures.memory_bytes,
        });
        let line = match &run.played {
            Some(played) => with(line, "played", played),
            None => line,
        };
        let written = writeln!(self.runs, "{line}").and_then(|()| self.runs.sync_data());
        written.with_context(|| format!("cannot write into {}", self.path.display()))?;
        self.done.insert(turn.number, run.void.clone());
        Ok(())
    }
}

fn with(mut line: Value, key: &str, value: &Value) -> Value {
    line[key] = value.clone();
    line
}

/// The same command, schedulers, order and computer; otherwise the runs are not of one kind.
fn check_same(file: &Path, text: &str, plan: &Value) -> anyhow::Result<()> {
    let name = file.display();
    let there: Value = serde_json::from_str(text).with_context(|| format!("{name}: no JSON"))?;
    for (key, wanted) in plan.as_object().into_iter().flatten() {
        if there[key] != *wanted {
            bail!(Advised::new(
                format!(
                    "{name} is of another bench: its {key} is {}, not {wanted}",
                    there[key]
                ),
                "give another --folder"
            ));
        }
    }
    Ok(())
}

/// Opens the file of runs at its end. A last line that a crash has torn is cut off.
fn open_runs(path: &Path) -> anyhow::Result<(File, Done)> {
    let cannot = || format!("cannot use {}", path.display());
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(cannot),
    };
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    let mut done = BTreeMap::new();
    for (at, line) in text[..whole].lines().enumerate() {
        let run: Value = serde_json::from_str(line)
            .with_context(|| format!("{}:{}: no JSON", path.display(), at + 1))?;
        if let Some(number) = run["number"].as_u64() {
            done.insert(number, run["void"].as_str().map(str::to_owned));
        }
    }
    let file = folder::append(path).with_context(cannot)?;
    file.set_len(whole as u64).with_context(cannot)?;
    Ok((file, done))
}
