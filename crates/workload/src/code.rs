//! Flattens a group's operations: nested bodies become jumps, so that a task's place in its work
//! is one number.

use crate::{
    Amount, Binary, CpuSet, DeviceOp, Expr, Grid, Operation, Place, SchedPolicy, Step, Target,
};
use model::Nanos;

/// One instruction. Those that are also operations are documented at
/// [`Operation`].
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "named and documented as in `Operation`")]
pub enum Instr {
    Run(Amount),
    RunForever,
    Exec(Amount),
    Sleep(Amount),
    Timer {
        period: Nanos,
        grid: Grid,
        slot: u32,
    },
    Send {
        to: Place,
        bytes: Option<Expr>,
        value: Option<Expr>,
    },
    Recv(Place),
    Lock(Place),
    Unlock(Place),
    Barrier(Place),
    Yield,
    Suspend,
    Resume(Target),
    Fork(u32),
    Exit,
    Wait {
        all: bool,
    },
    Pool {
        group: u32,
        width: Expr,
        total: Expr,
        slot: u32,
    },
    SetNice {
        target: Target,
        nice: Expr,
    },
    SetAffinity {
        target: Target,
        cpus: Option<CpuSet>,
    },
    SetPolicy {
        target: Target,
        policy: SchedPolicy,
    },
    Phase(u32),
    SpanBegin(u32),
    SpanEnd(u32),
    Count {
        counter: u32,
        by: Expr,
    },
    Release(u32),
    Complete(u32),
    Device(DeviceOp),
    Let {
        slot: u32,
        value: Expr,
    },
    /// Goes on at another instruction.
    Jump(u32),
    /// Goes on at another instruction unless the condition holds.
    Unless {
        cond: Expr,
        to: u32,
    },
    /// Draws one of these by weight and goes on there.
    Choose(Vec<(u64, u32)>),
}

impl Instr {
    /// The expressions that it evaluates, in no particular order.
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Self::Run(amount) | Self::Exec(amount) | Self::Sleep(amount) => vec![&amount.times],
            Self::Send { to, bytes, value } => {
                let given = bytes.iter().chain(value);
                std::iter::once(&to.index).chain(given).collect()
            }
            Self::Recv(place) | Self::Lock(place) | Self::Unlock(place) | Self::Barrier(place) => {
                vec![&place.index]
            }
            Self::Resume(target)
            | Self::SetAffinity { target, .. }
            | Self::SetPolicy { target, .. } => target.index().into_iter().collect(),
            Self::SetNice { target, nice } => target.index().into_iter().chain([nice]).collect(),
            Self::Pool { width, total, .. } => vec![width, total],
            Self::Count { by, .. } => vec![by],
            Self::Let { value, .. } => vec![value],
            Self::Unless { cond, .. } => vec![cond],
            Self::Device(op) => op.exprs(),
            Self::RunForever
            | Self::Timer { .. }
            | Self::Yield
            | Self::Suspend
            | Self::Fork(_)
            | Self::Exit
            | Self::Wait { .. }
            | Self::Phase(_)
            | Self::SpanBegin(_)
            | Self::SpanEnd(_)
            | Self::Release(_)
            | Self::Complete(_)
            | Self::Jump(_)
            | Self::Choose(_) => Vec::new(),
        }
    }
}

/// A group's operations, flattened.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The instructions; the last is always [`Instr::Exit`].
    pub instrs: Vec<Instr>,
    /// The line of each.
    pub lines: Vec<u32>,
    /// How many variables they have.
    pub variables: u32,
}

impl Code {
    /// Flattens `body`, which has `variables` variables of its own.
    #[must_use]
    pub fn new(body: &[Step], variables: u32) -> Self {
        let mut code = Self {
            variables,
            ..Self::default()
        };
        code.body(body);
        let line = body.last().map_or(0, |step| step.line);
        code.push(Instr::Exit, line);
        code
    }

    fn push(&mut self, instr: Instr, line: u32) -> usize {
        self.instrs.push(instr);
        self.lines.push(line);
        self.instrs.len() - 1
    }

    /// The number of the next instruction.
    fn here(&self) -> u32 {
        u32::try_from(self.instrs.len()).expect("a file has fewer than 2^32 operations")
    }

    fn body(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
    }

    fn step(&mut self, Step { op, line }: &Step) {
        let line = *line;
        match op {
            Operation::Choose(arms) => self.choose(arms, line),
            Operation::If {
                cond,
                then,
                otherwise,
            } => self.branch(cond, then, otherwise, line),
            Operation::Loop {
                count: None, body, ..
            } => {
                let top = self.here();
                self.body(body);
                self.push(Instr::Jump(top), line);
            }
            Operation::Loop {
                count: Some(count),
                slot,
                body,
            } => {
                self.counted(*slot, &Expr::Number(0), count, None, line, |code| {
                    code.body(body);
                });
            }
            Operation::While { cond, body } => self.repeat_while(cond, body, line),
            Operation::Broadcast {
                of,
                first,
                end,
                except,
                slot,
            } => {
                let index = Expr::Variable(*slot);
                let send = Instr::Send {
                    to: Place { of: *of, index },
                    bytes: None,
                    value: None,
                };
                self.counted(*slot, first, end, except.as_ref(), line, |code| {
                    code.push(send, line);
                });
            }
            Operation::Pool {
                group,
                width,
                total,
                slot,
            } => {
                self.push(
                    Instr::Let {
                        slot: *slot,
                        value: Expr::Number(0),
                    },
                    line,
                );
                let (width, total) = (width.clone(), total.clone());
                self.push(
                    Instr::Pool {
                        group: *group,
                        width,
                        total,
                        slot: *slot,
                    },
                    line,
                );
            }
            Operation::Attempt {
                op,
                failed,
                otherwise,
            } => {
                self.push(Instr::Device(op.clone()), line);
                self.branch(&Expr::Variable(*failed), otherwise, &[], line);
            }
            _ => {
                self.push(plain(op), line);
            }
        }
    }

