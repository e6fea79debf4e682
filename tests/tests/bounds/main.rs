//! Hostile files of a few kilobytes: whatever they claim, a reader has no more memory than a
//! constant and a small multiple of the file. A counting allocator looks, and no clock.
//!
//! | format | what could grow | bound |
//! | --- | --- | --- |
//! | traces of other programs | | the table of `foreign_traces.rs` |
//! | event files | a line; brackets in brackets | 16 MiB; 127, as in all JSON |
//! | event files | names of one kind in the header | 100,000 |
//! | `/proc/schedstat` and logs of it | a line; CPUs | 1 MiB; 65,536 |
//! | objects: ELF | the file, its sections together, zeros of `.bss` | 128 MiB each |
//! | objects: ELF | sections, symbols, names | 4,096, 2^18, 1,024 bytes |
//! | types (BTF) | types; a name; a search in types | 2^21; 1,024 bytes; a number of steps |
//! | workloads | tasks; brackets of an operation; turns | 100,000; 100; a number, not unrolled |
//! | rt-app | brackets; instances of a task; turns | as workloads |
//! | recordings of programs | lists, whose lengths they claim | what their bytes can hold |
//! | dumps of `explain` | the text | 16 MiB |
//! | bundles | a recording, unpacked | 16 MiB and 64 times its bytes: `bundle.rs` |
//! | sweeps | runs; names and knobs of all of them | 10^6; 1 GiB: `plan/tests.rs` |
//! | results | a file that is read whole; a run in its line | 256 MiB; 64 MiB: `sets.rs` |

mod foreign_traces;

use std::sync::{Mutex, MutexGuard, PoisonError};

use peak_alloc::PeakAlloc;
use stats::schedstat::SchedstatReader;
// The writers of traces, which are files of that crate's own tests, find it here.
use traces::foreign;
use workload::{Workload, rtapp};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// One test at a time: the allocator counts for the whole program.
static ALONE: Mutex<()> = Mutex::new(());

/// What a test holds from its first line on: what another makes would be counted, too.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` on a file of `long` bytes and demands that it has no more than `most` at any time,
/// and ten times the file.
fn within<T>(name: &str, most: usize, long: usize, work: impl FnOnce() -> T) -> T {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = work();
    let took = ALLOCATOR.peak_usage().saturating_sub(before);
    println!("{name}: {long} bytes took {} KiB", took >> 10);
    assert!(took < most + 10 * long, "{name}: {long} bytes took {took}");
    result
}

const HEADER: &str = concat!(
    r#"{"runslice_events":1,"policy":"p","workload":"w","machine":{"cpus":1,"smt":1,"#,
    r#""llc":0,"node":0,"hz":250,"kernel":"6.18","profile":"ideal"},"seed":1,"#,
    r#""groups":[{"name":"g","nice":0,"count":4294967295}],"spans":[],"deadlines":[],"#,
    r#""counters":[],"phases":[]}"#,
);

#[test]
fn event_files_take_what_their_lines_are_long() {
    let _alone = alone();
    let cases = [
        ("brackets", "[".repeat(60_000)),
        ("objects", "{\"a\":".repeat(20_000)),
        (
            "a line of numbers",
            format!("{{\"a\":[{}]}}", "0,".repeat(30_000)),
        ),
        (
            "a name",
            format!("{{\"event\":\"{}\"}}", "x".repeat(60_000)),
        ),
    ];
    for (name, line) in cases {
        for text in [line.clone(), format!("{HEADER}\n{line}\n")] {
            let read = within(name, 8 << 20, 2 * text.len(), || {
                let mut metrics = stats::Metrics::default();
                traces::replay(text.as_bytes(), &mut metrics)
            });
            assert!(read.is_err(), "{name}");
        }
    }
}

