//! The policy's table of callbacks, and how one is called.
//!
//! ```text
//!           nothing to note, outermost       costs time, outermost     all others
//!  call --> Contexts::enter_first        +-> Contexts::enter       +-> begin_call
//!       |   call_prepared                |   call_priced           |   (call_function_noted)
//!       |       \          vm.call_prepared        /               |   vm.call_program_boxed
//!       |        value, or unfinished: vm.finish                   |
//!       |   Contexts::leave_first        |   Contexts::leave       |   end_call: leave
//!       `-> call_slowly -----------------+-------------------------'
//! ```
//!
//! Each column enters a context, shows the policy what it may look at (`show_guard`,
//! `flush_mirrors`), calls the program and leaves the context. The columns are apart because
//! nearly every call is in the first, and what the others do is not even tested there.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use bpf::{Errno, Image, MemberValue, Prepared, Unfinished};
use model::{Advice, Caller, CpuId, EventKind, Op, TaskId, What};

use crate::context::{Context, Directly, Locked};
use crate::flags::{self, kf};
use crate::kernels::KernelRules;
use crate::machine::{Machine, Vm};
use crate::schedulers::SchedId;
use crate::tally::Tally;

/// The policy's `struct sched_ext_ops` or `struct sched_ext_ops_cid`.
#[derive(Clone, Debug)]
pub(crate) struct Ops {
    /// It has topological numbers where the other form has CPUs.
    cid_form: bool,
    /// Name of the policy.
    name: String,
    /// `SCX_OPS_*` flags.
    flags: u64,
    timeout_ms: u64,
    batch: u32,
    /// CPUs of a shard at most; 0: the kernel's own number.
    shard_size: u32,
    /// The share of time and the span of rescues ([`crate::rescues`]); 0: the kernel's own.
    rescues: (u32, u32),
    /// The cgroup below which it attaches by itself; 1 is the root's, and 0 is none.
    sub_cgroup: u64,
    /// Function of each callback, by [`Op`]; `None`: not defined.
    callbacks: [Option<u32>; Op::ALL.len()],
}

/// Why a table cannot be attached; the kernel's own refusals.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpsError {
    /// No `sched_ext_ops` in the object.
    #[error(
        "the object defines no `struct sched_ext_ops` in a section `.struct_ops` or \
         `.struct_ops.link`: it is no scheduling policy"
    )]
    NoTable,
    /// More than one.
    #[error("the object defines several `struct sched_ext_ops` ({0}): choose one with `FILE@NAME`")]
    SeveralTables(String),
    /// A policy in cid form without an arena.
    #[error("`{table}`: cid-form scheduler must use a BPF arena map")]
    NoArena {
        /// The variable.
        table: String,
    },
    /// A scheduler that attaches below another one.
    #[error("`{table}.sub_cgroup_id` is {id}: it attaches below another scheduler")]
    Sub {
        /// The variable.
        table: String,
        /// The cgroup.
        id: u64,
    },
    /// The table's name is empty or its bytes are no name.
    #[error("`{table}.name` is empty")]
    NoName {
        /// The variable.
        table: String,
    },
    /// A flag that the kernel does not know.
    #[error("`{table}.flags` has unknown bits {bits:#x}")]
    UnknownFlags {
        /// The variable.
        table: String,
        /// The bits.
        bits: u64,
    },
    /// The watchdog's timeout is too long.
    #[error("`{table}.timeout_ms` is {timeout_ms}")]
    Timeout {
        /// The variable.
        table: String,
        /// What it says.
        timeout_ms: u64,
    },
    /// More inserts than the dispatch buffer may hold.
    #[error("`{table}.dispatch_max_batch` is {batch}")]
    Batch {
        /// The variable.
        table: String,
        /// What it says.
        batch: u64,
    },
    /// A callback that may sleep where none may.
    #[error(
        "`{table}.{member}` is a program that may sleep (section `struct_ops.s`), but this \
         callback may not"
    )]
    Sleepable {
        /// The variable.
        table: String,
        /// The member.
        member: String,
    },
    /// A member that must be a function is none.
    #[error("`{table}.{member}` is set, but is no callback that is simulated")]
    UnknownCallback {
        /// The variable.
        table: String,
        /// The member.
        member: String,
    },
}

