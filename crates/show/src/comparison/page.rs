//! A comparison as a page: every run as a dot, and each difference with its interval.

use ask::compare::Family;
use ask::words::counted;
use maud::html;
use stats::compare::{Effect, Measure, MetricRow, Scale, Set, Settings, Verdict};

use super::human;
use crate::Origin;
use crate::figure::{Chart, Shown, changes, every_run, told_apart};
use crate::page::{Fold, Page, table};
use crate::report::runs::shown_value;

/// Goals that the verdict names.
const NAMED: usize = 4;

/// A comparison that was made.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// What was held against what.
    pub family: &'a Family,
    /// Its outcome.
    pub rows: &'a [MetricRow],
    /// How it was judged.
    pub settings: &'a Settings,
}

impl Compared<'_> {
    /// What is to be known of the runs.
    pub(super) fn notes(&self) -> Vec<String> {
        let family = self.family;
        let voids = family.voids().into_iter();
        voids.chain(family.notes.clone()).collect()
    }
}

/// The page of a comparison.
#[must_use]
pub fn page(compared: &Compared<'_>, origin: &Origin) -> Page {
    let Compared {
        family,
        rows,
        settings,
    } = *compared;
    let sets = family.sets();
    let shown = shown(rows);
    let places = human::distinct(sets.iter().map(|set| set.place.as_str()));
    let mut page = Page {
        title: title(&sets, &places),
        verdict: verdict(rows),
        answers: answers(rows),
        pictures: pictures(&sets, rows, settings, &shown),
        ..Page::default()
    };
    for (at, place) in places.iter().enumerate() {
        let here = |is_goal| -> Vec<&MetricRow> {
            let here = rows.iter().filter(|row| row.place == *place);
            here.filter(|row| row.is_goal == is_goal).collect()
        };
        let (goals, rest) = (human::table(&here(true)), human::table(&here(false)));
        let of = if places.len() > 1 {
            format!(": {place}")
        } else {
            String::new()
        };
        page.folds.push(Fold {
            id: format!("tables{}", at + 1),
            title: format!("Tables{of}"),
            body: html! {
                (table("Goals, with a verdict", &goals))
                (table("What describes it, without a verdict", &rest))
            },
        });
    }
    let notes: Vec<String> = human::notes_of(rows, settings)
        .into_iter()
        .chain(compared.notes())
        .collect();
    page.folds.push(Fold {
        id: "method".to_owned(),
        title: "How it was compared, and what to know".to_owned(),
        body: html! { ul .t { @for line in &notes { li { (line) } } } },
    });
    page.about = vec![
        ("program".to_owned(), format!("runslice {}", crate::VERSION)),
        ("command".to_owned(), origin.command()),
        ("loads and machines".to_owned(), places.join("; ")),
    ];
    page
}

fn title(sets: &[&Set], places: &[&str]) -> String {
    let arms = human::distinct(sets.iter().map(|set| set.arm.as_str()));
    let places = match places {
        [] | [""] => String::new(),
        [place] => format!(", {place}"),
        several => format!(", {} loads or machines", several.len()),
    };
    format!("{}{places}", arms.join(", "))
}

/// The goals that are drawn: those in which any run differs from any other, unless there are none.
fn shown(rows: &[MetricRow]) -> Vec<Shown> {
    let goals = || rows.iter().filter(|row| row.is_goal);
    let differing = goals().filter(|row| !is_alike(row));
    let mut metrics = human::distinct(differing.map(|row| row.metric.as_str()));
    if metrics.is_empty() {
        metrics = human::distinct(goals().map(|row| row.metric.as_str()));
    }
    let shown = metrics.into_iter().map(|metric| Shown {
        metric: metric.to_owned(),
        title: spoken(metric),
    });
    shown.collect()
}

/// Whether all runs of both sets have one value: of a load that ends by the clock its length.
fn is_alike(row: &MetricRow) -> bool {
    let extents = [row.base_extent, row.arm_extent];
    let [Some(base), Some(arm)] = extents else {
        return false;
    };
    // Two runs that a clock ends differ by a context switch at most.
    let (least, most) = (base.min.min(arm.min), base.max.max(arm.max));
    most <= least * (1.0 + 1e-3)
}

/// What people call a metric.
fn spoken(metric: &str) -> String {
    let words: Vec<&str> = metric.split('.').collect();
    let of = |group: &str, name: &str| {
        if group == name {
            group.to_owned()
        } else {
            format!("{group} {name}")
        }
    };
    match words.as_slice() {
        ["machine", "elapsed_ns"] => "time to end".to_owned(),
        ["time_ns"] => "time of the command".to_owned(),
        ["deadline", group, name, "missed"] => format!("{}: missed deadlines", of(group, name)),
        ["deadline", group, name, "missed_ppm"] => {
            format!("{}: share of missed deadlines", of(group, name))
        }
        ["span", group, name, column] if column.starts_with("length_ns_") => {
            format!(
                "{}: {}",
                of(group, name),
                column.trim_start_matches("length_ns_")
            )
        }
        _ => metric.to_owned(),
    }
}

