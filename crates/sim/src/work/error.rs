//! What can go wrong in a workload while it runs.

use model::file::EvalError;

/// Why a workload cannot go on. `place` is `file:line: task`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkError {
    /// An expression has no value.
    #[error("{place}: {source}")]
    Eval {
        /// File, line and task.
        place: String,
        /// What is wrong with the expression.
        source: EvalError,
    },
    /// An index names no instance.
    #[error("{place}: index {index} of `{name}` is outside 0..{count}")]
    Index {
        /// File, line and task.
        place: String,
        /// The resource or group.
        name: String,
        /// The index.
        index: i64,
        /// How many there are.
        count: u64,
    },
    /// A number is outside what the operation takes.
    #[error("{place}: {what} is {value}; expected {low} to {high}")]
    Range {
        /// File, line and task.
        place: String,
        /// Which number.
        what: &'static str,
        /// Its value.
        value: i64,
        /// The least that is allowed.
        low: i64,
        /// The most that is allowed.
        high: i64,
    },
    /// The run does not end before the clock does.
    #[error("{place}: the run lasts longer than {years} years; a clock has no room for more")]
    TooLong {
        /// File and task.
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
    /// A span or a deadline's work ended that had not begun.
    #[error("{place}: `{name}` ends without a `{what}({name})` before it")]
    NotBegun {
        /// File, line and task.
        place: String,
        /// The span or the deadline.
        name: String,
        /// The operation that should have come first.
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
    #[error("{place}: no CPU of {cpus} exists; the machine has CPUs 0 to {last}")]
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
    /// A task goes round without any time passing.
    #[error(
        "{place}: {steps} operations without any time passing; put a run() or a sleep() \
         into the loop"
    )]
    NoProgress {
        /// File, line and task.
        place: String,
        /// How many operations.
        steps: u32,
    },
    /// The workload has more tasks than a machine may have.
    #[error("{place}: more than {limit} tasks exist at once")]
    TooManyTasks {
        /// File, line and task.
        place: String,
        /// The limit.
        limit: u32,
    },
}