impl Advice for OpsError {
    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::NoTable => "`runslice list --copy fifo` writes one to begin with",
            Self::NoName { .. } | Self::UnknownFlags { .. } | Self::NoArena { .. } => {
                "the kernel refuses to attach it (-EINVAL)"
            }
            Self::Sub { .. } => {
                "leave it 0 to run the policy as the root, or give it as `--sub CGROUP=POLICY`"
            }
            Self::Timeout { .. } => "the kernel refuses more than 30000 (-E2BIG)",
            Self::Batch { .. } => "the kernel refuses more than 2147483647 (-E2BIG)",
            Self::Sleepable { .. } => "the kernel refuses the object (-EINVAL)",
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

impl OpsError {
    /// What a kernel answers to whoever attaches the table, where a root is attached or none is.
    ///
    /// Source: `bpf_scx_init_member()`, kernel 6.18, and `scx_sub_enable_workfn()`, kernel 7.3. Of
    /// a scheduler below a root that its program has attached nothing is simulated.
    pub(crate) const fn errno(&self, has_root: bool) -> Errno {
        match self {
            Self::Sub { .. } if has_root => Errno::EOPNOTSUPP,
            Self::Sub { .. } => Errno::ENODEV,
            Self::Timeout { .. } | Self::Batch { .. } => Errno::E2BIG,
            _ => Errno::EINVAL,
        }
    }
}

impl Ops {
    /// No table: no policy.
    pub const fn none() -> Self {
        Self {
            cid_form: false,
            name: String::new(),
            flags: 0,
            timeout_ms: flags::WATCHDOG_MAX_TIMEOUT_MS,
            batch: flags::DSP_DFL_MAX_BATCH,
            shard_size: 0,
            rescues: (0, 0),
            sub_cgroup: 0,
            callbacks: [None; Op::ALL.len()],
        }
    }

    /// The table of `image` for a root; `table` chooses between several.
    pub fn of(image: &Image, table: Option<&str>, rules: &KernelRules) -> Result<Self, OpsError> {
        let (ops, table) = Self::read(image, table, rules)?;
        match ops.sub_cgroup {
            0 | 1 => Ok(ops),
            id => Err(OpsError::Sub { table, id }),
        }
    }

    /// As [`Ops::of`], for a scheduler below another one: its cgroup is named beside it.
    pub fn of_sub(
        image: &Image,
        table: Option<&str>,
        rules: &KernelRules,
    ) -> Result<Self, OpsError> {
        let (ops, _) = Self::read(image, table, rules)?;
        Ok(ops)
    }

    /// The table, and the name of the variable.
    fn read(
        image: &Image,
        table: Option<&str>,
        rules: &KernelRules,
    ) -> Result<(Self, String), OpsError> {
        let tables: Vec<_> = image
            .struct_ops
            .iter()
            .filter(|ops| [CPU_FORM, CID_FORM].contains(&&*ops.type_name))
            .filter(|ops| table.is_none_or(|name| ops.name == name))
            .collect();
        let table = match tables[..] {
            [] => return Err(OpsError::NoTable),
            [table] => table,
            _ => {
                let names: Vec<_> = tables.iter().map(|table| table.name.as_str()).collect();
                return Err(OpsError::SeveralTables(names.join(", ")));
            }
        };
        let mut ops = Self {
            cid_form: table.type_name == CID_FORM,
            ..Self::none()
        };
        // The kernel looks only at maps of the members' programs; an object has one arena.
        if ops.cid_form && !image.has_arena() {
            return Err(OpsError::NoArena {
                table: table.name.clone(),
            });
        }
        for (member, value) in &table.members {
            ops.set(image, &table.name, member, value)?;
        }
        ops.check_flags(&table.name, rules)?;
        if ops.name.is_empty() {
            return Err(OpsError::NoName {
                table: table.name.clone(),
            });
        }
        Ok((ops, table.name.clone()))
    }

