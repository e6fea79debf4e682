//! Which function stands behind each function that an object calls.

use crate::decode::BadInsn;
use crate::host::{Body, Host, HostFunction};
use crate::memory::OutOfMemory;
use crate::{Image, Import};

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
    pub builtin_cost_ps: fn(&'static str) -> u64,
    /// Accept an object that calls functions which nobody offers; a call ends the program.
    pub lenient: bool,
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
            builtin_cost_ps: |_| 0,
            lenient: false,
        }
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

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
}

/// Finds every import in `table`, then among the built-in functions.
pub(crate) fn bind<H: Host>(
    image: &Image,
    table: &[HostFunction<H>],
    config: &Config,
) -> Result<Vec<Binding<H>>, InstanceError> {
    let builtins = crate::builtin::table::<H>(config.builtin_cost_ps);
    let mut bindings = Vec::with_capacity(image.imports.len());
    let mut missing = Vec::new();
    for import in &image.imports {
        let mut all = table.iter().chain(&builtins);
        match all.find(|function| function.body.is_some() && matches(function, import)) {
            Some(function) => {
                bindings.push(Binding {
                    body: function.body,
                    cost_ps: function.cost_ps,
                });
            }
            None => {
                bindings.push(Binding {
                    body: None,
                    cost_ps: 0,
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
