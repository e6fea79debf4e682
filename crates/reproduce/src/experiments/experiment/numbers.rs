//! What is looked for in runs, and the numbers that are made of them.

use crate::experiments::probe::{ProbeForm, Steps, WantedProbe};
use model::Nanos;
use toml::Spanned;

use super::{ExperimentReader, Made, Metric, RunSet, Take, ordered};
use crate::experiments::claim::Formula;
use crate::experiments::draft;
use crate::experiments::error::{Result, wrong};

impl ExperimentReader<'_> {
    pub(super) fn probe(
        &self,
        name: &Spanned<String>,
        probe: &draft::DraftProbe,
    ) -> Result<WantedProbe> {
        let named = (&probe.spans, &probe.deadlines);
        let form = match (&probe.waits, &probe.levels, named, &probe.every) {
            (Some(classes), None, (None, None), None) => ProbeForm::Waits {
                longer: match &probe.longer {
                    Some(text) => self.span(text)?,
                    None => Nanos::MAX,
                },
                classes: classes.clone().into_iter().collect(),
                least: match &probe.least {
                    Some(text) => self.span(text)?,
                    None => Nanos::from_micros(20),
                },
            },
            (None, Some(levels), (None, None), None) => ProbeForm::Levels {
                priority: probe.priority,
                flags: probe.flags,
                steps: self.steps(levels, probe.unit.as_ref())?,
            },
            (None, None, (Some(span), None), None) => ProbeForm::Spans {
                span: span.get_ref().clone(),
            },
            (None, None, (None, Some(deadline)), None) => ProbeForm::Deadlines {
                deadline: deadline.get_ref().clone(),
            },
            (None, None, (None, None), Some(every)) => self.rate(every, probe)?,
            _ => {
                let what = "a probe has one of `waits`, `levels`, `spans`, `deadlines` and \
                            `every`";
                return Err(wrong(&self.source, name, what));
            }
        };
        let who = match (&probe.who, &probe.counters) {
            (Some(who), None) => who.get_ref().clone(),
            (None, Some(_)) if probe.every.is_some() => String::new(),
            _ => {
                let what = "a probe has `who`, or `every` with the policy's `counters`";
                return Err(wrong(&self.source, name, what));
            }
        };
        Ok(WantedProbe {
            name: name.get_ref().clone(),
            who,
            after: match &probe.after {
                Some(text) => self.span(text)?,
                None => Nanos::ZERO,
            },
            form,
        })
    }

    fn rate(&self, every: &Spanned<String>, probe: &draft::DraftProbe) -> Result<ProbeForm> {
        let length = self.span(every)?;
        // A run has at least as many events as spans, and keeps each of its spans.
        if length < Nanos::from_millis(1) {
            return Err(wrong(&self.source, every, "a span of 1ms or more"));
        }
        let counters = probe.counters.iter().flatten();
        Ok(ProbeForm::Rate {
            counters: counters.map(|it| it.get_ref().clone()).collect(),
            every: length,
        })
    }

    fn steps(&self, levels: &Spanned<String>, unit: Option<&Spanned<String>>) -> Result<Steps> {
        let length = unit.map(|unit| self.span(unit)).transpose()?;
        if let (Some(unit), Some(Nanos::ZERO)) = (unit, length) {
            return Err(wrong(&self.source, unit, "a unit is above 0"));
        }
        let what = match (levels.get_ref().as_str(), length) {
            ("runs", _) => return Ok(Steps::Runs),
            ("changes", _) => return Ok(Steps::Changes),
            ("times", Some(unit)) => return Ok(Steps::Times(unit)),
            ("stays", Some(unit)) => return Ok(Steps::Stays(unit)),
            ("times" | "stays", None) => "this needs a `unit`, such as \"10ms\"",
            _ => "expected \"runs\", \"changes\", \"times\" or \"stays\"",
        };
        Err(wrong(&self.source, levels, what))
    }

    pub(super) fn metrics(&self, sets: &[RunSet]) -> Result<Vec<Metric>> {
        let metric = |(name, metric): (&Spanned<String>, &draft::Metric)| {
            for runs in metric.runs.iter().flatten() {
                self.known(runs, "runs", sets.iter().map(|set| set.name.as_str()))?;
            }
            let formula = Formula::parse(metric.value.get_ref());
            let runs = metric.runs.as_ref();
            Ok(Metric {
                name: name.get_ref().clone(),
                label: metric
                    .label
                    .clone()
                    .unwrap_or_else(|| name.get_ref().clone()),
                unit: metric.unit.clone(),
                made: Made::Formula(
                    formula
                        .map_err(|error| wrong(&self.source, &metric.value, error.to_string()))?,
                ),
                runs: runs.map(|runs| runs.iter().map(|it| it.get_ref().clone()).collect()),
                deviation: metric.deviation,
            })
        };
        let metrics = ordered(&self.draft.metric).into_iter().map(metric);
        let mut metrics: Vec<Metric> = metrics.collect::<Result<_>>()?;
        for (name, across) in ordered(&self.draft.across) {
            metrics.push(self.across(name, across, sets)?);
        }
        Ok(metrics)
    }

    fn across(
        &self,
        name: &Spanned<String>,
        across: &draft::Across,
        sets: &[RunSet],
    ) -> Result<Metric> {
        let known = self.draft.metric.keys().map(|key| key.get_ref().as_str());
        self.known(&across.metric, "metric", known.clone())?;
        if known.clone().any(|metric| metric == name.get_ref()) {
            return Err(wrong(&self.source, name, "a metric has this name already"));
        }
        for runs in across.runs.iter().flatten() {
            self.known(runs, "runs", sets.iter().map(|set| set.name.as_str()))?;
        }
        let take = match (across.take.get_ref().as_str(), across.from, across.to) {
            ("max", None, None) => match across.until {
                None => Take::Max,
                Some(limit) => Take::MaxUntil { limit },
            },
            ("min", None, None) => Take::Min,
            ("sum", None, None) => Take::Sum,
            ("ratio", Some(from), Some(to)) => Take::Ratio { from, to },
            ("reaches", None, None) if across.level.is_some() => Take::Reaches {
                level: across.level.unwrap_or_default(),
            },
            _ => {
                let what = "expected \"max\", with `until` or without, \"min\", \"sum\", \"ratio\" \
                            with `from` and `to`, or \
                            \"reaches\" with `level`";
                return Err(wrong(&self.source, &across.take, what));
            }
        };
        let (label, runs) = (across.label.clone(), across.runs.as_ref());
        Ok(Metric {
            name: name.get_ref().clone(),
            label: label.unwrap_or_else(|| name.get_ref().clone()),
            unit: across.unit.clone(),
            made: Made::Across {
                metric: across.metric.get_ref().clone(),
                x: across.x.clone(),
                take,
            },
            runs: runs.map(|runs| runs.iter().map(|it| it.get_ref().clone()).collect()),
            deviation: false,
        })
    }
}
