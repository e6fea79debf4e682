//! Sets of runs beside each other: every run as a dot, and how far sets are apart.
//!
//! Places on the axes are whole numbers; where they are made of floating point, the logarithms are
//! those of [`stats::compare`], so that figures are the same on every computer.

mod changes;

use super::chart::{Body, Chart, DotPanel, DotRow};
use super::ink::Ink;
use super::scale::{Axis, Quantity};
use crate::comparison::unit;
use stats::compare::{Extent, Measure, MetricRow, Scale, Set};

pub use changes::changes;

/// Panels of one figure.
const PANELS_MAX: usize = 24;
/// Dots of one row: more lie on top of each other.
const DOTS_MAX: usize = 400;
/// Larger values would not fit; nothing is so large.
const LARGEST: f64 = 1e17;
/// What stands behind the name of a panel in which equal steps multiply.
const LOGARITHMIC: &str = " (log axis)";

/// A metric that is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its name in the sets.
    pub metric: String,
    /// Its name for people.
    pub title: String,
}

/// How a value is told to people.
type Says = fn(Measure, f64) -> String;

/// What values of this kind are on an axis, and how many steps of it one of them is.
const fn quantity(measure: Measure) -> (Quantity, f64) {
    match measure {
        Measure::Nanos => (Quantity::Time, 1.0),
        Measure::Count => (Quantity::Thousandths, 1e3),
        Measure::Rate => (Quantity::Rate, 1e3),
        Measure::Millionths => (Quantity::Share, 1.0),
        Measure::Thousandths => (Quantity::Thousandths, 1.0),
        Measure::Bytes => (Quantity::Thousandths, 1e3 / 1_048_576.0),
        Measure::Microjoules => (Quantity::Thousandths, 1.0),
    }
}

/// A value as a place on its axis.
fn place(measure: Measure, value: f64) -> u64 {
    (value * quantity(measure).1).round().clamp(0.0, LARGEST) as u64
}

/// The parts of a load's or machine's name, between commas, that not all of several have. The whole
/// name, if there are none.
#[must_use]
pub fn told_apart(place: &str, places: &[&str]) -> String {
    let has = |whole: &str, part: &str| whole.split(", ").any(|it| it == part);
    let own = place.split(", ");
    let own = own.filter(|part| !places.iter().all(|it| has(it, part)));
    let own: Vec<&str> = own.collect();
    if own.is_empty() {
        place.to_owned()
    } else {
        own.join(", ")
    }
}

/// Every run of every set as a dot, with the median, a panel for each metric of `shown` that any
/// set has, and a row for each set. `rows` are the comparisons, if some were made: their interval
/// is drawn around the place where the baseline's mean would be under the other scheduler.
#[must_use]
pub fn every_run(sets: &[&Set], shown: &[Shown], rows: &[MetricRow], says: Says) -> Chart {
    let mut places: Vec<&str> = sets.iter().map(|set| set.place.as_str()).collect();
    places.dedup();
    places.sort_unstable();
    places.dedup();
    let inks = Ink::of_schedulers(sets.iter().map(|set| set.arm.as_str()));
    let inked: Vec<(&Set, Ink)> = sets.iter().copied().zip(inks).collect();
    let (mut panels, mut alike) = (Vec::new(), Vec::new());
    for place in &places {
        for metric in shown {
            let here: Vec<&MetricRow> = rows
                .iter()
                .filter(|row| row.place == **place && row.metric == metric.metric)
                .collect();
            let Some((panel, measure)) = run_panel(&inked, (place, metric), &here, says) else {
                continue;
            };
            let name = match places.len() {
                1 => metric.title.clone(),
                _ => format!("{}, {}", metric.title, told_apart(place, &places)),
            };
            let panel = DotPanel { name, ..panel };
            match one_value(&panel) {
                Some(at) => alike.push((panel, says(measure, at as f64 / quantity(measure).1))),
                None => panels.push(panel),
            }
        }
    }
    let alike = if panels.is_empty() {
        // A page without a picture would look broken.
        panels.extend(alike.into_iter().map(|(panel, _)| panel));
        String::new()
    } else {
        let said = alike
            .iter()
            .map(|(panel, value)| format!("{} {value}", panel.name));
        let said: Vec<String> = said.collect();
        match said.as_slice() {
            [] => String::new(),
            said => format!(" The same in all runs: {}.", said.join("; ")),
        }
    };
    let left = panels.len().saturating_sub(PANELS_MAX);
    panels.truncate(PANELS_MAX);
    panels.iter_mut().for_each(fit);
    let more = match left {
        0 => String::new(),
        left => format!(" {left} more of these are in the tables only."),
    };
    let median = if sets.iter().any(|set| set.runs > 1) {
        ", the upright line the median of a scheduler's runs"
    } else {
        ""
    };
    let interval = if rows.is_empty() {
        ""
    } else {
        " The pale bar is the interval of the difference from the baseline."
    };
    Chart {
        id: "runs".into(),
        title: "Every run".into(),
        subtitle: places
            .iter()
            .take(2)
            .copied()
            .collect::<Vec<_>>()
            .join("; "),
        description: format!("Each dot is a run{median}.{interval}{alike}{more}"),
        body: Body::Dots { panels },
    }
}

