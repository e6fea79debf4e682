//! What `score` is asked on the command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use ask::score::{Release, Score as Question};
use clap::Args;
use traces::foreign::Window;

use crate::computer::COMPUTER;
use crate::machine_options::MachineOptions;
use crate::output::{self, To};
use crate::policy;
use crate::recording::parse_window;
use crate::report::Format;

/// Arguments of `runslice score`.
#[derive(Debug, Args)]
pub struct Score {
    /// The recording: a file from `sim --events` or `play --events`, or a trace of perf, trace-cmd,
    /// ftrace or Perfetto. The load is made of its first half and held against the second.
    #[arg(value_name = "FILE")]
    pub recording: PathBuf,

    /// A second recording of the same load. Then the load is made of all of the first one, and
    /// held against this one.
    #[arg(value_name = "SECOND")]
    pub second: Option<PathBuf>,

    /// The scheduler that it was recorded under, as a policy for `sim`. Default: what the recording
    /// says; of a trace of another program, what its kernel's version has: `cfs` before 6.6, then
    /// `eevdf`.
    #[arg(long, value_name = "POLICY")]
    pub recorded_under: Option<String>,

    /// Version of the kernel that it was recorded on, such as 5.10. Default: what the recording
    /// says.
    #[arg(long, value_name = "VERSION", value_parser = Release::parse,
        conflicts_with = "recorded_under")]
    pub recorded_on: Option<Release>,

    /// Part of the trace to use, in time since its begin, such as 2s..5s. Needs a trace of another
    /// program. Default: all.
    #[arg(long, value_name = "FROM..TO", value_parser = parse_window)]
    pub window: Option<Window>,

    #[command(flatten)]
    pub machine: MachineOptions,

    /// Seed of the random resampling. The same seed gives the same intervals.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub resample_seed: u64,

    /// Threads. The number does not change the results. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER")]
    pub jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    pub to: To,
}

impl Score {
    /// As a question has it.
    pub fn asked(&self) -> Question {
        Question {
            recording: self.recording.clone(),
            second: self.second.clone(),
            recorded_under: self.recorded_under.clone(),
            recorded_on: self.recorded_on,
            window: self.window.unwrap_or_default(),
            machine: self.machine.asked(),
            resample_seed: self.resample_seed,
            jobs: self.jobs,
        }
    }

    /// The format of the answer, after what does not fit together was refused.
    ///
    /// # Errors
    /// When the answer would be written over what is read, or has no such format.
    pub fn check(&self) -> anyhow::Result<Format> {
        let under = self
            .recorded_under
            .as_deref()
            .and_then(|it| policy::file_of(&COMPUTER, it));
        let read = [
            ("FILE", Some(self.recording.as_path())),
            ("SECOND", self.second.as_deref()),
            ("--recorded-under", under),
            ("--profile", self.machine.profile_file()),
            ("--hardware", self.machine.hardware_file()),
        ];
        output::spare(&read, &[("--output", self.to.output.as_deref())])?;
        Ok(self.to.format()?)
    }
}
