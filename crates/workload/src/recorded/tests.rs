use super::*;
use crate::{Amount, Expr, IndexedResource, Target};
use model::{CpuId, EventKind, EventWords, MachineSpec, SYNC_BIT, TaskGroup};

pub(crate) fn event(at: u64, kind: EventKind, task: u32, words: (u64, u64)) -> Event {
    detailed(at, (kind, 0), task, words)
}

/// An event of these numbers.
pub(crate) fn detailed(
    at: u64,
    (kind, detail): (EventKind, u8),
    task: u32,
    (a, b): (u64, u64),
) -> Event {
    let at = (SimTime::from_nanos(at), CpuId(0), TaskId(task));
    let event = Event::from_words(at, kind, EventWords { detail, a, b });
    event.expect("numbers that mean something")
}

pub(crate) fn switch(at: u64, next: u32, prev: u32, left: PrevState) -> Event {
    let kind = (EventKind::Switch, left as u8);
    detailed(at, kind, next, (prev.into(), 0))
}

pub(crate) fn recorded(events: &[Event]) -> RecordedLoad {
    recorded_at(RecordedCosts::default(), events)
}

fn recorded_at(costs: RecordedCosts, events: &[Event]) -> RecordedLoad {
    let mut recorded = RecordedLoad::new();
    recorded.set_costs(costs);
    recorded.begin(&Header {
        policy: "p".to_owned(),
        workload: "w".to_owned(),
        machine: MachineSpec::default(),
        seed: 3,
        duration: None,
        groups: vec![TaskGroup {
            name: "t".to_owned(),
            nice: 5,
            count: 4,
        }],
        spans: vec!["s".to_owned()],
        deadlines: Vec::new(),
        counters: vec!["c".to_owned()],
        phases: Vec::new(),
    });
    recorded.events(events);
    recorded.finish(SimTime::from_nanos(1_000));
    recorded
}

const NONE: u32 = TaskId::NONE.0;

pub(crate) fn new(at: u64, task: u32, parent: u32) -> Event {
    let words = (u64::from(task) << 32, u64::from(parent) << 32);
    event(at, EventKind::New, task, words)
}

pub(crate) fn wakeup(at: u64, task: u32, waker: u32) -> Event {
    event(at, EventKind::Wakeup, task, (waker.into(), 0))
}

fn run(ns: u64) -> Operation {
    Operation::Run(Some(Amount {
        dist: Dist::Const(Nanos::new(ns)),
        times: Expr::Number(1),
    }))
}

fn ops(workload: &Workload, group: usize) -> Vec<Operation> {
    let [step] = &workload.groups[group].body[..] else {
        panic!("a recorded task has one operation");
    };
    let Operation::Script(script) = &step.op else {
        panic!("it is a script");
    };
    script.iter().map(|it| it.operation()).collect()
}

#[test]
fn a_task_that_is_real_time_from_the_begin_is_one_in_the_load() {
    let class = |at, task, priority, class| {
        let what = What::Change(Change::Class { class, priority });
        Event::new(SimTime::from_nanos(at), CpuId(0), TaskId(task), what)
    };
    let changed = |at, task| class(at, task, 0, TaskClass::RealTime);
    let recorded = recorded(&[
        new(0, 0, NONE),
        changed(0, 0),
        new(0, 1, NONE),
        wakeup(0, 0, NONE),
        switch(0, 0, NONE, PrevState::Idle),
        wakeup(10, 1, 0),
        switch(20, 1, 0, PrevState::Sleeping),
        // It has run until now as what it was.
        changed(30, 1),
        switch(40, NONE, 1, PrevState::Sleeping),
        // An imported trace tells the priority.
        class(50, 1, 70, TaskClass::RealTime),
        class(60, 1, 0, TaskClass::Fair),
        wakeup(60, 1, NONE),
    ]);
    let workload = recorded.into_workload("r", CostScale::ONE).unwrap();
    assert_eq!(
        (workload.seed, &*workload.name),
        (3, "w"),
        "what is drawn later is the same"
    );
    let policies: Vec<_> = workload.groups.iter().map(|group| group.policy).collect();
    assert_eq!(
        policies,
        [SchedPolicy::Fifo(INTERRUPT_PRIORITY), SchedPolicy::Normal]
    );
    let becomes = ops(&workload, 1).into_iter().filter_map(|op| match op {
        Operation::SetPolicy { policy, .. } => Some(policy),
        _ => None,
    });
    assert_eq!(
        becomes.collect::<Vec<_>>(),
        [
            SchedPolicy::Fifo(INTERRUPT_PRIORITY),
            SchedPolicy::Fifo(70),
            SchedPolicy::Normal
        ]
    );
}

