//! `runslice sim POLICY... --workload WORKLOAD`.

mod audit;
mod books;
mod open;
mod waits;

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ask::ends::GoalSpread;
use ask::load_source::LoadSource;
use ask::measure;
use ask::simulate::Simulate;
use ask::spread;
use clap::Args;
use model::{Nanos, Sink};
use show::figure::Collector;
use show::format::RUNS;
use stats::{Metrics, Tails};
use traces::{JsonLines, Perfetto, Tee};
use workload::RunSpec;

use crate::about::About;
use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::explanation::text;
use crate::look::LookOptions;
use crate::policy::FoundPolicy;
use crate::progress::Progress;
use crate::recording_options::RecordingOptions;
use crate::report::page::{self, PagePart};
use crate::report::{self, Format, Outcome, Results, Shape, TableName, checks};
use crate::run_options::RunOptions;
use crate::runner::{Runner, try_starved};
use crate::runs;
use crate::say::say;
use crate::scheduler::Schedulers;
use crate::timeline::{self, Stretch};
use crate::violation::{self, Property, Signature};
use crate::{kernel, output, policy, workload_arg};

/// Arguments of `runslice sim`.
#[derive(Debug, Args)]
pub struct Sim {
    /// Policy to run: a built-in name, a C source, a BPF object, the binary of a scheduler, or a
    /// bundle. With several policies, each runs under the same workload, and the tables show them
    /// side by side: `sim fifo mlfq` or `sim fifo,mlfq`.
    ///
    /// A source (mine.bpf.c) is compiled first, as by `runslice build`; that takes clang.
    /// Put knobs after a colon: `mlfq:cumulative=1,queues=10`. From a binary, the BPF object in it
    /// is used; if it has several, write FILE@NAME. A bundle is a file from `runslice bundle`: a
    /// policy with its variables and its machine.
    #[arg(required_unless_present = "commands")]
    policy: Vec<String>,

    #[command(flatten)]
    schedulers: Schedulers,

    /// Workload to run: a built-in name, a TOML file, or an rt-app configuration (JSON). Required
    /// without --from, but for the bundle of a recorded run, which has its own.
    #[arg(short, long)]
    workload: Option<String>,

    #[command(flatten)]
    recording: RecordingOptions,

    #[command(flatten)]
    run: RunOptions,

    /// Run also at every end of what is uncertain about the hardware: shares of threads, powers,
    /// speeds of small CPUs. A policy is only called best if it is best at all of them. See
    /// docs/hardware.md.
    #[arg(long, conflicts_with = "audit")]
    hardware_spread: bool,

