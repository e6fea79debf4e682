use model::{Header, MachineSpec, Rng};
use stats::{Conservation, Metrics, Report};

use super::*;

/// `CLOCK_MONOTONIC` when the recordings of these tests begin.
const BEGAN: u64 = 1_000_000;
/// `prev_state` of a task that sleeps (`TASK_INTERRUPTIBLE`, linux/sched.h, 6.18).
const ASLEEP: u32 = 1;

#[expect(clippy::too_many_arguments, reason = "the fields of a record")]
fn raw(at: u64, cpu: u16, kind: RecordKind, pid: u32, a: u32, b: u32) -> Raw {
    Raw {
        time: BEGAN + at,
        pid,
        cpu,
        kind,
        flags: 0,
        c: 0,
        a,
        b,
    }
}

fn switch(at: u64, cpu: u16, prev: u32, state: u32, next: u32) -> Raw {
    raw(at, cpu, RecordKind::Switch, next, prev, state)
}

fn wakeup(at: u64, cpu: u16, pid: u32) -> Raw {
    raw(at, cpu, RecordKind::Wakeup, pid, cpu.into(), 0)
}

/// Records of 2 CPUs and `length` ns; each snapshot is a pid, its flags and its name.
fn records(length: u64, snapshot: &[(u32, u8, &str)], raws: Vec<Raw>) -> Records {
    let mut records = Records {
        raws,
        facts: Vec::new(),
        began: BEGAN,
        ended: BEGAN + length,
        cpus: 2,
        ..Records::default()
    };
    for &(pid, flags, comm) in snapshot {
        let mut raw = raw(0, 0, RecordKind::Snapshot, pid, 1, 0);
        (raw.flags, raw.c) = (flags, records.facts.len() as u64);
        records.raws.push(raw);
        records.facts.push(RecordFacts {
            comm: comm.to_owned(),
            ..RecordFacts::default()
        });
    }
    records
}

fn header(converted: &Converted) -> Header {
    Header {
        policy: "kernel".to_owned(),
        workload: "test".to_owned(),
        machine: MachineSpec {
            cpus: 2,
            ..MachineSpec::default()
        },
        seed: 0,
        duration: None,
        groups: converted.groups.clone(),
        spans: Vec::new(),
        deadlines: Vec::new(),
        counters: vec!["done".to_owned()],
        phases: Vec::new(),
    }
}

/// The numbers of events that keep every rule.
fn report(converted: &Converted) -> Report {
    let (mut rules, mut metrics) = (Conservation::new(), Metrics::new());
    for sink in [&mut rules as &mut dyn model::Sink, &mut metrics] {
        sink.begin(&header(converted));
        sink.events(&converted.events);
        sink.finish(converted.end);
    }
    assert_eq!(rules.violation(), None, "{:#?}", converted.events);
    metrics.report()
}

fn told(records: &Records) -> (Converted, Report) {
    let converted = convert(records, &[], Others::ByName);
    let report = report(&converted);
    (converted, report)
}

#[test]
fn a_cpu_that_has_gone_offline_keeps_its_events() {
    let events = vec![
        switch(10, 1, 0, 0, 7),
        wakeup(20, 1, 8),
        switch(30, 1, 7, ASLEEP, 8),
        // It comes where it was not known to have left.
        switch(40, 0, 0, 0, 8),
    ];
    let mut records = records(100, &[(7, 0, "a"), (8, 0, "b")], events);
    records.cpus = 1;
    let converted = convert(&records, &[], Others::ByName);
    assert_eq!(converted.cpus, 2);
    let _report = report(&converted);
    let on = |cpu| {
        let all = converted.events.iter();
        all.filter(move |event| event.cpu == CpuId(cpu) && event.kind == EventKind::Switch)
            .count()
    };
    assert!(on(1) >= 3 && on(0) >= 1, "{:?}", converted.events);
}

