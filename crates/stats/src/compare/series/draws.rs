//! Blocks and jitters that are drawn, and figures of what was drawn.

use model::Rng;

use super::{BLOCKS_MIN, CellStatistic, Correlation, correlation};
use crate::BlockLengths;
use crate::compare::effect::{Effect, Scale};
use crate::compare::robust::{Trimmed, beyond, student};
use crate::compare::{Measure, Refusal, Settings};

/// How often is drawn. The standard error is then known to a thirtieth of it.
const DRAWS: usize = 400;

/// Spans of all reruns of one candidate, by jitter and cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellFigure {
    /// All lengths that occur, in nanoseconds, rising.
    lengths: Vec<u64>,
    /// By jitter and cell: the place of a length, and how often it came.
    cells: Vec<Vec<Vec<(u32, u64)>>>,
}

impl CellFigure {
    /// Of spans by jitter and cell, put together to `cells` cells of equal length, or left as they
    /// are if there are fewer.
    ///
    /// # Panics
    /// Never: every length was collected before its place is asked for.
    #[must_use]
    pub fn new(of: &[&[BlockLengths]], cells: usize) -> Self {
        let all = of
            .iter()
            .copied()
            .flatten()
            .flat_map(|cell| cell.keys().copied());
        let mut lengths: Vec<u64> = all.collect();
        lengths.sort_unstable();
        lengths.dedup();
        let place = |length: &u64| {
            let at = lengths.binary_search(length).expect("it was collected");
            u32::try_from(at).expect("fewer than 2^32 lengths of 8 bits and a power")
        };
        let folded = |run: &[BlockLengths]| {
            let cells = cells.clamp(1, run.len().max(1));
            let mut folded = vec![Vec::new(); cells];
            for (at, spans) in run.iter().enumerate() {
                let spans = spans.iter().map(|(length, count)| (place(length), *count));
                folded[at * cells / run.len()].extend(spans);
            }
            folded
        };
        let cells = of.iter().map(|run| folded(run));
        Self {
            cells: cells.collect(),
            lengths,
        }
    }

    /// How many spans a rerun has.
    #[must_use]
    pub fn spans(&self) -> u64 {
        let first = self.cells.first().into_iter().flatten().flatten();
        first.map(|(_, count)| count).sum()
    }

    /// The number of cells of a rerun.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.cells.first().map_or(0, Vec::len)
    }

    /// The figure of everything, in nanoseconds; `None` without a span.
    #[must_use]
    pub fn value(&self, statistic: CellStatistic) -> Option<f64> {
        self.figure(statistic, &|_, _| 1)
    }

    /// The figure of so many blocks of equal length, block by block.
    #[must_use]
    pub fn by_block(&self, statistic: CellStatistic, blocks: usize) -> Vec<Option<f64>> {
        let place = |cell: usize| cell * blocks / self.cells().max(1);
        let one = |block: usize| self.figure(statistic, &|_, cell| u64::from(place(cell) == block));
        (0..blocks).map(one).collect()
    }

    /// The figure where a cell of a jitter counts `weight` times.
    fn figure(
        &self,
        statistic: CellStatistic,
        weight: &dyn Fn(usize, usize) -> u64,
    ) -> Option<f64> {
        let mut counts = vec![0_u64; self.lengths.len()];
        for (jitter, run) in self.cells.iter().enumerate() {
            for (cell, spans) in run.iter().enumerate() {
                let times = weight(jitter, cell);
                if times > 0 {
                    for (at, count) in spans {
                        counts[*at as usize] += count * times;
                    }
                }
            }
        }
        let all: u64 = counts.iter().sum();
        let both = || self.lengths.iter().zip(&counts);
        match statistic {
            _ if all == 0 => None,
            CellStatistic::Mean => {
                let sum: f64 = both().map(|(it, count)| *it as f64 * *count as f64).sum();
                Some(sum / all as f64)
            }
            CellStatistic::Permille(permille) => {
                let rank = (u128::from(all) * u128::from(permille))
                    .div_ceil(1000)
                    .max(1);
                let mut below = 0_u128;
                let found = both().find(|(_, count)| {
                    below += u128::from(**count);
                    below >= rank
                });
                found.map(|(it, _)| *it as f64)
            }
        }
    }

    /// By cell of the first jitter: by how much it pulls the figure up, and how many spans it has.
    fn pull(&self, statistic: CellStatistic) -> Vec<(f64, f64)> {
        let Some(value) = self.value(statistic) else {
            return vec![(0.0, 0.0); self.cells()];
        };
        let of = |cell: &Vec<(u32, u64)>| {
            let spans = || {
                cell.iter()
                    .map(|(at, n)| (self.lengths[*at as usize] as f64, *n as f64))
            };
            let count: f64 = spans().map(|(_, n)| n).sum();
            let pull = match statistic {
                CellStatistic::Mean => spans().map(|(it, n)| (it - value) * n).sum(),
                CellStatistic::Permille(permille) => {
                    let beyond: f64 = spans().filter(|(it, _)| *it > value).map(|(_, n)| n).sum();
                    beyond - count * (1.0 - f64::from(permille) / 1000.0)
                }
            };
            (pull, count)
        };
        self.cells
            .first()
            .map_or_else(Vec::new, |run| run.iter().map(of).collect())
    }

    /// How the figure's cells depend on each other.
    #[must_use]
    pub fn correlation(&self, statistic: CellStatistic) -> Correlation {
        let pull: Vec<f64> = self.pull(statistic).into_iter().map(|it| it.0).collect();
        correlation(&pull)
    }

    /// How many independent spans of a rerun lie beyond a percentile: so many fewer than there are
    /// as the sum of a block's varies more than that of independent ones. Endless for a mean.
    #[must_use]
    pub fn beyond(&self, statistic: CellStatistic) -> f64 {
        let CellStatistic::Permille(permille) = statistic else {
            return f64::INFINITY;
        };
        let pull = self.pull(statistic);
        let spans: f64 = pull.iter().map(|it| it.1).sum();
        let part = 1.0 - f64::from(permille) / 1000.0;
        let apart = spans * part * (1.0 - part);
        let together = self.correlation(statistic).variance * pull.len() as f64;
        if apart <= 0.0 {
            return 0.0;
        }
        spans * part / (together / apart).max(1.0)
    }
}

