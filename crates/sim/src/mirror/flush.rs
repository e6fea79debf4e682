//! How mirrors are brought up to date: what has changed is noted, and written before somebody can
//! look.

use bpf::Memory;
use model::{CpuId, TaskId};

use super::{GUARDS, STALE, stale};
use crate::machine::{Machine, Vm};

impl Machine {
    /// Notes that parts of a task's mirror are out of date.
    #[inline]
    pub(crate) fn touch(&mut self, id: TaskId, what: u8) {
        let what = what & self.mirror.seen.parts;
        if what != 0 {
            self.touch_seen(id, what);
        }
    }

    #[inline]
    pub(super) fn touch_seen(&mut self, id: TaskId, what: u8) {
        let task = &mut self.tasks[id.index()];
        if task.stale == 0 {
            self.mirror.stale_tasks.push(id);
            self.mirror.due |= STALE;
        }
        task.stale |= what;
    }

    /// Brings everything up to date that a program can look at.
    #[inline]
    pub(crate) fn flush_mirrors(&mut self, vm: &mut Vm) {
        if self.mirror.due & STALE != 0 {
            self.flush_stale(vm.memory());
        }
    }

    #[inline(never)]
    fn flush_stale(&mut self, memory: &mut Memory) {
        // Nearly always it is one task and its slice, and no loop: else all that a task may need
        // is prepared before the loop begins, for one that needs a small part of it.
        if let Some(id) = self.mirror.stale_tasks.pop() {
            match self.tasks.get_mut(id.index()) {
                Some(task) if task.stale == stale::SLICE && task.address != 0 => {
                    task.stale = 0;
                    self.mirror.write_turn(memory, task, stale::SLICE);
                }
                _ => self.flush_one(memory, id),
            }
        }
        let mirror = &mut self.mirror;
        // The masks of idle CPUs are looked at each time: claims are not noted.
        mirror.due &= if mirror.idle_shared { !0 } else { !STALE };
        let has_more = !mirror.stale_tasks.is_empty() || !mirror.stale_cpus.is_empty();
        if has_more || mirror.idle_shared {
            self.flush_rest(memory);
        }
    }

    #[inline(never)]
    fn flush_rest(&mut self, memory: &mut Memory) {
        while let Some(id) = self.mirror.stale_tasks.pop() {
            self.flush_one(memory, id);
        }
        while let Some(cpu) = self.mirror.stale_cpus.pop() {
            self.flush_cpu(memory, cpu);
        }
        if self.mirror.idle_shared {
            self.mirror.write_idle(memory, &self.idle);
        }
    }

    #[inline(never)]
    fn flush_one(&mut self, memory: &mut Memory, id: TaskId) {
        self.flush_task(memory, id);
    }

