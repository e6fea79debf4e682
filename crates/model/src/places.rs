//! Which CPUs of a machine belong together.

use crate::CpuId;

/// CPUs in groups that are numbered from zero: cores, caches or nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuGroups {
    of: Vec<u16>,
    groups: Vec<Vec<CpuId>>,
}

/// The cores, last-level caches and nodes of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuPlaces {
    /// By core: its hardware threads.
    pub cores: CpuGroups,
    /// By cache of the second level.
    pub l2s: CpuGroups,
    /// By last-level cache.
    pub llcs: CpuGroups,
    /// By NUMA node.
    pub nodes: CpuGroups,
}

impl CpuGroups {
    /// The groups in which each CPU has the number that `of` says. Numbers have no gaps.
    #[must_use]
    pub fn new(of: Vec<u16>) -> Self {
        let count = of.iter().max().map_or(0, |last| usize::from(*last) + 1);
        let mut groups = vec![Vec::new(); count];
        for (cpu, group) in (0..).map(CpuId).zip(&of) {
            groups[usize::from(*group)].push(cpu);
        }
        Self { of, groups }
    }

    /// Groups of `size` neighbours each within nodes of `node` CPUs; the last of a node may be
    /// smaller.
    pub(crate) fn blocks(cpus: u16, node: u16, size: u16) -> Self {
        let (node, size) = (node.max(1), size.max(1));
        let number = |cpu| cpu / node * node.div_ceil(size) + cpu % node / size;
        Self::new((0..cpus).map(number).collect())
    }

    /// The number of `cpu`'s group.
    ///
    /// # Panics
    /// If the machine has no such CPU.
    #[inline]
    #[must_use]
    pub fn of(&self, cpu: CpuId) -> u16 {
        self.of[cpu.index()]
    }

    /// The CPUs of the group that `cpu` is in, lowest first.
    ///
    /// # Panics
    /// If the machine has no such CPU.
    #[inline]
    #[must_use]
    pub fn with(&self, cpu: CpuId) -> &[CpuId] {
        &self.groups[usize::from(self.of(cpu))]
    }

    /// The size of all groups, if they are blocks of neighbours in their order.
    #[must_use]
    pub fn block(&self) -> Option<u16> {
        let size = u16::try_from(self.groups.first()?.len()).ok()?;
        let is_block = |(cpu, group): (u16, &u16)| cpu / size == *group;
        let of = (0..).zip(&self.of);
        let is_even = self.of.len().is_multiple_of(size.into());
        (is_even && of.into_iter().all(is_block)).then_some(size)
    }

    /// The CPUs of each group.
    pub fn iter(&self) -> std::slice::Iter<'_, Vec<CpuId>> {
        self.groups.iter()
    }

    /// How many groups there are.
    #[must_use]
    pub fn count(&self) -> u16 {
        u16::try_from(self.groups.len()).unwrap_or(u16::MAX)
    }
}

impl CpuPlaces {
    pub(crate) fn are_of(&self, cpus: u16) -> bool {
        let all = [&self.cores, &self.l2s, &self.llcs, &self.nodes];
        all.iter().all(|it| it.of.len() == usize::from(cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_need_not_be_neighbours() {
        let halves = CpuGroups::new(vec![0, 1, 0, 1]);
        assert_eq!(halves.with(CpuId(0)), [CpuId(0), CpuId(2)]);
        assert_eq!(halves.iter().count(), 2);
    }
}
