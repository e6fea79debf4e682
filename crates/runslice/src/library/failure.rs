//! What a request ends in when it has no result, and what is said beside a result.

use std::fmt;

use ask::Kind;

use crate::exit::{advised, in_two_lines};
use crate::{refusal, say};

/// A result, and the lines that the command line would have written on standard error. Control
/// characters in them are escaped.
#[derive(Clone, Debug)]
pub struct Answer<T> {
    /// The result.
    pub value: T,
    /// The lines.
    pub said: Vec<String>,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Who can mend it.
    pub why: Why,
    /// The words of the command line, control characters escaped.
    pub words: String,
}

/// The kinds of failures; the command line ends with another status for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Something is asked for that does not exist (status 2).
    Usage,
    /// This computer lacks something (status 4).
    Unsupported,
    /// A bad file, or the computer refused something (status 1).
    Failed,
    /// Whoever asked did not want it any more (status 130).
    Cancelled,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for Failure {}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        if let Some(error) = error.downcast_ref::<clap::Error>() {
            return Self::from(error);
        }
        let why = match Kind::of(&error) {
            Kind::Usage => Why::Usage,
            Kind::Unsupported => Why::Unsupported,
            Kind::Cancelled => Why::Cancelled,
            Kind::Input => Why::Failed,
        };
        Self {
            why,
            words: say::printable(&in_two_lines(&advised(&error))),
        }
    }
}

impl From<&clap::Error> for Failure {
    fn from(error: &clap::Error) -> Self {
        let words = refusal::words(error);
        let words = words.unwrap_or_else(|| error.render().to_string().into());
        Self {
            why: Why::Usage,
            words: say::printable(&in_two_lines(&words)),
        }
    }
}

/// Does `work`, and keeps what it says.
pub fn answer<T>(work: impl FnOnce() -> anyhow::Result<T>) -> Result<Answer<T>, Failure> {
    let (result, said) = say::kept(work);
    let value = result.map_err(Failure::from)?;
    Ok(Answer { value, said })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ask::error::Cancelled;

    use crate::exit::{UnsupportedError, UsageError};

    #[test]
    fn a_failure_has_the_words_of_the_command_line_and_its_kind() {
        let of = |error: anyhow::Error| Failure::from(error).why;
        assert_eq!(of(UsageError::new("x").into()), Why::Usage);
        assert_eq!(of(UnsupportedError::new("x").into()), Why::Unsupported);
        assert_eq!(of(Cancelled.into()), Why::Cancelled);
        let failed = Failure::from(anyhow::anyhow!("no\x1broom").context("cannot write"));
        assert_eq!(
            (failed.why, &*failed.words),
            (Why::Failed, "cannot write: no\\u001broom")
        );
    }

    #[test]
    fn what_is_said_comes_with_the_result() {
        let answer = answer(|| {
            say::say("x", "lost: a");
            Ok(3)
        });
        let answer = answer.unwrap();
        assert_eq!((answer.value, answer.said), (3, vec!["lost: a".to_owned()]));
    }
}
