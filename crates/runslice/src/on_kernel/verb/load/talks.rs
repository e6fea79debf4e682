//! Loads of tasks that talk to each other.

use std::env;
use std::path::PathBuf;

use clap::Args;
use load::aim7;
use load::chat::{self, ChatKind};

use super::To;

/// Arguments of `runslice load chat`.
#[derive(Debug, Args)]
pub struct Chat {
    /// Number of chat rooms.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rooms: u32,

    /// Users in each room, at least 2. Each has four threads: a reader and a writer as client, and
    /// both on the server's side.
    #[arg(long, value_name = "N", default_value_t = 20)]
    users: u32,

    /// Messages from each user.
    #[arg(long, value_name = "N", default_value_t = 100)]
    messages: u32,

    /// Size of a message, 1 to 65536 bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    bytes: usize,

    /// Do not let writers yield the CPU when their queue is empty.
    #[arg(long)]
    no_yield: bool,

    /// Let all users send at once instead of in turn. The scheduler then matters little.
    #[arg(long)]
    flood: bool,

    /// Use processes instead of threads.
    #[arg(long)]
    processes: bool,

    #[command(flatten)]
    pub(super) to: To,
}

impl Chat {
    pub(super) fn load(&self) -> chat::Chat {
        chat::Chat {
            rooms: self.rooms,
            users: self.users,
            messages: self.messages,
            bytes: self.bytes,
            yields: !self.no_yield,
            flood: self.flood,
            kind: if self.processes {
                ChatKind::Process
            } else {
                ChatKind::Thread
            },
        }
    }
}

/// Arguments of `runslice load aim`.
#[derive(Debug, Args)]
pub struct Aim {
    /// Numbers of users, with one run for each number.
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "1,2,4,8"
    )]
    users: Vec<u32>,

    /// Jobs of each user.
    #[arg(long, value_name = "N", default_value_t = 100)]
    jobs: u32,

    /// Size of a job, in per cent of the normal size.
    #[arg(long, value_name = "PERCENT", default_value_t = 100)]
    size: u32,

    /// Seed for the order and size of the jobs.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Folder in which to create a temporary folder for the run, which is deleted at the end.
    /// Nobody else may have write access to it. Default: the system's folder for temporary files.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    #[command(flatten)]
    pub(super) to: To,
}

impl Aim {
    pub(super) fn load(&self) -> aim7::Aim7 {
        aim7::Aim7 {
            users: self.users.clone(),
            jobs: self.jobs,
            percent: self.size,
            seed: self.seed,
            folder: self.folder.clone().unwrap_or_else(env::temp_dir),
        }
    }
}
