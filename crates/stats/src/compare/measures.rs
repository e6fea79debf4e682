//! The metrics of a run's report, by name.

use serde_json::Value;

use super::reported::{Reported, measure};
use super::{Better, Measure, MeasuredNumber, Role};

use Better::{Lower, Neither};
use Role::{Goal, Other, Shown};

/// The kernel's counters for a command and all that it starts. Absent numbers were not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandFigures {
    /// Time on the wall, in nanoseconds.
    pub time_ns: Option<u64>,
    /// Nanoseconds on a CPU, of all tasks.
    pub run_ns: Option<u64>,
    /// Nanoseconds runnable without a CPU, of all tasks.
    pub wait_ns: Option<u64>,
    /// Times that a CPU was given.
    pub slices: Option<u64>,
    /// Moves to another CPU.
    pub migrations: Option<u64>,
    /// Switches because a task blocked.
    pub voluntary: Option<u64>,
    /// Switches because a task lost its CPU.
    pub involuntary: Option<u64>,
    /// Nanoseconds in user space.
    pub user_ns: Option<u64>,
    /// Nanoseconds in the kernel.
    pub system_ns: Option<u64>,
    /// The most memory that one of its processes had, in bytes.
    pub memory_bytes: Option<u64>,
}

/// The metrics of a command: latency and runslice are waiting and running time by slice, as
/// /proc/schedstat counts them.
#[must_use]
pub fn command_measures(figures: &CommandFigures) -> Vec<MeasuredNumber> {
    let mean = |sum: Option<u64>| match (sum, figures.slices) {
        (Some(sum), Some(slices)) if slices > 0 => Some(sum as f64 / slices as f64),
        _ => None,
    };
    let whole = |value: Option<u64>| value.map(|value| value as f64);
    let (time, count) = (Measure::Nanos, Measure::Count);
    let all = [
        ("time_ns", time, Lower, Goal, whole(figures.time_ns)),
        ("latency_ns", time, Lower, Shown, mean(figures.wait_ns)),
        ("cpu_ns", time, Lower, Shown, whole(figures.run_ns)),
        ("runslice_ns", time, Neither, Shown, mean(figures.run_ns)),
        ("wait_ns", time, Lower, Other, whole(figures.wait_ns)),
        ("user_ns", time, Lower, Other, whole(figures.user_ns)),
        ("system_ns", time, Lower, Other, whole(figures.system_ns)),
        ("slices", count, Neither, Other, whole(figures.slices)),
        ("voluntary", count, Neither, Other, whole(figures.voluntary)),
        (
            "involuntary",
            count,
            Lower,
            Other,
            whole(figures.involuntary),
        ),
        ("migrations", count, Lower, Other, whole(figures.migrations)),
        (
            "memory_bytes",
            Measure::Bytes,
            Lower,
            Other,
            whole(figures.memory_bytes),
        ),
    ];
    let some = all
        .into_iter()
        .filter_map(|(name, measure, better, role, value)| {
            Some(MeasuredNumber {
                name: name.to_owned(),
                measure,
                better,
                role,
                value: value?,
            })
        });
    some.collect()
}

/// Every metric of a report that was serialised, as the results of `runslice sim` hold it:
/// `all.`, `GROUP.` and `machine.` with a column; `deadline.`, `span.`, `counter.` and `phase.`
/// with group, name and column. What was not measured in the run is left out.
#[must_use]
pub fn measures(report: &Value) -> Vec<MeasuredNumber> {
    let mut found = Vec::new();
    Reported::of(report).each(|it| {
        found.push(MeasuredNumber {
            name: it.name(),
            measure: measure(it.column),
            better: it.better,
            role: it.role,
            value: it.value,
        });
    });
    found
}

/// The metrics of a workload that was played beside a command, which lasts as long as that does: of
/// deadlines the share that was missed is compared and not the number, which grows with the time.
#[must_use]
pub fn played_measures(report: &Value) -> Vec<MeasuredNumber> {
    let of_tasks = |name: &str| name.starts_with("deadline.") || name.starts_with("span.");
    let mut found = measures(report);
    found.retain(|it| of_tasks(&it.name));
    for it in found
        .iter_mut()
        .filter(|it| it.name.starts_with("deadline."))
    {
        let is_share = it.name.ends_with(".missed_ppm");
        it.role = if is_share { Goal } else { Other };
    }
    found
}

#[cfg(test)]
mod tests {
    use model::{EventKind, SimTime, Sink as _};
    use serde_json::json;

    use super::*;
    use crate::compare::reported::{GROUP, MACHINE};
    use traces::testing::StreamWriter;

