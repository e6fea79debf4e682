//! The watchdog: finds tasks that wait too long.

use model::{ExitKind, Nanos, SimTime, Starved, TaskId};

use crate::flags::{SLICE_DFL, UPTIME_S};
use crate::machine::Machine;
use crate::pending::Pending;
use crate::task::{NOWHERE, Task};

/// `INITIAL_JIFFIES` is five minutes before the counter's low half wraps (include/linux/jiffies.h,
/// kernel 6.18).
fn initial_jiffies(hz: u32) -> u64 {
    u64::from(300_u32.wrapping_mul(hz).wrapping_neg())
}

/// The tasks that are runnable and do not run, in no order: to come and to go costs the same
/// however many wait, and only a look, of which there are two in a timeout, passes over all.
#[derive(Clone)]
pub(crate) struct Watchdog {
    /// A task of this list knows its place in it.
    waiting: Vec<TaskId>,
    tick: Nanos,
    /// `jiffies_64` when the run begins.
    jiffies_before: u64,
    /// The jiffy in which a wait began last, and when the next one begins.
    jiffy: u64,
    next_jiffy: SimTime,
    /// It sees everything and does nothing: a machine of the time before it.
    off: bool,
}

impl Watchdog {
    /// `tick`: a jiffy, of which a second has `hz`.
    pub fn new(tick: Nanos, hz: u32, off: bool) -> Self {
        Self {
            waiting: Vec::new(),
            tick,
            jiffies_before: initial_jiffies(hz) + UPTIME_S * u64::from(hz),
            jiffy: 0,
            next_jiffy: SimTime::ZERO,
            off,
        }
    }

    /// `jiffies_64`.
    #[inline]
    pub const fn jiffies(&self, now: SimTime) -> u64 {
        self.jiffies_before + now.as_nanos() / self.tick.get()
    }

    /// From one tick to the next.
    #[inline]
    pub const fn tick(&self) -> Nanos {
        self.tick
    }

    /// Whether any task waits.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The tasks that wait, in no order.
    pub fn waiting(&self) -> &[TaskId] {
        &self.waiting
    }

    /// See [`Machine::watch`].
    #[inline(always)]
    pub fn watch(&mut self, task: &mut Task, id: TaskId, now: SimTime) {
        if std::mem::take(&mut task.reset_runnable_at) {
            if now >= self.next_jiffy {
                self.look_at_clock(now);
            }
            task.runnable_at = self.jiffy;
        }
        self.add(task, id);
    }

    /// Finds the jiffy of `now` anew. Apart, because a division takes as long as twenty other
    /// instructions, and a jiffy has many waits.
    #[inline(never)]
    fn look_at_clock(&mut self, now: SimTime) {
        self.jiffy = self.jiffies(now);
        let begun = now.as_nanos() / self.tick.get() * self.tick.get();
        self.next_jiffy = SimTime::from_nanos(begun) + self.tick;
    }

    #[inline]
    fn add(&mut self, task: &mut Task, id: TaskId) {
        if task.watch_place == NOWHERE {
            task.watch_place = self.waiting.len() as u32;
            self.waiting.push(id);
        }
    }

    /// Takes out the task that stood at `place`, if any did.
    #[inline]
    pub fn forget(&mut self, tasks: &mut [Task], place: u32) {
        if place != NOWHERE {
            self.waiting.swap_remove(place as usize);
            if let Some(moved) = self.waiting.get(place as usize) {
                tasks[moved.index()].watch_place = place;
            }
        }
    }
}

impl Machine {
    /// `task` begins to wait. A wait that was interrupted by a property change goes on.
    ///
    /// Source: `set_task_runnable()`, kernel 6.18.
    #[inline]
    pub(crate) fn watch(&mut self, id: TaskId) {
        self.watchdog
            .watch(&mut self.tasks[id.index()], id, self.now);
    }

    /// Looks for a stalled task, and arms the next look.
    ///
    /// Source: `check_rq_for_timeouts()` and `scx_watchdog_workfn()`, kernel 6.18.
    pub(crate) fn check_stalls(&mut self) {
        let tick = self.watchdog.tick.get();
        let now = self.jiffies();
        // The kernel finds the lowest CPU first, and on it the task that waits longest.
        let waiting = self.watchdog.waiting.iter().map(|&id| {
            let task = self.task(id);
            (task.cpu, task.runnable_at, id)
        });
        let limit = |id| {
            let timeout_ms = self.scheduler_of(id).ops.timeout_ms();
            now.saturating_sub((timeout_ms * 1_000_000).div_ceil(tick))
        };
        let stalled = waiting.filter(|&(_, since, id)| since < limit(id)).min();
        if let Some((_, since, task)) = stalled.filter(|_| !self.watchdog.off) {
            let ms = (now - since) * tick / 1_000_000;
            let name = self.name(task);
            let message = format!("{name} failed to run for {}.{:03}s", ms / 1000, ms % 1000);
            self.eject(self.owner(task), ExitKind::ErrorStall, 0, message);
            if self.is_halted() {
                return;
            }
        }
        self.arm_watchdog();
    }

