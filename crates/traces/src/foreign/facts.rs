//! What a snapshot beside the events knows of the threads.

use std::collections::HashMap;
use std::sync::Arc;

use model::Snapshot;
use model::snapshot::{SNAPSHOT_VERSION, ThreadFacts};

use crate::foreign::findings::Coverage;
use crate::foreign::tasks::Named;

/// `SCHED_FIFO`, `SCHED_RR` and `SCHED_DEADLINE` (include/uapi/linux/sched.h, 6.18).
const REALTIME: [u32; 2] = [1, 2];
const DEADLINE: u32 = 6;

/// Scheduling attributes of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedFacts {
    /// Its nice value as it was set.
    pub nice: i8,
    /// Its real-time priority, 1 to 99; `None` for other policies.
    pub realtime: Option<u8>,
    /// The CPUs that it may use, as a list; empty: all, or not known.
    pub cpus: Arc<str>,
    /// The path of its group; empty: the root, or not known.
    pub group: Arc<str>,
}

/// Reads what an option or a file has.
///
/// # Errors
/// What is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Snapshot, String> {
    let snapshot: Snapshot = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match snapshot.runslice_snapshot {
        SNAPSHOT_VERSION => Ok(snapshot),
        other => Err(format!(
            "version {other}, and this program knows {SNAPSHOT_VERSION}"
        )),
    }
}

/// The facts of each thread, by its number in `tasks`.
pub fn of_tasks(tasks: &[Named], snapshot: &Snapshot) -> (Vec<Option<SchedFacts>>, Coverage) {
    let online = model::snapshot::cpus_of(&snapshot.online);
    let of = |threads: &[ThreadFacts]| -> HashMap<u32, SchedFacts> {
        let facts = threads
            .iter()
            .map(|thread| (thread.pid, facts(thread, &online)));
        facts.collect()
    };
    let (begin, end) = (of(&snapshot.begin.threads), of(&snapshot.end.threads));
    // The last thread with a number is the one that was there at the end.
    let mut last = HashMap::new();
    for (id, task) in tasks.iter().enumerate() {
        last.insert(task.pid, id);
    }
    let mut coverage = Coverage::default();
    let mut all: Vec<Option<SchedFacts>> = Vec::with_capacity(tasks.len());
    for (id, task) in tasks.iter().enumerate() {
        let at_end = end
            .get(&task.pid)
            .filter(|_| !task.ended && last[&task.pid] == id);
        let (first, second) = match task.parent {
            None => (begin.get(&task.pid), at_end),
            Some(_) => (at_end, None),
        };
        coverage.changed += u64::from(matches!((first, second), (Some(a), Some(b)) if a != b));
        let parent = task
            .parent
            .and_then(|parent| all.get(parent.index()).cloned().flatten());
        let (own, counter) = match (first.or(second), parent) {
            (Some(seen), _) => (Some(seen.clone()), &mut coverage.seen),
            (None, Some(parent)) => (Some(parent.with_priority_of(task)), &mut coverage.inherited),
            (None, None) => (None, &mut coverage.unknown),
        };
        *counter += 1;
        all.push(own);
    }
    let groups = snapshot.begin.groups.iter();
    let sets = |group: &&model::snapshot::GroupFacts| {
        group.quota_us.is_some() || group.idle || group.weight.is_some_and(|weight| weight != 100)
    };
    coverage.groups = groups.filter(sets).count() as u64;
    (all, coverage)
}

impl SchedFacts {
    /// The same for a task whose events show a priority: it may have set its own.
    fn with_priority_of(self, task: &Named) -> Self {
        match (task.prio, task.realtime()) {
            (None, _) => self,
            (Some(_), None) => Self {
                nice: task.nice(),
                realtime: None,
                ..self
            },
            (Some(_), realtime) => Self { realtime, ..self },
        }
    }
}

fn facts(thread: &ThreadFacts, online: &[u16]) -> SchedFacts {
    let own = model::snapshot::cpus_of(&thread.cpus);
    // No list of real CPUs is longer, and each task that inherits it reads it again.
    let is_list = !own.is_empty() && thread.cpus.len() <= 8 << 10;
    let is_bound = is_list && online.iter().any(|cpu| !own.contains(cpu));
    SchedFacts {
        nice: thread.nice.clamp(-20, 19),
        realtime: match thread.policy {
            policy if REALTIME.contains(&policy) => Some(thread.realtime.clamp(1, 99)),
            DEADLINE => Some(99),
            _ => None,
        },
        cpus: if is_bound {
            (*thread.cpus).into()
        } else {
            Arc::default()
        },
        // Forked threads share what they inherit, however long it is.
        group: (*thread.group).into(),
    }
}

