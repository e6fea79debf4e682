//! A table for programs: the same cells as comma-separated values (RFC 4180) and as Parquet. Both
//! are made of one list of texts, so that nothing but the types can differ between them.

#[cfg(feature = "parquet")]
mod parquet;

use std::io::{self, Write};

use model::MachineSpec;

/// What the cells of a column hold. An empty cell of any kind but text is one without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
pub const MACHINE: [(&str, Kind); 7] = [
    ("machine_cpus", Kind::Whole),
    ("machine_smt", Kind::Whole),
    ("machine_llc", Kind::Whole),
    ("machine_node", Kind::Whole),
    ("machine_hz", Kind::Whole),
    ("machine_kernel", Kind::Text),
    ("machine_profile", Kind::Text),
];

/// Its cells in the columns of [`MACHINE`].
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
    columns: Vec<(&'static str, Kind)>,
    rows: Vec<Vec<String>>,
}

impl ExportTable {
    /// A table with these columns and no rows.
    pub fn new(columns: impl IntoIterator<Item = (&'static str, Kind)>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Names and kinds of the columns.
    #[must_use]
    pub fn columns(&self) -> &[(&'static str, Kind)] {
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
        let names: Vec<String> = self.columns.iter().map(|(name, _)| quoted(name)).collect();
        writeln!(to, "{}", names.join(","))?;
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| quoted(cell)).collect();
            writeln!(to, "{}", cells.join(","))?;
        }
        Ok(())
    }
}

/// The cell, in quotes when it holds a character that would end it.
pub fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_a_comma_or_a_quote_is_quoted() {
        assert_eq!(quoted("mlfq:nq=3"), "mlfq:nq=3");
        assert_eq!(quoted("mlfq:nq=3,boost=1"), "\"mlfq:nq=3,boost=1\"");
        assert_eq!(quoted("a \"b\""), "\"a \"\"b\"\"\"");
    }
}
