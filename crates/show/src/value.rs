//! Values as people read them: one way of writing for tables, pages and figures.

use model::Nanos;
use stats::compare::Measure;
use stats::{ColumnValue, Millionths, Thousandths};

/// A value as people read it.
#[must_use]
pub fn shown_value(measure: Measure, value: f64) -> String {
    /// Bytes in a mebibyte.
    const MIB: f64 = 1_048_576.0;
    let whole = value.round() as u64;
    match measure {
        Measure::Nanos => Nanos::new(whole).to_string(),
        Measure::Count => whole.to_string(),
        Measure::Rate => format!("{value:.1}/s"),
        Measure::Millionths => ColumnValue::Share(Millionths(whole)).to_string(),
        Measure::Thousandths => ColumnValue::Average(Thousandths(whole)).to_string(),
        Measure::Bytes => format!("{:.1} MiB", value / MIB),
        Measure::Microjoules => ColumnValue::Energy(Some(whole)).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_in_their_unit() {
        let shown = |measure, value| shown_value(measure, value);
        assert_eq!(shown(Measure::Nanos, 1_500_000.4), "1.50 ms");
        assert_eq!(shown(Measure::Rate, 12.34), "12.3/s");
        assert_eq!(shown(Measure::Millionths, 250_000.0), "25.0 %");
        assert_eq!(shown(Measure::Thousandths, 1_500.0), "1.50");
        assert_eq!(shown(Measure::Bytes, 3_145_728.0), "3.0 MiB");
        assert_eq!(shown(Measure::Microjoules, 812_345.0), "812 mJ");
    }
}
