//! Programs at tracepoints and at functions of the kernel: called where and when a kernel calls
//! them, by the task that a kernel would find there, on its CPU, and charged as callbacks are.
//!
//! Source of each place and of its arguments: kernel 6.18, include/trace/events and the function
//! that is named at the method here.

use bpf::{Attachment, Fault, Stop};
use model::user_space::BpfId;
use model::{CpuId, TaskId};

use crate::context::{Context, Directly, Locked};
use crate::cpu::{Curr, Occupant};
use crate::machine::{Machine, Vm};
use crate::places::{AttachPoint, Hook};
use crate::schedulers::SchedId;
use crate::task::RunState;

/// `CLONE_*` of a thread that a C library makes, and of its `fork()` (kernel 6.18,
/// include/uapi/linux/sched.h).
const THREAD_FLAGS: u64 = 0x003d_0f00;
const FORK_FLAGS: u64 = 0x0120_0000;
/// Room for a name or a path that a program is given (`PATH_MAX`).
const TEXT_BYTES: u64 = 4096;

impl Machine {
    /// Links have come or gone.
    pub(super) fn set_hooks(&mut self, links: &[(BpfId, Attachment, Option<u32>)]) {
        self.hooked = self.program().hooks.set(links);
    }

    /// A task is chosen (`__schedule()`): the tracepoint comes before the switch, while `prev` is
    /// still the current task, and the run queue has the next one already.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_switch(&mut self, vm: &mut Vm, cpu: CpuId, prev: Occupant) {
        if !self.hooked.has(AttachPoint::SchedSwitch) {
            return;
        }
        let next = self.cpus[cpu].occupant;
        let (state, is_preempted) = match prev.curr() {
            Curr::Task(id) => {
                let task = self.task(id);
                let runnable = task.state == RunState::Runnable;
                // A user's task is preempted on its way out of the kernel, by a plain call.
                (task.kernel_state(), runnable && task.kernel)
            }
            Curr::Idle => (0, false),
            // The migration thread sleeps when its work is done.
            Curr::Stopper => (1, false),
        };
        let [from, to] = [prev, next].map(|it| self.address_on(vm, cpu, it.curr()));
        self.mirror_curr(cpu);
        self.flush_mirrors(vm);
        self.cpus[cpu].occupant = prev;
        let args = [u64::from(is_preempted), from, to, state.into()];
        self.call_hooks(vm, AttachPoint::SchedSwitch, false, &args);
        self.cpus[cpu].occupant = next;
    }

    fn address_on(&mut self, vm: &mut Vm, cpu: CpuId, curr: Curr) -> u64 {
        match curr {
            Curr::Task(id) => self.task(id).address,
            Curr::Idle => self.mirror.idle_tasks[cpu],
            Curr::Stopper => self.mirror.stopper(vm, cpu),
        }
    }

    /// A tracepoint whose argument is a task: in `try_to_wake_up()`, `wake_up_new_task()` and
    /// `delayed_put_task_struct()`.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_task(&mut self, vm: &mut Vm, place: AttachPoint, id: TaskId) {
        let address = self.task(id).address;
        // Of tasks of other classes callbacks see it later.
        self.mirror_state(id);
        self.call_hooks(vm, place, false, &[address]);
    }

    /// The tick has called the class of the current task: `sched_tick()` ends with `scx_tick()`.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_tick(&mut self, vm: &mut Vm, cpu: CpuId) {
        let rq = self.mirror.rqs[cpu];
        self.call_hooks(vm, AttachPoint::ScxTick, false, &[rq]);
        self.call_hooks(vm, AttachPoint::ScxTick, true, &[rq, 0]);
    }

    /// A task was forked and is not awake yet: the end of `copy_process()`, and `kernel_clone()`.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_fork(
        &mut self,
        vm: &mut Vm,
        (parent, child): (TaskId, TaskId),
        is_process: bool,
    ) {
        let flags = if is_process { FORK_FLAGS } else { THREAD_FLAGS };
        let [parent, child] = [parent, child].map(|id| self.task(id).address);
        self.call_hooks(vm, AttachPoint::TaskNewtask, false, &[child, flags]);
        self.call_hooks(vm, AttachPoint::SchedProcessFork, false, &[parent, child]);
    }

    /// A task is about to get another name (`__set_task_comm()`), and still has the old one.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_rename(&mut self, vm: &mut Vm, id: TaskId, comm: &str) {
        let task = self.task(id);
        if self.hooked.has(AttachPoint::TaskRename) && *task.seldom.comm != *comm {
            let address = task.address;
            let text = self.hook_text(vm, comm);
            self.call_hooks(vm, AttachPoint::TaskRename, false, &[address, text]);
        }
    }

    /// The current task has begun to exit (`do_exit()`).
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_exit(&mut self, vm: &mut Vm, id: TaskId) {
        let (address, tgid) = (self.task(id).address, self.task(id).tgid);
        let mut others = self.tasks.iter().filter(|task| task.tgid == tgid);
        let is_last = others.all(|task| task.exiting || task.state == RunState::Dead);
        let args = [address, u64::from(is_last)];
        self.call_hooks(vm, AttachPoint::SchedProcessExit, false, &args);
    }

    /// A task, or all of its process, was written into a cgroup (`cgroup_attach_task()`).
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_cgroup_attach(
        &mut self,
        vm: &mut Vm,
        id: TaskId,
        to: u32,
        is_process: bool,
    ) {
        if !self.hooked.has(AttachPoint::CgroupAttachTask) {
            return;
        }
        let tgid = self.task(id).tgid;
        let leader = self.tasks.iter().find(|task| task.pid == tgid);
        let task = leader.filter(|_| is_process).unwrap_or(self.task(id));
        let address = task.address;
        let path = (to as usize)
            .checked_sub(1)
            .map_or("", |index| &self.workload.cgroups[index].path);
        let path = format!("/{}", path.trim_start_matches('/'));
        let text = self.hook_text(vm, &path);
        let args = [self.mirror.cgroup(to), text, address, is_process.into()];
        self.call_hooks(vm, AttachPoint::CgroupAttachTask, false, &args);
    }

    /// The policy's table is registered (`bpf_scx_reg()`); at the exit with its `result`.
    pub(super) fn trace_reg(&mut self, vm: &mut Vm, result: Option<i32>) {
        let args = [0, 0, result.map_or(0, i64::from).cast_unsigned()];
        // The loader's thread executes it, which may be no task here.
        let cpu = self.turn.exec;
        self.mirror.guard_idle(vm, cpu, true);
        match result {
            None => self.call_hooks(vm, AttachPoint::ScxReg, false, &args[..2]),
            Some(_) => self.call_hooks(vm, AttachPoint::ScxReg, true, &args),
        }
        self.mirror.guard_idle(vm, cpu, false);
    }

    /// `text` where a program can read it, until there is another one. 0 if there is no memory.
    fn hook_text(&mut self, vm: &mut Vm, text: &str) -> u64 {
        let hooks = &mut self.program().hooks;
        let at = match hooks.text_at {
            Some(at) => at,
            None => match vm.memory().alloc_kernel(TEXT_BYTES, 8) {
                Ok(at) => *hooks.text_at.insert(at),
                Err(_) => return 0,
            },
        };
        let mut bytes = text.as_bytes().to_vec();
        bytes.truncate(TEXT_BYTES as usize - 1);
        bytes.push(0);
        vm.memory().write(at, &bytes);
        at
    }

    fn call_hooks(&mut self, vm: &mut Vm, place: AttachPoint, at_exit: bool, args: &[u64]) {
        if !self.hooked.has(place) {
            return;
        }
        let hooks = &self.program().hooks;
        let called = hooks.all.iter().filter(|hook| {
            let fits = (hook.place, hook.at_exit) == (place, at_exit);
            fits && !hooks.broken.contains(&hook.link)
        });
        let called: Vec<Hook> = called.cloned().collect();
        for hook in called {
            if let Err(fault) = self.call_hook(vm, &hook, args) {
                self.settle_hook(hook.link, &fault);
            }
        }
    }

    /// A call without a lock of sched_ext's and with nothing that it is about: none of the kernel's
    /// functions that ask for one can be called.
    fn call_hook(&mut self, vm: &mut Vm, hook: &Hook, args: &[u64]) -> Result<u64, Fault> {
        self.turn.contexts.enter(Context {
            mask: self.turn.contexts.innermost().mask,
            locked: Locked::NONE,
            subject: TaskId::NONE,
            direct: Directly::Never,
            guards: hook.is_function,
        });
        self.show_guard(vm);
        self.flush_mirrors(vm);
        let spent = self.spent(vm);
        let result = vm.call_program(hook.function, args, self);
        self.turn.contexts.leave();
        self.charge_call(vm, spent);
        result
    }

    /// A program has faulted that a kernel's verifier would not have let in, so it is not called
    /// again; the policy goes on. Only when the run's budget is spent does all end.
    fn settle_hook(&mut self, link: BpfId, fault: &Fault) {
        if matches!(fault.stop, Stop::TotalBudget { .. }) {
            self.fail(SchedId::ROOT, &fault.stop.to_string(), fault.to_string());
            return;
        }
        self.program().hooks.broken.insert(link);
        self.note(format!(
            "a program that the loader attached failed, and is not called any more: {fault}"
        ));
    }
}
