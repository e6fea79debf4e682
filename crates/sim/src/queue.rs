//! Pending events, earliest first.

mod pass;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use model::{CpuId, Rng, SimTime, TaskId};

use crate::pending::{Packed, Pending, is_of_timers};
pub use pass::Planned;

/// When an event comes: two numbers, as a function takes them in registers.
#[derive(Clone, Copy, Debug)]
struct When {
    time: u64,
    /// Causal depth, class, tie and CPU, in this order of weight.
    rank: u64,
}

impl When {
    /// Both as one number, which is compared without a jump. What comes first has the least.
    #[inline(always)]
    const fn key(self) -> u128 {
        (self.time as u128) << 64 | self.rank as u128
    }
}

/// An event in the queue: half a line of the processor's cache.
///
/// No event says when it was added. Of those with the same time and rank each structure keeps the
/// order in which they came.
#[derive(Clone, Copy, Debug)]
pub struct QueueEntry {
    when: When,
    /// What.
    pub what: Packed,
}

const _: () = assert!(size_of::<QueueEntry>() == 32, "two of them fill a line");

impl QueueEntry {
    /// When.
    #[inline(always)]
    pub const fn time(&self) -> SimTime {
        SimTime::from_nanos(self.when.time)
    }

    /// On which CPU.
    #[inline]
    pub const fn cpu(&self) -> CpuId {
        CpuId(self.when.rank as u16)
    }

    #[inline(always)]
    const fn key(&self) -> u128 {
        self.when.key()
    }

    /// How many events of the same moment led to it.
    const fn depth(&self) -> u16 {
        (self.when.rank >> 40) as u16
    }

    /// Whether it is the expiry of a high-resolution timer.
    #[inline(always)]
    const fn is_timer(&self) -> bool {
        is_of_timers((self.when.rank >> 32) as u8)
    }
}

/// Bits of a time that one level of the queue tells apart. With six, the slots of 10,000 timers had
/// 107 events and were sorted into slots of two; with five, most slots fit the front as they are.
const DIGIT: u32 = 5;
/// Slots of a level.
const SLOTS: usize = 1 << DIGIT;
/// Levels for all bits of a time.
const LEVELS: usize = u64::BITS.div_ceil(DIGIT) as usize;
/// Level of the digit that a bit of a time belongs to, and its lowest bit.
const LEVEL_OF: [(u8, u8); u64::BITS as usize] = {
    let mut levels = [(0, 0); u64::BITS as usize];
    let mut bit = 0;
    while bit < u64::BITS {
        let level = bit / DIGIT;
        levels[bit as usize] = (level as u8, (level * DIGIT) as u8);
        bit += 1;
    }
    levels
};
/// Events that are kept in one sorted array at most. A slot with no more than that is sorted as it
/// is.
const FRONT: usize = 64;
/// Events of which it is said beforehand whom they concern, at most so many at a time: what their
/// tasks have need not fit into a processor's cache if there are more.
const SOON: usize = 256;

/// Events that come later than those at the front, sorted only as far as it must be to find the
/// earliest: a radix heap, which uses that time never goes back.
///
/// An event lies at the level of the highest digit in which its time differs from `base`, in the
/// slot of that digit. The earliest event so lies in the first filled slot of the lowest filled
/// level. When that slot has many, the earliest moment among them becomes `base` and all go to
/// lower levels. So an event moves down at most [`LEVELS`] times, whatever the number of events. A
/// slot keeps its memory: nothing is allocated but for more events than ever before.
///
/// Source: Ahuja, Mehlhorn, Orlin and Tarjan (1990), "Faster Algorithms for the Shortest Path
/// Problem".
#[derive(Clone)]
struct Later {
    /// No event here comes before it.
    base: u64,
    /// By level and digit.
    slots: Vec<Vec<QueueEntry>>,
    /// Filled slots of each level.
    filled: [u64; LEVELS],
    /// Filled levels.
    levels: u32,
    /// An empty slot's memory, for the slot that is being sorted out.
    spare: Vec<QueueEntry>,
}

impl Later {
    fn new() -> Self {
        Self {
            base: 0,
            slots: vec![Vec::new(); SLOTS * LEVELS],
            filled: [0; LEVELS],
            levels: 0,
            spare: Vec::new(),
        }
    }

    /// Adds an event whose time does not come before `base`.
    // Built in, so that the event is made in its place.
    #[inline(always)]
    fn push(&mut self, when: When, what: Packed) {
        let time = when.time;
        let (level, shift) = LEVEL_OF[((time ^ self.base) | 1).ilog2() as usize];
        let slot = (time >> shift) as usize % SLOTS;
        let level = usize::from(level);
        self.filled[level] |= 1 << slot;
        self.levels |= 1 << level;
        let entries = &mut self.slots[level * SLOTS + slot];
        if entries.len() == entries.capacity() {
            return push_growing(entries, when, what);
        }
        entries.push(QueueEntry { when, what });
    }

