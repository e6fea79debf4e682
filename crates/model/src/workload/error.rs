//! What can be wrong with a workload file.

/// Why a workload could not be read. Every message begins with `file:line:column`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct WorkloadError {
    /// The file, as the caller named it.
    pub file: String,
    /// Line, from one.
    pub line: u32,
    /// Column in characters, from one.
    pub column: u32,
    /// What was found and what was expected.
    pub message: String,
}
