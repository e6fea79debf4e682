//! Error numbers as programs see them.

/// A kernel error number; programs get its negation. The numbers are those of Linux
/// (include/uapi/asm-generic/errno-base.h and errno.h, 6.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Not permitted: the map is frozen.
    pub const EPERM: Self = Self(1);
    /// No such entry.
    pub const ENOENT: Self = Self(2);
    /// Argument too large; also: the map is full.
    pub const E2BIG: Self = Self(7);
    /// Out of memory.
    pub const ENOMEM: Self = Self(12);
    /// Bad address.
    pub const EFAULT: Self = Self(14);
    /// Already in use.
    pub const EBUSY: Self = Self(16);
    /// Exists already.
    pub const EEXIST: Self = Self(17);
    /// No such device: nobody is there to ask.
    pub const ENODEV: Self = Self(19);
    /// Bad argument.
    pub const EINVAL: Self = Self(22);
    /// Would deadlock.
    pub const EDEADLK: Self = Self(35);
    /// Not supported.
    pub const EOPNOTSUPP: Self = Self(95);

    /// Value in `r0` after a function has returned this error.
    #[must_use]
    pub const fn to_r0(self) -> u64 {
        -(self.0 as i64) as u64
    }
}

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "error {}", -self.0)
    }
}

/// `r0` of a function that gives 0 or an error.
pub(crate) const fn status(result: Result<(), Errno>) -> u64 {
    match result {
        Ok(()) => 0,
        Err(errno) => errno.to_r0(),
    }
}
