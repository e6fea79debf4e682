//! Reads what `JsonLines` wrote. The only reader of the format.

use std::io::{self, BufRead, Read as _};

use model::plain::shown;
use model::{
    Advice, CPUS_MAX, CpuId, EVENT_FORMAT_VERSIONS, Event, EventWords, Header, NOWHERE, Nanos,
    SimTime, Sink, TaskGroup, TaskId, Text,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::json_lines::{HeaderLine, TextLine};
use crate::words::{self, Names, Word, WordForm};

/// Longest line that is read, in bytes.
const LINE_MAX: u64 = 16 << 20;

/// Latest time that is read: 2^53 ns, about 104 days, up to which every JSON reader is exact.
/// Sums over 1024 CPUs then fit 64 bits.
const TIME_MAX: u64 = 1 << 53;

/// Most names of one kind that a header has: as many as tasks of a workload.
const NAMES_MAX: usize = 100_000;

/// How many events a sink gets at once.
const BATCH: usize = 1024;

/// Why a file of events could not be read. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The last line has no end: whoever wrote the file was stopped, or the disk was full.
    #[error("cut off at line {line}")]
    Torn {
        /// The line.
        line: u64,
    },
    /// The source failed.
    #[error("line {line}: {source}")]
    Io {
        /// The line that was being read.
        line: u64,
        /// What the source said.
        source: io::Error,
    },
    /// The first line is not a header.
    #[error("not a file of events: its first line is no object with `runslice_events`")]
    NotEvents,
    /// The file has another version of the format.
    #[error(
        "the events have format version {found}, and this runslice reads {}, {} and {}",
        .expected[0], .expected[1], .expected[2]
    )]
    Version {
        /// The file's version.
        found: u64,
        /// The versions that are read.
        expected: [u32; 3],
    },
    /// A line is longer than any that is written.
    #[error("line {line}: longer than 16 MiB")]
    TooLong {
        /// The line.
        line: u64,
    },
    /// A line is not JSON, or the header has not the fields of a header.
    #[error("line {line}, column {column}: {problem}")]
    Json {
        /// The line.
        line: u64,
        /// The column, counted in bytes from 1.
        column: usize,
        /// What the parser said.
        problem: String,
    },
    /// An event has a name that this version does not have.
    #[error("line {line}: there is no event `{name}`")]
    UnknownEvent {
        /// The line.
        line: u64,
        /// The name.
        name: String,
    },
    /// An event has a field that its kind does not have.
    #[error("line {line}: `{event}` has no field `{field}`")]
    UnknownField {
        /// The line.
        line: u64,
        /// The event's name.
        event: &'static str,
        /// The field.
        field: String,
    },
    /// An event lacks a field, or a field has a wrong value.
    #[error("line {line}: `{field}` is {found}, and must be {expected}")]
    Field {
        /// The line.
        line: u64,
        /// The field.
        field: &'static str,
        /// Its value, as JSON; `missing` if there is none.
        found: String,
        /// What it must be.
        expected: String,
    },
    /// The file ends before the run does: whoever wrote it was stopped.
    #[error("the file was cut off after line {line}: it has no `end`")]
    CutOff {
        /// The last line.
        line: u64,
    },
    /// Something follows the end.
    #[error("line {line}: the run is over, and nothing may follow `end`")]
    AfterEnd {
        /// The line.
        line: u64,
    },
}

impl Advice for ReadError {
    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::NotEvents => "`sim --events FILE` writes one",
            Self::Version { .. } => "write them again with this runslice",
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

/// Reads a file of events, one event at a time, in constant memory.
///
/// It checks everything that a sink relies on: versions, names, ranges of numbers, the order of
/// time. Whether the events are consistent, `stats::Conservation` can tell. After
/// an error the iterator ends.
#[derive(Debug)]
pub struct EventReader<R> {
    source: R,
    header: Header,
    line: u64,
    now: u64,
    /// How many tasks have come to be.
    tasks: u64,
    /// Those read and not taken yet.
    texts: Vec<Text>,
    end: Option<SimTime>,
    failed: bool,
}

impl<R: BufRead> EventReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If the source fails, or begins with anything but a header of this version.
    pub fn new(mut source: R) -> Result<Self, ReadError> {
        let text = next_line(&mut source, 1)?.ok_or(ReadError::NotEvents)?;
        let header = header(&text)?;
        Ok(Self {
            source,
            header,
            line: 1,
            now: 0,
            tasks: 0,
            texts: Vec::new(),
            end: None,
            failed: false,
        })
    }

