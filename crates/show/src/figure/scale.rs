//! Numbers to places on paper, and the marks of an axis. Whole numbers only, so that a figure is
//! the same on every machine.

/// Quantity of an axis; decides how its marks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Nanoseconds, written in ns, us, ms or s as the axis is long.
    Time,
    /// A number of things.
    Count,
    /// Thousandths, written as a decimal number.
    Thousandths,
    /// Thousandths of one thing a second.
    Rate,
    /// Millionths of a whole, written in per cent.
    Share,
}

impl Quantity {
    /// A number of its own in writing, with the unit that fits.
    #[must_use]
    pub fn written(self, value: u64) -> String {
        let tidy = |value: u64, divisor: u64, unit: &str| {
            let text = decimal(value, divisor);
            match unit {
                "" => text,
                unit => format!("{text} {unit}"),
            }
        };
        match self {
            Self::Time => {
                let (divisor, unit) = TIMES
                    .iter()
                    .find(|(divisor, _)| value >= *divisor)
                    .unwrap_or(&TIMES[3]);
                match value {
                    0 => "0".to_owned(),
                    _ => tidy(value, *divisor, unit),
                }
            }
            Self::Count => value.to_string(),
            Self::Thousandths => tidy(value, 1_000, ""),
            Self::Rate => tidy(value, 1_000, "1/s"),
            Self::Share => tidy(value, 10_000, "%"),
        }
    }

    /// A letter for it, by which the script of a page writes values.
    pub(super) const fn letter(self) -> char {
        match self {
            Self::Time => 't',
            Self::Count => 'c',
            Self::Thousandths => 'm',
            Self::Rate => 'r',
            Self::Share => 's',
        }
    }
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What it shows, without the unit.
    pub label: String,
    /// In what.
    pub quantity: Quantity,
    /// Whether equal steps multiply; values below 1 are drawn as 1 then.
    pub logarithmic: bool,
    /// Whether small values stand at the far end: priorities, of which lower is better.
    pub inverted: bool,
}

impl Axis {
    /// An axis with equal steps.
    #[must_use]
    pub fn new(label: &str, quantity: Quantity) -> Self {
        Self {
            label: label.to_owned(),
            quantity,
            logarithmic: false,
            inverted: false,
        }
    }
}

/// An axis with a range and a length on paper.
pub(super) struct Scale {
    axis: Axis,
    low: u64,
    high: u64,
    /// In tenths of a pixel.
    length: i64,
    /// The least room for a mark, in tenths of a pixel.
    gap: i64,
    divisor: u64,
    unit: &'static str,
}

/// A mark: its place in tenths of a pixel and its text.
pub(super) struct Mark {
    pub at: i64,
    pub text: String,
}

/// Units of time with their nanoseconds, the longest first.
const TIMES: [(u64, &str); 4] = [
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "\u{b5}s"),
    (1, "ns"),
];

impl Scale {
    /// From `low` to `high`, or a little more, on `length` tenths of a pixel.
    pub fn new(axis: &Axis, low: u64, high: u64, length: i64) -> Self {
        let (divisor, unit) = match axis.quantity {
            Quantity::Time => *TIMES
                .iter()
                .find(|(divisor, _)| high >= *divisor)
                .unwrap_or(&TIMES[3]),
            Quantity::Count => (1, ""),
            Quantity::Thousandths => (1_000, ""),
            Quantity::Rate => (1_000, "1/s"),
            Quantity::Share => (10_000, "%"),
        };
        let (low, high) = if axis.logarithmic {
            let low = low.max(1);
            (low, high.max(low.saturating_mul(10)))
        } else {
            (low, high.max(low + 1))
        };
        Self {
            axis: axis.clone(),
            low,
            high,
            length,
            gap: 150,
            divisor,
            unit,
        }
    }

    /// The same for an axis below, where marks with long texts stand beside each other.
    pub const fn below(mut self) -> Self {
        self.gap = 480;
        self
    }

    /// A scale with room up to the next mark.
    pub fn rounded(axis: &Axis, low: u64, high: u64, length: i64) -> Self {
        let mut scale = Self::new(axis, low, high, length);
        if !axis.logarithmic {
            let step = scale.step();
            scale.low = low / step * step;
            scale.high = scale.high.div_ceil(step).saturating_mul(step);
        }
        scale
    }

    /// Begin, end, the letter of the quantity, and `l` for logarithmic and `i` for inverted: what
    /// the script of a page needs to read values off.
    pub fn in_words(&self) -> String {
        let mut text = format!("{} {} {}", self.low, self.high, self.axis.quantity.letter());
        if self.axis.logarithmic {
            text.push('l');
        }
        if self.axis.inverted {
            text.push('i');
        }
        text
    }

