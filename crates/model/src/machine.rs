//! The machine that a run takes place on.

use serde::{Deserialize, Serialize};

use crate::{CpuGroups, CpuPlaces, Hardware, Interleave, Nanos, Profile, Textbook};

/// Which kernel's sched_ext behaviour the machine has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Kernel {
    /// Linux 6.12: its source as Debian has it (6.12.117), which builds it without `sched_ext`.
    #[serde(rename = "6.12")]
    V6_12,
    /// Linux 6.16 as Debian ships it (6.16.12).
    #[serde(rename = "6.16")]
    V6_16,
    /// Linux 6.17 as Debian ships it (6.17.13).
    #[serde(rename = "6.17")]
    V6_17,
    /// Linux 6.18 as Debian ships it (6.18.15).
    #[default]
    #[serde(rename = "6.18")]
    V6_18,
    /// Linux 6.19 as Debian ships it (6.19.14).
    #[serde(rename = "6.19")]
    V6_19,
    /// Linux 7.0 as Debian ships it (7.0.13).
    #[serde(rename = "7.0")]
    V7_0,
    /// Linux 7.1 as Debian ships it (7.1.13).
    #[serde(rename = "7.1")]
    V7_1,
    /// Linux 7.2 as Debian ships it (7.2.12).
    #[serde(rename = "7.2")]
    V7_2,
    /// Linux 7.3 as Debian ships it (7.3.4).
    #[serde(rename = "7.3")]
    V7_3,
}

impl Kernel {
    /// Every kernel, oldest first.
    pub const ALL: [Self; 9] = [
        Self::V6_12,
        Self::V6_16,
        Self::V6_17,
        Self::V6_18,
        Self::V6_19,
        Self::V7_0,
        Self::V7_1,
        Self::V7_2,
        Self::V7_3,
    ];

    /// The newest of [`ALL`](Self::ALL) that is not newer than `release`, such as
    /// `6.19.14+deb13-amd64`: a real kernel behaves like that one as far as is known. The oldest
    /// when all are newer; `None` if `release` does not begin with two numbers.
    #[must_use]
    pub fn of_release(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
            return None;
        };
        let not_newer = |kernel: &&Self| {
            let code = kernel.version_code();
            (code >> 16, code >> 8 & 0xff) <= (major, minor)
        };
        let found = Self::ALL.iter().rev().find(not_newer).copied();
        found.or(Some(Self::ALL[0]))
    }

    /// The version as the kernel's `LINUX_VERSION_CODE` encodes it.
    #[must_use]
    pub const fn version_code(self) -> u32 {
        match self {
            Self::V6_12 => 6 << 16 | 12 << 8 | 117,
            Self::V6_16 => 6 << 16 | 16 << 8 | 12,
            Self::V6_17 => 6 << 16 | 17 << 8 | 13,
            Self::V6_18 => 6 << 16 | 18 << 8 | 15,
            Self::V6_19 => 6 << 16 | 19 << 8 | 14,
            Self::V7_0 => 7 << 16 | 13,
            Self::V7_1 => 7 << 16 | 1 << 8 | 13,
            Self::V7_2 => 7 << 16 | 2 << 8 | 12,
            Self::V7_3 => 7 << 16 | 3 << 8 | 4,
        }
    }

    /// The version as people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V6_12 => "6.12",
            Self::V6_16 => "6.16",
            Self::V6_17 => "6.17",
            Self::V6_18 => "6.18",
            Self::V6_19 => "6.19",
            Self::V7_0 => "7.0",
            Self::V7_1 => "7.1",
            Self::V7_2 => "7.2",
            Self::V7_3 => "7.3",
        }
    }
}

/// Most CPUs of a machine: their numbers are below it.
pub const CPUS_MAX: u16 = 1024;

/// A machine: how many CPUs, how fast its tick, which kernel, what things cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineSpec {
    /// Number of CPUs, `1..=CPUS_MAX`.
    pub cpus: u16,
    /// Hardware threads of one core, 1 or 2; CPUs `2n` and `2n + 1` then share a core.
    pub smt: u16,
    /// CPUs that share a last-level cache; 0 for all of them, or all of a node.
    pub llc: u16,
    /// CPUs of one NUMA node; 0 for all of them. Every other node is equally far.
    #[serde(skip_serializing_if = "is_zero")]
    pub node: u16,
    /// Ticks a second: 100, 250, 300 or 1000.
    pub hz: u32,
    /// The kernel whose behaviour is simulated.
    pub kernel: Kernel,
    /// Costs of actions.
    pub profile: Profile,
    /// How much later than CPU 0 each following CPU ticks; 0 as the kernel boots by default
    /// (`skew_tick=0`).
    pub tick_skew_ns: u64,
    /// Whether a policy may let tasks wait for as long as it likes, as before there was
    /// `sched_ext`. No kernel with it does that: its watchdog ends such a policy.
    #[serde(skip_serializing_if = "is_false")]
    pub no_watchdog: bool,
    /// How its CPUs differ; `None`: they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Box<Hardware>>,
    /// When CPUs come in between while a program runs on another one; `None`: a callback is atomic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interleave: Option<Interleave>,
    /// The order within an instant, if it is a machine as textbooks have it. It has one CPU and no
    /// costs then, and no tick but at the end of a slice of the policy's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub textbook: Option<Textbook>,
}

