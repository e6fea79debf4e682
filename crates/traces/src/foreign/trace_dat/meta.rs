//! Everything of a `trace.dat` but the records.

use std::io::{BufRead, BufReader, Read, Seek};

use model::snapshot::SNAPSHOT_OPTION;

use crate::foreign::cursor::{Cursor, Endian, seek};
use crate::foreign::error::Error;
use crate::foreign::format::Formats;
use crate::foreign::stream::MOST_CPUS;
use crate::foreign::unpack::{Allowance, Packing, unpack};

/// Most bytes of one description, and of a section of them.
const TEXT: u64 = 1 << 20;
const SECTION: u64 = 64 << 20;
/// Most sections of options, and descriptions of events.
const MANY: u32 = 1 << 16;
/// Most buffers, and places of a CPU's records in all of them.
const BUFFERS: usize = 1 << 10;
const PLACES: usize = 1 << 18;
/// Most bytes of the snapshot of a machine and its threads, which take ten times as many when they
/// are read.
const SNAPSHOT: usize = 32 << 20;

/// Where the parts of a page are.
#[derive(Clone, Copy, Debug)]
pub struct PageHeader {
    pub commit: usize,
    pub commit_size: usize,
    pub data: usize,
}

/// Where the records of one CPU are.
#[derive(Clone, Copy, Debug)]
pub struct CpuData {
    pub cpu: u32,
    pub offset: u64,
    pub size: u64,
    pub packing: Option<Packing>,
}

/// One of the trace's buffers.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    pub name: String,
    pub clock: Option<String>,
    pub page: u32,
    pub cpus: Vec<CpuData>,
}

/// The clock's ticks into nanoseconds: multiply, shift right, add.
#[derive(Clone, Copy, Debug)]
pub struct Tsc {
    pub multiply: u32,
    pub shift: u32,
    pub offset: u64,
}

/// What a file says of itself.
#[derive(Debug)]
pub struct Meta {
    pub endian: Endian,
    pub page_header: PageHeader,
    pub formats: Formats,
    pub buffers: Vec<Buffer>,
    pub tsc: Option<Tsc>,
    /// The kernel's release.
    pub release: Option<String>,
    /// Records that the kernel overwrote or dropped.
    pub overrun: u64,
    /// What `runslice record` saw of the machine and its threads.
    pub snapshot: Option<Vec<u8>>,
    /// What the packed parts may still become.
    pub allowance: Allowance,
}

/// What the options say.
#[derive(Default)]
struct Options {
    clock: Option<String>,
    tsc: Option<Tsc>,
    release: Option<String>,
    overrun: u64,
    snapshot: Option<Vec<u8>>,
    /// Offset, name and the rest of each buffer's option.
    buffers: Vec<(u64, Vec<u8>)>,
    header: Option<u64>,
    ftrace: Option<u64>,
    events: Option<u64>,
    /// Where the next options are.
    next: u64,
}

impl Options {
    /// All of a file's begin, together with what other parts of it say.
    fn complete(
        self,
        endian: Endian,
        page_header: PageHeader,
        formats: Formats,
        buffers: Vec<Buffer>,
    ) -> Meta {
        Meta {
            allowance: Allowance::default(),
            endian,
            page_header,
            formats,
            buffers,
            tsc: self.tsc,
            release: self.release,
            overrun: self.overrun,
            snapshot: self.snapshot,
        }
    }
}

/// Reads everything before the records.
pub fn read<R: Read + Seek>(input: &mut BufReader<R>) -> Result<Meta, Error> {
    let mut cursor = Cursor::new(&mut *input, 0, Endian::Little);
    cursor.expect(b"\x17\x08\x44tracing", "no trace.dat")?;
    let version = cursor.string("the version")?;
    cursor.endian = match cursor.u8("the order of bytes")? {
        0 => Endian::Little,
        _ => Endian::Big,
    };
    cursor.u8("the size of a long")?;
    let page = cursor.u32("the size of a page")?;
    match version.as_str() {
        "6" => version6(input, page),
        "7" => version7(input, page),
        _ => Err(Error::Malformed {
            offset: 10,
            what: "a version of trace.dat other than 6 and 7; convert it with `trace-cmd convert`",
        }),
    }
}

