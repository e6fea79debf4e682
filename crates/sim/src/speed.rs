//! How fast each CPU works, on a machine whose CPUs differ.
//!
//! What a task has to do is work: nanoseconds on a CPU of capacity 1024 that has its core to
//! itself. A CPU does so much of it in each nanosecond as its rate says, in 1/2^20. Sleeps, slices,
//! deadlines and ticks are time. What code of the kernel and of the policy costs is work, too; it
//! lasts as long as at the rate with which it begins.
//!
//! A rate changes when the other thread of the core begins or stops to execute, or executes
//! something that waits for memory by another share. The work done is booked then, and the end of
//! the work set anew. No callback and no event comes of it.
//!
//! A machine without [`Hardware`] has none of this: [`Machine::speeds`] is `None`.

use model::{CpuId, CpuUse, Hardware, HardwareUse, Nanos, PerCpu, RATE_ONE, SimTime, TaskId};

use crate::cpu::Mode;
use crate::machine::Machine;
use crate::topology::Topology;

/// Longer than any run, and short enough to be added to a moment of one.
const LONGEST: u64 = 1 << 62;

/// The speeds of all CPUs.
#[derive(Clone)]
pub(crate) struct Speeds {
    hardware: Hardware,
    cpus: PerCpu<CpuSpeed>,
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
}

impl Use {
    const fn add(&mut self, done: u128, span: u64, shared: u64) {
        self.done += done;
        self.executed_ns += span;
        self.shared_ns += shared;
    }

    fn told(&self) -> CpuUse {
        CpuUse {
            work: Nanos::new((self.done >> 20) as u64),
            executed: Nanos::new(self.executed_ns),
            shared: Nanos::new(self.shared_ns),
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
        let cpu = |cpu: CpuId| {
            let mut core = topology.core(cpu);
            let other = core.find(|&other| other != cpu);
            CpuSpeed {
                base: u64::from(hardware.class(cpu.0).capacity) * 1024,
                rate: RATE_ONE,
                sibling: other.filter(|_| hardware.smt.is_some()),
                load: Load::Idle,
                used: Use::default(),
            }
        };
        Self {
            hardware: hardware.clone(),
            cpus: PerCpu::new(cpus, cpu),
        }
    }

    /// The rate of something of which `mem` waits for memory, on `cpu`, as things are there now.
    fn rate(&self, cpu: CpuId, mem: u16) -> u64 {
        let speed = &self.cpus[cpu];
        let alone = alone(speed.base, mem);
        let share = match (self.hardware.smt, self.load_beside(cpu)) {
            (Some(smt), Load::Busy(other)) => smt.of(mem, other),
            _ => return alone,
        };
        (alone * share >> 10).max(1)
    }

    fn load_beside(&self, cpu: CpuId) -> Load {
        let sibling = self.cpus[cpu].sibling;
        sibling.map_or(Load::Idle, |other| self.cpus[other].load)
    }
}

/// The rate of a task of which `mem` waits for memory on a CPU that has its core to itself: memory
/// does not get faster with the CPU.
fn alone(base: u64, mem: u16) -> u64 {
    if mem == 0 {
        return base;
    }
    let (s, c, m) = (u128::from(base), u128::from(RATE_ONE), u128::from(mem));
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
            (u128::from(delta) * u128::from(speeds.cpus[cpu].base) >> 20) as u64
        })
    }

    /// What the kernel says of a CPU's capacity (`arch_scale_cpu_capacity()`).
    pub(crate) fn told_capacity(&self, cpu: CpuId) -> u64 {
        let speeds = self.speeds.as_ref();
        speeds.map_or(1024, |it| it.hardware.class(cpu.0).told().into())
    }

    /// Whether what happens on a CPU slows another one down.
    pub(crate) fn couples_cpus(&self) -> bool {
        let smt = |speeds: &Speeds| speeds.hardware.smt.is_some();
        self.speeds.as_deref().is_some_and(smt)
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
        let shared = if is_shared { span } else { 0 };
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
        pace.used.add(left - rest, span, shared);
        speed.used.add(left - rest, span, shared);
    }

    /// What CPUs did and what was done for tasks, if CPUs differ.
    pub(crate) fn hardware_use(&self) -> Option<HardwareUse> {
        let speeds = self.speeds.as_deref()?;
        let mut groups = vec![Use::default(); self.workload.groups.len()];
        for pace in self.tasks.iter().filter_map(|it| it.seldom.pace.as_ref()) {
            let used = pace.used;
            groups[pace.group].add(used.done, used.executed_ns, used.shared_ns);
        }
        let names = self.workload.groups.iter().map(|it| it.name.clone());
        Some(HardwareUse {
            cpus: speeds.cpus.iter().map(|it| it.used.told()).collect(),
            groups: names.zip(groups.iter().map(Use::told)).collect(),
        })
    }

    /// Something has happened on `cpu`: the other thread of its core works at another rate from now
    /// on if this one begins or stops to execute.
    pub(crate) fn settle(&mut self, cpu: CpuId) {
        let load = self.load_of(cpu);
        let Some(speeds) = self.speeds.as_deref() else {
            return;
        };
        let speed = &speeds.cpus[cpu];
        let (Some(sibling), true) = (speed.sibling, speed.load != load) else {
            return;
        };
        let executing = self.executing_on(sibling);
        if let Some((id, since)) = executing {
            self.book_work(sibling, id, since);
        }
        if let Some(speeds) = self.speeds.as_deref_mut() {
            speeds.cpus[cpu].load = load;
        }
        if let Some((id, _)) = executing {
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
        assert_eq!(alone(half, 0), half);
        assert_eq!(alone(RATE_ONE, 512), RATE_ONE);
        // Half of the work takes twice as long: 1.5 times the time.
        assert_eq!(alone(half, 512), RATE_ONE * 2 / 3);
        assert_eq!(alone(half, 1024), RATE_ONE);
    }
}
