//! `runslice report RUN...`: figures of runs, as one page or as single files.

mod page;
#[cfg(feature = "png")]
mod picture;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use model::{Nanos, SimTime};
use stats::figure::{self, Chart, Collector, Statistics};
use stats::schedstat::{HzEvidence, Interval, SchedstatReader};
use stats::{Metrics, Tee};

use crate::exit::Status;
use crate::{output, schedstat};
use model::span;

/// Arguments of `runslice report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Runs to draw: files of events from `sim --events` or `play --events`, or recordings of
    /// scheduler statistics. Several runs share each figure.
    #[arg(required = true)]
    run: Vec<PathBuf>,

    /// File for the page. It needs no other file and no network. Default: report.html, unless --svg
    /// or --png is given.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write each figure as an SVG file into this folder, which is created if needed.
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,

    /// Write each figure as a PNG file into this folder, which is created if needed. The picture
    /// has light colors and twice the size of the SVG.
    #[cfg(feature = "png")]
    #[arg(long, value_name = "FOLDER")]
    png: Option<PathBuf>,

    /// Draw only this part of the time, such as 1s..1.5s. Has an effect on event files only.
    #[arg(long, value_name = "FROM..TO", value_parser = parse_between)]
    between: Option<(SimTime, SimTime)>,

    /// Jiffies per second (HZ) of the kernels that wrote the statistics. Default: 1000 for versions
    /// up to 14, as on machines of that time, and 250, as on Debian, for later ones.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    hz: Option<u32>,
}

/// One run that sent events.
struct Run {
    collected: Collector,
    report: stats::Report,
}

/// All that was read.
#[derive(Default)]
struct Input {
    runs: Vec<Run>,
    logs: Vec<Statistics>,
}

/// A part of the page: figures with a heading, and the run that they are of.
struct Section<'a> {
    heading: String,
    of: Option<&'a Run>,
    charts: Vec<Chart>,
}

/// Reads two times with two points between them.
fn parse_between(text: &str) -> Result<(SimTime, SimTime), String> {
    let (from, to) = text
        .split_once("..")
        .ok_or_else(|| "expected two times, such as 1s..1.5s".to_owned())?;
    let [from, to] = [span::parse(from)?, span::parse(to)?].map(Nanos::get);
    if from >= to {
        return Err("the second time must be later than the first".to_owned());
    }
    Ok((SimTime::from_nanos(from), SimTime::from_nanos(to)))
}

/// Reads the runs, and writes the page and the figures.
///
/// # Errors
/// When a file cannot be read or written, or holds neither events nor statistics.
pub fn run(request: &Report) -> anyhow::Result<Status> {
    let mut input = Input::default();
    for path in &request.run {
        output::distinct(&[
            ("a run", Some(path)),
            ("--output", request.output.as_deref()),
        ])?;
        read(path, request, &mut input)?;
    }
    let sections = sections(&input);
    let mut has_files = false;
    if let Some(folder) = &request.svg {
        has_files = true;
        figures(&sections, folder, "svg", |chart| {
            Ok(figure::svg(chart, true).into_bytes())
        })?;
    }
    #[cfg(feature = "png")]
    if let Some(folder) = &request.png {
        has_files = true;
        let painter = picture::Painter::new();
        figures(&sections, folder, "png", |chart| painter.paint(chart))?;
    }
    let page = match &request.output {
        Some(path) => Some(path.as_path()),
        None => (!has_files).then(|| Path::new("report.html")),
    };
    if let Some(path) = page {
        let mut to = output::create(path)?;
        page::write(&sections, &mut to)
            .and_then(|()| to.flush())
            .with_context(|| format!("cannot write {}", path.display()))?;
        let figures: usize = sections.iter().map(|section| section.charts.len()).sum();
        writeln!(
            io::stderr(),
            "runslice: {} has {figures} figures",
            path.display()
        )?;
    }
    Ok(Status::Done)
}

/// Writes each figure into a file of its own, named for it.
fn figures(
    sections: &[Section<'_>],
    folder: &Path,
    ending: &str,
    drawn: impl Fn(&Chart) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for chart in sections.iter().flat_map(|section| &section.charts) {
        let path = folder.join(format!("{}.{ending}", chart.id));
        let bytes = drawn(chart).with_context(|| path.display().to_string())?;
        let mut to = output::create(&path)?;
        to.write_all(&bytes).and_then(|()| to.flush())?;
    }
    Ok(())
}

/// Reads one file, whatever it is.
fn read(path: &Path, request: &Report, input: &mut Input) -> anyhow::Result<()> {
    let named = || path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {}", named()))?;
    let mut source = BufReader::new(file);
    let begin = source.fill_buf().with_context(named)?;
    if begin.starts_with(b"{") {
        input
            .runs
            .push(events(source, request.between).with_context(named)?);
    } else if begin.starts_with(b"version ") {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let log = statistics(source, name.into_owned(), request.hz).with_context(named)?;
        input.logs.push(log);
    } else {
        bail!(
            "{}: neither events nor scheduler statistics; `sim --events FILE`, \
             `play --events FILE` and `stat record FILE` write what can be drawn",
            named()
        );
    }
    Ok(())
}

fn events(source: impl BufRead, between: Option<(SimTime, SimTime)>) -> anyhow::Result<Run> {
    let mut collected = Collector::new(between);
    let mut metrics = Metrics::new();
    stats::replay(source, &mut Tee::new(vec![&mut collected, &mut metrics]))?;
    Ok(Run {
        collected,
        report: metrics.report(),
    })
}

fn statistics(source: impl BufRead, name: String, hz: Option<u32>) -> anyhow::Result<Statistics> {
    let mut reader = SchedstatReader::new(source);
    let Some(mut before) = reader.next_snapshot()? else {
        bail!("no snapshot");
    };
    let mut evidence = HzEvidence::default();
    evidence.snapshot(&before);
    let mut intervals = Vec::new();
    while let Some(after) = reader.next_snapshot()? {
        let interval = Interval::new(&before, &after)?;
        evidence.snapshot(&after);
        evidence.interval(&interval);
        intervals.push(interval);
        before = after;
    }
    let hz = schedstat::hz_of(hz, reader.hz(), &evidence)?;
    if intervals.is_empty() {
        bail!("there is only one snapshot, and figures need two; `runslice stat record` adds more");
    }
    Ok(Statistics {
        name,
        hz,
        intervals,
    })
}

/// What the page has, from what runs have in common to each run.
fn sections(input: &Input) -> Vec<Section<'_>> {
    let mut sections = Vec::new();
    let several = input.runs.len() > 1;
    let collected: Vec<&Collector> = input.runs.iter().map(|run| &run.collected).collect();
    let common = figure::comparison(&collected);
    if several {
        sections.push(Section {
            heading: "All runs".to_owned(),
            of: None,
            charts: common.clone(),
        });
    }
    for (index, run) in input.runs.iter().enumerate() {
        let mut charts = run.collected.charts();
        if several {
            for chart in &mut charts {
                chart.id = format!("run{}-{}", index + 1, chart.id);
            }
        } else {
            charts = [common.clone(), charts].concat();
        }
        sections.push(Section {
            heading: run.collected.policy().to_owned(),
            of: Some(run),
            charts,
        });
    }
    if !input.logs.is_empty() {
        sections.push(Section {
            heading: "Scheduler statistics".to_owned(),
            of: None,
            charts: figure::of_statistics(&input.logs),
        });
    }
    sections
}
