//! JSON as rt-app's library reads it: with comments, and keys in the order of the file.

use model::file::Source;
use model::file::{FileError, Problem};

/// Brackets in brackets end here.
const DEPTH_MAX: usize = 100;

/// A value, and the byte at which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Json {
    pub at: usize,
    pub value: Value,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    /// Names in the order of the file. Two may be equal, as rt-app's workgen allows, and a name
    /// without a value has null.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a whole file.
    pub fn parse(source: &Source) -> Result<Self, FileError> {
        let mut reader = JsonReader { source, at: 0 };
        let value = reader.value(0)?;
        reader.skip()?;
        match reader.peek() {
            None => Ok(value),
            Some(_) => reader.fail("the end of the file"),
        }
    }

    /// How messages call it.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(value) => value.to_string(),
            Value::Text(text) => format!("\"{text}\""),
            Value::List(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        }
    }

    /// The last member called `name`.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Value::Object(members) = &self.value else {
            return None;
        };
        let found = members.iter().rev().find(|(own, _)| own == name);
        found.map(|(_, value)| value)
    }
}

struct JsonReader<'a> {
    source: &'a Source<'a>,
    at: usize,
}

impl JsonReader<'_> {
    fn rest(&self) -> &str {
        &self.source.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn fail<T>(&self, expected: &str) -> Result<T, FileError> {
        let found = match self.peek() {
            Some(character) => format!("`{}`", character.escape_default()),
            None => "the end".to_owned(),
        };
        Err(self
            .source
            .error(self.at, Problem::unexpected(found, expected)))
    }

    /// Passes over space and comments.
    fn skip(&mut self) -> Result<(), FileError> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            let rest = self.rest();
            if let Some(comment) = rest.strip_prefix("/*") {
                let Some(length) = comment.find("*/") else {
                    return self.fail("a comment that ends with `*/`");
                };
                self.at += length + 4;
            } else if rest.starts_with("//") || rest.starts_with('#') {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                return Ok(());
            }
        }
    }

    fn accept(&mut self, word: &str) -> bool {
        let is = self.rest().starts_with(word);
        self.at += if is { word.len() } else { 0 };
        is
    }

    fn value(&mut self, depth: usize) -> Result<Json, FileError> {
        self.skip()?;
        let at = self.at;
        if depth == DEPTH_MAX {
            return Err(self.source.error(at, Problem::TooDeep(DEPTH_MAX)));
        }
        let value = match self.peek() {
            Some('{') => self.object(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Value::Text(self.text()?),
            Some('-' | '0'..='9') => self.number()?,
            _ if self.accept("true") => Value::Bool(true),
            _ if self.accept("false") => Value::Bool(false),
            _ if self.accept("null") => Value::Null,
            _ => return self.fail("a value"),
        };
        Ok(Json { at, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, FileError> {
        self.at += 1;
        let mut members: Vec<(String, Json)> = Vec::new();
        loop {
            self.skip()?;
            if self.accept("}") {
                return Ok(Value::Object(members));
            }
            if self.peek() != Some('"') {
                return self.fail("a name in quotes, or `}`");
            }
            let name = self.text()?;
            self.skip()?;
            let value = match self.peek() {
                // workgen lets an event stand without a value.
                Some(',' | '}') => Json {
                    at: self.at,
                    value: Value::Null,
                },
                _ if self.accept(":") => self.value(depth + 1)?,
                _ => return self.fail("`:`"),
            };
            members.push((name, value));
            self.comma('}')?;
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, FileError> {
        self.at += 1;
        let mut values = Vec::new();
        loop {
            self.skip()?;
            if self.accept("]") {
                return Ok(Value::List(values));
            }
            values.push(self.value(depth + 1)?);
            self.comma(']')?;
        }
    }

    /// A comma, which may be missing before the end.
    fn comma(&mut self, end: char) -> Result<(), FileError> {
        self.skip()?;
        if self.accept(",") || self.peek() == Some(end) {
            return Ok(());
        }
        self.fail(&format!("`,` or `{end}`"))
    }

    fn text(&mut self) -> Result<String, FileError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(character) = self.peek().filter(|&character| character != '\n') else {
                return self.fail("`\"`");
            };
            self.at += character.len_utf8();
            match character {
                '"' => return Ok(text),
                '\\' => text.push(self.escape()?),
                _ => text.push(character),
            }
        }
    }

    fn escape(&mut self) -> Result<char, FileError> {
        let Some(character) = self.peek() else {
            return self.fail("an escaped character");
        };
        self.at += character.len_utf8();
        Ok(match character {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let digits = self.rest().get(..4);
                let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let Some(found) = code.and_then(char::from_u32) else {
                    return self.fail("four hexadecimal digits");
                };
                self.at += 4;
                found
            }
            other => other,
        })
    }

    fn number(&mut self) -> Result<Value, FileError> {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        match rest[..length].parse() {
            Ok(number) => {
                self.at += length;
                Ok(Value::Number(number))
            }
            Err(_) => self.fail("a number"),
        }
    }
}
