//! Another policy that goes for the time of ours, through the service that runs it.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use live::{Holder, SchedExt, State};

use super::say;

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
    let unit = holder
        .service
        .ok_or_else(|| anyhow!("{} is no service", holder.name))?;
    systemctl("stop", &unit)?;
    // From here on it must be started again, whatever happens.
    let replaced = Replaced {
        unit,
        is_back: false,
    };
    if !becomes(State::Disabled, STOP_PATIENCE) {
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
            Ok(()) if becomes(State::Enabled, START_PATIENCE) => {
                let policy = SchedExt::of_this_kernel().policy().unwrap_or_default();
                say(&format!("{unit} runs again; {policy} is the scheduler"));
            }
            Ok(()) => say(&format!(
                "{unit} runs again, and has attached no policy so far"
            )),
            Err(error) => say(&format!("{unit} is not back: {error:#}")),
        }
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        self.bring_back();
    }
}

fn systemctl(verb: &str, unit: &str) -> anyhow::Result<()> {
    let command = format!("systemctl {verb} {unit}");
    let status = Command::new("systemctl")
        .args([verb, unit])
        .status()
        .with_context(|| format!("cannot run {command}"))?;
    match status.success() {
        true => Ok(()),
        false => bail!("{command} ended with {status}"),
    }
}

fn becomes(state: State, patience: Duration) -> bool {
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