    fn set(
        &mut self,
        image: &Image,
        table: &str,
        member: &str,
        value: &MemberValue,
    ) -> Result<(), OpsError> {
        let number = match value {
            MemberValue::Int(number) => *number,
            _ => 0,
        };
        match (member, value) {
            ("name", MemberValue::Bytes(bytes)) => {
                self.name = String::from_utf8_lossy(bytes).into_owned();
            }
            ("flags", _) => self.flags = number,
            ("timeout_ms", _) if number != 0 => {
                self.timeout_ms = number;
                if number > flags::WATCHDOG_MAX_TIMEOUT_MS {
                    let timeout_ms = number;
                    return Err(OpsError::Timeout {
                        table: table.into(),
                        timeout_ms,
                    });
                }
            }
            // Source: bpf_scx_init_member(), kernel 6.18: `*(u32 *)(udata + moff) > INT_MAX`.
            ("dispatch_max_batch", _) if number != 0 => {
                let batch = i32::try_from(number).map_err(|_| OpsError::Batch {
                    table: table.into(),
                    batch: number,
                })?;
                self.batch = batch.unsigned_abs();
            }
            ("cid_shard_size", _) => self.shard_size = number as u32,
            ("rescue_bandwidth_ppt", _) => self.rescues.0 = number as u32,
            ("rescue_quantum_us", _) => self.rescues.1 = number as u32,
            ("sub_cgroup_id", _) => self.sub_cgroup = number,
            (name, MemberValue::Program(program)) => {
                let op =
                    Op::named(name, self.cid_form).ok_or_else(|| OpsError::UnknownCallback {
                        table: table.into(),
                        member: name.into(),
                    })?;
                let program = &image.programs[*program as usize];
                let section = program.section.trim_start_matches('?');
                if section.starts_with("struct_ops.s/") && !may_sleep(op) {
                    return Err(OpsError::Sleepable {
                        table: table.into(),
                        member: name.into(),
                    });
                }
                self.callbacks[op as usize] = Some(program.function);
            }
            _ => {}
        }
        Ok(())
    }

    /// Its functions lie so far behind where its own object has them.
    pub fn move_functions(&mut self, by: u32) {
        let defined = self.callbacks.iter_mut().flatten();
        defined.for_each(|function| *function += by);
    }

    fn check_flags(&self, table: &str, rules: &KernelRules) -> Result<(), OpsError> {
        match self.flags & !rules.ops_flags {
            0 => Ok(()),
            bits => Err(OpsError::UnknownFlags {
                table: table.to_owned(),
                bits,
            }),
        }
    }

    /// Whether it is a `struct sched_ext_ops_cid`.
    #[inline(always)]
    pub const fn is_cid_form(&self) -> bool {
        self.cid_form
    }

    /// CPUs of a shard at most; 0: the kernel's own number.
    pub const fn shard_size(&self) -> u32 {
        self.shard_size
    }

    /// Its `rescue_bandwidth_ppt` and `rescue_quantum_us`.
    pub const fn rescues(&self) -> (u32, u32) {
        self.rescues
    }

    /// The policy's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the policy defines `op`.
    pub fn has(&self, op: Op) -> bool {
        self.callbacks[op as usize].is_some()
    }

    /// The function of `op`.
    pub fn function(&self, op: Op) -> Option<u32> {
        self.callbacks[op as usize]
    }

    /// Watchdog timeout, milliseconds.
    pub const fn timeout_ms(&self) -> u64 {
        self.timeout_ms
    }

    /// Size of the dispatch buffer, inserts.
    #[inline]
    pub const fn batch(&self) -> u32 {
        self.batch
    }

    /// Whether the policy sets `flag`.
    pub fn flag(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

/// The kernel's types of tables.
const CPU_FORM: &str = "sched_ext_ops";
pub(crate) const CID_FORM: &str = "sched_ext_ops_cid";

/// What is known of the calls made so far. Only this module changes it.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    count: u64,
    /// What each callback did, if that was asked.
    tally: Option<BTreeMap<&'static str, Tally>>,
}

impl Calls {
    /// None yet. `tally`: what each callback does is to be counted.
    pub fn new(tally: bool) -> Self {
        Self {
            count: 0,
            tally: tally.then(BTreeMap::new),
        }
    }

    /// One more is called.
    #[inline(always)]
    pub const fn count_one(&mut self) {
        self.count += 1;
    }

    /// How many callbacks were called.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Counts of each callback, if they were asked for. Counting ends.
    pub fn take_tally(&mut self) -> BTreeMap<&'static str, Tally> {
        self.tally.take().unwrap_or_default()
    }
}

/// Whose callback is called. It is found out only where there is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOwner {
    /// The root's: it is about a CPU or the machine.
    Root,
    /// That of the scheduler that owns the task that it is about.
    Owner,
    /// This one's: it is about a cgroup.
    The(SchedId),
}

/// A call to make.
pub(crate) struct Call<const N: usize> {
    /// Which callback.
    pub op: Op,
    /// The CPU whose run queue is locked.
    pub locked: Option<CpuId>,
    /// Whose it is.
    pub asked: CallOwner,
    /// The task that it is about.
    pub subject: Option<TaskId>,
    /// Its arguments, as the kernel passes them.
    pub args: [u64; N],
    /// The words of its event.
    pub words: (u64, u64),
}

