//! Plays a workload with real processes, threads, sockets, pipes, locks and timers.
//!
//! [`play`] is a whole play with its events and its result. Whoever does something else meanwhile
//! takes its parts: [`Player::prepare`] creates all tasks, which then wait; [`Player::start`] lets
//! them go at one moment; [`Player::stop`] ends all of them and returns what they said. Channels
//! and memory are made before the tasks are, and no task allocates while it plays.
//!
//! All tasks live in a pid namespace whose first process dies with the player, and the kernel ends
//! everyone in it, so that nothing is left behind by a kill either.

mod cgroups;
mod devices;
mod growing;
mod marks;
mod names;
mod queue;
mod refuse;
mod run;
pub(crate) mod shared;
pub(crate) mod spin;
mod state;
pub(crate) mod sys;
mod task;

use std::collections::BTreeMap;
use std::process;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use model::{Advised, EventKind, GrowingQueue, Nanos, Rng, SimTime};
use workload::{
    Effect, Expr, INTERRUPT_PRIORITY, ResourceInstance, SchedPolicy, Source, Target, TaskKind,
    Workload, growing_queues,
};

pub use names::stem as name_stem;
pub use refuse::{notes, refusals};
pub use run::{AsItIs, Detached, OfKernel, PlayOptions, PlayScheduler, play};

use crate::Error;
use cgroups::Cgroups;
use growing::QueueLengths;
use live::record::{Pace, Raw, RecordKind, be_urgent, clock};
use state::{Failure, Overdue, SharedState};
use sys::Forked;

/// How long tasks may take until all of them are ready.
const READY: Duration = Duration::from_secs(60);

/// A counter at the end of a play: group, counter, sum.
pub type Sum = (u32, u32, u64);

/// A workload whose tasks exist. Dropped, it ends them.
#[derive(Debug)]
pub struct Player {
    /// Lives as long as this value; each process of the tasks has a copy of its own.
    state: NonNull<SharedState>,
    /// The process whose end is everybody's end; `None` when it was ended.
    keeper: Option<libc::pid_t>,
    said: Vec<Raw>,
    /// Number of the next mark.
    next: u64,
    /// Between two looks at what tasks say.
    pace: Pace,
    lengths: QueueLengths,
    /// When there was no more waiting, and the books of that moment.
    ended: Option<Ended>,
    /// They go when everybody has gone.
    _groups: Option<Cgroups>,
}

/// The books at the end of a play.
#[derive(Debug)]
struct Ended {
    /// When: `CLOCK_MONOTONIC`, nanoseconds.
    at: u64,
    sums: Vec<Sum>,
    /// What was due and is not done.
    overdue: Vec<Overdue>,
}

/// Outcome of a play.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// What tasks said: who they are, spans, deadlines, phases, and counts if each was to be told.
    pub said: Vec<Raw>,
    /// When it began: `CLOCK_MONOTONIC`, nanoseconds.
    pub began: u64,
    /// When it was over or was ended.
    pub ended: u64,
    /// Sums of counters. Empty if each count was told.
    pub sums: Vec<Sum>,
    /// Marks for which there was no room.
    pub lost: u64,
    /// Queues of messages that still grew at the end.
    pub growing: Vec<GrowingQueue>,
    /// Why a task could not go on, with file, line and task.
    pub failure: Option<String>,
}

