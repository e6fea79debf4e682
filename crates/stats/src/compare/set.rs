//! Sets of runs, and what is measured in each.

use std::collections::BTreeMap;

use model::Fnv1a;
use serde::{Deserialize, Serialize};

use super::Values;

/// Unit of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// A span of time, in nanoseconds.
    Nanos,
    /// A number of things.
    Count,
    /// Things a second.
    Rate,
    /// A share of a whole, in millionths.
    Millionths,
    /// An average, in thousandths.
    Thousandths,
    /// Memory, in bytes.
    Bytes,
    /// Energy, in microjoules.
    Microjoules,
}

/// Which way a metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better: time, misses, work that serves nobody.
    Lower,
    /// More is better: work done a second.
    Higher,
    /// Neither is good in itself.
    Neither,
}

/// What a metric is to the load it was measured under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What the load is for: its deadlines, its spans, the time in which its work is done. It gets
    /// a verdict.
    Goal,
    /// Describes how that came about. It is shown, without a verdict.
    Shown,
    /// Compared only when it is asked for by name.
    Other,
}

/// One number of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredNumber {
    /// The metric: its path in the run's results, such as `all.wakeup_ns_p99`.
    pub name: String,
    /// What the value is.
    pub measure: Measure,
    /// Which way is good.
    pub better: Better,
    /// What it is to the load.
    pub role: Role,
    /// The value, in the unit of `measure`.
    pub value: f64,
}

/// One metric over the runs of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The metric.
    pub name: String,
    /// What its values are.
    pub measure: Measure,
    /// Which way is good.
    pub better: Better,
    /// What it is to the load.
    pub role: Role,
    /// One value a run that has any, in the order of the runs.
    pub values: Vec<f64>,
    /// The seed of each of these runs, where it alone makes them differ.
    pub seeds: Vec<Option<u64>>,
}

/// Runs of one scheduler under one load on one machine, which differ by chance only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Set {
    /// The scheduler, or whatever else is compared.
    pub arm: String,
    /// All that is the same on both sides of a comparison: load, machine.
    pub place: String,
    /// Where the runs were made; runs of two worlds are never compared.
    pub world: String,
    /// Number of runs that count.
    pub runs: usize,
    /// Runs that do not count, because the scheduler was ejected or the load failed.
    pub void: usize,
    /// Runs that count although a task starved to their end: its wait is longer than any figure
    /// says.
    pub starved: usize,
    /// The runs differ in something that is none of the metrics.
    pub differs: bool,
    /// The metrics, in the order in which they first came.
    pub series: Vec<Series>,
    /// What the load calls metrics, where it says so.
    pub titles: BTreeMap<String, String>,
}

/// Where the metrics of one run stand in its set.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Most often the metric that comes next stands here.
    next: usize,
    /// The first series of each hash of a name, from the first metric on that stands elsewhere: a
    /// run of a recording has a hundred thousand metrics, and a search for each would take its
    /// square of time.
    known: Option<BTreeMap<u64, usize>>,
}

/// The spread of one metric over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Extent {
    /// Number of values.
    pub runs: usize,
    /// The smallest.
    pub min: f64,
    /// The median by nearest rank: one of the values.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Set {
    /// A set without runs.
    #[must_use]
    pub fn new(arm: &str, place: &str, world: &str) -> Self {
        Self {
            arm: arm.to_owned(),
            place: place.to_owned(),
            world: world.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a run that counts. `seed` is what alone makes it differ from others, as in simulation;
    /// runs of two sets with the same one are compared as a pair.
    pub fn add(&mut self, run: Vec<MeasuredNumber>, seed: Option<u64>) {
        self.runs += 1;
        let mut places = Places::default();
        for it in run {
            let MeasuredNumber {
                measure,
                better,
                role,
                ..
            } = it;
            self.put(
                &mut places,
                (it.value, seed),
                |name| name == it.name,
                || Series {
                    name: it.name.clone(),
                    measure,
                    better,
                    role,
                    values: Vec::new(),
                    seeds: Vec::new(),
                },
            );
        }
    }

    /// Adds a value to the series that `is_its`, or else to the new one that `make` makes.
    pub(super) fn put(
        &mut self,
        places: &mut Places,
        (value, seed): (f64, Option<u64>),
        is_its: impl Fn(&str) -> bool,
        make: impl FnOnce() -> Series,
    ) {
        let is_next = self.series.get(places.next);
        let at = if is_next.is_some_and(|it| is_its(&it.name)) {
            places.next
        } else {
            self.place(places, is_its, make())
        };
        self.series[at].values.push(value);
        self.series[at].seeds.push(seed);
        places.next = at + 1;
    }

    /// The place of the series that is called like `made`, which is added if there is none.
    fn place(&mut self, places: &mut Places, is_its: impl Fn(&str) -> bool, made: Series) -> usize {
        let hash = |name: &str| Fnv1a::of(name.bytes());
        let known = places.known.get_or_insert_with(|| {
            let all = self.series.iter().enumerate().rev();
            all.map(|(at, it)| (hash(&it.name), at)).collect()
        });
        let is_new = self.series.len();
        let at = *known.entry(hash(&made.name)).or_insert(is_new);
        let found = self.series.get(at).map(|it| is_its(&it.name));
        let at = match found {
            None | Some(true) => at,
            // Two names have one hash.
            Some(false) => {
                let other = self.series.iter().position(|it| is_its(&it.name));
                other.unwrap_or(is_new)
            }
        };
        if at == is_new {
            self.series.push(made);
        }
        at
    }

    /// In how many runs a task starved, as a sentence; nothing if it never happened.
    #[must_use]
    pub fn starvation(&self) -> Option<String> {
        let Self {
            arm, starved, runs, ..
        } = self;
        (*starved > 0).then(|| {
            format!("{arm}: in {starved} of {runs} runs that count a task starved to the end")
        })
    }

    /// Whether the runs differ in anything. Those of a set that does not are one run, repeated.
    #[must_use]
    pub fn varies(&self) -> bool {
        self.differs || self.series.iter().any(|it| !it.is_constant())
    }

    /// The metric `name`, if any run has it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }
}

impl Series {
    /// Whether all values are the same.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.values.iter().all(|value| *value == self.values[0])
    }

    /// The values of this set and of another as they are held against each other: as pairs if at
    /// least half of the runs of either have one of the same seed in the other.
    #[must_use]
    pub fn against(&self, other: &Self) -> Values {
        let by_seed = |series: &Self| {
            let seeds = series.seeds.iter().zip(&series.values);
            let known = seeds.filter_map(|(seed, value)| Some((seed.as_ref().copied()?, *value)));
            known.collect::<BTreeMap<u64, f64>>()
        };
        let (ours, theirs) = (by_seed(self), by_seed(other));
        let pair = |(seed, value): (&u64, &f64)| Some((*value, *theirs.get(seed)?));
        let pairs: Vec<(f64, f64)> = ours.iter().filter_map(pair).collect();
        let is_most = |series: &Self| 2 * pairs.len() >= series.values.len();
        if !pairs.is_empty() && is_most(self) && is_most(other) {
            return Values::Pairs(pairs);
        }
        Values::Apart(self.values.clone(), other.values.clone())
    }
}

