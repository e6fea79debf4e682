//! Reads profile files.

use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::{Costs, OwnProfile, Profile, RunQueueLock, background};
use crate::file::{FileError, Problem};
use crate::file::{Source, Table, Text, Value, describe, text};

/// Units of time, and picoseconds in each.
pub(super) const TIMES: [(&str, u64); 4] = [
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
];
/// Units of size, and bytes in each.
const SIZES: [(&str, u64); 3] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)];
/// Units of throughput, and bytes a second in each.
const RATES: [(&str, u64); 2] = [("MB/s", 1_000_000), ("GB/s", 1_000_000_000)];

pub(super) const TIME: &str = "a span of time with its unit (ps, ns, us, ms), as \"1.2us\"";
const SIZE: &str = "a size with its unit (B, KiB, MiB), as \"512KiB\"";
const RATE: &str = "a throughput with its unit (MB/s, GB/s), as \"2.5GB/s\"";

/// Greatest cache, and greatest throughput; as sums of them fit.
const MOST_BYTES: u64 = 1 << 34;
const MOST_RATE: u64 = 10_000_000_000_000;

impl Profile {
    /// Reads a profile file. `file` is what messages call it.
    ///
    /// # Errors
    /// If `text` is no profile: the first mistake, with its place.
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        Ok(Self::Own(Arc::new(parse(text, file, false)?)))
    }
}

/// Reads the file of a shipped profile, whose name is taken and which is based on nothing.
pub(super) fn parse_shipped(text: &str, file: &str) -> Result<OwnProfile, FileError> {
    parse(text, file, true)
}

fn parse(text: &str, file: &str, shipped: bool) -> Result<OwnProfile, FileError> {
    let source = &Source { text, file };
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        source.error(at, Problem::Toml(error.message().to_owned()))
    })?;
    let mut root = Table::root(source, root.get_ref());
    let head = root.require("profile", "a table with the profile's name")?;
    let mut head = Table::new(source, "[profile]".to_owned(), head)?;
    let name = head.require("name", "a string")?;
    let name = self::text(source, name, "a string")?;
    check_name(source, name, shipped)?;
    let mut costs = base(source, &mut head)?;
    head.finish()?;
    for (key, read) in [
        ("costs", times as fn(&Source, Table, &mut Costs) -> _),
        ("locks", locks),
        ("caches", caches),
    ] {
        if let Some(value) = root.get(key) {
            read(
                source,
                Table::new(source, format!("[{key}]"), value)?,
                &mut costs,
            )?;
        }
    }
    let background = match root.get("background") {
        None => Vec::new(),
        Some(value) => {
            let table = Table::new(source, "[background]".to_owned(), value)?;
            background::read(source, &table)?
        }
    };
    root.finish()?;
    Ok(OwnProfile {
        name: name.text.to_owned(),
        costs,
        background,
    })
}

/// Refuses a name at `at` with other characters than names have.
pub(super) fn check_plain(source: &Source, name: &str, at: usize) -> Result<(), FileError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return Ok(());
    }
    let expected = "a name of letters, digits, `-`, `_` and `.`";
    Err(source.error(at, Problem::unexpected(format!("\"{name}\""), expected)))
}

fn check_name(source: &Source, name: Text, shipped: bool) -> Result<(), FileError> {
    check_plain(source, name.text, name.place(0))?;
    if !shipped && Profile::shipped(name.text).is_some() {
        let problem = Problem::Taken(name.text.to_owned());
        return Err(source.error(name.place(0), problem));
    }
    Ok(())
}

/// The costs that the file begins with: those of `base`, times `scale`.
fn base(source: &Source, head: &mut Table) -> Result<Costs, FileError> {
    let expected = "\"ideal\" or \"default-v0\"";
    let mut costs = match head.text("base", expected)? {
        None => Costs::default(),
        Some(name) => {
            let found = Profile::shipped(name.text).ok_or_else(|| {
                let problem = Problem::unexpected(format!("\"{}\"", name.text), expected);
                source.error(name.place(0), problem)
            })?;
            found.costs().copied().unwrap_or_default()
        }
    };
    if let Some(value) = head.get("scale") {
        let thousandths = thousandths(value).ok_or_else(|| {
            let expected = "a factor of 0.001 to 1000 with at most three decimals, as 3.5";
            head.unexpected(value, expected)
        })?;
        for &(key, most) in Costs::TIMES {
            let time = costs.time_mut(key).expect("a key of the table");
            *time = (*time * thousandths / 1000).min(most);
        }
    }
    Ok(costs)
}

