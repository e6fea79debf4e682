//! What a trace tells of queues and levels is what the simulated machine had in them.

use std::collections::BTreeMap;

use explain::trace::{KnownFrom, Queues, Scope, Selection, TracedTasks, Tracer};
use model::report::INTERACTIVE;
use model::{
    CpuId, Event, EventMask, Header, MachineSpec, Nanos, PrevState, SimTime, Sink, TaskId,
};
use runslice_tests::models::random;
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use sim::{Simulation, View, Watcher};
use workload::RunSpec;

/// Runs that every property of this file is tried on.
const RUNS: u64 = 250;

/// The pid of the first task of a simulated run.
const FIRST_PID: u32 = 100;

/// Rebuilds the queues from events, and compares them with the machine's after every moment.
#[derive(Default)]
struct Comparison {
    queues: Queues,
    cpus: u16,
    /// Of how many tasks in queues in all.
    compared: u64,
    /// Most tasks that waited at one CPU.
    longest: usize,
    difference: Option<String>,
    /// Also compare the order in this dispatch queue.
    order: Option<u64>,
}

impl Sink for Comparison {
    fn wants(&self) -> EventMask {
        EventMask::ALL
    }

    fn begin(&mut self, header: &Header) {
        self.cpus = header.machine.cpus;
        self.queues = Queues::new(self.cpus);
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            let _ = self.queues.take(event);
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

impl Comparison {
    fn differ(&mut self, view: &View<'_>, what: &str, ours: &[TaskId], theirs: &[TaskId]) {
        let now = view.now();
        let text = format!("at {now}, {what}: events say {ours:?}, the machine has {theirs:?}");
        self.difference.get_or_insert(text);
    }
}

impl Watcher for Comparison {
    fn look(&mut self, view: &View<'_>) {
        for cpu in (0..self.cpus).map(CpuId) {
            let mut ours: Vec<TaskId> = self.queues.of(cpu).map(|wait| wait.task).collect();
            self.compared += ours.len() as u64;
            self.longest = self.longest.max(ours.len());
            ours.sort_unstable();
            let theirs = view.waiting(cpu);
            if ours != theirs {
                self.differ(view, &format!("queue of CPU {cpu}"), &ours, &theirs);
            }
            if self.queues.running(cpu) != view.running(cpu) {
                self.differ(view, &format!("CPU {cpu} runs another task"), &[], &[]);
            }
        }
        let Some(id) = self.order else { return };
        let queues = view.queues();
        let Some(queue) = queues.iter().find(|queue| queue.id == id) else {
            return;
        };
        let theirs: Vec<TaskId> = queue.tasks.iter().map(|(task, _)| *task).collect();
        let ours = self.queues.all().into_iter().map(|wait| wait.task);
        let ours: Vec<TaskId> = ours.filter(|task| theirs.contains(task)).collect();
        if ours != theirs {
            self.differ(view, &format!("order in queue {id}"), &ours, &theirs);
        }
    }
}

fn compare(spec: &RunSpec, order: Option<u64>) -> Comparison {
    let mut comparison = Comparison {
        order,
        ..Comparison::default()
    };
    let watched = Simulation::new(spec).watched(&mut comparison);
    watched.start().expect("a run");
    comparison
}

#[test]
fn the_rebuilt_queues_are_the_machine_s_in_random_runs() {
    let (mut compared, mut longest) = (0, 0);
    for seed in 0..RUNS {
        let run = RandomRun::new(seed);
        let comparison = compare(&run.spec, None);
        if let Some(difference) = comparison.difference {
            panic!(
                "{difference}\nseed {seed}, policy {:?}\n{}",
                run.spec.policy.name, run.text
            );
        }
        compared += comparison.compared;
        longest = longest.max(comparison.longest);
    }
    // The runs must have had queues, or this shows nothing.
    assert!(compared > 100_000 && longest > 8, "{compared}, {longest}");
}

#[test]
fn one_queue_in_order_of_arrival_is_rebuilt_in_its_order() {
    let mut compared = 0;
    for seed in 0..40 {
        let machine = MachineSpec {
            cpus: 1,
            ..MachineSpec::default()
        };
        let spec = random::spec("fifo", &[], machine, &random::tasks(seed));
        // The number of fifo's shared queue.
        let comparison = compare(&spec, Some(0));
        assert_eq!(comparison.difference, None, "seed {seed}");
        compared += comparison.compared;
    }
    assert!(compared > 10_000, "{compared}");
}

/// Follows everybody, and keeps the level that mlfq had each waiting task in.
struct Levels {
    tracer: Tracer,
    queues: Queues,
    cpus: u16,
    /// By task and beginning of the wait.
    seen: BTreeMap<(TaskId, SimTime), u64>,
}

impl Sink for Levels {
    fn wants(&self) -> EventMask {
        self.tracer.wants()
    }

    fn begin(&mut self, header: &Header) {
        self.cpus = header.machine.cpus;
        self.queues = Queues::new(self.cpus);
        self.tracer.begin(header);
    }

    fn events(&mut self, events: &[Event]) {
        self.tracer.events(events);
        for event in events {
            let _ = self.queues.take(event);
        }
    }

    fn finish(&mut self, end: SimTime) {
        self.tracer.finish(end);
    }
}

impl Watcher for Levels {
    fn look(&mut self, view: &View<'_>) {
        // mlfq has one queue a CPU, numbered as the CPU; the place in the level is PLACE_BITS long.
        const LEVEL_SHIFT: u32 = 44;
        let queues = view.queues();
        let own = queues.iter().filter(|queue| queue.id < self.cpus.into());
        let keys: BTreeMap<TaskId, u64> = own.flat_map(|queue| queue.tasks.clone()).collect();
        for wait in self.queues.all() {
            if let Some(key) = keys.get(&wait.task) {
                let level = key >> LEVEL_SHIFT;
                self.seen.insert((wait.task, wait.since), level);
            }
        }
    }
}

#[test]
fn the_levels_of_a_traced_queue_are_those_of_mlfq_s_keys() {
    let (mut checked, mut deep) = (0, 0);
    for seed in 0..60 {
        let machine = MachineSpec {
            cpus: 1 + (seed % 3) as u16,
            hz: 1000,
            ..MachineSpec::default()
        };
        let spec = random::spec("mlfq", &[], machine, &random::tasks(seed));
        let selection = Selection {
            which: TracedTasks::Pid(FIRST_PID),
            children: true,
            queues: Some(Scope::Machine),
        };
        let mut levels = Levels {
            tracer: Tracer::new(selection),
            queues: Queues::default(),
            cpus: 0,
            seen: BTreeMap::new(),
        };
        let watched = Simulation::new(&spec).watched(&mut levels);
        watched.start().expect("a run");
        for entry in levels.tracer.visits().iter().flat_map(|visit| &visit.queue) {
            let key = (entry.wait.task, entry.wait.since);
            let (KnownFrom::AtNextRun(standing), Some(&level)) =
                (entry.known, levels.seen.get(&key))
            else {
                continue;
            };
            assert_eq!(u64::from(standing.level), level, "seed {seed}: {entry:?}");
            checked += 1;
            deep += u64::from(level > 2);
        }
    }
    assert!(checked > 1_000 && deep > 100, "{checked}, {deep}");
}

// ---- Small runs, worked out by hand: one CPU, 1000 ticks a second ----

const MS: u64 = 1_000_000;

/// Follows `task` for `until_ms`.
fn follow(policy: &str, until_ms: u64, workload: &str, task: &str) -> Tracer {
    let mut tracer = Tracer::new(Selection {
        which: TracedTasks::Name(task.to_owned()),
        children: false,
        queues: Some(Scope::Cpu),
    });
    let run = Run {
        until: Nanos::from_millis(until_ms),
        ..Run::new(policy, workload)
    };
    let summary = run.feed(&mut tracer);
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    tracer
}

/// For each run: when, priority, level, and how long it lasted; milliseconds.
fn standings(tracer: &Tracer) -> Vec<(u64, u32, u32, u64)> {
    let turns = tracer.turns().iter();
    let row = |turn: &explain::trace::TraceTurn| {
        let (ran, standing) = (turn.ran?, turn.standing.expect("a report"));
        let end = turn.left.map_or(tracer.end(), |(left, _)| left);
        let (at, length) = (ran.as_nanos() / MS, end.since(ran).get() / MS);
        Some((at, standing.priority, standing.level, length))
    };
    turns.filter_map(row).collect()
}

/// For each wait: since when, for how long, behind whom; milliseconds.
fn waits(tracer: &Tracer) -> Vec<(u64, u64, Option<String>)> {
    let turns = tracer.turns().iter();
    let row = |turn: &explain::trace::TraceTurn| {
        let behind = turn.behind.map(|task| tracer.name(task));
        Some((turn.ready.as_nanos() / MS, turn.wait()?.get() / MS, behind))
    };
    turns.filter_map(row).collect()
}

/// A hog, and a task that works for 4 ms and sleeps for 100 (specification of mlfq, M2).
const HOG_AND_EDITOR: &str = "[task.hog]\ndo = \"run(inf)\"\n\
    [task.editor]\nstart = \"5ms\"\ndo = \"loop(inf)[ run(4ms), sleep(100ms) ]\"";

#[test]
fn an_editor_under_mlfq_stays_in_the_best_queue_and_waits_only_for_the_hog_s_first_quantum() {
    let editor = follow("mlfq", 330, HOG_AND_EDITOR, "editor");
    let hog = || Some("hog".to_owned());
    assert_eq!(
        waits(&editor),
        [
            (5, 5, hog()),
            (114, 0, hog()),
            (218, 0, hog()),
            (322, 0, hog())
        ]
    );
    assert_eq!(
        standings(&editor),
        [
            (10, 100, 0, 4),
            (114, 100, 0, 4),
            (218, 100, 0, 4),
            (322, 100, 0, 4)
        ]
    );
}

#[test]
fn a_hog_under_mlfq_comes_back_to_ever_deeper_queues() {
    let hog = follow("mlfq", 330, HOG_AND_EDITOR, "hog");
    // Quanta are 10, 20, 30 ... ms, and levels change while it stays on the CPU, too: at 34, 64
    // and 104, where level 4 begins. 10 ms of it are gone when the editor comes at 114; at 158 it
    // is level 5, at 218 level 6, at 292 level 7.
    assert_eq!(
        standings(&hog),
        [
            (0, 100, 0, 10),
            (14, 101, 1, 100),
            (118, 104, 4, 100),
            (222, 106, 6, 100),
            (326, 107, 7, 4)
        ]
    );
    let reasons: Vec<_> = hog.turns().iter().map(|turn| turn.reason.name()).collect();
    let preempted = "preempted";
    assert_eq!(
        reasons,
        ["woken", preempted, preempted, preempted, preempted]
    );
}

#[test]
fn the_queue_of_a_hog_under_mlfq_has_the_better_levels_first() {
    // A and B go down in turns; C comes at 25, while B waits on level 1 and A runs on level 1.
    let tables = "[task.A]\ndo = \"run(inf)\"\n[task.B]\ndo = \"run(inf)\"\n\
                  [task.C]\nstart = \"25ms\"\ndo = \"loop(inf)[ run(12ms), sleep(1s) ]\"";
    let c = follow("mlfq", 120, tables, "C");
    // It preempts A at once and uses 10 ms up; its last 2 ms come in level 1, behind A, which goes
    // on until it has had its 20 ms, and B, which has all of its own.
    assert_eq!(standings(&c), [(25, 100, 0, 10), (70, 101, 1, 2)]);
    let visit = &c.visits()[1];
    let queue = visit.queue.iter().map(|entry| {
        let standing = entry.known.standing().expect("a report");
        (
            c.name(entry.wait.task),
            standing.level,
            entry.wait.since.as_nanos() / MS,
        )
    });
    let named = |name: &str, level, since| (name.to_owned(), level, since);
    assert_eq!(visit.running.map(|task| c.name(task)), Some("A".to_owned()));
    assert_eq!(
        queue.collect::<Vec<_>>(),
        [named("B", 1, 20), named("C", 1, 35)]
    );
    let steps = visit.steps.iter();
    let steps = steps.map(|step| (step.time.as_nanos() / MS, c.name(step.task), step.what));
    let comes = explain::trace::QueueEvent::Comes(explain::trace::Reason::Preempted);
    let runs = explain::trace::QueueEvent::Runs;
    let step = |at: u64, name: &str, what| (at, name.to_owned(), what);
    assert_eq!(
        steps.collect::<Vec<_>>(),
        [step(50, "B", runs), step(50, "A", comes)]
    );
}

#[test]
fn hogs_under_o1_run_by_their_priorities_and_sleepers_become_interactive() {
    // Slices of 102 and 10 ms at nice 0 and 19, with the full malus of 5 (specification, V1).
    let tables = "[task.A]\ndo = \"run(inf)\"\n[task.N]\nnice = 19\ndo = \"run(inf)\"";
    let a = follow("o1", 213, tables, "A");
    let rows = standings(&a);
    let times: Vec<_> = rows.iter().map(|row| (row.0, row.1, row.3)).collect();
    assert_eq!(times, [(0, 125, 102), (112, 125, 101)]);
    let n = follow("o1", 213, tables, "N");
    // Both came in the same moment, when nothing ran yet.
    assert_eq!(waits(&n), [(0, 102, None)]);
    assert_eq!(n.turns()[0].overtaken, 1);
    // 28 sleeps of 10 ms lift a task to the full bonus (V4): priority 115, labelled interactive.
    let tables = "[task.A]\ndo = \"loop(30)[ sleep(10ms) ]\"";
    let sleeper = follow("o1", 310, tables, "A");
    let labels: Vec<_> = sleeper
        .turns()
        .iter()
        .filter_map(|turn| turn.standing)
        .collect();
    assert_eq!(
        (labels[0].priority, labels[0].flags & INTERACTIVE),
        (125, 0)
    );
    let last = labels.last().expect("it ran");
    assert_eq!(
        (last.priority, last.flags & INTERACTIVE),
        (115, INTERACTIVE)
    );
}

#[test]
fn hogs_under_staircase_descend_in_turns() {
    // Specification of staircase, B2: nice 0 has twenty stairs and nice 10 has ten.
    let tables = "[task.A]\ndo = \"run(inf)\"\n[task.B]\nnice = 10\ndo = \"run(inf)\"";
    let a = follow("staircase", 199, tables, "A");
    let rows = |tracer: &Tracer| -> Vec<(u64, u32, u64)> {
        standings(tracer)
            .iter()
            .map(|row| (row.0, row.1, row.3))
            .collect()
    };
    let descent = [
        (0, 120, 100),
        (110, 130, 10),
        (130, 131, 10),
        (150, 132, 10),
        (170, 133, 10),
        (190, 134, 9),
    ];
    assert_eq!(rows(&a), descent);
    let b = follow("staircase", 199, tables, "B");
    let descent = [
        (100, 130, 10),
        (120, 131, 10),
        (140, 132, 10),
        (160, 133, 10),
        (180, 134, 10),
    ];
    assert_eq!(rows(&b), descent);
    // At 100 A comes back on stair 130, behind B, which waited there from the start.
    let visit = &a.visits()[1];
    assert_eq!(visit.running.map(|task| a.name(task)), Some("B".to_owned()));
    let own = visit.queue[0];
    assert_eq!((own.wait.task, visit.queue.len()), (TaskId(0), 1));
    assert_eq!(own.known.standing().map(|it| it.priority), Some(130));
    let ends: Vec<_> = a.turns().iter().filter_map(|turn| turn.left).collect();
    assert!(ends.iter().all(|(_, state)| *state == PrevState::Runnable));
}