/// The runs of all sets at a place, with what their values are; `None` if no set has the metric.
/// `rows` are those of the panel.
fn run_panel(
    sets: &[(&Set, Ink)],
    (place, metric): (&str, &Shown),
    rows: &[&MetricRow],
    says: Says,
) -> Option<(DotPanel, Measure)> {
    let here = || sets.iter().filter(|(set, _)| set.place == place);
    let series = here().find_map(|(set, _)| set.find(&metric.metric))?;
    let mut units = rows.iter().map(|row| unit(row));
    let scale = units.find(|it| it.0 != series.measure);
    let scale = scale.unwrap_or((series.measure, 1.0));
    let measure = scale.0;
    let of = |(set, ink): &(&Set, Ink)| {
        let row = rows.iter().copied().find(|row| row.arm == set.arm);
        run_row(set, *ink, metric, (row, scale), says)
    };
    let panel = DotPanel {
        name: String::new(),
        span: None,
        marks: Vec::new(),
        origin: None,
        rows: here().map(of).collect(),
        axis: Axis::new(unit_name(measure), quantity(measure).0),
    };
    Some((panel, measure))
}

/// The one value of all rows, if there are several and all have it.
fn one_value(panel: &DotPanel) -> Option<u64> {
    let (first, _) = panel.rows.first()?.dots.first()?;
    let is_all = |row: &DotRow| !row.dots.is_empty() && row.dots.iter().all(|it| it.0 == *first);
    (panel.rows.len() > 1 && panel.rows.iter().all(is_all)).then_some(*first)
}

const fn unit_name(measure: Measure) -> &'static str {
    match measure {
        Measure::Bytes => "MiB",
        Measure::Microjoules => "mJ",
        Measure::Nanos | Measure::Count | Measure::Rate => "",
        Measure::Millionths | Measure::Thousandths => "",
    }
}

/// A set's row; `scale` says in what its values are read, and how much of that one is.
fn run_row(
    set: &Set,
    ink: Ink,
    shown: &Shown,
    (row, scale): (Option<&MetricRow>, (Measure, f64)),
    says: Says,
) -> DotRow {
    let series = set.find(&shown.metric);
    let values = series.map_or(&[][..], |it| &it.values);
    let (measure, one) = scale;
    let values: Vec<f64> = values.iter().map(|it| it * one).collect();
    let values = values.as_slice();
    let dots = values.iter().enumerate().take(DOTS_MAX).map(|(at, value)| {
        let seed = series.and_then(|it| it.seeds[at]);
        let seed = seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
        let text = format!("{}: {}{seed}", set.arm, says(measure, *value));
        (place(measure, *value), text)
    });
    let median = Extent::of(values).filter(|it| it.runs > 1).map(|it| {
        let text = format!("{}: median {}", set.arm, says(measure, it.median));
        (place(measure, it.median), text)
    });
    let value = match (values.is_empty(), set.void) {
        (true, 0) => "no value".to_owned(),
        (true, _) => "ejected".to_owned(),
        (false, _) => Extent::of(values).map_or_else(String::new, |it| says(measure, it.median)),
    };
    DotRow {
        name: set.arm.clone(),
        ink,
        dots: dots.collect(),
        value,
        bar: row.and_then(|row| bar(row, scale)),
        middle: median,
        published: None,
    }
}

/// The interval of a difference, around where the baseline is: both ends.
fn bar(row: &MetricRow, (measure, one): (Measure, f64)) -> Option<(u64, u64)> {
    let effect = &row.result.as_ref().ok()?.effect;
    if !effect.low.is_finite() || !effect.high.is_finite() {
        return None;
    }
    let ends = [effect.low, effect.high].map(|end| match effect.scale {
        // Shifts are between means of logarithms; around the mean of the other set they differ
        // from those by nothing that could be seen.
        Scale::Log => effect.other * libm::exp(end - effect.shift),
        Scale::Linear => effect.other + end - effect.shift,
    });
    let ends = ends.map(|end| match measure {
        // No share is more than all.
        Measure::Millionths => (end * one).min(1e6),
        _ => end * one,
    });
    Some((place(measure, ends[0]), place(measure, ends[1])))
}

