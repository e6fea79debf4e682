//! Birth and death of tasks.
//!
//! Source: `sched_fork()`, `sched_cgroup_fork()`, `wake_up_new_task()`, `do_exit()` and
//! `sched_ext_free()`, kernel 6.18 as engine vectors V19 to V21 show it.

use model::{CpuId, EventKind, Nanos, Op, TaskId, What};
use workload::{CpuSet, ROOT_CGROUP, SchedPolicy};

use crate::flags::{deq, enq, wake};
use crate::interleave::state::LockKey;
use crate::machine::{Machine, Vm};
use crate::ops::{Call, CallOwner};
use crate::pending::Pending;
use crate::places::AttachPoint;
use crate::schedulers::SchedId;
use crate::speeds::TaskPace;
use crate::task::{Class, RunState, ScxState, Task, class_of, weight_of};
use crate::work::{Action, Birth};

/// How long after its last switch an exited task is freed: 4 to 60 ms were seen on 6.18.15; the
/// grace period is of no consequence to the schedule.
const GRACE_PERIOD: Nanos = Nanos::from_millis(20);
/// Bytes of `comm`, its end included (`TASK_COMM_LEN`).
const COMM_LEN: usize = 16;

impl Machine {
    /// Creates what the workload has from its start: tasks, interrupts, CPUs that come and go.
    /// Returns the birth of the program's first thread, which is none of the workload's tasks.
    ///
    /// # Errors
    /// If there is no room for the tasks.
    pub(crate) fn populate(&mut self, vm: &mut Vm) -> Result<Option<Birth>, bpf::OutOfMemory> {
        let mut leader = None;
        for birth in self.work.initial() {
            if self.is_of_program(birth.group) {
                leader = Some(birth);
            } else {
                self.create(vm, &birth)?;
            }
        }
        for (source, cpu, time) in self.work.interrupts() {
            self.queue.push(time, cpu, Pending::Interrupt { source });
        }
        self.plan_hotplug();
        Ok(leader)
    }

    /// Creates a task that exists before the policy is attached, and begins when it says.
    pub(crate) fn create(
        &mut self,
        vm: &mut Vm,
        birth: &Birth,
    ) -> Result<TaskId, bpf::OutOfMemory> {
        let id = self.create_asleep(vm, birth, None)?;
        let (time, cpu) = (birth.start.max(self.now), self.task(id).cpu);
        self.queue.push(time, cpu, Pending::Start { task: id });
        Ok(id)
    }

    /// Creates a task that exists before the policy is attached, and sleeps.
    pub(crate) fn create_asleep(
        &mut self,
        vm: &mut Vm,
        birth: &Birth,
        parent: Option<TaskId>,
    ) -> Result<TaskId, bpf::OutOfMemory> {
        let mask = self.mask_of(birth.cpus.as_ref());
        // Sleepers of a booted system are spread over the CPUs.
        let allowed = self.masks.get(mask);
        let nth = self.tasks.len() % allowed.count() as usize;
        let cpu = allowed.iter().nth(nth).expect("the mask is not empty");
        let id = self.add_task(vm, birth, parent, cpu)?;
        self.task_mut(id).class = class_of(birth.policy, false, false);
        self.task_mut(id).css_set = self.task(id).cgroup;
        self.mirror_cgroup(vm, id);
        if let Some(parent) = parent {
            self.become_child(id, parent, birth);
        }
        self.admit(id, birth.policy);
        self.task_mut(id).state = RunState::Sleeping;
        // Nobody forks it: to those who listen it was there from the begin.
        self.emit_new(id, birth, None);
        self.rename(id, birth);
        Ok(id)
    }

