//! Which function stands behind each function that an object calls.

use std::fmt;
use std::sync::Arc;

use crate::backend::{Backend, Refusal};
use crate::decode::BadInsn;
use crate::host::{Body, Host, HostFunction};
use crate::memory::OutOfMemory;
use crate::{Direct, Image, Import};

/// Limits and sizes of an instance.
#[derive(Clone, Debug)]
pub struct Config {
    /// CPUs of the machine: copies of per-CPU data.
    pub cpus: u32,
    /// Instructions that an outermost call may retire, nested calls included.
    pub budget: u64,
    /// Bytes that maps, data sections and stacks may take together.
    pub map_bytes: u64,
    /// Bytes that arena pages may take.
    pub arena_bytes: u64,
    /// Bytes of stack for all nested calls together.
    pub stack_bytes: u32,
    /// What calling the built-in function of that name costs beyond its instruction, picoseconds.
    pub builtin_cost_ps: Prices,
    /// Accept an object that calls functions which nobody offers; a call ends the program.
    pub lenient: bool,
    /// What executes the programs. Results and counts do not depend on it.
    pub backend: Backend,
    /// Instructions of all functions that native code is made for; an object with more is
    /// interpreted.
    pub native_limit: u32,
    /// Count the calls of host functions, see [`crate::Instance::calls`]. Native code then builds
    /// none of them in, and is slower.
    pub tally: bool,
}

impl Default for Config {
    /// One CPU, no costs, and limits that no sane policy meets.
    fn default() -> Self {
        Self {
            cpus: 1,
            budget: 100_000_000,
            map_bytes: 256 << 20,
            arena_bytes: 256 << 20,
            // A kernel stack on x86-64 (Linux 6.18, arch/x86/include/asm/page_64_types.h).
            stack_bytes: 16 << 10,
            builtin_cost_ps: Prices::default(),
            lenient: false,
            backend: Backend::Auto,
            native_limit: 200_000,
            tally: false,
        }
    }
}

/// What calling a built-in function costs, by its name. The default: nothing.
#[derive(Clone, Default)]
pub struct Prices(Option<Arc<Price>>);

/// From a function's name to picoseconds.
type Price = dyn Fn(&str) -> u64 + Send + Sync;

impl Prices {
    /// `cost` gives picoseconds beyond the instruction of the call.
    #[must_use]
    pub fn new(cost: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(cost)))
    }

    /// What the function `name` costs, picoseconds.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.0.as_ref().map_or(0, |cost| cost(name))
    }
}

impl fmt::Debug for Prices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Prices(..)"
        } else {
            "Prices(0)"
        })
    }
}

/// A function that an object calls and nobody offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// The prototype that is wanted; empty for helpers.
    pub prototype: String,
    /// What is offered under this name with another prototype.
    pub offered: Vec<&'static str>,
    /// The functions of the object that call it.
    pub callers: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name)?;
        if !self.prototype.is_empty() {
            write!(f, ": {}", self.prototype)?;
        }
        write!(f, " (called by {})", self.callers.join(", "))?;
        if !self.offered.is_empty() {
            write!(f, "; simulated only as {}", self.offered.join(", "))?;
        }
        Ok(())
    }
}