impl Player {
    /// Creates the tasks of `workload`, for a machine of `cpus` CPUs. With `tell_counts` every
    /// count is told as it happens, and tasks are known by the kernel's numbers. The calling
    /// process must have one thread, which stays until the play is over: tasks are forked from it.
    ///
    /// # Errors
    /// When the system refuses files, memory or processes, which takes root.
    pub fn prepare(
        workload: &Workload,
        seed: u64,
        cpus: u16,
        tell_counts: bool,
    ) -> Result<Self, Error> {
        let groups = match workload.cgroups[..] {
            [] => None,
            _ => Some(Cgroups::create(workload)?),
        };
        let folders = groups.as_ref().map_or(&[][..], Cgroups::folders).to_vec();
        let state = SharedState::new(workload, seed, cpus, tell_counts, folders)?;
        // Tasks in other processes point to it for as long as they live.
        let state = NonNull::from(Box::leak(Box::new(state)));
        let mut player = Self {
            state,
            keeper: None,
            said: Vec::new(),
            next: 0,
            pace: Pace::new(marks::ENTRIES),
            lengths: QueueLengths::new(workload),
            ended: None,
            _groups: groups,
        };
        match sys::fork().map_err(Error::doing("create a process"))? {
            Forked::Parent(keeper) => player.keeper = Some(keeper),
            Forked::Child => {
                // SAFETY: this process is another one and never drops the player: `keep` does not
                // return. So its state stays where it is.
                #[expect(unsafe_code, reason = "no type says that this process never returns")]
                let state = unsafe { state.as_ref() };
                keep(state)
            }
        }
        let tasks: u32 = workload.groups.iter().map(|group| group.count).sum();
        let wanted = tasks + u32::try_from(workload.interrupts.len()).unwrap_or(u32::MAX);
        let patience = Instant::now() + READY;
        while player.state().ready() < wanted {
            let pause = player.listen();
            let failure = player.state().failure();
            if failure.is_some() || player.has_lost_all() || Instant::now() > patience {
                let ready = player.state().ready();
                let why = failure.map_or_else(
                    || {
                        let what = format!("{ready} of {wanted} tasks could be created");
                        Advised::new(what, "it takes root")
                    },
                    Advised::from,
                );
                return Err(Error::Play { why });
            }
            std::thread::sleep(pause);
        }
        Ok(player)
    }

    fn state(&self) -> &SharedState {
        // SAFETY: it was made in `prepare` and is freed in `drop` only; this process shares it by
        // reference and changes nothing but atomics.
        #[expect(unsafe_code, reason = "a box that forked processes refer to, too")]
        unsafe {
            self.state.as_ref()
        }
    }

    /// Whether the process is gone that all tasks depend on.
    fn has_lost_all(&mut self) -> bool {
        if self.keeper.is_some_and(sys::has_ended) {
            // From here on its number may belong to another process.
            self.keeper = None;
        }
        self.keeper.is_none()
    }

    /// Lets all tasks begin.
    pub fn start(&self) {
        self.state().start();
    }

    /// Listens to the tasks until the play is over, `limit` has passed since its start, or `stop`
    /// says so.
    pub fn wait(&mut self, limit: Option<Nanos>, mut stop: impl FnMut() -> bool) {
        let end = limit.map(|limit| self.state().began().saturating_add(limit.get()));
        loop {
            let pause = self.listen();
            let left = end.map(|end| Duration::from_nanos(end.saturating_sub(clock())));
            let pause = left.unwrap_or(pause).min(pause);
            if pause.is_zero() || stop() || self.state().wait_for_end(pause) {
                // Until the last task has met its end, others go on and count.
                self.ended = Some(self.books());
                return;
            }
        }
    }

    /// Takes what the tasks have said since. Who does not [`wait`](Self::wait) does this again
    /// after the time that it returns, because there is room for so many marks only.
    #[must_use]
    pub fn listen(&mut self) -> Duration {
        let before = self.next;
        self.drain();
        let pause = self.pace.after(self.next - before);
        self.look_at_queues();
        if self.has_lost_all() {
            self.state()
                .fail(Failure::Killed, [0; 3], libc::SIGKILL.into());
        }
        pause
    }

    /// Notes how many messages wait, while the play lasts.
    fn look_at_queues(&mut self) {
        let mut lengths = std::mem::take(&mut self.lengths);
        let state = self.state();
        if state.began() > 0 && state.ended().is_none() {
            lengths.look(state.now(), |queue| state.queued(queue));
        }
        self.lengths = lengths;
    }