/// Which blocks and jitters are drawn; the same for all candidates.
#[derive(Clone, Debug)]
pub struct Draws {
    blocks: usize,
    /// Each draw: how often each cell counts, and each jitter.
    draws: Vec<(Vec<u16>, Vec<u16>)>,
}

impl Draws {
    /// Blocks of `block` cells out of `cells`, which are a circle, and as many jitters as there
    /// are; both at least 1.
    ///
    /// Source: Politis and Romano (1992), "A circular block-resampling procedure for stationary
    /// data"; of the two ways at once Owen (2007), "The pigeonhole bootstrap".
    ///
    /// # Panics
    /// Never: what is drawn is below a length.
    #[must_use]
    pub fn new((cells, block): (usize, usize), jitters: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0);
        let mut below =
            |most: usize| usize::try_from(rng.below(most.max(1) as u64)).expect("below a length");
        let mut one = || {
            let mut of_cells = vec![0_u16; cells];
            let mut left = cells;
            while left > 0 {
                let from = below(cells);
                let length = block.clamp(1, left);
                (from..from + length).for_each(|at| of_cells[at % cells] += 1);
                left -= length;
            }
            let mut of_jitters = vec![0_u16; jitters];
            (0..jitters).for_each(|_| of_jitters[below(jitters)] += 1);
            (of_cells, of_jitters)
        };
        Self {
            draws: (0..DRAWS).map(|_| one()).collect(),
            blocks: cells / block.max(1),
        }
    }

    /// How many blocks there are.
    #[must_use]
    pub const fn blocks(&self) -> usize {
        self.blocks
    }
}

/// A candidate's figure of everything, and of each draw.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnFigure {
    /// The figure of everything, in nanoseconds.
    pub value: f64,
    /// That of each draw; `None` where nothing was drawn that has spans.
    drawn: Vec<Option<f64>>,
}

impl CellFigure {
    /// The figure of everything and of each draw; `None` without a span.
    #[must_use]
    pub fn drawn(&self, statistic: CellStatistic, draws: &Draws) -> Option<DrawnFigure> {
        let of = |(cells, jitters): &(Vec<u16>, Vec<u16>)| {
            let times = |of: &[u16], at: usize| u64::from(of.get(at).copied().unwrap_or(0));
            let weight = |jitter: usize, cell: usize| times(jitters, jitter) * times(cells, cell);
            self.figure(statistic, &weight)
        };
        Some(DrawnFigure {
            value: self.value(statistic)?,
            drawn: draws.draws.iter().map(of).collect(),
        })
    }
}

