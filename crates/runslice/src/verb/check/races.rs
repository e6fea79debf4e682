//! `runslice check POLICY --races`.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ask::error::UsageError;
use ask::orders::SHORT;
use ask::races::{RaceReport, Races, RacingVariable, place, word};
use clap::Args;
use model::{Advised, Nanos, Stall};
use serde_json::{Value, json};
use sim::{FoundRace, RaceClass};
use workload::RunSpec;

use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::{input, output, policy, wall_time, workload_arg};

use super::orders;
use super::repeat::Repeat;

/// Length of a run if nothing else is asked for.
const USUAL: Nanos = Nanos::from_millis(50);

/// Columns of a line at most.
const WIDEST: usize = 80;

/// Options of `check --races`.
#[derive(Debug, Args)]
pub struct RaceOptions {
    /// Look for races between callbacks instead: variables that two CPUs use at the same time
    /// without a lock. Each is confirmed by a run in which a CPU stops there. See docs/races.md.
    #[arg(long, conflicts_with_all = ["scheduler", "costs", "vm", "here"])]
    pub races: bool,

    /// Try every order in which one CPU stops once, in a short run: before each access that another
    /// CPU can see, and each call of the kernel. See docs/races.md.
    #[arg(long, conflicts_with_all = ["scheduler", "costs", "vm", "here", "races"])]
    pub orders: bool,

    /// Workload for --races and --orders: a built-in name or a TOML file. For --orders there are
    /// also orders-fork, orders-affinity, orders-exit, orders-hotplug, orders-enable and
    /// orders-wakeups. Default: chat.
    #[arg(short, long)]
    workload: Option<String>,

    /// Simulated time for --races and --orders. Default: 50ms, with --orders 1ms.
    #[arg(long, value_name = "TIME", value_parser = workload_arg::parse_duration)]
    duration: Option<Nanos>,

    /// Begin no order after this time, such as 5m or 90s, and tell what came of those before.
    /// Default: no limit.
    #[arg(long = "for", value_name = "TIME", value_parser = wall_time::parse, requires = "orders")]
    length: Option<std::time::Duration>,

    /// Stalls of an order for --orders, at most: 1 or 2. With 2, if no order with one shows a
    /// fault, a second one is tried before each of the next 64 of these accesses, the nearest
    /// first. Default: 1.
    #[arg(
        long,
        value_name = "NUMBER",
        requires = "orders",
        value_parser = clap::value_parser!(u8).range(1..=2)
    )]
    stalls: Option<u8>,

    /// Threads for --orders. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER", requires = "orders")]
    jobs: Option<NonZeroUsize>,

    /// File of variables whose races are accepted, one a line; text behind `#` is a comment.
    #[arg(long, value_name = "FILE", requires = "races")]
    accepted: Option<PathBuf>,

    /// Print the races, or what the orders come to, as JSON.
    #[arg(long)]
    json: bool,
}

impl RaceOptions {
    /// Whether races or orders are asked for.
    ///
    /// # Errors
    /// When their options are given without them.
    pub fn asked(&self) -> anyhow::Result<bool> {
        let asked = self.races || self.orders;
        let what = match (
            self.workload.is_some() || self.duration.is_some(),
            self.json,
        ) {
            (true, _) => "`check` runs no workload",
            (_, true) => "`check` prints no JSON of an object",
            _ => return Ok(asked),
        };
        if asked {
            return Ok(true);
        }
        Err(UsageError::new(Advised::new(what, "add --races or --orders")).into())
    }
}

/// Prints the races of the policy `name`, or what its orders come to.
///
/// # Errors
/// When there is no such policy or load, or the policy cannot be run.
pub fn print(
    name: &str,
    set: &[(String, String)],
    options: &RaceOptions,
) -> anyhow::Result<Status> {
    let mut policy = policy::find(&COMPUTER, name)?;
    policy.set.extend(set.iter().cloned());
    let load = options.workload.as_deref().unwrap_or("chat");
    let workload = Arc::new(workload_arg::find(&COMPUTER, load, &[])?);
    let usual = if options.orders { SHORT } else { USUAL };
    let duration = options.duration.unwrap_or(usual);
    let spec = RunSpec {
        policy,
        machine: workload.machine.clone(),
        seed: workload.seed,
        workload,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: Some(duration),
    };
    let again = Repeat { name, set, load };
    if options.orders {
        let limits = (options.jobs, options.length, options.stalls == Some(2));
        return orders::print(spec, &again, limits, options.json);
    }
    let question = Races {
        spec,
        accepted: accepted(options.accepted.as_deref())?,
    };
    let report = question.ask(&COMPUTER).map_err(ask::Error::into_cause)?;
    let again = |stall: &Stall| again.words("sim", duration, std::slice::from_ref(stall));
    let mut to = output::open(None)?;
    if options.json {
        writeln!(to, "{:#}", document(&report, &again))?;
    } else {
        write_text(&mut to, (name, &report), &again)?;
    }
    to.flush()?;
    let shown = report.variables.iter().any(|it| it.shown.is_some());
    Ok(if shown { Status::Ejected } else { Status::Done })
}