/// Reads the parts that `trace.dat` of version 6 and `perf.data` have in common, from the header of
/// pages to the names of functions.
pub fn tracing_data(cursor: &mut Cursor<impl BufRead>) -> Result<(PageHeader, Formats), Error> {
    let page_header = page_header(cursor)?;
    let mut formats = Formats::new(cursor.endian);
    ftrace_events(cursor, &mut formats)?;
    event_systems(cursor, &mut formats)?;
    Ok((page_header, formats))
}

fn page_header(cursor: &mut Cursor<impl BufRead>) -> Result<PageHeader, Error> {
    cursor.expect(b"header_page\0", "no `header_page` where it belongs")?;
    let offset = cursor.offset;
    let long = cursor.u64("the length of header_page")?;
    let text = cursor.bytes(long, TEXT, "header_page")?;
    cursor.expect(b"header_event\0", "no `header_event` where it belongs")?;
    let long = cursor.u64("the length of header_event")?;
    cursor.bytes(long, TEXT, "header_event")?;
    // An empty one: the kernel's usual form.
    let usual = PageHeader {
        commit: 8,
        commit_size: 8,
        data: 16,
    };
    if text.is_empty() {
        return Ok(usual);
    }
    let text = String::from_utf8_lossy(&text);
    let find = |name: &str| {
        let mut lines = text.lines().filter_map(crate::foreign::format::place_of);
        let found = lines.find(|(known, ..)| *known == name);
        found.map(|(_, offset, size)| (offset, size))
    };
    match (find("commit"), find("data")) {
        (Some((commit, commit_size @ (4 | 8))), Some((data, _)))
            if commit + commit_size <= data && data <= 64 =>
        {
            Ok(PageHeader {
                commit,
                commit_size,
                data,
            })
        }
        _ => Err(Error::Malformed {
            offset,
            what: "header_page does not say where `commit` and `data` are",
        }),
    }
}

fn ftrace_events(cursor: &mut Cursor<impl BufRead>, formats: &mut Formats) -> Result<(), Error> {
    let count = count(cursor, "the number of ftrace's events")?;
    event_list(cursor, formats, count)
}

fn event_systems(cursor: &mut Cursor<impl BufRead>, formats: &mut Formats) -> Result<(), Error> {
    for _ in 0..count(cursor, "the number of event systems")? {
        cursor.string("the name of an event system")?;
        let count = count(cursor, "the number of a system's events")?;
        event_list(cursor, formats, count)?;
    }
    Ok(())
}

fn event_list(
    cursor: &mut Cursor<impl BufRead>,
    formats: &mut Formats,
    count: u32,
) -> Result<(), Error> {
    for _ in 0..count {
        let long = cursor.u64("the length of an event's description")?;
        let offset = cursor.offset;
        let text = cursor.bytes(long, TEXT, "the description of an event")?;
        formats.add(&text, offset)?;
    }
    Ok(())
}

fn count(cursor: &mut Cursor<impl BufRead>, what: &'static str) -> Result<u32, Error> {
    let offset = cursor.offset;
    let found = cursor.u32(what)?;
    if found <= MANY {
        return Ok(found);
    }
    Err(Error::TooLong {
        offset,
        what,
        found: found.into(),
        most: MANY.into(),
    })
}

