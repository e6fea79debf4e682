//! Kernel objects as the policy sees them.
//!
//! The machine's own structures are the authority. Their mirrors live in the read-only half of BPF
//! memory, laid out by the types of `kernel/6.18.h`, and are brought up to date before somebody can
//! look: when a callback begins, and after a kernel function that changes something.

mod cgroups;
mod clocks;
mod flush;
mod layout;
mod seen;
mod stores;

use bpf::{LoadError, Memory, OutOfMemory};
use model::{Advice, CpuId, Exit, MachineSpec, PerCpu, TaskId};
use workload::{Cgroup, SchedPolicy};

use crate::cpu::Curr;
use crate::flags;
use crate::idle::Idle;
use crate::kernels::{KernelRules, rules_of};
use crate::machine::{Machine, Vm};
use crate::mask::{Mask, Masks};
use crate::rq_clock::RqClock;
use crate::task::Task;
use crate::work::Birth;
use cgroups::CgroupMirrors;
pub use cgroups::cgroups;
pub(crate) use layout::Layouts;
use layout::{ArgLayout, Layout, TURN_BYTES};
use seen::Seen;

/// Bytes of a CPU mask: the header's `NR_CPUS` is 1024.
pub(crate) const MASK_BYTES: u64 = 128;
/// `MAX_DL_PRIO - 1`, the priority of every deadline task (include/linux/sched/deadline.h, 6.18).
const DEADLINE_PRIO: u32 = -1_i32 as u32;
/// `DEFAULT_PRIO`, which the idle task has, too (include/linux/sched/prio.h, 6.18).
const DEFAULT_PRIO: u32 = 120;
/// Room for the text of an exit.
const TEXT_BYTES: u64 = 1024;

/// What of a task's mirror is out of date.
pub(crate) mod stale {
    /// Slice, vtime.
    pub const SLICE: u8 = 1;
    /// State of the sched_ext entity.
    pub const FLAGS: u8 = 2;
    /// Time charged.
    pub const TIME: u8 = 4;
    /// Affinity.
    pub const CPUS: u8 = 8;
    /// Policy, priorities, weight, `PF_*`.
    pub const POLICY: u8 = 16;
    /// Name.
    pub const COMM: u8 = 32;
    /// Parent.
    pub const PARENT: u8 = 64;
    /// CPU, run state.
    pub const STATE: u8 = 128;
    /// Parts that change with every turn of a task.
    pub const TURN: u8 = SLICE | FLAGS | TIME | STATE;
}

/// The mirrors.
#[derive(Clone)]
pub(crate) struct Mirror {
    layout: Layout,
    rules: &'static KernelRules,
    seen: Seen,
    args: ArgLayout,
    /// Arguments by pointer, one area for all: a callback reads them while it runs.
    args_at: u64,
    reason_at: u64,
    message_at: u64,
    /// `struct rq` of each CPU.
    pub rqs: PerCpu<u64>,
    /// The idle task of each CPU.
    pub idle_tasks: PerCpu<u64>,
    /// The migration threads that programs have seen, by CPU.
    stoppers: std::collections::BTreeMap<u16, u64>,
    cgroups: CgroupMirrors,
    /// The address space of each group whose tasks exist from the start as threads, by group.
    group_mms: std::collections::BTreeMap<u32, u64>,
    /// Masks that programs read where they lie.
    pub online: u64,
    /// All CPUs that there are.
    pub possible: u64,
    pub idle_cpu: u64,
    pub idle_smt: u64,
    /// The idle masks of each node: CPUs and cores.
    pub idle_nodes: Vec<[u64; 2]>,
    /// A mask without CPUs.
    pub none: u64,
    /// Somebody holds a pointer to the idle masks ([`Mirror::share_idle`]).
    pub idle_shared: bool,
    /// Reference-counted masks that programs have created, and their counts.
    pub masks: std::collections::BTreeMap<u64, u32>,
    /// The policy's report map.
    report_map: Option<u32>,
    /// The task whose mirror shows what callbacks add to `migration_disabled`, and what it shows.
    pub guarded: Option<(TaskId, u16)>,
    /// The clocks of run queues, by CPU, if programs can see them.
    clocks: Vec<RqClock>,
    stale_tasks: Vec<TaskId>,
    stale_cpus: Vec<CpuId>,
    /// What is to be done before a callback can look, [`STALE`] and [`GUARDS`]: one test for all.
    due: u8,
}

