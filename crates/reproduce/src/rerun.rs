//! What is asked for, rerun and written.

use std::io::{self, IsTerminal as _, Write as _};

use model::{Advised, suggest};
use runslice::door::{
    ExperimentMachine, KernelPlace, Reproduce, Status, Store, UsageError, WordKind, mistaken,
    output, say, width,
};
use show::Format;
use show::figure::Chart;
use show::format::EXPERIMENTS;

use crate::experiments::PublishedDocument;
use crate::experiments::cells::ExperimentResults;
use crate::experiments::claim::Rules;
use crate::experiments::experiment::{self, Experiment};
use crate::experiments::files::Files;
use crate::experiments::{JudgedClaim, judge_all};
use crate::machines::{ProgramFiles, RerunOptions, calibration, on_kernel, simulate};
use crate::mutants;
use crate::results::page::Page;
use crate::results::{figures, human, json, page};

const fn name(machine: ExperimentMachine) -> &'static str {
    match machine {
        ExperimentMachine::Sim => "sim",
        ExperimentMachine::Vm => "vm",
        ExperimentMachine::Host => "host",
    }
}

/// The experiments as one kind of machine runs them, and what they gave.
struct Rerun {
    machine: ExperimentMachine,
    experiments: Vec<Experiment>,
    results: Vec<ExperimentResults>,
}

impl Rerun {
    fn new(request: &Reproduce, machine: ExperimentMachine, files: &Files) -> anyhow::Result<Self> {
        let names = chosen(request, machine, files)?;
        let read = |name: &String| match machine {
            ExperimentMachine::Sim => experiment::read(files, name, &ProgramFiles),
            ExperimentMachine::Vm | ExperimentMachine::Host => {
                experiment::read_real(files, name, &ProgramFiles)
            }
        };
        let mut experiments: Vec<Experiment> = names.iter().map(read).collect::<Result<_, _>>()?;
        if let Some(table) = &request.table {
            experiments = of_table(experiments, table)?;
        }
        Ok(Self {
            machine,
            results: experiments
                .iter()
                .map(|_| ExperimentResults::default())
                .collect(),
            experiments,
        })
    }

    fn judged(&self, rules: &Rules) -> Vec<JudgedClaim<'_>> {
        judge_all(&self.experiments, &self.results, name(self.machine), rules)
    }

    fn charts(&self) -> anyhow::Result<Vec<Vec<Chart>>> {
        let all = self.experiments.iter().zip(&self.results);
        all.map(|(experiment, results)| figures::charts(experiment, results))
            .collect()
    }

    /// Makes the runs that the store does not have. Says whether anything could be run.
    fn run(&mut self, request: &Reproduce, store: &Store) -> anyhow::Result<bool> {
        let how = RerunOptions {
            quick: request.quick,
            store,
            jobs: request.jobs,
        };
        let (experiments, results) = (&self.experiments, &mut self.results);
        let place = match self.machine {
            ExperimentMachine::Sim => {
                return simulate::run(experiments, how, results).map(|()| true);
            }
            ExperimentMachine::Vm => KernelPlace::Guest,
            ExperimentMachine::Host => KernelPlace::Host,
        };
        on_kernel::run(place, experiments, how, results)
    }
}

