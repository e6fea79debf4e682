//! `runslice choose`: decisions that are asked again, many machines, and programs that stop by the
//! clock.

use std::fs;
use std::path::PathBuf;

use runslice_tests::command;
use serde_json::Value;

use crate::choose::{candidate, folder, ftrace, json, said};

/// What is asked of the folder of [`fleet`].
const OF_ALL: [&str; 8] = [
    "--from",
    "all",
    "--goal",
    "mean delay of web",
    "fifo",
    "mlfq",
    "--not-modelled",
    "0",
];

/// A folder with recordings of three machines in `all`, of which one is too short.
fn fleet(name: &str) -> PathBuf {
    let folder = folder(&format!("fleet-{name}"));
    fs::create_dir(folder.join("all")).expect("writable");
    for (name, turns) in [("a", 300), ("b", 400), ("c", 8)] {
        fs::write(folder.join(format!("all/{name}.txt")), ftrace(turns)).expect("writable");
    }
    fs::write(folder.join("all/notes.md"), "no recording").expect("writable");
    folder
}

#[test]
fn a_decision_is_asked_again_and_what_has_changed_is_named() {
    let folder = folder("again");
    let load = "[workload]\nname = 'mine'\nstop = 'duration:1s'\n[machine]\ncpus = 1\n\
                [task.ui]\ndo = \"loop(inf)[ sleep(5ms), run(1ms) ]\"\n\
                [task.hog]\ncount = 2\ndo = \"loop(inf)[ run(9ms) ]\"\n";
    fs::write(folder.join("mine.toml"), load).expect("writable");
    let own = |name: &str| {
        let object = policies::find(name).expect("a policy").object;
        fs::write(folder.join("mine.bpf.o"), object).expect("writable");
    };
    own("mlfq");
    let goal = ["--goal", "p99 wait of ui", "--runs", "6"];
    let words = [&["-w", "mine.toml", "./mine.bpf.o", "fifo"], &goal[..]].concat();
    said(&folder, &[&words[..], &["-o", "d.bundle"]].concat(), 6);
    let kept = fs::read(folder.join("d.bundle")).expect("a bundle");
    let (text, _) = said(&folder, &["--again", "d.bundle", "-o", "again.bundle"], 6);
    assert!(
        text.starts_with("d.bundle: the same answer again, byte for byte.\nStay with eevdf"),
        "{text}"
    );
    assert_eq!(
        fs::read(folder.join("again.bundle")).expect("a bundle"),
        kept
    );
    let (_, error) = said(&folder, &["--again", "d.bundle", "-o", "again.html"], 2);
    assert!(error.contains("ends in .json or .bundle"), "{error}");
    assert!(!folder.join("again.html").exists());
    let document: Value = serde_json::from_slice(&kept).expect("JSON");
    assert_eq!(document["inputs"][0]["file"], "mine.toml", "{document}");
    let refused = |what: &str| {
        let (_, error) = said(&folder, &["--again", "d.bundle"], 1);
        assert!(error.contains(what), "{what}: {error}");
    };
    fs::write(folder.join("mine.toml"), format!("{load}# longer\n")).expect("writable");
    refused("d.bundle: changed or missing since the decision: mine.toml");
    fs::remove_file(folder.join("mine.toml")).expect("it is there");
    refused("d.bundle: changed or missing since the decision: mine.toml");
    fs::write(folder.join("mine.toml"), load).expect("writable");
    own("o1");
    refused("d.bundle: changed or missing since the decision: the object of mine");
    own("mlfq");
}

