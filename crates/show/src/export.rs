//! A table for programs: the same cells as comma-separated values (RFC 4180) and as Parquet. Both
//! are made of one list of texts, so that nothing but the types can differ between them.

#[cfg(feature = "parquet")]
mod parquet;

use std::io::{self, Write};

use model::MachineSpec;

/// What the cells of a column hold. An empty cell of any kind but text is one without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// A text in UTF-8.
    Text,
    /// A whole number from 0 to 2^64 - 1.
    Whole,
    /// A whole number of 64 bits that can be negative.
    Signed,
    /// A binary number of 64 bits.
    Real,
    /// `true` or `false`.
    Truth,
}

/// The columns of a machine.
pub const MACHINE: [(&str, ColumnKind); 7] = [
    ("machine_cpus", ColumnKind::Whole),
    ("machine_smt", ColumnKind::Whole),
    ("machine_llc", ColumnKind::Whole),
    ("machine_node", ColumnKind::Whole),
    ("machine_hz", ColumnKind::Whole),
    ("machine_kernel", ColumnKind::Text),
    ("machine_profile", ColumnKind::Text),
];

/// Its cells in the columns of [`MACHINE`].
#[must_use]
pub fn machine_cells(machine: &MachineSpec) -> [String; MACHINE.len()] {
    [
        machine.cpus.to_string(),
        machine.smt.to_string(),
        machine.llc.to_string(),
        machine.node.to_string(),
        machine.hz.to_string(),
        machine.kernel.name().to_owned(),
        machine.profile.name().to_owned(),
    ]
}

/// The forms of an exported table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Comma-separated values.
    Csv,
    /// One group of rows, compressed with Snappy; columns have the types of their kinds.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Form {
    /// Whether people can read it.
    #[must_use]
    pub const fn is_text(self) -> bool {
        match self {
            Self::Csv => true,
            #[cfg(feature = "parquet")]
            Self::Parquet => false,
        }
    }
}

/// A table that is written when it is whole.
#[derive(Clone, Debug, Default)]
pub struct ExportTable {
    columns: Vec<(&'static str, ColumnKind)>,
    rows: Vec<Vec<String>>,
}

impl ExportTable {
    /// A table with these columns and no rows.
    pub fn new(columns: impl IntoIterator<Item = (&'static str, ColumnKind)>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Names and kinds of the columns.
    #[must_use]
    pub fn columns(&self) -> &[(&'static str, ColumnKind)] {
        &self.columns
    }

    /// The rows: each cell as CSV has it, but not quoted.
    #[must_use]
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Adds a row: each cell as CSV has it, but not quoted.
    ///
    /// # Panics
    /// If the row has not one cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "one cell for each column");
        self.rows.push(cells);
    }

    /// Writes the table.
    ///
    /// # Errors
    /// When `to` does not take it.
    ///
    /// # Panics
    /// If a cell does not hold what its column is said to hold, and Parquet is asked for.
    pub fn write(&self, form: Form, to: &mut dyn Write) -> io::Result<()> {
        match form {
            Form::Csv => self.csv(to),
            #[cfg(feature = "parquet")]
            Form::Parquet => parquet::write(self, to),
        }
    }

    fn csv(&self, to: &mut dyn Write) -> io::Result<()> {
        let names: Vec<String> = self.columns.iter().map(|(name, _)| cell(name)).collect();
        writeln!(to, "{}", names.join(","))?;
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
            writeln!(to, "{}", cells.join(","))?;
        }
        Ok(())
    }
}

/// A cell of CSV, as every table of runslice has it.
///
/// It is in quotes when it holds a character that would end it; some spreadsheets split at a
/// semicolon or a tab, too, and others at what they take for the end of a line. A text that a
/// spreadsheet would take for a formula gets an apostrophe before it, and quotes: names of tasks,
/// files and policies come from anywhere, and a formula runs commands or sends cells away (OWASP,
/// "CSV injection"). Numbers stay numbers, negative ones too.
#[must_use]
pub fn cell(text: &str) -> String {
    if is_formula(text) {
        format!("\"'{}\"", text.replace('"', "\"\""))
    } else if text.contains(ends_cell) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Whether a character may end a cell.
fn ends_cell(char: char) -> bool {
    matches!(char, ',' | ';' | '"' | '\u{2028}' | '\u{2029}') || char.is_control()
}

/// Whether a spreadsheet may compute it: the first character that is no blank decides, in its wide
/// form too; a tab or a line break is left out before one looks for it.
fn is_formula(text: &str) -> bool {
    let begins = |char| "=+-@\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(char);
    // Marks without a width are no blanks to Rust, and may be to others.
    let is_unseen = |char: char| {
        char.is_whitespace()
            || char.is_control()
            || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
    };
    let seen = text.trim_start_matches(is_unseen);
    text.starts_with(['\t', '\r', '\n'])
        || seen.starts_with(begins) && text.len() > 1 && text.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_a_comma_or_a_quote_is_quoted() {
        assert_eq!(cell("mlfq:nq=3"), "mlfq:nq=3");
        assert_eq!(cell("mlfq:nq=3,boost=1"), "\"mlfq:nq=3,boost=1\"");
        assert_eq!(cell("a \"b\""), "\"a \"\"b\"\"\"");
        for text in [
            ";=1",
            "a;=1",
            "a\t=1",
            "a\u{2028}=1",
            "a\u{b}=1",
            "a\u{85}=1",
        ] {
            assert_eq!(cell(text), format!("\"{text}\""));
        }
    }

    #[test]
    fn a_name_that_a_spreadsheet_would_compute_is_a_text_and_a_number_a_number() {
        for (name, want) in [
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("+1+1", "\"'+1+1\""),
            ("-2+3", "\"'-2+3\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            (" =1", "\"' =1\""),
            ("  ;", "\"  ;\""),
            ("\u{a0}\u{3000}=1", "\"'\u{a0}\u{3000}=1\""),
            ("\u{b}\u{c}-1+1", "\"'\u{b}\u{c}-1+1\""),
            ("\u{feff}=1", "\"'\u{feff}=1\""),
            ("\u{200b}@x", "\"'\u{200b}@x\""),
            ("\t=1", "\"'\t=1\""),
            ("\r=1", "\"'\r=1\""),
            ("\u{ff1d}1", "\"'\u{ff1d}1\""),
        ] {
            assert_eq!(cell(name), want, "{name:?}");
        }
        for plain in [
            "-12",
            "-0.5",
            "+3",
            "-1e-9",
            "-",
            "a=b",
            "x-1",
            "",
            "12",
            "kworker/0:1",
        ] {
            assert_eq!(cell(plain), plain);
        }
    }

    #[test]
    fn every_table_escapes_its_names() {
        let mut table =
            ExportTable::new([("name", ColumnKind::Text), ("change", ColumnKind::Real)]);
        table.row(["=1+1".to_owned(), "-3.5".to_owned()]);
        let mut text = Vec::new();
        table.write(Form::Csv, &mut text).unwrap();
        assert_eq!(text, b"name,change\n\"'=1+1\",-3.5\n");
    }
}
