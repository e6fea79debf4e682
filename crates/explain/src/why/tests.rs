use model::{CpuId, EventKind, Looked, Nanos, PrevState, TaskId};

use super::*;
use traces::testing::{StreamWriter, event, header, with};

const QUEUE: u64 = 7;

fn decision(ns: u64, kind: EventKind, cpu: u16, task: TaskId, words: (u64, u64)) -> Event {
    with(
        event(ns, kind, cpu, task),
        (model::Op::Enqueue as u8, words.0, words.1),
    )
}

fn observe(events: &[Event], end: u64) -> Observer {
    let mut observer = Observer::new(3, None);
    observer.begin(&header(2));
    observer.text(&Text::Place {
        place: 1,
        function: "put".to_owned(),
        file: Some("p.bpf.c".to_owned()),
        line: 9,
    });
    observer.events(events);
    observer.finish(SimTime::from_nanos(end));
    observer
}

/// Queue 0 is that of CPU 0, queue 2 the policy's number 7; one task is runnable from 5 on.
fn begin() -> Vec<Event> {
    let named = |index, id| {
        let words = (id, u64::from(index as u32) | 1 << 32);
        decision(0, EventKind::Queue, 0, TaskId::NONE, words)
    };
    let mut events = vec![named(0, 3 << 62), named(1, (3 << 62) | 1), named(2, QUEUE)];
    events.extend(StreamWriter::new().born(0, 0, 0, 0).start(5, 0, 0).events);
    events
}

const END: u64 = 2_000_000_000;

#[test]
fn a_task_that_enqueue_kept_is_lost() {
    let mut events = begin();
    let kept = (u64::from(model::NOWHERE), 1);
    events.push(decision(5, EventKind::Insert, 0, TaskId(0), kept));
    let finding = observe(&events, END).finding().unwrap();
    assert_eq!(finding.fault, Fault::Lost);
    let victim = finding.victim.unwrap();
    assert_eq!(
        (victim.name.as_str(), victim.standing),
        ("solo", Standing::Nowhere)
    );
    let place = finding.culprit.unwrap().place.unwrap();
    assert_eq!((place.function.as_str(), place.line), ("put", 9));
}

#[test]
fn a_queue_that_dispatch_passes_by_is_unread_and_one_without_dispatch_needs_a_kick() {
    let mut events = begin();
    events.push(decision(
        5,
        EventKind::Insert,
        0,
        TaskId(0),
        (2 | 1 << 32, 1),
    ));
    let finding = observe(&events, END).finding().unwrap();
    assert_eq!(finding.fault, Fault::ForgottenKick);
    assert_eq!(finding.idle.len(), 2);
    events.push(with(
        event(9, EventKind::Callback, 1, TaskId::NONE),
        (model::Op::Dispatch as u8, 0, 0),
    ));
    let finding = observe(&events, END).finding().unwrap();
    assert_eq!(finding.fault, Fault::UnreadQueue);
    let queue = finding.queue.unwrap();
    assert_eq!((queue.id, queue.depth, queue.last_look), (QUEUE, 1, None));
}

/// Without `select_cpu` the kernel puts a task that wakes into the local queue of an idle CPU, and
/// the policy may never be asked about it. It is no task of a higher class.
#[test]
fn a_task_that_the_kernel_alone_put_into_a_queue_outranks_nobody() {
    let mut events = begin();
    let born = StreamWriter::new().born(5, 1, 1, 0).born(5, 2, 1, 1);
    events.extend(born.start(5, 1, 0).start(5, 2, 1).events);
    for (task, cpu) in [(1, 0), (2, 1)] {
        let insert = event(5, EventKind::Insert, cpu, TaskId(task));
        let flags = u64::from(model::insert::KERNEL) << 32;
        let by = model::Caller::Kernel.number();
        events.push(with(insert, (by, u64::from(cpu) | 1 << 32, flags)));
        let switch = StreamWriter::new().switch(6, cpu, None, Some(task));
        events.extend(switch.events);
    }
    let words = (2 | 1 << 32, 1);
    events.push(decision(7, EventKind::Insert, 0, TaskId(0), words));
    events.push(with(
        event(9, EventKind::Callback, 1, TaskId::NONE),
        (model::Op::Dispatch as u8, 0, 0),
    ));
    let finding = observe(&events, END).open_finding(TaskId(0)).unwrap();
    assert_eq!(finding.fault, Fault::UnreadQueue);
}

