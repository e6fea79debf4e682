//! CPUs that go offline and come back while policies run.

use model::{EventKind, ExitKind, Nanos, Op, SimTime, TaskId};
use runslice_tests::run::Run;
use runslice_tests::two_machines::Taker;
use stats::Conservation;
use traces::Tee;

const fn ms(count: u64) -> Nanos {
    Nanos::from_millis(count)
}

/// CPU 3 of 4 is gone from 20 to 60 ms.
const GONE: &str = "[hotplug.h]\ncpu = 3\noffline = \"20ms\"\nonline = \"60ms\"\n";

fn run(policy: &str, workload: &str) -> (Taker, model::Summary) {
    let workload = format!("{GONE}{workload}");
    let run = Run {
        cpus: 4,
        hz: 1000,
        until: ms(100),
        ..Run::new(policy, &workload)
    };
    let (mut taker, mut conservation) = (Taker::default(), Conservation::new());
    let summary = run.feed(&mut Tee::new(vec![&mut taker, &mut conservation]));
    assert_eq!(conservation.check(&summary), Ok(()), "{policy}");
    (taker, summary)
}

/// Turns on CPU 3 that begin while it is gone and last longer than no time.
fn turns_while_gone(taker: &Taker) -> Vec<(SimTime, TaskId)> {
    let on_it: Vec<_> = (taker.events.iter())
        .filter(|event| event.kind == EventKind::Switch && event.cpu.0 == 3)
        .collect();
    let gone = SimTime::ZERO + ms(20)..SimTime::ZERO + ms(60);
    let mut turns = Vec::new();
    for pair in on_it.windows(2) {
        let lasts = pair[1].time > pair[0].time && pair[0].task != TaskId::NONE;
        if lasts && gone.contains(&pair[0].time) {
            turns.push((pair[0].time, pair[0].task));
        }
    }
    turns
}

#[test]
fn nobody_runs_on_a_cpu_that_is_gone_and_everybody_elsewhere() {
    let load = "[task.hog]\ncount = 6\ndo = \"run(inf)\"\n\
        [task.shell]\ncount = 5\ndo = \"loop(inf)[ run(exp(1ms)), sleep(exp(2ms)) ]\"\n\
        [task.rt]\npolicy = \"fifo:9\"\ndo = \"loop(inf)[ run(100us), sleep(1ms) ]\"\n";
    for policy in policies::ALL {
        let (taker, summary) = run(policy.name, load);
        assert!(
            !summary.exit.kind.is_error(),
            "{}: {:?}",
            policy.name,
            summary.exit
        );
        assert_eq!(turns_while_gone(&taker), [], "{}", policy.name);
        // It was of use before and after.
        let used = summary.cpus[3].run;
        assert!(used > ms(45) && used <= ms(60), "{}: {used}", policy.name);
        let others: Nanos = summary.cpus[..3].iter().map(|cpu| cpu.run).sum();
        assert!(others > ms(290), "{}: {others}", policy.name);
    }
}

#[test]
fn the_policy_is_told_before_and_after() {
    let (taker, _) = run("fifo", "[task.hog]\ncount = 4\ndo = \"run(inf)\"\n");
    let told: Vec<_> = (taker.events.iter())
        .filter(|event| event.kind == EventKind::Callback)
        .filter(|event| [Op::CpuOffline as u8, Op::CpuOnline as u8].contains(&event.words().detail))
        .map(|event| (event.time, event.words().detail, event.words().a))
        .collect();
    assert_eq!(
        told,
        [
            (SimTime::ZERO + ms(20), Op::CpuOffline as u8, 3),
            (SimTime::ZERO + ms(60), Op::CpuOnline as u8, 3)
        ]
    );
}

#[test]
fn a_policy_that_does_not_listen_is_ejected_with_the_kernels_code() {
    let (_, summary) = run("misuse", "[task.hog]\ncount = 4\ndo = \"run(inf)\"\n");
    let exit = summary.exit;
    assert_eq!(exit.kind, ExitKind::UnregKern);
    assert_eq!(exit.code, 1 << 48 | 1 << 32);
    assert_eq!(exit.message, "cpu 3 going offline, exiting scheduler");
    assert_eq!(exit.time, SimTime::ZERO + ms(20));
}

