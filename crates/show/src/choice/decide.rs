//! What would decide a question that is open, with the figure that this follows from.

use std::collections::BTreeMap;

use ask::choose::Chosen;
use ask::choose::field::Field;
use ask::words::listed;
use model::{Advice as _, Nanos};
use stats::compare::{Answered, Better, MetricRow, RatioAnswer, Refusal};

/// By how much the recording is too short for any goal.
pub fn too_short(field: &Field) -> Option<Nanos> {
    let lacks = &field.plan()?.lacks;
    let all: Option<Vec<Nanos>> = lacks.iter().copied().collect();
    all?.into_iter().min().map(rounded)
}

/// A time to record, in whole seconds, and from two minutes on in whole minutes.
fn rounded(span: Nanos) -> Nanos {
    const SECOND: u64 = 1_000_000_000;
    let seconds = span.get().div_ceil(SECOND).max(1);
    let unit = if seconds > 120 { 60 } else { 1 };
    Nanos::from_secs(seconds.div_ceil(unit) * unit)
}

/// What would decide it, with the figure that this follows from.
pub fn would_decide(chosen: &Chosen) -> Vec<String> {
    let (field, ranking) = (&chosen.field, &chosen.ranking);
    let mut sentences = Vec::new();
    if let Some(plan) = field.plan() {
        sentences.extend(plan.notes.iter().cloned());
        for ((goal, lacks), block) in field.goals.iter().zip(&plan.lacks).zip(&plan.blocks) {
            if let (Some(lacks), Some(block)) = (lacks, block) {
                sentences.push(format!(
                    "Record for {} more to compare {goal}: waits are alike for {block}, and it \
                     takes 10 such blocks, with 10 independent values beyond a percentile.",
                    rounded(*lacks)
                ));
            }
        }
    }
    let open = (1..field.sets.len()).flat_map(|at| {
        let goals = ranking.said[at].iter().enumerate();
        let open = goals.filter(|(_, it)| it.answer == RatioAnswer::CannotTell);
        open.map(move |(goal, said)| (at, goal, said))
    });
    let mut needs: Vec<String> = Vec::new();
    // By goal, the largest error that hides a difference; and who gains most in the simulation.
    let mut hidden: BTreeMap<usize, f64> = BTreeMap::new();
    let mut most: Option<(f64, usize)> = None;
    for (at, goal, said) in open {
        let error = &ranking.errors[at][goal];
        if let Some(lacks) = field.lacks(at, goal) {
            needs.push(format!(
                "Record for at least {} more to compare {} at {}: its blocks are so long, and may \
                 be longer in a longer recording.",
                rounded(lacks),
                field.name(at),
                field.goals[goal],
            ));
            continue;
        }
        let Some(row) = ranking.row(field, at, goal) else {
            continue;
        };
        if is_hidden(row, said, error.widening) {
            let factor = hidden.entry(goal).or_insert(1.0);
            *factor = factor.max(error.factor());
            let gain = said.shift.map_or(0.0, |[shift, ..]| match row.better {
                Better::Higher => shift,
                _ => -shift,
            });
            if gain > most.map_or(0.0, |it| it.0) {
                most = Some((gain, at));
            }
        } else if let Some(need) = need(field, row, (said, error.widening))
            && !needs.contains(&need)
        {
            needs.push(need);
        }
    }
    sentences.extend(needs);
    sentences.extend(ask_the_machine(field, &hidden, most.map(|it| it.1)));
    sentences
}

/// Whether a difference in the simulation is smaller than its error.
fn is_hidden(row: &MetricRow, said: &Answered, widening: f64) -> bool {
    let (Ok(judged), Some([shift, ..])) = (&row.result, said.shift) else {
        return false;
    };
    shift.abs() <= widening.max(judged.effect.margin)
}

/// Who tells what no simulation does: by goal, by which factor its ratio may be wrong. `at` is the
/// candidate to begin with.
fn ask_the_machine(
    field: &Field,
    hidden: &BTreeMap<usize, f64>,
    at: Option<usize>,
) -> Option<String> {
    if hidden.is_empty() {
        return None;
    }
    let goals: Vec<String> = hidden
        .iter()
        .map(|(goal, factor)| format!("{} (x {factor:.2})", field.goals[*goal]))
        .collect();
    // A scheduler's own program is no policy that a word names.
    let call = at.map(|at| field.candidates[at].call.as_str());
    let name = call.filter(|it| !it.starts_with('-')).unwrap_or("NAME");
    let how = match field.plan() {
        Some(_) => format!("`sudo runslice bench {name} -- COMMAND`"),
        None => format!("`sudo runslice play LOAD --policy {name}`"),
    };
    Some(format!(
        "No simulation tells candidates apart that differ by less than its error: {}. {how} asks \
         the machine itself.",
        listed(&goals)
    ))
}

/// What would decide one comparison.
fn need(field: &Field, row: &MetricRow, (said, widening): (&Answered, f64)) -> Option<String> {
    let goal = &row.metric;
    let judged = match &row.result {
        Ok(judged) => judged,
        Err(Refusal::NoSpread { .. }) => {
            return Some(
                "Runs that are all alike say nothing of chance: `runslice convert FILE -o \
                 load.toml` makes of a recording a load that varies."
                    .to_owned(),
            );
        }
        Err(Refusal::TooFew { .. }) if field.plan().is_some() => return None,
        Err(refusal) => return Some(format!("{goal}: {}.", refusal.in_full())),
    };
    let [shift, ..] = said.shift?;
    let effect = &judged.effect;
    let half = (effect.high - effect.low) / 2.0;
    let factor = (half / (shift.abs() - widening)).powi(2);
    if !factor.is_finite() || factor > 1e4 {
        return None;
    }
    Some(match field.plan() {
        Some(plan) if plan.blocks.iter().any(Option::is_some) => {
            let more = plan.length.get() as f64 * (factor - 1.0).max(0.1);
            format!(
                "Record for {} more to decide {} at {goal}: half of its interval is a factor of \
                 {:.2}, and it must be less than {:.2}.",
                rounded(Nanos::new(more as u64)),
                row.arm,
                half.exp(),
                (shift.abs() - widening).exp(),
            )
        }
        Some(_) => format!("Record the command again to decide {} at {goal}.", row.arm),
        None => {
            let runs = (field.runs as f64 * factor).ceil() as usize;
            format!(
                "--runs {} might decide {} at {goal}.",
                runs.max(field.runs + 1),
                row.arm
            )
        }
    })
}
