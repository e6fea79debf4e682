//! `runslice report`: the page and its figures, as files and in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn runslice(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("runslice starts")
}

fn good(arguments: &[&str], folder: &Path) {
    let output = runslice(arguments, folder);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
}

/// What [`runs`] leaves for a page.
const FILES: [&str; 3] = ["e.o1.jsonl", "e.staircase.jsonl", "s.o1.stat"];

/// Makes the page of [`FILES`], called `name`.
fn write_page(name: &str, folder: &Path) {
    good(&[&["report"], &FILES[..], &["-o", name]].concat(), folder);
}

/// An empty folder of the test `name`.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("report")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests is writable");
    folder
}

/// Events and statistics of two short runs, as `e.o1.jsonl`, `s.o1.stat` and so on.
fn runs(folder: &Path) {
    let sim = ["sim", "o1", "staircase", "-w", "desk", "--duration", "1s"];
    let files = [
        "--events",
        "e.jsonl",
        "--schedstat",
        "s.stat",
        "--schedstat-every",
        "100ms",
    ];
    good(&[&sim[..], &files].concat(), folder);
}

/// Width, height and the number of different colours of a PNG file.
#[cfg(feature = "png")]
fn picture(path: &Path) -> (u32, u32, usize) {
    let picture = resvg::tiny_skia::Pixmap::load_png(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let colours = picture.pixels().iter().map(|it| {
        let parts = [it.red(), it.green(), it.blue(), it.alpha()];
        u32::from_be_bytes(parts)
    });
    let colours: std::collections::HashSet<u32> = colours.collect();
    (picture.width(), picture.height(), colours.len())
}

#[cfg(feature = "png")]
#[test]
fn each_figure_is_a_picture_of_twice_its_size_with_more_than_one_colour() {
    let folder = folder("pictures");
    runs(&folder);
    let both = ["--svg", "figures", "--png", "figures"];
    good(&[&["report"], &FILES[..], &both].concat(), &folder);
    assert!(
        !folder.join("report.html").exists(),
        "nobody asked for a page"
    );
    let mut pictures = 0;
    for entry in fs::read_dir(folder.join("figures")).expect("a folder") {
        let svg = entry.expect("an entry").path();
        if svg.extension().is_none_or(|ending| ending != "svg") {
            continue;
        }
        pictures += 1;
        let text = fs::read_to_string(&svg).expect("a figure");
        let (_, rest) = text.split_once(" height=\"").expect("a height");
        let height: u32 = rest
            .split('"')
            .next()
            .unwrap_or("")
            .parse()
            .expect("a number");
        let (width, found, colours) = picture(&svg.with_extension("png"));
        assert_eq!((width, found), (1640, 2 * height), "{}", svg.display());
        // Paper, two inks, rules, at least one curve, and what lies between them at edges.
        assert!(colours > 10, "{}: {colours} colours", svg.display());
    }
    assert!(pictures > 10, "{pictures}");
}

const FIGURES: [&str; 11] = [
    "What the load is for",
    "How long tasks waited for a CPU",
    "Latency over time",
    "Runslice over time",
    "Imbalance over time",
    "Use of the CPUs over time",
    "Wakeup latency",
    "Run delay",
    "Calls per second",
    "Priority of tasks",
    "Who had the CPUs",
];

#[test]
fn a_page_has_every_figure() {
    let folder = folder("page");
    runs(&folder);
    write_page("r.html", &folder);
    let page = fs::read_to_string(folder.join("r.html")).expect("a page");
    for figure in FIGURES {
        let title = format!("font-weight=\"600\" fill=\"#1a1a1a\">{figure}</text>");
        assert!(page.contains(&title), "{figure}");
    }
    assert!(page.contains("Calls of the balancer"));
    assert!(page.contains("workload desk, 4 CPUs, HZ 250"));
    // The same input gives the same bytes, but for the name of the page.
    write_page("again.html", &folder);
    let again = fs::read_to_string(folder.join("again.html")).expect("a page");
    assert!(page == again.replace("again.html", "r.html"));
}

#[test]
fn figures_are_written_as_files_and_of_a_part_of_the_run() {
    let folder = folder("files");
    runs(&folder);
    let part = ["--between", "200ms..400ms", "--svg", "part"];
    good(
        &[&["report", "e.staircase.jsonl"][..], &part].concat(),
        &folder,
    );
    assert!(
        !folder.join("report.html").exists(),
        "only what was asked for"
    );
    let text = fs::read_to_string(folder.join("part/priority.svg")).expect("the staircase");
    assert!(text.starts_with("<?xml"));
    // The marks of the axis below are those of the window.
    assert!(
        text.contains(">200</text>") && text.contains(">400</text>"),
        "{text}"
    );
    assert!(!text.contains(">0</text>"));
}

/// A process may write files of one block only, which is as if the disk were full.
#[cfg(target_os = "linux")]
#[test]
fn a_figure_for_which_there_is_no_room_is_named_and_does_not_stay() {
    let folder = folder("no room");
    runs(&folder);
    let limited = "trap '' XFSZ; ulimit -f 1 && exec \"$0\" report e.o1.jsonl \"$@\"";
    for (option, to, left) in [
        ("--svg", "figures", Some("figures")),
        ("-o", "page.html", None),
    ] {
        let output = Command::new("sh")
            .args(["-c", limited, env!("CARGO_BIN_EXE_runslice"), option, to])
            .current_dir(&folder)
            .output()
            .expect("a shell starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.starts_with(&format!("runslice: cannot write {to}")),
            "{stderr}"
        );
        assert!(
            stderr.ends_with(": File too large (os error 27)\n"),
            "{stderr}"
        );
        let files = left.map_or(0, |it| fs::read_dir(folder.join(it)).expect("made").count());
        assert_eq!(files, 0, "nothing was whole");
        assert!(!folder.join("page.html").exists());
    }
}

#[test]
fn what_cannot_be_drawn_is_said() {
    let folder = folder("bad");
    runs(&folder);
    fs::write(folder.join("other.txt"), "hello\n").expect("writable");
    let whole = fs::read_to_string(folder.join("e.o1.jsonl")).expect("events");
    fs::write(folder.join("cut.jsonl"), &whole[..whole.len() / 2]).expect("writable");
    let first = "version 4\ntimestamp 1\ncpu0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
                 totals 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    fs::write(folder.join("one.stat"), first).expect("writable");
    let cases = [
        (
            "other.txt",
            "other.txt: neither events nor scheduler statistics",
        ),
        ("cut.jsonl", "cut.jsonl: cut off at line "),
        ("one.stat", "one.stat: there is only one snapshot"),
        ("missing", "cannot read missing"),
    ];
    for (file, message) in cases {
        let output = runslice(&["report", file, "-o", "bad.html"], &folder);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
        assert!(
            !folder.join("bad.html").exists(),
            "{file}: no page of what could not be read"
        );
    }
    let output = runslice(&["report", "e.o1.jsonl", "--between", "2s..1s"], &folder);
    assert_eq!(output.status.code(), Some(2));
}

/// A command of the guide's page of diagnoses, and the lines that it prints there.
fn commands(text: &str) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    let blocks = text.split("```console\n").skip(1);
    for line in blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines()) {
        match (line.strip_prefix("$ runslice "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((_, printed))) => printed.push(line.to_owned()),
            (None, None) => panic!("a block begins with a command: {line}"),
        }
    }
    commands
}

