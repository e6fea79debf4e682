//! `SCX_ENQ_IMMED` of kernels 7.1 to 7.3: a task runs at once where it is put, or comes back.

use model::{EventKind, ExitKind, Kernel, Nanos, Summary};
use runslice_tests::run::Run;
use runslice_tests::two_machines::Taker;

const KERNELS: [Kernel; 3] = [Kernel::V7_1, Kernel::V7_2, Kernel::V7_3];

/// Tasks for one CPU, which a real-time task takes now and then.
fn load(tasks: u32) -> String {
    format!(
        "[task.t]\ncount = {tasks}\ncpus = \"0\"\ndo = \"loop(inf)[ run(3ms), sleep(1ms) ]\"\n\
    [task.urgent]\npolicy = \"fifo:10\"\ncpus = \"0\"\n\
    do = \"loop(inf)[ sleep(6ms), run(1ms) ]\"\n"
    )
}

fn run_on(kernel: Kernel, policy: &str, tasks: u32, set: &[(&str, &str)]) -> (Taker, Summary) {
    let mut spec = Run {
        cpus: 2,
        until: Nanos::from_millis(200),
        set,
        ..Run::new(policy, &load(tasks))
    }
    .spec();
    spec.machine.kernel = kernel;
    let mut taker = Taker::default();
    let summary = sim::run(&spec, &mut taker).expect("a run");
    (taker, summary)
}

fn counted(summary: &Summary, name: &str) -> u64 {
    let mut counters = summary.counters.iter();
    counters
        .find(|(counter, _)| *counter == name)
        .map_or(0, |(_, count)| *count)
}

#[test]
fn a_task_that_cannot_run_at_once_comes_back_with_the_reason() {
    for kernel in KERNELS {
        for policy in ["immed", "immed-always"] {
            let (taker, summary) = run_on(kernel, policy, 3, &[]);
            assert_eq!(
                summary.exit.kind,
                ExitKind::Unreg,
                "{kernel:?}: {:?}",
                summary.exit
            );
            let back = counted(&summary, "SCX_EV_REENQ_IMMED");
            assert!(back > 10, "{kernel:?} {policy}: {back}");
            let ran = taker
                .events
                .iter()
                .filter(|it| it.kind == EventKind::Switch)
                .count();
            assert!(ran > 100, "{kernel:?} {policy}: {ran} turns");
        }
    }
}

#[test]
fn a_task_that_a_higher_class_preempts_comes_back_instead_of_waiting_in_front() {
    for kernel in KERNELS {
        let (_, summary) = run_on(kernel, "immed", 1, &[("ends_at_preemption", "1")]);
        assert_eq!(summary.exit.message, "preempted", "{kernel:?}");
    }
}

#[test]
fn a_task_that_is_put_back_again_and_again_ends_the_policy() {
    let said = |kernel| {
        let exit = run_on(kernel, "immed", 3, &[("insists", "1")]).1.exit;
        (exit.kind, exit.message)
    };
    for kernel in [Kernel::V7_1, Kernel::V7_2] {
        let message = "SCX_ENQ_REENQ on SCX_DSQ_LOCAL repeated 257 times";
        assert_eq!(
            said(kernel),
            (ExitKind::Error, message.to_owned()),
            "{kernel:?}"
        );
    }
    let (kind, message) = said(Kernel::V7_3);
    assert_eq!(kind, ExitKind::ErrorReenq);
    assert!(
        message.ends_with("] reenqueued 257 times without running"),
        "{message}"
    );
}

#[test]
fn only_local_queues_take_such_inserts() {
    for kernel in KERNELS {
        let (_, summary) = run_on(kernel, "immed", 3, &[("misuses", "1")]);
        let message = "SCX_ENQ_IMMED on a non-local DSQ 0x0";
        assert_eq!(summary.exit.message, message, "{kernel:?}");
    }
}

#[test]
fn older_kernels_know_neither_the_flag_of_inserts_nor_that_of_the_table() {
    let (_, summary) = run_on(Kernel::V6_18, "immed", 3, &[]);
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    assert_eq!(counted(&summary, "SCX_EV_REENQ_IMMED"), 0);
}

#[test]
fn tasks_of_a_policys_queue_are_offered_again() {
    for kernel in KERNELS {
        let (taker, summary) = run_on(kernel, "reoffers", 3, &[]);
        let kind = summary.exit.kind;
        assert_eq!(kind, ExitKind::Unreg, "{kernel:?}: {:?}", summary.exit);
        let switches = |it: &&model::Event| it.kind == EventKind::Switch;
        let turns = taker.events.iter().filter(switches).count();
        assert!(turns > 100, "{kernel:?}: {turns} turns");
    }
}

#[test]
fn only_queues_that_are_there_are_gone_through_again() {
    for (set, message) in [
        (("queue", "77"), "non-existent DSQ 0x4d"),
        (
            ("queue", "0x8000000000000001"),
            "DSQ 0x8000000000000001 not allowed for reenq",
        ),
        (("flags", "2"), "invalid SCX_REENQ flags 0x2"),
    ] {
        let exit = run_on(Kernel::V7_3, "reoffers", 3, &[set]).1.exit;
        assert_eq!(exit.message, message);
    }
}

#[test]
fn a_policy_that_never_takes_what_is_offered_ends() {
    for kernel in KERNELS {
        let exit = run_on(kernel, "reoffers", 3, &[("insists", "1")]).1.exit;
        assert!(exit.kind.is_error(), "{kernel:?}: {exit:?}");
        let counts = exit
            .message
            .ends_with("] reenqueued 257 times without running");
        assert!(counts || kernel < Kernel::V7_3, "{}", exit.message);
    }
}
