//! Spans of time as people type them: `10s`, `1.5ms`, `250us`.

use crate::Nanos;

/// Units, and nanoseconds in each.
const UNITS: [(&str, u64); 5] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
];

/// Reads a number and its unit. Exact: the fraction is not rounded.
///
/// # Errors
/// When the unit is missing or unknown, the number is none, has a fraction finer than a
/// nanosecond, or exceeds 584 years.
pub fn parse(text: &str) -> Result<Nanos, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit.trim_start()) else {
        return Err("expected a number with its unit (ns, us, ms, s, min), such as 10s".to_owned());
    };
    exact(number, *scale).map(Nanos::new).ok_or_else(|| {
        format!(
            "`{number}` is no number of whole nanoseconds between 0 and {}",
            u64::MAX
        )
    })
}

/// `number` times `scale`, when that is a whole number that fits.
fn exact(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let parts = u64::try_from(10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?).ok()?;
    let fraction = u128::from(fraction.parse::<u64>().ok()?) * u128::from(scale);
    if !fraction.is_multiple_of(u128::from(parts)) {
        return None;
    }
    let rest = u64::try_from(fraction / u128::from(parts)).ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(scale)?
        .checked_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_its_unit() {
        let read = ["10s", "1.5ms", "250us", "7ns", "2 min", "0s"].map(|text| parse(text).unwrap());
        let want = [10_000_000_000, 1_500_000, 250_000, 7, 120_000_000_000, 0].map(Nanos::new);
        assert_eq!(read, want);
    }

    #[test]
    fn what_is_no_span_says_what_was_expected() {
        for text in ["", "10", "s", "10h", "-1s"] {
            let message = parse(text).unwrap_err();
            assert!(
                message.contains("expected") || message.contains("no number"),
                "{message}"
            );
        }
        for text in [
            "1.5ns",
            "1.2.3s",
            "99999999999999s",
            ".s",
            "0.00000000000000000000001s",
        ] {
            assert!(
                parse(text).unwrap_err().contains("whole nanoseconds"),
                "{text}"
            );
        }
    }
}
