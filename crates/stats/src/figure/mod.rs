//! Figures of runs, as SVG: latency, runslice, imbalance, calls, priorities, histograms, CPUs.
//!
//! A [`Collector`] takes the events of a run and gives [`Collector::charts`]; [`comparison`] lays
//! several runs over each other; [`of_statistics`] draws a log of `/proc/schedstat`. [`svg`] draws
//! one figure. The figures hold whole numbers only, so that the same run gives the same bytes.

mod bins;
mod chart;
mod collect;
mod run;
mod scale;
mod statistics;
mod svg;
#[cfg(test)]
mod tests;

pub use chart::{Body, Chart, Curve, Join, Lane};
pub use collect::Collector;
pub use run::comparison;
pub use scale::{Axis, Quantity};
pub use statistics::{Statistics, of_statistics};
pub use svg::{COLOURS, escape, style, svg};
