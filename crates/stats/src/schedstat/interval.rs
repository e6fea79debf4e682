//! What happened between two snapshots, and the numbers that are derived from it.

use model::{Advice, Nanos};
use serde::Serialize;

use super::hz::uptime;
use super::layout::{FieldUnit, Layout, TimeUnit};
use super::snapshot::{CpuCounters, DomainCounters, Snapshot};
use crate::Millionths;

/// Why two snapshots have no interval between them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IntervalError {
    /// They are of different versions: the kernel was changed between them.
    #[error("the first snapshot has version {before} and the second {after}: another kernel")]
    Versions {
        /// The first one's.
        before: u32,
        /// The second one's.
        after: u32,
    },
    /// The clock went back, or on to where only a machine's first five minutes are.
    #[error(
        "the clock {} from {before} to {after} jiffies: the machine was started anew",
        moved(*before, *after)
    )]
    Rebooted {
        /// The first one's clock.
        before: u64,
        /// The second one's clock.
        after: u64,
    },
}

impl Advice for IntervalError {
    fn advice(&self) -> Option<String> {
        None
    }
}

fn moved(before: u64, after: u64) -> &'static str {
    if after < before {
        "went back"
    } else {
        "jumped"
    }
}

/// The increments of all counters from one snapshot to a later one of the same machine.
#[derive(Clone, Debug)]
pub struct Interval {
    layout: &'static Layout,
    jiffies: u64,
    /// Whether it began with the boot, so that no turn and no wait began before it.
    since_boot: bool,
    /// The CPUs that both snapshots have, in the later one's order.
    pub cpus: Vec<CpuInterval>,
    /// CPUs that only the later snapshot has; their counters are not used.
    pub came: Vec<u32>,
    /// CPUs that only the earlier one has.
    pub gone: Vec<u32>,
}

/// Counters of a kernel over an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// All that its version has.
    All,
    /// Run times, waits and turns only: the other counters were switched off.
    Times,
    /// The other counters for a part of the interval only.
    Part,
    /// Run times, waits and turns; others have 32 bits, and so many turns that they have wrapped.
    Wrapped,
}

impl Counted {
    /// Whether calls and imbalance are known.
    #[must_use]
    pub fn has_calls(self) -> bool {
        matches!(self, Self::All | Self::Part)
    }
}

/// The increments of one CPU's counters.
#[derive(Clone, Debug)]
pub struct CpuInterval {
    /// The CPU's number.
    pub cpu: u32,
    /// In the order of [`Layout::cpu`].
    pub counters: Vec<u64>,
    /// The domains that the CPU has in both snapshots, with the same CPUs.
    pub domains: Vec<DomainInterval>,
    /// Whether a counter began anew: it went back without a wrap of 32 or 64 bits.
    pub restarted: bool,
}

/// The increments of one domain's counters.
#[derive(Clone, Debug)]
pub struct DomainInterval {
    /// The domain's number.
    pub level: u32,
    /// Its name, or nothing before version 17.
    pub name: String,
    /// Its CPUs as the kernel prints masks.
    pub mask: String,
    /// In the order of [`Layout::domain`].
    pub counters: Vec<u64>,
}

/// Derived numbers, as "The Cursor Wiggles Faster" (2004) defines them. `None` where the version
/// lacks a counter or nothing happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// How often a task was given a CPU.
    pub slices: Option<u64>,
    /// Average wait for a CPU.
    #[serde(rename = "latency_ns", serialize_with = "crate::report::maybe_ns")]
    pub latency: Option<Nanos>,
    /// Average time on the CPU until leaving it.
    #[serde(rename = "runslice_ns", serialize_with = "crate::report::maybe_ns")]
    pub runslice: Option<Nanos>,
    /// Share of the CPU time that tasks ran.
    #[serde(rename = "busy_ppm")]
    pub busy: Option<Millionths>,
    /// One for each kind of imbalance that the version sums up; none unless
    /// [`Counted::has_calls`].
    pub imbalance: Vec<Imbalance>,
}