fn version6<R: Read + Seek>(input: &mut BufReader<R>, page: u32) -> Result<Meta, Error> {
    // The header is 10 + 2 + 1 + 1 + 4 bytes long.
    let endian = endian_of(input)?;
    let mut cursor = Cursor::new(&mut *input, 18, endian);
    let (page_header, formats) = tracing_data(&mut cursor)?;
    let long = cursor.u32("the length of kallsyms")?;
    cursor.bytes(long.into(), SECTION, "kallsyms")?;
    let long = cursor.u32("the length of printk formats")?;
    cursor.bytes(long.into(), SECTION, "printk formats")?;
    let long = cursor.u64("the length of saved names")?;
    cursor.bytes(long, SECTION, "saved names")?;
    let cpus = cpu_count(&mut cursor)?;
    let mut options = Options::default();
    let mut kind = cursor.array::<10>("the kind of what follows")?;
    if kind == *b"options  \0" {
        read_options(&mut cursor, &mut options, true)?;
        kind = cursor.array("the kind of what follows")?;
    }
    let mut buffers = Vec::new();
    if kind == *b"flyrecord\0" {
        buffers.push(Buffer {
            name: String::new(),
            clock: options.clock.clone(),
            page,
            cpus: cpu_data(&mut cursor, cpus)?,
        });
    }
    for (offset, rest) in std::mem::take(&mut options.buffers) {
        seek(input, offset)?;
        let mut cursor = Cursor::new(&mut *input, offset, endian);
        if cursor.array::<10>("a buffer")? != *b"flyrecord\0" {
            continue;
        }
        let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
        buffers.push(Buffer {
            name: String::from_utf8_lossy(name).into_owned(),
            clock: options.clock.clone(),
            page,
            cpus: cpu_data(&mut cursor, cpus)?,
        });
        few_places(&buffers, offset)?;
    }
    Ok(options.complete(endian, page_header, formats, buffers))
}

/// Buffers may claim the same places, so it is their sum that is limited.
fn few_places(buffers: &[Buffer], offset: u64) -> Result<(), Error> {
    let places: usize = buffers.iter().map(|buffer| buffer.cpus.len()).sum();
    if places <= PLACES {
        return Ok(());
    }
    Err(Error::TooMany {
        offset,
        what: "too many CPUs in all buffers together",
        most: PLACES as u64,
    })
}

/// The order of bytes, which stands at byte 12, after the version of one digit.
fn endian_of<R: Read + Seek>(input: &mut BufReader<R>) -> Result<Endian, Error> {
    seek(input, 12)?;
    let mut cursor = Cursor::new(&mut *input, 12, Endian::Little);
    let order = cursor.u8("the order of bytes")?;
    cursor.array::<5>("the sizes of a long and a page")?;
    Ok(match order {
        0 => Endian::Little,
        _ => Endian::Big,
    })
}

fn cpu_count(cursor: &mut Cursor<impl BufRead>) -> Result<u32, Error> {
    let offset = cursor.offset;
    let cpus = cursor.u32("the number of CPUs")?;
    if cpus <= MOST_CPUS {
        return Ok(cpus);
    }
    let what = "more CPUs than any machine has";
    Err(Error::Malformed { offset, what })
}

fn cpu_data(cursor: &mut Cursor<impl BufRead>, cpus: u32) -> Result<Vec<CpuData>, Error> {
    let place = |cpu| {
        Ok(CpuData {
            cpu,
            offset: cursor.u64("where a CPU's records are")?,
            size: cursor.u64("the length of a CPU's records")?,
            packing: None,
        })
    };
    (0..cpus).map(place).collect()
}

