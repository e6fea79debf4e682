//! Runs that their caller may give up.

use model::{Event, EventMask, Header, Sample, Sampler, SimTime, Sink, Text};

use crate::services::Services;

/// A sink that has enough as soon as nobody waits for the run.
pub struct Until<'a, S: ?Sized> {
    sink: &'a mut S,
    services: Services<'a>,
}

impl<'a, S: ?Sized> Until<'a, S> {
    /// Passes on to `sink` what comes while somebody waits for the run.
    pub const fn new(sink: &'a mut S, services: Services<'a>) -> Self {
        Self { sink, services }
    }
}

impl<S: Sink + ?Sized> Sink for Until<'_, S> {
    fn wants(&self) -> EventMask {
        self.sink.wants()
    }

    fn begin(&mut self, header: &Header) {
        self.sink.begin(header);
    }

    fn events(&mut self, events: &[Event]) {
        self.sink.events(events);
    }

    fn text(&mut self, text: &Text) {
        self.sink.text(text);
    }

    fn has_enough(&self) -> bool {
        self.services.check().is_err() || self.sink.has_enough()
    }

    fn finish(&mut self, end: SimTime) {
        self.sink.finish(end);
    }
}

impl<S: Sampler + ?Sized> Sampler for Until<'_, S> {
    fn sample(&mut self, sample: &Sample) {
        self.sink.sample(sample);
    }
}
