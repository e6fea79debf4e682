//! Topological numbers of CPUs (cids): those of a core, of a cache and of a node are neighbours.
//!
//! A policy in cid form (`struct sched_ext_ops_cid`) has them where others have numbers of CPUs.
//! The machine has CPUs everywhere: numbers are translated where a callback is called and where a
//! program calls a function. The numbers are given out once, when the policy is attached.
//!
//! Source: `scx_cid_init()` and `scx_bpf_cid_override()` in kernel/sched/ext/cid.c, kernel 7.3.

use std::ops::Range;

use model::CpuId;

use crate::mask::Mask;
use crate::topology::Topology;

/// `SCX_CID_SHARD_SIZE_DFL`.
const SHARD_SIZE: u32 = 24;
/// `SCX_CID_SHARD_MAX_CPUS`.
const SHARD_MOST: u32 = 512;

/// Words of `struct scx_cid_topo` of kernel 7.3.
pub(crate) const TOPO_WORDS: usize = 8;
/// Nothing is known of a CPU.
pub(crate) const NO_TOPO: [i32; TOPO_WORDS] = [-1; TOPO_WORDS];
/// The words that say where a shard begins, and its index.
const SHARD: usize = 6;

/// Who has which number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CidTable {
    /// By CPU.
    cids: Vec<u16>,
    /// By cid.
    cpus: Vec<CpuId>,
    /// `struct scx_cid_topo`, by cid.
    topo: Vec<[i32; TOPO_WORDS]>,
    /// The first cid of each shard.
    shards: Vec<u16>,
}

impl CidTable {
    /// Numbers the CPUs of `topology`: those that are online first, in the order of nodes, caches
    /// and cores. A shard has `shard_size` CPUs at most; 0 is the kernel's own size.
    pub fn new(topology: &Topology, shard_size: u32) -> Self {
        let all = topology.cpus();
        let mut walk = Walk {
            topology,
            size: if shard_size == 0 {
                SHARD_SIZE
            } else {
                shard_size
            },
            next: [0; 3],
            table: Self {
                cids: vec![u16::MAX; usize::from(all)],
                cpus: Vec::new(),
                topo: Vec::new(),
                shards: Vec::new(),
            },
        };
        let mut left = topology.online().clone();
        while let Some(cpu) = left.first() {
            let mut node = left.and(&topology.near(cpu));
            let unit = walk.begin(NODE);
            while let Some(cpu) = node.first() {
                let cache = node.and(&topology.llc(cpu));
                walk.cache(&cache, unit);
                for cpu in cache.iter() {
                    node.remove(cpu);
                    left.remove(cpu);
                }
            }
        }
        walk.rest();
        walk.table
    }

    /// The cid of `cpu`.
    #[inline]
    pub fn cid(&self, cpu: CpuId) -> u16 {
        self.cids[cpu.index()]
    }

    /// The CPU with this cid, if there is one.
    #[inline]
    pub fn cpu(&self, cid: i64) -> Option<CpuId> {
        let at = usize::try_from(cid).ok()?;
        self.cpus.get(at).copied()
    }

    /// `struct scx_cid_topo` of a cid, if there is one.
    pub fn topo(&self, cid: i64) -> Option<&[i32; TOPO_WORDS]> {
        self.topo.get(usize::try_from(cid).ok()?)
    }

    /// The cids of each shard.
    pub fn shards(&self) -> impl Iterator<Item = Range<u16>> + '_ {
        let ends = self.shards.iter().skip(1).copied();
        let ends = ends.chain([self.cpus.len() as u16]);
        self.shards.iter().zip(ends).map(|(&first, end)| first..end)
    }

    /// The words of a mask: a bit for each cid whose CPU is in `mask`.
    pub fn words(&self, mask: &Mask) -> Vec<u64> {
        let mut words = vec![0; mask.words().len()];
        for cpu in mask.iter() {
            let cid = self.cid(cpu);
            words[usize::from(cid / 64)] |= 1 << (cid % 64);
        }
        words
    }

    /// Gives every CPU the cid that the policy says, and lays out shards that begin where it says.
    ///
    /// # Errors
    /// The kernel's message. Nothing has changed then.
    pub fn replace(&mut self, cids: &[i32], shards: &[i32]) -> Result<(), String> {
        let count = self.cpus.len();
        check_shards(shards, count as i32)?;
        let mut cpus = vec![None; count];
        for (cpu, &cid) in (0..).map(CpuId).zip(cids) {
            let place = usize::try_from(cid).ok().and_then(|at| cpus.get_mut(at));
            let place = place.ok_or_else(|| format!("invalid cid {cid}"))?;
            if place.replace(cpu).is_some() {
                return Err(format!("cid {cid} assigned to multiple cpus"));
            }
        }
        self.cpus = cpus.into_iter().flatten().collect();
        for (cid, cpu) in (0..).zip(&self.cpus) {
            self.cids[cpu.index()] = cid;
        }
        self.shards = shards.iter().map(|&first| first as u16).collect();
        let mut shard = 0;
        for cid in 0..count {
            if shards
                .get(shard + 1)
                .is_some_and(|&next| next == cid as i32)
            {
                shard += 1;
            }
            self.topo[cid] = NO_TOPO;
            self.topo[cid][SHARD..].copy_from_slice(&[shards[shard], shard as i32]);
        }
        Ok(())
    }
}

