//! Where kernel 7.2 does other than 6.18.
//!
//! Inside, the machine speaks 6.18's numbers; what a policy sees and says is translated here, in
//! both directions. Source: BTF and callback traces of Debian's 7.2.12.

use model::{Kernel, TaskId};

use crate::dsq::DsqIndex;
use crate::flags::{deq, enq};
use crate::machine::{Machine, Vm};
use crate::task::Class;

/// Flags of enqueue: 6.18's bit, 7.2's bit.
const MOVED_ENQ: [(u64, u64); 5] = [
    (enq::HEAD, 1 << 16),
    (enq::MIGRATED, 1 << 18),
    (enq::INITIAL, 1 << 19),
    (enq::CPU_SELECTED, 1 << 20),
    (enq::CLASS, 1 << 6),
];

/// Flags of dequeue: 6.18's bit, 7.2's bit.
const MOVED_DEQ: [(u64, u64); 2] = [(deq::SPECIAL, 1 << 16), (deq::CLASS, 1 << 6)];

/// `SCX_DEQ_SCHED_CHANGE` (7.2): the task leaves for another reason than sleep.
const SCHED_CHANGE: u64 = 1 << 33;

/// `SCX_ENQ_IMMED` (7.2).
const IMMED: u64 = 1 << 33;

/// `flags` with every bit of `pairs` moved from the first to the second.
fn moved(flags: u64, pairs: impl Iterator<Item = (u64, u64)> + Clone) -> u64 {
    let old = pairs.clone().fold(0, |mask, (from, _)| mask | from);
    let bits = pairs.filter(|(from, _)| flags & from != 0);
    bits.fold(flags & !old, |flags, (_, to)| flags | to)
}

impl Machine {
    /// Whether the kernel is 7.2 or later.
    pub(crate) fn is_7_2(&self) -> bool {
        self.spec.kernel >= Kernel::V7_2
    }

    /// Flags of `ops.enqueue` and `ops.runnable` in the kernel's own numbers.
    pub(crate) fn enq_out(&self, flags: u64) -> u64 {
        if !self.is_7_2() {
            return flags;
        }
        moved(flags, MOVED_ENQ.into_iter())
    }

    /// Flags that a policy gives an insert, in the machine's numbers.
    pub(crate) fn enq_in(&mut self, flags: u64) -> u64 {
        if !self.is_7_2() {
            return flags;
        }
        if flags & IMMED != 0 {
            self.note("SCX_ENQ_IMMED is not modelled and has no effect".to_owned());
        }
        let flags = flags & !IMMED;
        moved(
            flags,
            MOVED_ENQ.into_iter().map(|(ours, theirs)| (theirs, ours)),
        )
    }

    /// Flags of `ops.quiescent`, and of `ops.dequeue` when a task is taken back, in the numbers of
    /// the kernel.
    pub(crate) fn deq_out(&self, flags: u64) -> u64 {
        if !self.is_7_2() {
            return flags;
        }
        let change = if flags & deq::SLEEP == 0 {
            SCHED_CHANGE
        } else {
            0
        };
        moved(flags, MOVED_DEQ.into_iter()) | change
    }

    /// The bit of a change of class: 7.2 tells it from other changes.
    pub(crate) fn class_bit(&self) -> u64 {
        if self.is_7_2() { deq::CLASS } else { 0 }
    }

    // ---- Custody ----
    //
    // On 7.2 a policy has a task in custody from the moment in which it keeps the task or puts it
    // into a queue of its own until the task reaches a local or global queue, or is taken back. The
    // end of a custody is one `ops.dequeue`, with flags 0 in the first case.

    /// Notes that a task has come into `dsq`.
    pub(crate) fn note_custody(&mut self, dsq: DsqIndex, id: TaskId) {
        if !self.is_7_2() || self.bypass {
            return;
        }
        let is_user = self.dsqs.id(dsq) & crate::flags::dsq::BUILTIN == 0;
        if is_user {
            self.set_custody(id, true);
        } else if self.task(id).in_custody {
            self.set_custody(id, false);
            self.released_from_custody.push(id);
        }
    }

    /// Notes that the policy has kept a task, or has given it up.
    pub(crate) fn set_custody(&mut self, id: TaskId, is: bool) {
        if self.is_7_2() && self.task(id).in_custody != is {
            self.task_mut(id).in_custody = is;
            self.mirror_flags(id);
        }
    }

    /// Tells the policy of the tasks that have left its custody for a local or global queue.
    #[inline]
    pub(crate) fn tell_released(&mut self, vm: &mut Vm) {
        if !self.released_from_custody.is_empty() {
            self.tell_all_released(vm);
        }
    }

    #[inline(never)]
    fn tell_all_released(&mut self, vm: &mut Vm) {
        while !self.released_from_custody.is_empty() {
            let id = self.released_from_custody.remove(0);
            if self.task(id).class == Class::Ext {
                self.call_dequeue(vm, id, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_move_to_their_places_on_7_2_and_back() {
        let theirs = 0x10_0009 | 1 << 40;
        let ours = enq::WAKEUP | enq::NOCLOCK | enq::CPU_SELECTED | enq::REENQ;
        assert_eq!(moved(ours, MOVED_ENQ.into_iter()), theirs);
        let back = MOVED_ENQ.into_iter().map(|(ours, theirs)| (theirs, ours));
        assert_eq!(moved(theirs, back), ours);
        assert_eq!(moved(deq::SPECIAL | 9, MOVED_DEQ.into_iter()), 0x1_0009);
    }
}
