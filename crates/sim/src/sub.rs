//! Schedulers that are attached below another one: each schedules the tasks of a cgroup.
//!
//! A scheduler above hands CPUs down: `scx_bpf_sub_dispatch()` asks one below for work
//! ([`fetch`]), and rights of each scheduler on each CPU ([`caps`]) say what it may put into a
//! local queue. [`leave`] has how one ends, [`owners`] how tasks and cgroups change hands.
//!
//! Source: kernel/sched/ext/sub.c, kernel 7.3. Attaching takes place in one moment; a kernel needs
//! milliseconds.

mod caps;
mod fetch;
mod leave;
mod owners;
mod plan;
mod rescue;

use model::{Advised, CpuId, ExitKind, Nanos, Op, SetUpTime};

use crate::attach::Scheduler;
use crate::cgroup::id_of;
use crate::counters::Counter;
use crate::dsq::DsqIndex;
use crate::flags::{self, errno};
use crate::machine::{Machine, Vm};
use crate::mask::Mask;
use crate::ops::{Call, CallOwner};
use crate::rescues::Rescues;
use crate::schedulers::SchedId;
use crate::setup::PlannedSub;
use crate::subs::{Caps, Sub, refused};

/// Schedulers one above the other, the root included (`SCX_SUB_MAX_DEPTH`).
const MOST_LEVELS: u8 = 4;

impl Machine {
    /// What is kept of the scheduler `who`; the root has none of it.
    pub(crate) fn sub(&self, who: SchedId) -> Option<&Sub> {
        self.scheds[who].sub.as_deref()
    }

    fn sub_mut(&mut self, who: SchedId) -> &mut Sub {
        let sub = self.scheds[who].sub.as_deref_mut();
        sub.expect("the root is below nobody")
    }

    /// The schedulers below the root that are attached, each before those below it.
    pub(crate) fn subs_in_order(&self) -> Vec<SchedId> {
        self.subs.order.clone()
    }

    /// Whether `who` is `above` or a scheduler below it.
    fn is_within(&self, who: SchedId, above: SchedId) -> bool {
        let up = |id: &SchedId| self.sub(*id).map(|sub| sub.parent);
        std::iter::successors(Some(who), up).any(|id| id == above)
    }

    /// The scheduler at the cgroup with this number for programs, if it is being attached or is.
    pub(crate) fn sub_at(&self, cgroup: u64) -> Option<SchedId> {
        self.scheds.ids().find(|&id| {
            let at = |sub: &Sub| id_of(sub.cgroup) == cgroup;
            self.sub(id).is_some_and(at) && self.scheds[id].attachment.is_enabling()
        })
    }

    /// The scheduler in whose map the timer at `address` lies.
    #[inline]
    pub(crate) fn scheduler_of_timer(&self, vm: &mut Vm, address: u64) -> SchedId {
        if !self.has_subs {
            return SchedId::ROOT;
        }
        let map = vm.map_of_timer(address);
        self.whose_object(|it| map.is_some_and(|map| map >= it.first_map))
    }

    /// The scheduler whose object has something: objects lie behind each other in one machine, the
    /// root's first, and `begins` says of one below it whether it begins there or before.
    pub(crate) fn whose_object(&self, begins: impl Fn(&PlannedSub) -> bool) -> SchedId {
        let found = self.planned.iter().rev().find(|it| begins(it));
        found.and_then(|it| it.sched).unwrap_or(SchedId::ROOT)
    }

    // ---- Attaching ----

    /// A scheduler is attached below another one, or its loader takes it off.
    pub(crate) fn change_sub(&mut self, vm: &mut Vm, index: usize, comes: bool) {
        if comes {
            return self.attach_sub(vm, index);
        }
        let who = self.planned[index].sched;
        if let Some(who) = who.filter(|&id| self.scheds[id].attachment.is_enabling()) {
            self.eject(who, ExitKind::Unreg, 0, "");
            self.moment.begin(vm);
            self.end_sub(vm, who);
        }
    }

    fn attach_sub(&mut self, vm: &mut Vm, index: usize) {
        let parent = match self.parent_for(index) {
            Ok(parent) => parent,
            Err(why) => {
                let advice = "attach schedulers at cgroups one below the other, parents first, \
                              each below one with sub_attach";
                return self.refuse_sub(index, Advised::new(why, advice));
            }
        };
        let who = self.add_scheduler(vm, index, parent);
        if !self.set_up_sub(vm, (index, who), SetUpTime::Loaded) {
            return;
        }
        self.moment.begin(vm);
        self.scheds[who].attachment.begin_enabling();
        if !self.enable_sub(vm, who, parent) {
            if !self.scheds[who].attachment.has_ended() {
                self.error_of(who, format!("scx_sub_enable() failed ({})", errno::ENOMEM));
            }
            return self.end_sub(vm, who);
        }
        self.set_up_sub(vm, (index, who), SetUpTime::Attached);
        self.moment.begin(vm);
    }

