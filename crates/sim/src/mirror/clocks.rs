//! When the clocks of run queues go on.

use model::CpuId;

use crate::cpu::Curr;
use crate::flags::UPTIME_NS;
use crate::machine::Machine;

impl Machine {
    /// The kernel updates the clocks of the run queue of `cpu`, whose current task may be another
    /// one from now on. Only if programs can see them.
    #[inline]
    pub(crate) fn update_rq_clock(&mut self, cpu: CpuId) {
        if self.mirror.shows_clocks() {
            self.update_seen_clock(cpu);
        }
    }

    #[cold]
    pub(crate) fn update_seen_clock(&mut self, cpu: CpuId) {
        let wall = self.clock_ns();
        let task = UPTIME_NS + self.cpus[cpu].task_clock(self.now);
        let scales = [self.told_capacity(cpu), self.current_speed(cpu)];
        let idles = self.rq_curr(cpu) == Curr::Idle;
        if let Some(clock) = self.mirror.clock_mut(cpu) {
            clock.advance(wall, task, scales);
            clock.idles = idles;
        }
    }
}
