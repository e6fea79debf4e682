//! One table of all differences: schedulers and conditions, with how sure each is.

use std::collections::BTreeMap;

use maud::{Markup, html};
use stats::compare::{MetricRow, Set};

use super::words::{certainty, difference, distinct, is_alike, median, tone};
use crate::figure::told_apart;
use crate::page::class_of;

/// Columns of conditions at most; of more, conditions stand below each other.
const COLUMNS: usize = 8;
/// Conditions at most: the tables of a page that opens at once.
pub const CONDITIONS: usize = 150;

/// A table in which each cell has a difference from the baseline, and opens what it is made of:
/// the part of the page with the number of its condition.
pub fn matrix(rows: &[MetricRow], sets: &[&Set]) -> Markup {
    let goals = || rows.iter().filter(|row| row.is_goal && !is_alike(row));
    let metrics = distinct(goals().map(|row| (row.metric.as_str(), row.named.title.as_str())));
    let places = distinct(sets.iter().map(|set| set.place.as_str()));
    let arms = distinct(goals().map(|row| (row.arm.as_str(), row.base.as_str())));
    let shown = &places[..places.len().min(CONDITIONS)];
    let across = shown.len() <= COLUMNS;
    let mut found: BTreeMap<[&str; 3], &MetricRow> = BTreeMap::new();
    for row in goals() {
        let key = [&*row.metric, &*row.arm, &*row.place];
        found.entry(key).or_insert(row);
    }
    let find = |metric: &str, arm: &str, place: &str| found.get(&[metric, arm, place]).copied();
    let named: Vec<String> = shown.iter().map(|it| told_apart(it, &places)).collect();
    let columns = if across { shown.len() } else { arms.len() };
    html! {
        div .scroll role="region" aria-label="Differences" tabindex="0" {
            table .matrix .down[!across] {
                caption { "Difference of the means from the baseline, and how sure that is" }
                thead { tr {
                    th scope="col" { "goal" }
                    @if across {
                        @for name in &named { th scope="col" { (name) } }
                    } @else {
                        @for (arm, base) in &arms { th scope="col" { (arm) " against " (base) } }
                    }
                } }
                tbody { @for (metric, title) in &metrics {
                    tr .goal { th colspan=(columns + 1) { (title) } }
                    @if across {
                        @for (arm, base) in &arms { tr {
                            td { (arm) " against " (base) }
                            @for (at, place) in shown.iter().enumerate() {
                                (cell(find(metric, arm, place), at))
                            }
                        } }
                    } @else {
                        @for (at, place) in shown.iter().enumerate() { tr {
                            td { (named[at]) }
                            @for (arm, _) in &arms { (cell(find(metric, arm, place), at)) }
                        } }
                    }
                } }
            }
        }
        p .note {
            "Below each both medians. \u{2013}: all runs alike, or no goal of that load."
        }
        @if places.len() > shown.len() {
            p .note {
                "The first " (shown.len()) " of " (places.len()) " conditions. A file that ends in \
                 .csv has all of them."
            }
        }
    }
}

/// The difference, the baseline's median that it is to be seen against, and the verdict.
fn cell(row: Option<&MetricRow>, place: usize) -> Markup {
    let found = row.and_then(|row| Some((row, row.result.as_ref().ok()?)));
    let Some((row, judged)) = found else {
        return html! { td { "\u{2013}" } };
    };
    let effect = &judged.effect;
    html! {
        td class=[class_of(tone(judged.verdict))] {
            a href=(format!("#tables{}", place + 1)) { (difference(row, effect, effect.shift)) }
            small { (median(row, row.base_extent)) " \u{2192} " (median(row, row.arm_extent)) }
            small { (certainty(judged)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use stats::compare::{
        Better, Choice, Measure, MeasuredNumber, Question, Role, Settings, compare,
    };

    use super::*;

    fn set(arm: &str, place: &str, goals: usize, by: f64) -> Set {
        let mut set = Set::new(arm, place, "simulated");
        for seed in 0..10_u64 {
            let of = |goal: usize| MeasuredNumber {
                name: format!("span.group.request{goal}.length_ns_p99"),
                measure: Measure::Nanos,
                better: Better::Lower,
                role: Role::Goal,
                value: 1e6 + by + seed as f64 * 1e4,
            };
            set.add((0..goals).map(of).collect(), Some(seed));
        }
        set
    }

    /// The table of so many schedulers beside the baseline, conditions and goals.
    fn drawn(arms: usize, conditions: usize, goals: usize) -> String {
        let places: Vec<String> = (0..conditions)
            .map(|at| format!("desk: {at} CPUs, HZ 250"))
            .collect();
        let make = |place: &String| {
            let others = (0..arms).map(|at| set(&format!("arm{at}"), place, goals, -5e5));
            (
                set("eevdf", place, goals, 0.0),
                others.collect::<Vec<Set>>(),
            )
        };
        let made: Vec<(Set, Vec<Set>)> = places.iter().map(make).collect();
        let question = |(base, others): &'_ (Set, Vec<Set>)| -> Vec<MetricRow> {
            let question = Question {
                base,
                others,
                again: None,
                only: None,
            };
            let settings = Settings {
                intervals: false,
                ..Settings::default()
            };
            compare(&[question], Choice::Stated, &settings)
        };
        let rows: Vec<MetricRow> = made.iter().flat_map(question).collect();
        let sets: Vec<&Set> = made
            .iter()
            .flat_map(|(base, others)| std::iter::once(base).chain(others))
            .collect();
        matrix(&rows, &sets).into_string()
    }

    #[test]
    fn each_cell_has_its_difference_and_certainty_and_opens_its_condition() {
        let table = drawn(2, 3, 1);
        assert_eq!(table.matches("<td").count(), 2 * (1 + 3), "{table}");
        let cell = "<td class=\"best\"><a href=\"#tables2\">-500 us</a><small>1.04 ms \u{2192} \
                    540 us</small><small>better, p 0.00";
        assert_eq!(table.matches(cell).count(), 2, "{table}");
        assert!(
            table.contains("<th scope=\"col\">desk: 1 CPUs</th>"),
            "{table}"
        );
        // Of many conditions each has a row.
        let table = drawn(2, 9, 1);
        assert_eq!(table.matches("<td").count(), 9 * (1 + 2));
        assert!(table.contains("<th scope=\"col\">arm1 against eevdf</th>"));
        assert!(table.contains("<td>desk: 8 CPUs</td>"));
    }

    #[test]
    fn more_conditions_than_a_page_shows_at_once_are_said() {
        let table = drawn(1, CONDITIONS + 1, 1);
        assert_eq!(table.matches("<td").count(), 2 * CONDITIONS);
        assert!(
            table.contains("The first 150 of 151 conditions."),
            "{}",
            &table[table.len() - 300..]
        );
    }
}
