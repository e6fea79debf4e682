//! Where results come from: program and command line. Every form of results says it.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};

use show::Origin;

use crate::programs;

/// The program and how it was called.
#[derive(Clone, Copy, Debug)]
pub struct About;

thread_local! {
    /// The words of the call that this thread serves.
    static WORDS: RefCell<Option<Vec<OsString>>> = const { RefCell::new(None) };
}

impl About {
    /// The version of this program.
    pub const VERSION: &'static str = show::VERSION;

    /// The words of the command line, the program's name first, as it is called and not as it is
    /// found. What is no text is replaced.
    pub fn words() -> Vec<String> {
        let words = Self::raw_words().into_iter();
        words.map(|it| it.to_string_lossy().into_owned()).collect()
    }

    /// [`About::words`] as they were given.
    pub fn raw_words() -> Vec<OsString> {
        WORDS
            .with_borrow(Clone::clone)
            .unwrap_or_else(programs::words)
    }

    /// Does `work` as if the program had been called with `words`, of which the first is its name.
    /// Threads that `work` starts know nothing of it.
    pub fn called<Word: AsRef<OsStr>, T>(words: &[Word], work: impl FnOnce() -> T) -> T {
        struct Restore(Option<Vec<OsString>>);
        impl Drop for Restore {
            fn drop(&mut self) {
                WORDS.set(self.0.take());
            }
        }
        let rest = words.iter().skip(1).map(|word| word.as_ref().to_owned());
        let words = [programs::RUNSLICE.into()].into_iter().chain(rest);
        let _restore = Restore(WORDS.replace(Some(words.collect())));
        work()
    }

    /// What results say of where they come from.
    pub fn origin() -> Origin {
        Origin::new(Self::words())
    }

    /// The command that makes the same again, for a shell.
    pub fn again() -> String {
        Self::origin().again()
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
}
