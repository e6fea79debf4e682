//! Writes records in every format that is read.

use std::fmt::Write as _;

use prost::Message as _;

#[path = "perfetto_files.rs"]
pub mod files;

use super::messages::{self as m, event::Event as Of};
use super::trace_files::{RELEASE, flags, perf_data, trace_dat};
use crate::foreign::record::{CpuContext, InterruptSource, Left, Record, RecordWhat, Who};

/// Names for [`written`].
pub const FORMATS: &[&str] = &[
    "ftrace",
    "perf script",
    "trace-cmd report",
    "trace.dat 6",
    "trace.dat 6, big-endian",
    "trace.dat 7",
    "trace.dat 7, zstd",
    "perf.data",
    "perf.data, zstd",
    "perf.data, pipe",
    "Perfetto",
    "Perfetto, compact",
    "Perfetto, packed",
];

/// The records in a format.
pub fn written(format: &str, records: &[Record]) -> Vec<u8> {
    match format {
        "ftrace" | "perf script" | "trace-cmd report" => text(format, records).into_bytes(),
        "trace.dat 6" => trace_dat(records, 6, false, false),
        "trace.dat 6, big-endian" => trace_dat(records, 6, true, false),
        "trace.dat 7" => trace_dat(records, 7, false, false),
        "trace.dat 7, zstd" => trace_dat(records, 7, false, true),
        "perf.data" => perf_data(records, "file"),
        "perf.data, zstd" => perf_data(records, "zstd"),
        "perf.data, pipe" => perf_data(records, "pipe"),
        "Perfetto" => perfetto(records).encode_to_vec(),
        "Perfetto, compact" => compact(records).encode_to_vec(),
        "Perfetto, packed" => packed(records),
        _ => panic!("{format}"),
    }
}

pub fn text(format: &str, records: &[Record]) -> String {
    let mut text = match format {
        "trace-cmd report" => "cpus=2\n".to_owned(),
        "ftrace" => "# tracer: nop\n#\n".to_owned(),
        "perf script" => format!("# hostname : story\n# os release : {RELEASE}\n#\n"),
        _ => String::new(),
    };
    for record in records {
        let (event, fields) = line(format, record.what);
        let (pid, cpu) = (record.pid, record.cpu);
        let (s, us) = (
            record.time / 1_000_000_000,
            record.time % 1_000_000_000 / 1000,
        );
        let context = match record.context {
            CpuContext::Hard => 'h',
            CpuContext::Soft => 's',
            _ => '.',
        };
        let written = match format {
            "ftrace" => writeln!(
                text,
                " a [b] c-{pid}   [00{cpu}] d.{context}2. {s}.{us:06}: {event}: {fields}"
            ),
            "perf script" => writeln!(
                text,
                " a [b] c {pid} [00{cpu}] {s}.{us:06}:  sched:{event}: {fields}"
            ),
            _ => writeln!(
                text,
                "  a [b] c-{pid} [00{cpu}] {s}.{us:06}: {event}:   {fields}"
            ),
        };
        written.unwrap();
    }
    text
}

fn letters(left: Left) -> &'static str {
    match left {
        Left::Runnable => "R+",
        Left::Sleeping => "S",
        Left::Blocked => "D",
        Left::Dead => "X",
    }
}

fn bits(left: Left) -> i64 {
    match left {
        Left::Runnable => 0x100,
        Left::Sleeping => 1,
        Left::Blocked => 2,
        Left::Dead => 0x10,
    }
}

