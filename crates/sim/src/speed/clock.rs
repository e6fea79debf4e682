//! Frequencies of CPUs, and the governor that chooses them.
//!
//! `schedutil` takes the target that a policy sets with `scx_bpf_cpuperf_set()`; before one is set,
//! full speed. A runnable real-time or deadline task asks for full speed. The governor's own
//! threads take no time, and time of interrupts is not counted.
//!
//! Source: `kernel/sched/cpufreq_schedutil.c`, kernel 6.18.

use model::{CpuClass, CpuId, Governor, Hardware, Nanos, SimTime, Sysfs};

use super::Speeds;
use crate::machine::Machine;
use crate::pending::Pending;

/// `SCX_CPUPERF_ONE`.
const FULL: u16 = 1024;

/// Least time between two choices where a change takes none
/// (`cpufreq_policy_transition_delay_us()`).
const USUAL_LIMIT: u64 = 1_000_000;

/// The CPUs of one clock.
#[derive(Clone)]
pub(super) struct Clock {
    cpus: Vec<CpuId>,
    class: usize,
    /// The number of the frequency now.
    at: usize,
    /// The one that is chosen, and comes when the event of this clock does.
    next: Option<usize>,
    /// When it was chosen; `None`: never.
    chosen: Option<SimTime>,
    changes: u64,
}

impl Clock {
    /// The number of its frequency.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// The clocks of all CPUs, at their first frequencies.
    pub fn all(hardware: &Hardware) -> Vec<Self> {
        let clock = |cpus: &Vec<CpuId>| {
            let class = usize::from(hardware.cpus[cpus[0].index()]);
            let top = hardware.classes[class].opps.len().saturating_sub(1);
            let is_low = hardware.governor == Governor::Powersave;
            Self {
                cpus: cpus.clone(),
                class,
                at: if is_low { 0 } else { top },
                next: None,
                chosen: None,
                changes: 0,
            }
        };
        hardware.domains().iter().map(clock).collect()
    }
}