    /// The axis's label with its unit.
    pub fn label(&self) -> String {
        let log = if self.axis.logarithmic {
            ", logarithmic"
        } else {
            ""
        };
        if self.axis.quantity == Quantity::Time && self.axis.logarithmic {
            return format!("{}{log}", self.axis.label);
        }
        if self.axis.label.is_empty() {
            return self.unit.to_owned();
        }
        match self.unit {
            "" => format!("{}{log}", self.axis.label),
            unit => format!("{} ({unit}){log}", self.axis.label),
        }
    }

    /// The place of `value`, from the axis's begin; what is outside is put at the edge.
    pub fn place(&self, value: u64) -> i64 {
        let value = value.clamp(self.low, self.high);
        let (value, low, high) = if self.axis.logarithmic {
            (log2(value), log2(self.low), log2(self.high))
        } else {
            (value, self.low, self.high)
        };
        let part = i128::from(value - low) * i128::from(self.length);
        let at = (part / i128::from((high - low).max(1))) as i64;
        if self.axis.inverted {
            self.length - at
        } else {
            at
        }
    }

    /// The distance of marks: 1, 2 or 5 times a power of ten of what is written.
    fn step(&self) -> u64 {
        // A mark every 35 pixels at the most.
        let marks = (self.length / self.gap.max(350)).clamp(2, 6) as u64;
        let wanted = ((self.high - self.low) / marks).max(1);
        // Fractions of what is written are allowed, but not of things.
        let mut power = 1_u64;
        loop {
            for times in [1, 2, 5] {
                let Some(step) = power.checked_mul(times) else {
                    return u64::MAX;
                };
                if step >= wanted {
                    return step;
                }
            }
            let Some(next) = power.checked_mul(10) else {
                return u64::MAX;
            };
            power = next;
        }
    }

    /// The distance of marks such that there are two: one alone says nothing of the scale.
    fn step_of_marks(&self) -> u64 {
        let mut step = self.step();
        while step > 1 && self.high / step < self.low.div_ceil(step) + 1 {
            let power = 10_u64.pow(step.ilog10());
            step = match step / power {
                5 => 2 * power,
                2 => power,
                _ => power / 2,
            };
        }
        step
    }

    /// The axis's marks, in rising order of their values.
    pub fn marks(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut add = |value, text| {
            let at = self.place(value);
            marks.push(Mark { at, text });
        };
        if self.axis.logarithmic {
            let mut value = 1_u64;
            while value < self.low {
                value = value.saturating_mul(10);
            }
            // Where there is no room for each power of ten, only every other has a mark, or fewer.
            let decades = (log2(self.high) - log2(self.low)) / log2(10) + 1;
            let room = (self.length / self.gap).max(1) as u64;
            let every = decades.div_ceil(room).max(1);
            while value <= self.high {
                add(value, self.decade(value));
                let next = (0..every).try_fold(value, |it, _| it.checked_mul(10));
                let Some(next) = next else {
                    break;
                };
                value = next;
            }
            return marks;
        }
        let step = self.step_of_marks();
        let mut value = self.low.div_ceil(step).saturating_mul(step);
        while value <= self.high {
            add(value, decimal(value, self.divisor));
            let Some(next) = value.checked_add(step) else {
                break;
            };
            value = next;
        }
        marks
    }

    /// A power of ten, in its own unit where it is a time.
    fn decade(&self, value: u64) -> String {
        match self.axis.quantity {
            Quantity::Time => {
                let (divisor, unit) = TIMES
                    .iter()
                    .find(|(divisor, _)| value >= *divisor)
                    .unwrap_or(&TIMES[3]);
                format!("{} {unit}", value / divisor)
            }
            _ => decimal(value, self.divisor),
        }
    }
}