/// Two candidates' figures: the log ratio of the second to the first, with its interval.
///
/// Values below `least` count as `least`. The interval is that of Student's distribution with the
/// blocks as observations around the standard error of the draws, which `n / (n - 1)` corrects for
/// the variance of few blocks.
///
/// Source: Efron and Tibshirani (1993), "An Introduction to the Bootstrap", sections 12.2 and
/// 12.4; of the factor Hesterberg (2015), "What teachers should know about the bootstrap", 4.1.
///
/// # Errors
/// When there are fewer than [`BLOCKS_MIN`] blocks, or hardly a draw has spans of both.
pub fn compare_figures(
    [base, other]: [&DrawnFigure; 2],
    (blocks, least): (usize, f64),
    settings: &Settings,
) -> Result<Effect, Refusal> {
    if blocks < BLOCKS_MIN {
        return Err(Refusal::TooFew {
            have: blocks,
            need: BLOCKS_MIN,
        });
    }
    let log = |value: f64| libm::log(value.max(least));
    let both = base.drawn.iter().zip(&other.drawn);
    let drawn = both.filter_map(|(first, second)| Some(log((*second)?) - log((*first)?)));
    let drawn: Vec<f64> = drawn.collect();
    if drawn.len() < DRAWS / 2 {
        return Err(Refusal::Missing);
    }
    let shift = log(other.value) - log(base.value);
    let freedom = blocks as f64 - 1.0;
    let error = deviation(&drawn) * ((freedom + 1.0) / freedom).sqrt();
    let values = [base.value, other.value];
    Ok(of_error(
        (shift, error, freedom),
        values,
        [blocks; 2],
        settings,
    ))
}

/// Values of reruns that have no blocks, jitter by jitter: the log ratio of the second to the
/// first, with the interval of Student's distribution. Values below `least` count as `least`.
///
/// # Errors
/// When there are fewer than three pairs, or a value is no number.
pub fn compare_values(
    pairs: &[(f64, f64)],
    least: f64,
    settings: &Settings,
) -> Result<Effect, Refusal> {
    const PAIRS_MIN: usize = 3;
    let count = pairs.len();
    if count < PAIRS_MIN {
        return Err(Refusal::TooFew {
            have: count,
            need: PAIRS_MIN,
        });
    }
    let mut all = pairs.iter().flat_map(|(a, b)| [*a, *b]);
    if let Some(value) = all.find(|it| !it.is_finite()) {
        return Err(Refusal::NoNumber { value });
    }
    let log = |value: f64| libm::log(value.max(least));
    let shifts: Vec<f64> = pairs.iter().map(|(a, b)| log(*b) - log(*a)).collect();
    let mean = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>() / count as f64;
    let ends = [
        mean(&mut pairs.iter().map(|it| it.0)),
        mean(&mut pairs.iter().map(|it| it.1)),
    ];
    let error = deviation(&shifts) / (count as f64).sqrt();
    let shift = mean(&mut shifts.iter().copied());
    Ok(of_error(
        (shift, error, count as f64 - 1.0),
        ends,
        [count; 2],
        settings,
    ))
}

/// The standard deviation.
fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|it| (it - mean) * (it - mean)).sum();
    (squares / (count - 1.0)).sqrt()
}

/// A shift with its standard error, as others have it.
fn of_error(
    (shift, error, freedom): (f64, f64, f64),
    [base, other]: [f64; 2],
    values: [usize; 2],
    settings: &Settings,
) -> Effect {
    let margin = Scale::Log.margin(settings, Measure::Nanos);
    // Without an error every distance but none is endless.
    let tail = |distance: f64| {
        if error > 0.0 {
            beyond(distance / error, freedom)
        } else {
            f64::from(u8::from(distance <= 0.0))
        }
    };
    let reach = if error > 0.0 {
        student(settings.level(), freedom) * error
    } else {
        0.0
    };
    let inside = margin - shift.abs();
    let p_same = if inside > 0.0 {
        tail(inside) / 2.0
    } else {
        1.0
    };
    let (low, high) = (shift - reach, shift + reach);
    Effect {
        scale: Scale::Log,
        is_paired: true,
        values,
        base,
        other,
        shift,
        low,
        high,
        margin,
        p: tail(shift.abs()),
        p_same,
        p_least: if error > 0.0 || shift != 0.0 {
            0.0
        } else {
            1.0
        },
        trimmed: Trimmed { shift, low, high },
    }
}