fn line(format: &str, what: RecordWhat) -> (&'static str, String) {
    let prio = |who: Who| who.prio.unwrap_or(120);
    let woken = |who: Who, cpu: Option<u32>| match format {
        "trace-cmd report" => format!(
            "{}:{} [{}] CPU:{:03}",
            who.comm,
            who.pid,
            prio(who),
            cpu.unwrap()
        ),
        _ => format!(
            "comm={} pid={} prio={} target_cpu={:03}",
            who.comm,
            who.pid,
            prio(who),
            cpu.unwrap()
        ),
    };
    match what {
        RecordWhat::Switch { prev, left, next } => {
            let left = letters(left);
            let (a, b) = (prio(prev), prio(next));
            let text = match format {
                "trace-cmd report" => format!(
                    "{}:{} [{a}] {left} ==> {}:{} [{b}]",
                    prev.comm, prev.pid, next.comm, next.pid
                ),
                _ => format!(
                    "prev_comm={} prev_pid={} prev_prio={a} prev_state={left} ==> \
                     next_comm={} next_pid={} next_prio={b}",
                    prev.comm, prev.pid, next.comm, next.pid
                ),
            };
            ("sched_switch", text)
        }
        RecordWhat::Waking(who, cpu) => ("sched_waking", woken(who, cpu)),
        RecordWhat::WakingSync(pid) => (
            "sched_waking_sync",
            format!("(try_to_wake_up+0x0/0x5d0) pid={pid} flags=16"),
        ),
        RecordWhat::Wakeup { who, cpu, new } => {
            let event = if new {
                "sched_wakeup_new"
            } else {
                "sched_wakeup"
            };
            (event, woken(who, cpu))
        }
        RecordWhat::Migrate { who, from, to } => (
            "sched_migrate_task",
            format!(
                "comm={} pid={} prio={} orig_cpu={from} dest_cpu={to}",
                who.comm,
                who.pid,
                prio(who)
            ),
        ),
        RecordWhat::Fork { parent, child } => (
            "sched_process_fork",
            format!(
                "comm=any pid={parent} child_comm={} child_pid={}",
                child.comm, child.pid
            ),
        ),
        other => interrupt(other),
    }
}

fn interrupt(what: RecordWhat) -> (&'static str, String) {
    match what {
        RecordWhat::Enter(InterruptSource::Timer) => (
            "hrtimer_expire_entry",
            "hrtimer=0x1 function=f now=1".to_owned(),
        ),
        RecordWhat::Leave(InterruptSource::Timer) => {
            ("hrtimer_expire_exit", "hrtimer=0x1".to_owned())
        }
        RecordWhat::Enter(InterruptSource::Soft { .. }) => {
            ("softirq_entry", "vec=3 [action=NET_RX]".to_owned())
        }
        RecordWhat::Leave(InterruptSource::Soft { .. }) => {
            ("softirq_exit", "vec=3 [action=NET_RX]".to_owned())
        }
        other => panic!("{other:?} is not in the story"),
    }
}

fn comm(who: Who, cpu: Option<u32>) -> m::Comm {
    m::Comm {
        comm: Some(who.comm.bytes().to_vec()),
        pid: Some(who.pid.cast_signed()),
        prio: who.prio.map(i32::from),
        target_cpu: cpu.map(u32::cast_signed),
    }
}

fn event(record: &Record) -> m::Event {
    let what = match record.what {
        RecordWhat::Switch { prev, left, next } => Of::SchedSwitch(m::SchedSwitch {
            prev_comm: Some(prev.comm.bytes().to_vec()),
            prev_pid: Some(prev.pid.cast_signed()),
            prev_prio: prev.prio.map(i32::from),
            prev_state: Some(bits(left)),
            next_comm: Some(next.comm.bytes().to_vec()),
            next_pid: Some(next.pid.cast_signed()),
            next_prio: next.prio.map(i32::from),
        }),
        RecordWhat::Waking(who, cpu) => Of::SchedWaking(comm(who, cpu)),
        RecordWhat::Wakeup {
            who,
            cpu,
            new: true,
        } => Of::SchedWakeupNew(comm(who, cpu)),
        RecordWhat::Wakeup { who, cpu, .. } => Of::SchedWakeup(comm(who, cpu)),
        RecordWhat::Migrate { who, from, to } => Of::SchedMigrateTask(m::Migrate {
            comm: Some(who.comm.bytes().to_vec()),
            pid: Some(who.pid.cast_signed()),
            prio: who.prio.map(i32::from),
            orig_cpu: Some(from.cast_signed()),
            dest_cpu: Some(to.cast_signed()),
        }),
        RecordWhat::Fork { parent, child } => Of::SchedProcessFork(m::Fork {
            parent_pid: Some(parent.cast_signed()),
            child_comm: Some(child.comm.bytes().to_vec()),
            child_pid: Some(child.pid.cast_signed()),
        }),
        RecordWhat::Enter(InterruptSource::Timer) => Of::HrtimerExpireEntry(m::Empty {}),
        RecordWhat::Leave(InterruptSource::Timer) => Of::HrtimerExpireExit(m::Empty {}),
        RecordWhat::Enter(_) => Of::SoftirqEntry(m::Softirq { vec: Some(3) }),
        RecordWhat::Leave(_) => Of::SoftirqExit(m::Softirq { vec: Some(3) }),
        other => panic!("{other:?} is not in the story"),
    };
    m::Event {
        timestamp: Some(record.time),
        pid: Some(record.pid),
        common_flags: Some(flags(record.context)),
        event: Some(what),
    }
}

