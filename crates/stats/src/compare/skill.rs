//! How far the simulation of a recording can be trusted, part by part.
//!
//! A load is made of the first half of a recording and simulated twice: under the scheduler that it
//! was recorded under, and under one that knows nothing. [`score`] holds both against the second
//! half, and the first half, too: the machine against itself. docs/score.md says how the answer is
//! read.
//!
//! The load is never held against the half that it is made of: its arrivals already contain how
//! the recorded scheduler delayed whoever made them.

use std::collections::BTreeMap;

use model::Rng;
use serde::Serialize;

use super::machines::Waits;
use crate::blocks::{Block, Half, Spans};

#[cfg(test)]
mod tests;

/// Blocks of each half. Blocks of time are drawn and not tasks: waits of one moment are alike,
/// whoever waits, and some loads have one family of tasks only.
pub const BLOCKS: usize = 16;
/// How often blocks are drawn.
const DRAWS: usize = 200;
/// A part can be told if the machine itself is better than the null model by this.
pub const CEILING: f64 = 0.2;
/// A part is trusted from this part of the way on, from the null model to the machine itself. The
/// simulation is then nearer to the kernel than to a machine that knows nothing of its scheduler.
pub const REACH: f64 = 0.5;
/// A simulation that is farther from the second half than the first half is by more than this
/// factor is not close; one that is worse than the null model, and off by it, is not trusted.
/// Beside hogs the null model is off by a factor of 75 to 1200, so that half of the way alone would
/// say little.
pub const CLOSE: f64 = 1.25;
/// Smaller errors count as this: 1 %.
const LEAST_ERROR: f64 = 0.01;
/// Smaller shares of a CPU count as this: 0.1 %.
const LEAST_SHARE: f64 = 0.001;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillPart {
    /// Waits after wakeups.
    Wait,
    /// Every wait for a CPU.
    Delay,
    /// Spans from a wakeup to the next sleep.
    Response,
    /// How often a task left its CPU and could have gone on, by second of CPU time.
    Preemptions,
    /// How often a task's CPU changed, by second of CPU time.
    Migrations,
    /// Time for the same CPU time.
    Elapsed,
}

impl SkillPart {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 6] = [
        Self::Wait,
        Self::Delay,
        Self::Response,
        Self::Preemptions,
        Self::Migrations,
        Self::Elapsed,
    ];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Delay => "delay",
            Self::Response => "response",
            Self::Preemptions => "preemptions",
            Self::Migrations => "migrations",
            Self::Elapsed => "elapsed",
        }
    }

    /// Its spans, if it is a distribution.
    const fn spans(self) -> Option<Spans> {
        match self {
            Self::Wait => Some(Spans::Wait),
            Self::Delay => Some(Spans::Delay),
            Self::Response => Some(Spans::Response),
            _ => None,
        }
    }
}

/// What is held against what. Each has [`BLOCKS`] blocks.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The first half as it was recorded; the load was made of it.
    pub first: Half,
    /// The second half as it was recorded.
    pub second: Half,
    /// The load, simulated under the scheduler that it was recorded under.
    pub simulated: Half,
    /// The load, simulated under the null model.
    pub null: Half,
}

/// A number with its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConfidenceInterval {
    /// The number.
    pub value: f64,
    /// Where the interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

impl ConfidenceInterval {
    /// Of a value, and of what draws gave, in any order. The value lies in its interval.
    fn of(value: f64, mut drawn: Vec<f64>) -> Self {
        drawn.retain(|it| it.is_finite());
        drawn.sort_unstable_by(f64::total_cmp);
        let at = |permille: usize| drawn.get(drawn.len() * permille / 1000).copied();
        Self {
            value,
            low: at(25).map_or(value, |it| it.min(value)),
            high: at(975).map_or(value, |it| it.max(value)),
        }
    }
}

/// What is said of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartVerdict {
    /// The simulation is nearer to the machine than to the null model, and about as near to the
    /// second half as the first half is.
    Trusted,
    /// It is nearer to the machine than to the null model, but not close: only changes beyond its
    /// error mean something.
    Roughly,
    /// It is not nearer.
    NotTrusted,
    /// The recording is too short to say.
    Undecided,
    /// The null model does as well as the machine itself, or nearly: no simulation can show
    /// anything here.
    CannotBeTold,
    /// In the recording tasks were forked faster than they were done, so that its waits say how
    /// long it was.
    Grows,
}

