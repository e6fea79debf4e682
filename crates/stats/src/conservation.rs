//! Checks that a stream keeps the rules of docs/events.md, and that no time is lost.

use model::{
    Advice, CpuId, Event, EventKind, EventMask, Header, Nanos, PrevState, SimTime, Sink, Summary,
    TaskId, TaskTimes, What,
};

use crate::ledger::CpuLedger;

/// A rule that a stream broke, or an account that does not add up. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are named as in the messages")]
pub enum Violation {
    /// Rule 1: time runs backwards, or goes on after the end.
    #[error("at {time}: comes after {after}")]
    Order { time: SimTime, after: SimTime },
    /// Rule 3: a task has a wrong number, or an event names one that is not born.
    #[error("at {time}: task {task} is not born, and the next number is {next}", task = task.0)]
    Unborn {
        time: SimTime,
        task: TaskId,
        next: usize,
    },
    /// Rule 3: a task was born twice or left out.
    #[error("at {time}: task {task} is born, and the next number is {next}", task = task.0)]
    Birth {
        time: SimTime,
        task: TaskId,
        next: usize,
    },
    /// There is no such CPU.
    #[error("at {time}: there is no CPU {cpu}")]
    NoCpu { time: SimTime, cpu: CpuId },
    /// Rule 5: something happens to a task that has exited.
    #[error("at {time}: task {task} has exited, and there is a {kind:?}", task = task.0)]
    Exited {
        time: SimTime,
        task: TaskId,
        kind: EventKind,
    },
    /// Rule 5: a task is woken that does not sleep.
    #[error("at {time}: task {task} is woken and does not sleep", task = task.0)]
    WokenAwake { time: SimTime, task: TaskId },
    /// Rule 5: the first wakeup of a forked task must be a start, and no later one may be.
    #[error("at {time}: the wakeup of task {task} has the wrong `new`", task = task.0)]
    WrongNew { time: SimTime, task: TaskId },
    /// Rule 5: a CPU takes a task that is asleep.
    #[error("at {time}: CPU {cpu} takes task {task}, which is asleep", task = task.0)]
    RunAsleep {
        time: SimTime,
        task: TaskId,
        cpu: CpuId,
    },
    /// A CPU takes a task that is on a CPU.
    #[error("at {time}: CPU {cpu} takes task {task}, which is on CPU {on}", task = task.0)]
    TwoCpus {
        time: SimTime,
        task: TaskId,
        cpu: CpuId,
        on: CpuId,
    },
    /// A switch or a steal names another task than the one on the CPU.
    #[error("at {time}: {kind:?} on CPU {cpu} names {named:?}, and {on:?} is there")]
    WrongTask {
        time: SimTime,
        cpu: CpuId,
        kind: EventKind,
        named: Option<TaskId>,
        on: Option<TaskId>,
    },
    /// A switch changes nothing.
    #[error("at {time}: CPU {cpu} switches from {task:?} to the same")]
    NoSwitch {
        time: SimTime,
        cpu: CpuId,
        task: Option<TaskId>,
    },
    /// A switch has a state that does not fit: `Idle` is for idle CPUs only.
    #[error("at {time}: the switch on CPU {cpu} has the state {state}")]
    WrongState {
        time: SimTime,
        cpu: CpuId,
        state: u8,
    },
    /// Rule 5: an exit without the switch that it follows.
    #[error("at {time}: task {task} exits without leaving its CPU as dead", task = task.0)]
    ExitAlive { time: SimTime, task: TaskId },
    /// Rule 5: a task left its CPU as dead, and its exit did not follow at that time.
    #[error("task {task} was dead at {since}, and did not exit then", task = task.0)]
    NoExit { task: TaskId, since: SimTime },
    /// Rule 6: a task is taken or woken at another CPU than the one at which it is.
    #[error("at {time}: {kind:?} of task {} at CPU {cpu}, and it is at {place}", task.0)]
    WrongPlace {
        time: SimTime,
        task: TaskId,
        kind: EventKind,
        cpu: CpuId,
        place: CpuId,
    },
    /// Rule 6: a migration of a running task, or to where it is.
    #[error("at {time}: task {task} migrates to CPU {cpu} while it is there", task = task.0)]
    NoMigration {
        time: SimTime,
        task: TaskId,
        cpu: CpuId,
    },
    /// Rule 7: a CPU switches while announced time lasts.
    #[error("at {time}: CPU {cpu} switches {due} before the kernel is done")]
    KernelBusy {
        time: SimTime,
        cpu: CpuId,
        due: Nanos,
    },
    /// The machine's own account of a CPU differs from the events, or does not add up.
    #[error("CPU {cpu}: the summary has {summary}, the events {events}")]
    CpuTimes {
        cpu: usize,
        summary: String,
        events: String,
    },
    /// The machine's own account of a task differs from the events, or does not add up.
    #[error("task {task}: the summary has {summary}, the events {events}")]
    TaskTimes {
        task: usize,
        summary: String,
        events: String,
    },
    /// The summary speaks of another run: its length, or its number of CPUs or tasks.
    #[error("the summary has {summary}, the events {events}")]
    Run { summary: String, events: String },
}