    /// The scheduler that owns the cgroup of what is to be attached; else a kernel's error.
    ///
    /// Source: `scx_sub_enable_workfn()`.
    fn parent_for(&self, index: usize) -> Result<SchedId, String> {
        let cgroup = self.planned[index].cgroup;
        let parent = self.cgroups.owner(cgroup);
        let is_taken = |id: &SchedId| {
            let at = self.sub(*id).map(|sub| sub.cgroup);
            at.is_some_and(|at| self.cgroups.ancestors(at).any(|it| it == cgroup))
        };
        if let Some(other) = self.subs.order.iter().find(|id| is_taken(id)) {
            let name = self.scheds[*other].ops.name();
            return Err(format!(
                "the kernel answers EBUSY: `{name}` is attached at this cgroup or below it"
            ));
        }
        if !self.scheds[parent].ops.has(Op::SubAttach) {
            let name = self.scheds[parent].ops.name();
            return Err(format!(
                "the kernel answers EOPNOTSUPP: `{name}` above it has no sub_attach"
            ));
        }
        Ok(parent)
    }

    /// A loader gives up, and with it the run ends.
    pub(crate) fn refuse_sub(&mut self, index: usize, why: Advised) {
        let planned = &self.planned[index];
        self.subs.failure = Some(refused((&planned.name, &planned.asked), why));
        self.halt_if(true);
    }

    fn add_scheduler(&mut self, vm: &mut Vm, index: usize, parent: SchedId) -> SchedId {
        let cpus = self.spec.cpus;
        if !self.has_subs {
            self.has_subs = true;
            self.turn.contexts.note_all();
            self.subs.rejects = (0..cpus).map(|_| self.add_built_in(REJECT)).collect();
            self.subs.parked = (0..cpus).map(|_| self.add_built_in(RESCUE)).collect();
            self.subs.rescues = (0..cpus).map(|_| Rescues::new()).collect();
            self.subs.stale = Some(Mask::empty(cpus));
        }
        let nodes = 0..self.idle.topology().nodes();
        let globals = nodes.map(|_| self.dsqs.add_built_in(flags::dsq::GLOBAL));
        let globals: Vec<DsqIndex> = globals.collect();
        let planned = &self.planned[index];
        let (cgroup, ops) = (planned.cgroup, planned.ops.clone());
        let path = &self.workload.cgroups[cgroup as usize - 1].path;
        let args = self
            .mirror
            .sub_args(vm, (ops.name(), path), id_of(cgroup))
            .unwrap_or(0);
        let sub = Sub {
            plan: index,
            cgroup,
            parent,
            level: self.sub(parent).map_or(1, |above| above.level + 1),
            masks: None,
            caps: Caps::new(cpus),
            globals: globals.clone(),
            owed_idle: Mask::empty(cpus),
            dispatches: false,
            accepted: false,
            tasks: 0,
            ran: 0,
            args,
        };
        self.dsqs.add_scheduler();
        let mut scheduler = Scheduler::new(ops);
        scheduler.sub = Some(Box::new(sub));
        let who = self.scheds.add(scheduler);
        let planned = &mut self.planned[index];
        planned.sched = Some(who);
        planned.first_place = vm.first_place(planned.first_function);
        for dsq in globals {
            self.tell_queue_of(who, dsq, true);
        }
        who
    }

    /// A queue of the kernel's that no program finds by its number.
    fn add_built_in(&mut self, id: u64) -> DsqIndex {
        let dsq = self.dsqs.add_built_in(id);
        self.tell_queue_of(SchedId::ROOT, dsq, true);
        dsq
    }

