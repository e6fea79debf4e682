//! What is said of a fault or of a wait, and how it is written.

pub mod json;
pub mod text;

use stats::why::{Finding, Wait};

/// What is printed.
#[derive(Debug, Default)]
pub struct Explanation {
    /// About the run as a whole.
    pub finding: Option<Finding>,
    /// Single waits that were asked for.
    pub waits: Vec<Wait>,
    /// What the source does not tell.
    pub missing: Vec<String>,
    /// The command that shows it again.
    pub again: Option<String>,
    /// It comes from a dump, which has no times of the run.
    pub is_dump: bool,
}
