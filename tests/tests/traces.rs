//! The recorded scenarios happen in the simulator as on a real kernel.
//!
//! What is compared, and what is not, is the business of one function:
//! `runslice_tests::comparable::comparable`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use model::workload::Workload;
use model::{Nanos, PolicySpec, RunSpec};
use runslice_tests::collect::Collector;
use runslice_tests::comparable::{Comparable, comparable, difference};
use runslice_tests::policy;
use runslice_tests::recording::{self, Section};

/// The CPU of which a recording has every callback.
const WHOLE_CPU: u16 = 1;

/// A recording, and the test policy that does what the recorded one did.
struct Recorded {
    name: &'static str,
    text: &'static str,
    policy: &'static str,
    set: &'static [(&'static str, &'static str)],
}

const RECORDED: [Recorded; 4] = [
    Recorded {
        name: "a618",
        text: include_str!("../golden/traces/a618.txt"),
        policy: "probe",
        set: &[("kick", "1")],
    },
    Recorded {
        name: "b618",
        text: include_str!("../golden/traces/b618.txt"),
        policy: "probe",
        set: &[("select", "1")],
    },
    Recorded {
        name: "c618",
        text: include_str!("../golden/traces/c618.txt"),
        policy: "probe-last",
        set: &[("kick", "1")],
    },
    Recorded {
        name: "k618",
        text: include_str!("../golden/traces/k618.txt"),
        policy: "probe",
        set: &[("kick", "2")],
    },
];

fn simulated(recorded: &Recorded, section: &Section) -> Comparable {
    let file = format!("workloads/traces/{}.toml", section.name.to_lowercase());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&file);
    let text = fs::read_to_string(path).expect(&file);
    let workload = Workload::parse(&text, &file).expect("a workload");
    let set = recorded
        .set
        .iter()
        .map(|(knob, value)| ((*knob).to_owned(), (*value).to_owned()));
    let spec = RunSpec {
        policy: PolicySpec {
            name: recorded.name.to_owned(),
            object: policy::object(recorded.policy).expect("a test policy"),
            table: None,
            set: set.collect(),
        },
        machine: workload.machine.clone(),
        workload: Arc::new(workload),
        seed: 1,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: None,
    };
    let mut collector = Collector::default();
    let summary = sim::run(&spec, &mut collector).expect("a run");
    assert_eq!(
        summary.exit.message, "",
        "{} {}",
        recorded.name, section.name
    );
    comparable(&collector.as_recorded(), WHOLE_CPU)
}

#[test]
fn every_task_of_every_recorded_scenario_has_the_same_story() {
    let mut failures = String::new();
    for recorded in &RECORDED {
        for section in &recording::parse(recorded.text).expect(recorded.name) {
            let kernel = comparable(&section.calls, WHOLE_CPU);
            if let Some(what) = difference(&kernel, &simulated(recorded, section)) {
                failures += &format!("{} {}: {what}\n", recorded.name, section.name);
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn the_order_of_a_cpu_s_callbacks_is_one_that_the_kernel_showed() {
    let mut failures = String::new();
    for recorded in &RECORDED {
        let mut kernel: BTreeSet<String> = BTreeSet::new();
        let mut machine: BTreeSet<String> = BTreeSet::new();
        for section in &recording::parse(recorded.text).expect(recorded.name) {
            kernel.extend(comparable(&section.calls, WHOLE_CPU).exchanges);
            machine.extend(simulated(recorded, section).exchanges);
        }
        for exchange in kernel.difference(&machine) {
            failures += &format!("{}: only on the kernel: {exchange}\n", recorded.name);
        }
        for exchange in machine.difference(&kernel) {
            failures += &format!("{}: only simulated: {exchange}\n", recorded.name);
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}
