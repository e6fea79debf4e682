//! What all figures have: paper, headings, legends, axes.

use super::super::ink::Ink;
use super::super::scale::Scale;
use super::{WIDTHS, escape};

/// Height of a row of a legend, and of a line of the subtitle.
const LEGEND_ROW: i64 = 18;
/// From a heading of one line to the figure.
const HEAD: i64 = 46;
/// Room for an axis below with its label.
pub const FOOT: i64 = 44;
/// About how wide a letter is, in tenths of a pixel.
const LETTER: i64 = 68;
/// The same of a title, whose letters are larger and bold.
const TITLE_LETTER: i64 = 88;
/// The least room between the texts of two marks, in tenths of a pixel.
const BETWEEN: i64 = 40;

pub const DASHES: [&str; 7] = ["", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 4"];

/// A number of tenths of a pixel.
#[derive(Clone, Copy)]
pub struct Tenths(pub i64);

impl std::fmt::Display for Tenths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        match (self.0.abs() / 10, self.0.abs() % 10) {
            (whole, 0) => write!(f, "{sign}{whole}"),
            (whole, tenth) => write!(f, "{sign}{whole}.{tenth}"),
        }
    }
}

/// A figure while it is drawn.
pub struct Paper {
    pub out: String,
    pub width: i64,
    /// Where what is drawn ends, from the top.
    pub bottom: i64,
    /// The class of the whole.
    pub class: &'static str,
}

/// A rectangle in pixels, in which something is drawn.
#[derive(Clone, Copy)]
pub struct Frame {
    pub left: i64,
    pub top: i64,
    pub width: i64,
    pub height: i64,
}

impl Frame {
    pub const fn bottom(self) -> i64 {
        self.top + self.height
    }
}

/// Cuts a text into lines of at most `most` letters; a longer word is cut too.
pub fn lines(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        while !word.is_empty() {
            let last = lines.last_mut().expect("there is one");
            let used = last.chars().count();
            let room = most.saturating_sub(used + usize::from(used > 0));
            if word.len() <= room || used == 0 {
                let rest = word.split_off(word.len().min(most));
                if used > 0 {
                    last.push(' ');
                }
                last.extend(word);
                word = rest;
            }
            if !word.is_empty() {
                lines.push(String::new());
            }
        }
    }
    lines
}

/// The begin of a text that has room for so many letters.
pub fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let begin: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{begin}\u{2026}")
}

impl Paper {
    pub const fn new(width: i64, class: &'static str) -> Self {
        Self {
            out: String::new(),
            width,
            bottom: 0,
            class,
        }
    }

    pub fn add(&mut self, args: std::fmt::Arguments<'_>) {
        use std::fmt::Write as _;
        self.out.write_fmt(args).expect("a text takes every write");
    }

    const fn is_wide(&self) -> bool {
        self.width >= WIDTHS[0]
    }

    /// Where the axis at the left stands.
    pub const fn left(&self) -> i64 {
        if self.is_wide() { 78 } else { 60 }
    }

    /// Room at the right.
    pub const fn right(&self) -> i64 {
        if self.is_wide() { 18 } else { 12 }
    }

    /// How many panels stand beside each other.
    pub const fn columns(&self, wide: i64) -> i64 {
        if self.is_wide() { wide } else { 1 }
    }

    /// All that is between the axis at the left and the right edge.
    pub const fn plot(&self, top: i64, height: i64) -> Frame {
        Frame {
            left: self.left(),
            top,
            width: self.width - self.left() - self.right(),
            height,
        }
    }

    /// How many letters of so many tenths of a pixel have room in `pixels`.
    pub fn letters(pixels: i64) -> usize {
        usize::try_from(pixels * 10 / LETTER).unwrap_or(0).max(4)
    }

