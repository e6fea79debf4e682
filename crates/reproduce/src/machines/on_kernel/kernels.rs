//! Runs an experiment's commands on a real kernel: in virtual machines that count instructions, or
//! on this computer.
//!
//! All runs of an arm with one number of CPUs share one guest, booted once, with the policy
//! attached once. They go through the points in turn, so that what changes with time meets all.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use crate::experiments::probe::WantedProbe;
use anyhow::{Context as _, bail};
use ask::key::Key;
use ask::sweep::KeptRuns as _;
use ask::words::counted;
use model::Advised;
use runslice::door::on_kernel::{
    OWN_NAME, Ran, SeriesPlan, SeriesRun, SeriesScheduler, WAY, check_host, failure, own_name,
    release, runslice,
};
use runslice::door::{COMPUTER, KernelPlace, RUNS_REAL, Store, in_full, say};
use serde_json::{Value, json};
use vm::{GuestRequest, Pace, Speed};

use super::missing::{Missing, lock};
use super::probed;
use crate::experiments::cells::{CellId, ExperimentResults, RunSample};
use crate::experiments::experiment::{DEFAULT, Experiment, Guest, PointWork, Wished};
use crate::machines::RerunOptions;

/// The plan's file in the shared folder.
const PLAN: &str = "plan.json";
/// The results' file there.
const RESULTS: &str = "results.jsonl";
/// What a guest may take besides its runs, for the verifier above all, in its seconds.
const OVERHEAD_S: u64 = 200;
/// What QEMU itself takes beside the guest's memory, in MiB, and more than that.
const QEMU_MIB: u64 = 256;

/// All runs of an arm with one number of CPUs.
#[derive(Debug)]
struct Boot<'a> {
    /// Index of its experiment among those that are run.
    experiment: usize,
    guest: &'a Guest,
    /// The policy with its knobs, or `default`.
    policy: &'a str,
    name: String,
    cpus: u16,
    /// In the order in which they run.
    runs: Vec<Planned<'a>>,
}

/// A run of a boot.
#[derive(Debug)]
struct Planned<'a> {
    cell: CellId,
    command: Vec<String>,
    /// What is looked for in the events that the command writes.
    probes: &'a [WantedProbe],
}

/// Which boots some experiments take.
fn plan<'a>(experiments: &'a [Experiment], quick: bool) -> Vec<Boot<'a>> {
    let mut boots = Vec::new();
    for (experiment_index, experiment) in experiments.iter().enumerate() {
        let Some(guest) = &experiment.guest else {
            continue;
        };
        let mut by_arm: BTreeMap<(usize, u16), Vec<(usize, Planned<'_>)>> = BTreeMap::new();
        for Wished { cell, number, seed } in experiment.runs(quick) {
            let set = &experiment.sets[cell.set];
            let point = &set.points[cell.point];
            let PointWork::Command(command) = &point.work else {
                continue;
            };
            let seed = seed.to_string();
            let words = command.iter().map(|word| word.replace("{seed}", &seed));
            let run = Planned {
                cell,
                command: words.collect(),
                probes: &set.probes,
            };
            let runs = by_arm.entry((cell.arm, point.machine.cpus)).or_default();
            runs.push((number, run));
        }
        for ((arm, cpus), mut runs) in by_arm {
            // The first runs of all points, then the second ones.
            runs.sort_by_key(|(number, run)| (*number, run.cell));
            let arm = &experiment.arms[arm];
            boots.push(Boot {
                experiment: experiment_index,
                guest,
                policy: &arm.words,
                name: format!(
                    "{}, {}, {}",
                    experiment.name,
                    arm.label,
                    counted(cpus.into(), "CPU")
                ),
                cpus,
                runs: runs.into_iter().map(|(_, run)| run).collect(),
            });
        }
    }
    boots
}

impl Planned<'_> {
    fn has_events(&self) -> bool {
        !self.probes.is_empty() && probed::has_events(&self.command)
    }
}

