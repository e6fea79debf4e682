//! What was decided last about every task, queue and CPU.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Caller, Change, CpuId, Event, Header, IdleChange, InQueue, Kicked, Looked, MachineSpec,
    NOWHERE, Nanos, Op, PrevState, Removed, SimTime, Sliced, TaskClass, TaskId, What, insert,
};

use super::caps::CapsInEffect;
pub(super) use super::deed::Deed;
use super::higher::Higher;
pub(super) use super::queue::{Entry, Kind, Queue};
use super::right::{CgroupWeights, Claim, Rights};
use super::schedulers::SchedulerNames;
use super::stint::Stints;
use traces::task_name;

/// The bit of all built-in queues, and what begins the id of a local one (kernel 6.18,
/// include/linux/sched/ext.h).
const BUILTIN: u64 = 1 << 63;
/// `SCX_DSQ_GLOBAL`: each scheduler has one of a node.
pub(super) const GLOBAL: u64 = BUILTIN | 1;
const LOCAL_ON: u64 = 3 << 62;
/// So many direct inserts into a local queue without a `dispatch` in between keep a CPU busy: the
/// first one may have ended its idleness, and the second its turn.
const REFILLS: usize = 3;

/// Where a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Where {
    /// Never seen.
    #[default]
    Unknown,
    /// In no queue: the policy kept it.
    Kept,
    /// In the queue with this index.
    Queue(u32),
    /// It left its queue.
    Out,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    pub name: String,
    pub nice: i8,
    pub pid: u32,
    pub runnable_since: Option<SimTime>,
    pub on: Option<CpuId>,
    pub switched_in: Option<SimTime>,
    /// When it was runnable for the first time.
    pub began: Option<SimTime>,
    /// Since when it sleeps, and for how long it did so before.
    pub slept: Option<SimTime>,
    asleep: Nanos,
    /// Its nice value, its class or the CPUs that it may use are not those of its begin.
    pub is_changed: bool,
    pub run: Nanos,
    pub place: Where,
    /// What put it there.
    pub put: Option<Deed>,
    /// The last insert by the policy.
    pub inserted: Option<Deed>,
    /// Since it was kept: the last insert that was ignored.
    pub ignored: Option<Deed>,
    /// Since it was kept: where a program last had it in hand, and did not insert it.
    pub let_go: Option<Deed>,
    /// The last kick by the callback that put it where it is, and the CPU that was kicked.
    pub kick: Option<(Deed, CpuId)>,
    /// The idle CPU that was claimed by what put it there.
    pub claim: Option<CpuId>,
    pub slice: Option<(u64, Deed)>,
    /// It has been in a queue: the policy, or the kernel by a rule for its tasks, put it there.
    pub is_managed: bool,
    /// It has left for another class.
    pub is_away: bool,
    pub trigger: Option<(SimTime, &'static str)>,
    /// What it had a right to, since the begin, when it got its place in the order of tasks: its
    /// wait began, or something took it out of its queue and offered it again.
    right_anew: Option<f64>,
    /// The same by cgroup.
    grouped_anew: Option<f64>,
    /// The numbers in the load of its cgroup, and of the nearest one above that has a limit.
    pub cgroup: u32,
    limit: u32,
    /// What it claims while it is runnable.
    claims: Option<Claim>,
    /// The CPUs that it may use, the lowest 64, if that was told.
    pub mask: Option<u64>,
}

impl Task {
    /// Whether the policy has no say when it runs: it is of another class, all of which a kernel
    /// prefers to the policy's.
    pub const fn outranks(&self) -> bool {
        !self.is_managed || self.is_away
    }

    /// What it may claim where cgroups count.
    fn claim(&self) -> Claim {
        Claim {
            mask: self.mask.unwrap_or(u64::MAX),
            nice: self.nice,
            cgroup: self.cgroup,
            limit: self.limit,
        }
    }

    /// What it may claim where cgroups do not count.
    fn flat(&self) -> Claim {
        self.claim().flat()
    }

    /// How long it has slept until `now`.
    pub fn asleep_until(&self, now: SimTime) -> Nanos {
        let open = self.slept.map(|since| now.since(since));
        self.asleep + open.unwrap_or(Nanos::ZERO)
    }

