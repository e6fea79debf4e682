use model::EventKind::Report;
use model::PrevState::{Runnable, Sleeping};
use model::report::INTERACTIVE;

use super::*;
use traces::testing::{StreamWriter, with};

/// Three tasks on one CPU: task 0 (`solo`), tasks 1 and 2 (`pair`).
fn born() -> StreamWriter {
    StreamWriter::new()
        .born(0, 0, 0, 0)
        .born(0, 1, 1, 0)
        .born(0, 2, 1, 1)
}

fn trace(which: TracedTasks, stream: &StreamWriter, end: u64) -> Tracer {
    let mut tracer = Tracer::new(Selection {
        which,
        children: false,
        queues: Some(Scope::Cpu),
    });
    stream.feed(&mut tracer, 2, end);
    tracer
}

fn named(name: &str) -> TracedTasks {
    TracedTasks::Name(name.to_owned())
}

fn at(ns: u64) -> SimTime {
    SimTime::from_nanos(ns)
}

fn told(priority: u32, level: u32) -> QueueStanding {
    QueueStanding {
        priority,
        level,
        flags: 0,
    }
}

/// `pair.0` runs from 0 to 30, then `pair.1` until 50, then `solo`, which was woken at 10.
fn behind_two() -> StreamWriter {
    let report = |priority: u64, level: u64| level << 32 | priority;
    born()
        .start(0, 1, 0)
        .switch(0, 0, None, Some(1))
        .start(5, 2, 0)
        .wakeup(10, 0, 0)
        .on(30, Report, 2, report(101, 1), 0)
        .switch(30, 0, Some((1, Runnable)), Some(2))
        .on(50, Report, 0, report(100, 0), INTERACTIVE)
        .switch(50, 0, Some((2, Sleeping)), Some(0))
        .switch(55, 0, Some((0, Sleeping)), None)
}

#[test]
fn a_group_of_several_tasks_has_one_name() {
    let tracer = trace(named("solo"), &behind_two(), 60);
    assert_eq!(tracer.names(), ["solo", "pair"]);
}

#[test]
fn a_turn_tells_the_wait_the_run_and_who_was_in_between() {
    let tracer = trace(named("solo"), &behind_two(), 60);
    let standing = QueueStanding {
        flags: INTERACTIVE,
        ..told(100, 0)
    };
    let want = TraceTurn {
        task: TaskId(0),
        ready: at(10),
        reason: Reason::Woken,
        cpu: CpuId(0),
        behind: Some(TaskId(1)),
        overtaken: 1,
        ran: Some(at(50)),
        standing: Some(standing),
        left: Some((at(55), Sleeping)),
    };
    assert_eq!(tracer.turns(), [want]);
    assert_eq!(want.wait(), Some(Nanos::new(40)));
    assert_eq!(tracer.waits(true).max(), Some(Nanos::new(40)));
    assert_eq!(tracer.waits(false).count(), 0);
}

#[test]
fn a_visit_shows_the_queue_and_what_happened_to_it() {
    let tracer = trace(named("solo"), &behind_two(), 60);
    let [visit] = tracer.visits() else {
        panic!("{:?}", tracer.visits())
    };
    assert_eq!(visit.running, Some(TaskId(1)));
    // `solo` came later and stands before: its level is the better one.
    let queue: Vec<_> = visit
        .queue
        .iter()
        .map(|it| (it.wait.task.0, it.wait.since, it.known.standing()))
        .collect();
    let solo = QueueStanding {
        flags: INTERACTIVE,
        ..told(100, 0)
    };
    assert_eq!(
        queue,
        [(0, at(10), Some(solo)), (2, at(5), Some(told(101, 1)))]
    );
    let steps: Vec<_> = visit
        .steps
        .iter()
        .map(|step| (step.time, step.task.0, step.what))
        .collect();
    let comes = QueueEvent::Comes(Reason::Preempted);
    assert_eq!(steps, [(at(30), 2, QueueEvent::Runs), (at(30), 1, comes)]);
}

#[test]
fn a_preempted_task_finds_its_successor_on_the_cpu() {
    let tracer = trace(named("pair.0"), &behind_two(), 60);
    let [first, second] = tracer.turns() else {
        panic!("{:?}", tracer.turns())
    };
    assert_eq!((first.behind, first.wait()), (None, Some(Nanos::ZERO)));
    assert_eq!(first.left, Some((at(30), Runnable)));
    assert_eq!(second.reason, Reason::Preempted);
    assert_eq!((second.behind, second.overtaken), (Some(TaskId(2)), 1));
    // It waits still: an open wait is told, but is in no distribution.
    assert_eq!((second.ran, second.wait()), (None, None));
    assert_eq!(tracer.waits(false).count(), 1);
    assert_eq!(tracer.waits(true).count(), 0);
    let visit = &tracer.visits()[1];
    let whats: Vec<QueueEvent> = visit.steps.iter().map(|step| step.what).collect();
    assert_eq!(whats, [QueueEvent::Runs, QueueEvent::Idles]);
}

