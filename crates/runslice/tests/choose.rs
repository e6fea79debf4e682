//! `runslice choose`: from a load and a goal to a scheduler.

use std::fs;
use std::path::{Path, PathBuf};

use runslice_tests::{command, object};
use serde_json::Value;

/// A folder of one test's own.
pub fn folder(name: &str) -> PathBuf {
    command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &format!("choose-{name}"))
}

/// What a call that ends with `status` prints, errors apart.
pub fn said(folder: &Path, words: &[&str], status: i32) -> (String, String) {
    let words = [&["choose"], words].concat();
    command::said(env!("CARGO_BIN_EXE_runslice"), folder, &words, status)
}

pub fn json(folder: &Path, words: &[&str], status: i32) -> Value {
    let words = [words, &["--format", "json"]].concat();
    serde_json::from_str(&said(folder, &words, status).0).expect("JSON")
}

/// The document's entry of a candidate.
pub fn candidate<'a>(document: &'a Value, name: &str) -> &'a Value {
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
    let of = |name: &str| candidate(&document, name)["goals"][0].clone();
    let best = of(winner);
    let factor = best["error_factor"].as_f64().expect("a factor");
    assert!(factor > 1.0, "{best}");
    assert_eq!(best["answer"], "better", "{best}");
    assert_eq!(best["said"], "likely better", "{best}");
    let high = best["comparison"]["ratio_high"].as_f64();
    assert!(
        high.expect("an end") < 1.0,
        "the interval is widened: {best}"
    );
    assert!(
        text.starts_with(&format!(
            "Change to {winner} for desk: it is likely better than"
        )),
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
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Harm stands before the gain, and what is left out before how to try it.
    let order = [
        "Change to ",
        "was not ejected and starved no task in 10 runs",
        "other figures",
        "Gain under ",
        "Intervals are widened by a factor of ",
        "Not modelled: ",
        &format!("Try it for ten minutes: sudo runslice run {winner} --for 10m"),
        "Go back at once: ",
        "This holds for 4 CPUs, HZ 250, ",
        "Values are means of the runs, changes ratios of geometric means",
    ];
    let places: Vec<_> = order.iter().map(|it| flat.find(it)).collect();
    assert!(places.iter().all(Option::is_some), "{places:?}: {flat}");
    assert!(places.is_sorted(), "{places:?}: {flat}");
    for word in ["best", "safe", "no difference", "within error", "undecided"] {
        assert!(!flat.contains(word), "{word}: {flat}");
    }
    let parts = document["answer_parts"].as_object().expect("parts");
    assert_eq!(parts.len(), 8, "{document}");
    let worse = document["worse"].as_array().expect("a list");
    assert!(worse.iter().all(|it| it["answer"] == "worse"), "{document}");
    let (again, _) = said(&folder, &[&POINTER[..], &["--jobs", "1"]].concat(), 0);
    assert_eq!(again, text, "the number of threads changes no byte");
}

#[test]
fn a_gain_that_is_smaller_than_the_error_of_a_ratio_cannot_be_told() {
    let folder = folder("refused");
    let words = [&POINTER[..], &["o1", "--not-modelled"]].concat();
    let found = json(&folder, &[&words[..], &["0"]].concat(), 0);
    let of = |found: &Value| candidate(found, "o1")["goals"][0].clone();
    let high = &of(&found)["comparison"]["ratio_high"];
    assert_eq!(of(&found)["answer"], "better", "{found}");
    let percent = ((1.0 / high.as_f64().expect("a ratio")).ceil() * 100.0).to_string();
    let words = [&words[..], &[&percent]].concat();
    let found = json(&folder, &words, 6);
    assert_eq!(of(&found)["answer"], "cannot-tell", "{found}");
    assert_eq!(found["winner"], Value::Null, "{found}");
    let (text, _) = said(&folder, &words, 6);
    assert!(
        text.starts_with("Stay with eevdf for desk: o1 cannot be told from it."),
        "{text}"
    );
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let source = format!("(as --not-modelled {percent} says)");
    assert!(flat.contains(&source), "{flat}");
    // The gain is not silently missed.
    let why = ", of eevdf; that tells nothing, since a simulated ratio may be wrong by a factor of";
    assert!(
        flat.contains("At p99 wait of pointer the simulation has o1 at x ") && flat.contains(why),
        "{flat}"
    );
    let stated = "Nothing is more than likely: the error is stated, and not measured.";
    assert!(flat.contains(stated), "{flat}");
    let (text, _) = said(&folder, &[&POINTER[..], &["o1"]].concat(), 6);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let played = "Nothing is more than likely: plays had 2 CPUs and Linux 6.18; no play was made \
                  of o1.";
    assert!(flat.contains(played), "{flat}");
    assert!(!text.contains("Try it"), "{text}");
}

