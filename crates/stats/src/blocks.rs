//! What tasks went through in stretches of time of equal length.

use std::collections::{BTreeMap, BTreeSet};

use model::growth::Level;
use model::{
    Event, EventMask, Header, Nanos, PrevState, SimTime, Sink, TaskId, WakeCause, Wakeup, What,
};

/// Blocks may go on beyond the length that was told by this factor; what comes later counts as the
/// last one.
const BEYOND: u64 = 64;

/// Spans of one kind: lengths in nanoseconds, rounded by less than 1/32 of them, and how often each
/// occurs.
pub type BlockLengths = BTreeMap<u64, u64>;

/// The kinds of spans that a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spans {
    /// From a wakeup to a CPU.
    Wait,
    /// Every wait for a CPU: after wakeups, at the start, after preemptions.
    Delay,
    /// From a wakeup or the start to the next sleep.
    Response,
}

/// What the tasks of a family went through in one stretch of time. A span counts where it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    spans: [BlockLengths; 3],
    /// How often a task left its CPU and could have gone on.
    pub preemptions: u64,
    /// How often a task's CPU changed.
    pub migrations: u64,
    /// CPU time in nanoseconds.
    pub run: u64,
}

impl Block {
    /// The spans of one kind that ended here.
    #[must_use]
    pub const fn spans(&self, kind: Spans) -> &BlockLengths {
        &self.spans[kind as usize]
    }

    fn add(&mut self, kind: Spans, span: Nanos) {
        let ns = span.get();
        // The five bits after the first stay, and stand for the middle of what they cover.
        let shift = ns.max(1).ilog2().saturating_sub(5);
        let kept = ns >> shift << shift;
        let middle = kept + (1 << shift >> 1);
        *self.spans[kind as usize].entry(middle).or_default() += 1;
    }

    /// Adds all of another block.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.spans.iter_mut().zip(&other.spans) {
            for (length, count) in theirs {
                *ours.entry(*length).or_default() += count;
            }
        }
        self.preemptions += other.preemptions;
        self.migrations += other.migrations;
        self.run += other.run;
    }
}

/// Tasks of one name, numbers apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFamily {
    /// Its name.
    pub name: String,
    /// Results, block by block.
    pub blocks: Vec<Block>,
}

/// A part of a run: every family, with equally many blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Half {
    /// The families, by name.
    pub families: BTreeMap<String, Vec<Block>>,
    /// How long each block lasted, in nanoseconds.
    pub lengths: Vec<u64>,
    /// The families whose waits grow with the duration of the whole run, because the queue of
    /// forked tasks still grew when it ended.
    pub grown: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Wakeup,
    Start,
    Preemption,
    /// It waited before anything was known of it.
    Before,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockState {
    Asleep,
    Ready(SimTime, Cause),
    Running(SimTime),
}

#[derive(Clone, Copy, Debug)]
struct BlockTask {
    family: usize,
    state: BlockState,
    /// Since when it has not slept, if that is known.
    awake: Option<SimTime>,
    started: bool,
    /// The wait that ended when it got its CPU, until its turn has shown that it is not empty.
    waited: Option<BlockWait>,
    /// In its turn it ran, or did something that events tell of.
    worked: bool,
}

/// A wait that is over.
#[derive(Clone, Copy, Debug)]
struct BlockWait {
    ended: SimTime,
    length: Nanos,
    cause: Cause,
}

/// Spans of turns in which a task ran nothing, and did nothing that events tell of.
#[derive(Clone, Debug, Default)]
struct BlockEmptyTurns {
    blocks: Vec<Block>,
    turns: u64,
}

