//! Tracks for what the kernel has no event for: spans, deadlines, levels, counters.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use model::{Change, CpuId, Event, Header, SimTime, TaskId, What};

use super::decisions::DecisionNames;
use super::fields::{event, track};
use super::{Named, thread};
use crate::protobuf::Message;

/// A line of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Track {
    /// The machine as a whole.
    Machine,
    /// Interrupts and switches of a CPU.
    Kernel(CpuId),
    /// Calls and kicks of the policy on a CPU.
    Policy(CpuId),
    /// A counter of the workload.
    Counter(u32),
    /// A task; the parent of the following.
    Task(TaskId),
    /// The phases of a task.
    Phase(TaskId),
    /// The priority that the policy gives a task.
    Priority(TaskId),
    /// The level on which the policy has a task.
    Level(TaskId),
    /// A span of a task.
    Span(TaskId, u32),
    /// How many tasks are in a queue.
    Queue(u32),
    /// Decisions on a CPU.
    Decisions(CpuId),
    /// The frequency of the CPUs of one clock, by the first of them.
    Frequency(CpuId),
}

impl Track {
    /// A number of its own: the sort, an index, the task or CPU.
    fn uuid(self) -> u64 {
        let (sort, index, owner) = match self {
            Self::Machine => (1, 0, 0),
            Self::Kernel(cpu) => (2, 0, u32::from(cpu.0)),
            Self::Policy(cpu) => (3, 0, u32::from(cpu.0)),
            Self::Counter(counter) => (4, 0, counter),
            Self::Task(task) => (5, 0, task.0),
            Self::Phase(task) => (6, 0, task.0),
            Self::Priority(task) => (7, 0, task.0),
            Self::Level(task) => (8, 0, task.0),
            Self::Span(task, span) => (9, u64::from(span), task.0),
            Self::Queue(queue) => (10, 0, queue),
            Self::Decisions(cpu) => (11, 0, u32::from(cpu.0)),
            Self::Frequency(cpu) => (12, 0, u32::from(cpu.0)),
        };
        sort << 56 | (index & 0xff_ffff) << 32 | u64::from(owner)
    }

    /// The track above it.
    fn parent(self) -> Option<Self> {
        match self {
            Self::Phase(task) | Self::Priority(task) | Self::Level(task) | Self::Span(task, _)
                if task != TaskId::NONE =>
            {
                Some(Self::Task(task))
            }
            _ => None,
        }
    }

    fn is_counter(self) -> bool {
        matches!(
            self,
            Self::Counter(_)
                | Self::Priority(_)
                | Self::Level(_)
                | Self::Queue(_)
                | Self::Frequency(_)
        )
    }

    fn name(self, header: &Header) -> String {
        let named = |names: &[String], at: u32| names.get(at as usize).cloned().unwrap_or_default();
        match self {
            Self::Machine => "run".to_owned(),
            Self::Kernel(cpu) => format!("kernel, CPU {cpu}"),
            Self::Policy(cpu) => format!("policy, CPU {cpu}"),
            Self::Counter(counter) => named(&header.counters, counter),
            Self::Task(_) => "no task".to_owned(),
            Self::Phase(_) => "phase".to_owned(),
            Self::Priority(_) => "priority".to_owned(),
            Self::Level(_) => "level".to_owned(),
            Self::Span(_, span) => named(&header.spans, span),
            Self::Queue(queue) => format!("queue number {queue}"),
            Self::Decisions(cpu) => format!("decisions, CPU {cpu}"),
            Self::Frequency(cpu) => format!("frequency in kHz, CPU {cpu}"),
        }
    }
}

/// What must be remembered of tracks.
#[derive(Debug)]
pub struct Tracks {
    known: BTreeSet<Track>,
    /// Last value of each counter.
    values: BTreeMap<Track, u64>,
    in_phase: BTreeSet<TaskId>,
    /// Until when the kernel's track of a CPU is taken.
    kernel_until: BTreeMap<CpuId, SimTime>,
}

