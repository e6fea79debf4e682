//! The numbers of one run, ready for tables, JSON and CSV.
//!
//! Each has its definition in docs/events.md. Rows serialise under the names of their columns.

use model::Nanos;
use serde::{Serialize, Serializer};

use crate::Histogram;

/// A share of a whole, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Millionths(pub u64);

/// An average over time, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Thousandths(pub u64);

impl Millionths {
    /// `part` of `whole`, rounded to the nearest; 0 of nothing is 0.
    #[must_use]
    pub fn of(part: u128, whole: u128) -> Self {
        Self(scaled(part, whole, 1_000_000))
    }
}

impl Thousandths {
    /// `sum` divided by `length`, rounded to the nearest; 0 over nothing.
    #[must_use]
    pub fn of(sum: u128, length: u128) -> Self {
        Self(scaled(sum, length, 1_000))
    }
}

fn scaled(part: u128, whole: u128, scale: u128) -> u64 {
    let rounded = (part * scale + whole / 2).checked_div(whole).unwrap_or(0);
    u64::try_from(rounded).unwrap_or(u64::MAX)
}

/// A distribution in five numbers. Without values all but the count are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// How many values.
    pub count: u64,
    /// The mean, rounded down.
    #[serde(rename = "mean_ns", serialize_with = "maybe_ns")]
    pub mean: Option<Nanos>,
    /// The median.
    #[serde(rename = "p50_ns", serialize_with = "maybe_ns")]
    pub p50: Option<Nanos>,
    /// The value that 99 of 100 do not exceed.
    #[serde(rename = "p99_ns", serialize_with = "maybe_ns")]
    pub p99: Option<Nanos>,
    /// The largest value.
    #[serde(rename = "max_ns", serialize_with = "maybe_ns")]
    pub max: Option<Nanos>,
}

impl From<&Histogram> for Spread {
    fn from(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            mean: histogram.mean(),
            p50: histogram.quantile(500),
            p99: histogram.quantile(990),
            max: histogram.max(),
        }
    }
}

/// Lengths of spans: a [`Spread`] with two numbers more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// How many.
    pub count: u64,
    /// The mean, rounded down.
    pub mean: Option<Nanos>,
    /// The shortest.
    pub min: Option<Nanos>,
    /// The median.
    pub p50: Option<Nanos>,
    /// The length that 95 of 100 do not exceed.
    pub p95: Option<Nanos>,
    /// The length that 99 of 100 do not exceed.
    pub p99: Option<Nanos>,
    /// The longest.
    pub max: Option<Nanos>,
}

impl From<&Histogram> for Lengths {
    fn from(histogram: &Histogram) -> Self {
        let spread = Spread::from(histogram);
        Self {
            count: spread.count,
            mean: spread.mean,
            min: histogram.min(),
            p50: spread.p50,
            p95: histogram.quantile(950),
            p99: spread.p99,
            max: spread.max,
        }
    }
}

/// How time was spent; the four sum to all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// On a CPU, executing its own work.
    pub run: Nanos,
    /// On a CPU that the kernel used.
    pub stolen: Nanos,
    /// Runnable, not on a CPU.
    pub wait: Nanos,
    /// Not runnable.
    pub sleep: Nanos,
}

/// The tasks of one group together; also all tasks of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupReport {
    /// The group's name in the workload; `all` for the whole run.
    pub name: String,
    /// Nice value at the start; for the whole run that of the first group.
    pub nice: i8,
    /// Tasks that came to be.
    pub tasks: u64,
    /// Tasks that exited.
    pub exited: u64,
    /// Turns on a CPU.
    pub runs: u64,
    /// From a wakeup until the task got a CPU.
    pub wakeup: Spread,
    /// The same for new tasks.
    pub start: Spread,
    /// From losing the CPU while runnable until getting one.
    pub preempt: Spread,
    /// The three waits above together.
    pub delay: Spread,
    /// Time on a CPU from getting to leaving it.
    pub runslice: Spread,
    /// From falling asleep until the wakeup.
    pub sleep: Spread,
    /// Of the tasks that exited the mean of [`TaskReport::turnaround`], rounded down.
    pub turnaround: Option<Nanos>,
    /// Of the tasks that exited the mean of [`TaskReport::response`], rounded down.
    pub response: Option<Nanos>,
    /// Sums over the tasks.
    pub times: Times,
    /// `run` as a share of all CPU time of the machine.
    pub share: Millionths,
    /// Changes of a task's CPU.
    pub migrations: u64,
    /// Tasks that waited for a CPU when the run ended.
    pub waiting_at_end: u64,
    /// How long the one of them that waited longest had waited.
    pub waiting_at_end_max: Option<Nanos>,
    /// Deadlines met.
    pub met: u64,
    /// Deadlines missed: late or skipped.
    pub missed: u64,
    /// Forked tasks came faster than they ended, or messages faster than they were taken: waits
    /// tell no more than how long the run was.
    pub grows: bool,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    /// Its number in the run.
    pub task: u32,
    /// Its name: the group's, with its index in the group when there are several.
    pub name: String,
    /// The kernel's number.
    pub pid: u32,
    /// Its nice value at its end.
    pub nice: i8,
    /// When it came to be.
    pub born: u64,
    /// When it exited; `None` if it outlived the run.
    pub exited: Option<u64>,
    /// From when it came to work, runnable for its first turn that was not empty, until it exited.
    pub turnaround: Option<Nanos>,
    /// From then until it first ran, of a task that exited.
    pub response: Option<Nanos>,
    /// Turns on a CPU.
    pub runs: u64,
    /// Wakeups, its start included.
    pub wakeups: u64,
    /// How it spent its life.
    pub times: Times,
    /// Its longest run delay, a wait that was open at the end included.
    pub wait_max: Nanos,
    /// `run` as a share of all CPU time of the machine.
    pub share: Millionths,
    /// Changes of its CPU.
    pub migrations: u64,
}

