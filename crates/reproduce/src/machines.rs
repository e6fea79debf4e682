//! The machines that `reproduce` runs experiments on, and the policies and workloads that these
//! name.

#[cfg(feature = "live")]
pub mod on_kernel;
pub mod simulate;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use crate::experiments::probe::{Probe, WantedProbe};
use ask::key::fingerprint;
use ask::{policy, workload_arg};
use model::{MachineSpec, PolicySpec};
use runslice::door::{COMPUTER, Store};
use serde_json::{Value, json};
use workload::Workload;

use crate::experiments::files::Files;
use crate::experiments::{Catalog, Cause};

/// How experiments are rerun.
#[derive(Clone, Copy, Debug)]
pub struct RerunOptions<'a> {
    /// A few runs of each kind.
    pub quick: bool,
    /// Where results are kept.
    pub store: &'a Store,
    /// Threads, or guests at once. Unless that is said, one for each CPU, if the guests fit.
    pub jobs: Option<NonZeroUsize>,
}

/// Stands in the place of kernels in a program that was built without the feature `live`.
#[cfg(not(feature = "live"))]
pub mod on_kernel {
    use runslice::door::{KernelPlace, without_kernel};

    use super::RerunOptions;
    use crate::experiments::cells::ExperimentResults;
    use crate::experiments::experiment::Experiment;

    /// No experiment can be run on a kernel.
    pub fn run(
        _: KernelPlace,
        _: &[Experiment],
        _: RerunOptions<'_>,
        _: &mut [ExperimentResults],
    ) -> anyhow::Result<bool> {
        without_kernel("use --machine sim")
    }
}

/// The policies and workloads that this program has or finds.
#[derive(Clone, Copy, Debug)]
pub struct ProgramFiles;

impl Catalog for ProgramFiles {
    fn policy(&self, words: &str) -> Result<PolicySpec, Cause> {
        Ok(policy::find(&COMPUTER, words)?)
    }

    fn workload(&self, name: &str, scale: &[(String, i64)]) -> Result<Workload, Cause> {
        Ok(workload_arg::find(&COMPUTER, name, scale)?)
    }

    fn check(&self, machine: &MachineSpec) -> Result<(), Cause> {
        Ok(sim::check_machine(machine)?)
    }
}

/// What `probes` found, each under the name that `wanted` gives it.
pub fn found(wanted: &[WantedProbe], probes: &[Probe]) -> Value {
    let all = wanted.iter().zip(probes).map(|(wanted, probe)| {
        let found = probe.found();
        let values: BTreeMap<_, _> = found.values.into_iter().collect();
        let value = json!({
            "values": values,
            "trace": found.trace,
            "exact": found.exact,
            "points": found.points,
        });
        (wanted.name.clone(), value)
    });
    Value::Object(all.collect())
}

