//! Writes a run for ui.perfetto.dev and for `trace_processor`.

mod decisions;
pub(crate) mod fields;
mod packets;
#[cfg(test)]
mod tests;
mod tracks;

use std::io;
use std::io::Write;

use model::{
    Change, CpuId, Event, EventKind, EventMask, Header, PrevState, SimTime, Sink, TaskId, Text,
    Wakeup, What,
};

use crate::names::task_name;
use crate::protobuf::Message;
use decisions::DecisionNames;
use fields::{clocks, ftrace, packet, sched, switch, tree};
use packets::Packets;
use tracks::{Described, Mark, Track, Tracks};

/// The kernel's static priority of nice 0.
const PRIO_NICE_0: i64 = 120;

/// Writes a run as a Perfetto trace into a writer. docs/events.md has the mapping.
///
/// Memory grows with the number of tasks, not of events. The first error of the writer ends the
/// writing, and [`Perfetto::close`] returns it.
#[derive(Debug)]
pub struct Perfetto<W> {
    packets: Packets<W>,
    /// Set when decisions are written.
    decides: bool,
    decisions: DecisionNames,
    header: Option<Header>,
    tasks: Vec<Named>,
    /// The idle task of each CPU that was idle.
    idle: Vec<Named>,
    /// The process of each group: the thread number of its first task.
    processes: Vec<Option<u64>>,
    tracks: Tracks,
}

/// What the trace says of a task.
#[derive(Debug)]
struct Named {
    name: String,
    process: u64,
    thread: u64,
    /// Name, thread and priority as the fields of most kernel events.
    fields: Message,
    /// The same as the fields of a switch's next task.
    as_next: Message,
}

impl Named {
    fn new(name: String, process: u64, thread: u64, prio: i64) -> Self {
        let mut named = Self {
            name,
            process,
            thread,
            fields: Message::new(),
            as_next: Message::new(),
        };
        named.set_prio(prio);
        named
    }

    fn set_prio(&mut self, prio: i64) {
        let fields = |name, thread, priority| {
            Message::new()
                .text(name, &self.name)
                .number(thread, self.thread)
                .signed(priority, prio)
        };
        self.fields = fields(sched::COMM, sched::PID, sched::PRIO);
        self.as_next = fields(switch::NEXT_COMM, switch::NEXT_PID, switch::NEXT_PRIO);
    }
}

impl<W: Write> Perfetto<W> {
    /// Writes into `writer`.
    pub const fn new(writer: W) -> Self {
        Self {
            packets: Packets::new(writer),
            decides: false,
            decisions: DecisionNames::new(),
            header: None,
            tasks: Vec::new(),
            idle: Vec::new(),
            processes: Vec::new(),
            tracks: Tracks::new(),
        }
    }

    /// Writes decisions too: each as an instant, and the depths of queues.
    #[must_use]
    pub const fn with_decisions(mut self) -> Self {
        self.decides = true;
        self
    }

