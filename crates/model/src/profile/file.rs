//! Reads profile files.

use std::sync::Arc;

use toml::de::DeValue;

use super::values::{
    RATE, RATES, SIZE, SIZES, TIME, TIMES, check, check_plain, exact, in_words, quantity,
};
use super::{Costs, OwnProfile, Profile, RunQueueLock, background};
use crate::file::{FileError, Problem};
use crate::file::{FileTable, FileValue, Source, Text, text};

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
    let root = source.toml()?;
    let mut root = FileTable::root(source, root.get_ref());
    let head = root.require("profile", "a table with the profile's name")?;
    let mut head = FileTable::new(source, "[profile]".to_owned(), head)?;
    let name = head.require("name", "a string")?;
    let name = self::text(source, name, "a string")?;
    check_name(source, name, shipped)?;
    let mut costs = base(source, &mut head)?;
    head.finish()?;
    for (key, read) in [
        ("costs", times as fn(&Source, FileTable, &mut Costs) -> _),
        ("locks", locks),
        ("caches", caches),
    ] {
        if let Some(value) = root.get(key) {
            read(
                source,
                FileTable::new(source, format!("[{key}]"), value)?,
                &mut costs,
            )?;
        }
    }
    let background = match root.get("background") {
        None => Vec::new(),
        Some(value) => {
            let table = FileTable::new(source, "[background]".to_owned(), value)?;
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

fn check_name(source: &Source, name: Text, shipped: bool) -> Result<(), FileError> {
    check_plain(source, name.text, name.place(0))?;
    if !shipped && Profile::shipped(name.text).is_some() {
        let problem = Problem::Taken(name.text.to_owned());
        return Err(source.error(name.place(0), problem));
    }
    Ok(())
}

/// The costs that the file begins with: those of `base`, times `scale`.
fn base(source: &Source, head: &mut FileTable) -> Result<Costs, FileError> {
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
fn thousandths(value: FileValue) -> Option<u64> {
    let digits = match value.get_ref() {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
        DeValue::Float(float) => float.as_str(),
        _ => return None,
    };
    exact(digits, 1000).filter(|thousandths| (1..=1_000_000).contains(thousandths))
}

fn times(source: &Source, mut table: FileTable, costs: &mut Costs) -> Result<(), FileError> {
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

fn locks(source: &Source, mut table: FileTable, costs: &mut Costs) -> Result<(), FileError> {
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

fn caches(source: &Source, mut table: FileTable, costs: &mut Costs) -> Result<(), FileError> {
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