    /// The tasks that wait now and have waited for long, the longest wait first: for a second, for
    /// half of the time that the policy has been attached (since `attached`), and for two turns of
    /// all that wait, each of the default slice, on all CPUs. None if the watchdog is off.
    ///
    /// A run shorter than the watchdog's timeout would hide them. The turns are counted so that a
    /// thousand hogs, each of which waits for its turn, are not named.
    fn starved(&self, attached: SimTime) -> Vec<Starved> {
        const LEAST: u64 = 1_000_000_000;
        let waiting = &self.watchdog.waiting;
        if self.watchdog.off || waiting.is_empty() {
            return Vec::new();
        }
        let turns = 2 * SLICE_DFL * waiting.len() as u64 / u64::from(self.spec.cpus);
        let half = self.now.since(attached.min(self.now)).get() / 2;
        let limit = LEAST.max(half).max(turns);
        let (now, tick) = (self.jiffies(), self.watchdog.tick.get());
        let waits = waiting.iter().map(|&task| Starved {
            task,
            name: self.name(task),
            waited: Nanos::new((now - self.task(task).runnable_at) * tick),
        });
        let mut starved: Vec<_> = waits.filter(|wait| wait.waited.get() >= limit).collect();
        starved.sort_by_key(|wait| (std::cmp::Reverse(wait.waited), wait.task));
        starved
    }

    /// How long a task may wait; `None` without a watchdog.
    pub(crate) fn watchdog_timeout(&self) -> Option<Nanos> {
        (!self.watchdog.off).then(|| Nanos::from_millis(self.scheds.root.ops.timeout_ms()))
    }

    /// Those tasks at the end of a run that the policy has survived.
    pub(crate) fn starved_at_end(&self) -> Vec<Starved> {
        let attachment = &self.scheds.root.attachment;
        if attachment.has_ended() || !attachment.is_attached() {
            return Vec::new();
        }
        self.starved(attachment.since())
    }

    /// Arms the next look: half the shortest timeout from now.
    pub(crate) fn arm_watchdog(&mut self) {
        let live = self.scheds.iter();
        let live = live.filter(|sched| !sched.attachment.has_ended());
        let timeouts = live.map(|sched| sched.ops.timeout_ms());
        let shortest = timeouts
            .min()
            .unwrap_or(crate::flags::WATCHDOG_MAX_TIMEOUT_MS);
        let after = Nanos::from_millis(shortest.div_ceil(2));
        self.queue
            .push(self.now + after, self.turn.exec, Pending::Watchdog);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_begins_in_the_jiffy_of_its_moment() {
        let mut watchdog = Watchdog::new(Nanos::from_millis(4), 250, false);
        let moments = [
            0,
            1,
            3_999_999,
            4_000_000,
            4_000_001,
            99_999_999,
            100_000_000,
        ];
        for now in moments.map(SimTime::from_nanos) {
            let mut task = Task::new(String::new(), 1, model::CpuId(0), now);
            watchdog.watch(&mut task, TaskId(0), now);
            assert_eq!(task.runnable_at, watchdog.jiffies(now), "at {now}");
        }
    }

    #[test]
    fn who_has_come_is_there_until_it_goes() {
        let mut rng = model::Rng::new(1, 0);
        let mut watchdog = Watchdog::new(Nanos::from_millis(4), 250, false);
        let task = || Task::new(String::new(), 1, model::CpuId(0), SimTime::ZERO);
        let mut tasks: Vec<_> = (0..30).map(|_| task()).collect();
        let mut there = [false; 30];
        for _ in 0..2_000 {
            let task = rng.below(30) as u32;
            let comes = rng.below(2) == 0;
            if comes {
                watchdog.add(&mut tasks[task as usize], TaskId(task));
            } else {
                let place = tasks[task as usize].stop_waiting();
                watchdog.forget(&mut tasks, place);
            }
            there[task as usize] = comes;
            let mut waiting: Vec<_> = watchdog.waiting.iter().map(|id| id.0).collect();
            waiting.sort_unstable();
            let wanted = (0..30).filter(|&task| there[task as usize]);
            assert_eq!(waiting, wanted.collect::<Vec<_>>());
        }
    }
}