/// Tasks of one nice value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NiceReport {
    /// The nice value, -20 to 19.
    pub nice: i8,
    /// Run time of tasks while they had it.
    pub run: Nanos,
    /// The same as a share of all CPU time of the machine.
    pub share: Millionths,
}

/// One deadline of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineReport {
    /// The group whose tasks have it.
    pub group: String,
    /// Its name in the workload.
    pub name: String,
    /// Word for a miss: "late", "underrun", "missed frame".
    pub word: String,
    /// Work done in time.
    pub met: u64,
    /// Work done late.
    pub late: u64,
    /// Periods whose work was not begun at all.
    pub skipped: u64,
    /// `late` and `skipped` together.
    pub missed: u64,
    /// How late the late ones were.
    pub lateness: Spread,
    /// Messages came faster than they were taken: the numbers tell no more than how long the run
    /// was.
    pub grows: bool,
}

/// One named span of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanReport {
    /// The group whose tasks have it.
    pub group: String,
    /// Its name in the workload.
    pub name: String,
    /// Lengths of those that ended.
    pub length: Lengths,
    /// Requests came faster than they were answered: lengths tell no more than how long the run
    /// was.
    pub grows: bool,
}

/// One counter of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterReport {
    /// The group whose tasks raised it.
    pub group: String,
    /// Its name in the workload.
    pub name: String,
    /// The sum.
    pub total: u64,
}

/// One phase of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseReport {
    /// The group whose tasks were in it.
    pub group: String,
    /// Its name in the workload.
    pub name: String,
    /// How often a task entered it.
    pub entries: u64,
    /// How long tasks were in it.
    pub time: Nanos,
    /// How long they ran in it.
    pub run: Nanos,
}

/// One CPU. The four spans sum to the length of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuReport {
    /// Its number.
    pub cpu: u16,
    /// Tasks ran.
    pub run: Nanos,
    /// Interrupts.
    pub stolen: Nanos,
    /// Nothing to do.
    pub idle: Nanos,
    /// Switches and what the policy cost.
    pub overhead: Nanos,
    /// Changes of its task, to and from idle included.
    pub switches: u64,
}

/// The machine as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineReport {
    /// Number of CPUs.
    pub cpus: u16,
    /// Length of the run.
    pub elapsed: Nanos,
    /// Changes of a CPU's task, to and from idle included.
    pub switches: u64,
    /// Wakeups, starts of tasks included.
    pub wakeups: u64,
    /// Changes of a task's CPU.
    pub migrations: u64,
    /// Kicks by the policy.
    pub kicks: u64,
    /// Share of CPU time in which tasks ran.
    pub run: Millionths,
    /// Share of CPU time that interrupts took.
    pub stolen: Millionths,
    /// Share of CPU time without anything to do.
    pub idle: Millionths,
    /// Share of CPU time that switches and the policy took.
    pub overhead: Millionths,
    /// Run-queue length of a CPU, running task included, averaged over time and CPUs.
    pub queue_mean: Thousandths,
    /// The longest run queue that a CPU had.
    pub queue_max: u32,
    /// Tasks runnable and not on a CPU, averaged over time.
    pub waiting_mean: Thousandths,
    /// The longest run queue less the shortest, averaged over time.
    pub imbalance_mean: Thousandths,
    /// CPU time that idled although a task waited.
    pub idle_while_waiting: Nanos,
}

/// What was done for a group of tasks, or for all, on a machine whose CPUs differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HardwareReport {
    /// The group; `all` of all tasks.
    pub group: String,
    /// Work: time on a CPU of capacity 1024 at its highest frequency, alone on its core.
    pub work: Nanos,
    /// Time in which it was done.
    pub executed: Nanos,
    /// Microjoules, rounded down; `None` where no powers are known.
    pub energy_uj: Option<u64>,
    /// Time in which the other thread of the core executed, too.
    pub sibling: Nanos,
    /// The part of it in which a whole core idled.
    pub shared_core: Nanos,
    /// Time on too small a CPU while a bigger one idled.
    pub misfit: Nanos,
    /// Time on a bigger CPU than it took while one of the smallest idled.
    pub misplaced: Nanos,
    /// Time in another node than that of its memory.
    pub remote: Nanos,
    /// Time lost to the capacity of CPUs, their frequency, the other thread of the core, memory.
    pub lost: [Nanos; 4],
}

