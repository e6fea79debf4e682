//! The answer in eight parts, in the order in which they matter: what to do, what can break, what
//! gets worse, what is gained, what is not modelled, what would decide, how to try it, and for what
//! it holds.

use std::collections::{BTreeMap, BTreeSet};

use ask::choose::Chosen;
use ask::choose::field::Field;
use ask::choose::rank::{Ranking, Standing};
use ask::words::counted;
use model::{Advice as _, Hardware, Kernel, MachineSpec, Nanos, plain};
use stats::compare::{Answered, Better, MetricRow, RatioAnswer, Refusal};

use super::words::{UNDO, change, command, names};
use crate::report::runs::shown_value;

/// What is worse, or not told apart, that is told one by one.
const TOLD: usize = 6;

/// A change in the simulation of which the answer says why it is not counted on: a factor.
const LARGE: f64 = 1.15;

/// One part of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidPart {
    /// What it is about, as documents call it.
    pub name: &'static str,
    /// What is said.
    pub sentences: Vec<String>,
}

/// The answer, part by part.
#[must_use]
pub fn said(chosen: &Chosen) -> Vec<SaidPart> {
    let of = |name, sentences| SaidPart { name, sentences };
    vec![
        of("verdict", verdicts(chosen)),
        of("can_break", can_break(chosen)),
        of("gets_worse", gets_worse(chosen)),
        of("gain", gain(chosen)),
        of("not_modelled", not_modelled(chosen)),
        of("would_decide", would_decide(chosen)),
        of("try", trying(chosen)),
        of("holds_for", vec![holds_for(&chosen.field)]),
    ]
}

/// Stay or change, and whether that holds where the hardware is uncertain.
fn verdicts(chosen: &Chosen) -> Vec<String> {
    let everywhere = chosen
        .said_of_spread()
        .filter(|_| chosen.holds_everywhere());
    std::iter::once(verdict(chosen)).chain(everywhere).collect()
}

/// Stay or change, in one sentence.
fn verdict(chosen: &Chosen) -> String {
    let Chosen { field, ranking, .. } = chosen;
    let (base, load) = (field.name(0), plain::shown(&field.load));
    if let Some(lacks) = too_short(field) {
        return format!("{load} is too short for an answer: record for {lacks} more.");
    }
    if let Some(undecided) = chosen
        .said_of_spread()
        .filter(|_| !chosen.holds_everywhere())
    {
        return undecided;
    }
    let first = ranking.order[0];
    let name = field.name(first);
    match ranking.standings[first] {
        Standing::Better => {
            let ties = match ranking.ties.as_slice() {
                [] => String::new(),
                ties => format!("; {} cannot be told from it", names(field, ties)),
            };
            let kind = strength(&ranking.said[first]);
            let goals = at_goals(field, &ranking.said[first], RatioAnswer::Better);
            format!(
                "Change to {name} for {load}: it is {kind} better than {base} at {goals}{ties}."
            )
        }
        Standing::BetterForSome => {
            let said = &ranking.said[first];
            let open = said.iter().zip(&field.goals);
            let open = open.filter(|(it, _)| it.answer != RatioAnswer::Better && !it.is_not_worse);
            let open: Vec<String> = open.map(|(_, goal)| goal.to_string()).collect();
            format!(
                "Stay with {base} for {load}: {name} is {} better at {}; nothing can be said about \
                 {}.",
                strength(said),
                at_goals(field, said, RatioAnswer::Better),
                open.join(", "),
            )
        }
        _ => stay(field, ranking),
    }
}

/// Why nobody is preferred.
fn stay(field: &Field, ranking: &Ranking) -> String {
    let (base, load) = (field.name(0), plain::shown(&field.load));
    let having = |wanted: &[Standing]| -> Vec<usize> {
        let all = 1..field.sets.len();
        all.filter(|at| wanted.contains(&ranking.standings[*at]))
            .collect()
    };
    let groups = [
        (having(&[Standing::CannotTell]), "cannot be told from it"),
        (
            having(&[Standing::NotMeasured]),
            "cannot be judged: not measured on such a machine",
        ),
        (
            having(&[Standing::Mixed]),
            "better at one goal and worse at another",
        ),
        (having(&[Standing::Alike]), "alike"),
        (having(&[Standing::Worse]), "worse"),
        (having(&[Standing::Failed]), "failing under it"),
    ];
    let parts = groups.into_iter().filter(|(its, _)| !its.is_empty());
    let parts: Vec<String> = parts
        .map(|(its, words)| {
            let verb = match its.len() {
                _ if words.starts_with("cannot") => "",
                1 => "is ",
                _ => "are ",
            };
            format!("{} {verb}{words}", names(field, &its))
        })
        .collect();
    format!("Stay with {base} for {load}: {}.", parts.join("; "))
}

