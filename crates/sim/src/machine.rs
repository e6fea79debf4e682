//! The simulated machine: its state, its clock, its books.
//!
//! The scheduler's rules live in the neighbouring modules, each of which adds methods to
//! [`Machine`]: [`crate::sched`] picks, [`crate::enqueue`] and [`crate::dispatch`] move tasks
//! between queues, [`crate::wake`] wakes, [`crate::change`] changes tasks, [`crate::life`] creates
//! and ends them, [`crate::attach`] attaches and ejects the policy, [`crate::drive`] turns the
//! wheel. A method that may call the policy takes the object machine as `vm`.

use std::collections::BTreeMap;

use model::{
    Costs, CpuId, Event, EventKind, EventMask, Exit, ExitKind, Kernel, MachineSpec, Nanos, PerCpu,
    PrevState, Rng, SimTime, TaskId,
};

use crate::cgroup::Cgroups;
use crate::cpu::{Cpu, Curr, Mode, class_on};
use crate::deadline::Deadlines;
use crate::dsq::{DsqIndex, Dsqs};
use crate::entries::Entries;
use crate::idle::Idle;
use crate::lock::Locks;
use crate::mask::Masks;
use crate::mirror::Mirror;
use crate::ops::{Contexts, Ops};
use crate::profile::Kinds;
use crate::queue::{EventQueue, Pending};
use crate::setup;
use crate::tally::Tally;
use crate::task::{Class, Phase, Task};
use crate::watchdog::Watchdog;
use crate::work::{Work, WorkError, WorkEvent};

/// The object machine, with this machine as its host.
pub(crate) type Vm = bpf::Instance<Machine>;

/// One entry of the dispatch buffer: what `ops.dispatch` asked for and is checked when the buffer
/// is flushed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffered {
    pub task: TaskId,
    /// The task's enqueue number when it was inserted; `None` if the policy did not own it.
    pub qseq: Option<u64>,
    pub dsq_id: u64,
    pub flags: u64,
}

/// BPF timers that are armed. Each arming has a number of its own, so that the expiry of one that
/// was armed anew or cancelled is recognised.
#[derive(Debug, Default)]
pub(crate) struct ArmedTimers {
    number_of: BTreeMap<u64, u64>,
    address_of: BTreeMap<u64, u64>,
    last: u64,
}

impl ArmedTimers {
    /// The timer at `address` is armed; returns the number of the arming.
    pub fn arm(&mut self, address: u64) -> u64 {
        self.cancel(address);
        self.last += 1;
        self.number_of.insert(address, self.last);
        self.address_of.insert(self.last, address);
        self.last
    }

    /// The timer at `address` is not armed any more; whether it was.
    pub fn cancel(&mut self, address: u64) -> bool {
        let number = self.number_of.remove(&address);
        number.is_some_and(|number| self.address_of.remove(&number).is_some())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.number_of.is_empty()
    }

    /// The timer that was armed as `number` expires; its address, if it is still so armed.
    pub fn expire(&mut self, number: u64) -> Option<u64> {
        let address = self.address_of.remove(&number)?;
        self.number_of.remove(&address);
        Some(address)
    }
}

/// The kernel's event counters (`struct scx_event_stats`, kernel 6.18).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub select_cpu_fallback: u64,
    pub dispatch_local_dsq_offline: u64,
    pub dispatch_keep_last: u64,
    pub enq_skip_exiting: u64,
    pub enq_skip_migration_disabled: u64,
    pub refill_slice_dfl: u64,
    pub bypass_duration: u64,
    pub bypass_dispatch: u64,
    pub bypass_activate: u64,
}

