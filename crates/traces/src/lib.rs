//! Traces: files of events, of runslice and of other programs.
//!
//! [`EventReader`] is the only reader of runslice's own files, which [`JsonLines`] writes;
//! [`Perfetto`] writes them for a viewer, [`EventColumns`] as columns, and [`TraceHash`] takes a
//! stream's fingerprint. [`foreign`] reads what other programs recorded. docs/events.md is the
//! contract of the format. A name, a number or a place of a format stands once, for its reader and
//! its writer.
//!
//! Nothing here opens a file or reads a clock; writers and readers are given.

#![forbid(unsafe_code)]

mod event_columns;
pub mod foreign;
mod hash;
mod json_lines;
mod names;
mod perfetto;
mod protobuf;
mod read;
mod sinks;
pub mod testing;
mod words;

pub use event_columns::EventColumns;
pub use hash::TraceHash;
pub use json_lines::JsonLines;
pub use names::task_name;
pub use perfetto::Perfetto;
pub use read::{EventReader, ReadError, replay};
pub use sinks::{Filter, Later, Output, Tee};
pub use words::needs_task;
