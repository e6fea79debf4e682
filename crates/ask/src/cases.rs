//! Bugs of published schedulers, each as one small file: which versions have it, under which load
//! it shows, and what is seen of it then. [`CaseJudge`] says whether it shows here.

mod case;
mod judge;
mod read;
mod see;
mod shipped;
mod signature;
mod versions;

use std::path::Path;

use model::{Advised, suggest};

use crate::error::UsageError;
use crate::input;
use crate::services::Services;
use crate::workload_arg::Written;

pub use case::{CaseLoad, CaseRun, CaseStatus, Day, PublicCase};
pub use judge::{CaseJudge, CaseResult, CaseVerdict, VersionRuns};
pub use see::CaseSeen;
pub use signature::CaseSignature;

/// All cases that are built in.
///
/// # Errors
/// Never for a program that was built: a test reads all of them.
pub fn all() -> anyhow::Result<Vec<PublicCase>> {
    shipped::CASES.iter().map(shipped::read).collect()
}

/// The case that `argument` names: one that is built in, or a file.
///
/// # Errors
/// When there is none, or it is wrong; the message names file, line and column.
pub fn find(services: &Services<'_>, argument: &str) -> anyhow::Result<PublicCase> {
    if let Some(found) = shipped::CASES.iter().find(|(name, _)| *name == argument) {
        return shipped::read(found);
    }
    let path = Path::new(argument);
    if path.extension().is_none_or(|it| it != "toml") {
        let hint = suggest::hint(argument, shipped::CASES.iter().map(|(name, _)| *name));
        let message = Advised::new(
            format!("no case is called `{argument}`"),
            format!("{hint}; or give a .toml file (docs/cases.md)"),
        );
        return Err(UsageError::new(message).into());
    }
    let text = input::text(services, path, input::WRITTEN)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let load = |name: &str| {
        let is_file = Path::new(name).extension().is_some();
        let place = folder.join(name);
        let place = if is_file { &*place } else { Path::new(name) };
        Written::find(services, &place.to_string_lossy())
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    read::case((&name, &text), &input::shown(path), &load)
}

#[cfg(test)]
mod tests;
