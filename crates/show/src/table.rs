//! Plain text tables: columns padded to their widest cell, numbers to the right, prose wrapped. A
//! table that is too wide for a terminal leaves out the columns that matter least.

use std::fmt;
use std::io::{self, Write};

use crate::Tone;

/// Columns of a terminal that prose is wrapped to.
const WIDTH: usize = 100;
/// The least that is left for prose, however wide the other columns are.
const PROSE: usize = 30;

/// Most characters of a name in a table. Names come from files of anybody; behind a longer one no
/// reader would find the next column.
const NAME: usize = 300;

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
    above: String,
    title: String,
    cells: Cells,
    /// Columns with the greatest rank are left out first; those of rank 0 never.
    rank: u8,
}

/// A cell, and how it is shown.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            tone: Tone::Plain,
        }
    }
}

impl Cell {
    /// The same in another tone.
    #[must_use]
    pub const fn toned(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

/// A table that prints itself. Between two columns stand two spaces; no line ends in spaces.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Adds a column of names.
    pub fn names(self, title: impl Into<String>) -> Self {
        self.column("", title, Cells::Names)
    }

    /// Adds the last column: text that is wrapped.
    #[must_use]
    pub fn prose(self, title: &'static str) -> Self {
        self.column("", title, Cells::Prose)
    }

    /// Adds a column of numbers.
    pub fn numbers(self, title: impl Into<String>) -> Self {
        self.column("", title, Cells::Numbers)
    }

    /// Adds a column of numbers whose heading stands below `above`, which its neighbours may share.
    pub fn numbers_of(self, above: impl Into<String>, title: impl Into<String>) -> Self {
        self.column(above, title, Cells::Numbers)
    }

    fn column(mut self, above: impl Into<String>, title: impl Into<String>, cells: Cells) -> Self {
        self.columns.push(Column {
            above: shortened(above.into()),
            title: shortened(title.into()),
            cells,
            rank: 0,
        });
        self
    }

    /// The column added last is left out where there is no room for it, and before those of a
    /// smaller rank.
    #[must_use]
    pub fn rank(mut self, rank: u8) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.rank = rank;
        }
        self
    }

    /// The table with as many columns as `width` has room for, or all, and how many it lost.
    #[must_use]
    pub fn fit(mut self, width: Option<usize>) -> (Self, usize) {
        let Some(width) = width else {
            return (self, 0);
        };
        let all = self.columns.len();
        while self.widths().iter().map(|width| width + 2).sum::<usize>() > width + 2 {
            let ranked = self.columns.iter().enumerate();
            let Some((at, column)) = ranked.max_by_key(|(_, column)| column.rank) else {
                break;
            };
            if column.rank == 0 {
                break;
            }
            self.columns.remove(at);
            for row in &mut self.rows {
                row.remove(at);
            }
        }
        let lost = all - self.columns.len();
        (self, lost)
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the row has not one cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        let mut cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.columns.len(), "one cell for each column");
        for (cell, column) in cells.iter_mut().zip(&self.columns) {
            if column.cells != Cells::Prose {
                cell.text = shortened(std::mem::take(&mut cell.text));
            }
        }
        self.rows.push(cells);
    }

    /// The titles of all columns, each with the heading that it may share with its neighbours, and
    /// whether its cells are pushed to the left.
    pub fn heads(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        let head = |it: &'_ Column| it.cells != Cells::Numbers;
        self.columns
            .iter()
            .map(move |it| (it.above.as_str(), it.title.as_str(), head(it)))
    }

    /// The text and the tone of each cell, row by row.
    pub fn cells(&self) -> impl Iterator<Item = impl Iterator<Item = (&str, Tone)>> {
        let rows = self.rows.iter();
        rows.map(|row| row.iter().map(|cell| (cell.text.as_str(), cell.tone)))
    }

    /// Whether the table has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn widths(&self) -> Vec<usize> {
        let titles = self.columns.iter().map(|c| c.title.chars().count());
        let mut widths: Vec<usize> = titles.collect();
        for row in &self.rows {
            for ((width, cell), column) in widths.iter_mut().zip(row).zip(&self.columns) {
                if column.cells != Cells::Prose {
                    *width = (*width).max(cell.text.chars().count());
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
            let need = self.columns[span.start].above.chars().count();
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

    /// The line of shared headings, if there are any.
    fn above(&self, widths: &[usize]) -> Option<String> {
        if self.columns.iter().all(|column| column.above.is_empty()) {
            return None;
        }
        let mut line = String::new();
        for span in self.spans() {
            let width: usize = widths[span.clone()].iter().sum::<usize>() + 2 * (span.len() - 1);
            line += &to_the_right(&self.columns[span.start].above, width);
            line += "  ";
        }
        Some(line.trim_end().to_owned())
    }

    /// The cells of a line, padded, the last without what would be at the line's end.
    fn padded<'a>(
        &self,
        widths: &[usize],
        cells: impl Iterator<Item = (&'a str, Tone)>,
    ) -> Vec<(String, Tone)> {
        let mut line = Vec::new();
        for (((cell, tone), width), column) in cells.zip(widths).zip(&self.columns) {
            let padded = match column.cells {
                Cells::Names | Cells::Prose => to_the_left(cell, *width),
                Cells::Numbers => to_the_right(cell, *width),
            };
            line.push((padded + "  ", tone));
        }
        while let Some((last, _)) = line.last_mut() {
            last.truncate(last.trim_end().len());
            if !last.is_empty() {
                break;
            }
            line.pop();
        }
        line
    }

    /// All lines but the shared headings.
    fn lines(&self, widths: &[usize]) -> Vec<Vec<(String, Tone)>> {
        let titles = self
            .columns
            .iter()
            .map(|it| (it.title.as_str(), Tone::Plain));
        let mut all = vec![self.padded(widths, titles)];
        let before: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum();
        let room = WIDTH.saturating_sub(before).max(PROSE);
        let is_prose = (self.columns.last()).is_some_and(|it| it.cells == Cells::Prose);
        for row in &self.rows {
            let Some((last, first)) = row.split_last() else {
                continue;
            };
            let lines = if is_prose {
                wrapped(&last.text, room)
            } else {
                vec![last.text.clone()]
            };
            for (at, line) in lines.iter().enumerate() {
                let shown = |cell: &'_ Cell| match at {
                    0 => (cell.text.clone(), cell.tone),
                    _ => (String::new(), Tone::Plain),
                };
                let cells: Vec<_> = first.iter().map(shown).collect();
                let cells = cells.iter().map(|(text, tone)| (text.as_str(), *tone));
                all.push(self.padded(widths, cells.chain([(line.as_str(), last.tone)])));
            }
        }
        all
    }

    /// Writes it with its tones, see [`Tone::paint`].
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let widths = self.widths();
        if let Some(above) = self.above(&widths) {
            writeln!(to, "{above}")?;
        }
        for line in self.lines(&widths) {
            for (cell, tone) in line {
                tone.paint(&cell, to)?;
            }
            writeln!(to)?;
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        if let Some(above) = self.above(&widths) {
            writeln!(f, "{above}")?;
        }
        for line in self.lines(&widths) {
            let line: String = line.into_iter().map(|(cell, _)| cell).collect();
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

/// `text` with the blanks behind it that make it `width` characters wide. The width of a format
/// would panic above 65,535.
#[must_use]
pub fn to_the_left(text: &str, width: usize) -> String {
    format!("{text}{}", blanks(text, width))
}

fn to_the_right(text: &str, width: usize) -> String {
    format!("{}{text}", blanks(text, width))
}

fn blanks(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text.chars().count()))
}

/// A name of at most [`NAME`] characters: of a longer one the begin and the end, which tell it from
/// others. It begins no row of its own, and commands no terminal.
fn shortened(name: String) -> String {
    let is_plain = !name.contains(model::plain::is_obeyed);
    let name = if is_plain {
        name
    } else {
        model::plain::shown(name)
    };
    let count = name.chars().count();
    if count <= NAME {
        return name;
    }
    let begin: String = name.chars().take(NAME / 2).collect();
    let end: String = name.chars().skip(count - NAME / 2 + 5).collect();
    format!("{begin} ... {end}")
}

/// Writes `text` as a paragraph of lines of at most `room` characters.
///
/// # Errors
/// When `to` does not take it.
pub fn write_paragraph(text: &str, room: usize, to: &mut dyn Write) -> io::Result<()> {
    let mut lines = wrapped(text, room).into_iter();
    lines.try_for_each(|line| writeln!(to, "{line}"))
}

/// The words of `text` in lines of at most `room` characters; a longer word has its own line.
#[must_use]
pub fn wrapped(text: &str, room: usize) -> Vec<String> {
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
    fn a_name_of_a_hundred_thousand_characters_is_shown_in_part() {
        let long = format!("a{}z", "x".repeat(100_000));
        let mut table = Table::default()
            .names(long.clone())
            .numbers_of(long.clone(), "n");
        table.row([long, "7".to_owned()]);
        let text = table.to_string();
        assert!(
            text.lines()
                .all(|line| line.chars().count() <= 2 * NAME + 2),
            "{text}"
        );
        let part = |begin: char, end: char| {
            let x = "x".repeat(NAME / 2 - 6);
            format!("{begin}xxxxx{x} ... {x}{end}")
        };
        assert!(text.contains(&part('a', 'z')), "{text}");
        assert_eq!(to_the_left("a", 70_000).len(), 70_000);
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

    #[test]
    fn a_table_that_is_too_wide_loses_the_columns_that_matter_least() {
        let table = || {
            let mut table = Table::default()
                .names("task")
                .numbers_of("wait", "p50")
                .numbers_of("wait", "max")
                .rank(2)
                .numbers("runs")
                .rank(1);
            table.row(["a", "1 ms", "22 ms", "333"].map(str::to_owned));
            table
        };
        let (whole, lost) = table().fit(Some(23));
        assert_eq!((whole.columns.len(), lost), (4, 0));
        assert_eq!(table().fit(None).0.to_string(), whole.to_string());
        let (less, lost) = table().fit(Some(22));
        let want = "      wait\ntask   p50  runs\na     1 ms   333\n";
        assert_eq!((less.to_string().as_str(), lost), (want, 1));
        let (least, lost) = table().fit(Some(1));
        assert_eq!(least.to_string(), "      wait\ntask   p50\na     1 ms\n");
        assert_eq!(lost, 2);
    }

    #[test]
    fn tones_are_written_around_the_text_and_nowhere_else() {
        let mut table = Table::default().names("policy").numbers("late");
        table.row([
            Cell::from("o1".to_owned()),
            Cell::from("3".to_owned()).toned(Tone::Bad),
        ]);
        let mut bytes = Vec::new();
        table.write(&mut bytes).unwrap();
        let plain: Vec<u8> = bytes.iter().copied().filter(|byte| *byte < 0x80).collect();
        assert_eq!(String::from_utf8(plain).unwrap(), table.to_string());
        assert_eq!(bytes.iter().filter(|byte| **byte >= 0x80).count(), 2);
    }
}
