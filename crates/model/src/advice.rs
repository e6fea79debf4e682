//! What to do about an error. An error's `Display` says what is wrong; nobody searches or cuts it.

use std::error::Error;
use std::fmt;
use std::io;

/// An error that knows what to do about it.
pub trait Advice: Error {
    /// What to do, without a full stop; `None` where there is nothing to be said. An error that
    /// only passes another one on has the advice of that one.
    fn advice(&self) -> Option<String>;

    /// What is wrong and what to do in one line: `no x; give one`.
    fn in_full(&self) -> String {
        match self.advice() {
            Some(advice) => format!("{self}; {advice}"),
            None => self.to_string(),
        }
    }
}

impl<T: Advice> Advice for Box<T> {
    fn advice(&self) -> Option<String> {
        T::advice(self)
    }
}

/// A problem in words, and its advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advised {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub advice: Option<String>,
}

impl Advised {
    /// `what` is wrong, and `advice` is to be done.
    pub fn new(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            advice: Some(advice.into()),
        }
    }

    /// The words of another error, and its advice.
    pub fn of(error: &(impl Advice + ?Sized)) -> Self {
        Self {
            what: error.to_string(),
            advice: error.advice(),
        }
    }

    /// The same in a place, such as a file: `place: what`.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        Self {
            what: format!("{place}: {}", self.what),
            advice: self.advice,
        }
    }

    /// The same with this advice where it has none.
    #[must_use]
    pub fn or(mut self, advice: impl Into<String>) -> Self {
        self.advice.get_or_insert_with(|| advice.into());
        self
    }
}

impl fmt::Display for Advised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for Advised {}

impl Advice for Advised {
    fn advice(&self) -> Option<String> {
        self.advice.clone()
    }
}

impl From<String> for Advised {
    /// Words without advice.
    fn from(what: String) -> Self {
        Self { what, advice: None }
    }
}

impl From<&str> for Advised {
    fn from(what: &str) -> Self {
        Self::from(what.to_owned())
    }
}

/// A file or folder that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {file}: {source}")]
pub struct CannotRead {
    /// The file, as the caller names it.
    pub file: String,
    /// Error of the operating system.
    pub source: io::Error,
}

impl CannotRead {
    /// For `map_err`, where `file` is read.
    pub fn at(file: impl fmt::Display) -> impl Fn(io::Error) -> Self + Clone {
        let file = file.to_string();
        move |source| Self {
            file: file.clone(),
            source,
        }
    }
}

impl Advice for CannotRead {
    fn advice(&self) -> Option<String> {
        to_read(&self.source)
    }
}

/// A file or folder that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {file}: {source}")]
pub struct CannotWrite {
    /// The file, as the caller names it.
    pub file: String,
    /// Error of the operating system.
    pub source: io::Error,
}

impl CannotWrite {
    /// For `map_err`, where `file` is written.
    pub fn at(file: impl fmt::Display) -> impl Fn(io::Error) -> Self + Clone {
        let file = file.to_string();
        move |source| Self {
            file: file.clone(),
            source,
        }
    }
}

impl Advice for CannotWrite {
    fn advice(&self) -> Option<String> {
        to_write(&self.source)
    }
}

/// Advice for a file that the operating system does not let be read.
#[must_use]
pub fn to_read(error: &io::Error) -> Option<String> {
    if let Some(own) = error.advice() {
        return Some(own);
    }
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "check the name, and the folder that you are in",
        io::ErrorKind::PermissionDenied => {
            "ask for the permission to read it, or name another file"
        }
        _ => return either(error),
    };
    Some(advice.to_owned())
}

/// Advice for a file that the operating system does not let be written.
#[must_use]
pub fn to_write(error: &io::Error) -> Option<String> {
    if let Some(own) = error.advice() {
        return Some(own);
    }
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "make its folder first, or name another file",
        io::ErrorKind::PermissionDenied => {
            "ask for the permission to write it, or name another file"
        }
        _ => return either(error),
    };
    Some(advice.to_owned())
}

impl Advice for io::Error {
    /// That of an error of ours in the form of one of the system. Whoever asked the system knows
    /// whether it was to read or to write: [`to_read`], [`to_write`].
    fn advice(&self) -> Option<String> {
        let own = self.get_ref()?.downcast_ref::<Advised>()?;
        own.advice()
    }
}

fn either(error: &io::Error) -> Option<String> {
    let advice = match error.kind() {
        io::ErrorKind::NotADirectory => "a part of the path is no folder: correct it",
        io::ErrorKind::IsADirectory => "name a file, not a folder",
        io::ErrorKind::StorageFull => "free room on the disk, or name another place",
        io::ErrorKind::ReadOnlyFilesystem => "name a file in another place",
        _ => return None,
    };
    Some(advice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_advice_in_a_place() {
        let error = Advised::new("no `a; b`", "give one").at("x; y.toml");
        assert_eq!(error.to_string(), "x; y.toml: no `a; b`");
        assert_eq!(error.advice().as_deref(), Some("give one"));
        assert_eq!(error.in_full(), "x; y.toml: no `a; b`; give one");
        assert_eq!(Advised::from("no room").in_full(), "no room");
    }

    #[test]
    fn to_read_and_to_write_have_advice_of_their_own() {
        let gone = || io::Error::from_raw_os_error(2);
        let read = CannotRead::at("x")(gone());
        let write = CannotWrite::at("x")(gone());
        assert_eq!(
            (read.advice(), write.advice()),
            (
                Some("check the name, and the folder that you are in".to_owned()),
                Some("make its folder first, or name another file".to_owned())
            )
        );
        let is_folder = to_read(&io::Error::from_raw_os_error(21));
        assert_eq!(is_folder.as_deref(), Some("name a file, not a folder"));
        assert_eq!(to_write(&io::Error::other("odd")), None);
    }

    #[test]
    fn an_error_of_the_system_passes_on_the_advice_inside_of_it() {
        let refused = io::Error::other(Advised::new("it is a device", "name a file"));
        assert_eq!(to_write(&refused).as_deref(), Some("name a file"));
        let denied = Advised::new("another user's", "name another folder");
        let denied = io::Error::new(io::ErrorKind::PermissionDenied, denied);
        assert_eq!(to_write(&denied).as_deref(), Some("name another folder"));
    }
}
