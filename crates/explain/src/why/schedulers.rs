//! What people call the schedulers of a run, and their queues.

use std::collections::BTreeMap;
use std::fmt;

use model::Text;

/// Names of the schedulers below the root, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct SchedulerNames(BTreeMap<u32, SchedulerName>);

#[derive(Clone, Debug)]
struct SchedulerName {
    policy: String,
    cgroup: String,
}

impl SchedulerNames {
    /// Of nobody.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Keeps the name of a scheduler, if the text is one.
    pub fn take(&mut self, text: &Text) {
        if let Text::Scheduler {
            scheduler,
            policy,
            cgroup,
        } = text
        {
            let name = SchedulerName {
                policy: policy.clone(),
                cgroup: cgroup.clone(),
            };
            self.0.insert(*scheduler, name);
        }
    }

    /// What the scheduler of this number is called; `None`: the root, which is the policy.
    #[must_use]
    pub fn name(&self, scheduler: u32) -> Option<String> {
        self.called(scheduler, |it| format!("{} at {}", it.policy, it.cgroup))
    }

    /// What stands in front of its queues' numbers: its cgroup, as in front of its functions;
    /// `None`: they are the root's or the kernel's.
    #[must_use]
    pub fn prefix(&self, scheduler: u32) -> Option<String> {
        self.called(scheduler, |it| it.cgroup.trim_matches('/').to_owned())
    }

    /// In `words`, or by its number if the run has not told its name.
    fn called(
        &self,
        scheduler: u32,
        words: impl FnOnce(&SchedulerName) -> String,
    ) -> Option<String> {
        let named = self.0.get(&scheduler).map(words);
        named.or_else(|| (scheduler > 0).then(|| format!("scheduler {scheduler}")))
    }
}

/// What people call a queue of a policy: `7`, and `app/dsq 7` if it is that of a scheduler at the
/// cgroup `/app`. Small numbers are written as they are, others as programmers write them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueName {
    /// The cgroup of its scheduler; `None`: the root's.
    pub of: Option<String>,
    /// Its number.
    pub id: u64,
}

impl fmt::Display for QueueName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(of) = &self.of {
            write!(to, "{of}/dsq ")?;
        }
        if self.id < 1 << 16 {
            write!(to, "{}", self.id)
        } else {
            write!(to, "{:#x}", self.id)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_is_called_by_its_policy_and_its_queues_by_its_cgroup() {
        let mut names = SchedulerNames::default();
        names.take(&Text::Scheduler {
            scheduler: 2,
            policy: "batch".to_owned(),
            cgroup: "/app/low".to_owned(),
        });
        assert_eq!(names.name(2).as_deref(), Some("batch at /app/low"));
        assert_eq!(names.prefix(2).as_deref(), Some("app/low"));
        assert_eq!((names.name(0), names.prefix(0)), (None, None));
        // A file may lack the text.
        assert_eq!(names.name(3).as_deref(), Some("scheduler 3"));
        let queue = |scheduler, id| {
            let of = names.prefix(scheduler);
            QueueName { of, id }.to_string()
        };
        assert_eq!(queue(2, 0), "app/low/dsq 0");
        assert_eq!(
            (queue(0, 7), queue(0, 0xffff)),
            ("7".to_owned(), "65535".to_owned())
        );
        assert_eq!(queue(2, 0x1_0000), "app/low/dsq 0x10000");
    }
}
