//! Reads `/proc/schedstat`, or a log of many snapshots one after the other.

use std::io::{self, BufRead, Read as _};

use model::Advice;

use super::layout::{Layout, VERSIONS};
use super::snapshot::{CpuEntry, DomainEntry, Snapshot};

/// First words of lines that kernels of vendors add, which count nothing that is read: energy-aware
/// scheduling of Android.
const OF_VENDORS: [&[u8]; 1] = [b"eas"];

/// Longest line that is read, in bytes. Version 7 has all domains of a CPU on one.
const LINE_MAX: u64 = 1 << 20;

/// Most CPUs of a snapshot: eight times what a kernel can be built for.
const CPUS_MAX: usize = 1 << 16;

/// Why statistics could not be read. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedstatError {
    /// The source failed.
    #[error("line {line}: {source}")]
    Io {
        /// The line that was being read.
        line: u64,
        /// What the source said.
        source: io::Error,
    },
    /// The file has no line at all.
    #[error("empty: /proc/schedstat begins with `version`")]
    Empty,
    /// A snapshot does not begin as one.
    #[error("line {line}: `{found}` where `{expected}` must stand")]
    Expected {
        /// The line.
        line: u64,
        /// The beginning of what stands there.
        found: String,
        /// What must stand there.
        expected: &'static str,
    },
    /// A version without a table.
    #[error("line {line}: statistics of version {version} are unknown")]
    UnknownVersion {
        /// The line.
        line: u64,
        /// The version.
        version: u64,
    },
    /// A line has more or fewer fields than its version says.
    #[error("line {line}: `{what}` has {found} fields, and version {version} has {expected}")]
    Fields {
        /// The line.
        line: u64,
        /// What the line is about, as `cpu3`.
        what: String,
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: usize,
        /// The snapshot's version.
        version: u32,
    },
    /// A field is no number of 64 bits.
    #[error("line {line}: `{found}` is not a counter")]
    NotANumber {
        /// The line.
        line: u64,
        /// The field.
        found: String,
    },
    /// A CPU stands twice in a snapshot: two were written into one another.
    #[error("line {line}: cpu{cpu} a second time in one snapshot")]
    Repeated {
        /// The line.
        line: u64,
        /// The CPU.
        cpu: u32,
    },
    /// A line or a snapshot is larger than any that a kernel writes.
    #[error("line {line}: {what}")]
    TooLarge {
        /// The line.
        line: u64,
        /// What is too large, and the limit.
        what: &'static str,
    },
    /// The file ends within a line or within a snapshot.
    #[error("line {line}: the file ends before {missing}")]
    CutOff {
        /// The last line.
        line: u64,
        /// What is missing.
        missing: &'static str,
    },
}

impl Advice for SchedstatError {
    fn advice(&self) -> Option<String> {
        Some(match self {
            Self::Empty => "has the kernel CONFIG_SCHEDSTATS?".to_owned(),
            Self::Expected { expected, .. } if *expected == VERSION_N => {
                "name what `stat record FILE` made".to_owned()
            }
            Self::UnknownVersion { version, .. } => version_hint(*version),
            Self::Repeated { .. } => "were two logs mixed?".to_owned(),
            _ => return None,
        })
    }
}

/// How a snapshot begins.
const VERSION_N: &str = "version N";

fn version_hint(version: u64) -> String {
    match version {
        1 | 2 | 6 | 8 => "the order of its fields was not handed down".to_owned(),
        13 => "it was never released".to_owned(),
        18..=40 => {
            "`stat report --cpu-lines` reads its cpu lines as those of version 17".to_owned()
        }
        _ => format!("{VERSIONS:?} are read"),
    }
}

/// Takes one snapshot after the other from a source.
#[derive(Debug)]
pub struct SchedstatReader<R> {
    source: R,
    /// The line that was read last, with its end.
    buffer: Vec<u8>,
    /// Its number.
    line: u64,
    /// Whether it has not been used yet.
    pending: bool,
    /// What is wrong behind a snapshot that is whole.
    failed: Option<SchedstatError>,
    /// Whether the `cpu` lines of later versions are read.
    later: bool,
    /// What a line `# HZ=` said last.
    hz: Option<u32>,
}

