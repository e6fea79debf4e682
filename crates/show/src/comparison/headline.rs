//! What a comparison comes to, in a sentence of at most twenty words.

use ask::words::counted;
use stats::compare::{Doubt, MetricRow, Verdict};

use super::words::{difference, distinct, is_alike};
use crate::page::WORDS_MAX;

/// Goals that a sentence behind the headline names.
const NAMED: usize = 4;

/// The headline, and a sentence for each scheduler that it does not tell all of.
#[must_use]
pub fn verdict(rows: &[MetricRow]) -> Vec<String> {
    let pairs = distinct(rows.iter().map(|row| (row.arm.as_str(), row.base.as_str())));
    let all: Vec<Standing<'_>> = pairs.iter().map(|pair| Standing::of(rows, *pair)).collect();
    match all.as_slice() {
        [] => vec!["Nothing could be compared.".to_owned()],
        [one] => one.sentences(),
        several => {
            let each = several.iter().map(Standing::in_numbers);
            std::iter::once(of_several(several)).chain(each).collect()
        }
    }
}

/// How a scheduler does against its baseline.
struct Standing<'a> {
    arm: &'a str,
    base: &'a str,
    better: Vec<&'a MetricRow>,
    worse: Vec<&'a MetricRow>,
    /// More or less of what is good neither way.
    other: Vec<&'a MetricRow>,
    same: Vec<&'a MetricRow>,
    open: Vec<&'a MetricRow>,
    /// Whether anything could be compared.
    is_compared: bool,
}

fn verdict_of(row: &MetricRow) -> Option<Verdict> {
    row.result.as_ref().ok()?.verdict
}

impl<'a> Standing<'a> {
    fn of(rows: &'a [MetricRow], (arm, base): (&'a str, &'a str)) -> Self {
        let goals = || {
            let here = rows.iter().filter(|row| row.arm == arm && row.base == base);
            here.filter(|row| row.is_goal && !is_alike(row))
        };
        let of = |is: fn(Verdict) -> bool| -> Vec<&'a MetricRow> {
            goals()
                .filter(|row| verdict_of(row).is_some_and(is))
                .collect()
        };
        Self {
            arm,
            base,
            better: of(|it| it == Verdict::Faster),
            worse: of(|it| it == Verdict::Slower),
            other: of(|it| matches!(it, Verdict::More | Verdict::Less)),
            same: of(|it| it == Verdict::NoDifference),
            open: of(|it| matches!(it, Verdict::Undecided(_))),
            is_compared: rows
                .iter()
                .any(|row| row.arm == arm && row.base == base && row.result.is_ok()),
        }
    }

    fn goals(&self) -> usize {
        let Self {
            better,
            worse,
            other,
            same,
            open,
            ..
        } = self;
        [better, worse, other, same, open]
            .iter()
            .map(|it| it.len())
            .sum()
    }

    /// The headline and, if it cannot name all, all of it.
    fn sentences(&self) -> Vec<String> {
        let (arm, base) = (self.arm, self.base);
        if self.goals() == 0 {
            return vec![if self.is_compared {
                format!("{arm} and {base} do the same at every goal.")
            } else {
                format!("{arm} and {base} were not compared.")
            }];
        }
        let groups = [
            (&self.better, format!("is better than {base}"), "better"),
            (&self.worse, format!("is worse than {base}"), "worse"),
            (&self.other, format!("differs from {base}"), "different"),
            (&self.same, format!("does not differ from {base}"), "alike"),
            (
                &self.open,
                format!("cannot be told from {base} by these runs"),
                "undecided",
            ),
        ];
        let groups: Vec<_> = groups.into_iter().filter(|it| !it.0.is_empty()).collect();
        let told = |named: usize, with_differences: bool| {
            let mut said = String::new();
            for (at, (rows, first, later)) in groups.iter().enumerate() {
                let begin = if at == 0 { first.as_str() } else { later };
                let comma = if at == 0 { "" } else { "," };
                said += &format!(
                    "{comma} {begin} at {}",
                    listed(rows, named, with_differences)
                );
            }
            format!("{arm}{said}.")
        };
        let whole = told(NAMED, true);
        let tries = [whole.clone(), told(1, true), told(1, false), told(0, false)];
        let counted = |it: &String| it.split_whitespace().count();
        let shortest = tries.iter().min_by_key(|it| counted(it)).cloned();
        let fits = tries.into_iter().find(|it| counted(it) <= WORDS_MAX);
        let headline = fits.or(shortest).unwrap_or_default();
        if headline == whole {
            vec![headline]
        } else {
            vec![headline, whole]
        }
    }

    fn in_numbers(&self) -> String {
        let groups = [
            (&self.better, "better"),
            (&self.worse, "worse"),
            (&self.other, "different"),
            (&self.same, "alike"),
            (&self.open, "undecided"),
        ];
        let told = groups.iter().filter(|it| !it.0.is_empty());
        let told: Vec<String> = told
            .map(|(rows, word)| format!("{word} in {}", rows.len()))
            .collect();
        let told = match (told.is_empty(), self.is_compared) {
            (true, true) => "alike in all".to_owned(),
            (true, false) => "not compared".to_owned(),
            _ => told.join(", "),
        };
        format!("{} against {}: {told}.", self.arm, self.base)
    }
}

