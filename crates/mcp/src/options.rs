//! What the owner of the program allows.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use runslice::door::{output, secret};

/// Answers questions about Linux CPU schedulers for a client of the Model Context Protocol, which
/// starts this program and talks to it through standard input and output.
///
/// It reads the files that a client names, and writes none without --write.
#[derive(Debug, Parser)]
#[command(name = "runslice-mcp", version = show::VERSION)]
pub struct ServerOptions {
    /// Folder that may be written into: bundles and the runs that `hunt` finds. It is made if it is
    /// missing; no file in it is written over. Default: nothing is written.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,

    /// Longest time that a client waits for an answer, in seconds.
    #[arg(long, value_name = "NUMBER", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,

    /// Most bytes of an answer as JSON. A longer one is cut, and says where.
    #[arg(long, value_name = "NUMBER", default_value_t = 65_536,
        value_parser = clap::value_parser!(u32).range(1_024..=8_000_000))]
    bytes: u32,

    /// Threads of a question. The number does not change the answer. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    /// Read the key of the draws of `evaluate` from this file descriptor, such as 3 with `3< key`.
    /// A client that does not know it cannot write a policy for the draws.
    #[arg(long, value_name = "FD")]
    secret: Option<u32>,
}

/// What questions may take, and where they may write.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The only folder that is written into.
    pub folder: Option<PathBuf>,
    /// Longest time of a question.
    pub time: Duration,
    /// Most bytes of an answer.
    pub bytes: usize,
    /// Threads of a question.
    pub jobs: Option<NonZeroUsize>,
    /// The key of draws.
    pub key: Option<Vec<u8>>,
}

impl ServerOptions {
    /// The same, with the folder made and the key read.
    ///
    /// # Errors
    /// When the folder cannot be used, or the key is bad.
    pub fn owner(&self) -> anyhow::Result<Owner> {
        if let Some(folder) = &self.write {
            output::make_folder(folder)?;
        }
        Ok(Owner {
            folder: self.write.clone(),
            time: Duration::from_secs(self.seconds),
            bytes: self.bytes as usize,
            jobs: self.jobs,
            key: self.secret.map(secret::read).transpose()?,
        })
    }
}
