//! Functions that native code has built in, and the interpreter some of them.

/// A function that a back end may have built in. It does and counts what the body does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intrinsic {
    Lookup,
    Clock,
    Cpu,
    IterNew,
    IterNext,
    IterDestroy,
    RcuLock,
    RcuUnlock,
    PreemptDisable,
    PreemptEnable,
}

impl Intrinsic {
    /// By the name of a function of this machine's own.
    pub(crate) fn of_builtin(name: &str) -> Option<Self> {
        Some(match name {
            "bpf_map_lookup_elem" => Self::Lookup,
            "bpf_ktime_get_ns" | "bpf_ktime_get_boot_ns" | "bpf_ktime_get_coarse_ns" => Self::Clock,
            "bpf_get_smp_processor_id" => Self::Cpu,
            "bpf_iter_num_new" => Self::IterNew,
            "bpf_iter_num_next" => Self::IterNext,
            "bpf_iter_num_destroy" => Self::IterDestroy,
            "bpf_rcu_read_lock" => Self::RcuLock,
            "bpf_rcu_read_unlock" => Self::RcuUnlock,
            "bpf_preempt_disable" => Self::PreemptDisable,
            "bpf_preempt_enable" => Self::PreemptEnable,
            _ => return None,
        })
    }
}
