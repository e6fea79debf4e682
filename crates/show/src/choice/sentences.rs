//! The answer in eight parts, in the order in which they matter: what to do, what can break, what
//! gets worse, what is gained, what is not modelled, what would decide, how to try it, and for what
//! it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ask::choose::Chosen;
use ask::choose::errors::ErrorTable;
use ask::choose::field::Field;
use ask::choose::rank::{Ranking, Standing};
use ask::outcome::is_no_baseline;
use ask::words::{counted, listed};
use model::{Hardware, Kernel, MachineSpec, Profile, plain};
use stats::compare::{Answered, Better, MetricRow, RatioAnswer, Scale, least_of};

use super::decide::{too_short, would_decide};
use super::words::{UNDO, change, command, names};
use crate::report::runs::shown_value;

/// What is worse, or not told apart, that is told one by one.
const TOLD: usize = 6;

/// A change in the simulation of which the answer says why it is not counted on: a factor.
const LARGE: f64 = 1.15;

/// Switches that would take more than this part of the CPU time are much.
const MUCH: f64 = 0.01;
/// Picoseconds of a second.
const PICOSECONDS: f64 = 1e12;

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
        of("holds_for", holds_for(&chosen.field)),
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
            let kind = strength(&ranking.said[first], RatioAnswer::Better);
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
                strength(said, RatioAnswer::Better),
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
    let open = |of: &[Standing], words: &str| (having(of), words.to_owned());
    let strong = |of: Standing, answer: RatioAnswer, words: &str| {
        let its = having(&[of]);
        let said = its.iter().flat_map(|at| &ranking.said[*at]);
        let strength = strength(said, answer);
        (its, format!("{strength} {words}"))
    };
    let groups = [
        open(&[Standing::CannotTell], "cannot be told from it"),
        open(
            &[Standing::NotMeasured],
            "cannot be judged: not measured on such a machine",
        ),
        strong(
            Standing::Mixed,
            RatioAnswer::Worse,
            "worse at one goal and better at another",
        ),
        strong(Standing::Alike, RatioAnswer::Alike, "alike"),
        strong(Standing::Worse, RatioAnswer::Worse, "worse"),
        open(&[Standing::Failed], "failing under it"),
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

/// Whether an answer is shown, or only likely: the weakest of all that are so.
fn strength<'a>(said: impl IntoIterator<Item = &'a Answered>, answer: RatioAnswer) -> &'static str {
    let mut such = said.into_iter().filter(|it| it.answer == answer);
    if such.all(|it| it.is_shown) {
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
        let program = field.candidates[at].found.policy.program.as_ref();
        let file = program.and_then(|it| Path::new(it.command.first()?).file_name());
        sentences.extend(file.and_then(|it| known_faults(&it.to_string_lossy())));
    }
    sentences
}

/// The published faults of the scheduler whose program is called so, or so with its version behind
/// a dash.
fn known_faults(file: &str) -> Option<String> {
    let scheduler = file.split('-').next()?;
    let cases = ask::cases::all().ok()?.into_iter();
    let its: Vec<String> = cases
        .filter(|it| it.scheduler == scheduler)
        .map(|it| format!("{} ({})", it.name, it.bad.join(", ")))
        .collect();
    if its.is_empty() {
        return None;
    }
    let more = match its.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "Published faults of {scheduler}, each with a version in which it was seen: {}{more}; \
         `runslice cases` shows them again.",
        its.into_iter().take(TOLD).collect::<Vec<_>>().join(", ")
    ))
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

/// The larger gains in the simulation that may be its error, goal by goal, with what their
/// intervals were before they were widened.
fn open_gains(chosen: &Chosen) -> Vec<String> {
    let (field, ranking) = (&chosen.field, &chosen.ranking);
    let mut found = Vec::new();
    for goal in 0..field.goals.len() {
        let mut gains: Vec<(f64, String)> = Vec::new();
        let mut factor: f64 = 1.0;
        for &at in &ranking.order {
            let said = ranking.said[at].get(goal);
            let row = ranking.row(field, at, goal);
            let judged = row.and_then(|row| Some((row, row.result.as_ref().ok()?)));
            let (Some((row, judged)), Some(said)) = (judged, said) else {
                continue;
            };
            let effect = &judged.effect;
            let gain = match row.better {
                Better::Higher => effect.shift,
                _ => -effect.shift,
            };
            if said.answer != RatioAnswer::CannotTell || gain < LARGE.ln() {
                continue;
            }
            let of = |it| change(effect, row.measure, it);
            let interval = if effect.low.is_finite() && effect.high.is_finite() {
                format!("interval {} to {}", of(effect.low), of(effect.high))
            } else {
                "too few runs for an interval".to_owned()
            };
            let (name, shift) = (field.name(at), of(effect.shift));
            gains.push((gain, format!("{name} at {shift} ({interval})")));
            factor = factor.max(ranking.errors[at][goal].factor());
        }
        if gains.is_empty() {
            continue;
        }
        gains.sort_by(|a, b| b.0.total_cmp(&a.0));
        let more = match gains.len().saturating_sub(TOLD) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let told = gains.into_iter().take(TOLD).map(|it| it.1);
        found.push(format!(
            "At {} the simulation has {}{more}, of {}; that tells nothing, since a simulated ratio \
             may be wrong by a factor of {factor:.2}.",
            field.goals[goal],
            told.collect::<Vec<_>>().join(", "),
            field.name(0),
        ));
    }
    found
}

