//! A copy of an instance: two runs that go on from one moment.

use std::sync::Arc;

use super::Instance;
use crate::aside::Aside;
use crate::host::Host;
use crate::jit;

impl<H: Host> Instance<H> {
    /// Another instance, which goes on as this one does. It takes as long as what is in use takes
    /// to copy.
    ///
    /// # Errors
    /// If the address space is refused, or another process sees pages of this memory.
    ///
    /// # Panics
    /// If a program runs.
    pub fn copy(&self) -> std::io::Result<Self> {
        assert_eq!(self.stack.depth, 0, "a call is in progress");
        assert!(!self.aside.any(), "a call waits");
        let memory = self.memory.copy()?;
        let mut stack = self.stack.clone();
        stack.contexts_at = memory.host_address(stack.contexts);
        let mut copy = Self {
            memory,
            stack,
            maps: self.maps.clone(),
            timers: self.timers.clone(),
            objects: self.objects.clone(),
            variables: self.variables.clone(),
            streams: self.streams.clone(),
            faults: self.faults.clone(),
            code: Arc::clone(&self.code),
            cells: self.cells.clone(),
            spare_cells: None,
            common: Arc::clone(&self.common),
            image: Arc::clone(&self.image),
            bindings: self.bindings.clone(),
            config: self.config.clone(),
            removed: self.removed.clone(),
            aside: Aside::default(),
            // What native code leaves there between calls is where its frames end.
            scratch: jit::Scratch::default(),
            native: self.native.clone(),
            entries: self.entries.clone(),
            allowance: self.allowance,
            refusal: self.refusal.clone(),
            heat: self.heat.clone(),
        };
        copy.rest();
        Ok(copy)
    }
}