    /// The names that the events speak of.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Texts that were read since the last call. All of them come before the first event that needs
    /// them.
    pub fn take_texts(&mut self) -> Vec<Text> {
        std::mem::take(&mut self.texts)
    }

    /// The last moment of the run. `None` until the events were read to their end.
    pub const fn end(&self) -> Option<SimTime> {
        self.end
    }

    /// The next event, or `None` at the end.
    fn read(&mut self) -> Result<Option<Event>, ReadError> {
        loop {
            let Some(object) = self.object()? else {
                return match self.end {
                    Some(_) => Ok(None),
                    None => Err(ReadError::CutOff { line: self.line }),
                };
            };
            let line = self.line;
            if object.contains_key("text") {
                self.text(object)?;
                continue;
            }
            let mut fields = Fields { line, object };
            let time = fields.number("time_ns", TIME_MAX)?;
            if time < self.now {
                let expected = format!("at least {}, the time of the line before", self.now);
                return Err(fields.wrong("time_ns", &time.into(), expected));
            }
            self.now = time;
            return self.event(SimTime::from_nanos(time), fields);
        }
    }

    /// The object of the next line, or `None` at the end of the source.
    fn object(&mut self) -> Result<Option<Map<String, Value>>, ReadError> {
        let Some(text) = next_line(&mut self.source, self.line + 1)? else {
            return Ok(None);
        };
        self.line += 1;
        let line = self.line;
        if self.end.is_some() {
            return Err(ReadError::AfterEnd { line });
        }
        let object = serde_json::from_str(text.trim_end()).map_err(|error| {
            if text.ends_with('\n') {
                json(line, &error)
            } else {
                ReadError::Torn { line }
            }
        });
        object.map(Some)
    }

    fn text(&mut self, object: Map<String, Value>) -> Result<(), ReadError> {
        let line = self.line;
        let text = serde_json::from_value::<TextLine>(object.into());
        let text = text.map_err(|error| json(line, &error))?;
        let unknown = || ReadError::Field {
            line,
            field: "kind",
            found: "another number".to_owned(),
            expected: "an exit kind of the kernel".to_owned(),
        };
        self.texts.push(text.text().ok_or_else(unknown)?);
        Ok(())
    }

    fn event(&mut self, time: SimTime, mut fields: Fields) -> Result<Option<Event>, ReadError> {
        let name = fields.take("event").as_str().unwrap_or_default().to_owned();
        if name == "end" {
            fields.none_left("end")?;
            self.end = Some(time);
            return self.read();
        }
        let kind = words::KINDS.iter().find(|kind| kind.1 == name);
        let line = self.line;
        let &(kind, name, words) = kind.ok_or(ReadError::UnknownEvent { line, name })?;
        let cpu = self.cpu(&mut fields, "cpu")?;
        let is_new = kind == model::EventKind::New;
        // A task that is born must be the next one; all others must have been born.
        let task = self.task(&mut fields, "task", is_new)?;
        if task == TaskId::NONE && words::needs_task(kind) {
            return Err(fields.wrong("task", &Value::Null, "a task".to_owned()));
        }
        let mut numbers = EventWords::default();
        for word in words {
            let value = self.word(&mut fields, word)?;
            word.part.set(&mut numbers, value);
        }
        fields.none_left(name)?;
        let event = Event::from_words((time, cpu, task), kind, numbers);
        self.tasks += u64::from(is_new);
        let event = event.ok_or_else(|| ReadError::Field {
            line,
            field: "event",
            found: format!("{name} with the words {numbers:?}"),
            expected: "words that mean something together".to_owned(),
        });
        event.map(Some)
    }

    fn cpu(&self, fields: &mut Fields, field: &'static str) -> Result<CpuId, ReadError> {
        let last = self.header.machine.cpus - 1;
        let cpu = fields.number(field, last.into())?;
        Ok(CpuId(
            u16::try_from(cpu).expect("a CPU of the machine has 16 bits"),
        ))
    }

