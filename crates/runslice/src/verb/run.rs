//! `runslice run POLICY [-- COMMAND]`.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use bpf::Object;
use clap::Args;
use live::preflight::{self, Facts, Severity};
use live::{Attached, Ending, Policy, process};
use model::{Kernel, Nanos, PolicySpec};

use crate::cli::{Status, UnsupportedError, UsageError};
use crate::verb::doctor;
use crate::{kernel, policy, span};

/// From one look at policy, command and signals to the next.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// How long a policy that is not shipped may leave a task waiting; the kernel's own limit is 30 s.
pub const WATCHDOG: Duration = Duration::from_secs(5);

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

    /// Attaches although groups of processes have quotas, which then do not hold.
    #[arg(long)]
    ignore_cgroups: bool,

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
    /// The command ended so.
    Command(ExitStatus),
    /// A signal came.
    Signal,
    /// The kernel ended it.
    Ejected,
}

/// Attaches the policy, waits for its end, detaches it and says what came of it.
///
/// # Errors
/// When the machine is unsuitable, the object is refused, or the command cannot be started.
pub fn run(request: &Run) -> anyhow::Result<Status> {
    let spec = policy::find(&request.policy)?;
    let knobs = knobs(&spec)?;
    preflight(request)?;
    process::catch_signals();
    if let Err(error) = process::lock_memory() {
        say(&format!(
            "cannot keep its memory from being swapped: {error}"
        ));
    }
    let mut policy = Policy::open(&spec.name, &spec.object, spec.table.as_deref())?;
    for (name, value) in &knobs {
        policy.set_global(name, value)?;
    }
    if !is_shipped(&spec) {
        policy.limit_watchdog(WATCHDOG)?;
    }
    let attached = policy.load()?.attach()?;
    say(&format!(
        "{} is the scheduler; SysRq-S brings the kernel's own back in an emergency",
        spec.name
    ));
    let began = Instant::now();
    let mut child = start(&request.command)?;
    let reason = wait(request, &attached, child.as_mut(), began);
    let ran = began.elapsed();
    finish(&spec.name, attached, child, &reason, ran)
}

pub fn is_shipped(spec: &PolicySpec) -> bool {
    policies::ALL
        .iter()
        .any(|policy| policy.object == &*spec.object)
}

/// The knobs' values as they lie in memory, checked against type and limits.
pub fn knobs(spec: &PolicySpec) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    if spec.set.is_empty() {
        return Ok(Vec::new());
    }
    let object = Object::parse(&spec.object).with_context(|| spec.name.clone())?;
    let mut image = kernel::link(&object, Kernel::default()).with_context(|| spec.name.clone())?;
    let mut values = Vec::new();
    for (name, text) in &spec.set {
        image
            .set_global(name, text)
            .map_err(|error| UsageError(format!("{}: {error}", spec.name)))?;
        let symbol = image.symbols.iter().find(|symbol| symbol.name == *name);
        let bytes = symbol.and_then(|symbol| {
            let size = usize::from(symbol.scalar?.size());
            let initial = image.maps.get(symbol.map as usize)?.initial.as_ref()?;
            let start = symbol.offset as usize;
            Some(initial.get(start..start + size)?.to_vec())
        });
        let bytes = bytes.ok_or_else(|| anyhow!("{}: cannot find `{name}`", spec.name))?;
        values.push((name.clone(), bytes));
    }
    Ok(values)
}

/// Says what would change, and refuses what cannot work.
fn preflight(request: &Run) -> anyhow::Result<()> {
    let findings = preflight::judge(&Facts::below(&request.root));
    let refuses = |severity| match severity {
        Severity::Blocks => true,
        Severity::Breaks => !request.ignore_cgroups,
        Severity::Changes => false,
    };
    let (refused, notes): (Vec<_>, Vec<_>) = findings
        .iter()
        .partition(|finding| refuses(finding.severity));
    for finding in notes {
        say(&doctor::told(finding));
    }
    if refused.is_empty() {
        return Ok(());
    }
    let words: Vec<_> = refused
        .iter()
        .map(|it| format!("{}\n  {}", it.what, it.way_out))
        .collect();
    Err(UnsupportedError(words.join("\n")).into())
}

fn start(command: &[String]) -> anyhow::Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let child = Command::new(program).args(arguments).spawn();
    child
        .map(Some)
        .with_context(|| format!("cannot start {program}"))
}

