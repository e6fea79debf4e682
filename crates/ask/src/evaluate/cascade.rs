//! The stages that a candidate goes through.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, anyhow};
use explain::why::Right;
use model::{Advised, Kernel, Nanos, PolicySpec};
use stats::compare::Settings;

use super::draw::{Draw, Pool, Secret, draws};
use super::figures;
use super::limits::{self, LimitKind, Peers, beyond};
use super::score::{self, SearchScore};
use super::spec::{Spec, WeightedGoal};
use super::taken::{Pair, Taken, Taking, options};
use super::{Breach, Cost, Evaluation, Stage};
use crate::error::{BadSource, UsageError};
use crate::goal::Goal;
use crate::outcome::Results;
use crate::policy::{self, FoundPolicy};
use crate::runner::Runner;
use crate::services::Services;
use crate::stated::stated;
use crate::{kernel, right, trial};

/// Short runs before all others, and their length.
const SHORT_RUNS: usize = 10;
/// Probes among them.
const SHORT_PROBES: usize = 2;
const SHORT: Nanos = Nanos::from_millis(1_000);
/// Short runs that are made before it is asked whether one has broken a limit: most of those who
/// break one do so at once.
const SHORT_ROUND: usize = 2;

/// The runs of the baseline and of shipped policies, by policy, stage and draw.
type Known = BTreeMap<(Option<String>, Stage, usize), Arc<Taken>>;

/// Evaluates one candidate after the other in the same draws.
pub struct Evaluator<'a> {
    services: &'a Services<'a>,
    spec: &'a Spec,
    jobs: NonZeroUsize,
    open: Vec<Draw>,
    short: Vec<Draw>,
    secret: Secret,
    epoch: u64,
    /// By load.
    goals: Vec<Vec<WeightedGoal>>,
    /// The right that the baseline declares.
    right: Option<Right>,
    known: Mutex<Known>,
}

/// A candidate that was looked for.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a call has one of each candidate"
)]
pub enum Opened {
    /// It is there.
    Found(FoundPolicy),
    /// It does not compile.
    Refused(Box<Evaluation>),
}

/// Where a candidate stands.
struct Course<'a> {
    policy: &'a PolicySpec,
    taking: Taking<'a>,
    /// Shipped policies that it is held against, too.
    alike: Vec<PolicySpec>,
    cost: Cost,
}

impl<'a> Evaluator<'a> {
    /// Draws the runs, and tries the baseline.
    ///
    /// # Errors
    /// When the baseline fails, a load is bad, or no load has a goal of the file.
    pub fn new(
        services: &'a Services<'a>,
        spec: &'a Spec,
        (secret, epoch): (Secret, u64),
        jobs: Option<NonZeroUsize>,
    ) -> anyhow::Result<Self> {
        let open = draws(services, spec, &secret, (Pool::Open, epoch))?;
        let mut evaluator = Self {
            services,
            spec,
            jobs: services.jobs(jobs),
            short: short(&open),
            open,
            secret,
            epoch,
            goals: Vec::new(),
            right: right::declared(&spec.baseline.policy),
            known: Mutex::default(),
        };
        evaluator.goals = evaluator.goals_by_load()?;
        Ok(evaluator)
    }

    /// The goals of the file that a load has, or those that it states.
    fn goals_by_load(&self) -> anyhow::Result<Vec<Vec<WeightedGoal>>> {
        let mut all = Vec::new();
        let mut missing: Vec<Option<Advised>> = vec![None; self.spec.goals.len()];
        let mut had = vec![false; self.spec.goals.len()];
        for load in &self.spec.loads {
            let drawn = self.open.iter().find(|it| it.name == load.name);
            let machine = drawn.map_or(&load.machine, |it| &it.case.machine).clone();
            let mut policy = self.spec.baseline.policy.clone();
            policy.subs.extend(load.subs.iter().cloned());
            let case = crate::shrink::Case {
                policy,
                machine,
                workload: load.written.clone(),
                scale: load.scale.clone(),
                seed: 1,
                duration: Some(self.spec.length(load)),
            };
            let run = case.spec(self.services)?;
            let options = options(self.spec);
            let runner = Runner::new(&run, self.services).with_options(options);
            let mut measured = runner.measure();
            if !load.subs.is_empty() {
                // What the kernel says of the one above names no policy.
                let baseline = &self.spec.baseline.policy.name;
                measured = measured
                    .with_context(|| format!("the baseline `{baseline}` under {}", load.name));
            }
            let (outcome, _) = measured?;
            if let Some(ejection) = outcome.ejection() {
                return Err(baseline_fails(&load.name, &ejection));
            }
            let report = outcome.report.clone();
            let mut goals = Vec::new();
            for (at, goal) in self.spec.goals.iter().enumerate() {
                match goal.goal.check(&report) {
                    Ok(()) => {
                        had[at] = true;
                        goals.push(goal.clone());
                    }
                    Err(error) => _ = missing[at].get_or_insert(error),
                }
            }
            if self.spec.goals.is_empty() {
                let results = Results::simulated(&run, vec![outcome]);
                let own = stated(&results);
                let own = own.iter().filter_map(|it| Goal::of_metric(it, &report));
                goals.extend(own.map(|goal| WeightedGoal {
                    goal,
                    weight: 1.0,
                    limit: None,
                }));
            }
            all.push(goals);
        }
        for (has, error) in had.into_iter().zip(missing) {
            if let Some(error) = error.filter(|_| !has) {
                return Err(UsageError::new(error.at(&self.spec.file)).into());
            }
        }
        if all.iter().all(Vec::is_empty) {
            let message = Advised::new(
                format!("{}: no load states a goal", self.spec.file),
                "state one with `[[goal]]`",
            );
            return Err(UsageError::new(message).into());
        }
        Ok(all)
    }

