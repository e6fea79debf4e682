//! Answers questions about runs.

use super::contrast::{Contrast, Estimate, Scale, Term};
use super::question::{ClaimCell, ClaimQuestion, Side};
use super::sequence;
use super::verdict::ClaimVerdict;
use stats::compare::holm;

/// How questions are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Seed of the resamples.
    pub seed: u64,
    /// How often each set is drawn anew.
    pub resamples: u32,
    /// How probable it may be that a statement is refuted, or supported, by chance: 0.05.
    pub alpha: f64,
    /// A ratio nearer to 1 than this, as a part, is no difference: 0.03. Two effects that are
    /// nearer to each other than this are the same.
    pub same: f64,
    /// Whether means alone are looked at, because there are few runs: then the best verdict is
    /// "same direction" and the worst "opposite direction".
    pub quick: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            seed: 1,
            resamples: 10_000,
            alpha: 0.05,
            same: 0.03,
            quick: false,
        }
    }
}

/// A number that an answer rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerPart {
    /// What it is: `mlfq / o1, hogs 8`.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Lower end of the interval of 95 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimFinding {
    /// What it says.
    pub verdict: ClaimVerdict,
    /// The numbers that it rests on.
    pub parts: Vec<AnswerPart>,
    /// How probable such runs are if this part of the statement is wrong; `None` where nothing was
    /// left to chance.
    pub p: Option<f64>,
    /// What else there is to say.
    pub words: String,
    /// The published number that they were held against.
    pub published: Option<f64>,
}

/// What the runs say for a statement and against it.
struct Evidence {
    p_for: f64,
    p_against: f64,
    /// Whether the means alone say the opposite, and not only too little.
    opposite: bool,
    /// Nothing was left to chance.
    exact: bool,
    /// Whether a statement that holds also holds in its size.
    close: bool,
    parts: Vec<AnswerPart>,
    words: String,
}

/// Answers the questions of one statement, as if there were no other statement. Each has a name,
/// which numbers its resamples, so that an answer does not depend on which other questions there
/// are but through the correction.
///
/// A statement is supported when every question is, so evidence in favour needs no correction. It
/// is refuted when any is, so the probabilities of the evidence against are corrected by Holm's
/// procedure for their number; what nothing was left to chance in is not among them. Both are
/// wrong in one of `1 / alpha` statements at most.
///
/// Source: Berger (1982), "Multiparameter hypothesis testing and acceptance sampling", for the
/// first half; Holm (1979), "A simple sequentially rejective multiple test procedure", for the
/// second.
pub fn judge(questions: &[(String, ClaimQuestion)], rules: &Rules) -> Vec<ClaimFinding> {
    let weighed: Vec<Result<Evidence, ClaimFinding>> = questions
        .iter()
        .map(|(name, question)| Scales { name, rules }.weigh(question))
        .collect();
    let uncertain = weighed.iter().flatten().filter(|it| !it.exact);
    let against: Vec<f64> = uncertain.map(|it| it.p_against).collect();
    let mut against = holm(&against).into_iter();
    let mut answer = |evidence: Evidence| {
        let p_against = if evidence.exact {
            evidence.p_against
        } else {
            against.next().expect("one each")
        };
        evidence.decide(p_against, rules)
    };
    // In the order of the questions, which is that of the corrected probabilities.
    let mut findings = Vec::with_capacity(weighed.len());
    for (weighed, (_, question)) in weighed.into_iter().zip(questions) {
        let finding = match weighed {
            Ok(evidence) => answer(evidence),
            Err(finding) => finding,
        };
        findings.push(ClaimFinding {
            published: question.published(),
            ..finding
        });
    }
    findings
}

