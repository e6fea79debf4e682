//! `runslice stat record`.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use model::Nanos;
use stats::schedstat::{HZ_OF_4, SchedstatReader, Snapshot};

use super::processes;
use crate::exit::Status;
use crate::export::cell;
use crate::input::WRITTEN;
use crate::interrupt::Again;
use crate::on_kernel::{self, Version4};
use crate::schedstat::statistics;
use crate::{interrupt, output};
use model::span;

/// Arguments of `runslice stat record`.
#[derive(Debug, Args)]
pub struct StatRecord {
    /// File to append the snapshots to; `-` is standard output.
    file: PathBuf,

    /// Time between two snapshots, such as 1s or 100ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::parse)]
    every: Nanos,

    /// Stop after this time. Default: with Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    length: Option<Nanos>,

    /// File with the statistics.
    #[arg(long, value_name = "FILE", default_value = "/proc/schedstat")]
    from: PathBuf,

    /// Also write the kernel's counters of every thread to this CSV file. It has one row for each
    /// thread and snapshot, with the snapshot's timestamp.
    #[arg(long, value_name = "FILE")]
    tasks: Option<PathBuf>,

    /// Write this version of the statistics; only 4 is possible.
    ///
    /// Its counters come from the policy that runslice runs and from the kernel, both counted from
    /// the start of the recording.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(4..=4))]
    as_version: Option<u32>,

    /// Switch `kernel.sched_schedstats` on during the recording (needs root). Without it most
    /// counters do not change.
    #[arg(long)]
    enable: bool,
}

/// Records until the time is over. Each snapshot is written at once and whole, so that Ctrl-C
/// leaves a file that can be read.
///
/// # Errors
/// When this kernel has no statistics or the file cannot be written.
pub fn run(request: &StatRecord) -> anyhow::Result<Status> {
    let to_file = (request.file != Path::new("-")).then_some(&*request.file);
    output::spare(
        &[("--from", Some(&request.from))],
        &[
            ("the recording", to_file),
            ("--tasks", request.tasks.as_deref()),
        ],
    )?;
    let _on = on_kernel::count(request.enable, request.as_version)?;
    let mut readings = Readings::open(request)?;
    let mut text = Vec::new();
    // The kernel adds a turn to its CPU's sums when the turn ends, and to its task's at each tick.
    // So this one, which began with the program, ends before the first reading.
    std::thread::sleep(Duration::from_millis(1));
    readings.next(&mut text)?;
    if let Some(hz) = readings.hz() {
        // Behind the first snapshot, so that the file begins as the kernel's does.
        writeln!(text, "# HZ={hz}")?;
    }
    let mut tasks = request.tasks.as_deref().map(Tasks::create).transpose()?;
    let mut to = destination(&request.file)?;
    match to_file {
        Some(file) => interrupt::keeps_file(file, Again::Adds),
        None => interrupt::keeps_results(),
    }
    let named = || format!("cannot write {}", request.file.display());
    let every = Duration::from_nanos(request.every.get().max(1));
    let begin = Instant::now();
    let end = request
        .length
        .map(|length| begin + Duration::from_nanos(length.get()));
    let mut next = begin;
    loop {
        to.write_all(&text)
            .and_then(|()| to.flush())
            .with_context(named)?;
        if let Some(tasks) = &mut tasks {
            tasks.add(parsed(&text)?.timestamp())?;
        }
        // By the clock, not by naps: on a loaded machine naps are longer than asked for.
        next += every;
        if end.is_some_and(|end| next > end) {
            return Ok(Status::Done);
        }
        if !wait_until(next) {
            return Ok(Status::Interrupted);
        }
        next = next.max(Instant::now() - every);
        readings.next(&mut text)?;
    }
}

/// Sleeps. `false` if a signal came that is caught.
fn wait_until(time: Instant) -> bool {
    /// Between two looks for a signal.
    const LOOK: Duration = Duration::from_millis(100);
    loop {
        if on_kernel::is_interrupted() || interrupt::has_come() {
            return false;
        }
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK));
    }
}

