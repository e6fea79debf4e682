//! Spans that leave out the wait for a CPU, and so what a scheduler does: coordinated omission.

use std::fmt;

use model::Advice;

use crate::device::DeviceOp;
use crate::tree::{Operation, Step, Workload};

/// A span that begins when its task already has a CPU again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateSpan {
    /// The span.
    pub span: String,
    /// The group whose tasks begin it.
    pub group: String,
    /// The file, and the line there, counted from one.
    pub place: (String, u32),
    /// The operation that the task slept in.
    pub after: &'static str,
}

impl fmt::Display for LateSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            span,
            group,
            place: (file, line),
            after,
        } = self;
        write!(
            f,
            "{file}:{line}: the span `{span}` of {group} begins after `{after}`, when the task has \
             a CPU again: it leaves out the wait for that CPU"
        )
    }
}

impl std::error::Error for LateSpan {}

impl Advice for LateSpan {
    fn advice(&self) -> Option<String> {
        let span = &self.span;
        Some(match self.after {
            "recv" | "accept" => format!(
                "declare the requests as `[arrival.{span}]`, and write `done({span})` for \
                 `span_end({span})`: it measures from the moment when the request comes"
            ),
            _ => format!(
                "for requests declare `[arrival.{span}]` and write `done({span})`, for periodic \
                 work a `[deadline]` with `release` and `complete`"
            ),
        })
    }
}

/// What a task did last: slept in this operation, or something that takes time on a CPU.
type Last = Option<&'static str>;

impl Workload {
    /// The spans that begin right after their task slept, in the order of the file.
    ///
    /// Locks are no sleep here: a span behind one says how long it is held. Neither is the span
    /// with a key that a client begins: what it measures is the way to the server and back.
    #[must_use]
    pub fn late_spans(&self) -> Vec<LateSpan> {
        let mut found = Vec::new();
        for group in &self.groups {
            let mut add = |span: u32, line: u32, after: &'static str| {
                let late = LateSpan {
                    span: self.spans[span as usize].clone(),
                    group: group.name.clone(),
                    place: (self.file.clone(), line),
                    after,
                };
                if !found.contains(&late) {
                    found.push(late);
                }
            };
            walk(&group.body, None, &mut add);
        }
        found.sort_by_key(|it| it.place.1);
        found
    }
}

