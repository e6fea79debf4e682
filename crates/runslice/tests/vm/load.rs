//! The loads on a real kernel, in virtual machines that count instructions, and `reproduce` on
//! them: `make test-vm`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use runslice_tests::guest::KERNELS;
use runslice_tests::{folder, guest};
use serde_json::{Value, json};

/// Runs a plan under mlfq and gives what each run printed, by its id.
fn series(kernel: &str, runs: &[(&str, &str)]) -> Vec<(String, Value)> {
    let share = folder!(&format!("vm-load-{kernel}"));
    let runs: Vec<Value> = runs
        .iter()
        .map(|(id, command)| {
            // A bar stands for a space within a word.
            let words = command.split(' ').map(|word| word.replace('|', " "));
            let words: Vec<String> = ["runslice", "load"]
                .map(str::to_owned)
                .into_iter()
                .chain(words)
                .chain(["--format", "json"].map(str::to_owned))
                .collect();
            json!({ "id": id, "command": words, "timeout_s": 100 })
        })
        .collect();
    fs::write(share.join("plan.json"), json!({ "runs": runs }).to_string()).expect("writable");
    let guest = guest!()
        .kernel(kernel)
        .counted()
        .cpus("1")
        .timeout("600s")
        .share(&share);
    let _ = guest.options(&["--mips", "250"]).good(
        "runslice run mlfq -- runslice load series plan.json -o results.jsonl",
        &[],
    );
    let text = fs::read_to_string(share.join("results.jsonl")).expect("the guest has written it");
    let results = text.lines().map(|line| {
        let ran: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(ran["failed"], Value::Null, "{kernel}: {ran}");
        assert_eq!(ran["policy"][1][0], "mlfq", "{kernel}: {ran}");
        let printed = ran["stdout"].as_str().expect("text");
        let id = ran["id"].as_str().expect("text").to_owned();
        (id, serde_json::from_str(printed).expect("figures"))
    });
    results.collect()
}

