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
//! A machine without [`Hardware`] has none of this. [`crate::speed`] says when what is booked.

pub(crate) mod clock;
pub(crate) mod fit;
mod power;
pub(crate) mod turbo;
pub(crate) mod util;

use model::{ClassUse, CpuId, CpuUse, FrequencyUse, Hardware, Nanos, PerCpu, RATE_ONE, SimTime};
use workload::{Group, UtilClamps, Workload};

use crate::topology::Topology;
use clock::{CpuClock, FULL, base_rate};
use fit::Fit;
use power::Power;
use turbo::Turbo;
use util::Util;

/// Longer than any run, and short enough to be added to a moment of one.
const LONGEST: u64 = 1 << 62;

/// A task of whose work so much or more waits for memory needs bandwidth, in 1/1024: 30 %.
pub(crate) const HEAVY: u16 = 307;

/// The speeds of all CPUs.
#[derive(Clone)]
pub(crate) struct Speeds {
    pub hardware: Hardware,
    pub cpus: PerCpu<CpuSpeed>,
    /// CPUs of one frequency each, and each CPU's number among them.
    pub clocks: Vec<CpuClock>,
    pub clock_of: Vec<u16>,
    pub turbo: Turbo,
    /// What the policy has asked for, by CPU.
    pub targets: Vec<u16>,
    pub has_power: bool,
    /// Whether some task of the load limits the speed of its CPU.
    pub uses_clamps: bool,
    /// Two tasks that need more of memory's bandwidth than is modelled have executed at once.
    pub heavy_together: bool,
    /// Whether some places are better than others: CPUs differ in capacity, or cores have threads.
    pub judges_places: bool,
    /// The smallest and the greatest capacity.
    pub least: u16,
    pub most: u16,
    /// CPUs that idle.
    idle: u16,
    /// What was done for each group on each class: one entry a class for the first group, and so
    /// on.
    by_class: Vec<Use>,
}

/// The speed of a CPU.
#[derive(Clone)]
pub(crate) struct CpuSpeed {
    /// Work done in a nanosecond by a task that never waits for memory, alone on the core; 1/2^20.
    pub base: u64,
    /// The rate of the task that executes on it.
    pub rate: u64,
    /// What it comes from ([`Speeds::steps`]).
    pub steps: [u64; 4],
    /// The other thread of its core, if that makes a difference to it.
    pub sibling: Option<CpuId>,
    /// What the other thread of the core feels of it. [`Speeds::set_load`] alone writes it.
    pub load: Load,
    /// The least speed that its real-time and deadline tasks ask for; `None`: none is runnable.
    pub urgency: Option<u16>,
    /// `util_max` of the task that executed last.
    pub last_most: u16,
    /// The task that executed last waits for memory much, and uses more than the caches have.
    pub is_heavy: bool,
    pub power: Power,
    pub used: Use,
    pub fit: Fit,
}

/// What a hardware thread does to the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Load {
    /// Nothing: it idles.
    Idle,
    /// It executes something of which so much waits for memory, in 1/1024.
    Busy(u16),
}

/// What a CPU did, or what was done for a task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Use {
    /// Work done, in 2^-20 ns.
    pub done: u128,
    /// Time in which tasks executed, nanoseconds.
    pub executed_ns: u64,
    /// The part of it in which the other thread of the core executed, too.
    pub shared_ns: u64,
    /// The part of it in which it was too much for its CPU while a bigger one idled.
    pub misfit_ns: u64,
    /// The part of it in which the other thread executed, too, while a whole core idled.
    pub halved_ns: u64,
    /// The part of it in which it would have fitted the smallest CPUs, of which one idled.
    pub misplaced_ns: u64,
    /// The part of it in which its memory was in another node.
    pub remote_ns: u64,
    /// Work that was not done in it because of each of [`Speeds::steps`], in 2^-20 ns.
    pub lost: [u128; 4],
    /// Energy of the CPU in that time.
    pub energy_fj: u128,
}

