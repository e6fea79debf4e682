//! How a text stands out from others, without a word of terminals.

use std::io::{self, Write};

/// How a text stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Not at all.
    #[default]
    Plain,
    /// The best of several.
    Good,
    /// The worst of several.
    Bad,
}

/// What stands in text for a tone that begins, in the order of [`Tone`]; the first ends the others.
/// No text in UTF-8 has these bytes, so no name that comes from outside can be taken for a tone.
/// Whoever writes to a terminal makes colors of them, others leave them out.
const MARKS: [u8; 3] = [0xf8, 0xf9, 0xfa];

impl Tone {
    /// Writes a text between marks. Spaces around it stay outside.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn paint(self, text: &str, to: &mut dyn Write) -> io::Result<()> {
        let inner = text.trim();
        if self == Self::Plain || inner.is_empty() {
            return to.write_all(text.as_bytes());
        }
        let (before, rest) = text.split_at(text.len() - text.trim_start().len());
        let after = &rest[inner.len()..];
        to.write_all(before.as_bytes())?;
        to.write_all(&[MARKS[self as usize]])?;
        to.write_all(inner.as_bytes())?;
        to.write_all(&[MARKS[Self::Plain as usize]])?;
        to.write_all(after.as_bytes())
    }

    /// What a terminal is told where `byte` stands; `None` if it is no mark.
    #[must_use]
    pub fn of_mark(byte: u8) -> Option<&'static str> {
        match MARKS.iter().position(|mark| *mark == byte)? {
            0 => Some("\u{1b}[0m"),
            1 => Some("\u{1b}[32m"),
            _ => Some("\u{1b}[31m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_is_around_the_text_without_its_spaces() {
        let painted = |tone: Tone, text: &str| {
            let mut bytes = Vec::new();
            tone.paint(text, &mut bytes).unwrap();
            bytes
        };
        assert_eq!(painted(Tone::Plain, " a "), b" a ");
        assert_eq!(painted(Tone::Good, "  a b "), b"  \xf9a b\xf8 ");
        assert_eq!(painted(Tone::Bad, "   "), b"   ");
    }

    #[test]
    fn no_text_has_a_mark() {
        for mark in MARKS {
            std::str::from_utf8(&[mark]).unwrap_err();
            assert!(Tone::of_mark(mark).is_some());
        }
        let bytes = (0..=0xf7).chain(0xfb..=0xff);
        assert_eq!(bytes.filter_map(Tone::of_mark).count(), 0);
    }
}
