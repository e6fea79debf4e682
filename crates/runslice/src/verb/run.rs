//! `runslice run POLICY [-- COMMAND]`.

mod command;
mod constants;
mod outcome;
mod replace;
mod restarts;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use live::pins::Pins;
use live::preflight::{self, Facts, Finding, Severity, function_faults};
use live::{Attached, Dump, Ending, Loaded, Policy, State, Tree, process};
use model::{Nanos, PolicySpec};

use crate::cli::{Status, UnsupportedError, UsageError};
use crate::session::{self, Found, Place, Record, Session};
use crate::tunables::Tunables;
use crate::verb::doctor;
use crate::verb::status::Form;
use crate::{policy, span};
use command::Child;
use outcome::Outcome;
use restarts::Restarts;

/// From one look at policy, command and signals to the next.
const PAUSE: Duration = Duration::from_millis(50);
/// From one look at counters that go away with the policy to the next.
const SAMPLE: Duration = Duration::from_secs(1);

/// How long a policy that is not shipped may leave a task waiting; the kernel's own limit is 30 s.
const WATCHDOG: Duration = Duration::from_secs(5);

/// What `runslice run` is asked.
#[derive(Debug, Args)]
pub struct Run {
    /// Policy: a built-in name or the path of a .bpf.o, with knobs behind a colon, such as
    /// `mlfq:guard_ms=10000`.
    #[arg(value_name = "POLICY")]
    policy: String,

    /// Detaches after this time; a command goes on without the policy.
    #[arg(long = "for", value_name = "SPAN", value_parser = span::parse)]
    duration: Option<Nanos>,

    /// Leaves all tasks to the kernel's own scheduler but those that ask for `SCHED_EXT`; the
    /// command does. They run when no other task wants the CPU.
    #[arg(long)]
    partial: bool,

    /// Stops the service that has attached another policy, and starts it again afterwards.
    #[arg(long)]
    replace: bool,

    /// Attaches although groups of processes have quotas, which then do not hold.
    #[arg(long)]
    ignore_cgroups: bool,

    /// Attaches to a kernel that nobody has tried, or that describes its functions wrongly.
    #[arg(long)]
    untested: bool,

    /// Folder for the kernel's dump of a policy that is ejected.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dumps: PathBuf,

    /// Form of the results.
    #[arg(long, value_enum, default_value_t = Form::Human)]
    format: Form,

    /// Looks at the files of another system below this folder before attaching.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,

    /// Detaches when this command ends.
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
    spec: PolicySpec,
    knobs: Vec<(String, Vec<u8>)>,
}

/// Attaches the policy, waits for its end, detaches it and says what came of it.
///
/// # Errors
/// When the machine is unsuitable, the object is refused, or the command cannot be started.
pub fn run(request: &Run) -> anyhow::Result<Status> {
    let spec = policy::find(&request.policy)?;
    let job = Job {
        request,
        knobs: knobs(&spec)?,
        spec,
    };
    let place = Place::below(&request.root);
    if let Found::Left(record) = place.find()? {
        say(&left_said(record.as_deref()));
    }
    let holder = preflight(request, &job.spec)?;
    process::catch_signals();
    if let Err(error) = process::lock_memory() {
        say(&format!(
            "cannot keep its memory from being swapped: {error}"
        ));
    }
    let session = Session::begin(&place)?;
    // The verifier speaks before anything of somebody else's is stopped.
    let loaded = job.load()?;
    let replaced = holder.map(replace::stop).transpose()?;
    let mut record = Record {
        is_partial: request.partial,
        set: job.spec.set.clone(),
        replaced: replaced.as_ref().map(|it| it.unit().to_owned()),
        ..Record::of_this_process(&job.spec.name)
    };
    let result = job.attend(loaded, &mut record, &session, &place);
    drop(session);
    if let Some(replaced) = replaced {
        replaced.start_again();
    }
    result
}

/// Whether the object is one of those that are built in.
fn is_shipped(spec: &PolicySpec) -> bool {
    policies::ALL
        .iter()
        .any(|policy| policy.object == &*spec.object)
}

