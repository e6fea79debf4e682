//! Whether the fault of a simulated run shows on a real kernel: a guest plays the run.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use anyhow::Context as _;
use ask::shrink::Case;
use bpf::Object;
use clap::Args;
use explain::why::Finding;
use folder::OwnFolder;
use model::{ExitKind, Kernel, Nanos, PolicySpec};
use stats::Metrics;
use workload::RunSpec;

use crate::computer::COMPUTER;
use crate::fidelity::{Command, Errand, KernelPlace};
use crate::say::say;
use crate::{kernel, on_kernel, output};

/// The policy's file beside a play, and the workload's.
pub const OBJECT: &str = "policy.bpf.o";
pub const LOAD: &str = "load.toml";
/// Seconds that a play may take besides its length: a policy needs some to attach.
const OVERHEAD_S: u64 = 60;
/// A guest's own work makes a task wait for less than this, whatever its policy does.
const LEAST: Nanos = Nanos::from_millis(200);

/// `--confirm`.
#[derive(Debug, Args)]
pub struct Confirm {
    /// Play the run so many times on its kernel, in a virtual machine, and say in how many of them
    /// the fault showed. Default without a number: 5.
    ///
    /// What it takes is what `runslice vm` takes. The first play takes a minute or two.
    #[arg(long, value_name = "TRIES", num_args = 0..=1, require_equals = true,
        default_missing_value = "5", value_parser = clap::value_parser!(u32).range(1..=100))]
    confirm: Option<u32>,
}

impl Confirm {
    /// Whether it was asked for.
    pub const fn is_asked(&self) -> bool {
        self.confirm.is_some()
    }

    /// What plays of the run of `case` say about `finding`, if that was asked for.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn of(&self, case: &Case, finding: &Finding) -> anyhow::Result<Option<String>> {
        let Some(tries) = self.confirm else {
            return Ok(None);
        };
        say(
            "confirm",
            &format!("plays the run {tries} times in a guest"),
        );
        confirm(case, finding, tries).map(Some)
    }
}

/// Plays the run of `case` so many times on its kernel and gives in words how often `finding`
/// showed, or why it cannot be played.
///
/// # Errors
/// When a file cannot be written.
fn confirm(case: &Case, finding: &Finding, tries: u32) -> anyhow::Result<String> {
    let spec = case.spec(&COMPUTER)?;
    let sign = match sign(&spec, finding) {
        Ok(sign) => sign,
        Err(why) => return Ok(format!("cannot be played: {why}")),
    };
    let folder = OwnFolder::new()?;
    let errand = errand(case, &spec, (folder.path(), tries))?;
    let brought = match on_kernel::perform(&errand) {
        Ok(brought) => brought,
        Err(error) => return Ok(format!("cannot be played: {error:#}")),
    };
    let (mut played, mut seen, mut why) = (0, 0, None);
    for (number, brought) in brought.iter().enumerate() {
        match shows(folder.path(), number, &sign) {
            Ok(is_seen) => {
                played += 1;
                seen += u32::from(is_seen);
            }
            // What the command said is nearer to the cause than the file that it did not write.
            Err(error) => why = Some(brought.printed.clone().err().unwrap_or(error.to_string())),
        }
    }
    Ok(match (seen, played, why) {
        (_, 0, why) => format!("cannot be played: {}", why.unwrap_or_default()),
        (0, played, _) => format!("not seen in {played} on Linux {}", release(&spec)),
        (seen, played, _) => format!("seen on Linux {} ({seen} of {played})", release(&spec)),
    })
}

/// By what a play is known to show the fault.
enum Sign {
    /// The kernel ends the policy with an error.
    Ejected,
    /// A task of this group waits for so long, or the watchdog ends the policy.
    Waits(String, Nanos),
}

/// How the fault would show in a play, or why the run cannot be played.
fn sign(spec: &RunSpec, finding: &Finding) -> Result<Sign, String> {
    if let Some(why) = cannot_play(spec) {
        return Err(why);
    }
    if finding.message.is_some() {
        return Ok(Sign::Ejected);
    }
    let victim = finding.victim.as_ref().ok_or("nobody waits in it")?;
    let least = Nanos::new(victim.waited.get() / 2);
    if least < LEAST {
        let waited = victim.waited;
        return Err(format!("a wait of {waited} may be the guest's own work"));
    }
    Ok(Sign::Waits(group_of(&victim.name), least))
}

/// Why no real kernel can play the run, if that is so.
pub fn cannot_play(spec: &RunSpec) -> Option<String> {
    let policy = &spec.policy;
    let why = if policy.program.is_some() {
        "the scheduler's own program does not run in the guest"
    } else if !policy.setup.is_empty() {
        "its object needs programs that run before it is attached"
    } else if spec.workload.begin.is_some() {
        "the run begins in the middle of a recorded load"
    } else {
        let refusals = on_kernel::refusals(&spec.workload, spec.machine.cpus);
        return refusals.into_iter().next();
    };
    Some(why.to_owned())
}

