//! Who decided what: the events of decisions (docs/events.md), for whoever listens.
//!
//! Nobody listens most of the time. Then each kernel function takes one branch more, and nothing
//! is noted.
//!
//! A decision has a *cause*: the callback, and the place in its source. A function that a program
//! calls says where the program is ([`crate::cause::Decisions::come_to`]). What is carried out
//! later keeps the cause of its request and gives it back
//! ([`crate::cause::Decisions::decide_for`]).

use model::{
    Caller, CpuId, EventKind, Exit, ExitKind, Kicked, Looked, NOWHERE, Sink, Sliced, TaskId, Text,
    insert,
};

use crate::cause::Cause;
use crate::dispatch::Buffered;
use crate::dsq::DsqIndex;
use crate::flags::{enq, kick};
use crate::machine::{Machine, Vm};

impl Machine {
    /// Gives the events so far to `sink`, with what it takes to read them.
    pub(crate) fn hand_over(&mut self, vm: &Vm, sink: &mut dyn Sink) {
        for here in std::mem::take(&mut self.decisions.new) {
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

    /// Tells how the policy's time ended.
    pub(crate) fn tell_exit(&self, exit: &Exit, sink: &mut dyn Sink) {
        if self.wants(EventKind::Failed) {
            sink.text(&Text::Exit(exit.clone()));
        }
    }

    /// A decision about `task` on or about `cpu`; `extra` stands above the place.
    #[cold]
    #[inline(never)]
    fn decide(&mut self, kind: EventKind, (task, cpu): (TaskId, CpuId), a: u64, extra: u32) {
        if !self.wants(kind) {
            return;
        }
        self.name_built_in_queues();
        let Cause { caller, place } = self.decisions.cause;
        if place != NOWHERE && self.decisions.told.insert(place) {
            self.decisions.new.push(place);
        }
        let b = u64::from(place) | u64::from(extra) << 32;
        self.emit_detailed((kind, caller.number()), task, cpu, (a, b));
    }

    fn name_built_in_queues(&mut self) {
        if std::mem::replace(&mut self.decisions.has_named, true) {
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
            let what = (EventKind::Queue, self.decisions.cause.caller.number());
            let words = (id, u64::from(dsq.0) | u64::from(is_new) << 32);
            self.emit_detailed(what, TaskId::NONE, self.exec, words);
        }
    }

    /// A queue of the policy's came to be, or is about to be destroyed.
    pub(crate) fn tell_queue(&mut self, dsq: DsqIndex, is_new: bool) {
        if self.decisions.listens {
            // Those that are there include this one.
            match self.decisions.has_named {
                true => self.emit_queue(dsq, self.dsqs.id(dsq), is_new),
                false => self.name_built_in_queues(),
            }
        }
    }

    fn queue_words(&self, dsq: DsqIndex) -> u64 {
        u64::from(dsq.0) | u64::from(self.dsqs.len(dsq)) << 32
    }

    /// `id` has come into `dsq`.
    #[inline(always)]
    pub(crate) fn tell_insert(&mut self, dsq: DsqIndex, id: TaskId, flags: u64) {
        if self.decisions.listens {
            self.decide_insert(dsq, id, flags);
        }
    }

    #[cold]
    #[inline(never)]
    fn decide_insert(&mut self, dsq: DsqIndex, id: TaskId, flags: u64) {
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        let extra = bit(flags & enq::DSQ_PRIQ != 0, insert::VTIME)
            | bit(flags & enq::HEAD != 0, insert::HEAD)
            | bit(flags & enq::PREEMPT != 0, insert::PREEMPT)
            | bit(self.decisions.left.take().is_some(), insert::MOVED)
            | bit(self.decisions.cause == Cause::KERNEL, insert::KERNEL);
        let words = self.queue_words(dsq);
        self.decide(EventKind::Insert, (id, self.exec), words, extra);
    }

    /// `ops.enqueue` has ended without a verdict about `id`.
    #[inline]
    pub(crate) fn tell_kept(&mut self, id: TaskId) {
        if self.decisions.listens {
            let outer = std::mem::replace(&mut self.decisions.cause, self.decisions.last);
            self.decide(EventKind::Insert, (id, self.exec), NOWHERE.into(), 0);
            self.decisions.cause = outer;
        }
    }

    /// The executing CPU has looked at `dsq`.
    #[inline]
    pub(crate) fn tell_look(&mut self, dsq: DsqIndex, found: Option<TaskId>, looked: Looked) {
        if self.decisions.listens {
            let mut words = self.queue_words(dsq);
            if found.is_some_and(|id| self.task(id).dsq == Some(dsq)) {
                // It is about to leave.
                words -= 1 << 32;
            }
            let whom = (found.unwrap_or(TaskId::NONE), self.exec);
            self.decide(EventKind::Look, whom, words, looked as u32);
        }
    }

    /// `ops.dispatch` has ended; if it has neither moved nor inserted a task, that is told.
    #[inline]
    pub(crate) fn tell_nothing(&mut self) {
        if self.decisions.listens && self.buffer.len() == 0 && !self.buffer.has_moved() {
            let outer = std::mem::replace(&mut self.decisions.cause, self.decisions.last);
            let whom = (TaskId::NONE, self.exec);
            self.decide(
                EventKind::Look,
                whom,
                NOWHERE.into(),
                Looked::Nothing as u32,
            );
            self.decisions.cause = outer;
        }
    }

    /// A program lets `id` go, which it had in hand, and nobody has inserted it.
    #[inline]
    pub(crate) fn tell_let_go(&mut self, id: TaskId) {
        if self.decisions.listens && self.task(id).dsq.is_none() && !self.buffer.has(id) {
            let whom = (id, self.exec);
            let words = NOWHERE.into();
            self.decide(EventKind::Look, whom, words, Looked::LetGo as u32);
        }
    }

    /// `id` is about to be moved out of its queue by name.
    #[inline]
    pub(crate) fn tell_move(&mut self, id: TaskId) {
        if self.decisions.listens
            && let Some(dsq) = self.task(id).dsq
        {
            self.tell_look(dsq, Some(id), Looked::Move);
        }
    }

    /// `id` has left its queue, if it was in one: because it `runs`, or because it does not want
    /// to.
    #[inline]
    pub(crate) fn tell_removed(&mut self, id: TaskId, runs: bool) {
        if self.decisions.listens
            && let Some(dsq) = self.decisions.left.take()
        {
            let words = self.queue_words(dsq);
            let outer = std::mem::replace(&mut self.decisions.cause, Cause::KERNEL);
            self.decide(EventKind::Remove, (id, self.exec), words, u32::from(!runs));
            self.decisions.cause = outer;
        }
    }

    /// An insert has no effect.
    #[inline]
    pub(crate) fn tell_ignored(&mut self, entry: &Buffered) {
        if self.decisions.listens {
            self.decide(EventKind::Ignored, (entry.task, self.exec), entry.dsq_id, 0);
        }
    }

    /// What has become of a kick of `target`.
    #[inline]
    pub(crate) fn tell_kick(&mut self, target: CpuId, what: Kicked) {
        if self.decisions.listens {
            let caller = u32::from(self.exec.0);
            self.decide(
                EventKind::KickEnd,
                (TaskId::NONE, target),
                what as u64,
                caller,
            );
        }
    }

    /// A kick of `target` is about to be noted.
    #[inline]
    pub(crate) fn tell_asked_kick(&mut self, target: CpuId, flags: u64) {
        if self.decisions.listens {
            let kicks = &self.kicks[self.exec];
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
    pub(crate) fn tell_idle(&mut self, cpu: CpuId, what: u64) {
        if self.decisions.listens {
            self.decide(EventKind::Idle, (TaskId::NONE, cpu), what, 0);
        }
    }

    /// `id` may use certain CPUs from now on.
    #[inline]
    pub(crate) fn tell_allowed(&mut self, id: TaskId) {
        if self.wants(EventKind::Allowed) {
            let task = self.task(id);
            // As the recorder of a kernel says it: `nr_cpus_allowed`, and the CPUs of `cpus_ptr`.
            let (cpu, mask, affinity) = (task.cpu, task.cpus, task.seldom.affinity);
            let words = (
                u64::from(self.masks.count(affinity)),
                self.masks.get(mask).words()[0],
            );
            let what = (EventKind::Allowed, Caller::Kernel.number());
            self.emit_detailed(what, id, cpu, words);
        }
    }

    /// `id` has got another slice.
    #[inline]
    pub(crate) fn tell_slice(&mut self, id: TaskId, why: Sliced) {
        if self.decisions.listens {
            let task = self.task(id);
            let (slice, whom) = (task.slice, (id, task.cpu));
            self.decide(EventKind::Slice, whom, slice, why as u32);
        }
    }

    /// The policy's time ends.
    pub(crate) fn tell_failed(&mut self, kind: ExitKind) {
        if self.decisions.listens {
            let subject = self.contexts.innermost().subject;
            let subject = match subject {
                TaskId::NONE => self.decisions.subject,
                subject => subject,
            };
            self.decide(EventKind::Failed, (subject, self.exec), kind as u64, 0);
        }
    }
}