impl Measure {
    /// The smallest difference of interest where no ratio can be made, because there are zeros: a
    /// few switches of a CPU, one thing, a thousandth of a whole, a millijoule.
    #[must_use]
    pub const fn margin(self) -> f64 {
        match self {
            Self::Nanos => 10_000.0,
            Self::Count | Self::Rate => 1.0,
            Self::Millionths => 1_000.0,
            Self::Thousandths => 10.0,
            Self::Bytes => 1_048_576.0,
            Self::Microjoules => 1_000.0,
        }
    }
}

impl Extent {
    /// The spread of `values`; `None` of none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            runs: sorted.len(),
            min: *sorted.first()?,
            median: sorted[sorted.len().div_ceil(2) - 1],
            max: *sorted.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_metric_adds_no_value_to_it() {
        let measured = |name: &str, value| MeasuredNumber {
            name: name.to_owned(),
            measure: Measure::Nanos,
            better: Better::Lower,
            role: Role::Goal,
            value,
        };
        let mut set = Set::new("fifo", "desk", "simulated");
        set.add(vec![measured("a", 1.0), measured("b", 2.0)], None);
        set.add(vec![measured("b", 3.0)], Some(4));
        assert_eq!(set.runs, 2);
        assert_eq!(set.find("a").unwrap().values, [1.0]);
        assert_eq!(set.find("b").unwrap().values, [2.0, 3.0]);
        assert_eq!(set.find("b").unwrap().seeds, [None, Some(4)]);
        assert_eq!(set.find("c"), None);
    }

    fn series(runs: &[(Option<u64>, f64)]) -> Series {
        let mut set = Set::new("", "", "");
        for (seed, value) in runs {
            let measured = MeasuredNumber {
                name: "a".to_owned(),
                measure: Measure::Count,
                better: Better::Lower,
                role: Role::Goal,
                value: *value,
            };
            set.add(vec![measured], *seed);
        }
        set.series.remove(0)
    }

    #[test]
    fn runs_of_the_same_seed_are_pairs_if_most_have_one() {
        let base = series(&[(Some(1), 10.0), (Some(2), 20.0), (Some(3), 30.0)]);
        let other = series(&[(Some(3), 3.0), (Some(1), 1.0), (Some(4), 4.0)]);
        let pairs = Values::Pairs(vec![(10.0, 1.0), (30.0, 3.0)]);
        assert_eq!(base.against(&other), pairs, "of each seed that both have");
        let few = series(&[(Some(3), 3.0), (Some(5), 1.0), (Some(4), 4.0)]);
        let apart = Values::Apart(base.values.clone(), few.values.clone());
        assert_eq!(base.against(&few), apart);
        let unseeded = series(&[(None, 3.0), (None, 1.0), (None, 4.0)]);
        let apart = Values::Apart(unseeded.values.clone(), unseeded.values.clone());
        assert_eq!(unseeded.against(&unseeded), apart);
    }

    #[test]
    fn the_median_is_one_of_the_values() {
        let extent = Extent::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((extent.min, extent.median, extent.max), (1.0, 2.0, 4.0));
        assert_eq!(Extent::of(&[]), None);
    }
}
