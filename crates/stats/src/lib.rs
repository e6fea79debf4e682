//! Events and counters in, numbers out.
//!
//! A machine sends [`model::Event`]s to a [`model::Sink`]; the sinks of this crate turn them into
//! numbers ([`Metrics`], whose result is a [`Report`]) or check them ([`Conservation`]).
//! docs/events.md is the contract: what each event means, and where each metric starts and stops.
//!
//! Nothing here opens a file or reads a clock; writers and readers are given. No result passes
//! through floating-point arithmetic but those of [`compare`], which says whether two sets of runs
//! differ and how far apart two machines are.

#![forbid(unsafe_code)]

pub mod background;
mod blocks;
mod cells;
mod columns;
pub mod compare;
mod conservation;
mod done;
mod flight;
mod histogram;
mod ledger;
mod metrics;
#[cfg(test)]
mod random_runs;
mod report;
pub mod schedstat;
mod siblings;
mod tails;

pub use blocks::{Block, BlockLengths, Blocks, Half, Spans, TaskFamily};
pub use cells::{CellSpans, InputOrder, WantedSpans};
pub use columns::{
    Column, ColumnValue, Unit, class_columns, columns, counter_columns, cpu_columns,
    deadline_columns, frequency_columns, hardware_columns, machine_columns, nice_columns,
    phase_columns, span_columns, task_columns,
};
pub use conservation::{Conservation, Violation};
pub use done::LastWork;
pub use flight::Flight;
pub use histogram::Histogram;
pub use metrics::{Metrics, SpanKind};
pub use report::{
    ClassReport, CounterReport, CpuReport, DeadlineReport, FrequencyReport, GroupReport,
    HardwareReport, Lengths, MachineReport, Millionths, NiceReport, PhaseReport, Report,
    SpanReport, Spread, TaskReport, Thousandths, Times,
};
pub use tails::Tails;
