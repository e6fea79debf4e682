//! Of two tasks that always want a CPU the one of more weight gets no less of it.

use model::{MachineSpec, Nanos, SimTime, TaskId};

use super::OVERLONG;
use super::finding::{Fault, Finding};
use super::judge::Judge;
use super::state::Task;
use super::turn::{LEAST_ROUND, SLICE_DFL};
use super::verdict::{Right, Share, Tier, Verdict};

/// How much more CPU time the lighter of two tasks has, as a part of the heavier one's, before
/// that is called unfair: an eighth, which slices cannot explain.
const UNFAIR: u64 = 8;
/// Who always wants a CPU sleeps for less than this part of the run, and of the time that its work
/// would take if it never waited. It is half of [`UNFAIR`], so that sleep explains no difference.
const ASLEEP: u64 = 16;

impl Task {
    /// Whether it wanted a CPU all the time until `now`, and was the same task all that time. One
    /// that sleeps cannot use all that its weight gives it, and each wakeup may cost it a wait.
    fn always_wants(&self, now: SimTime) -> bool {
        let Some(began) = self.began.filter(|_| self.is_managed && !self.is_changed) else {
            return false;
        };
        let asleep = self.asleep_until(now).get();
        let absent = began.since(SimTime::ZERO).get().saturating_add(asleep);
        let alone = self.run_until(now).get().saturating_add(asleep);
        absent <= now.since(SimTime::ZERO).get() / ASLEEP && asleep <= alone / ASLEEP
    }

    /// What one turn may give it, in nanoseconds: whoever has had one more than another in a long
    /// round has nothing that is not its due. At least what any round may.
    fn turn(&self) -> u64 {
        let slice = self.slice.map_or(0, |(slice, _)| slice.min(OVERLONG));
        slice.max(LEAST_ROUND.get())
    }

    /// How much more than `has` it may have without being preferred, in nanoseconds. A slice ends
    /// at a tick: who always begins between two of them has up to a tick more in each turn.
    fn more_than(&self, has: u64, tick: Nanos) -> u64 {
        let slice = self.slice.map_or(SLICE_DFL, |(slice, _)| slice.max(1));
        let tick = tick.get().min(slice);
        let overrun = u128::from(has) * u128::from(tick) / u128::from(slice);
        let of_ticks = overrun as u64 + slice.min(OVERLONG);
        (has / UNFAIR).max(self.turn()).max(of_ticks)
    }
}

impl Judge<'_> {
    /// A task of more weight that got less CPU time than one of less, both of which always wanted
    /// it, on the same CPUs and in the same cgroup.
    pub(super) fn unfairness(&self) -> Option<Finding> {
        if self.right.is_some_and(|right| right != Right::Weight) {
            return None;
        }
        let machine = self.state.machine();
        let tick = machine.map_or(Nanos::ZERO, MachineSpec::tick);
        let all = (0u32..).map(TaskId).zip(&self.state.tasks);
        let busy = all.filter(|(_, task)| task.always_wants(self.now));
        let busy: Vec<_> = busy
            .map(|(id, task)| (id, task, task.run_until(self.now).get()))
            .collect();
        let pairs = busy
            .iter()
            .flat_map(|heavy| busy.iter().map(move |light| (heavy, light)));
        let unfair = pairs.filter(|((_, heavy, has), (_, light, more))| {
            heavy.nice < light.nice
                && (heavy.mask, heavy.cgroup) == (light.mask, light.cgroup)
                && *more > has + light.more_than(*has, tick)
        });
        let (heavy, light) = unfair.max_by_key(|(heavy, light)| light.2 - heavy.2)?;
        let slice = heavy.1.slice.map(|(_, deed)| deed);
        let slice = slice.filter(|deed| !deed.is_kernels());
        let culprit = heavy.1.inserted.or(slice).or(self.state.any_insert);
        Some(Finding {
            fault: Fault::UnfairShare,
            verdict: Verdict {
                tier: Some(Tier::Share),
                share: Some(Share {
                    right: self.right,
                    lag: Nanos::new(light.2 - heavy.2),
                    lag_by_cgroup: None,
                    bound: Nanos::new(light.1.more_than(heavy.2, tick)),
                }),
                ..Verdict::default()
            },
            culprit: culprit.map(|deed| self.act(&deed)),
            ..self.finding(heavy.0)
        })
    }
}
