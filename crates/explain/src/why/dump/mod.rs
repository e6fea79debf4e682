//! What a kernel's debug dump tells, or the lines of a log about a policy's end.
//!
//! A dump shows one moment: where each runnable task is and who has each CPU. It has no history,
//! and a kernel cuts it at the length that the policy asks for, 32 KiB by default.

mod ending;
mod mask;
mod missing;
mod name;
mod read;
mod shape;
#[cfg(test)]
mod tests;
mod waits;

use model::{Advice, Nanos, SimTime, TaskId};

use super::finding::{Fault, Finding, Standing, Victim};
use ending::Ending;
use read::Dump;
pub use shape::DumpShape;

/// Bytes of a text that are read; kernels write far less.
const MOST: usize = 16 << 20;

/// Why a text cannot be explained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// Neither the head nor a CPU nor a task was found, and no log of an ejection.
    #[error(
        "not a dump of sched_ext: no line says `triggered exit kind` or `EXIT: `, and none shows \
         a CPU or a task"
    )]
    NotADump,
    /// The policy was taken off as somebody asked.
    #[error("the scheduler was not ejected: its end was `{0}`")]
    Ended(String),
    /// More than any kernel writes.
    #[error("the dump has more than 16 MiB")]
    TooLong,
}

impl Advice for DumpError {
    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::NotADump => {
                "give the text below the line `DEBUG DUMP` that the scheduler's program printed"
            }
            Self::TooLong => "give the part from the line `DEBUG DUMP` on",
            Self::Ended(_) => return None,
        };
        Some(advice.to_owned())
    }
}

/// All dumps of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dumps {
    /// In the order of the text; at least one.
    pub each: Vec<Dumped>,
    /// How many before them are not explained.
    pub left_out: usize,
}

/// What one dump tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// What must be known before anything else.
    pub before: Vec<String>,
    /// The class, and who suffers.
    pub finding: Finding,
    /// The class is the one that fits best; the dump does not prove it.
    pub is_likely: bool,
    /// What else the text shows.
    pub seen: Vec<String>,
    /// What to do, where the dump says more than the class.
    pub advice: Option<&'static str>,
    /// What the dump does not tell.
    pub missing: Vec<String>,
    /// The machine and the load.
    pub shape: DumpShape,
}

/// Explains each dump of a text, and says what is not in it.
///
/// # Errors
/// If the text has no dump and tells of no ejection.
pub fn explain_dumps(text: &str) -> Result<Dumps, DumpError> {
    if text.len() > MOST {
        return Err(DumpError::TooLong);
    }
    let (mut dumps, left_out) = read::dumps(text);
    let is_plain = |dump: &Dump| {
        let ending = dump.ending.as_ref();
        dump.is_log && ending.is_some_and(|it| it.kind == model::ExitKind::Unreg)
    };
    let ended = dumps.iter().find(|dump| is_plain(dump));
    let ended = ended.and_then(|dump| Some(dump.ending.as_ref()?.words()));
    dumps.retain(|dump| !is_plain(dump));
    if dumps.is_empty() {
        return Err(ended.map_or(DumpError::NotADump, DumpError::Ended));
    }
    Ok(Dumps {
        each: dumps.iter().map(explain).collect(),
        left_out,
    })
}

/// The exit's kind and message decide where they can; else the task that waits does.
fn explain(dump: &Dump) -> Dumped {
    let ending = dump.ending.as_ref();
    let mut dumped = match ending.and_then(|ending| Some((ending, ending.fault()?))) {
        Some((ending, fault)) => misuse(dump, ending, fault),
        None if dump.is_log => told(ending),
        None => waits::stall(dump),
    };
    dumped.finding.message = ending.map(Ending::words);
    if dumped.finding.fault == Fault::Unknown {
        // Whoever has a dump cannot make its run again.
        dumped.advice = Some(
            "Give all of the dump, with the lines of the task that waits and of the CPUs. A larger \
             `exit_dump_len` in the policy's table keeps more.",
        );
    }
    if let Some(callback) = &dump.callback {
        let words = format!("the backtrace names `{callback}` of the policy");
        dumped.seen.push(words);
    }
    dumped.missing.extend(missing::cut(dump));
    let victim = dumped.finding.victim.as_ref();
    dumped.shape = DumpShape::of(dump, victim.map(|victim| victim.pid));
    dumped
}

/// A misuse that ended the policy at once. Nobody starves then.
fn misuse(dump: &Dump, ending: &Ending, fault: Fault) -> Dumped {
    let mut dumped = blank(fault);
    let named = ending.task();
    let task = named.and_then(|(_, pid)| dump.tasks.iter().find(|task| task.pid == pid));
    dumped.finding.victim = named.map(|(name, pid)| Victim {
        waited: Nanos::ZERO,
        ..victim(name, pid, task.map_or(Standing::Unknown, waits::standing))
    });
    if fault == Fault::CpuNotAllowed
        && let Some(cpu) = ending.cpu()
    {
        let may = task.and_then(read::Task::allowed);
        let may = may.map_or_else(String::new, |cpus| {
            format!("; it may use CPU {}", missing::numbers(&cpus))
        });
        dumped
            .seen
            .push(format!("the task was sent to CPU {cpu}{may}"));
    }
    if ending.is_lockup() {
        dumped.is_likely = true;
        dumped.before.push(
            "the kernel's lockup detector ended the policy: a CPU did not come back from the \
             kernel, from a callback of the policy or from a lock"
                .to_owned(),
        );
    }
    dumped
        .missing
        .push("which line did that: not in a dump".to_owned());
    dumped
}

/// The end of a policy of which only a log tells.
fn told(ending: Option<&Ending>) -> Dumped {
    let mut dumped = blank(Fault::Stall);
    let Some(ending) = ending else { return dumped };
    let waited = ending.waited_ms().unwrap_or(0);
    dumped.finding.victim = ending.task().map(|(name, pid)| Victim {
        waited: Nanos::from_millis(waited.min(u64::MAX / 1_000_000)),
        ..victim(name, pid, Standing::Unknown)
    });
    dumped.before.extend(waits::of_watchdog(ending, None));
    dumped
}

/// A finding about nobody yet.
fn blank(fault: Fault) -> Dumped {
    Dumped {
        before: Vec::new(),
        finding: Finding::blank(fault, SimTime::ZERO),
        is_likely: false,
        seen: Vec::new(),
        advice: None,
        missing: Vec::new(),
        shape: DumpShape::default(),
    }
}

fn victim(name: &str, pid: u32, standing: Standing) -> Victim {
    Victim {
        task: TaskId::NONE,
        name: name.to_owned(),
        pid,
        since: None,
        waited: Nanos::ZERO,
        standing,
        put: None,
        trigger: None,
    }
}