impl<const N: usize> Call<N> {
    /// Its context for the checks of the kernel's functions: mostly a constant where it is called.
    #[inline(always)]
    pub fn context(&self, rules: &KernelRules) -> Context {
        // The lock is held there, too, but 6.18 calls it as if none were.
        let mask = match self.op {
            Op::CgroupMove if !rules.cgroup_move_is_locked => kf::UNLOCKED,
            op => MASKS[op as usize],
        };
        Context {
            mask,
            locked: Locked::of(self.locked),
            subject: self.subject.unwrap_or(TaskId::NONE),
            direct: match self.op {
                Op::SelectCpu | Op::Enqueue => Directly::Once,
                _ => Directly::Never,
            },
            // With `CONFIG_PREEMPT_RCU` the entry into a callback that may not sleep disables
            // migration.
            guards: MASKS[self.op as usize] != kf::UNLOCKED,
        }
    }
}

impl Machine {
    /// Calls a callback, if its scheduler defines it. Returns its result.
    ///
    /// A callback is atomic: the clock stands still in it, and its effects are visible at once.
    #[inline(always)]
    pub(crate) fn call<const N: usize>(&mut self, vm: &mut Vm, call: &Call<N>) -> Option<u64> {
        let Some(function) = self.scheds.root.ops.function(call.op) else {
            return self.call_of_another(vm, call);
        };
        if self.turn.contexts.are_quick()
            && let Some(prepared) = vm.prepare(&call.args)
        {
            debug_assert!(self.scheds.is_alone(), "no call is quick among several");
            self.calls.count_one();
            // What a callback is and gets is stored where it is called: most of it is known there.
            self.turn.contexts.enter_first(call.context(&self.rules));
            return self.call_prepared(vm, function, prepared);
        }
        // A copy, so that a quick call need not be in memory.
        let call = Call { ..*call };
        self.call_slowly(vm, &call)
    }

    /// Whose callback `call` is.
    pub(crate) fn asked<const N: usize>(&self, call: &Call<N>) -> SchedId {
        match (call.asked, call.subject) {
            (CallOwner::Owner, Some(task)) => self.owner(task),
            (CallOwner::The(sched), _) => sched,
            _ => SchedId::ROOT,
        }
    }

    /// Of a callback that the root does not define.
    #[inline(always)]
    fn call_of_another<const N: usize>(&mut self, vm: &mut Vm, call: &Call<N>) -> Option<u64> {
        if self.scheds.is_alone() {
            return None;
        }
        self.call_slowly(vm, &Call { ..*call })
    }

    /// Of a call of which nothing is to be noted, outside of other callbacks, and whose context is
    /// entered.
    #[inline(never)]
    fn call_prepared(&mut self, vm: &mut Vm, function: u32, prepared: Prepared) -> Option<u64> {
        self.show_mirrors(vm);
        match vm.call_prepared(function, prepared, self) {
            Ok(value) => {
                self.turn.contexts.leave_first();
                Some(value)
            }
            Err(unfinished) => self.finish_call(vm, function, unfinished),
        }
    }

    /// As [`Machine::call_prepared`], of a call of which there is more to do.
    #[inline(never)]
    fn finish_call(&mut self, vm: &mut Vm, function: u32, unfinished: Unfinished) -> Option<u64> {
        let result = vm.finish(function, unfinished, self);
        self.turn.contexts.leave_first();
        self.settle_call(SchedId::ROOT, result)
    }

    /// Of a call of which something is to be noted, or in another callback or in a program.
    #[cold]
    #[inline(never)]
    pub(crate) fn call_slowly<const N: usize>(
        &mut self,
        vm: &mut Vm,
        call: &Call<N>,
    ) -> Option<u64> {
        let who = self.asked(call);
        let function = self.scheds[who].ops.function(call.op)?;
        if who != SchedId::ROOT && self.scheds[who].attachment.has_failed() {
            return None;
        }
        self.calls.count_one();
        if self.turn.contexts.are_only_priced()
            && let Some(prepared) = vm.prepare(&call.args)
        {
            self.turn.contexts.enter_of(who, call.context(&self.rules));
            return self.call_priced(vm, function, prepared);
        }
        if self.turn.contexts.are_noted() {
            return self.call_function_noted(vm, (who, function), call);
        }
        self.begin_call(vm, who, call.context(&self.rules));
        let result = vm.call_program_boxed(function, &call.args, self);
        self.end_call(vm);
        self.settle_call(who, result)
    }