    /// Moves the earliest events to `front`, which is empty: those of a span of time that ends
    /// before the returned one begins. Says in `soon` whom those concern that are near now.
    /// `None` if there are none.
    fn advance(&mut self, front: &mut Vec<QueueEntry>, soon: &mut Soon) -> Option<u64> {
        while self.levels != 0 {
            let level = self.levels.trailing_zeros() as usize;
            let slot = self.filled[level].trailing_zeros() as usize;
            self.filled[level] &= !(1 << slot);
            if self.filled[level] == 0 {
                self.levels &= !(1 << level);
            }
            let entries = &mut self.slots[level * SLOTS + slot];
            if entries.len() <= FRONT || level == 0 {
                let shift = level as u32 * DIGIT;
                // The digits above are those of `base`.
                let begin = entries.first()?.when.time >> shift << shift;
                self.base = begin;
                soon.note(entries);
                soon.note_cpus(entries);
                // The slot gets the memory of the array that is used up.
                std::mem::swap(front, entries);
                // They stand as they were added, and stay so if they have the same time and rank.
                front.sort_by_key(QueueEntry::key);
                let span = 1_u64.checked_shl(shift).unwrap_or(u64::MAX);
                return Some(begin.saturating_add(span));
            }
            self.sort_out(level * SLOTS + slot, soon);
        }
        None
    }

    /// Makes the earliest time of a slot the base; all its events go to lower levels.
    #[inline(never)]
    fn sort_out(&mut self, slot: usize, soon: &mut Soon) {
        let spare = std::mem::take(&mut self.spare);
        let mut entries = std::mem::replace(&mut self.slots[slot], spare);
        let times = entries.iter().map(|entry| entry.when.time);
        self.base = times.min().unwrap_or(self.base);
        soon.note(&entries);
        for entry in &entries {
            self.push(entry.when, entry.what);
        }
        entries.clear();
        self.spare = entries;
    }
}

/// Apart, so that a push which finds room saves no registers for the allocator.
#[cold]
#[inline(never)]
fn push_growing(entries: &mut Vec<QueueEntry>, when: When, what: Packed) {
    entries.push(QueueEntry { when, what });
}

#[cold]
fn draw_tie(rng: &mut Rng) -> u16 {
    (rng.next_u64() & 0xffff) as u16
}

/// Tasks and CPUs of events that come soon.
#[derive(Clone, Default)]
pub struct Soon {
    /// Tasks whose timers expire, in no order, some more than once.
    pub tasks: Vec<TaskId>,
    /// CPUs whose turn comes among the next few events, in no order, some more than once.
    pub cpus: Vec<CpuId>,
    is_wanted: bool,
    are_cpus_wanted: bool,
}

impl Soon {
    /// Says nothing more of what it has said.
    #[inline]
    pub fn clear(&mut self) {
        self.tasks.clear();
        self.cpus.clear();
    }

    /// Notes the CPUs of the next few events.
    #[inline]
    fn note_cpus(&mut self, entries: &[QueueEntry]) {
        if self.are_cpus_wanted {
            self.cpus.extend(entries.iter().map(QueueEntry::cpu));
        }
    }

    #[inline]
    fn note(&mut self, entries: &[QueueEntry]) {
        if self.is_wanted && entries.len() <= SOON {
            let task = |entry: &QueueEntry| match entry.what.variant() {
                Packed::TIMER | Packed::START => Some(entry.what.task()),
                _ => None,
            };
            self.tasks.extend(entries.iter().filter_map(task));
        }
    }
}

/// An event for which there is no room at the front. The greatest is the one that comes first.
#[derive(Clone)]
struct Spilt {
    entry: QueueEntry,
    /// How many were spilt before: a heap keeps no order between equal ones.
    number: u64,
}

impl Spilt {
    const fn order(&self) -> (u128, u64) {
        (self.entry.key(), self.number)
    }
}

