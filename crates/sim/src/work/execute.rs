//! Performs a task's commands until one of them takes time, leaves the CPU, or changes a task.

use model::{EventKind, SimTime, TaskId};
use workload::{Command, Expr, ResourceInstance, TIME_MAX, Target, TaskFault, TaskRef, World};

use super::channel::Queue;
use super::task::Waits;
use super::{Action, Work, WorkError, WorkEvent};

mod devices;
mod family;
mod sharing;
mod storage;

/// A task that executes more than this while no time passes will never come to an end.
pub(super) const STEPS_MAX: u32 = 1_000_000;

/// What follows a command.
enum Next {
    /// The next one.
    Go,
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
    let state = &work.tasks[task.index()];
    assert!(
        !state.has_exited || !state.pending.is_empty(),
        "an exited task has no next step"
    );
    loop {
        let state = &mut work.tasks[task.index()];
        if let Some(action) = state.pending.pop_front() {
            return Ok(action);
        }
        let (command, waited) = command(work, task, now).map_err(|source| WorkError::Task {
            place: work.place_of(task),
            source,
        })?;
        let mut executor = Executor {
            work,
            task,
            now,
            out,
        };
        let action = match executor.perform(&command, waited)? {
            Next::Go => continue,
            Next::Act(action) => action,
            Next::Again(action) => {
                let state = executor.state();
                state.again = Some(command);
                state.tries_again = true;
                action
            }
        };
        let state = &mut work.tasks[task.index()];
        if state.pending.is_empty() {
            return Ok(action);
        }
        // Wakes that the command caused come first.
        state.pending.push_back(action);
    }
}

/// What the task performs now: what it waited for, which is the second value, or its next command.
#[inline]
fn command(
    work: &mut Work,
    task: TaskId,
    now: SimTime,
) -> Result<(Command, Option<Waits>), TaskFault> {
    let state = &mut work.tasks[task.index()];
    if state.steps_since != now {
        (state.steps, state.steps_since) = (0, now);
    }
    let mut view = View {
        now,
        cpus: work.cpus,
        channels: &work.channels,
        children: state.children,
        zombies: &mut state.zombies,
        steps: &mut state.steps,
    };
    if std::mem::take(&mut state.tries_again)
        && let Some(command) = state.again.take()
    {
        view.count_instruction()?;
        let waited = std::mem::take(&mut state.waits);
        return Ok((command, (waited != Waits::Nothing).then_some(waited)));
    }
    let code = &work.codes[state.stepper.group() as usize];
    let command = state.stepper.next(code, &work.workload, &mut view)?;
    Ok((command, None))
}

/// What a task sees of the machine.
struct View<'a> {
    now: SimTime,
    cpus: u16,
    channels: &'a [Vec<Queue>],
    children: u32,
    zombies: &'a mut u32,
    steps: &'a mut u32,
}

impl World for View<'_> {
    fn now(&self) -> SimTime {
        self.now
    }

    fn cpus(&self) -> u16 {
        self.cpus
    }

    fn queued(&self, ResourceInstance { of, index }: ResourceInstance) -> u64 {
        self.channels[of as usize][index as usize].len() as u64
    }

    fn children(&mut self) -> u32 {
        *self.zombies = 0;
        self.children
    }

    fn count_instruction(&mut self) -> Result<(), TaskFault> {
        *self.steps += 1;
        if *self.steps > STEPS_MAX {
            return Err(TaskFault::NoProgress { steps: STEPS_MAX });
        }
        Ok(())
    }
}

/// The task of a target whose index is a constant; `None` if it has exited or was not born.
pub(super) fn constant_target(work: &Work, target: &Target) -> Result<Option<TaskId>, TaskFault> {
    match target {
        Target::Member {
            group,
            index: Expr::Number(index),
        } => member(work, *group, *index),
        other => unreachable!("the front end asks for a constant, not {other:?}"),
    }
}

fn member(work: &Work, group: u32, index: i64) -> Result<Option<TaskId>, TaskFault> {
    let tasks = &work.groups[group as usize].tasks;
    let found = usize::try_from(index)
        .ok()
        .and_then(|index| tasks.get(index));
    let found = found.ok_or_else(|| TaskFault::Index {
        name: work.workload.groups[group as usize].name.clone(),
        index,
        count: tasks.len() as u64,
    })?;
    Ok(found.filter(|task| !work.tasks[task.index()].has_exited))
}

