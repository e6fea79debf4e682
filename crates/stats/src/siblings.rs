//! Time in which both hardware threads of a core had a task.

use model::{CpuId, Header, Nanos, SimTime};

/// The cores of a machine whose threads do not slow each other down: how long both were busy, so
/// that somebody can be told what that hides.
#[derive(Debug)]
pub(crate) struct Siblings {
    /// By CPU, its core's number.
    core_of: Vec<u16>,
    cores: Vec<BusyCore>,
}

#[derive(Clone, Copy, Debug, Default)]
struct BusyCore {
    busy: u8,
    since: SimTime,
    both: Nanos,
}

impl BusyCore {
    fn settle(&mut self, now: SimTime) {
        if self.busy == 2 {
            // Of both of them.
            let span = now.since(self.since.min(now));
            self.both += span + span;
        }
        self.since = now;
    }
}

impl Siblings {
    /// `None` where no core has two threads, and where threads do slow each other down.
    pub fn of(header: &Header) -> Option<Box<Self>> {
        let machine = &header.machine;
        let is_modelled = machine.hardware.as_ref().is_some_and(|it| it.smt.is_some());
        let places = machine.places();
        if is_modelled || places.cores.iter().all(|core| core.len() < 2) {
            return None;
        }
        let of = |cpu| places.cores.of(CpuId(cpu));
        Some(Box::new(Self {
            core_of: (0..machine.cpus).map(of).collect(),
            cores: vec![BusyCore::default(); places.cores.count().into()],
        }))
    }

    /// `cpu` had a task if `had`, and has one from now on if `has`.
    pub fn switched(&mut self, cpu: CpuId, (had, has): (bool, bool), now: SimTime) {
        let Some(core) = self.core_of.get(cpu.index()) else {
            return;
        };
        let core = &mut self.cores[usize::from(*core)];
        core.settle(now);
        core.busy = core.busy + u8::from(has) - u8::from(had).min(core.busy);
    }

    /// CPU time in which the other thread was busy, too.
    pub fn both(&self, end: SimTime) -> Nanos {
        let sum = |mut core: BusyCore| {
            core.settle(end);
            core.both
        };
        self.cores.iter().map(|core| sum(*core)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_while_both_threads_have_a_task() {
        let mut siblings = Siblings {
            core_of: vec![0, 0],
            cores: vec![BusyCore::default()],
        };
        let at = |ns| SimTime::from_nanos(ns);
        siblings.switched(CpuId(0), (false, true), at(10));
        siblings.switched(CpuId(1), (false, true), at(30));
        siblings.switched(CpuId(1), (true, true), at(40));
        siblings.switched(CpuId(0), (true, false), at(50));
        siblings.switched(CpuId(0), (false, true), at(90));
        assert_eq!(siblings.both(at(100)), Nanos::new(2 * (20 + 10)));
    }
}
