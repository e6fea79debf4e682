//! Tasks with counters of ticks, as Linux 2.3.99 and 2.4.0 keep them: recalculation, goodness,
//! fork and exit. One CPU.

use std::collections::BTreeMap;

use model::TaskId;

/// Which kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Linux 2.3.99.
    V99,
    /// Linux 2.4.0.
    V24,
}

/// What the kernel was built as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its version.
    pub variant: Variant,
    /// Whether it was built for several CPUs, although it has one here.
    pub smp: bool,
}

/// A task at HZ = 100.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Ticks left.
    pub counter: i32,
    /// Nice value.
    pub nice: i32,
    /// Address space.
    pub mm: u32,
    /// Who forked it.
    pub parent: Option<TaskId>,
    /// It has yielded, and nobody has been chosen since.
    pub yielding: bool,
    /// Ticks that ended children have left it, which it gets when it runs.
    pub refunds: i32,
}

/// Ticks that a recalculation adds.
#[must_use]
pub fn quantum(variant: Variant, nice: i32) -> i32 {
    match variant {
        Variant::V99 => (20 - nice).clamp(1, 40),
        Variant::V24 => ((20 - nice) >> 2) + 1,
    }
}

/// What recalculation makes of a counter.
#[must_use]
pub fn recalculated(counter: i32, quantum: i32) -> i32 {
    counter / 2 + quantum
}

/// All tasks of the system, sleepers too.
#[derive(Clone, Debug)]
pub struct Tasks {
    /// What the kernel was built as.
    pub kernel: Kernel,
    tasks: BTreeMap<TaskId, Task>,
    /// Recalculations so far.
    pub recalculations: u32,
}

impl Tasks {
    /// No tasks.
    #[must_use]
    pub const fn new(kernel: Kernel) -> Self {
        Self {
            kernel,
            tasks: BTreeMap::new(),
            recalculations: 0,
        }
    }

    /// The task.
    ///
    /// # Panics
    /// If it was never born.
    #[must_use]
    pub fn get(&self, id: TaskId) -> &Task {
        &self.tasks[&id]
    }

    /// The task, to change.
    ///
    /// # Panics
    /// If it was never born.
    pub fn get_mut(&mut self, id: TaskId) -> &mut Task {
        self.tasks.get_mut(&id).expect("a task that was born")
    }

    /// A task comes to be. A child takes half of its parent's counter, the odd tick included;
    /// others begin with a quantum. Returns whether the parent has nothing left.
    pub fn born(&mut self, id: TaskId, nice: i32, mm: u32, parent: Option<TaskId>) -> bool {
        let mut counter = quantum(self.kernel.variant, nice);
        let mut spent = false;
        if let Some(parent) = parent {
            let parent = self.get_mut(parent);
            counter = (parent.counter + 1) / 2;
            parent.counter /= 2;
            spent = parent.counter == 0;
        }
        let task = Task {
            counter,
            nice,
            mm,
            parent,
            yielding: false,
            refunds: 0,
        };
        self.tasks.insert(id, task);
        spent
    }

    /// A task ends: its parent shall get what it has left.
    pub fn exited(&mut self, id: TaskId) {
        let Task {
            counter, parent, ..
        } = *self.get(id);
        if let Some(parent) = parent {
            self.get_mut(parent).refunds += counter;
        }
    }

    /// A task begins to run, and gets what its ended children had left.
    pub fn began(&mut self, id: TaskId) {
        let variant = self.kernel.variant;
        let task = self.get_mut(id);
        let refunds = std::mem::take(&mut task.refunds);
        let most = match variant {
            Variant::V99 => 2 * quantum(variant, task.nice),
            Variant::V24 => 20,
        };
        if refunds > 0 {
            task.counter = (task.counter + refunds).min(most);
        }
    }

    /// New ticks for every task of the system.
    pub fn recalculate(&mut self) {
        self.recalculations += 1;
        let variant = self.kernel.variant;
        for task in self.tasks.values_mut() {
            task.counter = recalculated(task.counter, quantum(variant, task.nice));
        }
    }

    /// How good it is to run a task after one with the address space `mm`. There is one CPU, so
    /// an SMP kernel gives everybody its bonus.
    #[must_use]
    pub fn goodness(&self, id: TaskId, mm: Option<u32>) -> i32 {
        let task = self.get(id);
        let variant = self.kernel.variant;
        if variant == Variant::V24 && task.yielding {
            return -1;
        }
        if task.counter == 0 {
            return 0;
        }
        let base = match variant {
            Variant::V99 => quantum(variant, task.nice),
            Variant::V24 => 20 - task.nice,
        };
        let same_cpu = if self.kernel.smp { 15 } else { 0 };
        task.counter + base + same_cpu + i32::from(mm == Some(task.mm))
    }

    /// Whether `new` takes the CPU from `current`.
    #[must_use]
    pub fn preempts(&self, new: TaskId, current: TaskId) -> bool {
        let mm = Some(self.get(current).mm);
        let gain = self.goodness(new, mm) - self.goodness(current, mm);
        match self.kernel.variant {
            Variant::V99 => gain > 0,
            Variant::V24 => gain > 1,
        }
    }
}