    /// The writer, flushed, after the run.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn close(self) -> io::Result<W> {
        self.packets.output.close()
    }

    /// Writes an event on a track, which is described before its first event.
    fn on_track(&mut self, time: SimTime, mark: &Mark<'_>) {
        let names = Described {
            header: begun(&self.header),
            tasks: &self.tasks,
            decisions: &self.decisions,
        };
        mark_track(&mut self.packets, &mut self.tracks, names, time, mark);
    }

    fn take(&mut self, event: &Event) {
        match event.what() {
            What::New { group, index, .. } => self.born(event, group, index),
            What::Wakeup(wakeup) => self.woken(event, wakeup),
            What::Switch {
                prev,
                state,
                overhead,
            } => {
                self.switched(event, prev, state);
                self.kernel(event.time, event.cpu, "switch", overhead.get());
            }
            What::Migrate { from } => self.migrated(event, from),
            What::Steal { span } => self.kernel(event.time, event.cpu, "interrupt", span.get()),
            What::Callback { .. } | What::Exit => {}
            What::Queue { queue, id, .. } if self.decides => self.decisions.queue(queue, id),
            What::Scheduler { scheduler, .. } => self.decisions.turn_to(scheduler),
            _ if EventMask::DECISIONS.has(event.kind) => self.decided(event),
            What::Change(change) => {
                if let Change::Nice(nice) = change {
                    self.renice(event.task, nice);
                }
                self.take_on_track(event);
            }
            _ => self.take_on_track(event),
        }
    }

    fn decided(&mut self, event: &Event) {
        if !self.decides {
            return;
        }
        let names = Described {
            header: begun(&self.header),
            tasks: &self.tasks,
            decisions: &self.decisions,
        };
        let name = |task: TaskId| {
            let known = names.tasks.get(task.index());
            known.map_or("no task", |named| named.name.as_str())
        };
        for mark in names.decisions.events(event, name).iter().flatten() {
            mark_track(&mut self.packets, &mut self.tracks, names, event.time, mark);
        }
    }

    fn take_on_track(&mut self, event: &Event) {
        let names = Described {
            header: begun(&self.header),
            tasks: &self.tasks,
            decisions: &self.decisions,
        };
        let marks = tracks::events(event, names.header, &mut self.tracks);
        for mark in marks.iter().flatten() {
            mark_track(&mut self.packets, &mut self.tracks, names, event.time, mark);
        }
    }

    fn born(&mut self, event: &Event, group: u32, index: u32) {
        let at = group as usize;
        if self.processes.len() <= at {
            self.processes.resize(at + 1, None);
        }
        let thread = thread(event.task);
        let is_first = self.processes[at].is_none();
        let process = *self.processes[at].get_or_insert(thread);
        let header = begun(&self.header);
        let name = task_name(header, group, index);
        let named = header.groups.get(at);
        let nice = named.map_or(0, |group| i64::from(group.nice));
        let title = named.map_or("", |group| group.name.as_str());
        self.packets.packet(|to| {
            let to = to.number(packet::TIMESTAMP, event.time.as_nanos());
            to.message(packet::PROCESS_TREE, |mut to| {
                if is_first {
                    to = to.message(tree::PROCESSES, |to| {
                        to.number(tree::PROCESS_PID, process)
                            .number(tree::PROCESS_PPID, 0)
                            .text(tree::PROCESS_CMDLINE, title)
                    });
                }
                to.message(tree::THREADS, |to| {
                    to.number(tree::THREAD_TID, thread)
                        .text(tree::THREAD_NAME, &name)
                        .number(tree::THREAD_TGID, process)
                })
            })
        });
        self.tasks
            .push(Named::new(name, process, thread, PRIO_NICE_0 + nice));
    }

    /// Remembers the idle task of `cpu`, for [`named`].
    fn remember_idle(&mut self, cpu: CpuId) {
        for at in self.idle.len()..=usize::from(cpu.0) {
            let name = format!("swapper/{at}");
            self.idle.push(Named::new(name, 0, 0, PRIO_NICE_0));
        }
    }

    fn woken(&mut self, event: &Event, wakeup: Wakeup) {
        let Wakeup {
            waker, waker_cpu, ..
        } = wakeup;
        self.remember_idle(event.cpu.max(waker_cpu));
        let task = named(&self.tasks, &self.idle, event.task, event.cpu);
        let waker = named(&self.tasks, &self.idle, waker, waker_cpu).thread;
        let at = (waker_cpu, event.time, waker);
        self.packets.ftrace(at, ftrace::SCHED_WAKING, |to| {
            to.fields(&task.fields)
                .number(sched::WAKING_SUCCESS, 1)
                .number(sched::WAKING_TARGET_CPU, event.cpu.0.into())
        });
    }

    fn switched(&mut self, event: &Event, prev: TaskId, state: PrevState) {
        self.remember_idle(event.cpu);
        let prev = named(&self.tasks, &self.idle, prev, event.cpu);
        let next = named(&self.tasks, &self.idle, event.task, event.cpu);
        let state = match state {
            PrevState::Sleeping => switch::SLEEPING,
            PrevState::Dead => switch::DEAD,
            PrevState::Idle | PrevState::Runnable => switch::RUNNABLE,
        };
        let at = (event.cpu, event.time, prev.thread);
        self.packets.ftrace(at, ftrace::SCHED_SWITCH, |to| {
            to.fields(&prev.fields)
                .number(switch::PREV_STATE, state)
                .fields(&next.as_next)
        });
    }

    fn migrated(&mut self, event: &Event, from: CpuId) {
        self.remember_idle(event.cpu);
        let task = named(&self.tasks, &self.idle, event.task, event.cpu);
        let at = (event.cpu, event.time, task.thread);
        self.packets.ftrace(at, ftrace::SCHED_MIGRATE_TASK, |to| {
            to.fields(&task.fields)
                .number(sched::MIGRATE_ORIG_CPU, from.0.into())
                .number(sched::MIGRATE_DEST_CPU, event.cpu.0.into())
        });
    }

    fn renice(&mut self, task: TaskId, nice: i64) {
        if let Some(named) = self.tasks.get_mut(task.index()) {
            named.set_prio(PRIO_NICE_0 + nice.clamp(-20, 19));
        }
    }

    /// A slice of `span` nanoseconds on the kernel's track of a CPU, after what is there.
    fn kernel(&mut self, now: SimTime, cpu: CpuId, name: &str, span: u64) {
        if span == 0 {
            return;
        }
        let (begin, end) = self.tracks.kernel_slice(cpu, now, span);
        self.on_track(begin, &Mark::begin(Track::Kernel(cpu), name));
        self.on_track(end, &Mark::end(Track::Kernel(cpu)));
    }
}