#[test]
fn a_decision_that_was_touched_up_or_is_of_another_program_is_refused() {
    let folder = folder("touched");
    let words = ["-w", "desk", "--duration", "200ms", "--runs", "2", "fifo"];
    said(
        &folder,
        &[
            &words[..],
            &["--goal", "p99 wait of pointer", "-o", "d.bundle"],
        ]
        .concat(),
        6,
    );
    let kept = fs::read(folder.join("d.bundle")).expect("a bundle");
    let document: Value = serde_json::from_slice(&kept).expect("JSON");
    let refused = |what: &str| {
        let (_, error) = said(&folder, &["--again", "d.bundle"], 1);
        assert!(error.contains(what), "{what}: {error}");
    };
    // An answer that somebody has touched up, and one of another program.
    let touched = |from: &str, to: &str| {
        let text = String::from_utf8(kept.clone()).expect("UTF-8");
        assert!(text.contains(from), "{text}");
        fs::write(folder.join("d.bundle"), text.replacen(from, to, 1)).expect("writable");
    };
    touched("\"Stay with eevdf", "\"Change from eevdf");
    refused("d.bundle: the answer is another one, first at `answer`");
    let version = document["version"].as_str().expect("a version");
    touched(
        &format!("\"version\": \"{version}\""),
        "\"version\": \"9.9.9\"",
    );
    refused("d.bundle is a decision of runslice 9.9.9");
    fs::write(folder.join("d.bundle"), "{}").expect("writable");
    refused("d.bundle is no decision of `choose -o FILE.bundle`");
    let (_, error) = said(&folder, &["--again", "d.bundle", "-w", "desk"], 2);
    assert!(error.contains("--again"), "{error}");
}

#[test]
fn of_many_machines_each_one_counts_once() {
    let folder = fleet("counts");
    let document = json(&folder, &OF_ALL, 6);
    assert_eq!(document["runslice_fleet"], 1, "{document}");
    let machines = document["machines"].as_array().expect("a list");
    let names: Vec<_> = machines
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    // `c` is too short: nothing can be told of it, and so nobody changes all three.
    let fifo = candidate(&document, "fifo");
    let counts = &fifo["machines"];
    assert_eq!(counts["better"], 2, "{fifo}");
    assert_eq!(counts["cannot_tell"], 1, "{fifo}");
    assert_eq!(counts["all"], 3, "{fifo}");
    assert_eq!(document["winner"], Value::Null, "{document}");
    let one = json(
        &folder,
        &[&["--from", "all/a.txt"], &OF_ALL[2..]].concat(),
        0,
    );
    let alone = &candidate(&one, "fifo")["goals"][0]["comparison"];
    let among = &machines[0]["candidates"][0]["goals"][0]["comparison"];
    assert_eq!(among["ratio"], alone["ratio"], "the same answer as alone");
    let (text, _) = said(&folder, &OF_ALL, 6);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let want = "Stay with eevdf on 3 machines as a whole: fifo is likely better on 2, alike on 0, \
                worse on 0, cannot tell on 1.";
    assert!(flat.starts_with(want), "{flat}");
    assert!(
        flat.contains("fifo is not worse on at least 13 %"),
        "{flat}"
    );
    assert!(text.lines().all(|it| it.chars().count() <= 80), "{text}");
    for name in names {
        let line = text.lines().find(|it| it.starts_with(&format!("{name} ")));
        assert!(line.is_some(), "fewer than 20: a line each: {text}");
    }
    // A line has the goal that it is about, and the word of the answer there, as one machine's
    // answer has it.
    let of_goal = text.split("fifo at mean delay of web").nth(1);
    let line = of_goal.and_then(|it| it.lines().find(|it| it.starts_with("a ")));
    assert!(
        line.is_some_and(|it| it.ends_with("  likely better")),
        "{text}"
    );
    let decided = &machines[0]["candidates"][0]["decided_by"];
    assert_eq!(*decided, "mean delay of web", "{document}");
    assert!(!text.contains("mean over"), "{text}");
}

#[test]
fn many_machines_are_told_in_each_form_and_asked_again() {
    let folder = fleet("forms");
    said(&folder, &[&OF_ALL[..], &["-o", "a.csv"]].concat(), 6);
    let csv = fs::read_to_string(folder.join("a.csv")).expect("a table");
    assert_eq!(csv.lines().count(), 1 + 3 * 2, "{csv}");
    said(&folder, &[&OF_ALL[..], &["-o", "a.html"]].concat(), 6);
    let page = fs::read_to_string(folder.join("a.html")).expect("a page");
    assert!(
        page.contains("Which scheduler for these machines?"),
        "{page}"
    );
    // The two that can be told.
    fs::remove_file(folder.join("all/c.txt")).expect("it is there");
    let (text, _) = said(&folder, &OF_ALL, 0);
    let want = "Change from eevdf to fifo on 2 machines: likely better on 2, alike on 0, worse on";
    assert!(text.replace('\n', " ").starts_with(want), "{text}");
    // A third one that is lost is not passed over.
    for (name, bytes, want) in [
        ("c.txt", &b""[..], "it is empty"),
        ("c.gz", &b"\x1f\x8b\x08\x00"[..], "packed with gzip"),
    ] {
        fs::write(folder.join("all").join(name), bytes).expect("writable");
        let (text, _) = said(&folder, &OF_ALL, 6);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let lost = format!("Nothing is known of all/{name}: ");
        assert!(flat.contains(&lost) && flat.contains(want), "{flat}");
        fs::remove_file(folder.join("all").join(name)).expect("it is there");
    }
    let bundle = [&OF_ALL[..], &["-o", "fleet.bundle"]].concat();
    said(&folder, &bundle, 0);
    said(&folder, &["--again", "fleet.bundle"], 0);
    fs::write(folder.join("all/b.txt"), ftrace(401)).expect("writable");
    let (_, error) = said(&folder, &["--again", "fleet.bundle"], 1);
    assert!(error.contains("since the decision: all/b.txt"), "{error}");
    for name in ["a", "b"] {
        fs::remove_file(folder.join(format!("all/{name}.txt"))).expect("it is there");
    }
    let (_, error) = said(&folder, &OF_ALL, 2);
    assert!(
        error.contains("all: there is no recording in this folder"),
        "{error}"
    );
}

