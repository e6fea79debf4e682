//! What `sim` found, and the forms in which it is written.

pub mod checks;
mod goals;
mod human;
mod json;
mod one_table;
pub mod page;
pub mod runs;

use crate::exit::UsageError;
use std::io::{self, Write};

use clap::ValueEnum;
use model::{Advised, Exit, ExitKind, MachineSpec, SimTime, Summary};
use stats::compare::machines;
use stats::{Metrics, Report};
use workload::RunSpec;

use crate::export::{self, ExportTable};
use crate::look::LookOptions;

pub use self::goals::stated;

/// Why `--table` was refused.
pub fn table_of_csv() -> UsageError {
    UsageError::new(Advised::new(
        "--table chooses the table of --format csv or parquet",
        "the other formats have them all",
    ))
}

pub use self::json::json_of;
pub use show::counted;

/// Output format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables to read.
    Human,
    /// One JSON document with all results.
    Json,
    /// One table. docs/events.md describes its columns.
    Csv,
    /// The same table as a Parquet file.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    /// The form of an exported table; `None` for those that hold more than one table.
    pub const fn export(self) -> Option<export::Form> {
        match self {
            Self::Human | Self::Json => None,
            Self::Csv => Some(export::Form::Csv),
            #[cfg(feature = "parquet")]
            Self::Parquet => Some(export::Form::Parquet),
        }
    }
}

/// Output format of simulated runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunFormat {
    /// Tables to read.
    Human,
    /// A page with pictures, for --output.
    Html,
    /// One JSON document with all results.
    Json,
    /// One table. docs/events.md describes its columns.
    Csv,
    /// The same table as a Parquet file.
    #[cfg(feature = "parquet")]
    Parquet,
    /// The XML of `JUnit`: a test for each policy that it keeps to the rules and starves no task.
    Junit,
    /// The answer in Markdown, for the summary of a pull request.
    Markdown,
}

impl RunFormat {
    /// The format of a form that has no pictures and is no report of tests.
    pub const fn plain(self) -> Option<Format> {
        Some(match self {
            Self::Human => Format::Human,
            Self::Json => Format::Json,
            Self::Csv => Format::Csv,
            #[cfg(feature = "parquet")]
            Self::Parquet => Format::Parquet,
            Self::Html | Self::Junit | Self::Markdown => return None,
        })
    }
}

/// Output format of results from the real machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Tables to read.
    Human,
    /// One JSON document with all results.
    Json,
}

/// How results are to be written.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// As what.
    pub format: Format,
    /// Which table, if it is one.
    pub table: TableName,
    /// How it looks to people.
    pub look: LookOptions,
}

/// Tables for CSV and Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableName {
    /// Each group of tasks that the workload declares, and all tasks together.
    Groups,
    /// Each task.
    Tasks,
    /// Deadlines of each group.
    Deadlines,
    /// Spans of each group: stretches of its work that the workload names and times.
    Spans,
    /// Counters of each group: things that the workload counts.
    Counters,
    /// Phases of each group: parts of its work that the workload names.
    Phases,
    /// Each nice value.
    Nice,
    /// The whole machine.
    Machine,
    /// Each CPU.
    Cpus,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How tables call the policy.
    pub policy: String,
    /// What was set in it, as the user wrote it.
    pub set: Vec<(String, String)>,
    /// What the events say.
    pub report: Report,
    /// What is left besides the events.
    pub summary: Summary,
    /// What `fidelity` compares, of a run that was played.
    pub compared: Option<machines::Run>,
}

impl Outcome {
    /// The figures of a run of `spec` that is over.
    pub fn of(spec: &RunSpec, metrics: &Metrics, summary: Summary) -> Self {
        Self {
            policy: spec.policy.name.clone(),
            set: spec.policy.set.clone(),
            report: metrics.report(),
            summary,
            compared: None,
        }
    }
}

/// Whether a machine was simulated, or real.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum World {
    /// The simulated machine.
    #[default]
    Simulated,
    /// Real processes on this computer.
    Played,
}

impl World {
    /// What documents call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Played => "played",
        }
    }

    /// The world of this name; the simulated one for any other.
    pub fn of(name: Option<&str>) -> Self {
        if name == Some(Self::Played.name()) {
            Self::Played
        } else {
            Self::Simulated
        }
    }
}

/// Runs of several policies under one load on one machine.
#[derive(Clone, Debug)]
pub struct Results {
    /// Where it was.
    pub world: World,
    /// The load.
    pub workload: String,
    /// The machine.
    pub machine: MachineSpec,
    /// Seed of every run.
    pub seed: u64,
    /// One a policy, in the order of the command line.
    pub outcomes: Vec<Outcome>,
}

