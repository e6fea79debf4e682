//! A day of each shipped policy under a load that never stays the same: no leak, no drift.

use std::cmp::Ordering;

use model::{Event, EventKind, EventMask, Header, Nanos, SimTime, Sink, TaskId};
use runslice_tests::run::Run;
use runslice_tests::usage::memory;

const CHURN: &str = include_str!("../loads/churn.toml");
const HOURS: u64 = 24;
const HOUR_NS: u64 = 3600 * 1_000_000_000;

/// Bytes that a living task takes (docs/performance.md). What results need of one that has ended
/// may take no more.
const TASK_BYTES: u64 = 1919;
/// What an allocator may keep more at the end than at the begin.
const KEPT_BYTES: u64 = 1 << 20;

/// What a group of tasks did in an hour.
#[derive(Clone, Copy, Default)]
struct Figures {
    run_ns: u64,
    wait_ns: u64,
    waits: u64,
}

/// What a task does, as far as the figures need it.
#[derive(Clone, Copy)]
struct Doing {
    group: usize,
    /// Since when it runs, or waits.
    since: SimTime,
}

/// Sums what each group did in each hour, and looks at this process's memory.
#[derive(Default)]
struct Hours {
    groups: Vec<String>,
    tasks: Vec<Doing>,
    /// By hour and group.
    figures: Vec<Vec<Figures>>,
    /// This process's memory and the tasks that had been born, after each hour.
    memory: Vec<(u64, usize)>,
}

impl Hours {
    fn figure(&mut self, event: &Event, task: TaskId) -> (&mut Figures, u64) {
        let doing = self.tasks[task.index()];
        let hour = usize::try_from(event.time.as_nanos() / HOUR_NS).expect("hours");
        let spent = event.time.since(doing.since).get();
        (&mut self.figures[hour][doing.group], spent)
    }

    fn switch(&mut self, event: &Event) {
        let before = TaskId(u32::try_from(event.words().a & u64::from(u32::MAX)).expect("32 bits"));
        if before != TaskId::NONE {
            let (figures, spent) = self.figure(event, before);
            figures.run_ns += spent;
            self.tasks[before.index()].since = event.time;
        }
        if event.task != TaskId::NONE {
            let (figures, spent) = self.figure(event, event.task);
            figures.wait_ns += spent;
            figures.waits += 1;
            self.tasks[event.task.index()].since = event.time;
        }
    }

    /// Begins the hours up to that of `time`.
    fn reach(&mut self, time: SimTime) {
        while self.figures.len() as u64 <= time.as_nanos() / HOUR_NS {
            if !self.figures.is_empty() {
                self.memory.push((memory("VmRSS:"), self.tasks.len()));
            }
            self.figures
                .push(vec![Figures::default(); self.groups.len()]);
        }
    }
}

impl Sink for Hours {
    fn wants(&self) -> EventMask {
        let mask = EventMask::NONE.with(EventKind::New);
        mask.with(EventKind::Wakeup).with(EventKind::Switch)
    }

    fn begin(&mut self, header: &Header) {
        self.groups = header.groups.iter().map(|it| it.name.clone()).collect();
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.reach(event.time);
            match event.kind {
                EventKind::New => self.tasks.push(Doing {
                    group: usize::try_from(event.words().a & u64::from(u32::MAX)).expect("32 bits"),
                    since: event.time,
                }),
                EventKind::Wakeup => self.tasks[event.task.index()].since = event.time,
                EventKind::Switch => self.switch(event),
                _ => {}
            }
        }
    }

    fn finish(&mut self, end: SimTime) {
        self.memory.push((memory("VmRSS:"), self.tasks.len()));
        // What begins with the last moment is no hour.
        self.figures
            .truncate(usize::try_from(end.as_nanos() / HOUR_NS).expect("hours"));
    }
}