#[test]
fn headers_of_events_have_at_most_as_many_names_as_a_workload_has_tasks() {
    let _alone = alone();
    let many = vec![r#"{"name":"g","nice":0,"count":1}"#; 100_001].join(",");
    let one = r#"{"name":"g","nice":0,"count":4294967295}"#;
    let text = format!("{}\n", HEADER.replace(one, &many));
    let read = within("names", 8 << 20, 2 * text.len(), || {
        traces::replay(text.as_bytes(), &mut stats::Metrics::default())
    });
    let said = read.unwrap_err().to_string();
    let want = "line 1: `groups` is a list of 100001, and must be at most 100000";
    assert_eq!(said, want);
}

#[test]
fn statistics_take_what_their_lines_are_long() {
    let _alone = alone();
    let cpus: String = (0..5_000)
        .map(|cpu| format!("cpu{cpu} 0 0 0 0 0 0 0 0 0\n"))
        .collect();
    let cases = [
        ("CPUs", format!("version 15\ntimestamp 1\n{cpus}")),
        (
            "a late CPU",
            "version 15\ntimestamp 1\ncpu4294967295 0 0 0 0 0 0 0 0 0\n".to_owned(),
        ),
        (
            "a line",
            format!("version 15\ntimestamp 1\ncpu0 {}\n", "0 ".repeat(50_000)),
        ),
        ("snapshots", "version 15\ntimestamp 1\n".repeat(5_000)),
    ];
    for (name, text) in cases {
        within(name, 8 << 20, text.len(), || {
            let mut reader = SchedstatReader::new(text.as_bytes());
            while let Ok(Some(_)) = reader.next_snapshot() {}
        });
    }
}

fn load(operations: &str, more: &str) -> String {
    format!("[workload]\nname = \"w\"\n[task.t]\n{more}do = [\"{operations}\"]\n")
}

#[test]
fn workloads_count_turns_and_refuse_what_nobody_has() {
    let _alone = alone();
    let deep = |open: &str, close: &str| open.repeat(20_000) + "1" + &close.repeat(20_000);
    let cases = [
        (
            "turns",
            load("loop(1000000000000)[ loop(1000000000000)[ run(1ns) ] ]", ""),
            true,
        ),
        (
            "a count",
            load("run(1ms)", "count = 1000000000000\n"),
            false,
        ),
        (
            "loops",
            load(
                &("loop(2)[".repeat(20_000) + "run(1ns)" + &"]".repeat(20_000)),
                "",
            ),
            false,
        ),
        (
            "brackets",
            load(&format!("run({})", deep("(", ")")), ""),
            false,
        ),
        (
            "signs",
            load(&format!("run({}1ms)", "-".repeat(50_000)), ""),
            false,
        ),
        ("an exponent", load("run(1e999999999ms)", ""), false),
        (
            "a list",
            load("run(1ms)", &format!("x = {}\n", deep("[", "]"))),
            false,
        ),
        (
            "tables",
            format!("{}x = 1\n", load("run(1ms)", &"[a.a.a.a]\n".repeat(5_000))),
            false,
        ),
    ];
    for (name, text, is_read) in cases {
        let read = within(name, 8 << 20, 10 * text.len(), || {
            Workload::parse(&text, "w.toml")
        });
        assert_eq!(read.is_ok(), is_read, "{name}: {read:?}");
    }
}

#[test]
fn configurations_of_rt_app_count_turns_and_refuse_what_nobody_has() {
    let _alone = alone();
    let task = |more: &str| format!("{{\"tasks\":{{\"t\":{{{more}\"run\":1000}}}}}}");
    let cases = [
        ("turns", task("\"loop\":1000000000000,"), true),
        ("instances", task("\"instance\":1000000000000,"), false),
        ("brackets", "[".repeat(60_000), false),
        ("objects", "{\"a\":".repeat(20_000), false),
        ("a number", task("\"loop\":1e999999999,"), false),
    ];
    for (name, text, is_read) in cases {
        let read = within(name, 8 << 20, 4 * text.len(), || {
            rtapp::import(&text, "r.json")
        });
        assert!(is_read || read.is_err(), "{name}");
    }
}

/// A policy's object whose section headers `change` changes. They stand at the end of the file.
fn object(change: impl Fn(&mut Vec<u8>, usize, u16)) -> Vec<u8> {
    let mut file = policies::find("fifo")
        .expect("it is shipped")
        .object
        .to_vec();
    let at = u64::from_le_bytes(file[0x28..0x30].try_into().unwrap());
    let count = u16::from_le_bytes(file[0x3c..0x3e].try_into().unwrap());
    change(&mut file, usize::try_from(at).unwrap(), count);
    file
}

/// The byte at which the fields of each section header begin, and its type.
fn headers(file: &[u8], at: usize, count: u16) -> Vec<(usize, u32)> {
    let header = |index| at + 64 * index;
    let kind = |at: usize| u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap());
    let all = (0..usize::from(count)).map(header);
    all.map(|at| (at, kind(at))).collect()
}

