//! Deadline tasks: a constant bandwidth server each, the earliest deadline first.
//!
//! Source: `enqueue_task_dl()`, `update_dl_entity()`, `update_curr_dl_se()`, `dl_task_timer()`,
//! `replenish_dl_entity()`, `yield_task_dl()` and `sched_dl_overflow()`, kernel 6.18,
//! kernel/sched/deadline.c. The rule is that of Abeni and Buttazzo (1998), "Integrating Multimedia
//! Applications in Hard Real-Time Systems". Approximated: whenever a CPU has scheduled, the
//! waiting tasks with the earliest deadlines take the CPUs with the latest, where the kernel
//! pushes and pulls one by one; bandwidth that a task gives back can be had at once, not when its
//! deadline has passed; no reclaiming, no inheritance. docs/fidelity.md says so.
//!
//! Those that are ready stand in front of the real-time tasks in [`crate::cpu::Cpu::rt`]; one that
//! waits for its next budget stands nowhere.

use std::collections::BTreeMap;

use model::{CpuId, SimTime, TaskId};
use workload::{Budget, SchedPolicy};

use crate::cpu::Curr;
use crate::flags::{deq, enq};
use crate::machine::Machine;
use crate::pending::Pending;
use crate::task::{Class, RunState};
use crate::work::WorkError;

/// Bits that the kernel cuts off before it multiplies times (`DL_SCALE`).
const SCALE: u32 = 10;
/// Bits behind the point of a share of CPU time (`BW_SHIFT`).
const SHIFT: u32 = 20;
/// What deadline tasks may have of each CPU: 95 % (`sched_rt_runtime_us` of 1 s), less the 50 ms
/// of each second that the server of the classes below has (`fair_server`, 6.12 and later).
const PART_OF_A_CPU: u64 = ratio(1_000_000, 950_000) - ratio(1_000_000, 50_000);

/// The share `part` of `whole`, in units of 2^-20 (`to_ratio()`).
const fn ratio(whole: u64, part: u64) -> u64 {
    (part << SHIFT) / whole
}

/// All deadline tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadlines {
    /// Whether there has been one.
    any: bool,
    entities: BTreeMap<TaskId, Entity>,
    /// Budgets filled up by timers, so that a timer of an earlier one is recognised.
    generation: u64,
}

impl Deadlines {
    /// Whether there has been one.
    #[inline]
    pub const fn any(&self) -> bool {
        self.any
    }
}

/// `struct sched_dl_entity`.
#[derive(Clone, Copy, Debug)]
struct Entity {
    budget: Budget,
    /// What is left of the budget, nanoseconds; below zero it used too much.
    runtime: i64,
    /// When the budget must have been had, nanoseconds.
    deadline: u64,
    /// It waits for a budget.
    throttled: bool,
    /// It has given up the rest of its budget.
    yielded: bool,
    /// It has had no budget yet.
    fresh: bool,
    generation: u64,
}

impl Entity {
    fn new(budget: Budget) -> Self {
        Self {
            budget,
            runtime: 0,
            deadline: 0,
            throttled: false,
            yielded: false,
            fresh: true,
            generation: 0,
        }
    }

    fn share(&self) -> u64 {
        ratio(self.budget.period.get(), self.budget.runtime.get())
    }

    /// When the next period begins (`dl_next_period()`).
    fn next_period(&self) -> u64 {
        (self.deadline + self.budget.period.get()).saturating_sub(self.budget.deadline.get())
    }

    /// The full budget, from `now` on (`replenish_dl_new_period()`).
    fn begin_anew(&mut self, now: u64) {
        self.deadline = now + self.budget.deadline.get();
        self.runtime = self.budget.runtime.get().cast_signed();
        self.fresh = false;
    }

    /// What remains of the budget, used until the deadline, is more than its share
    /// (`dl_entity_overflow()`).
    fn overflows(&self, now: u64) -> bool {
        let scaled = |time: i64| i128::from(time >> SCALE);
        let signed = |time: u64| time.cast_signed();
        let left = scaled(signed(self.budget.deadline.get())) * scaled(self.runtime);
        let until = signed(self.deadline) - signed(now);
        let right = scaled(until) * scaled(signed(self.budget.runtime.get()));
        right < left
    }

    /// What a wakeup does (`update_dl_entity()`).
    fn wake(&mut self, now: u64) {
        if self.deadline >= now && !self.overflows(now) {
            return;
        }
        let is_constrained = self.budget.deadline != self.budget.period;
        if is_constrained && self.deadline >= now {
            // `update_dl_revised_wakeup()`
            let density = ratio(self.budget.deadline.get(), self.budget.runtime.get());
            let laxity = self.deadline - now;
            let runtime = (u128::from(density) * u128::from(laxity)) >> SHIFT;
            self.runtime = i64::try_from(runtime).unwrap_or(i64::MAX);
            return;
        }
        self.begin_anew(now);
    }

