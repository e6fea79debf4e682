//! Sinks that pass events on, and what all writers share.

use std::io;
use std::io::Write;

use model::{Event, EventMask, Header, SimTime, Sink, Text};

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

/// A writer that remembers its first error, because a sink cannot return one.
#[derive(Debug)]
pub(crate) struct Output<W> {
    writer: W,
    buffer: Vec<u8>,
    error: Option<io::Error>,
}

/// Bytes after which a buffer is written in the middle of a batch.
pub(crate) const FULL: usize = 64 << 10;

impl<W: Write> Output<W> {
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

    /// As [`Output::write`], and then `bytes`.
    pub fn give(&mut self, bytes: &[u8]) {
        if !self.buffer.is_empty() {
            self.write();
        }
        if self.error.is_none() {
            self.error = self.writer.write_all(bytes).err();
        }
    }

    /// The writer, flushed, or its first error.
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
    use crate::stream::{self, event};

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
        tee.begin(&stream::header(1));
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
        filter.begin(&stream::header(1));
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