/// A positive number up to 1000, times 1000.
fn thousandths(value: Value) -> Option<u64> {
    let digits = match value.get_ref() {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
        DeValue::Float(float) => float.as_str(),
        _ => return None,
    };
    exact(digits, 1000).filter(|thousandths| (1..=1_000_000).contains(thousandths))
}

fn times(source: &Source, mut table: Table, costs: &mut Costs) -> Result<(), FileError> {
    for &(key, most) in Costs::TIMES {
        if let Some(value) = table.get(key) {
            let time = quantity(source, value, &TIMES, TIME)?;
            let limit = format!("0 to {}", in_words(most));
            check(source, value, key, time, (most, &limit))?;
            *costs.time_mut(key).expect("a key of the table") = time;
        }
    }
    table.finish()
}

/// A limit of a cost, ps.
pub(super) fn in_words(ps: u64) -> String {
    let unit = TIMES
        .iter()
        .rev()
        .find(|(_, unit)| ps.is_multiple_of(*unit));
    let (name, unit) = unit.expect("every number is one of picoseconds");
    format!("{}{name}", ps / unit)
}

fn locks(source: &Source, mut table: Table, costs: &mut Costs) -> Result<(), FileError> {
    if let Some(value) = table.get("wait") {
        let DeValue::Boolean(wait) = value.get_ref() else {
            return Err(table.unexpected(value, "`true` or `false`"));
        };
        costs.lock_wait = *wait;
    }
    if let Some(value) = table.get("run_queue") {
        let expected = "\"cpu\" or \"machine\"";
        costs.run_queue = match text(source, value, expected)?.text {
            "cpu" => RunQueueLock::Cpu,
            "machine" => RunQueueLock::Machine,
            _ => return Err(table.unexpected(value, expected)),
        };
    }
    table.finish()
}

fn caches(source: &Source, mut table: Table, costs: &mut Costs) -> Result<(), FileError> {
    for (key, place) in [
        ("core", &mut costs.core_cache_bytes),
        ("llc", &mut costs.llc_cache_bytes),
        ("footprint", &mut costs.footprint_bytes),
    ] {
        if let Some(value) = table.get(key) {
            *place = quantity(source, value, &SIZES, SIZE)?;
            check(source, value, key, *place, (MOST_BYTES, "at most 16GiB"))?;
        }
    }
    for (key, place) in [
        ("core_refill", &mut costs.core_refill_bytes_per_s),
        ("llc_refill", &mut costs.llc_refill_bytes_per_s),
    ] {
        if let Some(value) = table.get(key) {
            *place = quantity(source, value, &RATES, RATE)?;
            check(source, value, key, *place, (MOST_RATE, "at most 10000GB/s"))?;
        }
    }
    table.finish()
}

/// Refuses a number above its limit, which has its words for the message.
pub(super) fn check(
    source: &Source,
    value: Value,
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
pub(super) fn quantity(
    source: &Source,
    value: Value,
    units: &[(&str, u64)],
    expected: &str,
) -> Result<u64, FileError> {
    let text = text(source, value, expected)?;
    let digits = text.text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.text.split_at(digits.unwrap_or(text.text.len()));
    let unit = units.iter().find(|(name, _)| *name == unit.trim_start());
    unit.and_then(|(_, scale)| exact(number, *scale))
        .ok_or_else(|| {
            let problem = Problem::unexpected(format!("\"{}\"", text.text), expected);
            source.error(text.place(0), problem)
        })
}

/// `number` times `scale`, when that is a whole number that fits.
fn exact(number: &str, scale: u64) -> Option<u64> {
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
