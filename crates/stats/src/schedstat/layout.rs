//! What each version of `/proc/schedstat` holds: one table a version.
//!
//! A counter that means the same in two versions has the same name in both, so that whoever reads
//! a name need not know the version.

use std::sync::LazyLock;

/// The versions that are read and written.
pub const VERSIONS: [u32; 12] = [3, 4, 5, 7, 9, 10, 11, 12, 14, 15, 16, 17];

/// One counter of a CPU or of a scheduling domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutField {
    /// Its name; the suffix `_idle`, `_busy` or `_newidle` is the CPU's state at the call.
    pub name: &'static str,
    /// What it counts.
    pub unit: FieldUnit,
}

/// Unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldUnit {
    /// Events.
    Count,
    /// Time, in the unit of [`Layout::time_unit`].
    Time,
    /// A sum of imbalances: tasks up to version 5, the balancer's load afterwards, and what the
    /// field's name says from version 17 on.
    Imbalance,
}

/// The unit of run times and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Ticks of the kernel's clock.
    Jiffies,
    /// Nanoseconds.
    Nanoseconds,
    /// Version 14: jiffies up to Linux 2.6.22 and nanoseconds from 2.6.23 on.
    Either,
}

/// One version's table.
#[derive(Debug)]
pub struct Layout {
    /// The number in the file's first line.
    pub version: u32,
    /// The counters of a `cpu` line, in their order.
    pub cpu: Vec<LayoutField>,
    /// The counters of a domain, in their order; empty when the version has no domains.
    pub domain: Vec<LayoutField>,
    /// Whether domains stand on the line of their CPU (version 7) or on lines of their own.
    pub domains_inline: bool,
    /// Whether a domain has a name before its mask (version 17).
    pub domain_names: bool,
    /// Whether a snapshot says when it was made. Version 3 does not.
    pub timestamp: bool,
    /// How many fields a line `totals` may have; the first is what is written. Empty: there is no
    /// such line.
    pub totals: &'static [usize],
    /// Whether that line must be there.
    pub totals_required: bool,
    /// The unit of run times and waits.
    pub time_unit: TimeUnit,
}

impl Layout {
    /// The table of `version`; `None` when there is none.
    #[must_use]
    pub fn of(version: u32) -> Option<&'static Self> {
        Self::all().iter().find(|layout| layout.version == version)
    }

    /// The table by which the `cpu` lines of a later version are read as those of version 17;
    /// `None` for versions that have a table of their own or are beyond 40. It has no domains.
    #[must_use]
    pub fn of_later(version: u32) -> Option<&'static Self> {
        const FIRST: u32 = 18;
        static LATER: LazyLock<Vec<Layout>> = LazyLock::new(|| {
            let later = (FIRST..=40).map(|version| Layout {
                version,
                domain: Vec::new(),
                ..layout(17)
            });
            later.collect()
        });
        LATER.get(version.checked_sub(FIRST)? as usize)
    }

    /// The tables of all versions, the oldest first. Never empty.
    #[must_use]
    pub fn all() -> &'static [Self] {
        static LAYOUTS: LazyLock<[Layout; VERSIONS.len()]> = LazyLock::new(|| VERSIONS.map(layout));
        &*LAYOUTS
    }

    /// Where the counter `name` stands on a `cpu` line, from 0.
    #[must_use]
    pub fn cpu_index(&self, name: &str) -> Option<usize> {
        self.cpu.iter().position(|field| field.name == name)
    }

    /// Where the counter `name` stands among those of a domain, from 0.
    #[must_use]
    pub fn domain_index(&self, name: &str) -> Option<usize> {
        self.domain.iter().position(|field| field.name == name)
    }
}

fn layout(version: u32) -> Layout {
    let totals: &[usize] = match version {
        // Its page says that a line is one of a CPU or `totals`.
        3 => &[21],
        // "The Cursor Wiggles Faster" prints 20 fields and takes the 21st to 23rd from this line
        // in its text; both are read.
        4 => &[20, 23],
        // The pages on version 5 leave open whether the line is there.
        5 => &[24, 21],
        _ => &[],
    };
    Layout {
        version,
        cpu: cpu_fields(version),
        domain: domain_fields(version),
        domains_inline: version == 7,
        domain_names: version >= 17,
        timestamp: version >= 4,
        totals,
        totals_required: version == 4,
        time_unit: match version {
            ..14 => TimeUnit::Jiffies,
            14 => TimeUnit::Either,
            _ => TimeUnit::Nanoseconds,
        },
    }
}

