//! The tests of the supervisor, in one program.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod children;
mod deaths;
mod hostile;
mod limits;
mod published;
mod recording;
mod sockets;
mod supervisor;
mod support;
