//! How far the simulation of a recording can be trusted.

pub mod trial;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use model::Advised;
use stats::compare::skill::{self, PartVerdict, SkillRow};
use traces::foreign::Window;

use crate::error::{Error, UsageError};
use crate::machine::MachineChange;
use crate::policy;
use crate::recording::halves::KnownRecording;
use crate::services::Services;

use trial::Held;

/// What our own recordings call the scheduler of a kernel without a policy.
const OWN: [&str; 2] = ["kernel", "the kernel's own scheduler"];

/// Holds a recording against its simulation.
#[derive(Clone, Debug)]
pub struct Score {
    /// The recording. The load is made of its first half and held against the second.
    pub recording: PathBuf,
    /// A second recording of the same load. Then the load is made of all of the first one, and
    /// held against this one.
    pub second: Option<PathBuf>,
    /// The scheduler that it was recorded under; without it the recording says so.
    pub recorded_under: Option<String>,
    /// The kernel that it was recorded on; without it the recording says so.
    pub recorded_on: Option<Release>,
    /// Part of a trace of another program.
    pub window: Window,
    /// Changes to the machine.
    pub machine: MachineChange,
    /// Seed of the resampling.
    pub resample_seed: u64,
    /// Threads; the number does not change the answer.
    pub jobs: Option<NonZeroUsize>,
}

/// A score.
#[derive(Debug)]
pub struct Scored {
    /// What was held against what.
    pub held: Held,
    /// A row for each part of what is asked of a load.
    pub rows: Vec<SkillRow>,
}

impl Scored {
    /// Whether something can be said of a part.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        let is_open = |row: &SkillRow| {
            matches!(
                row.verdict,
                PartVerdict::Undecided | PartVerdict::CannotBeTold | PartVerdict::Grows
            )
        };
        !self.rows.iter().all(is_open)
    }
}

/// The first two numbers of a kernel's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(u32, u32);

impl Release {
    /// Reads `5.10`, `6.1.0-13-amd64` and the like.
    ///
    /// # Errors
    /// When it does not begin with two numbers.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut numbers = text.splitn(3, '.');
        let whole = |part: Option<&str>| part.and_then(|it| it.parse().ok());
        let major = whole(numbers.next());
        let minor = numbers.next().map(|it| {
            let digits = it.find(|c: char| !c.is_ascii_digit());
            &it[..digits.unwrap_or(it.len())]
        });
        match (major, whole(minor)) {
            (Some(major), Some(minor)) => Ok(Self(major, minor)),
            _ => Err(format!("`{text}` is no version of a kernel, such as 5.10")),
        }
    }

    /// The policy that imitates the default scheduler of this version: CFS came with 2.6.23, EEVDF
    /// with 6.6, its delayed dequeue with 6.12.
    ///
    /// # Errors
    /// When the version is older.
    fn policy(self) -> Result<&'static str, UsageError> {
        match self {
            Self(6, 6..=11) => Ok("eevdf"),
            it if it >= Self(6, 12) => Ok("eevdf:delay_dequeue=1"),
            // The third number of versions 2.6 is not kept.
            it if it >= Self(2, 7) => Ok("cfs"),
            Self(major, minor) => Err(UsageError::new(Advised::new(
                format!("which scheduler Linux {major}.{minor} has depends on its third number"),
                "name it with --recorded-under, such as cfs, o1 or goodness",
            ))),
        }
    }
}

/// The scheduler of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Under {
    /// As an argument of `sim`.
    pub policy: String,
    /// How it is known.
    pub source: String,
}

impl Score {
    /// Simulates the first half of the recording, and holds it against the second.
    ///
    /// # Errors
    /// When a recording cannot be read, or the scheduler that it was recorded under is not known.
    pub fn ask(&self, services: &Services<'_>) -> Result<Scored, Error> {
        let mut held = Held::make(self, services)?;
        let rows = skill::score(&held.trial, self.resample_seed);
        if rows.iter().any(|row| row.verdict == PartVerdict::Grows) {
            held.notes.push(
                "No verdict on waits and responses: these figures grow with the duration, because \
                 tasks were forked faster than they were done."
                    .to_owned(),
            );
        }
        Ok(Scored { held, rows })
    }

    /// Reads the recordings for the first time.
    ///
    /// # Errors
    /// When one cannot be read; the message names it.
    fn recordings(
        &self,
        services: &Services<'_>,
    ) -> anyhow::Result<(KnownRecording, Option<KnownRecording>)> {
        let read = |path: &Path| KnownRecording::read(services, path, self.window);
        let first = read(&self.recording)?;
        Ok((first, self.second.as_deref().map(read).transpose()?))
    }

    /// The scheduler that the recording was made under.
    ///
    /// # Errors
    /// When nothing says it.
    fn under(&self, services: &Services<'_>, known: &KnownRecording) -> Result<Under, UsageError> {
        let name = self.recording.display();
        if let Some(policy) = &self.recorded_under {
            return Ok(Under {
                policy: policy.clone(),
                source: "as --recorded-under says".to_owned(),
            });
        }
        if let Some(release) = self.recorded_on {
            return of_release(release, "--recorded-on");
        }
        let own = &known.header.policy;
        if !known.is_foreign && !OWN.contains(&own.as_str()) {
            let (plain, _) = own.rsplit_once('#').unwrap_or((own, ""));
            if policy::open(services, plain).is_ok() {
                return Ok(Under {
                    policy: plain.to_owned(),
                    source: "as the recording says".to_owned(),
                });
            }
            return Err(UsageError::new(format!(
                "{name} was recorded under `{own}`, which is no built-in policy: say where it is \
                 with --recorded-under"
            )));
        }
        let release = if known.is_foreign {
            known.release.clone()
        } else {
            Some(known.header.machine.kernel.name().to_owned())
        };
        let parsed = release.as_deref().map(Release::parse);
        match (parsed, release) {
            (Some(Ok(parsed)), Some(release)) => of_release(parsed, &format!("Linux {release}")),
            _ => Err(UsageError::new(format!(
                "{name} does not say which kernel it was recorded on: say it with --recorded-on, \
                 such as --recorded-on 5.10, or name the scheduler with --recorded-under"
            ))),
        }
    }
}

fn of_release(release: Release, source: &str) -> Result<Under, UsageError> {
    Ok(Under {
        policy: release.policy()?.to_owned(),
        source: format!("the default of {source}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::tests::FILES;

    #[test]
    fn the_version_says_which_scheduler_a_kernel_has() {
        let cases = [
            ("4.19", "cfs"),
            ("5.10.0-28-amd64", "cfs"),
            ("6.5.13", "cfs"),
            ("6.6", "eevdf"),
            ("6.11-rc3", "eevdf"),
            ("6.12.48+deb13-amd64", "eevdf:delay_dequeue=1"),
            ("7.2", "eevdf:delay_dequeue=1"),
        ];
        for (version, want) in cases {
            let release = Release::parse(version).unwrap();
            assert_eq!(release.policy().unwrap(), want, "{version}");
            policy::open(&FILES, want).unwrap();
        }
        assert!(Release::parse("2.6.39").unwrap().policy().is_err());
        for bad in ["", "5", "five.ten", "5.", ".5", "6.x"] {
            assert!(Release::parse(bad).is_err(), "{bad}");
        }
    }
}
