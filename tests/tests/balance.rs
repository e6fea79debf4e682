//! The balancer of `o1` pulls what the one of Linux 2.6.3 pulls: a model follows random runs on
//! several CPUs, decision by decision.

use std::fmt::Write as _;

use model::Rng;
use runslice_tests::models::balance::{Balance, Looks};
use runslice_tests::models::random::spec;
use runslice_tests::timeline::machine;

/// Hogs, sleepers and tasks that end, some bound to a few CPUs, and the masks of the groups.
fn workload(rng: &mut Rng, cpus: u16) -> (String, Vec<Vec<bool>>) {
    let mut text = String::from("stop = \"duration:3s\"\n");
    let mut masks = Vec::new();
    for group in 0..3 + rng.below(4) {
        let bound = rng.below(3) > 0;
        let mut mask: Vec<bool> = (0..cpus).map(|_| !bound || rng.below(3) == 0).collect();
        mask[rng.below(cpus.into()) as usize] = true;
        let list = (0..cpus).filter(|cpu| mask[usize::from(*cpu)]);
        let list: Vec<_> = list.map(|cpu| cpu.to_string()).collect();
        let count = 1 + rng.below(2 * u64::from(cpus).min(8));
        let nice = rng.below(40) as i64 - 20;
        let start = rng.below(900);
        let work = 1 + rng.below(300);
        let pause = 1 + rng.below(100);
        let body = match rng.below(4) {
            0 => "run(inf)".to_owned(),
            1 => format!("run(uniform(1ms, {work}ms))"),
            2 => format!("loop(inf)[ run(exp({work}ms)), sleep(exp({pause}ms)) ]"),
            _ => format!("loop(inf)[ run(exp(2ms)), sleep(exp({pause}ms)) ]"),
        };
        let _ = writeln!(
            text,
            "[task.t{group}]\ncount = {count}\nnice = {nice}\ncpus = \"{}\"\n\
             start = \"uniform(0ms, {start}ms)\"\ndo = \"{body}\"",
            list.join(",")
        );
        masks.push(mask);
    }
    (text, masks)
}

/// Random runs on `cpus` CPUs in nodes of `node`, where idle CPUs look every `idle_ns` if that is
/// not 0: the policy's pulls are the model's.
fn pulls_are_the_models(cpus: u16, node: u16, idle_ns: u32) {
    let mut all = Looks::default();
    let mut decisions = 0;
    for seed in 0..30 {
        let mut rng = Rng::new(seed, u64::from(cpus));
        let (text, masks) = workload(&mut rng, cpus);
        let underflow = seed % 4 == 0;
        // The nodes are the machine's or, on a machine of one node, the knob's.
        let by_machine = seed % 2 == 1;
        let set = [
            ("faithful_underflow", u32::from(underflow)),
            ("idle_ns", idle_ns),
            ("node_cpus", if by_machine { 0 } else { node.into() }),
        ];
        let mut machine = machine(cpus, 1000);
        machine.node = if by_machine { node } else { 0 };
        let spec = spec("o1", &set, machine, &text);
        let mut model = Balance::new(masks, underflow).with_nodes(node.into());
        let summary = sim::run(&spec, &mut model).expect("a run");
        let what = format!("{cpus} CPUs, nodes of {node}, seed {seed}\n{text}");
        assert_eq!(model.differs, None, "{what}");
        assert_eq!(summary.exit.message, "", "{what}");
        let counted = |name: &str| {
            let found = summary.policy_counters.iter().find(|(own, _)| own == name);
            found.expect("a counter").1
        };
        let counters = Looks {
            lb_idle: counted("lb_idle"),
            lb_busy: counted("lb_busy"),
            lb_resched: counted("lb_resched"),
            lb_imbalance: counted("lb_imbalance"),
            lb_not_found: counted("lb_not_found"),
            pulled: counted("pulled"),
            lb_node: counted("lb_node"),
            pulled_node: counted("pulled_node"),
            node_looks: counted("node_looks"),
            node_looks_idle: counted("node_looks_idle"),
        };
        assert_eq!(counters, model.looks, "{what}");
        assert_eq!(counters.pulled_node, counted("pulled_node_from"), "{what}");
        if idle_ns > 0 {
            let idle: u64 = summary.cpus.iter().map(|cpu| cpu.idle.get()).sum();
            let least = (idle / u64::from(idle_ns)).saturating_sub(counters.lb_resched);
            assert!(counters.lb_idle >= least, "{counters:?}, {idle} ns, {what}");
        }
        decisions += model.decisions;
        all.pulled += counters.pulled;
        all.pulled_node += counters.pulled_node;
        all.lb_busy += counters.lb_busy;
    }
    assert!(decisions > 8_000, "{cpus} CPUs: only {decisions} decisions");
    assert_eq!(all.pulled_node > 0, node < cpus, "{all:?}");
    assert!(
        all.pulled > 150 && all.lb_busy > 500,
        "{cpus} CPUs, nodes of {node}: {all:?}"
    );
}

#[test]
fn every_pull_on_2_4_and_16_cpus_is_the_models() {
    for cpus in [2, 4, 16] {
        pulls_are_the_models(cpus, cpus, 0);
    }
}

#[test]
fn every_pull_between_nodes_is_the_models() {
    for (cpus, node) in [(4, 2), (4, 1), (6, 4), (16, 4)] {
        pulls_are_the_models(cpus, node, 0);
    }
}

#[test]
fn every_pull_is_the_models_if_idle_cpus_look_each_millisecond() {
    for (cpus, node) in [(4, 4), (6, 4)] {
        pulls_are_the_models(cpus, node, 1_000_000);
    }
}
