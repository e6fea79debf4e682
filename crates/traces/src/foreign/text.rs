//! The text of `perf script`, `trace-cmd report` and ftrace's own `trace`.
//!
//! A line is `COMM-PID [CPU] FLAGS TIME: EVENT: FIELDS`, where `perf script` writes `COMM PID` and
//! no flags. Names may have blanks, colons and brackets, so a line is taken apart around the first
//! `[CPU]` that a time follows, and its fields from their right end.

mod fields;

pub use fields::{is_timer, softirq_of, waking_sync};
use fields::{number, word};

use std::io::{BufRead, Read as _};

use crate::foreign::error::Error;
use crate::foreign::record::{Comm, CpuContext, Record};
use crate::foreign::stream::Stream;

/// Bytes of a line that are looked at.
const LINE: u64 = 1 << 16;

/// Bytes of a line within which its event must stand: names of a thread and of a buffer come first.
const HEAD: usize = 512;

/// Newlines that names in one record can have: two names of 15 bytes.
const NEWLINES: u32 = 30;

/// Whether these bytes are text: no other format begins with a line of a trace. A name may have any
/// byte but NUL, so text may have control characters behind such a line.
pub fn is_text(begin: &[u8]) -> bool {
    let is_plain = |byte: &u8| *byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r');
    let is_plain = !begin.is_empty() && begin.iter().all(is_plain);
    is_plain || (!begin.contains(&0) && has_record(begin))
}

/// Whether one of the lines is a record, or looks like the begin of a trace.
pub fn has_record(begin: &[u8]) -> bool {
    // A page of systrace has its records after a program of any length. No workload begins so.
    let word = begin.trim_ascii_start();
    let is_page = [&b"<!doctype html"[..], b"<html"].iter().any(|start| {
        let word = word.get(..start.len());
        word.is_some_and(|word| word.eq_ignore_ascii_case(start))
    });
    // The first line of `trace-cmd report`. Further down it may be a line of a workload in TOML.
    let report = begin.strip_prefix(b"version = ").unwrap_or(begin);
    let report = report.trim_ascii_start();
    let digits = report.iter().take_while(|byte| byte.is_ascii_digit());
    let report = report[digits.count()..].trim_ascii_start();
    let mut lines = begin.split(|byte| *byte == b'\n');
    is_page
        || report.starts_with(b"cpus=")
        || lines.any(|line| {
            let head = matches!(parse(line), Line::Other | Line::Release(_) | Line::Cpus(_));
            line.starts_with(b"# tracer:") || !head
        })
}

/// Reads every line. Lines that are no records are counted only.
pub fn read(input: &mut impl BufRead, stream: &mut Stream<'_>) -> Result<(), Error> {
    let mut line = Vec::new();
    // A record's line that a newline in a name has cut, and how many there were.
    let mut cut: Option<(Vec<u8>, u32)> = None;
    let mut offset = 0_u64;
    loop {
        line.clear();
        let got = input.take(LINE).read_until(b'\n', &mut line);
        let got = got.map_err(|source| Error::Io { offset, source })?;
        if got == 0 {
            stream.told.skipped += u64::from(cut.is_some());
            return Ok(());
        }
        offset += got as u64;
        let mut parsed = parse(&line);
        if let Some((mut begin, newlines)) = cut.take() {
            let is_short = begin.len() + line.len() <= 2 * HEAD;
            if parsed == Line::Other && newlines < NEWLINES && is_short {
                begin.extend_from_slice(&line);
                std::mem::swap(&mut line, &mut begin);
                parsed = parse(&line);
                if parsed == Line::Cut {
                    cut = Some((std::mem::take(&mut line), newlines + 1));
                    continue;
                }
            } else {
                stream.told.skipped += 1;
            }
        }
        if parsed == Line::Cut {
            cut = Some((std::mem::take(&mut line), 1));
            continue;
        }
        if take(parsed, stream)? {
            return Ok(());
        }
    }
}

