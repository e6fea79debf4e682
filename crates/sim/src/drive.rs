//! The event loop: takes the next event, lets its CPU do what follows from it, and again.

use model::{CpuId, Nanos, SimTime, Sink as _, TaskId};
use workload::CgroupChange;

use crate::cpu::{Curr, Mode, Todo};
use crate::flags::{Waker, deq};
use crate::interleave::state::LockKey;
use crate::machine::{Machine, Vm};
use crate::pending::{Packed, Pending, is_of_timers};
use crate::task::RunState;
use crate::view::Audience;
use crate::work::{Action, QuickStep};

/// Events are handed to the sink in portions of this size.
pub(crate) const PORTION: usize = 4096;
/// So many tasks do not stay in a processor's cache.
const MANY_TASKS: usize = 300;
/// What turns need of so many CPUs, five lines of each, leaves too little room for all else in the
/// nearest cache.
const MANY_CPUS: usize = 32;

impl Machine {
    /// Runs until the workload, the policy or the time ends.
    pub(crate) fn run(
        &mut self,
        vm: &mut Vm,
        audience: &mut Audience<'_>,
    ) -> Result<(), bpf::OutOfMemory> {
        if self.interleaves() {
            return self.run_interleaved(vm, audience);
        }
        self.run_until::<false>(vm, audience, SimTime::ZERO)?;
        audience.sample_at_end(self, vm);
        Ok(())
    }

    /// Runs until all has happened that happens up to `time`. False if the run has ended by then;
    /// then it is as [`Machine::run`] leaves it.
    pub(crate) fn run_to(
        &mut self,
        vm: &mut Vm,
        audience: &mut Audience<'_>,
        time: SimTime,
    ) -> Result<bool, bpf::OutOfMemory> {
        self.run_until::<true>(vm, audience, time)
    }

    /// Runs on; with `STOPS` only up to `time`. Whether it has stopped there.
    // Not built in where the machine is made, so that a register says where it lies.
    #[inline(never)]
    fn run_until<const STOPS: bool>(
        &mut self,
        vm: &mut Vm,
        audience: &mut Audience<'_>,
        time: SimTime,
    ) -> Result<bool, bpf::OutOfMemory> {
        let has_many_cpus = usize::from(self.spec.cpus) > MANY_CPUS;
        self.queue
            .tell_soon(self.tasks.len() > MANY_TASKS, has_many_cpus);
        // One test for what few runs have.
        let is_watched = self.program.is_some() || audience.watches() || self.follows_cpus();
        let has_book = self.spec.textbook.is_some();
        let is_plain = !is_watched && self.speeds.is_none();
        self.ticks_pass =
            self.ledger.costs().is_some() && is_plain && !audience.samples() && !STOPS;
        loop {
            if STOPS && !self.is_halted() && self.queue.is_quiet_until(time) {
                return Ok(!self.queue.is_empty());
            }
            let Some(event) = self.queue.advance() else {
                break;
            };
            let (cpu, now, what) = (event.cpu(), event.time(), event.what);
            if now > self.now {
                audience.sample_before(self, vm, now);
                if now >= self.idleness.due() {
                    self.look_at_idle_cpus(now);
                    if self.is_halted() {
                        break;
                    }
                }
                self.set_time(now);
                self.moment.begin(vm);
            }
            if what.variant() == Packed::END {
                break;
            }
            if self.queue.tells_soon() {
                self.load_soon(vm);
            }
            if has_book {
                self.handle_by_the_book(vm, cpu, what)?;
            } else {
                self.handle(vm, cpu, what)?;
            }
            if is_watched {
                self.look_around(vm, cpu, audience);
            }
            if self.has_recorded(PORTION) && self.has_told_enough(vm, audience) {
                break;
            }
            if self.is_halted() {
                break;
            }
        }
        Ok(false)
    }

    /// Hands over the events so far. Whether nobody wants to hear more.
    #[cold]
    #[inline(never)]
    fn has_told_enough(&mut self, vm: &Vm, audience: &mut Audience<'_>) -> bool {
        self.hand_over(vm, audience);
        audience.has_enough()
    }

