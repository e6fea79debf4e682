//! The tests of the command line in one program: each program is linked with all of runslice, which
//! takes longer than most of these tests. Apart are `vm`, whose tests boot kernels, and
//! `schedulers`, which says by name which tests have no program to run.

mod advice;
mod before;
mod binary;
mod bundle;
mod cases;
mod choose;
#[cfg(feature = "live")]
mod cli;
mod compile;
mod decisions;
mod evaluate;
mod explain;
mod from;
mod help;
mod hostile_loaders;
mod hunt;
#[cfg(feature = "live")]
mod interrupts;
mod many_runs;
mod memory;
mod mistakes;
mod names;
#[cfg(feature = "live")]
mod packages;
mod pages;
mod parquet;
mod places;
mod programs;
mod races;
mod refusals;
mod report;
#[cfg(feature = "live")]
mod scheduler;
mod score;
mod stat;
mod streams;
mod teaching;
mod verdicts;
