//! Whether a task that waits while others have its CPUs only waits for its turn.

use model::{CpuId, Nanos, SimTime, TaskId};

use super::OVERLONG;
use super::right::{may_use, weight};
use super::state::{Cpu, Deed, Kind, State};
use super::stint::Stint;
use super::verdict::Right;

/// The slice of a task whose policy gives it none (`SCX_SLICE_DFL`, kernel 6.18), nanoseconds.
pub(super) const SLICE_DFL: u64 = 20_000_000;
/// A round lasts at least so long: five slices of the default.
pub(super) const LEAST_ROUND: Nanos = Nanos::from_millis(100);

impl State {
    /// The CPUs that are there and that `task` may use.
    pub fn usable(&self, task: TaskId) -> Vec<CpuId> {
        let all = (0u16..).map(CpuId).zip(&self.cpus);
        let usable = all.filter(|(number, cpu)| !cpu.is_offline && self.may_run(task, *number));
        usable.map(|(number, _)| number).collect()
    }

    /// Whether `task` may use `cpu`, as far as that was told.
    pub fn may_run(&self, task: TaskId, cpu: CpuId) -> bool {
        let mask = self.tasks[task.index()].mask;
        mask.is_none_or(|mask| may_use(mask, cpu))
    }

    /// Whether `id` lags behind by more than a round: in its wait it had a right to so much more
    /// CPU time than it got. Whoever is within that waits for its turn, however many others do.
    /// Of a policy that declares no `right` it must lag behind by weight and by cgroup.
    pub fn is_owed(&self, id: TaskId, now: SimTime, right: Option<Right>) -> bool {
        let by_weight = || self.lag(id, now);
        let by_cgroup = || self.grouped_lag(id, now).unwrap_or_else(by_weight);
        let lag = match right {
            Some(Right::Weight) => by_weight(),
            Some(Right::Cgroup) => by_cgroup(),
            Some(Right::Rank | Right::Deadline | Right::Nothing) => return false,
            None => by_weight().min(by_cgroup()),
        };
        lag > self.round(id)
    }

    /// The lag of `id` by weight, if it had this nice value all the while.
    pub fn lag_as(&self, id: TaskId, now: SimTime, nice: i8) -> Nanos {
        let lag = self.lag(id, now);
        let (Some(waited), Some(task)) = (self.waited(id, now), self.tasks.get(id.index())) else {
            return lag;
        };
        // Of w / W of its wait it becomes x / (W + x): x the other weight, W that of all.
        let heavier = weight(nice) as f64 / weight(task.nice) as f64;
        let waited = waited.get() as f64;
        let part = lag.get() as f64 * heavier / waited.max(1.0);
        lag.max(Nanos::new((waited * part / (1.0 + part)) as u64))
    }

    /// One round: the slices of all that may use a CPU of `id`, shared by these CPUs. A slice
    /// counts for at most [`OVERLONG`], as a fault must not excuse itself, and for the default if
    /// the policy gave none.
    pub fn round(&self, id: TaskId) -> Nanos {
        if id.index() >= self.tasks.len() {
            return LEAST_ROUND;
        }
        let slices = self.rivals(id).map(|task| {
            let slice = task.slice.map_or(SLICE_DFL, |(slice, _)| slice);
            slice.min(OVERLONG)
        });
        let cpus = self.usable(id).len().max(1) as u64;
        LEAST_ROUND.max(Nanos::new(slices.sum::<u64>() / cpus))
    }

    /// Whether the queue of `id` is left alone for at most twice as long as it was before: a policy
    /// that throttles tasks or gathers them comes back.
    pub fn pauses(&self, id: TaskId, now: SimTime) -> bool {
        let queue = self.entry(id).map(|(queue, _)| queue);
        queue.is_some_and(|queue| queue.pause(now).get() / 2 <= queue.longest_pause.get())
    }

    /// Whether a CPU idles that `id` may use and that takes tasks from where `id` is. A CPU that
    /// was asked and has never looked there leaves the queue to others: the policy parts its CPUs,
    /// or lets some of them sleep.
    pub fn has_idle(&self, id: TaskId) -> bool {
        let queue = self.entry(id).map(|(queue, _)| queue);
        let is_left = |cpu: CpuId| {
            queue.is_some_and(|queue| {
                !queue.readers.is_empty()
                    && !queue.is_read_by(cpu)
                    && self.cpus[cpu.index()].dispatch.is_some()
            })
        };
        let idles = |cpu: &CpuId| self.cpus[cpu.index()].task.is_none();
        self.usable(id)
            .into_iter()
            .any(|cpu| idles(&cpu) && !is_left(cpu))
    }

    /// Whether each CPU that `id` needs is held for longer than a round with a slice that never
    /// ends: then the lag of `id` passes every bound, if slowly where it weighs little.
    pub fn is_shut_out(&self, id: TaskId, now: SimTime) -> bool {
        let local = self.entry(id).map(|(queue, _)| State::kind_of(queue.id));
        let needed = match local {
            Some(Kind::Local(cpu)) => vec![cpu],
            _ => self.usable(id),
        };
        let round = self.round(id);
        let waited = self.waited(id, now);
        let is_held = |cpu: &CpuId| {
            let Some(cpu) = self.cpus.get(cpu.index()) else {
                return false;
            };
            let holder = cpu.task.and_then(|task| self.tasks.get(task.index()));
            let slice = holder.and_then(|holder| holder.slice);
            slice.is_some_and(|(slice, _)| slice == u64::MAX) && now.since(cpu.since) > round
        };
        waited > Some(round) && !needed.is_empty() && needed.iter().all(is_held)
    }
}

impl Cpu {
    /// From `now` on `next` has it, with a slice that was given before.
    pub fn turn_to(&mut self, next: Option<TaskId>, slice: Option<(u64, Deed)>, now: SimTime) {
        if let Some(task) = self.task {
            let (from, slice) = (self.since, self.slice);
            self.stints.push(Stint {
                task,
                from,
                to: now,
                slice,
            });
        }
        (self.task, self.since, self.slice) = (next, now, slice);
    }
}

impl State {
    /// How long the policy's task that has `cpu` has run there since the policy was last asked for
    /// another one.
    pub fn unasked(&self, cpu: CpuId, now: SimTime) -> Option<(TaskId, Nanos)> {
        let (task, before) = self.cpus.get(cpu.index())?.stint?;
        let run = self.tasks.get(task.index())?.run_until(now).get();
        Some((task, Nanos::new(run.saturating_sub(before.get()))))
    }

    /// The turn that kept `task` waiting most until `now`, on one of the CPUs that it may use.
    pub fn longest_stint(&self, task: TaskId, now: SimTime) -> Option<(CpuId, Stint)> {
        let known = self.tasks.get(task.index())?;
        let since = known.runnable_since.filter(|_| known.on.is_none())?;
        let usable = self.usable(task).into_iter();
        let stints = usable.flat_map(|number| {
            let cpu = &self.cpus[number.index()];
            let open = cpu.task.map(|task| Stint {
                task,
                from: cpu.since,
                to: now,
                slice: cpu.slice,
            });
            let ended = cpu.stints.longest_after(since);
            ended.into_iter().chain(open).map(move |it| (number, it))
        });
        stints.max_by_key(|(number, it)| (it.after(since), std::cmp::Reverse(*number)))
    }
}
