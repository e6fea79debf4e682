//! What a word of the command line is, where it is not what its place takes: people swap arguments,
//! and a message that only says what is missing does not help them.

use std::io::{self, Read as _};
use std::path::Path;

pub use ask::kind::WordKind;
use ask::words;
use ask::workload_arg::SHIPPED;
use model::{Advised, Profile};

use crate::about::About;
use crate::exit::UsageError;
use crate::files;

/// Names of the experiments that are built into `runslice-reproduce`, where a test compares them.
pub const EXPERIMENTS: &str = "\
    000-connect 000-pointer 000-rules 000-servers 000-side 001-contest 001-desk \
    001-hackbench 001-intervals 001-kernbench 001-nice-shares 001-reaim 001-stairs \
    002-boundary 002-change 002-compile-response 002-future 002-response 002-starvation \
    002-turnaround 003-compile 003-volanomark 003-web 004-balance 004-pointer \
    004-sampling anchors";

/// A thing of this kind, with its article.
const fn noun(kind: WordKind) -> &'static str {
    match kind {
        WordKind::Policy => "a policy",
        WordKind::Workload => "a workload",
        WordKind::Profile => "a machine's profile",
        WordKind::Experiment => "an experiment",
        WordKind::Recording => "a recording",
        WordKind::Sweep => "a file for `sweep`",
        WordKind::Results => "a file of results",
    }
}

/// The command that takes it.
fn command(kind: WordKind, name: &str) -> String {
    let name = words::quoted(name);
    match kind {
        WordKind::Policy => format!("runslice sim {name} -w WORKLOAD"),
        WordKind::Workload => format!("runslice sim POLICY -w {name}"),
        WordKind::Profile => format!("runslice sim POLICY -w WORKLOAD --profile {name}"),
        WordKind::Experiment => format!("runslice reproduce {name}"),
        WordKind::Recording => format!("runslice sim POLICY --from {name}"),
        WordKind::Sweep => format!("runslice sweep {name}"),
        WordKind::Results => format!("runslice compare {name}"),
    }
}

/// What to give in a place for it.
const fn wanted_word(kind: WordKind) -> Option<&'static str> {
    match kind {
        WordKind::Policy => Some("give a policy, such as fifo: `runslice list` names them"),
        WordKind::Workload => {
            Some("give a workload, such as desk: `runslice list --workloads` names them")
        }
        WordKind::Profile => Some("give `ideal`, `default-v0` or a file (docs/profiles.md)"),
        WordKind::Experiment => Some("`runslice reproduce` names the experiments"),
        WordKind::Results => {
            Some("give what `runslice sim POLICY -w WORKLOAD --runs 10 -o runs.json` writes")
        }
        WordKind::Recording | WordKind::Sweep => None,
    }
}

/// What is built in under this name, knobs aside.
fn built_in(name: &str) -> Option<WordKind> {
    let bare = name.split(':').next().unwrap_or(name);
    if policies::find(bare).is_some() {
        return Some(WordKind::Policy);
    }
    if SHIPPED.iter().any(|it| it.name == name) {
        return Some(WordKind::Workload);
    }
    if Profile::shipped(name).is_some() {
        return Some(WordKind::Profile);
    }
    let mut all = EXPERIMENTS.split(' ');
    all.any(|it| it == name).then_some(WordKind::Experiment)
}

