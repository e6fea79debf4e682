//! What the simulator's vectors follow from the source alone, asked of a real kernel: the probe
//! policy of the tests under small workloads, in a virtual machine that counts its time.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use model::{Event, EventKind, PrevState};
use runslice_tests::guest::KERNELS;
use runslice_tests::two_machines::{Taker, Yield};
use runslice_tests::{folder, guest, policy};

/// A question: a policy with its variables, and a workload.
struct Question {
    name: &'static str,
    cpus: &'static str,
    policy: &'static str,
    set: &'static str,
    tables: &'static str,
    /// The sample of the guest's possible runs; `None` is the one without random numbers.
    sample: Option<u8>,
}

/// Plays it on a kernel in a folder of its own, which then has `e.jsonl` and what the policy
/// printed.
fn ask(kernel: &str, question: &Question) -> PathBuf {
    let Question {
        name, cpus, sample, ..
    } = question;
    let folder = folder!(&format!("vm-vectors-{name}-{kernel}"));
    let load = format!(
        "[workload]\nname = \"{name}\"\nstop = \"duration:300ms\"\n{}",
        question.tables
    );
    fs::write(folder.join("load.toml"), load).expect("writable");
    let object = policy::object(question.policy).expect("a test policy");
    fs::write(folder.join("policy.bpf.o"), object).expect("writable");
    // The player stays on CPU 0.
    let script = format!(
        "mount -t tracefs none /sys/kernel/tracing 2>/dev/null
         # As the kernel begins it has room for a few lines only.
         echo 4096 >/sys/kernel/tracing/buffer_size_kb
         # The kernel tests its ciphers after it has begun, which takes a while.
         while grep -qs cryptomgr_test /proc/[0-9]*/comm; do sleep 0.1; done
         taskset 1 runslice play load.toml --policy ./policy.bpf.o{} --events e.jsonl || exit 1
         grep bpf_trace_printk /sys/kernel/tracing/trace >printed
         exit 0",
        question.set
    );
    let guest = guest!().kernel(kernel).counted();
    let mut guest = guest.cpus(cpus).share(&folder);
    if let Some(sample) = sample {
        guest = guest.options(&["--seed", &sample.to_string()]);
    }
    let _ = guest.timeout("100s").good(&script, &[]);
    folder
}

/// What the policy printed, one message a line, in the order of time.
fn printed(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("printed")).expect("the guest wrote it");
    let said = text
        .lines()
        .filter_map(|line| line.split_once("bpf_trace_printk: "));
    said.map(|(_, said)| said.trim().to_owned()).collect()
}

fn events(folder: &Path) -> Yield {
    let file = File::open(folder.join("e.jsonl")).expect("the guest wrote it");
    let mut taker = Taker::default();
    traces::replay(BufReader::new(file), &mut taker).expect("events");
    taker.with((0, String::new()))
}

