//! What is measured: spans, counters, deadlines.

use model::EventKind;
use model::workload::Expr;

use super::{Executor, Next};
use crate::work::WorkError;

impl Executor<'_> {
    pub(super) fn span_begin(&mut self, span: u32) -> Next {
        let now = self.now;
        let spans = &mut self.state().spans;
        spans.retain(|(open, _)| *open != span);
        spans.push((span, now));
        self.record(EventKind::SpanBegin, u64::from(span), 0)
    }

    pub(super) fn span_end(&mut self, span: u32) -> Result<Next, WorkError> {
        let spans = &mut self.state().spans;
        let Some(at) = spans.iter().position(|(open, _)| *open == span) else {
            let name = self.work.workload.spans[span as usize].clone();
            let what = "span_begin";
            return Err(WorkError::NotBegun {
                place: self.place(),
                name,
                what,
            });
        };
        let (_, begin) = spans.swap_remove(at);
        let length = self.now.since(begin).get();
        Ok(self.record(EventKind::SpanEnd, u64::from(span), length))
    }

    pub(super) fn count(&mut self, counter: u32, by: &Expr) -> Result<Next, WorkError> {
        let by = self.within("the count", by, 0, i64::MAX)?.unsigned_abs();
        Ok(self.record(EventKind::Count, u64::from(counter), by))
    }

    pub(super) fn release(&mut self, deadline: u32) -> Next {
        let (period, skip) = {
            let declared = &self.work.workload.deadlines[deadline as usize];
            (declared.period, declared.skip)
        };
        let Some(period) = period else {
            let sent = self.state().message_sent;
            self.state().releases.by_message(deadline, sent);
            return Next::Go;
        };
        let now = self.now;
        let (at, passed) = self.state().releases.next(deadline, period, skip, now);
        if passed > 0 {
            self.record(EventKind::Skipped, u64::from(deadline), passed);
        }
        self.sleep_until(at)
    }

    pub(super) fn complete(&mut self, deadline: u32) -> Result<Next, WorkError> {
        let release = self.state().releases.complete(deadline);
        let declared = &self.work.workload.deadlines[deadline as usize];
        let Some(release) = release else {
            let (name, what) = (declared.name.clone(), "release");
            return Err(WorkError::NotBegun {
                place: self.place(),
                name,
                what,
            });
        };
        let due = release + declared.slack;
        let late = self.now.as_nanos().saturating_sub(due.as_nanos());
        Ok(self.record(EventKind::Deadline, u64::from(deadline), late))
    }
}
