//! Which schedulers will be attached below the root, and when.

use model::{Advised, CpuId, SimTime};
use workload::RunSpec;

use crate::Error;
use crate::machine::Machine;
use crate::pending::Pending;
use crate::prepare::ReadySub;
use crate::setup::PlannedSub;
use crate::subs::refused_sub;

/// The numbers of the cgroups at which schedulers are to be attached: by name, or by path, whose
/// first slash may be left out.
///
/// # Errors
/// If the workload has none of that name.
pub(crate) fn cgroups_of(spec: &RunSpec) -> Result<Vec<u32>, Error> {
    let all = &spec.workload.cgroups;
    let number = |asked: &str| {
        let is_it = |it: &workload::Cgroup| it.name == asked || it.path == asked;
        // Names come first: one may be what another path is without its slash.
        let is_at = |it: &workload::Cgroup| it.path.strip_prefix('/') == Some(asked);
        let found = all.iter().position(is_it);
        let found = found.or_else(|| all.iter().position(is_at));
        found.map(|at| at as u32 + 1)
    };
    let known = |sub: &model::SubSpec| {
        let found = number(&sub.cgroup);
        found.ok_or_else(|| refused_sub(sub, no_cgroup(all, &sub.cgroup)))
    };
    spec.policy.subs.iter().map(known).collect()
}

fn no_cgroup(all: &[workload::Cgroup], asked: &str) -> Advised {
    /// So many are named.
    const MOST: usize = 10;
    let names: Vec<_> = all.iter().take(MOST).map(|it| it.path.as_str()).collect();
    let advice = if names.is_empty() {
        format!("declare it in the workload, `[cgroup.{asked}]`, and put tasks into it")
    } else {
        let more = if all.len() > MOST { ", ..." } else { "" };
        format!("the workload has {}{more}", names.join(", "))
    };
    Advised::new("the workload has no such cgroup", advice)
}

impl Machine {
    /// Puts into the queue when schedulers are attached below the root and taken off.
    pub(crate) fn plan_subs(&mut self, spec: &RunSpec, ready: &[ReadySub]) -> Result<(), Error> {
        let cgroups = cgroups_of(spec)?;
        let all = spec.policy.subs.iter().zip(ready).zip(cgroups);
        for (index, ((sub, ready), cgroup)) in all.enumerate() {
            let mut setup = ready.plan();
            self.setup.take_changes(&mut setup);
            self.planned.push(PlannedSub {
                name: sub.policy.name.clone(),
                cgroup,
                asked: sub.cgroup.clone(),
                ops: ready.ops.clone(),
                setup,
                first_map: ready.first_map,
                first_function: ready.first_function,
                first_place: model::NOWHERE,
                sched: None,
            });
            let begin = spec.attach_after.max(sub.attach_at);
            self.plan_sub(index, SimTime::ZERO + begin, true);
            if let Some(end) = sub.detach_at {
                self.plan_sub(index, SimTime::ZERO + end.max(begin), false);
            }
        }
        Ok(())
    }

    /// The planned scheduler of this index comes or goes at `when`.
    pub(crate) fn plan_sub(&mut self, index: usize, when: SimTime, comes: bool) {
        self.queue
            .push(when, CpuId(0), Pending::Sub { index, comes });
    }
}