/// Something is out of date.
const STALE: u8 = 1;
/// Something is to be said of each callback; see [`Machine::show_guard`].
const GUARDS: u8 = 2;

impl Mirror {
    /// Lays out the objects that exist from the start.
    pub fn new(
        layouts: Layouts,
        spec: &MachineSpec,
        cgroups: &[Cgroup],
        vm: &mut Vm,
    ) -> Result<Self, MirrorError> {
        let Layouts {
            layout, args, seen, ..
        } = layouts;
        let cpus = spec.cpus;
        let mirrored = CgroupMirrors::new(layouts.cgroups, vm, cgroups)?;
        let mut failed = None;
        // Where a program looks for them that knows the variable.
        let known: Vec<_> = (0..u32::from(cpus))
            .map(|cpu| vm.variable_address("runqueues", cpu))
            .collect();
        let memory = vm.memory();
        let mut alloc = |size: u64| {
            memory.alloc_kernel(size, 64).unwrap_or_else(|error| {
                failed.get_or_insert(error);
                0
            })
        };
        let mut mirror = Self {
            args_at: alloc(256),
            reason_at: alloc(TEXT_BYTES),
            message_at: alloc(TEXT_BYTES),
            rqs: PerCpu::new(cpus, |cpu| {
                known[cpu.index()].unwrap_or_else(|| alloc(layout.rq_size))
            }),
            idle_tasks: PerCpu::new(cpus, |_| alloc(layout.task_size)),
            stoppers: std::collections::BTreeMap::new(),
            cgroups: mirrored,
            group_mms: std::collections::BTreeMap::new(),
            online: alloc(MASK_BYTES),
            possible: alloc(MASK_BYTES),
            idle_cpu: alloc(MASK_BYTES),
            idle_smt: alloc(MASK_BYTES),
            idle_nodes: (0..spec.places().nodes.count())
                .map(|_| [alloc(MASK_BYTES), alloc(MASK_BYTES)])
                .collect(),
            none: alloc(MASK_BYTES),
            idle_shared: false,
            masks: std::collections::BTreeMap::new(),
            report_map: None,
            guarded: None,
            clocks: if seen.clocks {
                vec![RqClock::new(); cpus.into()]
            } else {
                Vec::new()
            },
            stale_tasks: Vec::new(),
            stale_cpus: Vec::new(),
            due: if seen.needs_guard() { GUARDS } else { 0 },
            layout,
            rules: rules_of(spec.kernel),
            seen,
            args,
        };
        if let Some(error) = failed {
            return Err(error.into());
        }
        mirror.write_cpus(vm, cpus);
        mirror.find_report(vm);
        Ok(mirror)
    }

    /// Somebody gets a pointer to the idle masks: they are kept up to date from now on.
    pub const fn share_idle(&mut self) {
        self.idle_shared = true;
        self.due |= STALE;
    }

    /// Looks for the map in which the policy reports about its tasks: see
    /// policies/include/report.bpf.h.
    pub fn find_report(&mut self, vm: &Vm) {
        self.report_map = vm.map_by_name("runslice_report");
    }

    /// Programs that hold a pointer to the idle masks see every claim.
    pub fn write_idle(&self, memory: &mut Memory, idle: &Idle) {
        write_mask(memory, self.idle_cpu, idle.cpus());
        write_mask(memory, self.idle_smt, idle.cores());
        if idle.is_per_node() {
            for (node, at) in (0..).zip(&self.idle_nodes) {
                let there = idle.topology().node(node);
                write_mask(memory, at[0], &idle.cpus().and(&there));
                write_mask(memory, at[1], &idle.cores().and(&there));
            }
        }
    }