    /// Simulate what `play` makes of the workload: a real-time thread in the place of each
    /// interrupt, and tasks that have slept for this time before the run begins. `fidelity` knows
    /// for how long they slept.
    #[arg(long, value_name = "TIME", value_parser = workload_arg::parse_jitter,
        conflicts_with_all = ["audit", "schedstat"])]
    as_played: Option<Nanos>,

    /// Right by which tasks that wait for long are judged: weight, cgroup, rank, deadline or none.
    /// Default: the one that each policy declares in its section `right`.
    #[arg(long, value_name = "RIGHT", value_parser = ask::right::parse)]
    right: Option<explain::why::Right>,

    /// Check the simulator instead of printing results. Prints the hash of the events.
    ///
    /// Runs every policy twice, interpreted and as native code. Checks that both runs have the same
    /// events and that all time accounts add up.
    #[arg(long, conflicts_with_all = ["events", "trace", "format", "table", "fail_on"])]
    audit: bool,

    /// Output format. Default: what the ending of the output file stands for (.html, .json, .csv,
    /// .parquet, .xml, .md), else `human`.
    ///
    /// With `html` the answer also stands on standard output.
    #[arg(long, value_parser = report::format_of(RUNS))]
    format: Option<Format>,

    /// Table to write as CSV or Parquet.
    #[arg(long, value_name = "TABLE",
        default_value = "groups", value_parser = report::table_name())]
    table: TableName,

    /// Write every event to this file as JSON lines. With several policies, each gets its own file,
    /// with the policy's name before the file's ending.
    #[arg(long, value_name = "FILE", conflicts_with = "runs")]
    events: Option<PathBuf>,

    /// Write decisions into the files of --events and --trace, too: who put which task into which
    /// queue, who looked at it, kicks, idle CPUs and slices, each with the callback and its line
    /// in the source. A trace also shows how many tasks are in each queue.
    #[arg(long)]
    decisions: bool,

    /// Draw which task has which CPU, and which tasks wait, over this part of the run: `100ms`
    /// from its begin, or `2s..2.1s`.
    #[arg(long, value_name = "PART", value_parser = Stretch::parse,
        conflicts_with_all = ["runs", "audit"])]
    timeline: Option<Stretch>,

    /// Write a trace for Perfetto (ui.perfetto.dev) to this file. With several policies, each gets
    /// its own file, with the policy's name before the file's ending.
    #[arg(long, value_name = "FILE", conflicts_with = "runs")]
    trace: Option<PathBuf>,

    /// Show the trace of the first policy in ui.perfetto.dev, at the address that is printed. The
    /// page takes it from this computer, once, and sends it nowhere.
    #[arg(long, requires = "trace")]
    open: bool,

    /// End with status 3 if a task waits so long for a CPU, for example `--fail-on wait=1s`. The
    /// tasks are named. `explain` says why. May be repeated.
    ///
    /// The other properties of `hunt` can be given, too: `share`, `weights`, `idle-beside-waiting`,
    /// `preemptions`, `migrations`. These make each run once more.
    #[arg(long, value_name = "PROPERTY", value_parser = waits::parse_fail_on)]
    fail_on: Vec<Property>,

    #[command(flatten)]
    books: books::BooksRequest,

    /// Write the results to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    look: LookOptions,
}

impl Sim {
    /// The shortest wait that ends with status 3.
    fn wait_limit(&self) -> Option<Nanos> {
        let limits = self.fail_on.iter().filter_map(|property| match property {
            Property::Wait(limit) => Some(*limit),
            _ => None,
        });
        limits.min()
    }

    const fn shape(&self, format: Format) -> Shape {
        Shape {
            format,
            table: self.table,
            look: self.look,
        }
    }

    /// What must be refused before anything runs.
    fn check(&self, format: Format) -> Result<(), UsageError> {
        let is_for_people = format == Format::Human && self.output.is_none();
        let message = match () {
            () if self.decisions && self.events.is_none() && self.trace.is_none() => {
                "--decisions adds to a file: give --events or --trace"
            }
            () if self.timeline.is_some() && !is_for_people => {
                "--timeline draws on standard output: leave out --format and --output"
            }
            () if self.open && self.trace.as_deref().is_some_and(output::is_standard) => {
                "--open shows a file: name one with --trace"
            }
            () => return Ok(()),
        };
        Err(UsageError::new(message))
    }

    /// Whether events or a trace go to standard output, and the results nowhere else.
    fn is_output_taken(&self) -> bool {
        self.prints_while_it_runs() && self.output.as_deref().is_none_or(output::is_standard)
    }

    /// Whether a run writes to standard output before it is over.
    fn prints_while_it_runs(&self) -> bool {
        let files = [&self.events, &self.trace, &self.books.schedstat];
        let mut files = files.iter().filter_map(|it| it.as_deref());
        files.any(output::is_standard)
    }

    /// The policies, those of schedulers' own programs last.
    fn policies(&self) -> anyhow::Result<Vec<FoundPolicy>> {
        let mut all = Vec::new();
        for argument in policy::list(&COMPUTER, &self.policy) {
            let mut found = policy::open(&COMPUTER, &argument)?;
            self.run.prepare.apply(&mut found.policy)?;
            all.push(found);
        }
        let programs = self.schedulers.policies()?;
        if !programs.is_empty() {
            self.run.prepare.refuse_for_programs()?;
        }
        all.extend(programs.into_iter().map(FoundPolicy::of_policy));
        Ok(all)
    }

