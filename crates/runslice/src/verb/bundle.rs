//! `runslice bundle POLICY -o FILE`.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use crate::bundle::Bundle;
use crate::exit::{Status, UsageError};
use crate::machine_options::MachineOptions;
use crate::prepare::Prepare;
use crate::{output, policy, simulate};

/// Arguments of `runslice bundle`.
#[derive(Debug, Args)]
pub struct BundleOf {
    /// Policy to save: a built-in name, a BPF object, the binary of a scheduler, or another bundle,
    /// with knobs after a colon.
    policy: String,

    /// Options that prepare the policy.
    #[command(flatten)]
    prepare: Prepare,

    /// Machine for which the variables are set.
    #[command(flatten)]
    machine: MachineOptions,

    /// File to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Checks that the policy can be made ready, and writes it with all that was asked.
///
/// # Errors
/// When the object is bad, something cannot be set, or the file cannot be written.
pub fn run(request: &BundleOf) -> anyhow::Result<Status> {
    let mut found = policy::open(&request.policy)?;
    request.prepare.apply(&mut found.policy);
    let machine = request.machine.change(&found.machine.unwrap_or_default())?;
    sim::check_machine(&machine).map_err(|error| UsageError(error.to_string()))?;
    sim::check_policy(&found.policy, &machine).map_err(simulate::explain)?;
    let bundle = Bundle {
        policy: found.policy,
        machine,
    };
    let mut to = output::create(&request.output)?;
    let written = to.write_all(&bundle.write()).and_then(|()| to.flush());
    written.with_context(|| format!("cannot write {}", request.output.display()))?;
    Ok(Status::Done)
}
