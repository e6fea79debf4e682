//! The first turn of a CPU in which two runs differ.

use std::collections::BTreeSet;
use std::fmt;
use std::io::BufReader;
use std::path::Path;

use anyhow::Context as _;
use model::{CpuId, Event, EventKind, EventMask, Header, SimTime, Sink, TaskGroup, TaskId, What};
use serde::Serialize;

use crate::services::Services;

/// Turns that are looked at: runs that agree for so long need no first difference.
const MOST: usize = 1_000_000;

/// A task of the workload gets a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstTurn {
    /// When, in nanoseconds since the begin.
    pub time_ns: u64,
    /// Which CPU.
    pub cpu: u16,
    /// Which task.
    pub task: String,
}

impl fmt::Display for FirstTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time_ns, cpu, task } = self;
        write!(
            f,
            "{task} on CPU {cpu} at {} s",
            SimTime::from_nanos(*time_ns)
        )
    }
}

/// Where two runs part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct First {
    /// Number of the turn, from 1. All before it are of the same tasks on the same CPUs.
    pub turn: usize,
    /// What the kernel did; `None` if it had no more turns.
    pub played: Option<FirstTurn>,
    /// Results of the simulated machine.
    pub simulated: Option<FirstTurn>,
}

impl fmt::Display for First {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |turn: &Option<FirstTurn>| {
            let none = || "nothing more".to_owned();
            turn.as_ref().map_or_else(none, FirstTurn::to_string)
        };
        let (played, simulated) = (word(&self.played), word(&self.simulated));
        write!(
            f,
            "turn {}: played {played}, simulated {simulated}",
            self.turn
        )
    }
}

/// A task of the workload, as short as a line of events that has no name in it: a file of events
/// says each name once, and names can be long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    /// Which of [`Turns::groups`].
    group: u32,
    /// Its index, unless the group's name is enough: see [`traces::task_name`].
    index: Option<u32>,
}

/// A [`FirstTurn`] of such a task.
#[derive(Clone, Copy, Debug)]
struct Taken {
    time: SimTime,
    cpu: CpuId,
    task: Member,
}

/// Collects the turns of the tasks of some groups.
#[derive(Debug)]
pub struct Turns {
    /// Names of the groups, ascending.
    groups: Vec<String>,
    /// Which of them each group of the header is, if it counts, and whether it has one task.
    header: Vec<Option<(u32, bool)>>,
    /// The tasks that count, by number.
    tasks: Vec<Option<Member>>,
    turns: Vec<Taken>,
}

impl Turns {
    /// Turns of the tasks of groups with these names. Others are the machine's own.
    #[must_use]
    pub fn of(groups: impl IntoIterator<Item = String>) -> Self {
        let groups: BTreeSet<String> = groups.into_iter().collect();
        Self {
            groups: groups.into_iter().collect(),
            header: Vec::new(),
            tasks: Vec::new(),
            turns: Vec::new(),
        }
    }

    /// Adds those of a file of events.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(mut self, services: &Services<'_>, path: &Path) -> anyhow::Result<Self> {
        let name = || path.display().to_string();
        let file = services.open(path).with_context(name)?;
        traces::replay(BufReader::new(file.content), &mut self).with_context(name)?;
        Ok(self)
    }

    /// The first turn in which they differ. Times may differ: they always do.
    #[must_use]
    pub fn differ(&self, simulated: &Self) -> Option<First> {
        let longest = self.turns.len().max(simulated.turns.len());
        // Both have the turns of the same groups.
        let place = |turn: &Taken| (turn.cpu, turn.task);
        (0..longest).find_map(|at| {
            let [ours, theirs] = [&self.turns, &simulated.turns].map(|turns| turns.get(at));
            let same = ours.map(place) == theirs.map(place);
            (!same).then(|| First {
                turn: at + 1,
                played: self.at(at),
                simulated: simulated.at(at),
            })
        })
    }

    /// A turn, from 0.
    fn at(&self, at: usize) -> Option<FirstTurn> {
        let Taken { time, cpu, task } = *self.turns.get(at)?;
        let group = &self.groups[task.group as usize];
        Some(FirstTurn {
            time_ns: time.as_nanos(),
            cpu: cpu.0,
            task: match task.index {
                None => group.clone(),
                Some(index) => format!("{group}.{index}"),
            },
        })
    }

    /// Takes the groups of a header.
    fn named(&mut self, groups: &[TaskGroup]) {
        let known = |group: &TaskGroup| {
            let at = self.groups.binary_search(&group.name).ok()?;
            Some((u32::try_from(at).ok()?, group.count <= 1))
        };
        self.header = groups.iter().map(known).collect();
    }

    fn born(&mut self, group: u32, index: u32) {
        let named = self.header.get(group as usize).copied().flatten();
        let member = named.map(|(group, is_one)| Member {
            group,
            index: (!is_one || index > 0).then_some(index),
        });
        // Tasks are numbered without gaps, in the order in which they come to be.
        self.tasks.push(member);
    }

    fn turn(&mut self, task: TaskId, cpu: CpuId, time: SimTime) {
        let task = self.tasks.get(task.0 as usize).copied().flatten();
        if let Some(task) = task.filter(|_| self.turns.len() < MOST) {
            self.turns.push(Taken { time, cpu, task });
        }
    }
}

