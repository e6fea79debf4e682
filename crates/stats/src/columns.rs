//! The columns of every table, each with its name, unit, meaning and source in the report.
//!
//! The names in CSV, Parquet and JSON, the titles of human tables and `runslice list --columns`
//! come from here.

use std::fmt;

use model::Nanos;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::report::{
    ClassReport, CounterReport, CpuReport, DeadlineReport, FrequencyReport, GroupReport,
    HardwareReport, MachineReport, Millionths, NiceReport, PhaseReport, SpanReport, TaskReport,
    Thousandths,
};

/// One column of a table whose rows are `Row`s.
#[derive(Debug)]
pub struct Column<Row: 'static> {
    /// Its name in files: most significant word first, unit last.
    pub name: &'static str,
    /// Its title in a table for people.
    pub title: &'static str,
    /// What it tells, as a phrase.
    pub about: &'static str,
    /// The unit of its values in files.
    pub unit: Unit,
    /// Finds the value in a row.
    pub value: fn(&Row) -> ColumnValue,
}

/// What a number in a file counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// No number.
    Text,
    /// Things.
    Count,
    /// Things, or the lack of them.
    Signed,
    /// Nanoseconds.
    Nanos,
    /// Millionths of a whole.
    Millionths,
    /// Thousandths of one.
    Thousandths,
    /// Microjoules.
    Microjoules,
}

/// A value of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnValue {
    /// A name.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A whole number that can be negative.
    Signed(i64),
    /// A span of time; `None` when nothing was measured.
    Nanos(Option<Nanos>),
    /// A share.
    Share(Millionths),
    /// An average.
    Average(Thousandths),
    /// An energy in microjoules; `None` where no powers are known.
    Energy(Option<u64>),
}

impl ColumnValue {
    /// The value for CSV: a bare number in the column's unit, empty when nothing was measured.
    /// Text is not quoted.
    #[must_use]
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Signed(number) => number.to_string(),
            Self::Nanos(span) => span.map_or_else(String::new, |span| span.get().to_string()),
            Self::Share(Millionths(share)) => share.to_string(),
            Self::Average(Thousandths(average)) => average.to_string(),
            Self::Energy(energy) => energy.map_or_else(String::new, |energy| energy.to_string()),
        }
    }

    /// The number in the column's unit; nothing of text, and when nothing was measured.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Text(_) => None,
            Self::Count(count) => Some(*count as f64),
            Self::Signed(number) => Some(*number as f64),
            Self::Nanos(span) => span.map(|span| span.get() as f64),
            Self::Share(Millionths(share)) => Some(*share as f64),
            Self::Average(Thousandths(average)) => Some(*average as f64),
            Self::Energy(energy) => energy.map(|energy| energy as f64),
        }
    }
}

impl Serialize for ColumnValue {
    /// As [`Self::plain`], but numbers are numbers, and what was not measured is nothing.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => to.serialize_str(text),
            Self::Count(count) => to.serialize_u64(*count),
            Self::Signed(number) => to.serialize_i64(*number),
            Self::Nanos(span) => span.map(Nanos::get).serialize(to),
            Self::Share(share) => share.serialize(to),
            Self::Average(average) => average.serialize(to),
            Self::Energy(energy) => energy.serialize(to),
        }
    }
}

/// A row under the names of its columns.
fn by_columns<Row, S: Serializer>(
    row: &Row,
    columns: &[Column<Row>],
    to: S,
) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(columns.len()))?;
    for column in columns {
        map.serialize_entry(column.name, &(column.value)(row))?;
    }
    map.end()
}

/// Makes rows serialise under the names of their columns: JSON has the names that CSV has.
macro_rules! serialised {
    ($($row:ty: $columns:expr;)*) => {
        $(impl Serialize for $row {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                by_columns(self, $columns, to)
            }
        })*
    };
}

serialised! {
    GroupReport: columns();
    TaskReport: task_columns();
    DeadlineReport: deadline_columns();
    SpanReport: span_columns();
    CounterReport: counter_columns();
    PhaseReport: phase_columns();
    NiceReport: nice_columns();
    MachineReport: machine_columns();
    CpuReport: cpu_columns();
    HardwareReport: hardware_columns();
    ClassReport: class_columns();
    FrequencyReport: frequency_columns();
}

