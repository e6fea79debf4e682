//! Timers in map values: who set them up, and what they call.
//!
//! The host keeps the clock; here is what the kernel keeps in a `struct bpf_timer`.

use std::collections::BTreeMap;

use crate::Errno;

/// A timer that was initialised.
#[derive(Clone, Debug)]
pub(crate) struct Timer {
    /// The map that holds it.
    pub(crate) map: u32,
    /// Address of the function to call.
    pub(crate) callback: Option<u64>,
    /// Its callback executes now.
    pub(crate) running: bool,
}

/// What is kept of a timer, by this machine and by the host, bytes.
pub(crate) const TIMER_BYTES: u64 = 128;

/// All initialised timers, by the address of their `struct bpf_timer`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers(BTreeMap<u64, Timer>);

/// Clocks that a timer may run on: realtime, monotonic and boottime
/// (Linux 6.18, include/uapi/linux/time.h). The simulated ones are the same.
const CLOCKS: [u64; 3] = [0, 1, 7];

/// `BPF_F_TIMER_ABS` and `BPF_F_TIMER_CPU_PIN` (Linux 6.18, include/uapi/linux/bpf.h).
const ABSOLUTE: u64 = 1;
const PINNED: u64 = 2;

impl Timers {
    pub(crate) fn init(&mut self, timer: u64, map: u32, clock: u64) -> Result<(), Errno> {
        if !CLOCKS.contains(&clock) {
            return Err(Errno::EINVAL);
        }
        if self.0.contains_key(&timer) {
            return Err(Errno::EBUSY);
        }
        self.0.insert(
            timer,
            Timer {
                map,
                callback: None,
                running: false,
            },
        );
        Ok(())
    }

    pub(crate) fn set_callback(&mut self, timer: u64, callback: u64) -> Result<(), Errno> {
        self.get_mut(timer).ok_or(Errno::EINVAL)?.callback = Some(callback);
        Ok(())
    }

    /// Whether the timer may start with `flags`: is it absolute, is it pinned.
    pub(crate) fn start(&self, timer: u64, flags: u64) -> Result<(bool, bool), Errno> {
        let armed = self
            .0
            .get(&timer)
            .is_some_and(|timer| timer.callback.is_some());
        if !armed || flags & !(ABSOLUTE | PINNED) != 0 {
            return Err(Errno::EINVAL);
        }
        Ok((flags & ABSOLUTE != 0, flags & PINNED != 0))
    }

    /// Whether the timer may be cancelled. Its own callback would wait for itself.
    pub(crate) fn cancel(&mut self, timer: u64) -> Result<(), Errno> {
        let timer = self.get_mut(timer).ok_or(Errno::EINVAL)?;
        if timer.running {
            return Err(Errno::EDEADLK);
        }
        timer.callback = None;
        Ok(())
    }

    pub(crate) fn get_mut(&mut self, timer: u64) -> Option<&mut Timer> {
        self.0.get_mut(&timer)
    }

    /// Forgets the timer. Returns whether there was one.
    pub(crate) fn forget(&mut self, timer: u64) -> bool {
        self.0.remove(&timer).is_some()
    }
}
