//! Makes the plays that a folder lacks.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use ask::choose::errors::LoadClass;
use ask::fidelity::asked::{AskedPlays, Play, PlaysRequest, VERSION, plain};
use ask::fidelity::kept::{self, Kept};
use ask::fidelity::{Lacking, span_of};
use folder::OwnFolder;
use model::{MachineSpec, Nanos};
use workload::{RunSpec, generate};

use super::{Fidelity, Machine};
use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::fidelity::{Command, Errand, KernelPlace, keep};
use crate::runner::Runner;
use crate::say::say;
use crate::workload_arg::{SHIPPED, Written};
use crate::{interrupt, on_kernel, policy};

/// Policies that are compared unless others are named: four that differ much.
const POLICIES: [&str; 4] = ["fifo", "mlfq", "o1", "staircase"];
/// Workloads that are generated unless that is said.
const GENERATED: u64 = 4;
/// Workloads that are generated at most, to find some of a class that is asked for.
const NUMBERS: u64 = 10_000;
/// Plays of one boot. An interrupted command loses those of one.
const PLAYS: usize = 16;
/// What a play may take besides its length: two policies need 14 s to attach.
const OVERHEAD_S: u64 = 60;

/// The request, with every play in its folder that could be made; and why others are not there.
///
/// # Errors
/// When something that was asked for does not exist, or this computer cannot play.
pub fn plays(request: &Fidelity) -> anyhow::Result<(PlaysRequest, Lacking)> {
    let place = match request.machine {
        Machine::Vm => KernelPlace::Guest,
        Machine::Host => KernelPlace::Host,
    };
    let words = if request.policy.is_empty() {
        POLICIES.map(str::to_owned).to_vec()
    } else {
        policy::list(&COMPUTER, &request.policy)
    };
    for word in &words {
        policy::find(&COMPUTER, word)?;
    }
    let cpus = match place {
        KernelPlace::Guest => request.cpus,
        KernelPlace::Host => on_kernel::cpus(),
    };
    let loads = loads(request, &words[0], cpus)?;
    let asked = AskedPlays {
        runslice_fidelity: VERSION,
        machine: match request.machine {
            Machine::Vm => "vm".to_owned(),
            Machine::Host => "host".to_owned(),
        },
        kernel: on_kernel::kernel_of_plays(place, &request.kernel)?,
        cpus,
        duration_ns: request.duration.get(),
        seed: request.seed,
        times: request.times,
        events: request.events,
        policies: words,
        workloads: loads.iter().map(|(name, _)| name.clone()).collect(),
    };
    let texts = loads.into_iter().map(|(_, load)| load.text).collect();
    let asked = keep::request(asked, texts, &request.folder)?;
    interrupt::keeps("plays", &request.folder);
    let plays = asked.plays(&COMPUTER);
    // What cannot be played is said before anything is.
    for play in plays.iter().filter(|play| play.seed == asked.asked.seed) {
        let refusals = on_kernel::refusals(&asked.workload(&COMPUTER, play)?, cpus);
        if !refusals.is_empty() {
            let list = refusals.join("\n");
            return Err(UsageError::new(format!("this workload cannot be played:\n{list}")).into());
        }
    }
    let mut left = Vec::new();
    for play in plays {
        if Kept::read(&COMPUTER, &asked, &play)?.is_none() {
            left.push(play);
        }
    }
    let mut lacking = Lacking::new();
    for (at, plays) in left.chunks(PLAYS).enumerate() {
        let (first, last) = (at * PLAYS + 1, at * PLAYS + plays.len());
        say(
            "fidelity",
            &format!("plays {first} to {last} of {}", left.len()),
        );
        lacking.extend(play(&asked, plays, place)?);
    }
    Ok((asked, lacking))
}

