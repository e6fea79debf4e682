//! How the program ends: its exit statuses, and the errors that decide which one it is.

use std::error::Error;

use model::{Advice, Advised};

use crate::cancel::Cancelled;

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
pub struct UsageError(Advised);

impl UsageError {
    /// With what is wrong, and its advice if it has one.
    pub fn new(what: impl Into<Advised>) -> Self {
        Self(what.into())
    }
}

impl Advice for UsageError {
    fn advice(&self) -> Option<String> {
        self.0.advice()
    }
}

/// This computer lacks what the verb needs; the advice is the way out.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnsupportedError(Advised);

impl UnsupportedError {
    /// With what is lacking, and the way out.
    pub fn new(what: impl Into<Advised>) -> Self {
        Self(what.into())
    }
}

impl Advice for UnsupportedError {
    fn advice(&self) -> Option<String> {
        self.0.advice()
    }
}

/// A policy's source itself is why there is no object; the text is what its author must know.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadSource(Advised);

impl BadSource {
    /// With what is wrong, and its advice if it has one.
    pub fn new(what: impl Into<Advised>) -> Self {
        Self(what.into())
    }
}

impl Advice for BadSource {
    fn advice(&self) -> Option<String> {
        self.0.advice()
    }
}

/// An error out of its box. `anyhow` would hide what it was, and so the status that it decides.
pub fn unboxed(error: Box<dyn Error + Send + Sync>) -> anyhow::Error {
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

/// The error of the command line in words: what is wrong, with its causes, and what to do.
pub fn advised(error: &anyhow::Error) -> Advised {
    Advised {
        what: words(error),
        advice: advice(error),
    }
}

/// [`advised`] in one line.
pub fn in_full(error: &anyhow::Error) -> String {
    advised(error).in_full()
}

/// The advice of the first cause that has one. `anyhow` forgets the types of errors, so that all
/// of them stand here; a test of the project finds one that does not.
fn advice(error: &anyhow::Error) -> Option<String> {
    type Of = fn(&(dyn Error + 'static)) -> Option<String>;
    macro_rules! known {
        ($($known:ty),+ $(,)?) => {
            [$(known::<$known> as Of),+]
        };
    }
    let mut known = known![
        Advised,
        UsageError,
        UnsupportedError,
        BadSource,
        Cancelled,
        model::CannotRead,
        model::CannotWrite,
        model::TaskCountersError,
        model::file::FileError,
        model::file::Problem,
        model::file::EvalError,
        model::user_space::UserSpaceError,
        bpf::LoadError,
        bpf::InstanceError,
        bpf::MapProblem,
        bpf::StructOpsProblem,
        bpf::KnobProblem,
        bpf::PathError,
        bpf::Fault,
        bpf::Stop,
        bpf::SetError,
        bpf::SetUpError,
        bpf::OutOfMemory,
        bpf_build::Error,
        experiments::Error,
        traces::foreign::Error,
        sim::Error,
        sim::PolicyError,
        sim::EntryError,
        sim::MirrorError,
        sim::OpsError,
        traces::ReadError,
        stats::compare::Refusal,
        stats::schedstat::IntervalError,
        stats::schedstat::SchedstatError,
        explain::why::DumpError,
        workload::Fault,
        loader::recording::Damaged,
        std::io::Error,
    ]
    .to_vec();
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    known.extend(known![loader::StartError]);
    #[cfg(feature = "png")]
    known.extend(known![show::picture::PictureError]);
    #[cfg(feature = "live")]
    known.extend(known![live::Error, load::Error, vm::VmError]);
    error
        .chain()
        .find_map(|cause| known.iter().find_map(|of| of(cause)))
}

fn known<E: Advice + 'static>(cause: &(dyn Error + 'static)) -> Option<String> {
    cause.downcast_ref::<E>()?.advice()
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
        let boxed = unboxed(Box::new(UnsupportedError::new("x")));
        assert!(boxed.is::<UnsupportedError>());
        let other = unboxed(Box::new(io::Error::other("y")));
        assert_eq!(
            (words(&other), other.is::<UnsupportedError>()),
            ("y".to_owned(), false)
        );
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

    #[test]
    fn the_advice_of_the_first_cause_that_has_one_is_given() {
        let inner = UsageError::new(Advised::new("no x", "give one"));
        let error = anyhow::Error::from(inner).context("f.toml:1:2");
        assert_eq!(advised(&error).in_full(), "f.toml:1:2: no x; give one");
        let silent = sim::Error::SetUpFailed {
            policy: "p".to_owned(),
            what: "x".to_owned(),
            why: "y".to_owned(),
        };
        assert_eq!(advised(&silent.into()).advice, None);
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