/// Checks where shards of `count` CPUs begin; there is at least one.
fn check_shards(shards: &[i32], count: i32) -> Result<(), String> {
    const NAME: &str = "scx_bpf_cid_override";
    let spans = |at: usize, span: i32| {
        let is_fine = span <= SHARD_MOST as i32;
        let message = || format!("{NAME}: shard[{at}] span {span} exceeds max {SHARD_MOST}");
        is_fine.then_some(()).ok_or_else(message)
    };
    if shards[0] != 0 {
        return Err(format!(
            "{NAME}: shard_start[0] must be 0, got {}",
            shards[0]
        ));
    }
    for (at, pair) in (1..).zip(shards.windows(2)) {
        if pair[1] <= pair[0] {
            return Err(format!("{NAME}: shard_start not increasing at [{at}]"));
        }
        if pair[1] >= count {
            return Err(format!("{NAME}: shard_start[{at}]={} >= {count}", pair[1]));
        }
        spans(at - 1, pair[1] - pair[0])?;
    }
    let last = shards.len() - 1;
    spans(last, count - shards[last])
}

/// Kinds of units, as indices of [`Walk::next`].
const CORE: usize = 0;
const CACHE: usize = 1;
const NODE: usize = 2;

/// The first cid of a unit, and its index.
type Unit = [i32; 2];

/// Numbers that are being given out.
struct Walk<'a> {
    topology: &'a Topology,
    /// CPUs of a shard.
    size: u32,
    /// The next index of a core, a cache, a node.
    next: [i32; 3],
    table: CidTable,
}

