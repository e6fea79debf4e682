//! `runslice stat report` and `runslice stat diff`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use stats::schedstat::{Counted, CpuInterval, HzEvidence, Interval, SchedstatReader, Snapshot};

use super::rows::{self, StatRow, seconds};
use crate::exit::Status;
use crate::kind::{self, WordKind};
use crate::output::{self, To};
use crate::schedstat::{hz_of, open};

/// Options of both verbs.
#[derive(Debug, Args)]
struct Form {
    /// What each row describes.
    #[arg(long, value_enum, default_value_t = By::Total)]
    by: By,

    /// Jiffies per second (HZ) of the kernel that wrote the statistics. Default: the value that
    /// `stat record` noted in the file.
    ///
    /// If the file has no such value: 1000 for versions up to 14, as on machines of that time. For
    /// later versions, the value is computed from timestamps and run times.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    hz: Option<u32>,

    /// For schedstat versions after 17: read the CPU lines as version 17, and leave out the
    /// domains.
    #[arg(long)]
    cpu_lines: bool,

    #[command(flatten)]
    to: To,
}

/// Arguments of `runslice stat report`.
#[derive(Debug, Args)]
pub struct StatReport {
    /// Recording: one or more copies of /proc/schedstat; `-` is standard input. A single copy gives
    /// the results since boot.
    file: PathBuf,

    /// Also print each interval between two snapshots.
    #[arg(long)]
    each: bool,

    #[command(flatten)]
    form: Form,
}

/// Arguments of `runslice stat diff`.
#[derive(Debug, Args)]
pub struct StatDiff {
    /// Earlier file. Its first snapshot is used.
    before: PathBuf,

    /// Later file. Its last snapshot is used.
    after: PathBuf,

    #[command(flatten)]
    form: Form,
}

/// What each row describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// The whole machine.
    Total,
    /// Each CPU, and the whole machine.
    Cpu,
    /// Each level of scheduling domains, over all CPUs.
    Domain,
}

/// Prints the figures of a recording.
///
/// # Errors
/// When the file cannot be read or holds something else.
pub fn run(request: &StatReport) -> anyhow::Result<Status> {
    let form = &request.form;
    form.spares(&[&request.file])?;
    let mut log = Log::read(request)?;
    let hz = hz_of(form.hz, log.hz, &log.evidence)?;
    let intervals = log.intervals(hz)?;
    let mut until = 0;
    let mut rows = Vec::new();
    for interval in &intervals {
        until += interval.jiffies();
        let until = seconds(until, hz);
        rows.extend(form.rows(interval, hz).map(|row| StatRow { until, ..row }));
    }
    notes(&intervals, &log.restarted)?;
    beyond(&intervals, hz)?;
    contradictions([&log.first].into_iter().chain(&log.last))?;
    // What is whole is reported before the rest is complained about.
    if !rows.is_empty() {
        form.write(&rows)?;
    }
    log.failed.map_or(Ok(Status::Done), |error| {
        Err(error.context(request.file.display().to_string()))
    })
}

/// Snapshots of one boot.
struct Log {
    first: Snapshot,
    /// Behind the first one.
    last: Option<Snapshot>,
    /// How many there are.
    snapshots: usize,
    /// Between neighbours, if each is asked for.
    each: Option<Vec<Interval>>,
    /// CPUs whose counters began anew between neighbours.
    restarted: BTreeSet<u32>,
    /// What the file says itself.
    hz: Option<u32>,
    evidence: HzEvidence,
    /// Why there is no more.
    failed: Option<anyhow::Error>,
}

impl Log {
    /// Reads to the end, to the first line that is wrong, or to a reboot.
    fn read(request: &StatReport) -> anyhow::Result<Self> {
        let named = || request.file.display().to_string();
        kind::refuse_other_file(&request.file, WordKind::Recording)?;
        let reader = SchedstatReader::new(open(&request.file)?);
        let mut reader = reader.with_later_versions(request.form.cpu_lines);
        let Some(first) = reader.next_snapshot().with_context(named)? else {
            bail!("{}: no snapshot", named());
        };
        let mut log = Self {
            first,
            last: None,
            snapshots: 1,
            each: request.each.then(Vec::new),
            restarted: BTreeSet::new(),
            hz: None,
            evidence: HzEvidence::default(),
            failed: None,
        };
        log.evidence.snapshot(&log.first);
        while let Some(next) = reader.next_snapshot().transpose() {
            if let Err(error) = next.map_err(Into::into).and_then(|next| log.add(next)) {
                log.failed = Some(error);
                break;
            }
        }
        log.hz = reader.hz();
        Ok(log)
    }

