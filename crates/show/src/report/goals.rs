//! The answer first: which policy is best at what the load is for, and how sure that is.
//!
//! Goals are what `compare` tests: deadlines, spans, the time until the work is done. Counters are
//! work done, too, though only the load knows whether much of it is good. A load that states
//! nothing of the kind is judged by how long its tasks wait.

mod standing;

use std::io::{self, Write};
use std::iter;

use ask::outcome::Results;
use model::{SubSummary, Summary};
use stats::compare::{
    Better, Choice, Extent, Measure, MetricRow, Question, Series, Set, Settings, Verdict, compare,
};

use ask::stated::{ALL, StatedGoal as Goal, goals, sets};
use ask::words;

use super::runs::shown_value;
use crate::Tone;
use crate::figure::Shown;
use crate::table::{Cell, Table, to_the_left, wrapped, write_paragraph};
use standing::{best_of, short};

/// Policies that are named one by one.
const NAMED: usize = 2;
/// The least room that a sentence about a goal gets, however narrow the terminal is.
const SENTENCE: usize = 24;

/// What reruns of a recording say of policies.
const RERUN: &str = "One rerun each shows no policy better or worse: `runslice choose --from FILE` \
                     judges them.";

/// A goal, and how each policy that can be judged did at it.
struct Found<'a> {
    goal: &'a Goal,
    measure: Measure,
    /// By policy; nothing of one that was ejected.
    values: Vec<Option<f64>>,
    /// The policies under which a queue still grew, so that the figure grows with the duration.
    grown: Vec<usize>,
}

impl Found<'_> {
    /// Whether a policy can be better at it than another.
    fn is_ranked(&self) -> bool {
        self.goal.better != Better::Neither && self.grown.is_empty()
    }

    /// A value as it is shown.
    fn text(&self, value: Option<f64>) -> Option<String> {
        value.map(|it| shown_value(self.measure, it))
    }
}

/// How the policies of `sets` did at each goal: the medians of their runs.
fn find<'a>(goals: &'a [Goal], sets: &[Set]) -> Vec<Found<'a>> {
    let found = goals.iter().filter_map(|goal| {
        let series = || sets.iter().map(|set| set.find(&goal.shown));
        let measure = series().flatten().next()?.measure;
        let median = |it: Option<&Series>| Some(Extent::of(&it?.values)?.median);
        Some(Found {
            goal,
            measure,
            values: series().map(median).collect(),
            grown: (0..sets.len())
                .filter(|at| sets[*at].grows(&goal.tested))
                .collect(),
        })
    });
    found.collect()
}

/// What runs say about what their load is for.
#[derive(Debug)]
pub struct Answer {
    /// The runs by policy.
    pub sets: Vec<Set>,
    /// The policies that were ejected or starved a task, which are not ranked: the first thing to
    /// be said.
    pub ejected: Vec<String>,
    /// For each goal who is best, and who is worst; empty with one policy.
    pub said: Vec<(String, String)>,
    /// All of it in a sentence or two that need no other.
    pub short: String,
    /// How sure that is, and what would say more.
    pub advice: String,
    /// The goals: whose, and what.
    pub heads: Vec<(String, String)>,
    /// How each policy did at them.
    pub rows: Vec<(String, Vec<(String, Tone)>)>,
    /// The metrics of the goals.
    pub shown: Vec<Shown>,
}

