//! A policy that misuses the kernel's interface ends with the kernel's kind and message.

use model::{Advice as _, Nanos, Summary};
use runslice_tests::collect::Collector;
use runslice_tests::run::Run;
use runslice_tests::simulate;
use workload::RunSpec;

/// One pinned task that wakes at 180 ms.
const ONE: &str = r#"
[task.A]
cpus = "1"
start = "180ms"
do = "run(50ms)"
"#;

/// Three tasks on one CPU: two wait while one runs.
const THREE: &str = r#"
[task.H]
cpus = "1"
do = "run(50ms)"
[task.B]
cpus = "1"
start = "1ms"
do = "run(50ms)"
[task.C]
cpus = "1"
start = "2ms"
do = "run(50ms)"
"#;

/// W wakes A, which may run anywhere, at 5 ms.
const WAKE: &str = r#"
[task.W]
cpus = "0"
do = "run(5ms), resume(A), run(20ms)"
[task.A]
cpus = "1"
do = "setaffinity(self, all), suspend, run(5ms)"
"#;

/// A forks at 1 ms.
const FORK: &str = r#"
[task.A]
cpus = "1"
do = "run(1ms), fork(C), run(1ms)"
[task.C]
cpus = "1"
do = "run(1ms)"
"#;

/// What a policy does wrong (`misuse_case` of `policies/misuse.bpf.c`, or another policy with a
/// variable), when it runs, and how the kernel ends it. `#` stands for a pid.
struct Misuse {
    policy: &'static str,
    set: &'static str,
    workload: &'static str,
    exit: (u32, i64, u64, &'static str),
}

const fn case(
    set: &'static str,
    workload: &'static str,
    time_ms: u64,
    message: &'static str,
) -> Misuse {
    Misuse {
        policy: "misuse",
        set,
        workload,
        exit: (1024, 0, time_ms, message),
    }
}

const fn tolerated(set: &'static str, workload: &'static str) -> Misuse {
    Misuse {
        policy: "misuse",
        set,
        workload,
        exit: (64, 0, 2000, ""),
    }
}

const MISUSES: &[Misuse] = &[
    // ---- Inserts ----
    case(
        "misuse_case=1",
        ONE,
        180,
        "non-existent DSQ 0xdead for A[#]",
    ),
    case(
        "misuse_case=2",
        ONE,
        180,
        "invalid CPU 4000 in SCX_DSQ_LOCAL_ON dispatch verdict",
    ),
    case("misuse_case=3", WAKE, 5, "A[#] already direct-dispatched"),
    case(
        "misuse_case=4",
        WAKE,
        5,
        "scheduling for A[#] but trying to direct-dispatch W[#]",
    ),
    case(
        "misuse_case=5",
        ONE,
        180,
        "cannot use vtime ordering for built-in DSQs",
    ),
    // The first task that waits fixes the kind of the queue, the second does not fit.
    case(
        "misuse_case=6",
        THREE,
        2,
        "DSQ ID 0x0000000000000000 already had FIFO-enqueued tasks",
    ),
    case(
        "misuse_case=7",
        THREE,
        2,
        "DSQ ID 0x0000000000000000 already had PRIQ-enqueued tasks",
    ),
    case(
        "misuse_case=8",
        ONE,
        180,
        "SCX_DSQ_LOCAL[_ON] target CPU 0 not allowed for A[#]",
    ),
    case(
        "misuse_case=9",
        ONE,
        180,
        "invalid enq_flags 0x200000000000009",
    ),
    case("misuse_case=10", ONE, 180, "called with NULL task"),
    // ---- Bad arguments, wrong places ----
    case(
        "misuse_case=20",
        WAKE,
        5,
        "invalid CPU 9999 from ops.select_cpu()",
    ),
    case("misuse_case=21", ONE, 180, "invalid CPU 777"),
    case(
        "misuse_case=22",
        ONE,
        180,
        "PREEMPT/WAIT cannot be used with SCX_KICK_IDLE",
    ),
    case("misuse_case=23", ONE, 180, "dispatch buffer overflow"),
    case("misuse_case=24", ONE, 0, "dispatch buffer underflow"),
    case(
        "misuse_case=25",
        ONE,
        0,
        "invalid DSQ ID 0x000000000000beef",
    ),
    case(
        "misuse_case=26",
        ONE,
        180,
        "kfunc with mask 0x2 called from an operation only allowing 0x4",
    ),
    case(
        "misuse_case=27",
        ONE,
        180,
        "kfunc with mask 0x1 called from an operation only allowing 0x4",
    ),
    case(
        "misuse_case=28",
        WAKE,
        5,
        "called on a task not being operated on",
    ),
    case(
        "misuse_case=29",
        ONE,
        180,
        "Invalid cpuperf target 2000 for CPU 0",
    ),
    case("misuse_case=30", ONE, 180, "Invalid target CPU 0"),
    case(
        "misuse_case=31",
        ONE,
        180,
        "attempting to destroy in-use dsq 0x0000000000000000 (nr=1)",
    ),
    case(
        "misuse_case=32",
        ONE,
        180,
        "per-node idle tracking is disabled",
    ),
    case(
        "misuse_case=33",
        ONE,
        0,
        "accessing rq without holding rq lock",
    ),
    case(
        "misuse_case=34",
        ONE,
        180,
        "scx_bpf_dump() must only be called from ops.dump() and friends",
    ),
    Misuse {
        policy: "probe-untracked",
        set: "select=1",
        workload: WAKE,
        exit: (1024, 0, 5, "built-in idle tracking is disabled"),
    },
    // ---- Answers ----
    case("misuse_case=40", ONE, 0, "ops.init() failed (-22)"),
    case(
        "misuse_case=41",
        ONE,
        0,
        "ops.init() returned an invalid errno 5",
    ),
    case(
        "misuse_case=42",
        ONE,
        0,
        "ops.init_task() failed (-12) for A[#]",
    ),
    // At a fork the child still has its parent's name.
    case(
        "misuse_case=44",
        FORK,
        1,
        "ops.init_task() set task->scx.disallow for A[#] during fork",
    ),
    case("misuse_case=45", ONE, 0, "ops.init() failed (-17)"),
    case("misuse_case=46", ONE, 0, "ops.init() failed (-22)"),
    // ---- The policy ends itself ----
    Misuse {
        policy: "misuse",
        set: "misuse_case=50",
        workload: ONE,
        exit: (1025, 0, 180, "boom"),
    },
    Misuse {
        policy: "misuse",
        set: "misuse_case=51",
        workload: ONE,
        exit: (65, 5, 180, "boom"),
    },
    // ---- Never ----
    Misuse {
        policy: "misuse",
        set: "misuse_case=60",
        workload: ONE,
        exit: (1026, 0, 1500, "A[#] failed to run for 1.320s"),
    },
    // ---- No error, in any kernel ----
    tolerated("misuse_case=0", WAKE),
    tolerated("misuse_case=43", FORK),
    tolerated("misuse_case=80", WAKE),
    tolerated("misuse_case=81", THREE),
    tolerated("misuse_case=82", WAKE),
    tolerated("misuse_case=83", WAKE),
];

fn spec(policy: &str, set: &str, workload: &str) -> RunSpec {
    // The sleeper keeps the run going when all work is done.
    let tables =
        format!("{workload}\n[task.Z]\ncpus = \"0\"\nstart = \"1s\"\ndo = \"sleep(10s)\"\n");
    let knob = [set.split_once('=').expect("knob=value")];
    let until = Nanos::from_secs(2);
    Run {
        set: &knob,
        cpus: 2,
        hz: 250,
        until,
        ..Run::new(policy, &tables)
    }
    .spec()
}

/// Kind, code, milliseconds and message of the exit, with `#` for every pid.
fn exit_of(summary: &Summary) -> (u32, i64, u64, String) {
    let exit = &summary.exit;
    let mut message = String::new();
    let mut rest = exit.message.as_str();
    while let Some((before, after)) = rest.split_once('[') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        message += before;
        message += if digits > 0 { "[#" } else { "[" };
        rest = &after[digits..];
    }
    message += rest;
    (
        exit.kind as u32,
        exit.code,
        exit.time.as_nanos() / 1_000_000,
        message,
    )
}

