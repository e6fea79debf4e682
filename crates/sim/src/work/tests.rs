//! Workloads on a toy machine.

mod devices;
mod flow;
mod measure;
mod refused;
mod rtapp;
mod sharing;
mod shipped;
mod storage;
mod toy;