impl Use {
    pub const fn add(&mut self, other: &Self) {
        self.done += other.done;
        self.executed_ns += other.executed_ns;
        self.shared_ns += other.shared_ns;
        self.misfit_ns += other.misfit_ns;
        self.halved_ns += other.halved_ns;
        self.misplaced_ns += other.misplaced_ns;
        self.remote_ns += other.remote_ns;
        self.lost[0] += other.lost[0];
        self.lost[1] += other.lost[1];
        self.lost[2] += other.lost[2];
        self.lost[3] += other.lost[3];
        self.energy_fj += other.energy_fj;
    }

    pub fn told(&self) -> CpuUse {
        CpuUse {
            work: Nanos::new((self.done >> 20) as u64),
            executed: Nanos::new(self.executed_ns),
            shared: Nanos::new(self.shared_ns),
            misfit: Nanos::new(self.misfit_ns),
            halved: Nanos::new(self.halved_ns),
            misplaced: Nanos::new(self.misplaced_ns),
            remote: Nanos::new(self.remote_ns),
            lost: self.lost.map(|lost| Nanos::new((lost >> 20) as u64)),
            energy_fj: self.energy_fj,
            frequencies: Vec::new(),
            classes: Vec::new(),
        }
    }
}

/// What a machine whose CPUs differ keeps of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskPace {
    /// The share of its work that waits for memory, in 1/1024.
    pub mem: u16,
    /// What is done already of the last nanosecond of its work, in 2^-20 ns.
    pub surplus: u32,
    pub group: usize,
    pub clamps: UtilClamps,
    /// The node where it executed first, and where its memory is.
    pub home: Option<u16>,
    pub used: Use,
    pub util: Util,
    /// When that was true, nanoseconds.
    pub util_at: u64,
}

impl TaskPace {
    /// Of a task of `group`, which is that number of the workload's.
    pub fn new(number: u32, group: &Group) -> Self {
        Self {
            mem: (u32::from(group.mem.min(100)) * 1024 / 100) as u16,
            group: number as usize,
            clamps: group.clamps,
            ..Self::default()
        }
    }
}

impl Speeds {
    /// The speeds of a machine whose CPUs differ as `hardware` says, and that has `workload` to do.
    pub fn new(hardware: &Hardware, topology: &Topology, workload: &Workload) -> Self {
        let cpus = hardware.cpus.len() as u16;
        let clocks = CpuClock::all(hardware);
        let domains = hardware.domains();
        let of = |cpu| domains.of(CpuId(cpu));
        let clock_of: Vec<u16> = (0..cpus).map(of).collect();
        // Threads of a core make a difference to each other.
        let are_felt = hardware.smt.is_some() || hardware.smt_power.is_some();
        let cpu = |cpu: CpuId| {
            let clock = &clocks[usize::from(clock_of[cpu.index()])];
            let mut core = topology.core(cpu);
            let other = core.find(|&other| other != cpu);
            CpuSpeed {
                base: base_rate(hardware.class(cpu.0), clock.at()),
                rate: RATE_ONE,
                steps: [RATE_ONE; 4],
                sibling: other.filter(|_| are_felt),
                load: Load::Idle,
                urgency: None,
                last_most: FULL,
                is_heavy: false,
                power: Power::default(),
                used: Use::default(),
                fit: Fit::default(),
            }
        };
        let capacities = hardware.classes.iter().map(|class| class.capacity);
        let has_threads = (0..cpus).any(|cpu| topology.core(CpuId(cpu)).count() > 1);
        let (least, most) = capacities.fold((u16::MAX, 0), |(least, most), it| {
            (it.min(least), it.max(most))
        });
        Self {
            judges_places: least < most || has_threads,
            least,
            most,
            idle: cpus,
            by_class: Vec::new(),
            turbo: Turbo::new(hardware, topology, &domains),
            hardware: hardware.clone(),
            cpus: PerCpu::new(cpus, cpu),
            targets: vec![1024; cpus.into()],
            has_power: hardware.has_power(),
            heavy_together: false,
            uses_clamps: workload.groups.iter().any(|it| it.clamps.is_set()),
            clocks,
            clock_of,
        }
    }

