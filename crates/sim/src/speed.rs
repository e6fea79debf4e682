//! How fast each CPU works, on a machine whose CPUs differ.
//!
//! What a task has to do is work: nanoseconds on a CPU of capacity 1024 that has its core to
//! itself. A CPU does so much of it in each nanosecond as its rate says, in 1/2^20. Sleeps, slices,
//! deadlines and ticks are time. What code of the kernel and of the policy costs is work, too; it
//! lasts as long as at the rate with which it begins.
//!
//! A rate changes when the other thread of the core begins or stops to execute, or executes
//! something that waits for memory by another share, and when the CPU's frequency changes. The work
//! done is booked then, and the end of the work set anew. No callback and no event comes of it.
//!
//! A machine without [`Hardware`] has none of this: [`Machine::speeds`] is `None`.

mod clock;
mod power;

use model::{
    CpuId, CpuUse, FrequencyUse, Hardware, HardwareUse, Nanos, PerCpu, RATE_ONE, SimTime, TaskId,
};

use crate::cpu::Mode;
use crate::machine::Machine;
use crate::topology::Topology;
use clock::{Clock, base_rate};
use power::Power;

/// Longer than any run, and short enough to be added to a moment of one.
const LONGEST: u64 = 1 << 62;

/// The speeds of all CPUs.
#[derive(Clone)]
pub(crate) struct Speeds {
    hardware: Hardware,
    cpus: PerCpu<CpuSpeed>,
    /// CPUs of one frequency each, and each CPU's number among them.
    clocks: Vec<Clock>,
    clock_of: Vec<u16>,
    /// What the policy has asked for, by CPU.
    targets: Vec<u16>,
    has_power: bool,
}

/// The speed of a CPU.
#[derive(Clone)]
struct CpuSpeed {
    /// Work done in a nanosecond by a task that never waits for memory, alone on the core; 1/2^20.
    base: u64,
    /// The rate of the task that executes on it.
    rate: u64,
    /// The other thread of its core, if that slows it down.
    sibling: Option<CpuId>,
    /// What the other thread of the core feels of it. [`Machine::settle`] alone writes it.
    load: Load,
    /// A real-time or deadline task is runnable on it.
    is_urgent: bool,
    power: Power,
    used: Use,
}

/// What a hardware thread does to the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// Nothing: it idles.
    Idle,
    /// It executes something of which so much waits for memory, in 1/1024.
    Busy(u16),
}

/// What a CPU did, or what was done for a task.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Work done, in 2^-20 ns.
    done: u128,
    /// Time in which tasks executed, nanoseconds.
    executed_ns: u64,
    /// The part of it in which the other thread of the core executed, too.
    shared_ns: u64,
    /// Energy of the CPU in that time.
    energy_fj: u128,
}

impl Use {
    const fn add(&mut self, other: &Self) {
        self.done += other.done;
        self.executed_ns += other.executed_ns;
        self.shared_ns += other.shared_ns;
        self.energy_fj += other.energy_fj;
    }

    fn told(&self) -> CpuUse {
        CpuUse {
            work: Nanos::new((self.done >> 20) as u64),
            executed: Nanos::new(self.executed_ns),
            shared: Nanos::new(self.shared_ns),
            energy_fj: self.energy_fj,
            frequencies: Vec::new(),
        }
    }
}

/// What a machine whose CPUs differ keeps of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    /// The share of its work that waits for memory, in 1/1024.
    mem: u16,
    /// What is done already of the last nanosecond of its work, in 2^-20 ns.
    surplus: u32,
    group: usize,
    used: Use,
}

impl Pace {
    /// Of a task of that number of the workload's groups, of whose work `mem` percent wait for
    /// memory.
    pub fn new(group: u32, mem: u8) -> Self {
        Self {
            mem: (u32::from(mem.min(100)) * 1024 / 100) as u16,
            group: group as usize,
            ..Self::default()
        }
    }
}

