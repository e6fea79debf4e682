//! Max-min fair allocation by weight: the level of all tasks rises until one has all that it can
//! use, or the CPUs of some of them are full; then that of the others rises on.
//!
//! Source: Bertsekas and Gallager, "Data Networks", 1992, section 6.5.2.

/// Sets of CPUs that are looked at. With more the allocation is not known.
const MOST_SETS: usize = 128;
/// Levels that differ by less are one: sums are rounded.
const ROUNDING: f64 = 1.0 + 1e-12;

/// Tasks that are alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// The CPUs that they may use and have now, as bits.
    pub cpus: u64,
    /// What each of them weighs, above 0.
    pub weight: f64,
    /// How much each of them can use: at most one CPU.
    pub most: f64,
    /// How many they are.
    pub tasks: f64,
}

/// What each task of each demand gets, in CPUs; `None` if that takes too long to find.
///
/// Tasks can have so much at once if and only if, for each set of CPUs, those that may use no
/// others have no more than these (Hall's condition). Unions of overlapping masks are enough: of
/// sets that share no CPU each has its own condition.
pub(super) fn fill(demands: &[Demand]) -> Option<Vec<f64>> {
    let sets = unions(demands)?;
    let without_cpu = |it: &Demand| (it.cpus == 0).then_some(0.0);
    let mut got: Vec<Option<f64>> = demands.iter().map(without_cpu).collect();
    while got.contains(&None) {
        let levels: Vec<(f64, u64)> = sets
            .iter()
            .map(|set| (level_of(*set, demands, &got), *set))
            .collect();
        let open = demands.iter().zip(&got).filter(|(_, got)| got.is_none());
        let own = open.map(|(it, _)| it.most / it.weight);
        let all = levels.iter().map(|(level, _)| *level).chain(own);
        let level = all.fold(f64::INFINITY, f64::min);
        let is_full = |cpus: u64| {
            let mut around = levels.iter().filter(|(_, set)| cpus & !set == 0);
            around.any(|(other, _)| *other <= level * ROUNDING)
        };
        for (it, got) in demands
            .iter()
            .zip(&mut got)
            .filter(|(_, got)| got.is_none())
        {
            let share = it.weight * level;
            if it.most <= share * ROUNDING || is_full(it.cpus) {
                *got = Some(share.min(it.most));
            }
        }
    }
    Some(got.into_iter().flatten().collect())
}

/// The level at which the CPUs of `set` are full; infinite if nobody's there rises any more.
fn level_of(set: u64, demands: &[Demand], got: &[Option<f64>]) -> f64 {
    let inside = demands
        .iter()
        .zip(got)
        .filter(|(it, _)| it.cpus & !set == 0);
    let (mut room, mut weight) = (f64::from(set.count_ones()), 0.0);
    for (it, got) in inside {
        match got {
            Some(got) => room -= got * it.tasks,
            None => weight += it.weight * it.tasks,
        }
    }
    if weight > 0.0 {
        room.max(0.0) / weight
    } else {
        f64::INFINITY
    }
}

/// The masks, and the unions of those that overlap; `None` if they are too many.
fn unions(demands: &[Demand]) -> Option<Vec<u64>> {
    let mut sets: Vec<u64> = demands.iter().map(|it| it.cpus).collect();
    sets.retain(|set| *set != 0);
    sets.sort_unstable();
    sets.dedup();
    let masks = sets.clone();
    let mut at = 0;
    while let Some(set) = sets.get(at).copied() {
        for mask in masks.iter().filter(|mask| **mask & set != 0) {
            if !sets.contains(&(set | mask)) {
                sets.push(set | mask);
            }
        }
        if sets.len() > MOST_SETS {
            return None;
        }
        at += 1;
    }
    Some(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(tasks: f64, weight: f64, cpus: u64) -> Demand {
        Demand {
            cpus,
            weight,
            most: 1.0,
            tasks,
        }
    }

    /// In thousandths of a CPU.
    fn shares(demands: &[Demand]) -> Vec<u64> {
        let got = fill(demands).expect("they are few");
        got.iter().map(|it| (it * 1e3).round() as u64).collect()
    }

    #[test]
    fn what_a_heavy_task_cannot_use_goes_to_the_light_ones() {
        // By weight alone the light ones had a right to 2 / 102 of a CPU.
        assert_eq!(
            shares(&[of(1.0, 100.0, 0b11), of(2.0, 1.0, 0b11)]),
            [1_000, 500]
        );
    }

    #[test]
    fn a_bound_task_and_free_ones_share_what_is_left_to_each() {
        // One is bound to CPU 0; three may use both CPUs: all get a half.
        assert_eq!(
            shares(&[of(1.0, 1.0, 0b01), of(3.0, 1.0, 0b11)]),
            [500, 500]
        );
        // Three are bound to CPU 0: the free one has CPU 1.
        assert_eq!(
            shares(&[of(3.0, 1.0, 0b01), of(1.0, 1.0, 0b11)]),
            [333, 1_000]
        );
    }

    #[test]
    fn masks_that_overlap_in_a_chain_share_three_cpus() {
        let chain = [
            of(2.0, 1.0, 0b011),
            of(2.0, 1.0, 0b110),
            of(1.0, 9.0, 0b100),
        ];
        assert_eq!(shares(&chain), [500, 500, 1_000]);
        assert_eq!(shares(&[of(4.0, 1.0, 0)]), [0]);
    }

    /// Each allocation is possible, and nobody can get more but from one who has no more for its
    /// weight.
    #[test]
    fn no_random_allocation_can_be_made_fairer() {
        let mut rng = model::Rng::new(7, 1);
        for case in 0..300 {
            let demands: Vec<Demand> = (0..2 + rng.below(5))
                .map(|_| Demand {
                    most: [1.0, 1.0, 0.3][rng.below(3) as usize],
                    tasks: (1 + rng.below(4)) as f64,
                    weight: [1.0, 3.0, 20.0][rng.below(3) as usize],
                    cpus: 1 + rng.below(15),
                })
                .collect();
            let got = fill(&demands).expect("they are few");
            let mut is_full = vec![false; demands.len()];
            for set in 1..16_u64 {
                let all = demands.iter().zip(&got).zip(&mut is_full);
                let mut inside: Vec<_> = all.filter(|((it, _), _)| it.cpus & !set == 0).collect();
                let used: f64 = inside.iter().map(|((it, got), _)| *got * it.tasks).sum();
                let room = f64::from(set.count_ones());
                assert!(used <= room + 1e-9, "case {case}: {demands:?}, {got:?}");
                let levels = inside.iter().map(|((it, got), _)| *got / it.weight);
                let highest = levels.fold(0.0, f64::max);
                for ((it, got), is_full) in &mut inside {
                    let is_first = *got / it.weight >= highest - 1e-9;
                    **is_full |= used >= room - 1e-9 && is_first;
                }
            }
            for ((it, got), is_full) in demands.iter().zip(&got).zip(is_full) {
                let is_sated = *got >= it.most - 1e-9;
                assert!(is_sated || is_full, "case {case}: {it:?} of {demands:?}");
            }
        }
    }
}
