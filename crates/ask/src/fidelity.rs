//! How far the simulated machine is from a kernel that played the same workloads.

pub mod asked;
pub mod first;
mod judge;
pub mod kept;
pub mod least;
mod ratios;
pub mod simulated;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use model::Profile;

use crate::error::{Error, UsageError};
use crate::machine_file;
use crate::services::Services;

use asked::PlaysRequest;
use least::Least;

pub use judge::{JudgedPlays, WorstFigure, span_of};

/// Why a play is not there, by its name.
pub type Lacking = BTreeMap<String, String>;

/// Holds what a kernel played against simulations of the same, and against each other.
#[derive(Debug)]
pub struct Fidelity<'a> {
    /// The plays.
    pub plays: &'a PlaysRequest,
    /// Why some of them could not be made.
    pub lacking: &'a Lacking,
    /// What is simulated: the name of the row, and the profile. [`profiles`] finds them.
    pub profiles: Vec<(String, Profile)>,
    /// The scores that must be reached.
    pub least: Option<Least>,
    /// How many of the figures that are farthest apart are shown.
    pub worst: usize,
    /// Threads; the number does not change the answer.
    pub jobs: Option<NonZeroUsize>,
}

impl Fidelity<'_> {
    /// Simulates the plays with each profile, and compares.
    ///
    /// # Errors
    /// When a file of the folder is bad, a policy or the machine cannot be simulated, or a score
    /// must be reached that there is not.
    pub fn ask(&self, services: &Services<'_>) -> Result<JudgedPlays, Error> {
        let mut judged = judge::judged(self, services)?;
        if let Some(least) = &self.least {
            judged.missed = least
                .missed(&judged.compared)
                .map_err(anyhow::Error::from)?;
        }
        Ok(judged)
    }
}

/// The profiles of these names or files, each once, behind `ideal`.
///
/// # Errors
/// When there is none of this name, or it has that of a row of the table.
pub fn profiles(
    services: &Services<'_>,
    names: &[String],
) -> anyhow::Result<Vec<(String, Profile)>> {
    let mut profiles: Vec<(String, Profile)> = Vec::new();
    for name in std::iter::once("ideal").chain(names.iter().map(String::as_str)) {
        let found = machine_file::find::<Profile>(services, name)?;
        if name == judge::CEILING {
            let message = "no profile can be called `ceiling`: a row of the table is";
            return Err(UsageError::new(message).into());
        }
        if !profiles.iter().any(|(known, _)| known == name) {
            profiles.push((name.to_owned(), found));
        }
    }
    Ok(profiles)
}