impl Boot<'_> {
    /// What the probes of each run find in the file of events that `read` gives by its name.
    fn found(&self, read: impl Fn(&str) -> Option<Vec<u8>>) -> Value {
        let runs = self.runs.iter().enumerate();
        let runs = runs.filter(|(_, run)| run.has_events()).map(|(at, run)| {
            let events = read(&probed::file(at));
            (at.to_string(), probed::look(run.probes, events.as_deref()))
        });
        Value::Object(runs.collect())
    }

    /// The runs; `root` is where packages were unpacked.
    fn plan(&self, root: &Path) -> SeriesPlan {
        let root = root.to_string_lossy();
        let runs = self.runs.iter().enumerate();
        let runs = runs.map(|(at, run)| {
            let words = run.command.iter();
            let words = words.map(|word| word.replace("{root}", &root));
            let events = ["--events".to_owned(), probed::file(at)];
            let events = events.into_iter().filter(|_| run.has_events());
            SeriesRun {
                id: at.to_string(),
                command: words.chain(events).collect(),
                timeout_s: self.guest.timeout_s,
            }
        });
        SeriesPlan {
            runs: runs.collect(),
        }
    }

    /// What is started: the series, under the policy.
    fn command(&self) -> Vec<String> {
        let series = ["load", "series", PLAN, "-o", RESULTS];
        let under: &[&str] = match self.policy {
            DEFAULT => &[],
            policy => &["run", policy, "--", OWN_NAME],
        };
        let words = [OWN_NAME].iter().chain(under).chain(&series);
        words.map(|word| (*word).to_owned()).collect()
    }

    /// What keeps a computer from running it, if anything does. The kernel's own scheduler is there
    /// on every kernel.
    fn lacks(&self, has_class: bool, cpus: u16) -> Option<Advised> {
        if !has_class && self.policy != DEFAULT {
            return Some(Advised::new("this kernel has no sched_ext", WAY));
        }
        let own = self.cpus;
        let is_other = cpus != own;
        is_other.then(|| format!("CPUs: it is for {own}, and this computer has {cpus}").into())
    }

    fn key(&self, place: KernelPlace, kernel: &str) -> Key {
        Key::of(
            RUNS_REAL,
            format!("real {place:?} {kernel} {self:?}").into_bytes(),
        )
    }
}

/// Makes the runs of experiments that the store lacks, and reads all. `results` has one entry an
/// experiment. What cannot be run leaves its cells with the reason, and the rest goes on. Says
/// whether anything could be run.
///
/// Guests run side by side: they count instructions, and a busy computer changes none of them. On
/// this computer's kernel there is one policy at a time.
///
/// # Errors
/// When this computer cannot run any, or results cannot be kept.
pub fn run(
    place: KernelPlace,
    experiments: &[Experiment],
    how: RerunOptions<'_>,
    results: &mut [ExperimentResults],
) -> anyhow::Result<bool> {
    if place == KernelPlace::Host {
        check_host()?;
    }
    let boots = plan(experiments, how.quick);
    let missing = Mutex::new(Missing::default());
    let jobs = match place {
        KernelPlace::Guest => at_once(how.jobs, &boots, available_mib()),
        KernelPlace::Host => NonZeroUsize::MIN,
    };
    let numbered: Vec<(usize, &Boot<'_>)> = boots.iter().enumerate().collect();
    let documents = COMPUTER.map(&numbered, jobs, "guests", |(at, boot)| {
        let told = format!("{} of {}: {}", at + 1, boots.len(), boot.name);
        kept(boot, how.store, place, &told, &missing)
    })?;
    let mut brought = 0;
    for (boot, document) in boots.iter().zip(documents) {
        brought += usize::from(document["report"]["failure"].is_null());
        read(boot, &document, &mut results[boot.experiment]);
    }
    let (lack, all) = (boots.len() - brought, boots.len());
    if lack > 0 {
        let open = "brought no results; what they decide is left open";
        say("reproduce", &format!("{lack} of {all} guests {open}"));
    }
    Ok(brought > 0 || boots.is_empty())
}

/// How many guests run at once: as many as were asked for; otherwise one for each CPU, if `free`
/// MiB hold them all.
fn at_once(asked: Option<NonZeroUsize>, boots: &[Boot<'_>], free: Option<u64>) -> NonZeroUsize {
    let jobs = COMPUTER.jobs(asked);
    let largest = boots.iter().map(|boot| u64::from(boot.guest.memory)).max();
    match (asked, free, largest) {
        (None, Some(free), Some(largest)) => {
            let fit = usize::try_from(free / (largest + QEMU_MIB)).unwrap_or(usize::MAX);
            jobs.min(NonZeroUsize::new(fit).unwrap_or(NonZeroUsize::MIN))
        }
        _ => jobs,
    }
}

/// Memory that new programs can have here, in MiB; `None` where the kernel does not say.
fn available_mib() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|it| it.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024)
}

