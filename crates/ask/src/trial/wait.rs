//! Tries what may end one task's wait.

use std::collections::BTreeMap;

use explain::why::{End, Fault, Finding, Look, Situation};
use model::{Nanos, SimTime, TaskId};
use sim::{Checkpoint, Deed, Intervention};
use workload::RunSpec;

use super::cure::Cure;
use super::{CURED, CureTrial, EFFORT, MAY_FAIL, MAY_HELP, PLACEBOS, Unproven, begin_of, may_end};
use crate::runner::{Runner, resume};
use crate::services::Services;

/// Cures that are looked at without controls, in all.
const MOST_PROBES: u32 = 60;

/// Tries cures until one is proven.
pub(super) fn attempt(
    services: &Services<'_>,
    (spec, options): (&RunSpec, sim::Options),
    finding: &Finding,
) -> anyhow::Result<(Vec<CureTrial>, Option<Unproven>)> {
    let finding = &of_the_holder(on_the_runs_clock(spec, finding));
    let moments = moments(finding);
    let Some((first, victim)) = moments.first().zip(finding.victim.as_ref()) else {
        let why = Unproven::not_tried("the wait is too short for trials");
        return Ok((Vec::new(), Some(why)));
    };
    let mut bench = Bench {
        services,
        spec,
        options,
        task: victim.task,
        fault: finding.fault,
        end: finding.time,
        left: EFFORT.saturating_mul(finding.time.since(*first).get()),
        jitter: BTreeMap::new(),
        tried: Vec::new(),
        known: BTreeMap::new(),
    };
    let result = bench.search(&moments, finding);
    // Whoever does not wait for the answer wants no other one.
    services.check()?;
    let unproven = match result {
        Ok(()) => None,
        Err(Stop::Unproven(why)) => Some(why),
        Err(Stop::Failed(error)) => Some(Unproven::not_repeated(&error)),
    };
    Ok((bench.tried, unproven))
}

/// As `finding`. The kernel's message has the time of the machine's clock.
fn on_the_runs_clock(spec: &RunSpec, finding: &Finding) -> Finding {
    let mut finding = finding.clone();
    if finding.message.is_some() {
        let begin = SimTime::ZERO + begin_of(spec);
        finding.time = SimTime::ZERO + finding.time.since(begin.min(finding.time));
    }
    finding
}

/// Who waits for a lock sleeps: what may end that is that the lock's holder runs.
fn of_the_holder(mut finding: Finding) -> Finding {
    if let (Some(lock), Some(victim)) = (&finding.verdict.lock, &mut finding.victim) {
        victim.task = lock.task;
        victim.since = lock.since;
    }
    finding
}

/// The moments at which something is tried, the first one first: docs/explain.md.
pub(super) fn moments(finding: &Finding) -> Vec<SimTime> {
    let Some(victim) = &finding.victim else {
        return Vec::new();
    };
    let end = finding.time;
    let waited = victim.waited.get().min(end.as_nanos());
    let since = SimTime::from_nanos(end.as_nanos() - waited);
    let since = victim.since.unwrap_or(since).min(end);
    let middle = since + Nanos::new(end.since(since).get() / 2);
    let decisions = [&finding.culprit, &victim.put].into_iter().flatten();
    let mut all: Vec<_> = decisions.map(|act| act.time).chain([middle]).collect();
    // Whatever is tried must have time to help.
    all.retain(|at| *at >= since && end.since((*at).min(end)) >= LEAST);
    all.sort_unstable();
    all.dedup();
    all
}

/// A wait that goes on for less than this after a moment is not tried there.
const LEAST: Nanos = Nanos::from_millis(10);

