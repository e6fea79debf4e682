//! A machine's own threads beside a load.

use std::borrow::Cow;
use std::sync::Arc;

use model::{Background, CpuId, Nanos};

use crate::{
    Amount, CpuSet, Dist, Group, Operation, RunSpec, SchedPolicy, Step, TaskKind, Workload,
};

impl RunSpec {
    /// The run with the threads that the machine's profile has in the background as groups of
    /// tasks behind all others; as it is if there are none.
    #[must_use]
    pub fn with_background(&self) -> Cow<'_, Self> {
        let background = self.machine.profile.background();
        if background.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut workload = Workload::clone(&self.workload);
        let cpus = self.machine.cpus;
        workload
            .groups
            .extend(background.iter().map(|kind| threads(kind, cpus)));
        Cow::Owned(Self {
            workload: Arc::new(workload),
            ..self.clone()
        })
    }
}

fn threads(kind: &Background, cpus: u16) -> Group {
    // No line of the workload's file has them.
    let step = |op| Step { op, line: 0 };
    let lengths = kind.run_ns.iter().map(|length| (Nanos::new(*length), 1));
    let gap = Dist::Exp(Nanos::new(kind.gap_ns));
    let turn = vec![
        step(Operation::Run(Some(Amount::once(Dist::Hist(
            lengths.collect(),
        ))))),
        step(Operation::Sleep(Amount::once(gap.clone()))),
    ];
    // A workload's own groups have no such character in their names.
    let name = format!("kernel/{}", kind.name);
    Group {
        count: if kind.each_cpu { cpus.into() } else { 1 },
        nice: kind.nice,
        policy: kind
            .real_time
            .map_or(SchedPolicy::Normal, SchedPolicy::Fifo),
        start: gap,
        kind: TaskKind::Kernel,
        one_each_cpu: kind.each_cpu,
        cpus: kind.cpu.map(|cpu| {
            let last = cpus.saturating_sub(1);
            CpuSet::single(CpuId(cpu.min(last)))
        }),
        footprint: Some(0),
        mem: 0,
        body: vec![step(Operation::Loop {
            count: None,
            slot: 0,
            body: turn,
        })],
        variables: 1,
        ..Group::background(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_one_on_each_cpu_that_stays_there_or_one_on_one_cpu_or_anywhere() {
        let kind = |each_cpu| Background {
            name: "flush".to_owned(),
            each_cpu,
            cpu: None,
            gap_ns: 5_000,
            run_ns: vec![1_000, 3_000],
            real_time: each_cpu.then_some(50),
            nice: -5,
        };
        let bound = threads(&kind(true), 4);
        assert_eq!((bound.count, bound.one_each_cpu), (4, true));
        assert_eq!(bound.policy, SchedPolicy::Fifo(50));
        let free = threads(&kind(false), 4);
        assert_eq!((free.count, free.one_each_cpu), (1, false));
        assert_eq!((free.policy, free.nice), (SchedPolicy::Normal, -5));
        assert_eq!(free.cpus, None);
        for (cpu, machine, on) in [(2, 4, 2), (2, 2, 1)] {
            let one = Background {
                cpu: Some(cpu),
                ..kind(false)
            };
            let one = threads(&one, machine);
            assert_eq!(one.cpus, Some(CpuSet::single(CpuId(on))));
            assert_eq!((one.count, one.one_each_cpu), (1, false));
        }
        for group in [bound, free] {
            assert_eq!((group.kind, group.footprint), (TaskKind::Kernel, Some(0)));
            let Operation::Loop { count, body, .. } = &group.body[0].op else {
                panic!("it never ends");
            };
            assert_eq!((count, body.len()), (&None, 2));
        }
    }
}
