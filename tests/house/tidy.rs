//! Rules of the house that no compiler checks. Each rule looks at one file and returns what is
//! wrong with it; each has a test that it bites.

mod words;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the project: its path from the root, and its text.
struct File {
    path: String,
    text: String,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn ends_with(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.path.ends_with(ending))
    }

    fn is_code(&self) -> bool {
        self.ends_with(&[
            ".rs",
            ".c",
            ".h",
            ".py",
            ".pyi",
            ".sh",
            "Makefile",
            ".ci/run",
            "scripts/cargo",
        ])
    }

    fn is_c(&self) -> bool {
        self.ends_with(&[".c", ".h"])
    }
}

type Rule = fn(&File) -> Vec<String>;

const RULES: [(&str, Rule); 10] = [
    ("lines fit in 100 columns", long_lines),
    ("files have at most 800 lines", long_files),
    ("nothing is left over", leftovers),
    ("nothing depends on one computer", places),
    (
        "nothing is put where others may have put something",
        shared_places,
    ),
    ("lints are silenced with a reason", silenced),
    ("a bool is asked by `if`", matched_bools),
    ("C files name their licence", licence_lines),
    ("crates name their licence", crate_licences),
    ("policies have their header", policy_headers),
];

const COLUMNS: usize = 100;
const LINES: usize = 800;

fn numbered(file: &File, wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    lines
        .filter(|(_, line)| wrong(line))
        .map(|(at, line)| format!("{}: {line}", at + 1))
        .collect()
}

fn long_lines(file: &File) -> Vec<String> {
    if !file.is_code() {
        return Vec::new();
    }
    // A tab in C and in a Makefile is eight columns wide.
    numbered(file, |line| {
        line.replace('\t', "        ").chars().count() > COLUMNS
    })
}

fn long_files(file: &File) -> Vec<String> {
    let lines = file.text.lines().count();
    let long = file.is_code() && lines > LINES;
    long.then(|| format!("{lines} lines")).into_iter().collect()
}

fn leftovers(file: &File) -> Vec<String> {
    // Spelt in two halves, so that this file does not find itself.
    let words = [
        concat!("dbg", "!("),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("FIX", "ME"),
        concat!("X", "XX"),
    ];
    if !file.is_code() {
        return Vec::new();
    }
    numbered(file, |line| words.iter().any(|word| line.contains(word)))
}

/// Paths of one computer, and what lies beside the checkout. Only `.ci/run` may look there.
fn places(file: &File) -> Vec<String> {
    let words = [
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("sha", "red/"),
    ];
    if file.path == ".ci/run" || file.path == "Cargo.lock" {
        return Vec::new();
    }
    numbered(file, |line| {
        words.iter().any(|word| names_a_place(line, word))
    })
}

/// Fixed paths below the folder where every user may write. `OwnFolder` makes one that is safe.
fn shared_places(file: &File) -> Vec<String> {
    let is_product = file.ends_with(&[".rs"])
        && file.path.contains("/src/")
        && !file.path.starts_with("tests/")
        && !file.path.ends_with("tests.rs");
    if !is_product {
        return Vec::new();
    }
    numbered(file, |line| line.contains(concat!("\"/tm", "p/")))
}

/// Whether `word` stands in `line` as the first part of a path of its own.
fn names_a_place(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '}')
    })
}

fn silenced(file: &File) -> Vec<String> {
    let bare = concat!("#[al", "low(");
    let inner = concat!("#![al", "low(");
    if !file.ends_with(&[".rs"]) {
        return Vec::new();
    }
    numbered(file, |line| line.contains(bare) || line.contains(inner))
}

/// Arms of a `match` on a bool. The lint passes over one with a guard.
fn matched_bools(file: &File) -> Vec<String> {
    if !file.ends_with(&[".rs"]) {
        return Vec::new();
    }
    numbered(file, |line| {
        let arm = line.trim_start();
        ["true ", "false "].iter().any(|word| {
            let rest = arm.strip_prefix(word);
            rest.is_some_and(|it| it.starts_with("=>") || it.starts_with("if "))
        })
    })
}

fn licence_lines(file: &File) -> Vec<String> {
    let first = file.text.lines().next().unwrap_or_default();
    let named = ["GPL-2.0-only", "MIT OR Apache-2.0"]
        .iter()
        .any(|id| first.contains(&format!("SPDX-License-Identifier: {id}")));
    let missing = file.is_c() && !named;
    missing
        .then(|| "1: no SPDX-License-Identifier".to_owned())
        .into_iter()
        .collect()
}

fn crate_licences(file: &File) -> Vec<String> {
    let manifest = file.path.ends_with("Cargo.toml");
    let named = file.text.lines().any(|line| line.starts_with("license"));
    (manifest && !named)
        .then(|| "no licence".to_owned())
        .into_iter()
        .collect()
}

