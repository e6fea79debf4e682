//! Importing rt-app's configurations.

use super::*;
use crate::{Budget, CgroupOp, DeviceOp, Grid, Operation, SchedPolicy, Workload};
use model::{Advice as _, Nanos};

/// The workload that `json` becomes, and what was lost.
fn imported(json: &str) -> (Workload, Vec<String>) {
    let imported = import(json, "case.json").unwrap_or_else(|error| panic!("{error}"));
    let workload = Workload::parse(&imported.toml, "case.json");
    let workload = workload.unwrap_or_else(|error| panic!("{error}\n{}", imported.toml));
    (workload, imported.lost)
}

fn refusal(json: &str) -> String {
    import(json, "case.json").unwrap_err().in_full()
}

#[test]
fn comments_trailing_commas_and_equal_names_are_read_as_rt_app_and_workgen_do() {
    let (workload, lost) = imported(
        "{ /* Two runs\n of one name. */\n \"tasks\" : { \"thread-0\" : {\n // Microseconds.\n\
         \"loop\" : 2, \"run\" : 1000, \"sleep\" : 500, \"run\" : 2000, \"run2\" : 3000, } } }",
    );
    assert_eq!(workload.groups[0].name, "thread_0");
    let Operation::Loop { body, .. } = &workload.groups[0].body[0].op else {
        panic!("{:?}", workload.groups[0].body)
    };
    assert_eq!(body.len(), 4);
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn a_text_may_have_each_escape_of_json() {
    let read = |text: &str| {
        let source = Source {
            file: "case.json",
            text,
        };
        match Json::parse(&source).map(|json| json.value) {
            Ok(Value::Text(text)) => Ok(text),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.in_full()),
        }
    };
    let all = r#""a\n\t\r\b\f\"\\\/\u0041\u00e4z""#;
    let want = "a\n\t\r\u{8}\u{c}\"\\/A\u{e4}z";
    assert_eq!(read(all).as_deref(), Ok(want));
    for wrong in [r#""\u00g1""#, r#""\ud800""#, r#""\u12"#] {
        let error = read(wrong).unwrap_err();
        assert!(error.contains("four hexadecimal digits"), "{error}");
    }
}

#[test]
fn tables_of_cgroups_are_called_by_their_paths_and_no_two_alike() {
    let paths = ["/", "/a", "/a/b", "/a_b", "/a-b", "/ab", "/a_/b", "/B7"];
    let names: Vec<String> = paths.iter().map(|path| cgroup_name(path)).collect();
    assert_eq!(names[..3], ["root", "g_a", "g_a_b"]);
    assert_eq!(names[7], "g_B7");
    let different: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(different.len(), paths.len(), "{names:?}");
}

#[test]
fn words_of_json_are_values() {
    let source = Source {
        file: "case.json",
        text: "[true, false, null]",
    };
    let Ok(Value::List(list)) = Json::parse(&source).map(|json| json.value) else {
        panic!("a list");
    };
    let values: Vec<Value> = list.into_iter().map(|json| json.value).collect();
    assert_eq!(values, [Value::Bool(true), Value::Bool(false), Value::Null]);
}

#[test]
fn a_sync_wakes_another_one_before_it_waits_itself() {
    let toml = |event: &str| {
        let wait = "{ \"ref\": \"q\", \"mutex\": \"m\" }";
        let case = format!("{{ \"tasks\": {{ \"t\": {{ \"{event}\": {wait} }} }} }}");
        import(&case, "case.json").unwrap().toml
    };
    assert!(toml("sync").contains("signal(cond_q), wait(cond_q, mutex_m)"));
    assert!(!toml("wait").contains("signal") && toml("wait").contains("wait(cond_q, mutex_m)"));
}

#[test]
fn an_event_may_stand_without_a_value() {
    let (workload, _) =
        imported("{ \"tasks\": { \"t\": { \"suspend\", \"run\": 5, \"yield\" } } }");
    assert_eq!(workload.conditions[0].name, "resume_t");
    let missing = refusal("{ \"tasks\": { \"t\": { \"run\" } } }");
    assert!(
        missing.contains("found null; expected a whole number"),
        "{missing}"
    );
}

