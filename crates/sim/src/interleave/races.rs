//! Races between callbacks, found without the order that shows them.
//!
//! Two detectors look at every access of programs to memory that others have. *Happens-before*:
//! two accesses to one byte race if nothing orders them: neither one CPU's code nor a lock that one
//! released before the other took it, nor an atomic operation that got a value. *Lock sets*: the
//! accesses to a byte that several CPUs touch and one writes have no lock in common. The first
//! misses what a lock orders that happens to be taken nearby, the second what is ordered otherwise.
//!
//! Sources: Lamport (1978), "Time, Clocks, and the Ordering of Events in a Distributed System";
//! Savage et al. (1997), "Eraser: A Dynamic Data Race Detector for Multithreaded Programs".

use std::collections::{BTreeMap, BTreeSet};

use bpf::{Access, AccessKind, SourceLine};
use model::{CpuId, SimTime};

use super::state::LockKey;

/// Different ranges of bytes that are watched at most.
pub(crate) const MOST_RANGES: usize = 200_000;
/// Accesses and calls whose numbers are kept at most.
const MOST_VISITS: usize = 4_000_000;
/// Pairs of accesses that are kept at most.
const MOST_PAIRS: usize = 10_000;

/// How bad a race may be, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RaceClass {
    /// A callback reads a value and writes it back, and another CPU may write in between.
    LostUpdate,
    /// Two CPUs write.
    TwoWriters,
    /// One CPU writes, others read.
    Reader,
}

/// Two accesses to a variable that nothing keeps apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRace {
    /// The variable, or the map and the offset in its values.
    pub variable: String,
    /// How bad it may be.
    pub class: RaceClass,
    /// The line of the write; of a lost update that of the write that loses another one.
    pub writes: Option<SourceLine>,
    /// The line of the other access.
    pub other: Option<SourceLine>,
    /// Of a lost update: the line that reads the value before.
    pub reads: Option<SourceLine>,
    /// Nothing orders the two.
    pub by_order: bool,
    /// They have no lock in common.
    pub by_locks: bool,
    /// How often it was seen.
    pub count: u64,
    /// Number of the access that writes, when it was seen first: a stall there shows it.
    pub point: u64,
    /// The time of that access.
    pub at: SimTime,
    /// In this run another CPU wrote while a CPU stopped in front of its write; the first time.
    pub met: Option<MetWrite>,
}

/// A CPU stopped in front of a write, and another one wrote there meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetWrite {
    /// The CPU that stopped.
    pub stopped: CpuId,
    /// The one that wrote.
    pub wrote: CpuId,
    /// When it wrote.
    pub time: SimTime,
}

/// What each CPU knows of the others: of CPU N all up to that number of its steps.
type Clock = Vec<u64>;

/// Bytes of an access at most.
const WIDEST: u64 = 8;

/// The bytes that an access touches, at least one and at most [`WIDEST`]: a variable beside
/// another one in the same word is not it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    begin: u64,
    bytes: u64,
}

impl Range {
    fn of(access: &Access) -> Self {
        Self {
            begin: access.address,
            bytes: u64::from(access.bytes).clamp(1, WIDEST),
        }
    }

    /// Those that may have a byte in common with this one, and maybe others.
    fn near(self) -> std::ops::Range<Self> {
        let from = |begin| Self { begin, bytes: 0 };
        from(self.begin.saturating_sub(WIDEST))..from(self.begin.saturating_add(self.bytes))
    }

    /// Whether they have a byte in common.
    const fn meets(self, other: Self) -> bool {
        self.begin < other.begin.saturating_add(other.bytes)
            && other.begin < self.begin.saturating_add(self.bytes)
    }
}

/// What a callback has read: the last access to each range, its number and its operation.
type LastReads = BTreeMap<Range, (u64, u32)>;

/// What a race says of the access that writes.
#[derive(Clone, Copy, Debug)]
struct Writing {
    /// The read of its bytes before it in the same callback.
    read: Option<u32>,
    point: u64,
    at: SimTime,
}

/// An access to memory.
#[derive(Clone, Debug)]
struct Touch {
    range: Range,
    cpu: CpuId,
    step: u64,
    op: u32,
    kind: AccessKind,
    point: u64,
    at: SimTime,
    /// Of a write: the read of its bytes before it in the same callback.
    read: Option<u32>,
    /// Locks that were held.
    held: BTreeSet<LockKey>,
}

