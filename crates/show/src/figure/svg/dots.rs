//! Single values, a row for each scheduler.

use super::super::chart::{DotPanel, DotRow};
use super::super::scale::Scale;
use super::escape;
use super::paper::{Frame, Paper, Tenths, lines, short};

const ROW: i64 = 20;
/// A row whose name stands above it.
const NAMED_ROW: i64 = 36;
/// Above a panel, for its name.
const HEAD: i64 = 26;
/// A second line of it.
const LINE: i64 = 16;
/// Below it, for its marks and what they are.
const FOOT: i64 = 34;
const GAP: i64 = 26;
/// The most that names of rows may take, and the least.
const NAMES: (i64, i64) = (170, 50);
/// Dots of a row that each tell what they are. Of more a pointer finds no single one, and a page
/// with many of them would open slowly.
const SINGLE: usize = 10;
/// The most that values at the ends of rows may take.
const VALUES: i64 = 190;

/// A title in two lines at the most.
fn title(name: &str, most: usize) -> Vec<String> {
    let mut all = lines(name, most);
    if all.len() > 2 {
        all.truncate(2);
        all[1] = short(&format!("{} \u{2026}", all[1]), most);
    }
    all
}

/// The room that names at the left take in a panel so wide; `None` if they have to stand above
/// their rows, where they need not be cut.
fn names(panel: &DotPanel, width: i64) -> Option<i64> {
    let longest = panel.rows.iter().map(|row| row.name.chars().count()).max();
    let wanted = longest.unwrap_or(0) as i64 * 7 + 10;
    let most = NAMES.0.min(width * 2 / 5);
    (wanted <= most).then(|| wanted.max(NAMES.1))
}

/// The height of a row of a panel so wide.
fn row_height(panel: &DotPanel, width: i64) -> i64 {
    match names(panel, width) {
        Some(_) => ROW,
        None => NAMED_ROW,
    }
}

impl Paper {
    /// Draws panels, two beside each other where there is room.
    pub fn dots(&mut self, panels: &[DotPanel]) {
        let columns = self.columns(2).min(panels.len().max(1) as i64);
        let margin = 12;
        let room = self.width - 2 * margin - GAP * (columns - 1);
        let width = room / columns;
        let begin = self.bottom;
        let mut tops = vec![begin; columns as usize];
        // Titles are bold, so fewer letters have room.
        let most = Self::letters(width) * 9 / 10;
        let titles: Vec<Vec<String>> = panels.iter().map(|it| title(&it.name, most)).collect();
        let head = if titles.iter().all(|lines| lines.len() < 2) {
            HEAD
        } else {
            HEAD + LINE
        };
        for (at, (panel, title)) in panels.iter().zip(&titles).enumerate() {
            let column = at % tops.len();
            // Panels of one row begin at one height.
            if column == 0 {
                let lowest = tops.iter().copied().max().unwrap_or(begin);
                tops.iter_mut().for_each(|top| *top = lowest);
            }
            let frame = Frame {
                left: margin + column as i64 * (width + GAP),
                top: tops[column] + head,
                width,
                height: panel.rows.len() as i64 * row_height(panel, width),
            };
            self.dot_panel(panel, title, frame);
            tops[column] = frame.bottom() + FOOT;
        }
        self.bottom = tops.into_iter().max().unwrap_or(begin) + 4;
    }

    fn dot_panel(&mut self, panel: &DotPanel, title: &[String], whole: Frame) {
        for (at, line) in (0..).zip(title.iter().rev()) {
            self.add(format_args!(
                "<text class=\"ink\" x=\"{}\" y=\"{}\" font-weight=\"600\" \
                 fill=\"#1a1a1a\">{}</text>\n",
                whole.left,
                whole.top - 8 - at * LINE,
                escape(line)
            ));
        }
        let names = names(panel, whole.width).unwrap_or(0);
        let longest = panel.rows.iter().map(|row| row.value.chars().count()).max();
        let values = longest.map_or(0, |it| if it > 0 { it as i64 * 7 + 8 } else { 0 });
        let frame = Frame {
            left: whole.left + names,
            width: whole.width - names - 8 - values.min(VALUES.min(whole.width * 2 / 5)),
            ..whole
        };
        let (low, high) = panel.span.unwrap_or((0, 1));
        let across = Scale::new(&panel.axis, low, high, frame.width * 10).below();
        if let Some((at, (from, to))) = panel.origin {
            let (left, right) = (across.place(from), across.place(to));
            self.add(format_args!(
                "<rect class=\"band\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
                 fill=\"#efefef\"/>\n<path class=\"edge\" d=\"M{} {}v{}\" stroke=\"#5a5a5a\"/>\n",
                Tenths(frame.left * 10 + left),
                frame.top,
                Tenths((right - left).max(1)),
                frame.height,
                Tenths(frame.left * 10 + across.place(at)),
                frame.top,
                frame.height
            ));
        }
        for (index, row) in panel.rows.iter().enumerate() {
            let height = row_height(panel, whole.width);
            // The line is in the middle of the lowest part, below a name that stands above.
            let y = frame.top + (index as i64 + 1) * height - ROW / 2;
            self.row(row, &across, Frame { top: y, ..whole }, frame);
            self.value(&row.value, (whole.left + whole.width, y));
        }
        let own = across.marks();
        let own = own.iter().map(|it| (it.at, it.text.as_str()));
        let given = panel
            .marks
            .iter()
            .map(|(at, text)| (across.place(*at), text.as_str()));
        let marks: Vec<(i64, &str)> = if panel.marks.is_empty() {
            own.collect()
        } else {
            given.collect()
        };
        let marks = self.with_unit(&marks, &across.label(), frame);
        let marks: Vec<(i64, &str)> = marks
            .iter()
            .map(|(at, text)| (*at, text.as_str()))
            .collect();
        self.marks_below(&marks, frame);
    }

