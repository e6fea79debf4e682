//! What the tests of the whole share: reading recordings of real kernels, making them comparable
//! with simulated runs, scenario files.

pub mod affinity;
pub mod attacks;
pub mod both;
pub mod call;
pub mod choices;
pub mod collect;
pub mod command;
pub mod comparable;
pub mod custody;
pub mod debian;
pub mod door;
pub mod exchange;
pub mod faulty;
pub mod guest;
pub mod hostile;
pub mod in_process;
pub mod library;
pub mod longest_wait;
pub mod models;
pub mod nobody;
pub mod policy;
pub mod program;
pub mod random;
pub mod recording;
pub mod run;
pub mod scenario;
pub mod scripted;
pub mod simulate;
pub mod soak;
pub mod speed;
pub mod timeline;
pub mod two_machines;
pub mod usage;