impl Speeds {
    /// The speeds of a machine whose CPUs differ as `hardware` says.
    pub fn new(hardware: &Hardware, topology: &Topology, cpus: u16) -> Self {
        let clocks = Clock::all(hardware);
        let domains = hardware.domains();
        let of = |cpu| domains.of(CpuId(cpu));
        let clock_of: Vec<u16> = (0..cpus).map(of).collect();
        let cpu = |cpu: CpuId| {
            let clock = &clocks[usize::from(clock_of[cpu.index()])];
            let mut core = topology.core(cpu);
            let other = core.find(|&other| other != cpu);
            CpuSpeed {
                base: base_rate(hardware.class(cpu.0), clock.at()),
                rate: RATE_ONE,
                sibling: other.filter(|_| hardware.smt.is_some()),
                load: Load::Idle,
                is_urgent: false,
                power: Power::default(),
                used: Use::default(),
            }
        };
        Self {
            hardware: hardware.clone(),
            cpus: PerCpu::new(cpus, cpu),
            targets: vec![1024; cpus.into()],
            has_power: hardware.has_power(),
            clocks,
            clock_of,
        }
    }

    /// The rate of something of which `mem` waits for memory, on `cpu`, as things are there now.
    fn rate(&self, cpu: CpuId, mem: u16) -> u64 {
        let speed = &self.cpus[cpu];
        let alone = alone(speed.base, mem, self.hardware.class(cpu.0).memory);
        let share = match (self.hardware.smt, self.load_beside(cpu)) {
            (Some(smt), Load::Busy(other)) => smt.of(mem, other),
            _ => return alone,
        };
        ((alone * share) >> 10).max(1)
    }

    /// Bytes of the core's own cache of `cpu` and of its last-level cache; 0: the profile's.
    pub fn caches(&self, cpu: CpuId, topology: &Topology) -> (u64, u64) {
        let llc = self
            .hardware
            .llc_bytes
            .get(usize::from(topology.llc_of(cpu)));
        (
            self.hardware.class(cpu.0).core_bytes,
            llc.copied().unwrap_or(0),
        )
    }

    /// What `cpu` did up to `now`; everything up to then is booked.
    fn told(&self, cpu: CpuId, now: SimTime) -> CpuUse {
        let speed = &self.cpus[cpu];
        let opps = &self.hardware.class(cpu.0).opps;
        let spent = opps.iter().zip(&speed.power.spent);
        CpuUse {
            energy_fj: self.energy(cpu, now),
            frequencies: spent
                .map(|(opp, [executing, idle])| FrequencyUse {
                    khz: opp.khz,
                    executing: Nanos::new(*executing),
                    idle: Nanos::new(*idle),
                })
                .filter(|it| !(it.executing.is_zero() && it.idle.is_zero()))
                .collect(),
            ..speed.used.told()
        }
    }

    /// The power of `cpu` while it executes; 0 if that is unknown.
    fn microwatts(&self, cpu: CpuId) -> u64 {
        let opps = &self.hardware.class(cpu.0).opps;
        let opp = opps.get(self.frequency(cpu));
        opp.and_then(|opp| opp.uw).unwrap_or(0)
    }

    fn load_beside(&self, cpu: CpuId) -> Load {
        let sibling = self.cpus[cpu].sibling;
        sibling.map_or(Load::Idle, |other| self.cpus[other].load)
    }
}

/// The rate of a task of which `mem` waits for memory on a CPU that has its core to itself: memory
/// does not get faster with the CPU. `memory` is its own speed, in 1/1024.
fn alone(base: u64, mem: u16, memory: u16) -> u64 {
    if mem == 0 {
        return base;
    }
    let (s, c, m) = (u128::from(base), u128::from(memory) * 1024, u128::from(mem));
    let rate = 1024 * s * c / ((1024 - m) * c + m * s);
    u64::try_from(rate).unwrap_or(RATE_ONE).max(1)
}

/// How long `work` takes at `rate`; `surplus` of it is done already.
fn lasting(work: u64, surplus: u32, rate: u64) -> u64 {
    let left = (u128::from(work) << 20).saturating_sub(surplus.into());
    let span = left.div_ceil(rate.into());
    u64::try_from(span).unwrap_or(LONGEST).min(LONGEST)
}

impl Machine {
    /// How long work takes on `cpu` that nothing interrupts and that does not wait for memory.
    #[inline]
    pub(crate) fn lasting(&self, cpu: CpuId, work: Nanos) -> Nanos {
        match &self.speeds {
            None => work,
            Some(speeds) => Nanos::new(lasting(work.get(), 0, speeds.rate(cpu, 0))),
        }
    }

    /// The work that `cpu` does for `id` in `span`.
    #[inline]
    pub(crate) fn work_of(&self, cpu: CpuId, id: TaskId, span: Nanos) -> Nanos {
        match &self.speeds {
            None => span,
            Some(speeds) => {
                let work = u128::from(span.get()) * u128::from(speeds.rate(cpu, self.mem_of(id)));
                Nanos::new((work >> 20) as u64)
            }
        }
    }

