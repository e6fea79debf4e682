//! A run's report as it stands in a file, with the metrics alone: the rest is skipped where it
//! stands, so that ten thousand runs are read without ever being whole in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::set::Places;
use super::{Better, Measure, Role, Series, Set, plural};
use crate::columns::{self, Column, ColumnValue};
use crate::report::Report;

/// A number of the report: its column, which way is good, what it is to the load.
type Known = (&'static str, Better, Role);

/// Says of the waits or lengths beside it that they grow with the duration.
const GROWS: &str = "grows";

/// Whether a column is a figure that grows with a queue: a time, and all of a deadline.
fn is_wait(place: &str, column: &str) -> bool {
    let waits = [
        "wakeup_ns_",
        "start_ns_",
        "preempt_ns_",
        "delay_ns_",
        "turnaround_ns_",
        "response_ns_",
        "length_ns_",
    ];
    let is_of_deadline = place.starts_with("deadline.");
    is_of_deadline || column == "wait_ns" || waits.iter().any(|it| column.starts_with(it))
}

use Better::{Higher, Lower, Neither};
use Role::{Goal, Other, Shown};

/// Of a task group, and of all tasks.
pub(super) const GROUP: &[Known] = &[
    ("wakeup_ns_mean", Lower, Other),
    ("wakeup_ns_p50", Lower, Other),
    ("wakeup_ns_p99", Lower, Shown),
    ("wakeup_ns_max", Lower, Other),
    ("start_ns_mean", Lower, Other),
    ("start_ns_p50", Lower, Other),
    ("start_ns_p99", Lower, Other),
    ("start_ns_max", Lower, Other),
    ("preempt_ns_mean", Lower, Other),
    ("preempt_ns_p50", Lower, Other),
    ("preempt_ns_p99", Lower, Other),
    ("preempt_ns_max", Lower, Other),
    ("delay_ns_mean", Lower, Shown),
    ("delay_ns_p50", Lower, Other),
    ("delay_ns_p99", Lower, Shown),
    ("delay_ns_max", Lower, Other),
    ("turnaround_ns_mean", Lower, Other),
    ("response_ns_mean", Lower, Other),
    ("runslice_ns_mean", Neither, Other),
    ("runslice_ns_p50", Neither, Other),
    ("runslice_ns_p99", Neither, Other),
    ("runslice_ns_max", Neither, Other),
    ("runs", Neither, Other),
    ("run_ns", Neither, Other),
    ("wait_ns", Lower, Other),
    ("share_ppm", Neither, Other),
    ("migrations", Lower, Other),
    ("met", Higher, Other),
    ("missed", Lower, Other),
    (GROWS, Neither, Other),
];

/// Of the machine.
pub(super) const MACHINE: &[Known] = &[
    ("elapsed_ns", Lower, Goal),
    ("switches", Lower, Other),
    ("wakeups", Neither, Other),
    ("migrations", Lower, Other),
    ("kicks", Neither, Other),
    ("run_ppm", Neither, Other),
    ("idle_ppm", Neither, Other),
    ("overhead_ppm", Lower, Other),
    ("queue_mean_milli", Lower, Other),
    ("waiting_mean_milli", Lower, Other),
    ("imbalance_mean_milli", Lower, Other),
    ("idle_while_waiting_ns", Lower, Other),
];

const DEADLINE: &[Known] = &[
    ("met", Higher, Other),
    ("missed", Lower, Goal),
    ("missed_ppm", Lower, Other),
    ("late_ns_mean", Lower, Other),
    ("late_ns_p99", Lower, Other),
    ("late_ns_max", Lower, Other),
    (GROWS, Neither, Other),
];

const SPAN: &[Known] = &[
    ("length_ns_mean", Lower, Goal),
    ("length_ns_min", Lower, Other),
    ("length_ns_p50", Lower, Other),
    ("length_ns_p95", Lower, Other),
    ("length_ns_p99", Lower, Goal),
    ("length_ns_max", Lower, Other),
    (GROWS, Neither, Other),
];

/// What a counter counts is the workload's secret, so neither way is good, and none is its goal.
const COUNTER: &[Known] = &[("total", Neither, Shown)];

/// Less energy is better only beside the work, so neither is the load's goal.
const HARDWARE: &[Known] = &[
    ("work_ns", Higher, Shown),
    ("executed_ns", Neither, Other),
    ("rate_milli", Higher, Other),
    ("energy_uj", Lower, Shown),
    ("work_per_mj_ns", Higher, Shown),
    ("sibling_ns", Lower, Other),
    ("shared_core_ns", Lower, Other),
    ("misfit_ns", Lower, Other),
    ("misplaced_ns", Lower, Other),
    ("remote_ns", Lower, Other),
    ("lost_capacity_ns", Lower, Other),
    ("lost_frequency_ns", Lower, Other),
    ("lost_threads_ns", Lower, Other),
    ("lost_memory_ns", Lower, Other),
];

const PHASE: &[Known] = &[("time_ns", Lower, Other), ("run_ns", Neither, Other)];

/// The metrics of one run's report. What has another form than a report counts as not measured.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reported {
    seed: Lenient<Seed>,
    machine: Lenient<ReportedRow<Machine>>,
    all: Lenient<ReportedRow<Group>>,
    deadlines: Rows<Deadline>,
    spans: Rows<Span>,
    counters: Rows<Counter>,
    phases: Rows<Phase>,
    groups: Rows<Group>,
    hardware: Rows<Hardware>,
}

