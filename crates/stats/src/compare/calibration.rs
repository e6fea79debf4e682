//! How often comparisons are right: differences between sets of the same that are claimed, and true
//! differences that are found. docs/comparing.md sums both up.

use std::fmt::Write as _;
use std::thread;

use model::Rng;

use super::*;

/// docs/comparing.md, which sums [`RIGHT`] up and has the table of the runs that it takes.
const DOCUMENT: &str = include_str!("../../../../docs/comparing.md");
/// Calls of 1,000 that claim a difference between two sets of the same, and calls of 200 that find
/// the one goal of eight that differs. The columns are 5, 10 and 20 runs, then as many pairs.
const RIGHT: &str = "\
| the same | normal, 2 % | 0 | 47 | 16 | 0 | 27 | 11 |
| the same | log-normal, 30 % | 0 | 49 | 49 | 0 | 31 | 36 |
| the same | 0 or 1 | 0 | 13 | 0 | 0 | 1 | 11 |
| the same | counts, mostly 0 | 1 | 1 | 25 | 0 | 0 | 9 |
| the same | normal, 1 % outliers | 0 | 45 | 52 | 0 | 47 | 29 |
| 5 % more | normal, 2 % | 0 | 194 | 200 | 0 | 178 | 200 |
| 5 % more | log-normal, 30 % | 0 | 1 | 0 | 0 | 0 | 2 |
| 5 % more | normal, 1 % outliers | 0 | 182 | 161 | 0 | 157 | 162 |
| 10 instead | counts, mostly 0 | 21 | 200 | 200 | 0 | 158 | 200 |
";
/// Metrics of a call.
const METRICS: usize = 8;
/// Calls of which 5 % may claim a difference, and how many of them did is still by chance: 50 with
/// a standard deviation of 6.9.
const CALLS: u64 = 1_000;
const CLAIMS_MAX: usize = 68;
/// Calls that look for a true difference.
const CALLS_POWER: u64 = 200;
/// Calls of the tests that are not long, where the same 2.6 standard deviations lie above 5 %.
const CALLS_SHORT: u64 = 200;
const CLAIMS_MAX_SHORT: usize = 18;

/// How the values of one metric come to be.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// 100 with a standard deviation of 2.
    Normal,
    /// A normal exponent: a spread of 30 %, with a long tail.
    LogNormal,
    /// One in three runs misses.
    ZeroOne,
    /// Nothing in four of five runs, and 1 to 9 in the fifth.
    MostlyZero,
    /// As `Normal`, and one in 100 runs takes 10 times as long.
    Outliers,
}

const NOISES: [(Noise, &str); 5] = [
    (Noise::Normal, "normal, 2 %"),
    (Noise::LogNormal, "log-normal, 30 %"),
    (Noise::ZeroOne, "0 or 1"),
    (Noise::MostlyZero, "counts, mostly 0"),
    (Noise::Outliers, "normal, 1 % outliers"),
];

/// A number of the standard normal distribution (Box and Muller, 1958).
fn normal(rng: &mut Rng) -> f64 {
    let length = (-2.0 * libm::log(1.0 - rng.unit())).sqrt();
    length * libm::cos(std::f64::consts::TAU * rng.unit())
}

impl Noise {
    fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Normal => 100.0 + 2.0 * normal(rng),
            Self::LogNormal => 100.0 * libm::exp(0.3 * normal(rng)),
            Self::ZeroOne => f64::from(u8::from(rng.below(3) == 0)),
            Self::MostlyZero if rng.below(5) > 0 => 0.0,
            Self::MostlyZero => 1.0 + rng.below(9) as f64,
            Self::Outliers => {
                let factor = if rng.below(100) == 0 { 10.0 } else { 1.0 };
                factor * Self::Normal.draw(rng)
            }
        }
    }
}

/// A kind of call.
#[derive(Clone, Copy)]
struct Call<'a> {
    runs: usize,
    is_paired: bool,
    /// What the first metric of the second set is made of, given what any other would be.
    first: &'a (dyn Fn(f64, &mut Rng) -> f64 + Sync),
    noise: Noise,
}

