//! Every policy that the project ships runs every workload that it ships.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Nanos, PolicySpec};
use stats::Conservation;
use workload::{RunSpec, Workload};

fn workloads() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads");
    let entries = fs::read_dir(folder).expect("the folder of workloads");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    files
}

#[test]
fn no_shipped_policy_is_ejected_and_no_time_is_lost_under_any_shipped_workload() {
    let workloads = workloads();
    assert!(workloads.len() >= 4, "{workloads:?}");
    for path in &workloads {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(path).expect("a readable workload");
        let workload = Workload::parse(&text, &file).unwrap_or_else(|error| panic!("{error}"));
        let workload = Arc::new(workload);
        for policy in policies::ALL {
            let spec = RunSpec {
                policy: PolicySpec::of_object(policy.name, policy.object.into()),
                machine: workload.machine.clone(),
                seed: workload.seed,
                workload: Arc::clone(&workload),
                tie_seed: None,
                attach_after: Nanos::ZERO,
                duration: Some(Nanos::from_millis(300)),
            };
            let mut conservation = Conservation::new();
            let summary = sim::run(&spec, &mut conservation).expect("a run");
            let what = format!("{} on {file}", policy.name);
            assert!(!summary.exit.kind.is_error(), "{what}: {:?}", summary.exit);
            let kept = conservation.check(&summary);
            kept.unwrap_or_else(|violation| panic!("{what}: {violation}"));
        }
    }
}