#[test]
fn a_wakeup_a_turn_and_a_sleep_are_measured_as_in_the_simulator() {
    let snapshot = [(7, 0, "shell"), (9, raw::FLAG_ON_CPU, "hog.1")];
    let (converted, report) = told(&records(
        1_000,
        &snapshot,
        vec![
            wakeup(100, 0, 7),
            switch(130, 0, 9, 0, 7),
            switch(200, 0, 7, ASLEEP, 9),
        ],
    ));
    assert_eq!(converted.mended, Mended::default());
    assert_eq!(
        converted
            .groups
            .iter()
            .map(|g| &*g.name)
            .collect::<Vec<_>>(),
        ["shell", "hog"]
    );
    let [shell, hog] = &report.groups[..] else {
        panic!("{:?}", report.groups)
    };
    assert_eq!(shell.wakeup.p50.unwrap().get(), 30);
    assert_eq!(shell.runslice.p50.unwrap().get(), 70);
    assert_eq!(hog.preempt.p50.unwrap().get(), 70);
    assert_eq!(hog.times.run.get(), 130 + 800);
}

#[test]
fn tasks_that_go_before_all_of_a_policy_are_told_as_such() {
    let snapshot = [
        (1, 0, "plain"),
        (2, 0, "fifo"),
        (3, 0, "rr"),
        (4, 0, "deadline"),
        (5, 0, "idle"),
    ];
    let mut list = records(1_000, &snapshot, vec![wakeup(500, 0, 2)]);
    for (facts, policy) in
        list.facts
            .iter_mut()
            .zip([0, raw::SCHED_FIFO, raw::SCHED_RR, raw::SCHED_DEADLINE, 5])
    {
        facts.policy = policy;
    }
    let (converted, _) = told(&list);
    let changes: Vec<_> = converted
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Change)
        .map(|event| (event.words().a, event.words().b))
        .collect();
    // In the order of the groups, which are those of the names.
    assert_eq!(changes, [(2, 1), (2, 1), (2, 5)]);
}

#[test]
fn tasks_that_may_not_use_all_cpus_are_told_as_such() {
    let snapshot = [(1, 0, "bound"), (2, 0, "free"), (3, 0, "spare")];
    let mut list = records(1_000, &snapshot, vec![wakeup(500, 0, 2)]);
    // A mask may have more CPUs than there are.
    for (facts, allowed) in list.facts.iter_mut().zip([1, 2, 64]) {
        facts.cpus_allowed = allowed;
    }
    let (converted, _) = told(&list);
    let events = converted.events.iter();
    let changes = events.filter(|event| event.kind == EventKind::Change);
    let changes: Vec<_> = changes
        .map(|event| (event.words().a, event.words().b))
        .collect();
    assert_eq!(changes, [(1, 1)]);
}

#[test]
fn what_a_task_did_at_the_start_follows_from_its_first_event_or_the_snapshot() {
    let snapshot = [
        (1, raw::FLAG_ON_CPU, "ran"),
        (2, raw::FLAG_QUEUED, "waited"),
        (3, 0, "slept"),
        (4, 0, "silent"),
        (5, raw::FLAG_ON_CPU | raw::FLAG_QUEUED, "alone"),
    ];
    let mut list = records(
        1_000,
        &snapshot,
        vec![
            switch(400, 0, 1, 0, 2),
            wakeup(500, 0, 3),
            switch(600, 0, 2, ASLEEP, 3),
            switch(700, 0, 3, ASLEEP, 1),
        ],
    );
    let alone = list.raws.last_mut().unwrap();
    alone.cpu = 1;
    let (converted, report) = told(&list);
    assert_eq!(converted.mended, Mended::default());
    let run = |name: &str| {
        let group = report
            .groups
            .iter()
            .find(|group| group.name == name)
            .unwrap();
        (
            group.times.run.get(),
            group.times.wait.get(),
            group.times.sleep.get(),
        )
    };
    assert_eq!(run("ran"), (400 + 300, 300, 0));
    assert_eq!(run("waited"), (200, 400, 400));
    assert_eq!(run("slept"), (100, 100, 800));
    assert_eq!(run("silent"), (0, 0, 1_000));
    assert_eq!(run("alone"), (1_000, 0, 0));
}

