//! What no event of a recording says: how the machine is built, and what each thread may do.
//!
//! `runslice record` looks at both before and after, and keeps it with the events; whoever reads
//! them knows then what is unknown in other traces.

use serde::{Deserialize, Serialize};

use crate::{CPUS_MAX, Kernel, MachineSpec};

/// Version of the document; it grows when a field is removed or changes its meaning.
pub const SNAPSHOT_VERSION: u32 = 1;

/// The number of the option of a `trace.dat` that has a [`Snapshot`] as JSON: far above those of
/// trace-cmd, which passes over it.
pub const SNAPSHOT_OPTION: u16 = 0x5253;

/// The oldest kernel on which the built-in policies run: they call `scx_bpf_now()`. An older one is
/// simulated as today's, and the scheduler that it had is chosen by its release all the same.
const OLDEST: Kernel = Kernel::V6_16;

/// The machine and its threads, at the begin and at the end of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// [`SNAPSHOT_VERSION`].
    pub runslice_snapshot: u32,
    /// The kernel's release, such as `6.18.15+deb13-amd64`.
    pub kernel: String,
    /// The attached sched_ext policy, by its operations; `None`: the kernel's own scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// Ticks a second, if the kernel says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hz: Option<u32>,
    /// Whether the kernel puts sessions into groups of their own (`sched_autogroup_enabled`).
    #[serde(skip_serializing_if = "is_default")]
    pub autogroup: bool,
    /// CPUs that are online, as the kernel lists them: `0-3,5`.
    pub online: String,
    /// The CPUs that there are.
    pub cpus: Vec<CpuFacts>,
    /// The recorder's own process.
    #[serde(skip_serializing_if = "is_default")]
    pub recorder: u32,
    /// CPU time of a switch between two tasks with the wakeup before it, in nanoseconds, as two
    /// threads on one CPU measured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_ns: Option<u64>,
    /// Before the first event.
    pub begin: Moment,
    /// After the last event: what differs from the begin.
    pub end: Moment,
}

/// Where a CPU is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuFacts {
    /// Its number.
    pub cpu: u32,
    /// The hardware threads of its core, itself among them, as a list.
    #[serde(skip_serializing_if = "is_default")]
    pub core: String,
    /// The CPUs that share its last-level cache, as a list.
    #[serde(skip_serializing_if = "is_default")]
    pub llc: String,
    /// Its NUMA node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Its speed in 1024ths of the fastest one, where CPUs differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
}

/// Threads and groups of processes at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moment {
    /// The groups that threads are in, and those above.
    pub groups: Vec<GroupFacts>,
    /// The threads, by rising numbers.
    pub threads: Vec<ThreadFacts>,
}

/// Settings of a group of processes (cgroup).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupFacts {
    /// Where it is, such as `/user.slice`.
    pub path: String,
    /// `cpu.weight`, 1 to 10,000; 100 is normal. `None`: the group does not share out CPU time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// CPU time in a period, in microseconds (`cpu.max`); `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_us: Option<u64>,
    /// The period of the limit, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_us: Option<u64>,
    /// Whether its tasks run only when nobody else wants the CPU (`cpu.idle`).
    #[serde(skip_serializing_if = "is_default")]
    pub idle: bool,
}

