//! The bodies that hold on both machines, on the simulated one, as 6.18 and as 7.2.

use std::sync::Arc;

use model::{Kernel, MachineSpec, Nanos, PolicySpec};
use runslice_tests::policy;
use runslice_tests::two_machines::{Scenario, Taker, Yield};
use workload::{RunSpec, Workload};

fn simulate(scenario: &Scenario, kernel: Kernel) -> Yield {
    let workload = Workload::parse(&scenario.workload(), scenario.name);
    let workload = workload.unwrap_or_else(|error| panic!("{error}"));
    let knobs = scenario.knobs.split(',').filter(|knob| !knob.is_empty());
    let set = knobs.map(|knob| knob.split_once('=').expect("NAME=VALUE"));
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let spec = RunSpec {
        policy: PolicySpec {
            name: scenario.policy.to_owned(),
            object: policy::object(scenario.policy).unwrap_or_else(|error| panic!("{error}")),
            table: None,
            set: set.collect(),
            setup: Vec::new(),
            program: None,
            subs: Vec::new(),
        },
        machine: MachineSpec {
            kernel,
            ..workload.machine.clone()
        },
        workload: Arc::new(workload),
        seed: 1,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: None,
    };
    let mut taker = Taker::default();
    let summary = sim::run(&spec, &mut taker).unwrap_or_else(|error| panic!("{error}"));
    taker.with((summary.exit.kind as u32, summary.exit.message))
}

mod as_6_18 {
    runslice_tests::every_body!(|scenario: &super::Scenario| super::simulate(
        scenario,
        super::Kernel::V6_18
    ));
}

mod as_7_2 {
    runslice_tests::every_body!(|scenario: &super::Scenario| super::simulate(
        scenario,
        super::Kernel::V7_2
    ));
}
