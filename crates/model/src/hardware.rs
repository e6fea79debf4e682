//! How the CPUs of a machine differ: kinds of CPU, their speeds, and threads that share a core.

mod check;
mod file;
mod memory;
mod shipped;
mod spread;
mod timings;
mod turbo;

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::{CpuGroups, CpuPlaces};

pub use timings::SmtTimings;
pub use turbo::Ceiling;

/// A rate of one: a CPU of capacity 1024 at its highest frequency does so many parts of a
/// nanosecond's work in each nanosecond.
pub const RATE_ONE: u64 = 1 << 20;

/// Capacity of the biggest CPU, and the whole of a share.
pub const CAPACITY_ONE: u16 = 1024;

/// How the CPUs of a machine differ. A machine without it has CPUs of one speed, whose hardware
/// threads do not slow each other down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The name of its file's `[hardware]`; empty where a workload's `capacity` and `smt_share`
    /// alone say how CPUs differ.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Kinds of CPU, one or more.
    pub classes: Vec<CpuClass>,
    /// The class of each CPU, as an index into `classes`.
    pub cpus: Vec<u16>,
    /// What a task keeps of its rate while the other thread of its core executes, too; `None`: all
    /// of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt: Option<SmtShare>,
    /// The files that programs find; `None`: those of every simulated machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sysfs: Option<Sysfs>,
    /// Who chooses frequencies.
    #[serde(default)]
    pub governor: Governor,
    /// What the powers have, in the words of the file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parts: String,
    /// Where the figures are from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Which CPUs belong together; `None`: as the machine says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<HardwarePlaces>,
    /// Bytes of each last-level cache; empty: unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub llc_bytes: Vec<u64>,
    /// Power that is there without any CPU, microwatts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_uw: Option<u64>,
    /// Power of a core whose two threads execute, in 1/1024 of that with one; `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt_power: Option<u16>,
    /// How much longer memory takes than the last-level cache, as a task feels it, in 1/1024;
    /// `None`: no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty: Option<u16>,
}

/// Which CPUs belong together: a number for each CPU, from zero without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HardwarePlaces {
    /// Cores.
    pub core: Vec<u16>,
    /// Caches of the second level.
    pub l2: Vec<u16>,
    /// Last-level caches.
    pub llc: Vec<u16>,
    /// NUMA nodes.
    pub node: Vec<u16>,
    /// Clocks: CPUs of one have one frequency.
    pub domain: Vec<u16>,
    /// From each node to each, as firmware tells: 10 is near.
    pub distances: Vec<Vec<u16>>,
    /// How much longer memory of the first node takes for the second one, in 1/1024; empty: no
    /// longer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote: Vec<Vec<u16>>,
}

/// The files of `/sys` that a kind of computer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sysfs {
    /// `cpu_capacity`, frequencies, energy model.
    Arm,
    /// `acpi_cppc`, `base_frequency`; no capacity.
    Intel,
    /// The same, and `amd_pstate_*`.
    Amd,
}

/// Who chooses the frequency of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Governor {
    /// Always the highest.
    #[default]
    Performance,
    /// Always the lowest.
    Powersave,
    /// As the scheduler asks.
    Schedutil,
    /// The CPU itself, which is always at its highest here; what the scheduler asks for has no
    /// effect.
    Hwp,
}

/// A frequency of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opp {
    /// Kilohertz.
    pub khz: u32,
    /// Power of a CPU that executes, microwatts; `None`: unknown, in all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uw: Option<u64>,
}

/// A state of an idle CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    /// Least time for which it is entered, nanoseconds.
    pub residency_ns: u64,
    /// Time to leave it, nanoseconds.
    pub exit_ns: u64,
    /// Power in it, microwatts.
    pub uw: u64,
}

/// Power of what the CPUs of one clock share, such as their cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterPower {
    /// While one of its CPUs executes, by frequency; microwatts.
    pub uw: Vec<u64>,
    /// While all idle, microwatts.
    pub idle_uw: u64,
    /// While all idle for longer; `None`: it stays on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<IdleState>,
}

/// A kind of CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuClass {
    /// Its name in the hardware's file.
    pub name: String,
    /// Work that it does at its highest frequency, against 1024 of the machine's biggest CPU.
    pub capacity: u16,
    /// What the kernel says instead (`arch_scale_cpu_capacity()`); `None`: the truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<u16>,
    /// Its frequencies, rising; empty: one, of which nothing is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opps: Vec<Opp>,
    /// The most that it reaches while so many of its cores execute; empty: always the highest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turbo: Vec<Ceiling>,
    /// The frequency that it always reaches, kHz, as programs read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_khz: Option<u32>,
    /// From the choice of a frequency to the change, nanoseconds.
    #[serde(default)]
    pub transition_ns: u64,
    /// `acpi_cppc/highest_perf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cppc: Option<u16>,
    /// `amd_pstate_prefcore_ranking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefcore: Option<u16>,
    /// Bytes of a core's own cache; 0: unknown.
    #[serde(default)]
    pub core_bytes: u64,
    /// Speed of memory as it sees it, in 1/1024.
    #[serde(default = "full")]
    pub memory: u16,
    /// Its idle states, residencies rising.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<IdleState>,
    /// Power of each of its clusters; `None`: nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterPower>,
}

