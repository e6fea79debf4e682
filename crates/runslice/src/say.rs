//! What the program tells its user besides results: one line on standard error.

use std::io::{self, Write as _};

/// Writes a line on standard error, behind the name of the verb that says it. Control characters
/// of `text` are escaped: names of files, objects and events come from anywhere, and a terminal
/// obeys what is in them.
pub fn say(who: &str, text: &str) {
    // Nobody can be told when standard error is closed too.
    let _ = writeln!(io::stderr(), "{who}: {}", printable(text));
}

/// `text` with its control characters escaped, but for newlines and tabs.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => printable.push(c),
            c if c.is_control() => printable.extend(c.escape_default()),
            c => printable.push(c),
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_told_what_to_do_by_a_name() {
        assert_eq!(
            printable("a\x1b]0;b\x07\r\n\tc\u{9b}2J"),
            "a\\u{1b}]0;b\\u{7}\\r\n\tc\\u{9b}2J"
        );
        assert_eq!(printable("Grüße"), "Grüße");
    }
}