/// The words of the command that repeats a run with a stall.
type Again<'a> = &'a dyn Fn(&Stall) -> Vec<String>;

fn accepted(file: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let Some(file) = file else {
        return Ok(Vec::new());
    };
    let bytes = input::bytes(&COMPUTER, file, input::OBJECT)?;
    let text = String::from_utf8_lossy(&bytes);
    let names = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    Ok(names.map(str::to_owned).collect())
}

fn write_text(
    to: &mut dyn Write,
    (name, report): (&str, &RaceReport),
    again: Again<'_>,
) -> anyhow::Result<()> {
    for variable in &report.variables {
        write_variable(to, variable, again)?;
        writeln!(to)?;
    }
    if !report.accepted.is_empty() {
        writeln!(to, "Accepted: {}", report.accepted.join(", "))?;
    }
    if report.exit.kind.is_error() {
        let exit = &report.exit;
        let reason = exit.kind.reason();
        writeln!(to, "The run ended early: {reason}: {}", exit.message)?;
    }
    let shown = report.variables.iter().filter(|it| it.shown.is_some());
    Ok(writeln!(
        to,
        "{name}: racing variables: {}, shown by a stall: {}, accesses: {}",
        report.variables.len(),
        shown.count(),
        report.accesses
    )?)
}

fn write_variable(
    to: &mut dyn Write,
    variable: &RacingVariable,
    again: Again<'_>,
) -> anyhow::Result<()> {
    let race = variable.worst();
    writeln!(to, "{}: {}", race.variable, word(race.class))?;
    if race.class == RaceClass::LostUpdate {
        writeln!(to, "  reads:      {}", place(race.reads.as_ref()))?;
    }
    writeln!(to, "  writes:     {}", place(race.writes.as_ref()))?;
    writeln!(to, "  other CPU:  {}", place(race.other.as_ref()))?;
    let more = match variable.pairs.len() - 1 {
        0 => String::new(),
        1 => "; 1 more pair of lines".to_owned(),
        count => format!("; {count} more pairs of lines"),
    };
    writeln!(to, "  found by:   {}, {} times{more}", by(race), race.count)?;
    match &variable.shown {
        Some(shown) => {
            write_command(to, "  shown by:   ", &again(&shown.stall))?;
            if let Some(exit) = &shown.exit {
                let reason = exit.kind.reason();
                writeln!(to, "  ejected:    {reason}: {}", exit.message)?;
            }
        }
        None if race.class == RaceClass::Reader => {}
        None => writeln!(
            to,
            "  not shown:  no other CPU wrote in a stall of up to 20 ms"
        )?,
    }
    Ok(())
}

/// Writes a command in lines of at most 80 columns where its words allow that. A shell takes them
/// for one line.
fn write_command(to: &mut dyn Write, head: &str, words: &[String]) -> std::io::Result<()> {
    let mut line = head.to_owned();
    let margin = " ".repeat(head.len());
    for word in words {
        // With a blank before the word and what goes on behind it.
        let is_first = line.len() == head.len();
        if !is_first && line.chars().count() + word.chars().count() + 3 > WIDEST {
            writeln!(to, "{line} \\")?;
            line.clone_from(&margin);
        } else if !is_first {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(to, "{line}")
}

const fn by(race: &FoundRace) -> &'static str {
    match (race.by_order, race.by_locks) {
        (true, true) => "order and locks",
        (true, false) => "order",
        _ => "locks",
    }
}

fn document(report: &RaceReport, again: Again<'_>) -> Value {
    let variables = report.variables.iter().map(|variable| {
        let pairs = variable.pairs.iter().map(|race| {
            json!({
                "class": word(race.class),
                "reads": race.reads.as_ref().map(|it| place(Some(it))),
                "writes": place(race.writes.as_ref()),
                "other": place(race.other.as_ref()),
                "by_order": race.by_order,
                "by_locks": race.by_locks,
                "count": race.count,
                "point": race.point,
            })
        });
        let shown = variable.shown.as_ref().map(|shown| {
            json!({
                "interleave": format!("at={}", shown.stall),
                "command": again(&shown.stall).join(" "),
                "ejection": shown.exit.as_ref().map(|exit| exit.message.clone()),
            })
        });
        json!({
            "variable": variable.worst().variable,
            "class": word(variable.worst().class),
            "pairs": pairs.collect::<Vec<_>>(),
            "shown": shown,
        })
    });
    json!({
        "accesses": report.accesses,
        "accepted": report.accepted,
        "variables": variables.collect::<Vec<_>>(),
    })
}
