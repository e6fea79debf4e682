//! What a run must show to be like a kernel's debug dump.

use std::path::Path;

use anyhow::Context as _;
use explain::why::{DumpError, DumpShape, Dumped, Fault, Finding, Standing, explain_dumps};
use model::{Advised, Fnv1a};
use workload::generate::WantedTask;
use workload::{Code, Instr, Operation, Workload};

use crate::input;
use crate::services::Services;
use crate::words::counted;

/// The signature of a dump, and where the search for it begins.
#[derive(Clone, Debug)]
pub struct Like {
    finding: Finding,
    shape: DumpShape,
    /// Of the text.
    hash: u64,
}

/// Why a search for a dump's like is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LikeError {
    /// It is none.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// It shows no decision of the policy to search for.
    #[error(transparent)]
    NoFault(Advised),
}

impl model::Advice for LikeError {
    fn advice(&self) -> Option<String> {
        match self {
            Self::Dump(error) => error.advice(),
            Self::NoFault(advised) => advised.advice(),
        }
    }
}

impl Like {
    /// Reads the dump in this file.
    ///
    /// # Errors
    /// When it cannot be read, and the errors of [`Like::read`]; the message names it.
    pub fn open(services: &Services<'_>, file: &Path) -> anyhow::Result<Self> {
        let bytes = input::bytes(services, file, input::OBJECT)?;
        let text = String::from_utf8_lossy(&bytes);
        Self::read(&text).with_context(|| input::shown(file))
    }

    /// Reads a text as `explain --dump` does. Of several dumps the last one with a fault counts.
    ///
    /// # Errors
    /// When the text is no dump, or shows no fault that a run of the policy could have.
    pub fn read(text: &str) -> Result<Self, LikeError> {
        let dumps = explain_dumps(text)?;
        let is_searched =
            |it: &&Dumped| !matches!(it.finding.fault, Fault::Waited | Fault::Outranked);
        let last = dumps.each.iter().rev().find(is_searched);
        let Some(dumped) = last else {
            let shown = dumps
                .each
                .last()
                .map_or(Fault::Waited, |it| it.finding.fault);
            return Err(LikeError::NoFault(Advised::new(
                format!("the dump shows `{}`: {}", shown.word(), shown.sentence()),
                "no decision of a policy is to be searched for; see `runslice explain --dump`",
            )));
        };
        let mut hash = Fnv1a::new();
        hash.write(text.as_bytes());
        Ok(Self {
            finding: dumped.finding.clone(),
            shape: dumped.shape.clone(),
            hash: hash.value(),
        })
    }

    /// CPUs of the dump; `None` if it names none.
    #[must_use]
    pub fn cpus(&self) -> Option<u16> {
        (self.shape.cpus > 0).then_some(self.shape.cpus)
    }

    /// The task that waited, for a load.
    #[must_use]
    pub fn wanted(&self) -> WantedTask {
        let victim = self.finding.victim.as_ref();
        WantedTask {
            name: victim.map_or_else(String::new, |victim| victim.name.clone()),
            cpus: self.shape.allowed.clone().unwrap_or_default(),
            is_pinned: self.shape.is_pinned,
            has_above: self.shape.has_above,
            runnable: self.shape.runnable as u64,
        }
    }

    /// For people: what is searched for.
    #[must_use]
    pub fn text(&self) -> String {
        let mut words = format!("`{}`", self.finding.fault.word());
        if let Some(victim) = &self.finding.victim {
            words += match victim.standing {
                Standing::Queue(_) => " of a task in a queue of the policy",
                Standing::Global => " of a task in the global queue",
                Standing::Local(_) => " of a task in a CPU's local queue",
                Standing::Nowhere => " of a task in no queue",
                Standing::Elsewhere | Standing::Unknown => " of a task",
            };
            if self.shape.is_pinned {
                words += " that may not migrate";
            }
        }
        match self.cpus() {
            Some(cpus) => words + ", first on " + &counted(cpus.into(), "CPU"),
            None => words,
        }
    }

    /// Whether `finding`, of a run of `load`, has the signature: a class that the dump leaves
    /// possible, the same kind of queue, the kernel's message where that is the fact, and a victim
    /// in a section without migration where the dump's was.
    #[must_use]
    pub fn is_shown_by(&self, finding: &Finding, load: &Workload) -> bool {
        let is_pinned = || {
            let victim = finding.victim.as_ref();
            victim.is_some_and(|victim| may_be_pinned(&victim.name, load))
        };
        may_be(self.finding.fault, finding)
            && is_same_place(&self.finding, finding)
            && is_same_message(&self.finding, finding)
            && (!self.shape.is_pinned || is_pinned())
    }

    /// What a search must have in common with the one that it continues.
    pub(super) fn key(&self) -> String {
        format!(", like {:016x}", self.hash)
    }
}

/// Whether a run's finding is of a class that the dump's leaves possible: a dump shows where a task
/// is, and not who has looked there.
fn may_be(of_dump: Fault, finding: &Finding) -> bool {
    let found = finding.fault;
    match of_dump {
        Fault::StuckInQueue => matches!(
            found,
            Fault::StuckInQueue
                | Fault::UnreadQueue
                | Fault::UnreachableQueue
                | Fault::LocalRefilled
                | Fault::Skipped
                | Fault::PassedOver
                | Fault::ForgottenKick
        ),
        Fault::CpuHeld => matches!(
            found,
            Fault::CpuHeld | Fault::LocalRefilled | Fault::PassedOver
        ),
        Fault::UnreachableQueue => matches!(found, Fault::UnreachableQueue | Fault::UnreadQueue),
        Fault::Lost => matches!(found, Fault::Lost | Fault::InsertIgnored),
        // Somebody waits, and more the text does not tell.
        Fault::Stall | Fault::Unknown => {
            let victim = finding.victim.as_ref();
            victim.is_some_and(|victim| victim.since.is_some())
        }
        _ => found == of_dump,
    }
}

fn is_same_place(of_dump: &Finding, finding: &Finding) -> bool {
    let standing = |finding: &Finding| {
        let victim = finding.victim.as_ref();
        victim.map_or(Standing::Unknown, |victim| victim.standing.clone())
    };
    match (standing(of_dump), standing(finding)) {
        (Standing::Unknown | Standing::Elsewhere, _) => true,
        (one, other) => std::mem::discriminant(&one) == std::mem::discriminant(&other),
    }
}

/// The message is the fact where a policy or a kernel function said it. Names and numbers in it
/// are those of one run.
fn is_same_message(of_dump: &Finding, finding: &Finding) -> bool {
    let is_fact = matches!(of_dump.fault, Fault::OwnError | Fault::Misuse);
    let words = |finding: &Finding| -> Vec<String> {
        let message = finding.message.as_deref().unwrap_or_default();
        let words = message.split_whitespace();
        let words = words.filter(|word| !word.contains(|it: char| it.is_ascii_digit()));
        words.map(str::to_owned).collect()
    };
    !is_fact || words(of_dump) == words(finding)
}

/// Whether tasks of the group of `victim` are at times in a section without migration.
fn may_be_pinned(victim: &str, load: &Workload) -> bool {
    let is_of = |name: &str| {
        let rest = victim.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let mut groups = load.groups.iter().filter(|group| is_of(&group.name));
    groups.any(|group| {
        let code = Code::new(&group.body, group.variables);
        let mut instrs = code.instrs.iter();
        group.migration_disabled
            || instrs.any(|it| matches!(it, Instr::Do(Operation::MigrateDisable)))
    })
}

#[cfg(test)]
#[path = "like/tests.rs"]
mod tests;
