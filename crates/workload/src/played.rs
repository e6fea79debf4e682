//! A workload as real processes play it.

use model::{CpuId, Nanos};

use crate::{
    Amount, Barrier, Begin, Capacity, Channel, ChannelKind, CpuSet, Dist, Effect, Expr, Group,
    IndexedResource, Interrupt, Operation, RunSpec, SchedPolicy, Step, Workload,
};

/// Real-time priority of the threads that stand for interrupts: that of the kernel's own threads
/// for interrupts (`sched_set_fifo()`, `MAX_RT_PRIO / 2`; kernel/sched/syscalls.c, Linux 6.18).
pub const INTERRUPT_PRIORITY: u8 = 50;

/// Real-time priority of who lets the tasks begin, from the first CPU: the least, which goes before
/// every task that a policy has.
const PLAYER_PRIORITY: u8 = 1;

/// From one task to the next that waits for the run to begin. They come to their gates in the order
/// of the file, as they are forked; how long a fork takes does not matter.
pub const FORK_GAP: Nanos = Nanos::new(10_000);

/// From the last task's first moment to that in which all of them sleep, whatever a machine costs.
const ASLEEP: u64 = 1_000_000;

/// Whole ticks of 100, 250 and 1,000 Hz: the ticks of the run come as if it had begun with the
/// machine.
const TICKS: u64 = 20_000_000;

impl RunSpec {
    /// The run that a play of this one is, whose tasks had waited for `before` under its policy
    /// when it began: see [`Workload::as_played`]. It lasts for as long after its begin. A play
    /// attaches its policy when all tasks sleep, so that it knows of no sleep of theirs.
    #[must_use]
    pub fn as_played(&self, before: Nanos) -> Self {
        let attach_after = if before.is_zero() {
            self.attach_after
        } else {
            self.workload.asleep_after()
        };
        let begin = attach_after + before;
        Self {
            duration: self.duration.map(|duration| duration + begin),
            attach_after,
            workload: self.workload.as_played(begin).into(),
            ..self.clone()
        }
    }
}

impl Workload {
    /// The same load with what `play` does in the place of interrupts: no process can be one, so
    /// each source is a thread with a real-time priority on its CPU, which a timer wakes. It
    /// computes for the interrupt's cost and does what the interrupt would do. A task that it
    /// interrupts has been preempted, and who is woken is woken by a thread.
    ///
    /// The timer remains, as an interrupt without cost at the same moments. The threads are groups
    /// of their own behind all others, so that tasks keep their numbers.
    ///
    /// Nor can processes begin with the machine: they are forked, and then they sleep until the
    /// recorder is ready. So the run begins at `begin`, when a real-time task wakes them all. With
    /// zero they begin as new.
    #[must_use]
    pub fn as_played(&self, begin: Nanos) -> Self {
        let mut played = self.clone();
        if !begin.is_zero() {
            played.begin_at(begin);
        }
        for source in &mut played.interrupts {
            let of = u32::try_from(played.channels.len()).unwrap_or(u32::MAX);
            let name = format!("irq/{}", source.name);
            played.groups.push(thread(name.clone(), source, of));
            // It takes all: a timer that was late is not forgotten.
            played.channels.push(Channel {
                name,
                kind: ChannelKind::Queue,
                count: 1,
                capacity: Capacity::Unbounded,
                msg: 0,
            });
            source.cost = Dist::Const(Nanos::ZERO);
            source.effect = Effect::Send(first(of));
        }
        played
    }

    /// The CPU on which task `index` of `group` waits for the run to begin, on a machine of `cpus`
    /// CPUs: tasks take turns of those that each may use, in the order of the file. Both machines
    /// put it there, because a policy may let it wake where it fell asleep. `None`: it may use no
    /// CPU of the machine, or is a deadline task. Such tasks are placed by their class, and the
    /// kernel lets them give up no CPU (`dl_task_check_affinity()` in kernel/sched/syscalls.c,
    /// 6.18).
    #[must_use]
    pub fn waits_on(&self, group: u32, index: u32, cpus: u16) -> Option<CpuId> {
        let before = self.groups.iter().take(group as usize);
        let turn = before.fold(index, |sum, group| sum.wrapping_add(group.count));
        let declared = self.groups.get(group as usize)?;
        if matches!(declared.policy, SchedPolicy::Deadline(_)) {
            return None;
        }
        let allowed = CpuSet::allowed(declared.cpus.as_ref(), cpus);
        let turn = turn.checked_rem(allowed.len())?;
        allowed.iter().nth(turn as usize)
    }

