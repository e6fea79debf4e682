//! What is said of a fault or of a wait, and how it is written.

pub mod json;
pub mod text;

use explain::why::{Finding, Observer, Wait};

/// What is printed.
#[derive(Clone, Debug, Default)]
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

impl Explanation {
    /// What was seen of a run. `again` is the command that repeats it.
    #[must_use]
    pub fn of(observer: &Observer, again: Option<String>) -> Self {
        let mut missing = Vec::new();
        if !observer.has_decisions() {
            missing.push(
                "these events have no decisions, so they do not tell why: make the run again with \
                 `sim --events FILE --decisions`"
                    .to_owned(),
            );
        }
        Self {
            finding: observer.finding(),
            waits: observer.worst(),
            missing,
            again,
            is_dump: false,
        }
    }
}