/// What accesses to the same bytes left.
#[derive(Clone, Debug, Default)]
struct Trace {
    write: Option<Touch>,
    /// The last one of each CPU.
    reads: BTreeMap<CpuId, Touch>,
    /// Locks that every access had since a second CPU came; `None`: there is one CPU.
    locks: Option<BTreeSet<LockKey>>,
    /// Where atomic operations that get a value meet.
    sync: Clock,
}

/// The accesses to a word of eight bytes, by their numbers.
#[derive(Clone, Debug, Default)]
struct Visits {
    points: Vec<u64>,
    cpu: Option<CpuId>,
    by_several: bool,
    is_written: bool,
}

/// Of two accesses, by their operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    writes: u32,
    other: u32,
    /// Where the first one writes.
    address: u64,
}

#[derive(Clone, Debug)]
struct Seen {
    name: String,
    class: RaceClass,
    read: Option<u32>,
    by_order: bool,
    by_locks: bool,
    count: u64,
    point: u64,
    at: SimTime,
    met: Option<MetWrite>,
}

/// A turn that waits in front of a write.
#[derive(Clone, Copy, Debug)]
struct Paused {
    range: Range,
    op: u32,
    /// The read of its bytes before it in the same callback.
    read: Option<u32>,
    cpu: CpuId,
    point: u64,
    at: SimTime,
}

/// What the detectors know.
#[derive(Clone, Debug)]
pub(crate) struct Races {
    /// The present. Whoever calls for an access writes it.
    pub(crate) now: SimTime,
    clocks: Vec<Clock>,
    locks: BTreeMap<LockKey, Clock>,
    traces: BTreeMap<Range, Trace>,
    /// What lies at an address, as far as it was asked.
    pub(crate) names: BTreeMap<u64, Option<String>>,
    /// Of each turn: the callback, and what it has read.
    reads: BTreeMap<usize, (u64, LastReads)>,
    /// Turns that wait in front of a write.
    paused: BTreeMap<usize, Paused>,
    seen: BTreeMap<Pair, Seen>,
    visits: BTreeMap<u64, Visits>,
    /// Numbers of the calls of the kernel.
    calls: Vec<u64>,
    /// How many numbers are kept.
    kept: usize,
}

impl Races {
    pub fn new(cpus: u16) -> Self {
        let count = usize::from(cpus);
        // Each CPU has done its first step, of which the others know nothing.
        let clock = |cpu: usize| (0..count).map(|other| u64::from(other == cpu)).collect();
        Self {
            now: SimTime::ZERO,
            clocks: (0..count).map(clock).collect(),
            locks: BTreeMap::new(),
            traces: BTreeMap::new(),
            names: BTreeMap::new(),
            reads: BTreeMap::new(),
            paused: BTreeMap::new(),
            seen: BTreeMap::new(),
            visits: BTreeMap::new(),
            calls: Vec::new(),
            kept: 0,
        }
    }

    /// Notes a call of the kernel.
    pub(crate) fn call(&mut self, point: u64) {
        if self.kept < MOST_VISITS {
            self.kept += 1;
            self.calls.push(point);
        }
    }

    /// Numbers of the accesses before which it matters whether another CPU comes in between: those
    /// to words that several CPUs touch and one writes, and the calls of the kernel.
    pub fn conflicts(&self) -> Vec<u64> {
        let words = self.visits.values();
        let words = words.filter(|it| it.by_several && it.is_written);
        let points = words.flat_map(|it| &it.points).chain(&self.calls);
        let mut points: Vec<u64> = points.copied().collect();
        points.sort_unstable();
        points
    }

    /// Notes an access for [`Races::conflicts`].
    fn visit(&mut self, word: u64, (cpu, point): (CpuId, u64), kind: AccessKind) {
        if self.kept >= MOST_VISITS {
            return;
        }
        self.kept += 1;
        let visits = self.visits.entry(word).or_default();
        visits.points.push(point);
        visits.by_several |= visits.cpu.replace(cpu).is_some_and(|last| last != cpu);
        visits.is_written |= kind != AccessKind::Load;
    }

    /// `cpu` takes a lock: it knows what whoever released it knew.
    pub fn take(&mut self, cpu: CpuId, key: LockKey) {
        if let Some(released) = self.locks.get(&key) {
            join(&mut self.clocks[usize::from(cpu.0)], released);
        }
    }