    #[test]
    fn numbers_are_found_by_their_column_and_those_that_are_not_there_are_left_out() {
        let report = json!({
            "machine": {"elapsed_ns": 5, "idle_ppm": 7},
            "all": {"wakeup_ns_p99": null, "delay_ns_p99": 9},
            "groups": [{"group": "cc", "migrations": 3, "delay_ns_p99": 8}],
            "deadlines": [{"group": "ui", "deadline": "frame", "missed": 2}],
        });
        let found = measures(&report);
        let list: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.value, it.role))
            .collect();
        let want = [
            ("machine.elapsed_ns", 5.0, Goal),
            ("machine.idle_ppm", 7.0, Other),
            ("all.delay_ns_p99", 9.0, Shown),
            ("deadline.ui.frame.missed", 2.0, Goal),
            ("cc.delay_ns_p99", 8.0, Other),
            ("cc.migrations", 3.0, Other),
        ];
        assert_eq!(list, want);
        assert_eq!(found[1].measure, Measure::Millionths);
        assert_eq!(found[5].measure, Measure::Count);
    }

    #[test]
    fn of_a_load_beside_a_command_the_share_of_missed_deadlines_is_compared() {
        let report = json!({
            "machine": {"elapsed_ns": 5},
            "deadlines": [
                {"group": "ui", "deadline": "frame", "met": 6, "missed": 2},
                {"group": "ui", "deadline": "key", "met": 0, "missed": 0},
            ],
            "spans": [{"group": "ui", "span": "draw", "length_ns_p99": 9}],
        });
        let found = played_measures(&report);
        let goals = found.iter().filter(|it| it.role == Goal);
        let list: Vec<_> = goals.map(|it| (it.name.as_str(), it.value)).collect();
        let want = [
            ("deadline.ui.frame.missed_ppm", 250_000.0),
            ("span.ui.draw.length_ns_p99", 9.0),
        ];
        assert_eq!(list, want);
        // In a run of its own the number is compared, as every run lasts as long.
        let all = measures(&report);
        let missed = all.iter().find(|it| it.name == "deadline.ui.frame.missed");
        assert_eq!(missed.unwrap().role, Goal);
    }

    #[test]
    fn latency_and_runslice_of_a_command_are_by_slice() {
        let figures = CommandFigures {
            time_ns: Some(10),
            run_ns: Some(8),
            wait_ns: Some(6),
            slices: Some(4),
            ..CommandFigures::default()
        };
        let found = command_measures(&figures);
        let of = |name: &str| found.iter().find(|it| it.name == name).map(|it| it.value);
        assert_eq!(of("latency_ns"), Some(1.5));
        assert_eq!(of("runslice_ns"), Some(2.0));
        assert_eq!(of("memory_bytes"), None);
        assert!(command_measures(&CommandFigures::default()).is_empty());
    }

    #[test]
    fn every_column_is_in_a_real_report() {
        let mut metrics = crate::Metrics::new();
        metrics.begin(&traces::testing::header(1));
        metrics.finish(SimTime::ZERO);
        let report = serde_json::to_value(metrics.report()).unwrap();
        for (row, known) in [("machine", MACHINE), ("all", GROUP)] {
            for (column, ..) in known {
                assert!(report[row].get(*column).is_some(), "{row}.{column}");
            }
        }
    }

    #[test]
    fn a_report_has_the_same_metrics_as_its_file() {
        let stream = StreamWriter::new()
            .born(0, 0, 0, 0)
            .born(0, 1, 1, 0)
            .start(5, 0, 0)
            .switch(7, 0, None, Some(0))
            .on(8, EventKind::SpanBegin, 0, 0, 0)
            .on(9, EventKind::Phase, 0, 1, 0)
            .on(11, EventKind::SpanEnd, 0, 0, 3)
            .on(12, EventKind::Deadline, 0, 0, 2)
            .on(13, EventKind::Deadline, 0, 0, 0)
            .on(14, EventKind::Count, 0, 0, 6);
        let mut metrics = crate::Metrics::new();
        stream.feed(&mut metrics, 1, 20);
        let report = metrics.report();
        let file = Reported::of(&serde_json::to_value(&report).unwrap());
        let own = Reported::from(&report);
        assert_eq!(own.seed(), file.seed());
        let all = |reported: &Reported| {
            let mut all = Vec::new();
            reported.each(|it| all.push((it.name(), it.value, it.better, it.role)));
            all
        };
        assert_eq!(all(&own), all(&file));
        let has = |start: &str| all(&own).iter().any(|it| it.0.starts_with(start));
        let rows = [
            "deadline.",
            "span.",
            "counter.",
            "phase.",
            "solo.",
            "machine.",
        ];
        assert!(rows.into_iter().all(has));
    }
}
