//! Workloads on a toy machine.

mod flow;
mod measure;
mod refused;
mod sharing;
mod shipped;
mod toy;