#[test]
fn classes_cpus_delay_and_duration_arrive() {
    let (workload, lost) = imported(
        "{ \"tasks\": { \"a\": { \"instance\": 3, \"priority\": -5, \"cpus\": [0, 2], \
         \"delay\": 1500, \"run\": 10 }, \
         \"b\": { \"policy\": \"SCHED_FIFO\", \"loop\": 1, \"run\": 10 }, \
         \"c\": { \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 100, \
         \"dl-period\": 900, \"run\": 10 } }, \
         \"global\": { \"duration\": 2, \"calibration\": \"CPU0\", \"default_policy\": \
         \"SCHED_BATCH\" } }",
    );
    let [a, b, c] = &workload.groups[..] else {
        panic!("three tasks")
    };
    assert_eq!((a.count, a.nice, a.policy), (3, -5, SchedPolicy::Batch));
    assert_eq!(a.cpus.as_ref().unwrap().to_string(), "0,2");
    assert_eq!(b.policy, SchedPolicy::Fifo(10));
    let [runtime, period] = [100, 900].map(Nanos::from_micros);
    let budget = Budget {
        runtime,
        deadline: period,
        period,
    };
    assert_eq!(c.policy, SchedPolicy::Deadline(budget));
    assert_eq!(workload.stop.after, Some(Nanos::from_secs(2)));
    assert_eq!(lost, [""; 0]);
}

#[test]
fn a_budget_that_the_kernel_refuses_is_refused() {
    for budget in [
        "",
        "\"dl-runtime\": 1, \"dl-period\": 900,",
        "\"dl-runtime\": 500, \"dl-deadline\": 400, \"dl-period\": 900,",
        "\"dl-runtime\": 50, \"dl-deadline\": 950, \"dl-period\": 900,",
        "\"dl-runtime\": 50,",
    ] {
        let message = refusal(&format!(
            "{{ \"tasks\": {{ \"t\": {{ \"policy\": \"SCHED_DEADLINE\", {budget} \
             \"run\": 5 }} }} }}"
        ));
        assert!(message.contains("that the kernel accepts"), "{message}");
    }
}

#[test]
fn a_budget_changes_with_the_phase() {
    let (workload, lost) = imported(
        "{ \"tasks\": { \"t\": { \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 100, \
         \"dl-period\": 900, \"phases\": { \"p\": { \"run\": 5 }, \
         \"q\": { \"dl-runtime\": 200, \"dl-deadline\": 300, \"dl-period\": 800, \
         \"run\": 5 } } } } }",
    );
    let Operation::Loop { body, .. } = &workload.groups[0].body[0].op else {
        panic!("phases repeat")
    };
    let Operation::SetPolicy { policy, .. } = &body[1].op else {
        panic!("the second phase begins with a new budget: {body:?}")
    };
    let [runtime, deadline, period] = [200, 300, 800].map(Nanos::from_micros);
    let budget = Budget {
        runtime,
        deadline,
        period,
    };
    assert_eq!(*policy, SchedPolicy::Deadline(budget));
    assert_eq!(lost, [""; 0]);
}

#[test]
fn task_groups_become_cgroups_with_their_parents() {
    let (workload, lost) = imported(
        "{ \"tasks\": { \"t\": { \"taskgroup\": \"/a/b-1\", \"phases\": { \"p\": { \"run\": 5 }, \
         \"q\": { \"taskgroup\": \"/c/\", \"run\": 5 } } }, \
         \"u\": { \"taskgroup\": \"\", \"dl-runtime\": 5, \"run\": 5 } } }",
    );
    let paths: Vec<_> = workload.cgroups.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(paths, ["/a", "/a/b-1", "/c"]);
    assert_eq!(workload.cgroups[1].parent, 1);
    let groups: Vec<_> = workload.groups.iter().map(|group| group.cgroup).collect();
    assert_eq!(groups, [Some(2), None]);
    let Operation::Loop { body, .. } = &workload.groups[0].body[0].op else {
        panic!("phases repeat")
    };
    let moves = |op: &Operation| {
        matches!(
            op,
            Operation::Device(DeviceOp::Cgroup(CgroupOp::Move { to: 3, .. }))
        )
    };
    assert!(body.iter().any(|step| moves(&step.op)), "{body:?}");
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].contains("a slice of its own"), "{lost:?}");
}

