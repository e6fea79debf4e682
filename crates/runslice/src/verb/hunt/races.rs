//! Races that `hunt --races` has found in its trials.

use std::io::Write;
use std::path::{Path, PathBuf};

use ask::races::{RacingVariable, place, word};
use ask::shrink::Case;
use serde_json::{Value, json};

use crate::computer::COMPUTER;
use crate::output;
use crate::violation;

/// A variable on which callbacks race, of the first trial that has shown it or told it.
struct HuntedRace {
    trial: u64,
    variable: RacingVariable,
    /// The run with the stall that shows it, if one does.
    file: Option<PathBuf>,
}

/// Those of a search.
#[derive(Default)]
pub(super) struct HuntedRaces(Vec<HuntedRace>);

impl HuntedRaces {
    /// The variables that need not be told again.
    pub(super) fn known(&self) -> Vec<String> {
        let names = self.0.iter().map(|it| it.variable.worst().variable.clone());
        names.collect()
    }

    /// Whether a stall has shown a race.
    pub(super) fn has_shown(&self) -> bool {
        self.0.iter().any(|it| it.variable.shown.is_some())
    }

    /// Takes those of a trial, and keeps the runs that show them in `folder`.
    pub(super) fn take(
        &mut self,
        trial: u64,
        found: Vec<(Case, RacingVariable)>,
        folder: &Path,
    ) -> anyhow::Result<()> {
        for (case, variable) in found {
            let name = &variable.worst().variable;
            // Trials that were made at the same time may find the same.
            let mut known = self.0.iter();
            if known.any(|it| it.variable.worst().variable == *name) {
                continue;
            }
            let file = if variable.shown.is_some() {
                let file = folder.join(format!("race-{}.bundle", self.0.len() + 1));
                output::write_whole(&file, &case.capsule(&COMPUTER)?.write())?;
                Some(file)
            } else {
                None
            };
            self.0.push(HuntedRace {
                trial,
                variable,
                file,
            });
        }
        Ok(())
    }

    /// Tells them, the worst first.
    pub(super) fn write(&self, to: &mut dyn Write, policy: &str) -> anyhow::Result<()> {
        for it in self.sorted() {
            let race = it.variable.worst();
            writeln!(to, "\n{}: {}", race.variable, word(race.class))?;
            if let Some(reads) = &race.reads {
                writeln!(to, "  reads:      {}", place(Some(reads)))?;
            }
            writeln!(to, "  writes:     {}", place(race.writes.as_ref()))?;
            writeln!(to, "  other CPU:  {}", place(race.other.as_ref()))?;
            writeln!(to, "  found in:   trial {}", it.trial)?;
            match &it.file {
                Some(file) => writeln!(to, "  shown by:   {}", violation::explains(file, &[]))?,
                None => writeln!(to, "  not shown by a stall")?,
            }
        }
        let shown = self.0.iter().filter(|it| it.file.is_some()).count();
        let all = self.0.len();
        Ok(writeln!(
            to,
            "\n{policy}: racing variables: {all}, shown by a stall: {shown}"
        )?)
    }

    /// The same as JSON.
    pub(super) fn document(&self) -> Value {
        let races = self.sorted().into_iter().map(|it| {
            let race = it.variable.worst();
            json!({
                "variable": race.variable,
                "class": word(race.class),
                "reads": race.reads.as_ref().map(|it| place(Some(it))),
                "writes": place(race.writes.as_ref()),
                "other": place(race.other.as_ref()),
                "trial": it.trial,
                "capsule": it.file,
            })
        });
        races.collect()
    }

    fn sorted(&self) -> Vec<&HuntedRace> {
        let mut all: Vec<&HuntedRace> = self.0.iter().collect();
        all.sort_by_key(|it| (it.variable.worst().class, it.variable.shown.is_none()));
        all
    }
}
