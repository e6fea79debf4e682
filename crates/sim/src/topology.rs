//! Which CPUs belong together, and which of them are online.

use model::{CpuGroups, CpuId, MachineSpec};

use crate::mask::Mask;

/// Cores, caches and NUMA nodes, as tables.
#[derive(Clone)]
pub(crate) struct Topology {
    cpus: u16,
    has_smt: bool,
    /// First and last hardware thread of each CPU's core: the same CPU twice if it is alone.
    threads: Vec<[CpuId; 2]>,
    llcs: Group,
    nodes: Group,
    /// CPUs that are not taken away, and whether that is all.
    online: Mask,
    all_online: bool,
}

/// Caches or nodes: each CPU's number, and the CPUs of each number.
#[derive(Clone)]
struct Group {
    of: Vec<u16>,
    masks: Vec<Mask>,
}

impl Group {
    fn new(cpus: u16, groups: &CpuGroups) -> Self {
        let mask = |group: &Vec<CpuId>| {
            let mut mask = Mask::empty(cpus);
            group.iter().for_each(|&cpu| mask.insert(cpu));
            mask
        };
        Self {
            of: (0..cpus).map(|cpu| groups.of(CpuId(cpu))).collect(),
            masks: groups.iter().map(mask).collect(),
        }
    }

    #[inline]
    fn number(&self, cpu: CpuId) -> u16 {
        self.of[cpu.index()]
    }

    fn mask(&self, cpu: CpuId) -> &Mask {
        &self.masks[usize::from(self.number(cpu))]
    }
}

impl Topology {
    pub fn new(spec: &MachineSpec) -> Self {
        let places = spec.places();
        let ends = |cpu| {
            let core = places.cores.with(CpuId(cpu));
            [core[0], core[core.len() - 1]]
        };
        Self {
            cpus: spec.cpus,
            has_smt: places.cores.iter().any(|core| core.len() > 1),
            threads: (0..spec.cpus).map(ends).collect(),
            llcs: Group::new(spec.cpus, &places.llcs),
            nodes: Group::new(spec.cpus, &places.nodes),
            online: Mask::all(spec.cpus),
            all_online: true,
        }
    }

    /// Whether cores have several hardware threads.
    pub fn has_smt(&self) -> bool {
        self.has_smt
    }

    /// The CPUs of `cpu`'s core, lowest first.
    #[inline]
    pub fn core(&self, cpu: CpuId) -> impl Iterator<Item = CpuId> + use<> {
        let [first, last] = self.threads[cpu.index()];
        let other = (first != last).then_some(last);
        std::iter::once(first).chain(other)
    }

    /// How many CPUs there are.
    pub const fn cpus(&self) -> u16 {
        self.cpus
    }

    /// The CPUs of `cpu`'s core that are online.
    pub fn online_core(&self, cpu: CpuId) -> Mask {
        let mut mask = Mask::empty(self.cpus);
        let online = self.core(cpu).filter(|&it| self.online.has(it));
        online.for_each(|it| mask.insert(it));
        mask
    }

    /// CPUs that share a last-level cache with `cpu`, and are online.
    pub fn llc(&self, cpu: CpuId) -> Mask {
        self.llcs.mask(cpu).and(&self.online)
    }

    /// CPUs of `cpu`'s node that are online.
    pub fn near(&self, cpu: CpuId) -> Mask {
        self.nodes.mask(cpu).and(&self.online)
    }

    /// CPUs of `node` that exist; none if there is no such node.
    pub fn node(&self, node: u16) -> Mask {
        let mask = self.nodes.masks.get(usize::from(node)).cloned();
        mask.unwrap_or_else(|| Mask::empty(self.cpus))
    }

    /// The number of `cpu`'s node.
    #[inline]
    pub fn node_of(&self, cpu: CpuId) -> u16 {
        self.nodes.number(cpu)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u16 {
        self.nodes.masks.len() as u16
    }

    /// The number of `cpu`'s last-level cache.
    pub fn llc_of(&self, cpu: CpuId) -> u16 {
        self.llcs.number(cpu)
    }

    pub fn share_cache(&self, a: CpuId, b: CpuId) -> bool {
        self.llcs.number(a) == self.llcs.number(b)
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
