//! A case, as its file says it.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use model::{MachineSpec, Nanos, PolicySpec};
use workload::RunSpec;

use super::signature::CaseSignature;
use crate::machine::MachineChange;
use crate::policy::Preparation;
use crate::services::Services;
use crate::shrink::Case;
use crate::workload_arg::Written;

/// A bug of a published scheduler.
#[derive(Clone, Debug)]
pub struct PublicCase {
    /// The file's name without its ending.
    pub name: String,
    /// The scheduler, as its program is called.
    pub scheduler: String,
    /// What its users saw, in a few words.
    pub title: String,
    /// Where it was reported and mended.
    pub source: Vec<String>,
    /// What was seen there.
    pub seen: String,
    /// What brings it about.
    pub trigger: String,
    /// Versions that have the bug: releases, or commits as `git-HASH`.
    pub bad: Vec<String>,
    /// Versions that do not have it: on both sides, where they exist.
    pub good: Vec<String>,
    /// What brought the bug, if that is known.
    pub broken_by: Option<String>,
    /// What mended it, if that is known.
    pub fixed_by: Option<String>,
    /// When the first bad version was published.
    pub dated: Option<Day>,
    /// When this file was written.
    pub added: Day,
    /// The compiler that its object needs; `None`: any.
    pub clang: Option<String>,
    /// What it takes of a kernel's configuration.
    pub config: Vec<String>,
    /// What is known of it here.
    pub status: CaseStatus,
    /// Why it is not shown.
    pub reason: Option<String>,
    /// The kernel on which the same was seen.
    pub seen_on_kernel: Option<String>,
    /// How it is shown; `None` if it is only listed.
    pub run: Option<CaseRun>,
}

/// How a case is shown.
#[derive(Clone, Debug)]
pub struct CaseRun {
    /// The words of a program's command behind its name.
    pub arguments: Vec<String>,
    /// What is set in an object; a program does that by itself.
    pub preparation: Preparation,
    /// Under which load the bad versions show it.
    pub load: CaseLoad,
    /// Loads like it, under which the good versions must be clean, too.
    pub near: Vec<CaseLoad>,
    /// What must be seen of the bad versions.
    pub shows: CaseSignature,
}

/// A load on a machine.
#[derive(Clone, Debug)]
pub struct CaseLoad {
    /// The load.
    pub written: Written,
    /// Its parameters that are set.
    pub scale: Vec<(String, i64)>,
    /// When it ends at the latest.
    pub duration: Option<Nanos>,
    /// What differs from the machine of the load's file.
    pub machine: MachineChange,
}

/// What is known of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseStatus {
    /// The bad versions show it, and the good ones are clean.
    Shown,
    /// A ratio has the right direction, and not the size that was reported.
    Direction,
    /// It was tried, and does not show.
    NotShown,
    /// Nobody has tried it yet.
    NotRun,
    /// A version cannot be built.
    CannotBuild,
    /// It takes hardware that is not simulated.
    NeedsHardware,
    /// The fault is the kernel's.
    KernelFault,
}

impl CaseStatus {
    /// Every status.
    pub const ALL: [Self; 7] = [
        Self::Shown,
        Self::Direction,
        Self::NotShown,
        Self::NotRun,
        Self::CannotBuild,
        Self::NeedsHardware,
        Self::KernelFault,
    ];

    /// As a file writes it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Direction => "direction",
            Self::NotShown => "not shown",
            Self::NotRun => "not run",
            Self::CannotBuild => "cannot build",
            Self::NeedsHardware => "needs hardware",
            Self::KernelFault => "kernel fault",
        }
    }

    /// Whether runs must show the case.
    #[must_use]
    pub const fn is_claim(self) -> bool {
        matches!(self, Self::Shown | Self::Direction)
    }
}

impl CaseLoad {
    /// The run of `policy` with this load, and with the machine of its bundle if it has one.
    ///
    /// # Errors
    /// When the load or the machine is wrong; the message names file, line and column.
    pub fn spec(
        &self,
        services: &Services<'_>,
        (policy, machine): (&PolicySpec, Option<&MachineSpec>),
        seed: u64,
    ) -> anyhow::Result<RunSpec> {
        let folder = Path::new(&self.written.file).parent();
        let folder = folder.unwrap_or(Path::new(""));
        let workload = self.written.parse_beside(services, &self.scale, folder)?;
        let usual = machine.unwrap_or(&workload.machine);
        let case = Case {
            policy: policy.clone(),
            machine: self.machine.change(services, usual)?,
            workload: self.written.clone(),
            scale: self.scale.clone(),
            seed,
            duration: self.duration,
        };
        case.spec(services)
    }
}

/// A day, as `2026-05-01`. Days have the order of the calendar.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(String);

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no day, such as 2026-05-01");
        let form = text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        if text.len() != 10 || !form {
            return Err(wrong());
        }
        let within = |part: &str, most| (1..=most).contains(&part.parse().unwrap_or(0_u8));
        if within(&text[5..7], 12) && within(&text[8..], 31) {
            Ok(Self(text.to_owned()))
        } else {
            Err(wrong())
        }
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
