//! Draws a figure as SVG, which stands alone or inside of HTML.
//!
//! Colours are attributes, so that every program that knows SVG shows them; the style of a dark
//! screen overrides them. Curves differ in their dashes as well as in colour.

use std::fmt::Write as _;

use super::chart::{Body, Chart, Curve, Join, Lane};
use super::scale::Scale;

/// Curves and groups that have a colour of their own; the rest is grey.
pub const COLOURS: usize = PALETTE.len();

/// Light and dark screen. Source: Okabe and Ito (2008), "Color Universal Design", whose colours
/// people with any usual colour vision tell apart; the yellow is left out, as it is too faint on
/// white, and those that are too dark on black have brighter relatives.
const PALETTE: [(&str, &str); 7] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff8c42"),
    ("#009e73", "#33c9a0"),
    ("#cc79a7", "#e3a3c6"),
    ("#e69f00", "#f0c14b"),
    ("#56b4e9", "#a6d8ff"),
    ("#000000", "#f2f2f2"),
];
const GREY: (&str, &str) = ("#9a9a9a", "#7d7d7d");
const DASHES: [&str; 7] = ["", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 4"];

const WIDTH: i64 = 820;
const LEFT: i64 = 78;
const RIGHT: i64 = 18;
const PLOT: i64 = WIDTH - LEFT - RIGHT;
const HEAD: i64 = 46;
const LEGEND_ROW: i64 = 18;
const FOOT: i64 = 44;
const CURVES_HEIGHT: i64 = 230;
const PANEL_HEIGHT: i64 = 72;
const PANEL_GAP: i64 = 30;
/// About how wide a letter of the legend is.
const LETTER: i64 = 7;

/// Draws `chart`. With `alone` the text is a whole file.
#[must_use]
pub fn svg(chart: &Chart, alone: bool) -> String {
    let mut paper = Paper::default();
    let height = match &chart.body {
        Body::Curves { .. } => paper.curves(&chart.body),
        Body::Panels { .. } => paper.panels(&chart.body),
        Body::Lanes { span, names, lanes } => paper.lanes(*span, names, lanes),
    };
    let mut out = String::new();
    if alone {
        out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    }
    let id = &chart.id;
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" \
         font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\">\n\
         <title id=\"{id}-t\">{}: {}</title>\n<desc id=\"{id}-d\">{}</desc>\n",
        escape(&chart.title),
        escape(&chart.subtitle),
        escape(&chart.description),
    );
    if alone {
        let _ = writeln!(out, "<style>{}</style>", style());
    }
    let _ = write!(
        out,
        "<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text class=\"ink\" x=\"{LEFT}\" y=\"17\" font-size=\"15\" font-weight=\"600\" \
         fill=\"#1a1a1a\">{}</text>\n\
         <text class=\"pale\" x=\"{LEFT}\" y=\"35\" fill=\"#5a5a5a\">{}</text>\n",
        escape(&chart.title),
        escape(&chart.subtitle),
    );
    out.push_str(&paper.out);
    out.push_str("</svg>\n");
    out
}

/// The style of dark screens, for a page with figures in it; a figure alone brings its own.
#[must_use]
pub fn style() -> String {
    let mut dark = String::from(
        ".paper{fill:#17191c}.ink{fill:#ececec}.pale{fill:#a8a8a8}.rule{stroke:#3a3d42}\
         .edge{stroke:#8a8d92}",
    );
    for (index, (_, colour)) in PALETTE.iter().chain([&GREY]).enumerate() {
        let _ = write!(
            dark,
            ".l{index}{{stroke:{colour}}}.f{index}{{fill:{colour}}}"
        );
    }
    format!("@media (prefers-color-scheme: dark){{{dark}}}")
}

/// Text as XML has it. What XML cannot have is replaced.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{7f}'..='\u{9f}' => out.push('\u{fffd}'),
            '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => {
                out.push(letter);
            }
            _ => out.push('\u{fffd}'),
        }
    }
    out
}

/// The number of a colour: its own, or that of grey.
const fn shade(index: usize) -> usize {
    if index < COLOURS { index } else { COLOURS }
}

const fn light(index: usize) -> &'static str {
    if index < COLOURS {
        PALETTE[index].0
    } else {
        GREY.0
    }
}

/// A number of tenths of a pixel.
struct Tenths(i64);

impl std::fmt::Display for Tenths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        match (self.0.abs() / 10, self.0.abs() % 10) {
            (whole, 0) => write!(f, "{sign}{whole}"),
            (whole, tenth) => write!(f, "{sign}{whole}.{tenth}"),
        }
    }
}

