//! `perf.data`, as a file or as what `perf record -o -` writes into a pipe.
//!
//! Source: perf's `tools/perf/Documentation/perf.data-file-format.txt` and the kernel's
//! `include/uapi/linux/perf_event.h`, 6.18.
//!
//! Read here and not by the crate `linux-perf-data` (0.13): its errors name no offset, it allocates
//! what a damaged size field claims, and its zstd is a C library.

mod sample;
mod unpacked;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek};

use crate::foreign::cursor::{Cursor, Endian, seek};
use crate::foreign::error::Error;
use crate::foreign::format::Formats;
use crate::foreign::record::Record;
use crate::foreign::stream::Stream;
use crate::foreign::trace_dat::tracing_data;
use sample::{Layout, PerfSample};
use unpacked::Unpacked;

/// Most bytes of the descriptions of all events.
const DESCRIPTIONS: u64 = 256 << 20;
/// Most events that were recorded, and numbers of all of them: one for each event and CPU.
const EVENTS: u64 = 1 << 16;
const IDS: usize = 1 << 20;
/// Most forms that samples have: events of one recording differ in a few bits.
const LAYOUTS: usize = 1 << 10;
/// Bits of the features `HEADER_TRACING_DATA`, `HEADER_OSRELEASE` and `HEADER_NRCPUS` (Linux 6.18,
/// tools/perf/Documentation/perf.data-file-format.txt).
const TRACING_DATA: u32 = 1;
const OSRELEASE: u32 = 4;
const NRCPUS: u32 = 7;
/// Most bytes of a feature that is a text.
const TEXT: u64 = 1 << 12;

/// Kinds of records.
mod kind {
    pub const LOST: u32 = 2;
    pub const SAMPLE: u32 = 9;
    pub const LOST_SAMPLES: u32 = 13;
    pub const HEADER_ATTR: u32 = 64;
    pub const HEADER_TRACING_DATA: u32 = 66;
    pub const HEADER_FEATURE: u32 = 80;
    pub const AUXTRACE: u32 = 71;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

/// A part of the file.
#[derive(Clone, Copy)]
struct Section {
    offset: u64,
    size: u64,
}

/// What is needed to read samples.
#[derive(Default)]
struct Head {
    endian: Endian,
    formats: Formats,
    layouts: Vec<Layout>,
    /// Which layout the samples of a number have.
    by_id: HashMap<u64, usize>,
    /// The kernel's release.
    release: Option<String>,
    /// How many CPUs were online.
    online: Option<u32>,
}

impl Head {
    /// Takes the description of a recorded event, which stands at `offset`, and its numbers.
    fn add(&mut self, attr: &[u8], ids: &[u64], offset: u64) -> Result<(), Error> {
        let number = |at: usize| {
            let bytes = attr.get(at..at + 8).unwrap_or(&[]);
            self.endian.number(bytes)
        };
        let layout = Layout {
            sample_type: number(24),
            read_format: number(32),
        };
        let known = self.layouts.iter().position(|it| *it == layout);
        let index = known.unwrap_or(self.layouts.len());
        if known.is_none() {
            self.layouts.push(layout);
        }
        self.by_id.extend(ids.iter().map(|id| (*id, index)));
        let too_many = |what, most: usize| Error::TooMany {
            offset,
            what,
            most: most as u64,
        };
        if self.layouts.len() > LAYOUTS {
            return Err(too_many("too many forms of samples", LAYOUTS));
        }
        if self.by_id.len() > IDS {
            return Err(too_many("too many numbers of recorded events", IDS));
        }
        Ok(())
    }

    /// The layout of a sample.
    fn layout(&self, body: &[u8]) -> Option<Layout> {
        match &self.layouts[..] {
            [only] => Some(*only),
            // All that differ have their number first.
            _ => {
                let id = self.endian.number(body.get(..8)?);
                self.layouts.get(*self.by_id.get(&id)?).copied()
            }
        }
    }