    /// When all tasks sleep that wait for the run to begin.
    fn asleep_after(&self) -> Nanos {
        let own = self.groups.iter().filter(|group| !group.background);
        let tasks: u64 = own.map(|group| u64::from(group.count)).sum();
        let forked = tasks.saturating_mul(FORK_GAP.get());
        Nanos::new(forked.saturating_add(ASLEEP).next_multiple_of(TICKS))
    }

    /// Lets the run begin when the machine has run for `at`.
    fn begin_at(&mut self, at: Nanos) {
        let gate = u32::try_from(self.barriers.len()).unwrap_or(u32::MAX);
        self.begin = Some(Begin { at, gate });
        let own = self.groups.iter().filter(|group| !group.background);
        self.barriers.push(Barrier {
            name: "begin".to_owned(),
            count: 1,
            parties: own.map(|group| group.count).sum::<u32>() + 1,
        });
        self.groups.push(Group {
            policy: SchedPolicy::Fifo(PLAYER_PRIORITY),
            cpus: Some(CpuSet::single(CpuId(0))),
            start: Dist::Const(at),
            body: vec![Step {
                op: Operation::Barrier(first(gate)),
                line: 0,
            }],
            ..Group::background("play".to_owned())
        });
        let interrupts = self.interrupts.iter_mut();
        let requests = self.requests.iter_mut().map(|requests| &mut requests.irq);
        for source in interrupts.chain(requests) {
            source.start += at;
        }
        for hotplug in &mut self.hotplugs {
            hotplug.offline += at;
            hotplug.online = hotplug.online.map(|online| online + at);
        }
        self.stop.after = self.stop.after.map(|after| after + at);
    }
}

/// The thread of a source, which takes its turns from channel `of`.
fn thread(name: String, source: &Interrupt, of: u32) -> Group {
    let step = |op| Step {
        op,
        line: source.line,
    };
    let mut body = vec![step(Operation::Recv(first(of)))];
    if source.cost != Dist::Const(Nanos::ZERO) {
        let cost = Amount::once(source.cost.clone());
        body.push(step(Operation::Run(Some(cost))));
    }
    match &source.effect {
        Effect::None => {}
        Effect::Send(to) => body.push(step(Operation::Send {
            to: to.clone(),
            bytes: None,
            value: None,
        })),
        Effect::Resume(target) => body.push(step(Operation::Resume(target.clone()))),
    }
    let forever = Operation::Loop {
        count: None,
        slot: 0,
        body,
    };
    Group {
        policy: SchedPolicy::Fifo(INTERRUPT_PRIORITY),
        cpus: Some(CpuSet::single(source.cpu)),
        body: vec![step(forever)],
        variables: 1,
        ..Group::background(name)
    }
}

fn first(of: u32) -> IndexedResource {
    IndexedResource {
        of,
        index: Expr::Number(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_take_turns_of_the_cpus_that_each_may_use() {
        let text = "[workload]\nname = \"x\"\n[task.a]\ncount = 3\ndo = \"run(1ms)\"\n\
                    [task.b]\ncount = 3\ncpus = \"1-3\"\ndo = \"run(1ms)\"\n\
                    [task.c]\ncpus = \"3\"\ndo = \"run(1ms)\"\n\
                    [task.d]\npolicy = \"deadline:3ms/10ms\"\ndo = \"run(1ms)\"\n";
        let workload = Workload::parse(text, "x.toml").unwrap();
        let on = |group, index, cpus| workload.waits_on(group, index, cpus).map(|cpu| cpu.0);
        assert_eq!(
            [0, 1, 2].map(|index| on(0, index, 2)),
            [Some(0), Some(1), Some(0)]
        );
        // Of 1 to 3 there are two on three CPUs, and the fourth task of the file comes first.
        assert_eq!(
            [0, 1, 2].map(|index| on(1, index, 3)),
            [Some(2), Some(1), Some(2)]
        );
        assert_eq!([on(1, 0, 8), on(2, 0, 8)], [Some(1), Some(3)]);
        assert_eq!(on(3, 0, 8), None, "a deadline task");
        assert_eq!(
            [on(2, 0, 3), on(9, 0, 3), on(0, u32::MAX, 3)],
            [None, None, Some(0)]
        );
    }
}
