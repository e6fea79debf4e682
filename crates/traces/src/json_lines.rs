//! Writes events as JSON lines, the format of docs/events.md.

mod line;

use std::io;
use std::io::Write;

use model::{
    EVENT_FORMAT_VERSION, Event, EventMask, Exit, ExitKind, Header, MachineSpec, SimTime, Sink,
    Text,
};
use serde::{Deserialize, Serialize};

use crate::sinks::{FULL, Output};
use line::{LONGEST, Lines};

/// Writes a run as JSON lines into a writer, in constant memory.
///
/// The writer gets one piece for each batch of events; it need not buffer. The first error of the
/// writer ends the writing, and [`JsonLines::close`] returns it.
#[derive(Debug)]
pub struct JsonLines<W> {
    output: Output<W>,
    kinds: EventMask,
    lines: Lines,
    /// Lines that are not written yet, and room for one more.
    room: Vec<u8>,
}

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeaderLine {
    pub runslice_events: u32,
    pub policy: String,
    pub workload: String,
    pub machine: MachineSpec,
    pub seed: u64,
    pub duration_ns: Option<u64>,
    pub groups: Vec<GroupEntry>,
    pub spans: Vec<String>,
    pub deadlines: Vec<DeadlineEntry>,
    pub counters: Vec<String>,
    pub phases: Vec<String>,
}

/// A line without a time: what events need beside their records.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "text", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum TextLine {
    Place {
        place: u32,
        function: String,
        file: Option<String>,
        line: u32,
    },
    Exit {
        kind: u32,
        code: i64,
        message: String,
        time_ns: u64,
        fault: Option<String>,
        /// Whose end it is; without it the root's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scheduler: Option<u32>,
    },
    Scheduler {
        scheduler: u32,
        policy: String,
        cgroup: String,
    },
}

impl From<&Text> for TextLine {
    fn from(text: &Text) -> Self {
        match text.clone() {
            Text::Place {
                place,
                function,
                file,
                line,
            } => Self::Place {
                place,
                function,
                file,
                line,
            },
            Text::Exit(exit) => Self::exit(exit, None),
            Text::SubExit { scheduler, exit } => Self::exit(exit, Some(scheduler)),
            Text::Scheduler {
                scheduler,
                policy,
                cgroup,
            } => Self::Scheduler {
                scheduler,
                policy,
                cgroup,
            },
        }
    }
}

impl TextLine {
    fn exit(exit: Exit, scheduler: Option<u32>) -> Self {
        Self::Exit {
            kind: exit.kind as u32,
            code: exit.code,
            message: exit.message,
            time_ns: exit.time.as_nanos(),
            fault: exit.fault,
            scheduler,
        }
    }

    /// The text, if its exit has a kind that exists.
    pub(crate) fn text(self) -> Option<Text> {
        Some(match self {
            Self::Place {
                place,
                function,
                file,
                line,
            } => Text::Place {
                place,
                function,
                file,
                line,
            },
            Self::Exit {
                kind,
                code,
                message,
                time_ns,
                fault,
                scheduler,
            } => {
                let exit = Exit {
                    kind: ExitKind::of(kind)?,
                    code,
                    message,
                    time: SimTime::from_nanos(time_ns),
                    fault,
                };
                match scheduler {
                    None => Text::Exit(exit),
                    Some(scheduler) => Text::SubExit { scheduler, exit },
                }
            }
            Self::Scheduler {
                scheduler,
                policy,
                cgroup,
            } => Text::Scheduler {
                scheduler,
                policy,
                cgroup,
            },
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupEntry {
    pub name: String,
    pub nice: i8,
    pub count: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeadlineEntry {
    pub name: String,
    pub missed: String,
}

impl From<&Header> for HeaderLine {
    fn from(header: &Header) -> Self {
        let groups = header.groups.iter().map(|group| GroupEntry {
            name: group.name.clone(),
            nice: group.nice,
            count: group.count,
        });
        let deadlines = header.deadlines.iter().map(|(name, missed)| DeadlineEntry {
            name: name.clone(),
            missed: missed.clone(),
        });
        Self {
            runslice_events: EVENT_FORMAT_VERSION,
            policy: header.policy.clone(),
            workload: header.workload.clone(),
            machine: header.machine.clone(),
            seed: header.seed,
            duration_ns: header.duration.map(model::Nanos::get),
            groups: groups.collect(),
            spans: header.spans.clone(),
            deadlines: deadlines.collect(),
            counters: header.counters.clone(),
            phases: header.phases.clone(),
        }
    }
}

impl<W: Write> JsonLines<W> {
    /// Writes into `writer`.
    pub fn new(writer: W) -> Self {
        Self {
            output: Output::new(writer),
            kinds: EventMask::ALL,
            lines: Lines::new(),
            room: Vec::new(),
        }
    }

    /// A writer that writes decisions, too.
    pub fn with_decisions(writer: W) -> Self {
        let mut lines = Self::new(writer);
        lines.kinds = lines.kinds.union(EventMask::DECISIONS);
        lines
    }

    fn has_decisions(&self) -> bool {
        self.kinds.has(model::EventKind::Insert)
    }

    /// The writer, flushed, after the run.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn close(self) -> io::Result<W> {
        self.output.close()
    }
}

impl<W: Write> Sink for JsonLines<W> {
    fn wants(&self) -> EventMask {
        self.output.wants(self.kinds)
    }

    fn begin(&mut self, header: &Header) {
        let line = serde_json::to_vec(&HeaderLine::from(header));
        self.output
            .buffer()
            .extend(line.expect("a header has only strings and numbers"));
        self.output.buffer().push(b'\n');
        self.output.write();
    }

    fn events(&mut self, events: &[Event]) {
        self.room.resize(FULL + LONGEST, 0);
        let mut used = 0;
        for event in events {
            if !self.kinds.has(event.kind) {
                continue;
            }
            let to = self.room[used..].first_chunk_mut();
            used += self
                .lines
                .write(event, to.expect("a full page is given away"));
            if used >= FULL {
                self.output.give(&self.room[..used]);
                used = 0;
            }
        }
        self.output.give(&self.room[..used]);
    }

    fn text(&mut self, text: &Text) {
        if self.has_decisions() {
            let line = serde_json::to_vec(&TextLine::from(text));
            let line = line.expect("a text has only strings and numbers");
            self.output.buffer().extend(line);
            self.output.buffer().push(b'\n');
        }
    }

    fn finish(&mut self, end: SimTime) {
        let line = format!("{{\"time_ns\":{},\"event\":\"end\"}}\n", end.as_nanos());
        self.output.buffer().extend_from_slice(line.as_bytes());
        self.output.write();
    }
}

#[cfg(test)]
mod tests;
