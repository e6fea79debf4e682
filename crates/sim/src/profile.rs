//! What the kernel's own actions cost on the simulated machine.
//!
//! # How costs are charged
//!
//! What a CPU's code costs becomes that CPU's debt. The debt is paid as soon as the CPU has done
//! what it does at this moment:
//!
//! * by a switch, as the switch's overhead: the callbacks of `schedule()` and the switch itself;
//! * by a task that made the kernel work for it (a wakeup, a fork), as work that the task does;
//! * else, by whatever runs there, as time that an interrupt stole: ticks, timers, IPIs, and a
//!   `schedule()` that changed nothing.
//!
//! A callback is atomic at its start. IPIs leave when what the sender has done so far is paid for.
//! The debt is kept in picoseconds; whole nanoseconds are paid.

use bpf::Prepared;
use model::{Costs, CpuId, Nanos, RunQueueLock, SimTime, TaskId};

use crate::cpu::{Curr, Mode, PS};
use crate::machine::{Machine, Vm};
use crate::ops::Call;
use crate::pending::Pending;
use crate::task::{Phase, RunState};

/// What a kernel function or helper costs beyond its instruction, picoseconds.
pub(crate) fn of_function(costs: &Costs, name: &str) -> u64 {
    match name {
        "scx_bpf_kick_cpu" => costs.call_kick,
        _ if name.starts_with("scx_bpf_select_cpu") => costs.call_select_cpu,
        _ if name.starts_with("scx_bpf_dsq_move") => costs.call_move,
        _ if name.contains("scx_bpf_dsq_insert") => costs.call_insert,
        _ if name.starts_with("bpf_iter_") => costs.call_iterate,
        _ if name.starts_with("bpf_cpumask") || name.starts_with("scx_bpf") => costs.call_kernel,
        _ => costs.call_helper,
    }
}

/// What time was charged for, picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kinds {
    callbacks: u64,
    switches: u64,
    interrupts: u64,
    refills: u64,
    /// Wakeups, forks, migrations and the like.
    kernel: u64,
}

/// What a clock has said that goes on within a callback.
#[derive(Clone, Copy, Debug, Default)]
struct SaidClock {
    /// When, and on which CPU.
    at: Option<(SimTime, CpuId)>,
    /// What the object had cost when it was asked there first, picoseconds.
    began: u64,
    /// The latest that it has said, nanoseconds.
    latest: u64,
}

/// What actions cost, and what was charged for them so far. Only this module changes it.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// `None`: nothing costs anything.
    costs: Option<Costs>,
    /// What was charged for so far.
    kinds: Kinds,
    clock: SaidClock,
}

impl Ledger {
    /// Nothing has been charged.
    pub fn new(costs: Option<Costs>) -> Self {
        Self {
            costs,
            kinds: Kinds::default(),
            clock: SaidClock::default(),
        }
    }

    /// Costs of actions; `None`: nothing costs anything.
    #[inline]
    pub const fn costs(&self) -> Option<&Costs> {
        self.costs.as_ref()
    }

    /// Kinds of charged time, to be put back by [`Ledger::set_kinds`].
    pub const fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// Forgets what was charged since [`Ledger::kinds`] was asked, kind by kind.
    pub fn set_kinds(&mut self, kinds: Kinds) {
        self.kinds = kinds;
    }
}

impl Machine {
    /// Adds to the debt of the CPU that executes now.
    #[inline]
    pub(crate) fn charge(&mut self, cost: impl FnOnce(&Costs) -> u64) {
        if let Some(costs) = &self.ledger.costs {
            let cost = cost(costs);
            self.charge_kernel(cost);
        }
    }

    // Out of line, as all that follows from costs: without them, each turn of the event loop
    // just fits into a processor's cache of instructions.
    #[cold]
    fn charge_kernel(&mut self, cost: u64) {
        self.cpus[self.turn.exec].owe(cost);
        self.turn.charged_ps += cost;
        self.ledger.kinds.kernel += cost;
    }

    /// Adds to the debt of `cpu` what comes with an interrupt there.
    #[inline]
    pub(crate) fn charge_interrupt(&mut self, cpu: CpuId, cost: impl FnOnce(&Costs) -> u64) {
        if let Some(costs) = &self.ledger.costs {
            let cost = cost(costs);
            self.charge_interrupted(cpu, cost);
        }
    }

    /// As [`Machine::charge_interrupt`], of a tick of `cpu`, which runs a task. Where things cost
    /// time, hardly anything comes as often.
    #[inline(always)]
    pub(crate) fn charge_tick(&mut self, cpu: CpuId) {
        if let Some(costs) = &self.ledger.costs {
            self.cpus[cpu].owe(costs.tick);
            self.ledger.kinds.interrupts += costs.tick;
        }
    }