    /// The CPUs that are online.
    pub fn write_online(&self, memory: &mut Memory, online: &Mask) {
        write_mask(memory, self.online, online);
    }

    fn write_cpus(&self, vm: &mut Vm, cpus: u16) {
        let memory = vm.memory();
        write_mask(memory, self.online, &Mask::all(cpus));
        write_mask(memory, self.possible, &Mask::all(cpus));
        let at = &self.layout;
        for cpu in (0..cpus).map(CpuId) {
            let (rq, idle) = (self.rqs[cpu], self.idle_tasks[cpu]);
            memory.poke_u32(rq + at.rq_cpu, u32::from(cpu.0));
            memory.poke_u64(rq + at.rq_curr, idle);
            memory.poke_u64(rq + at.rq_idle, idle);
            self.write_clocks(memory, cpu);
            self.write_bound(memory, idle, (cpu, cpus), &format!("swapper/{cpu}"));
        }
    }

    /// Whether programs can see the clocks of run queues.
    #[inline]
    pub const fn shows_clocks(&self) -> bool {
        self.seen.clocks
    }

    /// The clocks of a run queue, to be changed.
    pub fn clock_mut(&mut self, cpu: CpuId) -> Option<&mut RqClock> {
        let clock = self.clocks.get_mut(cpu.index())?;
        self.stale_cpus.push(cpu);
        self.due |= STALE;
        Some(clock)
    }

    fn write_clocks(&self, memory: &mut Memory, cpu: CpuId) {
        let Some(clock) = self.clocks.get(cpu.index()) else {
            return;
        };
        let values = [clock.wall, clock.task, clock.pelt];
        for (at, value) in self.layout.rq_clocks.into_iter().zip(values) {
            memory.poke_u64(self.rqs[cpu] + at, value);
        }
    }

    /// A kernel thread of one CPU, which is no task of this machine.
    fn write_bound(&self, memory: &mut Memory, to: u64, (cpu, cpus): (CpuId, u16), comm: &str) {
        let at = &self.layout;
        memory.write(to + at.comm, comm.as_bytes());
        memory.poke_u32(to + at.flags, flags::PF_KTHREAD);
        for prio in [at.prio, at.static_prio, at.normal_prio] {
            memory.poke_u32(to + prio, DEFAULT_PRIO);
        }
        memory.poke_u32(to + at.nr_cpus_allowed, 1);
        memory.poke_u32(to + at.thread_cpu, u32::from(cpu.0));
        memory.poke_u64(to + at.cpus_ptr, to + at.cpus_mask);
        let mut mask = Mask::empty(cpus);
        mask.insert(cpu);
        write_mask(memory, to + at.cpus_mask, &mask);
        memory.poke_u32(to + at.number, u32::MAX);
    }

    /// The migration thread of `cpu`; without memory for it the idle task.
    ///
    /// Source: `cpu_stop_threads` and `sched_set_stop_task()`, kernel 6.18. Its process number is
    /// ours: one that no task has.
    pub fn stopper(&mut self, vm: &mut Vm, cpu: CpuId) -> u64 {
        const FIRST_PID: u32 = 3_900_000;
        const SCHED_FIFO: u32 = 1;
        const RT_PRIORITY: u32 = 99;
        if let Some(&stopper) = self.stoppers.get(&cpu.0) {
            return stopper;
        }
        let (size, cpus) = (self.layout.task_size, self.rqs.iter().len() as u16);
        let memory = vm.memory();
        let Ok(stopper) = memory.alloc_kernel(size, 64) else {
            return self.idle_tasks[cpu];
        };
        memory.write(stopper, &vec![0; size as usize]);
        self.write_bound(memory, stopper, (cpu, cpus), &format!("migration/{cpu}"));
        let at = &self.layout;
        for number in [at.pid, at.tgid] {
            memory.poke_u32(stopper + number, FIRST_PID + u32::from(cpu.0));
        }
        for prio in [at.prio, at.normal_prio] {
            memory.poke_u32(stopper + prio, 0);
        }
        memory.poke_u32(stopper + at.policy, SCHED_FIFO);
        memory.poke_u32(stopper + at.rt_priority, RT_PRIORITY);
        self.stoppers.insert(cpu.0, stopper);
        stopper
    }

