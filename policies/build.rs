//! Compiles every `*.bpf.c` beside this file, in domains/ and below lessons/, and writes the tables
//! that the library includes.
//!
//! What the table says of a policy is taken from the comment at the top of its source, so that
//! the two cannot disagree; a source whose comment lacks a part does not build.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    write_table(&root, &root, &out.join("table.rs"));
    write_table(&root.join("lessons"), &root, &out.join("lessons.rs"));
    write_table(
        &root.join("lessons/cid"),
        &root,
        &out.join("cid_lessons.rs"),
    );
    // Objects there are called as those of policies without domains.
    let apart = out.join("domains");
    fs::create_dir_all(&apart).expect("OUT_DIR is writable");
    write_table(&root.join("domains"), &root, &apart.join("table.rs"));
    fs::write(out.join("headers.rs"), headers(&root.join("include"))).expect("OUT_DIR is writable");
}

/// Compiles the sources in `folder` and writes what the library includes of them to `table_file`.
fn write_table(folder: &Path, root: &Path, table_file: &Path) {
    // The folder itself: a policy was added or removed.
    println!("cargo::rerun-if-changed={}", folder.display());
    let out = table_file.parent().expect("a file in a folder");
    let include = root.join("include");
    let mut table = String::from("&[\n");
    for source in policies(folder) {
        let name = source
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a UTF-8 name");
        let name = name.trim_end_matches(".bpf.c");
        let object = out.join(format!("{name}.bpf.o"));
        if let Err(error) = bpf_build::compile_into(&source, &[&include], &object) {
            panic!("{error}");
        }
        table += &entry(name, &source, &object);
    }
    table += "]\n";
    fs::write(table_file, table).expect("OUT_DIR is writable");
}

/// The table of all that policies include. A part lies elsewhere, behind a link.
fn headers(folder: &Path) -> String {
    let mut table = String::from("&[\n");
    for path in bpf_build::files_below(folder) {
        println!("cargo::rerun-if-changed={}", path.display());
        let name = path.strip_prefix(folder).expect("it lies below");
        table += &format!("    Header {{ path: {name:?}, text: include_str!({path:?}) }},\n");
    }
    table + "]\n"
}

/// The sources, by name.
fn policies(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).expect("the crate's folder is readable");
    let mut sources: Vec<_> = entries
        .map(|entry| entry.expect("the crate's folder is readable").path())
        .filter(|path| path.to_string_lossy().ends_with(".bpf.c"))
        .collect();
    sources.sort();
    sources
}

fn entry(name: &str, source: &Path, object: &Path) -> String {
    let header = Header::read(source);
    format!(
        "    Policy {{ name: {name:?}, summary: {:?}, promise: {:?}, source: {:?}, differs: {:?}, \
         text: include_str!({source:?}), object: include_bytes!({object:?}) }},\n",
        header.summary, header.promise, header.source, header.differs,
    )
}

/// What the first comment of a policy says.
struct Header {
    summary: String,
    promise: String,
    source: String,
    differs: String,
}

impl Header {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("the compiler read it too");
        let comment = text
            .split("/*\n")
            .nth(1)
            .and_then(|rest| rest.split("*/").next());
        let lines: Vec<_> = comment
            .unwrap_or_default()
            .lines()
            .map(|line| line.trim_start().trim_start_matches('*').trim())
            .collect();
        let part = |begins: &str| {
            let found = paragraph(&lines, begins);
            assert!(
                !found.is_empty(),
                "{}: no `{begins}` in the first comment",
                path.display()
            );
            found
        };
        Self {
            summary: lines.first().copied().unwrap_or_default().to_owned(),
            promise: promise(&lines),
            source: part("Source:"),
            differs: part("Differs from the source:"),
        }
    }
}

/// The paragraphs between the first line and the source, apart by empty lines.
fn promise(lines: &[&str]) -> String {
    let lines = lines.iter().skip(1);
    let lines: Vec<_> = lines
        .take_while(|line| !line.starts_with("Source:"))
        .collect();
    let mut paragraphs: Vec<String> = vec![String::new()];
    for line in lines {
        let last = paragraphs.last_mut().expect("never empty");
        match (line.is_empty(), last.is_empty()) {
            (true, true) => {}
            (true, false) => paragraphs.push(String::new()),
            (false, true) => *last += line,
            (false, false) => *last += &format!(" {line}"),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}

/// The text behind `begins`, up to an empty line or the next part.
fn paragraph(lines: &[&str], begins: &str) -> String {
    let mut lines = lines.iter().skip_while(|line| !line.starts_with(begins));
    let Some(first) = lines.next() else {
        return String::new();
    };
    let first = first[begins.len()..].trim();
    let rest = lines.take_while(|line| !line.is_empty() && !line.starts_with("Differs from"));
    let words: Vec<_> = [first].into_iter().chain(rest.copied()).collect();
    words.join(" ")
}
