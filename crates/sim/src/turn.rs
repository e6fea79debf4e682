//! What the code that executes now is in the middle of.
//!
//! A CPU that is in the middle of something has part of the state in itself ([`crate::cpu::Cpu`]:
//! whether it balances or wakes). The rest is in the machine's turn for as long as its code
//! executes. Between two events nothing of a turn is left, but for the causes that
//! [`crate::decision`] remembers: the code of another CPU could execute in the middle with a turn
//! of its own in its place, and this one would go on from where it was. A program's own part of it
//! is `bpf`'s call stack.

use std::collections::VecDeque;

use model::{CpuId, TaskId};

use crate::buffer::Buffer;
use crate::cause::Decisions;
use crate::context::Contexts;
use crate::fetched::Prev;

/// Whose custody has ended without the policy having been told. Only [`crate::custody`] changes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Custody {
    pub released: VecDeque<TaskId>,
    /// The task that comes into a queue now is on its way to another CPU, and the kernel does not
    /// say there that its custody ends.
    pub is_late: bool,
}

/// State of the code that executes now. Every field names its writers.
#[repr(C)]
#[derive(Clone)]
pub(crate) struct Turn {
    /// The CPU whose code executes now: the waker's in a wakeup, not the woken task's. Written for
    /// each event by [`crate::drive`], and before it by [`crate::interleave`].
    pub exec: CpuId,
    /// The callbacks being executed; see [`crate::ops`].
    pub contexts: Contexts,
    /// The dispatch buffer; see [`crate::dispatch`].
    pub buffer: Buffer,
    /// Who decides what, for whoever listens; see [`crate::decision`].
    pub decisions: Decisions,
    /// The task that had the CPU which looks for work, where there are several schedulers.
    pub prev: Prev,
    /// Whose custody has ended; see [`crate::custody`].
    pub custody: Custody,
    /// All that this code was charged for, interrupts apart, picoseconds. It never falls, so that
    /// differences of it are what was done meanwhile: see [`crate::profile`].
    pub charged_ps: u64,
}

impl Turn {
    /// CPU 0 is in the middle of nothing.
    pub fn new(contexts: Contexts, decisions: Decisions) -> Self {
        Self {
            exec: CpuId(0),
            contexts,
            buffer: Buffer::default(),
            decisions,
            prev: Prev::NONE,
            custody: Custody::default(),
            charged_ps: 0,
        }
    }
}
