//! All classes of faults, for those who name one.

use super::finding::Fault;

impl Fault {
    /// Every class, in the order of its declaration.
    pub const ALL: [Self; 33] = [
        Self::Lost,
        Self::InsertIgnored,
        Self::UnreadQueue,
        Self::UnreachableQueue,
        Self::LocalRefilled,
        Self::Skipped,
        Self::PassedOver,
        Self::ForgottenKick,
        Self::StuckInQueue,
        Self::CpuHeld,
        Self::LockHeld,
        Self::Outranked,
        Self::CpuNotAllowed,
        Self::NoSuchCpu,
        Self::NoSuchQueue,
        Self::InsertedTwice,
        Self::Reenqueued,
        Self::EndlessLoop,
        Self::Livelock,
        Self::WildAccess,
        Self::TooDeep,
        Self::OverLimit,
        Self::InitFailed,
        Self::Misuse,
        Self::Stall,
        Self::OwnError,
        Self::Restart,
        Self::UnfairShare,
        Self::IdleBesideWaiting,
        Self::Preemptions,
        Self::Migrations,
        Self::Waited,
        Self::Unknown,
    ];

    /// The class of this word; `None` if there is none.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_listed_once_and_found_by_its_word() {
        for (at, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, at, "the order of the declaration");
            assert_eq!(Fault::of_word(fault.word()), Some(fault));
        }
        assert_eq!(Fault::Unknown as usize + 1, Fault::ALL.len(), "the last");
        assert_eq!(Fault::of_word("starved"), None);
    }
}
