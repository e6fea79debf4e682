//! What is said of a statement.

use serde::Serialize;

/// What the runs say of a published statement, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds here, and where a number was published, ours is within the margin of it.
    Reproduced,
    /// It holds here, but the published number is not met.
    SameDirection,
    /// The runs do not say.
    Undecided,
    /// The opposite holds here, or there is no difference where one was published.
    NotReproduced,
    /// It cannot be tried on this machine.
    NotTestable,
}

impl Verdict {
    /// Every verdict, in the order of tables.
    pub const ALL: [Self; 5] = [
        Self::Reproduced,
        Self::SameDirection,
        Self::Undecided,
        Self::NotReproduced,
        Self::NotTestable,
    ];

    /// The verdict in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::SameDirection => "same direction",
            Self::Undecided => "undecided",
            Self::NotReproduced => "not reproduced",
            Self::NotTestable => "not testable here",
        }
    }
}

/// What a statement gets whose parts have these verdicts: that of the worst part. Parts that cannot
/// be tried do not count unless there are no others; no part at all cannot be tried.
#[must_use]
pub fn together(parts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let tried = parts.into_iter().filter(|it| *it != Verdict::NotTestable);
    tried.max().unwrap_or(Verdict::NotTestable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_as_strong_as_its_weakest_part() {
        use Verdict::{NotReproduced, NotTestable, Reproduced, SameDirection, Undecided};
        assert_eq!(together([Reproduced, SameDirection]), SameDirection);
        assert_eq!(together([SameDirection, Undecided, Reproduced]), Undecided);
        assert_eq!(together([Undecided, NotReproduced]), NotReproduced);
        assert_eq!(together([NotTestable, Reproduced]), Reproduced);
        assert_eq!(together([NotTestable]), NotTestable);
        assert_eq!(together([]), NotTestable);
    }
}
