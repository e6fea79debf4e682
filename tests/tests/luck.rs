//! Searches that cannot win by luck: the same ledger, score and sealed judgement as of `evaluate`,
//! on figures in the place of runs.
//!
//! The figures are real: mean waits of one policy under shipped loads, one for each seed. What is
//! stood in for is the candidates: candidates that differ in names and comments alone have the same
//! runs, and so the same score, which `renamings_of_a_policy_have_one_score` shows. Here each draws
//! figures of its own from the pool, as a candidate does whose changes shift every run by chance
//! and none for the better: the hardest case for a search. Loads, draws, epochs and nominees are
//! those of a real search.

use ask::Services;
use ask::evaluate::score::{GoalFigures, LoadFigures, SearchScore, score, shown_better};
use ask::evaluate::search::{EPOCH, Ledger, Nominee};
use ask::runner::Runner;
use model::{Nanos, Rng};
use runslice_tests::policy;
use stats::compare::{Better, Measure, Settings};
use workload::RunSpec;

/// Loads whose tasks wait, and the runs of each that figures are drawn from.
const LOADS: [&str; 4] = ["desk", "chat", "screen", "web"];
const RUNS: u64 = 200;
/// Paired draws of each load.
const DRAWS: usize = 20;
const CANDIDATES: u64 = 1_000;
const SEARCHES: u64 = 200;

/// By load, the mean waits of `eevdf`.
fn figures() -> Vec<Vec<f64>> {
    let services = Services::default();
    let of_load = |name: &&str| -> Vec<f64> {
        let load = ask::workload_arg::find(&services, name, &[]).expect("a shipped load");
        let found = ask::policy::find(&services, "eevdf").expect("a shipped policy");
        assert_eq!(
            found.object,
            policy::object("eevdf").expect("a shipped policy")
        );
        let run = |seed| {
            let spec = RunSpec {
                policy: found.clone(),
                machine: load.machine.clone(),
                workload: load.clone().into(),
                seed,
                tie_seed: None,
                attach_after: Nanos::ZERO,
                duration: Some(Nanos::from_millis(500)),
            };
            let (outcome, _) = Runner::new(&spec, &services).measure().expect("it runs");
            outcome.report.all.delay.mean.expect("tasks wait").get() as f64
        };
        (1..=RUNS).map(run).collect()
    };
    LOADS.iter().map(of_load).collect()
}

/// A search over stand-ins, of which `planted` is better by 5 %.
struct Search<'a> {
    pool: &'a [Vec<f64>],
    seed: u64,
    planted: Option<u64>,
}

/// The draws of a pool: the open ones of an epoch, or the sealed ones.
const SEALED: u64 = 1 << 40;

impl Search<'_> {
    /// The figures of a candidate in these draws. Those of the baseline are the same for all.
    fn figures(&self, candidate: u64, draws: u64) -> Vec<LoadFigures> {
        let stream = |whose: u64| Rng::new(self.seed, draws * 4_096 + whose);
        let (mut base, mut own) = (stream(0), stream(1 + candidate));
        let gain = if self.planted == Some(candidate) {
            1.05
        } else {
            1.0
        };
        let one = |(name, pool): (&&str, &Vec<f64>)| {
            let pick = |rng: &mut Rng| pool[rng.below(pool.len() as u64) as usize];
            let pairs = (0..DRAWS).map(|_| Some((pick(&mut base), Some(pick(&mut own) / gain))));
            let goal = GoalFigures {
                goal: "mean delay".to_owned(),
                measure: Measure::Nanos,
                better: Better::Lower,
                weight: 1.0,
                pairs: pairs.collect(),
            };
            LoadFigures {
                load: (*name).to_owned(),
                weight: 1.0,
                goals: vec![goal],
            }
        };
        LOADS.iter().zip(self.pool).map(one).collect()
    }

    fn scored(&self, candidate: u64, draws: u64) -> SearchScore {
        // A search reads scores; intervals are for its user.
        let settings = Settings {
            intervals: false,
            ..Settings::default()
        };
        score(&self.figures(candidate, draws), &settings)
    }

    /// The nominees with their sealed scores, and which of them are shown better.
    fn run(&self) -> Vec<(u64, SearchScore, bool)> {
        let mut ledger = Ledger::default();
        for candidate in 0..CANDIDATES {
            let epoch = ledger.epoch();
            for old in ledger.to_judge_anew() {
                let number = old.id.parse().expect("a number");
                ledger.judged_anew(&old.id, self.scored(number, epoch).combined());
            }
            let nominee = Nominee {
                id: candidate.to_string(),
                candidate: candidate.to_string(),
                score: self.scored(candidate, epoch).combined(),
                epoch,
                outcome: String::new(),
            };
            ledger.evaluated(Some(nominee), false);
        }
        assert_eq!(ledger.epoch(), CANDIDATES / EPOCH);
        let best = ledger
            .best
            .iter()
            .map(|it| it.id.parse().expect("a number"));
        let best: Vec<u64> = best.collect();
        let sealed: Vec<SearchScore> = best.iter().map(|it| self.scored(*it, SEALED)).collect();
        let shown = shown_better(&sealed, &Settings::default());
        let nominees = best.into_iter().zip(sealed).zip(shown);
        nominees
            .map(|((number, scored), shown)| (number, scored, shown))
            .collect()
    }
}

/// The candidate that was planted, and the nominees of the search.
type Searched = (Option<u64>, Vec<(u64, SearchScore, bool)>);

fn searches(pool: &[Vec<f64>], count: u64, plants: bool) -> Vec<Searched> {
    let one = |seed: u64| {
        let planted = plants.then(|| Rng::new(seed, 1 << 50).below(CANDIDATES));
        let search = Search {
            pool,
            seed,
            planted,
        };
        (planted, search.run())
    };
    (1..=count).map(one).collect()
}

/// 17 of 200 is the limit of a test by which 5 % pass.
#[test]
#[ignore = "takes minutes: make test-long"]
fn searches_over_candidates_that_do_not_differ_claim_no_improvement() {
    let all = searches(&figures(), SEARCHES, false);
    let claims = all
        .iter()
        .filter(|(_, it)| it.iter().any(|(_, _, shown)| *shown))
        .count();
    assert!(
        claims <= 17,
        "{claims} of {SEARCHES} searches claim an improvement"
    );
    let sealed: Vec<f64> = all
        .iter()
        .flat_map(|(_, it)| it)
        .map(|(_, scored, _)| scored.score[0])
        .collect();
    let count = sealed.len() as f64;
    let mean = sealed.iter().sum::<f64>() / count;
    let variance = sealed.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let error = (variance / count).sqrt();
    assert!(
        mean.abs() <= 2.0 * error,
        "mean {mean}, its standard error {error}"
    );
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_planted_gain_of_five_per_cent_is_found_in_most_searches() {
    let all = searches(&figures(), SEARCHES, true);
    let is_found = |(planted, it): &Searched| {
        it.iter()
            .any(|(number, _, shown)| *shown && Some(*number) == *planted)
    };
    let found = all.iter().filter(|it| is_found(it)).count() as u64;
    assert!(found * 100 >= 80 * SEARCHES, "{found} of {SEARCHES} found");
}
