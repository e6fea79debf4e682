//! What the stepper asks of a machine, and how it makes that of one operation.

use super::{Stepper, TIME_MAX, TaskFault, World};
use crate::release::Grid;
use crate::{
    Amount, Bandwidth, CGROUP_WEIGHTS, CgroupOp, Code, CpuSet, DRAW_MAX, DeviceOp, Expr,
    IndexedResource, LockKind, Operation, PAGE, SchedPolicy, Scope, Target, Where, Workload,
};
use model::{EventKind, Nanos, SimTime};

/// How long a piece of `run(inf)` is: an hour; then the task is asked again.
pub const FOREVER: Nanos = Nanos::from_secs(3_600);

/// Largest single transfer of a disk: 1 GiB.
const TRANSFER_MAX: i64 = 1 << 30;
/// Largest memory of a task: 1 TiB.
const MEMORY_MAX: i64 = 1 << 40;

/// Next command of a task. Everything in it is resolved: spans are drawn, indices exist, conditions
/// and loops are behind it. The operations are those of docs/workload.md.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Computes for so long, never zero.
    Run(Nanos),
    /// Starts another program, which computes for so long, possibly zero.
    Exec(Nanos),
    /// Sleeps until this time, which is later than now.
    SleepUntil(SimTime),
    /// Puts a message into a channel.
    Send {
        /// The channel.
        to: ResourceInstance,
        /// Bytes, 1 or more.
        bytes: u64,
        /// What the receiver sees as `got`.
        value: i64,
    },
    /// Takes a message out of a channel; then [`Stepper::received`](crate::Stepper::received).
    Recv(ResourceInstance),
    /// Takes a lock.
    Lock(ResourceInstance),
    /// Takes a read-write lock for reading.
    LockShared(ResourceInstance),
    /// Takes a lock unless tasks would then wait for each other in a circle; then
    /// [`Stepper::answer`](crate::Stepper::answer).
    TryLock {
        /// The lock.
        lock: ResourceInstance,
        /// Variable to set: 1 if the lock was refused, else 0.
        failed: u32,
    },
    /// Gives a lock back.
    Unlock(ResourceInstance),
    /// Gives back everything that the task holds of this lock declaration.
    UnlockAll(u32),
    /// Takes a token of a semaphore.
    SemWait(ResourceInstance),
    /// Gives a semaphore a token.
    SemPost(ResourceInstance),
    /// Gives the lock back, waits for a signal, takes the lock again.
    CondWait {
        /// The condition variable.
        cond: ResourceInstance,
        /// The lock.
        lock: ResourceInstance,
    },
    /// Wakes one task that waits for a condition.
    Signal(ResourceInstance),
    /// Wakes all of them.
    Broadcast(ResourceInstance),
    /// Connects to a listening socket.
    Connect {
        /// The socket.
        to: ResourceInstance,
        /// What the accepting task sees as `got`.
        value: i64,
    },
    /// Accepts a connection; then [`Stepper::received`](crate::Stepper::received).
    Accept(ResourceInstance),
    /// A request from outside is done.
    Done {
        /// Index of the arrivals' declaration.
        arrival: u32,
        /// Its number.
        request: i64,
    },
    /// Reads pages of a disk.
    Read {
        /// Index of the disk.
        disk: u32,
        /// The first page.
        page: u64,
        /// How many.
        pages: u64,
    },
    /// Writes pages of a disk.
    Write {
        /// Index of the disk.
        disk: u32,
        /// The first page.
        page: u64,
        /// How many.
        pages: u64,
    },
    /// Waits until what was written is on this disk.
    Sync(u32),
    /// Writes the dirty pages of this disk's cache.
    WriteBack(u32),
    /// Uses pages of the task's memory.
    Touch {
        /// How many.
        pages: u64,
        /// Draw each from so many; `None`: from the first page on, in order.
        of: Option<u64>,
    },
    /// Waits until memory is short, and makes room.
    Reclaim,
    /// Waits for the other parties of a barrier.
    Barrier(ResourceInstance),
    /// `sched_yield()`.
    Yield,
    /// Forbids the task's migration once more.
    MigrateDisable,
    /// Takes one of these back.
    MigrateEnable,
    /// Sleeps until resumed.
    Suspend,
    /// Resumes a task.
    Resume(TaskRef),
    /// Creates one task of this group.
    Fork(u32),
    /// Ends the task. It has no next command.
    Exit,
    /// Waits for one child to exit, or for all.
    Wait {
        /// For all.
        all: bool,
    },
    /// Waits for one child to exit. There is one that has not.
    AwaitChild,
    /// Changes a nice value.
    SetNice {
        /// Whose.
        task: TaskRef,
        /// -20 to 19.
        nice: i8,
    },
    /// Changes the CPUs that a task may run on.
    SetAffinity {
        /// Whose.
        task: TaskRef,
        /// CPUs of the machine.
        cpus: CpuSet,
    },
    /// Changes a scheduling policy.
    SetPolicy {
        /// Whose.
        task: TaskRef,
        /// The new policy.
        policy: SchedPolicy,
    },
    /// Moves a task to a cgroup.
    MoveCgroup {
        /// Whom.
        task: TaskRef,
        /// Number of the cgroup; 0 is the root.
        to: u32,
        /// With all tasks that share its address space.
        process: bool,
    },
    /// Writes into a cgroup's files.
    SetCgroup {
        /// Number of the cgroup, not the root's.
        number: u32,
        /// What is written.
        change: CgroupChange,
    },
    /// Records an event of this kind about the task.
    Record {
        /// What happened.
        kind: EventKind,
        /// Number of the phase, span, counter or deadline.
        number: u32,
        /// Second word of the event.
        value: u64,
    },
    /// Begins a span that any task may end.
    SpanBegin {
        /// Which.
        span: u32,
        /// Which one of them.
        key: i64,
    },
    /// Ends a span that any task has begun.
    SpanEnd {
        /// Which.
        span: u32,
        /// Which one of them.
        key: i64,
    },
}