    /// Finds the candidate that `word` names. One that does not compile is an answer.
    ///
    /// # Errors
    /// When the candidate cannot be read.
    pub fn open(&self, word: &str) -> anyhow::Result<Opened> {
        match policy::open(self.services, word) {
            Ok(found) => Ok(Opened::Found(found)),
            Err(error) if error.is::<BadSource>() => {
                let breach = Breach::advised(LimitKind::Compiles, crate::error::advised(&error));
                let refused = at_stage(word, Stage::Compile, vec![breach]);
                Ok(Opened::Refused(Box::new(refused)))
            }
            Err(error) => Err(error),
        }
    }

    /// Takes a candidate that was found as `word` through all stages.
    ///
    /// # Errors
    /// When it is a scheduler's own program, or nobody waits for the answer any more.
    pub fn evaluate(
        &self,
        word: &str,
        found: &FoundPolicy,
        has_gate: bool,
    ) -> anyhow::Result<Evaluation> {
        let policy = &found.policy;
        if policy.program.is_some() {
            let message = Advised::new(
                format!("{word} is a scheduler's own program"),
                "evaluate its object: `runslice bundle` saves one",
            );
            return Err(UsageError::new(message).into());
        }
        right::say_misspelt(self.services, policy);
        let object = blake3::hash(&policy.object).to_hex().to_string();
        let mut evaluation = Evaluation {
            object: Some(object),
            ..at_stage(word, Stage::Load, self.unloadable(policy))
        };
        if evaluation.is_refused() {
            return Ok(evaluation);
        }
        let mut course = self.course(policy)?;
        evaluation.stage = Stage::Short;
        evaluation.breaches = self.limited(&mut course, Stage::Short, &self.short)?.1;
        if !evaluation.is_refused() {
            evaluation.stage = Stage::Open;
            self.in_open(&mut course, &mut evaluation)?;
        }
        if has_gate && !evaluation.is_refused() {
            evaluation.stage = Stage::Gate;
            evaluation.breaches.extend(self.gate(&mut course)?);
        }
        evaluation.cost = course.cost;
        Ok(evaluation)
    }

    fn course<'b>(&'b self, policy: &'b PolicySpec) -> anyhow::Result<Course<'b>> {
        let declared = right::declared(policy);
        let (judged, peers) = limits::judged_by(&self.spec.limits, declared, self.right);
        Ok(Course {
            policy,
            taking: Taking {
                services: self.services,
                spec: self.spec,
                right: judged,
            },
            alike: shipped(self.services, peers, &self.spec.baseline.policy)?,
            cost: Cost::default(),
        })
    }

    /// Whether each kernel of the draws loads the object and has all that its callbacks call.
    fn unloadable(&self, policy: &PolicySpec) -> Vec<Breach> {
        let mut kernels: Vec<Kernel> = Vec::new();
        for draw in &self.open {
            let kernel = draw.case.machine.kernel;
            if !kernels.contains(&kernel) {
                kernels.push(kernel);
            }
        }
        let lacks = kernels.into_iter().filter_map(|kernel| {
            let lack = kernel::unloadable(policy, kernel)?;
            let at = format!("kernel {}", kernel.name());
            Some(Breach::advised(LimitKind::Loads, lack.at(at)))
        });
        lacks.collect()
    }

    /// The open draws: limits, and the score.
    fn in_open(&self, course: &mut Course<'_>, to: &mut Evaluation) -> anyhow::Result<()> {
        let (runs, breaches) = self.limited(course, Stage::Open, &self.open)?;
        to.breaches = breaches;
        if to.is_refused() {
            return Ok(());
        }
        let figures = figures::figures((self.spec, &self.goals), &self.open, &runs);
        let settings = Settings::default();
        let scored = score::score(&figures, &settings);
        to.breaches = figures::broken((self.spec, &self.open), course.policy, (&figures, &scored));
        to.metrics = figures::metrics(&figures, &settings);
        to.scored = Some(scored);
        Ok(())
    }

