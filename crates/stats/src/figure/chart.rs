//! What a figure shows, before it is drawn.

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
        /// At most [`super::COLOURS`] have a colour of their own.
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
    /// Who has each CPU when.
    Lanes {
        /// Begin and end of all lanes, nanoseconds.
        span: (u64, u64),
        /// What the colours mean, in the order of their numbers.
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
}

/// One CPU's row.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its name at the left.
    pub name: String,
    /// Begin, end and colour of what had the CPU, in nanoseconds; gaps are idle time.
    pub stretches: Vec<(u64, u64, usize)>,
}

impl Body {
    /// Whether there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Curves { curves, .. } | Self::Panels { curves, .. } => curves
                .iter()
                .all(|curve| curve.points.iter().all(|(_, y)| y.is_none())),
            Self::Lanes { lanes, .. } => lanes.iter().all(|lane| lane.stretches.is_empty()),
        }
    }
}
