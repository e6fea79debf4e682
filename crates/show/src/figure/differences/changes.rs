//! How far sets of runs are apart: a panel for each goal, with the estimates and their intervals.

use super::{LARGEST, LOGARITHMIC, PANELS_MAX, Shown, quantity, told_apart};
use crate::comparison::{difference, unit, verdict_words};
use crate::figure::chart::{Body, Chart, DotPanel, DotRow};
use crate::figure::ink::Ink;
use crate::figure::scale::{Axis, Quantity};
use stats::compare::{Measure, MetricRow, Scale, Settings};

/// Where no difference stands on an axis of differences, which has negative values too.
pub(super) const ORIGIN: u64 = 1 << 60;
/// Steps of such an axis for a shift of 1 on the scale of logarithms.
const LOG_STEPS: f64 = 1e6;
/// Marks of an axis of differences.
const MARKS_MAX: usize = 5;

/// A place on an axis of differences.
fn beside(steps: f64) -> u64 {
    ORIGIN.saturating_add_signed(steps.round().clamp(-LARGEST, LARGEST) as i64)
}

/// How far each scheduler is from the baseline: the estimate with its interval, a panel for each
/// goal, with a line at no difference and a band of those that are too small to matter.
#[must_use]
pub fn changes(rows: &[MetricRow], settings: &Settings, titles: &[Shown]) -> Chart {
    let goals: Vec<&MetricRow> = rows
        .iter()
        .filter(|row| row.is_goal && row.result.is_ok())
        .collect();
    let names = rows
        .iter()
        .flat_map(|row| [row.base.as_str(), row.arm.as_str()]);
    let names: Vec<&str> = names.collect();
    let inks = Ink::of_schedulers(names.iter().copied());
    let ink = |arm: &str| {
        names
            .iter()
            .position(|it| *it == arm)
            .map_or(Ink::GREY, |at| inks[at])
    };
    let mut panels: Vec<(&MetricRow, Vec<&MetricRow>)> = Vec::new();
    for row in goals {
        let same = |(first, _): &&mut (&MetricRow, Vec<&MetricRow>)| {
            // Differences and shares have axes of their own.
            let scale = |row: &MetricRow| row.result.as_ref().ok().map(|it| it.effect.scale);
            (&first.metric, &first.place, &first.base, scale(first))
                == (&row.metric, &row.place, &row.base, scale(row))
        };
        match panels.iter_mut().find(same) {
            Some((_, of)) => of.push(row),
            None => panels.push((row, vec![row])),
        }
    }
    let left = panels.len().saturating_sub(PANELS_MAX);
    panels.truncate(PANELS_MAX);
    let places: Vec<&str> = rows.iter().map(|row| row.place.as_str()).collect();
    let has_places = panels.iter().any(|(row, _)| row.place != panels[0].0.place);
    let drawn = panels.iter().map(|(first, of)| {
        let title = titles.iter().find(|it| it.metric == first.metric);
        let title = title.map_or(first.metric.as_str(), |it| it.title.as_str());
        let name = if has_places {
            format!("{title}, {}", told_apart(&first.place, &places))
        } else {
            title.to_owned()
        };
        let rows = of.iter().map(|row| change_row(row, ink(&row.arm)));
        change_panel(name, first, rows.collect(), settings)
    });
    let more = match left {
        0 => String::new(),
        left => format!(" {left} more of these are in the tables only."),
    };
    Chart {
        id: "changes".into(),
        title: "How far from the baseline".into(),
        subtitle: baseline(rows),
        description: format!(
            "The estimate of each difference and its interval of {} %. The line is no difference, \
             and differences inside of the band are too small to matter.{more}",
            (1.0 - settings.level()) * 100.0
        ),
        body: Body::Dots {
            panels: drawn.collect(),
        },
    }
}

fn baseline(rows: &[MetricRow]) -> String {
    let mut names: Vec<&str> = rows.iter().map(|row| row.base.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [one] => format!("baseline {one}"),
        several => format!("baselines {}", several.join(", ")),
    }
}

/// A shift as a number of steps of the axis.
fn steps(scale: Scale, row: &MetricRow, shift: f64) -> f64 {
    let (measure, one) = unit(row);
    match scale {
        Scale::Log => shift * LOG_STEPS,
        Scale::Linear => shift * one * quantity(measure).1,
    }
}

