//! `runslice diff OLD NEW -w WORKLOAD`.

use std::io::Write as _;

use ask::diff;
use clap::Args;
use model::Nanos;
use show::difference as shown;

use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::machine_options::MachineOptions;
use crate::policy::FoundPolicy;
use crate::prepare::Prepare;
use crate::runs::{Asked, StartJitter};
use crate::scheduler::Schedulers;
use crate::{output, policy, workload_arg};

/// Arguments of `runslice diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The policy as it was: a built-in name or a BPF object, with knobs after a colon, or a
    /// bundle.
    #[arg(required_unless_present = "commands")]
    old: Option<String>,

    /// The policy as it is.
    #[arg(required_unless_present = "commands")]
    new: Option<String>,

    #[command(flatten)]
    schedulers: Schedulers,

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
    request.check()?;
    let found = request.found()?;
    let asked = Asked {
        workload: request.workload.as_deref(),
        scale: &request.scale,
        machine: &request.machine.asked(),
        seed: request.seed,
        duration: request.duration,
        start_jitter: StartJitter::OfLoad,
    };
    let specs = asked.specs(&COMPUTER, found, None)?;
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

impl Diff {
    /// The old version and the new one: policies first, then programs.
    fn found(&self) -> anyhow::Result<Vec<FoundPolicy>> {
        let mut all = Vec::new();
        for name in [&self.old, &self.new].into_iter().flatten() {
            let mut found = policy::open(&COMPUTER, name)?;
            self.prepare.apply(&mut found.policy)?;
            all.push(found);
        }
        let programs = self.schedulers.policies()?;
        if !programs.is_empty() {
            self.prepare.refuse_for_programs()?;
        }
        all.extend(programs.into_iter().map(FoundPolicy::of_policy));
        if all.len() == 2 {
            return Ok(all);
        }
        let message = format!(
            "give two versions, each as a policy or with --scheduler: there are {}",
            all.len()
        );
        Err(UsageError::new(message).into())
    }

    /// Refuses files of programs that would take the place of what is read.
    fn check(&self) -> anyhow::Result<()> {
        let policies = [&self.old, &self.new].map(|name| {
            name.as_deref()
                .and_then(|it| policy::file_of(&COMPUTER, it))
        });
        let workload = self.workload.as_deref().and_then(workload_arg::file_of);
        let [old, new] = policies;
        let read = [
            ("the old policy", old),
            ("the new policy", new),
            ("--workload", workload),
            ("--profile", self.machine.profile_file()),
            ("--hardware", self.machine.hardware_file()),
        ];
        output::spare(&read, &self.schedulers.files())
    }
}
