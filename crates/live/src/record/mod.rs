//! Records what the kernel's scheduler does: numbers, histograms, or every event.
//!
//! [`Recorder::start`] loads the tracing programs, [`Recorder::stop`] gives the [`Recording`].
//! [`Recording::events`] turns the records into events as docs/events.md defines them, so that
//! whatever reads the events of a simulated machine reads these.

mod code;
mod convert;
mod cost;
mod decided;
mod measured;
mod pace;
mod raw;
mod recorder;

pub use convert::{Converted, Mended, Others, Records, convert};
pub use cost::{Cost, ProgramCost};
pub use decided::{Decided, Decision, DecisionRecorder, RecordedDecisions};
pub use measured::{Distribution, MeasuredTask, Totals};
pub use pace::{Bound, Pace, be_urgent};
pub use raw::{Raw, RecordFacts, RecordKind};
#[cfg(test)]
pub(crate) use recorder::OBJECT;
pub use recorder::{
    Depth, Extras, Recorder, Recording, busy_between, busy_of, cpus, hz_between, schedstat,
};

/// `CLOCK_MONOTONIC` in nanoseconds, the clock of every record.
#[must_use]
pub fn clock() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