    /// Lets those look who want to see the machine after each event, which was one of `cpu`.
    #[cold]
    fn look_around(&mut self, vm: &mut Vm, cpu: CpuId, audience: &mut Audience<'_>) {
        self.settle(self.turn.exec);
        self.settle(cpu);
        if self.program.is_some() {
            self.look_at_program(vm);
        }
        audience.look(self, vm);
    }

    /// As [`Machine::handle`], built in nowhere: for who does more beside, so that the loop of all
    /// others is of one piece.
    #[inline(never)]
    pub(crate) fn handle_apart(
        &mut self,
        vm: &mut Vm,
        wanted: CpuId,
        what: Packed,
    ) -> Result<(), bpf::OutOfMemory> {
        self.handle(vm, wanted, what)
    }

    /// As [`Machine::drive`], built in nowhere.
    #[inline(never)]
    pub(crate) fn drive_apart(&mut self, vm: &mut Vm, cpu: CpuId) -> Result<(), bpf::OutOfMemory> {
        self.drive(vm, cpu)
    }

    #[inline(always)]
    fn handle(&mut self, vm: &mut Vm, wanted: CpuId, what: Packed) -> Result<(), bpf::OutOfMemory> {
        let cpu = self.serving_cpu(wanted, what);
        self.turn.exec = cpu;
        if self.cpus[cpu].todo.has(Todo::BUSY)
            && (what.variant() == Packed::RESUME && self.goes_on(cpu) || self.is_put_off(cpu, what))
        {
            return Ok(());
        }
        let mut is_timer = false;
        match what.variant() {
            Packed::WORK_DONE => {
                if !self.ends_work(cpu) {
                    return Ok(());
                }
            }
            Packed::RESUME => self.cpus[cpu].resume_pending = false,
            Packed::TIMER => {
                let task = what.task();
                self.charge_interrupt(cpu, |costs| costs.timer);
                if self.task(task).sleep_generation == what.number() {
                    self.wake(vm, task, Waker::Nobody);
                }
                is_timer = true;
            }
            Packed::TICK => {
                if self.take_tick(vm, cpu) {
                    return Ok(());
                }
            }
            _ => is_timer = self.handle_rare(vm, (cpu, wanted), what.unpacked()),
        }
        if is_timer && self.queue.timer_follows(cpu) {
            return Ok(());
        }
        self.drive(vm, cpu)
    }

    /// The CPU is in an interrupt, or was until now. Whether what comes waits for its end.
    #[cold]
    fn is_put_off(&mut self, cpu: CpuId, what: Packed) -> bool {
        let what = what.unpacked();
        let until = self.cpus[cpu].busy_until;
        let waits = self.now < until && what.waits_for_cpu();
        if waits {
            self.queue.push(until, cpu, what);
        } else {
            self.end_interrupt(cpu);
        }
        waits
    }

    /// Returns whether it is the expiry of a high-resolution timer.
    #[inline(never)]
    fn handle_rare(&mut self, vm: &mut Vm, (cpu, wanted): (CpuId, CpuId), what: Pending) -> bool {
        match what {
            Pending::Start { task } => self.wake(vm, task, Waker::Nobody),
            Pending::BpfTimer { generation } => {
                self.charge_interrupt(cpu, |costs| costs.timer);
                self.fire(vm, generation);
            }
            Pending::Interrupt { source } => self.interrupt(vm, (cpu, wanted), source),
            Pending::Hotplug { online } => self.hotplug(vm, cpu, online),
            Pending::Replenish { task, generation } => {
                self.charge_interrupt(cpu, |costs| costs.timer);
                self.replenish_at_timer(task, generation);
            }
            Pending::Reap { task } => self.reap(vm, task),
            // A program has attached it already; what follows is the same.
            Pending::Attach if self.program.is_some() => {}
            Pending::Attach => self.outside_time(cpu, |machine| machine.attach(vm)),
            Pending::Sub { index, comes } => {
                self.outside_time(cpu, |machine| machine.change_sub(vm, index, comes));
            }
            Pending::Seat { task } => self.wake(vm, task, Waker::Nobody),
            Pending::Program => self.run_free_threads(vm),
            Pending::Change { index } => self.make_change(vm, index),
            Pending::Rescue => self.rescue_next(wanted),
            Pending::Watchdog => self.watch_over(),
            Pending::Intervene { index } => self.intervene(vm, index),
            Pending::Clock { number } => self.change_frequency(number),
            Pending::Turbo => self.look_at_turbo(),
            other => unreachable!("{other:?} is handled by the caller"),
        }
        is_of_timers(what.class())
    }

