//! Reads operations of a workload's text, with the readers of their table.

use model::file::Problem;

use super::*;
use crate::names::{find, intern};
use crate::parser::{Failure, KEYWORDS, Parser, check_weights, range};
use crate::token::Token;
use crate::{DeviceOp, Operation, SchedPolicy, Step, Target};

impl Parser<'_> {
    /// Operations up to the end of the text.
    pub fn steps_to_end(&mut self, line: LineOf) -> Result<Vec<Step>, Failure> {
        let steps = self.steps(line)?;
        self.expect_end()?;
        Ok(steps)
    }

    /// Operations up to a closing bracket or the end. Neither is taken.
    pub(super) fn steps(&mut self, line: LineOf) -> Result<Vec<Step>, Failure> {
        let mut steps = Vec::new();
        loop {
            while self.accept(",") || self.accept(";") {}
            if matches!(self.peek(), Token::End | Token::Sign("]")) {
                return Ok(steps);
            }
            steps.push(self.step(line)?);
            if !matches!(self.peek(), Token::End | Token::Sign("]" | "," | ";")) {
                return self.fail("`,`, `]` or the end after an operation");
            }
        }
    }

    pub(super) fn step(&mut self, line: LineOf) -> Result<Step, Failure> {
        let at = self.offset();
        let (name, _) = self.name("an operation")?;
        let is_change = *self.peek() == Token::Sign("=");
        let op = if is_change {
            self.take();
            self.change(&name, at)?
        } else if let Some(info) = OPERATIONS.iter().find(|info| info.word() == name) {
            self.operation(info, line)?
        } else if NOT_SIMULATED.contains(&name.as_str()) {
            return Err((Problem::NotSimulated(name), at));
        } else {
            let known = OPERATIONS.iter().map(Info::word);
            return Err((Problem::unknown("operation", &name, known), at));
        };
        Ok(Step { op, line: line(at) })
    }

    /// One operation, whose name has been taken.
    pub(super) fn operation(&mut self, info: &Info, line: LineOf) -> Result<Operation, Failure> {
        match info.read {
            Arguments(read) => {
                self.expect("(")?;
                let op = read(self)?;
                self.expect(")")?;
                Ok(op)
            }
            Whole(read) => read(self, line),
        }
    }

    pub(super) fn send(&mut self) -> Result<Operation, Failure> {
        let to = self.channel()?;
        let bytes = self.accept(",").then(|| self.expr()).transpose()?;
        let value = self.accept(",").then(|| self.expr()).transpose()?;
        Ok(Operation::Send { to, bytes, value })
    }

    pub(super) fn count(&mut self) -> Result<Operation, Failure> {
        let counter = intern(&self.label()?, &mut self.names.counters);
        let one = crate::Expr::Number(1);
        let by = if self.accept(",") { self.expr()? } else { one };
        Ok(Operation::Count { counter, by })
    }

    pub(super) fn condition_with(&mut self, line: LineOf) -> Result<Operation, Failure> {
        self.expect("(")?;
        let cond = self.head()?;
        let then = self.body(line)?;
        let otherwise = if self.accept("else") {
            self.body(line)?
        } else {
            Vec::new()
        };
        Ok(Operation::If {
            cond,
            then,
            otherwise,
        })
    }

    pub(super) fn repeat_while(&mut self, line: LineOf) -> Result<Operation, Failure> {
        self.expect("(")?;
        Ok(Operation::While {
            cond: self.head()?,
            body: self.body(line)?,
        })
    }

    pub(super) fn repeat(&mut self, line: LineOf) -> Result<Operation, Failure> {
        self.expect("(")?;
        let count = if self.accept("inf") {
            None
        } else {
            Some(self.expr()?)
        };
        self.expect(")")?;
        Ok(Operation::Loop {
            count,
            slot: self.hidden(),
            body: self.body(line)?,
        })
    }

    pub(super) fn repeat_for(&mut self, line: LineOf) -> Result<Operation, Failure> {
        self.expect("(")?;
        let (variable, at) = self.name("a name for the loop's variable")?;
        self.expect(",")?;
        let count = Some(self.head()?);
        let outer = self.scope.len();
        let slot = self.declare(variable).map_err(|problem| (problem, at))?;
        let body = self.body(line)?;
        self.scope.truncate(outer);
        Ok(Operation::Loop { count, slot, body })
    }

    /// A lock, and what is done if taking it were a deadlock.
    pub(super) fn lock(&mut self, line: LineOf) -> Result<Operation, Failure> {
        self.expect("(")?;
        let lock = self.place("lock", |names| &names.locks)?;
        self.expect(")")?;
        if !self.accept("else") {
            return Ok(Operation::Lock(lock));
        }
        let failed = self.hidden();
        Ok(Operation::Attempt {
            op: DeviceOp::TryLock { lock, failed },
            failed,
            otherwise: self.body(line)?,
        })
    }

    /// An expression and the parenthesis behind it.
    pub(super) fn head(&mut self) -> Result<crate::Expr, Failure> {
        let expr = self.expr()?;
        self.expect(")")?;
        Ok(expr)
    }

    /// Operations in brackets; what they declare is seen only there.
    pub(super) fn body(&mut self, line: LineOf) -> Result<Vec<Step>, Failure> {
        let outer = self.scope.len();
        self.expect("[")?;
        let steps = self.deeper(|p| p.steps(line))?;
        self.expect("]")?;
        self.scope.truncate(outer);
        Ok(steps)
    }

    pub(super) fn choose(&mut self, line: LineOf) -> Result<Operation, Failure> {
        let at = self.offset();
        self.expect("(")?;
        let mut arms = Vec::new();
        loop {
            let weight = self.weight()?;
            self.expect(":")?;
            let is_body = *self.peek() == Token::Sign("[");
            let steps = if is_body {
                self.body(line)?
            } else {
                vec![self.deeper(|p| p.step(line))?]
            };
            arms.push((weight, steps));
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        check_weights(arms.iter().map(|(weight, _)| *weight)).map_err(|problem| (problem, at))?;
        Ok(Operation::Choose(arms))
    }

    pub(super) fn declaration(&mut self) -> Result<Operation, Failure> {
        let (name, at) = self.name("a name for the variable")?;
        self.expect("=")?;
        // The value is read first: `let x = x + 1` means an outer `x`.
        let value = self.expr()?;
        let slot = self.declare(name).map_err(|problem| (problem, at))?;
        Ok(Operation::Let { slot, value })
    }

    pub(super) fn change(&mut self, name: &str, at: usize) -> Result<Operation, Failure> {
        let known = self.scope.iter().rev().find(|(known, _)| known == name);
        let Some(&(_, slot)) = known else {
            let variables = self.scope.iter().map(|(name, _)| name.as_str());
            return Err((Problem::unknown("variable", name, variables), at));
        };
        Ok(Operation::Let {
            slot,
            value: self.expr()?,
        })
    }

    /// Brings a variable into sight.
    pub(super) fn declare(&mut self, name: String) -> Result<u32, Problem> {
        let is_scale = self.names.scale.iter().any(|(known, _)| *known == name);
        if is_scale || KEYWORDS.contains(&name.as_str()) {
            return Err(Problem::Taken(name));
        }
        let slot = self.hidden();
        self.scope.push((name, slot));
        Ok(slot)
    }

    /// A variable without a name.
    pub fn hidden(&mut self) -> u32 {
        self.variables += 1;
        self.variables - 1
    }

    pub(super) fn timer(&mut self) -> Result<Operation, Failure> {
        let period = self.span_above_zero("the period")?;
        let mut grid = crate::Grid::default();
        let (mut name, mut deadline) = (None, None);
        while self.accept(",") {
            match self.word(&["start", "move", "as", "deadline"])?.as_str() {
                "start" => grid.from_start = true,
                "move" => grid.moves = true,
                "deadline" => {
                    self.expect("(")?;
                    deadline = Some(self.deadline()?);
                    self.expect(")")?;
                }
                _ => {
                    self.expect("(")?;
                    name = Some(self.label()?);
                    self.expect(")")?;
                }
            }
        }
        let known = |timers: &[(String, u32)], name: &String| {
            let found = timers.iter().find(|(own, _)| own == name);
            found.map(|(_, slot)| *slot)
        };
        let slot = match &name {
            Some(name) => known(&self.timers, name),
            None => None,
        };
        let slot = slot.unwrap_or_else(|| self.hidden());
        if let Some(name) = name {
            self.timers.push((name, slot));
        }
        Ok(Operation::Timer {
            period,
            grid,
            slot,
            deadline,
        })
    }

    pub(super) fn poll(&mut self) -> Result<Operation, Failure> {
        let span = self.amount()?;
        self.expect(",")?;
        Ok(Operation::Poll {
            span,
            step: self.span_above_zero("the step")?,
            slot: self.hidden(),
        })
    }

    fn span_above_zero(&mut self, what: &str) -> Result<model::Nanos, Failure> {
        let at = self.offset();
        let span = self.span()?;
        if span.is_zero() {
            Err((range(what, 0, "1ns or more"), at))
        } else {
            Ok(span)
        }
    }

    pub(super) fn broadcast(&mut self) -> Result<Operation, Failure> {
        let (name, at) = self.name("the name of a channel")?;
        let channels = self.names.channels.iter().map(|(name, _)| name.as_str());
        let of = find("channel", &name, channels).map_err(|problem| (problem, at))?;
        self.expect(",")?;
        let first = self.expr()?;
        self.expect(",")?;
        let end = self.expr()?;
        let except = self.accept(",").then(|| self.expr()).transpose()?;
        Ok(Operation::Broadcast {
            of,
            first,
            end,
            except,
            slot: self.hidden(),
        })
    }

    pub(super) fn pool(&mut self) -> Result<Operation, Failure> {
        let group = self.forked()?;
        self.expect(",")?;
        let width = self.expr()?;
        self.expect(",")?;
        let total = self.expr()?;
        Ok(Operation::Pool {
            group,
            width,
            total,
            slot: self.hidden(),
        })
    }

    pub(super) fn forked(&mut self) -> Result<u32, Failure> {
        let group = self.group()?;
        self.names.forked.push(group);
        Ok(group)
    }

    /// A task and the comma behind it.
    pub fn first_target(&mut self) -> Result<Target, Failure> {
        let target = self.target()?;
        self.expect(",")?;
        Ok(target)
    }

    pub(super) fn affinity(&mut self) -> Result<Operation, Failure> {
        let target = self.first_target()?;
        if self.accept("all") {
            return Ok(Operation::SetAffinity { target, cpus: None });
        }
        let Token::Cpus(cpus) = self.peek().clone() else {
            return self.fail("CPUs as `{0-3,5}`, or `all`");
        };
        self.take();
        Ok(Operation::SetAffinity {
            target,
            cpus: Some(cpus),
        })
    }

    /// A scheduling policy.
    pub fn policy(&mut self) -> Result<SchedPolicy, Failure> {
        let name = self.word(&["normal", "batch", "idle", "fifo", "rr", "deadline"])?;
        match name.as_str() {
            "normal" => return Ok(SchedPolicy::Normal),
            "batch" => return Ok(SchedPolicy::Batch),
            "idle" => return Ok(SchedPolicy::Idle),
            "deadline" => {
                self.expect(":")?;
                return self.budget().map(SchedPolicy::Deadline);
            }
            _ => self.expect(":")?,
        }
        let at = self.offset();
        let value = self.constant()?;
        let priority = u8::try_from(value)
            .ok()
            .filter(|priority| (1..=99).contains(priority));
        let bad = || (range("the real-time priority", value, "1 to 99"), at);
        let priority = priority.ok_or_else(bad)?;
        Ok(if name == "fifo" {
            SchedPolicy::Fifo(priority)
        } else {
            SchedPolicy::RoundRobin(priority)
        })
    }

    /// One of these words.
    pub fn word(&mut self, words: &'static [&'static str]) -> Result<String, Failure> {
        let expected: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        let (word, at) = self.name(&expected.join(" or "))?;
        if words.contains(&word.as_str()) {
            return Ok(word);
        }
        Err((
            Problem::unexpected(format!("`{word}`"), expected.join(" or ")),
            at,
        ))
    }

    /// A name that exists by being used.
    pub fn label(&mut self) -> Result<String, Failure> {
        self.name("a name").map(|(name, _)| name)
    }

    pub(super) fn deadline(&mut self) -> Result<u32, Failure> {
        let (name, at) = self.name("the name of a deadline")?;
        find(
            "deadline",
            &name,
            self.names.deadlines.iter().map(String::as_str),
        )
        .map_err(|problem| (problem, at))
    }
}
