//! `runslice stat report` and `runslice stat diff`.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use stats::schedstat::{CpuInterval, Interval, SchedstatReader, Snapshot};

use super::rows::{self, Row, seconds};
use crate::exit::Status;
use crate::output;
use crate::report::Format;
use crate::schedstat::{hz_of, open};

/// What both verbs are asked alike.
#[derive(Debug, Args)]
struct Form {
    /// What a row stands for.
    #[arg(long, value_enum, default_value_t = By::Total)]
    by: By,

    /// Jiffies a second of the kernel that wrote the statistics, its HZ. Default: 1000 for
    /// versions up to 14, as on the machines of the time, else 250, as on Debian.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    hz: Option<u32>,

    /// How results are written.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// Writes the results to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What `runslice stat report` is asked.
#[derive(Debug, Args)]
pub struct Report {
    /// Recording: one or more copies of /proc/schedstat; `-` is standard input.
    file: PathBuf,

    /// Prints each interval between two snapshots, not only the whole.
    #[arg(long)]
    each: bool,

    #[command(flatten)]
    form: Form,
}

/// What `runslice stat diff` is asked.
#[derive(Debug, Args)]
pub struct Diff {
    /// File with the earlier snapshot; its first one counts.
    before: PathBuf,

    /// File with the later snapshot; its last one counts.
    after: PathBuf,

    #[command(flatten)]
    form: Form,
}

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// The machine.
    Total,
    /// Each CPU, and the machine.
    Cpu,
    /// Each level of scheduling domains, over all CPUs.
    Domain,
}

/// Prints the figures of a recording.
///
/// # Errors
/// When the file cannot be read or holds something else.
pub fn run(request: &Report) -> anyhow::Result<Status> {
    let named = || request.file.display().to_string();
    let mut reader = SchedstatReader::new(open(&request.file)?);
    let Some(first) = reader.next_snapshot().with_context(named)? else {
        bail!("{}: no snapshot", named());
    };
    let hz = hz_of(request.form.hz, &first)?;
    let mut before = first.clone();
    let mut last = None;
    let mut rows = Vec::new();
    let mut torn = None;
    loop {
        let next = match reader.next_snapshot() {
            Ok(Some(next)) => next,
            Ok(None) => break,
            Err(error) => {
                torn = Some(error);
                break;
            }
        };
        let until = seconds(next.timestamp().wrapping_sub(first.timestamp()), hz);
        if request.each {
            let interval = Interval::new(&before, &next).with_context(named)?;
            rows.extend(
                request
                    .form
                    .rows(&interval, hz)
                    .map(|row| Row { until, ..row }),
            );
            before = next.clone();
        }
        last = Some(next);
    }
    // What is whole is reported before the rest is complained about.
    match (&last, request.each) {
        (Some(last), false) => {
            let interval = Interval::new(&first, last).with_context(named)?;
            rows.extend(request.form.rows(&interval, hz));
        }
        (None, _) if torn.is_none() => bail!(
            "{}: one snapshot only, and figures need two; `runslice stat record` adds others",
            named()
        ),
        _ => {}
    }
    if !rows.is_empty() {
        request.form.write(&rows)?;
    }
    match torn {
        Some(error) => Err(anyhow::Error::new(error).context(named())),
        None => Ok(Status::Done),
    }
}

/// Prints the figures between two files.
///
/// # Errors
/// When a file cannot be read or holds something else, or the two are not of one machine.
pub fn diff(request: &Diff) -> anyhow::Result<Status> {
    let before = pick(&request.before, true)?;
    let after = pick(&request.after, false)?;
    let hz = hz_of(request.form.hz, &after)?;
    let interval = Interval::new(&before, &after).with_context(|| {
        format!(
            "{} to {}",
            request.before.display(),
            request.after.display()
        )
    })?;
    for (what, cpus) in [("came", &interval.came), ("went", &interval.gone)] {
        if !cpus.is_empty() {
            writeln!(
                io::stderr(),
                "runslice: left out: CPUs that {what}: {cpus:?}"
            )?;
        }
    }
    let rows: Vec<Row> = request.form.rows(&interval, hz).collect();
    request.form.write(&rows)?;
    Ok(Status::Done)
}

/// The first or the last snapshot of a file.
fn pick(path: &Path, first: bool) -> anyhow::Result<Snapshot> {
    let mut reader = SchedstatReader::new(open(path)?);
    let named = || path.display().to_string();
    let Some(mut snapshot) = reader.next_snapshot().with_context(named)? else {
        bail!("{}: no snapshot", named());
    };
    if first {
        return Ok(snapshot);
    }
    while let Some(next) = reader.next_snapshot().with_context(named)? {
        snapshot = next;
    }
    Ok(snapshot)
}

impl Form {
    fn rows(&self, interval: &Interval, hz: u32) -> impl Iterator<Item = Row> {
        let mut rows = Vec::new();
        let all = interval.cpus.len();
        match self.by {
            By::Total => {}
            By::Cpu => rows.extend(
                interval
                    .cpus
                    .iter()
                    .map(|cpu| Row::new(interval, cpu, format!("cpu{}", cpu.cpu), 1, hz)),
            ),
            By::Domain => {
                for (name, level) in levels(interval) {
                    rows.push(Row::new(interval, &level, name, all, hz));
                }
            }
        }
        rows.push(Row::new(
            interval,
            &interval.total(),
            "all".to_owned(),
            all,
            hz,
        ));
        rows.into_iter()
    }

    fn write(&self, rows: &[Row]) -> anyhow::Result<()> {
        output::check(self.format.sheet(), self.output.as_deref())?;
        let mut to = output::open(self.output.as_deref())?;
        rows::write(rows, self.format, &mut to)?;
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
