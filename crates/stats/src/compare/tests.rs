//! The statistics tested as statistics: how often they are right.

use model::Rng;

use super::*;

/// Trials of one kind.
const TRIALS: u64 = 200;

/// docs/comparing.md, which promises what is tested here.
const DOCUMENT: &str = include_str!("../../../../docs/comparing.md");

/// How the values of one run come to be.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// Every run takes a while longer or less: a normal factor, exponentiated.
    LogNormal,
    /// A run has a least time, and what disturbs it comes on top.
    Exponential,
}

/// A run of mean 1 and the coefficient of variation `cv`.
fn run(rng: &mut Rng, noise: Noise, cv: f64) -> f64 {
    match noise {
        Noise::LogNormal => {
            // The sum of twelve uniform numbers less six is normal enough.
            let normal = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
            libm::exp(cv * normal)
        }
        Noise::Exponential => 1.0 - cv - cv * libm::log(1.0 - rng.unit()),
    }
}

/// A set of runs that take `scale` times as long as they would.
fn set(arm: &str, rng: &mut Rng, (noise, cv): (Noise, f64), runs: usize, scale: f64) -> Set {
    let mut set = Set::new(arm, "", "test");
    for _ in 0..runs {
        set.add(vec![Measured {
            name: "time_ns".to_owned(),
            measure: Measure::Nanos,
            better: Better::Lower,
            main: true,
            value: 1e9 * scale * run(rng, noise, cv),
        }]);
    }
    set
}

/// How many of the trials end in `want`.
fn count(want: Verdict, noise: (Noise, f64), runs: usize, scale: f64) -> usize {
    let settings = Settings::default();
    let trial = |seed: u64| {
        let mut rng = Rng::new(seed, 0);
        let base = set("a", &mut rng, noise, runs, 1.0);
        let others = [set("b", &mut rng, noise, runs, scale)];
        let question = Question {
            base: &base,
            others: &others,
            again: None,
        };
        let rows = compare(&[question], |_| true, &settings);
        rows[0].result.expect("can be compared").verdict
    };
    (0..TRIALS).filter(|seed| trial(*seed) == want).count()
}

#[test]
fn two_sets_of_the_same_are_no_difference_in_at_least_190_of_200_trials() {
    for noise in [Noise::LogNormal, Noise::Exponential] {
        let equal = count(Verdict::NoDifference, (noise, 0.02), 20, 1.0);
        assert!(equal >= 190, "{noise:?}: {equal} of {TRIALS}");
    }
}

#[test]
fn a_slowdown_of_5_per_cent_is_found_in_at_least_160_of_200_trials() {
    for noise in [Noise::LogNormal, Noise::Exponential] {
        let found = count(Verdict::Slower, (noise, 0.02), 20, 1.05);
        assert!(found >= 160, "{noise:?}: {found} of {TRIALS}");
    }
}

#[test]
fn a_speedup_is_found_as_well() {
    let found = count(Verdict::Faster, (Noise::LogNormal, 0.02), 20, 1.0 / 1.05);
    assert!(found >= 160, "{found} of {TRIALS}");
}

/// The intervals hold the truth about as often as they say, also for few and for skewed runs.
#[test]
fn intervals_hold_the_true_ratio_as_often_as_they_promise() {
    let settings = Settings {
        resamples: 2_000,
        ..Settings::default()
    };
    for noise in [Noise::LogNormal, Noise::Exponential] {
        for (runs, trim) in [(5, 0), (10, 0), (30, 0), (20, 20)] {
            let held = (0..TRIALS).filter(|seed| {
                let mut rng = Rng::new(*seed, 7);
                let mut values = |scale: f64| -> Vec<f64> {
                    (0..runs)
                        .map(|_| scale * run(&mut rng, noise, 0.05))
                        .collect()
                };
                let (base, other) = (values(1.0), values(1.3));
                let settings = Settings { trim, ..settings };
                let effect = effect(&base, &other, *seed, &settings).expect("can be compared");
                effect.low <= 1.3 && 1.3 <= effect.high
            });
            let held = held.count();
            // 95 % of 200 is 190, with a standard deviation of 3.
            assert!(held >= 181, "{noise:?}, {runs} runs, trim {trim}: {held}");
        }
    }
}

/// A row of the table: spread in per cent, runs that find a slowdown of 5 %, runs after which two
/// sets of the same are called so.
fn table() -> Vec<[usize; 3]> {
    let (_, rest) = DOCUMENT.split_once("<!-- power -->\n").expect("a table");
    let (table, _) = rest.split_once("<!-- end -->").expect("its end");
    let rows = table.lines().filter_map(|line| {
        let cells: Vec<usize> = line
            .split('|')
            .filter_map(|cell| cell.trim().trim_end_matches(" %").parse().ok())
            .collect();
        cells.try_into().ok()
    });
    rows.collect()
}

#[test]
fn the_table_of_the_document_says_how_many_runs_it_takes() {
    let rows = table();
    assert_eq!(rows.len(), 4, "a row for 1, 2, 3 and 5 %");
    for [spread, find, same] in rows {
        let noise = (Noise::LogNormal, spread as f64 / 100.0);
        let found = count(Verdict::Slower, noise, find, 1.05);
        assert!(
            found >= 160,
            "{spread} %: {find} runs find it {found} times"
        );
        let equal = count(Verdict::NoDifference, noise, same, 1.0);
        assert!(equal >= 190, "{spread} %: {same} runs agree {equal} times");
    }
}

