//! As what an answer is written, and which formats each kind of answer has.

use std::fmt;

use crate::export::Form;

/// As what an answer is written. A name of it is read by [`Format::of`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Human,
    /// A page with pictures.
    Html,
    /// One JSON document.
    Json,
    /// One table of comma-separated values.
    Csv,
    /// The same table as a Parquet file.
    #[cfg(feature = "parquet")]
    Parquet,
    /// The XML of `JUnit`.
    Junit,
    /// Markdown.
    Markdown,
}

/// The formats that a kind of answer has, each with what it holds there.
pub type OfferedFormats = &'static [(Format, &'static str)];

const TEXT: (Format, &str) = (Format::Human, "Tables to read");
const PAGE: (Format, &str) = (Format::Html, "A page with pictures, for --output");
const DOCUMENT: (Format, &str) = (Format::Json, "One JSON document with all results");
const TABLE: (Format, &str) = (
    Format::Csv,
    "One table. `runslice list --columns` describes its columns",
);
#[cfg(feature = "parquet")]
const PARQUET: (Format, &str) = (Format::Parquet, "The same table as a Parquet file");

/// Those of what a command on the real machine came to.
pub const MEASURED: OfferedFormats = &[TEXT, DOCUMENT];

/// Those of results that have tables.
pub const TABLES: OfferedFormats = &[
    TEXT,
    DOCUMENT,
    TABLE,
    #[cfg(feature = "parquet")]
    PARQUET,
];

/// Those of simulated runs.
pub const RUNS: OfferedFormats = &[
    TEXT,
    PAGE,
    DOCUMENT,
    TABLE,
    #[cfg(feature = "parquet")]
    PARQUET,
    (
        Format::Junit,
        "The XML of JUnit: a test for each policy that it keeps to the rules and starves no task",
    ),
    (
        Format::Markdown,
        "The answer in Markdown, for the summary of a pull request",
    ),
];

/// Those of comparisons.
pub const COMPARISONS: OfferedFormats = &[
    TEXT,
    PAGE,
    DOCUMENT,
    (Format::Csv, "One row for each comparison"),
    #[cfg(feature = "parquet")]
    (Format::Parquet, "The same rows as a Parquet file"),
];

/// Those of how far simulated machine and kernel are apart.
pub const FIDELITY: OfferedFormats =
    &[TEXT, DOCUMENT, (Format::Markdown, "The tables in Markdown")];

/// Those of cases.
pub const CASES: OfferedFormats = &[TEXT, DOCUMENT, (Format::Markdown, "One table in Markdown")];

/// Those of experiments.
pub const EXPERIMENTS: OfferedFormats = &[
    (Format::Human, "Tables and verdicts as text"),
    (Format::Html, "One page with figures"),
    DOCUMENT,
];

impl Format {
    /// Each with its name.
    const NAMES: &[(Self, &str)] = &[
        (Self::Human, "human"),
        (Self::Html, "html"),
        (Self::Json, "json"),
        (Self::Csv, "csv"),
        #[cfg(feature = "parquet")]
        (Self::Parquet, "parquet"),
        (Self::Junit, "junit"),
        (Self::Markdown, "markdown"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(format, _)| *format == self);
        found.map_or("", |(_, name)| name)
    }

    /// The format of this name, of those that an answer has.
    #[must_use]
    pub fn of(name: &str, offered: OfferedFormats) -> Option<Self> {
        let found = offered.iter().find(|(format, _)| format.name() == name);
        found.map(|(format, _)| *format)
    }

    /// The form of an exported table; `None` for formats that are no table.
    #[must_use]
    pub const fn export(self) -> Option<Form> {
        match self {
            Self::Csv => Some(Form::Csv),
            #[cfg(feature = "parquet")]
            Self::Parquet => Some(Form::Parquet),
            Self::Human | Self::Html | Self::Json | Self::Junit | Self::Markdown => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_text_and_a_document_and_each_name_is_read_as_what_it_names() {
        for offered in [MEASURED, TABLES, RUNS, COMPARISONS, FIDELITY, EXPERIMENTS] {
            for format in ["human", "json"] {
                assert!(Format::of(format, offered).is_some(), "{offered:?}");
            }
            for (format, _) in offered {
                assert!(!format.name().is_empty());
                assert_eq!(Format::of(format.name(), offered), Some(*format));
            }
        }
        assert_eq!(Format::of("html", TABLES), None);
        assert_eq!(Format::of("", RUNS), None);
    }
}
