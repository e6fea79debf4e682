//! Writes a run for ui.perfetto.dev and for `trace_processor`.

mod decisions;
mod fields;
#[cfg(test)]
mod tests;
mod tracks;

use std::io;
use std::io::Write;

use model::{
    CpuId, Event, EventKind, EventMask, Header, Op, PrevState, SimTime, Sink, TaskId, Text,
};

use crate::names::task_name;
use crate::protobuf::Message;
use crate::sinks::Output;
use decisions::Decisions;
use fields::{clocks, ftrace, packet, sched, switch, tree};
use tracks::{Described, Track, Tracks};

/// Every packet comes from one writer, which has this number.
const SEQUENCE: u64 = 1;

/// Bytes after which a bundle of one CPU's events becomes a packet.
const BUNDLE: usize = 16 << 10;

/// Where, when and by which thread a kernel event was raised.
#[derive(Clone, Copy)]
struct Raised {
    cpu: CpuId,
    time: SimTime,
    thread: u64,
}

/// The kernel's static priority of nice 0.
const PRIO_NICE_0: i64 = 120;

/// Writes a run as a Perfetto trace into a writer. docs/events.md has the mapping.
///
/// Memory grows with the number of tasks, not of events. The first error of the writer ends the
/// writing, and [`Perfetto::close`] returns it.
#[derive(Debug)]
pub struct Perfetto<W> {
    output: Output<W>,
    callbacks: bool,
    /// Set when decisions are written.
    decides: bool,
    decisions: Decisions,
    header: Option<Header>,
    tasks: Vec<Named>,
    /// The process of each group: the thread number of its first task.
    processes: Vec<Option<u64>>,
    /// Kernel events of one CPU that are not written yet.
    bundle: Option<(CpuId, Message)>,
    tracks: Tracks,
}

/// What the trace says of a task.
#[derive(Debug)]
struct Named {
    name: String,
    process: u64,
    prio: i64,
}

impl<W: Write> Perfetto<W> {
    /// Writes into `writer`, without the policy's callbacks.
    pub const fn new(writer: W) -> Self {
        Self {
            output: Output::new(writer),
            callbacks: false,
            decides: false,
            decisions: Decisions::new(),
            header: None,
            tasks: Vec::new(),
            processes: Vec::new(),
            bundle: None,
            tracks: Tracks::new(),
        }
    }

    /// Writes each call of the policy too, which makes a trace several times larger.
    #[must_use]
    pub const fn with_callbacks(mut self) -> Self {
        self.callbacks = true;
        self
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
        self.output.close()
    }

    fn header(&self) -> &Header {
        self.header
            .as_ref()
            .expect("a header comes before the events")
    }

    /// Writes a packet, after the kernel events that came before it.
    fn packet(&mut self, packet: Message) {
        self.write_bundle();
        self.write_packet(packet);
    }

