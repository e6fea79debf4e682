//! How long a CPU's call to another one is under way, measured in a recording.

use std::collections::BTreeMap;

use model::{
    CpuId, Event, EventKind, EventMask, Header, Nanos, SimTime, Sink, TaskId, Wakeup, What,
};

use crate::background::FEWEST;

/// Waits of a kind that are kept.
const KEPT: usize = 1_000_000;

/// Measures how much longer a task waits that was woken on an idle CPU by a task of another CPU
/// than one that an interrupt of the idle CPU itself has woken.
#[derive(Debug, Default)]
pub struct Flight {
    /// Who has each CPU; `NONE`: it idles. A CPU is not there before its first switch.
    running: BTreeMap<CpuId, TaskId>,
    /// Who was woken on a CPU that idles, when, and whether from another one.
    woken: BTreeMap<CpuId, (TaskId, SimTime, bool)>,
    own: Vec<u64>,
    remote: Vec<u64>,
}

impl Flight {
    /// The difference of the means, of each without the twentieth at either end; `None` if one of
    /// the two has fewer than [`FEWEST`] waits, or there is no difference.
    #[must_use]
    pub fn mean(&self) -> Option<Nanos> {
        let longer = mean(&self.remote)?.checked_sub(mean(&self.own)?)?;
        (longer > 0).then_some(Nanos::new(longer))
    }

    /// How many wakeups from other CPUs it is from.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.remote.len()
    }

    fn wakeup(&mut self, event: &Event, wakeup: Wakeup) {
        if self.woken.remove(&event.cpu).is_some() {
            // The next one to run was not woken alone.
            self.running.remove(&event.cpu);
        }
        if self.running.get(&event.cpu) != Some(&TaskId::NONE) {
            return;
        }
        let is_remote = wakeup.waker_cpu != event.cpu;
        // A task that wakes another one on its own CPU is no interrupt, and no task runs there.
        if is_remote == (wakeup.waker != TaskId::NONE) {
            let woken = (event.task, event.time, is_remote);
            self.woken.insert(event.cpu, woken);
        }
    }

    fn switch(&mut self, event: &Event) {
        self.running.insert(event.cpu, event.task);
        let Some((task, since, is_remote)) = self.woken.remove(&event.cpu) else {
            return;
        };
        let waits = if is_remote {
            &mut self.remote
        } else {
            &mut self.own
        };
        if task == event.task && waits.len() < KEPT {
            waits.push(event.time.since(since).get());
        }
    }
}

fn mean(waits: &[u64]) -> Option<u64> {
    let mut sorted = waits.to_vec();
    sorted.sort_unstable();
    let end = sorted.len() / 20;
    let inner = &sorted[end..sorted.len() - end];
    (sorted.len() >= FEWEST).then(|| inner.iter().sum::<u64>() / inner.len() as u64)
}

impl Sink for Flight {
    fn wants(&self) -> EventMask {
        EventMask::NONE
            .with(EventKind::Wakeup)
            .with(EventKind::Switch)
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        for event in events {
            match event.what() {
                What::Wakeup(wakeup) => self.wakeup(event, wakeup),
                What::Switch { .. } => self.switch(event),
                _ => {}
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

#[cfg(test)]
mod tests {
    use model::{PrevState, WakeCause};

    use super::*;

    fn event(time: u64, task: TaskId, what: What) -> Event {
        Event::new(SimTime::from_nanos(time), CpuId(1), task, what)
    }

    /// From `time` on: CPU 1 idles, task 5 is woken there by `waker` on CPU `from`, and runs after
    /// `wait`.
    fn turn(time: u64, (waker, from): (TaskId, u16), wait: u64) -> [Event; 3] {
        let woken = What::Wakeup(Wakeup {
            waker,
            waker_cpu: CpuId(from),
            sync: false,
            new: false,
            cause: WakeCause::Unsaid,
        });
        let switch = What::Switch {
            prev: TaskId::NONE,
            state: PrevState::Idle,
            overhead: Nanos::ZERO,
        };
        [
            event(time, TaskId::NONE, switch),
            event(time + 100, TaskId(5), woken),
            event(time + 100 + wait, TaskId(5), switch),
        ]
    }

    #[test]
    fn it_is_what_a_task_waits_longer_whom_another_cpu_has_woken() {
        let mut flight = Flight::default();
        let few = FEWEST as u64;
        for at in 0..few {
            let at = at * 1_000_000;
            flight.events(&turn(at, (TaskId::NONE, 1), 3_000));
            assert_eq!(flight.mean(), None);
            let wait = 43_000 + at / 100_000;
            flight.events(&turn(at + 500_000, (TaskId(2), 0), wait));
        }
        // 43,000 ns to 43,090 ns in steps of ten.
        assert_eq!(flight.mean(), Some(Nanos::new(40_045)));
        assert_eq!(flight.count(), FEWEST);
    }

    #[test]
    fn few_long_waits_do_not_decide() {
        let waits: Vec<u64> = [vec![10; 95], vec![1_000_000; 5]].concat();
        assert_eq!(mean(&waits), Some(10));
        assert_eq!(mean(&waits[..FEWEST - 1]), None);
    }

    #[test]
    fn what_is_no_call_of_an_idle_cpu_does_not_count() {
        let mut flight = Flight::default();
        // Nothing is known of the CPU before its first switch.
        flight.events(&turn(0, (TaskId(2), 0), 7)[1..]);
        // It is busy.
        flight.events(&turn(1_000, (TaskId(2), 0), 7)[1..]);
        // An interrupt of another CPU, and a task of its own.
        flight.events(&turn(2_000, (TaskId::NONE, 0), 7));
        flight.events(&turn(3_000, (TaskId(2), 1), 7));
        // Two are woken, and somebody else comes.
        let [idle, woken, runs] = turn(4_000, (TaskId(2), 0), 7);
        flight.events(&[idle, woken, woken, runs]);
        let other = Event::new(runs.time, runs.cpu, TaskId(6), runs.what());
        flight.events(&[idle, woken, other]);
        assert_eq!((flight.count(), flight.own.len()), (0, 0));
    }
}
