//! Figures of runs, as SVG: latency, runslice, imbalance, calls, priorities, histograms, CPUs.
//!
//! A [`Collector`] takes the events of a run and gives [`Collector::charts`]; [`comparison`] lays
//! several runs over each other; [`of_statistics`] draws a log of `/proc/schedstat`. [`svg`] draws
//! one figure. The figures hold whole numbers only, so that the same run gives the same bytes.

mod bins;
mod chart;
mod collect;
mod differences;
mod gantt;
mod hardware;
mod ink;
mod run;
mod scale;
mod statistics;
mod svg;
mod tails;
#[cfg(test)]
mod tests;
mod tracks;
mod turns;

pub use chart::{Body, Chart, Curve, DotPanel, DotRow, Join, Lane};
pub use collect::Collector;
pub use differences::{Shown, changes, every_run, told_apart};
pub use gantt::gantt;
pub use ink::Ink;
pub use run::{comparison, names_of};
pub use scale::{Axis, Quantity};
pub use statistics::{Statistics, of_statistics};
pub use svg::{both_widths, escape, narrow, style, svg};
pub use tails::tails;
pub use turns::has_few_tasks;
