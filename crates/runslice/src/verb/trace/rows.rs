//! A trace as rows, for programs: JSON or CSV.

use std::io::{self, Write};

use explain::trace::{KnownFrom, QueueEvent, QueueStanding, QueueStep, Tracer, Visit, Waiting};
use model::report::{EXPIRED, INTERACTIVE};
use model::{PrevState, SimTime, TaskId};
use serde_json::{Map, Value, json};

use super::TraceCall;
use crate::export::{ColumnKind, ExportTable};

/// Version of the JSON document; it grows when a field is removed or changes its meaning.
const VERSION: u32 = 1;

type Row = Vec<Value>;

/// Writes one JSON document.
///
/// # Errors
/// When `to` does not take it.
pub fn write_json(
    call: TraceCall,
    tracer: &Tracer,
    decisions: Option<Value>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let header = tracer.header();
    let columns = columns(call);
    let object = |row: Row| -> Value {
        let fields = columns.iter().map(|column| (*column).to_owned()).zip(row);
        Value::Object(fields.collect::<Map<_, _>>())
    };
    let mut document = json!({
        "runslice_trace": VERSION,
        "call": name(call),
        "policy": header.map(|header| &header.policy),
        "workload": header.map(|header| &header.workload),
        "machine": header.map(|header| &header.machine),
        "seed": header.map(|header| header.seed),
        "end_ns": tracer.end().as_nanos(),
        "left_out": tracer.left_out(),
        "rows": rows(call, tracer).into_iter().map(object).collect::<Vec<_>>(),
    });
    if let Some(decisions) = decisions {
        document["decisions"] = decisions;
    }
    serde_json::to_writer_pretty(&mut *to, &document).map_err(io::Error::from)?;
    writeln!(to)
}

/// One table.
pub fn export(call: TraceCall, tracer: &Tracer) -> ExportTable {
    let columns = columns(call).iter().map(|name| (*name, kind(name)));
    let mut table = ExportTable::new(columns);
    for row in rows(call, tracer) {
        table.row(row.iter().map(cell));
    }
    table
}

/// What a column holds.
fn kind(column: &str) -> ColumnKind {
    match column {
        "task" | "why" | "behind" | "left_as" | "event" | "known" => ColumnKind::Text,
        _ => ColumnKind::Whole,
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(is) => u8::from(*is).to_string(),
        other => other.to_string(),
    }
}

const fn name(call: TraceCall) -> &'static str {
    match call {
        TraceCall::Pid => "pid",
        TraceCall::Queue => "queue",
        TraceCall::Status => "status",
    }
}

const fn columns(call: TraceCall) -> &'static [&'static str] {
    match call {
        TraceCall::Pid => &[
            "task",
            "pid",
            "ready_ns",
            "why",
            "cpu",
            "ran_ns",
            "wait_ns",
            "behind",
            "overtaken",
        ],
        TraceCall::Status => &[
            "task",
            "pid",
            "ran_ns",
            "cpu",
            "priority",
            "level",
            "interactive",
            "expired",
            "left_ns",
            "left_as",
        ],
        TraceCall::Queue => &[
            "visit", "time_ns", "event", "task", "pid", "cpu", "since_ns", "why", "from", "to",
            "priority", "level", "known",
        ],
    }
}

fn rows(call: TraceCall, tracer: &Tracer) -> Vec<Row> {
    match call {
        TraceCall::Pid => waits(tracer),
        TraceCall::Status => standings(tracer),
        TraceCall::Queue => {
            let visits = tracer.visits().iter().enumerate();
            visits
                .flat_map(|(at, visit)| visit_rows(tracer, at, visit))
                .collect()
        }
    }
}

fn waits(tracer: &Tracer) -> Vec<Row> {
    let turns = tracer.turns().iter();
    let row = |turn: &explain::trace::TraceTurn| {
        vec![
            json!(tracer.name(turn.task)),
            json!(tracer.pid(turn.task)),
            json!(turn.ready.as_nanos()),
            json!(turn.reason.name()),
            json!(turn.cpu.0),
            json!(turn.ran.map(SimTime::as_nanos)),
            json!(turn.wait().map(model::Nanos::get)),
            json!(turn.behind.map(|task| tracer.name(task))),
            json!(turn.overtaken),
        ]
    };
    turns.map(row).collect()
}

