//! Sets of CPUs, as a dump prints them.

/// CPUs that a task may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// The lowest word first.
    words: Vec<u32>,
}

impl Mask {
    /// What `%*pb` prints: words of 32 bits in hexadecimal, the highest first.
    pub fn read(text: &str) -> Option<Self> {
        let words = text.rsplit(',').map(|word| u32::from_str_radix(word, 16));
        let words: Vec<u32> = words.collect::<Result<_, _>>().ok()?;
        Some(Self { words })
    }

    pub fn has(&self, cpu: u16) -> bool {
        let word = self.words.get(usize::from(cpu / 32));
        word.is_some_and(|word| word >> (cpu % 32) & 1 != 0)
    }

    /// The CPUs, in order.
    pub fn cpus(&self) -> Vec<u16> {
        let last = u16::try_from(self.words.len() * 32).unwrap_or(u16::MAX);
        (0..last).filter(|cpu| self.has(*cpu)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_cpus_of_all_its_words() {
        let mask = Mask::read("80000000,00000001,00000003").unwrap();
        assert_eq!(mask.cpus(), [0, 1, 32, 95]);
        assert!(mask.has(95) && !mask.has(96) && !mask.has(u16::MAX));
        assert_eq!(Mask::read("40").unwrap().cpus(), [6]);
        for text in ["", "x", "1,,1", "123456789"] {
            assert_eq!(Mask::read(text), None, "{text}");
        }
    }
}