/// An average imbalance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Imbalance {
    /// Kind of imbalance: `tasks` up to version 5, `load` up to 16, then `load`, `util`, `task` and
    /// `misfit`.
    pub kind: &'static str,
    /// For each call of the balancer, in millionths.
    #[serde(rename = "per_call_millionths")]
    pub per_call: Option<Millionths>,
    /// For each call that found a busier queue, in millionths.
    #[serde(rename = "per_found_millionths")]
    pub per_found: Option<Millionths>,
}

impl Interval {
    /// From `before` to `after`.
    ///
    /// # Errors
    /// When the two are not of one run of one kernel, in this order.
    pub fn new(before: &Snapshot, after: &Snapshot) -> Result<Self, IntervalError> {
        let layout = after.layout();
        if before.layout().version != layout.version {
            let (before, after) = (before.layout().version, layout.version);
            return Err(IntervalError::Versions { before, after });
        }
        let (from, to) = (before.timestamp(), after.timestamp());
        let rebooted = IntervalError::Rebooted {
            before: from,
            after: to,
        };
        let Step::Counted(jiffies) = step(from, to) else {
            return Err(rebooted);
        };
        if leads_to_a_boot(from, to) {
            return Err(rebooted);
        }
        let mut cpus = Vec::with_capacity(after.cpus().len());
        let mut came = Vec::new();
        for cpu in after.cpus() {
            match before.cpu(cpu.number()) {
                Some(earlier) => cpus.push(CpuInterval::new(earlier, cpu)),
                None => came.push(cpu.number()),
            }
        }
        let numbers = before.cpus().map(CpuCounters::number);
        let gone = numbers.filter(|&cpu| after.cpu(cpu).is_none()).collect();
        Ok(Self {
            layout,
            jiffies,
            since_boot: false,
            cpus,
            came,
            gone,
        })
    }

    /// From the boot of the machine to `snapshot`: all counters began at 0 then.
    ///
    /// `hz` is the kernel's number of jiffies a second. Its clock does not begin at 0 but five
    /// minutes before it exceeds 32 bits (`INITIAL_JIFFIES` in `include/linux/jiffies.h`).
    #[must_use]
    pub fn since_boot(snapshot: &Snapshot, hz: u32) -> Self {
        let cpu = |cpu: CpuCounters<'_>| {
            let domains = cpu.domains().map(|domain| DomainInterval {
                counters: domain.values().to_vec(),
                ..DomainInterval::empty(domain)
            });
            CpuInterval {
                cpu: cpu.number(),
                counters: cpu.values().to_vec(),
                domains: domains.collect(),
                restarted: false,
            }
        };
        Self {
            layout: snapshot.layout(),
            // Without a clock nobody knows how long it was.
            jiffies: if snapshot.layout().timestamp {
                uptime(snapshot.timestamp(), hz)
            } else {
                0
            },
            since_boot: true,
            cpus: snapshot.cpus().map(cpu).collect(),
            came: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// How much of what the version has was counted in the interval.
    ///
    /// From version 15 on `kernel.sched_schedstats` switches most counters. It is taken to be off
    /// when tasks were given a CPU and `schedule()` was never called, and to have been off for a
    /// part of the time when there were fewer calls than such tasks.
    #[must_use]
    pub fn counted(&self) -> Counted {
        let sum = |name| -> Option<u128> {
            self.cpus
                .iter()
                .map(|cpu| cpu.get(self.layout, name))
                .sum::<Option<u128>>()
        };
        match (sum("sched_cnt"), sum("pcnt")) {
            // From version 15 on calls have 32 bits for certain, and what they say then is unknown
            // even where it seems possible.
            (Some(calls), Some(slices))
                if self.has_wrapped() && (calls < slices || self.layout.version >= 15) =>
            {
                Counted::Wrapped
            }
            _ if self.layout.version < 15 => Counted::All,
            (Some(0), Some(1..)) => Counted::Times,
            // A task that is between the two places in the kernel is counted in one of them.
            (Some(calls), Some(slices)) if calls + (self.cpus.len() as u128) < slices => {
                Counted::Part
            }
            _ => Counted::All,
        }
    }

    /// Whether some CPU was given more often than the calls of `schedule()` can be counted to: the
    /// counter of slices has 64 bits, that of calls 32 (`pcount` and `sched_count`, Linux 6.18,
    /// include/linux/sched.h and kernel/sched/sched.h). There are about two calls for a slice.
    fn has_wrapped(&self) -> bool {
        const MOST: u128 = 1 << 31;
        let slices = |cpu: &CpuInterval| cpu.get(self.layout, "pcnt");
        self.cpus.iter().filter_map(slices).any(|it| it >= MOST)
    }

    /// The version's table.
    #[must_use]
    pub fn layout(&self) -> &'static Layout {
        self.layout
    }

