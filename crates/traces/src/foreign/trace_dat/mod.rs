//! `trace.dat` of trace-cmd, versions 6 and 7, in either order of bytes.
//!
//! Source: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5) of trace-cmd 3.1.6.

mod meta;
mod pages;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{BufReader, Read, Seek};

use model::Snapshot;

use crate::foreign::error::Error;
use crate::foreign::facts;
use crate::foreign::format::Formats;
use crate::foreign::record::{CpuContext, Record, RecordWhat};
use crate::foreign::stream::Stream;

pub use meta::tracing_data;
use meta::{Buffer, CpuData, Meta};
use pages::{Budget, PageItem, Pages};

/// Reads the records of every CPU, merged by time.
pub fn read<R: Read + Seek>(
    input: &mut BufReader<R>,
    stream: &mut Stream<'_>,
) -> Result<(), Error> {
    let meta = meta::read(input)?;
    let buffer = pick(&meta)?;
    if meta.buffers.len() > 1 || !buffer.name.is_empty() {
        let name = if buffer.name.is_empty() {
            "the top one"
        } else {
            &buffer.name
        };
        stream.told.buffer = Some(name.to_owned());
    }
    stream.told.kernel.clone_from(&meta.release);
    if let Some(clock) = &buffer.clock {
        stream.told.clock = Some(clock.clone());
        let is_tsc = clock.contains("tsc") && meta.tsc.is_none();
        if matches!(clock.as_str(), "counter" | "ppc-tb") || is_tsc {
            let clock = clock.clone();
            return Err(Error::Clock { clock });
        }
    }
    if let Some(bytes) = &meta.snapshot {
        match facts::parse(bytes) {
            Ok(snapshot) => stream.snapshot = Some(snapshot),
            Err(why) => stream.told.no_snapshot = Some(why),
        }
    }
    let at_pages = merge(input, &meta, buffer, stream)?;
    // The sums of the CPUs have what the pages tell, and what no page could.
    stream.told.lost = meta.overrun.saturating_sub(at_pages);
    stream.told.gaps = u64::from(stream.told.lost > 0);
    Ok(())
}

/// The snapshot that the file has, if it has one that can be read.
pub fn snapshot<R: Read + Seek>(input: &mut BufReader<R>) -> Option<Snapshot> {
    let bytes = meta::read(input).ok()?.snapshot?;
    facts::parse(&bytes).ok()
}

/// The buffer with the most data; the first one of several such.
fn pick(meta: &Meta) -> Result<&Buffer, Error> {
    let size = |buffer: &Buffer| -> u64 {
        let sizes = buffer.cpus.iter().map(|cpu| cpu.size);
        sizes.fold(0, u64::saturating_add)
    };
    let best = meta.buffers.iter().rev().max_by_key(|buffer| size(buffer));
    best.ok_or(Error::Malformed {
        offset: 0,
        what: "the file has no buffer of records; latency traces are not read",
    })
}

/// Demands that no two CPUs have the same records: a small file could say of each of thousands of
/// CPUs that it has all of them.
fn apart(cpus: &[CpuData]) -> Result<(), Error> {
    let mut parts: Vec<(u64, u64)> = cpus.iter().map(|cpu| (cpu.offset, cpu.size)).collect();
    parts.retain(|(_, size)| *size > 0);
    parts.sort_unstable();
    for pair in parts.windows(2) {
        let ((offset, size), (next, _)) = (pair[0], pair[1]);
        if next < offset.saturating_add(size) {
            let what = "the records of a CPU begin within those of another";
            return Err(Error::Malformed { offset: next, what });
        }
    }
    Ok(())
}

/// Gives the records in the order of time. Returns how many the pages say are lost.
fn merge<R: Read + Seek>(
    input: &mut BufReader<R>,
    meta: &Meta,
    buffer: &Buffer,
    stream: &mut Stream<'_>,
) -> Result<u64, Error> {
    let mut budget = Budget {
        left: pages::UNPACKED,
        allowance: meta.allowance,
    };
    apart(&buffer.cpus)?;
    for cpu in &buffer.cpus {
        stream.has_cpus(cpu.cpu + 1);
    }
    let mut cpus = Vec::new();
    for cpu in &buffer.cpus {
        cpus.push(Pages::new(*cpu, meta, buffer.page)?);
    }
    let mut next = BinaryHeap::new();
    let mut lost = 0_u64;
    for (index, pages) in cpus.iter_mut().enumerate() {
        if let Some(found) = advance(input, pages, &meta.formats, &mut budget, stream)? {
            next.push(Reverse((found.time, index)));
            pages.found = Some(found);
        }
    }
    while let Some(Reverse((_, index))) = next.pop() {
        let pages = &mut cpus[index];
        let record = pages.found.take().expect("it was put there");
        if let RecordWhat::Lost(many) = record.what {
            lost = lost.saturating_add(many);
        }
        if stream.push(record).is_break() {
            break;
        }
        if let Some(found) = advance(input, pages, &meta.formats, &mut budget, stream)? {
            next.push(Reverse((found.time, index)));
            pages.found = Some(found);
        }
    }
    Ok(lost)
}

/// The next record of use of one CPU.
fn advance<R: Read + Seek>(
    input: &mut BufReader<R>,
    pages: &mut Pages,
    formats: &Formats,
    budget: &mut Budget,
    stream: &mut Stream<'_>,
) -> Result<Option<Record>, Error> {
    loop {
        let Some((time, found)) = pages.next(input, budget)? else {
            return Ok(None);
        };
        let decoded = match found {
            PageItem::Lost(many) => Some((0, CpuContext::Unsaid, RecordWhat::Lost(many))),
            PageItem::Data => formats.decode(pages.data()),
        };
        if let Some((pid, context, what)) = decoded {
            return Ok(Some(Record {
                time,
                cpu: pages.cpu,
                pid,
                context,
                what,
            }));
        }
        stream.told.skipped += 1;
    }
}
