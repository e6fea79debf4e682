//! Walks TOML tables and knows, for everything in them, where it stands in the file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::error::{FileError, FilePlace, Problem};

/// A file's text and name.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The whole text.
    pub text: &'a str,
    /// The file, as messages call it.
    pub file: &'a str,
}

/// A value with its place.
pub type FileValue<'a> = &'a Spanned<DeValue<'a>>;

impl<'a> Source<'a> {
    /// The file as a table of TOML.
    ///
    /// # Errors
    /// When it is no TOML, with the place.
    pub fn toml(&self) -> Result<Spanned<DeTable<'a>>, FileError> {
        DeTable::parse(self.text).map_err(|error| self.refused(&error, Problem::Toml))
    }

    /// What a reader of TOML refuses, with its place.
    pub(super) fn refused(
        &self,
        error: &toml::de::Error,
        problem: fn(String) -> Problem,
    ) -> FileError {
        let at = error.span().map_or(0, |span| span.start);
        self.error(at, problem(error.message().trim_end().to_owned()))
    }

    /// `problem` at a byte of the file.
    #[must_use]
    pub fn error(&self, at: usize, problem: Problem) -> FileError {
        let FilePlace { file, line, column } = self.place(at);
        FileError {
            file,
            line,
            column,
            problem,
        }
    }

    /// The line and the column of a byte of the file.
    #[must_use]
    pub fn place(&self, at: usize) -> FilePlace {
        let before = self.text.get(..at).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[start..].chars().count() + 1;
        FilePlace {
            file: self.file.to_owned(),
            line: self.line(at),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }

    /// The line of a byte of the file, from one.
    #[must_use]
    pub fn line(&self, at: usize) -> u32 {
        let before = self
            .text
            .as_bytes()
            .get(..at)
            .unwrap_or(self.text.as_bytes());
        // Files are asked about each of their operations: bytes are counted in bytes, many at once.
        let parts = before.chunks(usize::from(u8::MAX)).map(|part| {
            let newlines: u8 = part.iter().map(|&byte| u8::from(byte == b'\n')).sum();
            usize::from(newlines)
        });
        let newlines: usize = parts.sum();
        u32::try_from(newlines + 1).unwrap_or(u32::MAX)
    }
}

/// A string of the file, decoded.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    /// The characters.
    pub text: &'a str,
    /// Where the first character stands, if the string is written without escapes.
    verbatim: Option<usize>,
    span: usize,
}

impl Text<'_> {
    /// The string behind `prefix`.
    #[must_use]
    pub fn after(self, prefix: &str) -> Option<Self> {
        let text = self.text.strip_prefix(prefix)?;
        Some(Self {
            text,
            verbatim: self.verbatim.map(|at| at + prefix.len()),
            ..self
        })
    }

    /// The string before `suffix`.
    #[must_use]
    pub fn before(self, suffix: &str) -> Option<Self> {
        self.text
            .strip_suffix(suffix)
            .map(|text| Self { text, ..self })
    }

    /// Where in the file an offset of the string is; the string's begin if that is not known.
    #[must_use]
    pub fn place(&self, offset: usize) -> usize {
        self.verbatim.map_or(self.span, |start| start + offset)
    }
}

/// A table whose keys are asked for one by one, and of which none may be left over.
pub struct FileTable<'a> {
    source: &'a Source<'a>,
    table: &'a DeTable<'a>,
    /// How messages call it.
    pub name: String,
    at: usize,
    known: Vec<&'static str>,
}

impl<'a> FileTable<'a> {
    /// The table `value`, called `name`.
    ///
    /// # Errors
    /// When `value` is no table.
    pub fn new(
        source: &'a Source<'a>,
        name: String,
        value: FileValue<'a>,
    ) -> Result<Self, FileError> {
        let DeValue::Table(table) = value.get_ref() else {
            let problem = Problem::unexpected(describe(value), format!("a table `[{name}]`"));
            return Err(source.error(value.span().start, problem));
        };
        let at = value.span().start;
        Ok(Self {
            source,
            table,
            name,
            at,
            known: Vec::new(),
        })
    }

    /// A file's root, or a table of tables such as `chan`.
    #[must_use]
    pub fn root(source: &'a Source<'a>, table: &'a DeTable<'a>) -> Self {
        Self {
            source,
            table,
            name: "the file".to_owned(),
            at: 0,
            known: Vec::new(),
        }
    }