/// The results of a boot: those of the store, or new ones, which are kept.
fn kept(
    boot: &Boot<'_>,
    store: &Store,
    place: KernelPlace,
    name: &str,
    missing: &Mutex<Missing>,
) -> anyhow::Result<Value> {
    let kernel = match place {
        KernelPlace::Guest => boot.guest.kernel.clone(),
        KernelPlace::Host => release(),
    };
    let key = boot.key(place, &kernel);
    if let Some(line) = store.get(key) {
        return Ok(serde_json::from_str(&line)?);
    }
    let document = match place {
        KernelPlace::Guest => in_guest(boot, name, missing),
        KernelPlace::Host => on_host(boot, name, missing),
    };
    let document = document.unwrap_or_else(|error| lacking(&in_full(&error)));
    lock(missing).tell(&boot.name, document["report"]["failure"].as_str());
    // What could not be run may be possible another time.
    if document["report"]["failure"].is_null() {
        store.put(key, &document.to_string())?;
    }
    Ok(document)
}

/// The results of a boot as they are kept, with what probes have found in each run.
fn document(text: &str, probes: &Value, report: &Value) -> Value {
    let ran: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    json!({ "report": report, "ran": ran, "probes": probes })
}

/// The results of a boot that has none.
fn lacking(failure: &str) -> Value {
    document("", &Value::Null, &json!({ "failure": failure }))
}

/// Boots a guest for the runs. Fails when there can be none; a guest that came to a bad end is in
/// the document.
fn in_guest(boot: &Boot<'_>, name: &str, missing: &Mutex<Missing>) -> anyhow::Result<Value> {
    // Held until all is there: what two guests need is fetched once.
    let mut missing = lock(missing);
    missing.look("tools", || Ok(vm::check_tools()?))?;
    let root = unpack(boot.guest, &mut missing)?;
    let files = below(&root, &boot.guest.files)?;
    let mut named = own_name()?;
    let mut programs = vec![OWN_NAME.to_owned()];
    for program in &boot.guest.with {
        programs.push(program.name().to_owned());
        let found = missing.program(program)?;
        named.extend(found.map(|path| (program.name().to_owned(), path)));
    }
    let wanted = &boot.guest.kernel;
    let kernel = missing.look(&format!("kernel {wanted}"), || {
        let kernel = vm::find_kernel(wanted, &mut |step| say("reproduce", step));
        kernel.with_context(|| format!("kernel {wanted}"))
    })?;
    drop(missing);
    let folder = folder::OwnFolder::new()?;
    write_plan(boot, &root, &folder)?;
    let speed = Speed::from_mips(boot.guest.mips);
    let speed = speed.with_context(|| format!("no guest has {} MIPS", boot.guest.mips))?;
    say("reproduce", &format!("{name}, {} runs", boot.runs.len()));
    let most = boot.runs.len() as u64 * boot.guest.timeout_s;
    let request = GuestRequest {
        kernel,
        cpus: boot.cpus,
        memory_mib: boot.guest.memory,
        pace: Pace::Counted {
            speed,
            sample: Some(1),
        },
        timeout: Duration::from_secs(OVERHEAD_S + most),
        command: boot.command(),
        programs,
        files,
        named,
        share: Some(folder.path().to_owned()),
        folder: PathBuf::from("/share"),
        follow: false,
    };
    let outcome = vm::run(&request)?;
    let brought = |name: &str| {
        let file = outcome
            .changed
            .iter()
            .find(|file| file.path.as_os_str() == name);
        file.map(|file| file.contents.clone())
    };
    let text = brought(RESULTS).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let failure = failure(&outcome, &text);
    let report = json!({
        "kernel": boot.guest.kernel,
        "accelerator": outcome.accelerator,
        "complaints": outcome.kernel_complaints(),
        "failure": failure,
    });
    Ok(document(&text, &boot.found(brought), &report))
}

fn write_plan(boot: &Boot<'_>, root: &Path, folder: &folder::OwnFolder) -> anyhow::Result<()> {
    let plan = serde_json::to_string(&boot.plan(root))?;
    let cannot = model::CannotWrite::at(folder.path().display());
    Ok(fs::write(folder.join(PLAN), plan).map_err(cannot)?)
}

