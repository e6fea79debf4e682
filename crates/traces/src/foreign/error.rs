//! Why a trace could not be read.

use std::io;

use model::Advice;

use super::stream::MOST_CPUS;

/// Why a trace could not be read. `offset` counts bytes from the begin of the file, or of the
/// unpacked section that the message names.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is in no format that is known.
    #[error(
        "neither perf.data, trace.dat, a Perfetto trace, nor text of `perf script`, `trace-cmd \
         report` or ftrace"
    )]
    Unknown {
        /// What it seems to be, and what to do.
        hint: Option<&'static str>,
    },
    /// No event of the scheduler was found.
    #[error("{}", no_switch(*records))]
    NoSwitches {
        /// Records that were understood.
        records: u64,
    },
    /// No switch could be read, and records are damaged.
    #[error("no `sched_switch` can be read: {}", damaged(*records, *line))]
    Damaged {
        /// How many.
        records: u64,
        /// The line of the first one, in a text.
        line: Option<u64>,
    },
    /// All records are of CPUs that no machine has.
    #[error("{records} records, none of a CPU below {MOST_CPUS}; the first is of CPU {cpu}")]
    Cpus {
        /// The CPU of the first record.
        cpu: u32,
        /// Records that could not be used.
        records: u64,
    },
    /// The file ends too early.
    #[error("byte {offset}: the file ends within {what}")]
    Truncated {
        /// Where what is incomplete begins.
        offset: u64,
        /// What is incomplete.
        what: &'static str,
    },
    /// Something has a length that cannot be.
    #[error("byte {offset}: {what} claims {found} bytes")]
    TooLong {
        /// Where the length stands.
        offset: u64,
        /// What has the length.
        what: &'static str,
        /// The length.
        found: u64,
        /// The greatest that is accepted.
        most: u64,
    },
    /// Something packed becomes longer than any recorder packs.
    #[error("byte {offset}: {what} of {packed} bytes becomes more than {most} bytes")]
    Bomb {
        /// Where it stands.
        offset: u64,
        /// What is packed.
        what: &'static str,
        /// Its length in the file.
        packed: u64,
        /// The most that is accepted of it here.
        most: u64,
    },
    /// The trace has more of something than can be kept.
    #[error("byte {offset}: {what}")]
    TooMany {
        /// Where the first one stands that is too much.
        offset: u64,
        /// What there is too much of.
        what: &'static str,
        /// How many are accepted.
        most: u64,
    },
    /// The trace names more threads than can be kept.
    #[error("more than {most} threads")]
    Threads {
        /// How many are accepted.
        most: usize,
    },
    /// Something is not as the format demands.
    #[error("byte {offset}: {what}")]
    Malformed {
        /// Where it stands.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The file describes an event without a field that is needed.
    #[error("byte {offset}: the description of `{event}` has no usable field `{field}`")]
    Field {
        /// Where the description stands.
        offset: u64,
        /// The event.
        event: &'static str,
        /// Its field.
        field: &'static str,
    },
    /// The trace has a clock that cannot be converted into nanoseconds.
    #[error("the trace's clock is `{clock}`, which does not count time")]
    Clock {
        /// The clock's name.
        clock: String,
    },
    /// The system refused to read on.
    #[error("byte {offset}: {source}")]
    Io {
        /// How far reading came.
        offset: u64,
        /// What the system says.
        source: io::Error,
    },
}

fn no_switch(records: u64) -> String {
    match records {
        0 => "no line or record is an event of a kernel: no `sched_switch`".to_owned(),
        1 => "1 record, but it is no `sched_switch`".to_owned(),
        _ => format!("{records} records, but no `sched_switch` among them"),
    }
}

fn damaged(records: u64, line: Option<u64>) -> String {
    let many = match records {
        1 => "1 damaged record".to_owned(),
        _ => format!("{records} damaged records"),
    };
    many + &line.map_or_else(String::new, |line| format!(", the first in line {line}"))
}

impl Advice for Error {
    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Unknown { hint } => {
                hint.unwrap_or("record with `runslice record`, or see docs/import.md")
            }
            Self::NoSwitches { .. } => {
                "record with the events sched_switch, sched_waking, sched_wakeup, \
                 sched_wakeup_new and sched_process_fork"
            }
            Self::Damaged { .. } => {
                "the trace is cut or edited, or of a form that docs/import.md does not list"
            }
            Self::Cpus { .. } => "the trace is damaged or edited; record it again",
            Self::TooLong { most, .. } => return Some(format!("at most {most} are possible")),
            Self::TooMany { most, .. } => return Some(format!("at most {most} are read")),
            Self::Bomb { .. } => {
                "no recorder packs so much, so it is damaged or made to fill memory"
            }
            Self::Threads { .. } => "choose a part of the trace with --window",
            Self::Clock { .. } => "record with `mono`",
            Self::Io { source, .. } => return model::to_read(source),
            Self::Truncated { .. } | Self::Malformed { .. } | Self::Field { .. } => return None,
        };
        Some(advice.to_owned())
    }
}