impl fmt::Display for ColumnValue {
    /// Prints for people: spans with the unit that fits, shares in per cent with one digit,
    /// averages with two, energies in the unit that fits; `-` when nothing was measured.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Nanos(Some(span)) => return span.fmt(f),
            Self::Nanos(None) => "-".to_owned(),
            Self::Share(Millionths(share)) => {
                let tenths = (share + 500) / 1_000;
                format!("{}.{} %", tenths / 10, tenths % 10)
            }
            Self::Average(Thousandths(average)) => {
                let hundredths = (average + 5) / 10;
                format!("{}.{:02}", hundredths / 100, hundredths % 100)
            }
            Self::Energy(None) => "-".to_owned(),
            Self::Energy(Some(energy)) => joules(*energy),
            Self::Text(_) | Self::Count(_) | Self::Signed(_) => self.plain(),
        };
        f.pad(&text)
    }
}

/// An energy of so many microjoules, with three digits.
fn joules(micro: u64) -> String {
    match micro {
        ..1_000 => format!("{micro} uJ"),
        1_000..10_000 => format!("{}.{:02} mJ", micro / 1_000, micro % 1_000 / 10),
        10_000..100_000 => format!("{}.{} mJ", micro / 1_000, micro % 1_000 / 100),
        100_000..1_000_000 => format!("{} mJ", micro / 1_000),
        1_000_000..10_000_000 => {
            format!("{}.{:02} J", micro / 1_000_000, micro % 1_000_000 / 10_000)
        }
        10_000_000..100_000_000 => {
            format!("{}.{} J", micro / 1_000_000, micro % 1_000_000 / 100_000)
        }
        _ => format!("{} J", micro / 1_000_000),
    }
}

/// Builds a table of columns: `Variant(expression)` makes the value from the row, and gives the
/// column its unit.
macro_rules! columns {
    ($row:ident: $($name:literal, $title:literal, $kind:ident($value:expr), $about:literal;)*) => {
        &[$(Column {
            name: $name,
            title: $title,
            about: $about,
            unit: columns!(@unit $kind),
            value: |$row| ColumnValue::$kind($value),
        }),*]
    };
    (@unit Text) => { Unit::Text };
    (@unit Count) => { Unit::Count };
    (@unit Signed) => { Unit::Signed };
    (@unit Nanos) => { Unit::Nanos };
    (@unit Share) => { Unit::Millionths };
    (@unit Average) => { Unit::Thousandths };
    (@unit Energy) => { Unit::Microjoules };
}