    fn repeat_while(&mut self, cond: &Expr, body: &[Step], line: u32) {
        let top = self.here();
        let exit = self.unless(cond.clone(), line);
        self.body(body);
        self.push(Instr::Jump(top), line);
        self.land(exit);
    }

    /// A conditional jump, which has yet to [`land`](Self::land).
    fn unless(&mut self, cond: Expr, line: u32) -> usize {
        self.push(Instr::Unless { cond, to: 0 }, line)
    }

    /// Repeats `body` with `slot` from `first` to the value that `end` has before the first turn,
    /// but not for `except`.
    fn counted(
        &mut self,
        slot: u32,
        first: &Expr,
        end: &Expr,
        except: Option<&Expr>,
        line: u32,
        body: impl FnOnce(&mut Self),
    ) {
        let limit = self.hidden(end, line);
        let except = except.map(|except| self.hidden(except, line));
        self.push(
            Instr::Let {
                slot,
                value: first.clone(),
            },
            line,
        );
        let top = self.here();
        let cond = binary(Binary::Less, Expr::Variable(slot), limit);
        let exit = self.unless(cond, line);
        let skip = except.map(|except| {
            let other = binary(Binary::NotEqual, Expr::Variable(slot), except);
            self.unless(other, line)
        });
        body(self);
        skip.into_iter().for_each(|skip| self.land(skip));
        let next = binary(Binary::Add, Expr::Variable(slot), Expr::Number(1));
        self.push(Instr::Let { slot, value: next }, line);
        self.push(Instr::Jump(top), line);
        self.land(exit);
    }

    /// Keeps the value that `expr` has now; a constant needs no variable.
    fn hidden(&mut self, expr: &Expr, line: u32) -> Expr {
        if matches!(expr, Expr::Number(_)) {
            return expr.clone();
        }
        let slot = self.variables;
        self.variables += 1;
        self.push(
            Instr::Let {
                slot,
                value: expr.clone(),
            },
            line,
        );
        Expr::Variable(slot)
    }

    fn branch(&mut self, cond: &Expr, then: &[Step], otherwise: &[Step], line: u32) {
        let skip = self.unless(cond.clone(), line);
        self.body(then);
        if otherwise.is_empty() {
            return self.land(skip);
        }
        let end = self.push(Instr::Jump(0), line);
        self.land(skip);
        self.body(otherwise);
        self.land(end);
    }

    fn choose(&mut self, arms: &[(u64, Vec<Step>)], line: u32) {
        let choose = self.push(Instr::Choose(Vec::new()), line);
        let mut starts = Vec::new();
        let mut ends = Vec::new();
        for (weight, body) in arms {
            starts.push((*weight, self.here()));
            self.body(body);
            ends.push(self.push(Instr::Jump(0), line));
        }
        self.instrs[choose] = Instr::Choose(starts);
        ends.into_iter().for_each(|end| self.land(end));
    }

    /// Makes the jump at `from` lead to the next instruction.
    fn land(&mut self, from: usize) {
        let here = self.here();
        match &mut self.instrs[from] {
            Instr::Jump(to) | Instr::Unless { to, .. } => *to = here,
            other => unreachable!("{other:?} is no jump"),
        }
    }
}

fn binary(op: Binary, x: Expr, y: Expr) -> Expr {
    Expr::Binary(op, Box::new(x), Box::new(y))
}

/// An operation that is one instruction.
fn plain(op: &Operation) -> Instr {
    match op.clone() {
        Operation::Run(Some(amount)) => Instr::Run(amount),
        Operation::Exec(amount) => Instr::Exec(amount),
        Operation::Run(None) => Instr::RunForever,
        Operation::Sleep(amount) => Instr::Sleep(amount),
        Operation::Timer { period, grid, slot } => Instr::Timer { period, grid, slot },
        Operation::Send { to, bytes, value } => Instr::Send { to, bytes, value },
        Operation::Recv(from) => Instr::Recv(from),
        Operation::Lock(lock) => Instr::Lock(lock),
        Operation::Unlock(lock) => Instr::Unlock(lock),
        Operation::Barrier(barrier) => Instr::Barrier(barrier),
        Operation::Yield => Instr::Yield,
        Operation::Suspend => Instr::Suspend,
        Operation::Resume(target) => Instr::Resume(target),
        Operation::Fork(group) => Instr::Fork(group),
        Operation::Exit => Instr::Exit,
        Operation::Wait { all } => Instr::Wait { all },
        Operation::Let { slot, value } => Instr::Let { slot, value },
        Operation::SetNice { target, nice } => Instr::SetNice { target, nice },
        Operation::SetAffinity { target, cpus } => Instr::SetAffinity { target, cpus },
        Operation::SetPolicy { target, policy } => Instr::SetPolicy { target, policy },
        Operation::Phase(phase) => Instr::Phase(phase),
        Operation::SpanBegin(span) => Instr::SpanBegin(span),
        Operation::SpanEnd(span) => Instr::SpanEnd(span),
        Operation::Count { counter, by } => Instr::Count { counter, by },
        Operation::Release(deadline) => Instr::Release(deadline),
        Operation::Complete(deadline) => Instr::Complete(deadline),
        Operation::Device(op) => Instr::Device(op),
        Operation::Attempt { .. }
        | Operation::Broadcast { .. }
        | Operation::Pool { .. }
        | Operation::Choose(_)
        | Operation::If { .. }
        | Operation::Loop { .. }
        | Operation::While { .. } => unreachable!("{op:?} takes several instructions"),
    }
}