/// The answer of these runs, of which there are many of each policy or one.
pub fn answer(results: &Results, is_many: bool) -> Answer {
    let sets = sets(results);
    let mut goals = goals(results, &sets);
    // One rerun of a recording shows nobody better: its figures are told without a good end, and
    // the judge of `choose` is the only one.
    if results.is_rerun && sets.len() > 1 {
        goals.iter_mut().for_each(|it| it.better = Better::Neither);
    }
    let of_all = find(&goals, &sets);
    let ejected = ejected(results, &sets);
    // Of one policy alone the runs that count are told, whatever became of the others.
    let is_sound = |it: &&Set| is_ranked(it) || sets.len() == 1 && it.runs > 0;
    let sound: Vec<Set> = sets.iter().filter(is_sound).cloned().collect();
    let found = find(&goals, &sound);
    let (mut said, places) = if is_many {
        of_many(&found, &sound)
    } else {
        of_one(&found, &sound)
    };
    spread_out(&mut said, results);
    let runs = sets.iter().map(|set| set.runs).max().unwrap_or(0);
    let advice = match (is_many, sets.len()) {
        (true, _) if runs > 1 && is_same_each_time(&of_all, &sets) => format!(
            "The {runs} runs of each are the same: nothing in this load is drawn. More runs say \
             no more; `choose --from` says what can be said of a recording."
        ),
        (true, _) => format!("Medians of {runs} runs each."),
        (false, 0 | 1) => "This is one run.".to_owned(),
        (false, _) if results.is_rerun => RERUN.to_owned(),
        _ => "One run each: --runs 10 tells which differences hold for other seeds.".to_owned(),
    };
    let shown = of_all.iter().map(|it| Shown {
        metric: it.goal.shown.clone(),
        title: it.goal.title(),
    });
    let rows = sets.iter().enumerate();
    let rows = rows.map(|(at, set)| (set.arm.clone(), cells(&of_all, &sets, at)));
    let in_short = match sound.as_slice() {
        [] => "No policy came to a result.".to_owned(),
        [_, _, ..] if results.is_rerun => RERUN.to_owned(),
        _ => undecided(results).unwrap_or_else(|| short(&found, &sound, &places)),
    };
    Answer {
        said: if sound.len() > 1 { said } else { Vec::new() },
        short: ejected
            .iter()
            .cloned()
            .chain([in_short])
            .collect::<Vec<_>>()
            .join(" "),
        ejected,
        advice,
        heads: of_all
            .iter()
            .map(|it| (it.goal.of.clone(), it.goal.what.clone()))
            .collect(),
        rows: rows.collect(),
        shown: shown.collect(),
        sets,
    }
}

/// Says of each goal who is best at every end of what is uncertain about the hardware, if that was
/// asked. A winner that does not win at all of them is none.
fn spread_out(said: &mut Vec<(String, String)>, results: &Results) {
    for spread in &results.spread {
        match said.iter_mut().find(|(goal, _)| *goal == spread.goal) {
            Some((_, sentence)) if spread.holds() => {
                *sentence = format!("{sentence}; {}", spread.said());
            }
            Some((_, sentence)) => *sentence = spread.said(),
            None => said.push((spread.goal.clone(), spread.said())),
        }
    }
}

/// That no policy is best, if another one is at some end of what is uncertain about the hardware.
fn undecided(results: &Results) -> Option<String> {
    let open = results.spread.iter().filter(|it| !it.holds());
    let goals: Vec<&str> = open.map(|it| it.goal.as_str()).collect();
    (!goals.is_empty()).then(|| {
        format!(
            "Undecided, because of what is uncertain about the hardware: {}.",
            goals.join(", ")
        )
    })
}

/// Whether a policy is one of those that do best or worst.
fn is_ranked(set: &Set) -> bool {
    set.void == 0 && set.starved == 0
}

/// A sentence for each policy that was ejected, or starved a task to the end. What it did tells of
/// no other run, and leaves out the longest waits, so that it is neither best nor worst.
fn ejected(results: &Results, sets: &[Set]) -> Vec<String> {
    let said = sets.iter().filter(|set| !is_ranked(set)).map(|set| {
        let rank = if sets.len() > 1 {
            "; it is not ranked"
        } else {
            ""
        };
        if set.void == 0 {
            let mut its = results.outcomes.iter().filter(|it| it.policy == set.arm);
            let starved = its.find_map(|it| {
                let all = &it.summary.starved;
                Some((all.len(), all.iter().map(|task| task.waited).max()?))
            });
            let (tasks, longest) = starved.unwrap_or_default();
            let tasks = words::counted(tasks as u64, "task");
            let when = match set.runs {
                1 => String::new(),
                runs => format!(" in {} of {runs} runs, first", set.starved),
            };
            return format!(
                "{} starved{when} {tasks}, for {longest} to the end{rank}.",
                set.arm
            );
        }
        let its = results.outcomes.iter().filter(|it| it.policy == set.arm);
        let fallen = its.map(|it| &it.summary).find(|it| it.error().is_some());
        let exit = fallen.and_then(Summary::error);
        let when = match (exit, set.void + set.runs) {
            (Some(exit), 1) => format!(" at {} s: {}", exit.time, exit.kind.reason()),
            (Some(exit), all) => format!(
                " in {} of {all} runs, first at {} s: {}",
                set.void,
                exit.time,
                exit.kind.reason()
            ),
            (None, _) => String::new(),
        };
        match fallen.and_then(fallen_below) {
            Some(below) => below_ejected(below, (&set.arm, &when), sets.len() > 1),
            None => format!("{} was ejected{when}{rank}.", set.arm),
        }
    });
    said.collect()
}

