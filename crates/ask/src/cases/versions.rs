//! Where a version of a scheduler is: a program, a bundle, an object or a source, in one folder.

use std::path::Path;

use super::case::{CaseRun, PublicCase};
use crate::policy::{self, FoundPolicy, Preparation};
use crate::program::{self, ProgramOptions};
use crate::services::Services;
use crate::words;

/// Endings of a version's file, in the order in which they are looked for. The first is that of a
/// scheduler's own program, which comes last if the case says how an object is prepared.
const ENDINGS: [&str; 4] = ["", ".bundle", ".bpf.o", ".bpf.c"];

/// Finds `version` of the scheduler of `case` in `folder`; `None` if it is not there.
///
/// # Errors
/// When its file is bad.
pub(super) fn open(
    services: &Services<'_>,
    (case, run): (&PublicCase, &CaseRun),
    version: &str,
    folder: &Path,
) -> anyhow::Result<Option<FoundPolicy>> {
    let stem = format!("{}-{version}", case.scheduler);
    let mut endings = ENDINGS;
    if run.preparation != Preparation::default() {
        endings.rotate_left(1);
    }
    for ending in endings {
        let path = folder.join(format!("{stem}{ending}"));
        if !services.is_file(&path) {
            continue;
        }
        let path = path.to_string_lossy();
        let mut found = if ending.is_empty() {
            let words = std::iter::once(&*path);
            let words = words.chain(run.arguments.iter().map(String::as_str));
            let command = words::command(&words.collect::<Vec<_>>());
            FoundPolicy::of_policy(program::policy_of(&command, &ProgramOptions::default())?)
        } else {
            policy::open(services, &path)?
        };
        // What a case asks of an object its program does by itself.
        if found.policy.program.is_none() {
            run.preparation.apply(&mut found.policy)?;
        }
        return Ok(Some(found));
    }
    Ok(None)
}
