//! What can be wrong with experiments.

use std::path::PathBuf;

use model::file::{FileError, FilePlace, Source};
use model::{Advice, Advised};
use toml::Spanned;

/// Why something that an experiment names cannot be had; the program that reads it says.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The result of reading or judging experiments.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why experiments cannot be read or judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file has not the form that it should have.
    #[error(transparent)]
    File(#[from] FileError),
    /// A value of a file means nothing here.
    #[error("{place}: {what}")]
    Wrong {
        /// Where it stands.
        place: FilePlace,
        /// What is wrong with it.
        what: Advised,
    },
    /// A line of expected.csv is wrong.
    #[error("{line}: {what}")]
    Row {
        /// File and line.
        line: String,
        /// What is wrong with it.
        what: String,
    },
    /// What a value names cannot be had.
    #[error("{place}")]
    Named {
        /// Where it stands.
        place: FilePlace,
        /// Why.
        source: Cause,
    },
    /// A file that must be there is not.
    #[error("{0} is missing")]
    Missing(String),
    /// A folder has no statements.toml.
    #[error("{} is no folder of experiments: it has no statements.toml", .0.display())]
    NoStatements(PathBuf),
    /// A file or a folder cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Advice for Error {
    fn advice(&self) -> Option<String> {
        match self {
            Self::File(error) => error.advice(),
            Self::Wrong { what, .. } => what.advice(),
            Self::Unreadable { source, .. } => model::to_read(source),
            _ => None,
        }
    }
}

/// An error about a value of a file.
pub fn wrong<T>(source: &Source<'_>, value: &Spanned<T>, what: impl Into<Advised>) -> Error {
    Error::Wrong {
        place: source.place(value.span().start),
        what: what.into(),
    }
}