    /// Of a call that is recorded, counted or charged for.
    fn call_function_noted<const N: usize>(
        &mut self,
        vm: &mut Vm,
        (who, function): (SchedId, u32),
        call: &Call<N>,
    ) -> Option<u64> {
        if self.interleaves() {
            self.check_locks(call.op, call.subject);
        }
        if self.wants(EventKind::Callback) {
            if self.has_subs {
                self.turn_to_scheduler(who);
            }
            let task = call.subject.unwrap_or(TaskId::NONE);
            let (a, b) = call.words;
            self.emit_wanted(task, self.turn.exec, What::Callback { op: call.op, a, b });
        }
        let outer = self
            .turn
            .decisions
            .enter(vm, Caller::Callback(call.op), Some(function));
        self.turn
            .decisions
            .turn_to(call.subject.unwrap_or(TaskId::NONE));
        self.begin_call(vm, who, call.context(&self.rules));
        let spent = self.spent(vm);
        let result = if self.calls.tally.is_some() {
            self.call_tallied(vm, function, call)
        } else {
            vm.call_program_boxed(function, &call.args, self)
        };
        self.end_call(vm);
        self.turn.decisions.leave(vm, outer);
        self.charge_call(vm, spent);
        self.settle_call(who, result)
    }

    /// Enters the context of a call, in which is allowed what is allowed around it, too.
    fn begin_call(&mut self, vm: &mut Vm, who: SchedId, context: Context) {
        let mask = self.turn.contexts.innermost().mask | context.mask;
        let context = Context { mask, ..context };
        self.turn.contexts.enter_of(who, context);
        self.show_guard(vm);
        self.flush_mirrors(vm);
    }

    fn end_call(&mut self, vm: &mut Vm) {
        self.turn.contexts.leave();
        if self.turn.contexts.depth() > 0 {
            // The callback that this one was called from goes on.
            self.show_guard(vm);
        }
    }

    /// Calls a callback and counts what it does.
    #[cold]
    fn call_tallied<const N: usize>(
        &mut self,
        vm: &mut Vm,
        function: u32,
        call: &Call<N>,
    ) -> Result<u64, Box<bpf::Fault>> {
        let before = Tally::of(vm);
        let result = vm.call_program_boxed(function, &call.args, self);
        if let Some(tally) = &mut self.calls.tally {
            tally.entry(call.op.name()).or_default().add(vm, &before);
        }
        result
    }

    /// Calls a function of the object of `who` outside any callback: a timer's.
    pub(crate) fn call_unlocked_of<R>(
        &mut self,
        vm: &mut Vm,
        who: SchedId,
        body: impl FnOnce(&mut Vm, &mut Self) -> Result<R, bpf::Fault>,
    ) -> Option<R> {
        let result = self.outside_callbacks_of(vm, who, body);
        self.settle_call(who, result)
    }

    /// Runs a program without a lock and with nothing that it is about.
    pub(crate) fn outside_callbacks<R>(
        &mut self,
        vm: &mut Vm,
        body: impl FnOnce(&mut Vm, &mut Self) -> R,
    ) -> R {
        self.outside_callbacks_of(vm, self.caller(), body)
    }

    /// As [`Machine::outside_callbacks`], of a program of `who`.
    pub(crate) fn outside_callbacks_of<R>(
        &mut self,
        vm: &mut Vm,
        who: SchedId,
        body: impl FnOnce(&mut Vm, &mut Self) -> R,
    ) -> R {
        let context = Context {
            mask: kf::UNLOCKED,
            locked: Locked::NONE,
            subject: TaskId::NONE,
            direct: Directly::Never,
            guards: false,
        };
        self.turn.contexts.enter_of(who, context);
        self.flush_mirrors(vm);
        let spent = self.spent(vm);
        let outer = self.turn.decisions.enter(vm, Caller::Program, None);
        let result = body(vm, self);
        self.turn.decisions.leave(vm, outer);
        self.turn.contexts.leave();
        self.charge_call(vm, spent);
        result
    }

    /// What a program of `who` returned; one that has faulted ends it.
    #[inline(always)]
    pub(crate) fn settle_call<R>(
        &mut self,
        who: SchedId,
        result: Result<R, impl Borrow<bpf::Fault>>,
    ) -> Option<R> {
        match result {
            Ok(value) => Some(value),
            Err(fault) => self.settle_fault(who, fault.borrow()),
        }
    }

