//! A machine's own threads beside a load.

use std::borrow::Cow;
use std::sync::Arc;

use model::{Background, Nanos};

use crate::{Amount, Dist, Group, Operation, RunSpec, SchedPolicy, Step, TaskKind, Workload};

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
        let cpus = u32::from(self.machine.cpus);
        workload
            .groups
            .extend(background.iter().map(|kind| threads(kind, cpus)));
        Cow::Owned(Self {
            workload: Arc::new(workload),
            ..self.clone()
        })
    }
}

fn threads(kind: &Background, cpus: u32) -> Group {
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
        count: if kind.each_cpu { cpus } else { 1 },
        nice: kind.nice,
        policy: kind
            .real_time
            .map_or(SchedPolicy::Normal, SchedPolicy::Fifo),
        start: gap,
        kind: TaskKind::Kernel,
        one_each_cpu: kind.each_cpu,
        footprint: Some(0),
        body: vec![step(Operation::Loop {
            count: None,
            slot: 0,
            body: turn,
        })],
        variables: 1,
        ..Group::background(name)
    }
}