/// Takes a line. Whether enough was read.
fn take(parsed: Line, stream: &mut Stream<'_>) -> Result<bool, Error> {
    match parsed {
        Line::Record(record, name) => {
            stream.heard(record.pid, name);
            return Ok(stream.push(record).is_break());
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
        Line::Cpus(cpus) => {
            stream.told.skipped += 1;
            stream.has_cpus(cpus);
        }
        Line::Cut | Line::Other => stream.told.skipped += 1,
    }
    Ok(false)
}

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    /// With the name of the thread that ran, which may be cut or empty.
    Record(Record, Comm),
    /// The begin of a record whose fields do not end here: a name may have a newline.
    Cut,
    /// So many events were lost.
    Lost(u64),
    /// A record whose time is no time.
    Ticks,
    /// The kernel's release, in the head that `perf script --header` writes.
    Release(String),
    /// The number of CPUs, in the head that `trace-cmd report` writes.
    Cpus(u32),
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
    if let Some(cpus) = line.strip_prefix(b"cpus=").and_then(number) {
        return u32::try_from(cpus).map_or(Line::Other, Line::Cpus);
    }
    let head = &line[..line.len().min(HEAD)];
    let brackets = head.iter().enumerate().filter(|(_, byte)| **byte == b'[');
    let found = { brackets }.find_map(|(at, _)| after_bracket(line, at));
    found.or_else(|| latency(line)).unwrap_or(Line::Other)
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
    // A CPU has at most ten digits: no need to look further.
    let end = rest.iter().take(11).position(|byte| *byte == b']')?;
    let cpu = number(&rest[..end])?;
    let (mut next, mut rest) = head_word(rest.get(end + 1..)?)?;
    let mut context = CpuContext::Unsaid;
    if next.last() != Some(&b':') {
        context = flags(next)?;
        (next, rest) = head_word(rest)?;
    }
    after_head(&line[..at], cpu, context, (next, rest))
}

/// A record as `trace-cmd report -l` writes it, where the CPU and the flags are one word.
fn latency(line: &[u8]) -> Option<Line> {
    let head = &line[..line.len().min(HEAD)];
    let blanks = head.iter().enumerate().filter(|(_, byte)| **byte == b' ');
    { blanks }.find_map(|(at, _)| {
        let rest = &line[at + 1..];
        let digits = rest
            .iter()
            .take(11)
            .take_while(|byte| byte.is_ascii_digit());
        let (cpu, rest) = rest.split_at(digits.count());
        let cpu = number(cpu)?;
        let (word, rest) = head_word(rest).filter(|_| rest.first() != Some(&b' '))?;
        let context = flags(word)?;
        after_head(&line[..at], cpu, context, head_word(rest)?)
    })
}

/// The first word, if it can be one of a head: no time and no event is as long.
fn head_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    const LONG: usize = 128;
    let text = text.get(text.iter().take(LONG).position(|byte| *byte != b' ')?..)?;
    let end = text.iter().take(LONG).position(u8::is_ascii_whitespace);
    let end = end.or_else(|| (text.len() < LONG).then_some(text.len()))?;
    Some(text.split_at(end))
}

/// The record of which a thread and a CPU stand before its time.
fn after_head(
    thread: &[u8],
    cpu: u64,
    context: CpuContext,
    (time, rest): (&[u8], &[u8]),
) -> Option<Line> {
    let time = time.strip_suffix(b":")?;
    let (pid, name) = pid(thread)?;
    let (event, fields) = head_word(rest)?;
    let event = event.strip_suffix(b":")?;
    // `perf script` puts the system before the event.
    let event = event.rsplit(|byte| *byte == b':').next()?;
    let Some(time) = nanos(time) else {
        let is_ticks = number(time).is_some() && fields::is_known(event);
        return is_ticks.then_some(Line::Ticks);
    };
    let Some(what) = fields::what(event, fields) else {
        let is_cut = fields::has_name(event);
        return Some(if is_cut { Line::Cut } else { Line::Other });
    };
    // Who forks is who runs, whatever number its own namespace gives it.
    let record = Record {
        time,
        cpu: u32::try_from(cpu).ok()?,
        pid,
        context,
        what,
    };
    Some(Line::Record(record, name))
}

/// The thread's number at the end of `COMM-PID`, `COMM-PID (TGID)`, `COMM PID` or `COMM PID/TID`,
/// and its name, which is empty where it is `<...>`.
fn pid(left: &[u8]) -> Option<(u32, Comm)> {
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
    let (name, digits) = left.split_at(begin);
    let name = match name.strip_suffix(b"/") {
        Some(process) => {
            let digits = process
                .iter()
                .rev()
                .take_while(|byte| byte.is_ascii_digit());
            &process[..process.len() - digits.count()]
        }
        None => &name[..name.len().saturating_sub(1)],
    };
    let name = name.trim_ascii();
    let name = if name == b"<...>" { &[] } else { name };
    Some((u32::try_from(number(digits)?).ok()?, Comm::new(name)))
}

/// The context by the third of the flags, as in `d.h2.`.
fn flags(flags: &[u8]) -> Option<CpuContext> {
    let is_flag = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'#' | b'+');
    if !(4..=8).contains(&flags.len()) || !flags.iter().all(is_flag) {
        return None;
    }
    Some(match flags[2] {
        b'h' | b'H' | b'z' | b'Z' => CpuContext::Hard,
        b's' => CpuContext::Soft,
        _ => CpuContext::Task,
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
fn bare(line: &[u8]) -> Option<crate::foreign::record::RecordWhat> {
    match parse(line) {
        Line::Record(record, _) => Some(record.what),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