/// Collects what tasks go through, in blocks. docs/events.md says where each span begins and ends.
///
/// Memory grows with the families and the lengths of spans that occur, not with the events.
#[derive(Debug)]
pub struct Blocks {
    length: u64,
    count: u64,
    family_of: fn(&str) -> &str,
    families: Vec<TaskFamily>,
    /// By family, what is in no block unless the family has nothing else.
    empty: Vec<BlockEmptyTurns>,
    of_group: Vec<usize>,
    tasks: Vec<BlockTask>,
    end: SimTime,
    /// Tasks that run or wait for a CPU.
    runnable: Level,
    /// Tasks that nobody forked: so many can be runnable without that a queue grows.
    roots: u64,
    /// Families with tasks that somebody forked.
    forked: BTreeSet<usize>,
    /// Those whose waits grow with the duration; known at the end.
    grown: BTreeSet<String>,
}

impl Blocks {
    /// So many blocks in a run of this length, both at least 1. `family_of` makes a family's name
    /// of that of a group.
    #[must_use]
    pub fn new(length: Nanos, count: usize, family_of: fn(&str) -> &str) -> Self {
        Self {
            length: length.get().max(1),
            count: (count as u64).max(1),
            family_of,
            families: Vec::new(),
            empty: Vec::new(),
            of_group: Vec::new(),
            tasks: Vec::new(),
            end: SimTime::ZERO,
            runnable: Level::default(),
            roots: 0,
            forked: BTreeSet::new(),
            grown: BTreeSet::new(),
        }
    }

    /// The last moment of the run.
    #[must_use]
    pub const fn end(&self) -> SimTime {
        self.end
    }

    /// The blocks from number `from` on, so many of them, those that never came as empty ones.
    #[must_use]
    pub fn part(&self, from: usize, count: usize) -> Half {
        let of = |family: &TaskFamily| {
            let its = (from..from + count).map(|at| family.blocks.get(at).cloned());
            (
                family.name.clone(),
                its.map(Option::unwrap_or_default).collect(),
            )
        };
        Half {
            families: self.families.iter().map(of).collect(),
            lengths: (from..from + count).map(|at| self.lasted(at)).collect(),
            grown: self.grown.clone(),
        }
    }

    /// The whole run as so many blocks, whatever its length was.
    #[must_use]
    pub fn whole(&self, count: usize) -> Half {
        let last = self.place(self.end.as_nanos().saturating_sub(1));
        let all = self.part(0, last + 1);
        let cut = |at: usize| at * all.lengths.len() / count;
        let parts = || (0..count).map(|at| cut(at)..cut(at + 1));
        let together = |blocks: &[Block]| {
            let mut sum = Block::default();
            blocks.iter().for_each(|it| sum.merge(it));
            sum
        };
        let families = all.families.iter().map(|(name, blocks)| {
            let merged = parts().map(|part| together(&blocks[part]));
            (name.clone(), merged.collect())
        });
        Half {
            families: families.collect(),
            lengths: parts().map(|part| all.lengths[part].iter().sum()).collect(),
            grown: self.grown.clone(),
        }
    }

    fn begin_of(&self, at: usize) -> u64 {
        let begin = u128::from(self.length) * at as u128 / u128::from(self.count);
        u64::try_from(begin).unwrap_or(u64::MAX)
    }

    fn lasted(&self, at: usize) -> u64 {
        let end = self.end.as_nanos();
        let is_last = at as u64 + 1 == self.count * BEYOND;
        let until = if is_last {
            end
        } else {
            end.min(self.begin_of(at + 1))
        };
        until.saturating_sub(self.begin_of(at))
    }

    /// The block of a moment.
    fn place(&self, ns: u64) -> usize {
        let mut at = u128::from(ns) * u128::from(self.count) / u128::from(self.length);
        at = at.min(u128::from(self.count * BEYOND - 1));
        let at = usize::try_from(at).expect("limited above");
        // The begin of a block is rounded down, so that the next one may have begun.
        if ns >= self.begin_of(at + 1) && (at as u64) + 1 < self.count * BEYOND {
            at + 1
        } else {
            at
        }
    }

    fn block(&mut self, family: usize, at: usize) -> &mut Block {
        block_of(&mut self.families[family].blocks, at)
    }

    fn at(&mut self, family: usize, time: SimTime) -> &mut Block {
        let at = self.place(time.as_nanos());
        self.block(family, at)
    }

