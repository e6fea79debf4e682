//! One callback of a policy, in the same words whether a kernel or the simulator made it.

use std::fmt;
use std::rc::Rc;

use model::{Op, SimTime};

/// Who a callback speaks of, or who ran on its CPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The idle task, or no task at all.
    Idle,
    /// A task that the scenario is not about: a kernel thread, the shell, the driver `main`.
    Other,
    /// A task of the scenario. Its name begins with `tv`, as in the recordings.
    Task(Rc<str>),
}

impl Who {
    /// The task called `name`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name {
            "idle" | "-" => Self::Idle,
            _ if name.starts_with("tv") => Self::Task(name.into()),
            _ => Self::Other,
        }
    }

    /// The name, if it is a task of the scenario.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Task(name) => Some(name),
            Self::Idle | Self::Other => None,
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Idle => "idle",
            Self::Other => "other",
            Self::Task(name) => name,
        })
    }
}

/// A callback with its arguments. `a` and `b` are the words that [`Op`] documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When, on the clock of the run or since the begin of the recorded section.
    pub time: SimTime,
    /// The CPU that executed the callback.
    pub cpu: u16,
    /// The task that ran on that CPU.
    pub current: Who,
    /// Which callback.
    pub op: Op,
    /// Its task; for `dispatch` the previous task, for `cpu_release` the task that takes the CPU.
    pub task: Who,
    /// First word.
    pub a: u64,
    /// Second word.
    pub b: u64,
}

impl Call {
    /// Whether `task` is taken off its CPU here although it could go on.
    #[must_use]
    pub fn is_stop_of_runnable(&self, task: &Who) -> bool {
        self.op == Op::Stopping && self.a == 1 && self.task == *task
    }

    /// The callback in one line without its task: its name and the words that have an exact
    /// value. What is left of a slice depends on the speed of the machine and is no part of it.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { cpu, op, a, b, .. } = self;
        let name = op.name();
        match op {
            Op::Enqueue => format!("{name} {a:#x} cpu{b}"),
            Op::Runnable | Op::Quiescent | Op::Dequeue => format!("{name} {a:#x}"),
            Op::SelectCpu => format!("{name} {a:#x} prev{b}"),
            Op::Running => format!("{name} cpu{cpu}"),
            Op::Dispatch => format!("{name} cpu{a} queued={b}"),
            Op::SetCpumask => format!("{name} {a} {b:#x}"),
            Op::UpdateIdle => format!("{name} cpu{b} {a}"),
            Op::CpuRelease => format!("{name} cpu{a} reason={b}"),
            Op::Tick | Op::Yield | Op::Disable => name.to_owned(),
            _ => format!("{name} {a}"),
        }
    }
}
