//! What is written about the policies: how long they are, beside what was published of their
//! sources, in policies/README.md (`UPDATE_GOLDEN=1` writes it anew); and which test shows which
//! numbered vector, in policies/VECTORS.md.

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
    "<!-- lines: written by `UPDATE_GOLDEN=1 cargo test -p runslice-tests lines::` -->\n";
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

/// The longest that a policy may be. Those over the queues of Linux 2.6 share a frame for it.
const LINES_MAX: usize = 550;

#[test]
fn no_policy_is_longer_than_its_reader_has_patience() {
    for policy in policies::ALL {
        let path = policies().join(format!("{}.bpf.c", policy.name));
        let text = fs::read_to_string(path).expect("a policy");
        let lines = text.lines().count();
        assert!(lines < LINES_MAX, "{}: {lines} lines", policy.name);
    }
}

/// What a header says depends on nothing that its reader has to look for: whoever includes it has
/// defined nothing before.
#[test]
fn policies_and_headers_include_others_before_all_else() {
    let include = policies().join("include");
    let folders = [policies(), include];
    let files = folders.iter().flat_map(|folder| {
        let entries = fs::read_dir(folder).expect("a folder of policies");
        entries.map(|entry| entry.expect("a file").path())
    });
    let is_c = |path: &PathBuf| path.extension().is_some_and(|e| e == "c" || e == "h");
    // It stands for a header that others generate, and gives the simulated kernels' lists of types
    // and functions their meaning before it reads them.
    let is_ours = |path: &PathBuf| !path.ends_with("vmlinux.h");
    let mut seen = 0;
    for path in files.filter(|path| is_c(path) && is_ours(path)) {
        let text = fs::read_to_string(&path).expect("a source");
        let code = text.lines().scan(false, |inside, line| {
            let comment = *inside || line.trim_start().starts_with("/*") || line.is_empty();
            *inside = (*inside || line.contains("/*")) && !line.contains("*/");
            Some((comment, line))
        });
        let mut begun = None;
        for (_, line) in code.filter(|(comment, _)| !comment) {
            if line.starts_with("#include") {
                assert_eq!(begun, None, "{}: {line} comes behind it", path.display());
                seen += 1;
            } else if !line.contains("RUNSLICE_") || !line.ends_with("_H") {
                begun = begun.or(Some(line));
            }
        }
    }
    assert!(seen > 20, "only {seen} includes");
}

// ---- The numbered vectors ----

/// How many there are of each policy, the letter of their names, and how many of them no test can
/// show.
const VECTORS: [(&str, char, usize, usize); 6] = [
    ("goodness", 'v', 7, 0),
    ("elsc", 'v', 8, 1),
    ("o1", 'v', 9, 0),
    ("staircase5", 's', 3, 0),
    ("staircase", 'b', 6, 0),
    ("mlfq", 'm', 7, 0),
];

/// Functions behind `#[test]`.
fn tests_in(source: &str) -> BTreeSet<&str> {
    let after = source.split("\n#[test]\nfn ").skip(1);
    after
        .map(|rest| &rest[..rest.find('(').expect("a function")])
        .collect()
}

/// Names in back quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_numbered_vector_names_its_tests_or_says_why_there_is_none() {
    let text = fs::read_to_string(policies().join("VECTORS.md")).expect("the list");
    for (policy, letter, count, without) in VECTORS {
        let section = text
            .split("\n## ")
            .find(|part| part.starts_with(&format!("{policy}\n")));
        let section = section.unwrap_or_else(|| panic!("no section {policy}"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{policy}.rs"));
        let source = fs::read_to_string(path).expect("the tests");
        let tests = tests_in(&source);
        let mut named = BTreeSet::new();
        let mut reasons = 0;
        let rows: Vec<Vec<&str>> = section
            .lines()
            .filter(|line| line.starts_with("| ") && !line.contains("---"))
            .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
            .collect();
        let numbers: Vec<&str> = rows[1..].iter().map(|row| row[0]).collect();
        let letter_up = letter.to_ascii_uppercase();
        let want: Vec<String> = (1..=count).map(|n| format!("{letter_up}{n}")).collect();
        assert_eq!(numbers, want, "{policy}");
        for row in &rows[1..] {
            let [number, _, shows] = row[..] else {
                panic!("{policy}: three cells, not {row:?}")
            };
            if shows.starts_with("none: ") {
                reasons += 1;
                continue;
            }
            let before = named.len();
            for name in quoted(shows) {
                assert!(tests.contains(name), "{policy} {number}: no test `{name}`");
                named.insert(name);
            }
            assert!(named.len() > before, "{policy} {number} names no test");
        }
        assert_eq!(reasons, without, "{policy}");
        let is_numbered = |name: &&&str| {
            let digits = name.strip_prefix(letter);
            digits.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        for name in tests.iter().filter(is_numbered) {
            assert!(
                named.contains(*name),
                "{policy}: `{name}` is not in the list"
            );
        }
    }
}

#[test]
fn comments_and_empty_lines_are_no_code() {
    assert_eq!(
        code("/* one */\n\nint a;\t/* what */\n/*\n * b\n */\nint c;\n"),
        2
    );
}
