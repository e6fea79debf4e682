//! What is asked of simulated runs besides policies and a workload, as options of the verbs that
//! print results.

use std::num::NonZeroUsize;

use ask::simulate::{MEMORY_MAX_MIB, RUNS_MAX};
use clap::Args;
use model::Nanos;

use crate::machine_options::MachineOptions;
use crate::prepare::Prepare;
use crate::workload_arg;

/// The machine, the seeds, the length, what prepares the policies, and their limits.
#[derive(Debug, Args)]
pub struct RunOptions {
    #[command(flatten)]
    pub machine: MachineOptions,

    /// Seed of every random choice. The same seed gives the same events, byte for byte. Default:
    /// the seed of the workload.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Number of runs of each policy, each with its own seed. Prints the median, least and greatest
    /// value of each number in the tables.
    ///
    /// The first run has the seed `--seed`; the others are derived from it. All policies get the
    /// same seeds. JSON and CSV contain every run. Use `compare` to test whether policies differ.
    #[arg(long, value_name = "NUMBER",
        value_parser = clap::value_parser!(u32).range(1..=RUNS_MAX.into()))]
    pub runs: Option<u32>,

    /// Threads for `--runs`. The number does not change the results. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER", requires = "runs")]
    pub jobs: Option<NonZeroUsize>,

    /// Longest simulated time, such as 10s or 1.5ms. Default: until the workload ends.
    #[arg(long, value_name = "TIME", value_parser = workload_arg::parse_duration)]
    pub duration: Option<Nanos>,

    /// Options that prepare the policies.
    #[command(flatten)]
    pub prepare: Prepare,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = workload_arg::parse_scale)]
    pub scale: Vec<(String, i64)>,

    /// Let each task begin by up to so much later than the load says, drawn for each from the seed.
    /// So runs differ although nothing else is random. Default: as in the workload.
    #[arg(long, value_name = "TIME", value_parser = workload_arg::parse_jitter)]
    pub start_jitter: Option<Nanos>,

    #[command(flatten)]
    pub limits: Limits,
}

/// What policies may use up of this computer.
#[derive(Clone, Copy, Debug, Args)]
pub struct Limits {
    /// Most BPF instructions of each run. A run that needs more ends with an ejection. Default: no
    /// limit for the run; a callback that retires 100,000,000 is taken for an endless loop.
    #[arg(long, value_name = "INSTRUCTIONS", value_parser = clap::value_parser!(u64).range(1..))]
    budget: Option<u64>,

    /// Most memory of each policy, MiB: its maps, stacks and the objects that it creates.
    /// Default: 512.
    #[arg(long, value_name = "MIB",
        value_parser = clap::value_parser!(u64).range(1..=MEMORY_MAX_MIB))]
    memory: Option<u64>,
}

impl Limits {
    /// Whether one was asked for.
    pub const fn is_set(self) -> bool {
        self.budget.is_some() || self.memory.is_some()
    }

    /// For the simulated machine.
    pub fn options(self) -> sim::Options {
        sim::Options {
            total_budget: self.budget,
            memory_bytes: self.memory.map(|mib| mib << 20),
            ..sim::Options::default()
        }
    }
}