/// The fingerprint of what was calibrated.
pub fn calibration(files: &Files) -> String {
    format!(
        "{:032x}",
        fingerprint(files.calibration().collect::<Vec<_>>())
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::experiments::cells::ExperimentResults;
    use crate::experiments::claim::{ClaimVerdict, Rules};
    use crate::experiments::{experiment, judge_all};

    use super::*;

    /// Every file is right, and every test and figure asks for what there is.
    #[test]
    fn every_experiment_of_the_project_is_right() {
        let files = Files::embedded();
        for name in files.experiments() {
            let experiment = experiment::read(&files, name, &ProgramFiles).unwrap();
            let experiments = [experiment];
            assert!(files.get(&format!("{name}/README.md")).is_some(), "{name}");
            assert!(
                files.get(&format!("{name}/expected.csv")).is_some(),
                "{name}"
            );
            let number = name.split('-').next();
            assert_eq!(number, Some(experiments[0].document.as_str()), "{name}");
        }
    }

    /// `runslice` tells by them that an experiment stands in the place of something else.
    #[test]
    fn the_command_line_knows_the_names_of_all_experiments() {
        let all = Files::embedded().everywhere().join(" ");
        assert_eq!(all, runslice::door::EXPERIMENTS);
    }

    /// The same of those for kernels.
    #[test]
    fn every_experiment_on_kernels_is_right() {
        let files = Files::embedded();
        for name in files.on_kernels() {
            experiment::read_real(&files, name, &ProgramFiles).unwrap();
        }
    }

    /// What the project's experiments ask on the simulated machine, with the verdict on no runs.
    fn asked() -> Vec<(String, ClaimVerdict)> {
        let files = Files::embedded();
        let mut asked = Vec::new();
        for name in files.experiments() {
            let experiments = [experiment::read(&files, name, &ProgramFiles).unwrap()];
            let none = [ExperimentResults::default()];
            let judged = judge_all(&experiments, &none, "sim", &Rules::default());
            let parts = judged.into_iter().flat_map(|it| it.parts);
            asked.extend(parts.map(|(name, finding)| (name, finding.verdict)));
        }
        asked
    }

    #[test]
    fn what_holds_whatever_schedulers_do_is_not_counted() {
        let free = |(name, verdict): (String, ClaimVerdict)| {
            let id = name.split(' ').next().unwrap_or_default().to_owned();
            (verdict == ClaimVerdict::CannotFail).then_some(id)
        };
        let ids: BTreeSet<String> = asked().into_iter().filter_map(free).collect();
        let want = [
            "A1", "A11", "A12", "A15", "A2", "A8", "B10", "C1", "C7", "D1", "E2",
        ];
        assert_eq!(ids, BTreeSet::from(want.map(str::to_owned)));
    }

    /// With both figures, which its README has, too.
    #[test]
    fn a_model_that_was_changed_after_its_result_is_disclosed_where_it_is_reported() {
        let files = Files::embedded();
        let servers = experiment::read(&files, "000-servers", &ProgramFiles).unwrap();
        let told = |it: &&String| it.contains("A5 and A8 (ab) are explorations");
        let note = servers.notes.iter().find(told).unwrap();
        let readme = include_str!("../../../experiments/000-servers/README.md");
        for figure in ["3239", "1377", "3230", "1374", "1.0058", "1.0115", "1.0005"] {
            assert!(note.contains(figure) && readme.contains(figure), "{figure}");
        }
    }

    #[test]
    fn all_pairs_of_scheduler_hogs_and_task_decide_e7() {
        let all = asked();
        let pairs: Vec<_> = all.iter().filter(|it| it.0.starts_with("E7 ")).collect();
        assert_eq!(pairs.len(), 24, "{pairs:?}");
        for name in ["Linux 2.6.3", "Linux 2.4", "Staircase", "round robin"] {
            let of_arm = pairs.iter().filter(|it| it.0.contains(name));
            assert_eq!(of_arm.count(), 6, "{name}");
        }
    }

    #[test]
    fn every_statement_is_decided_by_one_experiment() {
        let files = Files::embedded();
        let mut deciding: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for id in experiment::statements(&files).unwrap().into_keys() {
            deciding.insert(id, Vec::new());
        }
        assert_eq!(deciding.len(), 64);
        for name in files.experiments() {
            for statement in experiment::read(&files, name, &ProgramFiles)
                .unwrap()
                .statements
            {
                deciding.get_mut(&statement.id).unwrap().push(name);
            }
        }
        for (id, names) in deciding {
            assert_eq!(names.len(), 1, "{id}: {names:?}");
        }
    }

    /// The calibration was frozen before anything was judged; experiments/README.md names it.
    #[test]
    fn the_calibration_is_the_frozen_one() {
        let files = Files::embedded();
        let readme = files.get("README.md").unwrap();
        let fingerprint = calibration(&files);
        assert!(readme.contains(&fingerprint), "{fingerprint}");
    }
}
