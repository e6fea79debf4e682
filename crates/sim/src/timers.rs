//! BPF timers.

use std::collections::BTreeMap;

use model::SimTime;

use crate::machine::{Machine, Vm};
use crate::queue::Pending;

/// The least delay of a BPF timer, so that one that arms itself without delay lets time pass.
const LEAST_TIMER_DELAY: u64 = 1_000;

/// BPF timers that are armed. Each arming has a number of its own, so that the expiry of one that
/// was armed anew or cancelled is recognised.
#[derive(Debug, Default)]
pub(crate) struct ArmedTimers {
    number_of: BTreeMap<u64, u64>,
    address_of: BTreeMap<u64, u64>,
    last: u64,
}

impl ArmedTimers {
    /// The timer at `address` is armed; returns the number of the arming.
    pub fn arm(&mut self, address: u64) -> u64 {
        self.cancel(address);
        self.last += 1;
        self.number_of.insert(address, self.last);
        self.address_of.insert(self.last, address);
        self.last
    }

    /// The timer at `address` is not armed any more; whether it was.
    pub fn cancel(&mut self, address: u64) -> bool {
        let number = self.number_of.remove(&address);
        number.is_some_and(|number| self.address_of.remove(&number).is_some())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.number_of.is_empty()
    }

    /// The timer that was armed as `number` expires; its address, if it is still so armed.
    pub fn expire(&mut self, number: u64) -> Option<u64> {
        let address = self.address_of.remove(&number)?;
        self.number_of.remove(&address);
        Some(address)
    }
}

impl Machine {
    /// A BPF timer expires.
    #[inline(never)]
    pub(crate) fn fire(&mut self, vm: &mut Vm, generation: u64) {
        if let Some(address) = self.timers.expire(generation) {
            self.call_unlocked(vm, |vm, machine| vm.fire_timer(address, machine));
        }
    }

    /// Arms a BPF timer on this CPU.
    pub(crate) fn arm_bpf_timer(&mut self, address: u64, expires_ns: u64, absolute: bool) {
        let now = self.now.as_nanos();
        let wanted = if absolute {
            Self::since_begin(expires_ns)
        } else {
            now.saturating_add(expires_ns)
        };
        // Times beyond the end of the clock never come.
        let when = wanted.clamp(now + LEAST_TIMER_DELAY, u64::MAX / 2);
        let generation = self.timers.arm(address);
        let when = SimTime::from_nanos(when);
        self.queue
            .push(when, self.exec, Pending::BpfTimer { generation });
    }
}
