//! Begins a recording, empties the kernel's buffers, and ends it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::cost::EventCosts;
use super::events::{Event, WantedEvents};
use super::formats::Formats;
use super::instance::{self, TraceInstance};
use super::pages::{CpuPages, Mover};
use super::probe::{self, KernelProbe};
use super::{cost, read_up_to};
use crate::Error;
use crate::record::be_urgent;

/// From one look at the buffers to the next. Whole pages only are taken then.
const PAUSE: Duration = Duration::from_millis(100);
/// Most bytes of the kernel's list of names.
const NAMES: u64 = 64 << 20;
/// Least and greatest size of a CPU's buffer, in KiB.
const BUFFER_KIB: std::ops::RangeInclusive<u64> = 64..=1 << 20;
/// The usual one.
const USUAL_KIB: u64 = 8 << 10;
/// What is kept free for what stands around the records when the disk is full.
const RESERVE: u64 = 4 << 20;

/// How a recording is made.
#[derive(Clone, Debug)]
pub struct TraceOptions<'a> {
    /// Where `/` is; another folder in tests.
    pub root: &'a Path,
    /// The folder of trace files.
    pub tracefs: &'a Path,
    /// Where files without a name are made: in the folder of the result.
    pub folder: &'a Path,
    /// Which events.
    pub wanted: &'a WantedEvents,
    /// The size of a CPU's buffer in KiB; `None`: 8 MiB, less on a small machine.
    pub buffer_kib: Option<u64>,
    /// Bytes of records after which the recording ends.
    pub bytes_most: u64,
}

/// Why a recording has ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecorderEnd {
    /// It has as many bytes as it may have.
    Limit,
    /// The disk is full.
    DiskFull,
    /// The records cannot be read or written; [`TraceRecorder::stop`] says why.
    Failed,
}

/// A recording that goes on; dropping it discards what was recorded.
#[derive(Debug)]
pub struct TraceRecorder {
    /// Ended before the buffer goes away.
    reader: TraceReader,
    instance: TraceInstance,
    /// Taken away after the buffer that records through it.
    probe: Option<KernelProbe>,
    formats: Formats,
    clock: String,
    tracefs: PathBuf,
    reserve: Option<File>,
    began: Instant,
    missing: Vec<String>,
    removed: usize,
    events: Vec<Event>,
}

/// The thread that empties the buffers.
#[derive(Debug)]
struct TraceReader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Emptied>>,
}

/// What the thread that empties the buffers shares.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// An [`RecorderEnd`], or 0.
    ended: AtomicU8,
    bytes: AtomicU64,
    failure: Mutex<Option<io::Error>>,
}

/// What that thread leaves.
#[derive(Debug)]
struct Emptied {
    pages: Vec<CpuPages>,
    /// CPU time that it took.
    time: Duration,
}

/// A recording that is over.
#[derive(Debug)]
pub struct EndedRecording {
    pub(super) formats: Formats,
    pub(super) clock: String,
    pub(super) pages: Vec<CpuPages>,
    pub(super) names: BTreeMap<u32, Vec<u8>>,
    /// What the kernel counted, by CPU.
    pub(super) counted: Vec<String>,
    /// How long it was.
    pub length: Duration,
    /// Records.
    pub events: u64,
    /// Records for which there was no room.
    pub lost: u64,
    /// Bytes of records.
    pub bytes: u64,
    /// CPU time of the thread that took them from the kernel.
    pub reader: Duration,
    /// CPU time that the recording of an event takes, where it can be seen.
    pub event_cost: Option<Duration>,
    /// CPU time of a switch between two tasks with the wakeup before it, likewise.
    pub switch_cost: Option<Duration>,
    /// Why it ended by itself, if it did.
    pub ended: Option<RecorderEnd>,
    /// Events that the kernel does not have.
    pub missing: Vec<String>,
    /// Buffers of earlier recordings that were removed.
    pub removed: usize,
    /// Why the buffer could not be removed, if so; the next recording tries again.
    pub left: Option<Error>,
    /// Room on the disk that is given back before the pages are copied.
    pub(super) reserve: Option<File>,
}

impl TraceRecorder {
    /// Begins to record on all CPUs.
    ///
    /// # Errors
    /// When the kernel refuses, an event is not there, or no file can be made.
    pub fn start(asked: &TraceOptions<'_>) -> Result<Self, Error> {
        let removed = instance::remove_left(asked.root, asked.tracefs);
        probe::remove_left(asked.root, asked.tracefs);
        let mut chosen = asked.wanted.choose(asked.tracefs)?;
        let instance = TraceInstance::make(asked.root, asked.tracefs)?;
        // Nothing depends on it, and a kernel may refuse it only when it is switched on.
        let probe = KernelProbe::set(asked.root, asked.tracefs).ok();
        let probe = probe.filter(|probe| instance.enable(&probe.event()).is_ok());
        match &probe {
            Some(probe) => chosen.events.push(probe.event()),
            None => chosen.missing.push(KernelProbe::absent()),
        }
        let mut recorder = Self::start_in(instance, asked, chosen.events)?;
        (recorder.missing, recorder.removed) = (chosen.missing, removed);
        recorder.probe = probe;
        Ok(recorder)
    }

