//! Bodies about cgroups, families and deadline tasks.

use super::{Body, Scenario, Yield, assert_survived};

/// What tests/policies/cgroups.h writes down, from the first move of a task of the workload on: a
/// player moves itself before.
fn moves(run: &Yield) -> &str {
    let (kind, message) = &run.exit;
    assert_eq!(*kind, 1025, "{message}");
    let begin = message
        .find("p/b")
        .unwrap_or_else(|| panic!("no move: {message}"));
    message[begin..].trim_end()
}

/// What a policy is told when tasks are moved between cgroups, and in which order: a running task
/// leaves its queue around the move, a sleeping one has none.
#[must_use]
pub fn callbacks_about_cgroups_come_in_order() -> Body {
    let scenario = Scenario {
        name: "cgroups",
        policy: "cgroups",
        knobs: "",
        until_ms: 2_000,
        tables: "[cgroup.a]\n[cgroup.b]\npath = \"/a/b\"\n[cgroup.c]\n\
            [task.t]\nkind = \"process\"\nstart = \"100ms\"\n\
            do = \"run(2ms), cgroup_move(self, b), run(2ms), cgroup_move(self, b), \
            cgroup_move(s, c), cgroup_move(self, root), run(2ms), cgroup_weight(a, 5), \
            cgroup_weight(a, 5), cgroup_max(a, 30ms), cgroup_weight(c, 77), sleep(1s)\"\n\
            [task.s]\nkind = \"process\"\ndo = \"suspend\"\n",
    };
    let check = |run: &Yield| {
        assert_eq!(moves(run), "p/b sqm/b ru p/c m/c pb/ sqmb/ ru wa ba wc");
    };
    Body { scenario, check }
}

/// The policy is asked about all threads of a process, and then told of all.
#[must_use]
pub fn all_threads_of_a_process_move_together() -> Body {
    let scenario = Scenario {
        name: "process",
        policy: "cgroups",
        knobs: "",
        until_ms: 2_000,
        tables: "[cgroup.b]\n[cgroup.c]\n\
            [task.t]\ncount = 2\nstart = \"100ms\"\n\
            do = \"if(self == 0)[ run(2ms), cgroup_move(self, b, process), run(2ms), \
            cgroup_weight(c, 77), sleep(1s) ], suspend\"\n",
    };
    let check = |run: &Yield| {
        // Both are asked, then both are moved. The second sleeps.
        let log = moves(run);
        assert!(log.starts_with("p/b p/b m/b m/b"), "{log}");
    };
    Body { scenario, check }
}

/// A deadline task has its budget in each period, whatever else there is, and one turn a period.
#[must_use]
pub fn a_deadline_task_has_one_turn_a_period() -> Body {
    let scenario = Scenario {
        name: "deadline",
        policy: "fifo",
        knobs: "",
        until_ms: 800,
        tables: "[task.D]\npolicy = \"deadline:8ms/40ms\"\ndo = \"run(10s)\"\n\
            [task.A]\ncount = 4\ndo = \"run(10s)\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        // 8 of 40 ms are 160 of 800 ms: 160 ms here, 163 ms on 6.18, 269 ms on 7.2. CPUs of a
        // guest that counts take turns while one clock runs for both, so that a CPU which is put
        // aside within a softirq has the other's turn counted as that: such time is in the turn
        // (12 to 112 ms long, on the second CPU only) but not charged to the budget. With one CPU
        // 7.2 gives 8.0 ms in each period: `vm/play.rs` holds it to that.
        let ran = run.run_ns("D") / 1_000_000;
        assert!((140..=400).contains(&ran), "{ran} ms");
        // One turn in each of 20 periods.
        let turns = run.turns("D").len();
        assert!((18..=24).contains(&turns), "{turns} turns");
    };
    Body { scenario, check }
}

/// A process is a child of the task that forks it, a thread one of its maker's parent.
#[must_use]
pub fn a_thread_is_no_child_of_its_maker() -> Body {
    let scenario = Scenario {
        name: "a_thread_is_no_child_of_its_maker",
        policy: "family",
        knobs: "",
        until_ms: 200,
        tables: "[task.maker]\ndo = \"fork(thread), run(60ms), fork(process), run(60ms)\"\n\
                 [task.thread]\ndo = \"loop(5)[ run(1ms), sleep(1ms) ]\"\n\
                 [task.process]\nkind = \"process\"\ndo = \"loop(5)[ run(1ms), sleep(1ms) ]\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        assert_eq!(run.levels("thread"), [0]);
        assert_eq!(run.levels("process"), [1]);
    };
    Body { scenario, check }
}