    /// Title and subtitle; long ones have several lines. Narrow figures need all the room for them,
    /// and those with `names` at the left begin there.
    pub fn heading(&mut self, title: &str, subtitle: &str, names: bool) {
        let is_above = self.is_wide() && !names;
        let left = if is_above { self.left() } else { 12 };
        let room = self.width - left - self.right();
        let most = usize::try_from(room * 10 / TITLE_LETTER)
            .unwrap_or(0)
            .max(8);
        let mut y = 17;
        for line in lines(title, most) {
            self.add(format_args!(
                "<text class=\"ink\" x=\"{left}\" y=\"{y}\" font-size=\"15\" font-weight=\"600\" \
                 fill=\"#1a1a1a\">{}</text>\n",
                escape(&line)
            ));
            y += 18;
        }
        for line in lines(subtitle, Self::letters(room)) {
            self.add(format_args!(
                "<text class=\"pale\" x=\"{left}\" y=\"{y}\" fill=\"#5a5a5a\">{}</text>\n",
                escape(&line)
            ));
            y += 16;
        }
        self.bottom = y + HEAD - 17 - 18 - 16;
    }

    /// Names with their colours, below what is there. `lines`: they are curves, else areas.
    pub fn legend(&mut self, names: &[(&str, Ink)], lines: bool) {
        if names.len() < 2 && lines || names.is_empty() {
            return;
        }
        let left = self.left();
        let room = self.width - left - self.right();
        let (mut x, mut row) = (left, 0);
        for (index, (name, ink)) in names.iter().enumerate() {
            let name = short(name, Self::letters(room - 34));
            let width = 42 + name.chars().count() as i64 * 7;
            if x > left && x + width > left + room {
                (x, row) = (left, row + 1);
            }
            let y = self.bottom + row * LEGEND_ROW + 5;
            let (colour, number) = (ink.light(), ink.number());
            if lines {
                let dash = DASHES[index % DASHES.len()];
                self.add(format_args!(
                    "<path class=\"l{number}\" d=\"M{x} {y}h22\" stroke=\"{colour}\" \
                     stroke-width=\"2.4\" stroke-dasharray=\"{dash}\" fill=\"none\"/>\n"
                ));
            } else {
                let y = y - 6;
                self.add(format_args!(
                    "<rect class=\"f{number}\" x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" \
                     fill=\"{colour}\"/>\n"
                ));
            }
            let at = if lines { x + 27 } else { x + 17 };
            self.add(format_args!(
                "<text class=\"ink\" x=\"{at}\" y=\"{}\" fill=\"#1a1a1a\">{}</text>\n",
                y + 4,
                escape(&name)
            ));
            x += width;
        }
        self.bottom += (row + 1) * LEGEND_ROW;
    }

    /// Lines and marks of the left axis; `texts`: with what the marks stand for.
    pub fn rules(&mut self, up: &Scale, frame: Frame, texts: bool) {
        let (left, width, bottom) = (frame.left, frame.width, frame.bottom());
        for mark in up.marks() {
            let y = Tenths(bottom * 10 - mark.at);
            self.add(format_args!(
                "<path class=\"rule\" d=\"M{left} {y}h{width}\" stroke=\"#e2e2e2\"/>\n"
            ));
            if !texts {
                continue;
            }
            let y = Tenths(bottom * 10 - mark.at + 40);
            self.add(format_args!(
                "<text class=\"pale\" x=\"{}\" y=\"{y}\" text-anchor=\"end\" \
                 fill=\"#5a5a5a\">{}</text>\n",
                left - 7,
                escape(&mark.text)
            ));
        }
    }

    /// What the left axis shows, along it.
    pub fn left_label(&mut self, label: &str, top: i64, height: i64) {
        let middle = top + height / 2;
        let most = Self::letters(height.max(120));
        let mut all = lines(label, most);
        if all.len() > 2 {
            all.truncate(2);
            all[1] = short(&format!("{} \u{2026}", all[1]), most);
        }
        // Two lines have room left of the marks.
        let first = if all.len() > 1 { 11 } else { 15 };
        for (x, line) in (first..).step_by(14).zip(&all) {
            self.add(format_args!(
                "<text class=\"ink\" transform=\"translate({x} {middle}) rotate(-90)\" \
                 text-anchor=\"middle\" fill=\"#1a1a1a\">{}</text>\n",
                escape(line)
            ));
        }
    }