const fn full() -> u16 {
    CAPACITY_ONE
}

/// What a task keeps of its rate while the other thread of its core executes, in 1/1024. The first
/// letter is the task itself, the second the other thread: `c` computes, `m` waits for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmtShare {
    /// Computes beside one that computes.
    pub cc: u16,
    /// Computes beside one that waits for memory.
    pub cm: u16,
    /// Waits for memory beside one that computes.
    pub mc: u16,
    /// Both wait for memory.
    pub mm: u16,
}

impl SmtShare {
    /// The named shares. Sources: both threads 10 to 30 % more than one (`VMware` KB 326271); 36 %
    /// on average, 60 % at most (Zen 1, looncraz 2017); none for integers alone (many-cores.com).
    pub const NAMED: [(&'static str, u16); 3] = [("low", 512), ("typical", 614), ("high", 696)];

    /// Reads `low`, `typical`, `high` or a number of 0.1 to 1.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let named = Self::NAMED.iter().find(|(name, _)| *name == text);
        let share = named.map(|(_, share)| *share);
        share.or_else(|| share_of(text)).map(Self::all)
    }

    /// The same share for all pairs.
    #[must_use]
    pub const fn all(share: u16) -> Self {
        Self {
            cc: share,
            cm: share,
            mc: share,
            mm: share,
        }
    }

    /// The share of a task of which `own` waits for memory, beside one of which `other` does; all
    /// in 1/1024.
    #[must_use]
    pub fn of(&self, own: u16, other: u16) -> u64 {
        let (a, b) = (u64::from(own), u64::from(other));
        let (not_a, not_b) = (1024 - a, 1024 - b);
        let sum = not_a * not_b * u64::from(self.cc)
            + not_a * b * u64::from(self.cm)
            + a * not_b * u64::from(self.mc)
            + a * b * u64::from(self.mm);
        sum >> 20
    }

    const fn each(&self) -> [u16; 4] {
        [self.cc, self.cm, self.mc, self.mm]
    }
}

/// A share of 0.1 to 1 with at most six decimals, in 1/1024.
fn share_of(text: &str) -> Option<u16> {
    parts_of(text, 100_000..=1_000_000)
}

/// A number of as many millionths with at most six decimals, in 1/1024.
fn parts_of(text: &str, allowed: RangeInclusive<u64>) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 6 {
        return None;
    }
    let millionths: u64 = format!("{decimals:0<6}").parse().ok()?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(1_000_000)?;
    let all = whole.checked_add(millionths)?;
    let parts = || (all * 1024 / 1_000_000) as u16;
    allowed.contains(&all).then(parts)
}

impl Sysfs {
    /// As files name them.
    pub const NAMED: [(&'static str, Self); 3] = [
        ("arm", Self::Arm),
        ("intel", Self::Intel),
        ("amd", Self::Amd),
    ];
}

impl Governor {
    /// As files and the command line name them.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("performance", Self::Performance),
        ("powersave", Self::Powersave),
        ("schedutil", Self::Schedutil),
        ("hwp", Self::Hwp),
    ];

    /// The governor of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMED.iter().find(|(known, _)| *known == name);
        found.map(|(_, governor)| *governor)
    }

    /// As files and the command line name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::NAMED.iter().find(|(_, governor)| *governor == self);
        found.map_or("performance", |(name, _)| name)
    }
}

impl CpuClass {
    /// A kind of which nothing but the capacity is known.
    #[must_use]
    pub const fn plain(name: String, capacity: u16) -> Self {
        Self {
            name,
            capacity,
            shown: None,
            opps: Vec::new(),
            turbo: Vec::new(),
            base_khz: None,
            transition_ns: 0,
            cppc: None,
            prefcore: None,
            core_bytes: 0,
            memory: CAPACITY_ONE,
            idle: Vec::new(),
            cluster: None,
        }
    }

    /// Whether the power of all its frequencies is known.
    #[must_use]
    pub fn has_power(&self) -> bool {
        self.opps.first().is_some_and(|opp| opp.uw.is_some())
    }

    /// Whether a higher frequency does the same work for no more energy, so that governors pass
    /// over that of number `at`.
    ///
    /// Source: `em_compute_costs()`, kernel 6.18: costs are whole numbers.
    #[must_use]
    pub fn is_inefficient(&self, at: usize) -> bool {
        let cost = |at: usize| self.cost(at);
        let Some(own) = cost(at) else {
            return false;
        };
        (at + 1..self.opps.len()).any(|higher| cost(higher).is_some_and(|cost| cost <= own))
    }

    /// What the kernel calls the performance of a frequency: its share of the told capacity.
    #[must_use]
    pub fn performance(&self, at: usize) -> u64 {
        let top = self.opps.last().map_or(1, |opp| u64::from(opp.khz));
        u64::from(self.told()) * u64::from(self.opps[at].khz) / top.max(1)
    }

