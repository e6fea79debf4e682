//! The simulated machine: its state, its clock, its books.
//!
//! The scheduler's rules live in the neighbouring modules, each of which adds methods to
//! [`Machine`]: [`crate::sched`] picks, [`crate::enqueue`] and [`crate::dispatch`] move tasks
//! between queues, [`crate::wake`] wakes, [`crate::change`] changes tasks, [`crate::life`] creates
//! and ends them, [`crate::attach`] attaches and ejects the policy, [`crate::drive`] runs
//! the event loop. A method that may call the policy takes the object machine as `vm`.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    CpuId, Event, EventKind, EventMask, MachineSpec, Nanos, PerCpu, PrevState, Rng, SimTime,
    TaskId, What,
};

use crate::attach::Scheduler;
use crate::cause::{Decisions, Told};
use crate::cgroup::Cgroups;
use crate::cids::Cids;
use crate::context::Contexts;
use crate::cpu::{Cpu, Curr, Kicks, Mode, Occupant, Todo, class_on};
use crate::deadline::Deadlines;
use crate::deed::Interventions;
use crate::deferred::Deferred;
use crate::dsq::{DsqIndex, Dsqs};
use crate::flags::UPTIME_NS;
use crate::idle::Idle;
use crate::idleness::Idleness;
use crate::interleave::state::Interleaving;
use crate::kernels::{KernelRules, rules_of};
use crate::lock::Locks;
use crate::log::Log;
use crate::mask::Masks;
use crate::mirror::{Mirror, stale};
use crate::moment::Moment;
use crate::ops::{Calls, Ops};
use crate::pending::Pending;
use crate::places::Places;
use crate::profile::Ledger;
use crate::program::HeldProgram;
use crate::queue::EventQueue;
use crate::schedulers::PerSched;
use crate::setup::{PlannedSub, SetupPlan};
use crate::speeds::Speeds;
use crate::subs::Subs;
use crate::task::{Class, Phase, RunState, Task};
use crate::timers::ArmedTimers;
use crate::turn::Turn;
use crate::watchdog::Watchdog;
use crate::work::{Action, Work, WorkError, WorkEvent};

/// The object machine, with this machine as its host.
pub(crate) type Vm = bpf::Instance<Machine>;

