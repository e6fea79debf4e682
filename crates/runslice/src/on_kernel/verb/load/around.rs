//! What is done around any load: the kernel's statistics switched, the policy's callbacks measured.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use live::record::{Cost, ProgramCost};
use load::{Error, LoadOutcome};
use model::Advised;

use super::explain;
use crate::exit::UnsupportedError;

/// The kernel's switch of its statistics.
const SCHEDSTATS: &str = "/proc/sys/kernel/sched_schedstats";

/// Options of every load. They stand before its name.
#[derive(Debug, Default, Args)]
pub struct Around {
    /// Switch `kernel.sched_schedstats` on or off (1 or 0) during the load, and restore it
    /// afterwards (needs root).
    #[arg(long, value_enum, value_name = "on|off")]
    schedstats: Option<Switch>,

    /// Count and time the policy's callbacks during the load (needs root). The results then contain
    /// `callbacks` and `callbacks_time`. Each callback takes slightly longer.
    #[arg(long)]
    callbacks: bool,
}

/// A position of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    #[value(alias = "1")]
    On,
    #[value(alias = "0")]
    Off,
}

impl Around {
    /// Runs the load with all that was asked for around it.
    ///
    /// # Errors
    /// When the kernel refuses what was asked for, or the load fails.
    pub fn run(
        &self,
        load: impl FnOnce() -> Result<LoadOutcome, Error>,
    ) -> anyhow::Result<LoadOutcome> {
        let turned = self
            .schedstats
            .map(|to| Turned::to(PathBuf::from(SCHEDSTATS), to))
            .transpose()?;
        let cost = if self.callbacks {
            Some(Cost::measure().map_err(|error| refused(&error.to_string()))?)
        } else {
            None
        };
        let before = cost.as_ref().map(|_| ProgramCost::of_callbacks());
        let outcome = load();
        let after = before.as_ref().map(|_| ProgramCost::of_callbacks());
        drop((cost, turned));
        let mut outcome = outcome.map_err(explain)?;
        if let (Some(before), Some(after)) = (before, after) {
            tell(&mut outcome, &before, &after);
        }
        Ok(outcome)
    }
}

/// Adds what the callbacks have cost in between.
fn tell(outcome: &mut LoadOutcome, before: &ProgramCost, after: &ProgramCost) {
    // Counts of a policy that has gone are gone, too.
    let grown = |now: u64, then: u64| now.saturating_sub(then);
    let runs = grown(after.runs, before.runs);
    if runs == 0 {
        let note = "no policy of sched_ext was attached whose callbacks could be measured";
        outcome.notes.push(note.to_owned());
        return;
    }
    #[expect(clippy::cast_precision_loss, reason = "no load runs so long")]
    let number = |number: u64| number as f64;
    outcome.add("callbacks", "", number(runs));
    let took = number(grown(after.ns, before.ns));
    outcome.add("callbacks_time", "us", took / 1e3);
}

fn refused(why: &str) -> UnsupportedError {
    UnsupportedError::new(Advised::new(
        why,
        "it takes root and a kernel that has this",
    ))
}

/// A switch of the kernel that is put back when this is dropped.
#[derive(Debug)]
struct Turned {
    path: PathBuf,
    before: String,
}

impl Turned {
    fn to(path: PathBuf, to: Switch) -> Result<Self, UnsupportedError> {
        let wrong = |error: std::io::Error| refused(&format!("{}: {error}", path.display()));
        let before = fs::read_to_string(&path).map_err(wrong)?;
        let value = match to {
            Switch::On => "1\n",
            Switch::Off => "0\n",
        };
        fs::write(&path, value).map_err(wrong)?;
        Ok(Self { path, before })
    }
}

impl Drop for Turned {
    fn drop(&mut self) {
        // It was writable before; nobody could be told at this point.
        let _ = fs::write(&self.path, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_turned_and_put_back() {
        let path = std::env::temp_dir().join(format!("runslice-switch-{}", std::process::id()));
        for (before, to, meanwhile) in [("0\n", Switch::On, "1\n"), ("1\n", Switch::Off, "0\n")] {
            fs::write(&path, before).unwrap();
            let turned = Turned::to(path.clone(), to).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), meanwhile);
            drop(turned);
            assert_eq!(fs::read_to_string(&path).unwrap(), before);
        }
        fs::remove_file(&path).unwrap();
        let error = model::Advice::in_full(&Turned::to(path, Switch::On).unwrap_err());
        assert!(
            error.contains("runslice-switch") && error.contains("root"),
            "{error}"
        );
    }

    #[test]
    fn callbacks_are_told_with_what_has_come_between() {
        let at = |runs, ns| ProgramCost {
            name: String::new(),
            runs,
            ns,
        };
        let mut outcome = LoadOutcome::default();
        tell(&mut outcome, &at(10, 5_000), &at(30, 9_000));
        assert_eq!(outcome.value("callbacks"), Some(20.0));
        assert_eq!(outcome.value("callbacks_time"), Some(4.0));
        let mut none = LoadOutcome::default();
        tell(&mut none, &at(0, 0), &at(0, 0));
        assert_eq!(none.value("callbacks"), None);
        assert_eq!(none.notes.len(), 1);
    }

    #[test]
    fn a_load_without_wishes_is_run_as_it_is() {
        let mut ran = 0;
        let outcome = Around::default().run(|| {
            ran += 1;
            Ok(LoadOutcome::default())
        });
        assert_eq!((outcome.unwrap(), ran), (LoadOutcome::default(), 1));
    }
}
