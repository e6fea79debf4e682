//! `runslice stat` on real kernels, in virtual machines: `make test-vm`.

#![cfg(feature = "live")]

use std::path::Path;

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
    let guest = guest!().counted().timeout("200s");
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

/// Three loads on one CPU: hogs in turns, sleepers beside a hog, tasks that wake each other.
const LOADS: [(&str, &str); 3] = [
    (
        "hogs",
        "[task.hog]\ncount = 3\ncpus = \"1\"\ndo = \"run(inf)\"\n",
    ),
    (
        "sleepers",
        "[task.hog]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
         [task.sleeper]\ncount = 5\ncpus = \"1\"\ndo = \"loop(inf)[ sleep(7ms), run(600us) ]\"\n",
    ),
    (
        "pairs",
        "[chan.go]\nkind = \"pipe\"\n[chan.back]\nkind = \"pipe\"\n\
         [task.first]\ncpus = \"1\"\ndo = \"loop(inf)[ run(900us), send(go), recv(back) ]\"\n\
         [task.second]\ncpus = \"1\"\ndo = \"loop(inf)[ recv(go), run(400us), send(back) ]\"\n",
    ),
];

/// Run time, wait and turns.
type Sums = [f64; 3];

/// The tasks that a reading holds, by number.
fn tasks(text: &str) -> Vec<(u32, Sums)> {
    let lines = text.lines().filter_map(|line| {
        let (path, numbers) = line.split_once("/schedstat:")?;
        let pid = path.rsplit('/').next()?.parse().ok()?;
        let mut numbers = numbers
            .split(' ')
            .map(|number| number.parse().unwrap_or(0.0));
        Some((pid, [numbers.next()?, numbers.next()?, numbers.next()?]))
    });
    lines.collect()
}

/// What tasks did between two readings; those that only one of them has are left out.
fn grown(before: &[(u32, Sums)], after: &[(u32, Sums)], of: impl Fn(u32) -> bool) -> Sums {
    let mut sums = [0.0; 3];
    for (pid, now) in after.iter().filter(|(pid, _)| of(*pid)) {
        if let Some((_, then)) = before.iter().find(|(known, _)| known == pid) {
            (0..3).for_each(|at| sums[at] += now[at] - then[at]);
        }
    }
    sums
}

fn assert_close(what: &str, [a, b]: [Sums; 2]) {
    for (at, name) in ["run", "wait", "turns"].into_iter().enumerate() {
        let off = (a[at] - b[at]).abs() / a[at].max(b[at]);
        assert!(
            off < 0.01,
            "{what}, {name}: {a:?} and {b:?}, {:.2} % off",
            off * 100.0
        );
        println!("{what}, {name}: {:.3} % off", off * 100.0);
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn statistics_of_cpus_tasks_and_events_agree_within_a_hundredth() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stat-loads");
    std::fs::create_dir_all(&folder).expect("the folder for tests is writable");
    let files = LOADS.map(|(name, tasks)| {
        let path = folder.join(format!("{name}.toml"));
        let text = format!("[workload]\nname = \"{name}\"\n[machine]\ncpus = 2\n{tasks}");
        std::fs::write(&path, text).expect("the folder for tests is writable");
        path
    });
    // The snapshot of the CPUs lies between two of the tasks, so that it is compared with their
    // mean: reading a hundred files takes a while.
    let script = "\
        look() {
            echo \"FIRST $1\"; grep -H . /proc/[0-9]*/task/*/schedstat 2>/dev/null
            echo \"CPUS $1\"; cat /proc/schedstat
            echo \"SECOND $1\"; grep -H . /proc/[0-9]*/task/*/schedstat 2>/dev/null
            echo \"DONE $1\"
        }
        for load in \"$@\"; do
            echo \"LOAD $load\"
            runslice play $load --for 8s --events /e.jsonl --format csv --table tasks >/t.csv &
            play=$!
            sleep 3; look before; sleep 5; look after; wait $play
            echo EVENTS; cat /t.csv; echo OVER
        done";
    let paths: Vec<&Path> = files.iter().map(std::path::PathBuf::as_path).collect();
    // By the computer's clock: numbers of one moment are compared, and not those of two runs.
    let guest = guest!().timeout("200s");
    let text = guest.good(script, &paths).stdout;
    for (text, (name, _)) in text.split("LOAD ").skip(1).zip(LOADS) {
        let look = |when: &str| {
            let part = |from: &str, to: &str| {
                between(text, &format!("{from} {when}\n"), &format!("{to} {when}\n")).to_owned()
            };
            let cpus = snapshots(&part("CPUS", "SECOND")).remove(0);
            let (first, second) = (
                tasks(&part("FIRST", "CPUS")),
                tasks(&part("SECOND", "DONE")),
            );
            let middle: Vec<(u32, Sums)> = second
                .iter()
                .filter_map(|(pid, late)| {
                    let (_, early) = first.iter().find(|(known, _)| known == pid)?;
                    Some((*pid, [0, 1, 2].map(|at| f64::midpoint(early[at], late[at]))))
                })
                .collect();
            (cpus, middle)
        };
        let ((cpus_before, before), (cpus_after, after)) = (look("before"), look("after"));
        let counted = ["cpu_time", "run_delay", "pcnt"].map(|field| {
            let sum = |snapshot: &Snapshot| -> u64 {
                snapshot.cpus().filter_map(|cpu| cpu.get(field)).sum()
            };
            (sum(&cpus_after) - sum(&cpus_before)) as f64
        });
        let all = grown(&before, &after, |_| true);
        assert_close(&format!("{name}: CPUs and tasks"), [counted, all]);

        let table = between(text, "EVENTS\n", "OVER");
        let mut rows = table
            .lines()
            .map(|line| line.split(',').collect::<Vec<&str>>());
        let titles = rows.next().expect("titles");
        let column = |name: &str| {
            let at = titles.iter().position(|title| *title == name);
            at.unwrap_or_else(|| panic!("no column {name}: {titles:?}"))
        };
        let columns = ["run_ns", "wait_ns", "runs"].map(column);
        let (pid, task) = (column("pid"), column("name"));
        let groups = ["hog", "sleeper", "first", "second"];
        let ours: Vec<Vec<&str>> = rows
            .filter(|row| {
                groups
                    .iter()
                    .any(|group| row[task].split('.').next() == Some(group))
            })
            .collect();
        let pids: Vec<u32> = ours
            .iter()
            .filter_map(|row| row[pid].parse().ok())
            .collect();
        assert!(pids.len() >= 2, "{table}");
        let sums = columns.map(|at| -> f64 {
            ours.iter()
                .map(|row| row[at].parse::<f64>().expect("a number"))
                .sum()
        });
        let kernel = grown(&before, &after, |pid| pids.contains(&pid));
        // The same load over another length of time: latency, runslice, and the parts of time.
        let means = |[run, wait, turns]: Sums| [run / turns, wait / turns, run / (run + wait)];
        assert_close(
            &format!("{name}: events and tasks"),
            [means(sums), means(kernel)],
        );
    }
}
