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
    /// From 7.1 on.
    ReenqImmed,
    /// `REENQ_LOCAL_REPEAT`, since 7.3 `REENQ_REPEAT`.
    ReenqRepeat,
    SliceDenied,
    InsertNotOwned,
    SubForcedAdmit,
    SubPreemptDenied,
    SubKickDenied,
    SubReenqDenied,
    SubCidperfDenied,
    SubRescue,
}

impl Counter {
    /// What a kernel calls `name` in `struct scx_event_stats`; nothing where what it counts is not
    /// modelled.
    fn of(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("SCX_EV_")? {
            "SELECT_CPU_FALLBACK" => Self::SelectCpuFallback,
            "DISPATCH_LOCAL_DSQ_OFFLINE" => Self::DispatchLocalDsqOffline,
            "DISPATCH_KEEP_LAST" => Self::DispatchKeepLast,
            "ENQ_SKIP_EXITING" => Self::EnqSkipExiting,
            "ENQ_SKIP_MIGRATION_DISABLED" => Self::EnqSkipMigrationDisabled,
            "REFILL_SLICE_DFL" => Self::RefillSliceDfl,
            "BYPASS_DISPATCH" => Self::BypassDispatch,
            "BYPASS_ACTIVATE" => Self::BypassActivate,
            "REENQ_IMMED" => Self::ReenqImmed,
            "REENQ_LOCAL_REPEAT" | "REENQ_REPEAT" => Self::ReenqRepeat,
            "SLICE_DENIED" => Self::SliceDenied,
            "INSERT_NOT_OWNED" => Self::InsertNotOwned,
            "SUB_FORCED_ADMIT" => Self::SubForcedAdmit,
            "SUB_PREEMPT_DENIED" => Self::SubPreemptDenied,
            "SUB_KICK_DENIED" => Self::SubKickDenied,
            "SUB_REENQ_DENIED" => Self::SubReenqDenied,
            "SUB_CIDPERF_DENIED" => Self::SubCidperfDenied,
            "SUB_RESCUE" => Self::SubRescue,
            _ => return None,
        })
    }
}

/// How often each was counted. They only grow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters([u64; Counter::SubRescue as usize + 1]);

impl Counters {
    /// Counts one more.
    #[inline]
    pub fn count(&mut self, counter: Counter) {
        self.0[counter as usize] += 1;
    }

    /// Names and values, in the order of the kernel's structure.
    pub fn named(&self, rules: &KernelRules) -> Vec<(&'static str, u64)> {
        let value = |name| Counter::of(name).map_or(0, |at| self.0[at as usize]);
        let names = rules.counters.iter();
        names.map(|&name| (name, value(name))).collect()
    }
}
