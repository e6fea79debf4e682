//! `runslice stat top`: who runs and who waits, now or in a recording.

mod screen;
mod terminal;

use std::collections::BTreeMap;
use std::io::{self, BufReader, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use model::Nanos;
use stats::schedstat::{self, HzEvidence, SchedstatReader, Snapshot, TimeUnit};

use self::screen::{KeyAction, Screen, ShownList, Sort, TopInterval, TopRow};
use self::terminal::Terminal;
use super::processes::{self, Process, RowOwner};
use crate::exit::Status;
use crate::report::counted;
use crate::schedstat::{hz_of, open, statistics};
use crate::{interrupt, output};
use model::span;

/// Arguments of `runslice stat top`.
#[derive(Debug, Args)]
pub struct Top {
    /// Recording to show instead of the running kernel. It has no tasks. Keys n and p step through
    /// it.
    file: Option<PathBuf>,

    /// Time between two updates.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::parse)]
    every: Nanos,

    /// Stop after this time. Default: with the key q.
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse, conflicts_with = "file")]
    length: Option<Nanos>,

    /// List to show first. Default: tasks; for a recording, CPUs.
    #[arg(long, value_enum)]
    show: Option<ShownList>,

    /// Column to sort by at first.
    #[arg(long, value_enum, default_value_t = Sort::Busy)]
    sort: Sort,

    /// List every thread, instead of the sum of each process.
    #[arg(long)]
    threads: bool,

    /// Jiffies per second (HZ) of the kernel that wrote the recording. Default: as for `stat
    /// report`.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    hz: Option<u32>,

    /// For schedstat versions after 17: read the CPU lines as version 17.
    #[arg(long)]
    cpu_lines: bool,
}

/// Where the kernel counts for CPUs.
const SCHEDSTAT: &str = "/proc/schedstat";

/// Shows the screen, or prints each look where there is no terminal.
///
/// # Errors
/// When the statistics cannot be read.
pub fn run(request: &Top) -> anyhow::Result<Status> {
    let what = match (request.show, &request.file) {
        (Some(what), _) => what,
        (None, Some(_)) => ShownList::Cpus,
        (None, None) => ShownList::Tasks,
    };
    let screen = Screen {
        what,
        sort: request.sort,
        reversed: false,
        ..Screen::default()
    };
    if request.file.is_none() && what == ShownList::Cpus {
        // Says what this kernel lacks.
        statistics(Path::new(SCHEDSTAT))?;
    }
    let has_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    match &request.file {
        Some(path) => {
            let intervals = recorded(request, path)?;
            if has_terminal {
                leaf(screen, &intervals)
            } else {
                print(&screen, intervals.into_iter().map(Ok))
            }
        }
        None if has_terminal => watch(request, screen),
        None => print(&screen, looks(request)?),
    }
}

/// Prints every look, one below the other.
fn print(
    screen: &Screen,
    intervals: impl Iterator<Item = anyhow::Result<TopInterval>>,
) -> anyhow::Result<Status> {
    let mut to = output::open(None)?;
    for interval in intervals {
        let lines = screen.lines(&interval?);
        writeln!(to, "{}\n", lines.join("\n"))?;
        to.flush()?;
    }
    Ok(Status::Done)
}

/// Looks at the running kernel, each after its time, and once at least.
fn looks(request: &Top) -> anyhow::Result<impl Iterator<Item = anyhow::Result<TopInterval>>> {
    let every = Duration::from_nanos(request.every.get().max(1_000_000));
    let (which, cpu_lines) = (request.which(), request.cpu_lines);
    let begin = Instant::now();
    let end = request
        .length
        .map(|length| begin + Duration::from_nanos(length.get()));
    interrupt::keeps_results();
    let mut before = Look::now(cpu_lines)?;
    let mut first = true;
    Ok(std::iter::from_fn(move || {
        // From the end of the last look on: where reading all processes takes longer than `every`,
        // an interval that begins at once would have this program's reading in it and little else.
        let next = before.read + every;
        if end.is_some_and(|end| next > end) && !first {
            return None;
        }
        first = false;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let after = match Look::now(cpu_lines) {
            Ok(after) => after,
            Err(error) => return Some(Err(error)),
        };
        let interval = before.until(&after, which, begin);
        before = after;
        Some(interval)
    }))
}

