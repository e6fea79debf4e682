//! A scheduler's own program in the place of a policy: supervised, written down, and played back.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bpf::Image;
use loader::recording::{Recorder, Recording, Replay};
use model::user_space::{
    ProgramEnd, ThreadId, ThreadKernel, ThreadTurn, UserSpace, UserSpaceError,
};
use model::{Advised, Nanos, PolicySpec, Program, Recorded, Sink, Summary};
use sim::{ProgramReport, Simulation};
use workload::RunSpec;

use crate::error::of_run;
use crate::error::{UnsupportedError, UsageError};
use crate::services::{Services, Supervised};

/// How a scheduler's own program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramOptions {
    /// Whether its threads take no CPU time of the simulated machine.
    pub free: bool,
    /// Whether it may use the network.
    pub net: bool,
    /// The folder in which it may write.
    pub folder: Option<PathBuf>,
}

/// The policy that the program of a command attaches.
///
/// # Errors
/// If the command has no words, or quotes that are not closed.
pub fn policy_of(text: &str, options: &ProgramOptions) -> anyhow::Result<PolicySpec> {
    let command = words(text)?;
    Ok(PolicySpec {
        name: name_of(&command),
        object: Arc::from([]),
        table: None,
        set: Vec::new(),
        setup: Vec::new(),
        program: Some(Program {
            command,
            free: options.free,
            net: options.net,
            folder: options.folder.clone(),
            ..Program::default()
        }),
        subs: Vec::new(),
    })
}

/// The words of a command, as a shell splits them.
///
/// # Errors
/// If there are none, or a quote is not closed.
pub fn words(text: &str) -> Result<Vec<String>, UsageError> {
    let command = shlex::split(text).filter(|words| !words.is_empty());
    command.ok_or_else(|| {
        UsageError::new(Advised::new(
            format!("--scheduler `{text}` is no command"),
            "expected words as in a shell, quotes closed",
        ))
    })
}

/// How tables call a scheduler: its program without the folder, and its arguments.
pub fn name_of(command: &[String]) -> String {
    let program = Path::new(&command[0]).file_name();
    let program = program.map_or_else(|| command[0].clone(), |it| it.to_string_lossy().into());
    let arguments = command[1..].iter().map(String::as_str);
    let words: Vec<&str> = std::iter::once(&*program).chain(arguments).collect();
    words.join(" ")
}

/// Lets `simulation` run the program of `spec`, and says in the summary's notes how it ended if
/// that is not as it should.
///
/// # Errors
/// If it cannot be started, if a recording does not fit, or as [`Simulation::start`].
pub fn run(
    services: &Services<'_>,
    (program, spec): (&Program, &RunSpec),
    simulation: Simulation<'_>,
) -> anyhow::Result<Summary> {
    if let Some(recorded) = &program.recorded {
        return replay(recorded, (program, spec), simulation);
    }
    let shared = started(services, program, spec)?;
    let result = start(simulation.with_program(Box::new(shared.clone()), program.free));
    let kept = shared.with(|started| started.close(program));
    let (mut summary, report) = result?;
    summary.notes.extend(note_of(&spec.policy.name, &report));
    summary.notes.push(calls_of(&report, &summary));
    summary.notes.extend(kept?);
    Ok(summary)
}

/// Image that the program of `spec` loads until it has attached its policy.
///
/// # Errors
/// If it cannot be started, or attaches none.
pub fn load(services: &Services<'_>, program: &Program, spec: &RunSpec) -> anyhow::Result<Image> {
    let shared = started(services, program, spec)?;
    let result = Simulation::new(spec)
        .with_program(Box::new(shared.clone()), program.free)
        .attach();
    let kept = shared.with(|started| started.close(program));
    let image = result?;
    kept.map(|_| image)
}