/// One command of one task at one moment.
struct Executor<'a> {
    work: &'a mut Work,
    task: TaskId,
    now: SimTime,
    out: &'a mut Vec<WorkEvent>,
}

impl Executor<'_> {
    /// Performs a command. `waited`: the task has waited for it, and for what.
    fn perform(&mut self, command: &Command, waited: Option<Waits>) -> Result<Next, WorkError> {
        match *command {
            Command::Run(span) | Command::Exec(span)
                if span.get() > TIME_MAX.as_nanos().saturating_sub(self.now.as_nanos()) =>
            {
                Err(self.fault(TaskFault::TooLate))
            }
            Command::Run(span) => Ok(Next::Act(Action::Run(span))),
            Command::Exec(span) => Ok(Next::Act(Action::Exec(span))),
            // Who had to wait for a CPU first is late.
            Command::SleepUntil(time) if time <= self.now => Ok(Next::Go),
            Command::SleepUntil(time) => Ok(Next::Act(Action::SleepUntil(time))),
            Command::Send { to, bytes, value } => Ok(self.send(to, (bytes, value), waited)),
            Command::Recv(from) => Ok(self.recv(from, waited)),
            Command::Lock(lock) => self.lock(lock, false, waited),
            Command::Unlock(lock) => self.unlock(lock),
            Command::Barrier(barrier) => Ok(self.barrier(barrier)),
            Command::Yield => Ok(Next::Act(Action::Yield)),
            Command::MigrateDisable => Ok(Next::Act(Action::MigrateDisable)),
            Command::MigrateEnable => Ok(Next::Act(Action::MigrateEnable)),
            Command::Suspend => Ok(self.suspend()),
            Command::Resume(task) => self.resume(task),
            Command::Fork(group) => self.fork(group),
            Command::Exit => Ok(self.exit()),
            Command::Wait { all } => Ok(self.wait(all)),
            Command::AwaitChild => Ok(Next::Act(self.block(Waits::Child))),
            Command::SetNice { task, nice } => {
                self.change(task, |task| Action::SetNice { task, nice })
            }
            Command::SetAffinity { task, ref cpus } => {
                let cpus = cpus.clone();
                self.change(task, |task| Action::SetAffinity { task, cpus })
            }
            Command::SetPolicy { task, policy } => {
                self.change(task, |task| Action::SetPolicy { task, policy })
            }
            Command::MoveCgroup { task, to, process } => {
                self.change(task, |task| Action::MoveCgroup { task, to, process })
            }
            Command::SetCgroup { number, change } => {
                Ok(Next::Act(Action::SetCgroup { number, change }))
            }
            Command::Record {
                kind,
                number,
                value,
            } => Ok(self.record(kind, u64::from(number), value)),
            _ => self.perform_shared(command, waited),
        }
    }

    fn state(&mut self) -> &mut super::Task {
        &mut self.work.tasks[self.task.index()]
    }

    /// File, line and task, for messages.
    fn place(&self) -> String {
        self.work.place_of(self.task)
    }

    fn fault(&self, source: TaskFault) -> WorkError {
        let place = self.place();
        WorkError::Task { place, source }
    }

    fn record(&mut self, kind: EventKind, a: u64, b: u64) -> Next {
        self.out.push(WorkEvent { kind, a, b });
        Next::Go
    }

    /// The task that a command acts on; `None` if it has exited or was not born.
    fn target(&mut self, task: TaskRef) -> Result<Option<TaskId>, WorkError> {
        match task {
            TaskRef::Me => Ok(Some(self.task)),
            TaskRef::Member { group, index } => {
                member(self.work, group, index).map_err(|fault| self.fault(fault))
            }
        }
    }

    fn change(
        &mut self,
        task: TaskRef,
        action: impl FnOnce(TaskId) -> Action,
    ) -> Result<Next, WorkError> {
        let task = self.target(task)?;
        Ok(task.map_or(Next::Go, |task| Next::Act(action(task))))
    }
}