    /// The kernel's cost of a frequency, ten times its power over its performance; `None`: the
    /// power is unknown.
    #[must_use]
    pub fn cost(&self, at: usize) -> Option<u64> {
        let uw = self.opps.get(at)?.uw?;
        Some(uw * 10 / self.performance(at).max(1))
    }

    /// The capacity that the kernel tells.
    #[must_use]
    pub fn told(&self) -> u16 {
        self.shown.unwrap_or(self.capacity)
    }
}

impl Hardware {
    /// CPUs of these capacities that are alike else.
    #[must_use]
    pub fn of_capacities(capacities: &[u16]) -> Self {
        let mut kinds = capacities.to_vec();
        kinds.sort_unstable_by(|a, b| b.cmp(a));
        kinds.dedup();
        let class = |capacity: &u16| CpuClass::plain(format!("capacity-{capacity}"), *capacity);
        let index = |capacity: &u16| kinds.iter().position(|kind| kind == capacity);
        Self {
            classes: kinds.iter().map(class).collect(),
            cpus: capacities
                .iter()
                .filter_map(index)
                .map(|at| at as u16)
                .collect(),
            ..Self::default()
        }
    }

    /// The class of a CPU.
    ///
    /// # Panics
    /// If it has no such CPU, or has not passed [`Hardware::check`].
    #[must_use]
    pub fn class(&self, cpu: u16) -> &CpuClass {
        &self.classes[usize::from(self.cpus[usize::from(cpu)])]
    }

    /// Whether the kernel tells different capacities of CPUs.
    #[must_use]
    pub fn is_told_apart(&self) -> bool {
        let mut told = self.classes.iter().map(CpuClass::told);
        let first = told.next();
        told.any(|other| Some(other) != first)
    }

    /// Cores, caches and nodes, if the hardware says which CPUs belong together.
    #[must_use]
    pub fn placed(&self) -> Option<CpuPlaces> {
        let places = self.places.as_ref()?;
        Some(CpuPlaces {
            cores: CpuGroups::new(places.core.clone()),
            l2s: CpuGroups::new(places.l2.clone()),
            llcs: CpuGroups::new(places.llc.clone()),
            nodes: CpuGroups::new(places.node.clone()),
        })
    }

    /// CPUs of one clock each.
    #[must_use]
    pub fn domains(&self) -> CpuGroups {
        let each = || (0..self.cpus.len() as u16).collect();
        let domain = self.places.as_ref().map(|it| it.domain.clone());
        CpuGroups::new(domain.unwrap_or_else(each))
    }

    /// Whether it says that some core has two threads.
    #[must_use]
    pub fn has_threads(&self) -> bool {
        let places = self.placed();
        places.is_some_and(|places| places.cores.iter().any(|core| core.len() > 1))
    }

    /// Whether energy can be told: the power of all classes is known, and that of two threads
    /// together where cores have them.
    #[must_use]
    pub fn has_power(&self) -> bool {
        let is_whole = self.smt_power.is_some() || !self.has_threads();
        self.classes.iter().all(CpuClass::has_power) && is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_from_the_capacities_that_there_are() {
        let hardware = Hardware::of_capacities(&[400, 1024, 400]);
        let capacities: Vec<_> = hardware.classes.iter().map(|it| it.capacity).collect();
        assert_eq!(
            (capacities, &hardware.cpus[..]),
            (vec![1024, 400], &[1, 0, 1][..])
        );
        assert_eq!(hardware.class(2).told(), 400);
        assert!(hardware.is_told_apart() && hardware.check(3).is_ok());
        assert!(hardware.check(2).is_err());
    }

    #[test]
    fn a_share_lies_between_those_of_the_pure_kinds() {
        let share = SmtShare {
            cc: 512,
            cm: 1024,
            mc: 256,
            mm: 512,
        };
        assert_eq!(share.of(0, 0), 512);
        assert_eq!(share.of(0, 1024), 1024);
        assert_eq!(share.of(1024, 0), 256);
        assert_eq!(share.of(0, 512), 768);
        assert_eq!(SmtShare::all(614).of(512, 300), 614);
    }

    #[test]
    fn a_share_is_a_name_or_a_number() {
        assert_eq!(parts_of("1.25", 1_000_000..=2_000_000), Some(1280));
        for wrong in ["0.99", "2.1", "18446744073709.6", "1.0000001", "1."] {
            assert_eq!(parts_of(wrong, 1_000_000..=2_000_000), None, "{wrong}");
        }
        for (text, want) in [("low", 512), ("typical", 614), ("0.60", 614), ("1", 1024)] {
            assert_eq!(SmtShare::parse(text), Some(SmtShare::all(want)), "{text}");
        }
        for bad in ["", "0.05", "1.1", "-1", "0.", ".5", "1e-1", "0.1234567"] {
            assert_eq!(SmtShare::parse(bad), None, "{bad}");
        }
    }
}
