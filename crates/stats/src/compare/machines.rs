//! How far apart two machines are that ran the same load under the same policy.
//!
//! A [`MachineRun`] has what is compared, of a simulated machine or of a real one. [`cells`] holds
//! one run against another, figure by figure; [`MachinesScore`] sums up many such pairs. A factor
//! is `max(a / b, b / a)`: 1 is exact, whichever of the two is larger. docs/fidelity.md says how
//! the table that is made of it is read.

use std::cmp::Ordering;

use model::Nanos;
use serde::{Deserialize, Serialize};

use crate::{ColumnValue, GroupReport, Histogram, Millionths, Report, Tails, Thousandths};

#[cfg(test)]
mod tests;

/// Two policies are apart if their figures on the reference machine differ by this factor.
pub const APART: f64 = 1.2;

/// A distribution as values and how often each occurs, in rising order.
///
/// Of a histogram they are the values that stand for its buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>")]
pub struct Waits(Vec<(u64, u64)>);

impl Waits {
    /// Waits in nanoseconds, each with how often it occurred, in any order. What occurred more than
    /// 2^40 times, as it never does, counts as that often, so that no product overflows.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let values = values.into_iter().filter(|(_, count)| *count > 0);
        let mut values: Vec<_> = values
            .map(|(value, count)| (value, count.min(1 << 40)))
            .collect();
        values.sort_unstable();
        Self(values)
    }

    /// How many there are.
    pub(super) fn count(&self) -> u128 {
        self.0.iter().map(|(_, count)| u128::from(*count)).sum()
    }

    /// Their mean in nanoseconds, if there are at least so many.
    #[must_use]
    pub fn mean_of(&self, fewest: u128) -> Option<f64> {
        let all = self.count();
        let sum: f64 = self
            .0
            .iter()
            .map(|(value, count)| *value as f64 * *count as f64)
            .sum();
        (all >= fewest.max(1)).then(|| sum / all as f64)
    }

    /// The wait in nanoseconds that so many thousandths of them do not exceed, 1 to 1000, if there
    /// are at least so many.
    #[must_use]
    pub fn permille_of(&self, permille: u16, fewest: u128) -> Option<f64> {
        let all = self.count();
        let rank = (all * u128::from(permille)).div_ceil(1000);
        let mut below = 0;
        let found = self.0.iter().find(|(_, count)| {
            below += u128::from(*count);
            below >= rank
        });
        found
            .filter(|_| all >= fewest.max(1))
            .map(|(value, _)| *value as f64)
    }

    /// Each wait's logarithm, shorter ones than the floor as the floor.
    fn logs(&self) -> impl Iterator<Item = (f64, u128)> {
        let floor = MachineMeasure::Waits.floor();
        let log = move |value: u64| libm::log(value.max(floor) as f64);
        self.0
            .iter()
            .map(move |(value, count)| (log(*value), u128::from(*count)))
    }

    /// The geometric mean in nanoseconds; `None` without waits.
    pub(super) fn mean(&self) -> Option<u64> {
        let count = self.count();
        let sum: f64 = self.logs().map(|(log, times)| log * times as f64).sum();
        (count > 0).then(|| libm::round(libm::exp(sum / count as f64)) as u64)
    }

    /// The Wasserstein-1 distance of the logarithms: how far, on average, a wait of the one has to
    /// be moved to become one of the other. 0 if they are alike, `None` if one has no waits. Waits
    /// under 10 us count as 10 us.
    ///
    /// It is the area between the two quantile functions (Vallender, 1974, "Calculation of the
    /// Wasserstein Distance between Probability Distributions on the Line"). The ranks are exact.
    #[must_use]
    pub fn distance(&self, other: &Self) -> Option<f64> {
        let (ours, theirs) = (self.count(), other.count());
        if ours == 0 || theirs == 0 {
            return None;
        }
        // Both are stretched to `ours * theirs` values, so that they have equally many.
        let mut left = other.logs().map(|(log, count)| (log, count * ours));
        let (mut at, mut room) = left.next()?;
        let mut sum = 0.0;
        for (log, count) in self.logs() {
            let mut count = count * theirs;
            while count > 0 {
                if room == 0 {
                    (at, room) = left.next()?;
                    continue;
                }
                let moved = count.min(room);
                sum += (log - at).abs() * moved as f64;
                count -= moved;
                room -= moved;
            }
        }
        Some(sum / (ours as f64 * theirs as f64))
    }
}