fn v10_a_last_task_that_nobody_kicks_waits_on_an_idle_cpu(kernel: &str) {
    let ask_with = |name, set| {
        events(&ask(
            kernel,
            &Question {
                name,
                cpus: "2",
                policy: "probe-last",
                set,
                tables: "[task.A]\nkind = \"process\"\ncpus = \"1\"\ndo = \"run(inf)\"\n",
                sample: None,
            },
        ))
    };
    // How long CPU 1 had nothing to do while A waited for it, each time.
    let idle = |run: &Yield| -> Vec<u64> {
        let group = run.header.groups.iter().position(|group| group.name == "A");
        let group = group.expect("a group") as u64;
        let is_a =
            |event: &&Event| event.kind == EventKind::New && event.words().a & 0xffff_ffff == group;
        let a = run.events.iter().find(is_a).expect("A is born").task;
        let switches = run
            .events
            .iter()
            .filter(|event| event.kind == EventKind::Switch && event.cpu.0 == 1);
        let switches: Vec<&Event> = switches.collect();
        let left_idle = |two: &[&Event]| {
            let was_a = two[0].words().a == u64::from(a.0);
            let waits = two[0].words().detail == PrevState::Runnable as u8;
            let rests = two[0].task == model::TaskId::NONE;
            (was_a && waits && rests).then(|| two[1].time.since(two[0].time).get())
        };
        let mut found: Vec<u64> = switches.windows(2).filter_map(left_idle).collect();
        // The last may be open until the end.
        let last = switches.last().expect("A ran");
        if last.task == model::TaskId::NONE && last.words().a == u64::from(a.0) {
            found.push(run.end.since(last.time).get());
        }
        found
    };
    let without = idle(&ask_with("v10", ""));
    println!("without a kick: {without:?}");
    assert!(without.iter().any(|&ns| ns > 1_000_000), "{without:?}");
    let with = idle(&ask_with("v10-kick", ":kick=1"));
    println!("with a kick: {with:?}");
    assert!(with.len() >= 5, "{with:?}");
    assert!(with.iter().all(|&ns| ns < 1_000_000), "{with:?}");
}

fn v23_a_waiting_task_is_enqueued_again_and_the_preempted_one_is_not(kernel: &str) {
    // Whether two of the hogs are in the CPU's queue at once is up to chance.
    const SAMPLES: u8 = 6;
    let samples = std::iter::once(None).chain((1..SAMPLES).map(Some));
    let mut found = samples.map(|sample| preempted_while_another_waits(kernel, sample));
    let tries = found.position(|found| found > 0);
    println!("samples without the case: {tries:?}");
    assert!(tries.is_some(), "none of {SAMPLES} samples has the case");
}

/// How often the case of vector 23 was there, which then went as it must.
fn preempted_while_another_waits(kernel: &str, sample: Option<u8>) -> usize {
    let folder = ask(
        kernel,
        &Question {
            name: "v23",
            cpus: "1",
            policy: "probe",
            set: ":batch=2,reenqueue=1,tell=1",
            tables: "[task.A]\nkind = \"process\"\nstart = \"1ms\"\ndo = \"run(50ms)\"\n\
                 [task.B]\nkind = \"process\"\nstart = \"1ms\"\ndo = \"run(50ms)\"\n\
                 [task.H]\nkind = \"process\"\ndo = \"run(5ms)\"\n\
                 [task.R]\nkind = \"process\"\npolicy = \"fifo:50\"\nstart = \"10.04ms\"\n\
                 do = \"run(5ms)\"\n",
            sample,
        },
    );
    let said = printed(&folder);
    println!("{}", said.join("\n"));
    let speaks_of = |name: &'static str| {
        let name = format!(" {name} ");
        move |it: &&String| it.contains(&name) && it.starts_with("running")
    };
    // Somebody real-time came, the player or R, while a hog ran and another waited.
    let mut found = 0;
    let hogs = ["A", "B", "H"];
    let pairs = hogs.map(|first| hogs.map(|other| (first, other)));
    for (first, other) in pairs.into_iter().flatten().filter(|(a, b)| a != b) {
        let again = format!("enqueue {other} 0x10000000000");
        for at in (1..said.len()).filter(|at| said[*at] == "reenqueued 2") {
            let ran = said[..at].iter().rfind(|it| it.starts_with("running"));
            if said[at - 1] != again || !ran.as_ref().is_some_and(speaks_of(first)) {
                continue;
            }
            let next = said[at..].iter().find(|it| it.starts_with("running"));
            assert_eq!(next, Some(&format!("running {first} 20000000")), "{said:?}");
            found += 1;
        }
        let never = format!("enqueue {first} 0x10000000000");
        let twice = said
            .windows(2)
            .any(|two| two[0] == never && two[1] == again);
        assert!(!twice, "both were enqueued again: {said:?}");
    }
    found
}

