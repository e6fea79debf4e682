//! How good a policy is that a program has written: a score that nothing but a better policy
//! raises, and the reason where it is refused.
//!
//! A cascade: compile, load, ten short runs, all loads, and the gate's loads that nobody has seen.
//! The first step that refuses a candidate is the last one. Everything is relative to a baseline in
//! the same draws (`draw`); limits come first (`limits`), then the score (`score`).

mod artifact;
mod cascade;
pub mod draw;
mod figures;
pub mod gate;
pub mod limits;
mod probe;
pub mod score;
pub mod search;
pub mod spec;
mod taken;

use std::num::NonZeroUsize;

use explain::why::Finding;
use model::{Advised, Nanos};
use stats::compare::{Better, Measure};

use crate::error::Error;
use crate::services::Services;
use crate::shrink::Case;

pub use artifact::{ARTIFACT_MAX, percent, text as artifact};
pub use cascade::{Evaluator, Opened};
use draw::Secret;
use limits::LimitKind;
use score::{REFUSED, SearchScore};
use spec::Spec;

/// Evaluates candidates.
#[derive(Clone, Debug)]
pub struct Evaluate {
    /// By what.
    pub spec: Spec,
    /// The candidates: built-in names, objects or C sources, with knobs behind a colon.
    pub candidates: Vec<String>,
    /// The key of the draws; `None`: one that everybody can know.
    pub key: Option<Vec<u8>>,
    /// Which draws of that key.
    pub epoch: u64,
    /// Whether the gate is asked, too.
    pub has_gate: bool,
    /// Threads; the number does not change the answer.
    pub jobs: Option<NonZeroUsize>,
}

/// What candidates came to.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// What they were held against.
    pub baseline: String,
    /// Whether nobody but the owner of a key can know the draws.
    pub is_held_out: bool,
    /// Which draws.
    pub epoch: u64,
    /// In the order of the question.
    pub candidates: Vec<Evaluation>,
}

/// How far a candidate came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Its source was compiled.
    Compile,
    /// Its object was loaded.
    Load,
    /// Ten short runs were made.
    Short,
    /// All open draws were made.
    Open,
    /// The gate's draws were made, too.
    Gate,
}

/// What a candidate came to.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The candidate, as it was named.
    pub candidate: String,
    /// BLAKE3 of its object, in hexadecimal.
    pub object: Option<String>,
    /// The last stage.
    pub stage: Stage,
    /// Limits that it broke.
    pub breaches: Vec<Breach>,
    /// Its score; `None` where a stage before has refused it.
    pub scored: Option<SearchScore>,
    /// Goal by goal.
    pub metrics: Vec<GoalMetric>,
    /// What it took.
    pub cost: Cost,
}

/// A limit that was broken.
#[derive(Clone, Debug)]
pub struct Breach {
    /// The limit.
    pub limit: LimitKind,
    /// The load, if it is one of a load.
    pub load: Option<String>,
    /// In how many draws, and of how many.
    pub draws: [usize; 2],
    /// The facts, in one line.
    pub words: String,
    /// What to do about it, if there is more to say than the limit's own advice.
    pub advice: Option<String>,
    /// What `explain` says of the run.
    pub finding: Option<Finding>,
    /// The run, if it can be repeated under the tasks' own names.
    pub case: Option<Case>,
}

/// One goal of one load.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalMetric {
    /// The load.
    pub load: String,
    /// The goal.
    pub goal: String,
    /// What its values are.
    pub measure: Measure,
    /// Which way is good.
    pub better: Better,
    /// How much it counts.
    pub weight: f64,
    /// The means of the baseline and of the candidate.
    pub means: Option<(f64, f64)>,
    /// Its gain as a log ratio, positive if it is better, and the ends of its interval.
    pub gain: [f64; 3],
}

/// What an evaluation took, in what does not depend on the computer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Runs of the candidate.
    pub runs: u64,
    /// Time that they simulated.
    pub simulated: Nanos,
    /// BPF instructions that they retired.
    pub instructions: u64,
}

impl Stage {
    /// In documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::Load => "load",
            Self::Short => "short",
            Self::Open => "open",
            Self::Gate => "gate",
        }
    }
}

impl Breach {
    /// Of what is no single run's.
    #[must_use]
    pub const fn of(limit: LimitKind, words: String) -> Self {
        Self {
            limit,
            load: None,
            draws: [0, 0],
            words,
            advice: None,
            finding: None,
            case: None,
        }
    }

    /// As [`Breach::of`], in the words of an error.
    #[must_use]
    pub fn advised(limit: LimitKind, said: Advised) -> Self {
        Self {
            advice: said.advice,
            ..Self::of(limit, said.what)
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &str {
        self.advice.as_deref().unwrap_or(self.limit.advice())
    }
}

impl Evaluation {
    /// Whether it broke a limit that refuses it.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.breaches.iter().any(|it| it.limit.is_hard())
    }

    /// The one number of a search: the score, but not more than that of a load that is shown worse,
    /// or [`REFUSED`].
    #[must_use]
    pub fn combined(&self) -> f64 {
        match &self.scored {
            Some(scored) if !self.is_refused() => scored.combined(),
            _ => REFUSED,
        }
    }
}

impl Evaluate {
    /// Evaluates each candidate.
    ///
    /// # Errors
    /// When the file or the baseline is bad, a candidate cannot be read, or nobody waits for the
    /// answer any more. A candidate that does not compile or load is refused, which is no error.
    pub fn ask(&self, services: &Services<'_>) -> Result<Evaluated, Error> {
        Ok(self.evaluated(services)?)
    }

    fn evaluated(&self, services: &Services<'_>) -> anyhow::Result<Evaluated> {
        let secret = self.secret();
        let evaluator = Evaluator::new(services, &self.spec, (secret, self.epoch), self.jobs)?;
        let candidates = self.candidates.iter();
        let candidates = candidates.map(|word| match evaluator.open(word)? {
            Opened::Found(found) => evaluator.evaluate(word, &found, self.has_gate),
            Opened::Refused(refused) => Ok(*refused),
        });
        Ok(Evaluated {
            baseline: self.spec.baseline.policy.name.clone(),
            is_held_out: self.key.is_some(),
            epoch: self.epoch,
            candidates: candidates.collect::<anyhow::Result<_>>()?,
        })
    }

    /// What the draws depend on.
    #[must_use]
    pub fn secret(&self) -> Secret {
        match &self.key {
            Some(key) => Secret::of(key),
            None => Secret::of(self.spec.text.as_bytes()),
        }
    }
}
