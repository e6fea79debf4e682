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