#[test]
fn what_has_not_run_again_is_known_from_its_last_run() {
    let stream = born()
        .start(0, 1, 0)
        .on(0, Report, 1, 5 << 32 | 105, 0)
        .switch(0, 0, None, Some(1))
        .start(5, 2, 0)
        .switch(7, 0, Some((1, Runnable)), Some(2))
        .wakeup(9, 0, 0);
    let tracer = trace(named("solo"), &stream, 20);
    let known: Vec<KnownFrom> = tracer.visits()[0].queue.iter().map(|it| it.known).collect();
    assert_eq!(
        known,
        [KnownFrom::AtLastRun(told(105, 5)), KnownFrom::Nothing]
    );
}

#[test]
fn a_queue_follows_the_task_to_another_cpu() {
    let stream = born()
        .start(0, 1, 0)
        .switch(0, 0, None, Some(1))
        .start(0, 2, 1)
        .switch(0, 1, None, Some(2))
        .wakeup(3, 0, 0)
        .migrate(4, 0, 0, 1)
        .switch(5, 0, Some((1, Sleeping)), None)
        .switch(6, 1, Some((2, Sleeping)), Some(0));
    let tracer = trace(named("solo"), &stream, 9);
    let [turn] = tracer.turns() else { panic!() };
    assert_eq!((turn.cpu, turn.ran), (CpuId(1), Some(at(6))));
    // That CPU 0 idles from 5 on is no business of its queue any more.
    let steps = &tracer.visits()[0].steps;
    assert_eq!(steps.len(), 1);
    assert_eq!(
        (steps[0].what, steps[0].cpu),
        (QueueEvent::Arrives(CpuId(0)), CpuId(1))
    );
}

#[test]
fn a_task_is_chosen_by_pid_by_name_by_group_and_as_a_child() {
    let stream = born().push(with(
        traces::testing::event(1, EventKind::New, 0, TaskId(3)),
        (0, 2 << 32 | 1, 1 << 32 | 1003),
    ));
    let chosen = |which: TracedTasks, children| {
        let mut tracer = Tracer::new(Selection {
            which,
            children,
            queues: None,
        });
        stream.feed(&mut tracer, 1, 2);
        tracer.traced().map(|task| task.0).collect::<Vec<_>>()
    };
    assert_eq!(chosen(TracedTasks::Pid(1002), false), [2]);
    assert_eq!(chosen(named("solo"), false), [0]);
    assert_eq!(chosen(named("pair.1"), false), [2]);
    assert_eq!(chosen(named("pair"), false), [1, 2, 3]);
    assert_eq!(chosen(TracedTasks::Pid(1001), false), [1]);
    assert_eq!(chosen(TracedTasks::Pid(1001), true), [1, 3]);
    assert_eq!(chosen(named("nobody"), true), [0; 0]);
}

#[test]
fn a_report_belongs_to_the_run_that_it_stands_before() {
    let stream = born()
        .start(0, 1, 0)
        .on(0, Report, 1, 3 << 32 | 103, 0)
        .switch(0, 0, None, Some(1))
        .wakeup(2_000, 0, 0)
        .start(2_500, 2, 0)
        .on(3_000, Report, 0, 2 << 32 | 102, 0)
        .switch(3_000, 0, Some((1, Runnable)), Some(0))
        // Behind the switch it is about the time from then on.
        .on(3_001, Report, 0, 5 << 32 | 105, 0);
    let tracer = trace(named("solo"), &stream, 1_000_000);
    assert_eq!(tracer.turns()[0].standing, Some(told(102, 2)));
    let known: Vec<KnownFrom> = tracer.visits()[0].queue.iter().map(|it| it.known).collect();
    assert_eq!(known, [KnownFrom::AtNextRun(told(102, 2))]);
    let first = trace(named("pair.0"), &stream, 1_000_000);
    assert_eq!(first.turns()[0].standing, Some(told(103, 3)));
}

#[test]
fn without_queues_none_are_kept() {
    let mut tracer = Tracer::new(Selection {
        which: named("solo"),
        children: false,
        queues: None,
    });
    behind_two().feed(&mut tracer, 1, 60);
    assert!(tracer.visits().is_empty());
    assert_eq!(tracer.turns().len(), 1);
}
