//! Where the time of one CPU goes, by the rules of docs/events.md.

use model::{CpuTimes, Nanos, SimTime, TaskId};

/// The account of one CPU.
#[derive(Clone, Debug)]
pub(crate) struct CpuLedger {
    /// The task that holds the CPU, or [`TaskId::NONE`].
    task: TaskId,
    /// Everything before this time is in `times`.
    settled: SimTime,
    /// Announced by a switch, not yet passed.
    overhead_due: Nanos,
    /// Announced by interrupts, not yet passed; begins after the overhead.
    stolen_due: Nanos,
    times: CpuTimes,
}

/// What the task on a CPU got of a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Portion {
    /// It ran.
    pub run: Nanos,
    /// It held the CPU, and the kernel used it.
    pub stolen: Nanos,
}

impl Default for CpuLedger {
    /// That of a CPU that has idled since the run began.
    fn default() -> Self {
        Self {
            task: TaskId::NONE,
            settled: SimTime::ZERO,
            overhead_due: Nanos::ZERO,
            stolen_due: Nanos::ZERO,
            times: CpuTimes::default(),
        }
    }
}

impl CpuLedger {
    /// Which task holds the CPU.
    #[inline]
    pub fn task(&self) -> Option<TaskId> {
        (self.task != TaskId::NONE).then_some(self.task)
    }

    /// The account up to the last call of [`Self::settle`].
    pub const fn times(&self) -> CpuTimes {
        self.times
    }

    /// Time of the kernel that was announced and has not passed.
    pub fn due(&self) -> Nanos {
        self.overhead_due + self.stolen_due
    }

    /// Books the time up to `now`, and says what the task on the CPU got of it.
    ///
    /// # Panics
    /// If `now` is before the time of an earlier call.
    #[inline]
    pub fn settle(&mut self, now: SimTime) -> Portion {
        let left = now.since(self.settled);
        self.settled = now;
        if self.overhead_due.is_zero() && self.stolen_due.is_zero() {
            return self.spend(left, Nanos::ZERO);
        }
        self.settle_due(left)
    }

    /// As [`Self::settle`], where mostly something is due.
    #[inline(always)]
    pub fn settle_all(&mut self, now: SimTime) -> Portion {
        let left = now.since(self.settled);
        self.settled = now;
        self.spend_due(left)
    }

    #[inline(never)]
    fn settle_due(&mut self, left: Nanos) -> Portion {
        self.spend_due(left)
    }

    #[inline(always)]
    fn spend_due(&mut self, mut left: Nanos) -> Portion {
        let overhead = left.min(self.overhead_due);
        self.overhead_due -= overhead;
        left -= overhead;
        let stolen = left.min(self.stolen_due);
        self.stolen_due -= stolen;
        left -= stolen;
        self.times.overhead += overhead;
        self.times.stolen += stolen;
        self.spend(left, overhead + stolen)
    }

    /// Books what was left of a stretch of time after the kernel had `taken` its part.
    #[inline]
    fn spend(&mut self, left: Nanos, taken: Nanos) -> Portion {
        if self.task == TaskId::NONE {
            self.times.idle += left;
            return Portion::default();
        }
        self.times.run += left;
        Portion {
            run: left,
            stolen: taken,
        }
    }

    /// Gives the settled CPU to `next`, or to nobody if that is [`TaskId::NONE`], after `overhead`.
    /// What was due is dropped: the rules forbid it, and `Conservation` reports it.
    pub const fn switch(&mut self, next: TaskId, overhead: Nanos) {
        self.task = next;
        self.overhead_due = overhead;
        self.stolen_due = Nanos::ZERO;
        self.times.switches += 1;
    }

    /// Takes the settled CPU for `span`, from now or from the end of what is due.
    pub fn steal(&mut self, span: Nanos) {
        let most = Nanos::MAX
            .saturating_sub(self.overhead_due)
            .saturating_sub(self.stolen_due);
        self.stolen_due += span.min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);

    fn at(ns: u64) -> SimTime {
        SimTime::from_nanos(ns)
    }

    #[test]
    fn announced_time_passes_before_the_task_runs() {
        let mut ledger = CpuLedger::default();
        ledger.settle(at(10));
        ledger.switch(A, Nanos::new(5));
        ledger.steal(Nanos::new(7));
        assert_eq!(
            ledger.settle(at(13)),
            Portion {
                run: Nanos::ZERO,
                stolen: Nanos::new(3)
            }
        );
        assert_eq!(ledger.due(), Nanos::new(9));
        assert_eq!(
            ledger.settle(at(30)),
            Portion {
                run: Nanos::new(8),
                stolen: Nanos::new(9)
            }
        );
        let times = ledger.times();
        assert_eq!(
            [times.idle, times.overhead, times.stolen, times.run].map(Nanos::get),
            [10, 5, 7, 8]
        );
    }

    #[test]
    fn an_interrupt_of_an_idle_cpu_is_no_idle_time() {
        let mut ledger = CpuLedger::default();
        ledger.steal(Nanos::new(4));
        assert_eq!(ledger.settle(at(10)), Portion::default());
        assert_eq!(
            (ledger.times().stolen.get(), ledger.times().idle.get()),
            (4, 6)
        );
    }

    #[test]
    fn an_absurd_announcement_does_not_overflow() {
        let mut ledger = CpuLedger::default();
        ledger.switch(A, Nanos::new(9));
        ledger.steal(Nanos::MAX);
        ledger.steal(Nanos::MAX);
        assert_eq!(ledger.due(), Nanos::MAX);
    }
}
