//! How the program ends: its exit statuses, and the errors that decide which one it is.

/// How the process ends. The numbers are an interface: scripts test for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// All went well.
    Done = 0,
    /// A bad file, or the computer refused something.
    Failure = 1,
    /// The command line asks for something that does not exist.
    Usage = 2,
    /// A policy misbehaved: it was ejected, and its table is printed up to then, or a task starved
    /// to the end of a simulated run.
    Ejected = 3,
    /// This computer lacks what the verb needs.
    Unsupported = 4,
    /// A comparison exceeded a limit that the user set.
    Exceeded = 5,
    /// Nothing can be said: a virtual machine gave no result, or runs do not decide.
    Inconclusive = 6,
    /// A signal ended it, after everything was put back.
    Interrupted = 130,
}

impl Status {
    /// The status of another process of runslice.
    pub fn of(code: i32) -> Self {
        let all = [Self::Done, Self::Failure, Self::Usage];
        let mut all = all.iter().chain(&Self::OTHERS);
        let found = all.find(|it| **it as i32 == code);
        found.copied().unwrap_or(Self::Failure)
    }

    /// Statuses that only some commands have.
    pub const OTHERS: [Self; 5] = [
        Self::Ejected,
        Self::Unsupported,
        Self::Exceeded,
        Self::Inconclusive,
        Self::Interrupted,
    ];
}

/// The exit statuses of a command for its help: those that every command has, and `others`.
pub fn statuses(others: &[Status]) -> String {
    let all = [Status::Done, Status::Failure, Status::Usage];
    let mut text = "Exit status:".to_owned();
    for status in all.iter().chain(others) {
        let words = match status {
            Status::Done => "success",
            Status::Failure => "failure: a bad file, or the computer refused something",
            Status::Usage => "usage: an unknown option, policy, knob or workload",
            Status::Ejected => {
                "a policy misbehaved: it was ejected, and the results up to then are printed, or \
                 in a simulated run a task starved to the end"
            }
            Status::Unsupported => {
                "this computer lacks something that is needed; the message says what to do"
            }
            Status::Exceeded => "a comparison exceeded the limit of --fail-if or --least",
            Status::Inconclusive => {
                "inconclusive: the runs do not decide, or a virtual machine gave no result"
            }
            Status::Interrupted => "interrupted, after everything was put back",
        };
        text += &format!("\n  {:<5}{words}", *status as u8);
    }
    text
}

impl From<Status> for u8 {
    fn from(status: Status) -> Self {
        status as Self
    }
}

/// The command line asks for something that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// This computer lacks what the verb needs; the text says what, and the way out.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnsupportedError(pub String);

/// An error out of its box. `anyhow` would hide what it was, and so the status that it decides.
pub fn unboxed(error: Box<dyn std::error::Error + Send + Sync>) -> anyhow::Error {
    match error.downcast::<UnsupportedError>() {
        Ok(error) => (*error).into(),
        Err(error) => anyhow::Error::from_boxed(error),
    }
}

