//! A comparison in words: differences in the unit of the thing, the ratio beside it, and better or
//! worse.

use stats::compare::{Effect, Extent, JudgedSets, Measure, MetricRow, Scale, Verdict};

use crate::Tone;
use crate::value::shown_value;

/// A verdict as people read it: what is compared is not always a speed.
#[must_use]
pub const fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "better",
        Verdict::Slower => "worse",
        other => other.words(),
    }
}

/// How a verdict stands out.
pub const fn tone(verdict: Option<Verdict>) -> Tone {
    match verdict {
        Some(Verdict::Faster) => Tone::Good,
        Some(Verdict::Slower) => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// In what people read the values of a row, and how much of that one of its values is: missed
/// deadlines are read as a share of all.
pub fn unit(row: &MetricRow) -> (Measure, f64) {
    match row.named.share_of_one {
        Some(share) => (Measure::Millionths, share),
        None => (row.measure, 1.0),
    }
}

/// A value of a row.
pub fn value(row: &MetricRow, value: f64) -> String {
    let (measure, one) = unit(row);
    shown_value(measure, value * one)
}

/// The median of one side of a row; a dash if it has no values.
pub fn median(row: &MetricRow, side: Option<Extent>) -> String {
    side.map_or_else(|| "-".to_owned(), |it| value(row, it.median))
}

/// How far a shift puts the second mean from the first, in the unit of the row; a dash for an end
/// that so few runs do not set.
pub fn difference(row: &MetricRow, effect: &Effect, shift: f64) -> String {
    if !shift.is_finite() {
        return "-".to_owned();
    }
    let (measure, one) = unit(row);
    let by = one
        * match effect.scale {
            Scale::Log => effect.other * libm::exp(shift - effect.shift) - effect.base,
            Scale::Linear => shift,
        };
    let signed = |number: f64| {
        if number.abs() < 0.05 {
            "0.0".to_owned()
        } else {
            format!("{number:+.1}")
        }
    };
    match measure {
        Measure::Millionths => format!("{} points", signed(by / 1e4)),
        Measure::Count => signed(by),
        _ => {
            let sign = if by < 0.0 { "-" } else { "+" };
            format!("{sign}{}", shown_value(measure, by.abs()))
        }
    }
}

/// An end of a difference's interval, whose unit stands beside it.
pub fn end(row: &MetricRow, effect: &Effect, shift: f64) -> String {
    let text = difference(row, effect, shift);
    text.trim_end_matches(" points").to_owned()
}

/// The second mean by the first; a dash where there is none, because the first is 0.
pub fn ratio(effect: &Effect, shift: f64) -> String {
    let ratio = match effect.scale {
        Scale::Log => libm::exp(shift),
        Scale::Linear if effect.base > 0.0 => (effect.base + shift) / effect.base,
        Scale::Linear => f64::NAN,
    };
    match ratio {
        _ if !ratio.is_finite() || !shift.is_finite() => "-".to_owned(),
        9.95.. => format!("x {ratio:.0}"),
        0.095.. => format!("x {ratio:.2}"),
        0.0005.. => format!("x {ratio:.3}"),
        _ => "x 0".to_owned(),
    }
}

/// The verdict with its probability.
pub fn certainty(judged: &JudgedSets) -> String {
    let Some(verdict) = judged.verdict else {
        return String::new();
    };
    let p = match verdict {
        Verdict::NoDifference => judged.p_same_holm,
        _ => judged.p_holm,
    };
    let p = match p {
        ..0.001 => "p < 0.001".to_owned(),
        p => format!("p {p:.3}"),
    };
    format!("{}, {p}", verdict_words(verdict))
}

/// Each once, in the order in which they first come.
pub fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for it in all {
        if !found.contains(&it) {
            found.push(it);
        }
    }
    found
}

/// Whether all runs of both sets have one value: of a load that ends by the clock its length.
pub fn is_alike(row: &MetricRow) -> bool {
    let extents = [row.base_extent, row.arm_extent];
    let [Some(base), Some(arm)] = extents else {
        return false;
    };
    // Two runs that a clock ends differ by a context switch at most.
    let (least, most) = (base.min.min(arm.min), base.max.max(arm.max));
    most <= least * (1.0 + 1e-3)
}

#[cfg(test)]
mod tests {
    use stats::compare::{Better, Named, Settings, Values, effect};

    use super::*;

    fn row(measure: Measure, share_of_one: Option<f64>) -> MetricRow {
        MetricRow {
            metric: "m".to_owned(),
            named: Named {
                title: "m".to_owned(),
                share_of_one,
            },
            measure,
            better: Better::Lower,
            is_goal: true,
            base: "a".to_owned(),
            arm: "b".to_owned(),
            place: String::new(),
            world: String::new(),
            base_extent: None,
            arm_extent: None,
            outliers: [Vec::new(), Vec::new()],
            result: Err(stats::compare::Refusal::Missing),
        }
    }

    fn of(values: &[f64], measure: Measure) -> Effect {
        let values = Values::Apart(values.to_vec(), values.to_vec());
        effect(&values, measure, 0, &Settings::default()).expect("two values")
    }

    #[test]
    fn a_difference_has_the_unit_of_the_thing_and_its_ratio_beside_it() {
        let wait = of(&[1e6, 3e6], Measure::Nanos);
        let in_time = row(Measure::Nanos, None);
        assert_eq!(difference(&in_time, &wait, 0.5_f64.ln()), "-1.00 ms");
        assert_eq!(difference(&in_time, &wait, 3.0_f64.ln()), "+4.00 ms");
        assert_eq!(difference(&in_time, &wait, f64::NEG_INFINITY), "-");
        for (factor, want) in [
            (0.5, "x 0.50"),
            (12.34, "x 12"),
            (0.0123, "x 0.012"),
            (1e-5, "x 0"),
        ] {
            assert_eq!(ratio(&wait, f64::ln(factor)), want);
        }
        assert_eq!(ratio(&wait, f64::INFINITY), "-");
        // Missed deadlines are read as a share: here each is a fiftieth of all.
        let missed = of(&[0.0, 10.0], Measure::Count);
        let as_share = row(Measure::Count, Some(2e4));
        assert_eq!(value(&as_share, 10.0), "20.0 %");
        assert_eq!(difference(&as_share, &missed, -4.0), "-8.0 points");
        assert_eq!(difference(&as_share, &missed, -0.01), "0.0 points");
        assert_eq!(
            difference(&row(Measure::Count, None), &missed, -4.0),
            "-4.0"
        );
        assert_eq!(ratio(&missed, -4.0), "x 0.20");
        let never = of(&[0.0, 0.0], Measure::Count);
        assert_eq!(ratio(&never, 4.0), "-", "nothing is a multiple of zero");
    }
}
