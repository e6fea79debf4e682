//! A scheduler below another one ends: what it has goes back to the one above, which goes on.
//!
//! Source: `scx_sub_disable()` and `scx_root_disable()`, kernel 7.3.

use model::{CpuId, ExitKind, Op};

use crate::cgroup::id_of;
use crate::counters::Counter;
use crate::machine::{Machine, Vm};
use crate::schedulers::SchedId;

impl Machine {
    /// The scheduler `who` has failed, or ends itself: nobody asks it any more, and it is taken off
    /// as soon as the code that executes has ended.
    #[cold]
    pub(crate) fn leave_soon(&mut self, who: SchedId) {
        if !self.scheds[who].attachment.is_attached() {
            // It is being attached or taken off, which goes on.
            return;
        }
        self.set_bypass(who, true);
        let plan = self.sub_mut(who).plan;
        self.plan_sub(plan, self.now, false);
    }

    /// The root ends: all schedulers below it end first. Without `calls` nobody hears of it: the
    /// root is not called any more.
    pub(crate) fn end_subs(&mut self, vm: &mut Vm, calls: bool) {
        self.moment.begin(vm);
        for who in self.children(SchedId::ROOT) {
            self.eject(who, ExitKind::Parent, 0, "");
            if calls {
                self.end_sub(vm, who);
            }
        }
        for who in self.subs_in_order() {
            self.eject(who, ExitKind::Parent, 0, "");
        }
        for id in (0..self.tasks.len() as u32).map(model::TaskId) {
            self.settle_ran(id);
        }
    }

    fn children(&self, of: SchedId) -> Vec<SchedId> {
        let is_child = |id: &SchedId| self.sub(*id).is_some_and(|sub| sub.parent == of);
        let order = self.subs.order.iter().copied();
        order.filter(is_child).collect()
    }

    /// Takes the scheduler `who` off, which has been ejected, and before it all below it.
    pub(super) fn end_sub(&mut self, vm: &mut Vm, who: SchedId) {
        for child in self.children(who) {
            self.eject(child, ExitKind::Parent, 0, "");
            self.end_sub(vm, child);
        }
        let parent = self.sub_mut(who).parent;
        self.scheds[who].attachment.begin_detaching();
        if self.sub_mut(who).accepted {
            self.set_bypass(who, true);
            self.scheds[who].counters.count(Counter::BypassActivate);
            self.cycle_waiting_of(vm, who);
            self.give_back(vm, who, parent);
            self.set_bypass(who, false);
            let sub = self.sub_mut(who);
            let (args, cgroup) = (sub.args, sub.cgroup);
            self.call_with_words(vm, (parent, Op::SubDetach), [args], (id_of(cgroup), 0));
        }
        let exit = self.scheds[who].attachment.exit().cloned();
        let exit = exit.expect("it has been ejected");
        let info = self.mirror.exit_info(vm, &exit);
        self.call_with_words(vm, (who, Op::ExitPolicy), [info], (exit.kind as u64, 0));
        self.scheds[who].attachment.finish_detaching();
        self.subs.order.retain(|&id| id != who);
        self.drop_caps(who);
        (0..self.spec.cpus).for_each(|cpu| self.resched(CpuId(cpu)));
    }
}
