//! What is asked for, rerun and written.

use std::io::Write as _;

use model::{Advised, suggest};
use runslice::door::{
    ExperimentMachine, KernelPlace, Reproduce, Status, Store, UsageError, WordKind, mistaken,
    output, say,
};
use show::Format;
use show::figure::Chart;
use show::format::EXPERIMENTS;

use crate::experiments::cells::ExperimentResults;
use crate::experiments::claim::Rules;
use crate::experiments::experiment::{self, Experiment};
use crate::experiments::files::Files;
use crate::experiments::{JudgedClaim, judge_all};
use crate::machines::{ProgramFiles, RerunOptions, calibration, on_kernel, simulate};
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
        let experiments: Vec<Experiment> = names.iter().map(read).collect::<Result<_, _>>()?;
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
    if request.experiment.is_empty() && request.document.is_empty() && !request.all {
        let mut to = output::open(request.output.as_deref())?;
        for rerun in &reruns {
            human::list(&rerun.experiments, &mut to)?;
        }
        to.flush()?;
        return Ok(Status::Done);
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
    let mut to = output::open(request.output.as_deref())?;
    match format {
        Format::Html => {
            let verdict = page::write(&pages, &mut to)?;
            output::announce(&verdict, request.output.as_deref())?;
        }
        Format::Json => json::write(&pages, &mut to)?,
        _ => human::write(&pages, &mut to)?,
    }
    to.flush()?;
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
    for name in &request.experiment {
        if !all.contains(&name.as_str()) {
            let hint = suggest::hint(name, all.iter().copied());
            let message = Advised::new(format!("no experiment is called `{name}`"), hint);
            let message = mistaken(name, WordKind::Experiment).unwrap_or(message);
            return Err(UsageError::new(message).into());
        }
    }
    let is_of = |name: &str, document: &String| {
        let rest = name.strip_prefix(document.as_str());
        rest.is_some_and(|rest| rest.starts_with('-'))
    };
    for document in &request.document {
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
        let of_document = request.document.iter();
        every
            || request.experiment.iter().any(|it| it == name)
            || of_document.into_iter().any(|it| is_of(name, it))
    };
    Ok(all.into_iter().filter(wanted).map(str::to_owned).collect())
}
