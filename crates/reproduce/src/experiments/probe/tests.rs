//! What probes find in streams of events.

use model::{Event, EventKind, Nanos, PrevState, SimTime, Sink as _, TaskId};

use super::*;
use traces::testing::{StreamWriter, event, header, with};

/// A run of `solo` on CPU 0, with the tasks of `pair` as company.
fn probed(wanted: WantedProbe, stream: &StreamWriter) -> Probed {
    let mut probe = Probe::new(wanted);
    probe.begin(&header(1));
    probe.events(&stream.events);
    probe.finish(SimTime::from_nanos(1_000_000));
    probe.found()
}

fn value(found: &Probed, name: &str) -> Option<f64> {
    let at = found.values.iter().find(|(key, _)| key == name);
    at.map(|(_, value)| *value)
}

fn switch(ns: u64, to: Option<u32>, from: PrevState, overhead: u64) -> Event {
    let task = to.map_or(TaskId::NONE, TaskId);
    with(
        event(ns, EventKind::Switch, 0, task),
        (from as u8, 0, overhead),
    )
}

#[test]
fn a_wait_belongs_to_who_had_the_cpu_meanwhile() {
    let wanted = WantedProbe {
        name: "w".to_owned(),
        who: "solo".to_owned(),
        after: Nanos::new(50),
        form: ProbeForm::Waits {
            classes: vec![("others".to_owned(), vec!["pair".to_owned()])],
            least: Nanos::new(10),
            longer: Nanos::new(7),
        },
    };
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .born(0, 1, 1, 0)
        .start(0, 0, 0)
        .start(0, 1, 0)
        .push(switch(0, Some(0), PrevState::Idle, 0))
        // Before anything counts.
        .push(switch(10, Some(1), PrevState::Sleeping, 0))
        .wakeup(20, 0, 0)
        .push(switch(40, Some(0), PrevState::Runnable, 0))
        .push(switch(60, Some(1), PrevState::Sleeping, 0))
        // Preempts at once; the switch takes 3.
        .wakeup(100, 0, 0)
        .push(switch(104, Some(0), PrevState::Runnable, 3))
        .push(switch(150, Some(1), PrevState::Sleeping, 0))
        // Waits until the other sleeps.
        .wakeup(200, 0, 0)
        .push(switch(260, Some(0), PrevState::Sleeping, 3));
    let found = probed(wanted, &stream);
    assert_eq!(value(&found, "all.count"), Some(2.0));
    assert_eq!(value(&found, "direct.max_ns"), Some(7.0));
    assert_eq!(value(&found, "others.count"), Some(1.0));
    assert_eq!(value(&found, "others.mean_ns"), Some(63.0));
    assert_eq!(value(&found, "others.share"), Some(0.5));
    assert_eq!(value(&found, "all.min_ns"), Some(7.0));
    assert_eq!(value(&found, "all.longer"), Some(0.5));
    assert_eq!(value(&found, "direct.longer"), Some(0.0));
    assert_eq!(value(&found, "all.excess_ns"), Some(56.0));
}

#[test]
fn deadlines_are_counted_from_a_time_on_those_that_were_given_up_too() {
    let of = |ns, kind, task, value| with(event(ns, kind, 0, TaskId(task)), (0, 0, value));
    let stream = || {
        StreamWriter::new()
            .born(0, 0, 0, 0)
            .born(0, 1, 1, 0)
            .push(of(10, EventKind::Deadline, 0, 5))
            .push(of(49, EventKind::Skipped, 0, 9))
            .push(of(50, EventKind::Deadline, 0, 0))
            .push(of(60, EventKind::Deadline, 0, 0))
            .push(of(70, EventKind::Deadline, 0, 1))
            .push(of(80, EventKind::Skipped, 0, 3))
            // Somebody else's.
            .push(of(90, EventKind::Deadline, 1, 7))
    };
    let counted = |deadline: &str| {
        let wanted = WantedProbe {
            name: "d".to_owned(),
            who: "solo".to_owned(),
            after: Nanos::new(50),
            form: ProbeForm::Deadlines {
                deadline: deadline.to_owned(),
            },
        };
        let found = probed(wanted, &stream());
        (value(&found, "met"), value(&found, "missed"))
    };
    let name = header(1).deadlines[0].0.clone();
    assert_eq!(counted(&name), (Some(2.0), Some(4.0)));
    assert_eq!(counted("another"), (Some(0.0), Some(0.0)));
}

