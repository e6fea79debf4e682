//! Locks and critical sections that a program holds.
//!
//! With one thread of execution they exclude nobody. What is left of them is the rule that a
//! program releases what it took; a verifier would refuse a program that does not.

/// How deep a program is in each kind of section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nesting {
    pub(crate) spin_locks: u32,
    pub(crate) resilient_locks: u32,
    pub(crate) rcu: u32,
    pub(crate) preemption: u32,
    pub(crate) interrupts: u32,
    pub(crate) iterators: u32,
}

impl Nesting {
    /// Sections of all kinds.
    pub(crate) fn sections(self) -> u64 {
        let Self {
            spin_locks,
            resilient_locks,
            rcu,
            preemption,
            interrupts,
            iterators,
        } = self;
        let all = [
            spin_locks,
            resilient_locks,
            rcu,
            preemption,
            interrupts,
            iterators,
        ];
        all.map(u64::from).iter().sum()
    }

    /// What a program that began with `before` has not released.
    pub(crate) fn excess_over(self, before: Self) -> Option<String> {
        let kinds = [
            (self.spin_locks, before.spin_locks, "a spin lock"),
            (
                self.resilient_locks,
                before.resilient_locks,
                "a resilient spin lock",
            ),
            (self.rcu, before.rcu, "the RCU read lock"),
            (self.preemption, before.preemption, "disabled preemption"),
            (self.interrupts, before.interrupts, "disabled interrupts"),
            (self.iterators, before.iterators, "an open iterator"),
        ];
        let left = kinds.iter().find(|(now, before, _)| now != before)?;
        Some(format!("the program ended and left {}", left.2))
    }
}
