//! Machines of several NUMA nodes, and of unequal caches.

use model::{EventKind, Hardware, MachineSpec, Nanos, Summary};
use runslice_tests::run::Run;
use runslice_tests::two_machines::Taker;
use workload::RunSpec;

use crate::hardware::{simulated, spec_on};

/// Four CPUs a node, two nodes.
const TWO: MachineSpec = MachineSpec {
    cpus: 8,
    smt: 1,
    llc: 0,
    node: 4,
    hz: 1000,
    kernel: model::Kernel::V6_18,
    profile: model::Profile::Ideal,
    tick_skew_ns: 0,
    no_watchdog: false,
    hardware: None,
    interleave: None,
    textbook: None,
};

fn spec(set: &[(&str, &str)], policy: &str, machine: &MachineSpec, workload: &str) -> RunSpec {
    let mut spec = Run {
        set,
        cpus: machine.cpus,
        until: Nanos::from_millis(100),
        ..Run::new(policy, workload)
    }
    .spec();
    spec.machine = machine.clone();
    spec
}

/// The CPUs that each task ran on, in the order of its turns, and the summary.
fn turns(spec: &RunSpec) -> (Vec<Vec<u16>>, Summary) {
    let mut taker = Taker::default();
    let summary = sim::run(spec, &mut taker).unwrap_or_else(|error| panic!("{error}"));
    let mut turns = vec![Vec::new(); summary.tasks.len()];
    for event in &taker.events {
        if event.kind == EventKind::Switch && event.task != model::TaskId::NONE {
            turns[event.task.index()].push(event.cpu.0);
        }
    }
    (turns, summary)
}

fn printed(set: &[(&str, &str)], machine: &MachineSpec) -> Summary {
    turns(&spec(
        set,
        "nodes",
        machine,
        "[task.t]\ndo = \"run(1ms)\"\n",
    ))
    .1
}

#[test]
fn a_policy_sees_the_nodes_and_makes_queues_on_them_only() {
    let summary = printed(&[], &TWO);
    let lines: Vec<&str> = summary.printed.lines().collect();
    assert_eq!(lines[0], "2 nodes");
    assert_eq!(lines[4..6], ["cpu 3 node 0", "cpu 4 node 1"]);
    assert_eq!(lines[9], "queues 0 -22", "EINVAL beyond the last node");
    let one = printed(&[], &MachineSpec { node: 0, ..TWO });
    assert!(
        one.printed.starts_with("1 nodes\ncpu 0 node 0\n"),
        "{}",
        one.printed
    );
    assert!(one.printed.contains("queues 0 -22"), "{}", one.printed);
}

#[test]
fn the_idle_mask_of_a_node_has_the_cpus_of_that_node() {
    let idle = |node| {
        let summary = printed(&[("mask_of", node)], &TWO);
        let lines = summary
            .printed
            .lines()
            .filter_map(|line| line.strip_prefix("idle "));
        let cpus: Vec<u16> = lines.map(|cpu| cpu.parse().unwrap()).collect();
        (cpus, summary.exit)
    };
    assert_eq!(idle("0").0, [0, 1, 2, 3]);
    assert_eq!(idle("1").0, [4, 5, 6, 7]);
    let (none, exit) = idle("-1");
    assert!(
        none.is_empty() && !exit.kind.is_error(),
        "no node is no mistake: {exit:?}"
    );
    let (_, exit) = idle("2");
    assert_eq!(exit.message, "invalid node 2");
}

/// Nine tasks that begin on node 0 and wake together: CPU 0 to 3 are the first task's node.
const NINE: &str = "[barrier.b]\nparties = 9\n\
    [task.t]\ncount = 9\ncpus = \"0-3\"\n\
    do = \"barrier(b), setaffinity(self, all), sleep(1ms), run(3ms), sleep(1ms)\"\n";

fn nodes_of(turns: &[Vec<u16>]) -> Vec<u16> {
    let last = turns
        .iter()
        .map(|cpus| *cpus.last().expect("each task ran"));
    last.map(|cpu| cpu / 4).collect()
}

