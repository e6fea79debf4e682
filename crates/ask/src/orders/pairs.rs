//! Orders with two stalls.
//!
//! There are too many to try all. A second stall matters most where it comes soon behind the first
//! one, while that CPU still stops or has just gone on.

use std::num::NonZeroUsize;

use model::Stall;
use sim::Simulation;

use super::{OrderFault, SPANS, Tries, Undisturbed};
use crate::error::of_run;
use crate::services::Services;
use crate::violation;

/// Orders with two stalls that were tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriedPairs {
    /// Those that there are, with the second stall near the first one.
    pub all: usize,
    /// Those that were tried, the nearest stalls first, up to the first faults.
    pub tried: usize,
    /// The time was over before all were tried.
    pub is_over: bool,
}

impl TriedPairs {
    /// Of the accesses behind the first stall that others can see, or calls of the kernel, so many
    /// are tried for the second one.
    pub const NEAR: usize = 64;
}

/// Whether nobody waits for more.
type Stops<'a> = &'a (dyn Fn() -> bool + Sync);

impl Tries<'_> {
    /// Tries a second stall behind each of `firsts`, none of which shows a fault alone.
    pub(super) fn pairs(
        &self,
        services: &Services<'_>,
        (firsts, jobs): (&[Stall], NonZeroUsize),
        usual: &Undisturbed,
        stops: Stops<'_>,
    ) -> anyhow::Result<(TriedPairs, Vec<OrderFault>)> {
        let seconds = |first: &Stall| {
            if stops() {
                return Ok(None);
            }
            self.seconds(*first).map(Some)
        };
        let seconds = services.map(firsts, jobs, "first stalls", seconds)?;
        let mut tried = TriedPairs {
            all: seconds.iter().flatten().map(Vec::len).sum::<usize>() * SPANS.len(),
            tried: 0,
            is_over: seconds.iter().any(Option::is_none),
        };
        let mut faults = Vec::new();
        for distance in 0..TriedPairs::NEAR {
            if tried.is_over || !faults.is_empty() {
                break;
            }
            let both = firsts.iter().zip(seconds.iter().flatten());
            let near = both.filter_map(|(first, points)| Some((*first, *points.get(distance)?)));
            let pairs: Vec<[Stall; 2]> = near
                .flat_map(|(first, point)| SPANS.map(|span| [first, Stall { point, span }]))
                .collect();
            let one = |pair: &[Stall; 2]| {
                if stops() {
                    return Ok(None);
                }
                self.fault_of(pair, usual).map(Some)
            };
            let made = services.map(&pairs, jobs, "orders with two stalls", one)?;
            tried.is_over = made.iter().any(Option::is_none);
            for fault in made.into_iter().map_while(|made| made) {
                tried.tried += 1;
                faults.extend(fault);
            }
        }
        Ok((tried, faults))
    }

    /// Accesses behind a stall before which another one matters.
    fn seconds(&self, first: Stall) -> anyhow::Result<Vec<u64>> {
        let spec = self.order(&[first], self.length);
        let run = Simulation::new(&spec).with_options(violation::options());
        let finished = run.looking_for_races().start().map_err(of_run)?;
        let points = finished.interleaved.unwrap_or_default().conflicts;
        let behind = points.into_iter().filter(|point| *point > first.point);
        Ok(behind.take(TriedPairs::NEAR).collect())
    }
}