    /// An axis below with its own marks, and its label if it has one.
    pub fn lower_axis(&mut self, across: &Scale, frame: Frame) {
        let marks = across.marks();
        let marks: Vec<(i64, &str)> = marks.iter().map(|it| (it.at, it.text.as_str())).collect();
        self.add(format_args!("<g class=\"ticks\">"));
        self.marks_below(&marks, frame);
        self.add(format_args!("</g>\n"));
        let label = across.label();
        if label.is_empty() {
            return;
        }
        self.add(format_args!(
            "<text class=\"ink\" x=\"{}\" y=\"{}\" text-anchor=\"middle\" \
             fill=\"#1a1a1a\">{}</text>\n",
            frame.left + frame.width / 2,
            frame.bottom() + 35,
            escape(&label)
        ));
    }

    /// An axis below with these marks, whose places are in tenths of a pixel.
    pub fn marks_below(&mut self, marks: &[(i64, &str)], frame: Frame) {
        // The last one must not be cut off by the edge of the paper.
        self.marks_within(marks, frame, (0, self.width - 2));
    }

    /// The same of a panel beside others, whose marks must not meet.
    pub fn marks_inside(&mut self, marks: &[(i64, &str)], frame: Frame) {
        self.marks_within(marks, frame, (frame.left - 8, frame.left + frame.width + 4));
    }

    fn marks_within(&mut self, marks: &[(i64, &str)], frame: Frame, ends: (i64, i64)) {
        let (left, width, bottom) = (frame.left, frame.width, frame.bottom());
        self.add(format_args!(
            "<path class=\"edge\" d=\"M{left} {bottom}h{width}\" stroke=\"#5a5a5a\"/>\n"
        ));
        for (at, _) in marks {
            let x = Tenths(left * 10 + at);
            self.add(format_args!(
                "<path class=\"edge\" d=\"M{x} {bottom}v4\" stroke=\"#5a5a5a\"/>\n"
            ));
        }
        let places = marks.iter().map(|(at, text)| {
            let half = text.chars().count() as i64 * LETTER / 20;
            let (least, most) = ((ends.0 + half) * 10, (ends.1 - half) * 10);
            ((left * 10 + at).min(most).max(least), half * 10)
        });
        for (at, x) in apart(&places.collect::<Vec<_>>()) {
            self.add(format_args!(
                "<text class=\"pale\" x=\"{}\" y=\"{}\" text-anchor=\"middle\" \
                 fill=\"#5a5a5a\">{}</text>\n",
                Tenths(x),
                bottom + 17,
                escape(marks[at].1)
            ));
        }
    }
}

/// Which of these texts have room beside each other, by their number, and their middles. The last
/// one, which has the unit, is always there. `places`: middles and half widths.
fn apart(places: &[(i64, i64)]) -> Vec<(usize, i64)> {
    let mut kept: Vec<(usize, i64)> = Vec::new();
    for (at, (x, half)) in places.iter().enumerate().rev() {
        let is_free =
            |(other, there): &(usize, i64)| (there - x).abs() >= half + places[*other].1 + BETWEEN;
        if kept.iter().all(is_free) {
            kept.push((at, *x));
        }
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_spaces_and_long_words_inside() {
        assert_eq!(lines("one two three", 7), ["one two", "three"]);
        assert_eq!(lines("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        // The space counts, too.
        assert_eq!(lines("one four", 7), ["one", "four"]);
        assert_eq!(lines("one four", 8), ["one four"]);
        assert_eq!(lines("", 4), [""]);
        assert_eq!(lines("a", 1), ["a"]);
        assert_eq!(short("abcdef", 4), "abc\u{2026}");
    }
}
