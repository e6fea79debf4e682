//! What runs beside a load: threads that wake up, run for a moment and sleep again, as a profile
//! has them.

use std::collections::BTreeMap;

use model::{
    Background, CpuId, Event, EventKind, EventMask, Header, Nanos, PrevState, SimTime, Sink,
    TaskId, What,
};

/// Lengths of turns that are kept of each entry; what comes later counts, but its lengths do not.
const KEPT: usize = 1_000_000;
/// Lengths that an entry has at most.
const LENGTHS: usize = 40;
/// Turns below which nothing can be said of a thread.
pub const FEWEST: usize = 10;
/// Threads of a group that are an entry of their own, those with the most turns. A profile has room
/// for 64 entries. Taken together, one busy thread that stays on its CPU would be taken for one of
/// each CPU.
const ALONE: usize = 12;
/// No wakeups are closer together in a profile, ns.
const SHORTEST_GAP: u64 = 10_000;

/// A group of tasks that is in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundGroup {
    /// Its name in the recording.
    pub group: String,
    /// Its real-time priority, 1 to 99, which no event says.
    pub real_time: Option<u8>,
}

/// Measures the turns of some groups of tasks.
///
/// A turn is what a task runs from a wakeup to its next sleep, without the time in which others had
/// its CPU.
#[derive(Debug)]
pub struct Turns {
    chosen: Vec<BackgroundGroup>,
    cpus: u16,
    /// Which of them each group of the recording is, if any, and its nice value.
    groups: Vec<(Option<usize>, i8)>,
    tasks: BTreeMap<TaskId, BackgroundTask>,
    /// Who has each CPU since when.
    running: BTreeMap<CpuId, (TaskId, SimTime)>,
    end: SimTime,
}

/// What is known of a task.
#[derive(Debug)]
struct BackgroundTask {
    chosen: usize,
    nice: i8,
    /// Where it ran first, and whether it ever ran elsewhere.
    cpu: Option<CpuId>,
    has_moved: bool,
    /// CPU time since its last wakeup.
    so_far: u64,
    turns: Vec<u64>,
    count: u64,
    total: u64,
}

/// What the tasks of an entry did.
#[derive(Default)]
struct Sum {
    turns: Vec<u64>,
    count: u64,
    total: u64,
    nice: i8,
}

impl Turns {
    /// Of these groups.
    #[must_use]
    pub fn of(chosen: Vec<BackgroundGroup>) -> Self {
        Self {
            chosen,
            cpus: 1,
            groups: Vec::new(),
            tasks: BTreeMap::new(),
            running: BTreeMap::new(),
            end: SimTime::ZERO,
        }
    }

    /// How long the recording lasts.
    #[must_use]
    pub const fn elapsed(&self) -> SimTime {
        self.end
    }

    /// CPUs of its machine.
    #[must_use]
    pub const fn cpus(&self) -> u16 {
        self.cpus
    }

