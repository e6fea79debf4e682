//! When the work of tasks is booked, and what changes a CPU's speed.
//!
//! A speed changes when the other thread of the core begins or stops to execute
//! ([`Machine::settle`], after each event) and when a clock gets another frequency. Both book what
//! was done up to then.

use model::{CpuId, CpuUse, HardwareUse, Nanos, RATE_ONE, SimTime, Sysfs, TaskId, What};
use workload::UtilClamps;

use crate::cpu::Mode;
use crate::machine::Machine;
use crate::pending::Pending;
use crate::speeds::clock::{FULL, Limits, USUAL_LIMIT, base_rate, frequency_for};
use crate::speeds::{Load, Speeds, Use, lasting};
use crate::task::{Class, RunState};

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

    fn clamps_of(&self, id: TaskId) -> UtilClamps {
        let pace = self.task(id).seldom.pace.as_ref();
        pace.map(|pace| pace.clamps).unwrap_or_default()
    }

    /// The task `id` executes on `cpu` from now on, whose rate is as it is now. How long its work
    /// takes then.
    #[cold]
    pub(crate) fn begin_at_rate(&mut self, cpu: CpuId, id: TaskId) -> Nanos {
        let (mem, most) = (self.mem_of(id), self.clamps_of(id).max.unwrap_or(FULL));
        let Some(speeds) = &mut self.speeds else {
            return self.task(id).work_left;
        };
        let rate = speeds.rate(cpu, mem);
        let speed = &mut speeds.cpus[cpu];
        (speed.rate, speed.last_most) = (rate, most);
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
            let before = speeds.set_load(cpu, load);
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
        self.look_for_places();
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

    // ---- Frequencies ----

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
    fn choose_frequency(&mut self, cpu: CpuId) {
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
            let target = speeds.targets[cpu.index()];
            self.limits_on(*cpu).need(target, capacity)
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

    /// The least speed that real-time and deadline tasks ask for `cpu`; `None`: none is runnable.
    /// Deadline tasks have no limits of their own.
    ///
    /// Source: `effective_cpu_util()`, kernel 6.18. Real-time tasks want all unless limits are used;
    /// then it is their `util_min`, whose default is all (`sched_util_clamp_min_rt_default`).
    fn urgency(&self, cpu: CpuId) -> Option<u16> {
        let uses_clamps = self.speeds.as_deref().is_some_and(|it| it.uses_clamps);
        let least = |id: &TaskId| match self.task(*id).class {
            Class::Rt if uses_clamps => self.clamps_of(*id).min.unwrap_or(FULL),
            _ => FULL,
        };
        self.cpus[cpu].others().rt.iter().map(least).max()
    }

    /// The limits of the tasks that are runnable on `cpu`; without any, `util_max` of the last one
    /// stays.
    ///
    /// Source: `uclamp_rq_inc()`, `uclamp_rq_max_value()` and `uclamp_idle_value()`, kernel 6.18,
    /// without the rounding of their buckets.
    fn limits_on(&self, cpu: CpuId) -> Limits {
        let mut limits = Limits {
            least: self.urgency(cpu).unwrap_or(0),
            most: FULL,
        };
        let Some(speeds) = self.speeds.as_deref().filter(|it| it.uses_clamps) else {
            return limits;
        };
        let mut most = None;
        for (id, task) in (0..).map(TaskId).zip(&self.tasks) {
            let is_here = task.cpu == cpu && task.state == RunState::Runnable;
            if !is_here || task.class == Class::Dl {
                continue;
            }
            let clamps = self.clamps_of(id);
            most = most.max(Some(clamps.max.unwrap_or(FULL)));
            // Those of real-time tasks are in `urgency`.
            if task.class != Class::Rt {
                limits.least = limits.least.max(clamps.min.unwrap_or(0));
            }
        }
        limits.most = most.unwrap_or(speeds.cpus[cpu].last_most);
        limits
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
        self.tell_frequency(cpus[0]);
        for (cpu, executing) in cpus.iter().zip(&executing) {
            if let Some((id, _)) = executing {
                self.cpus[*cpu].executing_since = None;
                self.start_executing(*cpu, self.task(*id).work_left);
            }
        }
    }

    /// Tells the frequencies with which a run begins.
    pub(crate) fn tell_frequencies(&mut self) {
        let clocks = self.speeds.as_deref().map(|it| &it.clocks);
        let firsts: Vec<CpuId> = clocks.into_iter().flatten().map(|it| it.cpus[0]).collect();
        firsts.into_iter().for_each(|cpu| self.tell_frequency(cpu));
    }

    /// Tells the frequency of the clock whose first CPU is `cpu`, if it is known.
    fn tell_frequency(&mut self, cpu: CpuId) {
        let Some(speeds) = self.speeds.as_deref() else {
            return;
        };
        let (khz, rate) = (speeds.khz(cpu).into(), speeds.cpus[cpu].base as u32);
        if khz > 0 {
            self.emit(TaskId::NONE, cpu, What::Frequency { khz, rate });
        }
    }

    /// What is to be said of targets that nothing follows, and of a busy governor.
    pub(crate) fn note_frequencies(&mut self) {
        let follows = self.speeds.as_deref().is_some_and(Speeds::follows_targets);
        if self.targets_set > 0 && !follows {
            let name = self.scheds.root.ops.name();
            let hardware = if self.speeds.is_some() {
                ""
            } else {
                "--hardware NAME "
            };
            self.note(format!(
                "{name} set performance targets {} times; no CPU changes its frequency here \
                 ({hardware}--governor schedutil)",
                self.targets_set
            ));
        }
        let has_clamps = self.workload.groups.iter().any(|it| it.clamps.is_set());
        if has_clamps && !follows {
            self.note(
                "`util_min` and `util_max` have no effect: no CPU changes its frequency here \
                 (--governor schedutil)"
                    .to_owned(),
            );
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