/// State of the simulated machine.
///
/// Subsystems are types with private fields; use their methods. Every other field names its
/// writers. Fields that every turn needs come first, where an instruction that reads them is
/// shorter.
#[repr(C)]
#[derive(Clone)]
pub struct Machine {
    /// Run queues and what CPUs do. Every rule writes those of the CPU that it is about.
    pub(crate) cpus: PerCpu<Cpu>,
    /// Tasks, by number, dead ones included. Every rule writes those that it is about; [`life`]
    /// alone adds some.
    ///
    /// [`life`]: crate::life
    pub(crate) tasks: Vec<Task>,
    /// The time. [`Machine::run`] alone writes it; it never goes back.
    pub(crate) now: SimTime,
    /// The time as programs see it; see [`crate::clock`].
    pub(crate) clock_ns: u64,
    /// Who waits for whose lock; see [`crate::lock`].
    pub(crate) locks: Locks,
    /// What the code that executes now is in the middle of.
    pub(crate) turn: Turn,
    /// Inserts that are put off; see [`crate::deferred`].
    pub(crate) deferred: Deferred,
    /// Tasks in a section that forbids migration, to which they are not bound yet; see
    /// [`crate::section`].
    pub(crate) unbound: Vec<TaskId>,
    /// Some insert was to run at once or come back: most policies never ask for that.
    pub(crate) has_immed: bool,
    /// A scheduler has been attached below the root; see [`crate::sub`].
    pub(crate) has_subs: bool,
    /// Of tasks that came back: their run time and sleeps at the first time, and how often since.
    pub(crate) reenqueues: BTreeMap<TaskId, ((u64, u64), u32)>,
    wants: EventMask,
    halted: bool,
    /// Ticks need not go through the queue where nothing else happens; see [`crate::tick`]. Written
    /// when a run begins, by [`crate::drive`] alone.
    pub(crate) ticks_pass: bool,
    /// How fast CPUs work, if they differ; see [`crate::speed`].
    pub(crate) speeds: Option<Box<Speeds>>,
    /// Where programs are attached; see [`crate::places`].
    pub(crate) hooked: Places,
    /// What is known of callbacks made; see [`crate::ops`].
    pub(crate) calls: Calls,
    out: Vec<Event>,
    /// What was done without time passing; see [`crate::moment`].
    pub(crate) moment: Moment,
    /// What is to come. Everybody adds to it; [`crate::drive`] alone takes out.
    pub(crate) queue: EventQueue,
    /// Dispatch queues; see [`crate::dsq`].
    pub(crate) dsqs: Dsqs,
    /// CPUs that idled while tasks waited; see [`crate::idleness`].
    pub(crate) idleness: Idleness,
    /// Who waits; see [`crate::watchdog`].
    pub(crate) watchdog: Watchdog,
    /// What the machine was asked to be. Nobody writes it.
    pub(crate) spec: MachineSpec,
    /// What its kernel does that others do not. Nobody writes it.
    pub(crate) rules: KernelRules,
    /// How often the policy asked for less than full speed; see [`crate::speed`].
    pub(crate) targets_set: u64,
    /// What actions cost, and what was charged; see [`crate::profile`].
    pub(crate) ledger: Ledger,
    /// Affinities, interned; see [`crate::mask`].
    pub(crate) masks: Masks,
    /// Built-in idle tracking, and which CPUs belong together; see [`crate::idle`].
    pub(crate) idle: Idle,
    /// Kicks that wait on each CPU; see [`crate::kick`].
    pub(crate) kicks: PerCpu<Kicks>,
    /// The schedulers that are loaded.
    pub(crate) scheds: PerSched<Scheduler>,
    /// How many of them are not asked. Written by [`crate::attach`].
    pub(crate) bypassing: u8,
    /// Those below the root; see [`crate::sub`].
    pub(crate) subs: Subs,
    /// Schedulers that come below the root, in the order in which they were asked for.
    pub(crate) planned: Vec<PlannedSub>,
    /// Topological numbers of CPUs; see [`crate::cid_form`].
    pub(crate) cids: Cids,
    /// BPF timers that are armed; see [`crate::timers`].
    pub(crate) timers: ArmedTimers,
    /// What policies see of the kernel's objects; see [`crate::mirror`].
    pub(crate) mirror: Mirror,
    /// What tasks do. [`crate::drive`] and [`crate::life`] tell it what happens to them.
    pub(crate) work: Work,
    /// What tasks were asked to do. Nobody writes it.
    pub(crate) workload: Arc<workload::Workload>,
    work_events: Vec<WorkEvent>,
    work_error: Option<WorkError>,
    /// What the policy's loader does; see [`crate::setup`].
    pub(crate) setup: SetupPlan,
    /// The scheduler's own program, if there is one; see [`crate::program`].
    pub(crate) program: HeldProgram,
    /// See [`crate::cgroup`].
    pub(crate) cgroups: Cgroups,
    /// Tasks of the deadline class; see [`crate::deadline`].
    pub(crate) deadlines: Deadlines,
    /// Draws for programs and for what the kernel leaves to chance.
    pub(crate) rng: Rng,
    next_pid: u32,
    /// Notes, and what programs print; see [`crate::log`].
    pub(crate) log: Log,
    /// What those who listen know of places and queues; see [`crate::decision`].
    pub(crate) told: Told,
    /// What a trial does; see [`crate::intervention`].
    pub(crate) interventions: Option<Box<Interventions>>,
    /// Who comes in between whom; see [`crate::interleave`].
    pub(crate) interleaving: Option<Box<Interleaving>>,
}

/// What a [`Machine`] is made from.
pub(crate) struct Parts {
    pub spec: MachineSpec,
    pub workload: Arc<workload::Workload>,
    pub seed: u64,
    pub tie_seed: Option<u64>,
    pub ops: Ops,
    pub setup: SetupPlan,
    pub mirror: Mirror,
    pub work: Work,
    pub wants: EventMask,
    pub tally: bool,
}

/// Whether somebody wants to hear of callbacks, or of what they decide.
fn notes_calls(wants: EventMask) -> bool {
    wants.has(EventKind::Callback) || wants.has(EventKind::Insert)
}