    /// As a question has it.
    fn question(&self) -> anyhow::Result<Simulate> {
        Ok(Simulate {
            schedulers: self.policies()?,
            load: self.recording.asked().source()?.or_else(|| {
                let name = self.workload.as_deref();
                name.map(|it| LoadSource::Named(it.into()))
            }),
            scale: self.run.scale.clone(),
            machine: self.run.machine.asked(),
            seed: self.run.seed,
            duration: self.run.duration,
            start_jitter: self.run.start_jitter,
            as_played: self.as_played,
            runs: self.run.runs,
            jobs: self.run.jobs,
            options: self.run.limits.options(),
            goals: Vec::new(),
            right: self.right,
        })
    }

    /// Who is best at every end of what is uncertain about the hardware; nothing if that is not
    /// asked.
    fn spread(&self, mut question: Simulate, given: &Results) -> anyhow::Result<Vec<GoalSpread>> {
        if !self.hardware_spread {
            return Ok(Vec::new());
        }
        let at = |corner: String| {
            question.machine.corner = Some(corner.clone());
            let answer = question.ask(&COMPUTER).map_err(ask::Error::into_cause)?;
            Ok((corner, answer.results))
        };
        let ends: anyhow::Result<Vec<(String, Results)>> = spread::corners(&given.machine)?
            .into_iter()
            .map(at)
            .collect();
        Ok(spread::spreads(given, &ends?))
    }
}

/// Runs every policy and writes what they gave.
///
/// # Errors
/// When a policy, the workload or a file is bad.
pub fn run(request: &Sim) -> anyhow::Result<Status> {
    let format = check(request)?;
    let question = request.question()?;
    let specs = question.specs(&COMPUTER);
    let specs = specs.map_err(ask::Error::into_cause)?;
    check_each(request, &specs)?;
    if request.hardware_spread {
        spread::corners(&specs[0].machine)?;
    }
    if request.run.runs.is_some() {
        runs::refuse_recordings_of_runs(&specs)?;
    }
    if request.audit {
        let mut to = output::open(request.output.as_deref())?;
        for spec in &specs {
            writeln!(to, "{}", audit::audit(spec, request.run.limits.options())?)?;
        }
        to.flush()?;
        return Ok(Status::Done);
    }
    runs::say_end(&COMPUTER, &specs[0]);
    let is_page = format == Format::Html;
    let (outcomes, drawn) = match request.run.runs {
        Some(runs) => many(request, &specs, runs, is_page)?,
        None => each_once(request, &specs, is_page)?,
    };
    let mut results = Results::simulated(&specs[0], outcomes);
    results.spread = request.spread(question, &results)?;
    write(request, format, &results, drawn)?;
    let starved = report_starved(request, format, &results);
    let starved = starved | waits::report(request, &specs, &results);
    let starved = starved | fails(request, &specs)?;
    say_large(request, &specs, &results)?;
    let ejected = report_ejections(request, format, &results);
    for spec in specs.iter().filter(|spec| lacked_something(spec, &results)) {
        if let Some(words) = kernel::elsewhere(&spec.policy.object, spec.machine.kernel) {
            say("runslice", &format!("{}: {words}", spec.policy.name));
        }
    }
    if let Some(trace) = request.trace.as_ref().filter(|_| request.open) {
        let name = &specs[0].policy.name;
        open::show(&output::path_for(trace, name, specs.len() > 1))?;
    }
    Ok(if starved { Status::Ejected } else { ejected })
}

