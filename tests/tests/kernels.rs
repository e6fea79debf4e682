//! What only some of the simulated kernels do.

use model::{Kernel, Nanos, Op, Summary};
use runslice_tests::collect::Collector;
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use stats::Conservation;
use traces::TraceHash;

/// Tasks that wait for each other, move and compute.
const LOAD: &str = "\
    [task.hog]\ncount = 3\ndo = \"run(60ms)\"\n\
    [task.shell]\ncount = 2\ndo = \"loop(20)[ run(300us), sleep(900us) ]\"\n\
    [task.bound]\ncpus = \"1\"\ndo = \"loop(9)[ run(1ms), sleep(2ms) ]\"\n";

/// Tasks of several sorts, on two CPUs.
const MIX: &str = "\
    [task.hog]\ncount = 3\ndo = \"run(inf)\"\n\
    [task.shell]\ndo = \"loop(inf)[ run(exp(2ms)), sleep(exp(20ms)) ]\"\n\
    [task.make]\nkind = \"process\"\ndo = \"loop(inf)[ pool(cc, 2, 6) ]\"\n\
    [task.cc]\nkind = \"process\"\ndo = \"run(exp(8ms)), sleep(1ms), run(exp(8ms))\"\n\
    [task.mover]\ndo = \"loop(inf)[ setnice(self, 5), run(1ms), setaffinity(self, {1}), \
    sleep(3ms), setnice(self, 0), setaffinity(self, all), yield ]\"\n";

#[test]
fn every_shipped_policy_runs_on_every_kernel_that_has_its_functions() {
    for kernel in Kernel::ALL {
        for policy in policies::ALL {
            let mut spec = Run {
                cpus: 2,
                hz: 250,
                until: Nanos::from_millis(400),
                ..Run::new(policy.name, MIX)
            }
            .spec();
            spec.machine.kernel = kernel;
            let mut collector = Collector::default();
            let run = sim::run(&spec, &mut collector);
            let what = format!("{} on {}", policy.name, kernel.name());
            if kernel == Kernel::V6_12 {
                assert!(is_refused(&run), "{what}: {run:?}");
                continue;
            }
            let summary = run.expect("a run");
            assert!(!summary.exit.kind.is_error(), "{what}: {:?}", summary.exit);
            assert!(collector.switches.len() > 20, "{what}");
        }
    }
}

/// Whether 6.12 lacks a function or a flag that the policy needs.
fn is_refused(run: &Result<Summary, sim::Error>) -> bool {
    match run {
        Ok(summary) => {
            let lacks = "the target kernel 6.12 lacks";
            summary.exit.message.contains(lacks)
        }
        Err(error) => matches!(error, sim::Error::Policy { .. }),
    }
}

/// The hash of the events, or why the kernel does not take the policy.
fn hash(policy: &str, kernel: Kernel) -> Result<u64, String> {
    let mut spec = Run {
        cpus: 2,
        hz: 250,
        until: Nanos::from_millis(150),
        ..Run::new(policy, LOAD)
    }
    .spec();
    spec.machine.kernel = kernel;
    let mut hash = TraceHash::new();
    match sim::run(&spec, &mut hash) {
        Ok(summary) if summary.exit.message.is_empty() => {
            assert!(hash.count() > 200, "{policy} on {}", kernel.name());
            Ok(hash.value())
        }
        Ok(summary) => Err(format!("{:?}", summary.exit)),
        Err(error) => Err(format!("{error:?}")),
    }
}

#[test]
fn an_object_made_for_6_12_runs_where_its_functions_are_and_does_the_same() {
    for kernel in Kernel::ALL {
        let [old, new] = ["names-6-12", "names-6-13"].map(|policy| hash(policy, kernel));
        match kernel {
            Kernel::V6_12 => {
                old.expect("made for it");
                let why = new.unwrap_err();
                assert!(why.contains("lacks the function `scx_bpf_dsq_"), "{why}");
            }
            Kernel::V6_16 => assert_eq!(old.expect("both names"), new.expect("both names")),
            _ => {
                new.expect("the names of today");
                let why = old.unwrap_err();
                let lacks = ["scx_bpf_dispatch", "scx_bpf_consume"];
                let named = lacks
                    .iter()
                    .any(|name| why.contains(&format!("function `{name}")));
                assert!(named, "{}: {why}", kernel.name());
            }
        }
    }
}

#[test]
fn time_is_conserved_in_random_runs_of_every_kernel() {
    for kernel in Kernel::ALL {
        for seed in 0..40 {
            let mut run = RandomRun::new(seed);
            run.spec.machine.kernel = kernel;
            let mut conservation = Conservation::new();
            let made = sim::run(&run.spec, &mut conservation);
            // These policies are not made for 6.12: some are refused, some end at a first call.
            if kernel == Kernel::V6_12 && made.is_err() {
                assert!(is_refused(&made), "{made:?}");
                continue;
            }
            let summary = made.expect("a run");
            if let Err(violation) = conservation.check(&summary) {
                panic!("{violation}\n{}, seed {seed}\n{}", kernel.name(), run.text);
            }
            if kernel > Kernel::V6_12 {
                assert_eq!(summary.exit.fault, None, "seed {seed}\n{}", run.text);
            }
        }
    }
}