    /// It is runnable from `now` on.
    fn wakes(&mut self, now: SimTime) {
        self.runnable_since = Some(now);
        self.began.get_or_insert(now);
        if let Some(since) = self.slept.take() {
            self.asleep += now.since(since);
        }
    }

    /// How long it has run until `now`.
    pub fn run_until(&self, now: SimTime) -> Nanos {
        let turn = self.switched_in.map(|since| now.since(since));
        self.run + turn.unwrap_or(Nanos::ZERO)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    pub is_offline: bool,
    pub task: Option<TaskId>,
    pub since: SimTime,
    /// The slice that its task had at the begin of its turn.
    pub slice: Option<(u64, Deed)>,
    /// Turns that are over.
    pub stints: Stints,
    /// The number of the event since which tasks of other classes have it.
    pub outranked: Option<u64>,
    pub kicked: Option<SimTime>,
    pub claimed: Option<Deed>,
    /// The number of the last `dispatch` that began, and the last that ended without work.
    pub dispatch: Option<u64>,
    pub empty_dispatch: Option<Deed>,
    /// That one had looked at no queue.
    pub is_blind: bool,
    /// The numbers of the last direct inserts into its local queue since the last `dispatch` began,
    /// the oldest first, and the last of them.
    pub refills: [Option<u64>; REFILLS],
    pub refilled: Option<Deed>,
    /// Queues at which it has looked since its last `dispatch` began.
    looked: Vec<u32>,
    /// The last look that took a task, and the queue.
    pub took: Option<(Deed, u32)>,
    /// The policy's task that runs, or ran before those of other classes took the CPU, and how long
    /// it had run when it came or when `dispatch` was called last.
    pub stint: Option<(TaskId, Nanos)>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    header: Option<Header>,
    pub tasks: Vec<Task>,
    pub cpus: Vec<Cpu>,
    pub queues: BTreeMap<u32, Queue>,
    /// What ended each scheduler that the kernel has ended, by their numbers.
    pub failed: BTreeMap<u32, (TaskId, Deed)>,
    /// Whose callbacks and decisions come now, and what those below the root are called.
    scheduler: u32,
    pub schedulers: SchedulerNames,
    pub caps: CapsInEffect,
    /// Of each scheduler below the root: the number of the last `dispatch` that began.
    handed: BTreeMap<u32, u64>,
    entries: u64,
    /// Events so far.
    number: u64,
    entry_of: BTreeMap<TaskId, (u32, u64)>,
    decisions: bool,
    offline: Option<SimTime>,
    released: Option<(SimTime, CpuId)>,
    /// When which CPUs had a task of another class.
    higher: Higher,
    rights: Rights,
    /// The rights by cgroup, if the load has cgroups.
    grouped: Option<Rights>,
    cgroups: CgroupWeights,
    /// By CPU that decided: the last task that it moved, and the last kick, with the CPU that was
    /// kicked. A move is carried out at once, an insert behind the kicks of its callback.
    moved_on: BTreeMap<CpuId, (TaskId, Deed)>,
    kicked_by: BTreeMap<CpuId, (Deed, CpuId)>,
    /// The last claim of an idle CPU that no insert has followed.
    claim: Option<Deed>,
    /// Places at which a `dispatch` looked at a queue.
    pub look_places: BTreeSet<u32>,
    /// The last place at which the policy inserted tasks by weight or slice.
    pub any_insert: Option<Deed>,
}

impl State {
    /// The load has these cgroups. Called before the run begins.
    pub fn set_cgroups(&mut self, cgroups: CgroupWeights) {
        self.cgroups = cgroups;
    }

    pub fn begin(&mut self, header: &Header) {
        let cpus = usize::from(header.machine.cpus);
        self.cpus.resize_with(cpus, Cpu::default);
        self.rights = Rights::of(cpus).within(&self.cgroups);
        let has_cgroups = self.cgroups.tree.len() > 1;
        let grouped = || Rights::by_cgroup(cpus, &self.cgroups).within(&self.cgroups);
        self.grouped = has_cgroups.then(grouped);
        self.header = Some(header.clone());
    }

    /// The groups of tasks that the run has by its header.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        let groups = self.header.iter().flat_map(|header| &header.groups);
        groups.map(|group| group.name.as_str())
    }