fn figure(results: &[(String, Value)], id: &str, name: &str) -> f64 {
    let (_, told) = results.iter().find(|(it, _)| it == id).expect("it was run");
    let value = told["figures"][name]["value"].as_f64();
    value.unwrap_or_else(|| panic!("{id} has no {name}: {told}"))
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
#[expect(
    clippy::too_many_lines,
    reason = "a table of loads that share one boot"
)]
fn loads_run_under_a_policy_and_what_they_tell_agrees_with_itself() {
    for kernel in KERNELS {
        let results = series(
            kernel,
            &[
                ("chat", "--callbacks chat --rooms 2 --users 5 --messages 10"),
                ("echo", "echo --keys 60 --hogs 4"),
                ("hog", "levels --task hog:|sleep|1s;|run --for 5s --slices"),
                (
                    "short",
                    "levels --task w:|run|9ms|sleep|5ms --for 3s --settle 1s --slices",
                ),
                (
                    "turnaround",
                    "turnaround --hogs 2 --hog-work 300ms --interactive 1 --files 3",
                ),
                ("aim", "aim --users 1,2 --jobs 20 --size 5"),
                (
                    "beside",
                    "levels --task a:|run|2ms|sleep|9ms --task hog:|run --for 5s --settle 1s \
                     --slices",
                ),
                (
                    "statistics",
                    "--schedstats on sampler --every 1s --intervals 2 --hogs 2 --settle 1s",
                ),
                (
                    "bound",
                    "levels --task one@0:|run --for 1s --slices --sample 2ms",
                ),
            ],
        );
        let of = |id: &str, name: &str| figure(&results, id, name);
        // 2 rooms, 5 users, 10 messages, each sent once and heard four times.
        assert_eq!(of("chat", "messages"), 500.0, "{kernel}");
        assert_eq!(of("echo", "shown_number"), 60.0, "{kernel}");
        let parts = ["nobody", "hog", "daemon", "build", "other"];
        let sum: f64 = parts
            .iter()
            .map(|it| of("echo", &format!("{it}_part")))
            .sum();
        assert!((sum - 100.0).abs() < 1e-6, "{kernel}: {sum}");
        // The trace tells of a part of what the program itself sees.
        assert!(
            of("echo", "response_p50") < of("echo", "seen_p50"),
            "{kernel}"
        );
        // Down through every queue, and the first is left after 10 ms, within a tick of 4 ms.
        let (_, told) = results
            .iter()
            .find(|(id, _)| id == "hog")
            .expect("it was run");
        let rows = told["tables"]["slices"]["rows"].as_array().expect("rows");
        let mut levels: Vec<u64> = rows
            .iter()
            .map(|row| row[4].as_u64().expect("a level"))
            .collect();
        levels.dedup();
        assert_eq!(levels, (0..20).collect::<Vec<u64>>(), "{kernel}");
        let first = rows.iter().filter(|row| row[4] == 0);
        let first: u64 = first.map(|row| row[2].as_u64().expect("a time")).sum();
        assert!(
            (10_000_000..=14_000_000).contains(&first),
            "{kernel}: {first} ns"
        );
        // Below 10 ms of work nothing sinks.
        assert_eq!(of("short", "w_level_0_part"), 100.0, "{kernel}");
        assert!(
            of("turnaround", "time") >= of("turnaround", "hogs_time"),
            "{kernel}"
        );
        assert!(of("aim", "peak_jobs_per_min") > 0.0, "{kernel}");
        // Each turn of each of its threads takes several callbacks of some hundred instructions.
        let turns = of("chat", "switches_voluntary") + of("chat", "switches_forced");
        assert!(of("chat", "callbacks") > 2.0 * turns, "{kernel}");
        let each = of("chat", "callbacks_time") / of("chat", "callbacks");
        assert!((0.1..100.0).contains(&each), "{kernel}: {each} us");
        // What the kernel counts is what its events say.
        for name in ["a_runslice", "hog_runslice", "hog_latency"] {
            let traced = name.replace('_', "_traced_");
            let (counted, traced) = (of("beside", name), of("beside", &traced));
            let off = (counted / traced - 1.0).abs();
            assert!(off < 0.01, "{kernel}: {name} is {counted} and {traced} us");
        }
        // Whoever sleeps for a second is back no earlier, and two hogs leave nothing of the CPU.
        assert!(of("statistics", "interval_min") >= 0.99, "{kernel}");
        let busy = of("statistics", "busy");
        assert!((95.0..=105.0).contains(&busy), "{kernel}: {busy} %");
        // 500 samples; the recorder alone takes a CPU 200 times.
        let slices = of("bound", "one_slices");
        assert!(slices >= 450.0, "{kernel}: {slices}");
    }
}

fn reproduce(names: &[&str], experiments: &Path, results: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runslice"))
        .arg("reproduce")
        .args(names)
        .args(["--machine", "vm", "--quick", "--experiments"])
        .arg(experiments)
        .arg("-d")
        .arg(results)
        .output()
        .expect("runslice starts")
}

const EXPERIMENT: &str = r#"
[experiment]
document = "002"
title    = "A hog sinks through every queue"
source   = "Figure 2"

[guest]
mips = 250

[arm.mlfq]
policy = "mlfq"

[arm.own]
policy = "default"

[runs.hog]
command = [
    "runslice", "load", "levels", "--task", "hog: sleep 1s; run", "--for", "5s", "--slices",
    "--format", "json",
]

[runs.failing]
command = ["false"]

[probe.levels]
who    = "hog"
runs   = ["hog"]
levels = "changes"

[metric.run]
value = "hog_run"
unit  = "us"

[[statement]]
id = "C7"

[[statement.test]]
kind  = "trace"
runs  = "hog"
arm   = "mlfq"
probe = "levels"
want  = "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"

[[statement]]
id = "C1"

[[statement.test]]
kind   = "equal"
margin = 0.5 # a guest that has just booted has work of its own
runs   = "hog"
metric = "run"
arm    = "mlfq"
base   = "own"

[[statement]]
id = "C2"

