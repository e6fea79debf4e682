//! Hostile traces of a few kilobytes: whatever they claim, a reader has no more memory than its
//! limits say. A counting allocator looks, and no clock.
//!
//! | format | what could grow | bound |
//! | --- | --- | --- |
//! | every one | records that wait for earlier ones | 2^20 records |
//! | every one | threads | 2^20, then an error that names `--window` |
//! | every packed one | what packed parts become | 16 MiB and 256 times their bytes |
//! | zstd | a block; the window | 128 KiB; 100 MiB |
//! | Perfetto | a packet, packed or not | 64 MiB; its fields are read where they stand |
//! | Perfetto | names in a table | 2^16 |
//! | `perf.data` | numbers of events, forms of samples | 2^20, 2^10 |
//! | `perf.data` | a packed record | 64 MiB |
//! | `trace.dat` | a section; a portion of a CPU | 64 MiB; 4 MiB, and 256 MiB for all CPUs |
//! | `trace.dat` | buffers, CPUs in them, the snapshot | 2^10, 2^18, 32 MiB |
//! | `trace.dat` | pages of a CPU | no two CPUs share bytes, so all fit in the file |
//! | text | a line; the place of an event in it | 64 KiB; 512 bytes |

use std::io::{Cursor, Write as _};
use std::ops::ControlFlow;

use traces::foreign::{Error, Imported, Window, read};

use crate::{ALLOCATOR, alone};

#[path = "../../../crates/traces/src/foreign/tests/trace_files.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod trace_files;

/// Most bytes that a reader may have for a trace of a few kilobytes: of a packed one the window,
/// the packet within, and the records that wait; of others the records alone.
const MOST: usize = 320 << 20;

/// What is read of a trace, and the most memory that this took besides the trace.
fn taken(trace: Vec<u8>) -> (Result<Imported, Error>, usize) {
    let _alone = alone();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let read = read(
        Cursor::new(trace),
        "hostile",
        Window::default(),
        &mut |_| ControlFlow::Continue(()),
    );
    (read, ALLOCATOR.peak_usage().saturating_sub(before))
}

/// Reads a hostile trace of `name`, and looks what it took. Gives what the reader said.
fn said(name: &str, trace: Vec<u8>) -> String {
    let long = trace.len();
    let (read, most) = taken(trace);
    let bound = MOST + 8 * long;
    println!("{name}: {long} bytes took {} KiB", most >> 10);
    assert!(most < bound, "{name}: {long} bytes took {most} bytes");
    match read {
        Ok(imported) => format!("{} records", imported.findings.records),
        Err(error) => error.to_string(),
    }
}

/// A field of a message: its number, and its bytes.
fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut to = Vec::new();
    varint(number << 3 | 2, &mut to);
    varint(bytes.len() as u64, &mut to);
    to.extend(bytes);
    to
}

