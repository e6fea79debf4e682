//! `runslice score`: what a recording's simulation can be trusted for.

use std::path::{Path, PathBuf};

use runslice_tests::command;
use serde_json::Value;

/// Two CPUs that are nearly full: servers that others ask, short and long work, and two hogs.
const BUSY: &str = r#"
[workload]
name = "busy"
stop = "duration:8s"

[machine]
cpus = 2

[task.short]
count = 3
do = "loop(inf)[ sleep(exp(5ms)), run(exp(200us)) ]"

[task.long]
count = 2
do = "loop(inf)[ sleep(exp(20ms)), run(exp(8ms)) ]"

[task.hog]
count = 2
do = "run(inf)"
"#;

/// A folder of one test's own, with the load in it.
fn folder(name: &str) -> PathBuf {
    let folder = command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &format!("score-{name}"));
    std::fs::write(folder.join("busy.toml"), BUSY).expect("a file");
    folder
}

/// What a call that ends with `status` prints, errors apart.
fn said(folder: &Path, words: &[&str], status: i32) -> (String, String) {
    command::said(env!("CARGO_BIN_EXE_runslice"), folder, words, status)
}

fn record(folder: &Path, policy: &str, file: &str) {
    let words = ["sim", policy, "-w", "busy.toml", "--events", file];
    said(folder, &words, 0);
}

fn score(folder: &Path, words: &[&str]) -> Value {
    let words = [&["score"], words, &["--format", "json"]].concat();
    serde_json::from_str(&said(folder, &words, 0).0).expect("JSON")
}

fn part<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["parts"].as_array().expect("a list");
    let found = all.iter().find(|it| it["part"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {document}"))
}

fn reach(document: &Value, name: &str) -> f64 {
    part(document, name)["reach"]["value"]
        .as_f64()
        .expect("a number")
}

/// The parts of a score on standard output.
fn parts(text: &str) -> Vec<&str> {
    let table = text.split("reach").nth(1).unwrap_or_default();
    let lines = table.lines().skip(1).take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.split(' ').next()).collect()
}