    /// The migration thread of `cpu` if a program has seen it, else the idle task.
    fn known_stopper(&self, cpu: CpuId) -> u64 {
        let known = self.stoppers.get(&cpu.0);
        known.copied().unwrap_or(self.idle_tasks[cpu])
    }

    /// Whether the idle task of `cpu` shows that it cannot migrate: a program runs there for a
    /// thread that is no task.
    pub fn guard_idle(&self, vm: &mut Vm, cpu: CpuId, is_guarded: bool) {
        let idle = vm.memory().kernel_object(self.idle_tasks[cpu]);
        let place = self.layout.turn.migration_disabled;
        place.put(idle, u16::from(is_guarded).to_le_bytes());
    }

    /// A task's `cpus_ptr`: the address of its own mask, or, while it must not migrate, of the
    /// mask that has its CPU alone.
    ///
    /// Source: `set_cpus_allowed_common()`, kernel 6.18, with `cpumask_of()`. The idle task's mask
    /// stands for the latter: it never changes, and no task has it for its own.
    pub fn cpus_address(&self, task: &Task, masks: &Masks) -> u64 {
        // A section binds its task at a switch: until then the pointer stays.
        let is_bound = task.migration_disabled > 0 && masks.count(task.cpus) == 1;
        let bound = is_bound.then(|| masks.get(task.cpus).first());
        let whose = bound
            .flatten()
            .map_or(task.address, |cpu| self.idle_tasks[cpu]);
        whose + self.layout.cpus_mask
    }

    /// `struct scx_cpu_release_args`.
    pub fn release_args(&self, vm: &mut Vm, reason: u32, task: u64) -> u64 {
        let memory = vm.memory();
        memory.poke_u32(self.args_at + self.args.release_reason, reason);
        memory.poke_u64(self.args_at + self.args.release_task, task);
        self.args_at
    }

    /// The arguments that the kernel keeps for the callback in progress.
    pub fn call_arguments(&self, vm: &mut Vm, bytes: usize) -> Vec<u8> {
        let mut kept = vec![0; bytes];
        vm.memory().read(self.args_at, &mut kept);
        kept
    }

    /// Puts back what [`Mirror::call_arguments`] gave.
    pub fn put_call_arguments(&self, vm: &mut Vm, kept: &[u8]) {
        vm.memory().write(self.args_at, kept);
    }

    /// `struct scx_init_task_args`.
    pub fn init_task_args(&self, vm: &mut Vm, fork: bool, cgroup: u32) -> u64 {
        let memory = vm.memory();
        memory.write(self.args_at + self.args.init_fork, &[u8::from(fork)]);
        memory.poke_u64(self.args_at + self.args.init_cgroup, self.cgroup(cgroup));
        self.args_at
    }