fn version7<R: Read + Seek>(input: &mut BufReader<R>, page: u32) -> Result<Meta, Error> {
    let endian = endian_of(input)?;
    let mut cursor = Cursor::new(&mut *input, 18, endian);
    let mut sections = Sections {
        endian,
        packing: packing(&mut cursor)?,
        allowance: Allowance::default(),
    };
    let mut next = cursor.u64("where the options are")?;
    let mut options = Options::default();
    for _ in 0..MANY {
        if next == 0 {
            break;
        }
        let (bytes, offset) = sections.read(input, (next, 0))?;
        let mut cursor = Cursor::new(&bytes[..], offset, endian);
        options.next = 0;
        read_options(&mut cursor, &mut options, false)?;
        // Options that lead back to themselves would never end.
        if options.next != 0 && options.next <= next {
            let what = "the options lead back to earlier ones";
            return Err(Error::Malformed { offset: next, what });
        }
        next = options.next;
    }
    let missing = |what| Error::Malformed { offset: 0, what };
    let header = options.header.ok_or(missing("no section HEADER_INFO"))?;
    let (bytes, offset) = sections.read(input, (header, 16))?;
    let page_header = page_header(&mut Cursor::new(&bytes[..], offset, endian))?;
    let mut formats = Formats::new(endian);
    if let Some(at) = options.ftrace {
        let (bytes, offset) = sections.read(input, (at, 17))?;
        ftrace_events(&mut Cursor::new(&bytes[..], offset, endian), &mut formats)?;
    }
    let events = options.events.ok_or(missing("no section EVENT_FORMATS"))?;
    let (bytes, offset) = sections.read(input, (events, 18))?;
    event_systems(&mut Cursor::new(&bytes[..], offset, endian), &mut formats)?;
    let mut buffers = Vec::new();
    for (at, rest) in &options.buffers {
        let packed = section_flags(input, *at, endian)? & 1 != 0;
        let packing = if packed { sections.packing } else { None };
        let mut cursor = Cursor::new(&rest[..], *at, endian);
        buffers.push(buffer7(&mut cursor, packing)?);
        few_places(&buffers, *at)?;
    }
    for buffer in &mut buffers {
        buffer.page = if buffer.page == 0 { page } else { buffer.page };
    }
    Ok(Meta {
        allowance: sections.allowance,
        ..options.complete(endian, page_header, formats, buffers)
    })
}

fn packing(cursor: &mut Cursor<impl BufRead>) -> Result<Option<Packing>, Error> {
    let offset = cursor.offset;
    let name = cursor.string("the name of the packing")?;
    cursor.string("the version of the packing")?;
    match name.as_str() {
        "none" | "" => Ok(None),
        "zstd" => Ok(Some(Packing::Zstd)),
        "zlib" => Ok(Some(Packing::Zlib)),
        _ => Err(Error::Malformed {
            offset,
            what: "the file is packed in another way than with zstd or zlib",
        }),
    }
}

fn buffer7(cursor: &mut Cursor<impl BufRead>, packing: Option<Packing>) -> Result<Buffer, Error> {
    let name = cursor.string("the name of a buffer")?;
    let clock = cursor.string("the clock of a buffer")?;
    let page = cursor.u32("the size of a buffer's page")?;
    let cpus = cpu_count(cursor)?;
    let place = |_| {
        let offset = cursor.offset;
        let cpu = cursor.u32("a CPU's number")?;
        if cpu >= MOST_CPUS {
            let what = "a CPU's number is greater than any machine has";
            return Err(Error::Malformed { offset, what });
        }
        Ok(CpuData {
            cpu,
            offset: cursor.u64("where a CPU's records are")?,
            size: cursor.u64("the length of a CPU's records")?,
            packing,
        })
    };
    let cpus = (0..cpus).map(place).collect::<Result<_, _>>()?;
    Ok(Buffer {
        name,
        clock: Some(clock),
        page,
        cpus,
    })
}

/// The flags of the section at `at`.
fn section_flags<R: Read + Seek>(
    input: &mut BufReader<R>,
    at: u64,
    endian: Endian,
) -> Result<u16, Error> {
    seek(input, at)?;
    let mut cursor = Cursor::new(&mut *input, at, endian);
    cursor.u16("a section's number")?;
    cursor.u16("a section's flags")
}

/// Reads the sections of version 7.
struct Sections {
    endian: Endian,
    packing: Option<Packing>,
    allowance: Allowance,
}

