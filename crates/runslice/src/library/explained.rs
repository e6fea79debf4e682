//! Why a task waited or a policy was ejected.

use anyhow::Context as _;
use ask::explain::{Explain, ExplainOf};

use crate::about::About;
use crate::computer::COMPUTER;
use crate::explanation::{Explanation, json, text};
use crate::look;

use super::failure::{Answer, Failure, answer};
use super::given::Load;
use super::run::Request;

/// An explanation.
#[derive(Clone, Debug)]
pub struct Explained {
    words: Vec<String>,
    /// The command line has no such request: it does not explain a rerun.
    is_only_here: bool,
    explanation: Explanation,
}

/// Simulates the run of the first policy and explains it: the fault that it shows, and so many of
/// the longest waits, those of a task or group if one is named.
///
/// # Errors
/// As `runslice explain`.
pub fn explain(
    request: &Request,
    worst: Option<u16>,
    task: Option<&str>,
) -> Result<Answer<Explained>, Failure> {
    answer(|| {
        let (specs, options) = request.read()?;
        let spec = specs.into_iter().next().context("one policy is one run")?;
        let question = Explain {
            of: ExplainOf::Run(Box::new(spec), options.limits.options()),
            task: task.map(str::to_owned),
            worst,
        };
        let explanation = question.ask(&COMPUTER).map_err(ask::Error::into_cause)?;
        let mut words = request.words("explain");
        for (option, value) in [
            ("--task", task.map(str::to_owned)),
            ("--worst", worst.map(|it| it.to_string())),
        ] {
            words.extend(value.into_iter().flat_map(|it| [option.to_owned(), it]));
        }
        Ok(Explained {
            words,
            is_only_here: matches!(request.load, Some(Load::Recorded(_))),
            explanation,
        })
    })
}

impl Explained {
    /// The command line that writes the same.
    #[must_use]
    pub fn command(&self, is_json: bool) -> Vec<String> {
        let json = is_json.then(|| "--json".to_owned());
        self.words.iter().cloned().chain(json).collect()
    }

    /// The text that `runslice explain` writes, or with `--json`.
    #[must_use]
    pub fn write(&self, is_json: bool) -> String {
        let words = self.command(is_json);
        let explanation = Explanation {
            again: (!self.is_only_here).then(|| About::called(&words, About::again)),
            ..self.explanation.clone()
        };
        if is_json {
            format!("{}\n", json::of(&explanation))
        } else {
            text::of(&explanation, look::width())
        }
    }

    /// Whether anything is wrong.
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.explanation.finding.is_some()
    }
}
