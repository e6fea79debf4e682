//! Reads distributions of spans.

use super::{Failure, Parser, range};
use crate::token::Token;
use crate::{Amount, Dist, Expr};
use model::Nanos;
use model::file::Problem;

impl Parser<'_> {
    /// A span of time.
    pub fn span(&mut self) -> Result<Nanos, Failure> {
        let Token::Span(span) = *self.peek() else {
            return self.fail("a span of time with its unit, as `1.5ms`");
        };
        self.take();
        Ok(span)
    }

    /// A distribution and what its draws are multiplied by.
    pub fn amount(&mut self) -> Result<Amount, Failure> {
        let dist = self.dist()?;
        let times = if self.accept("*") {
            if matches!(self.peek(), Token::Decimal(_)) {
                return self.fail("a whole number as the factor, as `2`, a name or `( e )`");
            }
            self.factor()?
        } else {
            Expr::Number(1)
        };
        Ok(Amount { dist, times })
    }

    /// A distribution of spans.
    pub fn dist(&mut self) -> Result<Dist, Failure> {
        if matches!(self.peek(), Token::Span(_)) {
            return Ok(Dist::Const(self.span()?));
        }
        let (name, at) = self.name("a span of time, as `1.5ms`, or a distribution")?;
        let known = ["const", "uniform", "exp", "lognormal", "pareto", "hist"];
        if !known.contains(&name.as_str()) {
            return Err((Problem::unknown("distribution", &name, known), at));
        }
        self.expect("(")?;
        let dist = match name.as_str() {
            "const" => Dist::Const(self.span()?),
            "uniform" => self.uniform()?,
            "exp" => Dist::Exp(self.span()?),
            "lognormal" => {
                let median = self.span()?;
                Dist::Lognormal {
                    median,
                    sigma: self.positive("sigma")?,
                }
            }
            "pareto" => {
                let scale = self.span()?;
                Dist::Pareto {
                    scale,
                    shape: self.positive("the shape")?,
                }
            }
            _ => Dist::Hist(self.bins()?),
        };
        self.expect(")")?;
        Ok(dist)
    }

    fn uniform(&mut self) -> Result<Dist, Failure> {
        let low = self.span()?;
        self.expect(",")?;
        let at = self.offset();
        let high = self.span()?;
        if low > high {
            let expected = format!("a span of at least {} ns", low.get());
            return Err((
                Problem::unexpected(format!("{} ns", high.get()), expected),
                at,
            ));
        }
        Ok(Dist::Uniform(low, high))
    }

    /// A comma and a number above zero.
    fn positive(&mut self, what: &str) -> Result<f64, Failure> {
        self.expect(",")?;
        let at = self.offset();
        let value = match self.take() {
            Token::Decimal(value) => value,
            Token::Integer(value) if value <= 1_000 => f64::from(i16::try_from(value).unwrap_or(0)),
            found => return Err((Problem::unexpected(found.to_string(), "a number"), at)),
        };
        if value > 0.0 && value <= 1_000.0 {
            return Ok(value);
        }
        let expected = "more than 0 and at most 1000".to_owned();
        Err((
            Problem::Range {
                what: what.to_owned(),
                found: value.to_string(),
                expected,
            },
            at,
        ))
    }

    fn bins(&mut self) -> Result<Vec<(Nanos, u64)>, Failure> {
        let at = self.offset();
        let mut bins = Vec::new();
        loop {
            let span = self.span()?;
            self.expect(":")?;
            bins.push((span, self.weight()?));
            if !self.accept(",") {
                break;
            }
        }
        check_weights(bins.iter().map(|(_, weight)| *weight)).map_err(|problem| (problem, at))?;
        Ok(bins)
    }

    /// A weight: a constant that is not negative.
    pub fn weight(&mut self) -> Result<u64, Failure> {
        let at = self.offset();
        let value = self.constant()?;
        u64::try_from(value).map_err(|_| (range("the weight", value, "0 or more"), at))
    }
}

/// Weights must have a sum to draw from.
pub(crate) fn check_weights(mut weights: impl Iterator<Item = u64>) -> Result<(), Problem> {
    let sum = weights.try_fold(0_u64, u64::checked_add);
    if sum.is_some_and(|sum| sum > 0) {
        return Ok(());
    }
    Err(Problem::unexpected(
        "weights whose sum is 0 or exceeds 64 bits",
        "weights to draw by",
    ))
}