/// Runs the program of `spec` and writes it down. Without a `sink` it only attaches its policy, on
/// an idle machine, and there is no summary.
///
/// # Errors
/// The errors of [`run`].
pub fn record(
    services: &Services<'_>,
    program: &Program,
    spec: &RunSpec,
    sink: Option<&mut dyn Sink>,
) -> anyhow::Result<(Option<Summary>, Recorded)> {
    let setup_only = sink.is_none();
    let shared = Shared::new(Recorder::new(started(services, program, spec)?));
    let simulation = Simulation::new(spec).with_program(Box::new(shared.clone()), program.free);
    let result = match sink {
        None => simulation.attach().map(|_| None).map_err(Into::into),
        Some(sink) => start(simulation.with_sink(sink)).map(Some),
    };
    let kept = shared.with(|recorder| recorder.user_mut().with(|started| started.close(program)));
    let (result, kept) = (result?, kept?);
    let summary = result.map(|(mut summary, report)| {
        summary.notes.extend(note_of(&spec.policy.name, &report));
        summary.notes.extend(kept);
        summary
    });
    let recorder = shared.into_inner().context("the program still runs")?;
    let recorded = Recorded {
        bytes: recorder.finish().to_bytes().into(),
        setup_only,
    };
    Ok((summary, recorded))
}

fn replay(
    recorded: &Recorded,
    (program, spec): (&Program, &RunSpec),
    simulation: Simulation<'_>,
) -> anyhow::Result<Summary> {
    let name = &spec.policy.name;
    let recording = Recording::from_bytes(&recorded.bytes).with_context(|| name.clone())?;
    let replay = if recorded.setup_only {
        Replay::setup_only(recording)
    } else {
        Replay::new(recording)
    };
    let shared = Shared::new(replay);
    let simulation = simulation.with_program(Box::new(shared.clone()), program.free);
    let (mut summary, report) = start(simulation)?;
    // One at the end of the run is none of the simulated machine's errors.
    if let Some(difference) = shared.with(|replay| replay.difference().map(str::to_owned)) {
        bail!("{difference}");
    }
    summary.notes.extend(note_of(name, &report));
    Ok(summary)
}

/// Runs a program, and gives how both ended.
fn start(simulation: Simulation<'_>) -> anyhow::Result<(Summary, ProgramReport)> {
    let finished = simulation.start().map_err(of_run)?;
    let report = finished.program.context("the run has a program")?;
    Ok((finished.summary, report))
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

/// How much of a program's work was to be answered, which is what its run costs.
fn calls_of(report: &ProgramReport, summary: &Summary) -> String {
    let seconds = summary.end.as_nanos() as f64 / 1e9;
    let rate = report.calls as f64 / seconds.max(1e-9);
    format!(
        "its program made {} system calls in the run, {rate:.0} a simulated second",
        report.calls
    )
}

/// Starts the program of `spec`.
fn started(
    services: &Services<'_>,
    program: &Program,
    spec: &RunSpec,
) -> anyhow::Result<Shared<dyn Supervised>> {
    let Some(programs) = services.programs else {
        return Err(UnsupportedError::new(Advised::new(
            format!(
                "--scheduler `{}`: a scheduler's own program runs on Linux for x86-64 only",
                spec.policy.name
            ),
            "a bundle of it runs anywhere",
        ))
        .into());
    };
    programs.start(program, spec).map(Shared)
}

/// A program that the simulated machine drives and that is looked at afterwards.
struct Shared<U: ?Sized>(Rc<RefCell<U>>);

impl<U: ?Sized> Shared<U> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }

    fn with<T>(&self, body: impl FnOnce(&mut U) -> T) -> T {
        body(&mut self.0.borrow_mut())
    }
}

impl<U> Shared<U> {
    fn new(user: U) -> Self {
        Self(Rc::new(RefCell::new(user)))
    }

    /// `None` while the machine still has it.
    fn into_inner(self) -> Option<U> {
        Rc::into_inner(self.0).map(RefCell::into_inner)
    }
}

impl<U: UserSpace + ?Sized> UserSpace for Shared<U> {
    fn turn(
        &mut self,
        thread: ThreadId,
        now: Nanos,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<ThreadTurn, UserSpaceError> {
        self.0.borrow_mut().turn(thread, now, kernel)
    }

    fn woken(&mut self, kernel: &dyn ThreadKernel) -> Result<Vec<ThreadId>, UserSpaceError> {
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

    fn calls(&self) -> u64 {
        self.0.borrow().calls()
    }

    fn end(&self) -> Option<ProgramEnd> {
        self.0.borrow().end()
    }
}