/// Work of a CPU of `class` in a nanosecond at its frequency `at`, in 1/2^20.
pub(super) fn base_rate(class: &CpuClass, at: usize) -> u64 {
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
fn frequency_for(class: &CpuClass, need: u64) -> usize {
    let top = class.opps.len().saturating_sub(1);
    let capacity = u64::from(class.told()).max(1);
    let highest = class.opps.last().map_or(0, |opp| u64::from(opp.khz));
    let wanted = highest * need / capacity;
    let mut all = class.opps.iter().enumerate();
    let found = all.find(|(at, opp)| u64::from(opp.khz) >= wanted && !class.is_inefficient(*at));
    found.map_or(top, |(at, _)| at)
}

/// What a CPU needs that was given a target: with room to spare, at most all.
fn need_for(target: u16, capacity: u16) -> u64 {
    let used = u64::from(target.min(capacity));
    (used + (used >> 2)).min(capacity.into())
}

impl Speeds {
    pub(super) fn follows_targets(&self) -> bool {
        self.hardware.governor == Governor::Schedutil
    }

    fn clock_of(&self, cpu: CpuId) -> &Clock {
        &self.clocks[usize::from(self.clock_of[cpu.index()])]
    }

    /// The number of the frequency of `cpu`.
    pub(super) fn frequency(&self, cpu: CpuId) -> usize {
        self.clock_of(cpu).at
    }

    /// The frequency of `cpu` against its highest, in 1/1024.
    pub(super) fn current(&self, cpu: CpuId) -> u64 {
        let clock = self.clock_of(cpu);
        let opps = &self.hardware.classes[clock.class].opps;
        match (opps.get(clock.at), opps.last()) {
            (Some(now), Some(top)) => u64::from(now.khz) * 1024 / u64::from(top.khz).max(1),
            _ => FULL.into(),
        }
    }
}

impl Machine {
    /// The policy asks for a speed of `cpu` on the scale of the machine's biggest CPU.
    ///
    /// Source: `scx_bpf_cpuperf_set()`, kernel 6.18.
    pub(crate) fn ask_for_speed(&mut self, cpu: CpuId, target: u16) {
        self.targets_set += u64::from(target != FULL);
        let caller = self.turn.exec;
        let Some(speeds) = self.speeds.as_deref_mut() else {
            return;
        };
        speeds.targets[cpu.index()] = target;
        // `cpufreq_this_cpu_can_update()`: drivers of arm take updates from any CPU.
        let own = speeds.clock_of[cpu.index()] == speeds.clock_of[caller.index()];
        if own || speeds.hardware.sysfs == Some(Sysfs::Arm) {
            self.choose_frequency(cpu);
        }
    }

    /// A policy was enabled or disabled: every CPU is to have its full speed.
    pub(crate) fn forget_targets(&mut self) {
        let Some(speeds) = self.speeds.as_deref_mut() else {
            return;
        };
        speeds.targets.fill(FULL);
        let firsts: Vec<CpuId> = speeds.clocks.iter().map(|clock| clock.cpus[0]).collect();
        for cpu in firsts {
            self.choose_frequency(cpu);
        }
    }

    /// The governor chooses the frequency of the clock of `cpu`.
    pub(super) fn choose_frequency(&mut self, cpu: CpuId) {
        let now = self.now;
        let Some(speeds) = self.speeds.as_deref().filter(|it| it.follows_targets()) else {
            return;
        };
        let number = speeds.clock_of[cpu.index()];
        let clock = &speeds.clocks[usize::from(number)];
        let class = &speeds.hardware.classes[clock.class];
        let transition = class.transition_ns;
        let limit = if transition == 0 {
            USUAL_LIMIT
        } else {
            transition * 3 / 2
        };
        if clock.chosen.is_some_and(|at| now.since(at).get() < limit) {
            return;
        }
        let capacity = class.told();
        let need = |cpu: &CpuId| {
            let is_urgent = !self.cpus[*cpu].others().rt.is_empty();
            let target = if is_urgent {
                FULL
            } else {
                speeds.targets[cpu.index()]
            };
            need_for(target, capacity)
        };
        let online = clock.cpus.iter().filter(|cpu| self.is_online(**cpu));
        let need = online.map(need).max().unwrap_or(0);
        let wanted = frequency_for(class, need);
        if wanted == clock.next.unwrap_or(clock.at) {
            return;
        }
        let is_pending = clock.next.is_some();
        let first = clock.cpus[0];
        if let Some(speeds) = self.speeds.as_deref_mut() {
            let clock = &mut speeds.clocks[usize::from(number)];
            (clock.next, clock.chosen) = (Some(wanted), Some(now));
        }
        if !is_pending {
            let when = now + Nanos::new(transition);
            self.queue.push(when, first, Pending::Clock { number });
        }
    }

    /// The chosen frequency of a clock begins.
    pub(crate) fn change_frequency(&mut self, number: u16) {
        let Some(speeds) = self.speeds.as_deref_mut() else {
            return;
        };
        let cpus = speeds.clocks[usize::from(number)].cpus.clone();
        let executing: Vec<_> = cpus.iter().map(|cpu| self.executing_on(*cpu)).collect();
        for (cpu, executing) in cpus.iter().zip(&executing) {
            if let Some((id, since)) = executing {
                self.book_work(*cpu, *id, *since);
            }
        }
        let now = self.now;
        if let Some(speeds) = self.speeds.as_deref_mut() {
            cpus.iter().for_each(|cpu| speeds.book_power(*cpu, now));
            let clock = &mut speeds.clocks[usize::from(number)];
            clock.at = clock.next.take().unwrap_or(clock.at);
            clock.changes += 1;
            let base = base_rate(&speeds.hardware.classes[clock.class], clock.at);
            cpus.iter().for_each(|cpu| speeds.cpus[*cpu].base = base);
        }
        for (cpu, executing) in cpus.iter().zip(&executing) {
            if let Some((id, _)) = executing {
                self.cpus[*cpu].executing_since = None;
                self.start_executing(*cpu, self.task(*id).work_left);
            }
        }
    }

    /// What is to be said of targets that nothing follows, and of a busy governor.
    pub(crate) fn note_frequencies(&mut self) {
        let follows = |speeds: &Speeds| speeds.follows_targets();
        let follows = self.speeds.as_deref().is_some_and(follows);
        if self.targets_set > 0 && !follows {
            let name = self.scheds.root.ops.name();
            self.note(format!(
                "{name} set performance targets {} times; no CPU changes its frequency here \
                 (--hardware pixel6 --governor schedutil)",
                self.targets_set
            ));
        }
        let elapsed = self.now.as_nanos().max(1);
        let busiest = self.speeds.as_deref().and_then(|speeds| {
            let rates = speeds.clocks.iter().map(|it| it.changes);
            rates
                .max()
                .map(|most| u128::from(most) * 1_000_000_000 / u128::from(elapsed))
        });
        if let Some(rate @ 101..) = busiest {
            self.note(format!(
                "the governor's threads take no time here; {rate} changes of a frequency a second"
            ));
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
