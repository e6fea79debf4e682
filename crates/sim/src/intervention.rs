//! What is done to a run that neither its policy nor its load did: the interventions of a trial.
//!
//! A trial repeats a run, does one thing at one moment, and looks what becomes of it
//! (docs/explain.md). Up to that moment the run is the one that is repeated. What an intervention
//! leads to is told as a decision of the kernel's.
//!
//! A run without interventions takes no instruction for them. Each is an event of the queue, and
//! what a rule changes is changed where a decision is told to those who listen.

mod rules;

use model::{Caller, Cause, CpuId, Kicked, Looked, Nanos, Rng, TaskId};

use crate::deed::{Deed, Intervention, Interventions};
use crate::dsq::DsqIndex;
use crate::flags::{self, enq};
use crate::machine::{Machine, Vm};
use crate::pending::Pending;
use crate::task::{Class, RunState};

/// The longest interrupt of [`Deed::Jitter`], nanoseconds: as much as a network card's handler or
/// a timer's takes, and far less than a slice.
const JITTER_NS: u64 = 50_000;

impl Machine {
    /// Puts what is to be done into the queue.
    pub(crate) fn plan_interventions(&mut self, planned: Vec<Intervention>) {
        if planned.is_empty() {
            return;
        }
        // Those of a run that goes on are known already.
        let known = self.interventions.as_ref();
        let first = known.map_or(0, |known| known.planned.len());
        for (index, it) in (first..).zip(&planned) {
            // A program may have taken time before its policy was attached.
            let when = it.at.max(self.now);
            self.queue
                .push(when, CpuId(0), Pending::Intervene { index });
        }
        self.interventions_mut().planned.extend(planned);
    }

    /// Does what was planned under this number.
    #[cold]
    pub(crate) fn intervene(&mut self, vm: &mut Vm, index: usize) {
        let Some(all) = &self.interventions else {
            return;
        };
        match all.planned[index].deed {
            Deed::Kick(cpu) => self.kick_by_trial(cpu),
            Deed::Put { task, cpu } => self.put_by_trial(task, cpu),
            Deed::Insert { task, queue } => self.insert_by_trial(task, queue),
            Deed::Take { task, cpu } => self.interventions_mut().takes.push((cpu, task)),
            Deed::EndSlice(cpu) => {
                if self.has_cpu(cpu.0.into()) {
                    self.end_slice(cpu);
                    self.kick_by_trial(cpu);
                }
            }
            Deed::Keep(task) => {
                if let Some(known) = self.tasks.get(task.index()) {
                    let cpu = known.cpu;
                    self.interventions_mut().keeps.push((task, cpu));
                }
            }
            Deed::Rule(rule) => self.begin_rule(rule),
            Deed::Jitter(seed) => self.jitter(seed),
        }
        self.tell_released(vm);
    }

    fn interventions_mut(&mut self) -> &mut Interventions {
        self.interventions.get_or_insert_default()
    }

    fn kick_by_trial(&mut self, cpu: CpuId) {
        if self.has_cpu(cpu.0.into()) && self.is_online(cpu) {
            self.tell_kick(cpu, Kicked::Asked);
            self.resched(cpu);
            self.tell_kick(cpu, Kicked::Taken);
        }
    }

    /// Whether `id` is a task of the policy's that waits.
    fn waits_for_policy(&self, id: TaskId) -> bool {
        self.tasks.get(id.index()).is_some_and(|task| {
            task.class == Class::Ext
                && task.queued
                && task.state == RunState::Runnable
                && !self.is_running(id)
        })
    }

    /// An idle CPU that `id` may use.
    fn idle_cpu_for(&self, id: TaskId) -> Option<CpuId> {
        let mut cpus = (0..self.spec.cpus).map(CpuId);
        cpus.find(|cpu| self.class_on(*cpu) == Class::Idle && self.may_go(id, *cpu))
    }

    /// Whether `id` may be on `cpu`.
    fn may_go(&self, id: TaskId, cpu: CpuId) -> bool {
        let task = self.task(id);
        self.has_cpu(cpu.0.into())
            && self.is_online(cpu)
            && (task.cpu == cpu || !self.cannot_migrate(id))
            && self.masks.has(task.cpus, cpu)
    }