    /// `fork()` by the task that runs on this CPU. `None`: the policy refused the child.
    pub(crate) fn fork(
        &mut self,
        vm: &mut Vm,
        parent: TaskId,
        birth: &Birth,
    ) -> Result<Option<TaskId>, bpf::OutOfMemory> {
        let cpu = self.task(parent).cpu;
        let id = self.add_task(vm, birth, Some(parent), cpu)?;
        // Nobody hears of a task before it is announced, and a refused one never is; but where
        // others come in between, their events may have been handed over by then.
        let is_announced = self.interleaves();
        if is_announced {
            self.emit_new(id, birth, Some(parent));
        }
        let before = self.recorded().len();
        if self.scheds.root.attachment.is_attached() {
            let error = self.init_task(vm, id, true);
            if error != 0 && is_announced {
                self.refuse_announced(vm, id);
                return Ok(None);
            }
            if error != 0 {
                // The next child gets its number.
                for event in &mut self.recorded()[before..] {
                    if event.task == id {
                        event.task = TaskId::NONE;
                    }
                }
                self.remove_newest(vm, id);
                return Ok(None);
            }
        }
        let class = class_of(
            birth.policy,
            self.scheds.root.attachment.is_attached(),
            self.is_partial(),
        );
        self.task_mut(id).class = class;
        self.become_child(id, parent, birth);
        if !is_announced {
            self.emit_new(id, birth, Some(parent));
            let announced = usize::from(self.wants(EventKind::New));
            self.recorded()[before..].rotate_right(announced);
        }
        if class == Class::Ext {
            self.under_task_locks(vm, id, |machine, vm| machine.enable_task(vm, id));
        }
        // `cgroup_post_fork()` comes last: a policy that asks before finds the root.
        self.task_mut(id).css_set = self.task(id).cgroup;
        self.mirror_cgroup(vm, id);
        self.admit(id, birth.policy);
        if self.hooked.any() {
            self.trace_fork(vm, (parent, id), birth.process);
        }
        let locked = self.lock(vm, LockKey::Task(id));
        self.begin_waking(id);
        let (target, _) = self.select_task_rq(vm, id, cpu, wake::FORK);
        self.activate_new(vm, id, target, enq::NOCLOCK);
        if locked {
            self.unlock(LockKey::Task(id));
        }
        if self.hooked.any() && !self.is_of_program(birth.group) {
            let comm = self.workload.task_name(birth.group, birth.index);
            self.trace_rename(vm, id, &comm);
        }
        self.rename(id, birth);
        Ok(Some(id))
    }

    /// `fork()` as a workload that is played with processes has it: the child is what its parent
    /// is, and makes itself what its group says in its first turn. `None`: it was refused.
    pub(crate) fn fork_as_played(
        &mut self,
        vm: &mut Vm,
        parent: TaskId,
        birth: &Birth,
    ) -> Result<Option<TaskId>, bpf::OutOfMemory> {
        let task = self.next_id();
        let (nice, policy) = (self.task(parent).nice, self.task(parent).seldom.policy);
        // A deadline task cannot fork at all (`sched_fork()`), which no play gets as far as.
        let policy = match policy {
            SchedPolicy::Deadline(_) => SchedPolicy::Normal,
            other => other,
        };
        let affinity = self.task(parent).seldom.affinity;
        let cpus: CpuSet = self.masks.get(affinity).iter().collect();
        let wanted = CpuSet::allowed(birth.cpus.as_ref(), self.spec.cpus);
        let to_policy = |policy| Action::SetPolicy { task, policy };
        let to_nice = |nice| Action::SetNice { task, nice };
        let to_cpus = |cpus| Action::SetAffinity { task, cpus };
        // In the order in which `play` changes them, and only what changes something: the kernel
        // leaves at once what is so already (`set_user_nice()`, `__sched_setscheduler()` and
        // `__set_cpus_allowed_ptr_locked()` in kernel/sched, 6.18).
        let normal = SchedPolicy::Normal;
        let changes = [
            (policy != normal).then(|| to_policy(normal)),
            (nice != birth.nice).then(|| to_nice(birth.nice)),
            (cpus != wanted).then(|| to_cpus(wanted)),
            (birth.policy != normal).then(|| to_policy(birth.policy)),
        ];
        let inherits = Birth {
            nice,
            policy,
            cpus: Some(cpus),
            ..birth.clone()
        };
        let child = self.fork(vm, parent, &inherits)?;
        if child.is_some() {
            let changes = changes.into_iter().flatten();
            self.work.change_first(task, changes);
        }
        Ok(child)
    }