    fn task(
        &self,
        fields: &mut Fields,
        field: &'static str,
        is_new: bool,
    ) -> Result<TaskId, ReadError> {
        let value = fields.take(field);
        let known = |task: &u64| {
            if is_new {
                *task == self.tasks
            } else {
                *task < self.tasks
            }
        };
        match value.as_u64().filter(known).map(u32::try_from) {
            Some(Ok(task)) => Ok(TaskId(task)),
            None if value.is_null() && !is_new => Ok(TaskId::NONE),
            _ if is_new => Err(fields.wrong(field, &value, format!("{}", self.tasks))),
            _ => Err(fields.wrong(field, &value, format!("null or under {}", self.tasks))),
        }
    }

    fn word(&self, fields: &mut Fields, word: &Word) -> Result<u64, ReadError> {
        let Word { name, part, form } = *word;
        match form {
            WordForm::Number => fields.number(name, part.max()),
            WordForm::Cpu => self.cpu(fields, name).map(|cpu| cpu.0.into()),
            WordForm::Maybe => match fields.object.get(name) {
                Some(Value::Null) => {
                    fields.take(name);
                    Ok(NOWHERE.into())
                }
                _ => fields.number(name, part.max()),
            },
            WordForm::Flag if !fields.object.contains_key(name) => Ok(0),
            WordForm::Flag => fields.number(name, 1),
            WordForm::Task => self.task(fields, name, false).map(|task| task.0.into()),
            WordForm::Signed => {
                let value = fields.take(name);
                let number = value.as_i64().map(i64::cast_unsigned);
                number.ok_or_else(|| fields.wrong(name, &value, "a whole number".to_owned()))
            }
            WordForm::Name(names) => {
                let value = fields.take(name);
                let at = names.iter().position(|name| value.as_str() == Some(name));
                let at = at.map(|at| at as u64);
                at.ok_or_else(|| fields.wrong(name, &value, format!("one of {}", names.join(", "))))
            }
            WordForm::Index(list) => {
                let value = fields.take(name);
                let length = self.names(list) as u64;
                let index = value.as_u64().filter(|index| *index < length);
                index.ok_or_else(|| fields.wrong(name, &value, format!("under {length}")))
            }
        }
    }

    /// How many names the header has in a list.
    const fn names(&self, list: Names) -> usize {
        match list {
            Names::Groups => self.header.groups.len(),
            Names::Spans => self.header.spans.len(),
            Names::Deadlines => self.header.deadlines.len(),
            Names::Counters => self.header.counters.len(),
            Names::Phases => self.header.phases.len(),
        }
    }
}

impl<R: BufRead> Iterator for EventReader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.end.is_some() {
            return None;
        }
        let read = self.read();
        self.failed = read.is_err();
        read.transpose()
    }
}

/// Sends a file of events to `sink`, as the machine that wrote them did.
///
/// # Errors
/// As [`EventReader`]. The sink has had what came before, but not its end.
pub fn replay(source: impl BufRead, sink: &mut dyn Sink) -> Result<(), ReadError> {
    let mut reader = EventReader::new(source)?;
    sink.begin(reader.header());
    let mut batch = Vec::with_capacity(BATCH);
    let mut failure = None;
    while failure.is_none() {
        let events = reader
            .by_ref()
            .take(BATCH)
            .map_while(|event| event.map_err(|error| failure = Some(error)).ok());
        batch.extend(events);
        for text in reader.take_texts() {
            sink.text(&text);
        }
        if batch.is_empty() {
            break;
        }
        sink.events(&batch);
        batch.clear();
    }
    if let Some(error) = failure {
        return Err(error);
    }
    if let Some(end) = reader.end() {
        sink.finish(end);
    }
    Ok(())
}

/// The fields of one line that were not taken yet.
struct Fields {
    line: u64,
    object: Map<String, Value>,
}

impl Fields {
    /// Takes a field; `null` stands for a missing one only until [`Self::wrong`] looks again.
    fn take(&mut self, field: &'static str) -> Value {
        self.object
            .remove(field)
            .unwrap_or_else(|| Value::String(MISSING.to_owned()))
    }

