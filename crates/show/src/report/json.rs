//! Everything about the runs as one JSON document.

use std::io::{self, Write};

use ask::AnswerKind;
use ask::ends::GoalSpread;
use ask::outcome::{Outcome, Results};
use model::MachineSpec;
use serde::Serialize;

use super::runs::{self, Spread};
use crate::Origin;

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
    /// Who is best at every end of what is uncertain about the hardware, if that was asked.
    #[serde(skip_serializing_if = "<[GoalSpread]>::is_empty")]
    hardware_spread: &'a [GoalSpread],
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<&'a [Outcome]>,
}

/// Writes the document.
///
/// # Errors
/// When `to` does not take it.
pub fn write(results: &Results, origin: &Origin, to: &mut dyn Write) -> io::Result<()> {
    let mut document = head(results, Vec::new(), origin);
    document.runs = Some(&results.outcomes);
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
        serde_json::to_writer(&mut *to, outcome)?;
    }
    writeln!(to, "\n  ]\n}}")
}

/// The document without its runs.
fn head<'a>(results: &'a Results, spread: Vec<Spread<'a>>, origin: &'a Origin) -> Document<'a> {
    Document {
        runslice_results: AnswerKind::Results.version(),
        version: crate::VERSION,
        command: origin.words(),
        world: results.world.name(),
        workload: &results.workload,
        machine: &results.machine,
        seed: results.seed,
        spread,
        hardware_spread: &results.spread,
        runs: None,
    }
}