impl Counters {
    /// Names and values, in the order of the kernel's structure.
    pub fn named(&self, kernel: Kernel) -> Vec<(&'static str, u64)> {
        let mut named = self.of_6_18();
        if kernel >= Kernel::V7_2 {
            // Nothing that they count is modelled.
            let after = |name| 1 + position(&named, name);
            let at = after("SCX_EV_ENQ_SKIP_MIGRATION_DISABLED");
            named.insert(at, ("SCX_EV_REENQ_IMMED", 0));
            named.insert(at + 1, ("SCX_EV_REENQ_LOCAL_REPEAT", 0));
            named.push(("SCX_EV_INSERT_NOT_OWNED", 0));
            named.push(("SCX_EV_SUB_BYPASS_DISPATCH", 0));
        }
        named
    }

    fn of_6_18(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("SCX_EV_SELECT_CPU_FALLBACK", self.select_cpu_fallback),
            (
                "SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE",
                self.dispatch_local_dsq_offline,
            ),
            ("SCX_EV_DISPATCH_KEEP_LAST", self.dispatch_keep_last),
            ("SCX_EV_ENQ_SKIP_EXITING", self.enq_skip_exiting),
            (
                "SCX_EV_ENQ_SKIP_MIGRATION_DISABLED",
                self.enq_skip_migration_disabled,
            ),
            ("SCX_EV_REFILL_SLICE_DFL", self.refill_slice_dfl),
            ("SCX_EV_BYPASS_DURATION", self.bypass_duration),
            ("SCX_EV_BYPASS_DISPATCH", self.bypass_dispatch),
            ("SCX_EV_BYPASS_ACTIVATE", self.bypass_activate),
        ]
    }
}