impl From<Vec<(u64, u64)>> for Waits {
    fn from(values: Vec<(u64, u64)>) -> Self {
        Self::new(values)
    }
}

impl From<&Histogram> for Waits {
    fn from(histogram: &Histogram) -> Self {
        Self::new(histogram.values())
    }
}

/// What is compared of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineRun {
    /// Name of the load.
    pub load: String,
    /// The policy with its knobs.
    pub policy: String,
    /// Seed of the load's own choices.
    pub seed: u64,
    /// Length of the run, in nanoseconds.
    pub elapsed_ns: u64,
    /// How long its tasks had slept before it began, in nanoseconds. Those of a play are there
    /// before its recorder is; older files do not say for how long.
    #[serde(default)]
    pub before_ns: u64,
    /// Changes of a CPU's task, to and from idle included, on the whole machine.
    pub switches: u64,
    /// The load's groups of tasks, and groups of others that the machine has.
    pub groups: Vec<Group>,
}

/// What is compared of the tasks of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name in the load.
    pub name: String,
    /// Tasks that came to be.
    pub tasks: u64,
    /// Turns on a CPU.
    pub runs: u64,
    /// Share of all CPU time, in millionths.
    pub share: u64,
    /// Median wait after a wakeup, in nanoseconds.
    pub wakeup_p50_ns: Option<u64>,
    /// The wait after a wakeup that 99 of 100 do not exceed, in nanoseconds.
    pub wakeup_p99_ns: Option<u64>,
    /// Median time on a CPU, in nanoseconds.
    pub runslice_p50_ns: Option<u64>,
    /// Median wait after a preemption, in nanoseconds.
    pub preempt_p50_ns: Option<u64>,
    /// Deadlines met.
    pub met: u64,
    /// Deadlines missed.
    pub missed: u64,
    /// Waits after wakeups and preemptions.
    pub waits: Waits,
    /// Sums of counters by name.
    pub counters: Vec<(String, u64)>,
}

impl MachineRun {
    /// The compared figures of a report. `waits` has the waits after wakeups and preemptions of
    /// each group: [`Metrics::waits`](crate::Metrics::waits), or those of a kernel's histograms.
    #[must_use]
    pub fn new(report: &Report, waits: &Tails) -> Self {
        let group = |group: &GroupReport| Group::new(group, report, waits);
        Self {
            load: report.workload.clone(),
            policy: report.policy.clone(),
            seed: report.seed,
            before_ns: 0,
            elapsed_ns: report.machine.elapsed.get(),
            switches: report.machine.switches,
            groups: report.groups.iter().map(group).collect(),
        }
    }

    /// Without the groups that are not among these: threads that stand for something that the
    /// other machine does not count. What is of the whole machine stays.
    #[must_use]
    pub fn only(mut self, mut is_compared: impl FnMut(&str) -> bool) -> Self {
        self.groups.retain(|group| is_compared(&group.name));
        self
    }
}

impl Group {
    fn new(group: &GroupReport, report: &Report, waits: &Tails) -> Self {
        let its = report.counters.iter().filter(|it| it.group == group.name);
        Self {
            name: group.name.clone(),
            tasks: group.tasks,
            runs: group.runs,
            share: group.share.0,
            wakeup_p50_ns: group.wakeup.p50.map(Nanos::get),
            wakeup_p99_ns: group.wakeup.p99.map(Nanos::get),
            runslice_p50_ns: group.runslice.p50.map(Nanos::get),
            preempt_p50_ns: group.preempt.p50.map(Nanos::get),
            met: group.met,
            missed: group.missed,
            waits: waits.find(&group.name).map(Waits::from).unwrap_or_default(),
            counters: its.map(|it| (it.name.clone(), it.total)).collect(),
        }
    }

    /// A figure of the group; `None` where it was not measured or does not apply.
    fn value(&self, measure: MachineMeasure) -> Option<u64> {
        let some = |count: u64| Some(count).filter(|count| *count > 0);
        match measure {
            MachineMeasure::Share => Some(self.share),
            MachineMeasure::Runs => {
                let tasks = some(self.tasks)?;
                Some(Thousandths::of(self.runs.into(), tasks.into()).0)
            }
            MachineMeasure::WakeupP50 => self.wakeup_p50_ns,
            MachineMeasure::WakeupP99 => self.wakeup_p99_ns,
            MachineMeasure::Waits => self.waits.mean(),
            MachineMeasure::RunsliceP50 => self.runslice_p50_ns,
            MachineMeasure::PreemptP50 => self.preempt_p50_ns,
            MachineMeasure::Met => some(self.met),
            MachineMeasure::Missed => some(self.missed),
            MachineMeasure::Count | MachineMeasure::Switches | MachineMeasure::Elapsed => None,
        }
    }
}

