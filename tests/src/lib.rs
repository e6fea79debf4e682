//! What the tests of the whole share: reading recordings of real kernels, making them comparable
//! with simulated runs, scenario files.

pub mod both;
pub mod call;
pub mod comparable;
pub mod exchange;
pub mod policies;
pub mod program;
pub mod recording;