impl PartialEq for Spilt {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Spilt {}

impl PartialOrd for Spilt {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Spilt {
    /// Reversed, because the standard heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order())
    }
}

/// The queue. Events of one moment leave in the order (causal depth, class, tie, CPU, sequence),
/// so a run repeats exactly and an unrelated change reorders nothing.
///
/// The next few events stand sorted in an array, of which the first is taken: most events come for
/// this very moment or for one of the next, and few are there at a time. What was taken leaves its
/// place, so that one that comes soon moves what is before it, and one that comes last moves none.
#[derive(Clone)]
pub struct EventQueue {
    /// The first event first, behind `begin` events that were taken.
    front: Vec<QueueEntry>,
    begin: usize,
    /// What `front` had no room for. As long as there is any, nothing is added to `front`, so that
    /// of equal events the one in `front` was added first.
    spilt: BinaryHeap<Spilt>,
    /// Counts those.
    spilt_ever: u64,
    /// All events before this time are in these two, all others in `later`.
    limit: u64,
    later: Later,
    soon: Soon,
    ties: Option<Rng>,
    now: SimTime,
    depth: u16,
}

impl EventQueue {
    /// An empty queue. With a `tie_seed` the order of events that the kernel leaves open is drawn.
    pub fn new(tie_seed: Option<u64>) -> Self {
        Self {
            front: Vec::with_capacity(FRONT),
            begin: 0,
            spilt: BinaryHeap::new(),
            spilt_ever: 0,
            limit: 0,
            later: Later::new(),
            soon: Soon::default(),
            ties: tie_seed.map(|seed| Rng::new(seed, 0)),
            now: SimTime::ZERO,
            depth: 0,
        }
    }

    /// From now on `rng` draws the order of events that the kernel leaves open.
    pub fn draw_ties(&mut self, rng: Rng) {
        self.ties = Some(rng);
    }

    /// Adds an event at `time`, which must not lie in the past.
    ///
    /// # Panics
    /// If it does.
    // Built in everywhere: who calls knows what it is, and so its class.
    #[inline(always)]
    pub fn push(&mut self, time: SimTime, cpu: CpuId, what: Pending) {
        let when = self.place(time, cpu, what);
        self.push_placed(when, Packed::new(what));
    }

    /// The place of an event that is added now.
    #[inline(always)]
    fn place(&mut self, time: SimTime, cpu: CpuId, what: Pending) -> When {
        if time < self.now {
            self.refuse(time, what);
        }
        let depth = if time == self.now {
            self.depth.saturating_add(1)
        } else {
            0
        };
        let tie = match &mut self.ties {
            Some(rng) if what.is_free() => draw_tie(rng),
            _ => 0,
        };
        let rank = u64::from(depth) << 40
            | u64::from(what.class()) << 32
            | u64::from(tie) << 16
            | u64::from(cpu.0);
        let time = time.as_nanos();
        When { time, rank }
    }

    #[inline(always)]
    fn push_placed(&mut self, when: When, what: Packed) {
        if when.time < self.limit {
            self.push_near(when, what);
        } else {
            self.later.push(when, what);
        }
    }

    /// Puts events that are added from now on for this moment behind those that were added before,
    /// as if an event of this moment had led to them.
    pub const fn deepen(&mut self) {
        self.depth += 1;
    }

    /// Undoes [`EventQueue::deepen`].
    pub const fn undeepen(&mut self) {
        self.depth -= 1;
    }

    /// Adds an event that comes before those in `later`.
    #[inline(never)]
    fn push_near(&mut self, when: When, what: Packed) {
        if self.front.len() >= FRONT {
            return self.push_crowded(when, what);
        }
        let key = when.key();
        // What comes behind all others is as frequent as what comes soon.
        if self.front.last().is_none_or(|last| last.key() <= key) {
            if self.front.len() == self.front.capacity() {
                return push_growing(&mut self.front, when, what);
            }
            return self.front.push(QueueEntry { when, what });
        }
        // The nearer end makes room. None may wait: beyond the greatest depth an event may come
        // before the one that was taken last.
        let waiting = &self.front[self.begin..];
        let middle = waiting.get(waiting.len() / 2);
        if self.begin == 0 || middle.is_some_and(|middle| middle.key() <= key) {
            return self.insert_from_behind(when, what);
        }
        let free = self.begin - 1;
        self.begin = free;
        let places = &mut self.front[free..];
        let mut at = 0;
        while at + 1 < places.len() && places[at + 1].key() <= key {
            places[at] = places[at + 1];
            at += 1;
        }
        places[at] = QueueEntry { when, what };
    }

    /// As [`EventQueue::push_near`]: what comes later moves by one place. The last one does.
    #[inline(always)]
    fn insert_from_behind(&mut self, when: When, what: Packed) {
        let key = when.key();
        let Some(&last) = self.front.last() else {
            return;
        };
        self.front.push(last);
        let places = &mut self.front[self.begin..];
        let mut at = places.len() - 2;
        while at > 0 && places[at - 1].key() > key {
            places[at] = places[at - 1];
            at -= 1;
        }
        places[at] = QueueEntry { when, what };
    }