/// An instance of something declared; it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceInstance {
    /// Index of the declaration.
    pub of: u32,
    /// Index of the instance, below the declared count.
    pub index: u32,
}

/// A task that a command acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRef {
    /// The acting task itself.
    Me,
    /// A member of a group. Only the machine knows whether it exists.
    Member {
        /// Index of the group.
        group: u32,
        /// Index within the group.
        index: i64,
    },
}

/// Value for a cgroup's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupChange {
    /// `cpu.weight`, one of [`CGROUP_WEIGHTS`](crate::CGROUP_WEIGHTS).
    Weight(u32),
    /// `cpu.max`; the burst stays.
    Max(Bandwidth),
    /// `cpu.idle`.
    Idle(bool),
}

/// One instruction of one task.
pub(super) struct StepperTurn<'a, W> {
    pub task: &'a mut Stepper,
    pub workload: &'a Workload,
    pub world: &'a mut W,
}

/// What an expression of a task sees.
struct Sight<'a, W> {
    task: &'a mut Stepper,
    workload: &'a Workload,
    world: &'a W,
}

impl<W: World> Scope for Sight<'_, W> {
    fn variable(&self, slot: u32) -> i64 {
        self.task.variables[slot as usize]
    }

    fn me(&self) -> i64 {
        self.task.index.into()
    }

    fn cpus(&self) -> i64 {
        self.world.cpus().into()
    }

    fn queued(&self, of: u32, index: i64) -> Option<i64> {
        let count = self.workload.channels[of as usize].count;
        let index = u32::try_from(index).ok().filter(|index| *index < count)?;
        i64::try_from(self.world.queued(ResourceInstance { of, index })).ok()
    }

    fn got(&self) -> i64 {
        self.task.got
    }

    fn key(&mut self, of: u32) -> i64 {
        let LockKind::Keyed(keys) = self.workload.locks[of as usize].kind else {
            unreachable!("the front end asks for a keyed lock")
        };
        keys.draw(&mut self.task.rng).into()
    }

    fn random(&mut self, bound: u64) -> u64 {
        self.task.rng.below(bound)
    }
}