impl Call<'_> {
    /// The rows of call number `seed`. What two runs of the same seed have in common doubles half
    /// of all values.
    fn rows(&self, seed: u64) -> Vec<MetricRow> {
        let mut rng = Rng::new(seed, self.runs as u64);
        let [mut base, mut other] = ["a", "b"].map(|arm| Set::new(arm, "", ""));
        for run in 0..self.runs as u64 {
            let common: Vec<f64> = (0..METRICS)
                .map(|_| {
                    if self.is_paired && rng.below(2) == 0 {
                        2.0
                    } else {
                        1.0
                    }
                })
                .collect();
            for set in [&mut base, &mut other] {
                let is_second = set.arm == "b";
                let values = common.iter().enumerate().map(|(at, common)| {
                    let value = common * self.noise.draw(&mut rng);
                    let is_first = is_second && at == 0;
                    MeasuredNumber {
                        name: at.to_string(),
                        measure: Measure::Count,
                        better: Better::Lower,
                        role: Role::Goal,
                        value: if is_first {
                            (self.first)(value, &mut rng)
                        } else {
                            value
                        },
                    }
                });
                set.add(values.collect(), self.is_paired.then_some(run));
            }
        }
        let question = Question {
            base: &base,
            others: &[other],
            again: None,
            only: None,
        };
        let settings = Settings {
            intervals: false,
            ..Settings::default()
        };
        compare(&[question], Choice::Stated, &settings)
    }

    /// In how many of so many calls any difference is claimed, and in how many that of the first
    /// metric.
    fn claims(&self, calls: u64) -> [usize; 2] {
        let mut claims = [0; 2];
        for seed in 0..calls {
            let is_claim = |row: &MetricRow| {
                let verdict = row.result.as_ref().ok().and_then(|it| it.verdict);
                matches!(verdict, Some(Verdict::Faster | Verdict::Slower))
            };
            let rows = self.rows(seed);
            claims[0] += usize::from(rows.iter().any(is_claim));
            claims[1] += usize::from(is_claim(&rows[0]));
        }
        claims
    }
}

fn same(value: f64, _: &mut Rng) -> f64 {
    value
}

#[test]
fn sets_of_the_same_are_rarely_called_different() {
    for (noise, name) in NOISES {
        for (runs, is_paired) in [(6, false), (9, true)] {
            let call = Call {
                runs,
                is_paired,
                first: &same,
                noise,
            };
            let [claims, _] = call.claims(CALLS_SHORT);
            assert!(claims <= CLAIMS_MAX_SHORT, "{name}, {runs} runs: {claims}");
        }
    }
}

#[test]
fn true_differences_are_found_among_eight_metrics() {
    let slower = |value: f64, _: &mut Rng| 1.05 * value;
    let ten = |_: f64, rng: &mut Rng| ten(rng);
    let finds = |runs, is_paired, noise, first: &(dyn Fn(f64, &mut Rng) -> f64 + Sync)| {
        let call = Call {
            runs,
            is_paired,
            first,
            noise,
        };
        call.claims(CALLS_SHORT)[1]
    };
    // 5 % of a spread of 2 % are 2.5 standard deviations: 8 runs find it in at least 8 of 10 calls.
    let found = finds(8, false, Noise::Normal, &slower);
    assert!(found >= 160, "{found}");
    let found = finds(10, true, Noise::Normal, &slower);
    assert!(found >= 160, "{found} in pairs");
    // Nothing missed against 10 on average is separated: as few runs as can be.
    let never = finds(6, false, Noise::MostlyZero, &ten);
    assert!(never >= 120, "{never}");
}

/// About 10: what is missed of 100 when each is missed with 10 %.
fn ten(rng: &mut Rng) -> f64 {
    (0..100).filter(|_| rng.below(10) == 0).count() as f64
}

/// The table of one question: a row a noise, a column a number of runs, first of independent runs
/// and then of pairs.
fn table(
    cells: &[(Noise, &str)],
    first: &(dyn Fn(f64, &mut Rng) -> f64 + Sync),
    (calls, which): (u64, usize),
) -> Vec<(String, Vec<usize>)> {
    let of = |noise: Noise| {
        let kinds = [false, true].map(|is_paired| [5, 10, 20].map(|runs| (runs, is_paired)));
        thread::scope(|scope| {
            let threads = kinds.concat().into_iter().map(|(runs, is_paired)| {
                let call = Call {
                    runs,
                    is_paired,
                    first,
                    noise,
                };
                scope.spawn(move || call.claims(calls)[which])
            });
            let threads: Vec<_> = threads.collect();
            let counts = threads.into_iter().map(|it| it.join().expect("no panic"));
            counts.collect::<Vec<usize>>()
        })
    };
    cells
        .iter()
        .map(|(noise, name)| ((*name).to_owned(), of(*noise)))
        .collect()
}

