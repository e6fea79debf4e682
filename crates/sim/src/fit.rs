//! Whether a task would have had a better place: for results only.
//!
//! Looked at are the places at which tasks execute while other CPUs idle: too small a CPU while a
//! bigger one idles, a big one while one idles that would do, and half of a core while a whole one
//! does. It is looked at again whenever a CPU begins or stops to execute, and a task whether it has
//! become too much for a CPU once in a millisecond of its work.

use model::{CpuId, TaskId};

use crate::machine::Machine;
use crate::mask::Mask;
use crate::speeds::Load;
use crate::speeds::fit::{Better, Fit};
use crate::speeds::util::{PERIOD_NS, Util};

/// `capacity_greater()`, kernel/sched/fair.c, kernel 6.18.
fn is_bigger(capacity: u16, than: u16) -> bool {
    u32::from(capacity) * 1024 > u32::from(than) * 1078
}

/// How long of `span` nanoseconds of execution, which do `base` of 2^20 parts of that in work, the
/// task was too much for a CPU of `capacity`.
fn too_much(util: &mut Util, span: u64, base: u64, capacity: u16) -> u64 {
    let worked = |span: u64| ((u128::from(span) * u128::from(base)) >> 20) as u64;
    let period = (u128::from(PERIOD_NS) << 20) / u128::from(base.max(1));
    let mut left = span;
    while left > 0 && !util.exceeds(capacity) {
        let step = u64::try_from(period).map_or(left, |period| left.min(period.max(1)));
        util.pass(worked(step), true);
        left -= step;
    }
    util.pass(worked(left), true);
    left
}

impl Machine {
    /// `id` begins to execute on `cpu`.
    pub(crate) fn begin_fit(&mut self, cpu: CpuId, id: TaskId) {
        let now = self.now.as_nanos();
        let Some(speeds) = self.speeds.as_deref().filter(|it| it.judges_places) else {
            return;
        };
        let better = if speeds.has_idle() {
            self.better(cpu, id)
        } else {
            Better::default()
        };
        let pace = self.tasks[id.index()].seldom.pace.get_or_insert_default();
        let slept = now - std::mem::replace(&mut pace.util_at, now).min(now);
        pace.util.pass(slept, false);
        if let Some(speeds) = self.speeds.as_deref_mut() {
            speeds.cpus[cpu].fit = Fit { since: now, better };
        }
    }

    /// Books what `id`, which has executed on `cpu` up to now, could have had instead.
    pub(crate) fn book_fit(&mut self, cpu: CpuId, id: TaskId) {
        let now = self.now.as_nanos();
        let Some(speeds) = self.speeds.as_deref_mut().filter(|it| it.judges_places) else {
            return;
        };
        let (capacity, least) = (speeds.hardware.class(cpu.0).capacity, speeds.least);
        let speed = &mut speeds.cpus[cpu];
        let Fit { since, better } = speed.fit;
        speed.fit.since = now;
        let span = now - since;
        let pace = self.tasks[id.index()].seldom.pace.get_or_insert_default();
        pace.util_at = now;
        let mut seen = pace.util;
        let over = too_much(&mut pace.util, span, speed.base, capacity);
        let misplaced = if better.smallest {
            span - too_much(&mut seen, span, speed.base, least)
        } else {
            0
        };
        let misfit = if better.bigger { over } else { 0 };
        let halved = if better.core { span } else { 0 };
        for used in [&mut pace.used, &mut speed.used] {
            used.misfit_ns += misfit;
            used.halved_ns += halved;
            used.misplaced_ns += misplaced;
        }
    }

    /// A CPU begins or stops to execute: others may have a better place now, or none any more.
    pub(crate) fn look_for_places(&mut self) {
        let Some(speeds) = self.speeds.as_deref().filter(|it| it.judges_places) else {
            return;
        };
        let has_idle = speeds.has_idle();
        for cpu in (0..self.spec.cpus).map(CpuId) {
            let state = &self.cpus[cpu];
            let (Some(id), Some(_)) = (state.occupant.task(), state.executing_since) else {
                continue;
            };
            let better = if has_idle {
                self.better(cpu, id)
            } else {
                Better::default()
            };
            let was = self.speeds.as_deref().map(|it| it.cpus[cpu].fit.better);
            if was != Some(better) {
                self.book_fit(cpu, id);
                if let Some(speeds) = self.speeds.as_deref_mut() {
                    speeds.cpus[cpu].fit.better = better;
                }
            }
        }
    }

    /// The better places for `id` than `cpu`, of those that idle.
    fn better(&self, cpu: CpuId, id: TaskId) -> Better {
        let Some(speeds) = self.speeds.as_deref() else {
            return Better::default();
        };
        let topology = self.idle.topology();
        let idles = |cpu: CpuId| speeds.cpus[cpu].load == Load::Idle;
        let allowed: &Mask = self.masks.get(self.task(id).cpus);
        let capacity = |cpu: CpuId| speeds.hardware.class(cpu.0).capacity;
        let own = capacity(cpu);
        let free = || {
            allowed
                .iter()
                .filter(|at| idles(*at) && topology.is_online(*at))
        };
        let is_halved = topology
            .core(cpu)
            .any(|other| other != cpu && !idles(other));
        let bigger = own < speeds.most && free().any(|at| is_bigger(capacity(at), own));
        let smallest = own > speeds.least && free().any(|at| capacity(at) == speeds.least);
        let core = is_halved && free().any(|at| topology.core(at).all(idles));
        Better {
            bigger,
            smallest,
            core,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_grows_too_big_for_a_small_cpu_after_a_while() {
        let mut util = Util::default();
        let ms = 1_000_000;
        // Four fifths of 160 are reached at 7.3 ms of work; a CPU of 160 needs 47 ms for that.
        let over = too_much(&mut util, 100 * ms, 160 * 1024, 160);
        assert!((52 * ms..54 * ms).contains(&over), "{over}");
        assert_eq!(too_much(&mut util, 10 * ms, 160 * 1024, 160), 10 * ms);
        assert_eq!(too_much(&mut Util::default(), 5 * ms, 1, 1024), 0);
    }

    #[test]
    fn a_bigger_cpu_has_a_twentieth_more() {
        assert!(is_bigger(1024, 498) && is_bigger(1024, 972));
        assert!(!is_bigger(1024, 973) && !is_bigger(160, 160));
    }
}
