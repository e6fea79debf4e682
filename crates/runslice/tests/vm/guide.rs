//! Every command of docs/guide and of README.md is run, and prints there what the program prints.
//!
//! Blocks of a chapter are run in their order, in one folder:
//!
//! * `console`: a line `$ COMMAND` (a `\` at its end goes on in the next line, after `> `), and
//!   below it what the command prints, errors included. A line `...` stands for any lines, and
//!   `[..]` in a line for any text;
//! * `toml,file=NAME` and `c,file=NAME`: a file that the commands after it find;
//! * `console,vm`: the same as `console` for commands that need root and a kernel. Those of all
//!   chapters are run in one guest;
//! * `text`: shows something and has no command.
//!
//! The folder is empty but for the files of the chapter's own folder. `runslice` is on the path, as
//! after an installation; clang is where the set-up has put it. Any other block is an error.
//! `UPDATE_GOLDEN=1` writes what the program prints.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A block between fences.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The line of the opening fence, from 1.
    line: usize,
    info: String,
    text: String,
}

/// A command and what the page says that it prints.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the project is there")
}

fn pages() -> PathBuf {
    root().join("docs/guide/src")
}

/// The first page that anybody reads, seen from the chapters.
const README: &str = "../../../README.md";

/// The chapters, in the order of the table of contents, and the README.
fn chapters() -> Vec<(String, String)> {
    let summary = fs::read_to_string(pages().join("SUMMARY.md")).expect("a table of contents");
    let names = links(&summary).into_iter().chain([README.to_owned()]);
    let read = |name: String| {
        let text = fs::read_to_string(pages().join(&name));
        let text = text.unwrap_or_else(|error| panic!("{name} of SUMMARY.md: {error}"));
        (name, text)
    };
    names.map(read).collect()
}

/// The targets of all links `[text](target)` of a page, without anchors.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1);
    targets
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split('#').next().unwrap_or(target).to_owned())
        .filter(|target| !target.is_empty())
        .collect()
}

/// The blocks of a page, and what is wrong with how it is written.
fn blocks(text: &str) -> (Vec<Block>, Vec<String>) {
    let (mut blocks, mut wrong) = (Vec::new(), Vec::new());
    let mut open: Option<Block> = None;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                open = Some(Block {
                    line: number,
                    info: info.to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => {
                block.text += line;
                block.text.push('\n');
            }
            (None, None) if line.starts_with("    ") || line.starts_with('\t') => {
                wrong.push(format!("{number}: code stands between fences"));
            }
            (None, None) => {}
        }
    }
    if let Some(block) = open {
        wrong.push(format!("{}: the block has no end", block.line));
    }
    (blocks, wrong)
}

/// Why no test runs the block, if so.
fn fault(block: &Block) -> Option<String> {
    let commands = ["$ ", "# runslice", "runslice ", "sudo "];
    let has_command = |line: &str| commands.iter().any(|it| line.starts_with(it));
    match block.info.as_str() {
        "console" | "console,vm" => steps(block).err(),
        "text" if block.text.lines().any(has_command) => Some("a command that nobody runs".into()),
        "text" => None,
        info if file_of(info).is_some() => None,
        info => Some(format!("no test runs a block of the kind `{info}`")),
    }
}

/// The name of the file that a block holds.
fn file_of(info: &str) -> Option<&str> {
    let (language, name) = info.split_once(",file=")?;
    let is_plain = !name.is_empty() && !name.contains(['/', ',']);
    (["toml", "c"].contains(&language) && is_plain).then_some(name)
}

fn steps(block: &Block) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for (at, line) in block.text.lines().enumerate() {
        if goes_on {
            let step = steps.last_mut().expect("a command goes on");
            let Some(rest) = line.strip_prefix("> ") else {
                return Err(format!("`{}` does not go on", step.command));
            };
            step.command.pop();
            step.command += rest;
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                line: block.line + 1 + at,
                command: command.to_owned(),
                expected: Vec::new(),
            });
        } else if let Some(step) = steps.last_mut() {
            step.expected.push(line.to_owned());
            continue;
        } else {
            return Err("the block does not begin with a command".to_owned());
        }
        goes_on = steps
            .last()
            .is_some_and(|step| step.command.ends_with('\\'));
    }
    let says_nothing = |step: &&Step| step.expected == ["..."];
    if let Some(step) = steps.iter().find(says_nothing) {
        return Err(format!(
            "`{}`: the block does not say what is printed",
            step.command
        ));
    }
    if steps.is_empty() {
        Err("the block has no command".to_owned())
    } else {
        Ok(steps)
    }
}