    /// Ends all tasks.
    #[must_use]
    pub fn stop(mut self) -> Played {
        let ended = self.ended.take();
        let Ended { at, sums, overdue } = ended.unwrap_or_else(|| self.books());
        self.end();
        self.drain();
        let mut said = std::mem::take(&mut self.said);
        let state = self.state();
        let end = SimTime::from_nanos(at.saturating_sub(state.began()));
        let growing = self.lengths.grown(end);
        let growing = growing_queues(&state.workload, &state.codes, &growing);
        let overdue = [overdue, state.unread(end)].concat();
        skip(&overdue, at, &mut said);
        Played {
            said,
            began: state.began(),
            ended: at,
            sums,
            lost: state.marks.lost(),
            growing,
            failure: state.failure(),
        }
    }

    /// The books of this moment, or of the end if the play was over before.
    fn books(&self) -> Ended {
        let state = self.state();
        let now = clock();
        let at = state.ended().unwrap_or(now).min(now);
        let end = SimTime::from_nanos(at.saturating_sub(state.began()));
        Ended {
            at,
            sums: state.sums(),
            overdue: state.overdue(end),
        }
    }

    fn drain(&mut self) {
        let mut said = std::mem::take(&mut self.said);
        self.next = self.state().marks.drain(self.next, &mut said);
        self.said = said;
    }

    fn end(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            sys::kill(keeper);
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.end();
        // SAFETY: it came from a box in `prepare`, nobody else frees it, and in this process only
        // `self` knows of it.
        #[expect(unsafe_code, reason = "the other half of the box in `prepare`")]
        drop(unsafe { Box::from_raw(self.state.as_ptr()) });
    }
}

/// Says of each task what it did not do in time. It will not do it, because it was ended.
fn skip(overdue: &[Overdue], at: u64, said: &mut Vec<Raw>) {
    let born = said.iter().filter(|raw| raw.kind == RecordKind::Born);
    let pids: BTreeMap<[u32; 2], u32> = born.map(|raw| ([raw.a, raw.b], raw.pid)).collect();
    said.extend(overdue.iter().filter_map(|it| {
        Some(Raw {
            time: at,
            pid: *pids.get(&[it.group, it.index])?,
            cpu: 0,
            kind: RecordKind::Mark,
            flags: 0,
            c: it.count,
            a: it.deadline,
            b: EventKind::Skipped as u32,
        })
    }));
}

/// Is the process that makes a namespace and waits for its first process.
fn keep(state: &'static SharedState) -> ! {
    sys::die_with_parent();
    sys::leave_terminal();
    if let Err(error) = sys::new_pids() {
        let number = error.raw_os_error().unwrap_or(libc::EPERM);
        state.fail(Failure::System, [0; 3], number.into());
        sys::exit(1);
    }
    match sys::fork() {
        Ok(Forked::Child) => be_first(state),
        Ok(Forked::Parent(_)) => {
            be_urgent();
            while sys::wait_child(true).is_some() {}
            sys::exit(0)
        }
        Err(_) => sys::exit(1),
    }
}

/// Is the first process of the namespace: creates the tasks, and inherits those whose parents
/// have ended.
fn be_first(state: &'static SharedState) -> ! {
    sys::die_with_parent();
    // The player may be urgent, and what it forks would be.
    let _ = sys::set_policy(0, SchedPolicy::Normal);
    if let Some(root) = state.cgroups.first()
        && let Err(error) = devices::put(root, "cgroup.procs", "0")
    {
        let number = error.raw_os_error().unwrap_or(libc::EPERM);
        state.fail(Failure::System, [0; 3], number.into());
    }
    for (group, declared) in (0..).zip(&state.workload.groups) {
        let members: Vec<u32> = (0..declared.count)
            .map_while(|_| state.admit(group))
            .collect();
        if declared.kind == TaskKind::Process {
            for index in members {
                create(state, group, index, || {
                    task::be_process(state, group, index, true)
                });
            }
        } else if !members.is_empty() {
            create(state, group, 0, || task::be_host(state, group, &members));
        }
    }
    for source in 0..state.workload.interrupts.len() {
        create(state, 0, 0, || interrupt(state, source));
    }
    // Its end is everybody's, and it must not wait for a CPU behind those whom it ends.
    be_urgent();
    while let Some(ended) = sys::wait_child(true) {
        if let sys::ChildEnd::Killed(signal) = ended {
            state.fail(Failure::Killed, [0; 3], signal.into());
        }
    }
    // The player ends it; it must not end before, because all others would end with it.
    loop {
        sys::sleep_until(u64::MAX / 2);
    }
}

