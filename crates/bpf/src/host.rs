//! The seam between the object machine and whoever runs it.
//!
//! The machine knows no scheduling. It asks its [`Host`] for what a kernel would know (CPU number,
//! clock, randomness) and calls [`HostFunction`]s for everything else. A host function may call a
//! program again: it gets the instance and the host, both mutable, in a [`CallCtx`].

use crate::intrinsic::Intrinsic;
use crate::stop::Stop;
use crate::{Instance, jit};

/// What a program is about to do at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Number of the operation, for [`Instance::place`].
    pub at: u32,
    /// What it does.
    pub kind: AccessKind,
    /// Where; 0 for a call.
    pub address: u64,
    /// Bytes; 0 for a call.
    pub bytes: u8,
}

/// What an [`Access`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It reads and writes in one, and gets the old value.
    Atomic,
    /// It changes the value in one, and does not look at it.
    Count,
    /// It calls a function of the host.
    Call,
}

/// The world around the object machine: clocks, tasks, randomness, and host functions.
pub trait Host: Sized {
    /// The CPU on which the program executes now. Constant within a callback.
    fn cpu(&self) -> u32;

    /// The monotonic clock, nanoseconds. Constant within a callback.
    fn now_ns(&self) -> u64;

    /// Functions in the host's table, without arguments, that return [`Host::now_ns`] and do
    /// nothing else. A native back end reads the clock itself instead of calling them.
    #[must_use]
    fn clock_functions() -> &'static [&'static str] {
        &[]
    }

    /// With [`Config::moving_clock`](crate::Config::moving_clock): the monotonic clock in the
    /// middle of a call, by what has been executed so far.
    fn clock_within(&mut self, _vm: &Instance<Self>) -> u64 {
        self.now_ns()
    }

    /// Random bits, from the run's seed.
    fn random_u32(&mut self) -> u32;

    /// The address of the current task's kernel object; what `bpf_get_current_task` returns.
    fn current_task(&self) -> u64;

    /// Thread group id in the high half, thread id in the low half.
    fn current_pid_tgid(&self) -> u64;

    /// The address of the current task's name, text that ends with a zero byte; 0 if it has none.
    fn current_comm(&self) -> u64 {
        0
    }

    /// The node of memory that [`Host::cpu`] belongs to.
    fn node(&self) -> u32 {
        0
    }

    /// A program stores into the read-only half, where kernel objects live. The host permits what
    /// the kernel permits, and then writes the object itself through `memory`.
    ///
    /// # Errors
    /// [`Stop::WildStore`] when the kernel's verifier would have refused the store.
    fn store_protected(
        &mut self,
        memory: &mut crate::Memory,
        address: u64,
        size: u8,
        value: u64,
    ) -> Result<(), Stop>;

    /// With [`Config::places`](crate::Config::places): a program is about to store into the
    /// read-only half, at the place `here` ([`Instance::current_place`]).
    #[inline]
    fn stores_at(&mut self, _here: u32) {}

    /// A program has stored into the word at `address`, which the host has opened
    /// ([`Memory::open_word`](crate::Memory::open_word)); `memory` has its value already. Nothing
    /// else of the host is called between the store and this. A host with a copy of the word must
    /// bring it up to date.
    #[inline]
    fn word_stored(&mut self, _memory: &mut crate::Memory, _address: u64) {}

    /// Arms the timer at `timer` (the address of a `struct bpf_timer` in a map value) so that
    /// [`Instance::fire_timer`] is called on the CPU that armed it. `absolute` says that
    /// `expires_ns` is a point of the clock, else a delay.
    fn timer_start(&mut self, timer: u64, expires_ns: u64, absolute: bool, pinned: bool);

    /// Disarms the timer. Returns whether it was armed.
    fn timer_cancel(&mut self, timer: u64) -> bool;

    /// A reference to the kernel object at `address` was dropped by the machine itself: a kptr in
    /// a map value that is freed.
    fn release(&mut self, memory: &mut crate::Memory, address: u64);

    /// A program has released the spin lock at `address`. Meanwhile it has retired so many
    /// instructions and been charged so many picoseconds more ([`Instance::charged`]).
    #[inline]
    fn spin_lock_held(&mut self, _address: u64, _instructions: u64, _charged_ps: u64) {}

    /// With [`Config::interleave`](crate::Config::interleave): a program is about to do `access`.
    /// The host may let other calls come in between ([`Instance::suspend`]).
    fn at_point(&mut self, _vm: &mut Instance<Self>, _access: &Access) {}

    /// A program wants the spin lock at `address`, and goes on when this returns.
    fn wait_for_spin_lock(&mut self, _vm: &mut Instance<Self>, _address: u64) {}

    /// As [`Host::wait_for_spin_lock`], of a lock that tells of a deadlock. Whether the program has
    /// it: not if it would wait for itself.
    fn wait_for_resilient_lock(&mut self, _vm: &mut Instance<Self>, _address: u64) -> bool {
        true
    }

    /// With [`Config::interleave`](crate::Config::interleave): a program has released the spin lock
    /// at `address`.
    fn spin_lock_released(&mut self, _address: u64) {}

    /// The addresses of the kernel objects that an iterator over `what` (`task`) visits, in its
    /// order; none if there is no such iterator.
    fn visited(&self, _what: &str) -> Vec<u64> {
        Vec::new()
    }

    /// A program printed `text`.
    fn print(&mut self, text: &str);
}

