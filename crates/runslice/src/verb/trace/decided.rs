//! Decisions about a task, for people and as JSON.

use std::io::{self, Write};

use explain::trace::{Decided, Decider, DecisionVerdict, Tracer};
use explain::why::Act;
use serde_json::{Value, json};

use crate::table::Table;

/// Writes a table behind what the call tells.
///
/// # Errors
/// When `to` does not take it.
pub fn write(decider: &Decider, tracer: &Tracer, to: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::default()
        .numbers("at, s")
        .names("task")
        .names("decision")
        .names("queue")
        .numbers("depth")
        .numbers("CPU")
        .names("by");
    for decided in decider.decided() {
        let queue = decided.queue.as_ref();
        let depth = queue.map(|(_, depth)| depth.to_string());
        let queue = queue.map(|(queue, _)| queue.to_string());
        table.row(vec![
            decided.by.time.to_string(),
            tracer.name(decided.task),
            words(decided),
            queue.unwrap_or_else(|| "-".to_owned()),
            depth.unwrap_or_else(|| "-".to_owned()),
            decided.by.cpu.to_string(),
            by(&decided.by),
        ]);
    }
    writeln!(to, "\nDecisions\n")?;
    table.write(to)
}

fn words(decided: &Decided) -> String {
    match decided.verdict {
        DecisionVerdict::Slice(u64::MAX) => "slice without end".to_owned(),
        DecisionVerdict::Slice(slice) => format!("slice {}", model::Nanos::new(slice)),
        other => other.word().to_owned(),
    }
}

fn by(act: &Act) -> String {
    let line = act.place.as_ref().map(|place| match &place.file {
        Some(file) => format!(" {file}:{}", place.line),
        None => format!(" {}", place.function),
    });
    format!("{}{}", act.callback, line.unwrap_or_default())
}

/// The decisions as JSON.
pub fn json(decider: &Decider, tracer: &Tracer) -> Value {
    let rows = decider.decided().iter().map(|decided| {
        let place = decided.by.place.as_ref();
        let slice = match decided.verdict {
            DecisionVerdict::Slice(slice) => Some(slice),
            _ => None,
        };
        let queue = decided.queue.as_ref();
        json!({
            "time_ns": decided.by.time.as_nanos(),
            "task": tracer.name(decided.task),
            "decision": decided.verdict.word(),
            "slice_ns": slice,
            "queue": queue.map(|(queue, _)| queue.id),
            "depth": queue.map(|(_, depth)| depth),
            "cpu": decided.by.cpu.0,
            "callback": decided.by.callback,
            "function": place.map(|place| &place.function),
            "file": place.and_then(|place| place.file.as_ref()),
            "line": place.map(|place| place.line).filter(|line| *line > 0),
        })
    });
    Value::Array(rows.collect())
}
