//! Every order of a run in which one CPU stops once, and those near each other of two stalls.

mod pairs;
mod starved;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use explain::why::{Fault, Finding, Observer, Right};
use model::{Exit, Interleave, Nanos, SimTime, Stall};
use sim::{Interleaved, Simulation};
use workload::RunSpec;

pub use self::pairs::TriedPairs;

use crate::error::{Error, of_run};
use crate::right;
use crate::services::Services;
use crate::trial;
use crate::violation;

/// Lengths of the stall: shorter than a callback of another CPU, a few of them, and many.
const SPANS: [Nanos; 3] = [
    Nanos::from_micros(1),
    Nanos::from_micros(20),
    Nanos::from_micros(400),
];
/// Length of an order if nothing else is asked for.
pub const SHORT: Nanos = Nanos::from_millis(1);
/// A task that still waits so long after the end of an order is starved, if no CPU comes for it in
/// the order without a stall either.
const STARVED: Nanos = Nanos::from_secs(1);

/// Tries every order with one stall, and some with two.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The run. Without a duration it takes 1 ms.
    pub spec: RunSpec,
    /// Threads.
    pub jobs: NonZeroUsize,
    /// If none with one stall shows a fault, those with two are tried.
    pub pairs: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct TriedOrders {
    /// Accesses before which it matters whether another CPU comes in between.
    pub conflicts: usize,
    /// All accesses.
    pub accesses: u64,
    /// Orders that were tried: one for each of `conflicts` and each length, in the order of the
    /// accesses, unless the time was over before.
    pub tried: usize,
    /// The access before which the last of these has its stall; 0 if there is none.
    pub reached: u64,
    /// Orders with a fault, in the order of their points.
    pub faults: Vec<OrderFault>,
    /// Those with two stalls, if they were tried. All `faults` are of them then.
    pub pairs: Option<TriedPairs>,
    /// What is wrong without any stall, if something is; then nothing else is tried.
    pub undisturbed: Option<Box<OrderFault>>,
}

/// An order that ends in a fault.
#[derive(Clone, Debug)]
pub struct OrderFault {
    /// Where CPUs stop, in the order of the points; none: nowhere.
    pub stalls: Vec<Stall>,
    /// What is wrong.
    pub finding: Finding,
    /// After so much simulated time it shows.
    pub duration: Nanos,
}

impl TriedOrders {
    /// Lengths of the stalls.
    pub const SPANS: [Nanos; 3] = SPANS;

    /// Orders with one stall that there are.
    #[must_use]
    pub const fn all(&self) -> usize {
        self.conflicts * SPANS.len()
    }

    /// Whether all were tried.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.tried == self.all()
    }
}

/// What the order without a stall comes to: what others are compared with.
#[derive(Debug)]
struct Undisturbed {
    found: Interleaved,
    /// Its longest wait.
    longest: Nanos,
    /// Classes of its waits that still go on a second later.
    classes: BTreeSet<Fault>,
    fault: Option<OrderFault>,
}

impl Orders {
    /// Makes all runs. When `is_over`, or when nobody waits for the answer any more, no run is
    /// begun, and the answer is that of the runs before.
    ///
    /// # Errors
    /// When policy, load or machine are bad.
    pub fn ask(
        &self,
        services: &Services<'_>,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<TriedOrders, Error> {
        Ok(self.answer(services, is_over)?)
    }

    fn answer(
        &self,
        services: &Services<'_>,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> anyhow::Result<TriedOrders> {
        let tries = Tries {
            spec: &self.spec,
            length: self.spec.duration.unwrap_or(SHORT),
            right: right::declared(&self.spec.policy),
        };
        let usual = tries.undisturbed(services)?;
        let mut tried = TriedOrders {
            conflicts: usual.found.conflicts.len(),
            accesses: usual.found.points,
            tried: 0,
            reached: 0,
            faults: Vec::new(),
            pairs: None,
            undisturbed: usual.fault.clone().map(Box::new),
        };
        if tried.undisturbed.is_some() {
            return Ok(tried);
        }
        let points = usual.found.conflicts.iter();
        let stalls = points.flat_map(|&point| SPANS.map(|span| Stall { point, span }));
        let stalls: Vec<Stall> = stalls.collect();
        // Whoever gives up gets what was done.
        let patient = Services {
            is_cancelled: None,
            ..*services
        };
        let stops = || is_over() || services.check().is_err();
        let one = |stall: &Stall| {
            if stops() {
                return Ok(None);
            }
            tries.fault_of(&[*stall], &usual).map(Some)
        };
        let made = patient.map(&stalls, self.jobs, "orders", one)?;
        // Later ones may have been made beside the first one that was not.
        for (stall, made) in stalls.iter().zip(made.into_iter().map_while(|made| made)) {
            tried.tried += 1;
            tried.reached = stall.point;
            tried.faults.extend(made);
        }
        if self.pairs && tried.is_whole() && tried.faults.is_empty() {
            let firsts = (stalls.as_slice(), self.jobs);
            let (pairs, faults) = tries.pairs(&patient, firsts, &usual, &stops)?;
            (tried.pairs, tried.faults) = (Some(pairs), faults);
        }
        Ok(tried)
    }
}

/// The runs of orders.
#[derive(Debug)]
struct Tries<'a> {
    spec: &'a RunSpec,
    length: Nanos,
    /// What the policy declares.
    right: Option<Right>,
}

impl Tries<'_> {
    fn undisturbed(&self, services: &Services<'_>) -> anyhow::Result<Undisturbed> {
        let spec = self.order(&[], self.length);
        let run = Simulation::new(&spec).with_options(violation::options());
        let finished = run.looking_for_races().start().map_err(of_run)?;
        let (short, _) = self.run(&[], self.length)?;
        let duration = self.length + STARVED;
        let (long, exit) = self.run(&[], duration)?;
        let mut fault = long.finding().filter(Finding::is_fault);
        if let Some(finding) = fault.as_mut().filter(|_| !exit.kind.is_error()) {
            let run = (&self.order(&[], duration), violation::options());
            let is_contract =
                trial::is_contract(finding) && trial::attempt(services, run, finding)?.is_contract;
            fault = fault.filter(|_| is_contract);
        }
        let fault = fault.map(|finding| OrderFault {
            stalls: Vec::new(),
            finding,
            duration,
        });
        // Those that began later may be those of tasks that only wait for their turn.
        let begun = SimTime::ZERO + self.length;
        let open = long.open_waits().into_iter();
        let open = open.filter(|wait| wait.since <= begun);
        let open = open.filter_map(|wait| long.open_finding(wait.task));
        Ok(Undisturbed {
            found: finished.interleaved.unwrap_or_default(),
            longest: short.longest_wait(),
            classes: open.map(|finding| finding.fault).collect(),
            fault,
        })
    }

    /// The run with these stalls, for so long.
    fn order(&self, stalls: &[Stall], duration: Nanos) -> RunSpec {
        let mut spec = self.spec.clone();
        spec.machine.interleave = Some(Interleave::At(stalls.to_vec()));
        spec.duration = Some(duration);
        spec
    }

    /// What was made of it: what was seen, and how it ended.
    fn run(&self, stalls: &[Stall], duration: Nanos) -> anyhow::Result<(Observer, Exit)> {
        let spec = self.order(stalls, duration);
        let mut observer = right::judged_by(self.right, &spec, Observer::new(1, None));
        let run = Simulation::new(&spec).with_options(violation::options());
        let finished = run.with_sink(&mut observer).start().map_err(of_run)?;
        Ok((observer, finished.summary.exit))
    }
}
