//! The hash of fingerprints and of names of random streams.

/// FNV-1a with 64 bits. It tells accidents apart, not forgeries.
///
/// Source of the constants: the FNV reference, <http://www.isthe.com/chongo/tech/comp/fnv/>.
#[derive(Clone, Copy, Debug)]
pub struct Fnv1a(u64);

impl Fnv1a {
    /// The hash of no byte.
    #[must_use]
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// The hash of these bytes.
    #[must_use]
    pub fn of(bytes: impl IntoIterator<Item = u8>) -> u64 {
        let mut hash = Self::new();
        for byte in bytes {
            hash.write(&[byte]);
        }
        hash.value()
    }

    /// Goes on with these bytes.
    #[inline]
    pub const fn write(&mut self, mut bytes: &[u8]) {
        while let [byte, rest @ ..] = bytes {
            self.0 = (self.0 ^ *byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
            bytes = rest;
        }
    }

    /// The hash of what came so far.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl Default for Fnv1a {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // Test vector of the FNV reference: 64-bit FNV-1a of "foobar".
        assert_eq!(Fnv1a::of(*b"foobar"), 0x8594_4171_f739_67e8);
    }
}
