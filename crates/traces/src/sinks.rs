//! Sinks that pass events on, and what all writers share.

use std::collections::BTreeMap;
use std::io;
use std::io::Write;

use model::{
    CpuId, Event, EventKind, EventMask, Header, Nanos, PrevState, SimTime, Sink, TaskId, Text,
    WakeCause, Wakeup, What,
};

/// Gives the same events to several sinks, in the order of the list.
pub struct Tee<'a>(Vec<&'a mut dyn Sink>);

impl<'a> Tee<'a> {
    /// A sink that feeds all of `sinks`.
    #[must_use]
    pub fn new(sinks: Vec<&'a mut dyn Sink>) -> Self {
        Self(sinks)
    }
}

impl Sink for Tee<'_> {
    fn wants(&self) -> EventMask {
        self.0
            .iter()
            .fold(EventMask::NONE, |mask, sink| mask.union(sink.wants()))
    }

    fn begin(&mut self, header: &Header) {
        self.0.iter_mut().for_each(|sink| sink.begin(header));
    }

    fn events(&mut self, events: &[Event]) {
        self.0.iter_mut().for_each(|sink| sink.events(events));
    }

    fn text(&mut self, text: &Text) {
        self.0.iter_mut().for_each(|sink| sink.text(text));
    }

    fn finish(&mut self, end: SimTime) {
        self.0.iter_mut().for_each(|sink| sink.finish(end));
    }
}

/// Passes on the events of some kinds only.
///
/// For writers. Metrics need every scheduling event; a filter before them changes their numbers.
pub struct Filter<S> {
    kinds: EventMask,
    inner: S,
    passed: Vec<Event>,
}

impl<S: Sink> Filter<S> {
    /// Passes events of `kinds` on to `inner`.
    pub const fn new(kinds: EventMask, inner: S) -> Self {
        Self {
            kinds,
            inner,
            passed: Vec::new(),
        }
    }

    /// The sink behind the filter.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S: Sink> Sink for Filter<S> {
    fn wants(&self) -> EventMask {
        self.kinds.intersection(self.inner.wants())
    }

    fn begin(&mut self, header: &Header) {
        self.inner.begin(header);
    }

    fn events(&mut self, events: &[Event]) {
        self.passed.clear();
        self.passed
            .extend(events.iter().filter(|event| self.kinds.has(event.kind)));
        if !self.passed.is_empty() {
            self.inner.events(&self.passed);
        }
    }

    fn text(&mut self, text: &Text) {
        self.inner.text(text);
    }

    fn finish(&mut self, end: SimTime) {
        self.inner.finish(end);
    }
}

/// Passes a run on from a later moment on, as if it had begun there: times count from that moment.
///
/// Tasks that came before are there from the begin. What they did before is left out. Those that
/// were runnable at that moment are woken at the begin ([`WakeCause::Before`]), and those that ran
/// then begin to run.
pub struct Later<'a> {
    from: Nanos,
    inner: &'a mut dyn Sink,
    /// Whether that moment has come.
    has_begun: bool,
    /// Who is runnable or runs, and since which wakeup.
    runnable: BTreeMap<TaskId, Event>,
    /// Who runs, and since which switch.
    running: BTreeMap<CpuId, Event>,
    passed: Vec<Event>,
}

impl<'a> Later<'a> {
    /// Passes on to `inner` what happens from `from` on.
    pub fn new(from: Nanos, inner: &'a mut dyn Sink) -> Self {
        Self {
            from,
            inner,
            has_begun: false,
            runnable: BTreeMap::new(),
            running: BTreeMap::new(),
            passed: Vec::new(),
        }
    }

    fn is_before(&self, time: SimTime) -> bool {
        time < SimTime::ZERO + self.from
    }

    /// An event before the begin.
    fn remember(&mut self, event: &Event) {
        let at_begin = |what| Event::new(SimTime::ZERO, event.cpu, event.task, what);
        match event.what() {
            what @ (What::New { .. }
            | What::Exit
            | What::Change(_)
            | What::Queue { .. }
            | What::Allowed { .. }) => {
                self.passed.push(at_begin(what));
            }
            What::Wakeup(wakeup) => {
                let woken = What::Wakeup(Wakeup {
                    waker: TaskId::NONE,
                    waker_cpu: CpuId(0),
                    sync: false,
                    cause: WakeCause::Before,
                    ..wakeup
                });
                self.runnable.insert(event.task, at_begin(woken));
            }
            What::Migrate { .. } => {
                if let Some(woken) = self.runnable.get_mut(&event.task) {
                    woken.cpu = event.cpu;
                }
            }
            What::Switch { prev, state, .. } => {
                if matches!(state, PrevState::Sleeping | PrevState::Dead) {
                    self.runnable.remove(&prev);
                }
                let begins = What::Switch {
                    prev: TaskId::NONE,
                    state: PrevState::Idle,
                    overhead: Nanos::ZERO,
                };
                match event.task {
                    TaskId::NONE => self.running.remove(&event.cpu),
                    _ => self.running.insert(event.cpu, at_begin(begins)),
                };
            }
            _ => {}
        }
    }

