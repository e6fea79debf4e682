//! Loads that are others' programs.

use clap::Args;
use live::load::hackbench;

use super::To;

/// What `runslice load hackbench` is asked.
#[derive(Debug, Args)]
pub struct Hackbench {
    /// Groups of 20 senders and 20 receivers.
    #[arg(long, value_name = "N", default_value_t = 10)]
    groups: u32,

    /// Messages of each sender to each receiver of its group.
    #[arg(long, value_name = "N", default_value_t = 100)]
    messages: u32,

    /// Through pipes instead of sockets.
    #[arg(long)]
    pipes: bool,

    /// Threads instead of processes.
    #[arg(long)]
    threads: bool,

    #[command(flatten)]
    pub(super) to: To,
}

impl Hackbench {
    pub(super) fn load(&self) -> hackbench::Hackbench {
        hackbench::Hackbench {
            groups: self.groups,
            messages: self.messages,
            pipes: self.pipes,
            threads: self.threads,
        }
    }
}