#[test]
fn the_sentence_comes_first_and_fits_a_terminal() {
    let folder = folder("text");
    record(&folder, "eevdf", "e.jsonl");
    let (text, _) = said(&folder, &["score", "e.jsonl"], 0);
    assert!(
        text.starts_with("Trust e.jsonl for waits after wakeups ("),
        "{text}"
    );
    assert!(text.contains("of the way from fifo"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let all = [
        "wait",
        "delay",
        "response",
        "preemptions",
        "migrations",
        "elapsed",
    ];
    assert_eq!(parts(&text), all, "{text}");
    let (again, _) = said(&folder, &["score", "e.jsonl", "--jobs", "1"], 0);
    assert_eq!(again, text, "the number of threads changes no byte");
    let (csv, _) = said(&folder, &["score", "e.jsonl", "--format", "csv"], 0);
    assert_eq!(csv.lines().count(), 1 + all.len(), "{csv}");
    // Under another scheduler the same recording is worth less, and the sentence says how much.
    let (text, _) = said(
        &folder,
        &["score", "e.jsonl", "--recorded-under", "mlfq"],
        0,
    );
    assert!(
        !text.starts_with("Trust e.jsonl for waits after wakeups"),
        "{text}"
    );
    assert!(text.contains("Farthest from the second half:"), "{text}");
}

#[test]
fn two_recordings_are_held_against_each_other() {
    let folder = folder("two");
    record(&folder, "eevdf", "a.jsonl");
    let words = [
        "sim",
        "eevdf",
        "-w",
        "busy.toml",
        "--seed",
        "9",
        "--events",
        "b.jsonl",
    ];
    said(&folder, &words, 0);
    let found = score(&folder, &["a.jsonl", "b.jsonl"]);
    let [first, second] = ["first_ns", "second_ns"].map(|it| found[it].as_u64());
    assert_eq!(
        (first, second),
        (Some(8_000_000_000), Some(8_000_000_000)),
        "{found}"
    );
    assert_eq!(found["second"], "b.jsonl");
    assert_eq!(part(&found, "wait")["verdict"], "trusted", "{found}");
    record(&folder, "mlfq", "c.jsonl");
    let (_, error) = said(&folder, &["score", "a.jsonl", "c.jsonl"], 2);
    assert!(
        error.contains("under two schedulers, eevdf and mlfq"),
        "{error}"
    );
}

#[test]
fn a_simulation_of_the_recording_warns_by_the_score_that_is_kept_beside_it() {
    let folder = folder("kept");
    record(&folder, "eevdf", "e.jsonl");
    let sim = || said(&folder, &["sim", "fifo", "--from", "e.jsonl"], 0).1;
    assert!(
        sim().contains("`runslice score e.jsonl -o e.jsonl.score.json` says it"),
        "{}",
        sim()
    );
    said(
        &folder,
        &["score", "e.jsonl", "-o", "e.jsonl.score.json"],
        0,
    );
    assert!(!sim().contains("score"), "{}", sim());
    // Of the same recording, and bad.
    let file = folder.join("e.jsonl.score.json");
    let text = std::fs::read_to_string(&file).expect("a score");
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    document["parts"][0]["verdict"] = "not_trusted".into();
    std::fs::write(&file, document.to_string()).expect("a file");
    let want =
        "from: warning: by its score, do not trust this load for wait: see e.jsonl.score.json";
    assert!(sim().contains(want), "{}", sim());
    record(&folder, "mlfq", "e.jsonl");
    assert!(sim().contains("is no score of this recording"), "{}", sim());
}

/// A trace of two threads that wait for each other, as text.
fn trace(release: &str) -> String {
    let mut text = format!("# os release : {release}\n");
    let switch = "sched:sched_switch:";
    for turn in 0..2_000_u32 {
        let (s, us) = (turn / 500, turn % 500 * 2_000);
        let line = |us: u32, rest: &str| format!("task 1 [000] {s}.{us:06}: {rest}\n");
        text += &line(
            us,
            "sched:sched_waking: comm=a pid=10 prio=120 target_cpu=000",
        );
        text += &line(
            us + 5,
            &format!(
                "{switch} prev_comm=b prev_pid=11 prev_prio=120 prev_state=R ==> next_comm=a \
                 next_pid=10 next_prio=120"
            ),
        );
        text += &line(
            us + 905 + turn % 7 * 10,
            &format!(
                "{switch} prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=b \
                 next_pid=11 next_prio=120"
            ),
        );
    }
    text
}

#[test]
fn the_kernels_version_decides_which_scheduler_a_trace_was_recorded_under() {
    let folder = folder("version");
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).expect("a file");
    for (release, want) in [
        ("5.10.0-28-amd64", "cfs"),
        ("6.6.1", "eevdf"),
        ("6.12.48", "eevdf:delay_dequeue=1"),
    ] {
        write("t.txt", trace(release));
        let (text, _) = said(&folder, &["score", "t.txt", "--format", "json"], 0);
        let found: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(found["recorded_under"], want, "{found}");
        let source = format!("the default of Linux {release}");
        assert_eq!(found["recorded_under_source"], source);
    }
    write("t.txt", trace("x").replace("# os release : x\n", ""));
    let (_, error) = said(&folder, &["score", "t.txt"], 2);
    assert!(
        error.contains("say it with --recorded-on, such as --recorded-on 5.10"),
        "{error}"
    );
    let words = [
        "score",
        "t.txt",
        "--recorded-on",
        "5.10",
        "--format",
        "json",
    ];
    let found: Value = serde_json::from_str(&said(&folder, &words, 0).0).expect("JSON");
    assert_eq!(found["recorded_under"], "cfs");
}

#[test]
fn what_cannot_be_scored_is_refused_with_a_reason() {
    let folder = folder("refused");
    record(&folder, "fifo", "f.jsonl");
    std::fs::write(folder.join("bad.jsonl"), "{\"runslice_events\":1}\n").expect("a file");
    let text = std::fs::read_to_string(folder.join("f.jsonl")).expect("a recording");
    let named = text.replacen("\"policy\":\"fifo\"", "\"policy\":\"mine\"", 1);
    assert_ne!(named, text);
    std::fs::write(folder.join("mine.jsonl"), named).expect("a file");
    for (words, status, want) in [
        (
            &["score", "f.jsonl"][..],
            2,
            "which is what skill is measured from",
        ),
        (&["score", "none.dat"], 1, "cannot read none.dat"),
        (&["score", "bad.jsonl"], 1, "bad.jsonl"),
        (&["score", "."], 1, "is no plain file"),
        (
            &["score", "mine.jsonl"],
            2,
            "under `mine`, which is no built-in policy",
        ),
        (
            &["score", "f.jsonl", "--window", "1s..2s"],
            1,
            "--window is for traces",
        ),
        (
            &["score", "f.jsonl", "--recorded-on", "new"],
            2,
            "no version of a kernel",
        ),
        (&["score", "f.jsonl", "-o", "f.jsonl"], 2, "f.jsonl"),
    ] {
        let (_, error) = said(&folder, words, status);
        assert!(error.contains(want), "{words:?}: {error}");
    }
}

#[test]
fn the_simulated_machine_is_trusted_under_its_own_policy_and_clearly_less_under_another() {
    let folder = folder("own");
    for (policy, other) in [
        ("eevdf", "mlfq"),
        ("mlfq", "eevdf"),
        ("o1", "eevdf"),
        ("staircase", "o1"),
        ("cfs", "mlfq"),
    ] {
        let file = format!("{policy}.jsonl");
        record(&folder, policy, &file);
        let own = score(&folder, &[&file]);
        assert_eq!(own["recorded_under"], policy);
        assert_eq!(own["recorded_under_source"], "as the recording says");
        let wrong = score(&folder, &[&file, "--recorded-under", other]);
        for name in ["wait", "delay"] {
            assert_eq!(
                part(&own, name)["verdict"],
                "trusted",
                "{policy}, {name}: {own}"
            );
            // Two schedulers may let those who sleep wait alike (here `cfs` and `mlfq`: 15
            // and 18 us), but not those who compute.
            if name == "delay" {
                let judged = &part(&wrong, name)["verdict"];
                assert_ne!(judged, "trusted", "{policy} as {other}: {wrong}");
            }
            let (right, wrong) = (reach(&own, name), reach(&wrong, name));
            assert!((0.95..1.05).contains(&right), "{policy}, {name}: {right}");
            assert!(
                wrong < right - 0.01,
                "{policy} as {other}, {name}: {wrong}, {right}"
            );
        }
    }
}

#[test]
fn waits_of_a_recording_in_which_forked_tasks_pile_up_get_no_verdict() {
    let folder = folder("grows");
    let load = |mean: &str| {
        format!(
            "[workload]\nname = \"forks\"\nstop = \"duration:4s\"\n[machine]\ncpus = 1\n\
             [task.shell]\ndo = \"loop(inf)[ sleep(exp(8ms)), run(exp(200us)), fork(job) ]\"\n\
             [task.job]\ncount = 0\ndo = \"run(exp({mean}))\"\n\
             [task.ui]\ndo = \"loop(inf)[ sleep(exp(5ms)), run(exp(200us)) ]\"\n"
        )
    };
    let verdicts = |mean: &str, status: i32| -> Vec<(String, String)> {
        std::fs::write(folder.join("forks.toml"), load(mean)).expect("a file");
        let record = ["sim", "o1", "-w", "forks.toml", "--events", "e.jsonl"];
        said(&folder, &record, status);
        let score = score(&folder, &["e.jsonl"]);
        let parts = score["parts"].as_array().expect("parts");
        let text = |of: &Value| of.as_str().expect("text").to_owned();
        parts
            .iter()
            .map(|it| (text(&it["part"]), text(&it["verdict"])))
            .collect()
    };
    let grows = |found: &[(String, String)]| -> Vec<String> {
        let grown = found.iter().filter(|it| it.1 == "grows");
        grown.map(|it| it.0.clone()).collect()
    };
    let found = verdicts("30ms", 0);
    assert_eq!(grows(&found), ["wait", "delay", "response"], "{found:?}");
    let (text, _) = said(&folder, &["score", "e.jsonl"], 0);
    let text = text.replace('\n', " ");
    assert!(
        text.contains("these figures grow with the duration"),
        "{text}"
    );
    assert!(!text.contains("Trust e.jsonl for waits"), "{text}");
    let found = verdicts("6ms", 0);
    assert_eq!(grows(&found), [""; 0], "{found:?}");
}
