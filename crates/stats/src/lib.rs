//! Events and counters in, numbers out.
//!
//! A machine sends [`model::Event`]s to a [`model::Sink`]; the sinks of this crate turn them into
//! numbers ([`Metrics`], whose result is a [`Report`]), check them ([`Conservation`]), take their
//! fingerprint ([`TraceHash`]), follow single tasks ([`trace::Tracer`]), draw them
//! ([`figure::Collector`]) or write them down
//! ([`JsonLines`], [`Perfetto`]). [`EventReader`]
//! reads what [`JsonLines`] wrote. docs/events.md is the contract: what each event means, and
//! where each metric starts and stops.
//!
//! Nothing here opens a file or reads a clock; writers and readers are given. No result passes
//! through floating-point arithmetic but those of [`compare`], which says whether two sets of runs
//! differ and how far apart two machines are.

#![forbid(unsafe_code)]

pub mod background;
mod blocks;
mod columns;
pub mod compare;
mod conservation;
mod event_columns;
pub mod figure;
mod flight;
mod hash;
mod histogram;
mod json_lines;
mod ledger;
mod metrics;
mod names;
mod perfetto;
pub mod probe;
mod protobuf;
#[cfg(test)]
mod random_runs;
mod read;
mod report;
pub mod schedstat;
mod sinks;
#[cfg(test)]
mod stream;
mod tails;
pub mod timeline;
pub mod trace;
pub mod why;
mod words;

pub use blocks::{Block, Blocks, Family, Half, Lengths as SpanLengths, Spans};
pub use columns::{
    Column, Unit, Value, columns, counter_columns, cpu_columns, deadline_columns, machine_columns,
    nice_columns, phase_columns, span_columns, task_columns,
};
pub use conservation::{Conservation, Violation};
pub use event_columns::EventColumns;
pub use flight::Flight;
pub use hash::TraceHash;
pub use histogram::Histogram;
pub use json_lines::JsonLines;
pub use metrics::{Kind, Metrics};
pub use names::task_name;
pub use perfetto::Perfetto;
pub use read::{EventReader, ReadError, replay};
pub use report::{
    CounterReport, CpuReport, DeadlineReport, GroupReport, Lengths, MachineReport, Millionths,
    NiceReport, PhaseReport, Report, SpanReport, Spread, TaskReport, Thousandths, Times,
};
pub use sinks::{Filter, Later, Tee};
pub use tails::Tails;
