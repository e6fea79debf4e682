//! Which candidate is best, as far as the runs and the simulation can say.

use std::collections::BTreeSet;

use stats::compare::{Better, Choice, Effect, MetricRow, Scale, Set, Settings, Verdict, compare};

use super::runs::Field;
use crate::compare::Family;
use crate::goal::Goal;
use crate::goal::fidelity::TABLE;
use crate::sets::File;

/// What is said of a candidate at a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Better, by more than what is not modelled.
    Better,
    /// Worse, by more than what is not modelled.
    Worse,
    /// Better in the simulation, but perhaps by less than what is not modelled.
    BetterWithin,
    /// Worse in the simulation, but perhaps by less than what is not modelled.
    WorseWithin,
    /// No difference of interest.
    Same,
    /// The runs do not say.
    Undecided,
}

/// What is said of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// What the others are held against.
    Baseline,
    /// Better at a goal, and worse at none.
    Better,
    /// Better at a goal, and worse at another.
    Mixed,
    /// Worse at a goal, and better at none.
    Worse,
    /// Better in the simulation, but perhaps by less than what is not modelled.
    Within,
    /// No difference at any goal.
    Same,
    /// The runs do not say.
    Undecided,
    /// Ejected, or a task starved.
    Failed,
}

/// How small a change may be, and who says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Margin {
    /// By which factor a figure may be wrong, from 1 on.
    pub factor: f64,
    /// Where the factor comes from, in words.
    pub source: String,
}

/// The candidates in order, and why.
#[derive(Debug)]
pub struct Ranking {
    /// The sets of runs that are judged; `None` if every candidate but the baseline failed.
    pub family: Option<Family>,
    /// Every candidate against the baseline, goal by goal.
    pub rows: Vec<MetricRow>,
    /// By goal.
    pub margins: Vec<Margin>,
    /// By candidate.
    pub standings: Vec<Standing>,
    /// The candidates, best first.
    pub order: Vec<usize>,
    /// The best one, if one is better than the baseline.
    pub winner: Option<usize>,
    /// Those that the runs cannot tell from the winner.
    pub ties: Vec<usize>,
    /// Those that differ from the winner, but perhaps by less than what is not modelled.
    pub close: Vec<usize>,
    /// What is worse under the winner than under the baseline.
    pub worse: Vec<MetricRow>,
    /// How many other figures were looked at for that.
    pub looked_at: usize,
}

impl Said {
    /// In a table.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::BetterWithin | Self::WorseWithin => "within error",
            Self::Same => "no difference",
            Self::Undecided => "undecided",
        }
    }

    const fn is_worse(self) -> bool {
        matches!(self, Self::Worse | Self::WorseWithin)
    }
}

impl Standing {
    /// In documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Better => "better",
            Self::Mixed => "mixed",
            Self::Worse => "worse",
            Self::Within => "within-error",
            Self::Same => "no-difference",
            Self::Undecided => "undecided",
            Self::Failed => "failed",
        }
    }

    /// Of a candidate of which this is said, goal by goal.
    fn of(said: &[Said]) -> Self {
        let has = |one: Said| said.contains(&one);
        let is_worse = said.iter().any(|it| it.is_worse());
        match () {
            () if has(Said::Better) && is_worse => Self::Mixed,
            () if has(Said::Better) => Self::Better,
            () if has(Said::Worse) => Self::Worse,
            () if has(Said::BetterWithin) => Self::Within,
            () if has(Said::WorseWithin) => Self::Worse,
            () if has(Said::Undecided) => Self::Undecided,
            () => Self::Same,
        }
    }
}

impl Margin {
    /// That of the user, or that of the figures that were measured against a kernel.
    #[must_use]
    pub fn of(goal: &Goal, asked: Option<f64>) -> Self {
        if let Some(part) = asked {
            return Self {
                factor: 1.0 + part,
                source: format!("--not-modelled {}", part * 100.0),
            };
        }
        let error = goal.class().error();
        Self {
            factor: error.factor(),
            source: format!("{TABLE}: {}, ratio {:.2}", error.row, error.ratio),
        }
    }

    /// Whether the whole interval lies beyond the factor.
    #[must_use]
    pub fn is_exceeded(&self, effect: &Effect) -> bool {
        let nearest = if effect.shift > 0.0 {
            effect.low
        } else {
            effect.high
        };
        let (less, more) = match effect.scale {
            Scale::Log => {
                return nearest.abs() > self.factor.ln() && (nearest > 0.0) == (effect.shift > 0.0);
            }
            Scale::Linear if effect.shift > 0.0 => (effect.base, effect.base + nearest),
            Scale::Linear => ((effect.base + nearest).max(0.0), effect.base),
        };
        more > less * self.factor
    }
}

