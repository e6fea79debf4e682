//! A trace for people.

use std::io::{self, Write};

use explain::trace::{
    KnownFrom, QueueEvent, QueueStanding, QueueStep, TraceTurn, Tracer, Visit, Waiting,
};
use model::report::{EXPIRED, INTERACTIVE};
use model::{Nanos, SimTime, TaskId};
use stats::{ColumnValue, Histogram, Spread};

use super::rows::left_as;
use super::{RUNNING_SYSTEM, TraceCall};
use crate::table::Table;

/// Writes what the call tells.
///
/// # Errors
/// When `to` does not take it.
pub fn write(call: TraceCall, tracer: &Tracer, to: &mut dyn Write) -> io::Result<()> {
    if let Some(header) = tracer.header() {
        let machine = &header.machine;
        // A real machine's load has none.
        let seed = match header.workload.as_str() {
            RUNNING_SYSTEM => String::new(),
            _ => format!(", seed {}", header.seed),
        };
        writeln!(
            to,
            "{} under {}: CPUs {}, HZ {}, kernel {}{seed}, {} s\n",
            model::plain::shown(&header.workload),
            model::plain::shown(&header.policy),
            machine.cpus,
            machine.hz,
            machine.kernel.name(),
            tracer.end(),
        )?;
    }
    match call {
        TraceCall::Pid => pid(tracer, to),
        TraceCall::Status => status(tracer, to),
        TraceCall::Queue => queue(tracer, to),
    }
}

fn maybe_name(tracer: &Tracer, task: Option<TaskId>) -> String {
    task.map_or_else(|| "-".to_owned(), |task| tracer.name(task))
}

fn pid(tracer: &Tracer, to: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::default()
        .names("ready at, s")
        .names("task")
        .names("why")
        .numbers("CPU")
        .numbers("wait")
        .names("behind")
        .numbers("overtaken");
    for turn in tracer.turns() {
        let wait = match turn.wait() {
            Some(wait) => wait.to_string(),
            None => "waits still".to_owned(),
        };
        table.row([
            turn.ready.to_string(),
            tracer.name(turn.task),
            turn.reason.name().to_owned(),
            turn.cpu.to_string(),
            wait,
            maybe_name(tracer, turn.behind),
            turn.overtaken.to_string(),
        ]);
    }
    writeln!(to, "{table}")?;
    let mut table = Table::default()
        .names("while it waited")
        .numbers("waits")
        .numbers("mean")
        .numbers("p50")
        .numbers("p99")
        .numbers("max");
    let span = |value: Option<Nanos>| ColumnValue::Nanos(value).to_string();
    let mut row = |name: &str, is_interfered| {
        let mut histogram = Histogram::new();
        let waits = tracer.waits(is_interfered);
        waits.for_each(|wait| histogram.record(wait));
        let spread = Spread::from(&histogram);
        let numbers = [spread.mean, spread.p50, spread.p99, spread.max].map(span);
        let front = [name.to_owned(), spread.count.to_string()];
        table.row(front.into_iter().chain(numbers));
    };
    row("no other ran", false);
    row("another ran", true);
    write!(to, "{table}")
}

fn labels(standing: Option<QueueStanding>) -> String {
    let flags = standing.map_or(0, |it| it.flags);
    let names = [(INTERACTIVE, "interactive"), (EXPIRED, "expired")];
    let set = names.into_iter().filter(|(bit, _)| flags & bit != 0);
    set.map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}

