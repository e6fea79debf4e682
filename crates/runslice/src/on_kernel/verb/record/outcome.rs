//! What came of a recording: how much there is, what was lost, what it cost.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use ask::words;
use live::tracefs::{EndedRecording, RecorderEnd};
use model::{Nanos, Snapshot};
use serde::Serialize;

use super::{say, why_ended};
use crate::report::Format;
use crate::table::Table;

/// Version of the document; it grows when a field is removed or changes its meaning.
const VERSION: u32 = 1;

/// All that is known afterwards.
#[derive(Debug, Default)]
pub struct RecordOutcome {
    /// How it was recorded.
    pub with: &'static str,
    /// How long.
    pub length: Duration,
    /// CPUs that were online.
    pub cpus: usize,
    /// Records.
    pub events: u64,
    /// Records for which there was no room.
    pub lost: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// CPU time of this process while it recorded.
    pub recorder: Duration,
    /// CPU time of an event's recording, where it could be measured.
    pub event_cost: Option<Duration>,
    /// CPU time of a switch with its wakeup, where it could be measured.
    pub switch_cost: Option<Duration>,
    /// Threads of which it is known what they may do.
    pub threads: usize,
}

#[derive(Serialize)]
struct Document<'a> {
    runslice_record: u32,
    file: &'a Path,
    with: &'static str,
    time_ns: u128,
    cpus: usize,
    events: u64,
    lost: u64,
    bytes: u64,
    recorder_ns: u128,
    event_ns: Option<u128>,
    switch_ns: Option<u128>,
    /// Of the machine's CPU time.
    share_millionths: Option<u128>,
    threads: usize,
}

impl RecordOutcome {
    /// Of a recording through tracefs.
    pub fn of(recorded: &EndedRecording, snapshot: &Snapshot) -> Self {
        Self {
            with: "tracefs",
            length: recorded.length,
            cpus: model::snapshot::cpus_of(&snapshot.online).len().max(1),
            events: recorded.events,
            lost: recorded.lost,
            file_bytes: 0,
            recorder: recorded.reader,
            event_cost: recorded.event_cost,
            switch_cost: recorded.switch_cost,
            threads: snapshot.begin.threads.len(),
        }
    }

    /// Says what the user must know before the figures.
    pub fn warn(&self, recorded: &EndedRecording, snapshot: &Snapshot) {
        if recorded.removed > 0 {
            let of = if recorded.removed == 1 {
                "buffer"
            } else {
                "buffers"
            };
            say(&format!(
                "{} trace {of} of killed recordings removed",
                recorded.removed
            ));
        }
        if !recorded.missing.is_empty() {
            say(&format!(
                "this kernel has no {}",
                recorded.missing.join(", ")
            ));
        }
        if let Some(error) = &recorded.left {
            say(&format!(
                "the next recording removes the trace buffer: {error}"
            ));
        }
        if let Some(ended) = recorded.ended {
            say(&format!("the recording ended early: {}", why_ended(ended)));
        }
        if recorded.ended != Some(RecorderEnd::DiskFull) && self.lost > 0 {
            say(&format!(
                "{} events were lost: --buffer makes room for more, --no-interrupts makes fewer",
                self.lost
            ));
        }
        self.warn_of_threads(snapshot);
    }

    /// Says that nothing is known of threads, if that is so.
    pub fn warn_of_threads(&self, snapshot: &Snapshot) {
        if snapshot.begin.threads.is_empty() {
            say(
                "this process does not see the machine's threads (it is in a container): nice \
                 values and affinities stay unknown",
            );
        }
    }

    /// What recording took of the machine's CPU time, in millionths: all events, and this process.
    fn share(&self) -> Option<u128> {
        let events = self.event_cost?.as_nanos() * u128::from(self.events);
        let cpus = u128::try_from(self.cpus).ok()?;
        let all = self.length.as_nanos() * cpus;
        ((events + self.recorder.as_nanos()) * 1_000_000).checked_div(all)
    }

