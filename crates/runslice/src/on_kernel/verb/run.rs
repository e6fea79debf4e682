//! `runslice run POLICY [-- COMMAND]`.

mod outcome;
mod replace;
mod restarts;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use live::{Attached, Loaded, PolicyEnding, ProcessTree, Timed, process};
use model::{Advised, Nanos, PolicySpec};
use show::format::MEASURED;

use crate::computer::COMPUTER;
use crate::exit::{Status, UnsupportedError};
use crate::interrupt;
use crate::on_kernel::attach::{self, AttachArgs, Attaching, cause};
use crate::on_kernel::command;
use crate::on_kernel::dumps;
use crate::on_kernel::loader::Loader;
use crate::on_kernel::session::{Session, SessionPaths, SessionRecord};
use crate::policy;
use crate::report::{Format, format_of};
use crate::scheduler::{self, LoaderOptions};
use model::span;
use outcome::RunOutcome;
use restarts::Restarts;

/// From one look at policy, command and signals to the next.
const PAUSE: Duration = Duration::from_millis(50);
/// From one look at counters that go away with the policy to the next.
const SAMPLE: Duration = Duration::from_secs(1);

/// Arguments of `runslice run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Policy to attach: a built-in name or the path of a .bpf.o, with knobs after a colon, such as
    /// `mlfq:guard_ms=10000`.
    #[arg(value_name = "POLICY", required_unless_present = "scheduler")]
    policy: Option<String>,

    /// Run a scheduler's own program instead, for example `--scheduler 'scx_lavd --performance'`:
    /// wait until it has attached its policy, and interrupt it at the end. It runs as root.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["policy", "partial"])]
    scheduler: Option<String>,

    /// Write what the program of --scheduler prints to this file. Default: only its last lines are
    /// shown, if it fails.
    #[arg(long, value_name = "FILE", requires = "scheduler")]
    loader_output: Option<PathBuf>,

    /// Detach after this time, such as 10s. A command that still runs continues without the policy.
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    duration: Option<Nanos>,

    /// Schedule only tasks of the class `SCHED_EXT`. The command gets this class. These tasks run
    /// only when no other task wants the CPU.
    #[arg(long)]
    partial: bool,

    /// Stop the service that has attached another policy, and start it again at the end.
    #[arg(long)]
    replace: bool,

    #[command(flatten)]
    how: AttachArgs,

    /// Output format.
    #[arg(long, value_parser = format_of(MEASURED), default_value_t = Format::Human)]
    format: Format,

    /// Command to run under the policy. The policy is detached when it ends.
    #[arg(last = true)]
    command: Vec<String>,
}

/// Why the policy was no longer needed, or no longer there.
#[derive(Debug)]
enum Reason {
    /// Its time was over.
    Time,
    /// The command ended.
    Command,
    /// A signal came.
    Signal,
    /// The kernel ended it.
    Ejected,
}

/// A policy that can be loaded, more than once if it asks for that.
struct Job<'a> {
    request: &'a Run,
    attaching: Attaching<'a>,
    spec: PolicySpec,
    knobs: Vec<(String, Vec<u8>)>,
}

impl Run {
    fn attaching(&self) -> Attaching<'_> {
        self.how.attaching("run", self.replace)
    }
}

/// Attaches the policy, waits for its end, detaches it and says what came of it.
///
/// # Errors
/// When the machine is unsuitable, the object is refused, or the command cannot be started.
pub fn run(request: &Run) -> anyhow::Result<Status> {
    if let Some(text) = &request.scheduler {
        return run_program(request, text);
    }
    let spec = policy::find(&COMPUTER, request.policy.as_deref().unwrap_or_default())?;
    let attaching = request.attaching();
    let job = Job {
        request,
        attaching,
        knobs: attaching.knobs(&spec)?,
        spec,
    };
    command::check(&request.command)?;
    let place = SessionPaths::below(&request.how.root);
    attaching.clean(&place)?;
    let holder = attaching.preflight(&job.spec)?;
    process::catch_signals();
    attaching.stay_in_memory();
    let session = Session::begin(&place)?;
    // The verifier speaks before anything of somebody else's is stopped.
    let loaded = job.load()?;
    if process::signal().is_some() {
        return Ok(Status::Interrupted);
    }
    let replaced = holder.map(replace::stop).transpose()?;
    let mut record = SessionRecord {
        is_partial: request.partial,
        set: job.spec.set.clone(),
        replaced: replaced.as_ref().map(|it| it.unit().to_owned()),
        ..SessionRecord::of_this_process(&job.spec.name)
    };
    let result = job.attend(loaded, &mut record, &session);
    drop(session);
    if let Some(replaced) = replaced {
        replaced.start_again();
    }
    result
}

