//! Scheduler statistics of every version: logs of /proc/schedstat, and the numbers of one task.
#![no_main]

use libfuzzer_sys::fuzz_target;
use show::figure::{self, Statistics};
use stats::schedstat::{Interval, SchedstatReader, Snapshot, TaskCounters};

fuzz_target!(|bytes: &[u8]| {
    let Some((form, bytes)) = bytes.split_first() else {
        return;
    };
    match form {
        b't' => task(&String::from_utf8_lossy(bytes)),
        _ => log(bytes),
    }
});

fn task(text: &str) {
    for read in [TaskCounters::from_stat, TaskCounters::from_schedstat] {
        if let Err(error) = read(text) {
            let _ = error.to_string();
        }
    }
}

/// Reads a log. What was read and written again is read as the same; intervals between any two
/// snapshots have figures, or an error.
fn log(bytes: &[u8]) {
    let mut reader = SchedstatReader::new(bytes);
    let mut snapshots = Vec::new();
    loop {
        match reader.next_snapshot() {
            Ok(Some(snapshot)) => snapshots.push(snapshot),
            Ok(None) => break,
            Err(error) => {
                assert!(reader.line() <= bytes.len() as u64 + 1);
                let _ = error.to_string();
                break;
            }
        }
    }
    let mut again = Vec::new();
    for snapshot in &snapshots {
        snapshot
            .write(&mut again)
            .expect("a vector takes everything");
    }
    let mut reader = SchedstatReader::new(&*again);
    for snapshot in &snapshots {
        let read = reader
            .next_snapshot()
            .expect("what was written can be read");
        assert_eq!(read.as_ref(), Some(snapshot));
    }
    let mut intervals = Vec::new();
    for pair in snapshots.windows(2) {
        intervals.extend(between(&pair[0], &pair[1]));
    }
    if let (Some(first), Some(last)) = (snapshots.first(), snapshots.last()) {
        between(first, last);
    }
    let log = Statistics {
        name: "log".to_owned(),
        hz: 250,
        intervals,
    };
    for chart in figure::of_statistics(&[log]) {
        let _ = figure::svg(&chart, true);
    }
}

fn between(before: &Snapshot, after: &Snapshot) -> Option<Interval> {
    let interval = Interval::new(before, after)
        .map_err(|error| error.to_string())
        .ok()?;
    for cpu in &interval.cpus {
        let _ = interval.figures(cpu, 1, 1);
        let _ = cpu.balance_calls(interval.layout());
    }
    let _ = interval.figures(&interval.total(), interval.cpus.len(), 1_000);
    Some(interval)
}