[[statement.test]]
kind   = "equal"
runs   = "failing"
metric = "run"
arm    = "mlfq"
base   = "own"
"#;

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn an_experiment_is_rerun_on_a_kernel_judged_and_kept() {
    let here = folder!("vm-reproduce");
    let experiments = here.join("experiments");
    fs::create_dir_all(experiments.join("002-x")).expect("writable");
    let statement = |id: &str| format!("[{id}]\ndocument = \"002\"\ntext = \"It is so.\"\n");
    let statements: String = ["C1", "C2", "C7"].map(statement).concat();
    fs::write(experiments.join("statements.toml"), statements).expect("writable");
    fs::write(experiments.join("002-x/vm.toml"), EXPERIMENT).expect("writable");
    let results = here.join("results");
    let first = reproduce(&["002-x"], &experiments, &results);
    let text = String::from_utf8_lossy(&first.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&first.stderr).into_owned();
    assert_eq!(first.status.code(), Some(0), "{text}{complaints}");
    // A quick look says no more than that.
    assert!(text.contains("C7   same direction"), "{text}");
    assert!(text.contains("C1   same direction"), "{text}");
    // A command that fails leaves its statement open, with its status, and stops nothing.
    assert!(text.contains("C2   undecided"), "{text}");
    assert!(text.contains("exit status: 1"), "{text}");
    assert_eq!(complaints.matches("runs\n").count(), 2, "{complaints}");
    // Another time nothing is booted.
    let again = reproduce(&["002-x"], &experiments, &results);
    assert_eq!(again.stdout, first.stdout);
    assert_eq!(String::from_utf8_lossy(&again.stderr), "");
}

#[test]
#[ignore = "needs QEMU: make test-vm"]
fn what_cannot_be_had_is_said_in_a_line_and_the_rest_goes_on() {
    let here = folder!("vm-reproduce-lacks");
    let experiments = here.join("experiments");
    let write = |name: &str, text: &str| {
        fs::create_dir_all(experiments.join(name)).expect("writable");
        fs::write(experiments.join(name).join("vm.toml"), text).expect("writable");
    };
    let statement = |id: &str| format!("[{id}]\ndocument = \"002\"\ntext = \"It is so.\"\n");
    let statements: String = ["C1", "C2", "C3"].map(statement).concat();
    fs::create_dir_all(&experiments).expect("writable");
    fs::write(experiments.join("statements.toml"), statements).expect("writable");
    let small = |id: &str, guest: &str| {
        format!(
            "[experiment]\ndocument = \"002\"\ntitle = \"t\"\nsource = \"s\"\n\
             [guest]\nmips = 250\n{guest}\n[arm.own]\npolicy = \"default\"\n\
             [runs.aim]\ncommand = [\"runslice\", \"load\", \"aim\", \"--users\", \"1\", \
             \"--jobs\", \"5\", \"--size\", \"5\", \"--format\", \"json\"]\n\
             [metric.peak]\nvalue = \"peak_jobs_per_min\"\n\
             [[statement]]\nid = \"{id}\"\n\
             [[statement.test]]\nkind = \"flat\"\nruns = \"aim\"\nmetric = \"peak\"\n\
             arm = \"own\"\nmargin = 0.5\n"
        )
    };
    write("002-a", &small("C1", "kernel = \"6.99\""));
    write("002-b", &small("C2", "with = [\"no-such-program\"]"));
    let results = here.join("results");
    let none = reproduce(&["002-a", "002-b"], &experiments, &results);
    let told = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none.status.code(), Some(4), "{told}");
    let lines: Vec<&str> = told.lines().collect();
    let kernel = "reproduce: 002-a, own, 1 CPU: kernel 6.99: no kernel 6.99 with sched_ext";
    let program = "reproduce: 002-b, own, 1 CPU: no no-such-program";
    // One line each, in any order, and their number.
    assert_eq!(lines.len(), 3, "{told}");
    for what in [
        kernel,
        program,
        "reproduce: 2 of 2 guests brought no results",
    ] {
        let count = lines.iter().filter(|line| line.starts_with(what)).count();
        assert_eq!(count, 1, "{told}");
    }
    write("002-c", &small("C3", ""));
    let some = reproduce(&["--all"], &experiments, &results);
    let text = String::from_utf8_lossy(&some.stdout).into_owned();
    let told = String::from_utf8_lossy(&some.stderr).into_owned();
    assert_eq!(some.status.code(), Some(0), "{text}{told}");
    assert!(told.contains(kernel) && told.contains(program), "{told}");
    assert!(
        text.contains("C1   undecided") && text.contains("C3   same direction"),
        "{text}"
    );
}

