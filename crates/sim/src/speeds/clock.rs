//! Frequencies of CPUs, and the governor that chooses them.
//!
//! `schedutil` takes the target that a policy sets with `scx_bpf_cpuperf_set()`; before one is set,
//! full speed. A runnable real-time or deadline task asks for full speed. Tasks may limit what
//! their CPU gets; then a real-time task asks for its `util_min`. The governor's own threads take
//! no time, and time of interrupts is not counted.
//!
//! Source: `kernel/sched/cpufreq_schedutil.c`, kernel 6.18.

use model::{CpuClass, CpuId, Governor, Hardware, SimTime};

use super::Speeds;
use super::power::ClusterUse;

/// `SCX_CPUPERF_ONE`.
pub(crate) const FULL: u16 = 1024;

/// Least time between two choices where a change takes none
/// (`cpufreq_policy_transition_delay_us()`).
pub(crate) const USUAL_LIMIT: u64 = 1_000_000;

/// The CPUs of one clock.
#[derive(Clone)]
pub(crate) struct CpuClock {
    pub cpus: Vec<CpuId>,
    pub class: usize,
    /// The number of the frequency now.
    pub at: usize,
    /// The one that the governor wants, and the highest that turbo allows.
    pub wanted: usize,
    pub ceiling: usize,
    /// The one that is chosen, and comes when the event of this clock does.
    pub next: Option<usize>,
    /// When it was chosen; `None`: never.
    pub chosen: Option<SimTime>,
    pub changes: u64,
    pub cluster: ClusterUse,
}

impl CpuClock {
    /// The number of its frequency.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// The number of the frequency that it should have.
    pub fn allowed(&self) -> usize {
        self.wanted.min(self.ceiling)
    }

    /// The clocks of all CPUs, at their first frequencies.
    pub fn all(hardware: &Hardware) -> Vec<Self> {
        let clock = |cpus: &Vec<CpuId>| {
            let class = usize::from(hardware.cpus[cpus[0].index()]);
            let top = hardware.classes[class].opps.len().saturating_sub(1);
            let is_low = hardware.governor == Governor::Powersave;
            let wanted = if is_low { 0 } else { top };
            let ceiling = hardware.classes[class].ceiling(0);
            Self {
                cpus: cpus.clone(),
                class,
                at: wanted.min(ceiling),
                wanted,
                ceiling,
                next: None,
                chosen: None,
                changes: 0,
                cluster: ClusterUse::default(),
            }
        };
        hardware.domains().iter().map(clock).collect()
    }
}

/// Work of a CPU of `class` in a nanosecond at its frequency `at`, in 1/2^20.
pub(crate) fn base_rate(class: &CpuClass, at: usize) -> u64 {
    let full = u64::from(class.capacity) * 1024;
    match (class.opps.get(at), class.opps.last()) {
        (Some(opp), Some(top)) => {
            let rate = u128::from(full) * u128::from(opp.khz) / u128::from(top.khz);
            (rate as u64).max(1)
        }
        _ => full,
    }
}

/// The number of the frequency that CPUs of `class` get if the busiest of them needs `need` of the
/// capacity that the kernel tells.
///
/// Source: `get_next_freq()` and `em_pd_get_efficient_state()`, kernel 6.18.
pub(crate) fn frequency_for(class: &CpuClass, need: u64) -> usize {
    let top = class.opps.len().saturating_sub(1);
    let capacity = u64::from(class.told()).max(1);
    let highest = class.opps.last().map_or(0, |opp| u64::from(opp.khz));
    let wanted = highest * need / capacity;
    let mut all = class.opps.iter().enumerate();
    let found = all.find(|(at, opp)| u64::from(opp.khz) >= wanted && !class.is_inefficient(*at));
    found.map_or(top, |(at, _)| at)
}

/// What a CPU needs that was given a target: with room to spare, at most all.
pub(crate) fn need_for(target: u16, capacity: u16) -> u64 {
    let used = u64::from(target.min(capacity));
    (used + (used >> 2)).min(capacity.into())
}