    #[cold]
    fn charge_interrupted(&mut self, cpu: CpuId, cost: u64) {
        let deeper = self.idle_exit_ps(cpu);
        let Some(costs) = &self.ledger.costs else {
            return;
        };
        let state = &mut self.cpus[cpu];
        let idles = state.curr() == Curr::Idle && state.mode == Mode::Idle;
        let exit = if idles { costs.idle_exit + deeper } else { 0 };
        let cost = cost + exit;
        state.owe(cost);
        self.ledger.kinds.interrupts += cost;
    }

    /// What the object has cost so far, picoseconds; 0 if nothing costs anything.
    #[inline]
    pub(crate) fn spent(&self, vm: &Vm) -> u64 {
        let Some(costs) = &self.ledger.costs else {
            return 0;
        };
        vm.retired() * costs.instruction + vm.charged()
    }

    /// What a clock says that goes on with the charges since a CPU has asked at this moment first.
    /// It never goes back, on no CPU.
    #[cold]
    pub(crate) fn moving_clock_ns(&mut self, vm: &Vm) -> u64 {
        let (now, spent) = (self.clock_ns(), self.spent(vm));
        let at = Some((self.now, self.turn.exec));
        let clock = &mut self.ledger.clock;
        if clock.at != at {
            (clock.at, clock.began) = (at, spent);
        }
        let went_on = spent.saturating_sub(clock.began) / PS;
        clock.latest = clock.latest.max(now + went_on);
        clock.latest
    }

    /// Charges a call of the object that began at `spent`. A call from within a call is part of it.
    #[inline]
    pub(crate) fn charge_call(&mut self, vm: &Vm, spent: u64) {
        if self.ledger.costs.is_some() && self.turn.contexts.depth() == 0 {
            let entry = self.ledger.costs.as_ref().map_or(0, |costs| costs.callback);
            let more = self.spent(vm) - spent + entry;
            self.cpus[self.turn.exec].owe(more);
            self.turn.charged_ps += more;
            self.ledger.kinds.callbacks += more;
            if self.interleaves() {
                self.settle_passed();
            }
        }
    }

    /// As [`Machine::call`], where it is as likely as not that calls are charged for.
    #[inline(always)]
    pub(crate) fn call_often_priced<const N: usize>(
        &mut self,
        vm: &mut Vm,
        call: &Call<N>,
    ) -> Option<u64> {
        if !self.turn.contexts.are_only_priced() {
            return self.call(vm, call);
        }
        let who = self.asked(call);
        let function = self.scheds[who].ops.function(call.op)?;
        match vm.prepare(&call.args) {
            Some(prepared) => {
                self.calls.count_one();
                self.turn.contexts.enter_of(who, call.context(&self.rules));
                self.call_priced(vm, function, prepared)
            }
            None => self.call_slowly(vm, call),
        }
    }

    /// As [`Machine::call_prepared`], of a call that is charged for.
    #[inline(never)]
    pub(crate) fn call_priced(
        &mut self,
        vm: &mut Vm,
        function: u32,
        prepared: Prepared,
    ) -> Option<u64> {
        self.show_mirrors(vm);
        let spent = self.spent(vm);
        let result = match vm.call_prepared(function, prepared, self) {
            Ok(value) => Ok(value),
            Err(unfinished) => vm.finish(function, unfinished, self),
        };
        let who = self.turn.contexts.scheduler();
        self.turn.contexts.leave();
        self.charge_call(vm, spent);
        self.settle_call(who, result)
    }

    /// What the kernel did for the task that runs on `cpu` is work of that task.
    pub(crate) fn pay_by_task(&mut self, cpu: CpuId) {
        if let Curr::Task(id) = self.cpus[cpu].curr()
            && self.cpus[cpu].executing_since.is_none()
            && self.task(id).state == RunState::Runnable
        {
            let span = self.cpus[cpu].take_debt();
            self.task_mut(id).work_left += span;
        }
    }

