//! Metrics for programs that scrape them: in Prometheus's text format 0.0.4, and as `OpenMetrics`
//! 1.0.0.

use std::fmt::{self, Write as _};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Whether a number only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It does. The name of its family ends in `_total`.
    Counter,
    /// It does not.
    Gauge,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number of things.
    Whole(u64),
    /// A time in nanoseconds, shown in seconds.
    Nanos(u64),
    /// A time in microseconds, shown in seconds.
    Micros(u64),
    /// A number with so many digits behind the point.
    Number(f64, usize),
}

impl Value {
    /// In the unit that is shown.
    fn number(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Nanos(ns) => ns as f64 / 1e9,
            Self::Micros(us) => us as f64 / 1e6,
            Self::Number(value, _) => value,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Whole(value) => write!(to, "{value}"),
            Self::Nanos(ns) => write!(to, "{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000),
            Self::Micros(us) => write!(to, "{}.{:06}", us / 1_000_000, us % 1_000_000),
            Self::Number(value, digits) => write!(to, "{value:.digits$}"),
        }
    }
}

/// Labels of a value.
type Labels = Vec<(&'static str, String)>;

/// What is told of one thing.
#[derive(Clone, Debug)]
struct Family {
    name: String,
    kind: Kind,
    help: String,
    samples: Vec<(Labels, Value)>,
}

/// All metrics of one answer.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    families: Vec<Family>,
}

impl Exposition {
    /// Begins a family; values follow. Each is begun once.
    pub fn family(&mut self, name: impl Into<String>, kind: Kind, help: impl Into<String>) {
        self.families.push(Family {
            name: name.into(),
            kind,
            help: help.into(),
            samples: Vec::new(),
        });
    }

    /// A value of the family that was begun last.
    ///
    /// # Panics
    /// If none was begun.
    pub fn value(&mut self, labels: &[(&'static str, &str)], value: Value) {
        let labels = labels.iter().map(|(name, it)| (*name, (*it).to_owned()));
        let family = self.families.last_mut().expect("a family was begun");
        family.samples.push((labels.collect(), value));
    }

    /// As Prometheus's own text.
    #[must_use]
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        for family in &self.families {
            let (name, help) = (&family.name, &family.help);
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
            for (labels, value) in &family.samples {
                let labels = labels
                    .iter()
                    .map(|(name, it)| format!("{name}=\"{}\"", escaped(it)));
                let labels = labels.collect::<Vec<_>>().join(",");
                let braced = match labels.as_str() {
                    "" => String::new(),
                    labels => format!("{{{labels}}}"),
                };
                let _ = writeln!(out, "{name}{braced} {value}");
            }
        }
        out
    }

    /// As `OpenMetrics`, to its `# EOF`.
    ///
    /// # Panics
    /// Never: text is written into memory.
    #[must_use]
    pub fn openmetrics(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Collected(self.clone())));
        let mut out = String::new();
        text::encode(&mut out, &registry).expect("memory takes text");
        out
    }
}

/// A label's value, in which quotes, backslashes and ends of lines are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// What the library asks for values.
#[derive(Debug)]
struct Collected(Exposition);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0.families {
            // The library adds the ending to each value of a counter.
            let name = family.name.strip_suffix("_total").unwrap_or(&family.name);
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            let mut metric = encoder.encode_descriptor(name, &family.help, None, kind)?;
            for (labels, value) in &family.samples {
                let of = metric.encode_family(labels)?;
                match (family.kind, *value) {
                    (Kind::Counter, Value::Whole(value)) => ConstCounter::new(value).encode(of)?,
                    (Kind::Counter, value) => ConstCounter::new(value.number()).encode(of)?,
                    (Kind::Gauge, value) => ConstGauge::new(value.number()).encode(of)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Exposition {
        let mut all = Exposition::default();
        all.family("x_seconds_total", Kind::Counter, "Time.");
        all.value(&[("cpu", "0")], Value::Nanos(1_500_000_000));
        all.value(&[("cpu", "1"), ("name", "a\"\\\nb")], Value::Nanos(7));
        all.family("x_things_total", Kind::Counter, "Things.");
        all.value(&[], Value::Whole(u64::MAX));
        all.family("x_load", Kind::Gauge, "Load.");
        all.value(&[], Value::Number(0.25, 2));
        all
    }

    #[test]
    fn prometheus_gets_its_own_text() {
        let want = "# HELP x_seconds_total Time.\n# TYPE x_seconds_total counter\n\
            x_seconds_total{cpu=\"0\"} 1.500000000\n\
            x_seconds_total{cpu=\"1\",name=\"a\\\"\\\\\\nb\"} 0.000000007\n\
            # HELP x_things_total Things.\n# TYPE x_things_total counter\n\
            x_things_total 18446744073709551615\n\
            # HELP x_load Load.\n# TYPE x_load gauge\nx_load 0.25\n";
        assert_eq!(example().prometheus(), want);
    }

    #[test]
    fn openmetrics_names_a_counter_without_its_ending_and_has_an_end() {
        let want = "# HELP x_seconds Time.\n# TYPE x_seconds counter\n\
            x_seconds_total{cpu=\"0\"} 1.5\n\
            x_seconds_total{cpu=\"1\",name=\"a\\\"\\\\\\nb\"} 7e-9\n\
            # HELP x_things Things.\n# TYPE x_things counter\n\
            x_things_total 18446744073709551615\n\
            # HELP x_load Load.\n# TYPE x_load gauge\nx_load 0.25\n# EOF\n";
        assert_eq!(example().openmetrics(), want);
        assert_eq!(Exposition::default().openmetrics(), "# EOF\n");
    }
}
