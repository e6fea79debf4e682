//! What must be seen of a case, and what must not.

use explain::why::Fault;
use stats::compare::{Better, least_of};

use super::see::CaseSeen;
use crate::goal::{self, Goal};

/// What must be seen in a run of a bad version; each part that is given.
#[derive(Clone, Debug, Default)]
pub struct CaseSignature {
    /// One of these classes.
    pub classes: Vec<Fault>,
    /// None of these classes: then it is another bug.
    pub never: Vec<Fault>,
    /// The task that suffers: a name or its group's, in which `*` stands for any text.
    pub task: Option<String>,
    /// The kernel's reason and message, in which `*` stands for any text.
    pub message: Option<String>,
    /// A number of the run, and by which factor it is worse than the median of the good versions.
    pub worse: Option<(Goal, f64)>,
}

impl CaseSignature {
    /// The number that it asks for.
    #[must_use]
    pub fn goal(&self) -> Option<&Goal> {
        self.worse.as_ref().map(|(goal, _)| goal)
    }

    /// Whether it asks for nothing that a run without a fault lacks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.classes.is_empty() && self.message.is_none() && self.worse.is_none()
    }

    /// Whether a run shows it. `usual` is the median of the good versions' numbers.
    #[must_use]
    pub fn is_in(&self, seen: &CaseSeen, usual: Option<f64>) -> bool {
        let fault = seen.fault;
        let has_class = self.classes.is_empty() || fault.is_some_and(|it| self.has(it));
        let is_other = fault.is_some_and(|it| self.never.contains(&it));
        let task = self.task.as_deref();
        let message = self.message.as_deref();
        has_class
            && !is_other
            && task.is_none_or(|want| seen.victim.as_deref().is_some_and(|it| is_of(want, it)))
            && message.is_none_or(|want| {
                let ended = seen.ended.as_deref();
                ended.is_some_and(|it| goal::matches(want, it))
            })
            && self.is_worse(seen.value, usual)
    }

    fn has(&self, fault: Fault) -> bool {
        self.classes.contains(&fault)
    }

    /// Whether the number of a run is worse by the factor. Without numbers nothing is. Numbers that
    /// mean nothing count as the least that does: no wait is not worse than none.
    fn is_worse(&self, value: Option<f64>, usual: Option<f64>) -> bool {
        let Some((goal, factor)) = &self.worse else {
            return true;
        };
        let (Some(value), Some(usual)) = (value, usual) else {
            return false;
        };
        let least = least_of(goal.measure());
        let (value, usual) = (value.max(least), usual.max(least));
        match goal.better() {
            Better::Higher => value * factor <= usual,
            _ => value >= usual * factor,
        }
    }
}

/// Whether the task `name` is the one that is named, or one of the group.
fn is_of(want: &str, name: &str) -> bool {
    goal::matches(want, name) || goal::matches(want, goal::family(name))
}