/// Says on standard error what of the measures is large in the first run of each policy, which is
/// no fault by itself: `explain` says the same.
fn say_large(request: &Sim, specs: &[RunSpec], results: &Results) -> anyhow::Result<()> {
    let options = request.run.limits.options();
    for spec in specs {
        let outcomes = &results.outcomes;
        let of = |it: &&Outcome| it.policy == spec.policy.name;
        let Some(report) = outcomes.iter().find(of).map(|it| &it.report) else {
            continue;
        };
        let first = RunSpec {
            seed: report.seed,
            ..spec.clone()
        };
        let counted = (&report.machine, report.all.preempt.count);
        let Some((measured, large)) = measure::of_run(&COMPUTER, (&first, options), counted)?
        else {
            continue;
        };
        for measure in large {
            let words = text::large_words(measure, &measured);
            say("runslice", &format!("{}: {words}", spec.policy.name));
        }
    }
    Ok(())
}

/// Whether a run breaks one of the properties that its results do not tell. Says which.
fn fails(request: &Sim, specs: &[RunSpec]) -> anyhow::Result<bool> {
    let is_other = |it: &Property| !matches!(it, Property::Wait(_));
    let others = request.fail_on.iter().copied().filter(is_other);
    let mut asked: Vec<Property> = others.collect();
    if asked.is_empty() {
        return Ok(false);
    }
    asked.extend(request.right.map(Property::Right));
    let mut has_failed = false;
    for spec in specs {
        for run in runs::all_of(spec, request.run.runs) {
            if let Some(finding) = violation::find(&COMPUTER, &run, &asked)? {
                has_failed = true;
                let (policy, seed) = (&run.policy.name, run.seed);
                let word = Signature::of(&finding).text();
                say("runslice", &format!("{policy}: {word} (seed {seed})"));
                // Of many runs of a policy the first is enough.
                break;
            }
        }
    }
    Ok(has_failed)
}

/// What is read, by what names it.
fn sources<'a>(request: &'a Sim, policies: &'a [String]) -> Vec<(&'a str, Option<&'a Path>)> {
    let policies = policies.iter().map(|it| policy::file_of(&COMPUTER, it));
    let mut read: Vec<_> = policies.map(|file| ("a policy", file)).collect();
    read.push(("--from", request.recording.from.as_deref()));
    let workload = request.workload.as_deref().and_then(workload_arg::file_of);
    read.push(("--workload", workload));
    read.push(("--profile", request.run.machine.profile_file()));
    read.push(("--hardware", request.run.machine.hardware_file()));
    read
}

/// Refuses one file for two purposes also where each policy has a file of its own.
fn check_each(request: &Sim, specs: &[RunSpec]) -> anyhow::Result<()> {
    if specs.len() < 2 {
        return Ok(());
    }
    let asked = [
        ("--events", &request.events),
        ("--trace", &request.trace),
        ("--schedstat", &request.books.schedstat),
    ];
    let mut written = Vec::new();
    for (option, path) in asked {
        let Some(path) = path else { continue };
        let names = specs.iter().map(|spec| &spec.policy.name);
        written.extend(names.map(|name| (option, output::path_for(path, name, true))));
    }
    let mut written: Vec<_> = written
        .iter()
        .map(|(o, path)| (*o, Some(&**path)))
        .collect();
    written.push(("--output", request.output.as_deref()));
    output::spare(
        &sources(request, &policy::list(&COMPUTER, &request.policy)),
        &written,
    )
}