/// One metric of a report.
#[derive(Clone, Copy, Debug)]
pub struct ReportedMetric<'a> {
    /// What stands before the column in the metric's name, in parts that dots join.
    place: &'a [&'a str],
    /// The column.
    pub column: &'static str,
    /// Which way is good.
    pub better: Better,
    /// What it is to the load.
    pub role: Role,
    /// The value, in the unit of the column's name.
    pub value: f64,
}

impl ReportedMetric<'_> {
    /// The metric's name.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = String::new();
        self.parts(|part| {
            name.push_str(part);
            true
        });
        name
    }

    /// Whether the metric is called `name`.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let mut rest = name;
        let is_prefix = self.parts(|part| match rest.strip_prefix(part) {
            Some(after) => {
                rest = after;
                true
            }
            None => false,
        });
        is_prefix && rest.is_empty()
    }

    /// Goes through the name's parts and dots as long as `take` says so; whether it always did.
    fn parts(&self, mut take: impl FnMut(&str) -> bool) -> bool {
        self.place.iter().all(|it| take(it) && take(".")) && take(self.column)
    }
}

impl Reported {
    /// The metrics of `report`.
    #[must_use]
    pub fn of(report: &serde_json::Value) -> Self {
        Self::deserialize(report).unwrap_or_default()
    }

    /// The seed that the run was made with.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.seed.0.0
    }

    /// What the load calls its deadlines, with both of their metrics.
    fn titles(&self) -> impl Iterator<Item = (String, String)> {
        let named = self.deadlines.0.iter().filter(|row| !row.word.is_empty());
        named.flat_map(|row| {
            ["missed", "missed_ppm"].map(|column| {
                let metric = format!("deadline.{}.{}.{column}", row.group, row.name);
                (metric, format!("{}: {}", row.group, plural(&row.word)))
            })
        })
    }

    /// Calls `take` for each metric that was measured: of the machine, of all tasks, of deadlines,
    /// spans, counters and phases, of each group, of the hardware.
    pub fn each(&self, mut take: impl FnMut(ReportedMetric<'_>)) {
        let take = &mut take;
        self.machine.0.each(&["machine"], None, take);
        self.all.0.each(&["all"], None, take);
        self.deadlines.each("deadline", take);
        self.spans.each("span", take);
        self.counters.each("counter", take);
        self.phases.each("phase", take);
        for row in &self.groups.0 {
            row.each(&[&row.group], Some(Other), take);
        }
        for row in &self.hardware.0 {
            let role = (row.group != "all").then_some(Other);
            row.each(&["hardware", &row.group], role, take);
        }
    }
}

