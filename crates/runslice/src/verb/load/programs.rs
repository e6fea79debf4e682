//! Loads that are others' programs.

use std::env;
use std::path::PathBuf;

use clap::Args;
use load::levels::Behaviour;
use load::{hackbench, oltp, web};
use model::Nanos;

use super::keys::task;
use super::{To, duration};
use model::span;

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

/// What `runslice load web` is asked.
#[derive(Debug, Args)]
pub struct Web {
    /// Where the files of the packages are, as if it were `/`.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,

    /// Requests at a time.
    #[arg(long, value_name = "N", default_value_t = 150)]
    clients: u32,

    /// Requests.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    requests: u32,

    /// Processes of the server. Default: one for each client.
    #[arg(long, value_name = "N")]
    workers: Option<u32>,

    /// Takes our own server although Apache may be there.
    #[arg(long)]
    own: bool,

    /// What our own server computes for a request; the paper's page took 4.09 ms.
    #[arg(long, value_name = "SPAN", default_value = "4.09ms", value_parser = span::parse)]
    work: Nanos,

    /// Port on the loopback.
    #[arg(long, value_name = "PORT", default_value_t = 8099)]
    port: u16,

    /// Make the run's folder in this one, and delete it at the end. Nobody else may write here.
    /// Default: the system's folder for temporary files.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// A task that goes on beside it, by a rule as of `load levels --task`. May be repeated.
    #[arg(long = "beside", value_name = "TASK", value_parser = task)]
    beside: Vec<Behaviour>,

    #[command(flatten)]
    pub(super) to: To,
}

impl Web {
    pub(super) fn load(&self) -> web::Web {
        web::Web {
            root: self.root.clone(),
            clients: self.clients,
            requests: self.requests,
            workers: self.workers.unwrap_or(self.clients),
            work: duration(self.work),
            port: self.port,
            which: match self.own {
                true => web::Which::Own,
                false => web::Which::Best,
            },
            folder: self.folder.clone().unwrap_or_else(env::temp_dir),
            beside: self.beside.clone(),
        }
    }
}

/// What `runslice load oltp` is asked.
#[derive(Debug, Args)]
pub struct Oltp {
    /// Where the files of the packages are, as if it were `/`.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,

    /// Clients at a time.
    #[arg(long, value_name = "N", default_value_t = 8)]
    threads: u32,

    /// Transactions of all clients together.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    transactions: u32,

    /// Rows of the table; the paper's had a million.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    rows: u32,

    /// Make the tables' folder in this one, and delete it at the end. Nobody else may write here.
    /// Default: the system's folder for temporary files.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    #[command(flatten)]
    pub(super) to: To,
}

impl Oltp {
    pub(super) fn load(&self) -> oltp::Oltp {
        oltp::Oltp {
            root: self.root.clone(),
            threads: self.threads,
            transactions: self.transactions,
            rows: self.rows,
            folder: self.folder.clone().unwrap_or_else(env::temp_dir),
        }
    }
}
