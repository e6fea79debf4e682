//! `runslice check POLICY --orders`.

use std::io::Write;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use ask::orders::{OrderFault, Orders, SHORT, TriedOrders, TriedPairs};
use model::{Interleave, Nanos};
use serde_json::{Value, json};
use workload::RunSpec;

use super::repeat::Repeat;
use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::explanation::{Explanation, json as shown, text};
use crate::{interrupt, look, output};

/// Prints whether an order with one stall shows a fault, or with two if `pairs` are asked for, with
/// as many threads as `jobs` says, and tells what came of those that begin in the time.
///
/// # Errors
/// When the policy cannot be run.
pub(super) fn print(
    spec: RunSpec,
    again: &Repeat<'_>,
    (jobs, time, pairs): (Option<NonZeroUsize>, Option<Duration>, bool),
    is_json: bool,
) -> anyhow::Result<Status> {
    let (length, kernel) = (spec.duration.unwrap_or(SHORT), spec.machine.kernel);
    let jobs = COMPUTER.jobs(jobs);
    let until = time.map(|time| Instant::now() + time);
    let is_over = || until.is_some_and(|until| Instant::now() >= until);
    interrupt::keeps_results();
    let tried = Orders { spec, jobs, pairs }.ask(&COMPUTER, &is_over);
    let tried = tried.map_err(ask::Error::into_cause)?;
    let mut to = output::open(None)?;
    if is_json {
        let document = document(&tried, again, (length, kernel.name()));
        writeln!(to, "{document:#}")?;
    } else {
        write_text(&mut to, &tried, again, (length, kernel.name()))?;
    }
    to.flush()?;
    let is_faulty = tried.undisturbed.is_some() || !tried.faults.is_empty();
    Ok(if is_faulty {
        Status::Ejected
    } else {
        Status::Done
    })
}

fn write_text(
    to: &mut dyn Write,
    tried: &TriedOrders,
    again: &Repeat<'_>,
    (length, kernel): (Nanos, &str),
) -> anyhow::Result<()> {
    let name = again.name;
    if let Some(fault) = &tried.undisturbed {
        writeln!(to, "{name}: a fault without any stall; no order is tried\n")?;
        return write_fault(to, fault, again);
    }
    let part = if tried.is_whole() {
        "all".to_owned()
    } else {
        format!("the first {} of", tried.tried)
    };
    let all = format!("{part} {} orders with one stall", tried.all());
    let faults = tried.faults.iter().filter(|it| it.stalls.len() == 1);
    match faults.count() {
        0 => writeln!(to, "{name}: no fault in {all}")?,
        count => writeln!(to, "{name}: a fault in {count} of {all}")?,
    }
    let spans = TriedOrders::SPANS.map(|span| span.to_string()).join(", ");
    writeln!(
        to,
        "  stalls:  before {} of {} accesses, for {spans}",
        tried.conflicts, tried.accesses
    )?;
    if let Some(pairs) = &tried.pairs {
        write_pairs(to, pairs, tried.faults.len())?;
    }
    if !tried.is_whole() {
        writeln!(
            to,
            "  not yet: those after access {}, because the time was over",
            tried.reached
        )?;
    }
    writeln!(
        to,
        "  load:    {}, up to {length}; who waits then is followed for 1 s\n  memory:  \
         sequentially consistent\n  kernel:  locks of Linux 6.18, rules of {kernel}",
        again.load
    )?;
    if let Some(first) = tried.faults.first() {
        writeln!(to)?;
        write_fault(to, first, again)?;
    }
    Ok(())
}

/// What came of two stalls.
fn write_pairs(to: &mut dyn Write, pairs: &TriedPairs, faults: usize) -> std::io::Result<()> {
    let part = if pairs.tried == pairs.all && !pairs.is_over {
        "all".to_owned()
    } else {
        format!("the first {} of", pairs.tried)
    };
    let what = match faults {
        0 => "no fault".to_owned(),
        count => format!("a fault in {count}"),
    };
    let (near, all) = (TriedPairs::NEAR, pairs.all);
    writeln!(
        to,
        "  pairs:   {part} {all} with a second stall before one of the next {near}: {what}"
    )
}

fn write_fault(to: &mut dyn Write, fault: &OrderFault, again: &Repeat<'_>) -> anyhow::Result<()> {
    let explanation = Explanation {
        finding: Some(fault.finding.clone()),
        again: Some(again.command("explain", fault.duration, &fault.stalls)),
        ..Explanation::default()
    };
    Ok(write!(to, "{}", text::of(&explanation, look::width()))?)
}

fn document(tried: &TriedOrders, again: &Repeat<'_>, (length, kernel): (Nanos, &str)) -> Value {
    let fault = |fault: &OrderFault| {
        json!({
            "interleave": (!fault.stalls.is_empty())
                .then(|| Interleave::At(fault.stalls.clone()).to_string()),
            "duration_ns": fault.duration.get(),
            "command": again.command("explain", fault.duration, &fault.stalls),
            "finding": shown::finding(&fault.finding),
        })
    };
    let faults: Vec<Value> = tried.faults.iter().map(fault).collect();
    json!({
        "policy": again.name,
        "load": again.load,
        "duration_ns": length.get(),
        "kernel": kernel,
        "accesses": tried.accesses,
        "conflicts": tried.conflicts,
        "stalls_ns": TriedOrders::SPANS.map(Nanos::get),
        "orders": tried.all(),
        "tried": tried.tried,
        "reached": tried.reached,
        "pairs": tried.pairs.map(|pairs| json!({
            "near": TriedPairs::NEAR,
            "orders": pairs.all,
            "tried": pairs.tried,
        })),
        "undisturbed": tried.undisturbed.as_deref().map(fault),
        "faults": faults,
    })
}