/// In a guest that is the computer itself: no other guest is booted from there.
#[test]
#[ignore = "boots a kernel: make test-vm"]
fn experiments_are_rerun_on_the_kernel_of_this_computer() {
    // Cargo makes it with the tests of the workspace.
    let reruns = Path::new(env!("CARGO_BIN_EXE_runslice")).with_file_name("runslice-reproduce");
    for kernel in KERNELS {
        let share = folder!(&format!("vm-reproduce-host-{kernel}"));
        let script = "runslice reproduce 001-nice-shares 002-starvation \
            --machine host --quick --format json -o report.json 2>said.txt
            echo \"status $?, left: $(cat /sys/kernel/sched_ext/state)\"
            runslice run fifo -- runslice reproduce 002-starvation --machine host --quick; \
            echo \"beside another: $?\"";
        let guest = guest!().kernel(kernel).cpus("1").timeout("900s");
        let guest = guest.options(&["--det", "--mips", "31"]).share(&share);
        let said = guest.with(&reruns.to_string_lossy()).run(script, &[]);
        let text = said.text();
        let complaints = fs::read_to_string(share.join("said.txt")).unwrap_or_default();
        assert!(
            text.contains("status 0, left: disabled"),
            "{kernel}: {text}{complaints}"
        );
        // `run` says 1 for a command that failed, and how that ended.
        for part in [
            "beside another: 1",
            "ended with exit status: 4",
            "another policy is attached",
        ] {
            assert!(text.contains(part), "{kernel}: no `{part}`: {text}");
        }
        let report = fs::read_to_string(share.join("report.json")).expect("it was written");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let experiments = report["experiments"].as_array().expect("a list");
        let cells = |it: &Value| it["cells"].as_array().expect("a list").clone();
        let cells: Vec<Value> = experiments.iter().flat_map(cells).collect();
        // Three schedulers and two, one metric each; a quick look has one run of each.
        assert_eq!(cells.len(), 5, "{kernel}: {report:#}");
        for cell in &cells {
            assert_eq!(cell["lacks"], Value::Null, "{kernel}: {cell}{complaints}");
            let values = cell["values"].as_array().expect("a list");
            assert_eq!(values.len(), 1, "{kernel}: {cell}");
        }
        let value = |arm: &str, metric: &str| {
            let cell = cells
                .iter()
                .find(|it| it["arm"] == arm && it["metric"] == metric);
            cell.expect("it was run")["values"][0]
                .as_f64()
                .expect("a number")
        };
        // The announcement says 20 to 1.
        let ratio = value("staircase5", "ratio");
        assert!((15.0..25.0).contains(&ratio), "{kernel}: {ratio}");
        assert!(value("mlfq", "hog") < 1.0, "{kernel}: {cells:?}");
    }
}

/// A file is 80 ms of work and 48 ms of waiting as for a disk. A parent that looked again and again
/// for the end of its child, instead of waiting for it, kept the child from the CPU under O(1) for
/// a whole slice and used three times as much CPU time.
#[test]
#[ignore = "boots a kernel: make test-vm"]
fn who_waits_as_for_a_disk_uses_no_cpu_meanwhile() {
    let load = "runslice run o1 -- runslice load turnaround --hogs 0 --interactive 0 \
                --compiles 1 --files 10 --file-work 80ms --file-wait 48ms --format json";
    for kernel in KERNELS {
        let guest = guest!().kernel(kernel).cpus("1").counted();
        let text = guest.good(load, &[]).stdout;
        let end = text.rfind("\n}").map_or(text.len(), |at| at + 2);
        let told: Value = serde_json::from_str(&text[..end]).expect("figures");
        let of = |name: &str| told["figures"][name]["value"].as_f64().expect("a figure");
        let used = of("user") + of("system");
        assert!(
            (0.8..1.4).contains(&used),
            "{kernel}: {used} s of CPU time for 0.8 s of work"
        );
        // Work and waits in turn: 1.28 s, and nothing else wants the CPU.
        assert!(
            (1.28..1.9).contains(&of("time")),
            "{kernel}: {} s",
            of("time")
        );
    }
}
