//! Whether a task sleeps for a length or until the next of its periods.

use model::Nanos;

/// Fewer sleeps tell nothing.
const LEAST: usize = 8;

/// Whether sleeps by the clock, each with its length and its end, keep a period: what lies between
/// their ends, less whole periods, varies by at most a fiftieth of the period, and by less than
/// half of what their lengths vary. (Who sleeps for a length has it the other way round: its ends
/// vary by what it ran and waited.) The period is the median between two ends; what varies is told
/// by medians too, because periods are missed.
pub fn is_kept(sleeps: impl Iterator<Item = (Nanos, Nanos)>) -> bool {
    let (lengths, ends): (Vec<u64>, Vec<u64>) = sleeps
        .map(|(length, end)| (length.get(), end.get()))
        .unzip();
    if lengths.len() < LEAST {
        return false;
    }
    let between: Vec<u64> = ends
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .collect();
    let period = median(between.clone());
    if period == 0 {
        return false;
    }
    let off = between.iter().map(|it| {
        let rest = it % period;
        rest.min(period - rest)
    });
    let off = median(off.collect());
    let middle = median(lengths.clone());
    let varied = median(lengths.iter().map(|it| it.abs_diff(middle)).collect());
    off <= period / 50 && off < varied / 2
}

/// The middle one, the upper of two.
fn median(mut values: Vec<u64>) -> u64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable(middle).1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps of a task that ran for these microseconds between them.
    fn sleeps(ran: &[u64], length: impl Fn(u64, u64) -> u64) -> Vec<(Nanos, Nanos)> {
        let mut now = 0;
        let sleeps = ran.iter().map(|us| {
            now += us * 1_000;
            let length = length(now, *us);
            now += length;
            (Nanos::new(length), Nanos::new(now))
        });
        sleeps.collect()
    }

    const RAN: [u64; 10] = [
        900, 3_000, 1_500, 7_000, 200, 4_000, 2_500, 12_000, 600, 5_000,
    ];

    #[test]
    fn a_timer_of_16_ms_is_kept_through_a_missed_period() {
        // One turn takes longer than the period, whose end is missed.
        let mut ran = RAN;
        ran[3] = 20_000;
        let until_next = |now: u64, _| 16_000_000 - now % 16_000_000;
        assert!(is_kept(sleeps(&ran, until_next).into_iter()));
        // An interrupt that comes up to 40 us late.
        let late = |now, us| until_next(now, us) + us * 13 % 40 * 1_000;
        assert!(is_kept(sleeps(&ran, late).into_iter()));
    }

    #[test]
    fn a_sleep_of_one_length_and_one_of_any_length_are_no_timers() {
        assert!(!is_kept(sleeps(&RAN, |_, _| 16_000_000).into_iter()));
        let any = |now: u64, _| now.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 30_000_000;
        assert!(!is_kept(sleeps(&RAN, any).into_iter()));
        // It hardly runs: nothing tells, and a length it stays.
        assert!(!is_kept(sleeps(&[1; 10], |_, _| 16_000_000).into_iter()));
    }

    #[test]
    fn few_sleeps_and_none_tell_nothing() {
        let until_next = |now: u64, _| 16_000_000 - now % 16_000_000;
        assert!(!is_kept(sleeps(&RAN[..7], until_next).into_iter()));
        assert!(!is_kept(sleeps(&[], until_next).into_iter()));
        let still = vec![(Nanos::ZERO, Nanos::new(5)); 9];
        assert!(!is_kept(still.into_iter()));
    }
}
