//! Loads that build a generated tree of sources.

use std::env;
use std::path::PathBuf;
use std::thread;

use clap::{Args, ValueEnum};
use load::contest::{self, ContestRow};
use load::kernbench::{self, Builder};
use load::tree::SourceTree;
use model::Nanos;

use super::{To, duration};
use model::span;

/// Generated source tree, and its compiler.
#[derive(Clone, Debug, Args)]
pub struct Sources {
    /// C files in the source tree.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub files: u32,

    /// Functions in each file.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub functions: u32,

    /// Seed for the contents of the files.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub tree_seed: u64,

    /// Folder in which to create a temporary folder for the source tree, which is deleted at the
    /// end. Nobody else may have write access to it. Default: the system's folder for temporary
    /// files.
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,

    /// C compiler. It needs neither headers nor a library.
    #[arg(long, value_name = "PROGRAM", default_value = "cc")]
    pub cc: String,

    /// Options for the compiler.
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "-O0",
        allow_hyphen_values = true
    )]
    pub cflags: String,
}

impl Sources {
    /// The way to build the tree.
    pub fn builder(&self) -> Builder {
        Builder {
            parent: self.tree.clone().unwrap_or_else(env::temp_dir),
            tree: SourceTree {
                files: self.files,
                functions: self.functions,
                seed: self.tree_seed,
            },
            cc: self.cc.clone(),
            cflags: self.cflags.clone(),
        }
    }
}

/// CPUs that tasks of this process may run on.
fn own_cpus() -> u32 {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cpus).unwrap_or(u32::MAX)
}

/// Number of jobs at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Jobs {
    /// One job for every two CPUs.
    Half,
    /// Four jobs for each CPU.
    Optimal,
    /// No limit.
    Maximal,
}

/// Arguments of `runslice load kernbench`.
#[derive(Debug, Args)]
pub struct Kernbench {
    #[command(flatten)]
    sources: Sources,

    /// Number of CPUs from which to compute the number of jobs. Default: all CPUs of the machine.
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,

    /// Builds with each number of jobs.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: u32,

    /// Pause before each build.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span::parse)]
    pause: Nanos,

    /// Skip the first build, which fills caches and is not measured.
    #[arg(long)]
    cold: bool,

    /// Numbers of jobs to build with.
    #[arg(long, value_enum, value_name = "LOAD,...", value_delimiter = ',')]
    #[arg(default_values_t = [Jobs::Half, Jobs::Optimal, Jobs::Maximal])]
    loads: Vec<Jobs>,

    #[command(flatten)]
    pub(super) to: To,
}

impl Kernbench {
    pub(super) fn load(&self) -> kernbench::Kernbench {
        let load = |jobs: &Jobs| match jobs {
            Jobs::Half => kernbench::JobCount::Half,
            Jobs::Optimal => kernbench::JobCount::Optimal,
            Jobs::Maximal => kernbench::JobCount::Maximal,
        };
        kernbench::Kernbench {
            builder: self.sources.builder(),
            cpus: self.cpus.unwrap_or_else(own_cpus),
            runs: self.runs,
            pause: duration(self.pause),
            warm_up: !self.cold,
            loads: self.loads.iter().map(load).collect(),
        }
    }
}

/// Arguments of `runslice load contest`.
#[derive(Debug, Args)]
pub struct Contest {
    #[command(flatten)]
    sources: Sources,

    /// Number of CPUs from which to compute the jobs of the build. Default: all CPUs of the
    /// machine.
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,

    /// Loads to run beside the build: `no_load`, `cacherun`, `process_load`, `ctar_load`,
    /// `xtar_load`, `io_load`, `io_other`, `read_load`, `list_load`, `mem_load`. Default: all.
    #[arg(long, value_name = "ROW,...", value_delimiter = ',', value_parser = row)]
    rows: Vec<ContestRow>,

    /// Data that the loads read, write or touch, in MiB. The original used the size of the memory.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    size: u64,

    /// Folder in which to create a temporary folder for the files of the loads, which is deleted at
    /// the end. Nobody else may have write access to it. Default: the system's folder for temporary
    /// files.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Folder in which to create a temporary folder for `io_other`, which is deleted at the end.
    /// Nobody else may have write access to it. Choose one on another disk if possible. Default: as
    /// for the other loads.
    #[arg(long, value_name = "DIR")]
    other: Option<PathBuf>,

    /// Folder that `list_load` lists.
    #[arg(long, value_name = "DIR", default_value = "/")]
    list: PathBuf,

    /// Time that a load runs before the build starts.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = span::parse)]
    lead: Nanos,

    #[command(flatten)]
    pub(super) to: To,
}

fn row(text: &str) -> Result<ContestRow, String> {
    let found = ContestRow::ALL.into_iter().find(|row| row.name() == text);
    found.ok_or_else(|| {
        format!(
            "rows are {}",
            ContestRow::ALL.map(ContestRow::name).join(", ")
        )
    })
}

impl Contest {
    pub(super) fn load(&self) -> contest::Contest {
        let rows = if self.rows.is_empty() {
            ContestRow::ALL.to_vec()
        } else {
            self.rows.clone()
        };
        contest::Contest {
            builder: self.sources.builder(),
            cpus: self.cpus.unwrap_or_else(own_cpus),
            rows,
            bytes: self.size << 20,
            folder: self.folder.clone().unwrap_or_else(env::temp_dir),
            other_folder: self.other.clone(),
            listed: self.list.clone(),
            lead: duration(self.lead),
        }
    }
}
