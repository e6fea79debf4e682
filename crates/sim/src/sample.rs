//! Shows the counters of a run while it goes on.

use model::{Nanos, Sample, Sampler, SimTime};

use crate::machine::{Machine, Vm};

/// Somebody who is shown the counters every so often, at time zero and at the end.
pub(crate) struct Samples<'a> {
    pub sampler: &'a mut dyn Sampler,
    every: Nanos,
    /// When the next sample is due; `None` when time itself ends before it.
    next: Option<SimTime>,
    last: Option<SimTime>,
}

impl<'a> Samples<'a> {
    /// # Panics
    /// If `every` is no time at all.
    pub fn new(sampler: &'a mut dyn Sampler, every: Nanos) -> Self {
        assert!(!every.is_zero(), "samples need time between them");
        Self {
            sampler,
            every,
            next: Some(SimTime::ZERO),
            last: None,
        }
    }

    /// The moment of a sample that is due before anything happens at `now`, which is over with
    /// that; [`Samples::take`] must follow.
    pub fn take_due(&mut self, now: SimTime) -> Option<SimTime> {
        let due = self.next.filter(|&due| due <= now)?;
        let next = due.as_nanos().checked_add(self.every.get());
        self.next = next.map(SimTime::from_nanos);
        Some(due)
    }

    /// Whether the last sample is of that moment.
    pub fn has(&self, time: SimTime) -> bool {
        self.last == Some(time)
    }

    /// Shows the counters at `time`. The sampler must have been given all events before it.
    pub fn take(&mut self, machine: &Machine, vm: &mut Vm, time: SimTime) {
        self.sampler.sample(&Sample {
            time,
            cpus: machine.cpus.iter().map(|cpu| cpu.counts).collect(),
            policy: policy_counters(vm, machine.cpus.iter().len() as u32),
        });
        self.last = Some(time);
    }
}

/// Reads the counters that the policy keeps (policies/include/report.bpf.h), one value a CPU: a
/// per-CPU array of them, and their names in a table of 32 bytes each.
pub(crate) fn policy_counters(vm: &mut Vm, cpus: u32) -> Vec<(String, Vec<u64>)> {
    const NAME_LEN: u64 = 32;
    let Some(map) = vm.map_by_kept_name("runslice_counters") else {
        return Vec::new();
    };
    let Some((names, size)) = vm.symbol_address("runslice_counter_names") else {
        return Vec::new();
    };
    let counter = |vm: &Vm, index: u32, cpu| {
        let value = vm.map_value(map, &index.to_le_bytes(), cpu)?;
        Some(u64::from_le_bytes(*value.first_chunk()?))
    };
    (0..size / NAME_LEN as u32)
        .filter_map(|index| {
            let at = names + u64::from(index) * NAME_LEN;
            let bytes = vm.memory().bytes(at, NAME_LEN)?;
            let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            let values = (0..cpus).map(|cpu| counter(vm, index, cpu));
            Some((name, values.collect::<Option<_>>()?))
        })
        .collect()
}
