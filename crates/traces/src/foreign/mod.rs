//! Traces of other programs in, events out.
//!
//! [`read`] recognises the format by its content: `perf.data`, `trace.dat` (versions 6 and 7),
//! Perfetto, and the text of `perf script`, `trace-cmd report` and ftrace. Each format has a reader
//! that makes [`record::Record`]s of what it finds; `tasks` makes of those the events of
//! docs/events.md. Memory does not grow with the length of a trace, but with its threads.
//!
//! Traces are not trusted: no file crashes a reader or makes it take more memory than its limits
//! say.

mod cursor;
mod error;
mod facts;
mod findings;
mod format;
mod order;
mod perf_data;
mod perfetto;
mod priority;
pub mod record;
mod stream;
mod tasks;
mod text;
mod trace_dat;
mod unpack;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek};

use model::{Header, MachineSpec, SimTime, Snapshot, TaskGroup, TaskId};

pub use error::Error;
pub use facts::SchedFacts;
pub use findings::{Causes, Coverage, Findings, Kinds};
use priority::Priority;
pub use stream::{MOST_CPUS, Out, Window};
pub use tasks::Named;

use stream::{MOST_THREADS, Stream};

/// Facts of a trace besides its events.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The names: each thread is a group of its own.
    pub header: Header,
    /// The last moment.
    pub end: SimTime,
    /// The threads, by [`model::TaskId`].
    pub tasks: Vec<Named>,
    /// What is known of each besides, by its number; empty unless there is a snapshot.
    pub facts: Vec<Option<SchedFacts>>,
    /// What `runslice record` saw of the machine and its threads, if the trace is of it.
    pub snapshot: Option<Snapshot>,
    /// What was found, lost and guessed.
    pub findings: Findings,
}

impl Imported {
    /// Facts about a task besides its events.
    #[must_use]
    pub fn facts_of(&self, task: TaskId) -> Option<&SchedFacts> {
        self.facts.get(task.index())?.as_ref()
    }

    /// The real-time priority that a task mostly has, 1 to 99; `None` for other tasks.
    #[must_use]
    pub fn mostly_realtime(&self, task: TaskId) -> Option<u8> {
        let named = self.tasks.get(task.index())?;
        match named.mostly {
            Some(mostly) if Some(mostly) != named.prio => Priority(Some(mostly)).realtime(),
            _ => self.realtime(task),
        }
    }

    /// The real-time priority that a task begins with, 1 to 99; `None` for other tasks.
    #[must_use]
    pub fn realtime(&self, task: TaskId) -> Option<u8> {
        match self.facts_of(task) {
            Some(facts) => facts.realtime,
            None => self.tasks.get(task.index()).and_then(Named::realtime),
        }
    }
}

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceKind {
    PerfData,
    TraceDat,
    Perfetto,
    Text,
}

/// Letters of a kernel's release that are kept; Linux has 64 bytes for it.
const RELEASE: usize = 64;

/// Bytes of a file's begin by which its format is recognised.
const BEGIN: usize = 4096;

/// Whether a file that begins like this is a trace of another program, and not one of our own event
/// files, which begin with a line of JSON.
#[must_use]
pub fn is_foreign(begin: &[u8]) -> bool {
    !begin.trim_ascii_start().starts_with(b"{")
}

/// Whether a file that begins like this is surely a trace of another program: its own mark stands
/// there, or a line of its text is a record.
#[must_use]
pub fn is_trace(begin: &[u8]) -> bool {
    let begin = &begin[..begin.len().min(BEGIN)];
    match kind_of(begin) {
        Ok(TraceKind::Text) => text::has_record(begin),
        Ok(_) => true,
        Err(_) => false,
    }
}

fn kind_of(begin: &[u8]) -> Result<TraceKind, Error> {
    let unknown = |hint| Err(Error::Unknown { hint });
    match begin {
        [] => unknown(Some("it is empty: record again with `runslice record`")),
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..]
        | [b'2', b'E', b'L', b'I', b'F', b'R', b'E', b'P', ..] => Ok(TraceKind::PerfData),
        [
            0x17,
            0x08,
            0x44,
            b't',
            b'r',
            b'a',
            b'c',
            b'i',
            b'n',
            b'g',
            ..,
        ] => Ok(TraceKind::TraceDat),
        [0x1f, 0x8b, ..] => unknown(Some("it is packed with gzip: unpack it first")),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => unknown(Some("it is packed with zstd: unpack it first")),
        _ if text::is_text(begin) => Ok(TraceKind::Text),
        [0x0a, ..] => Ok(TraceKind::Perfetto),
        _ => unknown(None),
    }
}

/// Reads the trace that `input` has from its begin on, and gives the events of its `window` to
/// `out`, in order.
///
/// `name` is what the header calls it. A pipe is enough for text and for Perfetto traces; the other
/// formats need a file in which they can seek.
///
/// # Errors
/// When the format is not known, or the file is damaged; the error says where.
pub fn read<'a, R: Read + Seek>(
    input: R,
    name: &str,
    window: Window,
    out: &'a mut Out<'a>,
) -> Result<Imported, Error> {
    let mut input = BufReader::with_capacity(1 << 18, input);
    let begin = input.fill_buf();
    let begin = begin.map_err(|source| Error::Io { offset: 0, source })?;
    let kind = kind_of(&begin[..begin.len().min(BEGIN)])?;
    let disorder = match kind {
        // Its reader merges by time.
        TraceKind::TraceDat => 0,
        TraceKind::Text => 1 << 12,
        TraceKind::PerfData | TraceKind::Perfetto => 1 << 20,
    };
    let mut stream = Stream::new(disorder, window, out);
    match kind {
        TraceKind::PerfData => perf_data::read(&mut input, &mut stream)?,
        TraceKind::TraceDat => trace_dat::read(&mut input, &mut stream)?,
        TraceKind::Perfetto => perfetto::read(&mut input, &mut stream)?,
        TraceKind::Text => text::read(&mut input, &mut stream)?,
    }
    stream.finish();
    if stream.tasks.named.len() > MOST_THREADS {
        return Err(Error::Threads { most: MOST_THREADS });
    }
    imported(stream, name)
}

