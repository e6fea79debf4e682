//! The answer first: which policy is best at what the load is for, and how sure that is.
//!
//! Goals are what `compare` tests: deadlines, spans, the time until the work is done. Counters are
//! work done, too, though only the load knows whether much of it is good. A load that states
//! nothing of the kind is judged by how long its tasks wait.

use std::io::{self, Write};
use std::iter;

use ask::outcome::Results;
use stats::compare::{
    Better, Choice, Extent, Measure, Question, Row, Series, Set, Settings, Verdict, compare,
    ends_by_clock,
};

use super::runs::{sets, shown_value};
use crate::Tone;
use crate::figure::Shown;
use crate::table::{Cell, Table, to_the_left, wrapped};

/// Spans of which every policy has so many are judged by their 99th percentile, others by their
/// mean.
const MANY_SPANS: u64 = 100;
/// Whose goals are those of no group.
const ALL: &str = "all";
/// Policies that are named one by one.
const NAMED: usize = 2;
/// The least room that a sentence about a goal gets, however narrow the terminal is.
const SENTENCE: usize = 24;

/// Something that the load is for.
#[derive(Clone, Debug)]
struct Goal {
    /// Whose it is: a group of tasks, or all of them.
    of: String,
    /// What it is: `late moves`.
    what: String,
    /// The metric that is shown.
    shown: String,
    /// The metric that is tested.
    tested: String,
    better: Better,
}

/// A goal, and how each policy that can be judged did at it.
struct Found<'a> {
    goal: &'a Goal,
    measure: Measure,
    /// By policy; nothing of one that was ejected.
    values: Vec<Option<f64>>,
}

impl Goal {
    fn new(of: &str, what: &str, metric: String, better: Better) -> Self {
        Self {
            of: of.to_owned(),
            what: what.to_owned(),
            shown: metric.clone(),
            tested: metric,
            better,
        }
    }

    fn title(&self) -> String {
        match self.of.as_str() {
            ALL => self.what.clone(),
            of => format!("{of}: {}", self.what),
        }
    }
}

/// `late move` becomes `late moves`; `late` stays.
fn plural(word: &str) -> String {
    match word {
        "late" => word.to_owned(),
        _ => format!("{word}s"),
    }
}

/// Adds the goal unless it is there: each policy's report names it.
fn add(goals: &mut Vec<Goal>, goal: Goal) {
    if goals.iter().all(|known| known.tested != goal.tested) {
        goals.push(goal);
    }
}

/// The metrics that decide what these runs are good for, as far as either way is good.
#[must_use]
pub fn stated(results: &Results) -> Vec<String> {
    let goals = goals(results, &sets(results));
    let known = goals.into_iter().filter(|it| it.better != Better::Neither);
    known.map(|goal| goal.tested).collect()
}

/// What the load of these runs is for, in the order of its file.
fn goals(results: &Results, sets: &[Set]) -> Vec<Goal> {
    let reports = || results.outcomes.iter().map(|outcome| &outcome.report);
    let mut goals = Vec::new();
    for it in reports().flat_map(|report| &report.deadlines) {
        let metric = format!("deadline.{}.{}.missed", it.group, it.name);
        let goal = Goal {
            shown: format!("{metric}_ppm"),
            ..Goal::new(&it.group, &plural(&it.word), metric, Better::Lower)
        };
        add(&mut goals, goal);
    }
    for it in reports().flat_map(|report| &report.spans) {
        let same =
            |other: &&stats::SpanReport| (&other.group, &other.name) == (&it.group, &it.name);
        let of_all = reports().filter_map(|report| report.spans.iter().find(same));
        let figure = match of_all.map(|span| span.length.count).min() {
            Some(MANY_SPANS..) => "p99",
            _ => "mean",
        };
        let metric = format!("span.{}.{}.length_ns_{figure}", it.group, it.name);
        let what = format!("{} {figure}", it.name);
        add(
            &mut goals,
            Goal::new(&it.group, &what, metric, Better::Lower),
        );
    }
    if !ends_by_clock(sets) {
        let metric = "machine.elapsed_ns".to_owned();
        add(
            &mut goals,
            Goal::new(ALL, "time to end", metric, Better::Lower),
        );
    }
    if goals.is_empty() {
        for (what, path) in [
            ("wakeup p99", "wakeup_ns_p99"),
            ("delay mean", "delay_ns_mean"),
        ] {
            add(
                &mut goals,
                Goal::new(ALL, what, format!("all.{path}"), Better::Lower),
            );
        }
    }
    let counters = || reports().flat_map(|report| &report.counters);
    for it in counters() {
        let same = |other: &&stats::CounterReport| {
            (&other.group, &other.name, other.total) == (&it.group, &it.name, it.total)
        };
        // Work of which there is a fixed amount is done by all, and tells nobody apart.
        let alike = counters().filter(same).count();
        if alike > 1 && alike == results.outcomes.len() {
            continue;
        }
        let metric = format!("counter.{}.{}.total", it.group, it.name);
        add(
            &mut goals,
            Goal::new(&it.group, &it.name, metric, Better::Neither),
        );
    }
    goals
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
        })
    });
    found.collect()
}