#[test]
fn objects_have_limits_for_what_their_sections_claim() {
    let _alone = alone();
    const NOBITS: u32 = 8;
    const PROGBITS: u32 = 1;
    let zeros = object(|file, at, count| {
        for (at, _) in headers(file, at, count)
            .into_iter()
            .filter(|it| it.1 == PROGBITS)
        {
            // Zeros of 2^60 bytes in the place of contents.
            file[at + 4..at + 8].copy_from_slice(&NOBITS.to_le_bytes());
            file[at + 0x20..at + 0x28].copy_from_slice(&(1_u64 << 60).to_le_bytes());
        }
    });
    let same = object(|file, at, count| {
        // 4,000 sections more that have the same contents: nearly the whole file.
        let found = headers(file, at, count);
        let (one, _) = *found.iter().find(|it| it.1 == PROGBITS).unwrap();
        let mut header = file[one..one + 64].to_vec();
        header[0x18..0x20].copy_from_slice(&0_u64.to_le_bytes());
        header[0x20..0x28].copy_from_slice(&(at as u64 & !7).to_le_bytes());
        let table = file[at..at + 64 * usize::from(count)].to_vec();
        let begin = file.len().next_multiple_of(8);
        file.resize(begin, 0);
        file.extend(table);
        (0..4_000).for_each(|_| file.extend(&header));
        file[0x28..0x30].copy_from_slice(&(begin as u64).to_le_bytes());
        file[0x3c..0x3e].copy_from_slice(&(count + 4_000).to_le_bytes());
    });
    for (name, file) in [("zeros", zeros), ("the same bytes", same)] {
        let read = within(name, 160 << 20, file.len(), || bpf::Object::parse(&file));
        assert!(read.is_err(), "{name}");
    }
}

/// Types and strings, as a file of BTF: kernel 6.18, include/uapi/linux/btf.h.
fn btf(types: &[u32], strings: &[u8]) -> Vec<u8> {
    let types: Vec<u8> = types.iter().flat_map(|it| it.to_le_bytes()).collect();
    let words = [
        0x0001_eb9f,
        24,
        0,
        types.len() as u32,
        types.len() as u32,
        strings.len() as u32,
    ];
    let header = words.iter().flat_map(|it| it.to_le_bytes());
    [header.collect(), types, strings.to_vec()].concat()
}

