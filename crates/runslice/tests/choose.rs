//! `runslice choose`: from a load and a goal to a scheduler.

use std::fs;
use std::path::{Path, PathBuf};

use runslice_tests::{command, object};
use serde_json::Value;

/// A folder of one test's own.
fn folder(name: &str) -> PathBuf {
    command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &format!("choose-{name}"))
}

/// What a call that ends with `status` prints, errors apart.
fn said(folder: &Path, words: &[&str], status: i32) -> (String, String) {
    let words = [&["choose"], words].concat();
    command::said(env!("CARGO_BIN_EXE_runslice"), folder, &words, status)
}

fn json(folder: &Path, words: &[&str], status: i32) -> Value {
    let words = [words, &["--format", "json"]].concat();
    serde_json::from_str(&said(folder, &words, status).0).expect("JSON")
}

/// The document's entry of a candidate.
fn candidate<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["candidates"].as_array().expect("a list");
    let found = all.iter().find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {document}"))
}

const POINTER: [&str; 6] = [
    "-w",
    "desk",
    "--duration",
    "2s",
    "--goal",
    "p99 wait of pointer",
];

#[test]
fn the_answer_comes_first_and_fits_a_terminal() {
    let folder = folder("desk");
    let (text, _) = said(&folder, &POINTER, 0);
    let document = json(&folder, &POINTER, 0);
    let winner = document["winner"]["name"].as_str().expect("a winner");
    let base = candidate(&document, "eevdf")["goals"][0]["spread"]["max"].as_f64();
    let best = candidate(&document, winner)["goals"][0]["spread"]["max"].as_f64();
    assert!(best.unwrap() * 5.8 < base.unwrap(), "{document}");
    assert!(
        text.starts_with(&format!("{winner} is best for desk: p99 wait of pointer ")),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    for shipped in [
        "cfs",
        "elsc",
        "fifo",
        "goodness",
        "mlfq",
        "o1",
        "staircase",
        "staircase5",
    ] {
        assert!(text.contains(&format!("\n{shipped} ")), "{shipped}: {text}");
    }
    assert!(text.contains("factor of 5.80"), "{text}");
    assert!(text.contains("docs/fidelity.md"), "{text}");
    assert!(
        text.contains(&format!("\nTry it: sudo runslice run {winner}\nUndo: ")),
        "{text}"
    );
    // Hogs pay for the pointer, and the judge says it of each.
    let worse = document["worse"].as_array().expect("a list");
    assert!(!worse.is_empty(), "{document}");
    assert!(
        worse.iter().all(|it| it["verdict"] == "slower"),
        "{document}"
    );
    assert!(
        text.contains(&format!("\nWorse under {winner} than under eevdf")),
        "{text}"
    );
    let (again, _) = said(&folder, &[&POINTER[..], &["--jobs", "1"]].concat(), 0);
    assert_eq!(again, text, "the number of threads changes no byte");
}

#[test]
fn a_gain_that_is_smaller_than_what_is_not_modelled_is_refused() {
    let folder = folder("refused");
    let words = [&POINTER[..], &["staircase"]].concat();
    let found = json(&folder, &words, 0);
    assert_eq!(found["winner"]["name"], "staircase", "{found}");
    let harder = [
        &words[..],
        &["--not-modelled", "100%", "--goal", "p99 wait of window"],
    ]
    .concat();
    let found = json(&folder, &harder, 0);
    assert_eq!(found["goals"][1]["not_modelled_factor"], 2.0, "{found}");

    // More than any change that the runs have.
    let ratio = candidate(&found, "staircase")["goals"][0]["comparison"]["ratio"].as_f64();
    let percent = (1.0 / ratio.expect("a ratio") - 1.0) * 100.0;
    assert!(percent > 480.0, "{percent}");
    let all = "1000";
    assert!(percent > 1000.0, "what follows needs the greatest margin");
    let words = [
        "-w",
        "desk",
        "--duration",
        "2s",
        "--goal",
        "mean delay of pointer",
        "o1",
    ];
    let document = json(&folder, &words, 0);
    let o1 = candidate(&document, "o1");
    assert_eq!(
        o1["goals"][0]["comparison"]["verdict"], "faster",
        "{document}"
    );
    let words = [&words[..], &["--not-modelled", all]].concat();
    let (text, _) = said(&folder, &words, 0);
    assert!(
        text.starts_with("No candidate is better than eevdf for desk"),
        "{text}"
    );
    let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("o1 seems better, and is refused: mean delay of pointer"),
        "{text}"
    );
    assert!(
        words.contains("may be less than the factor 11.00 that is not modelled"),
        "{text}"
    );
    assert!(words.contains("(--not-modelled 1000)"), "{text}");
    assert!(!text.contains("Try it"), "{text}");
}