/// The scheduler below the root that was ejected, while the root was not.
fn fallen_below(summary: &Summary) -> Option<&SubSummary> {
    let goes_on = !summary.exit.kind.is_error();
    let mut all = summary.subs.iter();
    all.find(|sub| goes_on && sub.exit.kind.is_error())
}

/// That only the scheduler `below` that of `arm` was ejected.
fn below_ejected(below: &SubSummary, (arm, when): (&str, &str), is_one_of_many: bool) -> String {
    let (policy, cgroup) = (&below.policy, &below.cgroup);
    let rank = if is_one_of_many {
        format!("; {arm} is not ranked")
    } else {
        String::new()
    };
    format!("{policy} below {arm}, at {cgroup}, was ejected{when}{rank}.")
}

/// Whether each policy did the same at every goal in all of its runs.
fn is_same_each_time(found: &[Found<'_>], sets: &[Set]) -> bool {
    let is_same = |it: &Series| it.values.iter().all(|value| *value == it.values[0]);
    let at = |goal: &Goal| {
        sets.iter()
            .filter_map(|set| set.find(&goal.shown))
            .all(is_same)
    };
    !found.is_empty() && found.iter().all(|it| at(it.goal))
}

/// The policies that are first at a goal, and those that are behind for sure.
#[derive(Debug)]
struct Places {
    firsts: Vec<usize>,
    behind: Vec<usize>,
}

/// A sentence a goal with its title, and for each goal who is where.
type Said = (Vec<(String, String)>, Vec<Places>);

fn of_one(found: &[Found<'_>], sets: &[Set]) -> Said {
    let places = found.iter().map(|it| {
        let best = it.text(ends(it).0);
        let has_value = |at: &usize| it.values[*at].is_some();
        let is_first = |at: &usize| it.text(it.values[*at]) == best;
        let (firsts, behind) = (0..sets.len()).filter(has_value).partition(is_first);
        Places { firsts, behind }
    });
    let places: Vec<Places> = places.collect();
    let best = best_of(found, sets, &places);
    let said = found
        .iter()
        .map(|it| (it.goal.title(), sentence(it, sets, &best)));
    (said.collect(), places)
}

fn of_many(found: &[Found<'_>], sets: &[Set]) -> Said {
    let leaders: Vec<_> = found.iter().map(|it| leader(it.goal, sets)).collect();
    let rows = tested(found, &leaders);
    let places = found.iter().zip(&leaders).map(|(it, leader)| {
        let best = leader.as_ref().map(|(best, _)| best.arm.as_str());
        let verdict = |at: usize| {
            let arm = &sets[at].arm;
            let row = rows
                .iter()
                .find(|row| row.metric == it.goal.tested && row.arm == *arm);
            row.and_then(|row| row.result.as_ref().ok()?.verdict)
        };
        let is_best = |at: usize| best == Some(sets[at].arm.as_str());
        let is_first = |at: &usize| is_best(*at) || verdict(*at) == Some(Verdict::NoDifference);
        let is_behind = |at: &usize| {
            !is_best(*at) && matches!(verdict(*at), Some(Verdict::Slower | Verdict::Less))
        };
        let all = 0..sets.len();
        Places {
            firsts: all.clone().filter(is_first).collect(),
            behind: all.filter(is_behind).collect(),
        }
    });
    let places: Vec<Places> = places.collect();
    let best = best_of(found, sets, &places);
    let told = found.iter().zip(&leaders).map(|(it, leader)| {
        let said = decided(it, leader.as_ref(), (sets, &rows, &best));
        (it.goal.title(), said)
    });
    (told.collect(), places)
}

/// How the policy with this number did at a goal.
fn shown(it: &Found<'_>, at: usize) -> String {
    let value = it.values[at];
    value.map_or_else(
        || "no value".to_owned(),
        |value| shown_value(it.measure, value),
    )
}

/// Writes the answer: a sentence a goal, a line a policy.
///
/// # Errors
/// When `to` does not take it.
pub fn write(answer: &Answer, width: Option<usize>, to: &mut dyn Write) -> io::Result<()> {
    // Without goals the answer in short stands there, which begins with them.
    let room = width.unwrap_or(usize::MAX);
    let ejected = answer.ejected.iter().filter(|_| !answer.heads.is_empty());
    for line in ejected.clone() {
        write_paragraph(line, room, to)?;
    }
    if ejected.count() > 0 {
        writeln!(to)?;
    }
    say(&answer.said, width, to)?;
    let lost = table(answer, width, to)?;
    let advice = match lost {
        0 => answer.advice.clone(),
        1 => format!("{} --wide shows one goal more.", answer.advice),
        lost => format!("{} --wide shows {lost} goals more.", answer.advice),
    };
    write_paragraph(&advice, room, to)
}

/// Writes the answer in short.
///
/// # Errors
/// When `to` does not take it.
pub fn in_short(answer: &Answer, width: Option<usize>, to: &mut dyn Write) -> io::Result<()> {
    let text = format!("In short: {}", answer.short);
    write_paragraph(&text, width.unwrap_or(usize::MAX), to)
}

/// The same behind tables: of a long output a person sees the end. Of one policy there is nothing
/// to say.
///
/// # Errors
/// When `to` does not take it.
pub fn again(answer: &Answer, width: Option<usize>, to: &mut dyn Write) -> io::Result<()> {
    if answer.sets.len() < 2 {
        return Ok(());
    }
    writeln!(to)?;
    in_short(answer, width, to)
}

/// How a policy did at each goal, the best and the worst in their tones.
fn cells(found: &[Found<'_>], sets: &[Set], at: usize) -> Vec<(String, Tone)> {
    let cells = found.iter().map(|it| {
        let Some(value) = it.values[at] else {
            return ("-".to_owned(), Tone::Plain);
        };
        let text = shown_value(it.measure, value);
        let ranked = sets.iter().zip(&it.values);
        let ranked = ranked.filter(|(set, _)| is_ranked(set));
        let (best, worst) = ends_of(it.goal, ranked.filter_map(|(_, value)| *value));
        let is_end = |end: Option<f64>| it.text(end).is_some_and(|end| end == text);
        let is_ranked = it.is_ranked() && is_ranked(&sets[at]);
        let tone = match (is_end(best), is_end(worst)) {
            (true, false) if is_ranked => Tone::Good,
            (false, true) if is_ranked => Tone::Bad,
            _ => Tone::Plain,
        };
        (text, tone)
    });
    cells.collect()
}

/// Sentences below each other, with what they are about in front. What `width` has no room for
/// stands below its beginning.
fn say(sentences: &[(String, String)], width: Option<usize>, to: &mut dyn Write) -> io::Result<()> {
    let titles = sentences.iter().map(|(title, _)| title.chars().count());
    let Some(before) = titles.max() else {
        return Ok(());
    };
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(before + 2));
    for (title, sentence) in sentences {
        let mut title = title.as_str();
        for line in wrapped(sentence, room.max(SENTENCE)) {
            writeln!(to, "{}  {line}", to_the_left(title, before))?;
            title = "";
        }
    }
    writeln!(to)
}

/// Under whom the figure grows with the duration, which is all that is said of it then.
fn growing(found: &Found<'_>, sets: &[Set]) -> Option<String> {
    let names = found.grown.iter().map(|at| sets[*at].arm.as_str());
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| {
        format!(
            "no verdict: this figure grows with the duration under {}",
            listed(&names)
        )
    })
}

/// Who is best and who is worst, with their values; `first` are named before the others.
fn sentence(found: &Found<'_>, sets: &[Set], first: &[usize]) -> String {
    if let Some(grows) = growing(found, sets) {
        return grows;
    }
    let named_first = first;
    let [first, last] = match found.goal.better {
        Better::Neither => ["most", "least"],
        _ => ["best", "worst"],
    };
    let (best, worst) = ends(found);
    let shown = |value| shown_value(found.measure, value);
    let (Some(best), Some(worst)) = (best, worst) else {
        return "no policy came so far".to_owned();
    };
    if shown(best) == shown(worst) {
        return format!("all alike, {}", shown(best));
    }
    let who = |end: f64| {
        let is_here = |at: &usize| found.values[*at].is_some_and(|it| shown(it) == shown(end));
        let mut here: Vec<usize> = (0..sets.len()).filter(is_here).collect();
        here.sort_by_key(|at| !named_first.contains(at));
        let names: Vec<&str> = here.iter().map(|at| sets[*at].arm.as_str()).collect();
        listed(&names)
    };
    format!(
        "{first} {} {}, {last} {} {}",
        who(best),
        shown(best),
        who(worst),
        shown(worst)
    )
}

/// The best and the worst value. Of what is good neither way, most is named first.
fn ends(found: &Found<'_>) -> (Option<f64>, Option<f64>) {
    ends_of(found.goal, found.values.iter().flatten().copied())
}

/// The best and the worst of these values.
fn ends_of(goal: &Goal, values: impl Iterator<Item = f64>) -> (Option<f64>, Option<f64>) {
    let values: Vec<f64> = values.collect();
    let values = || values.iter().copied();
    let (least, most) = (values().reduce(f64::min), values().reduce(f64::max));
    match goal.better {
        Better::Lower => (least, most),
        Better::Higher | Better::Neither => (most, least),
    }
}

/// Names in a sentence: `a and b`, `a, b and 4 more`.
fn listed(names: &[&str]) -> String {
    match names.len() {
        ..=NAMED => words::listed(names),
        _ => format!(
            "{} and {} more",
            names[..NAMED].join(", "),
            names.len() - NAMED
        ),
    }
}

/// A line for each policy, the best and the worst of each goal in their tones; says how many goals
/// there was no room for.
fn table(answer: &Answer, width: Option<usize>, to: &mut dyn Write) -> io::Result<usize> {
    if answer.heads.is_empty() {
        writeln!(to, "{}\n", answer.short)?;
        return Ok(0);
    }
    let mut table = Table::default().names("policy");
    // A load may state more goals than there are ranks; no terminal has room for so many.
    let ranks = (1..u8::MAX).chain(iter::repeat(u8::MAX));
    for (rank, (of, what)) in ranks.zip(&answer.heads) {
        table = table.numbers_of(of.clone(), what.clone()).rank(rank);
    }
    for (arm, cells) in &answer.rows {
        let front = [Cell::from(arm.clone())];
        let cells = cells
            .iter()
            .map(|(text, tone)| Cell::from(text.clone()).toned(*tone));
        table.row(front.into_iter().chain(cells));
    }
    let (table, lost) = table.fit(width);
    table.write(to)?;
    writeln!(to)?;
    Ok(lost)
}

/// The policy that is best at a goal, and the others.
type Leader<'a> = (&'a Set, Vec<Set>);

/// The policy with the best mean at a goal, and the others.
fn leader<'a>(goal: &Goal, sets: &'a [Set]) -> Option<Leader<'a>> {
    let mean = |set: &Set| {
        let values = &set.find(&goal.tested)?.values;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    };
    let measured = sets.iter().filter_map(|set| Some((set, mean(set)?)));
    let by_mean = |a: &(&Set, f64), b: &(&Set, f64)| match goal.better {
        Better::Lower => a.1.total_cmp(&b.1),
        Better::Higher | Better::Neither => b.1.total_cmp(&a.1),
    };
    let (best, _) = measured.min_by(by_mean)?;
    let others = sets
        .iter()
        .filter(|set| set.arm != best.arm && set.find(&goal.tested).is_some());
    Some((best, others.cloned().collect()))
}

