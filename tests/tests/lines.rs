//! How long the policies are, beside what was published of their sources. The table stands in
//! policies/README.md; `UPDATE_GOLDEN=1` writes it anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of the scheduler that a policy follows, as a document gives them.
const PUBLISHED: [(&str, &str); 2] = [
    ("mlfq", "about 450 (Torrey, Coleman and Miller)"),
    ("o1", "about 750 (the same)"),
];

const BEGIN: &str =
    "<!-- lines: written by `UPDATE_GOLDEN=1 cargo test -p runslice-tests --test lines` -->\n";
const END: &str = "<!-- end of lines -->\n";

fn policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies")
}

/// Lines that are neither empty nor comment.
fn code(text: &str) -> usize {
    let mut inside = false;
    let mut lines = 0;
    for line in text.lines().map(str::trim) {
        let begins = line.starts_with("/*");
        let comment = inside || begins || line.is_empty();
        inside = (inside || begins) && !line.contains("*/");
        lines += usize::from(!comment);
    }
    lines
}

/// Headers that a file includes, directly or not.
fn headers(text: &str, found: &mut BTreeSet<String>) {
    for line in text.lines() {
        let name = line
            .strip_prefix("#include <")
            .and_then(|rest| rest.strip_suffix('>'));
        let Some(name) = name else { continue };
        if found.insert(name.to_owned()) {
            let path = policies().join("include").join(name);
            headers(&fs::read_to_string(path).expect("a header"), found);
        }
    }
}

/// Headers about scheduling; the others are what every policy needs of BPF and `sched_ext`.
fn is_scheduling(header: &str) -> bool {
    ![
        "bpf.h",
        "scx.h",
        "knobs.bpf.h",
        "report.bpf.h",
        "hotplug.bpf.h",
    ]
    .contains(&header)
}

fn table() -> String {
    let mut table = String::from(
        "\n| policy | lines | of them code | code in headers about scheduling | \
         lines of the source, as published |\n\
         | --- | ---: | ---: | ---: | --- |\n",
    );
    for policy in policies::ALL {
        let name = policy.name;
        let path = policies().join(format!("{name}.bpf.c"));
        let text = fs::read_to_string(path).expect("a policy");
        let mut found = BTreeSet::new();
        headers(&text, &mut found);
        let shared = found
            .iter()
            .filter(|header| is_scheduling(header))
            .map(|header| {
                let path = policies().join("include").join(header);
                code(&fs::read_to_string(path).expect("a header"))
            });
        let published = PUBLISHED.iter().find(|(own, _)| *own == name);
        let _ = writeln!(
            table,
            "| `{name}` | {} | {} | {} | {} |",
            text.lines().count(),
            code(&text),
            shared.sum::<usize>(),
            published.map_or("", |(_, lines)| lines),
        );
    }
    table + "\n"
}

#[test]
fn the_readme_says_how_long_the_policies_are() {
    let path = policies().join("README.md");
    let readme = fs::read_to_string(&path).expect("the README");
    let begin = readme.find(BEGIN).expect("the begin of the table") + BEGIN.len();
    let end = readme.find(END).expect("the end of the table");
    let table = table();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let text = format!("{}{table}{}", &readme[..begin], &readme[end..]);
        fs::write(&path, text).expect("writable");
        return;
    }
    assert_eq!(
        &readme[begin..end],
        table,
        "UPDATE_GOLDEN=1 writes what it is now"
    );
}

#[test]
fn comments_and_empty_lines_are_no_code() {
    assert_eq!(
        code("/* one */\n\nint a;\t/* what */\n/*\n * b\n */\nint c;\n"),
        2
    );
}
