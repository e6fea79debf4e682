//! What tasks do: executes a [`Workload`] without knowing anything of scheduling.
//!
//! Start at [`Work::step`]. The machine says which task runs and what time it is; this module says
//! what that task does next.

use std::sync::Arc;

use model::workload::Workload;
use model::{CpuId, Nanos, SimTime, TaskId};

mod action;
mod error;

pub use action::{Action, Birth, Interrupt, WorkEvent};
pub use error::WorkError;

/// A workload in execution.
pub struct Work;

impl Work {
    /// A workload at its beginning, on a machine of `cpus` CPUs.
    ///
    /// # Errors
    /// If an affinity has no CPU of the machine, or an interrupt's CPU does not exist.
    pub fn new(_workload: Arc<Workload>, _cpus: u16, _seed: u64) -> Result<Self, WorkError> {
        todo!()
    }

    /// The tasks that exist from the start, in the order of the file.
    pub fn initial(&self) -> Vec<Birth> {
        todo!()
    }

    /// Binds `task` to `birth`. Task ids are consecutive from zero.
    pub fn born(&mut self, _task: TaskId, _birth: &Birth, _parent: Option<TaskId>) {
        todo!()
    }

    /// Tells `parent` how its fork ended: with a child that was [`born`](Self::born), or without.
    pub fn forked(&mut self, _parent: TaskId, _child: Option<TaskId>) {
        todo!()
    }

    /// What `task`, which is on a CPU and has done all it was asked for, does next. What is to be
    /// recorded is appended to `out`.
    ///
    /// # Errors
    /// If the workload's own rules are broken; the message says where.
    pub fn step(
        &mut self,
        _task: TaskId,
        _now: SimTime,
        _out: &mut Vec<WorkEvent>,
    ) -> Result<Action, WorkError> {
        todo!()
    }

    /// Every interrupt source's first arrival: index of the source, CPU, time.
    pub fn interrupts(&mut self) -> Vec<(usize, CpuId, SimTime)> {
        todo!()
    }

    /// An interrupt of `source` arrives.
    ///
    /// # Errors
    /// As [`Work::step`].
    pub fn interrupt(
        &mut self,
        _source: usize,
        _now: SimTime,
        _out: &mut Vec<WorkEvent>,
    ) -> Result<Interrupt, WorkError> {
        todo!()
    }

    /// `task` has left its CPU for the last time.
    pub fn exited(&mut self, _task: TaskId) {
        todo!()
    }

    /// Whether the workload is over at `now`.
    pub fn finished(&self, _now: SimTime) -> bool {
        todo!()
    }

    /// The time after which it is over at the latest, if the file says so.
    pub fn duration(&self) -> Option<Nanos> {
        todo!()
    }

    /// What `task` waits for, in words, if it is blocked: for messages about a run that stands
    /// still.
    pub fn waits_for(&self, _task: TaskId) -> Option<String> {
        todo!()
    }
}
