//! Which CPUs belong together, and which of them are online.

use model::{CpuId, MachineSpec};

use crate::mask::Mask;

/// Cores, caches, NUMA nodes: CPUs with neighbouring numbers belong together.
#[derive(Clone)]
pub(crate) struct Topology {
    cpus: u16,
    threads: u16,
    /// CPUs of a last-level cache, 1 or more.
    llc: u16,
    /// CPUs of a node, 1 or more.
    node: u16,
    /// CPUs that are not taken away, and whether that is all.
    online: Mask,
    all_online: bool,
}

impl Topology {
    pub fn new(spec: &MachineSpec) -> Self {
        Self {
            cpus: spec.cpus,
            threads: spec.smt.max(1),
            llc: spec.cache_size(),
            node: spec.node_size(),
            online: Mask::all(spec.cpus),
            all_online: true,
        }
    }

    /// Whether cores have several hardware threads.
    pub fn has_smt(&self) -> bool {
        self.threads > 1
    }

    /// The CPUs of `cpu`'s core.
    pub fn core(&self, cpu: CpuId) -> impl Iterator<Item = CpuId> + use<> {
        self.block(cpu, self.threads)
    }

    /// CPUs that share a last-level cache with `cpu`, and are online.
    pub fn llc(&self, cpu: CpuId) -> Mask {
        self.online_of(self.block(cpu, self.llc))
    }

    /// CPUs of `cpu`'s node that are online.
    pub fn near(&self, cpu: CpuId) -> Mask {
        self.online_of(self.block(cpu, self.node))
    }

    /// CPUs of `node` that exist; none if there is no such node.
    pub fn node(&self, node: u16) -> Mask {
        let first = u32::from(node) * u32::from(self.node);
        let mut mask = Mask::empty(self.cpus);
        if let Ok(first) = u16::try_from(first)
            && first < self.cpus
        {
            let block = self.block(CpuId(first), self.node);
            block.for_each(|cpu| mask.insert(cpu));
        }
        mask
    }

    /// The number of `cpu`'s node.
    #[inline]
    pub fn node_of(&self, cpu: CpuId) -> u16 {
        if cpu.0 < self.node {
            return 0;
        }
        cpu.0 / self.node
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u16 {
        self.cpus.div_ceil(self.node)
    }

    pub fn share_cache(&self, a: CpuId, b: CpuId) -> bool {
        a.0 / self.llc == b.0 / self.llc
    }

    pub fn online(&self) -> &Mask {
        &self.online
    }

    /// Whether no CPU is taken away.
    #[inline]
    pub const fn all_are_online(&self) -> bool {
        self.all_online
    }

    /// Whether `cpu`, which the machine has, is not taken away.
    #[inline]
    pub fn is_online(&self, cpu: CpuId) -> bool {
        self.all_online || self.online.has(cpu)
    }

    /// Takes `cpu` away, or gives it back.
    pub fn set_online(&mut self, cpu: CpuId, online: bool) {
        if online {
            self.online.insert(cpu);
        } else {
            self.online.remove(cpu);
        }
        self.all_online = self.online.count() == u32::from(self.cpus);
    }

    /// Whether the built-in choice of CPUs looks at caches: the first CPU's cache is not that of
    /// all.
    pub fn uses_llc(&self) -> bool {
        let first = self.online.first().expect("one CPU is always online");
        self.llc(first).count() < self.online.count()
    }

    /// Whether it looks at nodes: there are several, and they are not just the caches.
    ///
    /// Source: `scx_idle_update_selcpu_topology()`, kernel 6.18.
    pub fn uses_nodes(&self) -> bool {
        let first = self.online.first().expect("one CPU is always online");
        let differ = |cpu: CpuId| self.llc(cpu).count() != self.near(cpu).count();
        self.near(first).count() < self.online.count() && self.online.iter().any(differ)
    }

    fn block(&self, cpu: CpuId, size: u16) -> impl Iterator<Item = CpuId> + use<> {
        let first = cpu.0 / size * size;
        (first..first.saturating_add(size).min(self.cpus)).map(CpuId)
    }

    fn online_of(&self, cpus: impl Iterator<Item = CpuId>) -> Mask {
        let mut mask = Mask::empty(self.cpus);
        cpus.filter(|&cpu| self.online.has(cpu))
            .for_each(|cpu| mask.insert(cpu));
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(cpus: u16, llc: u16, node: u16) -> Topology {
        Topology::new(&MachineSpec {
            cpus,
            llc,
            node,
            ..MachineSpec::default()
        })
    }

    fn list(mask: &Mask) -> Vec<u16> {
        mask.iter().map(|cpu| cpu.0).collect()
    }

    #[test]
    fn cpus_with_neighbouring_numbers_belong_together() {
        let two = topology(8, 2, 4);
        assert_eq!(two.nodes(), 2);
        assert_eq!(list(&two.node(1)), [4, 5, 6, 7]);
        assert_eq!(list(&two.llc(CpuId(5))), [4, 5]);
        assert_eq!((two.node_of(CpuId(3)), two.node_of(CpuId(4))), (0, 1));
        assert!(two.share_cache(CpuId(6), CpuId(7)) && !two.share_cache(CpuId(5), CpuId(6)));
        assert_eq!(list(&two.node(2)), [0; 0]);
    }

    #[test]
    fn without_a_size_a_cache_ends_with_its_node() {
        let two = topology(8, 0, 4);
        assert!(!two.share_cache(CpuId(3), CpuId(4)));
        assert!(
            two.uses_llc() && !two.uses_nodes(),
            "caches and nodes are the same"
        );
        let one = topology(8, 0, 0);
        assert!(!one.uses_llc() && !one.uses_nodes());
        assert_eq!(one.nodes(), 1);
    }

    #[test]
    fn nodes_matter_when_they_hold_several_caches() {
        assert!(topology(8, 2, 4).uses_nodes());
        let mut half = topology(8, 2, 4);
        assert!(half.uses_llc());
        (4..8).for_each(|cpu| half.set_online(CpuId(cpu), false));
        assert!(!half.uses_nodes(), "one node is left");
        assert!(half.uses_llc());
        (2..4).for_each(|cpu| half.set_online(CpuId(cpu), false));
        assert!(!half.uses_llc(), "one cache is left");
    }

    #[test]
    fn the_last_node_may_be_smaller() {
        let odd = topology(6, 0, 4);
        assert_eq!((odd.nodes(), list(&odd.node(1))), (2, vec![4, 5]));
    }
}
