//! Executes instructions until one of them takes time, leaves the CPU, or changes a task.

use std::rc::Rc;

use model::{EventKind, Nanos, Rng, SimTime, TaskId};
use workload::{Amount, CpuSet, DRAW_MAX, Expr, Grid, Instr, Lock, LockKind, Scope, Target};

use super::channel::Queue;
use super::{Action, Work, WorkError, WorkEvent};

mod devices;
mod family;
mod measure;
mod sharing;
mod storage;

/// A task that executes more than this while no time passes will never come to an end.
pub(super) const STEPS_MAX: u32 = 1_000_000;

/// How long a piece of `run(inf)` is: an hour; then the task is asked again.
pub(super) const FOREVER: Nanos = Nanos::from_secs(3_600);

/// What follows an instruction.
enum Next {
    /// The next one.
    Go,
    /// The one with this number.
    To(u32),
    /// An action, then the next one.
    Act(Action),
    /// An action, then the same one again.
    Again(Action),
}

/// See [`Work::step`].
pub(super) fn step(
    work: &mut Work,
    task: TaskId,
    now: SimTime,
    out: &mut Vec<WorkEvent>,
) -> Result<Action, WorkError> {
    let codes = Rc::clone(&work.codes);
    let state = &work.tasks[task.index()];
    assert!(
        !state.has_exited || !state.pending.is_empty(),
        "an exited task has no next step"
    );
    let code = &codes[state.group as usize];
    loop {
        let state = &mut work.tasks[task.index()];
        if let Some(action) = state.pending.pop_front() {
            return Ok(action);
        }
        if !std::mem::replace(&mut state.has_begun, true) {
            state.began = now;
        }
        if state.steps_since != now {
            (state.steps, state.steps_since) = (0, now);
        }
        state.steps += 1;
        let (at, steps) = (state.at, state.steps);
        let mut step = Executor {
            work,
            task,
            now,
            out,
            line: code.lines[at as usize],
        };
        if steps > STEPS_MAX {
            return Err(WorkError::NoProgress {
                place: step.place(),
                steps: STEPS_MAX,
            });
        }
        let (next, action, again) = match step.execute(&code.instrs[at as usize])? {
            Next::Go => (at + 1, None, false),
            Next::To(to) => (to, None, false),
            Next::Act(action) => (at + 1, Some(action), false),
            Next::Again(action) => (at, Some(action), true),
        };
        let state = &mut work.tasks[task.index()];
        (state.at, state.tries_again) = (next, again);
        if let Some(action) = action {
            if state.pending.is_empty() {
                return Ok(action);
            }
            // Wakes that the instruction caused come first.
            state.pending.push_back(action);
        }
    }
}

/// The task of a target whose index is a constant; `None` if it has exited or was not born.
pub(super) fn constant_target(
    work: &Work,
    target: &Target,
    place: impl Fn() -> String,
) -> Result<Option<TaskId>, WorkError> {
    match target {
        Target::Member {
            group,
            index: Expr::Number(index),
        } => member(work, *group, *index, place),
        other => unreachable!("the front end asks for a constant, not {other:?}"),
    }
}

fn member(
    work: &Work,
    group: u32,
    index: i64,
    place: impl Fn() -> String,
) -> Result<Option<TaskId>, WorkError> {
    let tasks = &work.groups[group as usize].tasks;
    let found = usize::try_from(index)
        .ok()
        .and_then(|index| tasks.get(index));
    let found = found.ok_or_else(|| WorkError::Index {
        place: place(),
        name: work.workload.groups[group as usize].name.clone(),
        index,
        count: tasks.len() as u64,
    })?;
    Ok(found.filter(|task| !work.tasks[task.index()].has_exited))
}

/// One instruction of one task at one moment.
struct Executor<'a> {
    work: &'a mut Work,
    task: TaskId,
    now: SimTime,
    out: &'a mut Vec<WorkEvent>,
    line: u32,
}

/// What an expression of a task sees.
struct Sight<'a> {
    variables: &'a [i64],
    me: u32,
    cpus: u16,
    channels: &'a [Vec<Queue>],
    locks: &'a [Lock],
    got: i64,
    rng: &'a mut Rng,
}