#[cfg(test)]
mod tests {
    use model::TaskId;
    use model::snapshot::{GroupFacts, Moment};

    use super::*;
    use crate::foreign::record::Comm;

    fn named(pid: u32, parent: Option<u32>, ended: bool) -> Named {
        Named {
            comm: Comm::new(b"x"),
            pid,
            prio: None,
            mostly: None,
            parent: parent.map(TaskId),
            ended,
            alarm: None,
        }
    }

    fn thread(pid: u32, nice: i8, cpus: &str) -> ThreadFacts {
        ThreadFacts {
            pid,
            nice,
            cpus: cpus.to_owned(),
            ..ThreadFacts::default()
        }
    }

    #[test]
    fn a_thread_has_what_was_seen_of_it_or_what_its_parent_had() {
        let mut realtime = thread(20, 0, "0-3");
        (realtime.policy, realtime.realtime) = (1, 30);
        let snapshot = Snapshot {
            online: "0-3".to_owned(),
            begin: Moment {
                threads: vec![thread(10, 5, "1,2"), realtime],
                groups: vec![
                    GroupFacts {
                        weight: Some(100),
                        ..GroupFacts::default()
                    },
                    GroupFacts {
                        quota_us: Some(1000),
                        ..GroupFacts::default()
                    },
                ],
            },
            end: Moment {
                threads: vec![thread(10, 7, "0-3"), thread(12, -3, "0-3")],
                groups: Vec::new(),
            },
            ..Snapshot::default()
        };
        let tasks = [
            named(10, None, false),
            named(20, None, false),
            // Forked: one that is gone at the end, and one that is there.
            named(11, Some(0), true),
            named(12, Some(0), false),
            // Its number was used before.
            named(12, Some(1), true),
            named(99, None, true),
        ];
        let (facts, coverage) = of_tasks(&tasks, &snapshot);
        let of = |id: usize| {
            let facts = facts[id].as_ref().unwrap();
            (facts.nice, facts.realtime, &*facts.cpus)
        };
        assert_eq!(of(0), (5, None, "1,2"));
        assert_eq!(of(1), (0, Some(30), ""), "all CPUs are no limit");
        assert_eq!(of(2), (5, None, "1,2"));
        assert_eq!(of(4), (0, Some(30), ""));
        assert_eq!(facts[5], None);
        // The last with number 12 has ended, so that the snapshot is of neither.
        assert_eq!(of(3), (5, None, "1,2"));
        let want = Coverage {
            seen: 2,
            inherited: 3,
            unknown: 1,
            changed: 1,
            groups: 1,
        };
        assert_eq!(coverage, want);
        let (facts, _) = of_tasks(&tasks[..4], &snapshot);
        assert_eq!(facts[3].as_ref().unwrap().nice, -3);
        // A thread's events tell what it made of its inheritance.
        let set = |prio| Named {
            prio: Some(prio),
            ..named(11, Some(0), true)
        };
        let (facts, _) = of_tasks(&[named(10, None, false), set(49), set(130)], &snapshot);
        let of = |id: usize| {
            let facts = facts[id].as_ref().unwrap();
            (facts.nice, facts.realtime, &*facts.cpus)
        };
        assert_eq!(of(1), (5, Some(50), "1,2"));
        assert_eq!(of(2), (10, None, "1,2"));
    }

    #[test]
    fn a_snapshot_of_another_version_or_none_is_refused_with_the_reason() {
        let error = |text: &str| parse(text.as_bytes()).unwrap_err();
        assert!(error("{}").contains("version 0"));
        assert!(error("{\"runslice_snapshot\":2}").contains("version 2"));
        assert!(error("{").contains("EOF"));
        assert!(error("{\"runslice_snapshot\":1,\"cpus\":7}").contains("invalid type"));
        let deep = format!("{{\"later\":{}", "[".repeat(100_000));
        assert!(error(&deep).contains("EOF"), "no depth ends the process");
        let unknown = "{\"runslice_snapshot\":1,\"later\":[1]}";
        assert!(
            parse(unknown.as_bytes()).is_ok(),
            "what comes later is passed over"
        );
    }
}
