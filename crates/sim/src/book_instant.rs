//! What an instant has seen so far, on a machine as textbooks have it.

use model::SimTime;

/// What an instant has seen so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct BookInstant {
    /// Which instant; [`crate::textbook`] alone writes it and all else here.
    pub time: SimTime,
    /// Slices that have ended in it.
    pub ends: u32,
    /// The running task sleeps until then: the next thing that it does.
    pub sleeps_until: Option<SimTime>,
    /// The tick that comes next is the end of a slice.
    pub ends_slice: bool,
}
