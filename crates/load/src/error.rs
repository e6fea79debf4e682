//! Why a load could not be run, or a workload not played.

use std::io;
use std::path::Path;

use model::{Advice, Advised};

/// Why a load could not be run, or a workload not played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused something.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was to be done, as an infinitive.
        doing: String,
        /// The system's words.
        source: io::Error,
    },
    /// A program that the load starts is not there.
    #[error("the load needs the program `{program}`")]
    Missing {
        /// Its name.
        program: String,
        /// How to get it.
        way: String,
    },
    /// A process of the load failed. It has said why on standard error.
    #[error("a process of the load ({name}) ended with {how}")]
    Member {
        /// How the process was called.
        name: String,
        /// Its status or signal.
        how: String,
    },
    /// A program that the load starts failed.
    #[error("`{program}` failed: {words}")]
    Tool {
        /// Its name.
        program: String,
        /// Its last words.
        words: String,
    },
    /// A size that the load cannot have.
    #[error("{0}")]
    Size(String),
    /// A workload could not be played.
    #[error("cannot play: {why}")]
    Play {
        /// What happened, with file, line and task where there is one.
        why: Advised,
    },
    /// Attaching or tracing failed.
    #[error(transparent)]
    Live(#[from] live::Error),
}

impl Advice for Error {
    fn advice(&self) -> Option<String> {
        match self {
            Self::System { source, .. } => model::to_read(source),
            Self::Member { .. } | Self::Tool { .. } | Self::Size(_) => None,
            Self::Missing { way, .. } => Some(way.clone()),
            Self::Play { why } => why.advice(),
            Self::Live(error) => error.advice(),
        }
    }
}

impl Error {
    /// Makes an error of what the system said while `doing` something.
    pub(crate) fn doing(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        |source| Self::System { doing, source }
    }

    /// The same for a file.
    pub(crate) fn file(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::doing(format!("{doing} {}", path.display()))
    }
}