    /// `cpu` releases a lock.
    pub fn release(&mut self, cpu: CpuId, key: LockKey) {
        let own = &mut self.clocks[usize::from(cpu.0)];
        self.locks.insert(key, own.clone());
        own[usize::from(cpu.0)] += 1;
    }

    /// `cpu` takes a lock for a moment.
    pub fn pass(&mut self, cpu: CpuId, key: LockKey) {
        self.take(cpu, key);
        self.release(cpu, key);
    }

    /// Nobody else is in the middle of anything: whatever was is before whatever comes.
    pub fn meet(&mut self) {
        let mut all = self.clocks[0].clone();
        self.clocks.iter().for_each(|clock| join(&mut all, clock));
        for (cpu, clock) in self.clocks.iter_mut().enumerate() {
            clock.clone_from(&all);
            clock[cpu] += 1;
        }
        // Locks of before keep nothing apart from what comes.
        for trace in self.traces.values_mut() {
            *trace = Trace::default();
        }
    }

    /// A turn waits before it writes.
    pub fn pause(&mut self, turn: usize, access: &Access, (cpu, point): (CpuId, u64)) {
        if !matches!(access.kind, AccessKind::Store) {
            return;
        }
        let range = Range::of(access);
        let reads = self.reads.get(&turn);
        let paused = Paused {
            range,
            op: access.at,
            read: reads.and_then(|(_, reads)| read_before(reads, range)),
            cpu,
            point,
            at: self.now,
        };
        self.paused.insert(turn, paused);
    }

    /// It goes on.
    pub fn go_on(&mut self, turn: usize) {
        self.paused.remove(&turn);
    }

    fn knows(&self, cpu: CpuId, touch: &Touch) -> bool {
        self.clocks[usize::from(cpu.0)][usize::from(touch.cpu.0)] >= touch.step
    }

    /// What there is to say of an access, in the turn and callback of these numbers.
    pub(crate) fn look(
        &mut self,
        access: &Access,
        (cpu, point): (CpuId, u64),
        (turn, call): (usize, u64),
        held: &BTreeSet<LockKey>,
    ) {
        let range = Range::of(access);
        let reads = self.reads.entry(turn).or_default();
        if reads.0 != call {
            *reads = (call, BTreeMap::new());
        }
        let read = match access.kind {
            AccessKind::Load => {
                reads.1.insert(range, (point, access.at));
                None
            }
            AccessKind::Store => read_before(&reads.1, range),
            _ => None,
        };
        if self.traces.len() >= MOST_RANGES && !self.traces.contains_key(&range) {
            return;
        }
        self.visit(access.address & !7, (cpu, point), access.kind);
        let index = usize::from(cpu.0);
        if access.kind == AccessKind::Atomic {
            let own = &mut self.clocks[index];
            let sync = &mut self.traces.entry(range).or_default().sync;
            join(own, sync);
            sync.clone_from(own);
            own[index] += 1;
        }
        let touch = Touch {
            range,
            cpu,
            step: self.clocks[index][index],
            op: access.at,
            kind: access.kind,
            point,
            at: self.now,
            read,
            held: held.clone(),
        };
        self.note_met(turn, &touch);
        self.compare(&touch, held);
    }

    /// Whether the access writes what another turn is about to write.
    fn note_met(&mut self, turn: usize, touch: &Touch) {
        if touch.kind == AccessKind::Load {
            return;
        }
        let others = self.paused.iter();
        let met = others.filter(|(other, at)| **other != turn && at.range.meets(touch.range));
        let met: Vec<Paused> = met.map(|(_, at)| *at).collect();
        for paused in met {
            let pair = Pair {
                writes: paused.op,
                other: touch.op,
                address: paused.range.begin,
            };
            let class = if paused.read.is_some() {
                RaceClass::LostUpdate
            } else {
                RaceClass::TwoWriters
            };
            let writes = Writing {
                read: paused.read,
                point: paused.point,
                at: paused.at,
            };
            let met = MetWrite {
                stopped: paused.cpu,
                wrote: touch.cpu,
                time: self.now,
            };
            self.note(pair, class, writes, |seen| {
                seen.met.get_or_insert(met);
            });
        }
    }

    /// Compares an access with those of other CPUs before it that have bytes in common with it.
    fn compare(&mut self, touch: &Touch, held: &BTreeSet<LockKey>) {
        let near = self.traces.range(touch.range.near());
        let met = near.filter(|(range, _)| range.meets(touch.range));
        let met: Vec<Range> = met.map(|(range, _)| *range).collect();
        for range in met {
            self.compare_with(range, touch, held);
        }
        let trace = self.traces.entry(touch.range).or_default();
        if touch.kind == AccessKind::Load {
            trace.reads.insert(touch.cpu, touch.clone());
        } else {
            trace.write = Some(touch.clone());
        }
    }

