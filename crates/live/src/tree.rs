//! What the kernel counts for a command and everything that it starts.

use std::fs;
use std::iter::Sum;
use std::ops::Add;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};
use model::TaskCounters;

use crate::variables::is_section_map;
use crate::{Error, libbpf_log};

/// The compiled `tree.bpf.c`.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tree.bpf.o"));
/// The kernel frees a task some time after its end (a grace period of RCU).
const FREE_PATIENCE: Duration = Duration::from_secs(2);
/// From one look at the tasks that are left to the next.
const PAUSE: Duration = Duration::from_millis(20);

/// Numbers of all tasks that a process starts while this value lives, and of those that they
/// start.
#[derive(Debug)]
pub struct ProcessTree {
    _links: Vec<Link>,
    object: Object,
}

/// What the kernel has counted. The first three are those of /proc/PID/schedstat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Nanoseconds on a CPU.
    pub run_ns: u64,
    /// Nanoseconds runnable and without a CPU.
    pub wait_ns: u64,
    /// Times that a CPU was given.
    pub slices: u64,
    /// Moves to another CPU.
    pub migrations: u64,
    /// Switches because the task blocked.
    pub voluntary: u64,
    /// Switches because the task lost its CPU.
    pub involuntary: u64,
}

/// The sums over a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeCounts {
    /// Tasks of the tree so far, threads too.
    pub tasks: u64,
    /// Living ones among them.
    pub living: u64,
    /// Tasks that were not followed, because too many lived at a time.
    pub unseen: u64,
    /// The sums over the tasks that were followed.
    pub counts: TaskCounts,
}

impl ProcessTree {
    /// Follows what this process starts from now on.
    ///
    /// # Errors
    /// When the kernel does not take the tracing programs.
    pub fn of_this_process() -> Result<Self, Error> {
        let (object, log) = libbpf_log::listen(load);
        let refused = |source| Error::Refused {
            policy: "tree of processes".to_owned(),
            source,
            log: log.clone(),
        };
        let object = object.map_err(refused)?;
        let links = object.progs_mut().map(|program| program.attach());
        let links = links.collect::<Result<_, _>>().map_err(refused)?;
        Ok(Self {
            _links: links,
            object,
        })
    }

    /// The sums, once the tasks that have ended are freed or two seconds have passed. Tasks that
    /// live on count with what the files below `/proc` say of them now.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn counts(&self) -> Result<TreeCounts, Error> {
        let end = Instant::now() + FREE_PATIENCE;
        let has_dead = |living: &[u32]| {
            let mut paths = living.iter().map(|tid| format!("/proc/{tid}/stat"));
            paths.any(|path| !Path::new(&path).exists())
        };
        let mut living = self.living();
        while has_dead(&living) && Instant::now() < end {
            thread::sleep(PAUSE);
            living = self.living();
        }
        let mut sums = self.freed()?;
        sums.living = living.len() as u64;
        let now = living
            .iter()
            .map(|tid| TaskCounts::below(Path::new("/proc"), *tid));
        sums.counts = sums.counts + now.sum();
        Ok(sums)
    }

    /// The thread ids of the tasks that are not freed.
    fn living(&self) -> Vec<u32> {
        let Some(map) = self
            .object
            .maps()
            .find(|map| map.name().to_str() == Some("living"))
        else {
            return Vec::new();
        };
        let values = map
            .keys()
            .filter_map(|key| map.lookup(&key, MapFlags::ANY).ok()?);
        values
            .filter_map(|value| Some(u32::from_ne_bytes(*value.first_chunk()?)))
            .collect()
    }

    /// The sums over the tasks that are gone.
    fn freed(&self) -> Result<TreeCounts, Error> {
        let section = ".data.totals";
        let map = self
            .object
            .maps()
            .find(|map| is_section_map(&map.name().to_string_lossy(), section));
        let value = map.map(|map| map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY));
        let value = value.transpose().map_err(|source| Error::Map {
            policy: "tree of processes".to_owned(),
            map: section.to_owned(),
            source,
        })?;
        Ok(TreeCounts::parse(&value.flatten().unwrap_or_default()))
    }
}

