//! `runslice record [-- COMMAND]`.

mod by_bpf;
mod file;
mod outcome;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use live::preflight::{PreflightFinding, Severity};
use live::tracefs::{
    AnonymousCounts, RecorderEnd, TraceFacts, TraceOptions, TraceRecorder, WantedEvents, obstacles,
};
use live::{Timed, process, snapshot};
use model::{Nanos, Snapshot, span};
use show::format::MEASURED;

use crate::exit::{Status, UnsupportedError};
use crate::interrupt::{self, Again};
use crate::on_kernel::attach::in_words;
use crate::on_kernel::{command, running};
use crate::report::{Format, format_of};
use file::ResultFile;
use outcome::RecordOutcome;

/// From one look at the recording, the command and signals to the next.
const PAUSE: Duration = Duration::from_millis(50);
/// Bytes in a MiB.
const MIB: u64 = 1 << 20;

/// Arguments of `runslice record`.
#[derive(Debug, Args)]
pub struct Record {
    /// File for the recording, for `sim --from`. Default: `trace.dat`, with BPF `events.jsonl`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// End after this time, such as 30s. A command that still runs goes on.
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    length: Option<Nanos>,

    /// How to record: through tracefs as a trace.dat, which trace-cmd reads, too; or
    /// with BPF as a file of events, on kernels from 6.18 on. Default: tracefs where it can be
    /// used.
    #[arg(long, value_enum)]
    with: Option<With>,

    /// Also record what the attached policy decides, with the lines of its source, for
    /// `explain --events`. With BPF only.
    #[arg(long)]
    decisions: bool,

    /// Leave out interrupts and timers. The file is smaller, and a sleep by clock is then not told
    /// from work that comes from outside.
    #[arg(long)]
    no_interrupts: bool,

    /// Also record the system calls of locks (futex).
    #[arg(long)]
    futex: bool,

    /// Also record this event of the kernel, such as `block:block_rq_issue`, or all events of a
    /// system, such as irq. May be repeated.
    #[arg(long, value_name = "EVENT")]
    event: Vec<String>,

    /// Replace names, paths, groups and numbers of threads by codes, the same one for the same
    /// thing. Names of the kernel's own threads and of interrupts stay, and so do numbers at the
    /// ends of names, times, CPUs, priorities, weights and the kernel's release.
    #[arg(long, conflicts_with_all = ["event", "futex", "decisions"])]
    anonymous: bool,

    /// Size of each CPU's trace buffer, in MiB. Default: 8, less where memory is short.
    #[arg(long, value_name = "MIB")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1024))]
    buffer: Option<u64>,

    /// End when the recording has so many MiB.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    most: u64,

    /// Output format of what is said at the end.
    #[arg(long, value_parser = format_of(MEASURED), default_value_t = Format::Human)]
    format: Format,

    /// Read the system files below this folder instead of `/`.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,

    /// Command to run while recording. The recording ends with it.
    #[arg(last = true)]
    command: Vec<String>,
}

/// A way to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum With {
    /// The kernel's trace files.
    Tracefs,
    /// Tracing programs.
    Bpf,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Its time was over.
    Time,
    /// The command ended.
    Command,
    /// A signal came.
    Signal,
    /// It has as much as it may have, or as the disk holds.
    Itself,
}

/// What was waited for.
struct Waited {
    reason: Reason,
    child: Option<Timed>,
}

/// Records, writes the file and says what it has.
///
/// # Errors
/// When the machine does not let itself be recorded, or the file cannot be written.
pub fn run(request: &Record) -> anyhow::Result<Status> {
    command::check(&request.command)?;
    let facts = TraceFacts::below(&request.root);
    let with = choose(request, &facts)?;
    if with == With::Bpf {
        request.refuse_for_bpf()?;
    }
    let usual = if with == With::Tracefs {
        "trace.dat"
    } else {
        "events.jsonl"
    };
    let file = request.output.as_deref().unwrap_or(Path::new(usual));
    let file = ResultFile::at(file)?;
    process::catch_signals();
    // Before the recording: what looks at the threads is no part of the load.
    let snapshot = snapshot::begin(&request.root, running::hz());
    match (with, &facts.tracefs) {
        (With::Tracefs, Some(tracefs)) => by_tracefs(request, tracefs, file, snapshot),
        _ => by_bpf::record(request, file, &snapshot),
    }
}

/// The way to record.
fn choose(request: &Record, facts: &TraceFacts) -> anyhow::Result<With> {
    let tracefs = obstacles(facts);
    let bpf = || by_bpf::obstacles(&request.root);
    let refuse = |findings: &[PreflightFinding]| {
        let told: Vec<String> = findings.iter().map(in_words).collect();
        Err(UnsupportedError::new(told.join("\n")).into())
    };
    let wanted = match request.with {
        Some(With::Tracefs) if request.decisions => {
            let message = "--decisions is for recordings with BPF: leave out --with tracefs";
            return Err(crate::exit::UsageError::new(message).into());
        }
        None if request.decisions => Some(With::Bpf),
        with => with,
    };
    match wanted {
        Some(With::Tracefs) if !tracefs.is_empty() => refuse(&tracefs),
        Some(With::Bpf) => match bpf() {
            findings if findings.is_empty() => Ok(With::Bpf),
            findings => refuse(&findings),
        },
        _ if tracefs.is_empty() => Ok(With::Tracefs),
        _ => {
            let findings = bpf();
            if findings.is_empty() {
                say(&format!("with BPF: {}", tracefs[0].what));
                return Ok(With::Bpf);
            }
            refuse(&[tracefs, findings].concat())
        }
    }
}