impl Sink for Turns {
    fn wants(&self) -> EventMask {
        EventMask::NONE.with(EventKind::New).with(EventKind::Switch)
    }

    fn begin(&mut self, header: &Header) {
        self.named(&header.groups);
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            match event.what() {
                What::New { group, index, .. } => self.born(group, index),
                What::Switch { .. } if event.task != TaskId::NONE => {
                    self.turn(event.task, event.cpu, event.time);
                }
                _ => {}
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use folder::OwnFolder;
    use model::{MachineSpec, Nanos};
    use traces::{JsonLines, Tee};
    use workload::{RunSpec, Workload};

    use super::*;
    use crate::policy;
    use crate::runner::Runner;
    use crate::services::tests::FILES;

    fn spec(policy: &str) -> RunSpec {
        let text = "[workload]\nname = \"load\"\n[task.hog]\ncount = 3\ndo = \"run(inf)\"\n\
                    [task.short]\ndo = \"loop(inf)[ run(1ms), sleep(7ms) ]\"\n";
        RunSpec {
            policy: policy::find(&FILES, policy).unwrap(),
            machine: MachineSpec {
                cpus: 2,
                ..MachineSpec::default()
            },
            workload: Arc::new(Workload::parse(text, "load.toml").unwrap()),
            seed: 1,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: Some(Nanos::from_secs(1)),
        }
    }

    fn groups() -> [String; 2] {
        ["hog", "short"].map(str::to_owned)
    }

    fn turns(policy: &str) -> Turns {
        let mut turns = Turns::of(groups());
        Runner::new(&spec(policy), &FILES)
            .with_sink(&mut turns)
            .start()
            .unwrap();
        turns
    }

    #[test]
    fn a_run_does_not_differ_from_itself_nor_from_its_file() {
        let folder = OwnFolder::new().unwrap();
        let path = folder.join("e.jsonl");
        let (mut turns, mut file) = (
            Turns::of(groups()),
            JsonLines::new(File::create(&path).unwrap()),
        );
        let mut both = Tee::new(vec![&mut turns, &mut file]);
        Runner::new(&spec("fifo"), &FILES)
            .with_sink(&mut both)
            .start()
            .unwrap();
        drop(both);
        file.close().unwrap();
        assert!(turns.turns.len() > 50);
        let read = Turns::of(groups()).read(&FILES, &path).unwrap();
        assert_eq!(read.differ(&turns), None);
        std::fs::write(&path, "{}\n").unwrap();
        Turns::of(groups()).read(&FILES, &path).unwrap_err();
    }

    #[test]
    fn where_two_policies_part_is_the_first_turn_of_another_task_or_cpu() {
        let (fifo, mlfq) = (turns("fifo"), turns("mlfq"));
        let first = fifo.differ(&mlfq).expect("they are no twins");
        let before = first.turn - 1;
        let place = |turn: &Taken| (turn.cpu, turn.task);
        let same = fifo.turns[..before].iter().zip(&mlfq.turns[..before]);
        assert!(same.clone().count() == before && same.clone().all(|(a, b)| place(a) == place(b)));
        assert_eq!(first.played, fifo.at(before));
        assert_eq!(first.simulated, mlfq.at(before));
        assert!(first.to_string().contains(" on CPU "), "{first}");
    }

    #[test]
    fn tasks_of_no_group_are_the_machines_own_and_do_not_count() {
        let mut hogs = Turns::of(["hog".to_owned()]);
        Runner::new(&spec("fifo"), &FILES)
            .with_sink(&mut hogs)
            .start()
            .unwrap();
        assert!(!hogs.turns.is_empty());
        let mut all = (0..hogs.turns.len()).map(|at| hogs.at(at).unwrap().task);
        assert!(all.all(|task| task.starts_with("hog.")));
    }

    #[test]
    fn a_task_is_called_as_in_every_table() {
        let groups = [("one", 1), ("two", 2)].map(|(name, count)| TaskGroup {
            name: name.to_owned(),
            nice: 0,
            count,
        });
        let mut turns = Turns::of(["two".to_owned(), "one".to_owned()]);
        turns.named(&groups);
        let born = [(0, 0), (0, 1), (1, 0), (1, 7), (2, 0)];
        for (number, (group, index)) in (0..).zip(born) {
            turns.born(group, index);
            turns.turn(TaskId(number), CpuId(0), SimTime::ZERO);
        }
        let named: Vec<String> = (0..4).map(|at| turns.at(at).unwrap().task).collect();
        assert_eq!(named, ["one", "one.1", "two.0", "two.7"]);
        // The last one is of a group that the header does not have.
        assert_eq!(turns.turns.len(), 4);
    }
}
