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
    /// Causal depth, class, tie and CPU, in this order of weight.
    rank: u64,
    sequence: u64,
    /// What.
    pub what: Pending,
}

impl Entry {
    /// On which CPU.
    #[inline]
    pub const fn cpu(&self) -> CpuId {
        CpuId(self.rank as u16)
    }

    /// What comes first has the least.
    #[inline]
    const fn order(&self) -> (SimTime, u64, u64) {
        (self.time, self.rank, self.sequence)
    }

    /// How many events of the same moment led to it.
    const fn depth(&self) -> u16 {
        (self.rank >> 40) as u16
    }
}

/// Bits of a time that one level of the queue tells apart.
const DIGIT: u32 = 6;
/// Slots of a level.
const SLOTS: usize = 1 << DIGIT;
/// Levels for all bits of a time.
const LEVELS: usize = u64::BITS.div_ceil(DIGIT) as usize;
/// Events that come later than now, sorted only as far as it must be to find the earliest: a radix
/// heap, which uses that time never goes back.
///
/// An event lies at the level of the highest digit in which its time differs from `now`, in the
/// slot of that digit. The earliest event so lies in the first filled slot of the lowest filled
/// level. When that slot has several, the earliest moment among them becomes `now` and the others
/// go to lower levels. So an event moves down at most [`LEVELS`] times, whatever the number of
/// events. A slot keeps its memory: nothing is allocated but for more events than ever before.
///
/// Source: Ahuja, Mehlhorn, Orlin and Tarjan (1990), "Faster Algorithms for the Shortest Path
/// Problem".
struct Later {
    now: u64,
    /// By level and digit.
    slots: Vec<Vec<Entry>>,
    /// Filled slots of each level.
    filled: [u64; LEVELS],
    /// Filled levels.
    levels: u32,
    /// An empty slot's memory, for the slot that is being sorted out.
    spare: Vec<Entry>,
}

impl Later {
    fn new() -> Self {
        Self {
            now: 0,
            slots: vec![Vec::new(); SLOTS * LEVELS],
            filled: [0; LEVELS],
            levels: 0,
            spare: Vec::new(),
        }
    }

    /// Adds an event whose time comes after `now`.
    #[inline]
    fn push(&mut self, entry: Entry) {
        let time = entry.time.as_nanos();
        let level = (time ^ self.now).ilog2() / DIGIT;
        let slot = (time >> (level * DIGIT)) as usize % SLOTS;
        let level = level as usize;
        self.slots[level * SLOTS + slot].push(entry);
        self.filled[level] |= 1 << slot;
        self.levels |= 1 << level;
    }

    /// Some event of the first filled slot.
    #[inline]
    fn likely(&self) -> Option<&Entry> {
        let level = self.levels.trailing_zeros() as usize;
        let slot = self.filled.get(level)?.trailing_zeros() as usize;
        self.slots[level * SLOTS + slot].first()
    }

    /// Moves on to the next moment that has an event. Takes one of its events out; the others, if
    /// there are any, go to `rest`.
    #[inline]
    fn advance(&mut self, rest: &mut BinaryHeap<Now>) -> Option<Entry> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        let slot = self.filled[level].trailing_zeros() as usize;
        self.filled[level] &= !(1 << slot);
        if self.filled[level] == 0 {
            self.levels &= !(1 << level);
        }
        let entries = &mut self.slots[level * SLOTS + slot];
        if entries.len() == 1 {
            let entry = entries.pop()?;
            self.now = entry.time.as_nanos();
            return Some(entry);
        }
        self.sort_out(level * SLOTS + slot, rest)
    }

    /// Makes the earliest time of a slot the present, and takes an event of it out. Others of the
    /// same moment go to `rest`, later ones to lower levels.
    fn sort_out(&mut self, slot: usize, rest: &mut BinaryHeap<Now>) -> Option<Entry> {
        let spare = std::mem::take(&mut self.spare);
        let mut entries = std::mem::replace(&mut self.slots[slot], spare);
        let (mut at, mut first) = (0, *entries.first()?);
        for (other, entry) in entries.iter().enumerate().skip(1) {
            if entry.order() < first.order() {
                (at, first) = (other, *entry);
            }
        }
        self.now = first.time.as_nanos();
        for (other, entry) in entries.iter().enumerate() {
            if entry.time.as_nanos() != self.now {
                self.push(*entry);
            } else if other != at {
                rest.push(Now(*entry));
            }
        }
        entries.clear();
        self.spare = entries;
        Some(first)
    }
}

/// An event of this very moment. The greatest is the one that comes first.
struct Now(Entry);

impl Now {
    /// (causal depth, class, tie, CPU, sequence): design decision "Time".
    const fn key(&self) -> (u64, u64) {
        (self.0.rank, self.0.sequence)
    }
}