/// The counters of a CPU. 3: the author's page of the format, which has four numbers of
/// `schedule()`, the third of them new, seven of `load_balance()`, four of `pull_task()` and
/// two of `balance_node()`; the groups but the second are those of version 4. 4: patch for
/// 2.6.0-test5 (September 2003). 5: the author's page of the format. 7: patch by Molnar and
/// Piggin in 2.6.8-rc2-mm2. 9: patch for 2.6.8.1. 10 and 15 to 17: the kernel's documentation
/// of the time. 11 to 14: `kernel/sched_stats.h`.
#[expect(
    clippy::too_many_lines,
    reason = "a table of the fields of all versions"
)]
fn cpu_fields(version: u32) -> Vec<LayoutField> {
    const YIELD: &[&str] = &[
        "yld_both_empty",
        "yld_act_empty",
        "yld_exp_empty",
        "yld_cnt",
    ];
    const QUEUES: &[&str] = &["sched_noswitch", "sched_switch", "sched_cnt"];
    const BALANCE: &[&str] = &[
        "lb_idle",
        "lb_busy",
        "lb_resched",
        "lb_cnt",
        "lb_imbalance",
        "lb_nobusy",
    ];
    const NODES: &[&str] = &[
        "lb_bnode",
        "pt_gained",
        "pt_lost",
        "pt_node_gained",
        "pt_node_lost",
        "bn_cnt",
        "bn_idle",
    ];
    const SCHEDULE: &[&str] = &["sched_switch", "sched_cnt", "sched_goidle"];
    const WAKE: &[&str] = &["ttwu_cnt", "ttwu_local"];
    const TIMES: &[&str] = &["cpu_time", "run_delay", "pcnt"];
    let blocks: &[&[&str]] = match version {
        3 => &[
            YIELD,
            &[
                "sched_noswitch",
                "sched_switch",
                "idle_while_queued",
                "sched_cnt",
            ],
            BALANCE,
            NODES,
        ],
        4 => &[YIELD, QUEUES, BALANCE, NODES, TIMES],
        5 => &[
            YIELD,
            QUEUES,
            BALANCE,
            // The seventh of load_balance() has no name that was handed down.
            &[
                "lb_seventh",
                "pt_gained",
                "pt_lost",
                "alb_cnt",
                "alb_gained",
                "alb_lost",
            ],
            &["sbe_cnt", "smt_cnt"],
            TIMES,
        ],
        7 => &[YIELD, SCHEDULE, WAKE],
        9 | 10 => &[
            YIELD,
            QUEUES,
            &[
                "sched_goidle",
                "alb_cnt",
                "alb_gained",
                "alb_lost",
                "alb_failed",
            ],
            &[
                "ttwu_cnt",
                "ttwu_moved",
                "ttwu_attempts",
                "wunt_cnt",
                "wunt_moved",
            ],
            &["smt_cnt", "sbe_cnt"],
            TIMES,
            &[
                "pt_gained_newidle",
                "pt_lost_newidle",
                "pt_gained_idle",
                "pt_lost_idle",
            ],
            &["pt_gained_busy", "pt_lost_busy"],
        ],
        11 | 12 | 14 => &[YIELD, SCHEDULE, WAKE, TIMES],
        _ => &[
            &["yld_cnt", "legacy_zero", "sched_cnt", "sched_goidle"],
            WAKE,
            TIMES,
        ],
    };
    blocks.concat().into_iter().map(field).collect()
}

/// Expands to the names of a block of counters for one state of the CPU.
macro_rules! block {
    ($state:literal: $($name:literal)*) => { [$(concat!($name, "_", $state)),*] };
}

/// The counters of a domain, from the same sources.
fn domain_fields(version: u32) -> Vec<LayoutField> {
    macro_rules! for_states {
        ([$($state:literal)*] $names:tt) => { [$(for_states!(@ $state $names)),*].concat() };
        (@ $state:literal [$($name:literal)*]) => { block!($state: $($name)*) };
    }
    // Versions 9 and 10 group by counter, and the later ones by the CPU's state.
    macro_rules! for_counters {
        ([$($name:literal)*]) => {
            [$([concat!($name, "_idle"), concat!($name, "_busy"), concat!($name, "_newidle")]),*]
                .concat()
        };
    }
    let mut names: Vec<&'static str> = match version {
        7 => for_states!(["idle" "busy" "newidle"]
            ["lb_cnt" "lb_balanced" "lb_failed" "lb_gained" "lb_hot_gained" "lb_imbalance"]),
        9 | 10 => for_counters!(["lb_cnt" "lb_failed" "lb_imbalance" "lb_nobusyq" "lb_nobusyg"]),
        11 | 12 | 14 | 15 => for_states!(["idle" "busy" "newidle"]
            ["lb_cnt" "lb_balanced" "lb_failed" "lb_imbalance" "lb_gained" "lb_hot_gained"
             "lb_nobusyq" "lb_nobusyg"]),
        16 => for_states!(["busy" "idle" "newidle"]
            ["lb_cnt" "lb_balanced" "lb_failed" "lb_imbalance" "lb_gained" "lb_hot_gained"
             "lb_nobusyq" "lb_nobusyg"]),
        17.. => for_states!(["busy" "idle" "newidle"]
            ["lb_cnt" "lb_balanced" "lb_failed" "lb_imbalance_load" "lb_imbalance_util"
             "lb_imbalance_task" "lb_imbalance_misfit" "lb_gained" "lb_hot_gained" "lb_nobusyq"
             "lb_nobusyg"]),
        _ => Vec::new(),
    };
    let rest: &[&str] = match version {
        7 => &[
            "alb_cnt",
            "alb_failed",
            "alb_pushed",
            "ttwu_wake_remote",
            "plb_pulled",
            "afw_pulled",
            "sbe_pushed",
        ],
        9 | 10 => &["sbe_pushed", "sbe_failed", "ttwu_affine", "ttwu_balance"],
        11 => &[
            "alb_cnt",
            "alb_failed",
            "alb_pushed",
            "sbe_balanced",
            "sbe_pushed",
            "ttwu_wake_remote",
            "ttwu_move_affine",
            "ttwu_move_balance",
        ],
        12.. => &[
            "alb_cnt",
            "alb_failed",
            "alb_pushed",
            "sbe_cnt",
            "sbe_balanced",
            "sbe_pushed",
            "sbf_cnt",
            "sbf_balanced",
            "sbf_pushed",
            "ttwu_wake_remote",
            "ttwu_move_affine",
            "ttwu_move_balance",
        ],
        _ => &[],
    };
    names.extend(rest);
    names.into_iter().map(field).collect()
}