#[test]
fn a_task_that_is_bound_from_the_begin_stays_where_it_ran_until_it_may_use_more() {
    let allowed = |at, task, cpus| event(at, EventKind::Change, task, (1, cpus));
    let on = |cpu, event: Event| Event::new(event.time, CpuId(cpu), event.task, event.what());
    let recorded = recorded(&[
        new(0, 0, NONE),
        allowed(0, 0, 1),
        new(0, 1, NONE),
        allowed(0, 1, 1),
        new(0, 2, NONE),
        wakeup(0, 0, NONE),
        on(3, switch(0, 0, NONE, PrevState::Idle)),
        wakeup(0, 1, NONE),
        on(2, switch(0, 1, NONE, PrevState::Idle)),
        wakeup(0, 2, NONE),
        on(1, switch(0, 2, NONE, PrevState::Idle)),
        allowed(30, 1, 4),
        // Where it is bound from now on is not told.
        allowed(30, 2, 1),
        on(3, switch(40, NONE, 0, PrevState::Sleeping)),
        on(2, switch(40, NONE, 1, PrevState::Sleeping)),
        on(1, switch(40, NONE, 2, PrevState::Sleeping)),
    ]);
    let workload = recorded.into_workload("r", CostScale::ONE).unwrap();
    let cpus = |workload: &Workload| -> Vec<Option<u16>> {
        let groups = workload.groups.iter();
        let own = groups.map(|group| Some(group.cpus.as_ref()?.first()?.0));
        own.collect()
    };
    assert_eq!(cpus(&workload), [Some(3), Some(2), None]);
    let freed = Operation::SetAffinity {
        target: Target::Me,
        cpus: None,
    };
    assert_eq!(ops(&workload, 1), [run(30), freed, run(10)]);
    assert_eq!(ops(&workload, 2), [run(40)]);
}

#[test]
fn what_the_kernel_took_of_a_turn_is_no_work_of_its_task() {
    assert_eq!(RecordedCosts::of(&Profile::Ideal), RecordedCosts::default());
    let usual = RecordedCosts::of(&Profile::DefaultV0);
    assert_eq!(
        (usual.switch, usual.wakeup),
        (Nanos::new(1140), Nanos::new(600))
    );
    let costs = RecordedCosts {
        switch: Nanos::new(7),
        switch_idle: Nanos::new(3),
        wakeup: Nanos::new(5),
    };
    let recorded = recorded_at(
        costs,
        &[
            new(0, 0, NONE),
            new(0, 1, NONE),
            wakeup(0, 0, NONE),
            switch(0, 0, NONE, PrevState::Idle),
            wakeup(35, 1, 0),
            switch(50, 1, 0, PrevState::Sleeping),
            switch(70, NONE, 1, PrevState::Dead),
            // A turn that is shorter than its switch.
            wakeup(80, 0, NONE),
            switch(80, 0, NONE, PrevState::Idle),
            switch(82, NONE, 0, PrevState::Sleeping),
        ],
    );
    let workload = recorded.into_workload("r", CostScale::ONE).unwrap();
    let runs = |group| {
        let all = ops(&workload, group).into_iter();
        let runs = all.filter(|it| matches!(it, Operation::Run(_)));
        runs.collect::<Vec<_>>()
    };
    // 35 less the switch; 15 less the wakeup; 20 less the switch between two tasks.
    assert_eq!(runs(0), [run(32), run(10)]);
    assert_eq!(runs(1), [run(13)]);
}

