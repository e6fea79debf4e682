//! What is kept of rescues: time on a CPU for tasks whose schedulers have no right to it. See
//! [`crate::sub`], which alone changes it.

use std::collections::VecDeque;

use model::{Nanos, SimTime, TaskId};

use crate::schedulers::SchedId;

/// The share of a CPU's time that rescues get where the root does not say it, in thousandths, and
/// the greatest one; a root that says the last number wants none. (`SCX_RESCUE_DFL_BW_PPT`,
/// `SCX_RESCUE_MAX_BW_PPT` and `SCX_RESCUE_DISABLE`, kernel/sched/ext/types.h, kernel 7.3; so all
/// below.)
const USUAL_SHARE: u32 = 20;
const MOST_SHARE: u32 = 250;
const NONE: u32 = u32::MAX;
/// How long a task runs at once, microseconds: where the root does not say it, and its limits.
const USUAL_QUANTUM: u32 = 5_000;
const LEAST_QUANTUM: u32 = 1_000;
const MOST_QUANTUM: u32 = 100_000;
/// The shortest slice, nanoseconds.
const LEAST_SLICE: u64 = 1_000_000;
/// After so many periods somebody has waited for too long, but neither sooner nor later than this.
const OVERLOAD_PERIODS: u64 = 16;
const OVERLOAD_LEAST: u64 = 1_000_000_000;
const OVERLOAD_MOST: u64 = 15_000_000_000;

/// What the root says of rescues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RescueKnobs {
    /// The share of a CPU's time, in 1/1024.
    share: u64,
    /// How long a task runs at once, nanoseconds.
    pub quantum: u64,
}

impl RescueKnobs {
    /// Those of a root with this `rescue_bandwidth_ppt` and `rescue_quantum_us`; `None` if it wants
    /// no rescues. What is out of range is taken for the nearest that is in it.
    pub fn of(share: u32, quantum: u32) -> Option<Self> {
        let or = |given: u32, usual| if given == 0 { usual } else { given };
        let quantum = or(quantum, USUAL_QUANTUM).clamp(LEAST_QUANTUM, MOST_QUANTUM);
        (share != NONE).then(|| Self {
            share: u64::from(or(share, USUAL_SHARE).min(MOST_SHARE)) * 1024 / 1000,
            quantum: u64::from(quantum) * 1000,
        })
    }

    /// The slice of a task that is admitted while so many wait, itself among them.
    pub fn slice(self, waiting: usize, tick: Nanos) -> u64 {
        let part = self.quantum / waiting.max(1) as u64;
        part.max(LEAST_SLICE).max(tick.get())
    }

    /// How long somebody may wait.
    pub fn patience(self) -> u64 {
        let period = self.quantum * 1024 / self.share.max(1);
        (OVERLOAD_PERIODS * period).clamp(OVERLOAD_LEAST, OVERLOAD_MOST)
    }
}

/// Rescues on one CPU.
#[derive(Clone, Debug)]
pub(crate) struct Rescues {
    /// Time that may be given, nanoseconds; below zero after a task that took more.
    budget: i64,
    /// The part of a nanosecond that is there, too, in 1/1024.
    rest: u64,
    /// When that was true.
    at: SimTime,
    /// Those that wait, with the moments in which they came. Who has left the queue is still here.
    pub waiting: VecDeque<(TaskId, SimTime)>,
    /// Who was admitted last, and how much it had executed by then, until that is paid for.
    pub admitted: Option<(TaskId, u64)>,
    /// The timer will expire.
    pub is_armed: bool,
    /// What tasks of each scheduler got, nanoseconds; older use counts less.
    used: Vec<(SchedId, u64)>,
    /// When that was made less for the last time.
    faded: SimTime,
}

impl Rescues {
    /// None so far: all that can be saved is there.
    pub const fn new() -> Self {
        Self {
            budget: i64::MAX,
            rest: 0,
            at: SimTime::ZERO,
            waiting: VecDeque::new(),
            admitted: None,
            is_armed: false,
            used: Vec::new(),
            faded: SimTime::ZERO,
        }
    }

    /// Adds what has come until `now`. One quantum is saved, three while somebody waits.
    pub fn accrue(&mut self, now: SimTime, knobs: RescueKnobs) {
        let gained = now.since(self.at).get().saturating_mul(knobs.share) + self.rest;
        (self.at, self.rest) = (now, gained % 1024);
        let gained = i64::try_from(gained / 1024).unwrap_or(i64::MAX);
        let quanta = if self.waiting.is_empty() { 1 } else { 3 };
        let most = (quanta * knobs.quantum).cast_signed();
        self.budget = self.budget.saturating_add(gained).min(most);
        // Half of it counts after each of the longest waits.
        while now.since(self.faded).get() >= knobs.patience() {
            self.faded = self.faded + Nanos::new(knobs.patience());
            self.used.iter_mut().for_each(|(_, used)| *used /= 2);
        }
    }