#[test]
fn every_misuse_ends_with_the_kernel_s_kind_code_time_and_message() {
    let mut failures = String::new();
    for Misuse {
        policy,
        set,
        workload,
        exit,
    } in MISUSES
    {
        let want = (exit.0, exit.1, exit.2, exit.3.to_owned());
        let spec = spec(policy, set, workload);
        match simulate::on_both(&spec, &mut Collector::default()) {
            Ok(summary) if exit_of(&summary) == want && summary.exit.fault.is_none() => {}
            Ok(summary) => {
                let (got, fault) = (exit_of(&summary), &summary.exit.fault);
                failures +=
                    &format!("{policy} {set}:\n  want {want:?}\n  got  {got:?} {fault:?}\n");
            }
            Err(error) => failures += &format!("{policy} {set}: {error}\n"),
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Source: `scx_kf_allowed()`, kernel 6.18.
#[test]
fn a_function_of_an_outer_callback_is_refused_within_an_inner_one() {
    let real_time = "[task.A]\ncpus = \"0\"\ndo = \"run(50ms)\"\n\
                     [task.B]\ncpus = \"0\"\nstart = \"1ms\"\ndo = \"run(50ms)\"\n\
                     [task.R]\ncpus = \"0\"\npolicy = \"fifo:50\"\nstart = \"7ms\"\n\
                     do = \"run(1ms)\"\n";
    let mut spec = spec("nested", "x=0", real_time);
    spec.policy.set.clear();
    let summary = simulate::on_both(&spec, &mut Collector::default()).expect("a run");
    let message = "cpu_release kfunc called from a nested operation".to_owned();
    assert_eq!(exit_of(&summary), (1024, 0, 7, message));
}

/// What only a machine without a verifier gets to see ends the run with the place of the fault.
#[test]
fn what_a_verifier_would_refuse_ends_with_program_and_instruction() {
    for case in [70, 71, 72] {
        let spec = spec("misuse", &format!("misuse_case={case}"), ONE);
        let summary = simulate::on_both(&spec, &mut Collector::default()).expect("a run");
        assert_eq!(summary.exit.kind as u32, 1024, "case {case}");
        let fault = summary.exit.fault.unwrap_or_default();
        assert!(fault.contains("misuse_enqueue"), "case {case}: {fault:?}");
        assert_eq!(summary.exit.time.as_nanos(), 180_000_000, "case {case}");
    }
}

/// The error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[test]
fn a_table_that_a_kernel_does_not_attach_is_refused_with_its_errno() {
    let refusals = [
        ("refused-flags", "EINVAL"),
        ("refused-name", "EINVAL"),
        ("refused-timeout", "E2BIG"),
        ("refused-batch", "E2BIG"),
        ("refused-sleepable", "EINVAL"),
        (
            "refused-last",
            "SCX_OPS_ENQ_LAST requires ops.enqueue() to be implemented",
        ),
    ];
    for (policy, why) in refusals {
        let mut spec = spec(policy, "x=0", ONE);
        spec.policy.set.clear();
        let told = match simulate::on_both(&spec, &mut Collector::default()) {
            Ok(summary) => summary.exit.message,
            Err(error) => format!("{}; {}", chain(&error), error.advice().unwrap_or_default()),
        };
        assert!(told.contains(why), "{policy}: {told:?}");
    }
}

/// Schedulers of the time before sched_ext let tasks wait for as long as they liked.
#[test]
fn without_a_watchdog_nobody_is_ejected_for_a_wait() {
    let mut spec = spec("misuse", "misuse_case=60", ONE);
    spec.duration = Some(Nanos::from_secs(10));
    let with = simulate::on_both(&spec, &mut Collector::default()).expect("a run");
    assert_eq!(with.exit.kind as u32, 1026, "{:?}", with.exit);
    spec.machine.no_watchdog = true;
    let without = simulate::on_both(&spec, &mut Collector::default()).expect("a run");
    assert!((without.exit.kind as u32) < 1024, "{:?}", without.exit);
    assert_eq!(without.end.as_nanos(), 10_000_000_000);
}
