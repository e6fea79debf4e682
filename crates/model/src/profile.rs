//! What actions cost on a machine.

mod background;
mod file;
pub(crate) mod values;

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use background::Background;

/// Costs of actions on a machine, by name or as a table of the user's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// Nothing costs anything: a callback, a switch and an interrupt take no time.
    #[default]
    Ideal,
    /// A PC of the 2020s: switches, wakeups, interrupts, callbacks and what they call take time.
    /// Some of the figures are measured; profiles/default-v0.toml says which.
    DefaultV0,
    /// Costs of a profile file.
    Own(Arc<OwnProfile>),
}

/// The costs of a profile file, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnProfile {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Costs of actions.
    #[serde(rename = "costs_ps")]
    pub costs: Costs,
    /// The kernel's threads that run by themselves.
    #[serde(
        default,
        deserialize_with = "background::checked",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub background: Vec<Background>,
}

/// Writes the struct of costs and the table of those that are spans of time.
macro_rules! costs {
    ($($(#[$meta:meta])* $name:ident: $most:expr,)+) => {
        /// Costs of actions, in picoseconds unless the name says otherwise. docs/profiles.md says
        /// who pays for each.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Costs {
            $($(#[$meta])* pub $name: u64,)+
            /// Whether who finds a lock taken waits for it.
            pub lock_wait: bool,
            /// Kind of the run queues' lock.
            pub run_queue: RunQueueLock,
            /// Bytes of a core's own cache.
            pub core_cache_bytes: u64,
            /// Bytes a second at which a core's cache is filled; 0: no time passes.
            pub core_refill_bytes_per_s: u64,
            /// Bytes of the last-level cache.
            pub llc_cache_bytes: u64,
            /// Bytes a second at which the last-level cache is filled; 0: no time passes.
            pub llc_refill_bytes_per_s: u64,
            /// Bytes that a task uses of the caches if the workload does not say.
            pub footprint_bytes: u64,
        }

        impl Costs {
            /// The keys of a profile file that are spans of time, with the greatest value, ps.
            pub const TIMES: &[(&'static str, u64)] = &[$((stringify!($name), $most),)+];

            /// The cost at a key of [`TIMES`](Self::TIMES), ps; `None` if there is no such key.
            pub fn time_mut(&mut self, key: &str) -> Option<&mut u64> {
                match key {
                    $(stringify!($name) => Some(&mut self.$name),)+
                    _ => None,
                }
            }
        }
    };
}

/// The greatest costs, ps: a second, and a millisecond and a microsecond for what happens so often
/// that sums of it would overflow.
const SECOND: u64 = 1_000_000_000_000;
const MILLISECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1_000_000;

/// What a switch with its wakeup may take, in nanoseconds.
const MEASURED_NS: std::ops::RangeInclusive<u64> = 100..=1_000_000;

costs! {
    /// A switch between tasks of one address space.
    switch: SECOND,
    /// More of it if the address space is another one than the CPU had last.
    mm_switch: SECOND,
    /// A switch to the idle task or from it.
    switch_idle: SECOND,
    /// A `schedule()` that changes nothing.
    keep: SECOND,
    /// `try_to_wake_up()`, the policy's callbacks not included.
    wakeup: SECOND,
    /// More of it if the task's CPU is another one.
    wakeup_remote: SECOND,
    /// From the sending of a reschedule IPI to its arrival.
    ipi_flight: SECOND,
    /// The target's handler.
    ipi_handler: SECOND,
    /// The interrupt that a CPU sends itself before its kicks act.
    kick_irq: SECOND,
    /// From an interrupt to the first instruction on an idle CPU.
    idle_exit: SECOND,
    /// A tick.
    tick: SECOND,
    /// A timer interrupt, with the kernel's part of the wakeup that it leads to.
    timer: SECOND,
    /// Taking a task from another CPU's run queue.
    migration: SECOND,
    /// `fork()`.
    fork: SECOND,
    /// The kernel's part of `exec()`.
    exec: SECOND,
    /// `exit()`.
    exit: SECOND,
    /// Entering and leaving a callback.
    callback: MILLISECOND,
    /// A BPF instruction.
    instruction: MICROSECOND,
    /// A kernel function that selects a CPU.
    call_select_cpu: MILLISECOND,
    /// A kernel function that moves a task from one queue to another.
    call_move: MILLISECOND,
    /// A kernel function that puts a task into a queue.
    call_insert: MILLISECOND,
    /// A kernel function that kicks a CPU.
    call_kick: MILLISECOND,
    /// A step of an iterator, its begin and its end.
    call_iterate: MILLISECOND,
    /// Any other kernel function that begins with `scx_bpf` or works on a mask of CPUs.
    call_kernel: MILLISECOND,
    /// Anything else that programs call, such as a look-up in a map.
    call_helper: MILLISECOND,
    /// Taking a lock that another CPU had last.
    lock_transfer: MILLISECOND,
}

/// Kind of the run queues' lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunQueueLock {
    /// A lock for each CPU's run queue, as Linux has them since 2.5.2 (the O(1) scheduler).
    #[default]
    Cpu,
    /// One lock for the whole machine: the `runqueue_lock` of Linux up to 2.4.
    Machine,
}

static DEFAULT_V0: LazyLock<OwnProfile> = LazyLock::new(|| {
    let text = include_str!("../profiles/default-v0.toml");
    let shipped = file::parse_shipped(text, "profiles/default-v0.toml");
    shipped.unwrap_or_else(|error| panic!("{error}"))
});

impl Profile {
    /// The profiles that come with the program.
    pub const SHIPPED: [Self; 2] = [Self::Ideal, Self::DefaultV0];

    /// As workload files and the command line call it; for one of a file, what the file says.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Ideal => "ideal",
            Self::DefaultV0 => "default-v0",
            Self::Own(own) => &own.name,
        }
    }

    /// The profile of that name that comes with the program.
    #[must_use]
    pub fn shipped(name: &str) -> Option<Self> {
        let mut all = Self::SHIPPED.into_iter();
        all.find(|profile| profile.name() == name)
    }

    /// That of a PC, with all times as much longer as a switch with its wakeup takes on a machine.
    /// `None` if that cannot be: no machine needs less than 100 ns or more than a millisecond.
    #[must_use]
    pub fn measured(switch_ns: u64) -> Option<Self> {
        if !MEASURED_NS.contains(&switch_ns) {
            return None;
        }
        let mut own = OwnProfile::clone(&DEFAULT_V0);
        "measured".clone_into(&mut own.name);
        let usual = own.costs.switch + own.costs.wakeup;
        for (key, most) in Costs::TIMES {
            if let Some(cost) = own.costs.time_mut(key) {
                let scaled = u128::from(*cost) * u128::from(switch_ns) * 1000 / u128::from(usual);
                *cost = u64::try_from(scaled).unwrap_or(*most).min(*most);
            }
        }
        Some(Self::Own(Arc::new(own)))
    }

    /// Costs of actions; `None` if nothing costs anything.
    #[must_use]
    pub fn costs(&self) -> Option<&Costs> {
        match self {
            Self::Ideal => None,
            Self::DefaultV0 => Some(&DEFAULT_V0.costs),
            Self::Own(own) => Some(&own.costs),
        }
    }

    /// The kernel's threads that run by themselves beside every load.
    #[must_use]
    pub fn background(&self) -> &[Background] {
        match self {
            Self::Ideal => &[],
            Self::DefaultV0 => &DEFAULT_V0.background,
            Self::Own(own) => &own.background,
        }
    }
}

impl Costs {
    /// How long it takes to fill a cache of `cache` bytes with what a task uses of it, at
    /// `bytes_per_s`, ps.
    #[must_use]
    pub fn refill(cache: u64, bytes_per_s: u64, footprint: u64) -> u64 {
        if bytes_per_s == 0 {
            return 0;
        }
        let bytes = u128::from(cache.min(footprint));
        let ps = bytes * u128::from(SECOND) / u128::from(bytes_per_s);
        u64::try_from(ps).unwrap_or(u64::MAX)
    }
}

/// As recordings and bundles have it: the name of a shipped profile, or a table.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Name(String),
    Own(Box<OwnProfile>),
}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Own(own) => own.serialize(to),
            shipped => shipped.name().serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Written::deserialize(from)? {
            Written::Own(own) => Ok(Self::Own(Arc::from(own))),
            Written::Name(name) => Self::shipped(&name).ok_or_else(|| {
                let names = Self::SHIPPED.map(|profile| format!("`{}`", profile.name()));
                let expected = names.join(" or ");
                serde::de::Error::custom(format!("unknown profile `{name}`; expected {expected}"))
            }),
        }
    }
}

#[cfg(test)]
mod tests;