impl Advice for Violation {
    fn advice(&self) -> Option<String> {
        None
    }
}

/// Checks a stream, and remembers the first violation.
///
/// The events alone give every task and CPU an account of its time; [`Conservation::check`]
/// compares them with the accounts that the machine kept, so that two independent countings must
/// agree. Affinity is not checked, because the events do not carry masks.
#[derive(Debug, Default)]
pub struct Conservation {
    cpus: Vec<CpuLedger>,
    tasks: Vec<TaskAccount>,
    /// Left its CPU as dead, and must exit at that time.
    dying: Vec<(TaskId, SimTime)>,
    now: SimTime,
    violation: Option<Violation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskState {
    Unstarted,
    Asleep,
    Runnable,
    Running(CpuId),
    Dead,
    Exited,
}

#[derive(Debug)]
struct TaskAccount {
    state: TaskState,
    /// When the state began. Meaningless while the task is running.
    since: SimTime,
    born: SimTime,
    exited: Option<SimTime>,
    place: CpuId,
    forked: bool,
    times: TaskTimes,
}

impl TaskAccount {
    /// Ends the state, and books its time.
    fn enter(&mut self, state: TaskState, now: SimTime) {
        match self.state {
            TaskState::Unstarted | TaskState::Asleep => self.times.sleep += now.since(self.since),
            TaskState::Runnable => self.times.wait += now.since(self.since),
            TaskState::Running(_) | TaskState::Dead | TaskState::Exited => {}
        }
        (self.state, self.since) = (state, now);
    }
}

impl Conservation {
    /// A check that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The first rule that the stream broke.
    #[must_use]
    pub const fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Checks a whole run, after its end: no rule was broken, and the summary's accounts add up
    /// and agree with the events.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self, summary: &Summary) -> Result<(), Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        self.check_run(summary)?;
        self.check_cpus(summary)?;
        self.check_tasks(summary)
    }

    fn check_run(&self, summary: &Summary) -> Result<(), Violation> {
        let shape = |end: SimTime, cpus, tasks| format!("{cpus} CPUs, {tasks} tasks, end {end}");
        let theirs = shape(summary.end, summary.cpus.len(), summary.tasks.len());
        let ours = shape(self.now, self.cpus.len(), self.tasks.len());
        if theirs == ours {
            return Ok(());
        }
        Err(Violation::Run {
            summary: theirs,
            events: ours,
        })
    }

    fn check_cpus(&self, summary: &Summary) -> Result<(), Violation> {
        let elapsed = self.now.since(SimTime::ZERO);
        for (cpu, (theirs, ours)) in summary.cpus.iter().zip(&self.cpus).enumerate() {
            let sum = sum([theirs.run, theirs.stolen, theirs.idle, theirs.overhead]);
            if *theirs != ours.times() || sum != u128::from(elapsed.get()) {
                let summary = format!("{theirs:?}, in all {sum} ns");
                let events = format!("{:?}, in all {} ns", ours.times(), elapsed.get());
                return Err(Violation::CpuTimes {
                    cpu,
                    summary,
                    events,
                });
            }
        }
        Ok(())
    }

    fn check_tasks(&self, summary: &Summary) -> Result<(), Violation> {
        for (task, (theirs, ours)) in summary.tasks.iter().zip(&self.tasks).enumerate() {
            let lifetime = ours.exited.unwrap_or(self.now).since(ours.born);
            let sum = sum([theirs.run, theirs.stolen, theirs.wait, theirs.sleep]);
            if *theirs != ours.times || sum != u128::from(lifetime.get()) {
                let summary = format!("{theirs:?}, in all {sum} ns");
                let events = format!("{:?}, in all {} ns", ours.times, lifetime.get());
                return Err(Violation::TaskTimes {
                    task,
                    summary,
                    events,
                });
            }
        }
        Ok(())
    }

