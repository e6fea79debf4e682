//! Machines whose CPUs differ: capacities, and threads that share a core.

use std::sync::Arc;

use model::{Hardware, HardwareUse, MachineSpec, Nanos, SmtShare, Summary};
use runslice_tests::collect::Collector;
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use traces::TraceHash;
use workload::{RunSpec, Workload};

/// A run of a whole workload without a policy attached.
fn bare(tables: &str) -> (Collector, Summary) {
    let text = format!("[workload]\nname = \"test\"\n{tables}");
    let workload = Workload::parse(&text, "test").unwrap_or_else(|error| panic!("{error}"));
    let spec = RunSpec {
        machine: workload.machine.clone(),
        workload: Arc::new(workload),
        attach_after: Nanos::from_secs(100),
        ..Run::new("fifo", "[task.t]\ndo = \"run(1ms)\"").spec()
    };
    simulated(&spec)
}

fn simulated(spec: &RunSpec) -> (Collector, Summary) {
    let mut collector = Collector::default();
    let summary = sim::run(spec, &mut collector).unwrap_or_else(|error| panic!("{error}"));
    (collector, summary)
}

fn work(summary: &Summary) -> Vec<u64> {
    let hardware = summary.hardware.as_ref().expect("CPUs differ");
    hardware
        .groups
        .iter()
        .map(|(_, it)| it.work.get())
        .collect()
}

#[test]
fn work_takes_longer_on_a_smaller_cpu() {
    let ends = |capacity: u16, work: &str| {
        let (collector, _) = bare(&format!(
            "[machine]\ncpus = 2\ncapacity = [{capacity}, 1024]\n\
             [task.A]\ncpus = \"0\"\ndo = \"run({work})\"\n"
        ));
        collector.exit_of("A").as_nanos()
    };
    assert_eq!(ends(512, "3ms"), 6_000_000);
    assert_eq!(ends(160, "1ms"), 6_400_000);
    assert_eq!(ends(1024, "1ms"), 1_000_000);
}

#[test]
fn a_hog_on_each_cpu_does_what_the_cpu_can() {
    let (_, summary) = bare(
        "stop = \"duration:1s\"\n[machine]\ncpus = 2\ncapacity = \"0:160, 1:1024\"\n\
         [task.A]\ncpus = \"0\"\ndo = \"run(inf)\"\n[task.B]\ncpus = \"1\"\ndo = \"run(inf)\"\n",
    );
    assert_eq!(work(&summary), [156_250_000, 1_000_000_000]);
}

#[test]
fn sleeps_slices_and_ticks_are_time() {
    let (collector, _) = bare(
        "[machine]\ncpus = 2\ncapacity = [512, 1024]\n\
         [task.A]\ncpus = \"0\"\ndo = \"run(1ms), sleep(5ms), run(1ms)\"\n",
    );
    assert_eq!(collector.exit_of("A").as_nanos(), 9_000_000);
}

const HOGS: &str = "[task.A]\ncpus = \"0\"\ndo = \"run(inf)\"\n";

fn two_hogs(beside: u16, share: &str) -> Summary {
    bare(&format!(
        "stop = \"duration:1s\"\n[machine]\ncpus = 4\nsmt = 2\n{share}{HOGS}\
         [task.B]\ncpus = \"{beside}\"\ndo = \"run(inf)\"\n"
    ))
    .1
}

#[test]
fn two_hogs_on_the_threads_of_one_core_get_less_done_than_on_two_cores() {
    let typical = "smt_share = \"typical\"\n";
    assert_eq!(work(&two_hogs(1, typical)), [599_609_375; 2]);
    assert_eq!(work(&two_hogs(2, typical)), [1_000_000_000; 2]);
    assert_eq!(work(&two_hogs(1, "smt_share = 0.5\n")), [500_000_000; 2]);
    assert!(two_hogs(1, "").hardware.is_none(), "off by default");
}

#[test]
fn a_thread_slows_the_other_down_while_it_executes_and_no_longer() {
    let ends = |beside: u16| {
        let (collector, summary) = bare(&format!(
            "[machine]\ncpus = 4\nsmt = 2\nsmt_share = \"typical\"\n\
             [task.A]\ncpus = \"0\"\ndo = \"run(10ms)\"\n\
             [task.B]\ncpus = \"{beside}\"\nstart = \"2ms\"\ndo = \"run(3ms)\"\n"
        ));
        let shared = summary.hardware.unwrap().groups[0].1.shared.get();
        let end = |name| collector.exit_of(name).as_nanos();
        (end("A"), end("B"), shared)
    };
    assert_eq!(ends(1), (12_003_258, 7_003_258, 5_003_258));
    assert_eq!(ends(2), (10_000_000, 5_000_000, 0));
}