impl Scope for Sight<'_> {
    fn variable(&self, slot: u32) -> i64 {
        self.variables[slot as usize]
    }

    fn me(&self) -> i64 {
        i64::from(self.me)
    }

    fn cpus(&self) -> i64 {
        i64::from(self.cpus)
    }

    fn queued(&self, of: u32, index: i64) -> Option<i64> {
        let queue = self.channels[of as usize].get(usize::try_from(index).ok()?)?;
        i64::try_from(queue.len()).ok()
    }

    fn got(&self) -> i64 {
        self.got
    }

    fn key(&mut self, of: u32) -> i64 {
        let LockKind::Keyed(keys) = self.locks[of as usize].kind else {
            unreachable!("the front end asks for a keyed lock")
        };
        keys.draw(self.rng).into()
    }

    fn random(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }
}

impl Executor<'_> {
    fn execute(&mut self, instr: &Instr) -> Result<Next, WorkError> {
        match instr {
            Instr::Run(amount) => self.run(amount),
            Instr::Exec(amount) => self.span(amount).map(|span| Next::Act(Action::Exec(span))),
            Instr::RunForever => Ok(Next::Again(Action::Run(FOREVER))),
            Instr::Sleep(amount) => self.sleep(amount),
            Instr::Timer { period, grid, slot } => Ok(self.timer(*period, *grid, *slot)),
            Instr::Send { to, bytes, value } => self.send(to, bytes.as_ref(), value.as_ref()),
            Instr::Device(op) => self.device(op),
            Instr::Recv(from) => self.recv(from),
            Instr::Lock(lock) => self.lock(lock, false),
            Instr::Unlock(lock) => self.unlock(lock),
            Instr::Barrier(barrier) => self.barrier(barrier),
            Instr::Yield => Ok(Next::Act(Action::Yield)),
            Instr::Suspend => Ok(self.suspend()),
            Instr::Resume(target) => self.resume(target),
            Instr::Fork(group) => self.fork(*group),
            Instr::Exit => Ok(self.exit()),
            Instr::Wait { all } => Ok(self.wait(*all)),
            Instr::Pool {
                group,
                width,
                total,
                slot,
            } => self.pool(*group, width, total, *slot),
            Instr::SetNice { target, nice } => self.set_nice(target, nice),
            Instr::SetAffinity { target, cpus } => {
                let cpus = cpus.as_ref().map(|cpus| cpus.within(self.work.cpus));
                let cpus = cpus.unwrap_or_else(|| CpuSet::all(self.work.cpus));
                self.change(target, |task| Action::SetAffinity { task, cpus })
            }
            Instr::SetPolicy { target, policy } => self.change(target, |task| Action::SetPolicy {
                task,
                policy: *policy,
            }),
            Instr::Phase(phase) => Ok(self.record(EventKind::Phase, u64::from(*phase), 0)),
            Instr::SpanBegin(span) => Ok(self.span_begin(*span)),
            Instr::SpanEnd(span) => self.span_end(*span),
            Instr::Count { counter, by } => self.count(*counter, by),
            Instr::Release(deadline) => Ok(self.release(*deadline)),
            Instr::Complete(deadline) => self.complete(*deadline),
            Instr::Let { slot, value } => {
                let value = self.eval(value)?;
                self.state().variables[*slot as usize] = value;
                Ok(Next::Go)
            }
            Instr::Jump(to) => Ok(Next::To(*to)),
            Instr::Unless { cond, to } => Ok(if self.eval(cond)? == 0 {
                Next::To(*to)
            } else {
                Next::Go
            }),
            Instr::Choose(arms) => Ok(Next::To(self.choose(arms))),
        }
    }

    fn state(&mut self) -> &mut super::Task {
        &mut self.work.tasks[self.task.index()]
    }

    /// File, line and task, for messages.
    fn place(&self) -> String {
        let state = &self.work.tasks[self.task.index()];
        let name = self.work.workload.task_name(state.group, state.index);
        format!("{}:{}: {name}", self.work.workload.file, self.line)
    }

    fn record(&mut self, kind: EventKind, a: u64, b: u64) -> Next {
        self.out.push(WorkEvent { kind, a, b });
        Next::Go
    }

    fn eval(&mut self, expr: &Expr) -> Result<i64, WorkError> {
        if let Expr::Number(value) = expr {
            return Ok(*value);
        }
        let state = &mut self.work.tasks[self.task.index()];
        let mut sight = Sight {
            variables: &state.variables,
            me: state.index,
            cpus: self.work.cpus,
            channels: &self.work.channels,
            locks: &self.work.workload.locks,
            got: state.message_value,
            rng: &mut state.rng,
        };
        expr.eval(&mut sight).map_err(|source| WorkError::Eval {
            place: self.place(),
            source,
        })
    }

    /// An expression's value, which must lie in `low..=high`.
    fn within(
        &mut self,
        what: &'static str,
        expr: &Expr,
        low: i64,
        high: i64,
    ) -> Result<i64, WorkError> {
        let value = self.eval(expr)?;
        if (low..=high).contains(&value) {
            return Ok(value);
        }
        Err(WorkError::Range {
            place: self.place(),
            what,
            value,
            low,
            high,
        })
    }

    fn span(&mut self, amount: &Amount) -> Result<Nanos, WorkError> {
        let times = self
            .within("the factor", &amount.times, 0, i64::MAX)?
            .unsigned_abs();
        let draw = amount.dist.sample(&mut self.state().rng);
        Ok(Nanos::new(draw.get().saturating_mul(times)).min(DRAW_MAX))
    }

    fn run(&mut self, amount: &Amount) -> Result<Next, WorkError> {
        let span = self.span(amount)?;
        Ok(if span.is_zero() {
            Next::Go
        } else {
            Next::Act(Action::Run(span))
        })
    }

    fn sleep(&mut self, amount: &Amount) -> Result<Next, WorkError> {
        let until = self.now + self.span(amount)?;
        Ok(self.sleep_until(until))
    }

    fn sleep_until(&self, until: SimTime) -> Next {
        if until > self.now {
            Next::Act(Action::SleepUntil(until))
        } else {
            Next::Go
        }
    }

    /// The variable holds the last point of the grid, plus 1, or 0 before the first turn.
    fn timer(&mut self, period: Nanos, grid: Grid, slot: u32) -> Next {
        let now = self.now;
        let state = self.state();
        let kept = u64::try_from(state.variables[slot as usize]);
        let last = match kept.expect("only this operation writes it") {
            0 if grid.from_start => state.began,
            0 => now,
            kept => SimTime::from_nanos(kept - 1),
        };
        let point = last + period;
        let base = if grid.moves && point <= now {
            now
        } else {
            point
        };
        let kept = i64::try_from(base.as_nanos() + 1);
        state.variables[slot as usize] = kept.expect("a run is shorter than 292 years");
        self.sleep_until(point)
    }

    /// The task that an operation acts on; `None` if it has exited or was not born.
    fn target(&mut self, target: &Target) -> Result<Option<TaskId>, WorkError> {
        match target {
            Target::Me => Ok(Some(self.task)),
            Target::Member { group, index } => {
                let index = self.eval(index)?;
                member(self.work, *group, index, || self.place())
            }
        }
    }

    fn change(
        &mut self,
        target: &Target,
        action: impl FnOnce(TaskId) -> Action,
    ) -> Result<Next, WorkError> {
        Ok(self
            .target(target)?
            .map_or(Next::Go, |task| Next::Act(action(task))))
    }

    fn set_nice(&mut self, target: &Target, nice: &Expr) -> Result<Next, WorkError> {
        let nice = self.within("the nice value", nice, -20, 19)?;
        let nice = i8::try_from(nice).expect("the range was checked");
        self.change(target, |task| Action::SetNice { task, nice })
    }

    fn choose(&mut self, arms: &[(u64, u32)]) -> u32 {
        let sum = arms.iter().map(|(weight, _)| weight).sum();
        let mut draw = self.state().rng.below(sum);
        for &(weight, to) in arms {
            if draw < weight {
                return to;
            }
            draw -= weight;
        }
        unreachable!("a draw below the sum of the weights falls into an arm")
    }
}
