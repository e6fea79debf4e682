//! Turns of threads that are no tasks: by time, and at one time in the order in which they began
//! to wait.

use bpf::Door;
use model::user_space::{ThreadId, TurnEnd, UserSpace, UserSpaceError};
use model::{Advice as _, Advised, CpuId, Nanos, SimTime};

use super::{Phase, Program, ProgramReport, State};
use crate::flags::{UPTIME_NS, Waker};
use crate::machine::{Machine, Vm};
use crate::pending::Pending;
use crate::task::RunState;

/// How long a program may prepare a policy: more than twenty times what the slowest known needs.
const LOADING_LASTS: u64 = 60_000_000_000;
/// Uptime at which the program begins, so that it has attached by the begin of the run.
pub(super) const LOADING_BEGINS: Nanos = Nanos::new(UPTIME_NS - LOADING_LASTS);
/// How long a program may go on after it was asked to end, or after its policy was ejected.
const ENDING_LASTS: Nanos = Nanos::from_secs(5);
/// What the turns of a program may cost while it loads, and again while it ends: a hundred times
/// what the slowest known needs, and some seconds of real time. Time that it sleeps is not counted.
const MOST_SPENT: Nanos = Nanos::from_millis(100);
/// Yields one after the other, of threads that take no CPU: one that spins would spin for ever.
const MOST_YIELDS: u32 = 10_000;

impl Program {
    /// The thread whose turn is next, and when.
    fn next(&self) -> Option<(ThreadId, Nanos)> {
        let threads = (0..).map(ThreadId).zip(&self.threads);
        let due = threads.filter_map(|(number, thread)| {
            let time = match thread.state {
                State::Ready(time) | State::Waiting(Some(time)) => time,
                State::Waiting(None) | State::Over => return None,
            };
            Some((time, thread.since, number))
        });
        due.min().map(|(time, _, number)| (number, time))
    }

    fn has_ended(&self) -> bool {
        let user = self.user.as_ref();
        user.is_none_or(|user| user.end().is_some())
    }

    fn calls_so_far(&self) -> u64 {
        self.user.as_ref().map_or(0, |user| user.calls())
    }

    /// What its threads wait for.
    fn waits(&self) -> Vec<String> {
        self.user
            .as_ref()
            .map(|user| user.waits())
            .unwrap_or_default()
    }
}

impl Machine {
    /// Runs the program, which is called `name` and whose threads take CPU time unless they are
    /// `free`, until it has attached its policy.
    ///
    /// # Errors
    /// If it does not.
    pub(crate) fn start_program(
        &mut self,
        vm: &mut Vm,
        (user, door): (Box<dyn UserSpace>, Door<Self>),
        (name, free): (&str, bool),
    ) -> Result<(), UserSpaceError> {
        let mut program = Program::new(user, door, name.to_owned(), free);
        if !free {
            // The last one; see `with_program`.
            program.group = self.workload.groups.len() as u32 - 1;
            self.work.set_program(program.group);
        }
        *self.program = Some(Box::new(program));
        let program = self.program();
        let (pid, clock) = (program.new_pid(), program.clock);
        self.add_thread(pid, name, State::Ready(clock));
        let loaded = self.load_program(vm);
        loaded.map_err(|error| self.with_what_was_said(vm, &error))?;
        let program = self.program();
        program.calls[0] = program.calls_so_far();
        if program.phase == Phase::Loading {
            let user = program.user.as_ref().expect("no thread has its turn");
            let end = user.end();
            let (status, lines) =
                end.map_or((0, String::new()), |end| (end.status, end.last_lines));
            let error = UserSpaceError::from(format!(
                "{name} ended (status {status}) before it attached a policy; its last \
                 lines:\n{lines}"
            ));
            return Err(self.with_what_was_said(vm, &error));
        }
        self.seat_threads();
        Ok(())
    }

    /// The error of a program whose run does not begin, with what the run's end would have told.
    fn with_what_was_said(&mut self, vm: &Vm, error: &UserSpaceError) -> UserSpaceError {
        let said = self.say_so_far(vm);
        let mut told = error.0.clone();
        told.what = told.what.trim_end().to_owned() + &said;
        UserSpaceError(told)
    }