#[test]
fn cgroups_and_deadline_tasks_come_back_from_an_export() {
    let text = "[workload]\nname = \"w\"\n[cgroup.a]\n[cgroup.b]\npath = \"/a/b\"\n\
                [task.t]\ncgroup = \"/a\"\ndo = \"run(5us), cgroup_move(self, b), run(6us), \
                cgroup_move(self, root), run(7us)\"\n\
                [task.d]\npolicy = \"deadline:1ms/2ms/3ms\"\ndo = \"run(5us)\"\n";
    let workload = Workload::parse(text, "w.toml").unwrap();
    let exported = export(&workload).unwrap();
    assert_eq!(exported.lost, [""; 0]);
    let (again, lost) = imported(&exported.json);
    assert_eq!(lost, [""; 0]);
    assert_eq!(again.groups[0].cgroup, Some(1));
    assert_eq!(again.groups[1].policy, workload.groups[1].policy);
    let paths = |workload: &Workload| -> Vec<String> {
        workload.cgroups.iter().map(|c| c.path.clone()).collect()
    };
    assert_eq!(paths(&again), paths(&workload));
    let code = format!("{:?}", again.groups[0].body);
    assert!(code.contains("Move { target: Me, to: 2"), "{code}");
    assert!(code.contains("Move { target: Me, to: 0"), "{code}");
}

#[test]
fn timers_begin_with_the_task_move_unless_absolute_and_share_their_name() {
    let (workload, lost) = imported(
        "{ \"tasks\": { \"t\": { \"phases\": { \
         \"p\": { \"timer\": { \"ref\": \"unique\", \"period\": 10 } }, \
         \"q\": { \"timer\": { \"ref\": \"unique\", \"period\": 20, \"mode\": \"absolute\" } }, \
         \"r\": { \"timer\": { \"ref\": \"tick\", \"period\": 30 } } } } } }",
    );
    let Operation::Loop { body, .. } = &workload.groups[0].body[0].op else {
        panic!("{:?}", workload.groups[0].body)
    };
    let timers: Vec<_> = (body.iter())
        .map(|step| match step.op {
            Operation::Timer {
                period, grid, slot, ..
            } => (period.get(), grid.moves, slot),
            ref other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(timers[0].2, timers[1].2, "one timer");
    assert_ne!(timers[0].2, timers[2].2);
    assert_eq!(
        timers.iter().map(|t| (t.0, t.1)).collect::<Vec<_>>(),
        [(10_000, true), (20_000, false), (30_000, true)]
    );
    assert!(lost[0].contains("timer `tick`"), "{lost:?}");
    let deadlines = workload.deadlines.iter();
    let deadlines: Vec<_> = deadlines
        .map(|it| (it.name.as_str(), it.period, it.slack))
        .collect();
    let of = |name, us| (name, Some(Nanos::from_micros(us)), Nanos::from_micros(us));
    assert_eq!(
        deadlines,
        [of("unique", 10), of("unique_20us", 20), of("tick", 30)],
        "a deadline each period"
    );
    let own = Grid {
        from_start: true,
        moves: true,
    };
    assert!(matches!(body[0].op, Operation::Timer { grid, .. } if grid == own));
}

#[test]
fn a_phase_changes_its_task_and_the_next_one_takes_the_cpus_back() {
    let toml = import(
        "{ \"tasks\": { \"t\": { \"loop\": 1, \"phases\": { \
         \"p\": { \"cpus\": [1], \"priority\": 5, \"run\": 1 }, \"q\": { \"run\": 2 }, \
         \"r\": { \"policy\": \"SCHED_RR\", \"priority\": 7, \"run\": 3 } } } } }",
        "case.json",
    )
    .unwrap()
    .toml;
    let order = [
        "setaffinity(self, {1})",
        "setnice(self, 5)",
        "setpolicy(self, normal)",
        "run(1us)",
        "setaffinity(self, all)",
        "run(2us)",
        "setpolicy(self, rr:7)",
        "run(3us)",
    ];
    let mut at = 0;
    for part in order {
        at += toml[at..]
            .find(part)
            .unwrap_or_else(|| panic!("{part} is missing in {toml}"));
    }
}

#[test]
fn what_tasks_share_gets_tables() {
    let (workload, lost) = imported(
        "{ \"tasks\": { \"a\": { \"instance\": 2, \"lock\": \"m\", \
         \"wait\": { \"ref\": \"q\", \"mutex\": \"m\" }, \"unlock\": \"m\", \"barrier\": \"b\", \
         \"suspend\": \"\", \"sem_wait\": \"s\", \"memrun\": { \"type\": \"read\" } }, \
         \"b\": { \"lock\": \"m\", \"broad\": \"q\", \"sync\": { \"ref\": \"q\", \"mutex\": \
         \"m\" }, \
         \"unlock\": \"m\", \"barrier\": \"b\", \"resume\": \"a\", \"sem_post\": \"s\", \
         \"fork\": \"c\", \"yield\": \"\" }, \"c\": { \"instance\": 0, \"loop\": 1, \"run\": 1 } \
         }, \
         \"resources\": {} }",
    );
    assert_eq!(workload.locks.len(), 2);
    assert_eq!(workload.conditions.len(), 2);
    assert_eq!(
        (workload.semaphores.len(), workload.barriers[0].parties),
        (1, 3)
    );
    assert_eq!(workload.groups[2].count, 0);
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].contains("`memrun`"));
}

