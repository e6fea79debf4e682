//! Cgroups: what a policy is told of them, in which order, and what it finds when it asks.

use model::{Kernel, Op, Summary};
use runslice_tests::collect::Collector;
use runslice_tests::run::Run;
use runslice_tests::simulate::on_both;
use sim::{Error, PolicyError};
use workload::RunSpec;

const TREE: &str = "[cgroup.a]\nweight = 300\nmax = \"20ms/50ms\"\nburst = \"5ms\"\n\
                    [cgroup.b]\npath = \"/a/b\"\n[cgroup.c]\n";

fn spec(policy: &str, set: &[(&str, &str)], kernel: Kernel, tasks: &str) -> RunSpec {
    let workload = format!("{TREE}{tasks}");
    let mut spec = Run {
        set,
        ..Run::new(policy, &workload)
    }
    .spec();
    spec.machine.kernel = kernel;
    spec
}

/// The run's summary; interpreted and as native code it is the same.
fn run(policy: &str, set: &[(&str, &str)], kernel: Kernel, tasks: &str) -> Summary {
    let mut events = Collector::default();
    on_both(&spec(policy, set, kernel, tasks), &mut events).unwrap_or_else(|e| panic!("{e}"))
}

/// The callbacks about cgroups, as tests/policies/cgroups.h writes them down.
fn log(summary: &Summary) -> &str {
    let lines = summary.printed.lines();
    let log = lines
        .filter_map(|line| line.strip_prefix("log "))
        .next_back();
    log.unwrap_or_else(|| panic!("no log: {} {:?}", summary.printed, summary.exit))
}

const MOVES: &str = "[task.t]\nstart = \"5ms\"\ndo = \"run(1ms), cgroup_move(self, b), run(1ms), \
     cgroup_move(self, b), cgroup_move(s, c), cgroup_move(self, root), run(1ms), \
     cgroup_weight(a, 5), cgroup_weight(a, 5), cgroup_max(a, 30ms), cgroup_max(a, 30ms)\"\n\
     [task.s]\ndo = \"suspend\"\n";

#[test]
fn callbacks_come_in_the_kernels_order() {
    // `cgroup_set_bandwidth` came with 6.17.
    for kernel in Kernel::ALL.into_iter().filter(|it| *it >= Kernel::V6_17) {
        let summary = run("cgroups", &[], kernel, MOVES);
        // Parents first, children first at the end; a running task leaves its queue around the
        // move, a sleeping one has none; what does not change is not told.
        assert_eq!(
            log(&summary),
            "i/ ia ib ic p/b sqm/b ru p/c m/c pb/ sqmb/ ru wa ba xb xa xc x/ ",
            "{kernel:?}: {}",
            summary.printed
        );
        assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    }
}

#[test]
fn a_policy_is_told_of_weights_and_limits() {
    let summary = run("cgroups", &[], Kernel::V6_18, MOVES);
    for line in [
        "a: weight 300",
        "quota 20000 of 50000, burst 5000",
        "b: weight 100",
        "quota -1 of 100000, burst 0",
        "weight 5",
        "max 30000 of 100000, burst 5000",
    ] {
        let found = summary.printed.lines().any(|printed| printed == line);
        assert!(found, "{line}: {}", summary.printed);
    }
}

#[test]
fn a_waiting_task_is_taken_out_of_its_queue_and_put_back() {
    // w waits behind t, which moves it.
    let tasks = "[task.t]\ndo = \"run(1ms), cgroup_move(w, a), run(1ms)\"\n\
                 [task.w]\ndo = \"run(1ms)\"\n";
    let summary = run("cgroups", &[], Kernel::V6_18, tasks);
    assert!(log(&summary).contains(" p/a qm/a ru "), "{}", log(&summary));
}

#[test]
fn storage_belongs_to_the_cgroup_whose_time_a_task_takes() {
    let tasks = "[task.t]\ncgroup = \"/a/b\"\n\
                 do = \"loop(3)[ run(1ms), sleep(1ms) ], cgroup_move(self, c), sleep(1ms), \
                 run(1ms)\"\n\
                 [task.u]\nstart = \"50ms\"\ndo = \"run(1ms)\"\n";
    let summary = run("cgroups", &[("looks", "true")], Kernel::V6_18, tasks);
    let leaves: Vec<_> = (summary.printed.lines())
        .filter(|line| line.contains("leaves"))
        .collect();
    // Three turns end with a sleep, the fourth with the move; then one goes on, and one wakes.
    assert_eq!(
        leaves,
        [
            "b leaves after 4 turns",
            "a leaves after 0 turns",
            "c leaves after 2 turns",
            "/ leaves after 1 turns"
        ]
    );
    let wrong = ["is not", "has an ancestor", "told of"];
    let complaints = summary.printed.lines();
    let complaints: Vec<_> = complaints
        .filter(|line| wrong.iter().any(|words| line.contains(words)))
        .collect();
    assert_eq!(complaints, [""; 0]);
}

