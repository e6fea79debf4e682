//! `runslice bench` on real kernels, in virtual machines: `make test-vm`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use runslice_tests::guest::KERNELS;
use runslice_tests::{folder, guest, object};
use serde_json::Value;

/// The part of `text` between two lines of dashes and `name`.
fn part<'a>(text: &'a str, name: &str) -> &'a str {
    let begin = format!("--- {name}\n");
    let (_, rest) = text
        .split_once(&begin)
        .unwrap_or_else(|| panic!("no `{name}` in: {text}"));
    rest.split("\n--- ").next().unwrap_or(rest)
}

fn runs(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).expect("a run"))
        .collect()
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn hackbench_is_measured_under_the_default_staircase_and_mlfq_and_the_folder_can_be_compared() {
    for kernel in KERNELS {
        // It counts instructions, so that it is no matter how busy this computer is.
        let guest = guest!().kernel(kernel).counted().timeout("300s");
        let guest = guest.with("hackbench");
        let said = guest.run(
            "cd /tmp
            runslice bench default,staircase,mlfq --runs 5 --folder out -- hackbench -g 1 -l 20
            echo \"status $?\"
            echo '--- plan'; cat out/bench.json
            echo '--- runs'; cat out/runs.jsonl
            echo '--- log'; cat out/logs/0005.log
            echo '--- end'; cat /sys/kernel/sched_ext/state /sys/kernel/sched_ext/enable_seq",
            &[],
        );
        let text = &said.text();
        assert_eq!(said.status, Some(0), "{kernel}: {text}");
        // 6: so few runs need not decide anything.
        let ended = ["\nstatus 0\n", "\nstatus 6\n"];
        assert!(ended.iter().any(|it| text.contains(it)), "{kernel}: {text}");
        // 6 attachments of each policy, and the kernel's own scheduler at the end.
        assert!(
            part(text, "end").starts_with("disabled\n12\n"),
            "{kernel}: {text}"
        );
        assert!(part(text, "log").contains("Time: "), "{kernel}: {text}");
        for arm in ["staircase", "mlfq"] {
            let words = format!("{arm} against default: ");
            assert!(text.contains(&words), "{kernel}: {text}");
        }
        assert!(
            text.contains("noise between two arms of default: time_ns "),
            "{kernel}: {text}"
        );
        let runs = runs(part(text, "runs"));
        assert_eq!(runs.len(), 4 * 6, "{kernel}: {text}");
        for run in &runs {
            assert!(run["void"].is_null(), "{kernel}: {run}");
            let number = |key: &str| run[key].as_u64().unwrap_or(0);
            // hackbench starts 20 senders and 20 receivers; each has had a CPU.
            assert!(number("slices") > 40, "{kernel}: {run}");
            for key in ["time_ns", "run_ns", "wait_ns", "memory_bytes"] {
                assert!(number(key) > 0, "{kernel}: {key}: {run}");
            }
            // On two CPUs no more than twice the time on the wall can be used.
            assert!(number("run_ns") < 2 * number("time_ns"), "{kernel}: {run}");
        }
        let out = folder!(&format!("vm-bench-{kernel}"));
        let file = |name: &str, text: &str| fs::write(out.join(name), text).expect("writable");
        file("bench.json", part(text, "plan"));
        let lines: Vec<String> = runs.iter().map(|run| format!("{run}\n")).collect();
        file("runs.jsonl", &lines.concat());
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_runslice"))
            .args(["compare", "--format", "json"])
            .arg(&out)
            .output()
            .expect("runslice starts");
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = document["comparisons"].as_array().expect("a list");
        let plan: Value = serde_json::from_str(part(text, "plan")).expect("JSON");
        assert_eq!(plan["counts"], true, "{kernel}: {plan}");
        // Four main metrics of two policies.
        assert_eq!(rows.len(), 8, "{kernel}: {document}");
        // The time decides, and only what decides is held against the noise.
        for row in rows {
            let decides = row["metric"] == "time_ns";
            assert_eq!(row["goal"], decides, "{kernel}: {row}");
            assert_eq!(row["noise"].is_f64(), decides, "{kernel}: {row}");
        }
    }
}

