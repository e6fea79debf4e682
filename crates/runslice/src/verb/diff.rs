//! `runslice diff OLD NEW -w WORKLOAD`.

use std::io::Write as _;

use ask::diff;
use clap::Args;
use model::Nanos;
use show::difference as shown;

use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::machine_options::MachineOptions;
use crate::prepare::Prepare;
use crate::runs::{Asked, StartJitter};
use crate::{output, policy, workload_arg};

/// Arguments of `runslice diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The policy as it was: a built-in name or a BPF object, with knobs after a colon, or a
    /// bundle.
    old: String,

    /// The policy as it is.
    new: String,

    /// Workload to run: a built-in name or a TOML file.
    #[arg(short, long)]
    workload: Option<String>,

    #[command(flatten)]
    machine: MachineOptions,

    /// Options that prepare both policies.
    #[command(flatten)]
    prepare: Prepare,

    /// Seed of every random choice. Default: the seed of the workload.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Longest simulated time, such as 10s or 1.5ms. Default: until the workload ends.
    #[arg(long, value_name = "TIME", value_parser = workload_arg::parse_duration)]
    duration: Option<Nanos>,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = workload_arg::parse_scale)]
    scale: Vec<(String, i64)>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs both and writes where they part.
///
/// # Errors
/// When a policy or the workload is bad.
pub fn run(request: &Diff) -> anyhow::Result<Status> {
    let found = [&request.old, &request.new].map(|name| {
        let mut found = policy::open(name)?;
        request.prepare.apply(&mut found.policy);
        anyhow::Ok(found)
    });
    let [old, new] = found;
    let asked = Asked {
        workload: request.workload.as_deref(),
        scale: &request.scale,
        machine: &request.machine.asked(),
        seed: request.seed,
        duration: request.duration,
        start_jitter: StartJitter::OfLoad,
    };
    let specs = asked.specs(&COMPUTER, vec![old?, new?], None)?;
    let [old, mut new] = specs.try_into().expect("two policies are two runs");
    // A bundle of one version decides about the machine of both: they would differ otherwise.
    new.machine = old.machine.clone();
    let question = diff::Diff { runs: [old, new] };
    let difference = question.ask(&COMPUTER)?;
    let mut to = output::open(None)?;
    if request.json {
        writeln!(to, "{:#}", shown::json(&difference))?;
    } else {
        shown::text(&difference, &mut to)?;
    }
    to.flush()?;
    Ok(Status::Done)
}
