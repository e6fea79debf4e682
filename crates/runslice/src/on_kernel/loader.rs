//! A scheduler's own program that attaches its policy to this kernel.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use ask::error::Cancelled;
use live::{ClassState, SchedExt, Timed, TimedEnd, process};
use model::Advised;

use super::command;

/// How long a program may take until its policy is attached; on a CPU that an emulator pretends,
/// the largest known takes half a minute.
const ATTACH_PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to end after it was interrupted, and the kernel to go back then.
const STOP_PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(20);
/// What of its output is shown when it fails.
const LAST_LINES: usize = 12;

/// A program whose policy is attached. Dropped, it is killed, and the kernel takes its policy off.
#[derive(Debug)]
pub struct Loader {
    name: String,
    child: Timed,
    kernel: SchedExt,
    output: PathBuf,
    end: Option<TimedEnd>,
}

impl Loader {
    /// Starts the command and waits until a policy is attached. What it prints goes to `output`.
    ///
    /// # Errors
    /// When it cannot be started, ends before, attaches nothing in time, or a signal came.
    pub fn start(name: &str, words: &[String], output: &Path) -> anyhow::Result<Self> {
        let kernel = SchedExt::of_this_kernel();
        let sequence = kernel.enable_seq();
        let (program, mut command) = command::of(words).context("a command has a word")?;
        let cannot = model::CannotWrite::at(output.display());
        let file = folder::create(output).map_err(&cannot)?;
        let same = file.try_clone().map_err(&cannot)?;
        command.stdin(Stdio::null()).stdout(file).stderr(same);
        process::die_with_this_thread(&mut command);
        let child = Timed::start(&mut command);
        let child = child.with_context(|| format!("cannot start {program}"))?;
        let mut loader = Self {
            name: name.to_owned(),
            child,
            kernel,
            output: output.to_owned(),
            end: None,
        };
        let limit = Instant::now() + ATTACH_PATIENCE;
        while !loader.is_attached() || loader.kernel.enable_seq() == sequence {
            if let Some(why) = loader.death()? {
                bail!("{name} attached no policy: it {why}");
            }
            if process::signal().is_some() {
                return Err(Cancelled.into());
            }
            if Instant::now() >= limit {
                let seconds = ATTACH_PATIENCE.as_secs();
                bail!(
                    "{name} attached no policy within {seconds} s; its last lines:\n{}",
                    loader.last_lines()
                );
            }
            thread::sleep(PAUSE);
        }
        Ok(loader)
    }

    fn is_attached(&self) -> bool {
        self.kernel.state() == Some(ClassState::Enabled)
    }

    /// Why the policy is not there any more; `None` while it is. A program that attaches its policy
    /// anew, as after a CPU has come, has it meanwhile.
    ///
    /// # Errors
    /// When it cannot be watched.
    pub fn death(&mut self) -> anyhow::Result<Option<String>> {
        if self.end.is_none() {
            let end = self.child.wait(Duration::ZERO);
            self.end = end.with_context(|| format!("{} cannot be waited for", self.name))?;
        }
        Ok(self.end.map(|end| {
            format!(
                "ended with {}; its last lines:\n{}",
                end.status,
                self.last_lines()
            )
        }))
    }

    /// What it printed last.
    fn last_lines(&self) -> String {
        let text = fs::read(&self.output).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    /// Interrupts the program, waits for its end, and until the kernel's own scheduler is back.
    /// What was wrong with its end, if anything.
    ///
    /// # Errors
    /// When the kernel's own scheduler does not come back.
    pub fn stop(mut self) -> anyhow::Result<Option<String>> {
        let mut wrong = self.death()?;
        if wrong.is_none() {
            self.child.interrupt();
            let limit = Instant::now() + STOP_PATIENCE;
            while self.end.is_none() && Instant::now() < limit {
                let end = self.child.wait(PAUSE);
                self.end = end.with_context(|| format!("{} cannot be waited for", self.name))?;
            }
            wrong = match self.end {
                Some(end) if is_interrupted(end.status) => None,
                Some(_) => self.death()?,
                None => Some(format!(
                    "did not end within {} s of SIGINT and was killed",
                    STOP_PATIENCE.as_secs()
                )),
            };
        }
        let Self {
            name,
            child,
            kernel,
            ..
        } = self;
        // Kills what did not end.
        drop(child);
        let limit = Instant::now() + STOP_PATIENCE;
        while kernel
            .state()
            .is_some_and(|state| state != ClassState::Disabled)
        {
            if Instant::now() >= limit {
                bail!(Advised::new(
                    format!("{name} has ended and a policy is still attached"),
                    "`runslice stop` or SysRq-S brings the kernel's own scheduler back"
                ));
            }
            thread::sleep(PAUSE);
        }
        Ok(wrong)
    }
}

/// Whether a program ended as one does that was interrupted.
fn is_interrupted(status: ExitStatus) -> bool {
    const SIGINT: i32 = 2;
    // What a shell says of a program that SIGINT has ended.
    const OF_SIGINT: i32 = 128 + SIGINT;
    matches!(status.code(), Some(0 | OF_SIGINT)) || status.signal() == Some(SIGINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_program_ends_well_in_three_ways() {
        let is_good = |raw| is_interrupted(ExitStatus::from_raw(raw));
        assert!([0, 130 << 8, 2].into_iter().all(is_good));
        assert!(![1 << 8, 9, 15].into_iter().any(is_good));
    }

    #[test]
    fn a_program_that_attaches_nothing_is_told_with_its_last_lines() {
        let folder = folder::OwnFolder::new().unwrap();
        let words = ["sh", "-c", "seq 1 20; echo no policy; exit 3"].map(str::to_owned);
        let error = Loader::start("mine", &words, &folder.join("out")).unwrap_err();
        let error = error.to_string();
        let begin = "mine attached no policy: it ended with exit status: 3; its last lines:\n10\n";
        assert!(
            error.starts_with(begin) && error.ends_with("\nno policy"),
            "{error}"
        );
        let words = ["/no/such/scheduler".to_owned()];
        let error = Loader::start("mine", &words, &folder.join("out")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start /no/such/scheduler");
    }
}