/// Figures of the page, the logs that they are drawn from, and their names there.
const DIAGNOSES: [(&str, &[&str], &str); 5] = [
    (
        "half-idle-balance",
        &["half-idle.stat"],
        "statistics-balance",
    ),
    (
        "doubled-latency",
        &["free.stat", "bound.stat"],
        "statistics-latency",
    ),
    (
        "doubled-runslice",
        &["free.stat", "bound.stat"],
        "statistics-runslice",
    ),
    (
        "only-idle-latency",
        &["usual.stat", "only-idle.stat"],
        "statistics-latency",
    ),
    (
        "only-idle-balance",
        &["usual.stat", "only-idle.stat"],
        "statistics-balance",
    ),
];

/// `UPDATE_GOLDEN=1` writes numbers and figures anew.
#[test]
fn the_diagnoses_are_what_the_program_prints_and_draws() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/src");
    let text = fs::read_to_string(docs.join("diagnoses.md")).expect("the page");
    let folder = folder("diagnoses");
    for entry in fs::read_dir(docs.join("diagnoses"))
        .expect("the folder")
        .flatten()
    {
        let to = folder.join(entry.file_name());
        fs::copy(entry.path(), to).expect("the folder for tests is writable");
    }
    let mut now = text.clone();
    for (command, printed) in commands(&text) {
        let words: Vec<&str> = command.split(' ').collect();
        let output = runslice(&words, &folder);
        assert_eq!(output.status.code(), Some(0), "{command}");
        if words[0] == "sim" {
            let said = String::from_utf8(output.stderr).expect("text");
            let said: Vec<&str> = said.lines().collect();
            assert_eq!(printed, said, "{command}: its table is left out");
            continue;
        }
        let seen = String::from_utf8(output.stdout).expect("text");
        let line = format!("$ runslice {command}\n");
        let old = format!(
            "{line}{}",
            printed.iter().map(|l| format!("{l}\n")).collect::<String>()
        );
        now = now.replace(&old, &format!("{line}{seen}"));
    }
    if update {
        fs::write(docs.join("diagnoses.md"), &now).expect("writable");
    } else {
        assert_eq!(text, now, "UPDATE_GOLDEN=1 writes what it is now");
    }
    for (name, logs, figure) in DIAGNOSES {
        good(
            &[&["report"], logs, &["--hz", "1000", "--svg", name]].concat(),
            &folder,
        );
        let drawn = folder.join(name).join(format!("{figure}.svg"));
        let drawn = fs::read_to_string(drawn).expect("a figure");
        let kept = docs.join("diagnoses").join(format!("{name}.svg"));
        assert!(
            text.contains(&format!("(diagnoses/{name}.svg)")),
            "{name} is on the page"
        );
        if update {
            fs::write(kept, drawn).expect("writable");
        } else {
            let kept = fs::read_to_string(kept).expect("a figure");
            assert!(
                kept == drawn,
                "{name}: UPDATE_GOLDEN=1 draws what it is now"
            );
        }
    }
}
