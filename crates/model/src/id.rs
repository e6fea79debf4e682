//! Numbers of things, each with a type of its own, so that a task number cannot index the table
//! of CPUs.

use std::fmt;
use std::ops::{Index, IndexMut};

/// A CPU of the machine, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub u16);

/// A task of the run, counted from zero in the order of creation. Never reused within a run,
/// unlike the kernel's pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

impl TaskId {
    /// Stands for "no task" where an [`Event`](crate::Event) has a field for one: the idle task
    /// in a switch, an interrupt as the waker.
    pub const NONE: Self = Self(u32::MAX);
}

impl CpuId {
    /// The CPU's number as an index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl TaskId {
    /// The task's number as an index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One `T` for each CPU of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerCpu<T>(Vec<T>);

impl<T> PerCpu<T> {
    /// One value for each of `cpus` CPUs.
    pub fn new(cpus: u16, mut value: impl FnMut(CpuId) -> T) -> Self {
        Self((0..cpus).map(|cpu| value(CpuId(cpu))).collect())
    }

    /// The values, lowest CPU first.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// The same, to change.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

impl<T> Index<CpuId> for PerCpu<T> {
    type Output = T;

    #[inline]
    fn index(&self, cpu: CpuId) -> &T {
        &self.0[cpu.index()]
    }
}

impl<T> IndexMut<CpuId> for PerCpu<T> {
    #[inline]
    fn index_mut(&mut self, cpu: CpuId) -> &mut T {
        &mut self.0[cpu.index()]
    }
}
