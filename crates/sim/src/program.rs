//! The scheduler's own program: its threads, and when each of them runs.
//!
//! A thread is a task of this machine. When its task has a CPU and nothing left to do, it runs for
//! one turn ([`model::user_space::UserSpace::turn`]), in which no time passes; what the turn cost
//! is then work of the task, and when that is done, the task does what ended the turn: it sleeps,
//! yields or exits. So a program competes for CPUs under the policy that it serves.
//!
//! Before the policy is attached and after the run's end the machine is idle, and there are no
//! tasks: [`turns`] gives the threads their turns, by time. So it is during the run, too, if the
//! threads are to take no CPU.

mod calls;
mod hooks;
mod kernel;
mod turns;

pub(crate) use calls::with_program;

use bpf::Door;
use model::user_space::{
    BpfId, ProgramEnd, ThreadId, ThreadTurn, TurnEnd, UserSpace, UserSpaceError,
};
use model::{CpuId, Nanos, SimTime, TaskId};
use workload::{CpuSet, SchedPolicy};

use crate::flags::Waker;
use crate::machine::{Machine, Vm};
use crate::places::Hooks;
use crate::task::RunState;
use kernel::Within;

/// The program's process number: behind those of the workload's tasks, which so have the numbers
/// that they have without the program.
const FIRST_PID: u32 = 4_000_000;
/// How often the host is asked whether a file or a socket of its own is ready.
const LOOK_EVERY: Nanos = Nanos::from_millis(1);

/// The scheduler's own program, and what the machine knows of it.
pub(crate) struct Program {
    /// `None` while one of its threads has its turn.
    user: Option<Box<dyn UserSpace>>,
    /// How tables call it.
    name: String,
    /// Whether its threads take no CPU.
    free: bool,
    /// What it loads into; `None` within a call.
    door: Option<Box<Door<Machine>>>,
    /// The link of its policy.
    policy: Option<BpfId>,
    /// Its programs at tracepoints and functions of the kernel.
    hooks: Hooks,
    phase: Phase,
    threads: Vec<Thread>,
    /// Numbers given to threads.
    pids: u32,
    /// Its tasks' group of the workload, as soon as there are tasks.
    group: u32,
    /// The uptime, when no task of this machine runs.
    clock: Nanos,
    /// When the host is asked again, if a thread waits for what only the host knows.
    next_look: Nanos,
    /// Counts what threads began to wait for, so that those who wait longest come first.
    sequence: u64,
    /// Turns so far, and turns that yielded one after the other.
    turns: u64,
    /// What its turns have cost since it began, or since the run's end.
    spent: Nanos,
    /// System calls that its threads had made when the policy was attached, and at the run's end.
    calls: [u64; 2],
    yields: u32,
    /// What a task's number will be that is about to be created.
    promised: Option<u32>,
    failure: Option<UserSpaceError>,
    report: ProgramReport,
}

/// How far the program has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It prepares the policy on an idle machine.
    Loading,
    /// The policy is attached, the workload runs.
    Attached,
    /// The run is over.
    Ending,
}

/// A thread.
#[derive(Debug)]
struct Thread {
    /// Its task, if its threads are tasks and the policy is attached.
    task: Option<TaskId>,
    pid: u32,
    name: String,
    state: State,
    /// When it came into that state, as [`Program::sequence`] counts.
    since: u64,
    /// How its last turn ended, until the turn's cost has been paid.
    due: Option<TurnEnd>,
    /// What it is about to wait for has happened already.
    woken: bool,
    /// What its task is born with.
    nice: i8,
    policy: SchedPolicy,
    cpus: Option<CpuSet>,
}

/// What a thread does next, times as uptime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready(Nanos),
    Waiting(Option<Nanos>),
    Over,
}

/// How the program that a run had ended, and what it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramReport {
    /// How it ended; `None`: it did not, and has to be killed.
    pub end: Option<ProgramEnd>,
    /// Turns that its threads had.
    pub turns: u64,
    /// System calls that they made while the policy was attached.
    pub calls: u64,
    /// Reasons why its threads waited when it had to be killed, a line each.
    pub waits: Vec<String>,
}

/// The program of a machine, if it has one.
#[derive(Default)]
pub(crate) struct HeldProgram(Option<Box<Program>>);

