//! Ceilings of frequencies by the number of cores that execute.
//!
//! At each whole millisecond of a run the cores are counted that executed anything in the last one:
//! those of a class in a package, which is a NUMA node here. A class has its own table in Intel's
//! hybrids, too (`MSR_SECONDARY_TURBO_RATIO_LIMIT`, tools/power/x86/turbostat). A clock gets its
//! new ceiling at once. Nothing is counted while no CPU begins or stops to execute.

use model::{CpuGroups, CpuId, Hardware, SimTime};

use super::{Load, Speeds};
use crate::topology::Topology;

/// From one count to the next, nanoseconds.
pub(crate) const LOOK: u64 = 1_000_000;

/// The cores that are counted.
#[derive(Clone, Default)]
pub(crate) struct Turbo {
    parts: Vec<Part>,
    /// A count is to come.
    pub is_armed: bool,
}

/// The cores of a class in a package.
#[derive(Clone)]
struct Part {
    /// CPUs of each core.
    cores: Vec<Vec<CpuId>>,
    /// Numbers of their clocks, rising.
    clocks: Vec<u16>,
    /// How many executed in the last millisecond.
    active: usize,
}

impl Turbo {
    /// The cores of classes that have ceilings.
    pub fn new(hardware: &Hardware, topology: &Topology, clocks: &CpuGroups) -> Self {
        let mut parts = Vec::new();
        for (class, _) in (0..)
            .zip(&hardware.classes)
            .filter(|(_, it)| !it.turbo.is_empty())
        {
            for node in 0..topology.nodes() {
                let is_in = |cpu: &CpuId| {
                    hardware.cpus[cpu.index()] == class && topology.node_of(*cpu) == node
                };
                let cpus: Vec<CpuId> = (0..hardware.cpus.len() as u16)
                    .map(CpuId)
                    .filter(is_in)
                    .collect();
                let firsts = cpus
                    .iter()
                    .filter(|cpu| topology.core(**cpu).next() == Some(**cpu));
                let mut numbers: Vec<u16> = cpus.iter().map(|cpu| clocks.of(*cpu)).collect();
                numbers.sort_unstable();
                numbers.dedup();
                parts.push(Part {
                    cores: firsts.map(|cpu| topology.core(*cpu).collect()).collect(),
                    clocks: numbers,
                    active: 0,
                });
            }
        }
        Self {
            parts,
            is_armed: false,
        }
    }

    /// Whether a count must be armed when a CPU begins or stops to execute.
    pub const fn waits(&self) -> bool {
        !self.parts.is_empty() && !self.is_armed
    }
}

impl Speeds {
    /// Counts the cores that executed something in the millisecond before `now`. Whether it will be
    /// fewer in the next one if nothing happens.
    pub fn count_cores(&mut self, now: SimTime) -> bool {
        let since = now.as_nanos().saturating_sub(LOOK);
        let mut turbo = std::mem::take(&mut self.turbo);
        turbo.is_armed = false;
        let executes = |cpu: &CpuId| self.cpus[*cpu].load != Load::Idle;
        let executed = |cpu: &CpuId| executes(cpu) || self.cpus[*cpu].power.idle_since() > since;
        let mut is_to_change = false;
        for part in &mut turbo.parts {
            let active = part.cores.iter().filter(|core| core.iter().any(executed));
            let (mut count, mut still) = (0, 0);
            for core in active {
                count += 1;
                still += usize::from(core.iter().any(executes));
            }
            is_to_change |= still < count;
            part.active = count;
        }
        self.turbo = turbo;
        is_to_change
    }

    /// The clocks whose frequency changes by what was counted, and the frequency that each gets.
    pub fn raise_and_lower(&mut self) -> Vec<(u16, usize)> {
        let mut changes = Vec::new();
        for (number, clock) in (0..).zip(&mut self.clocks) {
            let class = &self.hardware.classes[clock.class];
            let parts = self.turbo.parts.iter();
            let ceilings = parts
                .filter(|part| part.clocks.binary_search(&number).is_ok())
                .map(|part| class.ceiling(part.active));
            // A clock of several packages is as fast as all of them allow.
            clock.ceiling = ceilings.min().unwrap_or(clock.ceiling);
            if clock.allowed() != clock.at {
                changes.push((number, clock.allowed()));
            }
        }
        changes
    }
}