/// The workloads that are named, and those that are generated: of a class under `policy`, if one is
/// asked for.
fn loads(request: &Fidelity, policy: &str, cpus: u16) -> anyhow::Result<Vec<(String, Written)>> {
    let mut loads = Vec::new();
    for name in &request.workload {
        let written = Written::find(&COMPUTER, name)?;
        let is_shipped = SHIPPED.iter().any(|shipped| shipped.name == name);
        if !is_shipped && Path::new(name).extension().is_none_or(|it| it != "toml") {
            let message = format!("{name} is no workload file: `runslice convert` makes one of it");
            return Err(UsageError::new(message).into());
        }
        let stem = Path::new(name).file_stem().unwrap_or_default();
        let stem = plain(&stem.to_string_lossy());
        loads.push((stem, written));
    }
    let generated = if request.workload.is_empty() {
        GENERATED
    } else {
        0
    };
    let wanted = request.generate.unwrap_or(generated);
    let mut left = wanted;
    for number in 1..=NUMBERS {
        if left == 0 {
            break;
        }
        let name = format!("generated-{number}");
        let text = generate::playable(request.seed, number, cpus);
        let file = format!("{name}.toml");
        let load = Written { file, text };
        if let Some(asked) = request.class
            && class(request, &load, (policy, cpus))? != asked
        {
            continue;
        }
        loads.push((name, load));
        left -= 1;
    }
    if loads.is_empty() {
        return Err(
            UsageError::new("there is no workload: name or generate one".to_owned()).into(),
        );
    }
    if left > 0 {
        let found = wanted - left;
        let text = format!("{found} of {wanted} workloads: no more of {NUMBERS} are of the class");
        say("fidelity", &text);
    }
    Ok(loads)
}

/// The class of a load that is generated, as a simulation without costs has it.
fn class(
    request: &Fidelity,
    load: &Written,
    (policy, cpus): (&str, u16),
) -> anyhow::Result<LoadClass> {
    let spec = RunSpec {
        policy: policy::find(&COMPUTER, policy)?,
        machine: MachineSpec {
            cpus,
            ..MachineSpec::default()
        },
        workload: Arc::new(load.parse_beside(&COMPUTER, &[], Path::new(""))?),
        seed: request.seed,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: Some(request.duration),
    };
    let (outcome, _) = Runner::new(&spec, &COMPUTER).measure()?;
    Ok(LoadClass::of(&outcome.report))
}

/// Plays on the kernel, and keeps what comes. Says what did not.
fn play(asked: &PlaysRequest, plays: &[Play], place: KernelPlace) -> anyhow::Result<Lacking> {
    let folder = OwnFolder::new()?;
    let mut commands = Vec::new();
    for (at, play) in plays.iter().enumerate() {
        commands.push(command(asked, play, at, folder.path())?);
    }
    let errand = Errand {
        place,
        kernel: asked.asked.kernel.clone(),
        cpus: asked.asked.cpus,
        folder: folder.path().to_owned(),
        commands,
    };
    let mut lacking = Lacking::new();
    for brought in on_kernel::perform(&errand)? {
        let its = plays.iter().find(|play| play.id == brought.id);
        let Some(play) = its else { continue };
        if let Err(error) = keep::play(&brought, asked, play, folder.path()) {
            lacking.insert(play.id.clone(), crate::exit::in_full(&error));
        }
    }
    Ok(lacking)
}

/// The command of a play, whose files are put into `folder`.
fn command(asked: &PlaysRequest, play: &Play, at: usize, folder: &Path) -> anyhow::Result<Command> {
    let cannot = || format!("cannot write into {}", folder.display());
    let load = format!("load-{}.toml", play.workload);
    fs::write(folder.join(&load), &asked.texts[play.workload]).with_context(cannot)?;
    let words = &asked.asked.policies[play.policy];
    // A file of this computer is not where the command starts; its bytes and knobs are.
    let policy = match policy::file_of(&COMPUTER, words) {
        None => words.clone(),
        Some(_) => {
            let found = policy::find(&COMPUTER, words)?;
            let object = format!("./policy-{at}.bpf.o");
            fs::write(folder.join(&object), &found.object).with_context(cannot)?;
            let knobs = found
                .set
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let knobs: Vec<String> = knobs.collect();
            if knobs.is_empty() {
                object
            } else {
                format!("{object}:{}", knobs.join(","))
            }
        }
    };
    let (seed, duration) = (play.seed.to_string(), span_of(asked));
    let mut words = vec!["runslice", "play", &load, "--policy", &policy];
    words.extend(["--seed", &seed, "--for", &duration, "--format", "json"]);
    let events = kept::events_name(play);
    if asked.asked.events {
        words.extend(["--events", &events]);
    }
    Ok(Command {
        id: play.id.clone(),
        words: words.into_iter().map(str::to_owned).collect(),
        timeout_s: OVERHEAD_S + asked.asked.duration_ns.div_ceil(1_000_000_000),
    })
}