    #[inline(always)]
    fn flush_task(&mut self, memory: &mut Memory, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id.index()) else {
            return;
        };
        let what = std::mem::take(&mut task.stale);
        if task.address == 0 {
            return;
        }
        if what & stale::TURN != 0 {
            self.mirror.write_turn(memory, task, what);
        }
        if what & !stale::TURN != 0 {
            let task = &self.tasks[id.index()];
            self.mirror.write_task(memory, task, &self.masks, what);
            if what & stale::PARENT != 0 {
                self.write_parent(memory, id);
            }
        }
    }

    #[inline(never)]
    fn flush_cpu(&self, memory: &mut Memory, cpu: CpuId) {
        let curr = match self.rq_curr(cpu).task() {
            Some(id) => self.task(id).address,
            None => self.mirror.idle_tasks[cpu],
        };
        memory.poke_u64(self.mirror.rqs[cpu] + self.mirror.layout.rq_curr, curr);
        self.mirror.write_clocks(memory, cpu);
    }

    /// Before a callback: the clocks of the run queue that is locked go on. Only the task that
    /// executes it cannot migrate because of that, and its mirror says so.
    ///
    /// Between callbacks no program can look, so the mirror goes on saying so until another
    /// callback is executed by somebody else.
    #[inline]
    pub(crate) fn show_guard(&mut self, vm: &mut Vm) {
        if self.mirror.due & GUARDS != 0 {
            self.show_guard_to_readers(vm);
        }
    }

    /// All that comes before a callback: [`Machine::show_guard`] and [`Machine::flush_mirrors`] by
    /// one test.
    #[inline(always)]
    pub(crate) fn show_mirrors(&mut self, vm: &mut Vm) {
        if self.mirror.due != 0 {
            self.show_guard(vm);
            self.flush_mirrors(vm);
        }
    }

    #[inline(never)]
    fn show_guard_to_readers(&mut self, vm: &mut Vm) {
        if self.mirror.seen.clocks
            && let Some(locked) = self.turn.contexts.innermost().locked.cpu()
        {
            self.update_seen_clock(locked);
        }
        if !self.mirror.seen.migration_disabled {
            return;
        }
        let executes = self.cpus[self.turn.exec].executes;
        // What is added to the own count of who executes, and nobody else.
        let guards = self.turn.contexts.guards();
        let mut now = None;
        if self.turn.contexts.innermost().guards
            && let Some(task) = self.tasks.get(executes.index())
        {
            now = Some((executes, task.migration_disabled + guards));
        }
        if self.mirror.guarded != now {
            self.write_guards(vm, (executes, guards), now);
        }
    }

    /// Another task than before shows what callbacks add, or another count.
    #[inline(never)]
    fn write_guards(
        &mut self,
        vm: &mut Vm,
        (executes, guards): (TaskId, u16),
        now: Option<(TaskId, u16)>,
    ) {
        if let Some((id, _)) = std::mem::replace(&mut self.mirror.guarded, now) {
            let guards = if id == executes { guards } else { 0 };
            self.write_guard(vm, id, guards);
        }
        if now.is_some() {
            self.write_guard(vm, executes, guards);
        }
    }

    /// Says in the mirror of `id` how often it has forbidden its migration by itself.
    pub(crate) fn show_section(&mut self, vm: &mut Vm, id: TaskId) {
        // What callbacks add is written anew before the next one.
        if self.mirror.guarded.is_some_and(|(it, _)| it == id) {
            self.mirror.guarded = None;
        }
        self.write_guard(vm, id, 0);
    }

    /// Says in the mirror of `id` that so many callbacks keep it from migrating.
    #[inline(always)]
    fn write_guard(&self, vm: &mut Vm, id: TaskId, guards: u16) {
        // It may have ended meanwhile.
        let task = self.tasks.get(id.index());
        if let Some(task) = task.filter(|task| task.address != 0) {
            let object = vm.memory().kernel_object(task.address);
            let disabled = (task.migration_disabled + guards).to_le_bytes();
            self.mirror
                .layout
                .turn
                .migration_disabled
                .put(object, disabled);
        }
    }

    #[inline]
    pub(crate) fn mirror_curr(&mut self, cpu: CpuId) {
        if self.mirror.seen.curr && self.mirror.stale_cpus.last() != Some(&cpu) {
            self.mirror.stale_cpus.push(cpu);
            self.mirror.due |= STALE;
        }
        self.update_rq_clock(cpu);
    }

    /// Asks the processor for what the turns of those tasks and CPUs need whose events come soon.
    /// Else it would come from memory piece by piece when it is needed, while everything waits.
    #[inline(never)]
    pub(crate) fn load_soon(&mut self, vm: &mut Vm) {
        let mut soon = std::mem::take(self.queue.soon());
        for &cpu in &soon.cpus {
            // Its two lines.
            let state = &self.cpus[cpu];
            allocator::prefetch(&state.occupant);
            allocator::prefetch(&state.busy_until);
            self.dsqs.prefetch_local(cpu);
        }
        for &id in &soon.tasks {
            if let Some(task) = self.tasks.get(id.index()) {
                // Its three lines.
                allocator::prefetch(&task.address);
                allocator::prefetch(&task.class);
                allocator::prefetch(&task.direct);
            }
            self.work.prefetch(id);
            self.dsqs.prefetch(id);
        }
        // The addresses of the mirrors lie in the tasks, which may be here by now.
        for &id in &soon.tasks {
            if let Some(task) = self.tasks.get(id.index()) {
                let memory = vm.memory();
                memory.prefetch(task.address);
                memory.prefetch(task.address + self.mirror.layout.turn.sum_exec.offset());
            }
        }
        soon.clear();
        *self.queue.soon() = soon;
    }
}