impl Job<'_> {
    /// Opens the object anew, sets its variables and gives it to the verifier.
    fn load(&self) -> anyhow::Result<Loaded> {
        let mut policy = attach::open(&self.spec, &self.knobs)?;
        if self.request.partial {
            policy.switch_partial()?;
        }
        Ok(policy.load()?)
    }

    /// Attaches, starts the command, and stays until the end, through restarts.
    fn attend(
        &self,
        loaded: Loaded,
        record: &mut SessionRecord,
        session: &Session,
    ) -> anyhow::Result<Status> {
        let (request, attaching, name) = (self.request, &self.attaching, &self.spec.name);
        let tree = follow(&request.command);
        let mut outcome = RunOutcome::new(&self.spec, &request.command);
        let mut child: Option<Timed> = None;
        let mut restarts = Restarts::default();
        let mut loaded = Some(loaded);
        let began = Instant::now();
        // One for all times that it is loaded. It goes last: what removes it must not be counted
        // as a task of the command.
        let dump = dumps::listen(attaching);
        let reason = loop {
            let held = match loaded.take() {
                Some(loaded) => loaded.attach().map_err(Into::into),
                None => self.load().and_then(|loaded| Ok(loaded.attach()?)),
            };
            let mut attached = match held {
                Ok(attached) => attached,
                Err(error) => {
                    // The command has the kernel's own scheduler and may end under it.
                    command::end(child, false)?;
                    return Err(error);
                }
            };
            let pins = attaching.share(&mut attached, session, record, &self.spec);
            if restarts.count() == 0 {
                self.announce();
                child = match command::start(&request.command, request.partial) {
                    Ok(child) => child,
                    Err(error) => {
                        attached.detach()?;
                        say("the kernel's own scheduler is back");
                        return Err(error);
                    }
                };
            }
            let (reason, events) = self.wait(&attached, child.as_mut(), began);
            outcome.add(attached.counters()?, events);
            drop(pins);
            let ending = attached.detach()?;
            let again = matches!(reason, Reason::Ejected)
                && ending.as_ref().is_some_and(PolicyEnding::asks_for_restart);
            if again && restarts.allow(Instant::now()) {
                record.restarts = restarts.count();
                say(&format!(
                    "{name} is loaded again: {}",
                    cause(ending.as_ref())
                ));
                continue;
            }
            outcome.ejection = ejection(&reason, ending.as_ref());
            if again {
                outcome.ejection = Some(too_often(ending.as_ref()));
            }
            if let Some(cause) = &outcome.ejection {
                say(&format!("{name} was ejected: {cause}"));
                let dump = dump.as_ref();
                outcome.dump =
                    dump.and_then(|dump| dumps::keep(attaching, dump, &request.how.dumps, name));
            }
            break reason;
        };
        outcome.ran = began.elapsed();
        outcome.restarts = restarts.count();
        say(&format!(
            "the kernel's own scheduler is back after {:.3} s under {name}",
            outcome.ran.as_secs_f64()
        ));
        let status = request.finish(outcome, &reason, child, tree.as_ref());
        dumps::forget(attaching, dump);
        status
    }

    fn announce(&self) {
        let name = &self.spec.name;
        let who = if self.request.partial {
            format!(
                "{name} schedules tasks that ask for SCHED_EXT, which run when no other task \
                 wants the CPU"
            )
        } else {
            format!("{name} is the scheduler")
        };
        say(&format!(
            "{who}; SysRq-S brings the kernel's own back in an emergency"
        ));
    }

    /// Watches until something ends the policy's time. Returns the kernel's counters, too, which
    /// go away with the policy.
    fn wait(
        &self,
        attached: &Attached,
        mut child: Option<&mut Timed>,
        began: Instant,
    ) -> (Reason, Vec<(String, u64)>) {
        let is_seen = child.is_none() && io::stderr().is_terminal();
        let mut line = outcome::Line::default();
        let mut events = attached.events();
        let mut sampled = Instant::now();
        let reason = loop {
            if !attached.is_alive() {
                break Reason::Ejected;
            }
            if process::signal().is_some() {
                break Reason::Signal;
            }
            let limit = self.request.duration;
            if limit.is_some_and(|limit| began.elapsed() >= Duration::from_nanos(limit.get())) {
                break Reason::Time;
            }
            if sampled.elapsed() >= SAMPLE {
                sampled += SAMPLE;
                events = newest(attached, events);
                if is_seen {
                    line.show(began.elapsed(), &attached.counters().unwrap_or_default());
                }
            }
            match &mut child {
                // That it cannot be watched is told when its end is waited for.
                Some(child) => {
                    if !matches!(child.wait(PAUSE), Ok(None)) {
                        break Reason::Command;
                    }
                }
                None => thread::sleep(PAUSE),
            }
        };
        if is_seen {
            line.end();
        }
        let events = newest(attached, events);
        (reason, events)
    }
}

