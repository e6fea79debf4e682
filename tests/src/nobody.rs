//! A host that offers nothing: for tests and benchmarks of what needs no kernel.

use bpf::{Host, Memory, Stop};

/// Has one CPU, time 0, no tasks and no timers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody {
    /// Whether programs may write words into kernel objects, as policies write virtual times.
    pub takes_words: bool,
}

impl Host for Nobody {
    fn cpu(&self) -> u32 {
        0
    }

    fn now_ns(&self) -> u64 {
        0
    }

    fn random_u32(&mut self) -> u32 {
        0
    }

    fn current_task(&self) -> u64 {
        0
    }

    fn current_pid_tgid(&self) -> u64 {
        0
    }

    fn store_protected(
        &mut self,
        memory: &mut Memory,
        address: u64,
        size: u8,
        value: u64,
    ) -> Result<(), Stop> {
        if !self.takes_words || size != 8 {
            return Err(Stop::WildStore { address, size });
        }
        memory.poke_u64(address, value);
        Ok(())
    }

    fn timer_start(&mut self, _: u64, _: u64, _: bool, _: bool) {}

    fn timer_cancel(&mut self, _: u64) -> bool {
        false
    }

    fn release(&mut self, _: &mut Memory, _: u64) {}

    fn print(&mut self, _: &str) {}
}
