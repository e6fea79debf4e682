//! The examples of each page of help, typed as they stand there.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RUNSLICE: &str = env!("CARGO_BIN_EXE_runslice");

/// Beginnings of notes that say why an example does not run everywhere.
const ELSEWHERE: [&str; 4] = ["as root", "needs", "downloads", "takes"];

/// The lines behind a page's headings of examples, without the note; those for other computers are
/// left out.
fn examples(help: &str) -> Vec<String> {
    let mut lines = help.lines();
    let is_title = |line: &str| line == "Examples:" || line.starts_with("Start here");
    lines.by_ref().find(|line| is_title(line));
    let (mut commands, mut above) = (Vec::new(), "");
    for line in lines.map(str::trim).take_while(|line| !line.is_empty()) {
        // A note that has no room behind its command stands above it.
        if let Some(note) = line.strip_prefix("# ") {
            above = note;
            continue;
        }
        let (command, note) = line.split_once("  # ").unwrap_or((line, above));
        if !ELSEWHERE.iter().any(|begin| note.starts_with(begin)) {
            commands.push(command.to_owned());
        }
        above = "";
    }
    commands
}

fn help_of(words: &[&str]) -> String {
    let output = Command::new(RUNSLICE).args(words).arg("-h").output();
    let output = output.expect("runslice starts");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Types `command` in `folder`, where `runslice` is the program under test.
fn typed(command: &str, folder: &Path) -> Output {
    let bin = folder.join("bin");
    if !bin.exists() {
        std::fs::create_dir_all(&bin).expect("a writable folder");
        std::os::unix::fs::symlink(RUNSLICE, bin.join("runslice")).expect("a new link");
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder);
    shell.env("PATH", format!("{}:{path}", bin.display()));
    shell.output().expect("there is a shell")
}

fn empty(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("help")
        .join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests is writable");
    folder
}

/// Types the examples of a page, and says which of them end as a mistake or a failure.
fn failures(words: &[&str]) -> Vec<String> {
    let folder = empty(&format!("page-{}", words.join("-")));
    let run = |command: String| {
        let output = typed(&command, &folder);
        let is_answer = matches!(output.status.code(), Some(0 | 3 | 5 | 6));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (!is_answer).then(|| format!("{command}: {}\n{said}", output.status))
    };
    examples(&help_of(words))
        .into_iter()
        .filter_map(run)
        .collect()
}

#[test]
fn the_examples_of_help_run_as_printed_in_an_empty_folder() {
    let verbs = [
        "",
        "sim",
        "sweep",
        "list",
        "build",
        "check",
        "bundle",
        "convert",
        "explain",
        "hunt",
        "cases",
        "gate",
        "diff",
        "trace",
        "compare",
        "choose",
        "score",
        "evaluate",
        "report",
        "stat",
        "stat report",
        "stat diff",
        "load series",
        "lab",
        "completions",
        "man",
    ];
    let mut wrong = Vec::new();
    let mut typed = 0;
    for verb in verbs {
        let words: Vec<_> = verb.split_whitespace().collect();
        typed += examples(&help_of(&words)).len();
        wrong.extend(failures(&words));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(typed > 40, "only {typed} examples were found");
}

/// Commands of a block of the README, each with the lines that the README shows of its output.
fn commands(block: &str) -> Vec<(String, Vec<&str>)> {
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push((command.to_owned(), Vec::new())),
            (None, Some((_, shown))) if line != "..." => shown.push(line),
            _ => {}
        }
    }
    all
}

#[test]
fn the_readmes_commands_print_in_an_empty_folder_what_the_readme_shows() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("readable");
    let begin = readme.find("## Use it").expect("a chapter of use");
    let block = readme[begin..]
        .split("```")
        .nth(1)
        .expect("a block of commands");
    let folder = empty("readme");
    let all = commands(block);
    assert_eq!(all.len(), 6, "the README has lost a command");
    for (command, shown) in all {
        let output = typed(&command, &folder);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        let mut lines = printed.lines();
        for line in shown {
            let is_there = lines.any(|it| it.trim_end() == line.trim_end());
            assert!(
                is_there,
                "{command} does not print, in this order:\n{line}\n\n{printed}"
            );
        }
    }
}
