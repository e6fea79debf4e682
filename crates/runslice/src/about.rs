//! Where results come from: program and command line. Every form of results says it.

use std::ffi::OsString;

/// The program and how it was called.
#[derive(Clone, Copy, Debug)]
pub struct About;

impl About {
    /// The version of this program.
    pub const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    /// The words of the command line, the program's name first, as it is called and not as it is
    /// found. What is no text is replaced.
    pub fn words() -> Vec<String> {
        let rest = std::env::args_os().skip(1);
        let text = |word: OsString| word.to_string_lossy().into_owned();
        ["runslice".to_owned()]
            .into_iter()
            .chain(rest.map(text))
            .collect()
    }

    /// The first cells of each row of a table: the name of the table with the version of its
    /// columns, the version of this program, the command line.
    pub fn cells(table: &str, version: u32) -> [String; 3] {
        [
            format!("runslice_{table}/{version}"),
            Self::VERSION.to_owned(),
            Self::command(),
        ]
    }

    /// The same as a shell takes it.
    pub fn command() -> String {
        let words = Self::words();
        // No word of a command line has the one byte that cannot be quoted.
        let quoted = shlex::try_join(words.iter().map(String::as_str));
        quoted.unwrap_or_else(|_| words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_its_name_wherever_it_lies() {
        assert_eq!(About::words()[0], "runslice");
        assert!(About::command().starts_with("runslice"));
    }
}