impl Evidence {
    fn decide(self, p_against: f64, rules: &Rules) -> ClaimFinding {
        let verdict = if self.p_for < rules.alpha {
            if self.close {
                ClaimVerdict::Reproduced
            } else {
                ClaimVerdict::SameDirection
            }
        } else if p_against < rules.alpha {
            ClaimVerdict::NotReproduced
        } else {
            ClaimVerdict::Undecided
        };
        let verdict = match (rules.quick, verdict) {
            (true, ClaimVerdict::Reproduced) => ClaimVerdict::SameDirection,
            (true, ClaimVerdict::NotReproduced) if self.opposite => ClaimVerdict::OppositeDirection,
            (true, ClaimVerdict::NotReproduced) => ClaimVerdict::Undecided,
            (_, verdict) => verdict,
        };
        ClaimFinding {
            verdict,
            parts: self.parts,
            p: (!self.exact && !rules.quick).then_some(self.p_for),
            words: self.words,
            published: None,
        }
    }
}

fn finding(verdict: ClaimVerdict, words: &str) -> ClaimFinding {
    ClaimFinding {
        verdict,
        parts: Vec::new(),
        p: None,
        words: words.to_owned(),
        published: None,
    }
}

/// `ln` of a factor for a share: 0.03 is ln 1.03.
fn log_margin(part: f64) -> f64 {
    libm::log(1.0 + part)
}

/// Whether a ratio has the published size: it is within the factor `margin` of it, and so is its
/// effect, which is what it differs from 1 by. Effects that are nearer to each other than `same`
/// are the same, since a part of nearly nothing is nothing.
fn is_met(ours: f64, published: f64, margin: f64, same: f64) -> bool {
    let is_within = |ratio: f64| ratio >= 1.0 / margin && ratio <= margin;
    let (effect, wanted) = (ours - 1.0, published - 1.0);
    is_within(ours / published) && ((effect - wanted).abs() <= same || is_within(effect / wanted))
}

/// Several estimates that must all hold: the weakest counts; one that is contradicted is enough,
/// but it is one of several.
#[derive(Default)]
struct All {
    p_for: f64,
    p_against: f64,
    opposite: bool,
    count: usize,
    exact: bool,
    parts: Vec<AnswerPart>,
}

impl All {
    fn new() -> Self {
        Self {
            p_against: 1.0,
            exact: true,
            ..Self::default()
        }
    }

    /// The probabilities are those for the estimate and against it.
    fn add(&mut self, estimate: &Estimate, (p_for, p_against): (f64, f64), part: AnswerPart) {
        self.p_for = self.p_for.max(p_for);
        self.p_against = self.p_against.min(p_against);
        self.opposite |= p_against == 0.0;
        self.count += 1;
        self.exact &= estimate.is_exact();
        self.parts.push(part);
    }

    fn evidence(self) -> Evidence {
        Evidence {
            p_for: self.p_for,
            p_against: (self.p_against * self.count.max(1) as f64).min(1.0),
            opposite: self.opposite,
            exact: self.exact,
            close: true,
            parts: self.parts,
            words: String::new(),
        }
    }
}

/// Weighs one question.
struct Scales<'a> {
    name: &'a str,
    rules: &'a Rules,
}

type Weighed = Result<Evidence, ClaimFinding>;

