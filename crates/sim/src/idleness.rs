//! CPUs that idle while tasks wait.
//!
//! A CPU that idles asks the policy for nothing until somebody kicks it. A real machine has enough
//! interrupts and kernel threads to hide a forgotten kick for a while; this one has none that the
//! workload does not bring. A CPU that was asked and took nobody is another matter: policies part
//! their CPUs, save power and throttle tasks on purpose.

use model::{CpuId, Nanos, SimTime, TaskId};

use crate::cpu::{Curr, Mode, Todo};
use crate::machine::Machine;
use crate::task::{Class, RunState};
use crate::work::WorkError;

/// The machine is looked at so often, and after each longer time in which nothing happened.
const EVERY: Nanos = Nanos::from_millis(50);
/// A task that waits for so long while a CPU idles is not on its way to it.
const LONG: Nanos = Nanos::from_millis(100);
/// Waiting tasks that a look takes in at most.
const MOST_TASKS: usize = 1_000;
/// A run may last so long; times are added without fear of the end of the clock.
const MOST_YEARS: u64 = 10;
const YEAR_NS: u64 = 365 * 24 * 3_600 * 1_000_000_000;

/// What was seen so far. Only this module changes it.
#[derive(Clone, Debug)]
pub(crate) struct Idleness {
    /// When the next look is due.
    due: SimTime,
    /// When the last one was.
    last: SimTime,
    /// CPU time that idled while a task could have had it, and no CPU was asked for work.
    unasked: Wasted,
    /// The same where one was asked, and took nobody.
    declined: Wasted,
    /// By CPU: calls of its scheduler at the last look, and when they were last seen to grow.
    calls: Vec<(u64, SimTime)>,
}

/// CPU time that idled beside tasks, by cause.
#[derive(Clone, Debug)]
struct Wasted {
    time: Nanos,
    /// The first task of which that was seen, and when its wait had begun.
    first: Option<(TaskId, SimTime)>,
}

impl Wasted {
    const NONE: Self = Self {
        time: Nanos::ZERO,
        first: None,
    };
}

impl Idleness {
    /// Nothing was seen.
    pub const fn new() -> Self {
        Self {
            due: SimTime::ZERO,
            last: SimTime::ZERO,
            unasked: Wasted::NONE,
            declined: Wasted::NONE,
            calls: Vec::new(),
        }
    }

    /// When the next look is due.
    #[inline]
    pub const fn due(&self) -> SimTime {
        self.due
    }
}

impl Machine {
    /// Looks at what the CPUs and the tasks have been doing up to `now`, before anything happens
    /// then. Ends a run that lasts too long.
    #[inline(never)]
    pub(crate) fn look_at_idle_cpus(&mut self, now: SimTime) {
        if now.as_nanos() > MOST_YEARS * YEAR_NS {
            self.give_up_for_time();
        }
        let span = now.since(self.idleness.last);
        self.idleness.last = now;
        self.idleness.due = now + EVERY;
        if !self.watchdog.has_waiting() || !self.scheds.root.attachment.is_attached() {
            return;
        }
        self.note_calls(now);
        let is_free = |cpu: &CpuId| {
            let state = &self.cpus[*cpu];
            let idles = state.curr() == Curr::Idle && state.mode == Mode::Idle;
            idles && !state.todo.has(Todo::RESCHED) && self.is_online(*cpu)
        };
        let free: Vec<CpuId> = (0..self.spec.cpus).map(CpuId).filter(is_free).collect();
        let kept = |id: &TaskId| self.is_kept_from(*id, &free, now);
        let waiting = self.watchdog.waiting().iter().copied();
        let tasks: Vec<TaskId> = waiting
            .take(MOST_TASKS)
            .filter(kept)
            .take(free.len())
            .collect();
        for task in tasks {
            let since = self.task(task).phase_since;
            let is_asked = free.iter().any(|&cpu| self.is_asked(cpu, task, since));
            let wasted = if is_asked {
                &mut self.idleness.declined
            } else {
                &mut self.idleness.unasked
            };
            wasted.time += span;
            wasted.first.get_or_insert((task, since));
        }
    }

    /// Notes which CPUs' schedulers have been called since the last look.
    fn note_calls(&mut self, now: SimTime) {
        let cpus = usize::from(self.spec.cpus);
        self.idleness.calls.resize(cpus, (0, SimTime::ZERO));
        for number in (0..self.spec.cpus).map(CpuId) {
            let calls = self.cpus[number].counts.schedules;
            let (before, seen) = &mut self.idleness.calls[number.index()];
            if *before != calls {
                (*before, *seen) = (calls, now);
            }
        }
    }

    /// Whether `cpu`, which `task` may use and which idles, was asked for work since `since`, as
    /// far as the looks tell.
    fn is_asked(&self, cpu: CpuId, task: TaskId, since: SimTime) -> bool {
        let (_, called) = self.idleness.calls[cpu.index()];
        let is_asked = self.cpus[cpu].mode_since > since || called > since + EVERY;
        self.masks.has(self.task(task).cpus, cpu) && is_asked
    }

    /// Whether a task has waited for long where any CPU may get it, while one of `free` could run
    /// it. One that waits at a CPU that is busy is another matter: that is balance.
    fn is_kept_from(&self, id: TaskId, free: &[CpuId], now: SimTime) -> bool {
        let task = self.task(id);
        let is_local = task.dsq.is_some_and(|dsq| self.dsqs.owner(dsq).is_some());
        // The CPU is not its scheduler's, which so cannot give it.
        let is_parked = task.dsq.is_some_and(|dsq| self.subs.parked.contains(&dsq));
        task.class == Class::Ext
            && !is_local
            && !is_parked
            && now.since(task.phase_since.min(now)) >= LONG
            && free.iter().any(|&cpu| self.masks.has(task.cpus, cpu))
    }

    /// Says at the end of a run what was seen.
    pub(crate) fn note_idle_cpus(&mut self) {
        self.look_at_idle_cpus(self.now);
        let words = |wasted: &Wasted, why: &str| {
            let (task, since) = wasted.first?;
            let ms = wasted.time.get() / 1_000_000;
            Some(format!(
                "CPUs idled for {}.{:03} s in all while tasks that may run there had waited for \
                 {} ms and longer, first {} from {since} s on: {why}",
                ms / 1000,
                ms % 1000,
                LONG.get() / 1_000_000,
                self.name(task),
            ))
        };
        let unasked = words(
            &self.idleness.unasked,
            "no such CPU was asked for work meanwhile. Unless the policy parts its CPUs or saves \
             power, it must call scx_bpf_kick_cpu() for a CPU that idles, and its ops.dispatch() \
             must find the task there",
        );
        let declined = words(
            &self.idleness.declined,
            "ops.dispatch() was called there and took none of them, as in a policy that parts its \
             CPUs, saves power or throttles tasks",
        );
        for note in unasked.into_iter().chain(declined) {
            self.note(note);
        }
    }

    /// The run lasts too long.
    #[cold]
    fn give_up_for_time(&mut self) {
        let mut tasks = (0..self.tasks.len() as u32).map(TaskId);
        let lives = tasks.find(|&id| self.task(id).state != RunState::Dead);
        let place = lives.map_or_else(|| self.workload.file.clone(), |id| self.work.place_of(id));
        self.give_up(WorkError::TooLong {
            place,
            years: MOST_YEARS,
        });
    }
}