#[test]
fn many_comparisons_of_the_same_rarely_find_anything() {
    // 40 families of 20 comparisons each: without a correction about 26 would find something.
    let settings = Settings {
        resamples: 2_000,
        margin: 0.0,
        ..Settings::default()
    };
    let families = (0..40).filter(|seed| {
        let mut rng = Rng::new(*seed, 1);
        let base = set("base", &mut rng, (Noise::LogNormal, 0.02), 12, 1.0);
        let arms: Vec<Set> = (0..20)
            .map(|arm| {
                set(
                    &arm.to_string(),
                    &mut rng,
                    (Noise::LogNormal, 0.02),
                    12,
                    1.0,
                )
            })
            .collect();
        let question = Question {
            base: &base,
            others: &arms,
            again: None,
        };
        let rows = compare(&[question], |_| true, &settings);
        let found = |row: &Row| {
            let verdict = row.result.expect("can be compared").verdict;
            matches!(verdict, Verdict::Faster | Verdict::Slower)
        };
        rows.iter().any(found)
    });
    let families = families.count();
    assert!(families <= 6, "{families} of 40 found a difference");
}

#[test]
fn the_same_scheduler_that_differs_from_itself_is_doubted() {
    let mut rng = Rng::new(3, 3);
    let noise = (Noise::LogNormal, 0.01);
    let base = set("default", &mut rng, noise, 20, 1.0);
    let others = [set("mlfq", &mut rng, noise, 20, 1.05)];
    let verdict = |scale: f64, rng: &mut Rng| {
        let again = set("default again", rng, noise, 20, scale);
        let question = Question {
            base: &base,
            others: &others,
            again: Some(&again),
        };
        let rows = compare(&[question], |_| true, &Settings::default());
        rows[0].result.expect("can be compared").verdict
    };
    assert_eq!(verdict(1.0, &mut rng), Verdict::Slower);
    assert_eq!(verdict(1.06, &mut rng), Verdict::Undecided(Doubt::Noise));
}

/// A set with one metric that varies and one that is given.
fn with_misses(arm: &str, seed: u64, misses: &[f64]) -> Set {
    let mut rng = Rng::new(seed, 9);
    let mut set = Set::new(arm, "", "test");
    for value in misses {
        let measured = |name: &str, value| Measured {
            name: name.to_owned(),
            measure: Measure::Count,
            better: Better::Lower,
            main: true,
            value,
        };
        let time = run(&mut rng, Noise::LogNormal, 0.02);
        set.add(vec![measured("time", time), measured("missed", *value)]);
    }
    set
}

#[test]
fn deadlines_that_one_scheduler_never_misses_are_compared_all_the_same() {
    let verdict = |base: &[f64], other: &[f64]| {
        let base = with_misses("a", 1, base);
        let others = [with_misses("b", 2, other)];
        let question = Question {
            base: &base,
            others: &others,
            again: None,
        };
        let rows = compare(&[question], |it| it.name == "missed", &Settings::default());
        rows[0].result.expect("can be compared").verdict
    };
    let many = [50.0, 60.0, 55.0, 52.0, 54.0];
    assert_eq!(verdict(&many, &[0.0; 5]), Verdict::Faster);
    assert_eq!(verdict(&[0.0; 5], &many), Verdict::Slower);
    assert_eq!(verdict(&[0.0; 5], &[0.0; 5]), Verdict::NoDifference);
    let once = [0.0, 0.0, 0.0, 0.0, 3.0];
    assert_eq!(verdict(&[0.0; 5], &once), Verdict::Undecided(Doubt::Spread));
}

#[test]
fn a_set_that_repeats_one_run_is_refused() {
    let mut base = Set::new("a", "", "det");
    let mut other = Set::new("b", "", "det");
    for set in [&mut base, &mut other] {
        for _ in 0..9 {
            set.add(vec![Measured {
                name: "time".to_owned(),
                measure: Measure::Nanos,
                better: Better::Lower,
                main: true,
                value: if set.arm == "a" { 5.0 } else { 6.0 },
            }]);
        }
    }
    let question = Question {
        base: &base,
        others: &[other],
        again: None,
    };
    let rows = compare(&[question], |_| true, &Settings::default());
    let refusal = Refusal::NoSpread {
        value: 5.0,
        runs: 9,
    };
    assert_eq!(rows[0].result, Err(refusal));
}

#[test]
fn holm_corrects_the_smallest_most_and_keeps_the_order() {
    let corrected = holm(&[0.01, 0.04, 0.03, 0.5]);
    let want = [0.04, 0.09, 0.09, 0.5];
    for (have, want) in corrected.iter().zip(want) {
        assert!((have - want).abs() < 1e-12, "{corrected:?}");
    }
    assert!(holm(&[]).is_empty());
}

#[test]
fn a_metric_that_only_one_set_has_is_refused_by_name() {
    let mut rng = Rng::new(1, 1);
    let base = set("a", &mut rng, (Noise::LogNormal, 0.02), 6, 1.0);
    let others = [Set::new("b", "", "test")];
    let question = Question {
        base: &base,
        others: &others,
        again: None,
    };
    let rows = compare(&[question], |_| true, &Settings::default());
    assert_eq!(rows[0].result, Err(Refusal::Missing));
    assert_eq!(rows[0].metric, "time_ns");
}