/// The knobs' values as they lie in memory, checked against type and limits: those that the user
/// set, and those for kernels of the others.
pub fn knobs(spec: &PolicySpec) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut tunables = match Tunables::of(&spec.name, &spec.object) {
        Ok(tunables) => tunables,
        // A kernel may know what this program does not; only values need the latter.
        Err(error) if spec.set.is_empty() => {
            say(&format!("its knobs are not known here: {error:#}"));
            return Ok(constants::constants(spec));
        }
        Err(error) => return Err(error),
    };
    let usage = |error| UsageError(format!("{}: {error}", spec.name));
    let mut values = tunables.set_for_kernel().map_err(usage)?;
    values.extend(constants::constants(spec));
    for (name, text) in &spec.set {
        let (_, bytes) = tunables.set(name, text).map_err(usage)?;
        values.retain(|(known, _)| known != name);
        values.push((name.clone(), bytes));
    }
    Ok(values)
}

/// Says what would change, and refuses what cannot work. Returns whoever must go first.
fn preflight(request: &Run, spec: &PolicySpec) -> anyhow::Result<Option<live::Holder>> {
    let mut facts = Facts::below(&request.root);
    let holder = facts
        .holder
        .clone()
        .filter(|holder| request.replace && holder.can_be_replaced());
    if holder.is_some() {
        facts.state = Some(State::Disabled);
    }
    let mut findings = preflight::judge(&facts);
    if facts.state.is_some() {
        let faults = function_faults(&request.root, &spec.object);
        findings.extend(faults.iter().map(|fault| fault.finding(&facts.release)));
    }
    let refuses = |finding: &&Finding| match finding.severity {
        Severity::Blocks => true,
        Severity::Untested => !request.untested,
        Severity::Breaks => !request.ignore_cgroups,
        Severity::Changes => false,
    };
    let (refused, notes): (Vec<_>, Vec<_>) = findings.iter().partition(refuses);
    for finding in notes {
        say(&doctor::told(finding));
    }
    refuse(&refused)?;
    Ok(holder)
}

/// An error with what stands in the way and the ways out, if anything does.
pub fn refuse(refused: &[&Finding]) -> Result<(), UnsupportedError> {
    if refused.is_empty() {
        return Ok(());
    }
    let words: Vec<_> = refused
        .iter()
        .map(|it| format!("{}\n  {}", it.what, it.way_out))
        .collect();
    Err(UnsupportedError(words.join("\n")))
}

/// Opens the object and sets its variables; one that is not shipped gets a short watchdog.
pub fn open(spec: &PolicySpec, knobs: &[(String, Vec<u8>)]) -> anyhow::Result<Policy> {
    let mut policy = Policy::open(&spec.name, &spec.object, spec.table.as_deref())?;
    for (name, value) in knobs {
        policy.set_global(name, value)?;
    }
    if !is_shipped(spec) {
        policy.limit_watchdog(WATCHDOG)?;
    }
    Ok(policy)
}