    /// `struct scx_sub_attach_args`, the same as `struct scx_sub_detach_args`, of a scheduler of
    /// this name that attaches at the cgroup with this number and path. It lies there for good.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn sub_args(
        &self,
        vm: &mut Vm,
        (name, path): (&str, &str),
        cgroup: u64,
    ) -> Result<u64, OutOfMemory> {
        let Some(at) = self.args.sub else {
            return Ok(0);
        };
        let memory = vm.memory();
        let args = memory.alloc_kernel(at.args_size, 8)?;
        let ops = memory.alloc_kernel(at.ops_size, 8)?;
        let text = memory.alloc_kernel(path.len() as u64 + 1, 8)?;
        memory.poke_u64(args + at.ops, ops);
        memory.poke_u64(args + at.path, text);
        memory.poke_u64(ops + at.cgroup, cgroup);
        let most = at.name_size as usize - 1;
        memory.write(ops + at.name, &name.as_bytes()[..name.len().min(most)]);
        memory.write(text, path.as_bytes());
        Ok(args)
    }

    /// `struct scx_enable_args`: where the mask of the CPUs that a task may use lies in the arena.
    pub fn enable_args(&self, vm: &mut Vm, cmask: u64) -> u64 {
        vm.memory().poke_u64(self.args_at, cmask);
        self.args_at
    }

    /// `struct scx_exit_task_args`.
    pub fn exit_task_args(&self, vm: &mut Vm, cancelled: bool) -> u64 {
        vm.memory().write(
            self.args_at + self.args.exit_cancelled,
            &[u8::from(cancelled)],
        );
        self.args_at
    }

    /// `struct scx_exit_info`.
    pub fn exit_info(&self, vm: &mut Vm, exit: &Exit) -> u64 {
        let memory = vm.memory();
        let (at, args) = (self.args_at, &self.args);
        let text = |memory: &mut Memory, at: u64, text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            bytes.truncate(TEXT_BYTES as usize - 1);
            bytes.push(0);
            memory.write(at, &bytes);
        };
        text(memory, self.reason_at, exit.kind.reason());
        text(memory, self.message_at, &exit.message);
        memory.poke_u32(at + args.info_kind, exit.kind as u32);
        memory.poke_u64(at + args.info_code, exit.code.cast_unsigned());
        memory.poke_u64(at + args.info_reason, self.reason_at);
        memory.poke_u64(at + args.info_msg, self.message_at);
        // The empty text behind the message: this machine writes no dump.
        memory.poke_u64(
            at + args.info_dump,
            self.message_at + exit.message.len() as u64,
        );
        at
    }

    /// Whether the policy has refused the task (`p->scx.disallow`).
    pub fn disallows(&self, vm: &mut Vm, task: u64) -> bool {
        vm.memory().load_u8(task + self.layout.disallow) != 0
    }

    /// The policy's report on a task: priority, level, flags.
    pub fn report(&self, vm: &Vm, task: u64) -> Option<(u32, u32, u64)> {
        let value = vm.map_value(self.report_map?, &task.to_le_bytes(), 0)?;
        let word = |at: usize| {
            value
                .get(at..at + 4)
                .map(|b| b.try_into().map(u32::from_le_bytes))
        };
        let flags = value.get(8..16)?.try_into().ok().map(u64::from_le_bytes)?;
        Some((word(0)?.ok()?, word(4)?.ok()?, flags))
    }

    /// Writes the fields of a task that programs may write, too.
    #[inline(always)]
    pub fn write_slice(&self, memory: &mut Memory, task: &Task) {
        self.write_turn(memory, task, stale::SLICE);
    }

    /// Writes the fields of a task that a charge changes.
    #[inline(always)]
    pub fn write_charge(&self, memory: &mut Memory, task: &Task) {
        self.write_turn(memory, task, stale::SLICE | stale::TIME & self.seen.parts);
    }

    /// What changes with every turn of a task.
    #[inline(always)]
    fn write_turn(&self, memory: &mut Memory, task: &Task, what: u8) {
        let layout = &self.layout.turn;
        let object: &mut [u8; TURN_BYTES] = memory.kernel_object(task.address);
        if what & stale::SLICE != 0 {
            layout.slice.put(object, task.slice.to_le_bytes());
            layout.vtime.put(object, task.vtime.to_le_bytes());
        }
        if what & stale::TIME != 0 {
            layout.sum_exec.put(object, task.sum_exec.to_le_bytes());
            // All of it is the task's own code: what a system call takes is not told apart.
            layout.utime.put(object, task.sum_exec.to_le_bytes());
        }
        if what & stale::FLAGS != 0 {
            let queued = u32::from(task.queued) * flags::TASK_QUEUED;
            let custody = u32::from(task.in_custody) * flags::TASK_IN_CUSTODY;
            let state = self.rules.state_number(task.scx_state) << flags::TASK_STATE_SHIFT;
            let immed = u32::from(task.immed) * flags::TASK_IMMED;
            let reason = (task.reenqueued as u32) << flags::TASK_REENQ_REASON_SHIFT;
            let flags = queued | custody | immed | reason | state;
            layout.scx_flags.put(object, flags.to_le_bytes());
            layout
                .runnable_at
                .put(object, task.runnable_at.to_le_bytes());
        }
        if what & stale::STATE != 0 {
            let cpu = u32::from(task.cpu.0);
            layout.wake_cpu.put(object, cpu.to_le_bytes());
            layout.thread_cpu.put(object, cpu.to_le_bytes());
            layout.state.put(object, task.kernel_state().to_le_bytes());
        }
    }

    /// The rest.
    #[inline(never)]
    fn write_task(&self, memory: &mut Memory, task: &Task, masks: &Masks, what: u8) {
        let (at, layout) = (task.address, &self.layout);
        if what & stale::CPUS != 0 {
            let affinity = task.seldom.affinity;
            write_mask(memory, at + layout.cpus_mask, masks.get(affinity));
            memory.poke_u32(at + layout.nr_cpus_allowed, masks.count(affinity));
            memory.poke_u64(at + layout.cpus_ptr, self.cpus_address(task, masks));
        }
        if what & stale::POLICY != 0 {
            self.write_policy(memory, task);
        }
        if what & stale::COMM != 0 {
            let mut comm = [0; 16];
            let len = task.seldom.comm.len().min(15);
            comm[..len].copy_from_slice(&task.seldom.comm.as_bytes()[..len]);
            memory.write(at + layout.comm, &comm);
        }
    }

    fn write_policy(&self, memory: &mut Memory, task: &Task) {
        let (at, layout) = (task.address, &self.layout);
        let nice = i32::from(task.nice);
        // SCHED_NORMAL 0, FIFO 1, RR 2, BATCH 3, IDLE 5, DEADLINE 6 (include/uapi/linux/sched.h,
        // 6.18).
        let (policy, rt) = match task.seldom.policy {
            SchedPolicy::Normal => (0, 0),
            SchedPolicy::Fifo(priority) => (1, u32::from(priority)),
            SchedPolicy::RoundRobin(priority) => (2, u32::from(priority)),
            SchedPolicy::Batch => (3, 0),
            SchedPolicy::Idle => (5, 0),
            SchedPolicy::Deadline(_) => (6, 0),
        };
        let fair = (120 + nice).cast_unsigned();
        let prio = match task.seldom.policy {
            SchedPolicy::Deadline(_) => DEADLINE_PRIO,
            _ if rt > 0 => 99 - rt,
            _ => fair,
        };
        memory.poke_u32(at + layout.policy, policy);
        memory.poke_u32(at + layout.rt_priority, rt);
        memory.poke_u32(at + layout.prio, prio);
        memory.poke_u32(at + layout.normal_prio, prio);
        memory.poke_u32(at + layout.static_prio, fair);
        let weight = if task.seldom.weighed { task.weight } else { 0 };
        memory.poke_u32(at + layout.weight, weight);
        let exiting = if task.exiting { flags::PF_EXITING } else { 0 };
        let kernel = if task.kernel { flags::PF_KTHREAD } else { 0 };
        memory.poke_u32(at + layout.flags, exiting | kernel);
    }
}

