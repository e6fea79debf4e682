//! Rules for documents: what they may say, how long their sentences and lines are, and how many
//! bytes all of them have together.

use std::path::Path;

use super::{File, project, root};

/// Bytes of all documents together: 400 KiB, what can be read in an afternoon.
const BYTES: usize = 409_600;

/// Documents that do not yet hold the rules, because they are not yet rewritten. One that holds
/// them must leave this list.
const NOT_YET: &[&str] = &[];

/// Length of [`NOT_YET`]. May only fall.
const MOST_NOT_YET: usize = 0;

/// Words of a sentence, where a piece of code is one word.
const WORDS: usize = 35;

/// Columns of a line. Rows of tables and code may be longer.
const COLUMNS: usize = 120;

/// A line of a document that is no code and was not generated, with its number from 1.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

impl Line<'_> {
    fn is_row(self) -> bool {
        self.text.trim_start().starts_with('|')
    }

    /// Whether the text of a paragraph goes on in it.
    fn goes_on(self) -> bool {
        let text = self.text.trim_start();
        let item = text.split_once(' ').is_some_and(|(mark, _)| {
            let number = mark.trim_end_matches('.');
            matches!(mark, "-" | "*") || number != mark && number.parse::<u32>().is_ok()
        });
        !(text.is_empty() || item || self.is_row() || text.starts_with(['#', '<']))
    }
}

/// The lines that people wrote as text: fenced and indented code is left out, and so is what
/// stands between the marks of a generated block, `<!-- NAME: written by ... -->` and
/// `<!-- end of NAME -->`.
fn prose(text: &str) -> Vec<Line<'_>> {
    let (mut fenced, mut generated, mut after_empty) = (false, false, true);
    let mut lines = Vec::new();
    for (at, text) in text.lines().enumerate() {
        let fence = text.trim_start().starts_with("```");
        fenced ^= fence;
        generated |= text.starts_with("<!--") && text.contains(": written by ");
        let indented = after_empty && text.starts_with("    ");
        if !(fenced || fence || generated || indented) {
            let number = at + 1;
            lines.push(Line { number, text });
        }
        generated &= !text.starts_with("<!-- end");
        after_empty = text.trim().is_empty() || indented;
    }
    lines
}

/// What is wrong with a document, with the numbers of lines.
fn complaints(text: &str) -> Vec<String> {
    let lines = prose(text);
    let mut wrong = Vec::new();
    for line in &lines {
        let mut say = |what: &str| wrong.push(format!("{}: {what}", line.number));
        if !line.is_row() && line.text.chars().count() > COLUMNS && line.text.trim().contains(' ') {
            say("a line of more than 120 columns");
        }
        if has_date(line.text) {
            say("a date: a document says what is true now");
        }
        if names_a_decision(line.text) {
            say("the number of a decision: say the reason instead");
        }
    }
    for pair in lines.windows(2) {
        let is_head = pair[0].is_row() && pair[1].text.trim_start().starts_with("| -");
        if is_head && compares_times(pair[0].text) {
            let number = pair[0].number;
            wrong.push(format!("{number}: a column of what was, or of what is now"));
        }
    }
    wrong.extend(long_sentences(&lines));
    wrong
}

/// The words of a line without marks around them.
fn words(text: &str) -> Vec<&str> {
    let marks = |c: char| !c.is_alphanumeric();
    let words = text.split_whitespace().map(|it| it.trim_matches(marks));
    words.filter(|it| !it.is_empty()).collect()
}

/// A year of this project, also as the begin of a date such as 2026-11-27. Earlier years are those
/// of sources, which a reader must find.
fn has_date(text: &str) -> bool {
    let years = words(text).into_iter().filter_map(|word| {
        let first = word.split('-').next().unwrap_or_default();
        first.parse::<u16>().ok().filter(|_| first.len() == 4)
    });
    years.into_iter().any(|year| (2025..2036).contains(&year))
}

fn names_a_decision(text: &str) -> bool {
    let is_number = |word: &str| word.parse::<u32>().is_ok();
    let words = words(text);
    words.windows(2).any(|pair| {
        ["decision", "decisions"].contains(&pair[0].to_lowercase().as_str()) && is_number(pair[1])
    })
}

/// Whether a table's head has a column for another time.
fn compares_times(head: &str) -> bool {
    let head = words(head);
    head.iter().any(|word| ["before", "now"].contains(word))
}

