//! What chooses and changes the frequencies of CPUs: the policy's targets, tasks of other classes,
//! limits of tasks, turbo.

use bpf::Image;
use model::{CpuId, Nanos, SimTime, Sysfs, TaskId, What};

use crate::machine::Machine;
use crate::pending::Pending;
use crate::speeds::Speeds;
use crate::speeds::clock::{FULL, SpeedLimits, USUAL_LIMIT, base_rate, frequency_for};
use crate::speeds::turbo::LOOK;
use crate::task::{Class, RunState};

/// Whether programs of `image` read the limits of frequencies that a kernel keeps for each CPU.
/// Here there are none: the pointer to them is null.
#[must_use]
pub fn reads_frequency_limits(image: &Image) -> bool {
    image.refers_to("cpufreq_cpu_data")
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
    pub(crate) fn choose_frequency(&mut self, cpu: CpuId) {
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
        if wanted == clock.next.unwrap_or(clock.wanted) {
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
    /// Source: `effective_cpu_util()`, kernel 6.18. Real-time tasks want all unless limits are
    /// used; then it is their `util_min`, whose default is all (`sched_util_clamp_min_rt_default`).
    pub(crate) fn urgency(&self, cpu: CpuId) -> Option<u16> {
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
    fn limits_on(&self, cpu: CpuId) -> SpeedLimits {
        let mut limits = SpeedLimits {
            least: self.urgency(cpu).unwrap_or(0),
            most: FULL,
        };
        let Some(speeds) = self.speeds.as_deref().filter(|it| it.uses_clamps) else {
            return limits;
        };
        let mut most: Option<u16> = None;
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
        let clock = &mut speeds.clocks[usize::from(number)];
        clock.wanted = clock.next.take().unwrap_or(clock.wanted);
        clock.changes += 1;
        let at = clock.allowed();
        self.set_frequency(number, at);
    }

    fn set_frequency(&mut self, number: u16, at: usize) {
        let Some(speeds) = self.speeds.as_deref() else {
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
            speeds.leave_frequency(number.into(), now);
            let clock = &mut speeds.clocks[usize::from(number)];
            clock.at = at;
            let base = base_rate(&speeds.hardware.classes[clock.class], at);
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

    /// A CPU begins or stops to execute: active cores are counted when this millisecond ends.
    pub(crate) fn arm_turbo(&mut self) {
        let turbo = self.speeds.as_deref_mut().map(|it| &mut it.turbo);
        let Some(turbo) = turbo.filter(|it| it.waits()) else {
            return;
        };
        turbo.is_armed = true;
        let next = (self.now.as_nanos() / LOOK + 1) * LOOK;
        let next = SimTime::from_nanos(next);
        self.queue.push(next, CpuId(0), Pending::Turbo);
    }

    /// A millisecond has ended: clocks get the ceilings that their active cores leave them.
    pub(crate) fn look_at_turbo(&mut self) {
        let now = self.now;
        let Some(speeds) = self.speeds.as_deref_mut() else {
            return;
        };
        let is_to_change = speeds.count_cores(now);
        for (number, at) in speeds.raise_and_lower() {
            self.set_frequency(number, at);
        }
        if is_to_change {
            self.arm_turbo();
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

    /// What is to be said of targets that nothing follows, of a busy governor, and of what policies
    /// and tasks depend on and no CPU has.
    pub(crate) fn note_frequencies(&mut self, image: &Image) {
        self.note_absent(image);
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
        self.note_clamps(follows);
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

    /// What is to be said of limits of tasks that nothing asks for. The governor looks at them when
    /// it chooses, which it does for a target or a real-time task.
    fn note_clamps(&mut self, follows: bool) {
        if !self.workload.groups.iter().any(|it| it.clamps.is_set()) {
            return;
        }
        if !follows {
            return self.note(
                "`util_min` and `util_max` have no effect: no CPU changes its frequency here \
                 (--governor schedutil)"
                    .to_owned(),
            );
        }
        let mut clocks = self.speeds.iter().flat_map(|it| &it.clocks);
        if self.targets_set == 0 && clocks.all(|clock| clock.changes == 0) {
            let name = self.scheds.root.ops.name();
            self.note(format!(
                "`util_min` and `util_max` had no effect: {name} set no performance target below \
                 the highest, and no CPU changed its frequency"
            ));
        }
    }

    fn note_absent(&mut self, image: &Image) {
        let Some(speeds) = self.speeds.as_deref() else {
            return;
        };
        if speeds.heavy_together {
            self.note(
                "memory bandwidth is not modelled: tasks that wait for it ran at once".into(),
            );
        }
        if reads_frequency_limits(image) {
            let name = self.scheds.root.ops.name();
            self.note(format!(
                "{name} reads limits of frequencies, which no CPU has here"
            ));
        }
    }
}