/// What a comparison says, held against what is not modelled.
#[must_use]
pub fn said(row: &MetricRow, margin: &Margin) -> Said {
    let Ok(judged) = &row.result else {
        return Said::Undecided;
    };
    let is_exceeded = margin.is_exceeded(&judged.effect);
    match judged.verdict {
        Some(Verdict::Faster) if is_exceeded => Said::Better,
        Some(Verdict::Faster) => Said::BetterWithin,
        Some(Verdict::Slower) if is_exceeded => Said::Worse,
        Some(Verdict::Slower) => Said::WorseWithin,
        Some(Verdict::NoDifference) => Said::Same,
        _ => Said::Undecided,
    }
}

impl Ranking {
    /// Judges all candidates that did not fail. `asked` is the user's margin, as a part.
    ///
    /// # Errors
    /// Never in practice: the sets are of one load and one kind.
    pub fn of(field: &Field, asked: Option<f64>, settings: &Settings) -> anyhow::Result<Self> {
        let margins: Vec<Margin> = field.goals.iter().map(|it| Margin::of(it, asked)).collect();
        let judge =
            |base: usize, sets: &[Set], others: &[usize]| judge(sets, base, others, settings);
        let all = 0..field.sets.len();
        let sound: Vec<usize> = all.filter(|at| field.failures[*at].is_none()).collect();
        let (family, rows) = judge(0, &field.sets, &sound)?;
        let mut ranking = Self {
            family,
            rows,
            margins,
            standings: Vec::new(),
            order: Vec::new(),
            winner: None,
            ties: Vec::new(),
            close: Vec::new(),
            worse: Vec::new(),
            looked_at: 0,
        };
        ranking.standings = (0..field.sets.len())
            .map(|at| ranking.standing(field, at))
            .collect();
        ranking.order = ranking.ordered(field);
        let first = ranking.order[0];
        if ranking.standings[first] != Standing::Better {
            return Ok(ranking);
        }
        ranking.winner = Some(first);
        let rest: Vec<usize> = sound.iter().copied().filter(|at| *at != 0).collect();
        let (_, against) = judge(first, &field.sets, &rest)?;
        for at in rest.into_iter().filter(|at| *at != first) {
            let said = ranking.said_of(field, at, &against);
            let is_apart = said
                .iter()
                .any(|it| matches!(it, Said::Better | Said::Worse));
            let is_worse = matches!(ranking.standings[at], Standing::Worse | Standing::Mixed);
            let is_same = said
                .iter()
                .all(|it| matches!(it, Said::Same | Said::Undecided));
            match is_same {
                _ if is_apart || is_worse => {}
                true => ranking.ties.push(at),
                false => ranking.close.push(at),
            }
        }
        let (_, rest) = judge(0, &field.rest, &[0, first])?;
        ranking.looked_at = rest.len();
        ranking.worse = rest;
        ranking.worse.retain(|row| {
            let judged = row.result.as_ref().ok();
            judged.and_then(|it| it.verdict) == Some(Verdict::Slower)
        });
        Ok(ranking)
    }

    /// The comparison of candidate `at` at a goal, if it was made.
    #[must_use]
    pub fn row(&self, field: &Field, at: usize, goal: usize) -> Option<&MetricRow> {
        find(&self.rows, field, at, goal)
    }

    /// What is said of candidate `at` at each goal.
    #[must_use]
    pub fn said(&self, field: &Field, at: usize) -> Vec<Said> {
        self.said_of(field, at, &self.rows)
    }

    fn said_of(&self, field: &Field, at: usize, rows: &[MetricRow]) -> Vec<Said> {
        let goals = self.margins.iter().enumerate();
        let said = goals.map(|(goal, margin)| {
            find(rows, field, at, goal).map_or(Said::Undecided, |row| said(row, margin))
        });
        said.collect()
    }

    fn standing(&self, field: &Field, at: usize) -> Standing {
        match at {
            0 => Standing::Baseline,
            _ if field.failures[at].is_some() => Standing::Failed,
            _ => Standing::of(&self.said(field, at)),
        }
    }

    /// The best first: those that are better, by the number of goals; then by the first goal, then
    /// the next. Those that failed are last.
    fn ordered(&self, field: &Field) -> Vec<usize> {
        let gains = |at: usize| {
            let said = self.said(field, at);
            said.iter().filter(|it| **it == Said::Better).count()
        };
        let mut order: Vec<usize> = (0..field.sets.len()).collect();
        order.sort_by(|&a, &b| {
            let rank = |at: usize| match self.standings[at] {
                Standing::Better => 0,
                Standing::Failed => 2,
                _ => 1,
            };
            let more = if self.standings[a] == Standing::Better {
                gains(b).cmp(&gains(a))
            } else {
                std::cmp::Ordering::Equal
            };
            let goals = field.goals.iter();
            let values = goals
                .map(|goal| worth(&field.sets[a], goal).total_cmp(&worth(&field.sets[b], goal)));
            let value = values.into_iter().find(|it| it.is_ne());
            let by_rank = rank(a).cmp(&rank(b));
            by_rank.then(more).then(value.unwrap_or(a.cmp(&b)))
        });
        order
    }

