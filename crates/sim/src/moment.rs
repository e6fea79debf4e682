//! What happens in one moment of simulated time, and when it is too much.

use model::CpuId;

use crate::machine::{Machine, Vm};

/// Turns of the scheduler in one moment after which no time will ever pass. A real CPU would spend
/// the rest of its life there.
const MOST_TURNS: u32 = 1_000_000;
/// What the policy may retire in one moment: so many callbacks of the greatest length, and so many
/// instructions for each CPU and task. A task's callbacks are a few hundred instructions together,
/// and a policy that looks at all tasks for each pick stays far below.
const MOST_LONG_CALLBACKS: u64 = 10;
const MOST_INSTRUCTIONS_EACH: u64 = 1_000_000;

/// What has been done without time passing. Only this module changes it.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    /// Turns of the scheduler.
    turns: u32,
    /// Instructions that the policy had retired when the moment began.
    retired_before: u64,
}

impl Moment {
    /// Time has passed.
    #[inline]
    pub fn begin(&mut self, vm: &Vm) {
        self.turns = 0;
        self.retired_before = vm.retired();
    }
}

impl Machine {
    /// Notices when no time passes any more: before a turn of the scheduler.
    #[inline]
    pub(crate) fn count_turn(&mut self, vm: &Vm, cpu: CpuId) {
        self.moment.turns += 1;
        let retired = vm.retired() - self.moment.retired_before;
        // Each CPU may do so much.
        if self.moment.turns <= MOST_TURNS && retired <= MOST_INSTRUCTIONS_EACH {
            return;
        }
        self.look_for_livelock(vm, cpu, retired);
    }

    #[cold]
    fn look_for_livelock(&mut self, vm: &Vm, cpu: CpuId, retired: u64) {
        if self.moment.turns <= MOST_TURNS && retired <= self.most_instructions(vm) {
            return;
        }
        let text = format!(
            "CPU {cpu}, at {} s: the scheduler had {} turns and the policy retired {retired} \
             instructions without any time passing",
            self.now, self.moment.turns
        );
        let message = "the machine is busy with scheduling alone";
        self.eject(model::ExitKind::Error, 0, message);
        self.attachment.explain(|| text);
    }

    /// What the policy may retire in one moment.
    fn most_instructions(&self, vm: &Vm) -> u64 {
        let parts = u64::from(self.spec.cpus) + self.tasks.len() as u64;
        let long = vm.budget().saturating_mul(MOST_LONG_CALLBACKS);
        long.saturating_add(parts * MOST_INSTRUCTIONS_EACH)
    }
}
