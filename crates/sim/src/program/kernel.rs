//! The simulated kernel, as a thread of the scheduler's own program meets it within its turn.

use std::fs::File;

use bpf::Errno;
use model::user_space::{
    BpfAnswer, BpfCall, BpfId, Mappable, Refused, SchedExt, SetSched, THREADS_MAX, ThreadId,
    ThreadKernel, UserSpaceError,
};
use model::{Advised, CpuId, CpuTimes, Nanos, SimTime};
use workload::{CpuSet, SchedPolicy};

use super::{Phase, State};
use crate::machine::{Machine, Vm};

/// No such thread.
const ESRCH: Errno = Errno(3);

/// The kernel within a turn.
pub(super) struct Within<'a> {
    machine: &'a mut Machine,
    vm: &'a mut Vm,
    /// The uptime at which the turn began.
    now: Nanos,
}

impl<'a> Within<'a> {
    pub fn new(machine: &'a mut Machine, vm: &'a mut Vm, now: Nanos) -> Self {
        Self { machine, vm, now }
    }
}

pub(super) fn refused(errno: Errno) -> Refused {
    Refused {
        errno: errno.0,
        log: String::new(),
    }
}

impl ThreadKernel for Within<'_> {
    fn bpf(&mut self, thread: ThreadId, call: BpfCall) -> Result<BpfAnswer, Refused> {
        self.machine.bpf_call(self.vm, thread, call)
    }

    fn mappable(&self, map: BpfId) -> Option<Mappable> {
        self.machine
            .program
            .as_ref()?
            .door
            .as_ref()?
            .mappable(self.vm, map)
    }

    fn share(&mut self, map: BpfId, pages: File) -> std::io::Result<()> {
        self.machine
            .at_door(self.vm, |door, vm, _| door.share(vm, map, pages))
    }

    fn store(&mut self, map: BpfId, offset: u64, bytes: &[u8]) -> Result<(), Refused> {
        let stored = self
            .machine
            .at_door(self.vm, |door, vm, _| door.store(vm, map, offset, bytes));
        stored.map_err(|error| self.machine.refuse(error))
    }

    fn arena_at(&mut self, map: BpfId, address: u64) -> Result<(), Refused> {
        let placed = self
            .machine
            .at_door(self.vm, |door, vm, _| door.arena_at(vm, map, address));
        placed.map_err(|error| self.machine.refuse(error))
    }

    fn is_ready(&self, map: BpfId) -> bool {
        let program = self.machine.program.as_ref();
        let door = program.and_then(|program| program.door.as_ref());
        door.is_some_and(|door| door.is_ready(self.vm, map))
    }

    fn spawn(&mut self, thread: ThreadId, name: &str) -> (u32, u32) {
        self.machine.spawn_thread(self.vm, thread, name, self.now)
    }

    fn set_sched(&mut self, thread: ThreadId, change: SetSched) -> Result<(), Refused> {
        self.machine.set_thread(self.vm, thread, change)
    }

    fn cpu(&self) -> Option<u16> {
        let program = self.machine.program.as_ref()?;
        program.has_tasks().then_some(self.machine.turn.exec.0)
    }

    fn run_time(&self) -> Option<SimTime> {
        let program = self.machine.program.as_ref();
        let runs = program.is_some_and(|program| program.phase == Phase::Attached);
        runs.then_some(self.machine.now)
    }

    fn cpu_times(&self) -> Vec<CpuTimes> {
        let now = self.machine.now;
        let cpus = self.machine.cpus.iter();
        cpus.map(|cpu| cpu.times_until(now)).collect()
    }

    fn cpu_frequencies(&self) -> Vec<u32> {
        let speeds = self.machine.speeds.as_deref();
        let speeds = speeds.filter(|it| it.follows_targets());
        let cpus = (0..self.machine.spec.cpus).map(CpuId);
        speeds.map_or_else(Vec::new, |it| cpus.map(|cpu| it.khz(cpu)).collect())
    }

    fn sched_ext(&self) -> SchedExt {
        let attached = self.machine.scheds.root.attachment.is_attached();
        SchedExt {
            attached: attached.then(|| self.machine.scheds.root.ops.name().to_owned()),
            hotplug: self.machine.scheds.root.attachment.hotplugs(),
        }
    }
}

