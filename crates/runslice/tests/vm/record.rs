//! `runslice record` on real kernels, in virtual machines, and what `--from` makes of it.

use std::path::{Path, PathBuf};

use runslice_tests::guest;

/// A nice task that is bound to CPU 1 and was there before; another that wakes by a clock; a
/// command whose processes wake each other.
const RECORD: &str = "\
    nice -n 7 taskset 2 sh -c 'while :; do :; done' & hog=$!
    echo 0 >/sys/kernel/tracing/tracing_on
    runslice record -o t.dat --format json -- \
        sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do echo $i | cat >/dev/null; sleep 0.02; done' \
        >said.json; echo status $?
    kill $hog
    cat said.json
    echo tracing $(cat /sys/kernel/tracing/tracing_on)
    ls /sys/kernel/tracing/instances | sed 's/^/left /'
    runslice convert t.dat -o load.toml; echo status $?
    cat load.toml
    runslice sim fifo mlfq --from t.dat --format csv -o sim.csv; echo status $?
    wc -l <sim.csv | sed 's/^/lines /'";

fn check_recording(kernel: &str) {
    let said = guest!()
        .kernel(kernel)
        .counted()
        .with("nice")
        .good(RECORD, &[]);
    let (text, stdout) = (said.text(), said.stdout);
    let statuses = stdout.lines().filter(|line| *line == "status 0").count();
    assert_eq!(statuses, 3, "{text}");
    let number = |key: &str| -> u64 {
        let line = stdout
            .lines()
            .find(|line| line.contains(&format!("\"{key}\":")));
        let digits = line
            .unwrap_or_else(|| panic!("{key}: {text}"))
            .split(':')
            .next_back();
        let digits = digits.unwrap().trim().trim_end_matches(',');
        digits.parse().unwrap_or_else(|_| panic!("{key}: {text}"))
    };
    assert!(number("events") > 500, "{text}");
    assert_eq!(number("lost"), 0, "{text}");
    assert!(number("threads") > 20, "{text}");
    assert!(number("bytes") > 8192 && number("event_ns") > 0, "{text}");
    assert!(number("switch_ns") > 0, "{text}");
    // The machine's own tracing stays as it was, and nothing of ours is left.
    assert!(
        stdout.contains("tracing 0") && !stdout.contains("left "),
        "{text}"
    );
    // The hog was nice and bound before the recording began.
    let hog = stdout.split("\n[").find(|part| part.contains("nice = 7"));
    let hog = hog.unwrap_or_else(|| panic!("{text}"));
    assert!(hog.contains("cpus = \"1\""), "{hog}");
    // Who sleeps by clock, and who waits for whom.
    assert!(
        stdout.contains("sleep(") && stdout.contains("_wakes)"),
        "{text}"
    );
    assert!(text.contains("threads were looked at"), "{text}");
    let lines = stdout.lines().find_map(|line| line.strip_prefix("lines "));
    assert!(
        lines.is_some_and(|lines| lines.trim().parse::<u32>().unwrap() > 10),
        "{text}"
    );
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_load_is_recorded_and_simulated_with_what_its_tasks_may_do() {
    check_recording("6.18");
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_killed_recording_stops_and_the_next_one_removes_it() {
    let script = "\
        runslice record -o killed.dat & sleep 1; kill -9 $!; wait
        cd /sys/kernel/tracing/instances; for i in *; do echo left $(cat $i/tracing_on); done; cd -
        runslice record -o t.dat --for 200ms; echo status $?
        ls /sys/kernel/tracing/instances | sed 's/^/still /'
        ls -a | grep -c killed | sed 's/^/files /'
        runslice record -o t.dat --for 20s & sleep 1; kill -INT $!; wait $!; echo status $?
        runslice record -o none.dat --event no:such; echo status $?
        runslice record -o /nowhere/t.dat --for 1s; echo status $?
        runslice record -o t.dat --for 200ms -- sh -c 'exit 7'; echo status $?
        umount /sys/kernel/tracing; umount /sys/kernel/debug
        runslice record --with tracefs -o t.dat --for 1s; echo status $?
        runslice record -o e.jsonl --for 500ms; echo status $?
        runslice sim fifo --from e.jsonl >/dev/null; echo status $?";
    let said = guest!().counted().good(script, &[]);
    let (text, stdout) = (said.text(), said.stdout);
    assert!(stdout.contains("left 0"), "the kernel has stopped: {text}");
    assert!(!stdout.contains("still "), "{text}");
    assert!(stdout.contains("files 0"), "{text}");
    assert!(
        text.contains("1 trace buffer of killed recordings removed"),
        "{text}"
    );
    let statuses: Vec<&str> = stdout
        .lines()
        .filter_map(|line| line.strip_prefix("status "))
        .collect();
    // Whole; interrupted; no such event; no such folder; the command's failure; no trace files;
    // with BPF instead, and simulated.
    assert_eq!(
        statuses,
        ["0", "130", "1", "1", "1", "4", "0", "0"],
        "{text}"
    );
    for want in [
        "this kernel has no such event",
        "cannot write /nowhere/t.dat",
        "mount -t tracefs",
        "with BPF: the trace files (tracefs) are not mounted",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
}

/// The policy stops to look at its queue after two seconds, and every task waits for ever. The
/// kernel ejects it after its timeout, and the recording, which began before the fault, tells why.
#[test]
#[ignore = "boots two kernels: make test-vm"]
fn a_stall_of_a_real_kernel_is_explained_with_the_line_of_the_policy() {
    let object = runslice_tests::policy::object("faulty-stops").expect("a test policy");
    let folder = guest::empty_folder(env!("CARGO_TARGET_TMPDIR"), "vm-record-stall");
    let policy = folder.join("stops.bpf.o");
    std::fs::write(&policy, &*object).expect("writable");
    let script = "\
        runslice run \"$1\" --untested -- sleep 60 & sleep 0.7
        runslice record --decisions -o d.jsonl --for 40s; echo status $?
        runslice explain --events d.jsonl; echo status $?";
    for kernel in guest::KERNELS {
        let guest = guest!().kernel(kernel).counted().timeout("180s");
        let said = guest.good(script, &[&policy]);
        let (text, stdout) = (said.text(), said.stdout);
        let statuses: Vec<&str> = stdout
            .lines()
            .filter_map(|line| line.strip_prefix("status "))
            .collect();
        assert_eq!(statuses, ["0", "3"], "{kernel}: {text}");
        for want in [
            "the policy was ejected after",
            "unread-queue: ",
            "put there:  by `enqueue`, faulty-stops.bpf.c:15 (stops_enqueue)",
            "last look:  by `dispatch`, faulty-stops.bpf.c:22 (stops_dispatch)",
        ] {
            assert!(text.contains(want), "{kernel}: {want}: {text}");
        }
    }
}

/// Faults that show when a load comes, with their class. An `enqueue` is to blame for each, and a
/// kernel lets its line be seen or not: nothing tells that of one that ends without an insert.
const FAULTS: [(&str, &str, bool); 5] = [
    ("affinity", "lost", false),
    ("endless-slice", "cpu-held", true),
    ("weight", "passed-over", true),
    ("map-full", "lost", false),
    // The store in the tick is not seen; what is seen is who gave the slice.
    ("renews", "cpu-held", false),
];

const FAULTY: &str = r#"
    hogs() {
        i=0
        while [ $i -lt $1 ]; do
            i=$((i + 1)); sh -c 'while :; do :; done' & pids="$pids $!"
        done
    }
    load() {
        case $1 in
        affinity)
            taskset 1 sh -c 'while :; do :; done' & moved=$!
            pids="$pids $moved"; hogs 3
            for i in 1 2 3 4 5 6; do
                for mask in 2 3 1; do sleep 0.1; taskset -p $mask $moved; done
            done >/dev/null ;;
        weight)
            for nice in -5 5 -5 5; do
                nice -n $nice sh -c 'while :; do :; done' & pids="$pids $!"
            done ;;
        map-full) hogs 90 ;;
        *) hogs 5 ;;
        esac
    }
    runslice record --decisions -o early.jsonl --for 1s; echo early $?
    for object; do
        name=$(basename $object .bpf.o); pids=
        runslice run $object --untested -- sleep 40 >run.txt 2>&1 & run=$!
        i=0
        until grep -q enabled /sys/kernel/sched_ext/state || [ $i -gt 200 ]; do
            i=$((i + 1)); sleep 0.05
        done
        runslice record --decisions -o $name.jsonl --for 14s >record.txt 2>&1 & record=$!
        sleep 3; load $name; wait $record
        kill -9 $pids; kill $run; wait $run
        grep lost record.txt
        echo "fault $name"
        runslice explain --events $name.jsonl; echo status $?
    done"#;