impl<W: World> StepperTurn<'_, W> {
    /// The next command of a task whose operations are a script.
    #[inline(never)]
    pub fn scripted(&mut self, code: &Code) -> Result<Option<Command>, TaskFault> {
        self.operation(&code.scripted(self.task.taken))
    }

    /// The command that an operation of one instruction is; `None` if there is nothing to do.
    #[inline]
    pub fn operation(&mut self, op: &Operation) -> Result<Option<Command>, TaskFault> {
        Ok(Some(match op {
            Operation::Run(Some(amount)) => {
                let span = self.span(amount)?;
                return Ok((!span.is_zero()).then_some(Command::Run(span)));
            }
            Operation::Run(None) => {
                self.task.repeat();
                Command::Run(FOREVER)
            }
            Operation::Exec(amount) => Command::Exec(self.span(amount)?),
            Operation::Poll { span, step, slot } => return self.poll(span, *step, *slot),
            Operation::Sleep(amount) => {
                let span = self.span(amount)?;
                let now = self.world.now();
                let until = later(now, span)?;
                return Ok((until > now).then_some(Command::SleepUntil(until)));
            }
            Operation::SleepUntil(amount) => {
                let begin = self.workload.begin.map_or(Nanos::ZERO, |begin| begin.at);
                let until = later(SimTime::ZERO + begin, self.span(amount)?)?;
                return Ok((until > self.world.now()).then_some(Command::SleepUntil(until)));
            }
            Operation::Timer { .. } => return self.timer(op),
            Operation::Send { to, bytes, value } => {
                self.send(to, bytes.as_ref(), value.as_ref())?
            }
            Operation::Recv(from) => Command::Recv(self.channel(from)?),
            Operation::Lock(lock) => Command::Lock(self.lock(lock)?),
            Operation::Unlock(lock) => Command::Unlock(self.lock(lock)?),
            Operation::Barrier(barrier) => {
                let declared = &self.workload.barriers[barrier.of as usize];
                Command::Barrier(self.instance(barrier, declared.count, &declared.name)?)
            }
            Operation::Yield => Command::Yield,
            Operation::MigrateDisable => Command::MigrateDisable,
            Operation::MigrateEnable => Command::MigrateEnable,
            Operation::Suspend => Command::Suspend,
            Operation::Resume(target) => Command::Resume(self.target(target)?),
            Operation::Fork(group) => Command::Fork(*group),
            Operation::Exit => Command::Exit,
            Operation::Wait { all } => Command::Wait { all: *all },
            Operation::Pool { .. } => return self.pool(op),
            Operation::Let { slot, value } => {
                let value = self.eval(value)?;
                self.task.answer(*slot, value);
                return Ok(None);
            }
            Operation::SetNice { .. }
            | Operation::SetAffinity { .. }
            | Operation::SetPolicy { .. } => self.change(op)?,
            Operation::Device(op) => self.device(op)?,
            _ => return self.measure(op),
        }))
    }

    /// What tasks use together.
    #[inline]
    fn device(&mut self, op: &DeviceOp) -> Result<Command, TaskFault> {
        Ok(match op {
            DeviceOp::LockShared(lock) => Command::LockShared(self.lock(lock)?),
            DeviceOp::TryLock { lock, failed } => Command::TryLock {
                lock: self.lock(lock)?,
                failed: *failed,
            },
            DeviceOp::UnlockAll(of) => Command::UnlockAll(*of),
            DeviceOp::SemWait(semaphore) => Command::SemWait(self.semaphore(semaphore)?),
            DeviceOp::SemPost(semaphore) => Command::SemPost(self.semaphore(semaphore)?),
            DeviceOp::CondWait { cond, lock } => {
                let lock = self.lock(lock)?;
                let cond = self.condition(cond)?;
                Command::CondWait { cond, lock }
            }
            DeviceOp::Signal(cond) => Command::Signal(self.condition(cond)?),
            DeviceOp::Broadcast(cond) => Command::Broadcast(self.condition(cond)?),
            DeviceOp::Connect { to, value } => {
                let to = self.listener(to)?;
                let value = self.eval(value)?;
                Command::Connect { to, value }
            }
            DeviceOp::Accept(from) => Command::Accept(self.listener(from)?),
            DeviceOp::Done { arrival, request } => Command::Done {
                arrival: *arrival,
                request: self.eval(request)?,
            },
            DeviceOp::Read { disk, bytes, at } => {
                let (page, pages) = self.transfer(*disk, bytes, at)?;
                let disk = *disk;
                Command::Read { disk, page, pages }
            }
            DeviceOp::Write { disk, bytes, at } => {
                let (page, pages) = self.transfer(*disk, bytes, at)?;
                let disk = *disk;
                Command::Write { disk, page, pages }
            }
            DeviceOp::Sync(disk) => Command::Sync(*disk),
            DeviceOp::WriteBack(disk) => Command::WriteBack(*disk),
            DeviceOp::Touch { bytes, of } => self.touch(bytes, of.as_ref())?,
            DeviceOp::Reclaim => Command::Reclaim,
            DeviceOp::Cgroup(op) => self.cgroup(op)?,
            DeviceOp::SpanBegin { span, key } => Command::SpanBegin {
                span: *span,
                key: self.eval(key)?,
            },
            DeviceOp::SpanEnd { span, key } => Command::SpanEnd {
                span: *span,
                key: self.eval(key)?,
            },
        })
    }

    /// Phases, spans, counters and deadlines.
    fn measure(&mut self, op: &Operation) -> Result<Option<Command>, TaskFault> {
        let (kind, number, value) = match *op {
            Operation::Phase(phase) => (EventKind::Phase, phase, 0),
            Operation::SpanBegin(span) => {
                let now = self.world.now();
                let spans = &mut self.task.kept().spans;
                spans.retain(|(open, _)| *open != span);
                spans.push((span, now));
                (EventKind::SpanBegin, span, 0)
            }
            Operation::SpanEnd(span) => {
                let spans = &mut self.task.kept().spans;
                let Some(at) = spans.iter().position(|(open, _)| *open == span) else {
                    let name = &self.workload.spans[span as usize];
                    return Err(TaskFault::not_begun(name, "span_begin"));
                };
                let (_, begin) = spans.swap_remove(at);
                let length = self.world.now().since(begin).get();
                (EventKind::SpanEnd, span, length)
            }
            Operation::Count { counter, ref by } => {
                let by = self.within("the count", by, 0, i64::MAX)?.unsigned_abs();
                (EventKind::Count, counter, by)
            }
            Operation::Release(deadline) => return self.release(deadline),
            Operation::Complete(deadline) => {
                let declared = &self.workload.deadlines[deadline as usize];
                let Some(release) = self.task.kept().releases.complete(deadline) else {
                    return Err(TaskFault::not_begun(&declared.name, "release"));
                };
                self.world.released(deadline, None);
                let due = later(release, declared.slack)?;
                let late = self.world.now().as_nanos().saturating_sub(due.as_nanos());
                (EventKind::Deadline, deadline, late)
            }
            ref other => unreachable!("{other:?} is no single instruction"),
        };
        Ok(Some(Command::Record {
            kind,
            number,
            value,
        }))
    }

    pub fn eval(&mut self, expr: &Expr) -> Result<i64, TaskFault> {
        if let Expr::Number(value) = expr {
            return Ok(*value);
        }
        let mut sight = Sight {
            task: self.task,
            workload: self.workload,
            world: self.world,
        };
        Ok(expr.eval(&mut sight)?)
    }

    /// An expression's value, which must lie in `low..=high`.
    fn within(
        &mut self,
        what: &'static str,
        expr: &Expr,
        low: i64,
        high: i64,
    ) -> Result<i64, TaskFault> {
        let value = self.eval(expr)?;
        if (low..=high).contains(&value) {
            return Ok(value);
        }
        Err(TaskFault::Range {
            what,
            value,
            low,
            high,
        })
    }

    fn span(&mut self, amount: &Amount) -> Result<Nanos, TaskFault> {
        let times = self.within("the factor", &amount.times, 0, i64::MAX)?;
        let draw = amount.dist.sample(&mut self.task.rng);
        Ok(Nanos::new(draw.get().saturating_mul(times.unsigned_abs())).min(DRAW_MAX))
    }

    /// One step, unless the clock says that the poll is over. The variable holds when that is, or
    /// 0 before the first step.
    fn poll(
        &mut self,
        span: &Amount,
        step: Nanos,
        slot: u32,
    ) -> Result<Option<Command>, TaskFault> {
        let now = self.world.now();
        let kept = u64::try_from(self.task.variables[slot as usize]);
        let end = match kept.expect("only this operation writes it") {
            0 => later(now, self.span(span)?)?,
            kept => SimTime::from_nanos(kept),
        };
        if end <= now {
            self.task.answer(slot, 0);
            return Ok(None);
        }
        let kept = i64::try_from(end.as_nanos()).map_err(|_| TaskFault::TooLate)?;
        self.task.answer(slot, kept);
        self.task.repeat();
        Ok(Some(Command::Run(step)))
    }

    /// The variable holds the last point of the grid, plus 1, or 0 before the first turn.
    fn timer(&mut self, op: &Operation) -> Result<Option<Command>, TaskFault> {
        let &Operation::Timer {
            period,
            grid,
            slot,
            deadline,
        } = op
        else {
            unreachable!("the caller looked")
        };
        let now = self.world.now();
        let kept = u64::try_from(self.task.variables[slot as usize]);
        let kept = kept.expect("only this operation writes it");
        let last = match kept {
            0 if grid.from_start => self.task.began,
            0 => now,
            kept => SimTime::from_nanos(kept - 1),
        };
        let point = later(last, period)?;
        // Nothing was due before a grid that begins now.
        if let Some(deadline) = deadline
            && (grid.from_start || kept > 0)
            && let Some(record) = self.timed(deadline, last)?
        {
            self.task.repeat();
            return Ok(Some(record));
        }
        let base = if grid.moves && point <= now {
            now
        } else {
            point
        };
        let kept = i64::try_from(base.as_nanos() + 1);
        let kept = kept.map_err(|_| TaskFault::TooLate)?;
        self.task.answer(slot, kept);
        if let Some(deadline) = deadline {
            self.task.kept().releases.by_message(deadline, base);
            self.world.released(deadline, Some(base));
        }
        Ok((point > now).then_some(Command::SleepUntil(point)))
    }

    /// Says once how late the work is that a timer's point at `last` released.
    fn timed(&mut self, deadline: u32, last: SimTime) -> Result<Option<Command>, TaskFault> {
        let releases = &mut self.task.kept().releases;
        match releases.is_open(deadline) {
            Some(false) => return Ok(None),
            Some(true) => {}
            None => releases.by_message(deadline, last),
        }
        releases.complete(deadline);
        self.world.released(deadline, None);
        let due = later(last, self.workload.deadlines[deadline as usize].slack)?;
        Ok(Some(Command::Record {
            kind: EventKind::Deadline,
            number: deadline,
            value: self.world.now().as_nanos().saturating_sub(due.as_nanos()),
        }))
    }

    fn send(
        &mut self,
        to: &IndexedResource,
        bytes: Option<&Expr>,
        value: Option<&Expr>,
    ) -> Result<Command, TaskFault> {
        let to = self.channel(to)?;
        let bytes = match bytes {
            Some(bytes) => self
                .within("the message's size", bytes, 1, i64::from(i32::MAX))?
                .unsigned_abs(),
            None => self.workload.channels[to.of as usize].msg,
        };
        let value = self.eval(value.unwrap_or(&Expr::Me))?;
        Ok(Command::Send { to, bytes, value })
    }

    /// One turn of a pool: forks a child while there is room for one, then waits for those that
    /// are left. Children that the task forked outside the pool count too, as they do for `make`.
    fn pool(&mut self, op: &Operation) -> Result<Option<Command>, TaskFault> {
        let Operation::Pool {
            group,
            width,
            total,
            slot,
        } = op
        else {
            unreachable!("the caller looked")
        };
        let width = self.within("the pool's width", width, 1, i64::MAX)?;
        let total = self.within("the pool's total", total, 0, i64::MAX)?;
        let children = i64::from(self.world.children());
        let started = self.task.variables[*slot as usize];
        if started < total && children < width {
            self.task.answer(*slot, started + 1);
            self.task.repeat();
            return Ok(Some(Command::Fork(*group)));
        }
        if children == 0 {
            return Ok(None);
        }
        self.task.repeat();
        Ok(Some(Command::AwaitChild))
    }

    fn release(&mut self, deadline: u32) -> Result<Option<Command>, TaskFault> {
        let declared = &self.workload.deadlines[deadline as usize];
        let Some(period) = declared.period else {
            let sent = self.task.message_sent;
            self.task.kept().releases.by_message(deadline, sent);
            self.world.released(deadline, Some(sent));
            return Ok(None);
        };
        let now = self.world.now();
        later(now, period)?;
        let begin = self.workload.begin.map_or(Nanos::ZERO, |begin| begin.at);
        let first = match declared.begins {
            Some(begins) => later(SimTime::ZERO + begin, begins)?,
            None => now,
        };
        let grid = Grid {
            first,
            period,
            skip: declared.skip,
        };
        let (at, passed) = (self.task.kept().releases).next(deadline, grid, now);
        self.world.released(deadline, Some(at));
        // Who gave up releases is behind the one that is left, and does not sleep.
        if passed > 0 {
            return Ok(Some(Command::Record {
                kind: EventKind::Skipped,
                number: deadline,
                value: passed,
            }));
        }
        Ok((at > now).then_some(Command::SleepUntil(at)))
    }

    /// The first page of a disk that an operation reads or writes, and how many.
    fn transfer(&mut self, disk: u32, bytes: &Expr, at: &Where) -> Result<(u64, u64), TaskFault> {
        let bytes = self.within("the number of bytes", bytes, 1, TRANSFER_MAX)?;
        let size = self.workload.disks[disk as usize].pages;
        let byte = bytes.unsigned_abs();
        let pages = byte.div_ceil(PAGE).min(size);
        Ok(match at {
            Where::Next => (self.task.next_page(disk, pages, size), pages),
            Where::Anywhere => (self.task.rng.below(size - pages + 1), pages),
            Where::At(at) => {
                let most = i64::try_from(size * PAGE).unwrap_or(i64::MAX) - bytes;
                let at = self.within("the place on the disk", at, 0, most.max(0))?;
                let first = at.unsigned_abs() / PAGE;
                let end = (at.unsigned_abs() + byte).div_ceil(PAGE).min(size);
                (first, end - first)
            }
        })
    }

    fn touch(&mut self, bytes: &Expr, of: Option<&Expr>) -> Result<Command, TaskFault> {
        let bytes = self.within("the number of bytes", bytes, 0, MEMORY_MAX)?;
        let of = match of {
            Some(of) => Some(self.within("the memory's size", of, 1, MEMORY_MAX)?),
            None => None,
        };
        Ok(Command::Touch {
            pages: bytes.unsigned_abs().div_ceil(PAGE),
            of: of.map(|of| of.unsigned_abs().div_ceil(PAGE)),
        })
    }

    /// Changes a task.
    fn change(&mut self, op: &Operation) -> Result<Command, TaskFault> {
        Ok(match op {
            Operation::SetNice { target, nice } => {
                let nice = self.within("the nice value", nice, -20, 19)?;
                let nice = i8::try_from(nice).expect("the range was checked");
                let task = self.target(target)?;
                Command::SetNice { task, nice }
            }
            Operation::SetAffinity { target, cpus } => Command::SetAffinity {
                cpus: CpuSet::allowed(cpus.as_ref(), self.world.cpus()),
                task: self.target(target)?,
            },
            Operation::SetPolicy { target, policy } => Command::SetPolicy {
                task: self.target(target)?,
                policy: *policy,
            },
            other => unreachable!("{other:?} changes no task"),
        })
    }

    fn cgroup(&mut self, op: &CgroupOp) -> Result<Command, TaskFault> {
        let (number, change) = match op {
            CgroupOp::Move {
                target,
                to,
                process,
            } => {
                return Ok(Command::MoveCgroup {
                    task: self.target(target)?,
                    to: *to,
                    process: *process,
                });
            }
            CgroupOp::Weight { of, weight } => {
                let (low, high) = (*CGROUP_WEIGHTS.start(), *CGROUP_WEIGHTS.end());
                let weight = self.within("the weight", weight, low, high)?;
                let weight = u32::try_from(weight).expect("the range was checked");
                (*of, CgroupChange::Weight(weight))
            }
            CgroupOp::Max { of, max } => (*of, CgroupChange::Max(*max)),
            CgroupOp::Idle { of, idle } => {
                let idle = self.within("cpu.idle", idle, 0, 1)?;
                (*of, CgroupChange::Idle(idle == 1))
            }
        };
        Ok(Command::SetCgroup { number, change })
    }

    fn target(&mut self, target: &Target) -> Result<TaskRef, TaskFault> {
        Ok(match target {
            Target::Me => TaskRef::Me,
            Target::Member { group, index } => TaskRef::Member {
                group: *group,
                index: self.eval(index)?,
            },
        })
    }

    fn channel(&mut self, place: &IndexedResource) -> Result<ResourceInstance, TaskFault> {
        let declared = &self.workload.channels[place.of as usize];
        self.instance(place, declared.count, &declared.name)
    }

    fn lock(&mut self, place: &IndexedResource) -> Result<ResourceInstance, TaskFault> {
        let declared = &self.workload.locks[place.of as usize];
        self.instance(place, declared.count, &declared.name)
    }

    fn semaphore(&mut self, place: &IndexedResource) -> Result<ResourceInstance, TaskFault> {
        let declared = &self.workload.semaphores[place.of as usize];
        self.instance(place, declared.count, &declared.name)
    }

    fn condition(&mut self, place: &IndexedResource) -> Result<ResourceInstance, TaskFault> {
        let declared = &self.workload.conditions[place.of as usize];
        self.instance(place, declared.count, &declared.name)
    }

    fn listener(&mut self, place: &IndexedResource) -> Result<ResourceInstance, TaskFault> {
        let declared = &self.workload.listeners[place.of as usize];
        self.instance(place, declared.count, &declared.name)
    }

    /// An instance of a declaration with this count and name.
    fn instance(
        &mut self,
        IndexedResource { of, index }: &IndexedResource,
        count: u32,
        name: &str,
    ) -> Result<ResourceInstance, TaskFault> {
        let index = self.eval(index)?;
        match u32::try_from(index) {
            Ok(index) if index < count => Ok(ResourceInstance { of: *of, index }),
            _ => Err(TaskFault::Index {
                name: name.to_owned(),
                index,
                count: count.into(),
            }),
        }
    }
}

/// `span` after `from`, if a run may last so long.
fn later(from: SimTime, span: Nanos) -> Result<SimTime, TaskFault> {
    let time = from.as_nanos().checked_add(span.get());
    let time = time
        .map(SimTime::from_nanos)
        .filter(|&time| time <= TIME_MAX);
    time.ok_or(TaskFault::TooLate)
}