impl Results {
    /// Those of simulated runs, of which `spec` is one.
    pub fn simulated(spec: &RunSpec, outcomes: Vec<Outcome>) -> Self {
        Self {
            world: World::Simulated,
            workload: spec.workload.name.clone(),
            machine: spec.machine.clone(),
            seed: spec.seed,
            outcomes,
        }
    }

    /// Writes the results in the form that the user asked for.
    ///
    /// # Errors
    /// When `to` does not take them.
    pub fn write(&self, form: Shape, to: &mut dyn Write) -> io::Result<()> {
        match (form.format, form.format.export()) {
            (_, Some(export)) => one_table::of(self, form.table).write(export, to),
            (Format::Json, _) => json::write(self, to),
            _ => human::write(self, form.look, to),
        }
    }

    /// Writes many runs of each policy: for people their spread, for programs every run.
    ///
    /// # Errors
    /// When `to` does not take them.
    pub fn write_runs(&self, form: Shape, to: &mut dyn Write) -> io::Result<()> {
        match (form.format, form.format.export()) {
            (_, Some(export)) => one_table::of(self, form.table).write(export, to),
            (Format::Json, _) => json::write_runs(self, to),
            _ => runs::write(self, form.look, to),
        }
    }

    /// One of the tables, each row with where it comes from.
    pub fn table(&self, table: TableName) -> ExportTable {
        one_table::of(self, table)
    }

    /// One line for each policy that was ejected.
    pub fn ejections(&self) -> impl Iterator<Item = String> {
        self.outcomes.iter().filter_map(Outcome::ejection)
    }
}

impl Outcome {
    /// A run of which only the events are known: whether the policy was ejected is not among them.
    pub fn of_events(policy: String, report: Report) -> Self {
        let end = SimTime::from_nanos(report.machine.elapsed.get());
        let exit = Exit {
            kind: ExitKind::Unreg,
            code: 0,
            message: String::new(),
            time: end,
            fault: None,
        };
        let summary = Summary {
            end,
            exit,
            cpus: Vec::new(),
            tasks: Vec::new(),
            counters: Vec::new(),
            spent: Vec::new(),
            policy_counters: Vec::new(),
            printed: String::new(),
            instructions: 0,
            callbacks: 0,
            starved: Vec::new(),
            watchdog: None,
            notes: Vec::new(),
        };
        Self {
            policy,
            set: Vec::new(),
            report,
            summary,
            compared: None,
        }
    }

    /// What was set in the policy, as one text; `as built` if nothing was.
    pub fn knobs(&self) -> String {
        let set = self
            .set
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        if self.set.is_empty() {
            "as built".to_owned()
        } else {
            set.collect::<Vec<_>>().join(",")
        }
    }

    /// Kind, message and time in the kernel's words, when the policy was ejected.
    pub fn ejection(&self) -> Option<String> {
        ejection(&self.policy, &self.summary.exit)
    }
}

/// Kind, message and time in the kernel's words, if `exit` is anything but the normal end. A policy
/// that leaves by itself (`scx_bpf_exit()`), or that its program takes off, did not schedule to the
/// end either.
pub fn ejection(policy: &str, exit: &Exit) -> Option<String> {
    if exit.kind == ExitKind::Unreg && exit.fault.is_none() {
        return None;
    }
    let (reason, time) = (exit.kind.reason(), exit.time);
    let mut line = format!("{policy} was ejected at {time} s: {reason}");
    let details = [Some(&exit.message), exit.fault.as_ref()];
    for detail in details
        .into_iter()
        .flatten()
        .filter(|detail| !detail.is_empty())
    {
        line += &format!(": {detail}");
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_but_the_normal_one_is_told() {
        let told = |kind, message: &str| {
            let exit = Exit {
                kind,
                code: 7,
                message: message.to_owned(),
                time: SimTime::ZERO,
                fault: None,
            };
            ejection("mine", &exit)
        };
        assert_eq!(told(ExitKind::Unreg, ""), None);
        let left = told(ExitKind::UnregBpf, "enough").unwrap();
        assert!(left.starts_with("mine was ejected at 0"), "{left}");
        assert!(
            left.ends_with(" s: unregistered from BPF: enough"),
            "{left}"
        );
        let error = told(ExitKind::ErrorStall, "").unwrap();
        assert!(error.ends_with(" s: runnable task stall"), "{error}");
    }
}