/// The group of a task: what is in front of its number, if it has one.
fn group_of(task: &str) -> String {
    let (group, number) = task.rsplit_once('.').unwrap_or((task, ""));
    let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
    if is_number { group } else { task }.to_owned()
}

/// The plays, whose files are put into the folder. Their seeds are that of the run and the next.
fn errand(case: &Case, spec: &RunSpec, (folder, tries): (&Path, u32)) -> anyhow::Result<Errand> {
    output::write_whole(&folder.join(OBJECT), &spec.policy.object)?;
    output::write_whole(&folder.join(LOAD), case.workload.text.as_bytes())?;
    let command = |number: u32| {
        let mut words = play_words(case, spec, spec.seed.wrapping_add(number.into()));
        words.extend(["--format", "json", "--output"].map(str::to_owned));
        words.push(result(number as usize));
        words.extend(["--events".to_owned(), events(number as usize)]);
        Command {
            id: number.to_string(),
            words,
            timeout_s: OVERHEAD_S + length_of(spec).get().div_ceil(1_000_000_000),
        }
    };
    Ok(Errand {
        place: KernelPlace::Guest,
        kernel: spec.machine.kernel.name().to_owned(),
        cpus: spec.machine.cpus,
        folder: folder.to_owned(),
        commands: (0..tries).map(command).collect(),
    })
}

/// How long a run is played that has no end of its own.
const LENGTH: Nanos = Nanos::from_secs(10);

fn length_of(spec: &RunSpec) -> Nanos {
    let length = spec.duration.or(spec.workload.stop.after);
    length.unwrap_or(LENGTH)
}

/// The command that plays the run of `case`, whose object and workload are in the working folder,
/// as [`OBJECT`] and [`LOAD`].
pub fn play_words(case: &Case, spec: &RunSpec, seed: u64) -> Vec<String> {
    let words = ["runslice", "play", LOAD, "--policy"];
    let mut words: Vec<String> = words.map(str::to_owned).to_vec();
    words.push(policy_words(&spec.policy, spec.machine.kernel));
    words.extend(["--seed".to_owned(), seed.to_string()]);
    words.extend(["--for".to_owned(), format!("{}ns", length_of(spec).get())]);
    for (name, value) in &case.scale {
        words.extend(["--scale".to_owned(), format!("{name}={value}")]);
    }
    words
}

fn result(number: usize) -> String {
    format!("play-{number}.json")
}

fn events(number: usize) -> String {
    format!("play-{number}.jsonl")
}

/// The object with its settings. What has another value on a kernel has that of the simulation.
fn policy_words(policy: &PolicySpec, kernel: Kernel) -> String {
    let mut set = policy.set.clone();
    let object = Object::parse(&policy.object).ok();
    let image = object.and_then(|object| kernel::link(&object, kernel).ok());
    for knob in image.iter().flat_map(|image| &image.knobs) {
        let is_set = set.iter().any(|(name, _)| *name == knob.name);
        if knob.on_kernel.is_some() && !is_set {
            set.push((knob.name.clone(), knob.default.to_string()));
        }
    }
    let table = policy.table.as_ref();
    let table = table.map_or_else(String::new, |table| format!("@{table}"));
    let set = set.iter().map(|(name, value)| format!("{name}={value}"));
    let set: Vec<_> = set.collect();
    let sign = if set.is_empty() { "" } else { ":" };
    format!("./{OBJECT}{table}{sign}{}", set.join(","))
}

/// Whether the play of this number shows the fault.
fn shows(folder: &Path, number: usize, sign: &Sign) -> anyhow::Result<bool> {
    let path = folder.join(result(number));
    let text = fs::read_to_string(&path).context("it gave no result")?;
    let document: serde_json::Value = serde_json::from_str(&text).context("no JSON")?;
    let kind = document["runs"][0]["exit"]["kind"].as_u64();
    let kind = kind.and_then(|kind| ExitKind::of(u32::try_from(kind).ok()?));
    let (group, least) = match sign {
        Sign::Ejected => return Ok(kind.is_some_and(ExitKind::is_error)),
        Sign::Waits(..) if kind == Some(ExitKind::ErrorStall) => return Ok(true),
        Sign::Waits(group, least) => (group, least),
    };
    // The kernel's histograms have no wait that is open at the end.
    let mut metrics = Metrics::new();
    let file = File::open(folder.join(events(number))).context("it wrote no events")?;
    traces::replay(BufReader::new(file), &mut metrics)?;
    let tasks = metrics.report().tasks;
    Ok(tasks
        .iter()
        .any(|task| group_of(&task.name) == *group && task.wait_max >= *least))
}

/// The kernel's version as its builder numbers it.
fn release(spec: &RunSpec) -> String {
    let code = spec.machine.kernel.version_code();
    format!("{}.{}.{}", code >> 16, code >> 8 & 0xff, code & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_a_group_has_a_number() {
        assert_eq!(group_of("shell.3"), "shell");
        assert_eq!(group_of("shell"), "shell");
        assert_eq!(group_of("a.out"), "a.out");
    }
}
