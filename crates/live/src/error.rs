//! Why something could not be done on the real machine.

use std::io;
use std::path::{Path, PathBuf};

use model::{Advice, Advised};

/// Why something could not be done on the real machine. A policy that the kernel ejects is no
/// error: it is an [`Exit`](model::Exit).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// libbpf does not understand the object.
    #[error("{policy}: libbpf cannot read the object: {source}{}", quoted(.log))]
    Open {
        /// How the user calls the policy.
        policy: String,
        /// What libbpf returned.
        source: libbpf_rs::Error,
        /// What libbpf printed.
        log: String,
    },
    /// The object has no table of callbacks, or several.
    #[error("{policy}: {}", tables_said(.tables))]
    Table {
        /// How the user calls the policy.
        policy: String,
        /// The tables that there are.
        tables: Vec<String>,
    },
    /// No global variable of that name and size.
    #[error("{policy}: no global variable `{name}` of {size} bytes")]
    Variable {
        /// How the user calls the policy.
        policy: String,
        /// The variable.
        name: String,
        /// How many bytes were to be written.
        size: usize,
    },
    /// The kernel refused a program or a map. The log has the verifier's words.
    #[error("{policy}: the kernel refused the object: {source}{}", quoted(.log))]
    Refused {
        /// How the user calls the policy.
        policy: String,
        /// What libbpf returned.
        source: libbpf_rs::Error,
        /// What libbpf printed, with the verifier's log.
        log: String,
    },
    /// The kernel refused to make it the scheduler.
    #[error("{policy}: cannot attach: {source}{}", quoted(.log))]
    Attach {
        /// How the user calls the policy.
        policy: String,
        /// What libbpf returned.
        source: libbpf_rs::Error,
        /// What libbpf printed.
        log: String,
    },
    /// The default scheduler was not back in time.
    #[error("the kernel still says `{state}` {seconds} s after the policy was detached")]
    StillThere {
        /// What `/sys/kernel/sched_ext/state` says.
        state: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The kernel takes its time, and a process was left behind that waits for it.
    #[error("process {pid} still {what} after {seconds} s")]
    Slow {
        /// What the process does.
        what: String,
        /// The process.
        pid: i32,
        /// How long was waited.
        seconds: u64,
    },
    /// A map of the loaded object cannot be read.
    #[error("{policy}: cannot read the map `{map}`: {source}")]
    Map {
        /// How the user calls the policy.
        policy: String,
        /// The map.
        map: String,
        /// What libbpf returned.
        source: libbpf_rs::Error,
    },
    /// A map cannot be shared with other processes, or is not there.
    #[error("{}: {source}", .path.display())]
    Pin {
        /// Where it is pinned, or should be.
        path: PathBuf,
        /// What libbpf returned.
        source: libbpf_rs::Error,
    },
    /// A variable that is not where it should be.
    #[error("{}: no variable of {size} bytes at {offset}", .path.display())]
    Place {
        /// The pinned section.
        path: PathBuf,
        /// Bytes from the section's start.
        offset: usize,
        /// Bytes of the variable.
        size: usize,
    },
    /// An event that is to be recorded is not there.
    #[error("the event `{event}`: {why}")]
    TraceEvent {
        /// What the user wrote.
        event: String,
        /// What is wrong with it.
        why: Advised,
    },
    /// The kernel describes the pages of its trace buffers as none can be.
    #[error("{} does not say how long a page of a trace buffer is", .path.display())]
    TracePage {
        /// The description.
        path: PathBuf,
    },
    /// A trace buffer that is to be larger than the memory allows.
    #[error(
        "a trace buffer of {asked_kib} KiB for each of {cpus} CPUs is more than half of the free \
         memory"
    )]
    TraceBuffer {
        /// What was asked for.
        asked_kib: u64,
        /// What there may be.
        most_kib: u64,
        /// For how many CPUs.
        cpus: u64,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Advice for Error {
    fn advice(&self) -> Option<String> {
        Some(match self {
            Self::StillThere { .. } => "SysRq-S ends it".to_owned(),
            Self::Slow { .. } => "the kernel lets it end when it can".to_owned(),
            Self::TraceBuffer { most_kib, .. } => format!("at most {most_kib} KiB are possible"),
            Self::TraceEvent { why, .. } => return why.advice(),
            _ => return None,
        })
    }
}

impl Error {
    /// Says which file it was.
    pub(crate) fn file(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::File { path, source }
    }
}

/// The end of a log, where the cause is; a verifier may print 100,000 lines before.
fn quoted(text: &str) -> String {
    const LINES: usize = 60;
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let left_out = lines.len().saturating_sub(LINES);
    let mut quoted = String::new();
    if left_out > 0 {
        quoted += &format!("\n({left_out} lines left out)");
    }
    for line in &lines[left_out..] {
        quoted += "\n";
        quoted += line;
    }
    quoted
}

fn tables_said(tables: &[String]) -> String {
    if tables.is_empty() {
        return "no table of callbacks (SEC(\".struct_ops.link\")): not a sched_ext policy"
            .to_owned();
    }
    format!(
        "several tables of callbacks, and none was chosen: {}",
        tables.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_quoted_from_its_end() {
        let log: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let quoted = quoted(&log);
        assert!(
            quoted.starts_with("\n(40 lines left out)\nline 40\n"),
            "{quoted}"
        );
        assert!(quoted.ends_with("\nline 99"), "{quoted}");
        assert_eq!(super::quoted(""), "");
    }
}
