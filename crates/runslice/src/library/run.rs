//! Simulated runs.

use anyhow::bail;
use ask::simulate::Simulate;
use clap::{Parser, ValueEnum as _};
use model::Sink;
use show::figure::Collector;
use stats::compare::{Better, Measured, Role, Set};
use stats::{Metrics, Tails};
use traces::{EventColumns, Tee};
use workload::RunSpec;

use crate::about::About;
use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::export::ExportTable;
use crate::goal::Goal;
use crate::look::{LookOptions, When, WidthOptions};
use crate::policy::Found;
use crate::report::page::{self, Part};
use crate::report::{Results, RunFormat, TableName, World, checks};
use crate::run_options::RunOptions;
use crate::runner::Runner;
use crate::scheduler::{LoaderOptions, Schedulers};
use crate::{output, refusal, report, runs};

use super::failure::{Answer, Failure, answer};
use super::given::{Load, Policy};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    policies: Vec<Policy>,
    pub(super) load: Option<Load>,
    options: Vec<String>,
    goals: Vec<String>,
}

/// The options that [`Request::options`] may have.
#[derive(Debug, Parser)]
#[command(name = "runslice sim", no_binary_name = true, disable_help_flag = true)]
struct Options {
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    loader: LoaderOptions,
}

/// Runs that are over.
#[derive(Debug)]
pub struct Run {
    request: Request,
    results: Results,
    /// One for each policy, as they were simulated.
    specs: Vec<RunSpec>,
    options: sim::Options,
    /// So many runs of each policy, if that was asked for.
    count: Option<u32>,
    /// What was asked about every run.
    asked: Vec<Goal>,
    /// For each outcome what was measured of each goal.
    goals: Vec<Vec<Option<f64>>>,
}

/// What a goal is, in the words of `runslice choose`: as it is written in full, and whether more of
/// it is better.
///
/// # Errors
/// When it is none.
pub fn goal(text: &str) -> Result<(String, bool), Failure> {
    let goal: Goal = text
        .parse()
        .map_err(|it| anyhow::Error::from(UsageError::new(it)))?;
    Ok((goal.to_string(), goal.better() == Better::Higher))
}

/// As what results are written.
#[derive(Clone, Debug, Default)]
pub struct Shape<'a> {
    /// A format of `runslice sim`. Empty: what the ending of `output` stands for, else `human`.
    pub format: &'a str,
    /// A table of `--table`; empty: the groups.
    pub table: &'a str,
    /// All columns of tables for people.
    pub wide: bool,
    /// The file that the bytes are for, if there is one.
    pub output: Option<&'a str>,
}

impl Shape<'_> {
    /// The words of the command line.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (option, value) in [
            ("--format", Some(self.format).filter(|it| !it.is_empty())),
            ("--table", Some(self.table).filter(|it| !it.is_empty())),
            ("--output", self.output),
        ] {
            words.extend(
                value
                    .into_iter()
                    .flat_map(|it| [option.to_owned(), it.to_owned()]),
            );
        }
        words.extend(self.wide.then(|| "--wide".to_owned()));
        words
    }
}

/// One of the values of an option, or the words for a wrong one.
pub(super) fn one_of<T: clap::ValueEnum>(option: &str, text: &str) -> anyhow::Result<T> {
    T::from_str(text, false).map_err(|_| {
        let all = T::value_variants().iter().filter_map(T::to_possible_value);
        let all: Vec<String> = all.map(|it| it.get_name().to_owned()).collect();
        let all = all.join(", ");
        UsageError::new(refusal::no_value(text, option, &all)).into()
    })
}

/// Simulates.
///
/// # Errors
/// As `runslice sim`.
pub fn simulate(request: &Request) -> Result<Answer<Run>, Failure> {
    answer(|| request.run())
}

impl Request {
    /// Asks for runs of `policies`, at least one, each under the same workload; schedulers' own
    /// programs come last. The bundle of a recorded run has its own workload. `options` are those
    /// of `runslice sim` about machine, seeds, length, knobs, limits and programs, as words.
    /// `goals` are measured in every run besides, in the words of `runslice choose`.
    #[must_use]
    pub fn new(
        mut policies: Vec<Policy>,
        load: Option<Load>,
        options: Vec<String>,
        goals: Vec<String>,
    ) -> Self {
        // As on the command line, where they are values of an option.
        policies.sort_by_key(Policy::is_program);
        Self {
            policies,
            load,
            options,
            goals,
        }
    }

