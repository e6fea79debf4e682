//! How a search goes on over many evaluations without winning by luck: epochs, the gate's rare
//! answers, and the sealed draws, which are asked once.

use serde::{Deserialize, Serialize};

/// Evaluations of an epoch. Then all draws are new, and the best are judged anew.
pub const EPOCH: u64 = 100;
/// The gate answers once in so many evaluations.
pub const GATE_EVERY: u64 = 20;
/// Candidates that are judged anew in the next epoch, and those that the sealed draws judge.
pub const NOMINEES: usize = 5;

/// A candidate that did well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nominee {
    /// BLAKE3 of its object and what is set in it, in hexadecimal.
    pub id: String,
    /// How it was named.
    pub candidate: String,
    /// Its score.
    pub score: f64,
    /// The epoch of the draws that gave the score.
    pub epoch: u64,
    /// A hash of all its figures in these draws; empty if they are not known any more.
    #[serde(default)]
    pub outcome: String,
}

/// How far a search is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// Evaluations so far.
    pub evaluations: u64,
    /// After how many the gate has answered last.
    pub gate_answered: Option<u64>,
    /// The best so far, the best one first.
    pub best: Vec<Nominee>,
    /// Whether the sealed draws were asked: their key is known and spent.
    pub is_spent: bool,
}

impl Ledger {
    /// The epoch of the next evaluation.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.evaluations / EPOCH
    }

    /// Whether the gate may answer at the next evaluation.
    #[must_use]
    pub fn may_ask_gate(&self) -> bool {
        let since = |at: u64| self.evaluations.saturating_sub(at);
        self.gate_answered.is_none_or(|at| since(at) >= GATE_EVERY)
    }

    /// The best of the epoch before, which are to be judged in this one's draws before anybody is
    /// held against them.
    #[must_use]
    pub fn to_judge_anew(&self) -> Vec<Nominee> {
        let epoch = self.epoch();
        let old = self.best.iter().filter(|it| it.epoch != epoch);
        old.cloned().collect()
    }

    /// Notes that somebody was judged anew: the old score was the luck of its draws, too.
    pub fn judged_anew(&mut self, id: &str, score: f64) {
        let epoch = self.epoch();
        for known in self.best.iter_mut().filter(|it| it.id == id) {
            (known.score, known.epoch) = (score, epoch);
            known.outcome.clear();
        }
        self.order();
    }

    /// Notes an evaluation that asked the gate, or did not. Who was refused is no nominee.
    pub fn evaluated(&mut self, nominee: Option<Nominee>, asked_gate: bool) {
        self.evaluations += 1;
        if asked_gate {
            self.gate_answered = Some(self.evaluations);
        }
        let Some(nominee) = nominee else { return };
        // Who comes to the same figures in the same draws does the same, and would take a place.
        let is_twin = |it: &&mut Nominee| {
            let is_same = it.epoch == nominee.epoch && it.outcome == nominee.outcome;
            it.id == nominee.id || (is_same && !it.outcome.is_empty())
        };
        match self.best.iter_mut().find(is_twin) {
            Some(known) if known.id != nominee.id => {}
            Some(known) => *known = nominee,
            None => self.best.push(nominee),
        }
        self.order();
    }

    fn order(&mut self) {
        self.best.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.best.truncate(NOMINEES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nominee(id: &str, score: f64, epoch: u64) -> Nominee {
        Nominee {
            id: id.to_owned(),
            candidate: id.to_owned(),
            score,
            epoch,
            outcome: String::new(),
        }
    }

    #[test]
    fn the_best_five_are_kept_and_judged_anew_in_the_next_epoch() {
        let mut ledger = Ledger::default();
        for number in 0..EPOCH {
            let score = number as f64 / 1000.0;
            ledger.evaluated(Some(nominee(&number.to_string(), score, 0)), false);
        }
        let kept: Vec<_> = ledger.best.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(kept, ["99", "98", "97", "96", "95"]);
        assert_eq!((ledger.epoch(), ledger.to_judge_anew().len()), (1, 5));
        ledger.judged_anew("99", -0.5);
        assert_eq!(ledger.best[4].id, "99", "its score was luck");
        assert_eq!(ledger.to_judge_anew().len(), 4);
    }

    #[test]
    fn who_is_evaluated_twice_is_one_nominee() {
        let mut ledger = Ledger::default();
        ledger.evaluated(Some(nominee("a", 0.1, 0)), false);
        ledger.evaluated(Some(nominee("a", 0.1, 0)), false);
        ledger.evaluated(None, false);
        assert_eq!((ledger.best.len(), ledger.evaluations), (1, 3));
    }

    #[test]
    fn twins_take_one_place() {
        let mut ledger = Ledger::default();
        let with = |id: &str, outcome: &str| Nominee {
            outcome: outcome.to_owned(),
            ..nominee(id, 0.5, 0)
        };
        for id in ["a", "b", "c", "d", "e", "f"] {
            ledger.evaluated(Some(with(id, "one")), false);
        }
        // Scores are cut, so that two of them may be equal by chance.
        ledger.evaluated(Some(with("other", "two")), false);
        let kept: Vec<_> = ledger.best.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(kept, ["a", "other"]);
    }

    #[test]
    fn the_gate_answers_once_in_twenty_evaluations() {
        let mut ledger = Ledger::default();
        let mut answers = 0;
        for _ in 0..100 {
            let may = ledger.may_ask_gate();
            answers += u32::from(may);
            ledger.evaluated(None, may);
        }
        assert_eq!(answers, 5);
    }
}
