//! Events in, explanations out.
//!
//! [`why::Observer`] follows every decision about tasks, queues and CPUs, and says why a task waits
//! and which line of the policy made it; docs/explain.md is its contract. [`trace::Tracer`] follows
//! single tasks through a run, and [`timeline::Timeline`] tells who had which CPU and who waited.
//!
//! No statistic is made here: nothing of a comparison, a histogram or a report comes in.

#![forbid(unsafe_code)]

pub mod timeline;
pub mod trace;
pub mod why;
