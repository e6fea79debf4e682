//! Writes a `trace.dat` of version 6, which every trace-cmd and `KernelShark` reads. Version 7 adds
//! packing, which would take CPU time from the machine that is recorded.
//!
//! Source: trace-cmd.dat.v6(5) of trace-cmd 3.1.6.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};

use model::snapshot::SNAPSHOT_OPTION;
use rustix::fs::{FallocateFlags, fallocate};

use super::pages::CpuPages;
use super::recorder::EndedRecording;

/// Options of trace-cmd.
const CPU_STATISTICS: u16 = 2;
const CLOCK: u16 = 4;
const KERNEL: u16 = 5;
const CPU_COUNT: u16 = 8;

/// Bytes that are copied before the room that they took is given back.
const PORTION: u64 = 64 << 20;

impl EndedRecording {
    /// Writes all as a `trace.dat` of version 6, with `snapshot` as an option of ours. Returns how
    /// many bytes it has.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(self, to: &mut File, kernel: &str, snapshot: &[u8]) -> io::Result<u64> {
        write(self, to, kernel, snapshot)
    }
}

/// CPUs of the machine: one more than the number of the last one that was recorded.
fn cpus(recorded: &EndedRecording) -> usize {
    let cpus = recorded.pages.iter().map(|pages| pages.cpu as usize + 1);
    cpus.max().unwrap_or(0)
}

/// Writes `recorded` to `to`, from its begin. Returns how many bytes it has.
fn write(
    mut recorded: EndedRecording,
    to: &mut File,
    kernel: &str,
    snapshot: &[u8],
) -> io::Result<u64> {
    recorded.reserve = None;
    to.seek(SeekFrom::Start(0))?;
    let head = head(&recorded, kernel, snapshot);
    let cpus = cpus(&recorded);
    let page = recorded.formats.page as u64;
    // 16 bytes for each CPU say where its pages are, which begin at a multiple of a page's size.
    let mut offset = (head.len() as u64 + 16 * cpus as u64).next_multiple_of(page);
    let mut places = vec![(offset, 0); cpus];
    for pages in &recorded.pages {
        places[pages.cpu as usize] = (offset, pages.bytes);
        offset += pages.bytes.next_multiple_of(page);
    }
    let mut buffered = BufWriter::new(&mut *to);
    buffered.write_all(&head)?;
    for (offset, bytes) in &places {
        buffered.write_all(&offset.to_ne_bytes())?;
        buffered.write_all(&bytes.to_ne_bytes())?;
    }
    buffered.flush()?;
    drop(buffered);
    for pages in &mut recorded.pages {
        let (offset, bytes) = places[pages.cpu as usize];
        to.seek(SeekFrom::Start(offset))?;
        move_to(pages, bytes, to)?;
    }
    to.set_len(offset)?;
    Ok(offset)
}

/// Copies the pages of a CPU, and gives back the room that they took as it goes.
fn move_to(pages: &mut CpuPages, bytes: u64, to: &mut File) -> io::Result<()> {
    use std::io::Read as _;

    pages.to.seek(SeekFrom::Start(0))?;
    let mut done = 0;
    while done < bytes {
        let long = PORTION.min(bytes - done);
        let copied = io::copy(&mut (&pages.to).take(long), to)?;
        if copied < long {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // A file system that cannot do it needs the room twice.
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&pages.to, flags, done, long);
        done += long;
    }
    Ok(())
}

/// All that stands before the table of places.
fn head(recorded: &EndedRecording, kernel: &str, snapshot: &[u8]) -> Vec<u8> {
    let formats = &recorded.formats;
    let mut to = b"\x17\x08\x44tracing6\0".to_vec();
    to.push(u8::from(cfg!(target_endian = "big")));
    to.push(formats.long);
    put_u32(&mut to, formats.page);
    to.extend(b"header_page\0");
    put_text(&mut to, &formats.header_page);
    to.extend(b"header_event\0");
    put_text(&mut to, &formats.header_event);
    put_u32(&mut to, formats.ftrace.len());
    for text in &formats.ftrace {
        put_text(&mut to, text);
    }
    put_u32(&mut to, formats.systems.len());
    for (system, texts) in &formats.systems {
        to.extend(system.as_bytes());
        to.push(0);
        put_u32(&mut to, texts.len());
        for text in texts {
            put_text(&mut to, text);
        }
    }
    // No addresses of functions, no formats of printk.
    put_u32(&mut to, 0);
    put_u32(&mut to, 0);
    put_text(&mut to, &names(recorded));
    let cpus = cpus(recorded);
    put_u32(&mut to, cpus);
    to.extend(b"options  \0");
    for (pages, counted) in recorded.pages.iter().zip(&recorded.counted) {
        let text = format!("CPU: {}\n{}", pages.cpu, counted.replace('\0', ""));
        put_option(&mut to, CPU_STATISTICS, &terminated(&text));
    }
    put_option(&mut to, CLOCK, &terminated(&recorded.clock));
    put_option(&mut to, KERNEL, &terminated(kernel));
    let count = u32::try_from(cpus).expect("at most 4096");
    put_option(&mut to, CPU_COUNT, &count.to_ne_bytes());
    put_option(&mut to, SNAPSHOT_OPTION, snapshot);
    to.extend([0; 2]);
    to.extend(b"flyrecord\0");
    to
}

/// Numbers and names of threads, a line each.
fn names(recorded: &EndedRecording) -> Vec<u8> {
    let mut text = Vec::new();
    for (pid, name) in &recorded.names {
        text.extend(format!("{pid} ").bytes());
        // A name is whatever its thread likes.
        text.extend(
            name.iter()
                .take(15)
                .map(|byte| if *byte < 0x20 { b'?' } else { *byte }),
        );
        text.push(b'\n');
    }
    text.push(0);
    text
}

fn put_u32(to: &mut Vec<u8>, number: usize) {
    let number = u32::try_from(number).expect("what is counted here is capped");
    to.extend(number.to_ne_bytes());
}

fn put_text(to: &mut Vec<u8>, text: &[u8]) {
    to.extend((text.len() as u64).to_ne_bytes());
    to.extend(text);
}

fn put_option(to: &mut Vec<u8>, number: u16, data: &[u8]) {
    to.extend(number.to_ne_bytes());
    put_u32(to, data.len());
    to.extend(data);
}

fn terminated(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}