/// The columns of task groups, and of the row for all tasks.
#[must_use]
pub const fn columns() -> &'static [Column<GroupReport>] {
    columns! { row:
        "group", "group", Text(row.name.clone()), "the task group's name in the workload";
        "nice", "nice", Signed(row.nice.into()), "nice value at the start";
        "tasks", "tasks", Count(row.tasks), "tasks that came to be";
        "exited", "exited", Count(row.exited), "tasks that exited";
        "runs", "runs", Count(row.runs), "turns on a CPU";
        "wakeups", "wakeups", Count(row.wakeup.count), "wakeup latencies measured";
        "wakeup_ns_mean", "wake mean", Nanos(row.wakeup.mean), "wakeup latency: mean";
        "wakeup_ns_p50", "wake p50", Nanos(row.wakeup.p50), "wakeup latency: median";
        "wakeup_ns_p99", "wake p99", Nanos(row.wakeup.p99), "wakeup latency: 99 % are not above";
        "wakeup_ns_max", "wake max", Nanos(row.wakeup.max), "wakeup latency: largest";
        "starts", "starts", Count(row.start.count), "start latencies measured";
        "start_ns_mean", "start mean", Nanos(row.start.mean), "start latency: mean";
        "start_ns_p50", "start p50", Nanos(row.start.p50), "start latency: median";
        "start_ns_p99", "start p99", Nanos(row.start.p99), "start latency: 99 % are not above";
        "start_ns_max", "start max", Nanos(row.start.max), "start latency: largest";
        "preempts", "preempts", Count(row.preempt.count), "preemption waits measured";
        "preempt_ns_mean", "preempt mean", Nanos(row.preempt.mean), "preemption wait: mean";
        "preempt_ns_p50", "preempt p50", Nanos(row.preempt.p50), "preemption wait: median";
        "preempt_ns_p99", "preempt p99", Nanos(row.preempt.p99),
            "preemption wait: 99 % are not above";
        "preempt_ns_max", "preempt max", Nanos(row.preempt.max), "preemption wait: largest";
        "delay_ns_mean", "delay mean", Nanos(row.delay.mean), "run delay: mean";
        "delay_ns_p50", "delay p50", Nanos(row.delay.p50), "run delay: median";
        "delay_ns_p99", "delay p99", Nanos(row.delay.p99), "run delay: 99 % are not above";
        "delay_ns_max", "delay max", Nanos(row.delay.max), "run delay: largest";
        "runslice_ns_mean", "slice mean", Nanos(row.runslice.mean), "runslice: mean";
        "runslice_ns_p50", "slice p50", Nanos(row.runslice.p50), "runslice: median";
        "runslice_ns_p99", "slice p99", Nanos(row.runslice.p99), "runslice: 99 % are not above";
        "runslice_ns_max", "slice max", Nanos(row.runslice.max), "runslice: largest";
        "sleeps", "sleeps", Count(row.sleep.count), "sleeps measured";
        "sleep_ns_mean", "sleep mean", Nanos(row.sleep.mean), "sleep: mean";
        "sleep_ns_p50", "sleep p50", Nanos(row.sleep.p50), "sleep: median";
        "sleep_ns_p99", "sleep p99", Nanos(row.sleep.p99), "sleep: 99 % are not above";
        "sleep_ns_max", "sleep max", Nanos(row.sleep.max), "sleep: largest";
        "turnaround_ns_mean", "turnaround", Nanos(row.turnaround),
            "turnaround of the tasks that exited: mean";
        "response_ns_mean", "response", Nanos(row.response),
            "response time of the tasks that exited: mean";
        "run_ns", "run", Nanos(Some(row.times.run)), "time on a CPU, all tasks together";
        "stolen_ns", "stolen", Nanos(Some(row.times.stolen)),
            "time on a CPU that the kernel used, all tasks together";
        "wait_ns", "wait", Nanos(Some(row.times.wait)), "run delay, all tasks together";
        "sleep_ns", "sleep", Nanos(Some(row.times.sleep)), "time asleep, all tasks together";
        "share_ppm", "share", Share(row.share), "run as a share of all CPU time of the machine";
        "migrations", "migrations", Count(row.migrations), "changes of a task's CPU";
        "waiting_at_end", "starving", Count(row.waiting_at_end),
            "tasks that waited for a CPU when the run ended";
        "waiting_at_end_ns_max", "starved for", Nanos(row.waiting_at_end_max),
            "longest wait that was open when the run ended";
        "met", "met", Count(row.met), "deadlines met";
        "missed", "missed", Count(row.missed), "deadlines missed: late or skipped";
        "grows", "grows", Count(row.grows.into()),
            "1 if a queue of forked tasks or messages still grew: waits grow with the duration";
    }
}

/// The columns of single tasks.
#[must_use]
pub const fn task_columns() -> &'static [Column<TaskReport>] {
    columns! { row:
        "task", "task", Count(row.task.into()), "number in the run";
        "name", "name", Text(row.name.clone()), "name from the workload";
        "pid", "pid", Count(row.pid.into()), "number that the kernel gave";
        "nice", "nice", Signed(row.nice.into()), "nice value at its end";
        "born_ns", "born", Nanos(Some(Nanos::new(row.born))), "when it came to be";
        "exited_ns", "exited", Nanos(row.exited.map(Nanos::new)), "when it exited";
        "turnaround_ns", "turnaround", Nanos(row.turnaround),
            "from when it came to work until it exited";
        "response_ns", "response", Nanos(row.response), "from then until it first ran";
        "runs", "runs", Count(row.runs), "turns on a CPU";
        "wakeups", "wakeups", Count(row.wakeups), "wakeups, its start included";
        "run_ns", "run", Nanos(Some(row.times.run)), "time on a CPU";
        "stolen_ns", "stolen", Nanos(Some(row.times.stolen)),
            "time on a CPU that the kernel used";
        "wait_ns", "wait", Nanos(Some(row.times.wait)), "run delay, all of it";
        "sleep_ns", "sleep", Nanos(Some(row.times.sleep)), "time asleep";
        "wait_ns_max", "wait max", Nanos(Some(row.wait_max)),
            "longest run delay, one that was open at the end included";
        "share_ppm", "share", Share(row.share), "run as a share of all CPU time of the machine";
        "migrations", "migrations", Count(row.migrations), "changes of its CPU";
    }
}

