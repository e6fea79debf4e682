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

use model::{CpuId, Nanos, Profile};

use crate::cpu::{Curr, Mode};
use crate::machine::{Machine, Vm};
use crate::queue::Pending;
use crate::task::{Phase, RunState};

/// Picoseconds of a nanosecond.
const PS: u64 = 1_000;

/// What actions cost, nanoseconds unless the name says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A switch between tasks of one address space.
    pub switch: u64,
    /// A switch between address spaces.
    pub switch_mm: u64,
    /// A switch to the idle task or from it.
    pub switch_idle: u64,
    /// A `schedule()` that changes nothing.
    pub keep: u64,
    /// `try_to_wake_up()`, the policy's callbacks not included.
    pub wakeup: u64,
    /// More of it if the task's CPU is another one.
    pub wakeup_remote: u64,
    /// From the sending of a reschedule IPI to its arrival.
    pub ipi_flight: u64,
    /// The target's handler.
    pub ipi_handler: u64,
    /// The interrupt that a CPU sends itself before its kicks act.
    pub kick_irq: u64,
    /// From an interrupt to the first instruction on an idle CPU.
    pub idle_exit: u64,
    /// A tick.
    pub tick: u64,
    /// A timer interrupt, with the kernel's part of the wakeup that it leads to.
    pub timer: u64,
    /// Taking a task from another CPU's run queue.
    pub migration: u64,
    /// `fork()`.
    pub fork: u64,
    /// `exit()`.
    pub exit: u64,
    /// Entering and leaving a callback.
    pub callback: u64,
    /// A BPF instruction, picoseconds.
    pub instruction_ps: u64,
}

/// `default-v0`. Measured are, on a virtual machine with Linux 6.18.44 (AMD EPYC, family 26), by a
/// real-time program, least of 400 batches: the sum of a switch and the wakeup that leads to it, a
/// `schedule()` that changes nothing, the sum of fork and exit. How these sums are divided and all
/// other figures are the middle of what is usual for a PC of the 2020s; docs/fidelity.md says which
/// are which and how each could be measured.
const DEFAULT_V0: Costs = Costs {
    // Pipe ping-pong on one CPU: 1762 ns a hop between threads, 1724 ns between processes, the
    // system calls (449 ns) taken off. The two do not differ there.
    switch: 1_140,
    switch_mm: 1_140,
    switch_idle: 700,
    // sched_yield() of a lone task less a system call.
    keep: 235,
    wakeup: 600,
    wakeup_remote: 300,
    ipi_flight: 800,
    ipi_handler: 300,
    kick_irq: 400,
    idle_exit: 1_500,
    tick: 1_500,
    timer: 1_000,
    migration: 300,
    // fork(), exit() at once and wait(): 131.6 us, two switches of it.
    fork: 77_000,
    exit: 51_000,
    callback: 15,
    instruction_ps: 400,
};

impl Costs {
    /// The costs of a profile; `None` if nothing costs anything.
    ///
    /// # Panics
    /// For a profile that `model` has and this table lacks.
    #[must_use]
    pub const fn of(profile: Profile) -> Option<Self> {
        match profile {
            Profile::Ideal => None,
            Profile::DefaultV0 => Some(DEFAULT_V0),
            _ => panic!("a profile without costs"),
        }
    }

    /// What a kernel function or helper costs beyond its instruction, picoseconds.
    #[must_use]
    pub fn of_function(name: &str) -> u64 {
        let ns = match name {
            "scx_bpf_kick_cpu" => 50,
            _ if name.starts_with("scx_bpf_select_cpu") => 100,
            _ if name.starts_with("scx_bpf_dsq_move") => 100,
            _ if name.contains("scx_bpf_dsq_insert") => 60,
            _ if name.starts_with("bpf_iter_") => 40,
            _ if name.starts_with("bpf_cpumask") || name.starts_with("scx_bpf") => 10,
            _ => 20,
        };
        ns * PS
    }
}