/// Scheduling attributes of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadFacts {
    /// Its number.
    pub pid: u32,
    /// The number of its process; 0: the same.
    #[serde(skip_serializing_if = "is_default")]
    pub process: u32,
    /// Its name.
    pub comm: String,
    /// Its nice value as it was set, -20 to 19.
    #[serde(skip_serializing_if = "is_default")]
    pub nice: i8,
    /// `SCHED_*` (include/uapi/linux/sched.h): 0 is normal.
    #[serde(skip_serializing_if = "is_default")]
    pub policy: u32,
    /// Its real-time priority, 1 to 99; 0 for other policies.
    #[serde(skip_serializing_if = "is_default")]
    pub realtime: u8,
    /// Whether it is one of the kernel's own.
    #[serde(skip_serializing_if = "is_default")]
    pub kernel: bool,
    /// The CPUs that it may use, as a list; empty: not known.
    #[serde(skip_serializing_if = "is_default")]
    pub cpus: String,
    /// The path of its group; empty: the root, or not known.
    #[serde(skip_serializing_if = "is_default")]
    pub group: String,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Snapshot {
    /// The machine that is simulated in this one's place, and what it cannot stand for, one
    /// sentence each.
    #[must_use]
    pub fn machine(&self) -> (MachineSpec, Vec<String>) {
        let default = MachineSpec::default();
        let mut lacks = Vec::new();
        let online = cpus_of(&self.online);
        let last = online.iter().max().copied().unwrap_or(0);
        let cpus = last + 1;
        if online.len() != usize::from(cpus) {
            lacks.push(format!(
                "of the CPUs 0 to {last} only {} were online: all are simulated",
                self.online
            ));
        }
        if (self.cpus.iter()).any(|cpu| cpu.capacity.is_some_and(|capacity| capacity < 1024)) {
            let lack = "the CPUs are not equally fast: they are simulated as equals";
            lacks.push(lack.to_owned());
        }
        // A file may list any number: each is compared with all others.
        let facts = &self.cpus[..self.cpus.len().min(CPUS_MAX.into())];
        let sizes = |of: &dyn Fn(&CpuFacts) -> Vec<u16>| uniform(facts, of, cpus);
        let node = |cpu: &CpuFacts| -> Vec<u16> {
            let own = cpu.node;
            let same = facts.iter().filter(|it| it.node == own);
            same.filter_map(|it| u16::try_from(it.cpu).ok()).collect()
        };
        let smt = match sizes(&|cpu| cpus_of(&cpu.core)) {
            Some(size @ (1 | 2)) => size,
            _ => {
                let lack = "hardware threads are not numbered in pairs: each is simulated as a \
                            core of its own";
                lacks.push(lack.to_owned());
                1
            }
        };
        let mut kernel = Kernel::of_release(&self.kernel).unwrap_or_default();
        if kernel.version_code() < OLDEST.version_code() {
            kernel = Kernel::default();
            lacks.push(format!(
                "recorded on Linux {}: {} is simulated, because the built-in policies do not run \
                 on kernels before {}",
                self.kernel,
                kernel.name(),
                OLDEST.name()
            ));
        }
        let mut place = |size: Option<u16>, what: &str| match size {
            Some(size) if size < cpus => size,
            Some(_) => 0,
            None => {
                lacks.push(format!(
                    "{what} are not blocks of neighbours of one size: one for all CPUs is simulated"
                ));
                0
            }
        };
        // Those that a kernel can be built with (6.18, kernel/Kconfig.hz).
        let hz = self.hz.filter(|hz| [100, 250, 300, 1000].contains(hz));
        let spec = MachineSpec {
            cpus,
            smt,
            llc: place(sizes(&|cpu| cpus_of(&cpu.llc)), "caches"),
            node: place(sizes(&node), "nodes"),
            hz: hz.unwrap_or(default.hz),
            kernel,
            ..default
        };
        (spec, lacks)
    }
}

/// The size of the blocks of neighbours into which `of` divides all CPUs below `cpus`: each but
/// the last has that size and begins at a multiple of it. `None`: they are not so. What no CPU
/// tells is one block for each.
fn uniform(facts: &[CpuFacts], of: &dyn Fn(&CpuFacts) -> Vec<u16>, cpus: u16) -> Option<u16> {
    let told: Vec<(u16, Vec<u16>)> = facts
        .iter()
        .filter_map(|facts| Some((u16::try_from(facts.cpu).ok()?, of(facts))))
        .filter(|(cpu, block)| *cpu < cpus && !block.is_empty())
        .collect();
    let size = told.iter().map(|(_, block)| block.len()).max().unwrap_or(1);
    let size = u16::try_from(size).ok()?;
    let fits = |(cpu, block): &(u16, Vec<u16>)| {
        let begin = cpu / size * size;
        let until = begin.saturating_add(size).min(cpus);
        block.iter().copied().eq(begin..until)
    };
    told.iter().all(fits).then_some(size)
}

