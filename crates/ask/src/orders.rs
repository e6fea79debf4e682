//! Every order of a run in which one CPU stops once.

use std::num::NonZeroUsize;

use model::{Exit, Interleave, Nanos, Stall};
use sim::{Interleaved, Simulation};
use workload::RunSpec;

use crate::error::{Error, of_run};
use crate::services::Services;
use crate::violation;

/// Lengths of the stall: shorter than a callback of another CPU, a few of them, and many.
const SPANS: [Nanos; 3] = [
    Nanos::from_micros(1),
    Nanos::from_micros(20),
    Nanos::from_micros(400),
];
/// Runs of one round that are made at once.
const ROUND: usize = 256;

/// Tries every order with one stall.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The run.
    pub spec: RunSpec,
    /// Threads.
    pub jobs: NonZeroUsize,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct TriedOrders {
    /// Accesses before which it matters whether another CPU comes in between.
    pub conflicts: usize,
    /// All accesses.
    pub accesses: u64,
    /// Runs that were made: one for each of `conflicts` and each length, and one without a stall.
    pub runs: usize,
    /// Stalls that end in an ejection, in the order of their points.
    pub faults: Vec<(Stall, Exit)>,
    /// Why the policy is ejected without any stall, if it is; then nothing else is tried.
    pub ejected: Option<Exit>,
}

impl TriedOrders {
    /// Lengths of the stalls.
    pub const SPANS: [Nanos; 3] = SPANS;
}

impl Orders {
    /// Makes all runs.
    ///
    /// # Errors
    /// When policy, load or machine are bad, or nobody waits any more.
    pub fn ask(&self, services: &Services<'_>) -> Result<TriedOrders, Error> {
        Ok(self.answer(services)?)
    }

    fn answer(&self, services: &Services<'_>) -> anyhow::Result<TriedOrders> {
        let (found, exit) = self.run(Vec::new(), true)?;
        let mut tried = TriedOrders {
            conflicts: found.conflicts.len(),
            accesses: found.points,
            runs: 1,
            faults: Vec::new(),
            ejected: Some(exit).filter(|exit| exit.kind.is_error()),
        };
        if tried.ejected.is_some() {
            return Ok(tried);
        }
        let points = found.conflicts.into_iter();
        let stalls = points.flat_map(|point| SPANS.map(|span| Stall { point, span }));
        let stalls: Vec<Stall> = stalls.collect();
        for round in stalls.chunks(ROUND) {
            let exit_of = |stall: &Stall| Ok(self.run(vec![*stall], false)?.1);
            let exits = services.map(round, self.jobs, "orders", exit_of)?;
            tried.runs += round.len();
            let faults = round.iter().copied().zip(exits);
            tried
                .faults
                .extend(faults.filter(|(_, exit)| exit.kind.is_error()));
        }
        Ok(tried)
    }

    fn run(&self, stalls: Vec<Stall>, looks: bool) -> anyhow::Result<(Interleaved, Exit)> {
        let mut spec = self.spec.clone();
        spec.machine.interleave = Some(Interleave::At(stalls));
        let run = Simulation::new(&spec).with_options(violation::options());
        let run = if looks { run.looking_for_races() } else { run };
        let finished = run.start().map_err(of_run)?;
        let found = finished.interleaved.unwrap_or_default();
        Ok((found, finished.summary.exit))
    }
}