impl Job<'_> {
    /// Opens the object anew, sets its variables and gives it to the verifier.
    fn load(&self) -> anyhow::Result<Loaded> {
        let mut policy = open(&self.spec, &self.knobs)?;
        if self.request.partial {
            policy.switch_partial()?;
        }
        Ok(policy.load()?)
    }

    /// Attaches, starts the command, and stays until the end, through restarts.
    fn attend(
        &self,
        loaded: Loaded,
        record: &mut Record,
        session: &Session,
        place: &Place,
    ) -> anyhow::Result<Status> {
        let (request, name) = (self.request, &self.spec.name);
        let tree = self.follow();
        let mut outcome = Outcome::new(&self.spec, &request.command);
        let mut child: Option<Child> = None;
        let mut restarts = Restarts::default();
        let mut loaded = Some(loaded);
        let began = Instant::now();
        let reason = loop {
            let dump = listen(&request.root);
            let held = match loaded.take() {
                Some(loaded) => loaded.attach().map_err(Into::into),
                None => self.load().and_then(|loaded| Ok(loaded.attach()?)),
            };
            let mut attached = match held {
                Ok(attached) => attached,
                Err(error) => {
                    // The command has the kernel's own scheduler and may end under it.
                    command::end(child, &Reason::Ejected);
                    return Err(error);
                }
            };
            let pins = share(&mut attached, place, session, record, &self.spec);
            if restarts.count() == 0 {
                self.announce();
                child = match command::start(&request.command, request.partial) {
                    Ok(child) => child,
                    Err(error) => {
                        attached.detach()?;
                        return Err(error);
                    }
                };
            }
            let (reason, events) = self.wait(&attached, child.as_mut(), began);
            outcome.add(attached.counters()?, events);
            drop(pins);
            let ending = attached.detach()?;
            let again = matches!(reason, Reason::Ejected)
                && ending.as_ref().is_some_and(Ending::asks_for_restart);
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
                outcome.ejection = Some(format!(
                    "more than {} restarts in a minute: {}",
                    restarts::MOST,
                    cause(ending.as_ref())
                ));
            }
            if let Some(cause) = &outcome.ejection {
                say(&format!("{name} was ejected: {cause}"));
                outcome.dump = dump.and_then(|dump| keep(&dump, &request.dumps, name));
            }
            break reason;
        };
        outcome.ran = began.elapsed();
        outcome.restarts = restarts.count();
        say(&format!(
            "the kernel's own scheduler is back after {:.3} s under {name}",
            outcome.ran.as_secs_f64()
        ));
        self.finish(outcome, &reason, child, tree.as_ref())
    }

    /// Waits for the command, says what came of it all, and finds the status.
    fn finish(
        &self,
        mut outcome: Outcome,
        reason: &Reason,
        child: Option<Child>,
        tree: Option<&Tree>,
    ) -> anyhow::Result<Status> {
        outcome.end = command::end(child, reason);
        if outcome.end.is_some() {
            outcome.tree = tree.map(Tree::counts).transpose()?;
        }
        let mut to = io::stdout().lock();
        outcome.write(self.request.format, &mut to)?;
        to.flush()?;
        let failed = outcome.end.filter(|end| !end.status.success());
        if let Some(end) = failed {
            say(&format!("the command ended with {}", end.status));
        }
        Ok(match reason {
            _ if outcome.ejection.is_some() => Status::Ejected,
            Reason::Signal => Status::Interrupted,
            _ if failed.is_some() => Status::Failure,
            _ => Status::Done,
        })
    }

    /// Follows what the command will start; without it there is nothing to follow.
    fn follow(&self) -> Option<Tree> {
        if self.request.command.is_empty() {
            return None;
        }
        match Tree::of_this_process() {
            Ok(tree) => Some(tree),
            Err(error) => {
                say(&format!("no figures of the command's tasks: {error}"));
                None
            }
        }
    }

    fn announce(&self) {
        let name = &self.spec.name;
        let who = match self.request.partial {
            false => format!("{name} is the scheduler"),
            true => format!(
                "{name} schedules tasks that ask for SCHED_EXT, which run when no other task \
                 wants the CPU"
            ),
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
        mut child: Option<&mut Child>,
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
            if child.as_mut().is_some_and(|child| child.has_ended()) {
                break Reason::Command;
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
            thread::sleep(PAUSE);
        };
        if is_seen {
            line.end();
        }
        let events = newest(attached, events);
        (reason, events)
    }
}

/// The kernel's counters now, or the last that were seen where they are gone.
fn newest(attached: &Attached, before: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let now = attached.events();
    if now.is_empty() { before } else { now }
}

/// Makes the policy's data reachable for `set`, `status` and `stop`. What cannot be shared is no
/// reason to detach.
fn share(
    attached: &mut Attached,
    place: &Place,
    session: &Session,
    record: &mut Record,
    spec: &PolicySpec,
) -> Option<Pins> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    record.since_unix_s = now.map_or(0, |now| now.as_secs());
    record.sequence = attached.sequence();
    record.counters = attached.counter_names().unwrap_or_default();
    if let Err(error) = session.write(record, &spec.object) {
        say(&format!(
            "runslice status and stop will not know it: {error:#}"
        ));
    }
    match attached.pin(&place.pins()) {
        Ok(pins) => Some(pins),
        Err(error) => {
            say(&format!("runslice set will not reach it: {error}"));
            None
        }
    }
}

/// Listens for the dump of an ejected policy.
fn listen(root: &Path) -> Option<Dump> {
    match Dump::listen(root, session::TRACE) {
        Ok(dump) => Some(dump),
        Err(error) => {
            say(&format!("an ejection would leave no dump: {error}"));
            None
        }
    }
}

