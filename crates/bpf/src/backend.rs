//! What executes programs: the interpreter or native code.
//!
//! Both give the same results, counts, faults and memory, so the choice is a matter of speed only
//! and may change between two calls. To translate one instruction takes as long as is lost by
//! interpreting [`PRICE`] of them. Nobody knows how long a run will last; hence [`Backend::Auto`]
//! interprets until it has lost as much time by that as the translation takes. Then no run takes
//! more than twice the time of the better of the two ways.

use model::Advice;

/// Which back end an instance is asked to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The interpreter at first. Native code of the functions that were called, once interpreting
    /// has lost as much time as translating them takes, in this instance and those of this process
    /// that ran the same code; or at once, if one of these has it.
    #[default]
    Auto,
    /// The interpreter.
    Interpreter,
    /// Native code from the beginning. An error if there can be none.
    Jit,
}

/// Interpreted instructions by which as much is lost as by translating one, in instructions of the
/// processor: `mlfq` took 137,000 to translate one of its 2,880 that are called, and 15 more to
/// interpret one than to execute it natively (valgrind, `desk` of 14 to 40 s).
pub const PRICE: u64 = 9_000;

/// Interpreted instructions after which [`Backend::Auto`] looks for native code that another
/// instance has made. It takes less time to interpret them than to compare two objects ten times.
pub const FIRST_LOOK: u64 = 20_000;

/// Back end that executes an instance's programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    /// The interpreter, because nothing else was asked for or it is not worth it yet.
    Interpreted,
    /// The interpreter, because there can be no native code.
    Refused(Refusal),
    /// Native code.
    Native {
        /// Functions that were translated; others are interpreted.
        functions: u32,
        /// Their instructions.
        instructions: u32,
        /// Bytes of machine code.
        bytes: u32,
    },
}

/// Why there is no native code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// This runslice was built without it.
    #[error("this program was built without the feature `jit`")]
    NotBuilt,
    /// The translator knows x86-64 and aarch64 only.
    #[error("no translator for this processor: {0}")]
    Processor(String),
    /// The object is too large.
    #[error("the object has {instructions} instructions, the limit is {limit}")]
    TooLarge {
        /// Instructions of all functions that can be reached.
        instructions: u64,
        /// The limit: `native_limit` of the configuration.
        limit: u32,
    },
    /// A function needs more native stack than is provided for.
    #[error("function `{function}` needs {bytes} bytes of native stack, the limit is {limit}")]
    Frame {
        /// The function.
        function: String,
        /// What it needs.
        bytes: u32,
        /// What it may have.
        limit: u32,
    },
    /// The code generator failed.
    #[error("code generator: {0}")]
    Generator(String),
}

impl Advice for Refusal {
    fn advice(&self) -> Option<String> {
        None
    }
}
