//! What CPU time tasks have a right to while they wait.
//!
//! The right is the max-min fair allocation by weight over the runnable tasks, on the CPUs that
//! they may use and that no higher class has (Bertsekas and Gallager, "Data Networks", 1992,
//! section 6.5.2), exactly, where cgroups do not count.
//!
//! By cgroup, and where `fill` gives up, it is a lower bound. A task that gets less than a whole
//! CPU finds all its CPUs fully used, by tasks that get no more for their weight than it does, and
//! each of these may use one of its CPUs. So a task of weight `w` gets at least `w * CPUs / W`,
//! and at most one CPU, where `W` is the weight of all runnable tasks that may use one of its CPUs.

use std::collections::BTreeMap;

use model::{CpuId, SimTime};

use super::fill::{Demand, fill};

/// Different claims that are followed. A task with another one has no known right.
const MOST_CLAIMS: usize = 64;

/// What makes two tasks have the same right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    /// The CPUs that they may use, the lowest 64, as bits.
    pub mask: u64,
    /// Their nice value.
    pub nice: i8,
    /// The number of their cgroup in the load, 0 for the root; 0 where cgroups do not count.
    pub cgroup: u32,
    /// The number of the nearest cgroup above them that has a limit (`cpu.max`), 0 without one.
    pub limit: u32,
}

impl Claim {
    /// The same where cgroups do not count.
    pub const fn flat(self) -> Self {
        Self { cgroup: 0, ..self }
    }
}

/// The cgroups of a load, and which of its tasks begin where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupWeights {
    /// By number, the root first: its parent, which has a lower number, and its `cpu.weight`.
    pub tree: Vec<(u32, u32)>,
    /// By group of tasks: where they begin; `None`: where their parent is.
    pub of_groups: Vec<Option<u32>>,
    /// By number: its quota and period of `cpu.max`, if it has a limit. Who is throttled for it has
    /// no right to more.
    pub limits: Vec<Option<(u64, u64)>>,
}

impl CgroupWeights {
    /// The nearest cgroup that has a limit, from this one upwards; 0: there is none.
    pub(super) fn limit_of(&self, cgroup: u32) -> u32 {
        let mut at = cgroup;
        while at > 0 && self.limit(at).is_none() {
            at = self.above(at);
        }
        at
    }

    fn limit(&self, cgroup: u32) -> Option<f64> {
        let (quota, period) = (*self.limits.get(cgroup as usize)?)?;
        Some(quota as f64 / period.max(1) as f64)
    }

    /// The parent, which has a lower number; 0 for what is not known.
    fn above(&self, cgroup: u32) -> u32 {
        let known = self.tree.get(cgroup as usize);
        known.map_or(0, |(parent, _)| (*parent).min(cgroup - 1))
    }
}

/// Follows the rights of a machine's tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Rights {
    /// Whether the policy's tasks may have each CPU now.
    free: Vec<bool>,
    claims: BTreeMap<Claim, Claimants>,
    /// Parent and weight of each cgroup, on the scale of [`weight`]; empty where all tasks are
    /// equal members of the root.
    tree: Vec<(usize, u128)>,
    /// Whose limits count.
    limits: CgroupWeights,
    /// The part of a CPU that is due to each task of each claim since `now`, in the order of
    /// `claims`; `None`: something has changed.
    rates: Option<Vec<f64>>,
    now: SimTime,
}

#[derive(Clone, Copy, Debug)]
struct Claimants {
    /// What each of them weighs.
    weight: u128,
    /// The CPUs that they may use and have now.
    cpus: u32,
    /// Those that are runnable.
    tasks: u32,
    /// What one that was runnable all the time has a right to since the begin, in nanoseconds.
    right: f64,
}

impl Rights {
    /// A machine of so many CPUs, which are all there.
    pub fn of(cpus: usize) -> Self {
        Self {
            free: vec![true; cpus],
            ..Self::default()
        }
    }

    /// The same, where nobody gets more than the limits of the cgroups.
    pub fn within(self, limits: &CgroupWeights) -> Self {
        Self {
            limits: limits.clone(),
            ..self
        }
    }

    /// The same, but what a cgroup gets is shared by those in it, as `cpu.weight` says.
    pub fn by_cgroup(cpus: usize, cgroups: &CgroupWeights) -> Self {
        let scaled = |(parent, weight): &(u32, u32)| {
            // A weight of 100 is that of a task of nice 0 (`sched_weight_from_cgroup()`, kernel
            // 6.18, kernel/sched/sched.h).
            let weight = u128::from(*weight).max(1) * 1024 / 100;
            (*parent as usize, weight.max(1))
        };
        Self {
            tree: cgroups.tree.iter().map(scaled).collect(),
            ..Self::of(cpus)
        }
    }

