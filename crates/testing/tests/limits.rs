//! What tests of a scheduler say of good policies, of bad ones, and of themselves.

use runslice_test::{Test, TestFailure, outcome, scheduler};

scheduler! {
    /// Keeps a limit that is wide enough.
    fn a_good_policy_passes(
        policy: "mlfq",
        machine: "4cpu-2llc-nosmt",
        limits: &["p99 wait of pointer < 5s", "mean slice > 1ns"],
        duration: "300ms",
        runs: 2,
    );

    #[should_panic(expected = "breaks a limit")]
    fn a_bad_policy_fails(
        policy: "fifo",
        limits: &["late of pointer < 1%"],
        duration: "1s",
    );
}

fn failure(test: &Test<'_>) -> Box<TestFailure> {
    outcome(test).expect_err("it breaks a limit")
}

#[test]
fn a_failure_says_limit_value_line_and_the_command() {
    let test = Test {
        policy: "fifo",
        limits: &["p99 wait of pointer < 1ms"],
        machine: "cpus=2",
        seed: Some(7),
        duration: "1s",
        ..Test::default()
    };
    let failed = failure(&test);
    assert_eq!(failed.limit.as_deref(), Some("p99 wait of pointer < 1ms"));
    assert!(failed.value.as_deref().unwrap().ends_with("ms"), "{failed}");
    let line = failed.line.as_deref().unwrap();
    assert!(
        line.contains("fifo.bpf.c:") && line.contains("(fifo_"),
        "{line}"
    );
    let again = "runslice explain fifo -w desk --cpus 2 --seed 7 --duration 1s --task pointer \
                 --worst 1";
    assert_eq!(failed.again.as_deref(), Some(again));
    let shown = failed.to_string();
    assert!(
        shown.starts_with("fifo under desk breaks a limit\n  limit: p99"),
        "{shown}"
    );
    assert!(
        shown.contains("\n  value: ") && shown.contains("\n  line:  "),
        "{shown}"
    );
}

#[test]
fn a_policy_that_is_ejected_or_starves_somebody_fails_without_a_limit() {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/policies/");
    for (file, limit) in [
        ("faulty-cpu-99.bpf.c", "no ejection"),
        ("faulty-dead-queue.bpf.c", "nobody starves"),
    ] {
        let path = format!("{sources}{file}");
        let failed = failure(&Test {
            policy: &path,
            ..Test::default()
        });
        assert!(failed.limit.as_deref().unwrap().contains(limit), "{failed}");
        assert!(failed.line.as_deref().unwrap().contains(file), "{failed}");
    }
}

#[test]
fn a_test_that_cannot_be_made_says_why_and_what_to_do() {
    let of = |test: Test<'_>| {
        let failed = failure(&test);
        assert_eq!(failed.limit, None);
        failed.to_string()
    };
    let usual = Test {
        policy: "fifo",
        duration: "100ms",
        ..Test::default()
    };
    let policy = of(Test {
        policy: "",
        ..usual
    });
    assert!(
        policy.starts_with("there is no policy\n  name one"),
        "{policy}"
    );
    let runs = of(Test { runs: 0, ..usual });
    assert!(runs.contains("give 1 or more"), "{runs}");
    let limit = of(Test {
        limits: &["fast"],
        ..usual
    });
    assert!(
        limit.starts_with("`fast` is no limit\n  write one such as"),
        "{limit}"
    );
    let group = of(Test {
        limits: &["p99 wait of nobody < 1s"],
        ..usual
    });
    assert!(group.contains("nobody"), "{group}");
    let load = of(Test {
        load: "dsk",
        ..usual
    });
    assert!(load.contains("dsk") && load.contains("desk"), "{load}");
    let machine = of(Test {
        machine: "8cpus",
        ..usual
    });
    assert!(machine.contains("`8cpus` is no machine"), "{machine}");
}