    /// Compares an access with those of other CPUs before it to the bytes of `range`.
    fn compare_with(&mut self, range: Range, touch: &Touch, held: &BTreeSet<LockKey>) {
        let Some(trace) = self.traces.get_mut(&range) else {
            return;
        };
        let others = trace.write.iter().chain(trace.reads.values());
        let others: Vec<Touch> = others.filter(|it| it.cpu != touch.cpu).cloned().collect();
        if !others.is_empty() {
            match &mut trace.locks {
                None => trace.locks = Some(held.clone()),
                Some(locks) => locks.retain(|key| held.contains(key)),
            }
        }
        let has_none = trace.locks.as_ref().is_some_and(BTreeSet::is_empty);
        // Two accesses under one lock do not race, whatever the other ones do.
        for other in others.iter().filter(|it| it.held.is_disjoint(held)) {
            let unordered = !self.knows(touch.cpu, other);
            if unordered || has_none {
                self.judge((other, touch), (unordered, has_none));
            }
        }
    }

    fn judge(&mut self, (before, now): (&Touch, &Touch), (order, locks): (bool, bool)) {
        use AccessKind::{Atomic, Count, Load, Store};
        let (writes, other) = match (before.kind, now.kind) {
            // Counters lose nothing, and operations in one lose nothing to each other.
            (Count, _) | (_, Count) | (Load, Load) | (Atomic, Atomic | Load) => return,
            (Load, Atomic) => return,
            (Store, Store) if now.read.is_none() && before.read.is_some() => (before, now),
            (_, Store) => (now, before),
            _ => (before, now),
        };
        let class = match (writes.read, other.kind) {
            (Some(_), Store | Atomic) => RaceClass::LostUpdate,
            (None, Store | Atomic) => RaceClass::TwoWriters,
            _ => RaceClass::Reader,
        };
        let pair = Pair {
            writes: writes.op,
            other: other.op,
            address: writes.range.begin,
        };
        let writing = Writing {
            read: writes.read,
            point: writes.point,
            at: writes.at,
        };
        self.note(pair, class, writing, |seen| {
            seen.by_order |= order;
            seen.by_locks |= locks;
            seen.count += 1;
        });
    }

    fn note(
        &mut self,
        pair: Pair,
        class: RaceClass,
        writes: Writing,
        change: impl FnOnce(&mut Seen),
    ) {
        let is_full = self.seen.len() >= MOST_PAIRS && !self.seen.contains_key(&pair);
        let Some(Some(name)) = self.names.get(&pair.address).filter(|_| !is_full) else {
            return;
        };
        let seen = self.seen.entry(pair).or_insert_with(|| Seen {
            name: name.clone(),
            class,
            read: writes.read,
            by_order: false,
            by_locks: false,
            count: 0,
            point: writes.point,
            at: writes.at,
            met: None,
        });
        // The same two lines may meet in callbacks in which the one has read before, and in others.
        if class < seen.class {
            seen.class = class;
            (seen.read, seen.point, seen.at) = (writes.read, writes.point, writes.at);
        }
        change(seen);
    }

    /// What was found, by variable and lines, the worst first.
    pub fn found(&self, place: impl Fn(u32) -> Option<SourceLine>) -> Vec<FoundRace> {
        let mut found: Vec<FoundRace> = Vec::new();
        for (pair, seen) in &self.seen {
            let race = FoundRace {
                variable: seen.name.clone(),
                class: seen.class,
                writes: place(pair.writes),
                other: place(pair.other),
                reads: seen.read.and_then(&place),
                by_order: seen.by_order,
                by_locks: seen.by_locks,
                count: seen.count,
                point: seen.point,
                at: seen.at,
                met: seen.met,
            };
            let same = |it: &&mut FoundRace| {
                it.variable == race.variable && it.writes == race.writes && it.other == race.other
            };
            match found.iter_mut().find(same) {
                Some(known) => {
                    // Its lines are told: those of the worst one.
                    if race.class < known.class || known.reads.is_none() {
                        known.reads.clone_from(&race.reads);
                    }
                    known.count += race.count;
                    known.by_order |= race.by_order;
                    known.by_locks |= race.by_locks;
                    known.met = known.met.or(race.met);
                    known.class = known.class.min(race.class);
                    (known.point, known.at) = (known.point, known.at).min((race.point, race.at));
                }
                None => found.push(race),
            }
        }
        let line = |place: &Option<SourceLine>| place.as_ref().map(|it| (it.file.clone(), it.line));
        found.sort_by_cached_key(|race| {
            let lines = (line(&race.writes), line(&race.other));
            (race.class, race.variable.clone(), lines)
        });
        found
    }
}

