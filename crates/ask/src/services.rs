//! What a caller lends to a question. Everything may be absent: a page in a browser has no files.

use std::io::{self, Read, Seek};
use std::path::Path;

use crate::error::Cancelled;
use crate::note::{Note, Topic};

/// A file's content.
pub trait Content: Read + Seek {}

impl<T: Read + Seek> Content for T {}

/// A file that was opened.
pub struct Opened {
    /// Its content, from the begin on.
    pub content: Box<dyn Content>,
    /// Its length in bytes; `None` of a pipe or a device, which may have no end and cannot be read
    /// twice.
    pub bytes: Option<u64>,
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A plain file.
    File,
    /// A folder.
    Folder,
    /// A pipe, a device or the like.
    Other,
}

/// Files that a question names.
pub trait Files: Sync {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn open(&self, path: &Path) -> io::Result<Opened>;

    /// What lies at `path`, links followed; `None` if nothing does.
    fn kind(&self, path: &Path) -> Option<FileKind>;
}

/// Policies as C sources.
pub trait Compiler: Sync {
    /// The object of the policy whose source is in the file at `path`.
    ///
    /// # Errors
    /// When there is no compiler, or the source does not compile.
    fn object(&self, path: &Path) -> anyhow::Result<Vec<u8>>;
}

/// What a caller lends to a question.
#[derive(Clone, Copy, Default)]
pub struct Services<'a> {
    /// Files. Without them only what is built in has a name.
    pub files: Option<&'a dyn Files>,
    /// A compiler. Without it no policy is a C source.
    pub compiler: Option<&'a dyn Compiler>,
    /// Whether nobody waits for the answer any more. It may be asked on any thread.
    pub is_cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// Who hears notes, on the thread that they come from. Without it nobody does.
    pub hears: Option<&'a (dyn Fn(Note) + Sync)>,
}

impl Services<'_> {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// When it cannot be opened, or there are no files.
    pub fn open(&self, path: &Path) -> io::Result<Opened> {
        match self.files {
            Some(files) => files.open(path),
            None => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "files cannot be read here",
            )),
        }
    }

    /// What lies at `path`, links followed; `None` if nothing does.
    #[must_use]
    pub fn kind(&self, path: &Path) -> Option<FileKind> {
        self.files?.kind(path)
    }

    /// Whether a plain file lies at `path`.
    #[must_use]
    pub fn is_file(&self, path: &Path) -> bool {
        self.kind(path) == Some(FileKind::File)
    }

    /// Tells a note to whoever hears them.
    pub fn note(&self, topic: Topic, text: impl Into<String>) {
        if let Some(hears) = self.hears {
            let text = text.into();
            hears(Note { topic, text });
        }
    }

    /// Ends work that nobody waits for.
    ///
    /// # Errors
    /// When that is so.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled.is_some_and(|it| it()) {
            Err(Cancelled)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::sync::Mutex;

    use super::*;

    /// The files of this computer.
    pub(crate) struct Disk;

    impl Files for Disk {
        fn open(&self, path: &Path) -> io::Result<Opened> {
            let file = fs::File::open(path)?;
            let facts = file.metadata()?;
            Ok(Opened {
                content: Box::new(file),
                bytes: facts.is_file().then_some(facts.len()),
            })
        }

        fn kind(&self, path: &Path) -> Option<FileKind> {
            let facts = fs::metadata(path).ok()?;
            Some(if facts.is_file() {
                FileKind::File
            } else if facts.is_dir() {
                FileKind::Folder
            } else {
                FileKind::Other
            })
        }
    }

    /// Files of this computer, and nothing else.
    pub(crate) const FILES: Services<'static> = Services {
        files: Some(&Disk),
        compiler: None,
        is_cancelled: None,
        hears: None,
    };

    #[test]
    fn a_question_without_files_is_told_so() {
        let error = Services::default().open(Path::new("x")).err().unwrap();
        assert_eq!(error.to_string(), "files cannot be read here");
        assert_eq!(Services::default().kind(Path::new("/")), None);
        assert_eq!(FILES.kind(Path::new("/")), Some(FileKind::Folder));
        assert!(!FILES.is_file(Path::new("/dev/null")));
    }

    #[test]
    fn notes_go_to_whoever_hears_them() {
        let heard = Mutex::new(Vec::new());
        let hears = |note: Note| heard.lock().unwrap().push(note.to_string());
        let services = Services {
            hears: Some(&hears),
            ..Services::default()
        };
        services.note(Topic::Recording, "x");
        Services::default().note(Topic::Run, "nobody");
        assert_eq!(heard.into_inner().unwrap(), ["from: x"]);
    }

    #[test]
    fn work_that_nobody_waits_for_ends() {
        Services::default().check().unwrap();
        let services = Services {
            is_cancelled: Some(&|| true),
            ..Services::default()
        };
        services.check().unwrap_err();
    }
}