    /// Turns until the program has attached a policy or has ended.
    fn load_program(&mut self, vm: &mut Vm) -> Result<(), UserSpaceError> {
        let limit = Nanos::new(UPTIME_NS);
        while self.program().phase == Phase::Loading && !self.program().has_ended() {
            if self.program().spent > MOST_SPENT {
                return Err(UserSpaceError::from(format!(
                    "{} attached no policy within {MOST_SPENT} of CPU time: it makes system \
                     calls without end",
                    self.program().name
                )));
            }
            if !self.next_turn(vm, limit)? {
                let program = self.program();
                let waits = program.waits().join("; ");
                return Err(UserSpaceError::from(format!(
                    "{} attached no policy within {} s of simulated time: {waits}",
                    program.name,
                    LOADING_LASTS / 1_000_000_000
                )));
            }
        }
        Ok(())
    }

    /// The next turn of all, if it begins before `limit`, an uptime.
    fn next_turn(&mut self, vm: &mut Vm, limit: Nanos) -> Result<bool, UserSpaceError> {
        self.look_at_program(vm);
        self.program_fails()?;
        let Some((thread, time)) = self.program().next() else {
            return Ok(false);
        };
        let now = time.max(self.program().clock);
        if now >= limit {
            return Ok(false);
        }
        self.program().clock = now;
        self.turn_without_task(vm, thread, now);
        self.program_fails()?;
        Ok(true)
    }

    fn program_fails(&mut self) -> Result<(), UserSpaceError> {
        self.take_program_failure().map_or(Ok(()), Err)
    }

    /// A turn of a thread that is no task, and what follows from it.
    fn turn_without_task(&mut self, vm: &mut Vm, thread: ThreadId, now: Nanos) {
        let Some(turn) = self.turn(vm, thread, now) else {
            return;
        };
        let after = Nanos::new(now.get().saturating_add(turn.cost.get()));
        let program = self.program();
        let woken = std::mem::take(&mut program.thread(thread).woken);
        let state = match turn.stop {
            TurnEnd::Wait { .. } if woken => State::Ready(after),
            TurnEnd::Wait { until } => State::Waiting(until.map(|until| until.max(after))),
            TurnEnd::Yield | TurnEnd::Again => State::Ready(after),
            TurnEnd::Exit => State::Over,
        };
        program.yields = match turn.stop {
            TurnEnd::Yield => program.yields + 1,
            _ => 0,
        };
        program.set_state(thread, state);
        if program.has_tasks() {
            // It has attached the policy in this turn.
            let state = program.thread(thread);
            (state.due, state.state) = (Some(turn.stop), State::Ready(after));
            if let Some(id) = state.task {
                self.task_mut(id).work_left = turn.cost;
            }
        }
        let program = self.program();
        if program.phase == Phase::Attached && program.free && program.yields > MOST_YIELDS {
            let what = format!(
                "{} yields for ever and never sleeps: its threads must take CPU time",
                program.name
            );
            let error = UserSpaceError(Advised::new(what, "leave out `--loader-cpu free`"));
            self.give_up_program(error);
            return;
        }
        self.wake_threads(vm, &turn.woken, Waker::Nobody);
    }

    /// A thread more.
    pub(super) fn add_thread(&mut self, pid: u32, name: &str, state: State) -> ThreadId {
        let program = self.program();
        let number = ThreadId(program.threads.len() as u32);
        program.threads.push(super::Thread {
            task: None,
            pid,
            name: name.to_owned(),
            state,
            since: 0,
            due: None,
            woken: false,
            nice: 0,
            policy: workload::SchedPolicy::Normal,
            cpus: None,
        });
        program.set_state(number, state);
        number
    }

    /// The policy is attached: from now on its threads run as this machine's tasks do, or when
    /// their time has come.
    fn seat_threads(&mut self) {
        let program = self.program();
        let mut wakes = Vec::new();
        for thread in &program.threads {
            let time = match thread.state {
                State::Ready(_) => Some(SimTime::ZERO),
                State::Waiting(until) => until.map(Self::moment_of),
                State::Over => None,
            };
            let is_ready = matches!(thread.state, State::Ready(_));
            wakes.extend(time.map(|time| (time, thread.task, is_ready)));
        }
        for thread in &mut program.threads {
            if matches!(thread.state, State::Ready(_)) {
                thread.state = State::Ready(Nanos::new(UPTIME_NS));
            }
        }
        for (time, task, is_ready) in wakes {
            match task {
                // It was running when the policy was attached, before the load began, and a kernel
                // lets it go on. Behind the load's first tasks it might wait for ever, if it is to
                // start the timers that end their slices.
                Some(task) if is_ready => {
                    let cpu = self.task(task).cpu;
                    self.queue.push(time, cpu, Pending::Seat { task });
                }
                Some(task) => {
                    let (cpu, generation) = {
                        let task = self.task(task);
                        (task.cpu, task.sleep_generation)
                    };
                    self.queue
                        .push(time, cpu, Pending::Timer { task, generation });
                }
                None => self.queue.push(time, CpuId(0), Pending::Program),
            }
        }
    }

