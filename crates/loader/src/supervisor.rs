//! The supervisor: lets one thread of the program run at a time, and answers its calls.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::Nanos;
use model::user_space::{
    ThreadKernel, ProgramEnd, TurnEnd, ThreadId, ThreadTurn, UserSpace, UserSpaceError,
};

use crate::birth::{self, Born};
use crate::clock::Clock;
use crate::deaths::{PATIENCE, is_there};
use crate::dispatch::dispatch;
use crate::exec::{self, Executed};
use crate::executable::Executable;
use crate::growth::OUTPUT_MAX;
use crate::memory::{self, MemoryWatch};
use crate::processes::{interrupt, receiver};
use crate::state::{
    CallContext, Errno, LoaderState, Parked, Process, Reply, Then, Thread, thread_id,
};
use crate::sys::{self, InterceptedCall};
use crate::{bpf, launch, scheduling, sockets, work};

pub use crate::launch::StartError;
pub use crate::state::Settings;

/// A program under supervision. Dropping it kills the program. Whoever has started it must be the
/// thread that drives it, since the kernel kills the program at that thread's end.
#[derive(Debug)]
pub struct Supervisor {
    pub(crate) state: LoaderState,
    name: String,
    launched: bool,
    pub(crate) end: Option<ProgramEnd>,
    /// The status of the first process, once it is known.
    pub(crate) status: Option<i32>,
    /// System calls that were answered.
    calls: u64,
    memory: MemoryWatch,
}

/// How the time between two calls of a thread ended.
enum Next {
    Call(InterceptedCall),
    /// The thread has died, and others of its process live.
    Gone,
    /// The process has died.
    Ended,
}

/// A thread or process that is being made.
struct Cloning {
    parent: usize,
    flags: u64,
    parent_tid: u64,
    child_tid: u64,
}

fn failed(text: impl Into<String>) -> UserSpaceError {
    UserSpaceError::from(text.into())
}