    /// Fills the budget up (`replenish_dl_entity()`).
    fn replenish(&mut self, now: u64) {
        if self.yielded {
            self.runtime = self.runtime.min(0);
        }
        while self.runtime <= 0 {
            self.deadline += self.budget.period.get();
            self.runtime += self.budget.runtime.get().cast_signed();
        }
        if self.deadline < now {
            self.begin_anew(now);
        }
        self.yielded = false;
        self.throttled = false;
    }
}

impl Machine {
    fn dl(&self, id: TaskId) -> Option<&Entity> {
        self.deadlines.entities.get(&id)
    }

    fn dl_mut(&mut self, id: TaskId) -> &mut Entity {
        let found = self.deadlines.entities.get_mut(&id);
        found.expect("a task of this class was admitted")
    }

    /// Whether the deadline of `id` comes before that of the task `other`. One that is no deadline
    /// task has none.
    pub(crate) fn is_due_before(&self, id: TaskId, other: TaskId) -> bool {
        match (self.dl(id), self.dl(other)) {
            (Some(own), Some(other)) => own.deadline < other.deadline,
            (own, None) => own.is_some(),
            (None, _) => false,
        }
    }

    // ---- Who may be one ----

    /// A task gets a policy: a deadline task if there is room for it, else the run ends.
    pub(crate) fn admit(&mut self, id: TaskId, policy: SchedPolicy) -> bool {
        let SchedPolicy::Deadline(budget) = policy else {
            self.dismiss(id);
            return true;
        };
        if self.masks.count(self.task(id).cpus) < u32::from(self.spec.cpus) {
            let why = "a deadline task that is bound to CPUs: the kernel answers EPERM";
            return self.reject(id, budget, why);
        }
        let entity = Entity::new(budget);
        let others = self.deadlines.entities.iter();
        let others = others.filter(|(other, _)| **other != id);
        let taken: u64 = others.map(|(_, entity)| entity.share()).sum();
        let limit = PART_OF_A_CPU * u64::from(self.idle.topology().online().count());
        if limit < taken + entity.share() {
            let percent = |share: u64| (share * 100) >> SHIFT;
            let why = format!(
                "a deadline task that needs {} % of a CPU: of the {} % that deadline tasks may \
                 have, {} % are taken, and the kernel answers EBUSY",
                percent(entity.share()),
                percent(limit),
                percent(taken)
            );
            return self.reject(id, budget, &why);
        }
        self.deadlines.any = true;
        // A new budget of one that has a budget counts from its next period on.
        let known = self.deadlines.entities.entry(id).or_insert(entity);
        known.budget = budget;
        true
    }

    /// There is no room for a deadline task. One that is born as such still has to get to the end
    /// of this moment.
    fn reject(&mut self, id: TaskId, budget: Budget, why: &str) -> bool {
        if self.task(id).seldom.policy == SchedPolicy::Deadline(budget) {
            self.deadlines.entities.insert(id, Entity::new(budget));
        }
        self.refuse_deadline(id, why);
        false
    }

    /// The kernel would refuse something about a deadline task; the workload's author must know.
    pub(crate) fn refuse_deadline(&mut self, id: TaskId, why: &str) {
        let name = self.work.name_of(id);
        let place = format!("{}: {name}", self.workload.file);
        let why = why.to_owned();
        self.object(WorkError::Deadline { place, why });
    }

    /// A task is no deadline task any more.
    pub(crate) fn dismiss(&mut self, id: TaskId) {
        if self.deadlines.any {
            self.deadlines.entities.remove(&id);
        }
    }

    // ---- In and out of the queue ----

    /// Puts a deadline task into its CPU's queue, unless it has to wait for a budget.
    pub(crate) fn enqueue_dl(&mut self, id: TaskId, flags: u64) {
        let now = self.now.as_nanos();
        let entity = self.dl_mut(id);
        if entity.fresh {
            entity.begin_anew(now);
        } else if entity.throttled {
            return;
        } else {
            let is_constrained = entity.budget.deadline != entity.budget.period;
            if is_constrained && entity.deadline < now && now < entity.next_period() {
                // `dl_check_constrained_dl()`: it comes after its deadline.
                entity.runtime = entity.runtime.min(0);
                self.throttle(id);
                return;
            }
            if flags & enq::WAKEUP != 0 {
                entity.wake(now);
            } else if flags & enq::RESTORE != 0 && entity.deadline < now {
                entity.begin_anew(now);
            }
        }
        self.line_up(id);
    }

    /// Behind those with the same deadline.
    fn line_up(&mut self, id: TaskId) {
        let cpu = self.task(id).cpu;
        let queue = &self.cpus[cpu].others().rt;
        let at = queue
            .iter()
            .position(|&other| self.is_due_before(id, other));
        let at = at.unwrap_or(queue.len());
        self.cpus[cpu].others_mut().rt.insert(at, id);
    }

