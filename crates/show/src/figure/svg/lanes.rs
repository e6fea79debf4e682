//! Rows of what had a CPU.

use std::fmt::Write as _;

use super::super::chart::Lane;
use super::super::ink::{COLOURS, Ink};
use super::super::scale::{Axis, Quantity, Scale};
use super::escape;
use super::paper::{FOOT, Frame, Paper, Tenths, short};
use super::plot::{Area, ZOOMED};

/// About how wide a letter of a row's name is.
const NAME_LETTER: i64 = 7;

impl Paper {
    /// Draws a row for each CPU.
    pub fn lanes(&mut self, span: (u64, u64), names: &[String], lanes: &[Lane]) {
        let named: Vec<(&str, Ink)> = (0..)
            .zip(names)
            .map(|(at, name)| (name.as_str(), Ink::kind(at)))
            .collect();
        self.legend(&named, false);
        let top = self.bottom + 4;
        // Long names take room from the bars, up to a third of the figure.
        let longest = lanes.iter().map(|lane| lane.name.chars().count()).max();
        let wanted = longest.unwrap_or(0) as i64 * NAME_LETTER + 12;
        let left = wanted.clamp(self.left(), self.width / 3);
        // Many CPUs have thin rows, and not each has room for its name.
        let row = (620 / lanes.len().max(1) as i64).clamp(7, 26);
        let every = (12 / row + 1) as usize;
        let axis = Axis::new("time", Quantity::Time);
        let frame = Frame {
            left,
            width: self.width - left - self.right(),
            ..self.plot(top, lanes.len() as i64 * row)
        };
        let across = Scale::new(&axis, span.0, span.1, frame.width * 10).below();
        let none = Scale::new(&Axis::new("", Quantity::Count), 0, 1, 10);
        let height = (row - 3).max(row * 3 / 4);
        for (index, lane) in lanes.iter().enumerate() {
            let y = top + index as i64 * row;
            self.add(format_args!(
                "<path class=\"rule\" d=\"M{} {}h{}\" stroke=\"#e2e2e2\"/>\n",
                frame.left,
                y + height,
                frame.width
            ));
            if index.is_multiple_of(every) {
                let name = short(&lane.name, ((left - 12) / NAME_LETTER) as usize);
                self.add(format_args!(
                    "<text class=\"pale\" x=\"{}\" y=\"{}\" text-anchor=\"end\" \
                     fill=\"#5a5a5a\">{}</text>\n",
                    frame.left - 7,
                    y + height / 2 + 4,
                    escape(&name)
                ));
            }
        }
        let area = Area {
            across: &across,
            up: &none,
            frame,
        };
        self.open(&area, ZOOMED);
        for (index, lane) in lanes.iter().enumerate() {
            let y = top + index as i64 * row;
            let place = (frame.left, y, height);
            if lane.told.is_empty() {
                self.colours(lane, names, &across, place);
            } else {
                self.turns(lane, &across, place);
            }
        }
        self.close();
        self.lower_axis(&across, frame);
        self.bottom = frame.bottom() + FOOT;
    }

    /// One path a colour: thousands of rectangles are slow to show.
    fn colours(&mut self, lane: &Lane, names: &[String], across: &Scale, place: (i64, i64, i64)) {
        for colour in 0..=COLOURS {
            let ink = Ink::kind(colour);
            let of_colour = lane.stretches.iter().filter(|it| Ink::kind(it.2) == ink);
            let path: String = of_colour.map(|it| bar(*it, across, place)).collect();
            if !path.is_empty() {
                let group = names.get(colour).map_or("others", String::as_str);
                self.bars(ink, &path, &format!("{}: {group}", lane.name), "");
            }
        }
    }

    /// One path a turn, which says what it is.
    fn turns(&mut self, lane: &Lane, across: &Scale, place: (i64, i64, i64)) {
        for (stretch, told) in lane.stretches.iter().zip(&lane.told) {
            let path = bar(*stretch, across, place);
            self.bars(Ink::kind(stretch.2), &path, told, " data-whole=\"\"");
        }
    }

    fn bars(&mut self, ink: Ink, path: &str, name: &str, more: &str) {
        self.add(format_args!(
            "<path class=\"f{}\" data-n=\"{}\"{more} d=\"{path}\" fill=\"{}\"/>\n",
            ink.number(),
            escape(name),
            ink.light()
        ));
    }
}

/// A stretch as a rectangle, from `left` on, at `y` and of `height`.
fn bar(
    (from, to, _): (u64, u64, usize),
    across: &Scale,
    (left, y, height): (i64, i64, i64),
) -> String {
    let (from, to) = (across.place(from), across.place(to));
    let (x, width) = (Tenths(left * 10 + from), Tenths((to - from).max(1)));
    let mut path = String::new();
    let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
    path
}