/// Where the packages of a guest lie unpacked; `/` where it asks for none.
fn unpack(guest: &Guest, missing: &mut Missing) -> anyhow::Result<PathBuf> {
    if guest.packages.is_empty() {
        return Ok(PathBuf::from("/"));
    }
    let names: Vec<&str> = guest.packages.iter().map(String::as_str).collect();
    let all = names.join(", ");
    missing.look(&format!("packages {all}"), || {
        let packages = vm::Packages::fetch(&names, &mut |step| say("reproduce", step));
        let packages = packages.with_context(|| format!("no packages {all}"))?;
        Ok(packages.root().to_owned())
    })
}

/// The files that `patterns` name below `root`. A `*` at a pattern's end stands for the rest of a
/// name: versions are parts of names.
fn below(root: &Path, patterns: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for pattern in patterns {
        let path = root.join(pattern.trim_end_matches('*'));
        if !pattern.ends_with('*') {
            if !path.exists() {
                bail!("there is no {}", path.display());
            }
            files.push(path);
            continue;
        }
        let folder = path.parent().unwrap_or(root);
        let begin = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let entries = fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))?;
        let before = files.len();
        for entry in entries {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&begin) {
                files.push(entry.path());
            }
        }
        if files.len() == before {
            bail!("there is no {}*", path.display());
        }
    }
    files.sort();
    Ok(files)
}

fn on_host(boot: &Boot<'_>, name: &str, missing: &Mutex<Missing>) -> anyhow::Result<Value> {
    let mut missing = lock(missing);
    let has_class = live::SchedExt::of_this_kernel().state().is_some();
    if let Some(lacks) = boot.lacks(has_class, live::record::cpus()) {
        bail!(lacks);
    }
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    for program in &boot.guest.with {
        let found = missing.program(program)?;
        if let Some(folder) = found.as_deref().and_then(Path::parent) {
            path.push(":");
            path.push(folder);
        }
    }
    let root = unpack(boot.guest, &mut missing)?;
    drop(missing);
    let folder = folder::OwnFolder::new()?;
    write_plan(boot, &root, &folder)?;
    say("reproduce", &format!("{name}, {} runs", boot.runs.len()));
    let words = boot.command();
    let output = Command::new(runslice()?)
        .args(&words[1..])
        .env("PATH", path)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .context("cannot start this program again")?;
    let text = fs::read_to_string(folder.join(RESULTS)).unwrap_or_default();
    let failure = text.is_empty().then(|| {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.lines().last().unwrap_or_default();
        format!("nothing was run: {}; {last}", output.status)
    });
    let report = json!({ "kernel": release(), "failure": failure });
    let found = boot.found(|name| fs::read(folder.join(name)).ok());
    Ok(document(&text, &found, &report))
}

/// Puts the results of a boot into their cells.
fn read(boot: &Boot<'_>, document: &Value, results: &mut ExperimentResults) {
    let ran = document["ran"].as_array().into_iter().flatten();
    let ran = ran.filter_map(|ran| serde_json::from_value::<Ran>(ran.clone()).ok());
    let by_id: BTreeMap<String, Ran> = ran.map(|ran| (ran.id.clone(), ran)).collect();
    let first = by_id.values().map(|ran| ran.policy[0].clone()).min();
    for (at, run) in boot.runs.iter().enumerate() {
        let id = at.to_string();
        let sample = match by_id.get(&id) {
            Some(ran) => sample(boot, ran, first.as_ref(), &document["probes"][&id]),
            None => {
                let why = document["report"]["failure"].as_str();
                failed(why.unwrap_or("it was not run: the guest ended before"))
            }
        };
        results.cells.entry(run.cell).or_default().push(sample);
    }
}

fn failed(why: &str) -> RunSample {
    RunSample {
        failure: Some(why.to_owned()),
        ..RunSample::default()
    }
}

