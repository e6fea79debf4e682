//! What trials do to a run: each cure ends the fault that it is made for, and does nothing before
//! its moment.

use model::{CpuId, Event, EventKind, EventMask, Header, Nanos, SimTime, Sink, TaskId, What};
use runslice_tests::faulty::{Case, HOGS, SHELLS, all};
use runslice_tests::run::Run;
use sim::{Deed, Intervention, Rule, Simulation};

/// All events of a run.
#[derive(Default)]
struct All(Vec<Event>);

impl Sink for All {
    fn wants(&self) -> EventMask {
        EventMask::ALL.union(EventMask::DECISIONS)
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        self.0.extend_from_slice(events);
    }

    fn finish(&mut self, _: SimTime) {}
}

fn at(ms: u64) -> SimTime {
    SimTime::ZERO + Nanos::from_millis(ms)
}

/// Runs `run` with what is done to it.
fn with(run: &Run<'_>, deeds: &[(u64, Deed)]) -> Vec<Event> {
    let mut sink = All::default();
    let deeds = deeds.iter().map(|(ms, deed)| Intervention {
        at: at(*ms),
        deed: *deed,
    });
    let finished = Simulation::new(&run.spec())
        .with_sink(&mut sink)
        .with_interventions(deeds.collect())
        .start();
    finished.unwrap_or_else(|error| panic!("{error}"));
    sink.0
}

/// The run of the corpus that shows the fault of `policy`.
fn case(policy: &str) -> &'static Case {
    let mut cases = all();
    cases.find(|case| case.policy == policy).expect("a case")
}

fn run<'a>(case: &'a Case, name: &'a str) -> Run<'a> {
    Run {
        cpus: case.cpus,
        until: Nanos::from_secs(case.seconds),
        ..Run::new(name, case.workload)
    }
}

/// When and where `task` came to run first after `ms`.
fn ran(events: &[Event], task: u32, ms: u64) -> Option<(SimTime, CpuId)> {
    let is_it = |event: &&Event| event.kind == EventKind::Switch && event.task == TaskId(task);
    let mut after = events.iter().filter(is_it);
    let first = after.find(|event| event.time >= at(ms))?;
    Some((first.time, first.cpu))
}

/// How long `task` ran between two moments.
fn had(events: &[Event], task: u32, (from, to): (u64, u64)) -> Nanos {
    let (from, to) = (at(from), at(to));
    let mut since = None;
    let mut sum = Nanos::ZERO;
    for event in events
        .iter()
        .filter(|event| event.kind == EventKind::Switch)
    {
        let What::Switch { prev, .. } = event.what() else {
            continue;
        };
        if prev == TaskId(task)
            && let Some(begin) = since.take()
        {
            let (begin, end): (SimTime, SimTime) = (begin, event.time);
            sum += end.clamp(from, to).since(begin.clamp(from, to));
        }
        if event.task == TaskId(task) {
            since = Some(event.time);
        }
    }
    sum
}

/// A cure of a case: nobody of `tasks` runs in the second after `ms` without it, one does with it.
fn cures(policy: &str, tasks: std::ops::Range<u32>, ms: u64, deeds: &[Deed]) {
    let case = case(policy);
    let name = format!("faulty-{policy}");
    let run = run(case, &name);
    let first = |events: &[Event]| tasks.clone().filter_map(|it| ran(events, it, ms)).min();
    let is_soon = |time: SimTime| time < at(ms + 1_000);
    let before = first(&with(&run, &[]));
    assert!(
        before.is_none_or(|(time, _)| !is_soon(time)),
        "{policy}: {before:?} without a cure"
    );
    let deeds: Vec<_> = deeds.iter().map(|deed| (ms, *deed)).collect();
    let after = first(&with(&run, &deeds));
    assert!(
        after.is_some_and(|(time, _)| is_soon(time)),
        "{policy}: {after:?} with {deeds:?}"
    );
}

#[test]
fn a_kick_ends_a_wait_for_a_forgotten_kick() {
    cures("no-kick", 0..1, 500, &[Deed::Kick(CpuId(1))]);
    // Each CPU has a queue of its own, so that one kick is the right one.
    let case = case("claims-twice");
    let run = run(case, "faulty-claims-twice");
    let helps = |cpu: &u16| {
        let events = with(&run, &[(1_000, Deed::Kick(CpuId(*cpu)))]);
        ran(&events, 0, 1_000).is_some()
    };
    assert_eq!((0..case.cpus).filter(helps).count(), 1);
}