impl Scales<'_> {
    fn weigh(&self, question: &ClaimQuestion) -> Weighed {
        match question {
            ClaimQuestion::Ratio { .. } => self.ratio(question),
            ClaimQuestion::Equal { arm, base, margin } => {
                let limit = log_margin(*margin);
                self.between(arm, Some(base), (-limit, limit), Scale::Log)
            }
            ClaimQuestion::Within {
                cell,
                base: None,
                low,
                high,
                ..
            } => self.between(cell, None, (*low, *high), Scale::Linear),
            ClaimQuestion::Within {
                cell,
                base,
                low,
                high,
                ..
            } => {
                let limits = (libm::log(low.max(0.0)), libm::log(high.max(0.0)));
                self.between(cell, base.as_ref(), limits, Scale::Log)
            }
            ClaimQuestion::Every { cells, low, high } => Ok(every(cells, *low, *high)),
            ClaimQuestion::Slope {
                points,
                log,
                low,
                high,
            } => self.slope(points, *log, (*low, *high)),
            ClaimQuestion::Flat { points, margin } => self.flat(points, *margin),
            ClaimQuestion::Monotone { points, side } => self.monotone(points, *side),
            ClaimQuestion::Order { cells, ties } => {
                let pairs = cells.windows(2).map(|pair| (&pair[0], &pair[1]));
                self.sides(pairs.map(|(low, high)| (low, high, Side::Below)), *ties)
            }
            ClaimQuestion::Extreme {
                cell,
                others,
                side,
                ties,
            } => self.sides(others.iter().map(|other| (cell, other, *side)), *ties),
            ClaimQuestion::Turn { points, side } => self.turn(points, *side),
            ClaimQuestion::Signs { pairs } => {
                let pairs = pairs.iter().map(|(arm, base, side)| (arm, base, *side));
                self.sides(pairs, 0.0)
            }
            ClaimQuestion::Agree {
                left,
                right,
                margin,
            } => agree(left, right, *margin),
            ClaimQuestion::Trace {
                want,
                got,
                within,
                prefix,
            } => {
                let (holds, words) = sequence::compare(want, got, *within, *prefix);
                Ok(settled(holds, Vec::new(), words))
            }
            ClaimQuestion::CannotFail { why, question } => Err(self.cannot_fail(why, question)),
            ClaimQuestion::NotTestable { why } => Err(finding(ClaimVerdict::NotTestable, why)),
            ClaimQuestion::Lacking { why } => Err(finding(ClaimVerdict::Undecided, why)),
        }
    }

    /// One that fails although it cannot says so.
    fn cannot_fail(&self, why: &str, question: &ClaimQuestion) -> ClaimFinding {
        let alone = match self.weigh(question) {
            Ok(evidence) => {
                let against = evidence.p_against;
                evidence.decide(against, self.rules)
            }
            Err(finding) => finding,
        };
        let verdict = match alone.verdict {
            ClaimVerdict::Reproduced | ClaimVerdict::SameDirection | ClaimVerdict::Undecided => {
                ClaimVerdict::CannotFail
            }
            other => other,
        };
        let words = [why, alone.words.as_str()];
        let words = words.into_iter().filter(|words| !words.is_empty());
        ClaimFinding {
            verdict,
            words: words.collect::<Vec<_>>().join("; "),
            p: None,
            ..alone
        }
    }

    /// A weighted sum over cells; `number` keeps those of one question apart.
    fn estimate(
        &self,
        terms: &[(f64, &ClaimCell)],
        scale: Scale,
        number: usize,
    ) -> Result<Estimate, ClaimFinding> {
        let means: Vec<[f64; 1]> = terms
            .iter()
            .map(|(_, cell)| [cell.values.iter().sum::<f64>() / cell.values.len() as f64])
            .collect();
        let terms: Vec<Term<'_>> = terms
            .iter()
            .zip(&means)
            .map(|((weight, cell), mean)| Term {
                weight: *weight,
                values: if self.rules.quick { mean } else { &cell.values },
            })
            .collect();
        let contrast = Contrast {
            terms: &terms,
            scale,
            seed: self.rules.seed,
            stream: stream(self.name, number),
            resamples: self.rules.resamples,
        };
        contrast.estimate().ok_or_else(|| {
            let words = "the values allow no estimate: fewer than 5 runs, or no ratio of them";
            finding(ClaimVerdict::Undecided, words)
        })
    }

    fn log_ratio(
        &self,
        arm: &ClaimCell,
        base: &ClaimCell,
        number: usize,
    ) -> Result<Estimate, ClaimFinding> {
        self.estimate(&[(1.0, arm), (-1.0, base)], Scale::Log, number)
    }

    fn ratio(&self, question: &ClaimQuestion) -> Weighed {
        let ClaimQuestion::Ratio {
            arm,
            base,
            side,
            published,
            margin,
            beyond,
        } = question
        else {
            unreachable!("asked for a ratio only");
        };
        let it = self.log_ratio(arm, base, 0)?;
        let same = log_margin(self.rules.same);
        let (p_for, _) = side.of(&it, 0.0);
        // Evidence against a ratio that is said to be beyond a factor is evidence that it is not.
        let (_, p_short) = side.of(&it, side.beyond(libm::log(*beyond)));
        // "No difference" contradicts a difference that was published as larger than that.
        let is_large = published.is_none_or(|ratio| libm::log(ratio).abs() > same);
        let p_same = if is_large {
            it.p_between(-same, same)
        } else {
            1.0
        };
        // Where nothing is left to chance, a ratio a hair from 1 is on one side for sure, and yet
        // no difference.
        let is_none = it.is_exact() && it.value.abs() <= same;
        let is_claimed = published.is_some() || libm::log(*beyond) > same;
        let p_for = if is_claimed && is_large && is_none {
            1.0
        } else {
            p_for
        };
        let ours = libm::exp(it.value);
        let met = published.is_none_or(|ratio| is_met(ours, ratio, *margin, self.rules.same));
        let far = it.value.abs() >= libm::log(*beyond);
        Ok(Evidence {
            p_for,
            p_against: p_short.min(p_same),
            opposite: side.of(&it, side.beyond(-same)).1 == 0.0,
            exact: it.is_exact(),
            close: met && far,
            parts: vec![part_of(&it, Scale::Log, over(arm, base))],
            words: String::new(),
        })
    }

    fn between(
        &self,
        cell: &ClaimCell,
        base: Option<&ClaimCell>,
        (low, high): (f64, f64),
        scale: Scale,
    ) -> Weighed {
        let mut terms = vec![(1.0, cell)];
        terms.extend(base.map(|base| (-1.0, base)));
        let it = self.estimate(&terms, scale, 0)?;
        let name = base.map_or_else(|| cell.name.clone(), |base| over(cell, base));
        let mut all = All::new();
        let part = part_of(&it, scale, name);
        all.add(
            &it,
            (it.p_between(low, high), it.p_outside(low, high)),
            part,
        );
        Ok(all.evidence())
    }

    fn slope(
        &self,
        points: &[(f64, ClaimCell, Option<ClaimCell>)],
        log: bool,
        (low, high): (f64, f64),
    ) -> Weighed {
        let count = points.len() as f64;
        let mean = points.iter().map(|(x, ..)| x).sum::<f64>() / count;
        let squares: f64 = points.iter().map(|(x, ..)| (x - mean) * (x - mean)).sum();
        if squares == 0.0 {
            let words = "a slope needs two places on the x axis";
            return Err(finding(ClaimVerdict::Undecided, words));
        }
        let mut terms = Vec::new();
        for (x, cell, base) in points {
            let weight = (x - mean) / squares;
            terms.push((weight, cell));
            terms.extend(base.as_ref().map(|base| (-weight, base)));
        }
        let scale = if log { Scale::Log } else { Scale::Linear };
        let it = self.estimate(&terms, scale, 0)?;
        let mut all = All::new();
        let part = part_of(&it, Scale::Linear, "slope".to_owned());
        all.add(
            &it,
            (it.p_between(low, high), it.p_outside(low, high)),
            part,
        );
        Ok(all.evidence())
    }

    /// Each point against the mean of all.
    fn flat(&self, points: &[ClaimCell], margin: f64) -> Weighed {
        let limit = log_margin(margin);
        let share = 1.0 / points.len() as f64;
        let mut all = All::new();
        for at in 0..points.len() {
            let weight = |other: usize| if other == at { 1.0 - share } else { -share };
            let terms: Vec<(f64, &ClaimCell)> = points
                .iter()
                .enumerate()
                .map(|(other, cell)| (weight(other), cell))
                .collect();
            let it = self.estimate(&terms, Scale::Log, at)?;
            let part = part_of(&it, Scale::Log, format!("{} / mean", points[at].name));
            let chances = (it.p_between(-limit, limit), it.p_outside(-limit, limit));
            all.add(&it, chances, part);
        }
        Ok(all.evidence())
    }

    fn monotone(&self, points: &[(ClaimCell, Option<ClaimCell>)], side: Side) -> Weighed {
        let middle = (points.len() as f64 - 1.0) / 2.0;
        let mut trend = Vec::new();
        for (at, (cell, base)) in points.iter().enumerate() {
            let weight = at as f64 - middle;
            trend.push((weight, cell));
            trend.extend(base.as_ref().map(|base| (-weight, base)));
        }
        let it = self.estimate(&trend, Scale::Log, 0)?;
        let (p_for, p_against) = side.of(&it, 0.0);
        let mut parts = Vec::new();
        let mut exact = it.is_exact();
        let mut steps_back = Vec::new();
        let steps = points.len().saturating_sub(1).max(1) as f64;
        for (at, pair) in points.windows(2).enumerate() {
            let [(before, base_before), (after, base_after)] = pair else {
                continue;
            };
            let mut terms = vec![(1.0, after), (-1.0, before)];
            terms.extend(base_after.as_ref().map(|base| (-1.0, base)));
            terms.extend(base_before.as_ref().map(|base| (1.0, base)));
            let step = self.estimate(&terms, Scale::Log, at + 1)?;
            exact &= step.is_exact();
            if side.of(&step, 0.0).1 * steps < self.rules.alpha {
                steps_back.push(format!("{} after {}", after.name, before.name));
            }
        }
        for (at, (cell, base)) in points.iter().enumerate() {
            let number = points.len() + at;
            parts.push(match base {
                Some(base) => {
                    let it = self.log_ratio(cell, base, number)?;
                    part_of(&it, Scale::Log, over(cell, base))
                }
                None => {
                    let it = self.estimate(&[(1.0, cell)], Scale::Linear, number)?;
                    part_of(&it, Scale::Linear, cell.name.clone())
                }
            });
        }
        Ok(Evidence {
            p_for,
            p_against,
            opposite: p_against == 0.0,
            exact,
            close: steps_back.is_empty(),
            parts,
            words: if steps_back.is_empty() {
                String::new()
            } else {
                format!("steps back: {}", steps_back.join(", "))
            },
        })
    }

    /// Pairs whose ratio is on a side of 1, or beyond it by no more than `ties`.
    fn sides<'a>(
        &self,
        pairs: impl Iterator<Item = (&'a ClaimCell, &'a ClaimCell, Side)>,
        ties: f64,
    ) -> Weighed {
        let mut all = All::new();
        for (number, (arm, base, side)) in pairs.enumerate() {
            let it = self.log_ratio(arm, base, number)?;
            let (p_for, mut p_against) = side.of(&it, side.beyond(-log_margin(ties)));
            if self.rules.quick {
                // Means of a few runs that are a hair on the wrong side say nothing.
                let hair = log_margin(ties).max(log_margin(self.rules.same));
                p_against = side.of(&it, side.beyond(-hair)).1;
            }
            let part = part_of(&it, Scale::Log, over(arm, base));
            all.add(&it, (p_for, p_against), part);
        }
        Ok(all.evidence())
    }

    /// The best of those inside against each outside; and the other way round.
    fn turn(&self, points: &[(ClaimCell, bool)], side: Side) -> Weighed {
        let mean = |cell: &ClaimCell| cell.values.iter().sum::<f64>() / cell.values.len() as f64;
        let best = |inside: bool| {
            let of = points.iter().filter(|(_, it)| *it == inside);
            let cells = of.map(|(cell, _)| cell);
            match side {
                Side::Below => cells.min_by(|a, b| mean(a).total_cmp(&mean(b))),
                Side::Above => cells.max_by(|a, b| mean(a).total_cmp(&mean(b))),
            }
        };
        let (Some(inside), Some(outside)) = (best(true), best(false)) else {
            let words = "there must be points on both sides";
            return Err(finding(ClaimVerdict::Undecided, words));
        };
        let others = points.iter().filter(|(_, is)| !is);
        let pairs = others.map(|(cell, _)| (inside, cell, side));
        let mut evidence = self.sides(pairs, 0.0)?;
        let insiders = points.iter().filter(|(_, is)| *is);
        let pairs = insiders.map(|(cell, _)| (outside, cell, side));
        evidence.p_against = self.sides(pairs, 0.0)?.p_for;
        evidence.words = format!(
            "{}: {}",
            match side {
                Side::Below => "the lowest",
                Side::Above => "the highest",
            },
            [inside, outside]
                .into_iter()
                .min_by(|a, b| {
                    let order = mean(a).total_cmp(&mean(b));
                    if side == Side::Below {
                        order
                    } else {
                        order.reverse()
                    }
                })
                .map_or("", |cell| &cell.name)
        );
        Ok(evidence)
    }
}

