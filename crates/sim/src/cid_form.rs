//! Policies in cid form: which numbers they are told, and masks in their arena.
//!
//! Source: `scx_root_enable_workfn()`, `scx_cpu_arg()`, `scx_cpu_ret()`,
//! `scx_alloc_kern_arena_objs()`, `scx_fill_cmask_scratch()` and `__scx_enable_task()`, kernel 7.3.

use std::ops::Range;

use bpf::{Memory, Pages};
use model::{CpuId, Op, TaskId};

use crate::cid::{CidTable, TOPO_WORDS};
use crate::cids::{ArenaMasks, Cids};
use crate::flags::errno;
use crate::machine::{Machine, Vm};
use crate::mask::Mask;
use crate::ops::{Call, CallOwner};
use crate::schedulers::SchedId;
use crate::task::ScxState;

/// Bytes of `struct scx_cmask` before its bits.
const HEAD_BYTES: u64 = 16;
/// Pages by which the kernel's part of an arena grows at least (`SCX_ARENA_GROW_PAGES`).
const GROW_PAGES: u64 = 4;

/// The part of an arena that the kernel gives out piece by piece.
#[derive(Default)]
struct Pool {
    next: u64,
    end: u64,
}

impl Pool {
    /// `None` if the arena is full.
    fn alloc(&mut self, memory: &mut Memory, bytes: u64) -> Option<u64> {
        if self.end - self.next < bytes {
            let pages = bytes.div_ceil(Pages::SIZE).max(GROW_PAGES);
            self.next = memory.alloc_arena(None, pages)?;
            self.end = self.next + pages * Pages::SIZE;
        }
        let at = self.next;
        self.next += bytes;
        Some(at)
    }
}

/// Words that a mask of so many CPUs has: one more than they need, wherever it begins.
fn words_of(cpus: u16) -> u32 {
    u32::from(cpus).div_ceil(64) + 1
}

fn bytes_of(cpus: u16) -> u64 {
    HEAD_BYTES + 8 * u64::from(words_of(cpus))
}

impl Machine {
    /// Whether the policy has cids where others have numbers of CPUs.
    #[inline(always)]
    pub(crate) fn is_cid_form(&self) -> bool {
        self.scheds.root.ops.is_cid_form()
    }

    /// The number by which the policy knows `cpu`.
    #[inline(always)]
    pub(crate) fn number_of(&self, cpu: CpuId) -> u64 {
        if self.is_cid_form() {
            self.cid_of(cpu)
        } else {
            u64::from(cpu.0)
        }
    }

    #[cold]
    fn cid_of(&self, cpu: CpuId) -> u64 {
        let table = self.cids.visible();
        table.map_or(u64::from(cpu.0), |table| table.cid(cpu).into())
    }

    /// The CPU that the program that executes means by `number`. Of a policy in cid form a number
    /// that is too great is an error; what is said of others is for who asks.
    #[inline(always)]
    pub(crate) fn cpu_meant(&mut self, number: i64) -> Option<CpuId> {
        self.cpu_meant_by(self.caller(), number)
    }

    /// The same of the scheduler `who`, whose program may have ended.
    #[inline(always)]
    pub(crate) fn cpu_meant_by(&mut self, who: SchedId, number: i64) -> Option<CpuId> {
        if self.is_cid_form() && number >= 0 {
            return self.cpu_of_cid_by(who, number);
        }
        self.has_cpu(number).then_some(CpuId(number as u16))
    }

    /// The CPU with this cid. One that does not exist ends the time of who executes.
    pub(crate) fn cpu_of_cid(&mut self, cid: i64) -> Option<CpuId> {
        self.cpu_of_cid_by(self.caller(), cid)
    }

    /// Source: `scx_cid_to_cpu()`.
    #[cold]
    fn cpu_of_cid_by(&mut self, who: SchedId, cid: i64) -> Option<CpuId> {
        if !self.has_cpu(cid) {
            self.error_of(who, format!("invalid cid {cid}"));
            return None;
        }
        self.cids.visible()?.cpu(cid)
    }

