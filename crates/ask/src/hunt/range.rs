//! Which machines and loads the trials of a hunt have.

use anyhow::Context as _;
use model::{Hardware, Interleave, Kernel, MachineSpec, PolicySpec, Profile, Rng};
use workload::generate;

use super::below;
use crate::kernel;
use crate::like::Like;
use crate::machine::{CPUS_MAX, MachineChange};
use crate::services::Services;
use crate::shrink::Case;
use crate::workload_arg::Written;

/// Draws of kernels are apart from all others of a seed.
const STREAM: u64 = 11 << 60;
/// So are those of stalls.
const BETWEEN: u64 = 13 << 60;
/// And those of numbers of CPUs.
const NUMBERS: u64 = 14 << 60;
/// One of so many trials is on any kernel; the others are on those that are tested most.
const RARE: u64 = 4;

/// What all trials of a hunt have in common.
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// What is not drawn of the machine.
    pub machine: MachineChange,
    /// The machine of a recorded program, which fits no other.
    pub recorded_on: Option<MachineSpec>,
    /// The load of each trial, with its parameters; without it each has its own.
    pub workload: Option<(Written, Vec<(String, i64)>)>,
    /// Kernels on which the policy can be run. Without any, 6.18 and 7.2 are taken for granted.
    pub kernels: Vec<Kernel>,
    /// The policy has topological numbers of CPUs. Every second of its machines has cores of two
    /// threads whose CPUs are no neighbours, so that who takes one number for the other errs.
    pub has_cids: bool,
    /// The dump whose signature a run must have.
    pub like: Option<Like>,
}

impl Range {
    /// The simulated kernels on which `policy` can be loaded and lacks no function that its
    /// callbacks can come to. The same holds for all that is attached below it, which older kernels
    /// cannot do.
    #[must_use]
    pub fn kernels_of(policy: &PolicySpec) -> Vec<Kernel> {
        let below = || policy.subs.iter().map(|sub| &sub.policy);
        let loads = |it: &Kernel| {
            let mut all = std::iter::once(policy).chain(below());
            let has_subs = policy.subs.is_empty() || *it >= Kernel::V7_3;
            has_subs && all.all(|policy| kernel::unloadable(policy, *it).is_none())
        };
        match policy.program {
            Some(_) => Vec::new(),
            None => Kernel::ALL.into_iter().filter(loads).collect(),
        }
    }

    /// The run of trial `number` of `seed`.
    ///
    /// # Errors
    /// When the machine is impossible or the load is bad.
    pub(super) fn case(
        &self,
        services: &Services<'_>,
        policy: &PolicySpec,
        (seed, number, has_hotplug): (u64, u64, bool),
    ) -> anyhow::Result<Case> {
        let asked = self.asked(number);
        let mut drawn = generate::machine_of(seed, number);
        drawn.kernel = self.kernel(seed, number, drawn.kernel);
        let of_load = match &self.workload {
            Some((written, scale)) => {
                let workload = written.parse_for(services, scale, &drawn);
                Some(workload.with_context(|| written.file.clone())?)
            }
            None => None,
        };
        // A load may name CPUs.
        let base = match (&self.recorded_on, &of_load) {
            (Some(machine), _) => machine.clone(),
            (None, Some(workload)) => MachineSpec {
                hz: drawn.hz,
                kernel: drawn.kernel,
                profile: drawn.profile,
                ..workload.machine.clone()
            },
            // The shares of the drawn topology may not fit other CPUs.
            (None, None) if asked.cpus.is_some() => MachineSpec {
                smt: 1,
                llc: 0,
                ..drawn
            },
            (None, None) => drawn,
        };
        let mut machine = asked.change(services, &base)?;
        if self.is_renumbered(&machine, (seed, number)) {
            machine = machine.with_hardware(in_halves(machine.cpus / 2)?);
        }
        machine.interleave = between(machine.interleave, (seed, number));
        if machine.interleave == Some(Interleave::Timed) && asked.profile.is_none() {
            // Under the profile that most trials have nothing takes time.
            machine.profile = Profile::shipped("default-v0").unwrap_or(machine.profile);
        }
        let trial = match &self.like {
            Some(like) => {
                let wanted = like.wanted();
                generate::trial_like(seed, number, has_hotplug, machine, &wanted)
            }
            None => generate::trial_on(seed, number, has_hotplug, machine),
        };
        let (workload, scale, duration) = match &self.workload {
            Some((written, scale)) => (written.clone(), scale.clone(), None),
            None => {
                let written = Written {
                    file: format!("trial-{number}.toml"),
                    text: below::with_cgroups(trial.text, (seed, number), &policy.subs),
                };
                (written, Vec::new(), Some(trial.duration))
            }
        };
        Ok(Case {
            policy: policy.clone(),
            machine: trial.machine,
            workload,
            scale,
            seed: trial.seed,
            duration,
        })
    }

