//! What the translator knows of a register's value where it stands.

/// A register's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Known {
    #[default]
    Nothing,
    /// This number.
    Number(u64),
    /// The frame pointer plus so many bytes.
    Frame(i64),
}

impl Known {
    pub(super) const fn plus(self, distance: i64) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Number(number) => Self::Number(number.wrapping_add_signed(distance)),
            Self::Frame(at) => Self::Frame(at.wrapping_add(distance)),
        }
    }
}
