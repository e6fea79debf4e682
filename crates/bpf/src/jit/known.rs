//! What the translator knows of a register's value where it stands.

use cranelift_codegen::ir::Value;

/// A register's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Known {
    #[default]
    Nothing,
    /// This number.
    Number(u64),
    /// The frame pointer plus so many bytes.
    Frame(i64),
    /// So many bytes behind an address whose place in this process is this value. If that address
    /// lies outside the region, the value is a place where loads give zero, too.
    Checked(Value, i64),
    /// What a context has told: most likely a pointer to a kernel object.
    Argument,
    /// So many bytes behind the beginning of an array's element, which programs may write and
    /// which has so many bytes.
    Element(i64, u64),
    /// The beginning of such an element, or null.
    MaybeElement(u64),
}

impl Known {
    pub(super) const fn plus(self, distance: i64) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Number(number) => Self::Number(number.wrapping_add_signed(distance)),
            Self::Frame(at) => Self::Frame(at.wrapping_add(distance)),
            Self::Checked(host, at) => Self::Checked(host, at.wrapping_add(distance)),
            Self::Element(at, len) => Self::Element(at.wrapping_add(distance), len),
            Self::MaybeElement(_) | Self::Argument if distance == 0 => self,
            Self::MaybeElement(_) | Self::Argument => Self::Nothing,
        }
    }
}