#[test]
fn a_task_that_waits_for_memory_gains_less_from_a_big_cpu() {
    let ends = |mem: u8| {
        let (collector, _) = bare(&format!(
            "[machine]\ncpus = 2\ncapacity = [512, 1024]\n\
             [task.A]\ncpus = \"0\"\nmem = {mem}\ndo = \"run(1ms)\"\n"
        ));
        collector.exit_of("A").as_nanos()
    };
    assert_eq!(ends(0), 2_000_000);
    assert_eq!(ends(100), 1_000_000);
    // 2/3 of 2^20, rounded down: half of the work takes twice as long.
    assert_eq!(ends(50), 1_500_002);
}

#[test]
fn kernel_code_is_work_too() {
    let ends = |capacity: u16| {
        let tables = format!(
            "[machine]\ncpus = 2\nprofile = \"default-v0\"\ncapacity = [{capacity}, 1024]\n\
             [task.A]\ncpus = \"0\"\ndo = \"run(100us), sleep(1ms), run(100us)\"\n"
        );
        bare(&tables).1.cpus[0].overhead.get()
    };
    let (half, full) = (ends(512), ends(1024));
    assert!(
        full > 0 && half.abs_diff(2 * full) <= 8,
        "{half} and {full}"
    );
}

/// The same run on hardware whose CPUs are all alike.
fn flat(spec: &RunSpec) -> RunSpec {
    let mut flat = spec.clone();
    let mut hardware = Hardware::of_capacities(&vec![1024; spec.machine.cpus.into()]);
    hardware.smt = (spec.machine.smt > 1).then(|| SmtShare::all(1024));
    flat.machine.hardware = Some(Box::new(hardware));
    flat
}

fn hash(spec: &RunSpec) -> (u64, u64) {
    let mut hash = TraceHash::new();
    let _ = sim::run(spec, &mut hash).unwrap_or_else(|error| panic!("{error}"));
    (hash.value(), hash.count())
}

#[test]
fn hardware_of_equal_cpus_changes_no_event() {
    for seed in 0..60 {
        let spec = RandomRun::new(seed).spec;
        assert_eq!(hash(&spec), hash(&flat(&spec)), "seed {seed}");
    }
}

#[test]
fn work_booked_for_tasks_is_work_booked_by_cpus() {
    for seed in 0..60 {
        let mut spec = RandomRun::new(seed).spec;
        let cpus = spec.machine.cpus;
        let capacity = |cpu| {
            if cpu == 0 {
                1024
            } else {
                100 + 800 / (1 + cpu)
            }
        };
        let mut hardware = Hardware::of_capacities(&(0..cpus).map(capacity).collect::<Vec<u16>>());
        hardware.smt = (spec.machine.smt > 1).then(|| SmtShare::all(614));
        spec.machine.hardware = Some(Box::new(hardware));
        let (_, summary) = simulated(&spec);
        let hardware = summary.hardware.unwrap();
        let cpus = hardware.total();
        let groups = HardwareUse {
            cpus: hardware.groups.iter().map(|(_, used)| *used).collect(),
            groups: Vec::new(),
        };
        let tasks = groups.total();
        assert_eq!(
            (cpus.executed, cpus.shared),
            (tasks.executed, tasks.shared),
            "seed {seed}"
        );
        // Each is rounded down to whole nanoseconds.
        let most = (hardware.cpus.len() + hardware.groups.len()) as u64;
        let (of_cpus, of_tasks) = (cpus.work.get(), tasks.work.get());
        assert!(
            of_cpus.abs_diff(of_tasks) <= most,
            "seed {seed}: {of_cpus} {of_tasks}"
        );
        assert!(cpus.work <= cpus.executed, "no rate is above one");
    }
}

#[test]
fn a_bigger_cpu_never_lengthens_a_lone_task() {
    let mut last = u64::MAX;
    for capacity in [1, 37, 160, 498, 1000, 1024] {
        let hardware = Hardware::of_capacities(&[capacity, 1024]);
        let mut spec = Run::new("fifo", "[task.A]\ncpus = \"0\"\ndo = \"run(7ms)\"").spec();
        spec.machine = MachineSpec {
            cpus: 2,
            hardware: Some(Box::new(hardware)),
            ..spec.machine
        };
        let (collector, _) = simulated(&spec);
        let end = collector.exit_of("A").as_nanos();
        assert!(end <= last, "{capacity}");
        last = end;
    }
    assert_eq!(last, 7_000_000);
}
