//! Who decided what: the events of decisions (docs/events.md), for whoever listens.
//!
//! Nobody listens most of the time. Then each kernel function takes one branch more, and nothing
//! is noted.
//!
//! A decision has a *cause*: the callback, and the place in its source. A function that a program
//! calls says where the program is ([`crate::cause::Decisions::set_place`]). What is carried out
//! later keeps the cause of its request and gives it back
//! ([`crate::cause::Decisions::decide_for`]).

use model::{
    Caller, Cause, CpuId, EventKind, Exit, ExitKind, IdleChange, InQueue, Kicked, Looked, NOWHERE,
    Nanos, Removed, Sink, Sliced, TaskId, Text, What, insert,
};

use crate::buffer::Buffered;
use crate::cgroup::id_of;
use crate::dsq::DsqIndex;
use crate::flags::{enq, kick};
use crate::machine::{Machine, Vm};
use crate::schedulers::SchedId;

impl Machine {
    /// Gives the events so far to `sink`, with what it takes to read them.
    pub(crate) fn hand_over(&mut self, vm: &Vm, sink: &mut dyn Sink) {
        for who in std::mem::take(&mut self.told.new_schedulers) {
            if let Some(text) = self.description_of(who) {
                sink.text(&text);
            }
        }
        for here in std::mem::take(&mut self.told.new) {
            let place = vm.place(here);
            let place = place.map(|it| (it.function, it.file, it.line));
            let (function, file, line) = place.unwrap_or_default();
            sink.text(&Text::Place {
                place: here,
                function,
                file,
                line,
            });
        }
        sink.events(self.recorded());
        self.recorded().clear();
    }

    /// Tells how the policy's time ended, and that of each scheduler below it.
    pub(crate) fn tell_exit(&self, exit: &Exit, sink: &mut dyn Sink) {
        if !self.wants(EventKind::Failed) {
            return;
        }
        sink.text(&Text::Exit(exit.clone()));
        for who in self.scheds.ids() {
            let Some(exit) = self.scheds[who].attachment.exit().cloned() else {
                continue;
            };
            let Some((scheduler, _)) = self.told_number(who) else {
                continue;
            };
            if !self.told.schedulers.contains(&who)
                && let Some(text) = self.description_of(who)
            {
                sink.text(&text);
            }
            sink.text(&Text::SubExit { scheduler, exit });
        }
    }

    // ---- Whose decisions they are ----

    /// The number of a scheduler below the root in events, and the index of its cgroup: numbers
    /// are those of the plan, so that the same one has the same in every run.
    fn told_number(&self, who: SchedId) -> Option<(u32, u32)> {
        let sub = self.sub(who)?;
        Some((sub.plan as u32 + 1, sub.cgroup))
    }

    fn description_of(&self, who: SchedId) -> Option<Text> {
        let (scheduler, cgroup) = self.told_number(who)?;
        let plan = self.sub(who)?.plan;
        Some(Text::Scheduler {
            scheduler,
            policy: self.planned[plan].name.clone(),
            cgroup: self.workload.cgroups[cgroup as usize - 1].path.clone(),
        })
    }

    /// What follows is of the scheduler `who`, which is told if it was another one's.
    #[cold]
    pub(crate) fn turn_to_scheduler(&mut self, who: SchedId) {
        if self.told.scheduler == who || !self.wants(EventKind::Scheduler) {
            return;
        }
        self.told.scheduler = who;
        if who != SchedId::ROOT && !self.told.schedulers.contains(&who) {
            self.told.schedulers.push(who);
            self.told.new_schedulers.push(who);
        }
        let (scheduler, cgroup) = self.told_number(who).unwrap_or((0, 0));
        let cgroup = id_of(cgroup);
        let what = What::Scheduler { scheduler, cgroup };
        self.emit_wanted(TaskId::NONE, self.turn.exec, what);
    }

    /// Whose the decision is that is being made; `None`: the kernel's. All objects lie in one
    /// machine, so the place tells them apart, also where a decision is carried out later.
    fn decider(&self) -> Option<SchedId> {
        let cause = self.turn.decisions.cause;
        if cause.caller == Caller::Kernel {
            return None;
        }
        if cause.place == NOWHERE {
            return Some(self.caller());
        }
        Some(self.whose_object(|it| cause.place >= it.first_place))
    }

    /// A decision about `task` on or about `cpu`. `what` has the cause that is noted.
    #[cold]
    #[inline(never)]
    fn decide(&mut self, task: TaskId, cpu: CpuId, what: What) {
        if !self.wants(what.kind()) {
            return;
        }
        self.name_built_in_queues();
        // An end is told as that of the scheduler which ends, whoever decided it.
        if self.has_subs
            && !matches!(what, What::Failed { .. })
            && let Some(who) = self.decider()
        {
            self.turn_to_scheduler(who);
        }
        let place = self.turn.decisions.cause.place;
        if place != NOWHERE && self.told.places.insert(place) {
            self.told.new.push(place);
        }
        self.emit_wanted(task, cpu, what);
    }