/// What runs say about what their load is for.
#[derive(Debug)]
pub struct Answer {
    /// The runs by policy.
    pub sets: Vec<Set>,
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
    let goals = goals(results, &sets);
    let found = find(&goals, &sets);
    let (said, firsts) = if is_many {
        of_many(&found, &sets)
    } else {
        of_one(&found, &sets)
    };
    let runs = sets.iter().map(|set| set.runs).max().unwrap_or(0);
    let advice = match (is_many, sets.len()) {
        (true, _) if runs > 1 && is_same_each_time(&found, &sets) => format!(
            "The {runs} runs of each are the same: nothing in this load is drawn. More runs say \
             no more; `choose` cuts a trace into parts."
        ),
        (true, _) => format!("Medians of {runs} runs each."),
        (false, 0 | 1) => "This is one run.".to_owned(),
        _ => "One run each: --runs 10 tells which differences hold for other seeds.".to_owned(),
    };
    let shown = found.iter().map(|it| Shown {
        metric: it.goal.shown.clone(),
        title: it.goal.title(),
    });
    let rows = sets.iter().enumerate();
    let rows = rows.map(|(at, set)| (set.arm.clone(), cells(&found, at)));
    Answer {
        said: if sets.len() > 1 { said } else { Vec::new() },
        short: short(&found, &sets, &firsts),
        advice,
        heads: found
            .iter()
            .map(|it| (it.goal.of.clone(), it.goal.what.clone()))
            .collect(),
        rows: rows.collect(),
        shown: shown.collect(),
        sets,
    }
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

/// A sentence a goal with its title, and for each goal the policies that are first.
type Said = (Vec<(String, String)>, Vec<Vec<usize>>);

fn of_one(found: &[Found<'_>], sets: &[Set]) -> Said {
    let said = found.iter().map(|it| (it.goal.title(), sentence(it, sets)));
    let firsts = found.iter().map(|it| {
        let (best, _) = ends(it);
        let best = best.map(|best| shown_value(it.measure, best));
        let is_first = |at: &usize| {
            it.values[*at].is_some_and(|value| Some(shown_value(it.measure, value)) == best)
        };
        (0..sets.len()).filter(is_first).collect()
    });
    (said.collect(), firsts.collect())
}

fn of_many(found: &[Found<'_>], sets: &[Set]) -> Said {
    let leaders: Vec<_> = found.iter().map(|it| leader(it.goal, sets)).collect();
    let rows = tested(found, &leaders);
    let told = found.iter().zip(&leaders).map(|(it, leader)| {
        let said = decided(it, leader.as_ref(), (sets, &rows));
        (it.goal.title(), said)
    });
    let firsts = found.iter().zip(&leaders).map(|(it, leader)| {
        let Some((best, _)) = leader else {
            return Vec::new();
        };
        let is_first = |at: &usize| {
            let arm = &sets[*at].arm;
            let row = rows
                .iter()
                .find(|row| row.metric == it.goal.tested && row.arm == *arm);
            let verdict = row.and_then(|row| row.result.as_ref().ok()?.verdict);
            *arm == best.arm || verdict == Some(Verdict::NoDifference)
        };
        (0..sets.len()).filter(is_first).collect()
    });
    (told.collect(), firsts.collect())
}

/// How the policy with this number did at a goal.
fn shown(it: &Found<'_>, at: usize) -> String {
    let value = it.values[at];
    value.map_or_else(
        || "no value".to_owned(),
        |value| shown_value(it.measure, value),
    )
}

/// Who does best and who does worst, with an example of what that is; and what is not ranked.
fn short(found: &[Found<'_>], sets: &[Set], firsts: &[Vec<usize>]) -> String {
    if let [only] = sets {
        if found.iter().all(|it| it.values[0].is_none()) {
            return format!("{} came to no result.", only.arm);
        }
        let told = found
            .iter()
            .map(|it| format!("{}: {}", it.goal.title(), shown(it, 0)));
        return format!(
            "Under {}: {}.",
            only.arm,
            told.collect::<Vec<_>>().join("; ")
        );
    }
    if found.is_empty() {
        return "No policy came to a result.".to_owned();
    }
    match unranked(found, sets) {
        Some(rest) => format!("{} {rest}", ranked(found, sets, firsts)),
        None => ranked(found, sets, firsts),
    }
}

/// What differs and has no good end, so that a reader does not take the ranking for all of it.
fn unranked(found: &[Found<'_>], sets: &[Set]) -> Option<String> {
    let differs = |it: &&Found<'_>| {
        let (most, least) = ends(it);
        let shown = |value: Option<f64>| value.map(|value| shown_value(it.measure, value));
        it.goal.better == Better::Neither && shown(most) != shown(least)
    };
    let mut all = found.iter().filter(differs);
    let first = all.next()?;
    let said = format!("{} ({})", first.goal.title(), sentence(first, sets));
    Some(match all.count() {
        0 => format!("Not ranked: {said}."),
        more => format!("Not ranked: {said}, and {more} more."),
    })
}

/// Who does best and who does worst at what has a good end.
fn ranked(found: &[Found<'_>], sets: &[Set], firsts: &[Vec<usize>]) -> String {
    // Of more work nobody knows whether it is good, and what all do alike tells nobody apart.
    let known = found.iter().zip(firsts);
    let known: Vec<_> = known
        .filter(|(it, firsts)| it.goal.better != Better::Neither && firsts.len() < sets.len())
        .collect();
    if known.is_empty() {
        return "All policies do alike at what this load is for.".to_owned();
    }
    let ((best, count), worst) = standing(&known, sets.len());
    let called = |at: &[usize]| {
        let names: Vec<&str> = at.iter().map(|at| sets[*at].arm.as_str()).collect();
        (listed(&names), if names.len() == 1 { "does" } else { "do" })
    };
    let (who, does) = called(&best);
    let all = known.len();
    let mut said = match (count, all) {
        (_, 1) => format!("{who} {does} best at the one thing that can be ranked."),
        (count, all) if count == all => {
            format!("{who} {does} best at all {all} things that can be ranked.")
        }
        (count, all) => {
            format!("{who} {does} best: first at {count} of {all} things that can be ranked.")
        }
    };
    let (Some(&winner), Some(&loser)) = (best.first(), worst.first()) else {
        return said;
    };
    let example = known.iter().find(|(it, firsts)| {
        let is_worst = shown(it, loser) != shown(it, winner);
        firsts.contains(&winner) && is_worst && it.values[loser].is_some()
    });
    let (who, does) = called(&worst);
    said += &format!(" {who} {does} worst.");
    if let Some((it, _)) = example {
        let [winner, loser] = [winner, loser].map(|at| (&sets[at].arm, shown(it, at)));
        let of = match it.goal.of.as_str() {
            ALL => String::new(),
            of => format!(" of {of}"),
        };
        said += &format!(
            " For example, {}{of}: {} under {} and {} under {}.",
            it.goal.what, loser.1, loser.0, winner.1, winner.0
        );
    }
    said
}

/// Which of so many policies are first most often, and how often that is; and which are last most
/// often.
fn standing(
    known: &[(&Found<'_>, &Vec<usize>)],
    policies: usize,
) -> ((Vec<usize>, usize), Vec<usize>) {
    let is_last = |it: &Found<'_>, at: usize| {
        let (_, worst) = ends(it);
        let shown = |value: Option<f64>| value.map(|value| shown_value(it.measure, value));
        it.values[at].is_some() && shown(it.values[at]) == shown(worst)
    };
    let mut first = vec![0_usize; policies];
    let mut last = vec![0_usize; policies];
    for (it, firsts) in known {
        for at in 0..policies {
            let is_first = firsts.contains(&at);
            first[at] += usize::from(is_first);
            last[at] += usize::from(!is_first && is_last(it, at));
        }
    }
    let most = |of: &[usize]| of.iter().copied().max().unwrap_or(0);
    let names = |of: &[usize]| -> Vec<usize> {
        let most = most(of);
        (0..policies)
            .filter(|at| most > 0 && of[*at] == most)
            .collect()
    };
    ((names(&first), most(&first)), names(&last))
}

/// Writes the answer: a sentence a goal, a line a policy.
///
/// # Errors
/// When `to` does not take it.
pub fn write(answer: &Answer, width: Option<usize>, to: &mut dyn Write) -> io::Result<()> {
    say(&answer.said, width, to)?;
    let lost = table(answer, width, to)?;
    let advice = match lost {
        0 => answer.advice.clone(),
        1 => format!("{} --wide shows one goal more.", answer.advice),
        lost => format!("{} --wide shows {lost} goals more.", answer.advice),
    };
    let lines = wrapped(&advice, width.unwrap_or(usize::MAX));
    lines.iter().try_for_each(|line| writeln!(to, "{line}"))
}

/// Writes the answer in short.
///
/// # Errors
/// When `to` does not take it.
pub fn in_short(answer: &Answer, width: Option<usize>, to: &mut dyn Write) -> io::Result<()> {
    let text = format!("In short: {}", answer.short);
    let lines = wrapped(&text, width.unwrap_or(usize::MAX));
    lines.iter().try_for_each(|line| writeln!(to, "{line}"))
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
fn cells(found: &[Found<'_>], at: usize) -> Vec<(String, Tone)> {
    let cells = found.iter().map(|it| {
        let Some(value) = it.values[at] else {
            return ("-".to_owned(), Tone::Plain);
        };
        let shown = |value| shown_value(it.measure, value);
        let text = shown(value);
        let is_end = |end: Option<f64>| end.is_some_and(|end| shown(end) == text);
        let (best, worst) = ends(it);
        let tone = match (is_end(best), is_end(worst)) {
            (true, false) if it.goal.better != Better::Neither => Tone::Good,
            (false, true) if it.goal.better != Better::Neither => Tone::Bad,
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

/// Who is best and who is worst, with their values.
fn sentence(found: &Found<'_>, sets: &[Set]) -> String {
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
        let all = sets.iter().zip(&found.values);
        let here = all.filter(|(_, value)| value.is_some_and(|it| shown(it) == shown(end)));
        listed(&here.map(|(set, _)| set.arm.as_str()).collect::<Vec<_>>())
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
    let values = || found.values.iter().flatten().copied();
    let (least, most) = (values().reduce(f64::min), values().reduce(f64::max));
    match found.goal.better {
        Better::Lower => (least, most),
        Better::Higher | Better::Neither => (most, least),
    }
}

/// Names in a sentence: `a and b`, `a, b and 4 more`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [front @ .., last] if names.len() <= NAMED => format!("{} and {last}", front.join(", ")),
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
fn tested(found: &[Found<'_>], leaders: &[Option<Leader<'_>>]) -> Vec<Row> {
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
    (sets, rows): (&[Set], &[Row]),
) -> String {
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
    fn a_load_may_state_more_goals_than_a_byte_counts() {
        let answer = |goals: usize| Answer {
            sets: Vec::new(),
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