fn field(name: &'static str) -> LayoutField {
    let unit = match name {
        "cpu_time" | "run_delay" => FieldUnit::Time,
        _ if name.starts_with("lb_imbalance") => FieldUnit::Imbalance,
        _ => FieldUnit::Count,
    };
    LayoutField { name, unit }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_version_has_the_documented_number_of_fields() {
        let sizes = VERSIONS.map(|version| {
            let layout = Layout::of(version).unwrap();
            (version, layout.cpu.len(), layout.domain.len())
        });
        let documented = [
            (3, 21, 0),
            (4, 23, 0),
            (5, 24, 0),
            (7, 9, 25),
            (9, 28, 19),
            (10, 28, 19),
            (11, 12, 32),
            (12, 12, 36),
            (14, 12, 36),
            (15, 9, 36),
            (16, 9, 36),
            (17, 9, 45),
        ];
        assert_eq!(sizes, documented);
    }

    #[test]
    fn no_name_stands_twice_in_a_version() {
        for version in VERSIONS {
            let layout = Layout::of(version).unwrap();
            for fields in [&layout.cpu, &layout.domain] {
                let names: HashSet<_> = fields.iter().map(|field| field.name).collect();
                assert_eq!(names.len(), fields.len(), "version {version}");
            }
        }
    }

    /// Positions as the documents number them, from 1.
    #[test]
    fn fields_stand_where_the_documents_say() {
        let cpu = |version, name| Layout::of(version).unwrap().cpu_index(name).unwrap() + 1;
        let domain = |version, name| Layout::of(version).unwrap().domain_index(name).unwrap() + 1;
        assert_eq!(cpu(4, "lb_resched"), 10);
        assert_eq!(cpu(4, "pt_gained"), 15);
        assert_eq!(
            (cpu(4, "bn_cnt"), cpu(4, "cpu_time"), cpu(4, "pcnt")),
            (19, 21, 23)
        );
        assert_eq!((cpu(5, "run_delay"), cpu(5, "pcnt")), (23, 24));
        assert_eq!(
            (cpu(9, "ttwu_cnt"), cpu(9, "smt_cnt"), cpu(9, "cpu_time")),
            (13, 18, 20)
        );
        assert_eq!((cpu(14, "sched_goidle"), cpu(14, "cpu_time")), (7, 10));
        assert_eq!(
            (cpu(15, "sched_cnt"), cpu(15, "cpu_time"), cpu(15, "pcnt")),
            (3, 7, 9)
        );
        assert_eq!(
            (domain(9, "lb_failed_busy"), domain(9, "ttwu_balance")),
            (5, 19)
        );
        assert_eq!((domain(14, "lb_cnt_busy"), domain(14, "alb_cnt")), (9, 25));
        assert_eq!(
            (domain(16, "lb_cnt_busy"), domain(16, "lb_cnt_idle")),
            (1, 9)
        );
        assert_eq!(
            (
                domain(17, "lb_imbalance_misfit_busy"),
                domain(17, "lb_nobusyg_newidle")
            ),
            (7, 33)
        );
        assert_eq!(
            (domain(17, "alb_cnt"), domain(17, "ttwu_wake_remote")),
            (34, 43)
        );
    }

    #[test]
    fn a_version_that_never_shipped_has_no_table() {
        for version in [0, 1, 2, 6, 8, 13, 18] {
            assert!(Layout::of(version).is_none());
        }
    }
}
