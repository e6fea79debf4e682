//! What a trace tells of queues and levels is what the simulated machine had in them.

use std::collections::BTreeMap;

use model::{CpuId, Event, EventMask, Header, MachineSpec, RunSpec, SimTime, Sink, TaskId};
use runslice_tests::models::random;
use runslice_tests::random::RandomRun;
use sim::{View, Watcher};
use stats::trace::{Known, Queues, Scope, Selection, Tracer, Which};

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
    sim::run_watched(spec, &mut comparison).expect("a run");
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
        // mlfq has one queue a CPU, numbered as the CPU, and the level in the key's high bits.
        const LEVEL_SHIFT: u32 = 57;
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
            which: Which::Pid(FIRST_PID),
            children: true,
            queues: Some(Scope::Machine),
        };
        let mut levels = Levels {
            tracer: Tracer::new(selection),
            queues: Queues::default(),
            cpus: 0,
            seen: BTreeMap::new(),
        };
        sim::run_watched(&spec, &mut levels).expect("a run");
        for entry in levels.tracer.visits().iter().flat_map(|visit| &visit.queue) {
            let key = (entry.wait.task, entry.wait.since);
            let (Known::AtNextRun(standing), Some(&level)) = (entry.known, levels.seen.get(&key))
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
