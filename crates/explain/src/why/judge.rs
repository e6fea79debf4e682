//! From what was decided to what went wrong.

use model::{Caller, CpuId, Exit, ExitKind, Kernel, Nanos, SimTime, TaskId};

use super::OVERLONG;
use super::finding::{
    Act, Fault, Finding, Holder, IdleCpu, Places, QueueView, Standing, Victim, Wait,
};
use super::message::fault_of;
use super::schedulers::QueueName;
use super::state::{Cpu, Deed, Kind, Queue, State, Where};
use super::turn::LEAST_ROUND;
use super::verdict::{MissingRight, Right, Share, Tier, Verdict};

/// A wait of a second is long, or one of this part of a shorter run.
pub(super) const LONG: Nanos = Nanos::from_secs(1);
const LONG_PART: u64 = 4;
/// Of tasks that wait for long, so many are judged: one wait explains the others of its kind.
const JUDGED: usize = 256;
/// A CPU that idles for less than this while a task waits may be about to look for it.
const SETTLED: Nanos = Nanos::from_millis(1);

/// Looks at the state at one moment.
pub(super) struct Judge<'a> {
    pub state: &'a State,
    pub places: &'a Places,
    /// What the policy declares.
    pub right: Option<Right>,
    /// The nice value of a task that sleeps until the judged one runs.
    pub inherits: Option<i8>,
    /// The kernel has ended the policy.
    pub is_ejected: bool,
    pub now: SimTime,
}