/// What the file at `path` holds, by its begin and its ending, as far as that tells.
fn of_file(path: &Path) -> Option<WordKind> {
    let real = files::real(path);
    // A pipe is not read to guess.
    if !real.is_file() {
        return None;
    }
    let mut begin = Vec::new();
    let file = std::fs::File::open(&real).ok()?;
    file.take(64 << 10).read_to_end(&mut begin).ok()?;
    if real.extension().is_some_and(|it| it == "c") || begin.starts_with(b"\x7fELF") {
        return Some(WordKind::Policy);
    }
    if begin.starts_with(br#"{"runslice_events":"#) || traces::foreign::is_trace(&begin) {
        return Some(WordKind::Recording);
    }
    let text = String::from_utf8_lossy(&begin);
    let is_json = text.trim_start().starts_with('{');
    if is_json && (text.contains("\"runslice_sweep\"") || text.contains("\"runslice_sim\"")) {
        return Some(WordKind::Results);
    }
    let has = |begin: &str| {
        text.lines()
            .any(|line| line.trim_start().starts_with(begin))
    };
    match () {
        () if is_json => None,
        () if has("[workload]") => Some(WordKind::Workload),
        () if has("[experiment]") => Some(WordKind::Experiment),
        () if has("policy = [") || has("workload = [") => Some(WordKind::Sweep),
        () => None,
    }
}

/// What to say of `name` in a place for `wanted`, if it is something else.
#[must_use]
pub fn mistaken(name: &str, wanted: WordKind) -> Option<Advised> {
    if let Some(knob) = knob(name, wanted) {
        return Some(knob);
    }
    let found = built_in(name).or_else(|| of_file(Path::new(name)))?;
    mistake(name, found, wanted)
}

/// What to say of the file at `path` in a place for `wanted`, if it holds something else.
pub fn of_other_file(path: &Path, wanted: WordKind) -> Option<Advised> {
    mistake(path.to_str()?, of_file(path)?, wanted)
}

/// Refuses the file at `path` in a place for `wanted`, if it holds something else.
///
/// # Errors
/// [`UsageError`].
pub fn refuse_other_file(path: &Path, wanted: WordKind) -> Result<(), UsageError> {
    of_other_file(path, wanted).map_or(Ok(()), |mistaken| Err(UsageError::new(mistaken)))
}

/// The advice for a file that is not there and has the name of something that is built in.
pub fn of_missing_file(error: &anyhow::Error) -> Option<String> {
    let mut causes = error.chain();
    let missing = causes.find_map(|it| it.downcast_ref::<model::CannotRead>())?;
    let is_missing = missing.source.kind() == io::ErrorKind::NotFound;
    no_file(&missing.file).filter(|_| is_missing)
}

fn no_file(name: &str) -> Option<String> {
    let found = built_in(name)?;
    let command = command(found, name);
    Some(format!(
        "`{name}` is {}, not a file: {command}",
        noun(found)
    ))
}

fn mistake(name: &str, found: WordKind, wanted: WordKind) -> Option<Advised> {
    // A recording can stand for a workload.
    if found == wanted || (found, wanted) == (WordKind::Recording, WordKind::Workload) {
        return None;
    }
    let what = format!("`{name}` is {}, not {}", noun(found), noun(wanted));
    let words = About::words();
    let advice = swapped(&words, name, wanted)
        .or_else(|| with_option(&words, name, found))
        .or_else(|| wanted_word(wanted).map(str::to_owned))
        .unwrap_or_else(|| command(found, name));
    Some(Advised::new(what, advice))
}

/// A knob that stands alone: `mlfq queues=4`.
fn knob(name: &str, wanted: WordKind) -> Option<Advised> {
    if wanted != WordKind::Policy || name.contains(['/', ':']) || !name.contains('=') {
        return None;
    }
    let words = About::words();
    let before = words.iter().position(|word| word == name);
    let before = before.and_then(|at| words.get(at.checked_sub(1)?));
    let policy = before.filter(|it| built_in(it) == Some(WordKind::Policy));
    let policy = policy.map_or("POLICY", String::as_str);
    let sign = if policy.contains(':') { ',' } else { ':' };
    Some(Advised::new(
        format!("`{name}` is the value of a knob, not a policy"),
        format!("write it behind its policy: {policy}{sign}{name}"),
    ))
}

/// Whether the word at `at` is the value of `-w`.
fn is_load(words: &[String], at: usize) -> bool {
    at > 0 && matches!(words[at - 1].as_str(), "-w" | "--workload")
}

