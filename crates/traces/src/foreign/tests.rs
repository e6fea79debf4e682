//! One small story, written in every format, is read as the same events from each; and no damage
//! of a file does more than make an error.

mod damage;
mod long;
mod messages;
mod perfetto_events;
mod reports;
mod story;
mod trace_files;
mod written;

use std::io::Cursor;
use std::ops::ControlFlow;

use prost::Message as _;

use model::{Change, Event, EventKind, Sink as _, TaskClass, TaskId, WakeCause};

use crate::foreign::record::{CpuContext, Left, Record, RecordWhat, Who};
use crate::foreign::{Error, Imported, Window, read};
use messages as m;
use story::{story, who};
use trace_files::RELEASE;
use written::{FORMATS, written};

/// The events of a trace, which obey the rules of docs/events.md.
fn import(bytes: &[u8], window: Window) -> Result<(Vec<Event>, Imported), Error> {
    let mut events = Vec::new();
    let imported = read(Cursor::new(bytes), "story", window, &mut |more| {
        events.extend_from_slice(more);
        ControlFlow::Continue(())
    })?;
    Ok((events, imported))
}

fn check_rules(events: &[Event], imported: &Imported) {
    let mut rules = stats::Conservation::new();
    rules.begin(&imported.header);
    rules.events(events);
    rules.finish(imported.end);
    assert_eq!(rules.violation(), None, "{events:#?}");
}

fn whole(records: &[Record]) -> (Vec<Event>, Imported) {
    let (events, imported) = import(&written("ftrace", records), Window::default()).unwrap();
    check_rules(&events, &imported);
    (events, imported)
}

#[test]
fn every_format_tells_the_same_story() {
    let records = story();
    let (want, first) = whole(&records);
    // Eight are told, and one is made up: who ran at the begin.
    let switches = want.iter().filter(|it| it.kind == EventKind::Switch);
    assert_eq!(switches.count(), 9, "{want:#?}");
    for format in FORMATS {
        let bytes = written(format, &records);
        let (events, imported) = import(&bytes, Window::default()).unwrap();
        check_rules(&events, &imported);
        assert_eq!(imported.end, first.end, "{format}");
        if matches!(
            format,
            &("perf script" | "trace-cmd report" | "Perfetto, compact")
        ) {
            // No flags of contexts, or no wakeups and forks: compared below.
            continue;
        }
        assert_eq!(events, want, "{format}");
        assert_eq!(imported.header.groups, first.header.groups, "{format}");
        assert_eq!(
            imported.findings.wakeups, first.findings.wakeups,
            "{format}"
        );
    }
}

#[test]
fn the_kernels_release_is_read_where_a_trace_says_it() {
    for format in FORMATS {
        let bytes = written(format, &story());
        let (_, imported) = import(&bytes, Window::default()).unwrap();
        let says = !matches!(*format, "ftrace" | "trace-cmd report" | "Perfetto, compact");
        let want = says.then(|| RELEASE.to_owned());
        assert_eq!(imported.findings.kernel, want, "{format}");
        let said = imported.findings.sentences().join("\n");
        assert_eq!(said.contains("; Linux 6.1.0-13-amd64"), says, "{format}");
    }
}

#[test]
fn a_machine_has_the_cpus_that_its_trace_lists_although_they_have_no_records() {
    let cpus = |bytes: &[u8]| {
        let (_, imported) = import(bytes, Window::default()).unwrap();
        imported.header.machine.cpus
    };
    let mut file = written("trace.dat 6", &story());
    assert_eq!(cpus(&file), 2);
    // The number of CPUs, and the places of the records of each; there is room before the pages.
    let find = |file: &[u8], mark: &[u8]| file.windows(10).position(|it| it == mark).unwrap();
    let count = find(&file, b"options  \0") - 4;
    file[count..count + 4].copy_from_slice(&7_u32.to_le_bytes());
    assert_eq!(cpus(&file), 7);
    let mut file = written("perf.data", &story());
    assert_eq!(cpus(&file), 2);
    let online = file.len() - 4;
    file[online..].copy_from_slice(&6_u32.to_le_bytes());
    assert_eq!(cpus(&file), 6);
    // More than any machine has is no number of CPUs.
    file[online..].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(cpus(&file), 2);
}

