//! `runslice bundle POLICY -o FILE` and `runslice bundle --scheduler COMMAND -o FILE`.

use std::io::Write as _;
use std::path::PathBuf;

use ask::pack::Pack;
use clap::Args;
use model::Nanos;

use crate::bundle::Bundle;
use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::machine_options::MachineOptions;
use crate::policy::FoundPolicy;
use crate::prepare::Prepare;
use crate::scheduler::Schedulers;
use crate::{output, policy, script, workload_arg};
use ask::shrink::Case;

/// Arguments of `runslice bundle`.
#[derive(Debug, Args)]
pub struct BundleOf {
    /// Policy to save: a built-in name, a BPF object, the binary of a scheduler, or another bundle,
    /// with knobs after a colon.
    #[arg(required_unless_present = "commands", conflicts_with = "commands")]
    policy: Option<String>,

    #[command(flatten)]
    schedulers: Schedulers,

    /// Save what the program of --scheduler does until it has attached its policy, and nothing of
    /// what it does afterwards. The bundle then runs under every workload and seed.
    ///
    /// For schedulers whose user space only prepares the policy. Without it the whole run is
    /// recorded, and the bundle repeats that run.
    #[arg(long, requires = "commands")]
    setup_only: bool,

    /// Workload of the run to save, which `sim` and `explain` then repeat. Required with
    /// --scheduler, but for --setup-only. Default: the policy alone.
    #[arg(short, long)]
    workload: Option<String>,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "workload",
        value_parser = workload_arg::parse_scale)]
    scale: Vec<(String, i64)>,

    /// Seed of the run. Default: the seed of the workload.
    #[arg(long, value_name = "NUMBER", requires = "workload")]
    seed: Option<u64>,

    /// Longest simulated time of the run, such as 10s. Default: until the workload ends.
    #[arg(long, value_name = "TIME", requires = "workload",
        value_parser = workload_arg::parse_duration)]
    duration: Option<Nanos>,

    /// Options that prepare the policy.
    #[command(flatten)]
    prepare: Prepare,

    /// Machine for which the variables are set, or on which the program is recorded.
    #[command(flatten)]
    machine: MachineOptions,

    /// Also write a script that plays the run of a capsule of `hunt` or `explain --shrink` on a
    /// kernel, in a virtual machine of virtme-ng.
    #[arg(long, value_name = "FILE", conflicts_with = "commands")]
    script: Option<PathBuf>,

    /// File to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Checks that the policy can be made ready, or records its program, and writes it with all that
/// was asked.
///
/// # Errors
/// When the object is bad, something cannot be set, the program attaches nothing, or the file
/// cannot be written.
pub fn run(request: &BundleOf) -> anyhow::Result<Status> {
    let [printed, metrics] = request.schedulers.files();
    let policy = request
        .policy
        .as_deref()
        .and_then(|it| policy::file_of(&COMPUTER, it));
    let workload = request.workload.as_deref().and_then(workload_arg::file_of);
    output::spare(
        &[
            ("the policy", policy),
            ("--workload", workload),
            ("--profile", request.machine.profile_file()),
            ("--hardware", request.machine.hardware_file()),
        ],
        &[
            ("--output", Some(&request.output)),
            ("--script", request.script.as_deref()),
            printed,
            metrics,
        ],
    )?;
    let scheduler = match (request.schedulers.one()?, &request.policy) {
        (Some(program), _) => {
            request.prepare.refuse_for_programs()?;
            FoundPolicy::of_policy(program)
        }
        (None, policy) => request.object(policy.as_deref().unwrap_or_default())?,
    };
    let script = request.script_of(&scheduler)?;
    let packed = request.question(scheduler).ask(&COMPUTER);
    let packed = packed.map_err(ask::Error::into_cause)?;
    let mut to = output::create(&request.output)?;
    let written = to
        .write_all(&packed.bundle.write())
        .and_then(|()| to.flush());
    written.map_err(model::CannotWrite::at(request.output.display()))?;
    if let (Some(path), Some(script)) = (&request.script, script) {
        output::write_whole(path, script.as_bytes())?;
    }
    Ok(if packed.is_ejected {
        Status::Ejected
    } else {
        Status::Done
    })
}

impl BundleOf {
    /// The script, if one was asked for.
    fn script_of(&self, found: &FoundPolicy) -> anyhow::Result<Option<String>> {
        if self.script.is_none() {
            return Ok(None);
        }
        let case = Case::of_bundle(Bundle {
            policy: found.policy.clone(),
            machine: found.machine.clone().unwrap_or_default(),
            bound: found.bound.clone(),
        });
        let no_run = "--script plays a run: give the capsule of `hunt` or `explain --shrink`";
        let case = case.map_err(|_| UsageError::new(no_run))?;
        let spec = case.spec(&COMPUTER)?;
        script::script(&case, &spec).map(Some)
    }

    /// A policy's object, with what is to be set.
    fn object(&self, name: &str) -> anyhow::Result<FoundPolicy> {
        let mut found = policy::open(&COMPUTER, name)?;
        self.prepare.apply(&mut found.policy)?;
        Ok(found)
    }

    fn question(&self, scheduler: FoundPolicy) -> Pack {
        Pack {
            scheduler,
            setup_only: self.setup_only,
            workload: self.workload.clone(),
            scale: self.scale.clone(),
            machine: self.machine.asked(),
            seed: self.seed,
            duration: self.duration,
        }
    }
}
