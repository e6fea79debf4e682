//! What a policy reads of a task is right in each callback, from the first on.

use std::collections::BTreeMap;

use model::{Kernel, Nanos, SimTime, Summary};
use runslice_tests::collect::Collector;
use runslice_tests::run::Run;

/// One callback: its name, and what tests/policies/births.h prints in it, numbers in base 16.
type Seen = (String, BTreeMap<String, u32>);

fn run(kernel: Kernel, workload: &str) -> Summary {
    let run = Run {
        cpus: 4,
        until: Nanos::from_millis(40),
        ..Run::new(
            if kernel == Kernel::V6_12 {
                "births-6-12"
            } else {
                "births"
            },
            workload,
        )
    };
    let mut spec = run.spec();
    spec.machine.kernel = kernel;
    let summary = sim::run(&spec, &mut Collector::default()).unwrap();
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    summary
}

/// The callbacks about the tasks of `workload`, in order.
fn seen(kernel: Kernel, workload: &str) -> Vec<Seen> {
    let mut seen: Vec<Seen> = Vec::new();
    for line in run(kernel, workload).printed.lines() {
        let (callback, pairs) = line.split_once(": ").expect("a callback");
        if pairs.starts_with("pid ") {
            seen.push((callback.to_owned(), BTreeMap::new()));
        }
        let (of, fields) = seen.last_mut().expect("a pid comes first");
        assert_eq!(of, callback, "no callback is nested here");
        for pair in pairs.split(", ") {
            let (name, value) = pair.split_once(' ').expect("a pair");
            let value = if name == "pid" || name == "weight" || name == "prio" {
                value.parse()
            } else {
                u32::from_str_radix(value, 16)
            };
            fields.insert(name.to_owned(), value.expect("a number"));
        }
    }
    seen
}

/// What each callback about the task `pid` saw of `field`, without repetitions.
fn of(seen: &[Seen], pid: u32, field: &str) -> Vec<(String, u32)> {
    let its = seen.iter().filter(|(_, fields)| fields["pid"] == pid);
    let mut values: Vec<_> = its
        .filter_map(|(callback, fields)| Some((callback.clone(), *fields.get(field)?)))
        .collect();
    let mut known = Vec::new();
    values.retain(|value| {
        let is_new = !known.contains(value);
        known.push(value.clone());
        is_new
    });
    values
}