    /// Takes a deadline task off its CPU's queue. One that goes to sleep without a budget gets one
    /// when its period is over.
    pub(crate) fn dequeue_dl(&mut self, id: TaskId, flags: u64) {
        let cpu = self.task(id).cpu;
        if self.is_running(id) {
            self.update_curr(cpu);
        }
        self.cpus[cpu].others_mut().rt.retain(|&other| other != id);
        let sleeps = flags & deq::SLEEP != 0 && self.task(id).state == RunState::Sleeping;
        if sleeps
            && self
                .dl(id)
                .is_some_and(|own| own.runtime <= 0 && !own.throttled)
        {
            self.wait_for_budget(id);
        }
    }

    // ---- The budget ----

    /// Charges a deadline task for `delta` nanoseconds.
    pub(crate) fn charge_deadline(&mut self, id: TaskId, delta: u64) {
        // One that leaves the class has no budget any more.
        if let Some(entity) = self.deadlines.entities.get_mut(&id) {
            entity.runtime = entity.runtime.saturating_sub_unsigned(delta);
        }
    }

    /// The tick of a CPU that runs a deadline task.
    pub(crate) fn tick_dl(&mut self, cpu: CpuId, id: TaskId) {
        self.update_curr(cpu);
        self.end_budget(id);
    }

    /// `sched_yield()` of a deadline task.
    pub(crate) fn yield_deadline(&mut self, id: TaskId) {
        self.update_curr(self.task(id).cpu);
        self.dl_mut(id).yielded = true;
        self.end_budget(id);
    }

    /// Takes a task off the queue whose budget is used up or given up.
    fn end_budget(&mut self, id: TaskId) {
        let ended = |entity: &Entity| !entity.throttled && (entity.runtime <= 0 || entity.yielded);
        if !self.dl(id).is_some_and(ended) {
            return;
        }
        let cpu = self.task(id).cpu;
        self.cpus[cpu].others_mut().rt.retain(|&other| other != id);
        self.throttle(id);
        if self.cpus[cpu].others().rt.first() != Some(&id) {
            self.resched(cpu);
        }
    }

    /// Has a runnable task wait for its next budget; at once, if its time has come.
    fn throttle(&mut self, id: TaskId) {
        if !self.wait_for_budget(id) {
            self.line_up(id);
        }
    }

    /// Arms the timer that fills the budget up. False if its time has passed, and it is full.
    fn wait_for_budget(&mut self, id: TaskId) -> bool {
        let now = self.now.as_nanos();
        self.deadlines.generation += 1;
        let generation = self.deadlines.generation;
        let entity = self.dl_mut(id);
        let when = entity.next_period();
        if when < now {
            entity.replenish(now);
            return false;
        }
        entity.throttled = true;
        entity.generation = generation;
        let what = Pending::Replenish {
            task: id,
            generation,
        };
        let cpu = self.task(id).cpu;
        self.queue.push(SimTime::from_nanos(when), cpu, what);
        true
    }

    /// The timer of a task that waits for its next budget.
    pub(crate) fn replenish_at_timer(&mut self, id: TaskId, generation: u64) {
        let waits = |entity: &Entity| entity.throttled && entity.generation == generation;
        if !self.dl(id).is_some_and(waits) {
            return;
        }
        let now = self.now.as_nanos();
        self.dl_mut(id).replenish(now);
        if self.task(id).state != RunState::Runnable {
            return;
        }
        let cpu = self.task(id).cpu;
        if !self.is_online(cpu) && !self.is_running(id) {
            let online = self.idle.topology().online().first();
            self.set_task_cpu(id, online.expect("one CPU is always online"));
        }
        self.line_up(id);
        // It still runs, if its CPU could not schedule in the meantime.
        if !self.is_running(id) {
            self.wakeup_preempt(self.task(id).cpu, id);
        }
    }

    // ---- On which CPU ----

    /// A CPU has scheduled: what it took from may have used its budget up, and what waits may find
    /// a better place.
    pub(crate) fn after_schedule_dl(&mut self, cpu: CpuId, before: Curr) {
        if let Curr::Task(id) = before
            && self.cpus[cpu].curr() != before
            && self.task(id).class == Class::Dl
            && self.task(id).state == RunState::Runnable
        {
            self.end_budget(id);
        }
        self.spread_deadlines();
    }

    /// Moves waiting deadline tasks, the most urgent first, to CPUs whose task is less urgent: to
    /// one without deadline task, the lowest, else to the one with the latest deadline. One pass
    /// gives the result of the kernel's pushing and pulling, without its intermediate states, and
    /// costs nothing on a machine without deadline tasks.
    pub(crate) fn spread_deadlines(&mut self) {
        while let Some((id, target)) = self.misplaced() {
            let from = self.task(id).cpu;
            self.cpus[from].others_mut().rt.retain(|&other| other != id);
            self.set_task_cpu(id, target);
            self.line_up(id);
            self.resched(target);
        }
    }