    /// The run's machine, once that is known.
    pub fn machine(&self) -> Option<&MachineSpec> {
        self.header.as_ref().map(|header| &header.machine)
    }

    pub const fn has_decisions(&self) -> bool {
        self.decisions
    }

    /// Whether `queue` is that of a scheduler below the root to which no CPU was handed down since
    /// `number`.
    pub fn is_passed_by(&self, queue: &Queue, number: u64) -> bool {
        let handed = self.handed.get(&queue.of).copied();
        queue.of > 0 && handed.is_none_or(|last| last <= number)
    }

    /// Whose callbacks and decisions come now: 0 is the root.
    pub const fn scheduler(&self) -> u32 {
        self.scheduler
    }

    pub fn name(&self, task: TaskId) -> String {
        let known = self.tasks.get(task.index());
        known.map_or_else(|| format!("task {}", task.0), |task| task.name.clone())
    }

    /// How long `task` has waited at `now`, if it does.
    pub fn waited(&self, task: TaskId, now: SimTime) -> Option<Nanos> {
        let task = self.tasks.get(task.index())?;
        let since = task.runnable_since.filter(|_| task.on.is_none())?;
        Some(now.since(since))
    }

    /// For how much of its wait until `now` tasks of other classes had all of `cpus`.
    pub fn denied(&self, task: TaskId, now: SimTime, cpus: &[CpuId]) -> Nanos {
        let since = self
            .tasks
            .get(task.index())
            .and_then(|task| task.runnable_since);
        since.map_or(Nanos::ZERO, |since| self.higher.held_all(cpus, since, now))
    }

    /// The CPU time that `task` had a right to while it waited until `now`, since it has its place
    /// in the order of tasks. It got none of that.
    pub fn lag(&self, task: TaskId, now: SimTime) -> Nanos {
        let known = self.tasks.get(task.index());
        let lag =
            known.and_then(|task| Some(self.rights.total(task.flat(), now)? - task.right_anew?));
        Nanos::new(lag.unwrap_or(0.0).max(0.0) as u64)
    }

    /// The same where each cgroup has its own right; `None` if the load has no cgroups.
    pub fn grouped_lag(&self, task: TaskId, now: SimTime) -> Option<Nanos> {
        let (rights, task) = (self.grouped.as_ref()?, self.tasks.get(task.index())?);
        let lag = rights.total(task.claim(), now)? - task.grouped_anew?;
        Some(Nanos::new(lag.max(0.0) as u64))
    }

    /// The runnable tasks that may use one of the CPUs that `task` may use.
    pub fn rivals(&self, task: TaskId) -> impl Iterator<Item = &Task> {
        let mask = self
            .tasks
            .get(task.index())
            .map_or(0, |task| task.claim().mask);
        let meets = move |claim: Claim| self.rights.meet(claim.mask, mask);
        self.tasks
            .iter()
            .filter(move |task| task.claims.is_some_and(meets))
    }

    /// What `task` claims may have changed at `now`; `anew`: it has a new place in the order of
    /// tasks.
    fn claim(&mut self, id: TaskId, now: SimTime, anew: bool) {
        let Some(task) = self.tasks.get_mut(id.index()) else {
            return;
        };
        let is_runnable = task.runnable_since.is_some() && !task.outranks();
        let claims = is_runnable.then(|| task.claim());
        let before = std::mem::replace(&mut task.claims, claims);
        if before != claims {
            let flat = |claim: Option<Claim>| claim.map(Claim::flat);
            self.rights.change(flat(before), flat(claims), now);
            if let Some(grouped) = &mut self.grouped {
                grouped.change(before, claims, now);
            }
        }
        if anew || before != claims {
            task.right_anew = self.rights.total(task.flat(), now);
            let grouped = self.grouped.as_ref();
            task.grouped_anew = grouped.and_then(|it| it.total(task.claim(), now));
        }
    }

    /// From `now` on the policy's tasks may have this CPU, or may not.
    fn set_free(&mut self, cpu: CpuId, is_free: bool, now: SimTime) {
        self.rights.set_free(cpu, is_free, now);
        if let Some(grouped) = &mut self.grouped {
            grouped.set_free(cpu, is_free, now);
        }
    }

