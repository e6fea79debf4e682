//! Comparisons as a whole: from sets of runs to verdicts.

use model::Rng;

use super::*;

/// One run: name and value of each metric.
fn run(values: &[(&str, f64)]) -> Vec<MeasuredNumber> {
    let measured = values.iter().map(|(name, value)| MeasuredNumber {
        name: (*name).to_owned(),
        measure: Measure::Count,
        better: Better::Lower,
        role: if name.starts_with("goal") {
            Role::Goal
        } else {
            Role::Shown
        },
        value: *value,
    });
    measured.collect()
}

/// A set with one goal. Its second metric keeps it from being one run, repeated.
fn set(arm: &str, values: &[f64]) -> Set {
    let mut set = Set::new(arm, "place", "test");
    for (at, value) in values.iter().enumerate() {
        set.add(run(&[("goal", *value), ("shown", at as f64)]), None);
    }
    set
}

/// The same with seeds from 1.
fn seeded(arm: &str, values: &[f64]) -> Set {
    let mut set = Set::new(arm, "place", "simulated");
    for (seed, value) in (1..).zip(values) {
        set.add(run(&[("goal", *value), ("shown", seed as f64)]), Some(seed));
    }
    set
}

fn rows(base: &Set, others: &[Set], again: Option<&Set>) -> Vec<MetricRow> {
    let question = Question {
        base,
        others,
        again,
        only: None,
    };
    compare(&[question], Choice::Stated, &Settings::default())
}

fn judged(base: &Set, other: Set) -> JudgedSets {
    rows(base, &[other], None)[0]
        .result
        .expect("can be compared")
}

const LATE: [f64; 8] = [521.0, 503.0, 534.0, 519.0, 522.0, 525.0, 517.0, 528.0];
const NEVER: [f64; 8] = [0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];

#[test]
fn a_value_finds_its_series_in_whatever_order_the_metrics_come() {
    let mut set = Set::new("fifo", "", "");
    set.add(run(&[("a", 1.0), ("b", 2.0), ("c", 3.0)]), None);
    set.add(run(&[("c", 6.0), ("d", 7.0), ("a", 4.0)]), None);
    set.add(
        run(&[("b", 8.0), ("b", 9.0), ("e", 10.0), ("e", 11.0)]),
        None,
    );
    let found: Vec<_> = set
        .series
        .iter()
        .map(|it| (it.name.as_str(), &it.values[..]))
        .collect();
    let want: [(&str, &[f64]); 5] = [
        ("a", &[1.0, 4.0]),
        ("b", &[2.0, 8.0, 9.0]),
        ("c", &[3.0, 6.0]),
        ("d", &[7.0]),
        ("e", &[10.0, 11.0]),
    ];
    assert_eq!(found, want);
}

#[test]
fn late_moves_of_500_against_none_are_decided() {
    let judged = judged(&set("fifo", &LATE), set("mlfq", &NEVER));
    assert_eq!(judged.verdict, Some(Verdict::Faster));
    let effect = judged.effect;
    assert_eq!((effect.scale, effect.is_paired), (Scale::Linear, false));
    // Two of the 12,870 ways to deal 16 values to sets of 8 separate them.
    assert!((effect.p - 2.0 / 12_870.0).abs() < 1e-12, "{effect:?}");
    assert!(effect.low >= -534.0 && effect.high <= -501.0, "{effect:?}");
    let back = self::judged(&set("mlfq", &NEVER), set("fifo", &LATE));
    assert_eq!(back.verdict, Some(Verdict::Slower));
    assert_eq!(
        (back.effect.low, back.effect.high),
        (-effect.high, -effect.low)
    );
}

#[test]
fn runs_of_the_same_seed_are_compared_as_pairs() {
    // What a seed does is 20 times what the scheduler does.
    let base: Vec<f64> = (1..=10).map(|seed| 100.0 * f64::from(seed)).collect();
    let other: Vec<f64> = base.iter().map(|value| value * 1.05).collect();
    let it = judged(&seeded("a", &base), seeded("b", &other));
    assert!(it.effect.is_paired);
    assert_eq!(it.verdict, Some(Verdict::Slower));
    assert!((it.effect.p - 2.0 / 1024.0).abs() < 1e-12, "{it:?}");
    let [ratio, low, high] = it.effect.ratios().expect("a ratio");
    assert!(
        (ratio - 1.05).abs() < 1e-9 && high - low < 1e-9,
        "{low} {high}"
    );
    let apart = judged(&set("a", &base), set("b", &other));
    assert_eq!(apart.verdict, Some(Verdict::Undecided(Doubt::Spread)));
}

