//! Another policy that goes for the time of ours, through the service that runs it.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use live::{ClassState, Holder, SchedExt};
use model::Advised;

use super::say;

/// How long systemctl may take: longer than the 90 s after which a service that does not end is
/// killed (`DefaultTimeoutStopSec`, systemd-system.conf(5)).
const SYSTEMCTL_PATIENCE: Duration = Duration::from_secs(100);
/// How long a service may take to detach its policy.
const STOP_PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to attach it again.
const START_PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);

/// A service that was stopped. Dropped, also by a panic, it is started again.
#[derive(Debug)]
pub struct Replaced {
    unit: String,
    is_back: bool,
}

/// Stops the service of `holder` and waits until its policy is gone.
///
/// # Errors
/// When it has no service, or the service does not stop.
pub fn stop(holder: Holder) -> anyhow::Result<Replaced> {
    let unit = holder.service.ok_or_else(|| {
        anyhow!(
            "{} was not started by a service, so --replace cannot stop it",
            holder.name
        )
    })?;
    // From here on it must be started again, whatever happens: also where systemctl has failed,
    // the service may have gone.
    let replaced = Replaced {
        unit,
        is_back: false,
    };
    systemctl("stop", &replaced.unit)?;
    if !becomes(ClassState::Disabled, STOP_PATIENCE) {
        bail!(
            "{} was stopped, and its policy is still attached",
            replaced.unit
        );
    }
    say(&format!("{} is stopped for the time", replaced.unit));
    Ok(replaced)
}

impl Replaced {
    /// The service.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Starts it and says whether its policy is back.
    pub fn start_again(mut self) {
        self.bring_back();
    }

    fn bring_back(&mut self) {
        if std::mem::replace(&mut self.is_back, true) {
            return;
        }
        let unit = &self.unit;
        match systemctl("start", unit) {
            Ok(()) if becomes(ClassState::Enabled, START_PATIENCE) => {
                let policy = SchedExt::of_this_kernel().policy().unwrap_or_default();
                say(&format!("{unit} runs again; {policy} is the scheduler"));
            }
            Ok(()) => say(&format!(
                "{unit} runs again, and has attached no policy so far"
            )),
            Err(error) => say(&format!(
                "{unit} is not back: {}",
                crate::exit::in_full(&error)
            )),
        }
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        self.bring_back();
    }
}

fn systemctl(verb: &str, unit: &str) -> anyhow::Result<()> {
    let text = format!("systemctl {verb} {unit}");
    let mut command = Command::new("systemctl");
    succeeds(command.args([verb, unit]), &text, SYSTEMCTL_PATIENCE)
}

/// Runs `command`, which messages call `text`, and ends it when it takes longer than `patience`.
///
/// # Errors
/// When it cannot be run, fails, or takes longer.
fn succeeds(command: &mut Command, text: &str, patience: Duration) -> anyhow::Result<()> {
    let cannot = || format!("cannot run {text}");
    let mut child = command.spawn().with_context(cannot)?;
    let end = Instant::now() + patience;
    loop {
        match child.try_wait().with_context(cannot)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => bail!("{text} ended with {status}"),
            None if Instant::now() > end => break,
            None => thread::sleep(PAUSE.min(patience)),
        }
    }
    // It may have ended this very moment, and then nothing is left to do.
    let _ = child.kill();
    let _ = child.wait();
    bail!(Advised::new(
        format!("{text} was still waiting after {} s", patience.as_secs()),
        "look what `systemctl list-jobs` says of it"
    ))
}

fn becomes(state: ClassState, patience: Duration) -> bool {
    let kernel = SchedExt::of_this_kernel();
    let end = Instant::now() + patience;
    while kernel.state() != Some(state) {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(PAUSE);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_end_is_ended() {
        let run = |program: &str, word: &str, patience| {
            succeeds(Command::new(program).arg(word), "x y", patience)
        };
        let minute = Duration::from_mins(1);
        assert!(run("true", "", minute).is_ok());
        let failed = run("false", "", minute).unwrap_err().to_string();
        assert!(failed.starts_with("x y ended with exit status"), "{failed}");
        let missing = run("/no/such/program", "", minute);
        assert_eq!(missing.unwrap_err().to_string(), "cannot run x y");
        // It would hang for years.
        let late = run("sleep", "999999999", Duration::ZERO).unwrap_err();
        let late = late.to_string();
        assert!(
            late.starts_with("x y was still waiting after 0 s"),
            "{late}"
        );
    }
}