#[test]
fn text_without_flags_has_the_same_switches_and_says_what_it_lacks() {
    let records = story();
    let (want, _) = whole(&records);
    let switches = |events: &[Event]| -> Vec<Event> {
        let all = events.iter().filter(|it| it.kind == EventKind::Switch);
        all.copied().collect()
    };
    for format in ["perf script", "trace-cmd report", "Perfetto, compact"] {
        let bytes = written(format, &records);
        let (events, imported) = import(&bytes, Window::default()).unwrap();
        let (found, want) = (switches(&events), switches(&want));
        if format == "Perfetto, compact" {
            // Of a CPU's first switch it does not know who ran before, and of forks nothing: the
            // numbers of threads differ.
            let times = |all: &[Event]| all.iter().map(|it| (it.time, it.cpu)).collect::<Vec<_>>();
            assert_eq!(times(&found)[1..], times(&want)[2..]);
        } else {
            assert_eq!(found, want, "{format}");
        }
        let said = imported.findings.sentences().join("\n");
        let lack = match format {
            "Perfetto, compact" => "no `sched_process_fork`",
            _ => "no flags of contexts",
        };
        assert!(said.contains(lack), "{format}: {said}");
    }
}

#[test]
fn causes_of_wakeups_are_told_apart() {
    let (events, imported) = whole(&story());
    let cause = |pid: u32| -> Vec<(u8, u32)> {
        let task = imported.tasks.iter().position(|it| it.pid == pid).unwrap();
        let woken = events
            .iter()
            .filter(|it| it.kind == EventKind::Wakeup && it.task.index() == task);
        woken
            .map(Event::words)
            .map(|it| (it.detail, it.a as u32))
            .collect()
    };
    let none = TaskId::NONE.0;
    let before = (WakeCause::Before as u8, none);
    // 10 ran at the begin, sleeps by a clock, and waits for a disk.
    let clock = (WakeCause::Clock as u8, none);
    let device = (WakeCause::Device as u8, none);
    assert_eq!(cause(10), [before, clock, device]);
    // 20 was woken by 10, which is task 0, although the wakeup was reported elsewhere; then from
    // outside.
    let outside = (WakeCause::Outside as u8, none);
    assert_eq!(cause(20), [(0, 0), outside]);
}

/// Text and one of Perfetto's forms have no flags: a running task was taken for the waker.
#[test]
fn no_task_wakes_the_thread_that_serves_softirqs() {
    let (main, served, server) = (who(10, "main"), who(20, "other"), who(14, "ksoftirqd/0"));
    let mut records = Vec::new();
    for (index, whom) in (0..).zip([served, server]) {
        let cpu = Some(0);
        let wakeup = RecordWhat::Wakeup {
            who: whom,
            cpu,
            new: false,
        };
        let idle = who(0, "swapper/0");
        let switch = |prev, left, next| RecordWhat::Switch { prev, left, next };
        let steps = [
            switch(idle, Left::Runnable, main),
            RecordWhat::Waking(whom, cpu),
            wakeup,
            switch(main, Left::Sleeping, whom),
            switch(whom, Left::Sleeping, idle),
        ];
        records.extend((0..).zip(steps).map(|(step, what)| Record {
            time: 1_000_000_000 + 100_000 * index + 5_000 * step,
            cpu: 0,
            pid: 10,
            context: CpuContext::Unsaid,
            what,
        }));
    }
    let (events, imported) = import(&written("perf script", &records), Window::default()).unwrap();
    check_rules(&events, &imported);
    let waker = |pid: u32| {
        let task = imported.tasks.iter().position(|it| it.pid == pid).unwrap();
        let woken = |it: &&Event| it.kind == EventKind::Wakeup && it.task.index() == task;
        let event = events.iter().find(woken).unwrap();
        let words = event.words();
        let by = imported.tasks.get(words.a as u32 as usize);
        (words.detail, by.map(|it| it.pid))
    };
    assert_eq!(waker(20), (WakeCause::Unsaid as u8, Some(10)));
    assert_eq!(waker(14), (WakeCause::Outside as u8, None));
}

