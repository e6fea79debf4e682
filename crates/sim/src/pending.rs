//! What the simulated machine does later: the events of its queue.

use model::TaskId;

/// An event to come. An event that a change can overtake carries the generation of its object; a
/// stale one is dropped when it comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// The task on the CPU has done its work, unless something took time from it meanwhile.
    WorkDone,
    /// A CPU looks again at what it has to do: a reschedule interrupt came, or stolen time ended.
    Resume,
    /// A sleeping task's timer expires.
    Timer { task: TaskId, generation: u64 },
    /// A deadline task's budget is filled up.
    Replenish { task: TaskId, generation: u64 },
    /// A BPF timer expires: the one that was armed as this number.
    BpfTimer { generation: u64 },
    /// An interrupt source of the workload fires.
    Interrupt { source: usize },
    /// The CPU goes offline or comes back.
    Hotplug { online: bool },
    /// A task of the workload starts.
    Start { task: TaskId },
    /// The periodic tick.
    Tick,
    /// A slice ends before those come who arrive in this moment; see [`crate::textbook`].
    SliceEnd,
    /// An exited task's last reference is dropped after an RCU grace period.
    Reap { task: TaskId },
    /// The policy is attached.
    Attach,
    /// A scheduler is attached below another one, or taken off; see [`crate::sub`].
    Sub { index: usize, comes: bool },
    /// A thread of the scheduler's own program, which had the CPU when the policy was attached, is
    /// a task now and goes on.
    Seat { task: TaskId },
    /// A thread of the scheduler's own program goes on, which takes no CPU.
    Program,
    /// User space gives one of the policy's variables another value.
    Change { index: usize },
    /// A trial does something.
    Intervene { index: usize },
    /// CPUs of one clock get the frequency that was chosen for them.
    Clock { number: u16 },
    /// Tasks wait for a rescue on the CPU; see [`crate::rescues`].
    Rescue,
    /// Active cores are counted, by which turbo goes.
    Turbo,
    /// The watchdog looks for stalled tasks.
    Watchdog,
    /// A turn that waited goes on; see [`crate::interleave`].
    Turn { number: u32 },
    /// The run's time is over.
    End,
}

impl Pending {
    /// Order between events of one moment that do not cause each other. The kernel leaves most of
    /// it open; a phase's end comes before a tick, so that a task that has done its work is not
    /// charged another slice.
    pub const fn class(self) -> u8 {
        match self {
            Self::Attach | Self::Sub { .. } | Self::Seat { .. } => 0,
            Self::WorkDone | Self::Turn { .. } => 1,
            Self::Resume | Self::SliceEnd => 2,
            // High-resolution timers: see `is_of_timers`.
            Self::Timer { .. } | Self::Start { .. } | Self::Replenish { .. } => 3,
            Self::BpfTimer { .. } => 4,
            Self::Interrupt { .. }
            | Self::Hotplug { .. }
            | Self::Program
            | Self::Change { .. }
            | Self::Intervene { .. }
            | Self::Clock { .. }
            | Self::Rescue
            | Self::Turbo => 5,
            Self::Tick => 6,
            Self::Reap { .. } => 7,
            Self::Watchdog => 8,
            Self::End => 9,
        }
    }

    /// Whether the kernel leaves the order between two such events on different CPUs open.
    pub const fn is_free(self) -> bool {
        matches!(
            self,
            Self::Tick | Self::Timer { .. } | Self::BpfTimer { .. }
        )
    }
}

/// Whether the events of a class are expiries of high-resolution timers.
#[inline(always)]
pub const fn is_of_timers(class: u8) -> bool {
    matches!(class, 3 | 4)
}

/// A [`Pending`] as two plain numbers, which are moved in registers. An enum is copied around its
/// tag in pieces, and a load that covers two stores waits until both are done.
#[derive(Clone, Copy, Debug)]
pub struct Packed {
    /// The number of the variant, and above that its task.
    head: u64,
    /// The other number that it carries.
    number: u64,
}

impl Packed {
    /// Numbers of the variants that come most.
    pub const WORK_DONE: u8 = 0;
    pub const RESUME: u8 = 1;
    pub const TIMER: u8 = 2;
    pub const BPF_TIMER: u8 = 3;
    pub const START: u8 = 4;
    pub const TICK: u8 = 5;
    pub const END: u8 = 6;
    pub const SLICE_END: u8 = 19;

