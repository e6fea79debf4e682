//! What a call takes when it enters a program, and gives back when it leaves it.

use std::ops::{Deref, DerefMut};

use super::Instance;
use crate::host::Host;

/// A call in progress, which has the instance meanwhile. It alone changes the depth, and whoever
/// enters a program holds one: dropping it is the way out, also when a function of the host panics.
///
/// The way out gives the caller back its depth and its frame. That of an outermost call also fills
/// up the budget for the next one. So between calls the depth is 0, the frame is the first of the
/// stack, and the fuel is what the next call may spend.
pub(super) struct Inside<'a, H: Host> {
    vm: &'a mut Instance<H>,
    /// The caller's; 0 if no program calls.
    depth: u32,
    /// The caller's. Nothing of it is kept for an outermost call, which knows the stack's start.
    frame: u64,
}

impl<'a, H: Host> Inside<'a, H> {
    /// Enters, whoever calls.
    #[inline]
    pub(super) fn enter(vm: &'a mut Instance<H>) -> Self {
        let (depth, frame) = (vm.stack.depth, vm.stack.progress.frame);
        vm.stack.depth = depth + 1;
        Self { vm, depth, frame }
    }

    /// Enters where no other call is in progress, in fewer instructions.
    #[inline(always)]
    pub(super) fn enter_outermost(vm: &'a mut Instance<H>) -> Self {
        debug_assert_eq!(vm.stack.depth, 0, "another call is in progress");
        vm.stack.depth = 1;
        Self {
            vm,
            depth: 0,
            frame: 0,
        }
    }
}

impl<H: Host> Drop for Inside<'_, H> {
    #[inline(always)]
    fn drop(&mut self) {
        let vm = &mut *self.vm;
        vm.stack.depth = self.depth;
        if self.depth > 0 {
            vm.stack.progress.frame = self.frame;
            return;
        }
        vm.stack.progress.frame = vm.stack.start;
        vm.stack.progress.refuel(vm.allowance);
    }
}

impl<H: Host> Deref for Inside<'_, H> {
    type Target = Instance<H>;

    #[inline(always)]
    fn deref(&self) -> &Instance<H> {
        self.vm
    }
}

impl<H: Host> DerefMut for Inside<'_, H> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Instance<H> {
        self.vm
    }
}