    /// From `now` on the policy's tasks may have this CPU, or may not.
    pub fn set_free(&mut self, cpu: CpuId, is_free: bool, now: SimTime) {
        let known = self.free.get(cpu.index());
        if known.is_none_or(|known| *known == is_free) {
            return;
        }
        self.settle(now);
        self.rates = None;
        self.free[cpu.index()] = is_free;
        for (claim, claimants) in &mut self.claims {
            if may_use(claim.mask, cpu) {
                claimants.cpus = if is_free {
                    claimants.cpus + 1
                } else {
                    claimants.cpus - 1
                };
            }
        }
    }

    /// Whether tasks with these masks may use the same CPU.
    pub fn meet(&self, one: u64, other: u64) -> bool {
        one & other != 0 || self.free.len() > 64
    }

    /// A task that was runnable with the claim `before` is so with `after` from `now` on; `None`:
    /// it is not runnable.
    pub fn change(&mut self, before: Option<Claim>, after: Option<Claim>, now: SimTime) {
        self.settle(now);
        self.rates = None;
        if let Some(before) = before.and_then(|before| self.claims.get_mut(&before)) {
            before.tasks = before.tasks.saturating_sub(1);
        }
        let Some(after) = after else { return };
        if self.claims.len() < MOST_CLAIMS || self.claims.contains_key(&after) {
            let free = &self.free;
            let known = self.claims.entry(after);
            known.or_insert_with(|| Claimants::new(after, free)).tasks += 1;
        }
    }

    /// What a task with this claim had a right to from the begin until `now`, in nanoseconds, if
    /// that is followed. Only differences mean something.
    pub fn total(&self, claim: Claim, now: SimTime) -> Option<f64> {
        let known = self.claims.get(&claim)?;
        let span = since(self.now, now);
        if span <= 0.0 {
            return Some(known.right);
        }
        let at = self.claims.range(..claim).count();
        let rate = match &self.rates {
            Some(rates) => rates[at],
            None => self.all_rates()[at],
        };
        Some(known.right + rate * span)
    }

    fn settle(&mut self, now: SimTime) {
        let span = since(self.now, now);
        if span <= 0.0 {
            return;
        }
        let rates = self.rates.take().unwrap_or_else(|| self.all_rates());
        for (claimants, rate) in self.claims.values_mut().zip(&rates) {
            claimants.right += rate * span;
        }
        self.rates = Some(rates);
        self.now = now;
    }

    /// The part of a CPU that is due to each runnable task of each claim now.
    fn all_rates(&self) -> Vec<f64> {
        self.filled().unwrap_or_else(|| {
            let rate = |(claim, it): (&Claim, &Claimants)| self.least_rate(*claim, it);
            self.claims.iter().map(rate).collect()
        })
    }

    /// The exact one, where cgroups do not count, masks tell all CPUs, and `fill` finds it.
    fn filled(&self) -> Option<Vec<f64>> {
        if !self.tree.is_empty() || self.free.len() > 64 {
            return None;
        }
        let bits = (0..).zip(&self.free).filter(|(_, is_free)| **is_free);
        let free = bits.fold(0, |all: u64, (cpu, _)| all | 1 << cpu);
        let present = || self.claims.iter().filter(|(_, it)| it.tasks > 0);
        let demand = |(claim, it): (&Claim, &Claimants)| Demand {
            cpus: claim.mask & free,
            weight: it.weight as f64,
            most: self.most(*claim, it).min(1.0),
            tasks: f64::from(it.tasks),
        };
        let got = fill(&present().map(demand).collect::<Vec<_>>())?;
        let mut rates = vec![0.0; self.claims.len()];
        let of_present = self.claims.values().zip(&mut rates);
        let of_present = of_present.filter(|(it, _)| it.tasks > 0);
        for ((_, rate), got) in of_present.zip(got) {
            *rate = got;
        }
        Some(rates)
    }

    /// A lower bound of it for one claim.
    fn least_rate(&self, claim: Claim, of: &Claimants) -> f64 {
        let rivals = self.claims.iter();
        let rivals = rivals.filter(|(other, _)| self.meet(claim.mask, other.mask));
        let part = if self.tree.is_empty() {
            let all: u128 = rivals.map(|(_, it)| it.all()).sum();
            of.weight as f64 / all.max(1) as f64
        } else {
            self.part(claim, of, rivals)
        };
        let right = (f64::from(of.cpus) * part).min(1.0);
        right.min(self.most(claim, of))
    }

