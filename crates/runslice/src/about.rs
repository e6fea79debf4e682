//! Where results come from: program and command line. Every form of results says it.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::Context as _;
use show::Origin;

use crate::exit::UnsupportedError;

/// The program and how it was called.
#[derive(Clone, Copy, Debug)]
pub struct About;

/// Whether this process runs the file of the program, and not a library that has the same inside.
static IS_PROGRAM: OnceLock<()> = OnceLock::new();

thread_local! {
    /// The words of the call that this thread serves.
    static WORDS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

impl About {
    /// The version of this program.
    pub const VERSION: &'static str = show::VERSION;

    /// The words of the command line, the program's name first, as it is called and not as it is
    /// found. What is no text is replaced.
    pub fn words() -> Vec<String> {
        if let Some(words) = WORDS.with_borrow(Clone::clone) {
            return words;
        }
        let rest = std::env::args_os().skip(1);
        let text = |word: OsString| word.to_string_lossy().into_owned();
        ["runslice".to_owned()]
            .into_iter()
            .chain(rest.map(text))
            .collect()
    }

    /// Does `work` as if the program had been called with `words`, of which the first is its name.
    /// Threads that `work` starts know nothing of it.
    pub fn called<Word: AsRef<OsStr>, T>(words: &[Word], work: impl FnOnce() -> T) -> T {
        struct Restore(Option<Vec<String>>);
        impl Drop for Restore {
            fn drop(&mut self) {
                WORDS.set(self.0.take());
            }
        }
        let rest = words.iter().skip(1);
        let rest = rest.map(|word| word.as_ref().to_string_lossy().into_owned());
        let words = ["runslice".to_owned()].into_iter().chain(rest).collect();
        let _restore = Restore(WORDS.replace(Some(words)));
        work()
    }

    /// From here on [`About::file`] knows the program's file.
    pub fn is_program() {
        // It may be said more than once.
        let _ = IS_PROGRAM.set(());
    }

    /// The file of this program, to start it again.
    ///
    /// # Errors
    /// When another program, such as Python's, has called its library.
    pub fn file() -> anyhow::Result<PathBuf> {
        if IS_PROGRAM.get().is_none() {
            let message = "this needs the program runslice itself, which it starts again or puts \
                           into a virtual machine, and not its Python package: build it with \
                           `make release`";
            return Err(UnsupportedError::new(message).into());
        }
        std::env::current_exe().context("cannot find this program's own file")
    }

    /// What results say of where they come from.
    pub fn origin() -> Origin {
        Origin::new(Self::words())
    }

    /// [`Origin::cells`] of this call.
    pub fn cells(table: &str, version: u32) -> [String; 3] {
        Self::origin().cells(table, version)
    }

    /// The command that makes the same again, for a shell.
    pub fn again() -> String {
        let words = Self::words().into_iter().skip(1);
        let words = words.map(|word| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+%".contains(c);
            if !word.is_empty() && word.chars().all(is_plain) {
                word
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        });
        let words: Vec<_> = words.collect();
        format!("runslice {}", words.join(" "))
    }

    /// [`Origin::command`] of this call.
    pub fn command() -> String {
        Self::origin().command()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_its_name_wherever_it_lies() {
        assert_eq!(About::words()[0], "runslice");
        assert!(About::command().starts_with("runslice"));
    }

    #[test]
    fn a_call_has_its_own_words_while_it_lasts() {
        let before = About::words();
        let words = About::called(&["/bin/x", "sim", "a b"], || {
            About::called(&["x", "list"], || {
                assert_eq!(About::words(), ["runslice", "list"]);
            });
            (About::words(), About::command())
        });
        assert_eq!(words.0, ["runslice", "sim", "a b"]);
        assert_eq!(words.1, "runslice sim 'a b'");
        assert_eq!(About::words(), before);
    }

    #[test]
    fn a_library_has_no_file_to_start_again() {
        let error = About::file().unwrap_err();
        assert!(error.is::<UnsupportedError>(), "{error}");
    }
}
