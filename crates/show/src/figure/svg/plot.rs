//! Curves.

use std::fmt::Write as _;

use super::super::chart::{Body, Curve, Join};
use super::super::ink::Ink;
use super::super::scale::{Axis, Quantity, Scale};
use super::escape;
use super::paper::{DASHES, FOOT, Frame, Paper, Tenths};

const CURVES_HEIGHT: i64 = 230;
const PANEL_HEIGHT: i64 = 72;
const PANEL_GAP: i64 = 30;
const CELL_HEIGHT: i64 = 130;
/// Between two panels of a grid, and above each of them for its name.
const CELL_GAP: i64 = 20;
const CELL_HEAD: i64 = 22;
/// Room for the marks below a panel of a grid.
const CELL_FOOT: i64 = 26;

/// Where curves are drawn: the scales of both axes, and the frame.
pub struct Area<'a> {
    pub across: &'a Scale,
    pub up: &'a Scale,
    pub frame: Frame,
}

impl Paper {
    /// Draws curves.
    pub fn curves(&mut self, body: &Body) {
        let Body::Curves { x, y, span, curves } = body else {
            return;
        };
        let points = || curves.iter().flat_map(|curve| curve.points.iter());
        let xs = points().map(|(x, _)| *x);
        let (first, last) = span.unwrap_or((xs.clone().min().unwrap_or(0), xs.max().unwrap_or(1)));
        let ys = points().filter_map(|(_, y)| *y);
        // A share or a wait is seen against nothing at all; a priority has no such zero.
        let floor = ys.clone().min().unwrap_or(0);
        let low = if y.inverted || y.logarithmic {
            floor
        } else {
            0
        };
        let lines = || {
            curves
                .iter()
                .filter(|it| matches!(it.join, Join::Line | Join::Step))
        };
        let names: Vec<(&str, Ink)> = lines().map(|it| (it.name.as_str(), it.ink)).collect();
        self.legend(&names, true);
        let frame = self.plot(self.bottom, CURVES_HEIGHT);
        let across = Scale::new(x, first, last, frame.width * 10).below();
        let up = Scale::rounded(y, low, ys.max().unwrap_or(1), CURVES_HEIGHT * 10);
        self.rules(&up, frame, true);
        self.left_label(&up.label(), frame.top, CURVES_HEIGHT);
        self.lower_axis(&across, frame);
        let area = Area {
            across: &across,
            up: &up,
            frame,
        };
        // The first is drawn without gaps and lies at the bottom: where curves coincide, the dashes
        // of the others show that they are there.
        let has_single = lines().count() < curves.len();
        self.open(&area, if has_single { spilling(x) } else { zoomed(x) });
        for (index, curve) in lines().enumerate() {
            self.stroke(DASHES[index % DASHES.len()], curve, &area);
        }
        let single = curves
            .iter()
            .filter(|it| matches!(it.join, Join::Mark | Join::Bars));
        for curve in single {
            self.stroke("", curve, &area);
        }
        self.close();
        self.bottom = frame.bottom() + FOOT;
    }

    /// Draws a panel for each curve.
    pub fn panels(&mut self, body: &Body) {
        let Body::Panels { x, y, span, curves } = body else {
            return;
        };
        let ys = curves
            .iter()
            .flat_map(|curve| curve.points.iter().filter_map(|(_, y)| *y));
        let (low, high) = (ys.clone().min().unwrap_or(0), ys.max().unwrap_or(1));
        let begin = self.bottom;
        let mut frame = self.plot(begin, PANEL_HEIGHT);
        let across = Scale::new(x, span.0, span.1, frame.width * 10).below();
        let up = Scale::rounded(y, low, high, PANEL_HEIGHT * 10);
        for (index, curve) in curves.iter().enumerate() {
            frame.top += if index == 0 { 18 } else { PANEL_GAP };
            self.name_of(&curve.name, frame);
            self.rules(&up, frame, true);
            // The name tells the curves apart, so all have the plainest dash.
            let area = Area {
                across: &across,
                up: &up,
                frame,
            };
            self.open(&area, zoomed(x));
            self.stroke("", curve, &area);
            self.close();
            frame.top += PANEL_HEIGHT;
        }
        self.left_label(&up.label(), begin, frame.top - begin);
        frame.height = 0;
        self.lower_axis(&across, frame);
        self.bottom = frame.bottom() + FOOT;
    }