/// One sentence for each scheduler that was held against a baseline.
#[must_use]
pub fn verdict(rows: &[MetricRow]) -> Vec<String> {
    let places = human::distinct(rows.iter().map(|row| row.place.as_str())).len();
    let pairs = human::distinct(rows.iter().map(|row| (row.arm.as_str(), row.base.as_str())));
    let sentences = pairs.into_iter().map(|(arm, base)| {
        let here = rows.iter().filter(|row| row.arm == arm && row.base == base);
        let goals: Vec<&MetricRow> = here.filter(|row| row.is_goal && !is_alike(row)).collect();
        let of = |is: &dyn Fn(Verdict) -> bool| -> Vec<&MetricRow> {
            let judged = goals.iter().copied();
            judged
                .filter(|row| {
                    row.result
                        .as_ref()
                        .is_ok_and(|it| it.verdict.is_some_and(is))
                })
                .collect()
        };
        let better = of(&|it| it == Verdict::Faster);
        let worse = of(&|it| it == Verdict::Slower);
        let other = of(&|it| matches!(it, Verdict::More | Verdict::Less));
        let same = of(&|it| it == Verdict::NoDifference);
        let open = of(&|it| matches!(it, Verdict::Undecided(_)));
        let mut parts = Vec::new();
        for (rows, words) in [
            (&better, "is better than"),
            (&worse, "is worse than"),
            (&other, "differs from"),
            (&same, "does not differ from"),
        ] {
            if !rows.is_empty() {
                parts.push(format!("{words} {base} in {}", named(rows, places)));
            }
        }
        if !open.is_empty() {
            parts.push(format!(
                "cannot be told from {base} by these runs in {}",
                named(&open, places)
            ));
        }
        if parts.is_empty() {
            format!("{arm} and {base} do the same at every goal, or could not be compared.")
        } else {
            format!("{arm} {}.", parts.join("; it "))
        }
    });
    sentences.collect()
}

/// Some goals by name with their changes, and how many more there are; of several loads, in how
/// many of them.
fn named(rows: &[&MetricRow], places: usize) -> String {
    if places > 1 {
        let metrics = human::distinct(rows.iter().map(|row| row.metric.as_str()));
        let told = metrics.iter().map(|metric| {
            let count = rows.iter().filter(|row| row.metric == *metric).count();
            format!(
                "{} (under {count} of {places} loads or machines)",
                spoken(metric)
            )
        });
        return told.collect::<Vec<_>>().join(", ");
    }
    let told = rows.iter().take(NAMED).map(|row| {
        let effect = row.result.as_ref().ok().map(|judged| &judged.effect);
        match effect.map(|effect| changed(effect, row.measure)) {
            Some(change) => format!("{} ({change})", spoken(&row.metric)),
            None => spoken(&row.metric),
        }
    });
    let told: Vec<String> = told.collect();
    match rows.len().saturating_sub(NAMED) {
        0 => told.join(", "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

/// An estimate with its unit: a count is one of each run.
fn changed(effect: &Effect, measure: Measure) -> String {
    let change = human::change(effect, measure, effect.shift);
    match (effect.scale, measure) {
        (Scale::Linear, Measure::Count) => format!("{change} a run"),
        _ => change,
    }
}

/// Each goal with its change, interval and verdict.
fn answers(rows: &[MetricRow]) -> Vec<(String, String)> {
    let goals = rows.iter().filter(|row| row.is_goal && !is_alike(row));
    let places = human::distinct(rows.iter().map(|row| row.place.as_str()));
    let told = goals.filter_map(|row| {
        let judged = row.result.as_ref().ok()?;
        let change = |shift| human::change(&judged.effect, row.measure, shift);
        let effect = &judged.effect;
        let needed = judged.runs_needed.map_or_else(String::new, |runs| {
            format!(", {} might decide", counted(runs as u64, "run"))
        });
        let place = match places.len() {
            0 | 1 => String::new(),
            _ => format!(" ({})", told_apart(&row.place, &places)),
        };
        let interval = if effect.low.is_finite() || effect.high.is_finite() {
            format!("from {} to {}", change(effect.low), change(effect.high))
        } else {
            "so few runs set no interval".to_owned()
        };
        Some((
            format!("{}{place}", spoken(&row.metric)),
            format!(
                "{} against {}: {} ({interval}), {}{needed}",
                row.arm,
                row.base,
                changed(effect, row.measure),
                judged.verdict?.words(),
            ),
        ))
    });
    told.take(4 * NAMED).collect()
}

fn pictures(sets: &[&Set], rows: &[MetricRow], settings: &Settings, shown: &[Shown]) -> Vec<Chart> {
    let drawn = |row: &&MetricRow| shown.iter().any(|it| it.metric == row.metric);
    let drawn: Vec<MetricRow> = rows.iter().filter(drawn).cloned().collect();
    let mut charts = vec![
        every_run(sets, shown, rows, shown_value),
        changes(&drawn, settings, shown),
    ];
    charts.retain(|chart| !chart.body.is_empty());
    charts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_names_that_people_use() {
        assert_eq!(
            spoken("deadline.ui.frame.missed"),
            "ui frame: missed deadlines"
        );
        assert_eq!(spoken("span.make.make.length_ns_p99"), "make: p99");
        assert_eq!(spoken("machine.elapsed_ns"), "time to end");
        assert_eq!(spoken("all.wakeup_ns_p99"), "all.wakeup_ns_p99");
    }
}
