//! How numbers are written.

/// A number with four digits that count.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let size = value.abs().log10().floor() as i32;
    match size {
        ..-4 => format!("{value:.2e}"),
        -4..3 => {
            let places = usize::try_from(3 - size).unwrap_or(0);
            let text = format!("{value:.places$}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            text.to_owned()
        }
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_of_a_number_count() {
        for (value, want) in [
            (0.0, "0"),
            (1234567.0, "1234567"),
            (1234.56, "1235"),
            (999.96, "1000"),
            (12.0, "12"),
            (3.21654, "3.217"),
            (0.91304, "0.913"),
            (-0.00123456, "-0.001235"),
            (0.000001, "1.00e-6"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(value), want);
        }
    }
}
