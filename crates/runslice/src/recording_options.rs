//! A recording in the place of a workload, as options of the verbs that simulate.

use std::path::PathBuf;

use clap::Args;
use traces::foreign::Window;
use workload::CostScale;

use crate::recording::{Rerun, parse_scale, parse_window};

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
    /// As a question has it.
    pub fn asked(&self) -> Rerun {
        Rerun {
            from: self.from.clone(),
            cost_scale: self.cost_scale,
            window: self.window,
        }
    }
}
