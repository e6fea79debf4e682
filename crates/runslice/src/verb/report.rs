//! `runslice report RUN...`: figures of runs, as one page or as single files.

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use model::{Advised, Header, Nanos, SimTime};
use show::figure::{self, Chart, Collector, Statistics};
#[cfg(feature = "png")]
use show::picture;
use stats::schedstat::{HzEvidence, Interval, SchedstatReader};
use stats::{Metrics, Tails};
use traces::Tee;

use crate::about::About;
use crate::exit::Status;
use crate::kind::{self, WordKind};
use crate::page::{Fold, Page};
use crate::report::page::{self, PagePart};
use crate::report::{Outcome, Results, World};
use crate::{files, output, schedstat};
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
    header: Header,
    report: stats::Report,
    tails: Tails,
}

/// All that was read.
#[derive(Default)]
struct Input {
    runs: Vec<Run>,
    logs: Vec<Statistics>,
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
    output::can_write(&[("--output", request.output.as_deref())])?;
    let mut input = Input::default();
    for path in &request.run {
        output::distinct(&[
            ("a run", Some(path)),
            ("--output", request.output.as_deref()),
        ])?;
        read(path, request, &mut input)?;
    }
    let charts = figures(&input);
    let mut has_files = false;
    if let Some(folder) = &request.svg {
        has_files = true;
        write_figures(&charts, folder, "svg", |chart| {
            Ok(figure::svg(chart, true).into_bytes())
        })?;
    }
    #[cfg(feature = "png")]
    if let Some(folder) = &request.png {
        has_files = true;
        let painter = picture::Painter::default();
        write_figures(&charts, folder, "png", |chart| Ok(painter.paint(chart)?))?;
    }
    let page = match &request.output {
        Some(path) => Some(path.as_path()),
        None => (!has_files).then(|| Path::new("report.html")),
    };
    if let Some(path) = page {
        let page = page_of(input);
        let mut to = output::create(path)?;
        page.write(&mut to)
            .and_then(|()| to.flush())
            .map_err(model::CannotWrite::at(path.display()))?;
        output::announce(&page.verdict, Some(path))?;
    }
    Ok(Status::Done)
}

/// Runs of one load on one machine: where, what they gave, and what is drawn of them.
type Place = (String, Results, Vec<(String, Tails)>, Vec<Collector>);

/// The page: what runs of one load on one machine say is one answer.
fn page_of(input: Input) -> Page {
    let names = figure::names_of(
        &input
            .runs
            .iter()
            .map(|run| &run.collected)
            .collect::<Vec<_>>(),
    );
    let mut places: Vec<Place> = Vec::new();
    for (run, name) in input.runs.into_iter().zip(names) {
        let place = run.collected.place();
        let at = places.iter().position(|(known, ..)| *known == place);
        let at = at.unwrap_or_else(|| {
            let results = Results {
                world: World::default(),
                workload: run.header.workload.clone(),
                is_rerun: false,
                machine: run.header.machine.clone(),
                seed: run.header.seed,
                outcomes: Vec::new(),
                spread: Vec::new(),
            };
            places.push((place, results, Vec::new(), Vec::new()));
            places.len() - 1
        });
        let (_, results, tails, collected) = &mut places[at];
        // Runs of one policy are told apart as in the figures.
        let is_known = results
            .outcomes
            .iter()
            .any(|it| it.policy == run.header.policy);
        let policy = if is_known {
            name
        } else {
            run.header.policy.clone()
        };
        tails.push((policy.clone(), run.tails));
        collected.push(run.collected);
        results
            .outcomes
            .push(Outcome::of_events(policy, run.report));
    }
    let parts: Vec<PagePart<'_>> = places
        .iter_mut()
        .map(|(_, results, tails, collected)| PagePart {
            results,
            tails: std::mem::take(tails),
            collected: std::mem::take(collected),
        })
        .collect();
    let mut page = page::page(&parts, false, &About::origin());
    statistics_of(&input.logs, &mut page);
    page
}

/// Adds the figures of scheduler statistics, and what they say as a whole if there is nothing else.
fn statistics_of(logs: &[Statistics], page: &mut Page) {
    let charts = figure::of_statistics(logs);
    if logs.is_empty() {
        return;
    }
    for log in logs {
        page.answers.push((log.name.clone(), log.in_words()));
    }
    if page.verdict.is_empty() {
        let names: Vec<&str> = logs.iter().map(|log| log.name.as_str()).collect();
        page.title = format!("Scheduler statistics of {}", names.join(", "));
        page.verdict = logs
            .iter()
            .map(|log| format!("{}: {}.", log.name, log.in_words()))
            .collect();
        page.answers.clear();
    }
    let open = 2_usize
        .saturating_sub(page.pictures.len())
        .min(charts.len());
    page.pictures.extend(charts[..open].iter().cloned());
    page.folds.extend(Fold::figures(
        "statistics",
        "Scheduler statistics",
        &charts[open..],
    ));
}

/// Writes each figure into a file of its own, named for it.
fn write_figures(
    charts: &[Chart],
    folder: &Path,
    ending: &str,
    drawn: impl Fn(&Chart) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<()> {
    output::make_folder(folder)?;
    for chart in charts {
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
    let file = files::open(path).map_err(model::CannotRead::at(named()))?;
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
        kind::refuse_other_file(path, WordKind::Recording)?;
        bail!(Advised::new(
            format!("{}: neither events nor scheduler statistics", named()),
            "`sim --events FILE`, `play --events FILE` and `stat record FILE` write what can be \
             drawn"
        ));
    }
    Ok(())
}

fn events(source: impl BufRead, between: Option<(SimTime, SimTime)>) -> anyhow::Result<Run> {
    let mut collected = Collector::new(between);
    let mut metrics = Metrics::new();
    traces::replay(source, &mut Tee::new(vec![&mut collected, &mut metrics]))?;
    let header = collected.header().context("there is no header")?.clone();
    Ok(Run {
        collected,
        header,
        report: metrics.report(),
        tails: metrics.tails(),
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
        bail!(Advised::new(
            "there is only one snapshot, and figures need two",
            "`runslice stat record` adds more"
        ));
    }
    Ok(Statistics {
        name,
        hz,
        intervals,
    })
}

/// Every figure, from what runs have in common to each run.
fn figures(input: &Input) -> Vec<Chart> {
    let collected: Vec<&Collector> = input.runs.iter().map(|run| &run.collected).collect();
    let mut charts = figure::comparison(&collected);
    let several = collected.len() > 1;
    for (index, run) in collected.iter().enumerate() {
        let mut own = run.charts();
        for chart in own.iter_mut().filter(|_| several) {
            chart.id = format!("run{}-{}", index + 1, chart.id);
        }
        charts.extend(own);
    }
    let names = figure::names_of(&collected);
    let tails: Vec<(&str, &Tails)> = names
        .iter()
        .zip(&input.runs)
        .map(|(name, run)| (name.as_str(), &run.tails))
        .collect();
    if let Some(first) = collected.first() {
        charts.push(figure::tails(&tails, &first.place()));
    }
    charts.extend(figure::of_statistics(&input.logs));
    charts.retain(|chart| !chart.body.is_empty());
    charts
}
