//! Where results come from: program and command line. Every form of results says it.

use ask::words;

use crate::VERSION;

/// How the program was called.
#[derive(Clone, Debug)]
pub struct Origin {
    words: Vec<String>,
}

impl Origin {
    /// The words of the command line, the program's name first.
    #[must_use]
    pub const fn new(words: Vec<String>) -> Self {
        Self { words }
    }

    /// The words of the command line.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The same as a shell takes it.
    #[must_use]
    pub fn command(&self) -> String {
        words::command(&self.words)
    }

    /// The command that makes the same again, for a shell.
    #[must_use]
    pub fn again(&self) -> String {
        let arguments = self.words.get(1..).unwrap_or_default();
        format!("runslice {}", words::command(arguments))
    }

    /// The first cells of each row of a table: the name of the table with the version of its
    /// columns, the version of this program, the command line.
    #[must_use]
    pub fn cells(&self, table: &str, version: u32) -> [String; 3] {
        [
            format!("runslice_{table}/{version}"),
            VERSION.to_owned(),
            self.command(),
        ]
    }
}