#[test]
fn a_task_in_no_queue_is_put_to_a_cpu() {
    for task in 0..6 {
        let put = Deed::Put {
            task: TaskId(task),
            cpu: None,
        };
        cures("drops", task..task + 1, 2_000, &[put]);
    }
}

#[test]
fn a_dispatch_takes_the_task_that_it_passes_over() {
    let take = Deed::Take {
        task: TaskId(0),
        cpu: CpuId(0),
    };
    cures("front", 0..1, 2_000, &[take]);
}

#[test]
fn the_end_of_an_endless_slice_lets_another_task_run() {
    cures("endless-slice", 0..3, 1_000, &[Deed::EndSlice(CpuId(1))]);
    let at_most = Rule::SliceAtMost(Nanos::from_millis(20));
    cures("endless-slice", 0..3, 1_000, &[Deed::Rule(at_most)]);
    cures("renews", 0..3, 1_000, &[Deed::Rule(at_most)]);
}

#[test]
fn a_task_in_a_queue_that_its_cpu_does_not_read_is_inserted_into_one_that_it_reads() {
    let insert = Deed::Insert {
        task: TaskId(0),
        queue: 0,
    };
    cures("other-cpu", 0..1, 1_000, &[insert]);
}

#[test]
fn a_queue_of_all_takes_what_was_inserted_directly() {
    let case = case("keeps-local");
    let run = run(case, "faulty-keeps-local");
    // A real-time task has CPU 0 from 101.5 ms on.
    let starved = |events: &[Event]| {
        let tasks = (1..4).filter(|task| ran(events, *task, 1_000).is_none());
        tasks.count()
    };
    assert!(starved(&with(&run, &[])) > 0);
    let rules = [Rule::NoDirect(0), Rule::KickIdle].map(|rule| (0, Deed::Rule(rule)));
    assert_eq!(starved(&with(&run, &rules)), 0);
}

#[test]
fn a_kick_after_each_insert_keeps_tasks_running() {
    let case = case("kicks-self");
    let run = run(case, "faulty-kicks-self");
    assert_eq!(ran(&with(&run, &[]), 0, 2_000), None);
    // Each CPU has a queue of its own, so that the right one is kicked in the end.
    let events = with(&run, &[(0, Deed::Rule(Rule::KickIdle))]);
    assert!(ran(&events, 0, 1).is_some());
}

#[test]
fn queues_in_order_of_time_by_weight_give_the_heavy_more() {
    let case = case("weight");
    let run = run(case, "faulty-weight");
    let span = (1_000, 4_000);
    let share = |events: &[Event]| (had(events, 0, span), had(events, 2, span));
    let (heavy, light) = share(&with(&run, &[]));
    assert!(heavy < light);
    let (heavy, light) = share(&with(&run, &[(500, Deed::Rule(Rule::ByWeight))]));
    // Nice -5 and 5 weigh 9.3 to 1.
    assert!(heavy.get() > 6 * light.get(), "{heavy} {light}");
    assert!(heavy.get() < 12 * light.get(), "{heavy} {light}");
    let (heavy, light) = share(&with(&run, &[(500, Deed::Rule(Rule::InOrder))]));
    assert!(heavy.get().abs_diff(light.get()) < 20_000_000);
}

#[test]
fn a_queue_in_order_of_arrival_forgets_a_wrong_clock() {
    let case = case("vtime-unit");
    let run = run(case, "faulty-vtime-unit");
    let runs = |events: &[Event]| {
        let is_it = |it: &&Event| it.kind == EventKind::Switch && it.task == TaskId(2);
        let late = events.iter().filter(is_it);
        late.filter(|event| event.time > at(2_000)).count()
    };
    assert!(runs(&with(&run, &[])) < 5);
    for rule in [Rule::InOrder, Rule::ByWeight] {
        let cured = runs(&with(&run, &[(2_000, Deed::Rule(rule))]));
        assert!(cured > 100, "{rule:?}: {cured}");
    }
}

#[test]
fn a_task_keeps_its_cpu_once_where_the_policy_moves_it() {
    let load = "[task.shell]\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n";
    let run = Run {
        cpus: 2,
        until: Nanos::from_secs(2),
        ..Run::new("faulty-other-cpu", load)
    };
    let cpus = |deeds: &[(u64, Deed)]| {
        let events = with(&run, deeds);
        let before = events.iter().rev().find(|event| {
            event.kind == EventKind::Switch && event.task == TaskId(0) && event.time < at(1_000)
        });
        (before.unwrap().cpu, ran(&events, 0, 1_000).unwrap().1)
    };
    let (before, after) = cpus(&[]);
    assert_ne!(before, after);
    let (before, after) = cpus(&[(1_000, Deed::Keep(TaskId(0)))]);
    assert_eq!(before, after);
}