    fn take(&mut self, event: &Event) -> Result<(), Violation> {
        let &Event {
            time,
            cpu,
            task,
            kind,
            ..
        } = event;
        if time < self.now {
            return Err(Violation::Order {
                time,
                after: self.now,
            });
        }
        if cpu.index() >= self.cpus.len() {
            return Err(Violation::NoCpu { time, cpu });
        }
        self.now = time;
        self.check_dying(time, task, kind)?;
        let what = event.what();
        match what {
            What::New { parent, .. } => return self.born(event, parent),
            What::Switch {
                prev,
                state,
                overhead,
            } => return self.switched(event, (named(prev.0), state), overhead),
            What::Steal { span } => return self.stolen(event, span),
            _ => {}
        }
        if task == TaskId::NONE && !traces::needs_task(kind) {
            return Ok(());
        }
        let state = self.task(time, task)?.state;
        match what {
            What::Exit => self.exited(event),
            // A policy hears of a task's end after the end.
            What::Callback { .. } => Ok(()),
            _ if state == TaskState::Exited => Err(Violation::Exited { time, task, kind }),
            What::Wakeup(wakeup) => self.woken(event, wakeup.new),
            What::Migrate { from } => self.migrated(event, from),
            _ => Ok(()),
        }
    }

    /// A task that left its CPU as dead exits at that time.
    fn check_dying(&self, now: SimTime, task: TaskId, kind: EventKind) -> Result<(), Violation> {
        let overdue = self
            .dying
            .iter()
            .find(|(dying, since)| *since < now && !(kind == EventKind::Exit && *dying == task));
        overdue.map_or(Ok(()), |&(task, since)| {
            Err(Violation::NoExit { task, since })
        })
    }

    fn task(&mut self, time: SimTime, task: TaskId) -> Result<&mut TaskAccount, Violation> {
        let next = self.tasks.len();
        self.tasks
            .get_mut(task.index())
            .ok_or(Violation::Unborn { time, task, next })
    }

    fn born(&mut self, event: &Event, parent: TaskId) -> Result<(), Violation> {
        let &Event {
            time, task, cpu, ..
        } = event;
        let next = self.tasks.len();
        if task.index() != next {
            return Err(Violation::Birth { time, task, next });
        }
        self.tasks.push(TaskAccount {
            state: TaskState::Unstarted,
            since: time,
            born: time,
            exited: None,
            place: cpu,
            forked: named(parent.0).is_some(),
            times: TaskTimes::default(),
        });
        Ok(())
    }

    fn woken(&mut self, event: &Event, new: bool) -> Result<(), Violation> {
        let &Event {
            time,
            task,
            cpu,
            kind,
            ..
        } = event;
        let account = self.task(time, task)?;
        let (place, state) = (account.place, account.state);
        if !matches!(state, TaskState::Asleep | TaskState::Unstarted) {
            return Err(Violation::WokenAwake { time, task });
        }
        let may_start = state == TaskState::Unstarted;
        let must_start = may_start && account.forked;
        if !new && must_start || new && !may_start {
            return Err(Violation::WrongNew { time, task });
        }
        if state == TaskState::Asleep && cpu != place {
            return Err(Violation::WrongPlace {
                time,
                task,
                kind,
                cpu,
                place,
            });
        }
        account.place = cpu;
        account.enter(TaskState::Runnable, time);
        Ok(())
    }

    fn migrated(&mut self, event: &Event, from: CpuId) -> Result<(), Violation> {
        let &Event {
            time,
            task,
            cpu,
            kind,
            ..
        } = event;
        let account = self.task(time, task)?;
        let place = account.place;
        if matches!(account.state, TaskState::Running(_)) || cpu == place {
            return Err(Violation::NoMigration { time, task, cpu });
        }
        if from != place {
            return Err(Violation::WrongPlace {
                time,
                task,
                kind,
                cpu,
                place,
            });
        }
        account.place = cpu;
        Ok(())
    }

    fn exited(&mut self, event: &Event) -> Result<(), Violation> {
        let &Event { time, task, .. } = event;
        let dying = self.dying.iter().position(|dying| *dying == (task, time));
        let Some(dying) = dying else {
            return Err(Violation::ExitAlive { time, task });
        };
        self.dying.swap_remove(dying);
        let account = self.task(time, task)?;
        account.enter(TaskState::Exited, time);
        account.exited = Some(time);
        Ok(())
    }

    fn stolen(&mut self, event: &Event, span: Nanos) -> Result<(), Violation> {
        let &Event { time, cpu, .. } = event;
        self.check_on_cpu(event, named(event.task.0))?;
        self.settle(cpu, time);
        self.cpus[cpu.index()].steal(span);
        Ok(())
    }