    /// Lets `cpu` do what there is to do now: interrupts first, then the scheduler, then the
    /// task's own work.
    #[inline(always)]
    fn drive(&mut self, vm: &mut Vm, cpu: CpuId) -> Result<(), bpf::OutOfMemory> {
        while !self.is_halted() {
            let state = &self.cpus[cpu];
            if !state.todo.is_empty() {
                if state.todo.has(Todo::WAITS) {
                    return Ok(());
                }
                self.do_first(vm, cpu);
            } else {
                let (Some(id), None) = (state.occupant.task(), state.executing_since) else {
                    return Ok(());
                };
                let left = self.task(id).work_left;
                let work = if left.is_zero() {
                    self.step(vm, cpu, id)?
                } else {
                    Some(left)
                };
                if let Some(left) = work {
                    self.start_executing(cpu, left);
                    return Ok(());
                }
                if self.ledger.costs().is_some() {
                    self.pay_by_task(cpu);
                }
            }
        }
        Ok(())
    }

    /// Lets `cpu` do the first of what it has to do before its task goes on.
    #[inline(always)]
    fn do_first(&mut self, vm: &mut Vm, cpu: CpuId) {
        let todo = self.cpus[cpu].todo;
        if todo.has(Todo::DEBT) {
            let span = self.cpus[cpu].take_debt();
            return self.steal(cpu, span);
        }
        if todo.has(Todo::KICKS) {
            self.charge(|costs| costs.kick_irq);
            return self.run_kicks(vm, cpu);
        }
        self.count_turn(vm, cpu);
        if todo.has(Todo::DEFERRED) {
            self.cpus[cpu].todo.strike(Todo::DEFERRED);
            self.run_all_deferred(vm, cpu);
        } else {
            self.schedule(vm, cpu, None);
        }
    }

    /// What waited for an interrupt that the CPU sends itself.
    ///
    /// Source: `deferred_irq_workfn()`, kernel 6.18, which locks the run queue.
    fn run_all_deferred(&mut self, vm: &mut Vm, cpu: CpuId) {
        let locked = self.lock(vm, LockKey::RunQueue(cpu));
        self.run_deferred(vm, cpu);
        self.reenqueue_deferred(vm, cpu);
        if locked {
            self.unlock(LockKey::RunQueue(cpu));
        }
    }

    /// Lets the running task take its next step. Returns how long its work is if that is all that
    /// has happened, so that it can begin with it.
    #[inline(always)]
    pub(crate) fn step(
        &mut self,
        vm: &mut Vm,
        cpu: CpuId,
        id: TaskId,
    ) -> Result<Option<Nanos>, bpf::OutOfMemory> {
        match self.work.step_quickly(id, self.now) {
            QuickStep::Run(span) => {
                self.task_mut(id).work_left = span;
                return Ok(Some(span));
            }
            QuickStep::SleepUntil(time) => {
                self.sleep_until(vm, cpu, id, time);
                return Ok(None);
            }
            QuickStep::Unknown => {}
        }
        self.step_slowly(vm, cpu, id).map(|()| None)
    }

