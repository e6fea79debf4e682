//! Rules that hold from a moment of a trial on.

use model::{Caller, CpuId, Op, Sliced, TaskId};

use crate::cpu::Curr;
use crate::deed::{Account, QueueOrder, Rule};
use crate::dsq::DsqIndex;
use crate::flags;
use crate::machine::Machine;
use crate::task::Class;

impl Machine {
    /// From now on `rule` holds.
    pub(super) fn begin_rule(&mut self, rule: Rule) {
        let rules = &mut self.interventions_mut().rules;
        match rule {
            Rule::NoDirect(queue) => rules.no_direct = Some(queue),
            Rule::KickIdle => rules.kicks_idle = true,
            Rule::InOrder => rules.order = Some(QueueOrder::Arrival),
            Rule::ByWeight => {
                let accounts = (0u32..).map(TaskId).zip(&self.tasks);
                let begin = |task: &crate::task::Task| Account {
                    seen: task.sum_exec,
                    used: 0,
                };
                let accounts = accounts.map(|(id, task)| (id, begin(task))).collect();
                self.interventions_mut().rules.order = Some(QueueOrder::Weight(accounts));
                self.level_queues();
            }
            Rule::SliceAtMost(most) => {
                rules.slice = Some(most);
                self.cut_slices();
            }
        }
    }

    /// Tasks that wait already have used nothing yet.
    fn level_queues(&mut self) {
        for dsq in self.dsqs.indexes() {
            let tasks: Vec<TaskId> = match self.dsqs.clash(dsq, false) {
                Some(_) => self.dsqs.tasks(dsq).collect(),
                None => Vec::new(),
            };
            for id in &tasks {
                self.dsqs.remove(dsq, *id);
            }
            for id in tasks {
                self.dsqs.insert(dsq, id, 0);
            }
        }
    }

    /// Cuts the slices that are longer than the rule allows.
    fn cut_slices(&mut self) {
        for cpu in (0..self.spec.cpus).map(CpuId) {
            if let Curr::Task(_) = self.cpus[cpu].curr() {
                self.update_curr(cpu);
            }
        }
        for id in (0..self.tasks.len() as u32).map(TaskId) {
            if self.task(id).class == Class::Ext && self.bound_slice(id, Sliced::Default) {
                self.tell_slice(id, Sliced::Cut);
            }
        }
    }

    /// `id` has got another slice; whether the rule makes it shorter. A slice that the kernel gives
    /// begins a turn, and so does one for a task that waits.
    #[cold]
    pub(crate) fn bound_slice(&mut self, id: TaskId, why: Sliced) -> bool {
        let (is_running, task) = (self.is_running(id), self.task(id));
        let (slice, ran) = (task.slice, task.sum_exec);
        let Some(all) = &mut self.interventions else {
            return false;
        };
        let rules = &mut all.rules;
        let Some(most) = rules.slice else {
            return false;
        };
        let begin = rules.turns.entry(id).or_insert(ran);
        if !is_running || why == Sliced::Default {
            *begin = ran;
        }
        let left = most.get().saturating_sub(ran.saturating_sub(*begin));
        let is_shorter = left < slice;
        if is_shorter {
            self.set_slice(id, left);
        }
        is_shorter
    }

    /// `caller` has put `id` into `dsq`, because it `wakes` or not.
    pub(super) fn obey_rules(
        &mut self,
        (dsq, id): (DsqIndex, TaskId),
        caller: Caller,
        wakes: bool,
    ) {
        let rules = &self.interventions_mut().rules;
        let (no_direct, kicks_idle) = (rules.no_direct, rules.kicks_idle);
        let is_direct = matches!(caller, Caller::Callback(Op::SelectCpu | Op::Enqueue));
        if self.dsqs.owner(dsq).is_some() {
            let queue = no_direct.filter(|_| is_direct);
            if let Some(queue) = queue.and_then(|queue| self.queue_of(id, queue)) {
                self.leave_dsq(id);
                self.append(id, queue);
            }
            return;
        }
        if self.dsqs.id(dsq) & flags::dsq::BUILTIN == 0 && self.dsqs.is_by_vtime(dsq) {
            self.obey_order((dsq, id), wakes);
        }
        if kicks_idle && let Some(cpu) = self.idle_cpu_for(id) {
            self.kick_by_trial(cpu);
        }
    }

    /// `id` is in `dsq` by its virtual time.
    fn obey_order(&mut self, (dsq, id): (DsqIndex, TaskId), wakes: bool) {
        let (ran, weight) = (self.task(id).sum_exec, u64::from(self.task(id).weight));
        let mut tasks = self.dsqs.tasks(dsq);
        let first = tasks.find(|other| wakes && *other != id);
        drop(tasks);
        match &mut self.interventions_mut().rules.order {
            None => {}
            Some(QueueOrder::Arrival) => self.dsqs.put_last(dsq, id),
            Some(QueueOrder::Weight(accounts)) => {
                // Who has slept has no claim to what it did not use meanwhile.
                let floor = first.and_then(|first| accounts.get(&first));
                let floor = floor.map_or(0, |first| first.used);
                let account = accounts.entry(id).or_default();
                let spent = (ran - account.seen.min(ran)).saturating_mul(100) / weight.max(1);
                *account = Account {
                    seen: ran,
                    used: account.used.saturating_add(spent).max(floor),
                };
                let used = account.used;
                self.dsqs.remove(dsq, id);
                self.dsqs.insert(dsq, id, used);
            }
        }
    }
}