    fn add(&mut self, next: Snapshot) -> anyhow::Result<()> {
        let before = self.last.as_ref().unwrap_or(&self.first);
        let number = self.snapshots + 1;
        let interval = Interval::new(before, &next)
            .with_context(|| format!("snapshot {number} and those behind it are left out"))?;
        self.evidence.snapshot(&next);
        self.evidence.interval(&interval);
        self.restarted.extend(restarted(&interval));
        if let Some(each) = &mut self.each {
            each.push(interval);
        }
        (self.last, self.snapshots) = (Some(next), number);
        Ok(())
    }

    /// What is reported: all between neighbours, or one from the first snapshot to the last. A
    /// snapshot that is alone tells what happened since boot.
    fn intervals(&mut self, hz: u32) -> anyhow::Result<Vec<Interval>> {
        match (&self.last, self.each.take()) {
            (Some(_), Some(each)) => Ok(each),
            (Some(last), None) => Ok(vec![Interval::new(&self.first, last)?]),
            (None, _) if self.failed.is_some() => Ok(Vec::new()),
            (None, _) => {
                writeln!(io::stderr(), "runslice: one snapshot: figures since boot")?;
                Ok(vec![Interval::since_boot(&self.first, hz)])
            }
        }
    }
}

/// The CPUs whose counters began anew in an interval.
fn restarted(interval: &Interval) -> impl Iterator<Item = u32> {
    let cpus = interval.cpus.iter().filter(|cpu| cpu.restarted);
    cpus.map(|cpu| cpu.cpu)
}

/// Says on standard error what the table does not show.
fn notes(intervals: &[Interval], restarted: &BTreeSet<u32>) -> io::Result<()> {
    let mut to = io::stderr();
    let cpus = |of: fn(&Interval) -> &[u32]| -> BTreeSet<u32> {
        intervals.iter().flat_map(of).copied().collect()
    };
    let lines = [
        ("left out: CPUs that came", &cpus(|interval| &interval.came)),
        ("left out: CPUs that went", &cpus(|interval| &interval.gone)),
        (
            "counters began anew, perhaps the machine was started anew: CPUs",
            restarted,
        ),
    ];
    for (what, cpus) in lines.iter().filter(|(_, cpus)| !cpus.is_empty()) {
        let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
        writeln!(to, "runslice: {what}: {}", cpus.join(", "))?;
    }
    let counted = |what| intervals.iter().any(|interval| interval.counted() == what);
    let how = "`sysctl kernel.sched_schedstats=1` or `stat record --enable` switches it on";
    if counted(Counted::Times) {
        writeln!(
            to,
            "runslice: no calls and no imbalance: kernel.sched_schedstats was 0; {how}"
        )?;
    }
    if counted(Counted::Wrapped) {
        writeln!(
            to,
            "runslice: calls and imbalance are not known: the kernel counts them in 32 bits, which \
             so many slices exceed; two snapshots of one day or less tell them"
        )?;
    }
    if counted(Counted::Part) {
        writeln!(
            to,
            "runslice: too few calls: kernel.sched_schedstats was 0 for a part of the time; {how}"
        )?;
    }
    Ok(())
}

/// Says of which CPUs the times are not known.
fn beyond(intervals: &[Interval], hz: u32) -> io::Result<()> {
    let cpus = intervals.iter().flat_map(|interval| interval.beyond(hz));
    let cpus: Vec<String> = cpus.map(|cpu| cpu.to_string()).collect();
    if cpus.is_empty() {
        return Ok(());
    }
    writeln!(
        io::stderr(),
        "runslice: run times and waits are not known: their counters say more than the time since \
         boot, so they have wrapped; two snapshots tell them: CPUs: {}",
        cpus.join(", ")
    )
}

