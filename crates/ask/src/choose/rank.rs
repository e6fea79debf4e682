//! Which candidate is better, as far as the runs and the simulation can say.

use std::collections::BTreeSet;

use stats::compare::{Answered, Better, MetricRow, RatioAnswer, RatioError, Settings};

use super::errors::{ErrorTable, Simulated, scored_as};
use super::field::Field;
use super::kinds::FigureKind;
use super::reruns::Which;
use crate::compare::Family;
use crate::goal::Goal;
use crate::sets::File;

/// What is said of a candidate over all goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Better at a goal, and surely not worse at any other.
    Better,
    /// Better at a goal; nothing can be said about another one.
    BetterForSome,
    /// What the others are held against.
    Baseline,
    /// No difference at any goal.
    Alike,
    /// The runs, or the simulation's error, leave it open.
    CannotTell,
    /// The machine has what no play was made on.
    NotMeasured,
    /// Better at a goal, and worse at another.
    Mixed,
    /// Worse at a goal, and better at none.
    Worse,
    /// Ejected, or a task starved.
    Failed,
}

/// The candidates, what is said of each, and why.
#[derive(Debug)]
pub struct Ranking {
    /// The sets of runs that are judged; `None` if every candidate but the baseline failed.
    pub family: Option<Family>,
    /// Every candidate against the baseline, goal by goal.
    pub rows: Vec<MetricRow>,
    /// By candidate and goal, how far the ratio to the baseline may be off.
    pub errors: Vec<Vec<RatioError>>,
    /// By candidate and goal, the answer; empty of the baseline and of those that failed.
    pub said: Vec<Vec<Answered>>,
    /// By candidate.
    pub standings: Vec<Standing>,
    /// The candidates: those with an answer first, in the order of the question where nothing says
    /// another one.
    pub order: Vec<usize>,
    /// The candidate to change to, if there is one.
    pub winner: Option<usize>,
    /// Those that cannot be told from the winner, or are alike.
    pub ties: Vec<usize>,
    /// What else is worse under the winner, or the likeliest candidate, with what is said of it.
    pub worse: Vec<(MetricRow, Answered)>,
    /// How many other figures were looked at for that.
    pub looked_at: usize,
    /// Whether the user stated the error of a ratio.
    pub is_stated: bool,
}

impl Standing {
    /// In documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Better => "better",
            Self::BetterForSome => "better-for-some",
            Self::Mixed => "mixed",
            Self::Worse => "worse",
            Self::Alike => "alike",
            Self::CannotTell => "cannot-tell",
            Self::NotMeasured => "not-measured",
            Self::Failed => "failed",
        }
    }

    /// Of a candidate of which this is said, goal by goal.
    fn of(said: &[Answered]) -> Self {
        let has = |one: RatioAnswer| said.iter().any(|it| it.answer == one);
        let is_fine = |it: &Answered| it.answer == RatioAnswer::Better || it.is_not_worse;
        match (has(RatioAnswer::Better), has(RatioAnswer::Worse)) {
            (true, true) => Self::Mixed,
            (false, true) => Self::Worse,
            (true, false) if said.iter().all(is_fine) => Self::Better,
            (true, false) => Self::BetterForSome,
            _ if has(RatioAnswer::NotMeasured) => Self::NotMeasured,
            _ if has(RatioAnswer::CannotTell) || said.is_empty() => Self::CannotTell,
            _ => Self::Alike,
        }
    }
}

/// By how much intervals are widened: as the user says, or as plays say.
#[derive(Clone, Copy, Debug)]
struct Widening<'a> {
    field: &'a Field,
    /// What plays say.
    table: &'a ErrorTable,
    /// The user's error of a ratio, as a part.
    asked: Option<f64>,
}

