//! Runs an experiment's commands on a real kernel: in virtual machines that count instructions, or
//! on this computer.
//!
//! All runs of an arm with one number of CPUs share one guest, booted once, with the policy
//! attached once. They go through the points in turn, so that what changes with time meets all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use live::process;
use live::vm::{self, End, Outcome, Pace, Request, Speed};
use serde_json::{Value, json};
use stats::claim::Wanted;

use super::cells::{CellId, Results, Sample};
use super::experiment::{Experiment, Guest, Program, QUICK_SEEDS, Work};
use super::slices;
use crate::store::{Key, Store};
use crate::verb::load::series::{Plan, Ran, Run, Scheduler};
use crate::verb::vm::{OWN_NAME, explain, own_name, say};

/// The plan's file in the shared folder.
const PLAN: &str = "plan.json";
/// The results' file there.
const RESULTS: &str = "results.jsonl";
/// What a guest may take besides its runs, for the verifier above all, in its seconds.
const OVERHEAD_S: u64 = 200;

/// On which kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In virtual machines.
    Guest,
    /// This computer's.
    Host,
}

/// All runs of an arm with one number of CPUs.
#[derive(Debug)]
pub struct Boot<'a> {
    /// Index of its experiment among those that are run.
    experiment: usize,
    guest: &'a Guest,
    /// The policy with its knobs, or `default`.
    policy: &'a str,
    name: String,
    cpus: u16,
    /// In the order in which they run.
    runs: Vec<(CellId, Vec<String>)>,
}

/// Which boots some experiments take.
pub fn plan<'a>(experiments: &'a [Experiment], quick: bool) -> Vec<Boot<'a>> {
    let mut boots = Vec::new();
    for (experiment_index, experiment) in experiments.iter().enumerate() {
        let Some(guest) = &experiment.guest else {
            continue;
        };
        let mut by_arm: BTreeMap<(usize, u16), Vec<(usize, CellId, Vec<String>)>> = BTreeMap::new();
        for (set_index, set) in experiment.sets.iter().enumerate() {
            if quick && !set.quick {
                continue;
            }
            let most = if quick {
                QUICK_SEEDS as usize
            } else {
                usize::MAX
            };
            for (point_index, point) in set.points.iter().enumerate() {
                let Work::Command(command) = &point.work else {
                    continue;
                };
                for &arm in &set.arms {
                    let runs = by_arm.entry((arm, point.machine.cpus)).or_default();
                    for (number, seed) in set.seeds.iter().take(most).enumerate() {
                        let cell = CellId {
                            set: set_index,
                            arm,
                            point: point_index,
                        };
                        let seed = seed.to_string();
                        let words = command.iter().map(|word| word.replace("{seed}", &seed));
                        runs.push((number, cell, words.collect()));
                    }
                }
            }
        }
        for ((arm, cpus), mut runs) in by_arm {
            // The first runs of all points, then the second ones.
            runs.sort_by_key(|(number, cell, _)| (*number, *cell));
            let arm = &experiment.arms[arm];
            boots.push(Boot {
                experiment: experiment_index,
                guest,
                policy: &arm.words,
                name: format!("{}, {}, {cpus} CPUs", experiment.name, arm.label),
                cpus,
                runs: runs
                    .into_iter()
                    .map(|(_, cell, words)| (cell, words))
                    .collect(),
            });
        }
    }
    boots
}

impl Boot<'_> {
    /// The runs; `root` is where packages were unpacked.
    fn plan(&self, root: &Path) -> Plan {
        let root = root.to_string_lossy();
        let runs = self.runs.iter().enumerate();
        let runs = runs.map(|(at, (_, command))| Run {
            id: at.to_string(),
            command: command
                .iter()
                .map(|word| word.replace("{root}", &root))
                .collect(),
            timeout_s: self.guest.timeout_s,
        });
        Plan {
            runs: runs.collect(),
        }
    }

    /// What is started: the series, under the policy.
    fn command(&self) -> Vec<String> {
        let series = ["load", "series", PLAN, "-o", RESULTS];
        let under: &[&str] = match self.policy {
            "default" => &[],
            policy => &["run", policy, "--", OWN_NAME],
        };
        let words = [OWN_NAME].iter().chain(under).chain(&series);
        words.map(|word| (*word).to_owned()).collect()
    }

    fn key(&self, place: Place, kernel: &str) -> Key {
        let words = format!("{place:?} {kernel} {self:?}");
        Key::of_words(&words)
    }
}