    /// The tasks that wait.
    pub fn waiting(&self) -> Vec<TaskId> {
        let all = (0u32..).map(TaskId).zip(&self.tasks);
        let waits = all.filter(|(_, task)| task.runnable_since.is_some() && task.on.is_none());
        waits.map(|(id, _)| id).collect()
    }

    /// At most `most` tasks of the policy that have waited for `least` at `now`.
    pub fn settled(&self, now: SimTime, least: Nanos, most: usize) -> Vec<TaskId> {
        let all = (0u32..).map(TaskId).zip(&self.tasks);
        let waits = |task: &Task| {
            let since = task.runnable_since.filter(|_| task.on.is_none());
            !task.outranks() && since.is_some_and(|since| now.since(since) >= least)
        };
        let settled = all.filter(|(_, task)| waits(task));
        settled.map(|(id, _)| id).take(most).collect()
    }

    /// The tasks in a queue, in the order in which they came.
    pub fn members(&self, queue: &Queue) -> impl Iterator<Item = TaskId> {
        let mut all: Vec<_> = self
            .entry_of
            .iter()
            .filter(|(_, (_, entry))| queue.tasks.contains_key(entry))
            .map(|(task, (_, entry))| (*entry, *task))
            .collect();
        all.sort_unstable();
        all.into_iter().map(|(_, task)| task)
    }

    /// The entry of `task` in the queue that it is in.
    pub fn entry(&self, task: TaskId) -> Option<(&Queue, &Entry)> {
        let (queue, entry) = self.entry_of.get(&task)?;
        let queue = self.queues.get(queue)?;
        Some((queue, queue.tasks.get(entry)?))
    }

    pub fn take(&mut self, event: &Event) {
        self.number += 1;
        match event.what() {
            What::New {
                group,
                index,
                pid,
                parent,
            } => self.born((group, index), pid, parent),
            What::Wakeup(_) => {
                self.with(event.task, |task| task.wakes(event.time));
                self.claim(event.task, event.time, true);
            }
            What::Switch { prev, state, .. } => self.switched(event, prev, state),
            What::Exit => {
                self.with(event.task, |task| task.runnable_since = None);
                self.claim(event.task, event.time, false);
            }
            What::Callback { op, a, b } => self.called(event, op, (a, b)),
            What::Change(change) => self.changed(event, change),
            _ => self.decided(event),
        }
    }

    fn decided(&mut self, event: &Event) {
        let deed = |by| Deed::of(event, by, self.number);
        match event.what() {
            What::Queue {
                id, queue, exists, ..
            } => self.named(id, queue, exists),
            What::Insert { by, into, flags } => self.inserted(event.task, deed(by), into, flags),
            What::Look { by, at, how } => self.looked(event.task, deed(by), at, how),
            What::Remove { from, why, .. } => self.removed(event, from, why),
            What::Ignored { by, .. } => {
                let deed = deed(by);
                self.with(event.task, |task| task.ignored = Some(deed));
            }
            What::KickEnd { by, fate, caller } => {
                let mut deed = deed(by);
                deed.cpu = caller;
                self.kicked(event.cpu, deed, fate);
            }
            What::Idle { by, how } => self.idled(deed(by), how),
            What::Slice { by, slice, why } if why != Sliced::Cut => {
                let deed = deed(by);
                self.with(event.task, |task| task.slice = Some((slice.get(), deed)));
            }
            What::Allowed { mask, .. } => {
                self.with(event.task, |task| {
                    task.is_changed |= task.mask.is_some_and(|before| before != mask);
                    task.mask = Some(mask);
                });
                self.claim(event.task, event.time, false);
            }
            What::Failed { by, .. } => {
                let deed = deed(by);
                let failed = self.failed.entry(self.scheduler);
                failed.or_insert((event.task, deed));
            }
            What::Scheduler { scheduler, .. } => self.scheduler = scheduler,
            _ => {}
        }
    }

    fn with(&mut self, task: TaskId, change: impl FnOnce(&mut Task)) {
        if let Some(task) = self.tasks.get_mut(task.index()) {
            change(task);
        }
    }