    fn name_built_in_queues(&mut self) {
        if std::mem::replace(&mut self.told.has_named, true) {
            return;
        }
        for dsq in self.dsqs.indexes() {
            let id = match self.dsqs.owner(dsq) {
                Some(cpu) => crate::flags::dsq::LOCAL_ON | u64::from(cpu.0),
                None => self.dsqs.id(dsq),
            };
            self.emit_queue(dsq, id, true);
        }
    }

    fn emit_queue(&mut self, dsq: DsqIndex, id: u64, is_new: bool) {
        if self.wants(EventKind::Queue) {
            let what = What::Queue {
                caller: self.turn.decisions.cause.caller,
                id,
                queue: dsq.0,
                exists: is_new,
            };
            self.emit_wanted(TaskId::NONE, self.turn.exec, what);
        }
    }

    /// A queue of the policy's that executes came to be, or is about to be destroyed.
    pub(crate) fn tell_queue(&mut self, dsq: DsqIndex, is_new: bool) {
        self.tell_queue_of(self.caller(), dsq, is_new);
    }

    /// The same, of a queue of the scheduler `who`.
    pub(crate) fn tell_queue_of(&mut self, who: SchedId, dsq: DsqIndex, is_new: bool) {
        if self.turn.decisions.listens {
            if self.has_subs {
                self.turn_to_scheduler(who);
            }
            // Those that are there include this one.
            if self.told.has_named {
                self.emit_queue(dsq, self.dsqs.id(dsq), is_new);
            } else {
                self.name_built_in_queues();
            }
        }
    }

    fn in_queue(&self, dsq: DsqIndex) -> InQueue {
        InQueue {
            queue: dsq.0,
            depth: self.dsqs.len(dsq),
        }
    }

    /// `id` has come into `dsq`.
    #[inline(always)]
    pub(crate) fn tell_insert(&mut self, dsq: DsqIndex, id: TaskId, flags: u64) {
        if self.turn.decisions.listens {
            self.decide_insert(dsq, id, flags);
        }
    }

    #[cold]
    #[inline(never)]
    fn decide_insert(&mut self, dsq: DsqIndex, id: TaskId, flags: u64) {
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        let by = self.turn.decisions.cause;
        let wakes = flags & enq::WAKEUP != 0;
        let flags = bit(flags & enq::DSQ_PRIQ != 0, insert::VTIME)
            | bit(flags & enq::HEAD != 0, insert::HEAD)
            | bit(flags & enq::PREEMPT != 0, insert::PREEMPT)
            | bit(self.turn.decisions.left.take().is_some(), insert::MOVED)
            | bit(by == Cause::KERNEL, insert::KERNEL);
        let into = self.in_queue(dsq);
        self.decide(id, self.turn.exec, What::Insert { by, into, flags });
        if flags & insert::VTIME != 0 {
            let vtime = self.task(id).vtime;
            self.decide(id, self.turn.exec, What::Vtime { by, vtime });
        }
        self.obey_at_insert((dsq, id), wakes);
    }

    /// `ops.enqueue` has ended without a verdict about `id`.
    #[inline]
    pub(crate) fn tell_kept(&mut self, id: TaskId) {
        if self.turn.decisions.listens {
            let by = self.turn.decisions.last;
            let outer = std::mem::replace(&mut self.turn.decisions.cause, by);
            let kept = What::Insert {
                by,
                into: InQueue::NONE,
                flags: 0,
            };
            self.decide(id, self.turn.exec, kept);
            self.turn.decisions.cause = outer;
        }
    }

    /// The executing CPU has looked at `dsq`.
    #[inline]
    pub(crate) fn tell_look(&mut self, dsq: DsqIndex, found: Option<TaskId>, looked: Looked) {
        if self.turn.decisions.listens {
            let mut at = self.in_queue(dsq);
            if found.is_some_and(|id| self.task(id).dsq == Some(dsq)) {
                // It is about to leave.
                at.depth -= 1;
            }
            let (by, how) = (self.turn.decisions.cause, looked);
            let whom = found.unwrap_or(TaskId::NONE);
            self.decide(whom, self.turn.exec, What::Look { by, at, how });
        }
    }

    /// `ops.dispatch` has ended; if it has neither moved nor inserted a task, that is told.
    #[inline]
    pub(crate) fn tell_nothing(&mut self) {
        if self.turn.decisions.listens {
            self.end_dispatch();
        }
    }

    #[cold]
    #[inline(never)]
    fn end_dispatch(&mut self) {
        self.take_by_trial();
        if self.turn.buffer.len() == 0 && !self.turn.buffer.has_moved() {
            let by = self.turn.decisions.last;
            let outer = std::mem::replace(&mut self.turn.decisions.cause, by);
            let nothing = What::Look {
                by,
                at: InQueue::NONE,
                how: Looked::Nothing,
            };
            self.decide(TaskId::NONE, self.turn.exec, nothing);
            self.turn.decisions.cause = outer;
        }
    }

