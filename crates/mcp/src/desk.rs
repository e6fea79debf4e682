//! What a question is lent: this computer's files and compiler, with the files that the call itself
//! brings in front of them.

use std::collections::BTreeMap;
use std::io::{self, Cursor};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use ask::Services;
use ask::services::{Compiled, Compiler, FileKind, Files, Opened};
use model::Advised;
use runslice::door::output;
use runslice::{COMPUTER, Sources};

use crate::arguments::usage;
use crate::options::Owner;

/// Files of a call by name, and those of this computer.
#[derive(Debug, Default)]
pub struct Shelf {
    given: BTreeMap<PathBuf, String>,
    sources: Sources,
}

impl Shelf {
    /// Nothing is compiled yet.
    pub fn new(given: BTreeMap<String, String>) -> Self {
        let given = given.into_iter().map(|(name, text)| (name.into(), text));
        Self {
            given: given.collect(),
            sources: Sources::new(),
        }
    }
}

/// Refuses what is no file: standard input is the client's, and a pipe may never have an end.
fn plain(path: &Path) -> io::Result<()> {
    if COMPUTER.kind(path) != Some(FileKind::Other) && path != Path::new("-") {
        return Ok(());
    }
    Err(io::Error::other(Advised::new(
        "no plain file",
        "name one, or give its text in the argument `files`",
    )))
}

impl Files for Shelf {
    fn open(&self, path: &Path) -> io::Result<Opened> {
        if let Some(text) = self.given.get(path) {
            return Ok(Opened {
                bytes: Some(text.len() as u64),
                content: Box::new(Cursor::new(text.clone().into_bytes())),
            });
        }
        plain(path)?;
        COMPUTER.open(path)
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        if self.given.contains_key(path) {
            return Some(FileKind::File);
        }
        COMPUTER.kind(path)
    }
}

impl Compiler for Shelf {
    fn object(&self, path: &Path) -> anyhow::Result<Compiled> {
        let Some(text) = self.given.get(path) else {
            plain(path).map_err(model::CannotRead::at(path.display()))?;
            return self.sources.object(path);
        };
        // The name becomes that of a file in a folder of its own.
        let name = path.file_name().and_then(|it| it.to_str());
        let name = name.context("the name of a source ends in .bpf.c")?;
        self.sources.object_of_text(name, text)
    }

    fn object_of_text(&self, name: &str, text: &str) -> anyhow::Result<Compiled> {
        self.sources.object_of_text(name, text)
    }
}

/// What a tool works with.
pub struct Desk<'a> {
    /// What is lent to its question.
    pub services: Services<'a>,
    /// What it may take.
    pub owner: &'a Owner,
    /// When its client waits no more.
    pub until: Instant,
}

impl Desk<'_> {
    /// Whether no more than a quarter of the time is left: what is begun then is not done in time.
    pub fn is_late(&self) -> bool {
        let left = self.until.saturating_duration_since(Instant::now());
        left < self.owner.time / 4
    }

    /// Threads of a question.
    pub fn jobs(&self) -> Option<NonZeroUsize> {
        self.owner.jobs
    }

    /// Writes a new file into the owner's folder, and gives its path.
    ///
    /// # Errors
    /// When there is no such folder, `name` is no plain name, or the file is there already.
    pub fn write(&self, name: &str, bytes: &[u8]) -> anyhow::Result<String> {
        let path = self.place(name)?;
        output::write_new(&path, bytes, "give another name")?;
        Ok(path.display().to_string())
    }

    /// The path of a file with these bytes in the owner's folder. A call before may have written
    /// it: `name` has what its bytes depend on.
    ///
    /// # Errors
    /// When there is no such folder, `name` is no plain name, or the file cannot be written.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> anyhow::Result<String> {
        let path = self.place(name)?;
        if COMPUTER.is_file(&path) {
            return Ok(path.display().to_string());
        }
        self.write(name, bytes)
    }

    /// Where a file of this name is to be.
    ///
    /// # Errors
    /// When there is no folder for it, or `name` is no plain name.
    pub fn place(&self, name: &str) -> anyhow::Result<PathBuf> {
        let Some(folder) = &self.owner.folder else {
            let advice = "start runslice-mcp with --write DIR";
            return Err(usage("nothing may be written", advice).into());
        };
        let is_plain =
            Path::new(name).file_name().is_some_and(|it| it == name) && !name.contains('\0');
        if !is_plain {
            let what = format!("`{name}` is no name of a file");
            let advice = "give one without a folder: it lies in that of --write";
            return Err(usage(what, advice).into());
        }
        Ok(folder.join(name))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::time::Duration;

    use super::*;

    fn owner(folder: Option<PathBuf>) -> Owner {
        Owner {
            folder,
            time: Duration::from_secs(60),
            bytes: 1_000,
            jobs: None,
            key: None,
        }
    }

    fn desk(owner: &Owner) -> Desk<'_> {
        Desk {
            services: COMPUTER,
            owner,
            until: Instant::now(),
        }
    }

    #[test]
    fn a_file_of_the_call_stands_before_one_of_the_computer() {
        let given = BTreeMap::from([("Cargo.toml".to_owned(), "mine".to_owned())]);
        let shelf = Shelf::new(given);
        let mut text = String::new();
        let mut opened = shelf.open(Path::new("Cargo.toml")).unwrap();
        opened.content.read_to_string(&mut text).unwrap();
        assert_eq!((&*text, opened.bytes), ("mine", Some(4)));
        assert_eq!(shelf.kind(Path::new("Cargo.toml")), Some(FileKind::File));
        assert!(shelf.open(Path::new("src/lib.rs")).is_ok());
    }

    #[test]
    fn the_clients_own_words_are_no_file() {
        for name in ["-", "/dev/stdin", "/dev/null"] {
            let error = Shelf::default().open(Path::new(name)).err();
            assert!(
                error.is_some_and(|it| it.kind() == io::ErrorKind::Other),
                "{name}"
            );
        }
    }

    #[test]
    fn a_source_that_is_a_device_is_not_compiled() {
        let error = Shelf::default().object(Path::new("/dev/null")).unwrap_err();
        assert!(runslice::in_words(&error).contains("no plain file"));
    }

    #[test]
    fn only_plain_names_in_the_owners_folder_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let own = owner(Some(folder.path().to_owned()));
        for name in ["", ".", "..", "/x", "a/b", "../x", "a/", "./a", "a\0b"] {
            let error = desk(&own).write(name, b"x").unwrap_err();
            assert!(
                runslice::in_words(&error).contains("no name of a file"),
                "{name:?}"
            );
        }
        let path = desk(&own).write("a.bundle", b"x").unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"x");
        let again = desk(&own).write("a.bundle", b"y").unwrap_err();
        assert!(runslice::in_words(&again).contains("is there already"));
        let none = desk(&owner(None)).write("a", b"x").unwrap_err();
        assert_eq!(
            runslice::in_words(&none),
            "nothing may be written\n  start runslice-mcp with --write DIR"
        );
    }
}