    fn number(&mut self, field: &'static str, max: u64) -> Result<u64, ReadError> {
        let value = self.take(field);
        let number = value.as_u64().filter(|number| *number <= max);
        number.ok_or_else(|| self.wrong(field, &value, format!("a whole number up to {max}")))
    }

    fn wrong(&self, field: &'static str, found: &Value, expected: String) -> ReadError {
        let missing = found.as_str() == Some(MISSING);
        let found = if missing {
            "missing".to_owned()
        } else {
            found.to_string()
        };
        ReadError::Field {
            line: self.line,
            field,
            found,
            expected,
        }
    }

    fn none_left(&self, event: &'static str) -> Result<(), ReadError> {
        let Some(field) = self.object.keys().next().cloned() else {
            return Ok(());
        };
        Err(ReadError::UnknownField {
            line: self.line,
            event,
            field,
        })
    }
}

/// Stands for a field that is not there; no name in the format looks like it.
const MISSING: &str = "\0";

/// The next line without its end, or `None` at the end of the source.
fn next_line(source: &mut impl BufRead, line: u64) -> Result<Option<String>, ReadError> {
    let mut text = String::new();
    let read = source.by_ref().take(LINE_MAX).read_line(&mut text);
    let read = read.map_err(|source| ReadError::Io { line, source })?;
    if read as u64 == LINE_MAX {
        return Err(ReadError::TooLong { line });
    }
    Ok((read > 0).then_some(text))
}

/// The parser's error, without its own count of lines: it saw one line only.
fn json(line: u64, error: &serde_json::Error) -> ReadError {
    let column = error.column();
    let text = error.to_string();
    let place = format!(" at line {} column {column}", error.line());
    let problem = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    ReadError::Json {
        line,
        column,
        problem,
    }
}

fn header(text: &str) -> Result<Header, ReadError> {
    /// Skips what follows: as a value, a header has twenty times its length.
    #[derive(Deserialize)]
    struct Version {
        runslice_events: u64,
    }
    if !text.trim_start().starts_with('{') {
        return Err(ReadError::NotEvents);
    }
    // The version comes first: another version may have other fields.
    let version: Version = serde_json::from_str(text).map_err(|_| ReadError::NotEvents)?;
    let found = version.runslice_events;
    let expected = EVENT_FORMAT_VERSIONS;
    if !expected.map(u64::from).contains(&found) {
        return Err(ReadError::Version { found, expected });
    }
    let line: HeaderLine =
        serde_json::from_str(text.trim_end()).map_err(|error| json(1, &error))?;
    if !(1..=CPUS_MAX).contains(&line.machine.cpus) {
        let found = line.machine.cpus.to_string();
        let expected = format!("from 1 to {CPUS_MAX}");
        return Err(ReadError::Field {
            line: 1,
            field: "cpus",
            found,
            expected,
        });
    }
    for (field, names) in [
        ("groups", line.groups.len()),
        ("spans", line.spans.len()),
        ("deadlines", line.deadlines.len()),
        ("counters", line.counters.len()),
        ("phases", line.phases.len()),
    ] {
        if names > NAMES_MAX {
            return Err(ReadError::Field {
                line: 1,
                field,
                found: format!("a list of {names}"),
                expected: format!("at most {NAMES_MAX}"),
            });
        }
    }
    Ok(Header::from(line))
}

impl From<HeaderLine> for Header {
    /// Names are shown as they are read: one with the end of a line would begin a row of every
    /// table.
    fn from(line: HeaderLine) -> Self {
        let all = |names: Vec<String>| names.iter().map(shown).collect::<Vec<_>>();
        let groups = line.groups.into_iter();
        let deadlines = line.deadlines.into_iter();
        Self {
            policy: shown(line.policy),
            workload: shown(line.workload),
            machine: line.machine,
            seed: line.seed,
            duration: line.duration_ns.map(Nanos::new),
            groups: groups
                .map(|group| TaskGroup {
                    name: shown(group.name),
                    nice: group.nice,
                    count: group.count,
                })
                .collect(),
            spans: all(line.spans),
            deadlines: deadlines
                .map(|entry| (shown(entry.name), entry.missed))
                .collect(),
            counters: all(line.counters),
            phases: all(line.phases),
        }
    }
}