/// The columns of deadlines.
#[must_use]
pub const fn deadline_columns() -> &'static [Column<DeadlineReport>] {
    columns! { row:
        "group", "group", Text(row.group.clone()), "the task group that has the deadline";
        "deadline", "deadline", Text(row.name.clone()), "its name in the workload";
        "word", "a miss is", Text(row.word.clone()), "what a miss is called";
        "met", "met", Count(row.met), "work done in time";
        "late", "late", Count(row.late), "work done late";
        "skipped", "skipped", Count(row.skipped), "of the missed those whose work was never done";
        "missed", "missed", Count(row.missed), "late and skipped together";
        "late_ns_mean", "late mean", Nanos(row.lateness.mean), "lateness of the late: mean";
        "late_ns_p50", "late p50", Nanos(row.lateness.p50), "lateness of the late: median";
        "late_ns_p99", "late p99", Nanos(row.lateness.p99),
            "lateness of the late: 99 % are not above";
        "late_ns_max", "late max", Nanos(row.lateness.max), "lateness of the late: largest";
        "grows", "grows", Count(row.grows.into()),
            "1 if a queue of messages still grew: numbers grow with the duration";
    }
}

/// The columns of spans.
#[must_use]
pub const fn span_columns() -> &'static [Column<SpanReport>] {
    columns! { row:
        "group", "group", Text(row.group.clone()), "the task group that has the span";
        "span", "span", Text(row.name.clone()), "its name in the workload";
        "count", "count", Count(row.length.count), "spans that ended";
        "length_ns_mean", "mean", Nanos(row.length.mean), "length: mean";
        "length_ns_min", "min", Nanos(row.length.min), "length: smallest";
        "length_ns_p50", "p50", Nanos(row.length.p50), "length: median";
        "length_ns_p95", "p95", Nanos(row.length.p95), "length: 95 % are not above";
        "length_ns_p99", "p99", Nanos(row.length.p99), "length: 99 % are not above";
        "length_ns_max", "max", Nanos(row.length.max), "length: largest";
        "grows", "grows", Count(row.grows.into()),
            "1 if the queue of requests still grew: lengths grow with the duration";
    }
}

/// The columns of counters.
#[must_use]
pub const fn counter_columns() -> &'static [Column<CounterReport>] {
    columns! { row:
        "group", "group", Text(row.group.clone()), "the task group that raised the counter";
        "counter", "counter", Text(row.name.clone()), "its name in the workload";
        "total", "total", Count(row.total), "the sum";
    }
}

/// The columns of phases.
#[must_use]
pub const fn phase_columns() -> &'static [Column<PhaseReport>] {
    columns! { row:
        "group", "group", Text(row.group.clone()), "the task group that has the phase";
        "phase", "phase", Text(row.name.clone()), "its name in the workload";
        "entries", "entries", Count(row.entries), "how often a task entered it";
        "time_ns", "time", Nanos(Some(row.time)), "how long tasks were in it";
        "run_ns", "run", Nanos(Some(row.run)), "how long they ran in it";
    }
}

/// The columns of nice values.
#[must_use]
pub const fn nice_columns() -> &'static [Column<NiceReport>] {
    columns! { row:
        "nice", "nice", Signed(row.nice.into()), "the nice value";
        "run_ns", "run", Nanos(Some(row.run)), "what tasks ran while they had it";
        "share_ppm", "share", Share(row.share), "run as a share of all CPU time of the machine";
    }
}

/// The columns of the machine, a table of one row.
#[must_use]
pub const fn machine_columns() -> &'static [Column<MachineReport>] {
    columns! { row:
        "cpus", "CPUs", Count(row.cpus.into()), "number of CPUs";
        "elapsed_ns", "elapsed", Nanos(Some(row.elapsed)), "length of the run";
        "switches", "switches", Count(row.switches),
            "changes of a CPU's task, to and from idle included";
        "wakeups", "wakeups", Count(row.wakeups), "wakeups, starts of tasks included";
        "migrations", "migrations", Count(row.migrations), "changes of a task's CPU";
        "kicks", "kicks", Count(row.kicks), "kicks by the policy";
        "run_ppm", "run", Share(row.run), "share of CPU time in which tasks ran";
        "stolen_ppm", "stolen", Share(row.stolen), "share of CPU time that interrupts took";
        "idle_ppm", "idle", Share(row.idle), "share of CPU time without anything to do";
        "overhead_ppm", "overhead", Share(row.overhead),
            "share of CPU time that switches and the policy took";
        "queue_mean_milli", "queue mean", Average(row.queue_mean),
            "run-queue length, averaged over time and CPUs";
        "queue_max", "queue max", Count(row.queue_max.into()), "longest run queue of a CPU";
        "waiting_mean_milli", "waiting mean", Average(row.waiting_mean),
            "tasks runnable and not on a CPU, averaged over time";
        "imbalance_mean_milli", "imbalance", Average(row.imbalance_mean),
            "longest run queue less the shortest, averaged over time";
        "idle_while_waiting_ns", "idle while waiting", Nanos(Some(row.idle_while_waiting)),
            "CPU time that idled although a task waited";
    }
}