#[test]
fn a_child_is_born_in_its_parents_cgroup_or_in_its_own() {
    let tasks = "[task.t]\ncgroup = \"/a\"\ndo = \"fork(same), fork(other), waitpid(all)\"\n\
                 [task.same]\ndo = \"run(1ms)\"\n\
                 [task.other]\ncgroup = \"/c\"\ndo = \"run(1ms)\"\n";
    let summary = run("cgroups", &[("looks", "1")], Kernel::V6_18, tasks);
    let born: Vec<_> = (summary.printed.lines())
        .filter(|line| line.starts_with("born"))
        .collect();
    // The kernel assigns the `css_set` behind everything that a policy is told of a birth.
    assert_eq!(born, ["born in a, seen in /", "born in c, seen in /"]);
}

const PROCESS: &str = "[task.t]\ncount = 3\n\
     do = \"if(self == 1)[ run(1ms), cgroup_move(self, a), sleep(1ms), \
     cgroup_move(self, c, process) ], suspend\"\n";

#[test]
fn a_process_moves_with_all_its_threads_by_where_they_come_from() {
    let summary = run("cgroups", &[], Kernel::V6_18, PROCESS);
    // First the two from the root, then the one from a; all are asked before any is moved.
    let log = log(&summary);
    assert!(log.contains("p/c p/c pac m/c m/c "), "{log}");
}

#[test]
fn a_refused_move_is_taken_back_and_moves_nobody() {
    let set = [("refused_call", "3")];
    let summary = run("cgroups", &set, Kernel::V6_18, PROCESS);
    assert!(log(&summary).contains("p/c p/c c/c x"), "{}", log(&summary));
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    let note = "the policy refused to move t.2[102] to another cgroup: error -13";
    assert!(
        summary.notes.iter().any(|said| said == note),
        "{:?}",
        summary.notes
    );
    // A number that is no error ends the policy.
    let set = [("refused_call", "1"), ("refusal", "5")];
    let summary = run("cgroups", &set, Kernel::V6_18, PROCESS);
    assert_eq!(
        summary.exit.message,
        "ops.cgroup_prep_move() returned an invalid errno 5"
    );
}

#[test]
fn real_time_and_deadline_tasks_move_too() {
    let tasks = "[task.t]\npolicy = \"fifo:5\"\ndo = \"run(1ms), cgroup_move(self, a), run(1ms)\"\n\
                 [task.d]\npolicy = \"deadline:1ms/9ms\"\nstart = \"5ms\"\n\
                 do = \"run(1ms), cgroup_move(self, b), run(1ms)\"\n";
    let summary = run("cgroups", &[], Kernel::V6_18, tasks);
    assert!(
        log(&summary).contains("p/a m/a p/b m/b "),
        "{}",
        log(&summary)
    );
}

#[test]
fn cpu_idle_is_told_since_6_19_and_keeps_the_weight() {
    let tasks = "[task.t]\ndo = \"cgroup_idle(c, 1), cgroup_weight(c, 9), cgroup_idle(c, 0), \
                 cgroup_weight(c, 9)\"\n";
    let summary = run("cgroups-idle", &[], Kernel::V7_2, tasks);
    assert!(log(&summary).contains("Ic ac wc "), "{}", log(&summary));
    let old = run("cgroups", &[], Kernel::V6_18, tasks);
    assert!(log(&old).contains("ic wc "), "{}", log(&old));
}

#[test]
fn the_flag_of_weights_means_nothing_in_6_18_and_is_unknown_in_7_2() {
    let tasks = "[task.t]\ndo = \"run(1ms)\"\n";
    let summary = run("cgroups-weight", &[], Kernel::V6_18, tasks);
    assert_eq!(
        summary.notes,
        ["SCX_OPS_HAS_CGROUP_WEIGHT is deprecated and a noop"]
    );
    let spec = spec("cgroups-weight", &[], Kernel::V7_2, tasks);
    let refused = sim::run(&spec, &mut Collector::default());
    assert!(
        matches!(
            refused,
            Err(Error::Policy {
                source: PolicyError::Ops(_),
                ..
            })
        ),
        "{refused:?}"
    );
}

#[test]
fn events_name_both_cgroups_of_a_move() {
    let mut events = Collector::default();
    sim::run(&spec("cgroups", &[], Kernel::V6_18, MOVES), &mut events).unwrap();
    let moves: Vec<_> = (events.calls.iter())
        .filter(|call| call.op == Op::CgroupMove)
        .map(|call| (call.b, call.a))
        .collect();
    // Numbers in the order of the file, the root's is 1.
    assert_eq!(moves, [(1, 3), (1, 4), (3, 1)]);
}

#[test]
fn an_operation_whose_number_does_not_fit_ends_the_run() {
    for (op, want) in [
        (
            "cgroup_weight(a, rand(1))",
            "the weight is 0; expected 1 to 10000",
        ),
        (
            "cgroup_idle(a, 2 + rand(1))",
            "cpu.idle is 2; expected 0 to 1",
        ),
    ] {
        let tasks = format!("[task.t]\ndo = \"{op}\"\n");
        let spec = spec("cgroups", &[], Kernel::V6_18, &tasks);
        let error = sim::run(&spec, &mut Collector::default()).unwrap_err();
        assert!(model::Advice::in_full(&error).contains(want), "{error}");
    }
}