/// Watches until something ends the policy's time.
fn wait(
    request: &Run,
    attached: &Attached,
    mut child: Option<&mut Child>,
    began: Instant,
) -> Reason {
    let mut next_line = Duration::from_secs(1);
    loop {
        let passed = began.elapsed();
        if !attached.is_alive() {
            return Reason::Ejected;
        }
        if process::signal().is_some() {
            return Reason::Signal;
        }
        if let Some(status) = child
            .as_mut()
            .and_then(|child| child.try_wait().ok().flatten())
        {
            return Reason::Command(status);
        }
        if request
            .duration
            .is_some_and(|limit| passed >= Duration::from_nanos(limit.get()))
        {
            return Reason::Time;
        }
        if child.is_none() && passed >= next_line && io::stderr().is_terminal() {
            next_line = passed + Duration::from_secs(1);
            show(attached, passed);
        }
        thread::sleep(PAUSE);
    }
}

/// One line that overwrites itself.
fn show(attached: &Attached, passed: Duration) {
    let counters = attached.counters().unwrap_or_default();
    let text: Vec<_> = counters
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    // A line that cannot be shown is no reason to end the policy.
    let _ = write!(
        io::stderr(),
        "\r\x1b[K{} s  {}",
        passed.as_secs(),
        text.join("  ")
    );
}

/// Detaches, waits for the command, prints the counters and finds the status.
fn finish(
    name: &str,
    attached: Attached,
    child: Option<Child>,
    reason: &Reason,
    ran: Duration,
) -> anyhow::Result<Status> {
    let counters = attached.counters()?;
    let events = attached.events();
    let ending = attached.detach()?;
    say(&format!(
        "the kernel's own scheduler is back after {:.3} s under {name}",
        ran.as_secs_f64()
    ));
    let mut to = io::stdout().lock();
    for (counter, count) in counters.iter().chain(&events) {
        writeln!(to, "{counter} {count}")?;
    }
    to.flush()?;
    if let Some(cause) = ejection(reason, ending.as_ref()) {
        say(&format!("{name} was ejected: {cause}"));
        end_child(child, reason);
        return Ok(Status::Ejected);
    }
    let status = end_child(child, reason);
    Ok(match (reason, status) {
        (Reason::Signal, _) => Status::Interrupted,
        (_, Some(status)) if !status.success() => {
            say(&format!("the command ended with {status}"));
            Status::Failure
        }
        _ => Status::Done,
    })
}

/// The cause, if the kernel has ended the policy.
fn ejection(reason: &Reason, ending: Option<&Ending>) -> Option<String> {
    // `SCX_EXIT_UNREG`: detached from user space (kernel 6.18).
    const NORMAL: i64 = 64;
    match ending {
        Some(Ending { kind: NORMAL, .. }) => None,
        Some(Ending {
            reason,
            message,
            kind,
            ..
        }) => Some(format!("{reason}: {message} (kind {kind})")),
        None if matches!(reason, Reason::Ejected) => {
            Some("the policy does not say why; the kernel's log does".to_owned())
        }
        None => None,
    }
}

/// Waits for the command, whose end a signal hastens.
fn end_child(child: Option<Child>, reason: &Reason) -> Option<ExitStatus> {
    if let Reason::Command(status) = reason {
        return Some(*status);
    }
    let mut child = child?;
    if process::signal().is_none() {
        // It goes on under the kernel's own scheduler; a signal still ends the wait.
        while process::signal().is_none() {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(status);
            }
            thread::sleep(PAUSE);
        }
    }
    process::ask_to_end(&child);
    let end = Instant::now() + GRACE;
    while Instant::now() < end {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        thread::sleep(PAUSE);
    }
    // It does not listen; whoever asked twice wants it gone.
    let _ = child.kill();
    child.wait().ok()
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
    fn knobs_are_checked_before_a_kernel_sees_them() {
        let read = |text: &str| knobs(&policy::find(text).unwrap());
        let want = vec![("slice_ns".to_owned(), 5_000_000_u64.to_le_bytes().to_vec())];
        assert_eq!(read("fifo:slice_ns=5000000").unwrap(), want);
        for bad in ["fifo:slice_ns=1", "fifo:slices=5", "fifo:slice_ns=x"] {
            assert!(read(bad).unwrap_err().is::<UsageError>(), "{bad}");
        }
    }
}