impl Run {
    /// Waits for the command, says what came of it all, and finds the status.
    fn finish(
        &self,
        mut outcome: RunOutcome,
        reason: &Reason,
        child: Option<Timed>,
        tree: Option<&ProcessTree>,
    ) -> anyhow::Result<Status> {
        outcome.end = command::end(child, matches!(reason, Reason::Signal))?;
        if outcome.end.is_some() {
            outcome.tree = tree.map(ProcessTree::counts).transpose()?;
        }
        let mut to = io::stdout().lock();
        outcome.write(self.format, &mut to)?;
        to.flush()?;
        let failed = outcome.end.filter(|end| !end.status.success());
        if let Some(end) = failed {
            say(&format!("the command ended with {}", end.status));
        }
        Ok(match reason {
            _ if outcome.ejection.is_some() => Status::Ejected,
            Reason::Signal => {
                interrupt::keeps_results();
                Status::Interrupted
            }
            _ if failed.is_some() => Status::Failure,
            _ => Status::Done,
        })
    }
}

/// Follows what the command will start; without it there is nothing to follow.
fn follow(command: &[String]) -> Option<ProcessTree> {
    if command.is_empty() {
        return None;
    }
    match ProcessTree::of_this_process() {
        Ok(tree) => Some(tree),
        Err(error) => {
            say(&format!("no figures of the command's tasks: {error}"));
            None
        }
    }
}

/// Starts the program, stays until the end, and sees the kernel's own scheduler back.
///
/// # Errors
/// When the machine is unsuitable, the program attaches nothing, or it cannot be stopped.
fn run_program(request: &Run, text: &str) -> anyhow::Result<Status> {
    let spec = scheduler::policy_of(text, &LoaderOptions::default())?;
    let words = ask::program::words(text)?;
    scheduler::find(&words)?;
    command::check(&request.command)?;
    if !process::is_root() {
        let way = Advised::new(
            "a scheduler's program attaches its policy, which takes root: try sudo, or \
             `runslice vm -- runslice run --scheduler ...`",
            "`runslice sim` needs neither",
        );
        return Err(UnsupportedError::new(way).into());
    }
    let attaching = request.attaching();
    attaching.clean(&SessionPaths::below(&request.how.root))?;
    let holder = attaching.preflight(&spec)?;
    process::catch_signals();
    attaching.stay_in_memory();
    let replaced = holder.map(replace::stop).transpose()?;
    let record = SessionRecord {
        replaced: replaced.as_ref().map(|it| it.unit().to_owned()),
        ..SessionRecord::of_this_process(&spec.name)
    };
    let result = attend_program(request, (&spec, record), &words);
    if let Some(replaced) = replaced {
        replaced.start_again();
    }
    result
}