/// Writes what happens on a track, which is described before the first time.
fn mark_track<W: Write>(
    packets: &mut Packets<W>,
    tracks: &mut Tracks,
    names: Described<'_>,
    time: SimTime,
    mark: &Mark<'_>,
) {
    if !tracks.is_known(mark.track) {
        for descriptor in tracks.describe(mark.track, names) {
            packets.packet(|to| to.message(packet::TRACK_DESCRIPTOR, |to| to.fields(&descriptor)));
        }
    }
    packets.packet(|to| {
        to.number(packet::TIMESTAMP, time.as_nanos())
            .message(packet::TRACK_EVENT, |to| mark.write(to))
    });
}

#[expect(
    clippy::ref_option,
    reason = "callers borrow other fields at the same time"
)]
const fn begun(header: &Option<Header>) -> &Header {
    header.as_ref().expect("a header comes before the events")
}

/// The number of a task's thread; 0 is the idle task's.
fn thread(task: TaskId) -> u64 {
    u64::from(task.0) + 1
}

/// What is said of a task, or of the idle task of `cpu`, which is remembered.
fn named<'a>(tasks: &'a [Named], idle: &'a [Named], task: TaskId, cpu: CpuId) -> &'a Named {
    let known = tasks.get(task.index());
    known.unwrap_or_else(|| &idle[usize::from(cpu.0)])
}

/// The clocks at the start of the run, which is their zero.
fn clock_snapshot(to: Message) -> Message {
    let clock = |to: Message, id| {
        to.message(clocks::CLOCKS, |to| {
            to.number(clocks::CLOCK_ID, id).number(clocks::TIMESTAMP, 0)
        })
    };
    let to = clock(to, clocks::BOOTTIME);
    clock(to, clocks::MONOTONIC).number(clocks::PRIMARY_TRACE_CLOCK, clocks::BOOTTIME)
}

impl<W: Write> Sink for Perfetto<W> {
    fn wants(&self) -> EventMask {
        let kinds = EventMask::ALL
            .without(EventKind::Exit)
            .without(EventKind::Callback);
        let kinds = if self.decides {
            kinds.union(EventMask::DECISIONS)
        } else {
            kinds
        };
        self.packets.output.wants(kinds)
    }

    fn begin(&mut self, header: &Header) {
        self.header = Some(header.clone());
        self.packets.packet(|to| {
            to.number(packet::TIMESTAMP, 0)
                .message(packet::CLOCK_SNAPSHOT, clock_snapshot)
                .number(packet::SEQUENCE_FLAGS, packet::INCREMENTAL_STATE_CLEARED)
        });
        self.packets.output.write();
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.take(event);
        }
    }

    fn text(&mut self, text: &Text) {
        self.decisions.text(text);
    }

    fn finish(&mut self, end: SimTime) {
        // Gives the trace its length: what is open ends with the last event.
        let mark = Mark::instant(Track::Machine, "end of the run", None);
        self.on_track(end, &mark);
        self.packets.write_bundle();
        self.packets.output.write();
    }
}
