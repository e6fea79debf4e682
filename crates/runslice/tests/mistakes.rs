//! `golden/mistakes/commands.txt` shows what typical mistakes are told. Each command is run, in a
//! folder with the files below and nothing else; `UPDATE_GOLDEN=1` writes what the program says
//! now.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runslice_tests::folder;

/// What somebody has in his folder who makes mistakes.
const FILES: [(&str, &str); 16] = [
    ("empty.toml", ""),
    ("empty.json", ""),
    ("other.json", "{\"a\": 1}\n"),
    (
        "good.toml",
        "[workload]\nname = \"good\"\nstop = \"duration:1s\"\n[task.t]\ndo = \"run(1ms)\"\n",
    ),
    ("nameless.toml", "[task.t]\ndo = \"run(1ms)\"\n"),
    (
        "operation.toml",
        "[workload]\nname = \"x\"\n[task.t]\ndo = \"rn(1ms)\"\n",
    ),
    (
        "unit.toml",
        "[workload]\nname = \"x\"\n[task.t]\ndo = \"run(10)\"\n",
    ),
    (
        "key.toml",
        "[workload]\nname = \"x\"\n[task.t]\ndo = \"run(1ms)\"\nnicee = 3\n",
    ),
    (
        "channel.toml",
        "[workload]\nname = \"x\"\n[task.t]\ndo = \"recv(c)\"\n",
    ),
    ("bracket.toml", "[workload\nname = \"x\"\n"),
    (
        "broken.bpf.c",
        "#include <scx.h>\nint f(void)\n{\n\treturn x;\n}\n",
    ),
    (
        "header.bpf.c",
        "#include <stdio.h>\nint main(void)\n{\n\treturn 0;\n}\n",
    ),
    ("outside.bpf.c", "#include \"../solution/solution.bpf.c\"\n"),
    ("empty.bpf.c", "#include <scx.h>\nBPF_LICENSE();\n"),
    ("text.bpf.o", "this is no object\n"),
    (
        "sweep.toml",
        "policy = [\"fifo\"]\nworkload = [\"good.toml\"]\n[knobs.fifo]\nslice = [1, 2]\n",
    ),
];

/// Longest message, in characters: it must be read at a glance.
const LONGEST: usize = 420;
/// Lines of a message: what is wrong, and what to do.
const LINES: usize = 2;
/// Most lines where a compiler's own words stand between the two.
const LINES_COMPILED: usize = 12;

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/mistakes/commands.txt")
}

/// What the command says, and whether it ended well.
fn said(command: &str, folder: &Path) -> (Vec<String>, bool) {
    let program = Path::new(env!("CARGO_BIN_EXE_runslice"));
    let bin = program.parent().expect("it lies in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("LC_ALL", "C")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .expect("a shell starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (
        text.lines().map(str::to_owned).collect(),
        output.status.success(),
    )
}

#[test]
fn every_mistake_is_told_in_few_words() {
    let folder = folder!("mistakes");
    fs::create_dir_all(folder.join("folder")).expect("writable");
    for (name, text) in FILES {
        fs::write(folder.join(name), text).expect("writable");
    }
    let text = fs::read_to_string(page()).expect("the page is there");
    let (mut now, mut wrong, mut commands) = (String::new(), String::new(), 0);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let _ = writeln!(now, "{line}");
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        commands += 1;
        let is_message = |line: &&str| !line.starts_with("$ ") && *line != "```";
        while lines.next_if(is_message).is_some() {}
        let (message, is_good) = said(command, &folder);
        let length: usize = message.iter().map(|line| line.chars().count()).sum();
        let is_compiled = message
            .iter()
            .any(|line| line.ends_with("error generated."));
        let most = if is_compiled { LINES_COMPILED } else { LINES };
        let does_say = |line: &String| line.starts_with("  ") && !line.contains("(os error");
        let has_both =
            (LINES..=most).contains(&message.len()) && does_say(&message[message.len() - 1]);
        if is_good || !has_both || length > LONGEST {
            let _ = writeln!(wrong, "{command}: {message:#?}");
        }
        for line in message {
            let _ = writeln!(now, "{line}");
        }
    }
    assert!(commands >= 80, "{commands} mistakes");
    assert!(wrong.is_empty(), "not few words, or no mistake:\n{wrong}");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(page(), now).expect("writable");
        return;
    }
    assert!(text == now, "UPDATE_GOLDEN=1 writes what it is now:\n{now}");
}