impl Tracks {
    pub const fn new() -> Self {
        Self {
            known: BTreeSet::new(),
            values: BTreeMap::new(),
            in_phase: BTreeSet::new(),
            kernel_until: BTreeMap::new(),
        }
    }

    pub fn is_known(&self, track: Track) -> bool {
        self.known.contains(&track)
    }

    /// The descriptors that must be written before the first event of `track`, parents first.
    pub fn describe(&mut self, track: Track, of: Described<'_>) -> Vec<Message> {
        let mut descriptors = Vec::new();
        for track in track.parent().into_iter().chain([track]) {
            if self.known.insert(track) {
                descriptors.push(descriptor(track, of));
            }
        }
        descriptors
    }

    /// A counter's value, if it is not the last one.
    fn changed<'a>(&mut self, (track, value): (Track, u64)) -> Option<Mark<'a>> {
        let is_new = self.values.insert(track, value) != Some(value);
        is_new.then(|| Mark::counter(track, value))
    }

    /// Begin and end of `span` nanoseconds on the kernel's track of a CPU.
    pub fn kernel_slice(&mut self, cpu: CpuId, now: SimTime, span: u64) -> (SimTime, SimTime) {
        let until = self.kernel_until.entry(cpu).or_default();
        let begin = now.max(*until);
        *until = SimTime::from_nanos(begin.as_nanos().saturating_add(span));
        (begin, *until)
    }
}

/// Where the names of tracks come from.
#[derive(Clone, Copy)]
pub struct Described<'a> {
    pub header: &'a Header,
    pub tasks: &'a [Named],
    pub decisions: &'a DecisionNames,
}

fn descriptor(of: Track, names: Described<'_>) -> Message {
    let descriptor = Message::new().number(track::UUID, of.uuid());
    if let Track::Task(task) = of
        && let Some(named) = names.tasks.get(task.index())
    {
        return descriptor.message(track::THREAD, |owner| {
            owner
                .number(track::THREAD_PID, named.process)
                .number(track::THREAD_TID, thread(task))
                .text(track::THREAD_NAME, &named.name)
        });
    }
    let name = match of {
        Track::Queue(index) => names.decisions.queue_name(index),
        other => other.name(names.header),
    };
    let descriptor = descriptor.text(track::NAME, &name);
    let descriptor = match of.parent() {
        Some(parent) => descriptor.number(track::PARENT_UUID, parent.uuid()),
        None => descriptor,
    };
    if !of.is_counter() {
        return descriptor;
    }
    descriptor.message(track::COUNTER, |unit| {
        unit.number(track::COUNTER_UNIT, track::UNIT_COUNT)
    })
}

/// What happens on a track.
#[derive(Debug)]
pub struct Mark<'a> {
    pub track: Track,
    sort: u64,
    name: Option<Cow<'a, str>>,
    /// A number that belongs to it, and what that is called.
    number: Option<(&'static str, u64)>,
    /// A text that belongs to it, and what that is called.
    text: Option<(&'static str, &'a str)>,
    /// A counter's new value.
    value: Option<u64>,
}

impl<'a> Mark<'a> {
    const fn on(track: Track, sort: u64) -> Self {
        Self {
            track,
            sort,
            name: None,
            number: None,
            text: None,
            value: None,
        }
    }

    /// A slice begins.
    pub fn begin(track: Track, name: impl Into<Cow<'a, str>>) -> Self {
        Self {
            name: Some(name.into()),
            ..Self::on(track, event::SLICE_BEGIN)
        }
    }

    /// The innermost slice ends.
    pub const fn end(track: Track) -> Self {
        Self::on(track, event::SLICE_END)
    }