impl From<&Report> for Reported {
    /// As [`Reported::of`] of the same report in a file.
    fn from(report: &Report) -> Self {
        Self {
            seed: Lenient(Seed(Some(report.seed))),
            machine: Lenient(ReportedRow::of(
                &report.machine,
                &keys::<Machine, _>(columns::machine_columns()),
            )),
            all: Lenient(ReportedRow::of(
                &report.all,
                &keys::<Group, _>(columns::columns()),
            )),
            deadlines: Rows::of(&report.deadlines, columns::deadline_columns()),
            spans: Rows::of(&report.spans, columns::span_columns()),
            counters: Rows::of(&report.counters, columns::counter_columns()),
            phases: Rows::of(&report.phases, columns::phase_columns()),
            groups: Rows::of(&report.groups, columns::columns()),
            hardware: Rows::of(&report.hardware, columns::hardware_columns()),
        }
    }
}

/// What the values of some columns stand for.
type Keys<R> = Vec<(Key, fn(&R) -> ColumnValue)>;

/// The columns that rows of this kind read.
fn keys<C: Columns, R>(columns: &[Column<R>]) -> Keys<R> {
    let mut next = 0;
    let known = columns.iter().filter_map(|column| {
        let key = ReportedRow::<C>::key(column.name, next);
        if let Key::Column(at) = key {
            next = at + 1;
        }
        (!matches!(key, Key::Other)).then_some((key, column.value))
    });
    known.collect()
}

impl Set {
    /// In how many runs the queue still grew whose waits `metric` tells of.
    #[must_use]
    pub fn grown(&self, metric: &str) -> usize {
        let (place, column) = metric.rsplit_once('.').unwrap_or(("", metric));
        let of_all = || self.find(&format!("{place}.{GROWS}"));
        let grows = self
            .find(&format!("{metric}.{GROWS}"))
            .or_else(|| of_all().filter(|_| is_wait(place, column)));
        let values = grows.map_or(&[][..], |it| &it.values);
        values.iter().filter(|it| **it > 0.0).count()
    }

    /// Whether `metric` tells no more than how long the runs were, because a queue still grew in
    /// more than one of ten. Of runs whose load only nearly fills the machine a few look so.
    #[must_use]
    pub fn grows(&self, metric: &str) -> bool {
        self.grown(metric) * 10 > self.runs
    }

    /// Adds a run's report, without a copy of the name of every metric.
    pub fn add_report(&mut self, report: &Reported, seed: Option<u64>) {
        self.runs += 1;
        for (metric, title) in report.titles() {
            self.titles.entry(metric).or_insert(title);
        }
        let mut places = Places::default();
        report.each(|it| {
            self.put(
                &mut places,
                (it.value, seed),
                |name| it.is_called(name),
                || Series {
                    name: it.name(),
                    measure: measure(it.column),
                    better: it.better,
                    role: it.role,
                    values: Vec::new(),
                    seeds: Vec::new(),
                },
            );
        });
    }
}

/// A kind of row: what its own name is called, and the columns that are metrics.
trait Columns {
    const NAME: &'static str;
    const KNOWN: &'static [Known];
}

macro_rules! columns {
    ($($kind:ident, $name:literal, $known:ident;)*) => {$(
        #[derive(Debug, Default)]
        struct $kind;

        impl Columns for $kind {
            const NAME: &'static str = $name;
            const KNOWN: &'static [Known] = $known;
        }
    )*};
}

columns! {
    Machine, "machine", MACHINE;
    Group, "name", GROUP;
    Deadline, "deadline", DEADLINE;
    Span, "span", SPAN;
    Counter, "counter", COUNTER;
    Phase, "phase", PHASE;
    Hardware, "", HARDWARE;
}

