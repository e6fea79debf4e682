//! How results look on a terminal: its width, colors, and how much is told.

use std::io::{self, IsTerminal as _, Write};

use clap::{Args, ValueEnum};

/// Columns that tables have where nobody says how wide the terminal is.
const WIDTH: usize = 80;

/// How wide tables may be.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct WidthOptions {
    /// Show all columns of all tables, however wide they are, and every task of a recording.
    /// Default: as many columns as the terminal has room for, or 80 characters in a file, and of a
    /// recording the twenty names whose tasks waited longest.
    #[arg(long)]
    pub wide: bool,
}

/// Options of results for people.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct LookOptions {
    /// How wide tables may be.
    #[command(flatten)]
    pub tables: WidthOptions,

    /// Also show what policies count and print, and what took overhead.
    #[arg(short, long)]
    pub verbose: bool,

    /// Color the best and the worst. `auto` does so on a terminal, unless the environment variable
    /// `NO_COLOR` is set.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = When::Auto)]
    pub color: When,
}

/// When to use colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl WidthOptions {
    /// The columns that there is room for; `None` if all are wanted.
    pub fn width(self) -> Option<usize> {
        (!self.wide).then(width)
    }
}

/// Columns of the terminal, or of a file.
pub fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(WIDTH, |(width, _)| usize::from(width.0))
}

impl LookOptions {
    /// Width of the output in columns; `None` without a limit.
    pub fn width(self) -> Option<usize> {
        self.tables.width()
    }

    /// Whether standard output gets colors.
    pub fn has_color(self) -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb(),
        }
    }
}

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
/// `output::open` makes colors of them or leaves them out.
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
