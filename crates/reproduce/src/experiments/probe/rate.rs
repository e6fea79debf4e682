//! How often something happens, over time.

use model::{Nanos, SimTime};

use super::{MOST_ENTRIES, Probed};

/// What happened in each span of time.
#[derive(Debug, Default)]
pub(super) struct Rate {
    /// By span.
    counts: Vec<u64>,
    /// What the counters were when the last span that is over ended.
    before: u64,
}

fn whole_spans(time: SimTime, every: Nanos) -> usize {
    let spans = time.as_nanos() / every.get().max(1);
    usize::try_from(spans).map_or(MOST_ENTRIES, |spans| spans.min(MOST_ENTRIES))
}

impl Rate {
    /// It happened once at `time`.
    pub(super) fn happened(&mut self, time: SimTime, every: Nanos) {
        let span = whole_spans(time, every);
        if span >= self.counts.len() {
            self.counts.resize(span + 1, 0);
        }
        self.counts[span] += 1;
    }

    /// It has happened `total` times by `time`, the end of a span or a moment within one.
    pub(super) fn counted(&mut self, time: SimTime, total: u64, every: Nanos) {
        let over = whole_spans(time, every);
        let is_end = time.as_nanos().is_multiple_of(every.get().max(1));
        if over == self.counts.len() + 1 && is_end {
            self.counts.push(total - self.before);
            self.before = total;
        }
    }

    /// The run is over: the span in which it ended is not told, and those without anything are.
    pub(super) fn ended(&mut self, time: SimTime, every: Nanos) {
        self.counts.resize(whole_spans(time, every), 0);
    }

    pub(super) fn found(&self, after: Nanos, every: Nanos) -> Probed {
        let by_second = |count: u64| count as f64 * 1e9 / every.get() as f64;
        let begin = |span: usize| span as u64 * every.get();
        let spans = self.counts.iter().enumerate();
        let told: Vec<(u64, u64)> = spans
            .map(|(span, count)| (begin(span), *count))
            .filter(|(begin, _)| *begin >= after.get())
            .collect();
        let rates = told.iter().map(|(_, count)| by_second(*count));
        let mut values = vec![("count".to_owned(), told.iter().map(|it| it.1 as f64).sum())];
        if !told.is_empty() {
            let mean = rates.clone().sum::<f64>() / told.len() as f64;
            values.push(("mean".to_owned(), mean));
            values.push((
                "lowest".to_owned(),
                rates.clone().fold(f64::INFINITY, f64::min),
            ));
            values.push(("highest".to_owned(), rates.fold(0.0, f64::max)));
        }
        let point = |(begin, count): &(u64, u64)| (*begin, by_second(*count).round() as u64);
        Probed {
            values,
            points: told.iter().map(point).collect(),
            ..Probed::default()
        }
    }
}
