use model::{Event, EventKind, Nanos, PrevState, SimTime, TaskGroup, TaskId, WakeCause};

use super::{AsFile, Grouped, KnownTask};
use crate::recorded::tests::{detailed, event};
use crate::{SchedPolicy, Workload};

const NONE: u32 = TaskId::NONE.0;

fn new(at: u64, task: u32, parent: u32) -> Event {
    event(
        at,
        EventKind::New,
        task,
        (task.into(), u64::from(parent) << 32),
    )
}

fn wakeup(at: u64, task: u32, waker: u32, cause: WakeCause) -> Event {
    let kind = (EventKind::Wakeup, cause as u8);
    detailed(at, kind, task, (waker.into(), 0))
}

fn switch(at: u64, next: u32, prev: u32, left: PrevState) -> Event {
    let kind = (EventKind::Switch, left as u8);
    detailed(at, kind, next, (prev.into(), 0))
}

/// Two servers that a client wakes in turn; the client sleeps by a clock and forks once.
fn recorded() -> Grouped {
    let mut grouped = Grouped::new();
    grouped.events(&[
        new(0, 0, NONE),
        new(0, 1, NONE),
        new(0, 2, NONE),
        wakeup(0, 0, NONE, WakeCause::Before),
        switch(0, 0, NONE, PrevState::Idle),
    ]);
    let us = 1_000;
    for turn in 0..100 {
        let at = turn * 1_000 * us;
        let server = 1 + u32::try_from(turn % 2).unwrap();
        grouped.events(&[
            wakeup(at + 50 * us, server, 0, WakeCause::Unsaid),
            switch(at + 100 * us, server, 0, PrevState::Sleeping),
            switch(at + 400 * us, NONE, server, PrevState::Sleeping),
            wakeup(at + 1_000 * us, 0, NONE, WakeCause::Clock),
            switch(at + 1_000 * us, 0, NONE, PrevState::Idle),
        ]);
    }
    let end = 100_000 * us;
    grouped.events(&[
        new(end, 3, 0),
        wakeup(end, 3, 0, WakeCause::Unsaid),
        switch(end, 3, 0, PrevState::Sleeping),
        switch(end + 70 * us, NONE, 3, PrevState::Dead),
        // It never ran.
        new(end + 70 * us, 4, NONE),
    ]);
    grouped.finish(SimTime::from_nanos(end + 70 * us));
    grouped
}

fn toml(anonymous: bool) -> String {
    let group = |name: &str, nice| TaskGroup {
        name: name.to_owned(),
        nice,
        count: 1,
    };
    let groups = [
        group("client-7", 0),
        group("worker/1", 5),
        group("worker/2", 5),
        group("42", 0),
        group("idle", 0),
    ];
    let file = AsFile {
        name: "a \"trace\"",
        groups: &groups,
        machine: &model::MachineSpec {
            cpus: 3,
            smt: 2,
            ..model::MachineSpec::default()
        },
        length: Nanos::from_millis(100),
        anonymous,
    };
    let known = |task| KnownTask {
        realtime: (task == 0).then_some(7),
        cpus: crate::CpuSet::parse("0,2").filter(|_| task == 0),
    };
    recorded().to_toml(&file, &known)
}

#[test]
fn tasks_of_the_same_behaviour_are_one_group_of_a_workload_that_can_be_read() {
    let text = toml(false);
    let workload = Workload::parse(&text, "trace.toml").unwrap_or_else(|it| panic!("{it}\n{text}"));
    let groups: Vec<_> = (workload.groups.iter())
        .map(|it| (&*it.name, it.count, it.nice))
        .collect();
    assert_eq!(
        groups,
        [("worker", 2, 5), ("client", 1, 0), ("task", 0, 0)],
        "{text}"
    );
    assert_eq!((workload.machine.cpus, workload.machine.smt), (3, 2));
    let cpus: Vec<_> = workload.groups.iter().map(|it| it.cpus.clone()).collect();
    assert_eq!(cpus, [None, crate::CpuSet::parse("0,2"), None]);
    assert_eq!(workload.groups[1].policy, SchedPolicy::Fifo(7));
    for want in [
        "run(300us)",
        "recv(worker_wakes)",
        "sleep(900us)",
        // Each of 100 turns wakes a worker, and one of them forks.
        "  send(worker_wakes),",
        "loop((i + 1) * 10 / 1000 - i * 10 / 1000)[ fork(task) ]",
    ] {
        assert!(text.contains(want), "{want}\n{text}");
    }
}