    /// Whether the runs say of each candidate how it stands, or one is better.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.winner.is_some() || !self.standings.contains(&Standing::Undecided)
    }
}

/// The mean at a goal, the less the better; none is worst.
fn worth(set: &Set, goal: &Goal) -> f64 {
    let series = set.find(&goal.to_string());
    let values = series.map_or(&[][..], |it| &it.values);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    match goal.better() {
        _ if values.is_empty() => f64::INFINITY,
        Better::Higher => -mean,
        _ => mean,
    }
}

fn find<'a>(rows: &'a [MetricRow], field: &Field, at: usize, goal: usize) -> Option<&'a MetricRow> {
    let metric = field.goals[goal].to_string();
    let arm = field.name(at);
    rows.iter()
        .find(|row| row.metric == metric && row.arm == arm)
}

/// Holds `others` against `base`; nothing if there are none.
fn judge(
    sets: &[Set],
    base: usize,
    others: &[usize],
    settings: &Settings,
) -> anyhow::Result<(Option<Family>, Vec<MetricRow>)> {
    let others = others.iter().filter(|at| **at != base);
    let all: Vec<Set> = [&base]
        .into_iter()
        .chain(others)
        .map(|at| sets[*at].clone())
        .collect();
    if all.len() < 2 {
        return Ok((None, Vec::new()));
    }
    let baseline = all[0].arm.clone();
    let file = File {
        stem: String::new(),
        sets: all,
        baseline: None,
        again: None,
        looks: 1,
        unique: BTreeSet::new(),
    };
    let family = Family::of(vec![file], Some(&baseline), None)?;
    let rows = compare(&family.questions(), Choice::Stated, settings);
    Ok((Some(family), rows))
}

#[cfg(test)]
mod tests {
    use stats::compare::{Measure, Values, effect};

    use super::*;

    #[test]
    fn a_candidate_is_better_only_if_it_is_worse_at_no_goal() {
        use Said::{Better, BetterWithin, Same, Undecided, Worse, WorseWithin};
        for (said, want) in [
            (&[Better, Same, Undecided][..], Standing::Better),
            (&[Better, Worse], Standing::Mixed),
            (&[Better, WorseWithin], Standing::Mixed),
            (&[BetterWithin, Undecided], Standing::Within),
            (&[BetterWithin, Worse], Standing::Worse),
            (&[WorseWithin, Same], Standing::Worse),
            (&[Same, Undecided], Standing::Undecided),
            (&[Same, Same], Standing::Same),
        ] {
            assert_eq!(Standing::of(said), want, "{said:?}");
        }
    }

    /// Twelve pairs: the second set is the first after `change`.
    fn changed(change: impl Fn(f64, f64) -> f64) -> Effect {
        let pairs = (0..12).map(|at| {
            let value = 100.0 + f64::from(at);
            (value, change(value, f64::from(at % 3)))
        });
        let values = Values::Pairs(pairs.collect());
        effect(&values, Measure::Nanos, 0, &Settings::default()).unwrap()
    }

    fn margin(factor: f64) -> Margin {
        Margin {
            factor,
            source: String::new(),
        }
    }

    #[test]
    fn the_whole_interval_must_be_beyond_the_factor_either_way() {
        let third = changed(|value, at| value / 3.0 * (1.0 + at / 50.0));
        assert!(margin(2.5).is_exceeded(&third), "{third:?}");
        assert!(!margin(2.95).is_exceeded(&third), "{third:?}");
        let thrice = changed(|value, at| value * 3.0 / (1.0 + at / 50.0));
        assert!(margin(2.5).is_exceeded(&thrice), "{thrice:?}");
        assert!(!margin(2.95).is_exceeded(&thrice), "{thrice:?}");
    }

    #[test]
    fn of_a_difference_the_end_of_its_interval_is_held_against_the_baseline() {
        // Some zeros: no ratio.
        let nearly_none = changed(|_, at| at * 5.0);
        assert_eq!(nearly_none.scale, Scale::Linear);
        assert!(margin(5.8).is_exceeded(&nearly_none), "{nearly_none:?}");
        assert!(!margin(50.0).is_exceeded(&nearly_none), "{nearly_none:?}");
        let none = changed(|_, _| 0.0);
        assert!(
            margin(1e6).is_exceeded(&none) || none.high > -none.base,
            "{none:?}"
        );
    }

    #[test]
    fn a_margin_of_the_user_has_its_place_before_the_measured_ones() {
        let goal: Goal = "p99 wait of web".parse().unwrap();
        let measured = Margin::of(&goal, None);
        assert_eq!(measured.factor, 5.80);
        assert!(
            measured.source.contains("client_reader"),
            "{}",
            measured.source
        );
        let asked = Margin::of(&goal, Some(0.1));
        assert_eq!(
            (asked.factor, asked.source.as_str()),
            (1.1, "--not-modelled 10")
        );
        let work: Goal = "work".parse().unwrap();
        assert!((Margin::of(&work, None).factor - 1.0 / 0.33).abs() < 1e-9);
    }
}
