//! The counters of version 4 from what a policy and a machine count today.
//!
//! Source: the patch "schedstat-2.6.0-test5-A1" (2003) for the increment points, and "The Cursor
//! Wiggles Faster" (2004), Appendix A, for the order.

use super::layout::Layout;

/// Jiffies a second of version 4: i386 with Linux 2.6. One is a millisecond.
pub const HZ: u32 = 1_000;

/// How run times and waits are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bookkeeping {
    /// As the patch of 2003 counts: in whole jiffies; a task that was preempted stays in its list,
    /// so that its wait is not counted, and neither is the first wait of a forked child.
    V4,
    /// Every nanosecond in which a task was runnable and did not run, printed in jiffies.
    Full,
}

/// Counters of one CPU that do not depend on the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineCounts {
    /// Calls of `sched_yield()`.
    pub yields: u64,
    /// Calls of `schedule()` that ended with a task.
    pub picks: u64,
    /// Calls of `schedule()`.
    pub schedules: u64,
    /// Milliseconds of the clock that found the CPU idle.
    pub idle_jiffies: u64,
    /// Jiffies that tasks ran.
    pub cpu_time: u64,
    /// Jiffies that tasks waited that then ran here.
    pub run_delay: u64,
    /// How often a task was given the CPU.
    pub pcnt: u64,
}

/// The 23 counters of a CPU's line, in their order.
///
/// `policy` gives what the policy has counted on this CPU under a name of report.bpf.h; `None` if
/// it has no such counter, which then is 0. `cpus` is the number of CPUs of the machine.
///
/// The kernels of the time looked for work on an idle CPU every millisecond. A policy need not
/// do that to the same effect, so those calls that would have found nothing are added: one for
/// each millisecond that found the CPU idle, on a machine with several CPUs whose policy has a
/// balancer.
pub fn version_4(
    machine: &MachineCounts,
    policy: impl Fn(&str) -> Option<u64>,
    cpus: usize,
) -> Vec<u64> {
    let count = |name| policy(name).unwrap_or(0);
    let [looked, busy, resched, node] = ["lb_idle", "lb_busy", "lb_resched", "lb_node"].map(count);
    let found = (looked + busy + resched + node).saturating_sub(count("lb_not_found"));
    let balances = cpus > 1 && policy("lb_busy").is_some();
    let idle = if balances {
        looked.max(machine.idle_jiffies)
    } else {
        looked
    };
    let calls = idle + busy + resched + node;
    let Some(layout) = Layout::of(4) else {
        unreachable!("version 4 has a table");
    };
    let value = |name| match name {
        "yld_both_empty" => count("yields_both_empty"),
        "yld_act_empty" => count("yields_active_empty"),
        "yld_exp_empty" => count("yields_expired_empty"),
        "yld_cnt" => machine.yields,
        "sched_noswitch" => machine.picks,
        "sched_switch" => count("array_switches"),
        "sched_cnt" => machine.schedules,
        "lb_idle" => idle,
        "lb_busy" => busy,
        "lb_resched" => resched,
        "lb_cnt" => calls,
        "lb_imbalance" => count("lb_imbalance"),
        "lb_nobusy" => calls.saturating_sub(found),
        "pt_gained" => count("pulled"),
        "pt_lost" => count("pulled_from"),
        "cpu_time" => machine.cpu_time,
        "run_delay" => machine.run_delay,
        "pcnt" => machine.pcnt,
        "lb_bnode" => node,
        "pt_node_gained" => count("pulled_node"),
        "pt_node_lost" => count("pulled_node_from"),
        "bn_cnt" => count("node_looks"),
        "bn_idle" => count("node_looks_idle"),
        _ => 0,
    };
    layout.cpu.iter().map(|field| value(field.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(counters: &[u64], name: &str) -> u64 {
        counters[Layout::of(4).unwrap().cpu_index(name).unwrap()]
    }

    fn balancer(name: &str) -> Option<u64> {
        let counts = [
            ("lb_idle", 3),
            ("lb_busy", 2),
            ("lb_resched", 5),
            ("lb_not_found", 4),
            ("lb_imbalance", 9),
            ("pulled", 6),
            ("pulled_from", 1),
            ("lb_node", 7),
            ("pulled_node", 8),
            ("pulled_node_from", 10),
            ("node_looks", 11),
            ("node_looks_idle", 12),
        ];
        let found = counts.iter().find(|(known, _)| *known == name)?;
        Some(found.1)
    }

    #[test]
    fn looks_of_an_idle_cpu_are_one_a_millisecond() {
        let machine = MachineCounts {
            idle_jiffies: 100,
            ..MachineCounts::default()
        };
        let counters = version_4(&machine, balancer, 2);
        let fields = ["lb_idle", "lb_busy", "lb_resched", "lb_cnt", "lb_nobusy"];
        // 13 calls found somebody, whatever is added.
        assert_eq!(
            fields.map(|name| at(&counters, name)),
            [100, 2, 5, 114, 101]
        );
        assert_eq!(
            (at(&counters, "pt_gained"), at(&counters, "pt_lost")),
            (6, 1)
        );
        assert_eq!(counters.len(), 23);
        // Fields 14 and 17 to 20, of a policy that balances between nodes.
        assert_eq!((counters[13], &counters[16..20]), (7, &[8, 10, 11, 12][..]));
    }

    #[test]
    fn one_cpu_has_nobody_to_look_at_and_a_policy_without_a_balancer_does_not_look() {
        let machine = MachineCounts {
            idle_jiffies: 100,
            ..MachineCounts::default()
        };
        assert_eq!(at(&version_4(&machine, balancer, 1), "lb_idle"), 3);
        assert_eq!(at(&version_4(&machine, |_| None, 8), "lb_cnt"), 0);
    }
}