/// Goes through `steps` of a task that did `last` before, and says what it did last then.
fn walk(steps: &[Step], last: Last, add: &mut impl FnMut(u32, u32, &'static str)) -> Last {
    steps.iter().fold(last, |last, step| match &step.op {
        Operation::SpanBegin(span) => {
            if let Some(after) = last {
                add(*span, step.line, after);
            }
            last
        }
        Operation::Loop { body, .. } | Operation::While { body, .. } => {
            // The second round begins with what the first one ended with.
            let once = walk(body, last, add);
            walk(body, once, add).or(last.filter(|_| body.is_empty()))
        }
        Operation::If {
            then, otherwise, ..
        } => {
            let first = walk(then, last, add);
            first.or(walk(otherwise, last, add))
        }
        Operation::Choose(arms) => {
            let each = arms.iter().map(|(_, steps)| walk(steps, last, add));
            each.fold(None, Option::or)
        }
        Operation::Attempt { op, otherwise, .. } => {
            let done = after(&Operation::Device(op.clone()), last);
            done.or(walk(otherwise, last, add))
        }
        op => after(op, last),
    })
}

/// What a task did last after `op`.
fn after(op: &Operation, last: Last) -> Last {
    match op {
        Operation::Recv(_)
        | Operation::Sleep(_)
        | Operation::SleepUntil(_)
        | Operation::Timer { .. }
        | Operation::Barrier(_)
        | Operation::Suspend
        | Operation::Wait { .. }
        | Operation::Pool { .. }
        | Operation::Release(_)
        | Operation::Device(
            DeviceOp::SemWait(_)
            | DeviceOp::CondWait { .. }
            | DeviceOp::Accept(_)
            | DeviceOp::Connect { .. }
            | DeviceOp::Read { .. }
            | DeviceOp::Write { .. }
            | DeviceOp::Sync(_),
        ) => Some(op.name()),
        // They take no time.
        Operation::Let { .. }
        | Operation::Count { .. }
        | Operation::Phase(_)
        | Operation::SpanEnd(_)
        | Operation::Complete(_)
        | Operation::Unlock(_)
        | Operation::Lock(_)
        | Operation::Resume(_)
        | Operation::SetNice { .. }
        | Operation::SetAffinity { .. }
        | Operation::SetPolicy { .. }
        | Operation::Device(
            DeviceOp::Done { .. }
            | DeviceOp::SemPost(_)
            | DeviceOp::Signal(_)
            | DeviceOp::LockShared(_)
            | DeviceOp::UnlockAll(_)
            | DeviceOp::SpanBegin { .. }
            | DeviceOp::SpanEnd { .. },
        ) => last,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(body: &str) -> Vec<(String, u32, &'static str)> {
        let text = format!(
            "[workload]\nname = \"w\"\nstop = \"duration:1s\"\n[chan.c]\nkind = \"queue\"\n\
             [lock.l]\n[deadline.d]\nperiod = \"10ms\"\n[task.t]\ndo = \"\"\"\n{body}\"\"\"\n"
        );
        let workload = Workload::parse(&text, "w.toml").expect("a workload");
        let late = workload.late_spans().into_iter();
        late.map(|it| (it.span, it.place.1, it.after)).collect()
    }

    #[test]
    fn a_span_right_behind_an_operation_that_sleeps_is_late() {
        for after in ["recv", "sleep", "release"] {
            let op = match after {
                "recv" => "recv(c)",
                "sleep" => "sleep(1ms)",
                _ => "release(d)",
            };
            let body = format!("loop(inf)[ {op},\nspan_begin(s), run(1us), span_end(s) ]");
            assert_eq!(late(&body), [("s".to_owned(), 12, after)]);
        }
        assert_eq!(late("sleep(1ms), run(1us), span_begin(s)"), []);
        assert_eq!(
            late("recv(c), lock(l), run(1us), unlock(l), span_begin(s)"),
            []
        );
    }

    #[test]
    fn it_is_found_in_nested_loops_branches_and_where_a_round_ends_asleep() {
        let late = |body: &str| late(body).len();
        assert_eq!(
            late("loop(inf)[ span_begin(s), run(1us), span_end(s), recv(c) ]"),
            1
        );
        assert_eq!(
            late(
                "loop(inf)[ recv(c), let x = got, loop(3)[ span_begin(s), run(1us), span_end(s) ] ]"
            ),
            1
        );
        assert_eq!(
            late(
                "loop(inf)[ loop(2)[ sleep(1ms) ], if(1 == 0)[ span_begin(a) ] else [ \
                  span_begin(b) ], run(1us) ]"
            ),
            2
        );
        assert_eq!(
            late("loop(inf)[ choose(1: run(1us), 1: recv(c)), span_begin(s), run(1us) ]"),
            1
        );
        assert_eq!(late("loop(inf)[ span_begin(s, 1), run(1us) ], recv(c)"), 0);
    }

    #[test]
    fn what_to_write_instead_is_named() {
        let text = "[workload]\nname = \"w\"\nstop = \"duration:1s\"\n[chan.c]\nkind = \"queue\"\n\
                    [task.t]\ndo = \"recv(c), span_begin(answer), run(1us), span_end(answer)\"\n";
        let workload = Workload::parse(text, "w.toml").expect("a workload");
        let said = workload.late_spans()[0].in_full();
        for part in [
            "w.toml:7",
            "`answer` of t",
            "`recv`",
            "[arrival.answer]",
            "done(answer)",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
