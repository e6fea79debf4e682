//! A hash with a key that is drawn anew in each process, so that no object can hold keys that
//! collide. Nothing but time may depend on it: who uses it never walks in its order.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// Makes [`KeyedHasher`]s with this process's key.
#[derive(Clone, Copy, Debug)]
pub struct Keyed([u64; 2]);

impl Default for Keyed {
    fn default() -> Self {
        static KEY: OnceLock<[u64; 2]> = OnceLock::new();
        let draw = |word: u64| RandomState::new().hash_one(word);
        // The factor is odd, so that it is not zero.
        Self(*KEY.get_or_init(|| [draw(0), draw(1) | 1]))
    }
}

impl BuildHasher for Keyed {
    type Hasher = KeyedHasher;

    #[inline]
    fn build_hasher(&self) -> KeyedHasher {
        let [hash, factor] = self.0;
        KeyedHasher { hash, factor }
    }
}

/// Takes eight bytes at a time; each is multiplied by the secret factor, and both halves of the
/// product are kept.
#[derive(Clone, Copy, Debug)]
pub struct KeyedHasher {
    hash: u64,
    factor: u64,
}

impl Hasher for KeyedHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.hash ^ word) * u128::from(self.factor);
        self.hash = (product as u64) ^ ((product >> 64) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_collided_under_the_fixed_hash_spread_over_the_buckets() {
        // The inverse of the old hash: multiply by an odd constant, then fold the halves. All of
        // these had zeros in their low 16 bits.
        let inverse = {
            let odd = 0x9e37_79b9_7f4a_7c15_u64;
            (0..6).fold(odd, |x, _| {
                x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x)))
            })
        };
        let colliding = |number: u64| {
            let high = number << 32;
            (high ^ (high >> 32)).wrapping_mul(inverse)
        };
        let keyed = Keyed::default();
        let mut buckets = vec![0; 1 << 12];
        for number in 0..1 << 12 {
            let mut hasher = keyed.build_hasher();
            hasher.write(&colliding(number << 16).to_le_bytes());
            let bucket = hasher.finish() as usize % buckets.len();
            buckets[bucket] += 1;
        }
        let fullest = buckets.iter().max();
        assert!(fullest < Some(&16), "{fullest:?} keys in one bucket");
    }

    #[test]
    fn the_hash_is_the_same_within_a_process_and_takes_every_byte() {
        let of = |bytes: &[u8]| {
            let mut hasher = Keyed::default().build_hasher();
            hasher.write(bytes);
            hasher.finish()
        };
        assert_eq!(of(b"nine chars"), of(b"nine chars"));
        assert_ne!(of(b"nine chars"), of(b"nine charm"));
        assert_ne!(of(b"nine chars"), of(b"mine chars"));
    }
}
