//! What is drawn below the rows of CPUs, collected from events.

use std::collections::BTreeMap;

use model::{CpuId, Header, MachineSpec};

use super::bins::{Bins, COLUMNS, Merge};

/// Cores that are drawn.
const CORES_MAX: usize = 64;
/// Changes of frequencies that are kept, over all clocks.
const CHANGES_MAX: usize = 400_000;

/// Nanoseconds of a piece of time in which both threads of a core had a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Both(pub u64);

impl Merge for Both {
    fn merge(&mut self, later: Self) {
        self.0 += later.0;
    }
}

/// A core with two threads.
#[derive(Clone, Debug)]
pub(super) struct SharedCore {
    pub threads: [usize; 2],
    busy: [bool; 2],
    since: u64,
    pub both: Bins<Both>,
}

/// What is drawn of CPUs that differ; nothing of other machines.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracks {
    pub cores: Vec<SharedCore>,
    /// When a clock got which frequency in kHz, by its first CPU.
    pub clocks: BTreeMap<u16, Vec<(u64, u32)>>,
    changes: usize,
}

impl Tracks {
    /// Tracks of a run, `length` nanoseconds from `origin` on.
    pub fn new(header: &Header, origin: u64, length: Option<u64>) -> Self {
        let has_hardware = header.machine.hardware.is_some();
        let core = |cpus: &[CpuId]| {
            let [first, second] = *cpus else { return None };
            Some(SharedCore {
                threads: [first.index(), second.index()],
                busy: [false; 2],
                since: 0,
                both: Bins::new(COLUMNS, origin, length),
            })
        };
        let places = MachineSpec::places(&header.machine);
        let cores = places.cores.iter().filter(|_| has_hardware);
        Self {
            cores: cores
                .filter_map(|cpus| core(cpus))
                .take(CORES_MAX)
                .collect(),
            ..Self::default()
        }
    }

    /// A CPU has a task from `now` on, or has none; time is drawn as `shown` says.
    pub fn switched(
        &mut self,
        cpu: usize,
        now: u64,
        is_busy: bool,
        shown: impl Fn(u64, u64) -> (u64, u64),
    ) {
        for core in &mut self.cores {
            let Some(at) = core.threads.iter().position(|it| *it == cpu) else {
                continue;
            };
            if core.busy == [true; 2] {
                let (from, to) = shown(core.since, now);
                core.both.spread(from, to, |both, ns| both.0 += ns);
            }
            core.busy[at] = is_busy;
            core.since = now;
        }
    }

    /// The clock whose first CPU is `cpu` has this frequency from `now` on.
    pub fn clocked(&mut self, cpu: u16, now: u64, khz: u64) {
        if self.changes < CHANGES_MAX {
            self.changes += 1;
            let khz = u32::try_from(khz).unwrap_or(u32::MAX);
            self.clocks.entry(cpu).or_default().push((now, khz));
        }
    }

    /// CPUs stop at `now`.
    pub fn finish(&mut self, now: u64, shown: impl Fn(u64, u64) -> (u64, u64)) {
        let first = |core: &SharedCore| core.threads;
        let all: Vec<usize> = self.cores.iter().flat_map(first).collect();
        all.into_iter()
            .for_each(|cpu| self.switched(cpu, now, false, &shown));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_core_is_shared_while_both_of_its_threads_have_a_task() {
        let mut tracks = Tracks {
            cores: vec![SharedCore {
                threads: [0, 4],
                busy: [false; 2],
                since: 0,
                both: Bins::new(COLUMNS, 0, Some(10 * MS)),
            }],
            ..Tracks::default()
        };
        let all = |from, to| (from, to);
        tracks.switched(0, MS, true, all);
        tracks.switched(4, 3 * MS, true, all);
        tracks.switched(1, 4 * MS, false, all);
        tracks.switched(0, 5 * MS, false, all);
        tracks.finish(10 * MS, all);
        let both: u64 = tracks.cores[0].both.values().iter().map(|it| it.0).sum();
        assert_eq!(both, 2 * MS);
    }
}
