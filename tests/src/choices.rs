//! Where a generator's decisions come from: a seed, or bytes that somebody chose.

use model::Rng;

/// A source of decisions.
#[derive(Debug)]
pub enum Choices<'a> {
    /// Random ones.
    Random(Rng),
    /// Those of a fuzzer, which learns which byte decides what. All zero when there are no more.
    Bytes(&'a [u8]),
}

impl Choices<'_> {
    /// The next eight bytes as a number.
    pub fn next_u64(&mut self) -> u64 {
        match self {
            Self::Random(rng) => rng.next_u64(),
            Self::Bytes(bytes) => take(bytes, 8),
        }
    }

    /// A number below `bound`.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        match self {
            Self::Random(rng) => rng.below(bound),
            Self::Bytes(bytes) => {
                // As few bytes as can tell the numbers apart.
                let len = (u64::BITS - (bound - 1).leading_zeros()).div_ceil(8);
                take(bytes, len as usize) % bound
            }
        }
    }

    /// One of `from`.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// The next `len` bytes, at most 8, as a number; those that are missing count as zero.
fn take(bytes: &mut &[u8], len: usize) -> u64 {
    let (head, tail) = bytes.split_at(len.min(bytes.len()));
    *bytes = tail;
    let mut word = [0; 8];
    word[..head.len()].copy_from_slice(head);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_one_after_the_other_and_then_zeros() {
        let mut choices = Choices::Bytes(&[7, 0x34, 0x12, 1, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(choices.below(5), 2);
        assert_eq!(choices.below(0x1_0000), 0x1234);
        assert_eq!(choices.next_u64(), 1);
        assert_eq!(choices.below(1), 0, "no choice takes no byte");
        assert_eq!(choices.pick(&['a', 'b']), 'b');
        assert_eq!((choices.next_u64(), choices.below(256)), (0, 0));
    }
}