/// Sentences with too many words, each with the line in which it begins.
fn long_sentences(lines: &[Line<'_>]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut at = 0;
    while let Some(first) = lines.get(at) {
        let rest = lines[at + 1..].iter();
        let more = rest.take_while(|line| line.goes_on() && first.text.trim() != "");
        let count = if first.is_row() { 0 } else { more.count() };
        let part = &lines[at..=at + count];
        at += count + 1;
        if first.is_row() {
            for cell in first.text.split(" | ") {
                wrong.extend(too_long(&[Line {
                    text: cell,
                    ..*first
                }]));
            }
        } else {
            wrong.extend(too_long(part));
        }
    }
    wrong
}

/// The sentences of one paragraph, item or cell that have too many words.
fn too_long(paragraph: &[Line<'_>]) -> Vec<String> {
    let mut wrong = Vec::new();
    let (mut begin, mut count, mut in_code) = (None, 0, false);
    for line in paragraph {
        for word in line.text.split_whitespace() {
            let was_in_code = in_code;
            in_code ^= word.matches('`').count() % 2 == 1;
            // Code is one word, however long it is.
            if !was_in_code && word.chars().any(char::is_alphanumeric) {
                begin = begin.or(Some(line.number));
                count += 1;
            }
            if !in_code && ends_a_sentence(word) {
                wrong.extend(begin.filter(|_| count > WORDS).map(|at| (at, count)));
                (begin, count) = (None, 0);
            }
        }
    }
    wrong.extend(begin.filter(|_| count > WORDS).map(|at| (at, count)));
    let say = |(at, count)| format!("{at}: a sentence of {count} words, more than {WORDS}");
    wrong.into_iter().map(say).collect()
}

fn ends_a_sentence(word: &str) -> bool {
    word.trim_end_matches(['*', ')', '"', '`', ']', '|'])
        .ends_with(['.', '?', '!'])
}

fn documents() -> Vec<File> {
    let mut files = project();
    files.retain(|file| file.path.ends_with(".md"));
    files
}

/// The pieces of code in a line, as they stand between marks.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether a piece of code is a path from the project's root, and no pattern such as
/// `crates/sim/kernel/X.Y.h`.
fn is_path(code: &str) -> bool {
    let (first, rest) = code.split_once('/').unwrap_or(("", ""));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_./-".contains(c);
    matches!(
        first,
        "crates" | "docs" | "experiments" | "policies" | "scripts" | "tests"
    ) && !rest.is_empty()
        && rest.trim_end_matches("README.md").chars().all(plain)
}

/// The crate and the item that a piece of code such as `model::Event` names, of those that have
/// their sources in `crates`.
fn named_item(code: &str) -> Option<(&str, &str)> {
    let (owner, path) = code.split_once("::")?;
    let item = path.rsplit("::").next()?;
    let item = item
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .next()?;
    let is_ours = owner.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        && root().join("crates").join(owner.replace('_', "-")).is_dir();
    (is_ours && !item.is_empty()).then_some((owner, item))
}

/// Whether a source of the crate declares the item.
fn declares(sources: &[File], owner: &str, item: &str) -> bool {
    let folder = format!("crates/{}/src/", owner.replace('_', "-"));
    let words = [
        "struct", "enum", "trait", "fn", "const", "type", "mod", "static",
    ];
    let is_declared = |line: &str| {
        words.iter().any(|word| {
            let behind = line
                .trim_start()
                .split_once(&format!("{word} "))
                .map(|it| it.1);
            let rest = behind.and_then(|it| it.strip_prefix(item));
            rest.is_some_and(|it| !it.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    };
    let own = sources.iter().filter(|it| it.path.starts_with(&folder));
    own.flat_map(|it| it.text.lines()).any(is_declared)
}

#[test]
fn what_documents_name_of_the_project_is_there() {
    let sources: Vec<File> = project()
        .into_iter()
        .filter(|it| it.path.ends_with(".rs"))
        .collect();
    let mut wrong = Vec::new();
    for file in documents() {
        for line in prose(&file.text) {
            for code in code(line.text) {
                let is_absent = is_path(code) && !root().join(Path::new(code)).exists();
                let is_unknown =
                    named_item(code).is_some_and(|(owner, item)| !declares(&sources, owner, item));
                if is_absent || is_unknown {
                    wrong.push(format!("{}:{}: no `{code}`", file.path, line.number));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        named_item("traces::EventReader").is_some(),
        "the rule bites"
    );
    assert!(
        !declares(&sources, "stats", "EventReader"),
        "the rule bites"
    );
    assert!(is_path("crates/sim/src/absent.rs") && !is_path("crates/sim/kernel/X.Y.h"));
}

/// Whoever installs a version gets the dependencies that its authors have built it with.
#[test]
fn what_documents_install_by_version_is_locked() {
    let installs = |line: &&str| line.contains("cargo install ") && line.contains("--version");
    let (mut found, mut wrong) = (0, Vec::new());
    for file in documents() {
        for line in file.text.lines().filter(installs) {
            found += 1;
            if !line.contains("--locked") {
                wrong.push(format!("{}: {line}", file.path));
            }
        }
    }
    assert!(wrong.is_empty() && found > 0, "{}", wrong.join("\n"));
}

#[test]
fn a_document_names_each_notebook() {
    let documents = documents();
    let folder = std::fs::read_dir(root().join("docs/notebooks")).expect("the notebooks");
    let names = folder
        .flatten()
        .map(|it| it.file_name().to_string_lossy().into_owned());
    let notebooks: Vec<String> = names.filter(|it| it.ends_with(".ipynb")).collect();
    assert!(!notebooks.is_empty());
    for name in notebooks {
        let link = format!("notebooks/{name})");
        assert!(documents.iter().any(|it| it.text.contains(&link)), "{name}");
    }
}

#[test]
fn documents_keep_their_rules() {
    let mut wrong = Vec::new();
    for file in documents() {
        if !NOT_YET.contains(&file.path.as_str()) {
            let all = complaints(&file.text);
            wrong.extend(all.iter().map(|what| format!("{}:{what}", file.path)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_not_yet_rewritten_is_there_and_breaks_a_rule() {
    let documents = documents();
    for name in NOT_YET {
        let file = documents.iter().find(|file| file.path == *name);
        let file = file.unwrap_or_else(|| panic!("{name} is gone: take it out of the list"));
        let wrong = complaints(&file.text);
        assert!(
            !wrong.is_empty(),
            "{name} keeps the rules: take it out of the list"
        );
    }
    assert_eq!(
        NOT_YET.len(),
        MOST_NOT_YET,
        "lower the number; it may not rise"
    );
}

#[test]
fn all_documents_together_stay_below_their_size() {
    let bytes: usize = documents().iter().map(|file| file.text.len()).sum();
    assert!(
        bytes <= BYTES,
        "{bytes} bytes: shorten something, or delete what git keeps"
    );
    assert!(
        BYTES - bytes < 40_000,
        "{bytes} bytes: lower the limit to that"
    );
}

#[test]
fn each_rule_of_documents_bites() {
    let long = ["w"; WORDS + 1].join(" ");
    let bad = [
        format!("{}.", ["wordword"; 14].join(" ")),
        "Measured on 3 November 2025.".to_owned(),
        "Since 2026 it does.".to_owned(),
        "So it was on 2026-11-27.".to_owned(),
        concat!("As deci", "sion 12 says.").to_owned(),
        concat!("See deci", "sions 3 and 4.").to_owned(),
        "| load | before | after |\n| --- | --- | --- |\n".to_owned(),
        format!("{}\n{long}.", "Short one."),
        format!(
            "* item: {}\n  {}.",
            ["a"; 20].join(" "),
            ["b"; 20].join(" ")
        ),
        format!("| cell | {long} |"),
    ];
    for text in bad {
        assert_eq!(
            complaints(&text).len(),
            1,
            "{text}: {:?}",
            complaints(&text)
        );
    }
}

#[test]
fn code_generated_blocks_and_long_rows_are_no_text() {
    let long = ["word"; 60].join(" ");
    let good = [
        format!("```text\n{long}\n```\n"),
        format!("Text:\n\n    {long} 2026\n"),
        format!("<!-- scores: written by `x` -->\n{long} 2026\n<!-- end of scores -->\n"),
        format!("| {} |", ["cell"; 40].join(" | ")),
        format!("It prints `{long}` then."),
        "Seeds are 20261224 and 9669; the paper is of March 2003.".to_owned(),
    ];
    for text in good {
        let wrong = complaints(&text);
        let columns = wrong.iter().all(|it| it.contains("columns")) && text.contains("It prints");
        assert!(wrong.is_empty() || columns, "{text}: {wrong:?}");
    }
}