#[test]
fn the_terminal_the_page_the_table_and_json_give_the_same_answers() {
    let folder = folder("same");
    let words = [&POINTER[..], &["staircase", "fifo", "o1"]].concat();
    let document = json(&folder, &words, 0);
    let (text, _) = said(&folder, &words, 0);
    said(&folder, &[&words[..], &["-o", "a.csv"]].concat(), 0);
    said(&folder, &[&words[..], &["-o", "a.html"]].concat(), 0);
    let [csv, page] = ["a.csv", "a.html"].map(|it| fs::read_to_string(folder.join(it)).unwrap());
    for name in ["staircase", "fifo", "o1"] {
        let words = candidate(&document, name)["goals"][0]["said"]
            .as_str()
            .unwrap();
        let line = text
            .lines()
            .find(|it| it.starts_with(&format!("{name} ")) && it.ends_with(words));
        assert!(line.is_some(), "{name}: {words}: {text}");
        let row = csv.lines().find(|it| it.contains(&format!(",{name},")));
        assert!(
            row.expect("a row").contains(&format!(",{words},")),
            "{name}: {csv}"
        );
        assert!(page.contains(words), "{name}: {words}");
    }
    for other in ["faster", "slower", "no difference", "undecided"] {
        assert!(!page.contains(&format!(", {other}")), "{other}");
        assert!(!csv.contains(&format!(",{other},")), "{other}: {csv}");
    }
}

#[test]
fn a_winner_is_surely_not_worse_at_every_other_goal() {
    let folder = folder("several");
    let goals = [
        "--goal",
        "p99 delay of cc",
        "staircase",
        "--not-modelled",
        "20",
    ];
    let document = json(&folder, &[&POINTER[..], &goals].concat(), 0);
    assert_eq!(document["winner"], Value::Null, "{document}");
    assert_eq!(candidate(&document, "staircase")["standing"], "mixed");
    // Under a large error the price is not told, and neither is a winner.
    let goals = [
        "--goal",
        "p99 delay of cc",
        "staircase",
        "--not-modelled",
        "900",
    ];
    let (text, _) = said(&folder, &[&POINTER[..], &goals].concat(), 6);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let want = "Stay with eevdf for desk: staircase is likely better at p99 wait of pointer; \
                nothing can be said about p99 delay of cc.";
    assert!(flat.starts_with(want), "{flat}");
    let who = "that differ by less than its error: p99 delay of cc (x 10.00). `sudo runslice play \
               LOAD --policy NAME` asks the machine itself.";
    assert!(flat.contains(who), "{flat}");
}