    fn born(&mut self, (group, index): (u32, u32), pid: u32, parent: TaskId) {
        let own = self
            .cgroups
            .of_groups
            .get(group as usize)
            .copied()
            .flatten();
        let parents = self.tasks.get(parent.index()).map(|it| it.cgroup);
        let header = self.header.as_ref();
        let name = header.map(|header| task_name(header, group, index));
        let group = header.and_then(|header| header.groups.get(group as usize));
        let cgroup = own.or(parents).unwrap_or(0);
        self.tasks.push(Task {
            name: name.unwrap_or_default(),
            nice: group.map_or(0, |group| group.nice),
            pid,
            cgroup,
            limit: self.cgroups.limit_of(cgroup),
            ..Task::default()
        });
    }

    fn switched(&mut self, event: &Event, prev: TaskId, state: PrevState) {
        let is_runnable = state == PrevState::Runnable;
        self.with(prev, |task| {
            task.on = None;
            task.runnable_since = is_runnable.then_some(event.time);
            task.slept = (!is_runnable).then_some(event.time);
            if let Some(since) = task.switched_in.take() {
                task.run += event.time.since(since);
            }
        });
        self.claim(prev, event.time, true);
        self.with(event.task, |task| {
            task.on = Some(event.cpu);
            task.switched_in = Some(event.time);
            task.ignored = None;
        });
        if let Some(cpu) = self.cpus.get_mut(event.cpu.index()) {
            let next = self.tasks.get(event.task.index());
            let slice = next.and_then(|next| next.slice);
            let task = Some(event.task).filter(|task| *task != TaskId::NONE);
            cpu.turn_to(task, slice, event.time);
            cpu.claimed = None;
            match next {
                None => cpu.stint = None,
                Some(next) if next.outranks() => {}
                Some(next) if cpu.stint.is_none_or(|(task, _)| task != event.task) => {
                    cpu.stint = Some((event.task, next.run));
                }
                Some(_) => {}
            }
        }
        self.rank(event.cpu, event.time);
    }

    /// Notes whether the task that `cpu` runs now is of another class.
    fn rank(&mut self, number: CpuId, now: SimTime) {
        let Some(cpu) = self.cpus.get_mut(number.index()) else {
            return;
        };
        let task = cpu.task.and_then(|task| self.tasks.get(task.index()));
        let outranks = task.is_some_and(Task::outranks);
        if outranks == cpu.outranked.is_some() {
            return;
        }
        cpu.outranked = outranks.then_some(self.number);
        let is_free = !outranks && !cpu.is_offline;
        self.set_free(number, is_free, now);
        self.higher.note(number, outranks, now);
        if self.higher.is_long() {
            let waits = self.tasks.iter().filter(|task| task.on.is_none());
            let oldest = waits.filter_map(|task| task.runnable_since).min();
            self.higher.forget(oldest.unwrap_or(now));
        }
    }

    fn called(&mut self, event: &Event, op: Op, (word, more): (u64, u64)) {
        match op {
            Op::Dispatch => {
                if let Some(cpu) = self.cpus.get_mut(event.cpu.index()) {
                    cpu.dispatch = Some(self.number);
                    if self.scheduler == 0 {
                        cpu.looked.clear();
                    } else {
                        // One below the root is asked within the root's.
                        self.handed.insert(self.scheduler, self.number);
                    }
                    cpu.refills = [None; REFILLS];
                    if let Some((task, run)) = &mut cpu.stint
                        && let Some(task) = self.tasks.get(task.index())
                    {
                        *run = task.run_until(event.time);
                    }
                }
            }
            Op::CpuOffline | Op::CpuOnline => {
                let is_offline = op == Op::CpuOffline;
                if is_offline {
                    self.offline = Some(event.time);
                }
                let number = CpuId(word as u16);
                if let Some(cpu) = self.cpus.get_mut(number.index()) {
                    cpu.is_offline = is_offline;
                    let is_free = !is_offline && cpu.outranked.is_none();
                    self.set_free(number, is_free, event.time);
                }
            }
            Op::CgroupMove => {
                // As programs see it, the root's number is 1.
                let cgroup = u32::try_from(word.saturating_sub(1)).unwrap_or(0);
                let limit = self.cgroups.limit_of(cgroup);
                self.with(event.task, |task| {
                    (task.cgroup, task.limit) = (cgroup, limit);
                });
                self.claim(event.task, event.time, false);
            }
            Op::CpuRelease => {
                self.released = Some((event.time, event.cpu));
            }
            Op::SubEcapsUpdated => self.caps.told((self.scheduler, event.cpu), more),
            _ => {}
        }
    }