impl Side {
    /// Probabilities of an estimate if the true value is not on this side of `bound`, and if it is
    /// not on the other.
    fn of(self, it: &Estimate, bound: f64) -> (f64, f64) {
        match self {
            Self::Above => (it.p_above(bound), it.p_below(bound)),
            Self::Below => (it.p_below(bound), it.p_above(bound)),
        }
    }

    /// The logarithm of a ratio that is so far from 1 on this side; on the other if negative.
    fn beyond(self, distance: f64) -> f64 {
        match self {
            Self::Above => distance,
            Self::Below => -distance,
        }
    }
}

fn over(arm: &ClaimCell, base: &ClaimCell) -> String {
    format!("{} / {}", arm.name, base.name)
}

fn part_of(it: &Estimate, scale: Scale, name: String) -> AnswerPart {
    let (low, high) = it.interval(950);
    let [value, low, high] = match scale {
        Scale::Log => [it.value, low, high].map(libm::exp),
        Scale::Linear => [it.value, low, high],
    };
    AnswerPart {
        name,
        value,
        low,
        high,
    }
}

/// Evidence that no chance is in.
fn settled(holds: bool, parts: Vec<AnswerPart>, words: String) -> Evidence {
    let p = |it: bool| if it { 0.0 } else { 1.0 };
    Evidence {
        p_for: p(holds),
        p_against: p(!holds),
        opposite: !holds,
        exact: true,
        close: true,
        parts,
        words,
    }
}

