//! Names out of files of others are shown, and obeyed by nothing: neither by a page nor by a
//! terminal, a table's rows, a spreadsheet or an XML reader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use runslice_tests::folder;

/// Names of three groups and of their workload: markup, what a terminal obeys with the end of a
/// line and of a cell, a formula, and what ends a text of HTML, XML and JSON.
const NAMES: [&str; 4] = [
    "<script>alert(1)</script>",
    "a\u{1b}[31mb\nfifo does best\u{202e}d|e",
    "=cmd|x",
    "&amp;\"']]>-->",
];

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("it starts")
}

/// A file of events whose groups and workload have these names.
fn events(name: &str) -> PathBuf {
    let folder = folder!(name);
    let groups: Vec<String> = (0..4)
        .map(|at| format!("[task.name{at}]\ndo = [\"loop(inf)[ run(1ms), sleep(1ms) ]\"]\n"))
        .collect();
    let load = format!(
        "[workload]\nname = \"name4\"\nstop = \"duration:50ms\"\n{}",
        groups.concat()
    );
    fs::write(folder.join("w.toml"), load).expect("writable");
    let made = run(
        &folder,
        &["sim", "fifo", "-w", "w.toml", "--events", "e.jsonl"],
    );
    assert!(made.status.success(), "{made:?}");
    let mut text = fs::read_to_string(folder.join("e.jsonl")).expect("written");
    for (at, name) in NAMES.iter().chain([&NAMES[1]]).enumerate() {
        let plain = format!("\"name{at}\"");
        assert!(text.contains(&plain), "{at}");
        text = text.replace(&plain, &serde_json::to_string(name).expect("a text"));
    }
    fs::write(folder.join("e.jsonl"), text).expect("writable");
    folder
}

/// Refuses what a terminal obeys, and a line that a name began.
fn check_plain(what: &str, text: &str) {
    let obeyed = text.chars().find(|it| *it == '\u{1b}' || *it == '\u{202e}');
    assert_eq!(obeyed, None, "{what}");
    let forged = text
        .lines()
        .find(|it| it.trim().starts_with("fifo does best\\u202e"));
    assert_eq!(forged, None, "{what}: {text}");
}

#[test]
fn pages_show_names_of_others_and_do_not_obey_them() {
    let folder = events("names-pages");
    let compared = ["sim", "fifo", "mlfq", "--from", "e.jsonl", "-o", "sim.html"];
    for arguments in [&compared[..], &["report", "e.jsonl", "-o", "report.html"]] {
        let made = run(&folder, arguments);
        assert!(made.status.success(), "{made:?}");
        check_plain("standard output", &String::from_utf8_lossy(&made.stdout));
        let file = folder.join(arguments.last().expect("a file"));
        let page = fs::read_to_string(file).expect("written");
        check_plain("page", &page);
        assert!(!page.contains("<script>alert"), "{arguments:?}");
        assert!(page.contains("&lt;script&gt;alert(1)"), "{arguments:?}");
        assert!(
            page.contains("a\\u001b[31mb\\u000afifo does best\\u202ed|e"),
            "{arguments:?}"
        );
        // One script, and one end of it: the page's own.
        assert_eq!(page.matches("<script").count(), 1, "{arguments:?}");
        assert_eq!(page.matches("</script").count(), 1, "{arguments:?}");
    }
}