    /// Deadline budgets are charged by what the CPU can do.
    ///
    /// Source: `dl_scaled_delta_exec()`, kernel 6.18, without reclaiming.
    pub(crate) fn scaled_by_speed(&self, cpu: CpuId, delta: u64) -> u64 {
        self.speeds.as_ref().map_or(delta, |speeds| {
            ((u128::from(delta) * u128::from(speeds.cpus[cpu].base)) >> 20) as u64
        })
    }

    /// What the kernel says of a CPU's capacity (`arch_scale_cpu_capacity()`).
    pub(crate) fn told_capacity(&self, cpu: CpuId) -> u64 {
        let speeds = self.speeds.as_ref();
        speeds.map_or(1024, |it| it.hardware.class(cpu.0).told().into())
    }

    /// The frequency of a CPU against its highest, in 1/1024.
    pub(crate) fn current_speed(&self, cpu: CpuId) -> u64 {
        self.speeds.as_ref().map_or(1024, |it| it.current(cpu))
    }

    /// Time that an idle CPU needs to leave its state, picoseconds.
    pub(crate) fn idle_exit_ps(&self, cpu: CpuId) -> u64 {
        let speeds = self.speeds.as_ref();
        speeds.map_or(0, |it| it.exit_ps(cpu, self.now))
    }

    /// Whether speed or energy depend on when CPUs begin and stop to execute.
    pub(crate) fn follows_cpus(&self) -> bool {
        let follows = |it: &Speeds| it.hardware.smt.is_some() || !it.clocks.is_empty();
        self.speeds.as_deref().is_some_and(follows)
    }

    fn mem_of(&self, id: TaskId) -> u16 {
        let pace = self.task(id).seldom.pace.as_ref();
        pace.map_or(0, |pace| pace.mem)
    }

    /// The task `id` executes on `cpu` from now on, whose rate is as it is now. How long its work
    /// takes then.
    #[cold]
    pub(crate) fn begin_at_rate(&mut self, cpu: CpuId, id: TaskId) -> Nanos {
        let mem = self.mem_of(id);
        let Some(speeds) = &mut self.speeds else {
            return self.task(id).work_left;
        };
        let rate = speeds.rate(cpu, mem);
        speeds.cpus[cpu].rate = rate;
        self.left_at_rate(cpu, id)
    }

    /// How long the rest of the work of `id` takes on `cpu`, seen from the last booking.
    #[cold]
    pub(crate) fn left_at_rate(&self, cpu: CpuId, id: TaskId) -> Nanos {
        let task = self.task(id);
        let rate = self
            .speeds
            .as_ref()
            .map_or(RATE_ONE, |it| it.cpus[cpu].rate);
        let surplus = task.seldom.pace.as_ref().map_or(0, |pace| pace.surplus);
        Nanos::new(lasting(task.work_left.get(), surplus, rate))
    }

    /// Books the work that `id` has done on `cpu` since the moment `since`.
    #[cold]
    pub(crate) fn book_work(&mut self, cpu: CpuId, id: TaskId, since: SimTime) {
        let span = self.now.since(since).get();
        let Some(speeds) = self.speeds.as_deref_mut().filter(|_| span > 0) else {
            return;
        };
        let is_shared = speeds.load_beside(cpu) != Load::Idle;
        let uw = speeds.microwatts(cpu);
        let speed = &mut speeds.cpus[cpu];
        let (rate, task) = (u128::from(speed.rate), &mut self.tasks[id.index()]);
        let pace = task.seldom.pace.get_or_insert_default();
        let left = (u128::from(task.work_left.get()) << 20) - u128::from(pace.surplus);
        let done = u128::from(span) * rate;
        assert!(done < left + rate, "more work done than there was");
        let rest = left.saturating_sub(done);
        let whole = rest.div_ceil(u128::from(RATE_ONE));
        pace.surplus = ((whole << 20) - rest) as u32;
        task.work_left = Nanos::new(whole as u64);
        // What the last nanosecond could have done beyond the end is nobody's.
        let used = Use {
            done: left - rest,
            executed_ns: span,
            shared_ns: if is_shared { span } else { 0 },
            energy_fj: u128::from(uw) * u128::from(span),
        };
        pace.used.add(&used);
        speed.used.add(&used);
    }

