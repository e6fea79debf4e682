//! A scheduler's own program in the place of a policy: `--scheduler 'scx_lavd --performance'`.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod samples;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod stats;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod supervised;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ask::program::{self, ProgramOptions};
use ask::services::{Programs, StartedProgram};
use clap::{Args, ValueEnum};
use model::{Nanos, PolicySpec, Program, span};
use workload::RunSpec;

use crate::exit::UsageError;
use crate::{files, output};
use ask::key::fingerprint;

pub use ask::program::load;

/// Schedulers that are run by their own programs, for verbs that simulate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct Schedulers {
    /// Run a scheduler's own program and simulate what it does, for example
    /// `--scheduler 'scx_lavd --performance'`. May be repeated.
    ///
    /// The program is not changed and needs no root: it attaches its policy to the simulated
    /// machine, sees that machine's CPUs and clock, and its threads take CPU time there. It has
    /// your rights, so run only programs that you trust.
    #[arg(long = "scheduler", value_name = "COMMAND")]
    pub commands: Vec<String>,

    #[command(flatten)]
    pub loader: LoaderOptions,

    /// Write what the program of --scheduler prints to this file. With several, each gets its own
    /// file, with the program's name before the file's ending.
    #[arg(long, value_name = "FILE")]
    pub loader_output: Option<PathBuf>,

    /// Write the metrics of --scheduler to this file, if its program serves them (`scx_stats`): as
    /// `OpenMetrics` if it ends in .openmetrics, else as JSON lines. With several, each gets its
    /// own file.
    ///
    /// The program is asked in simulated time, and answering takes its threads CPU time.
    #[arg(long, value_name = "FILE")]
    pub scheduler_stats: Option<PathBuf>,

    /// Simulated time between two questions of --scheduler-stats.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = period)]
    pub scheduler_stats_every: Nanos,
}

/// How the programs of `--scheduler` run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct LoaderOptions {
    /// Whether the threads of --scheduler take CPU time of the simulated machine.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = LoaderCpu::Simulated)]
    pub loader_cpu: LoaderCpu,

    /// Let the program of --scheduler use the network.
    #[arg(long)]
    pub loader_net: bool,

    /// Folder in which the program of --scheduler may write. Default: it may write nowhere.
    #[arg(long, value_name = "FOLDER")]
    pub loader_dir: Option<PathBuf>,
}

/// Whether a loader's threads take CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LoaderCpu {
    /// They are tasks of the simulated machine, under the policy that they serve.
    #[default]
    Simulated,
    /// They take none, and stand in no table.
    Free,
}

impl LoaderOptions {
    /// As a question has them.
    pub fn asked(&self) -> ProgramOptions {
        ProgramOptions {
            free: self.loader_cpu == LoaderCpu::Free,
            net: self.loader_net,
            folder: self.loader_dir.clone(),
        }
    }
}

/// Reads a time that is not zero.
fn period(text: &str) -> Result<Nanos, String> {
    match span::parse(text)? {
        Nanos::ZERO => Err("expected a time longer than zero".to_owned()),
        period => Ok(period),
    }
}

impl Schedulers {
    /// A policy for each. A second one of a name is called `NAME#2`, so that each has files of its
    /// own.
    ///
    /// # Errors
    /// If a command has no words, or quotes that are not closed.
    pub fn policies(&self) -> anyhow::Result<Vec<PolicySpec>> {
        let several = self.commands.len() > 1;
        let mut all: Vec<PolicySpec> = Vec::new();
        for text in &self.commands {
            let mut policy = policy_of(text, &self.loader)?;
            let before = all.iter().filter(|it| is_namesake(it, &policy.name));
            if let others @ 1.. = before.count() {
                policy.name += &format!("#{}", others + 1);
            }
            let file = |path: &PathBuf| output::path_for(path, &policy.name, several);
            let (output, stats) = (
                self.loader_output.as_ref().map(file),
                self.scheduler_stats.as_ref().map(file),
            );
            if let Some(program) = &mut policy.program {
                program.output = output;
                program.stats = stats.map(|path| (path, self.scheduler_stats_every));
            }
            all.push(policy);
        }
        Ok(all)
    }