#[test]
fn a_search_from_a_node_goes_on_in_the_others_unless_it_may_not() {
    for (how, flags, far) in [
        ("1", "0", true),
        ("1", "2", false),
        ("2", "2", false),
        ("3", "0", true),
    ] {
        let set = [("how", how), ("pick_flags", flags)];
        let (turns, summary) = turns(&spec(&set, "nodes", &TWO, NINE));
        assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
        let nodes = nodes_of(&turns);
        assert_eq!(
            nodes.contains(&1),
            far,
            "how {how}, flags {flags}: {turns:?}"
        );
        assert!(nodes.contains(&0), "{turns:?}");
    }
}

#[test]
fn a_task_in_the_global_queue_of_a_node_is_never_taken_by_another_node() {
    // Eight tasks in the queue of node 0; CPU 4 looks for work again and again.
    let load = "[task.t]\ncount = 8\ncpus = \"0-3\"\n\
                do = \"setaffinity(self, all), loop(9)[ run(2ms), yield ]\"\n\
                [task.near]\ncpus = \"4\"\ndo = \"loop(30)[ sleep(1ms), run(100us) ]\"\n";
    let used = |machine: &MachineSpec| {
        let (turns, summary) = turns(&spec(&[], "nodes", machine, load));
        assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
        assert!(turns[8].len() >= 30, "CPU 4 is awake: {turns:?}");
        turns[..8].concat()
    };
    assert!(used(&TWO).iter().all(|&cpu| cpu < 4));
    let one = MachineSpec { node: 0, ..TWO };
    assert!(used(&one).contains(&4), "CPUs of one node share its queue");
}

#[test]
fn the_built_in_choice_looks_behind_the_cache_then_in_the_node_then_far_away() {
    // Caches of two CPUs in nodes of four: who was last on CPU 4 finds 4 busy, then 5, 6 or 7,
    // then the other node.
    let machine = MachineSpec { llc: 2, ..TWO };
    let workload = "[task.hog]\ncpus = \"4\"\ndo = \"run(60ms)\"\n\
        [task.near]\ncpus = \"4-7\"\nstart = \"1ms\"\n\
        do = \"setaffinity(self, all), suspend, run(30ms)\"\n\
        [task.w]\ncpus = \"0\"\nstart = \"20ms\"\ndo = \"resume(near)\"\n";
    for policy in ["nodes", "nodes-flat"] {
        let (turns, summary) = turns(&spec(&[("how", "3")], policy, &machine, workload));
        assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
        assert!(
            (4..8).contains(turns[1].last().unwrap()),
            "{policy}: {turns:?}"
        );
    }
}

#[test]
fn functions_of_nodes_need_masks_of_nodes() {
    let set = [("how", "1")];
    let (_, summary) = turns(&spec(&set, "nodes-flat", &TWO, NINE));
    assert_eq!(summary.exit.message, "per-node idle tracking is disabled");
}

#[test]
fn every_shipped_policy_serves_a_machine_of_four_nodes() {
    let machine = MachineSpec {
        cpus: 16,
        smt: 2,
        llc: 2,
        ..TWO
    };
    for policy in policies::ALL {
        let mut spec = Run {
            cpus: 16,
            hz: 250,
            until: Nanos::from_millis(500),
            ..Run::new(
                policy.name,
                "[task.hog]\ncount = 20\ndo = \"run(inf)\"\n[task.shell]\ncount = 9\n\
                 do = \"loop(inf)[ run(exp(2ms)), sleep(exp(5ms)) ]\"\n",
            )
        }
        .spec();
        spec.machine = machine.clone();
        let mut conservation = stats::Conservation::new();
        let summary = sim::run(&spec, &mut conservation).unwrap_or_else(|error| panic!("{error}"));
        assert!(
            !summary.exit.kind.is_error(),
            "{}: {:?}",
            policy.name,
            summary.exit
        );
        assert_eq!(conservation.check(&summary), Ok(()), "{}", policy.name);
        let busy: Nanos = summary.cpus.iter().map(|cpu| cpu.run).sum();
        assert!(
            busy > Nanos::from_millis(16 * 500 * 9 / 10),
            "{}: {busy}",
            policy.name
        );
    }
}