/// Says where a line `totals` contradicts the lines of the CPUs, which are what is reported.
fn contradictions<'a>(snapshots: impl IntoIterator<Item = &'a Snapshot>) -> io::Result<()> {
    for snapshot in snapshots {
        if let Some((name, said, sum)) = snapshot.contradiction() {
            writeln!(
                io::stderr(),
                "runslice: timestamp {}: `totals` says {said} of {name}, and the CPUs sum up to \
                 {sum}: the CPUs' counters are used",
                snapshot.timestamp()
            )?;
        }
    }
    Ok(())
}

/// Prints the figures between two files.
///
/// # Errors
/// When a file cannot be read or holds something else, or the two are not of one machine.
pub fn diff(request: &StatDiff) -> anyhow::Result<Status> {
    let form = &request.form;
    form.spares(&[&request.before, &request.after])?;
    let (before, noted) = pick(&request.before, true, form.cpu_lines)?;
    let (after, noted_later) = pick(&request.after, false, form.cpu_lines)?;
    let interval = Interval::new(&before, &after).with_context(|| {
        format!(
            "{} to {}",
            request.before.display(),
            request.after.display()
        )
    })?;
    let mut evidence = HzEvidence::default();
    evidence.snapshot(&before);
    evidence.snapshot(&after);
    evidence.interval(&interval);
    let hz = hz_of(form.hz, noted_later.or(noted), &evidence)?;
    let rows: Vec<StatRow> = form.rows(&interval, hz).collect();
    let restarted = restarted(&interval).collect();
    notes(&[interval], &restarted)?;
    contradictions([&before, &after])?;
    form.write(&rows)?;
    Ok(Status::Done)
}

/// The first or the last snapshot of a file, and the HZ that the file says.
fn pick(path: &Path, first: bool, cpu_lines: bool) -> anyhow::Result<(Snapshot, Option<u32>)> {
    kind::refuse_other_file(path, WordKind::Recording)?;
    let mut reader = SchedstatReader::new(open(path)?).with_later_versions(cpu_lines);
    let named = || path.display().to_string();
    let Some(mut snapshot) = reader.next_snapshot().with_context(named)? else {
        bail!("{}: no snapshot", named());
    };
    if first {
        return Ok((snapshot, reader.hz()));
    }
    while let Some(next) = reader.next_snapshot().with_context(named)? {
        snapshot = next;
    }
    Ok((snapshot, reader.hz()))
}

impl Form {
    fn rows(&self, interval: &Interval, hz: u32) -> impl Iterator<Item = StatRow> {
        let mut rows = Vec::new();
        let all = interval.cpus.len();
        match self.by {
            By::Total => {}
            By::Cpu => rows.extend(
                interval
                    .cpus
                    .iter()
                    .map(|cpu| StatRow::new(interval, cpu, format!("cpu{}", cpu.cpu), 1, hz)),
            ),
            By::Domain => {
                for (name, level) in levels(interval) {
                    rows.push(StatRow::new(interval, &level, name, all, hz).of_domain());
                }
            }
        }
        rows.push(StatRow::new(
            interval,
            &interval.total(),
            "all".to_owned(),
            all,
            hz,
        ));
        rows.into_iter()
    }

    /// Refuses to write the results over what they are made of.
    fn spares(&self, files: &[&Path]) -> anyhow::Result<()> {
        let read: Vec<_> = files
            .iter()
            .map(|file| ("the recording", Some(*file)))
            .collect();
        output::spare(&read, &[("--output", self.to.output.as_deref())])
    }

    fn write(&self, rows: &[StatRow]) -> anyhow::Result<()> {
        let format = self.to.format()?;
        let mut to = output::open_form(format.export(), self.to.output.as_deref())?;
        rows::write(rows, format, &mut to)?;
        to.flush()?;
        Ok(())
    }
}

/// For each level of domains a value that has only this level's counters.
fn levels(interval: &Interval) -> BTreeMap<String, CpuInterval> {
    let total = interval.total();
    let alone = |domain: &stats::schedstat::DomainInterval| CpuInterval {
        counters: vec![0; total.counters.len()],
        domains: vec![domain.clone()],
        ..total.clone()
    };
    let named = total.domains.iter().map(|domain| {
        let name = format!("domain{} {}", domain.level, domain.name);
        (name.trim_end().to_owned(), alone(domain))
    });
    named.collect()
}
