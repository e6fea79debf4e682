//! The tables of a document as it prints them: its columns and rows, with what was published and
//! what is measured here below each other.

use crate::experiments::cells::{CellId, ExperimentResults};
use crate::experiments::claim::{Rules, interval};
use crate::experiments::expected::Expected;
use crate::experiments::experiment::{Arm, Experiment, Metric};
use show::table::Table;

use super::human::as_published;
use super::words::number;

/// Columns that a table keeps however narrow the terminal is.
const COLUMNS_MIN: usize = 1;

/// A table, or that part of one that has one metric.
#[derive(Debug)]
pub struct DocumentTable {
    /// Where the document has it: `Table VI`.
    pub place: String,
    /// What it tells, with the unit.
    pub title: String,
    /// Its columns, which the document has too.
    columns: Vec<String>,
    rows: Vec<TableRow>,
}

#[derive(Debug)]
struct TableRow {
    /// Whose row it is, and whether it is published, measured or an interval.
    head: [String; 2],
    cells: Vec<String>,
}

/// A cell of the document: the point of its runs, and the metric.
type Column<'a> = (usize, &'a Metric);

/// Everything that one table is made of.
struct Maker<'a> {
    experiment: &'a Experiment,
    results: &'a ExperimentResults,
    rules: &'a Rules,
    set: usize,
    columns: Vec<Column<'a>>,
}

/// The tables whose numbers an experiment is held against, in the order of expected.csv.
pub fn of(
    experiment: &Experiment,
    results: &ExperimentResults,
    rules: &Rules,
) -> Vec<DocumentTable> {
    let mut places: Vec<(&str, &str)> = Vec::new();
    for row in experiment.expected.iter().filter(|row| is_shown(row)) {
        let place = (row.place.as_str(), row.runs.as_str());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let mut tables = Vec::new();
    for (place, runs) in places {
        let Some(set) = experiment.set(runs) else {
            continue;
        };
        for columns in blocks(experiment, set, place) {
            let maker = Maker {
                experiment,
                results,
                rules,
                set,
                columns,
            };
            tables.push(maker.table(place));
        }
    }
    tables
}

fn is_shown(row: &Expected) -> bool {
    !row.runs.is_empty() && row.value.number().is_some()
}

/// The columns of a place: a block for each metric where it has several points, else one of all
/// metrics.
fn blocks<'a>(experiment: &'a Experiment, set: usize, place: &str) -> Vec<Vec<Column<'a>>> {
    let name = &experiment.sets[set].name;
    let rows = experiment.expected.iter();
    let rows = rows.filter(|row| row.place == place && row.runs == *name && is_shown(row));
    let mut columns: Vec<Column<'a>> = Vec::new();
    for row in rows {
        let Some(metric) = experiment.metric(&row.metric) else {
            continue;
        };
        let points = &experiment.sets[set].points;
        for (at, point) in points.iter().enumerate() {
            let is_there = row
                .at
                .iter()
                .all(|(key, value)| point.get(key) == Some(*value));
            let known = columns
                .iter()
                .any(|(other, of)| *other == at && of.name == metric.name);
            if is_there && !known {
                columns.push((at, metric));
            }
        }
    }
    let several = columns.iter().any(|(at, _)| *at != columns[0].0);
    if !several {
        return if columns.is_empty() {
            Vec::new()
        } else {
            vec![columns]
        };
    }
    let mut blocks: Vec<Vec<Column<'a>>> = Vec::new();
    for column in columns {
        let same = |block: &&mut Vec<Column<'a>>| block[0].1.name == column.1.name;
        match blocks.iter_mut().find(same) {
            Some(block) => block.push(column),
            None => blocks.push(vec![column]),
        }
    }
    blocks
}

fn with_unit(metric: &Metric) -> String {
    if metric.unit.is_empty() {
        metric.label.clone()
    } else {
        format!("{} ({})", metric.label, metric.unit)
    }
}