impl PartVerdict {
    /// In tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Roughly => "roughly",
            Self::NotTrusted => "not trusted",
            Self::Undecided => "undecided",
            Self::CannotBeTold => "cannot be told",
            Self::Grows => "no verdict",
        }
    }
}

/// Errors as factors, from 1 on: how far from the second half something is on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Factors {
    /// The simulation.
    pub simulated: f64,
    /// The null model.
    pub null: f64,
    /// The first half of the recording.
    pub itself: f64,
}

impl Factors {
    fn of(errors: [f64; 3]) -> Self {
        let [simulated, null, itself] = errors.map(libm::exp);
        Self {
            simulated,
            null,
            itself,
        }
    }
}

/// A family of tasks in a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Apart {
    /// The family.
    pub family: String,
    /// Its part of the weights, 0 to 1.
    pub weight: f64,
    /// How far off.
    pub factors: Factors,
    /// Its value in the second half: nanoseconds (the geometric mean, less than 10 us as 10 us),
    /// times a second of CPU time, or CPUs.
    pub second: f64,
    /// The same of the simulation.
    pub simulated: f64,
}

/// What is said of one part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SkillRow {
    /// Which.
    pub part: SkillPart,
    /// Errors over all families.
    pub factors: Factors,
    /// `1 - error / error of the null model`.
    pub skill: ConfidenceInterval,
    /// The skill of the first half itself.
    pub ceiling: ConfidenceInterval,
    /// The part of the way from the null model to the first half; `None` if the first half is no
    /// nearer.
    pub reach: Option<ConfidenceInterval>,
    /// How many times farther from the second half the simulation is than the first half.
    pub excess: ConfidenceInterval,
    /// What follows.
    pub verdict: PartVerdict,
    /// The part of the second half, 0 to 1, that is of families which all sides have.
    pub covered: f64,
    /// The families, the one with most weight times error first.
    pub families: Vec<Apart>,
}

/// The sides of a comparison, in this order.
const SECOND: usize = 0;
const SIMULATED: usize = 1;
const NULL: usize = 2;
const FIRST: usize = 3;

/// How often each block counts, by side.
struct Draw([[u64; BLOCKS]; 4]);

impl Draw {
    const ALL: Self = Self([[1; BLOCKS]; 4]);

    fn of(rng: &mut Rng) -> Self {
        let mut some = || {
            let mut times = [0; BLOCKS];
            for _ in 0..BLOCKS {
                times[usize::try_from(rng.below(BLOCKS as u64)).expect("small")] += 1;
            }
            times
        };
        let (second, first) = (some(), some());
        Self([second, first, first, first])
    }
}

/// A family on all sides.
struct Sides<'a> {
    name: &'a str,
    of: [&'a [Block]; 4],
}

/// The error of a family, by side but the second half, and its weight.
struct Error {
    weight: f64,
    errors: [f64; 3],
    values: [f64; 4],
}

