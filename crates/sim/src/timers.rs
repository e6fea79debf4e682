//! BPF timers.

use std::collections::BTreeMap;

use model::{CpuId, Nanos, SimTime};

use crate::machine::{Machine, Vm};
use crate::pending::Pending;
use crate::schedulers::SchedId;

/// The least delay of a BPF timer, nanoseconds, so that one that arms itself without delay lets
/// time pass.
const LEAST_TIMER_DELAY: u64 = 1_000;
/// What one expiry keeps its CPU busy with at least, nanoseconds, when timers come faster than it
/// can handle them: an interrupt. Each instruction of the callback takes a nanosecond more.
const EXPIRY: u64 = 1_000;
/// How far a CPU may be behind with expiries, nanoseconds, before nothing else will ever run there:
/// two callbacks of the greatest length.
const MOST_BEHIND: u64 = 200_000_000;
/// Events of timers that were armed anew or cancelled which the queue may hold.
const MOST_STALE: u32 = 1_000_000;

/// BPF timers that are armed. Each arming has a number of its own, so that the expiry of one that
/// was armed anew or cancelled is recognised.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArmedTimers {
    number_of: BTreeMap<u64, u64>,
    address_of: BTreeMap<u64, u64>,
    last: u64,
    /// Events in the queue whose timers were armed anew or cancelled.
    stale: u32,
    /// For each CPU that a timer has expired on: until when it would be busy with expiries alone.
    busy_until: BTreeMap<CpuId, SimTime>,
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
        let Some(number) = self.number_of.remove(&address) else {
            return false;
        };
        self.address_of.remove(&number);
        self.stale += 1;
        true
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.number_of.is_empty()
    }

    /// The timer that was armed as `number` expires; its address, if it is still so armed.
    pub fn expire(&mut self, number: u64) -> Option<u64> {
        let Some(address) = self.address_of.remove(&number) else {
            self.stale -= 1;
            return None;
        };
        self.number_of.remove(&address);
        Some(address)
    }

    /// A timer has expired on `cpu`, whose callback retired so many instructions; whether that CPU
    /// is behind with timers for good.
    fn overrun(&mut self, cpu: CpuId, now: SimTime, instructions: u64) -> bool {
        let busy_until = self.busy_until.entry(cpu).or_insert(now);
        *busy_until = (*busy_until).max(now) + Nanos::new(EXPIRY + instructions);
        busy_until.since(now) > Nanos::new(MOST_BEHIND)
    }
}

impl Machine {
    /// A BPF timer expires.
    #[inline(never)]
    pub(crate) fn fire(&mut self, vm: &mut Vm, generation: u64) {
        if let Some(address) = self.timers.expire(generation) {
            let (cpu, before) = (self.turn.exec, vm.retired());
            self.moment.grant();
            let who = self.scheduler_of_timer(vm, address);
            if self.scheds[who].attachment.has_ended() {
                // Its maps are gone, and the timers in them.
                return;
            }
            self.call_unlocked_of(vm, who, |vm, machine| vm.fire_timer(address, machine));
            if self.timers.overrun(cpu, self.now, vm.retired() - before) {
                let text = format!(
                    "CPU {cpu}, at {} s: timers expire faster than their callbacks end",
                    self.now
                );
                self.fail(SchedId::ROOT, "the machine is busy with timers alone", text);
            }
            self.check_moment(vm, cpu);
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
        if self.timers.stale >= MOST_STALE {
            let text = format!(
                "CPU {}, at {} s: timers are armed anew",
                self.turn.exec, self.now
            );
            return self.fail(SchedId::ROOT, "the machine is busy with timers alone", text);
        }
        let generation = self.timers.arm(address);
        let when = SimTime::from_nanos(when);
        self.queue
            .push(when, self.turn.exec, Pending::BpfTimer { generation });
    }
}