/// Every goal's leader against all others: one family for the correction.
fn tested(found: &[Found<'_>], leaders: &[Option<Leader<'_>>]) -> Vec<MetricRow> {
    let questions = found.iter().zip(leaders).filter_map(|(it, leader)| {
        let (base, others) = leader.as_ref()?;
        Some(Question {
            base,
            others,
            again: None,
            only: Some(&it.goal.tested),
        })
    });
    let settings = Settings {
        intervals: false,
        ..Settings::default()
    };
    compare(
        &questions.collect::<Vec<_>>(),
        Choice::Named(&|_| true),
        &settings,
    )
}

/// Who is best for sure, who may be, and who is worst.
fn decided(
    found: &Found<'_>,
    leader: Option<&Leader<'_>>,
    (sets, rows, first): (&[Set], &[MetricRow], &[usize]),
) -> String {
    if let Some(grows) = growing(found, sets) {
        return grows;
    }
    let goal = found.goal;
    let Some((best, others)) = leader else {
        return "no policy came so far".to_owned();
    };
    let value = |arm: &str| {
        let at = sets.iter().position(|set| set.arm == arm);
        let value = at.and_then(|at| found.values[at]);
        value.map_or_else(|| "-".to_owned(), |it| shown_value(found.measure, it))
    };
    let of = |arm: &str| {
        let row = rows
            .iter()
            .find(|row| row.metric == goal.tested && row.arm == arm);
        row.and_then(|row| row.result.as_ref().ok())
    };
    let mut equal = vec![best.arm.as_str()];
    let (mut behind, mut open) = (Vec::new(), Vec::new());
    for arm in others.iter().map(|set| set.arm.as_str()) {
        match of(arm).and_then(|it| it.verdict) {
            Some(Verdict::NoDifference) => equal.push(arm),
            Some(Verdict::Slower | Verdict::Less) => behind.push(arm),
            _ => open.push(arm),
        }
    }
    if behind.is_empty() && open.is_empty() {
        return format!("no difference, {}", value(&best.arm));
    }
    let is_first = |arm: &str| first.iter().any(|at| sets[*at].arm == arm);
    equal.sort_by_key(|arm| !is_first(arm));
    let word = match goal.better {
        Better::Neither => "most",
        _ => "best",
    };
    let mut said = format!("{word} {} {}", listed(&equal), value(&best.arm));
    if !open.is_empty() {
        let needed = open.iter().filter_map(|arm| of(arm)?.runs_needed).max();
        let needed = needed.map_or_else(String::new, |runs| format!(" (about {runs} runs might)"));
        said += &format!("; not decided against {}{needed}", listed(&open));
    }
    if !behind.is_empty() {
        let worse = match behind.len() {
            1 => format!("{} {}", behind[0], value(behind[0])),
            _ => listed(&behind),
        };
        let word = match goal.better {
            Better::Neither => "less",
            _ => "worse",
        };
        said += &format!("; {word}: {worse}");
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_was_ejected_before_any_goal_gets_a_sentence_and_no_empty_table() {
        let answer = Answer {
            sets: Vec::new(),
            ejected: Vec::new(),
            said: Vec::new(),
            short: "lost came to no result.".to_owned(),
            advice: "This is one run.".to_owned(),
            heads: Vec::new(),
            rows: vec![("lost".to_owned(), Vec::new())],
            shown: Vec::new(),
        };
        let mut text = Vec::new();
        write(&answer, Some(80), &mut text).expect("to memory");
        let text = String::from_utf8(text).expect("plain text");
        assert_eq!(text, "lost came to no result.\n\nThis is one run.\n");
        assert_eq!(short(&[], &[], &[]), "No policy came to a result.");
    }

    #[test]
    fn one_below_that_was_ejected_is_named_and_where_it_stood() {
        let below = SubSummary {
            cgroup: "/app".to_owned(),
            policy: "batch".to_owned(),
            level: 1,
            tasks: 2,
            ran: model::Nanos::ZERO,
            exit: model::Exit {
                kind: model::ExitKind::Error,
                code: 0,
                message: "invalid cid 99".to_owned(),
                time: model::SimTime::ZERO,
                fault: None,
            },
            counters: Vec::new(),
        };
        assert_eq!(
            below_ejected(&below, ("root", " at 1.5 s: runtime error"), false),
            "batch below root, at /app, was ejected at 1.5 s: runtime error."
        );
        assert_eq!(
            below_ejected(&below, ("root", ""), true),
            "batch below root, at /app, was ejected; root is not ranked."
        );
    }

    #[test]
    fn a_load_may_state_more_goals_than_a_byte_counts() {
        let answer = |goals: usize| Answer {
            sets: Vec::new(),
            ejected: Vec::new(),
            said: Vec::new(),
            short: String::new(),
            advice: String::new(),
            heads: (0..goals)
                .map(|it| (format!("task-{it}"), "wait".to_owned()))
                .collect(),
            rows: vec![(
                "fifo".to_owned(),
                vec![("1 us".to_owned(), Tone::Plain); goals],
            )],
            shown: Vec::new(),
        };
        let lost = |width| table(&answer(300), width, &mut Vec::new()).expect("to memory");
        assert_eq!(lost(None), 0);
        assert!(
            (280..300).contains(&lost(Some(80))),
            "those with a rank are left"
        );
    }
}