#[test]
fn a_wakeup_is_synchronous_if_the_probe_named_that_thread_just_before_it() {
    let (main, idle) = (who(10, "main"), who(0, "swapper/0"));
    let [named, plain, late] = [20, 30, 40].map(|pid| who(pid, "woken"));
    let wakeup = |who| RecordWhat::Wakeup {
        who,
        cpu: Some(0),
        new: false,
    };
    let switch = |prev, left, next| RecordWhat::Switch { prev, left, next };
    let mut steps = vec![switch(idle, Left::Runnable, main)];
    // 40 was awake when the probe named it, so that no wakeup followed.
    for (probed, woken) in [
        (Some(20), named),
        (None, plain),
        (Some(40), plain),
        (None, late),
    ] {
        steps.extend(probed.map(RecordWhat::WakingSync));
        steps.extend([
            RecordWhat::Waking(woken, Some(0)),
            wakeup(woken),
            switch(main, Left::Runnable, woken),
            switch(woken, Left::Sleeping, main),
        ]);
    }
    let records: Vec<_> = (0..)
        .zip(steps)
        .map(|(step, what)| Record {
            time: 1_000_000_000 + 5_000 * step,
            cpu: 0,
            pid: 10,
            context: CpuContext::Task,
            what,
        })
        .collect();
    let (events, _) = whole(&records);
    let sync: Vec<_> = events
        .iter()
        .filter_map(|it| match it.what() {
            model::What::Wakeup(wakeup) => Some(wakeup),
            _ => None,
        })
        .filter(|it| it.waker != TaskId::NONE)
        .map(|it| it.sync)
        .collect();
    assert_eq!(sync, [true, false, false, false]);
}

#[test]
fn a_rename_that_does_not_say_whom_is_of_the_thread_that_ran_in_perfetto_and_in_text() {
    let (old, new) = (who(10, "sh"), "make");
    let switch = |prev, next, time| Record {
        time,
        cpu: 0,
        pid: 0,
        context: CpuContext::Task,
        what: RecordWhat::Switch {
            prev,
            left: Left::Sleeping,
            next,
        },
    };
    let records = [switch(who(0, "swapper/0"), old, 1_000_000_000)];
    let mut trace = written::perfetto(&records);
    let events = &mut trace.packet[0].ftrace_events.as_mut().unwrap().event;
    events.push(m::Event {
        timestamp: Some(1_000_010_000),
        pid: Some(10),
        common_flags: Some(0),
        event: Some(m::event::Event::TaskRename(m::Rename {
            pid: None,
            newcomm: Some(new.as_bytes().to_vec()),
        })),
    });
    let mut text = written("ftrace", &records);
    text.extend_from_slice(
        b" sh-10 [000] d..1. 1.000010: task_rename: oldcomm=sh newcomm=make oom_score_adj=0\n",
    );
    for bytes in [trace.encode_to_vec(), text] {
        let (_, imported) = import(&bytes, Window::default()).unwrap();
        assert_eq!(imported.tasks[0].comm.to_string(), new);
    }
}

/// 10 is nice and bound to CPU 1, 20 real-time, on two CPUs that share a core.
fn snapshot() -> model::Snapshot {
    let thread = |pid, nice, cpus: &str, (policy, realtime)| model::snapshot::ThreadFacts {
        pid,
        nice,
        cpus: cpus.to_owned(),
        policy,
        realtime,
        ..model::snapshot::ThreadFacts::default()
    };
    let cpu = |cpu| model::snapshot::CpuFacts {
        cpu,
        core: "0-1".to_owned(),
        llc: "0-1".to_owned(),
        node: Some(0),
        capacity: None,
    };
    model::Snapshot {
        runslice_snapshot: 1,
        kernel: "5.10.0-32-amd64".to_owned(),
        hz: Some(1000),
        online: "0-1".to_owned(),
        cpus: vec![cpu(0), cpu(1)],
        begin: model::snapshot::Moment {
            groups: Vec::new(),
            threads: vec![thread(10, 7, "1", (0, 0)), thread(20, 0, "0-1", (2, 33))],
        },
        ..model::Snapshot::default()
    }
}

