//! What a real verifier says of an object: the running kernel's, or that of a guest.

use std::env;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use live::Policy;
use vm::{End, GuestRequest, Pace};

use crate::exit::{Status, UnsupportedError};
use crate::on_kernel::guest::{OWN_NAME, explain, own_name};
use crate::say::say;

/// Kernels that are asked when none is named: those that are tested.
const KERNELS: [&str; 2] = ["6.18", "7.2"];

/// How long a guest may take; a verifier gives up after a million instructions, which takes
/// emulated machines up to two minutes.
const PATIENCE: Duration = Duration::from_secs(240);
/// The guest: a verifier needs one CPU, and memory for its states.
const CPUS: u16 = 2;
const MEMORY_MIB: u32 = 1024;

/// Asks the verifier of the running kernel: loads the object's programs and takes them away again,
/// without attaching anything.
///
/// # Errors
/// When the object is refused; the message has the verifier's last words.
pub fn ask_here(name: &str, object: &Arc<[u8]>, to: &mut dyn Write) -> anyhow::Result<Status> {
    if !live::process::is_root() {
        let way = "asking this kernel's verifier takes root: try sudo, or --vm";
        return Err(UnsupportedError::new(way).into());
    }
    let loaded = Policy::open(name, object, None)?.load()?;
    drop(loaded);
    writeln!(to, "this kernel: the verifier accepts it")?;
    Ok(Status::Done)
}

/// Asks the verifiers of `kernels`, or of all that are tested, each in a virtual machine.
///
/// # Errors
/// When a virtual machine cannot be run.
pub fn ask(object: &str, kernels: &[String], to: &mut dyn Write) -> anyhow::Result<Status> {
    let kernels: Vec<&str> = match kernels {
        [] => KERNELS.to_vec(),
        chosen => chosen.iter().map(String::as_str).collect(),
    };
    let mut status = Status::Done;
    for kernel in kernels {
        let verdict = ask_one(object, kernel, to)?;
        if verdict != Status::Done && status != Status::Failure {
            status = verdict;
        }
    }
    Ok(status)
}

fn ask_one(object: &str, name: &str, to: &mut dyn Write) -> anyhow::Result<Status> {
    let kernel = vm::find_kernel(name, &mut |step| say("vm", step)).map_err(explain)?;
    if let Some(instead) = &kernel.instead {
        say("vm", instead);
    }
    let outcome = vm::run(&GuestRequest {
        kernel,
        cpus: CPUS,
        memory_mib: MEMORY_MIB,
        pace: Pace::Fast,
        timeout: PATIENCE,
        command: [OWN_NAME, "check", "--here", object]
            .map(str::to_owned)
            .to_vec(),
        files: Vec::new(),
        programs: Vec::new(),
        named: own_name()?,
        share: None,
        folder: env::current_dir().context("the working folder is gone")?,
        follow: false,
    })
    .map_err(explain)?;
    match outcome.end {
        End::Exited(0) => {
            writeln!(to, "kernel {name}: the verifier accepts it")?;
            Ok(Status::Done)
        }
        End::Exited(1) => {
            let why = String::from_utf8_lossy(&outcome.stderr).into_owned();
            write!(to, "kernel {name}: refused\n{why}")?;
            Ok(Status::Failure)
        }
        End::Exited(other) => {
            let why = String::from_utf8_lossy(&outcome.stderr).into_owned();
            write!(to, "kernel {name}: no answer (status {other})\n{why}")?;
            Ok(Status::Inconclusive)
        }
        End::TimedOut => {
            writeln!(to, "kernel {name}: no answer within {PATIENCE:?}")?;
            Ok(Status::Inconclusive)
        }
        End::NoResult { reason } => {
            writeln!(to, "kernel {name}: no answer: {reason}")?;
            Ok(Status::Inconclusive)
        }
    }
}
