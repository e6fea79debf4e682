//! What profile files are made of: quantities with their units, limits and names.

use crate::file::{FileError, FileValue, Problem, Source, describe, text};

/// Units of time, and picoseconds in each.
pub(crate) const TIMES: [(&str, u64); 4] = [
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
];
/// Units of frequency, and kHz in each.
pub(crate) const FREQUENCIES: [(&str, u64); 3] = [("kHz", 1), ("MHz", 1_000), ("GHz", 1_000_000)];
/// Units of size, and bytes in each.
pub(crate) const SIZES: [(&str, u64); 3] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)];
/// Units of throughput, and bytes a second in each.
pub(crate) const RATES: [(&str, u64); 2] = [("MB/s", 1_000_000), ("GB/s", 1_000_000_000)];

pub(crate) const TIME: &str = "a span of time with its unit (ps, ns, us, ms), as \"1.2us\"";
pub(crate) const SIZE: &str = "a size with its unit (B, KiB, MiB), as \"512KiB\"";
pub(crate) const RATE: &str = "a throughput with its unit (MB/s, GB/s), as \"2.5GB/s\"";

/// Refuses a name at `at` with other characters than names have.
pub(crate) fn check_plain(source: &Source, name: &str, at: usize) -> Result<(), FileError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return Ok(());
    }
    let expected = "a name of letters, digits, `-`, `_` and `.`";
    Err(source.error(at, Problem::unexpected(format!("\"{name}\""), expected)))
}

/// A limit of a cost, ps.
pub(crate) fn in_words(ps: u64) -> String {
    let unit = TIMES
        .iter()
        .rev()
        .find(|(_, unit)| ps.is_multiple_of(*unit));
    let (name, unit) = unit.expect("every number is one of picoseconds");
    format!("{}{name}", ps / unit)
}

/// Refuses a number above its limit, which has its words for the message.
pub(crate) fn check(
    source: &Source,
    value: FileValue,
    key: &str,
    found: u64,
    (most, expected): (u64, &str),
) -> Result<(), FileError> {
    if found <= most {
        return Ok(());
    }
    let problem = Problem::Range {
        what: format!("`{key}`"),
        found: describe(value),
        expected: expected.to_owned(),
    };
    Err(source.error(value.span().start, problem))
}

/// A number with one of `units`, as whole units of the smallest.
pub(crate) fn quantity(
    source: &Source,
    value: FileValue,
    units: &[(&str, u64)],
    expected: &str,
) -> Result<u64, FileError> {
    let text = text(source, value, expected)?;
    amount(text.text, units).ok_or_else(|| {
        let problem = Problem::unexpected(format!("\"{}\"", text.text), expected);
        source.error(text.place(0), problem)
    })
}

/// The same of a text.
pub(crate) fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = units.iter().find(|(name, _)| *name == unit.trim_start());
    unit.and_then(|(_, scale)| exact(number, *scale))
}

/// `number` times `scale`, when that is a whole number that fits.
pub(crate) fn exact(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let parts = u64::try_from(10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?).ok()?;
    let digits = |text: &str| {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<u64>().ok()).flatten()
    };
    let fraction = u128::from(digits(fraction)?) * u128::from(scale);
    if !fraction.is_multiple_of(u128::from(parts)) {
        return None;
    }
    let rest = u64::try_from(fraction / u128::from(parts)).ok()?;
    digits(whole)?.checked_mul(scale)?.checked_add(rest)
}
