//! Points in time and spans of time. A point and a span are different types, so that adding two
//! points does not compile.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A point on the machine's clock: nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimTime(u64);

/// A span of time in nanoseconds. Never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

/// A cost in picoseconds: the unit in which callbacks are charged, because one BPF instruction
/// costs less than a nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Picos(pub u64);

impl SimTime {
    /// The moment the run begins.
    pub const ZERO: Self = Self(0);

    /// The point `ns` nanoseconds after the run began.
    #[inline]
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the run began.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time elapsed since `earlier`.
    ///
    /// # Panics
    /// If `earlier` is later than `self`: the caller has mixed two clocks.
    #[inline]
    #[must_use]
    #[track_caller]
    pub const fn since(self, earlier: Self) -> Nanos {
        match self.0.checked_sub(earlier.0) {
            Some(ns) => Nanos(ns),
            None => panic!("clock ran backwards"),
        }
    }
}

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span that the type holds; the kernel's `SCX_SLICE_INF`.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ns` nanoseconds.
    #[inline]
    #[must_use]
    pub const fn new(ns: u64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds.
    ///
    /// # Panics
    /// If the span exceeds 584 years.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us.checked_mul(1_000).expect("span overflows"))
    }

    /// A span of `ms` milliseconds.
    ///
    /// # Panics
    /// If the span exceeds 584 years.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.checked_mul(1_000_000).expect("span overflows"))
    }

    /// A span of `s` seconds.
    ///
    /// # Panics
    /// If the span exceeds 584 years.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.checked_mul(1_000_000_000).expect("span overflows"))
    }

    /// The span in nanoseconds.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether the span is empty.
    #[inline]
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self` less `other`, or zero when `other` is longer.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The span in seconds, for printing only.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a printed figure, never fed back into a run"
    )]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Picos {
    /// Whole nanoseconds, and the picoseconds that remain.
    #[inline]
    #[must_use]
    pub const fn split(self) -> (Nanos, Self) {
        (Nanos(self.0 / 1_000), Self(self.0 % 1_000))
    }
}

impl Add<Nanos> for SimTime {
    type Output = Self;

    #[inline]
    fn add(self, span: Nanos) -> Self {
        Self(self.0.checked_add(span.0).expect("time exceeds 584 years"))
    }
}

impl Add for Nanos {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect("span exceeds 584 years"))
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("span would be negative"))
    }
}

impl SubAssign for Nanos {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Add for Picos {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect("cost overflows"))
    }
}

impl AddAssign for Picos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, |total, span| total + span)
    }
}

impl fmt::Display for Nanos {
    /// Prints with the largest unit that keeps the number at 1 or more, and three digits, rounded
    /// to the nearest: `12 ns`, `3.42 us`, `20.0 ms`, `1.50 s`. Whole seconds are all there:
    /// `1235 s`. Every table and sentence prints a time by this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u128 = 1_000_000_000;
        let ns = u128::from(self.0);
        // In integers, so that the text is the same on every machine.
        let step = 10_u128
            .pow(ns.max(1).ilog10().saturating_sub(2))
            .min(SECOND);
        let ns = (ns + step / 2) / step * step;
        let (unit, scale) = match ns {
            0..1_000 => return f.pad(&format!("{ns} ns")),
            1_000..1_000_000 => ("us", 1_000),
            1_000_000..SECOND => ("ms", 1_000_000),
            _ => ("s", SECOND),
        };
        let (whole, hundredths) = (ns / scale, ns % scale * 100 / scale);
        let text = match whole {
            0..10 => format!("{whole}.{hundredths:02} {unit}"),
            10..100 => format!("{whole}.{} {unit}", hundredths / 10),
            _ => format!("{whole} {unit}"),
        };
        f.pad(&text)
    }
}

impl fmt::Display for SimTime {
    /// Prints seconds with nanosecond digits: `0.024000000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:09}",
            self.0 / 1_000_000_000,
            self.0 % 1_000_000_000
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_prints_three_digits_with_the_unit_that_fits_and_is_rounded_to_the_nearest() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (1_004, "1.00 us"),
            (1_005, "1.01 us"),
            (3_416, "3.42 us"),
            (9_995, "10.0 us"),
            (10_990, "11.0 us"),
            (534_499, "534 us"),
            (534_500, "535 us"),
            (534_700, "535 us"),
            (999_499, "999 us"),
            (999_500, "1.00 ms"),
            (20_000_000, "20.0 ms"),
            (63_549_999, "63.5 ms"),
            (63_550_000, "63.6 ms"),
            (999_500_000, "1.00 s"),
            (1_500_000_000, "1.50 s"),
            (12_345_000_000, "12.3 s"),
            (12_350_000_000, "12.4 s"),
            (1_234_499_999_999, "1234 s"),
            (1_234_500_000_000, "1235 s"),
            (u64::MAX, "18446744074 s"),
        ];
        for (ns, want) in cases {
            assert_eq!(Nanos(ns).to_string(), want, "{ns}");
        }
    }

    #[test]
    #[should_panic(expected = "clock ran backwards")]
    fn a_clock_that_runs_backwards_is_a_bug() {
        let _ = SimTime(1).since(SimTime(2));
    }

    #[test]
    fn picoseconds_split_without_loss() {
        assert_eq!(Picos(12_345).split(), (Nanos(12), Picos(345)));
    }
}
