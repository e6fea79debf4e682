//! Executes instructions until one of them takes time, leaves the CPU, or changes a task.

use std::sync::Arc;

use model::workload::{Amount, CpuSet, DRAW_MAX, Expr, Place, Scope, Target};
use model::{EventKind, Nanos, Rng, SimTime, TaskId};

use super::channel::{Queue, Wakes};
use super::code::Instr;
use super::sync::Taken;
use super::task::Waits;
use super::{Action, TASKS_MAX, Work, WorkError, WorkEvent};

/// A task that executes more than this while no time passes will never come to an end.
const STEPS_MAX: u32 = 1_000_000;

/// How long a piece of `run(inf)` is: an hour; then the task is asked again.
const FOREVER: Nanos = Nanos::from_secs(3_600);

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
    let codes = Arc::clone(&work.codes);
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
        let (next, action) = match step.execute(&code.instrs[at as usize])? {
            Next::Go => (at + 1, None),
            Next::To(to) => (to, None),
            Next::Act(action) => (at + 1, Some(action)),
            Next::Again(action) => (at, Some(action)),
        };
        let state = &mut work.tasks[task.index()];
        state.at = next;
        // Wakes that the instruction caused come first.
        state.pending.extend(action);
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

    fn random(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }
}

impl Executor<'_> {
    fn execute(&mut self, instr: &Instr) -> Result<Next, WorkError> {
        match instr {
            Instr::Run(amount) => self.run(amount),
            Instr::RunForever => Ok(Next::Again(Action::Run(FOREVER))),
            Instr::Sleep(amount) => self.sleep(amount),
            Instr::Timer { period, slot } => Ok(self.timer(*period, *slot)),
            Instr::Send { to, bytes } => self.send(to, bytes.as_ref()),
            Instr::Recv(from) => self.recv(from),
            Instr::Lock(lock) => self.lock(lock),
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

    /// The variable holds the next point of the grid, or 0 before the first turn: no grid has a
    /// point at 0, because its first one lies a period after its begin.
    fn timer(&mut self, period: Nanos, slot: u32) -> Next {
        let now = self.now;
        let next = &mut self.state().variables[slot as usize];
        let point = match u64::try_from(*next).expect("only this operation writes it") {
            0 => now + period,
            point => SimTime::from_nanos(point),
        };
        let after = (point + period).as_nanos();
        *next = i64::try_from(after).expect("a run is shorter than 292 years");
        self.sleep_until(point)
    }

    /// The indices of an instance that exists.
    fn instance(
        &mut self,
        Place { of, index }: &Place,
        declared: impl Fn(&Work, usize) -> (String, usize),
    ) -> Result<(usize, usize), WorkError> {
        let (of, index) = (*of as usize, self.eval(index)?);
        let (_, count) = declared(self.work, of);
        match usize::try_from(index) {
            Ok(instance) if instance < count => Ok((of, instance)),
            _ => {
                let (name, count) = declared(self.work, of);
                let count = count as u64;
                Err(WorkError::Index {
                    place: self.place(),
                    name,
                    index,
                    count,
                })
            }
        }
    }

    fn channel(&mut self, place: &Place) -> Result<(usize, usize), WorkError> {
        self.instance(place, |work, of| {
            (
                work.workload.channels[of].name.clone(),
                work.channels[of].len(),
            )
        })
    }

    /// Leaves the CPU until somebody wakes the task.
    fn block(&mut self, waits: Waits) -> Action {
        let state = self.state();
        state.waits = waits;
        state.is_asleep = true;
        Action::Block
    }

    /// Whether the task had waited for the operation that it now executes.
    fn had_waited(&mut self) -> bool {
        std::mem::take(&mut self.state().waits) != Waits::Nothing
    }

    fn wake(&mut self, wakes: Wakes) {
        for task in wakes.tasks {
            if self.work.rouse(task) {
                let wake = Action::Wake {
                    task,
                    sync: wakes.sync,
                };
                self.state().pending.push_back(wake);
            }
        }
    }

    fn send(&mut self, to: &Place, bytes: Option<&Expr>) -> Result<Next, WorkError> {
        let (of, index) = self.channel(to)?;
        let bytes = match bytes {
            Some(bytes) => self
                .within("the message's size", bytes, 1, i64::from(i32::MAX))?
                .unsigned_abs(),
            None => self.work.workload.channels[of].msg,
        };
        let woken = self.had_waited();
        match self.work.channels[of][index].send(bytes, self.now, woken) {
            Some(wakes) => {
                self.wake(wakes);
                Ok(Next::Go)
            }
            None => {
                self.work.channels[of][index].wait_to_send(self.task);
                Ok(Next::Again(self.block(Waits::Room { of, index })))
            }
        }
    }

    fn recv(&mut self, from: &Place) -> Result<Next, WorkError> {
        let (of, index) = self.channel(from)?;
        let woken = self.had_waited();
        match self.work.channels[of][index].recv(woken) {
            Some((sent, wakes)) => {
                self.state().message_sent = sent;
                self.wake(wakes);
                Ok(Next::Go)
            }
            None => {
                self.work.channels[of][index].wait_to_recv(self.task);
                Ok(Next::Again(self.block(Waits::Message { of, index })))
            }
        }
    }

    fn mutex(&mut self, place: &Place) -> Result<(usize, usize), WorkError> {
        self.instance(place, |work, of| {
            (work.workload.locks[of].name.clone(), work.locks[of].len())
        })
    }

    fn lock(&mut self, lock: &Place) -> Result<Next, WorkError> {
        let (of, index) = self.mutex(lock)?;
        match self.work.locks[of][index].lock(self.task) {
            Taken::Yes => Ok(Next::Go),
            Taken::Later => Ok(Next::Act(self.block(Waits::Lock { of, index }))),
            Taken::Retry => Ok(Next::Again(self.block(Waits::Lock { of, index }))),
            Taken::Twice => Err(WorkError::Lock {
                place: self.place(),
                what: "takes a lock that it holds",
            }),
        }
    }

    fn unlock(&mut self, lock: &Place) -> Result<Next, WorkError> {
        let (of, index) = self.mutex(lock)?;
        let Ok(next) = self.work.locks[of][index].unlock(self.task) else {
            let what = "gives back a lock that it does not hold";
            return Err(WorkError::Lock {
                place: self.place(),
                what,
            });
        };
        self.wake(Wakes {
            tasks: next.into_iter().collect(),
            sync: false,
        });
        Ok(Next::Go)
    }

    fn barrier(&mut self, barrier: &Place) -> Result<Next, WorkError> {
        let (of, index) = self.instance(barrier, |work, of| {
            (
                work.workload.barriers[of].name.clone(),
                work.barriers[of].len(),
            )
        })?;
        let Some(tasks) = self.work.barriers[of][index].arrive(self.task) else {
            return Ok(Next::Act(self.block(Waits::Barrier { of, index })));
        };
        self.wake(Wakes { tasks, sync: false });
        Ok(Next::Go)
    }

    fn suspend(&mut self) -> Next {
        if std::mem::take(&mut self.state().is_resumed) {
            return Next::Go;
        }
        Next::Act(self.block(Waits::Resume))
    }

    fn resume(&mut self, target: &Target) -> Result<Next, WorkError> {
        if let Some(task) = self.target(target)? {
            let tasks = self.work.resume(task).into_iter().collect();
            self.wake(Wakes { tasks, sync: false });
        }
        Ok(Next::Go)
    }

    fn fork(&mut self, group: u32) -> Result<Next, WorkError> {
        if self.work.alive >= TASKS_MAX {
            return Err(WorkError::TooManyTasks {
                place: self.place(),
                limit: TASKS_MAX,
            });
        }
        let members = &mut self.work.groups[group as usize].tasks;
        let index = u32::try_from(members.len()).expect("a run has fewer than 2^32 tasks");
        members.push(None);
        Ok(Next::Act(Action::Fork(
            self.work.birth(group, index, self.now),
        )))
    }

    /// The kernel wakes a parent in `exit_notify()`, before the task's last switch (Linux 6.18,
    /// `kernel/exit.c`). `do_notify_parent()` does so synchronously; a thread's joiner is woken
    /// through its futex, plainly.
    fn exit(&mut self) -> Next {
        let state = self.state();
        state.has_exited = true;
        let (parent, sync) = (state.parent, state.is_process);
        if let Some(parent) = parent {
            let parent_state = &mut self.work.tasks[parent.index()];
            parent_state.children -= 1;
            parent_state.zombies += 1;
            if parent_state.waits == Waits::Child {
                self.wake(Wakes {
                    tasks: vec![parent],
                    sync,
                });
            }
        }
        Next::Again(Action::Exit)
    }

    fn wait(&mut self, all: bool) -> Next {
        self.had_waited();
        let state = self.state();
        if all {
            state.zombies = 0;
        } else if state.zombies > 0 {
            state.zombies -= 1;
            return Next::Go;
        }
        if state.children == 0 {
            return Next::Go;
        }
        Next::Again(self.block(Waits::Child))
    }

    /// Children that the task forked outside the pool count too, as they do for `make`.
    fn pool(
        &mut self,
        group: u32,
        width: &Expr,
        total: &Expr,
        slot: u32,
    ) -> Result<Next, WorkError> {
        self.had_waited();
        let width = self.within("the pool's width", width, 1, i64::MAX)?;
        let total = self.within("the pool's total", total, 0, i64::MAX)?;
        let state = self.state();
        state.zombies = 0;
        let started = state.variables[slot as usize];
        if started < total && i64::from(state.children) < width {
            state.variables[slot as usize] = started + 1;
            let Next::Act(fork) = self.fork(group)? else {
                unreachable!("fork is an action")
            };
            return Ok(Next::Again(fork));
        }
        if state.children == 0 {
            return Ok(Next::Go);
        }
        Ok(Next::Again(self.block(Waits::Child)))
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

    fn span_begin(&mut self, span: u32) -> Next {
        let now = self.now;
        let spans = &mut self.state().spans;
        spans.retain(|(open, _)| *open != span);
        spans.push((span, now));
        self.record(EventKind::SpanBegin, u64::from(span), 0)
    }

    fn span_end(&mut self, span: u32) -> Result<Next, WorkError> {
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

    fn count(&mut self, counter: u32, by: &Expr) -> Result<Next, WorkError> {
        let by = self.within("the count", by, 0, i64::MAX)?.unsigned_abs();
        Ok(self.record(EventKind::Count, u64::from(counter), by))
    }

    fn release(&mut self, deadline: u32) -> Next {
        let (period, skip) = {
            let declared = &self.work.workload.deadlines[deadline as usize];
            (declared.period, declared.skip)
        };
        let Some(period) = period else {
            self.state().release_by_message(deadline);
            return Next::Go;
        };
        let now = self.now;
        let (at, passed) = self.state().release(deadline, period, skip, now);
        if passed > 0 {
            self.record(EventKind::Skipped, u64::from(deadline), passed);
        }
        self.sleep_until(at)
    }

    fn complete(&mut self, deadline: u32) -> Result<Next, WorkError> {
        let release = self
            .state()
            .releases
            .iter()
            .find(|r| r.deadline == deadline)
            .copied();
        let declared = &self.work.workload.deadlines[deadline as usize];
        let Some(release) = release else {
            let (name, what) = (declared.name.clone(), "release");
            return Err(WorkError::NotBegun {
                place: self.place(),
                name,
                what,
            });
        };
        let due = release.at + declared.slack;
        let late = self.now.as_nanos().saturating_sub(due.as_nanos());
        Ok(self.record(EventKind::Deadline, u64::from(deadline), late))
    }
}