impl Widening<'_> {
    /// How far the ratio of a candidate to another one may be off at a goal, one of those that are
    /// asked for together; a bad score of the recording widens, and a good one does not narrow.
    fn error(&self, goal: &Goal, together: &[Goal], [at, base]: [usize; 2]) -> RatioError {
        if let Some(part) = self.asked {
            return RatioError {
                widening: part.ln_1p(),
                is_shown: false,
                is_measured: true,
                source: format!("as --not-modelled {} says", part * 100.0),
            };
        }
        let field = self.field;
        let kinds: BTreeSet<FigureKind> = together
            .iter()
            .flat_map(|it| FigureKind::of(it).iter().copied())
            .collect();
        let kinds: Vec<FigureKind> = kinds.into_iter().collect();
        let candidates: Vec<&str> = (0..field.sets.len()).map(|at| field.name(at)).collect();
        let mut error = self.table.error(Simulated {
            machine: &field.machine,
            class: field.class,
            candidates: &candidates,
            candidate: field.name(at),
            base: field.name(base),
            kinds: &kinds,
        });
        let part = scored_as(goal);
        let mut scored = field.scored.iter();
        if let Some((part, factor)) = scored.find(|(it, _)| Some(it.as_str()) == part)
            && factor.ln() > error.widening
        {
            error.widening = factor.ln();
            error.source = format!("the recording's own score of its {part}");
        }
        error
    }

    /// Those of the goals.
    fn of_goals(&self, sides: [usize; 2]) -> Vec<RatioError> {
        let goals = &self.field.goals;
        let of = |goal| self.error(goal, goals, sides);
        goals.iter().map(of).collect()
    }
}

impl Ranking {
    /// Judges all candidates that did not fail. `asked` is the user's error of a ratio, as a part.
    ///
    /// # Errors
    /// Never in practice: the sets are of one load and one kind.
    pub fn of(field: &Field, asked: Option<f64>, settings: &Settings) -> anyhow::Result<Self> {
        let all = 0..field.sets.len();
        let sound: Vec<usize> = all
            .clone()
            .filter(|at| *at != 0 && field.failures[*at].is_none())
            .collect();
        let table = ErrorTable::own();
        let widening = Widening {
            field,
            table: &table,
            asked,
        };
        let rows = field.compared(Which::Goals, (0, &sound), settings);
        let mut ranking = Self {
            family: family(field, &sound)?,
            rows,
            errors: all.clone().map(|at| widening.of_goals([at, 0])).collect(),
            said: vec![Vec::new(); field.sets.len()],
            standings: vec![Standing::Failed; field.sets.len()],
            order: Vec::new(),
            winner: None,
            ties: Vec::new(),
            worse: Vec::new(),
            looked_at: 0,
            is_stated: asked.is_some(),
        };
        ranking.standings[0] = Standing::Baseline;
        for at in sound.iter().copied() {
            ranking.said[at] = answers(field, at, &ranking.rows, &ranking.errors[at]);
            ranking.standings[at] = Standing::of(&ranking.said[at]);
        }
        ranking.order = ranking.ordered(field);
        let first = ranking.order[0];
        if ranking.standings[first] == Standing::Better {
            ranking.winner = Some(first);
            let others: Vec<usize> = sound.iter().copied().filter(|at| *at != first).collect();
            let against = field.compared(Which::Goals, (first, &others), settings);
            ranking.ties = others;
            ranking.ties.retain(|at| {
                let said = answers(field, *at, &against, &widening.of_goals([*at, first]));
                let is_apart =
                    |it: &Answered| matches!(it.answer, RatioAnswer::Better | RatioAnswer::Worse);
                let is_worse = ranking.standings[*at] > Standing::NotMeasured;
                !is_worse && !said.iter().any(is_apart)
            });
        }
        if let Some(likeliest) = ranking.likeliest() {
            let rest = field.compared(Which::Rest, (0, &[likeliest]), settings);
            ranking.looked_at = rest.len();
            let said = rest.into_iter().map(|row| {
                let goal: Result<Goal, _> = row.metric.parse();
                let error = match goal {
                    Ok(goal) => widening.error(&goal, std::slice::from_ref(&goal), [likeliest, 0]),
                    Err(_) => ranking.errors[likeliest][0].clone(),
                };
                let said = Answered::of(&row, &error);
                (row, said)
            });
            ranking.worse = said
                .filter(|(_, it)| it.answer == RatioAnswer::Worse)
                .collect();
        }
        Ok(ranking)
    }

    /// The candidate whose price is told: the winner, else the first that is better at something.
    #[must_use]
    pub fn likeliest(&self) -> Option<usize> {
        let first = *self.order.first()?;
        let is_better = self.standings[first] <= Standing::BetterForSome;
        is_better.then_some(first)
    }