/// A ratio as a change.
fn ratio(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    let digits = usize::from(change.abs() < 10.0 && (change - change.round()).abs() > 1e-6);
    match change {
        ..-1e-9 => format!("\u{2212}{:.digits$} %", -change),
        1e-9.. => format!("+{change:.digits$} %"),
        _ => "0 %".to_owned(),
    }
}

/// A ratio as a factor, with two digits at the least.
fn factor(ratio: f64) -> String {
    let digits = (1.0 - libm::floor(libm::log10(ratio))).clamp(0.0, 9.0) as usize;
    let written = format!("{ratio:.digits$}");
    if written.contains('.') {
        let written = written.trim_end_matches('0').trim_end_matches('.');
        return format!("\u{d7} {written}");
    }
    format!("\u{d7} {written}")
}

fn change_row(row: &MetricRow, ink: Ink) -> DotRow {
    let found = row.result.as_ref().ok();
    let middle = found.map(|judged| {
        let effect = &judged.effect;
        let said = |shift| difference(row, effect, shift);
        let interval = if effect.low.is_finite() && effect.high.is_finite() {
            format!(" ({} to {})", said(effect.low), said(effect.high))
        } else {
            String::new()
        };
        let verdict = judged.verdict.map_or("", verdict_words);
        let (arm, base) = (&row.arm, &row.base);
        let text = format!(
            "{arm} against {base}: {}{interval}, {verdict}",
            said(effect.shift)
        );
        (beside(steps(effect.scale, row, effect.shift)), text)
    });
    DotRow {
        name: row.arm.clone(),
        ink,
        dots: Vec::new(),
        value: found.map_or_else(String::new, |judged| {
            let verdict = judged.verdict.map(|it| format!(", {}", verdict_words(it)));
            let shift = difference(row, &judged.effect, judged.effect.shift);
            shift + &verdict.unwrap_or_default()
        }),
        bar: found.map(|judged| {
            let effect = &judged.effect;
            let end = |shift| beside(steps(effect.scale, row, shift));
            (end(effect.low), end(effect.high))
        }),
        middle,
        published: None,
    }
}

fn change_panel(name: String, row: &MetricRow, rows: Vec<DotRow>, settings: &Settings) -> DotPanel {
    let scale = row.result.as_ref().map_or(Scale::Log, |it| it.effect.scale);
    let margin = steps(scale, row, scale.margin(settings, row.measure)).abs();
    // An end that so few runs do not set is no part of the axis; the bar goes to its edge.
    let is_set = |at: &u64| at.abs_diff(ORIGIN) < LARGEST as u64;
    let places = rows.iter().flat_map(|row| {
        let bar = row.bar.into_iter().flat_map(|(from, to)| [from, to]);
        bar.chain(row.middle.as_ref().map(|(at, _)| *at))
    });
    let around = [beside(-2.0 * margin), beside(2.0 * margin)];
    let places: Vec<u64> = places.filter(is_set).chain(around).collect();
    let low = places.iter().copied().min().unwrap_or(ORIGIN);
    let high = places.iter().copied().max().unwrap_or(ORIGIN);
    let room = ((high - low) / 20).max(1);
    let span = (low - room, high + room);
    let steps_of = |at: u64| at.wrapping_sub(ORIGIN).cast_signed() as f64;
    let ends = (steps_of(span.0), steps_of(span.1));
    // In a narrow range equal factors and equal steps look the same.
    let is_wide = scale == Scale::Log && ends.1 - ends.0 > libm::log(3.0) * LOG_STEPS;
    let name = if is_wide { name + LOGARITHMIC } else { name };
    let marks = match scale {
        Scale::Log => ratio_marks(ends.0 / LOG_STEPS, ends.1 / LOG_STEPS),
        Scale::Linear => difference_marks(ends, unit(row).0),
    };
    DotPanel {
        name,
        axis: Axis::new("", Quantity::Count),
        span: Some(span),
        marks,
        origin: Some((ORIGIN, (beside(-margin), beside(margin)))),
        rows,
    }
}

