//! The questions that runslice answers, as types: what is asked goes in, and an answer comes out.
//!
//! Nothing here knows a command line, prints, has an exit status, opens a file, or starts a thread
//! or a process. What a question needs of the computer is lent by its caller.

#![forbid(unsafe_code)]

pub mod answer;
pub mod bundle;
pub mod cases;
pub mod choose;
pub mod compare;
pub mod config;
pub mod convert;
pub mod diff;
pub mod embedded;
pub mod ends;
pub mod error;
pub mod evaluate;
pub mod explain;
pub mod fidelity;
pub mod goal;
pub mod hunt;
pub mod input;
pub mod kernel;
pub mod key;
pub mod kind;
pub mod lab;
pub mod like;
pub mod limit;
pub mod load_source;
pub mod machine;
pub mod machine_file;
pub mod measure;
pub mod note;
mod order_loads;
pub mod orders;
pub mod outcome;
pub mod pack;
pub mod plan;
pub mod policy;
pub mod program;
pub mod races;
pub mod recording;
pub mod right;
pub mod runner;
pub mod runs;
pub mod score;
pub mod score_file;
pub mod services;
pub mod sets;
pub mod shrink;
pub mod simulate;
pub mod spread;
pub mod stated;
pub mod sub;
pub mod sweep;
pub mod topology;
pub mod trial;
pub mod unset;
mod until;
pub mod violation;
pub mod words;
pub mod workload_arg;

pub use answer::AnswerKind;
pub use error::{Error, ErrorKind};
pub use note::Note;
pub use services::Services;