#[test]
fn the_waker_is_a_task_unless_it_was_an_interrupt() {
    let snapshot = [
        (1, raw::FLAG_ON_CPU, "writer"),
        (2, 0, "reader"),
        (3, 0, "sleeper"),
    ];
    let waking = |at, pid, flags| Raw {
        flags,
        ..raw(at, 0, RecordKind::Waking, pid, 0, 1)
    };
    let (converted, _) = told(&records(
        100,
        &snapshot,
        vec![
            switch(1, 0, 1, 0, 0),
            switch(2, 0, 0, 0, 1),
            waking(10, 2, raw::FLAG_SYNC),
            wakeup(11, 1, 2),
            switch(12, 1, 0, 0, 2),
            waking(20, 3, raw::FLAG_HARDIRQ | raw::FLAG_SYNC),
            wakeup(21, 1, 3),
        ],
    ));
    let wakers: Vec<(u32, u32, u64)> = (converted.events.iter())
        .filter(|event| event.kind == EventKind::Wakeup && event.time > SimTime::from_nanos(2))
        .map(|event| {
            let sync = event.words().a >> model::SYNC_BIT;
            (event.task.0, event.words().a as u32, sync)
        })
        .collect();
    let at = |pid: u64| {
        let mut born = converted
            .events
            .iter()
            .filter(|event| event.kind == EventKind::New);
        born.find(|event| event.words().b & 0xffff_ffff == pid)
            .unwrap()
            .task
            .0
    };
    assert_eq!(wakers, [(at(2), at(1), 1), (at(3), TaskId::NONE.0, 0)]);
}

#[test]
fn a_forked_task_starts_lives_and_exits_and_its_pid_may_come_again() {
    let mut list = records(1_000, &[(1, raw::FLAG_ON_CPU, "make")], Vec::new());
    for (index, at) in [100, 500].into_iter().enumerate() {
        list.raws.push(Raw {
            c: 1 + index as u64,
            ..raw(at, 0, RecordKind::Fork, 8, 1, 0)
        });
        list.facts.push(RecordFacts {
            comm: format!("cc.{index}"),
            ..RecordFacts::default()
        });
        // A new task is placed without a wakeup, and that is no migration.
        list.raws.push(raw(at + 5, 0, RecordKind::Migrate, 8, 1, 0));
        list.raws.push(raw(at + 10, 0, RecordKind::Start, 8, 1, 0));
        list.raws.push(switch(at + 20, 1, 0, 0, 8));
        list.raws.push(switch(at + 120, 1, 8, raw::TASK_DEAD, 0));
    }
    let (converted, report) = told(&list);
    assert_eq!(converted.mended, Mended::default());
    let cc = report
        .groups
        .iter()
        .find(|group| group.name == "cc")
        .unwrap();
    assert_eq!(
        (cc.tasks, cc.exited, cc.start.count, cc.wakeup.count),
        (2, 2, 2, 0)
    );
    assert_eq!(cc.start.p50.unwrap().get(), 10);
    assert_eq!((cc.times.run.get(), cc.migrations), (200, 0));
}

