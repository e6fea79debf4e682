//! What tasks do: executes a [`Workload`] without knowing anything of scheduling.
//!
//! Start at [`Work::step`]. The machine says which task runs and what time it is; this module says
//! what that task does next. docs/workload.md has the meaning of every operation.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use model::{Blocked, CpuId, Nanos, Rng, SimTime, TaskId};
use workload::{
    Begin, Code, Command, CpuSet, Effect, Expr, FORK_GAP, IndexedResource, Instr, Operation,
    ResourceInstance, Source, Stepper, TASKS_MAX, TaskFault, TaskKind, Workload, latest, receivers,
};

mod action;
mod channel;
mod disk;
mod error;
mod execute;
mod growing;
mod listen;
mod pages;
mod quick;
mod requests;
mod storage;
mod sync;
mod task;
#[cfg(test)]
mod tests;

pub use action::{Action, Birth, InterruptWork, WorkEvent};
pub use error::WorkError;

use channel::Queue;
use listen::Listening;
pub(crate) use quick::QuickStep;
use requests::Arrivals;
use storage::Storage;
use sync::{Gate, Locks, Tokens};
use task::{Task, Waits};

/// Most tasks that a run creates, those that have exited included: each keeps about a kilobyte.
const BORN_MAX: usize = 1_000_000;

/// A workload in execution.
#[derive(Clone)]
pub struct Work {
    workload: Arc<Workload>,
    cpus: u16,
    seed: u64,
    /// One for each group.
    codes: Vec<Code>,
    channels: Vec<Vec<Queue>>,
    locks: Vec<Locks>,
    barriers: Vec<Vec<Gate>>,
    semaphores: Vec<Vec<Tokens>>,
    /// Who waits at each condition variable, in the order of coming.
    conditions: Vec<Vec<VecDeque<TaskId>>>,
    listeners: Vec<Vec<Listening>>,
    arrivals: Vec<Arrivals>,
    storage: Storage,
    /// When spans with a key began, by span and key.
    spans: BTreeMap<(u32, i64), SimTime>,
    /// Whether something other than an exit has ended the workload.
    is_stopped: bool,
    sources: Vec<Source>,
    /// By [`TaskId`].
    tasks: Vec<Task>,
    groups: Vec<Members>,
    /// Tasks that have been born and have not exited, and whose end the workload waits for.
    alive: u32,
    /// Most tasks that may be born.
    born_max: usize,
    /// The group of the scheduler's own program, if it runs on this machine.
    program: Option<u32>,
}

/// Who belongs to a group.
#[derive(Clone, Debug, Default)]
struct Members {
    /// By index; `None` while a birth is under way, and for ever if it failed.
    tasks: Vec<Option<TaskId>>,
    born: u32,
    alive: u32,
}

