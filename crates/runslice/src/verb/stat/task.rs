//! `runslice stat task`.

use std::io::{BufRead, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use model::{Advised, Nanos};
use stats::schedstat::{HZ_OF_4, TaskCounters};

use crate::exit::{Status, UnsupportedError};
use crate::schedstat::open;
use crate::{interrupt, output};
use model::span;

/// Arguments of `runslice stat task`.
#[derive(Debug, Args)]
pub struct StatTask {
    /// Number of the process or thread.
    #[arg(required_unless_present = "from")]
    pid: Option<u32>,

    /// Read a log instead; `-` is standard input. Each line is a copy of /proc/PID/schedstat, or of
    /// /proc/PID/stat from a kernel with the patches for versions 4 to 9.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pid", "every", "length"])]
    from: Option<PathBuf>,

    /// Jiffies per second (HZ), if times in the log are in jiffies. Default: 1000 for lines of
    /// /proc/PID/stat. Times in other lines are in nanoseconds, as since Linux 2.6.23.
    #[arg(long, value_name = "NUMBER", requires = "from",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    hz: Option<u32>,

    /// Length of an interval.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::parse)]
    every: Nanos,

    /// Stop after this time. Default: when the task ends, or with Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    length: Option<Nanos>,
}

/// Prints a line for each interval until the task ends.
///
/// # Errors
/// When there is no such task or this kernel keeps no statistics of tasks.
pub fn run(request: &StatTask) -> anyhow::Result<Status> {
    if let Some(file) = &request.from {
        return recorded(file, request.hz);
    }
    let pid = request.pid.unwrap_or_default();
    let path = PathBuf::from(format!("/proc/{pid}/schedstat"));
    let mut before = match read(&path) {
        Ok(counters) => counters,
        Err(_) if !path.parent().is_some_and(Path::exists) => {
            anyhow::bail!("there is no task {pid}");
        }
        Err(error) if !path.exists() => {
            let message = Advised::new(
                format!("{error:#}: this kernel was built without CONFIG_SCHED_INFO"),
                "use another one",
            );
            return Err(UnsupportedError::new(message).into());
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
    interrupt::keeps_results();
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

/// Prints a line for each reading of a log but the first.
fn recorded(file: &Path, hz: Option<u32>) -> anyhow::Result<Status> {
    let mut to = output::open(None)?;
    writeln!(
        to,
        "{:>9}  {:>8}  {:>10}  {:>10}",
        "reading", "slices", "latency", "runslice"
    )?;
    let mut before = None;
    let mut readings = 0;
    let mut log = open(file)?;
    for number in 1.. {
        let named = || format!("{}, line {number}", file.display());
        let Some(text) = next_line(&mut log).with_context(named)? else {
            break;
        };
        if text.trim().is_empty() {
            continue;
        }
        let after = counters(&text, hz).with_context(named)?;
        readings += 1;
        if let Some(before) = before {
            let [slices, latency, runslice] = figures(before, after);
            writeln!(
                to,
                "{readings:>9}  {slices:>8}  {latency:>10}  {runslice:>10}"
            )?;
        }
        before = Some(after);
    }
    to.flush()?;
    if readings < 2 {
        anyhow::bail!(
            "{}: has {readings} readings, and figures need two",
            file.display()
        );
    }
    Ok(Status::Done)
}

/// The next line of a log; `None` behind the last one. One without an end is refused.
fn next_line(log: &mut impl BufRead) -> anyhow::Result<Option<String>> {
    /// Most bytes of a line. Those of kernels have some hundred.
    const LONGEST: u64 = 4096;
    let mut bytes = Vec::new();
    let read = log.take(LONGEST + 1).read_until(b'\n', &mut bytes)?;
    anyhow::ensure!(
        read as u64 <= LONGEST,
        "longer than {LONGEST} bytes, which no line of /proc/PID/schedstat or /proc/PID/stat is"
    );
    let text = String::from_utf8(bytes).context("it is no text (UTF-8)")?;
    Ok(Some(text).filter(|_| read > 0))
}

/// One line of a log, in nanoseconds.
fn counters(text: &str, hz: Option<u32>) -> anyhow::Result<TaskCounters> {
    // Only the first of the two has a command in parentheses.
    let (counters, usual) = if text.contains(')') {
        (TaskCounters::from_stat(text)?, Some(HZ_OF_4))
    } else {
        (TaskCounters::from_schedstat(text)?, None)
    };
    let scale = hz.or(usual).map_or(1, |hz| 1_000_000_000 / u64::from(hz));
    Ok(TaskCounters {
        cpu_time: counters.cpu_time.saturating_mul(scale),
        run_delay: counters.run_delay.saturating_mul(scale),
        pcnt: counters.pcnt,
    })
}

/// Slices, average wait and average time on the CPU between two readings.
fn figures(before: TaskCounters, after: TaskCounters) -> [String; 3] {
    let slices = after.pcnt.wrapping_sub(before.pcnt);
    let run = after.cpu_time.saturating_sub(before.cpu_time);
    let wait = after.run_delay.saturating_sub(before.run_delay);
    let mean = |sum: u64| {
        sum.checked_div(slices)
            .map_or_else(|| "-".to_owned(), |mean| Nanos::new(mean).to_string())
    };
    [slices.to_string(), mean(wait), mean(run)]
}

fn read(path: &Path) -> anyhow::Result<TaskCounters> {
    let bytes = super::processes::line(path).map_err(model::CannotRead::at(path.display()))?;
    TaskCounters::from_schedstat(&String::from_utf8_lossy(&bytes))
        .with_context(|| path.display().to_string())
}

fn line(before: TaskCounters, after: TaskCounters, until: Duration, length: Duration) -> String {
    let run = after.cpu_time.saturating_sub(before.cpu_time);
    let busy = 100.0 * Duration::from_nanos(run).as_secs_f64() / length.as_secs_f64();
    let until = format!("{:.1} s", until.as_secs_f64());
    let [slices, latency, runslice] = figures(before, after);
    format!("{until:>9}  {slices:>8}  {latency:>10}  {runslice:>10}  {busy:>4.1} %")
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

    #[test]
    fn a_log_has_jiffies_or_nanoseconds() {
        let read = |text: &str, hz| counters(text, hz).unwrap();
        assert_eq!(read("5000000 7 3", None).cpu_time, 5_000_000);
        assert_eq!(read("5 7 3", Some(100)).run_delay, 70_000_000);
        let between: Vec<String> = (4..=41).map(|field| field.to_string()).collect();
        let line = format!("77 (a) b (c) S {} 120 340 9", between.join(" "));
        let counters = read(&line, None);
        assert_eq!((counters.cpu_time, counters.pcnt), (120_000_000, 9));
    }
}
