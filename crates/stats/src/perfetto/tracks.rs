//! Tracks for what the kernel has no event for: spans, deadlines, levels, counters.

use std::collections::{BTreeMap, BTreeSet};

use model::{CpuId, Event, EventKind, Header, SimTime, TaskId};

use super::decisions::Decisions;
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
            Self::Counter(_) | Self::Priority(_) | Self::Level(_) | Self::Queue(_)
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
    pub decisions: &'a Decisions,
}

fn descriptor(of: Track, names: Described<'_>) -> Message {
    let descriptor = Message::new().number(track::UUID, of.uuid());
    if let Track::Task(task) = of
        && let Some(named) = names.tasks.get(task.index())
    {
        let owner = Message::new()
            .number(track::THREAD_PID, named.process)
            .number(track::THREAD_TID, thread(task))
            .text(track::THREAD_NAME, &named.name);
        return descriptor.message(track::THREAD, &owner);
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
    let unit = Message::new().number(track::COUNTER_UNIT, track::UNIT_COUNT);
    descriptor.message(track::COUNTER, &unit)
}

fn on(track: Track, sort: u64) -> Message {
    Message::new()
        .number(event::TYPE, sort)
        .number(event::TRACK_UUID, track.uuid())
}

/// A slice begins.
pub fn begin(track: Track, name: &str) -> Message {
    on(track, event::SLICE_BEGIN).text(event::NAME, name)
}

/// The innermost slice ends.
pub fn end(track: Track) -> Message {
    on(track, event::SLICE_END)
}

/// Something happens, with a number that belongs to it.
pub fn instant(track: Track, name: &str, number: Option<(&str, u64)>) -> Message {
    let instant = on(track, event::INSTANT).text(event::NAME, name);
    let Some((name, value)) = number else {
        return instant;
    };
    let annotation = Message::new()
        .number(event::ANNOTATION_UINT_VALUE, value)
        .text(event::ANNOTATION_NAME, name);
    instant.message(event::DEBUG_ANNOTATIONS, &annotation)
}

/// A counter's new value.
pub fn counter(track: Track, value: u64) -> Message {
    on(track, event::COUNTER).number(event::COUNTER_VALUE, value)
}

/// `instant` with a text that belongs to it.
pub fn with_text(instant: Message, name: &str, text: &str) -> Message {
    let annotation = Message::new()
        .text(event::ANNOTATION_STRING_VALUE, text)
        .text(event::ANNOTATION_NAME, name);
    instant.message(event::DEBUG_ANNOTATIONS, &annotation)
}

/// What an event writes on tracks.
pub fn events(event: &Event, header: &Header, tracks: &mut Tracks) -> Vec<(Track, Message)> {
    let own = Track::Task(event.task);
    let at = u32::try_from(event.a).unwrap_or(u32::MAX);
    let name = |names: &[String]| names.get(at as usize).cloned().unwrap_or_default();
    match event.kind {
        EventKind::SpanBegin => {
            let track = Track::Span(event.task, at);
            vec![(track, begin(track, &name(&header.spans)))]
        }
        EventKind::SpanEnd => {
            let track = Track::Span(event.task, at);
            vec![(track, end(track))]
        }
        EventKind::Deadline if event.b > 0 => {
            let (name, word) = deadline(header, at);
            let label = format!("{name}: {word}");
            vec![(own, instant(own, &label, Some(("late_ns", event.b))))]
        }
        EventKind::Skipped => {
            let label = format!("{}: skipped", deadline(header, at).0);
            vec![(own, instant(own, &label, Some(("periods", event.b))))]
        }
        EventKind::Phase => phase(event.task, &name(&header.phases), tracks),
        EventKind::Count => {
            let track = Track::Counter(at);
            let sum = tracks.values.entry(track).or_default();
            *sum = sum.saturating_add(event.b);
            vec![(track, counter(track, *sum))]
        }
        EventKind::Report => {
            let priority = (Track::Priority(event.task), event.a & 0xffff_ffff);
            let level = (Track::Level(event.task), event.a >> 32);
            changed(&[priority, level], tracks)
        }
        EventKind::Kick => {
            let track = Track::Policy(CpuId(event.b as u16));
            let label = format!("kick CPU {}", event.cpu);
            vec![(track, instant(track, &label, Some(("flags", event.a))))]
        }
        EventKind::Change => {
            const WHAT: [&str; 3] = ["nice", "affinity", "class"];
            let what = WHAT.get(at as usize).copied().unwrap_or("change");
            let label = format!("{what} {}", event.b.cast_signed());
            vec![(own, instant(own, &label, None))]
        }
        _ => Vec::new(),
    }
}

fn deadline(header: &Header, at: u32) -> (&str, &str) {
    let named = header.deadlines.get(at as usize);
    named.map_or(("", ""), |(name, word)| (name, word))
}

fn phase(task: TaskId, name: &str, tracks: &mut Tracks) -> Vec<(Track, Message)> {
    let track = Track::Phase(task);
    let first = tracks.in_phase.insert(task);
    let before = (!first).then(|| (track, end(track)));
    before
        .into_iter()
        .chain([(track, begin(track, name))])
        .collect()
}

/// Counters whose value is not the last one.
fn changed(counters: &[(Track, u64)], tracks: &mut Tracks) -> Vec<(Track, Message)> {
    let new = counters
        .iter()
        .filter(|(track, value)| tracks.values.insert(*track, *value) != Some(*value));
    new.map(|&(track, value)| (track, counter(track, value)))
        .collect()
}