/// Refuses what does not fit together, before the work; the format of the results.
fn check(request: &Sim) -> anyhow::Result<Format> {
    let output = request.output.as_deref();
    let format = output::form(request.format, output, RUNS)?;
    let export = format.export();
    if request.table != TableName::Groups && export.is_none() {
        return Err(report::table_of_csv().into());
    }
    request.check(format)?;
    output::check(export, output)?;
    if format == Format::Html {
        output::page_file(output)?;
    }
    let [printed, metrics] = request.schedulers.files();
    let policies = policy::list(&COMPUTER, &request.policy);
    let written = [
        ("--events", request.events.as_deref()),
        ("--trace", request.trace.as_deref()),
        ("--schedstat", request.books.schedstat.as_deref()),
        ("--output", request.output.as_deref()),
        printed,
        metrics,
    ];
    output::spare(&sources(request, &policies), &written)?;
    if request.run.runs.is_some() && (printed.1.is_some() || metrics.1.is_some()) {
        let message = "--loader-output and --scheduler-stats are of one run: leave out --runs";
        return Err(UsageError::new(message).into());
    }
    Ok(format)
}

/// Writes the results where they are wanted.
fn write(
    request: &Sim,
    format: Format,
    results: &Results,
    drawn: Vec<Drawn>,
) -> anyhow::Result<()> {
    let is_many = request.run.runs.is_some();
    let output = request.output.as_deref();
    if request.is_output_taken() {
        say(
            "sim",
            "the results are not printed: -o writes them to a file",
        );
        return Ok(());
    }
    if matches!(format, Format::Html | Format::Junit | Format::Markdown) {
        return write_for_readers(request, format, results, drawn);
    }
    let shape = request.shape(format);
    let mut to = output::open_shape(shape, output)?;
    if is_many {
        report::write_runs(results, shape, &mut to)?;
    } else {
        report::write(results, shape, &mut to)?;
    }
    Ok(to.flush()?)
}

/// As `write()`, of a page and of what is read in a pull request. What a page says stands on
/// standard output, too.
fn write_for_readers(
    request: &Sim,
    format: Format,
    results: &Results,
    drawn: Vec<Drawn>,
) -> anyhow::Result<()> {
    let is_many = request.run.runs.is_some();
    let output = request.output.as_deref();
    if format != Format::Html {
        let mut to = output::open(output)?;
        match format {
            Format::Junit => checks::junit(results, request.wait_limit(), &mut to)?,
            _ => checks::markdown(results, request.wait_limit(), is_many, &mut to)?,
        }
        return Ok(to.flush()?);
    }
    let path = output::page_file(output)?;
    let shape = request.shape(Format::Human);
    let is_alone = !output::is_standard(path);
    let mut to = output::open_shape(shape, None)?;
    if is_alone {
        page::write_answer(results, is_many, request.look.width(), &mut to)?;
        to.flush()?;
    }
    let (tails, collected): (Vec<_>, Vec<_>) = drawn
        .into_iter()
        .map(|it| ((it.policy, it.tails), it.collected))
        .unzip();
    let part = PagePart {
        results,
        tails,
        collected: collected.into_iter().flatten().collect(),
    };
    let mut file = output::create(path)?;
    page::write(part, is_many, &About::origin(), &mut file)?;
    file.flush()?;
    if is_alone {
        writeln!(to, "Pictures: {}", path.display())?;
    }
    Ok(to.flush()?)
}

/// What is drawn of a run, or of all runs of a policy.
struct Drawn {
    policy: String,
    tails: Tails,
    collected: Option<Collector>,
}

/// Whether a task starved in any run: one that ends before the watchdog looks would be silent
/// otherwise. Says on standard error which, where the results on standard output do not.
fn report_starved(request: &Sim, format: Format, results: &Results) -> bool {
    let outcomes = results.outcomes.iter();
    let starved = outcomes.clone().any(|it| !it.summary.starved.is_empty());
    let is_printed = request.output.is_none() && !request.is_output_taken();
    if is_printed && format == Format::Human && request.run.runs.is_none() {
        return starved;
    }
    let mut told: Vec<&str> = Vec::new();
    for outcome in &results.outcomes {
        let longest = outcome.summary.starved.iter().max_by_key(|it| it.waited);
        // Of many runs of a policy the first is enough.
        if let Some(longest) = longest
            && !told.contains(&outcome.policy.as_str())
        {
            told.push(&outcome.policy);
            let policy = &outcome.policy;
            let tasks = report::counted(outcome.summary.starved.len() as u64, "task");
            let (name, waited) = (&longest.name, longest.waited);
            say(
                "runslice",
                &format!("{policy}: {tasks} STARVED to the end, {name} for {waited}"),
            );
        }
    }
    starved
}

