//! Metrics of a scheduler's own program as `OpenMetrics` 1.0.0, each value with its simulated time
//! in seconds. `promtool tsdb create-blocks-from openmetrics` reads them into Prometheus.

use std::collections::BTreeMap;
use std::io::{self, Write};

use model::SimTime;
use serde_json::Value;

/// How all names begin.
const FRONT: &str = "runslice_scheduler";
/// Bytes of memory that a value takes besides its text.
const VALUE_BYTES: usize = 48;

/// Values of one metric with these labels, in the order of time.
type Series = Vec<(SimTime, String)>;

/// All values of a run: the format has those of one metric together.
#[derive(Debug, Default)]
pub struct Samples {
    metrics: BTreeMap<String, BTreeMap<String, Series>>,
    bytes: usize,
}

impl Samples {
    /// Adds all numbers that the program told at `now`, and gives the memory that all take.
    ///
    /// Names are the keys on the way to a number. Where all values of an object are objects, or in
    /// a list, the key or the place is a label: layers and CPUs are many of one kind.
    pub fn add(&mut self, now: SimTime, stats: &Value) -> u64 {
        self.add_below(now, (FRONT, &[]), stats);
        self.bytes as u64
    }

    fn add_below(
        &mut self,
        now: SimTime,
        (name, labels): (&str, &[(String, String)]),
        value: &Value,
    ) {
        let with_label = |key: &str| {
            let last = name.strip_prefix(FRONT).unwrap_or(name);
            let last = last.trim_start_matches('_');
            // A label begins with a letter.
            let is_word = last.starts_with(|it: char| it.is_ascii_alphabetic());
            let mut label = if is_word {
                last.to_owned()
            } else {
                format!("of{last}")
            };
            while labels.iter().any(|(known, _)| *known == label) {
                label.push('_');
            }
            let own = (label, key.to_owned());
            [labels, &[own]].concat()
        };
        match value {
            Value::Number(number) => self.push(now, (name, labels), number.to_string()),
            Value::Bool(is) => self.push(now, (name, labels), u8::from(*is).to_string()),
            Value::Array(all) => {
                for (at, one) in all.iter().enumerate() {
                    self.add_below(now, (name, &with_label(&at.to_string())), one);
                }
            }
            Value::Object(all) if !all.is_empty() && all.values().all(Value::is_object) => {
                for (key, one) in all {
                    self.add_below(now, (name, &with_label(key)), one);
                }
            }
            Value::Object(all) => {
                for (key, one) in all {
                    self.add_below(now, (&format!("{name}_{}", word(key)), labels), one);
                }
            }
            Value::Null | Value::String(_) => {}
        }
    }

    fn push(&mut self, now: SimTime, (name, labels): (&str, &[(String, String)]), value: String) {
        let labels = labels.iter().map(|(name, it)| {
            let it = it.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{name}=\"{}\"", it.replace('\n', "\\n"))
        });
        let labels = labels.collect::<Vec<_>>().join(",");
        let metric = self.metrics.entry(name.to_owned()).or_default();
        let series = metric.entry(labels).or_default();
        // Of two keys that become one name the first counts.
        if series.last().is_none_or(|(last, _)| *last < now) {
            self.bytes += value.len() + VALUE_BYTES;
            series.push((now, value));
        }
    }

    /// Writes all of them.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        for (name, metric) in &self.metrics {
            // Programs tell sums and what has come since the last question, and not which is which.
            writeln!(to, "# TYPE {name} unknown")?;
            for (labels, series) in metric {
                for (now, value) in series {
                    let braced = if labels.is_empty() {
                        String::new()
                    } else {
                        format!("{{{labels}}}")
                    };
                    writeln!(to, "{name}{braced} {value} {now}")?;
                }
            }
        }
        writeln!(to, "# EOF")
    }
}

/// What of a key can stand in a name.
fn word(key: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '_'
        }
    };
    key.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use model::Nanos;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_one_metric_stand_together_with_their_times() {
        let mut all = Samples::default();
        let told = |busy: f64, runs: u64| {
            json!({
                "busy": busy, "nr-cpus": u64::MAX, "nr_cpus": 1, "is_on": true, "name": "x",
                "gone": null, "slices": [3, 4], "1m": [5],
                "layers": { "batch": { "runs": runs, "cpus": { "0": { "util": 7 } } },
                            "a\"\\\nb": { "runs": 0 } },
            })
        };
        let at = |ms: u64| SimTime::ZERO + Nanos::from_millis(ms);
        let first = all.add(at(1_000), &told(0.25, 5));
        assert!(all.add(at(2_500), &told(1e-9, 6)) > first);
        let mut text = Vec::new();
        all.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let want = "# TYPE runslice_scheduler_1m unknown\n\
            runslice_scheduler_1m{of1m=\"0\"} 5 1.000000000\n\
            runslice_scheduler_1m{of1m=\"0\"} 5 2.500000000\n\
            # TYPE runslice_scheduler_busy unknown\n\
            runslice_scheduler_busy 0.25 1.000000000\n\
            runslice_scheduler_busy 1e-9 2.500000000\n\
            # TYPE runslice_scheduler_is_on unknown\n\
            runslice_scheduler_is_on 1 1.000000000\n\
            runslice_scheduler_is_on 1 2.500000000\n\
            # TYPE runslice_scheduler_layers_cpus_util unknown\n\
            runslice_scheduler_layers_cpus_util{layers=\"batch\",layers_cpus=\"0\"} 7 1.000000000\n\
            runslice_scheduler_layers_cpus_util{layers=\"batch\",layers_cpus=\"0\"} 7 2.500000000\n\
            # TYPE runslice_scheduler_layers_runs unknown\n\
            runslice_scheduler_layers_runs{layers=\"a\\\"\\\\\\nb\"} 0 1.000000000\n\
            runslice_scheduler_layers_runs{layers=\"a\\\"\\\\\\nb\"} 0 2.500000000\n\
            runslice_scheduler_layers_runs{layers=\"batch\"} 5 1.000000000\n\
            runslice_scheduler_layers_runs{layers=\"batch\"} 6 2.500000000\n\
            # TYPE runslice_scheduler_nr_cpus unknown\n\
            runslice_scheduler_nr_cpus 18446744073709551615 1.000000000\n\
            runslice_scheduler_nr_cpus 18446744073709551615 2.500000000\n\
            # TYPE runslice_scheduler_slices unknown\n\
            runslice_scheduler_slices{slices=\"0\"} 3 1.000000000\n\
            runslice_scheduler_slices{slices=\"0\"} 3 2.500000000\n\
            runslice_scheduler_slices{slices=\"1\"} 4 1.000000000\n\
            runslice_scheduler_slices{slices=\"1\"} 4 2.500000000\n\
            # EOF\n";
        assert_eq!(text, want);
    }

    #[test]
    fn a_run_that_told_nothing_has_an_end() {
        let mut text = Vec::new();
        Samples::default().write(&mut text).unwrap();
        assert_eq!(text, b"# EOF\n");
    }
}