    /// Writes it.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(&self, form: Format, path: &Path, to: &mut dyn Write) -> io::Result<()> {
        if form != Format::Json {
            return self.write_human(path, to);
        }
        let document = Document {
            runslice_record: VERSION,
            file: path,
            with: self.with,
            time_ns: self.length.as_nanos(),
            cpus: self.cpus,
            events: self.events,
            lost: self.lost,
            bytes: self.file_bytes,
            recorder_ns: self.recorder.as_nanos(),
            event_ns: self.event_cost.map(|cost| cost.as_nanos()),
            switch_ns: self.switch_cost.map(|cost| cost.as_nanos()),
            share_millionths: self.share(),
            threads: self.threads,
        };
        serde_json::to_writer_pretty(&mut *to, &document).map_err(io::Error::from)?;
        writeln!(to)
    }

    fn write_human(&self, path: &Path, to: &mut dyn Write) -> io::Result<()> {
        let name = crate::say::printable(&path.display().to_string());
        let mut table = Table::default().names(name.clone()).numbers("total");
        let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
        row("time", nanos(self.length));
        row("CPUs", self.cpus.to_string());
        row("events", self.events.to_string());
        row("events lost", self.lost.to_string());
        row("size", size(self.file_bytes));
        row("threads looked at", self.threads.to_string());
        row("CPU time of the recorder", nanos(self.recorder));
        let share = permille(self.recorder.as_nanos(), self.length.as_nanos());
        row("... of one CPU", share);
        if let Some(cost) = self.event_cost {
            row("CPU time of an event", nanos(cost));
        }
        if let Some(share) = self.share() {
            row("all of it, of the machine", permille(share, 1_000_000));
        }
        if let Some(cost) = self.switch_cost {
            row("a switch with its wakeup", nanos(cost));
        }
        write!(to, "{table}")?;
        writeln!(
            to,
            "\nSimulate it: runslice sim eevdf fifo mlfq --from {}",
            words::quoted(&name)
        )
    }
}

fn nanos(span: Duration) -> String {
    Nanos::new(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)).to_string()
}

/// A share in per cent, with two digits.
fn permille(part: u128, whole: u128) -> String {
    let hundredths = (part * 10_000).checked_div(whole).unwrap_or(0);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> RecordOutcome {
        RecordOutcome {
            with: "tracefs",
            length: Duration::from_secs(10),
            cpus: 4,
            events: 1_000_000,
            lost: 3,
            file_bytes: 71_234_567,
            recorder: Duration::from_millis(120),
            event_cost: Some(Duration::from_nanos(300)),
            switch_cost: Some(Duration::from_nanos(1740)),
            threads: 212,
        }
    }

    #[test]
    fn people_see_what_it_cost_and_what_to_do_next() {
        let mut text = Vec::new();
        let path = Path::new("a\u{1b}.dat");
        outcome().write(Format::Human, path, &mut text).unwrap();
        let want = "\
a\\u001b.dat                  total
time                        10.0 s
CPUs                             4
events                     1000000
events lost                      3
size                         71 MB
threads looked at              212
CPU time of the recorder    120 ms
... of one CPU              1.20 %
CPU time of an event        300 ns
all of it, of the machine   1.05 %
a switch with its wakeup   1.74 us

Simulate it: runslice sim eevdf fifo mlfq --from 'a\\u001b.dat'
";
        assert_eq!(String::from_utf8(text).unwrap(), want);
    }

    #[test]
    fn programs_get_the_same_and_null_for_what_was_not_measured() {
        let mut text = Vec::new();
        let outcome = RecordOutcome {
            event_cost: None,
            ..outcome()
        };
        outcome
            .write(Format::Json, Path::new("t.dat"), &mut text)
            .unwrap();
        let read: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(read["runslice_record"], 1);
        assert_eq!(
            (&read["events"], &read["lost"]),
            (&1_000_000.into(), &3.into())
        );
        assert_eq!(read["switch_ns"], 1740);
        assert!(read["event_ns"].is_null() && read["share_millionths"].is_null());
    }
}
