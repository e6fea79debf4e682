//! Recordings of schedulers in cid form, compared callback by callback: two below a root on 7.3.4,
//! a root alone on 7.2.12, and a CPU that goes and returns.
//!
//! Compared are the callbacks of schedulers, cgroups and CPUs, and of each task who owns it and
//! what it is told of it. When a guest's task waits or runs is a matter of its other tasks;
//! `subs.rs` and `traces.rs` have that.

use std::collections::BTreeMap;

use model::{ExitKind, Kernel, Nanos, SubSpec};
use runslice_tests::run::Run;
use workload::RunSpec;

use crate::subs::below;

const fn ms(count: u64) -> Nanos {
    Nanos::from_millis(count)
}

const SUBS: &str = include_str!("../golden/traces/subs73.txt");
const ROOT: &str = include_str!("../golden/traces/root72.txt");
const HOTPLUG: &str = include_str!("../golden/traces/hotplug73.txt");

/// The cgroups of `tests/recorder/cids.c`.
const CGROUPS: &str = "[cgroup.a]\n[cgroup.d]\npath = \"/a/d\"\n[cgroup.b]\n";

/// Callbacks of tasks that are compared.
const OF_TASKS: [&str; 8] = [
    "init_task",
    "exit_task",
    "enable",
    "disable",
    "set_weight",
    "set_cmask",
    "cpuctl_prep_move",
    "cpuctl_move",
];

/// The compared lines of each task, and under `-` those of no task. Words of slices and numbers of
/// cgroups are left out; in which order CPUs take their rights over is open.
fn by_task(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut tasks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let (task, told) = match words[..] {
            [task, scheduler, op, word] if OF_TASKS.contains(&op) => {
                let word = if op == "enable" { "" } else { word };
                (task, format!("{scheduler} {op} {word}"))
            }
            [scheduler, op, word] if scheduler.starts_with('S') && op != "update_idle" => {
                let is_of_cgroup = matches!(op, "sub_attach" | "sub_detach");
                let word = if is_of_cgroup { "" } else { word };
                ("-", format!("{scheduler} {op} {word}"))
            }
            _ => continue,
        };
        tasks.entry(task.to_owned()).or_default().push(told);
    }
    for told in tasks.values_mut() {
        let is_right = |line: &String| line.contains("caps_updated");
        for run in told.chunk_by_mut(|one, other| is_right(one) && is_right(other)) {
            run.sort();
        }
    }
    tasks
}

/// That each recorded sequence is how the simulated one ends.
#[track_caller]
fn assert_recorded(recorded: &str, spec: &RunSpec) {
    let summary = sim::run(spec, &mut runslice_tests::collect::Collector::default());
    let summary = summary.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    let simulated = by_task(&summary.printed);
    let recorded = by_task(recorded);
    assert!(recorded.len() >= 2, "{recorded:?}");
    for (task, wanted) in recorded {
        assert!(wanted.len() >= 5, "{task}: {wanted:?}");
        let told = simulated.get(&task).map_or(&[][..], Vec::as_slice);
        let is_same = told.ends_with(&wanted);
        assert!(
            is_same,
            "{task}: {wanted:#?}\nis not how this ends:\n{told:#?}"
        );
    }
}

fn spec(policy: &str, kernel: Kernel, (load, until): (&str, Nanos)) -> RunSpec {
    let load = format!("{CGROUPS}{load}");
    let mut spec = Run {
        cpus: 2,
        hz: 250,
        until,
        ..Run::new(policy, &load)
    }
    .spec();
    spec.machine.kernel = kernel;
    spec
}

#[test]
fn two_below_a_root_are_told_what_a_kernel_told_them() {
    let load = "[task.tvp]\ncgroup = \"/a\"\ncpus = \"1\"\ndo = \"run(inf)\"\n\
        [task.tvm]\ncgroup = \"/b\"\ncpus = \"0\"\n\
        do = \"run(1ms), sleep(200ms), fork(tvmc), waitpid(all), suspend\"\n\
        [task.tvmc]\ncount = 0\ncpus = \"0\"\ndo = \"run(1ms)\"\n\
        [task.main]\ncpus = \"0\"\ndo = \"sleep(350ms), cgroup_move(tvp, b), sleep(100ms), \
        setnice(tvp, 5), sleep(100ms), setaffinity(tvp, all), sleep(100ms), \
        cgroup_weight(a, 50), cgroup_weight(d, 70), sleep(50ms), cgroup_move(tvp, d), \
        sleep(250ms), cgroup_move(tvp, b), suspend\"\n";
    let mut spec = spec("sub", Kernel::V7_3, (load, ms(1_200)));
    spec.policy.subs = vec![
        SubSpec {
            detach_at: Some(ms(950)),
            ..below("a", &[])
        },
        SubSpec {
            attach_at: ms(100),
            ..below("b", &[])
        },
    ];
    let tag = &mut spec.policy.subs[1].policy.set;
    tag.retain(|(name, _)| name != "tag");
    tag.push(("tag".to_owned(), "2".to_owned()));
    assert_recorded(SUBS, &spec);
}

#[test]
fn a_root_in_cid_form_is_told_what_7_2_told_it() {
    let load = "[task.tvp]\ncgroup = \"/a\"\ncpus = \"1\"\ndo = \"run(inf)\"\n\
        [task.tvm]\ncgroup = \"/a\"\ncpus = \"0\"\n\
        do = \"run(1ms), sleep(100ms), fork(tvmc), waitpid(all), suspend\"\n\
        [task.tvmc]\ncount = 0\ncpus = \"0\"\ndo = \"run(1ms)\"\n\
        [task.main]\ncpus = \"0\"\ndo = \"sleep(200ms), setnice(tvp, 5), sleep(100ms), \
        setaffinity(tvp, all), sleep(100ms), cgroup_move(tvp, b), sleep(100ms), \
        cgroup_weight(a, 50), cgroup_weight(d, 70), suspend\"\n";
    let spec = spec("sub-7-2", Kernel::V7_2, (load, ms(700)));
    assert_recorded(ROOT, &spec);
}

/// Who stands below the root hears nothing of a CPU that goes and returns: it has the same rights.
#[test]
fn a_cpu_that_goes_and_returns_is_told_to_the_root_alone() {
    let load = "[hotplug.one]\ncpu = 1\noffline = \"150ms\"\nonline = \"300ms\"\n\
        [task.tvp]\ncgroup = \"/a\"\ndo = \"run(inf)\"\n";
    let mut spec = spec("sub", Kernel::V7_3, (load, ms(450)));
    spec.policy.subs.push(below("a", &[]));
    assert_recorded(HOTPLUG, &spec);
}