#[test]
fn what_is_equal_in_all_runs_is_alike_under_every_goal() {
    let folder = folder("equal");
    // The default of the knob under another name: the same events.
    let words = [
        "-w",
        "desk",
        "--duration",
        "1s",
        "--baseline",
        "fifo",
        "fifo:slice_ns=20000000",
    ];
    let goals = ["--goal", "p99 wait of pointer", "--goal", "late of shell"];
    let document = json(&folder, &[&words[..], &goals].concat(), 0);
    let same = candidate(&document, "fifo:slice_ns=20000000");
    assert_eq!(same["standing"], "alike", "{document}");
    // The first sentence says no more than the table.
    let want = "Stay with fifo for desk: fifo:slice_ns=20000000 is likely alike.";
    assert_eq!(document["answer"][0], want, "{document}");
    for goal in same["goals"].as_array().expect("a list") {
        assert_eq!(goal["said"], "likely alike", "{goal}");
    }
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
    assert!(text.starts_with("Change to staircase for desk: "), "{text}");
    let failed = text
        .lines()
        .position(|line| line.starts_with("loser ") && line.ends_with("failed"));
    let failed = failed.unwrap_or_else(|| panic!("{text}"));
    assert_eq!(text.lines().nth(failed + 1), None, "it is last: {text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "loser failed: in each run it was ejected at 1.500000000 s: runnable task stall: ";
    assert!(flat.contains(why), "{text}");

    // Nobody is left beside the baseline, or no baseline.
    let alone = [&words[..], &["./loser.bpf.o"]].concat();
    let (text, _) = said(&folder, &alone, 0);
    assert!(
        text.starts_with("Stay with eevdf for desk: loser is failing under it."),
        "{text}"
    );
    let base = [&words[..], &["--baseline", "./loser.bpf.o", "fifo"]].concat();
    let (_, error) = said(&folder, &base, 1);
    assert!(
        error.contains("the baseline loser fails under this load (in each run"),
        "{error}"
    );
}

/// What ftrace says of so many turns of two threads of one name, each as long as chance says.
pub fn ftrace(turns: u64) -> String {
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
    let mut rng = model::Rng::new(7, 0);
    for turn in 0..turns {
        let begin = turn * 10_000 + rng.below(2000);
        let (length, rest) = (1000 + rng.below(2000), 200 + rng.below(700));
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
        let end = begin + length + rest;
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
fn a_trace_is_read_once_and_rerun_as_one_piece() {
    let folder = folder("trace");
    fs::write(folder.join("web.txt"), ftrace(600)).expect("writable");
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
        text.contains("web: 1 CPU, HZ 250, kernel 6.18, 4 reruns of each candidate"),
        "{text}"
    );
    assert_eq!(
        error.matches("records; wakeups:").count(),
        1,
        "read once: {error}"
    );
    let document = json(&folder, &words, 0);
    assert_eq!(document["runs"], 4, "{document}");
    let length = document["recording_ns"].as_u64().expect("a length");
    assert!((5_900_000_000..6_100_000_000).contains(&length), "{length}");
    let block = document["goals"][0]["block_ns"].as_u64().expect("a length");
    assert!(block * 10 < length, "{document}");
    let fifo = candidate(&document, "fifo");
    assert_eq!(fifo["goals"][0]["comparison"]["paired"], true, "{fifo}");
    assert_eq!(fifo["goals"][0]["answer"], "better", "{fifo}");
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
    let wrong = ["--from", "web.txt", "--goal", "p99 wait of wbe"];
    let (_, error) = said(&folder, &wrong, 2);
    assert!(
        error.contains("no group `wbe`\n  did you mean `web`? There are: web"),
        "{error}"
    );
    // The seed draws when tasks begin.
    let words = [
        "--from",
        "web.txt",
        "--goal",
        "mean delay of web",
        "fifo",
        "--not-modelled",
        "0",
    ];
    said(&folder, &[&words[..], &["--seed", "3"]].concat(), 0);
}

#[test]
fn a_trace_whose_tasks_never_waited_after_a_wakeup_is_still_judged() {
    let folder = folder("no-wakeups");
    // Without a single wakeup: two tasks take turns.
    let mut text = "# tracer: nop\n".to_owned();
    for turn in 0..400_u64 {
        let (s, us) = (5 + turn * 5000 / 1_000_000, turn * 5000 % 1_000_000);
        let [from, to] = if turn % 2 == 0 { [70, 71] } else { [71, 70] };
        text += &format!(
            " hog-{from} [000] d..2. {s}.{us:06}: sched_switch: prev_comm=hog prev_pid={from} \
             prev_prio=120 prev_state=R ==> next_comm=hog next_pid={to} next_prio=120\n"
        );
    }
    fs::write(folder.join("hogs.txt"), text).expect("writable");
    let document = json(&folder, &["--from", "hogs.txt", "fifo"], 0);
    let goals = document["goals"].as_array().expect("a list");
    assert!(!goals.is_empty(), "{document}");
    assert!(
        goals.iter().all(|it| it["goal"] != "p99 wait"),
        "{document}"
    );
}

#[test]
fn a_trace_that_is_too_short_is_told_so_with_how_long_it_must_be() {
    let folder = folder("short");
    fs::write(folder.join("web.txt"), ftrace(8)).expect("writable");
    let words = ["--from", "web.txt", "--goal", "mean delay of web", "fifo"];
    let (text, _) = said(&folder, &words, 6);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.starts_with("web is too short for an answer: record for 1.00 s more."),
        "{flat}"
    );
    assert!(!flat.contains("Change to"), "{flat}");
    assert!(
        flat.contains("; eevdf made 4 reruns"),
        "nobody else was rerun: {flat}"
    );
    // There is no error of an interval that is not there, and no table of what was not compared.
    assert!(
        !flat.contains("Intervals are widened") && !flat.contains("cannot tell"),
        "{flat}"
    );
    // Of 1,200 waits 12 lie beyond p99, but not all of them are independent of each other; and
    // of a hundredth of them none is compared.
    fs::write(folder.join("web.txt"), ftrace(300)).expect("writable");
    let words = [
        "--from",
        "web.txt",
        "--goal",
        "p99.9 delay of web",
        "fifo",
        "--format",
        "json",
    ];
    let document: Value = serde_json::from_str(&said(&folder, &words, 6).0).expect("JSON");
    let goal = document["goals"][0]["goal"].as_str().expect("a goal");
    assert!(!goal.starts_with("p99"), "{goal}");
    let notes = document["answer_parts"]["would_decide"].to_string();
    assert!(
        notes.contains("independent spans lie beyond p99.9"),
        "{notes}"
    );
}

#[test]
fn a_window_in_which_nothing_happens_is_an_error_that_says_so() {
    let folder = folder("window");
    fs::write(folder.join("web.txt"), ftrace(100)).expect("writable");
    let words = ["--from", "web.txt", "--window", "30s..40s", "fifo"];
    let (_, error) = said(&folder, &words, 1);
    assert!(
        error.contains("web.txt: no task ran in this part of it; give another --window"),
        "{error}"
    );
    assert!(!error.contains("no sched_switch"), "{error}");
}

#[test]
fn a_part_of_a_trace_has_all_cpus_of_the_whole() {
    let folder = folder("cpus");
    // The second CPU comes after the window.
    let late = " <idle>-0 [003] d..2. 6.500000: sched_switch: prev_comm=swapper/3 prev_pid=0 \
                prev_prio=120 prev_state=R ==> next_comm=late next_pid=80 next_prio=120\n";
    fs::write(folder.join("web.txt"), ftrace(100) + late).expect("writable");
    let words = [
        "--from",
        "web.txt",
        "--window",
        "0s..500ms",
        "--goal",
        "mean delay of web",
        "fifo",
    ];
    let words = [&words[..], &["--format", "json", "--not-modelled", "0"]].concat();
    for status in [0, 6] {
        let whole = [&["choose"], &words[..]].concat();
        let made = command::run(env!("CARGO_BIN_EXE_runslice"), &folder, &whole);
        if made.status.code() == Some(status) {
            let document: Value = serde_json::from_slice(&made.stdout).expect("JSON");
            assert_eq!(document["machine"]["cpus"], 4, "{document}");
            return;
        }
    }
    panic!("neither decided nor open");
}

#[test]
fn the_end_of_a_load_is_that_of_its_tasks_and_not_of_the_last_timer() {
    let folder = folder("end");
    fs::write(folder.join("web.txt"), ftrace(100)).expect("writable");
    let (_, error) = said(&folder, &["--from", "web.txt", "--goal", "time", "fifo"], 2);
    assert!(
        error.contains("the recording does not say whose end counts\n  name the tasks"),
        "{error}"
    );
    let load = "[workload]\nname = 'ends'\n[task.work]\ndo = \"run(40ms)\"\n\
                [task.timer]\ndo = \"loop(20)[ sleep(10ms), run(10us) ]\"\n";
    fs::write(folder.join("ends.toml"), load).expect("writable");
    let words = [
        "-w",
        "ends.toml",
        "fifo",
        "--goal",
        "time of work",
        "--goal",
        "time",
    ];
    let document = json(&folder, &words, 0);
    let of = |goal: usize| {
        candidate(&document, "fifo")["goals"][goal]["value"]
            .as_f64()
            .unwrap()
    };
    // They begin up to 4 ms later, and work varies by 1 %.
    assert!((39.6e6..45e6).contains(&of(0)), "{document}");
    assert!((200e6..205e6).contains(&of(1)), "{document}");
    // A rerun knows it as well.
    let made = ["sim", "eevdf", "-w", "ends.toml", "--events", "e.jsonl"];
    command::said(env!("CARGO_BIN_EXE_runslice"), &folder, &made, 0);
    let words = [
        "--from",
        "e.jsonl",
        "fifo",
        "--goal",
        "time of work",
        "--format",
        "json",
    ];
    let made = command::run(
        env!("CARGO_BIN_EXE_runslice"),
        &folder,
        &[&["choose"], &words[..]].concat(),
    );
    let document: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    let value = candidate(&document, "eevdf")["goals"][0]["value"]
        .as_f64()
        .unwrap();
    assert!((40e6..50e6).contains(&value), "{document}");
}

#[test]
fn a_rerun_alone_names_nobody_better() {
    let folder = folder("sim");
    fs::write(folder.join("web.txt"), ftrace(50)).expect("writable");
    let words = ["sim", "fifo", "mlfq", "--from", "web.txt"];
    let (text, _) = command::said(env!("CARGO_BIN_EXE_runslice"), &folder, &words, 0);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let want = "In short: One rerun each shows no policy better or worse: `runslice choose";
    assert!(flat.contains(want), "{flat}");
    for word in ["best", "worst"] {
        assert!(!flat.contains(word), "{word}: {flat}");
    }
}

#[test]
fn a_file_of_events_is_rerun_as_a_trace_is() {
    let folder = folder("events");
    let made = [
        "sim",
        "eevdf",
        "-w",
        "desk",
        "--duration",
        "6s",
        "--events",
        "e.jsonl",
    ];
    command::said(env!("CARGO_BIN_EXE_runslice"), &folder, &made, 0);
    let words = ["--from", "e.jsonl", "--goal", "mean wait of pointer"];
    let better = ["mlfq", "--seed", "3", "--not-modelled", "0"];
    let document = json(&folder, &[&words[..], &better].concat(), 0);
    assert_eq!(document["start_jitter_ns"], 4_000_000, "{document}");
    let goal = &candidate(&document, "mlfq")["goals"][0];
    assert_eq!(goal["said"], "likely better", "{goal}");
    let spread = &goal["spread"];
    assert!(spread["min"].as_f64() < spread["max"].as_f64(), "{spread}");
    // A policy against itself under another name is alike, block by block.
    let same = ["--baseline", "mlfq", "mlfq:queues=20"];
    let document = json(&folder, &[&words[..], &same].concat(), 0);
    let goal = &candidate(&document, "mlfq:queues=20")["goals"][0];
    assert_eq!(goal["said"], "likely alike", "{document}");
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
        "--not-modelled",
        "0",
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
    assert!(page.contains("Which scheduler for desk?"), "{page}");
    assert!(
        text.contains("Change to staircase for desk") || text.contains("Stay with eevdf"),
        "{text}"
    );
    said(&folder, &[&words[..], &["-o", "a.json"]].concat(), 0);
    let text = fs::read_to_string(folder.join("a.json")).expect("a document");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["runslice_choice"], 2);
    said(&folder, &[&words[..], &["-o", "a.xml"]].concat(), 2);
    // The same command gives the same decision, byte for byte.
    let bundle = [&words[..], &["-o", "a.bundle"]].concat();
    let read = || fs::read(folder.join("a.bundle")).expect("a bundle");
    said(&folder, &bundle, 0);
    let first = read();
    said(&folder, &bundle, 0);
    assert_eq!(first, read());
    let document: Value = serde_json::from_slice(&first).expect("JSON");
    let hash = document["objects"][0]["blake3"].as_str().expect("a hash");
    assert_eq!(hash.len(), 64, "{document}");
    assert_eq!(document["seed"], 1, "{document}");
    let table = &document["ratio_errors"];
    assert!(table["loads"].as_u64().expect("loads") > 0, "{document}");
    assert_eq!(
        table["blake3"].as_str().expect("a hash").len(),
        64,
        "{document}"
    );
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