#[derive(Default)]
struct Paper {
    out: String,
}

impl Paper {
    fn add(&mut self, args: std::fmt::Arguments<'_>) {
        self.out.write_fmt(args).expect("a text takes every write");
    }

    /// Draws curves and returns the height of all.
    fn curves(&mut self, body: &Body) -> i64 {
        let Body::Curves { x, y, span, curves } = body else {
            return HEAD;
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
        let top = HEAD + self.legend(curves.iter().map(|curve| curve.name.as_str()), true);
        let across = Scale::new(x, first, last, PLOT * 10);
        let up = Scale::rounded(y, low, ys.max().unwrap_or(1), CURVES_HEIGHT * 10);
        self.rules(&up, top, CURVES_HEIGHT);
        self.left_label(&up, top, CURVES_HEIGHT);
        self.lower_axis(&across, top + CURVES_HEIGHT);
        let area = Area {
            across: &across,
            up: &up,
            bottom: top + CURVES_HEIGHT,
        };
        // The first is drawn without gaps and lies at the bottom: where curves coincide, the dashes
        // of the others show that they are there.
        for (index, curve) in curves.iter().enumerate() {
            self.stroke(index, DASHES[index % DASHES.len()], curve, &area);
        }
        top + CURVES_HEIGHT + FOOT
    }

    /// Names with their colours; returns the height. `lines`: they are curves, else areas.
    fn legend<'a>(&mut self, names: impl Iterator<Item = &'a str>, lines: bool) -> i64 {
        let names: Vec<&str> = names.collect();
        if names.len() < 2 && lines {
            return 0;
        }
        let (mut x, mut row) = (LEFT, 0);
        for (index, name) in names.into_iter().enumerate() {
            let width = 34 + name.chars().count() as i64 * LETTER;
            if x > LEFT && x + width > WIDTH - RIGHT {
                (x, row) = (LEFT, row + 1);
            }
            let y = HEAD + row * LEGEND_ROW + 5;
            let (colour, number) = (light(index), shade(index));
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
                escape(name)
            ));
            x += width;
        }
        (row + 1) * LEGEND_ROW
    }

    /// Draws a panel for each curve and returns the height of all.
    fn panels(&mut self, body: &Body) -> i64 {
        let Body::Panels { x, y, span, curves } = body else {
            return HEAD;
        };
        let ys = curves
            .iter()
            .flat_map(|curve| curve.points.iter().filter_map(|(_, y)| *y));
        let (low, high) = (ys.clone().min().unwrap_or(0), ys.max().unwrap_or(1));
        let across = Scale::new(x, span.0, span.1, PLOT * 10);
        let up = Scale::rounded(y, low, high, PANEL_HEIGHT * 10);
        let mut top = HEAD;
        for (index, curve) in curves.iter().enumerate() {
            top += if index == 0 { LEGEND_ROW } else { PANEL_GAP };
            self.add(format_args!(
                "<text class=\"ink\" x=\"{LEFT}\" y=\"{}\" fill=\"#1a1a1a\">{}</text>\n",
                top - 6,
                escape(&curve.name)
            ));
            self.rules(&up, top, PANEL_HEIGHT);
            // The name tells the curves apart, so all have the plainest dash.
            let area = Area {
                across: &across,
                up: &up,
                bottom: top + PANEL_HEIGHT,
            };
            self.stroke(index, "", curve, &area);
            top += PANEL_HEIGHT;
        }
        self.left_label(&up, HEAD, top - HEAD);
        self.lower_axis(&across, top);
        top + FOOT
    }

    /// Lines and marks of the left axis.
    fn rules(&mut self, up: &Scale, top: i64, height: i64) {
        let bottom = top + height;
        for mark in up.marks() {
            let y = Tenths(bottom * 10 - mark.at);
            self.add(format_args!(
                "<path class=\"rule\" d=\"M{LEFT} {y}h{PLOT}\" stroke=\"#e2e2e2\"/>\n"
            ));
            let y = Tenths(bottom * 10 - mark.at + 40);
            self.add(format_args!(
                "<text class=\"pale\" x=\"{}\" y=\"{y}\" text-anchor=\"end\" \
                 fill=\"#5a5a5a\">{}</text>\n",
                LEFT - 7,
                escape(&mark.text)
            ));
        }
    }

    fn left_label(&mut self, up: &Scale, top: i64, height: i64) {
        let middle = top + height / 2;
        self.add(format_args!(
            "<text class=\"ink\" transform=\"translate(15 {middle}) rotate(-90)\" \
             text-anchor=\"middle\" fill=\"#1a1a1a\">{}</text>\n",
            escape(&up.label())
        ));
    }

    fn lower_axis(&mut self, across: &Scale, bottom: i64) {
        self.add(format_args!(
            "<path class=\"edge\" d=\"M{LEFT} {bottom}h{PLOT}\" stroke=\"#5a5a5a\"/>\n"
        ));
        for mark in across.marks() {
            let x = Tenths(LEFT * 10 + mark.at);
            self.add(format_args!(
                "<path class=\"edge\" d=\"M{x} {bottom}v4\" stroke=\"#5a5a5a\"/>\n\
                 <text class=\"pale\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\" \
                 fill=\"#5a5a5a\">{}</text>\n",
                bottom + 17,
                escape(&mark.text)
            ));
        }
        self.add(format_args!(
            "<text class=\"ink\" x=\"{}\" y=\"{}\" text-anchor=\"middle\" \
             fill=\"#1a1a1a\">{}</text>\n",
            LEFT + PLOT / 2,
            bottom + 35,
            escape(&across.label())
        ));
    }

    fn stroke(&mut self, index: usize, dash: &str, curve: &Curve, area: &Area<'_>) {
        let bottom = area.bottom * 10;
        let mut path = String::new();
        let mut before = None;
        let points = thinned(&curve.points, area.across, area.up);
        for (at, point) in points.iter().enumerate() {
            let Some((x, y)) = *point else {
                before = None;
                continue;
            };
            let (x, y) = (Tenths(LEFT * 10 + x), Tenths(bottom - y));
            let lonely = points.get(at + 1).is_none_or(Option::is_none);
            let _ = match before {
                // A point without neighbours is a short dash, or nobody would see it.
                None if lonely => write!(path, "M{x} {y}h2"),
                None => write!(path, "M{x} {y}"),
                Some(()) if curve.join == Join::Step => write!(path, "H{x}V{y}"),
                Some(()) => write!(path, "L{x} {y}"),
            };
            before = Some(());
        }
        let (colour, number) = (light(index), shade(index));
        self.add(format_args!(
            "<path class=\"l{number}\" d=\"{path}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"1.8\" stroke-dasharray=\"{dash}\" stroke-linejoin=\"round\"/>\n"
        ));
    }

    /// Draws a row for each CPU and returns the height of all.
    fn lanes(&mut self, span: (u64, u64), names: &[String], lanes: &[Lane]) -> i64 {
        let top = HEAD + self.legend(names.iter().map(String::as_str), false) + 4;
        // Many CPUs have thin rows, and not each has room for its name.
        let row = (620 / lanes.len().max(1) as i64).clamp(7, 26);
        let every = (12 / row + 1) as usize;
        let axis = super::Axis::new("time", super::Quantity::Time);
        let across = Scale::new(&axis, span.0, span.1, PLOT * 10);
        for (index, lane) in lanes.iter().enumerate() {
            let y = top + index as i64 * row;
            let height = (row - 3).max(row * 3 / 4);
            self.add(format_args!(
                "<path class=\"rule\" d=\"M{LEFT} {}h{PLOT}\" stroke=\"#e2e2e2\"/>\n",
                y + height
            ));
            if index.is_multiple_of(every) {
                self.add(format_args!(
                    "<text class=\"pale\" x=\"{}\" y=\"{}\" text-anchor=\"end\" \
                     fill=\"#5a5a5a\">{}</text>\n",
                    LEFT - 7,
                    y + height / 2 + 4,
                    escape(&lane.name)
                ));
            }
            // One path a colour: thousands of rectangles are slow to show.
            for colour in 0..=COLOURS {
                let path = lane_path(lane, colour, &across, y, height);
                if !path.is_empty() {
                    self.add(format_args!(
                        "<path class=\"f{colour}\" d=\"{path}\" fill=\"{}\"/>\n",
                        light(colour)
                    ));
                }
            }
        }
        let bottom = top + lanes.len() as i64 * row;
        self.lower_axis(&across, bottom);
        bottom + FOOT
    }
}

/// Where curves are drawn: the scales of both axes, and the height of the lower one in pixels.
struct Area<'a> {
    across: &'a Scale,
    up: &'a Scale,
    bottom: i64,
}

/// The stretches of one colour as rectangles.
fn lane_path(lane: &Lane, colour: usize, across: &Scale, y: i64, height: i64) -> String {
    let mut path = String::new();
    for &(from, to, index) in &lane.stretches {
        if shade(index) == colour {
            let (from, to) = (across.place(from), across.place(to));
            let (x, width) = (Tenths(LEFT * 10 + from), Tenths((to - from).max(1)));
            let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
        }
    }
    path
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