    #[cold]
    fn settle_fault<R>(&mut self, who: SchedId, fault: &bpf::Fault) -> Option<R> {
        self.fail(who, &fault.stop.to_string(), fault.to_string());
        None
    }

    /// Whether `id` must stay on its CPU: its own doing, or a callback's that it executes.
    #[inline(always)]
    pub(crate) fn cannot_migrate(&self, id: TaskId) -> bool {
        let in_callback = self.turn.contexts.depth() > 0;
        self.task(id).migration_disabled > 0 || in_callback && self.contexts_that_guard(id) > 0
    }

    /// How many of the callbacks being executed keep `id` from migrating.
    #[inline]
    pub(crate) fn contexts_that_guard(&self, id: TaskId) -> u16 {
        match self.turn.contexts.guards() {
            0 => 0,
            guards => guards * u16::from(self.cpus[self.turn.exec].executes == id),
        }
    }

    /// Whether a kernel function may be called here; ends the policy's time if not.
    ///
    /// Source: `scx_kf_allowed()`, kernel 6.18.
    #[inline]
    pub(crate) fn allowed(&mut self, mask: u32) -> bool {
        let context = self.turn.contexts.innermost().mask;
        // A function of an outer operation may not be used in one nested inside it.
        let is_nested = match highest_bit(mask) {
            kf::CPU_RELEASE => context & !(kf::CPU_RELEASE | (kf::CPU_RELEASE - 1)) != 0,
            kf::DISPATCH => context & !(kf::DISPATCH | (kf::DISPATCH - 1)) != 0,
            _ => false,
        };
        let is_allowed = context & mask != 0 && !is_nested;
        if !is_allowed {
            self.refuse_function(mask, context);
        }
        is_allowed
    }

    #[cold]
    fn refuse_function(&mut self, mask: u32, context: u32) {
        if context & mask == 0 {
            self.error(format!(
                "kfunc with mask 0x{mask:x} called from an operation only allowing 0x{context:x}"
            ));
        } else {
            let name = if mask & kf::DISPATCH != 0 {
                "dispatch"
            } else {
                "cpu_release"
            };
            self.error(format!("{name} kfunc called from a nested operation"));
        }
    }
}

/// The highest bit that is set in `mask`.
const fn highest_bit(mask: u32) -> u32 {
    match mask.checked_ilog2() {
        Some(bit) => 1 << bit,
        None => 0,
    }
}

/// Whether a callback may be a program that sleeps.
///
/// Source: `bpf_scx_check_member()`, kernel 6.18.
const fn may_sleep(op: Op) -> bool {
    matches!(
        op,
        Op::InitTask
            | Op::CgroupInit
            | Op::CgroupExit
            | Op::CgroupPrepMove
            | Op::CpuOnline
            | Op::CpuOffline
            | Op::InitCids
            | Op::Init
            | Op::ExitPolicy
            | Op::SubAttach
            | Op::SubDetach
    )
}

/// [`mask_of`] each callback.
const MASKS: [u32; Op::ALL.len()] = {
    let mut masks = [0; Op::ALL.len()];
    let mut at = 0;
    while at < masks.len() {
        masks[at] = mask_of(Op::ALL[at]);
        at += 1;
    }
    masks
};

/// Which functions a callback may call (`SCX_CALL_OP` at each call site, kernel 6.18).
const fn mask_of(op: Op) -> u32 {
    match op {
        Op::SelectCpu => kf::ENQUEUE | kf::SELECT_CPU,
        Op::Enqueue => kf::ENQUEUE,
        Op::Dispatch | Op::SubEcapsUpdated => kf::DISPATCH,
        Op::CpuRelease => kf::CPU_RELEASE,
        Op::InitTask
        | Op::InitCids
        | Op::SubAttach
        | Op::SubDetach
        | Op::Init
        | Op::ExitPolicy
        | Op::CpuOnline
        | Op::CpuOffline
        | Op::CgroupInit
        | Op::CgroupExit
        | Op::CgroupPrepMove
        | Op::CgroupCancelMove
        | Op::CgroupSetWeight
        | Op::CgroupSetBandwidth
        | Op::CgroupSetIdle
        | Op::Dump
        | Op::DumpCpu
        | Op::DumpTask => kf::UNLOCKED,
        _ => kf::REST,
    }
}
