//! What a loader does before and after it attaches, said by the user.

use model::{SetUp, SetUpTime, Summary};
use runslice_tests::collect::Collector;
use runslice_tests::run::Run;
use sim::{Backend, Error, Options, PolicyError, Simulation};
use workload::RunSpec;

const TASK: &str = "[task.A]\ndo = \"run(5ms)\"\n";

fn spec(set: &[(&str, &str)], setup: &[(&str, &str, SetUpTime)]) -> RunSpec {
    let mut run = Run::new("setup", TASK);
    run.set = set;
    let mut spec = run.spec();
    spec.policy.setup = setup
        .iter()
        .map(|(program, args, when)| SetUp {
            program: (*program).to_owned(),
            args: (*args).to_owned(),
            when: *when,
        })
        .collect();
    spec
}

/// Runs it on both back ends, which must agree.
fn run(spec: &RunSpec) -> Result<Summary, Error> {
    let on = |backend| {
        let options = Options {
            backend,
            ..Options::default()
        };
        Simulation::new(spec)
            .with_options(options)
            .with_sink(&mut Collector::default())
            .start()
            .map(|it| it.summary)
    };
    let (interpreted, native) = (on(Backend::Interpreter), on(Backend::Jit));
    match (&interpreted, &native) {
        (Ok(one), Ok(other)) => assert_eq!(one, other),
        (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
        _ => panic!("{interpreted:?} and {native:?}"),
    }
    native
}

use SetUpTime::{Attached, Loaded};

#[test]
fn programs_run_before_and_after_attaching_in_the_order_asked_for() {
    let spec = spec(
        &[],
        &[
            ("configure", "0,10", Loaded),
            ("configure", "0,12", Attached),
            ("configure", "queue=11", Loaded),
            ("configure", "0,12", Attached),
        ],
    );
    let summary = run(&spec).unwrap();
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    let lines: Vec<_> = summary.printed.lines().collect();
    // No policy is there before: -ENODEV. Afterwards a queue can be made, once.
    assert_eq!(lines[..2], ["configure 10: -19", "configure 11: -19"]);
    assert_eq!(lines[2], "init: 2 runs, slice 0");
    let last = &lines[lines.len() - 3..];
    let expected = ["configure 12: 0", "configure 12: -17", "cgroup 1 leaves"];
    assert_eq!(last, expected);
}

#[test]
fn a_program_ends_the_policy_only_when_it_is_attached() {
    let complain = |when| run(&spec(&[], &[("configure", "complain=1", when)])).unwrap();
    let before = complain(Loaded);
    assert!(!before.exit.kind.is_error(), "{:?}", before.exit);
    let after = complain(Attached);
    assert!(after.exit.kind.is_error());
    assert_eq!(after.exit.message, "set-up complains");
}

#[test]
fn a_program_that_answers_an_error_ends_the_attempt() {
    for when in [Loaded, Attached] {
        let error = run(&spec(&[], &[("configure", "-22", when)])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "policy `setup`: set-up program `configure` failed: it returned -22"
        );
    }
    let error = run(&spec(&[], &[("wild", "0,16", Loaded)])).unwrap_err();
    assert!(
        error.to_string().contains("store of 8 bytes outside"),
        "{error}"
    );
}

#[test]
fn a_program_or_value_that_does_not_exist_is_an_error_before_the_run() {
    for (program, args, expected) in [
        ("confgure", "", "no program `confgure`"),
        ("setup_init", "", "no program `setup_init`"),
        ("configure", "1,2,0,4", "takes 3 values"),
        ("configure", "mode=1", "has no field `mode`"),
    ] {
        let Err(Error::Policy {
            source: source @ PolicyError::SetUp(_),
            ..
        }) = run(&spec(&[], &[(program, args, Loaded)]))
        else {
            panic!("{program}:{args} was accepted");
        };
        assert!(
            model::Advice::in_full(&source).contains(expected),
            "{source}"
        );
    }
}

#[test]
fn variables_are_set_inside_and_the_kernels_constants_have_names() {
    let set = [
        ("modes[1].slice_ns", "SCX_SLICE_DFL"),
        ("modes[*].cpus[0]", "-1"),
        ("modes[1].cpus[2-3]", "7"),
    ];
    let summary = run(&spec(&set, &[])).unwrap();
    let lines: Vec<_> = summary.printed.lines().collect();
    assert_eq!(lines[..2], ["init: 0 runs, slice 20000000", "cpus -1 7 7"]);
}

#[test]
fn the_flags_of_the_table_are_what_the_kernel_judges() {
    let flags = |value| {
        let summary = run(&spec(&[("setup_ops.flags", value)], &[])).unwrap();
        summary.exit.message
    };
    assert_eq!(flags("SCX_OPS_ENQ_EXITING"), "");
    assert_eq!(
        flags("SCX_OPS_ENQ_LAST|SCX_OPS_ENQ_EXITING"),
        "SCX_OPS_ENQ_LAST requires ops.enqueue() to be implemented"
    );
    let unknown = run(&spec(&[("setup_ops.flags", "0x10000000000")], &[]));
    assert!(
        matches!(
            unknown,
            Err(Error::Policy {
                source: PolicyError::Ops(_),
                ..
            })
        ),
        "{unknown:?}"
    );
}

#[test]
fn a_callback_can_be_taken_out_of_the_table() {
    let summary = run(&spec(&[("setup_ops.init", "0")], &[])).unwrap();
    assert!(!summary.printed.contains("init:"), "{}", summary.printed);
    for (name, value, words) in [
        ("setup_ops.init", "1", "takes the callback out of the table"),
        ("setup_ops.intit", "0", "it has `cgroup_init`, "),
    ] {
        let error = run(&spec(&[(name, value)], &[])).unwrap_err();
        let Error::Policy { source, .. } = error else {
            panic!("{error}");
        };
        assert!(model::Advice::in_full(&source).contains(words), "{source}");
    }
}

#[test]
fn a_walk_over_cgroups_visits_the_root_in_every_order_there_is() {
    let summary = run(&spec(&[], &[])).unwrap();
    let lines: Vec<_> = summary.printed.lines().collect();
    assert_eq!(lines[4..6], ["orders 1 1 1", "no order: -22 -22"]);
}

#[test]
fn maps_are_filled_before_the_policy_is_attached() {
    let set = [
        ("nodes[0-2]", "1"),
        ("nodes[2]", "-7"),
        ("pairs[*]", "hex:050000000600000000000000"),
    ];
    let summary = run(&spec(&set, &[])).unwrap();
    let lines: Vec<_> = summary.printed.lines().collect();
    assert_eq!(lines[2..4], ["nodes 1 -7 -100", "pair 5 6"]);
}

#[test]
fn an_entry_that_cannot_be_made_is_an_error() {
    for (name, value, expected) in [
        ("nodes", "1", "name a key"),
        ("nodes[*]", "1", "name a key"),
        ("nodes[x]", "1", "name a key"),
        ("nodes[3-2]", "1", "name a key"),
        ("nodes[0x100000000]", "1", "name a key"),
        ("nodes[0]", "0x100000000", "a value has 4 bytes"),
        ("pairs[0]", "1", "hex: and 24 digits"),
    ] {
        let Err(Error::Policy {
            source: source @ PolicyError::Entry(_),
            ..
        }) = run(&spec(&[(name, value)], &[]))
        else {
            panic!("{name}={value} was accepted");
        };
        assert!(
            model::Advice::in_full(&source).contains(expected),
            "{source}"
        );
    }
    let zeros = "hex:000000000000000000000000";
    for (name, value) in [("nodes[0-4]", "1"), ("pairs[3]", zeros)] {
        let error = run(&spec(&[(name, value)], &[])).unwrap_err();
        // E2BIG: no room, and no such element.
        assert_eq!(
            error.to_string(),
            format!("policy `setup`: map entry `{name}` failed: error -7")
        );
    }
}

#[test]
fn the_root_cgroup_comes_before_the_tasks_and_goes_before_them() {
    let summary = run(&spec(&[], &[])).unwrap();
    let lines: Vec<_> = summary.printed.lines().collect();
    let expected = [
        "cgroup 1, weight 100",
        "quota -1 of 100000 us",
        "cgroup 1 leaves",
    ];
    assert_eq!(lines[6..], expected);
    let refused = run(&spec(&[("cgroup_answer", "-12")], &[])).unwrap();
    assert_eq!(refused.exit.message, "ops.cgroup_init() failed (-12)");
    assert!(!refused.printed.contains("leaves"), "{}", refused.printed);
}