/// Some goals by name, and how many more there are; only their number, if none is to be named.
fn listed(rows: &[&MetricRow], named: usize, with_differences: bool) -> String {
    let goals = distinct(rows.iter().map(|row| row.named.title.as_str()));
    // Under several loads one goal stands for several rows.
    if named == 0 || goals.len() < rows.len() {
        return counted(rows.len() as u64, "goal");
    }
    let told = rows.iter().take(named).map(|row| {
        let title = &row.named.title;
        match &row.result {
            Ok(judged) if with_differences => {
                let by = difference(row, &judged.effect, judged.effect.shift);
                format!("{title} ({by})")
            }
            _ => title.clone(),
        }
    });
    let told: Vec<String> = told.collect();
    match rows.len().saturating_sub(named) {
        0 => told.join(", "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

/// Who is better than the baseline most often.
fn of_several(all: &[Standing<'_>]) -> String {
    let bases = distinct(all.iter().map(|it| it.base));
    let base = match bases.as_slice() {
        [one] => *one,
        _ => "its baseline",
    };
    let goals = all.iter().map(Standing::goals).max().unwrap_or(0);
    let lead = |it: &&Standing<'_>| it.better.len() as i64 - it.worse.len() as i64;
    let best = all.iter().rev().max_by_key(lead);
    if let Some(best) = best.filter(|it| lead(it) > 0) {
        let (better, worse) = (best.better.len(), best.worse.len());
        let many = all.len();
        return format!(
            "Of {many} schedulers {} is better than {base} most often: {better} of {goals} \
             comparisons, worse in {worse}.",
            best.arm
        );
    }
    if all.iter().any(|it| !it.better.is_empty()) {
        return format!("No scheduler is better than {base} more often than it is worse.");
    }
    if all.iter().any(|it| !it.worse.is_empty()) {
        return format!("No scheduler is surely better than {base}; see where they are worse.");
    }
    let count = |of: fn(&Standing<'_>) -> usize| all.iter().map(of).sum::<usize>();
    let open = count(|it| it.open.len());
    let decided = count(|it| it.same.len() + it.other.len());
    if let Some((runs, needed)) = too_few(all) {
        let runs = counted(runs as u64, "run");
        let say = match decided {
            0 => "decide none of so many comparisons".to_owned(),
            _ => format!("leave {open} of {} comparisons open", open + decided),
        };
        return format!("{runs} of each {say}; at least {needed} might decide them.");
    }
    if all.iter().all(|it| it.other.is_empty()) {
        return format!("No scheduler surely differs from {base}.");
    }
    format!("No scheduler is surely better or worse than {base}; see where they differ.")
}

/// So few runs that something cannot be decided, and how many it takes at least; `None` if they are
/// enough for all.
fn too_few(all: &[Standing<'_>]) -> Option<(usize, usize)> {
    let few = all.iter().flat_map(|it| &it.open);
    let few = few.filter(|row| verdict_of(row) == Some(Verdict::Undecided(Doubt::Few)));
    let of = |row: &&MetricRow| {
        let judged = row.result.as_ref().ok()?;
        let [base, arm] = judged.effect.values;
        Some((base.min(arm), judged.runs_needed.unwrap_or(0)))
    };
    few.filter_map(of).max_by_key(|it| it.1)
}

#[cfg(test)]
mod tests {
    use stats::compare::{
        Better, Choice, Measure, MeasuredNumber, Question, Role, Set, Settings, compare,
    };

    use super::*;

    /// Comparisons of so many schedulers with a baseline at so many goals, in ten runs each.
    fn rows(arms: usize, goals: usize, by: f64) -> Vec<MetricRow> {
        let set = |arm: &str, more: f64| {
            let mut set = Set::new(arm, "", "simulated");
            for seed in 0..10_u64 {
                let of = |goal: usize| MeasuredNumber {
                    name: format!("span.ui.request{goal}.length_ns_p99"),
                    measure: Measure::Nanos,
                    better: Better::Lower,
                    role: Role::Goal,
                    value: 1e6
                        + seed as f64 * 1e3
                        + if goal.is_multiple_of(2) { more } else { -more },
                };
                set.add((0..goals).map(of).collect(), Some(seed));
            }
            set
        };
        let others: Vec<Set> = (0..arms).map(|at| set(&format!("arm{at}"), by)).collect();
        let base = set("eevdf", 0.0);
        let question = Question {
            base: &base,
            others: &others,
            again: None,
            only: None,
        };
        compare(&[question], Choice::Stated, &Settings::default())
    }

    #[test]
    fn a_headline_has_at_most_twenty_words_however_much_is_compared() {
        for (arms, goals) in [(1, 1), (1, 2), (1, 9), (4, 1), (4, 9), (30, 20)] {
            for by in [0.0, 2e3, 5e5] {
                let said = verdict(&rows(arms, goals, by));
                let words = said[0].split_whitespace().count();
                assert!(words <= WORDS_MAX, "{arms} {goals} {by}: {}", said[0]);
                assert!(said[0].ends_with('.'), "{}", said[0]);
            }
        }
    }

    #[test]
    fn a_headline_does_not_call_all_open_what_is_open_in_part() {
        let set = |arm: &str, times: f64| {
            let mut set = Set::new(arm, "", "measured");
            for run in 0..4_u64 {
                let number = MeasuredNumber {
                    name: "time_ns".to_owned(),
                    measure: Measure::Nanos,
                    better: Better::Lower,
                    role: Role::Goal,
                    value: times * (1e9 + (run * 7 % 5) as f64 * 1e6),
                };
                set.add(vec![number], None);
            }
            set
        };
        let told = |others: [f64; 2]| {
            let base = set("default", 1.0);
            let others = others.map(|times| set(&format!("x{times}"), times));
            let question = Question {
                base: &base,
                others: &others,
                again: None,
                only: None,
            };
            let rows = compare(&[question], Choice::Stated, &Settings::default());
            verdict(&rows)[0].clone()
        };
        // Four runs of each cannot tell two schedulers apart from a third one, but that one of them
        // does as well as it.
        let want = "4 runs of each leave 1 of 2 comparisons open; at least 5 might decide them.";
        assert_eq!(told([1.001, 2.0]), want);
        let want =
            "4 runs of each decide none of so many comparisons; at least 5 might decide them.";
        assert_eq!(told([2.0, 3.0]), want);
    }

    #[test]
    fn a_headline_says_who_at_what_and_by_how_much() {
        let said = verdict(&rows(1, 2, 5e5));
        let want = "arm0 is better than eevdf at ui: request1 p99 (-500 us), worse at ui: \
                    request0 p99 (+500 us).";
        assert_eq!(said, [want]);
        let said = verdict(&rows(3, 2, 5e5));
        let want = "No scheduler is better than eevdf more often than it is worse.";
        assert_eq!(said[0], want);
        assert_eq!(said[1], "arm0 against eevdf: better in 1, worse in 1.");
        assert_eq!(said.len(), 4);
        let said = verdict(&rows(3, 3, -5e5));
        let want = "Of 3 schedulers arm0 is better than eevdf most often: 2 of 3 comparisons, \
                    worse in 1.";
        assert_eq!(said[0], want);
    }
}