/// O14: 5.25 of 5.7 GHz and 96 MiB against 32 MiB. A task of 48 MiB, a tenth of whose work waits
/// for memory, is faster on the large cache by a quarter, one of 16 MiB on the faster cores.
#[test]
fn whether_a_large_cache_or_a_fast_core_is_better_depends_on_what_a_task_uses() {
    let files = Hardware::shipped().iter();
    let mut found = files.filter(|(name, _)| *name == "ryzen-7950x3d");
    let (_, text) = found.next().expect("it is there");
    let text = format!("{text}\n[memory]\npenalty = 11.9\n");
    let end = |cpu: u8, footprint: &str| {
        let task = format!(
            "[task.A]\ncpus = \"{cpu}\"\nmem = 10\nfootprint = \"{footprint}\"\n\
             do = \"run(10ms)\"\n"
        );
        let (collector, _) = simulated(&spec_on(&text, &task));
        collector.exit_of("A").as_nanos()
    };
    let (cache, clock) = (0, 16);
    assert_eq!(
        (end(cache, "48MiB"), end(clock, "48MiB")),
        (10_773_411, 13_618_631)
    );
    assert_eq!(
        (end(cache, "16MiB"), end(clock, "16MiB")),
        (10_773_411, 10_000_000)
    );
}

/// Half of the work waits for memory, and half of what it uses fits into the cache: 1.75 ms for
/// 1 ms at home, where memory takes four times as long as the cache, and 2.75 ms away, where it
/// takes eight times as long. One nanosecond and three are what rates lose that are whole numbers.
#[test]
fn memory_stays_in_the_node_where_a_task_first_executed() {
    let hardware = "[hardware]\nname = \"m\"\nsources = [\"a test\"]\norder = [\"a*2\"]\n\
                    [class.a]\ncapacity = 1024\n[llc]\ncpus = [1, 1]\nsize = [\"1MiB\", \"1MiB\"]\n\
                    [nodes]\ncpus = [1, 1]\nremote = [[1.0, 2.0], [2.0, 1.0]]\n";
    let end = |footprint: &str| {
        let task = format!(
            "[task.A]\ncpus = \"0\"\nmem = 50\nfootprint = \"{footprint}\"\n\
             do = \"run(1ms), setaffinity(self, {{1}}), run(1ms)\"\n"
        );
        let (collector, summary) = simulated(&spec_on(hardware, &task));
        let remote = summary.hardware.expect("CPUs differ").groups[0].1.remote;
        (collector.exit_of("A").as_nanos(), remote.get())
    };
    assert_eq!(end("2MiB"), (1_750_001 + 2_750_003, 2_750_003));
    let why = "the cache has all of it";
    assert_eq!(end("1MiB"), (2_000_000, 1_000_000), "{why}");
}

#[test]
fn tasks_that_need_bandwidth_at_once_are_told_that_there_is_no_limit_of_it() {
    let hardware = "[hardware]\nname = \"m\"\nsources = [\"a test\"]\norder = [\"a*2\"]\n\
                    [class.a]\ncapacity = 1024\n[llc]\ncpus = [2]\nsize = [\"1MiB\"]\n";
    let notes = |footprint: &str, mem: u8, start: &str| {
        let task = |name: &str, cpu: u8, start: &str| {
            format!(
                "[task.{name}]\ncpus = \"{cpu}\"\nmem = {mem}\nfootprint = \"{footprint}\"\n\
                 start = \"{start}\"\ndo = \"run(5ms)\"\n"
            )
        };
        let tasks = task("A", 0, "0ms") + &task("B", 1, start);
        simulated(&spec_on(hardware, &tasks)).1.notes.join("\n")
    };
    assert!(notes("2MiB", 40, "1ms").contains("memory bandwidth is not modelled"));
    assert_eq!(notes("1MiB", 40, "1ms"), "", "the cache has all of it");
    assert_eq!(notes("2MiB", 29, "1ms"), "");
    // 40 % of the work takes 2.5 times as long: 8 ms.
    assert_eq!(notes("2MiB", 40, "9ms"), "", "one after the other");
}