impl Machine {
    /// A thread of the program begins. The first one exists already when it announces itself.
    fn spawn_thread(
        &mut self,
        vm: &mut Vm,
        thread: ThreadId,
        name: &str,
        now: Nanos,
    ) -> (u32, u32) {
        let program = self.program();
        let group_leader = program.threads.first().map_or(0, |thread| thread.pid);
        if let Some(known) = program.threads.get_mut(thread.0 as usize) {
            name.clone_into(&mut known.name);
            return (group_leader, known.pid);
        }
        if program.threads.len() >= THREADS_MAX {
            let text = format!("{} has had more than {THREADS_MAX} threads", program.name);
            self.give_up_program(UserSpaceError::from(text));
        }
        if !self.program().has_tasks() {
            let pid = self.program().new_pid();
            self.add_thread(pid, name, State::Ready(now));
            self.plan_turn(now);
            return (group_leader, pid);
        }
        let pid = self.fork_thread(vm, name, now);
        (group_leader, pid)
    }

    /// A thread of the running program becomes a task.
    fn fork_thread(&mut self, vm: &mut Vm, name: &str, now: Nanos) -> u32 {
        let parent = self
            .current()
            .filter(|&task| self.thread_of(task).is_some());
        let leader = self.program().threads[0].task;
        let birth = self.work.program_thread(self.now);
        let (Some(parent), Some(birth)) = (parent.or(leader), birth) else {
            return 0;
        };
        self.charge(|costs| costs.fork);
        let pid = self.program().new_pid();
        self.program().promised = Some(pid);
        let number = self.add_thread(pid, name, State::Ready(now));
        let task = match self.fork(vm, parent, &birth) {
            Ok(task) => task,
            Err(error) => {
                self.give_up_program(UserSpaceError(Advised::of(&error)));
                None
            }
        };
        self.program().promised = None;
        self.program().thread(number).task = task;
        match task {
            Some(id) => self.set_comm(id, name.to_owned()),
            None => {
                let text = format!("the policy refused a thread of {}", self.program().name);
                self.give_up_program(UserSpaceError::from(text));
            }
        }
        pid
    }

    /// A change of a thread's scheduling: at once, or as soon as it is a task.
    fn set_thread(
        &mut self,
        vm: &mut Vm,
        thread: ThreadId,
        change: SetSched,
    ) -> Result<(), Refused> {
        let cpus = self.spec.cpus;
        let program = self.program();
        let known = program.threads.get_mut(thread.0 as usize);
        let thread = known.ok_or_else(|| refused(ESRCH))?;
        match change {
            SetSched::Name(name) => {
                thread.name.clone_from(&name);
                if let Some(id) = thread.task {
                    if self.hooked.any() {
                        self.trace_rename(vm, id, &name);
                    }
                    self.set_comm(id, name);
                }
            }
            SetSched::Nice(nice) => {
                thread.nice = nice.clamp(-20, 19);
                if let (Some(id), nice) = (thread.task, thread.nice) {
                    self.set_nice(vm, id, nice);
                }
            }
            SetSched::Affinity(list) => {
                let list = list.into_iter().filter(|&cpu| cpu < cpus).map(CpuId);
                let set: CpuSet = list.collect();
                if set.is_empty() {
                    return Err(refused(Errno::EINVAL));
                }
                thread.cpus = Some(set.clone());
                if let Some(id) = thread.task {
                    self.set_affinity(vm, id, &set);
                }
            }
            SetSched::Policy(number, priority) => {
                let policy = policy_of(number, priority).ok_or_else(|| refused(Errno::EINVAL))?;
                thread.policy = policy;
                if let Some(id) = thread.task {
                    self.set_policy(vm, id, policy);
                }
            }
        }
        Ok(())
    }
}

/// A scheduling policy by its number (include/uapi/linux/sched.h, 6.18). `SCHED_EXT` is what every
/// normal task has under a policy that takes all of them.
fn policy_of(number: u32, priority: i32) -> Option<SchedPolicy> {
    let urgent = u8::try_from(priority)
        .ok()
        .filter(|it| (1..=99).contains(it));
    match (number, priority) {
        (0 | 7, 0) => Some(SchedPolicy::Normal),
        (1, _) => urgent.map(SchedPolicy::Fifo),
        (2, _) => urgent.map(SchedPolicy::RoundRobin),
        (3, 0) => Some(SchedPolicy::Batch),
        (5, 0) => Some(SchedPolicy::Idle),
        _ => None,
    }
}