    /// What is asked of the machine of a trial. Every second one has as many CPUs as the dump; the
    /// others are cheaper.
    fn asked(&self, number: u64) -> MachineChange {
        let mut asked = self.machine.clone();
        let of_dump = self.like.as_ref().and_then(Like::cpus);
        if number.is_multiple_of(2) && self.workload.is_none() {
            asked.cpus = asked.cpus.or(of_dump.map(|cpus| cpus.min(CPUS_MAX)));
        }
        asked
    }

    /// Whether the CPUs of a trial are numbered as firmware of x86 does it: nobody else says which
    /// belong together.
    fn is_renumbered(&self, machine: &MachineSpec, (seed, number): (u64, u64)) -> bool {
        let asked = &self.machine;
        let is_asked = asked.smt.is_some() || asked.llc.is_some() || asked.node.is_some();
        let is_given = is_asked || self.workload.is_some() || self.recorded_on.is_some();
        let has_room = machine.cpus >= 4 && machine.cpus.is_multiple_of(2);
        let is_free = self.has_cids && !is_given && machine.hardware.is_none() && has_room;
        is_free && Rng::new(seed, NUMBERS + number).below(2) == 0
    }

    fn kernel(&self, seed: u64, number: u64, drawn: Kernel) -> Kernel {
        let mut rng = Rng::new(seed, STREAM + number);
        let is_rare = rng.below(RARE) == 0 || !self.kernels.contains(&drawn);
        match self.kernels.len() as u64 {
            count @ 1.. if is_rare => self.kernels[rng.below(count) as usize],
            _ => drawn,
        }
    }

    /// What a search must have in common with the one that it continues.
    pub(super) fn key(&self) -> String {
        let kernels: Vec<_> = self.kernels.iter().map(|it| it.name()).collect();
        let mut key = format!("kernels [{}]", kernels.join(" "));
        if self.has_cids {
            key += ", cids";
        }
        if self.machine != MachineChange::default() {
            key += &format!(", machine {:?}", self.machine);
        }
        if let Some((written, scale)) = &self.workload {
            let mut hash = model::Fnv1a::new();
            hash.write(written.text.as_bytes());
            key += &format!(", load {} {:016x} {scale:?}", written.file, hash.value());
        }
        key.extend(self.like.as_ref().map(Like::key));
        key
    }
}

/// Cores of two threads, the second ones numbered behind all first ones.
fn in_halves(cores: u16) -> anyhow::Result<Hardware> {
    let text = format!(
        "[hardware]\nname = \"smt-{cores}x2\"\ngovernor = \"performance\"\n\
         siblings = \"halves\"\norder = [\"CPU*{cores}\"]\nsources = [\"invented\"]\n\
         [llc]\ncpus = [{}]\n[class.CPU]\ncapacity = 1024\nthreads = 2\n",
        2 * cores
    );
    Ok(Hardware::parse(&text, "hardware")?)
}

