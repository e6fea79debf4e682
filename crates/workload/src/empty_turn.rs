//! Arrivals written as a `sleep`: the task must have a CPU before it sleeps, for no time.

use std::fmt;

use model::{Advice, Nanos};

use crate::dist::Dist;
use crate::tree::{Group, Operation, Step, Workload};

/// A group whose tasks are there at once, and sleep before their only work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyTurn {
    /// The group.
    pub group: String,
    /// The file, and the line there, counted from one.
    pub place: (String, u32),
}

impl fmt::Display for EmptyTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, line) = &self.place;
        write!(
            f,
            "{file}:{line}: {} begins with `sleep`, so that it comes late where it has to wait for \
             its first, empty turn",
            self.group
        )
    }
}

impl std::error::Error for EmptyTurn {}

impl Advice for EmptyTurn {
    fn advice(&self) -> Option<String> {
        Some("write the time as `start` of the task, which then comes at that time".to_owned())
    }
}

impl Workload {
    /// The groups whose tasks come by a `sleep`, in the order of the file. Among the many turns of
    /// a loop one more that is empty says nothing, so loops are passed over.
    #[must_use]
    pub fn empty_turns(&self) -> Vec<EmptyTurn> {
        let mut found: Vec<EmptyTurn> = self
            .groups
            .iter()
            .filter_map(|group| {
                let line = arrives_asleep(group)?;
                Some(EmptyTurn {
                    group: group.name.clone(),
                    place: (self.file.clone(), line),
                })
            })
            .collect();
        found.sort_by_key(|it| it.place.1);
        found
    }
}

/// The line of the `sleep` that a group's tasks begin with.
fn arrives_asleep(group: &Group) -> Option<u32> {
    let is_there_at_once = group.count > 0 && group.start == Dist::Const(Nanos::ZERO);
    let (first, rest) = group.body.split_first().filter(|_| is_there_at_once)?;
    let is_loop = |step: &Step| matches!(step.op, Operation::Loop { .. } | Operation::While { .. });
    let runs = rest.iter().any(|step| matches!(step.op, Operation::Run(_)));
    (matches!(first.op, Operation::Sleep(_)) && runs && !rest.iter().any(is_loop))
        .then_some(first.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty(task: &str) -> Vec<u32> {
        let text = format!("[workload]\nname = \"w\"\nstop = \"duration:1s\"\n[task.t]\n{task}\n");
        let workload = Workload::parse(&text, "w.toml").expect("a workload");
        workload.empty_turns().iter().map(|it| it.place.1).collect()
    }

    #[test]
    fn a_job_that_comes_by_a_sleep_has_an_empty_turn_and_one_with_a_start_has_none() {
        assert_eq!(empty("do = \"sleep(1ms), run(100ms)\""), [5]);
        assert_eq!(empty("start = \"1ms\"\ndo = \"run(100ms)\""), []);
        assert_eq!(
            empty("start = \"1ms\"\ndo = \"sleep(1ms), run(100ms)\""),
            []
        );
    }

    #[test]
    fn one_empty_turn_among_those_of_a_loop_and_a_sleep_without_work_are_passed_over() {
        assert_eq!(
            empty("do = \"sleep(1ms), loop(inf)[ run(1ms), sleep(1ms) ]\""),
            []
        );
        assert_eq!(empty("do = \"loop(inf)[ sleep(1ms), run(1ms) ]\""), []);
        assert_eq!(empty("do = \"sleep(1ms)\""), []);
        assert_eq!(empty("do = \"run(1ms), sleep(1ms), run(1ms)\""), []);
    }

    #[test]
    fn start_is_named_as_the_way_to_write_it() {
        let turn = EmptyTurn {
            group: "job".to_owned(),
            place: ("w.toml".to_owned(), 5),
        };
        let said = turn.in_full();
        for part in ["w.toml:5: job begins with `sleep`", "comes late", "`start`"] {
            assert!(said.contains(part), "{said}");
        }
    }
}
