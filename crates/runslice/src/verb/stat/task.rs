//! `runslice stat task`.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use model::Nanos;
use stats::schedstat::TaskCounters;

use crate::cli::{Status, UnsupportedError};
use crate::{output, span};

/// What `runslice stat task` is asked.
#[derive(Debug, Args)]
pub struct Task {
    /// Number of the process or thread.
    pid: u32,

    /// Length of an interval.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::parse)]
    every: Nanos,

    /// Ends after so much time. Default: when the task ends, or with Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    length: Option<Nanos>,
}

/// Prints a line for each interval until the task ends.
///
/// # Errors
/// When there is no such task or this kernel keeps no statistics of tasks.
pub fn run(request: &Task) -> anyhow::Result<Status> {
    let path = PathBuf::from(format!("/proc/{}/schedstat", request.pid));
    let mut before = match read(&path) {
        Ok(counters) => counters,
        Err(_) if !path.parent().is_some_and(std::path::Path::exists) => {
            anyhow::bail!("there is no task {}", request.pid);
        }
        Err(error) if !path.exists() => {
            let message = format!(
                "{error:#}: this kernel was built without CONFIG_SCHED_INFO; use another one"
            );
            return Err(UnsupportedError(message).into());
        }
        Err(error) => return Err(error),
    };
    let begin = Instant::now();
    let end = request
        .length
        .map(|length| begin + Duration::from_nanos(length.get()));
    let every = Duration::from_nanos(request.every.get().max(1_000_000));
    let mut next = begin + every;
    let mut to = output::open(None)?;
    writeln!(
        to,
        "{:>9}  {:>8}  {:>10}  {:>10}  {:>6}",
        "until", "slices", "latency", "runslice", "busy"
    )?;
    to.flush()?;
    let mut last = begin;
    while end.is_none_or(|end| next <= end) {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let Ok(after) = read(&path) else { break };
        let now = Instant::now();
        let line = line(before, after, now - begin, now - last);
        writeln!(to, "{line}")?;
        to.flush()?;
        (before, last, next) = (after, now, (next + every).max(now));
    }
    Ok(Status::Done)
}

fn read(path: &std::path::Path) -> anyhow::Result<TaskCounters> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    TaskCounters::from_schedstat(&text).with_context(|| path.display().to_string())
}

fn line(before: TaskCounters, after: TaskCounters, until: Duration, length: Duration) -> String {
    let slices = after.pcnt.wrapping_sub(before.pcnt);
    let run = after.cpu_time.saturating_sub(before.cpu_time);
    let wait = after.run_delay.saturating_sub(before.run_delay);
    let mean = |sum: u64| {
        sum.checked_div(slices)
            .map_or_else(|| "-".to_owned(), |mean| Nanos::new(mean).to_string())
    };
    let busy = 100.0 * Duration::from_nanos(run).as_secs_f64() / length.as_secs_f64();
    let until = format!("{:.1} s", until.as_secs_f64());
    format!(
        "{until:>9}  {slices:>8}  {:>10}  {:>10}  {busy:>4.1} %",
        mean(wait),
        mean(run)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_averages_a_slice() {
        let before = TaskCounters {
            cpu_time: 1_000_000,
            run_delay: 500,
            pcnt: 3,
        };
        let after = TaskCounters {
            cpu_time: 501_000_000,
            run_delay: 4_000_500,
            pcnt: 7,
        };
        let second = Duration::from_secs(1);
        let line = line(before, after, Duration::from_secs(2), second);
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>().join(" "),
            "2.0 s 4 1.00 ms 125 ms 50.0 %"
        );
    }

    #[test]
    fn a_task_that_slept_has_no_averages() {
        let same = TaskCounters {
            cpu_time: 5,
            run_delay: 5,
            pcnt: 5,
        };
        let line = line(same, same, Duration::from_secs(1), Duration::from_secs(1));
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>().join(" "),
            "1.0 s 0 - - 0.0 %"
        );
    }
}
