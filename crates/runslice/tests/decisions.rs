//! `runslice choose`: decisions that are asked again.

use std::fs;

use serde_json::Value;

use crate::choose::{folder, said};

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
