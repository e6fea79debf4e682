//! What policies find where they look at the kernel's memory themselves.

use runslice_tests::collect::Collector;
use runslice_tests::run::Run;
use runslice_tests::simulate::on_both;
use sim::{Backend, Options, Simulation};

/// What tests/policies/memory.bpf.c prints on so many CPUs, with one task.
fn printed(cpus: u16) -> Vec<String> {
    let run = Run {
        cpus,
        ..Run::new("memory", "[task.t]\ncpus = \"0\"\ndo = \"run(1ms)\"\n")
    };
    let summary = on_both(&run.spec(), &mut Collector::default());
    let summary = summary.unwrap_or_else(|error| panic!("{error}"));
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    summary.printed.lines().map(str::to_owned).collect()
}

#[test]
fn a_mask_is_filled_from_words_that_hold_every_cpu() {
    // 8 CPUs are in one word: bits 0 and 2 of it, nothing beyond the last CPU.
    let lines = printed(8);
    assert_eq!(lines[..2], ["populate -13 0 0", "has 2, first 0"]);
    assert_eq!(lines[2], "bits 0 1 0");
    // 66 CPUs are in two: 0, 2 and 63, and of the second word its two lowest bits.
    let lines = printed(66);
    assert_eq!(lines[..2], ["populate -13 -13 0", "has 5, first 0"]);
    assert_eq!(lines[2], "bits 0 1 1");
}

/// Source: `__normal_prio()`, kernel 6.18, `kernel/sched/core.c`: -1 for a deadline task, 99 less
/// the priority of a real-time task, 120 and the nice value for others.
#[test]
fn each_class_has_the_priorities_of_the_kernel() {
    let workload = "[task.n]\nnice = 5\ndo = \"run(1ms)\"\n\
                    [task.b]\npolicy = \"batch\"\nnice = -3\ndo = \"run(1ms)\"\n\
                    [task.i]\npolicy = \"idle\"\ndo = \"run(1ms)\"\n\
                    [task.f]\npolicy = \"fifo:7\"\ndo = \"run(1ms)\"\n\
                    [task.r]\npolicy = \"rr:99\"\ndo = \"run(1ms)\"\n\
                    [task.d]\npolicy = \"deadline:1ms/2ms/3ms\"\ndo = \"run(1us)\"\n";
    let run = Run::new("prios", workload);
    let summary = on_both(&run.spec(), &mut Collector::default());
    let summary = summary.unwrap_or_else(|error| panic!("{error}"));
    let lines: Vec<&str> = summary.printed.lines().collect();
    assert_eq!(
        lines,
        [
            "class 0, prio 125, static 125",
            "class 3, prio 117, static 117",
            "class 5, prio 120, static 120",
            "class 1, prio 92, static 120",
            "class 2, prio 0, static 120",
            "class 6, prio -1, static 120",
        ]
    );
}

#[test]
fn run_queues_are_found_by_the_variables_address() {
    let lines = printed(2);
    assert_eq!(
        lines[3..6],
        [
            "cpu 0: own 0, other 1",
            "same 1 1, beyond 0",
            // `__schedule()` of 6.18 sets `rq->curr` after `ops.running()`.
            "runs 0, there 0"
        ]
    );
}

/// What tests/policies/embedded.bpf.c leaves on 66 CPUs, with a knob set.
fn embedded(set: &[(&str, &str)]) -> model::Summary {
    let run = Run {
        cpus: 66,
        set,
        ..Run::new("embedded", "[task.t]\ndo = \"run(1ms)\"\n")
    };
    let summary = on_both(&run.spec(), &mut Collector::default());
    summary.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_mask_inside_a_map_value_or_a_variable_is_a_mask() {
    let summary = embedded(&[]);
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    let lines: Vec<&str> = summary.printed.lines().collect();
    let expected = [
        // CPU 65 was set before, and is what both masks have: 2 was taken out of the other.
        "again 1, both 1",
        "has 1, first 65, all 65",
        "has 65 now",
        "around 1 1",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_mask_that_nobody_created_cannot_be_released() {
    let summary = embedded(&[("release_it", "1")]);
    let message = &summary.exit.message;
    assert!(message.contains("is no `struct bpf_cpumask`"), "{message}");
}

/// How a policy ends that may take 8 MiB, on both back ends.
fn ends_at_the_limit(policy: &'static str, set: &[(&str, &str)], line: &str) {
    let run = Run {
        set,
        ..Run::new(policy, "[task.t]\ndo = \"run(1ms)\"\n")
    };
    let exits = [Backend::Interpreter, Backend::Jit].map(|backend| {
        let options = Options {
            backend,
            memory_bytes: Some(8 << 20),
            ..Options::default()
        };
        let summary = Simulation::new(&run.spec())
            .with_options(options)
            .with_sink(&mut Collector::default())
            .start()
            .map(|it| it.summary);
        summary.unwrap_or_else(|error| panic!("{error}")).exit
    });
    assert_eq!(exits[0], exits[1]);
    let message = "out of memory: the object may use 8388608 bytes";
    assert_eq!(exits[0].message, message);
    let fault = exits[0].fault.as_deref().unwrap_or_default();
    assert!(fault.contains(line), "{fault}");
}

#[test]
fn masks_without_end_end_the_policy_at_the_limit_of_memory() {
    ends_at_the_limit("hoarder", &[], "hoarder.bpf.c:21");
}

#[test]
fn queues_without_end_end_the_policy_at_the_limit_of_memory() {
    ends_at_the_limit("queuer", &[], "queuer.bpf.c:16");
    // The machine keeps what was destroyed.
    ends_at_the_limit("queuer", &[("destroys", "1")], "queuer.bpf.c:16");
}
