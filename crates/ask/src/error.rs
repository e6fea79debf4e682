//! Why there is no answer: the kinds of errors, and what to do about one.

use std::error::Error as StdError;
use std::fmt;

use model::{Advice, Advised};

/// Who can mend an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The question asks for something that does not exist.
    Usage,
    /// The caller or its computer lacks something that the question needs.
    Unsupported,
    /// A file, policy, workload or machine is bad, or the computer refused something.
    Input,
    /// The caller did not want the answer any more.
    Cancelled,
}

impl ErrorKind {
    /// The kind of `error`, whatever was said around it.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Self {
        if let Some(own) = error.downcast_ref::<Error>() {
            own.kind()
        } else if error.is::<UsageError>() {
            Self::Usage
        } else if error.is::<UnsupportedError>() {
            Self::Unsupported
        } else if error.is::<Cancelled>() {
            Self::Cancelled
        } else {
            Self::Input
        }
    }
}

/// Why a question has no answer.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    cause: anyhow::Error,
}

impl Error {
    /// Who can mend it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The error with all its causes.
    #[must_use]
    pub fn into_cause(self) -> anyhow::Error {
        self.cause
    }
}

impl From<anyhow::Error> for Error {
    fn from(cause: anyhow::Error) -> Self {
        Self {
            kind: ErrorKind::of(&cause),
            cause,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words(&self.cause))
    }
}

impl StdError for Error {}

impl Advice for Error {
    fn advice(&self) -> Option<String> {
        advice(&self.cause, &[])
    }
}

/// Somebody asked to stop.
#[derive(Debug, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

impl Advice for Cancelled {
    fn advice(&self) -> Option<String> {
        None
    }
}

/// The question asks for something that does not exist.
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

/// The caller or its computer lacks what the question needs; the advice is the way out.
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

/// A knob that does not exist is a mistake on the command line, not in a file.
#[must_use]
pub fn of_run(error: sim::Error) -> anyhow::Error {
    use sim::PolicyError::{Entry, Set, SetUp, When};
    match error {
        sim::Error::Policy {
            policy,
            source: source @ (Set(_) | When { .. } | Entry(_) | SetUp(_)),
        } => UsageError::new(Advised::of(&source).at(format!("policy `{policy}`"))).into(),
        other => other.into(),
    }
}

/// An error with its causes, each once: some errors have their cause's words in their own.
#[must_use]
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

/// The error in words: what is wrong, with its causes, and what to do.
#[must_use]
pub fn advised(error: &anyhow::Error) -> Advised {
    advised_with(error, &[])
}

/// [`advised`] in one line.
#[must_use]
pub fn in_full(error: &anyhow::Error) -> String {
    advised(error).in_full()
}

/// The error in words, with the advice of types that `more` knows and this crate does not.
#[must_use]
pub fn advised_with(error: &anyhow::Error, more: &[AdviceOf]) -> Advised {
    Advised {
        what: words(error),
        advice: advice(error, more),
    }
}

/// The advice of an error of one type; `None` of any other error.
pub type AdviceOf = fn(&(dyn StdError + 'static)) -> Option<String>;

/// The advice of an error if it is an `E`.
#[must_use]
pub fn advice_of<E: Advice + 'static>(cause: &(dyn StdError + 'static)) -> Option<String> {
    cause.downcast_ref::<E>()?.advice()
}

/// The advice of the first cause that has one. `anyhow` forgets the types of errors, so that all
/// of them stand here; a test of the project finds one that does not.
fn advice(error: &anyhow::Error, more: &[AdviceOf]) -> Option<String> {
    macro_rules! known {
        ($($known:ty),+ $(,)?) => {
            [$(advice_of::<$known> as AdviceOf),+]
        };
    }
    let known = known![
        Advised,
        Error,
        UsageError,
        UnsupportedError,
        BadSource,
        Cancelled,
        model::CannotRead,
        model::CannotWrite,
        model::ConfigError,
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
        traces::foreign::Error,
        sim::Error,
        sim::PolicyError,
        sim::EntryError,
        sim::MirrorError,
        sim::OpsError,
        crate::like::LikeError,
        explain::why::DumpError,
        traces::ReadError,
        stats::compare::Refusal,
        stats::schedstat::IntervalError,
        stats::schedstat::SchedstatError,
        workload::TaskFault,
        loader::recording::Damaged,
        std::io::Error,
    ];
    error
        .chain()
        .find_map(|cause| known.iter().chain(more).find_map(|of| of(cause)))
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context as _;

    use super::*;

    #[test]
    fn an_error_has_a_kind_whatever_is_said_around_it() {
        let kind = |error: anyhow::Error| Error::from(error.context("x")).kind();
        assert_eq!(kind(UsageError::new("y").into()), ErrorKind::Usage);
        assert_eq!(
            kind(UnsupportedError::new("y").into()),
            ErrorKind::Unsupported
        );
        assert_eq!(kind(Cancelled.into()), ErrorKind::Cancelled);
        assert_eq!(kind(anyhow::anyhow!("y")), ErrorKind::Input);
        let passed_on = Error::from(anyhow::Error::from(Cancelled));
        assert_eq!(kind(passed_on.into()), ErrorKind::Cancelled);
    }

    #[test]
    fn an_error_says_what_is_wrong_and_what_to_do() {
        let missing = io::Error::from_raw_os_error(2);
        let read = model::CannotRead::at("a; b.toml")(missing);
        let error = Error::from(anyhow::Error::from(read).context("x; y"));
        assert_eq!(
            error.in_full(),
            "x; y: cannot read a; b.toml: No such file or directory (os error 2); check the name, \
             and the folder that you are in"
        );
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
