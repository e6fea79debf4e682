//! Which decision to look at first: what was done last, or left out, about a queue.

use model::{Caller, CpuId, NOWHERE, TaskId};

use super::finding::PolicyLine;
use super::judge::Judge;
use super::state::{Deed, Queue};

impl Judge<'_> {
    /// What to look at when no CPU of `usable` was kicked for `id`: a kick of another CPU; or the
    /// claim of one that idles since, by the callback that put the task there; or what put it.
    pub(super) fn unkicked(&self, id: TaskId, usable: &[CpuId]) -> Option<Deed> {
        let put = self.state.tasks[id.index()].put;
        let claims = usable.iter().filter_map(|cpu| {
            let cpu = &self.state.cpus[cpu.index()];
            let claim = cpu.claimed.filter(|_| cpu.task.is_none())?;
            let is_kicked = cpu.kicked.is_some_and(|time| time >= claim.time);
            let is_with = |put: Deed| put.is_with_claim(&claim);
            (!is_kicked && put.is_some_and(is_with)).then_some(claim)
        });
        let claim = claims.max_by_key(|claim| claim.number);
        self.vain_kick(id).or(claim).or(put)
    }

    /// The insert that put another task in front of `id`, which had come before.
    pub(super) fn headed(&self, id: TaskId) -> Option<Deed> {
        self.state.entry(id)?.1.headed
    }

    /// The last `dispatch` on one of `cpus` since `since` that ended without work at a condition
    /// which stands in front of one of its looks: that is why it did not look.
    pub(super) fn guard_on(&self, cpus: &[CpuId], since: u64) -> Option<Deed> {
        let empty = self.empty_dispatch_on(cpus, since)?;
        let place = self.places.get(empty.place)?;
        let looks = self.state.look_places.iter();
        let mut looks = looks.filter_map(|look| self.places.get(*look));
        let is_guard =
            |look: &PolicyLine| look.function == place.function && look.line > place.line;
        let is_look = self.state.look_places.contains(&empty.place);
        (!is_look && looks.any(is_guard)).then_some(empty)
    }

    /// The kick by the callback that put `id` into its queue, which woke a CPU that did not look
    /// there.
    pub(super) fn vain_kick(&self, id: TaskId) -> Option<Deed> {
        let task = &self.state.tasks[id.index()];
        let (queue, _) = self.state.entry(id)?;
        let (kick, cpu) = task.kick?;
        (!queue.is_read_by(cpu)).then_some(kick)
    }

    /// The last word of one of `cpus`: a `dispatch` that looked at `queue` since `since`, and ended
    /// without work.
    pub(super) fn skipped_on(&self, cpus: &[CpuId], queue: &Queue, since: u64) -> Option<Deed> {
        let left = cpus.iter().filter_map(|cpu| {
            let left = queue.skipped.get(cpu)?;
            let state = &self.state.cpus[cpu.index()];
            // Who has a task may have chosen to keep it.
            let began = state.dispatch.filter(|_| state.task.is_none())?;
            (began > since && began < left.number).then_some(*left)
        });
        left.max_by_key(|deed| deed.number)
    }

    /// The last word of one of `cpus`: a `dispatch` that looked at no queue and ended without work
    /// since `since`.
    pub(super) fn blind_dispatch_on(&self, cpus: &[CpuId], since: u64) -> Option<Deed> {
        let blind = cpus.iter().map(|cpu| &self.state.cpus[cpu.index()]);
        let blind = blind.filter(|cpu| cpu.is_blind);
        let blind = blind.filter_map(|cpu| cpu.empty_dispatch);
        blind
            .filter(|deed| deed.number > since && deed.place != NOWHERE)
            .max_by_key(|deed| deed.number)
    }

    /// The last `dispatch` on one of `cpus` since `since` that ended without work.
    pub(super) fn empty_dispatch_on(&self, cpus: &[CpuId], since: u64) -> Option<Deed> {
        let ends = cpus
            .iter()
            .filter_map(|cpu| self.state.cpus[cpu.index()].empty_dispatch);
        ends.filter(|deed| deed.number > since)
            .max_by_key(|deed| deed.number)
    }

    /// The last look on one of `cpus` since `since` that took a task.
    pub(super) fn other_look_on(&self, cpus: &[CpuId], since: u64) -> Option<Deed> {
        let looks = cpus
            .iter()
            .filter_map(|cpu| self.state.cpus[cpu.index()].took);
        let looks = looks.map(|(deed, _)| deed);
        looks
            .filter(|deed| deed.number > since)
            .max_by_key(|deed| deed.number)
    }

    /// What to look at when nobody looks at `queue`: the program that did and has stopped, the
    /// callback that came by without a look at it, or at any queue, or what put the task there.
    pub(super) fn unread(
        &self,
        queue: &Queue,
        put: Option<Deed>,
        (empty, blind): (Option<Deed>, Option<Deed>),
    ) -> Option<Deed> {
        match queue.last_look {
            Some(look) if look.caller == Caller::Program => Some(look),
            Some(_) => {
                let empty = empty.filter(|deed| deed.place != NOWHERE);
                empty.or(blind).or(put)
            }
            None => blind.or(put),
        }
    }

    /// What the `dispatch` that ended without work did for the task that runs: it gave it a slice
    /// in the place of looking for another task.
    pub(super) fn kept_by_dispatch(&self, empty: &Deed) -> Option<Deed> {
        let cpu = self.state.cpus.get(empty.cpu.index())?;
        let task = self.state.tasks.get(cpu.task?.index())?;
        let (_, given) = task.slice.filter(|_| task.is_managed)?;
        let is_by_it = given.time == empty.time && given.caller == empty.caller;
        (is_by_it && given.cpu == empty.cpu && !given.is_kernels()).then_some(given)
    }
}