/// Reruns what was asked for, and writes what came of it.
///
/// # Errors
/// When there is no such experiment, one is wrong, or a file cannot be written.
pub fn run(request: &Reproduce) -> anyhow::Result<Status> {
    let files = match &request.experiments {
        Some(folder) => Files::of_folder(folder)?,
        None => Files::embedded(),
    };
    let format = output::form(request.format, request.output.as_deref(), EXPERIMENTS)?;
    if format == Format::Html {
        output::page_file(request.output.as_deref())?;
    }
    output::can_write(&[("--output", request.output.as_deref())])?;
    let mut machines = request.machine.clone();
    machines.sort_unstable();
    machines.dedup();
    let reruns = machines.iter();
    let mut reruns: Vec<Rerun> = reruns
        .map(|&machine| Rerun::new(request, machine, &files))
        .collect::<Result<_, _>>()?;
    let is_named = !request.experiment.is_empty() || !request.document.is_empty();
    if !is_named && !request.all && request.table.is_none() && !request.mutants {
        return list(request, &reruns);
    }
    let rules = Rules {
        quick: request.quick,
        ..Rules::default()
    };
    // Mistakes of the files are told before hours of runs.
    for rerun in &reruns {
        rerun.charts()?;
    }
    let store = Store::open(&request.folder)?;
    if request.mutants {
        return judge_mutants(request, &files, &store);
    }
    let mut could = false;
    for rerun in &mut reruns {
        could |= rerun.run(request, &store)?;
    }
    let calibration = calibration(&files);
    let page = |rerun| -> anyhow::Result<Page<'_>> {
        let rerun: &Rerun = rerun;
        Ok(Page {
            machine: name(rerun.machine),
            experiments: &rerun.experiments,
            results: &rerun.results,
            judged: rerun.judged(&rules),
            charts: rerun.charts()?,
            rules: &rules,
            calibration: &calibration,
        })
    };
    let pages: Vec<Page<'_>> = reruns.iter().map(page).collect::<Result<_, _>>()?;
    write(request, format, &pages)?;
    let results = reruns.iter().flat_map(|rerun| &rerun.results);
    let mut samples = results.flat_map(|it| it.cells.values().flatten());
    Ok(if samples.any(|sample| sample.ejection.is_some()) {
        Status::Ejected
    } else if could {
        Status::Done
    } else {
        Status::Unsupported
    })
}

/// Lists the experiments and their statements.
fn list(request: &Reproduce, reruns: &[Rerun]) -> anyhow::Result<Status> {
    let mut to = output::open(request.output.as_deref())?;
    for rerun in reruns {
        human::list(&rerun.experiments, &mut to)?;
    }
    to.flush()?;
    Ok(Status::Done)
}

/// Judges what was asked for with what should turn a verdict, and with what should not.
fn judge_mutants(request: &Reproduce, files: &Files, store: &Store) -> anyhow::Result<Status> {
    let names = chosen(request, ExperimentMachine::Sim, files)?;
    let mut to = output::open(request.output.as_deref())?;
    mutants::run(request, (files, &names), store, &mut to)?;
    to.flush()?;
    Ok(Status::Done)
}