/// The callbacks of a run of the probe.
fn calls(kernel: Kernel, policy: &str, set: &[(&str, &str)], tables: &str) -> Collector {
    let mut spec = Run {
        set,
        until: Nanos::from_millis(100),
        ..Run::new(policy, tables)
    }
    .spec();
    spec.machine.kernel = kernel;
    let mut collector = Collector::default();
    sim::run(&spec, &mut collector).expect("a run");
    collector
}

/// The callbacks of the task called A behind the one in which it takes its leave, in order.
fn leave(kernel: Kernel) -> Vec<Op> {
    let tables = "[task.A]\ndo = \"run(2ms), setpolicy(self, fifo:50), run(1ms)\"\n";
    let calls = calls(kernel, "probe", &[], tables).calls;
    let of_a = calls.iter().filter(|call| call.task.name() == Some("A"));
    let told = [Op::SetWeight, Op::Disable];
    let mut ops: Vec<Op> = of_a.map(|call| call.op).collect();
    let begin = ops
        .iter()
        .position(|op| *op == Op::Quiescent)
        .expect("A leaves");
    ops.drain(..begin);
    ops.retain(|op| told.contains(op));
    ops
}

#[test]
fn a_task_that_leaves_is_weighed_before_behind_or_not_at_all() {
    for kernel in [Kernel::V6_17, Kernel::V6_18] {
        assert_eq!(
            leave(kernel),
            [Op::SetWeight, Op::Disable],
            "{}",
            kernel.name()
        );
    }
    for kernel in [Kernel::V6_19, Kernel::V7_0] {
        assert_eq!(
            leave(kernel),
            [Op::Disable, Op::SetWeight],
            "{}",
            kernel.name()
        );
    }
    for kernel in [Kernel::V7_1, Kernel::V7_2, Kernel::V7_3] {
        assert_eq!(leave(kernel), [Op::Disable], "{}", kernel.name());
    }
}

/// Who is inserted while it waits in a queue already keeps its place, and has the slice of that
/// insert or not: vector 36.
#[test]
fn a_slice_comes_with_the_call_or_since_7_3_with_the_insert() {
    let tables = "[task.A]\ncount = 2\ndo = \"run(80ms)\"\n";
    let slices = |kernel: Kernel| {
        let calls = calls(kernel, "probe", &[("walk", "2")], tables).calls;
        let begins = calls.iter().filter(|call| call.op == Op::Running);
        begins.map(|call| call.a).collect::<Vec<_>>()
    };
    assert!(slices(Kernel::V7_2).contains(&7_000_000));
    let later = slices(Kernel::V7_3);
    assert!(
        !later.is_empty() && !later.contains(&7_000_000),
        "{later:?}"
    );
}

/// What the policy `differs` printed, and for how long the one task ran.
fn answers(kernel: Kernel, cpus: u16, tables: &str) -> (String, Nanos) {
    let mut spec = Run {
        cpus,
        hz: 250,
        until: Nanos::from_millis(100),
        ..Run::new("differs", tables)
    }
    .spec();
    spec.machine.kernel = kernel;
    let summary = sim::run(&spec, &mut Collector::default()).expect("a run");
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    (summary.printed, summary.tasks[0].run)
}

#[test]
fn a_cpu_enters_the_mask_of_idle_ones_before_the_policy_hears_of_it_but_on_6_12() {
    for kernel in Kernel::ALL {
        let (printed, _) = answers(
            kernel,
            1,
            "[task.A]\ndo = \"loop(3)[ run(1ms), sleep(1ms) ]\"\n",
        );
        let expected = match kernel {
            Kernel::V6_12 => ["idle 1 0", "idle 0 1"],
            _ => ["idle 1 1", "idle 0 0"],
        };
        let told = expected.map(|line| printed.matches(line).count());
        assert!(
            told.iter().all(|&count| count >= 2),
            "{}: {printed}",
            kernel.name()
        );
        assert_eq!(
            printed.lines().filter(|it| it.starts_with("idle")).count(),
            told[0] + told[1]
        );
    }
}

#[test]
fn the_last_task_goes_on_in_the_local_queue_on_6_12_and_since_7_3() {
    for kernel in Kernel::ALL {
        let (_, ran) = answers(kernel, 1, "[task.A]\ndo = \"run(inf)\"\n");
        let goes_on = matches!(kernel, Kernel::V6_12 | Kernel::V7_3);
        let expected = Nanos::from_millis(if goes_on { 100 } else { 4 });
        assert_eq!(ran, expected, "{}", kernel.name());
    }
}

#[test]
fn since_7_3_a_bound_task_is_given_its_own_cpu_whatever_cpu_is_named() {
    let tables = "[task.A]\ncpus = \"1\"\ndo = \"loop(3)[ run(1ms), sleep(1ms) ]\"\n";
    for kernel in Kernel::ALL {
        let (printed, _) = answers(kernel, 2, tables);
        let lines: Vec<&str> = printed
            .lines()
            .filter(|it| it.starts_with("chosen"))
            .collect();
        let expected = match kernel {
            Kernel::V6_12 => None,
            Kernel::V7_3 => Some("chosen 1 1"),
            _ => Some("chosen 0 0"),
        };
        assert_eq!(
            lines.last().copied(),
            expected,
            "{}: {printed}",
            kernel.name()
        );
    }
}