    /// The words of the command line that asks for the same.
    pub(super) fn words(&self, verb: &str) -> Vec<String> {
        let policies = self.policies.iter().flat_map(|it| {
            let option = it.is_program().then(|| "--scheduler".to_owned());
            option.into_iter().chain([it.word().to_owned()])
        });
        let mut words: Vec<String> = ["runslice", verb].map(str::to_owned).into();
        words.extend(policies);
        if let Some(load) = &self.load {
            let option = match load {
                Load::Recorded(_) => "--from",
                _ => "--workload",
            };
            words.extend([option.to_owned(), load.word().to_owned()]);
        }
        words.extend(self.options.iter().cloned());
        words
    }

    /// One run for each policy, and the options.
    pub(super) fn read(&self) -> anyhow::Result<(Vec<RunSpec>, RunOptions)> {
        let (question, options) = self.asked()?;
        let specs = question.specs(&COMPUTER).map_err(ask::Error::into_cause)?;
        Ok((specs, options))
    }

    /// The question, and the options.
    fn asked(&self) -> anyhow::Result<(Simulate, RunOptions)> {
        let options = Options::try_parse_from(&self.options)?;
        if self.policies.is_empty() {
            bail!(UsageError::new(
                "there is no policy: give one or more".to_owned()
            ));
        }
        let all = self.found(&options)?;
        Ok((self.question(all, &options.run)?, options.run))
    }

    /// The policies as they are asked for, programs last.
    fn found(&self, options: &Options) -> anyhow::Result<Vec<Found>> {
        let mut all: Vec<Found> = Vec::new();
        let mut commands = Vec::new();
        for policy in &self.policies {
            if policy.found.policy.program.is_some() {
                options.run.prepare.refuse_for_programs()?;
            }
            if policy.is_program() {
                commands.push(policy.word().to_owned());
                continue;
            }
            let mut found = policy.found.clone();
            options.run.prepare.apply(&mut found.policy);
            all.push(found);
        }
        let programs = Schedulers {
            commands,
            loader: options.loader.clone(),
            ..Schedulers::default()
        };
        all.extend(programs.policies()?.into_iter().map(Found::of_policy));
        Ok(all)
    }

    fn question(&self, all: Vec<Found>, options: &RunOptions) -> anyhow::Result<Simulate> {
        let named = match &self.load {
            Some(Load::Named(word)) => Some(word.clone()),
            _ => None,
        };
        let load = match &self.load {
            Some(load) => load.given(&options.scale)?,
            None => None,
        };
        Ok(Simulate {
            schedulers: all,
            scale: if load.is_some() {
                Vec::new()
            } else {
                options.scale.clone()
            },
            load,
            workload: named,
            machine: options.machine.asked(),
            seed: options.seed,
            duration: options.duration,
            start_jitter: options.start_jitter,
            as_played: None,
            runs: options.runs,
            jobs: options.jobs,
            options: options.limits.options(),
            goals: Vec::new(),
        })
    }

    fn run(&self) -> anyhow::Result<Run> {
        let (mut question, _) = self.asked()?;
        let specs = question.specs(&COMPUTER).map_err(ask::Error::into_cause)?;
        let goals = self.goals.iter().map(|text| text.parse::<Goal>());
        let goals: Vec<Goal> = goals.collect::<Result<_, _>>().map_err(UsageError::new)?;
        question.goals = goals;
        let made = question.run(&COMPUTER, specs);
        let made = made.map_err(ask::Error::into_cause)?;
        Ok(Run {
            request: self.clone(),
            results: made.results,
            specs: made.specs,
            options: question.options,
            count: question.runs,
            asked: question.goals,
            goals: made.goals,
        })
    }
}

/// How a run of one policy ended.
#[derive(Clone, Debug)]
pub struct End {
    /// How tables call the policy.
    pub policy: String,
    /// The run's seed.
    pub seed: u64,
    /// Simulated time until the end, in nanoseconds.
    pub elapsed_ns: u64,
    /// Kind, message and time in the kernel's words, if the policy was ejected.
    pub ejection: Option<String>,
    /// Tasks that waited to the end for longer than the watchdog allows.
    pub starved: usize,
    /// Values of each goal; `None` if the run has none.
    pub goals: Vec<Option<f64>>,
}