/// The running kernel on a terminal.
fn watch(request: &Top, mut screen: Screen) -> anyhow::Result<Status> {
    let every = Duration::from_nanos(request.every.get().max(100_000_000));
    let begin = Instant::now();
    let end = request
        .length
        .map(|length| begin + Duration::from_nanos(length.get()));
    let mut before = Look::now(request.cpu_lines)?;
    let mut interval = TopInterval {
        title: "a moment".to_owned(),
        ..TopInterval::default()
    };
    let mut terminal = Terminal::take()?;
    let mut next = begin + every.min(Duration::from_millis(300));
    terminal.show(&screen, &interval)?;
    while end.is_none_or(|end| Instant::now() < end) {
        let (keys, resized) = terminal.keys()?;
        if keys.iter().any(|&key| screen.key(key) == KeyAction::Quit) {
            break;
        }
        let due = Instant::now() >= next;
        if due {
            next = Instant::now() + every;
            if !screen.paused {
                let after = Look::now(request.cpu_lines)?;
                interval = before.until(&after, request.which(), begin)?;
                before = after;
            }
        }
        if due || resized || !keys.is_empty() {
            terminal.show(&screen, &interval)?;
        }
    }
    Ok(Status::Done)
}

/// A recording on a terminal.
fn leaf(mut screen: Screen, intervals: &[TopInterval]) -> anyhow::Result<Status> {
    let mut terminal = Terminal::take()?;
    let mut at = 0;
    loop {
        terminal.show(&screen, &intervals[at])?;
        let mut changed = false;
        while !changed {
            let (keys, resized) = terminal.keys()?;
            changed = resized || !keys.is_empty();
            for key in keys {
                match screen.key(key) {
                    KeyAction::Quit => return Ok(Status::Done),
                    KeyAction::Next => at = (at + 1).min(intervals.len() - 1),
                    KeyAction::Previous => at = at.saturating_sub(1),
                    KeyAction::Nothing => {}
                }
            }
        }
    }
}

impl Top {
    fn which(&self) -> RowOwner {
        if self.threads {
            RowOwner::Threads
        } else {
            RowOwner::Processes
        }
    }
}

/// All counters at one moment.
struct Look {
    time: Instant,
    /// When all were read.
    read: Instant,
    /// None on a kernel that keeps them for tasks only.
    cpus: Option<Snapshot>,
    /// Every thread.
    tasks: BTreeMap<u32, Process>,
}

impl Look {
    fn now(cpu_lines: bool) -> anyhow::Result<Self> {
        let path = Path::new(SCHEDSTAT);
        let cpus = if path.exists() {
            let reader = SchedstatReader::new(BufReader::new(statistics(path)?));
            let mut reader = reader.with_later_versions(cpu_lines);
            reader.next_snapshot().context(SCHEDSTAT)?
        } else {
            None
        };
        let time = Instant::now();
        // Without its other threads a process would be idle whose first one only waits for them.
        let tasks = processes::read(Path::new("/proc"));
        Ok(Self {
            time,
            read: Instant::now(),
            cpus,
            tasks,
        })
    }

    fn until(&self, after: &Self, which: RowOwner, begin: Instant) -> anyhow::Result<TopInterval> {
        let length = nanoseconds(after.time - self.time);
        let cpus = match (&self.cpus, &after.cpus) {
            (Some(before), Some(after)) => rows(&schedstat::Interval::new(before, after)?, 1),
            _ => Vec::new(),
        };
        let tasks = task_rows(&self.tasks, &after.tasks, which);
        let until = (after.time - begin).as_secs_f64();
        let busy = if cpus.is_empty() {
            "CPUs not counted by this kernel".to_owned()
        } else {
            let run = cpus.iter().map(|cpu| cpu.run).sum();
            let share = share(run, length * cpus.len() as u64);
            format!("{} {share} busy", counted(cpus.len() as u64, "CPU"))
        };
        Ok(TopInterval {
            title: format!(
                "{until:.1} s: {busy}, {} ran or waited",
                counted(tasks.len() as u64, "task")
            ),
            length,
            cpus,
            tasks,
        })
    }
}

