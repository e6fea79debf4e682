//! What a caller is told besides the answer: warnings are values, and the caller shows them.

use std::fmt;

/// Something that the caller should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub topic: Topic,
    /// A sentence. Names in it come from anywhere: whoever shows it escapes control characters.
    pub text: String,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The run, its policy or its workload.
    Run,
    /// The recording that a load is made of.
    Recording,
    /// A bundle.
    Bundle,
    /// A sweep.
    Sweep,
}

impl Topic {
    /// The word before the note where lines say who speaks.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "runslice",
            Self::Recording => "from",
            Self::Bundle => "bundle",
            Self::Sweep => "sweep",
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.topic.word(), self.text)
    }
}
