//! What a simulator of schedulers can get wrong, and one did: each test fails on it.

use model::{Nanos, Op, SimTime};
use runslice_tests::run::Run;

const fn ms(count: u64) -> Nanos {
    Nanos::from_millis(count)
}

fn at_us(micros: u64) -> SimTime {
    SimTime::from_nanos(micros * 1_000)
}

#[test]
fn work_that_is_interrupted_ends_later_by_the_interruption() {
    for policy in ["fifo", "mlfq", "probe"] {
        let once = "[task.A]\ndo = \"run(200ms)\"\n\
                    [task.R]\npolicy = \"fifo:50\"\nstart = \"50ms\"\ndo = \"run(10us)\"";
        let (collected, summary) = Run {
            hz: 250,
            ..Run::new(policy, once)
        }
        .execute();
        assert_eq!(collected.exit_of("A"), at_us(200_010), "{policy}");
        let task = summary.tasks[collected.task("A").index()];
        assert_eq!(
            (task.run, task.wait),
            (ms(200), Nanos::from_micros(10)),
            "{policy}"
        );

        let often = "[task.A]\ndo = \"run(200ms)\"\n[task.R]\npolicy = \"fifo:50\"\n\
                     do = \"loop(100)[ sleep(1ms), run(10us) ]\"";
        let (collected, _) = Run {
            hz: 250,
            ..Run::new(policy, often)
        }
        .execute();
        assert_eq!(collected.exit_of("A"), at_us(201_000), "{policy}");
    }
}

#[test]
fn an_interrupt_takes_its_time_from_the_work() {
    let workload = "[task.A]\ndo = \"run(200ms)\"\n\
                    [irq.nic]\nevery = \"1ms\"\nstart = \"500us\"\ncost = \"10us\"";
    let (collected, summary) = Run::new("fifo", workload).execute();
    // 202 interrupts come before the work and the 202 interruptions are done.
    assert_eq!(collected.exit_of("A"), at_us(202_020));
    assert_eq!(summary.tasks[0].stolen, Nanos::from_micros(2_020));
}

#[test]
fn no_more_work_is_done_than_there_is_cpu_time() {
    let workload = "[task.hog]\ncount = 8\ndo = \"run(1s)\"\n\
                    [task.rt]\ncount = 3\npolicy = \"rr:10\"\n\
                    do = \"loop(inf)[ sleep(700us), run(30us) ]\"";
    for policy in ["fifo", "mlfq", "probe"] {
        let run = Run {
            cpus: 2,
            hz: 250,
            until: ms(100),
            ..Run::new(policy, workload)
        };
        let (_, summary) = run.execute();
        let done: Nanos = summary.tasks.iter().map(|task| task.run).sum();
        let given: Nanos = summary.cpus.iter().map(|cpu| cpu.run).sum();
        assert_eq!(done, given, "{policy}");
        assert!(done <= ms(200), "{policy}: {done}");
    }
}

#[test]
fn a_pinned_task_never_runs_elsewhere_on_a_shared_queue() {
    let workload = "[task.free]\ncount = 6\ndo = \"loop(inf)[ run(3ms), sleep(1ms) ]\"\n\
                    [task.zero]\ncount = 3\ncpus = \"0\"\n\
                    do = \"loop(inf)[ run(3ms), sleep(2ms) ]\"\n\
                    [task.three]\ncount = 3\ncpus = \"3\"\n\
                    do = \"loop(inf)[ run(3ms), sleep(2ms) ]\"";
    for policy in ["fifo", "mlfq", "probe"] {
        let run = Run {
            cpus: 4,
            until: ms(1_000),
            ..Run::new(policy, workload)
        };
        let (collected, summary) = run.execute();
        for cpu in 0..4 {
            for (name, from, _) in collected.turns(cpu, summary.end) {
                let allowed = match name.split('.').next() {
                    Some("zero") => cpu == 0,
                    Some("three") => cpu == 3,
                    _ => true,
                };
                assert!(allowed, "{policy}: {name} on CPU {cpu} at {from}");
            }
        }
        let pinned = collected.switches.iter().filter(|switch| switch.cpu.0 == 3);
        assert!(pinned.count() > 100, "{policy}");
    }
}

#[test]
fn a_forgotten_kick_shows_its_delay() {
    let workload = "[task.A]\ncpus = \"0\"\n\
                    do = \"run(1ms), setaffinity(self, all), sleep(4ms), run(5ms)\"\n\
                    [task.H]\ncpus = \"0\"\ndo = \"run(50ms)\"";
    let wait = |select: &str| {
        let set = [("select", select)];
        let run = Run {
            set: &set,
            cpus: 2,
            hz: 250,
            until: ms(40),
            ..Run::new("probe", workload)
        };
        let (collected, summary) = run.execute();
        summary.tasks[collected.task("A").index()].wait
    };
    // Without looking for an idle CPU it waits for the end of H's slice, although CPU 1 idles.
    assert_eq!(wait("0"), ms(19));
    assert_eq!(wait("1"), Nanos::ZERO);
}

