//! How the program ends: its exit statuses, and the errors that decide which one it is.

use std::sync::OnceLock;

use ask::error::{AdviceOf, advice_of};
use model::{Advice as _, Advised};

pub use ask::error::{BadSource, UnsupportedError, UsageError};

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
    #[must_use]
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
            Status::Exceeded => {
                "a comparison exceeded the limit of --fail-if or --least, or a case came out \
                 otherwise than its file says"
            }
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

/// The error of the command line in words: what is wrong, with its causes, and what to do.
pub fn advised(error: &anyhow::Error) -> Advised {
    ask::error::advised_with(error, &known())
}

/// `advised()` in one line.
#[must_use]
pub fn in_full(error: &anyhow::Error) -> String {
    advised(error).in_full()
}

/// The errors of another program, which has a door of its own.
static MORE: OnceLock<AdviceOf> = OnceLock::new();

/// From here on the errors of another program are known, too.
pub fn know(more: AdviceOf) {
    // A program has one door.
    let _ = MORE.set(more);
}

/// The errors of the command line that no question has; a test of the project finds one that is
/// missing here and there.
fn known() -> Vec<AdviceOf> {
    macro_rules! known {
        ($($known:ty),+ $(,)?) => {
            [$(advice_of::<$known> as AdviceOf),+]
        };
    }
    let mut known = known![bpf_build::Error].to_vec();
    known.extend(MORE.get());
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    known.extend(known![loader::StartError]);
    #[cfg(feature = "png")]
    known.extend(known![show::picture::PictureError]);
    #[cfg(feature = "live")]
    known.extend(known![live::Error, load::Error, vm::VmError]);
    known
}

/// What is wrong, and below it what to do.
pub fn in_two_lines(error: &Advised) -> String {
    match &error.advice {
        Some(advice) => format!("{}\n  {advice}", error.what),
        None => error.what.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_status_of_another_process_is_one_of_ours() {
        assert_eq!(Status::of(0), Status::Done);
        assert_eq!(Status::of(130), Status::Interrupted);
        assert_eq!(Status::of(77), Status::Failure);
    }

    #[test]
    fn an_error_has_a_line_for_what_is_wrong_and_one_for_what_to_do() {
        let two = |error: anyhow::Error| in_two_lines(&advised(&error));
        let usage = UsageError::new(Advised::new("no `a; b`", "give one; or two"));
        assert_eq!(two(usage.into()), "no `a; b`\n  give one; or two");
        assert_eq!(
            two(anyhow::anyhow!("we; ird.toml: no room")),
            "we; ird.toml: no room"
        );
        let missing = || io::Error::from_raw_os_error(2);
        let read = model::CannotRead::at("a; b.toml")(missing());
        assert_eq!(
            two(anyhow::Error::from(read).context("x; y")),
            "x; y: cannot read a; b.toml: No such file or directory (os error 2)\n  \
             check the name, and the folder that you are in"
        );
        let write = model::CannotWrite::at("x/y")(missing());
        assert!(two(write.into()).ends_with("\n  make its folder first, or name another file"));
    }
}