/// Whether `lines` are as the page says.
fn agrees(expected: &[String], lines: &[&str]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((dots, rest)) if dots == "..." => {
            (0..=lines.len()).any(|skipped| agrees(rest, &lines[skipped..]))
        }
        Some((line, rest)) => {
            let first = lines.split_first();
            first.is_some_and(|(seen, others)| line_agrees(line, seen) && agrees(rest, others))
        }
    }
}

fn line_agrees(expected: &str, seen: &str) -> bool {
    let Some((before, rest)) = expected.split_once("[..]") else {
        return expected == seen;
    };
    let Some(seen) = seen.strip_prefix(before) else {
        return false;
    };
    let mut starts = seen.char_indices().map(|(at, _)| at).chain([seen.len()]);
    starts.any(|at| line_agrees(rest, &seen[at..]))
}

/// What the page should say: as many lines as before if it ends in `...`, else all.
fn renewed(expected: &[String], lines: &[&str]) -> Vec<String> {
    let own = |line: &&str| (*line).to_owned();
    match expected.split_last() {
        Some((dots, shown)) if dots == "..." && !shown.is_empty() => {
            let shown = lines.iter().take(shown.len()).map(own);
            shown.chain(["...".to_owned()]).collect()
        }
        _ => lines.iter().map(own).collect(),
    }
}

/// The folder that a chapter's commands are run in.
fn empty(name: &str) -> PathBuf {
    let stem = name.trim_end_matches(".md").replace('/', "-");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("guide")
        .join(stem);
    let _ = fs::remove_dir_all(&folder);
    let bin = folder.join(".bin");
    fs::create_dir_all(&bin).expect("the folder for tests is writable");
    symlink(env!("CARGO_BIN_EXE_runslice"), bin.join("runslice")).expect("links can be made");
    let own = pages().join(name.trim_end_matches(".md"));
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        fs::copy(entry.path(), folder.join(entry.file_name())).expect("files can be copied");
    }
    folder
}

/// What a command prints in `folder`, errors between the rest, as on a terminal, and its status if
/// it does not end well.
fn output(command: &str, folder: &Path) -> (String, Option<String>) {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{}/.bin:{path}", folder.display()))
        .env("HOME", folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("a shell starts");
    let status = (!output.status.success()).then(|| output.status.to_string());
    (String::from_utf8_lossy(&output.stdout).into_owned(), status)
}

#[test]
fn every_command_of_the_guide_prints_what_the_guide_says() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let (mut wrong, mut failures, mut commands) = (String::new(), String::new(), 0);
    for (name, text) in chapters() {
        let folder = empty(&name);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // From the end, so that the lines before stay where they are.
        let mut changes: Vec<(usize, usize, Vec<String>)> = Vec::new();
        for block in blocks(&text).0 {
            if let Some(file) = file_of(&block.info) {
                fs::write(folder.join(file), &block.text).expect("the folder is writable");
            }
            if block.info != "console" {
                continue;
            }
            for step in steps(&block).unwrap_or_default() {
                commands += 1;
                let place = format!("{name}:{}: $ {}", step.line, step.command);
                let (seen, failed) = output(&step.command, &folder);
                if let Some(status) = failed {
                    // A page shows a failure by printing the status.
                    let _ = writeln!(failures, "{place}\n{status}\n{seen}");
                }
                let seen: Vec<&str> = seen.lines().collect();
                if agrees(&step.expected, &seen) {
                    continue;
                }
                let _ = writeln!(wrong, "{place}\n{}\n", seen.join("\n"));
                let first = step.line + continued(&lines, step.line);
                let new = renewed(&step.expected, &seen);
                changes.push((first, step.expected.len(), new));
            }
        }
        for (first, count, new) in changes.into_iter().rev() {
            lines.splice(first..first + count, new);
        }
        if update {
            fs::write(pages().join(&name), lines.join("\n") + "\n").expect("writable");
        }
    }
    assert!(commands > 20, "{commands} commands are no guide");
    assert!(failures.is_empty(), "{failures}");
    assert!(
        update || wrong.is_empty(),
        "{wrong}UPDATE_GOLDEN=1 writes what it is now"
    );
}

/// How many lines the command in line `number` goes on for.
fn continued(lines: &[String], number: usize) -> usize {
    let all = lines[number - 1..].iter();
    all.take_while(|line| line.ends_with('\\')).count()
}