/// Makes the runs that the store lacks, and reads all. `results` has one entry an experiment. What
/// cannot be run leaves its cells with the reason.
///
/// # Errors
/// When this computer cannot run any of it, or results cannot be kept.
pub fn run(
    experiments: &[Experiment],
    boots: &[Boot<'_>],
    store: &Store,
    place: Place,
    results: &mut [Results],
) -> anyhow::Result<()> {
    for (at, boot) in boots.iter().enumerate() {
        let kernel = match place {
            Place::Guest => boot.guest.kernel.clone(),
            Place::Host => crate::kernel::release(),
        };
        let key = boot.key(place, &kernel);
        let document: Value = match store.get(key) {
            Some(line) => serde_json::from_str(&line)?,
            None => {
                let told = format!("{} of {}: {}", at + 1, boots.len(), boot.name);
                say(&format!("{told}, {} runs", boot.runs.len()));
                let document = match place {
                    Place::Guest => in_guest(boot),
                    Place::Host => on_host(boot),
                }?;
                // What could not be run may be possible another time.
                if document["report"]["failure"].is_null() {
                    store.put(key, &document.to_string())?;
                }
                document
            }
        };
        let experiment = &experiments[boot.experiment];
        read(boot, experiment, &document, &mut results[boot.experiment]);
    }
    Ok(())
}

/// The results of a boot as they are kept.
fn document(text: &str, report: Value) -> Value {
    let ran: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    json!({ "report": report, "ran": ran })
}

fn in_guest(boot: &Boot<'_>) -> anyhow::Result<Value> {
    let folder = vm::Folder::create().map_err(explain)?;
    let root = match unpack(boot.guest) {
        Ok(root) => root,
        Err(error) => {
            let failure = format!("{}: {error:#}", boot.guest.packages.join(", "));
            say(&format!("{}: {failure}", boot.name));
            return Ok(json!({ "report": { "failure": failure }, "ran": [] }));
        }
    };
    let files = boot.guest.files.iter().map(|file| root.join(file));
    let files: Vec<PathBuf> = files.collect();
    let cannot = || format!("cannot write {}", folder.path().display());
    let plan = serde_json::to_string(&boot.plan(&root))?;
    fs::write(folder.join(PLAN), plan).with_context(cannot)?;
    let mut named = own_name()?;
    let mut programs = vec![OWN_NAME.to_owned()];
    for program in &boot.guest.with {
        programs.push(program.name().to_owned());
        match find(program) {
            Ok(Some(path)) => named.push((program.name().to_owned(), path)),
            Ok(None) => {}
            Err(error) => {
                let failure = format!("no {}: {error:#}", program.name());
                say(&format!("{}: {failure}", boot.name));
                return Ok(json!({ "report": { "failure": failure }, "ran": [] }));
            }
        }
    }
    let kernel = vm::find_kernel(&boot.guest.kernel, &mut |step| say(step)).map_err(explain)?;
    let speed = Speed::from_mips(boot.guest.mips);
    let speed = speed.with_context(|| format!("no guest has {} MIPS", boot.guest.mips))?;
    let most = boot.runs.len() as u64 * boot.guest.timeout_s;
    let request = Request {
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
    let outcome = vm::run(&request).map_err(explain)?;
    let results = outcome
        .changed
        .iter()
        .find(|file| file.path.as_os_str() == RESULTS);
    let text = results.map_or_else(String::new, |file| {
        String::from_utf8_lossy(&file.contents).into_owned()
    });
    let failure = failure(&outcome, &text);
    if let Some(failure) = &failure {
        say(&format!("{}: {failure}", boot.name));
    }
    let report = json!({
        "kernel": boot.guest.kernel,
        "accelerator": outcome.accelerator,
        "complaints": outcome.kernel_complaints(),
        "failure": failure,
    });
    Ok(document(&text, report))
}

/// Why a guest has brought no results, in words.
fn failure(outcome: &Outcome, text: &str) -> Option<String> {
    let words = String::from_utf8_lossy(&outcome.stderr);
    let last = words.lines().last().unwrap_or_default();
    match &outcome.end {
        End::NoResult { reason } => Some(format!("the guest gave no result: {reason}")),
        End::TimedOut => Some("the guest took too long".to_owned()),
        End::Exited(status) if text.is_empty() => {
            Some(format!("nothing was run: status {status}; {last}"))
        }
        End::Exited(_) => None,
    }
}

/// Where the packages of a guest lie unpacked; `/` where it asks for none.
fn unpack(guest: &Guest) -> anyhow::Result<PathBuf> {
    if guest.packages.is_empty() {
        return Ok(PathBuf::from("/"));
    }
    let names: Vec<&str> = guest.packages.iter().map(String::as_str).collect();
    let packages = vm::Packages::fetch(&names, &mut |step| say(step))?;
    Ok(packages.root().to_owned())
}

/// Where a program is that is not on the PATH; `None` where it is.
fn find(program: &Program) -> anyhow::Result<Option<PathBuf>> {
    if vm::is_installed(program.name()) {
        return Ok(None);
    }
    match program {
        Program::Installed(name) => bail!("the program `{name}` is not installed"),
        Program::Packaged { program, package } => {
            let path = vm::fetch_program(program, package, &mut |step| say(step))?;
            Ok(Some(path))
        }
    }
}

/// Whether this computer can run them at all.
///
/// # Errors
/// What is missing, with the way out.
pub fn check_host() -> anyhow::Result<()> {
    let class = live::SchedExt::of_this_kernel();
    let lacks = if !process::is_root() {
        "it takes root"
    } else if class.state().is_none() {
        "this kernel has no sched_ext"
    } else if class.policy().is_some() {
        "another policy is attached"
    } else {
        return Ok(());
    };
    let way = "`runslice doctor` says more; `--machine vm` needs neither root nor another kernel";
    Err(crate::cli::UnsupportedError(format!("--machine host: {lacks}; {way}")).into())
}

fn on_host(boot: &Boot<'_>) -> anyhow::Result<Value> {
    let here = live::record::cpus();
    if here != boot.cpus {
        let failure = format!("it is for {} CPUs, and this computer has {here}", boot.cpus);
        return Ok(json!({ "report": { "failure": failure }, "ran": [] }));
    }
    let folder = vm::Folder::create().map_err(explain)?;
    let root = unpack(boot.guest)?;
    fs::write(folder.join(PLAN), serde_json::to_string(&boot.plan(&root))?)?;
    let words = boot.command();
    let status = Command::new(std::env::current_exe()?)
        .args(&words[1..])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("cannot start this program again")?;
    let text = fs::read_to_string(folder.join(RESULTS)).unwrap_or_default();
    let failure = text
        .is_empty()
        .then(|| format!("nothing was run: {status}"));
    let report = json!({ "kernel": crate::kernel::release(), "failure": failure });
    Ok(document(&text, report))
}

/// Puts the results of a boot into their cells.
fn read(boot: &Boot<'_>, experiment: &Experiment, document: &Value, results: &mut Results) {
    let ran = document["ran"].as_array().into_iter().flatten();
    let ran = ran.filter_map(|ran| serde_json::from_value::<Ran>(ran.clone()).ok());
    let by_id: BTreeMap<String, Ran> = ran.map(|ran| (ran.id.clone(), ran)).collect();
    let first = by_id.values().map(|ran| ran.policy[0].clone()).min();
    for (at, (cell, _)) in boot.runs.iter().enumerate() {
        let sample = match by_id.get(&at.to_string()) {
            Some(ran) => sample(boot, ran, first.as_ref(), &experiment.sets[cell.set].probes),
            None => {
                let why = document["report"]["failure"].as_str();
                failed(why.unwrap_or("it was not run: the guest ended before"))
            }
        };
        results.cells.entry(*cell).or_default().push(sample);
    }
}

fn failed(why: &str) -> Sample {
    Sample {
        failure: Some(why.to_owned()),
        ..Sample::default()
    }
}

/// What one run gave. A run is void whose policy was not the same all the time.
fn sample(boot: &Boot<'_>, ran: &Ran, first: Option<&Scheduler>, probes: &[Wanted]) -> Sample {
    let has_policy = boot.policy != "default";
    let stayed = ran
        .policy
        .iter()
        .all(|now| Some(now) == first && now.0.is_some() == has_policy);
    if has_policy && !stayed {
        return Sample {
            ejection: Some("the policy was ejected before the run was over".to_owned()),
            ..Sample::default()
        };
    }
    if !stayed {
        return failed("a policy was attached although none was asked for");
    }
    if let Some(why) = &ran.failed {
        let last = ran.stderr.lines().last().unwrap_or_default();
        return failed(&format!("{why}; {last}"));
    }
    let Ok(told) = serde_json::from_str::<Value>(&ran.stdout) else {
        return failed("the command did not print its figures as JSON");
    };
    let mut sample = Sample::default();
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
    for wanted in probes {
        slices::look(wanted, &told["tables"]["slices"], &mut sample);
    }
    sample
}
