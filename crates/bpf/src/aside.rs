//! What an instance knows of calls that wait while others go on; see `turns.rs`.

use std::ptr::NonNull;

use crate::call_stack::CallStack;

/// Calls that wait, and stacks for others.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// How the turn that goes on now can wait, without its type; `None` outside of turns.
    way: Way,
    /// Stacks for the calls of others.
    pub(crate) spare: Vec<CallStack>,
    /// Turns that wait.
    pub(crate) waiting: usize,
    /// Instructions retired on all stacks but the one that is in use.
    pub(crate) retired: u64,
}

#[derive(Debug, Default)]
struct Way(Option<NonNull<()>>);

// SAFETY: The pointer is to the stack of a turn, and is there only while that turn goes on, which
// has the instance mutably and cannot give it to another thread.
unsafe impl Send for Way {}
// SAFETY: Nothing is read through the pointer but by `suspend`, which has the instance mutably.
unsafe impl Sync for Way {}

impl Aside {
    /// Whether a turn waits.
    pub(crate) const fn any(&self) -> bool {
        self.waiting > 0
    }

    /// Instructions retired on stacks that are not in use now.
    pub(crate) const fn retired(&self) -> u64 {
        self.retired
    }

    /// How the turn that goes on can wait.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) const fn way(&self) -> Option<NonNull<()>> {
        self.way.0
    }

    /// A turn goes on that can wait so, or none.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) const fn set_way(&mut self, way: Option<NonNull<()>>) {
        self.way.0 = way;
    }
}