/// Where the counter `name` stands.
fn position(named: &[(&'static str, u64)], name: &str) -> usize {
    let found = named.iter().position(|(own, _)| *own == name);
    found.expect("a counter of every kernel")
}

/// What the simulated machine is.
///
/// What every turn needs stands first, where an instruction that reads it is shorter.
#[repr(C)]
pub struct Machine {
    pub(crate) cpus: PerCpu<Cpu>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) now: SimTime,
    /// Locks that CPUs wait for; `None`: they do not.
    pub(crate) locks: Option<Box<Locks>>,
    /// The CPU whose code executes now: the waker's in a wakeup, not the woken task's.
    pub(crate) exec: CpuId,
    wants: EventMask,
    pub(crate) attached: bool,
    pub(crate) bypass: bool,
    /// Nothing more happens: the workload has come to its end or cannot go on, or the policy was
    /// ejected.
    pub(crate) halted: bool,
    /// A callback is neither recorded nor counted nor charged for.
    pub(crate) calls_are_plain: bool,
    /// Tasks moved to the local queue since the buffer's last flush.
    pub(crate) moved: u32,
    /// The dispatch buffer of the callback being executed.
    pub(crate) buffer: Vec<Buffered>,
    /// The callbacks being executed.
    pub(crate) contexts: Contexts,
    out: Vec<Event>,
    pub(crate) callbacks: u64,
    /// Instructions that the policy had retired when this moment began.
    pub(crate) retired_before: u64,
    /// Turns of the scheduler in this very moment; see [`crate::drive`].
    pub(crate) turns_now: u32,
    pub(crate) queue: EventQueue,
    pub(crate) dsqs: Dsqs,
    pub(crate) watchdog: Watchdog,
    /// Tasks that have left the policy's custody, of which it was not told yet (7.2).
    pub(crate) released_from_custody: Vec<TaskId>,
    pub(crate) spec: MachineSpec,
    /// What actions cost; `None`: nothing.
    pub(crate) costs: Option<Costs>,
    /// All that was charged so far, interrupts apart, picoseconds.
    pub(crate) charged_ps: u64,
    /// What it was charged for.
    pub(crate) kinds: Kinds,
    pub(crate) masks: Masks,
    pub(crate) idle: Idle,
    pub(crate) ops: Ops,
    /// BPF timers that are armed.
    pub(crate) timers: ArmedTimers,
    pub(crate) mirror: Mirror,
    pub(crate) work: Work,
    pub(crate) workload: std::sync::Arc<model::workload::Workload>,
    pub(crate) work_events: Vec<WorkEvent>,
    pub(crate) work_error: Option<WorkError>,
    /// What the policy's loader puts into maps and runs, and which of it failed.
    pub(crate) entries: Vec<Entries>,
    pub(crate) setup: Vec<setup::Run>,
    pub(crate) setup_failure: Option<setup::Failure>,
    /// The policy is being attached, or is attached: kernel functions find it.
    pub(crate) enabling: bool,
    pub(crate) cgroups: Cgroups,
    pub(crate) deadlines: Deadlines,
    pub(crate) counters: Counters,
    pub(crate) exit: Option<Exit>,
    pub(crate) rng: Rng,
    pub(crate) next_pid: u32,
    pub(crate) printed: String,
    pub(crate) notes: Vec<String>,
    /// What each callback did, if that was asked.
    pub(crate) tally: Option<BTreeMap<&'static str, Tally>>,
}

/// What a [`Machine`] is made from.
pub(crate) struct Parts {
    pub spec: MachineSpec,
    pub workload: std::sync::Arc<model::workload::Workload>,
    pub seed: u64,
    pub tie_seed: Option<u64>,
    pub ops: Ops,
    pub mirror: Mirror,
    pub work: Work,
    pub wants: EventMask,
    pub tally: bool,
}

impl Machine {
    /// A machine at time zero: all CPUs idle, no tasks, no policy attached.
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            spec,
            workload,
            seed,
            tie_seed,
            ops,
            mirror,
            work,
            wants,
            tally,
        } = parts;
        let cpus = spec.cpus;
        Self {
            costs: spec.profile.costs().copied(),
            charged_ps: 0,
            kinds: Kinds::default(),
            locks: Locks::new(spec.profile.costs(), cpus),
            now: SimTime::ZERO,
            exec: CpuId(0),
            cpus: PerCpu::new(cpus, |_| Cpu::new(cpus)),
            tasks: Vec::new(),
            masks: Masks::new(cpus),
            dsqs: Dsqs::new(cpus, cpus.div_ceil(spec.node_size())),
            idle: Idle::new(&spec, &ops),
            watchdog: Watchdog::new(spec.tick(), spec.no_watchdog),
            queue: EventQueue::new(tie_seed),
            ops,
            calls_are_plain: !wants.has(EventKind::Callback)
                && !tally
                && spec.profile.costs().is_none(),
            contexts: Contexts::new(),
            buffer: Vec::new(),
            moved: 0,
            released_from_custody: Vec::new(),
            timers: ArmedTimers::default(),
            mirror,
            work,
            cgroups: Cgroups::new(&workload.cgroups),
            workload,
            work_events: Vec::new(),
            work_error: None,
            entries: Vec::new(),
            setup: Vec::new(),
            setup_failure: None,
            enabling: false,
            attached: false,
            deadlines: Deadlines::default(),
            bypass: false,
            counters: Counters::default(),
            exit: None,
            // Streams below this one belong to the workload.
            rng: Rng::new(seed, u64::MAX),
            next_pid: 100,
            printed: String::new(),
            notes: Vec::new(),
            callbacks: 0,
            tally: tally.then(BTreeMap::new),
            turns_now: 0,
            retired_before: 0,
            halted: false,
            wants,
            out: Vec::new(),
            spec,
        }
    }

    // ---- Events ----

    /// Whether a sink wants `kind`; nothing is built for one that nobody wants.
    pub(crate) fn wants(&self, kind: EventKind) -> bool {
        self.wants.has(kind)
    }

    /// Records an event of this moment.
    #[inline]
    pub(crate) fn emit(&mut self, kind: EventKind, task: TaskId, cpu: CpuId, words: (u64, u64)) {
        if self.wants.has(kind) {
            self.emit_detailed(kind, task, cpu, 0, words);
        }
    }

    /// Records an event with a `detail`. The caller has asked [`Machine::wants`].
    pub(crate) fn emit_detailed(
        &mut self,
        kind: EventKind,
        task: TaskId,
        cpu: CpuId,
        detail: u8,
        (a, b): (u64, u64),
    ) {
        self.out.push(Event {
            time: self.now,
            task,
            cpu,
            kind,
            detail,
            a,
            b,
        });
    }

    /// The events recorded since the last call.
    pub(crate) fn recorded(&mut self) -> &mut Vec<Event> {
        &mut self.out
    }

    /// Records what the workload wants recorded about `task`.
    #[inline]
    pub(crate) fn record_work(&mut self, task: TaskId, cpu: CpuId) {
        if !self.work_events.is_empty() {
            self.record_work_events(task, cpu);
        }
    }

    #[inline(never)]
    fn record_work_events(&mut self, task: TaskId, cpu: CpuId) {
        let mut events = std::mem::take(&mut self.work_events);
        for event in events.drain(..) {
            self.emit(event.kind, task, cpu, (event.a, event.b));
        }
        self.work_events = events;
    }

    /// A warning that a kernel would log, or a hint that only a simulator can give.
    #[cold]
    pub(crate) fn note(&mut self, text: String) {
        const MOST: usize = 100;
        if self.notes.len() < MOST && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    // ---- Failures of the policy ----

    /// Ends the policy's time with the kernel's kind and message. The first exit wins.
    #[cold]
    pub(crate) fn eject(&mut self, kind: ExitKind, code: i64, message: impl Into<String>) {
        if self.exit.is_some() {
            return;
        }
        let mut message = message.into();
        let mut end = message.len().min(crate::flags::EXIT_MSG_LEN - 1);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        self.halted = true;
        self.exit = Some(Exit {
            kind,
            code,
            message,
            time: self.now,
            fault: None,
        });
    }

    /// A misuse of the kernel's interface.
    #[cold]
    pub(crate) fn error(&mut self, message: impl Into<String>) {
        // Before a policy is attached, `scx_error()` has none to end.
        if self.enabling {
            self.eject(ExitKind::Error, 0, message);
        }
    }

    /// `comm[pid]`, as the kernel's messages name a task.
    #[cold]
    pub(crate) fn name(&self, task: TaskId) -> String {
        let task = self.task(task);
        format!("{}[{}]", task.comm, task.pid)
    }

    // ---- Tasks and CPUs ----

    pub(crate) fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task.index()]
    }

    pub(crate) fn task_mut(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task.index()]
    }

    /// The class of what runs on `cpu`.
    pub(crate) fn class_on(&self, cpu: CpuId) -> Class {
        class_on(&self.cpus[cpu], |task| self.task(task).class)
    }

    /// The global queue that a task of `cpu` is put into, and that `cpu` takes tasks from.
    pub(crate) fn global_queue(&self, cpu: CpuId) -> DsqIndex {
        self.dsqs.global(self.idle.topology.node_of(cpu))
    }

    /// Whether `task` is what its CPU runs.
    pub(crate) fn is_running(&self, task: TaskId) -> bool {
        self.cpus[self.task(task).cpu].curr == Curr::Task(task)
    }

    /// The task that executes the code of this moment; `None`: the idle task or the stopper.
    pub(crate) fn current(&self) -> Option<TaskId> {
        self.cpus[self.exec].curr.task()
    }

    /// Whether `cpu` is a CPU of the machine. All of them are online.
    pub(crate) fn has_cpu(&self, cpu: i64) -> bool {
        (0..i64::from(self.spec.cpus)).contains(&cpu)
    }

    /// Moves a task that does not run to another CPU's run queue.
    #[inline(always)]
    pub(crate) fn set_task_cpu(&mut self, task: TaskId, cpu: CpuId) {
        if self.task(task).cpu != cpu {
            self.migrate(task, cpu);
        }
    }

    #[inline(never)]
    fn migrate(&mut self, task: TaskId, cpu: CpuId) {
        let from = std::mem::replace(&mut self.task_mut(task).cpu, cpu);
        self.mirror_cpu(task);
        self.emit(EventKind::Migrate, task, cpu, (u64::from(from.0), 0));
    }

    /// Jiffies since the run began.
    pub(crate) fn jiffies(&self) -> u64 {
        self.now.as_nanos() / self.watchdog.tick().get()
    }

    // ---- Time ----

    /// Makes `cpu` call the scheduler as soon as it can: at the end of what it executes now, or
    /// when the reschedule interrupt arrives.
    pub(crate) fn resched(&mut self, cpu: CpuId) {
        self.cpus[cpu].need_resched = true;
        self.poke(cpu);
    }

    /// Makes `cpu` look at what it has to do.
    #[inline]
    pub(crate) fn poke(&mut self, cpu: CpuId) {
        if cpu != self.exec && !self.cpus[cpu].resume_pending {
            self.cpus[cpu].resume_pending = true;
            let mut arrival = self.now;
            if let Some(costs) = &self.costs {
                let sender = self.cpus[self.exec].owed_ps;
                arrival = arrival + Nanos::new((sender + costs.ipi_flight) / 1_000);
                self.charge_interrupt(cpu, |costs| costs.ipi_handler);
            }
            let when = arrival.max(self.cpus[cpu].busy_until);
            self.queue.push(when, cpu, Pending::Resume);
        }
    }

    /// Charges the current task of `cpu` for the time since its last charge.
    ///
    /// Source: `update_curr_scx()`, kernel 6.18.
    #[inline]
    pub(crate) fn update_curr(&mut self, cpu: CpuId) {
        let Curr::Task(id) = self.cpus[cpu].curr else {
            return;
        };
        let clock = self.cpus[cpu].task_clock(self.now);
        if clock != self.task(id).exec_start {
            self.charge_task(id, clock);
        }
    }

    #[inline(never)]
    fn charge_task(&mut self, id: TaskId, clock: u64) {
        let task = self.task_mut(id);
        let delta = clock - task.exec_start;
        task.exec_start = clock;
        task.sum_exec += delta;
        if task.class == Class::Ext && task.slice != crate::flags::SLICE_INF {
            task.slice = task.slice.saturating_sub(delta);
            self.mirror_slice(id);
        } else if task.class == Class::Dl {
            self.charge_deadline(id, delta);
        }
        self.mirror_time(id);
    }

    /// Lets the current task of `cpu` execute from now on.
    #[inline(always)]
    pub(crate) fn start_executing(&mut self, cpu: CpuId) {
        debug_assert!(self.cpus[cpu].executing_since.is_none());
        let Curr::Task(id) = self.cpus[cpu].curr else {
            return;
        };
        let (now, left) = (self.now, self.task(id).work_left);
        let state = &mut self.cpus[cpu];
        state.executing_since = Some(now);
        state.work_generation += 1;
        let generation = state.work_generation;
        self.queue
            .push(now + left, cpu, Pending::WorkDone { generation });
    }

    /// Stops the clock of the current task's work, if it executes.
    #[inline]
    pub(crate) fn stop_executing(&mut self, cpu: CpuId) {
        let Some(since) = self.cpus[cpu].executing_since.take() else {
            return;
        };
        self.cpus[cpu].work_generation += 1;
        let Curr::Task(id) = self.cpus[cpu].curr else {
            return;
        };
        let done = self.now.since(since);
        let task = self.task_mut(id);
        assert!(done <= task.work_left, "more work done than there was");
        task.work_left -= done;
    }

    /// An interrupt takes `span` of time from `cpu`, from now on.
    #[cold]
    pub(crate) fn steal(&mut self, cpu: CpuId, span: Nanos) {
        if span.is_zero() {
            return;
        }
        self.stop_executing(cpu);
        let now = self.now;
        let state = &mut self.cpus[cpu];
        let begin = state.busy_until.max(now);
        state.busy_until = begin + span;
        state.stolen_ns += span.get();
        state.end_overhead(now);
        if state.mode != Mode::Overhead {
            state.enter(Mode::Stolen, now);
        }
        let until = state.busy_until;
        let curr = state.curr;
        if let Curr::Task(id) = curr {
            self.task_mut(id).enter(Phase::Stolen, now);
        }
        self.cpus[cpu].resume_pending = true;
        self.queue.push(until, cpu, Pending::Resume);
        self.emit(EventKind::Steal, curr.id(), cpu, (span.get(), 0));
    }

    /// Books the end of stolen time on `cpu`.
    pub(crate) fn end_steal(&mut self, cpu: CpuId) {
        let now = self.now;
        let state = &mut self.cpus[cpu];
        state.end_overhead(now);
        if state.mode != Mode::Stolen || now < state.busy_until {
            return;
        }
        match self.cpus[cpu].curr {
            Curr::Task(id) => {
                self.cpus[cpu].enter(Mode::Run, now);
                self.task_mut(id).enter(Phase::Run, now);
            }
            _ => self.cpus[cpu].enter(Mode::Idle, now),
        }
    }

    /// Books the time up to now everywhere; the run is over.
    pub(crate) fn close_books(&mut self) {
        let now = self.now;
        for cpu in (0..self.spec.cpus).map(CpuId) {
            self.stop_executing(cpu);
            self.cpus[cpu].end_overhead(now);
            let mode = self.cpus[cpu].mode;
            self.cpus[cpu].enter(mode, now);
        }
        for task in &mut self.tasks {
            task.enter(task.phase, now);
        }
    }

    /// Records the deadlines that were due and can no longer be met; the run is over.
    pub(crate) fn give_up_deadlines(&mut self) {
        for (task, deadline, count) in self.work.overdue(self.now) {
            let cpu = self.task(task).cpu;
            self.emit(EventKind::Skipped, task, cpu, (deadline.into(), count));
        }
    }

    /// Books a switch from `prev` to the current task of `cpu`, and tells it.
    #[inline(always)]
    pub(crate) fn switched(&mut self, cpu: CpuId, prev: Curr) {
        let now = self.now;
        let curr = self.cpus[cpu].curr;
        if prev.id() == curr.id() {
            // Between the idle task and the stopper, which events do not tell apart.
            return;
        }
        let state = match prev {
            Curr::Task(id) => match self.task(id).state {
                crate::task::RunState::Runnable => PrevState::Runnable,
                crate::task::RunState::Dead => PrevState::Dead,
                _ => PrevState::Sleeping,
            },
            _ => PrevState::Idle,
        };
        if let Curr::Task(id) = prev {
            let phase = match state {
                PrevState::Runnable => Phase::Wait,
                PrevState::Dead => Phase::Over,
                _ => Phase::Sleep,
            };
            self.task_mut(id).enter(phase, now);
        }
        if let Curr::Task(id) = curr {
            self.task_mut(id).enter(Phase::Run, now);
        }
        let mode = if curr.task().is_some() {
            Mode::Run
        } else {
            Mode::Idle
        };
        self.cpus[cpu].enter(mode, now);
        self.cpus[cpu].times.switches += 1;
        let mut overhead = Nanos::ZERO;
        if self.costs.is_some() {
            overhead = self.switch_overhead(cpu, prev);
            self.begin_overhead(cpu, overhead);
        }
        self.mirror_curr(cpu);
        if self.wants(EventKind::Switch) {
            let words = (u64::from(prev.id().0), overhead.get());
            self.emit_detailed(EventKind::Switch, curr.id(), cpu, state as u8, words);
        }
    }
}
