//! What kernels from 6.19 on say otherwise than 6.18, and how the one is told from the other.

use std::collections::BTreeMap;

use model::{Kernel, Op};

use crate::call::Call;

/// Flags of enqueue that moved with 6.19: the new bit, 6.18's bit.
const MOVED: [(u64, u64); 4] = [
    (1 << 16, 0x10),
    (1 << 18, 0x40),
    (1 << 19, 0x80),
    (1 << 20, 0x400),
];
/// `DEQUEUE_SPECIAL`: the new bit, 6.18's bit.
const SPECIAL: (u64, u64) = (1 << 16, 0x10);
/// `SCX_DEQ_SLEEP`.
const SLEEP: u64 = 1;
/// `SCX_DEQ_SCHED_CHANGE` (7.1).
const SCHED_CHANGE: u64 = 1 << 33;
/// `SCX_DEQ_CORE_SCHED_EXEC`.
const CORE_SCHED_EXEC: u64 = 1 << 32;
/// `ENQUEUE_RESTORE`.
const RESTORE: u64 = 2;
/// `SCX_ENQ_IGNORE_CAPS` (7.3).
const IGNORE_CAPS: u64 = 1 << 60;

/// What of its callbacks' words a kernel has in common with 7.3 and not with 6.18.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// It tells the end of a custody, and why a task leaves.
    custody: bool,
    /// It tells the end of the custody of a task that was moved when the task begins to run.
    tells_moved_late: bool,
    /// It says of a current task that is put back that this needs no leave.
    ignores_caps: bool,
}

impl Dialect {
    /// That of `kernel`; `None` if it speaks as 6.18 does.
    #[must_use]
    pub fn of(kernel: Kernel) -> Option<Self> {
        (kernel >= Kernel::V6_19).then_some(Self {
            custody: kernel >= Kernel::V7_1,
            tells_moved_late: kernel == Kernel::V7_1,
            ignores_caps: kernel >= Kernel::V7_3,
        })
    }
}

/// Whether a policy is known to have a task in custody.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Custody {
    Unknown,
    Held,
    Free,
}

/// The callbacks of a later kernel in the words of a 6.18, so that both can be compared by the same
/// means.
///
/// On the way it is checked that they are those of such a kernel: every flag stands in its new
/// place. Since 7.1 a task that leaves for another reason than sleep has `SCX_DEQ_SCHED_CHANGE`,
/// and every custody that `enqueue` begins ends with one `dequeue` before the task runs or is taken
/// back, and no other `dequeue` comes. (All policies of the recordings put a task into a queue of
/// their own in `enqueue`.) The ends of custodies with flags 0, which a 6.18 does not tell, are
/// left out. Since 7.3 a current task that is put back has `SCX_ENQ_IGNORE_CAPS`.
///
/// # Errors
/// The first callback that such a kernel would not have made.
pub fn as_6_18(calls: &[Call], dialect: Dialect) -> Result<Vec<Call>, String> {
    let mut custody = BTreeMap::new();
    let mut told = Vec::new();
    for (call, number) in calls.iter().zip(1..) {
        let wrong = |what: &str| Err(format!("callback {number}, {what}: {call:?}"));
        let name = call.task.name().unwrap_or("");
        let held = custody.entry(name).or_insert(Custody::Unknown);
        let mut call = call.clone();
        if !dialect.custody && matches!(call.op, Op::Quiescent | Op::Dequeue) {
            if call.a & (SCHED_CHANGE | SPECIAL.1) != 0 {
                return wrong("flags of 7.1 or of 6.18");
            }
            call.a = in_old_places(call.a, &[SPECIAL]);
            told.push(call);
            continue;
        }
        match call.op {
            Op::Enqueue | Op::Runnable => {
                if call.op == Op::Runnable && call.a & IGNORE_CAPS != 0 {
                    if !dialect.ignores_caps || call.a & RESTORE == 0 {
                        return wrong("SCX_ENQ_IGNORE_CAPS without a reason");
                    }
                    call.a &= !IGNORE_CAPS;
                }
                if MOVED.iter().any(|(_, old)| call.a & old != 0) {
                    return wrong("a flag in its place of 6.18");
                }
                call.a = in_old_places(call.a, &MOVED);
                if call.op == Op::Enqueue && dialect.custody {
                    *held = Custody::Held;
                }
            }
            Op::Quiescent if *held == Custody::Held => return wrong("in custody"),
            Op::Quiescent => {
                let changes = call.a & SCHED_CHANGE != 0;
                if changes == (call.a & SLEEP != 0) || call.a & SPECIAL.1 != 0 {
                    return wrong("flags of 6.18");
                }
                call.a = in_old_places(call.a & !SCHED_CHANGE, &[SPECIAL]);
            }
            Op::Running if *held == Custody::Held => return wrong("in custody"),
            Op::Dequeue if *held == Custody::Free => return wrong("not in custody"),
            Op::Dequeue => {
                *held = Custody::Free;
                match call.a {
                    0 => continue,
                    CORE_SCHED_EXEC if dialect.tells_moved_late => continue,
                    flags if flags & SCHED_CHANGE == 0 => return wrong("flags of 6.18"),
                    flags => call.a = flags & !SCHED_CHANGE,
                }
            }
            _ => {}
        }
        told.push(call);
    }
    Ok(told)
}

