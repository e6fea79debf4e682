//! A run as a file that anybody can repeat, also without the program of its scheduler.

use model::{Event, EventMask, Header, SimTime, Sink};

use super::Case;
use crate::bundle::Bundle;
use crate::program;
use crate::services::Services;

/// Nobody listens to the run: only what the program does is written down.
struct Nobody;

impl Sink for Nobody {
    fn wants(&self) -> EventMask {
        EventMask::NONE
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, _: &[Event]) {}

    fn finish(&mut self, _: SimTime) {}
}

impl Case {
    /// As [`Case::bundle`]; a program is run once more, and its recording takes its place.
    ///
    /// # Errors
    /// When the program cannot be run.
    pub fn capsule(&self, services: &Services<'_>) -> anyhow::Result<Bundle> {
        let mut bundle = self.bundle();
        let program = bundle.policy.program.as_mut();
        let Some(program) = program.filter(|program| program.recorded.is_none()) else {
            return Ok(bundle);
        };
        let mut spec = self.spec(services)?;
        spec.policy.program = None;
        let (_, recorded) = program::record(services, program, &spec, Some(&mut Nobody))?;
        program.recorded = Some(recorded);
        Ok(bundle)
    }
}