#[test]
fn separated_sets_are_decided_from_6_runs_of_8_metrics_or_9_pairs() {
    assert_eq!(runs_to_decide(8, false, 0.05), 6);
    assert_eq!(runs_to_decide(8, true, 0.05), 9);
    assert_eq!([1, 2].map(|it| runs_to_decide(it, false, 0.05)), [4, 5]);
    assert_eq!([1, 2].map(|it| runs_to_decide(it, true, 0.05)), [6, 7]);
    let names: Vec<String> = (0..8).map(|at| format!("goal{at}")).collect();
    for (is_paired, fewest) in [(false, 6), (true, 9)] {
        for runs in [fewest - 1, fewest] {
            let arm = |value: f64| {
                let mut set = Set::new("", "", "");
                for seed in 0..runs {
                    // Hardly any variance, and in one run much.
                    let off = if seed == 0 { 40.0 } else { 1e-6 * seed as f64 };
                    let values = names.iter().map(|name| (name.as_str(), value + off));
                    let values: Vec<(&str, f64)> = values.collect();
                    set.add(run(&values), is_paired.then_some(seed as u64));
                }
                set
            };
            let (base, others) = (arm(100.0), [arm(200.0)]);
            for row in rows(&base, &others, None) {
                let judged = row.result.expect("can be compared");
                let want = if runs == fewest {
                    (Verdict::Slower, None)
                } else {
                    (Verdict::Undecided(Doubt::Few), Some(fewest))
                };
                assert_eq!((judged.verdict, judged.runs_needed), (Some(want.0), want.1));
            }
        }
    }
}

#[test]
fn goals_alone_are_judged_and_counted() {
    let mut base = set("a", &LATE);
    let mut other = set("b", &NEVER);
    for set in [&mut base, &mut other] {
        for at in 0..8 {
            let elapsed = run(&[("goal.same", 5.0), ("more", f64::from(at))]);
            set.add(elapsed, None);
        }
    }
    let found = rows(&base, &[other], None);
    let verdicts: Vec<_> = found
        .iter()
        .map(|row| {
            (
                row.metric.as_str(),
                row.is_goal,
                row.result.unwrap().verdict,
            )
        })
        .collect();
    let want = [
        ("goal", true, Some(Verdict::Faster)),
        ("shown", false, None),
        ("goal.same", true, Some(Verdict::NoDifference)),
        ("more", false, None),
    ];
    assert_eq!(verdicts, want);
    // What is the same throughout is not tested, so it counts for nothing.
    let judged = found[0].result.unwrap();
    assert_eq!(judged.p_holm, judged.effect.p);
}

#[test]
fn a_load_that_states_no_goal_is_judged_by_what_describes_it() {
    let question = |elapsed: [f64; 4], more: &str| {
        let mut sets = ["a", "b"].map(|arm| Set::new(arm, "", ""));
        for set in &mut sets {
            for (at, value) in elapsed.iter().enumerate() {
                let mut values = run(&[("machine.elapsed_ns", *value), (more, at as f64)]);
                values[0].role = Role::Goal;
                set.add(values, None);
            }
        }
        let [base, other] = sets;
        let found = rows(&base, &[other], None);
        found.iter().map(|row| row.is_goal).collect::<Vec<_>>()
    };
    let (clock, work) = ([1e9, 1e9, 1.0005e9, 1e9], [1e9, 1.1e9, 1e9, 1e9]);
    assert_eq!(question(clock, "shown"), [true, true]);
    assert_eq!(
        question(work, "shown"),
        [true, false],
        "its work takes time"
    );
    assert_eq!(question(clock, "goal"), [true, true]);
}

#[test]
fn what_is_asked_for_by_name_is_a_goal_and_nothing_else_is() {
    let (base, others) = (set("a", &LATE), [set("b", &NEVER)]);
    let question = Question {
        base: &base,
        others: &others,
        again: None,
        only: None,
    };
    let named = Choice::Named(&|series: &Series| series.name == "shown");
    let found = compare(&[question], named, &Settings::default());
    let named: Vec<_> = found
        .iter()
        .map(|row| (row.metric.as_str(), row.is_goal))
        .collect();
    assert_eq!(named, [("shown", true)]);
}