/// Tasks of one name, that are woken by nothing but the clock, by a device, or by nobody.
#[test]
fn tasks_of_one_name_are_told_apart_by_what_ends_their_sleeps() {
    let mut grouped = Grouped::new();
    let us = 1_000;
    for task in 0..4 {
        grouped.events(&[new(0, task, NONE)]);
    }
    for turn in 1..11 {
        for (task, cause) in [WakeCause::Clock, WakeCause::Clock, WakeCause::Device]
            .into_iter()
            .enumerate()
        {
            let task = u32::try_from(task).unwrap();
            let at = (turn * 1_000 + u64::from(task) * 100) * us;
            grouped.events(&[
                wakeup(at, task, NONE, cause),
                switch(at, task, NONE, PrevState::Idle),
                switch(at + 50 * us, NONE, task, PrevState::Sleeping),
            ]);
        }
    }
    let at = 20_000 * us;
    grouped.events(&[
        wakeup(at, 3, NONE, WakeCause::Before),
        switch(at, 3, NONE, PrevState::Idle),
    ]);
    grouped.finish(SimTime::from_nanos(at + 7 * us));
    let file = AsFile {
        name: "trace",
        groups: &[0, 1, 2, 3].map(|_| TaskGroup {
            name: "worker".to_owned(),
            nice: 0,
            count: 1,
        }),
        machine: &model::MachineSpec::default(),
        length: Nanos::from_millis(20),
        anonymous: false,
    };
    let text = grouped.to_toml(&file, &|_| KnownTask::default());
    let workload = Workload::parse(&text, "trace.toml").unwrap_or_else(|it| panic!("{it}\n{text}"));
    let counts: Vec<u32> = workload.groups.iter().map(|group| group.count).collect();
    assert_eq!(counts, [2, 1, 1], "{text}");
}

/// The second task forks the third; work from outside wakes the first, and nothing else does.
#[test]
fn a_child_is_forked_by_its_own_parent_and_work_from_outside_has_a_source() {
    let mut grouped = Grouped::new();
    let us = 1_000;
    grouped.events(&[new(0, 0, NONE), new(0, 1, NONE)]);
    for turn in 0..10 {
        let at = turn * 1_000 * us;
        grouped.events(&[
            wakeup(at + 100 * us, 0, NONE, WakeCause::Outside),
            switch(at + 100 * us, 0, NONE, PrevState::Idle),
            switch(at + 200 * us, 1, 0, PrevState::Sleeping),
            switch(at + 300 * us, NONE, 1, PrevState::Sleeping),
            wakeup(at + 900 * us, 1, NONE, WakeCause::Clock),
        ]);
    }
    let end = 10_000 * us;
    grouped.events(&[
        new(end, 2, 1),
        wakeup(end, 2, 1, WakeCause::Unsaid),
        switch(end, 2, NONE, PrevState::Idle),
    ]);
    grouped.finish(SimTime::from_nanos(end + 50 * us));
    let group = |name: &str| TaskGroup {
        name: name.to_owned(),
        nice: 0,
        count: 1,
    };
    let file = AsFile {
        name: "trace",
        groups: &["server", "maker", "child"].map(group),
        machine: &model::MachineSpec::default(),
        length: Nanos::from_millis(10),
        anonymous: false,
    };
    let text = grouped.to_toml(&file, &|_| KnownTask::default());
    let maker = text.split("[task.maker]").nth(1).expect("the maker");
    let maker = maker.split("[task").next().unwrap_or(maker);
    assert!(maker.contains("fork(child)"), "{text}");
    assert_eq!(text.matches("fork(").count(), 1, "{text}");
    assert!(
        text.contains("# Work from outside: 10 times.\n[irq.server_outside]\n"),
        "{text}"
    );
    assert!(text.contains("poisson = \"1000000ns\""), "{text}");
    assert!(!text.contains("[irq.server_refill]"), "{text}");
}

#[test]
fn what_an_interrupt_took_is_no_time_of_the_task() {
    let mut grouped = Grouped::new();
    let us = 1_000;
    grouped.events(&[
        new(0, 0, NONE),
        wakeup(0, 0, NONE, WakeCause::Before),
        switch(0, 0, NONE, PrevState::Idle),
        event(100 * us, EventKind::Steal, 0, (40 * us, 0)),
        switch(300 * us, NONE, 0, PrevState::Sleeping),
    ]);
    grouped.finish(SimTime::from_nanos(300 * us));
    let file = AsFile {
        name: "trace",
        groups: &[],
        machine: &model::MachineSpec::default(),
        length: Nanos::from_millis(1),
        anonymous: false,
    };
    let text = grouped.to_toml(&file, &|_| KnownTask::default());
    assert!(text.contains("run(260us)"), "{text}");
}

#[test]
fn an_anonymous_file_has_no_name_of_the_trace() {
    let text = toml(true);
    Workload::parse(&text, "trace.toml").unwrap();
    for name in ["client", "worker", "42", "a _trace_"] {
        assert!(!text.contains(name), "{name}\n{text}");
    }
    assert!(toml(false).contains("client"));
}

#[test]
fn names_lose_the_words_with_numbers() {
    use super::names::stem;
    let cases = [
        ("kworker/0:1-events", "kworker events"),
        ("nginx", "nginx"),
        ("Web Content", "Web Content"),
        ("ksoftirqd/1-23", "ksoftirqd"),
        ("python3", "python"),
    ];
    for (name, want) in cases {
        assert_eq!(stem(name), want);
    }
}
