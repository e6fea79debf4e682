//! Standard input and output in the place of files, pipes that are read twice, and names that are
//! no text.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use ask::AnswerKind;
use runslice_tests::command;

const LOAD: &str = "[workload]\nname = \"load\"\nstop = \"duration:50ms\"\n[machine]\ncpus = 1\n\
    [task.t]\ncount = 2\ndo = \"loop(inf)[ run(1ms), sleep(1ms) ]\"\n";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("streams-{name}");
        let folder = Self(command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &name));
        folder.write("load.toml", LOAD);
        folder
    }

    fn write(&self, name: impl AsRef<OsStr>, text: &str) {
        fs::write(self.0.join(name.as_ref()), text).expect("writable");
    }

    fn said(&self, arguments: &str, status: i32) -> (String, String) {
        let words = shlex::split(arguments).expect("a shell's words");
        command::said(env!("CARGO_BIN_EXE_runslice"), &self.0, &words, status)
    }

    /// What becomes of a call that gets `input` through a pipe.
    fn piped(&self, arguments: &str, input: &str) -> Output {
        let words = shlex::split(arguments).expect("a shell's words");
        let mut program = Command::new(env!("CARGO_BIN_EXE_runslice"));
        program.args(words).current_dir(&self.0);
        program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = program.spawn().expect("the program starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(input.as_bytes()).expect("it reads");
        drop(pipe);
        child.wait_with_output().expect("it ends")
    }

    /// The names of the files that are there.
    fn names(&self) -> Vec<OsString> {
        let entries = fs::read_dir(&self.0).expect("there");
        entries
            .map(|it| it.expect("readable").file_name())
            .collect()
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

#[test]
fn a_pipe_is_read_as_often_as_a_file() {
    let folder = Folder::new("pipes");
    let (want, _) = folder.said("sim fifo -w load.toml --format json", 0);
    let rtapp = "{ \"tasks\": { \"t\": { \"loop\": 1, \"run\": 1000 } } }";
    for name in ["-", "/dev/stdin", "/dev/fd/0"] {
        let same = folder.piped(&format!("sim fifo -w {name} --format json"), LOAD);
        assert_eq!(same.status.code(), Some(0), "{}", text(same.stderr));
        let values = |text: &str| -> serde_json::Value {
            let mut value: serde_json::Value = serde_json::from_str(text).expect("JSON");
            value["command"].take();
            value
        };
        assert_eq!(values(&text(same.stdout)), values(&want), "{name}");
        let import = folder.piped(&format!("sim fifo -w {name}"), rtapp);
        assert_eq!(import.status.code(), Some(0), "{}", text(import.stderr));
        let wrong = folder.piped(&format!("sim fifo -w {name}"), "[workload]\nname = 3\n");
        assert_eq!(wrong.status.code(), Some(1));
    }
    folder.said("sim fifo -w load.toml --events e.jsonl", 0);
    let events = fs::read_to_string(folder.0.join("e.jsonl")).expect("text");
    for verb in [
        "sim fifo --from -",
        "sim fifo -w -",
        "convert -",
        "trace pid 100 --sim fifo -w -",
    ] {
        let same = folder.piped(verb, &events);
        assert_eq!(same.status.code(), Some(0), "{verb}: {}", text(same.stderr));
    }
}

#[test]
fn a_minus_is_standard_output_for_every_file_of_results() {
    let folder = Folder::new("output");
    let before = folder.names();
    let sim = "sim fifo -w load.toml";
    let (plain, _) = folder.said(sim, 0);
    assert_eq!(folder.said(&format!("{sim} -o -"), 0).0, plain);
    let (events, said) = folder.said(&format!("{sim} --events -"), 0);
    assert!(events.starts_with("{\"runslice_events\":"), "{events}");
    assert!(events.lines().all(|line| line.starts_with('{')), "{events}");
    assert!(said.contains("the results are not printed"), "{said}");
    let (page, _) = folder.said(&format!("{sim} --format html -o -"), 0);
    assert!(
        page.starts_with("<!DOCTYPE html>"),
        "{}",
        &page[..page.len().min(200)]
    );
    let (copy, _) = folder.said("list --copy desk -o -", 0);
    assert_eq!(copy, folder.said("convert desk --to toml -o -", 0).0);
    folder.said("convert load.toml -o -", 0);
    let (_, twice) = folder.said(&format!("{sim} --events - -o -"), 2);
    assert!(
        twice.contains("standard output is given for --events and for --output"),
        "{twice}"
    );
    let (_, twice) = folder.said("sim fifo mlfq -w load.toml --events -", 2);
    assert!(
        twice.contains("standard output is given for --events and for --events"),
        "{twice}"
    );
    assert_eq!(folder.names(), before);
}

/// The call that gives an answer as a document.
fn call_for(answer: AnswerKind) -> String {
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fidelity");
    match answer {
        AnswerKind::Results => "sim fifo -w load.toml --format json".to_owned(),
        AnswerKind::Spread => "sweep s.toml --format json".to_owned(),
        AnswerKind::Comparison => "compare s.results --format json".to_owned(),
        AnswerKind::Choice => {
            "choose mlfq -w load.toml --goal 'mean wait' --format json".to_owned()
        }
        AnswerKind::Fleet => "choose mlfq --from fleet --goal 'mean wait' --format json".to_owned(),
        AnswerKind::Score => "score e.jsonl --format json".to_owned(),
        AnswerKind::Fidelity => format!("fidelity --from {recorded} --profile ideal --format json"),
        AnswerKind::Explanation => "explain fifo -w load.toml --json".to_owned(),
        AnswerKind::Difference => "diff fifo mlfq -w load.toml --json".to_owned(),
        AnswerKind::Sheet => "lab srtf --json".to_owned(),
        AnswerKind::Grades => "lab --grade in --loads 1".to_owned(),
        AnswerKind::Cases => "cases --format json".to_owned(),
        AnswerKind::Gate => {
            "gate fifo --against fifo -w load.toml --trials 0 --format json".to_owned()
        }
        AnswerKind::Evaluation => "evaluate e.toml fifo --format json".to_owned(),
    }
}

/// What scripts hold on to: the versions stand here a second time, so that none changes unseen.
#[test]
fn every_answer_for_programs_has_the_version_of_its_form() {
    let folder = Folder::new("versions");
    folder.write(
        "s.toml",
        "policy = ['fifo', 'mlfq']\nworkload = ['load.toml']\nseeds = 3\n",
    );
    folder.write("e.toml", "[[load]]\nload = 'desk'\n");
    folder.said("sim eevdf -w desk --duration 2s --events e.jsonl", 0);
    fs::create_dir(folder.0.join("in")).expect("writable");
    fs::create_dir(folder.0.join("fleet")).expect("writable");
    fs::copy(folder.0.join("e.jsonl"), folder.0.join("fleet/a.jsonl")).expect("writable");
    folder.said("list --copy sjf -o sjf.bpf.c", 0);
    folder.said("build sjf.bpf.c -o in/sjf.bpf.o", 0);
    let versions = AnswerKind::ALL.map(|answer| {
        let words = shlex::split(&call_for(answer)).expect("a shell's words");
        let mut program = Command::new(env!("CARGO_BIN_EXE_runslice"));
        let output = program.args(words).current_dir(&folder.0).output();
        let output = output.expect("the program starts");
        let said = text(output.stderr);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{answer:?}: {error}: {said}"));
        let version = document[answer.key()].as_u64();
        assert_eq!(version, Some(answer.version().into()), "{answer:?}");
        answer.version()
    });
    assert_eq!(versions, [2, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1]);
}

/// The last columns of each table of a run, and those that `list --columns` names for it.
#[test]
fn the_list_of_columns_has_those_of_every_table() {
    let folder = Folder::new("columns");
    let (list, _) = folder.said("list --columns", 0);
    let mut listed: Vec<(String, Vec<String>)> = Vec::new();
    let mut lines = list.lines();
    let at = lines.next().and_then(|it| it.find("column"));
    let at = at.expect("a head");
    // A meaning that goes on in a line of its own has nothing in front.
    for line in lines.filter(|it| it.get(at..).is_some_and(|it| !it.starts_with(' '))) {
        let word = |text: &str| text.split_whitespace().next().map(str::to_owned);
        if let Some(table) = word(&line[..at]) {
            listed.push((table, Vec::new()));
        }
        let (_, columns) = listed.last_mut().expect("a table stands first");
        columns.push(word(&line[at..]).expect("a column"));
    }
    assert_eq!(listed.len(), 12, "{list}");
    for (table, columns) in listed {
        let sim = format!("sim fifo -w load.toml --format csv --table {table}");
        let (csv, _) = folder.said(&sim, 0);
        let head: Vec<_> = csv.lines().next().expect("a head").split(',').collect();
        assert!(
            head.ends_with(&columns.iter().map(String::as_str).collect::<Vec<_>>()),
            "{table}"
        );
    }
}

#[test]
fn what_cannot_be_written_is_refused_before_the_run() {
    let folder = Folder::new("refused");
    folder.write("kept.txt", "kept");
    let before = folder.names();
    let verbs = [
        "sim fifo -w no-such.toml -o",
        "sim fifo -w no-such.toml --events",
        "choose fifo mlfq -w no-such.toml -o",
        "explain fifo -w no-such.toml -o",
        "trace pid 1 --sim fifo -w no-such.toml -o",
        "compare no-such.json -o",
        "report no-such.jsonl -o",
        "score no-such.dat -o",
        "calibrate no-such.jsonl --name x -o",
        "convert no-such.toml -o",
        "bundle no-such.bpf.o -o",
        "build no-such.bpf.c -o",
        "sweep no-such.toml -o",
    ];
    for verb in verbs {
        for (place, why) in [
            ("no/folder/x", "no such file or directory"),
            (".", "is a directory"),
        ] {
            let words = shlex::split(&format!("{verb} {place}")).expect("words");
            let output = command::run(env!("CARGO_BIN_EXE_runslice"), &folder.0, &words);
            let said = text(output.stderr);
            let begin = format!("runslice: cannot write {place}: {why}");
            let is_told = said.to_lowercase().starts_with(&begin);
            assert!(is_told, "{verb} {place}: {said}");
        }
    }
    // What is there stays as it is until there are results, and no empty file is left.
    folder.said("convert no-such.toml -o kept.txt", 1);
    folder.said("convert no-such.toml -o new.txt", 1);
    assert_eq!(
        fs::read_to_string(folder.0.join("kept.txt")).expect("there"),
        "kept"
    );
    assert_eq!(folder.names(), before);
}

#[test]
fn a_name_that_is_no_text_names_files_of_every_kind() {
    let folder = Folder::new("names");
    let odd = |name: &str| OsString::from_vec([b"o\xe9-\xff", name.as_bytes()].concat());
    folder.write(odd("load.toml"), LOAD);
    let fifo = policies::find("fifo").expect("a policy");
    fs::write(folder.0.join(odd("p.bpf.o")), fifo.object).expect("writable");
    let run = |words: &[&dyn AsRef<OsStr>], status: i32| {
        let words: Vec<&OsStr> = words.iter().map(|it| (*it).as_ref()).collect();
        command::said(env!("CARGO_BIN_EXE_runslice"), &folder.0, &words, status)
    };
    let (load, events) = (odd("load.toml"), odd("e.jsonl"));
    run(
        &[
            &"sim",
            &"fifo",
            &"-w",
            &load,
            &"--events",
            &events,
            &"-o",
            &odd("r.json"),
        ],
        0,
    );
    run(&[&"sim", &odd("p.bpf.o"), &"-w", &load], 0);
    folder.write(odd("q.bpf.c"), fifo.text);
    run(&[&"build", &odd("q.bpf.c"), &"-o", &odd("q.bpf.o")], 0);
    run(&[&"sim", &odd("q.bpf.c"), &odd("q.bpf.o"), &"-w", &load], 0);
    run(&[&"sim", &"fifo", &"--from", &events], 0);
    run(
        &[
            &"sim",
            &"fifo",
            &"mlfq",
            &"-w",
            &load,
            &"--events",
            &odd("two.jsonl"),
        ],
        0,
    );
    run(&[&"convert", &events, &"-o", &odd("of-events.toml")], 0);
    run(&[&"convert", &load, &"-o", &odd("rt.json")], 0);
    run(&[&"report", &events, &"-o", &odd("page.html")], 0);
    run(&[&"bundle", &odd("p.bpf.o"), &"-o", &odd("b.bundle")], 0);
    run(
        &[
            &"explain",
            &odd("b.bundle"),
            &"-w",
            &load,
            &"-o",
            &odd("x.txt"),
        ],
        0,
    );
    for name in [
        "e.jsonl",
        "r.json",
        "two.fifo.jsonl",
        "two.mlfq.jsonl",
        "of-events.toml",
    ] {
        assert!(folder.0.join(odd(name)).is_file(), "{name}");
    }
    let bytes = folder.names();
    let has_odd = |it: &OsString| it.as_bytes().starts_with(b"o\xe9-\xff") || it == "load.toml";
    assert!(bytes.iter().all(has_odd), "{bytes:?}");
}

#[test]
fn programs_and_policies_below_others_are_found_by_names_that_are_no_text() {
    let folder = Folder::new("named-programs");
    let odd = |name: &str| OsString::from_vec([b"o\xe9-\xff", name.as_bytes()].concat());
    let load = odd("load.toml");
    folder.write(load.clone(), LOAD);
    let fifo = policies::find("fifo").expect("a policy");
    fs::write(folder.0.join(odd("p.bpf.o")), fifo.object).expect("writable");
    let run = |words: &[&dyn AsRef<OsStr>], status: i32| {
        let words: Vec<&OsStr> = words.iter().map(|it| (*it).as_ref()).collect();
        command::said(env!("CARGO_BIN_EXE_runslice"), &folder.0, &words, status)
    };
    let sub = OsString::from_vec([b"app=", odd("p.bpf.o").as_bytes()].concat());
    let words: [&dyn AsRef<OsStr>; 8] = [
        &"sim",
        &"fifo",
        &"-w",
        &load,
        &"--kernel",
        &"7.3",
        &"--sub",
        &sub,
    ];
    let (_, said) = run(&words, 1);
    assert!(said.contains("cid form"), "{said}");
    std::os::unix::fs::symlink("/bin/true", folder.0.join(odd("true"))).expect("writable");
    let program = folder.0.join(odd("true"));
    let (_, said) = run(&[&"check", &"--scheduler", &program], 1);
    assert!(said.contains("before it attached a policy"), "{said}");
    // The VM gets its command as text.
    let (_, said) = run(&[&"vm", &"--", &program], 2);
    assert!(said.contains("no text (UTF-8)"), "{said}");
}

#[test]
fn a_name_that_is_no_text_is_said_as_it_is() {
    let folder = Folder::new("said-names");
    let odd = |name: &str| OsString::from_vec([b"o\xe9-\xff", name.as_bytes()].concat());
    let load = odd("load.toml");
    folder.write(load.clone(), LOAD);
    let run = |words: &[&dyn AsRef<OsStr>], status: i32| {
        let words: Vec<&OsStr> = words.iter().map(|it| (*it).as_ref()).collect();
        command::said(env!("CARGO_BIN_EXE_runslice"), &folder.0, &words, status)
    };
    let (_, said) = run(&[&"sim", &"fifo", &"-w", &odd("no.toml")], 1);
    let want = "runslice: cannot read o\\xe9-\\xffno.toml: No such file or directory";
    assert!(said.starts_with(want), "{said}");
    // A result does not take the place of its source.
    let (_, said) = run(&[&"sim", &"fifo", &"-w", &load, &"-o", &load], 2);
    assert!(said.contains("name two files"), "{said}");
}
