//! Rights of schedulers below the root on CPUs: what one lacked whose task was turned away.

use std::collections::BTreeMap;

use model::{CpuId, SimTime, TaskId};

/// Where tasks are that a local queue did not take, a queue for each CPU (`SCX_DSQ_REJECT`, kernel
/// 7.3).
const REJECT: u64 = 1 << 63 | 4;
/// Rights (`SCX_CAP_ENQ_IMMED` and `SCX_CAP_ENQ`, kernel 7.3). The second one brings the first.
const ENQ_IMMED: u64 = 1;
const ENQ: u64 = 2;

/// Names of rights.
type CapNames = &'static [&'static str];

/// What the run has told of rights.
#[derive(Clone, Debug, Default)]
pub(super) struct CapsInEffect {
    /// By scheduler and CPU, for schedulers that are called when these change.
    known: BTreeMap<(u32, CpuId), u64>,
    /// The index of the first CPU's queue of those that were turned away.
    first: Option<u32>,
    /// When which CPU's local queue has turned a task away last.
    away: BTreeMap<TaskId, (SimTime, CpuId)>,
}

impl CapsInEffect {
    /// `ops.sub_ecaps_updated` of a scheduler is called on `cpu` with these words: the rights
    /// before stand above those that are in effect.
    pub fn told(&mut self, (scheduler, cpu): (u32, CpuId), words: u64) {
        self.known.insert((scheduler, cpu), words & 0xff);
    }

    /// The queue of this index has this number.
    pub fn named(&mut self, index: u32, id: u64) {
        if id == REJECT {
            self.first = Some(self.first.map_or(index, |first| first.min(index)));
        }
    }

    /// A task comes into the queue of this index.
    pub fn inserted(&mut self, task: TaskId, (index, id): (u32, u64), now: SimTime) {
        let cpu = self.first.and_then(|first| index.checked_sub(first));
        if let Some(cpu) = cpu.filter(|_| id == REJECT) {
            self.away.insert(task, (now, CpuId(cpu as u16)));
        }
    }

    /// What `scheduler` lacked when its `task` was turned away last, and on which CPU; `None`: it
    /// was not since `since`.
    pub fn missing(
        &self,
        scheduler: u32,
        task: TaskId,
        since: SimTime,
    ) -> Option<(CpuId, CapNames)> {
        let (_, cpu) = *self.away.get(&task).filter(|(time, _)| *time >= since)?;
        let caps = self.known.get(&(scheduler, cpu)).copied();
        // Nothing is in effect on a CPU of which whoever is called for it has not heard yet.
        let hears = self.known.keys().any(|(who, _)| *who == scheduler);
        let rights: CapNames = match caps.or(hears.then_some(0)) {
            None => &[],
            Some(caps) if caps & ENQ != 0 => &["SCX_CAP_PREEMPT"],
            Some(caps) if caps & ENQ_IMMED != 0 => &["SCX_CAP_ENQ"],
            Some(_) => &["SCX_CAP_ENQ", "SCX_CAP_ENQ_IMMED"],
        };
        Some((cpu, rights))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_follows_from_what_is_in_effect_on_the_cpu() {
        let mut caps = CapsInEffect::default();
        let (now, task) = (SimTime::from_nanos(5), TaskId(0));
        for index in [5, 6] {
            caps.named(index, REJECT);
        }
        caps.inserted(task, (6, REJECT), now);
        let missing = |caps: &CapsInEffect| caps.missing(1, task, now);
        assert_eq!(missing(&caps), Some((CpuId(1), &[][..])), "unknown");
        caps.told((1, CpuId(0)), ENQ | ENQ_IMMED);
        let none = &["SCX_CAP_ENQ", "SCX_CAP_ENQ_IMMED"][..];
        assert_eq!(missing(&caps), Some((CpuId(1), none)), "not yet");
        caps.told((1, CpuId(1)), 0xf00 | ENQ_IMMED);
        assert_eq!(missing(&caps), Some((CpuId(1), &["SCX_CAP_ENQ"][..])));
        assert_eq!(caps.missing(1, task, SimTime::from_nanos(6)), None);
    }
}