/// An error with its causes, each once: some errors have their cause's words in their own.
pub fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Everything begins with no words.
        if cause.starts_with(&words) {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

/// The words of an error in two lines: what is wrong, and what to do. They are those before and
/// behind its first semicolon that stands in no quotation; for errors of the operating system this
/// module knows what to do. Words that have lines stay as they are.
pub fn in_two_lines(words: &str) -> String {
    if words.contains('\n') {
        return words.to_owned();
    }
    if let Some((before, advice)) = parted(words) {
        return format!("{before}\n  {advice}");
    }
    let known = KNOWN.iter().find(|(what, _)| words.contains(what));
    let of_system = OF_SYSTEM.iter().find_map(|(number, to_read, to_write)| {
        let is_it = words.contains(&format!("(os error {number})"));
        is_it.then_some(if words.contains("cannot write") {
            to_write
        } else {
            to_read
        })
    });
    match known.map(|(_, advice)| advice).or(of_system) {
        Some(advice) => format!("{words}\n  {advice}"),
        None => words.to_owned(),
    }
}

/// What to do about errors of the operating system, by number, when a file should be read and when
/// it should be written.
const OF_SYSTEM: [(i32, &str, &str); 6] = [
    (
        2,
        "check the name, and the folder that you are in",
        "make its folder first, or name another file",
    ),
    (
        13,
        "ask for the permission to read it, or name another file",
        "ask for the permission to write it, or name another file",
    ),
    (
        20,
        "a part of the path is no folder: correct it",
        "a part of the path is no folder: correct it",
    ),
    (21, "name a file, not a folder", "name a file, not a folder"),
    (
        28,
        "free room on the disk, or name another place",
        "free room on the disk, or name another place",
    ),
    (
        30,
        "name a file in another place",
        "name a file in another place",
    ),
];

/// What to do about errors of crates that do not know the command line.
const KNOWN: [(&str, &str); 5] = [
    (
        "it is no scheduling policy",
        "`runslice list --copy fifo` writes one to begin with",
    ),
    (
        "neither perf.data, trace.dat,",
        "record with `runslice record`, or see docs/import.md",
    ),
    (
        "where `version N` must stand",
        "name what `stat record FILE` made",
    ),
    (
        "it has neither bench.json nor results.json",
        "name the folder of one of these, or files of results",
    ),
    (": unknown ", "correct the name"),
];

/// What begins with what to do, behind a first letter.
const MARKS: [&str; 4] = ["; ", ": did you mean `", ": there are: ", ", expected "];

/// The words before and behind the mark that begins what to do.
fn parted(words: &str) -> Option<(&str, &str)> {
    let (mut is_quoted, mut depth) = (false, 0_u32);
    for (at, c) in words.char_indices() {
        match c {
            '`' => is_quoted = !is_quoted,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let has_mark = || MARKS.iter().any(|mark| words[at..].starts_with(mark));
        if !is_quoted && depth == 0 && has_mark() {
            return Some((&words[..at], words[at + 1..].trim_start()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context as _;

    use super::*;

    #[test]
    fn the_status_of_another_process_is_one_of_ours() {
        assert_eq!(Status::of(0), Status::Done);
        assert_eq!(Status::of(130), Status::Interrupted);
        assert_eq!(Status::of(77), Status::Failure);
    }

    /// `reproduce --machine host` ended with 1 where another policy was attached.
    #[test]
    fn an_error_out_of_a_box_is_what_it_was() {
        let boxed = unboxed(Box::new(UnsupportedError("x".to_owned())));
        assert!(boxed.is::<UnsupportedError>());
        let other = unboxed(Box::new(io::Error::other("y")));
        assert_eq!(
            (words(&other), other.is::<UnsupportedError>()),
            ("y".to_owned(), false)
        );
    }

    #[test]
    fn an_error_has_a_line_for_what_is_wrong_and_one_for_what_to_do() {
        for (words, lines) in [
            ("no x; give one", "no x\n  give one"),
            (
                "no x: did you mean `y`? give y; or z",
                "no x\n  did you mean `y`? give y; or z",
            ),
            ("`a; b` is no x; give one", "`a; b` is no x\n  give one"),
            ("no x (a; b); give one", "no x (a; b)\n  give one"),
            (
                "x.c does not compile:\na; b\nsee y; z",
                "x.c does not compile:\na; b\nsee y; z",
            ),
            ("no x: no room", "no x: no room"),
            (
                "f:1:2: unknown channel `c`",
                "f:1:2: unknown channel `c`\n  correct the name",
            ),
            (
                "no x: there are: y, z; or w",
                "no x\n  there are: y, z; or w",
            ),
            ("no table, expected `]`", "no table\n  expected `]`"),
            (
                "cannot read x: No such file or directory (os error 2)",
                "cannot read x: No such file or directory (os error 2)\n  \
                 check the name, and the folder that you are in",
            ),
            (
                "cannot write x/y: No such file or directory (os error 2)",
                "cannot write x/y: No such file or directory (os error 2)\n  \
                 make its folder first, or name another file",
            ),
        ] {
            assert_eq!(in_two_lines(words), lines);
        }
    }

    #[test]
    fn a_cause_that_was_said_is_not_said_again() {
        let missing = io::Error::from_raw_os_error(2);
        let said = anyhow::anyhow!("/x: {missing}");
        let error = Err::<(), _>(missing).context("/x: No such file or directory (os error 2)");
        assert_eq!(words(&error.unwrap_err()), said.to_string());
        let longer: anyhow::Result<()> = Err(anyhow::anyhow!("cannot write y: no room"));
        let error = longer.context("cannot write y").unwrap_err();
        assert_eq!(words(&error), "cannot write y: no room");
        let error: anyhow::Result<()> = Err(anyhow::anyhow!("no room")).context("cannot write y");
        assert_eq!(words(&error.unwrap_err()), "cannot write y: no room");
    }
}