    #[inline(never)]
    fn step_slowly(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId) -> Result<(), bpf::OutOfMemory> {
        if let Some(thread) = self.thread_of(id) {
            self.step_thread(vm, cpu, id, thread);
            return Ok(());
        }
        let action = self.step_work(id, cpu);
        if self.work.is_exiting(id) && !self.task(id).exiting {
            self.begin_exit(vm, id);
        }
        match action {
            Err(error) => self.give_up(error),
            Ok(Action::Run(span)) => self.task_mut(id).work_left = span,
            Ok(Action::Exec(span)) => {
                self.charge(|costs| costs.exec);
                self.task_mut(id).work_left = span;
            }
            Ok(Action::SleepUntil(time)) => self.sleep_until(vm, cpu, id, time),
            Ok(Action::Block) => {
                let deep = self.work.waits_uninterruptibly(id);
                self.sleep(vm, cpu, id, deep);
            }
            Ok(Action::Yield) => self.yield_task(vm, cpu, id),
            Ok(Action::MigrateDisable) => self.migrate_disable(vm, id),
            Ok(Action::MigrateEnable) => self.under_task_locks(vm, id, |machine, vm| {
                machine.migrate_enable(vm, id);
            }),
            Ok(Action::Exit) => {
                self.count_turn(vm, cpu);
                self.charge(|costs| costs.exit);
                self.exit(vm, cpu, id);
                let finished = self.work.finished(self.now);
                self.halt_if(finished);
            }
            Ok(Action::Wake { task, sync }) => {
                self.charge(|costs| costs.wakeup);
                let by = if sync { Waker::Sleeper } else { Waker::Current };
                self.wake(vm, task, by);
            }
            Ok(Action::Fork(birth)) => {
                self.charge(|costs| costs.fork);
                let child = match self.workload.begin {
                    None => self.fork(vm, id, &birth)?,
                    Some(_) => self.fork_as_played(vm, id, &birth)?,
                };
                self.work.forked(id, child);
            }
            Ok(Action::Interrupt { source, cpu, at }) => {
                self.queue.push(at, cpu, Pending::Interrupt { source });
            }
            Ok(change) => self.make_change_of(vm, change),
        }
        self.halt_if(self.work.is_stopped());
        Ok(())
    }

    /// What one task does to another, or to a cgroup.
    fn make_change_of(&mut self, vm: &mut Vm, change: Action) {
        match change {
            Action::SetNice { task, nice } => self.under_task_locks(vm, task, |machine, vm| {
                machine.set_nice(vm, task, nice);
            }),
            Action::SetAffinity { task, cpus } => self.under_task_locks(vm, task, |machine, vm| {
                machine.set_affinity(vm, task, &cpus);
            }),
            Action::SetPolicy { task, policy } => self.under_task_locks(vm, task, |machine, vm| {
                machine.set_policy(vm, task, policy);
            }),
            of_cgroup => {
                self.wait_alone(vm);
                self.change_cgroups(vm, of_cgroup);
                self.leave_alone();
            }
        }
    }

    /// What a task does to a cgroup, or to itself or another in cgroups.
    fn change_cgroups(&mut self, vm: &mut Vm, change: Action) {
        match change {
            Action::MoveCgroup { task, to, process } => {
                self.move_to_cgroup(vm, task, to, process);
            }
            Action::SetCgroup { number, change } => match change {
                CgroupChange::Weight(weight) => self.set_cgroup_weight(vm, number, weight),
                CgroupChange::Max(max) => self.set_cgroup_max(vm, number, max),
                CgroupChange::Idle(idle) => self.set_cgroup_idle(vm, number, idle),
            },
            other => unreachable!("{other:?} changes nobody"),
        }
    }

    #[inline(always)]
    pub(crate) fn sleep_until(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId, time: SimTime) {
        let generation = self.fall_asleep(id, false);
        let what = Pending::Timer {
            task: id,
            generation,
        };
        self.queue.push(time, cpu, what);
        self.leave_cpu(vm, cpu);
    }

    #[inline(always)]
    pub(crate) fn sleep(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId, deep: bool) {
        self.fall_asleep(id, deep);
        self.leave_cpu(vm, cpu);
    }