    /// How long the interval was, in jiffies of the kernel. The nominal time between two readings
    /// is not used: a loaded machine sleeps longer than it was asked to.
    #[must_use]
    pub fn jiffies(&self) -> u64 {
        self.jiffies
    }

    /// The sums over all CPUs; domains are added up by level and name. A CPU without a sibling has
    /// no domain of the name `SMT`, so that its level 0 is another than that of its neighbours.
    #[must_use]
    pub fn total(&self) -> CpuInterval {
        let mut total = CpuInterval {
            cpu: 0,
            counters: vec![0; self.layout.cpu.len()],
            domains: Vec::new(),
            restarted: false,
        };
        for cpu in &self.cpus {
            add(&mut total.counters, &cpu.counters);
            total.restarted |= cpu.restarted;
            for domain in &cpu.domains {
                let same = |sum: &&mut DomainInterval| {
                    sum.level == domain.level && sum.name == domain.name
                };
                match total.domains.iter_mut().find(same) {
                    Some(sum) => add(&mut sum.counters, &domain.counters),
                    None => {
                        total.domains.push(DomainInterval {
                            mask: String::new(),
                            ..domain.clone()
                        });
                    }
                }
            }
        }
        total
    }

    /// The unit of run times and waits. Where the version leaves it open, more time than the CPUs
    /// had in jiffies must be nanoseconds.
    #[must_use]
    pub fn time_unit(&self) -> TimeUnit {
        let TimeUnit::Either = self.layout.time_unit else {
            return self.layout.time_unit;
        };
        let run: u128 = self
            .cpus
            .iter()
            .filter_map(|cpu| cpu.get(self.layout, "cpu_time"))
            .sum();
        // A turn that began before the interval counts when it ends: some excess can be jiffies.
        let most = (u128::from(self.jiffies) + 1_000) * self.cpus.len() as u128 * 10;
        if run > most {
            TimeUnit::Nanoseconds
        } else {
            TimeUnit::Jiffies
        }
    }

    /// The derived numbers of `of`, a CPU of this interval or its total.
    ///
    /// `hz` is the kernel's number of jiffies a second: 1000 on i386 with Linux 2.6.
    #[must_use]
    pub fn figures(&self, of: &CpuInterval, cpus: usize, hz: u32) -> Figures {
        let get = |name| of.get(self.layout, name);
        let slices = get("pcnt");
        let is_sum = cpus > 1 && self.beyond(hz).next().is_some();
        let is_beyond = is_sum || self.is_beyond(of, cpus, hz);
        let time = |name| Some(self.nanoseconds(get(name)?, hz)).filter(|_| !is_beyond);
        let average = |name| mean(time(name)?, slices?);
        let elapsed = jiffies_ns(u128::from(self.jiffies), hz) * cpus as u128;
        let imbalance = match self.counted() {
            Counted::Times | Counted::Wrapped => Vec::new(),
            Counted::All | Counted::Part => of.imbalance(self.layout),
        };
        Figures {
            slices: slices.and_then(|slices| u64::try_from(slices).ok()),
            latency: average("run_delay"),
            runslice: average("cpu_time"),
            busy: time("cpu_time")
                .filter(|_| elapsed > 0)
                .map(|run| Millionths::of(run, elapsed)),
            imbalance,
        }
    }