    /// Draws small panels beside and below each other, all with the same axes.
    pub fn grid(&mut self, body: &Body) {
        let Body::Grid {
            x,
            y,
            names,
            panels,
        } = body
        else {
            return;
        };
        let named: Vec<(&str, Ink)> = names.iter().map(|(it, ink)| (it.as_str(), *ink)).collect();
        self.legend(&named, true);
        let dash = |curve: &Curve| {
            let at = names.iter().position(|(name, _)| *name == curve.name);
            DASHES[at.unwrap_or(0) % DASHES.len()]
        };
        let points = || {
            panels
                .iter()
                .flat_map(|(_, curves)| curves)
                .flat_map(|it| &it.points)
        };
        let xs = || points().map(|(x, _)| *x);
        let ys = || points().filter_map(|(_, y)| *y);
        let columns = self.columns(3).min(panels.len().max(1) as i64);
        let room = self.plot(0, 0).width - CELL_GAP * (columns - 1);
        let width = room / columns;
        let across = Scale::new(
            x,
            xs().min().unwrap_or(0),
            xs().max().unwrap_or(1),
            width * 10,
        );
        let across = across.below();
        let (low, high) = (ys().min().unwrap_or(0), ys().max().unwrap_or(1));
        let up = Scale::rounded(y, low, high, CELL_HEIGHT * 10);
        let begin = self.bottom;
        let mut end = begin;
        for (at, (name, curves)) in (0_i64..).zip(panels) {
            let (row, column) = (at / columns, at % columns);
            let frame = Frame {
                left: self.left() + column * (width + CELL_GAP),
                top: begin + CELL_HEAD + row * (CELL_HEAD + CELL_HEIGHT + CELL_FOOT),
                width,
                height: CELL_HEIGHT,
            };
            self.name_of(name, frame);
            self.rules(&up, frame, column == 0);
            let marks = across.marks();
            let marks: Vec<_> = marks.iter().map(|it| (it.at, it.text.as_str())).collect();
            self.marks_inside(&marks, frame);
            let area = Area {
                across: &across,
                up: &up,
                frame,
            };
            self.open(&area, "");
            for curve in curves {
                self.stroke(dash(curve), curve, &area);
            }
            self.close();
            end = frame.bottom() + CELL_FOOT;
        }
        self.left_label(&up.label(), begin, end - begin);
        self.name_below(&across.label(), end);
        self.bottom = end + 20;
    }

    /// What the lower axes of all panels show, in the middle below them.
    fn name_below(&mut self, label: &str, end: i64) {
        let frame = self.plot(end, 0);
        self.add(format_args!(
            "<text class=\"ink\" x=\"{}\" y=\"{}\" text-anchor=\"middle\" \
             fill=\"#1a1a1a\">{}</text>\n",
            frame.left + frame.width / 2,
            end + 10,
            escape(label)
        ));
    }

    /// The name of a panel above its frame.
    fn name_of(&mut self, name: &str, frame: Frame) {
        let text = super::paper::short(name, Self::letters(frame.width));
        self.add(format_args!(
            "<text class=\"ink\" x=\"{}\" y=\"{}\" fill=\"#1a1a1a\">{}</text>\n",
            frame.left,
            frame.top - 6,
            escape(&text)
        ));
    }

    /// Begins what is drawn inside of a frame, and says for a script where its axes begin and end.
    pub fn open(&mut self, area: &Area<'_>, more: &str) {
        let Frame {
            left,
            top,
            width,
            height,
        } = area.frame;
        // A line along the edge must not be cut in half.
        let (top, height) = (top - 2, height + 4);
        self.add(format_args!(
            "<svg class=\"area\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"{left} {top} {width} {height}\" preserveAspectRatio=\"none\" \
             data-x=\"{}\" data-y=\"{}\"{more}>\n",
            area.across.in_words(),
            area.up.in_words()
        ));
    }

    pub fn close(&mut self) {
        self.out.push_str("</svg>\n");
    }

    fn stroke(&mut self, dash: &str, curve: &Curve, area: &Area<'_>) {
        if matches!(curve.join, Join::Mark | Join::Bars) {
            return self.marks(curve, area);
        }
        let (left, bottom) = (area.frame.left * 10, area.frame.bottom() * 10);
        let (mut path, mut lonely) = (String::new(), String::new());
        let mut before = None;
        let points = thinned(&curve.points, area.across, area.up);
        for (at, point) in points.iter().enumerate() {
            let Some((x, y)) = *point else {
                before = None;
                continue;
            };
            let (x, y) = (Tenths(left + x), Tenths(bottom - y));
            let is_last = points.get(at + 1).is_none_or(Option::is_none);
            let _ = match before {
                None if is_last => write!(lonely, "M{x} {y}h0"),
                None => write!(path, "M{x} {y}"),
                Some(()) if curve.join == Join::Step => write!(path, "H{x}V{y}"),
                Some(()) => write!(path, "L{x} {y}"),
            };
            before = Some(());
        }
        let (colour, number) = (curve.ink.light(), curve.ink.number());
        // A point without neighbours is a dot, or nobody would see it.
        let as_line = format!("stroke-width=\"1.8\" stroke-dasharray=\"{dash}\"");
        let as_dots = "stroke-width=\"7\" stroke-linecap=\"round\" stroke-opacity=\"0.75\"";
        for (path, look) in [(path, as_line.as_str()), (lonely, as_dots)] {
            if !path.is_empty() {
                self.add(format_args!(
                    "<path class=\"l{number}\" data-n=\"{}\" d=\"{path}\" fill=\"none\" \
                     stroke=\"{colour}\" {look} stroke-linejoin=\"round\" \
                     vector-effect=\"non-scaling-stroke\"/>\n",
                    escape(&curve.name)
                ));
            }
        }
    }

