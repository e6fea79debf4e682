//! Why a call of bpf(2) was not done.

use model::user_space::Refused;

use crate::Errno;
use crate::map::hash::InsertError;
use crate::memory::OutOfMemory;
use crate::stop::Fault;

/// Why a call was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// As a kernel refuses it; the loader is told.
    Refused(Refused),
    /// A program that the call ran has faulted.
    Fault(Fault),
}

impl CallError {
    /// Refused, with a log.
    pub(super) fn with_log(errno: Errno, log: impl Into<String>) -> Self {
        Self::Refused(Refused {
            errno: errno.0,
            log: log.into(),
        })
    }
}

impl From<Errno> for CallError {
    fn from(errno: Errno) -> Self {
        Self::with_log(errno, "")
    }
}

impl From<OutOfMemory> for CallError {
    fn from(_: OutOfMemory) -> Self {
        Errno::ENOMEM.into()
    }
}

impl From<InsertError> for CallError {
    fn from(error: InsertError) -> Self {
        match error {
            InsertError::Errno(errno) => errno.into(),
            InsertError::Memory(full) => full.into(),
        }
    }
}