    /// CPUs whose times cannot be: since the boot tasks ran, or a task waited on average, for
    /// longer than the machine has been up. Counters of 32 bits have wrapped, or went below 0.
    pub fn beyond(&self, hz: u32) -> impl Iterator<Item = u32> {
        let cpus = self.cpus.iter();
        let beyond = cpus.filter(move |cpu| self.is_beyond(cpu, 1, hz));
        beyond.map(|cpu| cpu.cpu)
    }

    fn is_beyond(&self, of: &CpuInterval, cpus: usize, hz: u32) -> bool {
        /// What the clocks of times and of jiffies may differ by at boot.
        const SLACK_NS: u128 = 1_000_000_000;
        if !self.since_boot || self.jiffies == 0 {
            return false;
        }
        let up = jiffies_ns(u128::from(self.jiffies), hz) + SLACK_NS;
        let get = |name| of.get(self.layout, name).unwrap_or(0);
        let ns = |name| self.nanoseconds(get(name), hz);
        ns("cpu_time") > up * cpus as u128 || ns("run_delay") / get("pcnt").max(1) > up
    }

    fn nanoseconds(&self, time: u128, hz: u32) -> u128 {
        match self.time_unit() {
            TimeUnit::Nanoseconds => time,
            TimeUnit::Jiffies | TimeUnit::Either => jiffies_ns(time, hz),
        }
    }
}

impl CpuInterval {
    fn new(before: CpuCounters<'_>, after: CpuCounters<'_>) -> Self {
        let mut restarted = false;
        let counters = steps(before.values(), after.values(), &mut restarted);
        let domains = after.domains().filter_map(|domain| {
            // Domains are built anew when CPUs come and go: another mask is another domain.
            let same = |earlier: &DomainCounters<'_>| {
                (earlier.level(), earlier.name(), earlier.mask())
                    == (domain.level(), domain.name(), domain.mask())
            };
            let earlier = before.domains().find(same)?;
            Some(DomainInterval {
                counters: steps(earlier.values(), domain.values(), &mut restarted),
                ..DomainInterval::empty(domain)
            })
        });
        let domains = domains.collect();
        Self {
            cpu: after.number(),
            counters,
            domains,
            restarted,
        }
    }

    /// The increment of the counter `name`; `None` when the version does not have it.
    #[must_use]
    pub fn get(&self, layout: &Layout, name: &str) -> Option<u128> {
        Some(u128::from(self.counters[layout.cpu_index(name)?]))
    }

    /// Calls of the balancer, over all domains where the version counts them there.
    #[must_use]
    pub fn balance_calls(&self, layout: &Layout) -> Option<u128> {
        self.get(layout, "lb_cnt")
            .or_else(|| self.domain_sum(layout, "lb_cnt"))
    }

    /// Sums a counter of the domains over their levels and the states of the CPU.
    fn domain_sum(&self, layout: &Layout, counter: &str) -> Option<u128> {
        let mut found = false;
        let mut sum = 0;
        for state in ["idle", "busy", "newidle"] {
            let name = layout.domain.iter().position(|field| {
                field
                    .name
                    .strip_suffix(state)
                    .and_then(|rest| rest.strip_suffix('_'))
                    == Some(counter)
            });
            let Some(index) = name else { continue };
            found = true;
            sum += self
                .domains
                .iter()
                .map(|d| u128::from(d.counters[index]))
                .sum::<u128>();
        }
        found.then_some(sum)
    }

    fn imbalance(&self, layout: &Layout) -> Vec<Imbalance> {
        let per_cpu = layout
            .cpu
            .iter()
            .any(|field| field.unit == FieldUnit::Imbalance);
        let get = |name: &str| {
            if per_cpu {
                self.get(layout, name)
            } else {
                self.domain_sum(layout, name)
            }
        };
        let Some(calls) = get("lb_cnt") else {
            return Vec::new();
        };
        // A call without a result found no busier group or no busier queue in it. Version 7 has
        // one counter for both and for calls that found the CPUs in balance.
        let without = match (get("lb_nobusy"), get("lb_nobusyq"), get("lb_nobusyg")) {
            (Some(without), _, _) => without,
            (_, Some(queue), Some(group)) => queue + group,
            _ => get("lb_balanced").unwrap_or(0),
        };
        let found = calls.saturating_sub(without);
        let kinds = [
            ("lb_imbalance", if per_cpu { "tasks" } else { "load" }),
            ("lb_imbalance_load", "load"),
            ("lb_imbalance_util", "util"),
            ("lb_imbalance_task", "task"),
            ("lb_imbalance_misfit", "misfit"),
        ];
        let ratio = |sum, of| (of > 0).then(|| Millionths::of(sum, of));
        let averages = kinds.into_iter().filter_map(|(name, kind)| {
            let sum = get(name)?;
            Some(Imbalance {
                kind,
                per_call: ratio(sum, calls),
                per_found: ratio(sum, found),
            })
        });
        averages.collect()
    }
}