/// Marks at round changes: in per cent while they are few, as factors where the range is wide.
fn ratio_marks(low: f64, high: f64) -> Vec<(u64, String)> {
    let (least, most) = (libm::exp(low), libm::exp(high));
    let place = |ratio: f64| beside(libm::log(ratio) * LOG_STEPS);
    let mark = |times: f64| (place(times), factor(times));
    // Far apart, equal factors stand at equal distances, and round percentages do not.
    let percents: &[f64] = if most / least < 3.0 {
        &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
    } else {
        &[]
    };
    for &percent in percents {
        let (from, to) = (
            (least - 1.0) * 100.0 / percent,
            (most - 1.0) * 100.0 / percent,
        );
        let (from, to) = (from.ceil(), to.floor());
        if to - from < MARKS_MAX as f64 {
            let all = (from as i64..=to as i64).map(|at| 1.0 + at as f64 * percent / 100.0);
            let all = all.filter(|it| *it > 0.0);
            return all.map(|it| (place(it), ratio(it))).collect();
        }
    }
    for times in [2.0_f64, 4.0, 10.0, 100.0, 1e4, 1e8] {
        let unit = libm::log(times);
        let (from, to) = ((low / unit).ceil(), (high / unit).floor());
        if to - from < MARKS_MAX as f64 {
            let all = (from as i64..=to as i64).map(|at| libm::exp(at as f64 * unit));
            return all.map(mark).collect();
        }
    }
    vec![mark(1.0)]
}

/// Marks at 1, 2 or 5 times a power of ten.
fn difference_marks((low, high): (f64, f64), measure: Measure) -> Vec<(u64, String)> {
    let (quantity, _) = quantity(measure);
    let mut step = 1.0;
    'found: loop {
        for times in [1.0, 2.0, 5.0] {
            if (high - low) / (step * times) <= MARKS_MAX as f64 {
                step *= times;
                break 'found;
            }
        }
        step *= 10.0;
    }
    let (from, to) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    let marks = (from..=to).map(|at| {
        let value = at as f64 * step;
        let sign = match at {
            0 => "",
            1.. => "+",
            _ => "\u{2212}",
        };
        let written = quantity.written(value.abs() as u64);
        // Between two shares lie points, which are no per cent of anything.
        let written = written.trim_end_matches(" %");
        (beside(value), format!("{sign}{written}"))
    });
    let mut marks: Vec<(u64, String)> = marks.collect();
    if let Some((_, last)) = marks.last_mut().filter(|_| measure == Measure::Millionths) {
        *last += " points";
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_ratios_are_few_and_round_over_any_range() {
        for wide in [0.001, 0.02, 0.3, 1.0, 3.0, 9.0, 40.0] {
            let marks = ratio_marks(-wide, wide / 2.0);
            assert!((1..=6).contains(&marks.len()), "{wide}: {marks:?}");
            assert!(
                marks.iter().any(|(at, _)| *at == ORIGIN),
                "{wide}: {marks:?}"
            );
        }
        // Each stands where a row of that change has its dot.
        for (change, text) in [(0.8, "\u{2212}20 %"), (1.0, "0 %"), (1.2, "+20 %")] {
            let mark = (beside(libm::log(change) * LOG_STEPS), text.to_owned());
            let marks = ratio_marks(-0.3, 0.3);
            assert!(marks.contains(&mark), "{mark:?} {marks:?}");
        }
        assert_eq!(ratio(1.5), "+50 %");
        assert_eq!(ratio(0.975), "\u{2212}2.5 %");
    }

    #[test]
    fn an_axis_of_ratios_has_one_kind_of_marks() {
        let texts = |low: f64, high: f64| -> Vec<String> {
            let marks = ratio_marks(libm::log(low), libm::log(high));
            marks.into_iter().map(|(_, text)| text).collect()
        };
        let times =
            |of: &[&str]| -> Vec<String> { of.iter().map(|it| format!("\u{d7} {it}")).collect() };
        assert_eq!(texts(0.2, 70.0), times(&["0.25", "1", "4", "16", "64"]));
        assert_eq!(texts(0.4, 1.3), times(&["0.5", "1"]));
        assert_eq!(
            texts(0.0005, 20.0),
            times(&["0.001", "0.01", "0.1", "1", "10"])
        );
        assert_eq!(texts(0.7, 1.3)[0], "\u{2212}20 %");
    }
}