    /// `task`, if it is one, did something that others see, though it may take no time.
    fn acted(&mut self, task: TaskId) {
        if let Some(task) = self.tasks.get_mut(task.index()) {
            task.worked = true;
        }
    }

    /// Books what a task has run until `now`.
    fn settle(&mut self, task: usize, now: SimTime) {
        let Some(BlockTask {
            family,
            state: BlockState::Running(since),
            ..
        }) = self.tasks.get(task).copied()
        else {
            return;
        };
        self.tasks[task].worked |= since < now;
        let (mut from, until) = (since.as_nanos(), now.as_nanos());
        while from < until {
            let at = self.place(from);
            let is_last = at as u64 + 1 == self.count * BEYOND;
            let next = if is_last {
                until
            } else {
                until.min(self.begin_of(at + 1))
            };
            self.block(family, at).run += next - from;
            from = next;
        }
        self.tasks[task].state = BlockState::Running(since.max(now));
    }

    fn take(&mut self, event: &Event) {
        let task = event.task.index();
        match event.what() {
            What::New { group, parent, .. } => {
                let family = self.of_group.get(group as usize).copied().unwrap_or(0);
                self.acted(parent);
                if parent == TaskId::NONE {
                    self.roots += 1;
                } else {
                    self.forked.insert(family);
                }
                self.tasks.push(BlockTask {
                    family,
                    state: BlockState::Asleep,
                    awake: None,
                    started: false,
                    waited: None,
                    worked: false,
                });
            }
            What::Wakeup(wakeup) => {
                self.acted(wakeup.waker);
                self.woken(event, wakeup);
            }
            What::SpanEnd { .. } | What::Deadline { .. } | What::Count { .. } => {
                self.acted(event.task);
            }
            What::Switch {
                prev,
                state,
                overhead,
            } => {
                self.left(prev, state, event.time);
                self.runs(event.task, event.time, overhead);
            }
            What::Steal { span } => {
                self.settle(task, event.time);
                if let Some(BlockState::Running(since)) =
                    self.tasks.get_mut(task).map(|it| &mut it.state)
                {
                    *since = (*since).max(event.time + span);
                }
            }
            What::Migrate { .. } => {
                if let Some(moved) = self.tasks.get(task).filter(|it| it.started) {
                    let family = moved.family;
                    self.at(family, event.time).migrations += 1;
                }
            }
            _ => {}
        }
    }

    fn woken(&mut self, event: &Event, wakeup: Wakeup) {
        let Some(task) = self.tasks.get_mut(event.task.index()) else {
            return;
        };
        if task.state != BlockState::Asleep {
            return;
        }
        let is_first = !std::mem::replace(&mut task.started, true);
        let is_child = wakeup.new;
        let was_there =
            wakeup.cause == WakeCause::Before || event.time == SimTime::ZERO && !is_child;
        let cause = match () {
            () if is_first && was_there => Cause::Before,
            () if is_child => Cause::Start,
            () => Cause::Wakeup,
        };
        task.state = BlockState::Ready(event.time, cause);
        task.awake = (cause != Cause::Before).then_some(event.time);
        self.runnable.step(event.time, true);
    }

    /// `prev` left its CPU.
    fn left(&mut self, prev: TaskId, state: PrevState, now: SimTime) {
        let prev = prev.index();
        self.settle(prev, now);
        if let Some(mut task) = self.tasks.get(prev).copied() {
            if (task.state == BlockState::Asleep) != (state != PrevState::Runnable) {
                self.runnable.step(now, state == PrevState::Runnable);
            }
            let goes_on = state == PrevState::Runnable;
            let is_woken = |it: BlockWait| it.cause != Cause::Preemption;
            let is_empty = !task.worked && !goes_on && task.waited.is_some_and(is_woken);
            if let Some(wait) = task.waited.take() {
                self.add_wait(task.family, wait, is_empty);
            }
            if goes_on {
                self.at(task.family, now).preemptions += 1;
                task.state = BlockState::Ready(now, Cause::Preemption);
            } else {
                if let Some(since) = task.awake.take() {
                    let block = self.spans_at(task.family, now, is_empty);
                    block.add(Spans::Response, now.since(since));
                }
                task.state = BlockState::Asleep;
            }
            self.tasks[prev] = task;
        }
    }

