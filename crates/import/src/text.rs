//! The text of `perf script`, `trace-cmd report` and ftrace's own `trace`.
//!
//! A line is `COMM-PID [CPU] FLAGS TIME: EVENT: FIELDS`, where `perf script` writes `COMM PID` and
//! no flags. Names may have blanks, colons and brackets, so a line is taken apart around the first
//! `[CPU]` that a time follows, and its fields from their right end.

mod fields;

pub use fields::{is_timer, softirq_of, waking_sync};
use fields::{number, word};

use std::io::{BufRead, Read as _};

use crate::error::Error;
use crate::record::{Context, Record};
use crate::stream::Stream;

/// Bytes of a line that are looked at.
const LINE: u64 = 1 << 16;

/// Whether these bytes are text.
pub fn is_text(begin: &[u8]) -> bool {
    !begin.is_empty()
        && begin
            .iter()
            .all(|byte| *byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r'))
}

/// Whether one of the lines is a record, or looks like the begin of a trace.
pub fn has_record(begin: &[u8]) -> bool {
    // The first line of `trace-cmd report`. Further down it may be a line of a workload in TOML.
    let mut lines = begin.split(|byte| *byte == b'\n');
    begin.starts_with(b"cpus=")
        || lines.any(|line| {
            line.starts_with(b"# tracer:") || !matches!(parse(line), Line::Other | Line::Release(_))
        })
}

/// Reads every line. Lines that are no records are counted only.
pub fn read(input: &mut impl BufRead, stream: &mut Stream<'_>) -> Result<(), Error> {
    let mut line = Vec::new();
    let mut offset = 0_u64;
    loop {
        line.clear();
        let got = input.take(LINE).read_until(b'\n', &mut line);
        let got = got.map_err(|source| Error::Io { offset, source })?;
        if got == 0 {
            return Ok(());
        }
        offset += got as u64;
        match parse(&line) {
            Line::Record(record) => {
                if stream.push(record).is_break() {
                    return Ok(());
                }
            }
            Line::Lost(many) => {
                stream.told.gaps += 1;
                stream.told.lost = stream.told.lost.saturating_add(many);
            }
            Line::Ticks => {
                let clock = "a counter".to_owned();
                return Err(Error::Clock { clock });
            }
            Line::Release(release) => {
                stream.told.skipped += 1;
                stream.told.kernel = Some(release);
            }
            Line::Other => stream.told.skipped += 1,
        }
    }
}

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Record(Record),
    /// So many events were lost.
    Lost(u64),
    /// A record whose time is no time.
    Ticks,
    /// The kernel's release, in the head that `perf script --header` writes.
    Release(String),
    Other,
}

fn parse(line: &[u8]) -> Line {
    let line = line.trim_ascii();
    if line.first() == Some(&b'#') {
        let release = line.strip_prefix(b"# os release : ");
        return release.map_or(Line::Other, |it| {
            Line::Release(String::from_utf8_lossy(it).into_owned())
        });
    }
    if let Some(lost) = lost(line) {
        return Line::Lost(lost);
    }
    let brackets = line.iter().enumerate().filter(|(_, byte)| **byte == b'[');
    let mut found = brackets.filter_map(|(at, _)| after_bracket(line, at));
    match found.next() {
        Some(line) => line,
        None => Line::Other,
    }
}

/// `CPU:1 [LOST 12 EVENTS]`, or `CPU:1 [EVENTS DROPPED]`.
fn lost(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"CPU:")?;
    let at = rest.iter().position(|byte| *byte == b'[')?;
    let rest = &rest[at + 1..];
    if let Some(rest) = rest.strip_prefix(b"LOST ") {
        return number(word(rest).0).or(Some(0));
    }
    rest.starts_with(b"EVENTS DROPPED").then_some(0)
}

/// The record around the `[` at `at`, if a CPU stands there and a time follows.
fn after_bracket(line: &[u8], at: usize) -> Option<Line> {
    let rest = &line[at + 1..];
    let end = rest.iter().position(|byte| *byte == b']')?;
    let cpu = number(&rest[..end])?;
    let (mut next, mut rest) = word(rest.get(end + 1..)?);
    let mut context = Context::Unsaid;
    if next.last() != Some(&b':') {
        context = flags(next)?;
        (next, rest) = word(rest);
    }
    let time = next.strip_suffix(b":")?;
    let pid = pid(&line[..at])?;
    let (event, fields) = word(rest);
    let event = event.strip_suffix(b":")?;
    // `perf script` puts the system before the event.
    let event = event.rsplit(|byte| *byte == b':').next()?;
    let Some(time) = nanos(time) else {
        let is_ticks = number(time).is_some() && fields::is_known(event);
        return is_ticks.then_some(Line::Ticks);
    };
    let Some(what) = fields::what(event, fields) else {
        return Some(Line::Other);
    };
    // Who forks is who runs, whatever number its own namespace gives it.
    let record = Record {
        time,
        cpu: u32::try_from(cpu).ok()?,
        pid,
        context,
        what,
    };
    Some(Line::Record(record))
}

/// The thread's number at the end of `COMM-PID`, `COMM-PID (TGID)`, `COMM PID` or `COMM PID/TID`.
fn pid(left: &[u8]) -> Option<u32> {
    let mut left = left.trim_ascii_end();
    if left.last() == Some(&b')') {
        let open = left.iter().rposition(|byte| *byte == b'(')?;
        left = left[..open].trim_ascii_end();
    }
    let digits = left.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let begin = left.len() - digits.count();
    let before = left[..begin].last();
    if !matches!(before, None | Some(b'-' | b' ' | b'\t' | b'/')) {
        return None;
    }
    u32::try_from(number(&left[begin..])?).ok()
}

/// The context by the third of the flags, as in `d.h2.`.
fn flags(flags: &[u8]) -> Option<Context> {
    let is_flag = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'#' | b'+');
    if !(4..=8).contains(&flags.len()) || !flags.iter().all(is_flag) {
        return None;
    }
    Some(match flags[2] {
        b'h' | b'H' | b'z' | b'Z' => Context::Hard,
        b's' => Context::Soft,
        _ => Context::Task,
    })
}

/// Nanoseconds of `12.345678` or `12.345678901` seconds.
fn nanos(text: &[u8]) -> Option<u64> {
    let point = text.iter().position(|byte| *byte == b'.')?;
    let (whole, part) = (&text[..point], &text[point + 1..]);
    if part.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(9 - u32::try_from(part.len()).ok()?);
    let part = number(part)?.checked_mul(scale)?;
    number(whole)?.checked_mul(1_000_000_000)?.checked_add(part)
}

/// A record of `what` that nothing else is said of.
#[cfg(test)]
fn bare(line: &[u8]) -> Option<crate::record::What> {
    match parse(line) {
        Line::Record(record) => Some(record.what),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