/// The command with `name` and a word of the `wanted` kind in each other's place.
fn swapped(words: &[String], name: &str, wanted: WordKind) -> Option<String> {
    let here = words.iter().position(|word| word == name)?;
    let there = (2..words.len()).find(|&at| {
        let crosses = is_load(words, here) != is_load(words, at);
        let kind = built_in(&words[at]).or_else(|| of_file(Path::new(&words[at])));
        at != here && crosses && kind == Some(wanted)
    })?;
    let mut words = words.to_vec();
    words.swap(here, there);
    Some(words::command(&words))
}

/// The command with `-w` before a workload that stands in another place.
fn with_option(words: &[String], name: &str, found: WordKind) -> Option<String> {
    /// Verbs that simulate policies under a workload.
    const VERBS: [&str; 5] = ["sim", "choose", "explain", "lab", "diff"];
    let has_load = (0..words.len()).any(|at| is_load(words, at));
    let at = words.iter().position(|word| word == name)?;
    let verb = words.get(1)?.as_str();
    if found != WordKind::Workload || has_load || !VERBS.contains(&verb) {
        return None;
    }
    let mut words = words.to_vec();
    if words[at - 1] == "--from" {
        words[at - 1] = "-w".to_owned();
    } else if at == 2 {
        words.splice(at..=at, ["POLICY", "-w", name].map(str::to_owned));
    } else if words[at - 1].starts_with('-') {
        return None;
    } else {
        words.insert(at, "-w".to_owned());
    }
    Some(words::command(&words))
}

#[cfg(test)]
mod tests {
    use model::Advice as _;

    use super::*;

    fn said(command: &str, name: &str, wanted: WordKind) -> Option<String> {
        let words: Vec<&str> = command.split(' ').collect();
        About::called(&words, || mistaken(name, wanted).map(|it| it.in_full()))
    }

    #[test]
    fn swapped_arguments_are_told_with_the_command_that_was_meant() {
        let cases = [
            (
                "runslice sim desk -w mlfq:queues=4",
                ("desk", WordKind::Policy),
                "`desk` is a workload, not a policy; runslice sim mlfq:queues=4 -w desk",
            ),
            (
                "runslice sim fifo desk",
                ("desk", WordKind::Policy),
                "`desk` is a workload, not a policy; runslice sim fifo -w desk",
            ),
            (
                "runslice explain web",
                ("web", WordKind::Policy),
                "`web` is a workload, not a policy; runslice explain POLICY -w web",
            ),
            (
                "runslice sim fifo -w o1",
                ("o1", WordKind::Workload),
                "`o1` is a policy, not a workload; \
                 give a workload, such as desk: `runslice list --workloads` names them",
            ),
            (
                "runslice sim fifo -w 002-turnaround",
                ("002-turnaround", WordKind::Workload),
                "`002-turnaround` is an experiment, not a workload; \
                 give a workload, such as desk: `runslice list --workloads` names them",
            ),
            (
                "runslice sim mlfq queues=4 -w desk",
                ("queues=4", WordKind::Policy),
                "`queues=4` is the value of a knob, not a policy; \
                 write it behind its policy: mlfq:queues=4",
            ),
        ];
        for (command, (name, wanted), want) in cases {
            assert_eq!(said(command, name, wanted).as_deref(), Some(want));
        }
        assert_eq!(said("runslice sim fifo", "fifo", WordKind::Policy), None);
        assert_eq!(said("runslice sim fifp", "fifp", WordKind::Policy), None);
    }

    #[test]
    fn a_name_in_the_place_of_a_file_is_told() {
        let want = "`fifo` is a policy, not a file: runslice sim fifo -w WORKLOAD";
        assert_eq!(no_file("fifo").as_deref(), Some(want));
        assert_eq!(no_file("no.such"), None);
    }
}