    fn changed(&mut self, event: &Event, change: Change) {
        let what = match change {
            Change::Nice(_) => "its nice value changed",
            Change::Affinity(_) => "its affinity changed",
            Change::Class { .. } => "its class changed",
        };
        self.with(event.task, |task| {
            task.trigger = Some((event.time, what));
            task.is_changed = true;
            match change {
                Change::Nice(nice) => task.nice = nice as i8,
                Change::Affinity(_) => {}
                Change::Class { class, .. } => task.is_away = class != TaskClass::Policy,
            }
        });
        self.claim(event.task, event.time, true);
        let on = self.tasks.get(event.task.index()).and_then(|task| task.on);
        if let Some(cpu) = on {
            self.rank(cpu, event.time);
        }
    }

    fn named(&mut self, id: u64, index: u32, exists: bool) {
        self.decisions = true;
        if !exists {
            self.queues.remove(&index);
            return;
        }
        self.caps.named(index, id);
        let queue = Queue::new(id, self.scheduler);
        self.queues.insert(index, queue);
    }

    fn inserted(&mut self, id: TaskId, deed: Deed, into: InQueue, flags: u32) {
        self.leave(id, None);
        let index = into.queue;
        let by_kernel = flags & insert::KERNEL != 0;
        let kick = self.kicked_by.remove(&deed.cpu);
        let kick = kick.filter(|(kick, _)| kick.is_with(&deed));
        let claim = self.claim.take().filter(|claim| deed.is_with_claim(claim));
        let trigger = if self.offline == Some(deed.time) {
            Some("a CPU went offline")
        } else if self.released == Some((deed.time, deed.cpu)) {
            Some("a task of a higher class took its CPU")
        } else {
            None
        };
        self.with(id, |task| {
            let kept = index == NOWHERE;
            task.place = if kept {
                Where::Kept
            } else {
                Where::Queue(index)
            };
            task.put = Some(deed);
            task.is_managed = true;
            if let Some(what) = trigger {
                task.trigger = Some((deed.time, what));
            }
            task.kick = kick;
            task.claim = claim.map(|claim| claim.cpu);
            if kept {
                task.ignored = None;
                task.let_go = None;
            } else if !by_kernel {
                task.inserted = Some(deed);
            }
        });
        self.claim(id, deed.time, trigger.is_some());
        if !by_kernel && index != NOWHERE {
            self.any_insert = Some(deed);
            match flags & insert::MOVED {
                0 => self.moved_on.remove(&deed.cpu),
                _ => self.moved_on.insert(deed.cpu, (id, deed)),
            };
        }
        let Some(queue) = self.queues.get_mut(&index) else {
            return;
        };
        self.caps.inserted(id, (index, queue.id), deed.time);
        if !by_kernel {
            refill(&mut self.cpus, queue.id, deed);
        }
        queue.depth = into.depth;
        if queue.tasks.is_empty() {
            queue.unserved = deed.time;
        }
        self.entries += 1;
        if flags & insert::HEAD != 0 && !by_kernel {
            for behind in queue.tasks.values_mut() {
                behind.headed = Some(deed);
            }
        }
        let entry = Entry {
            came: (queue.looks, queue.takes),
            overtaken: BTreeMap::new(),
            headed: None,
        };
        queue.tasks.insert(self.entries, entry);
        self.entry_of.insert(id, (index, self.entries));
    }

    /// `task` is in no queue any more; a CPU has taken it, or none has.
    fn leave(&mut self, task: TaskId, taken: Option<CpuId>) {
        let Some((index, number)) = self.entry_of.remove(&task) else {
            return;
        };
        let Some(queue) = self.queues.get_mut(&index) else {
            return;
        };
        queue.tasks.remove(&number);
        if let Some(cpu) = taken {
            for (_, before) in queue.tasks.range_mut(..number) {
                *before.overtaken.entry(cpu).or_default() += 1;
            }
        }
    }

