//! One played task: does the operations of its group, one after the other, for real.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;

use model::workload::{
    Amount, DRAW_MAX, Expr, Grid, Instr, Place, Releases, Scope, Target, TaskKind,
};
use model::{EventKind, Nanos, Rng, SimTime};

use super::devices::put;
use super::stage::{Failure, Member, Stage};
use super::sys::{self, Ended, Forked};
use super::{names, shared};
use crate::record::{Kind, Raw, clock};

/// Stack of a thread; the interpreter needs little.
const STACK: usize = 256 << 10;

/// What follows an instruction.
enum Next {
    Go,
    To(u32),
    Exit,
}

/// Why a task cannot go on.
pub(super) type Failed = (Failure, i64);

/// A task's own state. Nothing here is allocated after its birth.
pub(super) struct Task {
    stage: &'static Stage,
    group: u32,
    index: u32,
    /// As recordings know it.
    pid: u32,
    variables: Vec<i64>,
    /// When it began its work.
    began: SimTime,
    rng: Rng,
    /// When the message that it received last was sent.
    message_sent: SimTime,
    /// When each span began, by its number.
    spans: Vec<Option<SimTime>>,
    releases: Releases,
    /// Read-write locks that it has taken to read: declaration and index.
    pub(super) reading: Vec<(u32, i64)>,
    /// Child processes that were not waited for.
    processes: u32,
    /// Child threads that were created, and how many of them were waited for.
    threads: u32,
    joined: u32,
    buffer: Vec<u8>,
}

/// What the expressions of a task see.
struct Sight<'a> {
    stage: &'a Stage,
    variables: &'a [i64],
    index: u32,
    rng: &'a mut Rng,
}

impl Scope for Sight<'_> {
    fn variable(&self, slot: u32) -> i64 {
        self.variables[slot as usize]
    }

    fn me(&self) -> i64 {
        self.index.into()
    }

    fn cpus(&self) -> i64 {
        self.stage.cpus.into()
    }

    fn queued(&self, of: u32, index: i64) -> Option<i64> {
        self.stage.queued(of, index)
    }

    fn got(&self) -> i64 {
        unreachable!("`got` is refused before the play")
    }

    fn key(&mut self, _: u32) -> i64 {
        unreachable!("keyed locks are refused before the play")
    }

    fn random(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }
}

/// Is member `index` of `group` from its birth to its end. With `initial` it waits for the start
/// of the play. The caller then ends thread or process; `true` if threads of this task go on.
pub fn live(stage: &'static Stage, group: u32, index: u32, initial: bool) -> bool {
    let mut task = Task::new(stage, group, index);
    if let Err(error) = task.dress() {
        task.fail(
            (Failure::System, error.raw_os_error().unwrap_or(0).into()),
            0,
        );
    }
    task.announce();
    if initial {
        stage.wait_for_start();
        let declared = &stage.workload.groups[group as usize];
        let start = declared
            .start
            .sample(&mut Rng::of_start(stage.seed, group, index));
        if !start.is_zero() {
            sys::sleep_until(stage.moment(SimTime::ZERO + start));
        }
    }
    task.perform();
    stage.dismiss(group);
    task.threads > task.joined
}

impl Task {
    fn new(stage: &'static Stage, group: u32, index: u32) -> Self {
        Self {
            stage,
            group,
            index,
            pid: 0,
            variables: vec![0; stage.codes[group as usize].variables as usize],
            began: SimTime::ZERO,
            rng: Rng::of_task(stage.seed, group, index),
            message_sent: SimTime::ZERO,
            spans: vec![None; stage.workload.spans.len()],
            releases: Releases::default(),
            reading: Vec::new(),
            processes: 0,
            threads: 0,
            joined: 0,
            buffer: vec![0; stage.message_max()],
        }
    }