/// Says on standard error what the results on standard output do not say, and gives the status.
fn report_ejections(request: &Sim, format: Format, results: &Results) -> Status {
    let is_shown = format == Format::Human && request.run.runs.is_none();
    let is_printed = request.output.is_none() && !request.is_output_taken();
    let seen = is_printed && is_shown || format == Format::Html;
    let mut status = Status::Done;
    let mut told: Vec<&str> = Vec::new();
    for outcome in &results.outcomes {
        let Some(ejection) = outcome.ejection() else {
            continue;
        };
        status = Status::Ejected;
        // Of many runs of a policy the first is enough.
        if !seen && !told.contains(&outcome.policy.as_str()) {
            told.push(&outcome.policy);
            say("runslice", &ejection);
        }
    }
    status
}

/// Whether one of the runs of `spec` ended because its kernel lacks something.
fn lacked_something(spec: &RunSpec, results: &Results) -> bool {
    let outcomes = results.outcomes.iter();
    let mut its = outcomes.filter(|it| it.policy == spec.policy.name);
    its.any(|it| {
        let exit = &it.summary.exit;
        exit.fault.is_some() && kernel::lacks(&spec.policy, spec.machine.kernel, &exit.message)
    })
}

/// Many runs of each policy, policy by policy.
fn many(
    request: &Sim,
    specs: &[RunSpec],
    runs: u32,
    is_page: bool,
) -> anyhow::Result<(Vec<Outcome>, Vec<Drawn>)> {
    let all: Vec<RunSpec> = specs
        .iter()
        .flat_map(|spec| runs::seeded(spec, runs))
        .collect();
    let options = request.run.limits.options();
    // The waits of all runs of a policy are added as they come; their order changes nothing.
    let drawn: Vec<Mutex<Tails>> = specs.iter().map(|_| Mutex::default()).collect();
    let run = |spec: &RunSpec| {
        let (outcome, metrics) = Runner::new(spec, &COMPUTER)
            .with_options(options)
            .with_right(request.right)
            .measure()?;
        let at = specs
            .iter()
            .position(|it| it.policy.name == spec.policy.name);
        if let Some(at) = at.filter(|_| is_page) {
            let mut tails = drawn[at].lock().unwrap_or_else(PoisonError::into_inner);
            tails.merge(&metrics.tails());
        }
        Ok(outcome)
    };
    let outcomes = COMPUTER.map(&all, COMPUTER.jobs(request.run.jobs), "runs", run)?;
    let drawn = specs.iter().zip(drawn).map(|(spec, tails)| Drawn {
        policy: spec.policy.name.clone(),
        tails: tails.into_inner().unwrap_or_else(PoisonError::into_inner),
        collected: None,
    });
    Ok((outcomes, drawn.collect()))
}

/// One run of each policy, on all CPUs. What is drawn on standard output has their order.
fn each_once(
    request: &Sim,
    specs: &[RunSpec],
    is_page: bool,
) -> anyhow::Result<(Vec<Outcome>, Vec<Drawn>)> {
    // Runs that write to one place must not be mixed.
    let [printed, metrics] = request.schedulers.files();
    let shares = printed.1.is_some() || metrics.1.is_some() || request.prints_while_it_runs();
    let jobs = if shares {
        NonZeroUsize::MIN
    } else {
        COMPUTER.jobs(None)
    };
    let done = match specs {
        // The bar of a run that is alone tells its time.
        [spec] => vec![run_one(request, spec, is_page)?],
        _ => COMPUTER.map(specs, jobs, "policies", |spec| {
            run_one(request, spec, is_page)
        })?,
    };
    let mut all = (Vec::new(), Vec::new());
    for run in done {
        if let Some(timeline) = run.timeline {
            let mut to = output::open_shape(request.shape(Format::Human), None)?;
            timeline::write(&run.drawn.policy, &timeline, &mut to)?;
            writeln!(to)?;
            to.flush()?;
        }
        all.0.push(run.outcome);
        all.1.push(run.drawn);
    }
    Ok(all)
}