    /// The moment has come.
    fn begin_once(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let runnable = std::mem::take(&mut self.runnable).into_values();
            let running = std::mem::take(&mut self.running).into_values();
            self.passed.extend(runnable.chain(running));
        }
    }

    fn pass_on(&mut self) {
        if !self.passed.is_empty() {
            self.inner.events(&self.passed);
            self.passed.clear();
        }
    }
}

impl Sink for Later<'_> {
    fn wants(&self) -> EventMask {
        [
            EventKind::New,
            EventKind::Exit,
            EventKind::Change,
            EventKind::Wakeup,
            EventKind::Migrate,
            EventKind::Switch,
        ]
        .into_iter()
        .fold(self.inner.wants(), EventMask::with)
    }

    fn begin(&mut self, header: &Header) {
        let rest = |duration: Nanos| Nanos::new(duration.get().saturating_sub(self.from.get()));
        self.inner.begin(&Header {
            duration: header.duration.map(rest),
            ..header.clone()
        });
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            if self.is_before(event.time) {
                self.remember(event);
            } else {
                self.begin_once();
                let mut moved = *event;
                moved.time = SimTime::ZERO + event.time.since(SimTime::ZERO + self.from);
                self.passed.push(moved);
            }
        }
        self.pass_on();
    }

    fn text(&mut self, text: &Text) {
        self.inner.text(text);
    }

    fn has_enough(&self) -> bool {
        self.inner.has_enough()
    }

    fn finish(&mut self, end: SimTime) {
        self.begin_once();
        self.pass_on();
        let end = if self.is_before(end) {
            SimTime::ZERO
        } else {
            SimTime::ZERO + end.since(SimTime::ZERO + self.from)
        };
        self.inner.finish(end);
    }
}

/// A writer that remembers its first error, because a sink cannot return one.
#[derive(Debug)]
pub struct Output<W> {
    writer: W,
    buffer: Vec<u8>,
    error: Option<io::Error>,
}

/// Bytes after which a buffer is written in the middle of a batch.
pub(crate) const FULL: usize = 64 << 10;

impl<W: Write> Output<W> {
    /// Of this writer, with an empty buffer.
    pub const fn new(writer: W) -> Self {
        Self {
            writer,
            buffer: Vec::new(),
            error: None,
        }
    }

    /// `kinds`, but nothing after an error.
    pub const fn wants(&self, kinds: EventMask) -> EventMask {
        if self.error.is_some() {
            EventMask::NONE
        } else {
            kinds
        }
    }

    /// Where the next bytes go.
    pub const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// As [`Output::write`], if enough is in the buffer.
    pub fn write_when_full(&mut self) {
        if self.buffer.len() >= FULL {
            self.write();
        }
    }

    /// Gives the buffer to the writer, and drops it if the writer failed before.
    pub fn write(&mut self) {
        if self.error.is_none() {
            self.error = self.writer.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }

    /// Writes the output, and then `bytes`.
    pub fn give(&mut self, bytes: &[u8]) {
        if !self.buffer.is_empty() {
            self.write();
        }
        if self.error.is_none() {
            self.error = self.writer.write_all(bytes).err();
        }
    }

    /// The writer, flushed.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn close(mut self) -> io::Result<W> {
        self.write();
        if let Some(error) = self.error {
            return Err(error);
        }
        self.writer.flush()?;
        Ok(self.writer)
    }
}

#[cfg(test)]
mod tests {
    use model::{EventKind, TaskId};

    use super::*;
    use crate::testing::{self, event, with};

    /// Remembers what it was given.
    struct Memory {
        wants: EventMask,
        events: Vec<Event>,
        begun: u32,
        end: Option<SimTime>,
    }

    impl Memory {
        fn new(wants: EventMask) -> Self {
            Self {
                wants,
                events: Vec::new(),
                begun: 0,
                end: None,
            }
        }
    }

    impl Sink for Memory {
        fn wants(&self) -> EventMask {
            self.wants
        }

        fn begin(&mut self, _header: &Header) {
            self.begun += 1;
        }

        fn events(&mut self, events: &[Event]) {
            self.events.extend_from_slice(events);
        }

        fn finish(&mut self, end: SimTime) {
            self.end = Some(end);
        }
    }

