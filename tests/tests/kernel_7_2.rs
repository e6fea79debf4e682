//! The simulated kernel 7.2: no time is lost, and what it prefers.

use model::{CpuId, EventKind, Kernel, MachineSpec, Nanos};
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use runslice_tests::two_machines::Taker;
use stats::Conservation;

#[test]
fn time_is_conserved_in_random_runs_of_7_2() {
    for seed in 0..300 {
        let mut run = RandomRun::new(seed);
        run.spec.machine.kernel = Kernel::V7_2;
        let mut conservation = Conservation::new();
        let summary = sim::run(&run.spec, &mut conservation).expect("a run");
        if let Err(violation) = conservation.check(&summary) {
            panic!("{violation}\nseed {seed}\n{}", run.text);
        }
        assert_eq!(summary.exit.fault, None, "seed {seed}\n{}", run.text);
    }
}

/// Where a task runs that wakes while its CPU and one thread of another core are busy.
fn cpu_of_sleeper(kernel: Kernel) -> CpuId {
    // Cores are CPUs 0 and 1, and 2 and 3. A, the third task, begins and sleeps on CPU 2, which H
    // then keeps busy, as G keeps CPU 0: no core is wholly idle, and CPUs 1 and 3 are. The rotor
    // begins with CPU 1.
    let tables = "[task.H]\ncpus = \"2\"\nstart = \"2ms\"\ndo = \"run(50ms)\"\n\
                  [task.G]\ncpus = \"0\"\nstart = \"2ms\"\ndo = \"run(50ms)\"\n\
                  [task.A]\ndo = \"run(1ms), sleep(9ms), run(1ms)\"\n";
    let mut spec = Run {
        cpus: 4,
        set: &[("select", "1")],
        until: Nanos::from_millis(30),
        ..Run::new("probe", tables)
    }
    .spec();
    spec.machine = MachineSpec {
        smt: 2,
        kernel,
        ..spec.machine
    };
    let mut taker = Taker::default();
    sim::run(&spec, &mut taker).expect("a run");
    let woken = |event: &&model::Event| {
        event.kind == EventKind::Wakeup && event.time.as_nanos() >= 9_000_000
    };
    let wakeup = taker.events.iter().find(woken);
    wakeup.expect("A wakes").cpu
}

#[test]
fn seven_two_prefers_the_idle_thread_of_the_previous_core() {
    assert_eq!(cpu_of_sleeper(Kernel::V6_18), CpuId(1));
    assert_eq!(cpu_of_sleeper(Kernel::V7_2), CpuId(3));
}

/// Kernels up to 7.0 have no limit: nothing of it is a pick, and each callback is short, but no
/// time passes, and a kernel would be at it for ever.
#[test]
fn a_policy_that_always_has_tasks_offered_again_is_ended() {
    let exit = ended_on(Kernel::V7_0);
    assert_eq!(
        exit.message, "the machine is busy with scheduling alone",
        "{exit:?}"
    );
    let fault = exit.fault.unwrap_or_default();
    assert!(fault.contains("at 0.000000000 s"), "{fault}");
    let exit = ended_on(Kernel::V7_2);
    let message = "SCX_ENQ_REENQ on SCX_DSQ_LOCAL repeated 257 times";
    assert_eq!(exit.message, message, "{exit:?}");
}

fn ended_on(kernel: Kernel) -> model::Exit {
    let mut spec = Run {
        cpus: 1,
        until: Nanos::from_millis(10),
        ..Run::new("reenqueues", "[task.two]\ncount = 2\ndo = \"run(1ms)\"\n")
    }
    .spec();
    spec.machine.kernel = kernel;
    sim::run(&spec, &mut Taker::default()).expect("a run").exit
}