/// What a recording of ours knows of the machine and its threads, before its records are read. The
/// caller goes back to the begin.
pub fn snapshot<R: Read + Seek>(input: &mut BufReader<R>) -> Option<Snapshot> {
    let begin = input.fill_buf().ok()?;
    match kind_of(&begin[..begin.len().min(BEGIN)]) {
        Ok(TraceKind::TraceDat) => trace_dat::snapshot(input),
        _ => None,
    }
}

/// What a reader has told, and what the threads' records have.
fn found(told: Findings, of_tasks: &Findings) -> Findings {
    Findings {
        skipped: told.skipped,
        damaged: told.damaged,
        damaged_line: told.damaged_line,
        clock: told.clock,
        kernel: told.kernel.map(|text| text.chars().take(RELEASE).collect()),
        cut_at: told.cut_at,
        buffer: told.buffer,
        no_snapshot: told.no_snapshot,
        gaps: of_tasks.gaps + told.gaps,
        lost: of_tasks.lost.saturating_add(told.lost),
        ..of_tasks.clone()
    }
}

/// Why a trace without a switch is none; `no_cpu` is one of its CPUs that no machine has.
fn without_switches(findings: &Findings, no_cpu: Option<u32>) -> Error {
    let Findings {
        records, damaged, ..
    } = *findings;
    match no_cpu.filter(|_| records == 0) {
        Some(cpu) => Error::Cpus {
            cpu,
            records: damaged,
        },
        None if damaged > 0 => Error::Damaged {
            records: damaged,
            line: findings.damaged_line,
        },
        None => Error::NoSwitches { records },
    }
}

fn imported(stream: Stream<'_>, name: &str) -> Result<Imported, Error> {
    let Stream {
        tasks,
        told,
        snapshot,
        has_switch,
        no_cpu,
        ..
    } = stream;
    let mut findings = found(told, &tasks.findings);
    if !has_switch {
        return Err(without_switches(&findings, no_cpu));
    }
    let cpus = tasks.cpus().clamp(1, usize::from(u16::MAX));
    let cpus = u16::try_from(cpus).expect("clamped");
    let mut machine = MachineSpec::default();
    let mut facts = Vec::new();
    if let Some(snapshot) = &snapshot {
        let (seen, lacks) = snapshot.machine();
        (machine, findings.machine) = (seen, lacks);
        let (of_tasks, coverage) = facts::of_tasks(&tasks.named, snapshot);
        (facts, findings.coverage) = (of_tasks, Some(coverage));
        findings.scheduler.clone_from(&snapshot.scheduler);
        let release = Some(&snapshot.kernel).filter(|it| !it.is_empty());
        let release = release.map(|text| text.chars().take(RELEASE).collect());
        findings.kernel = findings.kernel.or(release);
        // A CPU that reported something was there.
        machine.cpus = machine.cpus.max(cpus);
    } else {
        machine.cpus = cpus;
    }
    let header = Header {
        policy: "recorded".to_owned(),
        workload: name.to_owned(),
        machine,
        seed: 1,
        duration: None,
        groups: groups(&tasks.named, &facts),
        spans: Vec::new(),
        deadlines: Vec::new(),
        counters: Vec::new(),
        phases: Vec::new(),
    };
    Ok(Imported {
        header,
        end: tasks.end(),
        tasks: tasks.named,
        facts,
        snapshot,
        findings,
    })
}

impl Named {
    /// The nice value of the priority that it began with; 0 if it is real-time or not known.
    #[must_use]
    pub fn nice(&self) -> i8 {
        Priority(self.prio).nice()
    }

    /// The real-time priority that it began with, 1 to 99, 99 most urgent; `None` for other tasks.
    /// Deadline tasks, of which a trace has no budget, are taken for real-time ones of 99.
    #[must_use]
    pub fn realtime(&self) -> Option<u8> {
        Priority(self.prio).realtime()
    }
}

/// A group for each task. A name that several have gets the number of the thread.
fn groups(tasks: &[Named], facts: &[Option<SchedFacts>]) -> Vec<TaskGroup> {
    let mut names: HashMap<String, u32> = HashMap::new();
    let own = |task: &Named| match task.comm.to_string() {
        name if name.is_empty() => "unnamed".to_owned(),
        name => name,
    };
    for task in tasks {
        *names.entry(own(task)).or_default() += 1;
    }
    let mut given: HashMap<String, u32> = HashMap::new();
    let group = |(id, task): (usize, &Named)| {
        let mut name = own(task);
        if names[&name] > 1 {
            name = format!("{name}-{}", task.pid);
        }
        let again = given.entry(name.clone()).or_default();
        *again += 1;
        if *again > 1 {
            name = format!("{name}#{again}");
        }
        TaskGroup {
            name,
            nice: match facts.get(id) {
                Some(Some(facts)) => facts.nice,
                _ => task.nice(),
            },
            count: 1,
        }
    };
    tasks.iter().enumerate().map(group).collect()
}

#[cfg(test)]
mod tests;
