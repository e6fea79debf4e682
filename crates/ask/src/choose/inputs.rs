//! The files that an answer follows from, so that somebody else can tell whether he has the same.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use model::{Hardware, Profile};
use serde::{Deserialize, Serialize};

use super::Choose;
use crate::machine_file::file_of;
use crate::score_file;
use crate::services::Services;

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    /// Its path, as the command has it.
    pub file: String,
    /// BLAKE3 of all of it, in hexadecimal.
    pub blake3: String,
}

impl InputFile {
    /// The file at `path` as it is; `None` of a pipe, which cannot be read twice.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(services: &Services<'_>, path: &Path) -> io::Result<Option<Self>> {
        let opened = services.open(path)?;
        if opened.bytes.is_none() {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(opened.content)?;
        Ok(Some(Self {
            file: path.to_string_lossy().into_owned(),
            blake3: hasher.finalize().to_hex().to_string(),
        }))
    }

    /// Whether the file is as it was.
    #[must_use]
    pub fn is_same(&self, services: &Services<'_>) -> bool {
        let now = Self::of(services, Path::new(&self.file));
        now.is_ok_and(|it| it.as_ref() == Some(self))
    }
}

impl Choose {
    /// The files of the load, with the score beside it, of the machine, and those that named the
    /// candidates. Policies are known by the hashes of their objects.
    pub(super) fn inputs(&self, services: &Services<'_>) -> Vec<InputFile> {
        let load = self.load.path();
        let score = load.map(score_file::beside);
        let machine = &self.machine;
        let profile = machine.profile.as_deref().and_then(file_of::<Profile>);
        let hardware = machine.hardware.as_deref().and_then(file_of::<Hardware>);
        let named = [load, score.as_deref(), profile, hardware].into_iter();
        let all = named
            .flatten()
            .chain(self.files.iter().map(PathBuf::as_path));
        let all: BTreeSet<&Path> = all.filter(|it| services.is_file(it)).collect();
        let all = all.into_iter().map(|it| InputFile::of(services, it));
        all.filter_map(|it| it.ok().flatten()).collect()
    }
}
