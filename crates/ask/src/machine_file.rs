//! What the user calls a part of a machine, its profile or its hardware: a name that comes with the
//! program, or a file.

use std::path::Path;

use model::file::FileError;
use model::{Advised, Hardware, Profile, suggest};

use crate::error::{self, UsageError};
use crate::input;
use crate::kind::WordKind;
use crate::services::Services;

/// A part of a machine that has files of its own.
pub trait MachineFile: Sized {
    /// What messages call it.
    const WHAT: &'static str;
    /// The document about its files, below `docs/`.
    const DOCUMENT: &'static str;
    /// The kind of word that its name is, if others may be taken for it.
    const KIND: Option<WordKind>;

    /// The one of that name that comes with the program.
    fn find_shipped(name: &str) -> Option<Self>;

    /// The names of those that come with the program.
    fn shipped_names() -> Vec<String>;

    /// Reads a file, which messages call `file`.
    ///
    /// # Errors
    /// The first mistake, with its place.
    fn read(text: &str, file: &str) -> Result<Self, FileError>;
}

impl MachineFile for Profile {
    const WHAT: &'static str = "profile";
    const DOCUMENT: &'static str = "profiles.md";
    const KIND: Option<WordKind> = Some(WordKind::Profile);

    fn find_shipped(name: &str) -> Option<Self> {
        Self::shipped(name)
    }

    fn shipped_names() -> Vec<String> {
        Self::SHIPPED.map(|it| it.name().to_owned()).into()
    }

    fn read(text: &str, file: &str) -> Result<Self, FileError> {
        Self::parse(text, file)
    }
}

impl MachineFile for Hardware {
    const WHAT: &'static str = "hardware";
    const DOCUMENT: &'static str = "hardware.md";
    const KIND: Option<WordKind> = None;

    fn find_shipped(name: &str) -> Option<Self> {
        Self::find(name)
    }

    fn shipped_names() -> Vec<String> {
        let names = Self::shipped().iter();
        names.map(|(name, _)| (*name).to_owned()).collect()
    }

    fn read(text: &str, file: &str) -> Result<Self, FileError> {
        Self::parse(text, file)
    }
}

/// The part that `argument` names on the command line.
///
/// # Errors
/// When there is no such one, or its file is bad; the message names file, line and column.
pub fn find<F: MachineFile>(services: &Services<'_>, argument: &str) -> anyhow::Result<F> {
    if let Some(shipped) = F::find_shipped(argument) {
        return Ok(shipped);
    }
    let path = Path::new(argument);
    if is_path(argument) || services.is_file(path) {
        let mistaken = F::KIND.and_then(|kind| services.misplaced_file(path, kind));
        return match mistaken {
            Some(mistaken) => Err(UsageError::new(mistaken).into()),
            None => read(services, path),
        };
    }
    Err(UsageError::new(unknown::<F>(services, argument)).into())
}

/// The file that `argument` names, if it names one, so that no result is written over it.
#[must_use]
pub fn file_of<F: MachineFile>(argument: &str) -> Option<&Path> {
    let is_shipped = F::shipped_names().iter().any(|it| it == argument);
    (!is_shipped).then(|| Path::new(argument))
}

/// The part that a workload in `folder` names.
///
/// # Errors
/// In words, when there is no such one or its file is bad.
pub fn find_in<F: MachineFile>(
    services: &Services<'_>,
    folder: &Path,
    name: &str,
) -> Result<F, Advised> {
    if !is_path(name) {
        return Err(unknown::<F>(services, name));
    }
    read(services, &folder.join(name)).map_err(|error| error::advised(&error))
}

fn read<F: MachineFile>(services: &Services<'_>, path: &Path) -> anyhow::Result<F> {
    let text = input::text(services, path, input::WRITTEN)?;
    Ok(F::read(&text, &path.display().to_string())?)
}

fn is_path(name: &str) -> bool {
    let path = Path::new(name);
    name.contains('/') || path.extension().is_some_and(|it| it == "toml")
}

fn unknown<F: MachineFile>(services: &Services<'_>, name: &str) -> Advised {
    if let Some(mistaken) = F::KIND.and_then(|kind| services.misplaced(name, kind)) {
        return mistaken;
    }
    let shipped = F::shipped_names();
    let hint = suggest::hint(name, shipped.iter().map(String::as_str));
    Advised::new(
        format!("no {} is called `{name}`", F::WHAT),
        format!("{hint}; or give a .toml file (docs/{})", F::DOCUMENT),
    )
}
