//! Flattens a group's operations: nested bodies become jumps, so that a task's place in its work
//! is one number.

use std::collections::BTreeMap;

use crate::{
    Binary, Expr, IndexedResource, Operation, Placed, Quick, Script, Scripted, Step, Workload,
};

/// One instruction.
#[derive(Clone, Debug)]
pub enum Instr {
    /// An operation that has no operations in it.
    Do(Operation),
    /// Goes on at another instruction.
    Jump(u32),
    /// Goes on at another instruction unless the condition holds.
    Unless {
        /// The condition.
        cond: Expr,
        /// Number of the other instruction.
        to: u32,
    },
    /// Draws one of these instructions by weight and goes on there.
    Choose(Vec<(u64, u32)>),
}

impl Instr {
    /// The expressions that it evaluates, in no particular order.
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Self::Do(op) => op.exprs(),
            Self::Unless { cond, .. } => vec![cond],
            Self::Jump(_) | Self::Choose(_) => Vec::new(),
        }
    }
}

/// A group's operations, flattened.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The instructions; the last is always [`Operation::Exit`]. None of a script.
    pub instrs: Vec<Instr>,
    /// The line of each; one of a script.
    pub lines: Vec<u32>,
    /// What is done instead of instructions, before the task exits.
    script: Option<Script>,
    /// How many variables they have.
    pub variables: u32,
    /// The same instructions, as far as they are quick.
    pub(crate) quick: Vec<Placed>,
}

impl Code {
    /// Flattens `body`, which has `variables` variables of its own.
    #[must_use]
    pub fn new(body: &[Step], variables: u32) -> Self {
        if let [
            Step {
                op: Operation::Script(script),
                line,
            },
        ] = body
        {
            return Self {
                lines: vec![*line],
                script: Some(script.clone()),
                variables,
                ..Self::default()
            };
        }
        let mut code = Self {
            variables,
            ..Self::default()
        };
        code.body(body);
        let line = body.last().map_or(0, |step| step.line);
        code.push(Instr::Do(Operation::Exit), line);
        code.quick = Placed::table(&code.instrs);
        code
    }

    fn of_script(&self, at: u32) -> Option<Scripted> {
        self.script.as_ref()?.get(at as usize).copied()
    }

    /// What a script does at a place where there is no instruction.
    #[cold]
    pub(crate) fn scripted(&self, at: u32) -> Operation {
        self.of_script(at)
            .map_or(Operation::Exit, Scripted::operation)
    }

    /// The same, as far as it is quick.
    #[inline(never)]
    pub(crate) fn quick_of_script(&self, at: u32) -> Quick {
        self.of_script(at).map_or(Quick::Other, Quick::of_scripted)
    }

    fn push(&mut self, instr: Instr, line: u32) -> usize {
        self.instrs.push(instr);
        self.lines.push(line);
        self.instrs.len() - 1
    }

