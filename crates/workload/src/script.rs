//! What a recorded task does from its begin to its end, one thing after the other, in little
//! memory: a recording has millions of these.

use std::sync::Arc;

use crate::{Amount, Dist, Expr, IndexedResource, Operation, SchedPolicy, Target};
use model::Nanos;

/// Operations without loops and conditions, shared by all who run them.
pub type Script = Arc<[Scripted]>;

/// One of these operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scripted {
    /// Computes for so long.
    Run(Nanos),
    /// Computes until so long after its begin, by the clock.
    Poll(Nanos),
    /// Sleeps for so long.
    Sleep(Nanos),
    /// Sleeps until so long after the begin of the run.
    SleepUntil(Nanos),
    /// Takes a message out of the only instance of this channel.
    Recv(u32),
    /// Puts a message into the only instance of this channel.
    Send(u32),
    /// Creates one task of this group.
    Fork(u32),
    /// Raises a counter by so much.
    Count(u32, i64),
    /// Begins a span.
    SpanBegin(u32),
    /// Ends a span.
    SpanEnd(u32),
    /// Enters a phase.
    Phase(u32),
    /// Gives itself this nice value.
    Nice(i64),
    /// Is real-time from now on, with this priority, 1 to 99.
    Realtime(u8),
    /// Is in the fair class from now on.
    Fair,
    /// May use all CPUs from now on.
    Unbind,
    /// `sched_yield()`.
    Yield,
}

/// How often a task that stops by the clock looks at it: it stops so much too late at most.
const POLLED: Nanos = Nanos::from_micros(250);

const _: () = assert!(size_of::<Scripted>() == 16);

impl Scripted {
    /// The same as an operation of a workload.
    #[must_use]
    pub fn operation(self) -> Operation {
        let amount = |span| Amount::once(Dist::Const(span));
        let place = |of| IndexedResource {
            of,
            index: Expr::Number(0),
        };
        match self {
            Self::Run(span) => Operation::Run(Some(amount(span))),
            // Nothing of a script is nested, so that one variable is enough.
            Self::Poll(span) => Operation::Poll {
                span: amount(span),
                step: POLLED,
                slot: 0,
            },
            Self::Sleep(span) => Operation::Sleep(amount(span)),
            Self::SleepUntil(span) => Operation::SleepUntil(amount(span)),
            Self::Recv(channel) => Operation::Recv(place(channel)),
            Self::Send(channel) => Operation::Send {
                to: place(channel),
                bytes: None,
                value: None,
            },
            Self::Fork(group) => Operation::Fork(group),
            Self::Count(counter, by) => Operation::Count {
                counter,
                by: Expr::Number(by),
            },
            Self::SpanBegin(span) => Operation::SpanBegin(span),
            Self::SpanEnd(span) => Operation::SpanEnd(span),
            Self::Phase(phase) => Operation::Phase(phase),
            Self::Nice(nice) => Operation::SetNice {
                target: Target::Me,
                nice: Expr::Number(nice),
            },
            Self::Realtime(priority) => Operation::SetPolicy {
                target: Target::Me,
                policy: SchedPolicy::Fifo(priority),
            },
            Self::Fair => Operation::SetPolicy {
                target: Target::Me,
                policy: SchedPolicy::Normal,
            },
            Self::Unbind => Operation::SetAffinity {
                target: Target::Me,
                cpus: None,
            },
            Self::Yield => Operation::Yield,
        }
    }
}
