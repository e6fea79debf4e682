//! Threads of the kernel that run by themselves.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toml::de::DeValue;

use super::values::{TIME, TIMES, check, check_plain, in_words, quantity};
use crate::CPUS_MAX;
use crate::file::{FileError, FileTable, FileValue, Problem, Source, describe};

/// Most kinds of threads that a profile may have.
const MOST: usize = 64;
/// Most lengths of a turn.
const MOST_RUNS: usize = 1_000;
/// The least and the greatest mean time between two turns, ps: more often than every 10 us no
/// thread is in the background.
const GAPS: (u64, u64) = (10_000_000, 1_000_000_000_000_000);
/// The greatest length of a turn, ps.
const MOST_RUN: u64 = 1_000_000_000_000;

/// Threads of the kernel that wake up by themselves, run for a moment and sleep again: workers,
/// RCU, the reclaim of memory. A load does not know of them, and still they take CPUs from it.
///
/// From the end of a turn to the next wakeup passes an exponential time; its mean is what a kernel
/// was measured to need, and not more is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// The name of the threads.
    pub name: String,
    /// A thread on each CPU, which never leaves it; else one thread.
    pub each_cpu: bool,
    /// The CPU that the one thread never leaves: the last one of a machine that has fewer. `None`:
    /// it may run anywhere, or there is one on each CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u16>,
    /// Mean time from the end of a turn to the next wakeup, ns, above 0.
    pub gap_ns: u64,
    /// Lengths of a turn, ns, all equally likely; at least one.
    pub run_ns: Vec<u64>,
    /// Real-time priority, 1 to 99 (`SCHED_FIFO`); `None`: the policy schedules them.
    pub real_time: Option<u8>,
    /// Nice value, -20 to 19.
    pub nice: i8,
}

/// Those of a recording or a bundle, which must be such as a profile file could have.
pub(super) fn checked<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Background>, D::Error> {
    let all = Vec::<Background>::deserialize(from)?;
    let (least, most) = GAPS;
    let is_right = |it: &Background| {
        let gap = it.gap_ns.saturating_mul(1_000);
        let runs = it
            .run_ns
            .iter()
            .all(|run| run.saturating_mul(1_000) <= MOST_RUN);
        (least..=most).contains(&gap)
            && runs
            && (1..=MOST_RUNS).contains(&it.run_ns.len())
            && it
                .real_time
                .is_none_or(|priority| (1..=99).contains(&priority))
            && (-20..=19).contains(&it.nice)
            && it.cpu.is_none_or(|cpu| cpu < CPUS_MAX && !it.each_cpu)
    };
    match all.iter().find(|it| !is_right(it)) {
        _ if all.len() > MOST => Err(D::Error::custom("too many kinds of background threads")),
        Some(wrong) => Err(D::Error::custom(format!(
            "no profile can have the background threads {:?}",
            wrong.name
        ))),
        None => Ok(all),
    }
}

/// The tables `[background.NAME]` of a profile file.
pub(super) fn read(source: &Source, table: &FileTable) -> Result<Vec<Background>, FileError> {
    let entries = table.entries();
    if let Some((_, at, _)) = entries.get(MOST) {
        let problem = Problem::Range {
            what: "the number of tables `[background.…]`".to_owned(),
            found: entries.len().to_string(),
            expected: format!("at most {MOST}"),
        };
        return Err(source.error(*at, problem));
    }
    entries
        .into_iter()
        .map(|(name, at, value)| {
            check_plain(source, name, at)?;
            one(source, name, value)
        })
        .collect()
}

fn one(source: &Source, name: &str, value: FileValue) -> Result<Background, FileError> {
    let mut table = FileTable::new(source, format!("[background.{name}]"), value)?;
    let expected = "\"each\" (a thread on each CPU), \"any\" (one that may run anywhere), or the \
                    number of the CPU that has it";
    let on = table.require("on", expected)?;
    let (each_cpu, cpu) = match on.get_ref() {
        DeValue::String(word) if word == "each" => (true, None),
        DeValue::String(word) if word == "any" => (false, None),
        DeValue::Integer(number) if number.radix() == 10 => match number.as_str().parse() {
            Ok(cpu) if cpu < CPUS_MAX => (false, Some(cpu)),
            _ => return Err(table.unexpected(on, expected)),
        },
        _ => return Err(table.unexpected(on, expected)),
    };
    let gap = table.require("gap", TIME)?;
    let gap_ps = quantity(source, gap, &TIMES, TIME)?;
    let (least, most) = GAPS;
    if gap_ps < least || gap_ps > most {
        let problem = Problem::Range {
            what: "`gap`".to_owned(),
            found: describe(gap),
            expected: "10us to 1000000ms".to_owned(),
        };
        return Err(source.error(gap.span().start, problem));
    }
    let run = table.require("run", "lengths of a turn, as [\"3us\", \"8us\"]")?;
    let run_ns = lengths(source, run)?;
    let real_time = whole(&mut table, "real_time", 1..=99)?.map(i8::unsigned_abs);
    let nice = whole(&mut table, "nice", -20..=19)?.unwrap_or(0);
    table.finish()?;
    Ok(Background {
        name: name.to_owned(),
        each_cpu,
        cpu,
        gap_ns: gap_ps / 1_000,
        run_ns,
        real_time,
        nice,
    })
}

/// One length, or several, in ns.
fn lengths(source: &Source, value: FileValue) -> Result<Vec<u64>, FileError> {
    let items: Vec<FileValue> = match value.get_ref() {
        DeValue::Array(items) => items.iter().collect(),
        _ => vec![value],
    };
    if items.is_empty() || items.len() > MOST_RUNS {
        let problem = Problem::Range {
            what: "the number of lengths".to_owned(),
            found: items.len().to_string(),
            expected: format!("1 to {MOST_RUNS}"),
        };
        return Err(source.error(value.span().start, problem));
    }
    items
        .into_iter()
        .map(|item| {
            let ps = quantity(source, item, &TIMES, TIME)?;
            let limit = format!("0 to {}", in_words(MOST_RUN));
            check(source, item, "run", ps, (MOST_RUN, &limit))?;
            Ok(ps / 1_000)
        })
        .collect()
}

fn whole(
    table: &mut FileTable,
    key: &'static str,
    range: std::ops::RangeInclusive<i8>,
) -> Result<Option<i8>, FileError> {
    let Some(value) = table.get(key) else {
        return Ok(None);
    };
    let expected = format!("a whole number, {} to {}", range.start(), range.end());
    let number = match value.get_ref() {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse::<i8>().ok(),
        _ => None,
    };
    let number = number.filter(|number| range.contains(number));
    number
        .map(Some)
        .ok_or_else(|| table.unexpected(value, &expected))
}