    fn write_packet(&mut self, packet: Message) {
        let packet = packet.number(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
        packet.write(fields::TRACE_PACKET, self.output.buffer());
        self.output.write_when_full();
    }

    fn write_bundle(&mut self) {
        if let Some((_, bundle)) = self.bundle.take() {
            self.write_packet(Message::new().message(packet::FTRACE_EVENTS, &bundle));
        }
    }

    /// Adds a kernel event, the one of `field`.
    fn ftrace(&mut self, raised: Raised, field: u64, payload: &Message) {
        let Raised { cpu, time, thread } = raised;
        if self
            .bundle
            .as_ref()
            .is_some_and(|(at, full)| *at != cpu || full.len() >= BUNDLE)
        {
            self.write_bundle();
        }
        let event = Message::new()
            .number(ftrace::TIMESTAMP, time.as_nanos())
            .number(ftrace::PID, thread)
            .message(field, payload);
        let (_, bundle) = self
            .bundle
            .take()
            .unwrap_or_else(|| (cpu, Message::new().number(ftrace::CPU, cpu.0.into())));
        self.bundle = Some((cpu, bundle.message(ftrace::EVENT, &event)));
    }

    /// Writes an event on a track, which is described before its first event.
    fn on_track(&mut self, time: SimTime, track: Track, event: &Message) {
        let known = self.tracks.is_known(track);
        if !known {
            let names = Described {
                header: begun(&self.header),
                tasks: &self.tasks,
                decisions: &self.decisions,
            };
            for descriptor in self.tracks.describe(track, names) {
                self.packet(Message::new().message(packet::TRACK_DESCRIPTOR, &descriptor));
            }
        }
        let at = Message::new().number(packet::TIMESTAMP, time.as_nanos());
        self.packet(at.message(packet::TRACK_EVENT, event));
    }

    fn take(&mut self, event: &Event) {
        match event.kind {
            EventKind::New => self.born(event),
            EventKind::Wakeup => self.woken(event),
            EventKind::Switch => self.switched(event),
            EventKind::Migrate => self.migrated(event),
            EventKind::Steal => self.kernel(event.time, event.cpu, "interrupt", event.a),
            EventKind::Callback if self.callbacks => self.called(event),
            EventKind::Callback | EventKind::Exit => {}
            decision if !EventMask::ALL.has(decision) => self.decided(event),
            EventKind::Change => {
                self.renice(event);
                self.take_on_track(event);
            }
            _ => self.take_on_track(event),
        }
    }

    fn decided(&mut self, event: &Event) {
        if !self.decides {
            return;
        }
        let tasks = &self.tasks;
        let name = |task: TaskId| {
            let known = tasks.get(task.index());
            known.map_or_else(|| "no task".to_owned(), |named| named.name.clone())
        };
        for (track, message) in self.decisions.events(event, name) {
            self.on_track(event.time, track, &message);
        }
    }

    fn take_on_track(&mut self, event: &Event) {
        let events = tracks::events(event, begun(&self.header), &mut self.tracks);
        for (track, message) in events {
            self.on_track(event.time, track, &message);
        }
    }

    fn born(&mut self, event: &Event) {
        let group = (event.a & 0xffff_ffff) as u32;
        let index = (event.a >> 32) as u32;
        let at = group as usize;
        if self.processes.len() <= at {
            self.processes.resize(at + 1, None);
        }
        let thread = thread(event.task);
        let is_first = self.processes[at].is_none();
        let process = *self.processes[at].get_or_insert(thread);
        let header = self.header();
        let name = task_name(header, group, index);
        let named = header.groups.get(at);
        let nice = named.map_or(0, |group| i64::from(group.nice));
        let title = named.map_or("", |group| group.name.as_str()).to_owned();
        let entry = if is_first {
            let process = Message::new()
                .number(tree::PROCESS_PID, process)
                .number(tree::PROCESS_PPID, 0)
                .text(tree::PROCESS_CMDLINE, &title);
            Message::new().message(tree::PROCESSES, &process)
        } else {
            Message::new()
        };
        let member = Message::new()
            .number(tree::THREAD_TID, thread)
            .text(tree::THREAD_NAME, &name)
            .number(tree::THREAD_TGID, process);
        let tree = entry.message(tree::THREADS, &member);
        self.tasks.push(Named {
            name,
            process,
            prio: PRIO_NICE_0 + nice,
        });
        let at = Message::new().number(packet::TIMESTAMP, event.time.as_nanos());
        self.packet(at.message(packet::PROCESS_TREE, &tree));
    }

    /// Name, thread number and priority of a task, or of the idle task of `cpu`.
    fn identity(&self, task: TaskId, cpu: CpuId) -> (String, u64, i64) {
        self.tasks.get(task.index()).map_or_else(
            || (format!("swapper/{cpu}"), 0, PRIO_NICE_0),
            |named| (named.name.clone(), thread(task), named.prio),
        )
    }

    fn woken(&mut self, event: &Event) {
        let (name, tid, prio) = self.identity(event.task, event.cpu);
        let waker = TaskId((event.a & 0xffff_ffff) as u32);
        let waker_cpu = CpuId((event.a >> 32 & 0xffff) as u16);
        let (_, waker, _) = self.identity(waker, waker_cpu);
        let payload = Message::new()
            .text(sched::COMM, &name)
            .number(sched::PID, tid)
            .signed(sched::PRIO, prio)
            .number(sched::WAKING_SUCCESS, 1)
            .number(sched::WAKING_TARGET_CPU, event.cpu.0.into());
        let raised = Raised {
            cpu: waker_cpu,
            time: event.time,
            thread: waker,
        };
        self.ftrace(raised, ftrace::SCHED_WAKING, &payload);
    }

    fn switched(&mut self, event: &Event) {
        let prev = TaskId((event.a & 0xffff_ffff) as u32);
        let (prev_name, prev_tid, prev_prio) = self.identity(prev, event.cpu);
        let (next_name, next_tid, next_prio) = self.identity(event.task, event.cpu);
        let state = if event.detail == PrevState::Sleeping as u8 {
            switch::SLEEPING
        } else if event.detail == PrevState::Dead as u8 {
            switch::DEAD
        } else {
            switch::RUNNABLE
        };
        let payload = Message::new()
            .text(switch::PREV_COMM, &prev_name)
            .number(switch::PREV_PID, prev_tid)
            .signed(switch::PREV_PRIO, prev_prio)
            .number(switch::PREV_STATE, state)
            .text(switch::NEXT_COMM, &next_name)
            .number(switch::NEXT_PID, next_tid)
            .signed(switch::NEXT_PRIO, next_prio);
        let raised = Raised {
            cpu: event.cpu,
            time: event.time,
            thread: prev_tid,
        };
        self.ftrace(raised, ftrace::SCHED_SWITCH, &payload);
        self.kernel(event.time, event.cpu, "switch", event.b);
    }

    fn migrated(&mut self, event: &Event) {
        let (name, tid, prio) = self.identity(event.task, event.cpu);
        let payload = Message::new()
            .text(sched::COMM, &name)
            .number(sched::PID, tid)
            .signed(sched::PRIO, prio)
            .number(sched::MIGRATE_ORIG_CPU, event.a)
            .number(sched::MIGRATE_DEST_CPU, event.cpu.0.into());
        let raised = Raised {
            cpu: event.cpu,
            time: event.time,
            thread: tid,
        };
        self.ftrace(raised, ftrace::SCHED_MIGRATE_TASK, &payload);
    }

    fn renice(&mut self, event: &Event) {
        const NICE: u64 = 0;
        if let (NICE, Some(named)) = (event.a, self.tasks.get_mut(event.task.index())) {
            named.prio = PRIO_NICE_0 + event.b.cast_signed().clamp(-20, 19);
        }
    }

    /// A slice of `span` nanoseconds on the kernel's track of a CPU, after what is there.
    fn kernel(&mut self, now: SimTime, cpu: CpuId, name: &str, span: u64) {
        if span == 0 {
            return;
        }
        let (begin, end) = self.tracks.kernel_slice(cpu, now, span);
        self.on_track(
            begin,
            Track::Kernel(cpu),
            &tracks::begin(Track::Kernel(cpu), name),
        );
        self.on_track(end, Track::Kernel(cpu), &tracks::end(Track::Kernel(cpu)));
    }

    fn called(&mut self, event: &Event) {
        let Some(op) = Op::ALL.get(usize::from(event.detail)) else {
            return;
        };
        let track = Track::Policy(event.cpu);
        self.on_track(event.time, track, &tracks::instant(track, op.name(), None));
    }
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

/// The clocks at the start of the run, which is their zero.
fn clock_snapshot() -> Message {
    let clock = |id| {
        let clock = Message::new().number(clocks::CLOCK_ID, id);
        clock.number(clocks::TIMESTAMP, 0)
    };
    Message::new()
        .message(clocks::CLOCKS, &clock(clocks::BOOTTIME))
        .message(clocks::CLOCKS, &clock(clocks::MONOTONIC))
        .number(clocks::PRIMARY_TRACE_CLOCK, clocks::BOOTTIME)
}

impl<W: Write> Sink for Perfetto<W> {
    fn wants(&self) -> EventMask {
        let kinds = EventMask::ALL.without(EventKind::Exit);
        let kinds = if self.callbacks {
            kinds
        } else {
            kinds.without(EventKind::Callback)
        };
        let kinds = if self.decides {
            kinds.union(EventMask::DECISIONS)
        } else {
            kinds
        };
        self.output.wants(kinds)
    }

    fn begin(&mut self, header: &Header) {
        self.header = Some(header.clone());
        let first = Message::new()
            .number(packet::TIMESTAMP, 0)
            .message(packet::CLOCK_SNAPSHOT, &clock_snapshot())
            .number(packet::SEQUENCE_FLAGS, packet::INCREMENTAL_STATE_CLEARED);
        self.packet(first);
        self.output.write();
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
        let mark = tracks::instant(Track::Machine, "end of the run", None);
        self.on_track(end, Track::Machine, &mark);
        self.write_bundle();
        self.output.write();
    }
}
