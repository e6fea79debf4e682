//! What a figure of a run may be at most or at least: `p99 wait of pointer < 20ms`.

use model::{Advised, Nanos, span};
use stats::compare::Measure;

use crate::goal::Goal;

/// A limit of a goal.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// What is measured.
    pub goal: Goal,
    /// Whether the value must be below [`Limit::value`], and not above it.
    pub is_upper: bool,
    /// The value, in the unit of the goal.
    pub value: f64,
}

impl Limit {
    /// Reads `GOAL < VALUE` or `GOAL > VALUE`.
    ///
    /// # Errors
    /// When it has no such form, or goal or value are none.
    pub fn parse(text: &str) -> Result<Self, Advised> {
        let upper = text.split_once('<').map(|parts| (parts, true));
        let lower = || text.split_once('>').map(|parts| (parts, false));
        let Some(((goal, value), is_upper)) = upper.or_else(lower) else {
            let advice = "write one such as `p99 wait < 20ms`, with < or >";
            return Err(Advised::new(format!("`{text}` is no limit"), advice));
        };
        let goal: Goal = goal.trim().parse()?;
        let value = value_of(goal.measure(), value.trim())?;
        Ok(Self {
            goal,
            is_upper,
            value,
        })
    }

    /// Whether a run with this value keeps it.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        if self.is_upper {
            value < self.value
        } else {
            value > self.value
        }
    }
}

/// Reads a limit in the unit of what is measured: a time, a part in per cent, or a number.
///
/// # Errors
/// When it is none.
pub fn value_of(measure: Measure, text: &str) -> Result<f64, Advised> {
    let wrong = |form: &str| {
        Advised::new(
            format!("`{text}` is no limit of this goal"),
            format!("write one such as {form}"),
        )
    };
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|it| *it >= 0.0);
    match measure {
        Measure::Nanos => Ok(span::parse(text)?.get() as f64),
        Measure::Millionths => {
            let percent = text.strip_suffix('%').and_then(number);
            Ok(percent.ok_or_else(|| wrong("5%"))? * 10_000.0)
        }
        _ => number(text)
            .filter(|it| it.is_finite())
            .ok_or_else(|| wrong("100")),
    }
}

/// A value in the unit in which its limit is written.
#[must_use]
pub fn words_of(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Nanos => Nanos::new(value as u64).to_string(),
        Measure::Millionths => format!("{:.2} %", value / 10_000.0),
        _ => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use model::Advice as _;

    use super::*;

    #[test]
    fn a_limit_has_a_goal_a_direction_and_a_value_in_its_unit() {
        let upper = Limit::parse("p99 wait of pointer < 20ms").unwrap();
        assert_eq!(upper.goal.to_string(), "p99 wait of pointer");
        assert_eq!((upper.is_upper, upper.value), (true, 2e7));
        assert!(upper.holds(1.9e7) && !upper.holds(2e7));
        let lower = Limit::parse("work of job>50").unwrap();
        assert!(!lower.is_upper && lower.holds(50.5) && !lower.holds(50.0));
        assert_eq!(Limit::parse("late < 1%").unwrap().value, 10_000.0);
    }

    #[test]
    fn a_value_is_written_in_the_unit_of_its_limit() {
        for (measure, value, want) in [
            (Measure::Nanos, 35_700_000.4, "35.7 ms"),
            (Measure::Nanos, 5e6, "5.00 ms"),
            (Measure::Millionths, 20_500.0, "2.05 %"),
            (Measure::Rate, 50.26, "50.3"),
        ] {
            assert_eq!(words_of(measure, value), want);
        }
    }

    #[test]
    fn what_is_no_limit_is_told_with_one_that_is() {
        for (text, want) in [
            (
                "",
                "`` is no limit; write one such as `p99 wait < 20ms`, with < or >",
            ),
            ("p99 wait", "`p99 wait` is no limit; write one such as"),
            (
                "late < 5ms",
                "`5ms` is no limit of this goal; write one such as 5%",
            ),
            (
                "work > nan",
                "`nan` is no limit of this goal; write one such as 100",
            ),
        ] {
            let error = Limit::parse(text).unwrap_err().in_full();
            assert!(error.starts_with(want), "{text}: {error}");
        }
        for text in [
            "p99 wait < fast",
            "p199 wait < 1ms",
            "< 1ms",
            "p99 wait < 1ms < 2ms",
        ] {
            Limit::parse(text).unwrap_err();
        }
    }
}
