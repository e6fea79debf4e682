use std::collections::BTreeMap;

use model::Rng;

use super::*;
use crate::BlockLengths;
use crate::compare::{Effect, Settings};

const CELLS: usize = 256;
const JITTERS: usize = 3;

fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// What the recorded input does, cell by cell: neighbours are alike.
fn input(rng: &mut Rng, memory: f64) -> Vec<f64> {
    let mut level = 0.0;
    (0..CELLS)
        .map(|_| {
            level = memory * level + normal(rng);
            level
        })
        .collect()
}

/// A policy under that input: its waits are `factor` times those of the baseline, and vary by
/// themselves.
fn policy(rng: &mut Rng, input: &[f64], factor: f64) -> CellFigure {
    let cell = |rng: &mut Rng, level: f64| {
        let mut spans = BTreeMap::new();
        for _ in 0..8 {
            let wait = 1e6 * factor * (0.2 * level + 0.3 * normal(rng)).exp();
            *spans.entry(wait as u64).or_default() += 1;
        }
        spans
    };
    let mut run = || input.iter().map(|level| cell(rng, *level)).collect();
    let runs: Vec<Vec<BlockLengths>> = (0..JITTERS).map(|_| run()).collect();
    let runs: Vec<&[BlockLengths]> = runs.iter().map(Vec::as_slice).collect();
    CellFigure::new(&runs, CELLS)
}

fn effect(seed: u64, memory: f64, factor: f64, statistic: CellStatistic) -> Effect {
    let mut rng = Rng::new(seed, 1);
    let input = input(&mut rng, memory);
    let both = [
        policy(&mut rng, &input, 1.0),
        policy(&mut rng, &input, factor),
    ];
    let blocks = both.iter().map(|it| it.correlation(statistic).block);
    let block = blocks.max().unwrap().min(CELLS / BLOCKS_MIN);
    let draws = Draws::new((CELLS, block), JITTERS, seed);
    let drawn = both.map(|it| it.drawn(statistic, &draws).unwrap());
    let sides = [&drawn[0], &drawn[1]];
    compare_figures(sides, (draws.blocks(), 1e4), &Settings::default()).unwrap()
}

#[test]
fn equal_policies_are_told_apart_in_at_most_five_of_a_hundred_inputs() {
    for statistic in [CellStatistic::Mean, CellStatistic::Permille(900)] {
        let wrong = |seed: &u64| effect(*seed, 0.8, 1.0, statistic).p < 0.05;
        let wrong: Vec<u64> = (0..100).filter(wrong).collect();
        assert!(wrong.len() <= 5, "{statistic:?}: seeds {wrong:?}");
    }
}

#[test]
fn a_difference_of_fifteen_per_cent_is_found_in_at_least_eighty_of_a_hundred_inputs() {
    for statistic in [CellStatistic::Mean, CellStatistic::Permille(900)] {
        let found = |seed: &u64| {
            let it = effect(*seed, 0.8, 0.85, statistic);
            it.p < 0.05 && it.high < 0.0
        };
        let found = (0..100).filter(found).count();
        assert!(found >= 80, "{statistic:?}: {found}");
    }
}

#[test]
fn a_candidate_that_does_the_same_in_every_cell_is_the_same_without_an_error() {
    let mut rng = Rng::new(5, 1);
    let input = input(&mut rng, 0.5);
    let one = policy(&mut rng, &input, 1.0);
    let draws = Draws::new((CELLS, 3), JITTERS, 1);
    let drawn = one.drawn(CellStatistic::Mean, &draws).unwrap();
    let sides = (draws.blocks(), 1e4);
    let it = compare_figures([&drawn, &drawn], sides, &Settings::default()).unwrap();
    assert_eq!(
        (it.shift, it.low, it.high, it.p_least),
        (0.0, 0.0, 0.0, 1.0)
    );
    assert_eq!((it.p, it.p_same), (1.0, 0.0));
}