/// Units of C that include nothing, so that a compiler alone makes objects of them.
fn sources(folder: &Path) {
    fs::create_dir_all(folder.join("src")).expect("writable");
    for unit in 0..24 {
        let mut text = String::new();
        for at in 0..200 {
            let inner = match at {
                0 => "a".to_owned(),
                _ => format!("f{}(a, i)", at - 1),
            };
            let _ = write!(
                text,
                "static int f{at}(int a, int b)\n{{\n\tint c = a * {} + b;\n\n\
                 \tfor (int i = 0; i < b; i++)\n\t\tc ^= (c << {}) + {inner};\n\
                 \treturn c;\n}}\n\n",
                at + unit,
                at % 7 + 1
            );
        }
        let _ = write!(
            text,
            "int unit{unit}(int a)\n{{\n\treturn f199(a, {unit});\n}}\n"
        );
        fs::write(folder.join(format!("src/unit{unit}.c")), text).expect("writable");
    }
    let build = "ls src/*.c | xargs -n 1 -P 4 sh -c 'tcc -c \"$0\" -o \"/tmp/${0##*/}.o\"'\n";
    fs::write(folder.join("build.sh"), build).expect("writable");
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_compile_is_measured_with_the_pointer_sound_and_window_that_people_notice_before_it() {
    for kernel in KERNELS {
        let folder = folder!(&format!("vm-compile-{kernel}"));
        sources(&folder);
        let guest = guest!().kernel(kernel).options(&["--det", "--mips", "250"]);
        let guest = guest.with("tcc").share(&folder).timeout("300s");
        let said = guest.run(
            "runslice bench default,staircase,mlfq --play screen --runs 5 --folder /tmp/out -- \
                sh build.sh
            echo \"status $?\"
            ls /tmp/unit*.o | wc -l
            echo '--- runs'; cat /tmp/out/runs.jsonl
            echo '--- end'; cat /sys/kernel/sched_ext/state; ps
            echo '--- compare'; runslice compare --format json /tmp/out; echo",
            &[],
        );
        let text = &said.text();
        assert_eq!(said.status, Some(0), "{kernel}: {text}");
        let ended = ["\nstatus 0\n24\n", "\nstatus 6\n24\n"];
        assert!(ended.iter().any(|it| text.contains(it)), "{kernel}: {text}");
        assert!(
            text.contains("sh build.sh beside screen: 2 CPUs"),
            "{kernel}: {text}"
        );
        for words in ["late move\n", "underrun\n", "missed frame\n"] {
            // A line for each of default, its second arm, staircase and mlfq.
            assert_eq!(text.matches(words).count(), 4, "{kernel}: {words} {text}");
        }
        let runs = runs(part(text, "runs"));
        assert_eq!(runs.len(), 4 * 6, "{kernel}: {text}");
        for run in &runs {
            assert!(run["void"].is_null(), "{kernel}: {run}");
            assert_eq!(run["played"]["lost"], 0, "{kernel}: {run}");
            let time = run["time_ns"].as_u64().expect("a time");
            let deadlines = run["played"]["deadlines"].as_array().expect("a list");
            let names: Vec<&str> = deadlines
                .iter()
                .filter_map(|it| it["deadline"].as_str())
                .collect();
            assert_eq!(names, ["pointer", "audio", "frame"], "{kernel}: {run}");
            // The player lasts as long as the command: a sound each 10 ms.
            let audio = &deadlines[1];
            let all = audio["met"].as_u64().zip(audio["missed"].as_u64());
            let due = time / 10_000_000;
            let all = all.map_or(0, |(met, missed)| met + missed);
            assert!(
                all + 3 >= due && all <= due + 25,
                "{kernel}: {all} of {due}: {run}"
            );
            // The player's tasks are not the command's: 24 compilers and what starts them.
            assert!(run["slices"].as_u64().unwrap_or(0) > 24, "{kernel}: {run}");
        }
        // Nothing of the workload is left.
        let end = part(text, "end");
        assert!(end.starts_with("disabled\n"), "{kernel}: {text}");
        assert!(
            !end.contains("pointer") && !end.contains("window"),
            "{kernel}: {end}"
        );
        let document: Value =
            serde_json::from_str(part(text, "compare").split("\n\n").next().unwrap_or(""))
                .unwrap_or_else(|error| panic!("{kernel}: {error}: {text}"));
        let rows = document["comparisons"].as_array().expect("a list");
        // Four main metrics of the command and three deadlines, of two policies.
        assert_eq!(rows.len(), 2 * (4 + 3), "{kernel}: {document}");
        let share = rows.iter().filter(|row| {
            row["metric"] == "deadline.window.frame.missed_ppm" && row["better"] == "lower"
        });
        assert_eq!(share.count(), 2, "{kernel}: {document}");
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn an_ejected_policy_makes_its_runs_void_and_the_bench_goes_on() {
    let loser = object!("loser");
    let said = guest!().good(
        "cd /tmp
        # More hogs than CPUs: one is queued, and so forgotten.
        runslice bench $1 --runs 5 --warmup 0 --folder out -- sh -c '
            for i in 1 2 3 4; do timeout 2 sh -c \"while :; do :; done\" & done; wait'
        echo \"status $?\"
        echo '--- runs'; cat out/runs.jsonl
        echo '--- end'; cat /sys/kernel/sched_ext/state",
        &[&loser],
    );
    let text = &said.text();
    assert!(text.contains("\nstatus 3\n"), "{text}");
    assert!(part(text, "end").starts_with("disabled"), "{text}");
    assert!(
        text.contains("loser: ejected, or its command failed, in 5 of 5 runs, which are left out"),
        "{text}"
    );
    let runs = runs(part(text, "runs"));
    let void: Vec<&str> = runs.iter().filter_map(|run| run["void"].as_str()).collect();
    assert_eq!(void.len(), 5, "{text}");
    let ejected = void.iter().filter(|it| it.starts_with("ejected: "));
    assert_eq!(ejected.count(), 3, "{text}");
    assert!(
        void.contains(&"given up after 3 void runs in a row"),
        "{text}"
    );
}
