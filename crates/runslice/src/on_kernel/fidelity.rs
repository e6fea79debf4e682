//! Plays of workloads for `fidelity`, in a guest that counts instructions or on this computer.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use vm::{GuestRequest, Pace, Speed};
use workload::Workload;

use super::guest::{OWN_NAME, explain, failure, own_name};
use super::running::{check_host, release};
use super::series::{Ran, SeriesPlan, SeriesRun};
use crate::fidelity::{Brought, Errand, KernelPlace};
use crate::programs;
use crate::say::say;

/// The plan's file in the shared folder.
const PLAN: &str = "plan.json";
/// The results' file there.
const RESULTS: &str = "results.jsonl";
/// What a guest may take besides its commands, in its seconds.
const OVERHEAD_S: u64 = 100;
/// Memory of a guest in MiB.
const MEMORY_MIB: u32 = 1024;
/// Its speed in million instructions a second, that of `vm --det`.
const MIPS: u32 = 1000;
/// The sample of the guest's own choices, that of `vm --det`.
const SAMPLE: u64 = 1;

/// Why real processes cannot play the workload on so many CPUs; empty if they can.
pub fn refusals(workload: &Workload, cpus: u16) -> Vec<String> {
    load::play::refusals(workload, cpus)
}

/// Says what is missing before anything is played, and which kernel it will be.
///
/// # Errors
/// When this computer lacks what it takes.
pub fn kernel(place: KernelPlace, version: &str) -> anyhow::Result<String> {
    match place {
        KernelPlace::Guest => {
            vm::check_tools().map_err(explain)?;
            Ok(version.to_owned())
        }
        KernelPlace::Host => {
            check_host()?;
            Ok(release())
        }
    }
}

/// CPUs of this computer.
pub fn cpus() -> u16 {
    live::record::cpus()
}

/// Runs the commands. What was not run is brought with the reason.
///
/// # Errors
/// When there can be no guest, or a file cannot be written.
pub fn perform(errand: &Errand) -> anyhow::Result<Vec<Brought>> {
    let runs = errand.commands.iter().map(|command| SeriesRun {
        id: command.id.clone(),
        command: command.words.clone(),
        timeout_s: command.timeout_s,
    });
    let plan = SeriesPlan {
        runs: runs.collect(),
    };
    let path = errand.folder.join(PLAN);
    fs::write(&path, serde_json::to_string(&plan)?)
        .map_err(model::CannotWrite::at(path.display()))?;
    let failure = match errand.place {
        KernelPlace::Guest => in_guest(errand)?,
        KernelPlace::Host => on_host(errand)?,
    };
    let text = fs::read_to_string(errand.folder.join(RESULTS)).unwrap_or_default();
    let ran: Vec<Ran> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let brought = errand.commands.iter().map(|command| Brought {
        id: command.id.clone(),
        printed: match ran.iter().find(|ran| ran.id == command.id) {
            Some(ran) => printed(ran),
            None => {
                let ended = || "it was not run: the machine ended before".to_owned();
                Err(failure.clone().unwrap_or_else(ended))
            }
        },
    });
    Ok(brought.collect())
}

/// What a command printed, or how it failed with the last that it said.
fn printed(ran: &Ran) -> Result<String, String> {
    match &ran.failed {
        None => Ok(ran.stdout.clone()),
        Some(failed) => {
            let last = ran.stderr.lines().last().unwrap_or_default();
            Err(format!("{failed}; {last}"))
        }
    }
}

fn in_guest(errand: &Errand) -> anyhow::Result<Option<String>> {
    let kernel = vm::find_kernel(&errand.kernel, &mut |step| say("fidelity", step));
    let timeouts = errand.commands.iter().map(|command| command.timeout_s);
    let words = [OWN_NAME, "load", "series", PLAN, "-o", RESULTS];
    let request = GuestRequest {
        kernel: kernel.map_err(explain)?,
        cpus: errand.cpus,
        memory_mib: MEMORY_MIB,
        pace: Pace::Counted {
            speed: Speed::from_mips(MIPS).context("a guest has this speed")?,
            sample: Some(SAMPLE),
        },
        timeout: Duration::from_secs(OVERHEAD_S + timeouts.sum::<u64>()),
        command: words.map(str::to_owned).to_vec(),
        programs: vec![OWN_NAME.to_owned()],
        files: Vec::new(),
        named: own_name()?,
        share: Some(errand.folder.clone()),
        folder: "/share".into(),
        follow: false,
    };
    let outcome = vm::run(&request).map_err(explain)?;
    for file in &outcome.changed {
        let path = errand.folder.join(&file.path);
        fs::write(&path, &file.contents).map_err(model::CannotWrite::at(path.display()))?;
    }
    let text = fs::read_to_string(errand.folder.join(RESULTS)).unwrap_or_default();
    Ok(failure(&outcome, &text))
}

fn on_host(errand: &Errand) -> anyhow::Result<Option<String>> {
    let output = Command::new(programs::runslice()?)
        .args(["load", "series", PLAN, "-o", RESULTS])
        .current_dir(&errand.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .context("cannot start this program again")?;
    let words = String::from_utf8_lossy(&output.stderr);
    let last = words.lines().last().unwrap_or_default();
    let has_failed = !output.status.success();
    Ok(has_failed.then(|| format!("nothing was run: {}; {last}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::generate::playable;

    #[test]
    fn real_processes_can_play_every_generated_workload() {
        for cpus in [1, 2, 4] {
            for number in 0..100 {
                let text = playable(3, number, cpus);
                let workload = Workload::parse(&text, "load.toml").unwrap();
                assert_eq!(refusals(&workload, cpus), [""; 0], "{text}");
            }
        }
    }
}
