//! What a task is owed by its weight.

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

/// What a task of weight `own` that wants all of `time` on a CPU gets of it by weight, in the unit
/// of `time`, while each of `others` has a weight and wants at most so much. What one does not
/// want is shared by the rest.
pub(super) fn share(time: u64, own: u128, mut others: Vec<(u128, u64)>) -> u64 {
    // Who wants least for its weight is satisfied first.
    others.sort_unstable_by(|(one, wants), (other, want)| {
        (u128::from(*wants) * other).cmp(&(u128::from(*want) * one))
    });
    let mut left = u128::from(time);
    let mut weights = own + others.iter().map(|(weight, _)| weight).sum::<u128>();
    for (weight, wants) in others {
        if u128::from(wants) * weights > left * weight {
            break;
        }
        left -= u128::from(wants);
        weights -= weight;
    }
    u64::try_from(left * own / weights.max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn what_sleepers_do_not_want_goes_to_those_who_wait() {
        assert_eq!(share(1000, 1, vec![]), 1000);
        assert_eq!(share(1000, 1, vec![(3, 1000)]), 250);
        // Threads of the kernel weigh eighty times as much and want a thousandth.
        assert_eq!(share(1000, 1, vec![(80, 1); 30]), 970);
        // One of three wants little; the others share the rest by weight.
        assert_eq!(share(1000, 1, vec![(2, 1000), (4, 100)]), 300);
        assert_eq!(share(1000, 0, vec![(2, 1000)]), 0);
        let much = share(u64::MAX, 1 << 17, vec![(1 << 17, u64::MAX); 3]);
        assert_eq!(much, u64::MAX / 4);
    }
}
