//! When the work of tasks is booked, and what changes a CPU's speed.
//!
//! A speed changes when the other thread of the core begins or stops to execute
//! ([`Machine::settle`], after each event) and when a clock gets another frequency. Both book what
//! was done up to then.

use model::{CpuId, CpuUse, HardwareUse, Nanos, RATE_ONE, SimTime, TaskId};
use workload::UtilClamps;

use crate::cpu::Mode;
use crate::machine::Machine;
use crate::speeds::clock::FULL;
use crate::speeds::{HEAVY, Load, Speeds, Use, lasting, lost};

impl Machine {
    /// How long work takes on `cpu` that nothing interrupts and that does not wait for memory.
    #[inline]
    pub(crate) fn lasting(&self, cpu: CpuId, work: Nanos) -> Nanos {
        match &self.speeds {
            None => work,
            Some(speeds) => Nanos::new(lasting(work.get(), 0, speeds.rate(cpu, 0, 1024))),
        }
    }

    /// The work that `cpu` does for `id` in `span`.
    #[inline]
    pub(crate) fn work_of(&self, cpu: CpuId, id: TaskId, span: Nanos) -> Nanos {
        match &self.speeds {
            None => span,
            Some(speeds) => {
                let rate = speeds.rate(cpu, self.mem_of(id), self.memory_time(cpu, id));
                let work = u128::from(span.get()) * u128::from(rate);
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

    /// What it costs an idle CPU to leave its state, picoseconds of work.
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

    pub(crate) fn clamps_of(&self, id: TaskId) -> UtilClamps {
        let pace = self.task(id).seldom.pace.as_ref();
        pace.map(|pace| pace.clamps).unwrap_or_default()
    }

    /// How much longer memory takes on `cpu` for `id` than with a cache that has all of what it
    /// uses, in 1/1024. A cache of unknown size has, and who does not wait for memory needs none.
    fn memory_time(&self, cpu: CpuId, id: TaskId) -> u64 {
        let (topology, task) = (self.idle.topology(), &self.task(id).seldom);
        let pace = task.pace.as_ref().filter(|pace| pace.mem > 0);
        let (Some(speeds), Some(pace)) = (self.speeds.as_deref(), pace) else {
            return 1024;
        };
        let footprint = task.footprint;
        let own = speeds.caches(cpu, topology).1;
        let usual = self.ledger.costs().map_or(0, |it| it.llc_cache_bytes);
        let cache = if own == 0 { usual } else { own };
        let node = topology.node_of(cpu);
        let home = pace.home.unwrap_or(node);
        let cache = if cache == 0 { footprint } else { cache };
        speeds
            .hardware
            .memory_time((footprint, cache), (home, node))
    }

    /// The task `id` executes on `cpu` from now on, whose rate is as it is now. How long its work
    /// takes then.
    #[cold]
    pub(crate) fn begin_at_rate(&mut self, cpu: CpuId, id: TaskId) -> Nanos {
        let (mem, most) = (self.mem_of(id), self.clamps_of(id).max.unwrap_or(FULL));
        let node = self.idle.topology().node_of(cpu);
        let pace = self.tasks[id.index()].seldom.pace.get_or_insert_default();
        pace.home = pace.home.or(Some(node));
        let longer = self.memory_time(cpu, id);
        let is_heavy = mem >= HEAVY && longer > 1024;
        let Some(speeds) = &mut self.speeds else {
            return self.task(id).work_left;
        };
        let steps = speeds.steps(cpu, mem, longer);
        let speed = &mut speeds.cpus[cpu];
        (speed.steps, speed.rate) = (steps, steps[3]);
        (speed.last_most, speed.is_heavy) = (most, is_heavy);
        if is_heavy {
            speeds.look_for_heavy(cpu);
        }
        self.begin_fit(cpu, id);
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
        if span == 0 {
            return;
        }
        self.book_fit(cpu, id);
        let Some(speeds) = self.speeds.as_deref_mut() else {
            return;
        };
        let is_shared = speeds.load_beside(cpu) != Load::Idle;
        let node = self.idle.topology().node_of(cpu);
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
            remote_ns: if pace.home.is_some_and(|home| home != node) {
                span
            } else {
                0
            },
            lost: lost(speed.steps, span),
            energy_fj: u128::from(uw) * u128::from(span),
            ..Use::default()
        };
        pace.used.add(&used);
        speed.used.add(&used);
        let group = pace.group;
        speeds.add_to_class(cpu, group, &used);
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
        let of_group = |(at, used): (usize, &Use)| CpuUse {
            classes: speeds.on_classes(at),
            ..used.told()
        };
        Some(HardwareUse {
            cpus: (0..self.spec.cpus)
                .map(|cpu| speeds.told(CpuId(cpu), now))
                .collect(),
            base_fj: u128::from(speeds.hardware.base_uw.unwrap_or(0)) * u128::from(now.as_nanos()),
            cluster_fj: speeds.cluster_energy(now),
            has_energy: speeds.has_power,
            parts: speeds.hardware.parts.clone(),
            name: speeds.hardware.name.clone(),
            groups: names.zip(groups.iter().enumerate().map(of_group)).collect(),
        })
    }

    /// Something has happened on `cpu`: the other thread of its core works at another rate from now
    /// on if this one begins or stops to execute.
    pub(crate) fn settle(&mut self, cpu: CpuId) {
        let load = self.load_of(cpu);
        let urgency = self.urgency(cpu);
        let Some(speeds) = self.speeds.as_deref_mut() else {
            return;
        };
        let speed = &mut speeds.cpus[cpu];
        let before = std::mem::replace(&mut speed.urgency, urgency);
        if speed.load != load {
            self.change_load(cpu, load);
        }
        if before != urgency {
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
            // Its power is another one only where that of both threads together is known.
            if let Some(sibling) = sibling.filter(|_| speeds.hardware.smt_power.is_some()) {
                speeds.book_power(sibling, now);
            }
            let before = speeds.set_load(cpu, load);
            match (before, load) {
                (Load::Idle, _) => speeds.end_idle(cpu, now),
                (_, Load::Idle) => speeds.begin_idle(cpu, now),
                _ => {}
            }
            if before == Load::Idle || load == Load::Idle {
                self.arm_turbo();
            }
        }
        if let Some((sibling, (id, _))) = beside {
            self.cpus[sibling].executing_since = None;
            self.start_executing(sibling, self.task(id).work_left);
        }
        self.look_for_places();
    }

    pub(crate) fn executing_on(&self, cpu: CpuId) -> Option<(TaskId, SimTime)> {
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