fn only(seen: &[Seen], pid: u32, field: &str) -> Vec<u32> {
    let mut values: Vec<u32> = of(seen, pid, field).into_iter().map(|(_, it)| it).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// The names of callbacks and their values, as a test writes them.
fn as_pairs(values: &[(String, u32)]) -> Vec<(&str, u32)> {
    values
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect()
}

/// Task 100 is there from the start, 101 forks 102 on CPU 0, where 102 may not run, and 103.
const PINNED: &str = "\
    [task.there]\ncpus = \"1-2\"\nmigration_disabled = true\nnice = 5\n\
    do = \"loop(2)[ run(1ms), sleep(5ms) ]\"\n\
    [task.maker]\ncpus = \"0\"\ndo = \"sleep(9ms), fork(born), fork(free), sleep(9ms), run(1ms)\"\n\
    [task.born]\ncpus = \"2-3\"\nmigration_disabled = true\ndo = \"run(1ms), sleep(1ms)\"\n\
    [task.free]\ndo = \"run(1ms), sleep(1ms)\"";

#[test]
fn a_task_that_may_not_migrate_is_bound_in_every_callback_from_its_birth_on() {
    for kernel in Kernel::ALL {
        let seen = seen(kernel, PINNED);
        for (pid, bound, affinity) in [(100, 0b10, 0b110), (102, 0b100, 0b1100)] {
            let only = |field| only(&seen, pid, field);
            let what = format!("{}: {pid}", kernel.name());
            assert_eq!(only("cpus"), [bound], "{what}");
            assert_eq!(only("of"), [affinity], "{what}");
            assert_eq!((only("allowed"), only("own")), (vec![2], vec![0]), "{what}");
            // Whoever executes a callback is kept once more by that.
            let executed = ["stopping", "quiescent"];
            for (callback, pinned) in of(&seen, pid, "pinned") {
                let count = 1 + u32::from(executed.contains(&callback.as_str()));
                assert_eq!(pinned, count, "{what}: {callback}");
            }
            let callbacks = of(&seen, pid, "pid");
            let is_called = |name: &str| callbacks.iter().any(|(it, _)| it == name);
            assert!(!is_called("select_cpu"), "{what}");
            assert!(is_called("init_task") && is_called("enqueue"), "{what}");
        }
        // Of those there, attaching tells which CPUs they may use.
        let told = of(&seen, 100, "told");
        assert_eq!(as_pairs(&told), [("set_cpumask", 0b10)]);
        assert_eq!(of(&seen, 102, "told"), [], "a fork tells nothing");
        assert_eq!(
            (only(&seen, 100, "shown"), only(&seen, 103, "own")),
            (vec![1], vec![1])
        );
        let free = of(&seen, 103, "pinned");
        let before: Vec<_> = free.iter().take_while(|(it, _)| it != "stopping").collect();
        assert!(before.iter().all(|(_, pinned)| *pinned == 0), "{free:?}");
    }
}

/// Task 100 sleeps in a section that forbids migration, and is preempted in another one by 101.
const SECTIONS: &str = "\
    [task.pinned]\ncpus = \"1-2\"\n\
    do = \"sleep(1ms), run(1ms), migrate_disable, run(1ms), migrate_disable, sleep(1ms), run(1ms), \
    migrate_enable, run(100us), migrate_enable, run(1ms), sleep(1ms), \
    migrate_disable, run(4ms), migrate_enable, run(1ms), \
    migrate_disable, run(1ms), migrate_enable, run(1ms)\"\n\
    [task.rt]\ncpus = \"1-2\"\ncount = 2\npolicy = \"fifo:50\"\ndo = \"sleep(9ms), run(1ms)\"";

#[test]
fn a_section_binds_its_task_from_the_switch_on_and_its_end_gives_the_affinity_back() {
    for kernel in Kernel::ALL {
        let seen = seen(kernel, SECTIONS);
        let what = kernel.name();
        let its: Vec<_> = seen.iter().filter(|(_, it)| it["pid"] == 100).collect();
        // The mask of the CPUs that it may use is told at both ends, twice: it slept in the first
        // section and lost its CPU in the second one. Nobody sees the third one.
        let told = its.iter().filter(|(callback, _)| callback == "set_cpumask");
        let told: Vec<(u32, u32)> = told.map(|(_, it)| (it["cpus"], it["own"])).collect();
        let of_sections = &told[told.len() - 4..];
        let is_bound = |(cpus, own): (u32, u32)| cpus.count_ones() == 1 && own == 0;
        assert!(
            is_bound(of_sections[0]) && is_bound(of_sections[2]),
            "{what}: {told:?}"
        );
        assert_eq!([of_sections[1], of_sections[3]], [(0b110, 1); 2], "{what}");
        // The other masks never change.
        assert_eq!(only(&seen, 100, "of"), [0b110], "{what}");
        assert_eq!(only(&seen, 100, "allowed"), [2], "{what}");
        let order: Vec<(&str, u32)> = its
            .iter()
            .map(|(callback, it)| (callback.as_str(), it["own"]))
            .collect();
        // To 6.18 the policy hears of it when the task has left its queue, or has been preempted
        // and put back: it is taken out once more. Since 6.19 the task still runs.
        let left = [
            ("stopping", 1),
            ("quiescent", 1),
            ("set_cpumask", 0),
            ("runnable", 0),
        ];
        let goes_on = [("running", 0), ("stopping", 0)];
        let change = [&left[..], &goes_on].concat();
        let want = if kernel < Kernel::V6_19 {
            &left[..]
        } else {
            &change
        };
        let at: Vec<usize> = (0..order.len())
            .filter(|at| order[*at] == ("set_cpumask", 0))
            .collect();
        assert_eq!(at.len(), 2, "{what}");
        for at in at {
            assert_eq!(&order[at - 2..][..want.len()], want, "{what}");
        }
    }
}

#[test]
fn an_end_without_a_section_and_an_affinity_against_one_are_told_and_change_nothing() {
    let workload = "[task.t]\ncpus = \"1-2\"\n\
        do = \"migrate_enable, run(1ms), migrate_disable, setaffinity(t, {0}), run(1ms), \
        setaffinity(t, {1,2,3}), run(1ms), migrate_enable, run(1ms)\"";
    for kernel in [Kernel::V6_18, Kernel::V7_2] {
        let summary = run(kernel, workload);
        for told in [
            "is in none; a kernel warns",
            "until the section that forbids migration ends",
        ] {
            let is_told = summary.notes.iter().any(|note| note.contains(told));
            assert!(is_told, "{told}: {:?}", summary.notes);
        }
        // No switch has bound it: an affinity that has its CPU is shown at once.
        let seen = seen(kernel, workload);
        assert!(
            only(&seen, 100, "of").contains(&0b1110),
            "{}",
            kernel.name()
        );
        assert_eq!(only(&seen, 100, "own"), [1], "{}", kernel.name());
    }
}

#[test]
fn the_kernels_state_of_a_task_is_right_in_every_callback() {
    let seen = seen(Kernel::V6_18, PINNED);
    let (sleeps, waking, dead, new) = (1, 0x200, 0x80, 0x800);
    assert_eq!(
        as_pairs(&of(&seen, 103, "state")),
        [
            ("init_task", new),
            ("enable", new),
            ("set_weight", new),
            // `wake_up_new_task()` begins with TASK_RUNNING.
            ("select_cpu", 0),
            ("runnable", 0),
            ("enqueue", 0),
            ("running", 0),
            ("stopping", sleeps),
            ("quiescent", sleeps),
            ("select_cpu", waking),
            ("runnable", waking),
            ("enqueue", waking),
            ("stopping", dead),
            ("quiescent", dead),
            ("disable", dead),
            ("exit_task", dead),
        ]
    );
}

#[test]
fn the_policys_state_and_weight_of_a_task_are_right_in_every_callback() {
    // None, ready, enabled; since 7.1 the states have other numbers, one is there while
    // `init_task` is called, and a task is enabled when its weight has been told.
    let [begin, ready, enabled] = ["init_task", "enable", "running"];
    for (kernel, numbers) in [
        (Kernel::V6_12, [0, 2, 3, 3]),
        (Kernel::V6_18, [0, 2, 3, 3]),
        (Kernel::V7_0, [0, 2, 3, 3]),
        (Kernel::V7_1, [1, 3, 4, 3]),
        (Kernel::V7_3, [1, 3, 4, 3]),
    ] {
        let seen = seen(kernel, PINNED);
        for pid in [100, 102, 103] {
            let states = of(&seen, pid, "scx");
            let of_callback = |name: &str| {
                let found = states.iter().find(|(it, _)| it == name);
                found.map(|(_, state)| *state)
            };
            let read = [begin, ready, enabled, "set_weight"].map(of_callback);
            assert_eq!(read, numbers.map(Some), "{}: {pid}", kernel.name());
        }
        let weights = of(&seen, 100, "weight");
        assert_eq!(
            weights[..2],
            [("init_task".into(), 0), ("enable".into(), 33)]
        );
        assert_eq!(only(&seen, 100, "prio"), [125]);
        assert_eq!(only(&seen, 100, "waits"), [1]);
    }
}

#[test]
fn an_affinity_that_has_the_cpu_of_a_task_that_may_not_migrate_is_set_and_told() {
    let seen = seen(
        Kernel::V7_2,
        "[task.t]\ncpus = \"1-2\"\nmigration_disabled = true\n\
         do = \"loop(6)[ run(1ms), sleep(5ms) ]\"\n\
         [task.other]\ncpus = \"0\"\n\
         do = \"sleep(9ms), setaffinity(t[0], {1, 3}), sleep(9ms), setaffinity(t[0], {2})\"\n",
    );
    assert_eq!(only(&seen, 100, "cpus"), [0b10]);
    // The last one would have to wait: it is left out.
    assert_eq!(only(&seen, 100, "of"), [0b110, 0b1010]);
    let told: Vec<_> = seen
        .iter()
        .filter_map(|(_, fields)| fields.get("told"))
        .collect();
    assert_eq!(
        told,
        [&0b10, &0b1, &0b10],
        "at attaching, of both, and then of `t`"
    );
}

#[test]
fn a_task_that_may_not_migrate_moves_when_its_cpu_goes_and_the_run_says_so() {
    let run = Run {
        cpus: 4,
        until: Nanos::from_millis(40),
        ..Run::new(
            "fifo",
            "[hotplug.h]\ncpu = 2\noffline = \"20ms\"\n\
             [task.t]\ncpus = \"2-3\"\nmigration_disabled = true\n\
             do = \"loop(inf)[ run(1ms), sleep(1ms) ]\"\n",
        )
    };
    let (collector, summary) = run.execute();
    let end = SimTime::ZERO + Nanos::from_millis(40);
    let turns = |cpu| {
        collector
            .turns(cpu, end)
            .iter()
            .filter(|(who, ..)| who == "t")
            .count()
    };
    assert!(
        (9..=11).contains(&turns(2)) && (9..=11).contains(&turns(3)),
        "half each"
    );
    let is_told = |note: &String| note.contains("moves from CPU 2 to CPU 3");
    assert_eq!(
        summary.notes.iter().filter(|it| is_told(it)).count(),
        1,
        "{:?}",
        summary.notes
    );
}