impl Work {
    /// A workload at its beginning, on a machine of `cpus` CPUs.
    ///
    /// # Errors
    /// If an affinity or an interrupt names no CPU of the machine, or there are too many tasks.
    pub fn new(workload: Arc<Workload>, cpus: u16, seed: u64) -> Result<Self, WorkError> {
        let codes: Vec<Code> = workload
            .groups
            .iter()
            .map(|group| Code::new(&group.body, group.variables))
            .collect();
        let per_instance = |count: u32| 0..count;
        let mut work = Self {
            channels: (workload.channels.iter())
                .map(|channel| {
                    per_instance(channel.count)
                        .map(|_| Queue::new(channel))
                        .collect()
                })
                .collect(),
            locks: workload.locks.iter().map(Locks::new).collect(),
            semaphores: (workload.semaphores.iter())
                .map(|declared| {
                    per_instance(declared.count)
                        .map(|_| Tokens::new(declared.value))
                        .collect()
                })
                .collect(),
            conditions: (workload.conditions.iter())
                .map(|declared| vec![VecDeque::new(); declared.count as usize])
                .collect(),
            listeners: (workload.listeners.iter())
                .map(|declared| {
                    per_instance(declared.count)
                        .map(|_| Listening::new(declared))
                        .collect()
                })
                .collect(),
            arrivals: (workload.requests.iter().zip(0..))
                .map(|(declared, number)| Arrivals::new(declared, seed, number))
                .collect(),
            storage: Storage::new(&workload, seed),
            spans: BTreeMap::new(),
            is_stopped: false,
            barriers: (workload.barriers.iter())
                .map(|gate| {
                    per_instance(gate.count)
                        .map(|_| Gate::new(gate.parties))
                        .collect()
                })
                .collect(),
            sources: (workload.interrupts.iter().zip(0..))
                .map(|(declared, number)| Source::new(declared, Rng::of_interrupt(seed, number)))
                .collect(),
            groups: (workload.groups.iter())
                .map(|group| Members {
                    tasks: vec![None; group.count as usize],
                    born: 0,
                    alive: 0,
                })
                .collect(),
            codes,
            workload,
            cpus,
            seed,
            tasks: Vec::new(),
            alive: 0,
            born_max: BORN_MAX,
            program: None,
        };
        work.check()?;
        work.follow_channels();
        Ok(work)
    }

    /// What only the machine's size decides.
    fn check(&self) -> Result<(), WorkError> {
        let no_cpu = |what: &str, line: u32, cpus: String| {
            let place = format!("{}:{line}: {what}", self.workload.file);
            Err(WorkError::NoCpu {
                place,
                cpus,
                last: self.cpus.saturating_sub(1),
            })
        };
        for (group, code) in self.workload.groups.iter().zip(self.codes.iter()) {
            let first = code.lines.first().copied().unwrap_or(0);
            let gone = group.cpus.as_ref();
            let gone = gone.filter(|set| set.within(self.cpus).is_empty());
            if let Some(cpus) = gone.filter(|_| !group.free_elsewhere) {
                return no_cpu(&group.name, first, cpus.to_string());
            }
            for (instr, line) in code.instrs.iter().zip(&code.lines) {
                match instr {
                    Instr::Do(Operation::SetAffinity {
                        cpus: Some(cpus), ..
                    }) if cpus.within(self.cpus).is_empty() => {
                        return no_cpu(&group.name, *line, cpus.to_string());
                    }
                    _ => {}
                }
            }
        }
        let requests = self.workload.requests.iter().map(|requests| &requests.irq);
        for source in self.workload.interrupts.iter().chain(requests) {
            if source.cpu.0 >= self.cpus {
                return no_cpu(&source.name, source.line, format!("{{{}}}", source.cpu));
            }
        }
        let mut disks = self.workload.disks.iter();
        if let Some(disk) = disks.find(|disk| disk.cpu.0 >= self.cpus) {
            return no_cpu(&disk.name, disk.line, format!("{{{}}}", disk.cpu));
        }
        for hotplug in &self.workload.hotplugs {
            if hotplug.cpu.0 >= self.cpus {
                return no_cpu(&hotplug.name, hotplug.line, format!("{{{}}}", hotplug.cpu));
            }
        }
        let tasks: u64 = self
            .workload
            .groups
            .iter()
            .map(|group| u64::from(group.count))
            .sum();
        if tasks > u64::from(TASKS_MAX) {
            let place = self.workload.file.clone();
            return Err(WorkError::TooManyTasks {
                place,
                limit: TASKS_MAX,
            });
        }
        Ok(())
    }

    /// The tasks that exist from the start, in the order of the file.
    #[must_use]
    pub fn initial(&self) -> Vec<Birth> {
        let mut births = Vec::new();
        for (group, declared) in (0..).zip(&self.workload.groups) {
            for index in 0..declared.count {
                let start = match self.gate_of(group) {
                    Some(_) => SimTime::from_nanos(FORK_GAP.get() * births.len() as u64),
                    None => SimTime::ZERO + self.workload.start(self.seed, group, index),
                };
                births.push(self.birth(group, index, start));
            }
        }
        births
    }