#[test]
fn levels_are_followed_with_the_time_that_was_run_at_each() {
    let report = |ns, priority: u64, level: u64, flags| {
        with(
            event(ns, EventKind::Report, 0, TaskId(0)),
            (0, level << 32 | priority, flags),
        )
    };
    let stream = || {
        StreamWriter::new()
            .born(0, 0, 0, 0)
            .start(0, 0, 0)
            .push(report(0, 120, 3, 1))
            .push(switch(0, Some(0), PrevState::Idle, 0))
            .push(switch(20, None, PrevState::Sleeping, 0))
            // It is not said again where the task stands.
            .push(switch(30, Some(0), PrevState::Idle, 0))
            .push(switch(40, None, PrevState::Runnable, 0))
            .push(report(40, 121, 5, 0))
            .push(switch(40, Some(0), PrevState::Idle, 0))
            .push(switch(60, None, PrevState::Runnable, 0))
            .push(report(60, 119, 2, 0))
            .push(switch(60, Some(0), PrevState::Idle, 0))
    };
    let of = |priority, steps| {
        let wanted = WantedProbe {
            name: "l".to_owned(),
            who: "solo".to_owned(),
            after: Nanos::ZERO,
            form: ProbeForm::Levels {
                priority,
                flags: false,
                steps,
            },
        };
        probed(wanted, &stream())
    };
    assert_eq!(of(false, Steps::Runs).trace, "3 3 5 2");
    assert_eq!(of(false, Steps::Changes).trace, "3 5 2");
    assert_eq!(
        of(true, Steps::Stays(Nanos::new(1))).trace,
        "120@0:30 121@40:20"
    );
    let stays = of(true, Steps::Stays(Nanos::new(25)));
    assert_eq!(
        (&*stays.trace, &*stays.exact),
        ("120@0:1 121@2:1", "120@0:30 121@40:20")
    );
    assert_eq!(of(true, Steps::Changes).exact, "");
    let times = of(true, Steps::Times(Nanos::new(10)));
    assert_eq!(times.trace, "120:3 121:2");
    assert_eq!(times.exact, "120:30 121:20");
    assert_eq!(times.points, [(0, 120), (40, 121), (60, 119)]);
    for (name, want) in [
        ("runs", 4.0),
        ("changes", 2.0),
        ("lowest", 119.0),
        ("highest", 121.0),
        ("range", 2.0),
        ("steepest", 2.0),
        ("first", 120.0),
        ("last", 119.0),
        ("mean", 120.0),
        ("interactive", 0.5),
        ("first_change_ns", 40.0),
        ("last_change_ns", 60.0),
    ] {
        assert_eq!(value(&times, name), Some(want), "{name}");
    }
}

#[test]
fn a_flag_is_written_behind_its_level_where_it_is_asked_for() {
    let report = |ns, flags| with(event(ns, EventKind::Report, 0, TaskId(0)), (0, 120, flags));
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .push(report(0, 0))
        .push(switch(0, Some(0), PrevState::Idle, 0))
        // While it runs.
        .push(report(10, model::report::EXPIRED))
        .push(switch(15, None, PrevState::Runnable, 0))
        .push(report(20, model::report::INTERACTIVE))
        .push(switch(20, Some(0), PrevState::Idle, 0));
    let wanted = WantedProbe {
        name: "l".to_owned(),
        who: "solo".to_owned(),
        after: Nanos::ZERO,
        form: ProbeForm::Levels {
            priority: true,
            flags: true,
            steps: Steps::Changes,
        },
    };
    assert_eq!(probed(wanted, &stream).trace, "120 120e 120i");
}

