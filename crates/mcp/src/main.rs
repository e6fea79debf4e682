//! The program `runslice-mcp`. All that it does is in the library of this crate.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: runslice::CheckedAllocator = runslice::ALLOCATOR;

fn main() -> ExitCode {
    mcp::program()
}
