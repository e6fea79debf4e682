//! Calls of bpf(2) that concern the scheduler: what attaches a policy and takes it off, and
//! programs that are run by hand.

use std::sync::Arc;

use bpf::{Attachment, CallError, Door, Errno};
use model::CpuId;
use model::user_space::{BpfAnswer, BpfCall, Refused, ThreadId};
use workload::{CpuSet, Group, RunSpec, Workload};

use super::kernel::refused;
use super::{Phase, State};
use crate::idle::Idle;
use crate::machine::{Machine, Vm};
use crate::ops::Ops;
use crate::pending::Pending;
use crate::work::Birth;

impl Machine {
    /// A call of bpf(2) by `thread`. A program that it has run is run on a CPU that it may be on: a
    /// kernel moves a thread whose affinity changes before the change returns, this machine at the
    /// end of its turn.
    pub(super) fn bpf_call(
        &mut self,
        vm: &mut Vm,
        thread: ThreadId,
        call: BpfCall,
    ) -> Result<BpfAnswer, Refused> {
        let here = self.turn.exec;
        if let BpfCall::TestRun { .. } = call {
            let thread = self.program().threads.get(thread.0 as usize);
            let allowed = thread.and_then(|thread| thread.cpus.as_ref());
            let elsewhere = allowed.filter(|cpus| !cpus.contains(here));
            self.turn.exec = elsewhere.and_then(CpuSet::first).unwrap_or(here);
        }
        let answer = self.answer_call(vm, call);
        self.turn.exec = here;
        answer
    }

    fn answer_call(&mut self, vm: &mut Vm, call: BpfCall) -> Result<BpfAnswer, Refused> {
        let links = matches!(
            call,
            BpfCall::LinkCreate { .. } | BpfCall::LinkDetach { .. } | BpfCall::Close { .. }
        );
        let answer = self.at_door(vm, |door, vm, machine| {
            machine.outside_callbacks(vm, |vm, machine| door.call(vm, machine, call))
        });
        let answer = answer.map_err(|error| self.refuse(error))?;
        if links {
            self.look_at_links(vm, &answer)?;
        }
        Ok(answer)
    }

    /// Lets `body` use the door, and this machine beside it.
    pub(super) fn at_door<R>(
        &mut self,
        vm: &mut Vm,
        body: impl FnOnce(&mut Door<Self>, &mut Vm, &mut Self) -> R,
    ) -> R {
        let door = self.program().door.take();
        let mut door = door.expect("a call of bpf(2) makes no other");
        let result = body(&mut door, vm, self);
        self.program().door = Some(door);
        result
    }

    /// A call failed as a kernel's does, or by a fault of the program that it ran.
    pub(super) fn refuse(&mut self, error: CallError) -> Refused {
        match error {
            CallError::Refused(refused) => refused,
            CallError::Fault(fault) => {
                self.note(format!("a program that the loader ran failed: {fault}"));
                refused(Errno::EFAULT)
            }
        }
    }

    /// A link has come or gone: a table's attaches its policy, or takes it off.
    fn look_at_links(&mut self, vm: &mut Vm, answer: &BpfAnswer) -> Result<(), Refused> {
        let links = self.at_door(vm, |door, _, _| {
            let links = door.attached();
            let links = links.map(|it| (it.link, it.to.clone(), it.function));
            links.collect::<Vec<_>>()
        });
        self.set_hooks(&links);
        let program = self.program();
        if let Some(link) = program.policy
            && links.iter().all(|(number, ..)| *number != link)
        {
            program.policy = None;
            let is_early = program.phase == Phase::Attached && !self.is_halted();
            self.halt_if(true);
            self.detach(vm);
            if is_early {
                self.note_early_end("its program took it off before the run was over");
            }
            return Ok(());
        }
        let BpfAnswer::Created(new) = *answer else {
            return Ok(());
        };
        let Some((_, Attachment::StructOps(name), _)) = links.iter().find(|it| it.0 == new) else {
            return Ok(());
        };
        let attached = Ops::of(vm.image(), Some(name), &self.rules)
            .map_err(|error| {
                self.note(error.to_string());
                refused(error.errno(self.program().phase == Phase::Attached))
            })
            .and_then(|ops| {
                self.trace_reg(vm, None);
                let attached = self.attach_of_program(vm, ops);
                let result = attached.as_ref().map_or_else(|error| -error.errno, |()| 0);
                self.trace_reg(vm, Some(result));
                attached
            });
        match attached {
            Ok(()) => self.program().policy = Some(new),
            Err(_) => {
                let close = BpfCall::Close { object: new };
                let _ = self.at_door(vm, |door, vm, machine| door.call(vm, machine, close));
            }
        }
        attached
    }

    /// Attaches the policy of a table: the workload begins.
    ///
    /// Source: `bpf_scx_reg()` and `scx_enable()`, kernel 6.18. If `ops.init()` fails, they succeed
    /// nevertheless, and the program hears of it by its policy's exit.
    fn attach_of_program(&mut self, vm: &mut Vm, ops: Ops) -> Result<(), Refused> {
        if self.program().phase != Phase::Loading {
            return Err(refused(Errno::EBUSY));
        }
        self.idle = Idle::new(&self.spec, &ops);
        self.scheds.root.ops = ops;
        self.mirror.find_report(vm);
        self.program().phase = Phase::Attached;
        let seated = self
            .populate(vm)
            .and_then(|leader| self.seat_program(vm, leader));
        seated.map_err(|_| refused(Errno::ENOMEM))?;
        // In the order of a policy without a program, which an event of the run's begin attaches.
        self.queue.push(self.now, CpuId(0), Pending::Attach);
        self.queue.deepen();
        self.outside_time(CpuId(0), |machine| machine.attach(vm));
        self.queue.undeepen();
        Ok(())
    }

    /// Threads that live become tasks, the first of them as `leader` says.
    fn seat_program(
        &mut self,
        vm: &mut Vm,
        mut leader: Option<Birth>,
    ) -> Result<(), bpf::OutOfMemory> {
        if self.program().free {
            return Ok(());
        }
        let mut first = None;
        for number in 0..self.program().threads.len() {
            let birth = leader.take().or_else(|| self.work.program_thread(self.now));
            let program = self.program();
            let thread = &program.threads[number];
            let (Some(mut birth), true) = (birth, thread.state != State::Over) else {
                continue;
            };
            birth.nice = thread.nice;
            birth.policy = thread.policy;
            birth.cpus.clone_from(&thread.cpus);
            let name = thread.name.clone();
            program.promised = Some(program.threads[number].pid);
            let id = self.create_asleep(vm, &birth, first)?;
            self.set_comm(id, name);
            self.program().threads[number].task = Some(id);
            first = first.or(Some(id));
        }
        Ok(())
    }
}

/// `spec` with a group of tasks more: the threads of the program, which is called as the policy is.
pub(crate) fn with_program(spec: &RunSpec) -> RunSpec {
    let mut workload = Workload::clone(&spec.workload);
    workload
        .groups
        .push(Group::background(spec.policy.name.clone()));
    RunSpec {
        workload: Arc::new(workload),
        ..spec.clone()
    }
}
