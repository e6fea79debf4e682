//! Steps that only take time: most of them.

use model::{Nanos, SimTime, TaskId};
use workload::{Quick, TIME_MAX};

use super::Work;
use super::execute::STEPS_MAX;

/// From here on each span is looked at: it may lead beyond the end of time.
const LATE: SimTime = SimTime::from_nanos(TIME_MAX.as_nanos() - workload::DRAW_MAX.get());

/// What a task does next, if that is decided quickly.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QuickStep {
    /// It is not: [`Work::step`] must be asked.
    Unknown,
    /// As [`Action::Run`](super::Action::Run).
    Run(Nanos),
    /// As [`Action::SleepUntil`](super::Action::SleepUntil).
    SleepUntil(SimTime),
}

impl Work {
    /// As [`Work::step`], as far as it can be done quickly.
    #[inline(always)]
    pub(crate) fn step_quickly(&mut self, task: TaskId, now: SimTime) -> QuickStep {
        let state = &mut self.tasks[task.index()];
        if !state.pending.is_empty() || state.has_exited || state.tries_again || now > LATE {
            return QuickStep::Unknown;
        }
        let code = &self.codes[state.stepper.group() as usize];
        if state.steps_since != now {
            (state.steps, state.steps_since) = (0, now);
        }
        // Jumps that lead to jumps only come to an end by the limit, too.
        while state.steps < STEPS_MAX {
            let step = match state.stepper.next_quickly(code) {
                Quick::Other => break,
                Quick::Run(span) | Quick::RunForever(span) => QuickStep::Run(span),
                Quick::Sleep(span) => QuickStep::SleepUntil(now + span),
                Quick::Jump => QuickStep::Unknown,
            };
            state.steps += 1;
            if !matches!(step, QuickStep::Unknown) {
                return step;
            }
        }
        QuickStep::Unknown
    }
}
