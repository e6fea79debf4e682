//! Quantiles by nearest rank: always one of the measured values, never an interpolation.

/// The rank, from 1, of the value that at least `permille` thousandths of `count` values do not
/// exceed; 0 of no values. The median is 500 and p99.9 is 999.
///
/// Source: Hyndman and Fan (1996), "Sample Quantiles in Statistical Packages", definition 1.
///
/// # Panics
/// If `permille` exceeds 1000.
#[must_use]
pub fn nearest_rank(count: u64, permille: u64) -> u64 {
    assert!(permille <= 1000, "{permille} per mille exceeds the whole");
    let rank = (u128::from(permille) * u128::from(count)).div_ceil(1000);
    u64::try_from(rank)
        .expect("not above the count")
        .max(1)
        .min(count)
}

/// The value of that rank in `sorted`; `None` of nothing.
///
/// # Panics
/// If `permille` exceeds 1000.
#[must_use]
pub fn quantile(sorted: &[u64], permille: u64) -> Option<u64> {
    let rank = nearest_rank(sorted.len() as u64, permille);
    let last = usize::try_from(rank.checked_sub(1)?).ok()?;
    sorted.get(last).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let values = [10, 20, 30, 40];
        assert_eq!(quantile(&values, 500), Some(20));
        assert_eq!(quantile(&values, 501), Some(30));
        let ends = (quantile(&values, 0), quantile(&values, 1000));
        assert_eq!(ends, (Some(10), Some(40)));
        assert_eq!(quantile(&[], 500), None);
    }

    #[test]
    fn a_rank_is_from_one_to_the_count() {
        assert_eq!(nearest_rank(0, 500), 0);
        assert_eq!((nearest_rank(7, 0), nearest_rank(7, 1000)), (1, 7));
        assert_eq!(nearest_rank(u64::MAX, 1000), u64::MAX);
    }
}