impl Supervisor {
    /// Starts a program, up to its first system call.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(
        program: &Path,
        args: &[impl AsRef<OsStr>],
        settings: Settings,
    ) -> Result<Self, StartError> {
        let args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
        let (state, name) = launch::launch(program, &args, settings)?;
        Ok(Self {
            state,
            name,
            launched: false,
            end: None,
            status: None,
            calls: 0,
            memory: MemoryWatch::default(),
        })
    }

    /// The end of its standard output and of its error output, at most 16 MiB of each.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn output(&self) -> io::Result<[Vec<u8>; 2]> {
        let [out, err] = &self.state.output;
        Ok([out.end(OUTPUT_MAX)?, err.end(OUTPUT_MAX)?])
    }

    /// Connects to a socket of the program, at a path that it knows without its first `/`, such as
    /// `run/scx/root/stats`. The connection does not wait: neither does this.
    ///
    /// # Errors
    /// If there is no such socket, or the program has not bound it itself; `EAGAIN` if it has more
    /// connections waiting than it asked for.
    pub fn connect(&self, path: &str) -> io::Result<UnixStream> {
        sockets::connect_from_outside(&self.state, Path::new(path))
    }

    /// The folder that stands for `/` where the simulated machine's files are. The program may have
    /// put links there: nobody else may write by this path.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.state.tree.root()
    }

    /// Requests of the program for things that do not exist here, a line each.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        let each = self.state.notes.iter();
        each.map(|(text, count)| match count {
            1 => format!("{}: {text}", self.name),
            count => format!("{}: {text} ({count} times)", self.name),
        })
        .collect()
    }

    /// Runs one thread until it stops.
    fn run(&mut self, at: usize, kernel: &mut dyn ThreadKernel) -> Result<TurnEnd, UserSpaceError> {
        if !self.state.threads.get(at).is_some_and(|it| it.lives) {
            return Ok(TurnEnd::Exit);
        }
        let Some(parked) = self.state.threads[at].parked.take() else {
            return Err(failed(format!("thread {at} stands at no call")));
        };
        let (mut call, mut waited) = match self.resume(at, parked)? {
            Ok((call, waited)) => (Some(call), waited),
            Err(None) => (None, None),
            Err(Some(stop)) => return Ok(stop),
        };
        let mut calls = 0;
        loop {
            let attaches = call.is_some_and(|call| bpf::attaches(&call));
            if let Some(call) = call {
                match self.answer(at, (call, waited), kernel)? {
                    Ok(()) => {}
                    Err(stop) => return Ok(stop),
                }
            }
            match self.next(at)? {
                Next::Call(next) => (call, waited) = (Some(next), None),
                Next::Gone => {
                    self.thread_ended(at, kernel)?;
                    return Ok(TurnEnd::Exit);
                }
                Next::Ended => {
                    let process = self.state.threads[at].process;
                    self.process_ended(process, at, kernel)?;
                    return Ok(TurnEnd::Exit);
                }
            }
            let prices = self.state.settings.prices;
            self.state.clock.charge(Nanos::new(prices.call.get().max(1)));
            calls += 1;
            self.calls += 1;
            self.state.work.add(work::CALL);
            let now = self.state.clock.now();
            self.state.work.check(&self.state.settings.limits, now, &self.name)?;
            // Once a policy is attached the others run: what follows finds what they have done.
            if (attaches || calls >= prices.calls_max.max(1))
                && let Some(call) = call
            {
                self.state.park(at, call, Then::Handle, None);
                return Ok(TurnEnd::Again);
            }
        }
    }

    /// A call of the thread, for messages.
    fn last(&self, at: usize) -> InterceptedCall {
        InterceptedCall {
            id: 0,
            tid: self.state.threads[at].tid,
            nr: -1,
            args: [0; 6],
        }
    }

    /// Gives a parked thread its signal and its answer: the call that must be looked at first, or
    /// none, or why it stops again.
    #[expect(clippy::type_complexity, reason = "three ways to go on, named above")]
    fn resume(
        &mut self,
        at: usize,
        parked: Parked,
    ) -> Result<Result<(InterceptedCall, Option<Option<Nanos>>), Option<TurnEnd>>, UserSpaceError> {
        let now = self.state.clock.now();
        let id = parked.call.id;
        if !matches!(parked.then, Then::Vfork(_)) && self.state.give_signals(at) {
            // It dies at this call, which is not done. It may have died already.
            self.send(id, -i64::from(libc::EINTR));
            return Ok(Err(None));
        }
        let is_over = parked.until.is_some_and(|it| it <= now);
        let waited = parked.waited.then_some(parked.until);
        match parked.then {
            Then::Handle | Then::Files(_) | Then::Child | Then::Signal => {
                return Ok(Ok((parked.call, waited)));
            }
            Then::Answer(result) => {
                if result == -i64::from(libc::EINTR) {
                    rest_of_sleep(&parked, now);
                }
                self.send(id, result);
            }
            Then::Futex(..) if is_over => self.send(id, -i64::from(libc::ETIMEDOUT)),
            Then::Sleep if is_over => self.send(id, 0),
            Then::Freed => {}
            Then::Futex(..) | Then::Sleep | Then::Vfork(_) => {
                let until = parked.until;
                self.state.threads[at].parked = Some(parked);
                return Ok(Err(Some(TurnEnd::Wait { until })));
            }
        }
        Ok(Err(None))
    }

    /// Answers; a thread that has died meanwhile needs no answer, and is noticed where it is
    /// waited for.
    fn send(&self, id: u64, result: i64) {
        let _ = self.state.listener.answer(id, result);
    }

    /// Answers a call; or why the thread stops.
    fn answer(
        &mut self,
        at: usize,
        (call, waited): (InterceptedCall, Option<Option<Nanos>>),
        kernel: &mut dyn ThreadKernel,
    ) -> Result<Result<(), TurnEnd>, UserSpaceError> {
        let reply = dispatch(&mut CallContext {
            state: &mut self.state,
            at,
            call,
            kernel: &mut *kernel,
            waited,
        });
        match reply {
            Err(Errno(errno)) => self.send(call.id, -i64::from(errno)),
            Ok(Reply::Value(value)) => self.send(call.id, value),
            Ok(Reply::Continue) => drop(self.state.listener.go_on(call.id)),
            Ok(Reply::Fd(file, cloexec)) => {
                if let Err(error) = self.state.listener.answer_fd(call.id, &file, cloexec) {
                    self.send(call.id, -i64::from(error.raw_os_error().unwrap_or(libc::EIO)));
                }
            }
            Ok(Reply::Park(then, until)) => {
                self.state.park(at, call, then, until);
                return Ok(Err(TurnEnd::Wait { until }));
            }
            Ok(Reply::Yield) => {
                self.state.park(at, call, Then::Answer(0), None);
                return Ok(Err(TurnEnd::Yield));
            }
            Ok(Reply::Clone) => {
                let living = self.state.processes.iter().filter(|it| it.lives).count();
                let new = living + usize::from(!birth::is_thread(&call));
                let limits = self.state.settings.limits;
                self.state.work.birth(&limits, new, &self.name)?;
                return self.make(at, &call, kernel);
            }
            Ok(Reply::Exec(program)) => return self.exec(at, &call, &program, kernel),
            Ok(Reply::Exit) => {
                self.exit(at, &call, kernel)?;
                return Ok(Err(TurnEnd::Exit));
            }
            Ok(Reply::ExitGroup) => {
                drop(self.state.listener.go_on(call.id));
                let process = self.state.threads[at].process;
                self.process_ended(process, at, kernel)?;
                return Ok(Err(TurnEnd::Exit));
            }
            Ok(Reply::Place(address)) => {
                if let Err(errno) = exec::place(&self.state, &call, address)
                    && !self.state.is_dead(at, errno)
                {
                    let Errno(errno) = errno;
                    let text = "the kernel allows no tracing, so that an arena has no address";
                    return Err(failed(format!("{}: {text} (errno {errno})", self.name)));
                }
            }
        }
        Ok(Ok(()))
    }

    fn exec(
        &mut self,
        at: usize,
        call: &InterceptedCall,
        program: &Executable,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<Result<(), TurnEnd>, UserSpaceError> {
        let process = self.state.threads[at].process;
        self.state.work.add(work::BIRTH);
        match exec::exec(&mut self.state, at, call, program) {
            Ok(Executed::Done) => {
                self.end_orphans(at, kernel);
                Ok(Ok(()))
            }
            Ok(Executed::Refused(_)) => Ok(Ok(())),
            Ok(Executed::Died(status)) => {
                self.note_status(process, status);
                self.process_ended(process, at, kernel)?;
                Ok(Err(TurnEnd::Exit))
            }
            Err(Errno(errno)) => {
                let text = "the kernel allows no tracing at execve()";
                Err(failed(format!("{}: {text} (errno {errno})", self.name)))
            }
        }
    }

    /// Makes a thread or a process, and takes it in at its first call.
    fn make(
        &mut self,
        at: usize,
        call: &InterceptedCall,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<Result<(), TurnEnd>, UserSpaceError> {
        match birth::make(&mut self.state, at, call) {
            Ok(Born::Calls(first)) => {
                let cloning = Cloning::of(at, call);
                let child = self.adopt(&cloning, first, kernel);
                birth::let_go(call.tid);
                // It may have been killed meanwhile.
                let Some(child) = child? else { return Ok(Ok(())) };
                if cloning.flags & libc::CLONE_VFORK as u64 != 0 {
                    self.state.park(at, *call, Then::Vfork(child), None);
                    return Ok(Err(TurnEnd::Wait { until: None }));
                }
                Ok(Ok(()))
            }
            Ok(Born::Refused | Born::Stillborn) => Ok(Ok(())),
            Ok(Born::Died(status)) => {
                let process = self.state.threads[at].process;
                self.note_status(process, status);
                self.process_ended(process, at, kernel)?;
                Ok(Err(TurnEnd::Exit))
            }
            Ok(Born::Silent) => {
                let maker = &self.state.threads[at].name;
                let seconds = PATIENCE.as_secs();
                Err(failed(format!(
                    "{}: a child of thread {at} ({maker}) has made no system call for {seconds} s \
                     of real time; the simulated time stands still meanwhile",
                    self.name
                )))
            }
            Err(Errno(errno)) => {
                let text = "the kernel allows no tracing of a new thread";
                Err(failed(format!("{}: {text} (errno {errno})", self.name)))
            }
        }
    }

    /// Waits for the thread's next call.
    fn next(&mut self, at: usize) -> Result<Next, UserSpaceError> {
        /// A thread that has ended alone is looked for that often.
        const SHORT: Duration = Duration::from_millis(100);
        let began = Instant::now();
        loop {
            if self.memory.is_due() {
                self.check_memory()?;
            }
            let process = self.state.threads[at].process;
            let (called, ended) = self.state.look_out(Some(process), SHORT);
            if !called {
                if ended {
                    return Ok(Next::Ended);
                }
                if self.state.is_gone(at) {
                    return Ok(Next::Gone);
                }
                if began.elapsed() >= PATIENCE {
                    return Err(self.hangs(at));
                }
                continue;
            }
            let received = self.state.listener.receive();
            let received = received.map_err(|it| failed(format!("{}: {it}", self.name)))?;
            let Some(call) = received else { continue };
            if call.tid == self.state.threads[at].tid {
                return Ok(Next::Call(call));
            }
            if !self.state.take_again(call) {
                let text = "has a thread that nobody has made";
                return Err(failed(format!("{} {text}", self.name)));
            }
        }
    }

    fn check_memory(&self) -> Result<(), UserSpaceError> {
        let living = self.state.processes.iter().filter(|it| it.lives);
        let living: Vec<i32> = living.map(|it| it.real).collect();
        let limits = &self.state.settings.limits;
        if memory::exceeds(&living, limits.memory) {
            return Err(work::too_much_memory(limits, &self.name));
        }
        Ok(())
    }

    /// The error of a thread that goes on without a call.
    pub(crate) fn hangs(&self, at: usize) -> UserSpaceError {
        let thread = &self.state.threads[at].name;
        let seconds = PATIENCE.as_secs();
        failed(format!(
            "{}: thread {at} ({thread}) has made no system call for {seconds} s of real time; the \
             simulated time stands still meanwhile",
            self.name
        ))
    }

    /// Takes in the thread that has made its first call; `None` if it has died at it.
    fn adopt(
        &mut self,
        cloning: &Cloning,
        call: InterceptedCall,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<Option<usize>, UserSpaceError> {
        let born = birth::process_of(call.tid).and_then(|real| match self.state.known(real) {
            Some(known) => Ok((real, Some(known), None)),
            None => sys::pidfd_open(real).map(|fd| (real, None, Some(fd))),
        });
        let (real, known, fd) = match born {
            Ok(born) => born,
            Err(_) if !is_there(call.tid, call.tid) => return Ok(None),
            Err(error) => {
                let text = "cannot look at a process that it has made";
                return Err(failed(format!("{}: {text}: {error}", self.name)));
            }
        };
        let parent = &self.state.threads[cloning.parent];
        let (tid, own) = (parent.tid, parent.process);
        let child = self.state.threads.len();
        let (pid, shown) = kernel.spawn(thread_id(child), &parent.name);
        let process = known.unwrap_or(self.state.processes.len());
        let clears = cloning.flags & libc::CLONE_CHILD_CLEARTID as u64 != 0;
        let thread = Thread {
            tid: call.tid,
            shown,
            process,
            name: parent.name.clone(),
            parked: None,
            lives: true,
            clear: clears.then_some((cloning.child_tid, true)),
            policy: parent.policy,
            nice: parent.nice,
            affinity: parent.affinity.clone(),
            charged: Nanos::new(0),
            signals: Vec::new(),
        };
        let cpus = self.state.settings.shown.machine.cpus;
        scheduling::inherit(kernel, thread_id(child), &thread, cpus);
        if let Some(fd) = fd {
            let cwd = self.state.processes[own].cwd.clone();
            self.state.processes.push(Process {
                real,
                shown: pid,
                fd: Arc::new(fd),
                cwd,
                parent: Some(own),
                lives: true,
                charged: Nanos::new(0),
            });
        }
        self.state.threads.push(thread);
        // The host's kernel has written its own number there.
        for (flag, tid, at) in [
            (libc::CLONE_PARENT_SETTID, tid, cloning.parent_tid),
            (libc::CLONE_CHILD_SETTID, call.tid, cloning.child_tid),
        ] {
            if cloning.flags & flag as u64 != 0 {
                let _ = sys::write_memory(tid, at, &shown.to_le_bytes());
            }
        }
        self.state.park(child, call, Then::Handle, None);
        Ok(Some(child))
    }

    /// Ends what nobody has a descriptor of any more.
    pub(crate) fn end_orphans(&mut self, at: usize, kernel: &mut dyn ThreadKernel) {
        for key in self.state.orphans() {
            let call = self.last(at);
            let mut cx = CallContext {
                state: &mut self.state,
                at,
                call,
                kernel: &mut *kernel,
                waited: None,
            };
            bpf::end(&mut cx, key);
        }
    }
}

/// Writes what is left of an interrupted sleep.
fn rest_of_sleep(parked: &Parked, now: Nanos) {
    let at = match parked.call.nr {
        libc::SYS_nanosleep => parked.call.args[1],
        libc::SYS_clock_nanosleep if parked.call.args[1] & 1 == 0 => parked.call.args[3],
        _ => 0,
    };
    if let (Some(until), true) = (parked.until, at != 0) {
        let left = crate::time::to_timespec(until.saturating_sub(now));
        let _ = sys::write_memory(parked.call.tid, at, &left);
    }
}

impl Cloning {
    fn of(parent: usize, call: &InterceptedCall) -> Self {
        let flags = match call.nr {
            libc::SYS_clone => call.args[0],
            libc::SYS_vfork => libc::CLONE_VFORK as u64,
            _ => 0,
        };
        Self {
            parent,
            flags,
            parent_tid: call.args[2],
            child_tid: call.args[3],
        }
    }
}

impl UserSpace for Supervisor {
    fn turn(
        &mut self,
        thread: ThreadId,
        now: Nanos,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<ThreadTurn, UserSpaceError> {
        let at = thread.0 as usize;
        self.state.clock = Clock::new(now);
        let price = self.state.settings.prices.turn;
        self.state.clock.charge(Nanos::new(price.get().max(1)));
        self.state.woken.clear();
        if !self.launched {
            self.launched = true;
            let (pid, tid) = kernel.spawn(ThreadId(0), &self.name);
            self.state.processes[0].shown = pid;
            self.state.threads[0].shown = tid;
        }
        let mut stop = self.run(at, kernel)?;
        self.state.look_at_files(&*kernel);
        let cost = self.state.clock.charged();
        if let Some(thread) = self.state.threads.get_mut(at) {
            thread.charged += cost;
            self.state.processes[thread.process].charged += cost;
        }
        let mut woken = Vec::new();
        for other in std::mem::take(&mut self.state.woken) {
            if other == at && matches!(stop, TurnEnd::Wait { .. }) {
                stop = TurnEnd::Again;
            } else if other != at && !woken.contains(&thread_id(other)) {
                woken.push(thread_id(other));
            }
        }
        Ok(ThreadTurn { stop, cost, woken })
    }

    fn woken(&mut self, kernel: &dyn ThreadKernel) -> Result<Vec<ThreadId>, UserSpaceError> {
        self.state.woken.clear();
        self.state.look_at_files(kernel);
        let woken = std::mem::take(&mut self.state.woken);
        Ok(woken.into_iter().map(thread_id).collect())
    }

    fn is_waiting_for_files(&self) -> bool {
        let settings = &self.state.settings;
        (settings.net || settings.reached)
            && !self.state.parked(|it| matches!(it.then, Then::Files(_))).is_empty()
    }

    fn interrupt(&mut self) -> Result<Vec<ThreadId>, UserSpaceError> {
        self.state.woken.clear();
        if self.end.is_none()
            && let Some(at) = receiver(&self.state, 0, libc::SIGINT)
        {
            interrupt(&mut self.state, at, libc::SIGINT);
        }
        let woken = std::mem::take(&mut self.state.woken);
        Ok(woken.into_iter().map(thread_id).collect())
    }

    fn waits(&self) -> Vec<String> {
        let lives = self.state.threads.iter().enumerate().filter(|(_, it)| it.lives);
        lives
            .map(|(at, thread)| {
                let what = thread.parked.as_ref().map_or("nothing", |it| match &it.then {
                    Then::Handle | Then::Answer(_) | Then::Freed => "a CPU",
                    Then::Futex(..) => "another thread (futex)",
                    Then::Sleep => "the end of its sleep",
                    Then::Files(_) => "a file, a pipe or a socket",
                    Then::Child | Then::Vfork(_) => "a child process",
                    Then::Signal => "a signal",
                });
                format!("{}: thread {at} ({}) waits for {what}", self.name, thread.name)
            })
            .collect()
    }

    fn calls(&self) -> u64 {
        self.calls
    }

    fn end(&self) -> Option<ProgramEnd> {
        self.end.clone()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if self.end.is_some() {
            return;
        }
        self.state.kill_all();
        if self.status.is_none() {
            let began = Instant::now();
            let real = self.state.processes[0].real;
            while sys::ended(real).is_none() && began.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.state.wait_for_nobody();
    }
}
