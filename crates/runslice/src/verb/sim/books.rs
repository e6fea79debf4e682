//! The file of `--schedstat`: scheduler statistics of a simulated run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use model::Nanos;
use stats::schedstat::{Bookkeeper, Bookkeeping};

use crate::output;
use model::span;

/// Options for a file with scheduler statistics.
#[derive(Debug, Args)]
pub struct BooksRequest {
    /// Write /proc/schedstat snapshots, as a kernel of 2004 printed them, to this file for `stat
    /// report`. With several policies, each gets its own file, with the policy's name before the
    /// file's ending.
    #[arg(long, value_name = "FILE")]
    pub schedstat: Option<PathBuf>,

    /// Version of /proc/schedstat. Only 4 is possible.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, requires = "schedstat",
        value_parser = clap::value_parser!(u32).range(4..=4))]
    schedstat_version: u32,

    /// Waits to count.
    #[arg(long, value_enum, value_name = "RULES", default_value_t = Rules::V4,
        requires = "schedstat")]
    schedstat_rules: Rules,

    /// Simulated time between two snapshots, at least 1 ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_every,
        requires = "schedstat")]
    pub schedstat_every: Nanos,
}

/// Waits that the statistics count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rules {
    /// Like kernels of that time: in whole jiffies, without the waits of preempted tasks.
    V4,
    /// All waits, measured in nanoseconds and printed in jiffies.
    Full,
}

fn parse_every(text: &str) -> Result<Nanos, String> {
    let every = span::parse(text)?;
    if every < Nanos::from_millis(1) {
        return Err("the clock of these statistics shows milliseconds: 1ms at least".to_owned());
    }
    Ok(every)
}

/// The file, and who writes it.
pub struct Books {
    /// To be shown the counters.
    pub keeper: Bookkeeper<output::ResultsFile>,
    path: PathBuf,
}

impl BooksRequest {
    /// Books in `path`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn open(&self, path: PathBuf) -> anyhow::Result<Books> {
        let rules = match self.schedstat_rules {
            Rules::V4 => Bookkeeping::V4,
            Rules::Full => Bookkeeping::Full,
        };
        let keeper = Bookkeeper::new(rules, output::create(&path)?);
        Ok(Books { keeper, path })
    }
}

impl Books {
    /// Closes the file.
    ///
    /// # Errors
    /// When a snapshot could not be written; the message names the file.
    pub fn close(self) -> anyhow::Result<()> {
        let closed = self.keeper.close();
        closed.map_err(model::CannotWrite::at(self.path.display()))?;
        Ok(())
    }
}