impl Sections {
    /// The bytes of the section `at`, whose number must be the one given, unpacked, and where they
    /// are.
    fn read<R: Read + Seek>(
        &mut self,
        input: &mut BufReader<R>,
        (at, number): (u64, u16),
    ) -> Result<(Vec<u8>, u64), Error> {
        seek(input, at)?;
        let mut cursor = Cursor::new(&mut *input, at, self.endian);
        let found = cursor.u16("a section's number")?;
        if found != number {
            let what = "another section than the one that is said to be here";
            return Err(Error::Malformed { offset: at, what });
        }
        let flags = cursor.u16("a section's flags")?;
        cursor.u32("a section's description")?;
        let long = cursor.u64("a section's length")?;
        if flags & 1 == 0 {
            let offset = cursor.offset;
            return Ok((cursor.bytes(long, SECTION, "a section")?, offset));
        }
        let packed = cursor.u32("the packed length of a section")?;
        let unpacked = cursor.u32("the unpacked length of a section")?;
        let offset = cursor.offset;
        let bytes = cursor.bytes(packed.into(), SECTION, "a packed section")?;
        let most = self.allowance.for_part(bytes.len(), SECTION);
        if u64::from(unpacked) > most {
            return Err(Error::Bomb {
                offset,
                what: "a packed section",
                packed: packed.into(),
                most,
            });
        }
        let damaged = Error::Malformed {
            offset,
            what: "a packed section is damaged",
        };
        let packing = self.packing;
        let bytes = packing.and_then(|how| unpack(how, &bytes, unpacked as usize));
        let bytes = bytes.ok_or(damaged)?;
        self.allowance.take(bytes.len() as u64);
        Ok((bytes, offset))
    }
}

/// Reads options up to the end of their section.
fn read_options(
    cursor: &mut Cursor<impl BufRead>,
    options: &mut Options,
    is_old: bool,
) -> Result<(), Error> {
    const DONE: u16 = 0;
    loop {
        let number = cursor.u16("an option's number")?;
        if is_old && number == DONE {
            return Ok(());
        }
        let long = cursor.u32("an option's length")?;
        let at = cursor.offset;
        let data = cursor.bytes(long.into(), SECTION, "an option")?;
        let mut inner = Cursor::new(&data[..], at, cursor.endian);
        let text = || {
            let text = data.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        match number {
            DONE => {
                options.next = inner.u64("where the next options are")?;
                return Ok(());
            }
            2 => options.overrun = options.overrun.saturating_add(overrun(&text())),
            3 => {
                let offset = inner.u64("where a buffer is")?;
                if options.buffers.len() >= BUFFERS {
                    return Err(Error::TooMany {
                        offset: at,
                        what: "too many buffers",
                        most: BUFFERS as u64,
                    });
                }
                options.buffers.push((offset, data[8..].to_vec()));
            }
            4 => options.clock = clock(&text()),
            // As `uname -a` prints it: the system, the machine's name, the release.
            5 => options.release = text().split(' ').nth(2).map(str::to_owned),
            14 => {
                options.tsc = Some(Tsc {
                    multiply: inner.u32("the clock's factor")?,
                    shift: inner.u32("the clock's shift")?,
                    offset: inner.u64("the clock's offset")?,
                });
            }
            16 => options.header = Some(inner.u64("where the header is")?),
            17 => options.ftrace = Some(inner.u64("where ftrace's events are")?),
            SNAPSHOT_OPTION if data.len() > SNAPSHOT => {
                return Err(Error::TooLong {
                    offset: at,
                    what: "the snapshot of threads",
                    found: data.len() as u64,
                    most: SNAPSHOT as u64,
                });
            }
            SNAPSHOT_OPTION => options.snapshot = Some(data),
            18 => options.events = Some(inner.u64("where the events are")?),
            _ => {}
        }
    }
}

/// The clock in brackets, as in `[local] global counter`.
fn clock(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// Records that a CPU's statistics say are lost.
fn overrun(text: &str) -> u64 {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let lost = lines
        .filter(|(key, _)| matches!(key.trim(), "overrun" | "commit overrun" | "dropped events"));
    let counts = lost.filter_map(|(_, count)| count.trim().parse::<u64>().ok());
    counts.fold(0, u64::saturating_add)
}
