//! Why and where a program ends that cannot go on.

use model::Advice;

/// Why a program cannot go on. A policy's fault, never the user's or ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stop {
    /// A store outside the memory that a program may write.
    #[error("store of {size} bytes outside writable memory, at {address:#x}")]
    WildStore {
        /// Where.
        address: u64,
        /// Bytes.
        size: u8,
    },
    /// More instructions than a callback may retire.
    #[error("endless loop: more than {budget} instructions in one callback")]
    Budget {
        /// The limit.
        budget: u64,
    },
    /// All calls together have retired more instructions, or had more done for them, than the
    /// whole run may.
    #[error("the run's budget of {budget} instructions is spent")]
    TotalBudget {
        /// The limit.
        budget: u64,
    },
    /// Calls nested too deeply, BPF-to-BPF or through the host.
    #[error("calls nested more than {limit} deep")]
    CallDepth {
        /// The limit.
        limit: u32,
    },
    /// The stacks of nested calls exceed the stack.
    #[error("stack overflow: more than {limit} bytes")]
    StackOverflow {
        /// Bytes of all frames together.
        limit: u32,
    },
    /// An instruction that the target kernel could not execute was reached.
    #[error("{0}")]
    Poison(String),
    /// A callback address that is no function of the object.
    #[error("call of {0:#x}, which is no function")]
    WildCall(u64),
    /// The object wants more memory than it may have.
    #[error("out of memory: the object may use {limit} bytes")]
    OutOfMemory {
        /// The cap.
        limit: u64,
    },
    /// The host ends the program: misuse that a verifier would have refused.
    #[error("{0}")]
    Refused(String),
}

impl Advice for Stop {
    fn advice(&self) -> Option<String> {
        None
    }
}

/// A [`Stop`] and where it happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{program}+{insn}{}: {stop}", place(.file.as_deref(), *.line))]
pub struct Fault {
    /// What happened.
    pub stop: Stop,
    /// The function's name.
    pub program: String,
    /// Instruction within the function.
    pub insn: u32,
    /// Source file, if the object has line information.
    pub file: Option<String>,
    /// Source line.
    pub line: u32,
}

impl Advice for Fault {
    fn advice(&self) -> Option<String> {
        None
    }
}

fn place(file: Option<&str>, line: u32) -> String {
    file.map_or_else(String::new, |file| format!(" ({file}:{line})"))
}

impl Stop {
    /// A function that the host has not was called.
    #[must_use]
    pub fn not_simulated(function: &str) -> Self {
        Self::Poison(format!("function `{function}` is not simulated"))
    }
}

/// A host function hands a nested program's fault on with `?`. The place is not lost: the instance
/// remembers it for the outermost call.
impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        fault.stop
    }
}

/// An instruction in its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The function's name.
    pub(crate) program: String,
    /// Instruction within the function.
    pub(crate) insn: u32,
    /// Source file, if the object has line information.
    pub(crate) file: Option<String>,
    /// Source line.
    pub(crate) line: u32,
}
