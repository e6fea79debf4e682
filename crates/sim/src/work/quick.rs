//! Operations that only take time: most steps of most tasks. What they take is known before the
//! run, so such a step is a look into a table.

use model::{Nanos, SimTime, TaskId};
use workload::{Amount, Code, DRAW_MAX, Dist, Expr, Instr};

use super::Work;
use super::execute::{FOREVER, STEPS_MAX};

/// An instruction, if it is one of these.
#[derive(Clone, Copy, Debug)]
pub(super) enum Quick {
    /// Any other.
    Other,
    /// Runs for so long, never zero.
    Run(Nanos),
    /// Sleeps for so long, never zero.
    Sleep(Nanos),
    /// Runs without end.
    RunForever,
    /// Goes on elsewhere.
    Jump(u32),
}

/// What a task does next, if that is decided quickly.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// It is not: [`Work::step`] must be asked.
    Unknown,
    /// As [`Action::Run`](super::Action::Run).
    Run(Nanos),
    /// As [`Action::SleepUntil`](super::Action::SleepUntil).
    SleepUntil(SimTime),
}

impl Quick {
    /// The instructions of `code`.
    pub fn table(code: &Code) -> Box<[Self]> {
        code.instrs.iter().map(Self::of).collect()
    }

    fn of(instr: &Instr) -> Self {
        match instr {
            Instr::Run(amount) => known(amount).map_or(Self::Other, Self::Run),
            Instr::Sleep(amount) => known(amount).map_or(Self::Other, Self::Sleep),
            Instr::RunForever => Self::RunForever,
            Instr::Jump(to) => Self::Jump(*to),
            _ => Self::Other,
        }
    }
}

/// An amount that is the same each time and not zero.
fn known(amount: &Amount) -> Option<Nanos> {
    let (Dist::Const(span), Expr::Number(times)) = (&amount.dist, &amount.times) else {
        return None;
    };
    let times = u64::try_from(*times).ok()?;
    let span = Nanos::new(span.get().saturating_mul(times)).min(DRAW_MAX);
    (!span.is_zero()).then_some(span)
}

impl Work {
    /// As [`Work::step`], as far as it can be done quickly.
    #[inline]
    pub(crate) fn step_quickly(&mut self, task: TaskId, now: SimTime) -> Step {
        let state = &mut self.tasks[task.index()];
        let table = &self.quick[state.group as usize];
        if !state.pending.is_empty() || state.has_exited || !state.has_begun {
            return Step::Unknown;
        }
        if state.steps_since != now {
            (state.steps, state.steps_since) = (0, now);
        }
        // Jumps that lead to jumps only come to an end by the limit, too.
        while state.steps < STEPS_MAX {
            let (next, again, step) = match table[state.at as usize] {
                Quick::Other => break,
                Quick::Run(span) => (state.at + 1, false, Step::Run(span)),
                Quick::Sleep(span) => (state.at + 1, false, Step::SleepUntil(now + span)),
                Quick::RunForever => (state.at, true, Step::Run(FOREVER)),
                Quick::Jump(to) => (to, false, Step::Unknown),
            };
            state.steps += 1;
            (state.at, state.tries_again) = (next, again);
            if !matches!(step, Step::Unknown) {
                return step;
            }
        }
        Step::Unknown
    }
}