#[test]
fn every_block_is_run_by_a_test_and_every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let chapters = chapters();
    for (name, text) in &chapters {
        let (blocks, faults) = blocks(text);
        wrong.extend(faults.into_iter().map(|fault| format!("{name}:{fault}")));
        let faults = blocks
            .iter()
            .filter_map(|block| Some((block.line, fault(block)?)));
        wrong.extend(faults.map(|(line, fault)| format!("{name}:{line}: {fault}")));
        for link in links(text) {
            let is_far = link.starts_with("https://") || link.starts_with("http://");
            let place = pages().join(name).with_file_name(&link);
            if !is_far && !place.exists() {
                wrong.push(format!("{name}: there is no {link}"));
            }
        }
    }
    for entry in fs::read_dir(pages()).expect("the pages").flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let is_chapter = chapters.iter().any(|(name, _)| *name == file);
        if file.ends_with(".md") && file != "SUMMARY.md" && !is_chapter {
            wrong.push(format!("{file} is not in SUMMARY.md"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn every_command_of_the_guide_that_needs_a_kernel_prints_what_the_guide_says() {
    let mut all = Vec::new();
    for (name, text) in chapters() {
        let in_guest = |block: &Block| block.info == "console,vm";
        for block in blocks(&text).0.iter().filter(|block| in_guest(block)) {
            let steps = steps(block).unwrap_or_default().into_iter();
            all.extend(steps.map(|step| (name.clone(), step)));
        }
    }
    assert!(all.len() > 5, "{} commands", all.len());
    // There is no sudo in a guest, and no need of it.
    let mut script = "sudo() { \"$@\"; }\nmkdir -p /tmp/guide\ncd /tmp/guide\n".to_owned();
    for (at, (_, step)) in all.iter().enumerate() {
        let _ = write!(script, "echo '--- {at}'\n{{ {}\n}} 2>&1\n", step.command);
    }
    script += "echo '--- end'\ntrue\n";
    // It counts instructions, so that it is no matter how busy this computer is.
    let guest = runslice_tests::guest!().counted().timeout("300s");
    let text = guest.with("hackbench").good(&script, &[]).stdout;
    let mut wrong = String::new();
    for (at, (name, step)) in all.iter().enumerate() {
        let begin = format!("--- {at}\n");
        let part = text.split_once(&begin).map_or("", |(_, rest)| rest);
        let part = part.split("--- ").next().unwrap_or_default();
        if !agrees(&step.expected, &part.lines().collect::<Vec<_>>()) {
            let place = format!("{name}:{}: $ {}", step.line, step.command);
            let _ = writeln!(wrong, "{place}\n{part}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn dots_stand_for_lines_and_brackets_for_words() {
    let agrees = |expected: &str, seen: &str| {
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        agrees(&expected, &seen.lines().collect::<Vec<_>>())
    };
    assert!(agrees("a\nb", "a\nb"));
    assert!(!agrees("a\nb", "a"));
    assert!(!agrees("a", "a\nb"));
    assert!(agrees("a\n...", "a\nb\nc"));
    assert!(agrees("...\nc", "a\nb\nc") && agrees("a\n...\nc", "a\nc"));
    assert!(!agrees("...\nb", "a\nb\nc"));
    assert!(agrees("took [..] ms, [..]", "took 12 ms, or so"));
    assert!(!agrees("took [..] ms", "took 12 s"));
}

#[test]
fn a_block_that_nobody_runs_is_found() {
    let faults = |page: &str| -> Vec<String> {
        let (blocks, wrong) = blocks(page);
        let faults = blocks.iter().filter_map(fault);
        wrong.into_iter().chain(faults).collect()
    };
    assert_eq!(faults("```console\n$ true\n```\n"), Vec::<String>::new());
    assert_eq!(
        faults("```toml,file=a.toml\nx = 1\n```\n"),
        Vec::<String>::new()
    );
    for bad in [
        "```sh\nrunslice list\n```\n",
        "```\nrunslice list\n```\n",
        "```text\n$ runslice list\n```\n",
        "```console\nno command\n```\n",
        "```console\n$ runslice \\\nlist\n```\n",
        "```console\n$ runslice list\n...\n```\n",
        "```toml\nx = 1\n```\n",
        "```toml,file=a/b\nx = 1\n```\n",
        "a\n\n    runslice list\n",
        "```console\n$ true\n",
    ] {
        assert_eq!(faults(bad).len(), 1, "{bad}: {:?}", faults(bad));
    }
}

#[test]
fn a_command_goes_on_behind_a_backslash() {
    let block = Block {
        line: 5,
        info: "console".to_owned(),
        text: "$ echo a \\\n> b\na b\n$ true\n".to_owned(),
    };
    let want = |line, command: &str, expected: &[&str]| Step {
        line,
        command: command.to_owned(),
        expected: expected.iter().map(|it| (*it).to_owned()).collect(),
    };
    let steps = steps(&block).expect("commands");
    assert_eq!(steps, [want(6, "echo a b", &["a b"]), want(9, "true", &[])]);
}
