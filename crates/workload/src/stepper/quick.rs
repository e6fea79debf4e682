//! Operations that only take time: most of what most tasks do. What they take is known before the
//! run, so the stepper looks it up in a table.

use super::{FOREVER, Stepper};
use crate::{Amount, Code, DRAW_MAX, Dist, Expr, Instr, Operation, Scripted};
use model::Nanos;

/// An instruction, if it is one of these.
#[derive(Clone, Copy, Debug)]
pub enum Quick {
    /// Any other.
    Other,
    /// Runs for so long, never zero.
    Run(Nanos),
    /// Runs for so long, and then does the same again.
    RunForever(Nanos),
    /// Sleeps for so long, never zero.
    Sleep(Nanos),
    /// Goes on at another instruction.
    Jump,
}

/// A quick instruction, and where a task goes on that takes it: what is not taken stays the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    what: Quick,
    next: u32,
}

impl Placed {
    /// The table of these instructions.
    pub(crate) fn table(instrs: &[Instr]) -> Vec<Self> {
        let placed = |(at, instr): (u32, &Instr)| match instr {
            Instr::Jump(to) => Self {
                what: Quick::Jump,
                next: *to,
            },
            other => Self::at(at, Quick::of(other)),
        };
        (0..).zip(instrs).map(placed).collect()
    }

    /// Number `at`, which is no jump.
    const fn at(at: u32, what: Quick) -> Self {
        let next = match what {
            Quick::Run(_) | Quick::Sleep(_) => at + 1,
            _ => at,
        };
        Self { what, next }
    }
}

impl Quick {
    /// One of a script, if it is one of these.
    pub(crate) fn of_scripted(scripted: Scripted) -> Self {
        match scripted {
            Scripted::Run(span) if !span.is_zero() => Self::Run(span.min(DRAW_MAX)),
            Scripted::Sleep(span) if !span.is_zero() => Self::Sleep(span.min(DRAW_MAX)),
            _ => Self::Other,
        }
    }

    fn of(instr: &Instr) -> Self {
        match instr {
            Instr::Do(Operation::Run(Some(amount))) => known(amount).map_or(Self::Other, Self::Run),
            Instr::Do(Operation::Sleep(amount)) => known(amount).map_or(Self::Other, Self::Sleep),
            Instr::Do(Operation::Run(None)) => Self::RunForever(FOREVER),
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

impl Stepper {
    /// Takes the next instruction if it is quick; [`Quick::Other`]: it is not, or the task has not
    /// begun, and [`Stepper::next`] must be asked.
    #[inline]
    pub fn next_quickly(&mut self, code: &Code) -> Quick {
        if !self.has_begun {
            return Quick::Other;
        }
        let placed = match code.quick.get(self.at as usize) {
            Some(placed) => *placed,
            None => Placed::at(self.at, code.quick_of_script(self.at)),
        };
        self.at = placed.next;
        placed.what
    }
}