/// A figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineMeasure {
    /// Share of all CPU time, in millionths.
    Share,
    /// Turns on a CPU for each task, in thousandths.
    Runs,
    /// Median wait after a wakeup, in nanoseconds.
    WakeupP50,
    /// The wait after a wakeup that 99 of 100 do not exceed, in nanoseconds.
    WakeupP99,
    /// All waits after wakeups and preemptions; the value is their geometric mean in nanoseconds.
    Waits,
    /// Switches of the whole machine.
    Switches,
    /// Median time on a CPU, in nanoseconds.
    RunsliceP50,
    /// Median wait after a preemption, in nanoseconds.
    PreemptP50,
    /// Deadlines met.
    Met,
    /// Deadlines missed.
    Missed,
    /// A counter of the load.
    Count,
    /// Length of the run, in nanoseconds.
    Elapsed,
}

impl MachineMeasure {
    /// Those that a [`MachinesScore`] sums up, in the order of its columns.
    pub const SCORED: [Self; 6] = [
        Self::Share,
        Self::Runs,
        Self::WakeupP50,
        Self::WakeupP99,
        Self::Waits,
        Self::Switches,
    ];

    /// Those that each group has, in the order of tables.
    const OF_GROUPS: [Self; 9] = [
        Self::WakeupP50,
        Self::WakeupP99,
        Self::RunsliceP50,
        Self::PreemptP50,
        Self::Waits,
        Self::Runs,
        Self::Share,
        Self::Met,
        Self::Missed,
    ];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Runs => "runs a task",
            Self::WakeupP50 => "wakeup p50",
            Self::WakeupP99 => "wakeup p99",
            Self::Waits => "waits",
            Self::Switches => "switches",
            Self::RunsliceP50 => "runslice p50",
            Self::PreemptP50 => "preempt p50",
            Self::Met => "deadlines met",
            Self::Missed => "missed",
            Self::Count => "count",
            Self::Elapsed => "elapsed",
        }
    }

    /// Smaller values count as this: a share of 0.1 %, one run a task, 10 us, or 1. Below it both
    /// machines say "hardly any". A wakeup itself takes a kernel some microseconds, which is no
    /// wait behind other tasks. `ideal` wakes a task in 0 ns, to which nothing has a ratio. Raising
    /// a floor hides errors: these were chosen before anything was compared.
    #[must_use]
    pub const fn floor(self) -> u64 {
        match self {
            Self::Share | Self::Runs => 1_000,
            Self::WakeupP50
            | Self::WakeupP99
            | Self::Waits
            | Self::RunsliceP50
            | Self::PreemptP50
            | Self::Elapsed => 10_000,
            Self::Switches | Self::Met | Self::Missed | Self::Count => 1,
        }
    }

    /// A value with its unit.
    #[must_use]
    pub const fn shown(self, value: u64) -> ColumnValue {
        match self {
            Self::Share => ColumnValue::Share(Millionths(value)),
            Self::Runs => ColumnValue::Average(Thousandths(value)),
            Self::Switches | Self::Met | Self::Missed | Self::Count => ColumnValue::Count(value),
            _ => ColumnValue::Nanos(Some(Nanos::new(value))),
        }
    }

    fn factor(self, reference: u64, other: u64) -> f64 {
        let [reference, other] = [reference, other].map(|value| value.max(self.floor()) as f64);
        reference.max(other) / reference.min(other)
    }
}

/// One figure on both machines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigurePair {
    /// The group of tasks; `all` for the whole machine.
    pub group: String,
    /// The figure.
    pub measure: MachineMeasure,
    /// Which counter, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<String>,
    /// Its value on the reference machine, in the unit of the measure.
    pub reference: Option<u64>,
    /// Its value on the other.
    pub other: Option<u64>,
    /// 1 if they are the same. Of waits it is the exponential of [`Waits::distance`]: how many
    /// times longer or shorter a wait is on average. `None` if one of the values is missing.
    pub factor: Option<f64>,
}

