//! Writes `trace.dat` and `perf.data` by their documents, with the descriptions of the few events
//! that the story has. Fields stand elsewhere than in any kernel: nobody can assume a place.

use crate::foreign::record::{CpuContext, InterruptSource, Left, Record, RecordWhat, Who};

/// Numbers in the order of bytes of a file.
#[derive(Clone, Copy)]
struct Order {
    is_big: bool,
}

impl Order {
    fn put(self, to: &mut Vec<u8>, number: u64, long: usize) {
        let mut bytes = number.to_le_bytes()[..long].to_vec();
        if self.is_big {
            bytes.reverse();
        }
        to.extend(bytes);
    }
}

/// Name and size of a field.
type Field = (&'static str, usize);

/// Events with their numbers, and the fields of each.
const EVENTS: &[(&str, u64, &[Field])] = &[
    (
        "sched_switch",
        311,
        &[
            ("next_comm", 16),
            ("next_pid", 4),
            ("next_prio", 4),
            ("prev_state", 8),
            ("prev_comm", 16),
            ("prev_pid", 4),
            ("prev_prio", 4),
        ],
    ),
    ("sched_waking", 312, WOKEN),
    ("sched_wakeup", 313, WOKEN),
    ("sched_wakeup_new", 314, WOKEN),
    (
        "sched_migrate_task",
        315,
        &[
            ("comm", 16),
            ("pid", 4),
            ("prio", 4),
            ("orig_cpu", 4),
            ("dest_cpu", 4),
        ],
    ),
    (
        "sched_process_fork",
        316,
        &[("parent_pid", 4), ("child_comm", 0), ("child_pid", 4)],
    ),
    ("softirq_entry", 317, &[("vec", 4)]),
    ("softirq_exit", 318, &[("vec", 4)]),
    ("hrtimer_expire_entry", 319, &[("hrtimer", 8)]),
    ("hrtimer_expire_exit", 320, &[("hrtimer", 8)]),
];

const WOKEN: &[(&str, usize)] = &[("pid", 4), ("comm", 16), ("target_cpu", 4), ("prio", 4)];

/// The description of an event. A field of size 0 is a string elsewhere.
fn description((name, id, fields): &(&str, u64, &[(&str, usize)])) -> String {
    let mut text = format!(
        "name: {name}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    );
    let mut offset = 8;
    for (field, size) in *fields {
        let (declared, size) = match size {
            16 => (format!("char {field}[16]"), 16),
            0 => (format!("__data_loc char[] {field}"), 4),
            size => (format!("int {field}"), *size),
        };
        text += &format!("\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:1;\n");
        offset += size;
    }
    text += "\nprint fmt: \"%s\", REC->prev_state & 1 ? __print_flags(REC->prev_state, \"|\", \
             { 0x01, \"S\" }, { 0x02, \"D\" }, { 0x10, \"X\" }, { 0x20, \"Z\" }) : \"R\"\n";
    text
}

/// A record as the kernel has it.
fn payload(order: Order, record: &Record) -> Vec<u8> {
    let (name, values) = values(record.what);
    let (_, id, fields) = EVENTS.iter().find(|it| it.0 == name).unwrap();
    let mut to = Vec::new();
    order.put(&mut to, *id, 2);
    order.put(&mut to, flags(record.context).into(), 1);
    to.push(0);
    order.put(&mut to, record.pid.into(), 4);
    let sizes = fields
        .iter()
        .map(|(_, size)| if *size == 0 { 4 } else { *size });
    let end: usize = 8 + sizes.sum::<usize>();
    let mut strings = Vec::new();
    for (field, size) in *fields {
        let (_, who, number) = values.iter().find(|it| it.0 == *field).unwrap();
        let comm = who.comm.to_string();
        match size {
            16 => {
                let mut bytes = comm.into_bytes();
                bytes.resize(16, 0);
                to.extend(bytes);
            }
            0 => {
                let long = comm.len() as u64 + 1;
                order.put(&mut to, long << 16 | end as u64, 4);
                strings = comm.into_bytes();
                strings.push(0);
            }
            size => order.put(&mut to, *number, *size),
        }
    }
    to.extend(strings);
    to.resize(to.len().next_multiple_of(4), 0);
    to
}

type Values = Vec<(&'static str, Who, u64)>;

fn values(what: RecordWhat) -> (&'static str, Values) {
    let number = |name, number: u64| (name, Who::default(), number);
    let prio = |who: Who| i64::from(who.prio.unwrap_or(0)).cast_unsigned();
    let woken = |who: Who, cpu: Option<u32>| {
        vec![
            ("comm", who, 0),
            number("pid", who.pid.into()),
            number("prio", prio(who)),
            number("target_cpu", cpu.unwrap().into()),
        ]
    };
    let plain = |name, value: u64| vec![number(name, value)];
    match what {
        RecordWhat::Switch { prev, left, next } => {
            let state = match left {
                Left::Runnable => 0x100,
                Left::Sleeping => 1,
                Left::Blocked => 2,
                Left::Dead => 0x10,
            };
            let values = vec![
                ("prev_comm", prev, 0),
                number("prev_pid", prev.pid.into()),
                number("prev_prio", prio(prev)),
                number("prev_state", state),
                ("next_comm", next, 0),
                number("next_pid", next.pid.into()),
                number("next_prio", prio(next)),
            ];
            ("sched_switch", values)
        }
        RecordWhat::Waking(who, cpu) => ("sched_waking", woken(who, cpu)),
        RecordWhat::Wakeup { who, cpu, new } => {
            let name = if new {
                "sched_wakeup_new"
            } else {
                "sched_wakeup"
            };
            (name, woken(who, cpu))
        }
        RecordWhat::Migrate { who, from, to } => {
            let mut values = woken(who, Some(0));
            values.push(number("orig_cpu", from.into()));
            values.push(number("dest_cpu", to.into()));
            ("sched_migrate_task", values)
        }
        RecordWhat::Fork { parent, child } => {
            let values = vec![
                number("parent_pid", parent.into()),
                ("child_comm", child, 0),
                number("child_pid", child.pid.into()),
            ];
            ("sched_process_fork", values)
        }
        RecordWhat::Enter(InterruptSource::Timer) => ("hrtimer_expire_entry", plain("hrtimer", 1)),
        RecordWhat::Leave(InterruptSource::Timer) => ("hrtimer_expire_exit", plain("hrtimer", 1)),
        RecordWhat::Enter(_) => ("softirq_entry", plain("vec", 3)),
        RecordWhat::Leave(_) => ("softirq_exit", plain("vec", 3)),
        other => panic!("{other:?} is not in the story"),
    }
}

fn start(to: &mut Vec<u8>, order: Order, version: &str) {
    to.extend(b"\x17\x08\x44tracing");
    to.extend(version.as_bytes());
    to.extend([0, u8::from(order.is_big), 8]);
    order.put(to, 4096, 4);
}

fn page_header(to: &mut Vec<u8>, order: Order) {
    let text = b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                 \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                 \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    to.extend(b"header_page\0");
    order.put(to, text.len() as u64, 8);
    to.extend(text);
    to.extend(b"header_event\0");
    order.put(to, 0, 8);
}

fn events(to: &mut Vec<u8>, order: Order) {
    order.put(to, 1, 4);
    to.extend(b"sched\0");
    order.put(to, EVENTS.len() as u64, 4);
    for event in EVENTS {
        let text = description(event);
        order.put(to, text.len() as u64, 8);
        to.extend(text.as_bytes());
    }
}

/// A page of a CPU's records, little-endian.
pub fn one_page(records: &[Record], cpu: u32) -> Vec<u8> {
    page(records, LITTLE, cpu)
}

/// A page of a CPU's records, with an extended time between the first two.
fn page(records: &[Record], order: Order, cpu: u32) -> Vec<u8> {
    let mut data = Vec::new();
    let mut last = 0;
    let mine = || records.iter().filter(|it| it.cpu == cpu);
    let begin = mine().next().map_or(0, |it| it.time - 1_000_000_000);
    let head = |kind: u64, delta: u64| {
        if order.is_big {
            kind << 27 | delta
        } else {
            delta << 5 | kind
        }
    };
    for record in mine() {
        let since = record.time - begin - last;
        last = record.time - begin;
        if since >= 1 << 27 {
            order.put(&mut data, head(30, since & ((1 << 27) - 1)), 4);
            order.put(&mut data, since >> 27, 4);
        }
        let delta = if since >= 1 << 27 { 0 } else { since };
        let payload = payload(order, record);
        order.put(&mut data, head((payload.len() / 4) as u64, delta), 4);
        data.extend(payload);
    }
    let mut page = Vec::new();
    order.put(&mut page, begin, 8);
    order.put(&mut page, data.len() as u64, 8);
    page.extend(data);
    assert!(page.len() <= 4096, "the records fit in a page");
    page.resize(4096, 0);
    page
}

pub fn trace_dat(records: &[Record], version: u8, is_big: bool, is_packed: bool) -> Vec<u8> {
    let order = Order { is_big };
    let pages = [page(records, order, 0), page(records, order, 1)];
    match version {
        6 => version6(order, &pages, None),
        _ => version7(order, &pages, is_packed),
    }
}

/// As `runslice record` writes it.
pub fn with_snapshot(records: &[Record], snapshot: &[u8]) -> Vec<u8> {
    let pages = [page(records, LITTLE, 0), page(records, LITTLE, 1)];
    version6(LITTLE, &pages, Some(snapshot))
}

/// The release of the kernel in every file that has room for it.
pub const RELEASE: &str = "6.1.0-13-amd64";

/// What `uname` says of the machine, with that release.
const UNAME: &[u8] = b"Linux story 6.1.0-13-amd64 x86_64\0";

/// The feature `HEADER_OSRELEASE`: a length, and a text that is filled up with NUL.
fn release() -> Vec<u8> {
    let mut to = Vec::new();
    LITTLE.put(&mut to, 64, 4);
    to.extend(RELEASE.as_bytes());
    to.resize(4 + 64, 0);
    to
}

/// The feature `HEADER_NRCPUS`: CPUs that could be, and those that are online.
fn nr_cpus() -> Vec<u8> {
    [8_u32, 2].map(u32::to_le_bytes).concat()
}

/// What stands before the pages of two CPUs, each of which has so many bytes.
pub fn long_trace_dat(cpu_bytes: u64) -> Vec<u8> {
    head_of_version6(LITTLE, cpu_bytes, None)
}

fn version6(order: Order, pages: &[Vec<u8>; 2], snapshot: Option<&[u8]>) -> Vec<u8> {
    let mut to = head_of_version6(order, 4096, snapshot);
    to.extend(pages.concat());
    to
}

fn head_of_version6(order: Order, cpu_bytes: u64, snapshot: Option<&[u8]>) -> Vec<u8> {
    let mut to = Vec::new();
    start(&mut to, order, "6");
    page_header(&mut to, order);
    order.put(&mut to, 0, 4);
    events(&mut to, order);
    order.put(&mut to, 0, 4);
    order.put(&mut to, 0, 4);
    order.put(&mut to, 0, 8);
    order.put(&mut to, 2, 4);
    to.extend(b"options  \0");
    let clock = b"[mono] global\0";
    order.put(&mut to, 4, 2);
    order.put(&mut to, clock.len() as u64, 4);
    to.extend(clock);
    match snapshot {
        // The kernel's release stands in the snapshot.
        Some(snapshot) => {
            let number = model::snapshot::SNAPSHOT_OPTION.into();
            option(&mut to, order, number, snapshot);
        }
        None => option(&mut to, order, 5, UNAME),
    }
    order.put(&mut to, 0, 2);
    to.extend(b"flyrecord\0");
    let begin = (to.len() + 32).next_multiple_of(4096);
    for index in 0..2 {
        order.put(&mut to, begin as u64 + cpu_bytes * index, 8);
        order.put(&mut to, cpu_bytes, 8);
    }
    to.resize(begin, 0);
    to
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// A section: its number, its bytes, and whether they are packed.
fn section(to: &mut Vec<u8>, order: Order, number: u64, bytes: &[u8], is_packed: bool) -> u64 {
    let at = to.len() as u64;
    order.put(to, number, 2);
    order.put(to, is_packed.into(), 2);
    order.put(to, 0, 4);
    if is_packed {
        let packed = zstd(bytes);
        order.put(to, packed.len() as u64 + 8, 8);
        order.put(to, packed.len() as u64, 4);
        order.put(to, bytes.len() as u64, 4);
        to.extend(packed);
    } else {
        order.put(to, bytes.len() as u64, 8);
        to.extend(bytes);
    }
    at
}

fn option(to: &mut Vec<u8>, order: Order, number: u64, data: &[u8]) {
    order.put(to, number, 2);
    order.put(to, data.len() as u64, 4);
    to.extend(data);
}

fn version7(order: Order, pages: &[Vec<u8>; 2], is_packed: bool) -> Vec<u8> {
    let mut to = Vec::new();
    start(&mut to, order, "7");
    to.extend(if is_packed { &b"zstd\0"[..] } else { b"none\0" });
    to.extend(b"1\0");
    let options_at = to.len();
    order.put(&mut to, 0, 8);
    let mut bytes = Vec::new();
    page_header(&mut bytes, order);
    let header = section(&mut to, order, 16, &bytes, is_packed);
    bytes.clear();
    events(&mut bytes, order);
    let events = section(&mut to, order, 18, &bytes, is_packed);
    let buffer = to.len() as u64;
    order.put(&mut to, 3, 2);
    order.put(&mut to, is_packed.into(), 2);
    order.put(&mut to, 0, 4);
    order.put(&mut to, 0, 8);
    let mut places = Vec::new();
    for page in pages {
        let at = to.len() as u64;
        if is_packed {
            let packed = zstd(page);
            order.put(&mut to, 1, 4);
            order.put(&mut to, packed.len() as u64, 4);
            order.put(&mut to, page.len() as u64, 4);
            to.extend(packed);
        } else {
            to.extend(page);
        }
        places.push((at, to.len() as u64 - at));
    }
    let mut data = Vec::new();
    order.put(&mut data, buffer, 8);
    data.extend(b"\0mono\0");
    order.put(&mut data, 4096, 4);
    order.put(&mut data, 2, 4);
    for (cpu, (at, size)) in (0..).zip(places) {
        order.put(&mut data, cpu, 4);
        order.put(&mut data, at, 8);
        order.put(&mut data, size, 8);
    }
    let mut options = Vec::new();
    option(&mut options, order, 3, &data);
    option(&mut options, order, 16, &header.to_le_bytes());
    option(&mut options, order, 18, &events.to_le_bytes());
    option(&mut options, order, 5, UNAME);
    option(&mut options, order, 0, &[0; 8]);
    let at = section(&mut to, order, 0, &options, is_packed);
    let mut place = Vec::new();
    order.put(&mut place, at, 8);
    to[options_at..options_at + 8].copy_from_slice(&place);
    to
}

const LITTLE: Order = Order { is_big: false };

/// `TID`, `TIME`, `CPU`, `PERIOD`, `RAW` and `IDENTIFIER`.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;

fn attr() -> Vec<u8> {
    let mut to = Vec::new();
    LITTLE.put(&mut to, 2, 4);
    LITTLE.put(&mut to, 64, 4);
    for word in [311, 1, SAMPLE_TYPE, 0, 0, 0] {
        LITTLE.put(&mut to, word, 8);
    }
    to.resize(64, 0);
    to
}

fn tracing() -> Vec<u8> {
    let mut to = Vec::new();
    start(&mut to, LITTLE, "0.6");
    page_header(&mut to, LITTLE);
    LITTLE.put(&mut to, 0, 4);
    events(&mut to, LITTLE);
    LITTLE.put(&mut to, 0, 4);
    LITTLE.put(&mut to, 0, 4);
    LITTLE.put(&mut to, 0, 8);
    to
}

fn record(kind: u64, body: &[u8]) -> Vec<u8> {
    let mut to = Vec::new();
    LITTLE.put(&mut to, kind, 4);
    LITTLE.put(&mut to, 0, 2);
    LITTLE.put(&mut to, body.len() as u64 + 8, 2);
    to.extend(body);
    to
}

fn sample(it: &Record) -> Vec<u8> {
    let raw = payload(LITTLE, it);
    let mut body = Vec::new();
    LITTLE.put(&mut body, 7, 8);
    LITTLE.put(&mut body, u64::from(it.pid) << 32 | u64::from(it.pid), 8);
    LITTLE.put(&mut body, it.time, 8);
    LITTLE.put(&mut body, it.cpu.into(), 8);
    LITTLE.put(&mut body, 1, 8);
    LITTLE.put(&mut body, raw.len() as u64, 4);
    body.extend(raw);
    body.resize(body.len().next_multiple_of(8), 0);
    record(9, &body)
}

/// The samples of one CPU stand before those of the other, as perf writes them, and the end of a
/// round behind both.
pub fn samples(records: &[Record]) -> Vec<u8> {
    let of = |cpu: u32| records.iter().filter(move |it| it.cpu == cpu).map(sample);
    let mut data: Vec<u8> = of(0).chain(of(1)).flatten().collect();
    data.extend(record(68, &[]));
    data
}

/// What stands before the samples in a pipe.
pub fn head_of_pipe() -> Vec<u8> {
    let mut to = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    let mut body = attr();
    LITTLE.put(&mut body, 7, 8);
    to.extend(record(64, &body));
    let mut body = Vec::new();
    LITTLE.put(&mut body, 4, 8);
    body.extend(release());
    to.extend(record(80, &body));
    let mut tracing = tracing();
    tracing.resize(tracing.len().next_multiple_of(8), 0);
    let mut size = Vec::new();
    LITTLE.put(&mut size, tracing.len() as u64, 4);
    to.extend(record(66, &size));
    to.extend(tracing);
    to
}

pub fn perf_data(records: &[Record], form: &str) -> Vec<u8> {
    let finished = record(68, &[]);
    let mut data = samples(records);
    data.truncate(data.len() - finished.len());
    match form {
        "zstd" => {
            let packed = zstd(&data);
            data = record(81, &packed);
        }
        "pipe" => {
            let mut to = head_of_pipe();
            to.extend(data);
            to.extend(finished);
            return to;
        }
        _ => {}
    }
    data.extend(finished);
    let mut to = b"PERFILE2".to_vec();
    let ids_at = 104_u64;
    let attrs_at = ids_at + 8;
    let data_at = attrs_at + 80;
    let features_at = data_at + data.len() as u64;
    for word in [
        104,
        80,
        attrs_at,
        80,
        data_at,
        data.len() as u64,
        0,
        0,
        1 << 1 | 1 << 4 | 1 << 7,
        0,
        0,
        0,
    ] {
        LITTLE.put(&mut to, word, 8);
    }
    to.resize(104, 0);
    LITTLE.put(&mut to, 7, 8);
    to.extend(attr());
    LITTLE.put(&mut to, ids_at, 8);
    LITTLE.put(&mut to, 8, 8);
    to.extend(data);
    let mut at = features_at + 48;
    for feature in [tracing(), release(), nr_cpus()] {
        LITTLE.put(&mut to, at, 8);
        LITTLE.put(&mut to, feature.len() as u64, 8);
        at += feature.len() as u64;
    }
    to.extend(tracing());
    to.extend(release());
    to.extend(nr_cpus());
    to
}

/// `common_flags` of a context.
pub fn flags(context: CpuContext) -> u32 {
    match context {
        CpuContext::Hard => 0x08,
        CpuContext::Soft => 0x10,
        _ => 0,
    }
}
