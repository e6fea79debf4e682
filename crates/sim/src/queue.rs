//! Pending events, earliest first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use model::{CpuId, Rng, SimTime, TaskId};

/// What will happen. Whoever can be overtaken by a change carries the generation of the thing it
/// speaks of; a stale event is dropped when it comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// The task on the CPU has done its work.
    WorkDone { generation: u64 },
    /// A CPU looks again at what it has to do: a reschedule interrupt came, or stolen time ended.
    Resume,
    /// A sleeping task's timer expires.
    Timer { task: TaskId, generation: u64 },
    /// A BPF timer expires.
    BpfTimer { address: u64, generation: u64 },
    /// An interrupt source of the workload fires.
    Interrupt { source: usize },
    /// The CPU goes offline or comes back.
    Hotplug { online: bool },
    /// A task of the workload starts.
    Start { task: TaskId },
    /// The periodic tick.
    Tick,
    /// An exited task's last reference is dropped after an RCU grace period.
    Reap { task: TaskId },
    /// The policy is attached.
    Attach,
    /// The watchdog looks for stalled tasks.
    Watchdog,
    /// The run's time is over.
    End,
}

impl Pending {
    /// Order between events of one moment that do not cause each other. The kernel leaves most of
    /// it open; a phase's end comes before a tick, so that a task that has done its work is not
    /// charged another slice.
    const fn class(self) -> u8 {
        match self {
            Self::Attach => 0,
            Self::WorkDone { .. } => 1,
            Self::Resume => 2,
            Self::Timer { .. } | Self::Start { .. } => 3,
            Self::BpfTimer { .. } => 4,
            Self::Interrupt { .. } | Self::Hotplug { .. } => 5,
            Self::Tick => 6,
            Self::Reap { .. } => 7,
            Self::Watchdog => 8,
            Self::End => 9,
        }
    }

    /// Whether this is the expiry of a high-resolution timer.
    pub const fn is_timer(self) -> bool {
        matches!(
            self,
            Self::Timer { .. } | Self::Start { .. } | Self::BpfTimer { .. }
        )
    }

    /// Whether the kernel leaves the order between two such events on different CPUs open.
    const fn is_free(self) -> bool {
        matches!(
            self,
            Self::Tick | Self::Timer { .. } | Self::BpfTimer { .. }
        )
    }
}

/// An event in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// When.
    pub time: SimTime,
    /// On which CPU.
    pub cpu: CpuId,
    /// What.
    pub what: Pending,
    /// How many events of the same moment led to it.
    pub depth: u16,
    tie: u16,
    sequence: u64,
}

impl Entry {
    /// (time, causal depth, class, tie, CPU, sequence): design decision "Time".
    const fn key(&self) -> (u64, u64, u64) {
        let rank = (self.depth as u64) << 40
            | (self.what.class() as u64) << 32
            | (self.tie as u64) << 16
            | self.cpu.0 as u64;
        (self.time.as_nanos(), rank, self.sequence)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// Reversed, because the standard heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// The queue. Events of one moment leave in the order (causal depth, class, tie, CPU, sequence),
/// so a run repeats exactly and an unrelated change reorders nothing.
pub struct EventQueue {
    heap: BinaryHeap<Entry>,
    sequence: u64,
    ties: Option<Rng>,
    now: SimTime,
    depth: u16,
}

impl EventQueue {
    /// An empty queue. With a `tie_seed` the order of events that the kernel leaves open is drawn.
    pub fn new(tie_seed: Option<u64>) -> Self {
        Self {
            heap: BinaryHeap::new(),
            sequence: 0,
            ties: tie_seed.map(|seed| Rng::new(seed, 0)),
            now: SimTime::ZERO,
            depth: 0,
        }
    }

    /// Adds an event at `time`, which must not lie in the past.
    pub fn push(&mut self, time: SimTime, cpu: CpuId, what: Pending) {
        debug_assert!(
            time >= self.now,
            "{what:?} at {time} lies before {}",
            self.now
        );
        let depth = if time == self.now {
            self.depth.saturating_add(1)
        } else {
            0
        };
        let tie = match &mut self.ties {
            Some(rng) if what.is_free() => (rng.next_u64() & 0xffff) as u16,
            _ => 0,
        };
        self.sequence += 1;
        self.heap.push(Entry {
            time,
            cpu,
            what,
            depth,
            tie,
            sequence: self.sequence,
        });
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Whether the next event is another timer of `cpu` at this very moment: one interrupt
    /// handles all that have expired, and only its end looks at the scheduler.
    pub fn timer_follows(&self, cpu: CpuId) -> bool {
        self.heap
            .peek()
            .is_some_and(|next| next.time == self.now && next.cpu == cpu && next.what.is_timer())
    }

    /// Takes the next event out.
    pub fn pop(&mut self) -> Option<Entry> {
        let entry = self.heap.pop()?;
        self.now = entry.time;
        self.depth = entry.depth;
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queue: &mut EventQueue) -> Vec<(u64, u16, Pending)> {
        std::iter::from_fn(|| queue.pop())
            .map(|entry| (entry.time.as_nanos(), entry.cpu.0, entry.what))
            .collect()
    }

    #[test]
    fn events_of_one_moment_leave_by_class_then_cpu_then_order_of_entry() {
        let mut queue = EventQueue::new(None);
        let at = SimTime::from_nanos;
        queue.push(at(5), CpuId(1), Pending::Tick);
        queue.push(at(5), CpuId(0), Pending::Tick);
        queue.push(at(5), CpuId(3), Pending::WorkDone { generation: 0 });
        queue.push(at(1), CpuId(9), Pending::Watchdog);
        assert_eq!(
            order(&mut queue),
            [
                (1, 9, Pending::Watchdog),
                (5, 3, Pending::WorkDone { generation: 0 }),
                (5, 0, Pending::Tick),
                (5, 1, Pending::Tick),
            ]
        );
    }

    #[test]
    fn an_effect_comes_after_everything_that_did_not_depend_on_its_cause() {
        let mut queue = EventQueue::new(None);
        let at = SimTime::from_nanos;
        queue.push(at(5), CpuId(0), Pending::WorkDone { generation: 0 });
        queue.push(at(5), CpuId(0), Pending::Tick);
        queue.pop();
        queue.push(at(5), CpuId(1), Pending::Resume);
        assert_eq!(
            order(&mut queue),
            [(5, 0, Pending::Tick), (5, 1, Pending::Resume)]
        );
    }

    #[test]
    fn a_tie_seed_permutes_only_what_the_kernel_leaves_open() {
        let run = |seed| {
            let mut queue = EventQueue::new(seed);
            for cpu in 0..8 {
                queue.push(SimTime::from_nanos(4), CpuId(cpu), Pending::Tick);
                queue.push(SimTime::from_nanos(4), CpuId(cpu), Pending::Resume);
            }
            order(&mut queue)
        };
        let (plain, drawn) = (run(None), run(Some(3)));
        assert_ne!(plain, drawn);
        assert_eq!(drawn, run(Some(3)));
        assert_eq!(plain[..8], drawn[..8], "reschedules keep their order");
    }
}