    /// The comparison of candidate `at` at a goal, if it was made.
    #[must_use]
    pub fn row(&self, field: &Field, at: usize, goal: usize) -> Option<&MetricRow> {
        find(&self.rows, field, at, goal)
    }

    /// Those that are better at more goals first, then the one that gains more at the first goal.
    /// Nothing orders those of which nothing can be said.
    fn ordered(&self, field: &Field) -> Vec<usize> {
        let gains = |at: usize| {
            let said = self.said[at].iter();
            said.filter(|it| it.answer == RatioAnswer::Better).count()
        };
        let gain = |at: usize| {
            let said = self.said[at].iter().zip(&field.goals);
            let of = said.filter(|(it, _)| it.answer == RatioAnswer::Better);
            let shift = of
                .filter_map(|(it, goal)| Some((it.shift?[0], goal)))
                .next();
            shift.map_or(0.0, |(shift, goal)| match goal.better() {
                Better::Higher => -shift,
                _ => shift,
            })
        };
        let mut order: Vec<usize> = (0..field.sets.len()).collect();
        order.sort_by(|&a, &b| {
            let by_standing = self.standings[a].cmp(&self.standings[b]);
            let by_gains = gains(b).cmp(&gains(a));
            by_standing.then(by_gains).then(gain(a).total_cmp(&gain(b)))
        });
        order
    }

    /// Whether there is an answer: a candidate is better, or of each it is known how it stands.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        let is_open = |it: &Standing| {
            matches!(
                it,
                Standing::CannotTell | Standing::NotMeasured | Standing::BetterForSome
            )
        };
        self.winner.is_some() || !self.standings.iter().any(is_open)
    }
}

/// What is said of candidate `at` at each goal.
fn answers(field: &Field, at: usize, rows: &[MetricRow], errors: &[RatioError]) -> Vec<Answered> {
    let goals = errors.iter().enumerate();
    let said = goals.map(|(goal, error)| match find(rows, field, at, goal) {
        Some(row) => Answered::of(row, error),
        None => Answered {
            answer: RatioAnswer::CannotTell,
            is_shown: error.is_shown,
            shift: None,
            is_not_worse: false,
        },
    });
    said.collect()
}

fn find<'a>(rows: &'a [MetricRow], field: &Field, at: usize, goal: usize) -> Option<&'a MetricRow> {
    let metric = field.goals[goal].to_string();
    let arm = field.name(at);
    rows.iter()
        .find(|row| row.metric == metric && row.arm == arm)
}

/// The sets of the candidates that did not fail, the baseline first; nothing if it is alone.
fn family(field: &Field, sound: &[usize]) -> anyhow::Result<Option<Family>> {
    if sound.is_empty() {
        return Ok(None);
    }
    let all = [&0].into_iter().chain(sound);
    let file = File {
        stem: String::new(),
        sets: all.map(|at| field.sets[*at].clone()).collect(),
        baseline: None,
        again: None,
        looks: 1,
        unique: BTreeSet::new(),
    };
    Ok(Some(Family::of(vec![file], Some(field.name(0)), None)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_better_only_if_it_is_surely_not_worse_at_every_other_goal() {
        let of = |answer, is_not_worse| Answered {
            answer,
            is_shown: true,
            shift: None,
            is_not_worse,
        };
        let better = of(RatioAnswer::Better, true);
        let worse = of(RatioAnswer::Worse, false);
        let alike = of(RatioAnswer::Alike, true);
        let open = of(RatioAnswer::CannotTell, false);
        let not_worse = of(RatioAnswer::CannotTell, true);
        let elsewhere = of(RatioAnswer::NotMeasured, false);
        for (said, want) in [
            (&[better, alike, not_worse][..], Standing::Better),
            (&[better, open], Standing::BetterForSome),
            (&[better, worse], Standing::Mixed),
            (&[open, worse], Standing::Worse),
            (&[alike, open], Standing::CannotTell),
            (&[alike, elsewhere], Standing::NotMeasured),
            (&[alike, alike], Standing::Alike),
            (&[], Standing::CannotTell),
        ] {
            assert_eq!(Standing::of(said), want, "{said:?}");
        }
    }
}
