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

/// Arguments of `runslice load hackbench`.
#[derive(Debug, Args)]
pub struct Hackbench {
    /// Groups, each with 20 senders and 20 receivers.
    #[arg(long, value_name = "N", default_value_t = 10)]
    groups: u32,

    /// Messages from each sender to each receiver of its group.
    #[arg(long, value_name = "N", default_value_t = 100)]
    messages: u32,

    /// Use pipes instead of sockets.
    #[arg(long)]
    pipes: bool,

    /// Use threads instead of processes.
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

/// Arguments of `runslice load web`.
#[derive(Debug, Args)]
pub struct Web {
    /// Folder that has the programs, if they are not installed: Debian's packages, which you have
    /// unpacked there yourself (`dpkg -x`).
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,

    /// Requests at a time.
    #[arg(long, value_name = "N", default_value_t = 150)]
    clients: u32,

    /// Requests in total.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    requests: u32,

    /// Processes of the server. Default: one for each client.
    #[arg(long, value_name = "N")]
    workers: Option<u32>,

    /// Use runslice's own server even if Apache is installed.
    #[arg(long)]
    own: bool,

    /// CPU time for each request to runslice's own server. The default is the time of a page in the
    /// article that this benchmark repeats (experiments/000-servers/README.md).
    #[arg(long, value_name = "TIME", default_value = "4.09ms", value_parser = span::parse)]
    work: Nanos,

    /// Port of the server, on the loopback interface.
    #[arg(long, value_name = "PORT", default_value_t = 8099)]
    port: u16,

    /// Folder in which to create a temporary folder for the run, which is deleted at the end.
    /// Nobody else may have write access to it. Default: the system's folder for temporary files.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Task to run beside the server, with a rule as in `load levels --task`. May be repeated.
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
            which: if self.own {
                web::WebServer::Own
            } else {
                web::WebServer::Best
            },
            folder: self.folder.clone().unwrap_or_else(env::temp_dir),
            beside: self.beside.clone(),
        }
    }
}

/// Arguments of `runslice load oltp`.
#[derive(Debug, Args)]
pub struct Oltp {
    /// Folder that has the programs, if they are not installed: Debian's packages, which you have
    /// unpacked there yourself (`dpkg -x`).
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,

    /// Clients at a time.
    #[arg(long, value_name = "N", default_value_t = 8)]
    threads: u32,

    /// Transactions of all clients together.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    transactions: u32,

    /// Rows of the table. It had a million in the article that this benchmark repeats
    /// (experiments/000-servers/README.md).
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    rows: u32,

    /// Folder in which to create a temporary folder for the tables, which is deleted at the end.
    /// Nobody else may have write access to it. Default: the system's folder for temporary files.
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
