//! Lines and columns of files that are read.

use anyhow::anyhow;

/// A text file, for messages about places in it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// How messages call it.
    pub name: &'a str,
    /// What it says.
    pub text: &'a str,
}

impl Source<'_> {
    /// `file:line:column` of a byte, counted from one.
    pub fn place(&self, at: usize) -> String {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let before = String::from_utf8_lossy(before);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("{}:{line}:{column}", self.name)
    }

    /// What is wrong with a value, after its place.
    pub fn wrong<T>(
        &self,
        value: &toml::Spanned<T>,
        what: impl std::fmt::Display,
    ) -> anyhow::Error {
        anyhow!("{}: {what}", self.place(value.span().start))
    }

    /// Reads TOML.
    ///
    /// # Errors
    /// What is wrong, after its place.
    pub fn toml<T: serde::de::DeserializeOwned>(&self) -> anyhow::Result<T> {
        toml::from_str(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            anyhow!("{}: {}", self.place(at), error.message().trim_end())
        })
    }
}