    /// The gate's draws: one bit.
    fn gate(&self, course: &mut Course<'_>) -> anyhow::Result<Vec<Breach>> {
        let drawn = draws(
            self.services,
            self.spec,
            &self.secret,
            (Pool::Gate, self.epoch),
        )?;
        let (_, breaches) = self.limited(course, Stage::Gate, &drawn)?;
        let is_broken = !breaches.is_empty();
        let words = "a limit is broken in a draw that is held out";
        Ok(is_broken
            .then(|| Breach::of(LimitKind::Gate, words.to_owned()))
            .into_iter()
            .collect())
    }

    /// The candidate's score in the sealed draws, and whether it breaks a limit there.
    ///
    /// # Errors
    /// When nobody waits for the answer any more.
    pub fn sealed(&self, policy: &PolicySpec) -> anyhow::Result<(SearchScore, Vec<Breach>)> {
        let drawn = draws(
            self.services,
            self.spec,
            &self.secret,
            (Pool::Sealed, self.epoch),
        )?;
        let mut course = self.course(policy)?;
        let (runs, mut breaches) = self.limited(&mut course, Stage::Gate, &drawn)?;
        let figures = figures::figures((self.spec, &self.goals), &drawn, &runs);
        let scored = score::score(&figures, &Settings::default());
        breaches.extend(figures::broken(
            (self.spec, &drawn),
            policy,
            (&figures, &scored),
        ));
        Ok((scored, breaches))
    }

    /// Makes the runs, and gives beside them the limits that are broken, one of each kind.
    fn limited(
        &self,
        course: &mut Course<'_>,
        stage: Stage,
        drawn: &[Draw],
    ) -> anyhow::Result<(Vec<Pair>, Vec<Breach>)> {
        let mut made: Vec<Pair> = Vec::new();
        let mut broken: BTreeMap<LimitKind, Breach> = BTreeMap::new();
        let round = if stage == Stage::Short {
            SHORT_ROUND
        } else {
            drawn.len()
        };
        while made.len() < drawn.len() && broken.is_empty() {
            let numbers: Vec<usize> = (made.len()..drawn.len()).take(round).collect();
            let pairs = self.services.map(&numbers, self.jobs, "runs", |at| {
                self.pair(course, stage, (*at, &drawn[*at]))
            })?;
            self.judge(course, stage, (drawn, made.len(), &pairs), &mut broken)?;
            made.extend(pairs);
        }
        let all = made.len();
        for breach in broken.values_mut() {
            breach.draws[1] = all;
        }
        Ok((made, broken.into_values().collect()))
    }

    /// The runs of the baseline and of the candidate in a draw.
    fn pair(
        &self,
        course: &Course<'_>,
        stage: Stage,
        (at, draw): (usize, &Draw),
    ) -> anyhow::Result<Pair> {
        let base = self.base(None, stage, (at, draw))?;
        let goals = self.goals_of(draw);
        let taking = &course.taking;
        let taken = taking.take_of_candidate(draw, course.policy, &goals)?;
        Ok(Pair { base, taken })
    }

    /// Adds what `pairs` break, which are of the draws from the number `first` on.
    fn judge(
        &self,
        course: &mut Course<'_>,
        stage: Stage,
        (drawn, first, pairs): (&[Draw], usize, &[Pair]),
        broken: &mut BTreeMap<LimitKind, Breach>,
    ) -> anyhow::Result<()> {
        for (at, pair) in pairs.iter().enumerate() {
            let at = first + at;
            course.cost.runs += 1;
            course.cost.simulated += pair.taken.simulated;
            course.cost.instructions += pair.taken.instructions;
            let found = beyond(&self.spec.limits, &pair.base, &pair.taken);
            for (kind, words) in found {
                if let Some(known) = broken.get_mut(&kind) {
                    known.draws[0] += 1;
                    continue;
                }
                if self.is_excused(course, kind, (stage, at, &drawn[at]), pair)? {
                    continue;
                }
                let finding = limits::finding_of(&pair.taken, kind);
                let mut breach = Breach {
                    load: Some(drawn[at].name.clone()),
                    draws: [1, 0],
                    finding: finding.cloned(),
                    ..Breach::of(kind, words)
                };
                if self.is_sure(course, &drawn[at], &mut breach)? {
                    broken.insert(kind, breach);
                }
            }
        }
        Ok(())
    }

