//! Reruns of a recording, with figures by block of the recorded input.

use std::borrow::Cow;

use model::Nanos;
use stats::BlockLengths;
use stats::compare::series::{
    BLOCKS_MIN, CellFigure, CellStatistic, DrawnFigure, Draws, compare_figures, compare_values,
};
use stats::compare::{
    Effect, Extent, MetricRow, Named, Refusal, Set, Settings, judge_rows, least_of,
};

use crate::goal::Goal;

/// Which figures are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The goals.
    Goals,
    /// What else may have become worse.
    Rest,
}

/// How a recording was rerun.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Length of the recording, with its warm-up.
    pub length: Nanos,
    /// The begin that does not count.
    pub warm_up: Nanos,
    /// By goal, how long a block is; `None` of a goal without blocks.
    pub blocks: Vec<Option<Nanos>>,
    /// By goal, how much longer the recording must be before anything can be said.
    pub lacks: Vec<Option<Nanos>>,
    /// Goals that were replaced, as sentences.
    pub notes: Vec<String>,
}

/// What a candidate came to at a goal.
#[derive(Clone, Debug)]
pub(super) enum GoalFigure {
    /// Spans of which a figure is drawn when it is asked for.
    Cells(CellFigure),
    /// A figure of spans, with what was drawn; `None` without a span.
    Drawn(Option<DrawnFigure>, CellFigure),
    /// A value of each jitter.
    Values(Vec<Option<f64>>),
}

/// What all candidates came to at the goals, or at what else is looked at.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub goals: Vec<Goal>,
    /// By goal: the statistic and what is drawn, if it has blocks.
    pub draws: Vec<Option<(CellStatistic, Draws)>>,
    /// By candidate and goal.
    pub figures: Vec<Vec<GoalFigure>>,
    /// By candidate and goal: in how many reruns its queue grew.
    pub grown: Vec<Vec<usize>>,
    /// By candidate and goal: how many blocks it has, if they are too few.
    pub few: Vec<Vec<Option<usize>>>,
}

/// What all candidates came to.
#[derive(Debug, Default)]
pub struct Reruns {
    pub(super) parts: [Part; 2],
}

/// One rerun: spans by goal and cell, values by goal.
pub(super) struct Rerun {
    pub cells: Vec<Vec<BlockLengths>>,
    pub values: Vec<Option<f64>>,
    pub grown: Vec<bool>,
    pub failure: Option<String>,
}

/// How a goal is measured: the statistic, and the number of cells.
pub(super) type HowMeasured = Option<(CellStatistic, usize)>;

/// The spans of some reruns of one candidate, in so many cells.
pub(super) fn figure(of: &[Rerun], goal: usize, cells: usize) -> CellFigure {
    let spans: Vec<&[BlockLengths]> = of.iter().map(|it| it.cells[goal].as_slice()).collect();
    CellFigure::new(&spans, cells)
}

impl Part {
    /// Takes the figures of all candidates at one goal.
    pub fn take(&mut self, goal: usize, how: HowMeasured, of: &[&[Rerun]], which: Which) {
        for (grown, reruns) in self.grown.iter_mut().zip(of) {
            grown.push(reruns.iter().filter(|it| it.grown[goal]).count());
        }
        let Some((statistic, cells)) = how else {
            for (figures, reruns) in self.figures.iter_mut().zip(of) {
                let values = reruns.iter().map(|it| it.values[goal]);
                figures.push(GoalFigure::Values(values.collect()));
            }
            self.few.iter_mut().for_each(|it| it.push(None));
            self.draws.push(None);
            return;
        };
        let all: Vec<CellFigure> = of.iter().map(|it| figure(it, goal, cells)).collect();
        let blocks: Vec<usize> = all
            .iter()
            .map(|it| it.correlation(statistic).block)
            .collect();
        // The longest that leaves enough blocks; a candidate that needs longer ones gets no answer,
        // and takes none from the others.
        let is_short = |block: &usize| cells / *block >= BLOCKS_MIN;
        let longest = blocks.iter().copied().filter(is_short).max();
        let jitters = of.first().map_or(0, |it| it.len());
        let draws = Draws::new((cells, longest.unwrap_or(cells)), jitters, 1);
        for (few, block) in self.few.iter_mut().zip(&blocks) {
            few.push(Some(cells / *block).filter(|it| *it < BLOCKS_MIN));
        }
        for (figures, figure) in self.figures.iter_mut().zip(all) {
            figures.push(match which {
                Which::Goals => GoalFigure::Drawn(figure.drawn(statistic, &draws), figure),
                // Only two candidates are ever compared in what nobody asked for.
                Which::Rest => GoalFigure::Cells(figure),
            });
        }
        self.draws.push(Some((statistic, draws)));
    }