    /// Where spans go that end at `time`.
    fn spans_at(&mut self, family: usize, time: SimTime, is_empty: bool) -> &mut Block {
        if is_empty {
            let at = self.place(time.as_nanos());
            block_of(&mut self.empty[family].blocks, at)
        } else {
            self.at(family, time)
        }
    }

    /// A turn has shown what it was, `is_empty` or not, before which a task had waited.
    fn add_wait(&mut self, family: usize, wait: BlockWait, is_empty: bool) {
        self.empty[family].turns += u64::from(is_empty);
        let block = self.spans_at(family, wait.ended, is_empty);
        block.add(Spans::Delay, wait.length);
        if wait.cause == Cause::Wakeup {
            block.add(Spans::Wait, wait.length);
        }
    }

    /// `next` got a CPU.
    fn runs(&mut self, next: TaskId, now: SimTime, overhead: Nanos) {
        let next = next.index();
        let Some(mut task) = self.tasks.get(next).copied() else {
            return;
        };
        if task.state == BlockState::Asleep {
            self.runnable.step(now, true);
        }
        if let BlockState::Ready(since, cause) = task.state
            && cause != Cause::Before
        {
            task.waited = Some(BlockWait {
                ended: now,
                length: now.since(since),
                cause,
            });
        }
        task.worked = false;
        task.state = BlockState::Running(now + overhead);
        self.tasks[next] = task;
    }

    /// Ends the turns of tasks that still have their CPU: what they do there is not empty.
    fn settle_open_turns(&mut self, end: SimTime) {
        for at in 0..self.tasks.len() {
            self.settle(at, end);
            let family = self.tasks[at].family;
            if let Some(wait) = self.tasks[at].waited.take() {
                self.add_wait(family, wait, false);
            }
        }
    }

    /// Lets empty turns count in families that have no others, by the rule of reports: tasks that
    /// never run, and wake more often than once each, are a load of wakeups.
    fn settle_empty_turns(&mut self) {
        let mut tasks = vec![0; self.families.len()];
        self.tasks.iter().for_each(|it| tasks[it.family] += 1);
        let empty = std::mem::take(&mut self.empty);
        for ((family, empty), tasks) in self.families.iter_mut().zip(empty).zip(tasks) {
            let never_runs = family.blocks.iter().all(|it| it.run == 0);
            if never_runs && empty.turns > tasks {
                for (at, block) in empty.blocks.iter().enumerate() {
                    block_of(&mut family.blocks, at).merge(block);
                }
            }
        }
    }
}

/// Block number `at`, which may be new.
fn block_of(blocks: &mut Vec<Block>, at: usize) -> &mut Block {
    if blocks.len() <= at {
        blocks.resize_with(at + 1, Block::default);
    }
    &mut blocks[at]
}

impl Sink for Blocks {
    fn wants(&self) -> EventMask {
        EventMask::SCHED
    }

