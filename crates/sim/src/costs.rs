//! What a policy's decisions cost, and how that grows with the number of tasks that wait.
//!
//! The load is always of the same kind, on one CPU with 1000 ticks a second: a task that works for
//! 0.2 ms every 10 ms, and after a second CPU hogs beside it. Each callback is counted by itself;
//! `dispatch` is what decides. The beginning, in which the tasks come to be, is left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Exit, MachineSpec, Nanos, PolicySpec};
use workload::{RunSpec, Workload};

use crate::{Error, Simulation, Tally};

/// Until then the tasks come to be.
const WARM_UP: Nanos = Nanos::from_secs(2);

/// Until then decisions are counted; before the watchdog's 30 s, because a hog among thousands
/// waits longer under most policies.
const END: Nanos = Nanos::from_secs(22);

/// Counts of a policy's callbacks in one run, under the kernel's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// CPU hogs on the one CPU.
    pub hogs: u32,
    /// By callback: `dispatch` makes the decisions.
    pub callbacks: BTreeMap<&'static str, Tally>,
    /// How the policy's time ended; [`ExitKind::Unreg`](model::ExitKind) if it did nothing wrong.
    pub exit: Exit,
}

/// Runs `policy` with so many hogs.
///
/// # Errors
/// The errors of [`crate::run`].
pub fn measure(policy: &PolicySpec, hogs: u32) -> Result<Costs, Error> {
    let until = |end| Simulation::new(&spec(policy, hogs, end)).tallied().start();
    let before = until(WARM_UP)?.tally;
    let after = until(END)?;
    let earlier = |op| before.get(op).cloned().unwrap_or_default();
    let callbacks = after.tally.iter();
    Ok(Costs {
        hogs,
        callbacks: callbacks
            .map(|(op, tally)| (*op, tally.since(&earlier(op))))
            .collect(),
        exit: after.summary.exit,
    })
}

fn spec(policy: &PolicySpec, hogs: u32, end: Nanos) -> RunSpec {
    let text = format!(
        "[workload]\nname = \"costs\"\nstop = \"duration:{}ms\"\n\
         [task.sleeper]\ndo = \"loop(inf)[ run(200us), timer(10ms) ]\"\n\
         [task.hog]\nkind = \"process\"\ncount = {hogs}\nstart = \"1s\"\ndo = \"run(inf)\"\n",
        end.get() / 1_000_000
    );
    let workload = Workload::parse(&text, "costs").expect("a workload");
    RunSpec {
        policy: policy.clone(),
        workload: Arc::new(workload),
        machine: MachineSpec {
            cpus: 1,
            hz: 1000,
            ..MachineSpec::default()
        },
        seed: 1,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: None,
    }
}