    /// Groups that the recording does not have.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        (0..)
            .zip(&self.chosen)
            .filter(|(at, _)| self.groups.iter().all(|(group, _)| *group != Some(*at)))
            .map(|(_, chosen)| chosen.group.as_str())
    }

    /// The entries of a profile: of each group its busiest threads, each by itself, on the CPU that
    /// it never left, if it never left one; a recording does not say which may not. Then all others
    /// together: those that ran on one CPU only are a thread on each CPU, and the rest one that may
    /// run anywhere. All have as many turns a second on the whole machine as the recording, and as
    /// much CPU time. Entries with fewer than [`FEWEST`] turns are left out.
    ///
    /// A real-time thread stays where it is as long as nothing drives it away, so none counts as
    /// one of each CPU.
    #[must_use]
    pub fn entries(&self) -> Vec<Background> {
        let group = |at: usize| self.tasks.values().filter(move |task| task.chosen == at);
        let groups = self.chosen.iter().enumerate();
        groups
            .flat_map(|(at, chosen)| self.group(chosen, group(at).collect()))
            .collect()
    }

    fn group(&self, chosen: &BackgroundGroup, mut tasks: Vec<&BackgroundTask>) -> Vec<Background> {
        tasks.sort_by_key(|task| std::cmp::Reverse(task.count));
        let busy = tasks.iter().take_while(|task| task.turns.len() >= FEWEST);
        let (alone, others) = tasks.split_at(busy.take(ALONE).count());
        let group = plain(&chosen.group);
        let mut entries: Vec<Background> = (1..)
            .zip(alone)
            .map(|(number, task)| Background {
                cpu: task
                    .cpu
                    .filter(|_| !task.has_moved && self.cpus > 1)
                    .map(|cpu| cpu.0),
                ..self.entry(
                    chosen,
                    format!("{group}-{number}"),
                    false,
                    Sum::of(&[*task]),
                )
            })
            .collect();
        let moves = |task: &&&BackgroundTask| task.has_moved || chosen.real_time.is_some();
        let (moving, bound): (Vec<&BackgroundTask>, Vec<&BackgroundTask>) =
            others.iter().partition(moves);
        let rest = [
            (format!("{group}-each"), true, Sum::of(&bound)),
            (group, false, Sum::of(&moving)),
        ];
        let enough = rest
            .into_iter()
            .filter(|(_, _, it)| it.turns.len() >= FEWEST);
        entries.extend(enough.map(|(name, each, sum)| self.entry(chosen, name, each, sum)));
        entries
    }

    fn entry(
        &self,
        chosen: &BackgroundGroup,
        name: String,
        each_cpu: bool,
        mut sum: Sum,
    ) -> Background {
        let threads = if each_cpu { self.cpus.into() } else { 1 };
        let elapsed = self.end.as_nanos().saturating_mul(threads);
        sum.turns.sort_unstable();
        Background {
            name,
            each_cpu,
            cpu: None,
            gap_ns: (elapsed.saturating_sub(sum.total) / sum.count.max(1)).max(SHORTEST_GAP),
            run_ns: equally_likely(&sum.turns),
            real_time: chosen.real_time,
            nice: sum.nice,
        }
    }

    fn born(&mut self, task: TaskId, group: u32) {
        let group = self.groups.get(group as usize);
        let id = task;
        if let Some(&(Some(chosen), nice)) = group {
            let task = BackgroundTask {
                chosen,
                nice,
                cpu: None,
                has_moved: false,
                so_far: 0,
                turns: Vec::new(),
                count: 0,
                total: 0,
            };
            self.tasks.insert(id, task);
        }
    }

    fn switch(&mut self, event: &Event, state: PrevState, overhead: Nanos) {
        if let Some((id, since)) = self.running.remove(&event.cpu)
            && let Some(task) = self.tasks.get_mut(&id)
        {
            task.leaves(event.time.since(since).get(), state);
        }
        if let Some(task) = self.tasks.get_mut(&event.task) {
            task.has_moved |= task.cpu.is_some_and(|cpu| cpu != event.cpu);
            task.cpu.get_or_insert(event.cpu);
            let since = event.time + overhead;
            self.running.insert(event.cpu, (event.task, since));
        }
    }
}

impl Sum {
    fn of(tasks: &[&BackgroundTask]) -> Self {
        let mut sum = Self::default();
        for task in tasks {
            let room = KEPT.saturating_sub(sum.turns.len());
            sum.turns.extend(task.turns.iter().take(room));
            sum.count += task.count;
            sum.total += task.total;
            sum.nice = task.nice;
        }
        sum
    }
}

impl BackgroundTask {
    /// It has run for `ran`, and is now in `state`.
    fn leaves(&mut self, ran: u64, state: PrevState) {
        self.so_far = self.so_far.saturating_add(ran);
        if state == PrevState::Runnable {
            return;
        }
        let turn = std::mem::take(&mut self.so_far);
        self.count += 1;
        self.total = self.total.saturating_add(turn);
        if self.turns.len() < KEPT {
            self.turns.push(turn);
        }
    }
}

impl Sink for Turns {
    fn wants(&self) -> EventMask {
        EventMask::NONE.with(EventKind::New).with(EventKind::Switch)
    }

    fn begin(&mut self, header: &Header) {
        self.cpus = header.machine.cpus;
        let which = |name: &str| self.chosen.iter().position(|chosen| chosen.group == name);
        let groups = header.groups.iter();
        self.groups = groups.map(|it| (which(&it.name), it.nice)).collect();
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.end = self.end.max(event.time);
            match event.what() {
                What::New { group, .. } => self.born(event.task, group),
                What::Switch {
                    state, overhead, ..
                } => self.switch(event, state, overhead),
                _ => {}
            }
        }
    }

    fn finish(&mut self, end: SimTime) {
        self.end = self.end.max(end);
    }
}

