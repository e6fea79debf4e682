//! What can go wrong in a workload while it runs.

use model::Advice;
use workload::TaskFault;

/// Why a workload cannot go on. `place` is `file:line: task`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkError {
    /// A task breaks the workload's own rules, or an interrupt does.
    #[error("{place}: {source}")]
    Task {
        /// File, line and task.
        place: String,
        /// What is wrong.
        source: TaskFault,
    },
    /// The run does not end before the clock does.
    #[error("{place}: the run lasts longer than {years} years")]
    TooLong {
        /// File, line and task; the file alone when no task lives.
        place: String,
        /// The most that there is.
        years: u64,
    },
    /// A task gave back a lock that it does not hold, or took one that it holds.
    #[error("{place}: {what}")]
    Lock {
        /// File, line and task.
        place: String,
        /// What it did.
        what: &'static str,
    },
    /// A request is done that has not come, or that was done before.
    #[error("{place}: request {number} of `{name}` is not under way")]
    NoRequest {
        /// File, line and task.
        place: String,
        /// The arrivals.
        name: String,
        /// The request's number.
        number: i64,
    },
    /// An affinity has no CPU of the machine in it.
    #[error("{place}: no CPU of {cpus} exists")]
    NoCpu {
        /// File and place.
        place: String,
        /// The set.
        cpus: String,
        /// The machine's last CPU.
        last: u16,
    },
    /// The kernel would refuse a deadline task.
    #[error("{place}: {why}")]
    Deadline {
        /// File and task.
        place: String,
        /// What the kernel answers, and why.
        why: String,
    },
    /// The workload has more tasks than a machine may have.
    #[error("{place}: more than {limit} tasks exist at once")]
    TooManyTasks {
        /// File, line and task.
        place: String,
        /// The limit.
        limit: u32,
    },
    /// The run creates more tasks than can be kept.
    #[error("{place}: more than {limit} tasks are created in one run")]
    TooManyForks {
        /// File, line and task.
        place: String,
        /// The limit.
        limit: usize,
    },
}

impl Advice for WorkError {
    fn advice(&self) -> Option<String> {
        match self {
            Self::Task { source, .. } => source.advice(),
            Self::TooLong { .. } => Some("a clock has no room for more".to_owned()),
            Self::NoCpu { last, .. } => Some(format!("the machine has CPUs 0 to {last}")),
            Self::TooManyForks { .. } => Some("let the run end earlier".to_owned()),
            _ => None,
        }
    }
}