impl HardwareReport {
    /// Work done in a nanosecond.
    #[must_use]
    pub fn rate(&self) -> Thousandths {
        Thousandths::of(self.work.get().into(), self.executed.get().into())
    }

    /// Work done with a millijoule; `None` without energy.
    #[must_use]
    pub fn work_per_millijoule(&self) -> Option<Nanos> {
        let energy = self.energy_uj.filter(|energy| *energy > 0)?;
        let work = u128::from(self.work.get()) * 1_000 / u128::from(energy);
        Some(Nanos::new(u64::try_from(work).unwrap_or(u64::MAX)))
    }
}

/// What was done for a group of tasks, or for all, on the CPUs of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassReport {
    /// The group; `all` of all tasks.
    pub group: String,
    /// The class.
    pub class: String,
    /// Time in which it executed there.
    pub executed: Nanos,
    /// Work done there.
    pub work: Nanos,
    /// Its share of the group's work.
    pub share: Millionths,
}

/// How long a CPU had a frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyReport {
    /// The CPU.
    pub cpu: u16,
    /// Kilohertz.
    pub khz: u32,
    /// Time in which it executed something.
    pub executing: Nanos,
    /// Time in which it idled.
    pub idle: Nanos,
}

/// Everything that `Metrics` knows of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Name of the policy.
    pub policy: String,
    /// Name of the workload.
    pub workload: String,
    /// Seed of the run.
    pub seed: u64,
    /// The machine as a whole.
    pub machine: MachineReport,
    /// Its CPUs.
    pub cpus: Vec<CpuReport>,
    /// All tasks together.
    pub all: GroupReport,
    /// Task groups, in the order of the workload.
    pub groups: Vec<GroupReport>,
    /// Deadlines by group.
    pub deadlines: Vec<DeadlineReport>,
    /// Spans by group.
    pub spans: Vec<SpanReport>,
    /// Counters by group.
    pub counters: Vec<CounterReport>,
    /// Phases by group.
    pub phases: Vec<PhaseReport>,
    /// Nice values that ran, lowest first.
    pub nice: Vec<NiceReport>,
    /// Tasks, in the order of creation.
    pub tasks: Vec<TaskReport>,
    /// Work and energy by group, and of all tasks behind them; empty where CPUs do not differ.
    /// Events do not tell it: whoever has the run's summary fills it in, and the two that follow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hardware: Vec<HardwareReport>,
    /// Classes of CPUs by group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassReport>,
    /// Frequencies by CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frequencies: Vec<FrequencyReport>,
    /// The wait for a CPU that 999 of 1000 do not exceed, of all tasks; in no table. Waits that
    /// were open at the end are left out.
    #[serde(skip)]
    pub wait_p999: Option<Nanos>,
    /// CPU time in which the other thread of the core had a task, too, where that slows nobody
    /// down; else zero.
    #[serde(skip)]
    pub siblings_busy: Nanos,
}

#[expect(clippy::ref_option, reason = "serde fixes the signature")]
pub(crate) fn maybe_ns<S: Serializer>(span: &Option<Nanos>, to: S) -> Result<S::Ok, S::Error> {
    span.map(Nanos::get).serialize(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_to_the_nearest_and_nothing_of_nothing_is_none() {
        assert_eq!(Millionths::of(1, 3), Millionths(333_333));
        assert_eq!(Millionths::of(2, 3), Millionths(666_667));
        assert_eq!(Millionths::of(0, 0), Millionths(0));
        assert_eq!(Thousandths::of(7, 2), Thousandths(3_500));
    }

    #[test]
    fn a_spread_names_its_units_and_has_no_numbers_without_values() {
        let empty = serde_json::to_string(&Spread::default()).unwrap();
        let want = r#"{"count":0,"mean_ns":null,"p50_ns":null,"p99_ns":null,"max_ns":null}"#;
        assert_eq!(empty, want);
        let mut histogram = Histogram::new();
        histogram.record(Nanos::new(7));
        let one = serde_json::to_string(&Spread::from(&histogram)).unwrap();
        assert_eq!(
            one,
            r#"{"count":1,"mean_ns":7,"p50_ns":7,"p99_ns":7,"max_ns":7}"#
        );
    }

    #[test]
    fn lengths_have_the_shortest_and_the_one_that_nineteen_of_twenty_do_not_exceed() {
        let mut histogram = Histogram::new();
        (1..=20).for_each(|length| histogram.record(Nanos::new(length)));
        let of = |name: &str, histogram: &Histogram| {
            let row = SpanReport {
                group: "window".to_owned(),
                name: "frame".to_owned(),
                length: Lengths::from(histogram),
                grows: false,
            };
            serde_json::to_value(row).unwrap()[name].as_u64()
        };
        let names = ["count", "mean", "min", "p50", "p95", "p99", "max"].map(|it| match it {
            "count" => it.to_owned(),
            it => format!("length_ns_{it}"),
        });
        let have = names.clone().map(|name| of(&name, &histogram));
        assert_eq!(have, [20, 10, 1, 10, 19, 20, 20].map(Some));
        assert_eq!(of("length_ns_min", &Histogram::new()), None);
    }
}