impl Maker<'_> {
    fn table(&self, place: &str) -> DocumentTable {
        let first = self.columns[0].1;
        let is_one = self.columns.iter().all(|(_, it)| it.name == first.name);
        let points = &self.experiment.sets[self.set].points;
        let head = |(at, metric): &Column<'_>| match (is_one, points[*at].label.as_str()) {
            (true, "") => metric.label.clone(),
            (true, label) => label.to_owned(),
            (false, _) => with_unit(metric),
        };
        DocumentTable {
            place: place.to_owned(),
            title: if is_one {
                with_unit(first)
            } else {
                String::new()
            },
            columns: self.columns.iter().map(head).collect(),
            rows: self.rows(),
        }
    }

    fn rows(&self) -> Vec<TableRow> {
        let set = &self.experiment.sets[self.set];
        let base = self.experiment.baseline.as_ref();
        let base = base.and_then(|name| self.experiment.arm(name));
        let base = base.filter(|base| set.arms.contains(base) && self.is_published(*base));
        let mut rows = Vec::new();
        for &arm in set.arms.iter().filter(|arm| self.is_published(**arm)) {
            rows.extend(self.of_arm(arm, None));
        }
        let base = base.into_iter();
        for base in base {
            let others = set.arms.iter().filter(|arm| **arm != base);
            for &arm in others.filter(|arm| self.is_published(**arm)) {
                rows.extend(self.of_arm(arm, Some(base)));
            }
        }
        rows
    }

    fn published(&self, arm: usize, (point, metric): &Column<'_>) -> Option<&Expected> {
        (self.experiment).published(self.set, *point, arm, &metric.name)
    }

    fn is_published(&self, arm: usize) -> bool {
        self.columns
            .iter()
            .any(|column| self.published(arm, column).is_some())
    }

    /// What was published, what is here, and its interval: of an arm, or of its ratio to a base.
    fn of_arm(&self, arm: usize, base: Option<usize>) -> Vec<TableRow> {
        let label = |at: usize| self.experiment.arms[at].label.as_str();
        let name = base.map_or_else(
            || label(arm).to_owned(),
            |base| format!("{} / {}", label(arm), label(base)),
        );
        let mut kinds = [Vec::new(), Vec::new(), Vec::new()];
        for column in &self.columns {
            let number_of = |arm| self.published(arm, column)?.value.number();
            let published = match base {
                None => (self.published(arm, column)).map(|row| as_published(row.value, number)),
                Some(base) => (number_of(arm).zip(number_of(base)))
                    .filter(|(_, base)| *base != 0.0)
                    .map(|(arm, base)| number(arm / base)),
            };
            let [here, ends] = self.here(arm, base, column);
            kinds[0].push(published.unwrap_or_default());
            kinds[1].push(here);
            kinds[2].push(ends);
        }
        let words = ["published", "here", "95 % from"];
        let rows = kinds.into_iter().zip(words).enumerate();
        rows.filter(|(_, (cells, _))| cells.iter().any(|it| !it.is_empty()))
            .map(|(at, (cells, word))| TableRow {
                head: [
                    if at == 0 { name.clone() } else { String::new() },
                    word.to_owned(),
                ],
                cells,
            })
            .collect()
    }

    /// The mean or the ratio of means, and its interval where it has one.
    fn here(&self, arm: usize, base: Option<usize>, (point, metric): &Column<'_>) -> [String; 2] {
        let none = || [String::new(), String::new()];
        let id = CellId {
            set: self.set,
            arm,
            point: *point,
        };
        let values = |arm| {
            let id = CellId { arm, ..id };
            self.results.values(self.experiment, id, metric).ok()
        };
        let (Some(ours), others) = (values(arm), base.map(values)) else {
            return none();
        };
        let others = match others {
            Some(None) => return none(),
            other => other.flatten(),
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let value = match &others {
            None => mean(&ours),
            Some(others) => mean(&ours) / mean(others),
        };
        let Arm { name, .. } = &self.experiment.arms[arm];
        let stream = format!("{} {name} {point} {}", self.experiment.name, metric.name);
        let found = interval(&stream, &ours, others.as_deref(), self.rules);
        let ends = match found {
            Some([_, low, high]) if low != high => ends([low, high], others.is_some()),
            _ => String::new(),
        };
        [number(value), ends]
    }
}

/// The ends of an interval. Those of a ratio in thousandths: with four digits that count a table of
/// three columns would be wider than a terminal.
fn ends([low, high]: [f64; 2], is_ratio: bool) -> String {
    if is_ratio {
        format!("{low:.3} to {high:.3}")
    } else {
        format!("{} to {}", number(low), number(high))
    }
}

impl DocumentTable {
    /// The table for a page, or in pieces that have room in `width` columns.
    pub fn pieces(&self, width: Option<usize>) -> Vec<Table> {
        let count = |text: &String| text.chars().count();
        let name = self.rows.iter().map(|row| count(&row.head[0])).max();
        let word = self.rows.iter().map(|row| count(&row.head[1])).max();
        let heads = name.unwrap_or_default() + word.unwrap_or_default() + 2;
        let widest = |at: usize| {
            let cells = self.rows.iter().map(|row| count(&row.cells[at]));
            cells.chain([count(&self.columns[at])]).max().unwrap_or(0)
        };
        let mut pieces = Vec::new();
        let mut from = 0;
        while from < self.columns.len() {
            let (mut to, mut taken) = (from, heads);
            while to < self.columns.len() {
                taken += widest(to) + 2;
                let fits = width.is_none_or(|width| taken <= width);
                if !fits && to - from >= COLUMNS_MIN {
                    break;
                }
                to += 1;
            }
            pieces.push(self.piece(from..to));
            from = to;
        }
        pieces
    }

    fn piece(&self, columns: std::ops::Range<usize>) -> Table {
        let table = Table::default().names("").names("");
        let heads = self.columns[columns.clone()].iter();
        let mut table = heads.fold(table, Table::numbers);
        for row in &self.rows {
            let cells = row.head.iter().chain(&row.cells[columns.clone()]);
            table.row(cells.cloned());
        }
        table
    }

    /// Its place and what it tells: `Table VI: all done (s)`.
    pub fn heading(&self) -> String {
        if self.title.is_empty() {
            self.place.clone()
        } else {
            format!("{}: {}", self.place, self.title)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_three_columns_and_two_schedulers_fits_a_terminal() {
        let row = |name: &str, word: &str, is_ratio: bool| TableRow {
            head: [name.to_owned(), word.to_owned()],
            cells: vec![ends([224.2, 228.7].map(|it| it / 257.5), is_ratio); 3],
        };
        let table = |is_ratio| DocumentTable {
            place: "Table VI".to_owned(),
            title: String::new(),
            columns: vec!["hogs 128".to_owned(); 3],
            rows: vec![
                row("MLFQ / Linux 2.6.3", "published", is_ratio),
                row("", "95 % from", is_ratio),
            ],
        };
        assert_eq!(table(true).rows[0].cells[0], "0.871 to 0.888");
        assert_eq!(table(true).pieces(Some(80)).len(), 1);
        assert_eq!(table(false).pieces(Some(80)).len(), 2);
    }
}