/// A row of the table of runs: spread in per cent, runs that find a slowdown of 5 %, runs after
/// which two sets of the same are called so.
fn runs_table() -> Vec<[usize; 3]> {
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
fn the_table_of_the_document_says_how_many_runs_one_metric_takes() {
    let rows = runs_table();
    assert_eq!(rows.len(), 4, "a row for 1, 2, 3 and 5 %");
    let count = |want: Verdict, spread: usize, runs: usize, scale: f64| {
        let verdict = |seed: &u64| {
            let mut rng = Rng::new(*seed, 2);
            let mut of = |scale: f64| {
                let exponent = |rng: &mut Rng| normal(rng) * spread as f64 / 100.0;
                let values = (0..runs).map(|_| scale * libm::exp(exponent(&mut rng)));
                values.collect::<Vec<f64>>()
            };
            let [base, other] = [("a", of(1.0)), ("b", of(scale))].map(|(arm, values)| {
                let mut set = Set::new(arm, "", "");
                for value in values {
                    let measured = MeasuredNumber {
                        name: "time".to_owned(),
                        measure: Measure::Nanos,
                        better: Better::Lower,
                        role: Role::Goal,
                        value,
                    };
                    set.add(vec![measured], None);
                }
                set
            });
            let question = Question {
                base: &base,
                others: &[other],
                again: None,
                only: None,
            };
            let settings = Settings {
                intervals: false,
                ..Settings::default()
            };
            let rows = compare(&[question], Choice::Stated, &settings);
            rows[0].result.expect("can be compared").verdict == Some(want)
        };
        (0..CALLS_SHORT).filter(verdict).count()
    };
    for [spread, find, same] in rows {
        let found = count(Verdict::Slower, spread, find, 1.05);
        assert!(
            found >= 160,
            "{spread} %: {find} runs find it {found} times"
        );
        let equal = count(Verdict::NoDifference, spread, same, 1.0);
        assert!(equal >= 190, "{spread} %: {same} runs agree {equal} times");
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn the_table_of_the_document_says_how_often_comparisons_are_right() {
    let equal = table(&NOISES, &same, (CALLS, 0));
    for (name, counts) in &equal {
        assert!(
            counts.iter().all(|it| *it <= CLAIMS_MAX),
            "{name}: {counts:?}"
        );
    }
    let slower = |value: f64, _: &mut Rng| 1.05 * value;
    let never = |_: f64, rng: &mut Rng| ten(rng);
    let shifted = table(
        &[NOISES[0], NOISES[1], NOISES[4]],
        &slower,
        (CALLS_POWER, 1),
    );
    let zero = table(&[NOISES[3]], &never, (CALLS_POWER, 1));
    let mut text = String::new();
    let rows = [
        ("the same", equal),
        ("5 % more", shifted),
        ("10 instead", zero),
    ];
    for (what, rows) in rows {
        for (name, counts) in rows {
            let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "| {what} | {name} | {} |", counts.join(" | "));
        }
    }
    assert_eq!(text, RIGHT);
}

/// The numbers of the rows of [`RIGHT`] that begin so.
fn numbers(row: &str) -> Vec<usize> {
    let rows = RIGHT.lines().filter_map(|it| it.strip_prefix(row));
    let cells = rows.flat_map(|it| it.split('|'));
    cells.filter_map(|it| it.trim().parse().ok()).collect()
}

#[test]
fn the_document_sums_the_table_up() {
    let most = |row: &str| numbers(row).into_iter().max().expect("a row");
    let normal = numbers("| 5 % more | normal, 2 % ");
    let outliers = numbers("| 5 % more | normal, 1 % outliers ");
    let found = outliers.iter().filter(|it| **it > 0);
    let (least, large) = (found.clone().min().copied(), found.max().copied());
    let [_, runs, all, _, pairs, also_all] = normal[..] else {
        panic!("{normal:?}");
    };
    assert_eq!((all, also_all), (200, 200));
    for said in [
        format!("at most {} claim one", most("| the same ")),
        format!("{runs} of 10 runs, {pairs} of 10 pairs, and all of 20 find it"),
        format!(
            "{} to {} of 10 or 20",
            least.unwrap_or(0),
            large.unwrap_or(0)
        ),
        format!("at most {} find it", most("| 5 % more | log-normal")),
    ] {
        assert!(DOCUMENT.contains(&said), "docs/comparing.md lacks {said}");
    }
}