/// `value / divisor` with as many digits as it takes; `divisor` is a power of ten.
pub(super) fn decimal(value: u64, divisor: u64) -> String {
    let (whole, rest) = (value / divisor, value % divisor);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = divisor.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

/// The logarithm to base 2, in 1/1024, rounded down; 0 of 0.
pub(super) fn log2(value: u64) -> u64 {
    const BITS: u32 = 10;
    let Some(whole) = value.checked_ilog2() else {
        return 0;
    };
    // The mantissa, 1 to 2, with 32 binary places: its square tells the next bit.
    let mut mantissa = (u128::from(value) << 32) >> whole;
    let mut result = u64::from(whole);
    for _ in 0..BITS {
        mantissa = (mantissa * mantissa) >> 32;
        let bit = u64::from(mantissa >= 2 << 32);
        mantissa >>= bit;
        result = result << 1 | bit;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale) -> Vec<String> {
        scale.marks().into_iter().map(|mark| mark.text).collect()
    }

    #[test]
    fn times_are_written_in_the_unit_of_the_longest() {
        let axis = Axis::new("latency", Quantity::Time);
        let scale = Scale::rounded(&axis, 0, 4_300_000, 2300);
        assert_eq!(scale.label(), "latency (ms)");
        assert_eq!(texts(&scale), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!((scale.place(0), scale.place(2_500_000)), (0, 1150));
        let small = Scale::rounded(&axis, 0, 1_200_000, 2300);
        assert_eq!(texts(&small), ["0", "0.2", "0.4", "0.6", "0.8", "1", "1.2"]);
    }

    #[test]
    fn marks_are_round_and_neither_crowded_nor_alone() {
        let axis = Axis::new("count", Quantity::Count);
        for length in [1_000, 2_300, 7_000] {
            for high in [1, 7, 99, 1_234, 999_999] {
                let scale = Scale::new(&axis, 0, high, length).below();
                let marks = scale.marks();
                let places: Vec<i64> = marks.iter().map(|mark| mark.at).collect();
                assert!(
                    (2..=12).contains(&places.len()),
                    "{high} on {length}: {places:?}"
                );
                let steps = places.windows(2).map(|pair| pair[1] - pair[0]);
                let least = steps.min().expect("two marks");
                // Seven pixels a letter.
                let letters = marks.iter().map(|mark| mark.text.chars().count()).max();
                let room = 70 * letters.expect("a mark") as i64;
                assert!(least >= room.min(length), "{high} on {length}: {places:?}");
            }
        }
    }

    #[test]
    fn an_axis_that_begins_anywhere_has_two_marks() {
        let axis = Axis::new("ratio", Quantity::Thousandths);
        let scale = Scale::new(&axis, 601, 1_187, 1_340).below();
        assert_eq!(texts(&scale), ["0.8", "1"]);
        let scale = Scale::new(&axis, 910, 1_090, 1_200).below();
        assert_eq!(texts(&scale), ["0.95", "1", "1.05"]);
    }

    #[test]
    fn a_logarithmic_axis_has_a_mark_at_each_power_of_ten() {
        let axis = Axis {
            logarithmic: true,
            ..Axis::new("wait", Quantity::Time)
        };
        let scale = Scale::rounded(&axis, 500, 20_000_000, 1000);
        let marks = ["1 \u{b5}s", "10 \u{b5}s", "100 \u{b5}s", "1 ms", "10 ms"];
        assert_eq!(texts(&scale), marks);
        let steps: Vec<i64> = scale
            .marks()
            .windows(2)
            .map(|m| m[1].at - m[0].at)
            .collect();
        assert!(
            steps.iter().all(|step| (215..=219).contains(step)),
            "{steps:?}"
        );
        assert_eq!(scale.place(0), 0, "what is too small stands at the begin");
    }

    #[test]
    fn logarithms_are_those_of_the_library() {
        for value in [1, 2, 3, 10, 1000, 123_456_789, u64::MAX] {
            let want = ((value as f64).log2() * 1024.0) as u64;
            assert!(
                log2(value).abs_diff(want) <= 1,
                "{value}: {} {want}",
                log2(value)
            );
        }
        assert_eq!(log2(0), 0);
    }

    #[test]
    fn an_inverted_axis_has_low_values_at_the_far_end() {
        let axis = Axis {
            inverted: true,
            ..Axis::new("priority", Quantity::Count)
        };
        let scale = Scale::rounded(&axis, 100, 139, 2300);
        assert_eq!((scale.place(100), scale.place(140)), (2300, 0));
        assert_eq!(texts(&scale)[..2], ["100", "110"]);
    }

    #[test]
    fn extreme_ranges_have_marks_and_end() {
        for quantity in [
            Quantity::Time,
            Quantity::Count,
            Quantity::Share,
            Quantity::Rate,
        ] {
            for logarithmic in [false, true] {
                let axis = Axis {
                    logarithmic,
                    ..Axis::new("x", quantity)
                };
                for (low, high) in [(0, 0), (0, u64::MAX), (u64::MAX - 1, u64::MAX), (7, 7)] {
                    let scale = Scale::rounded(&axis, low, high, 100);
                    assert!(scale.marks().len() <= 25);
                    assert!((0..=100).contains(&scale.place(high)));
                }
            }
        }
    }

    #[test]
    fn decimals_have_no_zeros_at_their_end() {
        assert_eq!(decimal(1_500, 1_000), "1.5");
        assert_eq!(decimal(5, 1_000), "0.005");
        assert_eq!(decimal(2_000, 1_000), "2");
    }
}