fn policy_headers(file: &File) -> Vec<String> {
    let policy = file
        .path
        .strip_prefix("policies/")
        .is_some_and(|name| !name.contains('/') || name.starts_with("lessons/"));
    if !policy || !file.path.ends_with(".bpf.c") {
        return Vec::new();
    }
    let comment = |line: &&str| {
        ["/*", "*", "//"]
            .iter()
            .any(|it| line.trim().starts_with(it))
    };
    let header: Vec<&str> = file.text.lines().take_while(comment).skip(1).collect();
    let header = header.join("\n");
    let mut wrong = Vec::new();
    let promise = header.split("Source:").next().unwrap_or_default();
    let marks = ["*", "/*", "*/", "//"];
    if promise
        .split_whitespace()
        .filter(|word| !marks.contains(word))
        .count()
        < 5
    {
        wrong.push("the header does not say what the policy promises".to_owned());
    }
    for part in ["Source:", "Differs from the source:"] {
        if !header.contains(part) {
            wrong.push(format!("the header has no `{part}`"));
        }
    }
    wrong
}

/// Rust files that no module declares, which the compiler therefore never sees.
fn unreachable_modules(files: &[File]) -> Vec<String> {
    let sources: Vec<&File> = files
        .iter()
        .filter(|file| file.ends_with(&[".rs"]))
        .collect();
    sources
        .iter()
        .filter(|file| !is_reached(files, &sources, &file.path) && !is_target(files, &file.path))
        .map(|f| f.path.clone())
        .collect()
}

/// Whether the manifest of a folder above names the file.
fn is_target(files: &[File], path: &str) -> bool {
    let names = |file: &File| {
        let folder = file.path.strip_suffix("Cargo.toml")?;
        let within = path.strip_prefix(folder)?;
        Some(file.text.contains(&format!("path = \"{within}\"")))
    };
    files.iter().any(|file| names(file) == Some(true))
}

fn is_reached(files: &[File], sources: &[&File], path: &str) -> bool {
    let path = Path::new(path);
    let (Some(stem), Some(folder)) = (path.file_stem(), path.parent()) else {
        return true;
    };
    let stem = stem.to_string_lossy();
    let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_found = is_found_by_cargo(sources, folder) && !has_named_tests(files, folder);
    if is_found || matches!(&*stem, "lib" | "main" | "build") {
        return true;
    }
    // `a/mod.rs` is declared by the parents of `a.rs`.
    let (module, folder) = match (&*stem, folder.parent()) {
        ("mod", Some(above)) => (folder_name.into_owned(), above),
        _ => (stem.into_owned(), folder),
    };
    let declaration = format!("mod {module};");
    let by_path = format!("#[path = \"{module}.rs\"]");
    // Each test that lies in a folder of tests is a root with modules of its own.
    let has_roots = is_found_by_cargo(sources, folder);
    let declares = |file: &&&File| {
        let path = Path::new(&file.path);
        let may = parents(folder).iter().any(|it| it == path)
            || path.parent() == Some(folder) && (has_roots || is_target(files, &file.path));
        let is_beside = path.parent() == Some(folder);
        may && file.text.contains(&declaration) || is_beside && file.text.contains(&by_path)
    };
    sources.iter().any(|file| declares(&file))
}

/// Whether `folder` has the tests of a package whose manifest names each program of tests.
fn has_named_tests(files: &[File], folder: &Path) -> bool {
    let is_tests = folder.file_name().is_some_and(|it| it == "tests");
    let manifest = folder.with_file_name("Cargo.toml");
    let names =
        |file: &File| Path::new(&file.path) == manifest && has_line(file, "autotests = false");
    is_tests && files.iter().any(names)
}

fn has_line(file: &File, wanted: &str) -> bool {
    file.text.lines().any(|line| line == wanted)
}

/// Whether cargo takes each file that lies in `folder` for a program of its own.
fn is_found_by_cargo(sources: &[&File], folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    matches!(&*name, "tests" | "benches" | "examples" | "bin")
        && folder
            .parent()
            .is_some_and(|it| sources.iter().any(|f| is_crate_root(&f.path, it)))
}

fn is_crate_root(path: &str, package: &Path) -> bool {
    let path = Path::new(path);
    ["src/lib.rs", "src/main.rs"]
        .iter()
        .any(|root| path == package.join(root))
}

