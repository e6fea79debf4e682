//! What can be wrong with a workload file.

use std::fmt;

use crate::plain::shown;
use crate::{Advice, Advised};

/// Why a workload or a profile could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct FileError {
    /// The file, as the caller named it.
    pub file: String,
    /// Line, from one.
    pub line: u32,
    /// Column in characters, from one.
    pub column: u32,
    /// What is wrong.
    pub problem: Problem,
}

impl Advice for FileError {
    fn advice(&self) -> Option<String> {
        self.problem.advice()
    }
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlace {
    /// The file, as the caller named it.
    pub file: String,
    /// Line, from one.
    pub line: u32,
    /// Column in characters, from one.
    pub column: u32,
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column } = self;
        write!(f, "{file}:{line}:{column}")
    }
}

/// Problem of a workload. Names out of the file are shown so that none begins a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file is no TOML.
    #[error("not TOML: {0}")]
    Toml(String),
    /// It is TOML, but not what this file may say; in the reader's words.
    #[error("{0}")]
    Form(String),
    /// A required key or table is absent.
    #[error("{} lacks `{key}`", shown(table))]
    Missing {
        /// The table that lacks it.
        table: String,
        /// The key.
        key: &'static str,
        /// What it should say.
        expected: &'static str,
    },
    /// Something else was expected here.
    #[error("found {}", shown(found))]
    Unexpected {
        /// What the file says.
        found: String,
        /// What it should say.
        expected: String,
    },
    /// A name that nothing has.
    #[error("unknown {what} `{}`", shown(found))]
    Unknown {
        /// What kind of thing it would name.
        what: &'static str,
        /// The name.
        found: String,
        /// The known name that is most like it.
        nearest: Option<String>,
    },
    /// A name that two things would have.
    #[error("`{}` is taken", shown(.0))]
    Taken(String),
    /// A number that is too small or too large.
    #[error("{} is {}", shown(what), shown(found))]
    Range {
        /// Which number.
        what: String,
        /// Its value.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// Part of the language, but nothing executes it.
    #[error("`{}` is not simulated yet", shown(.0))]
    NotSimulated(String),
    /// The file of a profile is missing or bad, or its name is none.
    #[error("{what}: {why}")]
    Profile {
        /// The profile.
        what: String,
        /// Why it could not be read.
        why: Advised,
    },
    /// An instance must be chosen.
    #[error("`{name}` has {count} instances")]
    WhichInstance {
        /// The resource.
        name: String,
        /// How many there are.
        count: u32,
    },
    /// A word stands where a number belongs.
    #[error("`{0}` is no number, and the file gives no number that name")]
    NoNumber(String),
    /// A constant was asked for.
    #[error("`{0}` is known only when the workload runs")]
    NotConstant(&'static str),
    /// A constant expression has no value.
    #[error("no value: {0}")]
    NoValue(#[from] EvalError),
    /// Nested deeper than anybody writes.
    #[error("nested or chained more than {0} deep")]
    TooDeep(usize),
}

impl Advice for Problem {
    fn advice(&self) -> Option<String> {
        Some(match self {
            Self::Toml(_) => "write TOML: `[table]`, `key = \"text\"`, `key = 5`".to_owned(),
            Self::Form(what) if what.starts_with("missing field") => "add it".to_owned(),
            Self::Form(_) => "correct or leave out what stands there".to_owned(),
            Self::Missing { expected, .. } => format!("expected {expected}"),
            Self::Unexpected { expected, .. } | Self::Range { expected, .. } => {
                format!("expected {expected}")
            }
            Self::Unknown { nearest, .. } => match nearest {
                Some(name) => format!("did you mean `{name}`?"),
                None => "correct the name".to_owned(),
            },
            Self::Taken(_) => "give it another name".to_owned(),
            Self::NotSimulated(_) => "see the end of docs/workload.md".to_owned(),
            Self::Profile { why, .. } => return why.advice(),
            Self::WhichInstance { name, .. } => format!("say which: `{name}[i]`"),
            Self::NoNumber(_) => "write a number, or a name that stands in `scale`".to_owned(),
            Self::NotConstant(_) => "expected a constant".to_owned(),
            Self::NoValue(error) => return error.advice(),
            Self::TooDeep(_) => "nest or chain less".to_owned(),
        })
    }
}

/// Why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The result does not fit 64 bits.
    #[error("a number exceeds 64 bits")]
    Overflow,
    /// `/` or `%` with zero on the right.
    #[error("division by zero")]
    DivisionByZero,
    /// `len()` of an instance that does not exist.
    #[error("len() of instance {0}, which does not exist")]
    NoInstance(i64),
    /// `rand()` of a number below one.
    #[error("rand({0}) has nothing to draw from")]
    EmptyRange(i64),
}

impl Advice for EvalError {
    fn advice(&self) -> Option<String> {
        None
    }
}

impl Problem {
    /// `found` where `expected` should be.
    pub fn unexpected(found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Unexpected {
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// `found` is none of `known`.
    pub fn unknown<'a>(
        what: &'static str,
        found: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let nearest = nearest(found, known).map(str::to_owned);
        Self::Unknown {
            what,
            found: found.to_owned(),
            nearest,
        }
    }
}

/// The name that the fewest edits turn `found` into, if they are few for its length. Two letters
/// that change places are one edit.
#[must_use]
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Most characters of a name that a slip of the keyboard explains; comparing takes their number
    /// times that of each known name.
    const LONGEST: usize = 200;
    let count = found.chars().take(LONGEST + 1).count();
    if count > LONGEST {
        return None;
    }
    let allowed = 1 + count / 3;
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(found, name), name))
        .filter(|&(distance, _)| distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_only_when_it_is_near() {
        let known = ["send", "recv", "setnice"];
        assert_eq!(nearest("sned", known), Some("send"));
        assert_eq!(nearest("set_nice", known), Some("setnice"));
        assert_eq!(nearest("mutex", known), None);
        // Two letters that changed places are one slip.
        assert_eq!(nearest("smi", ["run", "set", "sim"]), Some("sim"));
        // Comparing it would take minutes.
        assert_eq!(nearest(&"send".repeat(10_000_000), known), None);
    }
}
