//! Loads that build a generated tree of sources.

use std::env;
use std::path::PathBuf;
use std::thread;

use clap::{Args, ValueEnum};
use load::contest::{self, Row};
use load::kernbench::{self, Builder};
use load::tree::Tree;
use model::Nanos;

use super::{To, duration};
use model::span;

/// What is built, and by what.
#[derive(Clone, Debug, Args)]
pub struct Sources {
    /// C files of the tree.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub files: u32,

    /// Functions of each file.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub functions: u32,

    /// Seed of what they compute.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub tree_seed: u64,

    /// Make the tree's folder in this one, and delete it at the end. Nobody else may write here.
    /// Default: the system's folder for temporary files.
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,

    /// C compiler; needs neither headers nor a library.
    #[arg(long, value_name = "PROGRAM", default_value = "cc")]
    pub cc: String,

    /// What the compiler is told besides.
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
            tree: Tree {
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

/// How many jobs for so many CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Jobs {
    /// Half as many as CPUs.
    Half,
    /// Four for each CPU.
    Optimal,
    /// No limit.
    Maximal,
}

/// What `runslice load kernbench` is asked.
#[derive(Debug, Args)]
pub struct Kernbench {
    #[command(flatten)]
    sources: Sources,

    /// CPUs that the numbers of jobs are made for. Default: as many as there are.
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,

    /// Builds with each number of jobs.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: u32,

    /// Rest before each build.
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = span::parse)]
    pause: Nanos,

    /// Leaves out the first build, which nobody measures.
    #[arg(long)]
    cold: bool,

    /// Which numbers of jobs.
    #[arg(long, value_enum, value_name = "LOAD,...", value_delimiter = ',')]
    #[arg(default_values_t = [Jobs::Half, Jobs::Optimal, Jobs::Maximal])]
    loads: Vec<Jobs>,

    #[command(flatten)]
    pub(super) to: To,
}

impl Kernbench {
    pub(super) fn load(&self) -> kernbench::Kernbench {
        let load = |jobs: &Jobs| match jobs {
            Jobs::Half => kernbench::Load::Half,
            Jobs::Optimal => kernbench::Load::Optimal,
            Jobs::Maximal => kernbench::Load::Maximal,
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

/// What `runslice load contest` is asked.
#[derive(Debug, Args)]
pub struct Contest {
    #[command(flatten)]
    sources: Sources,

    /// CPUs that the build has jobs for. Default: as many as there are.
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,

    /// Rows: `no_load`, `cacherun`, `process_load`, `ctar_load`, `xtar_load`, `io_load`,
    /// `io_other`, `read_load`, `list_load`, `mem_load`. Default: all.
    #[arg(long, value_name = "ROW,...", value_delimiter = ',', value_parser = row)]
    rows: Vec<Row>,

    /// What loads stream or touch, in MiB; the original takes the size of the memory.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    size: u64,

    /// Make the folder that loads write into in this one, and delete it at the end. Nobody else
    /// may write here. Default: the system's folder for temporary files.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Where `io_other` writes, likewise: on another disk, if there is one. Default: where the
    /// other loads write.
    #[arg(long, value_name = "DIR")]
    other: Option<PathBuf>,

    /// What `list_load` lists.
    #[arg(long, value_name = "DIR", default_value = "/")]
    list: PathBuf,

    /// How long a load runs before the build begins.
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span::parse)]
    lead: Nanos,

    #[command(flatten)]
    pub(super) to: To,
}

fn row(text: &str) -> Result<Row, String> {
    let found = Row::ALL.into_iter().find(|row| row.name() == text);
    found.ok_or_else(|| format!("rows are {}", Row::ALL.map(Row::name).join(", ")))
}

impl Contest {
    pub(super) fn load(&self) -> contest::Contest {
        let rows = match self.rows.is_empty() {
            true => Row::ALL.to_vec(),
            false => self.rows.clone(),
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