#[test]
fn the_same_scheduler_that_differs_from_itself_is_doubted() {
    let scaled = |arm: &str, scale: f64| set(arm, &LATE.map(|value| value * scale));
    let base = scaled("default", 1.0);
    let verdict = |again: f64| {
        let again = scaled("again", again);
        let rows = rows(&base, &[scaled("mlfq", 1.2)], Some(&again));
        rows[0].result.expect("can be compared").verdict
    };
    assert_eq!(verdict(1.0), Some(Verdict::Slower));
    assert_eq!(verdict(1.1), Some(Verdict::Slower));
    let noise = Some(Verdict::Undecided(Doubt::Noise));
    assert_eq!([verdict(1.2), verdict(1.0 / 1.2)], [noise; 2]);
}

#[test]
fn a_set_that_repeats_one_run_is_refused() {
    let repeated = |arm: &str, value: f64| {
        let mut set = Set::new(arm, "", "det");
        (0..9).for_each(|_| set.add(run(&[("goal", value)]), None));
        set
    };
    let result = |other: Set| rows(&repeated("a", 5.0), &[other], None)[0].result;
    let refusal = |value: f64| Err(Refusal::NoSpread { value, runs: 9 });
    assert_eq!(result(repeated("b", 6.0)), refusal(5.0));
    // Runs that differ, but not in what is compared.
    let differs = |arm: &str, value: f64| Set {
        differs: true,
        ..repeated(arm, value)
    };
    assert_eq!(
        result(differs("b", 6.0)),
        refusal(5.0),
        "the other one does not"
    );
    let rows = rows(&differs("a", 5.0), &[differs("b", 6.0)], None);
    let verdict = rows[0].result.map(|judged| judged.verdict);
    assert_eq!(verdict, Ok(Some(Verdict::Slower)));
}

#[test]
fn one_metric_without_spread_is_compared_when_the_sets_differ_by_chance() {
    let verdict = |base: &[f64], other: &[f64]| judged(&set("a", base), set("b", other)).verdict;
    assert_eq!(verdict(&[9.0; 5], &[0.0; 5]), Some(Verdict::Faster));
    assert_eq!(verdict(&[0.0; 5], &[9.0; 5]), Some(Verdict::Slower));
    assert_eq!(verdict(&[0.0; 5], &[0.0; 5]), Some(Verdict::NoDifference));
    let once = verdict(&[0.0; 5], &[0.0, 0.0, 0.0, 0.0, 9.0]);
    assert_eq!(once, Some(Verdict::Undecided(Doubt::Spread)));
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let refusal = |other: &[f64]| {
        let rows = rows(&set("a", &LATE), &[set("b", other)], None);
        rows[0].result.expect_err("cannot be compared")
    };
    assert_eq!(refusal(&[1.0]), Refusal::TooFew { have: 1, need: 4 });
    let broken = refusal(&[1.0, f64::INFINITY]);
    assert_eq!(
        broken,
        Refusal::NoNumber {
            value: f64::INFINITY
        }
    );
    let rows = rows(&set("a", &LATE), &[Set::new("b", "", "test")], None);
    assert_eq!(rows[0].result, Err(Refusal::Missing));
    assert_eq!(rows[0].metric, "goal");
}

#[test]
fn outliers_stand_beside_the_verdict_with_their_seeds() {
    let mut other = LATE.map(|value| value * 1.01);
    other[5] = 900.0;
    let rows = rows(&seeded("a", &LATE), &[seeded("b", &other)], None);
    let outlier = Outlier {
        value: 900.0,
        seed: Some(6),
    };
    assert_eq!(rows[0].outliers, [vec![], vec![outlier]]);
    let judged = rows[0].result.unwrap();
    assert_eq!(judged.p_outliers, 1.0, "1 of 8 and none of 8");
    // The mean is far off and the trimmed mean is not.
    let trimmed = judged.effect.trimmed;
    assert!(
        (libm::exp(trimmed.shift) - 1.01).abs() < 1e-9,
        "{trimmed:?}"
    );
    assert!(libm::exp(judged.effect.shift) > 1.07);
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
fn the_seed_decides_what_is_drawn_and_nothing_else_does() {
    let mut rng = Rng::new(5, 5);
    let mut values = |count: usize| (0..count).map(|_| 1.0 + rng.unit()).collect();
    let values = Values::Apart(values(15), values(15));
    let with = |seed, stream| {
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        effect(&values, Measure::Nanos, stream, &settings).unwrap()
    };
    assert_eq!(with(1, 1), with(1, 1));
    assert_ne!(with(1, 1), with(2, 1));
    assert_ne!(with(1, 1), with(1, 2));
}