    /// The number of the next instruction.
    fn next_index(&self) -> u32 {
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
                let top = self.next_index();
                self.body(body);
                self.push(Instr::Jump(top), line);
            }
            Operation::Loop {
                count: Some(count),
                slot,
                body,
            } => {
                let turns = Turns {
                    slot: *slot,
                    first: &Expr::Number(0),
                    end: count,
                    except: None,
                };
                self.counted(&turns, line, |code| code.body(body));
            }
            Operation::While { cond, body } => self.repeat_while(cond, body, line),
            Operation::Broadcast {
                of,
                first,
                end,
                except,
                slot,
            } => {
                let turns = Turns {
                    slot: *slot,
                    first,
                    end,
                    except: except.as_ref(),
                };
                self.counted(&turns, line, |code| code.send_to_each(*of, *slot, line));
            }
            Operation::Pool { .. } => self.pool(op.clone(), line),
            Operation::Attempt {
                op,
                failed,
                otherwise,
            } => {
                self.push(Instr::Do(Operation::Device(op.clone())), line);
                self.branch(&Expr::Variable(*failed), otherwise, &[], line);
            }
            Operation::Script(script) => {
                for it in &**script {
                    self.push(Instr::Do(it.operation()), line);
                }
            }
            plain => {
                self.push(Instr::Do(plain.clone()), line);
            }
        }
    }

    fn repeat_while(&mut self, cond: &Expr, body: &[Step], line: u32) {
        let top = self.next_index();
        let exit = self.unless(cond.clone(), line);
        self.body(body);
        self.push(Instr::Jump(top), line);
        self.land(exit);
    }

    /// A conditional jump, which has yet to [`land`](Self::land).
    fn unless(&mut self, cond: Expr, line: u32) -> usize {
        self.push(Instr::Unless { cond, to: 0 }, line)
    }

    fn send_to_each(&mut self, of: u32, slot: u32, line: u32) {
        let index = Expr::Variable(slot);
        let send = Operation::Send {
            to: IndexedResource { of, index },
            bytes: None,
            value: None,
        };
        self.push(Instr::Do(send), line);
    }

    /// A pool is one instruction, which is taken again for each of its children.
    fn pool(&mut self, mut op: Operation, line: u32) {
        if let Operation::Pool {
            width, total, slot, ..
        } = &mut op
        {
            *width = self.hidden(width, line);
            *total = self.hidden(total, line);
            self.assign(*slot, Expr::Number(0), line);
        }
        self.push(Instr::Do(op), line);
    }

    /// Repeats `body` with a variable from the first value to the one that `end` has before the
    /// first turn.
    fn counted(&mut self, turns: &Turns<'_>, line: u32, body: impl FnOnce(&mut Self)) {
        let Turns {
            slot,
            first,
            end,
            except,
        } = *turns;
        let limit = self.hidden(end, line);
        let except = except.map(|except| self.hidden(except, line));
        self.assign(slot, first.clone(), line);
        let top = self.next_index();
        let cond = binary(Binary::Less, Expr::Variable(slot), limit);
        let exit = self.unless(cond, line);
        let skip = except.map(|except| {
            let other = binary(Binary::NotEqual, Expr::Variable(slot), except);
            self.unless(other, line)
        });
        body(self);
        skip.into_iter().for_each(|skip| self.land(skip));
        let next = binary(Binary::Add, Expr::Variable(slot), Expr::Number(1));
        self.assign(slot, next, line);
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
        self.assign(slot, expr.clone(), line);
        Expr::Variable(slot)
    }

    fn assign(&mut self, slot: u32, value: Expr, line: u32) {
        self.push(Instr::Do(Operation::Let { slot, value }), line);
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
            starts.push((*weight, self.next_index()));
            self.body(body);
            ends.push(self.push(Instr::Jump(0), line));
        }
        self.instrs[choose] = Instr::Choose(starts);
        ends.into_iter().for_each(|end| self.land(end));
    }

    /// Makes the jump at `from` lead to the next instruction.
    fn land(&mut self, from: usize) {
        let here = self.next_index();
        match &mut self.instrs[from] {
            Instr::Jump(to) | Instr::Unless { to, .. } => *to = here,
            other => unreachable!("{other:?} is no jump"),
        }
    }
}

/// The turns of a counted loop.
struct Turns<'a> {
    /// The variable that counts.
    slot: u32,
    first: &'a Expr,
    /// One past the last value.
    end: &'a Expr,
    /// A value that is left out.
    except: Option<&'a Expr>,
}

fn binary(op: Binary, x: Expr, y: Expr) -> Expr {
    Expr::Binary(op, Box::new(x), Box::new(y))
}

/// Deadlines that count from when a message was sent: the group that takes it, channel and
/// deadline. `codes` are the code of each group, in order.
#[must_use]
pub fn message_deadlines<'a>(
    workload: &Workload,
    codes: impl IntoIterator<Item = &'a Code>,
) -> Vec<(u32, u32, u32)> {
    let mut found = Vec::new();
    for (group, code) in (0..).zip(codes) {
        let mut last = None;
        for instr in &code.instrs {
            match instr {
                Instr::Do(Operation::Recv(place)) => last = Some(place.of),
                Instr::Do(Operation::Release(deadline)) => {
                    let period = workload.deadlines[*deadline as usize].period;
                    let channel = last.filter(|_| period.is_none());
                    found.extend(channel.map(|channel| (group, channel, *deadline)));
                }
                _ => {}
            }
        }
    }
    found
}

/// The groups that take messages of each channel. `codes` are the code of each group, in order.
#[must_use]
pub fn message_takers<'a>(codes: impl IntoIterator<Item = &'a Code>) -> BTreeMap<u32, Vec<u32>> {
    let mut takers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (group, code) in (0..).zip(codes) {
        for instr in &code.instrs {
            if let Instr::Do(Operation::Recv(place)) = instr {
                let its = takers.entry(place.of).or_default();
                if its.last() != Some(&group) {
                    its.push(group);
                }
            }
        }
    }
    takers
}

/// Deadlines of messages that nobody has taken yet: task, channel and deadline. If several groups
/// take a channel's messages to a deadline, it is the first in which somebody is `alive`.
///
/// `codes` are the code of each group, in order.
#[must_use]
pub fn receivers<'a, T: Copy>(
    workload: &Workload,
    codes: impl IntoIterator<Item = &'a Code>,
    alive: impl Fn(u32) -> Option<T>,
) -> Vec<(T, u32, u32)> {
    let mut found: Vec<(T, u32, u32)> = Vec::new();
    for (group, channel, deadline) in message_deadlines(workload, codes) {
        if let Some(receiver) = alive(group)
            && found.iter().all(|it| it.1 != channel)
        {
            found.push((receiver, channel, deadline));
        }
    }
    found
}