    fn next_id(&self) -> TaskId {
        TaskId(u32::try_from(self.tasks.len()).expect("fewer than 2^32 tasks"))
    }

    fn add_task(
        &mut self,
        vm: &mut Vm,
        birth: &Birth,
        parent: Option<TaskId>,
        cpu: CpuId,
    ) -> Result<TaskId, bpf::OutOfMemory> {
        let id = self.next_id();
        let pid = self.pid_of_next(birth.group);
        // A child is called like its parent until it calls itself something else.
        let comm = parent.map_or_else(String::new, |parent| {
            self.task(parent).seldom.comm.to_string()
        });
        let mut task = Task::new(comm, pid, cpu, self.now);
        if let (Some(parent), false) = (parent, birth.process) {
            task.tgid = self.task(parent).tgid;
        }
        task.mm = self.mm_of(vm, birth, parent)?;
        task.kernel = birth.kernel;
        let group = &self.workload.groups[birth.group as usize];
        let usual = self.ledger.costs().map(|costs| costs.footprint_bytes);
        task.seldom.footprint = group.footprint.or(usual).unwrap_or(0);
        let is_paced = self.speeds.is_some();
        task.seldom.pace = is_paced.then(|| Box::new(TaskPace::new(birth.group, group)));
        task.seldom.family = self.family_of_new(parent, birth);
        task.nice = birth.nice;
        task.seldom.policy = birth.policy;
        task.weight = weight_of(birth.policy, birth.nice);
        let inherited = || parent.map_or(ROOT_CGROUP, |parent| self.task(parent).cgroup);
        // `init_scx_entity()`, kernel 6.18.
        task.runnable_at = self.jiffies();
        task.cgroup = birth.cgroup.unwrap_or_else(inherited);
        task.owner = self.cgroups.owner(task.cgroup);
        let is_owned = task.owner != SchedId::ROOT;
        task.cpus = self.mask_of(birth.cpus.as_ref());
        task.seldom.affinity = task.cpus;
        if birth.migration_disabled {
            task.migration_disabled = 1;
            task.cpus = self.bound_near(task.cpus, cpu);
        }
        // Its number is taken everywhere at once: a program that is called meanwhile may create
        // others.
        self.tasks.push(task);
        if is_owned {
            self.count_born(id);
        }
        self.dsqs.add_task(id);
        self.work.born(id, birth, parent);
        self.mirror_create(vm, id)?;
        Ok(id)
    }

    /// A task whose fork failed was announced: it is gone at once, and its number is not used
    /// again, because others may have been born meanwhile.
    fn refuse_announced(&mut self, vm: &mut Vm, id: TaskId) {
        let (cpu, address) = (self.task(id).cpu, self.task(id).address);
        self.task_mut(id).state = RunState::Dead;
        self.emit(id, cpu, What::Exit);
        self.work.refused(id);
        vm.free_owner(address, self);
        self.task_mut(id).reaped = true;
        if self.task(id).references == 0 {
            self.mirror_free(vm, id);
        }
    }

    /// Takes back a task whose fork failed.
    fn remove_newest(&mut self, vm: &mut Vm, id: TaskId) {
        assert_eq!(
            id.index() + 1,
            self.tasks.len(),
            "only the newest task can be taken back"
        );
        let address = self.task(id).address;
        vm.free_owner(address, self);
        self.mirror_free(vm, id);
        self.tasks.pop();
        self.dsqs.remove_newest();
        self.work.remove_newest();
    }