/// A value instead of the baseline's, with the change and its widened interval.
fn instead(row: &MetricRow, said: &Answered) -> Option<String> {
    let effect = &row.result.as_ref().ok()?.effect;
    let [shift, low, high] = said.shift?.map(|it| change(effect, row.measure, it));
    let least = least_of(row.measure);
    let value = |it: f64| {
        let shown = shown_value(row.measure, it);
        if effect.scale == Scale::Log && it < least {
            format!("{shown}, counted as {}", shown_value(row.measure, least))
        } else {
            shown
        }
    };
    Some(format!(
        "{} ({shift}, interval {low} to {high}) instead of {}",
        value(effect.other),
        value(effect.base),
    ))
}

/// How far ratios may be off, and what the machine leaves out.
fn not_modelled(chosen: &Chosen) -> Vec<String> {
    let field = &chosen.field;
    // Nothing was compared.
    if too_short(field).is_some() {
        return Vec::new();
    }
    let mut sentences = widenings(chosen);
    sentences.extend(why_likely(chosen));
    let machine = &field.machine;
    let profile = machine.profile.name();
    let costs = match profile {
        "ideal" => costs(field),
        _ => String::new(),
    };
    sentences.push(format!(
        "Not modelled: {costs}{}all that docs/fidelity.md lists.",
        left_out_of_cpus(machine)
    ));
    let names = (0..field.sets.len()).map(|at| field.name(at));
    let outlines = names.filter(|name| is_no_baseline(name, machine));
    sentences.extend(outlines.map(|name| {
        format!("{name} knows no capacities, unlike Linux's own: no baseline where CPUs differ.")
    }));
    sentences
}

/// What costs nothing under `ideal`, with how much of it there is if it is much.
fn costs(field: &Field) -> String {
    let one = Profile::DefaultV0.costs().map_or(0, |it| it.switch);
    let share = field.switches * one as f64 / PICOSECONDS;
    if share < MUCH {
        return "switches and policies cost nothing (--profile); ".to_owned();
    }
    format!(
        "switches and policies cost nothing, {:.0} switches in each second of a CPU, of which \
         --profile default-v0 takes {:.0} % for them alone; ",
        field.switches,
        share * 100.0,
    )
}

/// Why nothing is more than likely; `None` where something is shown.
fn why_likely(chosen: &Chosen) -> Option<String> {
    let (field, ranking) = (&chosen.field, &chosen.ranking);
    let errors = ranking.errors.iter().skip(1);
    if errors
        .clone()
        .flatten()
        .all(|it| it.is_shown || !it.is_measured)
    {
        return None;
    }
    let mut why = Vec::new();
    if ranking.is_stated {
        why.push("the error is stated, and not measured".to_owned());
    } else {
        let table = ErrorTable::own();
        let others = table.machines_apart(&field.machine);
        why.extend(others.map(|others| format!("plays had {others}")));
        let names = (1..field.sets.len()).map(|at| field.name(at));
        let names: Vec<&str> = names.filter(|name| !table.has_policy(name)).collect();
        if !names.is_empty() {
            why.push(format!("no play was made of {}", listed(&names)));
        }
    }
    if why.is_empty() {
        why.push("fewer than 19 loads stand behind this error".to_owned());
    }
    Some(format!("Nothing is more than likely: {}.", why.join("; ")))
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
fn holds_for(field: &Field) -> Vec<String> {
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
    // Of a recording that is too short for every goal only the baseline is rerun.
    let who = too_short(field).map_or("each candidate", |_| field.name(0));
    // Capacities alone have no name.
    let named = machine.hardware.as_deref().filter(|it| !it.name.is_empty());
    let hardware = named.map_or_else(String::new, |it| format!("{} with ", it.name));
    let holds = format!(
        "This holds for {hardware}{}, HZ {}, Linux {}, profile {}, runslice {}; {who} made {what}.",
        counted(machine.cpus.into(), "CPU"),
        machine.hz,
        Kernel::name(machine.kernel),
        machine.profile.name(),
        crate::VERSION,
    );
    let mut sentences = vec![holds];
    // A change need not be the ratio of the values beside it, nor on the same side.
    if field.plan().is_none() && field.runs > 1 {
        let means = "Values are means of the runs, changes ratios of geometric means, which single \
                     runs move less.";
        sentences.push(means.to_owned());
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_a_published_scheduler_are_known_by_the_name_of_its_program() {
        for file in ["scx_lavd", "scx_lavd-1.1.1"] {
            let said = known_faults(file).unwrap();
            assert!(
                said.starts_with("Published faults of scx_lavd, each"),
                "{said}"
            );
            assert!(said.contains("lavd-capacity (1.0.12)"), "{said}");
        }
        assert_eq!(known_faults("scx_lav"), None);
        assert_eq!(known_faults("mlfq"), None);
    }
}