    fn check(&self, offset: u64) -> Result<(), Error> {
        let all_say =
            (self.layouts.iter()).all(|layout| layout.sample_type & sample::IDENTIFIER != 0);
        let what = match self.layouts.len() {
            0 => "the file describes no recorded event",
            1 => return Ok(()),
            _ if all_say => return Ok(()),
            _ => "recorded events differ in their form, and samples do not say which they are of",
        };
        Err(Error::Malformed { offset, what })
    }
}

/// Reads the samples of the scheduler's events.
pub fn read<R: Read + Seek>(
    input: &mut BufReader<R>,
    stream: &mut Stream<'_>,
) -> Result<(), Error> {
    let mut cursor = Cursor::new(&mut *input, 0, Endian::Little);
    let magic = cursor.array::<8>("the header")?;
    let endian = if magic == *b"PERFILE2" {
        Endian::Little
    } else {
        Endian::Big
    };
    cursor.endian = endian;
    let size = cursor.u64("the header")?;
    let mut head = Head {
        endian,
        formats: Formats::new(endian),
        ..Head::default()
    };
    // In a pipe nothing stands before the records.
    if size == 16 {
        records(&mut cursor, &mut head, None, stream)?;
        return match head.layouts[..] {
            [] => head.check(cursor.offset),
            _ => Ok(()),
        };
    }
    let data = read_head(input, &mut head)?;
    stream.told.kernel = head.release.take();
    if let Some(online) = head.online {
        stream.has_cpus(online);
    }
    head.check(0)?;
    seek(input, data.offset)?;
    let mut cursor = Cursor::new(&mut *input, data.offset, endian);
    // perf writes the size last: a recording that was cut off has none.
    let end = (data.size > 0).then(|| data.offset.saturating_add(data.size));
    records(&mut cursor, &mut head, end, stream)
}

fn section(cursor: &mut Cursor<impl BufRead>) -> Result<Section, Error> {
    Ok(Section {
        offset: cursor.u64("where a section is")?,
        size: cursor.u64("the length of a section")?,
    })
}

/// Reads the rest of the header, the recorded events and their descriptions. Gives where the
/// records are.
fn read_head<R: Read + Seek>(input: &mut BufReader<R>, head: &mut Head) -> Result<Section, Error> {
    let endian = head.endian;
    let mut cursor = Cursor::new(&mut *input, 16, endian);
    let at = cursor.offset;
    let attr_size = cursor.u64("the length of an event's entry")?;
    let attrs = section(&mut cursor)?;
    let data = section(&mut cursor)?;
    section(&mut cursor)?;
    let features = cursor.array::<32>("the features")?;
    if !(64 + 16..=4096).contains(&attr_size) || attrs.size / attr_size > EVENTS {
        let what = "the length of the recorded events cannot be";
        return Err(Error::Malformed { offset: at, what });
    }
    read_attrs(input, head, attrs, attr_size)?;
    // Sections of features stand behind the records, in the order of the features' bits.
    let first = endian.number(&features[..8]);
    if first & 1 << TRACING_DATA == 0 {
        let what = "the file has no descriptions of tracepoints: no scheduler's event was recorded";
        return Err(Error::Malformed { offset: 72, what });
    }
    let place = |feature: u32| {
        let before = u64::from((first & ((1 << feature) - 1)).count_ones());
        let behind = data.offset.checked_add(data.size);
        behind.and_then(|it| it.checked_add(16 * before))
    };
    let Some(at) = place(TRACING_DATA) else {
        let what = "the records end beyond any file";
        return Err(Error::Malformed { offset: 40, what });
    };
    if let Some(at) = place(OSRELEASE).filter(|_| first & 1 << OSRELEASE != 0) {
        // The records are of use without it.
        let bytes = feature(input, at, endian).ok();
        head.release = bytes.map(|bytes| text(&bytes, endian));
    }
    if let Some(at) = place(NRCPUS).filter(|_| first & 1 << NRCPUS != 0) {
        let bytes = feature(input, at, endian).unwrap_or_default();
        head.online = online(&bytes, endian);
    }
    seek(input, at)?;
    let mut cursor = Cursor::new(&mut *input, at, endian);
    let tracing = section(&mut cursor)?;
    seek(input, tracing.offset)?;
    let mut cursor = Cursor::new((&mut *input).take(tracing.size), tracing.offset, endian);
    descriptions(&mut cursor, head)?;
    Ok(data)
}

/// The bytes of the feature whose section's place stands at `at`.
fn feature<R: Read + Seek>(
    input: &mut BufReader<R>,
    at: u64,
    endian: Endian,
) -> Result<Vec<u8>, Error> {
    seek(input, at)?;
    let section = section(&mut Cursor::new(&mut *input, at, endian))?;
    seek(input, section.offset)?;
    let mut cursor = Cursor::new(&mut *input, section.offset, endian);
    cursor.bytes(section.size.min(TEXT), TEXT, "what describes the machine")
}

/// How many CPUs were online: behind the number of those that could be. Those that were not have
/// no records, and take no part in a simulation. No machine that is simulated has more than
/// [`model::CPUS_MAX`].
fn online(bytes: &[u8], endian: Endian) -> Option<u32> {
    let online = endian.number(bytes.get(4..8)?);
    let online = u32::try_from(online).ok()?;
    (online <= model::CPUS_MAX.into()).then_some(online)
}

/// A text behind its length, up to the first NUL.
fn text(bytes: &[u8], endian: Endian) -> String {
    let (long, rest) = bytes.split_at(bytes.len().min(4));
    let long = usize::try_from(endian.number(long)).unwrap_or(usize::MAX);
    let text = &rest[..rest.len().min(long)];
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn read_attrs<R: Read + Seek>(
    input: &mut BufReader<R>,
    head: &mut Head,
    attrs: Section,
    attr_size: u64,
) -> Result<(), Error> {
    let mut all = 0_u64;
    for index in 0..attrs.size / attr_size {
        let offset = attrs.offset.saturating_add(index * attr_size);
        seek(input, offset)?;
        let mut cursor = Cursor::new(&mut *input, offset, head.endian);
        let attr = cursor.bytes(attr_size - 16, attr_size, "a recorded event")?;
        let ids = section(&mut cursor)?;
        // Events may claim the same bytes, so it is their sum that is limited.
        all = all.saturating_add(ids.size);
        let most = IDS as u64 * 8;
        if all > most {
            return Err(Error::TooLong {
                offset,
                what: "the numbers of recorded events",
                found: all,
                most,
            });
        }
        seek(input, ids.offset)?;
        let mut cursor = Cursor::new(&mut *input, ids.offset, head.endian);
        let bytes = cursor.bytes(ids.size & !7, ids.size, "the numbers of a recorded event")?;
        let ids: Vec<u64> = bytes.chunks(8).map(|id| head.endian.number(id)).collect();
        head.add(&attr, &ids, offset)?;
    }
    Ok(())
}

/// The descriptions of tracepoints, which begin like a `trace.dat`.
fn descriptions(cursor: &mut Cursor<impl BufRead>, head: &mut Head) -> Result<(), Error> {
    cursor.expect(
        b"\x17\x08\x44tracing",
        "no descriptions of tracepoints where they belong",
    )?;
    cursor.string("the version of the descriptions")?;
    cursor.endian = match cursor.u8("the order of bytes")? {
        0 => Endian::Little,
        _ => Endian::Big,
    };
    cursor.u8("the size of a long")?;
    cursor.u32("the size of a page")?;
    (_, head.formats) = tracing_data(cursor)?;
    Ok(())
}

/// Reads records up to `end`, or to the end of the file.
fn records(
    cursor: &mut Cursor<impl BufRead>,
    head: &mut Head,
    end: Option<u64>,
    stream: &mut Stream<'_>,
) -> Result<(), Error> {
    let mut reader = Records {
        head,
        last: 0,
        unpacked: Unpacked::default(),
        body: Vec::new(),
        is_over: false,
    };
    while !reader.is_over && end.is_none_or(|end| cursor.offset < end) {
        let offset = cursor.offset;
        match reader.next(cursor, stream) {
            Ok(true) => {}
            Ok(false) => break,
            // Whoever recorded was stopped in the middle.
            Err(Error::Truncated { .. }) if stream.told.records > 0 => {
                stream.told.cut_at = Some(offset);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let offset = cursor.offset;
    reader.unpacked.finish(offset)?;
    reader.unpacked_records(offset, stream)
}

struct Records<'a> {
    head: &'a mut Head,
    /// The time of the last sample.
    last: u64,
    unpacked: Unpacked,
    body: Vec<u8>,
    is_over: bool,
}

impl Records<'_> {
    /// Takes the next record of the file. `false` at its end.
    fn next(
        &mut self,
        cursor: &mut Cursor<impl BufRead>,
        stream: &mut Stream<'_>,
    ) -> Result<bool, Error> {
        let offset = cursor.offset;
        let mut header = [0; 8];
        match cursor.fill(&mut header[..1], "a record") {
            Err(Error::Truncated { .. }) => return Ok(false),
            other => other?,
        }
        cursor.fill(&mut header[1..], "a record")?;
        let (kind, size) = self.header(&header, offset)?;
        let mut body = std::mem::take(&mut self.body);
        body.resize(size, 0);
        cursor.fill(&mut body, "a record")?;
        stream.told.records += 1;
        match kind {
            kind::HEADER_FEATURE => {
                let endian = self.head.endian;
                let bits = body.get(..8).map(|bits| endian.number(bits));
                if bits == Some(OSRELEASE.into()) {
                    stream.told.kernel = Some(text(&body[8..], endian));
                } else if bits == Some(NRCPUS.into()) {
                    stream.has_cpus(online(&body[8..], endian).unwrap_or(0));
                }
            }
            kind::HEADER_TRACING_DATA => {
                // The size is the body's, and what it counts follows.
                let size = self.head.endian.number(body.get(..4).unwrap_or(&[]));
                let bytes = cursor.bytes(size, DESCRIPTIONS, "the descriptions of tracepoints")?;
                let mut inner = Cursor::new(&bytes[..], offset + 12, self.head.endian);
                descriptions(&mut inner, self.head)?;
                let padding = size.next_multiple_of(8) - size;
                cursor.bytes(padding, 8, "a record")?;
            }
            kind::AUXTRACE => {
                let what =
                    "records of a processor's own trace; record the scheduler's events alone";
                return Err(Error::Malformed { offset, what });
            }
            kind::COMPRESSED | kind::COMPRESSED2 => {
                let long = match kind {
                    kind::COMPRESSED2 => {
                        let long = self.head.endian.number(body.get(..8).unwrap_or(&[]));
                        8..usize::try_from(long)
                            .ok()
                            .and_then(|it| it.checked_add(8))
                            .unwrap_or(0)
                    }
                    _ => 0..body.len(),
                };
                let what = "a packed record is shorter than it says";
                let packed = body.get(long).ok_or(Error::Malformed { offset, what })?;
                self.packed(packed, offset, stream)?;
            }
            kind => self.record(kind, &body, offset, stream)?,
        }
        self.body = body;
        Ok(true)
    }

    /// The kind of a record and the length of its body.
    fn header(&self, header: &[u8], offset: u64) -> Result<(u32, usize), Error> {
        let endian = self.head.endian;
        let kind = u32::try_from(endian.number(&header[..4])).expect("four bytes");
        let size = usize::try_from(endian.number(&header[6..8])).expect("two bytes");
        let what = "a record is shorter than its header";
        let size = size
            .checked_sub(8)
            .ok_or(Error::Malformed { offset, what })?;
        Ok((kind, size))
    }

    /// Takes the records of a packed one. They are one stream: one may end in the next.
    fn packed(&mut self, packed: &[u8], offset: u64, stream: &mut Stream<'_>) -> Result<(), Error> {
        self.unpacked.add(packed, offset)?;
        self.unpacked_records(offset, stream)
    }

    fn unpacked_records(&mut self, offset: u64, stream: &mut Stream<'_>) -> Result<(), Error> {
        loop {
            let Some(header) = self.unpacked.peek(8) else {
                return Ok(());
            };
            let (kind, size) = self.header(header, offset)?;
            let Some(record) = self.unpacked.take(8 + size) else {
                return Ok(());
            };
            if matches!(kind, kind::COMPRESSED | kind::COMPRESSED2) {
                let what = "a packed record within a packed record";
                return Err(Error::Malformed { offset, what });
            }
            let result = self.record(kind, &record[8..], offset, stream);
            self.unpacked.give_back(record);
            result?;
        }
    }

    fn record(
        &mut self,
        kind: u32,
        body: &[u8],
        offset: u64,
        stream: &mut Stream<'_>,
    ) -> Result<(), Error> {
        let number = |at: usize| body.get(at..at + 8).map(|it| self.head.endian.number(it));
        match kind {
            kind::SAMPLE => self.sample(body, offset, stream),
            kind::LOST => {
                self.lost(number(8).unwrap_or(0), stream);
                Ok(())
            }
            kind::LOST_SAMPLES => {
                self.lost(number(0).unwrap_or(0), stream);
                Ok(())
            }
            kind::HEADER_ATTR => self.attr(body, offset),
            _ => Ok(()),
        }
    }

    fn attr(&mut self, body: &[u8], offset: u64) -> Result<(), Error> {
        let endian = self.head.endian;
        let size = endian.number(body.get(4..8).unwrap_or(&[]));
        let size = usize::try_from(size).unwrap_or(0).clamp(64, 4096);
        let (attr, ids) = body.split_at(size.min(body.len()));
        let ids: Vec<u64> = ids.chunks_exact(8).map(|id| endian.number(id)).collect();
        self.head.add(attr, &ids, offset)
    }

    fn lost(&mut self, many: u64, stream: &mut Stream<'_>) {
        stream.told.gaps += 1;
        stream.told.lost = stream.told.lost.saturating_add(many);
    }

    fn sample(&mut self, body: &[u8], offset: u64, stream: &mut Stream<'_>) -> Result<(), Error> {
        let layout = match self.head.layout(body) {
            Some(layout) => layout,
            None if self.head.layouts.is_empty() => return self.head.check(offset),
            None => {
                stream.told.skipped += 1;
                return Ok(());
            }
        };
        let sample = PerfSample::of(body, layout, self.head.endian);
        let sample = sample.map_err(|what| Error::Malformed { offset, what })?;
        let Some((pid, context, what)) = self.head.formats.decode(sample.raw) else {
            stream.told.skipped += 1;
            return Ok(());
        };
        self.last = sample.time;
        let record = Record {
            time: sample.time,
            cpu: sample.cpu,
            pid,
            context,
            what,
        };
        self.is_over |= stream.push(record).is_break();
        Ok(())
    }
}
