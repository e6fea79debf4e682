//! What the callbacks of each shipped policy cost with few tasks and with many. Counts, not times.

use std::collections::BTreeMap;

use model::PolicySpec;
use sim::Tally;
use sim::costs::{Costs, measure};

/// Policies that promise decisions whose cost does not grow with the number of tasks, and the one
/// whose walk is bounded.
const FLAT: [&str; 7] = [
    "cfs",
    "eevdf",
    "elsc",
    "mlfq",
    "o1",
    "staircase",
    "staircase5",
];

fn costs(policy: &str, hogs: u32) -> Costs {
    let policy = PolicySpec::of_object(
        policy,
        policies::find(policy).expect("a policy").object.into(),
    );
    let costs = measure(&policy, hogs).unwrap_or_else(|error| panic!("{error}"));
    assert!(!costs.exit.kind.is_error(), "{:?}", costs.exit);
    costs
}

/// The dearest call of each callback.
fn dearest(costs: &Costs) -> BTreeMap<&'static str, Tally> {
    let callbacks = costs.callbacks.iter();
    callbacks
        .filter_map(|(op, tally)| Some((*op, tally.dearest.as_deref()?.clone())))
        .collect()
}

/// No callback costs a tenth more with `many` hogs than with ten.
fn stays_flat(policy: &str, many: u32) {
    let few = dearest(&costs(policy, 10));
    for (op, most) in dearest(&costs(policy, many)) {
        // Called when the policy is attached, or when a task comes to be.
        let Some(least) = few.get(op) else { continue };
        let grown = |is: u64, was: u64| is * 10 > was * 11;
        assert!(
            !grown(most.charged_ps(), least.charged_ps()) && !grown(most.visits(), least.visits()),
            "{policy}, {op}: {least:?} with 10 hogs, {most:?} with {many}"
        );
    }
}

#[test]
fn decisions_of_the_constant_time_policies_cost_the_same_with_a_thousand_tasks() {
    for policy in FLAT {
        for many in [100, 1000] {
            stays_flat(policy, many);
        }
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn decisions_of_the_constant_time_policies_cost_the_same_with_ten_thousand_tasks() {
    for policy in FLAT {
        stays_flat(policy, 10_000);
    }
}

fn goodness_visits(hogs: u32) -> u64 {
    dearest(&costs("goodness", hogs))["dispatch"].visits()
}

/// A choice looks at every task that waits; one that finds all counters used up looks twice.
#[test]
fn goodness_looks_at_every_task() {
    for hogs in [10, 100, 1000] {
        let visits = goodness_visits(hogs);
        let tasks = u64::from(hogs) + 1;
        assert!(
            (tasks..=2 * tasks + 2).contains(&visits),
            "{hogs} hogs: {visits} visits"
        );
    }
}

/// The figures depend on nothing but the object.
#[test]
fn costs_repeat() {
    assert_eq!(costs("o1", 10), costs("o1", 10));
}
