//! Energy of CPUs: power times time, in femtojoules (microwatts times nanoseconds), exactly.
//!
//! A CPU that executes takes the power of its frequency; one that idles for some time that of the
//! deepest state whose residency is no longer, for all of that time: a governor of idle states that
//! never errs. A CPU that idles at the end of the run has idled for as long as it has by then.
//!
//! A cluster, what the CPUs of one clock share, takes the power of its frequency while one of them
//! executes. While all idle it is off if that lasts for as long as its residency.

use model::{CpuClass, CpuId, SimTime};

use super::clock::CpuClock;
use super::{Load, Speeds};

/// What a CPU's time and energy went to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Power {
    /// Since when nothing is booked.
    since: u64,
    /// Since when it idles; meaningless while it does not.
    idle_since: u64,
    /// Time by frequency: executing, and idle. Nanoseconds.
    pub spent: Vec<[u64; 2]>,
    /// Energy while it executed, and of idle stretches that are over.
    energy_fj: u128,
}

impl Power {
    /// When its CPU stopped to execute, nanoseconds; meaningless while it executes.
    pub const fn idle_since(&self) -> u64 {
        self.idle_since
    }
}

/// What the energy of a cluster went to.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterUse {
    /// CPUs that execute.
    busy: u16,
    /// Since when nothing is booked; if no CPU executes, since then. Nanoseconds.
    since: u64,
    energy_fj: u128,
}

/// Energy of an idle stretch of `span` nanoseconds.
fn idle_energy(class: &CpuClass, span: u64) -> u128 {
    let entered = class
        .idle
        .iter()
        .rev()
        .find(|state| state.residency_ns <= span);
    entered.map_or(0, |state| u128::from(state.uw) * u128::from(span))
}

impl Speeds {
    /// Books time and energy of `cpu` up to `now`: its frequency changes, or it or the other thread
    /// of its core begins or stops to execute.
    pub(crate) fn book_power(&mut self, cpu: CpuId, now: SimTime) {
        let (at, uw) = (self.frequency(cpu), self.microwatts(cpu));
        let speed = &mut self.cpus[cpu];
        let is_idle = speed.load == Load::Idle;
        let power = &mut speed.power;
        let span = now.as_nanos() - power.since;
        power.since = now.as_nanos();
        if power.spent.len() <= at {
            power.spent.resize(at + 1, [0; 2]);
        }
        power.spent[at][usize::from(is_idle)] += span;
        if !is_idle {
            power.energy_fj += u128::from(uw) * u128::from(span);
        }
    }

    /// `cpu` begins to idle.
    pub(crate) fn begin_idle(&mut self, cpu: CpuId, now: SimTime) {
        self.cpus[cpu].power.idle_since = now.as_nanos();
        let number = usize::from(self.clock_of[cpu.index()]);
        if self.clocks[number].cluster.busy == 1 {
            self.book_cluster(number, now);
        }
        self.clocks[number].cluster.busy -= 1;
    }

    /// `cpu` stops to idle.
    pub(crate) fn end_idle(&mut self, cpu: CpuId, now: SimTime) {
        let energy = self.idle_energy(cpu, now);
        self.cpus[cpu].power.energy_fj += energy;
        let number = usize::from(self.clock_of[cpu.index()]);
        if self.clocks[number].cluster.busy == 0 {
            self.book_cluster(number, now);
        }
        self.clocks[number].cluster.busy += 1;
    }

    /// Books the energy of the cluster of that clock up to `now`: its first CPU begins to execute,
    /// or its last one stops.
    fn book_cluster(&mut self, number: usize, now: SimTime) {
        let energy = self.unbooked(number, now);
        let cluster = &mut self.clocks[number].cluster;
        cluster.energy_fj += energy;
        cluster.since = now.as_nanos();
    }

    /// The clock of that number gets another frequency. An idle stretch of its cluster goes on.
    pub(crate) fn leave_frequency(&mut self, number: usize, now: SimTime) {
        if self.clocks[number].cluster.busy > 0 {
            self.book_cluster(number, now);
        }
    }

    /// Energy of the cluster of that clock from the last booking up to `now`.
    fn unbooked(&self, number: usize, now: SimTime) -> u128 {
        let clock = &self.clocks[number];
        let Some(power) = &self.hardware.classes[clock.class].cluster else {
            return 0;
        };
        let span = now.as_nanos() - clock.cluster.since;
        let idle = || match power.off {
            Some(off) if off.residency_ns <= span => off.uw,
            _ => power.idle_uw,
        };
        let executing = power.uw.get(clock.at).filter(|_| clock.cluster.busy > 0);
        let uw = executing.copied().unwrap_or_else(idle);
        u128::from(uw) * u128::from(span)
    }

    /// Energy of all clusters up to `now`.
    pub(crate) fn cluster_energy(&self, now: SimTime) -> u128 {
        let all = self.clocks.iter().enumerate();
        let energy = |(number, clock): (usize, &CpuClock)| {
            clock.cluster.energy_fj + self.unbooked(number, now)
        };
        all.map(energy).sum()
    }

    fn idle_energy(&self, cpu: CpuId, now: SimTime) -> u128 {
        let span = now.as_nanos() - self.cpus[cpu].power.idle_since;
        idle_energy(self.hardware.class(cpu.0), span)
    }

    /// Energy of `cpu` up to `now`; everything up to then is booked.
    pub(crate) fn energy(&self, cpu: CpuId, now: SimTime) -> u128 {
        let speed = &self.cpus[cpu];
        let idle = match speed.load {
            Load::Idle => self.idle_energy(cpu, now),
            Load::Busy(_) => 0,
        };
        speed.power.energy_fj + idle
    }

    /// What leaving the state in which `cpu` has idled until `now` costs, or leaving that of its
    /// cluster if that is off. It takes as long on every CPU, so it is that much work as the CPU
    /// does in this time, picoseconds.
    pub(crate) fn exit_ps(&self, cpu: CpuId, now: SimTime) -> u64 {
        let class = self.hardware.class(cpu.0);
        let span = now.as_nanos() - self.cpus[cpu].power.idle_since.min(now.as_nanos());
        let states = class.idle.iter().rev();
        let mut entered = states.skip_while(|state| state.residency_ns > span);
        let own = entered.next().map_or(0, |state| state.exit_ns);
        let cluster = &self.clock_of(cpu).cluster;
        let stretch = now.as_nanos() - cluster.since.min(now.as_nanos());
        let off = class.cluster.as_ref().and_then(|it| it.off);
        let off = off.filter(|it| cluster.busy == 0 && it.residency_ns <= stretch);
        let exit_ns = own.max(off.map_or(0, |state| state.exit_ns));
        let work = u128::from(exit_ns) * 1_000 * u128::from(self.rate(cpu, 0, 1024));
        (work >> 20) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_cpu_is_in_the_deepest_state_that_pays_off() {
        let state = |residency_ns, uw| model::IdleState {
            residency_ns,
            exit_ns: 0,
            uw,
        };
        let class = CpuClass {
            idle: vec![state(0, 100), state(1_000, 7)],
            ..CpuClass::plain("a".to_owned(), 1024)
        };
        assert_eq!(idle_energy(&class, 999), 99_900);
        assert_eq!(idle_energy(&class, 1_000), 7_000);
        assert_eq!(idle_energy(&CpuClass::plain("b".to_owned(), 1024), 5), 0);
    }
}
