//! `runslice check POLICY --costs`.

use std::io::Write as _;

use sim::Tally;
use sim::costs::{Costs, measure};

use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::table::Table;
use crate::{output, policy};

const HOGS: [u32; 4] = [10, 100, 1_000, 10_000];

/// Callbacks that a decision passes through, in the order of a task's life.
const SHOWN: [&str; 9] = [
    "select_cpu",
    "runnable",
    "enqueue",
    "dispatch",
    "running",
    "tick",
    "stopping",
    "quiescent",
    "dequeue",
];

/// Prints what the callbacks of `object` cost with few tasks and with many.
///
/// # Errors
/// When there is no such policy, or it cannot be run.
pub fn print(object: &str) -> anyhow::Result<Status> {
    let policy = policy::find(&COMPUTER, object)?;
    let costs = HOGS.iter().map(|hogs| measure(&policy, *hogs));
    let costs: Vec<Costs> = costs.collect::<Result<_, _>>()?;
    let mut to = output::open(None)?;
    write!(to, "{}\n{}", callbacks(&costs), functions(&costs))?;
    writeln!(
        to,
        "\none CPU, HZ 1000: hogs, and a task that works 0.2 ms every 10 ms; 20 s each. Prices: \
         the profile default-v0"
    )?;
    let mut status = Status::Done;
    for cost in costs.iter().filter(|cost| cost.exit.kind.is_error()) {
        status = Status::Ejected;
        let (hogs, exit) = (cost.hogs, &cost.exit);
        let reason = exit.kind.reason();
        writeln!(
            to,
            "ejected with {hogs} hogs at {} s: {reason}: {}",
            exit.time, exit.message
        )?;
    }
    to.flush()?;
    Ok(status)
}

fn callbacks(costs: &[Costs]) -> Table {
    let mut table = Table::default()
        .names("callback")
        .numbers("hogs")
        .numbers("calls")
        .numbers_of("mean of a call", "instructions")
        .numbers_of("mean of a call", "visits")
        .numbers_of("mean of a call", "charged")
        .numbers_of("dearest call", "instructions")
        .numbers_of("dearest call", "visits")
        .numbers_of("dearest call", "charged");
    for callback in SHOWN {
        let mut name = callback.to_owned();
        for cost in costs {
            let Some(tally) = cost.callbacks.get(callback) else {
                continue;
            };
            let words = [std::mem::take(&mut name), cost.hogs.to_string()];
            let numbers = figures(tally);
            table.row(words.into_iter().chain(numbers));
        }
    }
    table
}

fn figures(tally: &Tally) -> [String; 7] {
    let mean = |whole: u64| whole / tally.calls.max(1);
    let tenths = tally.visits() * 10 / tally.calls.max(1);
    let most = tally.dearest.as_deref().cloned().unwrap_or_default();
    [
        tally.calls.to_string(),
        mean(tally.instructions).to_string(),
        format!("{}.{}", tenths / 10, tenths % 10),
        nanos(mean(tally.charged_ps())),
        most.instructions.to_string(),
        most.visits().to_string(),
        nanos(most.charged_ps()),
    ]
}

fn nanos(picos: u64) -> String {
    format!("{} ns", (picos + 500) / 1000)
}

/// What the dearest decision called, one column a number of hogs.
fn functions(costs: &[Costs]) -> Table {
    let mut table = Table::default().names("called by the dearest dispatch");
    for title in ["10 hogs", "100 hogs", "1,000 hogs", "10,000 hogs"] {
        table = table.numbers(title);
    }
    let dearest: Vec<Tally> = costs
        .iter()
        .map(|cost| {
            let dispatch = cost.callbacks.get("dispatch");
            let dearest = dispatch.and_then(|tally| tally.dearest.as_deref());
            dearest.cloned().unwrap_or_default()
        })
        .collect();
    let names: std::collections::BTreeSet<&String> = dearest
        .iter()
        .flat_map(|tally| tally.functions.keys())
        .collect();
    for name in names {
        let calls = dearest.iter().map(|tally| {
            let calls = tally.functions.get(name).copied().unwrap_or_default();
            calls.to_string()
        });
        table.row([name.clone()].into_iter().chain(calls));
    }
    table
}