/// Chooses where the axis begins, and whether equal steps multiply.
fn fit(panel: &mut DotPanel) {
    let rows = panel.rows.iter();
    let values = rows.flat_map(|row| {
        let dots = row.dots.iter().map(|(at, _)| *at);
        let bar = row.bar.into_iter().flat_map(|(from, to)| [from, to]);
        let single = [&row.middle, &row.published]
            .into_iter()
            .flatten()
            .map(|(at, _)| *at);
        dots.chain(bar).chain(single)
    });
    let (low, high) = values.fold((u64::MAX, 0), |(low, high), it| (low.min(it), high.max(it)));
    if low > high {
        panel.span = Some((0, 1));
        return;
    }
    if low > 0 && high / low >= 50 {
        panel.axis.logarithmic = true;
        panel.name += LOGARITHMIC;
        panel.span = Some((low - low / 5, high.saturating_add(high / 4)));
        return;
    }
    if high == 0 {
        // Nothing but zeros: the axis must not look as if they were small.
        panel.span = Some((0, 1_000));
        return;
    }
    let room = ((high - low) / 12).max(high / 100).max(1);
    let from = if low < high / 2 {
        0
    } else {
        low.saturating_sub(room)
    };
    panel.span = Some((from, high.saturating_add(room)));
}

#[cfg(test)]
mod tests {
    use super::changes::ORIGIN;
    use super::*;
    use stats::compare::{Better, Choice, MeasuredNumber, Question, Role, Settings, compare};

    fn set(arm: &str, values: &[f64]) -> Set {
        let mut set = Set::new(arm, "desk", "simulated");
        for (seed, value) in (0..).zip(values) {
            let measured = |name: &str, measure, value| MeasuredNumber {
                name: name.to_owned(),
                measure,
                better: Better::Lower,
                role: Role::Goal,
                value,
            };
            let late = measured("late", Measure::Count, *value);
            set.add(
                vec![late, measured("long", Measure::Nanos, 1e6 + value * 1e6)],
                Some(seed),
            );
        }
        set
    }

    fn says(_: Measure, value: f64) -> String {
        format!("{value}")
    }

    fn shown() -> Vec<Shown> {
        ["late", "long", "nobody's"]
            .map(|name| Shown {
                metric: name.to_owned(),
                title: format!("title of {name}"),
            })
            .to_vec()
    }

