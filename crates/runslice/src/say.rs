//! What the program tells its user besides results: one line on standard error.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Write as _};

use crate::files;

thread_local! {
    /// Where the lines of this thread go instead of standard error.
    static KEPT: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Does `work`, and keeps the lines that it says on this thread instead of writing them: control
/// characters are escaped, and the name of the verb is not before them.
pub fn kept<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    struct Restore(Option<Vec<String>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            KEPT.set(self.0.take());
        }
    }
    let _restore = Restore(KEPT.replace(Some(Vec::new())));
    let result = work();
    (result, KEPT.take().unwrap_or_default())
}

/// Writes a line on standard error, behind the name of the verb that says it. Control characters
/// of `text` are escaped: names of files, objects and events come from anywhere, and a terminal
/// obeys what is in them.
pub fn say(who: &str, text: &str) {
    let line = printable(&shortened(text));
    let is_kept = KEPT.with_borrow_mut(|kept| kept.as_mut().map(|kept| kept.push(line.clone())));
    if is_kept.is_none() {
        // Nobody can be told when standard error is closed too.
        let _ = writeln!(io::stderr(), "{who}: {line}");
    }
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
    fn what_is_said_can_be_kept_by_the_thread_that_asks() {
        let ((), lines) = kept(|| {
            let ((), inner) = kept(|| say("x", "in\x1b"));
            assert_eq!(inner, ["in\\u001b"]);
            say("x", "out");
        });
        assert_eq!(lines, ["out"]);
        assert!(KEPT.with_borrow(Option::is_none));
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