/// The columns of CPUs.
#[must_use]
pub const fn cpu_columns() -> &'static [Column<CpuReport>] {
    columns! { row:
        "cpu", "CPU", Count(row.cpu.into()), "its number";
        "run_ns", "run", Nanos(Some(row.run)), "tasks ran";
        "stolen_ns", "stolen", Nanos(Some(row.stolen)), "interrupts";
        "idle_ns", "idle", Nanos(Some(row.idle)), "nothing to do";
        "overhead_ns", "overhead", Nanos(Some(row.overhead)), "switches and the policy";
        "switches", "switches", Count(row.switches),
            "changes of its task, to and from idle included";
    }
}

/// The columns of work and energy where CPUs differ.
#[must_use]
pub const fn hardware_columns() -> &'static [Column<HardwareReport>] {
    columns! { row:
        "group", "group", Text(row.group.clone()), "the task group, or `all`";
        "work_ns", "work", Nanos(Some(row.work)),
            "work done: time on a CPU of capacity 1024 at its highest frequency, alone on its core";
        "executed_ns", "executed", Nanos(Some(row.executed)), "time in which it was done";
        "rate_milli", "rate", Average(row.rate()), "work done in a nanosecond";
        "energy_uj", "energy", Energy(row.energy_uj),
            "energy of CPUs while they executed it; of all tasks that of the whole machine";
        "work_per_mj_ns", "work/mJ", Nanos(row.work_per_millijoule()),
            "work done with a millijoule";
        "sibling_ns", "shared core", Nanos(Some(row.sibling)),
            "time in which the other thread of the core executed, too";
        "shared_core_ns", "half core", Nanos(Some(row.shared_core)),
            "time in which a thread of the core executed, too, while a whole core idled";
        "misfit_ns", "misfit", Nanos(Some(row.misfit)),
            "time on too small a CPU while a bigger one idled";
        "misplaced_ns", "misplaced", Nanos(Some(row.misplaced)),
            "time on a bigger CPU than it took while one of the smallest idled";
        "remote_ns", "remote", Nanos(Some(row.remote)),
            "time in another node than that of its memory";
        "lost_capacity_ns", "lost to capacity", Nanos(Some(row.lost[0])),
            "time lost because CPUs are small";
        "lost_frequency_ns", "to frequency", Nanos(Some(row.lost[1])),
            "time lost because frequencies were not the highest";
        "lost_threads_ns", "to threads", Nanos(Some(row.lost[2])),
            "time lost because the other thread of the core executed, too";
        "lost_memory_ns", "to memory", Nanos(Some(row.lost[3])),
            "time lost because memory was slower than a cache, or far away";
    }
}

/// The columns of classes of CPUs.
#[must_use]
pub const fn class_columns() -> &'static [Column<ClassReport>] {
    columns! { row:
        "group", "group", Text(row.group.clone()), "the task group, or `all`";
        "class", "class", Text(row.class.clone()), "the class in the hardware's file";
        "executed_ns", "executed", Nanos(Some(row.executed)), "time on CPUs of the class";
        "work_ns", "work", Nanos(Some(row.work)), "work done there";
        "work_ppm", "share", Share(row.share), "its share of the group's work";
    }
}

/// The columns of frequencies.
#[must_use]
pub const fn frequency_columns() -> &'static [Column<FrequencyReport>] {
    columns! { row:
        "cpu", "CPU", Count(row.cpu.into()), "its number";
        "khz", "kHz", Count(row.khz.into()), "the frequency";
        "executing_ns", "executing", Nanos(Some(row.executing)), "time in which it executed then";
        "idle_ns", "idle", Nanos(Some(row.idle)), "time in which it idled then";
    }
}

#[cfg(test)]
mod tests;
