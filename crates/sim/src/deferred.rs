//! What the policy wants of queues whose locks cannot be taken where it asks. It is done a little
//! later.

use std::collections::VecDeque;

use model::{CpuId, PerCpu, TaskId};

use crate::dsq::DsqIndex;

/// Which tasks of a local queue are offered again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reoffer {
    /// None.
    #[default]
    Nothing,
    /// Those that should run at once and cannot.
    Immed,
    /// All.
    All,
}

/// What is put off on each CPU. Nearly always there is nothing anywhere, which is one test.
#[derive(Clone)]
pub(crate) struct Deferred {
    cpus: PerCpu<Waiting>,
    /// How many inserts wait, and queues whose tasks are to be offered again.
    count: u32,
}

#[derive(Clone, Default)]
struct Waiting {
    /// Inserts into other CPUs' local queues.
    inserts: VecDeque<TaskId>,
    /// Which tasks of the local queue are to be offered to the policy again (6.19).
    reoffer: Reoffer,
    /// Queues of the policy's whose tasks are to be offered again (7.1).
    queues: VecDeque<DsqIndex>,
}

impl Deferred {
    /// Nothing.
    pub fn new(cpus: u16) -> Self {
        Self {
            cpus: PerCpu::new(cpus, |_| Waiting::default()),
            count: 0,
        }
    }

    /// Whether any CPU has to do something.
    #[inline]
    pub const fn any(&self) -> bool {
        self.count > 0
    }

    /// `cpu` is to insert `task` where its verdict says.
    pub fn push(&mut self, cpu: CpuId, task: TaskId) {
        self.cpus[cpu].inserts.push_back(task);
        self.count += 1;
    }

    /// The next task that `cpu` is to insert.
    pub fn first(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu].inserts.front().copied()
    }

    /// Takes the next task that `cpu` is to insert.
    pub fn pop(&mut self, cpu: CpuId) -> Option<TaskId> {
        let task = self.cpus[cpu].inserts.pop_front()?;
        self.count -= 1;
        Some(task)
    }

    /// `cpu` is not to insert `task` any more.
    pub fn remove(&mut self, cpu: CpuId, task: TaskId) {
        let inserts = &mut self.cpus[cpu].inserts;
        let before = inserts.len();
        inserts.retain(|&other| other != task);
        self.count -= (before - inserts.len()) as u32;
    }

    /// `cpu` is to offer these tasks of its local queue again.
    pub fn reoffer(&mut self, cpu: CpuId, which: Reoffer) {
        let asked = &mut self.cpus[cpu].reoffer;
        self.count += u32::from(*asked == Reoffer::Nothing);
        *asked = which.max(*asked);
    }

    /// Which tasks of its local queue `cpu` is to offer again. None, from now on.
    pub fn take_reoffer(&mut self, cpu: CpuId) -> Reoffer {
        let asked = std::mem::take(&mut self.cpus[cpu].reoffer);
        self.count -= u32::from(asked != Reoffer::Nothing);
        asked
    }

    /// `cpu` is to offer the tasks of `queue` again.
    pub fn reoffer_queue(&mut self, cpu: CpuId, queue: DsqIndex) {
        let queues = &mut self.cpus[cpu].queues;
        if !queues.contains(&queue) {
            queues.push_back(queue);
            self.count += 1;
        }
    }

    /// Takes the next queue whose tasks `cpu` is to offer again.
    pub fn take_queue(&mut self, cpu: CpuId) -> Option<DsqIndex> {
        let queue = self.cpus[cpu].queues.pop_front()?;
        self.count -= 1;
        Some(queue)
    }

    /// `queue` is no more.
    pub fn forget_queue(&mut self, queue: DsqIndex) {
        if !self.any() {
            return;
        }
        for waiting in self.cpus.iter_mut() {
            let before = waiting.queues.len();
            waiting.queues.retain(|&other| other != queue);
            self.count -= (before - waiting.queues.len()) as u32;
        }
    }
}
