//! How a policy ended, by what a kernel, a log or the policy's program printed.

use model::{CpuId, Exit, ExitKind, SimTime};

use super::name::name_of;
use crate::why::Fault;
use crate::why::message::fault_of;

/// What marks the first line of a dump (kernel 6.18, kernel/sched/ext.c).
const HEAD: &str = " triggered exit kind ";
/// How the kernel's log tells of an ending.
const LOG: &str = "sched_ext: BPF scheduler \"";
/// What scx's programs print when their policy is gone (scx, `user_exit_info.h`).
const PROGRAM: &str = "EXIT: ";
/// Bytes of a message that are kept: as many as a kernel keeps (`SCX_EXIT_MSG_LEN`).
const LONGEST: usize = 1024;
/// What the kernel's lockup detectors say (kernel 6.19, `handle_lockup()`).
const LOCKUPS: [&str; 2] = ["soft lockup", "hard lockup"];

/// How a policy ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub kind: ExitKind,
    /// The kernel's message; empty if the text does not tell.
    pub message: String,
}

/// The number in the first line of a dump.
pub fn kind_of_head(words: &str) -> Option<u32> {
    let (_, rest) = words.split_once(HEAD)?;
    let end = rest.find(|it: char| !it.is_ascii_digit());
    let digits = &rest[..end.unwrap_or(rest.len())];
    (!digits.is_empty()).then(|| digits.parse().unwrap_or(u32::MAX))
}

impl Ending {
    /// By the kind of a dump's first line, and the line below it: `  runtime error (...)`.
    pub fn of_dump(number: u32, line: &str) -> Self {
        let said = Self::of_reason(line);
        let kind = ExitKind::of(number).or_else(|| said.as_ref().map(|it| it.kind));
        // Errors of later kernels are errors.
        let unknown = if number < ExitKind::Error as u32 {
            ExitKind::UnregKern
        } else {
            ExitKind::Error
        };
        Self {
            kind: kind.unwrap_or(unknown),
            message: said.map_or_else(|| cut(line), |it| it.message),
        }
    }

    /// By a line of the kernel's log, whose message stands `near` behind it, or of the policy's
    /// program.
    pub fn of_log<'a>(words: &'a str, near: impl Iterator<Item = &'a str>) -> Option<Self> {
        let Some((_, rest)) = words.split_once(LOG) else {
            let (before, rest) = words.split_once(PROGRAM)?;
            let is_begin = before.is_empty() || before.ends_with([' ', '>']);
            return Self::of_reason(rest).filter(|_| is_begin);
        };
        let (name, rest) = rest.split_once('"')?;
        let (_, rest) = rest.split_once(" disabled (")?;
        let kind = Self::of_reason(rest)?.kind;
        let mark = format!("sched_ext: {name}: ");
        // A kernel's lines can run into each other.
        let mut lines = std::iter::once(rest).chain(near);
        let said = lines.find_map(|line| line.split_once(&mark));
        Some(Self {
            kind,
            message: said.map_or_else(String::new, |(_, said)| cut(said.trim())),
        })
    }

    /// `runnable task stall (a[1] failed to run for 5.0s)`, also with words behind it.
    fn of_reason(words: &str) -> Option<Self> {
        let words = words.trim_start();
        let (kind, rest) = ExitKind::ALL
            .into_iter()
            .find_map(|kind| Some((kind, words.strip_prefix(kind.reason())?)))?;
        let inner = rest.strip_prefix(" (").map(|rest| match rest.rfind(')') {
            Some(end) => &rest[..end],
            None => rest,
        });
        Some(Self {
            kind,
            message: cut(inner.unwrap_or_default()),
        })
    }

    /// As the kernel prints it.
    pub fn words(&self) -> String {
        match self.message.as_str() {
            "" => self.kind.reason().to_owned(),
            message => format!("{} ({message})", self.kind.reason()),
        }
    }

    /// The class; `None` of a stall, where the cause stands elsewhere.
    pub fn fault(&self) -> Option<Fault> {
        if self.kind == ExitKind::ErrorStall {
            return None;
        }
        if self.kind == ExitKind::Error && self.is_lockup() {
            return Some(Fault::EndlessLoop);
        }
        Some(fault_of(&Exit {
            kind: self.kind,
            code: 0,
            message: self.message.clone(),
            fault: None,
            time: SimTime::ZERO,
        }))
    }

    /// A CPU did not come back from the kernel.
    pub fn is_lockup(&self) -> bool {
        LOCKUPS.iter().any(|words| self.message.contains(words))
    }

    /// The watchdog's own work did not run.
    pub fn is_of_watchdog(&self) -> bool {
        self.kind == ExitKind::ErrorStall && self.message.contains("watchdog failed to check in")
    }

    /// The task that the message names: `... for job[311]`, `job[311] failed to run for 5.0s`,
    /// `... migration disabled job[311] from CPU 5 to 0`. None of it is the kernel's in a message
    /// of the policy's own.
    pub fn task(&self) -> Option<(&str, u32)> {
        let said = self.message.as_str();
        let words = match self.kind {
            ExitKind::ErrorStall => said.split_once(" failed to run")?.0,
            ExitKind::Error => {
                let (_, rest) = said
                    .split_once("migration disabled ")
                    .or_else(|| said.rsplit_once(" for "))?;
                &rest[..=rest.rfind(']')?]
            }
            _ => return None,
        };
        name_of(words)
    }

    /// The time at the end of a stall's message, milliseconds: `... for 5.048s`.
    pub fn waited_ms(&self) -> Option<u64> {
        let (_, time) = self.message.rsplit_once(" for ")?;
        let (seconds, part) = time.strip_suffix('s')?.split_once('.')?;
        let seconds: u64 = seconds.parse().ok()?;
        let part: u64 = format!("{part:0<3}").get(..3)?.parse().ok()?;
        seconds.checked_mul(1000)?.checked_add(part)
    }

    /// The CPU to which the task was sent, or which does not exist.
    pub fn cpu(&self) -> Option<CpuId> {
        let lower = self.message.to_ascii_lowercase();
        let (_, rest) = lower
            .split_once("target cpu ")
            .or_else(|| lower.split_once(" to "))?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().map(CpuId)
    }
}

fn cut(words: &str) -> String {
    words.chars().take(LONGEST).collect()
}