/// A name of letters, digits, `-`, `_` and `.`, as profiles have them.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let plain: String = name.chars().filter(|c| is_plain(*c)).collect();
    if plain.is_empty() {
        "unnamed".to_owned()
    } else {
        plain
    }
}

/// At most [`LENGTHS`] lengths that are all equally likely and have the mean of `sorted`: means of
/// parts of it that have equally many, but for one.
fn equally_likely(sorted: &[u64]) -> Vec<u64> {
    let parts = LENGTHS.min(sorted.len());
    let at = |part: usize| sorted.len() * part / parts;
    (0..parts)
        .map(|part| {
            let part = &sorted[at(part)..at(part + 1)];
            let sum: u128 = part.iter().map(|turn| u128::from(*turn)).sum();
            u64::try_from(sum / part.len() as u128).unwrap_or(u64::MAX)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use model::{MachineSpec, TaskGroup};

    use super::*;
    use traces::testing::raw;

    const MS: u64 = 1_000_000;

    fn header(cpus: u16) -> Header {
        let group = |name: &str| TaskGroup {
            name: name.to_owned(),
            nice: -5,
            count: 1,
        };
        Header {
            policy: String::new(),
            workload: String::new(),
            machine: MachineSpec {
                cpus,
                ..MachineSpec::default()
            },
            seed: 1,
            duration: None,
            groups: ["load", "kernel"].map(group).to_vec(),
            spans: Vec::new(),
            deadlines: Vec::new(),
            counters: Vec::new(),
            phases: Vec::new(),
        }
    }

    fn turns() -> Turns {
        let chosen = BackgroundGroup {
            group: "kernel".to_owned(),
            real_time: Some(1),
        };
        let mut turns = Turns::of(vec![chosen]);
        turns.begin(&header(2));
        turns
    }

    fn new(task: u32, group: u64) -> Event {
        raw(
            (SimTime::ZERO, CpuId(0), TaskId(task)),
            EventKind::New,
            (0, group, 0),
        )
    }

    /// `task` runs on `cpu` from `from` to `to`, and then is in `state`.
    fn run(task: u32, cpu: u16, (from, to): (u64, u64), state: PrevState) -> [Event; 2] {
        let event = |time: u64, task: TaskId, detail: u8| {
            raw(
                (SimTime::from_nanos(time), CpuId(cpu), task),
                EventKind::Switch,
                (detail, 0, 0),
            )
        };
        [
            event(from, TaskId(task), PrevState::Idle as u8),
            event(to, TaskId::NONE, state as u8),
        ]
    }

    #[test]
    fn a_turn_lasts_from_a_wakeup_to_a_sleep_and_leaves_out_what_others_had() {
        let mut turns = turns();
        turns.events(&[new(0, 0), new(1, 1)]);
        for at in 0..20 {
            let at = at * 10 * MS;
            // The load's own task does not count, and it cuts the thread's turn in two.
            turns.events(&run(1, 0, (at, at + 20_000), PrevState::Runnable));
            turns.events(&run(0, 0, (at + 20_000, at + MS), PrevState::Sleeping));
            turns.events(&run(1, 0, (at + MS, at + MS + 10_000), PrevState::Sleeping));
        }
        turns.finish(SimTime::from_nanos(200 * MS));
        assert_eq!(turns.missing().count(), 0);
        let entry = Background {
            name: "kernel-1".to_owned(),
            each_cpu: false,
            cpu: Some(0),
            // 200 ms, less 20 turns of 30 us, for 20 turns.
            gap_ns: (200 * MS - 20 * 30_000) / 20,
            run_ns: vec![30_000; 20],
            real_time: Some(1),
            nice: -5,
        };
        assert_eq!(turns.entries(), [entry]);
    }

    /// Four threads with `FEWEST` - 1 turns each, the first two of which never move.
    fn slow(real_time: Option<u8>) -> Vec<(String, bool, u64)> {
        let chosen = BackgroundGroup {
            group: "kernel".to_owned(),
            real_time,
        };
        let mut turns = Turns::of(vec![chosen]);
        turns.begin(&header(2));
        let few = FEWEST as u64 - 1;
        for task in 1..5 {
            turns.events(&[new(task, 1)]);
            for at in 0..few {
                let moves = if task > 2 { at % 2 } else { 0 };
                let cpu = u16::try_from((u64::from(task) + moves) % 2).unwrap();
                let at = at * 10 * MS + u64::from(task) * MS;
                turns.events(&run(task, cpu, (at, at + 5_000), PrevState::Sleeping));
            }
        }
        turns.finish(SimTime::from_nanos(100 * MS));
        let entries = turns.entries().into_iter();
        entries
            .map(|it| (it.name, it.each_cpu, it.gap_ns))
            .collect()
    }

    #[test]
    fn slow_threads_are_taken_together_and_real_time_ones_stay_nowhere_by_themselves() {
        let few = FEWEST as u64 - 1;
        let gap = |cpus: u64, turns: u64| (cpus * 100 * MS - turns * 5_000) / turns;
        let each = ("kernel-each".to_owned(), true, gap(2, 2 * few));
        let any = |turns| ("kernel".to_owned(), false, gap(1, turns));
        assert_eq!(slow(None), [each, any(2 * few)]);
        assert_eq!(slow(Some(1)), [any(4 * few)]);
    }

    #[test]
    fn only_the_busiest_threads_are_entries_of_their_own() {
        let mut turns = turns();
        let threads = ALONE as u32 + 3;
        for task in 1..=threads {
            turns.events(&[new(task, 1)]);
            for at in 0..u64::from(task) + 20 {
                let at = at * 10 * MS + u64::from(task) * 10_000;
                turns.events(&run(task, 0, (at, at + 5_000), PrevState::Sleeping));
            }
        }
        turns.finish(SimTime::from_nanos(400 * MS));
        let entries = turns.entries();
        let names: Vec<&str> = entries.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names.len(), ALONE + 1);
        // None of these threads ever moved, but real-time ones are no threads of each CPU.
        assert_eq!(names[ALONE], "kernel");
        // The busiest comes first, and the gaps grow.
        assert!(entries[..ALONE].is_sorted_by_key(|it| it.gap_ns));
        assert_eq!(names[0], "kernel-1");
        let turns_of_rest = (21 + 22 + 23) as u64;
        let gap = (400 * MS - turns_of_rest * 5_000) / turns_of_rest;
        assert_eq!(entries[ALONE].gap_ns, gap);
    }

    #[test]
    fn threads_that_move_are_one_that_may_run_anywhere_and_few_turns_say_nothing() {
        let mut turns = turns();
        turns.events(&[new(1, 1), new(2, 1)]);
        for at in 0..12 {
            let cpu = u16::try_from(at % 2).unwrap();
            let at = at * 10 * MS;
            turns.events(&run(1, cpu, (at, at + 5_000), PrevState::Sleeping));
        }
        // Nine turns on one CPU.
        for at in 0..9 {
            let at = at * 10 * MS + MS;
            turns.events(&run(2, 0, (at, at + 5_000), PrevState::Sleeping));
        }
        turns.finish(SimTime::from_nanos(120 * MS));
        let entries = turns.entries();
        assert_eq!(entries.len(), 1);
        assert_eq!(
            (&*entries[0].name, entries[0].each_cpu, entries[0].cpu),
            ("kernel-1", false, None)
        );
        assert_eq!(entries[0].gap_ns, (120 * MS - 12 * 5_000) / 12);
        let other = BackgroundGroup {
            group: "rcu".to_owned(),
            real_time: None,
        };
        let mut other = Turns::of(vec![other]);
        other.begin(&header(1));
        assert_eq!(other.missing().collect::<Vec<_>>(), ["rcu"]);
    }

    #[test]
    fn lengths_keep_the_mean_whatever_their_number() {
        for count in [1, 7, 40, 41, 1_000] {
            let sorted: Vec<u64> = (0..count).map(|it| it * it).collect();
            let lengths = equally_likely(&sorted);
            assert!(lengths.len() <= LENGTHS && lengths.is_sorted());
            let mean = |of: &[u64]| of.iter().sum::<u64>() as f64 / of.len() as f64;
            let (ours, theirs) = (mean(&lengths), mean(&sorted));
            assert!(
                (ours - theirs).abs() <= theirs * 0.05 + 1.0,
                "{count}: {ours}, {theirs}"
            );
        }
    }
}