impl FigurePair {
    fn new(group: &str, measure: MachineMeasure, [reference, other]: [Option<u64>; 2]) -> Self {
        Self {
            group: group.to_owned(),
            measure,
            counter: None,
            reference,
            other,
            factor: Some(measure.factor(reference.unwrap_or(0), other.unwrap_or(0)))
                .filter(|_| reference.is_some() && other.is_some()),
        }
    }
}

/// What the tables call the whole machine.
const ALL: &str = "all";

/// Every figure of the groups that both runs have, and of the machine. Figures that neither has are
/// left out.
#[must_use]
pub fn cells(reference: &MachineRun, other: &MachineRun) -> Vec<FigurePair> {
    let mut cells = Vec::new();
    for theirs in &other.groups {
        let Some(ours) = reference.groups.iter().find(|it| it.name == theirs.name) else {
            continue;
        };
        for measure in MachineMeasure::OF_GROUPS {
            let values = [ours, theirs].map(|group| group.value(measure));
            let mut cell = FigurePair::new(&ours.name, measure, values);
            if measure == MachineMeasure::Waits {
                cell.factor = ours.waits.distance(&theirs.waits).map(libm::exp);
            }
            cells.push(cell);
        }
        for (name, total) in &theirs.counters {
            let same = ours.counters.iter().find(|(known, _)| known == name);
            let values = [same.map(|(_, total)| *total), Some(*total)];
            let mut cell = FigurePair::new(&ours.name, MachineMeasure::Count, values);
            cell.counter = Some(name.clone());
            cells.push(cell);
        }
    }
    let whole = [
        (
            MachineMeasure::Switches,
            [reference.switches, other.switches],
        ),
        (
            MachineMeasure::Elapsed,
            [reference.elapsed_ns, other.elapsed_ns],
        ),
    ];
    cells.extend(whole.map(|(measure, values)| FigurePair::new(ALL, measure, values.map(Some))));
    cells.retain(|cell| cell.reference.is_some() || cell.other.is_some());
    cells
}

/// A run of the reference machine, and one of the other with the same load and policy.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// Of the reference machine.
    pub reference: &'a MachineRun,
    /// Of the other.
    pub other: &'a MachineRun,
    /// Their figures.
    pub cells: Vec<FigurePair>,
    /// The reference machine's figures beside those of its run with another seed, if there is one.
    again: Vec<FigurePair>,
}

impl<'a> Pair<'a> {
    /// Holds one run against the other.
    #[must_use]
    pub fn new(reference: &'a MachineRun, other: &'a MachineRun) -> Self {
        Self {
            reference,
            other,
            cells: cells(reference, other),
            again: Vec::new(),
        }
    }

    /// With the reference machine's run of the same load and policy that has another seed. It says
    /// which policies that machine puts in the same order whatever the seed.
    #[must_use]
    pub fn again(mut self, run: &MachineRun) -> Self {
        self.again = cells(self.reference, run);
        self
    }

    /// Whether the other pair is of the same load, drawn by the same seed, under another policy.
    fn is_beside(&self, other: &Self) -> bool {
        let load = |pair: &Self| (pair.reference.load.clone(), pair.reference.seed);
        load(self) == load(other) && self.reference.policy != other.reference.policy
    }
}

/// How alike two machines order policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Order {
    /// Pairs of policies that are [`APART`] on the reference machine, by load, group and figure.
    pub pairs: u64,
    /// Pairs among them that the other machine puts in the same order.
    pub alike: u64,
}

impl Order {
    /// The part that is alike; `None` without pairs.
    #[must_use]
    pub fn part(self) -> Option<f64> {
        (self.pairs > 0).then(|| self.alike as f64 / self.pairs as f64)
    }

    fn take(&mut self, is_alike: bool) {
        self.pairs += 1;
        self.alike += u64::from(is_alike);
    }
}

/// Whether the other machine puts two policies in the same order by a figure; `None` if they are
/// not [`APART`] on the reference machine.
fn is_alike(first: &FigurePair, second: &FigurePair) -> Option<bool> {
    let measure = first.measure;
    let (a, b) = (first.reference?, second.reference?);
    if measure.factor(a, b) < APART {
        return None;
    }
    let (Some(c), Some(d)) = (first.other, second.other) else {
        return Some(false);
    };
    let [c, d] = [c, d].map(|value| value.max(measure.floor()));
    Some(a.cmp(&b) == c.cmp(&d))
}

