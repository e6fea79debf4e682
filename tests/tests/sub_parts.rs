//! A policy that parts its CPUs between itself and those below it, as `scx_qmap` of 7.3 does:
//! with one of equal weight below it each has 2 of 4, on the real kernel (`self 0-1`, `sub0 2-3`)
//! and here.

use model::{Event, EventKind, ExitKind, Kernel, Nanos, PolicySpec, SubSpec, Summary, TaskId};
use runslice_tests::run::Run;
use runslice_tests::two_machines::Taker;

const fn ms(count: u64) -> Nanos {
    Nanos::from_millis(count)
}

fn policy(tag: &str) -> PolicySpec {
    let set = [("tag", tag)];
    let run = Run {
        set: &set,
        ..Run::new("sub-parts", "[task.t]\ndo = \"run(1ms)\"\n")
    };
    run.spec().policy
}

fn below(cgroup: &str, tag: &str) -> SubSpec {
    SubSpec {
        cgroup: cgroup.to_owned(),
        policy: policy(tag),
        attach_at: ms(50),
        detach_at: None,
    }
}

/// Four CPUs for 500 ms.
fn run(load: &str, subs: Vec<SubSpec>) -> (Taker, Summary) {
    let mut spec = Run {
        cpus: 4,
        hz: 250,
        until: ms(500),
        ..Run::new("sub-parts", load)
    }
    .spec();
    spec.machine.kernel = Kernel::V7_3;
    spec.policy.subs = subs;
    let mut taker = Taker::default();
    let summary = sim::run(&spec, &mut taker).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    (taker, summary)
}

/// The switches to tasks from `begin` to `end` milliseconds: CPU, and the number of the task.
fn switches(taker: &Taker, begin: u64, end: u64) -> Vec<(u16, u32)> {
    let is_there = |it: &&Event| (ms(begin)..ms(end)).contains(&Nanos::new(it.time.as_nanos()));
    let events = taker.events.iter().filter(is_there);
    let switches = events.filter(|it| it.kind == EventKind::Switch && it.task != TaskId::NONE);
    switches.map(|it| (it.cpu.0, it.task.0)).collect()
}

/// The last CPUs that the scheduler with this tag kept, as it printed them.
fn kept<'a>(summary: &'a Summary, tag: &str) -> Option<&'a str> {
    let head = format!("S{tag} self ");
    let mut lines = summary.printed.lines().rev();
    lines.find_map(|line| Some(line.split_once(&head)?.1))
}

/// Four spinners in cgroup `a`, which have the numbers 0 to 3, and four beside it.
const TWO: &str = "[cgroup.a]\n[cgroup.b]\n\
    [task.in]\ncount = 4\ncgroup = \"/a\"\ndo = \"run(inf)\"\n\
    [task.out]\ncount = 4\ncgroup = \"/b\"\ndo = \"run(inf)\"\n";

#[test]
fn a_root_and_one_below_it_have_two_of_four_cpus_each() {
    let (taker, summary) = run(TWO, vec![below("a", "1")]);
    let all = switches(&taker, 150, 500);
    for cpu in 0..4 {
        assert!(
            all.iter().filter(|it| it.0 == cpu).count() >= 10,
            "CPU {cpu}"
        );
    }
    for (cpu, task) in all {
        assert_eq!(cpu >= 2, task < 4, "task {task} on CPU {cpu}");
    }
    assert_eq!(kept(&summary, "1"), Some("c"));
    // Once the one below has gone, at the end, all is the root's again.
    let root: Vec<_> = summary.printed.lines().collect();
    assert!(
        root.iter().any(|line| line.ends_with("S0 self 3")),
        "{root:#?}"
    );
    assert_eq!(kept(&summary, "0"), Some("f"));
    // Two CPUs for 450 ms, at most a slice less on each, and as much on the other two at first.
    let ran = summary.subs[0].ran;
    assert!((ms(850)..=ms(945)).contains(&ran), "{ran}");
}

#[test]
fn what_is_granted_is_parted_anew_below() {
    let load = "[cgroup.a]\n[cgroup.b]\npath = \"/a/b\"\n[cgroup.c]\n\
        [task.b]\ncount = 2\ncgroup = \"/a/b\"\ndo = \"run(inf)\"\n\
        [task.a]\ncount = 2\ncgroup = \"/a\"\ndo = \"run(inf)\"\n\
        [task.root]\ncount = 4\ncgroup = \"/c\"\ndo = \"run(inf)\"\n";
    let (taker, summary) = run(load, vec![below("a", "1"), below("b", "2")]);
    for (cpu, task) in switches(&taker, 200, 500) {
        let wanted = match task {
            0..2 => 3..4,
            2..4 => 2..3,
            _ => 0..2,
        };
        assert!(wanted.contains(&cpu), "task {task} on CPU {cpu}");
    }
    assert_eq!(kept(&summary, "2"), Some("8"));
    let mut told = summary.printed.lines();
    assert!(
        told.any(|line| line.ends_with("S1 self 4")),
        "{}",
        summary.printed
    );
}

#[test]
fn cpus_are_parted_by_the_weights_of_cgroups_also_when_one_changes() {
    let heavy = TWO.replacen("[cgroup.a]", "[cgroup.a]\nweight = 300", 1);
    let change = "[task.main]\ncgroup = \"/b\"\ncpus = \"0\"\n\
        do = \"sleep(250ms), cgroup_weight(a, 100), suspend\"\n";
    let (taker, summary) = run(&format!("{heavy}{change}"), vec![below("a", "1")]);
    // The one that writes waits for its turn among five.
    for (begin, end, roots) in [(150, 250, 1), (370, 500, 2)] {
        let all = switches(&taker, begin, end);
        assert!(all.len() > 10, "{all:?}");
        for (cpu, task) in all {
            assert_eq!(cpu >= roots, task < 4, "task {task} on CPU {cpu}");
        }
    }
    assert_eq!(kept(&summary, "1"), Some("c"));
}

#[test]
fn cpus_of_one_that_is_taken_off_go_back() {
    let load = TWO.replacen("count = 4", "count = 1", 1);
    let mut sub = below("a", "1");
    sub.detach_at = Some(ms(250));
    let (taker, summary) = run(&load, vec![sub]);
    assert_eq!(summary.subs[0].exit.kind, ExitKind::Unreg);
    // The task of the one below has the number 0; a CPU of its idles.
    let is_roots = |it: &(u16, u32)| it.0 >= 2 && it.1 > 0;
    assert!(!switches(&taker, 150, 250).iter().any(is_roots));
    assert!(switches(&taker, 300, 500).iter().any(is_roots));
}
