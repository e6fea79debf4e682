//! Sets of CPUs, interned: 100,000 tasks share a handful of masks.

use std::rc::Rc;

use model::CpuId;

/// A set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mask(Vec<u64>);

impl Mask {
    /// The empty set, for a machine of `cpus` CPUs.
    pub fn empty(cpus: u16) -> Self {
        Self(vec![0; usize::from(cpus).div_ceil(64)])
    }

    /// All CPUs `0..cpus`.
    pub fn all(cpus: u16) -> Self {
        let mut mask = Self::empty(cpus);
        (0..cpus).for_each(|cpu| mask.insert(CpuId(cpu)));
        mask
    }

    /// Whether `cpu` is in the set; false beyond its end.
    pub fn has(&self, cpu: CpuId) -> bool {
        self.0
            .get(cpu.index() / 64)
            .is_some_and(|word| word >> (cpu.0 % 64) & 1 != 0)
    }

    /// Adds `cpu`.
    pub fn insert(&mut self, cpu: CpuId) {
        self.0[cpu.index() / 64] |= 1 << (cpu.0 % 64);
    }

    /// Takes `cpu` out.
    pub fn remove(&mut self, cpu: CpuId) {
        self.0[cpu.index() / 64] &= !(1 << (cpu.0 % 64));
    }

    /// Takes `cpu` out; whether it was in the set.
    #[inline]
    pub fn take(&mut self, cpu: CpuId) -> bool {
        let word = &mut self.0[cpu.index() / 64];
        let had = *word >> (cpu.0 % 64) & 1 != 0;
        *word &= !(1 << (cpu.0 % 64));
        had
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// How many CPUs are in the set.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The lowest CPU of the set.
    pub fn first(&self) -> Option<CpuId> {
        self.next_from(0)
    }

    /// The lowest CPU of the set that is `from` or above.
    pub fn next_from(&self, from: u16) -> Option<CpuId> {
        let start = usize::from(from / 64);
        let mut word = self.0.get(start)? & (u64::MAX << (from % 64));
        let mut index = start;
        while word == 0 {
            index += 1;
            word = *self.0.get(index)?;
        }
        Some(CpuId(index as u16 * 64 + word.trailing_zeros() as u16))
    }

    /// The lowest CPU that is in both sets and is `from` or above.
    #[inline]
    pub fn next_in_both(&self, other: &Self, from: u16) -> Option<CpuId> {
        let start = usize::from(from / 64);
        let mut both = self.0.get(start)? & other.0.get(start)? & (u64::MAX << (from % 64));
        let mut index = start;
        while both == 0 {
            index += 1;
            both = self.0.get(index)? & other.0.get(index)?;
        }
        Some(CpuId(index as u16 * 64 + both.trailing_zeros() as u16))
    }

    /// The CPUs of the set, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> {
        let mut next = self.first();
        std::iter::from_fn(move || {
            let cpu = next?;
            next = self.next_from(cpu.0 + 1);
            Some(cpu)
        })
    }

    /// The CPUs that are in both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    /// Whether every CPU of this set is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    /// The set as 64-bit words, lowest CPUs first.
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// The set as 64-bit words, to change.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

/// A mask in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskId(u32);

impl MaskId {
    /// All CPUs of the machine; always in the table.
    pub const ALL: Self = Self(0);
}

/// The table of masks that tasks have.
#[derive(Clone)]
pub struct Masks {
    masks: Vec<Rc<Mask>>,
    counts: Vec<u32>,
}

impl Masks {
    /// A table for a machine of `cpus` CPUs.
    pub fn new(cpus: u16) -> Self {
        Self {
            masks: vec![Rc::new(Mask::all(cpus))],
            counts: vec![u32::from(cpus)],
        }
    }

    /// The id of `mask`, which is added when it is new. A run has few masks; a search suffices.
    pub fn intern(&mut self, mask: Mask) -> MaskId {
        let index = self
            .masks
            .iter()
            .position(|known| **known == mask)
            .unwrap_or_else(|| {
                self.counts.push(mask.count());
                self.masks.push(Rc::new(mask));
                self.masks.len() - 1
            });
        MaskId(u32::try_from(index).expect("fewer than 2^32 masks"))
    }

    /// The mask.
    pub fn get(&self, id: MaskId) -> &Mask {
        &self.masks[id.0 as usize]
    }

    /// The mask, to keep.
    pub fn shared(&self, id: MaskId) -> Rc<Mask> {
        Rc::clone(&self.masks[id.0 as usize])
    }

    /// How many CPUs the mask has.
    pub fn count(&self, id: MaskId) -> u32 {
        self.counts[id.0 as usize]
    }

    /// Whether `cpu` is in the mask.
    pub fn has(&self, id: MaskId, cpu: CpuId) -> bool {
        id == MaskId::ALL || self.get(id).has(cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_walked_across_words() {
        let mut mask = Mask::empty(200);
        for cpu in [0, 63, 64, 199] {
            mask.insert(CpuId(cpu));
        }
        assert_eq!(
            mask.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
            [0, 63, 64, 199]
        );
        assert_eq!(mask.count(), 4);
        mask.remove(CpuId(63));
        assert_eq!(mask.next_from(1), Some(CpuId(64)));
        assert!(!mask.has(CpuId(63)) && !mask.has(CpuId(1000)));
    }

    fn mask(cpus: &[u16]) -> Mask {
        let mut mask = Mask::empty(200);
        cpus.iter().for_each(|cpu| mask.insert(CpuId(*cpu)));
        mask
    }

    #[test]
    fn the_next_cpu_of_two_sets_is_in_both_whatever_word_it_is_in() {
        let (a, b) = (mask(&[1, 5, 70, 130, 199]), mask(&[2, 5, 71, 130, 198]));
        let next = |from| a.next_in_both(&b, from).map(|cpu| cpu.0);
        assert_eq!((next(0), next(5), next(6)), (Some(5), Some(5), Some(130)));
        assert_eq!((next(64), next(131), next(500)), (Some(130), None, None));
    }

    #[test]
    fn a_set_is_a_subset_of_those_that_have_all_its_cpus() {
        let all = mask(&[3, 64, 150]);
        for part in [&[][..], &[3], &[64, 150], &[3, 64, 150]] {
            assert!(mask(part).is_subset(&all), "{part:?}");
        }
        for other in [&[4][..], &[3, 65], &[3, 64, 150, 199]] {
            assert!(!mask(other).is_subset(&all), "{other:?}");
        }
    }

    #[test]
    fn equal_masks_get_one_id() {
        let mut masks = Masks::new(70);
        assert_eq!(masks.intern(Mask::all(70)), MaskId::ALL);
        let mut one = Mask::empty(70);
        one.insert(CpuId(65));
        let id = masks.intern(one.clone());
        assert_eq!(masks.intern(one), id);
        assert!(masks.has(id, CpuId(65)) && !masks.has(id, CpuId(1)));
        assert_eq!(masks.count(id), 1);
    }
}