    fn put_by_trial(&mut self, id: TaskId, cpu: Option<CpuId>) {
        if !self.waits_for_policy(id) {
            return;
        }
        let cpu = cpu.or_else(|| self.idle_cpu_for(id));
        let cpu = cpu.unwrap_or(self.task(id).cpu);
        if self.may_go(id, cpu) {
            self.carry_to(id, cpu);
            self.kick_by_trial(cpu);
        }
    }

    /// Makes a task that waits the first in the local queue of `cpu`, which it may use.
    fn carry_to(&mut self, id: TaskId, cpu: CpuId) {
        if self.task(id).cpu == cpu {
            self.leave_dsq(id);
            self.insert_local(cpu, id, enq::HEAD);
        } else {
            self.migrate_to_local(id, cpu, enq::HEAD);
        }
    }

    fn insert_by_trial(&mut self, id: TaskId, queue: u64) {
        if !self.waits_for_policy(id) {
            return;
        }
        if let Some(dsq) = self.dsqs.user(self.owner(id), queue) {
            self.leave_dsq(id);
            self.append(id, dsq);
            if let Some(cpu) = self.idle_cpu_for(id) {
                self.kick_by_trial(cpu);
            }
        }
    }

    /// Inserts a task that is in no queue at the end of one of the policy's, or by its virtual
    /// time where the policy does so.
    fn append(&mut self, id: TaskId, dsq: DsqIndex) {
        let flags = if self.dsqs.is_by_vtime(dsq) {
            enq::DSQ_PRIQ
        } else {
            0
        };
        self.dispatch_enqueue(dsq, id, flags);
    }

    /// `ops.dispatch` of the executing CPU has ended: takes the task that it is to take.
    #[cold]
    pub(crate) fn take_by_trial(&mut self) {
        let exec = self.turn.exec;
        let Some(all) = &mut self.interventions else {
            return;
        };
        let Some(at) = all.takes.iter().position(|(cpu, _)| *cpu == exec) else {
            return;
        };
        let (_, id) = all.takes.swap_remove(at);
        if !self.waits_for_policy(id) || !self.may_go(id, exec) {
            return;
        }
        let outer = self.turn.decisions.cause();
        self.turn.decisions.decide_for(Cause::KERNEL);
        if let Some(dsq) = self.task(id).dsq {
            self.tell_look(dsq, Some(id), Looked::Kernel);
        }
        self.carry_to(id, exec);
        self.turn.buffer.count_moved(1);
        self.turn.decisions.decide_for(outer);
    }

    /// `id` has come into `dsq`, because it `wakes` or not: moves it where a trial wants it.
    #[cold]
    pub(crate) fn obey_at_insert(&mut self, (dsq, id): (DsqIndex, TaskId), wakes: bool) {
        let Some(all) = &mut self.interventions else {
            return;
        };
        let by = self.turn.decisions.cause();
        let is_policys = by.caller != Caller::Kernel;
        let kept = all.keeps.iter().position(|(task, _)| *task == id);
        if let Some(at) = kept.filter(|_| is_policys) {
            let (_, cpu) = all.keeps.swap_remove(at);
            if self.dsqs.owner(dsq) != Some(cpu) && self.may_go(id, cpu) {
                self.turn.decisions.decide_for(Cause::KERNEL);
                self.carry_to(id, cpu);
                self.kick_by_trial(cpu);
                self.turn.decisions.decide_for(by);
                return;
            }
        }
        self.obey_rules((dsq, id), by.caller, wakes);
    }

    fn jitter(&mut self, seed: u64) {
        let mut rng = Rng::new(seed, JITTER_STREAM);
        for cpu in (0..self.spec.cpus).map(CpuId) {
            let span = Nanos::new(1 + rng.below(JITTER_NS));
            if self.is_online(cpu) {
                self.steal(cpu, span);
            }
        }
        self.queue.draw_ties(rng);
    }

    /// The number of a queue of the policy's in which `id` may stand.
    fn queue_of(&self, id: TaskId, queue: u64) -> Option<DsqIndex> {
        let is_built_in = queue & flags::dsq::BUILTIN != 0;
        self.dsqs
            .user(self.owner(id), queue)
            .filter(|_| !is_built_in)
    }
}

/// Its own stream of draws, which no load has.
const JITTER_STREAM: u64 = u64::MAX - 1;
