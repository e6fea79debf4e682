//! Everything about the runs as one JSON document.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ask::outcome::{Outcome, Results};
use model::{Exit, MachineSpec, Summary};
use serde::Serialize;
use stats::Report;
use stats::compare::machines;

use super::runs::{self, Spread};
use crate::Origin;

/// Version of the document; it grows when a field is removed or changes its meaning.
const VERSION: u32 = 2;

#[derive(Serialize)]
struct Document<'a> {
    runslice_results: u32,
    version: &'static str,
    command: &'a [String],
    world: &'static str,
    workload: &'a str,
    machine: &'a MachineSpec,
    seed: u64,
    /// Of many runs of each policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spread: Vec<Spread<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Vec<Run<'a>>>,
}

#[derive(Serialize)]
struct Run<'a> {
    policy: &'a str,
    knobs: BTreeMap<&'a str, &'a str>,
    exit: End<'a>,
    report: &'a Report,
    #[serde(flatten)]
    rest: Rest<'a>,
    /// The figures by which another machine is compared, with the distributions of waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<&'a machines::Run>,
}

#[derive(Serialize)]
struct End<'a> {
    kind: u32,
    reason: &'static str,
    code: i64,
    message: &'a str,
    time_ns: u64,
    fault: Option<&'a str>,
}

#[derive(Serialize)]
struct Rest<'a> {
    callbacks: u64,
    instructions: u64,
    kernel_counters: BTreeMap<&'a str, u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    spent_ns: BTreeMap<&'a str, u64>,
    policy_counters: BTreeMap<&'a str, u64>,
    printed: &'a str,
    notes: &'a [String],
}

impl<'a> From<&'a Exit> for End<'a> {
    fn from(exit: &'a Exit) -> Self {
        Self {
            kind: exit.kind as u32,
            reason: exit.kind.reason(),
            code: exit.code,
            message: &exit.message,
            time_ns: exit.time.as_nanos(),
            fault: exit.fault.as_deref(),
        }
    }
}

impl<'a> From<&'a Summary> for Rest<'a> {
    fn from(summary: &'a Summary) -> Self {
        let policy_counters = summary.policy_counters.iter();
        Self {
            callbacks: summary.callbacks,
            instructions: summary.instructions,
            kernel_counters: summary.counters.iter().copied().collect(),
            spent_ns: (summary.spent.iter())
                .map(|(kind, span)| (*kind, span.get()))
                .collect(),
            policy_counters: policy_counters
                .map(|(name, n)| (name.as_str(), *n))
                .collect(),
            printed: &summary.printed,
            notes: &summary.notes,
        }
    }
}

impl<'a> From<&'a Outcome> for Run<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        let set = outcome.set.iter();
        Self {
            policy: &outcome.policy,
            knobs: set
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect(),
            exit: End::from(&outcome.summary.exit),
            report: &outcome.report,
            rest: Rest::from(&outcome.summary),
            compared: outcome.compared.as_ref(),
        }
    }
}

/// One run as the document has it.
///
/// # Errors
/// When it cannot be said in JSON.
pub fn json_of(outcome: &Outcome) -> serde_json::Result<serde_json::Value> {
    serde_json::to_value(Run::from(outcome))
}

/// Writes the document.
///
/// # Errors
/// When `to` does not take it.
pub fn write(results: &Results, origin: &Origin, to: &mut dyn Write) -> io::Result<()> {
    let mut document = head(results, Vec::new(), origin);
    document.runs = Some(results.outcomes.iter().map(Run::from).collect());
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

/// Writes the document of many runs of each policy. Each run stands in a line of its own, as
/// `sets::lines` reads them.
///
/// # Errors
/// When `to` does not take it.
pub fn write_runs(results: &Results, origin: &Origin, to: &mut dyn Write) -> io::Result<()> {
    let sets = ask::stated::sets(results);
    let head = serde_json::to_string_pretty(&head(results, runs::spreads(&sets), origin))?;
    let head = head.strip_suffix("\n}").unwrap_or(&head);
    write!(to, "{head},\n  \"runs\": [")?;
    for (at, outcome) in results.outcomes.iter().enumerate() {
        to.write_all(if at == 0 { b"\n    " } else { b",\n    " })?;
        serde_json::to_writer(&mut *to, &Run::from(outcome))?;
    }
    writeln!(to, "\n  ]\n}}")
}

/// The document without its runs.
fn head<'a>(results: &'a Results, spread: Vec<Spread<'a>>, origin: &'a Origin) -> Document<'a> {
    Document {
        runslice_results: VERSION,
        version: crate::VERSION,
        command: origin.words(),
        world: results.world.name(),
        workload: &results.workload,
        machine: &results.machine,
        seed: results.seed,
        spread,
        runs: None,
    }
}