/// One word for the state in which a task leaves its CPU.
pub const fn left_as(state: PrevState) -> &'static str {
    match state {
        PrevState::Runnable => "runnable",
        PrevState::Dead => "dead",
        PrevState::Sleeping | PrevState::Idle => "sleeping",
    }
}

fn standings(tracer: &Tracer) -> Vec<Row> {
    let turns = tracer.turns().iter();
    let row = |turn: &explain::trace::TraceTurn| {
        let ran = turn.ran?;
        let standing = turn.standing;
        let flag = |bit| standing.map(|it| it.flags & bit != 0);
        Some(vec![
            json!(tracer.name(turn.task)),
            json!(tracer.pid(turn.task)),
            json!(ran.as_nanos()),
            json!(turn.cpu.0),
            json!(standing.map(|it| it.priority)),
            json!(standing.map(|it| it.level)),
            json!(flag(INTERACTIVE)),
            json!(flag(EXPIRED)),
            json!(turn.left.map(|(time, _)| time.as_nanos())),
            json!(turn.left.map(|(_, state)| left_as(state))),
        ])
    };
    turns.filter_map(row).collect()
}

/// The fields of a row of `trace queue` that not every event has.
#[derive(Default)]
struct Extra {
    since: Option<u64>,
    why: Option<&'static str>,
    from: Option<u16>,
    to: Option<u16>,
    standing: Option<QueueStanding>,
    known: Option<&'static str>,
}

fn visit_rows(tracer: &Tracer, at: usize, visit: &Visit) -> Vec<Row> {
    let turn = tracer.turns()[visit.turn];
    let row = |time: SimTime, event: &str, task: TaskId, cpu: u16, extra: Extra| {
        let known_task = (task != TaskId::NONE).then(|| tracer.name(task));
        vec![
            json!(at),
            json!(time.as_nanos()),
            json!(event),
            json!(known_task),
            json!(tracer.pid(task)),
            json!(cpu),
            json!(extra.since),
            json!(extra.why),
            json!(extra.from),
            json!(extra.to),
            json!(extra.standing.map(|it| it.priority)),
            json!(extra.standing.map(|it| it.level)),
            json!(extra.known),
        ]
    };
    let own = visit.queue.iter().find(|it| it.wait.task == turn.task);
    let cpu = own.map_or(turn.cpu, |own| own.wait.cpu).0;
    let why = Some(turn.reason.name());
    let extra = Extra {
        why,
        ..Extra::default()
    };
    let mut rows = vec![row(turn.ready, "returns", turn.task, cpu, extra)];
    if let Some(task) = visit.running {
        rows.push(row(turn.ready, "running", task, cpu, Extra::default()));
    }
    rows.extend(visit.queue.iter().map(|entry| {
        let Waiting { wait, known } = entry;
        let extra = Extra {
            since: Some(wait.since.as_nanos()),
            why: Some(wait.reason.name()),
            standing: known.standing(),
            known: known_word(*known),
            ..Extra::default()
        };
        row(turn.ready, "waits", wait.task, wait.cpu.0, extra)
    }));
    rows.extend(visit.steps.iter().map(|step| {
        let QueueStep {
            time, task, cpu, ..
        } = *step;
        let (event, extra) = step_fields(step.what);
        row(time, event, task, cpu.0, extra)
    }));
    if let Some(ran) = turn.ran {
        let extra = Extra {
            since: Some(turn.ready.as_nanos()),
            standing: turn.standing,
            ..Extra::default()
        };
        rows.push(row(ran, "is run", turn.task, turn.cpu.0, extra));
    }
    rows
}

fn step_fields(what: QueueEvent) -> (&'static str, Extra) {
    let none = Extra::default();
    match what {
        QueueEvent::Runs => ("runs", none),
        QueueEvent::Idles => ("idles", none),
        QueueEvent::Comes(reason) => {
            let why = Some(reason.name());
            ("comes", Extra { why, ..none })
        }
        QueueEvent::Arrives(from) => {
            let from = Some(from.0);
            ("arrives", Extra { from, ..none })
        }
        QueueEvent::Leaves(to) => {
            let to = Some(to.0);
            ("leaves", Extra { to, ..none })
        }
    }
}

/// From where a standing is known, in one word; nothing for nothing.
const fn known_word(known: KnownFrom) -> Option<&'static str> {
    match known {
        KnownFrom::AtNextRun(_) => Some("next run"),
        KnownFrom::AtLastRun(_) => Some("last run"),
        KnownFrom::Nothing => None,
    }
}
