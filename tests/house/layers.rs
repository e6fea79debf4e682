//! The floors of the house: a question imports no door, and asks the computer for nothing by
//! itself.

use std::collections::BTreeSet;
use std::fs;

use syn::visit::{self, Visit};

use super::{Paths, imports, is_of_tests, modules, root};

/// Crates that a question may not import: doors, and what needs a kernel, a process or a folder.
const ABOVE: [&str; 11] = [
    "bpf-build",
    "folder",
    "live",
    "load",
    "mcp",
    "python",
    "reproduce",
    "runslice",
    "show",
    "testing",
    "vm",
];

/// Paths of the standard library and of others that ask the computer for something.
const COMPUTER: [&[&str]; 15] = [
    &["clap"],
    &["eprint"],
    &["eprintln"],
    &["print"],
    &["println"],
    &["std", "env"],
    &["std", "fs"],
    &["std", "io", "stderr"],
    &["std", "io", "stdin"],
    &["std", "io", "stdout"],
    &["std", "net"],
    &["std", "process"],
    &["std", "thread"],
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
];

/// Methods that look at files; each takes no argument.
const LOOKS: [&str; 7] = [
    "canonicalize",
    "exists",
    "is_dir",
    "is_file",
    "metadata",
    "read_dir",
    "try_exists",
];

/// What a source asks the computer for, but for its tests.
fn asked(text: &str) -> Vec<String> {
    let tree = syn::parse_file(text).expect("a source of Rust");
    let mut looks = Looks::default();
    looks.visit_file(&tree);
    let paths = Paths::of_tree(&tree);
    // A path begins where its import says: `fs::read` is `std::fs::read`.
    let all = paths.used.iter().chain(&paths.exported);
    let mut found: Vec<String> = all
        .filter(|path| {
            let begins = |with: &&[&str]| {
                let same = path.iter().zip(with.iter()).all(|(it, want)| it == want);
                same && path.len() >= with.len()
            };
            COMPUTER.iter().any(begins)
        })
        .map(|path| path.join("::"))
        .collect();
    found.extend(looks.found);
    found
}

#[derive(Default)]
struct Looks {
    found: Vec<String>,
}

impl Visit<'_> for Looks {
    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        if !is_of_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        let method = call.method.to_string();
        if call.args.is_empty() && LOOKS.contains(&method.as_str()) {
            self.found.push(format!(".{method}()"));
        }
        visit::visit_expr_method_call(self, call);
    }
}

#[test]
fn a_question_imports_no_door() {
    let imports = imports(&root().join("crates/ask/Cargo.toml"));
    let above: BTreeSet<String> = ABOVE.map(str::to_owned).into();
    let back: Vec<_> = imports.intersection(&above).collect();
    assert!(back.is_empty(), "arrows back: {back:?}");
    assert!(imports.len() > 3, "{imports:?}");
}

#[test]
fn a_question_opens_no_file_starts_nothing_and_prints_nothing() {
    let mut wrong = Vec::new();
    let modules = modules(&root().join("crates/ask/src"));
    for (name, path) in &modules {
        if name.iter().any(|part| part == "tests") {
            continue;
        }
        let text = fs::read_to_string(path).expect("readable");
        let asked = asked(&text).into_iter();
        wrong.extend(asked.map(|what| format!("{}: {what}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(modules.len() > 5, "{} files", modules.len());
}

#[test]
fn the_judge_of_experiments_knows_no_command_line_and_no_machine() {
    const OTHERS: [&str; 7] = ["ask", "clap", "live", "runslice", "show", "sim", "vm"];
    let modules = modules(&root().join("crates/reproduce/src"));
    let judges = modules
        .iter()
        .filter(|it| it.0.first().is_some_and(|it| it == "experiments"));
    let mut files = 0;
    for (_, path) in judges.filter(|it| !it.0.ends_with(&["tests".to_owned()])) {
        let paths = Paths::of(path);
        let mut used = paths.used.iter().chain(&paths.exported);
        let other = used.find(|it| it.len() > 1 && OTHERS.contains(&it[0].as_str()));
        assert_eq!(other, None, "{}", path.display());
        files += 1;
    }
    assert!(files > 10, "{files} files");
}

#[test]
fn what_is_asked_of_the_computer_is_found() {
    for (text, count) in [
        ("use std::fs;", 1),
        ("use std::{fs::File, path::Path};", 1),
        ("use std::io::{self, Read};", 0),
        ("use clap::Args;", 1),
        ("fn f() { println!(\"x\"); }", 1),
        ("fn f() { std::thread::spawn(g); }", 1),
        ("use std::time::{Duration, Instant};", 1),
        ("fn f(path: &Path) -> bool { path.is_file() }", 1),
        (
            "fn f(files: &dyn Files, path: &Path) -> bool { files.is_file(path) }",
            0,
        ),
        ("#[cfg(test)] mod tests { use std::fs; }", 0),
    ] {
        assert_eq!(asked(text).len(), count, "{text}");
    }
}
