//! Why an image cannot be made ready to run.

use std::fmt;

use model::Advice;

use crate::backend::Refusal;
use crate::decode::BadInsn;
use crate::memory::OutOfMemory;

/// A function that an object calls and nobody offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFunction {
    /// Its name.
    pub name: String,
    /// The prototype that is wanted; empty for helpers.
    pub prototype: String,
    /// Prototypes that are offered under this name instead.
    pub offered: Vec<&'static str>,
    /// The functions of the object that call it.
    pub callers: Vec<String>,
}

impl fmt::Display for MissingFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name)?;
        if !self.prototype.is_empty() {
            write!(f, ": {}", self.prototype)?;
        }
        write!(f, " (called by {})", self.callers.join(", "))?;
        if !self.offered.is_empty() {
            write!(f, "; simulated only as {}", self.offered.join(", "))?;
        }
        Ok(())
    }
}

/// Why an image cannot be made ready to run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// Functions that nobody offers, all of them.
    #[error("{} functions are not simulated:{}", .0.len(), lines(.0))]
    Missing(Vec<MissingFunction>),
    /// A map does not fit.
    #[error("map `{name}`: {source}")]
    MapMemory {
        /// The map.
        name: String,
        /// How much was wanted.
        source: OutOfMemory,
    },
    /// A map that no kernel would create.
    #[error("map `{name}`: {what}")]
    Map {
        /// The map.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Kernel variables or stacks do not fit.
    #[error("memory of the object: {0}")]
    Memory(#[from] OutOfMemory),
    /// The operating system refuses the address space.
    #[error("cannot reserve address space for the object (see `ulimit -v`): {0}")]
    Reserve(std::io::Error),
    /// An instruction that this machine does not know.
    #[error(transparent)]
    Code(#[from] BadInsn),
    /// Native code was demanded, and there is none.
    #[error("no native code: {0}")]
    Native(Refusal),
}

impl Advice for InstanceError {
    fn advice(&self) -> Option<String> {
        None
    }
}

fn lines(missing: &[MissingFunction]) -> String {
    missing
        .iter()
        .map(|function| format!("\n  {function}"))
        .collect()
}