/// A run that is over, and what is to be shown of it.
struct DoneRun {
    outcome: Outcome,
    drawn: Drawn,
    timeline: Option<explain::timeline::Timeline>,
}

/// One run, with everything that listens to it.
fn run_one(request: &Sim, spec: &RunSpec, is_page: bool) -> anyhow::Result<DoneRun> {
    let name = &spec.policy.name;
    let several =
        policy::list(&COMPUTER, &request.policy).len() + request.schedulers.commands.len() > 1;
    let create = |path: &Option<PathBuf>| -> anyhow::Result<_> {
        let Some(path) = path else { return Ok(None) };
        let path = output::path_for(path, name, several);
        Ok(Some((output::create(&path)?, path)))
    };
    let mut metrics = Metrics::new();
    let writer = if request.decisions {
        JsonLines::with_decisions
    } else {
        JsonLines::new
    };
    let mut events = create(&request.events)?.map(|(to, path)| (writer(to), path));
    let perfetto = if request.decisions {
        |to| Perfetto::new(to).with_decisions()
    } else {
        Perfetto::new
    };
    let mut trace = create(&request.trace)?.map(|(to, path)| (perfetto(to), path));
    let mut timeline = request
        .timeline
        .map(|it| it.collector(request.look.width()));
    let mut progress = (!several).then(|| Progress::of_run(name, end_of(spec)));
    let mut collected = is_page.then(|| Collector::of_load(&spec.header(None)));
    let mut sinks: Vec<&mut dyn Sink> = vec![&mut metrics];
    sinks.extend(collected.as_mut().map(|sink| sink as &mut dyn Sink));
    sinks.extend(events.as_mut().map(|(sink, _)| sink as &mut dyn Sink));
    sinks.extend(trace.as_mut().map(|(sink, _)| sink as &mut dyn Sink));
    sinks.extend(timeline.as_mut().map(|sink| sink as &mut dyn Sink));
    sinks.extend(progress.as_mut().map(|sink| sink as &mut dyn Sink));
    let mut sinks = Tee::new(sinks);
    let mut books = match &request.books.schedstat {
        None => None,
        Some(path) => Some(request.books.open(output::path_for(path, name, several))?),
    };
    let mut runner = Runner::new(spec, &COMPUTER)
        .with_options(request.run.limits.options())
        .with_sink(&mut sinks);
    if let Some(books) = &mut books {
        runner = runner.sampled(&mut books.keeper, request.books.schedstat_every);
    }
    let mut summary = runner.start()?;
    let options = request.run.limits.options();
    try_starved(&COMPUTER, spec, options, request.right, &mut summary)?;
    if let Some(books) = books {
        books.close()?;
    }
    for (result, path) in [
        events.map(|(sink, path)| (sink.close().map(drop), path)),
        trace.map(|(sink, path)| (sink.close().map(drop), path)),
    ]
    .into_iter()
    .flatten()
    {
        result.map_err(model::CannotWrite::at(path.display()))?;
    }
    let drawn = Drawn {
        policy: name.clone(),
        tails: metrics.tails(),
        collected,
    };
    Ok(DoneRun {
        outcome: Outcome::of(spec, &metrics, summary),
        drawn,
        timeline,
    })
}

/// When the run ends at the latest.
fn end_of(spec: &RunSpec) -> Option<Nanos> {
    [spec.duration, spec.workload.stop.after]
        .into_iter()
        .flatten()
        .min()
}
