//! Tasks that waited for long: nothing that starves goes unsaid.

use std::path::Path;

use ask::words;
use model::Nanos;
use stats::TaskReport;
use workload::RunSpec;

use super::Sim;
use crate::about::About;
use crate::computer::COMPUTER;
use crate::explains::{self, Subject};
use crate::goal::wait_limit;
use crate::report::{Outcome, Results};
use crate::say::say;
use crate::violation::Property;
use crate::{output, policy};

/// Tasks that are named one by one.
const NAMED: usize = 5;
/// A wait of a second is named if it is among the worst thousandth.
const LONG: Nanos = Nanos::from_secs(1);

/// Reads `wait=TIME` or another property.
///
/// # Errors
/// When it is none.
pub fn parse_fail_on(text: &str) -> Result<Property, String> {
    let wrong = |_| "write wait=TIME, for example wait=1s".to_owned();
    match wait_limit(text) {
        Some(limit) => limit.map(Property::Wait),
        None => Property::parse(text).map_err(wrong),
    }
}

/// Says on standard error which tasks waited for long, of the first run of each policy that has
/// some, and what says why. Gives whether one waited as long as what is asked for, in any run.
pub fn report(request: &Sim, specs: &[RunSpec], results: &Results) -> bool {
    let limit = request.wait_limit();
    let mut has_failed = false;
    let mut told: Vec<&str> = Vec::new();
    for outcome in &results.outcomes {
        let mut failed = of(outcome, |task| limit.is_some_and(|it| task.wait_max >= it));
        has_failed |= !failed.is_empty();
        if let (Some(limit), false) = (limit, failed.is_empty()) {
            tell(outcome, &mut failed, &format!("for {limit} or longer"));
            continue;
        }
        let worst = outcome.report.wait_p999.unwrap_or(Nanos::ZERO);
        let half = outcome.summary.watchdog.map(|it| Nanos::new(it.get() / 2));
        let mut long = of(outcome, |task| {
            let is_stall = half.is_some_and(|half| task.wait_max > half);
            is_stall || task.wait_max > LONG && task.wait_max >= worst
        });
        if !long.is_empty() && !told.contains(&outcome.policy.as_str()) {
            told.push(&outcome.policy);
            tell(outcome, &mut long, "for long");
            say("runslice", &why(request, specs, outcome));
        }
    }
    has_failed
}

/// What says why tasks waited in a run.
fn why(request: &Sim, specs: &[RunSpec], outcome: &Outcome) -> String {
    let listed = policy::list(&COMPUTER, &request.policy);
    // Programs stand behind the policies.
    let programs = request.schedulers.commands.iter();
    let programs = programs.map(|program| Subject::Program(program));
    let subjects = listed.iter().map(|policy| Subject::Policy(policy));
    let mut subjects = specs.iter().zip(subjects.chain(programs));
    let own = subjects.find(|(spec, _)| spec.policy.name == outcome.policy);
    let seed = request.run.runs.map(|_| outcome.report.seed);
    let command = own.and_then(|(_, own)| explains::command(&About::words(), own, seed));
    if let Some(command) = command {
        return format!("`{command}` says why");
    }
    let file = output::path_for(Path::new("run.jsonl"), &outcome.policy, specs.len() > 1);
    let file = file.display().to_string();
    let explain = words::command(&["runslice", "explain", "--events", &file, "--worst", "5"]);
    let without = if seed.is_some() {
        " without --runs"
    } else {
        ""
    };
    format!("with --events run.jsonl --decisions{without}, `{explain}` says why")
}

fn of(outcome: &Outcome, is_long: impl Fn(&TaskReport) -> bool) -> Vec<&TaskReport> {
    let tasks = outcome.report.tasks.iter();
    tasks.filter(|task| is_long(task)).collect()
}

fn tell(outcome: &Outcome, long: &mut [&TaskReport], how: &str) {
    long.sort_by_key(|task| (std::cmp::Reverse(task.wait_max), task.task));
    let named = long.iter().take(NAMED);
    let named: Vec<_> = named
        .map(|task| format!("{} for {}", task.name, task.wait_max))
        .collect();
    let more = if long.len() > NAMED { ", ..." } else { "" };
    let (policy, count) = (&outcome.policy, long.len());
    let tasks = if count == 1 { "task" } else { "tasks" };
    let text = format!(
        "{policy}: {count} {tasks} waited {how}: {}{more}",
        named.join(", ")
    );
    say("runslice", &text);
}