/// Context of a host function: the machine and the host, to use and to call into again.
pub struct CallCtx<'a, H: Host> {
    /// The machine that called.
    pub vm: &'a mut Instance<H>,
    /// The host.
    pub host: &'a mut H,
}

/// The body of a host function: five argument registers in, `r0` out.
///
/// `bool` and 32-bit results are zero-extended, as x86 returns them.
///
/// # Errors
/// A [`Stop`] ends the program at the call.
pub type Body<H> = fn(&mut CallCtx<'_, H>, [u64; 5]) -> Result<u64, Stop>;

/// A [`Body`] as native code calls it: the compiler has made an entry for this one function.
pub struct Direct<H: Host>(pub(crate) jit::HostEntry<H>);

impl<H: Host> Direct<H> {
    /// From the name of a function, or a closure that captures nothing. It must be the same as the
    /// [`HostFunction::body`] beside it. Anything else, such as a pointer to a function, does not
    /// compile.
    #[must_use]
    pub const fn of<F>(body: F) -> Self
    where
        F: Fn(&mut CallCtx<'_, H>, [u64; 5]) -> Result<u64, Stop> + Copy,
    {
        Self(jit::host_entry(body))
    }
}

impl<H: Host> Clone for Direct<H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host> Copy for Direct<H> {}

impl<H: Host> std::fmt::Debug for Direct<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Direct")
    }
}

/// A function that the host offers to programs, found by name **and** prototype.
#[derive(Debug)]
pub struct HostFunction<H: Host> {
    /// The kernel's name.
    pub name: &'static str,
    /// The prototype in the loader's normal form ([`Import::prototype`](crate::Import));
    /// empty for helpers.
    pub prototype: &'static str,
    /// Cost of a call beyond its one instruction, picoseconds; added to [`Instance::charged`]. 0
    /// under the `ideal` profile.
    pub cost_ps: u64,
    /// What it does; `None`: known by name, not modelled.
    pub body: Option<Body<H>>,
    /// The body again, for native code to call without detours; `None` is only slower.
    pub direct: Option<Direct<H>>,
}

/// What a call of an import does.
#[derive(Debug)]
pub(crate) struct Binding<H: Host> {
    pub(crate) body: Option<Body<H>>,
    pub(crate) cost_ps: u64,
    /// An argument that the kernel fills in by itself, and what it is. Native code makes such
    /// calls as the interpreter does.
    pub(crate) given: Option<(usize, u64)>,
    #[cfg_attr(not(feature = "jit"), expect(dead_code, reason = "for native code"))]
    pub(crate) direct: Option<Direct<H>>,
    /// How often it was called, without the calls that native code makes itself.
    pub(crate) calls: u64,
    /// What the body does, if both back ends can do it as well.
    pub(crate) intrinsic: Option<Intrinsic>,
    /// It only ends what was begun, or goes on with a loop, so it is no place that says what a
    /// program did last.
    pub(crate) ends: bool,
}

/// Whether a function of this name only goes on with what was begun, or ends it: a loop, a
/// section, a reference.
pub(crate) fn only_ends(name: &str) -> bool {
    let is_loop = name.starts_with("bpf_iter_") && name.ends_with("_destroy");
    is_loop
        || crate::op::is_next(name)
        || name.ends_with("_release")
        || name.ends_with("_unlock")
        || name.contains("_put_")
}

impl<H: Host> Clone for Binding<H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host> Copy for Binding<H> {}

impl<H: Host> Binding<H> {
    /// A function that nobody offers.
    pub(crate) const fn absent() -> Self {
        Self {
            body: None,
            cost_ps: 0,
            given: None,
            direct: None,
            calls: 0,
            intrinsic: None,
            ends: false,
        }
    }

    /// The kernel fills in an argument.
    pub(crate) const fn with(self, argument: usize, value: u64) -> Self {
        Self {
            given: Some((argument, value)),
            direct: None,
            intrinsic: None,
            ..self
        }
    }
}
