//! `runslice load series PLAN`: commands one after the other, and what each printed.
//!
//! It is what a virtual machine is given, so that it boots once for many runs. Nothing that a
//! command does ends the series; one that takes too long is ended, with all that it started.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use folder::OwnFolder;
use live::{SchedExt, Timed, TimedEnd, process};
use serde::{Deserialize, Serialize};

use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::on_kernel::session;
use crate::programs;
use crate::{input, interrupt, output};

/// From one look at signals to the next.
const PAUSE: Duration = Duration::from_millis(200);
/// What is kept of what a command complained of.
const WORDS: usize = 2000;

/// Arguments of `runslice load series`.
#[derive(Debug, Args)]
pub struct Series {
    /// Plan as JSON: `{"runs": [{"id": "a", "command": ["true"], "timeout_s": 60}]}`. In a command,
    /// `runslice` as the first word is this program.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// File for the results: one line of JSON as each command ends. Default: standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Commands, in order.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesPlan {
    /// The runs.
    pub runs: Vec<SeriesRun>,
}

/// One of them.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesRun {
    /// By which its result is known.
    pub id: String,
    /// The command and its words.
    pub command: Vec<String>,
    /// How long it may take, in seconds.
    pub timeout_s: u64,
}

/// Outcome of a run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Ran {
    /// That of the run.
    pub id: String,
    /// How it failed, in words; `None` if it did not.
    pub failed: Option<String>,
    /// From its start to its end.
    pub time_s: f64,
    /// What it printed.
    pub stdout: String,
    /// The last of what it complained of.
    pub stderr: String,
    /// Which policy scheduled the machine before and afterwards, and how many were attached so far.
    pub policy: [SeriesScheduler; 2],
    /// The policy's counters, if this program has attached it.
    pub counted: BTreeMap<String, u64>,
}

/// What the kernel says of its policy: the name, and how many there were since it booted.
pub type SeriesScheduler = (Option<String>, Option<u64>);

/// Runs the plan. The status is that of a failure if any run failed.
///
/// # Errors
/// When the plan cannot be read, or a result cannot be written.
pub fn run(request: &Series) -> anyhow::Result<Status> {
    output::spare(
        &[("the plan", Some(&request.plan))],
        &[("--output", request.output.as_deref())],
    )?;
    let text = input::text(&COMPUTER, &request.plan, input::WRITTEN)?;
    let cannot = || format!("{}: no plan", request.plan.display());
    let plan: SeriesPlan = serde_json::from_str(&text).with_context(cannot)?;
    let folder = OwnFolder::new()?;
    process::catch_signals();
    // Whoever has started it says the line.
    interrupt::leave_to_others();
    let mut to = output::open(request.output.as_deref())?;
    let mut failed = false;
    for run in &plan.runs {
        let before = (scheduler(), session::counters());
        let mut ran = perform(run, folder.path())?;
        ran.counted = since(session::counters(), &before.1);
        ran.policy = [before.0, scheduler()];
        failed |= ran.failed.is_some();
        writeln!(to, "{}", serde_json::to_string(&ran)?)?;
        // Whoever ends the series, for example by ejecting a policy, leaves what there is.
        to.flush()?;
        if process::signal().is_some() {
            return Ok(Status::Interrupted);
        }
    }
    Ok(if failed {
        Status::Failure
    } else {
        Status::Done
    })
}

/// What counters have grown by.
fn since(now: Vec<(String, u64)>, before: &[(String, u64)]) -> BTreeMap<String, u64> {
    let grown = now.into_iter().map(|(name, total)| {
        let earlier = before.iter().find(|(other, _)| *other == name);
        let earlier = earlier.map_or(0, |(_, total)| *total);
        (name, total.saturating_sub(earlier))
    });
    grown.collect()
}

fn scheduler() -> SeriesScheduler {
    let class = SchedExt::of_this_kernel();
    (class.policy(), class.enable_seq())
}

