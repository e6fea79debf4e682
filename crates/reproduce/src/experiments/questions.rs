//! Gives the questions of a statement's tests the values of runs.

use crate::experiments::cells::{CellId, ExperimentResults};
use crate::experiments::claim::{ClaimCell, ClaimQuestion};
use crate::experiments::experiment::{Experiment, Statement};
use crate::experiments::test::{AskedQuestion, CellPlace, Test, Traced, across};

/// The questions of a statement by name, with the values of `results`, which come from a machine
/// of this `kind`; `quick` says that some runs were left out.
pub fn of(
    experiment: &Experiment,
    statement: &Statement,
    results: &ExperimentResults,
    (kind, quick): (&str, bool),
) -> Vec<(String, ClaimQuestion)> {
    let runs = Runs {
        experiment,
        results,
        quick,
    };
    let tests = statement.tests.iter();
    let mut all: Vec<_> = tests.flat_map(|test| runs.questions(test, kind)).collect();
    // Names number the resamples, and tell parts apart.
    for at in 0..all.len() {
        let same = all[..at]
            .iter()
            .filter(|(name, _)| *name == all[at].0)
            .count();
        if same > 0 {
            let number = same + 1;
            all[at].0 += &format!(" ({number})");
        }
    }
    for (name, _) in &mut all {
        *name = format!("{} {name}", statement.id).trim_end().to_owned();
    }
    all
}

/// The question, unless both means of its pair are below `least`: two rates of nothing agree
/// whatever is true of them.
fn compared_from(least: f64, question: ClaimQuestion) -> ClaimQuestion {
    let mean = |cell: &ClaimCell| cell.values.iter().sum::<f64>() / cell.values.len() as f64;
    match question {
        ClaimQuestion::Within {
            cell,
            base: Some(base),
            ..
        } if mean(&cell) < least && mean(&base) < least => ClaimQuestion::Lacking {
            why: format!(
                "nothing to compare: {} is {:.3} and {} is {:.3}, both below {least}",
                cell.name,
                mean(&cell),
                base.name,
                mean(&base)
            ),
        },
        other => other,
    }
}

struct Runs<'a> {
    experiment: &'a Experiment,
    results: &'a ExperimentResults,
    quick: bool,
}

impl Runs<'_> {
    fn questions(&self, test: &Test, kind: &str) -> Vec<(String, ClaimQuestion)> {
        if !test.machines.is_empty() && !test.machines.iter().any(|it| it == kind) {
            let why = test.why.as_ref();
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            let why = format!("needs --machine {}{why}", test.machines.join(" or "));
            return vec![(test.name.clone(), ClaimQuestion::NotTestable { why })];
        }
        let question = |(label, asked): &(String, AskedQuestion)| {
            let name = format!("{} {label}", test.name).trim().to_owned();
            (name, self.fill(test, asked))
        };
        test.questions.iter().map(question).collect()
    }

    fn fill(&self, test: &Test, asked: &AskedQuestion) -> ClaimQuestion {
        let filled = asked.fill(&|place| self.cell(*place), &|traced| self.got(traced));
        let question = filled.unwrap_or_else(|why| ClaimQuestion::Lacking { why });
        let question = match test.least {
            Some(least) => compared_from(least, question),
            None => question,
        };
        match (&test.cannot_fail, question) {
            (None, question) | (_, question @ ClaimQuestion::NotTestable { .. }) => question,
            (Some(why), question) => ClaimQuestion::CannotFail {
                why: why.clone(),
                question: Box::new(question),
            },
        }
    }

    /// Why nothing is known of these runs whatever happened, if so.
    fn left_out(&self, set: usize) -> Result<(), String> {
        let set = &self.experiment.sets[set];
        if self.quick && set.quick == 0 {
            Err(format!("--quick leaves out the runs `{}`", set.name))
        } else {
            Ok(())
        }
    }

    /// A cell's values; the error says what the runs lack.
    fn cell(&self, place: CellPlace) -> Result<ClaimCell, String> {
        let CellPlace { id, metric, .. } = place;
        self.left_out(id.set)?;
        let x = across(self.experiment, metric);
        let name = ExperimentResults::name(self.experiment, id, x);
        let metric = &self.experiment.metrics[metric];
        let values = self.results.values(self.experiment, id, metric);
        let values = values.map_err(|why| format!("{name}: {why}"))?;
        let name = if place.says_metric {
            format!("{} of {name}", metric.name)
        } else {
            name
        };
        Ok(ClaimCell { name, values })
    }

    /// What a probe found in each run of a cell; the error says what the runs lack.
    fn got(&self, traced: &Traced) -> Result<Vec<String>, String> {
        let id: CellId = traced.id;
        self.left_out(id.set)?;
        let traces = self.results.traces(id, &traced.probe);
        let traces = traces.map_err(|why| {
            let name = ExperimentResults::name(self.experiment, id, None);
            format!("{name}: {why}")
        })?;
        let text = traces
            .into_iter()
            .map(|it| if traced.exact { it.exact } else { it.rounded });
        Ok(text.collect())
    }
}
