//! Plain text tables: columns padded to their widest cell, numbers to the right, prose wrapped.

use std::fmt;

/// Columns of a terminal that prose is wrapped to.
const WIDTH: usize = 100;
/// The least that is left for prose, however wide the other columns are.
const PROSE: usize = 30;

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cells {
    /// Pushed to the left.
    Names,
    /// Pushed to the right.
    Numbers,
    /// The last column: wrapped so that the line is not too long.
    Prose,
}

/// A column: its heading, and a second heading above that neighbours may share.
#[derive(Clone, Debug)]
struct Column {
    above: &'static str,
    title: &'static str,
    cells: Cells,
}

/// A table that prints itself. Between two columns stand two spaces; no line ends in spaces.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a column of names.
    pub fn names(self, title: &'static str) -> Self {
        self.column("", title, Cells::Names)
    }

    /// Adds the last column: text that is wrapped.
    pub fn prose(self, title: &'static str) -> Self {
        self.column("", title, Cells::Prose)
    }

    /// Adds a column of numbers.
    pub fn numbers(self, title: &'static str) -> Self {
        self.column("", title, Cells::Numbers)
    }

    /// Adds a column of numbers whose heading stands below `above`, which its neighbours may share.
    pub fn numbers_of(self, above: &'static str, title: &'static str) -> Self {
        self.column(above, title, Cells::Numbers)
    }

    fn column(mut self, above: &'static str, title: &'static str, cells: Cells) -> Self {
        self.columns.push(Column {
            above,
            title,
            cells,
        });
        self
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the row has not one cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "one cell for each column");
        self.rows.push(cells);
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|c| c.title.len()).collect();
        for row in &self.rows {
            for ((width, cell), column) in widths.iter_mut().zip(row).zip(&self.columns) {
                if column.cells != Cells::Prose {
                    *width = (*width).max(cell.chars().count());
                }
            }
        }
        self.make_room_above(&mut widths);
        widths
    }

    /// Widens the last column below each shared heading until the heading fits.
    fn make_room_above(&self, widths: &mut [usize]) {
        for span in self.spans() {
            let have: usize = widths[span.clone()].iter().sum::<usize>() + 2 * (span.len() - 1);
            let need = self.columns[span.start].above.len();
            widths[span.start] += need.saturating_sub(have);
        }
    }

    /// Runs of neighbours below one heading.
    fn spans(&self) -> Vec<std::ops::Range<usize>> {
        let mut spans: Vec<std::ops::Range<usize>> = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            match spans.last_mut() {
                Some(last) if self.columns[last.start].above == column.above => last.end = at + 1,
                _ => spans.push(at..at + 1),
            }
        }
        spans
    }

    fn write_above(&self, f: &mut fmt::Formatter<'_>, widths: &[usize]) -> fmt::Result {
        if self.columns.iter().all(|column| column.above.is_empty()) {
            return Ok(());
        }
        let mut line = String::new();
        for span in self.spans() {
            let width: usize = widths[span.clone()].iter().sum::<usize>() + 2 * (span.len() - 1);
            let above = self.columns[span.start].above;
            line += &format!("{above:>width$}  ");
        }
        writeln!(f, "{}", line.trim_end())
    }

    fn write_row<'a>(
        &self,
        f: &mut fmt::Formatter<'_>,
        widths: &[usize],
        cells: impl Iterator<Item = &'a str>,
    ) -> fmt::Result {
        let mut line = String::new();
        for ((cell, width), column) in cells.zip(widths).zip(&self.columns) {
            match column.cells {
                Cells::Names | Cells::Prose => line += &format!("{cell:<width$}  "),
                Cells::Numbers => line += &format!("{cell:>width$}  "),
            }
        }
        writeln!(f, "{}", line.trim_end())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        self.write_above(f, &widths)?;
        self.write_row(f, &widths, self.columns.iter().map(|column| column.title))?;
        let before: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum();
        let room = WIDTH.saturating_sub(before).max(PROSE);
        for row in &self.rows {
            let Some((last, first)) = row.split_last() else {
                continue;
            };
            let is_prose = self
                .columns
                .last()
                .is_some_and(|it| it.cells == Cells::Prose);
            let lines = if is_prose {
                wrapped(last, room)
            } else {
                vec![last.clone()]
            };
            for (at, line) in lines.iter().enumerate() {
                let first = first
                    .iter()
                    .map(|cell| if at == 0 { cell.as_str() } else { "" });
                self.write_row(f, &widths, first.chain([line.as_str()]))?;
            }
        }
        Ok(())
    }
}

/// The words of `text` in lines of at most `room` characters; a longer word has its own line.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_no_line_ends_in_spaces() {
        let mut table = Table::default().names("task").numbers("runs").names("note");
        table.row(["pointer".to_owned(), "7".to_owned(), String::new()]);
        table.row(["cc".to_owned(), "12345".to_owned(), "late".to_owned()]);
        let want = "task      runs  note\npointer      7\ncc       12345  late\n";
        assert_eq!(table.to_string(), want);
    }

    #[test]
    fn a_shared_heading_ends_where_its_last_column_ends() {
        let mut table = Table::default()
            .names("task")
            .numbers_of("wait", "p50")
            .numbers_of("wait", "p99");
        table.row(["a".to_owned(), "1 ms".to_owned(), "22 ms".to_owned()]);
        let want = "             wait\ntask   p50    p99\na     1 ms  22 ms\n";
        assert_eq!(table.to_string(), want);
    }

    #[test]
    fn a_long_heading_makes_its_columns_wider() {
        let mut table = Table::default()
            .names("t")
            .numbers_of("preemption wait", "max");
        table.row(["a".to_owned(), "1".to_owned()]);
        assert_eq!(
            table.to_string(),
            "   preemption wait\nt              max\na                1\n"
        );
    }

    #[test]
    fn prose_is_wrapped_below_itself() {
        let mut table = Table::default().names("name").prose("what it is");
        let words = ["word"; 30].join(" ");
        table.row(["a".to_owned(), words]);
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert!(lines[2].starts_with("      word"), "{text}");
    }
}