    /// The rate of something of which `mem` waits for memory, which takes `longer` on `cpu` than
    /// with a cache that has all of it, in 1/1024, as things are there now.
    pub fn rate(&self, cpu: CpuId, mem: u16, longer: u64) -> u64 {
        let memory = self.hardware.class(cpu.0).memory;
        let alone = alone(self.cpus[cpu].base, mem, (memory, longer));
        self.beside(cpu, mem, alone)
    }

    /// What the other thread of the core leaves of the rate `alone`, as things are there now.
    fn beside(&self, cpu: CpuId, mem: u16, alone: u64) -> u64 {
        match (self.hardware.smt, self.load_beside(cpu)) {
            (Some(smt), Load::Busy(other)) => ((alone * smt.of(mem, other)) >> 10).max(1),
            _ => alone,
        }
    }

    /// The same rate, and those before it: each has one thing more that slows it down. These are
    /// the capacity of the CPU, its frequency, the other thread of the core, and memory.
    pub fn steps(&self, cpu: CpuId, mem: u16, longer: u64) -> [u64; 4] {
        let capacity = self.hardware.class(cpu.0).capacity;
        let usual = |base| alone(base, mem, (1024, 1024));
        let small = usual(u64::from(capacity) * 1024);
        let low = usual(self.cpus[cpu].base);
        let shared = self.beside(cpu, mem, low);
        [small, low, shared, self.rate(cpu, mem, longer)]
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

    /// A task that needs bandwidth begins to execute on `cpu`: whether another one does.
    pub fn look_for_heavy(&mut self, cpu: CpuId) {
        // One time is enough to be told.
        if self.heavy_together {
            return;
        }
        let is_heavy = |it: &CpuSpeed| it.is_heavy && it.load >= Load::Busy(HEAVY);
        let all = self.cpus.iter().filter(|it| is_heavy(it)).count();
        self.heavy_together = all > usize::from(is_heavy(&self.cpus[cpu]));
    }

    /// Whether two CPUs have a cache of the second level together, by the hardware's file.
    pub fn share_l2(&self, a: CpuId, b: CpuId) -> bool {
        let l2 = self.hardware.places.as_ref().map(|it| &it.l2);
        l2.is_some_and(|l2| l2[a.index()] == l2[b.index()])
    }

    /// Whether some CPU idles.
    pub const fn has_idle(&self) -> bool {
        self.idle > 0
    }

    /// `cpu` has another load; the one that it had.
    pub fn set_load(&mut self, cpu: CpuId, load: Load) -> Load {
        let before = std::mem::replace(&mut self.cpus[cpu].load, load);
        self.idle = self.idle + u16::from(load == Load::Idle) - u16::from(before == Load::Idle);
        before
    }

    /// Something was done for `group` on `cpu`.
    pub fn add_to_class(&mut self, cpu: CpuId, group: usize, used: &Use) {
        let class = usize::from(self.hardware.cpus[cpu.index()]);
        let at = group * self.hardware.classes.len() + class;
        if self.by_class.len() <= at {
            self.by_class.resize(at + 1, Use::default());
        }
        self.by_class[at].add(used);
    }

    /// What was done for `group` on each class on which something was.
    pub fn on_classes(&self, group: usize) -> Vec<ClassUse> {
        let classes = &self.hardware.classes;
        let mine = self.by_class.iter().skip(group * classes.len());
        let used = classes
            .iter()
            .zip(mine)
            .filter(|(_, it)| it.executed_ns > 0);
        used.map(|(class, it)| ClassUse {
            class: class.name.clone(),
            executed: Nanos::new(it.executed_ns),
            work: Nanos::new((it.done >> 20) as u64),
        })
        .collect()
    }

    /// What `cpu` did up to `now`; everything up to then is booked.
    pub fn told(&self, cpu: CpuId, now: SimTime) -> CpuUse {
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

    /// The power of `cpu` while it executes, half of the core's if the other thread does, too; 0
    /// if that is unknown.
    pub fn microwatts(&self, cpu: CpuId) -> u64 {
        let opps = &self.hardware.class(cpu.0).opps;
        let uw = opps.get(self.frequency(cpu)).and_then(|opp| opp.uw);
        match (uw, self.hardware.smt_power, self.load_beside(cpu)) {
            (Some(uw), Some(both), Load::Busy(_)) => uw * u64::from(both) / 2048,
            (uw, ..) => uw.unwrap_or(0),
        }
    }

    pub fn load_beside(&self, cpu: CpuId) -> Load {
        let sibling = self.cpus[cpu].sibling;
        sibling.map_or(Load::Idle, |other| self.cpus[other].load)
    }
}

/// The rate of a task of which `mem` waits for memory on a CPU that has its core to itself: memory
/// does not get faster with the CPU. `memory` is its own speed, and it takes `longer`; both in
/// 1/1024.
fn alone(base: u64, mem: u16, (memory, longer): (u16, u64)) -> u64 {
    if mem == 0 {
        return base;
    }
    let (s, c, m) = (u128::from(base), u128::from(memory) * 1024, u128::from(mem));
    let rate = 1024 * 1024 * s * c / (1024 * (1024 - m) * c + m * u128::from(longer) * s);
    u64::try_from(rate).unwrap_or(RATE_ONE).max(1)
}

/// The work that is not done in `span` nanoseconds because of each of `steps`, in 2^-20 ns.
pub(crate) fn lost(steps: [u64; 4], span: u64) -> [u128; 4] {
    let mut before = RATE_ONE;
    steps.map(|step| {
        let less = before.saturating_sub(step);
        before = step;
        u128::from(span) * u128::from(less)
    })
}

/// How long `work` takes at `rate`; `surplus` of it is done already.
pub(crate) fn lasting(work: u64, surplus: u32, rate: u64) -> u64 {
    let left = (u128::from(work) << 20).saturating_sub(surplus.into());
    let span = left.div_ceil(rate.into());
    u64::try_from(span).unwrap_or(LONGEST).min(LONGEST)
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
    fn a_machine_knows_whether_some_cpu_idles() {
        let machine = model::MachineSpec {
            cpus: 2,
            ..model::MachineSpec::default()
        };
        let hardware = Hardware::of_capacities(&[1024, 512]);
        let mut speeds = Speeds::new(&hardware, &Topology::new(&machine), &Workload::default());
        let (idle, busy) = (Load::Idle, Load::Busy(0));
        for (cpu, load, has_idle) in [
            (0, busy, true),
            (1, busy, false),
            (1, Load::Busy(9), false),
            (0, idle, true),
            (0, idle, true),
            (0, busy, false),
        ] {
            speeds.set_load(CpuId(cpu), load);
            assert_eq!(speeds.has_idle(), has_idle, "CPU {cpu}: {load:?}");
        }
    }

    #[test]
    fn work_that_waits_for_memory_gains_less_from_a_fast_cpu() {
        let half = RATE_ONE / 2;
        let usual = (1024, 1024);
        assert_eq!(alone(half, 0, usual), half);
        assert_eq!(alone(RATE_ONE, 512, usual), RATE_ONE);
        // Half of the work takes twice as long: 1.5 times the time.
        assert_eq!(alone(half, 512, usual), RATE_ONE * 2 / 3);
        assert_eq!(alone(half, 1024, usual), RATE_ONE);
        // Half of the work takes 2.5 times as long: 1.75 times the time.
        assert_eq!(alone(RATE_ONE, 512, (1024, 2_560)), RATE_ONE * 4 / 7);
    }
}