/// Memory is asked for by their number before the workload is made.
#[test]
fn the_operations_of_a_workload_are_no_more_than_was_said() {
    let mut events = vec![new(0, 0, NONE)];
    for turn in 0..50 {
        let at = turn * 20;
        events.extend([
            wakeup(at, 0, NONE),
            switch(at, 0, NONE, PrevState::Idle),
            switch(at + 10, NONE, 0, PrevState::Sleeping),
        ]);
    }
    let recorded = recorded(&events);
    let said = recorded.operations();
    let workload = recorded.into_workload("t.toml", CostScale::ONE).unwrap();
    let made = ops(&workload, 0).len() as u64;
    assert!(
        made > 90 && made <= said && said < 3 * made,
        "{made} of {said}"
    );
}

#[test]
fn bursts_messages_timers_and_forks_are_found() {
    let recorded = recorded(&[
        new(0, 0, NONE),
        new(0, 1, NONE),
        new(0, 2, NONE),
        wakeup(0, 0, NONE),
        switch(0, 0, NONE, PrevState::Idle),
        // Preempted in its burst.
        switch(10, NONE, 0, PrevState::Runnable),
        switch(15, 0, NONE, PrevState::Idle),
        wakeup(35, 1, 0),
        event(40, EventKind::Count, 0, (0, 7)),
        // Of a span that began before the recording.
        event(41, EventKind::SpanEnd, 0, (0, 99)),
        new(45, 3, 0),
        event(45, EventKind::Wakeup, 3, (0, 1)),
        switch(50, 1, 0, PrevState::Sleeping),
        switch(70, 3, 1, PrevState::Dead),
        switch(80, NONE, 3, PrevState::Dead),
        wakeup(150, 0, NONE),
        switch(150, 0, NONE, PrevState::Idle),
        switch(160, NONE, 0, PrevState::Dead),
    ]);
    let want = Wakeups {
        by_tasks: 1,
        by_timers: 1,
        from_outside: 0,
    };
    assert_eq!(recorded.wakeups(), want);
    let workload = recorded
        .into_workload("f", CostScale::millionths(500_000))
        .unwrap();
    // Task 2 never ran.
    let names: Vec<_> = workload.groups.iter().map(|group| &*group.name).collect();
    assert_eq!(names, ["t.0", "t.1", "t.3"]);
    let counts: Vec<_> = workload.groups.iter().map(|group| group.count).collect();
    assert_eq!(counts, [1, 1, 0]);
    let place = |of| IndexedResource {
        of,
        index: Expr::Number(0),
    };
    let first = [
        run(15),
        Operation::Send {
            to: place(1),
            bytes: None,
            value: None,
        },
        run(2),
        Operation::Count {
            counter: 0,
            by: Expr::Number(7),
        },
        run(2),
        Operation::Fork(2),
        run(2),
        Operation::Sleep(Amount {
            dist: Dist::Const(Nanos::new(100)),
            times: Expr::Number(1),
        }),
        run(5),
    ];
    assert_eq!(ops(&workload, 0), first);
    assert_eq!(ops(&workload, 1), [Operation::Recv(place(1)), run(10)]);
    assert_eq!(ops(&workload, 2), [run(5)]);
}

