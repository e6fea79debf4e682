//! `runslice bundle POLICY -o FILE` and `runslice bundle --scheduler COMMAND -o FILE`.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use model::{Advised, Nanos, PolicySpec};
use traces::TraceHash;
use workload::RunSpec;

use crate::bundle::{Bound, Bundle};
use crate::exit::{Status, UsageError};
use crate::here::HERE;
use crate::machine_options::MachineOptions;
use crate::policy::Found;
use crate::prepare::Prepare;
use crate::report::ejection;
use crate::runs::{Asked, StartJitter};
use crate::say::say;
use crate::scheduler::{self, Schedulers};
use crate::workload_arg::{self, Written};
use crate::{output, policy};

/// What a program is loaded under that does nothing afterwards.
const IDLE_LOAD: &str = "desk";

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

    /// Workload of the run to record. Required with --scheduler, but for --setup-only.
    #[arg(short, long, requires = "commands")]
    workload: Option<String>,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "workload",
        value_parser = workload_arg::parse_scale)]
    scale: Vec<(String, i64)>,

    /// Seed of the run to record. Default: the seed of the workload.
    #[arg(long, value_name = "NUMBER", requires = "workload")]
    seed: Option<u64>,

    /// Longest simulated time of the run to record, such as 10s. Default: until the workload ends.
    #[arg(long, value_name = "TIME", requires = "workload",
        value_parser = workload_arg::parse_duration)]
    duration: Option<Nanos>,

    /// Options that prepare the policy.
    #[command(flatten)]
    prepare: Prepare,

    /// Machine for which the variables are set, or on which the program is recorded.
    #[command(flatten)]
    machine: MachineOptions,

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
    let policy = request.policy.as_deref().and_then(policy::file_of);
    let workload = request.workload.as_deref().and_then(workload_arg::file_of);
    output::spare(
        &[
            ("the policy", policy),
            ("--workload", workload),
            ("--profile", request.machine.profile_file()),
        ],
        &[("--output", Some(&request.output)), printed, metrics],
    )?;
    let (bundle, status) = match (request.schedulers.one()?, &request.policy) {
        (Some(program), _) => request.record(program)?,
        (None, policy) => (
            request.object(policy.as_deref().unwrap_or_default())?,
            Status::Done,
        ),
    };
    let mut to = output::create(&request.output)?;
    let written = to.write_all(&bundle.write()).and_then(|()| to.flush());
    written.map_err(model::CannotWrite::at(request.output.display()))?;
    Ok(status)
}

impl BundleOf {
    /// A policy's object, with what is to be set.
    fn object(&self, name: &str) -> anyhow::Result<Bundle> {
        let mut found = policy::open(name)?;
        if found.policy.program.is_some() {
            let message = format!("{name} is a recording of a program already");
            return Err(UsageError::new(message).into());
        }
        self.prepare.apply(&mut found.policy);
        let machine = self.machine.change(&found.machine.unwrap_or_default())?;
        sim::check_machine(&machine).map_err(|error| UsageError::new(Advised::of(&error)))?;
        sim::check_policy(&found.policy, &machine).map_err(ask::error::of_run)?;
        Ok(Bundle {
            policy: found.policy,
            machine,
            bound: None,
        })
    }

    /// The run to record: under `--setup-only` none, but the program has a machine to look at.
    fn spec(&self, policy: PolicySpec) -> anyhow::Result<RunSpec> {
        self.prepare.refuse_for_programs()?;
        let workload = match (&self.workload, self.setup_only) {
            (Some(name), _) => name,
            (None, true) => IDLE_LOAD,
            (None, false) => {
                let message = Advised::new(
                    "a recording is of one run: name its --workload",
                    "or give --setup-only, if the program does nothing after it has attached",
                );
                return Err(UsageError::new(message).into());
            }
        };
        let asked = Asked {
            workload: Some(workload),
            scale: &self.scale,
            machine: &self.machine.asked(),
            seed: self.seed,
            duration: self.duration,
            start_jitter: StartJitter::OfLoad,
        };
        let specs = asked.specs(&HERE, vec![Found::of_policy(policy)], None)?;
        let spec = specs.into_iter().next().context("one policy is one run")?;
        sim::check_machine(&spec.machine).map_err(|error| UsageError::new(Advised::of(&error)))?;
        Ok(spec)
    }

    /// Runs the program and writes down what it does.
    fn record(&self, policy: PolicySpec) -> anyhow::Result<(Bundle, Status)> {
        let mut spec = self.spec(policy)?;
        let mut program = spec.policy.program.take().context("it has a program")?;
        // What it does while it loads costs nothing, and its threads take no part in a run.
        program.free |= self.setup_only;
        let mut hash = TraceHash::new();
        let sink = (!self.setup_only).then_some(&mut hash as &mut dyn model::Sink);
        let (summary, recorded) = scheduler::record(&HERE, &program, &spec, sink)?;
        let mut status = Status::Done;
        if let Some(summary) = summary {
            let (events, hash) = (hash.count(), hash.value());
            say("bundle", &format!("{events} events, hash {hash:016x}"));
            summary.notes.iter().for_each(|note| say("bundle", note));
            if let Some(line) = ejection(&spec.policy.name, &summary.exit) {
                say("bundle", &line);
                status = Status::Ejected;
            }
        }
        program.recorded = Some(recorded);
        let mut policy = spec.policy;
        policy.program = Some(program);
        let bound = match (&self.workload, self.setup_only) {
            (Some(name), false) => Some(Bound {
                workload: Written::find(&HERE, name)?,
                scale: self.scale.clone(),
                seed: spec.seed,
                duration_ns: spec.duration.map(Nanos::get),
            }),
            _ => None,
        };
        let bundle = Bundle {
            policy,
            machine: spec.machine,
            bound,
        };
        Ok((bundle, status))
    }
}