    /// Whether there is so much.
    pub fn has(&self, span: u64) -> bool {
        self.missing(span) == 0
    }

    fn missing(&self, span: u64) -> u64 {
        let missing = span.cast_signed().saturating_sub(self.budget);
        missing.max(0).cast_unsigned()
    }

    /// How long it takes until there is so much; at least a quarter of a quantum.
    pub fn delay(&self, span: u64, knobs: RescueKnobs) -> Nanos {
        let missing = self.missing(span).saturating_mul(1024);
        let missing = missing.saturating_sub(self.rest);
        Nanos::new(missing.div_ceil(knobs.share.max(1)).max(knobs.quantum / 4))
    }

    /// A task of `who` has got so much.
    pub fn pay(&mut self, who: SchedId, span: u64) {
        self.budget = self.budget.saturating_sub_unsigned(span);
        match self.used.iter_mut().find(|(id, _)| *id == who) {
            Some((_, used)) => *used += span,
            None => self.used.push((who, span)),
        }
    }

    /// Who got most lately, of those for which `counts` holds, and how much.
    pub fn greediest(&self, counts: impl Fn(SchedId) -> bool) -> Option<(SchedId, u64)> {
        let all = self.used.iter().copied().filter(|(id, _)| counts(*id));
        all.rev().max_by_key(|(_, used)| *used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> SimTime {
        SimTime::from_nanos(ms * MS)
    }

    #[test]
    fn a_root_says_how_much_or_nothing() {
        let usual = RescueKnobs::of(0, 0).expect("they are on");
        assert_eq!((usual.share, usual.quantum), (20, 5 * MS));
        assert_eq!(usual.patience(), 16 * 256 * MS);
        assert_eq!(RescueKnobs::of(u32::MAX, 0), None);
        let most = RescueKnobs::of(900, 1).expect("they are on");
        assert_eq!((most.share, most.quantum), (256, MS));
        assert_eq!(most.patience(), OVERLOAD_LEAST);
        assert_eq!(usual.slice(1, Nanos::from_millis(4)), 5 * MS);
        assert_eq!(usual.slice(3, Nanos::from_millis(1)), 5 * MS / 3);
        assert_eq!(usual.slice(9, Nanos::from_millis(4)), 4 * MS);
    }

    #[test]
    fn what_was_taken_comes_back_by_and_by() {
        let knobs = RescueKnobs::of(0, 0).expect("they are on");
        let mut rescues = Rescues::new();
        rescues.accrue(at(0), knobs);
        assert!(rescues.has(5 * MS) && !rescues.has(5 * MS + 1));
        rescues.pay(SchedId::ROOT, 8 * MS);
        // 3 ms too many, and the next 5 ms: 8 ms at 20/1024 of the time.
        assert_eq!(rescues.delay(5 * MS, knobs).get(), 8 * MS * 1024 / 20);
        rescues.accrue(at(409), knobs);
        assert!(!rescues.has(5 * MS));
        rescues.accrue(at(410), knobs);
        assert!(rescues.has(5 * MS));
        assert_eq!(rescues.delay(5 * MS, knobs).get(), 5 * MS / 4);
        // Nobody waits: no more is saved.
        rescues.accrue(at(5_000), knobs);
        assert!(!rescues.has(5 * MS + 1));
        rescues.waiting.push_back((TaskId(0), at(5_000)));
        rescues.accrue(at(50_000), knobs);
        assert!(rescues.has(15 * MS) && !rescues.has(15 * MS + 1));
    }

    #[test]
    fn use_long_ago_counts_less() {
        let knobs = RescueKnobs::of(0, 0).expect("they are on");
        let mut all = crate::schedulers::PerSched::new(());
        let (first, second) = (all.add(()), all.add(()));
        let mut rescues = Rescues::new();
        rescues.pay(first, 10 * MS);
        rescues.accrue(at(9_000), knobs);
        rescues.pay(second, 4 * MS);
        assert_eq!(rescues.greediest(|_| true), Some((second, 4 * MS)));
        let others = rescues.greediest(|id| id != second);
        assert_eq!(others, Some((first, 10 * MS / 4)));
    }
}
