//! Limits, sizes and prices.

use std::fmt;
use std::sync::Arc;

use crate::backend::Backend;

/// Limits and sizes of an instance.
#[derive(Clone, Debug)]
pub struct Config {
    /// CPUs of the machine: copies of per-CPU data.
    pub cpus: u32,
    /// Instructions that an outermost call may retire, nested calls included.
    pub budget: u64,
    /// Instructions that all calls together may retire, and what host functions do for them;
    /// `None`: no limit.
    pub total_budget: Option<u64>,
    /// Bytes that the object and its programs may make this process take, whatever for: data
    /// sections, maps, stacks, the arena, objects and masks that programs create, and what the
    /// machine and the host keep of each of them.
    pub memory_bytes: u64,
    /// Bytes of stack for all nested calls together.
    pub stack_bytes: u32,
    /// Cost of calling the built-in function of that name beyond its instruction, picoseconds.
    pub builtin_cost_ps: Prices,
    /// Accept an object that calls functions which nobody offers; a call ends the program.
    pub lenient: bool,
    /// Back end of the programs. Results and counts do not depend on it.
    pub backend: Backend,
    /// Instructions of all functions that native code is made for; an object with more is
    /// interpreted.
    pub native_limit: u32,
    /// Count the calls of host functions, see [`crate::Instance::calls`]. Native code then builds
    /// none of them in, and is slower.
    pub tally: bool,
    /// Keep in mind where programs are, see [`crate::Instance::current_place`]. Native code is
    /// slower then.
    pub places: bool,
    /// Ask the host before every access of programs to memory that is not their stack, and before
    /// every call of it ([`crate::Host::at_point`]). Programs are interpreted then.
    pub interleave: bool,
    /// Ask the host anew for each reading of the machine's own clocks, which then go on within a
    /// call ([`crate::Host::clock_within`]).
    pub moving_clock: bool,
}

impl Default for Config {
    /// One CPU, no costs, and limits that no sane policy meets.
    fn default() -> Self {
        Self {
            cpus: 1,
            budget: 100_000_000,
            total_budget: None,
            memory_bytes: 512 << 20,
            // A kernel stack on x86-64 (Linux 6.18, arch/x86/include/asm/page_64_types.h).
            stack_bytes: 16 << 10,
            builtin_cost_ps: Prices::default(),
            lenient: false,
            backend: Backend::Auto,
            native_limit: 200_000,
            tally: false,
            places: false,
            interleave: false,
            moving_clock: false,
        }
    }
}

/// Costs of built-in functions, by name. The default: nothing.
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

    /// Cost of the function `name`, picoseconds.
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
