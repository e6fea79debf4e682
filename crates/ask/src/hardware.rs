//! Hardware that a user names: a machine that comes with the program, or a file.

use std::path::Path;

use model::{Advised, Hardware, suggest};

use crate::error::{self, UsageError};
use crate::input;
use crate::services::Services;

/// The hardware that `argument` names on the command line.
///
/// # Errors
/// When there is no such machine, or its file is bad; the message names file, line and column.
pub fn find(services: &Services<'_>, argument: &str) -> anyhow::Result<Hardware> {
    if let Some(shipped) = Hardware::find(argument) {
        return Ok(shipped);
    }
    let path = Path::new(argument);
    if is_path(argument) || services.is_file(path) {
        return read(services, path);
    }
    Err(UsageError::new(unknown(argument)).into())
}

/// The file that `argument` names, if it names one, so that no result is written over it.
#[must_use]
pub fn file_of(argument: &str) -> Option<&Path> {
    let is_shipped = Hardware::shipped()
        .iter()
        .any(|(name, _)| *name == argument);
    (!is_shipped).then(|| Path::new(argument))
}

/// The hardware that a workload in `folder` names.
///
/// # Errors
/// In words, when there is no such machine or its file is bad.
pub fn find_in(services: &Services<'_>, folder: &Path, name: &str) -> Result<Hardware, Advised> {
    if !is_path(name) {
        return Err(unknown(name));
    }
    read(services, &folder.join(name)).map_err(|error| error::advised(&error))
}

fn read(services: &Services<'_>, path: &Path) -> anyhow::Result<Hardware> {
    let file = path.display().to_string();
    let text = input::text(services, path, input::WRITTEN)?;
    Ok(Hardware::parse(&text, &file)?)
}

fn is_path(name: &str) -> bool {
    let path = Path::new(name);
    name.contains('/') || path.extension().is_some_and(|it| it == "toml")
}

fn unknown(name: &str) -> Advised {
    let shipped = Hardware::shipped().iter().map(|(name, _)| *name);
    let hint = suggest::hint(name, shipped);
    Advised::new(
        format!("no hardware is called `{name}`"),
        format!("{hint}; or give a .toml file (docs/hardware.md)"),
    )
}