    pub(super) fn start_in(
        instance: TraceInstance,
        asked: &TraceOptions<'_>,
        events: Vec<Event>,
    ) -> Result<Self, Error> {
        let formats = Formats::read(asked.tracefs, &events)?;
        let cpus = instance.cpus()?;
        let available = memory_kib(asked.root);
        let size = buffer_kib(asked.buffer_kib, available, cpus.len())?;
        instance.write("buffer_size_kb", &size.to_string())?;
        // The newest records count, and what is lost is marked where it is lost.
        let _ = instance.write("options/overwrite", "1");
        let clock = instance.set_clock()?;
        let mut pages = Vec::new();
        for cpu in cpus {
            let path = instance.of_cpu(cpu, "trace_pipe_raw");
            let opened = CpuPages::open(cpu, &path, asked.folder, formats.page);
            pages.push(opened.map_err(Error::file(&path))?);
        }
        let reserve = reserve(asked.folder);
        let mover = Mover::new(formats.page).map_err(Error::file("a pipe"))?;
        for event in &events {
            instance.enable(event)?;
        }
        let recorder = Self {
            reader: TraceReader::start(mover, pages, asked.bytes_most),
            clock,
            formats,
            tracefs: asked.tracefs.to_owned(),
            reserve,
            began: Instant::now(),
            missing: Vec::new(),
            removed: 0,
            probe: None,
            events,
            instance,
        };
        recorder.instance.write("tracing_on", "1")?;
        Ok(recorder)
    }

    /// Why it has ended by itself; `None` as long as it goes on.
    #[must_use]
    pub fn ended(&self) -> Option<RecorderEnd> {
        match self.reader.shared.ended.load(Ordering::Relaxed) {
            1 => Some(RecorderEnd::Limit),
            2 => Some(RecorderEnd::DiskFull),
            3 => Some(RecorderEnd::Failed),
            _ => None,
        }
    }

    /// Bytes of records so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.reader.shared.bytes.load(Ordering::Relaxed)
    }

    /// How many kinds of events are recorded.
    #[must_use]
    pub const fn kinds(&self) -> usize {
        self.events.len()
    }

    /// Ends the recording and takes the buffer away.
    ///
    /// # Errors
    /// When the records cannot be read or written, but for a full disk, up to which they are kept.
    ///
    /// # Panics
    /// If the thread that reads has panicked.
    pub fn stop(mut self) -> Result<EndedRecording, Error> {
        // What does not switch off is removed all the same.
        let _ = self.instance.write("tracing_on", "0");
        let length = self.began.elapsed();
        let ended = self.ended();
        let emptied = self.reader.end().map_err(Error::file("the trace buffer"))?;
        let cpus = emptied.pages.iter().map(|pages| pages.cpu);
        let counted: Vec<String> = cpus.map(|cpu| self.instance.counted(cpu)).collect();
        let names = names(&self.tracefs);
        let costs = self.costs();
        let mut recorded = EndedRecording {
            formats: std::mem::take(&mut self.formats),
            clock: std::mem::take(&mut self.clock),
            events: sum(&counted, &["read events"]),
            lost: sum(&counted, &["overrun", "commit overrun", "dropped events"]),
            bytes: emptied.pages.iter().map(|pages| pages.bytes).sum(),
            pages: emptied.pages,
            names,
            counted,
            length,
            reader: emptied.time,
            event_cost: costs.event,
            switch_cost: costs.switch,
            ended,
            missing: std::mem::take(&mut self.missing),
            removed: self.removed,
            left: None,
            reserve: self.reserve.take(),
        };
        let Self {
            instance, probe, ..
        } = self;
        recorded.left = instance.remove().err();
        drop(probe);
        Ok(recorded)
    }

    /// What an event costs, and a switch. All records have been taken already: what is recorded now
    /// is lost.
    fn costs(&self) -> EventCosts {
        let names = self.events.iter().map(|event| event.name.as_str());
        let turn = names.filter(|name| cost::OF_A_TURN.contains(name)).count();
        let of_a_round = 2 * u32::try_from(turn).unwrap_or(0);
        let begun = self.instance.write("tracing_on", "1");
        let measured = begun.ok().and_then(|()| {
            let off = || self.instance.disable_all();
            cost::measure(of_a_round, off).ok()
        });
        measured.unwrap_or_default()
    }
}