#[test]
fn what_a_snapshot_knows_is_what_the_load_has() {
    let json = serde_json::to_vec(&snapshot()).unwrap();
    let bytes = trace_files::with_snapshot(&story(), &json);
    let (events, imported) = import(&bytes, Window::default()).unwrap();
    check_rules(&events, &imported);
    let (want, plain) = whole(&story());
    assert_eq!(events, want, "the events are the same");
    let id = |pid: u32| {
        let at = imported.tasks.iter().position(|it| it.pid == pid).unwrap();
        TaskId(u32::try_from(at).unwrap())
    };
    let groups = &imported.header.groups;
    assert_eq!(groups[id(10).index()].nice, 7);
    assert_ne!(plain.header.groups[id(10).index()].nice, 7);
    assert_eq!(&*imported.facts_of(id(10)).unwrap().cpus, "1");
    assert_eq!(
        (imported.realtime(id(10)), imported.realtime(id(20))),
        (None, Some(33))
    );
    assert_eq!(
        &*imported.facts_of(id(20)).unwrap().cpus,
        "",
        "all CPUs are no limit"
    );
    let machine = &imported.header.machine;
    assert_eq!((machine.cpus, machine.smt, machine.hz), (2, 2, 1000));
    let said = imported.findings.sentences().join("\n");
    assert!(said.contains("2 threads were looked at"), "{said}");
    // `score` chooses the scheduler by it, and nothing else in the file has it.
    let kernel = imported.findings.kernel.as_deref();
    assert_eq!(kernel, Some("5.10.0-32-amd64"));
    // What cannot be read is said, and the trace is used without it.
    let bytes = trace_files::with_snapshot(&story(), b"{\"runslice_snapshot\":9}");
    let (events, imported) = import(&bytes, Window::default()).unwrap();
    assert_eq!((events, imported.facts.len()), (want, 0));
    let said = imported.findings.sentences().join("\n");
    assert!(
        said.contains("version 9") && said.contains("not in this trace"),
        "{said}"
    );
}

#[test]
fn a_part_of_a_trace_begins_and_ends_where_it_was_asked_to() {
    let records = story();
    let window = Window {
        from: model::Nanos::from_micros(30),
        until: Some(model::Nanos::from_micros(70)),
    };
    let (events, imported) = import(&written("ftrace", &records), window).unwrap();
    check_rules(&events, &imported);
    assert!(imported.end.as_nanos() <= 40_000, "{:?}", imported.end);
    let (all, _) = whole(&records);
    assert!(!events.is_empty() && events.len() < all.len());
}

#[test]
fn a_priority_changes_where_a_wakeup_shows_another() {
    let mut time = 1_000_000;
    let mut turn = |prio: i16, boosted: i16| {
        let shown = |prio| Who {
            prio: Some(prio),
            ..who(20, "it")
        };
        let mut at = |pid, what| {
            time += 5_000;
            Record {
                time,
                cpu: 0,
                pid,
                context: CpuContext::Hard,
                what,
            }
        };
        let idle = who(0, "swapper/0");
        let wakeup = RecordWhat::Wakeup {
            who: shown(prio),
            cpu: Some(0),
            new: false,
        };
        let switch = |prev, next| RecordWhat::Switch {
            prev,
            left: Left::Sleeping,
            next,
        };
        [
            at(0, RecordWhat::Waking(shown(prio), Some(0))),
            at(0, wakeup),
            at(0, switch(idle, shown(prio))),
            at(20, switch(shown(boosted), idle)),
        ]
    };
    // Of the first turn's end the next wakeup tells; what a lock's waiters lend is none of it.
    let turns = [(120, 49), (49, 49), (49, 10), (125, 125)];
    let records: Vec<_> = turns.iter().flat_map(|it| turn(it.0, it.1)).collect();
    let (events, imported) = whole(&records);
    let changes = events.iter().filter(|it| it.kind == EventKind::Change);
    let changes: Vec<_> = changes.map(Event::what).collect();
    let real_time = Change::Class {
        class: TaskClass::RealTime,
        priority: 50,
    };
    let want = [real_time, Change::class(TaskClass::Fair), Change::Nice(5)];
    let want = want.map(model::What::Change);
    assert_eq!(changes, want);
    let task = TaskId(0);
    assert_eq!(
        (imported.realtime(task), imported.mostly_realtime(task)),
        (None, Some(50))
    );
}