    /// Whether a shipped policy that it is held against comes to the same in this draw.
    fn is_excused(
        &self,
        course: &Course<'_>,
        kind: LimitKind,
        (stage, at, draw): (Stage, usize, &Draw),
        pair: &Pair,
    ) -> anyhow::Result<bool> {
        // No shipped policy takes others below itself.
        let alike = course.alike.iter().filter(|_| draw.subs.is_empty());
        for policy in alike {
            let known = self.base(Some(policy), stage, (at, draw))?;
            let (limits, both) = (&self.spec.limits, [&pair.taken, &*known]);
            let still = beyond(limits, &known, &pair.taken);
            if still.iter().all(|(it, _)| *it != kind)
                && limits::takes_from_the_same(limits, kind, &pair.base, both)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the breach is a fact, or a fault that trials prove; and the run as a case, if it
    /// shows the same under the tasks' own names.
    fn is_sure(&self, course: &Course<'_>, draw: &Draw, to: &mut Breach) -> anyhow::Result<bool> {
        let own = Draw {
            names: Vec::new(),
            ..draw.clone()
        };
        let goals = self.goals_of(draw);
        let taken = course
            .taking
            .take_of_candidate(&own, course.policy, &goals)?;
        let base = course
            .taking
            .take(&own, &self.spec.baseline.policy, &goals)?;
        let same = beyond(&self.spec.limits, &base, &taken);
        if same.iter().any(|(kind, _)| *kind == to.limit) {
            to.case = Some(draw.case_of(course.policy));
        }
        if let (LimitKind::Fault, Some(finding)) = (to.limit, &mut to.finding)
            && !trial::is_certain(finding)
        {
            let run = draw.run(self.services, course.policy)?;
            let options = course.taking.options();
            return Ok(trial::attempt(self.services, (&run.spec, options), finding)?.accuses());
        }
        Ok(true)
    }

    fn goals_of(&self, draw: &Draw) -> Vec<Goal> {
        let goals = draw.load.map_or(&[][..], |at| &self.goals[at]);
        goals.iter().map(|it| it.goal.clone()).collect()
    }

    /// A run of the baseline, or of a shipped policy; it is made once.
    fn base(
        &self,
        shipped: Option<&PolicySpec>,
        stage: Stage,
        (at, draw): (usize, &Draw),
    ) -> anyhow::Result<Arc<Taken>> {
        let policy = shipped.unwrap_or(&self.spec.baseline.policy);
        let key = (shipped.map(|it| it.name.clone()), stage, at);
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = known().get(&key) {
            return Ok(Arc::clone(taken));
        }
        let taking = Taking {
            services: self.services,
            spec: self.spec,
            right: right::declared(policy),
        };
        let taken = Arc::new(taking.take(draw, policy, &self.goals_of(draw))?);
        known().insert(key, Arc::clone(&taken));
        Ok(taken)
    }
}

fn baseline_fails(load: &str, ejection: &str) -> anyhow::Error {
    anyhow!(Advised::new(
        format!("the baseline fails under {load}: {ejection}"),
        "name another `baseline`, or raise `instructions` of `[budget]`"
    ))
}

/// Two probes as they are, and the first draws of each load in turn, shorter.
fn short(open: &[Draw]) -> Vec<Draw> {
    let loads = open
        .iter()
        .filter_map(|it| it.load)
        .max()
        .map_or(0, |it| it + 1);
    let of_load = |at: usize| open.iter().filter(move |it| it.load == Some(at));
    let longest = (0..loads).map(|at| of_load(at).count()).max().unwrap_or(0);
    let in_turn = (0..longest).flat_map(|turn| (0..loads).map(move |at| (at, turn)));
    let drawn = in_turn.filter_map(|(at, turn)| of_load(at).nth(turn));
    let probes = open
        .iter()
        .filter(|it| it.load.is_none())
        .take(SHORT_PROBES);
    let drawn = drawn.take(SHORT_RUNS - SHORT_PROBES);
    let shorter = drawn.map(|it| it.shorter(SHORT));
    probes.cloned().chain(shorter).collect()
}

/// The shipped policies among these peers, but for the baseline itself.
fn shipped(
    services: &Services<'_>,
    peers: Peers,
    baseline: &PolicySpec,
) -> anyhow::Result<Vec<PolicySpec>> {
    let mut alike = Vec::new();
    for known in policies::ALL {
        let policy = policy::find(services, known.name)?;
        let is_baseline = policy.object == baseline.object && baseline.set.is_empty();
        let is_peer = match peers {
            Peers::Of(right) => right::declared(&policy) == Some(right),
            Peers::All => true,
            Peers::Nobody => false,
        };
        if is_peer && !is_baseline {
            alike.push(policy);
        }
    }
    Ok(alike)
}

/// The evaluation of `word` that has come to this stage.
fn at_stage(word: &str, stage: Stage, breaches: Vec<Breach>) -> Evaluation {
    Evaluation {
        candidate: word.to_owned(),
        object: None,
        stage,
        breaches,
        scored: None,
        metrics: Vec::new(),
        cost: Cost::default(),
    }
}