impl Judge<'_> {
    /// The wait of `task` that ends now, or that is open.
    pub fn wait(&self, task: TaskId) -> Wait {
        Wait {
            span: self.state.waited(task, self.now).unwrap_or(Nanos::ZERO),
            finding: self.finding(task),
        }
    }

    /// About the task that has waited longest now, if that is long.
    pub fn longest_open(&self) -> Option<Finding> {
        let limit = self.long();
        let waits = self.state.waiting().into_iter();
        let waits = waits.filter_map(|task| Some((self.state.waited(task, self.now)?, task)));
        let mut long: Vec<_> = waits.filter(|(span, _)| *span >= limit).collect();
        long.sort_by_key(|(span, task)| (std::cmp::Reverse(*span), task.0));
        // Whoever waits longest may only wait for its turn, and another one for ever.
        let findings = long
            .iter()
            .take(JUDGED)
            .map(|(_, task)| self.finding(*task));
        // Nor does a wait that no policy could end, or a share that nobody promised, say that the
        // others are like it.
        let (mut outranked, mut unpromised) = (None, None);
        for finding in findings {
            match finding.fault {
                Fault::Waited => {}
                Fault::Outranked => _ = outranked.get_or_insert(finding),
                _ if finding.is_fault() => return Some(finding),
                _ => _ = unpromised.get_or_insert(finding),
            }
        }
        unpromised.or(outranked)
    }

    /// Whether `task` lags behind the right that the policy declares, or behind that of the one
    /// that sleeps until it runs.
    fn is_owed(&self, task: TaskId) -> bool {
        let inherits = |nice| self.state.lag_as(task, self.now, nice) > self.state.round(task);
        self.state.is_owed(task, self.now, self.right) || self.inherits.is_some_and(inherits)
    }

    /// What makes `fault` of `task` a fault.
    fn verdict(&self, task: TaskId, fault: Fault) -> Verdict {
        match fault.tier() {
            // A CPU that idles beside the task could have it at nobody's expense.
            Some(Tier::Share) if !self.state.has_idle(task) => Verdict {
                tier: Some(Tier::Share),
                share: Some(self.share(task)),
                ..Verdict::default()
            },
            Some(Tier::Share) => Verdict {
                tier: Some(Tier::NoRival),
                ..Verdict::default()
            },
            tier => Verdict {
                tier,
                has_server: fault == Fault::Outranked && self.has_server(),
                ..Verdict::default()
            },
        }
    }

    /// Whether the kernel's deadline server gives time to the policy's tasks, whatever higher
    /// classes want.
    fn has_server(&self) -> bool {
        let machine = self.state.machine();
        machine.is_some_and(|machine| machine.kernel >= Kernel::V7_0)
    }

    pub(super) fn share(&self, task: TaskId) -> Share {
        Share {
            right: self.right,
            lag: self.state.lag(task, self.now),
            lag_by_cgroup: self.state.grouped_lag(task, self.now),
            bound: self.state.round(task),
        }
    }

    /// The part of `task`'s wait in which tasks of other classes did not have all its CPUs, if
    /// there was another part.
    fn free_wait(&self, task: TaskId) -> Option<Nanos> {
        let denied = self.state.denied(task, self.now, &self.serving(task));
        let waited = self.state.waited(task, self.now)?;
        (denied > Nanos::ZERO).then(|| Nanos::new(waited.get().saturating_sub(denied.get())))
    }

    /// The CPUs that `task` may use and that serve its queue, or all that it may use where nobody
    /// has served that: a policy may part its CPUs. A balancer that takes from it now and then does
    /// not serve it, unless it promises shares or leaves a CPU idle.
    fn serving(&self, task: TaskId) -> Vec<CpuId> {
        let usable = self.state.usable(task);
        let queue = self.state.entry(task).map(|(queue, _)| queue);
        let has_no_shares = self.right.is_some_and(|right| !right.has_shares());
        let is_parted = has_no_shares && !self.state.has_idle(task);
        let serves = |cpu: &CpuId| {
            let queue = queue.filter(|queue| queue.takers.contains_key(cpu));
            queue.is_some_and(|queue| !is_parted || queue.is_served_by(*cpu))
        };
        let serving: Vec<_> = usable.iter().copied().filter(serves).collect();
        if serving.is_empty() { usable } else { serving }
    }

    /// Whether a higher class explains that `task` waits: without the time in which no policy
    /// could have run it, the wait is not long, or is less than half of a short one.
    fn is_outranked(&self, task: TaskId) -> bool {
        let waited = self.state.waited(task, self.now).unwrap_or(Nanos::ZERO);
        let limit = if waited >= self.long() {
            self.long()
        } else {
            Nanos::new(waited.get() / 2)
        };
        self.free_wait(task).is_some_and(|free| free < limit)
    }

    /// What a long wait is in this run.
    pub(super) fn long(&self) -> Nanos {
        LONG.min(Nanos::new(self.now.since(SimTime::ZERO).get() / LONG_PART))
    }

    /// About the end of the scheduler of this number.
    pub fn ejection(&self, scheduler: u32, exit: &Exit) -> Finding {
        let mut finding = match exit.kind {
            ExitKind::ErrorStall => match self.named(&exit.message, "] failed to run") {
                Some(task) => self.finding(task),
                None => self.longest_open().unwrap_or_else(|| self.nothing()),
            },
            ExitKind::ErrorReenq => self.returned(scheduler, exit),
            _ => self.misuse(scheduler, exit),
        };
        if exit.kind == ExitKind::ErrorStall && finding.fault.is_no_cause() {
            (finding.fault, finding.culprit) = (Fault::Stall, None);
        }
        finding.time = exit.time;
        finding.scheduler = self.state.schedulers.name(scheduler);
        finding.message = Some(exit.message.clone());
        finding.stopped.clone_from(&exit.fault);
        finding
    }

    /// The task that the kernel names, with these words behind it: `name[pid] failed to run for`.
    fn named(&self, message: &str, words: &str) -> Option<TaskId> {
        let (head, _) = message.split_once(words)?;
        let pid: u32 = head.rsplit_once('[')?.1.parse().ok()?;
        let at = self.state.tasks.iter().position(|task| task.pid == pid)?;
        Some(TaskId(u32::try_from(at).ok()?))
    }

    /// A task came back from local queues until the kernel had enough: who inserts it there?
    fn returned(&self, scheduler: u32, exit: &Exit) -> Finding {
        let Some(task) = self.named(&exit.message, "] reenqueued ") else {
            return self.misuse(scheduler, exit);
        };
        let inserted = self.state.tasks[task.index()].inserted;
        let mut finding = self.finding(task);
        finding.fault = Fault::Reenqueued;
        finding.culprit = inserted.map(|deed| self.act(&deed));
        finding.verdict.missing = self.missing(task, scheduler);
        finding
    }

    /// A misuse that ended a scheduler at once.
    fn misuse(&self, scheduler: u32, exit: &Exit) -> Finding {
        let fault = fault_of(exit);
        let failed = self.state.failed.get(&scheduler).copied();
        let subject = failed.map_or(TaskId::NONE, |(task, _)| task);
        let known = subject.index() < self.state.tasks.len();
        let mut finding = if known {
            self.finding(subject)
        } else {
            self.nothing()
        };
        finding.fault = fault;
        finding.culprit = failed.map(|(_, deed)| self.act(&deed));
        finding
    }

    /// About the run, without a victim.
    pub fn nothing(&self) -> Finding {
        Finding {
            idle: self.idle(),
            holders: self.holders(None),
            waiting: self.state.waiting().len(),
            ..Finding::blank(Fault::Unknown, self.now)
        }
    }

    /// About one task.
    pub fn finding(&self, task: TaskId) -> Finding {
        let queue = self.state.entry(task).map(|_| self.queue(task));
        let (fault, culprit) = self.in_turn(task, self.why(task));
        let own = self.state.entry(task).map(|(queue, _)| queue);
        let of = own.map_or(0, |queue| queue.of);
        let needed = match own.map(|queue| State::kind_of(queue.id)) {
            Some(Kind::Local(cpu)) => Some(cpu),
            _ => None,
        };
        Finding {
            fault,
            verdict: Verdict {
                missing: self.missing(task, of),
                ..self.verdict(task, fault)
            },
            time: self.now,
            scheduler: None,
            message: None,
            stopped: None,
            victim: Some(self.victim(task)),
            culprit: culprit.map(|deed| self.act(&deed)),
            also: self.choice(task, fault),
            queue,
            idle: self.idle(),
            holders: self.holders(needed),
            longest: self.longest(task),
            waiting: self.state.waiting().len(),
        }
    }

    /// What `scheduler` lacked if a local queue has turned `task` away since it waits.
    fn missing(&self, task: TaskId, scheduler: u32) -> Option<MissingRight> {
        let since = self.state.tasks[task.index()].runnable_since?;
        let (cpu, rights) = self.state.caps.missing(scheduler, task, since)?;
        Some(MissingRight { cpu, rights })
    }

    /// How long `task` has been in its queue.
    pub fn stay(&self, task: TaskId) -> Option<Nanos> {
        self.state.entry(task)?;
        Some(self.now.since(self.put_at(task)))
    }

    /// About a task that leaves its queue, to run: somebody has come for it in the end.
    pub fn leaving(&self, task: TaskId) -> Finding {
        let put = self.state.tasks[task.index()].put;
        let found = if self.is_outranked(task) {
            (Fault::Outranked, None)
        } else if self.overtaken(task) > 0 && self.is_owed(task) {
            (Fault::PassedOver, self.headed(task).or(put))
        } else {
            self.held(&self.state.usable(task), self.put_at(task), put)
        };
        let (fault, culprit) = self.in_turn(task, found);
        Finding {
            fault,
            verdict: self.verdict(task, fault),
            culprit: culprit.map(|deed| self.act(&deed)),
            also: self.choice(task, fault),
            ..self.finding(task)
        }
    }

    /// What chose another task in the queue of `id`, where a policy did that itself: the insert
    /// alone does not make it pass others over then.
    fn choice(&self, id: TaskId, fault: Fault) -> Option<Act> {
        let (queue, _) = self
            .state
            .entry(id)
            .filter(|_| fault == Fault::PassedOver)?;
        queue.chosen.map(|deed| self.act(&deed))
    }

    pub(super) fn act(&self, deed: &Deed) -> Act {
        Act {
            time: deed.time,
            cpu: deed.cpu,
            callback: deed.caller.name(),
            place: self.places.get(deed.place).cloned(),
        }
    }

    pub(super) fn victim(&self, id: TaskId) -> Victim {
        let task = &self.state.tasks[id.index()];
        let standing = match task.place {
            _ if !task.is_managed && task.put.is_none() => {
                if self.state.has_decisions() {
                    Standing::Elsewhere
                } else {
                    Standing::Unknown
                }
            }
            Where::Kept => Standing::Nowhere,
            Where::Queue(index) => match self.state.queues.get(&index).map(|queue| queue.id) {
                Some(id) => match State::kind_of(id) {
                    Kind::Local(cpu) => Standing::Local(cpu),
                    Kind::Global => Standing::Global,
                    Kind::Policy => Standing::Queue(id),
                },
                None => Standing::Unknown,
            },
            Where::Out | Where::Unknown => Standing::Unknown,
        };
        let put = task.put;
        let trigger = task
            .trigger
            .filter(|(time, _)| Some(*time) == put.map(|put| put.time));
        Victim {
            task: id,
            name: task.name.clone(),
            pid: task.pid,
            since: task.runnable_since.filter(|_| task.on.is_none()),
            waited: self.state.waited(id, self.now).unwrap_or(Nanos::ZERO),
            standing,
            put: put.map(|deed| self.act(&deed)),
            trigger: trigger.map(|(_, what)| what),
        }
    }

    fn queue(&self, id: TaskId) -> QueueView {
        let (queue, entry) = self.state.entry(id).expect("the caller has seen it");
        let since = self.put_number(id);
        let usable = self.state.usable(id);
        let empty = self.empty_dispatch_on(&usable, since);
        let other = self.other_look((queue, &usable), since);
        QueueView {
            id: queue.id,
            of: self.state.schedulers.prefix(queue.of),
            is_passed_by: self.state.is_passed_by(queue, since),
            depth: u32::try_from(queue.tasks.len())
                .unwrap_or(u32::MAX)
                .max(queue.depth),
            last_look: queue.last_look.map(|deed| self.act(&deed)),
            looks: queue.looks_since(entry),
            overtaken: self.overtaken(id),
            readers: queue.readers_since(entry).map(|(cpu, _)| cpu).collect(),
            empty_dispatch: empty.map(|deed| self.act(&deed)),
            other_look: other.map(|(deed, queue)| {
                let of = self.state.schedulers.prefix(queue.of);
                (self.act(&deed), QueueName { of, id: queue.id })
            }),
        }
    }

    fn put_at(&self, id: TaskId) -> SimTime {
        let put = self.state.tasks[id.index()].put;
        put.map_or(SimTime::ZERO, |put| put.time)
    }

    /// The number of what put it there.
    fn put_number(&self, id: TaskId) -> u64 {
        let put = self.state.tasks[id.index()].put;
        put.map_or(0, |put| put.number)
    }

    /// Tasks that came to its queue later and were taken, by CPUs that it may use.
    fn overtaken(&self, id: TaskId) -> u64 {
        let entry = self.state.entry(id).map(|(_, entry)| entry);
        let by = entry.into_iter().flat_map(|entry| &entry.overtaken);
        by.filter(|(cpu, _)| self.state.may_run(id, **cpu))
            .map(|(_, tasks)| tasks)
            .sum()
    }

    /// The last look on one of `cpus` since `since` that took a task from another queue than `own`.
    fn other_look(&self, (own, cpus): (&Queue, &[CpuId]), since: u64) -> Option<(Deed, &Queue)> {
        let looks = cpus.iter();
        let looks = looks.filter_map(|cpu| self.state.cpus[cpu.index()].took);
        let looks = looks.filter_map(|(deed, index)| {
            let queue = self.state.queues.get(&index)?;
            let is_other = (queue.of, queue.id) != (own.of, own.id);
            (deed.number > since && is_other).then_some((deed, queue))
        });
        looks.max_by_key(|(deed, _)| deed.number)
    }

    fn idle(&self) -> Vec<IdleCpu> {
        let cpus = (0u16..).map(CpuId).zip(&self.state.cpus);
        let idle = cpus.filter(|(_, cpu)| cpu.task.is_none() && !cpu.is_offline);
        idle.map(|(number, cpu)| IdleCpu {
            cpu: number,
            since: cpu.since,
            kicked: cpu.kicked.filter(|time| *time >= cpu.since),
            claimed: cpu.claimed.map(|deed| self.act(&deed)),
        })
        .collect()
    }

    /// Who holds `needed`, or every CPU that does not idle.
    fn holders(&self, needed: Option<CpuId>) -> Vec<Holder> {
        let cpus = (0u16..).map(CpuId).zip(&self.state.cpus);
        let cpus = cpus.filter(|(number, _)| needed.is_none_or(|needed| needed == *number));
        let held = cpus.filter_map(|(number, cpu)| {
            let task = self.state.tasks.get(cpu.task?.index())?;
            Some(Holder {
                cpu: number,
                name: task.name.clone(),
                since: cpu.since,
                slice: task
                    .slice
                    .filter(|_| task.is_managed)
                    .map(|(slice, _)| slice),
                given: task.slice.map(|(_, deed)| self.act(&deed)),
            })
        });
        held.collect()
    }

    /// Who had a CPU that `id` may use for half of its wait or longer, and for how long.
    fn longest(&self, id: TaskId) -> Option<(Holder, Nanos)> {
        let since = self.state.tasks[id.index()].runnable_since?;
        let (cpu, stint) = self.state.longest_stint(id, self.now)?;
        let span = stint.after(since);
        let task = self.state.tasks.get(stint.task.index())?;
        // Who has it now is named among the holders.
        let has_it = self.state.cpus[cpu.index()].since == stint.from;
        if has_it || span.get() < self.now.since(since).get() / 2 {
            return None;
        }
        let given = stint.slice.filter(|_| task.is_managed);
        let holder = Holder {
            cpu,
            name: task.name.clone(),
            since: stint.from,
            slice: given.map(|(slice, _)| slice),
            given: given.map(|(_, deed)| self.act(&deed)),
        };
        Some((holder, span))
    }

    /// Why `task` waits, and what to look at first.
    fn why(&self, id: TaskId) -> (Fault, Option<Deed>) {
        let task = &self.state.tasks[id.index()];
        if !self.state.has_decisions() {
            return (Fault::Unknown, None);
        }
        let has_history = task.put.is_some() || task.is_managed;
        if has_history && task.place != Where::Out && self.is_outranked(id) {
            return (Fault::Outranked, None);
        }
        match task.place {
            Where::Kept => match task.ignored {
                Some(deed) => (Fault::InsertIgnored, Some(deed)),
                None => (Fault::Lost, task.let_go.or(task.put)),
            },
            Where::Queue(_) => match self.state.entry(id) {
                Some((queue, _)) => match State::kind_of(queue.id) {
                    Kind::Local(cpu) => self.in_local(id, cpu),
                    Kind::Global | Kind::Policy => self.in_queue(id),
                },
                None => (Fault::Unknown, task.put),
            },
            Where::Out | Where::Unknown => (Fault::Waited, task.put),
        }
    }

    /// The task is in the local queue of `cpu`.
    fn in_local(&self, id: TaskId, cpu: CpuId) -> (Fault, Option<Deed>) {
        let task = &self.state.tasks[id.index()];
        let put = task.put;
        let Some(holder) = self.state.cpus.get(cpu.index()) else {
            return (Fault::Unknown, put);
        };
        let Some(running) = holder
            .task
            .and_then(|task| self.state.tasks.get(task.index()))
        else {
            return (Fault::ForgottenKick, put);
        };
        let overtaken = self.overtaken(id);
        if running.outranks() {
            // Of another class: no slice of the policy ends it. What was there before is the
            // higher class's doing, whatever callbacks the policy has, and so is the task that
            // ran, which the kernel puts there itself.
            let came = holder.outranked.unwrap_or_default();
            let release = Caller::Callback(model::Op::CpuRelease);
            let is_left = self.put_number(id) < came || put.is_some_and(|put| put.is_kernels());
            // Nor did the policy choose this CPU, if it claimed another one for the task and the
            // kernel did not go there, because that one goes offline.
            let is_elsewhere = task.claim.is_some_and(|claimed| claimed != cpu);
            let is_released = put.is_some_and(|put| put.caller == release);
            return if is_left || is_elsewhere || is_released {
                (Fault::Outranked, None)
            } else {
                (Fault::CpuHeld, put)
            };
        }
        match self.grip(cpu, self.put_at(id)) {
            Some(given) => (Fault::CpuHeld, Some(given)),
            None if overtaken > 0 && self.is_owed(id) => {
                (Fault::PassedOver, self.headed(id).or(put))
            }
            None if running.slice.is_none() => (Fault::CpuHeld, put),
            None => (Fault::Waited, put),
        }
    }

    /// What gave the task that runs on `cpu` a slice with which it holds the CPU for long, seen
    /// since `since`: one that goes on, or one that was renewed again and again meanwhile.
    fn grip(&self, cpu: CpuId, since: SimTime) -> Option<Deed> {
        self.seen_grip(cpu, since).or_else(|| self.unseen_grip(cpu))
    }

    /// The slice of the policy's task that has `cpu` is over since long, and nobody was asked for
    /// another task: something renews it that the events do not have, as those of a real kernel
    /// lack what a program writes into a task.
    fn unseen_grip(&self, cpu: CpuId) -> Option<Deed> {
        let (task, run) = self.state.unasked(cpu, self.now)?;
        // Without a single `dispatch` they were not recorded.
        if self.state.cpus.iter().all(|cpu| cpu.dispatch.is_none()) {
            return None;
        }
        let (slice, given) = self.state.tasks.get(task.index())?.slice?;
        (run.get() > slice.saturating_add(OVERLONG)).then_some(given)
    }

    fn seen_grip(&self, cpu: CpuId, since: SimTime) -> Option<Deed> {
        let held_from = self.state.cpus[cpu.index()].since;
        let task = self.state.cpus[cpu.index()].task?;
        let task = self.state.tasks.get(task.index())?;
        let (slice, given) = task.slice.filter(|_| task.is_managed)?;
        let held = self.now.since(held_from.max(since)).get();
        let goes_on = slice > held.max(OVERLONG);
        let is_renewed = given.time > held_from && !given.is_kernels() && held > OVERLONG;
        (goes_on || is_renewed).then_some(given)
    }

    /// The task is in a queue that some CPU must look at.
    fn in_queue(&self, id: TaskId) -> (Fault, Option<Deed>) {
        let put = self.state.tasks[id.index()].put;
        if self.now.since(self.put_at(id)) < LEAST_ROUND {
            // It has just come, or come anew: nothing is to be seen yet.
            return (Fault::Waited, put);
        }
        let (queue, entry) = self.state.entry(id).expect("the caller has seen it");
        let is_there = |cpu: &CpuId| !self.state.cpus[cpu.index()].is_offline;
        let usable = self.state.usable(id);
        if let Some(refill) = self.refilled(&usable, self.put_number(id)) {
            return (Fault::LocalRefilled, Some(refill));
        }
        let (looks, takes) = queue.looks_since(entry);
        let looked = queue.readers_since(entry);
        let looked = looked.filter(|(cpu, _)| self.state.may_run(id, *cpu));
        let looked = looked.map(|(_, look)| look).max_by_key(|it| it.number);
        if looks > 0 && looked.is_none() {
            let number = self.put_number(id);
            let asks = |cpu: &CpuId| self.state.cpus[cpu.index()].dispatch > Some(number);
            let readers = usable.iter().copied().filter(|cpu| asks(cpu));
            let readers: Vec<_> = readers.filter(|cpu| self.might_read(queue, *cpu)).collect();
            let is_busy = |cpu: &CpuId| self.state.cpus[cpu.index()].task.is_some();
            if !usable.is_empty() && !usable.iter().any(asks) && usable.iter().all(is_busy) {
                // Nobody has decided there yet.
                return self.held(&usable, self.put_at(id), put);
            }
            if self.empty_dispatch_on(&readers, number).is_none()
                && let Some(look) = self.other_look_on(&readers, number)
            {
                // They would look there, too, if they did not find work elsewhere first.
                return (Fault::PassedOver, Some(look));
            }
            let blind = self.blind_dispatch_on(&usable, number);
            return (Fault::UnreachableQueue, blind.or(put));
        }
        if let Some(left) = self.skipped_on(&usable, queue, self.put_number(id)) {
            return (Fault::Skipped, Some(left));
        }
        // A look long ago says little of those who have looked away since.
        let waited = self.now.since(self.put_at(id)).get();
        let is_read = looked.is_some_and(|look| self.now.since(look.time).get() <= waited / 2);
        if is_read && takes == 0 {
            let fault = if self.is_owed(id) {
                Fault::PassedOver
            } else {
                Fault::Waited
            };
            return (fault, put);
        }
        if is_read && self.overtaken(id) > 0 {
            return if self.is_owed(id) {
                (Fault::PassedOver, self.headed(id).or(put))
            } else {
                (Fault::Waited, put)
            };
        }
        // Those who look there have gone.
        if !queue.readers.is_empty() && !queue.readers.keys().any(is_there) {
            return (Fault::UnreadQueue, put);
        }
        // Those before it were taken: what has happened since the last of them?
        let since = looked.or(put);
        self.unlooked(id, &usable, queue, (since, is_read))
    }

    /// The last direct insert into the local queue of one of `cpus`, if these run what the policy
    /// inserts there and none of them was asked for work since `since`. What came before that says
    /// nothing of the wait.
    fn refilled(&self, cpus: &[CpuId], since: u64) -> Option<Deed> {
        let mut cpus = cpus.iter().map(|cpu| &self.state.cpus[cpu.index()]);
        let is_refilled = |cpu: &Cpu| {
            let is_unasked = cpu.dispatch.is_none_or(|began| began <= since);
            is_unasked && cpu.task.is_some() && cpu.refills[0] > Some(since)
        };
        let last = cpus.clone().filter_map(|cpu| cpu.refilled);
        let last = last.max_by_key(|deed| deed.number);
        last.filter(|_| cpus.all(is_refilled))
    }

    /// Nobody has looked at `queue` since `since`; `is_read`: somebody does so now and then.
    fn unlooked(
        &self,
        id: TaskId,
        usable: &[CpuId],
        queue: &Queue,
        (since, is_read): (Option<Deed>, bool),
    ) -> (Fault, Option<Deed>) {
        let put = self.state.tasks[id.index()].put;
        let number = since.map_or(0, |since| since.number);
        let asks = |cpu: &CpuId| {
            let dispatch = self.state.cpus[cpu.index()].dispatch;
            dispatch.is_some_and(|began| began > number)
        };
        let asked: Vec<CpuId> = usable.iter().copied().filter(asks).collect();
        let readers = asked.iter().copied();
        let readers: Vec<CpuId> = readers.filter(|cpu| self.might_read(queue, *cpu)).collect();
        let empty = self.empty_dispatch_on(&readers, number);
        if empty.is_none()
            && let Some(look) = self.other_look_on(&readers, number)
        {
            return (Fault::PassedOver, Some(look));
        }
        // A reader that exists would have looked at it before, and found it empty.
        let is_unknown =
            queue.looks == 0 && self.state.cpus.iter().any(|cpu| cpu.dispatch.is_some());
        if let Some(given) = empty.and_then(|empty| self.kept_by_dispatch(&empty)) {
            return (Fault::CpuHeld, Some(given));
        }
        if readers.is_empty() && self.is_left_asleep(usable, queue, number) {
            return (Fault::ForgottenKick, self.unkicked(id, usable));
        }
        if queue.looks == 0
            && self.may_be_of_order()
            && self.empty_dispatch_on(&asked, number).is_none()
            && let Some(look) = self.other_look_on(&asked, number)
        {
            return (Fault::PassedOver, Some(look));
        }
        if !asked.is_empty() || is_unknown {
            let blind = self.blind_dispatch_on(&asked, number);
            let blind = blind.or_else(|| self.guard_on(&asked, number));
            return (Fault::UnreadQueue, self.unread(queue, put, (empty, blind)));
        }
        let idles = |cpu: &CpuId| {
            let cpu = &self.state.cpus[cpu.index()];
            cpu.task.is_none() && (!is_read || self.now.since(cpu.since) >= SETTLED)
        };
        if usable.iter().any(idles) {
            return (Fault::ForgottenKick, self.unkicked(id, usable));
        }
        let since = since.map_or(SimTime::ZERO, |since| since.time);
        self.held(usable, since, put)
    }

    /// Whether a `dispatch` that always finds work may mean to go by a queue at which it has never
    /// looked: so does a strict order, of which nobody has seen the end yet. Whoever promises
    /// shares, or was ended by the kernel for it, did not mean that.
    fn may_be_of_order(&self) -> bool {
        !self.is_ejected && self.right.is_none_or(|right| !right.has_shares())
    }

    /// Whether `queue` is left to CPUs that look at it in their `dispatch`, and those among
    /// `usable` idle without having been asked since `number`.
    fn is_left_asleep(&self, usable: &[CpuId], queue: &Queue, number: u64) -> bool {
        let dispatch = Caller::Callback(model::Op::Dispatch);
        let is_dispatched = queue.last_look.is_some_and(|look| look.caller == dispatch);
        let mut own = usable.iter().filter(|cpu| queue.is_read_by(**cpu));
        let sleeps = |cpu: &CpuId| {
            let cpu = &self.state.cpus[cpu.index()];
            cpu.task.is_none() && cpu.dispatch.is_none_or(|began| began <= number)
        };
        is_dispatched && own.any(sleeps)
    }

    /// Whether `cpu` looks at `queue` at times, or takes from a queue at which a CPU looks that
    /// does: then both go through the same code.
    fn might_read(&self, queue: &Queue, cpu: CpuId) -> bool {
        let took = self.state.cpus[cpu.index()].took;
        let other = took.and_then(|(_, index)| self.state.queues.get(&index));
        let is_policys = |other: &&Queue| State::kind_of(other.id) == Kind::Policy;
        let other = other.filter(is_policys);
        let are_shared = |other: &Queue| other.readers.keys().any(|cpu| queue.is_read_by(*cpu));
        queue.is_read_by(cpu) || other.is_some_and(are_shared)
    }

    /// The class, unless that says no more than that other tasks have the CPUs, and `id` is still
    /// within its round: then it waits for its turn.
    fn in_turn(
        &self,
        id: TaskId,
        (fault, culprit): (Fault, Option<Deed>),
    ) -> (Fault, Option<Deed>) {
        let is_of_order = matches!(
            fault,
            Fault::CpuHeld
                | Fault::PassedOver
                | Fault::UnreadQueue
                | Fault::UnreachableQueue
                | Fault::ForgottenKick
        );
        // Whatever a policy promises, a queue that nobody reads serves nobody.
        let right = self.right.filter(|_| fault.tier() == Some(Tier::Share));
        let has_shares = right.is_none_or(Right::has_shares);
        let pauses = matches!(fault, Fault::UnreadQueue | Fault::Skipped);
        if pauses && self.state.pauses(id, self.now) {
            return (Fault::Waited, self.state.tasks[id.index()].put);
        }
        // Where all its CPUs have gone, it has a right to none, and nobody's turn comes before.
        let is_left = matches!(fault, Fault::UnreadQueue | Fault::UnreachableQueue);
        let is_stranded = is_left && self.state.usable(id).is_empty();
        let is_due = Judge { right, ..*self }.is_owed(id)
            || is_stranded
            || has_shares && self.state.is_shut_out(id, self.now);
        if is_of_order && !self.state.has_idle(id) && !is_due {
            return (Fault::Waited, self.state.tasks[id.index()].put);
        }
        (fault, culprit)
    }

    /// No CPU asks for work: somebody holds them all.
    fn held(&self, cpus: &[CpuId], since: SimTime, put: Option<Deed>) -> (Fault, Option<Deed>) {
        let slices = cpus.iter().filter_map(|cpu| self.grip(*cpu, since));
        let is_outranked = |cpu: &CpuId| self.state.cpus[cpu.index()].outranked.is_some();
        match slices.max_by_key(|given| given.time) {
            Some(given) => (Fault::CpuHeld, Some(given)),
            // Those of other classes end without the policy; those of its own take turns.
            None if !cpus.is_empty() && cpus.iter().all(is_outranked) => (Fault::Outranked, None),
            None => (Fault::Waited, put),
        }
    }
}
