//! The kernel's event counters.

use model::Kernel;

/// The kernel's event counters (`struct scx_event_stats`, kernel 6.18).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub select_cpu_fallback: u64,
    pub dispatch_local_dsq_offline: u64,
    pub dispatch_keep_last: u64,
    pub enq_skip_exiting: u64,
    pub enq_skip_migration_disabled: u64,
    pub refill_slice_dfl: u64,
    pub bypass_duration: u64,
    pub bypass_dispatch: u64,
    pub bypass_activate: u64,
}

impl Counters {
    /// Names and values, in the order of the kernel's structure.
    pub fn named(&self, kernel: Kernel) -> Vec<(&'static str, u64)> {
        let mut named = self.of_6_18();
        if kernel >= Kernel::V7_2 {
            // Nothing that they count is modelled.
            let after = |name| 1 + position(&named, name);
            let at = after("SCX_EV_ENQ_SKIP_MIGRATION_DISABLED");
            named.insert(at, ("SCX_EV_REENQ_IMMED", 0));
            named.insert(at + 1, ("SCX_EV_REENQ_LOCAL_REPEAT", 0));
            named.push(("SCX_EV_INSERT_NOT_OWNED", 0));
            named.push(("SCX_EV_SUB_BYPASS_DISPATCH", 0));
        }
        named
    }

    fn of_6_18(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("SCX_EV_SELECT_CPU_FALLBACK", self.select_cpu_fallback),
            (
                "SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE",
                self.dispatch_local_dsq_offline,
            ),
            ("SCX_EV_DISPATCH_KEEP_LAST", self.dispatch_keep_last),
            ("SCX_EV_ENQ_SKIP_EXITING", self.enq_skip_exiting),
            (
                "SCX_EV_ENQ_SKIP_MIGRATION_DISABLED",
                self.enq_skip_migration_disabled,
            ),
            ("SCX_EV_REFILL_SLICE_DFL", self.refill_slice_dfl),
            ("SCX_EV_BYPASS_DURATION", self.bypass_duration),
            ("SCX_EV_BYPASS_DISPATCH", self.bypass_dispatch),
            ("SCX_EV_BYPASS_ACTIVATE", self.bypass_activate),
        ]
    }
}

/// Where the counter `name` stands.
fn position(named: &[(&'static str, u64)], name: &str) -> usize {
    let found = named.iter().position(|(own, _)| *own == name);
    found.expect("a counter of every kernel")
}
