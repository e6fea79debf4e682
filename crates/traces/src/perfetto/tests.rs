use std::fmt::Write as _;

use model::Nanos;

use super::*;
use crate::protobuf::{FieldValue, Fields};
use crate::testing::{StreamWriter, event, with};

/// A decoded message: fields by number, in their order.
struct Decoded<'a>(Vec<(u64, FieldValue<'a>)>);

impl<'a> Decoded<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let fields: Result<_, _> = Fields::of(bytes).collect();
        Self(fields.expect("it was written here"))
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.0.iter().find_map(|(at, value)| match value {
            FieldValue::Number(number) if *at == field => Some(*number),
            _ => None,
        })
    }

    fn all(&self, field: u64) -> Vec<Self> {
        let bytes = self.0.iter().filter_map(|(at, value)| match value {
            FieldValue::Bytes(bytes) if *at == field => Some(Self::of(bytes)),
            _ => None,
        });
        bytes.collect()
    }

    fn text(&self, field: u64) -> Option<String> {
        self.0.iter().find_map(|(at, value)| match value {
            FieldValue::Bytes(bytes) if *at == field => {
                Some(String::from_utf8(bytes.to_vec()).unwrap())
            }
            _ => None,
        })
    }
}

fn written(stream: &StreamWriter, trace: Perfetto<Vec<u8>>, end: u64) -> Vec<u8> {
    let mut trace = trace;
    stream.feed(&mut trace, 2, end);
    trace.close().unwrap()
}

fn ftrace_line(cpu: u64, event: &Decoded, to: &mut String) {
    let (time, by) = (event.number(1).unwrap(), event.number(2).unwrap());
    write!(to, "{time} cpu{cpu} by {by}: ").unwrap();
    for switch in event.all(4) {
        let [prev, next] = [1, 5].map(|field| switch.text(field).unwrap());
        let [pid, prio, state, next_pid, next_prio] =
            [2, 3, 4, 6, 7].map(|field| switch.number(field).unwrap());
        writeln!(
            to,
            "switch {prev}/{pid} prio {prio} state {state} -> {next}/{next_pid} prio {next_prio}"
        )
        .unwrap();
    }
    for (field, name) in [(20, "waking"), (491, "migrate")] {
        for event in event.all(field) {
            let comm = event.text(1).unwrap();
            let [pid, prio, fourth, fifth] = [2, 3, 4, 5].map(|at| event.number(at).unwrap());
            writeln!(to, "{name} {comm}/{pid} prio {prio}: {fourth}, {fifth}").unwrap();
        }
    }
}

fn descriptor_line(track: &Decoded, to: &mut String) {
    let uuid = track.number(1).unwrap();
    let parent = track
        .number(5)
        .map_or_else(String::new, |parent| format!(" under {parent:#x}"));
    let counter = if track.all(8).is_empty() {
        ""
    } else {
        " counter"
    };
    write!(to, "track {uuid:#x}{parent}{counter}").unwrap();
    for thread in track.all(4) {
        let [pid, tid] = [1, 2].map(|field| thread.number(field).unwrap());
        write!(to, " thread {pid}/{tid} {}", thread.text(5).unwrap()).unwrap();
    }
    writeln!(to, " {}", track.text(2).unwrap_or_default()).unwrap();
}

fn track_event_line(time: u64, event: &Decoded, to: &mut String) {
    const SORTS: [&str; 5] = ["", "begin", "end", "instant", "counter"];
    let sort = SORTS[event.number(9).unwrap() as usize];
    write!(to, "{time} {sort} on {:#x}", event.number(11).unwrap()).unwrap();
    if let Some(name) = event.text(23) {
        write!(to, " {name}").unwrap();
    }
    if let Some(value) = event.number(30) {
        write!(to, " = {value}").unwrap();
    }
    for note in event.all(4) {
        write!(
            to,
            " ({} {})",
            note.text(10).unwrap(),
            note.number(3).unwrap()
        )
        .unwrap();
    }
    writeln!(to).unwrap();
}