/// `load` for a day, in which CPU 1 goes in each hour and comes back a minute later.
fn day(policy: &str, load: &str) -> Hours {
    let tables = load.split_once("[task.").expect("tasks").1;
    let mut tables = format!("[task.{tables}");
    for hour in 0..HOURS {
        let (off, on) = (hour * 3600 + 1800, hour * 3600 + 1860);
        tables +=
            &format!("\n[hotplug.h{hour}]\ncpu = 1\noffline = \"{off}s\"\nonline = \"{on}s\"");
    }
    let run = Run {
        cpus: 2,
        hz: 250,
        until: Nanos::from_secs(HOURS * 3600),
        ..Run::new(policy, &tables)
    };
    let mut hours = Hours::default();
    let summary =
        sim::run(&run.spec(), &mut hours).unwrap_or_else(|error| panic!("{policy}: {error}"));
    assert!(
        !summary.exit.kind.is_error(),
        "{policy}: {:?}",
        summary.exit
    );
    assert_eq!(hours.figures.len() as u64, HOURS, "{policy}");
    hours
}

/// How surely `values` rise or fall, in standard deviations of the sum S of the signs of all
/// differences, which is normal without a trend.
///
/// Source: Mann (1945), "Nonparametric tests against trend"; Kendall (1975), "Rank correlation
/// methods", chapter 4.
fn trend(values: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (at, early) in values.iter().enumerate() {
        for late in &values[at + 1..] {
            sum += match late.partial_cmp(early) {
                Some(Ordering::Greater) => 1.0,
                Some(Ordering::Less) => -1.0,
                _ => 0.0,
            };
        }
    }
    let n = values.len() as f64;
    sum / (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt()
}

/// That neither what a group ran nor its mean wait has a trend over the hours. Of 90 figures
/// without one, the largest is beyond four deviations once in 175 times.
fn assert_no_drift(policy: &str, hours: &Hours) {
    for (group, name) in hours.groups.iter().enumerate() {
        let ran = |it: &Figures| it.run_ns as f64;
        let waited = |it: &Figures| it.wait_ns as f64 / it.waits.max(1) as f64;
        let all = |of: &dyn Fn(&Figures) -> f64| -> Vec<f64> {
            hours.figures.iter().map(|hour| of(&hour[group])).collect()
        };
        for (what, values) in [("ran", all(&ran)), ("waited", all(&waited))] {
            let trend = trend(&values);
            assert!(
                trend.abs() < 4.0,
                "{policy}: {name} {what}: {trend}: {values:?}"
            );
        }
    }
}

/// How much memory grew from the end of the first hour to the end of the day, and how many tasks
/// were born in that time.
fn growth(hours: &Hours) -> (u64, u64) {
    let (early, born_early) = hours.memory[0];
    let (late, born_late) = *hours.memory.last().expect("hours");
    (late.saturating_sub(early), (born_late - born_early) as u64)
}

#[test]
fn a_trend_is_told_from_chance() {
    let rising: Vec<f64> = (0..24).map(f64::from).collect();
    assert!(trend(&rising) > 6.0);
    let wavering: Vec<f64> = (0..24).map(|hour| f64::from(hour * 7 % 24)).collect();
    assert!(trend(&wavering).abs() < 2.0, "{}", trend(&wavering));
}

/// One test, because the memory is that of the whole process.
#[test]
#[ignore = "takes minutes: make test-long"]
fn a_day_under_each_shipped_policy_leaks_nothing_and_drifts_nowhere() {
    let (head, maker) = CHURN.split_once("[task.job]").expect("jobs");
    let mover = maker.split_once("[task.mover]").expect("a mover").1;
    let steady = day("mlfq", &format!("{head}[task.mover]{mover}"));
    let (grown, born) = growth(&steady);
    assert_eq!(born, 0);
    assert!(grown <= KEPT_BYTES, "{grown} bytes without a birth");
    for policy in policies::ALL {
        let hours = day(policy.name, CHURN);
        let (grown, born) = growth(&hours);
        println!("{}: {grown} bytes for {born} tasks", policy.name);
        assert!(born > 100_000, "{born} tasks are no churn");
        assert!(
            grown <= KEPT_BYTES + born * TASK_BYTES,
            "{}: {grown} bytes for {born} tasks",
            policy.name
        );
        assert_no_drift(policy.name, &hours);
    }
}