/// Why a search has no proof.
enum Stop {
    Unproven(Unproven),
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// A moment of the run, and what there was to see.
struct Moment {
    at: SimTime,
    /// The task must run so soon.
    bound: Nanos,
    situation: Situation,
}

/// Where trials are made.
struct Bench<'a> {
    services: &'a Services<'a>,
    spec: &'a RunSpec,
    options: sim::Options,
    task: TaskId,
    /// The class that was seen.
    fault: Fault,
    /// The wait was seen to go on until then.
    end: SimTime,
    /// Simulated nanoseconds that trials may still take.
    left: u64,
    /// By moment: how many of the runs with jitter alone have ended the fault.
    jitter: BTreeMap<SimTime, u32>,
    tried: Vec<CureTrial>,
    /// By moment: the run right before it.
    known: BTreeMap<SimTime, Option<(Checkpoint, Look)>>,
}

impl Bench<'_> {
    /// Tries each cure at each moment, until one is proven.
    fn search(&mut self, moments: &[SimTime], finding: &Finding) -> Result<(), Stop> {
        let mut seen = Vec::new();
        for at in moments {
            seen.extend(self.moment(*at)?);
        }
        if seen.is_empty() {
            let why = Unproven::not_tried("the task does not wait when the run is repeated");
            return Err(Stop::Unproven(why));
        }
        let mut probes = 0;
        for (moment, cure) in in_order(&seen, finding) {
            probes += 1;
            if probes > MOST_PROBES {
                break;
            }
            let Some(end) = self.run(moment, cure.deeds(self.task))? else {
                continue;
            };
            if !ended(&end, &moment.situation) {
                continue;
            }
            let after = Some(end.time.since(moment.at));
            let trial = self.control(moment, (cure, after))?;
            let proves = trial.proves();
            self.tried.push(trial);
            if proves {
                return Ok(());
            }
        }
        Err(Stop::Unproven(Unproven::NoCure))
    }

    /// What there was to see at `at`, if the task waited then.
    fn moment(&mut self, at: SimTime) -> Result<Option<Moment>, Stop> {
        let mut look = Look::new(self.task, at);
        self.play(at + Nanos::new(1), &mut look, Vec::new())?;
        let span = self.end.since(at).get();
        Ok(look.situation().map(|situation| Moment {
            at,
            bound: situation.round.min(Nanos::new(span / 2)),
            situation: situation.clone(),
        }))
    }

    /// Makes the ten runs with a cure, and its placebos.
    fn control(
        &mut self,
        moment: &Moment,
        (cure, after): (Cure, Option<Nanos>),
    ) -> Result<CureTrial, Stop> {
        let mut trial = CureTrial::new(cure, moment.at, after);
        for seed in 1..=CURED {
            let deeds = cure.deeds(self.task);
            trial.helped += u32::from(self.helps(moment, seed, deeds)?);
            trial.tried += 1;
            if trial.tried - trial.helped > MAY_FAIL {
                return Ok(trial);
            }
        }
        let by_jitter = self.jitter_alone(moment)?;
        (trial.placebos, trial.placebos_helped) = (PLACEBOS, by_jitter);
        let elsewhere = cure.elsewhere(self.task, &moment.situation, self.fault);
        for number in 0..PLACEBOS {
            let at = number as usize % elsewhere.len().max(1);
            let deeds = elsewhere.get(at).cloned().unwrap_or_default();
            let seed = CURED + PLACEBOS + 1 + number;
            trial.placebos_helped += u32::from(self.helps(moment, seed, deeds)?);
            trial.placebos += 1;
            if trial.placebos_helped > MAY_HELP {
                return Ok(trial);
            }
        }
        Ok(trial)
    }

    /// In how many runs jitter alone ends the fault, which ends the search if that is in some.
    fn jitter_alone(&mut self, moment: &Moment) -> Result<u32, Stop> {
        if let Some(known) = self.jitter.get(&moment.at) {
            return Ok(*known);
        }
        let mut helped = 0;
        for seed in 1..=PLACEBOS {
            helped += u32::from(self.helps(moment, CURED + seed, Vec::new())?);
            if helped > MAY_HELP {
                return Err(Stop::Unproven(Unproven::AnyDisturbance));
            }
        }
        self.jitter.insert(moment.at, helped);
        Ok(helped)
    }

    /// Whether `deeds` end the fault in a run with jitter.
    fn helps(&mut self, moment: &Moment, seed: u32, deeds: Vec<Deed>) -> Result<bool, Stop> {
        let jitter = std::iter::once(Deed::Jitter(seed.into()));
        let end = self.run(moment, jitter.chain(deeds).collect())?;
        Ok(end.is_some_and(|end| ended(&end, &moment.situation)))
    }

    /// How the wait ends if `deeds` are done.
    fn run(&mut self, moment: &Moment, deeds: Vec<Deed>) -> Result<Option<End>, Stop> {
        if moment.bound.get() > self.left {
            return Err(Stop::Unproven(Unproven::TooLong));
        }
        let mut look = Look::new(self.task, moment.at);
        let at = moment.at;
        let on_the_machine = at + begin_of(self.spec);
        let deeds = deeds.into_iter().map(|deed| Intervention {
            at: on_the_machine,
            deed,
        });
        self.play(at + moment.bound, &mut look, deeds.collect())?;
        let ended = look.ended();
        let took = ended.map_or(moment.bound, |end| end.time.since(at));
        self.left -= took.get().min(self.left);
        Ok(ended)
    }

    fn play(
        &mut self,
        until: SimTime,
        look: &mut Look,
        deeds: Vec<Intervention>,
    ) -> Result<(), Stop> {
        let until = Nanos::new(until.as_nanos()) + begin_of(self.spec);
        let services = self.services;
        if let Some((checkpoint, seen)) = deeds.first().and_then(|it| self.before(it.at)) {
            *look = seen.clone();
            return Ok(resume(services, checkpoint, until, deeds, look)?);
        }
        let duration = self.spec.duration.map_or(until, |all| all.min(until));
        let spec = RunSpec {
            duration: Some(duration),
            ..self.spec.clone()
        };
        let runner = Runner::new(&spec, self.services).with_options(self.options);
        runner.with_interventions(deeds).with_sink(look).start()?;
        Ok(())
    }

    /// The run right before `at` of the machine's clock, which all trials of that moment have in
    /// common, and what was seen of it.
    fn before(&mut self, at: SimTime) -> Option<&(Checkpoint, Look)> {
        let make = || {
            let time = SimTime::from_nanos(at.as_nanos().checked_sub(1)?);
            let on_the_runs = SimTime::ZERO + at.since(SimTime::ZERO + begin_of(self.spec));
            let mut look = Look::new(self.task, on_the_runs);
            let runner = Runner::new(self.spec, self.services).with_options(self.options);
            // What is wrong with the run is told by one without a checkpoint.
            let checkpoint = runner.with_sink(&mut look).checkpoint(time).ok()??;
            Some((checkpoint, look))
        };
        self.known.entry(at).or_insert_with(make).as_ref()
    }
}

/// Every cure at each moment that it fits: those of the class of `finding` first, then in their
/// order, and of one cure the earliest moment first.
fn in_order<'a>(seen: &'a [Moment], finding: &Finding) -> Vec<(&'a Moment, Cure)> {
    let of = |moment: &Moment| {
        let cures = Cure::of(&moment.situation).into_iter();
        cures.filter(|cure| may_end(finding, *cure))
    };
    let mut all: Vec<_> = seen
        .iter()
        .flat_map(|moment| of(moment).map(move |cure| (moment, cure)))
        .collect();
    all.sort_by_key(|(moment, cure)| (!cure.is_of(finding), cure.rank(), moment.at));
    all
}

/// Whether a wait that has ended so within its bound is no fault any more: nobody else has to pay
/// for it. Where a CPU idled nobody's lag grows by more than a slice, else nobody's passes a round.
fn ended(end: &End, situation: &Situation) -> bool {
    if situation.idle.is_empty() {
        !end.passes
    } else {
        end.grown <= end.slice
    }
}