impl PartialEq for Now {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Now {}

impl PartialOrd for Now {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Now {
    /// Reversed, because the standard heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// The queue. Events of one moment leave in the order (causal depth, class, tie, CPU, sequence),
/// so a run repeats exactly and an unrelated change reorders nothing.
pub struct EventQueue {
    /// Events of this moment.
    present: BinaryHeap<Now>,
    later: Later,
    sequence: u64,
    ties: Option<Rng>,
    now: SimTime,
    depth: u16,
}

impl EventQueue {
    /// An empty queue. With a `tie_seed` the order of events that the kernel leaves open is drawn.
    pub fn new(tie_seed: Option<u64>) -> Self {
        Self {
            present: BinaryHeap::new(),
            later: Later::new(),
            sequence: 0,
            ties: tie_seed.map(|seed| Rng::new(seed, 0)),
            now: SimTime::ZERO,
            depth: 0,
        }
    }

    /// Adds an event at `time`, which must not lie in the past.
    ///
    /// # Panics
    /// If it does.
    #[inline]
    pub fn push(&mut self, time: SimTime, cpu: CpuId, what: Pending) {
        assert!(
            time >= self.now,
            "{what:?} at {time} lies before {}",
            self.now
        );
        let is_now = time == self.now;
        let depth = if is_now {
            self.depth.saturating_add(1)
        } else {
            0
        };
        let tie = match &mut self.ties {
            Some(rng) if what.is_free() => (rng.next_u64() & 0xffff) as u16,
            _ => 0,
        };
        self.sequence += 1;
        let entry = Entry {
            time,
            rank: u64::from(depth) << 40
                | u64::from(what.class()) << 32
                | u64::from(tie) << 16
                | u64::from(cpu.0),
            sequence: self.sequence,
            what,
        };
        if is_now {
            self.present.push(Now(entry));
        } else {
            self.later.push(entry);
        }
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty() && self.later.levels == 0
    }

    /// Whether the next event is another timer of `cpu` at this very moment: one interrupt
    /// handles all that have expired, and only its end looks at the scheduler.
    #[inline]
    pub fn timer_follows(&self, cpu: CpuId) -> bool {
        self.present
            .peek()
            .is_some_and(|Now(next)| next.cpu() == cpu && next.what.is_timer())
    }

    /// The task whose timer probably expires next. Which one it is does not matter to a run.
    #[inline]
    pub fn likely_timer(&self) -> Option<TaskId> {
        match self.later.likely()?.what {
            Pending::Timer { task, .. } => Some(task),
            _ => None,
        }
    }

    /// Takes the next event out.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        let entry = match self.present.pop() {
            Some(Now(entry)) => entry,
            None => self.later.advance(&mut self.present)?,
        };
        self.now = entry.time;
        self.depth = entry.depth();
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queue: &mut EventQueue) -> Vec<(u64, u16, Pending)> {
        std::iter::from_fn(|| queue.pop())
            .map(|entry| (entry.time.as_nanos(), entry.cpu().0, entry.what))
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

    /// Against a sorted list as the model: times near and far, many of them equal, also now.
    #[test]
    fn events_leave_in_the_order_of_their_keys() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed, 7);
            let mut queue = EventQueue::new(None);
            // Time, class and CPU, and order of entry; all with depth 0.
            let mut model: Vec<(u64, u8, u16, u64)> = Vec::new();
            let (mut now, mut entered) = (0, 0);
            for _ in 0..3_000 {
                if rng.below(5) < 3 {
                    let ahead = 1 + (rng.next_u64() >> (1 + rng.below(63)));
                    // Every other event shares its moment with others.
                    let mask = if rng.below(2) == 0 { !0 } else { !0xfff };
                    let time = (now + ahead.min(1 << 40)) & mask;
                    let time = if time > now { time } else { now + 4096 };
                    let (class, what) = match rng.below(2) {
                        0 => (6, Pending::Tick),
                        _ => (2, Pending::Resume),
                    };
                    let cpu = rng.below(4) as u16;
                    entered += 1;
                    queue.push(SimTime::from_nanos(time), CpuId(cpu), what);
                    model.push((time, class, cpu, entered));
                } else if let Some(first) = model.iter().min().copied() {
                    model.retain(|entry| *entry != first);
                    let entry = queue.pop().expect("the model has one");
                    let got = (entry.time.as_nanos(), entry.what.class(), entry.cpu().0);
                    assert_eq!(got, (first.0, first.1, first.2), "seed {seed}");
                    now = first.0;
                }
                assert_eq!(queue.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn slots_keep_their_memory() {
        let mut queue = EventQueue::new(None);
        let memory = |queue: &EventQueue| {
            let slots = queue.later.slots.iter().chain([&queue.later.spare]);
            slots.map(Vec::capacity).sum::<usize>()
        };
        let mut first = 0;
        for round in 0..200_000 {
            queue.push(SimTime::from_nanos(round * 7 + 1), CpuId(0), Pending::Tick);
            queue.push(SimTime::from_nanos(round * 7 + 3), CpuId(0), Pending::Tick);
            queue.pop();
            queue.pop();
            if round == 100_000 {
                first = memory(&queue);
            }
        }
        assert!(
            memory(&queue) <= first * 3 / 2,
            "{} of {first}",
            memory(&queue)
        );
    }
}
