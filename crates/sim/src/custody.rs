//! Custody: from 7.1 on the policy hears of the end of its hold on a task.
//!
//! A policy has a task in custody from the moment in which it keeps the task or puts it into a
//! queue of its own until the task reaches a local or global queue, or is taken back. The end of a
//! custody is one `ops.dequeue`, with flags 0 in the first case.
//!
//! Source: callback traces of Debian's 7.1.13, 7.2.12 and 7.3.4.

use model::TaskId;

use crate::dsq::DsqIndex;
use crate::flags;
use crate::machine::{Machine, Vm};
use crate::task::Class;

impl Machine {
    /// Notes that a task has come into `dsq`.
    #[inline]
    pub(crate) fn note_custody(&mut self, dsq: DsqIndex, id: TaskId) {
        if self.rules.has_custody {
            self.change_custody(dsq, id);
        }
    }

    #[inline(never)]
    fn change_custody(&mut self, dsq: DsqIndex, id: TaskId) {
        if self.bypasses(id) {
            return;
        }
        let is_user = self.dsqs.id(dsq) & flags::dsq::BUILTIN == 0;
        if is_user {
            self.set_custody(id, true);
        } else if self.task(id).in_custody && !self.turn.custody.is_late {
            self.set_custody(id, false);
            self.turn.custody.released.push_back(id);
        }
    }

    /// Notes that the policy has kept a task, or has given it up.
    pub(crate) fn set_custody(&mut self, id: TaskId, is: bool) {
        if self.rules.has_custody && self.task(id).in_custody != is {
            self.task_mut(id).in_custody = is;
            self.mirror_flags(id);
        }
    }

    /// A task is being moved to another CPU's local queue, or has come there.
    #[inline]
    pub(crate) fn moves_to_local(&mut self, does: bool) {
        self.turn.custody.is_late = does && self.rules.tells_moved_late;
    }

    /// A task begins to run whose custody has not been ended where it came into a local queue.
    ///
    /// Source: `call_task_dequeue()` and `set_next_task_scx()`, kernel 7.1.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell_moved(&mut self, vm: &mut Vm, id: TaskId) {
        self.set_custody(id, false);
        self.call_dequeue(vm, id, flags::deq::CORE_SCHED_EXEC);
    }

    /// Tells the policy of the tasks that have left its custody for a local or global queue.
    #[inline]
    pub(crate) fn tell_released(&mut self, vm: &mut Vm) {
        if !self.turn.custody.released.is_empty() {
            self.tell_all_released(vm);
        }
    }

    #[inline(never)]
    fn tell_all_released(&mut self, vm: &mut Vm) {
        while let Some(id) = self.turn.custody.released.pop_front() {
            if self.task(id).class == Class::Ext {
                self.call_dequeue(vm, id, 0);
            }
        }
    }
}
