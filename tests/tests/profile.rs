//! The profile with costs: where each cost goes, to the nanosecond, and that none is lost.

use model::{Costs, Nanos, Profile, SimTime};
use runslice_tests::collect::Collector;
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use runslice_tests::simulate;
use stats::{Conservation, Metrics};
use traces::Tee;
use workload::RunSpec;

/// `default-v0`, in nanoseconds.
fn costs() -> Costs {
    let mut costs = *Profile::DefaultV0.costs().expect("a profile with costs");
    for (key, _) in Costs::TIMES {
        *costs.time_mut(key).expect("a key of the table") /= 1_000;
    }
    costs
}

fn with_costs(mut spec: RunSpec) -> RunSpec {
    spec.machine.profile = Profile::DefaultV0;
    spec
}

/// The run under the profile with costs before any policy is attached, so that no callback's
/// instructions are part of it.
fn without_policy(run: &Run<'_>) -> Collector {
    let mut spec = with_costs(run.spec());
    spec.attach_after = run.until;
    let mut collector = Collector::default();
    sim::run(&spec, &mut collector).unwrap_or_else(|error| panic!("{error}"));
    collector
}

const MS: u64 = 1_000_000;

#[test]
fn a_switch_comes_before_the_first_instruction() {
    let run = Run {
        hz: 100,
        ..Run::new("fifo", "[task.A]\ndo = \"run(1ms)\"")
    };
    let collector = without_policy(&run);
    let end = SimTime::from_nanos(MS + costs().switch_idle);
    assert_eq!(collector.exit_of("A"), end);
}

#[test]
fn a_waker_pays_for_the_wakeup_and_the_interrupt_takes_its_way() {
    let workload = "[chan.c]\nkind = \"queue\"\n\
                    [task.B]\ncpus = \"1\"\ndo = \"recv(c), run(1ms)\"\n\
                    [task.A]\ncpus = \"0\"\ndo = \"run(1ms), send(c)\"";
    let run = Run {
        hz: 100,
        cpus: 2,
        ..Run::new("fifo", workload)
    };
    let collector = without_policy(&run);
    let costs = costs();
    // A starts, and wakes B after a millisecond of work.
    let woken = costs.switch_idle + MS;
    // B's CPU had the lock of its own run queue last, when it went idle.
    let wakeup = costs.wakeup + costs.wakeup_remote + costs.lock_transfer;
    assert_eq!(
        collector.exit_of("A"),
        SimTime::from_nanos(woken + wakeup),
        "the waker works for the wakeup"
    );
    let arrival = woken + wakeup + costs.ipi_flight;
    let woken = arrival + costs.ipi_handler + costs.idle_exit;
    // Now A's CPU had it last.
    let switched = woken + costs.lock_transfer + costs.switch_idle;
    assert_eq!(collector.exit_of("B"), SimTime::from_nanos(switched + MS));
}

#[test]
fn a_tick_steals_its_time_from_whoever_runs() {
    // Ticks at 1, 2, 3 ms; each makes the next ones no later.
    let collector = without_policy(&Run::new("fifo", "[task.A]\ndo = \"run(3500us)\""));
    let costs = costs();
    let want = costs.switch_idle + 3_500_000 + 3 * costs.tick;
    // The policy's class is not there, so ticks of the fair class reschedule a task alone.
    let kept = collector.exit_of("A").as_nanos() - want;
    assert_eq!(kept % costs.keep, 0, "{kept} ns are more than rescheduling");
    assert!(kept <= 3 * costs.keep, "{kept} ns");
}

#[test]
fn a_run_without_costs_has_no_overhead_and_one_with_costs_has() {
    let workload = "[task.t]\ncount = 3\ndo = \"loop(inf)[ run(300us), sleep(1ms) ]\"";
    let overhead = |profile: Profile| -> u64 {
        let mut spec = Run::new("mlfq", workload).spec();
        spec.machine.profile = profile;
        let mut metrics = Metrics::new();
        let summary = sim::run(&spec, &mut metrics).expect("the run can be made");
        summary.cpus.iter().map(|cpu| cpu.overhead.get()).sum()
    };
    assert_eq!(overhead(Profile::Ideal), 0);
    assert!(overhead(Profile::DefaultV0) > 0);
}

#[test]
fn time_is_conserved_in_random_runs_with_costs() {
    let (mut overhead, mut exited) = (Nanos::ZERO, 0);
    for seed in 0..400 {
        let run = RandomRun::new(seed);
        let spec = with_costs(run.spec);
        let mut conservation = Conservation::new();
        let mut metrics = Metrics::new();
        let mut tee = Tee::new(vec![&mut conservation, &mut metrics]);
        let summary = sim::run(&spec, &mut tee).unwrap_or_else(|error| panic!("{error}"));
        if let Err(violation) = conservation.check(&summary) {
            panic!("seed {seed}: {violation}");
        }
        let ran: Nanos = summary.tasks.iter().map(|task| task.run).sum();
        let given: Nanos = summary.cpus.iter().map(|cpu| cpu.run).sum();
        assert_eq!(ran, given, "seed {seed}");
        overhead += summary.cpus.iter().map(|cpu| cpu.overhead).sum();
        exited += metrics.report().all.exited;
    }
    assert!(
        overhead > Nanos::ZERO && exited > 100,
        "{overhead}, {exited} exited"
    );
}

#[test]
fn costs_are_the_same_on_each_back_end() {
    for seed in 0..12 {
        let spec = with_costs(RandomRun::new(seed).spec);
        let summary = simulate::on_both(&spec, &mut Metrics::new());
        assert!(summary.is_ok(), "seed {seed}");
    }
}