fn write(request: &Reproduce, format: Format, pages: &[Page<'_>]) -> anyhow::Result<()> {
    let mut to = output::open(request.output.as_deref())?;
    match format {
        Format::Html => {
            let verdict = page::write(pages, &mut to)?;
            output::announce(&verdict, request.output.as_deref())?;
        }
        Format::Json => json::write(pages, &mut to)?,
        _ => {
            let is_read = request.output.is_none() && io::stdout().is_terminal();
            let shown = human::RerunShown {
                width: request.output.is_none().then(width),
                wrap: is_read.then(width),
                table: request.table.as_deref(),
            };
            human::write(pages, shown, &mut to)?;
        }
    }
    to.flush()?;
    Ok(())
}

/// Names of the experiments that were asked for, in their order; all when none was. Those that are
/// for the simulated machine only are left out and told elsewhere.
fn chosen(
    request: &Reproduce,
    machine: ExperimentMachine,
    files: &Files,
) -> anyhow::Result<Vec<String>> {
    let names = chosen_of_all(request, machine, files)?;
    if machine == ExperimentMachine::Sim {
        return Ok(names);
    }
    let real = files.on_kernels();
    let (chosen, others): (Vec<String>, Vec<String>) = names
        .into_iter()
        .partition(|name| real.contains(&name.as_str()));
    let mut named = request.experiment.iter();
    let is_simulated = request.machine.contains(&ExperimentMachine::Sim);
    if let Some(name) = named.find(|name| others.contains(name) && !is_simulated) {
        let message = format!("{name} is for `--machine sim` only: it has no vm.toml");
        return Err(UsageError::new(message).into());
    }
    for name in others {
        let why = "is left out: it is for `--machine sim` only";
        say("reproduce", &format!("{name} {why}"));
    }
    Ok(chosen)
}

fn chosen_of_all(
    request: &Reproduce,
    machine: ExperimentMachine,
    files: &Files,
) -> anyhow::Result<Vec<String>> {
    let all = match machine {
        ExperimentMachine::Sim => files.experiments(),
        // Some are for kernels only.
        ExperimentMachine::Vm | ExperimentMachine::Host => files.everywhere(),
    };
    let documents = experiment::documents(files)?;
    let written_by = |word: &String| {
        let mut known = documents.iter();
        known
            .find(|(_, it)| is_author(it, word))
            .map(|(it, _)| it.clone())
    };
    let mut of_authors = Vec::new();
    for name in &request.experiment {
        if let Some(document) = written_by(name) {
            of_authors.push(document);
        } else if !all.contains(&name.as_str()) {
            let authors = documents.values().map(|it| it.author.as_str());
            let hint = suggest::hint(name, all.iter().copied().chain(authors));
            let message = Advised::new(format!("no experiment is called `{name}`"), hint);
            let message = mistaken(name, WordKind::Experiment).unwrap_or(message);
            return Err(UsageError::new(message).into());
        }
    }
    let is_of = |name: &str, document: &String| {
        let rest = name.strip_prefix(document.as_str());
        rest.is_some_and(|rest| rest.starts_with('-'))
    };
    let asked = request.document.iter();
    let asked = asked.map(|word| written_by(word).unwrap_or_else(|| word.clone()));
    let asked: Vec<String> = asked.chain(of_authors).collect();
    for document in &asked {
        if !all.iter().any(|name| is_of(name, document)) {
            let mut known: Vec<&str> = all.iter().filter_map(|it| it.split('-').next()).collect();
            known.retain(|it| it.starts_with(|c: char| c.is_ascii_digit()));
            known.dedup();
            let message = Advised::new(
                format!("no experiment is of a document `{document}`"),
                suggest::hint(document, known),
            );
            return Err(UsageError::new(message).into());
        }
    }
    let every = request.all || request.experiment.is_empty() && request.document.is_empty();
    let wanted = |name: &&str| {
        let of_document = asked.iter();
        every
            || request.experiment.iter().any(|it| it == name)
            || of_document.into_iter().any(|it| is_of(name, it))
    };
    Ok(all.into_iter().filter(wanted).map(str::to_owned).collect())
}

/// Whether this is a family name of who wrote a document: `torrey` of Torrey, Coleman and Miller.
fn is_author(document: &PublishedDocument, word: &str) -> bool {
    let names = document.author.split(|c: char| !c.is_alphanumeric());
    let mut names = names.filter(|name| !name.is_empty() && *name != "and");
    names.any(|name| name.eq_ignore_ascii_case(word))
}

/// The experiments that have this table of their documents, with the runs that it needs and without
/// statements.
fn of_table(experiments: Vec<Experiment>, table: &str) -> anyhow::Result<Vec<Experiment>> {
    let mut places: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for mut experiment in experiments {
        let rows = experiment.expected.iter();
        let rows = rows.filter(|row| !row.runs.is_empty() && row.place.starts_with("Table "));
        let (asked, others): (Vec<_>, Vec<_>) =
            rows.partition(|row| human::is_table(&row.place, table));
        places.extend(
            others
                .iter()
                .map(|row| row.place["Table ".len()..].to_owned()),
        );
        let runs: Vec<String> = asked.iter().map(|row| row.runs.clone()).collect();
        if runs.is_empty() {
            continue;
        }
        for set in &mut experiment.sets {
            if !runs.contains(&set.name) {
                set.seeds.clear();
            }
        }
        experiment.statements.clear();
        found.push(experiment);
    }
    if found.is_empty() {
        places.dedup();
        let hint = suggest::hint(table, places.iter().map(String::as_str));
        let message = Advised::new(format!("no experiment has a table `{table}`"), hint);
        return Err(UsageError::new(message).into());
    }
    Ok(found)
}