/// One packet for each CPU, as the recorder reads them.
pub fn perfetto(records: &[Record]) -> files::Trace {
    let packet = |cpu: u32| files::Packet {
        ftrace_events: Some(files::Bundle {
            cpu: Some(cpu),
            event: records
                .iter()
                .filter(|it| it.cpu == cpu)
                .map(event)
                .collect(),
            ..files::Bundle::default()
        }),
        ..files::Packet::default()
    };
    let info = files::Packet {
        system_info: Some(m::SystemInfo {
            utsname: Some(m::Utsname {
                release: Some(RELEASE.to_owned()),
            }),
        }),
        ..files::Packet::default()
    };
    files::Trace {
        packet: vec![packet(0), info, packet(1)],
    }
}

fn packed(records: &[Record]) -> Vec<u8> {
    use std::io::Write as _;
    let inner = perfetto(records).encode_to_vec();
    let level = flate2::Compression::default();
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
    encoder.write_all(&inner).unwrap();
    let packet = files::Packet {
        compressed_packets: encoder.finish().unwrap(),
        ..files::Packet::default()
    };
    let packet = vec![packet];
    files::Trace { packet }.encode_to_vec()
}

fn compact(records: &[Record]) -> files::Trace {
    let bundle = |cpu: u32| {
        let mut compact = files::CompactSched::default();
        let (mut switch, mut waking) = (0, 0);
        for record in records.iter().filter(|it| it.cpu == cpu) {
            let table = &mut compact.intern_table;
            let mut name = |who: Who| {
                table.push(who.comm.bytes().to_vec());
                u32::try_from(table.len() - 1).unwrap()
            };
            match record.what {
                RecordWhat::Switch { left, next, .. } => {
                    compact.switch_next_comm_index.push(name(next));
                    compact.switch_timestamp.push(record.time - switch);
                    switch = record.time;
                    compact.switch_prev_state.push(bits(left));
                    compact.switch_next_pid.push(next.pid.cast_signed());
                    compact.switch_next_prio.push(next.prio.unwrap().into());
                }
                RecordWhat::Waking(who, target) => {
                    compact.waking_comm_index.push(name(who));
                    compact.waking_timestamp.push(record.time - waking);
                    waking = record.time;
                    compact.waking_pid.push(who.pid.cast_signed());
                    compact.waking_prio.push(who.prio.unwrap().into());
                    compact
                        .waking_target_cpu
                        .push(target.unwrap().cast_signed());
                    compact.waking_common_flags.push(flags(record.context));
                }
                _ => {}
            }
        }
        files::Packet {
            ftrace_events: Some(files::Bundle {
                cpu: Some(cpu),
                compact_sched: Some(compact),
                ..files::Bundle::default()
            }),
            ..files::Packet::default()
        }
    };
    files::Trace {
        packet: vec![bundle(0), bundle(1)],
    }
}
