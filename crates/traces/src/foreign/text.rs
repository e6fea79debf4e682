//! The text of `perf script`, `trace-cmd report` and ftrace's own `trace`.
//!
//! A line is `COMM-PID [CPU] FLAGS TIME: EVENT: FIELDS`, where `perf script` writes `COMM PID` and
//! no flags. Names may have blanks, colons and brackets, so a line is taken apart around the first
//! `[CPU]` that a time follows, and its fields from their right end.

mod fields;

pub use fields::{alarm, is_timer, softirq_of, waking_sync};
use fields::{number, word};

use std::io::{BufRead, Read as _};

use crate::foreign::error::Error;
use crate::foreign::record::{CURRENT, Comm, CpuContext, Record};
use crate::foreign::stream::Stream;

/// Bytes of a line that are looked at.
const LINE: u64 = 1 << 16;

/// Bytes of a line within which its event must stand: names of a thread and of a buffer come first.
const HEAD: usize = 512;

/// Newlines that names in one record can have: two names of 15 bytes.
const NEWLINES: u32 = 30;

/// Whether these bytes are text: no other format begins with a line of a trace. A name may have any
/// byte but NUL, so text may have control characters behind such a line. NULs are damage, and
/// binary formats may hold the text of a trace: then the first line decides.
pub fn is_text(begin: &[u8]) -> bool {
    let is_plain = |byte: &u8| *byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r');
    let is_plain = !begin.is_empty() && begin.iter().all(is_plain);
    let text = begin.trim_ascii_start();
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
    is_plain || has_record(if begin.contains(&0) { first } else { begin })
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
        || lines.any(|line| line.starts_with(b"# tracer:") || is_sure(&parse(line)))
}

/// Whether only a trace has such a line.
const fn is_sure(line: &Line) -> bool {
    matches!(
        line,
        Line::Record(..) | Line::Cut | Line::Lost(_) | Line::Ticks
    )
}

/// The first lines of a record: a newline in a name cuts it.
struct Begun {
    text: Vec<u8>,
    newlines: u32,
    /// Number and first byte of its first line.
    number: u64,
    offset: u64,
}

/// The lines of a text, one after the other.
#[derive(Default)]
struct Lines {
    cut: Option<Begun>,
    /// Number of the line, and its first byte.
    number: u64,
    offset: u64,
    /// A page of systrace, whose programs have words of records before the first record.
    is_page: bool,
}

impl Lines {
    /// What the line is, together with those before it that it goes on with; `None`: it is cut.
    fn parse(&mut self, line: &[u8], is_last: bool, stream: &mut Stream<'_>) -> Option<Line> {
        self.number += 1;
        self.is_page |= self.number == 1 && line.first() == Some(&b'<');
        let mut begun = Begun {
            text: Vec::new(),
            newlines: 0,
            number: self.number,
            offset: self.offset,
        };
        let mut parsed = parse(line);
        if let Some(before) = self.cut.take() {
            let is_short = before.text.len() + line.len() <= 2 * HEAD;
            if !is_sure(&parsed) && before.newlines < NEWLINES && is_short {
                begun = before;
            } else {
                stream.damaged(Some(before.number));
            }
        }
        if begun.newlines > 0 {
            begun.text.extend_from_slice(line);
            parsed = parse(&begun.text);
        }
        let is_done = !matches!(parsed, Line::Cut | Line::Damaged | Line::Unknown);
        if parsed == Line::Cut && !is_last {
            if begun.newlines == 0 {
                begun.text.extend_from_slice(line);
            }
            begun.newlines += 1;
            self.cut = Some(begun);
            return None;
        }
        if is_last && !is_done && !self.is_page && stream.has_record {
            stream.told.cut_at = Some(begun.offset);
        } else if matches!(parsed, Line::Cut | Line::Damaged) {
            let is_program = self.is_page && !stream.has_record;
            if !is_program {
                stream.damaged(Some(begun.number));
            }
        }
        Some(parsed)
    }
}

/// Reads every line. Lines that are no records are counted only.
pub fn read(input: &mut impl BufRead, stream: &mut Stream<'_>) -> Result<(), Error> {
    let mut line = Vec::new();
    let mut lines = Lines::default();
    loop {
        line.clear();
        let offset = lines.offset;
        let got = input.take(LINE).read_until(b'\n', &mut line);
        let got = got.map_err(|source| Error::Io { offset, source })? as u64;
        if got == 0 {
            lines.cut.inspect(|cut| stream.damaged(Some(cut.number)));
            return Ok(());
        }
        let is_last = got < LINE && line.last() != Some(&b'\n');
        if let Some(parsed) = lines.parse(&line, is_last, stream)
            && take(parsed, stream)?
        {
            return Ok(());
        }
        lines.offset += got;
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
        Line::Other | Line::Unknown => stream.told.skipped += 1,
        Line::Cut | Line::Damaged => {}
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
    /// It looks like a record of use, and cannot be read.
    Damaged,
    /// A comment, or a record of no use.
    Other,
    /// Nothing that is known.
    Unknown,
}

fn parse(line: &[u8]) -> Line {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Line::Other;
    }
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
    found.or_else(|| latency(line)).unwrap_or_else(|| {
        // Stacks stand below records, and name no field.
        let is_like = fields::has_words(&line[..line.len().min(2 * HEAD)]);
        if is_like {
            Line::Damaged
        } else {
            Line::Unknown
        }
    })
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

/// A record as `trace-cmd report -l` and ftrace's `latency-format` write it, where the CPU and the
/// flags are one word.
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
        let (mut time, mut rest) = head_word(rest)?;
        // A blank may stand where a longer delay has its mark: `12us : sched_switch: ...`.
        if let Some(behind) = rest.strip_prefix(b" :").filter(|_| time.ends_with(b"us")) {
            let start = line.len() - rest.len() - time.len();
            time = &line[start..start + time.len() + 2];
            rest = behind;
        }
        after_head(&line[..at], cpu, context, (time, rest))
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
    let (mut event, mut fields) = head_word(rest)?;
    // `perf script -F +period` has the period before the event.
    if number(event).is_some() {
        (event, fields) = head_word(fields)?;
    }
    let event = event.strip_suffix(b":")?;
    // `perf script` puts the system before the event.
    let event = event.rsplit(|byte| *byte == b':').next()?;
    let Some(time) = nanos(time) else {
        let is_ticks = number(time).is_some() && fields::is_known(event);
        return is_ticks.then_some(Line::Ticks);
    };
    let Some(what) = fields::what(event, fields) else {
        return Some(match event {
            _ if fields::has_name(event) => Line::Cut,
            b"sched_process_exec" | b"softirq_entry" | b"softirq_exit" => Line::Damaged,
            _ => Line::Other,
        });
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
    // `perf script` writes so of a thread that it does not know.
    if name.trim_ascii_start().starts_with(b":-1 ") && digits == b"1" {
        return Some((CURRENT, Comm::default()));
    }
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

/// Nanoseconds of `12.345678` or `12.345678901` seconds, or of `12us` with the mark of a delay
/// (kernel 6.18, `trace_find_mark()`).
fn nanos(text: &[u8]) -> Option<u64> {
    let mark = |byte: &u8| b"$@*#!+ ".contains(byte);
    let bare = text.split_last().filter(|(last, _)| mark(last));
    let bare = bare.map_or(text, |(_, bare)| bare);
    if let Some(micros) = bare.strip_suffix(b"us") {
        return number(micros)?.checked_mul(1000);
    }
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