impl EndedRecording {
    /// Names threads that the kernel's own list does not name: numbers and names.
    pub fn name<'a>(&mut self, names: impl IntoIterator<Item = (u32, &'a str)>) {
        for (pid, comm) in names {
            self.names.insert(pid, comm.as_bytes().to_vec());
        }
    }
}

impl TraceReader {
    fn start(mut mover: Mover, mut pages: Vec<CpuPages>, most: u64) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            be_urgent();
            loop {
                // What comes after the stop is of the time before it.
                let last = theirs.stop.load(Ordering::Relaxed);
                if theirs.ended.load(Ordering::Relaxed) == 0 {
                    let taken = pages
                        .iter_mut()
                        .try_for_each(|pages| mover.take(pages, last));
                    let bytes = pages.iter().map(|pages| pages.bytes).sum();
                    theirs.bytes.store(bytes, Ordering::Relaxed);
                    theirs.note(taken, bytes >= most && !last);
                }
                if last {
                    break;
                }
                thread::park_timeout(PAUSE);
            }
            pages.iter_mut().for_each(CpuPages::close);
            let time = clock_gettime(ClockId::ThreadCPUTime);
            let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
            let time = Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos);
            Emptied { pages, time }
        });
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// Takes what is there, and ends.
    ///
    /// # Errors
    /// What kept it from reading or writing, but for a full disk.
    fn end(&mut self) -> io::Result<Emptied> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is ended once");
        thread.thread().unpark();
        let emptied = thread.join().expect("the reader does not panic");
        let failure = self.shared.failure.lock();
        let failure = failure.unwrap_or_else(PoisonError::into_inner).take();
        match failure.filter(|error| error.kind() != io::ErrorKind::StorageFull) {
            Some(error) => Err(error),
            None => Ok(emptied),
        }
    }
}

impl Drop for TraceReader {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.end();
        }
    }
}

impl Shared {
    /// Notes that no more is taken, if that is so.
    fn note(&self, taken: io::Result<()>, is_enough: bool) {
        let ended = match taken {
            Err(error) => {
                let is_full = error.kind() == io::ErrorKind::StorageFull;
                let failure = self.failure.lock();
                *failure.unwrap_or_else(PoisonError::into_inner) = Some(error);
                if is_full { 2 } else { 3 }
            }
            Ok(()) => u8::from(is_enough),
        };
        self.ended.store(ended, Ordering::Relaxed);
    }
}

/// A file that takes its place on the disk until it is needed; without one a full disk may leave no
/// room for the result.
fn reserve(folder: &Path) -> Option<File> {
    let file = tempfile::tempfile_in(folder).ok()?;
    let flags = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&file, flags, 0, RESERVE).ok()?;
    Some(file)
}

/// The size of a CPU's buffer in KiB: what is asked for, or the usual one, of which all CPUs
/// together take at most an eighth of the memory that is free.
fn buffer_kib(asked: Option<u64>, available: u64, cpus: usize) -> Result<u64, Error> {
    let cpus = u64::try_from(cpus).unwrap_or(u64::MAX).max(1);
    let share = available / 8 / cpus;
    let Some(asked) = asked else {
        return Ok(USUAL_KIB.min(share.max(*BUFFER_KIB.start())));
    };
    let most = (available / 2 / cpus).clamp(*BUFFER_KIB.start(), *BUFFER_KIB.end());
    if asked <= most {
        return Ok(asked.max(*BUFFER_KIB.start()));
    }
    Err(Error::TraceBuffer {
        asked_kib: asked,
        most_kib: most,
        cpus,
    })
}

/// Memory that can be had without swapping, in KiB; plenty where the kernel does not say.
fn memory_kib(root: &Path) -> u64 {
    let text = read_up_to(&root.join("proc/meminfo"), 1 << 16).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    number.unwrap_or(8 << 20)
}

/// The kernel's list of names: for threads that are gone.
fn names(tracefs: &Path) -> BTreeMap<u32, Vec<u8>> {
    let text = read_up_to(&tracefs.join("saved_cmdlines"), NAMES).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    let pairs = lines.filter_map(|line| {
        let space = line.iter().position(|byte| *byte == b' ')?;
        let pid = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
        Some((pid, line[space + 1..].to_vec()))
    });
    pairs.collect()
}

/// The sum over all CPUs of numbers that the kernel counted.
fn sum(counted: &[String], keys: &[&str]) -> u64 {
    let lines = counted.iter().flat_map(|text| text.lines());
    let numbers = lines.filter_map(|line| {
        let (key, number) = line.split_once(':')?;
        keys.contains(&key.trim())
            .then(|| number.trim().parse::<u64>().ok())?
    });
    numbers.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
