//! Sets of CPUs, as affinity masks are written and compared.

use std::fmt;
use std::sync::Arc;

use model::{CPUS_MAX, CpuId};

/// A set of CPUs. A clone shares its words, so a set is cheap to hand about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet(Arc<[u64]>); // Without trailing zero words: equal sets are equal slices.

impl CpuSet {
    /// The CPUs `0..cpus`.
    #[must_use]
    pub fn all(cpus: u16) -> Self {
        (0..cpus).map(CpuId).collect()
    }

    /// The set of `cpu` alone.
    #[must_use]
    pub fn single(cpu: CpuId) -> Self {
        std::iter::once(cpu).collect()
    }

    /// Reads a list as the kernel prints it: `0-3,5`. `None` if `text` is no such list, is empty,
    /// or names a CPU of [`CPUS_MAX`] or more.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = Words::default();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            (first..=last).for_each(|cpu| words.add(CpuId(cpu)));
        }
        Some(words.finish())
    }

    /// Whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        let word = self.0.get(cpu.index() / 64).copied().unwrap_or(0);
        word >> (cpu.index() % 64) & 1 != 0
    }

    /// How many CPUs are in the set.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether no CPU is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The CPUs of the set, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        (0..CPUS_MAX)
            .map(CpuId)
            .take(self.0.len() * 64)
            .filter(|&cpu| self.contains(cpu))
    }

    /// The lowest CPU of the set.
    #[must_use]
    pub fn first(&self) -> Option<CpuId> {
        self.iter().next()
    }

    /// The CPUs of the set that a machine of `cpus` CPUs has.
    #[must_use]
    pub fn within(&self, cpus: u16) -> Self {
        self.iter().filter(|cpu| cpu.0 < cpus).collect()
    }

    /// CPUs that a task may use on a machine of `cpus` CPUs: those `declared` for it, or all.
    #[must_use]
    pub fn allowed(declared: Option<&Self>, cpus: u16) -> Self {
        declared.map_or_else(|| Self::all(cpus), |set| set.within(cpus))
    }

    /// The set as a bit mask, 64 CPUs a word, lowest first, without trailing zero words.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.0
    }
}

impl FromIterator<CpuId> for CpuSet {
    /// # Panics
    /// If a CPU's number is [`CPUS_MAX`] or more.
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        let mut words = Words::default();
        cpus.into_iter().for_each(|cpu| words.add(cpu));
        words.finish()
    }
}

impl fmt::Display for CpuSet {
    /// Prints the list that [`CpuSet::parse`] reads: `0-3,5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(u16, u16)> = Vec::new();
        for CpuId(cpu) in self.iter() {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => runs.push((cpu, cpu)),
            }
        }
        for (i, (first, last)) in runs.into_iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

/// A set under construction.
#[derive(Default)]
struct Words(Vec<u64>);

impl Words {
    fn add(&mut self, cpu: CpuId) {
        assert!(
            cpu.0 < CPUS_MAX,
            "CPU {cpu} is beyond the {CPUS_MAX} that a set holds"
        );
        let index = cpu.index() / 64;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] |= 1 << (cpu.index() % 64);
    }

    /// Words are only ever added for a CPU, so the last one is never zero.
    fn finish(self) -> CpuSet {
        CpuSet(self.0.into())
    }
}

fn number(text: &str) -> Option<u16> {
    let digits = text.trim();
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain
        .then(|| digits.parse().ok())
        .flatten()
        .filter(|&cpu| cpu < CPUS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_prints_as_it_was_read() {
        for text in ["0", "0-3,5", "1,3,5", "63-64", "1023"] {
            assert_eq!(CpuSet::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(CpuSet::parse("3, 2,1").unwrap().to_string(), "1-3");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "a", "1-", "-1", "3-1", "1024", "1,,2", "+1"] {
            assert_eq!(CpuSet::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_set_knows_its_members_and_its_machine() {
        let set = CpuSet::parse("1,64,200").unwrap();
        assert_eq!((set.len(), set.first()), (3, Some(CpuId(1))));
        assert!(set.contains(CpuId(64)) && !set.contains(CpuId(63)) && !set.contains(CpuId(900)));
        assert_eq!(set.within(65), CpuSet::parse("1,64").unwrap());
        assert_eq!(CpuSet::parse("64").unwrap().within(64), CpuSet::default());
        assert_eq!(CpuSet::all(65).words(), [u64::MAX, 1]);
    }
}