fn by_tracefs(
    request: &Record,
    tracefs: &Path,
    file: ResultFile,
    mut snapshot: Snapshot,
) -> anyhow::Result<Status> {
    let wanted = WantedEvents {
        interrupts: !request.no_interrupts,
        futex: request.futex,
        named: request.event.clone(),
    };
    let recorder = TraceRecorder::start(&TraceOptions {
        root: &request.root,
        tracefs,
        folder: file.folder(),
        wanted: &wanted,
        buffer_kib: request.buffer.map(|mib| mib * 1024),
        bytes_most: request.most * MIB,
    })?;
    let waited = request.wait(&|| recorder.ended().is_some())?;
    let mut recorded = recorder.stop()?;
    snapshot::end(&mut snapshot, &request.root);
    let threads = [&snapshot.begin, &snapshot.end].map(|it| it.threads.iter());
    let names = threads.into_iter().flatten();
    recorded.name(names.map(|thread| (thread.pid, thread.comm.as_str())));
    if request.anonymous {
        let counts = recorded.anonymise(&mut snapshot);
        say(&in_codes(&counts.context("the recording")?));
    }
    let cost = recorded.switch_cost.map(|cost| cost.as_nanos());
    snapshot.switch_ns = cost.and_then(|cost| cost.try_into().ok());
    let mut outcome = RecordOutcome::of(&recorded, &snapshot);
    outcome.warn(&recorded, &snapshot);
    let kernel = format!("Linux {}", snapshot.kernel);
    let json = serde_json::to_vec(&snapshot)?;
    let path = file.path().to_owned();
    outcome.file_bytes = file.write(|to| recorded.write(to, &kernel, &json))?;
    request.finish(&outcome, &path, waited)
}

impl Record {
    /// Options that only tracefs has.
    fn refuse_for_bpf(&self) -> anyhow::Result<()> {
        let given = [
            (self.no_interrupts, "--no-interrupts"),
            (self.futex, "--futex"),
            (!self.event.is_empty(), "--event"),
            (self.anonymous, "--anonymous"),
            (self.buffer.is_some(), "--buffer"),
        ];
        match given.iter().find(|(is_given, _)| *is_given) {
            None => Ok(()),
            Some((_, option)) => {
                let message = format!("{option} is for recordings through tracefs");
                Err(crate::exit::UsageError::new(message).into())
            }
        }
    }

    /// Starts the command, and waits until something ends the recording.
    fn wait(&self, is_over: &dyn Fn() -> bool) -> anyhow::Result<Waited> {
        let began = Instant::now();
        let mut child = command::start(&self.command, false)?;
        if child.is_none() && self.length.is_none() {
            say("recording until Ctrl-C");
        }
        let length = self.length.map(|length| Duration::from_nanos(length.get()));
        let reason = loop {
            if process::signal().is_some() {
                break Reason::Signal;
            }
            if is_over() {
                break Reason::Itself;
            }
            let left = length.map(|length| length.saturating_sub(began.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                break Reason::Time;
            }
            let pause = left.unwrap_or(PAUSE).min(PAUSE);
            match &mut child {
                // That it cannot be watched is told when its end is waited for.
                Some(child) => {
                    if !matches!(child.wait(pause), Ok(None)) {
                        break Reason::Command;
                    }
                }
                None => thread::sleep(pause),
            }
        };
        Ok(Waited { reason, child })
    }

    /// Says what was recorded, waits for a command that goes on, and finds the status.
    fn finish(
        &self,
        outcome: &RecordOutcome,
        path: &Path,
        waited: Waited,
    ) -> anyhow::Result<Status> {
        let mut to = io::stdout().lock();
        outcome.write(self.format, path, &mut to)?;
        to.flush().context("standard output")?;
        drop(to);
        let is_interrupted = waited.reason == Reason::Signal;
        let end = command::end(waited.child, is_interrupted)?;
        let failed = end.filter(|end| !end.status.success());
        if let Some(end) = failed {
            say(&format!("the command ended with {}", end.status));
        }
        // Without a command and a time, a signal is how a recording ends.
        let is_early = is_interrupted && (end.is_some() || self.length.is_some());
        if is_early {
            interrupt::keeps_file(path, Again::Begins);
        }
        Ok(match failed {
            _ if is_early => Status::Interrupted,
            Some(_) => Status::Failure,
            None => Status::Done,
        })
    }
}

/// Why the recording ended by itself, for people.
fn why_ended(ended: RecorderEnd) -> &'static str {
    match ended {
        RecorderEnd::Limit => "it has as many bytes as it may have; --most allows more",
        RecorderEnd::DiskFull => "the disk is full; what was recorded before is kept",
        RecorderEnd::Failed => "the records could not be read",
    }
}

/// What became codes, and what did not.
fn in_codes(counts: &AnonymousCounts) -> String {
    let AnonymousCounts {
        names,
        paths,
        groups,
        threads,
    } = *counts;
    format!(
        "codes stand for {names} names, {paths} paths, {groups} parts of groups' names and \
         {threads} numbers of threads; kept are the names of the kernel's own threads and of \
         interrupts, numbers at the ends of names, times, CPUs, priorities, weights and the \
         kernel's release"
    )
}

fn blocking(what: impl Into<String>, way_out: &str) -> PreflightFinding {
    PreflightFinding {
        severity: Severity::Blocks,
        what: what.into(),
        way_out: way_out.to_owned(),
    }
}

fn say(text: &str) {
    crate::say::say("record", text);
}