fn perform(run: &SeriesRun, folder: &Path) -> anyhow::Result<Ran> {
    let mut ran = Ran {
        id: run.id.clone(),
        failed: None,
        time_s: 0.0,
        stdout: String::new(),
        stderr: String::new(),
        policy: Default::default(),
        counted: BTreeMap::new(),
    };
    let Some((program, words)) = run.command.split_first() else {
        ran.failed = Some("the command is empty".to_owned());
        return Ok(ran);
    };
    let [stdout, stderr] = ["stdout", "stderr"].map(|name| folder.join(name));
    let create = |path: &Path| File::create(path).map_err(model::CannotWrite::at(path.display()));
    let mut command = match &**program {
        crate::on_kernel::guest::OWN_NAME => Command::new(programs::runslice()?),
        program => Command::new(program),
    };
    command
        .args(words)
        .stdin(Stdio::null())
        .stdout(create(&stdout)?)
        .stderr(create(&stderr)?);
    match Timed::start(&mut command) {
        Ok(timed) => {
            let (end, ending) = wait(timed, Duration::from_secs(run.timeout_s))?;
            ran.time_s = end.map_or(0.0, |end| end.took.as_secs_f64());
            ran.failed = ending;
        }
        Err(error) => ran.failed = Some(format!("cannot start `{program}`: {error}")),
    }
    let read = |path: &Path| -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
    };
    ran.stdout = read(&stdout)?;
    ran.stderr = last(&read(&stderr)?, WORDS).to_owned();
    Ok(ran)
}

/// Waits for the end, the limit, or a signal; then nothing of the command is left.
fn wait(mut timed: Timed, limit: Duration) -> anyhow::Result<(Option<TimedEnd>, Option<String>)> {
    let mut left = limit;
    while !left.is_zero() && process::signal().is_none() {
        let now = left.min(PAUSE);
        if let Some(end) = timed.wait(now)? {
            let failed = (!end.status.success()).then(|| end.status.to_string());
            return Ok((Some(end), failed));
        }
        left -= now;
    }
    let why = match process::signal() {
        Some(_) => "a signal ended the series".to_owned(),
        None => format!("it was still running after {} s", limit.as_secs()),
    };
    Ok((None, Some(why)))
}

/// The last bytes of a text, whole characters.
fn last(text: &str, bytes: usize) -> &str {
    let begin = text.len().saturating_sub(bytes);
    let begin = (begin..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[begin.unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &[&str], timeout_s: u64) -> Ran {
        let run = SeriesRun {
            id: "x".to_owned(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            timeout_s,
        };
        let folder = std::env::temp_dir().join(format!(
            "runslice-series-test-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        fs::create_dir_all(&folder).unwrap();
        let ran = perform(&run, &folder).unwrap();
        fs::remove_dir_all(folder).unwrap();
        ran
    }

    #[test]
    fn what_a_command_prints_and_how_it_ends_is_kept() {
        let good = of(&["sh", "-c", "echo out; echo err >&2"], 60);
        assert_eq!((&*good.stdout, &*good.stderr), ("out\n", "err\n"));
        assert_eq!(good.failed, None);
        let bad = of(&["sh", "-c", "echo out; exit 7"], 60);
        assert_eq!(
            (bad.failed.as_deref(), &*bad.stdout),
            (Some("exit status: 7"), "out\n")
        );
    }

    #[test]
    fn one_that_takes_too_long_or_cannot_start_is_a_failure_and_no_end() {
        let late = of(&["sh", "-c", "echo out; exec sleep 600"], 1);
        assert_eq!(
            late.failed.as_deref(),
            Some("it was still running after 1 s")
        );
        assert_eq!(late.stdout, "out\n");
        let none = of(&["no-such-program-anywhere"], 60);
        assert!(none.failed.unwrap().contains("no-such-program-anywhere"));
        assert!(of(&[], 60).failed.is_some());
    }

    #[test]
    fn counters_are_told_by_how_much_they_grew() {
        let at = |total| vec![("yields".to_owned(), total)];
        assert_eq!(since(at(7), &at(5))["yields"], 2);
        assert_eq!(since(at(7), &[])["yields"], 7);
        assert!(since(Vec::new(), &at(5)).is_empty());
    }

    #[test]
    fn the_last_of_a_text_is_whole_characters() {
        assert_eq!(last("abc", 5), "abc");
        assert_eq!(last("abc", 2), "bc");
        assert_eq!(last("aä", 1), "");
    }
}
