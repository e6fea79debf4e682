//! What the program tells its user besides results: one line on standard error.

use std::borrow::Cow;
use std::io::{self, Write as _};

use crate::files;

/// Writes a line on standard error, behind the name of the verb that says it. Control characters
/// of `text` are escaped: names of files, objects and events come from anywhere, and a terminal
/// obeys what is in them.
pub fn say(who: &str, text: &str) {
    // Nobody can be told when standard error is closed too.
    let _ = writeln!(io::stderr(), "{who}: {}", line(text));
}

/// What is said of `text`: short, and nothing that a terminal obeys.
#[must_use]
pub fn line(text: &str) -> String {
    printable(&shortened(text))
}

/// Most bytes of a message. A verifier's last lines fit; a file of one line does not.
const MOST: usize = 16 << 10;

/// `text`, cut where nobody would read on.
fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST {
        return Cow::Borrowed(text);
    }
    let mut half = MOST / 2;
    while !text.is_char_boundary(half) {
        half -= 1;
    }
    let mut rest = text.len() - MOST / 2;
    while !text.is_char_boundary(rest) {
        rest += 1;
    }
    let left_out = rest - half;
    Cow::Owned(format!(
        "{} [... {left_out} bytes ...] {}",
        &text[..half],
        &text[rest..]
    ))
}

/// `text` with what a terminal obeys escaped, but for newlines and tabs.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => printable.push(c),
            // A byte of a file's name that is no text.
            c if let Some(byte) = files::raw_byte(c) => {
                printable.push_str(&format!("\\x{byte:02x}"));
            }
            c if model::plain::is_obeyed(c) => printable.push_str(&model::plain::escape(c)),
            c => printable.push(c),
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_never_quotes_a_whole_file() {
        let text = format!("begin {} end", "\u{e9}".repeat(50_000_000));
        let said = shortened(&text);
        assert!(said.len() < MOST + 100, "{}", said.len());
        assert!(said.starts_with("begin ") && said.ends_with(" end"));
        assert!(
            said.contains("[... 99983"),
            "{}",
            &said[MOST / 2..MOST / 2 + 40]
        );
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn a_terminal_is_not_told_what_to_do_by_a_name() {
        assert_eq!(
            printable("a\x1b]0;b\x07\r\n\tc\u{9b}2J"),
            "a\\u001b]0;b\\u0007\\u000d\n\tc\\u009b2J"
        );
        assert_eq!(printable("a\u{202e}gpj"), "a\\u202egpj");
        assert_eq!(printable("Grüße"), "Grüße");
    }
}