/// The values of a row in the order of its kind's columns.
#[derive(Debug)]
struct ReportedRow<C> {
    group: String,
    name: String,
    /// What a miss is called, of deadlines.
    word: String,
    values: Vec<Option<f64>>,
    kind: PhantomData<C>,
}

impl<C: Columns> ReportedRow<C> {
    fn of<R>(row: &R, keys: &Keys<R>) -> Self {
        let mut read = Self::empty();
        for (key, value) in keys {
            match (key, value(row)) {
                (Key::Group, ColumnValue::Text(text)) => read.group = text,
                (Key::Name, ColumnValue::Text(text)) => read.name = text,
                (Key::Word, ColumnValue::Text(text)) => read.word = text,
                (Key::Column(at), value) => read.values[*at] = value.number(),
                _ => {}
            }
        }
        read.add_share();
        read
    }

    /// Nothing was measured.
    fn empty() -> Self {
        Self {
            values: vec![None; C::KNOWN.len()],
            ..Self::default()
        }
    }

    fn each(&self, place: &[&str], role: Option<Role>, take: &mut impl FnMut(ReportedMetric<'_>)) {
        for (&(column, better, of_column), value) in C::KNOWN.iter().zip(&self.values) {
            if let Some(value) = *value {
                take(ReportedMetric {
                    place,
                    column,
                    better,
                    role: role.unwrap_or(of_column),
                    value,
                });
            }
        }
    }

    fn place_of(column: &str) -> Option<usize> {
        C::KNOWN.iter().position(|known| known.0 == column)
    }

    /// Adds the share of the deadlines that were missed, in millionths, where there were some.
    fn add_share(&mut self) {
        let of = |column| {
            Some((
                Self::place_of(column)?,
                self.values[Self::place_of(column)?]?,
            ))
        };
        if let (Some((_, met)), Some((_, missed)), Some(share)) =
            (of("met"), of("missed"), Self::place_of("missed_ppm"))
            && met + missed > 0.0
        {
            self.values[share] = Some((missed * 1e6 / (met + missed)).floor());
        }
    }
}

impl<C> Default for ReportedRow<C> {
    fn default() -> Self {
        Self {
            group: String::new(),
            name: String::new(),
            word: String::new(),
            values: Vec::new(),
            kind: PhantomData,
        }
    }
}

/// Rows of one kind.
#[derive(Debug)]
struct Rows<C>(Vec<ReportedRow<C>>);

impl<C> Default for Rows<C> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<C: Columns> Rows<C> {
    fn of<R>(rows: &[R], columns: &[Column<R>]) -> Self {
        let keys = keys::<C, R>(columns);
        Self(rows.iter().map(|row| ReportedRow::of(row, &keys)).collect())
    }

    fn each(&self, kind: &str, take: &mut impl FnMut(ReportedMetric<'_>)) {
        for row in &self.0 {
            row.each(&[kind, &row.group, &row.name], None, take);
        }
    }
}

/// What is read of a value if the value has the form for it; its default otherwise.
#[derive(Debug, Default)]
struct Lenient<T>(T);

/// What can be read of JSON's kinds of values. Each is its default unless it says otherwise.
trait Read: Default {
    fn number(_: f64) -> Self {
        Self::default()
    }

    fn whole(it: u64) -> Self {
        Self::number(it as f64)
    }

    fn text(_: &str) -> Self {
        Self::default()
    }

    fn map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

impl<'de, T: Read> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RowReader(PhantomData)).map(Self)
    }
}

impl<'de, C: Columns> Deserialize<'de> for Rows<C> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RowReader(PhantomData))
    }
}

struct RowReader<T>(PhantomData<T>);