#[test]
fn the_players_tasks_are_in_their_groups_and_speak() {
    let groups = [TaskGroup {
        name: "worker".to_owned(),
        nice: 0,
        count: 2,
    }];
    let mut list = records(
        1_000,
        &[
            (5, 0, "whatever"),
            (6, 0, "worker.0"),
            (2, 0, "kthreadd"),
            (9, 0, "bash"),
            (10, 0, "runslice-reader"),
        ],
        vec![
            raw(10, 0, RecordKind::Mark, 5, 0, EventKind::Count as u32),
            raw(20, 0, RecordKind::Mark, 5, 0, EventKind::Switch as u32),
        ],
    );
    list.raws[0].c = 3;
    list.facts[2].flags = raw::PF_KTHREAD;
    // Born before the recording began.
    list.raws.push(raw(0, 0, RecordKind::Born, 5, 0, 1));
    list.raws.push(raw(0, 0, RecordKind::Born, 6, 0, 0));
    list.raws[7].time = 5;
    let converted = convert(&list, &groups, Others::Together);
    let names: Vec<_> = converted
        .groups
        .iter()
        .map(|group| group.name.as_str())
        .collect();
    assert_eq!(names, ["worker", "kernel", "system", "recorder"]);
    let report = report(&converted);
    assert_eq!(report.counters[0].total, 3);
    assert_eq!(report.tasks[0].name, "worker.0");
    assert_eq!(report.tasks[1].pid, 5);
}

#[test]
fn what_came_before_the_first_event_decides_how_the_stream_begins() {
    // The snapshot was taken while the player ran, before it let the others go.
    let mut early = vec![
        switch(0, 0, 1, ASLEEP, 2),
        wakeup(0, 1, 3),
        raw(0, 0, RecordKind::Migrate, 3, 0, 1),
        raw(0, 0, RecordKind::Fork, 4, 1, 0),
        raw(0, 0, RecordKind::Start, 4, 1, 0),
        switch(0, 1, 0, 0, 4),
        switch(0, 1, 4, raw::TASK_DEAD, 5),
    ];
    for (raw, at) in early.iter_mut().zip(0..) {
        raw.time = BEGAN - 100 + at;
    }
    let snapshot = [
        (1, raw::FLAG_ON_CPU, "player"),
        (2, 0, "hog"),
        (3, 0, "waits"),
        (4, 0, "gone"),
        (5, raw::FLAG_QUEUED, "alone"),
    ];
    let (converted, report) = told(&records(1_000, &snapshot, early));
    assert_eq!(converted.mended, Mended::default());
    let times = |name: &str| {
        let group = report.groups.iter().find(|group| group.name == name);
        group.map(|group| (group.times.run.get(), group.times.wait.get()))
    };
    assert_eq!(times("player"), Some((0, 0)));
    assert_eq!(times("hog"), Some((1_000, 0)));
    assert_eq!(times("waits"), Some((0, 1_000)));
    assert_eq!(times("alone"), Some((1_000, 0)));
    assert_eq!(times("gone"), None);
}

/// A thread that is listed before it has told its name tells it before the events begin. What the
/// list says is newer than what was told before it.
#[test]
fn a_name_that_came_before_the_first_event_and_after_the_list_counts() {
    let mut early = vec![
        raw(0, 0, RecordKind::Rename, 1, 0, 0),
        raw(0, 0, RecordKind::Rename, 2, 0, 0),
        raw(0, 0, RecordKind::Fork, 3, 1, 0),
        raw(0, 0, RecordKind::Rename, 3, 0, 0),
    ];
    for ((raw, before), facts) in early.iter_mut().zip([10, 90, 50, 40]).zip([2, 2, 0, 3]) {
        (raw.time, raw.c) = (BEGAN - before, facts);
    }
    let snapshot = [
        (1, 0, "thread"),
        (2, 0, "listed"),
        (9, 0, "told"),
        (10, 0, "child"),
    ];
    let mut list = records(100, &snapshot, early);
    for raw in list
        .raws
        .iter_mut()
        .filter(|it| it.kind == RecordKind::Snapshot)
    {
        raw.time = BEGAN - 70;
    }
    let (converted, _) = told(&list);
    let names: Vec<_> = converted.groups.iter().map(|it| &*it.name).collect();
    // The tasks with the numbers 9 and 10 are there for their facts only.
    assert_eq!(names, ["told", "listed", "child"]);
}

