//! `runslice sweep FILE`.

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ask::sets::{self, File};
use ask::sweep::{KeptRuns, Sweep as Question, SweepPart, SweepRuns};
use clap::Args;
use show::format::COMPARISONS;
use show::sweep;

use crate::about::About;
use crate::comparison::form_of;
use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::report::{Format, format_of};
use crate::scheduler::LoaderOptions;
use crate::store::{SIMULATES, Store};
use crate::{output, python};

/// Arguments of `runslice sweep`.
#[derive(Debug, Args)]
pub struct Sweep {
    /// TOML file with lists of policies, workloads, knobs, machines and seeds. Every combination is
    /// run. docs/sweep.md describes the file.
    file: PathBuf,

    /// Also sweep a scheduler's own program, as `scheduler` in the file does: for example
    /// `--scheduler 'scx_lavd --performance'`. May be repeated. The program has your rights.
    #[arg(long = "scheduler", value_name = "COMMAND")]
    schedulers: Vec<String>,

    #[command(flatten)]
    loader: LoaderOptions,

    /// Folder for the results. Runs that are already there are not made again, so an interrupted
    /// sweep continues. Default: the file's name, ending in .results.
    #[arg(short = 'd', long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Make only one part of the runs: 2/8 is the second part of eight.
    ///
    /// Different computers can make the parts. Join them with `--merge`.
    #[arg(long, value_name = "I/N", value_parser = SweepPart::parse, conflicts_with = "merge")]
    shard: Option<SweepPart>,

    /// Take the runs from this folder, which has one part, and make no runs. May be repeated.
    #[arg(long, value_name = "DIR")]
    merge: Vec<PathBuf>,

    /// Say how many runs the file asks for, of what, and how many are there already; make none.
    #[arg(long, conflicts_with = "merge")]
    dry_run: bool,

    /// Threads. The number does not change the results. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    /// Make the runs on another engine: `processes`, `ray` or `dask`. It takes the Python package
    /// (docs/python.md).
    #[arg(long, value_name = "ENGINE",
        conflicts_with_all = ["merge", "dry_run", "schedulers", "jobs"])]
    on: Option<String>,

    /// Workers of the engine of --on. Default: one for each CPU, or all of a cluster.
    #[arg(long, value_name = "NUMBER", requires = "on")]
    workers: Option<NonZeroUsize>,

    /// Address of the cluster of --on. Default: a new one on this computer.
    #[arg(long, value_name = "ADDRESS", requires = "on")]
    address: Option<String>,

    /// Output format of the summary. Default: what the ending of the output file stands for (.html,
    /// .json, .csv, .parquet), else `human`. For `compare`, the folder keeps every run.
    #[arg(long, value_parser = format_of(COMPARISONS))]
    format: Option<Format>,

    /// Write the summary to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Sweep {
    /// As a question has it.
    fn asked(&self) -> Question {
        Question {
            file: self.file.clone(),
            schedulers: self.schedulers.clone(),
            programs: self.loader.asked(),
        }
    }
}

/// Makes the runs that are missing, and writes what came of all.
///
/// # Errors
/// When the file is wrong, a run cannot be made, or the folder cannot be written.
pub fn run(request: &Sweep) -> anyhow::Result<Status> {
    if let Some(engine) = &request.on {
        return python::hand_over(engine);
    }
    form_of(request.format, request.output.as_deref())?;
    output::spare(
        &[("the sweep", Some(&request.file))],
        &[("--output", request.output.as_deref())],
    )?;
    let plan = request.asked().plan(&COMPUTER, SIMULATES);
    let plan = plan.map_err(ask::Error::into_cause)?;
    let folder = match &request.folder {
        Some(folder) => folder.clone(),
        None => request.file.with_extension("results"),
    };
    let store = if request.dry_run {
        Store::at(&folder)
    } else {
        Store::open(&folder)?
    };
    let runs = plan.select(&COMPUTER, request.shard, request.jobs)?;
    if request.dry_run {
        let mut to = output::open(None)?;
        sweep::forecast(&runs.forecast(&store), &store.place(), &mut to)?;
        to.flush()?;
        return Ok(Status::Done);
    }
    if request.merge.is_empty() {
        runs.make(&COMPUTER, &store)?;
    } else {
        let parts: Vec<Store> = request.merge.iter().map(|it| Store::at(it)).collect();
        let parts: Vec<&dyn KeptRuns> = parts.iter().map(|it| it as _).collect();
        runs.merge(&COMPUTER, &store, &parts)?;
    }
    if let Some(SweepPart { index, count }) = request.shard {
        let (part, mine, all) = (index + 1, runs.count(), plan.runs());
        let place = store.place();
        say(&format!(
            "part {part} of {count}: {mine} of {all} runs are in {place}"
        ));
        return Ok(Status::Done);
    }
    finish(&store, &runs, request)
}

/// Writes all results into one file, and their spread for the user.
fn finish(store: &Store, runs: &SweepRuns<'_>, request: &Sweep) -> anyhow::Result<Status> {
    let path = store.finish(sets::SWEEP, runs.lines(store))?;
    let file = File::read(&COMPUTER, &path)?;
    let is_void = file.sets.iter().any(|set| set.void > 0 || set.starved > 0);
    let form = form_of(request.format, request.output.as_deref())?;
    let mut to = output::open_form(form.export(), request.output.as_deref())?;
    // The table for people says it itself.
    let is_told = form == Format::Human && request.output.is_none();
    let told = file.sets.iter().filter(|_| !is_told);
    let told = told.filter_map(|set| Some(format!("{}: {}", set.place, set.starvation()?)));
    let told: Vec<String> = told.collect();
    let origin = About::origin();
    match (form, form.export()) {
        (_, Some(export)) => sweep::table(&file.sets, &origin).write(export, &mut to)?,
        (Format::Html, _) => {
            let page = sweep::page(file, &request.file.display().to_string(), &origin);
            page.write(&mut to)?;
            to.flush()?;
            output::announce(&page.verdict, request.output.as_deref())?;
        }
        (Format::Json, _) => sweep::json(&file.sets, &origin, &mut to)?,
        _ => sweep::text(&file.sets, &mut to)?,
    }
    to.flush()?;
    say(&format!("every run is in {}", path.display()));
    for sentence in told {
        say(&sentence);
    }
    if is_void {
        Ok(Status::Ejected)
    } else {
        Ok(Status::Done)
    }
}

fn say(text: &str) {
    crate::say::say("sweep", text);
}