impl Sides<'_> {
    fn sum(&self, side: usize, draw: &Draw, of: impl Fn(&Block) -> u64) -> f64 {
        let blocks = self.of[side].iter().zip(&draw.0[side]);
        blocks.map(|(block, times)| of(block) * times).sum::<u64>() as f64
    }

    /// `None` if a side has nothing of the kind.
    fn error(&self, part: SkillPart, draw: &Draw, lasted: &[f64; 4]) -> Option<Error> {
        if let Some(kind) = part.spans() {
            return self.distance(kind, draw);
        }
        let run = [SECOND, SIMULATED, NULL, FIRST].map(|side| self.sum(side, draw, |it| it.run));
        if run.contains(&0.0) {
            return None;
        }
        let count = |side: usize| match part {
            SkillPart::Migrations => self.sum(side, draw, |it| it.migrations),
            _ => self.sum(side, draw, |it| it.preemptions),
        };
        let (values, least) = match part {
            SkillPart::Elapsed => {
                let share = |side: usize| run[side] / lasted[side].max(1.0);
                ([SECOND, SIMULATED, NULL, FIRST].map(share), LEAST_SHARE)
            }
            _ => {
                let rate = |side: usize| count(side) * 1e9 / run[side];
                let values = [SECOND, SIMULATED, NULL, FIRST].map(rate);
                (values, 1e9 / run[SECOND].min(run[FIRST]))
            }
        };
        let log = |side: usize| libm::log(values[side].max(least));
        Some(Error {
            weight: run[SECOND],
            errors: [SIMULATED, NULL, FIRST].map(|side| (log(side) - log(SECOND)).abs()),
            values,
        })
    }

    fn distance(&self, kind: Spans, draw: &Draw) -> Option<Error> {
        let pooled = |side: usize| {
            let mut sum: BTreeMap<u64, u64> = BTreeMap::new();
            for (block, times) in self.of[side].iter().zip(&draw.0[side]) {
                if *times > 0 {
                    for (length, count) in block.spans(kind) {
                        *sum.entry(*length).or_default() += count * times;
                    }
                }
            }
            Waits::new(sum)
        };
        let all = [SECOND, SIMULATED, NULL, FIRST].map(pooled);
        let mut errors = [0.0; 3];
        for (error, side) in errors.iter_mut().zip([SIMULATED, NULL, FIRST]) {
            *error = all[SECOND].distance(&all[side])?;
        }
        Some(Error {
            weight: all[SECOND].count() as f64,
            errors,
            values: [0, 1, 2, 3].map(|side| all[side].mean().unwrap_or(0) as f64),
        })
    }
}

/// What one draw comes to: the errors of the simulation, the null model and the first half.
fn errors(
    sides: &[Sides<'_>],
    part: SkillPart,
    draw: &Draw,
    lasted: &[Vec<u64>; 4],
) -> Option<[f64; 3]> {
    let lasted = lengths(lasted, draw);
    let found = sides.iter().filter_map(|it| it.error(part, draw, &lasted));
    mean(found)
}

fn lengths(lasted: &[Vec<u64>; 4], draw: &Draw) -> [f64; 4] {
    [0, 1, 2, 3].map(|side| {
        let all = lasted[side].iter().zip(&draw.0[side]);
        all.map(|(ns, times)| ns * times).sum::<u64>() as f64
    })
}

fn mean(errors: impl Iterator<Item = Error>) -> Option<[f64; 3]> {
    let (mut weight, mut sums) = (0.0, [0.0; 3]);
    for error in errors {
        weight += error.weight;
        for (sum, one) in sums.iter_mut().zip(error.errors) {
            *sum += one * error.weight;
        }
    }
    (weight > 0.0).then(|| sums.map(|sum| sum / weight))
}

/// The skill of the simulation, that of the first half, how far the one comes to the other, and how
/// many times farther off the simulation is.
fn skills(errors: [f64; 3]) -> [f64; 4] {
    let excess = libm::exp(errors[0] - errors[2]);
    let [simulated, null, itself] = errors.map(|it| it.max(LEAST_ERROR));
    let skill = 1.0 - simulated / null;
    let ceiling = 1.0 - itself / null;
    let reach = if ceiling > 0.0 {
        skill / ceiling
    } else {
        f64::NAN
    };
    [skill, ceiling, reach, excess]
}

/// What follows of the intervals of skill, ceiling, reach and excess; `error` is the simulation's,
/// as a factor.
fn verdict([skill, ceiling, reach, excess]: &[ConfidenceInterval; 4], error: f64) -> PartVerdict {
    let can_be_told = ceiling.value >= CEILING && ceiling.low > 0.0;
    // Where the halves differ, a simulation that is as far off as the first half did nothing wrong.
    let is_wrong = skill.high < 0.0 && error >= CLOSE && excess.value >= CLOSE;
    match () {
        () if !can_be_told && is_wrong => PartVerdict::NotTrusted,
        () if !can_be_told => PartVerdict::CannotBeTold,
        () if reach.low >= REACH && excess.high <= CLOSE => PartVerdict::Trusted,
        () if reach.low >= REACH => PartVerdict::Roughly,
        () if reach.high < REACH => PartVerdict::NotTrusted,
        () => PartVerdict::Undecided,
    }
}

/// Scores every part that all sides have something of. `seed` is that of the draws.
///
/// # Panics
/// If a half has not [`BLOCKS`] blocks.
#[must_use]
pub fn score(trial: &Trial, seed: u64) -> Vec<SkillRow> {
    let halves = [&trial.second, &trial.simulated, &trial.null, &trial.first];
    for half in halves {
        assert_eq!(half.lengths.len(), BLOCKS, "blocks of a half");
    }
    let on_all_sides = |name: &'_ String| -> Option<[&[Block]; 4]> {
        let [a, b, c, d] = halves.map(|half| half.families.get(name).map(Vec::as_slice));
        Some([a?, b?, c?, d?])
    };
    let names = trial.second.families.keys();
    let sides = names.filter_map(|name| {
        let of = on_all_sides(name)?;
        Some(Sides { name, of })
    });
    let sides: Vec<Sides<'_>> = sides.collect();
    let lasted = halves.map(|half| half.lengths.clone());
    let of = |part: SkillPart| row(part, &sides, trial, (&lasted, seed));
    SkillPart::ALL.into_iter().filter_map(of).collect()
}