/// Where snapshots come from.
struct Readings<'a> {
    path: &'a Path,
    source: File,
    version4: Option<Version4>,
}

impl<'a> Readings<'a> {
    fn open(request: &'a StatRecord) -> anyhow::Result<Self> {
        let mut readings = Self {
            path: &request.from,
            source: statistics(&request.from)?,
            version4: None,
        };
        // A file that is no statistics is noticed now, and not when the report is wanted.
        let mut text = Vec::new();
        readings.raw(&mut text)?;
        parsed(&text).with_context(|| request.from.display().to_string())?;
        if request.as_version.is_some() {
            readings.version4 = Some(Version4::of_this_machine()?);
        }
        Ok(readings)
    }

    /// The next snapshot as text.
    fn next(&mut self, text: &mut Vec<u8>) -> anyhow::Result<()> {
        if let Some(mut version4) = self.version4.take() {
            let snapshot = version4.snapshot(|| {
                self.raw(text)?;
                parsed(text)
            });
            self.version4 = Some(version4);
            text.clear();
            snapshot?.write(text)?;
            return Ok(());
        }
        self.raw(text)
    }

    /// Jiffies a second of what is recorded; `None` if it cannot be told.
    fn hz(&self) -> Option<u32> {
        if self.version4.is_some() {
            return Some(HZ_OF_4);
        }
        on_kernel::hz().filter(|_| self.path == Path::new("/proc/schedstat"))
    }

    /// Reads the file from its beginning; the kernel prints it anew.
    fn raw(&mut self, text: &mut Vec<u8>) -> anyhow::Result<()> {
        text.clear();
        let named = || self.path.display().to_string();
        self.source.rewind().with_context(named)?;
        let mut source = (&self.source).take(WRITTEN + 1);
        let read = source.read_to_end(text).with_context(named)?;
        ensure!(
            read as u64 <= WRITTEN,
            "{}: longer than {} MiB, the most that is read",
            named(),
            WRITTEN >> 20
        );
        Ok(())
    }
}

/// The numbers of every thread, beside the snapshots.
struct Tasks<'a> {
    path: &'a Path,
    to: BufWriter<File>,
}

impl<'a> Tasks<'a> {
    /// Begins a new file: numbers of another boot must not stand in it.
    fn create(path: &'a Path) -> anyhow::Result<Self> {
        let mut to = output::create_log(path)?;
        writeln!(to, "timestamp,thread,name,run_ns,wait_ns,slices")
            .map_err(model::CannotWrite::at(path.display()))?;
        Ok(Self { path, to })
    }

    /// Adds a row for each thread that lives now, whole when this returns.
    fn add(&mut self, timestamp: u64) -> anyhow::Result<()> {
        let mut rows = String::new();
        for (thread, task) in processes::read(Path::new("/proc")) {
            let (name, of) = (cell(&task.name), task.counters);
            let numbers = format!("{},{},{}", of.cpu_time, of.run_delay, of.pcnt);
            rows += &format!("{timestamp},{thread},{name},{numbers}\n");
        }
        let written = self.to.write_all(rows.as_bytes());
        let written = written.and_then(|()| self.to.flush());
        Ok(written.map_err(model::CannotWrite::at(self.path.display()))?)
    }
}

fn parsed(text: &[u8]) -> anyhow::Result<Snapshot> {
    // What is recorded is the kernel's text, so that its version matters to the reader only.
    let mut reader = SchedstatReader::new(text).with_later_versions(true);
    reader.next_snapshot()?.context("no snapshot")
}

fn destination(path: &Path) -> anyhow::Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdout()));
    }
    let file = folder::append(path);
    Ok(Box::new(file.with_context(|| {
        format!("cannot write {}", path.display())
    })?))
}