    fn rename(&mut self, id: TaskId, birth: &Birth) {
        let comm = self.workload.task_name(birth.group, birth.index);
        self.set_comm(id, comm);
    }

    /// `set_task_comm()`: what is too long is cut.
    pub(crate) fn set_comm(&mut self, id: TaskId, mut comm: String) {
        let mut end = comm.len().min(COMM_LEN - 1);
        while !comm.is_char_boundary(end) {
            end -= 1;
        }
        comm.truncate(end);
        self.task_mut(id).seldom.comm = comm.into();
        self.mirror_comm(id);
    }

    fn emit_new(&mut self, id: TaskId, birth: &Birth, parent: Option<TaskId>) {
        let (cpu, pid) = (self.task(id).cpu, self.task(id).pid);
        let new = What::New {
            group: birth.group,
            index: birth.index,
            pid,
            parent: parent.unwrap_or(TaskId::NONE),
        };
        self.emit(id, cpu, new);
    }

    /// Tells the policy that a task exists. Returns its verdict: 0, or a negative error number.
    pub(crate) fn init_task(&mut self, vm: &mut Vm, id: TaskId, fork: bool) -> i32 {
        self.set_scx_state(id, ScxState::Begin);
        let address = self.task(id).address;
        let owner = self.owner(id);
        let error = self.init_task_by(vm, owner, (id, fork), self.task(id).cgroup);
        if error == 0 {
            self.set_scx_state(id, ScxState::Ready);
            if fork && self.mirror.disallows(vm, address) {
                let name = self.name(id);
                let what = "set task->scx.disallow for";
                self.error_of(owner, format!("ops.init_task() {what} {name} during fork"));
            }
        }
        error
    }

    /// Ends the scheduler `who` with the kernel's words if a callback of it, without which it
    /// cannot begin, has returned an error.
    pub(crate) fn end_unless_well(&mut self, who: SchedId, op: Op, result: Option<u64>) {
        let error = self.errno_of_by(who, op, result.unwrap_or(0));
        if error != 0 {
            self.error_of(who, format!("ops.{}() failed ({error})", op.name()));
        }
    }

    /// What a callback of `who` returned as an error number; one that is none is a misuse.
    ///
    /// Source: `ops_sanitize_err()`, kernel 6.18.
    pub(crate) fn errno_of_by(&mut self, who: SchedId, op: Op, result: u64) -> i32 {
        const MAX_ERRNO: i32 = 4095;
        const EPROTO: i32 = -71;
        let error = result as i32;
        if (-MAX_ERRNO..=0).contains(&error) {
            return error;
        }
        let message = format!("ops.{}() returned an invalid errno {error}", op.name());
        self.error_of(who, message);
        EPROTO
    }

    /// A task enters the policy's class.
    pub(crate) fn enable_task(&mut self, vm: &mut Vm, id: TaskId) {
        let task = self.task_mut(id);
        task.weight = weight_of(task.seldom.policy, task.nice);
        task.seldom.weighed = true;
        self.mirror_policy(id);
        let (cpu, address, weight) = (
            self.task(id).cpu,
            self.task(id).address,
            self.task(id).weight,
        );
        let by_cid = self.is_cid_form() && self.rules.enables_with_mask;
        let args = if by_cid { self.enable_args(vm, id) } else { 0 };
        self.call(
            vm,
            &Call {
                op: Op::Enable,
                locked: Some(cpu),
                asked: CallOwner::Owner,
                subject: Some(id),
                args: [address, args],
                words: (u64::from(weight), 0),
            },
        );
        if by_cid {
            self.call_set_cmask(vm, id);
        }
        if self.rules.enabled_when_weighed {
            self.set_scx_state(id, ScxState::Enabled);
            self.call_set_weight(vm, id);
        } else {
            self.call_set_weight(vm, id);
            self.set_scx_state(id, ScxState::Enabled);
        }
        self.tell_allowed(id);
    }