#[test]
fn a_task_that_may_run_nowhere_else_may_run_anywhere_and_that_is_said() {
    for (sleeps, policy) in [
        (false, "fifo"),
        (true, "fifo"),
        (false, "mlfq"),
        (false, "o1"),
    ] {
        let body = if sleeps {
            "loop(inf)[ run(1ms), sleep(1ms) ]"
        } else {
            "run(inf)"
        };
        let bound = format!("[task.bound]\ncpus = \"3\"\ndo = \"{body}\"\n");
        let (taker, summary) = run(policy, &bound);
        assert!(
            !summary.exit.kind.is_error(),
            "{policy}: {:?}",
            summary.exit
        );
        let said = "process bound[100] no longer affine to cpu3".to_owned();
        assert!(
            summary.notes.contains(&said),
            "{policy}: {:?}",
            summary.notes
        );
        assert_eq!(turns_while_gone(&taker), [], "{policy}");
        let least = if sleeps { 45 } else { 95 };
        assert!(
            summary.tasks[0].run > ms(least),
            "{policy}: {:?}",
            summary.tasks[0]
        );
    }
}

#[test]
fn timers_and_interrupts_of_a_cpu_that_is_gone_come_elsewhere() {
    let load = "[chan.c]\nkind = \"queue\"\n[irq.i]\ncpu = 3\nevery = \"1ms\"\ncost = \"10us\"\n\
        send = \"c\"\n[task.r]\ndo = \"loop(inf)[ recv(c), count(n) ]\"\n\
        [task.s]\ncpus = \"3\"\ndo = \"loop(inf)[ sleep(1ms), run(10us), count(m) ]\"\n";
    let (taker, summary) = run("fifo", load);
    let counted = |task: u32| {
        let counts = taker.events.iter().filter(|e| e.kind == EventKind::Count);
        counts.filter(|e| e.task == TaskId(task)).count()
    };
    assert!(counted(0) >= 99, "{}", counted(0));
    assert!(counted(1) >= 90, "{}", counted(1));
    assert_eq!(
        summary.cpus[0].stolen,
        Nanos::from_micros(40 * 10),
        "while CPU 3 is gone"
    );
}

#[test]
fn an_affinity_without_an_online_cpu_is_refused() {
    let load = "[task.t]\ndo = \"run(30ms), setaffinity(self, {3}), run(inf)\"\n";
    let (_, summary) = run("fifo", load);
    assert!(
        summary
            .notes
            .iter()
            .any(|note| note.contains("the kernel refuses it"))
    );
}

#[test]
fn a_cpu_that_idled_when_it_went_is_found_idle_once() {
    // Four tasks wake in one moment and find four CPUs that idle; later only three.
    let load = "[task.t]\ncount = 4\ndo = \"sleep(30ms), run(2ms), sleep(8ms), run(2ms)\"\n";
    let (_, summary) = run("fifo", load);
    let fallbacks = summary.counters.iter();
    let fallbacks = fallbacks.filter(|(name, _)| *name == "SCX_EV_SELECT_CPU_FALLBACK");
    assert_eq!(fallbacks.map(|(_, count)| *count).collect::<Vec<_>>(), [1]);
}

#[test]
fn only_a_cpu_that_exists_and_is_not_the_first_goes() {
    let parse = |tables: &str| {
        let text = format!("[workload]\nname = \"w\"\n{tables}[task.t]\ndo = \"run(1ms)\"\n");
        let error = workload::Workload::parse(&text, "w.toml").unwrap_err();
        model::Advice::in_full(&error)
    };
    assert_eq!(
        parse("[hotplug.h]\ncpu = 0\noffline = \"1s\"\n"),
        "w.toml:4:7: cpu is 0; expected 1 to 1023"
    );
    assert_eq!(
        parse("[hotplug.h]\ncpu = 1\noffline = \"1s\"\nonline = \"500ms\"\n"),
        "w.toml:6:10: online is 500 ms; expected later than 1.00 s"
    );
}