impl Run {
    /// The command line that writes the same.
    #[must_use]
    pub fn command(&self, shape: &Shape<'_>) -> Vec<String> {
        [self.request.words("sim"), shape.words()].concat()
    }

    /// The workload's name.
    #[must_use]
    pub fn workload(&self) -> &str {
        &self.results.workload
    }

    /// The machine, as one object of JSON.
    ///
    /// # Panics
    /// Never: a machine is numbers and names.
    #[must_use]
    pub fn machine(&self) -> String {
        serde_json::to_string(&self.results.machine).expect("numbers and names become JSON")
    }

    /// How each run ended, in the order of the policies.
    #[must_use]
    pub fn ends(&self) -> Vec<End> {
        let all = self.results.outcomes.iter().zip(&self.goals);
        all.map(|(it, goals)| End {
            policy: it.policy.clone(),
            seed: it.report.seed,
            elapsed_ns: it.report.machine.elapsed.get(),
            ejection: it.ejection(),
            starved: it.summary.starved.len(),
            goals: goals.clone(),
        })
        .collect()
    }

    /// The bytes that `runslice sim` writes for it. A page simulates the runs again, to draw them.
    ///
    /// # Errors
    /// When there is no such format or table.
    pub fn write(&self, shape: &Shape<'_>) -> Result<Vec<u8>, Failure> {
        let words = self.command(shape);
        Ok(About::called(&words, || self.written(shape))?)
    }

    fn written(&self, shape: &Shape<'_>) -> anyhow::Result<Vec<u8>> {
        let path = shape.output.map(std::path::Path::new);
        let given = match shape.format {
            "" => None,
            text => Some(one_of("--format <FORMAT>", text)?),
        };
        let format = output::form(given, path, RunFormat::Human)?;
        let table = match shape.table {
            "" => TableName::Groups,
            text => one_of("--table <TABLE>", text)?,
        };
        let export = format.plain().and_then(report::Format::export);
        if table != TableName::Groups && export.is_none() {
            return Err(report::table_of_csv().into());
        }
        let look = LookOptions {
            tables: WidthOptions { wide: shape.wide },
            verbose: false,
            color: When::Never,
        };
        let is_many = self.count.is_some();
        if format == RunFormat::Html {
            return self.page();
        }
        let bytes = output::in_memory(export, |to| match (format.plain(), format) {
            (Some(format), _) => {
                let shape = report::Shape {
                    format,
                    table,
                    look,
                };
                if is_many {
                    report::write_runs(&self.results, shape, to)
                } else {
                    report::write(&self.results, shape, to)
                }
            }
            (None, RunFormat::Junit) => checks::junit(&self.results, None, to),
            (None, _) => checks::markdown(&self.results, None, is_many, to),
        });
        Ok(bytes?)
    }

    /// Every run once more, and what is drawn of it.
    fn page(&self) -> anyhow::Result<Vec<u8>> {
        let mut tails = Vec::new();
        let mut collected = Vec::new();
        for spec in &self.specs {
            let mut all = Tails::default();
            let runs = match self.count {
                None => vec![spec.clone()],
                Some(count) => runs::seeded(spec, count),
            };
            for run in &runs {
                let mut metrics = Metrics::new();
                let mut collector = self.count.is_none().then(|| Collector::new(None));
                let mut sinks: Vec<&mut dyn Sink> = vec![&mut metrics];
                sinks.extend(collector.as_mut().map(|it| it as &mut dyn Sink));
                let mut sinks = Tee::new(sinks);
                Runner::new(run, &COMPUTER)
                    .with_options(self.options)
                    .with_sink(&mut sinks)
                    .start()?;
                all.merge(&metrics.tails());
                collected.extend(collector);
            }
            tails.push((spec.policy.name.clone(), all));
        }
        let part = Part {
            results: &self.results,
            tails,
            collected,
        };
        let mut bytes = Vec::new();
        page::write(part, self.count.is_some(), &About::origin(), &mut bytes)?;
        Ok(bytes)
    }