/// Whether something is shown, or only likely: the weakest of what is said to be better.
fn strength(said: &[Answered]) -> &'static str {
    let mut better = said.iter().filter(|it| it.answer == RatioAnswer::Better);
    if better.all(|it| it.is_shown) {
        "shown"
    } else {
        "likely"
    }
}

fn at_goals(field: &Field, said: &[Answered], wanted: RatioAnswer) -> String {
    let its = field
        .goals
        .iter()
        .zip(said)
        .filter(|(_, it)| it.answer == wanted);
    its.map(|(goal, _)| goal.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// What was ejected or starved a task here.
fn can_break(chosen: &Chosen) -> Vec<String> {
    let (field, ranking) = (&chosen.field, &chosen.ranking);
    let mut sentences = Vec::new();
    for (at, why) in field.failures.iter().enumerate() {
        if let Some(why) = why {
            sentences.push(format!("{} failed: {why}.", field.name(at)));
        }
    }
    if let Some(at) = ranking.likeliest() {
        let name = field.name(at);
        sentences.push(format!(
            "{name} was not ejected and starved no task in {} of this load on one machine, which \
             shows less than 3 such ends in {}; `runslice hunt {}` looks for others.",
            counted(field.runs as u64, "run"),
            counted(field.runs as u64, "run"),
            field.candidates[at].call,
        ));
    }
    sentences
}

/// What gets worse, for whom and how much.
fn gets_worse(chosen: &Chosen) -> Vec<String> {
    let (field, ranking) = (&chosen.field, &chosen.ranking);
    let Some(at) = ranking.likeliest() else {
        return Vec::new();
    };
    let (name, base) = (field.name(at), field.name(0));
    let figures = counted(ranking.looked_at as u64, "other figure");
    if ranking.worse.is_empty() {
        return vec![format!(
            "Of {figures} (the load's own goals, what it counts, the p99 delay of its groups) none \
             is shown worse under {name} than under {base}; that shows of none that it is not."
        )];
    }
    let told = ranking
        .worse
        .iter()
        .take(TOLD)
        .filter_map(|(row, said)| Some(format!("{} {}", row.metric, instead(row, said)?)));
    let told: Vec<String> = told.collect();
    let more = match ranking.worse.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!("; and {more} more, which --format json has"),
    };
    vec![format!(
        "Worse under {name} than under {base}, of {figures}: {}{more}.",
        told.join("; ")
    )]
}

/// What is gained, with its interval; or why larger gains in the simulation are none.
fn gain(chosen: &Chosen) -> Vec<String> {
    let (field, ranking) = (&chosen.field, &chosen.ranking);
    let Some(at) = ranking.likeliest() else {
        return open_gains(chosen);
    };
    let goals = ranking.said[at].iter().enumerate();
    let gains = goals.filter(|(_, it)| it.answer == RatioAnswer::Better);
    let gains = gains.filter_map(|(goal, said)| {
        let row = ranking.row(field, at, goal)?;
        let goal = &field.goals[goal];
        Some(format!(
            "Gain under {}: {goal} {}.",
            field.name(at),
            instead(row, said)?
        ))
    });
    gains.collect()
}

/// The larger gains in the simulation that may be its error, with what their intervals were before
/// they were widened.
fn open_gains(chosen: &Chosen) -> Vec<String> {
    let (field, ranking) = (&chosen.field, &chosen.ranking);
    let mut found = Vec::new();
    for &at in &ranking.order {
        for (goal, said) in ranking.said[at].iter().enumerate() {
            let row = ranking.row(field, at, goal);
            let judged = row.and_then(|row| Some((row, row.result.as_ref().ok()?)));
            let (Some((row, judged)), Some([shift, low, high])) = (judged, said.shift) else {
                continue;
            };
            let effect = &judged.effect;
            let gain = match row.better {
                Better::Higher => shift,
                _ => -shift,
            };
            if said.answer != RatioAnswer::CannotTell || gain < LARGE.ln() {
                continue;
            }
            let of = |it| change(effect, row.measure, it);
            found.push(format!(
                "{} comes to {} of {} at {} in the simulation (interval {} to {}); with the error \
                 of a ratio, a factor of {:.2}, the interval is {} to {} and tells nothing.",
                field.name(at),
                of(shift),
                field.name(0),
                field.goals[goal],
                of(effect.low),
                of(effect.high),
                ranking.errors[at][goal].factor(),
                of(low),
                of(high),
            ));
        }
    }
    found.truncate(TOLD);
    found
}

/// A value instead of the baseline's, with the change and its widened interval.
fn instead(row: &MetricRow, said: &Answered) -> Option<String> {
    let effect = &row.result.as_ref().ok()?.effect;
    let [shift, low, high] = said.shift?.map(|it| change(effect, row.measure, it));
    Some(format!(
        "{} ({shift}, interval {low} to {high}) instead of {}",
        shown_value(row.measure, effect.other),
        shown_value(row.measure, effect.base),
    ))
}

/// How far ratios may be off, and what the machine leaves out.
fn not_modelled(chosen: &Chosen) -> Vec<String> {
    let (field, ranking) = (&chosen.field, &chosen.ranking);
    let mut sentences = widenings(chosen);
    if ranking
        .errors
        .iter()
        .skip(1)
        .flatten()
        .any(|it| !it.is_shown)
    {
        sentences.push(
            "Nothing is more than likely: fewer than 19 loads stand behind this error, or it is \
             not of these policies on such a machine."
                .to_owned(),
        );
    }
    let machine = &field.machine;
    let profile = machine.profile.name();
    let costs = match profile {
        "ideal" => "switches and policies cost nothing (--profile); ",
        _ => "",
    };
    sentences.push(format!(
        "Not modelled: {costs}{}all that docs/fidelity.md lists.",
        left_out_of_cpus(machine)
    ));
    sentences
}

/// What of its CPUs a machine leaves out that may matter.
fn left_out_of_cpus(machine: &MachineSpec) -> String {
    let hardware = machine.hardware.as_deref();
    let mut left_out = Vec::new();
    let has_threads = machine.places().cores.iter().any(|core| core.len() > 1);
    if hardware.is_none_or(|it| it.smt.is_none() && has_threads) {
        left_out.push("hardware threads that share a core, ");
    }
    let has_frequencies = |it: &Hardware| it.classes.iter().all(|class| class.opps.len() > 1);
    left_out.push(if hardware.is_some_and(has_frequencies) {
        "heat and limits of power, "
    } else {
        "clock speeds, "
    });
    left_out.concat()
}

/// Which interval is widened by what.
fn widenings(chosen: &Chosen) -> Vec<String> {
    let (field, ranking) = (&chosen.field, &chosen.ranking);
    let mut by_error: BTreeMap<String, BTreeSet<(usize, usize)>> = BTreeMap::new();
    for (at, errors) in ranking.errors.iter().enumerate().skip(1) {
        for (goal, error) in errors.iter().enumerate() {
            let by = format!("{:.2} ({})", error.factor(), error.source);
            by_error.entry(by).or_default().insert((at, goal));
        }
    }
    let is_one = by_error.len() == 1;
    let told = by_error.into_iter().map(|(by, of)| {
        let distinct = |all: BTreeSet<String>| all.into_iter().collect::<Vec<_>>();
        let names = distinct(of.iter().map(|it| field.name(it.0).to_owned()).collect());
        let goals = distinct(of.iter().map(|it| field.goals[it.1].to_string()).collect());
        let whose = if is_one {
            String::new()
        } else {
            format!(" of {} at {}", names.join(", "), goals.join(", "))
        };
        format!(
            "Intervals{whose} are widened by a factor of {by}, which is the error of a simulated \
             ratio."
        )
    });
    told.collect()
}

/// By how much the recording is too short for any goal.
fn too_short(field: &Field) -> Option<Nanos> {
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
fn would_decide(chosen: &Chosen) -> Vec<String> {
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
    for (at, goal, said) in open {
        let error = &ranking.errors[at][goal];
        if let Some(lacks) = field.lacks(at, goal) {
            needs.push(format!(
                "Record for {} more to compare {} at {}: its blocks are so long.",
                rounded(lacks),
                field.name(at),
                field.goals[goal],
            ));
        } else if let Some(row) = ranking.row(field, at, goal)
            && let Some(need) = need(field, row, (said, error.widening))
            && !needs.contains(&need)
        {
            needs.push(need);
        }
    }
    sentences.extend(needs);
    sentences
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
    if shift.abs() <= widening.max(effect.margin) {
        return Some(format!(
            "No simulation tells candidates apart whose {goal} differs by less than its error: \
             `sudo runslice bench NAME -- COMMAND` asks the machine itself."
        ));
    }
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

/// How to try it, and how to go back.
fn trying(chosen: &Chosen) -> Vec<String> {
    chosen.ranking.likeliest().map_or_else(Vec::new, |at| {
        vec![
            format!("Try it for ten minutes: {}", command(chosen, at)),
            format!("Go back at once: {UNDO}"),
        ]
    })
}

/// For what exactly it holds.
fn holds_for(field: &Field) -> String {
    let machine = &field.machine;
    let what = match field.plan() {
        Some(plan) => format!(
            "{} of {} of recording, the first {} left out",
            counted(field.runs as u64, "rerun"),
            plan.length,
            plan.warm_up
        ),
        None => counted(field.runs as u64, "run"),
    };
    format!(
        "This holds for {}, HZ {}, Linux {}, profile {}, runslice {}; each candidate made {what}.",
        counted(machine.cpus.into(), "CPU"),
        machine.hz,
        Kernel::name(machine.kernel),
        machine.profile.name(),
        crate::VERSION,
    )
}