    fn compared() -> (Set, Set, Vec<MetricRow>) {
        let base = set("fifo", &[4.0, 5.0, 6.0, 5.0, 4.0, 6.0, 5.0, 4.0]);
        let other = set("mlfq", &[0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
        let question = Question {
            base: &base,
            others: std::slice::from_ref(&other),
            again: None,
            only: None,
        };
        let rows = compare(&[question], Choice::Stated, &Settings::default());
        (base, other, rows)
    }

    fn panels(chart: &Chart) -> &[DotPanel] {
        match &chart.body {
            Body::Dots { panels } => panels,
            _ => panic!("dots"),
        }
    }

    #[test]
    fn loads_are_told_apart_by_what_not_all_of_them_are() {
        let places = [
            "desk: 4 CPUs, HZ 250, hogs 1",
            "desk: 4 CPUs, HZ 250, hogs 4",
        ];
        assert_eq!(told_apart(places[1], &places), "hogs 4");
        let places = [
            "desk: 4 CPUs, HZ 250",
            "web: 4 CPUs, HZ 250",
            "web: 8 CPUs, HZ 250",
        ];
        assert_eq!(told_apart(places[2], &places), "web: 8 CPUs");
        assert_eq!(told_apart("desk: 1 CPU", &["desk: 1 CPU"]), "desk: 1 CPU");
        // Without a factor that the other has.
        let places = ["desk: 4 CPUs", "desk: 4 CPUs, hogs 4"];
        assert_eq!(told_apart(places[0], &places), "desk: 4 CPUs");
    }

    #[test]
    fn every_run_is_a_dot_that_names_its_seed_and_the_interval_is_around_the_other_set() {
        let (base, other, rows) = compared();
        let chart = every_run(&[&base, &other], &shown(), &rows, says);
        let panels = panels(&chart);
        assert_eq!(panels.len(), 2, "a metric that no set has is not drawn");
        assert_eq!(panels[0].name, "title of late");
        let [fifo, mlfq] = panels[0].rows.as_slice() else {
            panic!("two rows");
        };
        assert_eq!((fifo.dots.len(), mlfq.dots.len()), (8, 8));
        assert_eq!(fifo.dots[1], (5_000, "fifo: 5, seed 1".to_owned()));
        assert_eq!(fifo.bar, None, "the baseline");
        let (low, high) = mlfq.bar.unwrap();
        assert!(low < 500 && 500 < high && high < 4_000, "{low} {high}");
        assert_eq!(fifo.ink, Ink::of_schedulers(["fifo"])[0]);
    }

    #[test]
    fn panels_in_which_all_are_equal_are_words_unless_there_is_no_other() {
        let same = [set("fifo", &[2.0, 2.0]), set("mlfq", &[2.0, 2.0])];
        let mut sets = same.clone();
        let late = MeasuredNumber {
            name: "late".to_owned(),
            measure: Measure::Count,
            better: Better::Lower,
            role: Role::Goal,
            value: 5.0,
        };
        sets[1].add(vec![late], Some(2));
        let chart = every_run(&[&sets[0], &sets[1]], &shown(), &[], says);
        let names: Vec<&str> = panels(&chart).iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["title of late"]);
        let said = "The same in all runs: title of long 3000000.";
        assert!(chart.description.ends_with(said), "{}", chart.description);
        let chart = every_run(&[&same[0], &same[1]], &shown(), &[], says);
        assert_eq!(panels(&chart).len(), 2);
        assert!(!chart.description.contains("same"), "{}", chart.description);
    }

    #[test]
    fn a_row_ends_with_its_median_or_says_why_there_is_none() {
        let mut gone = Set::new("bad", "desk", "simulated");
        gone.void = 1;
        let fifo = set("fifo", &[1.0, 3.0, 70.0]);
        let chart = every_run(&[&fifo, &gone], &shown()[..1], &[], says);
        let panel = &panels(&chart)[0];
        let values: Vec<&str> = panel.rows.iter().map(|it| it.value.as_str()).collect();
        assert_eq!(values, ["3", "ejected"]);
        assert_eq!(panel.name, "title of late (log axis)");
    }

    #[test]
    fn missed_deadlines_are_drawn_as_the_shares_that_tables_have() {
        let (base, other, mut rows) = compared();
        rows.iter_mut().for_each(|row| {
            row.named.share_of_one = (row.metric == "late").then_some(1e5);
        });
        let chart = every_run(&[&base, &other], &shown()[..1], &rows, |_, it| {
            format!("{it}")
        });
        let fifo = &panels(&chart)[0].rows[0];
        assert_eq!(fifo.dots[1], (500_000, "fifo: 500000, seed 1".to_owned()));
        let chart = changes(&rows, &Settings::default(), &shown());
        let late = &panels(&chart)[0];
        assert!(
            late.marks
                .last()
                .is_some_and(|it| it.1.ends_with(" points"))
        );
        assert!(late.rows[0].value.ends_with(" points, better"));
    }

    #[test]
    fn changes_have_their_line_and_band_and_marks_on_both_sides_of_it() {
        let (.., rows) = compared();
        let chart = changes(&rows, &Settings::default(), &shown());
        assert_eq!(chart.subtitle, "baseline fifo");
        let panels = panels(&chart);
        // Zeros make a difference of the one, the other has a ratio.
        let late = &panels[0];
        let origin = late.origin.unwrap();
        assert_eq!(origin, (ORIGIN, (ORIGIN - 1_000, ORIGIN + 1_000)));
        let marks: Vec<&str> = late.marks.iter().map(|(_, text)| text.as_str()).collect();
        assert!(
            marks.contains(&"0") && marks.contains(&"\u{2212}2"),
            "{marks:?}"
        );
        let long: Vec<&str> = panels[1]
            .marks
            .iter()
            .map(|(_, text)| text.as_str())
            .collect();
        assert!(long.contains(&"\u{d7} 1"), "{long:?}");
        let (at, told) = panels[1].rows[0].middle.clone().unwrap();
        assert!(at < ORIGIN);
        assert!(told.starts_with("mlfq against fifo: -4.3"), "{told}");
        assert!(told.ends_with(" ms), better"), "{told}");
        assert!(panels[1].rows[0].value.ends_with(" ms, better"), "{told}");
        // The runs are four times as long: equal factors have equal distances.
        assert_eq!(panels[1].name, "title of long (log axis)");
        assert_eq!(late.name, "title of late");
    }
}
