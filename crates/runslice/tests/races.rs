//! `check --races` and `check --orders`: what they print, and what they refuse.

use std::fs;
use std::path::PathBuf;

use runslice_tests::command;
use serde_json::Value;

/// Eight tasks that sleep and wake for four CPUs.
const LOAD: &str = "[workload]\nname = \"four\"\nstop = \"duration:5s\"\n[machine]\ncpus = 4\n\
    [task.a]\ncount = 8\n\
    do = \"loop(inf)[ run(uniform(20us,200us)), sleep(uniform(20us,200us)) ]\"\n";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("races-{name}");
        let folder = Self(command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &name));
        fs::write(folder.0.join("a-load-of-four.toml"), LOAD).expect("writable");
        for policy in ["places-open", "places-atomic", "faulty-drops"] {
            let object = runslice_tests::policy::object(policy).expect("a test policy");
            let file = folder.0.join(format!("{policy}.bpf.o"));
            fs::write(file, &*object).expect("writable");
        }
        folder
    }

    /// What `check` prints on standard output and standard error, with its `status`.
    fn check(&self, arguments: &str, status: i32) -> (String, String) {
        let line = format!("check {arguments} -w a-load-of-four.toml");
        let words: Vec<&str> = line.split_whitespace().collect();
        command::said(env!("CARGO_BIN_EXE_runslice"), &self.0, &words, status)
    }

    /// Does what a command that was printed says, which may have several lines.
    fn again(&self, command: &str, status: i32) -> String {
        let line = command.replace("\\\n", " ");
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let (out, err) = command::said(env!("CARGO_BIN_EXE_runslice"), &self.0, &words, status);
        out + &err
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_race_is_told_by_its_variable_in_lines_of_80_columns_and_can_be_repeated() {
    let folder = Folder::new("told");
    let (text, _) = folder.check("places-open.bpf.o --races --duration 30ms", 3);
    assert!(text.contains("tail: lost update\n"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let (_, again) = text.split_once("shown by:").expect("a command");
    let again = again.split("\n\n").next().expect("a paragraph");
    folder.again(again, 0);
    folder.check("places-atomic.bpf.o --races --duration 30ms", 0);
}

#[test]
fn a_variable_that_is_accepted_must_be_one() {
    let folder = Folder::new("accepted");
    let accept = |names: &str| fs::write(folder.0.join("known"), names).expect("writable");
    accept("# fine\ntail\nplaces[]\n");
    let arguments = "places-open.bpf.o --races --duration 30ms --accepted known";
    let (text, _) = folder.check(arguments, 0);
    assert!(text.contains("Accepted: tail"), "{text}");
    accept("tial\n");
    let (_, error) = folder.check(arguments, 2);
    assert!(error.contains("is called `tial`"), "{error}");
    assert!(error.contains("did you mean `tail`?"), "{error}");
}

#[test]
fn an_order_that_loses_a_task_is_told_as_text_and_as_json() {
    let folder = Folder::new("orders");
    let arguments = "places-open.bpf.o --orders --duration 300us";
    let (text, _) = folder.check(arguments, 3);
    assert!(
        text.contains(": a fault in ") && text.contains("\nlost: "),
        "{text}"
    );
    let (_, again) = text.split_once("\nAgain:\n").expect("a command");
    assert!(folder.again(again, 3).starts_with("lost: "), "{again}");
    let (document, _) = folder.check(&format!("{arguments} --json"), 3);
    let document = json(&document);
    assert_eq!(document["tried"], document["orders"]);
    let first = &document["faults"][0];
    assert_eq!(first["finding"]["fault"], "lost");
    let stall = first["interleave"].as_str().expect("a stall");
    assert!(again.contains(stall), "{stall}: {again}");
    let (text, _) = folder.check("faulty-drops.bpf.o --orders", 3);
    assert!(text.contains("a fault without any stall"), "{text}");
    assert!(text.contains("\nlost: "), "{text}");
    let (none, _) = folder.check("faulty-drops.bpf.o --orders --json", 3);
    assert_eq!(json(&none)["undisturbed"]["finding"]["fault"], "lost");
}

#[test]
fn a_hunt_for_races_tells_each_variable_once_and_keeps_a_run_that_shows_it() {
    let folder = Folder::new("hunt");
    let hunt = |options: &str, status| {
        let line = format!("hunt {options} -w a-load-of-four.toml --trials 2 --kernel 6.18");
        let words: Vec<&str> = line.split_whitespace().collect();
        command::said(env!("CARGO_BIN_EXE_runslice"), &folder.0, &words, status).0
    };
    let text = hunt("places-open.bpf.o --races", 3);
    assert_eq!(text.matches("tail: lost update\n").count(), 1, "{text}");
    let (_, again) = text.split_once("shown by:   ").expect("a command");
    let file = again.split_whitespace().nth(2).expect("a file");
    assert!(folder.0.join(file).is_file(), "{file}");
    let document = json(&hunt("places-open.bpf.o --races --json -o other", 3));
    let races = document["races"].as_array().expect("races");
    let is_tail = |race: &&Value| race["variable"] == "tail";
    let tail = races.iter().find(is_tail).expect("the race");
    assert_eq!(tail["class"], "lost update");
    assert!(
        document["found"].as_array().is_some_and(Vec::is_empty),
        "no fault"
    );
    let text = hunt("places-open.bpf.o -o without", 0);
    assert!(!text.contains("racing"), "{text}");
}

#[test]
fn loads_for_orders_have_names_and_sound_policies_pass_them() {
    let folder = Folder::new("loads");
    for load in ["fork", "affinity", "exit", "hotplug", "enable", "wakeups"] {
        let line = format!("check fifo --orders -w orders-{load} --duration 200us");
        let words: Vec<&str> = line.split_whitespace().collect();
        let said = command::said(env!("CARGO_BIN_EXE_runslice"), &folder.0, &words, 0);
        assert!(said.0.contains("no fault in all "), "{load}: {}", said.0);
    }
    let line = "check places-open.bpf.o --orders -w orders-wakeups --duration 1ms";
    let words: Vec<&str> = line.split_whitespace().collect();
    let said = command::said(env!("CARGO_BIN_EXE_runslice"), &folder.0, &words, 3);
    assert!(said.0.contains("\nlost: "), "{}", said.0);
}

#[test]
fn orders_end_with_their_time_and_say_how_far_they_came() {
    let folder = Folder::new("time");
    let (text, _) = folder.check("places-atomic.bpf.o --orders --duration 20ms --for 1ns", 0);
    assert!(text.contains("no fault in the first 0 of "), "{text}");
    assert!(text.contains("because the time was over"), "{text}");
    let (_, error) = folder.check("places-atomic.bpf.o --orders --for 0s", 2);
    assert!(error.contains("in no time nothing begins"), "{error}");
    for option in ["--races", "--orders"] {
        let (_, error) = folder.check(&format!("fifo {option} --duration 0s"), 2);
        assert!(error.contains("in no time nothing happens"), "{error}");
        let (_, error) = folder.check(&format!("fifo --config .config {option}"), 2);
        assert!(error.contains("cannot be used with"), "{error}");
    }
    let (_, error) = folder.check("places-atomic.bpf.o --json", 2);
    assert!(error.contains("--races or --orders"), "{error}");
}
