//! Where kernel 7.2 does other than 6.18.
//!
//! Inside, the machine speaks 6.18's numbers; what a policy sees and says is translated here, in
//! both directions. Source: BTF and callback traces of Debian's 7.2.12.

use model::Kernel;

use crate::flags::{deq, enq};
use crate::machine::Machine;

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
