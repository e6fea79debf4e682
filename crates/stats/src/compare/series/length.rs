//! How long blocks must be so that one says nothing of the next.

/// Standard errors within which an autocorrelation counts as none.
const NONE: f64 = 2.0;

/// How the values of a series depend on those before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// The length of blocks, at least 1.
    pub block: usize,
    /// The variance of a sum of many values, by value: the spectral density at 0.
    pub variance: f64,
}

/// The length of the blocks of a circular block bootstrap for the mean of `series`.
///
/// The correlation ends where several autocorrelations one after the other are within two
/// standard errors of 0. Twice as many enter the flat-top window. A length is at most
/// `3 sqrt(n)` and at most `n / 3`.
///
/// Source: Politis and White (2004), "Automatic block-length selection for the dependent
/// bootstrap", sections 3.1 and 3.2, with the constant 4/3 of Patton, Politis and White (2009),
/// "Correction to ...".
#[must_use]
pub fn correlation(series: &[f64]) -> Correlation {
    let n = series.len() as f64;
    let own = covariance(series, 0);
    // Nothing follows from a handful of values, or from values without differences.
    if series.len() < 6 || own <= 0.0 {
        return Correlation {
            block: 1,
            variance: own.max(0.0),
        };
    }
    let last = window(series, own);
    let (mut slope, mut density) = (0.0, own);
    for lag in 1..=last.min(series.len() - 1) {
        let part = lag as f64 / last as f64;
        let weight = if part <= 0.5 { 1.0 } else { 2.0 * (1.0 - part) };
        let both = 2.0 * weight * covariance(series, lag);
        slope += both * lag as f64;
        density += both;
    }
    let longest = (3.0 * n.sqrt()).min(n / 3.0).ceil().max(1.0);
    // The window does not keep a density positive: then nothing shorter than the longest is safe.
    let block = if density > 0.0 {
        libm::cbrt(2.0 * slope * slope / (4.0 / 3.0 * density * density) * n)
    } else {
        longest
    };
    Correlation {
        block: block.ceil().clamp(1.0, longest) as usize,
        variance: density.max(own / n),
    }
}

/// The last lag of the window: twice the first one behind which there is no correlation.
fn window(series: &[f64], own: f64) -> usize {
    let digits = libm::log10(series.len() as f64);
    let limit = NONE * (digits / series.len() as f64).sqrt();
    let in_a_row = 5.max(digits.sqrt().ceil() as usize);
    let most = (series.len() as f64).sqrt().ceil() as usize + in_a_row;
    let mut quiet = 0;
    for lag in 1..=most.min(series.len() - 1) {
        quiet = if (covariance(series, lag) / own).abs() < limit {
            quiet + 1
        } else {
            0
        };
        if quiet == in_a_row {
            return 2 * (lag - in_a_row).max(1);
        }
    }
    2 * most
}

/// The autocovariance at a lag.
fn covariance(series: &[f64], lag: usize) -> f64 {
    let n = series.len() as f64;
    let mean = series.iter().sum::<f64>() / n.max(1.0);
    let both = series.iter().zip(series.get(lag..).unwrap_or_default());
    both.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / n.max(1.0)
}