    /// As [`EventQueue::push_near`], with many events at the front or many that were taken.
    #[cold]
    #[inline(never)]
    fn push_crowded(&mut self, when: When, what: Packed) {
        // Moving them all is to be worth it.
        let has_room = self.front.len() - self.begin <= FRONT / 4 * 3;
        if has_room && self.spilt.is_empty() {
            self.front.drain(..self.begin);
            self.begin = 0;
            return self.push_near(when, what);
        }
        let number = self.spilt_ever;
        self.spilt_ever += 1;
        let entry = QueueEntry { when, what };
        self.spilt.push(Spilt { entry, number });
    }

    #[cold]
    fn refuse(&self, time: SimTime, what: Pending) -> ! {
        panic!("{what:?} at {time} lies before {}", self.now)
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.begin == self.front.len() && self.spilt.is_empty() && self.later.levels == 0
    }

    /// Whether timers of the policy are to come, and nothing but what follows from them: no task
    /// can ever wake of that. Looks at all events.
    pub fn has_only_bpf_timers(&self) -> bool {
        let spilt = self.spilt.iter().map(|spilt| &spilt.entry);
        let later = self.later.slots.iter().flatten();
        let front = self.front.iter().skip(self.begin);
        let all = || front.clone().chain(spilt.clone()).chain(later.clone());
        let is_timer = |entry: &QueueEntry| entry.what.variant() == Packed::BPF_TIMER;
        let is_resume = |entry: &QueueEntry| entry.what.variant() == Packed::RESUME;
        all().any(is_timer) && all().all(|entry| is_timer(entry) || is_resume(entry))
    }

    /// Whether the next event is another timer of `cpu` at this very moment: one interrupt
    /// handles all that have expired, and only its end looks at the scheduler.
    #[inline]
    pub fn timer_follows(&self, cpu: CpuId) -> bool {
        let next = if self.spilt.is_empty() {
            self.front.get(self.begin)
        } else {
            self.next_of_many()
        };
        next.is_some_and(|next| next.time() == self.now && next.cpu() == cpu && next.is_timer())
    }

    /// The next event, with some that `front` had no room for.
    #[cold]
    #[inline(never)]
    fn next_of_many(&self) -> Option<&QueueEntry> {
        let near = self.front.get(self.begin);
        match self.spilt.peek() {
            Some(Spilt { entry, .. }) if near.is_none_or(|near| entry.key() < near.key()) => {
                Some(entry)
            }
            _ => near,
        }
    }

    /// From now on [`EventQueue::soon`] says something of tasks, or of CPUs.
    pub const fn tell_soon(&mut self, tasks: bool, cpus: bool) {
        (self.soon.is_wanted, self.soon.are_cpus_wanted) = (tasks, cpus);
    }

    /// Tasks and CPUs of events that come soon, to load their data. The caller clears it. Nothing
    /// of a run may depend on it.
    #[inline]
    pub const fn soon(&mut self) -> &mut Soon {
        &mut self.soon
    }

    /// Whether [`EventQueue::soon`] says anything.
    #[inline]
    pub const fn tells_soon(&self) -> bool {
        !self.soon.tasks.is_empty() || !self.soon.cpus.is_empty()
    }

    /// Takes the next event out, if there is one.
    // As it is: a smaller thing made of it would be put together in memory, at places that do not
    // suit the loads by which it is copied.
    #[inline(always)]
    pub fn advance(&mut self) -> Option<QueueEntry> {
        if !self.spilt.is_empty() {
            return self.advance_spilt();
        }
        if self.begin == self.front.len() && !self.refill() {
            return None;
        }
        let entry = *self.front.get(self.begin)?;
        self.now = entry.time();
        self.depth = entry.depth();
        self.begin += 1;
        Some(entry)
    }

    /// Moves the next few events to the front, where there is none. Whether there are some.
    #[inline(never)]
    fn refill(&mut self) -> bool {
        self.front.clear();
        self.begin = 0;
        match self.later.advance(&mut self.front, &mut self.soon) {
            Some(limit) => {
                self.limit = limit;
                true
            }
            None => false,
        }
    }

    #[cold]
    #[inline(never)]
    fn advance_spilt(&mut self) -> Option<QueueEntry> {
        let near = self.front.get(self.begin).copied();
        let spilt = self.spilt.peek().map(|spilt| spilt.entry.key());
        let entry = match (near, spilt) {
            (Some(near), Some(spilt)) if near.key() <= spilt => {
                self.begin += 1;
                near
            }
            _ => self.spilt.pop()?.entry,
        };
        self.now = entry.time();
        self.depth = entry.depth();
        Some(entry)
    }
}
