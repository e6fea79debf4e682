//! Points in time as people read them.

/// Seconds since 1970 as a date and time of UTC: `2026-11-21 12:03:04 UTC`.
pub fn utc(unix_s: u64) -> String {
    const DAY: u64 = 24 * 60 * 60;
    let (mut days, rest) = (unix_s / DAY, unix_s % DAY);
    // The calendar repeats every 400 years, which have this many days.
    const CYCLE: u64 = 146_097;
    let mut year = 1970 + days / CYCLE * 400;
    days %= CYCLE;
    while days >= days_of(year) {
        days -= days_of(year);
        year += 1;
    }
    let mut month = 0;
    while days >= month_days(year, month) {
        days -= month_days(year, month);
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!(
        "{year}-{:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC",
        month + 1,
        days + 1
    )
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

/// Days of a month, which counts from 0.
fn month_days(year: u64, month: u64) -> u64 {
    match month {
        1 => 28 + u64::from(is_leap(year)),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @N`.
        for (unix_s, want) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (32_503_680_000, "3000-01-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(unix_s), want);
        }
    }
}