    /// Whether all went well; else it has ended, or there is no memory.
    fn enable_sub(&mut self, vm: &mut Vm, who: SchedId, parent: SchedId) -> bool {
        if !self.check_sub(who) || !self.alloc_sub_masks(vm, who) {
            return false;
        }
        let result = self.call_about(vm, who, Op::Init, []);
        self.end_unless_well(who, Op::Init, result);
        if self.scheds[who].attachment.has_ended() {
            return false;
        }
        let args = self.sub_mut(who).args;
        let cgroup = self.sub_mut(who).cgroup;
        let result = self.call_with_words(vm, (parent, Op::SubAttach), [args], (id_of(cgroup), 0));
        let error = self.errno_of_by(parent, Op::SubAttach, result.unwrap_or(0));
        if error != 0 {
            self.error_of(who, format!("parent rejected ({error})"));
        }
        if self.scheds[who].attachment.has_ended() {
            return false;
        }
        self.sub_mut(who).accepted = true;
        self.insert_in_order(who, parent);
        self.set_bypass(who, true);
        self.scheds[who].counters.count(Counter::BypassActivate);
        if !self.take_over(vm, who, parent) {
            return false;
        }
        self.scheds[who].attachment.finish_enabling(self.now);
        self.set_bypass(who, false);
        self.cycle_waiting_of(vm, who);
        self.tell_caps(vm, who);
        (0..self.spec.cpus).for_each(|cpu| self.resched(CpuId(cpu)));
        // Its timeout may be shorter than all others.
        self.arm_watchdog();
        true
    }

    /// What a kernel checks before it calls the scheduler `who`; whether all is well.
    fn check_sub(&mut self, who: SchedId) -> bool {
        let wants_tids = self.scheds[who].ops.flag(flags::ops::TID_TO_TASK);
        let has_tids = self.scheds.root.ops.flag(flags::ops::TID_TO_TASK);
        let message = if self.sub_mut(who).level >= MOST_LEVELS {
            format!("max nesting depth {MOST_LEVELS} violated")
        } else if wants_tids && !has_tids {
            "SCX_OPS_TID_TO_TASK requires the root scheduler to set it".to_owned()
        } else if self.scheds[who].ops.flag(flags::ops::ENQ_LAST)
            && !self.scheds[who].ops.has(Op::Enqueue)
        {
            "SCX_OPS_ENQ_LAST requires ops.enqueue() to be implemented".to_owned()
        } else {
            return true;
        };
        self.error_of(who, message);
        false
    }

    fn insert_in_order(&mut self, who: SchedId, parent: SchedId) {
        let order = &self.subs.order;
        let first_behind = match order.iter().position(|&id| id == parent) {
            None => order.len(),
            Some(at) => {
                let behind = order[at + 1..].iter();
                at + 1 + behind.take_while(|&&id| self.is_within(id, parent)).count()
            }
        };
        self.subs.order.insert(first_behind, who);
    }

    /// Calls a callback of `who` that is about no task and holds no lock.
    fn call_about<const N: usize>(
        &mut self,
        vm: &mut Vm,
        who: SchedId,
        op: Op,
        args: [u64; N],
    ) -> Option<u64> {
        self.call_with_words(vm, (who, op), args, (0, 0))
    }

    fn call_with_words<const N: usize>(
        &mut self,
        vm: &mut Vm,
        (who, op): (SchedId, Op),
        args: [u64; N],
        words: (u64, u64),
    ) -> Option<u64> {
        let call = Call {
            op,
            locked: None,
            asked: CallOwner::The(who),
            subject: None,
            args,
            words,
        };
        self.call(vm, &call)
    }

    // ---- At the end of a run ----

    /// Notes which schedulers were to come after the end of the run.
    pub(crate) fn note_never_attached(&mut self) {
        let never = self.planned.iter().filter(|it| it.sched.is_none());
        let told = never.map(|it| {
            let cgroup = &self.workload.cgroups[it.cgroup as usize - 1].path;
            let name = &it.name;
            format!("`{name}` at {cgroup} was never attached: the run ended before")
        });
        let told: Vec<String> = told.collect();
        told.into_iter().for_each(|note| self.note(note));
    }

    /// What became of each of them.
    pub(crate) fn subs_at_end(&self) -> Vec<model::SubSummary> {
        let ids = self.scheds.ids();
        ids.filter_map(|id| self.sub_at_end(id)).collect()
    }

    fn sub_at_end(&self, who: SchedId) -> Option<model::SubSummary> {
        let (sched, sub) = (&self.scheds[who], self.sub(who)?);
        let planned = &self.planned[sub.plan];
        Some(model::SubSummary {
            cgroup: self.workload.cgroups[sub.cgroup as usize - 1].path.clone(),
            policy: planned.name.clone(),
            level: sub.level,
            tasks: sub.tasks,
            ran: Nanos::new(sub.ran),
            exit: sched.attachment.exit()?.clone(),
            counters: sched.counters.named(&self.rules),
        })
    }
}

/// Number of the queues of tasks that were not admitted (`SCX_DSQ_REJECT`).
const REJECT: u64 = flags::dsq::BUILTIN | 4;
/// Of those of tasks that wait for a rescue (`SCX_DSQ_RESCUE`).
const RESCUE: u64 = flags::dsq::BUILTIN | 5;