impl<'de, T: Read> Visitor<'de> for RowReader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_i64<E>(self, it: i64) -> Result<T, E> {
        Ok(T::number(it as f64))
    }

    fn visit_u64<E>(self, it: u64) -> Result<T, E> {
        Ok(T::whole(it))
    }

    fn visit_f64<E>(self, it: f64) -> Result<T, E> {
        Ok(T::number(it))
    }

    fn visit_str<E>(self, it: &str) -> Result<T, E> {
        Ok(T::text(it))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }
}

/// A value of a column.
#[derive(Default)]
struct Number(Option<f64>);

impl Read for Number {
    fn number(it: f64) -> Self {
        Self(Some(it))
    }
}

/// A seed: a number that is not rounded.
#[derive(Debug, Default)]
struct Seed(Option<u64>);

impl Read for Seed {
    fn whole(it: u64) -> Self {
        Self(Some(it))
    }
}

/// A text.
#[derive(Default)]
struct Text(String);

impl Read for Text {
    fn text(it: &str) -> Self {
        Self(it.to_owned())
    }
}

/// What a key of a row stands for.
enum Key {
    Group,
    Name,
    Word,
    Column(usize),
    Other,
}

impl<C: Columns> ReportedRow<C> {
    /// Columns come in their order most often, so the one after the last is looked at first.
    fn key(name: &str, next: usize) -> Key {
        let known = C::KNOWN;
        match name {
            _ if known.get(next).is_some_and(|it| it.0 == name) => Key::Column(next),
            "group" => Key::Group,
            "word" => Key::Word,
            name if name == C::NAME => Key::Name,
            name => Self::place_of(name).map_or(Key::Other, Key::Column),
        }
    }
}

/// Reads a key of a row without keeping its text.
struct KeyOf<C>(usize, PhantomData<C>);

impl<'de, C: Columns> serde::de::DeserializeSeed<'de> for KeyOf<C> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Key, D::Error> {
        from.deserialize_str(self)
    }
}

impl<C: Columns> Visitor<'_> for KeyOf<C> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a column's name")
    }

    fn visit_str<E>(self, it: &str) -> Result<Key, E> {
        Ok(ReportedRow::<C>::key(it, self.0))
    }
}

impl<C: Columns> Read for ReportedRow<C> {
    fn map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut row = Self::empty();
        let mut next = 0;
        while let Some(key) = map.next_key_seed(KeyOf::<C>(next, PhantomData))? {
            match key {
                Key::Group => row.group = map.next_value::<Lenient<Text>>()?.0.0,
                Key::Name => row.name = map.next_value::<Lenient<Text>>()?.0.0,
                Key::Word => row.word = map.next_value::<Lenient<Text>>()?.0.0,
                Key::Column(at) => {
                    row.values[at] = map.next_value::<Lenient<Number>>()?.0.0;
                    next = at + 1;
                }
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        row.add_share();
        Ok(row)
    }
}

impl<C: Columns> Read for Rows<C> {
    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut rows = Vec::new();
        while let Some(Lenient(row)) = list.next_element()? {
            rows.push(row);
        }
        Ok(Self(rows))
    }
}

/// What the unit in a column's name says.
pub(super) fn measure(column: &str) -> Measure {
    let unit = |word: &str| match word {
        "ns" => Some(Measure::Nanos),
        "ppm" => Some(Measure::Millionths),
        "milli" => Some(Measure::Thousandths),
        "uj" => Some(Measure::Microjoules),
        _ => None,
    };
    column.split('_').find_map(unit).unwrap_or(Measure::Count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_one_name_and_no_part_of_it_is_another() {
        let found = ReportedMetric {
            place: &["span", "ab", "request"],
            column: "length_ns_mean",
            better: Lower,
            role: Goal,
            value: 1.0,
        };
        let name = found.name();
        assert_eq!(name, "span.ab.request.length_ns_mean");
        assert!(found.is_called(&name));
        let longer = format!("{name}s");
        for other in ["", "span.ab", "span.ab.request.", &name[1..], &longer] {
            assert!(!found.is_called(other), "{other}");
        }
    }
}