    /// One of the tables of `--table`: the cells that CSV and Parquet have.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn table(&self, name: &str) -> Result<ExportTable, Failure> {
        let table = one_of("--table <TABLE>", name)?;
        let shape = Shape {
            format: "parquet",
            table: if table == TableName::Groups { "" } else { name },
            ..Shape::default()
        };
        Ok(About::called(&self.command(&shape), || {
            report::table(&self.results, table)
        }))
    }

    /// The names of the tables.
    pub fn tables() -> Vec<String> {
        let all = TableName::value_variants().iter();
        let all = all.filter_map(clap::ValueEnum::to_possible_value);
        all.map(|it| it.get_name().to_owned()).collect()
    }

    /// The events of run `index`, which is simulated once more. With decisions, if they are wanted.
    ///
    /// # Errors
    /// When there is no such run.
    pub fn events(&self, index: usize, decisions: bool) -> Result<EventColumns, Failure> {
        let mut events = EventColumns::new(decisions);
        Runner::new(&self.spec(index)?, &COMPUTER)
            .with_options(self.options)
            .with_sink(&mut events)
            .start()?;
        Ok(events)
    }

    /// The runs of each policy as a set of what was measured of the goals. A run whose policy was
    /// ejected does not count.
    pub(super) fn goal_sets(&self) -> Vec<Set> {
        let mut sets: Vec<Set> = Vec::new();
        let mut first = None;
        for (outcome, values) in self.results.outcomes.iter().zip(&self.goals) {
            if sets.last().is_none_or(|set| set.arm != outcome.policy) {
                first = None;
                sets.push(Set::new(
                    &outcome.policy,
                    &self.results.workload,
                    World::Simulated.name(),
                ));
            }
            let Some(set) = sets.last_mut() else { continue };
            if outcome.summary.exit.kind.is_error() {
                set.void += 1;
                continue;
            }
            let measured = self.asked.iter().zip(values).filter_map(|(goal, value)| {
                Some(Measured {
                    name: goal.to_string(),
                    measure: goal.measure(),
                    better: goal.better(),
                    role: Role::Goal,
                    value: (*value)?,
                })
            });
            let grown = self
                .asked
                .iter()
                .filter_map(|goal| goal.growth(&outcome.report));
            set.add(measured.chain(grown).collect(), Some(outcome.report.seed));
            // A goal may be the same in every run without the runs being one.
            let all = &outcome.report.all;
            set.differs |= *first.get_or_insert(all) != all;
            set.starved += usize::from(!outcome.summary.starved.is_empty());
        }
        sets
    }

    /// The words of the command line that made the runs.
    pub(super) fn words(&self) -> Vec<String> {
        self.request.words("sim")
    }

    /// Everything that run `index` is a function of.
    fn spec(&self, index: usize) -> anyhow::Result<RunSpec> {
        let per_policy = self.count.map_or(1, |it| it as usize);
        let spec = self.specs.get(index / per_policy.max(1));
        let outcome = self.results.outcomes.get(index);
        let (Some(spec), Some(outcome)) = (spec, outcome) else {
            let last = self.results.outcomes.len().saturating_sub(1);
            let message = format!("there is no run {index}: give a number from 0 to {last}");
            bail!(UsageError::new(message));
        };
        Ok(RunSpec {
            seed: outcome.report.seed,
            ..spec.clone()
        })
    }

    /// The request for run `index` alone.
    ///
    /// # Errors
    /// When there is no such run.
    pub fn alone(&self, index: usize) -> Result<Request, Failure> {
        let seed = self.spec(index)?.seed;
        let per_policy = self.count.map_or(1, |it| it as usize);
        let mut options = Vec::new();
        let mut words = self.request.options.iter();
        while let Some(word) = words.next() {
            if ["--runs", "--jobs", "--seed"].contains(&word.as_str()) {
                words.next();
            } else {
                options.push(word.clone());
            }
        }
        options.extend(["--seed".to_owned(), seed.to_string()]);
        Ok(Request {
            policies: vec![self.request.policies[index / per_policy.max(1)].clone()],
            options,
            goals: Vec::new(),
            ..self.request.clone()
        })
    }
}
