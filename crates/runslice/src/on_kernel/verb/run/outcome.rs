//! What came of a run: the command's time and latencies, the policy's counters and the kernel's.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use live::{TimedEnd, TreeCounts};
use model::{Nanos, PolicySpec};
use serde::Serialize;

use crate::report::Format;
use crate::table::Table;

/// Version of the document; it grows when a field is removed or changes its meaning.
const VERSION: u32 = 1;

/// All that is known afterwards.
#[derive(Debug)]
pub struct RunOutcome {
    policy: String,
    set: Vec<(String, String)>,
    command: Vec<String>,
    /// How long the policy was attached.
    pub ran: Duration,
    /// How often it was loaded again.
    pub restarts: u32,
    /// Why the kernel ended it, if it did.
    pub ejection: Option<String>,
    /// Where the kernel's dump is.
    pub dump: Option<PathBuf>,
    /// How the command ended.
    pub end: Option<TimedEnd>,
    /// The kernel's counters for the command and all that it started.
    pub tree: Option<TreeCounts>,
    counters: Vec<(String, u64)>,
    events: Vec<(String, u64)>,
}

#[derive(Serialize)]
struct Document<'a> {
    runslice_run: u32,
    policy: &'a str,
    set: Counters<'a, String>,
    time_ns: u128,
    restarts: u32,
    ejection: Option<&'a str>,
    dump: Option<&'a Path>,
    command: Option<CommandPart<'a>>,
    policy_counters: Counters<'a, u64>,
    kernel_counters: Counters<'a, u64>,
}

/// Pairs as an object, in their order.
struct Counters<'a, T>(&'a [(String, T)]);

impl<T: Serialize> Serialize for Counters<'_, T> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[derive(Serialize)]
struct CommandPart<'a> {
    words: &'a [String],
    /// `None` when a signal ended it.
    status: Option<i32>,
    time_ns: u128,
    #[serde(flatten)]
    tasks: Option<TasksPart>,
}

#[derive(Serialize)]
struct TasksPart {
    tasks: u64,
    living: u64,
    unseen: u64,
    run_ns: u64,
    wait_ns: u64,
    slices: u64,
    migrations: u64,
    voluntary: u64,
    involuntary: u64,
}

impl RunOutcome {
    /// Nothing is known yet.
    pub fn new(spec: &PolicySpec, command: &[String]) -> Self {
        Self {
            policy: spec.name.clone(),
            set: spec.set.clone(),
            command: command.to_vec(),
            ran: Duration::ZERO,
            restarts: 0,
            ejection: None,
            dump: None,
            end: None,
            tree: None,
            counters: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Adds the counters of one attachment; a restart begins anew at zero.
    pub fn add(&mut self, counters: Vec<(String, u64)>, events: Vec<(String, u64)>) {
        add(&mut self.counters, counters);
        add(&mut self.events, events);
    }

    /// Writes it.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(&self, form: Format, to: &mut dyn Write) -> io::Result<()> {
        if form == Format::Json {
            serde_json::to_writer_pretty(&mut *to, &self.document()).map_err(io::Error::from)?;
            return writeln!(to);
        }
        self.write_human(to)
    }

    fn document(&self) -> Document<'_> {
        let command = self.end.as_ref().map(|end| CommandPart {
            words: &self.command,
            status: end.status.code(),
            time_ns: end.took.as_nanos(),
            tasks: self.tree.map(TasksPart::from),
        });
        Document {
            runslice_run: VERSION,
            policy: &self.policy,
            set: Counters(&self.set),
            time_ns: self.ran.as_nanos(),
            restarts: self.restarts,
            ejection: self.ejection.as_deref(),
            dump: self.dump.as_deref(),
            command,
            policy_counters: Counters(&self.counters),
            kernel_counters: Counters(&self.events),
        }
    }

    fn write_human(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut parts = Vec::new();
        if let Some(end) = &self.end {
            parts.push(self.command_table(end));
        }
        for (title, counters) in [
            ("policy counter", &self.counters),
            ("kernel counter", &self.events),
        ] {
            let mut table = Table::default().names(title).numbers("total");
            for (name, count) in counters {
                table.row([name.clone(), count.to_string()]);
            }
            if !table.is_empty() {
                parts.push(table);
            }
        }
        let parts: Vec<_> = parts.iter().map(ToString::to_string).collect();
        write!(to, "{}", parts.join("\n"))
    }

    /// The command's time, and what its tasks experienced.
    fn command_table(&self, end: &TimedEnd) -> Table {
        let mut table = Table::default().names("command").numbers("total");
        let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
        row("time", nanos(end.took.as_nanos()));
        let Some(tree) = &self.tree else {
            return table;
        };
        row("tasks", tree.tasks.to_string());
        if tree.living > 0 {
            row("tasks that go on", tree.living.to_string());
        }
        if tree.unseen > 0 {
            row("tasks not counted", tree.unseen.to_string());
        }
        let counts = &tree.counts;
        row("on a CPU", nanos(counts.run_ns.into()));
        row("waiting for one", nanos(counts.wait_ns.into()));
        row("slices", counts.slices.to_string());
        let mean = |sum: u64| match counts.slices {
            0 => "-".to_owned(),
            slices => nanos((sum / slices).into()),
        };
        row("mean slice", mean(counts.run_ns));
        row("mean wait", mean(counts.wait_ns));
        row("switches to wait", counts.voluntary.to_string());
        row("switches forced", counts.involuntary.to_string());
        row("moves to other CPUs", counts.migrations.to_string());
        table
    }
}