#[test]
fn tables_of_every_format_have_no_row_or_cell_that_a_name_began() {
    let folder = events("names-tables");
    let said = |more: &[&str]| {
        let sim = ["sim", "fifo", "mlfq", "--from", "e.jsonl"];
        let made = run(&folder, &[&sim[..], more].concat());
        assert!(made.status.success(), "{made:?}");
        let text = String::from_utf8(made.stdout).expect("UTF-8");
        check_plain(&more.join(" "), &text);
        check_plain("standard error", &String::from_utf8_lossy(&made.stderr));
        text
    };
    assert!(said(&["--wide"]).contains("a\\u001b[31mb\\u000afifo"));
    let csv = said(&["--format", "csv"]);
    // A cell that begins with a sign of formulas is a text.
    assert!(
        !csv.lines()
            .flat_map(|it| it.split(','))
            .any(|it| it.starts_with("=cmd")),
        "{csv}"
    );
    assert!(csv.contains("'=cmd|x"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&said(&["--format", "json"])).expect("JSON");
    assert!(json["runs"].is_array());
    let markdown = said(&["--format", "markdown"]);
    let widths = markdown.lines().filter(|it| it.starts_with('|'));
    let widths = widths.map(|it| it.replace("\\|", "").matches('|').count());
    let all: Vec<usize> = widths.collect();
    assert!(all.windows(2).all(|two| two[0] == two[1]), "{markdown}");
    assert!(!markdown.contains("<script>"), "{markdown}");
    let junit = said(&["--format", "junit"]);
    assert!(!junit.contains("<script>"), "{junit}");
    assert!(!junit.contains("]]>"), "{junit}");
}

/// Verbs that follow tasks; what they say of a name that nothing has lists those that there are.
#[test]
fn verbs_that_follow_a_task_say_its_name_and_do_not_obey_it() {
    let folder = events("names-verbs");
    let hidden = "a\\u001b[31mb\\u000afifo does best\\u202ed|e";
    for (arguments, has_it) in [
        (
            &["explain", "--events", "e.jsonl", "--worst", "9"][..],
            true,
        ),
        (&["trace", "pid", NAMES[1], "--from", "e.jsonl"], false),
        (&["trace", "queue", "nobody", "--from", "e.jsonl"], true),
        (
            &[
                "trace",
                "status",
                "\u{1b}[2J\nfifo does best\u{202e}",
                "--from",
                "e.jsonl",
            ],
            true,
        ),
        (&["convert", "e.jsonl"], false),
        (&["stat", "report", "e.jsonl"], false),
        (&["choose", "fifo", "mlfq", "--from", "e.jsonl"], true),
    ] {
        let made = run(&folder, arguments);
        let said = [made.stdout, made.stderr].concat();
        let said = String::from_utf8(said).expect("UTF-8");
        check_plain(&format!("{arguments:?}"), &said);
        assert!(!has_it || said.contains(hidden), "{arguments:?}: {said}");
    }
}

/// Names in an object and in a workload's file, in place of those that a compiler and a person
/// wrote.
#[test]
fn names_in_objects_and_workloads_begin_no_line_and_are_not_obeyed() {
    let folder = folder!("names-objects");
    let object = fs::read(runslice_tests::object!("grows")).expect("compiled");
    // As long as what it takes the place of; and one for each place that the name has.
    for (at, name) in [
        &b"grows"[..],
        b"grows_enqueue",
        b"grows_ops",
        b"grows.bpf.c",
    ]
    .into_iter()
    .enumerate()
    {
        let mut hostile = object.clone();
        let places = object.windows(name.len()).enumerate();
        for (place, _) in places.filter(|(_, it)| *it == name) {
            hostile[place..place + 5].copy_from_slice(b"\x1b[3\nX");
        }
        let file = format!("hostile{at}.bpf.o");
        fs::write(folder.join(&file), hostile).expect("writable");
        let policy = format!("./{file}");
        let load = ["-w", "desk", "--duration", "20ms"];
        for arguments in [
            [&["check", &policy][..], &[]],
            [&["sim", &policy, "--memory", "2"], &load],
            [&["explain", &policy], &load],
            [
                &["hunt", &policy, "--trials", "1", "-o", &format!("hunt{at}")],
                &[],
            ],
            [
                &["trace", "pid", "pointer", "--sim", &policy, "--for", "20ms"],
                &load[..2],
            ],
        ] {
            let arguments = arguments.concat();
            let made = run(&folder, &arguments);
            let said = [made.stdout, made.stderr].concat();
            let said = String::from_utf8(said).expect("UTF-8");
            check_plain(&format!("{arguments:?}"), &said);
            let forged = said.lines().find(|it| it.starts_with('X'));
            assert_eq!(forged, None, "{arguments:?}: {said}");
        }
    }
    let name = "a\\u001b[31mb\\nfifo does best\\u202ed";
    for text in [
        format!("[workload]\nname = \"w\"\n[task.\"{name}\"]\ndo = \"run(1ms)\"\n"),
        format!("[workload]\nname = \"w\"\n\"{name}\" = 1\n[task.t]\ndo = \"run(1ms)\"\n"),
        format!("[workload]\nname = \"w\"\n[task.t]\n\"{name}\" = 1\ndo = \"run(1ms)\"\n"),
        format!("[workload]\nname = \"w\"\n[task.t]\nkind = \"{name}\"\ndo = \"run(1ms)\"\n"),
        format!("[workload]\nname = \"w\"\n[task.t]\ndo = \"{name}\"\n"),
        format!("[workload]\nname = \"{name}\"\n[task.t]\ndo = \"run(1ms)\"\n"),
    ] {
        fs::write(folder.join("w.toml"), &text).expect("writable");
        for verb in ["sim", "explain", "hunt"] {
            let made = run(
                &folder,
                &[verb, "fifo", "-w", "w.toml", "--duration", "1ms"],
            );
            let said = [made.stdout, made.stderr].concat();
            check_plain(&text, &String::from_utf8(said).expect("UTF-8"));
        }
    }
}

#[test]
fn bundles_are_called_what_no_table_takes_for_a_row() {
    let folder = folder!("names-bundle");
    let made = run(&folder, &["bundle", "fifo", "-o", "f.bundle"]);
    assert!(made.status.success(), "{made:?}");
    let mut file = fs::read(folder.join("f.bundle")).expect("written");
    let name = b"\"name\":\"fifo\"";
    let at = file
        .windows(name.len())
        .position(|it| it == name)
        .expect("its name");
    let hostile = format!(
        "\"name\":{}",
        serde_json::to_string(NAMES[1]).expect("a text")
    );
    file.splice(at..at + name.len(), hostile.bytes());
    fs::write(folder.join("f.bundle"), file).expect("writable");
    for more in [
        &["--wide"][..],
        &["--format", "markdown"],
        &["--format", "csv"],
    ] {
        let sim = ["sim", "f.bundle", "-w", "desk", "--duration", "100ms"];
        let made = run(&folder, &[&sim[..], more].concat());
        assert!(made.status.success(), "{made:?}");
        let text = String::from_utf8_lossy(&made.stdout);
        check_plain(&more.join(" "), &text);
        // Markdown escapes more of it.
        assert!(text.contains("\\u000afifo does best"), "{text}");
    }
}