impl Clone for HeldProgram {
    /// A process is there once: the copy of a machine has no program. [`crate::Checkpoint`] is made
    /// of machines without one only.
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl std::ops::Deref for HeldProgram {
    type Target = Option<Box<Program>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl std::ops::DerefMut for HeldProgram {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Program {
    /// A program that has not begun. `free`: its threads take no CPU.
    pub fn new(user: Box<dyn UserSpace>, door: Door<Machine>, name: String, free: bool) -> Self {
        Self {
            user: Some(user),
            door: Some(Box::new(door)),
            policy: None,
            hooks: Hooks::default(),
            name,
            free,
            phase: Phase::Loading,
            threads: Vec::new(),
            pids: 0,
            group: u32::MAX,
            clock: turns::LOADING_BEGINS,
            next_look: Nanos::ZERO,
            sequence: 0,
            turns: 0,
            spent: Nanos::ZERO,
            calls: [0; 2],
            yields: 0,
            promised: None,
            failure: None,
            report: ProgramReport::default(),
        }
    }

    /// A number for a new thread.
    fn new_pid(&mut self) -> u32 {
        self.pids += 1;
        FIRST_PID + self.pids - 1
    }

    /// Whether a task with this process number is a thread of a program.
    pub const fn has_pid(pid: u32) -> bool {
        pid >= FIRST_PID
    }

    /// The task with this process number, if it is a thread's.
    pub fn task_of_pid(&self, pid: u32) -> Option<TaskId> {
        let thread = self.threads.iter().find(|thread| thread.pid == pid);
        thread?.task
    }

    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        &mut self.threads[thread.0 as usize]
    }

    fn thread_of(&self, task: TaskId) -> Option<ThreadId> {
        let found = (0..)
            .zip(&self.threads)
            .find(|(_, thread)| thread.task == Some(task));
        found.map(|(number, _)| ThreadId(number))
    }

    /// Whether its threads are tasks now.
    fn has_tasks(&self) -> bool {
        self.phase == Phase::Attached && !self.free
    }

    fn set_state(&mut self, thread: ThreadId, state: State) {
        self.sequence += 1;
        let since = self.sequence;
        let thread = self.thread(thread);
        (thread.state, thread.since) = (state, since);
    }
}

impl Machine {
    fn program(&mut self) -> &mut Program {
        self.program.as_mut().expect("there is a program")
    }

    /// The number of the task that is about to be created in `group`.
    pub(crate) fn pid_of_next(&mut self, group: u32) -> u32 {
        let promised = if self.is_of_program(group) {
            self.program().promised.take()
        } else {
            None
        };
        promised.unwrap_or_else(|| self.new_pid())
    }

    /// Whether the tasks of `group` are threads of the program.
    pub(crate) fn is_of_program(&self, group: u32) -> bool {
        let program = self.program.as_ref();
        program.is_some_and(|program| !program.free && program.group == group)
    }

    /// Why the run cannot go on, if that is the program's doing.
    pub(crate) fn take_program_failure(&mut self) -> Option<UserSpaceError> {
        self.program.as_mut()?.failure.take()
    }

    /// How the program ended, after the run.
    pub(crate) fn program_report(&mut self) -> ProgramReport {
        std::mem::take(&mut self.program().report)
    }

    #[cold]
    fn give_up_program(&mut self, error: UserSpaceError) {
        self.program().failure.get_or_insert(error);
        self.halt_if(true);
    }

    /// What the clocks say.
    fn uptime(&self) -> Nanos {
        Nanos::new(self.clock_ns())
    }

    /// The moment of the run at which the clocks say `uptime`; its begin if that was before.
    fn moment_of(uptime: Nanos) -> SimTime {
        SimTime::from_nanos(Self::since_begin(uptime.get()))
    }

    /// The thread whose task `id` is.
    #[inline]
    pub(crate) fn thread_of(&self, id: TaskId) -> Option<ThreadId> {
        self.program.as_ref()?.thread_of(id)
    }

    /// Lets the thread whose task runs on `cpu` take its next step.
    pub(crate) fn step_thread(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId, thread: ThreadId) {
        let state = self.program().thread(thread);
        let woken = std::mem::take(&mut state.woken);
        match state.due.take() {
            None | Some(TurnEnd::Again) => {
                let now = self.uptime();
                let Some(turn) = self.turn(vm, thread, now) else {
                    return;
                };
                self.program().thread(thread).due = Some(turn.stop);
                self.task_mut(id).work_left = turn.cost;
                self.wake_threads(vm, &turn.woken, Waker::Current);
            }
            Some(TurnEnd::Wait { .. }) if woken => {}
            Some(TurnEnd::Wait { until: None }) => {
                self.program().set_state(thread, State::Waiting(None));
                self.sleep(vm, cpu, id, false);
            }
            Some(TurnEnd::Wait { until: Some(until) }) => {
                let time = Self::moment_of(until);
                if time > self.now {
                    self.program()
                        .set_state(thread, State::Waiting(Some(until)));
                    self.sleep_until(vm, cpu, id, time);
                }
            }
            Some(TurnEnd::Yield) => self.yield_task(vm, cpu, id),
            Some(TurnEnd::Exit) => {
                self.program().set_state(thread, State::Over);
                self.work.leave(id);
                self.begin_exit(vm, id);
                self.count_turn(vm, cpu);
                self.charge(|costs| costs.exit);
                self.exit(vm, cpu, id);
            }
        }
    }

    /// A turn of `thread` from `now`, an uptime, on. `None` if the run cannot go on.
    fn turn(&mut self, vm: &mut Vm, thread: ThreadId, now: Nanos) -> Option<ThreadTurn> {
        let program = self.program();
        program.turns += 1;
        program.set_state(thread, State::Ready(now));
        let mut user = program.user.take().expect("one thread runs at a time");
        let result = user.turn(thread, now, &mut Within::new(self, vm, now));
        self.program().user = Some(user);
        let seen = self.at_door(vm, |door, vm, _| door.user_ran(vm));
        if let Err(error) = seen {
            let error = self.refuse(error);
            self.note(format!(
                "what the loader wrote cannot be seen: errno {}",
                error.errno
            ));
        }
        match result {
            // A turn without a cost would be followed by another one for ever.
            Ok(turn) => {
                let cost = turn.cost.max(Nanos::new(1));
                let spent = &mut self.program().spent;
                *spent = Nanos::new(spent.get().saturating_add(cost.get()));
                Some(ThreadTurn { cost, ..turn })
            }
            Err(error) => {
                self.give_up_program(error);
                None
            }
        }
    }

    /// What threads waited for has happened, through the current task or outside of tasks.
    fn wake_threads(&mut self, vm: &mut Vm, threads: &[ThreadId], by: Waker) {
        for &thread in threads {
            let now = self.uptime();
            let program = self.program();
            let (has_tasks, clock) = (program.has_tasks(), program.clock);
            let state = program.thread(thread);
            match (has_tasks, state.task) {
                (true, Some(id)) => {
                    state.woken = matches!(state.due, Some(TurnEnd::Wait { .. }));
                    if self.task(id).state == RunState::Sleeping {
                        self.program().set_state(thread, State::Ready(now));
                        self.charge(|costs| costs.wakeup);
                        self.wake(vm, id, by);
                    }
                }
                _ => {
                    if matches!(state.state, State::Waiting(_)) {
                        self.program().set_state(thread, State::Ready(clock));
                        self.plan_turn(clock);
                    }
                }
            }
        }
    }

    /// Wakes threads that wait for what programs have written, or for what only the host knows.
    pub(crate) fn look_at_program(&mut self, vm: &mut Vm) {
        let changed = self.at_door(vm, |door, vm, _| !door.take_notified(vm).is_empty());
        let uptime = self.uptime();
        let program = self.program();
        let now = match program.phase {
            Phase::Attached => uptime,
            Phase::Loading | Phase::Ending => program.clock,
        };
        let Some(mut user) = program.user.take() else {
            return;
        };
        let asks = user.is_waiting_for_files() && now >= program.next_look;
        let mut woken = Ok(Vec::new());
        if changed || asks {
            program.clock = now;
            program.next_look = Nanos::new(now.get().saturating_add(LOOK_EVERY.get()));
            woken = user.woken(&Within::new(self, vm, now));
        }
        self.program().user = Some(user);
        match woken {
            Ok(threads) => self.wake_threads(vm, &threads, Waker::Nobody),
            Err(error) => self.give_up_program(error),
        }
    }
}