    /// What CPUs did and what was done for tasks, if CPUs differ.
    pub(crate) fn hardware_use(&mut self) -> Option<HardwareUse> {
        let now = self.now;
        let speeds = self.speeds.as_deref_mut()?;
        (0..self.spec.cpus).for_each(|cpu| speeds.book_power(CpuId(cpu), now));
        let speeds = &*speeds;
        let mut groups = vec![Use::default(); self.workload.groups.len()];
        for pace in self.tasks.iter().filter_map(|it| it.seldom.pace.as_ref()) {
            groups[pace.group].add(&pace.used);
        }
        let names = self.workload.groups.iter().map(|it| it.name.clone());
        Some(HardwareUse {
            cpus: (0..self.spec.cpus)
                .map(|cpu| speeds.told(CpuId(cpu), now))
                .collect(),
            base_fj: u128::from(speeds.hardware.base_uw.unwrap_or(0)) * u128::from(now.as_nanos()),
            has_energy: speeds.has_power,
            parts: speeds.hardware.parts.clone(),
            name: speeds.hardware.name.clone(),
            groups: names.zip(groups.iter().map(Use::told)).collect(),
        })
    }

    /// Something has happened on `cpu`: the other thread of its core works at another rate from now
    /// on if this one begins or stops to execute.
    pub(crate) fn settle(&mut self, cpu: CpuId) {
        let load = self.load_of(cpu);
        let is_urgent = !self.cpus[cpu].others().rt.is_empty();
        let Some(speeds) = self.speeds.as_deref_mut() else {
            return;
        };
        let speed = &mut speeds.cpus[cpu];
        let was_urgent = std::mem::replace(&mut speed.is_urgent, is_urgent);
        if speed.load != load {
            self.change_load(cpu, load);
        }
        if was_urgent != is_urgent {
            self.choose_frequency(cpu);
        }
    }

    fn change_load(&mut self, cpu: CpuId, load: Load) {
        let now = self.now;
        let sibling = self.speeds.as_deref().and_then(|it| it.cpus[cpu].sibling);
        let beside = sibling.and_then(|it| Some((it, self.executing_on(it)?)));
        if let Some((sibling, (id, since))) = beside {
            self.book_work(sibling, id, since);
        }
        if let Some(speeds) = self.speeds.as_deref_mut() {
            speeds.book_power(cpu, now);
            let before = std::mem::replace(&mut speeds.cpus[cpu].load, load);
            match (before, load) {
                (Load::Idle, _) => speeds.end_idle(cpu, now),
                (_, Load::Idle) => speeds.begin_idle(cpu, now),
                _ => {}
            }
        }
        if let Some((sibling, (id, _))) = beside {
            self.cpus[sibling].executing_since = None;
            self.start_executing(sibling, self.task(id).work_left);
        }
    }

    fn executing_on(&self, cpu: CpuId) -> Option<(TaskId, SimTime)> {
        let state = &self.cpus[cpu];
        Some((state.occupant.task()?, state.executing_since?))
    }

    fn load_of(&self, cpu: CpuId) -> Load {
        let state = &self.cpus[cpu];
        match (state.mode, state.occupant.task()) {
            (Mode::Idle, _) => Load::Idle,
            (Mode::Run, Some(id)) => Load::Busy(self.mem_of(id)),
            _ => Load::Busy(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_as_long_as_the_rate_says() {
        let ms = 1_000_000;
        assert_eq!(lasting(3 * ms, 0, 512 * 1024), 6 * ms);
        assert_eq!(lasting(ms, 0, 160 * 1024), 6_400_000);
        assert_eq!(lasting(ms, 0, 187_112), 5_604_002);
        assert_eq!(lasting(1, RATE_ONE as u32 - 1, RATE_ONE), 1);
        assert_eq!(lasting(u64::MAX, 0, 1), LONGEST);
    }

    #[test]
    fn work_that_waits_for_memory_gains_less_from_a_fast_cpu() {
        let half = RATE_ONE / 2;
        assert_eq!(alone(half, 0, 1024), half);
        assert_eq!(alone(RATE_ONE, 512, 1024), RATE_ONE);
        // Half of the work takes twice as long: 1.5 times the time.
        assert_eq!(alone(half, 512, 1024), RATE_ONE * 2 / 3);
        assert_eq!(alone(half, 1024, 1024), RATE_ONE);
    }
}