impl From<TreeCounts> for TasksPart {
    fn from(tree: TreeCounts) -> Self {
        let counts = tree.counts;
        Self {
            tasks: tree.tasks,
            living: tree.living,
            unseen: tree.unseen,
            run_ns: counts.run_ns,
            wait_ns: counts.wait_ns,
            slices: counts.slices,
            migrations: counts.migrations,
            voluntary: counts.voluntary,
            involuntary: counts.involuntary,
        }
    }
}

fn nanos(span: u128) -> String {
    Nanos::new(u64::try_from(span).unwrap_or(u64::MAX)).to_string()
}

/// Adds counters by name.
fn add(sums: &mut Vec<(String, u64)>, more: Vec<(String, u64)>) {
    for (name, count) in more {
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += count,
            None => sums.push((name, count)),
        }
    }
}

/// A line of counters that overwrites itself.
#[derive(Debug, Default)]
pub struct Line {
    before: Vec<(String, u64)>,
}

impl Line {
    /// Shows what was counted since the last time, which is a second ago.
    pub fn show(&mut self, passed: Duration, counters: &[(String, u64)]) {
        let text = self.text(passed, counters);
        self.before = counters.to_vec();
        // Without wrapping, so that a narrow terminal cuts the line instead of scrolling. One
        // that cannot be shown is no reason to end the policy.
        let _ = write!(io::stderr(), "\r\x1b[K\x1b[?7l{text}\x1b[?7h");
    }

    /// Leaves the line to whoever prints next.
    pub fn end(&self) {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }

    fn text(&self, passed: Duration, counters: &[(String, u64)]) -> String {
        let mut text = format!("{} s", passed.as_secs());
        for (name, count) in counters {
            let before = self.before.iter().find(|(known, _)| known == name);
            let more = count.saturating_sub(before.map_or(0, |(_, count)| *count));
            text += &format!("  {name} {more}/s");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use live::TaskCounts;

    use super::*;
    use crate::computer::COMPUTER;

    fn outcome() -> RunOutcome {
        let spec = crate::policy::find(&COMPUTER, "fifo:slice_ns=5000000").unwrap();
        let mut outcome = RunOutcome::new(&spec, &["make".to_owned()]);
        let pairs = |pairs: &[(&str, u64)]| {
            let owned = pairs
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count));
            owned.collect::<Vec<_>>()
        };
        outcome.add(
            pairs(&[("direct", 3), ("queued", 1)]),
            pairs(&[("SCX_EV_X", 1)]),
        );
        outcome.add(
            pairs(&[("direct", 2), ("queued", 0)]),
            pairs(&[("SCX_EV_X", 4)]),
        );
        outcome.end = Some(TimedEnd {
            status: ExitStatus::from_raw(7 << 8),
            took: Duration::from_millis(1500),
            user: Duration::ZERO,
            system: Duration::ZERO,
            memory: 0,
        });
        outcome.tree = Some(TreeCounts {
            tasks: 3,
            living: 1,
            unseen: 0,
            counts: TaskCounts {
                run_ns: 900_000_000,
                wait_ns: 30_000_000,
                slices: 300,
                migrations: 4,
                voluntary: 250,
                involuntary: 47,
            },
        });
        outcome
    }

    fn written(form: Format) -> String {
        let mut text = Vec::new();
        outcome().write(form, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn people_get_the_command_first_and_then_the_counters() {
        let want = "\
command                total
time                  1.50 s
tasks                      3
tasks that go on           1
on a CPU              900 ms
waiting for one      30.0 ms
slices                   300
mean slice           3.00 ms
mean wait             100 us
switches to wait         250
switches forced           47
moves to other CPUs        4

policy counter  total
direct              5
queued              1

kernel counter  total
SCX_EV_X            5
";
        assert_eq!(written(Format::Human), want);
    }

    #[test]
    fn programs_get_all_of_it() {
        let json: serde_json::Value = serde_json::from_str(&written(Format::Json)).unwrap();
        assert_eq!(json["runslice_run"], 1);
        assert_eq!(json["set"]["slice_ns"], "5000000");
        assert_eq!(json["command"]["words"][0], "make");
        assert_eq!(json["command"]["status"], 7);
        assert_eq!(json["command"]["wait_ns"], 30_000_000);
        assert_eq!(json["policy_counters"]["direct"], 5);
        assert_eq!(json["kernel_counters"]["SCX_EV_X"], 5);
        assert!(json["ejection"].is_null());
    }

    #[test]
    fn the_live_line_has_what_came_in_the_last_second() {
        let mut line = Line::default();
        let counters = |count| vec![("direct".to_owned(), count)];
        line.before = counters(10);
        let text = line.text(Duration::from_secs(7), &counters(25));
        assert_eq!(text, "7 s  direct 15/s");
    }
}
