//! When tasks of other classes had which CPUs: nobody of the policy could run there.

use model::{CpuId, Nanos, SimTime};

/// CPUs that are followed; of the others it is unknown, so they count as free.
const FOLLOWED: u16 = 64;
/// Changes that are kept before old ones are looked for.
const FEW: usize = 4096;

/// What was so from when on.
#[derive(Clone, Debug, Default)]
pub(super) struct Higher {
    /// Each change: from then on these CPUs, as bits, have a task of another class.
    changes: Vec<(SimTime, u64)>,
    /// With so many changes it is long.
    limit: usize,
}

impl Higher {
    /// From `now` on `cpu` has a task of another class, or has none any more.
    pub fn note(&mut self, cpu: CpuId, has: bool, now: SimTime) {
        if cpu.0 >= FOLLOWED {
            return;
        }
        let before = self.changes.last().map_or(0, |(_, held)| *held);
        let held = if has {
            before | 1 << cpu.0
        } else {
            before & !(1 << cpu.0)
        };
        self.changes.push((now, held));
    }

    /// For how long, from `since` until `now`, all of `cpus` had such tasks. Zero without CPUs.
    pub fn held_all(&self, cpus: &[CpuId], since: SimTime, now: SimTime) -> Nanos {
        if cpus.is_empty() || cpus.iter().any(|cpu| cpu.0 >= FOLLOWED) {
            return Nanos::ZERO;
        }
        let all = cpus.iter().fold(0, |all, cpu| all | 1_u64 << cpu.0);
        let (mut end, mut held) = (now, 0);
        for (from, mask) in self.changes.iter().rev() {
            let from = (*from).max(since);
            if mask & all == all && end > from {
                held += end.since(from).get();
            }
            end = from;
            if end <= since {
                break;
            }
        }
        Nanos::new(held)
    }

    /// Whether there is something to forget.
    pub fn is_long(&self) -> bool {
        self.changes.len() > self.limit.max(FEW)
    }

    /// Forgets what was before `oldest`.
    pub fn forget(&mut self, oldest: SimTime) {
        let newer = self.changes.partition_point(|(from, _)| *from <= oldest);
        self.changes.drain(..newer.saturating_sub(1));
        self.limit = self.changes.len() * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_in_which_all_cpus_were_held_counts() {
        let at = SimTime::from_nanos;
        let (one, two) = (CpuId(0), CpuId(1));
        let mut higher = Higher::default();
        higher.note(one, true, at(10));
        higher.note(two, true, at(20));
        higher.note(one, false, at(50));
        higher.note(one, true, at(80));
        let held = |cpus: &[CpuId], since| higher.held_all(cpus, at(since), at(100)).get();
        assert_eq!(held(&[one], 0), 40 + 20);
        assert_eq!(held(&[one, two], 0), 30 + 20);
        assert_eq!(held(&[one, two], 40), 10 + 20);
        assert_eq!(held(&[one, two], 90), 10);
        assert_eq!(held(&[two], 0), 80);
        assert_eq!(held(&[], 0), 0);
        assert_eq!(held(&[one, CpuId(64)], 0), 0);
        higher.forget(at(60));
        assert_eq!(higher.held_all(&[one, two], at(60), at(100)).get(), 20);
        assert_eq!(higher.changes.len(), 2);
    }
}
