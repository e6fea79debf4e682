//! Something that was done, as the judge remembers it.

use model::{Caller, Cause, CpuId, Event, SimTime};

/// Who did something, as events have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deed {
    pub time: SimTime,
    /// Its number in the stream: without costs, cause and effect have the same time.
    pub number: u64,
    pub cpu: CpuId,
    pub caller: Caller,
    pub place: u32,
}

impl Deed {
    pub const fn of(event: &Event, by: Cause, number: u64) -> Self {
        Self {
            time: event.time,
            number,
            cpu: event.cpu,
            caller: by.caller,
            place: by.place,
        }
    }

    /// Whether the same callback may have done both: the same one, on the same CPU, at one moment.
    pub fn is_with(&self, other: &Self) -> bool {
        self.time == other.time && self.caller == other.caller && self.cpu == other.cpu
    }

    /// Whether the same callback may have done it and claimed a CPU: as [`Self::is_with`], but a
    /// claim has the CPU that is claimed, not the one that claims it.
    pub fn is_with_claim(&self, claim: &Self) -> bool {
        self.time == claim.time && self.caller == claim.caller
    }

    /// The kernel did it by a rule of its own.
    pub fn is_kernels(&self) -> bool {
        self.caller == Caller::Kernel
    }
}