impl<R: BufRead> SchedstatReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            line: 0,
            pending: false,
            failed: None,
            later: false,
            hz: None,
        }
    }

    /// Reads the `cpu` lines of versions after the last known one, too, as
    /// [`Layout::of_later`] says, and passes over their domains.
    #[must_use]
    pub fn with_later_versions(mut self, later: bool) -> Self {
        self.later = later;
        self
    }

    /// The jiffies a second of the kernel, where a line `# HZ=250` has said it. `stat record` adds
    /// such a line, and no kernel prints it.
    #[must_use]
    pub fn hz(&self) -> Option<u32> {
        self.hz
    }

    /// The number of the line that was read last, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next snapshot; `None` at the end of the source.
    ///
    /// # Errors
    /// When the source fails or holds something else. Snapshots before that have been returned.
    pub fn next_snapshot(&mut self) -> Result<Option<Snapshot>, SchedstatError> {
        let mut snapshot = Snapshot::default();
        Ok(self.read_into(&mut snapshot)?.then_some(snapshot))
    }

    /// Reads the next snapshot into `snapshot`, whose memory is used again. `false` at the end.
    ///
    /// # Errors
    /// The errors of [`Self::next_snapshot`]; what `snapshot` holds then is not defined.
    pub fn read_into(&mut self, snapshot: &mut Snapshot) -> Result<bool, SchedstatError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if !self.advance()? {
            return if self.line == 0 {
                Err(SchedstatError::Empty)
            } else {
                Ok(false)
            };
        }
        let version = self.header("version ")?;
        snapshot.layout = self.layout(version)?;
        if !self.advance()? {
            return Err(self.cut_off("the timestamp"));
        }
        let has_none = !snapshot.layout.timestamp && !self.buffer.starts_with(b"timestamp ");
        if has_none {
            (snapshot.timestamp, self.pending) = (0, true);
        } else {
            snapshot.timestamp = self.header("timestamp ")?;
        }
        snapshot.cpus.clear();
        snapshot.domains.clear();
        snapshot.numbers.clear();
        snapshot.text.clear();
        snapshot.totals = None;
        while self.advance_within(snapshot)? {
            if self.buffer.starts_with(b"version ") {
                self.pending = true;
                break;
            }
            self.counters(snapshot)?;
        }
        if snapshot.cpus.is_empty() {
            return Err(self.cut_off("the first CPU"));
        }
        if snapshot.layout.totals_required && snapshot.totals.is_none() {
            return Err(self.cut_off("the line `totals`"));
        }
        Ok(true)
    }

    fn layout(&self, version: u64) -> Result<&'static Layout, SchedstatError> {
        let later = |version| Layout::of_later(version).filter(|_| self.later);
        let layout = u32::try_from(version)
            .ok()
            .and_then(|version| Layout::of(version).or_else(|| later(version)));
        layout.ok_or(SchedstatError::UnknownVersion {
            line: self.line,
            version,
        })
    }

    /// As [`Self::advance`], but a torn first line of the next snapshot is told behind this one.
    fn advance_within(&mut self, snapshot: &Snapshot) -> Result<bool, SchedstatError> {
        match self.advance() {
            Err(error @ SchedstatError::CutOff { .. })
                if self.buffer.starts_with(b"v") && !snapshot.cpus.is_empty() =>
            {
                self.failed = Some(error);
                Ok(false)
            }
            result => result,
        }
    }

    /// Makes the next line that is neither blank nor a note the current one; `false` at the end.
    fn advance(&mut self) -> Result<bool, SchedstatError> {
        if std::mem::take(&mut self.pending) {
            return Ok(true);
        }
        loop {
            self.buffer.clear();
            self.line += 1;
            let line = self.line;
            let mut limited = self.source.by_ref().take(LINE_MAX);
            let read = limited.read_until(b'\n', &mut self.buffer);
            if read.map_err(|source| SchedstatError::Io { line, source })? == 0 {
                self.line -= 1;
                return Ok(false);
            }
            if self.buffer.last() != Some(&b'\n') {
                let too_long = self.buffer.len() as u64 == LINE_MAX;
                return Err(if too_long {
                    SchedstatError::TooLarge {
                        line,
                        what: "longer than 1 MiB",
                    }
                } else {
                    self.cut_off("the end of the line")
                });
            }
            while self.buffer.last().is_some_and(u8::is_ascii_whitespace) {
                self.buffer.pop();
            }
            self.unfold()?;
            if let Some(hz) = noted_hz(&self.buffer) {
                self.hz = Some(hz);
            } else if !self.buffer.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Appends the lines that begin with a number or a blank: papers and mails fold long lines,
    /// and a kernel begins each with a word.
    fn unfold(&mut self) -> Result<(), SchedstatError> {
        if !self.buffer.first().is_some_and(u8::is_ascii_lowercase) {
            return Ok(());
        }
        loop {
            let line = self.line + 1;
            let ahead = self.source.fill_buf();
            let ahead = ahead.map_err(|source| SchedstatError::Io { line, source })?;
            let is_folded = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'\t');
            if !ahead.first().is_some_and(is_folded) {
                return Ok(());
            }
            self.line = line;
            let start = self.buffer.len();
            let mut limited = self.source.by_ref().take(LINE_MAX);
            let read = limited.read_until(b'\n', &mut self.buffer);
            read.map_err(|source| SchedstatError::Io { line, source })?;
            if self.buffer.len() as u64 > LINE_MAX {
                return Err(SchedstatError::TooLarge {
                    line,
                    what: "longer than 1 MiB",
                });
            }
            if self.buffer.last() != Some(&b'\n') {
                return Err(self.cut_off("the end of the line"));
            }
            let end = self.buffer.trim_ascii_end().len().max(start);
            self.buffer.truncate(end);
            let more = self.buffer[start..].trim_ascii_start().len();
            let blanks = self.buffer.len() - start - more;
            if more > 0 {
                self.buffer.splice(start..start + blanks, [b' ']);
            }
        }
    }

    /// The number behind `word`, with which the current line must begin.
    fn header(&self, word: &'static str) -> Result<u64, SchedstatError> {
        let line = self.line;
        let rest = self.buffer.strip_prefix(word.as_bytes());
        let number = rest.and_then(|rest| std::str::from_utf8(rest).ok()?.trim().parse().ok());
        number.ok_or_else(|| SchedstatError::Expected {
            line,
            found: excerpt(&self.buffer),
            expected: if word == "version " {
                VERSION_N
            } else {
                "timestamp N"
            },
        })
    }

    /// Takes the counters of the current line.
    fn counters(&self, snapshot: &mut Snapshot) -> Result<(), SchedstatError> {
        let (word, rest) = split_word(&self.buffer);
        if let Some(cpu) = numbered(word, b"cpu") {
            return self.cpu(snapshot, cpu, rest);
        }
        let layout = snapshot.layout;
        if numbered(word, b"domain").is_some() && Layout::of_later(layout.version).is_some() {
            return Ok(());
        }
        let has_domains = !layout.domain.is_empty() && !layout.domains_inline;
        if has_domains
            && !snapshot.cpus.is_empty()
            && let Some(level) = numbered(word, b"domain")
        {
            let rest = self.domain(snapshot, level, rest)?;
            return if rest.is_empty() {
                Ok(())
            } else {
                let more = rest.split(|&byte| byte == b' ').count();
                Err(self.fields(
                    word,
                    layout.domain.len() + more,
                    layout.domain.len(),
                    layout,
                ))
            };
        }
        if OF_VENDORS.contains(&word) {
            return Ok(());
        }
        if word == b"totals" && !layout.totals.is_empty() && snapshot.totals.is_none() {
            snapshot.totals = Some(self.totals(layout, rest)?);
            return Ok(());
        }
        Err(SchedstatError::Expected {
            line: self.line,
            found: excerpt(&self.buffer),
            expected: if has_domains {
                "cpuN, domainN or version N"
            } else {
                "cpuN or version N"
            },
        })
    }

    fn cpu(&self, snapshot: &mut Snapshot, cpu: u32, rest: &[u8]) -> Result<(), SchedstatError> {
        let line = self.line;
        // CPUs come in rising order, so that a look at the last one mostly suffices.
        let rising = snapshot.cpus.last().is_none_or(|last| last.cpu < cpu);
        if !rising && snapshot.cpus.iter().any(|entry| entry.cpu == cpu) {
            return Err(SchedstatError::Repeated { line, cpu });
        }
        if snapshot.cpus.len() == CPUS_MAX {
            return Err(SchedstatError::TooLarge {
                line,
                what: "more than 65,536 CPUs",
            });
        }
        let layout = snapshot.layout;
        let first = snapshot.numbers.len();
        let domains = snapshot.domains.len()..snapshot.domains.len();
        let mut rest = self.numbers(
            &mut snapshot.numbers,
            layout.cpu.len(),
            rest,
            (layout, || format!("cpu{cpu}").into_bytes()),
        )?;
        snapshot.cpus.push(CpuEntry {
            cpu,
            first,
            domains,
        });
        while !rest.is_empty() {
            let (word, after) = split_word(rest);
            let level = numbered(word, b"domain").filter(|_| layout.domains_inline);
            let Some(level) = level else {
                let more = rest.split(|&byte| byte == b' ').count();
                let found = layout.cpu.len() + more;
                let what = format!("cpu{cpu}");
                return Err(self.fields(what.as_bytes(), found, layout.cpu.len(), layout));
            };
            rest = self.domain(snapshot, level, after)?;
        }
        Ok(())
    }

    /// Takes one domain from the beginning of `rest` and returns what follows.
    fn domain<'a>(
        &self,
        snapshot: &mut Snapshot,
        level: u32,
        rest: &'a [u8],
    ) -> Result<&'a [u8], SchedstatError> {
        let layout = snapshot.layout;
        let (name, rest) = if layout.domain_names {
            split_word(rest)
        } else {
            (&[][..], rest)
        };
        let (mask, rest) = split_word(rest);
        let name = snapshot.push_text(self.printable(name)?);
        let mask_text = self.printable(mask)?;
        if mask_text.is_empty() || !mask.iter().all(|c| c.is_ascii_hexdigit() || *c == b',') {
            return Err(SchedstatError::Expected {
                line: self.line,
                found: excerpt(mask),
                expected: "a mask of CPUs",
            });
        }
        let mask = snapshot.push_text(mask_text);
        let first = snapshot.numbers.len();
        let rest = self.numbers(
            &mut snapshot.numbers,
            layout.domain.len(),
            rest,
            (layout, || format!("domain{level}").into_bytes()),
        )?;
        snapshot.domains.push(DomainEntry {
            level,
            name,
            mask,
            first,
        });
        let cpu = snapshot
            .cpus
            .last_mut()
            .expect("a CPU stands before its domains");
        cpu.domains.end = snapshot.domains.len();
        Ok(rest)
    }

    fn totals(&self, layout: &'static Layout, rest: &[u8]) -> Result<Vec<u64>, SchedstatError> {
        let found = rest
            .split(|&byte| byte == b' ')
            .filter(|word| !word.is_empty())
            .count();
        if !layout.totals.contains(&found) {
            return Err(self.fields(b"totals", found, layout.totals[0], layout));
        }
        let mut totals = Vec::with_capacity(found);
        self.numbers(&mut totals, found, rest, (layout, || b"totals".to_vec()))?;
        Ok(totals)
    }

    /// Takes `count` numbers from the beginning of `rest` and returns what follows. `what` has
    /// them, for messages.
    fn numbers<'a>(
        &self,
        into: &mut Vec<u64>,
        count: usize,
        mut rest: &'a [u8],
        (layout, what): (&Layout, impl Fn() -> Vec<u8>),
    ) -> Result<&'a [u8], SchedstatError> {
        for found in 0..count {
            if rest.is_empty() {
                return Err(self.fields(&what(), found, count, layout));
            }
            let (number, after) = leading_number(rest).ok_or_else(|| {
                let found = excerpt(split_word(rest).0);
                SchedstatError::NotANumber {
                    line: self.line,
                    found,
                }
            })?;
            into.push(number);
            rest = after;
        }
        Ok(rest)
    }

    fn printable<'a>(&self, word: &'a [u8]) -> Result<&'a str, SchedstatError> {
        let text = std::str::from_utf8(word)
            .ok()
            .filter(|text| text.is_ascii());
        text.ok_or_else(|| SchedstatError::Expected {
            line: self.line,
            found: excerpt(word),
            expected: "a name or a mask",
        })
    }

    fn fields(
        &self,
        what: &[u8],
        found: usize,
        expected: usize,
        layout: &Layout,
    ) -> SchedstatError {
        let what = String::from_utf8_lossy(what).into_owned();
        SchedstatError::Fields {
            line: self.line,
            what,
            found,
            expected,
            version: layout.version,
        }
    }

    fn cut_off(&self, missing: &'static str) -> SchedstatError {
        SchedstatError::CutOff {
            line: self.line,
            missing,
        }
    }
}

