//! What the calls in progress have counted and hold. Native code reads and writes it in place.

use crate::nesting::Nesting;

/// Counts of an instance, and the state of the innermost call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Instructions until the budget is spent; negative when built-in functions have overdrawn it.
    /// Exact whenever somebody else than the back end can look. Between calls that of the next.
    pub(crate) fuel: i64,
    /// The count of retired instructions at which the budget is spent.
    pub(crate) budget_end: u64,
    /// The count of retired instructions at which the whole run's budget is spent; as much as can
    /// be if it has none.
    pub(crate) total_end: u64,
    /// Costs beyond instructions, picoseconds.
    pub(crate) charged_ps: u64,
    /// First byte of the frame of the function that executes; between calls that of the stack.
    pub(crate) frame: u64,
    pub(crate) nesting: Nesting,
    /// Not 0 if the end of the outermost call has something to do or to say:
    /// [`Progress::SECTION`] for each section in `nesting`, 1 more if something was put aside.
    pub(crate) untidy: u64,
    /// The operation that [`crate::Instance::current_place`] gives.
    pub(crate) place: u32,
}

impl Progress {
    /// What a section that is entered adds to `untidy`, and takes away when it is left.
    pub(crate) const SECTION: u64 = 2;

    /// Something was put aside for the end of the outermost call.
    #[inline]
    pub(crate) const fn put_aside(&mut self) {
        self.untidy |= 1;
    }

    /// Instructions retired since the instance was created.
    #[inline]
    pub(crate) const fn retired(&self) -> u64 {
        self.budget_end.wrapping_sub(self.fuel.cast_unsigned())
    }

    #[inline]
    pub(crate) const fn set_retired(&mut self, retired: u64) {
        self.fuel = self.budget_end.wrapping_sub(retired).cast_signed();
    }

    /// Gives the next outermost call its budget.
    #[inline]
    pub(crate) const fn refuel(&mut self, budget: u64) {
        self.budget_end = self.retired().wrapping_add(budget);
        self.fuel = budget.cast_signed();
    }

    /// Takes `instructions` from the budgets that were not retired.
    #[inline]
    pub(crate) const fn spend(&mut self, instructions: u64) {
        let retired = self.retired();
        let end = self.budget_end.saturating_sub(instructions);
        let taken = self.budget_end - end;
        self.budget_end = end;
        self.total_end = self.total_end.saturating_sub(taken);
        self.set_retired(retired);
    }

    /// Whether the call that has its budget may spend more than what is left of the run's.
    #[inline]
    pub(crate) const fn exceeds_total(&self) -> bool {
        self.budget_end > self.total_end
    }

    /// What is left of the whole run's budget.
    pub(crate) const fn total_left(&self) -> u64 {
        self.total_end.saturating_sub(self.retired())
    }
}