#[test]
fn utilisation_clamps_of_a_task_arrive_and_those_of_a_phase_are_lost() {
    let (workload, lost) = imported(
        "{ \"tasks\": { \"a\": { \"util_min\": -1, \"util_max\": 300, \"phases\": {\n\
         \"p\": { \"util_min\": 9, \"run\": 1 } } } } }",
    );
    let clamps = workload.groups[0].clamps;
    assert_eq!((clamps.min, clamps.max), (None, Some(300)));
    assert_eq!(lost, ["line 2: `util_min`: utilisation clamps of a phase"]);
}

#[test]
fn bad_configurations_are_named_with_their_place() {
    let cases = [
        (
            "{",
            "case.json:1:2: found the end; expected a name in quotes, or `}`",
        ),
        ("{ \"tasks\": {} }", "expected at least one task"),
        (
            "[]",
            "case.json:1:1: found a list; expected an rt-app configuration with `tasks`",
        ),
        (
            "{ \"tasks\": {\n\"t\": { \"run\": 1.5 } } }",
            "case.json:2:15: found 1.5; expected a whole number",
        ),
        (
            "{ \"tasks\": { \"t\": { \"run\": -1 } } }",
            "found -1; expected microseconds, 0 or more",
        ),
        (
            "{ \"tasks\": { \"t\": { \"loop\": 1 } } }",
            "expected at least one event",
        ),
        (
            "{ \"tasks\": { \"t\": { \"fork\": \"u\" } } }",
            "found \"u\"; expected the name of a task in `tasks`",
        ),
        (
            "{ \"tasks\": { \"t\": { \"policy\": \"SCHED_FAST\", \"run\": 1 } } }",
            "found \"SCHED_FAST\"; expected SCHED_OTHER",
        ),
        (
            "{ \"tasks\": { \"t\": { \"timer\": { \"ref\": \"unique\" } } } }",
            "expected a timer with a `period`",
        ),
        (
            "{ \"tasks\": { \"t\": { \"cpus\": [], \"run\": 1 } } }",
            "at least one CPU",
        ),
        (
            "{ \"tasks\": { \"t\": { \"util_min\": 1025, \"run\": 1 } } }",
            "found 1025; expected a utilisation, 0 to 1024, or -1",
        ),
        (
            "{ \"a\": 1 \"b\": 2 }",
            "case.json:1:10: found `\\\"`; expected `,` or `}`",
        ),
        ("/* no end", "expected a comment that ends"),
        (
            "{ \"tasks\": { \"t\": { \"exec\": 5, \"lock_order\": [] } } }",
            "expected the grammar of rt-app 1.0 and later",
        ),
    ];
    for (json, want) in cases {
        let message = refusal(json);
        assert!(message.contains(want), "{json}: {message}");
    }
    let deep = "[".repeat(200);
    assert!(refusal(&deep).contains("100 deep"));
}