fn number(value: Option<u32>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn status(tracer: &Tracer, to: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::default()
        .names("runs at, s")
        .names("task")
        .numbers("CPU")
        .numbers("priority")
        .numbers("level")
        .numbers("for")
        .names("then")
        .names("label");
    for turn in tracer.turns() {
        let Some(ran) = turn.ran else { continue };
        let (length, then) = match turn.left {
            Some((left, state)) => (left.since(ran), left_as(state)),
            None => (tracer.end().since(ran), "runs still"),
        };
        table.row([
            ran.to_string(),
            tracer.name(turn.task),
            turn.cpu.to_string(),
            number(turn.standing.map(|it| it.priority)),
            number(turn.standing.map(|it| it.level)),
            length.to_string(),
            then.to_owned(),
            labels(turn.standing),
        ]);
    }
    write!(to, "{table}")?;
    if !tracer.has_reports() {
        writeln!(to, "\nthe policy reports neither priorities nor levels")?;
    }
    Ok(())
}

fn queue(tracer: &Tracer, to: &mut dyn Write) -> io::Result<()> {
    let source = if tracer.has_reports() {
        "queues are rebuilt from events, priorities and levels from what the policy reported when\n\
         a task ran next (`?`: when it ran last); equals stand in the order in which they came"
    } else {
        "queues are rebuilt from events; the policy reports neither priorities nor levels, so\n\
         tasks stand in the order in which they came"
    };
    writeln!(to, "{source}")?;
    if tracer.visits().is_empty() {
        writeln!(to, "\nthe task returned to no queue meanwhile")?;
    }
    for visit in tracer.visits() {
        write_visit(tracer, visit, to)?;
    }
    Ok(())
}

fn write_visit(tracer: &Tracer, visit: &Visit, to: &mut dyn Write) -> io::Result<()> {
    let turn = tracer.turns()[visit.turn];
    let own = visit.queue.iter().find(|it| it.wait.task == turn.task);
    let cpu = own.map_or(turn.cpu, |own| own.wait.cpu);
    writeln!(
        to,
        "\n{} s: {} ({}) waits at CPU {cpu}, which runs {}",
        turn.ready,
        tracer.name(turn.task),
        turn.reason.name(),
        visit
            .running
            .map_or_else(|| "nothing".to_owned(), |task| tracer.name(task)),
    )?;
    let entries = entries(tracer, &turn, &visit.queue).to_string();
    for line in entries.lines() {
        writeln!(to, "    {line}")?;
    }
    for step in &visit.steps {
        writeln!(to, "  {}", describe(tracer, turn.ready, step))?;
    }
    match turn.wait() {
        Some(wait) => writeln!(
            to,
            "  +{wait}: {} runs on CPU {}",
            tracer.name(turn.task),
            turn.cpu
        ),
        None => writeln!(to, "  it waits still when the run ends"),
    }
}

fn entries(tracer: &Tracer, turn: &TraceTurn, queue: &[Waiting]) -> Table {
    let mut table = Table::default()
        .names("task")
        .numbers("priority")
        .numbers("level")
        .numbers("waits since")
        .names("why");
    for Waiting { wait, known } in queue {
        let mark = if matches!(known, KnownFrom::AtLastRun(_)) {
            "?"
        } else {
            ""
        };
        let standing = known.standing();
        let waited: Nanos = turn.ready.since(wait.since);
        table.row([
            tracer.name(wait.task),
            number(standing.map(|it| it.priority)) + mark,
            number(standing.map(|it| it.level)) + mark,
            waited.to_string(),
            wait.reason.name().to_owned(),
        ]);
    }
    table
}

fn describe(tracer: &Tracer, since: SimTime, step: &QueueStep) -> String {
    let after = step.time.since(since);
    let (name, cpu) = (tracer.name(step.task), step.cpu);
    match step.what {
        QueueEvent::Runs => format!("+{after}: {name} runs on CPU {cpu}"),
        QueueEvent::Comes(reason) => {
            format!("+{after}: {name} comes to CPU {cpu}, {}", reason.name())
        }
        QueueEvent::Arrives(from) => format!("+{after}: {name} comes from CPU {from} to CPU {cpu}"),
        QueueEvent::Leaves(target) => format!("+{after}: {name} leaves for CPU {target}"),
        QueueEvent::Idles => format!("+{after}: CPU {cpu} goes idle"),
    }
}
