//! `runslice bundle POLICY -o FILE`.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use model::{Kernel, MachineSpec};

use crate::bundle::Bundle;
use crate::cli::{Status, UsageError};
use crate::prepare::Prepare;
use crate::{kernel, output, policy};

/// What `runslice bundle` is asked.
#[derive(Debug, Args)]
pub struct BundleOf {
    /// Policy to keep: a built-in name, a BPF object, a scheduler's own binary or another bundle,
    /// with knobs behind a colon.
    policy: String,

    /// How it is made ready.
    #[command(flatten)]
    prepare: Prepare,

    /// CPUs of the machine that the variables are for, 1 to 1024. Default: 4.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,

    /// Hardware threads of a core, 1 or 2. Default: 1.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=2))]
    smt: Option<u16>,

    /// CPUs that share a last-level cache; 0 for all of them. Default: 0.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(0..=1024))]
    llc: Option<u16>,

    /// CPUs of a NUMA node; 0 for all of them. Default: 0.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(0..=1024))]
    node: Option<u16>,

    /// Timer ticks a second, the kernel's HZ: 100, 250, 300 or 1000. Default: 250.
    #[arg(long, value_name = "NUMBER", value_parser = super::sim::parse_hz)]
    hz: Option<u32>,

    /// Kernel to simulate: 6.18 or 7.2. Default: 6.18.
    #[arg(long, value_name = "VERSION", value_parser = kernel::parse)]
    kernel: Option<Kernel>,

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
    let base = found.machine.unwrap_or_default();
    let machine = MachineSpec {
        cpus: request.cpus.unwrap_or(base.cpus),
        smt: request.smt.unwrap_or(base.smt),
        llc: request.llc.unwrap_or(base.llc),
        node: request.node.unwrap_or(base.node),
        hz: request.hz.unwrap_or(base.hz),
        kernel: request.kernel.unwrap_or(base.kernel),
        ..base
    };
    sim::check_machine(&machine).map_err(|error| UsageError(error.to_string()))?;
    sim::check_policy(&found.policy, &machine).map_err(super::sim::explain)?;
    let bundle = Bundle {
        policy: found.policy,
        machine,
    };
    let mut to = output::create(&request.output)?;
    let written = to.write_all(&bundle.write()).and_then(|()| to.flush());
    written.with_context(|| format!("cannot write {}", request.output.display()))?;
    Ok(Status::Done)
}