impl Walk<'_> {
    fn begin(&mut self, kind: usize) -> Unit {
        let index = self.next[kind];
        self.next[kind] += 1;
        [self.table.cpus.len() as i32, index]
    }

    fn begin_shard(&mut self) -> Unit {
        let first = self.table.cpus.len();
        self.table.shards.push(first as u16);
        [first as i32, self.table.shards.len() as i32 - 1]
    }

    /// The CPUs of one cache, spread over shards as evenly as its cores allow.
    fn cache(&mut self, cache: &Mask, node: Unit) {
        let unit = self.begin(CACHE);
        let is_first = |&cpu: &CpuId| self.topology.online_core(cpu).first() == Some(cpu);
        let cores = cache.iter().filter(is_first).count() as u32;
        let cpus = cache.count();
        let count = cpus
            .div_ceil(self.size)
            .max(cpus.div_ceil(SHARD_MOST))
            .max(1);
        let (each, large) = (cores / count, cores % count);
        let mut shard = self.begin_shard();
        let (mut number, mut cores_in, mut cpus_in) = (0, 0, 0);
        let mut left = cache.clone();
        while let Some(cpu) = left.first() {
            let core = left.and(&self.topology.online_core(cpu));
            let most = each + u32::from(number < large);
            let is_full = cores_in >= most || cpus_in + core.count() > self.size.min(SHARD_MOST);
            if cores_in > 0 && is_full {
                number += 1;
                (cores_in, cpus_in) = (0, 0);
                shard = self.begin_shard();
            }
            (cores_in, cpus_in) = (cores_in + 1, cpus_in + core.count());
            let own = self.begin(CORE);
            for cpu in core.iter() {
                left.remove(cpu);
                self.give(cpu, [own, unit, node, shard]);
            }
        }
    }

    fn give(&mut self, cpu: CpuId, units: [Unit; 4]) {
        let table = &mut self.table;
        table.cids[cpu.index()] = table.cpus.len() as u16;
        table.cpus.push(cpu);
        let mut topo = NO_TOPO;
        topo.copy_from_slice(units.as_flattened());
        table.topo.push(topo);
    }

    /// CPUs that are offline, of which nothing else is known.
    fn rest(&mut self) {
        const UNKNOWN: Unit = [-1, -1];
        let most = self.size.min(SHARD_MOST);
        let (mut shard, mut cpus_in) = (UNKNOWN, most);
        for cpu in (0..self.topology.cpus()).map(CpuId) {
            if self.table.cids[cpu.index()] != u16::MAX {
                continue;
            }
            if cpus_in >= most {
                shard = self.begin_shard();
                cpus_in = 0;
            }
            cpus_in += 1;
            self.give(cpu, [UNKNOWN, UNKNOWN, UNKNOWN, shard]);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::MachineSpec;

    use super::*;

    fn topology(cpus: u16, smt: u16, llc: u16, node: u16) -> Topology {
        Topology::new(&MachineSpec {
            cpus,
            smt,
            llc,
            node,
            ..MachineSpec::default()
        })
    }

    fn shards(table: &CidTable) -> Vec<[i32; 2]> {
        let topo = table.topo.iter();
        topo.map(|words| [words[SHARD], words[SHARD + 1]]).collect()
    }

    fn cpus(table: &CidTable) -> Vec<u16> {
        table.cpus.iter().map(|cpu| cpu.0).collect()
    }

    #[test]
    fn a_cpu_that_is_offline_comes_last_and_nothing_is_known_of_it() {
        let mut four = topology(4, 1, 0, 0);
        four.set_online(CpuId(1), false);
        let table = CidTable::new(&four, 0);
        assert_eq!(cpus(&table), [0, 2, 3, 1]);
        assert_eq!(table.cid(CpuId(1)), 3);
        assert_eq!(table.topo[3], [-1, -1, -1, -1, -1, -1, 3, 1]);
        assert_eq!(table.topo[1], [1, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_cores_of_a_cache_are_spread_evenly_over_its_shards() {
        let four = topology(4, 1, 0, 0);
        let even = shards(&CidTable::new(&four, 3));
        assert_eq!(even, [[0, 0], [0, 0], [2, 1], [2, 1]]);
        let single = CidTable::new(&four, 1);
        assert_eq!(shards(&single), [[0, 0], [1, 1], [2, 2], [3, 3]]);
        assert!(single.shards().eq([0..1, 1..2, 2..3, 3..4]));
        assert!(CidTable::new(&four, 3).shards().eq([0..2, 2..4]));
    }

    #[test]
    fn cores_caches_and_nodes_are_counted_through() {
        let table = CidTable::new(&topology(8, 2, 4, 8), 0);
        assert_eq!(cpus(&table), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(table.topo[5], [4, 2, 4, 1, 0, 0, 4, 1]);
        let nodes = CidTable::new(&topology(8, 1, 0, 4), 0);
        assert_eq!(nodes.topo[7][4..6], [4, 1]);
    }

    #[test]
    fn a_thread_whose_sibling_is_offline_is_a_core() {
        let mut four = topology(4, 2, 0, 0);
        four.set_online(CpuId(2), false);
        let table = CidTable::new(&four, 1);
        assert_eq!(cpus(&table), [0, 1, 3, 2]);
        // A core of two does not fit, but no shard begins empty.
        assert_eq!(shards(&table), [[0, 0], [0, 0], [2, 1], [3, 2]]);
    }

    #[test]
    fn a_policy_may_give_other_numbers() {
        let mut table = CidTable::new(&topology(4, 1, 0, 0), 0);
        table.replace(&[3, 1, 0, 2], &[0, 3]).unwrap();
        assert_eq!(cpus(&table), [2, 1, 3, 0]);
        assert_eq!(table.cid(CpuId(0)), 3);
        assert_eq!(table.topo[2], [-1, -1, -1, -1, -1, -1, 0, 0]);
        assert_eq!(table.topo[3][SHARD..], [3, 1]);
        let mut low = Mask::empty(4);
        low.insert(CpuId(0));
        low.insert(CpuId(2));
        assert_eq!(table.words(&low), [0b1001]);
    }

    #[test]
    fn wrong_numbers_are_refused_with_the_kernels_words() {
        let table = CidTable::new(&topology(4, 1, 0, 0), 0);
        let said = |cids: &[i32], shards: &[i32]| {
            let mut copy = table.clone();
            let said = copy.replace(cids, shards).unwrap_err();
            assert_eq!(copy, table, "{said}");
            said
        };
        let right = [0, 1, 2, 3];
        for (cids, shards, message) in [
            ([0, 0, 2, 3], vec![0], "cid 0 assigned to multiple cpus"),
            ([0, 1, 2, 4], vec![0], "invalid cid 4"),
            ([0, 1, -1, 3], vec![0], "invalid cid -1"),
            (
                right,
                vec![1],
                "scx_bpf_cid_override: shard_start[0] must be 0, got 1",
            ),
            (
                right,
                vec![0, 2, 2],
                "scx_bpf_cid_override: shard_start not increasing at [2]",
            ),
            (
                right,
                vec![0, 4],
                "scx_bpf_cid_override: shard_start[1]=4 >= 4",
            ),
        ] {
            assert_eq!(said(&cids, &shards), message);
        }
        let mut wide = CidTable::new(&topology(600, 1, 0, 0), 0);
        let right: Vec<i32> = (0..600).collect();
        let message = "scx_bpf_cid_override: shard[0] span 600 exceeds max 512";
        assert_eq!(wide.replace(&right, &[0]), Err(message.to_owned()));
    }
}