    fn switched(
        &mut self,
        event: &Event,
        (prev, state): (Option<TaskId>, PrevState),
        overhead: Nanos,
    ) -> Result<(), Violation> {
        let &Event { time, cpu, .. } = event;
        let next = named(event.task.0);
        self.check_on_cpu(event, prev)?;
        if prev == next {
            return Err(Violation::NoSwitch {
                time,
                cpu,
                task: next,
            });
        }
        if (state == PrevState::Idle) != prev.is_none() {
            let state = state as u8;
            return Err(Violation::WrongState { time, cpu, state });
        }
        self.settle(cpu, time);
        let due = self.cpus[cpu.index()].due();
        if !due.is_zero() {
            return Err(Violation::KernelBusy { time, cpu, due });
        }
        if let Some(prev) = prev {
            self.switched_out(prev, state, time);
        }
        if let Some(next) = next {
            self.switched_in(next, cpu, time)?;
        }
        self.cpus[cpu.index()].switch(event.task, overhead);
        Ok(())
    }

    fn switched_out(&mut self, prev: TaskId, state: PrevState, now: SimTime) {
        let state = match state {
            PrevState::Runnable => TaskState::Runnable,
            PrevState::Sleeping => TaskState::Asleep,
            PrevState::Idle | PrevState::Dead => {
                self.dying.push((prev, now));
                TaskState::Dead
            }
        };
        self.tasks[prev.index()].enter(state, now);
    }

    fn switched_in(&mut self, task: TaskId, cpu: CpuId, time: SimTime) -> Result<(), Violation> {
        let kind = EventKind::Switch;
        let account = self.task(time, task)?;
        let place = account.place;
        match account.state {
            TaskState::Runnable if place == cpu => {
                account.enter(TaskState::Running(cpu), time);
                Ok(())
            }
            TaskState::Runnable => Err(Violation::WrongPlace {
                time,
                task,
                kind,
                cpu,
                place,
            }),
            TaskState::Unstarted | TaskState::Asleep => {
                Err(Violation::RunAsleep { time, task, cpu })
            }
            TaskState::Running(on) => Err(Violation::TwoCpus {
                time,
                task,
                cpu,
                on,
            }),
            TaskState::Dead | TaskState::Exited => Err(Violation::Exited { time, task, kind }),
        }
    }

    fn check_on_cpu(&self, event: &Event, named: Option<TaskId>) -> Result<(), Violation> {
        let &Event {
            time, cpu, kind, ..
        } = event;
        let on = self.cpus[cpu.index()].task();
        if on == named {
            return Ok(());
        }
        Err(Violation::WrongTask {
            time,
            cpu,
            kind,
            named,
            on,
        })
    }

    /// Books the time of a CPU up to `now`.
    fn settle(&mut self, cpu: CpuId, now: SimTime) {
        let ledger = &mut self.cpus[cpu.index()];
        let portion = ledger.settle(now);
        if let Some(task) = ledger.task() {
            let times = &mut self.tasks[task.index()].times;
            times.run += portion.run;
            times.stolen += portion.stolen;
        }
    }

    fn end(&mut self, end: SimTime) -> Result<(), Violation> {
        if end < self.now {
            return Err(Violation::Order {
                time: self.now,
                after: end,
            });
        }
        if let Some(&(task, since)) = self.dying.first() {
            return Err(Violation::NoExit { task, since });
        }
        self.now = end;
        for cpu in (0..).map(CpuId).take(self.cpus.len()) {
            self.settle(cpu, end);
        }
        for task in &mut self.tasks {
            task.enter(task.state, end);
        }
        Ok(())
    }
}

/// The task with a number, unless it stands for none.
fn named(number: u32) -> Option<TaskId> {
    Some(TaskId(number)).filter(|task| *task != TaskId::NONE)
}

/// The sum of four spans, which cannot overflow.
fn sum(spans: [Nanos; 4]) -> u128 {
    spans.iter().map(|span| u128::from(span.get())).sum()
}

impl Sink for Conservation {
    fn wants(&self) -> EventMask {
        EventMask::ALL
    }

    fn begin(&mut self, header: &Header) {
        self.cpus = vec![CpuLedger::default(); usize::from(header.machine.cpus)];
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            if self.violation.is_some() {
                return;
            }
            self.violation = self.take(event).err();
        }
    }

    fn finish(&mut self, end: SimTime) {
        if self.violation.is_none() {
            self.violation = self.end(end).err();
        }
    }
}

#[cfg(test)]
mod tests;