/// Two programs that compute for a second on one CPU: in turns of 20 and of 5 ms until their alarm
/// clocks ring, of which the trace tells if `tells`.
fn two_until_an_alarm(tells: bool) -> String {
    let mut text = "# tracer: nop\n".to_owned();
    let mut line = |who: &str, us: u64, what: String| {
        let (s, us) = (5 + us / 1_000_000, us % 1_000_000);
        text += &format!(" {who} [000] d.h1. {s}.{us:06}: {what}\n");
    };
    let switch = |from: u32, state: char, to: u32| {
        let name = |pid: u32| if pid == 0 { "swapper/0" } else { "hog" };
        format!(
            "sched_switch: prev_comm={} prev_pid={from} prev_prio=120 prev_state={state} ==> \
             next_comm={} next_pid={to} next_prio=120",
            name(from),
            name(to)
        )
    };
    for pid in [70, 71] {
        let wake = format!("sched_wakeup: comm=hog pid={pid} prio=120 target_cpu=000");
        line("<idle>-0", 0, wake);
    }
    line("<idle>-0", 1, switch(0, 'R', 70));
    for turn in 0..40_u64 {
        let begin = turn * 25_000;
        if turn > 0 {
            line("hog-71", begin, switch(71, 'R', 70));
        }
        line("hog-70", begin + 20_000, switch(70, 'R', 71));
    }
    for pid in [70, 71].into_iter().filter(|_| tells) {
        let alarm = "signal_generate: sig=14 errno=0 code=128 comm=hog";
        line(
            "hog-71",
            1_000_000,
            format!("{alarm} pid={pid} grp=1 res=0"),
        );
    }
    line("hog-71", 1_000_100, switch(71, 'X', 70));
    line("hog-70", 1_000_200, switch(70, 'X', 0));
    text
}

#[test]
fn a_program_that_stops_by_the_clock_stops_by_it_under_every_scheduler() {
    let folder = folder("alarm");
    let words = [
        "--from",
        "hogs.txt",
        "--goal",
        "time of hog",
        "fifo",
        "mlfq",
        "--cpus",
        "2",
    ];
    let ends = |tells: bool| {
        fs::write(folder.join("hogs.txt"), two_until_an_alarm(tells)).expect("writable");
        let made = [&["choose"], &words[..], &["--format", "json"]].concat();
        let made = command::run(env!("CARGO_BIN_EXE_runslice"), &folder, &made);
        let document: Value = serde_json::from_slice(&made.stdout).expect("JSON");
        let of = |name: &str| {
            candidate(&document, name)["goals"][0]["value"]
                .as_f64()
                .unwrap()
        };
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        (["eevdf", "fifo", "mlfq"].map(of), said)
    };
    let (with, said) = ends(true);
    assert!(said.contains("2 tasks stop by an alarm clock"), "{said}");
    for end in with {
        // They begin up to 4 ms later.
        assert!((1.0e9..1.01e9).contains(&end), "{with:?}");
    }
    // With a CPU each, the recorded CPU time is over sooner, and somebody is told so.
    let (without, said) = ends(false);
    assert!(said.contains("they may stop by the clock"), "{said}");
    assert!(without.iter().all(|end| *end < 0.9e9), "{without:?}");
}