/// When CPUs come in between in a trial: each has stalls of its own.
fn between(asked: Option<Interleave>, (seed, number): (u64, u64)) -> Option<Interleave> {
    Some(match asked? {
        Interleave::Seeded {
            seed: own,
            every,
            stall,
        } => Interleave::Seeded {
            seed: Rng::new(seed ^ own.rotate_left(32), BETWEEN + number).next_u64(),
            every,
            stall,
        },
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> PolicySpec {
        PolicySpec::of_object("x", std::sync::Arc::from([]))
    }

    #[test]
    fn a_trial_is_drawn_on_every_kernel_that_loads_the_policy_and_on_no_other() {
        let services = Services::default();
        let range = Range {
            kernels: vec![Kernel::V6_12, Kernel::V6_18, Kernel::V7_2],
            ..Range::default()
        };
        let kernels: std::collections::BTreeSet<_> = (0..200)
            .map(|number| {
                let case = range.case(&services, &policy(), (1, number, true));
                case.unwrap().machine.kernel.name()
            })
            .collect();
        assert_eq!(
            kernels.into_iter().collect::<Vec<_>>(),
            ["6.12", "6.18", "7.2"]
        );
    }

    #[test]
    fn who_has_topological_numbers_is_tried_where_they_are_no_cpus() {
        let services = Services::default();
        let mut range = Range {
            has_cids: true,
            ..Range::default()
        };
        let renumbered = |range: &Range| {
            let cases = (0..200).map(|number| {
                let case = range.case(&services, &policy(), (1, number, true));
                let places = case.unwrap().machine.places();
                let first = places.cores.with(model::CpuId(0)).to_vec();
                first.get(1).is_some_and(|second| second.0 > 1)
            });
            cases.filter(|it| *it).count()
        };
        assert!((10..150).contains(&renumbered(&range)));
        range.machine.smt = Some(1);
        assert_eq!(renumbered(&range), 0, "somebody says it");
        assert_eq!(renumbered(&Range::default()), 0);
    }

    #[test]
    fn each_trial_has_stalls_of_its_own_and_the_same_ones_again() {
        let services = Services::default();
        let mut range = Range::default();
        range.machine.interleave = Some("seed:1,every=9".parse().unwrap());
        let between = |number| {
            let case = range.case(&services, &policy(), (1, number, true)).unwrap();
            case.machine.interleave.unwrap().to_string()
        };
        let seen: std::collections::BTreeSet<_> = (0..50).map(between).collect();
        assert_eq!(seen.len(), 50);
        assert_eq!(between(7), between(7));
        assert!(between(7).contains("every=9"));
    }

    #[test]
    fn what_is_asked_of_the_machine_and_the_load_holds_in_every_trial() {
        let services = Services::default();
        let text = "[workload]\nname = \"w\"\nstop = \"duration:1s\"\n[machine]\ncpus = 3\n\
                    [task.t]\ndo = \"run(inf)\"\n";
        let written = Written {
            file: "w.toml".to_owned(),
            text: text.to_owned(),
        };
        let mut range = Range {
            workload: Some((written, Vec::new())),
            ..Range::default()
        };
        let mut seeds = std::collections::BTreeSet::new();
        for number in 0..50 {
            let case = range.case(&services, &policy(), (1, number, true)).unwrap();
            assert_eq!((case.machine.cpus, case.workload.text.as_str()), (3, text));
            seeds.insert(case.seed);
        }
        assert_eq!(seeds.len(), 50, "each has its own choices");
        range.workload = None;
        range.machine.cpus = Some(7);
        range.machine.kernel = Some(Kernel::V7_2);
        for number in 0..50 {
            let case = range.case(&services, &policy(), (1, number, true)).unwrap();
            assert_eq!((case.machine.cpus, case.machine.kernel), (7, Kernel::V7_2));
            case.spec(&services).unwrap();
        }
    }
}