#[test]
fn a_used_number_a_lost_switch_and_a_late_record_are_counted_and_break_no_rule() {
    let mut records = story();
    // Another thread gets number 10 while it lives.
    let fork = RecordWhat::Fork {
        parent: 20,
        child: who(10, "again"),
    };
    let at = records.len() - 1;
    let time = records[at].time;
    records.insert(
        at,
        Record {
            what: fork,
            ..records[at]
        },
    );
    // A switch from a thread that does not run there.
    records.push(Record {
        time: time + 1_000,
        cpu: 1,
        pid: 77,
        context: CpuContext::Task,
        what: RecordWhat::Switch {
            prev: who(77, "ghost"),
            left: Left::Sleeping,
            next: who(20, "server"),
        },
    });
    let (_, imported) = whole(&records);
    let findings = imported.findings;
    assert_eq!((findings.reused, findings.mismatched > 0), (1, true));
    // A record that is later than what is held back.
    let mut text = written("ftrace", &story());
    for _ in 0..5_000 {
        let last = story().len() - 1;
        text.extend(written("ftrace", &story()[last..]));
    }
    text.extend(written("ftrace", &story()[..1]));
    let (events, imported) = import(&text, Window::default()).unwrap();
    check_rules(&events, &imported);
    assert!(imported.findings.late > 0);
}

#[test]
fn what_is_no_trace_is_refused_with_a_hint() {
    let cases: [(&[u8], &str); 5] = [
        (b"", "it is empty"),
        (b"\x1f\x8b\x08\x00", "packed with gzip"),
        (b"\x28\xb5\x2f\xfd\x00", "packed with zstd"),
        (b"\x7fELF\x02\x01", "neither perf.data"),
        (b"hello\nworld\n", "no line or record is an event"),
    ];
    for (bytes, want) in cases {
        let error = import(bytes, Window::default()).unwrap_err();
        let error = model::Advice::in_full(&error);
        assert!(error.contains(want), "{error}");
    }
}

#[test]
fn names_of_threads_become_names_of_groups_that_differ() {
    let named = |pid: u32, comm: &str, prio: i16| crate::foreign::Named {
        comm: crate::foreign::record::Comm::new(comm.as_bytes()),
        pid,
        prio: Some(prio),
        mostly: None,
        parent: None,
        ended: false,
        alarm: None,
    };
    let tasks = [
        named(1, "sh", 120),
        named(2, "sh", 130),
        named(2, "sh", 100),
        named(3, "rt", 50),
    ];
    let groups = crate::foreign::groups(&tasks, &[]);
    let names: Vec<_> = groups.iter().map(|it| (&*it.name, it.nice)).collect();
    assert_eq!(
        names,
        [("sh-1", 0), ("sh-2", 10), ("sh-2#2", -20), ("rt", 0)]
    );
    assert_eq!(tasks[3].realtime(), Some(49));
    assert_eq!(tasks[0].realtime(), None);
    assert_eq!(named(4, "stop", 0).realtime(), Some(99));
    assert_eq!(named(4, "deadline", -1).realtime(), Some(99));
}