#[test]
fn what_is_exported_is_imported_again_as_it_was() {
    let text = "[workload]\nname = \"w\"\nstop = \"duration:2s\"\n\
        [lock.m]\nhandoff = \"barge\"\n[cond.q]\n[sem.s]\n[barrier.b]\nparties = 3\n\
        [task.a]\ncount = 2\nnice = -3\ncpus = \"0,2\"\nstart = \"1ms\"\n\
        util_min = 3\nutil_max = 900\n\
        do = \"loop(inf)[ run(1ms), lock(m), wait(q, m), unlock(m), loop(5)[ run(200us), \
        timer(10ms, start, move) ], sleep(3us), barrier(b), sem_wait(s), yield ]\"\n\
        [task.b]\npolicy = \"fifo:7\"\ndo = \"run(2ms), signal(q), broadcast(q), sem_post(s), \
        barrier(b), fork(c), setaffinity(self, {1}), run(inf)\"\n\
        [task.c]\ncount = 0\ndo = \"run(9us)\"\n";
    let first = Workload::parse(text, "w.toml").unwrap();
    let exported = export(&first).unwrap_or_else(|refused| panic!("{refused:?}"));
    assert_eq!(exported.lost, [""; 0]);
    let (second, lost) = imported(&exported.json);
    assert_eq!(lost, [""; 0], "{}", exported.json);
    for (one, other) in first.groups.iter().zip(&second.groups) {
        assert_eq!(
            (
                &one.name, one.count, one.nice, one.policy, &one.cpus, &one.start
            ),
            (
                &other.name,
                other.count,
                other.nice,
                other.policy,
                &other.cpus,
                &other.start
            )
        );
        assert_eq!(one.clamps, other.clamps);
    }
    assert_eq!(second.barriers[0].parties, 3);
    assert_eq!(second.stop.after, first.stop.after);
    // Written again it is the same text: nothing was lost on the way.
    let again = export(&second).unwrap_or_else(|refused| panic!("{refused:?}"));
    let renamed = again
        .json
        .replace("mutex_", "")
        .replace("cond_", "")
        .replace("sem_s", "s");
    let renamed = renamed.replace("barrier_", "");
    let slots = |text: &str| {
        let cut = |part: &str| {
            part.trim_start_matches(|c: char| c.is_ascii_digit())
                .to_owned()
        };
        text.split("unique")
            .map(cut)
            .collect::<Vec<_>>()
            .join("unique")
    };
    assert_eq!(slots(&renamed), slots(&exported.json));
}

#[test]
fn what_has_no_counterpart_is_refused_with_its_line() {
    let cases = [
        (
            "[chan.c]\nkind = \"pipe\"\n[task.t]\ndo = \"send(c)\"\n",
            "w.toml:6: an operation",
        ),
        (
            "[task.t]\ndo = \"run(exp(1ms))\"\n",
            "w.toml:4: a drawn or computed span",
        ),
        (
            "[task.t]\ndo = \"loop(2)[ loop(3)[ loop(4)[ run(1us) ] ] ]\"\n",
            "nested loop",
        ),
        (
            "[irq.i]\nonce = true\n[task.t]\ndo = \"run(1us)\"\n",
            "w.toml:3: interrupts",
        ),
        (
            "[barrier.b]\nparties = 2\n[task.t]\ndo = \"barrier(b)\"\n",
            "barrier `b` has 2 parties, but rt-app would count 1",
        ),
        (
            "[sem.s]\nvalue = 1\n[task.t]\ndo = \"sem_wait(s)\"\n",
            "a semaphore with tokens",
        ),
    ];
    for (tables, want) in cases {
        let text = format!("[workload]\nname = \"w\"\n{tables}");
        let workload = Workload::parse(&text, "w.toml").unwrap();
        let refused = export(&workload).unwrap_err().join("; ");
        assert!(refused.contains(want), "{tables}{refused}");
    }
    let rounded = "[workload]\nname = \"w\"\n[task.t]\nkind = \"process\"\ndo = \"exec(1500ns)\"\n";
    let workload = Workload::parse(rounded, "w.toml").unwrap();
    let exported = export(&workload).unwrap();
    assert!(exported.json.contains("\"run0\": 2"), "{}", exported.json);
    assert_eq!(exported.lost.len(), 3, "{:?}", exported.lost);
}
