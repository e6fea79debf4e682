//! This computer's files, compiler and ears, lent to questions; and what is found with them.
//!
//! Each module here has all of the module of that name in the crate `ask`; a function that takes
//! services there has those of this computer here.

use std::fs;
use std::io;
use std::path::Path;

use ask::kind::WordKind;
use ask::note::Note;
use ask::services::{Compiled, Compiler, FileKind, Files, Opened, Services, Words};
use model::Advised;

use crate::parallel::Threads;
use crate::scheduler::PROGRAMS;
use crate::{files, interrupt, kind, say, source};

/// What this computer lends.
pub const COMPUTER: Services<'static> = Services {
    files: Some(&Disk),
    compiler: Some(&Clang),
    programs: PROGRAMS,
    workers: Some(&Threads),
    is_cancelled: Some(&interrupt::has_come),
    hears: Some(&hear),
    words: Some(&CommandLine),
};

/// Writes a note on standard error.
fn hear(note: &Note) {
    say::say(note.topic.word(), &note.text);
}

struct Disk;

impl Files for Disk {
    fn open(&self, path: &Path) -> io::Result<Opened> {
        let file = files::open(path)?;
        let facts = file.metadata().ok().filter(fs::Metadata::is_file);
        Ok(Opened {
            bytes: facts.map(|it| it.len()),
            content: Box::new(file),
        })
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        let facts = fs::metadata(files::real(path)).ok()?;
        Some(if facts.is_file() {
            FileKind::File
        } else if facts.is_dir() {
            FileKind::Folder
        } else {
            FileKind::Other
        })
    }
}

struct CommandLine;

impl Words for CommandLine {
    fn misplaced(&self, name: &str, wanted: WordKind) -> Option<Advised> {
        kind::mistaken(name, wanted)
    }

    fn misplaced_file(&self, path: &Path, wanted: WordKind) -> Option<Advised> {
        kind::of_other_file(path, wanted)
    }
}

struct Clang;

impl Compiler for Clang {
    fn object(&self, path: &Path) -> anyhow::Result<Compiled> {
        source::object(&files::real(path))
    }

    fn object_of_text(&self, name: &str, text: &str) -> anyhow::Result<Compiled> {
        source::object_of_text(name, text)
    }
}

/// Files that the user names, read whole.
pub mod input {
    use std::path::Path;

    pub use ask::input::*;

    pub use crate::files::{open, real, text_of};

    use super::COMPUTER;

    pub fn bytes(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
        ask::input::bytes(&COMPUTER, path, most)
    }

    pub fn text(path: &Path, most: u64) -> anyhow::Result<String> {
        ask::input::text(&COMPUTER, path, most)
    }
}

/// Policies.
pub mod policy {
    use std::path::Path;

    use model::{Kernel, PolicySpec};

    pub use ask::policy::*;

    use super::COMPUTER;

    pub fn list(words: &[String]) -> Vec<String> {
        ask::policy::list(&COMPUTER, words)
    }

    pub fn find(argument: &str) -> anyhow::Result<PolicySpec> {
        ask::policy::find(&COMPUTER, argument)
    }

    pub fn open(argument: &str) -> anyhow::Result<FoundPolicy> {
        ask::policy::open(&COMPUTER, argument)
    }

    pub fn of_bytes(argument: &str, file: Vec<u8>) -> anyhow::Result<FoundPolicy> {
        ask::policy::of_bytes(&COMPUTER, argument, file)
    }

    pub fn as_on_kernel(argument: &str, kernel: Kernel) -> anyhow::Result<String> {
        ask::policy::as_on_kernel(&COMPUTER, argument, kernel)
    }

    pub fn file_of(argument: &str) -> Option<&Path> {
        ask::policy::file_of(&COMPUTER, argument)
    }

    pub fn label(argument: &str) -> String {
        ask::policy::label(&COMPUTER, argument)
    }

    pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
        ask::policy::read(&COMPUTER, path)
    }
}

/// Workloads.
pub mod workload_arg {
    use workload::Workload;

    pub use ask::workload_arg::*;

    use super::COMPUTER;

    pub fn find(argument: &str, scale: &[(String, i64)]) -> anyhow::Result<Workload> {
        ask::workload_arg::find(&COMPUTER, argument, scale)
    }
}

/// Recordings as workloads.
pub mod recording {
    use std::path::Path;

    pub use ask::recording::*;

    use super::COMPUTER;

    pub fn is_trace(path: &Path) -> bool {
        ask::recording::is_trace(&COMPUTER, path)
    }
}

/// Smaller runs that show the same, with a bar for those who wait.
pub mod shrink {
    use std::num::NonZeroUsize;
    use std::sync::{Mutex, PoisonError};
    use std::time::{Duration, Instant};

    use explain::why::Finding;

    pub use ask::shrink::*;

    use super::COMPUTER;
    use crate::progress::Bar;
    use crate::violation::Property;

    /// Longest time for making a run smaller.
    pub const LONGEST: Duration = Duration::from_secs(600);

    pub fn shrink(
        of: (Case, Finding),
        properties: &[Property],
        jobs: NonZeroUsize,
    ) -> anyhow::Result<Shrunk> {
        let until = Instant::now() + LONGEST;
        let bar = Mutex::new(Bar::of_tries("smaller runs"));
        let bar = || bar.lock().unwrap_or_else(PoisonError::into_inner);
        let effort = Effort {
            properties,
            jobs,
            is_late: &|| Instant::now() >= until,
            tried: &|runs| bar().set(runs as u64),
        };
        let shrunk = ask::shrink::shrink(&COMPUTER, of, effort)?;
        bar().end();
        Ok(shrunk)
    }
}