fn create(state: &'static SharedState, group: u32, index: u32, be: impl FnOnce()) {
    match sys::fork() {
        Ok(Forked::Child) => {
            be();
            process::abort();
        }
        Ok(Forked::Parent(_)) => {}
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(libc::EAGAIN);
            state.fail(Failure::System, [0, group, index], number.into());
        }
    }
}

/// Stands for an interrupt source: a thread that nothing but real-time threads delays, woken by a
/// timer.
fn interrupt(state: &'static SharedState, number: usize) {
    let declared = &state.workload.interrupts[number];
    let mut name = [0; 16];
    let length = declared.name.len().min(11);
    name[..4].copy_from_slice(b"irq/");
    name[4..4 + length].copy_from_slice(&declared.name.as_bytes()[..length]);
    sys::set_name(&name);
    sys::no_timer_slack();
    let cpu = workload::CpuSet::single(declared.cpu);
    let set = sys::set_affinity(0, &cpu)
        .and_then(|()| sys::set_policy(0, SchedPolicy::Fifo(INTERRUPT_PRIORITY)));
    if let Err(error) = set {
        state.fail(
            Failure::System,
            [declared.line, 0, 0],
            error.raw_os_error().unwrap_or(0).into(),
        );
    }
    let stream = u32::try_from(number).unwrap_or(u32::MAX);
    let mut source = Source::new(declared, Rng::of_interrupt(state.seed, stream));
    let mut buffer = vec![0; state.message_max()];
    state.source_waits_for_start(number);
    let mut next = Some(source.first(declared));
    while let Some(arrival) = next {
        sys::sleep_until(state.moment(arrival));
        state.spin.burn(source.cost(declared).get());
        let done = match &declared.effect {
            Effect::None => Ok(()),
            Effect::Send(to) => {
                let index = constant(&to.index);
                let count = state.workload.channels[to.of as usize].count;
                match u32::try_from(index) {
                    Ok(index) if index < count => {
                        let to = ResourceInstance { of: to.of, index };
                        state.send(to, &mut buffer, false)
                    }
                    _ => Err((Failure::Index, index)),
                }
            }
            Effect::Resume(Target::Member { group, index }) => {
                let member = state.member(*group, constant(index));
                member.iter().for_each(task::resume);
                Ok(())
            }
            Effect::Resume(Target::Me) => Ok(()),
        };
        if let Err((failure, value)) = done {
            state.fail(failure, [declared.line, 0, 0], value);
        }
        next = source.next(declared, arrival);
    }
    sys::exit(0)
}

/// The front end asks for constants where an interrupt acts.
fn constant(index: &Expr) -> i64 {
    match index {
        Expr::Number(index) => *index,
        _ => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_ended_with_work_undone_says_so_under_its_own_number() {
        let raw = |kind, pid, a, b| Raw {
            time: 7,
            pid,
            cpu: 0,
            kind,
            flags: 0,
            c: 0,
            a,
            b,
        };
        let mut said = vec![
            raw(RecordKind::Born, 41, 1, 0),
            raw(RecordKind::Born, 42, 1, 2),
            raw(RecordKind::Mark, 41, 1, 2),
        ];
        let overdue = |index| Overdue {
            group: 1,
            index,
            deadline: 5,
            count: 9,
        };
        // Whose birth found no room in the ring is unknown to everybody.
        skip(&[overdue(2), overdue(3)], 99, &mut said);
        assert_eq!(said.len(), 4);
        let last = said[3];
        assert_eq!((last.time, last.pid, last.a, last.c), (99, 42, 5, 9));
        assert_eq!(last.b, EventKind::Skipped as u32);
        assert_eq!(last.kind, RecordKind::Mark);
    }
}
