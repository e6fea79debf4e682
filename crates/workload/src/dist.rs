//! Spans of time drawn from a distribution.

use model::{Nanos, Rng};

/// Draws are cut here: 100 days, so that sums of draws never overflow.
pub const DRAW_MAX: Nanos = Nanos::from_secs(8_640_000);

/// A distribution of spans. Parameters that are spans are whole nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Dist {
    /// Always the same.
    Const(Nanos),
    /// Every whole nanosecond of a closed range within [`DRAW_MAX`], equally likely.
    Uniform(Nanos, Nanos),
    /// Exponential with this mean.
    Exp(Nanos),
    /// Log-normal: the logarithm is normal with mean `ln(median)` and deviation `sigma`.
    Lognormal {
        /// Half of the draws are shorter.
        median: Nanos,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// Pareto: the chance to exceed `x` is `(scale / x)^shape`.
    Pareto {
        /// The shortest draw.
        scale: Nanos,
        /// Tail exponent; the mean is finite above 1.
        shape: f64,
    },
    /// One of several spans, by weight. The weights' sum fits 64 bits and is not zero.
    Hist(Vec<(Nanos, u64)>),
}

impl Dist {
    /// One draw: the exact value rounded to the nearest nanosecond and cut at [`DRAW_MAX`].
    ///
    /// The logarithms and powers come from `libm`, so the same seed draws the same spans on
    /// every machine.
    #[must_use]
    pub fn sample(&self, rng: &mut Rng) -> Nanos {
        match self {
            Self::Const(span) => *span,
            Self::Uniform(low, high) => {
                let choices = high.get() - low.get() + 1;
                Nanos::new(low.get() + rng.below(choices))
            }
            Self::Exp(mean) => round(as_f64(*mean) * -libm::log(above_zero(rng))),
            Self::Lognormal { median, sigma } => {
                round(as_f64(*median) * libm::exp(sigma * normal(rng)))
            }
            Self::Pareto { scale, shape } => {
                round(as_f64(*scale) * libm::pow(above_zero(rng), -1.0 / shape))
            }
            Self::Hist(bins) => pick(bins, rng),
        }
    }
}

fn pick(bins: &[(Nanos, u64)], rng: &mut Rng) -> Nanos {
    let mut left = rng.below(bins.iter().map(|(_, weight)| weight).sum());
    for &(span, weight) in bins {
        if left < weight {
            return span;
        }
        left -= weight;
    }
    unreachable!("a draw below the sum of the weights falls into a bin")
}

/// A number in `(0, 1]`, so that its logarithm is finite.
fn above_zero(rng: &mut Rng) -> f64 {
    1.0 - rng.unit()
}

/// A draw from the standard normal distribution.
///
/// Source: Marsaglia and Bray (1964), "A Convenient Method for Generating Normal Variables".
fn normal(rng: &mut Rng) -> f64 {
    loop {
        let (x, y) = (2.0 * rng.unit() - 1.0, 2.0 * rng.unit() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * libm::sqrt(-2.0 * libm::log(square) / square);
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "spans beyond 104 days do not occur: DRAW_MAX"
)]
fn as_f64(span: Nanos) -> f64 {
    span.get() as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and DRAW_MAX is far below the limit"
)]
fn round(ns: f64) -> Nanos {
    Nanos::new(libm::round(ns) as u64).min(DRAW_MAX)
}
