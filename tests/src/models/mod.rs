//! Reference models: schedulers written down once more, from their descriptions alone and without
//! regard to speed, to compare the policies' choices with.

pub mod balance;
pub mod beside;
pub mod cfs;
pub mod counters;
pub mod eevdf;
pub mod elsc;
pub mod goodness;
pub mod mlfq;
pub mod o1;
pub mod observe;
pub mod random;
pub mod replay;
pub mod runs;
pub mod staircase;
pub mod staircase5;
pub mod ticked;

pub use replay::{Replay, Scheduler};