fn attend_program(
    request: &Run,
    (spec, record): (&PolicySpec, SessionRecord),
    words: &[String],
) -> anyhow::Result<Status> {
    let name = &spec.name;
    let folder = folder::OwnFolder::new()?;
    let printed = folder.join("scheduler.log");
    let output = request.loader_output.as_deref().unwrap_or(&printed);
    let mut outcome = RunOutcome::new(spec, &request.command);
    let mut loader = Loader::start(name, words, output)?;
    let session = request.attaching().share_program(record);
    let tree = follow(&request.command);
    let began = Instant::now();
    say(&format!(
        "{name} is the scheduler; SysRq-S brings the kernel's own back in an emergency"
    ));
    let mut child = match command::start(&request.command, false) {
        Ok(child) => child,
        Err(error) => {
            loader.stop()?;
            say("the kernel's own scheduler is back");
            return Err(error);
        }
    };
    let reason = wait_for_program(request, &mut loader, child.as_mut(), began)?;
    outcome.ejection = loader.stop()?;
    drop(session);
    outcome.ran = began.elapsed();
    if let Some(why) = &outcome.ejection {
        say(&format!("{name} {why}"));
    }
    say(&format!(
        "the kernel's own scheduler is back after {:.3} s under {name}",
        outcome.ran.as_secs_f64()
    ));
    request.finish(outcome, &reason, child, tree.as_ref())
}

/// Waits until something ends the policy's time.
fn wait_for_program(
    request: &Run,
    loader: &mut Loader,
    mut child: Option<&mut Timed>,
    began: Instant,
) -> anyhow::Result<Reason> {
    loop {
        if loader.death()?.is_some() {
            return Ok(Reason::Ejected);
        }
        if process::signal().is_some() {
            return Ok(Reason::Signal);
        }
        let limit = request.duration;
        if limit.is_some_and(|limit| began.elapsed() >= Duration::from_nanos(limit.get())) {
            return Ok(Reason::Time);
        }
        match &mut child {
            // That it cannot be watched is told when its end is waited for.
            Some(child) => {
                if !matches!(child.wait(PAUSE), Ok(None)) {
                    return Ok(Reason::Command);
                }
            }
            None => thread::sleep(PAUSE),
        }
    }
}

/// The kernel's counters now, or the last that were seen where they are gone.
fn newest(attached: &Attached, before: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let now = attached.events();
    if now.is_empty() { before } else { now }
}

/// The cause, if the kernel has ended the policy.
fn ejection(reason: &Reason, ending: Option<&PolicyEnding>) -> Option<String> {
    match ending {
        Some(ending) if ending.is_normal() => None,
        Some(_) => Some(cause(ending)),
        None if matches!(reason, Reason::Ejected) => Some(cause(None)),
        None => None,
    }
}

/// The cause, if the policy has asked for one restart too many.
fn too_often(ending: Option<&PolicyEnding>) -> String {
    format!(
        "more than {} restarts in a minute: {}",
        restarts::MOST,
        cause(ending)
    )
}

fn say(text: &str) {
    crate::say::say("run", text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_normal_end_is_no_ejection() {
        let ending = |kind| PolicyEnding {
            kind,
            code: 0,
            reason: "runnable task stall".to_owned(),
            message: "x[7] failed to run for 5.0s".to_owned(),
        };
        assert_eq!(ejection(&Reason::Time, Some(&ending(64))), None);
        assert_eq!(
            ejection(&Reason::Ejected, Some(&ending(1026))).unwrap(),
            "runnable task stall: x[7] failed to run for 5.0s (kind 1026)"
        );
        assert!(ejection(&Reason::Ejected, None).is_some());
        assert_eq!(ejection(&Reason::Time, None), None);
    }
}
