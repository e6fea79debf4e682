//! A run as documents have it. Their version stands with those who write them.

use std::collections::BTreeMap;

use model::{ClassUse, CpuUse, Exit, FrequencyUse, HardwareUse, Nanos, SubSummary, Summary};
use serde::{Serialize, Serializer};
use stats::Report;
use stats::compare::machines;

use super::Outcome;

#[derive(Serialize)]
struct RunDocument<'a> {
    policy: &'a str,
    knobs: BTreeMap<&'a str, &'a str>,
    exit: EndDocument<'a>,
    report: &'a Report,
    #[serde(flatten)]
    rest: Rest<'a>,
    /// The figures by which another machine is compared, with the distributions of waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<&'a machines::MachineRun>,
}

#[derive(Serialize)]
struct EndDocument<'a> {
    kind: u32,
    reason: &'static str,
    code: i64,
    message: &'a str,
    time_ns: u64,
    fault: Option<&'a str>,
}

#[derive(Serialize)]
struct Rest<'a> {
    callbacks: u64,
    instructions: u64,
    kernel_counters: BTreeMap<&'a str, u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    spent_ns: BTreeMap<&'a str, u64>,
    /// Left out where CPUs do not differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    hardware: Option<HardwareDocument<'a>>,
    policy_counters: BTreeMap<&'a str, u64>,
    /// Left out where no scheduler was attached below the policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subs: Vec<SubDocument<'a>>,
    printed: &'a str,
    notes: Vec<String>,
    /// How many tasks starved to the end; left out if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    starved: Option<usize>,
}

/// A scheduler below the policy.
#[derive(Serialize)]
struct SubDocument<'a> {
    cgroup: &'a str,
    policy: &'a str,
    level: u8,
    tasks: u64,
    run_ns: u64,
    exit: EndDocument<'a>,
    kernel_counters: BTreeMap<&'a str, u64>,
}

impl<'a> From<&'a SubSummary> for SubDocument<'a> {
    fn from(sub: &'a SubSummary) -> Self {
        Self {
            cgroup: &sub.cgroup,
            policy: &sub.policy,
            level: sub.level,
            tasks: sub.tasks,
            run_ns: sub.ran.get(),
            exit: EndDocument::from(&sub.exit),
            kernel_counters: sub.counters.iter().copied().collect(),
        }
    }
}

/// Work done: time on a CPU of capacity 1024 that has its core to itself.
#[derive(Serialize)]
struct HardwareDocument<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    /// What the energies have, in the words of the hardware's file.
    #[serde(skip_serializing_if = "str::is_empty")]
    parts: &'a str,
    /// Energy of CPUs and of what is there without them; left out where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    energy_fj: Option<u128>,
    /// The part of it that CPUs of one clock share; left out where nothing is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_fj: Option<u128>,
    cpus: Vec<UseDocument>,
    groups: BTreeMap<&'a str, UseDocument>,
}

#[derive(Serialize)]
struct UseDocument {
    work_ns: u64,
    executed_ns: u64,
    /// Time in which the other thread of the core executed, too.
    sibling_ns: u64,
    /// The part of it in which a whole core idled.
    shared_core_ns: u64,
    /// Time on too small a CPU while a bigger one idled.
    misfit_ns: u64,
    /// Time on a bigger CPU than it took while one of the smallest idled.
    misplaced_ns: u64,
    /// Time in another node than that of its memory.
    remote_ns: u64,
    /// Time lost to capacity, frequency, the other thread of the core, memory.
    lost_ns: [u64; 4],
    /// Left out where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    energy_fj: Option<u128>,
    /// Time in each frequency.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    frequencies: Vec<FrequencyDocument>,
    /// Time and work of a group on each class of CPUs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    classes: BTreeMap<String, ClassDocument>,
}

#[derive(Serialize)]
struct ClassDocument {
    executed_ns: u64,
    work_ns: u64,
}

#[derive(Serialize)]
struct FrequencyDocument {
    khz: u32,
    executing_ns: u64,
    idle_ns: u64,
}

impl UseDocument {
    fn of(used: &CpuUse, has_energy: bool) -> Self {
        let frequency = |it: &FrequencyUse| FrequencyDocument {
            khz: it.khz,
            executing_ns: it.executing.get(),
            idle_ns: it.idle.get(),
        };
        let class = |it: &ClassUse| {
            let document = ClassDocument {
                executed_ns: it.executed.get(),
                work_ns: it.work.get(),
            };
            (it.class.clone(), document)
        };
        Self {
            work_ns: used.work.get(),
            executed_ns: used.executed.get(),
            sibling_ns: used.shared.get(),
            shared_core_ns: used.halved.get(),
            misfit_ns: used.misfit.get(),
            misplaced_ns: used.misplaced.get(),
            remote_ns: used.remote.get(),
            lost_ns: used.lost.map(Nanos::get),
            energy_fj: has_energy.then_some(used.energy_fj),
            frequencies: used.frequencies.iter().map(frequency).collect(),
            classes: used.classes.iter().map(class).collect(),
        }
    }
}

impl<'a> From<&'a HardwareUse> for HardwareDocument<'a> {
    fn from(used: &'a HardwareUse) -> Self {
        let groups = used.groups.iter();
        let of = |it| UseDocument::of(it, used.has_energy);
        Self {
            name: &used.name,
            parts: &used.parts,
            energy_fj: used.has_energy.then(|| used.total().energy_fj),
            cluster_fj: (used.cluster_fj > 0).then_some(used.cluster_fj),
            cpus: used.cpus.iter().map(of).collect(),
            groups: groups.map(|(name, it)| (name.as_str(), of(it))).collect(),
        }
    }
}

impl<'a> From<&'a Exit> for EndDocument<'a> {
    fn from(exit: &'a Exit) -> Self {
        Self {
            kind: exit.kind as u32,
            reason: exit.kind.reason(),
            code: exit.code,
            message: &exit.message,
            time_ns: exit.time.as_nanos(),
            fault: exit.fault.as_deref(),
        }
    }
}

impl<'a> From<&'a Summary> for Rest<'a> {
    fn from(summary: &'a Summary) -> Self {
        let policy_counters = summary.policy_counters.iter();
        Self {
            callbacks: summary.callbacks,
            instructions: summary.instructions,
            kernel_counters: summary.counters.iter().copied().collect(),
            spent_ns: (summary.spent.iter())
                .map(|(kind, span)| (*kind, span.get()))
                .collect(),
            hardware: summary.hardware.as_ref().map(HardwareDocument::from),
            policy_counters: policy_counters
                .map(|(name, n)| (name.as_str(), *n))
                .collect(),
            subs: summary.subs.iter().map(SubDocument::from).collect(),
            printed: &summary.printed,
            notes: summary.told(),
            starved: Some(summary.starved.len()).filter(|count| *count > 0),
        }
    }
}

impl<'a> From<&'a Outcome> for RunDocument<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        let set = outcome.set.iter();
        Self {
            policy: &outcome.policy,
            knobs: set
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect(),
            exit: EndDocument::from(&outcome.summary.exit),
            report: &outcome.report,
            rest: Rest::from(&outcome.summary),
            compared: outcome.compared.as_ref(),
        }
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RunDocument::from(self).serialize(serializer)
    }
}