fn varint(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let to = Vec::new();
    let mut encoder = flate2::write::ZlibEncoder::new(to, flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A frame of zstd that becomes so many blocks of 128 KiB of one byte, at four bytes each.
fn zstd(byte: u8, blocks: u32) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    for number in 1..=blocks {
        let header = (128 << 10) << 3 | 1 << 1 | u32::from(number == blocks);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(byte);
    }
    frame
}

/// A trace of one packet with these packed ones.
fn packed_packet(packed: &[u8]) -> Vec<u8> {
    field(1, &field(50, packed))
}

/// The bundle of one CPU as a packet.
fn bundle(content: &[u8]) -> Vec<u8> {
    field(1, &field(1, content))
}

#[test]
fn perfetto_packets_are_read_event_by_event_whatever_they_become() {
    // Each event has two bytes, and would have a hundred in memory.
    let events = bundle(&[0x12, 0].repeat(8 << 20));
    let cases = [
        ("empty events", packed_packet(&zlib(&events))),
        (
            "empty packets",
            packed_packet(&zlib(&[0x0a, 0].repeat(8 << 20))),
        ),
        // Names of a table, and columns of zeros.
        (
            "empty names",
            packed_packet(&zlib(&bundle(&field(4, &[0x2a, 0].repeat(8 << 20))))),
        ),
        (
            "columns",
            packed_packet(&zlib(&bundle(&field(4, &columns())))),
        ),
        // One byte a number, in fields of their own.
        (
            "single numbers",
            packed_packet(&zlib(&bundle(&field(4, &[0x08, 0].repeat(4 << 20))))),
        ),
        // A packed packet in a packed packet is not unpacked.
        (
            "nested",
            packed_packet(&zlib(&packed_packet(&zlib(&events)))),
        ),
    ];
    for (name, trace) in cases {
        assert!(trace.len() < 64 << 10, "{name}: {} bytes", trace.len());
        let said = said(name, trace);
        assert!(
            said.contains("no `sched_switch`")
                || said.contains("has no packets")
                || said.contains(" records"),
            "{name}: {said}"
        );
    }
}

/// Every column of switches and wakings, of a million rows.
fn columns() -> Vec<u8> {
    let zeros = vec![0; 1 << 20];
    [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12]
        .map(|number| field(number, &zeros))
        .concat()
}

#[test]
fn what_becomes_far_longer_than_recorders_pack_is_refused() {
    // Zeros are no packets, and 0x0a is the tag of one that claims ten bytes.
    for byte in [0, 0x0a] {
        let said = said("zstd", packed_packet(&zstd(byte, 2_000)));
        let is_told = ["becomes more than", "has no packets"];
        assert!(is_told.iter().any(|it| said.contains(it)), "{said}");
    }
    // Many packets, each of which alone is small: the same bytes are counted together.
    let many: Vec<u8> = (0..40).flat_map(|_| packed_packet(&packets())).collect();
    let said = said("many packets", many);
    assert!(said.contains("becomes more than"), "{said}");
}

/// A megabyte of empty packets as one match: 27 bytes.
fn packets() -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(
        &[0x0a, 0][..].repeat(1 << 19)[..],
        ruzstd::encoding::CompressionLevel::Fastest,
    )
}

#[test]
fn threads_have_a_greatest_number() {
    let mut events = Vec::new();
    for pid in 1..=1_100_000 {
        // A switch whose next thread has this number.
        let mut switch = vec![0x30];
        varint(pid, &mut switch);
        events.extend(field(2, &[vec![0x08, 1], field(4, &switch)].concat()));
    }
    let (read, most) = taken(bundle(&events));
    let said = read.unwrap_err().to_string();
    assert!(said.contains("more than 1048576 threads"), "{said}");
    println!("threads took {} KiB", most >> 10);
    assert!(most < 1 << 30, "{most}");
}

/// A record of `perf.data`.
fn perf_record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(body.len() + 8).unwrap();
    let header = [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes()].concat();
    [header, body.to_vec()].concat()
}

#[test]
fn perf_data_has_limits_for_what_is_packed_claimed_and_described() {
    // Packed records: one long one, and many short ones.
    let long = perf_record(81, &zstd(0, 16_000));
    let many = [perf_record(81, &zstd(0, 400)), vec![0; 0]]
        .concat()
        .repeat(40);
    for (name, records) in [("a packed record", long), ("packed records", many)] {
        let said = said(name, [trace_files::head_of_pipe(), records].concat());
        let is_told = ["becomes more than", "shorter than its header"];
        assert!(is_told.iter().any(|it| said.contains(it)), "{said}");
    }
    // Forms of samples that all differ: each was compared with all others.
    let attr = |form: u64| {
        let mut body = vec![0; 64];
        body[4] = 64;
        body[24..32].copy_from_slice(&form.to_le_bytes());
        perf_record(64, &body)
    };
    let forms: Vec<u8> = (0..2_000).flat_map(attr).collect();
    let said_of_forms = said("forms", [trace_files::head_of_pipe(), forms].concat());
    assert!(
        said_of_forms.contains("too many forms of samples"),
        "{said_of_forms}"
    );
    // Recorded events that claim the same numbers.
    let mut file = b"PERFILE2".to_vec();
    let ids = 8 * 4096_u64;
    let attrs = 104 + ids;
    for word in [104, 80, attrs, 80 * 400, 0, 0, 0, 0, 2, 0, 0, 0] {
        file.extend(u64::to_le_bytes(word));
    }
    file.resize(104, 0);
    file.extend((0..4096_u64).flat_map(u64::to_le_bytes));
    for number in 0..400_u64 {
        file.extend([0; 64]);
        file.extend((104 + number).to_le_bytes());
        file.extend((ids - 4096).to_le_bytes());
    }
    let said = said("numbers", file);
    assert!(
        said.contains("the numbers of recorded events claims"),
        "{said}"
    );
}