/// The last read of bytes of `range` in a callback, of those that it has done.
fn read_before(reads: &LastReads, range: Range) -> Option<u32> {
    let near = reads.range(range.near());
    let met = near.filter(|(read, _)| read.meets(range));
    let last = met.map(|(_, read)| *read).max();
    last.map(|(_, op)| op)
}

fn join(into: &mut Clock, other: &Clock) {
    into.resize(into.len().max(other.len()), 0);
    for (own, other) in into.iter_mut().zip(other) {
        *own = (*own).max(*other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: u64 = 0x1000;

    /// What two CPUs do in turn, each in callbacks of its own: the classes of what is found.
    fn found(steps: &[(u16, AccessKind, u32, &[LockKey])]) -> Vec<(RaceClass, bool, bool)> {
        let mut races = Races::new(2);
        races.names.insert(WORD, Some("x".to_owned()));
        for (point, (cpu, kind, at, locks)) in (1..).zip(steps) {
            let access = Access {
                at: *at,
                kind: *kind,
                address: WORD,
                bytes: 8,
            };
            let held: BTreeSet<_> = locks.iter().copied().collect();
            let cpu = CpuId(*cpu);
            held.iter().for_each(|key| races.take(cpu, *key));
            let turn = (usize::from(cpu.0), u64::from(cpu.0) + 1);
            races.look(&access, (cpu, point), turn, &held);
            held.iter().for_each(|key| races.release(cpu, *key));
        }
        let found = races.found(|_| None);
        found
            .iter()
            .map(|it| (it.class, it.by_order, it.by_locks))
            .collect()
    }

    const LOCK: &[LockKey] = &[LockKey::Spin(8)];

    #[test]
    fn a_value_that_is_read_and_written_back_without_a_lock_is_a_lost_update() {
        use AccessKind::{Load, Store};
        let steps = [
            (0, Load, 1, &[][..]),
            (0, Store, 2, &[]),
            (1, Load, 1, &[]),
            (1, Store, 2, &[]),
        ];
        assert_eq!(found(&steps)[0], (RaceClass::LostUpdate, true, true));
    }

    #[test]
    fn under_one_lock_nothing_is_found() {
        use AccessKind::{Load, Store};
        let steps = [
            (0, Load, 1, LOCK),
            (0, Store, 2, LOCK),
            (1, Load, 1, LOCK),
            (1, Store, 2, LOCK),
        ];
        assert_eq!(found(&steps), []);
    }

    /// A variable that fills half of a word, beside one that an atomic operation changes.
    #[test]
    fn what_lies_beside_a_variable_is_not_it() {
        use AccessKind::{Atomic, Load, Store};
        let mut races = Races::new(2);
        for (address, name) in [(WORD, "head"), (WORD + 4, "tail")] {
            races.names.insert(address, Some(name.to_owned()));
        }
        let mut look = |cpu: u16, kind, (address, bytes), locks: &[LockKey]| {
            let access = Access {
                at: u32::from(cpu),
                kind,
                address,
                bytes,
            };
            let held: BTreeSet<_> = locks.iter().copied().collect();
            let turn = (usize::from(cpu), u64::from(cpu) + 1);
            held.iter().for_each(|key| races.take(CpuId(cpu), *key));
            races.look(&access, (CpuId(cpu), 1), turn, &held);
            held.iter().for_each(|key| races.release(CpuId(cpu), *key));
            races.found(|_| None)
        };
        for cpu in [0, 1] {
            look(cpu, Load, (WORD + 4, 4), LOCK);
            look(cpu, Store, (WORD + 4, 4), LOCK);
            assert_eq!(look(cpu, Atomic, (WORD, 4), &[]), []);
        }
        // But all of the word is both of them.
        let found = look(0, Store, (WORD, 8), &[]);
        assert!(!found.is_empty() && found.iter().all(|it| it.variable == "head"));
    }

    #[test]
    fn counters_lose_nothing() {
        use AccessKind::{Count, Load};
        let steps = [
            (0, Count, 1, &[][..]),
            (1, Count, 1, &[]),
            (1, Load, 2, &[]),
        ];
        assert_eq!(found(&steps), []);
    }

    #[test]
    fn who_writes_while_another_one_stops_in_front_of_its_write_is_told() {
        use AccessKind::{Load, Store};
        let mut races = Races::new(2);
        races.names.insert(WORD, Some("x".to_owned()));
        let access = |kind, at| Access {
            at,
            kind,
            address: WORD,
            bytes: 8,
        };
        let none = BTreeSet::new();
        for cpu in [0, 1] {
            let turn = (usize::from(cpu), u64::from(cpu) + 1);
            races.look(&access(Load, 1), (CpuId(cpu), 1), turn, &none);
            races.look(&access(Store, 2), (CpuId(cpu), 2), turn, &none);
            if cpu == 0 {
                races.pause(0, &access(Store, 2), (CpuId(0), 2));
            }
        }
        let line = |op| SourceLine {
            file: None,
            line: op,
            function: String::new(),
        };
        let found = races.found(|op| Some(line(op)));
        assert!(found.len() > 1, "a read races, too: {found:?}");
        let met: Vec<_> = found.iter().filter_map(|race| race.met).collect();
        let expected = MetWrite {
            stopped: CpuId(0),
            wrote: CpuId(1),
            time: SimTime::ZERO,
        };
        assert_eq!(met, [expected], "by the write alone, not by the read");
        assert_eq!(found[0].class, RaceClass::LostUpdate);
    }

    /// CPU 1 writes before each of these accesses of CPU 0, which are in callbacks of these numbers
    /// and have their operations: what is told of the write 5, and the operation that reads.
    fn told(steps: &[(u64, AccessKind, u32)]) -> (RaceClass, Option<u32>) {
        let mut races = Races::new(2);
        races.names.insert(WORD, Some("x".to_owned()));
        let none = BTreeSet::new();
        let mut look = |(cpu, point): (u16, u64), call: u64, kind, at| {
            let access = Access {
                at,
                kind,
                address: WORD,
                bytes: 8,
            };
            let turn = (usize::from(cpu), call);
            races.look(&access, (CpuId(cpu), point), turn, &none);
        };
        for (point, (call, kind, at)) in (1..).zip(steps) {
            look((1, point), 100, AccessKind::Store, 9);
            look((0, point), *call, *kind, *at);
        }
        let found = races.found(|op| {
            Some(SourceLine {
                file: None,
                line: op,
                function: String::new(),
            })
        });
        let writes = |race: &&FoundRace| race.writes.as_ref().is_some_and(|it| it.line == 5);
        let race = found.iter().find(writes).expect("a race of the write");
        (race.class, race.reads.as_ref().map(|it| it.line))
    }

    #[test]
    fn the_last_read_before_a_write_is_told() {
        use AccessKind::{Load, Store};
        let steps = [(1, Load, 3), (1, Load, 4), (1, Store, 5)];
        assert_eq!(told(&steps), (RaceClass::LostUpdate, Some(4)));
        // A line that looks twice.
        let steps = [(1, Load, 3), (1, Load, 4), (1, Load, 3), (1, Store, 5)];
        assert_eq!(told(&steps), (RaceClass::LostUpdate, Some(3)));
    }

    #[test]
    fn lines_that_lose_an_update_in_some_callbacks_are_told_with_what_they_read() {
        use AccessKind::{Load, Store};
        let steps = [(1, Store, 5), (2, Load, 4), (2, Store, 5)];
        assert_eq!(told(&steps), (RaceClass::LostUpdate, Some(4)));
    }

    #[test]
    fn what_a_lock_nearby_orders_is_found_by_its_locks() {
        use AccessKind::Store;
        // The write of CPU 0 is ordered by a lock that it takes afterwards, as is that of CPU 1.
        let mut races = Races::new(2);
        races.names.insert(WORD, Some("x".to_owned()));
        let access = Access {
            at: 1,
            kind: Store,
            address: WORD,
            bytes: 8,
        };
        let none = BTreeSet::new();
        races.look(&access, (CpuId(0), 1), (0, 1), &none);
        races.release(CpuId(0), LOCK[0]);
        races.take(CpuId(1), LOCK[0]);
        races.look(&access, (CpuId(1), 2), (1, 2), &none);
        let found = races.found(|_| None);
        assert_eq!((found[0].by_order, found[0].by_locks), (false, true));
    }
}