/// Limits of what a CPU is given: the greatest `util_min` and the greatest `util_max` of the tasks
/// that are runnable on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpeedLimits {
    pub least: u16,
    pub most: u16,
}

impl SpeedLimits {
    /// What a CPU of `capacity` needs that was given a target. `least` counts more than `most`.
    ///
    /// Source: `sugov_effective_cpu_perf()`, kernel 6.18.
    pub fn need(self, target: u16, capacity: u16) -> u64 {
        let asked = need_for(target, capacity).min(self.most.into());
        asked.max(self.least.into()).min(capacity.into())
    }
}

impl Speeds {
    pub(crate) fn follows_targets(&self) -> bool {
        self.hardware.governor == Governor::Schedutil
    }

    pub fn clock_of(&self, cpu: CpuId) -> &CpuClock {
        &self.clocks[usize::from(self.clock_of[cpu.index()])]
    }

    /// The number of the frequency of `cpu`.
    pub(crate) fn frequency(&self, cpu: CpuId) -> usize {
        self.clock_of(cpu).at
    }

    /// The frequency of `cpu`, kHz; 0 if nothing is known of it.
    pub(crate) fn khz(&self, cpu: CpuId) -> u32 {
        let opp = self.hardware.class(cpu.0).opps.get(self.frequency(cpu));
        opp.map_or(0, |opp| opp.khz)
    }

    /// The frequency of `cpu` against its highest, in 1/1024.
    pub(crate) fn current(&self, cpu: CpuId) -> u64 {
        let clock = self.clock_of(cpu);
        let opps = &self.hardware.classes[clock.class].opps;
        match (opps.get(clock.at), opps.last()) {
            (Some(now), Some(top)) => u64::from(now.khz) * 1024 / u64::from(top.khz).max(1),
            _ => FULL.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn khz(class: &CpuClass, target: u16) -> u32 {
        class.opps[frequency_for(class, need_for(target, class.told()))].khz
    }

    #[test]
    fn the_governor_gives_a_quarter_more_than_it_is_asked_for() {
        let pixel6 = Hardware::find("pixel6").expect("it is there");
        let a55 = &pixel6.classes[0];
        assert_eq!(need_for(128, 160), 160);
        assert_eq!(
            khz(a55, 128),
            1_803_000,
            "an eighth of the machine, and all of an A55"
        );
        assert_eq!(need_for(20, 160), 25);
        assert_eq!(khz(a55, 20), 300_000);
        assert_eq!(khz(a55, 0), 300_000);
        let x1 = &pixel6.classes[2];
        assert_eq!(need_for(512, 1024), 640);
        let least = 2_802_000 * 640 / 1024;
        assert!(khz(x1, 512) >= least, "cosmos and flash never ask for less");
    }

    #[test]
    fn the_least_that_a_task_asks_for_counts_more_than_the_most() {
        let need = |least, most, target| SpeedLimits { least, most }.need(target, 160);
        assert_eq!(need(0, FULL, 128), 160);
        assert_eq!(need(0, 20, 128), 20);
        assert_eq!(need(100, FULL, 20), 100);
        assert_eq!(need(100, 20, 128), 100);
        assert_eq!(need(FULL, FULL, 20), 160);
    }

    #[test]
    fn a_frequency_that_costs_more_for_the_same_work_is_passed_over() {
        let rk3399 = Hardware::find("rk3399").expect("it is there");
        assert_eq!(rk3399.classes[0].opps[0].khz, 408_000);
        assert_eq!(khz(&rk3399.classes[0], 0), 600_000);
    }

    #[test]
    fn a_rate_follows_the_frequency() {
        let pixel6 = Hardware::find("pixel6").expect("it is there");
        assert_eq!(base_rate(&pixel6.classes[2], 0), 187_112);
        assert_eq!(base_rate(&pixel6.classes[2], 16), 1 << 20);
        assert_eq!(base_rate(&pixel6.classes[0], 10), 160 * 1024);
    }
}
