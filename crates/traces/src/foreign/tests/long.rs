//! A trace of ten gigabytes, which is made as it is read: memory does not grow with its length.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use prost::Message as _;

use super::story::who;
use super::trace_files::{head_of_pipe, long_trace_dat, one_page, samples};
use super::written::{perfetto, text};
use crate::foreign::record::{CpuContext, InterruptSource, Left, Record, RecordWhat, Who};
use crate::foreign::{Window, read};

/// Formats for [`long`].
pub const LONG: [&str; 4] = ["trace.dat", "perf.data", "Perfetto", "text"];

/// What the process may have of the computer's memory at any time, in KiB.
const MOST_KIB: u64 = 500_000;
/// Tasks of each of the two CPUs.
const TASKS: u64 = 32;
/// Turns in a block. A block of both CPUs fits in a page each.
const TURNS: u64 = 15;
/// Records of a turn.
const STEPS: u64 = 6;
/// Time of a turn. The first one begins so late that all times have as many digits and bytes.
const TURN_NS: u64 = 100_000;
const BEGIN_NS: u64 = 1 << 60;

/// Both CPUs' records of the block of this number: a timer wakes a task, it runs and sleeps.
fn block(number: u64) -> Vec<Record> {
    let mut records = Vec::new();
    for turn in number * TURNS..(number + 1) * TURNS {
        for cpu in 0..2 {
            records.extend(turn_of(turn, cpu));
        }
    }
    records.sort_by_key(|record| record.time);
    records
}

fn turn_of(turn: u64, cpu: u32) -> Vec<Record> {
    let number = 1_000 + u32::try_from(turn % TASKS).unwrap() + 100 * cpu;
    let task = who(number, "task");
    let idle = Who {
        pid: 0,
        ..who(0, "swapper")
    };
    let wakeup = RecordWhat::Wakeup {
        who: task,
        cpu: Some(cpu),
        new: false,
    };
    let switch = |prev, next| RecordWhat::Switch {
        prev,
        left: Left::Sleeping,
        next,
    };
    let steps = [
        (
            0,
            CpuContext::Hard,
            RecordWhat::Enter(InterruptSource::Timer),
        ),
        (0, CpuContext::Hard, RecordWhat::Waking(task, Some(cpu))),
        (0, CpuContext::Hard, wakeup),
        (
            0,
            CpuContext::Hard,
            RecordWhat::Leave(InterruptSource::Timer),
        ),
        (0, CpuContext::Task, switch(idle, task)),
        (number, CpuContext::Task, switch(task, idle)),
    ];
    let at = BEGIN_NS + turn * TURN_NS + u64::from(cpu) * 1_000;
    let record = |(index, (pid, context, what)): (u64, (u32, CpuContext, RecordWhat))| Record {
        time: at + index * 5_000,
        cpu,
        pid,
        context,
        what,
    };
    (0..).zip(steps).map(record).collect()
}

/// The bytes of the block of this number.
type Make = Box<dyn Fn(u64) -> Vec<u8>>;

/// A file of which only one block is in memory.
pub struct Long {
    prefix: Vec<u8>,
    blocks: u64,
    block_bytes: u64,
    make: Make,
    at: u64,
    made: Option<(u64, Vec<u8>)>,
}

impl Long {
    fn len(&self) -> u64 {
        self.prefix.len() as u64 + self.blocks * self.block_bytes
    }
}

impl Read for Long {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let prefix = self.prefix.len() as u64;
        let from = if self.at < prefix {
            &self.prefix[usize::try_from(self.at).unwrap()..]
        } else {
            let (number, within) = (
                (self.at - prefix) / self.block_bytes,
                (self.at - prefix) % self.block_bytes,
            );
            if number >= self.blocks {
                return Ok(0);
            }
            if self.made.as_ref().is_none_or(|(made, _)| *made != number) {
                let bytes = (self.make)(number);
                assert_eq!(bytes.len() as u64, self.block_bytes, "blocks of one size");
                self.made = Some((number, bytes));
            }
            let (_, bytes) = self.made.as_ref().unwrap();
            &bytes[usize::try_from(within).unwrap()..]
        };
        let many = from.len().min(to.len());
        to[..many].copy_from_slice(&from[..many]);
        self.at += many as u64;
        Ok(many)
    }
}

impl Seek for Long {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// The most memory that this process has had, in KiB.
pub fn most_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

/// A trace of about so many bytes, and how many records it has.
pub fn long(format: &str, bytes: u64) -> (Long, u64) {
    let (prefix, make): (Vec<u8>, Make) = match format {
        "trace.dat" => {
            let pages = bytes / 4096 / 2;
            // All pages of CPU 0 stand before those of CPU 1.
            let page = move |number| one_page(&block(number % pages), u32::from(number >= pages));
            (long_trace_dat(pages * 4096), Box::new(page))
        }
        "perf.data" => (head_of_pipe(), Box::new(|number| samples(&block(number)))),
        "Perfetto" => (
            perfetto(&[]).encode_to_vec(),
            Box::new(|number| perfetto(&block(number)).encode_to_vec()),
        ),
        _ => (
            text("ftrace", &[]).into_bytes(),
            Box::new(|number| text("ftrace", &block(number)).into_bytes()),
        ),
    };
    let block_bytes = make(0).len() as u64;
    let blocks = bytes / block_bytes / 2 * 2;
    let cpus = if format == "trace.dat" { 1 } else { 2 };
    let records = blocks * TURNS * cpus * STEPS;
    let long = Long {
        prefix,
        blocks,
        block_bytes,
        make,
        at: 0,
        made: None,
    };
    (long, records)
}

fn check(format: &str, bytes: u64) {
    let (file, records) = long(format, bytes);
    let mut events = 0;
    let imported = read(file, "long", Window::default(), &mut |more| {
        events += more.len() as u64;
        ControlFlow::Continue(())
    });
    let imported = imported.unwrap_or_else(|why| panic!("{format}: {why}"));
    assert_eq!(imported.findings.records, records, "{format}");
    assert_eq!(imported.findings.late, 0, "{format}");
    assert!(events > records / 2, "{format}: {events}");
    let most = most_kib();
    assert!(most < MOST_KIB, "{format}: {most} KiB");
}

#[test]
fn every_format_of_the_long_trace_is_read_to_its_end() {
    for format in LONG {
        check(format, 1_000_000);
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn ten_gigabytes_take_no_more_memory_than_a_limit() {
    for format in LONG {
        check(format, 10_000_000_000);
    }
}
