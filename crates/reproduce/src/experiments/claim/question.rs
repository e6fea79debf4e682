//! What is asked of the runs.

use super::Tolerance;

/// The values of one arm at one point, one a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimCell {
    /// How tables call it: `mlfq, hogs 8`.
    pub name: String,
    /// At least one.
    pub values: Vec<f64>,
}

/// Of a number: on which side of another it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Larger.
    Above,
    /// Smaller.
    Below,
}

/// A part of a statement, as something that runs can decide. Means are those over runs, ratios
/// those of means.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimQuestion<C = ClaimCell, T = Vec<String>> {
    /// The ratio of `arm` by `base` is on `side` of 1. *Reproduced*: it and its effect (ratio - 1)
    /// are within the factor `margin` of the published ones, if there are any, and it is beyond
    /// the factor `beyond` of 1. A ratio that is within `same` of 1 contradicts a published one
    /// that is not; one that is not beyond `beyond` contradicts that.
    Ratio {
        /// What is held against the base.
        arm: C,
        /// The base.
        base: C,
        /// On which side of 1 the ratio is said to be.
        side: Side,
        /// The published ratio.
        published: Option<f64>,
        /// Farthest factor from the published ratio, above 1.
        margin: f64,
        /// Least factor from 1, at least 1.
        beyond: f64,
    },
    /// The ratio is between `1 / (1 + margin)` and `1 + margin`.
    Equal {
        /// One side.
        arm: C,
        /// The other.
        base: C,
        /// As a part: 0.03 is 3 %.
        margin: f64,
    },
    /// The mean of a cell, or the ratio to another, is between two numbers.
    Within {
        /// The cell.
        cell: C,
        /// What it is divided by.
        base: Option<C>,
        /// Smallest, or minus infinity.
        low: f64,
        /// Largest, or infinity.
        high: f64,
        /// The published number that they lie around.
        published: Option<f64>,
    },
    /// The value of every single run is between two numbers.
    Every {
        /// The cells.
        cells: Vec<C>,
        /// Smallest, or minus infinity.
        low: f64,
        /// Largest, or infinity.
        high: f64,
    },
    /// The slope of a straight line through the means, or through their ratios to a base, is
    /// between two numbers.
    Slope {
        /// Place on the x axis, cell, and what it is divided by.
        points: Vec<(f64, C, Option<C>)>,
        /// Whether the line is one through logarithms.
        log: bool,
        /// Smallest, or minus infinity.
        low: f64,
        /// Largest, or infinity.
        high: f64,
    },
    /// No point's mean is farther from the (geometric) mean of all than the factor `1 + margin`.
    Flat {
        /// The points.
        points: Vec<C>,
        /// As a part: 0.1 is 10 %.
        margin: f64,
    },
    /// From point to point the mean, or its ratio to the base, moves to `side`. *Reproduced* needs
    /// the trend, and no step back that is for sure.
    Monotone {
        /// In their order.
        points: Vec<(C, Option<C>)>,
        /// Whether it rises or falls.
        side: Side,
    },
    /// The cells' means rise from the first to the last.
    Order {
        /// In the order that is said.
        cells: Vec<C>,
        /// How far, as a part, one may be above the next nevertheless: 0 for not at all.
        ties: f64,
    },
    /// One cell's mean is lower, or higher, than that of each other.
    Extreme {
        /// The one.
        cell: C,
        /// The others.
        others: Vec<C>,
        /// `Below` for the lowest.
        side: Side,
        /// How far, as a part, another may be beyond it nevertheless: 0 for not at all.
        ties: f64,
    },
    /// The lowest, or highest, of all points is one of those that are said to be.
    Turn {
        /// The points, and whether they are said to have it.
        points: Vec<(C, bool)>,
        /// `Below` for the lowest.
        side: Side,
    },
    /// Each pair has a ratio on its side of 1.
    Signs {
        /// Arm, base, and the side of their ratio.
        pairs: Vec<(C, C, Side)>,
    },
    /// Two numbers of the same run agree, in every run.
    Agree {
        /// One number.
        left: C,
        /// The other, of the same runs.
        right: C,
        /// As a part of the other: 0.01 is 1 %.
        margin: f64,
    },
    /// A sequence is this, in every run: exactly, or with times that may be off.
    Trace {
        /// The sequence that is said.
        want: String,
        /// That of each run; with `within`, its times are nanoseconds.
        got: T,
        /// How far times may be from those that are said; `None` where every letter counts.
        within: Option<Tolerance>,
        /// Whether more may follow.
        prefix: bool,
    },
    /// A question that is answered with yes here whatever the schedulers do.
    CannotFail {
        /// Why, in words.
        why: String,
        /// The question, which is asked nevertheless.
        question: Box<Self>,
    },
    /// It cannot be tried on this machine.
    NotTestable {
        /// Why, in words.
        why: String,
    },
    /// The runs lack what the question asks for.
    Lacking {
        /// What, in words.
        why: String,
    },
}

