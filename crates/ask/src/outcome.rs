//! What a run came to.

mod document;
mod hardware;

use std::collections::BTreeSet;

use model::{
    CAPACITY_ONE, Exit, ExitKind, GrowingQueue, MachineSpec, SimTime, SubSummary, Summary, plain,
};
use stats::compare::machines;
use stats::{GroupReport, Metrics, Report};
use workload::{RunSpec, Workload};

use crate::ends::GoalSpread;
use crate::goal::family;

/// Most groups that have a row each in tables for people. A recording has one for each thread.
pub const ROWS: usize = 20;

/// One run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How tables call the policy.
    pub policy: String,
    /// What was set in it, as the user wrote it.
    pub set: Vec<(String, String)>,
    /// What the events say.
    pub report: Report,
    /// The report's groups by their names without numbers; empty where so few groups are that
    /// each has a row.
    pub families: Vec<GroupReport>,
    /// What is left besides the events.
    pub summary: Summary,
    /// What `fidelity` compares, of a run that was played.
    pub compared: Option<machines::MachineRun>,
}

impl Outcome {
    /// The figures of a run of `spec` that is over.
    #[must_use]
    pub fn of(spec: &RunSpec, metrics: &Metrics, mut summary: Summary) -> Self {
        summary.notes.extend(no_baseline(spec));
        let mut report = metrics.report();
        hardware::fill(&mut report, &summary);
        summary.notes.extend(free_threads(&report));
        let mut families = if report.groups.len() > ROWS {
            metrics.families(&family)
        } else {
            Vec::new()
        };
        let growing = &summary.growing;
        mark_growing(&spec.workload, growing, (&mut report, &mut families));
        Self {
            policy: spec.policy.name.clone(),
            set: spec.policy.set.clone(),
            families,
            report,
            summary,
            compared: None,
        }
    }
}

/// What is to be said of threads of cores that do not slow each other down, if both had a task for
/// more than a hundredth of the time in which tasks ran.
fn free_threads(report: &Report) -> Option<String> {
    let run: u128 = report
        .cpus
        .iter()
        .map(|cpu| u128::from(cpu.run.get()))
        .sum();
    let both = u128::from(report.siblings_busy.get());
    (both * 100 > run).then(|| {
        format!(
            "threads of a core do not slow each other down here; both were busy for {} % of the \
             time (--smt-share typical)",
            both * 100 / run.max(1)
        )
    })
}

/// Outlines of Linux's own schedulers, which know no capacities.
const OUTLINES: [&str; 4] = ["eevdf", "cfs", "o1", "goodness"];

/// Whether `policy` outlines a scheduler of Linux, and knows nothing of how fast the CPUs of
/// `machine` are, which Linux's own does.
#[must_use]
pub fn is_no_baseline(policy: &str, machine: &MachineSpec) -> bool {
    let mut classes = machine.hardware.iter().flat_map(|it| &it.classes);
    OUTLINES.contains(&policy) && classes.any(|it| it.capacity != CAPACITY_ONE)
}

/// What is to be said of an outline of Linux's scheduler where CPUs are not equally fast.
fn no_baseline(spec: &RunSpec) -> Option<String> {
    let said = "it knows no capacities, unlike Linux's own: no baseline where CPUs differ";
    let is_told = is_no_baseline(&spec.policy.name, &spec.machine);
    is_told.then(|| said.to_owned())
}

/// Says of the waits and the deadlines behind queues of messages that they grow with the duration,
/// so that no verdict is made of them.
pub fn mark_growing(
    workload: &Workload,
    queues: &[GrowingQueue],
    (report, families): (&mut Report, &mut [GroupReport]),
) {
    if queues.is_empty() {
        return;
    }
    let group = |at: &u32| Some(workload.groups.get(*at as usize)?.name.as_str());
    let takers = queues.iter().flat_map(|it| &it.takers).filter_map(group);
    let takers: BTreeSet<&str> = takers.collect();
    let deadlines = queues.iter().flat_map(|it| &it.deadlines);
    let deadlines = deadlines.filter_map(|(of, deadline)| {
        let deadline = workload.deadlines.get(*deadline as usize)?;
        Some((group(of)?, deadline.name.as_str()))
    });
    let deadlines: BTreeSet<(&str, &str)> = deadlines.collect();
    report.all.grows = true;
    for row in &mut report.groups {
        row.grows |= takers.contains(row.name.as_str());
    }
    for row in &mut report.deadlines {
        row.grows |= deadlines.contains(&(row.group.as_str(), row.name.as_str()));
    }
    let taking: BTreeSet<&str> = takers.into_iter().map(family).collect();
    for row in families {
        row.grows |= taking.contains(row.name.as_str());
    }
}

/// Whether a machine was simulated, or real.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum World {
    /// The simulated machine.
    #[default]
    Simulated,
    /// Real processes on this computer.
    Played,
}

impl World {
    /// What documents call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Played => "played",
        }
    }

    /// The world of this name; the simulated one for any other.
    #[must_use]
    pub fn of(name: Option<&str>) -> Self {
        if name == Some(Self::Played.name()) {
            Self::Played
        } else {
            Self::Simulated
        }
    }
}

