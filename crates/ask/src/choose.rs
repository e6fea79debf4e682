//! Which scheduler is best for a load.

pub mod rank;
pub mod runs;

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::bail;
use model::{Advised, Nanos};
use stats::compare::Settings;
use workload::Workload;

use crate::error::Error;
use crate::goal::Goal;
use crate::machine::MachineChange;
use crate::policy::Found;
use crate::recording::{self, Rerun};
use crate::services::Services;

use rank::Ranking;
use runs::Field;

/// Chooses among schedulers.
#[derive(Clone, Debug)]
pub struct Choose {
    /// The schedulers, at least two; the others are held against the first.
    pub candidates: Vec<Candidate>,
    /// What is to become better. None: the goals of the load.
    pub goals: Vec<Goal>,
    /// A load that is not to be found by its name.
    pub load: Option<Workload>,
    /// The load's name or file.
    pub workload: Option<String>,
    /// A recording in its place.
    pub recording: Rerun,
    /// Parameters of the workload.
    pub scale: Vec<(String, i64)>,
    /// Runs of each candidate, or parts of a trace. Without it as many as decide.
    pub runs: Option<u32>,
    /// The part of a figure that is not modelled, as the user states it.
    pub not_modelled: Option<f64>,
    /// Changes to the machine.
    pub machine: MachineChange,
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
    pub found: Found,
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
}

impl Choose {
    /// Simulates the candidates under the load, and ranks them.
    ///
    /// # Errors
    /// When a candidate, the load or a goal is wrong, or the first candidate fails.
    pub fn ask(&self, services: &Services<'_>) -> Result<Chosen, Error> {
        Ok(self.chosen(services)?)
    }

    fn chosen(&self, services: &Services<'_>) -> anyhow::Result<Chosen> {
        let settings = Settings::default();
        let field = Field::run(self, services, &settings)?;
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
        })
    }

    /// The trace that is the load, if it is one.
    fn trace(&self, services: &Services<'_>) -> Option<&Path> {
        let named = self.workload.as_deref().map(Path::new);
        let named = named.filter(|path| recording::is_recording(services, path));
        self.recording.from.as_deref().or(named)
    }
}
