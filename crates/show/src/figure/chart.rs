//! What a figure shows, before it is drawn.

use super::ink::Ink;
use super::scale::Axis;

/// A figure.
#[derive(Clone, Debug)]
pub struct Chart {
    /// A word for file names and links: `latency`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Of which runs: policy, workload, seed.
    pub subtitle: String,
    /// What is measured and how the figure is read, for those who cannot see it and those who ask.
    pub description: String,
    /// What is drawn.
    pub body: Body,
}

/// What a figure draws.
#[derive(Clone, Debug)]
pub enum Body {
    /// Curves over a common axis.
    Curves {
        /// The axis below.
        x: Axis,
        /// The axis at the left.
        y: Axis,
        /// Where the lower axis begins and ends, if not with the curves.
        span: Option<(u64, u64)>,
        /// All of them.
        curves: Vec<Curve>,
    },
    /// A panel for each curve, one above the other, over common axes: for curves that would hide
    /// each other.
    Panels {
        /// The axis below.
        x: Axis,
        /// The axis at the left of each panel.
        y: Axis,
        /// Where the lower axis begins and ends.
        span: (u64, u64),
        /// From the top.
        curves: Vec<Curve>,
    },
    /// Small panels with common axes, whose curves have one legend: one thing under several
    /// schedulers, for each of several groups of tasks.
    Grid {
        /// The axis below each panel.
        x: Axis,
        /// The axis at the left.
        y: Axis,
        /// Who is drawn in which colour.
        names: Vec<(String, Ink)>,
        /// Each with its own name.
        panels: Vec<(String, Vec<Curve>)>,
    },
    /// Single values on axes of their own, a row for each scheduler.
    Dots {
        /// Each with its own axis.
        panels: Vec<DotPanel>,
    },
    /// Who has each CPU when.
    Lanes {
        /// Begin and end of all lanes, nanoseconds.
        span: (u64, u64),
        /// What the colours mean, in the order of [`Ink::kind`].
        names: Vec<String>,
        /// From the lowest CPU on.
        lanes: Vec<Lane>,
    },
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub ink: Ink,
    /// How points are joined.
    pub join: Join,
    /// Points in rising order of `x`; `None` interrupts the curve.
    pub points: Vec<(u64, Option<u64>)>,
}

/// How the points of a curve are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// By straight lines.
    Line,
    /// A value holds until the next point.
    Step,
    /// Not at all: each is a hollow mark, as of numbers that somebody else measured.
    Mark,
    /// Two by two, the ends of intervals.
    Bars,
}

/// Values of one thing.
#[derive(Clone, Debug)]
pub struct DotPanel {
    /// What is measured.
    pub name: String,
    /// The axis below.
    pub axis: Axis,
    /// Where the axis begins and ends, if not with the values.
    pub span: Option<(u64, u64)>,
    /// Marks of the axis, if not its own.
    pub marks: Vec<(u64, String)>,
    /// A line through all rows, and a band around it: no difference, and a small one.
    pub origin: Option<(u64, (u64, u64))>,
    /// From the top.
    pub rows: Vec<DotRow>,
}

/// A row of values.
#[derive(Clone, Debug)]
pub struct DotRow {
    /// Whose they are.
    pub name: String,
    /// Their colour.
    pub ink: Ink,
    /// Each value, with what a reader is told of it.
    pub dots: Vec<(u64, String)>,
    /// What all of them come to, written at the end of the row.
    pub value: String,
    /// An interval around the middle, both of its ends.
    pub bar: Option<(u64, u64)>,
    /// The middle: a median, or an estimate.
    pub middle: Option<(u64, String)>,
    /// A published value, drawn as a hollow mark.
    pub published: Option<(u64, String)>,
}

/// One CPU's row.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its name at the left.
    pub name: String,
    /// Begin, end and colour of what had the CPU, in nanoseconds; gaps are idle time.
    pub stretches: Vec<(u64, u64, usize)>,
    /// What a pointer is told of each of them; empty: the lane and the colour's name.
    pub told: Vec<String>,
}

impl Chart {
    /// The one value of all curves all the time, in words; nothing if there is something to see.
    #[must_use]
    pub fn level(&self) -> Option<String> {
        let Body::Curves {
            y,
            curves,
            span: Some(_),
            ..
        } = &self.body
        else {
            return None;
        };
        let mut values = curves.iter().flat_map(|it| &it.points).map(|(_, y)| *y);
        let first = values.next()??;
        let is_level = curves.iter().all(|it| it.points.len() > 1);
        (is_level && values.all(|it| it == Some(first))).then(|| y.quantity.written(first))
    }
}

impl Body {
    /// Whether there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Curves { curves, .. } | Self::Panels { curves, .. } => curves
                .iter()
                .all(|curve| curve.points.iter().all(|(_, y)| y.is_none())),
            Self::Grid { panels, .. } => {
                let mut curves = panels.iter().flat_map(|(_, curves)| curves);
                curves.all(|curve| curve.points.iter().all(|(_, y)| y.is_none()))
            }
            Self::Dots { panels } => panels.iter().all(|panel| {
                let mut rows = panel.rows.iter();
                rows.all(|row| {
                    row.dots.is_empty() && row.middle.is_none() && row.published.is_none()
                })
            }),
            Self::Lanes { lanes, .. } => lanes.iter().all(|lane| lane.stretches.is_empty()),
        }
    }
}
