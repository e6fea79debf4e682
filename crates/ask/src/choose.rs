//! Which scheduler is best for a load.

pub mod errors;
pub mod field;
pub mod fleet;
pub mod inputs;
pub mod kinds;
pub mod rank;
mod recorded;
pub mod reruns;
pub(crate) mod runs;
pub mod spread;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::bail;
use model::{Advised, Nanos};
use stats::compare::Settings;

use crate::error::{Error, UsageError};
use crate::goal::Goal;
use crate::load_source::LoadSource;
use crate::machine::MachineChange;
use crate::plan;
use crate::policy::{self, FoundPolicy};
use crate::program::ProgramOptions;
use crate::recording::Wanted;
use crate::services::Services;
use crate::words::{self, quoted};

use field::Field;
use inputs::InputFile;
use rank::Ranking;
use spread::AtCorner;

/// The candidate that others are held against where nobody says another one: the scheduler of
/// today's kernels.
pub const BASELINE: &str = "eevdf";

/// Most runs of each candidate.
pub const RUNS_MAX: u32 = 10_000;

/// Chooses among schedulers.
#[derive(Clone, Debug)]
pub struct Choose {
    /// The schedulers, at least two; the others are held against the first.
    pub candidates: Vec<Candidate>,
    /// What is to become better. None: the goals of the load.
    pub goals: Vec<Goal>,
    /// The load.
    pub load: LoadSource,
    /// Further files that the candidates come from.
    pub files: Vec<PathBuf>,
    /// Parameters of the workload.
    pub scale: Vec<(String, i64)>,
    /// Runs of each candidate, or reruns of a recording. Without it as many as decide.
    pub runs: Option<u32>,
    /// The part of a figure that is not modelled, as the user states it.
    pub not_modelled: Option<f64>,
    /// Changes to the machine.
    pub machine: MachineChange,
    /// Ask also at every end of what is uncertain about the hardware.
    pub spread: bool,
    /// Seed of the first run.
    pub seed: Option<u64>,
    /// When a run ends at the latest.
    pub duration: Option<Nanos>,
    /// By how much later tasks may begin.
    pub start_jitter: Option<Nanos>,
    /// Threads; the number does not change the answer.
    pub jobs: Option<NonZeroUsize>,
}

/// A scheduler among which is chosen.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The scheduler.
    pub found: FoundPolicy,
    /// How `runslice run` is told to run it, as words of a shell.
    pub call: String,
}

/// What was chosen, and why.
#[derive(Debug)]
pub struct Chosen {
    /// The runs of all candidates.
    pub field: Field,
    /// The candidates in order.
    pub ranking: Ranking,
    /// How they were judged.
    pub settings: Settings,
    /// The answer at every end of what is uncertain about the hardware; empty if that was not
    /// asked.
    pub spread: Vec<AtCorner>,
    /// The files that it follows from.
    pub inputs: Vec<InputFile>,
}

impl Candidate {
    /// BLAKE3 of its object, in hexadecimal; `None` of a scheduler's own program, which brings its
    /// own.
    #[must_use]
    pub fn object_hash(&self) -> Option<String> {
        let object = &self.found.policy.object;
        (!object.is_empty()).then(|| blake3::hash(object).to_hex().to_string())
    }

    /// The scheduler that `word` names to a question.
    #[must_use]
    pub fn named(word: &str, found: FoundPolicy) -> Self {
        let call = quoted(word);
        Self { found, call }
    }

    /// A scheduler that no single word names.
    #[must_use]
    pub fn of(found: FoundPolicy) -> Self {
        let call = match &found.policy.program {
            Some(program) => {
                let command = words::command(&program.command);
                format!("--scheduler {}", quoted(&command))
            }
            None => quoted(&found.policy.name),
        };
        Self { found, call }
    }
}

/// The candidates, each once, the one that is called `baseline` first: those that are named, those
/// of the sweep's file `knobs`, and schedulers' own programs, which run as `options` say; every
/// policy that is built in if there are none of these.
///
/// # Errors
/// When one cannot be found, or there is no other than the baseline.
pub fn candidates(
    services: &Services<'_>,
    (baseline, first): (&str, Candidate),
    (mut named, programs): (Vec<Candidate>, Vec<Candidate>),
    (knobs, options): (Option<&Path>, &ProgramOptions),
) -> anyhow::Result<Vec<Candidate>> {
    if named.is_empty() && programs.is_empty() && knobs.is_none() {
        let built_in = policies::ALL.iter().map(|it| {
            let found = policy::open(services, it.name)?;
            Ok(Candidate::named(it.name, found))
        });
        named = built_in.collect::<anyhow::Result<_>>()?;
    }
    if let Some(file) = knobs {
        let in_file = plan::candidates(services, file, options)?;
        named.extend(in_file.into_iter().map(Candidate::of));
    }
    let mut all = vec![first];
    for candidate in named.into_iter().chain(programs) {
        if all.iter().all(|it| it.call != candidate.call) {
            all.push(candidate);
        }
    }
    if all.len() < 2 {
        let message = Advised::new(
            format!("there is only {baseline} to choose from"),
            "name other candidates",
        );
        return Err(UsageError::new(message).into());
    }
    Ok(all)
}

impl Choose {
    /// Simulates the candidates under the load, and ranks them.
    ///
    /// # Errors
    /// When a candidate, the load or a goal is wrong, or the first candidate fails.
    pub fn ask(&self, services: &Services<'_>) -> Result<Chosen, Error> {
        let mut chosen = self.chosen(services)?;
        chosen.inputs = self.inputs(services);
        if self.spread {
            chosen.spread = self.at_corners(services, &chosen)?;
        }
        Ok(chosen)
    }

    fn chosen(&self, services: &Services<'_>) -> anyhow::Result<Chosen> {
        let settings = Settings::default();
        let field = match self.recording(services) {
            Some(recording) => recorded::run(self, services, recording, &settings)?,
            None => runs::run(self, services, &settings)?,
        };
        if let Some(failure) = &field.failures[0] {
            bail!(Advised::new(
                format!(
                    "the baseline {} fails under this load ({failure})",
                    field.name(0)
                ),
                "choose another with --baseline"
            ));
        }
        let ranking = Ranking::of(&field, self.not_modelled, &settings)?;
        Ok(Chosen {
            field,
            ranking,
            settings,
            spread: Vec::new(),
            inputs: Vec::new(),
        })
    }

    /// The recording that is the load, if it is one.
    fn recording(&self, services: &Services<'_>) -> Option<(&Path, Wanted)> {
        let (path, wanted) = match &self.load {
            LoadSource::Recorded(path, wanted) => (&**path, *wanted),
            LoadSource::Named(name) => (Path::new(&**name), Wanted::default()),
            LoadSource::Text(_) => return None,
        };
        self.load.is_recording(services).then_some((path, wanted))
    }
}
