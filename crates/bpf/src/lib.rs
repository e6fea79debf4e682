//! The object machine.

mod access;
mod arena;
#[expect(unsafe_code, reason = "a pointer that stays in its thread")]
mod aside;
mod backend;
mod bind;
mod btf;
mod builtin;
mod bytes;
mod call_stack;
mod config;
mod core_reloc;
mod decode;
mod door;
mod errno;
mod error;
mod faults;
mod format;
mod frame;
mod globals;
mod header;
mod helper_names;
mod host;
mod image;
mod instance;
mod instance_error;
mod interp;
mod intrinsic;
mod isa;
#[cfg(feature = "jit")]
#[expect(unsafe_code, reason = "machine code, and what it shares with Rust")]
mod jit;
mod join;
mod keyed;
mod link;
mod map;
mod memory;
mod named;
mod nesting;
#[cfg(not(feature = "jit"))]
mod no_jit;
#[cfg(target_family = "wasm")]
mod no_turns;
mod object;
mod objects;
mod op;
mod path;
mod place;
mod progress;
mod reach;
mod reached;
mod resize;
#[cfg(test)]
mod scene;
mod sequence;
mod spaces;
mod stop;
mod streams;
mod target;
mod timer;
#[cfg(not(target_family = "wasm"))]
#[expect(unsafe_code, reason = "what a call has is moved from stack to stack")]
mod turns;
mod uncast;
mod variables;
mod verify;

#[cfg(not(feature = "jit"))]
use no_jit as jit;
#[cfg(target_family = "wasm")]
use no_turns as turns;

pub use self::object::{Object, ObjectLimits};
pub use backend::{Backend, Execution, FIRST_LOOK, PRICE, Refusal};
pub use config::{Config, Prices};
pub use decode::BadInsn;
pub use door::{Attached, Attachment, CallError, Door};
pub use errno::Errno;
pub use error::{ExternKind, KnobProblem, LoadError, MapProblem, MissingExtern, StructOpsProblem};
pub use faults::ArenaFault;
pub use format::format;
pub use globals::{GlobalValue, SetError, SetUpError};
pub use helper_names::helper_name;
pub use host::*;
pub use image::*;
pub use instance::{Instance, Prepared, Template, Unfinished};
pub use instance_error::{InstanceError, MissingFunction};
pub use join::Joined;
pub use keyed::{Keyed, KeyedHasher};
pub use map::Update;
pub use memory::{BASE, Memory, OutOfMemory, Pages};
pub use path::PathError;
pub use place::SourceLine;
pub use reached::Reached;
pub use stop::{Fault, Stop};
pub use target::{Kconfig, Target, TargetField};
pub use turns::TurnStacks;
pub use uncast::UncastAccess;
pub use verify::Violation;