    /// A program lets `id` go, which it had in hand, and nobody has inserted it.
    #[inline]
    pub(crate) fn tell_let_go(&mut self, id: TaskId) {
        if self.turn.decisions.listens && self.task(id).dsq.is_none() && !self.turn.buffer.has(id) {
            let let_go = What::Look {
                by: self.turn.decisions.cause,
                at: InQueue::NONE,
                how: Looked::LetGo,
            };
            self.decide(id, self.turn.exec, let_go);
        }
    }

    /// `id` is about to be moved out of its queue by name.
    #[inline]
    pub(crate) fn tell_move(&mut self, id: TaskId) {
        if self.turn.decisions.listens
            && let Some(dsq) = self.task(id).dsq
        {
            self.tell_look(dsq, Some(id), Looked::Move);
        }
    }

    /// `id` has left its queue, if it was in one: because it `runs`, or because it does not want
    /// to.
    #[inline]
    pub(crate) fn tell_removed(&mut self, id: TaskId, runs: bool) {
        if self.turn.decisions.listens
            && let Some(dsq) = self.turn.decisions.left.take()
        {
            let (by, from) = (Cause::KERNEL, self.in_queue(dsq));
            let why = if runs { Removed::Runs } else { Removed::Leaves };
            let outer = std::mem::replace(&mut self.turn.decisions.cause, by);
            self.decide(id, self.turn.exec, What::Remove { by, from, why });
            self.turn.decisions.cause = outer;
        }
    }

    /// An insert has no effect.
    #[inline]
    pub(crate) fn tell_ignored(&mut self, entry: &Buffered) {
        if self.turn.decisions.listens {
            let by = self.turn.decisions.cause;
            let id = entry.dsq_id;
            self.decide(entry.task, self.turn.exec, What::Ignored { by, id });
        }
    }

    /// What has become of a kick of `target`.
    #[inline]
    pub(crate) fn tell_kick(&mut self, target: CpuId, fate: Kicked) {
        if self.turn.decisions.listens {
            let (by, caller) = (self.turn.decisions.cause, self.turn.exec);
            self.decide(TaskId::NONE, target, What::KickEnd { by, fate, caller });
        }
    }

    /// A kick of `target` is about to be noted.
    #[inline]
    pub(crate) fn tell_asked_kick(&mut self, target: CpuId, flags: u64) {
        if self.turn.decisions.listens {
            let kicks = &self.kicks[self.turn.exec];
            let is_there = match flags & kick::IDLE {
                0 => kicks.kick.has(target),
                _ => kicks.if_idle.has(target),
            };
            let what = if is_there {
                Kicked::Coalesced
            } else {
                Kicked::Asked
            };
            self.tell_kick(target, what);
        }
    }

    /// `cpu` was claimed, idles or leaves idle.
    #[inline]
    pub(crate) fn tell_idle(&mut self, cpu: CpuId, how: IdleChange) {
        if self.turn.decisions.listens {
            let by = self.turn.decisions.cause;
            self.decide(TaskId::NONE, cpu, What::Idle { by, how });
        }
    }

    /// `id` may use certain CPUs from now on.
    #[inline]
    pub(crate) fn tell_allowed(&mut self, id: TaskId) {
        if self.wants(EventKind::Allowed) {
            let task = self.task(id);
            // As the recorder of a kernel says it: `nr_cpus_allowed`, and the CPUs of `cpus_ptr`.
            let (cpu, mask, affinity) = (task.cpu, task.cpus, task.seldom.affinity);
            let what = What::Allowed {
                caller: Caller::Kernel,
                cpus: self.masks.count(affinity).into(),
                mask: self.masks.get(mask).words()[0],
            };
            self.emit_wanted(id, cpu, what);
        }
    }

    /// `id` has got another slice.
    #[inline]
    pub(crate) fn tell_slice(&mut self, id: TaskId, why: Sliced) {
        if self.turn.decisions.listens {
            self.bound_slice(id, why);
            let task = self.task(id);
            let (slice, cpu) = (Nanos::new(task.slice), task.cpu);
            let by = self.turn.decisions.cause;
            self.decide(id, cpu, What::Slice { by, slice, why });
        }
    }

    /// The time of the scheduler `who` ends.
    pub(crate) fn tell_failed(&mut self, who: SchedId, kind: ExitKind) {
        if self.turn.decisions.listens {
            if self.has_subs {
                self.turn_to_scheduler(who);
            }
            let subject = self.turn.contexts.innermost().subject;
            let subject = match subject {
                TaskId::NONE => self.turn.decisions.subject,
                subject => subject,
            };
            let by = self.turn.decisions.cause;
            let kind = kind as u64;
            self.decide(subject, self.turn.exec, What::Failed { by, kind });
        }
    }
}
