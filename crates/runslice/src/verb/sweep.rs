//! `runslice sweep FILE`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use model::{Advised, MachineSpec, Nanos};
use serde_json::json;
use show::figure::{Shown, every_run};
use stats::compare::{Choice, Extent, Role, Set, Settings, compare};
use workload::RunSpec;

use crate::about::About;
use crate::comparison::{self, Compared, Family, Form, form_of};
use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::export::{ExportTable, Kind};
use crate::page::Page;
use crate::report::{self, counted};
use crate::scheduler::LoaderOptions;
use crate::sets::{self, File};
use crate::store::{self, Key, SIMULATES, Store};
use crate::{output, python};

use crate::plan::{self, Planned, Programs};

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
    #[arg(long, value_name = "I/N", value_parser = Shard::parse, conflicts_with = "merge")]
    shard: Option<Shard>,

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
    #[arg(long, value_enum)]
    format: Option<Form>,

    /// Write the summary to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A part of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    /// From 0.
    index: usize,
    count: usize,
}

impl Shard {
    fn parse(text: &str) -> Result<Self, String> {
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
    let programs = Programs {
        commands: &request.schedulers,
        options: &request.loader.asked(),
    };
    let runs = plan::read(&COMPUTER, &request.file, programs, SIMULATES)?;
    let folder = match &request.folder {
        Some(folder) => folder.clone(),
        None => request.file.with_extension("results"),
    };
    let store = if request.dry_run {
        Store::at(&folder)
    } else {
        Store::open(&folder)?
    };
    // What a run depends on is a long text: numbers and files of many runs are shared out, too.
    let jobs = COMPUTER.jobs(request.jobs);
    let keys = COMPUTER.map(&runs, jobs, "keys", |run| Ok(run.key(SIMULATES)))?;
    let mine: Vec<(Key, &Planned)> = keys.into_iter().zip(&runs).collect();
    let mine: Vec<(Key, &Planned)> = match request.shard {
        None => mine,
        Some(Shard { index, count }) => mine.into_iter().skip(index).step_by(count).collect(),
    };
    if request.dry_run {
        return foretell(&store, &mine, &folder);
    }
    let mut loads = HashSet::new();
    for workload in runs.iter().map(|run| &run.spec.workload) {
        if loads.insert(&workload.file) {
            ask::runs::say_late_spans(&COMPUTER, workload);
        }
    }
    if request.merge.is_empty() {
        make(&store, &mine, request)?;
    } else {
        merge(&store, &mine, request)?;
    }
    if let Some(Shard { index, count }) = request.shard {
        say(&format!(
            "part {} of {count}: {} of {} runs are in {}",
            index + 1,
            mine.len(),
            runs.len(),
            folder.display()
        ));
        return Ok(Status::Done);
    }
    finish(&store, &mine, &folder, request)
}

/// Prints which runs would be made.
fn foretell(store: &Store, runs: &[(Key, &Planned)], folder: &Path) -> anyhow::Result<Status> {
    let missing: BTreeMap<Key, &Planned> = runs
        .iter()
        .filter(|(key, _)| store.get(*key).is_none())
        .map(|(key, run)| (*key, *run))
        .collect();
    let mut ends = missing.values().map(|run| sim::latest_end(&run.spec).0);
    let longest = ends.try_fold(0_u64, |sum, end| sum.checked_add(end?.get()));
    let longest = longest.map(Nanos::new);
    let time = longest.map_or_else(
        || "nothing says how long all of them last".to_owned(),
        |longest| format!("at most {longest} of simulated time"),
    );
    let distinct = |of: &dyn Fn(&RunSpec) -> String| {
        let mut seen = HashSet::new();
        let all = runs.iter().map(|(_, run)| of(&run.spec));
        all.filter(|it| seen.insert(it.clone()))
            .collect::<Vec<String>>()
    };
    let mut to = output::open(None)?;
    writeln!(
        to,
        "{} runs, {} of them to be made: {time}; results in {}",
        runs.len(),
        missing.len(),
        folder.display()
    )?;
    let machine = |spec: &RunSpec| {
        let MachineSpec {
            cpus, hz, kernel, ..
        } = &spec.machine;
        let cpus = counted((*cpus).into(), "CPU");
        format!("{cpus}, HZ {hz}, kernel {}", kernel.name())
    };
    writeln!(
        to,
        "policies: {}",
        distinct(&|it| it.policy.name.clone()).join("  ")
    )?;
    writeln!(
        to,
        "workloads: {}",
        distinct(&|it| it.workload.name.clone()).join("  ")
    )?;
    writeln!(to, "machines: {}", distinct(&machine).join("; "))?;
    writeln!(to, "seeds: {}", distinct(&|it| it.seed.to_string()).len())?;
    to.flush()?;
    Ok(Status::Done)
}

/// Makes the runs that the store does not have.
fn make(store: &Store, runs: &[(Key, &Planned)], request: &Sweep) -> anyhow::Result<()> {
    // The same run may be asked for twice.
    let mut seen = BTreeSet::new();
    let jobs = COMPUTER.jobs(request.jobs);
    let there = COMPUTER.map(runs, jobs, "results", |(key, _)| {
        Ok(store.get(*key).is_some())
    })?;
    let missing = runs.iter().zip(there);
    let missing: Vec<&(Key, &Planned)> = missing
        .filter(|((key, _), there)| seen.insert(*key) && !there)
        .map(|(run, _)| run)
        .collect();
    let had = runs.len() - missing.len();
    if had > 0 {
        say(&format!("{had} of {} runs are there already", runs.len()));
    }
    plan::try_policies(&COMPUTER, missing.iter().map(|(_, run)| *run))?;
    let done = COMPUTER.map(&missing, jobs, "runs", |(key, run)| {
        store.put(*key, &store::make(run)?)
    });
    done.map(|_| ())
}

/// Takes the runs from the folders of the parts.
fn merge(store: &Store, runs: &[(Key, &Planned)], request: &Sweep) -> anyhow::Result<()> {
    let folders = &request.merge;
    let numbers: Vec<usize> = (0..runs.len()).collect();
    let jobs = COMPUTER.jobs(request.jobs);
    let there = COMPUTER.map(&numbers, jobs, "results", |at| {
        let (key, _) = runs[*at];
        // Parts that are named in their order have the runs in turn.
        let first = at % folders.len();
        let mut likely = folders[first..].iter().chain(&folders[..first]);
        let mut there = store.get(key).is_some();
        while let Some(folder) = likely.next().filter(|_| !there) {
            there = store.take_over(key, folder)?;
        }
        Ok(there)
    })?;
    let missing = runs.iter().zip(there);
    let missing: Vec<&Planned> = missing
        .filter(|(_, there)| !there)
        .map(|((_, run), _)| *run)
        .collect();
    let Some(first) = missing.first() else {
        return Ok(());
    };
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
            runs.len()
        ),
        format!(
            "the first is {} under {} with seed {seed} ({}). Make them without \
             --merge, with the program and files that made the other parts",
            workload.name, policy.name, first.place
        )
    ))
}