    pub(crate) fn set_scx_state(&mut self, id: TaskId, state: ScxState) {
        self.task_mut(id).scx_state = state;
        self.mirror_flags(id);
    }

    /// A task leaves the policy's class.
    pub(crate) fn disable_task(&mut self, vm: &mut Vm, id: TaskId) {
        if self.task(id).scx_state != ScxState::Enabled {
            return;
        }
        let (cpu, address) = (self.task(id).cpu, self.task(id).address);
        self.call(
            vm,
            &Call {
                op: Op::Disable,
                locked: Some(cpu),
                asked: CallOwner::Owner,
                subject: Some(id),
                args: [address],
                words: (0, 0),
            },
        );
        self.set_scx_state(id, ScxState::Ready);
        if self.rules.clears_leavers {
            self.set_slice(id, 0);
            self.set_vtime(id, 0);
        }
    }

    /// Tells the policy that a task is no more.
    pub(crate) fn exit_task(&mut self, vm: &mut Vm, id: TaskId) {
        self.disable_task(vm, id);
        if self.task(id).scx_state == ScxState::None {
            return;
        }
        self.call_exit_task(vm, CallOwner::Owner, id, false);
        self.set_scx_state(id, ScxState::None);
    }

    /// `ops.exit_task()`; of a task that never became its own if that is `cancelled`.
    pub(crate) fn call_exit_task(
        &mut self,
        vm: &mut Vm,
        asked: CallOwner,
        id: TaskId,
        cancelled: bool,
    ) {
        let task = self.task(id);
        let (locked, address) = ((!cancelled).then_some(task.cpu), task.address);
        let args = self.mirror.exit_task_args(vm, cancelled);
        let call = Call {
            op: Op::ExitTask,
            locked,
            asked,
            subject: Some(id),
            args: [address, args],
            words: (u64::from(cancelled), 0),
        };
        self.call(vm, &call);
    }

    /// The task that runs on `cpu` leaves for good.
    pub(crate) fn exit(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId) {
        self.task_mut(id).state = RunState::Dead;
        // The policy sees it before the task has left its queue.
        self.mirror_state(id);
        self.schedule(vm, cpu, Some(deq::SLEEP | deq::NOCLOCK | deq::SPECIAL));
        self.dismiss(id);
        self.work.exited(id);
        self.leave_family(id);
        self.emit(id, cpu, What::Exit);
        if self.rules.exits_at_last_switch && self.scheds.root.attachment.is_attached() {
            self.under_task_locks(vm, id, |machine, vm| machine.exit_task(vm, id));
        }
        self.queue
            .push(self.now + GRACE_PERIOD, cpu, Pending::Reap { task: id });
    }

    /// The task has begun to exit (`PF_EXITING`), and may still run for a while.
    pub(crate) fn begin_exit(&mut self, vm: &mut Vm, id: TaskId) {
        self.task_mut(id).exiting = true;
        self.mirror_policy(id);
        if self.hooked.any() {
            self.trace_exit(vm, id);
        }
    }

    /// The last reference that the kernel had to an exited task is gone.
    pub(crate) fn reap(&mut self, vm: &mut Vm, id: TaskId) {
        if self.hooked.any() {
            self.trace_task(vm, AttachPoint::SchedProcessFree, id);
        }
        if self.scheds.root.attachment.is_attached() {
            self.under_task_locks(vm, id, |machine, vm| machine.exit_task(vm, id));
        }
        if self.keeps_for_others(id) {
            let cpu = self.turn.exec;
            self.queue
                .push(self.now + GRACE_PERIOD, cpu, Pending::Reap { task: id });
            return;
        }
        let address = self.task(id).address;
        vm.free_owner(address, self);
        self.task_mut(id).reaped = true;
        if self.task(id).references == 0 {
            self.mirror_free(vm, id);
        }
    }
}