    /// During the run, threads without a task run when their time comes.
    pub(super) fn plan_turn(&mut self, time: Nanos) {
        let program = self.program();
        if program.phase == Phase::Attached && program.free {
            let time = Self::moment_of(time).max(self.now);
            self.queue.push(time, CpuId(0), Pending::Program);
        }
    }

    /// Threads without a task whose time has come run now.
    pub(crate) fn run_free_threads(&mut self, vm: &mut Vm) {
        let now = self.uptime();
        self.program().clock = now;
        while let Some((thread, time)) = self.program().next() {
            if time > now {
                self.plan_turn(time);
                return;
            }
            self.turn_without_task(vm, thread, now);
            if self.is_halted() {
                return;
            }
        }
    }

    /// The run is over: the program is asked to end, or sees that its policy was ejected, and goes
    /// on until it has ended.
    pub(crate) fn end_program(&mut self, vm: &mut Vm) {
        self.unseat_threads();
        let program = self.program();
        program.spent = Nanos::ZERO;
        program.calls[1] = program.calls_so_far();
        let ejected = self.scheds.root.attachment.has_ended();
        if ejected {
            self.detach(vm);
        }
        let failure = self.ask_it_to_end(vm, ejected).err();
        if let Some(absent) = self.program().hooks.absent() {
            self.note(absent);
        }
        let program = self.program();
        let user = program.user.as_ref();
        let end = user.and_then(|user| user.end());
        let mut waits = match end {
            None => program.waits(),
            Some(_) => Vec::new(),
        };
        waits.extend(failure.map(|error| error.in_full()));
        program.report = ProgramReport {
            end,
            turns: program.turns,
            calls: program.calls[1] - program.calls[0],
            waits,
        };
    }

    fn ask_it_to_end(&mut self, vm: &mut Vm, ejected: bool) -> Result<(), UserSpaceError> {
        if ejected && self.let_it_end(vm)? {
            return Ok(());
        }
        self.interrupt_program(vm)?;
        self.let_it_end(vm).map(|_| ())
    }

    fn interrupt_program(&mut self, vm: &mut Vm) -> Result<(), UserSpaceError> {
        let user = self.program().user.as_mut();
        let woken = user.expect("no thread has its turn").interrupt()?;
        self.wake_threads(vm, &woken, Waker::Nobody);
        Ok(())
    }

    /// Turns until the program has ended; false if it has not in time.
    fn let_it_end(&mut self, vm: &mut Vm) -> Result<bool, UserSpaceError> {
        let clock = self.program().clock;
        let limit = Nanos::new(clock.get().saturating_add(ENDING_LASTS.get()));
        while !self.program().has_ended() {
            if self.program().spent > MOST_SPENT || !self.next_turn(vm, limit)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The run is over: threads do not wait for CPUs any more.
    fn unseat_threads(&mut self) {
        let now = self.uptime();
        let states: Vec<_> = {
            let tasks = self.program().threads.iter().map(|thread| thread.task);
            let tasks: Vec<_> = tasks.collect();
            let asleep = |task| self.task(task).state == RunState::Sleeping;
            tasks.into_iter().map(|task| task.map(asleep)).collect()
        };
        let program = self.program();
        program.phase = Phase::Ending;
        program.clock = now;
        for (thread, asleep) in program.threads.iter_mut().zip(states) {
            let due = thread.due.take();
            thread.state = match (thread.state, due, asleep) {
                (State::Over, ..) | (_, Some(TurnEnd::Exit), _) => State::Over,
                (state @ State::Waiting(_), _, Some(true) | None) => state,
                (_, Some(TurnEnd::Wait { until }), _) if !thread.woken => State::Waiting(until),
                _ => State::Ready(now),
            };
            thread.woken = false;
        }
    }
}
