//! Whether a task that waits while others have its CPUs only waits for its turn.

use model::{CpuId, Nanos, TaskId};

use super::OVERLONG;
use super::finding::Fault;
use super::judge::Judge;
use super::state::{Deed, Kind, State};

/// The slice of a task whose policy gives it none (`SCX_SLICE_DFL`, kernel 6.18), nanoseconds.
const SLICE_DFL: u64 = 20_000_000;
/// A round lasts at least so long: five slices of the default.
pub(super) const LEAST_ROUND: Nanos = Nanos::from_millis(100);

impl Judge<'_> {
    /// Whether `id` lags behind by more than a round: in its wait it had a right to so much more
    /// CPU time than it got. Whoever is within that waits for its turn, however many others do.
    pub(super) fn is_owed(&self, id: TaskId) -> bool {
        self.state.lag(id, self.now) > self.round(id)
    }

    /// One round: the slices of all that may use a CPU of `id`, shared by these CPUs. A slice
    /// counts for at most [`OVERLONG`], as a fault must not excuse itself, and for the default if
    /// the policy gave none.
    fn round(&self, id: TaskId) -> Nanos {
        let slices = self.state.rivals(id).map(|task| {
            let slice = task.slice.map_or(SLICE_DFL, |(slice, _)| slice);
            slice.min(OVERLONG)
        });
        let cpus = self.usable(id).len().max(1) as u64;
        LEAST_ROUND.max(Nanos::new(slices.sum::<u64>() / cpus))
    }

    /// Whether a CPU idles that `id` may use and that takes tasks from where `id` is. A CPU that
    /// was asked and has never looked there leaves the queue to others: the policy parts its CPUs,
    /// or lets some of them sleep.
    fn has_idle(&self, id: TaskId) -> bool {
        let queue = self.state.entry(id).map(|(queue, _)| queue);
        let is_left = |cpu: CpuId| {
            queue.is_some_and(|queue| {
                !queue.readers.is_empty()
                    && !queue.readers.contains(&cpu)
                    && self.state.cpus[cpu.index()].dispatch.is_some()
            })
        };
        let idles = |cpu: &CpuId| self.state.cpus[cpu.index()].task.is_none();
        self.usable(id)
            .into_iter()
            .any(|cpu| idles(&cpu) && !is_left(cpu))
    }

    /// Whether each CPU that `id` needs is held for longer than a round with a slice that never
    /// ends: then the lag of `id` passes every bound, if slowly where it weighs little.
    fn is_shut_out(&self, id: TaskId) -> bool {
        let local = self
            .state
            .entry(id)
            .map(|(queue, _)| State::kind_of(queue.id));
        let needed = match local {
            Some(Kind::Local(cpu)) => vec![cpu],
            _ => self.usable(id),
        };
        let round = self.round(id);
        let waited = self.state.waited(id, self.now);
        let is_held = |cpu: &CpuId| {
            let Some(cpu) = self.state.cpus.get(cpu.index()) else {
                return false;
            };
            let holder = cpu.task.and_then(|task| self.state.tasks.get(task.index()));
            let slice = holder.and_then(|holder| holder.slice);
            slice.is_some_and(|(slice, _)| slice == u64::MAX) && self.now.since(cpu.since) > round
        };
        waited > Some(round) && !needed.is_empty() && needed.iter().all(is_held)
    }

    /// The class, unless that says no more than that other tasks have the CPUs, and `id` is still
    /// within its round: then it waits for its turn.
    pub(super) fn in_turn(
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
        let is_due = self.is_owed(id) || self.is_shut_out(id);
        if is_of_order && !self.has_idle(id) && !is_due {
            return (Fault::Waited, self.state.tasks[id.index()].put);
        }
        (fault, culprit)
    }
}