/// One line for each thing that a trace says.
fn decoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    for packet in Decoded::of(bytes).all(1) {
        assert_eq!(packet.number(10), Some(1), "every packet has the sequence");
        let time = packet.number(8).unwrap_or_default();
        for _ in packet.all(6) {
            writeln!(text, "clocks, flags {}", packet.number(13).unwrap()).unwrap();
        }
        for tree in packet.all(2) {
            for process in tree.all(1) {
                let [pid, parent] = [1, 2].map(|field| process.number(field).unwrap());
                writeln!(
                    text,
                    "process {pid} of {parent}: {}",
                    process.text(3).unwrap()
                )
                .unwrap();
            }
            for thread in tree.all(2) {
                let [tid, process] = [1, 3].map(|field| thread.number(field).unwrap());
                let name = thread.text(2).unwrap();
                writeln!(text, "{time} thread {process}/{tid}: {name}").unwrap();
            }
        }
        for bundle in packet.all(1) {
            let cpu = bundle.number(1).unwrap();
            bundle
                .all(2)
                .iter()
                .for_each(|event| ftrace_line(cpu, event, &mut text));
        }
        packet
            .all(60)
            .iter()
            .for_each(|track| descriptor_line(track, &mut text));
        packet
            .all(11)
            .iter()
            .for_each(|event| track_event_line(time, event, &mut text));
    }
    text
}

#[test]
fn scheduling_becomes_ftrace_events_with_named_threads() {
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .born(0, 1, 1, 0)
        .born(0, 2, 1, 1)
        .start(5, 0, 1)
        .switch(7, 1, None, Some(0))
        .start(8, 2, 1)
        .switch(9, 1, Some((0, PrevState::Runnable)), Some(2))
        .migrate(10, 0, 1, 0)
        .switch(10, 0, None, Some(0))
        .switch(20, 0, Some((0, PrevState::Sleeping)), None)
        .switch(30, 1, Some((2, PrevState::Dead)), None);
    let want = "\
clocks, flags 1
process 1 of 0: solo
0 thread 1/1: solo
process 2 of 0: pair
0 thread 2/2: pair.0
0 thread 2/3: pair.1
5 cpu1 by 0: waking solo/1 prio 120: 1, 1
7 cpu1 by 0: switch swapper/1/0 prio 120 state 0 -> solo/1 prio 120
8 cpu1 by 0: waking pair.1/3 prio 125: 1, 1
9 cpu1 by 1: switch solo/1 prio 120 state 0 -> pair.1/3 prio 125
10 cpu0 by 1: migrate solo/1 prio 120: 1, 0
10 cpu0 by 0: switch swapper/0/0 prio 120 state 0 -> solo/1 prio 120
20 cpu0 by 1: switch solo/1 prio 120 state 1 -> swapper/0/0 prio 120
30 cpu1 by 3: switch pair.1/3 prio 125 state 16 -> swapper/1/0 prio 120
track 0x100000000000000 run
40 instant on 0x100000000000000 end of the run
";
    assert_eq!(
        decoded(&written(&stream, Perfetto::new(Vec::new()), 40)),
        want
    );
}

#[test]
fn a_wakeup_stands_on_the_cpu_of_its_waker() {
    let waker = 1_u64 << 32;
    let wakeup = with(event(5, EventKind::Wakeup, 0, TaskId(1)), (0, waker, 0));
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .born(0, 1, 1, 0)
        .push(wakeup);
    let text = decoded(&written(&stream, Perfetto::new(Vec::new()), 9));
    assert!(
        text.contains("5 cpu1 by 1: waking pair.0/2 prio 125: 1, 0\n"),
        "{text}"
    );
}

