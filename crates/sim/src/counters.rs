//! The kernel's event counters.

use crate::kernels::KernelRules;

/// What is counted (`struct scx_event_stats`, kernel 6.18), without `SCX_EV_`. Bypassing takes no
/// time here, so that its duration is not counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counter {
    SelectCpuFallback,
    DispatchLocalDsqOffline,
    DispatchKeepLast,
    EnqSkipExiting,
    EnqSkipMigrationDisabled,
    RefillSliceDfl,
    BypassDispatch,
    BypassActivate,
}

/// How often each was counted. They only grow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters([u64; Counter::BypassActivate as usize + 1]);

impl Counters {
    /// Counts one more.
    #[inline]
    pub fn count(&mut self, counter: Counter) {
        self.0[counter as usize] += 1;
    }

    /// Names and values, in the order of the kernel's structure.
    pub fn named(&self, rules: &KernelRules) -> Vec<(&'static str, u64)> {
        let value = |counter: Option<Counter>| counter.map_or(0, |at| self.0[at as usize]);
        let counters = rules.counters.iter();
        counters
            .map(|&(name, counter)| (name, value(counter)))
            .collect()
    }
}
