//! Reads values: numbers, spans of time, words.

use std::ops::RangeInclusive;

use toml::de::DeValue;

use super::{FileReader, small};
use crate::names::Names;
use crate::parser::{Failure, KEYWORDS, Parser, range};
use model::Nanos;
use model::file::{FileError, Problem};
use model::file::{FileTable, FileValue, Text, describe, text};

impl<'a> FileReader<'a> {
    /// Reads all of `text`.
    pub(super) fn read<'n, T>(
        &'n mut self,
        text: Text,
        read: impl FnOnce(&mut Parser<'n>) -> Result<T, Failure>,
    ) -> Result<T, FileError> {
        let source = self.source;
        let fail = |(problem, at): Failure| source.error(text.place(at), problem);
        let mut parser = Parser::new(text.text, &mut self.names).map_err(fail)?;
        let value = read(&mut parser).map_err(fail)?;
        parser.expect_end().map_err(fail)?;
        Ok(value)
    }

    /// The span of time at `key`.
    pub(super) fn span(
        &mut self,
        table: &mut FileTable<'a>,
        key: &'static str,
        zero: bool,
    ) -> Result<Option<Nanos>, FileError> {
        let Some(text) = table.text(key, "a span of time, as \"1.5ms\"")? else {
            return Ok(None);
        };
        let span = self.read(text, Parser::span)?;
        if span.is_zero() && !zero {
            return Err(self
                .source
                .error(text.place(0), range(key, 0, "1ns or more")));
        }
        Ok(Some(span))
    }

    pub(super) fn count(
        &mut self,
        table: &mut FileTable<'a>,
        allowed: RangeInclusive<i64>,
    ) -> Result<Option<u32>, FileError> {
        let Some(value) = table.get("count") else {
            return Ok(None);
        };
        Ok(Some(small(self.integer(value, allowed, "count")?)))
    }

    /// An integer, or a string with a constant expression.
    pub(super) fn integer(
        &self,
        value: FileValue<'a>,
        allowed: RangeInclusive<i64>,
        what: &str,
    ) -> Result<i64, FileError> {
        let at = value.span().start;
        let found = match value.get_ref() {
            DeValue::Integer(integer) => {
                let digits = i64::from_str_radix(integer.as_str(), integer.radix());
                digits.map_err(|_| {
                    self.source
                        .error(at, Problem::unexpected(describe(value), "63 bits"))
                })?
            }
            DeValue::String(_) => {
                let text = text(self.source, value, "an integer")?;
                let mut names = Names {
                    scale: self.names.scale.clone(),
                    ..Names::default()
                };
                let fail = |(problem, at): Failure| self.source.error(text.place(at), problem);
                let mut parser = Parser::new(text.text, &mut names).map_err(fail)?;
                let value = parser.constant().map_err(fail)?;
                parser.expect_end().map_err(fail)?;
                value
            }
            _ => {
                let problem = Problem::unexpected(describe(value), "an integer");
                return Err(self.source.error(at, problem));
            }
        };
        if allowed.contains(&found) {
            return Ok(found);
        }
        let expected = format!("{} to {}", allowed.start(), allowed.end());
        Err(self.source.error(at, range(what, found, &expected)))
    }

    /// The meaning of a string that says one of several words.
    pub(super) fn choice<T: Copy>(
        &self,
        value: FileValue<'a>,
        words: &[(&str, T)],
    ) -> Result<T, FileError> {
        let list: Vec<String> = words
            .iter()
            .map(|(word, _)| format!("\"{word}\""))
            .collect();
        let text = text(self.source, value, &list.join(" or "))?;
        let found = words.iter().find(|(word, _)| *word == text.text);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let problem = Problem::unexpected(format!("\"{}\"", text.text), list.join(" or "));
            self.source.error(text.place(0), problem)
        })
    }

    /// Refuses a name that no table has room for.
    pub(super) fn check_length(&self, name: &str, at: usize) -> Result<(), FileError> {
        const MOST: usize = 255;
        let count = name.chars().count();
        if count <= MOST {
            return Ok(());
        }
        let found = format!("a name of {count} characters");
        let problem = Problem::unexpected(found, format!("at most {MOST}"));
        Err(self.source.error(at, problem))
    }

    /// Names are words that expressions can use.
    pub(super) fn check_name(&self, name: &str, at: usize) -> Result<(), FileError> {
        self.check_length(name, at)?;
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if KEYWORDS.contains(&name) {
            return Err(self.source.error(at, Problem::Taken(name.to_owned())));
        }
        if starts_well && is_word {
            return Ok(());
        }
        let expected = "a name of letters, digits and `_` that begins with a letter";
        Err(self
            .source
            .error(at, Problem::unexpected(format!("`{name}`"), expected)))
    }
}