/// Runs of several policies under one load on one machine.
#[derive(Clone, Debug)]
pub struct Results {
    /// Where it was.
    pub world: World,
    /// The load.
    pub workload: String,
    /// Whether the load is a recording that is rerun: nothing in it is drawn, so that one run
    /// stands for no others.
    pub is_rerun: bool,
    /// The machine.
    pub machine: MachineSpec,
    /// Seed of every run.
    pub seed: u64,
    /// One a policy, in the order of the command line.
    pub outcomes: Vec<Outcome>,
    /// Who is best at every end of what is uncertain about the hardware; empty if that was not
    /// asked.
    pub spread: Vec<GoalSpread>,
}

impl Results {
    /// Those of simulated runs, of which `spec` is one.
    #[must_use]
    pub fn simulated(spec: &RunSpec, outcomes: Vec<Outcome>) -> Self {
        Self {
            world: World::Simulated,
            workload: spec.workload.name.clone(),
            is_rerun: spec.workload.is_recorded(),
            machine: spec.machine.clone(),
            seed: spec.seed,
            outcomes,
            spread: Vec::new(),
        }
    }

    /// One line for each policy that was ejected.
    pub fn ejections(&self) -> impl Iterator<Item = String> {
        self.outcomes.iter().filter_map(Outcome::ejection)
    }
}

impl Outcome {
    /// A run of which only the events are known: whether the policy was ejected is not among them.
    #[must_use]
    pub fn of_events(policy: String, report: Report) -> Self {
        let end = SimTime::from_nanos(report.machine.elapsed.get());
        let exit = Exit {
            kind: ExitKind::Unreg,
            code: 0,
            message: String::new(),
            time: end,
            fault: None,
        };
        let summary = Summary {
            end,
            exit,
            cpus: Vec::new(),
            tasks: Vec::new(),
            counters: Vec::new(),
            spent: Vec::new(),
            policy_counters: Vec::new(),
            printed: String::new(),
            instructions: 0,
            callbacks: 0,
            starved: Vec::new(),
            excused: None,
            hardware: None,
            growing: Vec::new(),
            blocked: Vec::new(),
            watchdog: None,
            subs: Vec::new(),
            notes: Vec::new(),
        };
        Self {
            policy,
            set: Vec::new(),
            report,
            families: Vec::new(),
            summary,
            compared: None,
        }
    }

    /// What was set in the policy, as one text; `as built` if nothing was.
    #[must_use]
    pub fn knobs(&self) -> String {
        let set = self
            .set
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        if self.set.is_empty() {
            "as built".to_owned()
        } else {
            set.collect::<Vec<_>>().join(",")
        }
    }

    /// Kind, message and time in the kernel's words, when the policy was ejected, or else the first
    /// scheduler below it that was.
    #[must_use]
    pub fn ejection(&self) -> Option<String> {
        ejection_in(&self.policy, &self.summary)
    }
}

/// As [`ejection`], of a run of `policy`: of the root, or else of the first scheduler below it that
/// was ejected.
#[must_use]
pub fn ejection_in(policy: &str, summary: &Summary) -> Option<String> {
    ejection(policy, &summary.exit).or_else(|| summary.subs.iter().find_map(ejection_of_sub))
}

/// As [`ejection`], of a scheduler below another one; the end of that one is none.
#[must_use]
pub fn ejection_of_sub(sub: &SubSummary) -> Option<String> {
    if sub.exit.kind == ExitKind::Parent {
        return None;
    }
    let name = format!("{} at {}", sub.policy, sub.cgroup);
    ejection(&name, &sub.exit)
}

/// Kind, message and time in the kernel's words, if `exit` is anything but the normal end. A policy
/// that leaves by itself (`scx_bpf_exit()`), or that its program takes off, did not schedule to the
/// end either.
#[must_use]
pub fn ejection(policy: &str, exit: &Exit) -> Option<String> {
    if exit.kind == ExitKind::Unreg && exit.fault.is_none() {
        return None;
    }
    let (reason, time) = (exit.kind.reason(), exit.time);
    let mut line = format!("{policy} was ejected at {time} s: {reason}");
    let details = [Some(&exit.message), exit.fault.as_ref()];
    for detail in details
        .into_iter()
        .flatten()
        .filter(|detail| !detail.is_empty())
    {
        line += &format!(": {}", plain::shown(detail));
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_but_the_normal_one_is_told() {
        let told = |kind, message: &str| {
            let exit = Exit {
                kind,
                code: 7,
                message: message.to_owned(),
                time: SimTime::ZERO,
                fault: None,
            };
            ejection("mine", &exit)
        };
        assert_eq!(told(ExitKind::Unreg, ""), None);
        let left = told(ExitKind::UnregBpf, "enough").unwrap();
        assert!(left.starts_with("mine was ejected at 0"), "{left}");
        assert!(
            left.ends_with(" s: unregistered from BPF: enough"),
            "{left}"
        );
        let error = told(ExitKind::ErrorStall, "").unwrap();
        assert!(error.ends_with(" s: runnable task stall"), "{error}");
        // A message is a line, whatever the policy wrote into it.
        let odd = told(ExitKind::ErrorBpf, "a\x1b[2J\n| b").unwrap();
        assert!(odd.ends_with(r": a\u001b[2J\u000a| b"), "{odd}");
    }
}
