use model::{Event, EventKind, EventMask, SimTime, TaskId, What};

use super::super::trace::PolicyReport;
use super::*;

fn millis(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix("ms").and_then(|it| it.parse().ok());
    number
        .map(Duration::from_millis)
        .ok_or_else(|| format!("`{text}`?"))
}

fn task(text: &str) -> Behaviour {
    Behaviour::parse(text, millis).unwrap()
}

/// Tasks by their rules, for 100 ms.
fn levels(texts: &[&str]) -> Levels {
    Levels {
        tasks: texts.iter().map(|text| task(text)).collect(),
        time: Duration::from_millis(100),
        settle: Duration::ZERO,
        follow: false,
        sample: None,
        ticks: false,
    }
}

#[test]
fn a_rule_is_read_and_what_is_wrong_is_said() {
    let read = task("change/5: sleep 20ms; run 5ms sleep 1ms");
    let at = Duration::from_millis;
    let first = vec![RuleStep::Sleep(at(20))];
    let then = vec![RuleStep::Run(at(5)), RuleStep::Sleep(at(1))];
    assert_eq!((read.nice, read.phases), (5, vec![first, then]));
    assert_eq!(task("hog: run").phases, [[RuleStep::Hog]]);
    let bound = task("hog/10@3: run");
    assert_eq!(
        (&*bound.name, bound.nice, bound.cpu),
        ("hog", 10, Some(CpuId(3)))
    );
    assert_eq!(task("hog: run").cpu, None);
    let nap = [RuleStep::Sleep(at(10)), RuleStep::Run(at(2))];
    let thrice = task("t: 3x sleep 10ms run 2ms; run").phases;
    assert_eq!(thrice, [[nap, nap, nap].concat(), vec![RuleStep::Hog]]);
    for (text, part) in [
        ("hog", "NAME: STEPS"),
        ("hog/20: run", "nice"),
        ("hog@x: run", "CPU"),
        ("hog@99999: run", "CPU"),
        ("hog@1/5: run", "CPU"),
        ("ho g: run", "letters"),
        ("hog: run;", "no step"),
        ("hog: walk 2ms", "`walk`"),
        ("hog: sleep", "`sleep`"),
        ("hog: run 5", "`5`?"),
        ("hog: 0x run", "`0x`: a phase"),
        ("hog: 10001x run", "10000x"),
        ("hog: 3 run", "`3`: a phase"),
        ("hog: 3x", "no step"),
    ] {
        let error = Behaviour::parse(text, millis).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn tasks_run_and_wait_and_their_shares_make_a_whole() {
    let levels = Levels {
        tasks: vec![task("one: run"), task("two: run 1ms sleep 1ms")],
        time: Duration::from_millis(300),
        settle: Duration::from_millis(50),
        follow: false,
        sample: None,
        ticks: false,
    };
    let outcome = levels.run(None).unwrap();
    let share = |name: &str| outcome.value(&format!("{name}_share")).unwrap();
    assert!(
        (share("one") + share("two") - 100.0).abs() < 1e-9,
        "{outcome:?}"
    );
    assert!(share("one") > 0.0 && share("two") > 0.0, "{outcome:?}");
    assert!(outcome.value("two_slices") > Some(0.0), "{outcome:?}");
}

#[test]
fn rules_that_cannot_be_are_refused() {
    assert!(levels(&[]).check().is_err());
    assert!(levels(&["a: run", "a: run"]).check().is_err());
    assert!(levels(&["a: run 0ms sleep 0ms"]).check().is_err());
    assert!(levels(&["a: run 0ms sleep 1ms"]).check().is_ok());
    let late = Levels {
        settle: Duration::from_millis(100),
        ..levels(&["a: run"])
    };
    assert!(late.check().is_err());
    let never = Levels {
        sample: Some(Duration::ZERO),
        ..levels(&["a: run"])
    };
    assert!(never.check().is_err());
}

#[test]
fn samples_are_taken_where_the_tasks_are_bound_or_everywhere() {
    assert_eq!(
        levels(&["a@2: run", "b@0: run", "c@2: run"]).cpus(),
        [CpuId(0), CpuId(2)]
    );
    let all: Vec<CpuId> = (0..record::cpus()).map(CpuId).collect();
    assert_eq!(levels(&["a@2: run", "b: run"]).cpus(), all);
}

#[test]
fn the_longest_wait_is_of_one_that_wanted_to_go_on() {
    let stay = |from, to, is_forced| Stay {
        from,
        to,
        said: None,
        is_forced,
        waited: None,
        goes_on: false,
    };
    let stays = [
        stay(0, 10_000, true),
        stay(12_000, 20_000, true),
        // It waits 7 us and then sleeps for 900.
        stay(27_000, 30_000, false),
        stay(930_000, 940_000, true),
    ];
    let mut outcome = LoadOutcome::default();
    tell_forced_wait(&mut outcome, "x", &stays.iter().collect::<Vec<_>>());
    assert_eq!(outcome.value("x_forced_wait_max"), Some(7.0));
    let mut none = LoadOutcome::default();
    tell_forced_wait(&mut none, "x", &[&stays[2], &stays[3]]);
    assert_eq!(none.value("x_forced_wait_max"), None);
}

/// Counts the slices of a group, and keeps what the policy said of it.
#[derive(Default)]
struct Seen {
    header: Option<Header>,
    events: Vec<Event>,
}

impl Sink for Seen {
    fn wants(&self) -> EventMask {
        EventMask::ALL
    }

    fn begin(&mut self, header: &Header) {
        self.header = Some(header.clone());
    }

    fn events(&mut self, events: &[Event]) {
        self.events.extend(events);
    }

    fn finish(&mut self, _end: SimTime) {}
}

#[test]
fn events_are_of_the_tasks_by_their_names_from_the_start_on() {
    let raw = |time: u64, kind: RecordKind, pid: u32, [a, b]: [u32; 2]| Raw {
        time,
        pid,
        cpu: 0,
        kind,
        flags: 0,
        c: 0,
        a,
        b,
    };
    let records = Records {
        raws: vec![
            // Pid 41 works, then 40; the policy has 40 on level 3.
            raw(110, RecordKind::Switch, 41, [0, 0]),
            raw(150, RecordKind::Report, 40, [120, 3]),
            raw(150, RecordKind::Switch, 40, [41, 0]),
            raw(190, RecordKind::Switch, 0, [40, 1]),
        ],
        ended: 200,
        ..Records::default()
    };
    let mut seen = Seen::default();
    levels(&["a: run", "b: run"]).tell_events(&records, &[40, 41], 100, &mut seen);
    let names: Vec<String> = (seen.header.unwrap().groups.into_iter())
        .map(|group| group.name)
        .collect();
    assert_eq!(names[..2], ["a", "b"]);
    let born = seen.events.iter().filter_map(|it| match it.what() {
        What::New {
            group, index: 0, ..
        } if group < 2 => Some((group, it.task)),
        _ => None,
    });
    let born: Vec<_> = born.collect();
    let task = |group: u32| born.iter().find(|it| it.0 == group).unwrap().1;
    let runs = seen.events.iter().filter(|it| it.kind == EventKind::Switch);
    let runs: Vec<_> = runs.map(|it| (it.time.as_nanos(), it.task)).collect();
    assert_eq!(runs, [(10, task(1)), (50, task(0)), (90, TaskId::NONE)]);
    let report = seen.events.iter().find(|it| it.kind == EventKind::Report);
    let report = report.unwrap();
    let want = What::Report {
        priority: 120,
        level: 3,
        flags: 0,
    };
    assert_eq!((report.task, report.what()), (task(0), want));
}

#[test]
fn a_slice_is_a_row_with_what_the_policy_said() {
    let levels = Levels {
        tasks: vec![Behaviour {
            name: "a".to_owned(),
            nice: 0,
            cpu: None,
            phases: vec![vec![RuleStep::Hog]],
        }],
        time: Duration::from_secs(1),
        settle: Duration::ZERO,
        follow: true,
        sample: None,
        ticks: false,
    };
    let stay = Stay {
        from: 150,
        to: 190,
        said: Some(PolicyReport {
            prio: 120,
            level: 3,
            flags: 1,
        }),
        is_forced: true,
        waited: None,
        goes_on: false,
    };
    let early = Stay {
        from: 90,
        ..stay.clone()
    };
    let mut outcome = LoadOutcome::default();
    levels.tell_stays(&mut outcome, 100, &[vec![early, stay]]);
    let table = &outcome.tables[0];
    // Experiments read these columns.
    let columns = [
        "task", "at_ns", "run_ns", "prio", "level", "flags", "forced",
    ];
    assert_eq!((&*table.name, &table.columns[..]), ("slices", &columns[..]));
    let numbers = [50, 40, 120, 3, 1, 1].map(LoadCell::Number);
    let row: Vec<LoadCell> = [LoadCell::Word("a".to_owned())]
        .into_iter()
        .chain(numbers)
        .collect();
    assert_eq!(table.rows, [row]);
}

#[test]
fn levels_are_told_by_how_many_slices_began_there() {
    let stay = |level, flags| Stay {
        from: 0,
        to: 1,
        said: Some(PolicyReport {
            prio: 100 + level,
            level,
            flags,
        }),
        is_forced: true,
        waited: None,
        goes_on: false,
    };
    let stays = [stay(1, 1), stay(2, 0), stay(2, 0), stay(2, 0)];
    let mut outcome = LoadOutcome::default();
    tell_levels(&mut outcome, "x", stays.iter());
    assert_eq!(outcome.value("x_level_1_part"), Some(25.0));
    assert_eq!(outcome.value("x_level_2_part"), Some(75.0));
    assert_eq!(outcome.value("x_interactive_part"), Some(25.0));
    assert_eq!(
        (outcome.value("x_prio_min"), outcome.value("x_prio_max")),
        (Some(101.0), Some(102.0))
    );
}
#[test]
fn the_trace_counts_a_wait_when_it_ends_and_a_slice_when_it_begins() {
    let stay = |from, to, waited| Stay {
        from,
        to,
        said: None,
        is_forced: true,
        waited,
        goes_on: false,
    };
    // Begun before, within, and at the end of the time from 100 to 200.
    let stays = [
        stay(80, 120, Some(70)),
        stay(150, 170, Some(20)),
        // The policy says something new of one that goes on.
        Stay {
            goes_on: true,
            ..stay(170, 180, None)
        },
        stay(190, 260, Some(6)),
        stay(300, 310, Some(9)),
    ];
    let sum = traced(&stays, 100, 200);
    assert_eq!((sum.cpu_time, sum.run_delay, sum.pcnt), (60, 26, 2));
    let mut outcome = LoadOutcome::default();
    tell_means(&mut outcome, "x_traced", sum);
    assert_eq!(outcome.value("x_traced_runslice"), Some(0.03));
    assert_eq!(outcome.value("x_traced_latency"), Some(0.013));
    tell_means(&mut outcome, "y", TaskCounters::default());
    assert_eq!(outcome.value("y_runslice"), None);
}