#[test]
fn a_policy_that_stalls_is_last_with_its_reason() {
    let folder = folder("stall");
    fs::copy(object!("loser"), folder.join("loser.bpf.o")).expect("writable");
    let words = [
        "-w",
        "desk",
        "--duration",
        "2s",
        "--goal",
        "p99 wait of pointer",
    ];
    let both = [&words[..], &["./loser.bpf.o", "staircase"]].concat();
    let (text, _) = said(&folder, &both, 0);
    assert!(text.starts_with("staircase is best for desk"), "{text}");
    let failed = text
        .lines()
        .position(|line| line.starts_with("loser ") && line.ends_with("failed"));
    let failed = failed.unwrap_or_else(|| panic!("{text}"));
    assert_eq!(text.lines().nth(failed + 1), Some(""), "it is last: {text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "loser failed: in each run it was ejected at 1.500000000 s: runnable task stall: ";
    assert!(flat.contains(why), "{text}");

    // Nobody is left beside the baseline, or no baseline.
    let alone = [&words[..], &["./loser.bpf.o"]].concat();
    let (text, _) = said(&folder, &alone, 0);
    assert!(
        text.starts_with("No candidate is better than eevdf"),
        "{text}"
    );
    let base = [&words[..], &["--baseline", "./loser.bpf.o", "fifo"]].concat();
    let (_, error) = said(&folder, &base, 1);
    assert!(
        error.contains("the baseline loser fails under this load (in each run"),
        "{error}"
    );
}

/// What ftrace says of 100 turns of two threads of one name, each shorter or longer than the last.
fn ftrace() -> String {
    let mut text = "# tracer: nop\n".to_owned();
    let mut line = |who: &str, flags: &str, us: u64, what: &str| {
        let (s, us) = (5 + us / 1_000_000, us % 1_000_000);
        text += &format!(" {who} [000] {flags} {s}.{us:06}: {what}\n");
    };
    let switch = |from: (&str, u32), state: char, to: (&str, u32)| {
        format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> \
             next_comm={} next_pid={} next_prio=120",
            from.0, from.1, to.0, to.1
        )
    };
    let wake = |pid: u32| format!("sched_waking: comm=web pid={pid} prio=120 target_cpu=000");
    let idle = ("swapper/0", 0);
    for turn in 0..100 {
        let begin = turn * 10_000;
        // 1 ms to 3 ms, without a pattern that repeats with a part.
        let length = 1000 + turn * turn * 37 % 2000;
        line(
            "<idle>-0",
            "d.h1.",
            begin,
            "hrtimer_expire_entry: hrtimer=1 function=f now=1",
        );
        line("<idle>-0", "d.h2.", begin + 1, &wake(70));
        line(
            "<idle>-0",
            "d.h1.",
            begin + 2,
            "hrtimer_expire_exit: hrtimer=1",
        );
        line(
            "<idle>-0",
            "d..2.",
            begin + 4,
            &switch(idle, 'R', ("web", 70)),
        );
        line("web-70", "d..2.", begin + length, &wake(71));
        let end = begin + length + 200 + turn * 53 % 700;
        line(
            "web-70",
            "d..2.",
            end,
            &switch(("web", 70), 'S', ("web", 71)),
        );
        line(
            "web-71",
            "d..2.",
            end + length,
            &switch(("web", 71), 'S', idle),
        );
    }
    text
}

#[test]
fn a_trace_is_cut_into_parts_and_its_threads_are_known_by_their_name() {
    let folder = folder("trace");
    fs::write(folder.join("web.txt"), ftrace()).expect("writable");
    let words = [
        "--from",
        "web.txt",
        "--goal",
        "mean delay of web",
        "fifo",
        "mlfq",
    ];
    let words = [&words[..], &["--not-modelled", "0"]].concat();
    let (text, error) = said(&folder, &words, 0);
    assert!(
        text.contains("web: 1 CPU, HZ 250, kernel 6.18, 10 parts of the trace"),
        "{text}"
    );
    assert_eq!(error.matches("wakeups:").count(), 1, "told once: {error}");
    let document = json(&folder, &words, 0);
    assert_eq!(
        (&document["runs"], &document["runs_are_parts"]),
        (&10.into(), &true.into())
    );
    let fifo = candidate(&document, "fifo");
    assert_eq!(fifo["goals"][0]["comparison"]["paired"], true, "{fifo}");
    assert_eq!(fifo["goals"][0]["spread"]["runs"], 10, "{fifo}");
    // As a workload it is the same.
    let named = [
        "-w",
        "web.txt",
        "--goal",
        "mean delay of web",
        "fifo",
        "mlfq",
    ];
    let named = json(&folder, &[&named[..], &["--not-modelled", "0"]].concat(), 0);
    assert_eq!(named["candidates"], document["candidates"]);
    let (_, error) = said(
        &folder,
        &["--from", "web.txt", "--goal", "p99 wait of wbe"],
        2,
    );
    assert!(
        error.contains("no group `wbe`\n  did you mean `web`? There are: web"),
        "{error}"
    );
    said(&folder, &["--from", "web.txt", "--seed", "3"], 2);
}