    #[inline(always)]
    pub const fn new(what: Pending) -> Self {
        let (variant, task, number) = match what {
            Pending::WorkDone => (Self::WORK_DONE, TaskId(0), 0),
            Pending::Resume => (Self::RESUME, TaskId(0), 0),
            Pending::Timer { task, generation } => (Self::TIMER, task, generation),
            Pending::BpfTimer { generation } => (Self::BPF_TIMER, TaskId(0), generation),
            Pending::Start { task } => (Self::START, task, 0),
            Pending::Tick => (Self::TICK, TaskId(0), 0),
            Pending::End => (Self::END, TaskId(0), 0),
            Pending::Replenish { task, generation } => (7, task, generation),
            Pending::Interrupt { source } => (8, TaskId(0), source as u64),
            Pending::Hotplug { online } => (9, TaskId(0), online as u64),
            Pending::Reap { task } => (10, task, 0),
            Pending::Attach => (11, TaskId(0), 0),
            Pending::Seat { task } => (12, task, 0),
            Pending::Program => (13, TaskId(0), 0),
            Pending::Change { index } => (14, TaskId(0), index as u64),
            Pending::Watchdog => (15, TaskId(0), 0),
            Pending::Intervene { index } => (16, TaskId(0), index as u64),
            Pending::Turn { number } => (17, TaskId(number), 0),
            Pending::Clock { number } => (18, TaskId(0), number as u64),
            Pending::SliceEnd => (Self::SLICE_END, TaskId(0), 0),
            Pending::Sub { index, comes } => (20, TaskId(comes as u32), index as u64),
            Pending::Rescue => (21, TaskId(0), 0),
            Pending::Turbo => (22, TaskId(0), 0),
        };
        let head = variant as u64 | (task.0 as u64) << 32;
        Self { head, number }
    }

    /// The number of the variant.
    #[inline(always)]
    pub const fn variant(self) -> u8 {
        self.head as u8
    }

    /// The task that it is about.
    #[inline(always)]
    pub const fn task(self) -> TaskId {
        TaskId((self.head >> 32) as u32)
    }

    /// The number that it carries beside its task.
    #[inline(always)]
    pub const fn number(self) -> u64 {
        self.number
    }

    /// The event that it was packed from.
    pub const fn unpacked(self) -> Pending {
        let (task, generation) = (self.task(), self.number);
        match self.variant() {
            Self::WORK_DONE => Pending::WorkDone,
            Self::RESUME => Pending::Resume,
            Self::TIMER => Pending::Timer { task, generation },
            Self::BPF_TIMER => Pending::BpfTimer { generation },
            Self::START => Pending::Start { task },
            Self::TICK => Pending::Tick,
            Self::END => Pending::End,
            7 => Pending::Replenish { task, generation },
            8 => Pending::Interrupt {
                source: generation as usize,
            },
            9 => Pending::Hotplug {
                online: generation != 0,
            },
            10 => Pending::Reap { task },
            11 => Pending::Attach,
            12 => Pending::Seat { task },
            13 => Pending::Program,
            14 => Pending::Change {
                index: generation as usize,
            },
            15 => Pending::Watchdog,
            Self::SLICE_END => Pending::SliceEnd,
            17 => Pending::Turn { number: task.0 },
            18 => Pending::Clock {
                number: generation as u16,
            },
            20 => Pending::Sub {
                index: generation as usize,
                comes: task.0 != 0,
            },
            21 => Pending::Rescue,
            22 => Pending::Turbo,
            _ => Pending::Intervene {
                index: generation as usize,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked_as_it_was() {
        let (task, generation) = (TaskId(u32::MAX - 1), u64::MAX - 2);
        let all = [
            Pending::WorkDone,
            Pending::Resume,
            Pending::Timer { task, generation },
            Pending::Replenish { task, generation },
            Pending::BpfTimer { generation },
            Pending::Interrupt { source: usize::MAX },
            Pending::Hotplug { online: true },
            Pending::Hotplug { online: false },
            Pending::Start { task },
            Pending::Tick,
            Pending::Reap { task },
            Pending::Attach,
            Pending::Seat { task },
            Pending::Program,
            Pending::Change { index: usize::MAX },
            Pending::Watchdog,
            Pending::Intervene { index: usize::MAX },
            Pending::Turn { number: u32::MAX },
            Pending::Sub {
                index: 7,
                comes: true,
            },
            Pending::Clock { number: u16::MAX },
            Pending::Turbo,
            Pending::SliceEnd,
            Pending::Rescue,
            Pending::End,
        ];
        for what in all {
            assert_eq!(Packed::new(what).unpacked(), what);
        }
    }
}
