//! Text of others that must do nothing to a terminal.

/// Whether a terminal obeys this character instead of showing it: a control character, or one that
/// turns the direction of what follows, so that a line reads as another than it is (Unicode
/// 16.0.0, the characters with the property `Bidi_Control`).
#[must_use]
pub fn is_obeyed(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// `text` with a question mark for each character that a terminal obeys: for names in tables, which
/// must not become longer.
#[must_use]
pub fn shown(text: &str) -> String {
    let plain = |char| if is_obeyed(char) { '?' } else { char };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_not_shown_to_it() {
        let text = "a\x1b[2J\r\n\u{9b}\u{202e}gpj\u{2069}\u{61c}\u{200f}";
        assert_eq!(shown(text), "a?[2J????gpj???");
        let plain = "Grüße, \u{a0}\u{2010}\u{202f}漢字 \u{1f600}";
        assert_eq!(shown(plain), plain);
    }
}