#[test]
fn nothing_is_different_before_the_moment() {
    let run = Run {
        cpus: 2,
        until: Nanos::from_secs(1),
        ..Run::new("fifo", SHELLS)
    };
    let plain = with(&run, &[]);
    let deeds = [
        Deed::Kick(CpuId(1)),
        Deed::EndSlice(CpuId(0)),
        Deed::Jitter(3),
        Deed::Rule(Rule::SliceAtMost(Nanos::from_micros(100))),
    ];
    for deed in deeds {
        let other = with(&run, &[(500, deed)]);
        let same = plain.iter().zip(&other).take_while(|(a, b)| a == b).count();
        assert!(plain[same].time >= at(500), "{deed:?}: {:?}", plain[same]);
        assert_ne!(plain, other, "{deed:?}");
    }
}

#[test]
fn a_deed_about_nobody_has_no_effect() {
    let run = Run {
        cpus: 1,
        until: Nanos::from_secs(1),
        ..Run::new("fifo", HOGS)
    };
    let plain = with(&run, &[]);
    // Nobody has these numbers, and each hog is bound to run on the one CPU.
    let (task, cpu) = (TaskId(77), CpuId(9));
    let put = |task, cpu| Deed::Put { task, cpu };
    for deed in [
        Deed::Kick(cpu),
        Deed::EndSlice(cpu),
        put(task, None),
        put(TaskId(0), Some(cpu)),
        Deed::Insert { task, queue: 0 },
        Deed::Insert {
            task: TaskId(0),
            queue: 1 << 40,
        },
        Deed::Take { task, cpu },
        Deed::Keep(task),
        Deed::Rule(Rule::NoDirect(1 << 63)),
    ] {
        assert!(with(&run, &[(500, deed)]) == plain, "{deed:?}");
    }
}

#[test]
fn jitter_is_drawn_from_its_seed() {
    let run = Run {
        cpus: 2,
        until: Nanos::from_secs(1),
        ..Run::new("fifo", SHELLS)
    };
    let jittered = |seed| with(&run, &[(500, Deed::Jitter(seed))]);
    assert!(jittered(1) == jittered(1));
    assert!(jittered(1) != jittered(2));
}

/// Every deed at drawn moments to drawn tasks and CPUs of sound policies, on two kernels: the
/// machine keeps its promises (it checks them), and nobody is ejected.
#[test]
fn whatever_a_trial_does_the_machine_stays_sound() {
    let load = format!(
        "{SHELLS}{HOGS}[task.bound]\ncpus = \"0\"\ndo = \"loop(inf)[ run(2ms), sleep(1ms) ]\"\n"
    );
    let mut rng = model::Rng::new(5, 0);
    for policy in ["fifo", "eevdf", "o1", "mlfq", "staircase", "faulty-drops"] {
        for round in 0..6 {
            let mut deeds: Vec<(u64, Deed)> = Vec::new();
            for _ in 0..20 {
                let task = TaskId(rng.below(10) as u32);
                let cpu = CpuId(rng.below(3) as u16);
                let deed = match rng.below(10) {
                    0 => Deed::Kick(cpu),
                    1 => Deed::Put { task, cpu: None },
                    2 => Deed::Put {
                        task,
                        cpu: Some(cpu),
                    },
                    3 => Deed::Insert { task, queue: 0 },
                    4 => Deed::Take { task, cpu },
                    5 => Deed::EndSlice(cpu),
                    6 => Deed::Keep(task),
                    7 => Deed::Jitter(round),
                    8 => Deed::Rule(Rule::ByWeight),
                    _ => Deed::Rule(Rule::SliceAtMost(Nanos::from_millis(3))),
                };
                deeds.push((rng.below(1_000), deed));
            }
            let run = Run {
                cpus: 3,
                until: Nanos::from_secs(1),
                ..Run::new(policy, &load)
            };
            let mut spec = run.spec();
            if round % 2 == 1 {
                spec.machine.kernel = model::Kernel::V7_2;
            }
            let mut sink = All::default();
            let planned = deeds.iter().map(|(ms, deed)| Intervention {
                at: at(*ms),
                deed: *deed,
            });
            let finished = Simulation::new(&spec)
                .with_sink(&mut sink)
                .with_interventions(planned.collect())
                .start();
            let exit = finished
                .unwrap_or_else(|error| panic!("{error}"))
                .summary
                .exit;
            assert!(!exit.kind.is_error(), "{policy}, {deeds:?}: {exit:?}");
        }
    }
}