    /// Where a task of `group` that exists from the start waits for the run to begin.
    fn gate_of(&self, group: u32) -> Option<Begin> {
        let waits = !self.workload.groups[group as usize].background;
        self.workload.begin.filter(|_| waits)
    }

    fn birth(&self, group: u32, index: u32, start: SimTime) -> Birth {
        let declared = &self.workload.groups[group as usize];
        Birth {
            group,
            index,
            nice: declared.nice,
            policy: declared.policy,
            cgroup: declared.cgroup,
            cpus: if declared.one_each_cpu {
                u16::try_from(index)
                    .ok()
                    .map(|cpu| CpuSet::single(CpuId(cpu)))
            } else {
                (declared.cpus.as_ref().map(|cpus| cpus.within(self.cpus)))
                    .filter(|cpus| !(declared.free_elsewhere && cpus.is_empty()))
            },
            start,
            process: declared.kind != TaskKind::Thread,
            kernel: declared.kind == TaskKind::Kernel,
            migration_disabled: declared.migration_disabled,
        }
    }

    /// Binds `task` to `birth`. Task ids are consecutive from zero.
    ///
    /// # Panics
    /// If `task` is not the next id.
    pub fn born(&mut self, task: TaskId, birth: &Birth, parent: Option<TaskId>) {
        assert_eq!(task.index(), self.tasks.len(), "task ids are consecutive");
        let code = &self.codes[birth.group as usize];
        let mut state = Task::new(Stepper::new(code, self.seed, birth.group, birth.index));
        state.parent = parent;
        state.is_process = birth.process;
        if let (Some(begin), None) = (self.gate_of(birth.group), parent) {
            let allowed = CpuSet::allowed(birth.cpus.as_ref(), self.cpus);
            let place = (self.workload).waits_on(birth.group, birth.index, self.cpus);
            let sets = place.map(|cpu| [CpuSet::single(cpu), allowed]);
            let moves = sets.into_iter().flatten();
            let moves = moves.map(|cpus| Action::SetAffinity { task, cpus });
            state.pending.extend(moves);
            state.again = Some(Command::Barrier(ResourceInstance {
                of: begin.gate,
                index: 0,
            }));
            state.tries_again = true;
        }
        // A chain of forks that takes no time comes to an end.
        if let Some(parent) = parent.map(|parent| &self.tasks[parent.index()]) {
            (state.steps, state.steps_since) = (parent.steps, parent.steps_since);
        }
        self.tasks.push(state);
        let members = &mut self.groups[birth.group as usize];
        members.tasks[birth.index as usize] = Some(task);
        members.born += 1;
        members.alive += 1;
        self.alive += u32::from(!self.workload.groups[birth.group as usize].background);
    }

