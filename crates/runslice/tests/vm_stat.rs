//! `runslice stat` on real kernels, in virtual machines: `make test-vm`.

#![cfg(feature = "live")]

use runslice_tests::guest;
use stats::schedstat::{SchedstatReader, Snapshot};

/// What stands between two marks of a guest's output.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text
        .split_once(begin)
        .unwrap_or_else(|| panic!("no {begin}: {text}"));
    rest.split_once(end)
        .unwrap_or_else(|| panic!("no {end}: {text}"))
        .0
}

fn snapshots(text: &str) -> Vec<Snapshot> {
    let mut reader = SchedstatReader::new(text.as_bytes());
    let next = || {
        reader
            .next_snapshot()
            .unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    std::iter::from_fn(next).collect()
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn version_4_of_a_live_o1_keeps_the_invariants() {
    let script = "\
        runslice run o1 &
        until runslice status | grep -q ^since; do sleep 0.1; done
        # Hogs that end, so that CPUs idle and are robbed; sleepers; forks; a task that yields.
        for i in 1 2 3; do
            sh -c 'while :; do :; done' & hogs=\"$hogs $!\"
        done
        (while :; do sleep 0.02; done) &
        (while :; do sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'; sleep 0.1; done) &
        runslice stat record /a.stat --as-version 4 --for 1s; echo \"off: $?\"
        (sleep 3; kill $hogs) &
        runslice stat record /a.stat --as-version 4 --enable --for 5s --every 500ms
        echo \"on: $?, switch $(cat /proc/sys/kernel/sched_schedstats)\"
        runslice stop
        runslice stat record /b.stat --as-version 4 --enable; echo \"without: $?\"
        echo BEGIN; cat /a.stat; echo END";
    let guest = guest!().counted().with("taskset").timeout("200s");
    let text = guest.good(script, &[]).stdout;
    for said in ["off: 4\n", "on: 0, switch 0\n", "without: 4\n"] {
        assert!(text.contains(said), "no `{said}`: {text}");
    }
    let snapshots = snapshots(between(&text, "BEGIN\n", "END"));
    assert!(snapshots.len() >= 8, "{text}");
    for snapshot in &snapshots {
        let sum = |name| -> u64 { snapshot.cpus().filter_map(|cpu| cpu.get(name)).sum() };
        for cpu in snapshot.cpus() {
            let f = |name| cpu.get(name).expect("a counter of version 4");
            let what = format!("{} ms, cpu{}: {text}", snapshot.timestamp(), cpu.number());
            assert_eq!(
                f("lb_cnt"),
                f("lb_idle") + f("lb_busy") + f("lb_resched"),
                "{what}"
            );
            assert!(f("lb_nobusy") <= f("lb_cnt"), "{what}");
            assert_eq!(f("pcnt"), f("sched_noswitch"), "{what}");
            assert!(f("sched_switch") <= f("sched_noswitch"), "{what}");
            assert!(f("sched_noswitch") <= f("sched_cnt"), "{what}");
            assert!(
                f("yld_act_empty") + f("yld_exp_empty") <= f("yld_cnt"),
                "{what}"
            );
        }
        assert_eq!(sum("pt_gained"), sum("pt_lost"), "{text}");
    }
    let last = snapshots.last().expect("snapshots");
    let sum = |name| -> u64 { last.cpus().filter_map(|cpu| cpu.get(name)).sum() };
    for name in [
        "sched_switch",
        "lb_busy",
        "pt_gained",
        "cpu_time",
        "run_delay",
        "lb_idle",
    ] {
        assert!(sum(name) > 0, "{name} never moved: {text}");
    }
}
