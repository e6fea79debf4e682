//! One played task: does the operations of its group, one after the other, for real.

use std::hint::black_box;
use std::io;
use std::sync::atomic::Ordering;
use std::thread;

use model::{EventKind, SimTime};
use workload::{Command, ResourceInstance, Stepper, TaskFault, TaskKind, TaskRef, World};

use super::devices::put;
use super::state::{Failure, MemberState, SharedState};
use super::sys::{self, ChildEnd, Forked};
use super::{names, shared, spin};
use live::record::{Raw, RecordKind, clock};

/// Stack of a thread; performing commands needs little.
const STACK: usize = 256 << 10;

/// Instructions of the workload that a task rehearses at most.
const REHEARSED_MAX: u32 = 1_000;

/// Why a task cannot go on.
pub(super) type Failed = (Failure, i64);

/// A task's own state. Nothing here is allocated after its birth.
pub(super) struct PlayTask {
    state: &'static SharedState,
    group: u32,
    index: u32,
    /// As recordings know it.
    pid: u32,
    /// Read-write locks that it has taken to read.
    pub(super) reading: Vec<ResourceInstance>,
    family: Family,
    buffer: Vec<u8>,
}

/// A task's children.
#[derive(Default)]
struct Family {
    /// Child processes that were not waited for.
    processes: u32,
    /// Child threads that were created, and how many of them were waited for.
    threads: u32,
    joined: u32,
}

/// What the stepper sees of the machine.
struct View<'a>(&'a mut PlayTask);

impl World for View<'_> {
    fn now(&self) -> SimTime {
        self.0.state.now()
    }

    fn cpus(&self) -> u16 {
        self.0.state.cpus
    }

    fn queued(&self, channel: ResourceInstance) -> u64 {
        self.0.state.queued(channel)
    }

    fn children(&mut self) -> u32 {
        while self.0.reap(false) {}
        self.0.family.left()
    }

    fn released(&mut self, deadline: u32, release: Option<SimTime>) {
        let me = [self.0.group, self.0.index];
        self.0.state.released(me, deadline, release);
    }
}

/// A machine on which nothing has happened yet, for a rehearsal.
struct Rehearsal {
    cpus: u16,
    steps: u32,
}

impl World for Rehearsal {
    fn now(&self) -> SimTime {
        SimTime::ZERO
    }

    fn cpus(&self) -> u16 {
        self.cpus
    }

    fn queued(&self, _: ResourceInstance) -> u64 {
        0
    }

    fn children(&mut self) -> u32 {
        0
    }

    fn count_instruction(&mut self) -> Result<(), TaskFault> {
        self.steps += 1;
        if self.steps > REHEARSED_MAX {
            Err(TaskFault::NoProgress { steps: self.steps })
        } else {
            Ok(())
        }
    }
}

/// Is member `index` of `group` from its birth to its end. With `initial` it waits for the start
/// of the play. The caller then ends thread or process; `true` if threads of this task go on.
pub fn live(state: &'static SharedState, group: u32, index: u32, initial: bool) -> bool {
    let mut task = PlayTask::new(state, group, index);
    if let Err(error) = task.dress() {
        task.fail(
            (Failure::System, error.raw_os_error().unwrap_or(0).into()),
            0,
        );
    }
    task.announce();
    let mut stepper = task.stepper();
    if initial {
        task.rehearse();
        if let Err(error) = task.take_place() {
            let number = error.raw_os_error().unwrap_or(0);
            task.fail((Failure::System, number.into()), 0);
        }
        state.wait_for_start(group, index);
        let start = state.workload.start(state.seed, group, index);
        if !start.is_zero() {
            sys::sleep_until(state.moment(SimTime::ZERO + start));
        }
    }
    task.perform(&mut stepper);
    state.forgive(group, index);
    state.dismiss(group);
    task.family.threads > task.family.joined
}