fn row(
    part: SkillPart,
    sides: &[Sides<'_>],
    trial: &Trial,
    (lasted, seed): (&[Vec<u64>; 4], u64),
) -> Option<SkillRow> {
    let all = errors(sides, part, &Draw::ALL, lasted)?;
    let mut families = apart(part, sides, lasted);
    // Nothing of the kind ever happened.
    if families
        .iter()
        .all(|it| it.second == 0.0 && it.simulated == 0.0)
        && all == [0.0; 3]
    {
        return None;
    }
    let mut rng = Rng::new(seed, part as u64);
    let mut drawn: [Vec<f64>; 4] = Default::default();
    for _ in 0..DRAWS {
        let draw = Draw::of(&mut rng);
        if let Some(errors) = errors(sides, part, &draw, lasted) {
            for (to, value) in drawn.iter_mut().zip(skills(errors)) {
                to.push(value);
            }
        }
    }
    let values = skills(all);
    let mut at = values.into_iter();
    let intervals = drawn.map(|drawn| ConfidenceInterval::of(at.next().unwrap_or(f64::NAN), drawn));
    let factors = Factors::of(all);
    let by_cost = |it: &Apart| it.weight * libm::log(it.factors.simulated);
    families.sort_by(|a, b| by_cost(b).total_cmp(&by_cost(a)));
    let grows = |it: &Sides<'_>| {
        let recorded = [&trial.first, &trial.second];
        recorded.iter().any(|half| half.grown.contains(it.name))
    };
    let verdict = if part.spans().is_some() && sides.iter().any(grows) {
        PartVerdict::Grows
    } else {
        verdict(&intervals, factors.simulated)
    };
    let [skill, ceiling, reach, excess] = intervals;
    Some(SkillRow {
        part,
        factors,
        skill,
        ceiling,
        reach: (ceiling.value > 0.0).then_some(reach),
        excess,
        verdict,
        covered: covered(part, &families, trial),
        families,
    })
}

fn apart(part: SkillPart, sides: &[Sides<'_>], lasted: &[Vec<u64>; 4]) -> Vec<Apart> {
    let lasted = lengths(lasted, &Draw::ALL);
    let found: Vec<(&str, Error)> = sides
        .iter()
        .filter_map(|it| Some((it.name, it.error(part, &Draw::ALL, &lasted)?)))
        .collect();
    let weight: f64 = found.iter().map(|(_, it)| it.weight).sum();
    let of = |(name, error): (&str, Error)| Apart {
        family: name.to_owned(),
        weight: error.weight / weight,
        factors: Factors::of(error.errors),
        second: error.values[SECOND],
        simulated: error.values[SIMULATED],
    };
    found.into_iter().map(of).collect()
}

/// The part of the second half's spans, or CPU time, that the families have.
fn covered(part: SkillPart, families: &[Apart], trial: &Trial) -> f64 {
    let of = |blocks: &[Block]| -> u64 {
        let one = |block: &Block| match part.spans() {
            Some(kind) => block.spans(kind).values().sum(),
            None => block.run,
        };
        blocks.iter().map(one).sum()
    };
    let all: u64 = trial.second.families.values().map(|it| of(it)).sum();
    let has = |name: &str| families.iter().any(|it| it.family == name);
    let its = trial.second.families.iter().filter(|(name, _)| has(name));
    let its: u64 = its.map(|(_, blocks)| of(blocks)).sum();
    its as f64 / (all as f64).max(1.0)
}