    /// The words of `struct scx_cid_topo` of a cid that exists, if programs find the numbers.
    pub(crate) fn cid_topo(&mut self, cid: i64) -> Option<[i32; TOPO_WORDS]> {
        self.cpu_of_cid(cid)?;
        self.cids.visible()?.topo(cid).copied()
    }

    // ---- Attaching ----

    /// Numbers the CPUs and lets the policy change the numbers. Whether attaching goes on.
    pub(crate) fn give_cids(&mut self, vm: &mut Vm) -> bool {
        let size = self.scheds.root.ops.shard_size();
        let table = CidTable::new(self.idle.topology(), size);
        self.cids = Cids::new(table);
        if self.is_cid_form() {
            let result = self.call(
                vm,
                &Call {
                    op: Op::InitCids,
                    locked: None,
                    asked: CallOwner::Root,
                    subject: None,
                    args: [],
                    words: (0, 0),
                },
            );
            self.end_unless_well(SchedId::ROOT, Op::InitCids, result);
        }
        self.cids.show();
        if self.is_cid_form() && self.alloc_masks(vm).is_none() {
            self.error(format!("scx_root_enable() failed ({})", errno::ENOMEM));
        }
        !self.scheds.root.attachment.has_ended()
    }

    /// Allocates the kernel's masks in the root's arena.
    fn alloc_masks(&mut self, vm: &mut Vm) -> Option<()> {
        let masks = self.new_masks(vm.memory(), false)?;
        self.cids.place(masks);
        self.show_online(vm.memory());
        Some(())
    }

    /// The same for a scheduler below the root; whether there is room.
    pub(crate) fn alloc_sub_masks(&mut self, vm: &mut Vm, who: SchedId) -> bool {
        let masks = self.new_masks(vm.memory(), true);
        let is_there = masks.is_some();
        if let Some(sub) = self.scheds[who].sub.as_deref_mut() {
            sub.masks = masks;
        }
        self.show_online(vm.memory());
        is_there
    }

    /// Allocates what each CPU tells callbacks, the CPUs that are online, and one mask for each
    /// shard, these `shards_first` or last.
    fn new_masks(&self, memory: &mut Memory, shards_first: bool) -> Option<ArenaMasks> {
        let bytes = bytes_of(self.spec.cpus);
        let mut pool = Pool::default();
        let shards = self.cids.table()?.shards();
        let sizes: Vec<u16> = shards.map(|cids| cids.end - cids.start).collect();
        let mut shards = Vec::new();
        let mut alloc_shards = |pool: &mut Pool, memory: &mut Memory| {
            for &cpus in &sizes {
                shards.push(pool.alloc(memory, bytes_of(cpus))?);
            }
            Some(())
        };
        if shards_first {
            alloc_shards(&mut pool, memory)?;
        }
        let cpus = 0..self.spec.cpus;
        let scratch: Option<Vec<u64>> = cpus.map(|_| pool.alloc(memory, bytes)).collect();
        let (scratch, online) = (scratch?, pool.alloc(memory, bytes)?);
        if !shards_first {
            alloc_shards(&mut pool, memory)?;
        }
        let none = Mask::empty(self.spec.cpus);
        for &at in &scratch {
            self.write_cmask(memory, at, &none);
        }
        Some(ArenaMasks {
            scratch,
            online,
            shards,
        })
    }

    /// The kernel's masks in the arena of `who`, if it has some.
    fn masks_of(&self, who: SchedId) -> Option<&ArenaMasks> {
        match self.sub(who) {
            Some(sub) => sub.masks.as_ref(),
            None => self.cids.masks(),
        }
    }

    /// Guest address of the mask of CPUs that are online, for `who`; `None` before its
    /// `ops.init()`, and of a policy in cpu form.
    pub(crate) fn online_mask_of(&self, who: SchedId) -> Option<u64> {
        Some(self.masks_of(who)?.online)
    }