/// Writes all results into one file, and their spread for the user.
fn finish(
    store: &Store,
    runs: &[(Key, &Planned)],
    folder: &Path,
    request: &Sweep,
) -> anyhow::Result<Status> {
    // A million results are ten gigabytes: only one of them is in memory at a time.
    let lines = runs.iter().map(|(key, run)| {
        let gone = || {
            format!(
                "the results of {} are gone from {}",
                run.place,
                folder.display()
            )
        };
        store.get(*key).with_context(gone)
    });
    let path = store.finish(sets::SWEEP, lines)?;
    let file = File::read(&COMPUTER, &path)?;
    let is_void = file.sets.iter().any(|set| set.void > 0 || set.starved > 0);
    let form = form_of(request.format, request.output.as_deref())?;
    let mut to = output::open_form(form.export(), request.output.as_deref())?;
    // The table for people says it itself.
    let is_told = form == Form::Human && request.output.is_none();
    let told = file.sets.iter().filter(|_| !is_told);
    let told = told.filter_map(|set| Some(format!("{}: {}", set.place, set.starvation()?)));
    let told: Vec<String> = told.collect();
    match form {
        Form::Html => {
            let page = page_of(file, &request.file);
            page.write(&mut to)?;
            to.flush()?;
            output::announce(&page.verdict, request.output.as_deref())?;
        }
        form => write(&file.sets, form, &mut to)?,
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

/// The page: under each load, every scheduler against the first that it was run with.
fn page_of(file: File, name: &Path) -> Page {
    let sets = file.sets.clone();
    let settings = Settings::default();
    let places: BTreeSet<&str> = sets.iter().map(|set| set.place.as_str()).collect();
    let spread = report::runs::table(&sets);
    let mut page = match Family::of(vec![file], None, None) {
        Ok(family) => {
            let rows = compare(&family.questions(), Choice::Stated, &settings);
            comparison::page(&Compared {
                family: &family,
                rows: &rows,
                settings: &settings,
            })
        }
        // One scheduler, or none that two loads have in common.
        Err(_) => alone(&sets),
    };
    page.title = format!(
        "Sweep of {}: {}, {}",
        name.display(),
        counted(sets.len() as u64, "arm"),
        match places.len() {
            1 => "one load and machine".to_owned(),
            count => format!("{count} loads or machines"),
        },
    );
    page.fold("spread", "Median, least and most of each figure", &spread);
    page
}

/// Sets of which none can be held against another.
fn alone(sets: &[Set]) -> Page {
    let goals = sets.iter().flat_map(|set| &set.series);
    let goals = goals.filter(|it| it.role == Role::Goal);
    let mut shown: Vec<Shown> = Vec::new();
    for goal in goals {
        let one = Shown {
            metric: goal.name.clone(),
            title: goal.name.clone(),
        };
        if !shown.contains(&one) {
            shown.push(one);
        }
    }
    let sets: Vec<&Set> = sets.iter().collect();
    Page {
        verdict: vec!["There are no two schedulers under one load to compare.".to_owned()],
        pictures: vec![every_run(&sets, &shown, &[], report::runs::shown_value)],
        about: vec![
            ("program".to_owned(), format!("runslice {}", About::VERSION)),
            ("command".to_owned(), About::command()),
        ],
        ..Page::default()
    }
}

fn write(sets: &[Set], format: Form, to: &mut dyn Write) -> io::Result<()> {
    if let Some(form) = format.export() {
        return export(sets).write(form, to);
    }
    match format {
        Form::Json => {
            let sets: Vec<_> = sets
                .iter()
                .map(|set| {
                    json!({
                        "place": set.place,
                        "policy": set.arm,
                        "runs": set.runs,
                        "void": set.void,
                        "starved": set.starved,
                        "spread": report::runs::spreads(std::slice::from_ref(set)),
                    })
                })
                .collect();
            let document = json!({
                "runslice_sweep_spread": 1,
                "version": About::VERSION,
                "command": About::words(),
                "sets": sets,
            });
            serde_json::to_writer_pretty(&mut *to, &document)?;
            writeln!(to)
        }
        _ => {
            let mut places: Vec<&str> = Vec::new();
            for set in sets {
                if !places.contains(&set.place.as_str()) {
                    places.push(&set.place);
                }
            }
            for (at, place) in places.into_iter().enumerate() {
                let here = sets.iter().filter(|set| set.place == place);
                let here: Vec<Set> = here.cloned().collect();
                writeln!(to, "{}{place}", if at == 0 { "" } else { "\n" })?;
                report::runs::write_sets(&here, to)?;
            }
            Ok(())
        }
    }
}

/// A row for each metric of each set.
fn export(sets: &[Set]) -> ExportTable {
    let names = ["schema", "version", "command", "place", "policy", "metric"];
    let names = names.map(|name| (name, Kind::Text));
    let numbers = ["median", "min", "max"].map(|name| (name, Kind::Real));
    let columns = names.into_iter().chain([("runs", Kind::Whole)]);
    let mut table = ExportTable::new(columns.chain(numbers));
    for set in sets {
        for series in &set.series {
            let Some(extent) = Extent::of(&series.values) else {
                continue;
            };
            let names = [&set.place, &set.arm, &series.name].map(Clone::clone);
            let numbers = [extent.median, extent.min, extent.max].map(|it| it.to_string());
            let cells = names.into_iter().chain([extent.runs.to_string()]);
            let front = About::cells("sweep_spread", 1);
            table.row(front.into_iter().chain(cells).chain(numbers));
        }
    }
    table
}

fn say(text: &str) {
    crate::say::say("sweep", text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_one_of_a_number() {
        assert_eq!(Shard::parse("2/8"), Ok(Shard { index: 1, count: 8 }));
        for bad in ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"] {
            Shard::parse(bad).unwrap_err();
        }
    }
}