/// What one run gave. A run is void whose policy was not the same all the time.
fn sample(
    boot: &Boot<'_>,
    ran: &Ran,
    first: Option<&SeriesScheduler>,
    probes: &Value,
) -> RunSample {
    let has_policy = boot.policy != DEFAULT;
    let stayed = ran
        .policy
        .iter()
        .all(|now| Some(now) == first && now.0.is_some() == has_policy);
    if has_policy && !stayed {
        return RunSample {
            ejection: Some("the policy was ejected before the run was over".to_owned()),
            ..RunSample::default()
        };
    }
    if !stayed {
        return failed("a policy was attached although none was asked for");
    }
    if let Some(why) = &ran.failed {
        let last = ran.stderr.lines().rfind(|line| !line.trim().is_empty());
        let last = last.map(|line| format!("; {line}")).unwrap_or_default();
        return failed(&format!("{why}{last}"));
    }
    let Ok(told) = serde_json::from_str::<Value>(&ran.stdout) else {
        return failed("the command did not print its figures as JSON");
    };
    if let Some(why) = probes["failure"].as_str() {
        return failed(why);
    }
    let mut sample = RunSample::of(&json!({ "probes": probes }));
    sample.numbers.insert("run.time_s".to_owned(), ran.time_s);
    for (name, figure) in told["figures"].as_object().into_iter().flatten() {
        if let Some(value) = figure["value"].as_f64() {
            // Formulas have no minus sign in names.
            sample.numbers.insert(name.replace('-', "_"), value);
        }
    }
    for (name, grown) in &ran.counted {
        sample
            .numbers
            .insert(format!("policy.{name}"), *grown as f64);
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::experiment;
    use crate::experiments::files::Files;

    fn experiment() -> Experiment {
        let folder = std::env::temp_dir().join(format!(
            "runslice-kernels-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        fs::create_dir_all(folder.join("002-x")).unwrap();
        let statements = "[C1]\ndocument = \"002\"\ntext = \"It is so.\"\n";
        fs::write(folder.join("statements.toml"), statements).unwrap();
        fs::write(
            folder.join("002-x/vm.toml"),
            r#"
[experiment]
document = "002"
title    = "t"
source   = "Table I"
seeds    = 5

[arm.mlfq]
policy = "mlfq:guard_ms=7"

[arm.own]
policy = "default"

[runs.all]
command = ["runslice", "load", "echo", "--hogs", "{hogs}", "--seed", "{seed}"]
scale   = { hogs = [1, 8] }
cpus    = [1, 2]

[metric.mean]
value = "response_mean"

[[statement]]
id = "C1"

[[statement.test]]
kind   = "flat"
runs   = "all"
metric = "mean"
arm    = "mlfq"
margin = 0.1
"#,
        )
        .unwrap();
        let files = Files::of_folder(&folder).unwrap();
        assert_eq!(files.on_kernels(), ["002-x"]);
        let read = experiment::read_real(&files, "002-x", &crate::machines::ProgramFiles);
        fs::remove_dir_all(folder).unwrap();
        read.unwrap()
    }

    #[test]
    fn a_boot_is_for_an_arm_and_a_number_of_cpus_and_goes_through_the_points_in_turn() {
        let experiments = [experiment()];
        let boots = plan(&experiments, true);
        let names: Vec<(&str, u16)> = boots.iter().map(|it| (it.policy, it.cpus)).collect();
        let mlfq = "mlfq:guard_ms=7";
        assert_eq!(
            names,
            [(mlfq, 1), (mlfq, 2), ("default", 1), ("default", 2)]
        );
        // Two points, one run each in a quick look.
        assert_eq!(boots[0].runs.len(), 2);
        let all = plan(&experiments, false);
        assert_eq!(all[0].runs.len(), 10);
        let hogs: Vec<&str> = all[0]
            .runs
            .iter()
            .map(|run| run.command[4].as_str())
            .collect();
        assert_eq!(hogs, ["1", "8"].repeat(5));
        let seeds: Vec<&str> = all[0]
            .runs
            .iter()
            .map(|run| run.command[6].as_str())
            .collect();
        assert!(seeds[0] == seeds[1] && seeds[0] != seeds[2], "{seeds:?}");
        let under = boots[0].command();
        assert_eq!(under[..5], ["runslice", "run", mlfq, "--", "runslice"]);
        assert_eq!(boots[2].command()[1], "load");
    }

    #[test]
    fn a_kernel_without_sched_ext_still_runs_what_is_under_its_own_scheduler() {
        let experiments = [experiment()];
        let boots = plan(&experiments, true);
        let [mlfq, own] = [&boots[0], &boots[2]];
        assert_eq!((mlfq.cpus, own.cpus), (1, 1));
        let lacks = model::Advice::in_full(&mlfq.lacks(false, 1).unwrap());
        assert!(
            lacks.contains("no sched_ext") && lacks.contains("--machine vm"),
            "{lacks}"
        );
        assert_eq!((mlfq.lacks(true, 1), own.lacks(false, 1)), (None, None));
        for boot in [mlfq, own] {
            let lacks = boot.lacks(true, 8).unwrap();
            assert_eq!(lacks.what, "CPUs: it is for 1, and this computer has 8");
        }
    }

    fn ran(policy: Option<&str>, then: Option<&str>, failed: Option<&str>) -> Ran {
        let at = |name: Option<&str>| (name.map(str::to_owned), Some(1));
        Ran {
            id: "0".to_owned(),
            failed: failed.map(str::to_owned),
            time_s: 2.5,
            stdout: r#"{"figures": {"response_mean": {"value": 40.5, "unit": "us"}}}"#.to_owned(),
            stderr: "first\nlast\n".to_owned(),
            policy: [at(policy), at(then)],
            counted: BTreeMap::from([("yields".to_owned(), 7)]),
        }
    }

    #[test]
    fn a_run_gives_its_figures_and_what_the_policy_counted() {
        let experiments = [experiment()];
        let boots = plan(&experiments, true);
        let ran = ran(Some("mlfq"), Some("mlfq"), None);
        let sample = sample(&boots[0], &ran, Some(&ran.policy[0]), &Value::Null);
        assert_eq!(sample.numbers["response_mean"], 40.5);
        assert_eq!(sample.numbers["policy.yields"], 7.0);
        assert_eq!(sample.numbers["run.time_s"], 2.5);
        assert_eq!((sample.ejection, sample.failure), (None, None));
    }

    #[test]
    fn a_run_without_its_policy_or_with_one_that_nobody_asked_for_is_void() {
        let experiments = [experiment()];
        let boots = plan(&experiments, true);
        let first = (Some("mlfq".to_owned()), Some(1));
        let gone = sample(
            &boots[0],
            &ran(Some("mlfq"), None, None),
            Some(&first),
            &Value::Null,
        );
        assert!(gone.ejection.is_some() && gone.numbers.is_empty());
        let stranger = ran(Some("x"), Some("x"), None);
        let none = sample(
            &boots[2],
            &stranger,
            Some(&stranger.policy[0]),
            &Value::Null,
        );
        assert!(none.failure.is_some() && none.ejection.is_none());
        let bad = ran(Some("mlfq"), Some("mlfq"), Some("exit status: 1"));
        let bad = sample(&boots[0], &bad, Some(&first), &Value::Null);
        assert_eq!(bad.failure.as_deref(), Some("exit status: 1; last"));
        let mut mute = ran(Some("mlfq"), Some("mlfq"), Some("it was still running"));
        mute.stderr = "\n".to_owned();
        let mute = sample(&boots[0], &mute, Some(&first), &Value::Null);
        assert_eq!(mute.failure.as_deref(), Some("it was still running"));
    }

    #[test]
    fn what_a_guest_did_not_run_is_lacking_with_the_reason() {
        let experiments = [experiment()];
        let boots = plan(&experiments, true);
        let mut results = ExperimentResults::default();
        let document = json!({ "report": { "failure": "no kernel" }, "ran": [] });
        read(&boots[0], &document, &mut results);
        let samples: Vec<&RunSample> = results.cells.values().flatten().collect();
        assert_eq!(samples.len(), 2);
        assert!(
            samples
                .iter()
                .all(|it| it.failure.as_deref() == Some("no kernel"))
        );
    }

    #[test]
    fn guests_run_side_by_side_if_the_memory_holds_them() {
        let experiments = [experiment()];
        let boots = plan(&experiments, true);
        let jobs = |number| NonZeroUsize::new(number);
        let cpus = COMPUTER.jobs(None);
        // Each has 1024 MiB, and QEMU 256 more.
        assert_eq!(at_once(None, &boots, Some(2 * 1280 - 1)), jobs(1).unwrap());
        assert_eq!(at_once(None, &boots, Some(0)), jobs(1).unwrap());
        assert_eq!(at_once(None, &boots, Some(u64::MAX)), cpus);
        assert_eq!(at_once(None, &boots, None), cpus);
        // Who asks for a number knows why.
        assert_eq!(at_once(jobs(7), &boots, Some(0)), jobs(7).unwrap());
        assert_eq!(at_once(None, &[], Some(u64::MAX)), cpus);
    }

    #[test]
    fn a_star_stands_for_the_rest_of_a_name() {
        let folder = std::env::temp_dir().join(format!("runslice-below-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["libphp8.2.so", "libphp9.so", "other.so"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let of = |pattern: &str| below(&folder, &[pattern.to_owned()]);
        assert_eq!(of("libphp*").unwrap().len(), 2);
        assert_eq!(of("other.so").unwrap().len(), 1);
        assert!(of("none.so").is_err() && of("none*").is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