#[test]
fn a_batch_of_dispatches_arrives_as_a_whole() {
    let workload = "[task.H]\ndo = \"run(5ms), sleep(1s)\"\n\
                    [task.T]\ncount = 32\nstart = \"1ms\"\ndo = \"run(1ms), sleep(1s)\"";
    let set = [("batch", "32")];
    let run = Run {
        set: &set,
        until: ms(100),
        ..Run::new("probe", workload)
    };
    let (collected, summary) = run.execute();
    let turns = collected.turns(0, summary.end);
    let order: Vec<&str> = turns.iter().map(|(name, ..)| name.as_str()).collect();
    let mut want = vec!["H".to_owned()];
    want.extend((0..32).map(|index| format!("T.{index}")));
    assert_eq!(order, want);
    // One dispatch for all of them, and one when the last is gone.
    let calls = collected
        .calls
        .iter()
        .filter(|call| call.op == Op::Dispatch);
    let times: Vec<u64> = calls.map(|call| call.time.as_nanos() / 1_000_000).collect();
    assert_eq!(times[times.len() - 2..], [5, 37], "{times:?}");
}

#[test]
fn the_enqueue_flag_head_is_obeyed() {
    let workload = "[task.H]\ndo = \"run(5ms), sleep(1s)\"\n\
                    [task.A]\nstart = \"1ms\"\ndo = \"run(1ms), sleep(1s)\"\n\
                    [task.B]\nstart = \"2ms\"\ndo = \"run(1ms), sleep(1s)\"\n\
                    [task.C]\nstart = \"3ms\"\ndo = \"run(1ms), sleep(1s)\"";
    let order = |letter: &str| {
        let set = [("head_letter", letter)];
        let run = Run {
            set: &set,
            until: ms(20),
            ..Run::new("probe", workload)
        };
        let (collected, summary) = run.execute();
        let turns = collected.turns(0, summary.end);
        turns.into_iter().map(|(name, ..)| name).collect::<String>()
    };
    assert_eq!(order("0"), "HABC");
    assert_eq!(order("67"), "HCAB");
}

#[test]
fn more_than_128_cpus_are_as_good_as_one() {
    for cpus in [129, 300, 1024] {
        let workload = format!(
            "[task.free]\ncount = {}\ndo = \"run(10ms)\"\n\
             [task.last]\ncpus = \"{}\"\nstart = \"1ms\"\ndo = \"run(10ms)\"",
            cpus - 1,
            cpus - 1
        );
        for policy in ["fifo", "mlfq"] {
            let (collected, summary) = Run {
                cpus,
                ..Run::new(policy, &workload)
            }
            .execute();
            assert_eq!(collected.exits.len(), usize::from(cpus), "{policy}");
            // All free tasks run at once, and the pinned one on the last CPU as soon as it may.
            let last = collected.turns(cpus - 1, summary.end);
            let (name, ..) = last.last().expect("a turn on the last CPU");
            assert_eq!(name, "last", "{policy}");
            let late = summary
                .tasks
                .iter()
                .filter(|task| !task.wait.is_zero())
                .count();
            assert!(late <= 1, "{policy}: {late} tasks waited on {cpus} CPUs");
            assert!(
                summary.end <= SimTime::ZERO + ms(20),
                "{policy}: {}",
                summary.end
            );
        }
    }
}

#[test]
fn five_thousand_tasks_are_accepted_and_lose_no_time() {
    let workload = "[task.T]\ncount = 5000\ndo = \"run(1ms)\"";
    for policy in ["fifo", "mlfq", "probe"] {
        let (collected, summary) = Run {
            cpus: 4,
            ..Run::new(policy, workload)
        }
        .execute();
        assert_eq!(collected.exits.len(), 5_000, "{policy}");
        let done: Nanos = summary.tasks.iter().map(|task| task.run).sum();
        assert_eq!(done, ms(5_000), "{policy}");
        assert_eq!(summary.tasks.len(), 5_000, "{policy}");
    }
    // A queue that all CPUs share leaves no CPU idle while tasks wait.
    let (collected, _) = Run {
        cpus: 4,
        ..Run::new("fifo", workload)
    }
    .execute();
    let last = collected.exits.last().map(|(_, time)| *time);
    assert_eq!(last, Some(SimTime::ZERO + ms(1_250)));
}
