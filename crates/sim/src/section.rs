//! Sections that forbid a task to leave its CPU: `migrate_disable()` and `migrate_enable()`.
//!
//! The section itself changes a counter. Only a switch, or on newer kernels each look for the next
//! task, points `cpus_ptr` at the mask that has the task's CPU alone, and tells the policy so. The
//! end of the section gives the affinity back, if it was taken. `cpus_mask` and `nr_cpus_allowed`
//! stay as they are.
//!
//! Source: `migrate_disable()`, `migrate_disable_switch()` and `___migrate_enable()`, kernels 6.18
//! and 7.2.

use model::TaskId;

use crate::cpu::Occupant;
use crate::flags::deq;
use crate::idle::rotate;
use crate::machine::{Machine, Vm};
use crate::mask::MaskId;
use crate::task::{Class, RunState};

impl Machine {
    /// The task that runs forbids its own migration, perhaps once more.
    pub(crate) fn migrate_disable(&mut self, vm: &mut Vm, id: TaskId) {
        let count = self.task(id).migration_disabled;
        let Some(more) = count.checked_add(1) else {
            let name = self.name(id);
            self.note(format!(
                "{name} forbids its migration for the 65536th time; a kernel's counter overflows"
            ));
            return;
        };
        self.task_mut(id).migration_disabled = more;
        if count == 0 {
            self.unbound.push(id);
        }
        self.show_section(vm, id);
    }

    /// The task that runs ends a section, and may migrate again if that was the outermost one.
    pub(crate) fn migrate_enable(&mut self, vm: &mut Vm, id: TaskId) {
        let count = self.task(id).migration_disabled;
        if count == 0 {
            let name = self.name(id);
            self.note(format!(
                "{name} ends a section that forbids migration and is in none; a kernel warns"
            ));
            return;
        }
        // The counter is still one while the policy hears of it.
        if count == 1 && !self.take_unbound(id) {
            self.give_affinity_back(vm, id);
        }
        self.task_mut(id).migration_disabled -= 1;
        self.show_section(vm, id);
    }

    /// Whether the task is in a section that no switch has seen. It is forgotten.
    fn take_unbound(&mut self, id: TaskId) -> bool {
        let at = self.unbound.iter().position(|it| *it == id);
        at.is_some_and(|at| self.unbound.swap_remove(at) == id)
    }

    fn give_affinity_back(&mut self, vm: &mut Vm, id: TaskId) {
        let affinity = self.task(id).seldom.affinity;
        // The kernel chooses a destination before it knows that it needs none.
        let rotor = &mut self.cpus[self.turn.exec].rotor;
        let allowed = self.masks.get(affinity);
        let _ = rotate(rotor, allowed, self.idle.topology().online());
        self.point_cpus(vm, id, (affinity, true));
    }

    /// Binds the task of a CPU that looks for the next one, if it is in a section and this is the
    /// moment: `first` before the next one is chosen, else behind.
    #[cold]
    pub(crate) fn bind(&mut self, vm: &mut Vm, prev: Occupant, first: bool) {
        if self.rules.binds_first != first {
            return;
        }
        let Some(id) = prev.task().filter(|id| self.take_unbound(*id)) else {
            return;
        };
        let mask = self.bound_to(self.task(id).cpu);
        if first {
            // A task that sleeps from now on is still in its queue. No lock is held yet.
            return self.under_task_locks(vm, id, |machine, vm| {
                machine.point_cpus(vm, id, (mask, true));
            });
        }
        let queued = self.task(id).state == RunState::Runnable;
        self.point_cpus(vm, id, (mask, queued));
    }

    /// Lets `cpus_ptr` show `mask`, as a change of the task's properties.
    fn point_cpus(&mut self, vm: &mut Vm, id: TaskId, (mask, queued): (MaskId, bool)) {
        let flags = deq::SAVE | deq::NOCLOCK;
        self.change_queued(vm, id, (flags, queued), |machine, vm| {
            machine.task_mut(id).cpus = mask;
            machine.mirror_cpus(id);
            if machine.task(id).class == Class::Ext {
                machine.call_set_cpumask(vm, id);
            }
        });
    }
}
