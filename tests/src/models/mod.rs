//! Reference models: schedulers written down once more, from their descriptions alone and without
//! regard to speed, to compare the policies' choices with.

pub mod beside;
pub mod counters;
pub mod elsc;
pub mod goodness;
pub mod random;
pub mod replay;
