//! When an instance that interprets goes over to native code. See `backend.rs` for the rule.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Instance;
use crate::backend::{Backend, FIRST_LOOK, PRICE};
use crate::config::Config;
use crate::frame::FRAME_BYTES;
use crate::host::Host;
use crate::jit;
use crate::reach;

/// What was interpreted, and when to ask whether native code would have been better.
#[derive(Clone, Debug)]
pub(super) struct Heat {
    /// Instructions since the last translation, those of nested calls counted twice.
    interpreted: u64,
    /// Where to ask; never, if at [`u64::MAX`].
    look_at: u64,
    /// By function: whether it was called from outside and interpreted.
    called: Vec<bool>,
}

impl Heat {
    pub(super) const fn new(config: &Config) -> Self {
        let look_at = match config.backend {
            Backend::Auto => FIRST_LOOK,
            Backend::Interpreter | Backend::Jit => u64::MAX,
        };
        Self {
            interpreted: 0,
            look_at,
            called: Vec::new(),
        }
    }

    /// Native code is wanted at the next call, whatever was interpreted.
    pub(super) const fn look_soon(&mut self) {
        self.look_at = 0;
    }

    #[inline]
    pub(super) const fn is_due(&self) -> bool {
        self.interpreted >= self.look_at
    }

    /// A call of `function` was interpreted.
    #[inline]
    pub(super) fn note(&mut self, function: u32, instructions: u64) {
        self.interpreted += instructions;
        match self.called.get_mut(function as usize) {
            Some(called) => *called = true,
            None => self.note_first(function),
        }
    }

    #[cold]
    fn note_first(&mut self, function: u32) {
        self.called.resize(function as usize + 1, false);
        self.called[function as usize] = true;
    }

    fn called(&self) -> impl Iterator<Item = u32> {
        let all = (0..).zip(&self.called);
        all.filter_map(|(function, called)| called.then_some(function))
    }
}

impl<H: Host> Instance<H> {
    /// Makes native code of all that a kernel would load, or notes why it cannot.
    #[cold]
    pub(super) fn make_native(&mut self) {
        let functions = reach::loaded(&self.image);
        self.translate(&functions);
        self.heat.look_at = u64::MAX;
    }

    /// Takes native code that there is, makes some if it has become worth it, or says when to ask
    /// again. A function that was never called is not translated with the others: set-up, dumps
    /// and what follows hotplug are often half of an object.
    #[cold]
    pub(super) fn look_for_native(&mut self) {
        if self.config.backend == Backend::Jit {
            return self.make_native();
        }
        let functions = reach::from(&self.image, self.heat.called());
        if self.native.as_ref().is_some_and(|it| it.has(&functions)) {
            // What is interpreted is so for other reasons: too little stack, odd arguments.
            self.heat.look_at = u64::MAX;
            return;
        }
        let known = jit::known(self, &functions);
        if let Some(program) = known.program {
            return self.take_native(program);
        }
        let spent = self.heat.interpreted.saturating_add(known.interpreted);
        let price = PRICE * self.code.instructions(&functions);
        match price.checked_sub(spent) {
            None | Some(0) => self.translate(&functions),
            Some(left) => self.heat.look_at = self.heat.interpreted + left.max(FIRST_LOOK),
        }
    }

    fn translate(&mut self, functions: &BTreeSet<u32>) {
        match jit::translate(self, functions) {
            Ok(program) => self.take_native(program),
            Err(refusal) => {
                self.refusal = Some(refusal);
                self.heat.look_at = u64::MAX;
            }
        }
    }

    fn take_native(&mut self, program: Arc<jit::NativeProgram>) {
        if FRAME_BYTES <= u64::from(self.config.stack_bytes) {
            self.rest();
            self.entries = program.program_entries::<H>();
        }
        self.native = Some(program);
        self.heat.interpreted = 0;
        self.heat.look_at = FIRST_LOOK;
    }
}

impl<H: Host> Instance<H> {
    /// Says where the frames of an outermost call of native code end.
    pub(super) fn rest(&mut self) {
        self.scratch.rest(self.stack.frame_limit());
    }
}

impl<H: Host> Drop for Instance<H> {
    /// What was interpreted here counts for the next instance with the same code.
    fn drop(&mut self) {
        let is_auto = self.config.backend == Backend::Auto && self.refusal.is_none();
        if is_auto && self.heat.interpreted >= FIRST_LOOK && !std::thread::panicking() {
            jit::remember(self, self.heat.interpreted);
        }
    }
}
