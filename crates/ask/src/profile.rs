//! What the user calls a machine's profile: a name that comes with the program, or a file.

use std::path::Path;

use model::{Advised, Profile};

use crate::error::{self, UsageError};
use crate::input;
use crate::kind::WordKind;
use crate::services::Services;
use model::suggest;

/// The profile that `argument` names on the command line.
///
/// # Errors
/// When there is no such profile, or its file is bad; the message names file, line and column.
pub fn find(services: &Services<'_>, argument: &str) -> anyhow::Result<Profile> {
    if let Some(shipped) = Profile::shipped(argument) {
        return Ok(shipped);
    }
    let path = Path::new(argument);
    if is_path(argument) || services.is_file(path) {
        if let Some(mistaken) = services.misplaced_file(path, WordKind::Profile) {
            return Err(UsageError::new(mistaken).into());
        }
        return read(services, path);
    }
    Err(UsageError::new(unknown(services, argument)).into())
}

/// The file that `argument` names, if it names one, so that no result is written over it.
#[must_use]
pub fn file_of(argument: &str) -> Option<&Path> {
    let is_shipped = Profile::shipped(argument).is_some();
    (!is_shipped).then(|| Path::new(argument))
}

/// The profile that a workload in `folder` names.
///
/// # Errors
/// In words, when there is no such profile or its file is bad.
pub fn find_in(services: &Services<'_>, folder: &Path, name: &str) -> Result<Profile, Advised> {
    if !is_path(name) {
        return Err(unknown(services, name));
    }
    read(services, &folder.join(name)).map_err(|error| error::advised(&error))
}

fn read(services: &Services<'_>, path: &Path) -> anyhow::Result<Profile> {
    let file = path.display().to_string();
    let text = input::text(services, path, input::WRITTEN)?;
    Ok(Profile::parse(&text, &file)?)
}

fn is_path(name: &str) -> bool {
    let path = Path::new(name);
    name.contains('/') || path.extension().is_some_and(|it| it == "toml")
}

fn unknown(services: &Services<'_>, name: &str) -> Advised {
    if let Some(mistaken) = services.misplaced(name, WordKind::Profile) {
        return mistaken;
    }
    let shipped = Profile::SHIPPED;
    let hint = suggest::hint(name, shipped.iter().map(Profile::name));
    Advised::new(
        format!("no profile is called `{name}`"),
        format!("{hint}; or give a .toml file (docs/profiles.md)"),
    )
}