    /// The policy of a verb that runs one only; `None` if there is no such option.
    ///
    /// # Errors
    /// The errors of [`Schedulers::policies`], and if there are several.
    pub fn one(&self) -> anyhow::Result<Option<PolicySpec>> {
        if self.commands.len() > 1 {
            let message = "give one --scheduler: only one policy runs here";
            return Err(UsageError::new(message).into());
        }
        Ok(self.policies()?.pop())
    }

    /// Its files, for [`output::distinct`].
    pub fn files(&self) -> [(&'static str, Option<&Path>); 2] {
        [
            ("--loader-output", self.loader_output.as_deref()),
            ("--scheduler-stats", self.scheduler_stats.as_deref()),
        ]
    }
}

fn is_namesake(policy: &PolicySpec, name: &str) -> bool {
    let rest = policy.name.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
}

/// The policy that the program of a command attaches.
///
/// # Errors
/// If the command has no words, or quotes that are not closed.
pub fn policy_of(text: &str, options: &LoaderOptions) -> anyhow::Result<PolicySpec> {
    program::policy_of(text, &options.asked())
}

/// What starts schedulers' programs, if this computer can.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub const PROGRAMS: Option<&dyn Programs> = Some(&Supervising);
/// What starts schedulers' programs, if this computer can.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub const PROGRAMS: Option<&dyn Programs> = None;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
struct Supervising;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
impl Programs for Supervising {
    fn start(&self, program: &Program, spec: &RunSpec) -> anyhow::Result<StartedProgram> {
        Ok(supervised::Started::start(program, spec)?)
    }

    fn number_of_file(&self, command: &[String]) -> u128 {
        number_of_file(command)
    }
}

/// A number of the bytes of the program's file, for the keys of kept results; 0 if there is no such
/// file, which starting the program says better. The libraries that it loads are not in it.
pub fn number_of_file(command: &[String]) -> u128 {
    let file = find(command).ok();
    let bytes = file.and_then(|file| std::fs::read(file).ok());
    bytes.map_or(0, fingerprint)
}

/// The file of a command's program.
///
/// # Errors
/// If there is none.
pub fn find(command: &[String]) -> anyhow::Result<PathBuf> {
    let program = files::real(Path::new(&command[0]));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = if program.components().count() > 1 {
        vec![program.to_path_buf()]
    } else {
        std::env::split_paths(&path)
            .map(|it| it.join(&program))
            .collect()
    };
    let found = places.into_iter().find(|place| place.is_file());
    found.with_context(|| format!("cannot start {}: there is no such program", command[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namesakes_have_names_and_files_of_their_own() {
        let schedulers = Schedulers {
            commands: ["a -x", "/bin/a -x", "b"].map(str::to_owned).to_vec(),
            loader_output: Some("out.txt".into()),
            ..Schedulers::default()
        };
        let all = schedulers.policies().unwrap();
        let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a -x", "a -x#2", "b"]);
        let files = all.iter().map(|it| it.program.as_ref()?.output.clone());
        let files: Vec<_> = files.flatten().collect();
        let want = ["out.a--x.txt", "out.a--x-2.txt", "out.b.txt"];
        assert_eq!(files, want.map(PathBuf::from));
        assert!(schedulers.one().unwrap_err().is::<UsageError>());
    }

    #[test]
    fn a_program_whose_name_is_no_text_is_found() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;

        let folder = std::env::temp_dir().join(format!("scheduler-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(OsStr::from_bytes(b"odd \xff"));
        std::fs::write(&file, "").unwrap();
        let quoted = format!("'{}' -x", files::text_of(file.as_os_str()));
        let command = program::words(&quoted).unwrap();
        assert_eq!(find(&command).unwrap(), file);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn another_file_has_another_number() {
        let number = |name: &str| number_of_file(&[name.to_owned()]);
        assert_eq!(number("/no/such"), 0);
        assert_ne!(number("/bin/sh"), 0);
        assert_eq!(number("sh"), number("/bin/sh"));
        assert_ne!(number("/bin/sh"), number("/etc/hostname"));
    }
}