impl Default for MachineSpec {
    /// One socket of 4 CPUs, HZ 250 as Debian has it.
    fn default() -> Self {
        Self {
            cpus: 4,
            smt: 1,
            llc: 0,
            node: 0,
            hz: 250,
            kernel: Kernel::default(),
            profile: Profile::default(),
            tick_skew_ns: 0,
            no_watchdog: false,
            hardware: None,
            interleave: None,
            textbook: None,
        }
    }
}

/// Machines of one node are written as they were before there were nodes.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(value: &u16) -> bool {
    *value == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

impl MachineSpec {
    /// A machine as textbooks have it, which lets tasks wait for as long as the policy likes.
    #[must_use]
    pub fn by_the_book(order: Textbook) -> Self {
        Self {
            cpus: 1,
            no_watchdog: true,
            textbook: Some(order),
            ..Self::default()
        }
    }

    /// Words for what a machine as textbooks have it is and this one, which should be one, is not.
    #[must_use]
    pub fn outside_the_book(&self) -> Option<&'static str> {
        self.textbook?;
        if (self.cpus, self.smt) != (1, 1) {
            return Some("one CPU");
        }
        if self.profile.costs().is_some() || !self.profile.background().is_empty() {
            return Some("no costs and no threads in the background");
        }
        if self.hardware.is_some() {
            return Some("no hardware");
        }
        self.interleave
            .is_some()
            .then_some("nobody who comes in between callbacks")
    }

    /// CPUs of one NUMA node, 1 or more; the last node may have fewer.
    #[must_use]
    pub const fn node_size(&self) -> u16 {
        let all = if self.cpus == 0 { 1 } else { self.cpus };
        if self.node == 0 || self.node > all {
            all
        } else {
            self.node
        }
    }

    /// CPUs of one last-level cache, 1 or more.
    #[must_use]
    pub const fn cache_size(&self) -> u16 {
        let node = self.node_size();
        if self.llc == 0 || self.llc > node {
            node
        } else {
            self.llc
        }
    }

    /// The machine's cores, caches and nodes. Hardware that does not say them of each CPU, as an
    /// events file of somebody else may have it, says nothing.
    #[must_use]
    pub fn places(&self) -> CpuPlaces {
        let placed = self.hardware.as_ref().and_then(|it| it.placed());
        if let Some(placed) = placed.filter(|it| it.are_of(self.cpus)) {
            return placed;
        }
        let blocks = |size| CpuGroups::blocks(self.cpus, self.node_size(), size);
        CpuPlaces {
            cores: blocks(self.smt),
            l2s: blocks(self.smt),
            llcs: blocks(self.cache_size()),
            nodes: blocks(self.node_size()),
        }
    }

    /// This machine with CPUs that differ: their number and places are the hardware's.
    #[must_use]
    pub fn with_hardware(&self, hardware: Hardware) -> Self {
        let cpus = u16::try_from(hardware.cpus.len()).unwrap_or(u16::MAX);
        let mut machine = Self {
            cpus,
            ..self.clone()
        };
        if let Some(places) = hardware.placed() {
            let threads = places.cores.iter().map(Vec::len).max();
            machine.smt = if threads == Some(2) { 2 } else { 1 };
            // Blocks of neighbours can be told in numbers; all others are told by the tables alone.
            machine.llc = places.llcs.block().filter(|size| *size < cpus).unwrap_or(0);
            machine.node = places
                .nodes
                .block()
                .filter(|size| *size < cpus)
                .unwrap_or(0);
        }
        machine.hardware = Some(Box::new(hardware));
        machine
    }

    /// Nanoseconds between two ticks of one CPU. At HZ 300 the kernel's `TICK_NSEC` is rounded
    /// to the nearest nanosecond, 3,333,333.
    #[must_use]
    pub const fn tick(&self) -> Nanos {
        Nanos::new((1_000_000_000 + self.hz as u64 / 2) / self.hz as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuId;

    #[test]
    fn groups_end_with_their_node_and_are_counted_over_all() {
        let places = MachineSpec {
            cpus: 7,
            smt: 2,
            node: 5,
            ..MachineSpec::default()
        }
        .places();
        assert_eq!(places.cores.with(CpuId(4)), [CpuId(4)]);
        assert_eq!(places.cores.with(CpuId(5)), [CpuId(5), CpuId(6)]);
        let cores: Vec<_> = (0..7).map(|cpu| places.cores.of(CpuId(cpu))).collect();
        assert_eq!(cores, [0, 0, 1, 1, 2, 3, 3]);
        assert_eq!((places.nodes.count(), places.llcs.count()), (2, 2));
    }

    #[test]
    fn hardware_of_another_number_of_cpus_is_not_believed() {
        let hardware = Hardware::find("pixel6").expect("it is there");
        let mut machine = MachineSpec::default().with_hardware(hardware);
        assert_eq!(machine.places().llcs.count(), 1);
        machine.cpus = 200;
        assert_eq!(machine.places().cores.of(CpuId(199)), 199);
    }

    #[test]
    fn a_real_kernel_counts_as_the_newest_that_is_not_newer() {
        let of = Kernel::of_release;
        for (release, want) in [
            ("6.18.15+deb13-amd64", Kernel::V6_18),
            ("6.19.14", Kernel::V6_19),
            ("6.15.3", Kernel::V6_12),
            ("7.0.13", Kernel::V7_0),
            ("7.2.0-rc1", Kernel::V7_2),
            ("7.10.1", Kernel::V7_3),
            ("8.0", Kernel::V7_3),
            ("6.12.107", Kernel::V6_12),
            ("6.6.30", Kernel::V6_12),
        ] {
            assert_eq!(of(release), Some(want), "{release}");
        }
        for bad in ["", "6", "linux-6.18"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