/// A row for each thread that ran or waited, or for each process with the sums of its threads.
fn task_rows(
    before: &BTreeMap<u32, Process>,
    after: &BTreeMap<u32, Process>,
    which: RowOwner,
) -> Vec<TopRow> {
    let mut rows: BTreeMap<u32, TopRow> = BTreeMap::new();
    for (thread, now) in after {
        // A task that came meanwhile has counted from nothing, and a number that was given anew
        // belongs to another task.
        let then = before.get(thread).map(|task| task.counters);
        let then = then.filter(|then| then.pcnt <= now.counters.pcnt);
        let then = then.unwrap_or_default();
        let id = match which {
            RowOwner::Processes => now.process,
            RowOwner::Threads => *thread,
        };
        // The first thread gives a process its name.
        let named = after.get(&id).unwrap_or(now);
        let row = rows.entry(id).or_insert_with(|| TopRow {
            id: id.to_string(),
            name: named.name.clone(),
            ..TopRow::default()
        });
        row.run += now.counters.cpu_time.saturating_sub(then.cpu_time);
        row.wait += now.counters.run_delay.saturating_sub(then.run_delay);
        row.slices += now.counters.pcnt - then.pcnt;
    }
    rows.into_values()
        .filter(|row| row.run + row.wait + row.slices > 0)
        .collect()
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn share(part: u64, whole: u64) -> stats::ColumnValue {
    stats::ColumnValue::Share(stats::Millionths::of(part.into(), whole.into()))
}

/// A row for each CPU; `hz` tells how long a jiffy is where times are in jiffies.
fn rows(interval: &schedstat::Interval, hz: u32) -> Vec<TopRow> {
    let layout = interval.layout();
    let scale = match interval.time_unit() {
        TimeUnit::Nanoseconds => 1,
        TimeUnit::Jiffies | TimeUnit::Either => 1_000_000_000 / u64::from(hz),
    };
    let row = |cpu: &schedstat::CpuInterval| {
        let get = |name| {
            let count = cpu.get(layout, name).unwrap_or(0);
            u64::try_from(count).unwrap_or(u64::MAX)
        };
        TopRow {
            id: format!("cpu{}", cpu.cpu),
            name: String::new(),
            run: get("cpu_time").saturating_mul(scale),
            wait: get("run_delay").saturating_mul(scale),
            slices: get("pcnt"),
        }
    };
    interval.cpus.iter().map(row).collect()
}

/// The intervals of a recording; at least one, which is that since boot where a snapshot is alone.
fn recorded(request: &Top, path: &Path) -> anyhow::Result<Vec<TopInterval>> {
    let named = || path.display().to_string();
    let mut reader = SchedstatReader::new(open(path)?).with_later_versions(request.cpu_lines);
    let Some(mut before) = reader.next_snapshot().with_context(named)? else {
        bail!("{}: no snapshot", named());
    };
    let mut evidence = HzEvidence::default();
    evidence.snapshot(&before);
    let mut steps = Vec::new();
    while let Some(after) = reader.next_snapshot().with_context(named)? {
        let between = schedstat::Interval::new(&before, &after).with_context(named)?;
        evidence.snapshot(&after);
        evidence.interval(&between);
        steps.push(between);
        before = after;
    }
    let hz = hz_of(request.hz, reader.hz(), &evidence)?;
    if steps.is_empty() {
        steps.push(schedstat::Interval::since_boot(&before, hz));
    }
    let ns = |jiffies: u64| jiffies.saturating_mul(1_000_000_000 / u64::from(hz));
    let mut intervals: Vec<TopInterval> = Vec::new();
    let mut until = 0;
    for between in steps {
        let length = ns(between.jiffies());
        until += length;
        let cpus = rows(&between, hz);
        intervals.push(TopInterval {
            title: format!(
                "{}, until {}: {} {} busy",
                named(),
                Nanos::new(until),
                counted(cpus.len() as u64, "CPU"),
                share(
                    cpus.iter().map(|cpu| cpu.run).sum(),
                    length * cpus.len() as u64
                ),
            ),
            length,
            cpus,
            tasks: Vec::new(),
        });
    }
    Ok(intervals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(process: u32, name: &str, [cpu_time, run_delay, pcnt]: [u64; 3]) -> Process {
        Process {
            name: name.into(),
            process,
            counters: schedstat::TaskCounters {
                cpu_time,
                run_delay,
                pcnt,
            },
        }
    }

    /// A process whose first thread only waits for the others.
    #[test]
    fn a_process_has_run_when_any_of_its_threads_has() {
        let before = BTreeMap::from([
            (7, thread(7, "server", [50, 0, 5])),
            (8, thread(7, "worker", [100, 10, 1])),
            (9, thread(9, "idle", [3, 3, 3])),
        ]);
        let mut after = before.clone();
        after.insert(8, thread(7, "worker", [1_100, 30, 4]));
        after.insert(10, thread(7, "new", [200, 5, 2]));
        let row = |id: &str, name: &str, [run, wait, slices]: [u64; 3]| TopRow {
            id: id.into(),
            name: name.into(),
            run,
            wait,
            slices,
        };
        assert_eq!(
            task_rows(&before, &after, RowOwner::Processes),
            [row("7", "server", [1_200, 25, 5])]
        );
        assert_eq!(
            task_rows(&before, &after, RowOwner::Threads),
            [
                row("8", "worker", [1_000, 20, 3]),
                row("10", "new", [200, 5, 2])
            ]
        );
    }
}