#[test]
fn what_came_after_the_recording_is_left_out() {
    let list = records(
        100,
        &[(1, raw::FLAG_ON_CPU, "one"), (2, 0, "two")],
        vec![switch(101, 0, 1, ASLEEP, 2)],
    );
    let (converted, report) = told(&list);
    assert_eq!(converted.end, SimTime::from_nanos(100));
    assert_eq!(report.groups[0].times.run.get(), 100);
}

/// A machine of two CPUs on which everything happens that can, in an order drawn from `seed`.
fn random(seed: u64) -> Records {
    let mut rng = Rng::new(seed, 0);
    let mut list = records(100_000, &[], Vec::new());
    let mut on = [0_u32; 2];
    let mut asleep: Vec<u32> = (1..8).collect();
    let mut places: HashMap<u32, u16> = HashMap::new();
    let mut runnable: Vec<(u32, u16)> = Vec::new();
    let mut next_pid = 8;
    let pick = |rng: &mut Rng, length: usize| {
        usize::try_from(rng.below(length as u64)).expect("below a length")
    };
    for at in (0..100_000).step_by(50) {
        let cpu = u16::try_from(rng.below(2)).unwrap();
        match rng.below(5) {
            0 if !asleep.is_empty() => {
                let pid = asleep.swap_remove(pick(&mut rng, asleep.len()));
                if let Some(place) = places.get(&pid).filter(|place| **place != cpu) {
                    let (new, old) = (cpu.into(), (*place).into());
                    list.raws
                        .push(raw(at, cpu, RecordKind::Migrate, pid, new, old));
                }
                list.raws.push(wakeup(at, cpu, pid));
                runnable.push((pid, cpu));
            }
            1 if next_pid < 40 => {
                list.raws.push(Raw {
                    c: list.facts.len() as u64,
                    ..raw(at, cpu, RecordKind::Fork, next_pid, on[0], 0)
                });
                list.facts.push(RecordFacts::default());
                list.raws
                    .push(raw(at + 1, cpu, RecordKind::Start, next_pid, cpu.into(), 0));
                runnable.push((next_pid, cpu));
                next_pid += 1;
            }
            _ => {
                let next = match runnable.len() {
                    0 => 0,
                    length => {
                        let (pid, place) = runnable.swap_remove(pick(&mut rng, length));
                        if place != cpu {
                            let (new, old) = (cpu.into(), place.into());
                            list.raws
                                .push(raw(at, cpu, RecordKind::Migrate, pid, new, old));
                        }
                        pid
                    }
                };
                let prev = std::mem::replace(&mut on[usize::from(cpu)], next);
                if prev == next {
                    continue;
                }
                let state = [0, ASLEEP, raw::TASK_DEAD][pick(&mut rng, 3)];
                list.raws.push(switch(at + 2, cpu, prev, state, next));
                match (prev, state) {
                    (0, _) | (_, raw::TASK_DEAD) => {}
                    (prev, 0) => runnable.push((prev, cpu)),
                    (prev, _) => {
                        places.insert(prev, cpu);
                        asleep.push(prev);
                    }
                }
            }
        }
    }
    list
}

#[test]
fn whole_recordings_are_not_mended() {
    for seed in 0..50 {
        let (converted, _) = told(&random(seed));
        assert_eq!(converted.mended, Mended::default(), "seed {seed}");
    }
}

#[test]
fn recordings_with_holes_are_mended_and_keep_every_rule() {
    let mut mended = 0;
    for seed in 0..100 {
        let mut list = random(seed);
        let mut rng = Rng::new(seed, 1);
        list.raws.retain(|_| rng.below(10) != 0);
        let (converted, _) = told(&list);
        mended +=
            converted.mended.switches + converted.mended.wakeups + converted.mended.migrations;
    }
    assert!(mended > 0);
}