/// The CPUs of a list such as `0-3,5`, in the order of the list; none above 1023. What is no such
/// list has none.
#[must_use]
pub fn cpus_of(list: &str) -> Vec<u16> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.parse::<u16>(), last.parse::<u16>()) else {
            return Vec::new();
        };
        let room = usize::from(CPUS_MAX) - cpus.len();
        cpus.extend((first..=last.min(CPUS_MAX - 1)).take(room));
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(cpu: u32, core: &str, llc: &str, node: u32) -> CpuFacts {
        CpuFacts {
            cpu,
            core: core.to_owned(),
            llc: llc.to_owned(),
            node: Some(node),
            capacity: None,
        }
    }

    fn with(online: &str, cpus: Vec<CpuFacts>) -> Snapshot {
        Snapshot {
            kernel: "7.2.12+deb14-amd64".to_owned(),
            hz: Some(1000),
            online: online.to_owned(),
            cpus,
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_machine_of_two_nodes_with_pairs_of_threads_is_simulated_as_such() {
        let cpus = (0..8).map(|number| {
            let pair = number / 2 * 2;
            let (llc, node) = if number < 4 { ("0-3", 0) } else { ("4-7", 1) };
            cpu(number, &format!("{pair}-{}", pair + 1), llc, node)
        });
        let (machine, lacks) = with("0-7", cpus.collect()).machine();
        let MachineSpec {
            cpus,
            smt,
            llc,
            node,
            hz,
            kernel,
            ..
        } = machine;
        assert_eq!((cpus, smt, llc, node, hz), (8, 2, 4, 4, 1000));
        assert_eq!(kernel, Kernel::V7_2);
        assert_eq!(lacks, Vec::<String>::new());
    }

    #[test]
    fn a_machine_with_an_old_kernel_is_simulated_with_one_on_which_policies_run() {
        for release in [
            "4.19.0-27-amd64",
            "5.10.0-32-amd64",
            "6.1.0-50-amd64",
            "6.12.117",
        ] {
            let old = Snapshot {
                kernel: release.to_owned(),
                ..with("0-1", Vec::new())
            };
            let (machine, lacks) = old.machine();
            assert_eq!(machine.kernel, Kernel::default(), "{release}");
            let said = lacks.join("\n");
            assert!(
                said.contains(&format!("Linux {release}: 6.18 is simulated")),
                "{said}"
            );
        }
        let (machine, lacks) = with("0-1", Vec::new()).machine();
        assert_eq!((machine.kernel, lacks.len()), (Kernel::V7_2, 0));
    }

    #[test]
    fn what_a_simulated_machine_cannot_be_is_said() {
        // Threads of a core are n and n + 2, as many machines number them; CPU 3 is offline.
        let cpus = vec![
            cpu(0, "0,2", "0-3", 0),
            cpu(1, "1,3", "0-3", 0),
            CpuFacts {
                capacity: Some(512),
                ..cpu(2, "0,2", "0-3", 0)
            },
        ];
        let (machine, lacks) = with("0,2", cpus).machine();
        assert_eq!((machine.cpus, machine.smt), (3, 1));
        let said = lacks.join("\n");
        for want in ["only 0,2 were online", "in pairs", "equally fast", "caches"] {
            assert!(said.contains(want), "{want}: {said}");
        }
    }

    #[test]
    fn nothing_known_is_a_machine_of_one_cpu_and_no_list_is_too_long() {
        let (machine, _) = Snapshot::default().machine();
        assert_eq!((machine.cpus, machine.smt, machine.llc), (1, 1, 0));
        assert_eq!(cpus_of("0-2,5"), [0, 1, 2, 5]);
        for bad in ["", "x", "1-", "-1", "0,,1", "70000"] {
            assert_eq!(cpus_of(bad), Vec::<u16>::new(), "{bad}");
        }
        assert_eq!(cpus_of("0-65535").len(), 1024);
        let many = vec!["0-1023"; 1000].join(",");
        assert!(cpus_of(&many).len() <= 1024);
        let (machine, _) = with("0-65535", Vec::new()).machine();
        assert_eq!(machine.cpus, 1024);
    }
}
