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

/// The escape that stands for a character: `\u001b`. It is that of JSON, so that JSON stays JSON
/// where a terminal shows it. No character that a terminal obeys has more than 16 bits.
#[must_use]
pub fn escape(char: char) -> String {
    format!("\\u{:04x}", u32::from(char))
}

/// A text or name with the [`escape`] of each character that a terminal obeys, and with `\xff` for
/// each byte that is no UTF-8. Names that differ are shown as names that differ.
#[must_use]
pub fn shown(name: impl AsRef<[u8]>) -> String {
    let mut shown = String::new();
    for chunk in name.as_ref().utf8_chunks() {
        for char in chunk.valid().chars() {
            if is_obeyed(char) {
                shown.push_str(&escape(char));
            } else {
                shown.push(char);
            }
        }
        shown.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_not_shown_to_it() {
        let text = "a\x1b[2J\r\n\u{9b}\u{202e}gpj\u{2069}\u{61c}\u{200f}";
        let want = r"a\u001b[2J\u000d\u000a\u009b\u202egpj\u2069\u061c\u200f";
        assert_eq!(shown(text), want);
        assert_eq!(shown(b"p\x01f \xff\xc3"), r"p\u0001f \xff\xc3");
        let plain = "Grüße, \u{a0}\u{2010}\u{202f}漢字 \u{1f600}";
        assert_eq!(shown(plain), plain);
    }
}