impl<R: BufRead> Iterator for SchedstatReader<R> {
    type Item = Result<Snapshot, SchedstatError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_snapshot().transpose()
    }
}

/// The number of a line `# HZ=250`, if it is one that a kernel can have.
fn noted_hz(line: &[u8]) -> Option<u32> {
    let number = line.strip_prefix(b"# HZ=")?;
    let hz = std::str::from_utf8(number).ok()?.parse().ok()?;
    (1..=10_000).contains(&hz).then_some(hz)
}

/// The first word, and what follows the blanks after it.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|&byte| byte == b' ')
        .unwrap_or(text.len());
    (&text[..end], skip_blanks(&text[end..]))
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let start = text
        .iter()
        .position(|&byte| byte != b' ')
        .unwrap_or(text.len());
    &text[start..]
}

/// The number in a word as `cpu12`, whose letters are `letters`.
fn numbered(word: &[u8], letters: &[u8]) -> Option<u32> {
    let (number, rest) = leading_number(word.strip_prefix(letters)?)?;
    rest.is_empty().then(|| u32::try_from(number).ok())?
}

/// The number at the beginning, which a blank or the end follows, and what comes after it.
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (index, &byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            let ends = index > 0 && byte == b' ';
            return ends.then(|| (value, skip_blanks(&text[index..])));
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (!text.is_empty()).then_some((value, &[]))
}

/// The beginning of a line for a message.
fn excerpt(text: &[u8]) -> String {
    model::plain::shown(&text[..text.len().min(40)])
}