    fn begin(&mut self, header: &Header) {
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        self.families.clear();
        self.of_group.clear();
        for group in &header.groups {
            let name = (self.family_of)(&group.name);
            let number = *numbers.entry(name).or_insert_with(|| {
                self.families.push(TaskFamily {
                    name: name.to_owned(),
                    blocks: Vec::new(),
                });
                self.families.len() - 1
            });
            self.of_group.push(number);
        }
        if self.families.is_empty() {
            self.families.push(TaskFamily::default());
        }
        self.empty = vec![BlockEmptyTurns::default(); self.families.len()];
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.take(event));
    }

    fn finish(&mut self, end: SimTime) {
        self.settle_open_turns(end);
        self.settle_empty_turns();
        self.end = end;
        // The same rule as that of reports.
        if self
            .runnable
            .grown_to(end)
            .is_some_and(|it| it > self.roots)
        {
            let families = self.forked.iter().map(|at| self.families[*at].name.clone());
            self.grown = families.collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use model::EventKind;

    use super::*;
    use traces::testing::{self, with};

    fn event(at: u64, kind: EventKind, task: u32, words: (u64, u64)) -> Event {
        with(
            testing::event(at, kind, 0, TaskId(task)),
            (0, words.0, words.1),
        )
    }

    fn switch(at: u64, next: u32, prev: u32, left: PrevState) -> Event {
        with(
            event(at, EventKind::Switch, next, (prev.into(), 0)),
            (left as u8, 0, 0),
        )
    }

    const NONE: u32 = TaskId::NONE.0;

    fn blocks(length: u64, count: usize, end: u64) -> Blocks {
        let mut blocks = Blocks::new(Nanos::new(length), count, |name| name);
        blocks.begin(&testing::header(2));
        blocks.events(&two_tasks());
        blocks.finish(SimTime::from_nanos(end));
        blocks
    }

    /// Of the group `solo`.
    fn two_tasks() -> [Event; 9] {
        let root = (0, u64::from(NONE) << 32);
        [
            event(0, EventKind::New, 0, root),
            event(0, EventKind::New, 1, root),
            event(0, EventKind::Wakeup, 0, (NONE.into(), 0)),
            switch(0, 0, NONE, PrevState::Idle),
            event(20, EventKind::Wakeup, 1, (NONE.into(), 0)),
            switch(50, 1, 0, PrevState::Runnable),
            switch(70, 0, 1, PrevState::Sleeping),
            event(75, EventKind::Migrate, 1, (0, 0)),
            event(80, EventKind::Wakeup, 1, (NONE.into(), 0)),
        ]
    }

    fn lengths(block: &Block, kind: Spans) -> Vec<(u64, u64)> {
        block.spans(kind).iter().map(|(a, b)| (*a, *b)).collect()
    }

    /// The families that grow if one task forks another each 10 ms for two seconds, and so many of
    /// ten exit at once.
    fn grown(exits: u32) -> Vec<String> {
        let mut events = vec![event(0, EventKind::New, 0, (0, u64::from(NONE) << 32))];
        for child in 1..200 {
            let at = u64::from(child) * 10_000_000;
            events.push(event(at, EventKind::New, child, (1, 0)));
            events.push(event(at, EventKind::Wakeup, child, (0, 0)));
            if child % 10 < exits {
                events.push(switch(at + 1, child, NONE, PrevState::Idle));
                events.push(switch(at + 2, NONE, child, PrevState::Sleeping));
            }
        }
        let mut blocks = Blocks::new(Nanos::from_millis(2_000), 4, |name| name);
        blocks.begin(&testing::header(2));
        blocks.events(&events);
        blocks.finish(SimTime::from_nanos(2_000_000_000));
        let [part, whole] = [blocks.part(2, 2), blocks.whole(4)];
        assert_eq!(part.grown, whole.grown);
        whole.grown.into_iter().collect()
    }

    #[test]
    fn waits_of_forked_tasks_grow_if_fewer_end_than_begin() {
        assert_eq!(grown(4), ["pair"]);
        assert_eq!(grown(10), [""; 0]);
    }

    #[test]
    fn spans_count_where_they_end_and_time_on_a_cpu_where_it_is_spent() {
        let half = blocks(100, 4, 100).part(0, 4);
        let its = &half.families["solo"];
        let runs: Vec<u64> = its.iter().map(|it| it.run).collect();
        assert_eq!(runs, [25, 25, 25, 25]);
        assert_eq!(half.lengths, [25; 4]);
        // From 20 to 50; what was there at the begin has no wait.
        assert_eq!(lengths(&its[2], Spans::Wait), [(30, 1)]);
        // Also the first task's, preempted from 50 to 70.
        assert_eq!(lengths(&its[2], Spans::Delay), [(20, 1), (30, 1)]);
        assert_eq!(lengths(&its[2], Spans::Response), [(50, 1)]);
        let counts: Vec<_> = its
            .iter()
            .map(|it| (it.preemptions, it.migrations))
            .collect();
        assert_eq!(counts, [(0, 0), (0, 0), (1, 0), (0, 1)]);
    }

    /// A job that comes by a sleep, so many times: each time it has the CPU at once, ends a span if
    /// it `acts`, sleeps, wakes, and works for so long.
    fn job_that_sleeps_first(times: u64, work: u64, acts: bool) -> Block {
        let mut events = vec![event(0, EventKind::New, 0, (0, u64::from(NONE) << 32))];
        for at in (0..times).map(|time| 10 + time * 100) {
            events.push(event(at, EventKind::Wakeup, 0, (NONE.into(), 0)));
            events.push(switch(at + 4, 0, NONE, PrevState::Idle));
            events.extend(acts.then(|| event(at + 4, EventKind::SpanEnd, 0, (0, 0))));
            events.push(switch(at + 4, NONE, 0, PrevState::Sleeping));
            events.push(event(at + 10, EventKind::Wakeup, 0, (NONE.into(), 0)));
            events.push(switch(at + 40, 0, NONE, PrevState::Idle));
            events.push(switch(at + 40 + work, NONE, 0, PrevState::Sleeping));
        }
        let mut blocks = Blocks::new(Nanos::new(1000), 1, |name| name);
        blocks.begin(&testing::header(2));
        blocks.events(&events);
        blocks.finish(SimTime::from_nanos(1000));
        blocks.part(0, 1).families["solo"][0].clone()
    }

    #[test]
    fn a_turn_without_work_is_in_no_block() {
        let job = job_that_sleeps_first(3, 20, false);
        assert_eq!(lengths(&job, Spans::Wait), [(30, 3)]);
        assert_eq!(lengths(&job, Spans::Delay), [(30, 3)]);
        assert_eq!(lengths(&job, Spans::Response), [(50, 3)]);
        assert_eq!(job.run, 60);
        // A span that ends is work, though it takes no time.
        let job = job_that_sleeps_first(3, 20, true);
        assert_eq!(lengths(&job, Spans::Wait), [(4, 3), (30, 3)]);
        assert_eq!(lengths(&job, Spans::Response), [(4, 3), (50, 3)]);
    }

    #[test]
    fn tasks_that_only_wake_and_sleep_have_blocks_of_waits() {
        let never = job_that_sleeps_first(3, 0, false);
        assert_eq!(lengths(&never, Spans::Wait), [(4, 3), (30, 3)]);
        assert_eq!((never.run, lengths(&never, Spans::Response).len()), (0, 2));
    }

    #[test]
    fn a_run_that_lasts_longer_or_shorter_is_cut_into_as_many_parts() {
        let whole = blocks(10, 4, 100).whole(5);
        let its = &whole.families["solo"];
        assert_eq!(whole.lengths.iter().sum::<u64>(), 100);
        assert_eq!(its.iter().map(|it| it.run).sum::<u64>(), 100);
        assert_eq!(its.iter().map(|it| it.preemptions).sum::<u64>(), 1);
        assert_eq!(its.len(), 5);
        // Less than one block.
        let whole = blocks(1000, 4, 100).whole(5);
        let its = &whole.families["solo"];
        assert_eq!(its.iter().map(|it| it.run).sum::<u64>(), 100);
        assert_eq!(whole.lengths.iter().sum::<u64>(), 100);
    }

    #[test]
    fn a_run_without_an_end_in_sight_takes_bounded_memory() {
        let many = blocks(1, 2, 1 << 50);
        assert_eq!(many.families[0].blocks.len(), 2 * 64);
        let run: u64 = many.families[0].blocks.iter().map(|it| it.run).sum();
        assert_eq!(run, 1 << 50);
    }

    #[test]
    fn lengths_keep_their_first_six_bits() {
        let mut block = Block::default();
        for ns in [0, 1, 63, 64, 65, 1_000_003] {
            block.add(Spans::Wait, Nanos::new(ns));
        }
        let keys: Vec<u64> = block.spans(Spans::Wait).keys().copied().collect();
        assert_eq!(keys, [0, 1, 63, 65, 1_007_616]);
    }
}
