//! What happens in one moment of simulated time, and when it is too much.

use model::CpuId;

use crate::book_instant::BookInstant;
use crate::machine::{Machine, Vm};
use crate::schedulers::SchedId;

/// Turns of the scheduler in one moment after which no time will ever pass. A real CPU would spend
/// the rest of its life there.
const MOST_TURNS: u32 = 1_000_000;
/// What the policy may retire in one moment: so many callbacks of the greatest length, and so many
/// instructions for each CPU and for each callback that the kernel made because something happened
/// to a task or a timer expired. Those that follow from what the policy does, as in a livelock, add
/// nothing. A task's callbacks are a few hundred instructions together; a policy that looks at all
/// tasks for each pick stays below what a CPU may do.
const MOST_LONG_CALLBACKS: u64 = 2;
const MOST_INSTRUCTIONS_EACH_CPU: u64 = 1_000_000;
const MOST_INSTRUCTIONS_EACH_CALLBACK: u64 = 100_000;

/// What has been done without time passing. Only this module changes it, but for `book`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moment {
    /// Turns of the scheduler.
    turns: u32,
    /// Instructions that the policy had retired when the moment began.
    retired_before: u64,
    /// Callbacks, or groups of them, that the kernel made because of something from outside.
    granted: u64,
    /// What else this instant has seen, on a machine as textbooks have it; see
    /// [`crate::textbook`].
    pub(crate) book: BookInstant,
}

impl Moment {
    /// Time has passed.
    #[inline]
    pub fn begin(&mut self, vm: &Vm) {
        self.turns = 0;
        self.granted = 0;
        self.retired_before = vm.retired_by_all();
    }

    /// Something happens to a task, or a timer expires, of which the policy is told.
    #[inline]
    pub const fn grant(&mut self) {
        self.granted += 1;
    }
}

impl Machine {
    /// Notices when no time passes any more: before a turn of the scheduler.
    #[inline]
    pub(crate) fn count_turn(&mut self, vm: &Vm, cpu: CpuId) {
        self.moment.turns += 1;
        self.check_moment(vm, cpu);
    }

    /// Notices when too much is done without any time passing.
    #[inline]
    pub(crate) fn check_moment(&mut self, vm: &Vm, cpu: CpuId) {
        let retired = vm.retired_by_all() - self.moment.retired_before;
        // Each CPU may do so much.
        if self.moment.turns > MOST_TURNS || retired > MOST_INSTRUCTIONS_EACH_CPU {
            self.look_for_livelock(vm, cpu, retired);
        }
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
        self.fail(
            SchedId::ROOT,
            "the machine is busy with scheduling alone",
            text,
        );
    }

    /// What the policy may retire in one moment.
    fn most_instructions(&self, vm: &Vm) -> u64 {
        let long = vm.budget().saturating_mul(MOST_LONG_CALLBACKS);
        let cpus = u64::from(self.spec.cpus) * MOST_INSTRUCTIONS_EACH_CPU;
        let callbacks = self.moment.granted * MOST_INSTRUCTIONS_EACH_CALLBACK;
        long.saturating_add(cpus + callbacks)
    }
}