    /// The most urgent deadline task that waits although it could run elsewhere, and where.
    fn misplaced(&self) -> Option<(TaskId, CpuId)> {
        let online = self.idle.topology().online();
        // The first of a CPU's queue will run there, unless another one runs there for the moment
        // that it takes to schedule.
        let is_free = |cpu: &CpuId| !self.is_locked_by_another(*cpu);
        let cpus = (0..self.spec.cpus).map(CpuId).filter(is_free);
        let waiting = cpus.flat_map(|cpu| {
            let queue = self.cpus[cpu].others().rt.iter().copied().skip(1);
            queue.filter(|&id| self.task(id).class == Class::Dl && !self.is_running(id))
        });
        let waiting = waiting.filter(|&id| self.task(id).migration_disabled == 0);
        let due = |id: TaskId| self.dl(id).map_or(u64::MAX, |entity| entity.deadline);
        let mut waiting: Vec<TaskId> = waiting.collect();
        waiting.sort_by_key(|&id| (due(id), id));
        waiting.into_iter().find_map(|id| {
            let head = |cpu: CpuId| {
                let first = self.cpus[cpu].others().rt.first();
                first.map_or(u64::MAX, |&first| due(first))
            };
            let best = online
                .iter()
                .filter(is_free)
                .max_by_key(|&cpu| (head(cpu), std::cmp::Reverse(cpu)))?;
            (head(best) > due(id)).then_some((id, best))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Nanos;

    const MS: u64 = 1_000_000;

    fn entity(runtime: u64, deadline: u64, period: u64) -> Entity {
        let mut entity = Entity::new(Budget {
            runtime: Nanos::from_millis(runtime),
            deadline: Nanos::from_millis(deadline),
            period: Nanos::from_millis(period),
        });
        entity.begin_anew(100 * MS);
        entity
    }

    #[test]
    fn a_wakeup_keeps_what_cannot_exceed_the_share() {
        // 10 ms in 100 ms. 5 ms are left, the deadline is at 200 ms: at 149 ms that is less than
        // a tenth of the rest, at 151 ms it is more.
        let mut kept = entity(10, 100, 100);
        kept.runtime = 5 * MS.cast_signed();
        let mut anew = kept;
        kept.wake(149 * MS);
        assert_eq!(
            (kept.runtime, kept.deadline),
            (5 * MS.cast_signed(), 200 * MS)
        );
        anew.wake(151 * MS);
        assert_eq!(
            (anew.runtime, anew.deadline),
            (10 * MS.cast_signed(), 251 * MS)
        );
    }

    #[test]
    fn a_wakeup_behind_the_deadline_begins_anew() {
        let mut late = entity(10, 100, 100);
        late.wake(201 * MS);
        assert_eq!(
            (late.runtime, late.deadline),
            (10 * MS.cast_signed(), 301 * MS)
        );
    }

    #[test]
    fn a_constrained_task_that_wakes_early_keeps_its_deadline_and_gets_less() {
        // 10 ms within 20 ms of each 100 ms: at 110 ms half of the time to the deadline is left.
        let mut early = entity(10, 20, 100);
        early.wake(110 * MS);
        assert_eq!(
            (early.runtime, early.deadline),
            (5 * MS.cast_signed(), 120 * MS)
        );
    }

    #[test]
    fn a_new_budget_pays_back_what_was_used_too_much() {
        let mut over = entity(10, 100, 100);
        over.runtime = -3 * MS.cast_signed();
        over.replenish(200 * MS);
        assert_eq!(
            (over.runtime, over.deadline),
            (7 * MS.cast_signed(), 300 * MS)
        );
        // Two periods' worth.
        over.runtime = -13 * MS.cast_signed();
        over.replenish(300 * MS);
        assert_eq!(
            (over.runtime, over.deadline),
            (7 * MS.cast_signed(), 500 * MS)
        );
    }

    #[test]
    fn what_was_given_up_is_not_added_to_the_next_budget() {
        let mut generous = entity(10, 100, 100);
        generous.yielded = true;
        generous.replenish(200 * MS);
        assert_eq!(
            (generous.runtime, generous.deadline),
            (10 * MS.cast_signed(), 300 * MS)
        );
        assert!(!generous.yielded);
    }

    #[test]
    fn a_budget_that_comes_much_too_late_begins_anew() {
        let mut late = entity(10, 100, 100);
        late.runtime = 0;
        late.replenish(900 * MS);
        assert_eq!(
            (late.runtime, late.deadline),
            (10 * MS.cast_signed(), 1000 * MS)
        );
    }
}
