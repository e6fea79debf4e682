//! A recording in the place of a workload, as options of the verbs that simulate.

use std::path::{Path, PathBuf};

use clap::Args;
use traces::foreign::Window;
use workload::{CostScale, Workload};

use crate::exit::UsageError;
use crate::here::HERE;
use crate::recording::{self, Wanted, parse_scale, parse_window};

/// A recording in the place of a workload, as options of the verbs that simulate.
#[derive(Clone, Debug, Default, Args)]
pub struct RecordingOptions {
    /// Rerun a recording instead of a workload: a file from `sim --events` or `play --events`, or
    /// a trace of perf, trace-cmd, ftrace or Perfetto.
    ///
    /// Each task needs the CPU time that it used in the recording. If another task woke it there,
    /// it waits for that task again. Work from outside comes when it came. Other sleeps have their
    /// recorded length. What a trace lacks is said. See docs/import.md.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "scale"])]
    pub from: Option<PathBuf>,

    /// Factor for the CPU time that the recorded tasks need: 0.5 is half. Needs --from. Default: 1.
    #[arg(long, value_name = "FACTOR", value_parser = parse_scale)]
    cost_scale: Option<CostScale>,

    /// Part of the trace to use, in time since its begin, such as 2s..5s. Needs --from and a trace
    /// of another program. Default: all.
    #[arg(long, value_name = "FROM..TO", requires = "from",
        value_parser = parse_window)]
    window: Option<Window>,
}

impl RecordingOptions {
    /// What is made of the recording.
    fn wanted(&self) -> Wanted {
        Wanted {
            scale: self.cost_scale.unwrap_or(CostScale::ONE),
            window: self.window.unwrap_or_default(),
        }
    }

    /// The recording that `--from` names, as a workload.
    ///
    /// # Errors
    /// Those of [`recording::load()`], and when an option asks for a recording that is not there.
    pub fn given(&self) -> anyhow::Result<Option<Workload>> {
        match &self.from {
            None if self.cost_scale.is_some() => {
                let message = "--cost-scale changes the cost of a recording: it needs --from";
                Err(UsageError::new(message).into())
            }
            None => Ok(None),
            Some(path) => {
                let load = recording::load(path, self.wanted())?;
                recording::say_score(&HERE, path);
                Ok(Some(load))
            }
        }
    }

    /// So many parts of the trace at `path`, of equal length; `None` of a recording of our own
    /// events, which has no parts.
    ///
    /// # Errors
    /// As [`recording::load()`].
    pub fn parts(&self, path: &Path, count: u32) -> anyhow::Result<Option<Vec<Workload>>> {
        recording::parts(&HERE, path, self.wanted(), count)
    }
}