/// The files that may declare a module that lies in `folder`.
fn parents(folder: &Path) -> Vec<PathBuf> {
    let mut parents: Vec<PathBuf> = ["lib.rs", "main.rs", "mod.rs"]
        .iter()
        .map(|name| folder.join(name))
        .collect();
    parents.push(folder.with_extension("rs"));
    parents
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file of the project that is text.
fn project() -> Vec<File> {
    let read = |path: String| {
        // A file may be binary, or deleted and not yet committed.
        let text = std::fs::read_to_string(root().join(&path)).ok()?;
        Some(File { path, text })
    };
    let paths = tracked().unwrap_or_else(|| lying_below(Path::new("")));
    let files: Vec<File> = paths.into_iter().filter_map(read).collect();
    assert!(files.len() > 50, "most files were not found");
    files
}

/// What git tracks, and what is new and not ignored; `None` in an archive without git.
fn tracked() -> Option<Vec<String>> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root())
        .output()
        .ok()?;
    let paths = String::from_utf8(listed.stdout).expect("paths are UTF-8");
    let paths = paths.split_terminator('\0').map(str::to_owned);
    listed.status.success().then(|| paths.collect())
}

/// Every file below `folder`, a path from the root, but what builds leave behind.
fn lying_below(folder: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).expect("a readable folder") {
        let entry = entry.expect("a readable folder");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = folder.join(&name);
        if !entry.file_type().expect("a readable entry").is_dir() {
            paths.push(path.to_string_lossy().into_owned());
        } else if name != ".git" && !name.starts_with("target") {
            paths.extend(lying_below(&path));
        }
    }
    paths
}

#[test]
fn the_project_keeps_its_rules() {
    let files = project();
    let mut wrong = Vec::new();
    for file in &files {
        for (name, rule) in RULES {
            let complaints = rule(file);
            wrong.extend(
                complaints
                    .iter()
                    .map(|what| format!("{}:{what} ({name})", file.path)),
            );
        }
    }
    let lost = unreachable_modules(&files);
    wrong.extend(
        lost.iter()
            .map(|path| format!("{path}: no module declares it")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_readme_names_the_two_commands() {
    let files = project();
    let readme = files
        .iter()
        .find(|file| file.path == "README.md")
        .expect("README.md exists");
    assert!(readme.text.contains("make demo") && readme.text.contains("make test"));
}

#[test]
fn each_rule_bites() {
    let policy = "/* SPDX-License-Identifier: GPL-2.0-only */\n/*\n * Fair.\n */\nint x;\n";
    let bad = [
        File::new("a.rs", &"x".repeat(COLUMNS + 1)),
        File::new("a.c", &"\n".repeat(LINES + 1)),
        File::new("a.rs", concat!("    dbg", "!(x);")),
        File::new("README.md", concat!("see ../sha", "red/x")),
        File::new("crates/a/src/a.rs", concat!("write(\"/tm", "p/x\")")),
        File::new("a.rs", concat!("#[al", "low(dead_code)]")),
        File::new("a.rs", "match it {\n    true if x => 1,\n}"),
        File::new("a.h", "#pragma once\n"),
        File::new("crates/a/Cargo.toml", "[package]\n"),
        File::new("policies/fair.bpf.c", policy),
    ];
    for ((name, rule), file) in RULES.iter().zip(bad) {
        assert!(!rule(&file).is_empty(), "{name}: does not bite");
    }
}

#[test]
fn a_complete_policy_header_passes() {
    let text = "/* SPDX-License-Identifier: GPL-2.0-only */\n/*\n \
                * First in, first out: one queue for all.\n *\n \
                * Source: folklore.\n * Differs from the source: it does not.\n */\n";
    assert_eq!(
        policy_headers(&File::new("policies/fifo.bpf.c", text)),
        Vec::<String>::new()
    );
}

#[test]
fn a_module_that_nobody_declares_is_found() {
    let files = [
        File::new("crates/a/src/lib.rs", "mod b;\n"),
        File::new("crates/a/src/b.rs", "mod c;\n"),
        File::new("crates/a/src/b/c.rs", ""),
        File::new("crates/a/src/b/lost.rs", ""),
        File::new(
            "crates/a/tests/whole.rs",
            "mod guest;
",
        ),
        File::new("crates/a/tests/guest/mod.rs", ""),
        File::new("crates/a/tests/unused/mod.rs", ""),
        File::new(
            "fuzz/Cargo.toml",
            "[[bin]]
path = \"targets/named.rs\"
",
        ),
        File::new("fuzz/targets/named.rs", ""),
        File::new("fuzz/targets/other.rs", ""),
        File::new("crates/n/src/lib.rs", ""),
        File::new(
            "crates/n/Cargo.toml",
            "autotests = false\npath = \"tests/all.rs\"\n",
        ),
        File::new("crates/n/tests/all.rs", "mod named;\n"),
        File::new("crates/n/tests/named.rs", ""),
        File::new("crates/n/tests/forgotten.rs", ""),
    ];
    let lost = [
        "crates/a/src/b/lost.rs",
        "crates/a/tests/unused/mod.rs",
        "fuzz/targets/other.rs",
        "crates/n/tests/forgotten.rs",
    ];
    assert_eq!(unreachable_modules(&files), lost);
}