/// Why an image cannot be made ready to run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// Functions that nobody offers, all of them.
    #[error("{} functions are not simulated:{}", .0.len(), lines(.0))]
    Missing(Vec<Missing>),
    /// A map does not fit.
    #[error("map `{name}`: {source}")]
    MapMemory {
        /// The map.
        name: String,
        /// How much was wanted.
        source: OutOfMemory,
    },
    /// A map that no kernel would create.
    #[error("map `{name}`: {what}")]
    Map {
        /// The map.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Kernel variables or stacks do not fit.
    #[error("memory of the object: {0}")]
    Memory(#[from] OutOfMemory),
    /// The operating system refuses the address space.
    #[error("cannot reserve address space for the object (see `ulimit -v`): {0}")]
    Reserve(std::io::Error),
    /// An instruction that this machine does not know.
    #[error(transparent)]
    Code(#[from] BadInsn),
    /// Native code was demanded, and there is none.
    #[error("no native code: {0}")]
    Native(Refusal),
}

fn lines(missing: &[Missing]) -> String {
    missing
        .iter()
        .map(|function| format!("\n  {function}"))
        .collect()
}

/// What a call of an import does.
#[derive(Debug)]
pub(crate) struct Binding<H: Host> {
    pub(crate) body: Option<Body<H>>,
    pub(crate) cost_ps: u64,
    #[cfg_attr(not(feature = "jit"), expect(dead_code, reason = "for native code"))]
    pub(crate) direct: Option<Direct<H>>,
    /// How often it was called, without the calls that native code makes itself.
    pub(crate) calls: u64,
    /// What the body does, if native code can do it as well.
    #[cfg_attr(not(feature = "jit"), expect(dead_code, reason = "for native code"))]
    pub(crate) intrinsic: Option<Intrinsic>,
}

/// A function that native code has built in. It does and counts what the body does.
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
    fn of_builtin(name: &str) -> Option<Self> {
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

    /// By the name of a function of the host.
    fn of_host<H: Host>(name: &str) -> Option<Self> {
        H::clock_functions().contains(&name).then_some(Self::Clock)
    }
}

/// Finds every import in `table`, then among the built-in functions.
pub(crate) fn bind<H: Host>(
    image: &Image,
    table: &[HostFunction<H>],
    config: &Config,
) -> Result<Vec<Binding<H>>, InstanceError> {
    let builtins = crate::builtin::table::<H>(&config.builtin_cost_ps);
    let mut bindings = Vec::with_capacity(image.imports.len());
    let mut missing = Vec::new();
    for import in &image.imports {
        match find(import, table, &builtins) {
            // Both short cuts of native code pass the counter by.
            Some(binding) if config.tally => bindings.push(Binding {
                direct: None,
                intrinsic: None,
                ..binding
            }),
            Some(binding) => bindings.push(binding),
            None => {
                bindings.push(Binding {
                    body: None,
                    cost_ps: 0,
                    direct: None,
                    calls: 0,
                    intrinsic: None,
                });
                missing.push(describe(import, table.iter().chain(&builtins)));
            }
        }
    }
    if missing.is_empty() || config.lenient {
        return Ok(bindings);
    }
    Err(InstanceError::Missing(missing))
}

fn find<H: Host>(
    import: &Import,
    table: &[HostFunction<H>],
    builtins: &[HostFunction<H>],
) -> Option<Binding<H>> {
    let wanted = |function: &&HostFunction<H>| function.body.is_some() && matches(function, import);
    let binding = |function: &HostFunction<H>, intrinsic| Binding {
        body: function.body,
        cost_ps: function.cost_ps,
        direct: function.direct,
        calls: 0,
        intrinsic,
    };
    if let Some(function) = table.iter().find(wanted) {
        return Some(binding(function, Intrinsic::of_host::<H>(function.name)));
    }
    let function = builtins.iter().find(wanted)?;
    Some(binding(function, Intrinsic::of_builtin(function.name)))
}

fn matches<H: Host>(function: &HostFunction<H>, import: &Import) -> bool {
    function.name == import.name && function.prototype == import.prototype
}

fn describe<'a, H: Host + 'a>(
    import: &Import,
    offers: impl Iterator<Item = &'a HostFunction<H>>,
) -> Missing {
    let namesakes = offers.filter(|function| function.name == import.name);
    let others = namesakes.map(|function| function.prototype);
    Missing {
        name: import.name.clone(),
        prototype: import.prototype.clone(),
        offered: others
            .filter(|prototype| *prototype != import.prototype)
            .collect(),
        callers: import.callers.clone(),
    }
}