    /// The marks, the last one with the unit of all.
    fn with_unit(&self, marks: &[(i64, &str)], unit: &str, _: Frame) -> Vec<(i64, String)> {
        let unit = unit.trim_end_matches(", logarithmic").trim();
        let unit = unit.trim_start_matches('(').trim_end_matches(')');
        let last = marks.len().saturating_sub(1);
        let all = marks.iter().enumerate().map(|(at, (place, text))| {
            let has_unit = text.ends_with(|it: char| !it.is_ascii_digit());
            if at == last && !unit.is_empty() && !has_unit {
                (*place, format!("{text} {unit}"))
            } else {
                (*place, (*text).to_owned())
            }
        });
        all.collect()
    }

    /// What a row comes to, at its end.
    fn value(&mut self, value: &str, (right, y): (i64, i64)) {
        if !value.is_empty() {
            self.add(format_args!(
                "<text class=\"pale\" x=\"{right}\" y=\"{}\" text-anchor=\"end\" \
                 fill=\"#5a5a5a\">{}</text>\n",
                y + 4,
                escape(value)
            ));
        }
    }

    /// Draws a row, whose line is at the top of `line`; `frame` has its dots.
    fn row(&mut self, row: &DotRow, across: &Scale, line: Frame, frame: Frame) {
        let (left, y) = (line.left, line.top);
        let (room, name_y) = if frame.left > left {
            (frame.left - left - 6, y + 4)
        } else {
            (line.width, y - 12)
        };
        let name = short(&row.name, Self::letters(room));
        let (number, colour) = (row.ink.number(), row.ink.light());
        self.add(format_args!(
            "<text class=\"ink\" x=\"{left}\" y=\"{name_y}\" fill=\"#1a1a1a\">\
             <title>{}</title>{}</text>\n\
             <path class=\"rule\" d=\"M{} {y}h{}\" stroke=\"#e2e2e2\"/>\n",
            escape(&row.name),
            escape(&name),
            frame.left,
            frame.width
        ));
        let at = |value: u64| Tenths(frame.left * 10 + across.place(value));
        if let Some((from, to)) = row.bar {
            let (from, to) = (across.place(from), across.place(to));
            self.add(format_args!(
                "<rect class=\"f{number}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"8\" \
                 fill=\"{colour}\" fill-opacity=\"0.3\"/>\n",
                Tenths(frame.left * 10 + from),
                y - 4,
                Tenths((to - from).max(10))
            ));
        }
        if row.dots.len() > SINGLE {
            let path: String = row
                .dots
                .iter()
                .map(|(it, _)| format!("M{} {y}h0", at(*it)))
                .collect();
            self.add(format_args!(
                "<path class=\"l{number}\" d=\"{path}\" stroke=\"{colour}\" stroke-width=\"6.4\" \
                 stroke-linecap=\"round\" stroke-opacity=\"0.5\" fill=\"none\"/>\n"
            ));
        }
        for (value, text) in row.dots.iter().filter(|_| row.dots.len() <= SINGLE) {
            let x = at(*value);
            self.add(format_args!(
                "<circle class=\"f{number}\" cx=\"{x}\" cy=\"{y}\" r=\"3.2\" fill=\"{colour}\" \
                 fill-opacity=\"0.65\"><title>{}</title></circle>\n",
                escape(text)
            ));
        }
        if let Some((value, text)) = &row.middle {
            let (x, top) = (at(*value), y - 8);
            self.add(format_args!(
                "<path class=\"l{number}\" d=\"M{x} {top}v16\" stroke=\"{colour}\" \
                 stroke-width=\"3\" fill=\"none\"><title>{}</title></path>\n",
                escape(text)
            ));
        }
        if let Some((value, text)) = &row.published {
            let x = Tenths(frame.left * 10 + across.place(*value) - 60);
            self.add(format_args!(
                "<path class=\"mark edge\" d=\"M{x} {y}l6 -6l6 6l-6 6z\" stroke=\"#1a1a1a\" \
                 stroke-width=\"1.6\" fill=\"none\" pointer-events=\"all\">\
                 <title>{}</title></path>\n",
                escape(text)
            ));
        }
    }
}