#[test]
fn types_take_what_their_bytes_are_long() {
    let _alone = alone();
    const MANY: u32 = 100_000;
    const ITEMS: u32 = 0xffff;
    let named = b"\0a\0";
    // Of any kind, with so many items of so many words.
    let long = |kind: u32, words: usize| {
        let one = [
            &[1, kind << 24 | ITEMS, 4][..],
            &vec![0; ITEMS as usize * words],
        ]
        .concat();
        btf(&one.repeat(4), named)
    };
    let each =
        |of: &dyn Fn(u32) -> [u32; 3]| btf(&(1..=MANY).flat_map(of).collect::<Vec<_>>(), named);
    const PTR: u32 = 2;
    const TYPEDEF: u32 = 8;
    let cases = [
        ("pointers", each(&|_| [0, PTR << 24, 0]), true),
        ("a chain", each(&|id| [1, TYPEDEF << 24, id - 1]), false),
        ("members", long(4, 3), true),
        ("values", long(6, 2), true),
        ("values of 64 bits", long(19, 3), true),
        ("parameters", long(13, 2), true),
        ("variables", long(15, 3), true),
        (
            "claimed members",
            btf(&[1, 4 << 24 | ITEMS, 4].repeat(1_000), named),
            false,
        ),
        (
            "a type that is not there",
            each(&|_| [0, PTR << 24, u32::MAX]),
            false,
        ),
        ("no type", each(&|_| [0, 31 << 24, 0]), false),
        (
            "long names",
            btf(
                &[1, PTR << 24, 0].repeat(10_000),
                &[&b"\0"[..], &[b'x'; 100_000], b"\0"].concat(),
            ),
            false,
        ),
        (
            "names that are no text",
            btf(
                &[1, PTR << 24, 0].repeat(10_000),
                &[&b"\0"[..], &[0xff; 1_000], b"\0"].concat(),
            ),
            false,
        ),
    ];
    for (name, file, is_read) in cases {
        let read = within(name, 1 << 20, file.len(), || {
            bpf::Target::new("k", (6, 18, 0), &file).map(drop)
        });
        assert_eq!(read.is_ok(), is_read, "{name}: {:?}", read.err());
    }
    let mut claimed = btf(&[], named);
    claimed[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
    let read = within("claimed strings", 1 << 20, 0, || {
        bpf::Target::new("k", (6, 18, 0), &claimed).map(drop)
    });
    assert!(read.is_err());
}

#[test]
fn a_search_in_types_that_contain_each_other_has_an_end() {
    let _alone = alone();
    // Each of 64 structures has the next one twice, without a name: 2^64 ways to the last.
    const DEEP: u32 = 64;
    let types = (1..=DEEP).flat_map(|id| {
        let next = if id == DEEP { 1 } else { id + 1 };
        [u32::from(id == 1), 4 << 24 | 2, 8, 0, next, 0, 0, next, 0]
    });
    let file = btf(&types.collect::<Vec<_>>(), b"\0a\0");
    let target = bpf::Target::new("k", (6, 18, 0), &file).unwrap();
    let found = within("a search", 1 << 20, file.len(), || target.field("a", "b"));
    let said = found.unwrap_err().to_string();
    assert!(!said.is_empty());
}

/// A recording of a program with this content and a right checksum.
fn recording(content: &[u8]) -> Vec<u8> {
    let mut bytes = b"runslice recording of a loader 1\n".to_vec();
    bytes.extend(content);
    let sum = model::Fnv1a::of(bytes.iter().copied());
    bytes.extend(sum.to_le_bytes());
    bytes
}

#[test]
fn recordings_of_programs_claim_no_more_than_their_bytes_hold() {
    let _alone = alone();
    const COUNT: u32 = 100_000;
    let list =
        |count: u32, each: &[u8]| [&count.to_le_bytes()[..], &each.repeat(COUNT as usize)].concat();
    // An interrupt that wakes nobody: the shortest record.
    let shortest = [2, 0, 0, 0, 0, 0, 0];
    // A turn of a thread whose acts are that an object was closed.
    let close = [&[0, 13][..], &[0; 12]].concat();
    let turn = [&1_u32.to_le_bytes()[..], &[0; 13], &list(COUNT, &close)].concat();
    let cases = [
        ("records", list(COUNT, &shortest), true),
        ("claimed records", list(COUNT + 1, &shortest), false),
        ("all that could be", list(u32::MAX, &shortest), false),
        (
            "acts",
            [&turn[..], &[1], &[0; 8], &[0; 4], &[0, 0]].concat(),
            true,
        ),
        ("claimed acts", turn, false),
    ];
    for (name, content, is_read) in cases {
        let bytes = recording(&content);
        // A record has 24 times the bytes that it is written with.
        let read = within(name, 1 << 20, 3 * bytes.len(), || {
            loader::recording::Recording::from_bytes(&bytes)
        });
        assert_eq!(read.is_ok(), is_read, "{name}: {:?}", read.err());
    }
}

#[test]
fn dumps_take_what_their_lines_are_long() {
    let _alone = alone();
    let cases = [
        (
            "CPUs",
            "CPU 0   : nr_run=0 flags=0x0 cpu_rel=0 ops_qseq=0 pnt_seq=0\n".repeat(5_000),
        ),
        (
            "tasks",
            " *R t[1] -1ms\n      scx_state/flags=3/0x1 dsq_flags=0x0 ops_state/qseq=2/1\n"
                .repeat(5_000),
        ),
        ("one line", "x".repeat(1 << 20)),
        ("too long", "\n".repeat((16 << 20) + 1)),
    ];
    for (name, text) in cases {
        within(name, 8 << 20, text.len(), || {
            drop(explain::why::explain_dumps(&text));
        });
    }
}