/// Each fault of a policy that a real kernel runs is explained from a recording.
#[test]
#[ignore = "boots two kernels, ten minutes: make test-vm"]
fn five_more_faults_on_real_kernels_are_explained() {
    let folder = guest::empty_folder(env!("CARGO_TARGET_TMPDIR"), "vm-record-faults");
    let mut objects = Vec::new();
    for (name, ..) in FAULTS {
        let object = runslice_tests::policy::object(&format!("faulty-{name}"));
        let path = folder.join(format!("{name}.bpf.o"));
        std::fs::write(&path, &*object.expect("a test policy")).expect("writable");
        objects.push(path);
    }
    let objects: Vec<&Path> = objects.iter().map(PathBuf::as_path).collect();
    for kernel in guest::KERNELS {
        let mut guest = guest!().kernel(kernel).counted().timeout("600s");
        for program in ["nice", "taskset", "sleep"] {
            guest = guest.with(program);
        }
        let guest = guest.options(&["--mips", "500"]);
        let said = guest.good(FAULTY, &objects);
        let (text, stdout) = (said.text(), said.stdout);
        assert!(stdout.contains("early 1"), "{kernel}: {text}");
        assert!(text.contains("no policy is attached"), "{kernel}: {text}");
        let parts: Vec<&str> = stdout.split("fault ").skip(1).collect();
        assert_eq!(parts.len(), FAULTS.len(), "{kernel}: {text}");
        for ((name, class, has_line), part) in FAULTS.into_iter().zip(parts) {
            let what = format!("{kernel}: {name}: {part}");
            assert!(
                part.starts_with(name) && part.contains("status 3"),
                "{what}"
            );
            assert!(part.contains(&format!("\n{class}: ")), "{what}");
            let look = part.split("look at:").nth(1).expect(&what);
            // Long lines are broken where the words end.
            let look = look.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(look.starts_with("by `enqueue`"), "{what}");
            let lines = runslice_tests::faulty::marked(name);
            let is_named = lines
                .iter()
                .any(|line| look.contains(&format!(".bpf.c:{line} ")));
            assert!(is_named || !has_line, "{what}");
        }
    }
}