    /// The entries, in the order of the file: name, place of the name, value.
    #[must_use]
    pub fn entries(&self) -> Vec<(&'a str, usize, FileValue<'a>)> {
        let entry = |(key, value): (&'a Spanned<_>, FileValue<'a>)| {
            let name: &std::borrow::Cow<'a, str> = key.get_ref();
            (name.as_ref(), key.span().start, value)
        };
        let mut entries: Vec<_> = self.table.iter().map(entry).collect();
        entries.sort_by_key(|&(_, at, _)| at);
        entries
    }

    /// The value of `key`.
    pub fn get(&mut self, key: &'static str) -> Option<FileValue<'a>> {
        self.known.push(key);
        self.table
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| value)
    }

    /// `key` should be there and is not.
    #[must_use]
    pub fn missing(&self, key: &'static str, expected: &'static str) -> FileError {
        let problem = Problem::Missing {
            table: self.name.clone(),
            key,
            expected,
        };
        self.source.error(self.at, problem)
    }

    /// The value of `key`, which must be there.
    ///
    /// # Errors
    /// When `key` is missing.
    pub fn require(
        &mut self,
        key: &'static str,
        expected: &'static str,
    ) -> Result<FileValue<'a>, FileError> {
        self.get(key).ok_or_else(|| self.missing(key, expected))
    }

    /// The string at `key`.
    ///
    /// # Errors
    /// When the value is no string.
    pub fn text(
        &mut self,
        key: &'static str,
        expected: &str,
    ) -> Result<Option<Text<'a>>, FileError> {
        let source = self.source;
        self.get(key)
            .map(|value| text(source, value, expected))
            .transpose()
    }

    /// Whether `key` says `true`.
    ///
    /// # Errors
    /// When the value is no boolean.
    pub fn flag(&mut self, key: &'static str) -> Result<bool, FileError> {
        let Some(value) = self.get(key) else {
            return Ok(false);
        };
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.unexpected(value, "`true` or `false`")),
        }
    }

    /// `value` is not what was expected.
    #[must_use]
    pub fn unexpected(&self, value: FileValue, expected: &str) -> FileError {
        self.source.error(
            value.span().start,
            Problem::unexpected(describe(value), expected),
        )
    }

    /// Refuses the first key that nothing asked for.
    ///
    /// # Errors
    /// When a key is left over.
    pub fn finish(self) -> Result<(), FileError> {
        for (name, at, _) in self.entries() {
            if !self.known.contains(&name) {
                let problem = Problem::unknown("key", name, self.known.iter().copied());
                return Err(self.source.error(at, problem));
            }
        }
        Ok(())
    }
}

/// The string `value`.
///
/// # Errors
/// When `value` is no string.
pub fn text<'a>(
    source: &Source,
    value: FileValue<'a>,
    expected: &str,
) -> Result<Text<'a>, FileError> {
    let span = value.span();
    let DeValue::String(text) = value.get_ref() else {
        return Err(source.error(span.start, Problem::unexpected(describe(value), expected)));
    };
    Ok(Text {
        text,
        verbatim: verbatim(source.text, &span, text),
        span: span.start,
    })
}

/// The strings of a list, or a single one.
///
/// # Errors
/// When `value` is neither a string nor a list of strings.
pub fn texts<'a>(
    source: &Source,
    value: FileValue<'a>,
    expected: &str,
) -> Result<Vec<Text<'a>>, FileError> {
    let DeValue::Array(list) = value.get_ref() else {
        return Ok(vec![text(source, value, expected)?]);
    };
    let list: &'a DeArray<'a> = list;
    list.iter()
        .map(|value| text(source, value, expected))
        .collect()
}

/// Where a string's characters begin, if the file has them as they are.
fn verbatim(file: &str, span: &Range<usize>, text: &str) -> Option<usize> {
    let raw = file.get(span.clone())?;
    let quotes = raw.len().checked_sub(text.len())?;
    // One quote on each side, or three and perhaps a newline.
    let at = raw.find(text)?;
    (quotes <= 8 && at <= 5).then_some(span.start + at)
}

/// A value in words, for messages.
#[must_use]
pub fn describe(value: FileValue) -> String {
    match value.get_ref() {
        DeValue::String(text) => format!("the string \"{text}\""),
        DeValue::Integer(number) => format!("the number {}", number.as_str()),
        DeValue::Float(number) => format!("the number {}", number.as_str()),
        DeValue::Boolean(flag) => format!("`{flag}`"),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