    fn looked(&mut self, id: TaskId, deed: Deed, at: InQueue, how: Looked) {
        let index = at.queue;
        if how == Looked::Nothing {
            return self.found_nothing(deed.cpu, deed);
        }
        if how == Looked::LetGo {
            let note =
                |task: &mut Task| task.let_go = Some(deed).filter(|_| task.place == Where::Kept);
            return self.with(id, note);
        }
        if deed.caller == Caller::Callback(Op::Dispatch) {
            self.look_places.insert(deed.place);
        }
        let takes = id != TaskId::NONE;
        let consumes = [
            Caller::Callback(Op::Dispatch),
            Caller::Program,
            Caller::Kernel,
        ];
        if !takes && !consumes.contains(&deed.caller) {
            // A tick or an insert that counts those who wait takes nobody, whatever it finds.
            return;
        }
        if let Some(cpu) = self.cpus.get_mut(deed.cpu.index()) {
            cpu.looked.push(index);
            if takes {
                cpu.took = Some((deed, index));
            }
        }
        if let Some(queue) = self.queues.get_mut(&index) {
            queue.look(deed, takes);
            if takes {
                queue.chosen = (how == Looked::Move).then_some(deed);
                *queue.takers.entry(deed.cpu).or_default() += 1;
                queue.longest_pause = queue.longest_pause.max(queue.pause(deed.time));
                queue.unserved = deed.time;
            }
            queue.depth = at.depth;
        }
        if takes {
            self.leave(id, Some(deed.cpu));
            self.with(id, |task| task.place = Where::Out);
        }
    }

    /// A `dispatch` ends without work.
    fn found_nothing(&mut self, number: CpuId, deed: Deed) {
        let Some(cpu) = self.cpus.get_mut(number.index()) else {
            return;
        };
        cpu.empty_dispatch = Some(deed);
        cpu.is_blind = cpu.looked.is_empty();
        for index in &cpu.looked {
            // Whose `dispatch` ends says nothing of the queues of those around it, or below it.
            if let Some(queue) = self.queues.get_mut(index)
                && queue.of == self.scheduler
            {
                queue.skipped.insert(number, deed);
            }
        }
    }

    fn removed(&mut self, event: &Event, from: InQueue, why: Removed) {
        if let Some(queue) = self.queues.get_mut(&from.queue) {
            queue.depth = from.depth;
        }
        let runs = why == Removed::Runs;
        self.leave(event.task, runs.then_some(event.cpu));
        self.with(event.task, |task| task.place = Where::Out);
    }

    /// Something became of a kick of `target`; `deed` has the CPU that kicks.
    fn kicked(&mut self, target: CpuId, deed: Deed, fate: Kicked) {
        if fate != Kicked::Taken {
            let kick = (deed, target);
            match self.moved_on.get(&deed.cpu).copied() {
                Some((task, insert)) if insert.is_with(&deed) => {
                    self.with(task, |task| task.kick = Some(kick));
                }
                _ => _ = self.kicked_by.insert(deed.cpu, kick),
            }
        }
        if fate != Kicked::Dropped
            && let Some(cpu) = self.cpus.get_mut(target.index())
        {
            cpu.kicked = Some(deed.time);
        }
    }

    fn idled(&mut self, deed: Deed, how: IdleChange) {
        let is_claim = how == IdleChange::Claimed;
        if let Some(cpu) = self.cpus.get_mut(deed.cpu.index()) {
            cpu.claimed = is_claim.then_some(deed);
        }
        if is_claim {
            self.claim = Some(deed);
        }
    }

    /// Kind of the queue with this id.
    pub const fn kind_of(id: u64) -> Kind {
        match id {
            local if local & LOCAL_ON == LOCAL_ON => Kind::Local(CpuId(local as u16)),
            global if global & BUILTIN != 0 => Kind::Global,
            _ => Kind::Policy,
        }
    }
}

/// A task came into the queue `id` by the policy's own insert: into a local one of a CPU that was
/// not asked for work, it keeps that CPU from asking.
pub(super) fn refill(cpus: &mut [Cpu], id: u64, deed: Deed) {
    if let Kind::Local(cpu) = State::kind_of(id)
        && let Some(cpu) = cpus.get_mut(cpu.index())
        && deed.caller != Caller::Callback(Op::Dispatch)
    {
        cpu.refills.rotate_left(1);
        cpu.refills[REFILLS - 1] = Some(deed.number);
        cpu.refilled = Some(deed);
    }
}