    pub(super) fn stage(&self) -> &'static Stage {
        self.stage
    }

    fn me(&self) -> Member<'static> {
        let me = self.stage.member(self.group, self.index.into());
        me.expect("only admitted tasks live")
    }

    /// Name, nice value, policy and CPUs. The policy comes last: it may starve the rest.
    fn dress(&mut self) -> io::Result<()> {
        let declared = &self.stage.workload.groups[self.group as usize];
        sys::set_name(&names::comm(&self.stage.workload, self.group, self.index));
        sys::no_timer_slack();
        sys::set_policy(0, model::workload::SchedPolicy::Normal)?;
        sys::set_nice(0, declared.nice)?;
        let all = model::workload::CpuSet::all(self.stage.cpus);
        let cpus = declared
            .cpus
            .as_ref()
            .map(|set| set.within(self.stage.cpus));
        sys::set_affinity(0, &cpus.unwrap_or(all))?;
        if let Some(number) = declared.cgroup {
            let folder = &self.stage.cgroups[number as usize];
            put(folder, "cgroup.threads", "0")?;
        }
        sys::set_policy(0, declared.policy)
    }

    /// Says who it is.
    fn announce(&mut self) {
        // Without events a number of its own does, which is never used again.
        self.pid = if self.stage.tell_counts {
            sys::outer_tid().unwrap_or(0)
        } else {
            names::serial(self.group, self.index)
        };
        self.me()
            .tid()
            .store(sys::tid().cast_unsigned(), Ordering::Release);
        self.tell(Kind::Born, self.group, self.index, 0);
    }

    fn tell(&self, kind: Kind, a: u32, b: u32, c: u64) {
        self.stage.marks.push(&Raw {
            time: clock(),
            pid: self.pid,
            cpu: 0,
            kind,
            flags: 0,
            c,
            a,
            b,
        });
    }

    fn record(&self, kind: EventKind, a: u32, b: u64) -> Next {
        self.tell(Kind::Mark, a, kind as u32, b);
        Next::Go
    }

    /// Notes why the task cannot go on, and waits for the end.
    fn fail(&self, (failure, value): Failed, line: u32) -> ! {
        self.stage
            .fail(failure, [line, self.group, self.index], value);
        loop {
            sys::sleep_until(u64::MAX / 2);
        }
    }

    fn perform(&mut self) {
        self.began = self.stage.now();
        let code = &self.stage.codes[self.group as usize];
        let mut at = 0_u32;
        loop {
            let instr = &code.instrs[at as usize];
            match self.execute(instr) {
                Ok(Next::Go) => at += 1,
                Ok(Next::To(to)) => at = to,
                Ok(Next::Exit) => return,
                Err(failed) => self.fail(failed, code.lines[at as usize]),
            }
        }
    }

    fn execute(&mut self, instr: &Instr) -> Result<Next, Failed> {
        match instr {
            Instr::Run(amount) | Instr::Exec(amount) => {
                let span = self.span(amount)?;
                self.stage.spin.burn(span.get());
            }
            Instr::RunForever => loop {
                self.stage.spin.burn(1_000_000_000);
            },
            Instr::Sleep(amount) => {
                let until = self.stage.now() + self.span(amount)?;
                self.sleep_until(until);
            }
            Instr::Timer { period, grid, slot } => self.timer(*period, *grid, *slot),
            Instr::Send { to, .. } => {
                let place = self.place(to)?;
                self.stage.send(place, &mut self.buffer, true)?;
            }
            Instr::Device(op) => self.device(op)?,
            Instr::Recv(from) => {
                let place = self.place(from)?;
                self.message_sent = self.stage.recv(place, &mut self.buffer)?;
            }
            Instr::Lock(lock) => self.lock(lock)?,
            Instr::Unlock(lock) => self.unlock(lock)?,
            Instr::Barrier(barrier) => {
                let (of, index) = self.place(barrier)?;
                let words = self
                    .stage
                    .barrier(of, index)
                    .ok_or((Failure::Index, index))?;
                let parties = self.stage.workload.barriers[of as usize].parties;
                shared::barrier(&words[0], &words[1], parties);
            }
            Instr::Yield => sys::yield_cpu(),
            Instr::Suspend => self.suspend(),
            Instr::Resume(target) => {
                if let Some(member) = self.target(target)? {
                    resume(&member);
                }
            }
            Instr::Fork(group) => self.fork(*group)?,
            Instr::Exit => return Ok(Next::Exit),
            Instr::Wait { all } => self.wait(*all),
            Instr::Pool {
                group,
                width,
                total,
                slot,
            } => self.pool(*group, width, total, *slot)?,
            Instr::SetNice { target, nice } => {
                let nice = self.within(nice, -20, 19)?;
                let nice = i8::try_from(nice).expect("the range was checked");
                self.change(target, |tid| sys::set_nice(tid, nice))?;
            }
            Instr::SetAffinity { target, cpus } => {
                let all = model::workload::CpuSet::all(self.stage.cpus);
                let cpus = cpus.as_ref().map_or(all, |set| set.within(self.stage.cpus));
                self.change(target, |tid| sys::set_affinity(tid, &cpus))?;
            }
            Instr::SetPolicy { target, policy } => {
                self.change(target, |tid| sys::set_policy(tid, *policy))?;
            }
            Instr::Phase(phase) => return Ok(self.record(EventKind::Phase, *phase, 0)),
            Instr::SpanBegin(span) => {
                self.spans[*span as usize] = Some(self.stage.now());
                return Ok(self.record(EventKind::SpanBegin, *span, 0));
            }
            Instr::SpanEnd(span) => {
                let begin = self.spans[*span as usize].take();
                let begin = begin.ok_or((Failure::NotBegun, 0))?;
                let length = self.stage.now().since(begin).get();
                return Ok(self.record(EventKind::SpanEnd, *span, length));
            }
            Instr::Count { counter, by } => {
                let by = self.within(by, 0, i64::MAX)?.unsigned_abs();
                if self.stage.tell_counts {
                    return Ok(self.record(EventKind::Count, *counter, by));
                }
                self.stage.add(self.group, *counter, by);
            }
            Instr::Release(deadline) => self.release(*deadline),
            Instr::Complete(deadline) => return self.complete(*deadline),
            Instr::Let { slot, value } => {
                self.variables[*slot as usize] = self.eval(value)?;
            }
            Instr::Jump(to) => return Ok(Next::To(*to)),
            Instr::Unless { cond, to } => {
                if self.eval(cond)? == 0 {
                    return Ok(Next::To(*to));
                }
            }
            Instr::Choose(arms) => return Ok(Next::To(self.choose(arms))),
        }
        Ok(Next::Go)
    }

    fn eval(&mut self, expr: &Expr) -> Result<i64, Failed> {
        let mut sight = Sight {
            stage: self.stage,
            variables: &self.variables,
            index: self.index,
            rng: &mut self.rng,
        };
        expr.eval(&mut sight).map_err(|_| (Failure::Eval, 0))
    }

    pub(super) fn within(&mut self, expr: &Expr, low: i64, high: i64) -> Result<i64, Failed> {
        let value = self.eval(expr)?;
        match (low..=high).contains(&value) {
            true => Ok(value),
            false => Err((Failure::Range, value)),
        }
    }

    fn span(&mut self, amount: &Amount) -> Result<Nanos, Failed> {
        let times = self.within(&amount.times, 0, i64::MAX)?.unsigned_abs();
        let draw = amount.dist.sample(&mut self.rng);
        Ok(Nanos::new(draw.get().saturating_mul(times)).min(DRAW_MAX))
    }

    pub(super) fn place(&mut self, place: &Place) -> Result<(u32, i64), Failed> {
        Ok((place.of, self.eval(&place.index)?))
    }

    fn sleep_until(&self, until: SimTime) {
        if until > self.stage.now() {
            sys::sleep_until(self.stage.moment(until));
        }
    }

    /// The variable holds the next point of the grid, 0 before the first turn.
    fn timer(&mut self, period: Nanos, grid: Grid, slot: u32) {
        let now = self.stage.now();
        let last = match self.variables[slot as usize] {
            0 if grid.from_start => self.began,
            0 => now,
            kept => SimTime::from_nanos(kept.unsigned_abs() - 1),
        };
        let point = last + period;
        let base = if grid.moves && point <= now {
            now
        } else {
            point
        };
        let kept = i64::try_from(base.as_nanos() + 1);
        self.variables[slot as usize] = kept.unwrap_or(i64::MAX);
        self.sleep_until(point);
    }

    /// Who holds a lock is kept beside it, as its thread's number.
    pub(super) fn lock(&mut self, lock: &Place) -> Result<(), Failed> {
        let (of, index) = self.place(lock)?;
        let words = self.stage.lock(of, index).ok_or((Failure::Index, index))?;
        let tid = sys::tid().cast_unsigned();
        if self.is_rw(of) {
            if words[3].load(Ordering::Relaxed) == tid || self.reads((of, index)) {
                return Err((Failure::LockedTwice, 0));
            }
            self.lock_to_write(words);
            return Ok(());
        }
        if words[2].load(Ordering::Relaxed) == tid {
            return Err((Failure::LockedTwice, 0));
        }
        match self.stage.is_fifo(of) {
            true => shared::lock_fifo(&words[0], &words[1]),
            false => shared::lock_barge(&words[0]),
        }
        words[2].store(tid, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn unlock(&mut self, lock: &Place) -> Result<(), Failed> {
        let (of, index) = self.place(lock)?;
        let words = self.stage.lock(of, index).ok_or((Failure::Index, index))?;
        if self.is_rw(of) {
            let held = self.unlock_rw((of, index), words);
            return held.then_some(()).ok_or((Failure::NotLocked, 0));
        }
        if words[2].load(Ordering::Relaxed) != sys::tid().cast_unsigned() {
            return Err((Failure::NotLocked, 0));
        }
        words[2].store(0, Ordering::Relaxed);
        match self.stage.is_fifo(of) {
            true => shared::unlock_fifo(&words[1]),
            false => shared::unlock_barge(&words[0]),
        }
        Ok(())
    }

    fn suspend(&self) {
        let me = self.me();
        while me.resumed().swap(0, Ordering::AcqRel) == 0 {
            shared::wait(me.resumed(), 0, None);
        }
    }

    /// The task that an operation acts on; `None` if it was not born.
    fn target(&mut self, target: &Target) -> Result<Option<Member<'static>>, Failed> {
        let member = match target {
            Target::Me => self.stage.member(self.group, self.index.into()),
            Target::Member { group, index } => {
                let index = self.eval(index)?;
                self.stage.member(*group, index)
            }
        };
        Ok(member.filter(|member| member.tid().load(Ordering::Acquire) != 0))
    }

    pub(super) fn change(
        &mut self,
        target: &Target,
        change: impl FnOnce(i32) -> io::Result<()>,
    ) -> Result<(), Failed> {
        let Some(member) = self.target(target)? else {
            return Ok(());
        };
        let tid = member.tid().load(Ordering::Acquire).cast_signed();
        match change(tid).map_err(|error| error.raw_os_error().unwrap_or(0)) {
            // It has exited.
            Ok(()) | Err(libc::ESRCH) => Ok(()),
            Err(number) => Err((Failure::System, number.into())),
        }
    }

    fn choose(&mut self, arms: &[(u64, u32)]) -> u32 {
        let mut draw = self.rng.below(arms.iter().map(|(weight, _)| weight).sum());
        for &(weight, to) in arms {
            if draw < weight {
                return to;
            }
            draw -= weight;
        }
        unreachable!("a draw below the sum of the weights falls into an arm")
    }

    fn fork(&mut self, group: u32) -> Result<(), Failed> {
        let stage = self.stage;
        let index = stage.admit(group).ok_or((Failure::TooMany, 0))?;
        let system = |error: &io::Error| {
            (
                Failure::System,
                i64::from(error.raw_os_error().unwrap_or(libc::EAGAIN)),
            )
        };
        if stage.workload.groups[group as usize].kind == TaskKind::Process {
            match sys::fork().map_err(|error| system(&error))? {
                Forked::Child => be_process(stage, group, index, false),
                Forked::Parent(_) => self.processes += 1,
            }
            return Ok(());
        }
        let parent = self.me();
        let thread = thread::Builder::new().stack_size(STACK).spawn(move || {
            live(stage, group, index, false);
            parent.ended().fetch_add(1, Ordering::Release);
            shared::wake(parent.ended(), 1);
        });
        thread.map_err(|error| system(&error))?;
        self.threads += 1;
        Ok(())
    }

    /// Children that have not been waited for.
    fn children(&self) -> u32 {
        self.processes + (self.threads - self.joined)
    }

    /// Waits for one child, or looks whether one has ended. Workloads have children of one kind
    /// at a time.
    fn reap(&mut self, block: bool) -> bool {
        if self.processes > 0 {
            let Some(ended) = sys::wait_child(block) else {
                return false;
            };
            self.processes -= 1;
            if let Ended::Killed(signal) = ended {
                self.fail((Failure::Killed, signal.into()), 0);
            }
            return true;
        }
        if self.threads == self.joined {
            return false;
        }
        let me = self.me();
        loop {
            let ended = me.ended().load(Ordering::Acquire);
            if ended > self.joined {
                self.joined += 1;
                return true;
            }
            if !block {
                return false;
            }
            shared::wait(me.ended(), ended, None);
        }
    }

    fn wait(&mut self, all: bool) {
        while self.reap(true) && all {}
    }

    fn pool(&mut self, group: u32, width: &Expr, total: &Expr, slot: u32) -> Result<(), Failed> {
        let width = self.within(width, 1, i64::MAX)?;
        let total = self.within(total, 0, i64::MAX)?;
        loop {
            while self.reap(false) {}
            let started = self.variables[slot as usize];
            if started < total && i64::from(self.children()) < width {
                self.variables[slot as usize] = started + 1;
                self.fork(group)?;
            } else if !self.reap(true) {
                return Ok(());
            }
        }
    }

    fn release(&mut self, deadline: u32) {
        let (Some(period), skip) = self.stage.deadline(deadline) else {
            return self.releases.by_message(deadline, self.message_sent);
        };
        let (at, passed) = self.releases.next(deadline, period, skip, self.stage.now());
        if passed > 0 {
            self.record(EventKind::Skipped, deadline, passed);
        }
        self.sleep_until(at);
    }

    fn complete(&mut self, deadline: u32) -> Result<Next, Failed> {
        let release = self
            .releases
            .complete(deadline)
            .ok_or((Failure::NotBegun, 0))?;
        let due = release + self.stage.workload.deadlines[deadline as usize].slack;
        let late = self.stage.now().as_nanos().saturating_sub(due.as_nanos());
        Ok(self.record(EventKind::Deadline, deadline, late))
    }
}

/// Ends another task's `suspend`, or its next one.
pub fn resume(member: &Member<'_>) {
    member.resumed().store(1, Ordering::Release);
    shared::wake(member.resumed(), 1);
}

/// Is a member that is a process of its own.
pub fn be_process(stage: &'static Stage, group: u32, index: u32, initial: bool) -> ! {
    match live(stage, group, index, initial) {
        true => sys::exit_thread(),
        false => sys::exit(0),
    }
}

/// Is a process for the threads that a group begins with.
pub fn be_host(stage: &'static Stage, group: u32, members: &[u32]) -> ! {
    for &index in members {
        let thread = thread::Builder::new().stack_size(STACK).spawn(move || {
            live(stage, group, index, true);
        });
        if let Err(error) = thread {
            let number = error.raw_os_error().unwrap_or(libc::EAGAIN);
            stage.fail(Failure::System, [0, group, index], number.into());
        }
    }
    sys::exit_thread()
}
