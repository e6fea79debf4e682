//! How far a search is, in a file of its folder.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, bail};
use model::Advised;
use serde::{Deserialize, Serialize};

use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::{input, output};

/// The file's name.
const FILE: &str = "hunt.json";
/// The version of its format.
const VERSION: u32 = 1;

/// How far a search is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HuntState {
    runslice_hunt: u32,
    /// What is searched: seed, policy and properties.
    asked: String,
    /// The next trial.
    pub next: u64,
    /// What was found.
    pub hunted: Vec<Hunted>,
}

/// A fault that was found.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hunted {
    /// Its class and line.
    pub fault: String,
    /// The trial that showed it.
    pub trial: u64,
    /// The capsule, in the folder.
    pub file: String,
    /// It is the run as it was found, and is still to be made smaller.
    #[serde(default)]
    pub is_whole: bool,
}

impl HuntState {
    /// The state of the search in `folder`, or a new one.
    ///
    /// # Errors
    /// When the file is bad, or another search has left it.
    pub fn open(folder: &Path, asked: &str) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let fresh = Self {
            runslice_hunt: VERSION,
            asked: asked.to_owned(),
            next: 0,
            hunted: Vec::new(),
        };
        if let Err(error) = fs::symlink_metadata(&path)
            && error.kind() == ErrorKind::NotFound
        {
            return Ok(fresh);
        }
        let text = input::text(&COMPUTER, &path, input::WRITTEN)?;
        let name = || path.display().to_string();
        let state: Self = serde_json::from_str(&text).with_context(name)?;
        if state.runslice_hunt != VERSION {
            let version = state.runslice_hunt;
            bail!(Advised::new(
                format!("{}: it has version {version}", name()),
                format!("this program reads {VERSION}")
            ));
        }
        if state.asked != asked {
            let message = format!(
                "{} is of another search ({}; this one: {asked}): choose another folder with \
                 --output",
                name(),
                state.asked
            );
            return Err(UsageError::new(message).into());
        }
        Ok(state)
    }

    /// Writes the state. The file is there as a whole or not at all.
    ///
    /// # Errors
    /// When the folder takes no file.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self).expect("names and numbers become JSON");
        output::write_whole(&folder.join(FILE), (text + "\n").as_bytes())
    }
}