    /// Something happens, with a number that belongs to it.
    pub fn instant(
        track: Track,
        name: impl Into<Cow<'a, str>>,
        number: Option<(&'static str, u64)>,
    ) -> Self {
        Self {
            name: Some(name.into()),
            number,
            ..Self::on(track, event::INSTANT)
        }
    }

    /// A counter's new value.
    pub fn counter(track: Track, value: u64) -> Self {
        Self {
            value: Some(value),
            ..Self::on(track, event::COUNTER)
        }
    }

    /// The same with a text that belongs to it.
    pub const fn with_text(mut self, name: &'static str, text: &'a str) -> Self {
        self.text = Some((name, text));
        self
    }

    /// Appends its fields.
    pub fn write(&self, to: Message) -> Message {
        let mut to = to
            .number(event::TYPE, self.sort)
            .number(event::TRACK_UUID, self.track.uuid());
        if let Some(name) = &self.name {
            to = to.text(event::NAME, name);
        }
        if let Some((name, value)) = self.number {
            to = to.message(event::DEBUG_ANNOTATIONS, |annotation| {
                annotation
                    .number(event::ANNOTATION_UINT_VALUE, value)
                    .text(event::ANNOTATION_NAME, name)
            });
        }
        if let Some((name, text)) = self.text {
            to = to.message(event::DEBUG_ANNOTATIONS, |annotation| {
                annotation
                    .text(event::ANNOTATION_STRING_VALUE, text)
                    .text(event::ANNOTATION_NAME, name)
            });
        }
        match self.value {
            Some(value) => to.number(event::COUNTER_VALUE, value),
            None => to,
        }
    }
}

/// What an event writes on tracks.
pub fn events<'a>(event: &Event, header: &'a Header, tracks: &mut Tracks) -> [Option<Mark<'a>>; 2] {
    let own = Track::Task(event.task);
    let name = |names: &'a [String], at: u32| names.get(at as usize).map_or("", String::as_str);
    let one = |mark| [Some(mark), None];
    match event.what() {
        What::SpanBegin { span } => one(Mark::begin(
            Track::Span(event.task, span),
            name(&header.spans, span),
        )),
        What::SpanEnd { span, .. } => one(Mark::end(Track::Span(event.task, span))),
        What::Deadline { deadline: at, late } if !late.is_zero() => {
            let (name, word) = deadline(header, at);
            let label = format!("{name}: {word}");
            one(Mark::instant(own, label, Some(("late_ns", late.get()))))
        }
        What::Skipped {
            deadline: at,
            periods,
        } => {
            let label = format!("{}: skipped", deadline(header, at).0);
            one(Mark::instant(own, label, Some(("periods", periods))))
        }
        What::Phase { phase } => {
            let track = Track::Phase(event.task);
            let is_first = tracks.in_phase.insert(event.task);
            let before = (!is_first).then(|| Mark::end(track));
            [
                before,
                Some(Mark::begin(track, name(&header.phases, phase))),
            ]
        }
        What::Count { counter, by } => {
            let track = Track::Counter(counter);
            let sum = tracks.values.entry(track).or_default();
            *sum = sum.saturating_add(by);
            one(Mark::counter(track, *sum))
        }
        What::Frequency { khz, .. } => one(Mark::counter(Track::Frequency(event.cpu), khz)),
        What::Report {
            priority, level, ..
        } => {
            let priority = (Track::Priority(event.task), u64::from(priority));
            let level = (Track::Level(event.task), u64::from(level));
            [tracks.changed(priority), tracks.changed(level)]
        }
        What::Kick { flags, caller } => {
            let track = Track::Policy(caller);
            let label = format!("kick CPU {}", event.cpu);
            one(Mark::instant(track, label, Some(("flags", flags))))
        }
        What::Change(change) => {
            let label = match change {
                Change::Nice(nice) => format!("nice {nice}"),
                Change::Affinity(cpus) => format!("affinity {}", cpus.cast_signed()),
                Change::Class { class, .. } => format!("class {}", class.number().cast_signed()),
            };
            one(Mark::instant(own, label, None))
        }
        _ => [None, None],
    }
}

fn deadline(header: &Header, at: u32) -> (&str, &str) {
    let named = header.deadlines.get(at as usize);
    named.map_or(("", ""), |(name, word)| (name, word))
}
