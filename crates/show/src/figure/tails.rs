//! How long tasks waited, as tails: which share of a group's waits is at least so long.

use super::chart::{Body, Chart, Curve, Join};
use super::ink::Ink;
use super::run::millionths;
use super::scale::{Axis, Quantity};
use stats::{Histogram, Tails};

/// Groups that are drawn; those with the longest waits.
const GROUPS_SHOWN: usize = 9;
/// Shorter waits stand at the left edge: no clock that people have sees them.
const LEAST: u64 = 1_000;

/// A panel for each group, and in it a curve for each scheduler: the share of the waits that are at
/// least as long as the place below says. Both axes are logarithmic.
#[must_use]
pub fn tails(runs: &[(&str, &Tails)], subtitle: &str) -> Chart {
    let inks = Ink::of_schedulers(runs.iter().map(|(name, _)| *name));
    let mut groups: Vec<(&str, u64)> = Vec::new();
    for (name, waits) in runs.iter().flat_map(|(_, tails)| &tails.groups) {
        let longest = waits.max().map_or(0, model::Nanos::get);
        match groups.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = longest.max(*known),
            None => groups.push((name, longest)),
        }
    }
    groups.retain(|(_, longest)| *longest > 0);
    let all = groups.len();
    let mut kept: Vec<usize> = (0..all).collect();
    kept.sort_by_key(|at| std::cmp::Reverse(groups[*at].1));
    kept.truncate(GROUPS_SHOWN);
    kept.sort_unstable();
    let panels = kept.into_iter().map(|at| {
        let name = groups[at].0;
        let curves = runs
            .iter()
            .zip(&inks)
            .filter_map(|((run, tails), ink)| Some(tail(run, *ink, tails.find(name)?)));
        (name.to_owned(), curves.collect())
    });
    let more = match all.saturating_sub(GROUPS_SHOWN) {
        0 => String::new(),
        left => format!(" {left} groups with shorter waits are not drawn."),
    };
    let logarithmic = |label: &str, quantity| Axis {
        logarithmic: true,
        ..Axis::new(label, quantity)
    };
    let named = runs.iter().zip(&inks);
    let names = named
        .map(|((name, _), ink)| ((*name).to_owned(), *ink))
        .collect();
    let panels: Vec<(String, Vec<Curve>)> = panels.collect();
    Chart {
        id: "tails".into(),
        title: "How long tasks waited for a CPU".into(),
        subtitle: subtitle.to_owned(),
        description: format!(
            "Which share of a group's waits is at least as long as the time below: the further \
             left and the lower a curve ends, the better. All waits count: after a wakeup, at the \
             start and after a preemption. Those below 1 \u{b5}s stand at the left edge.{more}"
        ),
        body: Body::Grid {
            x: logarithmic("wait", Quantity::Time),
            y: logarithmic("share of waits at least so long", Quantity::Share),
            names,
            panels,
        },
    }
}

/// One curve: between two values it has the share of those that are not shorter than the second.
fn tail(name: &str, ink: Ink, waits: &Histogram) -> Curve {
    let mut points = Vec::new();
    let mut left = waits.count();
    let mut from = LEAST;
    for (value, count) in waits.values() {
        points.push((from, Some(millionths(left, waits.count()))));
        from = value.max(LEAST);
        left -= count;
        if left == 0 {
            points.push((from, Some(millionths(count, waits.count()))));
        }
    }
    points.dedup_by(|later, earlier| {
        // Of values at one place the last one counts.
        let is_same = later.0 == earlier.0;
        if is_same && later.0 == LEAST {
            return false;
        }
        is_same && later.1 == earlier.1
    });
    Curve {
        name: name.to_owned(),
        ink,
        join: Join::Step,
        points,
    }
}

#[cfg(test)]
mod tests {
    use model::Nanos;

    use super::*;

    fn waits(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values
            .iter()
            .for_each(|it| histogram.record(Nanos::new(*it)));
        histogram
    }

    #[test]
    fn a_tail_begins_with_all_waits_and_ends_with_the_longest() {
        let curve = tail("fifo", Ink::GREY, &waits(&[0, 2_000, 2_000, 250_000]));
        let want = [
            (1_000, Some(1_000_000)),
            (1_000, Some(750_000)),
            (2_000, Some(250_000)),
            (curve.points[3].0, Some(250_000)),
        ];
        assert_eq!(curve.points, want);
        assert!(curve.points[3].0 >= 250_000);
        assert!(tail("fifo", Ink::GREY, &waits(&[])).points.is_empty());
    }

    #[test]
    fn groups_are_not_mixed_and_runs_are_added() {
        let of = |pointer: &[u64]| {
            Tails::new(vec![
                ("pointer".to_owned(), waits(pointer)),
                ("hog".to_owned(), waits(&[9_000_000])),
                ("idle".to_owned(), waits(&[])),
            ])
        };
        let mut several = of(&[2_000]);
        several.merge(&of(&[4_000]));
        let chart = tails(&[("fifo", &several), ("mlfq", &of(&[2_000]))], "here");
        let Body::Grid { panels, names, .. } = chart.body else {
            panic!("a grid");
        };
        let called: Vec<&str> = panels.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            called,
            ["pointer", "hog"],
            "a group that never waits has no tail"
        );
        assert_eq!(panels[0].1[0].points.len(), 3, "two runs");
        assert_eq!(panels[0].1[1].ink, names[1].1);
    }
}
