//! How large a part of all cases is right, where so many of some were.

use super::robust::beta;

/// The share of all cases that is right at least, with a probability of 95 %, where `right` of
/// `all` were.
///
/// Source: Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in the
/// case of the binomial", one-sided.
#[must_use]
pub fn at_least(right: usize, all: usize) -> f64 {
    const LEVEL: f64 = 0.05;
    if right == 0 || right > all {
        return 0.0;
    }
    // So many or more of `all` are right with the probability I_p(right, all - right + 1).
    let tail = |part: f64| beta(part, right as f64, (all - right) as f64 + 1.0);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if tail(middle) < LEVEL {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_that_of_every_table() {
        for (right, all, want) in [
            (59, 59, 0.950_5),
            (12, 12, 0.779_1),
            (9, 10, 0.605_8),
            (1, 2, 0.025_3),
            (0, 5, 0.0),
            (0, 0, 0.0),
        ] {
            let have = at_least(right, all);
            assert!(
                (have - want).abs() < 1e-4,
                "{right} of {all}: {have}, not {want}"
            );
        }
    }
}
