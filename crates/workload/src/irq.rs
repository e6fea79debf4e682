//! When interrupts arrive.

use crate::{Arrival, Dist, Interrupt};
use model::{Nanos, Rng, SimTime};

/// A source's place in its arrivals. The same seed gives the same arrivals.
#[derive(Clone, Debug)]
pub struct Source {
    rng: Rng,
    /// The last point of the grid, or the last arrival.
    base: SimTime,
}

impl Source {
    /// A source before its first arrival.
    #[must_use]
    pub fn new(declared: &Interrupt, rng: Rng) -> Self {
        Self {
            rng,
            base: SimTime::ZERO + declared.start,
        }
    }

    /// The first arrival.
    pub fn first(&mut self, declared: &Interrupt) -> SimTime {
        match &declared.arrival {
            Arrival::Periodic { .. } => self.late(declared),
            Arrival::Poisson { mean } => self.gap(*mean),
            Arrival::Once => self.base,
        }
    }

    /// The next arrival after `now`, at which the last one came.
    pub fn next(&mut self, declared: &Interrupt, now: SimTime) -> Option<SimTime> {
        match &declared.arrival {
            Arrival::Periodic { period, .. } => {
                self.base = self.base + *period;
                Some(self.late(declared))
            }
            Arrival::Poisson { mean } => {
                self.base = now;
                Some(self.gap(*mean))
            }
            Arrival::Once => None,
        }
    }

    /// CPU time that the arrival takes.
    pub fn cost(&mut self, declared: &Interrupt) -> Nanos {
        declared.cost.sample(&mut self.rng)
    }

    /// The grid's point and its jitter, which stays below the period so that order is kept.
    fn late(&mut self, declared: &Interrupt) -> SimTime {
        let Arrival::Periodic {
            period,
            jitter: Some(jitter),
        } = &declared.arrival
        else {
            return self.base;
        };
        self.base + jitter.sample(&mut self.rng).min(*period - Nanos::new(1))
    }

    /// A gap is never zero: two arrivals at one moment would be one.
    fn gap(&mut self, mean: Nanos) -> SimTime {
        let gap = Dist::Exp(mean).sample(&mut self.rng);
        self.base + gap.max(Nanos::new(1))
    }
}