#[test]
fn the_workload_and_the_policy_have_tracks() {
    let report = |ns, word| event_with(ns, EventKind::Report, word);
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .on(1, EventKind::SpanBegin, 0, 0, 0)
        .on(2, EventKind::Phase, 0, 0, 0)
        .on(3, EventKind::Phase, 0, 1, 0)
        .on(4, EventKind::Deadline, 0, 0, 0)
        .on(5, EventKind::Deadline, 0, 0, 77)
        .on(6, EventKind::Skipped, 0, 0, 2)
        .on(7, EventKind::SpanEnd, 0, 0, 6)
        .on(8, EventKind::Count, 0, 0, 2)
        .on(9, EventKind::Count, 0, 0, 3)
        .push(report(10, 2 << 32 | 118))
        .push(report(11, 2 << 32 | 118))
        .push(report(12, 3 << 32 | 118))
        .on(13, EventKind::Kick, TaskId::NONE.0, 2, 1)
        .on(14, EventKind::Change, 0, 0, (-5_i64).cast_unsigned());
    let text = decoded(&written(&stream, Perfetto::new(Vec::new()), 40));
    let want = "\
track 0x500000000000000 thread 1/1 solo 
track 0x900000000000000 under 0x500000000000000 request
1 begin on 0x900000000000000 request
track 0x600000000000000 under 0x500000000000000 phase
2 begin on 0x600000000000000 think
3 end on 0x600000000000000
3 begin on 0x600000000000000 work
5 instant on 0x500000000000000 frame: missed frame (late_ns 77)
6 instant on 0x500000000000000 frame: skipped (periods 2)
7 end on 0x900000000000000
track 0x400000000000000 counter messages
8 counter on 0x400000000000000 = 2
9 counter on 0x400000000000000 = 5
track 0x700000000000000 under 0x500000000000000 counter priority
10 counter on 0x700000000000000 = 118
track 0x800000000000000 under 0x500000000000000 counter level
10 counter on 0x800000000000000 = 2
12 counter on 0x800000000000000 = 3
track 0x300000000000001 policy, CPU 1
13 instant on 0x300000000000001 kick CPU 0 (flags 2)
14 instant on 0x500000000000000 nice -5
";
    let tracks = text.split_once("0 thread 1/1: solo\n").unwrap().1;
    assert_eq!(
        tracks.split_once("track 0x100000000000000").unwrap().0,
        want
    );
}

fn event_with(ns: u64, kind: EventKind, a: u64) -> Event {
    with(event(ns, kind, 0, TaskId(0)), (0, a, 0))
}

#[test]
fn kernel_time_becomes_slices_that_do_not_overlap() {
    let stream = StreamWriter::new()
        .steal(10, 0, None, 10)
        .steal(15, 0, None, 4);
    let text = decoded(&written(&stream, Perfetto::new(Vec::new()), 40));
    let want = "\
track 0x200000000000000 kernel, CPU 0
10 begin on 0x200000000000000 interrupt
20 end on 0x200000000000000
20 begin on 0x200000000000000 interrupt
24 end on 0x200000000000000
";
    assert!(text.contains(want), "{text}");
}

#[test]
fn a_change_of_nice_shows_in_the_next_switch() {
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .start(0, 0, 0)
        .on(1, EventKind::Change, 0, 0, 19)
        .switch(2, 0, None, Some(0));
    let text = decoded(&written(&stream, Perfetto::new(Vec::new()), 9));
    assert!(text.contains("-> solo/1 prio 139\n"), "{text}");
}

#[test]
fn tracks_have_numbers_of_their_own() {
    let (cpu, task) = (CpuId(3), TaskId(3));
    let tracks = [
        Track::Machine,
        Track::Kernel(cpu),
        Track::Policy(cpu),
        Track::Counter(3),
        Track::Task(task),
        Track::Phase(task),
        Track::Priority(task),
        Track::Level(task),
        Track::Span(task, 0),
        Track::Span(task, 1),
        Track::Span(TaskId(4), 1),
    ];
    let begins = tracks.map(|track| {
        let begin = Mark::begin(track, "x").write(Message::new());
        Decoded::of(begin.as_bytes()).number(11)
    });
    let mut unique = begins.to_vec();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), tracks.len());
}

#[test]
fn a_long_run_reaches_the_writer_in_pieces() {
    let mut trace = Perfetto::new(Vec::new());
    trace.begin(&crate::testing::header(2));
    trace.events(&StreamWriter::new().born(0, 0, 0, 0).events);
    let hop = StreamWriter::new().switch(1, 0, None, Some(0)).switch(
        1,
        0,
        Some((0, PrevState::Sleeping)),
        None,
    );
    for _ in 0..20_000 {
        trace.events(&hop.events);
    }
    assert!(
        trace.packets.output.buffer().capacity() < 1 << 20,
        "memory grows with the run"
    );
    trace.finish(SimTime::ZERO + Nanos::new(2));
    let text = decoded(&trace.close().unwrap());
    assert_eq!(text.matches(": switch ").count(), 40_000);
}