/// Saves the dump and says where it is.
fn keep(dump: &Dump, folder: &Path, name: &str) -> Option<PathBuf> {
    let kept = dump.text().map_err(anyhow::Error::from).and_then(|text| {
        if text.is_empty() {
            return Ok(None);
        }
        outcome::keep(folder, name, &text).map(Some)
    });
    match kept {
        Ok(Some(path)) => {
            say(&format!("the kernel's dump is in {}", path.display()));
            Some(path)
        }
        Ok(None) => {
            say("the kernel gave no dump");
            None
        }
        Err(error) => {
            say(&format!("the kernel's dump is lost: {error:#}"));
            None
        }
    }
}

/// The cause, if the kernel has ended the policy.
fn ejection(reason: &Reason, ending: Option<&Ending>) -> Option<String> {
    match ending {
        Some(ending) if ending.is_normal() => None,
        Some(_) => Some(cause(ending)),
        None if matches!(reason, Reason::Ejected) => Some(cause(None)),
        None => None,
    }
}

/// Why the kernel ended a policy, in one line.
fn cause(ending: Option<&Ending>) -> String {
    match ending {
        Some(Ending {
            reason,
            message,
            kind,
            ..
        }) if message.is_empty() => format!("{reason} (kind {kind})"),
        Some(Ending {
            reason,
            message,
            kind,
            ..
        }) => format!("{reason}: {message} (kind {kind})"),
        None => "the policy does not say why; the kernel's log does".to_owned(),
    }
}

/// What is known of one that was killed.
pub fn left_said(record: Option<&Record>) -> String {
    let Some(Record {
        policy,
        pid,
        replaced,
        ..
    }) = record
    else {
        return "removed what a killed runslice had left".to_owned();
    };
    let service = replaced.as_ref().map_or_else(String::new, |unit| {
        format!("; it had stopped {unit}: systemctl start {unit} brings that back")
    });
    format!("removed what process {pid} with {policy} had left, which was killed{service}")
}

fn say(text: &str) {
    // Nobody can be told when standard error is closed too.
    let _ = writeln!(io::stderr(), "run: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_normal_end_is_no_ejection() {
        let ending = |kind| Ending {
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

    #[test]
    fn a_kernel_gets_the_values_for_kernels_unless_the_user_says_otherwise() {
        let read = |text: &str| {
            let mut values = knobs(&policy::find(text).unwrap()).unwrap();
            values.sort();
            values
        };
        let guard = |limit: u32| ("guard_ms".to_owned(), limit.to_le_bytes().to_vec());
        let fast = |on: u8| ("kthreads_fast".to_owned(), vec![on]);
        assert_eq!(read("mlfq"), [guard(8000), fast(1)]);
        assert_eq!(read("mlfq:guard_ms=0"), [guard(0), fast(1)]);
        let set = read("mlfq:kthreads_fast=0,queues=3");
        let queues = ("queues".to_owned(), 3_u32.to_le_bytes().to_vec());
        assert_eq!(set, [guard(8000), fast(0), queues]);
    }

    #[test]
    fn knobs_are_checked_before_a_kernel_sees_them() {
        let read = |text: &str| knobs(&policy::find(text).unwrap());
        let want = vec![("slice_ns".to_owned(), 5_000_000_u64.to_le_bytes().to_vec())];
        assert_eq!(read("fifo:slice_ns=5000000").unwrap(), want);
        for bad in ["fifo:slice_ns=1", "fifo:slices=5", "fifo:slice_ns=x"] {
            assert!(read(bad).unwrap_err().is::<UsageError>(), "{bad}");
        }
    }

    #[test]
    fn an_object_that_only_a_kernel_knows_is_refused_only_when_a_value_is_to_be_set() {
        let mut spec = policy::find("fifo").unwrap();
        spec.object = std::sync::Arc::from(&b"nothing"[..]);
        assert_eq!(knobs(&spec).unwrap(), []);
        spec.set = vec![("slice_ns".to_owned(), "5000".to_owned())];
        knobs(&spec).unwrap_err();
    }

    #[test]
    fn whoever_was_killed_is_named_with_the_service_that_it_had_stopped() {
        let record = Record {
            pid: 31,
            replaced: Some("scx.service".to_owned()),
            ..Record::of_this_process("mlfq")
        };
        let said = left_said(Some(&record));
        let want = "removed what process 31 with mlfq had left, which was killed; it had stopped \
                    scx.service: systemctl start scx.service brings that back";
        assert_eq!(said, want);
        assert!(left_said(None).contains("a killed runslice"));
    }
}
