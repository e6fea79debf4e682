//! What a caller lends to a question. Everything may be absent: a page in a browser has no files.

use std::cell::RefCell;
use std::io::{self, Read, Seek};
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use model::user_space::UserSpace;
use model::{Advised, Program};
use workload::RunSpec;

use crate::error::Cancelled;
use crate::kind::WordKind;
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

/// What a compiler made of a source.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The object.
    pub object: Vec<u8>,
    /// What its author should know.
    pub notes: Vec<String>,
}

/// Policies as C sources.
pub trait Compiler: Sync {
    /// The object of the policy whose source is in the file at `path`.
    ///
    /// # Errors
    /// When there is no compiler, or the source does not compile.
    fn object(&self, path: &Path) -> anyhow::Result<Compiled>;

    /// The object of the policy with this text, whose file would be called `name`.
    ///
    /// # Errors
    /// The errors of [`Compiler::object`].
    fn object_of_text(&self, name: &str, text: &str) -> anyhow::Result<Compiled>;
}

/// A scheduler's own program that runs, one thread at a time, in simulated time.
pub trait Supervised: UserSpace {
    /// Keeps what `program` is to leave behind: what it printed, and the metrics that it served.
    /// A sentence for each thing that it asked for and that is not there.
    ///
    /// # Errors
    /// When a file cannot be written.
    fn close(&mut self, program: &Program) -> anyhow::Result<Vec<String>>;
}

/// A program that the simulated machine drives, and that is looked at afterwards.
pub type StartedProgram = Rc<RefCell<dyn Supervised>>;

/// Schedulers' own programs.
pub trait Programs: Sync {
    /// Starts `program` on the machine of `spec`.
    ///
    /// # Errors
    /// When it cannot be started.
    fn start(&self, program: &Program, spec: &RunSpec) -> anyhow::Result<StartedProgram>;

    /// A number of the bytes of the program's file, for the keys of kept results; 0 if there is no
    /// such file.
    fn number_of_file(&self, command: &[String]) -> u128;
}

/// Threads.
pub trait Workers: Sync {
    /// Threads of a question that does not say how many.
    fn usual(&self) -> NonZeroUsize;

    /// Calls `work` with the numbers below `count` in their order, on at most `jobs` threads at a
    /// time, and calls it no more after it has returned false. Returns when no call lasts. `name`
    /// says what is being counted.
    fn each(
        &self,
        count: usize,
        jobs: NonZeroUsize,
        name: &str,
        work: &(dyn Fn(usize) -> bool + Sync),
    );

    /// Does `both` at the same time on threads of their own, and `here` on this one. Returns when
    /// all are over.
    ///
    /// # Errors
    /// When there is no thread left; `here` is dropped then, and was not called.
    fn beside<'a>(&self, both: [Job<'a>; 2], here: Box<dyn FnOnce() + 'a>) -> io::Result<()>;
}

/// Work for a thread of its own.
pub type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// What the words of a question name, where they stand in the wrong place: the message shows the
/// command that was meant.
pub trait Words: Sync {
    /// What to say of `name` in a place for `wanted`, if it names something else.
    fn misplaced(&self, name: &str, wanted: WordKind) -> Option<Advised>;

    /// What to say of the file at `path` in a place for `wanted`, if it holds something else.
    fn misplaced_file(&self, path: &Path, wanted: WordKind) -> Option<Advised>;
}

/// What a caller lends to a question.
#[derive(Clone, Copy, Default)]
pub struct Services<'a> {
    /// Files. Without them only what is built in has a name.
    pub files: Option<&'a dyn Files>,
    /// A compiler. Without it no policy is a C source.
    pub compiler: Option<&'a dyn Compiler>,
    /// Schedulers' own programs. Without it only recordings of them are played back.
    pub programs: Option<&'a dyn Programs>,
    /// Threads. Without them one run is made after the other.
    pub workers: Option<&'a dyn Workers>,
    /// Whether nobody waits for the answer any more. It may be asked on any thread.
    pub is_cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// Who hears notes, on the thread that they come from. Without it nobody does.
    pub hears: Option<&'a (dyn Fn(&Note) + Sync)>,
    /// What the caller knows of words in the wrong place.
    pub words: Option<&'a dyn Words>,
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

    /// What to say of `name` in a place for `wanted`, if it names something else.
    #[must_use]
    pub fn misplaced(&self, name: &str, wanted: WordKind) -> Option<Advised> {
        self.words?.misplaced(name, wanted)
    }

    /// What to say of the file at `path` in a place for `wanted`, if it holds something else.
    #[must_use]
    pub fn misplaced_file(&self, path: &Path, wanted: WordKind) -> Option<Advised> {
        self.words?.misplaced_file(path, wanted)
    }

    /// Tells a note to whoever hears them.
    pub fn note(&self, topic: Topic, text: impl Into<String>) {
        if let Some(hears) = self.hears {
            let text = text.into();
            hears(&Note { topic, text });
        }
    }

    /// As many threads as were asked for, or as is usual.
    #[must_use]
    pub fn jobs(&self, asked: Option<NonZeroUsize>) -> NonZeroUsize {
        let usual = || self.workers.map_or(NonZeroUsize::MIN, Workers::usual);
        asked.unwrap_or_else(usual)
    }

    /// Does `work` on every item, on at most `jobs` threads, and returns what came of them in their
    /// order. `name` says what is being counted.
    ///
    /// # Errors
    /// That of the first item, in their order, that has one. Items after it may not have been
    /// touched.
    pub fn map<Item: Sync, Made: Send>(
        &self,
        items: &[Item],
        jobs: NonZeroUsize,
        name: &str,
        work: impl Fn(&Item) -> anyhow::Result<Made> + Sync,
    ) -> anyhow::Result<Vec<Made>> {
        let made = Mutex::new(Vec::with_capacity(items.len()));
        let one = |at: usize| {
            let result = self.check().map_err(Into::into);
            let result = result.and_then(|()| work(&items[at]));
            let goes_on = result.is_ok();
            let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
            made.push((at, result));
            goes_on
        };
        match self.workers {
            Some(workers) => workers.each(items.len(), jobs, name, &one),
            None => {
                let _ = (0..items.len()).all(one);
            }
        }
        let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        made.sort_by_key(|(at, _)| *at);
        made.into_iter().map(|(_, result)| result).collect()
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
        programs: None,
        workers: None,
        is_cancelled: None,
        hears: None,
        words: None,
    };

    #[test]
    fn without_threads_work_is_done_in_turn_up_to_the_first_failure() {
        let none = Services::default();
        let done = Mutex::new(Vec::new());
        let result = none.map(&[1, 2, 3, 4], none.jobs(None), "n", |n| {
            done.lock().unwrap().push(*n);
            anyhow::ensure!(*n < 3, "item {n}");
            Ok(n * n)
        });
        assert_eq!(result.unwrap_err().to_string(), "item 3");
        assert_eq!(done.into_inner().unwrap(), [1, 2, 3]);
        let squares = none.map(&[1, 2], none.jobs(None), "n", |n| Ok(n * n));
        assert_eq!(squares.unwrap(), [1, 4]);
    }

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
        let hears = |note: &Note| heard.lock().unwrap().push(note.to_string());
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