#[test]
fn blocks_are_as_long_as_the_memory_of_the_series() {
    let length = |memory: f64| {
        let of = |seed| {
            let mut rng = Rng::new(seed, 2);
            correlation(&input(&mut rng, memory)).block
        };
        let mut all: Vec<usize> = (0..21).map(of).collect();
        all.sort_unstable();
        all[10]
    };
    // Theory, for n = 256 and an AR(1) of 0.5: (2 G^2 / D n)^(1/3) = 8.8.
    assert!(length(0.0) <= 3, "{}", length(0.0));
    assert!((5..=14).contains(&length(0.5)), "{}", length(0.5));
    assert!(length(0.9) >= 20, "{}", length(0.9));
    assert!(length(0.999) <= 48);
    assert_eq!(correlation(&[3.0; 100]).block, 1);
    assert_eq!(correlation(&[]).block, 1);
}

#[test]
fn waits_that_come_together_are_few_independent_ones() {
    let burst = |at: usize| usize::from(at.is_multiple_of(32)) * 20;
    let cells = |long: &dyn Fn(usize) -> usize| -> CellFigure {
        let cell = |at: usize| {
            let long = long(at) as u64;
            BTreeMap::from([(1_000_000, 100 - long), (9_000_000, long)])
        };
        let cells: Vec<BlockLengths> = (0..CELLS).map(cell).collect();
        CellFigure::new(&[&cells], CELLS)
    };
    let p99 = CellStatistic::Permille(990);
    // 160 long waits of 25,600 either way, in 8 cells or in 160.
    let together = cells(&burst).beyond(p99);
    let apart = cells(&|at| usize::from(at % 8 != 0 && at % 3 != 0)).beyond(p99);
    assert!(together < 60.0, "{together}");
    assert!(apart > 100.0, "{apart}");
    assert!(cells(&burst).beyond(CellStatistic::Permille(1000)) < BEYOND_MIN);
    assert!(cells(&burst).beyond(CellStatistic::Mean).is_infinite());
}

#[test]
fn a_percentile_falls_to_the_next_lower_one_and_a_mean_stays() {
    let lower: Vec<_> = CellStatistic::Permille(960).and_lower().take(3).collect();
    assert_eq!(lower, [960, 950, 900].map(CellStatistic::Permille));
    assert_eq!(CellStatistic::Mean.and_lower().count(), 1);
}

#[test]
fn few_blocks_and_few_jitters_are_refused() {
    let settings = Settings::default();
    let cells = vec![BTreeMap::from([(5, 1)]); 9];
    let figure = CellFigure::new(&[&cells], CELLS);
    let draws = Draws::new((9, 1), 1, 1);
    let drawn = figure.drawn(CellStatistic::Mean, &draws).unwrap();
    assert!(compare_figures([&drawn, &drawn], (9, 1.0), &settings).is_err());
    assert!(compare_values(&[(1.0, 2.0); 2], 1.0, &settings).is_err());
    let it = compare_values(
        &[(2e6, 1e6), (2.2e6, 1.1e6), (1.9e6, 0.96e6)],
        1.0,
        &settings,
    );
    let it = it.unwrap();
    assert!(it.high < 0.0 && it.p < 0.01, "{it:?}");
    let nothing = CellFigure::new(&[&vec![BTreeMap::new(); 20]], 20);
    assert!(nothing.drawn(CellStatistic::Mean, &draws).is_none());
}

#[test]
fn cells_are_put_together_and_keep_their_spans() {
    let cell = |at: u64| BTreeMap::from([(at + 1, 2), (100, 1)]);
    let cells: Vec<BlockLengths> = (0..10).map(cell).collect();
    let folded = CellFigure::new(&[&cells], 4);
    assert_eq!((folded.cells(), folded.spans()), (4, 30));
    let whole = CellFigure::new(&[&cells], 99);
    assert_eq!(whole.cells(), 10);
    assert_eq!(
        folded.value(CellStatistic::Mean),
        whole.value(CellStatistic::Mean)
    );
}

#[test]
fn no_percentile_below_the_median_stands_for_a_high_one() {
    let permille = |of: u16| -> Vec<CellStatistic> {
        let all = CellStatistic::Permille(of).and_lower();
        all.collect()
    };
    let want = [990, 950, 900, 750, 500].map(CellStatistic::Permille);
    assert_eq!(permille(990), want);
    // Who asks for a lower one gets it or nothing.
    assert_eq!(permille(300), [CellStatistic::Permille(300)]);
}
