//! Sets of runs, and what is measured in each.

use serde::Serialize;

/// What a metric's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

/// One number of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The metric: its path in the run's results, such as `all.wakeup.p99_ns`.
    pub name: String,
    /// What the value is.
    pub measure: Measure,
    /// Which way is good.
    pub better: Better,
    /// Whether it is compared without being asked for.
    pub main: bool,
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
    /// Whether it is compared without being asked for.
    pub main: bool,
    /// One value a run that has any, in the order of the runs.
    pub values: Vec<f64>,
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
    /// The metrics, in the order in which they first came.
    pub series: Vec<Series>,
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

    /// Adds a run that counts.
    pub fn add(&mut self, run: Vec<Measured>) {
        self.runs += 1;
        for measured in run {
            let known = self.series.iter().position(|it| it.name == measured.name);
            let at = known.unwrap_or(self.series.len());
            if known.is_none() {
                self.series.push(Series {
                    name: measured.name,
                    measure: measured.measure,
                    better: measured.better,
                    main: measured.main,
                    values: Vec::new(),
                });
            }
            self.series[at].values.push(measured.value);
        }
    }

    /// The metric `name`, if any run has it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
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
        let measured = |name: &str, value| Measured {
            name: name.to_owned(),
            measure: Measure::Nanos,
            better: Better::Lower,
            main: true,
            value,
        };
        let mut set = Set::new("fifo", "desk", "simulated");
        set.add(vec![measured("a", 1.0), measured("b", 2.0)]);
        set.add(vec![measured("b", 3.0)]);
        assert_eq!(set.runs, 2);
        assert_eq!(set.find("a").unwrap().values, [1.0]);
        assert_eq!(set.find("b").unwrap().values, [2.0, 3.0]);
        assert_eq!(set.find("c"), None);
    }

    #[test]
    fn the_median_is_one_of_the_values() {
        let extent = Extent::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((extent.min, extent.median, extent.max), (1.0, 2.0, 4.0));
        assert_eq!(Extent::of(&[]), None);
    }
}