/// What only machines have whose CPUs differ, or come in between each other's callbacks.
fn extras(
    spec: &MachineSpec,
    idle: &Idle,
    workload: &workload::Workload,
) -> (Option<Box<Speeds>>, Option<Box<Interleaving>>) {
    let hardware = spec.hardware.as_deref();
    let speeds = hardware.map(|it| Box::new(Speeds::new(it, idle.topology(), workload)));
    let interleave = spec.interleave.as_ref();
    let interleaving = interleave.map(|it| Box::new(Interleaving::new(it, spec.cpus)));
    (speeds, interleaving)
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
            setup,
            mirror,
            work,
            wants,
            tally,
        } = parts;
        let (cpus, costs) = (spec.cpus, spec.profile.costs());
        let idle = Idle::new(&spec, &ops);
        let (speeds, interleaving) = extras(&spec, &idle, &workload);
        let decisions = Decisions::new(wants);
        let are_noted = notes_calls(wants) || costs.is_some() && decisions.listens || tally;
        Self {
            locks: Locks::new(costs, cpus, interleaving.is_some()),
            ledger: Ledger::new(costs.copied()),
            calls: Calls::new(tally),
            now: SimTime::ZERO,
            clock_ns: UPTIME_NS,
            turn: Turn::new(Contexts::new(are_noted, costs.is_some()), decisions),
            deferred: Deferred::new(cpus),
            unbound: Vec::new(),
            has_immed: false,
            has_subs: false,
            reenqueues: BTreeMap::new(),
            cpus: PerCpu::new(cpus, |_| Cpu::new()),
            kicks: PerCpu::new(cpus, |_| Kicks::new(cpus)),
            tasks: Vec::new(),
            masks: Masks::new(cpus),
            dsqs: Dsqs::new(cpus, idle.topology().nodes()),
            idle,
            watchdog: Watchdog::new(spec.tick(), spec.hz, spec.no_watchdog),
            queue: EventQueue::new(tie_seed),
            scheds: PerSched::new(Scheduler::new(ops)),
            bypassing: 0,
            subs: Subs::default(),
            planned: Vec::new(),
            cids: Cids::default(),
            timers: ArmedTimers::default(),
            mirror,
            work,
            cgroups: Cgroups::new(&workload.cgroups),
            workload,
            work_events: Vec::new(),
            work_error: None,
            setup,
            program: HeldProgram::default(),
            deadlines: Deadlines::default(),
            // Streams below this one belong to the workload.
            rng: Rng::new(seed, u64::MAX),
            next_pid: 100,
            log: Log::default(),
            told: Told::default(),
            interventions: None,
            interleaving,
            moment: Moment::default(),
            idleness: Idleness::new(),
            halted: false,
            ticks_pass: false,
            speeds,
            targets_set: 0,
            hooked: Places::default(),
            wants,
            out: Vec::new(),
            rules: *rules_of(spec.kernel),
            spec,
        }
    }

    // ---- The end ----

    /// Whether nothing more happens: the workload has come to its end or cannot go on, or the
    /// policy was ejected.
    #[inline]
    pub(crate) const fn is_halted(&self) -> bool {
        self.halted
    }

    /// The run is over, if `over`.
    #[inline]
    pub(crate) const fn halt_if(&mut self, over: bool) {
        self.halted |= over;
    }

    /// Says whether the run is over.
    pub(crate) const fn set_halted(&mut self, halted: bool) {
        self.halted = halted;
    }

    /// The workload cannot go on.
    #[cold]
    pub(crate) fn give_up(&mut self, error: WorkError) {
        self.work_error = Some(error);
        self.halted = true;
    }

    /// Something is wrong with the workload, which goes on to the end of this moment.
    #[cold]
    pub(crate) fn object(&mut self, error: WorkError) {
        self.work_error.get_or_insert(error);
    }

    /// What was wrong with the workload.
    pub(crate) fn take_work_error(&mut self) -> Option<WorkError> {
        self.work_error.take()
    }

    /// A number for a new task.
    pub(crate) fn new_pid(&mut self) -> u32 {
        self.next_pid += 1;
        self.next_pid - 1
    }

    // ---- Events ----

    /// Whether a sink wants `kind`; nothing is built for one that nobody wants.
    pub(crate) fn wants(&self, kind: EventKind) -> bool {
        self.wants.has(kind)
    }

    /// Whether all kinds of `asked` are recorded.
    pub(crate) fn wants_all(&self, asked: EventMask) -> bool {
        self.wants.union(asked) == self.wants
    }

    /// Records an event of this moment.
    #[inline(always)]
    pub(crate) fn emit(&mut self, task: TaskId, cpu: CpuId, what: What) {
        if self.wants.has(what.kind()) {
            self.emit_wanted(task, cpu, what);
        }
    }

    /// Records an event. The caller has asked [`Machine::wants`]. Where `what` is written down, its
    /// kind is known when this is compiled, so that packing it takes no branch.
    #[inline(always)]
    pub(crate) fn emit_wanted(&mut self, task: TaskId, cpu: CpuId, what: What) {
        self.out.push(Event::new(self.now, cpu, task, what));
    }

    /// Whether so many events have been recorded since they were handed over.
    #[inline]
    pub(crate) const fn has_recorded(&self, events: usize) -> bool {
        self.out.len() >= events
    }

    /// The events recorded since the last call.
    pub(crate) fn recorded(&mut self) -> &mut Vec<Event> {
        &mut self.out
    }

    /// The next action of `task`, which runs on `cpu`; what the workload wants recorded about it is
    /// recorded.
    #[inline]
    pub(crate) fn step_work(&mut self, task: TaskId, cpu: CpuId) -> Result<Action, WorkError> {
        let action = self.work.step(task, self.now, &mut self.work_events);
        if !self.work_events.is_empty() {
            self.record_work_events(task, cpu);
        }
        action
    }

    #[inline(never)]
    fn record_work_events(&mut self, task: TaskId, cpu: CpuId) {
        let mut events = std::mem::take(&mut self.work_events);
        for event in events.drain(..) {
            let what = What::of_workload(event.kind, event.a as u32, event.b);
            self.emit(task, cpu, what.expect("a kind that workloads record"));
        }
        self.work_events = events;
    }

    /// `comm[pid]`, as the kernel's messages name a task.
    #[cold]
    pub(crate) fn name(&self, task: TaskId) -> String {
        let task = self.task(task);
        format!("{}[{}]", task.seldom.comm, task.pid)
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
        self.dsqs.global(self.idle.topology().node_of(cpu))
    }

    /// The global queue of the scheduler of `task`, where it is.
    pub(crate) fn own_global_queue(&self, task: TaskId) -> DsqIndex {
        let cpu = self.task(task).cpu;
        if self.has_subs && !self.bypasses(task) {
            return self.global_queue_of(self.owner(task), cpu);
        }
        self.global_queue(cpu)
    }

    /// Whether `task` is what its CPU runs.
    pub(crate) fn is_running(&self, task: TaskId) -> bool {
        self.cpus[self.task(task).cpu].occupant == task.into()
    }

    /// The task that executes the code of this moment; `None`: the idle task or the stopper.
    pub(crate) fn current(&self) -> Option<TaskId> {
        let state = &self.cpus[self.turn.exec];
        state.leaves.unwrap_or(state.occupant).task()
    }

    /// What programs find in `rq->curr` of `cpu`. While a task takes the CPU, in `ops.running()`
    /// and `ops.update_idle()`, it is still what had the CPU before.
    ///
    /// Source: `__schedule()`, kernel 6.18: `pick_next_task()` calls them, `rq->curr` is set after
    /// it, and `current` changes in `context_switch()`.
    pub(crate) fn rq_curr(&self, cpu: CpuId) -> Curr {
        let state = &self.cpus[cpu];
        state.leaves.unwrap_or(state.occupant).curr()
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

    /// As [`Machine::set_task_cpu`], of a task that is on another run queue.
    #[inline(never)]
    pub(crate) fn migrate(&mut self, task: TaskId, cpu: CpuId) {
        let from = std::mem::replace(&mut self.task_mut(task).cpu, cpu);
        self.mirror_cpu(task);
        self.emit(task, cpu, What::Migrate { from });
    }

    // ---- Time ----

    /// Makes `cpu` call the scheduler as soon as it can: at the end of what it executes now, or
    /// when the reschedule interrupt arrives.
    pub(crate) fn resched(&mut self, cpu: CpuId) {
        self.cpus[cpu].todo.add(Todo::RESCHED);
        self.poke(cpu);
    }

    /// Makes `cpu` look at what it has to do.
    #[inline(always)]
    pub(crate) fn poke(&mut self, cpu: CpuId) {
        if cpu != self.turn.exec {
            self.poke_other(cpu);
        }
    }

    #[inline(never)]
    fn poke_other(&mut self, cpu: CpuId) {
        if !self.cpus[cpu].resume_pending {
            self.cpus[cpu].resume_pending = true;
            let mut arrival = self.now;
            if let Some(costs) = self.ledger.costs() {
                let sender = self.cpus[self.turn.exec].owed_ps();
                let flight = costs.ipi_flight;
                let sent = self.lasting(self.turn.exec, Nanos::new(sender));
                arrival = arrival + Nanos::new((sent.get() + flight) / 1_000);
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
        let state = &self.cpus[cpu];
        let Some(id) = state.occupant.task() else {
            return;
        };
        let clock = state.task_clock(self.now);
        if clock != self.task(id).exec_start {
            self.charge_task(id, clock);
        }
    }

    /// As [`Machine::update_curr`], with its mirror: a callback is about to be called that looks.
    #[inline(always)]
    pub(crate) fn update_curr_now(&mut self, vm: &mut Vm, cpu: CpuId) {
        let state = &self.cpus[cpu];
        let Some(id) = state.occupant.task() else {
            return;
        };
        let clock = state.task_clock(self.now);
        if self.task(id).class != Class::Ext {
            return self.update_curr(cpu);
        }
        self.charge_now(vm, id, clock);
    }

    /// Charges a task of the policy's for the time until `clock`, and its mirror.
    #[inline(always)]
    pub(crate) fn charge_now(&mut self, vm: &mut Vm, id: TaskId, clock: u64) {
        let task = &mut self.tasks[id.index()];
        if clock != task.exec_start {
            task.charge(clock);
            self.mirror.write_charge(vm.memory(), task);
        }
    }

    #[inline(never)]
    fn charge_task(&mut self, id: TaskId, clock: u64) {
        let task = self.task_mut(id);
        let delta = task.charge(clock);
        if task.class == Class::Dl {
            let cpu = task.cpu;
            self.charge_deadline(id, self.scaled_by_speed(cpu, delta));
        }
        self.touch(id, stale::SLICE | stale::TIME);
    }

    /// Lets the current task of `cpu`, whose work takes so long, execute from now on.
    #[inline(always)]
    pub(crate) fn start_executing(&mut self, cpu: CpuId, left: Nanos) {
        if self.speeds.is_some() {
            return self.start_at_rate(cpu);
        }
        let state = &mut self.cpus[cpu];
        debug_assert!(state.executing_since.is_none() && state.occupant.task().is_some());
        state.executing_since = Some(self.now);
        let end = self.now + left;
        // A timer that comes before is moved when it comes: whatever interrupts a task many times
        // would else leave a stale one in the queue each time.
        if end < state.work_timer || left.is_zero() {
            state.work_timer = end;
            self.queue.push(end, cpu, Pending::WorkDone);
        }
    }

    /// As [`Machine::start_executing`], where the length of work depends on the CPU's speed.
    #[cold]
    fn start_at_rate(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu];
        state.executing_since = Some(self.now);
        let Some(id) = state.occupant.task() else {
            return;
        };
        let left = self.begin_at_rate(cpu, id);
        let end = self.now + left;
        if end < self.cpus[cpu].work_timer || left.is_zero() {
            self.arm_work_timer(cpu, end);
        }
    }

    fn arm_work_timer(&mut self, cpu: CpuId, end: SimTime) {
        self.cpus[cpu].work_timer = end;
        self.queue.push(end, cpu, Pending::WorkDone);
    }

    /// The work timer of `cpu` has come. Whether the current task's work is done, whose clock stops
    /// then; if it takes longer than it did when the timer was armed, the timer comes again.
    #[inline(always)]
    pub(crate) fn ends_work(&mut self, cpu: CpuId) -> bool {
        let state = &mut self.cpus[cpu];
        if state.work_timer != self.now {
            return false;
        }
        state.work_timer = Cpu::NO_TIMER;
        let (Some(since), Some(id)) = (state.executing_since, state.occupant.task()) else {
            return false;
        };
        if self.speeds.is_some() {
            return self.ends_at_rate(cpu, id, since);
        }
        let task = &mut self.tasks[id.index()];
        let end = since + task.work_left;
        if end == self.now {
            (state.executing_since, task.work_left) = (None, Nanos::ZERO);
            return true;
        }
        self.arm_work_timer(cpu, end);
        false
    }

    /// As [`Machine::ends_work`], of `id`, which has executed `since` then.
    #[cold]
    fn ends_at_rate(&mut self, cpu: CpuId, id: TaskId, since: SimTime) -> bool {
        let end = since + self.left_at_rate(cpu, id);
        let ends = end == self.now;
        if ends {
            self.stop_executing(cpu);
        } else {
            self.arm_work_timer(cpu, end);
        }
        ends
    }

    /// Stops the clock of the current task's work, if it executes.
    pub(crate) fn stop_executing(&mut self, cpu: CpuId) {
        self.stop_executing_here(cpu);
    }

    /// As [`Machine::stop_executing`], built in where many events pass.
    #[inline(always)]
    pub(crate) fn stop_executing_here(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu];
        let Some(since) = state.executing_since else {
            return;
        };
        state.executing_since = None;
        let Some(id) = state.occupant.task() else {
            return;
        };
        if self.speeds.is_some() {
            return self.book_work(cpu, id, since);
        }
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
        let span = self.lasting(cpu, span);
        let now = self.now;
        let state = &mut self.cpus[cpu];
        let begin = state.busy_until.max(now);
        state.be_busy(begin + span, span);
        state.end_overhead(now);
        if state.mode != Mode::Overhead {
            state.enter(Mode::Stolen, now);
        }
        let until = state.busy_until;
        let curr = state.curr();
        if let Curr::Task(id) = curr {
            self.task_mut(id).enter(Phase::Stolen, now);
        }
        self.cpus[cpu].resume_pending = true;
        self.queue.push(until, cpu, Pending::Resume);
        self.emit(curr.id(), cpu, What::Steal { span });
    }

    /// Books the end of stolen time on `cpu`, which is busy, if it has come.
    #[cold]
    pub(crate) fn end_interrupt(&mut self, cpu: CpuId) {
        let now = self.now;
        let state = &mut self.cpus[cpu];
        state.end_overhead(now);
        if now < state.busy_until {
            return;
        }
        state.todo.strike(Todo::BUSY);
        debug_assert_eq!(state.mode, Mode::Stolen, "busy with nothing");
        match self.cpus[cpu].curr() {
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
            let skipped = What::Skipped {
                deadline,
                periods: count,
            };
            self.emit(task, cpu, skipped);
        }
    }

    /// Books a switch from `prev` to `curr`, which has `cpu` now, and tells it.
    #[inline(always)]
    pub(crate) fn switched(&mut self, cpu: CpuId, prev: Occupant, curr: Occupant) {
        let now = self.now;
        let cpu_state = &mut self.cpus[cpu];
        (cpu_state.executes, cpu_state.leaves) = (curr.id(), None);
        if prev.id() == curr.id() {
            // Between the idle task and the stopper, which events do not tell apart.
            return self.mirror_curr(cpu);
        }
        let mut state = PrevState::Idle;
        if let Some(id) = prev.task() {
            let task = &mut self.tasks[id.index()];
            let phase;
            (state, phase) = match task.state {
                RunState::Runnable => (PrevState::Runnable, Phase::Wait),
                RunState::Dead => (PrevState::Dead, Phase::Over),
                _ => (PrevState::Sleeping, Phase::Sleep),
            };
            task.enter(phase, now);
        }
        let mut mode = Mode::Idle;
        if let Some(id) = curr.task() {
            self.tasks[id.index()].enter(Phase::Run, now);
            mode = Mode::Run;
            cpu_state.counts.picks += 1;
        }
        cpu_state.enter(mode, now);
        cpu_state.times.switches += 1;
        self.mirror_curr(cpu);
        let mut overhead = Nanos::ZERO;
        if self.ledger.costs().is_some() {
            overhead = self.switch_overhead(cpu, prev.curr());
            overhead = self.lasting(cpu, overhead);
            self.begin_overhead(cpu, overhead);
        }
        if self.wants(EventKind::Switch) {
            let switch = What::Switch {
                prev: prev.id(),
                state,
                overhead,
            };
            self.emit_wanted(curr.id(), cpu, switch);
        }
    }
}