impl PlayTask {
    fn new(state: &'static SharedState, group: u32, index: u32) -> Self {
        Self {
            state,
            group,
            index,
            pid: 0,
            reading: Vec::new(),
            family: Family::default(),
            buffer: vec![0; state.message_max()],
        }
    }

    pub(super) fn state(&self) -> &'static SharedState {
        self.state
    }

    fn me(&self) -> MemberState<'static> {
        let me = self.state.member(self.group, self.index.into());
        me.expect("only admitted tasks live")
    }

    /// Name, nice value, policy and CPUs. The policy comes last: it may starve the rest.
    fn dress(&mut self) -> io::Result<()> {
        let declared = &self.state.workload.groups[self.group as usize];
        sys::set_name(&names::comm(&self.state.workload, self.group, self.index));
        sys::no_timer_slack();
        sys::set_policy(0, workload::SchedPolicy::Normal)?;
        sys::set_nice(0, declared.nice)?;
        sys::set_affinity(0, &self.allowed())?;
        if let Some(number) = declared.cgroup {
            let folder = &self.state.cgroups[number as usize];
            put(folder, "cgroup.threads", "0")?;
        }
        sys::set_policy(0, declared.policy)
    }

    /// The CPUs that the workload lets it use.
    fn allowed(&self) -> workload::CpuSet {
        let declared = &self.state.workload.groups[self.group as usize];
        workload::CpuSet::allowed(declared.cpus.as_ref(), self.state.cpus)
    }

    /// Says who it is.
    fn announce(&mut self) {
        // Without events a number of its own does, which is never used again.
        self.pid = if self.state.tell_counts {
            sys::outer_tid().unwrap_or(0)
        } else {
            names::serial(self.group, self.index)
        };
        self.me()
            .tid()
            .store(sys::tid().cast_unsigned(), Ordering::Release);
        self.tell(RecordKind::Born, self.group, self.index, 0);
    }

    fn tell(&self, kind: RecordKind, a: u32, b: u32, c: u64) {
        self.state.marks.push(&Raw {
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

    /// Notes why the task cannot go on, and waits for the end.
    fn fail(&self, (failure, value): Failed, line: u32) -> ! {
        self.state
            .fail(failure, [line, self.group, self.index], value);
        loop {
            sys::sleep_until(u64::MAX / 2);
        }
    }

    fn stepper(&self) -> Stepper {
        let code = &self.state.codes[self.group as usize];
        let mut stepper = Stepper::new(code, self.state.seed, self.group, self.index);
        stepper.reserve(&self.state.workload);
        stepper
    }

    /// Does once what every first turn does, without effect. A process that was forked has its
    /// memory and its program mapped at the first use of each page; by recordings that took a
    /// task 40 us of its first turn in a counting VM, which the workload has not asked for.
    fn rehearse(&mut self) {
        let state = self.state;
        let mut nothing = Rehearsal {
            cpus: state.cpus,
            steps: 0,
        };
        let code = &state.codes[self.group as usize];
        let mut stepper = self.stepper();
        // Whatever it is, and if it fails, it will be told when it counts.
        let _ = black_box(stepper.next(code, &state.workload, &mut nothing));
        self.buffer.fill(0);
        black_box(&mut self.buffer);
        state.spin.burn(spin::REHEARSAL);
        sys::sleep_until(0);
    }

    /// Goes to the CPU on which it waits for the start.
    fn take_place(&self) -> io::Result<()> {
        let (state, group) = (self.state, self.group);
        let Some(cpu) = state.workload.waits_on(group, self.index, state.cpus) else {
            return Ok(());
        };
        sys::set_affinity(0, &workload::CpuSet::single(cpu))?;
        sys::set_affinity(0, &self.allowed())
    }

    fn perform(&mut self, stepper: &mut Stepper) {
        let state = self.state;
        let code = &state.codes[self.group as usize];
        loop {
            let next = stepper.next(code, &state.workload, &mut View(self));
            let done = match next.map_err(|fault| failed(&fault)) {
                Ok(Command::Exit) => return,
                Ok(Command::Recv(from)) => {
                    (state.recv(from, &mut self.buffer)).map(|sent| stepper.received(sent, 0))
                }
                Ok(command) => self.execute(&command),
                Err(failed) => Err(failed),
            };
            if let Err(failed) = done {
                self.fail(failed, stepper.line(code));
            }
        }
    }

    fn execute(&mut self, command: &Command) -> Result<(), Failed> {
        match *command {
            Command::Run(span) | Command::Exec(span) => self.state.spin.burn(span.get()),
            Command::SleepUntil(time) => sys::sleep_until(self.state.moment(time)),
            Command::Send { to, .. } => self.state.send(to, &mut self.buffer, true)?,
            Command::Lock(lock) => self.lock(lock)?,
            Command::Unlock(lock) => self.unlock(lock)?,
            Command::Barrier(barrier) => {
                let words = self.state.barrier(barrier);
                let parties = self.state.workload.barriers[barrier.of as usize].parties;
                shared::barrier(&words[0], &words[1], parties);
            }
            Command::Yield => sys::yield_cpu(),
            Command::Suspend => self.suspend(),
            Command::Resume(task) => {
                if let Some(member) = self.target(task) {
                    resume(&member);
                }
            }
            Command::Fork(group) => self.fork(group)?,
            Command::Wait { all } => self.wait(all),
            Command::AwaitChild => {
                self.reap(true);
            }
            Command::SetNice { task, nice } => self.change(task, |tid| sys::set_nice(tid, nice))?,
            Command::SetAffinity { task, ref cpus } => {
                self.change(task, |tid| sys::set_affinity(tid, cpus))?;
            }
            Command::SetPolicy { task, policy } => {
                self.change(task, |tid| sys::set_policy(tid, policy))?;
            }
            // Without a recording a count is summed and not told.
            Command::Record {
                kind: EventKind::Count,
                number,
                value,
            } if !self.state.tell_counts => self.state.add(self.group, number, value),
            Command::Record {
                kind,
                number,
                value,
            } => self.tell(RecordKind::Mark, number, kind as u32, value),
            _ => self.device(command)?,
        }
        Ok(())
    }

    /// Who holds a lock is kept beside it, as its thread's number.
    pub(super) fn lock(&mut self, lock: ResourceInstance) -> Result<(), Failed> {
        let words = self.state.lock(lock);
        let tid = sys::tid().cast_unsigned();
        if self.is_rw(lock.of) {
            if words[3].load(Ordering::Relaxed) == tid || self.reads(lock) {
                return Err((Failure::LockedTwice, 0));
            }
            self.lock_to_write(words);
            return Ok(());
        }
        if words[2].load(Ordering::Relaxed) == tid {
            return Err((Failure::LockedTwice, 0));
        }
        if self.state.is_fifo(lock.of) {
            shared::lock_fifo(&words[0], &words[1]);
        } else {
            shared::lock_barge(&words[0]);
        }
        words[2].store(tid, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn unlock(&mut self, lock: ResourceInstance) -> Result<(), Failed> {
        let words = self.state.lock(lock);
        if self.is_rw(lock.of) {
            let held = self.unlock_rw(lock, words);
            return held.then_some(()).ok_or((Failure::NotLocked, 0));
        }
        if words[2].load(Ordering::Relaxed) != sys::tid().cast_unsigned() {
            return Err((Failure::NotLocked, 0));
        }
        words[2].store(0, Ordering::Relaxed);
        if self.state.is_fifo(lock.of) {
            shared::unlock_fifo(&words[1]);
        } else {
            shared::unlock_barge(&words[0]);
        }
        Ok(())
    }

    fn suspend(&self) {
        let me = self.me();
        while me.resumed().swap(0, Ordering::AcqRel) == 0 {
            shared::wait(me.resumed(), 0, None);
        }
    }

    /// The task that a command acts on; `None` if it was not born.
    fn target(&self, task: TaskRef) -> Option<MemberState<'static>> {
        let (group, index) = match task {
            TaskRef::Me => (self.group, self.index.into()),
            TaskRef::Member { group, index } => (group, index),
        };
        let member = self.state.member(group, index);
        member.filter(|member| member.tid().load(Ordering::Acquire) != 0)
    }

    pub(super) fn change(
        &mut self,
        task: TaskRef,
        change: impl FnOnce(i32) -> io::Result<()>,
    ) -> Result<(), Failed> {
        let Some(member) = self.target(task) else {
            return Ok(());
        };
        let tid = member.tid().load(Ordering::Acquire).cast_signed();
        match change(tid).map_err(|error| error.raw_os_error().unwrap_or(0)) {
            // It has exited.
            Ok(()) | Err(libc::ESRCH) => Ok(()),
            Err(number) => Err((Failure::System, number.into())),
        }
    }

    fn fork(&mut self, group: u32) -> Result<(), Failed> {
        let state = self.state;
        let index = state.admit(group).ok_or((Failure::TooMany, 0))?;
        let system = |error: &io::Error| {
            (
                Failure::System,
                i64::from(error.raw_os_error().unwrap_or(libc::EAGAIN)),
            )
        };
        if state.workload.groups[group as usize].kind == TaskKind::Process {
            match sys::fork().map_err(|error| system(&error))? {
                Forked::Child => be_process(state, group, index, false),
                Forked::Parent(_) => self.family.processes += 1,
            }
            return Ok(());
        }
        let parent = self.me();
        let thread = thread::Builder::new().stack_size(STACK).spawn(move || {
            live(state, group, index, false);
            parent.ended().fetch_add(1, Ordering::Release);
            shared::wake(parent.ended(), 1);
        });
        thread.map_err(|error| system(&error))?;
        self.family.threads += 1;
        Ok(())
    }

    /// Waits for one child, or looks whether one has ended. Workloads have children of one kind
    /// at a time.
    fn reap(&mut self, block: bool) -> bool {
        if self.family.processes > 0 {
            let Some(ended) = sys::wait_child(block) else {
                return false;
            };
            self.family.processes -= 1;
            if let ChildEnd::Killed(signal) = ended {
                self.fail((Failure::Killed, signal.into()), 0);
            }
            return true;
        }
        if self.family.threads == self.family.joined {
            return false;
        }
        let me = self.me();
        loop {
            let ended = me.ended().load(Ordering::Acquire);
            if ended > self.family.joined {
                self.family.joined += 1;
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
}

impl Family {
    /// Children that have not been waited for.
    const fn left(&self) -> u32 {
        self.processes + (self.threads - self.joined)
    }
}

/// A fault as tasks tell it, and the number that belongs to it.
const fn failed(fault: &TaskFault) -> Failed {
    match *fault {
        TaskFault::Index { index, .. } => (Failure::Index, index),
        TaskFault::Range { value, .. } => (Failure::Range, value),
        TaskFault::NotBegun { .. } => (Failure::NotBegun, 0),
        TaskFault::TooLate => (Failure::TooLate, 0),
        _ => (Failure::Eval, 0),
    }
}

/// Ends another task's `suspend`, or its next one.
pub fn resume(member: &MemberState<'_>) {
    member.resumed().store(1, Ordering::Release);
    shared::wake(member.resumed(), 1);
}

/// Is a member that is a process of its own.
pub fn be_process(state: &'static SharedState, group: u32, index: u32, initial: bool) -> ! {
    if live(state, group, index, initial) {
        sys::exit_thread()
    } else {
        sys::exit(0)
    }
}

/// Is a process for the threads that a group begins with.
pub fn be_host(state: &'static SharedState, group: u32, members: &[u32]) -> ! {
    for &index in members {
        let thread = thread::Builder::new().stack_size(STACK).spawn(move || {
            live(state, group, index, true);
        });
        if let Err(error) = thread {
            let number = error.raw_os_error().unwrap_or(libc::EAGAIN);
            state.fail(Failure::System, [0, group, index], number.into());
        }
    }
    sys::exit_thread()
}