#[test]
fn spans_of_a_name_have_a_shortest_and_a_longest() {
    let wanted = WantedProbe {
        name: "s".to_owned(),
        who: "pair".to_owned(),
        after: Nanos::new(5),
        form: ProbeForm::Spans {
            span: "request".to_owned(),
        },
    };
    let end = |ns, task, length| {
        with(
            event(ns, EventKind::SpanEnd, 0, TaskId(task)),
            (0, 0, length),
        )
    };
    let mut stream = StreamWriter::new().born(0, 0, 0, 0).born(0, 1, 1, 0);
    stream = stream.push(end(1, 1, 1)).push(end(10, 0, 7));
    for length in 1..=20 {
        stream = stream.push(end(10 + length, 1, length * 10));
    }
    let found = probed(wanted, &stream);
    for (name, want) in [
        ("count", 20.0),
        ("min_ns", 10.0),
        ("p95_ns", 190.0),
        ("max_ns", 200.0),
        ("mean_ns", 105.0),
    ] {
        assert_eq!(value(&found, name), Some(want), "{name}");
    }
}

#[test]
fn a_stay_ends_when_a_running_task_is_put_elsewhere() {
    let report = |ns, level: u64| {
        with(
            event(ns, EventKind::Report, 0, TaskId(0)),
            (0, level << 32, 0),
        )
    };
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .start(0, 0, 0)
        .push(report(0, 0))
        // The first instruction is 2 later.
        .push(switch(0, Some(0), PrevState::Idle, 2))
        .push(report(12, 1))
        .push(report(42, 2))
        .push(switch(50, None, PrevState::Runnable, 0))
        .push(report(50, 3))
        .push(switch(50, Some(0), PrevState::Idle, 0));
    let wanted = WantedProbe {
        name: "l".to_owned(),
        who: "solo".to_owned(),
        after: Nanos::ZERO,
        form: ProbeForm::Levels {
            priority: false,
            flags: false,
            steps: Steps::Stays(Nanos::new(1)),
        },
    };
    assert_eq!(probed(wanted, &stream).trace, "0@0:10 1@12:30 2@42:8");
}

fn rate(counters: &[&str]) -> WantedProbe {
    WantedProbe {
        name: "r".to_owned(),
        who: "pair".to_owned(),
        after: Nanos::new(1),
        form: ProbeForm::Rate {
            counters: counters.iter().map(|&it| it.to_owned()).collect(),
            every: Nanos::new(250_000),
        },
    }
}

#[test]
fn tasks_that_begin_are_counted_in_whole_spans() {
    // The run ends after 1 ms: four spans, the first of which begins before `after`.
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .born(10, 1, 1, 0)
        .born(249_999, 2, 1, 1)
        .born(250_000, 3, 1, 2)
        .born(260_000, 4, 0, 0)
        .born(999_999, 5, 1, 3)
        .born(1_000_000, 6, 1, 4);
    let found = probed(rate(&[]), &stream);
    assert_eq!(value(&found, "count"), Some(2.0));
    assert_eq!(
        found.points,
        [(250_000, 4000), (500_000, 0), (750_000, 4000)]
    );
    assert_eq!(value(&found, "highest"), Some(4000.0));
    assert_eq!(value(&found, "lowest"), Some(0.0));
    let mean = value(&found, "mean").unwrap();
    assert!((mean - 8000.0 / 3.0).abs() < 1e-6, "{mean}");
    assert_eq!(Probe::new(rate(&[])).interval(), None);
}

#[test]
fn counters_of_the_policy_are_summed_and_counted_by_their_growth() {
    let mut probe = Probe::new(rate(&["a", "b"]));
    assert_eq!(probe.interval(), Some(Nanos::new(250_000)));
    let mut show = |ns, a: [u64; 2], b| {
        let counts = [("a", a), ("other", [900, 900]), ("b", [b, 0])];
        probe.sample(&Sample {
            time: SimTime::from_nanos(ns),
            cpus: Vec::new(),
            policy: counts
                .map(|(name, of)| (name.to_owned(), of.to_vec()))
                .into(),
        });
    };
    show(0, [0, 0], 0);
    show(250_000, [1, 2], 3);
    // A sample that another probe has asked for.
    show(300_000, [5, 5], 5);
    show(500_000, [2, 2], 3);
    show(750_000, [2, 2], 13);
    // The run's end, within a span.
    show(800_000, [20, 20], 20);
    let found = probe.found();
    assert_eq!(found.points, [(250_000, 4000), (500_000, 40_000)]);
    assert_eq!(value(&found, "count"), Some(11.0));
}