impl DomainInterval {
    /// The same domain, without counters.
    fn empty(domain: DomainCounters<'_>) -> Self {
        Self {
            level: domain.level(),
            name: domain.name().to_owned(),
            mask: domain.mask().to_owned(),
            counters: Vec::new(),
        }
    }
}

/// What a counter did between two readings.
enum Step {
    /// It grew by this much, perhaps beyond the end of its word.
    Counted(u64),
    /// It began anew at 0 and counts this much since.
    Restarted(u64),
}

/// Whether a clock of 32 bits that had exceeded its word was read again in the five minutes behind
/// a boot, which it counts up to that end. Otherwise the second reading would have been made just
/// five minutes before the next end of the word, and more than 24 days behind the first.
fn leads_to_a_boot(before: u64, after: u64) -> bool {
    const WORD: u64 = 1 << 32;
    // Five minutes of the fastest usual clock.
    const BOOT: u64 = WORD - 300 * 1_000;
    before < WORD / 2 && (BOOT..WORD).contains(&after)
}

/// A counter that went back has wrapped if it stood in the upper half of its word and grew by less
/// than half of it. More is too far for one interval: a clock that was read twice in the five
/// minutes after two boots would have run for 49 days. Kernels of 32 bits count in words of 32
/// bits.
fn step(before: u64, after: u64) -> Step {
    const HALF_32: u64 = 1 << 31;
    const HALF_64: u64 = 1 << 63;
    const MAX_32: u64 = u32::MAX as u64;
    if let Some(increment) = after.checked_sub(before) {
        return Step::Counted(increment);
    }
    let (half, increment) = match before {
        HALF_32..=MAX_32 => (HALF_32, (MAX_32 - before) + 1 + after),
        HALF_64.. => (HALF_64, after.wrapping_sub(before)),
        _ => return Step::Restarted(after),
    };
    if increment < half {
        Step::Counted(increment)
    } else {
        Step::Restarted(after)
    }
}

fn steps(before: &[u64], after: &[u64], restarted: &mut bool) -> Vec<u64> {
    let pairs = before.iter().zip(after);
    let increments = pairs.map(|(&before, &after)| match step(before, after) {
        Step::Counted(increment) => increment,
        Step::Restarted(since) => {
            *restarted = true;
            since
        }
    });
    increments.collect()
}

fn add(sums: &mut [u64], values: &[u64]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum = sum.saturating_add(*value);
    }
}

fn jiffies_ns(jiffies: u128, hz: u32) -> u128 {
    jiffies * 1_000_000_000 / u128::from(hz.max(1))
}

fn mean(sum: u128, count: u128) -> Option<Nanos> {
    let mean = (sum + count / 2).checked_div(count)?;
    Some(Nanos::new(u64::try_from(mean).unwrap_or(u64::MAX)))
}