impl<C, T> ClaimQuestion<C, T> {
    /// The same question about what is found at its places. `cell` finds the values of a cell,
    /// `got` the sequences of a probe.
    ///
    /// # Errors
    /// The first that they give.
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of question")]
    pub fn fill<D, U>(
        &self,
        cell: &impl Fn(&C) -> Result<D, String>,
        got: &impl Fn(&T) -> Result<U, String>,
    ) -> Result<ClaimQuestion<D, U>, String> {
        let maybe = |base: &Option<C>| base.as_ref().map(cell).transpose();
        let all = |cells: &[C]| cells.iter().map(cell).collect::<Result<Vec<D>, String>>();
        Ok(match self {
            Self::Ratio {
                arm,
                base,
                side,
                published,
                margin,
                beyond,
            } => ClaimQuestion::Ratio {
                arm: cell(arm)?,
                base: cell(base)?,
                side: *side,
                published: *published,
                margin: *margin,
                beyond: *beyond,
            },
            Self::Equal { arm, base, margin } => ClaimQuestion::Equal {
                arm: cell(arm)?,
                base: cell(base)?,
                margin: *margin,
            },
            Self::Within {
                cell: one,
                base,
                low,
                high,
                published,
            } => ClaimQuestion::Within {
                cell: cell(one)?,
                base: maybe(base)?,
                low: *low,
                high: *high,
                published: *published,
            },
            Self::Every { cells, low, high } => ClaimQuestion::Every {
                cells: all(cells)?,
                low: *low,
                high: *high,
            },
            Self::Slope {
                points,
                log,
                low,
                high,
            } => {
                let point =
                    |(x, one, base): &(f64, C, Option<C>)| Ok((*x, cell(one)?, maybe(base)?));
                ClaimQuestion::Slope {
                    points: points.iter().map(point).collect::<Result<_, String>>()?,
                    log: *log,
                    low: *low,
                    high: *high,
                }
            }
            Self::Flat { points, margin } => ClaimQuestion::Flat {
                points: all(points)?,
                margin: *margin,
            },
            Self::Monotone { points, side } => {
                let point = |(one, base): &(C, Option<C>)| Ok((cell(one)?, maybe(base)?));
                ClaimQuestion::Monotone {
                    points: points.iter().map(point).collect::<Result<_, String>>()?,
                    side: *side,
                }
            }
            Self::Order { cells, ties } => ClaimQuestion::Order {
                cells: all(cells)?,
                ties: *ties,
            },
            Self::Extreme {
                cell: one,
                others,
                side,
                ties,
            } => ClaimQuestion::Extreme {
                cell: cell(one)?,
                others: all(others)?,
                side: *side,
                ties: *ties,
            },
            Self::Turn { points, side } => {
                let point = |(one, is): &(C, bool)| Ok((cell(one)?, *is));
                ClaimQuestion::Turn {
                    points: points.iter().map(point).collect::<Result<_, String>>()?,
                    side: *side,
                }
            }
            Self::Signs { pairs } => {
                let pair = |(arm, base, side): &(C, C, Side)| Ok((cell(arm)?, cell(base)?, *side));
                ClaimQuestion::Signs {
                    pairs: pairs.iter().map(pair).collect::<Result<_, String>>()?,
                }
            }
            Self::Agree {
                left,
                right,
                margin,
            } => ClaimQuestion::Agree {
                left: cell(left)?,
                right: cell(right)?,
                margin: *margin,
            },
            Self::Trace {
                want,
                got: traced,
                within,
                prefix,
            } => ClaimQuestion::Trace {
                want: want.clone(),
                got: got(traced)?,
                within: *within,
                prefix: *prefix,
            },
            Self::CannotFail { why, question } => ClaimQuestion::CannotFail {
                why: why.clone(),
                question: Box::new(question.fill(cell, got)?),
            },
            Self::NotTestable { why } => ClaimQuestion::NotTestable { why: why.clone() },
            Self::Lacking { why } => ClaimQuestion::Lacking { why: why.clone() },
        })
    }
}

impl Side {
    /// The other side.
    pub const fn other(self) -> Self {
        match self {
            Self::Above => Self::Below,
            Self::Below => Self::Above,
        }
    }
}

impl ClaimQuestion {
    /// The published number that the runs are held against, where there is one.
    pub const fn published(&self) -> Option<f64> {
        match self {
            Self::Ratio { published, .. } | Self::Within { published, .. } => *published,
            _ => None,
        }
    }
}