/// Why the mirrors cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// The kernel's types lack a field: our own header is wrong.
    #[error("the simulated kernel's types")]
    Types(#[from] LoadError),
    /// No memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

impl Advice for MirrorError {
    fn advice(&self) -> Option<String> {
        match self {
            Self::Types(error) => error.advice(),
            Self::Memory(_) => None,
        }
    }
}

/// Writes a mask where programs can read it.
pub(crate) fn write_mask(memory: &mut Memory, at: u64, mask: &Mask) {
    for (index, &word) in mask.words().iter().enumerate() {
        memory.poke_u64(at + 8 * index as u64, word);
    }
}

/// Reads a mask of a machine of `cpus` CPUs.
pub(crate) fn read_mask(memory: &Memory, at: u64, cpus: u16) -> Mask {
    let mut mask = Mask::empty(cpus);
    for (index, word) in mask.words_mut().iter_mut().enumerate() {
        *word = memory.load_u64(at + 8 * index as u64);
    }
    let spare = usize::from(cpus) % 64;
    if spare != 0 {
        // Bits beyond the last CPU do not count, as in the kernel's functions.
        let last = mask.words().len() - 1;
        mask.words_mut()[last] &= (1 << spare) - 1;
    }
    mask
}

impl Machine {
    fn write_parent(&self, memory: &mut Memory, id: TaskId) {
        let task = self.task(id);
        let (at, layout) = (task.address, &self.mirror.layout);
        // The first process is the parent of those that nobody forked.
        let family = &task.seldom.family;
        let parent = family.parent.map_or(at, |parent| self.task(parent).address);
        memory.poke_u64(at + layout.real_parent, parent);
        memory.poke_u64(at + layout.parent, parent);
        let leader = family.leader.map_or(at, |leader| self.task(leader).address);
        memory.poke_u64(at + layout.group_leader, leader);
    }

    /// The address space of a new task: a thread has that of its parent, or of the threads that
    /// its group began with; a process has one of its own, and a kernel thread none (0).
    ///
    /// Programs compare the address and never look behind it, so it is a number that is taken
    /// once: a freed one would be given to a stranger.
    pub(crate) fn mm_of(
        &mut self,
        vm: &mut Vm,
        birth: &Birth,
        parent: Option<TaskId>,
    ) -> Result<u64, OutOfMemory> {
        const BYTES: u64 = 8;
        if birth.kernel {
            return Ok(0);
        }
        match parent {
            Some(parent) if !birth.process => return Ok(self.task(parent).mm),
            None if !birth.process => {
                if let Some(&mm) = self.mirror.group_mms.get(&birth.group) {
                    return Ok(mm);
                }
            }
            _ => {}
        }
        let mm = vm.memory().alloc_kernel(BYTES, BYTES)?;
        if parent.is_none() {
            self.mirror.group_mms.insert(birth.group, mm);
        }
        Ok(mm)
    }

    /// Makes the mirror of a new task.
    pub(crate) fn mirror_create(&mut self, vm: &mut Vm, id: TaskId) -> Result<(), OutOfMemory> {
        let size = self.mirror.layout.task_size;
        let memory = vm.memory();
        let address = memory.alloc_kernel(size, 64)?;
        let zeros = vec![0; size as usize];
        memory.write(address, &zeros);
        let layout = &self.mirror.layout;
        // Of a policy in cid form each store is looked at, and refused.
        if !self.scheds.root.ops.is_cid_form() {
            memory.open_word(address + layout.slice);
            memory.open_word(address + layout.vtime);
        }
        if let Some(tid) = layout.tid {
            memory.poke_u64(address + tid, u64::from(id.0) + 1);
        }
        let clock = self.clock_ns();
        let task = &mut self.tasks[id.index()];
        task.address = address;
        memory.poke_u32(address + layout.pid, task.pid);
        memory.poke_u64(address + layout.start_time, clock);
        memory.poke_u64(address + layout.start_boottime, clock);
        memory.poke_u32(address + layout.tgid, task.tgid);
        memory.poke_u64(address + layout.mm, task.mm);
        // What callbacks add to it later is written from this on ([`Machine::show_guard`]).
        let disabled = task.migration_disabled.to_le_bytes();
        let object = memory.kernel_object(address);
        layout.turn.migration_disabled.put(object, disabled);
        // The task's number leads back from address to task.
        memory.poke_u32(address + layout.number, id.0);
        self.mirror_cgroup(vm, id);
        self.touch_seen(id, u8::MAX);
        Ok(())
    }

    /// Gives the mirror's memory back.
    pub(crate) fn mirror_free_in(&mut self, memory: &mut Memory, id: TaskId) {
        let address = std::mem::take(&mut self.task_mut(id).address);
        memory.free_kernel(address, self.mirror.layout.task_size);
    }

    /// As [`Machine::task_at`], but the task that the callback is about is tried first.
    #[inline(always)]
    pub(crate) fn task_in_hand(&self, memory: &Memory, address: u64) -> Option<TaskId> {
        match self.subject_at(address) {
            Some(_) => Some(self.turn.contexts.innermost().subject),
            None => self.task_at_any(memory, address),
        }
    }

    /// The task that the callback is about, if its mirror begins at `address`.
    #[inline]
    pub(crate) fn subject_at(&self, address: u64) -> Option<&Task> {
        let subject = self.turn.contexts.innermost().subject;
        let task = self.tasks.get(subject.index());
        task.filter(|task| task.address == address && address != 0)
    }

    #[inline(never)]
    fn task_at_any(&self, memory: &Memory, address: u64) -> Option<TaskId> {
        self.task_at(memory, address)
    }

    /// The task whose mirror begins at `address`.
    #[inline]
    pub(crate) fn task_at(&self, memory: &Memory, address: u64) -> Option<TaskId> {
        if address == 0 {
            return None;
        }
        let number = address.wrapping_add(self.mirror.layout.number);
        let id = TaskId(memory.load_u32(number) as u32);
        self.tasks
            .get(id.index())
            .filter(|task| task.address == address)
            .map(|_| id)
    }

    /// Sets what is left of a task's slice.
    pub(crate) fn set_slice(&mut self, id: TaskId, slice: u64) {
        self.task_mut(id).slice = slice;
        self.touch(id, stale::SLICE);
    }

    /// Sets a task's key in vtime-ordered queues.
    pub(crate) fn set_vtime(&mut self, id: TaskId, vtime: u64) {
        self.task_mut(id).vtime = vtime;
        self.touch(id, stale::SLICE);
    }

    pub(crate) fn mirror_state(&mut self, id: TaskId) {
        self.touch(id, stale::STATE);
    }

    pub(crate) fn mirror_cpu(&mut self, id: TaskId) {
        self.touch(id, stale::STATE);
    }

    pub(crate) fn mirror_cpus(&mut self, id: TaskId) {
        self.touch(id, stale::CPUS);
    }

    pub(crate) fn mirror_policy(&mut self, id: TaskId) {
        self.touch(id, stale::POLICY);
    }

    pub(crate) fn mirror_flags(&mut self, id: TaskId) {
        self.touch(id, stale::FLAGS);
    }

    pub(crate) fn mirror_comm(&mut self, id: TaskId) {
        self.touch(id, stale::COMM);
    }

    pub(crate) fn mirror_parent(&mut self, id: TaskId) {
        self.touch(id, stale::PARENT);
    }

    /// The address of the current task's name.
    pub(crate) fn comm_address(&self) -> u64 {
        self.current_address() + self.mirror.layout.comm
    }

    /// Address of the task that executes the code of this moment: `current`.
    pub(crate) fn current_address(&self) -> u64 {
        match self.rq_curr(self.turn.exec) {
            Curr::Task(id) => self.task(id).address,
            Curr::Stopper => self.mirror.known_stopper(self.turn.exec),
            Curr::Idle => self.mirror.idle_tasks[self.turn.exec],
        }
    }
}