    /// The overhead of the switch from `prev` to the current task of `cpu`, the debt included.
    #[cold]
    pub(crate) fn switch_overhead(&mut self, cpu: CpuId, prev: Curr) -> Nanos {
        let Some(costs) = &self.ledger.costs else {
            return Nanos::ZERO;
        };
        let (next, mut cost) = match (prev, self.cpus[cpu].curr()) {
            // The migration thread has not done its work yet.
            (_, Curr::Stopper) => return Nanos::ZERO,
            (Curr::Task(_), Curr::Task(id)) => (Some(id), costs.switch),
            (_, curr) => (curr.task(), costs.switch_idle),
        };
        if let Some(id) = next {
            // Kernel threads and the idle task go on in the address space that is there.
            let mm = self.tasks[id.index()].mm;
            if mm != 0 && std::mem::replace(&mut self.cpus[cpu].mm, mm) != mm {
                cost += costs.mm_switch;
            }
            self.warm_up(cpu, id);
        }
        self.cpus[cpu].owe(cost);
        self.ledger.kinds.switches += cost;
        if self.locks.kind() == Some(RunQueueLock::Cpu) {
            // The switch is made under the lock of the run queue.
            self.turn.charged_ps += cost;
        }
        // A CPU that leaves pushes the task away at once: the next switch pays for this one.
        if matches!(self.cpus[cpu].curr(), Curr::Task(_)) && !self.is_online(cpu) {
            return Nanos::ZERO;
        }
        self.cpus[cpu].take_debt()
    }

    /// A task that ran elsewhere before fills the caches of `cpu` with what it uses of them, which
    /// is work of its own.
    fn warm_up(&mut self, cpu: CpuId, id: TaskId) {
        let task = &mut self.tasks[id.index()];
        let Some(from) = task.seldom.warm_on.replace(cpu).filter(|from| *from != cpu) else {
            return;
        };
        let (Some(costs), footprint) = (&self.ledger.costs, task.seldom.footprint) else {
            return;
        };
        let topology = &self.idle.topology();
        let (core, llc) = self
            .speeds
            .as_ref()
            .map_or((0, 0), |it| it.caches(cpu, topology));
        let or = |own: u64, usual| if own == 0 { usual } else { own };
        let core = (
            or(core, costs.core_cache_bytes),
            costs.core_refill_bytes_per_s,
        );
        let llc = (or(llc, costs.llc_cache_bytes), costs.llc_refill_bytes_per_s);
        let shares_l2 = self
            .speeds
            .as_ref()
            .is_some_and(|it| it.share_l2(cpu, from));
        let mut refill = 0;
        if !shares_l2 && !topology.core(cpu).any(|sibling| sibling == from) {
            refill += Costs::refill(core.0, core.1, footprint);
        }
        if !topology.share_cache(cpu, from) {
            refill += Costs::refill(llc.0, llc.1, footprint);
        }
        let work = self.work_of(cpu, id, Nanos::new(refill / PS));
        self.tasks[id.index()].work_left += work;
        self.ledger.kinds.refills += refill / PS * PS;
    }

    /// What took time that is no task's work, by kind, of all CPUs together.
    pub(crate) fn spent_by_kind(&self) -> Vec<(&'static str, Nanos)> {
        if self.ledger.costs.is_none() {
            return Vec::new();
        }
        let waits = self.locks.waited_ps();
        let kinds = [
            ("callbacks", self.ledger.kinds.callbacks),
            ("switches", self.ledger.kinds.switches),
            ("interrupts", self.ledger.kinds.interrupts),
            ("kernel", self.ledger.kinds.kernel),
            ("cache refills", self.ledger.kinds.refills),
            ("lock waits", waits),
        ];
        let nanos = |(kind, ps): (_, u64)| (kind, Nanos::new(ps / PS));
        kinds.map(nanos).into()
    }

    /// `cpu` is busy with a switch for `span`, from now on.
    pub(crate) fn begin_overhead(&mut self, cpu: CpuId, span: Nanos) {
        if span.is_zero() {
            return;
        }
        let now = self.now;
        let state = &mut self.cpus[cpu];
        state.enter(Mode::Overhead, now);
        state.overhead_until = now + span;
        state.be_busy(now + span, span);
        state.resume_pending = true;
        let (until, curr) = (state.busy_until, state.curr());
        if let Curr::Task(id) = curr {
            self.task_mut(id).enter(Phase::Stolen, now);
        }
        self.queue.push(until, cpu, Pending::Resume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_costs_what_its_kind_costs() {
        let costs = Costs {
            call_kick: 1,
            call_select_cpu: 2,
            call_move: 3,
            call_insert: 4,
            call_iterate: 5,
            call_kernel: 6,
            call_helper: 7,
            ..Costs::default()
        };
        for (name, want) in [
            ("scx_bpf_kick_cpu", 1),
            ("scx_bpf_select_cpu_dfl", 2),
            ("scx_bpf_select_cpu_and", 2),
            ("scx_bpf_dsq_move_to_local", 3),
            ("scx_bpf_dsq_insert_vtime", 4),
            ("__scx_bpf_dsq_insert_vtime", 4),
            ("bpf_iter_scx_dsq_next", 5),
            ("bpf_cpumask_first", 6),
            ("scx_bpf_task_cpu", 6),
            ("bpf_map_lookup_elem", 7),
        ] {
            assert_eq!(of_function(&costs, name), want, "{name}");
        }
    }
}
