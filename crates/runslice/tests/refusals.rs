//! A refusal names what would work. golden/refusals/commands.txt has wrong command lines of every
//! verb, with what each is told: the status, what is wrong, and what to do. `UPDATE_GOLDEN=1`
//! writes what the program says now; whoever commits that reads it as a user does.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runslice_tests::command;

/// What lies in the folder where the commands are typed.
const FILES: [(&str, &str); 6] = [
    (
        "good.toml",
        "[workload]\nname = \"good\"\nstop = \"duration:1s\"\n[task.t]\ndo = \"run(1ms)\"\n",
    ),
    (
        "word.toml",
        "[workload]\nname = \"word\"\n[machine]\ncpus = \"one\"\n[task.t]\ndo = \"run(1ms)\"\n",
    ),
    ("empty.bpf.c", "#include <scx.h>\nBPF_LICENSE();\n"),
    ("runs.json", "{\"a\": 1}\n"),
    ("notes.txt", "notes\n"),
    (
        "sweep.toml",
        "policy = [\"desk\"]\nworkload = [\"good.toml\"]\n",
    ),
];

/// Most characters of a line: it is read at a glance. A list of names may be longer.
const LONGEST: usize = 240;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/refusals/commands.txt")
}

/// What the command line is told.
fn told(line: &str, folder: &Path) -> String {
    let words = shlex::split(line).expect("a shell's words");
    let output = Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(&words[1..])
        .current_dir(folder)
        .env("LC_ALL", "C")
        .env("RUNSLICE_PYTHON", "/no/such/python3")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let status = output.status.code().expect("it ends by itself");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(output.stdout.is_empty(), "{line}: it prints results");
    assert!(
        matches!(status, 1 | 2 | 4),
        "{line}: status {status}\n{said}"
    );
    let lines: Vec<&str> = said.lines().collect();
    let [wrong, todo] = lines[..] else {
        panic!("{line}: not what is wrong and what to do:\n{said}");
    };
    assert!(wrong.contains(": ") && todo.starts_with("  "), "{said}");
    for part in [wrong, todo] {
        let is_list = part.contains("here are: ");
        assert!(is_list || part.chars().count() <= LONGEST, "{part}");
    }
    format!("$ {line}\nstatus {status}\n{wrong}\n{todo}\n")
}

/// All verbs that this program has.
fn verbs() -> BTreeSet<String> {
    let here = Path::new(".");
    let (help, _) = command::said(env!("CARGO_BIN_EXE_runslice"), here, &["--help"], 0);
    let lists = help.split("\nOptions:").next().expect("a first part");
    let lines = lists.lines().filter_map(|line| line.strip_prefix("  "));
    let names = lines.filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split(' ').next());
    // The commands to start with begin with the program's name.
    names
        .filter(|it| *it != "runslice")
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_refusal_of_any_verb_says_what_is_wrong_and_what_to_do() {
    let folder = command::empty_folder(env!("CARGO_TARGET_TMPDIR"), "refusals");
    for (name, text) in FILES {
        fs::write(folder.join(name), text).expect("writable");
    }
    let want = fs::read_to_string(golden()).expect("the golden file");
    let (head, _) = want.split_once("\n$ ").expect("commands");
    let lines = want.lines().filter_map(|line| line.strip_prefix("$ "));
    let lines: Vec<&str> = lines.collect();
    assert!(lines.len() >= 40, "{}", lines.len());
    let tried = lines.iter().filter_map(|line| line.split(' ').nth(1));
    let tried: BTreeSet<String> = tried.map(str::to_owned).collect();
    let left_out: Vec<_> = verbs().difference(&tried).cloned().collect();
    assert!(left_out.is_empty(), "no refusal of {left_out:?}");
    let mut text = head.trim_end().to_owned() + "\n";
    for line in lines {
        write!(text, "\n{}", told(line, &folder)).expect("memory");
    }
    let made = fs::read_dir(&folder).expect("there").count();
    assert_eq!(made, FILES.len(), "a refused command left a file");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(golden(), &text).expect("writable");
        return;
    }
    assert_eq!(text, want, "UPDATE_GOLDEN=1 writes what it says now");
}