/// `flags` with every bit of `pairs` moved from its new place to its old one.
fn in_old_places(flags: u64, pairs: &[(u64, u64)]) -> u64 {
    let new = pairs.iter().fold(0, |mask, (new, _)| mask | new);
    let set = pairs.iter().filter(|(new, _)| flags & new != 0);
    set.fold(flags & !new, |flags, (_, old)| flags | old)
}

#[cfg(test)]
mod tests {
    use model::SimTime;

    use super::*;
    use crate::call::Who;

    fn of(kernel: Kernel) -> Dialect {
        Dialect::of(kernel).unwrap()
    }

    fn call(op: Op, a: u64) -> Call {
        Call {
            time: SimTime::ZERO,
            cpu: 0,
            current: Who::Idle,
            op,
            task: Who::named("tvA"),
            a,
            b: 0,
        }
    }

    #[test]
    fn a_wakeup_of_7_2_reads_as_one_of_6_18() {
        let calls = [
            call(Op::Runnable, 0x10_0009),
            call(Op::Enqueue, 0x10_0009),
            call(Op::Dequeue, 0),
            call(Op::Running, 5),
            call(Op::Quiescent, 0x1_0009),
        ];
        let told = as_6_18(&calls, of(Kernel::V7_2)).unwrap();
        let words: Vec<(Op, u64)> = told.iter().map(|call| (call.op, call.a)).collect();
        let want = [
            (Op::Runnable, 0x409),
            (Op::Enqueue, 0x409),
            (Op::Running, 5),
            (Op::Quiescent, 0x19),
        ];
        assert_eq!(words, want);
    }

    #[test]
    fn what_a_7_2_would_not_do_is_refused() {
        let refused = [
            vec![call(Op::Enqueue, 9), call(Op::Running, 0)],
            vec![call(Op::Enqueue, 0x409)],
            vec![call(Op::Quiescent, 0xa)],
            vec![call(Op::Quiescent, 0x19)],
            vec![
                call(Op::Enqueue, 9),
                call(Op::Quiescent, SCHED_CHANGE | 0xa),
            ],
            vec![
                call(Op::Enqueue, 9),
                call(Op::Dequeue, 0),
                call(Op::Dequeue, 0),
            ],
            vec![call(Op::Dequeue, 0xa)],
        ];
        for calls in refused {
            assert!(as_6_18(&calls, of(Kernel::V7_2)).is_err(), "{calls:?}");
        }
    }

    #[test]
    fn each_kernel_has_its_own_dialect() {
        let gives_back = [
            call(Op::Runnable, IGNORE_CAPS | 0xa),
            call(Op::Quiescent, 0xa),
        ];
        let told = as_6_18(&gives_back[..1], of(Kernel::V7_3)).unwrap();
        assert_eq!(told[0].a, 0xa);
        assert!(as_6_18(&gives_back[..1], of(Kernel::V7_2)).is_err());
        assert_eq!(
            as_6_18(&gives_back[1..], of(Kernel::V7_0)).unwrap()[0].a,
            0xa
        );
        assert!(as_6_18(&gives_back[1..], of(Kernel::V7_1)).is_err());
        let moved = [
            call(Op::Enqueue, 0xa),
            call(Op::Dequeue, CORE_SCHED_EXEC),
            call(Op::Running, 5),
        ];
        assert_eq!(as_6_18(&moved, of(Kernel::V7_1)).unwrap().len(), 2);
        assert!(as_6_18(&moved, of(Kernel::V7_2)).is_err());
        let changes = [call(Op::Quiescent, SCHED_CHANGE | 0xa)];
        assert!(as_6_18(&changes, of(Kernel::V6_19)).is_err());
        assert!(Dialect::of(Kernel::V6_17).is_none());
    }
}
