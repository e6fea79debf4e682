//! Time in equal pieces, whose number is bounded whatever the length of a run.

/// Pieces of time of a CPU's row.
pub(super) const COLUMNS: usize = 1_440;

/// What a bin holds.
pub(super) trait Merge: Default {
    /// Adds what the bin behind this one holds.
    fn merge(&mut self, later: Self);
}

/// Bins from a moment on. When there are too many, each two become one.
#[derive(Clone, Debug)]
pub(super) struct Bins<T> {
    /// Where the first begins.
    origin: u64,
    /// Length of a bin in nanoseconds.
    width: u64,
    most: usize,
    values: Vec<T>,
}

impl<T: Merge> Bins<T> {
    /// At most `most` bins from `origin` on, which are as short as a microsecond at first. `length`
    /// is the time that is to come, if it is known.
    pub fn new(most: usize, origin: u64, length: Option<u64>) -> Self {
        let width = length.map_or(1_000, |length| length.div_ceil(most as u64).max(1));
        Self {
            origin,
            width,
            most,
            values: Vec::new(),
        }
    }

    #[cfg(test)]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Begin and end of each bin, with what it holds.
    pub fn spans(&self) -> impl Iterator<Item = ((u64, u64), &T)> {
        let begin = |index: usize| self.origin.saturating_add(index as u64 * self.width);
        let values = self.values.iter().enumerate();
        values.map(move |(index, value)| ((begin(index), begin(index + 1)), value))
    }

    /// The bin of the moment `time`; the first one of those before all.
    pub fn at(&mut self, time: u64) -> &mut T {
        let time = time.saturating_sub(self.origin);
        while time / self.width >= self.most as u64 {
            self.halve();
        }
        let index = (time / self.width) as usize;
        if self.values.len() <= index {
            self.values.resize_with(index + 1, T::default);
        }
        &mut self.values[index]
    }

    /// Gives each bin its part of the time from `from` to `to`, in nanoseconds.
    pub fn spread(&mut self, from: u64, to: u64, mut add: impl FnMut(&mut T, u64)) {
        let mut from = from.max(self.origin);
        if from >= to {
            return;
        }
        // Makes room first, so that bins keep their length from here on.
        self.at(to - 1);
        while from < to {
            let next = ((from - self.origin) / self.width + 1).saturating_mul(self.width);
            let end = self.origin.saturating_add(next).min(to);
            add(self.at(from), end - from);
            from = end;
        }
    }

    fn halve(&mut self) {
        self.width *= 2;
        let mut pairs = std::mem::take(&mut self.values).into_iter();
        while let Some(mut first) = pairs.next() {
            if let Some(second) = pairs.next() {
                first.merge(second);
            }
            self.values.push(first);
        }
    }
}

impl Merge for u64 {
    fn merge(&mut self, later: Self) {
        *self += later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_divided_among_its_bins_and_nothing_is_lost() {
        let mut bins = Bins::<u64>::new(4, 0, Some(40));
        bins.spread(5, 25, |bin, ns| *bin += ns);
        assert_eq!((bins.width, bins.values()), (10, &[5, 10, 5][..]));
        bins.spread(30, 30, |bin, ns| *bin += ns);
        assert_eq!(bins.values().iter().sum::<u64>(), 20);
    }

    #[test]
    fn a_run_that_is_longer_than_thought_has_longer_bins() {
        let mut bins = Bins::<u64>::new(4, 0, Some(40));
        bins.spread(0, 40, |bin, ns| *bin += ns);
        bins.spread(40, 70, |bin, ns| *bin += ns);
        assert_eq!((bins.width, bins.values()), (20, &[20, 20, 20, 10][..]));
        *bins.at(1_000_000) += 1;
        assert!(bins.values().len() <= 4);
        assert_eq!(bins.values().iter().sum::<u64>(), 71);
    }

    #[test]
    fn an_unknown_length_begins_with_microseconds() {
        let mut bins = Bins::<u64>::new(100, 0, None);
        *bins.at(0) += 1;
        assert_eq!(bins.width, 1_000);
        *bins.at(u64::MAX / 4) += 1;
        assert_eq!(bins.values().iter().sum::<u64>(), 2);
    }

    #[test]
    fn what_was_before_the_first_bin_is_not_in_it() {
        let mut bins = Bins::<u64>::new(4, 100, Some(40));
        bins.spread(50, 115, |bin, ns| *bin += ns);
        bins.spread(50, 100, |bin, ns| *bin += ns);
        let spans: Vec<_> = bins.spans().map(|(span, ns)| (span, *ns)).collect();
        assert_eq!(spans, [((100, 110), 10), ((110, 120), 5)]);
    }
}
