//! What a guest or this computer lacks for some runs: it is looked for once, and told once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, bail};

use runslice::door::{in_full, say};

use crate::experiments::experiment::RealProgram;

/// What cannot be had in this call. It is looked for once: a mirror that does not answer takes
/// minutes to say so.
#[derive(Debug, Default)]
pub struct Missing {
    /// Why, by what.
    reasons: BTreeMap<String, String>,
    /// What was told already.
    told: BTreeSet<String>,
}

/// Nothing in `Missing` is half done where a thread could panic.
pub fn lock(missing: &Mutex<Missing>) -> MutexGuard<'_, Missing> {
    missing.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Missing {
    /// Looks for `what`, unless it was missing before.
    pub fn look<T>(
        &mut self,
        what: &str,
        find: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        if let Some(why) = self.reasons.get(what) {
            bail!("{why}");
        }
        let found = find();
        if let Err(error) = &found {
            self.reasons.insert(what.to_owned(), in_full(error));
        }
        found
    }

    /// The path of a program, if it is not one of the guest's own.
    pub fn program(&mut self, program: &RealProgram) -> anyhow::Result<Option<PathBuf>> {
        let name = program.name();
        self.look(&format!("program {name}"), || {
            find(program).with_context(|| format!("no {name}"))
        })
    }

    /// Says why a boot is left out; of several with one reason, the first says it.
    pub fn tell(&mut self, name: &str, failure: Option<&str>) {
        let Some(why) = failure else { return };
        if self.told.insert(why.to_owned()) {
            say("reproduce", &format!("{name}: {why}"));
        } else {
            say(
                "reproduce",
                &format!("{name}: left out for the same reason"),
            );
        }
    }
}

/// Where a program is that is not on the PATH; `None` where it is.
fn find(program: &RealProgram) -> anyhow::Result<Option<PathBuf>> {
    if vm::is_installed(program.name()) {
        return Ok(None);
    }
    match program {
        RealProgram::Installed(name) => bail!("the program `{name}` is not installed"),
        RealProgram::Packaged { program, package } => {
            let path = vm::fetch_program(program, package, &mut |step| say("reproduce", step))?;
            Ok(Some(path))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_looked_for_once_and_leaves_the_rest_alone() {
        let mut missing = Missing::default();
        let mut looked = 0;
        for _ in 0..2 {
            let found = missing.look("kernel 9", || -> anyhow::Result<()> {
                looked += 1;
                Err(anyhow::anyhow!("no mirror").context("no kernel 9"))
            });
            assert_eq!(
                format!("{:#}", found.unwrap_err()),
                "no kernel 9: no mirror"
            );
        }
        assert_eq!(looked, 1);
        assert_eq!(missing.look("kernel 8", || Ok(8)).unwrap(), 8);
    }
}
