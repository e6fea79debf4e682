//! `runslice stat record`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use clap::Args;
use model::Nanos;
use stats::schedstat::SchedstatReader;

use crate::cli::{Status, UnsupportedError};
use crate::span;

/// What `runslice stat record` is asked.
#[derive(Debug, Args)]
pub struct Record {
    /// File that the snapshots are added to; `-` is standard output.
    file: PathBuf,

    /// Time between two snapshots: 1s, 100ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::parse)]
    every: Nanos,

    /// Ends the recording after so much time. Default: with Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    length: Option<Nanos>,

    /// Where the statistics are read.
    #[arg(long, value_name = "FILE", default_value = "/proc/schedstat")]
    from: PathBuf,
}

/// Records until the time is over. Each snapshot is written at once and whole, so that Ctrl-C
/// leaves a file that can be read.
///
/// # Errors
/// When this kernel has no statistics or the file cannot be written.
pub fn run(request: &Record) -> anyhow::Result<Status> {
    let mut source = source(&request.from)?;
    let mut text = Vec::new();
    snapshot(&mut source, &mut text).with_context(|| request.from.display().to_string())?;
    // A file that is no statistics is noticed now, and not when the report is wanted.
    SchedstatReader::new(text.as_slice())
        .next_snapshot()
        .with_context(|| request.from.display().to_string())?;
    let mut to = destination(&request.file)?;
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
        // By the clock, not by naps: on a loaded machine naps are longer than asked for.
        next += every;
        if end.is_some_and(|end| next > end) {
            return Ok(Status::Done);
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        next = next.max(Instant::now() - every);
        snapshot(&mut source, &mut text).with_context(|| request.from.display().to_string())?;
    }
}

fn source(path: &Path) -> anyhow::Result<File> {
    File::open(path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound && path == Path::new("/proc/schedstat") {
            let message = "/proc/schedstat does not exist: this kernel was built without \
                           CONFIG_SCHEDSTATS; record on another one, or in `runslice vm`";
            return UnsupportedError(message.to_owned()).into();
        }
        anyhow!(error).context(format!("cannot read {}", path.display()))
    })
}

fn destination(path: &Path) -> anyhow::Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdout()));
    }
    let file = OpenOptions::new().append(true).create(true).open(path);
    Ok(Box::new(file.with_context(|| {
        format!("cannot write {}", path.display())
    })?))
}

/// Reads the file from its beginning; the kernel prints it anew.
fn snapshot(source: &mut File, text: &mut Vec<u8>) -> io::Result<()> {
    text.clear();
    source.rewind()?;
    source.read_to_end(text)?;
    Ok(())
}
