//! Workloads that a kernel plays for `fidelity`: what it is to run, and what is kept in a folder.
//! `ask::fidelity` simulates and compares; `on_kernel` plays.

pub mod keep;

use std::path::PathBuf;

/// The kernel that runs commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelPlace {
    /// That of virtual machines.
    Guest,
    /// This computer's.
    Host,
}

/// Commands that a kernel is to run, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    /// Whose kernel.
    pub place: KernelPlace,
    /// Which kernel a guest boots.
    pub kernel: String,
    /// CPUs of the machine.
    pub cpus: u16,
    /// Where the commands start, with the files that they read. It gets the files that they write.
    pub folder: PathBuf,
    /// The commands.
    pub commands: Vec<Command>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// By which its result is known.
    pub id: String,
    /// Its words; `runslice` is this program.
    pub words: Vec<String>,
    /// Seconds that it may take.
    pub timeout_s: u64,
}

/// Outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brought {
    /// That of the command.
    pub id: String,
    /// What it printed, or why it failed.
    pub printed: Result<String, String>,
}