#[test]
fn a_wait_that_has_ended_is_among_the_worst_and_explains_itself() {
    let mut events = begin();
    events.push(decision(
        5,
        EventKind::Insert,
        0,
        TaskId(0),
        (2 | 1 << 32, 1),
    ));
    let look = decision(900, EventKind::Look, 0, TaskId(0), (2, 1));
    events.push(look);
    events.extend(StreamWriter::new().switch(905, 0, None, Some(0)).events);
    let worst = observe(&events, END).worst();
    assert_eq!(worst.len(), 1);
    assert_eq!(worst[0].span, Nanos::new(900));
    let victim = worst[0].finding.victim.as_ref().unwrap();
    assert_eq!(victim.standing, Standing::Queue(QUEUE), "where it was");
    assert_eq!(victim.put.as_ref().unwrap().time, SimTime::from_nanos(5));
    assert_eq!(worst[0].finding.fault, Fault::Waited);
    assert!(observe(&events, END).finding().is_none());
    let off = StreamWriter::new().switch(950, 0, Some((0, PrevState::Sleeping)), None);
    events.extend(off.events);
    assert_eq!(observe(&events, END).worst().len(), 1);
    assert_eq!(
        CpuId(0),
        worst[0]
            .finding
            .queue
            .as_ref()
            .map_or(CpuId(0), |q| q.readers[0])
    );
}

/// A policy that leaves a task in the queue of a CPU that goes offline lets it wait for ever. The
/// other CPUs, which it may not use, owe it nothing.
#[test]
fn a_queue_whose_readers_are_gone_is_unread_though_the_task_may_use_no_other_cpu() {
    let mut events = begin();
    events.push(decision(5, EventKind::Allowed, 0, TaskId(0), (1, 2)));
    events.extend(StreamWriter::new().born(5, 1, 1, 0).events);
    events.push(decision(5, EventKind::Look, 1, TaskId(1), (2, 1)));
    let words = (2 | 1 << 32, 1);
    events.push(decision(6, EventKind::Insert, 1, TaskId(0), words));
    events.push(with(
        event(7, EventKind::Callback, 1, TaskId::NONE),
        (model::Op::CpuOffline as u8, 1, 0),
    ));
    let finding = observe(&events, END).finding().unwrap();
    assert_eq!(finding.fault, Fault::UnreadQueue);
    assert!(finding.is_fault());
    // CPU 0 reads the queue, too, and may not take the task.
    events.extend(StreamWriter::new().born(9, 2, 1, 1).events);
    events.push(decision(9, EventKind::Look, 0, TaskId(2), (2, 1)));
    let finding = observe(&events, END).finding().unwrap();
    assert_eq!(finding.fault, Fault::UnreachableQueue);
    assert!(finding.is_fault());
}

/// What CPUs do that a task may not use explains none of its wait.
#[test]
fn a_cpu_is_told_to_have_taken_others_only_if_the_task_may_use_it() {
    let mut events = begin();
    let own = (2 | 1 << 32, 1);
    events.push(decision(5, EventKind::Insert, 0, TaskId(0), own));
    events.push(decision(5, EventKind::Allowed, 0, TaskId(0), (1, 1)));
    let other = (8, 3 | 1 << 32);
    events.push(decision(5, EventKind::Queue, 0, TaskId::NONE, other));
    events.extend(StreamWriter::new().born(5, 1, 1, 0).born(5, 2, 1, 1).events);
    events.push(decision(7, EventKind::Look, 0, TaskId(1), (3, 1)));
    events.push(decision(9, EventKind::Look, 1, TaskId(2), (3, 1)));
    let finding = observe(&events, END).open_finding(TaskId(0)).unwrap();
    let (look, queue) = finding.queue.unwrap().other_look.unwrap();
    assert_eq!((look.cpu, queue.id), (CpuId(0), 8));
}

/// An event file may name a task that never began.
#[test]
fn a_misuse_of_a_task_that_nobody_knows_has_no_victim() {
    let failed = |task| {
        let mut events = begin();
        events.push(decision(7, EventKind::Failed, 0, TaskId(task), (0, 1)));
        let mut observer = observe(&events, 9);
        observer.text(&Text::Exit(Exit {
            kind: ExitKind::Error,
            code: 0,
            message: "invalid".to_owned(),
            time: SimTime::from_nanos(7),
            fault: None,
        }));
        observer.finding().unwrap()
    };
    let known = failed(0);
    assert_eq!(known.victim.map(|it| it.name).as_deref(), Some("solo"));
    for unknown in [1, 2, TaskId::NONE.0] {
        let finding = failed(unknown);
        assert_eq!(finding.victim, None, "{unknown}");
        assert_eq!(finding.message.as_deref(), Some("invalid"));
        assert_eq!(finding.culprit.unwrap().place.unwrap().line, 9);
    }
}

