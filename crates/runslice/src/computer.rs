//! This computer's files, compiler and ears, lent to questions.

use std::path::Path;

use ask::kind::WordKind;
use ask::note::Note;
use ask::services::{Compiled, Compiler, Services, Words};
use model::Advised;

use crate::parallel::Threads;
use crate::scheduler::PROGRAMS;
use crate::source::Sources;
use crate::{files, interrupt, kind, say};

/// What this computer lends.
pub const COMPUTER: Services<'static> = Services {
    files: Some(&files::Disk),
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

struct CommandLine;

impl Words for CommandLine {
    fn misplaced(&self, name: &str, wanted: WordKind) -> Option<Advised> {
        kind::mistaken(name, wanted)
    }

    fn misplaced_file(&self, path: &Path, wanted: WordKind) -> Option<Advised> {
        kind::of_other_file(path, wanted)
    }
}

/// The sources that this process has compiled.
static SOURCES: Sources = Sources::new();

/// A constant cannot refer to what changes.
struct Clang;

impl Compiler for Clang {
    fn object(&self, path: &Path) -> anyhow::Result<Compiled> {
        SOURCES.object(path)
    }

    fn object_of_text(&self, name: &str, text: &str) -> anyhow::Result<Compiled> {
        SOURCES.object_of_text(name, text)
    }
}
