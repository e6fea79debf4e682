//! What is said of a statement.

use serde::Serialize;

/// Verdict on a published statement, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// It holds here, and where a number was published, ours is within the margin of it.
    Reproduced,
    /// It holds here, but not in its size; or a quick look saw no more.
    SameDirection,
    /// The runs do not say.
    Undecided,
    /// The means of a quick look say the opposite.
    OppositeDirection,
    /// The opposite holds here, or there is no difference where one was published.
    NotReproduced,
    /// It holds here, and would still hold if a scheduler were changed so that it is wrong.
    CannotTell,
    /// It would hold here whatever the schedulers did, so it is not counted.
    CannotFail,
    /// It cannot be tried on this machine.
    NotTestable,
}

impl ClaimVerdict {
    /// Every verdict, in the order of tables.
    pub const ALL: [Self; 8] = [
        Self::Reproduced,
        Self::SameDirection,
        Self::Undecided,
        Self::OppositeDirection,
        Self::NotReproduced,
        Self::CannotTell,
        Self::CannotFail,
        Self::NotTestable,
    ];

    /// The verdict in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::SameDirection => "same direction",
            Self::Undecided => "undecided",
            Self::OppositeDirection => "opposite direction",
            Self::NotReproduced => "not reproduced",
            Self::CannotTell => "cannot tell here",
            Self::CannotFail => "cannot fail here",
            Self::NotTestable => "not testable here",
        }
    }

    /// Whether the runs could have said otherwise.
    pub const fn counts(self) -> bool {
        !matches!(
            self,
            Self::CannotTell | Self::CannotFail | Self::NotTestable
        )
    }

    /// Whether the statement holds here, in its size or not.
    pub const fn holds(self) -> bool {
        matches!(self, Self::Reproduced | Self::SameDirection)
    }
}

/// Verdict of a statement whose parts have these verdicts: that of the worst part. Parts that
/// cannot fail or cannot be tried do not count unless there are no others; no part at all cannot be
/// tried.
pub fn together(parts: impl IntoIterator<Item = ClaimVerdict>) -> ClaimVerdict {
    let (counted, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(|it| it.counts());
    let worst = counted.into_iter().max();
    let rest = worst.or_else(|| others.into_iter().min());
    rest.unwrap_or(ClaimVerdict::NotTestable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_as_strong_as_its_weakest_part() {
        use ClaimVerdict::{
            CannotFail, NotReproduced, NotTestable, OppositeDirection, Reproduced, SameDirection,
            Undecided,
        };
        assert_eq!(together([Reproduced, SameDirection]), SameDirection);
        assert_eq!(together([SameDirection, Undecided, Reproduced]), Undecided);
        assert_eq!(together([Undecided, NotReproduced]), NotReproduced);
        assert_eq!(together([Undecided, OppositeDirection]), OppositeDirection);
        assert_eq!(together([NotTestable, Reproduced]), Reproduced);
        assert_eq!(together([CannotFail, Undecided]), Undecided);
        assert_eq!(together([NotTestable, CannotFail]), CannotFail);
        assert_eq!(together([NotTestable]), NotTestable);
        assert_eq!(together([]), NotTestable);
    }
}