    /// Single points, or intervals of two points each.
    fn marks(&mut self, curve: &Curve, area: &Area<'_>) {
        let (left, bottom) = (area.frame.left * 10, area.frame.bottom() * 10);
        let (colour, number) = (curve.ink.light(), curve.ink.number());
        let points = curve.points.iter().filter_map(|(x, y)| Some((*x, (*y)?)));
        let points: Vec<(u64, u64)> = points.collect();
        let at = |x: u64| Tenths(left + area.across.place(x));
        if curve.join == Join::Bars {
            let mut path = String::new();
            for ends in points.chunks_exact(2) {
                let (low, high) = (area.up.place(ends[0].1), area.up.place(ends[1].1));
                let _ = write!(
                    path,
                    "M{} {}V{}",
                    at(ends[0].0),
                    Tenths(bottom - low),
                    Tenths(bottom - high)
                );
            }
            self.add(format_args!(
                "<path class=\"l{number}\" d=\"{path}\" fill=\"none\" stroke=\"{colour}\" \
                 stroke-width=\"5\" stroke-opacity=\"0.35\"/>\n"
            ));
            return;
        }
        for (x, y) in points {
            let (x, y) = (
                Tenths(left + area.across.place(x) - 50),
                Tenths(bottom - area.up.place(y)),
            );
            self.add(format_args!(
                "<path class=\"l{number}\" d=\"M{x} {y}l5 -5l5 5l-5 5z\" fill=\"none\" \
                 stroke=\"{colour}\" stroke-width=\"1.8\" pointer-events=\"all\">\
                 <title>{}</title></path>\n",
                escape(&curve.name)
            ));
        }
    }
}

/// A script may show a part of such an area.
pub const ZOOMED: &str = " data-zoom=\"\"";
/// What is drawn on an edge of such an area is drawn whole, also outside.
const SPILLING: &str = " overflow=\"visible\"";

/// A part can be shown of what goes along a time.
fn zoomed(axis: &Axis) -> &'static str {
    if axis.quantity == Quantity::Time && !axis.logarithmic {
        ZOOMED
    } else {
        ""
    }
}

/// Of an area with single points: they may lie on its edges.
fn spilling(axis: &Axis) -> &'static str {
    match zoomed(axis) {
        "" => SPILLING,
        zoomed => zoomed,
    }
}

/// The points in tenths of a pixel. Of those that fall into one column of half a pixel the first,
/// the extremes and the last are kept, so that a peak is never lost.
fn thinned(points: &[(u64, Option<u64>)], across: &Scale, up: &Scale) -> Vec<Option<(i64, i64)>> {
    const COLUMN: i64 = 5;
    let mut kept: Vec<Option<(i64, i64)>> = Vec::new();
    let mut column: Vec<(i64, i64)> = Vec::new();
    let flush = |column: &mut Vec<(i64, i64)>, kept: &mut Vec<Option<(i64, i64)>>| {
        let places = [
            Some(0),
            (0..column.len()).min_by_key(|&at| column[at].1),
            (0..column.len()).max_by_key(|&at| column[at].1),
            column.len().checked_sub(1),
        ];
        let mut places: Vec<usize> = places.into_iter().flatten().collect();
        places.sort_unstable();
        places.dedup();
        kept.extend(
            places
                .into_iter()
                .filter_map(|at| column.get(at).copied().map(Some)),
        );
        column.clear();
    };
    for &(x, y) in points {
        let Some(y) = y else {
            flush(&mut column, &mut kept);
            kept.push(None);
            continue;
        };
        let place = (across.place(x), up.place(y));
        if column
            .first()
            .is_some_and(|first| place.0 - first.0 >= COLUMN)
        {
            flush(&mut column, &mut kept);
        }
        column.push(place);
    }
    flush(&mut column, &mut kept);
    kept
}