impl Machine {
    /// Adds to the debt of the CPU that executes now.
    #[inline]
    pub(crate) fn charge(&mut self, cost: impl FnOnce(&Costs) -> u64) {
        if let Some(costs) = &self.costs {
            self.cpus[self.exec].owed_ps += cost(costs) * PS;
        }
    }

    /// Adds to the debt of `cpu` what comes with an interrupt there.
    pub(crate) fn charge_interrupt(&mut self, cpu: CpuId, cost: impl FnOnce(&Costs) -> u64) {
        let Some(costs) = &self.costs else { return };
        let state = &mut self.cpus[cpu];
        let idles = state.curr == Curr::Idle && state.mode == Mode::Idle;
        let exit = if idles { costs.idle_exit } else { 0 };
        state.owed_ps += (cost(costs) + exit) * PS;
    }

    /// What the object has cost so far, picoseconds; 0 if nothing costs anything.
    #[inline]
    pub(crate) fn spent(&self, vm: &Vm) -> u64 {
        let Some(costs) = &self.costs else { return 0 };
        vm.retired() * costs.instruction_ps + vm.charged()
    }

    /// Charges a call of the object that began at `spent`. A call from within a call is part of it.
    #[inline]
    pub(crate) fn charge_call(&mut self, vm: &Vm, spent: u64) {
        if self.costs.is_some() && self.contexts.depth() == 0 {
            let more = self.spent(vm) - spent;
            self.cpus[self.exec].owed_ps += more;
            self.charge(|costs| costs.callback);
        }
    }

    /// Takes the whole nanoseconds of the debt of `cpu`.
    pub(crate) fn take_debt(&mut self, cpu: CpuId) -> Nanos {
        let owed = &mut self.cpus[cpu].owed_ps;
        let whole = *owed / PS;
        *owed -= whole * PS;
        Nanos::new(whole)
    }

    /// Whether `cpu` owes time.
    #[inline]
    pub(crate) fn has_debt(&self, cpu: CpuId) -> bool {
        self.cpus[cpu].owed_ps >= PS
    }

    /// What the kernel did for the task that runs on `cpu` is work of that task.
    pub(crate) fn pay_by_task(&mut self, cpu: CpuId) {
        if let Curr::Task(id) = self.cpus[cpu].curr
            && self.cpus[cpu].executing_since.is_none()
            && self.task(id).state == RunState::Runnable
        {
            let span = self.take_debt(cpu);
            self.task_mut(id).work_left += span;
        }
    }

    /// The overhead of the switch from `prev` to the current task of `cpu`, the debt included.
    pub(crate) fn switch_overhead(&mut self, cpu: CpuId, prev: Curr) -> Nanos {
        let Some(costs) = &self.costs else {
            return Nanos::ZERO;
        };
        let cost = match (prev, self.cpus[cpu].curr) {
            // The migration thread has not done its work yet.
            (_, Curr::Stopper) => return Nanos::ZERO,
            (Curr::Task(a), Curr::Task(b)) if self.task(a).mm == self.task(b).mm => costs.switch,
            (Curr::Task(_), Curr::Task(_)) => costs.switch_mm,
            _ => costs.switch_idle,
        };
        self.cpus[cpu].owed_ps += cost * PS;
        // A CPU that leaves pushes the task away at once: the next switch pays for this one.
        if matches!(self.cpus[cpu].curr, Curr::Task(_)) && !self.is_online(cpu) {
            return Nanos::ZERO;
        }
        self.take_debt(cpu)
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
        state.busy_until = now + span;
        state.stolen_ns += span.get();
        state.resume_pending = true;
        let (until, curr) = (state.busy_until, state.curr);
        if let Curr::Task(id) = curr {
            self.task_mut(id).enter(Phase::Stolen, now);
        }
        self.queue.push(until, cpu, Pending::Resume);
    }
}
