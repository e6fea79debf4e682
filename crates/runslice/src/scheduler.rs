//! A scheduler's own program in the place of a policy: `--scheduler 'scx_lavd --performance'`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use model::user_space::UserSpace;
use model::{PolicySpec, Program, Summary};
use sim::ProgramReport;
use workload::RunSpec;

use crate::exit::UsageError;

/// Schedulers that are run by their own programs.
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

    /// Whether the threads of --scheduler take CPU time of the simulated machine.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = LoaderCpu::Simulated)]
    pub loader_cpu: LoaderCpu,

    /// Let the program of --scheduler use the network.
    #[arg(long)]
    pub loader_net: bool,

    /// Folder in which the program of --scheduler may write. Default: it may write nowhere.
    #[arg(long, value_name = "FOLDER")]
    pub loader_dir: Option<PathBuf>,

    /// Write what the program of --scheduler prints to this file. With several, each gets its own
    /// file, with the program's name before the file's ending.
    #[arg(long, value_name = "FILE")]
    pub loader_output: Option<PathBuf>,
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

impl Schedulers {
    /// A policy for each.
    ///
    /// # Errors
    /// If a command has no words, or quotes that are not closed.
    pub fn policies(&self) -> anyhow::Result<Vec<PolicySpec>> {
        let several = self.commands.len() > 1;
        let commands = self.commands.iter();
        commands.map(|text| self.policy(text, several)).collect()
    }

    fn policy(&self, text: &str, several: bool) -> anyhow::Result<PolicySpec> {
        let command = shlex::split(text).filter(|words| !words.is_empty());
        let command = command.ok_or_else(|| {
            UsageError(format!(
                "--scheduler `{text}` is no command; expected words as in a shell, quotes closed"
            ))
        })?;
        let name = name_of(&command);
        let output = self.loader_output.as_deref();
        Ok(PolicySpec {
            name: name.clone(),
            object: Arc::from([]),
            table: None,
            set: Vec::new(),
            setup: Vec::new(),
            program: Some(Program {
                command,
                free: self.loader_cpu == LoaderCpu::Free,
                net: self.loader_net,
                folder: self.loader_dir.clone(),
                output: output.map(|path| crate::output::path_for(path, &name, several)),
            }),
        })
    }
}

/// Starts `program` on the machine of `spec`, lets `simulate` run it, and says in the summary's
/// notes how it ended if that is not as it should.
///
/// # Errors
/// If it cannot be started, or as `simulate`.
pub fn run(
    program: &Program,
    spec: &RunSpec,
    simulate: impl FnOnce((Box<dyn UserSpace>, bool)) -> anyhow::Result<(Summary, ProgramReport)>,
) -> anyhow::Result<Summary> {
    let started = Started::new(program, spec)?;
    let result = simulate((started.user(), program.free));
    let kept = started.keep_output(program.output.as_deref());
    let (mut summary, report) = result?;
    kept?;
    summary.notes.extend(note_of(&spec.policy.name, &report));
    summary.notes.extend(started.notes());
    Ok(summary)
}

/// What is to be said of a program's end.
fn note_of(name: &str, report: &ProgramReport) -> Option<String> {
    match &report.end {
        Some(end) if end.status == 0 => None,
        Some(end) => Some(format!(
            "{name} ended with status {}; its last lines:\n{}",
            end.status, end.last_lines
        )),
        None => Some(format!(
            "{name} did not end within 5 s of simulated time after it was asked to, and was \
             killed; {}",
            report.waits.join("; ")
        )),
    }
}

/// How tables call a scheduler: its program without the folder, and its arguments.
fn name_of(command: &[String]) -> String {
    let program = Path::new(&command[0]).file_name();
    let program = program.map_or_else(|| command[0].clone(), |it| it.to_string_lossy().into());
    let arguments = command[1..].iter().map(String::as_str);
    let words: Vec<&str> = std::iter::once(&*program).chain(arguments).collect();
    words.join(" ")
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use supervised::Started;

/// A program under supervision.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod supervised {
    use std::cell::RefCell;
    use std::fs;
    use std::path::Path;
    use std::rc::Rc;

    use anyhow::Context as _;
    use loader::{Settings, Shown, Supervisor};
    use model::user_space::{Kernel, ProgramEnd, ThreadId, Turn, UserSpace, UserSpaceError};
    use model::{Nanos, Program};
    use workload::RunSpec;

    /// The supervisor, which the simulated machine drives and whose files are read afterwards.
    #[derive(Clone)]
    pub struct Started(Rc<RefCell<Supervisor>>);

    impl Started {
        pub fn new(program: &Program, spec: &RunSpec) -> anyhow::Result<Self> {
            let settings = Settings {
                shown: Shown {
                    machine: spec.machine.clone(),
                    btf: sim::target(&spec.machine).btf().to_vec(),
                    cgroups: sim::cgroups(&spec.workload.cgroups),
                    files: Vec::new(),
                },
                folder: program.folder.clone(),
                net: program.net,
                ..Settings::default()
            };
            let (command, args) = program.command.split_first().expect("a command has a word");
            let supervisor = Supervisor::start(Path::new(command), args, settings)
                .with_context(|| format!("--scheduler `{}`", spec.policy.name))?;
            Ok(Self(Rc::new(RefCell::new(supervisor))))
        }

        /// The program, for the simulated machine.
        pub fn user(&self) -> Box<dyn UserSpace> {
            Box::new(self.clone())
        }

        /// What the program asked for and is not there, a line each.
        pub fn notes(&self) -> Vec<String> {
            self.0.borrow().summary()
        }

        /// Writes all that the program has printed to `path`.
        pub fn keep_output(&self, path: Option<&Path>) -> anyhow::Result<()> {
            let Some(path) = path else { return Ok(()) };
            let mut text = Vec::new();
            for file in self.0.borrow().output() {
                text.extend(fs::read(file).with_context(|| file.display().to_string())?);
            }
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
    }

    impl UserSpace for Started {
        fn turn(
            &mut self,
            thread: ThreadId,
            now: Nanos,
            kernel: &mut dyn Kernel,
        ) -> Result<Turn, UserSpaceError> {
            self.0.borrow_mut().turn(thread, now, kernel)
        }

        fn woken(&mut self, kernel: &dyn Kernel) -> Result<Vec<ThreadId>, UserSpaceError> {
            self.0.borrow_mut().woken(kernel)
        }

        fn is_waiting_for_files(&self) -> bool {
            self.0.borrow().is_waiting_for_files()
        }

        fn interrupt(&mut self) -> Result<Vec<ThreadId>, UserSpaceError> {
            self.0.borrow_mut().interrupt()
        }

        fn waits(&self) -> Vec<String> {
            self.0.borrow().waits()
        }

        fn end(&self) -> Option<ProgramEnd> {
            self.0.borrow().end()
        }
    }
}

/// Where no program can be supervised.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
struct Started;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
impl Started {
    fn new(_: &Program, spec: &RunSpec) -> anyhow::Result<Self> {
        Err(crate::exit::UnsupportedError(format!(
            "--scheduler `{}`: a scheduler's own program runs on Linux for x86-64 only",
            spec.policy.name
        ))
        .into())
    }

    fn user(&self) -> Box<dyn UserSpace> {
        unreachable!("nothing was started")
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn keep_output(&self, _: Option<&Path>) -> anyhow::Result<()> {
        Ok(())
    }
}