    /// The part of a CPU that limits leave to each of these.
    fn most(&self, claim: Claim, of: &Claimants) -> f64 {
        let (mut at, mut most) = (claim.limit, f64::INFINITY);
        while at > 0 {
            if let Some(cpus) = self.limits.limit(at) {
                let inside = self.claims.iter();
                let inside = inside.filter(|(other, _)| self.is_within(other.limit, at));
                let all: u128 = inside.map(|(_, it)| it.all()).sum();
                most = most.min(cpus * of.weight as f64 / all.max(of.weight).max(1) as f64);
            }
            at = self.limits.above(at);
        }
        most
    }

    /// Whether the cgroup `inner` is `outer`, or in it.
    fn is_within(&self, inner: u32, outer: u32) -> bool {
        let mut at = inner;
        while at > outer {
            at = self.limits.above(at);
        }
        at == outer
    }

    /// The part that one of these has of what all `rivals` get: that of its cgroup in the cgroup
    /// above, and so on, and its own in its cgroup.
    fn part<'a>(
        &self,
        claim: Claim,
        of: &Claimants,
        rivals: impl Iterator<Item = (&'a Claim, &'a Claimants)>,
    ) -> f64 {
        let place = |number: u32| (number as usize).min(self.tree.len() - 1);
        let mut loads = vec![0_u128; self.tree.len()];
        for (rival, it) in rivals {
            loads[place(rival.cgroup)] += it.all();
        }
        // A cgroup has a higher number than its parent, so this goes from the leaves to the root.
        for number in (1..self.tree.len()).rev() {
            let (parent, weight) = self.tree[number];
            if loads[number] > 0 && parent < number {
                loads[parent] += weight;
            }
        }
        let mut at = place(claim.cgroup);
        let mut part = of.weight as f64 / loads[at].max(1) as f64;
        while at > 0 && self.tree[at].0 < at {
            let (parent, weight) = self.tree[at];
            part *= weight as f64 / loads[parent].max(1) as f64;
            at = parent;
        }
        part
    }
}

impl Claimants {
    /// What all of them that are runnable weigh.
    fn all(&self) -> u128 {
        self.weight * u128::from(self.tasks)
    }

    /// Nobody yet, on the CPUs that are `free`.
    fn new(Claim { mask, nice, .. }: Claim, free: &[bool]) -> Self {
        let cpus = (0u16..).map(CpuId).zip(free);
        let cpus = cpus.filter(|(cpu, is_free)| **is_free && may_use(mask, *cpu));
        Self {
            weight: weight(nice),
            cpus: cpus.count() as u32,
            tasks: 0,
            right: 0.0,
        }
    }
}

/// Whether a task with this mask may use `cpu`, as far as that was told: a mask has 64 CPUs.
pub(super) const fn may_use(mask: u64, cpu: CpuId) -> bool {
    cpu.0 >= 64 || mask >> cpu.0 & 1 != 0
}

/// What a nice value weighs, 1024 at 0: a quarter more each step (`sched_prio_to_weight`,
/// kernel 6.18, kernel/sched/core.c, up to its rounding).
pub(super) fn weight(nice: i8) -> u128 {
    let (up, down) = match nice {
        ..0 => (5_u128, 4_u128),
        _ => (4, 5),
    };
    let steps = u32::from(nice.unsigned_abs());
    1024 * up.pow(steps) / down.pow(steps)
}