#[test]
fn a_file_of_events_has_runs_that_differ_in_when_tasks_begin() {
    let folder = folder("events");
    let made = [
        "sim",
        "eevdf",
        "-w",
        "desk",
        "--duration",
        "500ms",
        "--events",
        "e.jsonl",
    ];
    command::said(env!("CARGO_BIN_EXE_runslice"), &folder, &made, 0);
    let words = [
        "--from",
        "e.jsonl",
        "--goal",
        "mean delay of cc",
        "fifo",
        "--seed",
        "3",
    ];
    let words = [&words[..], &["--not-modelled", "0"]].concat();
    let document = json(&folder, &words, 0);
    assert_eq!(
        (
            &document["runs"],
            &document["runs_are_parts"],
            &document["start_jitter_ns"]
        ),
        (&10.into(), &false.into(), &4_000_000.into())
    );
    let spread = &candidate(&document, "fifo")["goals"][0]["spread"];
    assert!(spread["min"].as_f64() < spread["max"].as_f64(), "{spread}");
    let (text, _) = said(&folder, &words, 0);
    let heading = "10 runs of each candidate in which tasks begin up to 4.00 ms later";
    let in_a_line: Vec<&str> = text.split_whitespace().collect();
    assert!(in_a_line.join(" ").contains(heading), "{text}");
    // As recorded, all runs are the same: nothing can be decided.
    let document = json(
        &folder,
        &[&words[..], &["--start-jitter", "0ns"]].concat(),
        6,
    );
    assert_eq!(document["start_jitter_ns"], 0);
}

#[test]
fn knobs_of_a_sweep_and_programs_of_schedulers_are_candidates() {
    let folder = folder("knobs");
    let sweep = "policy = ['fifo']\n[knobs.fifo]\nslice_ns = [1000000, 20000000]\n";
    fs::write(folder.join("k.toml"), sweep).expect("writable");
    let words = [
        "-w",
        "desk",
        "--duration",
        "1s",
        "--knobs",
        "k.toml",
        "mlfq:queues=5",
    ];
    let document = json(
        &folder,
        &[&words[..], &["--goal", "mean wait of pointer"]].concat(),
        0,
    );
    let all = document["candidates"].as_array().expect("a list");
    let mut names: Vec<_> = all.iter().filter_map(|it| it["name"].as_str()).collect();
    names.sort_unstable();
    let want = [
        "eevdf",
        "fifo:slice_ns=1000000",
        "fifo:slice_ns=20000000",
        "mlfq:queues=5",
    ];
    assert_eq!(names, want);
    let (text, _) = said(
        &folder,
        &[&words[..], &["--goal", "mean wait of pointer"]].concat(),
        0,
    );
    assert!(
        text.contains("fifo:slic...20000000 is fifo:slice_ns=20000000"),
        "{text}"
    );
    // A sweep still needs its workloads.
    let program = env!("CARGO_BIN_EXE_runslice");
    let sweep = command::run(program, &folder, &["sweep", "k.toml"]);
    let error = String::from_utf8_lossy(&sweep.stderr);
    assert!(error.contains("k.toml: there is no `workload`"), "{error}");
    let none = [&words[..4], &["--scheduler", "no-such-program"]].concat();
    let (_, error) = said(&folder, &none, 1);
    assert!(error.contains("--scheduler `no-such-program`"), "{error}");
}

#[test]
fn the_answer_is_written_in_each_form() {
    let folder = folder("forms");
    let words = [
        "-w",
        "desk",
        "--duration",
        "1s",
        "staircase",
        "fifo",
        "--goal",
        "mean wait of pointer",
    ];
    said(&folder, &[&words[..], &["-o", "a.csv"]].concat(), 0);
    let csv = fs::read_to_string(folder.join("a.csv")).expect("a table");
    assert!(
        csv.starts_with("schema,version,command,place,metric,baseline,against,"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let (text, _) = said(&folder, &[&words[..], &["-o", "a.html"]].concat(), 0);
    let page = fs::read_to_string(folder.join("a.html")).expect("a page");
    assert!(page.contains("Which scheduler is best for desk?"), "{page}");
    assert!(
        text.contains("is best for desk") || text.contains("No candidate"),
        "{text}"
    );
    said(&folder, &[&words[..], &["-o", "a.json"]].concat(), 0);
    let text = fs::read_to_string(folder.join("a.json")).expect("a document");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["runslice_choice"], 1);
    said(&folder, &[&words[..], &["-o", "a.xml"]].concat(), 2);
}

#[test]
fn what_cannot_be_asked_is_refused_before_the_work() {
    let folder = folder("usage");
    let cases: [(&[&str], &str); 6] = [
        (&["--goal", "p99 wat of pointer"], "did you mean `wait`?"),
        (
            &["--goal", "wait of pointer"],
            "write `p99 wait of pointer`",
        ),
        (
            &["--goal", "late of cc"],
            "these tasks have no deadline\n  this load offers: late pointer",
        ),
        (&["eevdf"], "there is only eevdf to choose from"),
        (&["fifi"], "did you mean `fifo`?"),
        (&["--not-modelled=-3"], "--not-modelled"),
    ];
    for (words, want) in cases {
        let words = [&["-w", "desk", "--duration", "100ms"], words].concat();
        let (_, error) = said(&folder, &words, 2);
        assert!(error.contains(want), "{words:?}: {error}");
    }
    let (_, error) = said(&folder, &["fifo"], 2);
    assert!(error.contains("--workload"), "{error}");
}