#[test]
fn a_waker_that_has_left_its_cpu_wakes_as_the_last_thing_it_did() {
    let recorded = recorded(&[
        new(0, 0, NONE),
        new(0, 1, NONE),
        wakeup(0, 0, NONE),
        switch(0, 0, NONE, PrevState::Idle),
        switch(20, NONE, 0, PrevState::Sleeping),
        wakeup(25, 1, 0),
        switch(25, 1, NONE, PrevState::Idle),
        switch(35, NONE, 1, PrevState::Dead),
        wakeup(60, 0, NONE),
        switch(60, 0, NONE, PrevState::Idle),
    ]);
    let workload = recorded.into_workload("f", CostScale::ONE).unwrap();
    let kinds: Vec<_> = ops(&workload, 0)
        .into_iter()
        .map(|op| match op {
            Operation::Run(_) => "run",
            Operation::Send { .. } => "send",
            Operation::Sleep(_) => "sleep",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["run", "send", "sleep", "run"]);
}

#[test]
fn yields_and_synchronous_wakeups_are_kept_where_they_are_told() {
    let called = |at, task, op: Op, a| detailed(at, (EventKind::Callback, op as u8), task, (a, 0));
    let recorded = recorded(&[
        new(0, 0, NONE),
        new(0, 1, NONE),
        wakeup(0, 0, NONE),
        wakeup(0, 1, NONE),
        switch(0, 1, NONE, PrevState::Idle),
        switch(0, 0, 1, PrevState::Sleeping),
        called(10, 1, Op::SelectCpu, 0x18),
        wakeup(10, 1, 0),
        called(10, 0, Op::Yield, u64::from(NONE)),
        switch(10, 1, 0, PrevState::Runnable),
        switch(30, 0, 1, PrevState::Sleeping),
        // The flag is that of one wakeup.
        called(40, 1, Op::SelectCpu, 0x8),
        wakeup(40, 1, 0),
        switch(40, 1, 0, PrevState::Runnable),
        switch(50, 0, 1, PrevState::Sleeping),
        event(60, EventKind::Wakeup, 1, (1 << SYNC_BIT, 0)),
        switch(60, 1, 0, PrevState::Dead),
        switch(70, NONE, 1, PrevState::Dead),
    ]);
    let workload = recorded.into_workload("f", CostScale::ONE).unwrap();
    let kinds: Vec<_> = workload.channels.iter().map(|it| it.kind).collect();
    let [queue, unix] = [ChannelKind::Queue, ChannelKind::Unix];
    assert_eq!(kinds, [queue, queue, unix, unix]);
    let place = |of| IndexedResource {
        of,
        index: Expr::Number(0),
    };
    let send = |of| Operation::Send {
        to: place(of),
        bytes: None,
        value: None,
    };
    let first = [
        run(10),
        send(3),
        Operation::Yield,
        run(10),
        send(1),
        run(10),
        send(3),
    ];
    assert_eq!(ops(&workload, 0), first);
    let [third, second] = [3, 1].map(|of| Operation::Recv(place(of)));
    let second = [third.clone(), run(20), second, run(10), third, run(10)];
    assert_eq!(ops(&workload, 1), second);
}

#[test]
fn work_from_outside_comes_when_it_came_and_threads_wait_from_the_begin() {
    let caused = |event: Event, cause: WakeCause| match event.what() {
        What::Wakeup(wakeup) => {
            let what = What::Wakeup(Wakeup { cause, ..wakeup });
            Event::new(event.time, event.cpu, event.task, what)
        }
        other => panic!("{other:?}"),
    };
    let mut recorded = recorded(&[
        new(0, 0, NONE),
        caused(wakeup(5, 0, NONE), WakeCause::Before),
        switch(5, 0, NONE, PrevState::Idle),
        switch(25, NONE, 0, PrevState::Sleeping),
        caused(wakeup(95, 0, NONE), WakeCause::Outside),
        switch(95, 0, NONE, PrevState::Idle),
        switch(105, NONE, 0, PrevState::Sleeping),
        caused(wakeup(135, 0, NONE), WakeCause::Clock),
        switch(135, 0, NONE, PrevState::Idle),
        // Seen for the first time when it is woken: it slept until then.
        new(140, 1, NONE),
        caused(wakeup(140, 1, NONE), WakeCause::Outside),
        switch(145, 1, 0, PrevState::Sleeping),
    ]);
    recorded.set_policy(TaskId(1), SchedPolicy::Fifo(7));
    recorded.set_cpus(TaskId(1), CpuSet::parse("1-2").unwrap());
    let workload = recorded.into_workload("f", CostScale::ONE).unwrap();
    let amount = |ns| Amount {
        dist: Dist::Const(Nanos::new(ns)),
        times: Expr::Number(1),
    };
    let want = [
        run(20),
        Operation::SleepUntil(amount(95)),
        run(10),
        Operation::Sleep(amount(30)),
        run(10),
    ];
    assert_eq!(ops(&workload, 0), want);
    let starts: Vec<_> = workload.groups.iter().map(|it| &it.start).collect();
    assert_eq!(
        starts,
        [&Dist::Const(Nanos::ZERO), &Dist::Const(Nanos::new(140))]
    );
    assert_eq!(workload.groups[1].policy, SchedPolicy::Fifo(7));
    assert_eq!(workload.groups[0].cpus, None);
    assert_eq!(workload.groups[1].cpus, CpuSet::parse("1-2"));
}