/// What a sum of rounded parts may be off by, of itself: shares that are all of 100 % add up to
/// 100.00000000000001.
const ROUNDING: f64 = 1e-9;

fn every(cells: &[ClaimCell], low: f64, high: f64) -> Evidence {
    let parts: Vec<AnswerPart> = cells
        .iter()
        .map(|cell| {
            let values = cell.values.iter().copied();
            AnswerPart {
                name: cell.name.clone(),
                value: values.clone().sum::<f64>() / cell.values.len() as f64,
                low: values.clone().fold(f64::INFINITY, f64::min),
                high: values.fold(f64::NEG_INFINITY, f64::max),
            }
        })
        .collect();
    let (least, most) = (low - low.abs() * ROUNDING, high + high.abs() * ROUNDING);
    let holds = parts.iter().all(|it| it.low >= least && it.high <= most);
    settled(holds, parts, "lowest and highest of all runs".to_owned())
}

fn agree(left: &ClaimCell, right: &ClaimCell, margin: f64) -> Weighed {
    if left.values.len() != right.values.len() {
        let words = "the two numbers are not of the same runs";
        return Err(finding(ClaimVerdict::Undecided, words));
    }
    let pairs = left.values.iter().zip(&right.values);
    let ratios: Vec<f64> = pairs
        .map(|(a, b)| if a == b { 1.0 } else { a / b })
        .collect();
    let holds = ratios.iter().all(|ratio| (ratio - 1.0).abs() <= margin);
    let part = AnswerPart {
        name: over(left, right),
        value: ratios.iter().sum::<f64>() / ratios.len() as f64,
        low: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        high: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    };
    let words = "lowest and highest of all runs".to_owned();
    Ok(settled(holds, vec![part], words))
}

/// The number of an estimate's stream, by the name of its question.
pub(super) fn stream(name: &str, number: usize) -> u64 {
    let bytes = name.bytes().chain([0]).chain(number.to_le_bytes());
    model::Fnv1a::of(bytes)
}