/// A `trace.dat` of version 6 without records, cut at its options.
fn before_options() -> Vec<u8> {
    let file = trace_files::long_trace_dat(4096);
    let at = file.windows(10).position(|part| part == b"options  \0");
    file[..at.unwrap()].to_vec()
}

#[test]
fn cpus_of_a_trace_dat_do_not_share_records() {
    let mut file = before_options();
    let count = file.len() - 4;
    file[count..].copy_from_slice(&4096_u32.to_le_bytes());
    file.extend(b"flyrecord\0");
    let begin = (file.len() + 4096 * 16) as u64;
    for _ in 0..4096 {
        file.extend(begin.to_le_bytes());
        file.extend(4096_u64.to_le_bytes());
    }
    file.resize(file.len() + 4096, 0);
    let said = said("shared records", file);
    assert!(said.contains("begin within those of another"), "{said}");
}

#[test]
fn buffers_of_a_trace_dat_do_not_multiply_their_cpus() {
    let mut file = before_options();
    let count = file.len() - 4;
    file[count..].copy_from_slice(&4096_u32.to_le_bytes());
    let options = 1_000;
    let at = file.len() + 10 + options * 15 + 2;
    file.extend(b"options  \0");
    for _ in 0..options {
        file.extend([3, 0, 9, 0, 0, 0]);
        file.extend((at as u64).to_le_bytes());
        file.push(0);
    }
    file.extend([0, 0]);
    assert_eq!(file.len(), at);
    file.extend(b"flyrecord\0");
    file.resize(file.len() + 4096 * 16, 0);
    let said = said("buffers", file);
    assert!(said.contains("too many CPUs in all buffers"), "{said}");
}

#[test]
fn packed_sections_of_a_trace_dat_are_refused_by_what_they_become() {
    let mut file = b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0zstd\x001\0".to_vec();
    let at = file.len() as u64 + 8;
    file.extend(at.to_le_bytes());
    let packed = zstd(0, 512);
    file.extend([0, 0, 1, 0, 0, 0, 0, 0]);
    file.extend((packed.len() as u64 + 8).to_le_bytes());
    file.extend(u32::try_from(packed.len()).unwrap().to_le_bytes());
    file.extend((64_u32 << 20).to_le_bytes());
    file.extend(packed);
    let said = said("a packed section", file);
    assert!(
        said.contains("a packed section of 2054 bytes becomes more than"),
        "{said}"
    );
}

#[test]
fn text_has_limits_for_lines_and_for_what_is_looked_at_in_them() {
    let head = b"# tracer: nop\n".to_vec();
    let cases = [
        ("brackets", b"[1] ".repeat(16 << 10)),
        ("an open bracket", b"[".repeat(64 << 10)),
        (
            "cut names",
            b"x-1 [000] 1.000001: sched_switch: prev_comm=\n".repeat(1_400),
        ),
        ("one line", vec![b'x'; 64 << 10]),
        ("blanks", vec![b' '; 64 << 10]),
        ("CPUs", b"cpus=4294967295\n".repeat(100)),
    ];
    for (name, lines) in cases {
        let said = said(name, [head.clone(), lines].concat());
        assert!(said.contains("no `sched_switch`"), "{name}: {said}");
    }
}
