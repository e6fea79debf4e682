//! The object machine.

mod access;
mod bind;
mod builtin;
mod decode;
mod errno;
mod format;
mod host;
mod image;
mod instance;
mod interp;
mod map;
mod memory;
mod nesting;
mod op;
mod timer;
mod variables;

pub use bind::{Config, InstanceError, Missing};
pub use decode::BadInsn;
pub use errno::Errno;
pub use format::format;
pub use host::*;
pub use image::*;
pub use instance::Instance;
pub use map::arena::Pages;
pub use memory::{BASE, Memory, OutOfMemory};