    /// The running task sleeps from now on; it is to leave its CPU. Returns the number of this
    /// sleep: a wakeup before a timer of it makes the timer stale.
    #[inline(always)]
    fn fall_asleep(&mut self, id: TaskId, deep: bool) -> u64 {
        let task = self.task_mut(id);
        (task.state, task.deep) = (RunState::Sleeping, deep);
        let generation = task.sleep_generation;
        self.note_falling_asleep(id);
        // A policy sees it before the task has left its queue.
        self.mirror_state(id);
        generation
    }

    #[inline(always)]
    fn leave_cpu(&mut self, vm: &mut Vm, cpu: CpuId) {
        self.count_turn(vm, cpu);
        self.schedule(vm, cpu, Some(deq::SLEEP | deq::NOCLOCK));
    }

    /// An interrupt of the CPU `wanted`, which `cpu` serves.
    #[inline(never)]
    fn interrupt(&mut self, vm: &mut Vm, (cpu, wanted): (CpuId, CpuId), source: usize) {
        match self.work.interrupt(source, self.now) {
            Err(error) => self.give_up(error),
            Ok(interrupt) => {
                self.charge_interrupt(cpu, |_| 0);
                interrupt
                    .wakes
                    .into_iter()
                    .for_each(|task| self.wake(vm, task, Waker::Nobody));
                self.steal(cpu, interrupt.steal);
                for next in interrupt.next {
                    // One that should have come while this one waited comes right behind it.
                    let next = next.max(self.now);
                    self.queue.push(next, wanted, Pending::Interrupt { source });
                }
                self.halt_if(self.work.is_stopped());
            }
        }
    }

    /// The watchdog's turn. When nothing else is to come, the run is over.
    #[inline(never)]
    pub(crate) fn watch_over(&mut self) {
        let idle = self
            .cpus
            .iter()
            .all(|cpu| cpu.mode == Mode::Idle && cpu.curr() == Curr::Idle);
        let is_over = if self.queue.is_empty() {
            idle && !self.watchdog.has_waiting()
        } else {
            // A timer that arms itself again calls CPUs for ever. All events and tasks are looked
            // at where there is one only.
            !self.timers.is_empty() && self.queue.has_only_bpf_timers() && !self.has_runnable()
        };
        if is_over {
            self.note_deadlock();
            self.halt_if(true);
        } else {
            self.check_stalls();
        }
    }

    fn has_runnable(&self) -> bool {
        (0..self.tasks.len() as u32).any(|id| self.task(TaskId(id)).state == RunState::Runnable)
    }

    /// Says who sleeps and why, when nobody is left who could wake them.
    fn note_deadlock(&mut self) {
        const NAMED: usize = 5;
        let asleep: Vec<_> = (0..self.tasks.len() as u32)
            .map(TaskId)
            .filter(|&id| self.task(id).state == RunState::Sleeping)
            .collect();
        if asleep.is_empty() {
            return;
        }
        let reasons: Vec<_> = asleep
            .iter()
            .take(NAMED)
            .map(|&id| {
                let reason = self.work.waits_for(id);
                let reason = reason.unwrap_or_else(|| "nothing".into());
                format!("{} for {reason}", self.name(id))
            })
            .collect();
        let more = if asleep.len() > NAMED { ", ..." } else { "" };
        self.note(format!(
            "the run ends early: {} tasks wait for what nobody will bring: {}{more}",
            asleep.len(),
            reasons.join(", ")
        ));
    }

    /// Ends the run at `time` at the latest.
    pub(crate) fn end_at(&mut self, time: Nanos) {
        self.queue
            .push(SimTime::ZERO + time, CpuId(0), Pending::End);
    }
}

impl Pending {
    /// Whether it happens on its CPU and so waits while that CPU is in an interrupt.
    const fn waits_for_cpu(self) -> bool {
        !matches!(
            self,
            Self::WorkDone
                | Self::Resume
                | Self::Reap { .. }
                | Self::Watchdog
                | Self::Change { .. }
                | Self::Intervene { .. }
                | Self::Clock { .. }
                | Self::Rescue
                | Self::Turbo
                | Self::End
        )
    }
}