    /// Takes back the task that was born last and has done nothing.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn remove_newest(&mut self) {
        let state = self.tasks.pop().expect("a task was born");
        let (group, index) = (state.stepper.group(), state.stepper.index());
        let members = &mut self.groups[group as usize];
        members.tasks[index as usize] = None;
        members.born -= 1;
        members.alive -= 1;
        self.alive -= u32::from(!self.workload.groups[group as usize].background);
    }

    /// The fork of `task` was refused, and others may have been born since.
    pub(crate) fn refused(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        state.has_exited = true;
        state.shrink();
        let group = state.stepper.group();
        self.groups[group as usize].alive -= 1;
        self.alive -= u32::from(!self.workload.groups[group as usize].background);
    }

    /// `task` makes these changes before its first operation.
    pub fn change_first(&mut self, task: TaskId, changes: impl Iterator<Item = Action>) {
        self.tasks[task.index()].pending.extend(changes);
    }

    /// The tasks of `group` are threads of the scheduler's own program: the machine says what they
    /// do.
    pub fn set_program(&mut self, group: u32) {
        self.program = Some(group);
    }

    /// One more thread of the scheduler's own program; it shares the address space of its parent.
    /// `None` if there is no such program, or too many tasks.
    pub fn program_thread(&mut self, now: SimTime) -> Option<Birth> {
        let group = self.program.filter(|_| self.tasks.len() < self.born_max)?;
        let members = &mut self.groups[group as usize].tasks;
        let index = u32::try_from(members.len()).ok()?;
        members.push(None);
        let birth = self.birth(group, index, now);
        Some(Birth {
            process: false,
            ..birth
        })
    }

    /// A thread of the scheduler's own program exits.
    pub fn leave(&mut self, task: TaskId) {
        self.tasks[task.index()].has_exited = true;
    }

    /// Tells `parent` how its fork ended: with a child that was [`born`](Self::born), or without.
    /// A parent goes on in either case; it never waits for a child that was not born.
    pub fn forked(&mut self, parent: TaskId, child: Option<TaskId>) {
        if child.is_some() {
            self.tasks[parent.index()].children += 1;
        }
    }

    /// The next action of `task`, which is on a CPU and has done all it was asked for. Events to
    /// record are appended to `out`.
    ///
    /// # Errors
    /// If the workload's own rules are broken; the message says where.
    pub fn step(
        &mut self,
        task: TaskId,
        now: SimTime,
        out: &mut Vec<WorkEvent>,
    ) -> Result<Action, WorkError> {
        execute::step(self, task, now, out)
    }

    /// Asks the processor for what the next step of a task needs.
    #[inline]
    pub(crate) fn prefetch(&self, task: TaskId) {
        if let Some(state) = self.tasks.get(task.index()) {
            allocator::prefetch(state);
        }
    }

    /// Every interrupt source's first arrival: index of the source, CPU, time. Asked for once.
    pub fn interrupts(&mut self) -> Vec<(usize, CpuId, SimTime)> {
        let declared = self.workload.interrupts.iter();
        let sources = self.sources.iter_mut().zip(declared).enumerate();
        let mut first: Vec<_> = sources
            .map(|(index, (source, declared))| (index, declared.cpu, source.first(declared)))
            .collect();
        for arrival in 0..self.arrivals.len() {
            let source = self.arrival_source(arrival);
            let requests = self.first_requests(arrival);
            first.extend(requests.into_iter().map(|(cpu, time)| (source, cpu, time)));
        }
        first
    }

    /// The number of the interrupt source that brings the requests of one declaration.
    fn arrival_source(&self, arrival: usize) -> usize {
        self.sources.len() + arrival
    }

    /// An interrupt of `source` arrives.
    ///
    /// # Errors
    /// If its effect names an instance that does not exist.
    pub fn interrupt(&mut self, source: usize, now: SimTime) -> Result<InterruptWork, WorkError> {
        let mut interrupt = match source.checked_sub(self.sources.len()) {
            None => self.irq(source, now)?,
            Some(arrival) if arrival < self.arrivals.len() => self.request(arrival, now),
            Some(other) => self.disk_interrupt(other - self.arrivals.len(), now),
        };
        interrupt.wakes.retain(|&task| self.rouse(task));
        Ok(interrupt)
    }

    /// An interrupt of an `[irq]`.
    fn irq(&mut self, source: usize, now: SimTime) -> Result<InterruptWork, WorkError> {
        let workload = Arc::clone(&self.workload);
        let declared = &workload.interrupts[source];
        let steal = self.sources[source].cost(declared);
        let next = self.sources[source].next(declared, now);
        let fault = |source| WorkError::Task {
            place: format!("{}:{}: irq {}", workload.file, declared.line, declared.name),
            source,
        };
        let wakes = match &declared.effect {
            Effect::None => Vec::new(),
            Effect::Send(to) => {
                let (of, index) = self.constant_place(to).map_err(fault)?;
                let bytes = workload.channels[of].msg;
                // A message that finds the channel full is lost: nobody could wait for room.
                self.channels[of][index]
                    .send((bytes, 0), now, false)
                    .unwrap_or_default()
                    .tasks
            }
            Effect::Resume(target) => {
                let target = execute::constant_target(self, target).map_err(fault)?;
                target
                    .and_then(|task| self.resume(task))
                    .into_iter()
                    .collect()
            }
        };
        let next = next.into_iter().collect();
        Ok(InterruptWork { steal, wakes, next })
    }

    fn constant_place(
        &self,
        IndexedResource { of, index }: &IndexedResource,
    ) -> Result<(usize, usize), TaskFault> {
        let Expr::Number(index) = *index else {
            unreachable!("the front end asks for a constant")
        };
        let declared = &self.workload.channels[*of as usize];
        let fits = usize::try_from(index)
            .ok()
            .filter(|&index| index < declared.count as usize);
        let index = fits.ok_or_else(|| TaskFault::Index {
            name: declared.name.clone(),
            index,
            count: u64::from(declared.count),
        })?;
        Ok((*of as usize, index))
    }

    /// Ends `task`'s suspension, or remembers to; whom that wakes.
    fn resume(&mut self, task: TaskId) -> Option<TaskId> {
        let state = &mut self.tasks[task.index()];
        if state.is_asleep && state.waits == Waits::Resume {
            return Some(task);
        }
        state.is_resumed = true;
        None
    }

    /// Marks a task as woken; whether it was asleep.
    fn rouse(&mut self, task: TaskId) -> bool {
        std::mem::take(&mut self.tasks[task.index()].is_asleep)
    }

    /// `task` has left its CPU for the last time.
    ///
    /// # Panics
    /// If it has not been told to exit.
    pub fn exited(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        assert!(state.has_exited, "a task exits when it says so");
        state.shrink();
        let group = state.stepper.group();
        self.groups[group as usize].alive -= 1;
        self.alive -= u32::from(!self.workload.groups[group as usize].background);
    }

    /// Name of `task` in the workload.
    ///
    /// # Panics
    /// If it was not [`born`](Self::born).
    #[must_use]
    pub fn name_of(&self, task: TaskId) -> String {
        let stepper = &self.tasks[task.index()].stepper;
        self.workload.task_name(stepper.group(), stepper.index())
    }

    /// File, line and task, for messages.
    ///
    /// # Panics
    /// If it was not [`born`](Self::born).
    #[cold]
    #[must_use]
    pub fn place_of(&self, task: TaskId) -> String {
        let stepper = &self.tasks[task.index()].stepper;
        let name = self.workload.task_name(stepper.group(), stepper.index());
        let line = stepper.line(&self.codes[stepper.group() as usize]);
        format!("{}:{line}: {name}", self.workload.file)
    }

    /// Whether `task` has begun to exit: what it still does, it does on its way out.
    #[must_use]
    pub fn is_exiting(&self, task: TaskId) -> bool {
        self.tasks[task.index()].has_exited
    }

    /// Whether a blocked `task` waits for what no signal ends: a disk or memory.
    #[must_use]
    pub fn waits_uninterruptibly(&self, task: TaskId) -> bool {
        let waits = self.tasks[task.index()].waits;
        matches!(waits, Waits::Disk { .. } | Waits::Memory)
    }

    /// Whether the workload is over at `now`.
    #[must_use]
    pub fn finished(&self, now: SimTime) -> bool {
        let declared = || self.workload.groups.iter().zip(&self.groups);
        let all_exited =
            self.alive == 0 && declared().all(|(group, members)| members.born >= group.count);
        let group_exited = |&index: &u32| {
            let (group, members) = (
                &self.workload.groups[index as usize],
                &self.groups[index as usize],
            );
            members.alive == 0 && members.born >= group.count.max(1)
        };
        all_exited
            || self.is_stopped
            || self
                .duration()
                .is_some_and(|span| now >= SimTime::ZERO + span)
            || self.workload.stop.groups.iter().any(group_exited)
    }

    /// Whether something other than an exit or the time has ended the workload.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Deadlines that were due before `end` and will never be met, because the run is over: task,
    /// deadline and how many. Of work that was begun or released, and of messages that nobody has
    /// taken yet; these are their receivers', the first that is alive.
    #[must_use]
    pub fn overdue(&self, end: SimTime) -> Vec<(TaskId, u32, u64)> {
        let declared = |deadline: u32| &self.workload.deadlines[deadline as usize];
        let of = |deadline: u32| (declared(deadline).period, declared(deadline).slack);
        let tasks = (0..).map(TaskId).zip(&self.tasks);
        let alive = tasks.filter(|(_, task)| !task.has_exited);
        let mut found: Vec<(TaskId, u32, u64)> = alive
            .flat_map(|(id, task)| {
                let overdue = task.stepper.overdue(end, of).into_iter();
                overdue.map(move |(deadline, count)| (id, deadline, count))
            })
            .collect();
        let receivers = receivers(&self.workload, &self.codes, |group| self.first_alive(group));
        for (receiver, channel, deadline) in receivers {
            let latest = latest(end, declared(deadline).slack);
            let queues = &self.channels[channel as usize];
            let count = queues.iter().map(|queue| queue.sent_before(latest)).sum();
            if count > 0 {
                found.push((receiver, deadline, count));
            }
        }
        found
    }

    /// A group's first task that has not exited.
    fn first_alive(&self, group: u32) -> Option<TaskId> {
        let mut members = self.groups[group as usize].tasks.iter().flatten();
        members
            .find(|id| !self.tasks[id.index()].has_exited)
            .copied()
    }

    /// The tasks that wait for locks.
    #[must_use]
    pub fn blocked(&self) -> Vec<Blocked> {
        let locks = self.locks.iter().zip(&self.workload.locks);
        let blocked = locks.flat_map(|(locks, declared)| {
            locks.blocked().map(|(task, index, holder)| Blocked {
                task,
                lock: match index {
                    0 => declared.name.clone(),
                    index => format!("{}[{index}]", declared.name),
                },
                holder,
            })
        });
        blocked.collect()
    }

    /// Notes for the end of a run.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.note_requests()
    }

    /// The time after which it is over at the latest, if the file says so.
    #[must_use]
    pub fn duration(&self) -> Option<Nanos> {
        self.workload.stop.after
    }

    /// Why `task` is blocked, in words, if it is: for messages about a run that stands still.
    #[must_use]
    pub fn waits_for(&self, task: TaskId) -> Option<String> {
        let state = self
            .tasks
            .get(task.index())
            .filter(|state| state.is_asleep)?;
        let channels = &self.workload.channels;
        Some(match state.waits {
            Waits::Nothing => return None,
            Waits::Message { of, index } => format!("a message in {}[{index}]", channels[of].name),
            Waits::Room { of, index } => format!("room in {}[{index}]", channels[of].name),
            Waits::Lock { of, index } => {
                format!("the lock {}[{index}]", self.workload.locks[of].name)
            }
            Waits::Token { of, index } => {
                format!(
                    "the semaphore {}[{index}]",
                    self.workload.semaphores[of].name
                )
            }
            Waits::Signal { of, index } => {
                format!(
                    "the condition {}[{index}]",
                    self.workload.conditions[of].name
                )
            }
            Waits::Connection { of, index } => {
                format!(
                    "a connection to {}[{index}]",
                    self.workload.listeners[of].name
                )
            }
            Waits::Barrier { of, index } => {
                format!("the barrier {}[{index}]", self.workload.barriers[of].name)
            }
            Waits::Disk { of } => format!("the disk {}", self.workload.disks[of].name),
            Waits::Memory => "free memory".to_owned(),
            Waits::Pressure => "memory to run short".to_owned(),
            Waits::Child => "a child to exit".to_owned(),
            Waits::Resume => "somebody to resume it".to_owned(),
        })
    }
}