#[test]
fn a_decision_is_told_with_the_names_of_its_task_and_queue() {
    let mut follower = Follower::default();
    follower.begin(&header(2));
    for event in begin() {
        follower.apply(&event);
    }
    let solo = TaskId(0);
    let said = |kind, task, words| {
        let (said, act) = follower.describe(&decision(8, kind, 1, task, words));
        assert_eq!((act.time, act.cpu), (SimTime::from_nanos(8), CpuId(1)));
        said
    };
    let look = |how: Looked| (2, (how as u64) << 32);
    let cases = [
        (
            EventKind::Insert,
            solo,
            (2 | 3 << 32, 0),
            "inserts solo into queue 7 (now 3 tasks)",
        ),
        (
            EventKind::Insert,
            TaskId(9),
            (u64::from(model::NOWHERE), 0),
            "keeps task 9 in no queue",
        ),
        (
            EventKind::Look,
            solo,
            look(Looked::Move),
            "takes solo out of queue 7",
        ),
        (
            EventKind::Look,
            TaskId::NONE,
            look(Looked::Move),
            "finds nobody in queue 7",
        ),
        (
            EventKind::Look,
            TaskId::NONE,
            look(Looked::Nothing),
            "ends `dispatch` without a task",
        ),
        (
            EventKind::Look,
            solo,
            look(Looked::LetGo),
            "has solo in hand and does not insert it",
        ),
        (
            EventKind::Slice,
            solo,
            (5_000, 0),
            "gives solo a slice of 5.00 us",
        ),
        (
            EventKind::Slice,
            solo,
            (u64::MAX, 0),
            "gives solo a slice without end",
        ),
    ];
    for (kind, task, words, want) in cases {
        assert_eq!(said(kind, task, words), want);
    }
    let waits = follower.scene();
    assert_eq!((waits.waiting, waits.cpus), (1, vec![None, None]));
}

/// The kernel ends a policy whose task does not run for so long, whatever the events show.
#[test]
fn a_stall_that_the_watchdog_ended_is_never_a_task_that_waits_for_its_turn() {
    let mut events = begin();
    let words = (2 | 1 << 32, 1);
    events.push(decision(5, EventKind::Insert, 0, TaskId(0), words));
    let look = decision(900, EventKind::Look, 0, TaskId(0), (2, 1));
    events.push(look);
    let mut observer = observe(&events, END);
    observer.text(&Text::Exit(Exit {
        kind: ExitKind::ErrorStall,
        code: 0,
        time: SimTime::from_nanos(END),
        message: "nobody[99] failed to run for 30.000s".to_owned(),
        fault: None,
    }));
    let finding = observer.finding().unwrap();
    assert_eq!(finding.fault, Fault::Stall);
    assert_eq!(finding.culprit, None);
    assert!(finding.message.unwrap().contains("failed to run"));
}

/// Two tasks wait on two CPUs that nobody uses: each has a right to a whole one.
#[test]
fn lags_are_told_by_task_and_one_that_runs_has_none() {
    let mut events = begin();
    events.extend(StreamWriter::new().born(5, 1, 0, 0).start(5, 1, 0).events);
    for task in 0..2 {
        let words = (2 | 1 << 32, 1);
        events.push(decision(5, EventKind::Insert, 0, TaskId(task), words));
    }
    let ms = |ms: u64| ms * 1_000_000;
    let lags = observe(&events, ms(300)).lags();
    let told: Vec<_> = lags.iter().map(|it| (it.task, it.lag.get())).collect();
    assert_eq!(told, [0, 1].map(|task| (TaskId(task), ms(300) - 5)));
    assert_eq!(lags[0].bound, Nanos::from_millis(100));
    events.extend(StreamWriter::new().switch(ms(301), 0, None, Some(0)).events);
    let observer = observe(&events, ms(400));
    assert_eq!(observer.lag(TaskId(0)), Some(Nanos::ZERO));
    assert_eq!(observer.lag(TaskId(1)), Some(Nanos::new(ms(400) - 5)));
    assert_eq!(observer.lag(TaskId(2)), None);
    assert_eq!(observer.bound(TaskId(2)), Nanos::from_millis(100));
}

/// What came into a local queue before the task came to its own says nothing of its wait.
#[test]
fn a_cpu_is_kept_busy_by_the_inserts_of_the_wait_alone() {
    let mut cpus = vec![state::Cpu::default()];
    for number in [5, 6, 7] {
        assert_eq!(cpus[0].refills[0], None, "too few");
        let deed = state::Deed {
            time: SimTime::from_nanos(number),
            number,
            cpu: CpuId(3),
            caller: model::Caller::Callback(model::Op::SelectCpu),
            place: 1,
        };
        state::refill(&mut cpus, 3 << 62, deed);
    }
    // The judge holds it against the number of what put the task into its queue.
    assert_eq!(cpus[0].refills[0], Some(5));
    assert_eq!(cpus[0].refilled.map(|deed| deed.number), Some(7));
}