    /// Writes which CPUs are online where policies in cid form read it.
    pub(crate) fn show_online(&self, memory: &mut Memory) {
        for who in self.scheds.ids() {
            if let Some(at) = self.online_mask_of(who) {
                self.write_cmask(memory, at, self.idle.topology().online());
            }
        }
    }

    /// Writes the mask of a shard in the arena of `who`: these `cids` of its `range`. What a
    /// callback is told of that place.
    pub(crate) fn write_shard_mask(
        &self,
        vm: &mut Vm,
        (who, shard): (SchedId, usize),
        (range, cids): (Range<u16>, &[u16]),
    ) -> Option<u64> {
        let at = *self.masks_of(who)?.shards.get(shard)?;
        let count = range.end - range.start;
        let memory = vm.memory();
        if memory.arena()?.holds(at, bytes_of(count)) {
            let head = [range.start, count, words_of(count) as u16, 0].map(u32::from);
            memory.write(at, head.map(u32::to_le_bytes).as_flattened());
            let mut words = vec![0_u64; words_of(count) as usize];
            for cid in cids {
                words[usize::from(cid / 64 - range.start / 64)] |= 1 << (cid % 64);
            }
            for (index, word) in (0..).zip(words) {
                memory.write(at + HEAD_BYTES + 8 * index, &word.to_le_bytes());
            }
        }
        Some(at & u64::from(u32::MAX))
    }

    /// Writes a whole mask. Its header is written anew, because the policy can change it; where
    /// the policy has freed the page, nothing is written.
    fn write_cmask(&self, memory: &mut Memory, at: u64, mask: &Mask) {
        let Some(table) = self.cids.table() else {
            return;
        };
        let bytes = bytes_of(self.spec.cpus);
        if !memory.arena().is_some_and(|pages| pages.holds(at, bytes)) {
            return;
        }
        let head = [0, u32::from(self.spec.cpus), words_of(self.spec.cpus), 0];
        memory.write(at, head.map(u32::to_le_bytes).as_flattened());
        for (index, word) in (0..).zip(table.words(mask)) {
            memory.write(at + HEAD_BYTES + 8 * index, &word.to_le_bytes());
        }
    }

    // ---- What callbacks are told of masks ----

    /// Writes the CPUs that `id` may use into the arena. What a callback is told of that place: the
    /// low 32 bits of its address.
    fn told_cmask(&mut self, vm: &mut Vm, id: TaskId) -> u64 {
        let masks = self.masks_of(self.owner(id));
        let Some(at) = masks.map(|masks| masks.scratch[self.turn.exec.index()]) else {
            return 0;
        };
        let mask = self.masks.get(self.task(id).cpus);
        self.write_cmask(vm.memory(), at, mask);
        at & u64::from(u32::MAX)
    }

    /// Tells a policy in cid form which CPUs a task may use.
    pub(crate) fn call_set_cmask(&mut self, vm: &mut Vm, id: TaskId) {
        if !self.scheduler_of(id).ops.has(Op::SetCpumask) {
            return;
        }
        let argument = self.told_cmask(vm, id);
        self.call_set_mask(vm, id, argument);
    }

    /// Tells a policy in cid form that the CPUs which a task may use have changed. It hears of that
    /// only between `ops.enable()` and `ops.disable()`.
    #[cold]
    pub(crate) fn tell_changed_cmask(&mut self, vm: &mut Vm, id: TaskId) {
        if self.task(id).scx_state == ScxState::Enabled {
            self.call_set_cmask(vm, id);
        }
    }

    /// The second argument of `ops.enable()`: `struct scx_enable_args`.
    pub(crate) fn enable_args(&mut self, vm: &mut Vm, id: TaskId) -> u64 {
        if !self.scheduler_of(id).ops.has(Op::Enable) {
            return 0;
        }
        let cmask = self.told_cmask(vm, id);
        self.mirror.enable_args(vm, cmask)
    }
}