fn v35_an_iterator_sees_neither_what_leaves_nor_what_comes(kernel: &str) {
    let folder = ask(
        kernel,
        &Question {
            name: "v35",
            cpus: "1",
            policy: "probe",
            set: ":walk=3,tell=1",
            tables: "[task.H]\nkind = \"process\"\ndo = \"run(12ms), sleep(1s)\"\n\
                 [task.C]\nkind = \"process\"\nstart = \"2ms\"\ndo = \"run(2ms), sleep(1s)\"\n\
                 [task.A]\nkind = \"process\"\nstart = \"3ms\"\ndo = \"run(2ms), sleep(1s)\"\n\
                 [task.B]\nkind = \"process\"\nstart = \"4ms\"\ndo = \"run(2ms), sleep(1s)\"\n\
                 [task.D]\nkind = \"process\"\nstart = \"5ms\"\ndo = \"run(2ms), sleep(1s)\"\n",
            sample: None,
        },
    );
    let said = printed(&folder);
    println!("{}", said.join("\n"));
    // What each walk said, in which A left and D came.
    let walks = said.split(|it| it == "walk").map(|walk| walk.join(" "));
    let changed = walks.filter(|walk| walk.contains("out A") && walk.contains("in D"));
    let changed: Vec<String> = changed.collect();
    assert!(!changed.is_empty(), "{said:?}");
    for walk in changed {
        let (_, behind) = walk.split_once("in D").expect("it is there");
        assert!(
            !behind.contains("seen A") && !behind.contains("seen D"),
            "{walk}"
        );
        assert!(behind.contains("seen B"), "{walk}");
    }
}

fn v36_a_spurious_insert_changes_the_slice_and_no_queue(kernel: &str) {
    let folder = ask(
        kernel,
        &Question {
            name: "v36",
            cpus: "1",
            policy: "probe",
            set: ":walk=2,tell=1",
            tables: "[task.A]\nkind = \"process\"\ndo = \"run(40ms), sleep(1s)\"\n\
                 [task.B]\nkind = \"process\"\nstart = \"2ms\"\ndo = \"run(40ms), sleep(1s)\"\n",
            sample: None,
        },
    );
    let said = printed(&folder);
    println!("{}", said.join("\n"));
    let ours = |it: &&String| it.contains(" A ") || it.contains(" B ");
    let turns: Vec<&String> = said.iter().filter(ours).collect();
    let runs = turns.iter().filter(|it| it.starts_with("running"));
    assert!(runs.clone().count() >= 6, "{turns:?}");
    assert!(
        runs.clone().filter(|it| it.ends_with(" 7000000")).count() >= 6,
        "{turns:?}"
    );
    // It stays in its queue, once: with each new slice it runs once before it is enqueued again.
    for name in [" A ", " B "] {
        let own = turns.iter().filter(|it| it.contains(name));
        let own = own.filter(|it| it.starts_with("enqueue") || it.ends_with(" 7000000"));
        let own: Vec<bool> = own.map(|it| it.starts_with("enqueue")).collect();
        assert!(
            own.windows(2).all(|two| two[0] != two[1]),
            "{name}: {turns:?}"
        );
    }
}

/// The questions, each as a test of its own.
macro_rules! asked {
    ($($module:ident: $kernel:expr),+) => { $(
        mod $module {
            asked! { @ $kernel,
                v10_a_last_task_that_nobody_kicks_waits_on_an_idle_cpu
                v23_a_waiting_task_is_enqueued_again_and_the_preempted_one_is_not
                v35_an_iterator_sees_neither_what_leaves_nor_what_comes
                v36_a_spurious_insert_changes_the_slice_and_no_queue
            }
        }
    )+ };
    (@ $kernel:expr, $($name:ident)+) => { $(
        #[test]
        #[ignore = "boots a kernel: make test-vm"]
        fn $name() {
            super::$name($kernel);
        }
    )+ };
}
asked! { on_6_18: super::KERNELS[0], on_7_2: super::KERNELS[1] }