/// Nanoseconds from one moment to another, 0 if that comes first.
fn since(from: SimTime, to: SimTime) -> f64 {
    to.since(from.min(to)).get() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = u64::MAX;

    const fn claim(mask: u64, nice: i8) -> Claim {
        Claim {
            mask,
            nice,
            cgroup: 0,
            limit: 0,
        }
    }

    fn at(ms: u64) -> SimTime {
        SimTime::from_nanos(ms * 1_000_000)
    }

    /// Milliseconds, rounded.
    fn due(rights: &Rights, claim: Claim, ms: u64) -> u64 {
        (rights.total(claim, at(ms)).unwrap() / 1e6).round() as u64
    }

    #[test]
    fn a_crowd_shares_the_cpus_and_nobody_has_a_right_to_two() {
        let mut rights = Rights::of(2);
        rights.change(None, Some(claim(ALL, 0)), at(0));
        assert_eq!(due(&rights, claim(ALL, 0), 10), 10, "one of two CPUs");
        for _ in 0..3 {
            rights.change(None, Some(claim(ALL, 0)), at(10));
        }
        assert_eq!(
            due(&rights, claim(ALL, 0), 20),
            15,
            "four tasks on two CPUs"
        );
        rights.change(Some(claim(ALL, 0)), None, at(20));
        rights.change(Some(claim(ALL, 0)), None, at(20));
        assert_eq!(due(&rights, claim(ALL, 0), 30), 25);
    }

    #[test]
    fn weights_count_and_so_does_what_higher_classes_took() {
        let mut rights = Rights::of(1);
        rights.change(None, Some(claim(ALL, 0)), at(0));
        rights.change(None, Some(claim(ALL, -5)), at(0));
        // A nice value of -5 weighs three times as much: 1.25 to the power of 5.
        let light = due(&rights, claim(ALL, 0), 4_000);
        assert!((980..=1_000).contains(&light), "{light}");
        rights.set_free(CpuId(0), false, at(4_000));
        assert_eq!(due(&rights, claim(ALL, 0), 9_000), light);
        rights.set_free(CpuId(0), true, at(9_000));
        assert!(due(&rights, claim(ALL, 0), 13_000) >= 2 * light - 1);
    }

    #[test]
    fn what_a_heavy_task_cannot_use_is_due_to_the_light_ones() {
        let mut rights = Rights::of(2);
        for nice in [-20, 0, 0] {
            rights.change(None, Some(claim(ALL, nice)), at(0));
        }
        assert_eq!(due(&rights, claim(ALL, -20), 10), 10);
        assert_eq!(due(&rights, claim(ALL, 0), 10), 5);
        // Until the end of a turn nothing changes, and then the sum goes on.
        rights.change(Some(claim(ALL, -20)), None, at(10));
        assert_eq!(due(&rights, claim(ALL, 0), 20), 15);
    }

    #[test]
    fn tasks_of_other_cpus_are_no_rivals() {
        let mut rights = Rights::of(2);
        rights.change(None, Some(claim(0b01, 0)), at(0));
        for _ in 0..9 {
            rights.change(None, Some(claim(0b10, 0)), at(0));
        }
        assert_eq!(due(&rights, claim(0b01, 0), 10), 10);
        assert_eq!(due(&rights, claim(0b10, 0), 9), 1);
    }

    #[test]
    fn claims_beyond_those_that_are_followed_have_no_known_right() {
        let mut rights = Rights::of(1);
        for at in 0..100_u64 {
            rights.change(None, Some(claim(1 | at << 1, 0)), SimTime::ZERO);
        }
        assert_eq!(rights.claims.len(), MOST_CLAIMS);
        assert_eq!(rights.total(claim(1 | 99 << 1, 0), at(5)), None);
    }

    /// A fifth of a CPU for two tasks in a cgroup, and no more for one in a cgroup inside of it.
    #[test]
    fn who_is_throttled_has_no_right_to_more_than_the_limit() {
        let cgroups = CgroupWeights {
            tree: vec![(0, 100), (0, 100), (1, 100)],
            limits: vec![None, Some((20_000, 100_000)), None],
            ..CgroupWeights::default()
        };
        assert_eq!([0, 1, 2].map(|it| cgroups.limit_of(it)), [0, 1, 1]);
        let limited = Claim {
            limit: 1,
            ..claim(ALL, 0)
        };
        let mut rights = Rights::of(2).within(&cgroups);
        rights.change(None, Some(limited), at(0));
        assert_eq!(due(&rights, limited, 100), 20, "alone on two CPUs");
        rights.change(None, Some(limited), at(100));
        assert_eq!(due(&rights, limited, 200), 30, "two share it");
        rights.change(None, Some(claim(ALL, 0)), at(200));
        assert_eq!(
            due(&rights, claim(ALL, 0), 300),
            100,
            "who has none is free"
        );
        assert_eq!(due(&rights, limited, 300), 40);
    }

    /// Nine tasks in a cgroup beside one at the root: by cgroup each side gets a half.
    #[test]
    fn a_cgroup_shares_what_its_weight_gets_it() {
        let cgroups = |weight| CgroupWeights {
            tree: vec![(0, 100), (0, weight), (1, 100)],
            ..CgroupWeights::default()
        };
        let inner = Claim {
            cgroup: 2,
            ..claim(ALL, 0)
        };
        for (weight, root, each) in [(100, 9, 1), (200, 6, 1), (800, 2, 2)] {
            let mut rights = Rights::by_cgroup(1, &cgroups(weight));
            rights.change(None, Some(claim(ALL, 0)), at(0));
            for _ in 0..9 {
                rights.change(None, Some(inner), at(0));
            }
            assert_eq!(due(&rights, claim(ALL, 0), 18), root, "{weight}");
            assert_eq!(due(&rights, inner, 18), each, "{weight}");
        }
    }
}