    /// Three tasks on two CPUs: one goes to sleep before 100, one runs on, one waits.
    #[test]
    fn a_run_that_is_passed_on_later_begins_with_those_who_run_and_wait_then() {
        let new = |task| event(0, EventKind::New, 0, TaskId(task));
        let by_seven = Wakeup {
            waker: TaskId(7),
            waker_cpu: CpuId(1),
            sync: true,
            new: false,
            cause: WakeCause::Unsaid,
        };
        let woken = |time, cpu, task, wakeup| {
            let time = SimTime::from_nanos(time);
            Event::new(time, CpuId(cpu), TaskId(task), What::Wakeup(wakeup))
        };
        let wakeup = |time, cpu, task| woken(time, cpu, task, by_seven);
        // Each switch costs something, which its own event tells.
        let switch = |time, cpu, previous: TaskId, state: PrevState, next| {
            with(
                event(time, EventKind::Switch, cpu, next),
                (state as u8, u64::from(previous.0), 2),
            )
        };
        let idle = TaskId::NONE;
        let mut memory = Memory::new(EventMask::NONE.with(EventKind::Switch));
        let mut later = Later::new(Nanos::new(100), &mut memory);
        assert!(later.wants().has(EventKind::Wakeup) && !later.wants().has(EventKind::Kick));
        later.begin(&testing::header(1));
        later.events(&[new(0), new(1), new(2), wakeup(5, 0, 0), wakeup(6, 1, 1)]);
        later.events(&[switch(5, 0, idle, PrevState::Idle, TaskId(0))]);
        later.events(&[switch(7, 1, idle, PrevState::Idle, TaskId(1))]);
        later.events(&[
            wakeup(50, 0, 2),
            event(60, EventKind::Migrate, 1, TaskId(2)),
        ]);
        let asleep = switch(70, 0, TaskId(0), PrevState::Sleeping, idle);
        let after = switch(130, 1, TaskId(1), PrevState::Runnable, TaskId(2));
        later.events(&[asleep, after]);
        later.finish(SimTime::from_nanos(150));

        let by_nobody = Wakeup {
            waker: idle,
            waker_cpu: CpuId(0),
            sync: false,
            new: false,
            cause: WakeCause::Before,
        };
        let before = |cpu, task| woken(0, cpu, task, by_nobody);
        // That one was paid for before.
        let begins = with(
            event(0, EventKind::Switch, 1, TaskId(1)),
            (0, u64::from(idle.0), 0),
        );
        let moved = Event::new(SimTime::from_nanos(30), after.cpu, after.task, after.what());
        let expected = [
            new(0),
            new(1),
            new(2),
            before(1, 1),
            before(1, 2),
            begins,
            moved,
        ];
        assert_eq!(memory.events, expected);
        assert_eq!(memory.end, Some(SimTime::from_nanos(50)));
    }

    #[test]
    fn a_run_that_ends_before_it_is_passed_on_has_no_length() {
        let mut memory = Memory::new(EventMask::ALL);
        let mut later = Later::new(Nanos::new(100), &mut memory);
        later.events(&two_events());
        later.finish(SimTime::from_nanos(3));
        assert_eq!(memory.end, Some(SimTime::ZERO));
    }

    #[test]
    fn who_passes_a_run_on_has_enough_when_the_next_one_has() {
        struct Full(bool);
        impl Sink for Full {
            fn wants(&self) -> EventMask {
                EventMask::NONE
            }
            fn begin(&mut self, _: &Header) {}
            fn events(&mut self, _: &[Event]) {}
            fn finish(&mut self, _: SimTime) {}
            fn has_enough(&self) -> bool {
                self.0
            }
        }
        for full in [false, true] {
            let mut inner = Full(full);
            let later = Later::new(Nanos::new(100), &mut inner);
            assert_eq!(later.has_enough(), full);
        }
    }

    fn two_events() -> [Event; 2] {
        [
            event(1, EventKind::Kick, 0, TaskId::NONE),
            event(2, EventKind::Switch, 0, TaskId(0)),
        ]
    }

    #[test]
    fn a_tee_wants_what_any_wants_and_gives_all_to_all() {
        let mut first = Memory::new(EventMask::NONE.with(EventKind::Kick));
        let mut second = Memory::new(EventMask::NONE.with(EventKind::Switch));
        let mut tee = Tee::new(vec![&mut first, &mut second]);
        assert!(tee.wants().has(EventKind::Kick) && tee.wants().has(EventKind::Switch));
        assert!(!tee.wants().has(EventKind::Callback));
        tee.begin(&testing::header(1));
        tee.events(&two_events());
        tee.finish(SimTime::from_nanos(3));
        for memory in [first, second] {
            assert_eq!(memory.events, two_events());
            assert_eq!(
                (memory.begun, memory.end),
                (1, Some(SimTime::from_nanos(3)))
            );
        }
    }

    #[test]
    fn a_filter_passes_its_kinds_and_asks_for_no_more() {
        let kinds = EventMask::NONE
            .with(EventKind::Switch)
            .with(EventKind::Steal);
        let mut filter = Filter::new(kinds, Memory::new(EventMask::ALL.without(EventKind::Steal)));
        assert!(filter.wants().has(EventKind::Switch));
        assert!(!filter.wants().has(EventKind::Steal) && !filter.wants().has(EventKind::Kick));
        filter.begin(&testing::header(1));
        filter.events(&two_events());
        filter.finish(SimTime::from_nanos(3));
        let memory = filter.into_inner();
        assert_eq!(memory.events, two_events()[1..]);
        assert_eq!(
            (memory.begun, memory.end),
            (1, Some(SimTime::from_nanos(3)))
        );
    }
}