    fn effect(
        &self,
        goal: usize,
        sides: [usize; 2],
        settings: &Settings,
    ) -> Result<Effect, Refusal> {
        let least = least_of(self.goals[goal].measure());
        let draws = self.draws[goal].as_ref();
        let blocks = draws.map_or(0, |(_, draws)| draws.blocks());
        let grown = sides.map(|it| self.grown[it].get(goal).copied().unwrap_or(0));
        if grown != [0, 0] {
            let [base, arm] = grown;
            return Err(Refusal::Grows { base, arm });
        }
        let few = sides.map(|it| self.few[it].get(goal).copied().flatten());
        if let Some(have) = few.into_iter().flatten().min() {
            let need = BLOCKS_MIN;
            return Err(Refusal::TooFew { have, need });
        }
        let side = |at: usize| self.figures[at].get(goal);
        let drawn = |figure: &'_ GoalFigure| match (figure, draws) {
            (GoalFigure::Cells(cells), Some((statistic, draws))) => cells.drawn(*statistic, draws),
            _ => None,
        };
        let [Some(ours), Some(theirs)] = sides.map(side) else {
            // The recording is too short, so that nobody else was simulated.
            let need = BLOCKS_MIN;
            return Err(Refusal::TooFew { have: blocks, need });
        };
        if let (GoalFigure::Values(ours), GoalFigure::Values(theirs)) = (ours, theirs) {
            let pairs = ours
                .iter()
                .zip(theirs)
                .filter_map(|(a, b)| Some(((*a)?, (*b)?)));
            return compare_values(&pairs.collect::<Vec<_>>(), least, settings);
        }
        let both = [ours, theirs].map(|it| match it {
            GoalFigure::Drawn(drawn, _) => drawn.as_ref().map(Cow::Borrowed),
            other => drawn(other).map(Cow::Owned),
        });
        match &both {
            [Some(ours), Some(theirs)] => {
                compare_figures([ours.as_ref(), theirs.as_ref()], (blocks, least), settings)
            }
            _ => Err(Refusal::Missing),
        }
    }
}

/// What pictures show of a candidate at a goal: a figure of each jitter, or of each block.
pub(super) fn points(
    figure: &GoalFigure,
    draws: Option<&(CellStatistic, Draws)>,
) -> Vec<Option<f64>> {
    /// More dots nobody tells apart.
    const MOST: usize = 64;
    match (figure, draws) {
        (GoalFigure::Values(values), _) => values.clone(),
        (GoalFigure::Drawn(_, cells), Some((statistic, draws))) => {
            cells.by_block(*statistic, draws.blocks().clamp(1, MOST))
        }
        (GoalFigure::Cells(cells), Some((statistic, _))) => vec![cells.value(*statistic)],
        _ => Vec::new(),
    }
}

impl Reruns {
    /// Holds `others` against `base`, goal by goal.
    pub(super) fn rows(
        &self,
        (sets, which): (&[Set], Which),
        (base, others): (usize, &[usize]),
        settings: &Settings,
    ) -> Vec<MetricRow> {
        let part = &self.parts[which as usize];
        let mut rows = Vec::new();
        for (goal, named) in part.goals.iter().enumerate() {
            let name = named.to_string();
            let extent = |at: usize| sets[at].find(&name).and_then(|it| Extent::of(&it.values));
            for &at in others.iter().filter(|at| **at != base) {
                rows.push(MetricRow {
                    metric: name.clone(),
                    named: Named::of(&name, [&sets[base], &sets[at]]),
                    measure: named.measure(),
                    better: named.better(),
                    is_goal: true,
                    base: sets[base].arm.clone(),
                    arm: sets[at].arm.clone(),
                    place: String::new(),
                    world: sets[base].world.clone(),
                    base_extent: extent(base),
                    arm_extent: extent(at),
                    outliers: [Vec::new(), Vec::new()],
                    result: part.effect(goal, [base, at], settings).map(Into::into),
                });
            }
        }
        let mut rows = judge_rows(rows, settings);
        // More blocks take a longer recording: the answer says how long.
        for judged in rows.iter_mut().filter_map(|row| row.result.as_mut().ok()) {
            judged.runs_needed = None;
        }
        rows
    }

    /// How many blocks candidate `at` has at a goal, if they are too few.
    #[must_use]
    pub fn few_blocks(&self, at: usize, goal: usize) -> Option<usize> {
        self.parts[0].few.get(at)?.get(goal).copied().flatten()
    }

    /// The figure of everything of a candidate at a goal.
    #[must_use]
    pub fn value(&self, at: usize, goal: usize) -> Option<f64> {
        match self.parts[0].figures.get(at)?.get(goal)? {
            GoalFigure::Drawn(drawn, _) => drawn.as_ref().map(|it| it.value),
            GoalFigure::Cells(_) => None,
            GoalFigure::Values(values) => {
                let known: Vec<f64> = values.iter().copied().flatten().collect();
                (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
            }
        }
    }
}