fn load() -> Result<Object, libbpf_rs::Error> {
    let mut object = ObjectBuilder::default()
        .name("runslice_tree")?
        .open_memory(OBJECT)?;
    let root = object
        .maps_mut()
        .find(|map| is_section_map(&map.name().to_string_lossy(), ".data.root"));
    if let Some(mut root) = root {
        root.set_initial_value(&std::process::id().to_ne_bytes())?;
    }
    object.load()
}

impl TreeCounts {
    /// Reads `totals` of `tree.bpf.c`: nine numbers of eight bytes.
    fn parse(bytes: &[u8]) -> Self {
        let mut numbers = bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| u64::from_ne_bytes(*bytes));
        let mut next = || numbers.next().unwrap_or(0);
        let (forked, _freed) = (next(), next());
        let counts = TaskCounts {
            run_ns: next(),
            wait_ns: next(),
            slices: next(),
            migrations: next(),
            voluntary: next(),
            involuntary: next(),
        };
        Self {
            tasks: forked,
            living: 0,
            unseen: next(),
            counts,
        }
    }
}

impl TaskCounts {
    /// What the files of a task below `proc` say; zeros where they say nothing.
    fn below(proc: &Path, tid: u32) -> Self {
        let folder = proc.join(tid.to_string());
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let counters = TaskCounters::from_schedstat(&read("schedstat")).unwrap_or_default();
        let (status, sched) = (read("status"), read("sched"));
        let named = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_once(':')?.1.trim().parse().ok());
            value.unwrap_or(0)
        };
        Self {
            run_ns: counters.cpu_time,
            wait_ns: counters.run_delay,
            slices: counters.pcnt,
            migrations: named(&sched, "se.nr_migrations"),
            voluntary: named(&status, "voluntary_ctxt_switches"),
            involuntary: named(&status, "nonvoluntary_ctxt_switches"),
        }
    }
}

impl Add for TaskCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            run_ns: self.run_ns + other.run_ns,
            wait_ns: self.wait_ns + other.wait_ns,
            slices: self.slices + other.slices,
            migrations: self.migrations + other.migrations,
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
        }
    }
}

impl Sum for TaskCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_are_read_in_the_order_of_the_program() {
        let bytes: Vec<u8> = (1_u64..=9).flat_map(u64::to_ne_bytes).collect();
        let want = TreeCounts {
            tasks: 1,
            living: 0,
            unseen: 9,
            counts: TaskCounts {
                run_ns: 3,
                wait_ns: 4,
                slices: 5,
                migrations: 6,
                voluntary: 7,
                involuntary: 8,
            },
        };
        assert_eq!(TreeCounts::parse(&bytes), want);
    }

    #[test]
    fn a_living_task_counts_with_what_its_files_say() {
        let root = std::env::temp_dir().join(format!("runslice-tree-{}", std::process::id()));
        let folder = root.join("7");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("schedstat"), "300 20 4\n").unwrap();
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t1\n";
        fs::write(folder.join("status"), status).unwrap();
        let sched = "x (7, #threads: 1)\nse.nr_migrations      :       2\n";
        fs::write(folder.join("sched"), sched).unwrap();
        let want = TaskCounts {
            run_ns: 300,
            wait_ns: 20,
            slices: 4,
            migrations: 2,
            voluntary: 3,
            involuntary: 1,
        };
        assert_eq!(TaskCounts::below(&root, 7), want);
        assert_eq!(TaskCounts::below(&root, 8), TaskCounts::default());
        assert_eq!([want, want].into_iter().sum::<TaskCounts>(), want + want);
        fs::remove_dir_all(root).unwrap();
    }
}