/// How far apart two machines are over many runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MachinesScore {
    /// How alike they order policies.
    pub order: Order,
    /// The same of those pairs alone that a second run of the reference machine, with another seed,
    /// orders as the first does.
    pub clear: Order,
    /// The median factor of each of [`MachineMeasure::SCORED`], in that order; `None` without
    /// values.
    pub medians: [Option<f64>; MachineMeasure::SCORED.len()],
    /// Figures that have a factor.
    pub cells: usize,
    /// Figures that only one of the machines has.
    pub lacking: usize,
}

impl MachinesScore {
    /// The score of the pairs that `keep` wants. The order counts pairs of policies of which one is
    /// kept.
    #[must_use]
    pub fn of<'p>(all: &[Pair<'p>], keep: impl Fn(&Pair<'p>) -> bool) -> Self {
        let mut score = Self::default();
        let mut factors: [Vec<f64>; MachineMeasure::SCORED.len()] = Default::default();
        for cell in all
            .iter()
            .filter(|pair| keep(pair))
            .flat_map(|it| &it.cells)
        {
            let place = MachineMeasure::SCORED
                .iter()
                .position(|it| *it == cell.measure);
            match (place, cell.factor) {
                (Some(place), Some(factor)) => factors[place].push(factor),
                (Some(_), None) => score.lacking += 1,
                (None, _) => {}
            }
        }
        score.cells = factors.iter().map(Vec::len).sum();
        score.medians = factors.map(median);
        for (at, first) in all.iter().enumerate() {
            let beside = all[at + 1..].iter().filter(|it| first.is_beside(it));
            for second in beside.filter(|second| keep(first) || keep(second)) {
                score.order_of(first, second);
            }
        }
        score
    }

    fn order_of(&mut self, first: &Pair<'_>, second: &Pair<'_>) {
        let scored = |cell: &&FigurePair| MachineMeasure::SCORED.contains(&cell.measure);
        for cell in first.cells.iter().filter(scored) {
            let same = |cells| same_figure(cells, cell);
            let Some(is_alike_here) = same(&second.cells).and_then(|it| is_alike(cell, it)) else {
                continue;
            };
            self.order.take(is_alike_here);
            let again = same(&first.again).zip(same(&second.again));
            if again.and_then(|(first, second)| is_alike(first, second)) == Some(true) {
                self.clear.take(is_alike_here);
            }
        }
    }

    /// The median factor of a figure.
    #[must_use]
    pub fn median(&self, measure: MachineMeasure) -> Option<f64> {
        let place = MachineMeasure::SCORED
            .iter()
            .position(|it| *it == measure)?;
        self.medians[place]
    }
}

/// The figure of the same group among `cells`.
fn same_figure<'c>(cells: &'c [FigurePair], like: &FigurePair) -> Option<&'c FigurePair> {
    let is_same = |it: &&FigurePair| (&it.group, it.measure) == (&like.group, like.measure);
    cells.iter().find(is_same)
}

/// The middle value, or the mean of the two in the middle; `None` without values.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(match values.len() % 2 {
        0 => f64::midpoint(values[middle - 1], upper),
        _ => upper,
    })
}

/// The scored figures of all pairs that are not exact, the worst first, each with the index of its
/// pair; of equal ones the first.
#[must_use]
pub fn worst<'p>(pairs: &'p [Pair<'_>]) -> Vec<(usize, &'p FigurePair)> {
    let cells = pairs.iter().enumerate();
    let cells = cells.flat_map(|(at, pair)| pair.cells.iter().map(move |cell| (at, cell)));
    let is_off = |cell: &FigurePair| cell.factor.is_none_or(|factor| factor > 1.0);
    let scored = |cell: &FigurePair| MachineMeasure::SCORED.contains(&cell.measure);
    let mut worst: Vec<_> = cells.filter(|(_, it)| scored(it) && is_off(it)).collect();
    worst.sort_by(|(_, a), (_, b)| by_factor(b.factor, a.factor));
    worst
}

/// What has no factor, because one machine lacks the figure, stands behind all that have one.
fn by_factor(a: Option<f64>, b: Option<f64>) -> Ordering {
    a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0))
}
